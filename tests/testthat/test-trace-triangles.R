# Derivatives with respect to matrices of which a function reads a part: they belong to the elements
# that base R reads. Unsymmetric and partly filled matrices, against differences of base R's values.

set.seed(1)
whole <- crossprod(matrix(rnorm(16), 4)) + diag(4)
b <- matrix(rnorm(8), 4)
w <- matrix(rnorm(16), 4)

# The other triangle has what belongs to another matrix, zeros, or what makes it unsymmetric.
partly <- list(upper = replace(whole, lower.tri(whole), w[1:6]),
               lower = replace(whole, upper.tri(whole), w[1:6]),
               filled = replace(whole, lower.tri(whole), 0), general = whole + 0.3 * w)

reading_a_part <- list(
  chol = function(a) sum(chol(a) * w),
  chol_of_part = function(a) sum(chol(a[2:4, 2:4])^2 * w[1:9]),
  chol_of_transposed = function(a) sum(chol(t(a)) * w),
  chol2inv = function(a) sum(chol2inv(a) * w),
  chol2inv_of_part = function(a) sum(chol2inv(a, 3) * w[1:9]),
  chol2inv_of_factor = function(a) sum(chol2inv(chol(a)) * w),
  backsolve = function(a) sum(backsolve(a, b)^2) + sum(backsolve(a, b[, 1], transpose = TRUE)^2),
  backsolve_of_part = function(a) sum(backsolve(a, b, k = 3, upper.tri = FALSE)^2),
  forwardsolve = function(a) sum(forwardsolve(a, b)^2) + sum(forwardsolve(t(a), b)^3),
  forwardsolve_upper = function(a) sum(forwardsolve(a, b, upper.tri = TRUE, transpose = TRUE)^2),
  solve = function(a) sum(solve(a) * w) + sum(solve(a, b)^2) + sum(qr.solve(a, b)),
  small_solve = function(a) sum(solve(a[1:3, 1:3]) * w[1:9]) + det(a[1:3, 1:3]),
  determinant = function(a) determinant(a)$modulus + det(a) / 100,
  diag = function(a) sum(diag(a)^2 * w[, 1]) + sum(a[upper.tri(a)]^3),
  mahalanobis = function(a) sum(mahalanobis(t(b), 0, a)) + sum(mahalanobis(b[, 1], 0, a, TRUE)),
  cov2cor = function(a) sum(cov2cor(a) * w),
  covariance = function(a) sum(dmvnorm(t(b), 0.1, Sigma = a, log = TRUE)),
  precision = function(a) sum(dmvnorm(t(b), 0.1, precision = a, log = TRUE)),
  factor = function(a) sum(dmvnorm(t(b), 0.1, chol = a, log = TRUE)),
  lower_factor = function(a) sum(dmvnorm(t(b), 0.1, chol = a, lower = TRUE, log = TRUE)),
  wishart = function(a) dwishart(a, 7, whole, log = TRUE) + dwishart(whole, 7, a, log = TRUE),
  correlation = function(a) dlkj(a, 2, log = TRUE))

# f of numbers, by base R.
with_numbers <- function(f) {
  environment(f) <- list2env(list(dmvnorm = dmvnorm_formula, dwishart = dwishart_formula,
                                  dlkj = dlkj_formula), parent = environment(f))
  f
}

differences_of_value <- function(f, a, h = 1e-5) {
  changed <- function(k, by) f(replace(a, k, a[k] + by))
  slope <- vapply(seq_along(a), function(k) (changed(k, h) - changed(k, -h)) / (2 * h), 0)
  array(slope, dim(a))
}

expect_slope <- function(model, plain, a, label) {
  got <- model(a = a)
  expect_equal(as.vector(got), as.vector(plain(a)), tolerance = 1e-10, label = label)
  expect_equal(attr(got, "gradient")$a, differences_of_value(plain, a), tolerance = 1e-7,
               label = label)
}

on_host({
  test_that("derivatives belong to the elements that base R reads", {
    for (name in names(reading_a_part)) {
      f <- reading_a_part[[name]]
      model <- cl_gradient(f)
      for (kind in full_or_quick(names(partly), c("upper", "general"))) {
        expect_slope(model, with_numbers(f), partly[[kind]], paste(name, "of", kind))
      }
    }
  })

  test_that("second derivatives", {
    some <- c("chol", "chol_of_part", "chol2inv", "covariance", "precision", "wishart")
    for (name in full_or_quick(names(reading_a_part), some)) {
      f <- reading_a_part[[name]]
      model <- cl_gradient(f)
      h <- cl_hessian(f)(a = partly$upper)
      slope <- function(a, k) attr(model(a = a), "gradient")$a[k]
      want <- vapply(1:16, function(k) {
        c(differences_of_value(function(a) slope(a, k), partly$upper))
      }, numeric(16))
      expect_equal(unname(h), want, tolerance = 1e-6, label = name)
    }
  })
})

test_that("a part is read on each engine, for several matrices too", {
  f <- function(a) sum(chol(a) * w) + sum(backsolve(a, b)^2)
  all <- array(unlist(partly[1:2]), c(4, 4, 2))
  each_engine({
    found <- cl_map_gradient(cl_gradient(f), a = all)
    for (k in 1:2) {
      expect_close(found[k], f(all[, , k]), 1e-12)
      expect_close(attr(found, "gradient")$a[, , k], differences_of_value(f, all[, , k]), 1e-7)
    }
    h <- cl_hessian(function(a) sum(chol(a) * w))(a = partly$upper, .direction = c(w))
    along <- function(t) differences_of_value(function(a) sum(chol(a) * w), partly$upper + t * w)
    expect_close(h, c(along(1e-4) - along(-1e-4)) / 2e-4, 1e-4)
  })
})

test_that("a covariance matrix of three of its elements, in an optimiser", {
  y <- cbind(c(1, 2, 0.5, -1, 0.3), c(0.7, 2.2, 0.1, -1.5, 1))
  f <- function(a, b, c) {
    S <- matrix(0, 2, 2)
    S[1, 1] <- a
    S[1, 2] <- b
    S[2, 2] <- c
    sum(dmvnorm(y, 0, Sigma = S, log = TRUE))
  }
  o <- cl_objective(cl_gradient(f), init = list(a = 1, b = 0, c = 1))
  found <- stats::optim(o$par, o$fn, o$gr, method = "BFGS", control = list(reltol = 1e-12))
  expect_equal(unname(found$par), c(crossprod(y) / 5)[c(1, 3, 4)], tolerance = 1e-5)
})

test_that("new data that are no longer symmetric", {
  d <- outer(1:3, 1:3, "-")^2
  f <- function(s) {
    u <- chol(exp(-d / 3) * s + diag(3))
    sum(u * w[1:9])
  }
  model <- cl_gradient(f)
  model(0.7)
  d <- replace(d, lower.tri(d), 9)
  update(model, d = d)
  got <- model(0.7)
  expect_equal(as.vector(got), f(0.7))
  expect_equal(attr(got, "gradient")$s, (f(0.7 + 1e-5) - f(0.7 - 1e-5)) / 2e-5, tolerance = 1e-8)
})
