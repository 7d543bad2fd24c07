# Fits in packages that look into objects of glm(): cl_as_glm(), insight, performance, xtable,
# marginaleffects. These are outside of Suggests and are used if they are here.

exact <- list(epsilon = 1e-15, maxit = 50) # glm() to the last digit
from <- function(package, name) getExportedValue(package, name)

# Fits next to those of glm().
pairs_of_fits <- function() {
  list(
    list(cl_glm(am ~ wt + hp, data = mtcars),
         glm(am ~ wt + hp, binomial, mtcars, control = exact)),
    list(cl_glm(cbind(ncases, ncontrols) ~ agegp, data = esoph, family = binomial),
         glm(cbind(ncases, ncontrols) ~ agegp, binomial, esoph, control = exact)),
    list(cl_glm(carb ~ wt + factor(cyl), data = mtcars, family = "poisson_log"),
         glm(carb ~ wt + factor(cyl), poisson, mtcars, control = exact)),
    list(cl_glm(mpg ~ wt * hp, data = mtcars, family = Gamma("log")),
         glm(mpg ~ wt * hp, Gamma("log"), mtcars, control = exact)),
    list(cl_glm(mpg ~ wt + hp, data = mtcars, family = "normal_id"),
         glm(mpg ~ wt + hp, gaussian, mtcars, control = exact)),
    list(cl_glm(Days ~ Sex + Age, data = MASS::quine, family = "neg_binomial_2_log"),
         MASS::glm.nb(Days ~ Sex + Age, MASS::quine, control = glm.control(1e-12, 50))))
}

test_that("cl_as_glm() gives what glm() and glm.nb() give", {
  skip_if_not_installed("MASS")
  for (fits in pairs_of_fits()) {
    a <- cl_as_glm(fits[[1]])
    b <- fits[[2]]
    expect_length(setdiff(names(b), c(names(a), "xlevels", "contrasts", "offset")), 0)
    expect_identical(class(a), class(b))
    same <- setdiff(names(b), c("iter", "call", "data", "control", "qr", "family", "xlevels",
                                "contrasts", "SE.theta"))
    for (name in same) expect_equal(a[[name]], b[[name]], tolerance = 1e-6, label = name)
    expect_equal(abs(qr.R(a$qr)), abs(qr.R(b$qr)), tolerance = 1e-6)
    expect_equal(coef(summary(a)), coef(summary(b)), tolerance = 1e-5)
    expect_equal(influence(a)$hat, influence(b)$hat, tolerance = 1e-6)
    tests <- suppressWarnings(lapply(list(a, b), anova, test = "Chisq"))
    expect_equal(tests[[1]][[2]], tests[[2]][[2]], tolerance = 1e-6)
    expect_equal(coef(update(a, . ~ 1)), coef(update(b, . ~ 1)), tolerance = 1e-5)
    expect_equal(predict(a, eval(a$call$data)[1:3, ], se.fit = TRUE)$se.fit,
                 predict(b, eval(b$call$data)[1:3, ], se.fit = TRUE)$se.fit, tolerance = 1e-5)
  }
  gone <- transform(mtcars, wt = replace(wt, 3, NA), two = 2 * hp)
  a <- cl_as_glm(cl_glm(am ~ wt + hp + two + offset(qsec / 9), data = gone, weights = gear,
                        na.action = na.exclude))
  b <- glm(am ~ wt + hp + two + offset(qsec / 9), binomial, gone, gear, na.action = na.exclude,
           epsilon = 1e-10)
  expect_equal(residuals(a), residuals(b), tolerance = 1e-6)
  expect_equal(coef(summary(a)), coef(summary(b)), tolerance = 1e-5)
})

test_that("cl_as_glm() refuses what has no such object", {
  expect_refused("fit", cl_as_glm(1),
                 cl_as_glm(cl_glm(factor(gear) ~ wt, data = mtcars, family = "categorical_logit")),
                 cl_as_glm(cl_glm(am ~ wt, data = mtcars, method = "map")))
  expect_refused("formula", cl_as_glm(cl_glm(cbind(mtcars$wt), mtcars$am)))
  mixed <- suppressMessages(cl_glm(mpg ~ wt + (1 | cyl), mtcars, "normal_id"))
  expect_refused("object", cl_as_glm(mixed))
})

test_that("insight and performance give what they give for glm()", {
  skip_if_not_installed("insight")
  skip_if_not_installed("performance")
  plain <- function(v) unlist(lapply(v, unname))
  for (fits in pairs_of_fits()) {
    for (name in c("get_statistic", "get_parameters", "get_varcov", "get_df", "n_obs",
                   "get_deviance", "find_formula", "find_response", "find_predictors",
                   "find_parameters")) {
      f <- from("insight", name)
      expect_equal(f(fits[[1]]), f(fits[[2]]), tolerance = 1e-5, label = name)
    }
    info <- lapply(fits, from("insight", "model_info"))
    same <- names(info[[2]])
    expect_equal(info[[1]][same], info[[2]][same])
    expect_equal(c(from("insight", "get_loglikelihood")(fits[[1]])), c(logLik(fits[[2]])),
                 tolerance = 1e-8)
    expect_equal(as.numeric(from("insight", "get_predicted")(fits[[1]], verbose = FALSE)),
                 unname(fitted(fits[[2]])), tolerance = 1e-6)
    r2 <- suppressWarnings(lapply(fits, from("performance", "r2")))
    expect_equal(plain(r2[[1]]), plain(r2[[2]]), tolerance = 1e-6)
    found <- suppressMessages(suppressWarnings(
      lapply(fits, from("performance", "model_performance"), verbose = FALSE)))
    expect_gt(length(found[[2]]), 3)
    expect_equal(plain(found[[1]][names(found[[2]])]), plain(found[[2]]), tolerance = 1e-5)
    expect_equal(from("performance", "check_collinearity")(fits[[1]], verbose = FALSE)$VIF,
                 from("performance", "check_collinearity")(fits[[2]], verbose = FALSE)$VIF,
                 tolerance = 1e-5)
  }
  fits <- pairs_of_fits()[[3]]
  expect_equal(from("performance", "check_overdispersion")(fits[[1]])$chisq_statistic,
               from("performance", "check_overdispersion")(fits[[2]])$chisq_statistic)
  peer <- glm(carb ~ wt + factor(cyl), poisson, mtcars)
  for (name in c("r2_nagelkerke", "r2_mcfadden", "r2_coxsnell")) {
    f <- from("performance", name)
    expect_equal(plain(f(fits[[1]])), plain(f(peer)), tolerance = 1e-5)
  }
})

test_that("pseudo R2 of families with classes are those of polr() and multinom()", {
  skip_if_not_installed("performance")
  skip_if_not_installed("nnet")
  peers <- list(ordered_logistic = MASS::polr(Sat ~ Infl + Type, MASS::housing, weights = Freq),
                categorical_logit = from("nnet", "multinom")(Sat ~ Infl + Type, MASS::housing,
                                                             weights = Freq, trace = FALSE))
  for (name in names(peers)) {
    fit <- cl_glm(Sat ~ Infl + Type, MASS::housing, name, weights = Freq)
    counts <- tapply(MASS::housing$Freq, MASS::housing$Sat, sum)
    null <- sum(counts * log(counts / sum(counts)))
    n <- sum(MASS::housing$Freq)
    expect_equal(from("performance", "r2_mcfadden")(fit)$R2,
                 1 - c(logLik(peers[[name]])) / null, tolerance = 1e-4, ignore_attr = TRUE)
    top <- 1 - exp(2 * (null - c(logLik(peers[[name]]))) / n)
    expect_equal(from("performance", "r2_nagelkerke")(fit), top / (1 - exp(2 * null / n)),
                 tolerance = 1e-4, ignore_attr = TRUE)
    expect_equal(from("performance", "r2")(fit)$R2_Nagelkerke,
                 from("performance", "r2_nagelkerke")(fit))
  }
})

test_that("tables of xtable are those of glm()", {
  skip_if_not_installed("xtable")
  fits <- pairs_of_fits()[[1]]
  tables <- lapply(fits, from("xtable", "xtable"))
  expect_s3_class(tables[[1]], "xtable")
  expect_equal(as.matrix(tables[[1]]), as.matrix(tables[[2]]), tolerance = 1e-6,
               ignore_attr = TRUE)
})

test_that("insight and performance know random effects, as those of lme4", {
  skip_if_not_installed("performance")
  skip_if_not_installed("lme4")
  sleep <- from("lme4", "sleepstudy")
  cbpp <- transform(from("lme4", "cbpp"), row = seq_along(herd))
  grouse <- from("lme4", "grouseticks")
  lmer <- from("lme4", "lmer")
  glmer <- from("lme4", "glmer")
  pairs <- list(
    list(cl_glmm(Reaction ~ Days + (Days | Subject), sleep, "normal_id", "reml"),
         lmer(Reaction ~ Days + (Days | Subject), sleep)),
    list(cl_glmm(cbind(incidence, size - incidence) ~ period + (1 | herd) + (1 | row), cbpp,
                 binomial),
         glmer(cbind(incidence, size - incidence) ~ period + (1 | herd) + (1 | row), cbpp,
               binomial)),
    list(cl_glmm(TICKS ~ YEAR + (1 | BROOD), grouse, poisson),
         glmer(TICKS ~ YEAR + (1 | BROOD), grouse, poisson)))
  for (fits in pairs) {
    for (name in c("find_formula", "find_random", "find_predictors", "find_response", "n_obs",
                   "is_mixed_model")) {
      f <- from("insight", name)
      expect_equal(f(fits[[1]]), f(fits[[2]]), ignore_attr = TRUE, label = name,
                   ignore_formula_env = TRUE)
    }
    found <- lapply(fits, function(fit) suppressWarnings(from("insight", "get_variance")(fit)))
    same <- intersect(names(found[[2]]), names(found[[1]]))
    expect_true(all(c("var.fixed", "var.random", "var.residual", "var.intercept") %in% same))
    for (name in same) expect_equal(sort(found[[1]][[name]]), sort(found[[2]][[name]]),
                                    tolerance = 5e-3, label = name)
    icc <- lapply(fits, function(fit) suppressWarnings(from("performance", "icc")(fit)))
    expect_equal(icc[[1]]$ICC_adjusted, icc[[2]]$ICC_adjusted, tolerance = 1e-3)
    r2 <- suppressWarnings(lapply(fits, from("performance", "r2")))
    expect_equal(unlist(r2[[1]]), unlist(r2[[2]]), tolerance = 1e-3, ignore_attr = TRUE)
    found <- suppressWarnings(from("performance", "model_performance")(fits[[1]]))
    expect_true(all(c("AIC", "R2_marginal", "ICC", "RMSE") %in% names(found)))
  }
  chi <- lapply(pairs[[3]], function(fit) from("performance", "check_overdispersion")(fit))
  expect_equal(chi[[1]]$chisq_statistic, chi[[2]]$chisq_statistic, tolerance = 1e-3)
  expect_equal(as.numeric(from("insight", "get_predicted")(pairs[[2]][[1]])),
               unname(fitted(pairs[[2]][[1]])))
  expect_fault(from("performance", "r2_mcfadden")(pairs[[1]][[1]]), "argument")
})

# The mean slope of v and its standard error by the delta method, in the steps of marginaleffects:
# coefficients are set in the fit, which then predicts.
mean_slope <- function(fit, data, v) {
  h <- 1e-4 * diff(range(data[[v]]))
  up <- replace(data, v, data[[v]] + h / 2)
  down <- replace(data, v, data[[v]] - h / 2)
  at <- function(b) {
    fit[["coefficients"]][names(b)] <- b
    mean(as.vector(predict(fit, newdata = up, type = "response")) -
           as.vector(predict(fit, newdata = down, type = "response"))) / h
  }
  found <- from("insight", "get_parameters")(fit)
  b <- stats::setNames(found$Estimate, found$Parameter)
  v <- from("insight", "get_varcov")(fit)[names(b), names(b)]
  slope <- vapply(seq_along(b), function(i) {
    d <- replace(0 * b, i, 1e-4 * max(abs(b[i]), 1e-2))
    (at(b + d) - at(b - d)) / (2 * sum(d))
  }, 0)
  c(at(b), sqrt(drop(slope %*% v %*% slope)))
}

test_that("what marginaleffects and modelsummary ask of a fit is that of glm()", {
  skip_if_not_installed("insight")
  skip_if_not_installed("broom")
  skip_if_not_installed("MASS")
  frames <- list(mtcars, NULL, mtcars, mtcars, mtcars, MASS::quine)
  fits <- pairs_of_fits()
  for (i in seq_along(fits)) {
    fit <- fits[[i]][[1L]]
    peer <- fits[[i]][[2L]]
    if (i %in% c(1L, 3L:5L)) {
      expect_equal(mean_slope(fit, frames[[i]], "wt"), mean_slope(peer, frames[[i]], "wt"),
                   tolerance = 1e-5)
    }
    eta <- c(-2, 0.1, 1.5)
    expect_equal(from("insight", "link_inverse")(fit)(eta), family(peer)$linkinv(eta))
    expect_equal(family(fit)$mu.eta(eta), family(peer)$mu.eta(eta))
    tidy <- from("broom", "tidy")
    expect_equal(as.data.frame(tidy(fit))[1:5], as.data.frame(tidy(peer)), tolerance = 1e-6)
    glance <- from("broom", "glance")
    both <- intersect(names(glance(fit)), names(glance(peer)))
    expect_true(all(c("AIC", "BIC", "logLik", "nobs") %in% both))
    expect_equal(unlist(lapply(glance(fit)[both], as.vector)),
                 unlist(lapply(glance(peer)[both], as.vector)), tolerance = 1e-6)
  }
})

test_that("profiles are those of glm()", {
  skip_if_not_installed("MASS")
  for (i in c(1L, 3L)) {
    fits <- pairs_of_fits()[[i]]
    a <- suppressWarnings(profile(fits[[1L]]))
    b <- suppressWarnings(profile(fits[[2L]]))
    expect_s3_class(a, "profile.glm")
    expect_identical(names(a), names(b))
    expect_equal(suppressWarnings(confint(a)), suppressWarnings(confint(b)), tolerance = 1e-4)
  }
  expect_refused("fit", profile(cl_glm(factor(cyl) ~ wt, mtcars, "categorical_logit")))
})

test_that("standardised parameters are those of glm()", {
  skip_if_not_installed("effectsize")
  skip_if_not_installed("datawizard")
  standardized <- getExportedValue("effectsize", "standardize_parameters")
  fits <- list(
    list(cl_glm(mpg ~ wt + hp, mtcars, "normal_id"), glm(mpg ~ wt + hp, data = mtcars)),
    list(cl_glm(am ~ wt, mtcars, "bernoulli_logit"), glm(am ~ wt, binomial, mtcars)))
  for (fit in fits) {
    for (method in c("refit", "posthoc")) {
      both <- lapply(fit, function(f) standardized(f, method = method, verbose = FALSE, ci = NULL))
      expect_equal(both[[1L]]$Std_Coefficient, both[[2L]]$Std_Coefficient, tolerance = 1e-6)
    }
  }
  both <- lapply(fits[[1L]], standardized, verbose = FALSE, two_sd = TRUE, ci = NULL)
  expect_equal(both[[1L]]$Std_Coefficient, both[[2L]]$Std_Coefficient, tolerance = 1e-6)
})
