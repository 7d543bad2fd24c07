# Generalised linear models by group, held against glm().

exact <- list(epsilon = 1e-15, maxit = 100)
# glm() takes a thousandth of epsilon for the rank
exact_rank <- list(epsilon = 1e-11, maxit = 100)

expect_group <- function(fit, g, one, tolerance = 1e-8) {
  table <- suppressWarnings(summary(one))$coefficients
  known <- !is.na(coef(one))
  expect_identical(is.na(coef(fit)[g, ]), is.na(coef(one)))
  expect_close(coef(fit)[g, known], coef(one)[known], tolerance,
               scale = max(abs(coef(one)), 1e-3, na.rm = TRUE))
  expect_close(fit$std.error[g, known], table[, 2], tolerance)
  expect_close(fit$deviance[[g]], deviance(one), 1e-8, scale = 1)
  expect_identical(fit$df.residual[[g]], one$df.residual)
  expect_identical(fit$rank[[g]], one$rank)
  at <- match(g, rownames(coef(fit)))
  expect_close(as.numeric(logLik(fit))[at], as.numeric(logLik(one)), 1e-8, scale = 1)
  expect_close(AIC(fit)[at], AIC(one), 1e-8, scale = 1)
  expect_close(vcov(fit)[known, known, g], vcov(one)[known, known], 10 * tolerance)
}

test_that("regressions by group are those of glm(), on real data", {
  skip_if_not_installed("MASS")
  quine <- MASS::quine
  bacteria <- MASS::bacteria
  chick <- as.data.frame(ChickWeight)
  sets <- list(
    list(case ~ spontaneous + induced + age, infert, "education", binomial),
    list(cbind(ncases, ncontrols) ~ as.numeric(agegp) + as.numeric(tobgp), esoph, "alcgp",
         binomial),
    list(y ~ week + ap, bacteria, "hilo", binomial),
    list(count ~ spray2, transform(InsectSprays, spray2 = spray %in% c("A", "B", "F"),
                                   half = rep(1:2, 36)), "half", poisson),
    list(Days ~ Sex + Age + Lrn, quine, "Eth", poisson),
    list(breaks ~ tension, warpbreaks, "wool", poisson),
    list(weight ~ Time + I(Time^2), chick, "Diet", gaussian),
    list(log(Claims + 1) ~ District + Group, MASS::Insurance, "Age", gaussian))
  each_engine(for (set in sets) {
    data <- set[[2]]
    data$by <- data[[set[[3]]]]
    fit <- cl_batch_glm(set[[1]], data, group = by, family = set[[4]])
    expect_true(all(fit$status == "ok" | fit$status == "collinear columns"))
    for (g in rownames(coef(fit))) {
      full <- fit$status[[g]] == "ok"
      expect_group(fit, g, glm(set[[1]], set[[4]], data[data$by == g, ],
                               control = if (full) exact else exact_rank), if (full) 1e-8 else 1e-6)
    }
  })
})

test_each_engine("weights, offsets and groups in any order are used as in glm()", {
  set.seed(11)
  n <- c(4, 7, 30, 31, 33, 100, 257)
  g <- sample(rep(letters[1:7], n))
  d <- data.frame(g, x = rnorm(sum(n)), z = 1e4 + runif(sum(n)),
                  w = rep_len(c(1, 2, 0, 0.5), sum(n)), e = runif(sum(n), 1, 5))
  d$k <- rpois(sum(n), d$e * exp(1 + d$x / 2))
  d$share <- rbinom(sum(n), 20, plogis(0.3 * d$x)) / 20
  fit <- cl_batch_glm(k ~ x + z + offset(log(e)), d, group = g, family = poisson, weights = w)
  half <- cl_batch_glm(share ~ x, d, group = g, family = "binomial", weights = rep(20, nrow(d)),
                       offset = x / 10)
  line <- cl_batch_glm(cbind(1, d$x), d$e, d$g, gaussian(), weights = d$w + 0.25)
  colnames(line$coefficients) <- colnames(line$std.error) <- c("(Intercept)", "x")
  dimnames(line$cov.unscaled)[1:2] <- list(c("(Intercept)", "x"))[c(1, 1)]
  for (one in letters[2:7]) {
    at <- d[d$g == one, ]
    expect_group(fit, one, glm(k ~ x + z + offset(log(e)), poisson, at, weights = w,
                               control = exact))
    expect_group(half, one, glm(share ~ x, binomial, at, weights = rep(20, nrow(at)),
                                offset = x / 10, control = exact))
    expect_group(line, one, glm(e ~ x, gaussian, at, weights = w + 0.25))
  }
  one <- glm(share ~ x, binomial, d[d$g == "c", ], weights = rep(20, 30), offset = x / 10,
             control = exact)
  expect_close(residuals(half)[d$g == "c"], residuals(one), 1e-6, scale = 1)
  expect_close(residuals(half, "working")[d$g == "c"], residuals(one, "working"), 1e-5, scale = 1)
  new <- data.frame(x = c(0, 1), g = "c")
  peer <- predict(one, new, type = "response", se.fit = TRUE)
  found <- predict(half, new, type = "response", se.fit = TRUE)
  expect_close(found$fit, peer$fit, 1e-6)
  expect_close(found$se.fit, peer$se.fit, 1e-6)
  expect_close(predict(half, new, interval = "confidence")[, "lwr"],
               predict(one, new) - qnorm(0.975) * predict(one, new, se.fit = TRUE)$se.fit, 1e-6)
})

test_that("groups that cannot be fitted do not affect the others", {
  d <- data.frame(g = rep(c("ok", "apart", "zeros", "same", "few"), c(8, 8, 8, 8, 2)))
  d$x <- c(1:8, 1:8, 1:8, rep(2, 8), 1:2)
  d$z <- c(rep(0:1, 12), rep(0:1, 4), 0, 1)
  d$y <- c(0, 1, 0, 0, 1, 1, 0, 1, rep(0:1, each = 4), rep(0, 8), 0, 1, 1, 1, 0, 0, 1, 0, 0, 1)
  each_engine({
    expect_warning(fit <- cl_batch_glm(y ~ x + z, d, group = g), "3 of 5 groups without results",
                   class = "statcl_warning_batch")
    expect_identical(fit$status[c("ok", "apart", "zeros", "same", "few")],
                     c(ok = "ok", apart = "separated", zeros = "separated",
                       same = "collinear columns", few = "separated"))
    for (g in c("ok", "same")) {
      expect_group(fit, g, glm(y ~ x + z, binomial, d[d$g == g, ], control = exact_rank), 1e-6)
    }
    expect_true(all(is.na(coef(fit)["apart", ])))
    expect_identical(is.na(fitted(fit)), d$g %in% c("apart", "zeros", "few"))
    counts <- suppressWarnings(cl_batch_glm(I(y + 2 * (g == "few")) ~ x + z, d, group = g,
                                            family = poisson))
    expect_identical(counts$status[["few"]], "collinear columns") # fewer rows than columns
    expect_group(counts, "few", glm(y + 2 ~ x + z, poisson, d[d$g == "few", ],
                                     control = exact_rank), 1e-6)
    expect_identical(counts$status[["zeros"]], "separated")
    expect_output(print(fit), "3 groups separated")
    expect_output(print(summary(fit)), "5 groups of 2 to 8 observations")
  })
  expect_fault(suppressWarnings(cl_batch_glm(y ~ x + z, d, group = g, on_error = "stop")),
               "singular", matrix = 1L)
})

test_each_engine("distant and saturated maxima are found, from any scale", {
  d <- data.frame(g = rep(c("rare", "far", "big"), c(2, 2, 4)),
                  s = c(1, 3, 2e9 - 1, 50, 3, 9, 4, 8),
                  f = c(1e9, 1e9, 1, 50, 3, 1, 7, 4), x = c(0, 1, 0, 1, 1e200, 2e200, 4e200, 3e200))
  fit <- cl_batch_glm(cbind(s, f) ~ x, d, group = g, family = binomial)
  expect_identical(unname(fit$status), rep("ok", 3))
  expect_close(coef(fit)["rare", ], c(log(1e-9), log(3)), 1e-9)
  expect_close(coef(fit)["far", ], c(log(2e9 - 1), -log(2e9 - 1)), 1e-7)
  near <- glm(cbind(s, f) ~ I(x / 1e200), binomial, d[d$g == "big", ], control = exact)
  expect_close(unname(coef(fit)["big", ] * c(1, 1e200)), unname(coef(near)), 1e-9)
  counts <- cl_batch_glm(c(1e15, 2e15, 3, 5) ~ c(0, 1, 0, 1), group = rep(1:2, each = 2),
                         family = poisson)
  expect_close(unname(coef(counts)), rbind(log(c(1e15, 2)), log(c(3, 5 / 3))), 1e-12)
  # a start from which a full step would overflow
  steep <- cl_batch_glm(c(0, 0, 1, 3000) ~ c(1, 2, 3, 30), group = rep(1, 4), family = poisson)
  one <- glm(c(0, 0, 1, 3000) ~ c(1, 2, 3, 30), poisson, control = exact)
  expect_close(unname(coef(steep)[1, ]), unname(coef(one)), 1e-8)
})

test_that("thousands of groups are shared out among threads and work-groups", {
  set.seed(12)
  groups <- full_or_quick(70000, 3000)
  n <- sample(1:9, groups, TRUE)
  g <- rep(seq_len(groups), n)
  x <- cbind(1, rnorm(length(g)))
  y <- rpois(length(g), 3)
  host <- with_cl(engine = "host", suppressWarnings(cl_batch_glm(x, y, g, poisson)))
  each_engine({
    fit <- suppressWarnings(cl_batch_glm(x, y, g, poisson))
    expect_identical(fit$status, host$status)
    ok <- fit$status != "separated"
    expect_close(coef(fit)[ok & n > 2, ], coef(host)[ok & n > 2, ], 1e-8, scale = 1)
    one <- which(ok & n == 9)[1:3]
    for (k in one) {
      expect_close(unname(coef(fit)[k, ]), unname(coef(glm(y[g == k] ~ x[g == k, 2], poisson,
                                                           control = exact))), 1e-8)
    }
  })
})

test_that("bad input to generalised linear models by group is rejected", {
  d <- data.frame(y = c(0, 1, 1, 0), x = 1:4, g = c(1, 1, 2, 2))
  expect_refused("group", cl_batch_glm(y ~ x, d))
  expect_refused("family", cl_batch_glm(y ~ x, d, group = g, family = Gamma),
                 cl_batch_glm(y ~ x, d, group = g, family = binomial("probit")))
  expect_refused("y", cl_batch_glm(y + 1 ~ x, d, group = g),
                 cl_batch_glm(y - 1 ~ x, d, group = g, family = poisson),
                 cl_batch_glm(cbind(d$x)[1:3, ], d$y, d$g))
  expect_refused("weights", cl_batch_glm(y ~ x, d, group = g, weights = -x))
  expect_refused("offset", cl_batch_glm(cbind(d$x), d$y, d$g, offset = 1:3))
  expect_refused("x", cl_batch_glm(cbind(d$x, NA), d$y, d$g))
})

test_that("groups of any kind have the codes and levels of factor()", {
  set.seed(17)
  n <- 240
  d <- data.frame(x = rnorm(n), k = rpois(n, 3))
  code <- sample(rep(c(1, 2, 4, 7), n / 4))
  groups <- list(
    as.integer(code), code, -code, sort(code), rev(sort(as.integer(code))), code * 1e5,
    code / 3, code * 1e12, letters[code], code > 3, factor(code, levels = c(9, 7, 4, 3, 2, 1)),
    factor(code, ordered = TRUE), as.Date("2020-01-01") + code, factor(letters[code])[1:n],
    replace(code, 1:60, 2147483647), replace(code, code == 1, -0))
  for (g in groups) {
    fit <- cl_batch_glm(cbind(1, d$x), d$k, g, poisson)
    expect_identical(fit$group, droplevels(as.factor(g)))
    sizes <- table(fit$group)
    expect_identical(fit$nobs, stats::setNames(as.integer(sizes), names(sizes)))
    one <- levels(fit$group)[2L]
    own <- fit$group == one
    peer <- glm.fit(cbind(1, d$x)[own, ], d$k[own], family = poisson(), control = exact)
    expect_close(unname(coef(fit)[2L, ]), unname(peer$coefficients), 1e-8)
    expect_close(fit$fitted.values[own], unname(peer$fitted.values), 1e-8)
    expect_identical(names(cl_batch_lm(cbind(1, d$x), d$k, g)$nobs), levels(fit$group))
  }
  for (g in list(replace(code, 5, NA), replace(as.integer(code), 5, NA), replace(code, 5, NaN),
                 replace(letters[code], 5, NA), factor(replace(code, 5, NA)))) {
    expect_refused("group", cl_batch_glm(cbind(1, d$x), d$k, g, poisson))
  }
  for (bad in c(NA, NaN, Inf, -Inf)) for (at in c(1, 100, n)) {
    expect_refused("x", cl_batch_glm(cbind(1, replace(d$x, at, bad)), d$k, code, poisson))
  }
})

test_that("means are those of R's families in both tails", {
  shift <- c(numeric(400), 29, 31, 40, -29, -31, -40)
  y <- c(rep(0:1, 200), 1, 1, 1, 0, 0, 0)
  for (family in list(binomial(), poisson())) {
    use <- family$family == "binomial" | shift <= 0
    fit <- cl_batch_glm(cbind(rep(1, sum(use))), y[use], rep(1, sum(use)), family,
                        offset = shift[use])
    expect_identical(unname(fit$status), "ok")
    means <- family$linkinv(fit$linear.predictors)
    expect_close(fit$fitted.values / means, rep(1, sum(use)), 4e-15)
  }
})
