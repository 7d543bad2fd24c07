# Printed fits and summaries, as a user reads them: the numbers of lm(), glm() and polr(), and what
# they are called.

printed <- function(x, ...) paste(capture.output(print(x, ...)), collapse = "\n")
expect_shown <- function(x, ...) {
  text <- printed(x)
  for (part in c(...)) expect_match(text, part, fixed = TRUE)
}
expect_not_shown <- function(x, ...) {
  text <- printed(x)
  for (part in c(...)) expect_no_match(text, part, fixed = TRUE)
}

set.seed(1)
d <- transform(mtcars, share = (mpg - 8) / 40, few = carb * (runif(32) > 0.4))

test_that("normal fits show what summary.lm() shows", {
  set <- list(mpg ~ wt + hp, mpg ~ wt + hp - 1)
  for (formula in set) {
    found <- summary(cl_glm(formula, d, "normal_id", weights = qsec))
    peer <- summary(lm(formula, d, weights = qsec))
    expect_equal(found$linear[c("r.squared", "adj.r.squared", "fstatistic")],
                 peer[c("r.squared", "adj.r.squared", "fstatistic")], tolerance = 1e-8)
  }
  fit <- cl_glm(mpg ~ wt + hp, d, "normal_id")
  expect_shown(summary(fit), "R-squared: 0.8268   adjusted: 0.8148\n",
               "F: 69.21 on 2 and 29 degrees of freedom   p: 9.109e-12\n")
  blocks <- cl_glm(mpg ~ wt + hp, d, "normal_id", block = 10)
  expect_shown(summary(blocks), "Fit of 4 blocks of rows", "F: 69.21 on 2 and 29")
  for (other in list(cl_glm(mpg ~ 1, d, "normal_id"), cl_glm(am ~ wt, d),
                     cl_glm(mpg ~ wt + offset(hp / 9), d, "normal_id"),
                     cl_glm(mpg ~ wt + offset(hp / 9), d, "normal_id", block = 9),
                     cl_glm(mpg ~ wt, d, "normal_id", offset = hp / 9),
                     cl_glm(mpg ~ wt, d, "normal_id", method = "map"))) {
    expect_not_shown(summary(other), "R-squared")
  }
})

test_that("quantiles of residuals are those of glm(), digit for digit", {
  peer <- glm(am ~ wt + hp, binomial, d, control = list(epsilon = 1e-14))
  want <- format(zapsmall(quantile(residuals(peer)), 5), digits = 4)
  text <- printed(summary(cl_glm(am ~ wt + hp, d)))
  expect_match(text, "Min +1Q +Median +3Q +Max *\n")
  expect_match(text, paste0("\n *", paste(trimws(want), collapse = " +"), " *\n"))
})

test_that("classes have their cuts next to the coefficients, and the class compared with", {
  housing <- MASS::housing
  ordinal <- cl_glm(Sat ~ Infl, housing, "ordered_logistic", weights = Freq)
  text <- printed(summary(ordinal))
  expect_match(text, "Coefficients:\n[^\n]*\nInflMedium[^\n]*\nInflHigh[^\n]*\n\nCuts:\n")
  expect_match(text, "Cuts:\n[^\n]*\nLow\\|Medium[^\n]*\nMedium\\|High")
  expect_length(gregexpr("Signif. codes", text)[[1]], 1)
  expect_shown(summary(cl_glm(Sat ~ 1, housing, "ordered_logistic")), "No coefficients\n\nCuts:")
  classes <- cl_glm(Sat ~ Infl, housing, "categorical_logit", weights = Freq)
  for (x in list(classes, summary(classes))) {
    expect_shown(x, "Coefficients (log odds against Low):")
  }
})

test_that("second parts have a name and a table, deviances of densities an explanation", {
  set <- list(list(few ~ wt | hp, "zero_inflated_poisson", "\nZero inflation (logit):\n"),
              list(few ~ wt | hp, "hurdle_poisson", "\nHurdle (logit of a count above 0):\n"),
              list(share ~ wt | hp, "beta", "\nPrecision (logarithm of phi):\n"))
  for (one in set) {
    fit <- cl_glm(one[[1]], d, one[[2]])
    expect_shown(fit, one[[3]])
    expect_shown(summary(fit), one[[3]], "degrees of freedom (-2 log likelihood)\n")
  }
  expect_not_shown(summary(cl_glm(am ~ wt, d)), "-2 log")
})

test_that("methods say what their numbers are", {
  quasi <- cl_glm(carb ~ wt, d, quasipoisson)
  expect_shown(quasi, "by quasi-likelihood", "\n\ndeviance: ")
  expect_not_shown(quasi, "NA")
  expect_shown(summary(cl_glm(am ~ wt, d, method = "firth")), "By Firth's penalised likelihood")
  mode <- cl_glm(am ~ wt, d, method = "map")
  for (x in list(mode, summary(mode))) {
    expect_shown(x, "log likelihood at the mode: ")
    expect_not_shown(x, "AIC")
  }
  drawn <- suppressWarnings(cl_glm(mpg ~ wt, d, "normal_id", method = "mcmc", control =
                                     list(seed = 1, chains = 2, warmup = 150, iter = 150)))
  expect_shown(drawn, "Coefficients (posterior means):", " (posterior sd ")
  expect_shown(summary(drawn), "Draws:", "ess_bulk ess_tail  rhat\n")
})

test_that("sampled fits with random effects show draws, not tests", {
  short <- list(seed = 1, chains = 2, warmup = 100, iter = 100)
  fit <- suppressWarnings(cl_glm(weight ~ Time + (1 | Chick), ChickWeight, "normal_id", "mcmc",
                                 control = short))
  expect_shown(fit, "Random effects (posterior means of variances):",
               "Fixed effects (posterior means):")
  found <- summary(fit)
  expect_identical(colnames(coef(found)), c("Estimate", "Std. Error"))
  expect_equal(found$sampling, summary(fit$draws))
  expect_shown(found, "Draws:", " 5% ", " 95% ", "sd_Chick__(Intercept)", "rhat\n")
  expect_not_shown(found, "t value", "Fixed effects")
  whole <- cl_glm(weight ~ Time + (1 | Chick), ChickWeight, "normal_id", "reml")
  expect_shown(whole, "\nrestricted log likelihood: ")
  expect_not_shown(cl_glm(weight ~ Time + (1 | Chick), ChickWeight, "normal_id"), "restricted")
})

test_that("regressions by group name their family", {
  fit <- cl_batch_glm(carb ~ wt, mtcars, group = gear, family = "poisson_log")
  expect_shown(fit, "<cl_batch_glm: poisson(log), 3 groups, 2 coefficients, 32 observations>")
  expect_shown(summary(fit), "poisson(log), 3 groups of 5 to 15 observations")
})
