# Reweighted least squares in C (src/engine/host/irls.c) compared with the search in R, which
# works for any family object, and model frames of plain columns with stats::model.frame().

in_r <- function(x, y, family, ...) { # a link that is not R's own object
  plain <- family$linkinv
  family$linkinv <- function(eta) plain(eta)
  cl_glm(x, y, family, ..., intercept = FALSE)
}

draw <- function(family, mu) {
  n <- length(mu)
  switch(family, binomial = rbinom(n, 1, mu), poisson = rpois(n, mu), Gamma = rgamma(n, 4, 4 / mu),
         inverse.gaussian = mu * exp(rnorm(n) / 4), gaussian = rnorm(n, mu))
}

expect_same_search <- function(n, p, family, link, eta, ...) {
  with_cl({
    x <- cbind(1, matrix(runif(n * (p - 1), -1, 1), n))
    r <- if (link == "1/mu^2") inverse.gaussian() else
      do.call(getExportedValue("stats", family), list(link))
    mean <- r$linkinv(eta(as.vector(x[, -1, drop = FALSE] %*% rep(0.2, p - 1))))
    y <- as.double(draw(family, mean))
    weights <- rep_len(c(1, 2, 0.5), n)
    offset <- rep_len(c(0, 0.05), n)
    problem <- statcl:::new_glm_problem(statcl:::wrap_family(r), x, list(y = y, weights = weights),
                                        offset, 1L)
    found <- statcl:::irls_in_c(problem, statcl:::used_data(problem),
                                list(maxit = 50, tolerance = 1e-8))
    expect_false(is.null(found), label = paste(family, link, n))
    wanted <- suppressWarnings(in_r(x, y, r, weights = weights, offset = offset))
    expect_equal(found$beta, unname(coef(wanted)), tolerance = 1e-9)
    expect_equal(found$deviance, wanted$deviance, tolerance = 1e-9)
    expect_equal(crossprod(found$root),
                 unname(solve(wanted$vcov / statcl:::dispersion(wanted))), tolerance = 1e-6)
    expect_lte(abs(found$iterations - wanted$iterations), 2)
  }, engine = "host")
}

cases <- list(
  list("binomial", c("logit", "probit", "cauchit", "cloglog"), function(t) t - 0.3),
  list("binomial", c("log", "identity"),
       function(t) t / 4 + c(log = -0.9, identity = 0.5)[link]),
  list("poisson", c("log", "identity", "sqrt"),
       function(t) t + c(log = 1, identity = 9, sqrt = 3)[link]),
  list("Gamma", c("log", "identity", "inverse"), function(t) t + 2),
  list("inverse.gaussian", c("log", "1/mu^2"), function(t) t + 1),
  list("gaussian", c("identity", "log", "inverse"), function(t) t + 2))

test_that("links and variances in C give what the family objects give", {
  set.seed(31)
  for (case in cases) for (link in case[[2]]) {
    eta <- case[[3]]
    environment(eta) <- list2env(list(link = link))
    for (n in c(61, 515)) expect_same_search(n, 4, case[[1]], link, eta)
  }
  expect_same_search(60001, 3, "Gamma", "log", function(t) t + 2) # on threads, without a basis
  expect_same_search(4099, 33, "poisson", "sqrt", function(t) t + 9)
})

test_that("the search in C leaves difficult problems to that in R", {
  with_cl({
    control <- list(maxit = 50, tolerance = 1e-8)
    search <- function(x, y, r) {
      problem <- statcl:::new_glm_problem(statcl:::wrap_family(r), x, list(y = as.double(y)), NULL,
                                          1L)
      statcl:::irls_in_c(problem, statcl:::used_data(problem), control)
    }
    x <- cbind(1, 1:40)
    expect_null(search(x, rep(0:1, each = 20), binomial("probit"))) # separated: no maximum
    control$maxit <- 1
    expect_null(search(x, rgamma(40, 3), Gamma("log")))
    control$maxit <- 50
    tall <- cbind(1, 1e8 + rnorm(40000), rnorm(40000)) # cross-products lose the second column
    expect_null(search(tall, rgamma(40000, 3), Gamma("log")))
    fit <- cl_glm(cbind(x, x[, 2] * 2), rgamma(40, 3), Gamma("log"), intercept = FALSE)
    expect_identical(unname(is.na(coef(fit))), c(FALSE, FALSE, TRUE))
  }, engine = "host")
})

test_that("weighted cross-products on threads are those of base R", {
  set.seed(32)
  for (shape in list(c(0, 3), c(1, 1), c(3, 2), c(513, 5), c(70001, 7), c(900, 300), c(5000, 65))) {
    x <- matrix(rnorm(prod(shape)), shape[1])
    w <- runif(shape[1])
    expect_equal(statcl:::glm_gram(x, w), crossprod(x, w * x), tolerance = 1e-13)
  }
})

test_that("model frames and matrices of plain columns are those of stats", {
  set.seed(33)
  data <- data.frame(y = rnorm(30), a = rnorm(30), b = 1:30, f = gl(2, 15),
                     l = rep(c(TRUE, FALSE), 15))
  data$m <- cbind(data$a, data$b)
  plain <- function(formula, data) statcl:::plain_design(terms(formula, data = data), data)
  expect_as_stats <- function(formula, data) {
    found <- plain(formula, data)
    frame <- model.frame(terms(formula, data = data), data)
    expect_identical(found$frame, frame)
    expect_identical(found$x, model.matrix(terms(frame), frame))
  }
  expect_as_stats(y ~ a + b, data)
  expect_as_stats(y ~ b - 1, data)
  expect_as_stats(b ~ ., data[1:3])
  rownames(data) <- paste("row", 1:30)
  expect_as_stats(y ~ b + a, data)
  for (formula in list(y ~ a + f, y ~ l, y ~ a:b, y ~ a * b, log(y + 9) ~ a, y ~ a + offset(b),
                       y ~ m, y ~ poly(a, 2), y ~ other, y ~ a - b, y ~ 0, y ~ y + a)) {
    expect_null(suppressWarnings(plain(formula, data)))
  }
  data$a[3] <- NA
  expect_null(plain(y ~ a, data))
  expect_null(plain(y ~ a, data[0, ]))
  expect_identical(nobs(cl_glm(y ~ a, data, "normal_id")), 29L)
})
