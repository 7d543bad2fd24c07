# Norms and condition estimates against base R.

norm_types <- c("O", "1", "I", "F", "E", "M", "2", "o", "i", "f", "m")

test_each_engine("norms agree with base R", {
  set.seed(1)
  shapes <- list(c(1, 1), c(5, 3), c(3, 70), c(65, 65))
  for (shape in shapes) {
    a <- matrix(rnorm(prod(shape)), shape[1L], dimnames = list(NULL, seq_len(shape[2L])))
    x <- as_cl(a)
    for (type in norm_types) expect_equal(norm(x, type), base::norm(a, type), tolerance = 1e-13)
    expect_equal(norm(x), base::norm(a), tolerance = 1e-13)
  }
})

test_each_engine("norms of views, zeros and matrices without elements", {
  a <- crossprod(matrix(c(3, -1, 2, 0.5, 7, 1, -2, 4, 1), 3))
  l <- a * lower.tri(a, TRUE)
  for (type in c("O", "I", "F", "M")) {
    expect_equal(norm(cl_matrix(a, 3, 3, view = "symmetric"), type), base::norm(a, type))
    expect_equal(norm(cl_matrix(l, 3, 3, view = "lower"), type), base::norm(l, type))
    expect_equal(norm(cl_zeros(2, 3), type), 0)
    expect_equal(norm(cl_zeros(0, 3), type), 0)
  }
})

test_each_engine("the Frobenius norm does not overflow or underflow", {
  a <- matrix(c(3, 4, 0, 12), 2)
  for (scale in c(1e-300, 1e-160, 1e160, 1e300)) {
    expect_equal(norm(as_cl(a * scale), "F") / scale, 13, tolerance = 1e-14)
  }
})

test_each_engine("norms propagate missing and infinite values", {
  for (type in c("O", "I", "F", "M", "2")) {
    expect_true(is.na(norm(as_cl(matrix(c(1, NaN, 3, 4), 2)), type)))
  }
  for (type in c("O", "I", "F", "M")) {
    expect_equal(norm(as_cl(matrix(c(1, -Inf, 3, 4), 2)), type), Inf)
  }
})

test_each_engine("rcond() estimates as LAPACK does", {
  set.seed(2)
  for (n in c(1, 2, 7, 40, 100)) {
    q <- qr.Q(qr(matrix(rnorm(n^2), n)))
    for (spread in c(1, 1e4, 1e9)) {
      a <- q %*% (spread^(-(seq_len(n) - 1) / max(n - 1, 1)) * t(q))
      a <- (a + t(a)) / 2
      r <- base::chol(a)
      for (type in c("O", "I")) {
        ratio <- function(x, want) abs(log(rcond(x, type) / want))
        # Both are estimates; that they agree is usual, a factor of three would be an error.
        expect_lt(ratio(cl_matrix(a, n, n, view = "symmetric"), base::rcond(a, type)), log(3))
        expect_lt(ratio(cl_matrix(r, n, n, view = "upper"), base::rcond(r, type, TRUE)), log(3))
        expect_lt(ratio(cl_matrix(t(r), n, n, view = "lower"), base::rcond(t(r), type)), log(3))
        expect_equal(rcond(as_cl(a), type), base::rcond(a, type))
      }
    }
  }
})

test_each_engine("rcond() of a triangle is never below the true value, nor far above it", {
  set.seed(3)
  for (k in 1:10) {
    r <- matrix(rnorm(400), 20)
    r[lower.tri(r)] <- 0
    diag(r) <- diag(r) + sign(diag(r))
    truth <- 1 / (base::norm(r) * base::norm(base::solve(r)))
    got <- rcond(cl_matrix(r, 20, 20, view = "upper"))
    expect_gte(got, truth * (1 - 1e-10))
    expect_lt(got, 3 * truth)
    spoilt <- r
    spoilt[lower.tri(r)] <- 9
    expect_equal(rcond(as_cl(spoilt), triangular = TRUE), got)
  }
})

test_each_engine("rcond() of singular and of indefinite matrices", {
  expect_equal(rcond(cl_matrix(c(1, 2, 0, 0), 2, 2, view = "lower")), 0)
  expect_equal(rcond(cl_matrix(c(1, 2, 2, 4), 2, 2, view = "symmetric")),
               base::rcond(matrix(c(1, 2, 2, 4), 2)))
  a <- matrix(c(1, 3, 3, 2), 2)
  expect_equal(rcond(cl_matrix(a, 2, 2, view = "symmetric")), base::rcond(a))
  b <- matrix(c(1, 4, 2, 8, 5, 7), 3)
  expect_equal(rcond(as_cl(b)), base::rcond(b))
  expect_refused("type", norm(as_cl(a), "X"), norm(as_cl(a), 2))
  expect_refused("norm", rcond(as_cl(a), "F"))
})

test_that("base R matrices still use base R's methods", {
  a <- matrix(c(2, 1, 0, 3), 2)
  expect_identical(statcl::norm(a, "F"), base::norm(a, "F"))
  expect_identical(statcl::rcond(a), base::rcond(a))
})

test_each_engine(
  "solve() and rcond() of a symmetric matrix near the ends of the range are base R's", {
  spread <- crossprod(matrix(sin(1:9), 3)) + diag(3) / 10
  ends <- list(diag(3) * 5e-308, diag(10) * 1e-307, spread * 1e-309, spread * 1e307)
  for (m in ends) {
    a <- cl_matrix(m, view = "symmetric")
    b <- m[1] * seq_len(nrow(m))
    expect_equal(rcond(a), rcond(m))
    expect_equal(as.vector(solve(a, b)), solve(m, b))
    expect_equal(as.matrix(solve(a)), solve(m))
  }
})
