# Densities of vectors and matrices and of ordered categories (R/density-multivariate.R), held
# against direct formulas.

formulas <- density_formulas()

some_covariance <- function(n, seed = 1) {
  set.seed(seed)
  crossprod(matrix(rnorm(n * n), n)) + diag(n)
}

test_that("multivariate normal densities by covariance, precision and factor", {
  s <- some_covariance(4)
  x <- matrix(c(0.3, -2, 5, 0.1, 1, 2, 3, 4, 0, 0, 0, 0), 3, byrow = TRUE)
  mean <- c(1, -1, 0.5, 2)
  direct <- function(x) {
    d <- x - mean
    -0.5 * sum(d * solve(s, d)) - 0.5 * log(det(2 * pi * s))
  }
  want <- apply(x, 1, direct)
  d <- formulas$dmvnorm
  expect_equal(d(x, mean, s, TRUE), want)
  expect_equal(d(x, mean, s), exp(want))
  expect_equal(d(x, mean, precision = solve(s), log = TRUE), want)
  expect_equal(d(x, mean, chol = chol(s), log = TRUE), want)
  expect_equal(d(x, mean, chol = t(chol(s)), lower = TRUE, log = TRUE), want)
  expect_equal(d(x, rbind(mean, mean, mean), s, TRUE), want)
  expect_equal(d(x[1, ], mean, s, TRUE), want[1])
  expect_equal(d(t(t(x) - mean), 0, s, TRUE), want)
  expect_equal(d(0.7, 0.2, 4, TRUE), dnorm(0.7, 0.2, 2, TRUE))
  expect_true(is.nan(d(c(1, 2), 0, diag(c(1, -1)))))
  expect_refused("Sigma", d(x, mean), d(x, mean, s, precision = s))
  expect_refused("mean", d(x, 1:3, s))
  expect_refused("x", d(x[, 1:3], 0, s))
})

test_that("the density of a correlation matrix's factor is normalised", {
  d <- formulas$dlkj
  for (eta in c(0.6, 1, 2.5)) {
    factor <- function(r) rbind(c(1, 0), c(r, sqrt(1 - r^2)))
    f <- function(r) vapply(r, function(r) d(factor(r), eta), 0)
    expect_equal(integrate(f, -1, 1, rel.tol = 1e-8)$value, 1, tolerance = 1e-5)
  }
  # By the elements of L below the diagonal: r, and the row (a, b) within the unit disc.
  inner <- function(r, a) {
    g <- function(b) vapply(b, function(b) {
      d(rbind(c(1, 0, 0), c(r, sqrt(1 - r^2), 0), c(a, b, sqrt(1 - a^2 - b^2))), 2)
    }, 0)
    integrate(g, -sqrt(1 - a^2), sqrt(1 - a^2), rel.tol = 1e-4)$value
  }
  middle <- function(r) {
    integrate(function(a) vapply(a, function(a) inner(r, a), 0), -1, 1, rel.tol = 1e-3)$value
  }
  total <- integrate(function(r) vapply(r, middle, 0), -1, 1, rel.tol = 1e-3)$value
  expect_equal(total, 1, tolerance = 1e-3)
  expect_equal(d(diag(3), 2, TRUE), log(d(diag(3), 2)))
  expect_true(is.nan(d(diag(3), -1)))
})

test_that("Wishart densities are those of the formula", {
  s <- some_covariance(3)
  x <- some_covariance(3, 2)
  for (df in c(2.5, 3, 20)) {
    gammas <- 3 * 2 / 4 * log(pi) + sum(lgamma((df + 1 - 1:3) / 2))
    want <- (df - 4) / 2 * log(det(x)) - sum(diag(solve(s, x))) / 2 - df * 3 / 2 * log(2) -
      df / 2 * log(det(s)) - gammas
    expect_equal(formulas$dwishart(x, df, s, TRUE), want)
    expect_equal(formulas$dwishart(x, df, s), exp(want))
  }
  expect_equal(formulas$dwishart(3, 4, 2, TRUE), dgamma(3, 2, scale = 4, log = TRUE))
  expect_true(is.nan(formulas$dwishart(x, 1.9, s)))
})

test_that("correlation and Wishart densities keep their digits at large shapes", {
  on_host(for (shape in c(1e10, 1e15, 1e300)) {
    found <- cl_gradient(function(eta) dlkj(diag(2), eta, log = TRUE))(eta = shape)
    expect_equal(as.numeric(found), 0.5 * log(shape / pi), tolerance = 1e-10)
    expect_equal(attr(found, "gradient")$eta * shape, 0.5, tolerance = 1e-10)
  })
  m <- 4e12 # has an exact root
  gammas <- dgamma(m / 2, c(m, m - 1) / 2, log = TRUE) + c(1, 1.5) * log(m / 2)
  want <- sum(gammas) - 3 * log(m) - 0.5 * log(pi)
  on_host({
    found <- cl_gradient(function(df) dwishart(m * diag(2), df, diag(2), log = TRUE))(df = m)
    expect_equal(as.numeric(found), want, tolerance = 1e-13)
    expect_equal(attr(found, "gradient")$df * m, 1.5, tolerance = 1e-6)
  })
})

test_that("ordered categories have the differences of logistic probabilities, in both tails", {
  cuts <- c(-1, 0.2, 3)
  eta <- c(-2, 0, 0.7, 5, 1)
  x <- c(1, 2, 3, 4, 2)
  p <- c(0, plogis(cuts - 0), 1)
  want <- vapply(1:5, function(k) {
    diff(c(0, plogis(cuts - eta[k]), 1))[x[k]]
  }, 0)
  expect_equal(formulas$dordlogit(x, eta, cuts), want)
  expect_equal(formulas$dordlogit(x, eta, cuts, TRUE), log(want))
  expect_equal(sum(formulas$dordlogit(1:4, 0.3, cuts)), 1)
  expect_equal(formulas$dordlogit(1:2, 0.3, 1), c(plogis(0.7), plogis(-0.7)))
  # Far out: log(p) = cuts[k] - eta + log(1 - exp(cuts[k - 1] - cuts[k])) to double precision.
  far <- 0.2 - 800 + log1p(-exp(-1.2))
  expect_equal(formulas$dordlogit(2, 800, cuts, TRUE), far, tolerance = 1e-15)
  expect_equal(formulas$dordlogit(2, -800, cuts, TRUE), -800 + 1 + log1p(-exp(-1.2)),
               tolerance = 1e-15)
  expect_identical(formulas$dordlogit(c(0, 5, 1.5, NA), 0, cuts, TRUE), c(-Inf, -Inf, -Inf, NaN))
})
