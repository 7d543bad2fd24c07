# Cholesky factor, its reverse mode, solve(), chol2inv(), determinant() (R/matrix-cholesky.R,
# R/matrix-solve.R).

# Positive definite with the given condition number.
definite <- function(n, condition = 10, scale = 1) {
  set.seed(n)
  q <- qr.Q(qr(matrix(rnorm(n * n), n)))
  a <- q %*% (exp(seq(0, -log(condition), length.out = n)) * t(q)) * scale
  (a + t(a)) / 2
}

# LAPACK's residual ratio of a factor: below 30 is right, near 1 is usual.
ratio <- function(a, l) {
  one <- function(m) max(colSums(abs(m)))
  one(l %*% t(l) - a) / (nrow(a) * one(a) * 2^-53)
}

sizes <- c(1:5, 15:17, 31:34, 63:66, 100, 127:130)

test_each_engine("the factor has LAPACK's residual at block edges, conditions and scales", {
  for (n in sizes) for (condition in c(2, 1e7)) {
    a <- definite(n, condition)
    l <- cl_chol(a, lower = TRUE)
    expect_lt(ratio(a, l), 5)
    expect_true(all(l[upper.tri(l)] == 0))
    expect_lt(ratio(a, t(as.matrix(chol(as_cl(a))))), 5)
  }
  for (scale in c(1e-150, 1e150, 1e-290, 1e290)) {
    a <- definite(40, 100, scale)
    expect_lt(ratio(a / scale, cl_chol(a, lower = TRUE) / sqrt(scale)), 5)
  }
})

test_each_engine("chol() gives base R's upper factor, cl_chol() either factor", {
  a <- definite(7)
  dimnames(a) <- list(letters[1:7], LETTERS[1:7])
  expect_close(cl_chol(a), chol(a), 1e-14)
  expect_close(cl_chol(a, lower = TRUE), t(chol(a)), 1e-14)
  r <- chol(as_cl(a))
  expect_close(r, chol(a), 1e-14)
  expect_identical(r@view, "upper")
  expect_identical(cl_chol(as_cl(a), lower = TRUE)@view, "lower")
  expect_identical(dimnames(r), dimnames(chol(a)))
  expect_identical(dimnames(cl_chol(a)), dimnames(chol(a)))
  expect_identical(cl_chol(4), matrix(2))
  expect_identical(cl_chol(matrix(4L)), matrix(2))
  expect_close(cl_chol(as.data.frame(definite(3))), unname(chol(definite(3))), 1e-14)
})

test_each_engine("only the lower triangle is read", {
  a <- definite(35)
  junk <- a
  junk[upper.tri(junk)] <- NaN
  expect_identical(cl_chol(junk), cl_chol(a))
  expect_identical(as.matrix(cl_chol(as_cl(junk))), as.matrix(cl_chol(as_cl(a))))
  expect_identical(as.matrix(chol(as_cl(a, view = "symmetric"))), as.matrix(chol(as_cl(a))))
})

test_each_engine("a matrix that is not positive definite gives the order of the failing minor", {
  message <- tryCatch(chol(matrix(c(1, 2, 2, 1), 2)), error = conditionMessage)
  for (n in c(1, 2, 33, 66, 130)) for (k in unique(c(1, n %/% 2 + 1, n))) {
    a <- diag(n) * 4 + 1
    a[k, k] <- -1
    expect_fault(cl_chol(a), "not_pd", order = k)
    expect_fault(chol(as_cl(a)), "not_pd", order = k)
  }
  condition <- expect_fault(cl_chol(matrix(c(1, 2, 2, 1), 2)), "not_pd", order = 2)
  expect_identical(conditionMessage(condition), message)
  expect_identical(as.character(conditionCall(condition)[[1]]), "cl_chol")
  expect_fault(cl_chol(matrix(0, 3, 3)), "not_pd", order = 1)
})

test_each_engine("jitter is added only on request", {
  a <- matrix(1, 3, 3)
  expect_fault(cl_chol(a), "not_pd", order = 2)
  expect_close(cl_chol(a, jitter = 0.5), chol(a + diag(0.5, 3)), 1e-14)
  expect_close(cl_chol(as_cl(a), jitter = 0.5), chol(a + diag(0.5, 3)), 1e-14)
  for (jitter in list(-1, NA, Inf, "1", 1:2, NULL)) {
    expect_refused("jitter", cl_chol(a, jitter = jitter))
  }
})

test_each_engine(
  "missing and infinite values in the triangle read are rejected, with their index", {
  for (value in c(NA, NaN, Inf, -Inf)) {
    a <- definite(35)
    a[34, 3] <- value
    a[35, 20] <- value
    expect_fault(cl_chol(a), "nonfinite", index = 2 * 35 + 34, argument = "a")
    expect_fault(chol(as_cl(a)), "nonfinite", index = 2 * 35 + 34)
  }
})

test_that("bad input is rejected by name", {
  bad <- list(NULL, list(1), mean, globalenv(), "4", 1i, factor(1), 1:3, numeric(),
              array(1, c(2, 2, 1)), matrix(1, 2, 3), matrix(0, 0, 0))
  for (a in bad) expect_refused("a", cl_chol(a))
  each_engine({
    expect_refused("x", chol(as_cl(matrix(1, 2, 3))), chol(as_cl(matrix(0, 0, 0))))
    expect_refused("pivot", chol(as_cl(diag(2)), pivot = TRUE))
    expect_refused("lower", cl_chol(diag(2), lower = NA), cl_chol(diag(2), lower = c(TRUE, FALSE)))
    expect_refused("l_adj", cl_chol_adjoint(diag(2), diag(3)))
    expect_refused("l", cl_chol_adjoint(matrix(1, 2, 3), diag(2)))
  })
})

# ---- reverse mode -------------------------------------------------------------------------------

# The closed form, in plain R.
closed_form <- function(l, l_adj) {
  p <- t(l) %*% (l_adj * lower.tri(l_adj, TRUE))
  p <- p * lower.tri(p)  + diag(diag(p) / 2, nrow(p))
  s <- backsolve(t(l), t(backsolve(t(l), t(p + t(p)))))
  (s + t(s)) / 4
}

test_each_engine("the reverse mode agrees with its closed form at block edges", {
  for (n in c(1:4, 31:33, 64, 65, 127, 129, 257)) {
    a <- definite(n, 100)
    l <- cl_chol(a, lower = TRUE)
    l_adj <- matrix(cos(seq_len(n * n)), n)
    expected <- closed_form(l, l_adj)
    junk <- l_adj
    junk[upper.tri(junk)] <- NaN
    s <- cl_chol_adjoint(l, junk)
    expect_close(s, expected, 10 * n * .Machine$double.eps * 100)
    expect_identical(s, t(s))
    d <- cl_chol_adjoint(as_cl(l, view = "lower"), as_cl(l_adj))
    expect_identical(d@view, "symmetric")
    expect_close(d, expected, 10 * n * .Machine$double.eps * 100)
  }
})

test_each_engine("the reverse mode agrees with central differences", {
  n <- 5
  a <- definite(n)
  weight <- matrix(sin(1:25), n)
  h <- 1e-5
  f <- function(a) sum((weight * cl_chol(a, lower = TRUE)))
  difference <- matrix(0, n, n)
  for (i in seq_len(n)) for (j in seq_len(i)) {
    step <- matrix(0, n, n)
    step[i, j] <- step[j, i] <- h
    change <- (f(a + step) - f(a - step)) / (2 * h)
    difference[i, j] <- difference[j, i] <- if (i == j) change else change / 2
  }
  expect_close(cl_chol_adjoint(cl_chol(a, lower = TRUE), weight), difference, 1e-8)
})

test_each_engine("the reverse mode rejects a singular or non-finite factor", {
  l <- t(chol(definite(4)))
  l[3, 3] <- 0
  expect_fault(cl_chol_adjoint(l, diag(4)), "singular", index = 3)
  l[3, 3] <- NaN
  expect_fault(cl_chol_adjoint(l, diag(4)), "nonfinite", index = 11, argument = "l")
  expect_fault(cl_chol_adjoint(diag(4), diag(c(1, Inf, 1, 1))), "nonfinite", index = 6,
               argument = "l_adj")
  expect_identical(cl_chol_adjoint(matrix(0, 0, 0), matrix(0, 0, 0)), matrix(0, 0, 0))
})

# ---- from the factor ----------------------------------------------------------------------------

test_each_engine("solve() equals base R for every view", {
  n <- 35
  g <- definite(n) + 0.1 * matrix(sin(seq_len(n * n)), n)
  s <- definite(n)
  b <- matrix(cos(seq_len(n * 3)), n, dimnames = list(NULL, letters[1:3]))
  indefinite <- s
  indefinite[1, 1] <- -5
  cases <- list(list(as_cl(g), g), list(as_cl(s, view = "symmetric"), s),
                list(as_cl(indefinite, view = "symmetric"), indefinite),
                list(as_cl(g, view = "lower"), g * lower.tri(g, TRUE)),
                list(as_cl(g, view = "upper"), g * upper.tri(g, TRUE)))
  for (case in cases) {
    a <- case[[2]]
    expect_close(solve(case[[1]], b), solve(a, b), 1e-11)
    expect_close(solve(case[[1]], as_cl(b)), solve(a, b), 1e-11)
    expect_close(solve(case[[1]], b[, 1]), matrix(solve(a, b[, 1])), 1e-11)
    expect_close(solve(case[[1]]), solve(a), 1e-11)
    expect_equal(c(determinant(case[[1]])$modulus), c(determinant(a)$modulus))
    expect_equal(determinant(case[[1]])$sign, determinant(a)$sign)
    expect_equal(det(case[[1]]), det(a))
  }
  expect_close(solve(s, as_cl(b)), solve(s, b), 1e-11)
  expect_identical(solve(as_cl(s, view = "symmetric"))@view, "symmetric")
  expect_identical(dimnames(solve(as_cl(s, view = "symmetric"), b)), dimnames(solve(s, b)))
  expect_equal(dim(solve(as_cl(matrix(0, 0, 0)), matrix(0, 0, 2))), c(0L, 2L))
})

test_each_engine(
  "solve() of a symmetric view stops at a numerically singular matrix as base R does", {
  hilbert <- function(n) 1 / (outer(seq_len(n), seq_len(n), `+`) - 1)
  for (n in 13:14) {
    # Base R stops at both; of 13 the factor exists.
    expect_error(solve(hilbert(n)), "computationally singular")
    h <- as_cl(hilbert(n), view = "symmetric")
    for (call in list(quote(solve(h)), quote(solve(h, 1:n)), quote(solve(h, h)))) {
      e <- expect_fault(eval(call), "singular")
      expect_match(conditionMessage(e), "reciprocal condition number = [0-9.]+e-")
      expect_true(is.na(e$index))
    }
  }
  h <- as_cl(hilbert(13), view = "symmetric")
  expect_equal(dim(solve(h, 1:13, tol = 0)), c(13L, 1L))
  h <- as_cl(hilbert(8), view = "symmetric")
  expect_equal(as.matrix(solve(h)) %*% hilbert(8), diag(8), tolerance = 1e-4)
  expect_fault(solve(h, tol = 1e-8), "singular")
  expect_refused("tol", solve(h, tol = "a"))
  # All pivots of this one's factor are 1, yet its condition number is 1e19.
  l <- diag(12)
  l[lower.tri(l)] <- -5
  s <- as_cl(tcrossprod(l), view = "symmetric")
  expect_error(solve(tcrossprod(l)), "computationally singular")
  expect_fault(solve(s, 1:12), "singular")
  expect_fault(solve(as_cl(hilbert(8)), tol = 1e-8), "singular")
  expect_fault(solve(hilbert(8), as_cl(1:8), tol = 1e-8), "singular")
  tiny <- as_cl(diag(3) * 1e-200, view = "symmetric")
  expect_equal(as.matrix(solve(tiny)), diag(3) * 1e200)
})

test_each_engine("solve() rejects singular matrices and shapes that do not conform", {
  expect_fault(solve(as_cl(diag(c(1, 0, 2))), 1:3), "singular", index = 2)
  expect_fault(solve(as_cl(diag(c(1, 0, 2)), view = "lower"), 1:3), "singular", index = 2)
  expect_fault(solve(as_cl(diag(c(1, 0, 2)), view = "symmetric")), "singular", index = 2)
  expect_fault(solve(as_cl(diag(c(1, 1e-300, 1))), 1:3), "singular")
  expect_refused("a", solve(as_cl(matrix(1, 2, 3)), 1:2))
  expect_refused("b", solve(as_cl(diag(2)), 1:3), solve(diag(2), as_cl(diag(3))),
                 solve(as_cl(diag(2)), "a"))
})

test_each_engine("chol2inv() computes the inverse from the factor", {
  a <- definite(37)
  r <- chol(a)
  expect_close(chol2inv(as_cl(r)), chol2inv(r), 1e-12)
  expect_close(chol2inv(chol(as_cl(a))), solve(a), 1e-11)
  expect_identical(chol2inv(as_cl(r))@view, "symmetric")
  expect_close(chol2inv(as_cl(r), size = 5), chol2inv(r, size = 5), 1e-12)
  for (size in list(0, 38, NA, 1.5)) expect_refused("size", chol2inv(as_cl(r), size = size))
  r[4, 4] <- 0
  expect_fault(chol2inv(as_cl(r)), "singular", index = 4)
  r[4, 4] <- 1
})

test_each_engine("plain matrices give what others give, in memory of their own", {
  for (n in c(1, 2, 70)) {
    a <- crossprod(matrix(sin(seq_len(n * n)), n)) + diag(n)
    b <- matrix(cos(seq_len(n * 3)), n)
    kept <- a + 0
    labelled <- function(x) structure(x, dimnames = list(paste0("r", seq_len(n)), NULL))
    for (f in list(function(x) cl_chol(x), function(x) cl_chol(x, lower = TRUE, jitter = 0.5),
                   function(x) cl_tri_inverse(x), function(x) cl_tri_solve(x, b),
                   function(x) cl_tri_solve(x, b[, 1], transpose = TRUE))) {
      first <- f(a)
      then <- first + 0
      f(a + diag(n))
      expect_identical(first, then)
      expect_identical(a, kept)
      expect_identical(c(f(labelled(a))), c(first))
    }
    expect_identical(cl_chol(a)[lower.tri(a)], numeric(n * (n - 1) / 2))
    expect_close(cl_chol(a), chol(a), 1e-12)
    expect_null(dim(cl_tri_solve(a, b[, 1])))
  }
})
