# Fits in other packages, next to those of glm() there.

exact <- list(epsilon = 1e-15, maxit = 50) # glm() to the last digit
ours <- function(formula, data, family, ...) cl_glm(formula, data = data, family = family, ...)
like_glm <- function(x) {
  x <- as.data.frame(x)
  attributes(x) <- attributes(x)[c("names", "row.names", "class")]
  x
}

test_that("broom's tables are those of glm()", {
  skip_if_not_installed("broom")
  a <- ours(case ~ spontaneous + age, infert, "bernoulli_logit")
  b <- glm(case ~ spontaneous + age, data = infert, family = binomial, control = exact)
  expect_equal(like_glm(broom::tidy(a)), like_glm(broom::tidy(b)), tolerance = 1e-6)
  expect_equal(
    like_glm(broom::tidy(a, conf.int = TRUE, exponentiate = TRUE, method = "profile")),
    like_glm(suppressMessages(broom::tidy(b, conf.int = TRUE, exponentiate = TRUE))),
    tolerance = 1e-3) # limits of glm() are interpolated
  shared <- c("null.deviance", "df.null", "logLik", "AIC", "BIC", "deviance", "df.residual", "nobs")
  expect_equal(as.list(broom::glance(a))[shared], lapply(as.list(broom::glance(b))[shared], c),
               tolerance = 1e-6, ignore_attr = TRUE)
  expect_equal(like_glm(broom::augment(a, se_fit = TRUE)),
               like_glm(broom::augment(b, se_fit = TRUE)), tolerance = 1e-6)
  expect_equal(like_glm(broom::augment(a, newdata = infert[1:3, ], type.predict = "response")),
               like_glm(broom::augment(b, newdata = infert[1:3, ], type.predict = "response")),
               tolerance = 1e-6)
})

test_that("tidy() names classes and cuts", {
  skip_if_not_installed("generics")
  classes <- generics::tidy(ours(factor(gear) ~ wt, mtcars, "categorical_logit"))
  expect_equal(classes$y.level, rep(c("4", "5"), each = 2))
  expect_equal(classes$term, rep(c("(Intercept)", "wt"), 2))
  cuts <- generics::tidy(ours(factor(gear) ~ wt, mtcars, "ordered_logistic"))
  expect_equal(cuts$coef.type, c("coefficient", "scale", "scale"))
  expect_refused("x", generics::augment(ours(factor(gear) ~ wt, mtcars, "categorical_logit")))
})

test_that("sandwich estimates are those of glm() and lm()", {
  skip_if_not_installed("sandwich")
  pairs <- list(
    list(ours(am ~ wt + hp, mtcars, "bernoulli_logit"),
         glm(am ~ wt + hp, data = mtcars, family = binomial, control = exact)),
    list(ours(carb ~ wt, mtcars, "poisson_log"),
         glm(carb ~ wt, data = mtcars, family = poisson, control = exact)),
    list(ours(mpg ~ wt + hp, mtcars, "normal_id"), lm(mpg ~ wt + hp, data = mtcars)))
  for (fits in pairs) {
    expect_equal(sandwich::sandwich(fits[[1]]), sandwich::sandwich(fits[[2]]), tolerance = 1e-6)
    for (type in c("HC0", "HC3")) {
      expect_equal(sandwich::vcovHC(fits[[1]], type = type),
                   sandwich::vcovHC(fits[[2]], type = type), tolerance = 1e-6)
    }
    expect_equal(sandwich::vcovCL(fits[[1]], cluster = mtcars$cyl, type = "HC1"),
                 sandwich::vcovCL(fits[[2]], cluster = mtcars$cyl, type = "HC1"), tolerance = 1e-6)
  }
})

test_that("coeftest() takes the distribution that suits the family", {
  skip_if_not_installed("lmtest")
  a <- ours(am ~ wt + hp, mtcars, "bernoulli_logit")
  b <- glm(am ~ wt + hp, data = mtcars, family = binomial, control = exact)
  expect_equal(unclass(lmtest::coeftest(a))[, 1:4], unclass(lmtest::coeftest(b))[, 1:4],
               tolerance = 1e-6)
  a <- ours(mpg ~ wt + hp, mtcars, "normal_id")
  b <- lm(mpg ~ wt + hp, data = mtcars)
  expect_equal(unclass(lmtest::coeftest(a))[, 1:4], unclass(lmtest::coeftest(b))[, 1:4],
               tolerance = 1e-6)
  small <- ours(mpg ~ wt, mtcars, "normal_id")
  expect_equal(lmtest::lrtest(small, a)[["Pr(>Chisq)"]][2],
               lmtest::lrtest(lm(mpg ~ wt, data = mtcars), b)[["Pr(>Chisq)"]][2], tolerance = 1e-6)
})

test_that("marginal means are those of glm()", {
  skip_if_not_installed("emmeans")
  breaks <- warpbreaks
  a <- ours(breaks ~ wool * tension, breaks, "poisson_log")
  b <- glm(breaks ~ wool * tension, data = breaks, family = poisson, control = exact)
  for (type in c("link", "response")) {
    expect_equal(like_glm(summary(emmeans::emmeans(a, ~ tension | wool, type = type))),
                 like_glm(summary(emmeans::emmeans(b, ~ tension | wool, type = type))),
                 tolerance = 1e-6)
  }
  pairs_of <- function(fit) pairs(suppressMessages(emmeans::emmeans(fit, ~ tension)))
  expect_equal(like_glm(summary(pairs_of(a))), like_glm(summary(pairs_of(b))), tolerance = 1e-6)
  a <- cl_glm(mpg ~ wt * factor(am), data = mtcars, family = "normal_id")
  b <- lm(mpg ~ wt * factor(am), data = mtcars)
  expect_equal(like_glm(summary(emmeans::emtrends(a, ~ am, var = "wt"))),
               like_glm(summary(emmeans::emtrends(b, ~ am, var = "wt"))), tolerance = 1e-6)
})

test_that("marginal means take the covariance matrix that they are given", {
  skip_if_not_installed("emmeans")
  skip_if_not_installed("sandwich")
  a <- ours(am ~ wt + hp, mtcars, "bernoulli_logit")
  b <- glm(am ~ wt + hp, binomial, mtcars, control = exact)
  for (v in list(diag(3), sandwich::vcovHC)) {
    expect_equal(like_glm(summary(emmeans::emmeans(a, "wt", vcov. = v))),
                 like_glm(summary(emmeans::emmeans(b, "wt", vcov. = v))), tolerance = 1e-5)
    expect_equal(lmtest::coeftest(a, vcov. = v)[, 2], lmtest::coeftest(b, vcov. = v)[, 2],
                 tolerance = 1e-5)
  }
})

test_that("marginal means of classes are those of polr() and multinom()", {
  skip_if_not_installed("emmeans")
  skip_if_not_installed("MASS")
  skip_if_not_installed("nnet")
  housing <- MASS::housing
  same <- function(a, b, by, ...) {
    expect_equal(like_glm(summary(emmeans::emmeans(a, by, ...))),
                 like_glm(summary(emmeans::emmeans(b, by, ...))), tolerance = 1e-3)
  }
  a <- cl_glm(Sat ~ Infl + Type, housing, "ordered_logistic", weights = Freq)
  b <- MASS::polr(Sat ~ Infl + Type, housing, Freq, Hess = TRUE)
  for (mode in c("latent", "mean.class")) same(a, b, ~Infl, mode = mode)
  for (mode in c("linear.predictor", "cum.prob", "exc.prob")) same(a, b, ~ cut | Infl, mode = mode)
  same(a, b, ~ Sat | Infl, mode = "prob", vcov. = vcov(b))
  a <- cl_glm(Sat ~ Infl + Type, housing, "categorical_logit", weights = Freq)
  multinom <- getExportedValue("nnet", "multinom")
  b <- multinom(Sat ~ Infl + Type, housing, Freq, trace = FALSE, Hess = TRUE)
  for (mode in c("prob", "latent")) same(a, b, ~ Sat | Infl, mode = mode)
  two <- data.frame(y = factor(mtcars$am), wt = mtcars$wt, v = factor(mtcars$vs))
  a <- cl_glm(y ~ wt + v, two, "categorical_logit")
  same(a, multinom(y ~ wt + v, two, trace = FALSE, Hess = TRUE), ~ y | v)
  expect_fault(emmeans::emmeans(cl_glm(factor(cyl) ~ wt + I(2 * wt), mtcars, "categorical_logit"),
                                "wt"), "argument", argument = "object")
})

test_that("car's tests are those of glm()", {
  skip_if_not_installed("car")
  car <- asNamespace("car") # many packages stand behind it: used if it is here
  a <- ours(carb ~ wt + factor(cyl), mtcars, "poisson_log")
  b <- glm(carb ~ wt + factor(cyl), data = mtcars, family = poisson, control = exact)
  for (test in c("LR", "Wald", "F")) {
    for (type in 2:3) {
      expect_equal(as.data.frame(car$Anova(a, type = type, test.statistic = test)),
                   as.data.frame(car$Anova(b, type = type, test.statistic = test)),
                   tolerance = 1e-6)
    }
  }
  expect_equal(as.data.frame(car$Anova(a)), as.data.frame(car$Anova(b)), tolerance = 1e-6)
  expect_refused("mod", car$Anova(cl_glm(factor(cyl) ~ wt, mtcars, "categorical_logit")))
  expect_equal(car$linearHypothesis(a, "wt = 0")[["Pr(>Chisq)"]],
               car$linearHypothesis(b, "wt = 0")[["Pr(>Chisq)"]], tolerance = 1e-6)
  expect_equal(car$vif(a), car$vif(b), tolerance = 1e-6)
})

test_that("stepAIC() takes the same steps as for glm()", {
  skip_if_not_installed("MASS")
  a <- cl_glm(low ~ age + lwt + factor(race) + smoke, data = MASS::birthwt)
  b <- glm(low ~ age + lwt + factor(race) + smoke, data = MASS::birthwt, family = binomial,
           control = exact)
  expect_equal(coef(MASS::stepAIC(a, trace = 0)), coef(MASS::stepAIC(b, trace = 0)),
               tolerance = 1e-6)
})

# Ozone and Solar.R have missing values.
with_missing <- function() {
  lapply(list(poisson(), gaussian(), Gamma("log")), function(family) {
    list(cl_glm(Ozone ~ Solar.R + Wind, airquality, family),
         glm(Ozone ~ Solar.R + Wind, family, airquality, control = exact))
  })
}

test_that("single terms are tested as in glm(), also with missing values", {
  for (fits in with_missing()) {
    for (test in c("none", "Chisq", "F", "Rao")) {
      for (f in list(drop1, function(x, ...) add1(x, ~ . + Temp, ...))) {
        both <- suppressWarnings(lapply(fits, f, test = test))
        expect_equal(both[[1L]], both[[2L]], tolerance = 1e-4, ignore_attr = "heading")
      }
    }
    expect_equal(drop1(fits[[1L]], ~Wind, k = 5)$Deviance, drop1(fits[[2L]], ~Wind, k = 5)$Deviance,
                 tolerance = 1e-6)
    expect_equal(formula(step(fits[[1L]], trace = 0)), formula(step(fits[[2L]], trace = 0)))
  }
  # of other families by refits to the rows in use
  some <- transform(iris, Sepal.Length = replace(Sepal.Length, 3, NA),
                    Petal.Width = replace(Petal.Width, 7, NA))
  fit <- cl_glm(Species ~ Sepal.Length + Petal.Width, some, "ordered_logistic")
  used <- cl_glm(Species ~ Petal.Width, na.omit(some), "ordered_logistic")
  expect_equal(drop1(fit, test = "LRT")["Sepal.Length", "LRT"],
               2 * as.numeric(logLik(fit) - logLik(used)), tolerance = 1e-6)
  expect_refused("test", drop1(fit, test = "F"))
})

test_that("names, elements and functions without methods give what they give for glm()", {
  for (fits in with_missing()) {
    for (f in list(variable.names, case.names, dffits, covratio, function(x) x$aic,
                   function(x) x$family$family, function(x) x$family$linkinv(0.3))) {
      expect_equal(f(fits[[1L]]), f(fits[[2L]]), tolerance = 1e-6)
    }
    expect_equal(influence.measures(cl_as_glm(fits[[1L]]))$infmat,
                 influence.measures(fits[[2L]])$infmat, tolerance = 1e-6)
  }
  expect_refused("model", influence.measures(fits[[1L]]))
  expect_output(print(fits[[1L]]$family), "Gamma(log)", fixed = TRUE)
  expect_identical(as.character(data.frame(f = fits[[1L]]$family)$f), "Gamma(log)")
  expect_null(fits[[1L]]$qrs)
  lost <- cl_glm(mpg ~ wt + I(2 * wt), mtcars, "normal_id")
  peer <- glm(mpg ~ wt + I(2 * wt), data = mtcars)
  for (full in c(TRUE, FALSE)) {
    expect_identical(variable.names(lost, full = full), variable.names(peer, full = full))
  }
})

test_that("augment() names the rows that are left, as for glm()", {
  skip_if_not_installed("broom")
  a <- cl_glm(Ozone ~ Wind, airquality, "normal_id")
  b <- glm(Ozone ~ Wind, data = airquality)
  expect_equal(like_glm(broom::augment(a)), like_glm(broom::augment(b)), tolerance = 1e-6)
  a <- update(a, na.action = na.exclude)
  expect_equal(broom::augment(a)$.fitted, unname(fitted(b)), tolerance = 1e-6)
  expect_length(broom::augment(a, airquality)$.fitted, 153L)
})

test_that("ggpredict() has the intervals of glm()", {
  skip_if_not_installed("ggeffects")
  ggpredict <- getExportedValue("ggeffects", "ggpredict")
  both <- lapply(with_missing()[[1L]], function(fit) {
    suppressMessages(as.data.frame(ggpredict(fit, "Wind", ci.lvl = 0.8)))
  })
  for (name in c("predicted", "conf.low", "conf.high")) {
    expect_equal(both[[1L]][[name]], both[[2L]][[name]], tolerance = 1e-4)
  }
})
