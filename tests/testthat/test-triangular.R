# Triangular solves, inverses and their reverse mode (R/matrix-triangular.R).

# A well-conditioned triangular matrix, with other values in the other triangle.
triangular <- function(n, upper = FALSE, junk = NaN) {
  set.seed(n)
  x <- matrix(rnorm(n * n) / max(n, 1), n)
  diag(x) <- 1 + abs(diag(x))
  x[if (upper) lower.tri(x) else upper.tri(x)] <- junk
  x
}

clean <- function(x, upper) {
  x[if (upper) lower.tri(x) else upper.tri(x)] <- 0
  x
}

sizes <- c(1, 2, 7, 31, 32, 33, 64, 65, 130)

# LAPACK's test ratio of a solve: below 30 is correct.
ratio <- function(t, x, b) {
  one <- function(m) max(colSums(abs(m)))
  max(colSums(abs(b - t %*% x)) / (one(t) * pmax(colSums(abs(x)), 1e-300))) / 2^-53
}

test_each_engine("solves have LAPACK's accuracy, for every form, and read one triangle only", {
  for (n in sizes) for (upper in c(FALSE, TRUE)) for (transpose in c(FALSE, TRUE)) {
    l <- triangular(n, upper)
    t <- clean(l, upper)
    if (transpose) t <- t(t)
    for (m in c(1, 3, 17)) {
      b <- matrix(cos(seq_len(n * m)), n)
      x <- cl_tri_solve(l, b, upper, transpose)
      expect_lt(ratio(t, x, b), 30)
      expect_lt(ratio(t, as.matrix(cl_tri_solve(as_cl(l), as_cl(b), upper, transpose)), b), 30)
    }
  }
})

test_each_engine("inverses have LAPACK's accuracy and a clean other triangle", {
  for (n in sizes) for (upper in c(FALSE, TRUE)) {
    l <- triangular(n, upper)
    t <- clean(l, upper)
    x <- cl_tri_inverse(l, upper)
    expect_lt(ratio(t, x, diag(n)), 30)
    expect_true(all(x[if (upper) lower.tri(x) else upper.tri(x)] == 0))
    d <- cl_tri_inverse(as_cl(l), upper)
    expect_identical(d@view, if (upper) "upper" else "lower")
    expect_lt(ratio(t, as.matrix(d), diag(n)), 30)
  }
})

test_that("cl_gradient() differentiates inverses", {
  weight <- matrix(sin(1:9), 3)
  each_engine(for (upper in c(FALSE, TRUE)) {
    l <- clean(triangular(3, upper), upper)
    model <- cl_gradient(function(a) sum(weight * cl_tri_inverse(matrix(a, 3), upper)^2))
    expect_close(c(model(as.vector(l))), sum(weight * solve(l)^2))
    expect_true(all(cl_check_gradient(model, as.vector(l))$ok))
    expect_close(c(cl_map_gradient(model, a = cbind(c(l), 2 * c(l)))), c(1, 0.25) * c(model(c(l))))
    again <- cl_gradient(function(a) {
      total <- sum(cl_tri_inverse(matrix(a, 3), upper))
      if (is.nan(total)) 0 * a[1] else total
    }, retrace = TRUE)
    expect_close(c(again(as.vector(l))), sum(solve(l)))
  })
  expect_identical(c(again(c(1, 0, 0, 0, 1, 0, 0, 0, 1))), 3)
  expect_identical(c(again(numeric(9))), 0)
  wide <- cl_gradient(function(a) sum(cl_tri_inverse(matrix(a, 2))))
  expect_identical(c(wide(c(0, 1, 0, 1))), NaN)
  steps <- cl_gradient(function(a) {
    step <- function(s, y) {
      l <- matrix(c(2 + s, s * y, 0, 3), 2)
      list(state = sum(sin(1:4) * (cl_tri_inverse(l) + cl_tri_inverse(t(l), TRUE))), out = s)
    }
    sum(cl_scan(step, a, c(1, 0.5, 2))$out)
  })
  loop <- function(s) {
    total <- 0
    for (y in c(1, 0.5, 2)) {
      total <- total + s
      inverse <- solve(matrix(c(2 + s, s * y, 0, 3), 2))
      s <- sum(sin(1:4) * (inverse + t(inverse)))
    }
    total
  }
  expect_close(c(steps(0.3)), loop(0.3))
  expect_true(all(cl_check_gradient(steps, 0.3)$ok))
  expect_refused("f", wide(1:6 + 0))
})

test_each_engine("backsolve() and forwardsolve() agree with base R", {
  r <- triangular(9, TRUE, 0)
  l <- t(r)
  b <- matrix(1:18 + 0, 9)
  expect_close(backsolve(as_cl(r), b), backsolve(r, b))
  expect_close(backsolve(r, as_cl(b)), backsolve(r, b))
  expect_close(backsolve(as_cl(r), as_cl(b), transpose = TRUE), backsolve(r, b, transpose = TRUE))
  expect_close(backsolve(as_cl(r), b, k = 5), backsolve(r, b, k = 5))
  expect_close(backsolve(as_cl(l), b, upper.tri = FALSE), backsolve(l, b, upper.tri = FALSE))
  expect_close(forwardsolve(as_cl(l), b), forwardsolve(l, b))
  expect_close(forwardsolve(l, as_cl(b), transpose = TRUE), forwardsolve(l, b, transpose = TRUE))
  expect_close(forwardsolve(as_cl(l), b[, 1]), matrix(forwardsolve(l, b[, 1])))
  expect_null(dimnames(backsolve(as_cl(r), b)))
  expect_refused("x", backsolve(as_cl(r), 1:8), backsolve(as_cl(r), 1:10))
  for (k in list(0, -1, NA, 1.5, 10, 2^31, "2", 1:2)) {
    expect_refused("k", backsolve(as_cl(r), b, k = k))
  }
  expect_refused("transpose", backsolve(as_cl(r), b, transpose = NA))
  expect_refused("upper.tri", backsolve(as_cl(r), b, upper.tri = c(TRUE, TRUE)))
})

test_each_engine("shapes: empty, vector, one number", {
  l <- triangular(3, FALSE, 0)
  expect_identical(cl_tri_solve(matrix(0, 0, 0), matrix(0, 0, 2)), matrix(0, 0, 2))
  expect_identical(cl_tri_solve(l, matrix(0, 3, 0)), matrix(0, 3, 0))
  expect_identical(cl_tri_inverse(matrix(0, 0, 0)), matrix(0, 0, 0))
  expect_null(dim(cl_tri_solve(l, 1:3)))
  expect_close(cl_tri_solve(l, 1:3), forwardsolve(l, 1:3))
  expect_equal(dim(cl_tri_solve(as_cl(l), 1:3)), c(3L, 1L))
  expect_equal(cl_tri_solve(4, 2), 0.5)
  expect_equal(cl_tri_solve(matrix(4L), matrix(2L)), matrix(0.5))
})

test_each_engine("names agree with solve()", {
  l <- triangular(2, FALSE, 0)
  dimnames(l) <- list(c("a", "b"), c("u", "v"))
  b <- matrix(1:4 + 0, 2, dimnames = list(NULL, c("p", "q")))
  expect_identical(dimnames(cl_tri_solve(l, b)), list(c("u", "v"), c("p", "q")))
  expect_identical(dimnames(cl_tri_inverse(l)), dimnames(solve(l)))
  expect_identical(dimnames(cl_tri_solve(as_cl(l), b)), list(c("u", "v"), c("p", "q")))
})

test_each_engine("an exact zero on the diagonal is singular, with its index", {
  for (n in c(1, 5, 70)) for (k in unique(c(1, n %/% 2 + 1, n))) {
    l <- triangular(n)
    l[k, k] <- 0
    expect_fault(cl_tri_solve(l, rep(1, n)), "singular", index = k)
    expect_fault(cl_tri_inverse(as_cl(l)), "singular", index = k)
    expect_fault(cl_tri_solve_adjoint(l, rep(1, n), rep(1, n)), "singular", index = k)
  }
})

test_each_engine("missing values propagate only to results that depend on them", {
  l <- triangular(5, FALSE, 0)
  b <- matrix(1, 5, 2)
  b[3, 1] <- NA
  x <- cl_tri_solve(l, b)
  expect_identical(is.na(x), is.na(forwardsolve(l, b)))
})

test_that("bad input is rejected by name", {
  l <- triangular(3, FALSE, 0)
  bad <- list(NULL, list(1), "4", 1i, mean, globalenv(), factor(1:3), array(1, c(3, 3, 1)))
  for (x in bad) {
    expect_refused("l", cl_tri_solve(x, 1:3), cl_tri_inverse(x))
    expect_refused("b", cl_tri_solve(l, x))
  }
  each_engine({
    expect_refused("l", cl_tri_solve(matrix(1, 2, 3), 1:2), cl_tri_solve(1:3, 1:3))
    expect_refused("b", cl_tri_solve(l, 1:2), cl_tri_solve(l, 1:4),
                   cl_tri_solve(as_cl(l), matrix(1, 4, 1)))
    expect_refused("upper", cl_tri_solve(l, 1:3, upper = NA))
    expect_refused("transpose", cl_tri_solve(l, 1:3, transpose = 1))
    expect_refused("x_adj", cl_tri_solve_adjoint(l, 1:3, 1:2))
  })
  expect_error(cl_tri_solve(l, 1:3, lower = TRUE), "unused argument")
})

test_each_engine("the reverse mode agrees with central differences", {
  n <- 4
  b <- matrix(cos(1:8), n)
  weight <- matrix(sin(1:8), n)
  h <- 1e-5
  for (upper in c(FALSE, TRUE)) for (transpose in c(FALSE, TRUE)) {
    l <- triangular(n, upper, 0)
    f <- function(l, b) sum(weight * cl_tri_solve(l, b, upper, transpose))
    difference <- function(at, value) {
      out <- value * 0
      for (i in seq_along(value)) {
        up <- down <- value
        up[i] <- up[i] + h
        down[i] <- down[i] - h
        out[i] <- (at(up) - at(down)) / (2 * h)
      }
      out
    }
    x <- cl_tri_solve(l, b, upper, transpose)
    adj <- cl_tri_solve_adjoint(l, x, weight, upper, transpose)
    expect_named(adj, c("l", "b"))
    expect_close(adj$b, difference(function(v) f(l, v), b), 1e-8)
    expect_close(adj$l, clean(difference(function(v) f(v, b), l), upper), 1e-8)
    device <- cl_tri_solve_adjoint(as_cl(l), as_cl(x), as_cl(weight), upper, transpose)
    expect_close(device$l, adj$l, 1e-12)
    expect_identical(device$l@view, if (upper) "upper" else "lower")
  }
})

test_each_engine("the reverse mode at block sizes agrees with its formula", {
  for (n in c(33, 130)) {
    l <- triangular(n)
    b <- matrix(cos(seq_len(n * 5)), n)
    x <- cl_tri_solve(l, b)
    adj <- cl_tri_solve_adjoint(l, x, b)
    b_adj <- backsolve(t(clean(l, FALSE)), b)
    expect_close(adj$b, b_adj, 1e-12)
    expect_close(adj$l, -clean(b_adj %*% t(x), FALSE), 1e-12)
  }
})
