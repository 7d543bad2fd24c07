# glm(method = cl_glm_fit): the objects of glm().

exact <- list(epsilon = 1e-14, maxit = 50) # glm() to the last digit

# `digits` of the covariance matrix, which glm() computes one step before the last.
expect_same_glm <- function(formula, family, data, ..., digits = 1e-7) {
  call <- list(formula, family, data, ...)
  if (family$family != "gaussian") call$control <- exact
  ours <- do.call(glm, c(call, method = list(cl_glm_fit)), quote = TRUE)
  rs <- do.call(glm, call, quote = TRUE)
  expect_s3_class(ours, "glm")
  expect_setequal(setdiff(names(ours), "iter"), setdiff(names(rs), "iter"))
  for (part in c("coefficients", "residuals", "fitted.values", "rank", "linear.predictors",
                 "deviance", "aic", "null.deviance", "weights", "prior.weights", "df.residual",
                 "df.null", "y", "converged", "boundary")) {
    expect_equal(ours[[part]], rs[[part]], tolerance = 1e-7, label = part)
  }
  expect_equal(coef(summary(ours)), coef(summary(rs)), tolerance = digits)
  expect_equal(vcov(ours), vcov(rs), tolerance = digits)
  expect_equal(hatvalues(ours), hatvalues(rs), tolerance = 1e-6)
  first <- seq_len(rs$rank) # the others are rotated residuals
  expect_equal(abs(ours$effects[first]), abs(rs$effects[first]), tolerance = 1e-5)
  expect_equal(anova(ours, test = "LRT")$`Pr(>Chi)`, anova(rs, test = "LRT")$`Pr(>Chi)`,
               tolerance = 1e-6)
  se <- function(fit) predict(fit, type = "response", se.fit = TRUE)[1:2]
  expect_equal(se(ours), se(rs), tolerance = 1e-6)
}

test_on_host("the object is that of glm()", {
  cars <- cbind(mtcars, times = rep(c(1, 2, 0, 3), 8))
  expect_same_glm(am ~ wt, binomial(), cars)
  expect_same_glm(cbind(ncases, ncontrols) ~ agegp, binomial(), esoph)
  expect_same_glm(carb ~ factor(cyl) + wt, poisson(), cars, weights = cars$times,
                  offset = log(cars$disp))
  expect_same_glm(mpg ~ wt + I(2 * wt) + qsec, gaussian(), cars, weights = cars$cyl)
  expect_same_glm(mpg ~ 0 + wt, gaussian(), cars)
  expect_same_glm(cbind(ncases, ncontrols) ~ agegp, binomial("probit"), esoph, digits = 1e-6)
  expect_same_glm(mpg ~ wt + qsec, Gamma("log"), cars, weights = cars$times + 0.5)
  expect_same_glm(carb ~ wt, quasipoisson(), cars, offset = log(cars$disp))
})

test_that("the fit is that of glm() on a device", {
  on_device(expect_same_glm(am ~ wt, binomial(), mtcars))
})

test_that("what the method does not fit is refused", {
  expect_refused("y", glm(I(-mpg) ~ wt, Gamma(), mtcars, method = cl_glm_fit))
  expect_fault(glm(mpg ~ wt + I(2 * wt), gaussian(), mtcars, method = cl_glm_fit,
                   singular.ok = FALSE), "argument", argument = "x")
})
