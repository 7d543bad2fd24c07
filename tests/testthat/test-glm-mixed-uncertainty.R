# Standard errors and intervals of predictions with random effects, against dense matrices.
from <- function(name) getExportedValue("lme4", name)

set.seed(11)
d <- data.frame(g = factor(sample(letters[1:9], 90, TRUE)),
                h = factor(sample(LETTERS[1:5], 90, TRUE)), x = rnorm(90), w = runif(90, 0.5, 2))
shift <- rnorm(9)[d$g] + rnorm(9, 0, 0.7)[d$g] * d$x + rnorm(5, 0, 0.6)[d$h]
d$y <- 1 + d$x + shift + rnorm(90, 0, 1 / sqrt(d$w))
d$k <- rpois(90, exp(0.3 + (d$x + 2 * shift) / 3))
d$v <- rgamma(90, 3, 3 / exp((d$x + 2 * shift) / 3))

# The columns of the random effects (x | g) + (1 | h) and their covariance matrix.
z_of <- function(d) {
  g <- outer(d$g, letters[1:9], `==`) * 1
  cbind(g, g * d$x, outer(d$h, LETTERS[1:5], `==`) * 1)
}
covariance_of <- function(fit) {
  s <- matrix(0, 23, 23)
  s[1:18, 1:18] <- kronecker(fit$variances$g, diag(9))
  diag(s)[19:23] <- fit$variances$h
  s
}

# Standard errors by Henderson's equations, with the rows' weights `w`; V: of the coefficients.
dense_errors <- function(fit, w, x, z, v = NULL) {
  all_z <- z_of(d)
  all_x <- cbind(1, d$x)
  h <- solve(crossprod(all_z, w * all_z) + solve(covariance_of(fit)))
  b <- crossprod(all_z, w * all_x)
  if (is.null(v)) v <- solve(crossprod(all_x, w * all_x) - t(b) %*% h %*% b)
  left <- x - z %*% h %*% b
  sqrt(diag(z %*% h %*% t(z) + left %*% v %*% t(left)))
}

test_that("errors of linear models are those of best linear unbiased prediction", {
  x <- cbind(1, d$x)
  z <- z_of(d)
  for (method in c("ml", "reml")) {
    fit <- cl_glm(y ~ x + (x | g) + (1 | h), d, "normal_id", method, weights = w)
    found <- predict(fit, se.fit = TRUE)
    expect_equal(found$fit, predict(fit))
    wanted <- dense_errors(fit, d$w / sigma(fit)^2, x, z)
    expect_equal(unname(found$se.fit), wanted, tolerance = 1e-7)
    # by the distribution of y and b, without Henderson's equations
    s <- covariance_of(fit)
    c <- z %*% s %*% t(z)
    root <- solve(c + diag(sigma(fit)^2 / d$w))
    m <- x - c %*% root %*% x
    exact <- diag(c - c %*% root %*% c + m %*% solve(t(x) %*% root %*% x) %*% t(m))
    expect_equal(unname(found$se.fit), sqrt(exact), tolerance = 1e-7)
    expect_equal(predict(fit, d, se.fit = TRUE)$se.fit, found$se.fit, ignore_attr = TRUE)
    # some of the terms
    z_h <- z
    z_h[, 1:18] <- 0
    some <- predict(fit, re.form = ~ (1 | h), interval = "prediction", se.fit = TRUE)
    expect_equal(unname(some$se.fit), dense_errors(fit, d$w / sigma(fit)^2, x, z_h),
                 tolerance = 1e-7)
    absent <- rowSums((x %*% fit$variances$g) * x)
    expect_equal(unname(some$fit[, "upr"] - some$fit[, "fit"]), qnorm(0.975) *
                   unname(sqrt(some$se.fit^2 + absent + sigma(fit)^2 / d$w)))
  }
  new <- data.frame(x = c(-1, 2, 0.5), g = c("b", "new", "c"), h = c("A", "B", "other"))
  expect_refused("newdata", predict(fit, new, se.fit = TRUE))
  found <- predict(fit, new, se.fit = TRUE, allow.new.levels = TRUE, interval = "confidence")
  unknown <- c(0, sum(c(1, 2) * fit$variances$g %*% c(1, 2)), fit$variances$h)
  wanted <- sqrt(dense_errors(fit, d$w / sigma(fit)^2, cbind(1, new$x), z_of(new))^2 + unknown)
  expect_equal(unname(found$se.fit), wanted, tolerance = 1e-7)
  expect_equal(unname(found$fit[, "lwr"]), unname(found$fit[, "fit"] - qnorm(0.975) * wanted),
               tolerance = 1e-7)
  d$y[3] <- NA
  gap <- cl_glm(y ~ x + (1 | g), d, "normal_id", na.action = na.exclude)
  expect_equal(which(is.na(predict(gap, se.fit = TRUE)$se.fit)), 3L, ignore_attr = TRUE)
  none <- cl_glm(y ~ 0 + (1 | g), d[-3, ], "normal_id")
  expect_equal(unname(predict(none, d[1:5, ], se.fit = TRUE)$se.fit),
               sqrt(1 / (tabulate(d$g[-3])[d$g[1:5]] / sigma(none)^2 + 1 / none$variances$g[1])),
               tolerance = 1e-7)
})

test_that("errors of other families are those of Laplace's approximation", {
  weight <- list(poisson_log = function(fit) fitted(fit),
                 neg_binomial_2_log = function(fit) {
                   phi <- fit$aux[["phi"]]
                   mu <- fitted(fit)
                   phi * mu * (phi + d$k) / (phi + mu)^2
                 }, gamma = function(fit) d$v / fitted(fit) / fit$aux[["dispersion"]])
  for (name in names(weight)) {
    fit <- suppressWarnings(cl_glm(if (name == "gamma") v ~ x + (x | g) + (1 | h) else
      k ~ x + (x | g) + (1 | h), d, if (name == "gamma") Gamma("log") else name))
    expect_false(fit$singular)
    found <- predict(fit, d[1:20, ], se.fit = TRUE)
    wanted <- dense_errors(fit, weight[[name]](fit), cbind(1, d$x[1:20]), z_of(d[1:20, ]),
                           vcov(fit))
    expect_equal(unname(found$se.fit), wanted, tolerance = 1e-6, label = name)
    mean <- predict(fit, d[1:20, ], "response", se.fit = TRUE, interval = "confidence")
    expect_equal(unname(mean$se.fit), unname(wanted * mean$fit[, "fit"]), tolerance = 1e-6)
    expect_equal(mean$fit[, "upr"], exp(found$fit + qnorm(0.975) * wanted), tolerance = 1e-6,
                 ignore_attr = TRUE)
    # the share of such responses below a bound
    limits <- predict(fit, d[1:5, ], "response", interval = "prediction", level = 0.8)
    mu <- exp(as.vector(found$fit[1:5]) + outer(wanted[1:5], qnorm((1:2000 - 0.5) / 2000)))
    below <- function(q) rowMeans(matrix(switch(name, poisson_log = ppois(q, mu),
      neg_binomial_2_log = pnbinom(q, fit$aux[["phi"]], mu = mu),
      gamma = pgamma(q, 1 / fit$aux[["dispersion"]], 1 / (fit$aux[["dispersion"]] * mu))), 5))
    expect_true(all(below(limits[, "upr"]) >= 0.899))
    if (name == "gamma") expect_equal(below(limits[, "lwr"]), rep(0.1, 5), tolerance = 1e-2) else
      expect_true(all(below(limits[, "upr"] - 1) < 0.901))
  }
})

test_that("errors of cbpp are those of the dense Hessian", {
  skip_if_not_installed("lme4")
  cbpp <- from("cbpp")
  fit <- cl_glm(cbind(incidence, size - incidence) ~ period + (1 | herd), cbpp, binomial)
  x <- model.matrix(~ period, cbpp)
  z <- model.matrix(~ 0 + herd, cbpp)
  w <- cbpp$size * fitted(fit) * (1 - fitted(fit))
  h <- solve(crossprod(z, w * z) + diag(1 / fit$variances$herd[1], 15))
  left <- x - z %*% h %*% crossprod(z, w * x)
  wanted <- sqrt(diag(z %*% h %*% t(z) + left %*% vcov(fit) %*% t(left)))
  found <- predict(fit, se.fit = TRUE)
  expect_equal(unname(found$se.fit), unname(wanted), tolerance = 1e-7)
})

test_that("draws give means, standard deviations and quantiles", {
  short <- list(seed = 1, chains = 2, warmup = 150, iter = 200)
  fit <- suppressWarnings(cl_glm(y ~ x + (x | g) + (1 | h), d, "normal_id", "mcmc",
                                 control = short))
  expect_equal(lapply(fit$effect_draws, dim), list(g = c(400L, 9L, 2L), h = c(400L, 5L, 1L)))
  values <- as.matrix(fit$draws)
  b <- fit$effect_draws
  row <- 7
  eta <- values[, 1] + values[, 2] * d$x[row] + b$g[, d$g[row], 1] + b$g[, d$g[row], 2] * d$x[row] +
    b$h[, d$h[row], 1]
  found <- predict(fit, d[row, ], se.fit = TRUE, interval = "confidence")
  expect_equal(unname(found$fit[1, ]), c(mean(eta), quantile(eta, c(0.025, 0.975))),
               ignore_attr = TRUE)
  expect_equal(unname(found$se.fit), sd(eta))
  expect_equal(colMeans(b$g), fit$random$g, ignore_attr = TRUE)
  expect_equal(predict(fit)[c(row, 2)], c(found$fit[, "fit"], predict(fit, d[2, ])),
               ignore_attr = TRUE)
  # a new level: the mean of the variances given a draw, and the variance of the means
  new <- data.frame(x = 2, g = "new", h = "A")
  known <- values[, 1] + 2 * values[, 2] + b$h[, 1, 1]
  sd_g <- values[, c("sd_g__(Intercept)", "sd_g__x")]
  extra <- sd_g[, 1]^2 + 4 * sd_g[, 2]^2 + 4 * sd_g[, 1] * sd_g[, 2] *
    values[, "cor_g__(Intercept).x"]
  found <- predict(fit, new, se.fit = TRUE, allow.new.levels = TRUE, interval = "prediction")
  expect_equal(unname(found$fit[, "fit"]), mean(known))
  expect_equal(unname(found$se.fit), sqrt(var(known) + mean(extra)), tolerance = 0.05)
  share <- function(q) mean(pnorm(q, known, sqrt(extra + values[, "sigma"]^2)))
  expect_equal(share(found$fit[, "upr"]), 0.975, tolerance = 0.01)
  expect_equal(share(found$fit[, "lwr"]), 0.025, tolerance = 0.5)
  count <- suppressWarnings(cl_glm(k ~ x + (1 | g), d, "neg_binomial_2_log", "mcmc",
                                   control = short))
  found <- predict(count, d[1:3, ], "response", se.fit = TRUE, interval = "prediction")
  values <- as.matrix(count$draws)
  mu <- exp(values[, 1] + outer(values[, 2], d$x[1:3]) + count$effect_draws$g[, d$g[1:3], 1])
  expect_equal(unname(found$fit[, "fit"]), colMeans(mu), ignore_attr = TRUE)
  for (i in 1:3) {
    below <- function(q) mean(pnbinom(q, values[, "phi"], mu = mu[, i]))
    expect_gte(below(found$fit[i, "upr"]), 0.975)
    expect_lt(below(found$fit[i, "upr"] - 1), 0.975)
  }
})
