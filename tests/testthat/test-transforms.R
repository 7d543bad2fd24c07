
skip_on_cran() # long; run by ./dev check

cases <- list(
  lower = list(transform = cl_lower(0), u = c(-3, 0.2, 2)),
  lower_each = list(transform = cl_lower(c(-1, 0, 5)), u = c(-3, 0.2, 2)),
  upper = list(transform = cl_upper(2), u = c(-3, 0.2, 2)),
  bounds = list(transform = cl_bounds(-1, 3), u = c(-4, 0.2, 3)),
  bounds_each = list(transform = cl_bounds(c(0, 1, 2), c(1, 3, 9)), u = c(-4, 0.2, 3)),
  free = list(transform = cl_bounds(-Inf, Inf), u = c(-4, 0.2, 3)),
  ordered = list(transform = cl_ordered(), u = c(-1, 0.3, -2, 1)),
  ordered_one = list(transform = cl_ordered(), u = 0.7),
  simplex = list(transform = cl_simplex(), u = c(-1, 0.3, 2)),
  simplex_two = list(transform = cl_simplex(), u = 0.7),
  positive_ordered = list(transform = cl_positive_ordered(), u = c(-1, 0.3, -2, 1)),
  zero_sum = list(transform = cl_zero_sum(), u = c(-1, 0.3, 2)),
  unit_vector = list(transform = cl_unit_vector(), u = c(0.6, 0, -0.8)),
  corr_factor = list(transform = cl_corr_factor(), u = c(-0.5, 0.3, 1, 0.5, -0.2, 0.7)),
  corr_factor_two = list(transform = cl_corr_factor(), u = 0.4),
  corr_matrix = list(transform = cl_corr_matrix(), u = c(-0.5, 0.3, 1, 0.5, -0.2, 0.7)),
  cov_matrix = list(transform = cl_cov_matrix(), u = c(-0.5, 0.3, 1, 0.5, -0.2, 0.7)),
  variance = list(transform = cl_cov_matrix(), u = 0.4))

# The elements to which the density refers; a unit vector has none.
coordinates <- function(name, x, u) {
  below <- function(diagonal) which(lower.tri(matrix(x, sqrt(length(x))), diagonal))
  switch(sub("_two$", "", name), corr_factor = , corr_matrix = below(FALSE),
         cov_matrix = below(TRUE), seq_along(u))
}

test_that("values are valid, and free() is the inverse", {
  for (name in names(cases)) {
    t <- cases[[name]]$transform
    u <- cases[[name]]$u
    x <- t$value(u)
    expect_true(t$inside(x), info = name)
    expect_equal(t$free(x), u, tolerance = 1e-12, info = name)
    expect_equal(t$size(length(x)), length(u), info = name)
  }
})

test_that("Jacobians agree with determinants of differences", {
  for (name in names(cases)) {
    t <- cases[[name]]$transform
    u <- cases[[name]]$u
    if (name == "unit_vector") next
    places <- coordinates(name, t$value(u), u)
    derivative <- vapply(seq_along(u), function(i) {
      h <- replace(numeric(length(u)), i, 1e-5)
      # the coordinates of a simplex are its first n - 1 elements
      ((t$value(u + h) - t$value(u - h)) / 2e-5)[places]
    }, numeric(length(u)))
    # the coordinates of a zero sum are orthonormal
    scale <- if (name == "zero_sum") log(length(u) + 1) / 2 else 0
    expect_equal(t$jacobian(u, t$value(u)), log(abs(det(as.matrix(derivative)))) + scale,
                 tolerance = 1e-8, info = name)
  }
})

test_that("gradients with respect to unconstrained values", {
  for (name in names(cases)) {
    t <- cases[[name]]$transform
    u <- cases[[name]]$u
    weight <- seq_along(t$value(u)) / 3
    density <- function(u) {
      x <- t$value(u)
      with_slope(sum(sin(weight * x)) + t$jacobian(u, x), t$pull(u, x, weight * cos(weight * x)))
    }
    expect_lt(max(cl_check_gradient(density, u)$error), 1e-8)
  }
})

test_that("a wrong Jacobian or gradient would be detected", {
  t <- cl_lower(0)
  wrong <- function(u) with_slope(sum(exp(u)), t$pull(u, exp(u), 1)) # the Jacobian forgotten
  expect_gt(max(cl_check_gradient(wrong, c(0.1, 1))$error), 0.1)
})

test_that("constrained draws follow the density of the constrained parameters", {
  # gamma(3, rate 2), beta(2, 3), the largest below 1 of a triangle, Dirichlet(1, 2, 3)
  density <- function(rate, share, top, mix) {
    with_slope(2 * log(rate) - 2 * rate + log(share) + 2 * log1p(-share) + log(1 - top) +
                 sum(c(0, 1, 2) * log(mix)),
               list(rate = 2 / rate - 2, share = 1 / share - 2 / (1 - share),
                    top = -1 / (1 - top), mix = c(0, 1, 2) / mix))
  }
  init <- list(rate = 1, share = 0.5, top = 0, mix = rep(1 / 3, 3))
  transform <- list(rate = cl_lower(0), share = cl_bounds(0, 1), top = cl_bounds(-1, 1),
                    mix = cl_simplex())
  fit <- cl_sample(density, init, chains = 4, warmup = 300, iter = 600, transform = transform,
                   seed = 3)
  a <- c(1, 2, 3)
  expect_moments(fit, mean = c(1.5, 0.4, -1 / 3, a / 6),
                 sd = sqrt(c(0.75, 0.04, 2 / 9, a * (6 - a) / (36 * 7))))
  expect_equal(rowSums(as.matrix(fit)[, 4:6]), rep(1, 2400))
  expect_identical(colnames(as.matrix(fit)),
                   c("rate", "share", "top", "mix[1]", "mix[2]", "mix[3]"))
})

test_that("ordered draws of a normal density are its order statistics", {
  density <- function(x) with_slope(-sum(x^2) / 2, -x)
  fit <- quiet_sample(density, c(-1, 0, 1), chains = 4, warmup = 300, iter = 600,
                   transform = cl_ordered(), seed = 3, adapt_delta = 0.9)
  # of three: mean 3 / (2 sqrt(pi)) of the largest; variances by David and Nagaraja, table 3.2
  expect_moments(fit, mean = c(-1, 0, 1) * 1.5 / sqrt(pi), sd = sqrt(c(0.559467, 0.448671,
                                                                       0.559467)))
  expect_true(all(apply(as.matrix(fit), 1, diff) > 0))
})

test_that("draws of matrices and spheres follow the densities of their elements", {
  # flat over correlation matrices of order 3 and 4, where the elements have
  # E r = 0, E r^2 = 1 / (K + 1); over the sphere E x^2 = 1 / n; normal with sum zero
  flat <- function(R, x, z) {
    with_slope(-sum(z^2) / 2, list(R = 0 * R, x = 0 * x, z = -z))
  }
  init <- list(R = diag(4), x = c(1, 0, 0), z = c(1, -1, 0))
  transform <- list(R = cl_corr_matrix(), x = cl_unit_vector(), z = cl_zero_sum())
  fit <- quiet_sample(flat, init, chains = 2, warmup = 200, iter = full_or_quick(600, 350),
                      transform = transform, seed = 3)
  draws <- as.matrix(fit)
  r <- draws[, c("R[2,1]", "R[3,1]", "R[4,3]")]
  expect_equal(unname(colMeans(r)), c(0, 0, 0), tolerance = 0.05)
  expect_equal(unname(colMeans(r^2)), rep(0.2, 3), tolerance = 0.3)
  expect_equal(draws[, "R[1,2]"], draws[, "R[2,1]"])
  expect_true(all(draws[, "R[3,3]"] == 1))
  expect_equal(unname(colMeans(draws[, c("x[1]", "x[3]")]^2)), c(1, 1) / 3, tolerance = 0.3)
  expect_equal(unname(apply(draws[, c("z[1]", "z[3]")], 2, var)), c(2, 2) / 3, tolerance = 0.3)
  expect_lt(max(abs(rowSums(draws[, c("z[1]", "z[2]", "z[3]")]))), 1e-12)
  expect_output(print(fit), "R[2,1]", fixed = TRUE)
})

test_that("factors and covariance matrices in compiled functions", {
  # Wishart and LKJ
  f <- cl_gradient(function(S, L, a) {
    dwishart(S, 6, diag(2), log = TRUE) + dlkj(L, 3, log = TRUE) - sum(a)
  })
  init <- list(S = diag(2) * 3, L = diag(3), a = c(1, 2))
  transform <- list(S = cl_cov_matrix(), L = cl_corr_factor(), a = cl_positive_ordered())
  fit <- quiet_sample(f, init, chains = 2, warmup = 200, iter = full_or_quick(600, 350),
                      transform = transform, seed = 3)
  draws <- as.matrix(fit)
  # tolerances: five standard errors of some 500 draws
  expect_equal(unname(colMeans(draws[, 1:4])), c(6, 0, 0, 6), tolerance = 0.15)
  expect_equal(var(draws[, "S[1,1]"]), 12, tolerance = 0.5)
  expect_equal(var(draws[, "S[2,1]"]), 6, tolerance = 0.5)
  # of an LKJ density of order K, E r^2 = 1 / (2 eta + K - 1)
  expect_equal(mean(draws[, "L[2,1]"]^2), 1 / 8, tolerance = 0.3)
  expect_equal(mean((draws[, "L[2,1]"] * draws[, "L[3,1]"] +
                       draws[, "L[2,2]"] * draws[, "L[3,2]"])^2), 1 / 8, tolerance = 0.3)
  expect_true(all(draws[, "L[1,2]"] == 0 & draws[, "L[1,1]"] == 1))
  # the smaller and the difference of two exponential variables
  expect_equal(unname(colMeans(draws[, c("a[1]", "a[2]")])), c(0.5, 1.5), tolerance = 0.2)
})

test_that("unsuitable transforms are rejected", {
  expect_refused("upper", cl_upper(NA))
  run <- function(init, transform) {
    cl_sample(standard_normal, init, chains = 1, warmup = 5, iter = 5, transform = transform)
  }
  expect_refused("init", run(c(1, -1), cl_lower(0)), run(c(2, 1), cl_ordered()),
                 run(c(0.5, 0.6), cl_simplex()), run(c(1, 0, 1, 1), cl_cov_matrix()),
                 run(c(1, 2, 2, 1), cl_corr_matrix()), run(c(1, 0.5, 0, 1), cl_corr_factor()),
                 run(c(1, 1), cl_unit_vector()), run(c(1, 1), cl_zero_sum()),
                 run(c(0, 1), cl_positive_ordered()))
  expect_refused("transform", run(c(1, 1), cl_lower(c(0, 0, 0))), run(1, cl_simplex()),
                 run(1:3, cl_cov_matrix()), run(1, cl_corr_factor()), run(1, cl_unit_vector()),
                 run(c(a = 1), list(b = cl_lower(0))), run(c(a = 1), "positive"),
                 run(list(a = 1), cl_lower(0)))
  expect_output(print(cl_bounds(0, 1)), "between 0 and 1")
})

test_that("single elements of a named vector are transformed", {
  # only sd is positive; the others stay
  density <- function(x) {
    with_slope(-x[["sd"]] - x[["a"]]^2 / 2 - x[["b"]]^2 / 2, c(-x[["a"]], -1, -x[["b"]]))
  }
  fit <- cl_sample(density, c(a = 0, sd = 1, b = 0), chains = 2, warmup = 300, iter = 700,
                   transform = list(sd = cl_lower(0)), seed = 2)
  expect_moments(fit, c(0, 1, 0), c(1, 1, 1))
})
