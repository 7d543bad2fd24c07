# dseparable() in cl_tmb(): against normal densities with Kronecker products of covariance matrices.

ar1 <- function(phi, n, sd = 1) sd^2 * phi^abs(outer(1:n, 1:n, "-"))

log_normal <- function(x, v) {
  r <- chol(v)
  -sum(log(diag(r))) - sum(backsolve(r, as.vector(x), transpose = TRUE)^2) / 2 -
    length(x) * log(2 * pi) / 2
}

test_that("a field that is separable has its exact likelihood", {
  skip_if_not_installed("Matrix")
  each_engine({
    set.seed(41)
    m <- 5L
    n <- 6L
    y <- matrix(rnorm(m * n), m)
    f <- function(p) {
      getAll(p)
      by_age <- function(x) dautoreg(x, phi = phi, log = TRUE, scale = exp(s))
      by_year <- function(x) dautoreg(x, phi = 0.7, log = TRUE)
      -dseparable(by_age, by_year)(u, mu = mu) - sum(dnorm(y, u, 0.5, log = TRUE))
    }
    obj <- cl_tmb(f, list(mu = 0.1, phi = 0.4, s = -0.2, u = matrix(0, m, n)), random = "u")
    expect_length(statcl:::tmb_sparse(environment(obj$fn)$o)$row,
                  ((3L * m - 2L) * (3L * n - 2L) + m * n) / 2L)
    exact <- function(p) {
      v <- kronecker(ar1(0.7, n), ar1(p[2], m, exp(p[3]))) + diag(0.25, m * n)
      -log_normal(y - p[1], v)
    }
    at <- c(-0.2, 0.3, 0.1)
    expect_equal(obj$fn(at), exact(at), tolerance = 1e-11)
    expect_equal(c(obj$gr(at)), slopes_of(exact, at, 1e-3), tolerance = 1e-7)
  })
})

test_that("margins of every kind, with means and scales", {
  skip_if_not_installed("Matrix")
  each_engine({
    set.seed(42)
    x <- array(rnorm(24), c(4, 2, 3))
    # the second autoregression by its equations
    phi <- c(0.5, 0.2)
    r1 <- phi[1] / (1 - phi[2])
    second <- stats::toeplitz(c(1, r1, phi[1] * r1 + phi[2]))
    second <- stats::toeplitz(c(second[1, ], phi[1] * second[1, 3] + phi[2] * second[1, 2]))
    q <- Matrix::bandSparse(3, k = 0:1, diagonals = list(rep(2, 3), rep(-0.7, 2)), symmetric = TRUE)
    sigma <- matrix(c(2, 0.6, 0.6, 1), 2)
    outside <- function(x) dmvnorm(x, 0, sigma, log = TRUE)
    f <- function(p) {
      a <- function(x) dautoreg(x, phi = p$phi, log = TRUE, scale = p$sd[1])
      b <- function(x) dgmrf(x, Q = p$k * q, log = TRUE)
      c <- function(x) dgmrf(x, Q = as.matrix(q), log = TRUE, scale = p$sd[2])
      d <- function(x) dmvnorm(x, 0, p$k * sigma, log = TRUE)
      value <- dseparable(a, outside, b)(x, mu = p$mu, scale = 2)
      REPORT(value)
      value + dseparable(a, d, c)(x - p$mu) +
        dseparable(a, d)(x[, , 2], scale = matrix(1:8, 4) * p$k)
    }
    start <- list(phi = phi, sd = c(1.5, 0.8), k = 1.2, mu = 0.3)
    obj <- cl_tmb(f, start)
    v1 <- 1.5^2 * second
    v3 <- solve(as.matrix(q))
    first <- log_normal((x - 0.3) / 2, kronecker(kronecker(v3 / 1.2, sigma), v1)) - 24 * log(2)
    more <- log_normal(x - 0.3, kronecker(kronecker(0.64 * v3, 1.2 * sigma), v1))
    scale <- matrix(1:8, 4) * 1.2
    last <- log_normal(x[, , 2] / scale, kronecker(1.2 * sigma, v1)) - sum(log(scale))
    expect_equal(obj$fn(), first + more + last, tolerance = 1e-11)
    expect_equal(obj$report()$value, first, tolerance = 1e-11)
    expect_equal(c(obj$gr()), slopes_of(obj$fn, obj$par, 1e-3), tolerance = 1e-7)
  })
})

on_host({

test_that("draws of a separable field have its covariance matrix", {
  skip_if_not_installed("Matrix")
  f <- function(p) {
    u <- p$u
    -dseparable(function(x) dautoreg(x, phi = 0.6, log = TRUE),
                function(x) dautoreg(x, phi = -0.5, log = TRUE))(u, mu = 1, scale = 2) + p$a^2
  }
  obj <- cl_tmb(f, list(a = 0, u = matrix(0, 2, 3)), random = "u")
  draws <- simulate(obj, full_or_quick(5000, 800), seed = 3)
  draws <- vapply(draws, function(d) c(d$u), numeric(6))
  v <- 4 * kronecker(ar1(-0.5, 3), ar1(0.6, 2))
  # within five standard errors
  expect_true(all(abs(rowMeans(draws) - 1) < 5 * 2 / sqrt(ncol(draws))))
  expect_true(all(abs(cov(t(draws)) - v) < 5 * sqrt(2) * 4 / sqrt(ncol(draws))))
})

test_that("what dseparable() does not take is named", {
  u <- matrix(0, 2, 3)
  a <- function(x) dautoreg(x, phi = 0.6, log = TRUE)
  refused <- function(f) expect_fault(cl_tmb(function(p) f(p$u), list(u = u)), "argument")
  expect_match(conditionMessage(refused(function(u) dseparable(a)(u))), "1 functions")
  expect_match(conditionMessage(refused(function(u) dseparable(a, 3)(u))), "takes functions")
  expect_match(conditionMessage(refused(function(u) dseparable(a, a)(u, log = FALSE))),
               "log densities")
  expect_match(conditionMessage(refused(function(u) dseparable(a, function(x) 1)(u))), "dgmrf")
  expect_match(conditionMessage(refused(function(u) {
    dseparable(a, function(x) dautoreg(x, mu = 1, phi = 0.2, log = TRUE))(u)
  })), "mu = 0")
})

})
