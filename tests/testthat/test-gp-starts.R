# Where searches of cl_gp() start, and what they find.

skip_on_cran()

test_that("periods are found from the data, in any unit and order", {
  t <- 1:144
  y <- as.vector(log(AirPassengers))
  near <- function(found, period) any(abs(found / period - 1) < 0.05)
  expect_true(near(find_periods(t, y), 12))
  expect_true(near(find_periods(rev(t) / 12 + 1949, rev(y)), 1))
  set.seed(1)
  u <- sort(runif(300, 0, 50))
  expect_true(near(find_periods(u, sin(2 * pi * u / 3.7) + rnorm(300, sd = 0.5)), 3.7))
  expect_null(find_periods(1:5, 1:5 / 2))
  expect_null(find_periods(rep(1, 20), 1:20))
  expect_true(all(is.finite(find_periods(c(1:20, 1e9), sin(1:21)))))
})

test_on_host("short lengthscales and seasons are found", {
  d <- data.frame(t = 1700:1988, y = as.vector(sunspot.year))
  expect_gt(cl_gp(sqrt(y) ~ t, d, kernel = k_exp_quad(), method = "ml")$logLik, -469.9)
  air <- data.frame(t = 1:144, y = as.vector(log(AirPassengers)))
  fit <- cl_gp(y ~ t, air, kernel = k_periodic() * k_exp_quad() + k_matern32(), method = "ml")
  expect_gt(fit$logLik, 257.9)
  expect_equal(coef(fit)[["period1"]], 12, tolerance = 0.01)
})

test_that("a period is at least two steps of inputs with equal steps", {
  on_host({
    kernel <- k_periodic() * k_exp_quad() + k_matern32()
    d <- data.frame(t = 1:192, y = as.vector(log(UKDriverDeaths)))
    fit <- cl_gp(y ~ t, d, kernel, method = "ml") # 12 / 11 and 12 have the same likelihood
    expect_equal(coef(fit)[["period1"]], 12, tolerance = 0.01)
    months <- data.frame(t = as.vector(time(ldeaths)), y = as.vector(log(ldeaths)))
    fit <- cl_gp(y ~ t, months[-c(5, 6, 20), ], kernel, fixed = c(noise = 0.05), method = "ml")
    expect_equal(coef(fit)[["period1"]], 1, tolerance = 0.02)
  })
  least <- function(t, given = 1) least_period(cbind(0, t), 2L, diff(range(t)), given)
  expect_equal(least(c(9, 3, 1:30) / 7), 2 / 7)
  expect_equal(least(1:30, 0.5), 0.029) # it was asked for
  expect_equal(least(1:30, 7), 2)
  expect_equal(least(c(0, sqrt(1:30))), 1e-3 * sqrt(30))
  expect_equal(least_period(cbind(1:9, 1:9), 1:2, 8, 1), 0.008)
  expect_equal(least_period(cbind(rep(2, 5)), 1L, 1, 1), 1e-3)
})

# The weight of a wing (Forrester, Sobester and Keane, 2008) at points in the unit cube.
wing_weight <- function(u) {
  low <- c(150, 220, 6, -10, 16, 0.5, 0.08, 2.5, 1700, 0.025)
  high <- c(200, 300, 10, 10, 45, 1, 0.18, 6, 2500, 0.08)
  x <- sweep(sweep(u, 2L, high - low, `*`), 2L, low, `+`)
  angle <- cos(x[, 4] * pi / 180)
  0.036 * x[, 1]^0.758 * x[, 2]^0.0035 * (x[, 3] / angle^2)^0.6 * x[, 5]^0.006 * x[, 6]^0.04 *
    (100 * x[, 7] / angle)^-0.3 * (x[, 8] * x[, 9])^0.49 + x[, 1] * x[, 10]
}

test_on_host("optima of many inputs are found, and bounds do not bind on smooth functions", {
  set.seed(1)
  x <- matrix(runif(400), 40)
  y <- wing_weight(x)
  fit <- cl_gp(x, y, fixed = c(noise = 1e-4 * sd(y)), method = "ml")
  expect_gt(fit$logLik, -123.2) # the best of 200 restarts; elsewhere -124.70
  # inputs without effect are at a bound, and the others have standard errors; with less noise the
  # second derivatives, from differences, are hardly more than their rounding
  y <- sin(3 * x[, 1]) + x[, 2]^2
  x <- x[, 1:6]
  fit <- cl_gp(x, y, fixed = c(noise = 1e-2 * sd(y)), method = "ml")
  expect_true(all(paste0("lengthscale.", 3:6) %in% fit$at_bound))
  expect_false(anyNA(sqrt(diag(vcov(fit)))[c("lengthscale.1", "lengthscale.2")]))
})

test_that("fits find the best known optima of real data", {
  skip_if(full_or_quick(FALSE, TRUE), "long")
  script <- test_path("..", "..", "bench", "gp-optima.R")
  skip_if_not(file.exists(script), "the sources are not here")
  out <- system2(file.path(R.home("bin"), "Rscript"), c(script, "0.3"), stdout = TRUE)
  counts <- as.numeric(strsplit(gsub("[^0-9. ]", "", out[length(out)]), " +")[[1L]])
  expect_lte(counts[2L] / counts[1L], 0.1)
})

test_that("second derivatives are learnt from the gradients of a search", {
  truth <- matrix(c(4, 1, 1, 0.5), 2)
  quadratic <- list(gradient = function(at) as.vector(truth %*% at))
  learnt <- learnt_curvature(quadratic, diag(c(1, 0.5)))
  at <- rbind(c(2, -1), c(1, 1), c(0.5, -0.3))
  expect_identical(learnt(at[1L, ]), diag(c(1, 0.5)))
  for (i in 2:3) {
    h <- learnt(at[i, ])
    step <- at[i, ] - at[i - 1L, ]
    expect_equal(as.vector(h %*% step), as.vector(truth %*% step), tolerance = 1e-12)
    expect_true(all(eigen(h, TRUE)$values > 0))
  }
  # downwards curvature: what is learnt stays positive
  saddle <- learnt_curvature(list(gradient = function(at) c(-1, 1) * at), diag(2))
  saddle(c(0, 0))
  expect_true(all(eigen(saddle(c(1, 0.2)), TRUE)$values > 0))
})

gp_states$list <- list()
