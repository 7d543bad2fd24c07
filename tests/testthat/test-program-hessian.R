differences <- function(f, point, step = 1e-5) {
  layout <- unlist(point)
  slope <- function(x) unlist(attr(do.call(f, utils::relist(x, point)), "gradient"))
  vapply(seq_along(layout), function(j) {
    h <- replace(numeric(length(layout)), j, step)
    (slope(layout + h) - slope(layout - h)) / (2 * step)
  }, numeric(length(layout)))
}

expect_hessian <- function(f, point, tolerance = 1e-6) {
  h <- do.call(cl_hessian(f), point)
  expect_equal(unname(h), unname(differences(cl_gradient(f), point)), tolerance = tolerance)
  expect_identical(h, t(h))
  invisible(h)
}

test_each_engine("Hessians agree with differences of gradients", {
  set.seed(1)
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
  expect_hessian(function(mu, tau, z) {
    sum(dnorm(y, mu + tau * z, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
      dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
  }, list(mu = 1, tau = 2, z = rnorm(8)))
  id <- c(1, 3, 2, 3, 3)
  expect_hessian(function(theta) sum(exp(theta[id]) * cumsum(theta)[c(1, 2, 3, 3, 1)]),
                 list(theta = c(0.3, -0.2, 0.5)))
})

test_each_engine("Hessians of Cholesky factors, solves and special functions", {
  d <- as.matrix(dist(1:7))^2
  y <- sin(1:7)
  expect_hessian(function(l, s) {
    r <- chol(exp(s) * exp(-0.5 * d * exp(l)) + diag(0.1, 7))
    z <- backsolve(r, y, transpose = TRUE)
    -sum(log(diag(r))) - 0.5 * sum(z^2)
  }, list(l = 0.3, s = 0.2))
  expect_hessian(function(a, b) sum(dgamma(c(0.5, 2, 3), a, b, log = TRUE)),
                 list(a = 1.7, b = 0.6))
  expect_hessian(function(a) sum(pnorm(a, log.p = TRUE)) + sum(plogis(a, log.p = TRUE)),
                 list(a = c(-3, -0.2, 1.5)))
})

test_that("the Hessian at a mode gives the standard errors of glm()", {
  y <- c(2, 0, 3, 1, 4)
  x <- 1:5
  f <- function(a, b) sum(dpois(y, exp(a + b * x), log = TRUE))
  fit <- glm(y ~ x, family = poisson, control = list(epsilon = 1e-14))
  h <- cl_hessian(f)(a = coef(fit)[[1]], b = coef(fit)[[2]])
  expect_equal(unname(solve(-h)), unname(vcov(fit)), tolerance = 1e-8)
  expect_identical(dimnames(h), list(c("a", "b"), c("a", "b")))
})

test_that("products need no matrix, and new data are used", {
  y <- c(1, 2, 4)
  g <- cl_gradient(function(a, b) -sum((y - a - b^3)^2) * exp(a))
  h <- cl_hessian(g)
  full <- h(a = 0.4, b = c(1, 2, 3))
  expect_equal(h(a = 0.4, b = c(1, 2, 3), .direction = c(1, 2, 0, -1)),
               as.vector(full %*% c(1, 2, 0, -1)))
  expect_equal(h(a = 0.4, b = c(1, 2, 3), .direction = list(a = 1, b = c(2, 0, -1))),
               as.vector(full %*% c(1, 2, 0, -1)))
  update(g, y = c(5, 6, 7))
  y <- c(5, 6, 7)
  expect_equal(h(a = 0.4, b = c(1, 2, 3)),
               cl_hessian(function(a, b) -sum((y - a - b^3)^2) * exp(a))(a = 0.4, b = c(1, 2, 3)))
  expect_output(print(h), "4 parameters")
})

test_that("directions of other lengths are rejected", {
  h <- cl_hessian(function(a) sum(a^2))
  expect_refused(".direction", h(a = c(1, 2), .direction = 1))
})

test_that("sparse Hessians have the elements of dense ones", {
  skip_if_not_installed("Matrix")
  y <- sin(1:9)
  f <- function(u, s) {
    -sum(exp(s) * diff(u)^2) - sum((y - u)^4) + sum(tanh(u[1:3] * u[7:9])) - s^2
  }
  each_engine({
    sparse <- cl_hessian(f, sparse = TRUE)
    got <- sparse(u = (1:9) / 5, s = 0.3)
    expect_s4_class(got, "dsCMatrix")
    expect_equal(as.matrix(got), cl_hessian(f)(u = (1:9) / 5, s = 0.3), tolerance = 1e-12)
    expect_length(got@x, 10 + 9 + 8 + 3)
  })
  on_host({
    along <- cos(1:10)
    expect_equal(sparse(u = (1:9) / 5, s = 0.3, .direction = along), c(as.matrix(got) %*% along),
                 tolerance = 1e-12)
    model <- cl_gradient(f)
    of_model <- cl_hessian(model, sparse = TRUE)
    of_model(u = (1:9) / 5, s = 0.3)
    update(model, y = y + 1)
    expect_equal(as.matrix(of_model(u = (1:9) / 5, s = 0.3)),
                 cl_hessian(model)(u = (1:9) / 5, s = 0.3), tolerance = 1e-12)
    expect_output(print(of_model), "30 numbers of the lower triangle")
    expect_output(print(cl_hessian(f, sparse = TRUE)), "not compiled yet")
    # loops, and a long vector
    walk <- function(u) {
      total <- u[1]^2
      for (i in 2:length(u)) total <- total + (u[i] - sin(u[i - 1]))^2
      total
    }
    u <- cos(1:40)
    expect_equal(as.matrix(cl_hessian(walk, sparse = TRUE)(u)), cl_hessian(walk)(u),
                 tolerance = 1e-12, ignore_attr = TRUE)
    n <- 5000
    h <- cl_hessian(function(u) sum(diff(u)^2) / 2, sparse = TRUE)(numeric(n))
    expect_equal(range(Matrix::diag(h)), c(1, 2))
    expect_length(h@x, 2 * n - 1)
    none <- cl_hessian(function(a) 3, sparse = TRUE)
    expect_equal(sum(abs(suppressWarnings(none(1:2)))), 0)
    k <- diag(2)
    expect_fault(cl_hessian(function(a) sum(chol(k + a[1] * a[2])), sparse = TRUE)(c(1, 0.1)),
                 "argument", argument = "f")
    expect_refused("sparse", cl_hessian(f, sparse = NA))
  })
})
