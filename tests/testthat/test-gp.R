# The textbook in plain R: everything from one Cholesky factor. The kernel's matrices come from
# test-covariance.R's formulas by way of cl_cov() on the host, tested there.
plain_gp <- function(y, x, kernel, noise, mean = 0) {
  covariance <- function(a, b) on_host(cl_cov(a, b, kernel))
  root <- chol(covariance(x, x) + diag(noise^2, length(y)))
  solve_c <- function(b) backsolve(root, backsolve(root, b, transpose = TRUE))
  ones <- rep(1, length(y))
  if (is.character(mean)) mean <- sum(solve_c(y)) / sum(solve_c(ones))
  a <- solve_c(y - mean)
  list(mean = mean, weights = a,
       value = -sum((y - mean) * a) / 2 - sum(log(diag(root))) - length(y) * log(2 * pi) / 2,
       predict = function(at, estimated) {
         k <- covariance(at, x)
         v <- covariance(at, at) - k %*% solve_c(t(k))
         u <- drop(1 - k %*% solve_c(ones))
         if (estimated) v <- v + outer(u, u) / sum(solve_c(ones))
         list(mean = drop(mean + k %*% a), covariance = v)
       })
}

some_data <- function(n = 45, p = 2) {
  set.seed(n + p)
  x <- matrix(runif(n * p), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(5 * x[, 1]) + 0.3 * x[, p] + rnorm(n, sd = 0.1) + 2)
}

mixed_kernel <- k_exp_quad(1.2, 0.5) + k_matern32(0.4, c(0.8, 0.3)) + k_matern52(0.3, 1, "b")

test_that("the log marginal likelihood is that of plain R", {
  d <- some_data()
  par <- c(coef(mixed_kernel), noise = 0.15)
  each_engine(for (mean in list(0, 1.5, "estimate")) {
    want <- plain_gp(d$y, d$x, mixed_kernel, 0.15, mean)
    f <- cl_gp_likelihood(d$y, d$x, mixed_kernel, mean)
    got <- f(par)
    expect_equal(as.numeric(got), want$value, tolerance = 1e-11)
    expect_equal(as.numeric(f(par, gradient = FALSE)), as.numeric(got), tolerance = 1e-12)
    expect_null(attr(f(par, gradient = FALSE), "gradient"))
    if (identical(mean, "estimate")) expect_equal(attr(got, "mean"), want$mean, tolerance = 1e-10)
  })
})

test_that("its gradient is that of central differences, for each parameter", {
  d <- some_data()
  par <- c(coef(mixed_kernel), noise = 0.15)
  each_engine(for (mean in list(0.5, "estimate")) {
    f <- cl_gp_likelihood(d$y, d$x, mixed_kernel, mean)
    gradient <- attr(f(par), "gradient")
    expect_named(gradient, names(par))
    for (name in names(par)) {
      h <- 1e-4 * par[[name]]
      at <- function(by) as.numeric(f(replace(par, name, par[[name]] + by), FALSE))
      slope <- (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
      expect_equal(gradient[[name]], slope, tolerance = 1e-7, label = name)
    }
  })
})

test_that("parameters go by name or by place", {
  d <- some_data()
  f <- on_host(cl_gp_likelihood(d$y, d$x, k_matern52()))
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  expect_identical(f(rev(par)), f(par))
  expect_identical(f(unname(par)), f(par))
  expect_identical(attr(f(replace(par, "noise", 0)), "gradient")[["noise"]], 0)
  for (bad in list(par[-1], unname(par)[-1], c(a = 1, b = 1, noise = 1), "a",
                   replace(par, "sd", 0), replace(par, "lengthscale", -1),
                   replace(par, "noise", -0.1), replace(par, "noise", NA),
                   replace(par, "sd", Inf))) {
    expect_fault(f(bad), "argument", argument = "par")
  }
})

test_that("a likelihood survives a file and says where it is", {
  d <- some_data()
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  each_engine({
    f <- cl_gp_likelihood(d$y, d$x, k_matern52())
    expect_output(print(f), "45 observations, 2 columns, mean 0")
    file <- tempfile()
    saveRDS(f, file)
    again <- readRDS(file)
    expect_output(print(again), "copies the data")
    expect_identical(again(par), f(par))
  })
})

test_that("likelihoods and fits work in forked processes, on the host", {
  skip_on_os("windows")
  d <- some_data()
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  each_engine({
    f <- cl_gp_likelihood(d$y, d$x, k_matern52())
    fit <- cl_gp(d$x, d$y, starts = 1)
    want <- list(f(par), unname(predict(fit, d$x[1:3, ])))
    got <- parallel::mclapply(1:2, function(i) list(f(par), unname(predict(fit, d$x[1:3, ]))),
                              mc.cores = 2)
    for (i in 1:2) expect_equal(got[[i]], want, tolerance = 1e-10)
    expect_identical(f(par), want[[1]])
  })
})

test_that("a matrix that is not positive definite is told with its order", {
  each_engine({
    f <- cl_gp_likelihood(c(1, 2, 3), c(0, 0, 1), k_exp_quad())
    expect_fault(f(c(1, 1, 0)), "not_pd", order = 2)
    expect_true(is.finite(f(c(1, 1, 0.1))))
  })
})

test_that("bad data is refused", {
  d <- some_data()
  k <- k_exp_quad()
  each_engine({
    expect_fault(cl_gp_likelihood(d$y[-1], d$x, k), "argument", argument = "y")
    expect_fault(cl_gp_likelihood(letters, d$x, k), "argument", argument = "y")
    expect_fault(cl_gp_likelihood(numeric(), numeric(), k), "argument", argument = "y")
    expect_fault(cl_gp_likelihood(d$y, d$x, k, mean = "a"), "argument", argument = "mean")
    expect_fault(cl_gp_likelihood(d$y, d$x, k, mean = NA), "argument", argument = "mean")
    expect_fault(cl_gp_likelihood(d$y, d$x, "k"), "argument", argument = "kernel")
    expect_fault(cl_gp_likelihood(replace(d$y, 3, NA), d$x, k), "nonfinite", argument = "y",
                 index = 3)
    expect_fault(cl_gp_likelihood(d$y, replace(d$x, 50, Inf), k), "nonfinite", argument = "x",
                 index = 50)
  })
})

test_that("device memory goes back", {
  d <- some_data()
  each_engine({
    expect_no_leak(cl_gp_likelihood(d$y, d$x, k_matern52())(c(1, 1, 1)))
    expect_no_leak(try(cl_gp_likelihood(d$y, d$x, k_matern52())(c(1, 1, -1)), silent = TRUE))
    expect_no_leak(predict(cl_gp(d$x, d$y, starts = 1), d$x, se.fit = TRUE))
  })
})

test_that("a fit is a maximum, the same on each engine", {
  fit <- on_host(cl_gp(accel ~ times, data = MASS::mcycle))
  expect_true(fit$converged)
  expect_lt(max(abs(fit$gradient)), 1e-2)
  want <- plain_gp(fit$y, fit$x, fit$kernel, fit$noise, "estimate")
  expect_equal(fit$logLik, want$value, tolerance = 1e-11)
  expect_equal(fit$mean, want$mean, tolerance = 1e-9)
  expect_equal(unname(fit$residuals), fit$noise^2 * want$weights, tolerance = 1e-8)
  expect_equal(unname(predict(fit)), unname(fitted(fit)), tolerance = 1e-9)
  # from elsewhere to the same place
  far <- on_host(cl_gp(accel ~ times, data = MASS::mcycle, starts = 1,
                       start = c(sd = 200, lengthscale = 30, noise = 5)))
  expect_equal(far$logLik, fit$logLik, tolerance = 1e-7)
  each_engine({
    again <- cl_gp(accel ~ times, data = MASS::mcycle)
    expect_equal(again$logLik, fit$logLik, tolerance = 1e-9)
    expect_equal(coef(again), coef(fit), tolerance = 1e-3)
  })
})

test_that("the fit does not depend on units", {
  d <- some_data(30, 1)
  fit <- on_host(cl_gp(d$x, d$y))
  other <- on_host(cl_gp(d$x * 1e4 + 5, d$y * 1e-6 + 3))
  expect_equal(coef(other) / coef(fit) * c(1, 1, 1, 0), c(sd = 1e-6, lengthscale = 1e4,
                                                         noise = 1e-6, mean = 0), tolerance = 1e-3)
  expect_equal(other$logLik, fit$logLik + 30 * log(1e6), tolerance = 1e-8)
})

test_that("predictions are those of the textbook", {
  d <- some_data()
  at <- some_data(13)$x
  for (mean in list("estimate", 1.5)) {
    fit <- on_host(cl_gp(d$x, d$y, kernel = mixed_kernel, mean = mean, starts = 1))
    plain <- plain_gp(d$y, d$x, fit$kernel, fit$noise, mean)
    want <- plain$predict(at, is.character(mean))
    se <- sqrt(diag(want$covariance))
    each_engine({
      expect_close(predict(fit, at), want$mean, 1e-8)
      got <- predict(fit, at, se.fit = TRUE, interval = "confidence", level = 0.9, block = 5)
      expect_close(got$se.fit, se, 1e-8)
      expect_identical(got$residual.scale, fit$noise)
      expect_close(got$fit[, "upr"], want$mean + qnorm(0.95) * se, 1e-8)
      new <- predict(fit, at, interval = "prediction")
      expect_close(new[, "lwr"], want$mean - qnorm(0.975) * sqrt(se^2 + fit$noise^2), 1e-8)
      joint <- condition_gp(fit$y, fit$x, fit$kernel, fit$noise, gp_mean(fit))
      expect_close(joint$predict(unname(at), "covariance")$covariance, unname(want$covariance),
                   1e-8)
    })
  }
})

test_that("no new points, missing values and missing variables", {
  fit <- on_host(cl_gp(dist ~ speed, data = cars, starts = 1))
  each_engine({
    expect_identical(unname(predict(fit, data.frame(speed = numeric()))), numeric())
    empty <- predict(fit, cars[0, ], se.fit = TRUE, interval = "prediction")
    expect_identical(dim(empty$fit), c(0L, 3L))
    got <- predict(fit, data.frame(speed = c(10, NA, 12)))
    expect_identical(unname(is.na(got)), c(FALSE, TRUE, FALSE))
    expect_equal(got[[3]], unname(predict(fit, data.frame(speed = 12))))
  })
  expect_fault(predict(fit, data.frame(other = 1)), "argument", argument = "newdata")
  expect_fault(predict(fit, 1:3), "argument", argument = "newdata")
  expect_fault(predict(fit, data.frame(speed = "a")), "argument", argument = "newdata")
  expect_fault(predict(fit, interval = "other"), "argument", argument = "interval")
  expect_fault(predict(fit, level = 2), "argument", argument = "level")
  plain <- on_host(cl_gp(cars$speed, cars$dist, starts = 1))
  expect_fault(predict(plain, cbind(1, 2)), "argument", argument = "newdata")
  expect_equal(unname(predict(plain, 12)), unname(predict(fit, data.frame(speed = 12))))
})

test_that("formulas with factors, missing values and subsets", {
  d <- mtcars
  d$wt[3] <- NA
  d$cyl <- factor(d$cyl)
  on_host({
    fit <- cl_gp(mpg ~ wt + cyl, data = d, starts = 1, na.action = na.exclude)
    expect_identical(colnames(fit$x), c("wt", "cyl6", "cyl8"))
    expect_identical(nobs(fit), 31L)
    expect_named(coef(fit), c("sd", paste0("lengthscale.", 1:3), "noise", "mean"))
    expect_identical(which(is.na(fitted(fit))), c(`Datsun 710` = 3L))
    expect_length(residuals(fit), 32)
    expect_length(predict(fit, d[0, ]), 0)
    expect_equal(predict(fit, data.frame(wt = d$wt[1], cyl = "6"))[[1]], fitted(fit)[[1]])
    expect_fault(predict(fit, data.frame(wt = 1, cyl = "5")), "argument", argument = "newdata")
    half <- cl_gp(mpg ~ wt, data = d, subset = am == 1, starts = 1)
    expect_identical(nobs(half), sum(d$am == 1 & !is.na(d$wt)))
    iso <- cl_gp(mpg ~ wt + hp, data = mtcars, ard = FALSE, starts = 1)
    expect_named(coef(iso), c("sd", "lengthscale", "noise", "mean"))
  })
})

test_that("the usual methods", {
  on_host({
    fit <- cl_gp(dist ~ speed, data = cars)
    expect_output(print(fit), "log marginal likelihood: -213.2")
    expect_identical(formula(fit), dist ~ speed, ignore_formula_env = TRUE)
    expect_equal(unclass(logLik(fit))[1], fit$logLik)
    expect_identical(attr(logLik(fit), "df"), 4L)
    expect_equal(AIC(fit), -2 * fit$logLik + 8)
    expect_equal(unname(residuals(fit) + fitted(fit)), cars$dist)
    covariance <- vcov(fit)
    expect_true(all(diag(covariance) > 0))
    expect_identical(rownames(covariance), names(coef(fit)))
    f <- cl_gp_likelihood(cars$dist, cars$speed, k_matern52(), "estimate")
    step <- replace(numeric(3), 3, 1e-3)
    par <- coef(fit)[1:3]
    curvature <- -sum(f(par + step, FALSE), f(par - step, FALSE), -2 * f(par, FALSE)) / 1e-6
    expect_equal(solve(covariance[1:3, 1:3])[3, 3], as.numeric(curvature), tolerance = 1e-2)
    text <- capture.output(print(summary(fit)))
    expect_true(any(grepl("R squared", text)))
    expect_true(any(grepl("^lengthscale .*speed", text)))
    other <- update(fit, kernel = k_exp_quad(), starts = 1)
    expect_identical(other$kernel$terms[[1]]$type, "exp_quad")
    expect_identical(formula(update(fit, log(.) ~ ., starts = 1)), log(dist) ~ speed,
                     ignore_formula_env = TRUE)
    file <- tempfile()
    saveRDS(fit, file)
    expect_identical(predict(readRDS(file), cars), predict(fit, cars))
  })
})

test_that("fixed parameters, bounds and interpolation", {
  d <- some_data(20, 1)
  on_host({
    fit <- cl_gp(d$x, d$y, kernel = k_matern32(), fixed = c(noise = 0), starts = 1)
    expect_identical(fit$noise, 0)
    expect_identical(attr(logLik(fit), "df"), 3L)
    expect_close(unname(predict(fit, d$x)), d$y, 1e-9)
    expect_lt(max(predict(fit, d$x, se.fit = TRUE)$se.fit), 1e-5)
    expect_true(is.na(vcov(fit)["noise", "noise"]))
    bounded <- cl_gp(d$x, d$y, upper = c(lengthscale = 0.05))
    expect_identical(bounded$at_bound, "lengthscale")
    expect_equal(coef(bounded)[["lengthscale"]], 0.05)
    expect_output(print(bounded), "at a bound: lengthscale")
    known <- cl_gp(d$x, d$y, mean = 2, starts = 1)
    expect_identical(known$mean, 2)
    expect_named(coef(known), c("sd", "lengthscale", "noise"))
  })
})

test_that("steps that are not positive definite are survived and counted", {
  x <- seq(0, 1, length.out = 40)
  fit <- on_host(cl_gp(x, sin(3 * x), kernel = k_exp_quad(), fixed = c(noise = 1e-9), starts = 1,
                       start = c(lengthscale = 0.02)))
  expect_gt(fit$not_pd, 0)
  expect_true(is.finite(fit$logLik))
  expect_fault(on_host(cl_gp(c(0, 0, 1), 1:3, fixed = c(noise = 0))), "not_pd", order = 2)
})

test_that("a fit refuses what it cannot use", {
  on_host({
    expect_fault(cl_gp(1, 2), "argument", argument = "y")
    expect_fault(cl_gp(1:3, c(1, 1, 1)), "argument", argument = "y")
    expect_fault(cl_gp(c(1, Inf, 2), 1:3), "nonfinite", argument = "x", index = 2)
    expect_fault(cl_gp(1:3, c(1, NaN, 3)), "nonfinite", argument = "y", index = 2)
    expect_fault(cl_gp(dist ~ 1, cars), "argument", argument = "formula")
    expect_fault(cl_gp(~ speed, cars), "argument", argument = "formula")
    expect_fault(cl_gp(dist ~ speed + offset(speed), cars), "argument", argument = "formula")
    expect_fault(cl_gp(dist ~ speed, cars, method = "mcmc"), "argument", argument = "method")
    expect_fault(cl_gp(dist ~ speed, cars, kernel = "m"), "argument", argument = "kernel")
    expect_fault(cl_gp(dist ~ speed, cars, starts = 0), "argument", argument = "starts")
    expect_fault(cl_gp(dist ~ speed, cars, start = c(z = 1)), "argument", argument = "start")
    expect_fault(cl_gp(dist ~ speed, cars, fixed = 1), "argument", argument = "fixed")
    expect_fault(cl_gp(dist ~ speed, cars, lower = c(sd = 5), upper = c(sd = 4)), "argument",
                 argument = "lower")
    expect_fault(cl_gp(dist ~ speed, cars, fixed = c(sd = 1, lengthscale = 1, noise = 1)),
                 "argument", argument = "fixed")
    expect_fault(cl_gp(dist ~ speed, cars, foo = 1), "argument", argument = "foo")
  })
})

test_that("draws have the distribution of the predictions", {
  fit <- on_host(cl_gp(dist ~ speed, data = cars, starts = 1))
  at <- data.frame(speed = c(5, 15, 40))
  draws <- on_host(simulate(fit, 4000, seed = 1, newdata = at))
  expect_identical(dim(draws), c(3L, 4000L))
  expect_identical(draws, on_host(simulate(fit, 4000, seed = 1, newdata = at)))
  want <- on_host(predict(fit, at, se.fit = TRUE))
  expect_equal(rowMeans(draws), want$fit, tolerance = 0.05)
  expect_equal(apply(draws, 1, sd), want$se.fit, tolerance = 0.05)
  noisy <- on_host(simulate(fit, 4000, seed = 1, newdata = at, noise = TRUE))
  expect_equal(apply(noisy, 1, sd), sqrt(want$se.fit^2 + fit$noise^2), tolerance = 0.05)
})

test_that("pictures", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  on_host({
    fit <- cl_gp(dist ~ log(speed), data = cars, starts = 1)
    curve <- plot(fit, xlim = c(2, 30), n = 11)
    expect_equal(curve$x, seq(2, 30, length.out = 11))
    want <- predict(fit, data.frame(speed = curve$x), interval = "prediction")
    expect_equal(curve$upr_new, unname(want[, "upr"]))
    expect_true(all(curve$upr < curve$upr_new))
    many <- plot(cl_gp(mpg ~ wt + hp, data = mtcars, starts = 1))
    expect_named(many, c("fitted", "y"))
    expect_named(plot(cl_gp(cars$speed, cars$dist, starts = 1), legend = NULL, n = 5)[1:2],
                 c("x", "fit"))
  })
})
