# Fits of generalised linear models with unusual or unusable input.

test_on_host("responses of all kinds", {
  plain <- cl_glm(am ~ wt, mtcars)
  kinds <- transform(mtcars, yes = am == 1, word = c("auto", "manual")[am + 1], one = am)
  kinds$factor <- factor(kinds$word)
  for (y in c("yes", "word", "factor")) {
    fit <- cl_glm(reformulate("wt", y), kinds)
    expect_identical(coef(fit), coef(plain))
  }
  expect_identical(predict(fit, kinds[c(1, 5), ], "class"),
                   factor(c(`Mazda RX4` = "manual", `Hornet Sportabout` = "auto")))
  expect_identical(predict(plain, kinds[c(1, 5), ], "class"),
                   c(`Mazda RX4` = 1, `Hornet Sportabout` = 0))
  expect_identical(coef(cl_glm(am ~ wt, mtcars, binomial)), coef(plain))
  expect_identical(coef(cl_glm(am ~ wt, mtcars, "binomial")), coef(plain))
  # Unused levels are not classes.
  some <- droplevels(iris[51:150, ])
  some$Species <- factor(some$Species, levels(iris$Species))
  expect_identical(cl_glm(Species ~ Sepal.Length, some, "categorical_logit")$levels,
                   levels(iris$Species)[2:3])
  expect_named(coef(cl_glm(carb ~ wt, mtcars[mtcars$carb < 4, ], "categorical_logit")),
               c("2:(Intercept)", "2:wt", "3:(Intercept)", "3:wt"))
})

test_on_host("missing values, subsets and factors", {
  d <- mtcars
  d$wt[3] <- NA
  d$cyl <- factor(d$cyl)
  fit <- cl_glm(vs ~ wt + hp, d, na.action = na.exclude)
  expect_identical(nobs(fit), 31L)
  expect_identical(which(is.na(fitted(fit))), c(`Datsun 710` = 3L))
  expect_length(residuals(fit), 32)
  expect_length(predict(fit), 32)
  expect_identical(dim(predict(fit, interval = "confidence")), c(32L, 3L))
  expect_output(print(fit), "1 dropped")
  expect_error(cl_glm(am ~ wt, d, na.action = na.fail), "missing values")
  some <- cl_glm(vs ~ hp, d, subset = mpg > 15)
  expect_identical(nobs(some), sum(mtcars$mpg > 15))
  levelled <- cl_glm(mpg ~ cyl, d, "normal_id", contrasts = list(cyl = "contr.sum"))
  expect_equal(coef(levelled), coef(lm(mpg ~ cyl, d, contrasts = list(cyl = "contr.sum"))))
  expect_equal(predict(levelled, data.frame(cyl = "6")),
               predict(lm(mpg ~ cyl, d), data.frame(cyl = "6")))
  expect_identical(predict(levelled, data.frame(cyl = c("4", NA)))[[2]], NA_real_)
  expect_length(predict(levelled, d[0, ]), 0)
  ordered <- cl_glm(factor(gear) ~ wt, d, "ordered_logistic", na.action = na.exclude)
  expect_identical(dim(predict(ordered, type = "response", interval = "confidence")),
                   c(32L, 3L, 3L))
  # Spline and polynomial terms keep their parameters.
  fit <- cl_glm(vs ~ poly(hp, 2), d)
  expect_equal(predict(fit, d[5:6, ]), predict(fit)[5:6], tolerance = 1e-10)
})

test_on_host("an ordered model without an intercept is one with cuts", {
  a <- cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic")
  expect_equal(coef(cl_glm(factor(gear) ~ wt - 1, mtcars, "ordered_logistic")), coef(a))
  x <- mtcars$wt
  expect_equal(unname(coef(cl_glm(x, factor(mtcars$gear), "ordered_logistic"))),
               unname(coef(a)))
  none <- cl_glm(factor(gear) ~ 1, mtcars, "ordered_logistic")
  expect_equal(unname(plogis(none$aux)), cumsum(table(mtcars$gear))[1:2] / 32,
               ignore_attr = TRUE)
  expect_length(coef(none), 0)
  expect_output(print(summary(none)), "3\\|4")
})

test_on_host("no predictors at all", {
  fit <- cl_glm(am ~ 0 + offset(wt - 3), mtcars)
  expect_length(coef(fit), 0)
  expect_equal(fit$logLik, sum(dbinom(mtcars$am, 1, plogis(mtcars$wt - 3), log = TRUE)))
  expect_output(print(fit), "No coefficients")
  expect_equal(cl_glm(am ~ 1, mtcars)$null.deviance, deviance(cl_glm(am ~ 1, mtcars)))
})

test_that("unusable input is rejected by name", {
  f <- function(..., data = mtcars) cl_glm(..., data = data)
  d <- data.frame(y = c(0, 1, 1, 0), x = c(1, 3, 2, 4), w = c(1, 2, 1, 0.5))
  each_engine({
    expect_refused("formula", f(~wt))
    expect_refused("family", f(am ~ wt, family = "logit"), says = "neg_binomial_2_log")
    mine <- structure(list(family = "mine", link = "log"), class = "family")
    expect_refused("family", f(am ~ wt, family = mine), f(am ~ wt, family = 3), f(mpg ~ wt))
    expect_refused("method", f(am ~ wt, family = binomial("probit"), method = "map"),
                   f(am ~ wt, method = "exact"))
    expect_refused("y", f(am ~ wt, family = Gamma()), f(mpg ~ wt, family = "poisson_log"),
                   f(-carb ~ wt, family = "poisson_log"), f(gear ~ wt, family = "ordered_logistic"),
                   f(factor(rep(1, 32)) ~ wt, family = "ordered_logistic"), f(factor(gear) ~ wt))
    expect_refused("trials", f(am ~ wt, family = Gamma("log"), trials = 2))
    expect_refused("prior", f(am ~ wt, prior = prior_normal()))
    expect_refused("foo", f(am ~ wt, foo = 1))
    expect_refused("control", f(am ~ wt, control = list(chains = 2)), f(am ~ wt, control = 5))
    expect_refused("start", f(am ~ wt, start = 1), f(am ~ wt, start = c(1, NA)))
    expect_equal(coef(f(cbind(am, 1 - am) ~ wt)), coef(f(am ~ wt)))
    expect_refused("y", f(cbind(am, 1 - am, 2) ~ wt, family = "binomial_logit"),
                   f(carb ~ wt, family = "binomial_logit", trials = 3))
    expect_refused("trials", f(carb ~ wt, family = "binomial_logit"),
                   cl_glm(carb ~ wt, mtcars, "poisson_log", trials = hp))
    expect_refused("offset", cl_glm(factor(gear) ~ wt, mtcars, "categorical_logit", offset = hp),
                   cl_glm(factor(gear) ~ wt, mtcars, "categorical_logit", offset = cbind(hp, hp)))
    expect_refused("data", f(y ~ x, data = d[0, ]))
    expect_refused("weights", cl_glm(y ~ x, d, weights = -w), cl_glm(y ~ x, d, weights = w / 0))
    expect_refused("weights",
                   cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic", weights = gear - 3),
                   says = "class '3'")
    expect_refused("weights", cl_glm(y ~ x, d, weights = 0 * w))
    expect_refused("family", cl_glm(as.matrix(d), 1:3))
    expect_refused("y", cl_glm(as.matrix(d), NULL), cl_glm(as.matrix(d)))
    expect_refused("x", cl_glm(letters, 1:3))
    d$x[2] <- Inf
    expect_fault(f(y ~ x, data = d), "nonfinite", argument = "x", says = "'x'")
    expect_fault(cl_glm(cbind(1, NA, 1:2), c(0, 1)), "nonfinite")
    expect_refused("y", f(1 / (wt - wt[1]) ~ hp, "normal_id"), says = "infinite")
  })
})

test_that("unsuitable priors are rejected", {
  f <- function(prior, family = "bernoulli_logit", model = am ~ wt) {
    cl_glm(model, mtcars, family, method = "map", prior = prior)
  }
  on_host({
    refused <- function(code) expect_fault(code, "argument", argument = "prior")
    refused(f(3))
    refused(f(list(prior_normal())))
    refused(f(list(hp = prior_normal())))
    refused(f(list(sigma = prior_normal())))
    refused(f(list(wt = 3)))
    fault <- refused(f(list(wt = prior_gamma())))
    expect_match(conditionMessage(fault), "is for positive parameters")
    refused(f(list(cuts = prior_gamma()), "ordered_logistic", factor(gear) ~ wt))
    refused(f(list(intercept = prior_normal()), "ordered_logistic", factor(gear) ~ wt))
    refused(f(list(wt = function(x) "a")))
  })
})

test_on_host("predictions reject data that does not match the model", {
  fit <- cl_glm(am ~ wt + factor(cyl), mtcars)
  refused <- function(...) expect_fault(predict(fit, ...), "argument", argument = "newdata")
  refused(data.frame(wt = 1))
  refused(data.frame(wt = 1, cyl = 5))
  refused(data.frame(wt = "a", cyl = 4))
  refused(list(wt = 1, cyl = 4))
  expect_refused("foo", predict(fit, foo = 1))
  bare <- cl_glm(am ~ wt, mtcars, model = FALSE)
  expect_equal(predict(bare, mtcars), predict(bare))
  expect_fault(predict(bare, se.fit = TRUE), "argument")
  matrix <- cl_glm(as.matrix(mtcars[c("wt", "hp")]), mtcars$am)
  expect_refused("newdata", predict(matrix, mtcars["wt"]))
  expect_fault(formula(matrix), "argument")
})

test_on_host("counts of 1e9 are fitted like others", {
  i <- 1:300
  x <- sin(i)
  mean <- exp(20.7 + 0.3 * x)
  z <- qnorm(((i * 89) %% 300 + 0.5) / 300)
  counts <- function(phi) round(mean * (1 + z * sqrt(1 / mean + 1 / phi)))
  for (phi in c(100, 1e8)) {
    y <- counts(phi)
    fit <- expect_silent(cl_glm(y ~ x, family = "neg_binomial_2_log"))
    expect_equal(fit$aux[[1]], phi, tolerance = 0.1)
    expect_equal(coef(fit), c(`(Intercept)` = 20.7, x = 0.3), tolerance = 2 / sqrt(phi))
    expect_equal(fit$logLik, sum(dnbinom(y, size = fit$aux, mu = fitted(fit), log = TRUE)),
                 tolerance = 1e-9)
    expect_equal(fit$aux_error / phi, sqrt(2 / 300), tolerance = 0.1)
    expect_lt(abs(deviance(fit) - 300), 30)
    if (phi == 1e8) expect_gt(fit$logLik - cl_glm(y ~ x, family = "poisson_log")$logLik, 1000)
  }
  # Less dispersion than Poisson's.
  y <- round(mean * (1 + z / sqrt(2 * mean)))
  expect_warning(fit <- cl_glm(y ~ x, family = "neg_binomial_2_log"),
                 class = "statcl_warning_boundary")
  poisson <- cl_glm(y ~ x, family = "poisson_log")
  expect_equal(coef(fit), coef(poisson), tolerance = 1e-12)
  expect_equal(deviance(fit), deviance(poisson), tolerance = 1e-6)
  expect_equal(poisson$logLik, sum(dpois(y, fitted(poisson), log = TRUE)), tolerance = 1e-9)
})

test_on_host("formulas as text, and numbers with a class for their origin", {
  plain <- cl_glm(am ~ wt, mtcars)
  fit <- cl_glm("am ~ wt", mtcars)
  expect_identical(coef(fit), coef(plain))
  expect_identical(formula(fit), am ~ wt, ignore_formula_env = TRUE)
  expect_named(coef(update(fit, . ~ . + hp)), c("(Intercept)", "wt", "hp"))
  expect_identical(coef(cl_glm("am ~ wt", data = mtcars, family = "binomial")), coef(plain))
  expect_refused("formula", cl_glm("am ~", mtcars))
  expect_fault(cl_glm(c("am ~ wt", "am ~ hp"), mtcars), "argument")
  expect_refused("x", cl_glm(matrix("a"), 1))
  d <- mtcars
  for (kind in list("labelled", c("haven_labelled", "vctrs_vctr", "double"), "AsIs")) {
    d$am <- structure(mtcars$am, label = "gears by hand", class = kind)
    expect_identical(coef(cl_glm(am ~ wt, d)), coef(plain))
  }
  d$am <- I(factor(mtcars$am))
  expect_identical(coef(cl_glm(am ~ wt, d)), coef(plain))
  counts <- table(mtcars$carb)
  size <- seq_along(counts)
  peer <- coef(glm(as.vector(counts) ~ size, poisson))
  expect_equal(coef(cl_glm(counts ~ size, family = "poisson_log")), peer, tolerance = 1e-6)
  expect_equal(coef(cl_glm(xtabs(~ carb, mtcars) ~ size, family = poisson)), peer,
               tolerance = 1e-6)
  weighted <- cl_glm(mpg ~ wt, mtcars, "normal_id", weights = I(qsec))
  expect_equal(coef(weighted), coef(lm(mpg ~ wt, mtcars, weights = qsec)))
  expect_refused("y", cl_glm(am ~ wt, transform(mtcars, am = as.Date("2020-01-01") + am)))
})

test_that("more than 2,000 classes are rejected with their number", {
  for (family in c("categorical_logit", "ordered_logistic")) {
    expect_refused("y", on_host(cl_glm(cbind(x = 1:2001), factor(1:2001), family)),
                   says = "2001 classes, but at most 2000")
  }
})

test_on_host("family and data may be in the order of glm()", {
  expected <- coef(cl_glm(am ~ wt, mtcars, "bernoulli_logit"))
  expect_equal(coef(cl_glm(am ~ wt, binomial, mtcars)), expected)
  expect_equal(coef(cl_glm(am ~ wt, "binomial", mtcars)), expected)
  expect_equal(coef(cl_glm(am ~ wt, data = binomial(), mtcars)), expected)
  expect_equal(unname(coef(with(mtcars, cl_glm(am ~ wt, binomial)))), unname(expected))
  expect_equal(coef(cl_glm("am ~ wt", binomial, mtcars)), expected)
  fit <- cl_glm(carb ~ wt, poisson("sqrt"), mtcars, subset = cyl > 4)
  expect_equal(coef(fit), coef(glm(carb ~ wt, poisson("sqrt"), mtcars, subset = cyl > 4)),
               tolerance = 1e-4)
  expect_equal(coef(update(fit, . ~ . + hp)), coef(cl_glm(
    carb ~ wt + hp, mtcars, poisson("sqrt"), subset = cyl > 4)))
  rows <- function(reset = FALSE) if (!reset) mtcars # a source of blocks is no family
  expect_false(statcl:::is_family(rows))
  expect_refused("family", cl_glm(mpg ~ wt, mtcars))
  expect_refused("chains", cl_glm(am ~ wt, data = mtcars, method = "mcmc", chains = 2),
                 says = "control = list(chains = )")
})
