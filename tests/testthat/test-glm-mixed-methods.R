# Methods of fits with random effects, and their errors.

d <- data.frame(g = factor(rep(letters[1:8], each = 6)), x = rep(1:6, 8),
                h = factor(rep(c("u", "v"), 24)))
set.seed(3)
d$y <- d$x / 2 + rnorm(8)[d$g] + rnorm(8, 0, 0.4)[d$g] * d$x + rnorm(48, 0, 0.5)
d$n <- rpois(48, exp(0.2 * d$x + rnorm(8, 0, 0.5)[d$g]))
line <- cl_glmm(y ~ x + (x || g), d, "normal_id")
count <- cl_glmm(n ~ x + (1 | g), d, "poisson_log")

test_that("accessors and generics of other packages", {
  expect_s3_class(count, c("cl_glmm", "cl_glm"))
  expect_equal(nobs(count), 48L)
  expect_equal(attr(logLik(count), "df"), 3)
  expect_equal(AIC(count), 6 - 2 * count$logLik)
  expect_equal(BIC(count), 3 * log(48) - 2 * count$logLik)
  expect_equal(extractAIC(count), c(3, AIC(count)))
  limits <- confint(count)
  error <- sqrt(diag(vcov(count)))
  expect_equal(limits, coef(count) + outer(error, qnorm(c(0.025, 0.975))), ignore_attr = TRUE)
  expect_equal(fitted(count), exp(count$linear.predictors))
  expect_equal(residuals(count, "response"), d$n - fitted(count), ignore_attr = TRUE)
  skip_if_not_installed("nlme")
  expect_equal(nlme::fixef(count), coef(count))
  expect_equal(dim(nlme::ranef(line)$g), c(8L, 2L))
  table <- as.data.frame(nlme::VarCorr(line))
  expect_equal(table$grp, c("g", "g", "Residual"))
  expect_equal(table$sdcor[3], sigma(line))
  expect_output(print(nlme::VarCorr(line)), "Std.Dev.")
  skip_if_not_installed("generics")
  tidied <- generics::tidy(line, conf.int = TRUE)
  expect_equal(tidied$effect, c("fixed", "fixed", "ran_pars", "ran_pars", "ran_pars"))
  expect_equal(tidied$term[3:5], c("sd__(Intercept)", "sd__x", "sd__Observation"))
  expect_equal(tidied$estimate[1:2], unname(coef(line)))
  expect_equal(generics::glance(count)$nobs, 48)
})

test_that("printed fits and summaries", {
  expect_output(print(line), "Random effects:.*Fixed effects:.*converged")
  expect_output(print(summary(count)), "z value.*Pr\\(>\\|z\\|\\)")
  expect_output(print(summary(line)), "t value")
})

test_that("predictions with and without random effects", {
  for (fit in list(line, count)) {
    expect_equal(predict(fit, d), predict(fit), ignore_attr = TRUE)
    expect_equal(unname(predict(fit, re.form = NA)), as.vector(cbind(1, d$x) %*% coef(fit)))
    expect_equal(predict(fit, d[9, ], type = "response"), fitted(fit)[9], ignore_attr = TRUE)
  }
  new <- data.frame(x = 2, g = c("b", "new"))
  expect_refused("newdata", predict(count, new))
  found <- predict(count, new, allow.new.levels = TRUE)
  expect_equal(unname(found[2]), sum(coef(count) * c(1, 2)))
  expect_equal(unname(found[1]), sum(coef(count) * c(1, 2)) + count$random$g["b", 1])
  error <- predict(count, new, re.form = NA, se.fit = TRUE)$se.fit[[1]]
  expect_equal(error, sqrt(c(c(1, 2) %*% vcov(count) %*% c(1, 2))))
  bent <- cl_glmm(y ~ poly(x, 2) + (1 | g:h), d, "normal_id")
  expect_equal(predict(bent, d[1:3, ]), predict(bent)[1:3], ignore_attr = TRUE)
})

test_that("missing values, subsets, updates and text", {
  e <- d
  e$y[3] <- NA
  e$g[10] <- NA
  fit <- cl_glm("y ~ x + (1 | g)", e, "normal_id", na.action = na.exclude)
  expect_equal(nobs(fit), 46L)
  expect_equal(which(is.na(fitted(fit))), c(3, 10), ignore_attr = TRUE)
  expect_length(predict(fit, re.form = NA), 48)
  expect_equal(dim(simulate(fit, 2, seed = 1)), c(48L, 2L))
  part <- cl_glmm(y ~ x + (1 | g), d, "normal_id", subset = g != "a")
  expect_equal(nrow(part$random$g), 7)
  smaller <- update(part, . ~ . - x)
  expect_equal(names(coef(smaller)), "(Intercept)")
  expect_equal(nobs(smaller), 42L)
})

test_that("simulated responses have the variances of the model", {
  expect_identical(simulate(count, 2, seed = 1), simulate(count, 2, seed = 1))
  values <- as.matrix(simulate(line, 2000, seed = 1))
  at <- cbind(1, d$x[1:6])
  v <- at %*% diag(c(line$variances[[1]], line$variances[[2]])) %*% t(at) +
    diag(sigma(line)^2, 6)
  expect_equal(cov(t(values[1:6, ])), v, tolerance = 0.15, ignore_attr = TRUE)
  kept <- as.matrix(simulate(line, 2000, seed = 1, re.form = NULL))
  expect_equal(apply(kept, 1, sd), rep(sigma(line), 48), tolerance = 0.1, ignore_attr = TRUE)
})

test_that("likelihood ratio tests", {
  table <- anova(count, cl_glmm(n ~ 1 + (1 | g), d, "poisson_log"))
  expect_equal(table$npar, c(2, 3))
  ratio <- 2 * diff(table$logLik)
  expect_equal(table$Chisq[2], ratio)
  expect_equal(table$`Pr(>Chisq)`[2], pchisq(ratio, 1, lower.tail = FALSE))
  reml <- update(line, method = "reml")
  expect_false(isTRUE(all.equal(reml$logLik, line$logLik)))
  smaller <- cl_glmm(y ~ 1 + (x || g), d, "normal_id", method = "reml")
  expect_equal(anova(reml, smaller)$logLik[2], line$logLik, tolerance = 1e-9)
  expect_refused("...", anova(count), anova(count, line))
})

test_that("fits by REML with different fixed effects are compared by maximum likelihood", {
  skip_if_not_installed("nlme")
  oats <- as.data.frame(nlme::Oats)
  fit <- cl_glmm(yield ~ nitro + Variety + (1 | Block / Variety), oats, method = "reml")
  # lme4 1.1-31
  expect_equal(extractAIC(fit), c(7, 615.1077), tolerance = 1e-6)
  expect_equal(drop1(fit)$AIC, c(615.1077, 676.3722, 614.2290), tolerance = 1e-6)
  expect_equal(AIC(fit), 592.8918, tolerance = 1e-6)
  expect_equal(extractAIC(update(fit, method = "ml")), extractAIC(fit))
  smaller <- update(fit, . ~ . - Variety)
  for (f in list(AIC, BIC, function(a, b) anova(a, b, refit = FALSE))) {
    expect_refused("...", f(fit, smaller), f(fit, update(fit, method = "ml")))
  }
  fewer <- update(fit, . ~ . - (1 | Block / Variety) + (1 | Block))
  expect_equal(AIC(fit, fewer)$AIC, c(AIC(fit), AIC(fewer)))
  expect_equal(anova(fit, fewer, refit = FALSE)$logLik, c(fewer$logLik, fit$logLik))
  expect_refused("object", step(fit, trace = 0))
})

test_that("responses that a family does not have are refused", {
  e <- transform(d, share = plogis(y), many = n + 1L, f = h)
  refused <- function(formula, ..., argument = "y") {
    expect_fault(cl_glmm(formula, e, ...), "argument", argument = argument)
  }
  for (family in list("bernoulli_logit", "binomial_logit", binomial, binomial("probit"))) {
    refused(share ~ x + (1 | g), family)
    refused(n ~ x + (1 | g), family, argument = if (identical(family, "binomial_logit"))
      "trials" else "y")
  }
  for (family in list("poisson_log", poisson, poisson("sqrt"), "neg_binomial_2_log")) {
    refused(y ~ x + (1 | g), family)
    refused(I(-n) ~ x + (1 | g), family)
  }
  refused(n ~ x + (1 | g), "binomial_logit", trials = 1)
  refused(y ~ x + (1 | g), Gamma("log"))
  # with the numbers of trials proportions are counts
  trials <- rep(4, 48)
  e$share <- round(4 * e$share) / 4
  expect_equal(cl_glmm(share ~ x + (1 | g), e, binomial, weights = trials)$logLik,
               cl_glmm(cbind(4 * share, 4 - 4 * share) ~ x + (1 | g), e, binomial)$logLik)
  expect_warning(cl_glm(y ~ x, transform(d, y = abs(y)), poisson), "quasipoisson",
                 class = "statcl_warning_counts")
})

test_that("the default family is normal, and none is chosen for cl_glm() or classes", {
  expect_equal(cl_glmm(y ~ x + (x || g), d)$logLik, line$logLik)
  expect_refused("family", cl_glm(y ~ x + (x || g), d))
  for (v in list(d$h, d$x > 3, as.character(d$h))) {
    expect_refused("family", cl_glmm(v ~ x + (1 | g), d))
  }
})

test_that("observations of weight 0 are left out", {
  w <- rep(0:2, 16)
  e <- transform(d, y = replace(y, 5, NA))
  left <- cl_glmm(y ~ x + (1 | g) + (1 | h), e, weights = w, subset = w > 0)
  fit <- cl_glmm(y ~ x + (1 | g) + (1 | h), e, weights = w, na.action = na.exclude)
  expect_equal(fit$logLik, left$logLik)
  expect_equal(nobs(fit), nobs(left))
  expect_equal(which(is.na(fitted(fit))), sort(c(5L, which(w == 0))), ignore_attr = TRUE)
  first <- cl_glmm(y ~ x + (1 | g), e, weights = as.numeric(g != "a"))
  expect_equal(rownames(first$random$g), letters[2:8])
})

test_that("predictions need the variables of the random terms that they use", {
  fit <- suppressMessages(cl_glmm(y ~ x + (x | g) + (1 | h), d))
  new <- data.frame(x = 1:2, g = c("a", "b"))
  part <- predict(fit, new, re.form = ~ (x | g), se.fit = TRUE, interval = "confidence")
  expect_equal(part, predict(fit, cbind(new, h = "u"), re.form = ~ (x | g), se.fit = TRUE,
                             interval = "confidence"))
  expect_equal(dim(predict(fit, data.frame(x = 1:2), re.form = NA, interval = "prediction")),
               c(2L, 3L))
  expect_refused("newdata", predict(fit, new))
})

test_that("lme4's functions for parts of fits", {
  skip_if_not_installed("lme4")
  from <- function(name) getExportedValue("lme4", name)
  fit <- cl_glmm(Reaction ~ Days + (Days | Subject), from("sleepstudy"))
  peer <- from("lmer")(Reaction ~ Days + (Days | Subject), from("sleepstudy"), REML = FALSE)
  names <- c("X", "y", "mu", "offset", "theta", "lower", "beta", "fixef", "sigma", "flist", "cnms",
             "is_REML", "n", "p", "n_rtrms", "n_rfacs")
  expect_equal(from("getME")(fit, names), from("getME")(peer, names), tolerance = 1e-4,
               ignore_attr = TRUE)
  expect_equal(from("ngrps")(fit), from("ngrps")(peer))
  expect_false(from("isSingular")(fit))
  expect_true(from("isSingular")(suppressMessages(cl_glmm(x ~ 1 + (1 | g), d))))
  expect_refused("name", from("getME")(fit, "Zt"))
})

test_that("emmeans", {
  skip_if_not_installed("emmeans")
  fit <- cl_glmm(y ~ x + h + (1 | g), d, "normal_id")
  table <- as.data.frame(emmeans::emmeans(fit, "h"))
  expect_equal(diff(table$emmean), coef(fit)[["hv"]])
})

test_that("formulas", {
  a <- suppressMessages(cl_glmm(y ~ x + (1 | h/g), d, "normal_id"))
  b <- suppressMessages(cl_glmm(y ~ x + (1 | h) + (1 | g:h), d, "normal_id"))
  expect_equal(a$logLik, b$logLik)
  expect_equal(names(a$random), c("g:h", "h"))
  a <- cl_glmm(y ~ x + (0 + x | g) + (1 | g), d, "normal_id")
  expect_equal(a$logLik, line$logLik)
  # a bar outside parentheses of a term is R's own
  expect_false(inherits(cl_glm(y ~ I(x > 2 | h == "u"), d, "normal_id"), "cl_glmm"))
})

test_that("errors name the argument", {
  expect_refused("formula", cl_glmm(y ~ x, d, "normal_id"),
                 cl_glmm(y ~ x + (1 | nobody), d, "normal_id"),
                 cl_glmm(y ~ x + (1 | one), transform(d, one = 1), "normal_id"),
                 cl_glmm(y ~ x + (1 | row), transform(d, row = 1:48), "normal_id"),
                 cl_glm(y ~ x * (1 | g), d, "normal_id"), cl_glm(~ (1 | g), d, "normal_id"))
  expect_refused("family", cl_glmm(g ~ x + (1 | h), d, "categorical_logit"))
  expect_refused("method", cl_glm(n ~ x + (1 | g), d, "poisson_log", method = "reml"),
                 cl_glm(n ~ x + (1 | g), d, "poisson_log", method = "firth"))
  expect_refused("weights", cl_glmm(y ~ x + (1 | g), d, "normal_id", weights = rep(0, 48)))
  expect_fault(hatvalues(count), "argument")
  expect_refused("re.form", predict(count, re.form = ~ (1 | h)))
})
