# Fits with random effects next to those of lme4: conditional variances, profile intervals, standard
# errors of variances, predictions.

from <- function(name) getExportedValue("lme4", name) # lme4 is not in Suggests
sleep_fit <- function(method = "ml") {
  cl_glmm(Reaction ~ Days + (Days | Subject), from("sleepstudy"), "normal_id", method)
}
cow_fit <- function() {
  cl_glmm(cbind(incidence, size - incidence) ~ period + (1 | herd), from("cbpp"), binomial)
}
paste_fit <- function() {
  suppressMessages(cl_glmm(strength ~ 1 + (1 | batch / cask), from("Pastes"), "normal_id", "reml"))
}

test_that("conditional variances of effects are those of lme4", {
  skip_if_not_installed("lme4")
  skip_if_not_installed("nlme")
  pairs <- list(
    list(sleep_fit(), from("lmer")(Reaction ~ Days + (Days | Subject), from("sleepstudy"),
                                   REML = FALSE)),
    list(cow_fit(), from("glmer")(cbind(incidence, size - incidence) ~ period + (1 | herd),
                                  from("cbpp"), binomial)),
    list(paste_fit(), from("lmer")(strength ~ 1 + (1 | batch / cask), from("Pastes"))))
  each_engine(for (fits in pairs) {
    found <- nlme::ranef(fits[[1]], condVar = TRUE)
    wanted <- from("ranef")(fits[[2]], condVar = TRUE)
    for (name in names(wanted)) {
      rows <- rownames(wanted[[name]])
      at <- match(rows, rownames(found[[name]]))
      expect_equal(attr(found[[name]], "postVar")[, , at], attr(wanted[[name]], "postVar")[, , ],
                   tolerance = 2e-3, ignore_attr = TRUE)
    }
    table <- as.data.frame(found)
    expect_equal(names(table), c("grpvar", "term", "grp", "condval", "condsd"))
    expect_equal(table$condsd[1]^2, attr(found[[1]], "postVar")[1, 1, 1])
  })
})

test_that("conditional variances of weighted fits are those of the textbook, and are plotted", {
  skip_if_not_installed("lme4")
  skip_if_not_installed("nlme")
  d <- transform(from("sleepstudy"), w = rep(c(1, 3, 0.5), 60), g = rep(1:6, 30))
  fit <- cl_glmm(Reaction ~ Days + (Days | Subject) + (1 | g), d, "normal_id", weights = w)
  z <- cbind(model.matrix(~ 0 + Subject, d), model.matrix(~ 0 + Subject, d) * d$Days,
             model.matrix(~ 0 + factor(g), d))
  v <- matrix(0, 42, 42)
  v[1:36, 1:36] <- kronecker(fit$variances[[1]], diag(18))
  v[37:42, 37:42] <- diag(c(fit$variances[[2]]), 6)
  rest <- diag(sigma(fit)^2 / d$w)
  left <- v - v %*% t(z) %*% solve(z %*% v %*% t(z) + rest) %*% z %*% v
  found <- lapply(nlme::ranef(fit, condVar = TRUE), attr, "postVar")
  for (l in c(1, 7, 18)) {
    expect_equal(found$Subject[, , l], left[c(l, l + 18), c(l, l + 18)], tolerance = 1e-6,
                 ignore_attr = TRUE)
  }
  expect_equal(c(found$g), diag(left)[37:42], tolerance = 1e-6, ignore_attr = TRUE)
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_silent(plot(nlme::ranef(fit, condVar = TRUE)))
  expect_silent(plot(nlme::ranef(fit)))
})

test_that("profile intervals are those of lme4", {
  skip_if_not_installed("lme4")
  # confint(lmer(REML = FALSE), oldNames = FALSE), lme4 1.1-31
  wanted <- rbind("sd_(Intercept)|Subject" = c(14.38143, 37.71601),
                  "cor_Days.(Intercept)|Subject" = c(-0.4815004, 0.6849862),
                  "sd_Days|Subject" = c(3.801165, 8.753367), sigma = c(22.898266, 28.857997),
                  "(Intercept)" = c(237.680696, 265.129515), Days = c(7.358653, 13.575919))
  each_engine({
    found <- confint(sleep_fit(), method = "profile")
    expect_identical(rownames(found), rownames(wanted))
    expect_equal(found, wanted, tolerance = 1e-4, ignore_attr = TRUE)
  })
})

test_that("profile intervals of fits by REML, of other families and of nested terms", {
  skip_if_not_installed("lme4")
  reml <- sleep_fit("reml")
  expect_equal(confint(reml, "Days", method = "profile")[1, ], c(7.358653, 13.575919),
               tolerance = 1e-5, ignore_attr = TRUE)
  expect_equal(confint(reml, "theta_", 0.5, method = "profile")[4, ], c(24.57, 26.61),
               tolerance = 2e-3, ignore_attr = TRUE)
  found <- confint(cow_fit(), method = "profile")
  expect_equal(found, rbind(c(0.3460732, 1.0999746), c(-1.901212, -0.947754),
                            c(-1.6167833, -0.4077631), c(-1.8010244, -0.5115361),
                            c(-2.5007506, -0.8007553)), tolerance = 2e-4, ignore_attr = TRUE)
  found <- confint(paste_fit(), method = "profile")
  expect_equal(found, rbind(c(2.1579337, 4.053589), c(0, 2.946591), c(0.6520234, 1.085448),
                            c(58.6636504, 61.443016)), tolerance = 1e-4, ignore_attr = TRUE)
  expect_refused("parm", confint(reml, "Nights", method = "profile"))
  expect_refused("method", confint(reml, method = "guess"))
})

test_that("standard errors of standard deviations are from the second derivatives", {
  skip_if_not_installed("lme4")
  skip_if_not_installed("generics")
  fit <- sleep_fit()
  d <- from("sleepstudy")
  x <- cbind(1, d$Days)
  value <- function(p) {
    s <- matrix(c(p[1]^2, p[1] * p[2] * p[3], p[1] * p[2] * p[3], p[3]^2), 2)
    v <- (x %*% s %*% t(x)) * outer(d$Subject, d$Subject, `==`) + diag(p[4]^2, 180)
    root <- chol(v)
    left <- backsolve(root, d$Reaction - x %*% p[5:6], transpose = TRUE)
    sum(log(diag(root))) + sum(left^2) / 2
  }
  r <- attr(nlme::VarCorr(fit)$Subject, "correlation")[2]
  at <- c(sqrt(diag(fit$variances[[1]]))[1], r, sqrt(diag(fit$variances[[1]]))[2], sigma(fit),
          coef(fit))
  errors <- sqrt(diag(solve(optimHess(at, value, control = list(parscale = abs(at), ndeps =
                                                                  rep(1e-3, 6))))))
  table <- as.data.frame(generics::tidy(fit))
  expect_equal(table$std.error[match(c("sd__(Intercept)", "cor__(Intercept).Days", "sd__Days",
                                       "sd__Observation"), table$term)], unname(errors[1:4]),
               tolerance = 1e-3)
  cow <- cow_fit()
  # half of the quadratic approximation of the profile near its top
  near <- confint(cow, "theta_", 0.02, method = "profile")
  expect_equal(diff(near[1, ]) / 2 / qnorm(0.51), spread_errors(cow)[[1]], tolerance = 1e-3,
               ignore_attr = TRUE)
})

test_that("predictions with some random terms, and their intervals", {
  skip_if_not_installed("lme4")
  d <- from("Penicillin")
  fit <- cl_glmm(diameter ~ 1 + (1 | plate) + (1 | sample), d, "normal_id", "reml")
  peer <- from("lmer")(diameter ~ 1 + (1 | plate) + (1 | sample), d)
  for (form in list(~ (1 | plate), ~ (1 | sample), NA, NULL)) {
    wanted <- predict(peer, re.form = form)
    expect_equal(predict(fit, re.form = form), wanted, tolerance = 1e-5)
    expect_equal(predict(fit, d[5:9, ], re.form = form), wanted[5:9], tolerance = 1e-5)
  }
  expect_refused("re.form", predict(fit, re.form = ~ (1 | cup)))
  fit <- sleep_fit("reml")
  new <- data.frame(Days = c(0, 4))
  x <- cbind(1, new$Days)
  for (interval in c("confidence", "prediction")) {
    found <- predict(fit, new, re.form = NA, interval = interval, level = 0.9)
    v <- x %*% vcov(fit) %*% t(x) + if (interval == "prediction")
      x %*% fit$variances[[1]] %*% t(x) + diag(sigma(fit)^2, 2) else 0
    expect_equal(found[, "upr"] - found[, "fit"], qnorm(0.95) * sqrt(diag(v)), ignore_attr = TRUE)
    expect_equal(found[, "fit"], drop(x %*% coef(fit)), ignore_attr = TRUE)
  }
  cow <- cow_fit()
  found <- predict(cow, data.frame(period = "2"), "response", NA, interval = "confidence")
  link <- predict(cow, data.frame(period = "2"), re.form = NA, se.fit = TRUE)
  expect_equal(found[1, ], plogis(link$fit + c(0, -1, 1) * qnorm(0.975) * link$se.fit),
               ignore_attr = TRUE)
})

test_that("crossed effects of many answers are those of lme4", {
  skip_if_not_installed("lme4")
  fit <- cl_glmm(r2 ~ Anger + Gender + btype + (1 | id) + (1 | item), from("VerbAgg"), binomial)
  # glmer(), lme4 1.1-31
  expect_gt(fit$logLik, -4084.300879)
  expect_equal(fit$logLik, -4084.300879, tolerance = 1e-6)
  expect_equal(unname(coef(fit)), c(-0.32928922, 0.05742923, 0.32055371, -1.05807443, -2.10799326),
               tolerance = 2e-3)
  expect_equal(sqrt(c(fit$variances$id, fit$variances$item)), c(1.340181756, 0.727114417),
               tolerance = 2e-3)
  expect_equal(unname(sqrt(diag(vcov(fit)))), c(0.43508588, 0.016802727, 0.19166218, 0.37006878,
                                                0.37145862), tolerance = 5e-3)
})
