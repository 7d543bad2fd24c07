# Products by 8-bit integers, cl_use(emulate = TRUE): the kernels are tested in tests/core.

# the largest error of an element, relative to the norms of its row and column
error_of <- function(value, a, b) {
  exact <- a %*% b
  max(abs(value - exact) / outer(sqrt(rowSums(a^2)), sqrt(colSums(b^2))))
}

# The value of code on the device, with or without such products.
emulated <- function(code, emulate = TRUE) {
  with_cl(code, device = test_device_id(), engine = "device", emulate = emulate)
}

test_that("products by integers are as exact as the usual ones, and the same each time", {
  require_device()
  set.seed(1)
  a <- matrix(rnorm(90 * 70), 90)
  b <- matrix(rnorm(70 * 50), 70)
  multiply <- function(emulate) emulated(as.matrix(as_cl(a) %*% as_cl(b)), emulate)
  usual <- multiply(FALSE)
  integers <- multiply(TRUE)
  expect_false(identical(integers, usual))
  expect_identical(multiply(TRUE), integers)
  expect_identical(multiply("auto"), usual)
  expect_lt(error_of(integers, a, b), 4e-16)
  whole <- matrix(rep(-3:6, 9), 9)
  expect_identical(emulated(as.matrix(as_cl(whole) %*% as_cl(t(whole)))), whole %*% t(whole))
})

test_that("rows and columns of any size are scaled", {
  require_device()
  set.seed(2)
  rows <- 10^runif(60, -300, 0)
  columns <- 10^runif(40, -5, 300)
  a <- matrix(rnorm(60 * 30), 60)
  b <- matrix(rnorm(30 * 40), 30)
  value <- emulated(as.matrix(as_cl(a * rows) %*% as_cl(t(t(b) * columns))))
  expect_lt(error_of(t(t(value / rows) / columns), a, b), 1e-15)
})

test_that("factors, solves and likelihoods take these products", {
  require_device()
  set.seed(3)
  n <- 140
  x <- matrix(rnorm(n * 3), n)
  d <- 10^runif(n, -120, 120)
  s <- (crossprod(matrix(rnorm(n * n), n)) / n + diag(n)) * d * rep(d, each = n)
  factor <- function(emulate) emulated(as.matrix(cl_chol(as_cl(s))), emulate)
  residual <- function(l) max(abs((l %*% t(l) - s) / d / rep(d, each = n)))
  lower <- function(m) if (m[2, 1] == 0) t(m) else m
  expect_lt(residual(lower(factor(TRUE))), 4 * residual(lower(factor(FALSE))) + 1e-15)
  density <- function(emulate) {
    emulated(cl_gp_likelihood(sin(x[, 1]), x, k_exp_quad())(c(1, 1, 0.5)), emulate)
  }
  expect_equal(density(TRUE), density(FALSE), tolerance = 1e-10)
})

test_that("the setting is restored and checked", {
  old <- cl_use(engine = "host", emulate = TRUE)
  expect_identical(old$emulate, "auto")
  expect_identical(cl_use(engine = "host")$emulate, TRUE)
  do.call(cl_use, old)
  expect_identical(do.call(cl_use, old)$emulate, "auto")
  with_cl(expect_identical(session$emulate, FALSE), engine = "host", emulate = FALSE)
  expect_identical(session$emulate, "auto")
})
