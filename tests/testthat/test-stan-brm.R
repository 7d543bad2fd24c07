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
