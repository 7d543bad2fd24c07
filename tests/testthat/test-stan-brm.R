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
  group <- suppressWarnings(cl_brm(weight ~ Time + (1 | Chick), data = ChickWeight, chains = 1,
                                   iter = 200, seed = 1, refresh = 0))
  expect_identical(dim(brms::ranef(group)$Chick), c(50L, 4L, 1L))
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
