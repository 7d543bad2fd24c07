# cl_brm(): a brmsfit from formulas.

test_that("the methods of brms work on the result, whose means are those of the exact posterior", {
  if (full_or_quick(FALSE, TRUE)) skip("loads brms")
  skip_if_not_installed("brms")
  fit <- suppressWarnings(cl_brm(dist ~ speed, data = cars, chains = 2, iter = 1000, seed = 1,
                                 refresh = 0))
  expect_s3_class(fit, "brmsfit")
  # flat and weak priors
  expect_equal(unname(brms::fixef(fit)[, 1]), unname(coef(lm(dist ~ speed, cars))),
               tolerance = 0.05)
  expect_identical(dim(brms::posterior_predict(fit)), c(1000L, 50L))
  expect_identical(brms::variables(fit)[1:3], c("b_Intercept", "b_speed", "sigma"))
  # what methods of brms and rstan take from the object of class "stanfit"
  expect_output(print(fit), "sampling(NUTS)", fixed = TRUE)
  expect_identical(brms::nchains(fit), 2)
  expect_identical(rstan::get_seed(fit$fit), 1L)
  means <- rstan::get_posterior_mean(fit$fit, pars = "sigma")
  draws <- brms::as_draws_array(fit, variable = "sigma")
  expect_equal(as.vector(means[, 1:2]), colMeans(draws)[, 1], ignore_attr = TRUE)
  group <- suppressWarnings(cl_brm(weight ~ Time + (1 | Chick), data = ChickWeight, chains = 1,
                                   iter = 200, seed = 1, refresh = 0))
  expect_identical(dim(brms::ranef(group)$Chick), c(50L, 4L, 1L))
})

test_that("methods on ordinal, multivariate, censored and zero-inflated models", {
  if (full_or_quick(FALSE, TRUE)) skip("loads brms")
  skip_if_not_installed("brms")
  set.seed(1)
  d <- data.frame(x = rnorm(60), f = c("a", "b"), g = factor(rep(1:6, 10)),
                  c = c("none", "right", "left"))
  d$o <- cut(rnorm(60) + d$x, c(-Inf, -1, 1, Inf), labels = FALSE)
  d[c("y", "z", "t")] <- list(rnorm(60, d$x), rnorm(60), rexp(60) + 0.1)
  d$k <- rpois(60, 2) * rbinom(60, 1, 0.6)
  fit <- function(formula, ...) {
    suppressWarnings(cl_brm(formula, d, ..., chains = 1, iter = 40, seed = 1, refresh = 0))
  }
  fits <- list(
    fit(o ~ x + f + (1 | g), family = brms::cumulative()),
    fit(brms::bf(brms::mvbind(y, z) ~ x + f + (1 | p | g)) + brms::set_rescor(TRUE)),
    fit(t | cens(c) ~ x + f + (1 | g), family = brms::brmsfamily("weibull")),
    fit(brms::bf(k ~ x + f + (1 | g), zi ~ f), family = brms::zero_inflated_poisson()))
  further <- list(3L, 2L, NULL, NULL) # categories, responses
  for (i in 1:4) {
    expect_identical(dim(brms::posterior_epred(fits[[i]])), c(20L, 60L, further[[i]]))
    expect_identical(dim(brms::log_lik(fits[[i]])), c(20L, 60L))
    expect_identical(dim(fitted(fits[[i]])), c(60L, 4L, further[[i]]))
    expect_identical(nrow(brms::VarCorr(fits[[i]])$g$sd), if (i == 2L) 2L else 1L)
    expect_length(brms::rhat(fits[[i]]), length(brms::variables(fits[[i]])))
    effects <- suppressWarnings(brms::conditional_effects(fits[[i]], "f", resp = if (i == 2L) "y"))
    expect_identical(nrow(effects[[1]]), 2L)
  }
  bars <- suppressMessages(brms::pp_check(fits[[1]], type = "bars", ndraws = 5))
  expect_s3_class(bars, "ggplot")
  expect_identical(rownames(brms::fixef(fits[[4]])), c("Intercept", "zi_Intercept", "x", "fb",
                                                       "zi_fb"))
})

test_that("starts and processes are chosen as in brm(), and what is unknown is refused", {
  expect_identical(brm_start("random", 2)$start, "random")
  expect_identical(brm_start("0", 2), list(init = c(0, 0), jitter = 0, start = "init"))
  expect_identical(brm_start(0.5, 2)$jitter, 0.5)
  expect_identical(brm_start(function() list(a = 1), 1)$init(2), list(a = 1))
  expect_fault(brm_start(TRUE, 1), "argument", argument = "init")
  expect_identical(brm_control(NULL), list(adapt_delta = 0.8, max_treedepth = 10))
  expect_fault(brm_control(list(0.9)), "argument", argument = "control")
  for (name in names(brm_refused)) {
    expect_fault(do.call(cl_brm, stats::setNames(list(dist ~ speed, cars, 1), c("", "", name))),
                 "argument", argument = name)
  }
  if (full_or_quick(FALSE, TRUE)) skip("loads brms")
  skip_if_not_installed("brms")
  far <- list(list(Intercept = 5000, b = 4, sigma = 1), list(Intercept = -5000, b = 4, sigma = 1))
  fit <- suppressWarnings(cl_brm(dist ~ speed, cars, init = far, chains = 2, cores = 2, iter = 2,
                                 warmup = 1, seed = NA, refresh = 0))
  expect_true(all(as.array(fit)[1, , "b_Intercept"] * c(1, -1) > 1000))
  infinite <- expect_fault(cl_brm(dist ~ speed, replace(cars, 1, Inf), chains = 1), "density")
  expect_match(conditionMessage(infinite), "init = 0", fixed = TRUE)
  expect_fault(cl_brm(dist ~ speed, cars, colour = 1), "argument", argument = "colour")
  expect_fault(cl_brm(dist ~ speed, cars, cores = 0), "argument", argument = "cores")
})

test_that("update() samples here, with the arguments and the control of the fit", {
  if (full_or_quick(FALSE, TRUE)) skip("loads brms")
  skip_if_not_installed("brms")
  fit <- suppressWarnings(cl_brm(dist ~ speed, cars, stats::gaussian(), # by position, as in brm()
                                 prior = brms::set_prior("normal(0, 5)"), chains = 2, iter = 60,
                                 thin = 2, seed = 1, refresh = 0,
                                 control = list(adapt_delta = 0.9, max_treedepth = 6)))
  expect_identical(brms::control_params(fit), list(adapt_delta = 0.9, max_treedepth = 6))
  expect_identical(c(brms::ndraws(fit), nrow(as.matrix(fit))), c(30, 30))
  again <- suppressWarnings(stats::update(fit, seed = 1, refresh = 0))
  expect_identical(as.matrix(again), as.matrix(fit))
  less <- suppressWarnings(stats::update(fit, formula. = . ~ 1, newdata = cars[1:20, ], chains = 1,
                                         iter = 20, thin = 1, refresh = 0))
  expect_identical(c(stats::nobs(less), brms::ndraws(less)), c(20, 10))
  expect_identical(rownames(brms::fixef(less)), "Intercept")
  expect_identical(brms::control_params(less), brms::control_params(fit))
  folds <- suppressWarnings(brms::kfold(again, K = 2, chains = 1, iter = 20, refresh = 0))
  expect_s3_class(folds, "kfold")
  expect_fault(stats::update(fit, colour = 1), "argument", argument = "colour")
  expect_fault(stats::update(fit, backend = "rstan"), "argument", argument = "backend")
})
