# Families whose density is a function of the user.

set.seed(5)
d <- data.frame(x = rnorm(80), z = rep(c("a", "b"), 40), w = rep(1:2, each = 40))
d$n <- rpois(80, exp(1 + 0.4 * d$x))
d$share <- rbeta(80, 3 * plogis(d$x), 3 * (1 - plogis(d$x)))
d$y <- 10 + 3 * d$x + rt(80, 4)
student <- cl_family(function(y, mu, sigma, nu) dt((y - mu) / sigma, nu, log = TRUE) - log(sigma),
                     start = list(nu = 5), mean = TRUE, label = "student",
                     variance = function(mu, sigma, nu) sigma^2 * nu / (nu - 2),
                     draw = function(n, mu, sigma, nu) mu + sigma * rt(n, nu))

test_that("densities by hand give the results of the families of the package", {
  each_engine({
    poisson <- cl_family(function(y, mu) dpois(y, mu, log = TRUE), "log", mean = TRUE,
                         variance = function(mu) mu)
    own <- cl_glm(n ~ x + z, d, poisson, weights = w)
    built <- cl_glm(n ~ x + z, d, "poisson_log", weights = w)
    expect_equal(coef(own), coef(built), tolerance = 1e-8)
    expect_equal(vcov(own), vcov(built), tolerance = 1e-7)
    expect_equal(own$logLik, built$logLik, tolerance = 1e-10)
    expect_equal(fitted(own), fitted(built), tolerance = 1e-8)
    expect_equal(residuals(own, "pearson"), residuals(built, "pearson"), tolerance = 1e-7)
    new <- data.frame(x = c(-1, 2), z = "b")
    for (type in c("link", "response")) {
      expect_equal(predict(own, new, type, se.fit = TRUE, interval = "confidence")[1:2],
                   predict(built, new, type, se.fit = TRUE, interval = "confidence")[1:2],
                   tolerance = 1e-6)
    }
    beta <- cl_family(function(y, mu, phi) dbeta(y, mu * phi, (1 - mu) * phi, log = TRUE), "logit",
                      mean = function(mu, phi) mu)
    own <- cl_glm(share ~ x, d, beta)
    built <- cl_glm(share ~ x, d, "beta")
    expect_equal(coef(own), coef(built), tolerance = 1e-8)
    expect_equal(own$aux, built$aux, tolerance = 1e-7)
    expect_equal(own$aux_error[[1]], built$aux_error, tolerance = 1e-6)
    expect_equal(vcov(own), vcov(built), tolerance = 1e-6, ignore_attr = TRUE)
    expect_equal(own$logLik, built$logLik, tolerance = 1e-10)
    expect_equal(own$null.deviance, built$null.deviance, tolerance = 1e-8)
  })
  normal <- cl_family(function(y, mu, s) dnorm(y, mu, s, log = TRUE), mean = TRUE)
  own <- cl_glm(y ~ x, d, normal)
  expect_equal(coef(own), coef(lm(y ~ x, d)), tolerance = 1e-8)
  expect_equal(AIC(own), AIC(lm(y ~ x, d)), tolerance = 1e-9)
})

test_that("Student's t, a skew normal and the Conway-Maxwell distribution are at their maximum", {
  maximum <- function(at, start) {
    found <- optim(start, at, method = "BFGS", control = list(maxit = 500, reltol = 1e-15))
    nlminb(found$par, at, control = list(rel.tol = 1e-15))
  }
  fit <- cl_glm(y ~ x, d, student)
  found <- maximum(function(p) -sum(dt((d$y - p[1] - p[2] * d$x) / exp(p[3]), exp(p[4]),
                                       log = TRUE) - p[3]), c(10, 3, 0, 1))
  expect_equal(-fit$logLik, found$objective, tolerance = 1e-10)
  expect_equal(unname(c(coef(fit), log(fit$aux))), found$par, tolerance = 1e-5)
  h <- optimHess(found$par, function(p) -sum(dt((d$y - p[1] - p[2] * d$x) / exp(p[3]), exp(p[4]),
                                                log = TRUE) - p[3]))
  v <- solve(h)
  expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(v)[1:2]), tolerance = 1e-3, ignore_attr = TRUE)
  expect_equal(unname(fit$aux_error), unname(fit$aux * sqrt(diag(v)[3:4])), tolerance = 1e-3)
  skew <- cl_family(function(y, mu, omega, alpha) {
    z <- (y - mu) / omega
    log(2) + dnorm(z, log = TRUE) + pnorm(alpha * z, log.p = TRUE) - log(omega)
  }, parameters = c(alpha = "identity"), start = list(alpha = 1), mean = function(mu, omega, alpha)
    mu + omega * alpha / sqrt(1 + alpha^2) * sqrt(2 / pi))
  d$s <- 2 + d$x + abs(rnorm(80)) * 1.5 + rnorm(80) / 1.5
  fit <- cl_glm(s ~ x, d, skew)
  at <- function(p) {
    z <- (d$s - p[1] - p[2] * d$x) / exp(p[3])
    -sum(log(2) + dnorm(z, log = TRUE) + pnorm(p[4] * z, log.p = TRUE) - p[3])
  }
  found <- maximum(at, c(2, 1, 0, 1))
  expect_equal(-fit$logLik, found$objective, tolerance = 1e-9)
  expect_equal(unname(c(coef(fit), log(fit$aux[[1]]), fit$aux[[2]])), found$par, tolerance = 1e-4)
  # the derivatives of the mean by all parameters
  full <- solve(optimHess(found$par, at))
  mean_at <- function(p) p[1] + 2 * p[2] + exp(p[3]) * p[4] / sqrt(1 + p[4]^2) * sqrt(2 / pi)
  slope <- vapply(1:4, function(i) {
    e <- replace(numeric(4), i, 1e-5)
    (mean_at(found$par + e) - mean_at(found$par - e)) / 2e-5
  }, 0)
  one <- predict(fit, data.frame(x = 2), "response", se.fit = TRUE, interval = "confidence")
  expect_equal(one$fit[[1]], mean_at(found$par), tolerance = 1e-4)
  expect_equal(one$se.fit[[1]], sqrt(c(slope %*% full %*% slope)), tolerance = 1e-2)
  expect_equal(one$fit[[3]], one$fit[[1]] + qnorm(0.975) * one$se.fit[[1]], tolerance = 1e-8)
  conway <- cl_family(function(y, mu, nu) {
    total <- 1
    term <- 1
    for (j in 1:60) {
      term <- term * mu / j^nu
      total <- total + term
    }
    y * log(mu) - nu * lgamma(y + 1) - log(total)
  }, "log", label = "conway")
  fit <- cl_glm(n ~ x, d, conway)
  at <- function(p) {
    log_mu <- p[1] + p[2] * d$x
    log_total <- vapply(log_mu, function(l) {
      t <- 0:150 * l - exp(p[3]) * lfactorial(0:150)
      max(t) + log(sum(exp(t - max(t))))
    }, 0)
    -sum(d$n * log_mu - exp(p[3]) * lfactorial(d$n) - log_total)
  }
  found <- maximum(at, c(1, 0.4, 0))
  expect_equal(-fit$logLik, found$objective, tolerance = 1e-9)
  expect_equal(unname(c(coef(fit), log(fit$aux))), found$par, tolerance = 1e-4)
  expect_equal(unname(fitted(fit)), exp(unname(fit$linear.predictors)))
})

test_that("methods of such fits", {
  fit <- cl_glm(y ~ x, d, student)
  expect_output(print(fit), "student.*sigma: .*standard error.*\nnu: ")
  expect_output(print(summary(fit)), "z value.*sigma: .*nu: ")
  expect_equal(attr(logLik(fit), "df"), 4)
  expect_equal(residuals(fit, "response"), d$y - fitted(fit), ignore_attr = TRUE)
  expect_equal(unname(residuals(fit, "pearson")), unname(
    (d$y - fitted(fit)) / sqrt(fit$aux[["sigma"]]^2 * fit$aux[["nu"]] / (fit$aux[["nu"]] - 2))))
  expect_equal(dim(simulate(fit, 3, seed = 1)), c(80L, 3L))
  expect_equal(rownames(confint(fit)), names(coef(fit)))
  expect_equal(anova(update(fit, . ~ 1), fit)$Df[2], 1)
  bare <- cl_family(function(y, mu) dpois(y, mu, log = TRUE), "log")
  expect_error(simulate(cl_glm(n ~ x, d, bare)), "draw")
})

test_that("what is wrong with a density is said", {
  f <- function(y, mu, s) dnorm(y, mu, s, log = TRUE)
  expect_refused("name", cl_family(function(y) y), cl_family(function(y, mu, ...) y),
                 cl_family(f, mean = 3))
  expect_refused("link", cl_family(f, "odd"))
  expect_refused("parameters", cl_family(f, parameters = c(t = "log")),
                 cl_family(f, parameters = c(s = "odd")))
  expect_refused("start", cl_family(f, start = list(t = 1)), cl_family(f, start = list(s = -1)),
                 cl_glm(y ~ x, d, cl_family(f, "log", start = list(mu = function(y) -1))))
  expect_refused("label", cl_family(f, label = 3))
  counts <- cl_family(function(y, mu) dpois(y, mu, log = TRUE), "log")
  expect_refused("family", cl_glm(I(-n) ~ x, d, counts))
})
