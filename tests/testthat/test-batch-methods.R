# Methods of regressions by group, held against those of lm() and glm().

test_that("methods of cl_batch_lm() are those of lm(), by group", {
  skip_if_not_installed("generics")
  d <- as.data.frame(ChickWeight)
  lm_of <- function(g) lm(weight ~ Time + offset(Time / 2), d, subset = Diet == g)
  new <- data.frame(Time = c(1, 5, 30))
  each_engine({
    fit <- cl_batch_lm(weight ~ Time + offset(Time / 2), d, group = Diet)
    wide <- generics::tidy(fit, conf.int = TRUE, conf.level = 0.9)
    for (g in levels(d$Diet)) {
      one <- lm_of(g)
      at <- d$Diet == g
      expect_close(coef(fit)[g, ], coef(one), 1e-11)
      expect_close(confint(fit, level = 0.9)[g, , ], confint(one, level = 0.9), 1e-11)
      expect_identical(dimnames(confint(fit)[g, , ]), dimnames(confint(one)))
      expect_close(wide$conf.high[wide$group == g], confint(one, level = 0.9)[, 2], 1e-11)
      expect_close(fitted(fit)[at], fitted(one), 1e-11)
      expect_close(residuals(fit)[at], residuals(one), 1e-11, scale = 100)
      expect_close(deviance(fit)[[g]], deviance(one), 1e-11)
      expect_close(as.numeric(logLik(fit))[as.integer(g)], as.numeric(logLik(one)), 1e-12)
      expect_close(BIC(fit)[[as.integer(g)]], BIC(one), 1e-12)
      for (interval in c("confidence", "prediction")) {
        expect_close(predict(fit, cbind(new, Diet = g), interval = interval),
                     predict(one, new, interval = interval), 1e-11)
      }
      expect_close(predict(fit, new, group = rep(g, 3), se.fit = TRUE)$se.fit,
                   predict(one, new, se.fit = TRUE)$se.fit, 1e-11)
    }
    expect_identical(predict(fit), fitted(fit))
    expect_identical(is.na(predict(fit, data.frame(Time = 1, Diet = c("4", "9")))),
                     c(`1` = FALSE, `2` = TRUE))
    expect_close(generics::glance(fit)$AIC, vapply(levels(d$Diet), function(g) AIC(lm_of(g)), 0),
                 1e-12)
  })
})

test_that("summaries and plots of regressions by group show all groups", {
  fit <- suppressWarnings(cl_batch_lm(weight ~ Time + I(Time^2), ChickWeight, group = Chick))
  table <- summary(fit)$coefficients
  expect_equal(table[, "Median"], apply(coef(fit), 2, median, na.rm = TRUE))
  expect_identical(table["Time", "p < 0.05"],
                   sum(abs(coef(fit) / fit$std.error)[, 2] > qt(0.975, pmax(fit$df.residual, 1)),
                       na.rm = TRUE) + 0)
  expect_output(print(summary(fit)), "50 groups of 2 to 12 observations")
  expect_output(print(fit), "# 1 group not fitted: fewer rows than coefficients")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  drawn <- plot(fit)
  expect_identical(names(drawn), colnames(coef(fit)))
  expect_identical(nrow(drawn$Time), 49L)
  expect_false(is.unsorted(drawn$Time$estimate))
})

test_that("methods of regressions by group reject what does not fit them", {
  fit <- cl_batch_lm(weight ~ Time, ChickWeight, group = Diet)
  expect_refused("parm", confint(fit, "Space"))
  expect_refused("group", predict(fit, data.frame(Time = 1)),
                 predict(fit, data.frame(Time = 1:2, Diet = 1), group = 1))
  expect_refused("newdata", predict(fit, data.frame(Diet = 1)))
  plain <- cl_batch_lm(cbind(1, 1:8), sin(1:8), rep(1:2, each = 4))
  expect_close(predict(plain, cbind(1, 1:8), group = rep(1:2, each = 4)), fitted(plain), 1e-12)
})
