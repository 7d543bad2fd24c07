
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
  simplex_two = list(transform = cl_simplex(), u = 0.7))

test_that("values are inside, and free() is their inverse", {
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
    derivative <- vapply(seq_along(u), function(i) {
      h <- replace(numeric(length(u)), i, 1e-5)
      # of a simplex, the first n - 1 entries are the coordinates
      ((t$value(u + h) - t$value(u - h)) / 2e-5)[seq_along(u)]
    }, numeric(length(u)))
    expect_equal(t$jacobian(u, t$value(u)), log(abs(det(as.matrix(derivative)))),
                 tolerance = 1e-8, info = name)
  }
})

test_that("gradients go through transforms", {
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

test_that("a Jacobian or a gradient that is wrong would be seen", {
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

test_that("transforms that do not fit are refused", {
  expect_fault(cl_lower("a"), "argument", argument = "lower")
  expect_fault(cl_lower(Inf), "argument", argument = "lower")
  expect_fault(cl_upper(NA), "argument", argument = "upper")
  expect_fault(cl_bounds(2, 1), "argument", argument = "upper")
  expect_fault(cl_bounds(c(0, 1, 2), c(4, 5)), "argument", argument = "upper")
  expect_fault(cl_bounds(c(0, -Inf), 1), "argument", argument = "lower")
  run <- function(init, transform) {
    cl_sample(standard_normal, init, chains = 1, warmup = 5, iter = 5, transform = transform)
  }
  expect_fault(run(c(1, -1), cl_lower(0)), "argument", argument = "init")
  expect_fault(run(c(2, 1), cl_ordered()), "argument", argument = "init")
  expect_fault(run(c(0.5, 0.6), cl_simplex()), "argument", argument = "init")
  expect_fault(run(c(1, 1), cl_lower(c(0, 0, 0))), "argument", argument = "transform")
  expect_fault(run(1, cl_simplex()), "argument", argument = "transform")
  expect_fault(run(c(a = 1), list(b = cl_lower(0))), "argument", argument = "transform")
  expect_fault(run(c(a = 1), "positive"), "argument", argument = "transform")
  expect_fault(run(list(a = 1), cl_lower(0)), "argument", argument = "transform")
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
