# Lazy arithmetic: operands that are freed, shared, missing, or products.

test_each_engine("a freed intermediate matrix lives as long as expressions of it", {
  x <- as_cl(matrix(1, 3, 3))
  y <- x * 2
  z <- y + 1
  cl_free(y)
  expect_equal(as.matrix(z), matrix(3, 3, 3))
  y <- x * 2
  z <- y + 1
  as.matrix(y)
  w <- y + 2
  cl_free(y)
  expect_equal(as.matrix(z), matrix(3, 3, 3))
  expect_equal(as.matrix(w), matrix(4, 3, 3))
})

test_each_engine("products with a vector are fused with arithmetic by row only", {
  set.seed(7)
  x <- matrix(rnorm(5000 * 3), 5000)
  b <- matrix(rnorm(3), 3)
  p <- x %*% b
  want <- matrix(0, 5000, 1)
  want[4991:5000, 1] <- p[1:10]
  product <- as_cl(x) %*% b
  y <- as_cl(matrix(0, 5000, 1))
  y[4991:5000, 1] <- product[1:10, 1, drop = FALSE]
  expect_equal(as.matrix(y), want)
  expect_equal(as.matrix(product - product[1, 1, drop = FALSE]), p - p[1])
  none <- as_cl(matrix(0, 5000, 0))
  expect_equal(as.matrix(none %*% matrix(0, 0, 1) + 1), matrix(1, 5000, 1))
  expect_equal(sum(none %*% matrix(0, 0, 1)), 0)
})

test_that("transposed results used by others leave nothing in memory", {
  live <- function() sum(cl_memory()$live)
  each_engine({
    x <- as_cl(matrix(rnorm(300 * 300), 300))
    gc()
    before <- live()
    z <- t(x)
    s <- cl_reduce(z, map = function(z) z * 2)
    both <- cl_eval(z, s)
    expect_equal(as.vector(both[[2L]]), 2 * sum(x))
    rm(z, s, both)
    gc()
    expect_identical(live(), before)
  })
})

test_each_engine(
  "pmin() and pmax() ignore missing values on request, also with base operands first", {
  least <- pmin(NA, c(5, 7), as_cl(matrix(9, 2, 1)), na.rm = TRUE)
  expect_equal(as.matrix(least), matrix(c(5, 7)))
  expect_no_warning(any(as_cl(diag(2)) > 0, TRUE))
})
