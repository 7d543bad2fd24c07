# Methods of a fitted process: summaries, updates with more data, saving.

test_on_host("the usual methods", {
  fit <- cl_gp(dist ~ speed, data = cars, method = "ml")
  expect_output(print(fit), "log marginal likelihood: -213.2")
  expect_identical(formula(fit), dist ~ speed, ignore_formula_env = TRUE)
  expect_equal(unclass(logLik(fit))[1], fit$logLik)
  expect_identical(attr(logLik(fit), "df"), 4L)
  expect_equal(AIC(fit), -2 * fit$logLik + 8)
  expect_identical(sigma(fit), fit$noise)
  expect_identical(nobs(fit), 50L)
  expect_null(weights(fit))
  expect_equal(unname(residuals(fit) + fitted(fit)), cars$dist)
  covariance <- vcov(fit)
  expect_true(all(diag(covariance) > 0))
  expect_identical(rownames(covariance), names(coef(fit)))
  f <- cl_gp_likelihood(cars$dist, cars$speed, k_matern52(), "estimate")
  step <- replace(numeric(3), 3, 1e-3)
  par <- coef(fit)[1:3]
  curvature <- -sum(f(par + step, FALSE), f(par - step, FALSE), -2 * f(par, FALSE)) / 1e-6
  expect_equal(solve(covariance[1:3, 1:3])[3, 3], as.numeric(curvature), tolerance = 1e-2)
  intervals <- confint(fit, level = 0.9)
  expect_identical(colnames(intervals), c("5 %", "95 %"))
  expect_equal(log(intervals["noise", ]), log(fit$noise) + c(-1, 1) * qnorm(0.95) *
                 sqrt(covariance["noise", "noise"]) / fit$noise, ignore_attr = TRUE)
  expect_equal(mean(intervals["mean", ]), fit$mean)
  expect_identical(rownames(confint(fit, c("noise", "mean"))), c("noise", "mean"))
  expect_refused("parm", confint(fit, "foo"))
  text <- capture.output(print(summary(fit)))
  expect_true(any(grepl("R squared", text)))
  expect_true(any(grepl("leave-one-out: rmse", text)))
  expect_true(any(grepl("^lengthscale .*speed", text)))
})

test_each_engine("a fit can be saved and restored", {
  fit <- cl_gp(mpg ~ wt, data = mtcars, mean = ~hp, starts = 1, method = "ml")
  want <- predict(fit, mtcars, se.fit = TRUE)
  file <- tempfile()
  saveRDS(fit, file)
  gp_states$list <- list() # as in another session
  again <- readRDS(file)
  expect_identical(predict(again, mtcars, se.fit = TRUE), want)
  expect_identical(confint(again), confint(fit))
  expect_equal(residuals(again, "loo"), residuals(fit, "loo"))
  expect_output(print(again), "Gaussian process, 32 observations")
  # it contains nothing of size n^2
  d <- some_data(200, 1)
  saveRDS(cl_gp(d$x, d$y, fixed = c(sd = 1, lengthscale = 0.3, noise = 0.1), method = "ml"), file)
  expect_lt(file.size(file), 8 * 200^2 / 5)
})

test_that("the session caches a bounded number of states", {
  gp_states$list <- list()
  fits <- on_host(lapply(1:10, function(i) cl_gp(mtcars$wt + i, mtcars$mpg, starts = 1,
                                                 method = "ml")))
  expect_lte(length(gp_states$list), 8L)
  for (fit in fits) expect_equal(unname(on_host(predict(fit)[1])), fit$fitted.values[[1]])
  # a fit that was changed by hand does not use another fit's state
  changed <- fits[[10]]
  changed$par["noise"] <- 10
  expect_gt(abs(on_host(predict(changed))[[1]] - predict(fits[[10]])[[1]]), 0.01)
  gp_states$list <- list()
})

test_on_host("update() evaluates the call again", {
  fit <- cl_gp(dist ~ speed, data = cars, starts = 1, method = "ml")
  other <- update(fit, kernel = k_exp_quad(), starts = 1)
  expect_identical(other$kernel$terms[[1]]$type, "exp_quad")
  expect_identical(formula(update(fit, log(.) ~ ., starts = 1)), log(dist) ~ speed,
                   ignore_formula_env = TRUE)
  expect_identical(update(fit, starts = 2, evaluate = FALSE)$starts, 2)
  weighted <- update(fit, weights = rep(2, 50))
  expect_identical(unname(weights(weighted)), rep(2, 50))
})

test_that("adding observations gives the fit to all of them", {
  d <- data.frame(mtcars, w = rep(1:2, 16), v = 0.1, group = factor(mtcars$cyl))
  each_engine({
    for (mean in list("estimate", 3, "linear", ~ hp + group)) {
      few <- cl_gp(mpg ~ wt + group, data = d[1:25, ], mean = mean, starts = 1, method = "ml")
      whole <- suppressWarnings(cl_gp(mpg ~ wt + group, data = d, mean = mean, fixed = few$par,
                                      method = "ml"))
      more <- update(few, newdata = d[26:32, ])
      expect_identical(nobs(more), 32L)
      expect_equal(more$logLik, whole$logLik, tolerance = 1e-9)
      expect_equal(coef(more), coef(whole), tolerance = 1e-7)
      expect_equal(fitted(more), fitted(whole), tolerance = 1e-8)
      expect_equal(residuals(more, "loo"), residuals(whole, "loo"), tolerance = 1e-7)
      at <- d[c(3, 9, 30), ]
      expect_equal(predict(more, at, interval = "prediction"),
                   predict(whole, at, interval = "prediction"), tolerance = 1e-8)
      # after reading from a file the whole matrix is factored again
      file <- tempfile()
      saveRDS(more, file)
      gp_states$list <- list()
      expect_equal(predict(readRDS(file), at), predict(whole, at), tolerance = 1e-8)
    }
    noisy <- cl_gp(mpg ~ wt, data = d[1:25, ], weights = w, variance = v, starts = 1, method = "ml")
    more <- update(noisy, newdata = d[26:32, ])
    whole <- cl_gp(mpg ~ wt, data = d, weights = w, variance = v, fixed = noisy$par, method = "ml")
    expect_equal(more$logLik, whole$logLik, tolerance = 1e-9)
    expect_equal(fitted(more), fitted(whole), tolerance = 1e-8)
  })
  on_host({
    again <- update(few, newdata = d[26:32, ], refit = TRUE)
    expect_identical(nobs(again), 32L)
    expect_gte(again$logLik, more$logLik)
    expect_named(coef(again), names(coef(few)))
    plain <- cl_gp(cars$speed[1:40], cars$dist[1:40], starts = 1, method = "ml")
    longer <- update(plain, newdata = cars$speed[41:50], y = cars$dist[41:50])
    expect_equal(longer$logLik, cl_gp(cars$speed, cars$dist, fixed = plain$par,
                                      method = "ml")$logLik,
                 tolerance = 1e-9)
    expect_output(print(longer), "10 added by update")
    expect_identical(nobs(update(longer, newdata = 3, y = 4)), 51L)
    expect_refused("object", update(longer, starts = 1))
    expect_refused("y", update(plain, newdata = 1:2, y = 1), update(plain, newdata = 1:2))
    expect_fault(update(plain, newdata = 1, y = Inf), "nonfinite")
    expect_refused("newdata", update(noisy, newdata = d[1, -match("w", names(d))], weights = NULL))
    expect_identical(nobs(update(few, newdata = d[0, ])), 25L)
  })
})

test_that("fits work in forked processes, on the host", {
  skip_on_os("windows")
  d <- some_data()
  each_engine({
    fit <- cl_gp(d$x, d$y, starts = 1, method = "ml")
    want <- unname(predict(fit, d$x[1:3, ]))
    got <- parallel::mclapply(1:2, function(i) unname(predict(fit, d$x[1:3, ])), mc.cores = 2)
    for (i in 1:2) expect_equal(got[[i]], want, tolerance = 1e-10)
  })
})

gp_states$list <- list()

# ---- what a mean and new observations bring along ------------------------------------------------

test_that("a mean with parameters computed from the data predicts with these", {
  set.seed(3)
  x <- cbind(time = 1:30)
  y <- sin(x[, 1] / 4) + rnorm(30, sd = 0.1)
  held <- c(sd = 1, lengthscale = 4, noise = 0.1)
  by_matrix <- cl_gp(x, y, mean = ~ poly(time, 2), fixed = held, method = "ml")
  by_formula <- cl_gp(y ~ time, data.frame(x, y), mean = ~ poly(time, 2), fixed = held,
                      method = "ml")
  new <- cbind(time = 28:35)
  expect_equal(unname(predict(by_matrix, new)), unname(predict(by_formula, data.frame(new))))
  longer <- update(by_matrix, newdata = cbind(time = 31:32), y = c(1, 1))
  expect_equal(unname(predict(longer, new)),
               unname(predict(update(by_formula, newdata = data.frame(time = 31:32, y = 1)),
                              data.frame(new))))
})

test_that("refitting keeps the priors, and new rows work with kernels of some columns", {
  prior <- list(lengthscale = prior_inv_gamma(tails = c(2, 40)))
  fit <- cl_gp(dist ~ speed, cars, method = "map", prior = prior, starts = 1)
  expect_equal(coef(update(fit, refit = TRUE)), coef(fit), tolerance = 1e-3)
  fit <- cl_gp(dist ~ speed, cars[1:45, ], kernel = k_exp_quad(columns = "speed"),
               fixed = c(sd = 20, lengthscale = 5, noise = 15), method = "ml")
  more <- update(fit, newdata = cars[46:50, ])
  all <- cl_gp(dist ~ speed, cars, kernel = k_exp_quad(columns = "speed"),
               fixed = c(sd = 20, lengthscale = 5, noise = 15), method = "ml")
  expect_equal(predict(more, cars[3:4, ]), predict(all, cars[3:4, ]))
})

test_that("coefficients have their names, offsets are rejected, given weights suffice", {
  set.seed(4)
  d <- data.frame(noise = runif(20), w = 1)
  d$y <- 2 * d$noise + rnorm(20, sd = 0.1)
  held <- c(sd = 1, lengthscale = 1, noise = 0.1)
  fit <- cl_gp(y ~ noise, d, mean = "linear", fixed = held, method = "ml")
  expect_identical(anyDuplicated(names(coef(fit))), 0L)
  expect_true("mean.noise" %in% names(coef(fit)))
  expect_output(print(summary(fit)), "mean.noise")
  expect_error(cl_gp(y ~ w, d, mean = ~ offset(2 * w)), class = "statcl_error_argument")
  weighted <- cl_gp(y ~ noise, d, weights = w, fixed = held, method = "ml")
  expect_identical(nobs(update(weighted, newdata = d[1:2, c("y", "noise")], weights = c(1, 1))),
                   22L)
  expect_s3_class(cl_gp(dist ~ speed, cars, method = "map",
                        fixed = c(sd = 20, lengthscale = 5, noise = 15)), "cl_gp")
})

test_on_host("tests, criteria, inputs and standardised residuals", {
  big <- cl_gp(mpg ~ wt + hp, mtcars, starts = 1, method = "ml")
  small <- cl_gp(mpg ~ wt, mtcars, starts = 1, method = "ml")
  table <- anova(small, big)
  expect_equal(table$Chisq[2L], 2 * (big$logLik - small$logLik))
  expect_equal(table[["Pr(>Chisq)"]][2L], pchisq(table$Chisq[2L], 1, lower.tail = FALSE))
  expect_output(print(table), "Likelihood ratio tests")
  expect_refused("...", anova(big), anova(big, cl_gp(mpg ~ wt, mtcars[-1, ], starts = 1)))
  expect_equal(drop1(big)["hp", "AIC"], AIC(small))
  expect_identical(rstandard(big), residuals(big, "standardized"))
  expect_identical(model.matrix(big), big$x)
  expect_equal(model.matrix(small, "mean"),
               matrix(1, 32, 1, dimnames = list(rownames(mtcars), "mean")))
  reml <- cl_gp(mpg ~ wt, mtcars, beta = "integrate", starts = 1, method = "ml")
  linear <- cl_gp(mpg ~ wt, mtcars, beta = "integrate", mean = ~., starts = 1, method = "ml")
  expect_identical(linear$trend$names, c("(Intercept)", "wt"))
  expect_warning(AIC(reml, linear), class = "statcl_warning_means")
  expect_warning(BIC(reml, small), class = "statcl_warning_means")
  same <- reml
  expect_silent(AIC(reml, same))
  new <- mtcars[1:2, ]
  expect_identical(predict(small, new, interval = "pred"),
                   predict(small, new, interval = "prediction"))
  by_matrix <- cl_gp(as.matrix(mtcars[c("wt", "hp")]), mtcars$mpg, mean = ~., starts = 1,
                     method = "ml")
  expect_identical(by_matrix$trend$names, c("(Intercept)", "wt", "hp"))
})

test_on_host("scales whose squares overflow, and noise that collapses", {
  for (by in c(1e-200, 1e155)) expect_refused("y", cl_gp(cars$speed, cars$dist * by))
  set.seed(3)
  x <- matrix(runif(100), 20)
  expect_warning(fit <- cl_gp(x, sin(3 * x[, 1]) * x[, 2], kernel = k_exp_quad(), method = "ml"),
                 class = "statcl_warning_noise")
  expect_true(fit$converged)
  y <- x[, 1] + x[, 2] * x[, 3] + rnorm(20, sd = 0.1)
  expect_gt(cl_gp(x, y, method = "map")$noise, 0.02 * sd(y))
})
