# Random effects of cl_tmb() with a sparse Hessian: against exact likelihoods of normal models, and
# against dense blocks.

state_of <- function(obj) environment(obj$fn)$o

# The same objective by dense blocks (R/laplace-blocks.R).
by_blocks <- function(...) {
  obj <- cl_tmb(...)
  o <- state_of(obj)
  o$sparse <- NULL
  o$mode_of <- NULL
  obj
}

expect_as_blocks <- function(f, start, random, elements, at = NULL) {
  sparse <- cl_tmb(f, start, random = random)
  dense <- by_blocks(f, start, random = random)
  expect_identical(length(statcl:::tmb_sparse(state_of(sparse))$row), as.integer(elements))
  expect_null(statcl:::tmb_sparse(state_of(dense)))
  for (x in c(list(sparse$par), if (!is.null(at)) list(at))) {
    expect_equal(sparse$fn(x), dense$fn(x), tolerance = 1e-10)
    expect_equal(sparse$gr(x), dense$gr(x), tolerance = 1e-7)
  }
  best <- nlminb(sparse$par, sparse$fn, sparse$gr)$par
  one <- cl_sdreport(sparse, best)
  other <- cl_sdreport(dense, best)
  expect_true(one$pdHess)
  for (part in c("cov.fixed", "par.random", "diag.cov.random", "value", "sd", "cov")) {
    expect_equal(one[[part]], other[[part]], tolerance = 1e-5, info = part)
  }
}

# -log density of y ~ N(m, v)
exact_normal <- function(y, m, v) {
  r <- chol(v)
  sum(log(diag(r))) + sum(backsolve(r, y - m, transpose = TRUE)^2) / 2 + length(y) * log(2 * pi) / 2
}

test_each_engine(
  "a local level model has its exact likelihood, smoothed states and their variances", {
  y <- as.numeric(datasets::Nile)[1:full_or_quick(100, 40)] / 100
  n <- length(y)
  f <- function(p) {
    getAll(p)
    nll <- -dnorm(level[1], 10, 3, log = TRUE)
    for (i in 2:n) nll <- nll - dnorm(level[i], level[i - 1], exp(ls[1]), log = TRUE)
    ADREPORT(exp(ls))
    nll - sum(dnorm(y, level, exp(ls[2]), log = TRUE))
  }
  obj <- cl_tmb(f, list(level = rep(9, n), ls = c(-1, 0)), random = "level")
  s <- statcl:::tmb_sparse(state_of(obj))
  expect_identical(length(s$row), 2L * n - 1L)
  prior <- function(ls) 9 + exp(2 * ls[1]) * (outer(1:n, 1:n, pmin) - 1)
  exact <- function(ls) exact_normal(y, 10, prior(ls) + exp(2 * ls[2]) * diag(n))
  at <- c(-0.7, 0.2)
  expect_equal(obj$fn(at), exact(at), tolerance = 1e-11)
  expect_equal(c(obj$gr(at)), slopes_of(exact, at, 1e-3), tolerance = 1e-7)
  sdr <- cl_sdreport(obj, at)
  k <- prior(at)
  gain <- k %*% solve(k + exp(2 * at[2]) * diag(n))
  smooth <- 10 + c(gain %*% (y - 10))
  expect_equal(unname(sdr$par.random), smooth, tolerance = 1e-9)
  moves <- vapply(1:2, function(j) {
    mean_at <- function(x) {
      k <- prior(replace(at, j, x))
      10 + c(k %*% solve(k + exp(2 * replace(at, j, x)[2]) * diag(n), y - 10))
    }
    (mean_at(at[j] + 1e-4) - mean_at(at[j] - 1e-4)) / 2e-4
  }, numeric(n))
  spread <- diag(k - gain %*% k) + rowSums((moves %*% unname(sdr$cov.fixed)) * moves)
  expect_equal(sdr$diag.cov.random, spread, tolerance = 1e-6)
})

test_each_engine("patterns that are dense", {
  set.seed(13)
  n <- 30L
  y <- rpois(n, exp(1 + sin(1:n / 4)))
  distance <- abs(outer(1:n, 1:n, "-"))
  # a Gaussian process by its covariance, by the factor of it, and by sums
  process <- function(p) {
    ADREPORT(p$u[3:4])
    -dmvnorm(p$u, 0, exp(2 * p$s) * exp(-distance / exp(p$r)), log = TRUE) -
      sum(dpois(y, exp(p$m + p$u), log = TRUE)) + p$r^2
  }
  start <- list(m = 1, s = -1, r = 1, u = numeric(n))
  expect_as_blocks(process, start, "u", n * (n + 1L) / 2L, c(0.8, -0.7, 1.2))
  factor <- function(p) {
    l <- t(chol(exp(-distance / exp(p$r)) + diag(1e-6, n)))
    ADREPORT(p$u[3:4])
    -sum(dnorm(p$u, log = TRUE)) - sum(dpois(y, exp(p$m + exp(p$s) * l %*% p$u), log = TRUE)) +
      p$r^2
  }
  expect_as_blocks(factor, start, "u", n * (n + 1L) / 2L, c(0.8, -0.7, 1.2))
  sums <- function(p) {
    ADREPORT(p$u[3:4])
    -sum(dnorm(p$u, log = TRUE)) - sum(dpois(y, exp(p$m + exp(p$s) * cumsum(p$u)), log = TRUE)) +
      (p$s + 1)^2
  }
  expect_as_blocks(sums, start[-3L], "u", n * (n + 1L) / 2L, c(0.8, -0.7))
})

test_that("effects in the solution of equations with a sparse matrix", {
  skip_if_not_installed("Matrix")
  each_engine({
    n <- 25L
    y <- sin(1:n) + 1:n / 10
    q <- Matrix::bandSparse(n, k = 0:1, diagonals = list(rep(2.2, n), rep(-1, n - 1)),
                            symmetric = TRUE)
    solved <- function(make) function(p) {
      x <- as.vector(solve(make(exp(p$s)), p$u))
      ADREPORT(p$u[3:4])
      -sum(dnorm(p$u, log = TRUE)) - sum(dnorm(y, tanh(x) + x, 0.5, log = TRUE)) + p$s^2
    }
    start <- list(s = 0.2, u = numeric(n))
    sparse <- solved(function(k) q + k * Matrix::Diagonal(n))
    expect_as_blocks(sparse, start, "u", n * (n + 1L) / 2L, 0.4)
    dense <- cl_tmb(solved(function(k) as.matrix(q) + k * diag(n)), start, random = "u")
    expect_equal(cl_tmb(sparse, start, random = "u")$fn(0.4), dense$fn(0.4), tolerance = 1e-10)
    expect_equal(cl_tmb(sparse, start, random = "u")$gr(0.4), dense$gr(0.4), tolerance = 1e-8)
  })
})

test_each_engine("recursions whose steps are recorded have a sparse Hessian too", {
  n <- 12
  y <- sin(1:n)
  f <- function(p) {
    x <- p$u[1]
    total <- (y[1] - x)^2
    for (i in 2:n) {
      x <- tanh(p$a * x) + p$u[i]
      total <- total + (y[i] - x)^2
    }
    total + sum(p$u^2) + p$a^2
  }
  sparse <- cl_tmb(f, list(a = 0.5, u = numeric(n)), random = "u")
  dense <- by_blocks(f, list(a = 0.5, u = numeric(n)), random = "u")
  expect_false(is.null(statcl:::tmb_sparse(state_of(sparse))))
  expect_equal(sparse$fn(0.7), dense$fn(0.7), tolerance = 1e-10)
  expect_equal(sparse$gr(0.7), dense$gr(0.7), tolerance = 1e-7)
})

on_host({

test_that("patterns of many kinds give what dense blocks give", {
  set.seed(11)
  n <- 30
  y <- rnorm(n) * exp(cumsum(rnorm(n, 0, 0.2)) / 2)
  volatility <- function(p) {
    getAll(p)
    phi <- 2 * plogis(l) - 1
    ADREPORT(phi)
    nll <- -dnorm(h[1], 0, exp(s) / sqrt(1 - phi^2), log = TRUE)
    nll <- nll - sum(dnorm(h[-1], phi * h[-n], exp(s), log = TRUE))
    nll - sum(dnorm(y, 0, exp(mu + h / 2), log = TRUE))
  }
  expect_as_blocks(volatility, list(mu = 0, l = 2, s = -1, h = numeric(n)), "h", 2 * n - 1,
                   c(0.1, 1.5, -0.8))
  # crossed effects
  a <- sample(6, 60, TRUE)
  b <- sample(9, 60, TRUE)
  count <- rpois(60, exp(0.5 + rnorm(6, 0, 0.8)[a] + rnorm(9, 0, 0.8)[b]))
  crossed <- function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s[1]))
    v %~% dnorm(0, exp(s[2]))
    ADREPORT(u - mean(v))
    count %~% dpois(exp(mu + u[a] + v[b]))
  }
  expect_as_blocks(crossed, list(mu = 0, s = c(-1, -0.5), u = numeric(6), v = numeric(9)),
                   c("u", "v"), 15 + nrow(unique(cbind(a, b))), c(0.5, -0.5, -1))
  # a second difference on a lattice with rows and columns, and products of the effects
  field <- function(p) {
    x <- p$x
    ADREPORT(x[1, ])
    exp(-2 * p$s) * (sum((x[-1, ] - p$r * x[-5, ])^2) + sum((x[, -1] - p$r * x[, -6])^2)) / 2 +
      sum((x - 0.3)^2) + sum(exp(x)) + 30 * p$s + p$s^2 + p$r^2
  }
  expect_as_blocks(field, list(x = matrix(0.1, 5, 6), s = 0.1, r = 0.5), "x", 30 + 4 * 6 + 5 * 5,
                   c(-0.2, 0.8))
  # a design with zeros, a triangular solution, sums over rows, choices
  z <- matrix(rnorm(40) * (runif(40) < 0.4), 10)
  k <- exp(-abs(outer(1:10, 1:10, "-")))
  mixed <- function(p) {
    w <- solve(chol(k + diag(exp(p$s), 10)), p$u)
    ADREPORT(p$v[2])
    sum(w^2) + sum(ifelse(p$v > 0, p$v, 2 * p$v)^2) + sum(exp(z %*% p$v * p$s)) + p$s^2 +
      sum(rowSums(matrix(p$u, 2)^2)^2)
  }
  obj <- cl_tmb(mixed, list(s = 0.3, u = seq(0.1, 1, length.out = 10), v = rep(0.2, 4)),
                random = c("u", "v"))
  expect_as_blocks(mixed, list(s = 0.3, u = seq(0.1, 1, length.out = 10), v = rep(0.2, 4)),
                   c("u", "v"), length(statcl:::tmb_sparse(state_of(obj))$row), 0.4)
})

test_that("the joint precision is the inverse of what the standard errors say", {
  n <- 8
  y <- sin(1:n) + (1:n) / 5
  f <- function(p) {
    getAll(p)
    u[-1] %~% dnorm(r * u[-n], exp(s))
    u[1] %~% dnorm(0, 1)
    r %~% dnorm(0.5, 0.5)
    s %~% dnorm(0, 1)
    y %~% dnorm(u, 0.5)
  }
  start <- list(s = 0, u = numeric(n), r = 0.2)
  sparse <- cl_tmb(f, start, random = "u")
  best <- nlminb(sparse$par, sparse$fn, sparse$gr)$par
  one <- cl_sdreport(sparse, best, joint = TRUE)
  v <- solve(as.matrix(one$jointPrecision))
  expect_identical(colnames(one$jointPrecision), c("s", rep("u", n), "r"))
  expect_equal(v[c(1, n + 2), c(1, n + 2)], one$cov.fixed, tolerance = 1e-10)
  expect_equal(unname(diag(v)[1 + 1:n]), one$diag.cov.random, tolerance = 1e-10)
  other <- cl_sdreport(by_blocks(f, start, random = "u"), best, joint = TRUE)
  expect_equal(as.matrix(other$jointPrecision), as.matrix(one$jointPrecision), tolerance = 1e-6)
  alone <- cl_sdreport(cl_tmb(function(p) (p$a - 1)^2, list(a = 0.9)), joint = TRUE)
  expect_equal(alone$jointPrecision, matrix(2, 1, 1, dimnames = list("a", "a")), tolerance = 1e-6)
  expect_refused("joint", cl_sdreport(sparse, best, joint = 1))
})

test_that("thousands of states", {
  set.seed(12)
  n <- full_or_quick(20000L, 3000L)
  y <- cumsum(rnorm(n, 0, 0.3)) + rnorm(n)
  f <- function(p) {
    getAll(p)
    x[1] %~% dnorm(0, 5)
    x[-1] %~% dnorm(x[-n], exp(s[1]))
    y %~% dnorm(x, exp(s[2]))
  }
  obj <- cl_tmb(f, list(s = c(-1, 0), x = numeric(n)), random = "x")
  kalman <- function(s) {
    m <- 0
    v <- 25
    total <- 0
    for (i in seq_len(n)) {
      total <- total - dnorm(y[i], m, sqrt(v + exp(2 * s[2])), log = TRUE)
      gain <- v / (v + exp(2 * s[2]))
      m <- m + gain * (y[i] - m)
      v <- v * (1 - gain) + exp(2 * s[1])
    }
    total
  }
  expect_equal(obj$fn(c(-1.2, 0.1)), kalman(c(-1.2, 0.1)), tolerance = 1e-10)
  expect_equal(c(obj$gr(c(-1.2, 0.1))), slopes_of(kalman, c(-1.2, 0.1), 1e-3), tolerance = 1e-6)
})

test_that("an indefinite Hessian names a random effect", {
  f <- function(p) sum((p$u[-1] - p$u[-5])^2) + sum(p$a * p$u[3]^2) - 10 * cos(p$u[4]) + p$b^2
  obj <- cl_tmb(function(p) f(p) - 3 * p$v[2]^2 + sum(p$v), list(a = 1, b = 0, u = numeric(5),
                                                              v = numeric(2)),
                random = c("u", "v"))
  expect_identical(obj$fn(), NaN)
  expect_true(all(is.nan(obj$gr())))
  expect_fault(obj$report(c(1, 0)), "not_pd", says = "not positive definite at 'v\\[[12]\\]'")
  expect_fault(cl_sdreport(obj, c(1, 0)), "not_pd")
})

test_that("third derivatives that are not finite are an error", {
  obj <- cl_tmb(function(p) sum((p$u^2)^1.25 * p$a^2 + p$u^2) + (p$a - 1)^2,
                list(a = 1, u = c(0, 0)), random = "u")
  expect_true(is.finite(obj$fn()))
  expect_fault(obj$gr(), "nonfinite", argument = "nll", says = "not finite at 'u\\[1\\]'")
})

test_that("a factor serves again after others", {
  obj <- cl_tmb(function(p) sum((p$u[-1] - p$u[-9])^2) * exp(p$s) + sum(exp(p$u)) + sum(p$s^2) -
                  sum(p$u), list(s = 0.2, u = numeric(9)), random = "u")
  o <- state_of(obj)
  first <- obj$fn(0.1)
  mode <- o$mode
  other <- obj$fn(0.9)
  expect_equal(statcl:::effects_log_det(o, mode$step$factor) + 2 * mode$value - 9 * log(2 * pi),
               2 * first, tolerance = 1e-14)
  expect_identical(obj$fn(0.9), other)
})

})
