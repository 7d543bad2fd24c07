# Methods of fits with families of R, next to those of glm().

exact <- list(epsilon = 1e-14, maxit = 200) # glm() to the last digit

both <- function(formula, family, data) {
  arguments <- list(formula, data = data, family = family)
  list(ours = do.call(cl_glm, arguments, quote = TRUE),
       rs = do.call(glm, c(arguments, list(control = exact)), quote = TRUE))
}

test_on_host("tests and intervals are those of glm()", {
  for (family in list(Gamma("log"), quasi(link = "log", variance = "mu"))) {
    fits <- both(mpg ~ wt + hp, family, mtcars)
    a <- fits$ours
    b <- fits$rs
    f <- anova(b, test = "F")
    expect_equal(unlist(anova(a)), unlist(f), tolerance = 1e-7)
    small <- list(update(a, . ~ . - hp), update(b, . ~ . - hp))
    expect_equal(unlist(anova(small[[1]], a)), unlist(anova(small[[2]], b, test = "F")),
                 tolerance = 1e-7)
    expect_equal(unlist(anova(small[[1]], a, test = "Chisq")),
                 unlist(anova(small[[2]], b, test = "Chisq")), tolerance = 1e-7)
    skip_if_not_installed("MASS")
    expect_equal(confint(a, method = "profile"), suppressMessages(confint(b)), tolerance = 1e-4)
  }
  a <- cl_glm(am ~ wt, mtcars, binomial("probit"))
  b <- glm(am ~ wt, binomial("probit"), mtcars, control = exact)
  expect_equal(unlist(anova(a)), unlist(anova(b, test = "Chisq")), tolerance = 1e-6)
  expect_equal(confint(a), stats::confint.default(b), tolerance = 1e-6)
})

test_on_host("what is printed is what glm() prints", {
  fit <- cl_glm(weight ~ Time + Diet, ChickWeight, Gamma("log"))
  peer <- glm(weight ~ Time + Diet, Gamma("log"), ChickWeight, control = exact)
  fit$call <- peer$call
  fit$iterations <- peer$iter
  expect_identical(capture.output(summary(fit)), capture.output(summary(peer)))
  expect_output(print(fit), "dispersion: 0\\.0")
  expect_output(print(fit$family), "[1] \"Gamma(log)\"", fixed = TRUE)
  gone <- cl_glm(mpg ~ wt + I(2 * wt), mtcars, Gamma("log"))
  expect_output(print(summary(gone)), "1 not defined because of singularities")
})

test_on_host("simulated responses have the variance of the family", {
  set.seed(6)
  data <- data.frame(x = rep(c(0, 1), each = 3000), w = rep(c(1, 2), 3000))
  data$y <- rgamma(6000, 4 * data$w, 4 * data$w / exp(data$x))
  for (family in list(Gamma("log"), inverse.gaussian("log"), gaussian("log"))) {
    fit <- cl_glm(y ~ x, data, family, weights = w)
    new <- simulate(fit, 1, seed = 1)[[1]]
    variance <- stats::sigma(fit)^2 * family$variance(fitted(fit)) / data$w
    expect_equal(mean((new - fitted(fit))^2 / variance), 1, tolerance = 0.1,
                 label = family$family)
    expect_equal(mean(new[data$x == 1]), fitted(fit)[[6000]], tolerance = 0.05)
  }
  shares <- simulate(cl_glm(cbind(ncases, ncontrols) ~ agegp, esoph, binomial("probit")),
                     seed = 1)
  expect_true(all(shares[[1]] == round(shares[[1]])))
})

test_on_host("separation, perfect fits and steps out of bounds end well", {
  apart <- transform(mtcars, x = 2 * am + wt / 100)
  expect_warning(fit <- cl_glm(am ~ x, apart, binomial("probit")),
                 class = "statcl_warning_separation")
  expect_lt(deviance(fit), 1e-10)
  exactly <- transform(mtcars, y = exp(1 + wt / 5))
  expect_equal(coef(cl_glm(y ~ wt, exactly, gaussian("log"))), c(`(Intercept)` = 1, wt = 0.2),
               tolerance = 1e-12)
  # glm() asks for starting values here, and with these does not reach the maximum
  model <- cbind(ncases, ncontrols) ~ unclass(agegp) + unclass(alcgp)
  expect_warning(expect_warning(fit <- cl_glm(model, esoph, binomial("log")),
                                class = "statcl_warning_separation"),
                 "bound of valid means", class = "statcl_warning_convergence")
  peer <- suppressWarnings(glm(model, binomial("log"), esoph, start = c(-3, 0.1, 0.1)))
  expect_lt(deviance(fit), deviance(peer))
  expect_true(all(fitted(fit) <= 1))
  expect_length(coef(cl_glm(mpg ~ 0, mtcars, Gamma("log"))), 0L)
})

test_on_host("broom, sandwich, lmtest and emmeans take these fits as those of glm()", {
  fits <- both(breaks ~ wool * tension, quasipoisson("log"), warpbreaks)
  gamma <- both(mpg ~ wt + factor(cyl), Gamma("log"), mtcars)
  plain <- function(x) {
    x <- as.data.frame(x)
    attributes(x) <- attributes(x)[c("names", "row.names", "class")]
    x
  }
  for (pair in list(fits, gamma)) {
    skip_if_not_installed("broom")
    same <- function(f) expect_equal(plain(f(pair$ours)), plain(f(pair$rs)), tolerance = 1e-6)
    same(broom::tidy)
    same(function(fit) broom::augment(fit, se_fit = TRUE))
    same(function(fit) lapply(broom::glance(fit), as.numeric))
    skip_if_not_installed("sandwich")
    same(function(fit) sandwich::vcovHC(fit, type = "HC3"))
    skip_if_not_installed("lmtest")
    same(function(fit) unclass(lmtest::coeftest(fit))[, 1:4])
  }
  skip_if_not_installed("emmeans")
  for (type in c("link", "response")) {
    expect_equal(plain(summary(emmeans::emmeans(gamma$ours, ~ cyl, type = type))),
                 plain(summary(emmeans::emmeans(gamma$rs, ~ cyl, type = type))), tolerance = 1e-6)
  }
})

test_on_host("prediction intervals hold for new observations", {
  new <- data.frame(wt = c(2, 3, NA, 4))
  expect_equal(predict(cl_glm(mpg ~ wt, mtcars, gaussian), new, interval = "prediction"),
               predict(lm(mpg ~ wt, mtcars), new, interval = "prediction"), tolerance = 1e-8)
  # without uncertainty of the coefficients: quantiles of the distribution
  set.seed(3)
  data <- data.frame(y = rpois(2e5, 4), z = rgamma(2e5, 3, 1))
  counts <- predict(cl_glm(y ~ 1, data, poisson), data[1, ], "response", interval = "prediction")
  expect_equal(counts[1, 2:3], qpois(c(0.025, 0.975), 4), ignore_attr = TRUE)
  size <- predict(cl_glm(z ~ 1, data, Gamma), data[1, ], "response", interval = "prediction",
                  level = 0.8)
  expect_equal(size[1, 2:3], qgamma(c(0.1, 0.9), 3, 1), tolerance = 0.02, ignore_attr = TRUE)
  # with it: against draws
  few <- data.frame(y = c(2, 5, 3, 8, 4, 12), x = 1:6)
  fit <- cl_glm(y ~ x, few, poisson)
  at <- predict(fit, data.frame(x = 7), se.fit = TRUE)
  drawn <- rpois(1e5, exp(rnorm(1e5, at$fit, at$se.fit)))
  found <- predict(fit, data.frame(x = 7), "response", interval = "prediction", level = 0.9)
  expect_lte(max(abs(found[1, 2:3] - quantile(drawn, c(0.05, 0.95)))), 1)
  fit <- cl_glm(breaks ~ wool, warpbreaks, "neg_binomial_2_log")
  inside <- predict(fit, type = "response", interval = "prediction")
  share <- mean(warpbreaks$breaks >= inside[, 2] & warpbreaks$breaks <= inside[, 3])
  expect_gt(share, 0.85)
  expect_fault(predict(cl_glm(am ~ wt, mtcars), type = "response", interval = "prediction"),
               "argument", argument = "interval")
  expect_refused("interval", predict(fit, interval = "prediction"))
})
