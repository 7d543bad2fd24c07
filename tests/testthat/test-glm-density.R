# Families of cl_family(): against sums of R's densities and their differences.

set.seed(21)
n <- 160L
d <- data.frame(x = rnorm(n), z = rnorm(n), g = gl(2, n / 2, labels = c("u", "v")))
d$count <- rnbinom(n, 2, mu = exp(0.8 + 0.4 * d$x)) * rbinom(n, 1, plogis(0.5 + 0.8 * d$z))
d$positive <- qnbinom(runif(n, dnbinom(0, 2, mu = exp(d$x / 2)), 1), 2, mu = exp(d$x / 2))
d$share <- rbeta(n, 5 * plogis(d$x / 2), 5 * plogis(-d$x / 2))

# The log density of each y, by R.
by_hand <- function(name, y, mu, zeta, phi) {
  f <- function(y) if (grepl("poisson", name)) dpois(y, mu) else dnbinom(y, phi, mu = mu)
  p <- plogis(zeta)
  log(switch(sub("_(poisson|neg_binomial)", "", name),
    beta = dbeta(y, mu * exp(zeta), (1 - mu) * exp(zeta)),
    zero_inflated = p * (y == 0) + (1 - p) * f(y),
    hurdle = ifelse(y == 0, 1 - p, p * f(y) / (1 - f(0))),
    truncated = f(y) / (1 - f(0))))
}

test_that("families of cl_family() are fitted at the maximum of their likelihoods", {
  for (name in names(statcl:::density_families)) {
    y <- if (name == "beta") "share" else if (grepl("truncated", name)) "positive" else "count"
    two <- !grepl("truncated", name)
    formula <- stats::as.formula(paste(y, "~ x + g", if (two) "| z"))
    some <- name %in% c("beta", "zero_inflated_neg_binomial") || full_or_quick(TRUE, FALSE)
    (if (some) each_engine else on_host)({
      fit <- cl_glm(formula, d, family = name)
      x <- cbind(1, d$x, d$g == "v")
      own <- fit$aux
      value <- function(v) {
        inverse <- if (name == "beta") plogis else exp
        sum(by_hand(name, d[[y]], inverse(x %*% v[1:3]), if (two) v[4] + v[5] * d$z else 0,
                    exp(v[length(v)])))
      }
      at <- c(coef(fit), own[names(own) != "phi"], if ("phi" %in% names(own)) log(own[["phi"]]))
      expect_equal(fit$logLik, value(at), tolerance = 1e-10)
      expect_true(fit$converged)
      info <- -optimHess(at, value, control = list(ndeps = rep(1e-4, length(at))))
      slope <- vapply(seq_along(at), function(j) {
        e <- replace(0 * at, j, 1e-5)
        (value(at + e) - value(at - e)) / 2e-5
      }, 0)
      expect_lt(sqrt(sum(slope * solve(info, slope))), 1e-5)
      errors <- sqrt(diag(solve(info)))
      k <- nrow(vcov(fit))
      expect_equal(unname(sqrt(diag(vcov(fit)))), unname(errors[seq_len(k)]), tolerance = 1e-4)
      expect_equal(AIC(fit), -2 * fit$logLik + 2 * length(at))
    })
    # mean and variance by sums
    if (name != "beta") {
      mu <- exp(fit$linear.predictors)
      values <- sapply(0:400, function(v) {
        exp(by_hand(name, rep(v, n), mu, fit$second$eta, statcl:::density_phi(fit)))
      })
      if (!two) values[, 1L] <- 0
      mean <- drop(values %*% 0:400)
      expect_equal(fitted(fit), mean, tolerance = 1e-8, ignore_attr = TRUE)
      sd <- sqrt(drop(values %*% (0:400)^2) - mean^2)
      expect_equal(residuals(fit), (fit$y - mean) / sd, tolerance = 1e-6, ignore_attr = TRUE)
    }
    many <- simulate(fit, 300, seed = 1)
    expect_lt(max(abs(rowMeans(many) - fitted(fit)) /
                    sqrt(apply(many, 1L, var) / 300 + 1e-6)), 5)
  }
})

test_that("their methods work", {
  fit <- cl_glm(count ~ x + g | z, d, "zero_inflated_poisson")
  expect_output(print(fit), "zero:z")
  expect_output(print(summary(fit)), "zero:z")
  expect_identical(rownames(confint(fit)), rownames(vcov(fit)))
  new <- d[c(3, 90), ]
  found <- predict(fit, new, type = "response", se.fit = TRUE, interval = "confidence")
  expect_equal(found$fit[, 1L], fitted(fit)[c(3, 90)], ignore_attr = TRUE)
  v <- c(coef(fit), fit$aux)
  mean_at <- function(v) {
    x <- cbind(1, new$x, new$g == "v")
    drop(exp(x %*% v[1:3])) * plogis(-(v[4] + v[5] * new$z))
  }
  slope <- sapply(seq_along(v), function(j) {
    e <- replace(0 * v, j, 1e-6)
    (mean_at(v + e) - mean_at(v - e)) / 2e-6
  })
  expect_equal(found$se.fit, sqrt(diag(slope %*% vcov(fit) %*% t(slope))), tolerance = 1e-6,
               ignore_attr = TRUE)
  expect_equal(unname(predict(fit, new, "second")), plogis(v[4] + v[5] * new$z),
               ignore_attr = TRUE)
  small <- cl_glm(count ~ x | z, d, "zero_inflated_poisson")
  expect_equal(anova(small, fit)$LR[2L], 2 * (fit$logLik - small$logLik))
  # weights, offsets, rows without a value, a matrix instead of a formula
  w <- rep(0:2, length.out = n)
  weighted <- cl_glm(count ~ x | z, d, "hurdle_poisson", weights = w, offset = z / 9)
  long <- cl_glm(count ~ x | z, d[rep(seq_len(n), w), ], "hurdle_poisson", offset = z / 9)
  expect_equal(coef(weighted), coef(long), tolerance = 1e-7)
  expect_equal(vcov(weighted), vcov(long), tolerance = 1e-6)
  d$x[5] <- NA
  lost <- cl_glm(share ~ x, d, "beta", na.action = na.exclude)
  expect_length(fitted(lost), n)
  expect_length(residuals(lost), n)
  plain <- cl_glm(cbind(x = d$x[-5]), d$share[-5], "beta")
  expect_equal(coef(plain), coef(lost), tolerance = 1e-10)
  expect_equal(predict(plain, cbind(0.3), type = "response"),
               predict(lost, data.frame(x = 0.3), type = "response"), ignore_attr = TRUE)
  expect_true(is.na(coef(cl_glm(share ~ z + I(2 * z), d, "beta"))[[3]]))
  for (link in c("probit", "cloglog", "cauchit")) {
    fit <- cl_glm(share ~ z, d, cl_family("beta", link))
    mu <- make.link(link)$linkinv(drop(cbind(1, d$z) %*% coef(fit)))
    expect_equal(fit$logLik, sum(by_hand("beta", d$share, mu, log(fit$aux), NULL)))
  }
})

test_that("variances, draws, null deviances and intervals of second parts", {
  fit <- cl_glm(share ~ x | z, d, "beta")
  phi <- exp(drop(cbind(1, d$z) %*% fit$aux))
  mu <- fitted(fit)
  expect_equal(residuals(fit), (d$share - mu) / sqrt(mu * (1 - mu) / (1 + phi)), tolerance = 1e-8,
               ignore_attr = TRUE)
  expect_equal(fit$null.deviance, -2 * cl_glm(share ~ 1, d, "beta")$logLik, tolerance = 1e-10)
  fit <- cl_glm(count ~ x | z, d, "hurdle_poisson")
  expect_equal(fit$null.deviance, -2 * cl_glm(count ~ 1, d, "hurdle_poisson")$logLik,
               tolerance = 1e-10)
  many <- simulate(fit, 300, seed = 1)
  share <- plogis(drop(cbind(1, d$z) %*% fit$aux))
  expect_lt(max(abs(rowMeans(many > 0) - share) / sqrt(share * (1 - share) / 300)), 5)
  found <- predict(fit, d[1:3, ], "second", interval = "confidence")
  z <- cbind(1, d$z[1:3])
  error <- sqrt(diag(z %*% vcov(fit)[3:4, 3:4] %*% t(z)))
  expect_equal(found, plogis(drop(z %*% fit$aux) + outer(error, c(0, -1, 1) * qnorm(0.975))),
               tolerance = 1e-6, ignore_attr = TRUE)
})

test_that("Tweedie's family has a density that integrates to 1", {
  density <- statcl:::dtweedie_log
  for (p in c(1.1, 1.5, 1.9)) for (phi in c(0.3, 2)) {
    f <- function(y) exp(density(y, rep(1.4, length(y)), phi, p))
    mass <- integrate(f, 0, 1, subdivisions = 2000, rel.tol = 1e-8)$value +
      integrate(f, 1, Inf, subdivisions = 2000, rel.tol = 1e-8)$value
    expect_equal(mass + f(0), 1, tolerance = 1e-5)
  }
  y <- ifelse(d$count > 0, d$count + d$share, 0)
  each_engine({
    fit <- cl_glm(y ~ x + g, d, cl_family("tweedie", power = 1.4))
    mu <- fitted(fit)
    expect_lt(max(abs(crossprod(cbind(1, d$x, d$g == "v"), (y - mu) * mu^-0.4))), 1e-6)
    expect_equal(deviance(fit), sum(family(fit)$dev.resids(y, mu, rep(1, n))))
    expect_warning(named <- cl_glm(y ~ x + g, d, "tweedie"), NA)
    expect_identical(coef(named), coef(cl_glm(y ~ x + g, d, cl_family("tweedie"))))
    expect_equal(c(logLik(fit)), sum(density(y, mu, deviance(fit) / n, 1.4)), ignore_attr = TRUE)
  })
  expect_true(is.finite(AIC(fit)))
  many <- simulate(fit, 400, seed = 2)
  expect_equal(mean(unlist(many)), mean(mu), tolerance = 0.05)
  expect_equal(sapply(many, var)[[1]] > 0, TRUE)
})

test_that("wrong input to families of cl_family() is refused", {
  expect_refused("name", cl_family("gauss"))
  expect_refused("link", cl_family("beta", "log"))
  expect_refused("power", cl_family("tweedie", power = 2))
  expect_refused("y", cl_glm(I(share * 2) ~ x, d, "beta"),
                 cl_glm(count ~ x, d, "truncated_poisson"),
                 cl_glm(positive ~ x, d, "hurdle_poisson"))
  expect_refused("formula", cl_glm(positive ~ x | z, d, "truncated_poisson"),
                 cl_glm(count ~ x | z, d, "poisson_log"))
  expect_refused("method", cl_glm(count ~ x, d, "hurdle_poisson", method = "map"))
  expect_warning(cl_glm(pmax(count, 1) ~ x, d, "truncated_neg_binomial"),
                 class = "statcl_warning_boundary")
  fit <- cl_glm(share ~ x, d, "beta")
  expect_refused("model", hatvalues(fit))
  expect_refused("object", anova(fit))
  expect_refused("method", confint(fit, method = "profile"))
  expect_refused("type", weights(fit, "working"))
})
