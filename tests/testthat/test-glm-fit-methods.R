# Methods of a fitted generalised linear model: summaries, predictions, plots; fits with priors, by
# sampling.

skip_on_cran() # long; run by ./dev check

test_on_host("the usual methods", {
  fit <- cl_glm(am ~ wt + hp, mtcars)
  peer <- glm(am ~ wt + hp, binomial, mtcars, control = list(epsilon = 1e-14))
  expect_output(print(fit), "log likelihood: -5.0295")
  expect_identical(formula(fit), am ~ wt + hp, ignore_formula_env = TRUE)
  expect_identical(family(fit)$family, "binomial")
  expect_identical(family(cl_glm(hp ~ wt, mtcars, "neg_binomial_2_log"))$link, "log")
  expect_equal(coef(summary(fit)), coef(summary(peer)), tolerance = 1e-6)
  expect_output(print(summary(fit)), "null deviance: 43.22")
  expect_equal(confint(fit, "wt"), confint.default(peer, "wt"), tolerance = 1e-7,
               ignore_attr = TRUE)
  expect_refused("parm", confint(fit, "foo"))
  expect_equal(extractAIC(fit), extractAIC(peer), tolerance = 1e-10)
  expect_equal(model.matrix(fit), model.matrix(peer))
  expect_identical(names(model.frame(fit)), c("am", "wt", "hp"))
  expect_identical(sigma(fit), 1)
  small <- update(fit, . ~ . - hp)
  expect_named(coef(small), c("(Intercept)", "wt"))
  table <- anova(small, fit)
  other <- anova(update(peer, . ~ . - hp), peer, test = "Chisq")
  expect_equal(table$`Pr(>Chi)`[2], other$`Pr(>Chi)`[2], tolerance = 1e-6)
  expect_equal(anova(fit, small)$LR[2], table$LR[2])
  by_term <- anova(fit)
  in_turn <- anova(peer, test = "Chisq")
  expect_equal(by_term$LR, in_turn$Deviance, tolerance = 1e-6)
  expect_identical(rownames(by_term), rownames(in_turn))
  expect_fault(anova(cl_glm(am ~ wt, mtcars, method = "map")), "argument")
  gears <- anova(cl_glm(factor(gear) ~ wt + hp, mtcars, "ordered_logistic"))
  expect_equal(gears$LR[2], 2 * (gears$logLik[2] - sum(table(mtcars$gear) *
                                                         log(table(mtcars$gear) / 32))))
  counts <- cl_glm(count ~ spray + offset(log(as.integer(spray))), InsectSprays, "poisson_log")
  expect_equal(anova(counts)$LR[2], counts$null.deviance - deviance(counts), tolerance = 1e-9)
  expect_fault(anova(fit, cl_glm(vs ~ wt, mtcars)), "argument")
  chosen <- step(cl_glm(am ~ wt + hp + qsec, mtcars, method = "map"), trace = 0)
  expect_s3_class(chosen, "cl_glm")
  expect_equal(drop1(fit)$AIC, drop1(peer)$AIC, tolerance = 1e-8)
})

test_on_host("the result of step() supports the methods of a fit", {
  kept <- step(cl_glm(am ~ wt, mtcars), trace = 0)
  expect_identical(class(formula(kept)), "formula")
  expect_identical(formula(kept), am ~ wt, ignore_formula_env = TRUE)
  expect_match(attr(anova(kept, update(kept, . ~ . + hp)), "heading")[2],
               "Model 1: am ~ wt\nModel 2: am ~ wt + hp\n", fixed = TRUE)
  expect_refused("object", anova(cl_glm(mtcars["wt"], mtcars$am)), says = "without a formula")
  expect_refused("...", anova(kept, 5), says = "must be fits of cl_glm()")
})

test_each_engine("a fit can be saved and restored", {
  fits <- list(cl_glm(am ~ wt + factor(cyl), mtcars),
               cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic"))
  for (fit in fits) {
    wanted <- predict(fit, mtcars, "response", se.fit = TRUE)
    file <- tempfile(fileext = ".rds")
    saveRDS(fit, file)
    expect_equal(predict(readRDS(file), mtcars, "response", se.fit = TRUE), wanted)
    unlink(file)
  }
})

test_on_host("standard errors of means are those of the delta method", {
  # By differences of the prediction with respect to all coefficients and cuts.
  numeric_error <- function(fit, new, type) {
    full <- c(coef(fit), if (fit$family == "ordered_logistic") fit$aux)
    at <- function(theta) {
      k <- names(coef(fit))
      fit$coefficients <- theta[k]
      if (fit$family == "ordered_logistic") fit$aux <- theta[setdiff(names(theta), k)]
      as.vector(predict(fit, new, type))
    }
    slope <- vapply(names(full), function(name) {
      h <- 1e-5 * max(1, abs(full[[name]]))
      up <- replace(full, name, full[[name]] + h)
      down <- replace(full, name, full[[name]] - h)
      (at(up) - at(down)) / (2 * h)
    }, at(full))
    sqrt(rowSums((slope %*% vcov(fit)) * slope))
  }
  fits <- list(cl_glm(am ~ wt + hp, mtcars), cl_glm(carb ~ wt + hp, mtcars, "poisson_log"),
               cl_glm(mpg ~ wt + hp, mtcars, "normal_id"),
               cl_glm(factor(gear) ~ wt + hp, mtcars, "ordered_logistic"),
               cl_glm(factor(carb > 2) ~ wt + hp, mtcars, "categorical_logit"),
               cl_glm(factor(pmin(carb, 3)) ~ wt, mtcars, "categorical_logit"))
  new <- mtcars[c(1, 5, 20), ]
  for (fit in fits) for (type in c("link", "response")) {
    found <- predict(fit, new, type, se.fit = TRUE)
    expect_equal(as.vector(found$se.fit), numeric_error(fit, new, type), tolerance = 1e-6)
    expect_equal(found$fit, predict(fit, new, type))
    bounds <- predict(fit, new, type, interval = "confidence", level = 0.9)
    inside <- function(k) if (length(dim(bounds)) == 3) bounds[, , k] else bounds[, k]
    expect_true(all(inside("lwr") <= found$fit & found$fit <= inside("upr")))
    if (is.matrix(found$fit) && type == "response") {
      expect_equal(unname(rowSums(found$fit)), rep(1, 3))
      expect_true(all(inside("lwr") > 0 & inside("upr") < 1))
    }
  }
  peer <- lm(mpg ~ wt + hp, mtcars)
  expect_equal(predict(fits[[3]], new, interval = "confidence"),
               predict(peer, new, interval = "confidence"), tolerance = 1e-10)
})

test_on_host("simulated responses are like the response", {
  draw <- function(...) simulate(cl_glm(..., data = mtcars), nsim = 400, seed = 3)
  counts <- draw(carb ~ wt, family = "poisson_log")
  expect_identical(dim(counts), c(32L, 400L))
  expect_identical(rownames(counts), rownames(mtcars))
  fit <- cl_glm(carb ~ wt, mtcars, "poisson_log")
  expect_equal(rowMeans(counts), fitted(fit), tolerance = 0.05)
  expect_identical(counts, draw(carb ~ wt, family = "poisson_log"))
  expect_false(is.null(attr(counts, "seed")))
  classes <- draw(factor(gear) ~ wt, family = "ordered_logistic")
  expect_identical(levels(classes[[1]]), c("3", "4", "5"))
  share <- vapply(levels(classes[[1]]), function(k) rowMeans(classes == k), numeric(32))
  expect_lt(max(abs(share - fitted(cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic")))), 0.1)
  expect_identical(levels(draw(factor(am) ~ wt)[[2]]), c("0", "1"))
  expect_type(draw(I(am == 1) ~ wt)[[1]], "logical")
  expect_lte(max(draw(cbind(gear, 5 - gear) ~ wt, family = "binomial_logit")), 5)
  weighted <- cl_glm(mpg ~ wt, mtcars, "normal_id", weights = qsec)
  spread <- simulate(weighted, 400, seed = 3)
  expect_equal(mean(apply(spread, 1, var) * mtcars$qsec), sigma(weighted)^2, tolerance = 0.1)
})

# ---- priors --------------------------------------------------------------------------------------

test_each_engine("the mode with priors is where the gradient is zero", {
  fit <- cl_glm(am ~ wt + hp, mtcars, method = "map",
                prior = list(intercept = prior_normal(0, 10), coefficients = prior_normal(0, 0.5),
                             hp = prior_student_t(3, 0, 0.1)))
  objective <- function(b) {
    b <- unname(b)
    eta <- b[1] + b[2] * mtcars$wt + b[3] * mtcars$hp
    sum(dbinom(mtcars$am, 1, plogis(eta), log = TRUE)) + dnorm(b[1], 0, 10, log = TRUE) +
      dnorm(b[2], 0, 0.5, log = TRUE) + dt(b[3] / 0.1, 3, log = TRUE) - log(0.1)
  }
  expect_equal(fit$objective, objective(coef(fit)), tolerance = 1e-12)
  h <- c(1e-4, 1e-5, 1e-6)
  for (k in 1:3) {
    step <- replace(numeric(3), k, h[k])
    slope <- (objective(coef(fit) + step) - objective(coef(fit) - step)) / (2 * h[k])
    expect_lt(abs(slope) * sqrt(vcov(fit)[k, k]), 1e-5)
  }
  expect_match(fit$prior[["hp"]], "student_t\\(3, 0, 0.1\\)$")
  expect_output(print(summary(fit)), "wt +normal\\(0, 0.5\\)")
  own <- cl_glm(am ~ wt + hp, mtcars, method = "map", prior = list(
    intercept = function(x) dnorm(x, 0, 10, log = TRUE), wt = prior_normal(0, 0.5),
    hp = prior_student_t(3, 0, 0.1)))
  expect_equal(coef(own), coef(fit), tolerance = 1e-6)
})

test_on_host("weak priors hardly change the maximum likelihood estimate, for all families", {
  flat <- prior_normal(0, 1e6)
  cases <- list(list(am ~ wt, "bernoulli_logit"),
                list(cbind(carb, 9 - carb) ~ wt, "binomial_logit"), list(mpg ~ wt, "normal_id"),
                list(carb ~ wt, "poisson_log"), list(hp ~ wt, "neg_binomial_2_log"),
                list(factor(carb > 2) ~ wt, "categorical_logit"),
                list(factor(gear) ~ wt, "ordered_logistic"))
  for (case in cases) {
    own <- c(aux_parameter(case[[2]]))
    prior <- list(coefficients = flat)
    if (case[[2]] != "ordered_logistic") prior$intercept <- flat
    if (!is.na(own)) prior[[own]] <- flat
    ml <- cl_glm(case[[1]], mtcars, case[[2]])
    map <- cl_glm(case[[1]], mtcars, case[[2]], method = "map", prior = prior)
    expect_equal(coef(map), coef(ml), tolerance = 1e-6)
    expect_true(map$converged)
    # sigma by maximum likelihood, not the unbiased estimate
    if (case[[2]] == "normal_id") expect_equal(map$aux, ml$aux * sqrt(30 / 32), tolerance = 1e-6)
  }
})

test_on_host("weak priors depend only on the observations that are used", {
  w <- rep(0:2, length.out = 32)
  used <- mtcars[rep(1:32, w), ]
  for (family in c("bernoulli_logit", "poisson_log")) {
    weighted <- cl_glm(am ~ wt + qsec, mtcars, family, "map", weights = w)
    expect_identical(weighted$prior, cl_glm(am ~ wt + qsec, used, family, "map")$prior)
  }
  w <- pmin(w, 1)
  expect_identical(cl_glm(mpg ~ wt, mtcars, "normal_id", "map", weights = w)$prior,
                   cl_glm(mpg ~ wt, mtcars[w > 0, ], "normal_id", "map")$prior)
})

test_each_engine("with priors there may be more columns than observations", {
  x <- outer(1:10, 1:20, function(i, j) cos(i * j))
  y <- rep(0:1, 5)
  fit <- cl_glm(x, y, method = "map", prior = prior_normal(0, 1))
  expect_true(fit$converged)
  expect_false(anyNA(coef(fit)))
  # ridge regression in closed form
  z <- x[, 1] + sin(1:10)
  ridge <- cl_glm(x, z, "normal_id", method = "map", intercept = FALSE,
                  prior = list(coefficients = prior_normal(0, 0.5),
                               sigma = prior_lognormal(log(0.3), 0.05)))
  sigma <- ridge$aux[[1]]
  expect_equal(unname(coef(ridge)), as.vector(solve(crossprod(x) + diag(sigma^2 / 0.25, 20),
                                                    crossprod(x, z))), tolerance = 1e-6)
})

# ---- sampling ------------------------------------------------------------------------------------

test_on_host("draws have the exact posterior of a linear model", {
  # sigma known by a sharp prior: then the posterior is normal
  fit <- cl_glm(mpg ~ wt + hp, mtcars, "normal_id", method = "mcmc",
                prior = list(intercept = prior_normal(0, 50), coefficients = prior_normal(0, 2),
                             sigma = prior_normal(2.5, 1e-4)),
                control = list(seed = 1, iter = 1000))
  x <- model.matrix(~ wt + hp, mtcars)
  covariance <- solve(crossprod(x) / 2.5^2 + diag(1 / c(50, 2, 2)^2))
  mean <- as.vector(covariance %*% crossprod(x, mtcars$mpg) / 2.5^2)
  table <- summary(fit$draws)
  expect_lt(max(abs(coef(fit) - mean) / table$mcse[1:3]), 4)
  expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(covariance)), tolerance = 0.08)
  expect_true(fit$converged)
  bounds <- predict(fit, mtcars[1:2, ], interval = "confidence", level = 0.9)
  exact <- x[1:2, ] %*% mean
  error <- sqrt(diag(x[1:2, ] %*% covariance %*% t(x[1:2, ])))
  expect_equal(unname(bounds), unname(cbind(exact, exact - 1.645 * error, exact + 1.645 * error)),
               tolerance = 0.01)
})

test_on_host("all families are sampled, and predict from draws", {
  cases <- list(list(am ~ wt, "bernoulli_logit"),
                list(cbind(carb, 9 - carb) ~ wt, "binomial_logit"), list(mpg ~ wt, "normal_id"),
                list(carb ~ wt, "poisson_log"), list(hp ~ wt, "neg_binomial_2_log"),
                list(factor(pmin(carb, 3)) ~ wt, "categorical_logit"),
                list(factor(gear) ~ wt, "ordered_logistic"))
  for (case in cases) {
    fit <- cl_glm(case[[1]], mtcars, case[[2]], method = "mcmc",
                  control = list(chains = 2, warmup = 150, iter = 400, seed = 2))
    map <- cl_glm(case[[1]], mtcars, case[[2]], method = "map")
    expect_lt(max(abs(coef(fit) - coef(map)) / sqrt(diag(vcov(map)))[names(coef(map))]), 0.7)
    expect_true(all(summary(fit$draws)$rhat < 1.05))
    expect_setequal(dimnames(fit$draws$draws)[[3]], c(names(coef(fit)), names(fit$aux)))
    expect_identical(rownames(confint(fit)), rownames(vcov(fit)))
    found <- predict(fit, mtcars[1:3, ], "response", se.fit = TRUE)
    expect_equal(found$fit, fitted(fit)[if (is.matrix(fitted(fit))) cbind(1:3, rep(1:3, each = 3))
                                        else 1:3], tolerance = 0.2, ignore_attr = TRUE)
    expect_true(all(found$se.fit > 0))
    expect_identical(dim(simulate(fit, 3, seed = 1)), c(32L, 3L))
    expect_output(print(summary(fit)), "Priors:")
  }
})

test_each_engine("chains in lockstep and one after another give the same draws", {
  arguments <- list(chains = 2, warmup = 60, iter = 60, seed = 5)
  one <- cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic", method = "mcmc",
                control = c(arguments, batch = FALSE))
  two <- cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic", method = "mcmc",
                control = c(arguments, batch = TRUE))
  expect_equal(one$draws$draws[1:5, , ], two$draws$draws[1:5, , ], tolerance = 1e-6)
})

test_on_device("chains in worker processes give the same draws", {
  arguments <- list(chains = 2, warmup = 40, iter = 20, seed = 5)
  few <- function(...) {
    expect_warning(fit <- cl_glm(am ~ wt, mtcars, method = "mcmc", control = c(arguments, ...)),
                   "increase 'iter'", class = "statcl_warning_sampling")
    fit
  }
  here <- few(batch = FALSE)
  there <- few(workers = 2)
  expect_equal(there$draws$draws[1:5, , ], here$draws$draws[1:5, , ], tolerance = 1e-6)
})

# ---- pictures ------------------------------------------------------------------------------------

test_that("plots return the values that they show", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  on_host({
    fit <- cl_glm(am ~ wt + factor(gear > 3), mtcars[-3, ], method = "map")
    drawn <- plot(fit)
    expect_named(drawn, c("coefficients", "residuals", "calibration"))
    expect_equal(drawn$coefficients$estimate, unname(coef(fit)[-1] * c(sd(mtcars$wt[-3]), 1)))
    expect_equal(sum(drawn$calibration$count), 31)
    expect_equal(sum(drawn$residuals$residual * drawn$residuals$weight),
                 sum(residuals(fit, "response")))
    counts <- plot(cl_glm(carb ~ wt, mtcars, "poisson_log"), type = "residuals")
    expect_equal(nrow(counts$residuals), 32)
    expect_named(plot(cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic")),
                 c("coefficients", "calibration"))
    expect_named(plot(cl_glm(am ~ 1, mtcars)), c("residuals", "calibration"))
    expect_refused("type", plot(fit, type = "foo"), plot(fit, type = "trace"),
                   plot(cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic"), type = "residuals"))
  })
})

# ---- as glm() has them ---------------------------------------------------------------------------

test_on_host("limits of profile intervals have the stated likelihood ratio", {
  # the coefficient fixed by an offset
  fit <- cl_glm(case ~ spontaneous + induced, infert)
  ends <- confint(fit, method = "profile", level = 0.9)
  for (name in c("spontaneous", "induced")) for (end in ends[name, ]) {
    part <- glm(reformulate(setdiff(c("spontaneous", "induced"), name), "case"), binomial, infert,
                offset = end * infert[[name]], control = list(epsilon = 1e-13))
    expect_equal(2 * (fit$logLik - as.numeric(logLik(part))), qchisq(0.9, 1), tolerance = 1e-5)
  }
  peer <- suppressMessages(confint(glm(carb ~ wt + hp, poisson, mtcars)))
  fit <- cl_glm(carb ~ wt + hp, mtcars, "poisson_log")
  expect_equal(confint(fit, method = "profile"), peer, tolerance = 1e-4, ignore_attr = TRUE)
  expect_equal(confint(fit, 2:1, method = "profile"), confint(fit, method = "profile")[2:1, ])
  # phi and cuts are among the other parameters
  fit <- cl_glm(breaks ~ wool, warpbreaks, "neg_binomial_2_log")
  end <- confint(fit, "woolB", method = "profile")[2]
  y <- warpbreaks$breaks
  log_density <- function(p) {
    sum(dnbinom(y, size = exp(p[2]), mu = exp(p[1] + end * (warpbreaks$wool == "B")), log = TRUE))
  }
  other <- optim(c(3, 2), log_density, control = list(fnscale = -1, reltol = 1e-15))$value
  expect_equal(2 * (fit$logLik - other), qchisq(0.95, 1), tolerance = 1e-6)
  ordered <- cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic")
  ends <- confint(ordered, method = "profile")
  expect_identical(rownames(ends), c("wt", "3|4", "4|5"))
  expect_true(all(ends[, 1] < c(coef(ordered), ordered$aux)))
  linear <- cl_glm(mpg ~ wt, mtcars, "normal_id")
  expect_equal(confint(linear, method = "profile"), confint(lm(mpg ~ wt, mtcars)))
  expect_refused("method", confint(cl_glm(am ~ wt, mtcars, method = "map"), method = "profile"),
                 confint(linear, method = "bootstrap"))
  expect_refused("levels", confint(linear, levels = 0.9))
  # collinear columns, and a likelihood that increases without bound
  twice <- transform(mtcars, twice = 2 * wt)
  expect_identical(anyNA(confint(cl_glm(am ~ wt + twice, twice), "twice", method = "profile")),
                   TRUE)
  apart <- suppressWarnings(cl_glm(c(0, 0, 0, 1, 1, 1) ~ I(1:6)))
  expect_identical(confint(apart, method = "profile")[2, 2], NA_real_)
})

test_on_host("anova() selects tests by name", {
  fit <- cl_glm(am ~ wt + hp, mtcars)
  expect_identical(anova(fit, test = "Chisq"), anova(fit))
  small <- cl_glm(am ~ wt, mtcars)
  expect_identical(anova(small, fit, test = "LRT"), anova(small, fit))
  expect_refused("test", anova(fit, test = "F"), anova(fit, test = "Rao"))
  fit <- cl_glm(mpg ~ wt + factor(cyl), mtcars, "normal_id")
  peer <- lm(mpg ~ wt + factor(cyl), mtcars)
  found <- anova(fit, test = "F")
  expect_equal(found$F[-1], anova(peer)$`F value`[1:2], tolerance = 1e-9)
  expect_equal(found$`Pr(>F)`[-1], anova(peer)$`Pr(>F)`[1:2], tolerance = 1e-8)
  both <- anova(cl_glm(mpg ~ wt, mtcars, "normal_id"), fit, test = "F")
  expect_equal(both$F[2], anova(lm(mpg ~ wt, mtcars), peer)$F[2], tolerance = 1e-9)
  expect_output(print(both), "Analysis of variance")
})

test_on_host("weights() agrees with glm()", {
  counts <- data.frame(n = c(4, 2, 5, 0, 3, 6), y = c(1, 1, 4, 0, 1, 5), x = c(1:5, NA),
                       w = c(1, 2, 1, 3, 1, 2))
  expect_equal(weights(cl_glm(am ~ wt, mtcars)), weights(glm(am ~ wt, binomial, mtcars)))
  fit <- cl_glm(cbind(y, n - y) ~ x, counts, "binomial_logit", na.action = na.exclude)
  peer <- glm(cbind(y, n - y) ~ x, binomial, counts, na.action = na.exclude)
  expect_equal(weights(fit), weights(peer))
  expect_equal(weights(fit, "working"), weights(peer, "working"), tolerance = 1e-6)
  expect_equal(weights(cl_glm(mpg ~ wt, mtcars, "normal_id", weights = qsec)),
               setNames(mtcars$qsec, rownames(mtcars)))
  ordered <- cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic")
  expect_length(weights(ordered), 32)
  expect_refused("type", weights(ordered, "working"))
})

test_that("the option na.action is used, and omitted rows are restored in all results by row", {
  d <- mtcars
  d$wt[3] <- NA
  old <- options(na.action = "na.exclude")
  on.exit(options(old))
  on_host({
    fit <- cl_glm(vs ~ wt, d)
    expect_length(residuals(fit), 32)
    expect_identical(which(is.na(weights(fit))), c(`Datsun 710` = 3L))
    for (fit in list(fit, cl_glm(factor(gear) ~ wt, d, "ordered_logistic"))) {
      drawn <- simulate(fit, 2, seed = 1)
      expect_identical(rownames(drawn), rownames(d))
      expect_identical(unname(which(is.na(drawn[[2]]))), 3L)
    }
    options(na.action = "na.fail")
    expect_error(cl_glm(vs ~ wt, d), "missing values")
    options(na.action = "na.omit")
    expect_length(residuals(cl_glm(vs ~ wt, d)), 31)
    expect_identical(nrow(simulate(cl_glm(vs ~ wt, d), 1)), 31L)
  })
})

test_on_host("predictions from a fit with NA coefficients give lm()'s warning", {
  d <- transform(mtcars, twice = 2 * wt)
  fit <- cl_glm(mpg ~ wt + twice, d, "normal_id")
  expect_silent(predict(fit))
  expect_warning(found <- predict(fit, d[1:2, ]), "rank-deficient fit may be misleading",
                 class = "statcl_warning_rank")
  expect_equal(found, predict(fit)[1:2])
})

test_that("plot(which = 1) is the residual plot of plot.lm()", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  on_host({
    fit <- cl_glm(carb ~ wt, mtcars, "poisson_log")
    expect_named(plot(fit, which = 1), "residuals")
    expect_refused("which", plot(fit, which = 2), plot(fit, type = "trace", which = 1))
  })
})
