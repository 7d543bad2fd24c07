# Fits by Vecchia's approximation, and what it refuses.

surface <- function(n, seed = 1) {
  set.seed(seed)
  d <- data.frame(a = stats::runif(n), b = stats::runif(n))
  d$y <- sin(6 * d$a) + cos(3 * d$b) * d$a + 0.1 * stats::rnorm(n)
  d
}

test_each_engine("with all neighbours a fit is the exact one", {
  d <- surface(80L)
  exact <- cl_gp(y ~ a + b, d, k_matern32(), mean = "linear", starts = 2, method = "ml")
  near <- cl_gp(y ~ a + b, d, k_matern32(), mean = "linear", starts = 2, approx = "vecchia",
                neighbours = 79)
  expect_equal(as.numeric(logLik(near)), as.numeric(logLik(exact)), tolerance = 1e-6)
  expect_equal(near$objective, as.numeric(logLik(near)), tolerance = 1e-10)
  expect_equal(coef(near), coef(exact), tolerance = 0.02)
  near$par <- exact$par # the same parameters: the same predictions
  near$kernel <- exact$kernel
  near$noise <- exact$noise
  new <- data.frame(a = c(0.2, 0.9, NA, 1.5), b = c(0.3, 0.1, 0.5, 0.5))
  both <- lapply(list(exact, near), predict, new, interval = "prediction", se.fit = TRUE)
  expect_equal(both[[2L]]$fit[, 1L], both[[1L]]$fit[, 1L], tolerance = 0.05)
  expect_true(is.na(both[[2L]]$fit[3L, 1L]))
})

test_that("states of the approximation with all neighbours are those of the process", {
  d <- surface(60L)
  x <- as.matrix(d[c("a", "b")])
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.1)
  for (mean in list(0, "constant", "linear")) {
    for (beta in c("profile", "integrate")) {
      states <- lapply(c("none", "vecchia"), function(approx) {
        more <- if (approx == "vecchia") list(neighbours = 59)
        f <- do.call(cl_gp_likelihood, c(list(d$y, x, k_matern32(), mean = mean, beta = beta,
                                              approx = approx,
                                              weights = seq(1, 2, length.out = 60)), more))
        gp_condition(f, par)
      })
      for (part in c("value", "weights", "beta", "beta_cov")) {
        expect_equal(states[[2L]][[part]], states[[1L]][[part]], tolerance = 1e-8)
      }
      expect_equal(states[[2L]]$loo(), states[[1L]]$loo(), tolerance = 1e-8)
      new <- rbind(c(0.1, 0.2), c(2, 3))
      at <- states[[2L]]$predict(new, "variance")
      expect_equal(at$mean, states[[1L]]$predict(new)$mean, tolerance = 0.02) # 59 of 60
    }
  }
})

test_that("a fit of many rows finds the parameters, and its intervals cover", {
  d <- surface(full_or_quick(4000L, 900L))
  d$y[3L] <- NA
  fit <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 15, starts = 1)
  expect_true(fit$converged)
  expect_lt(abs(sigma(fit) - 0.1), 0.01)
  expect_identical(nobs(fit), nrow(d) - 1L)
  expect_identical(length(residuals(fit)), nrow(d) - 1L)
  new <- surface(1000L, 2)
  at <- predict(fit, new, interval = "prediction")
  expect_lt(abs(mean(new$y > at[, "lwr"] & new$y < at[, "upr"]) - 0.95), 0.03)
  expect_lt(max(abs(fitted(fit) - predict(fit))), 0.15)
  expect_output(print(fit), "Vecchia's approximation: 15 neighbours")
  expect_output(print(summary(fit)), "15 neighbours")
  expect_true(all(is.finite(confint(fit)[1:4, ])))
  again <- update(fit, refit = TRUE)
  expect_identical(again$vecchia$neighbours, 15)
  expect_lt(abs(sigma(again) - sigma(fit)), 0.003)
  held <- cl_gp(y ~ a, d, approx = "vecchia", fixed = c(sd = 1, lengthscale = 0.3, noise = 0.5))
  expect_identical(held$vecchia$scale, 1 / 0.3)
})

test_that("what is not available is refused, and bad data is named", {
  d <- surface(50L)
  x <- as.matrix(d[c("a", "b")])
  make <- function(...) cl_gp_likelihood(d$y, x, k_matern32(), ..., approx = "vecchia")
  expect_refused("neighbours", make(neighbours = 0), make(neighbours = 401))
  expect_refused("objective", make(objective = "loo"))
  for (given in 30:31) { # without the approximation, the default too
    expect_refused("neighbours", cl_gp_likelihood(d$y, x, k_matern32(), neighbours = given),
                   cl_gp(y ~ a, d, neighbours = given), cl_gp(x, d$y, neighbours = given))
  }
  expect_refused("approx", cl_gp_likelihood(d$y, x, k_matern32(), approx = "v"))
  expect_fault(cl_gp_likelihood(replace(d$y, 2, NA), x, k_matern32(), approx = "vecchia"),
               "nonfinite", argument = "y")
  expect_fault(cl_gp_likelihood(d$y, replace(x, 2, Inf), k_matern32(), approx = "vecchia"),
               "nonfinite", argument = "x")
  for (method in c("loo", "mcmc")) {
    expect_refused("method", cl_gp(y ~ a, d, method = method, approx = "vecchia"))
  }
  fit <- cl_gp(y ~ a, d, approx = "vecchia", fixed = c(sd = 1, lengthscale = 0.3, noise = 0.5))
  expect_refused("approx", predict(fit, d, covariance = TRUE), predict(fit, d, gradient = TRUE),
                 update(fit, newdata = d))
})

test_that("equal points, points on a line and extreme lengthscales", {
  each_engine({
    x <- cbind(rep(1:10, 3), 2)
    y <- sin(x[, 1L]) + rep(c(0, 0.1, 0.2), each = 10)
    f <- cl_gp_likelihood(y, x, k_matern32(), approx = "vecchia", neighbours = 29)
    exact <- cl_gp_likelihood(y, x, k_matern32())
    for (lengthscale in c(1e-8, 1e-2, 1, 1e6)) {
      par <- c(1, lengthscale, 0.3)
      expect_equal(f(par), exact(par), tolerance = 1e-7)
    }
    fault <- expect_fault(f(c(1, 1, 0)), "not_pd")
    expect_true(fault$order %in% 1:30)
    one <- cl_gp_likelihood(0.5, matrix(1), k_matern32(), approx = "vecchia")
    expect_equal(as.numeric(one(c(1, 1, 1))), stats::dnorm(0.5, 0, sqrt(2), log = TRUE))
  })
  fit <- cl_gp(matrix(1:20), sin(1:20), k_matern52(), approx = "vecchia", neighbours = 5,
               fixed = c(sd = 1, lengthscale = 2, noise = 0)) # at the observations themselves
  expect_equal(unname(predict(fit, matrix(c(3, 7)))), sin(c(3, 7)), tolerance = 1e-6)
})

test_that("duplicated points, few points and points on a line have exact predictions and draws", {
  draw_root <- function(fit, new) { # what draws are made of, from unit vectors
    state <- statcl:::gp_state(fit)
    e <- environment(state$simulate)
    n <- nobs(fit)
    all <- n + nrow(new)
    drawn <- e$e$on_handle(function(h) {
      .Call(statcl:::r_vecchia_simulate, h, e$e$layout$c, e$values, unname(new), NULL, NULL,
            cbind(0, matrix(0, n, all), sigma(fit) * diag(n)),
            cbind(0, diag(all), matrix(0, all, n)))
    })
    list(mean = drawn[, 1L], root = drawn[, -1L] - drawn[, 1L])
  }
  set.seed(3)
  cases <- list(
    twice = cbind(a = rep(stats::runif(9), 2), b = rep(stats::runif(9), 2)),
    line = cbind(a = 1:12 / 12, b = 2 + 1:12 / 6),
    ties = as.matrix(expand.grid(a = 1:4 / 4, b = 1:4 / 4)),
    one = cbind(a = 0.3, b = 0.2), two = cbind(a = c(0.1, 0.8), b = 0.5))
  for (name in names(cases)) {
    x <- cases[[name]]
    y <- sin(6 * x[, 1L]) + 0.1 * x[, 2L]
    for (lengthscale in c(1e-6, 0.4, 1e4)) {
      par <- c(sd = 1, lengthscale = lengthscale, noise = 0.3)
      fits <- lapply(c("none", "vecchia"), function(approx) {
        cl_gp(x, y, k_matern32(), mean = 0, ard = FALSE, fixed = par, approx = approx)
      })
      new <- rbind(x[1L, ], cbind(a = c(0.2, 0.9, 3), b = c(0.3, 0.1, 0)), x[1L, ])
      exact <- predict(fits[[1L]], new, covariance = TRUE, se.fit = TRUE)
      near <- predict(fits[[2L]], new, se.fit = TRUE)
      expect_equal(as.numeric(logLik(fits[[2L]])), as.numeric(logLik(fits[[1L]])),
                   tolerance = 1e-9)
      expect_equal(near$fit, exact$fit, tolerance = 1e-8)
      expect_equal(near$se.fit, exact$se.fit, tolerance = 1e-7)
      draws <- draw_root(fits[[2L]], new)
      expect_equal(draws$mean, unname(exact$fit), tolerance = 1e-6)
      expect_equal(tcrossprod(draws$root), unname(exact$covariance), tolerance = 1e-6)
      expect_true(all(is.finite(as.matrix(simulate(fits[[2L]], 3, newdata = new)))))
    }
  }
})

test_that("draws have the moments of the process, with the coefficients of the mean", {
  d <- surface(30L)
  new <- data.frame(a = c(0.1, 0.12, 0.7, 2), b = c(0.4, 0.4, 0.2, 2))
  par <- c(sd = 1, lengthscale = 0.3, noise = 0.2)
  fits <- lapply(c("none", "vecchia"), function(approx) {
    cl_gp(y ~ a + b, d, k_matern32(), mean = "linear", ard = FALSE, fixed = par, approx = approx)
  })
  for (conditional in c(TRUE, FALSE)) {
    for (noise in c(TRUE, FALSE)) {
      draws <- lapply(fits, function(fit) {
        as.matrix(simulate(fit, 4000, seed = 1, new, conditional = conditional, noise = noise))
      })
      sd <- apply(draws[[1L]], 1L, stats::sd)
      expect_lt(max(abs(rowMeans(draws[[2L]]) - rowMeans(draws[[1L]])) / sd), 0.12)
      expect_lt(max(abs(stats::cov(t(draws[[2L]])) - stats::cov(t(draws[[1L]]))) / outer(sd, sd)),
                0.15)
    }
  }
  expect_identical(simulate(fits[[2L]], 2, seed = 5, new), simulate(fits[[2L]], 2, seed = 5, new))
  expect_identical(dim(simulate(fits[[2L]], 2)), c(30L, 2L))
  expect_refused("newdata", simulate(fits[[2L]], newdata = replace(new, 1, NA)))
})

test_that("many draws close together stay finite and near the predictions", {
  n <- full_or_quick(20000L, 3000L)
  d <- surface(400L)
  set.seed(2)
  new <- data.frame(a = stats::runif(n), b = stats::runif(n))
  for (kernel in list(k_exp_quad(), k_matern32())) {
    fit <- cl_gp(y ~ a + b, d, kernel, ard = FALSE, approx = "vecchia", neighbours = 20,
                 fixed = c(sd = 1, lengthscale = 0.8, noise = 0.1))
    at <- predict(fit, new, se.fit = TRUE)
    away <- (simulate(fit, 1, seed = 3, new)[[1L]] - at$fit) / at$se.fit
    expect_lt(max(abs(away)), 8)
    expect_gt(stats::sd(away), 0.2)
  }
})

test_that("the log density comes close to the exact one", {
  skip_on_cran()
  n <- full_or_quick(3000L, 600L)
  d <- surface(n, 5)
  x <- as.matrix(d[c("a", "b")])
  exact <- cl_gp_likelihood(d$y, x, k_matern32())
  near <- cl_gp_likelihood(d$y, x, k_matern32(), approx = "vecchia", neighbours = 30)
  for (lengthscale in c(0.1, 0.5)) {
    par <- c(1, lengthscale, 0.1)
    expect_lt(abs(exact(par, FALSE) - near(par, FALSE)) / n, 0.005)
  }
})

test_that("the divergence from the process falls with the number of neighbours, to zero", {
  d <- surface(200L, 7)
  x <- as.matrix(d[c("a", "b")])
  par <- c(1, 0.3, 0.1)
  for (kernel in list(k_matern32(), k_exp_quad())) {
    # densities at 0: each conditional distribution is one of the process
    exact <- as.numeric(cl_gp_likelihood(numeric(200), x, kernel)(par, FALSE))
    divergence <- vapply(c(2, 8, 20, 60, 199), function(m) {
      near <- cl_gp_likelihood(numeric(200), x, kernel, approx = "vecchia", neighbours = m)
      exact - as.numeric(near(par, FALSE))
    }, 0)
    expect_true(all(diff(divergence) < 0))
    expect_lt(abs(divergence[5L]), 1e-7)
    expect_lt(divergence[4L], 0.01 * divergence[1L])
  }
})

test_each_engine("what is asked of a fit does not find order and neighbours again", {
  set.seed(5)
  d <- data.frame(a = runif(300), b = runif(300))
  d$y <- sin(6 * d$a) + d$b + rnorm(300, sd = 0.1)
  fit <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 8, starts = 1)
  state <- statcl:::gp_state(fit)
  expect_identical(statcl:::gp_state_likelihood(fit), state$likelihood)
  expect_true(all(is.finite(sqrt(diag(vcov(fit))))))
  predict(fit, d[1:5, ])
  expect_identical(statcl:::gp_state(fit), state)
})

test_that("the nearest rows are the first in order", {
  v <- c(3, 1, 2, 1, 5, 0, 2)
  for (k in 1:7) expect_identical(statcl:::nearest(v, k), head(order(v), k))
})

test_that("the first search of a fit runs on the host unless a device is asked for", {
  engines <- character()
  where <- asNamespace("statcl")
  suppressMessages(trace("gp_search", function() engines <<- c(engines, where$session$engine),
                         print = FALSE, where = where))
  on.exit(suppressMessages(untrace("gp_search", where = where)))
  fit <- function() {
    engines <<- character()
    cl_gp(y ~ a + b, surface(40L), k_matern32(), approx = "vecchia", neighbours = 3, starts = 1)
  }
  with_cl(fit(), engine = "auto")
  expect_identical(engines[1L], "host")
  on_device(fit())
  expect_identical(engines[1L], "device")
})
