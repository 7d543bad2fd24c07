# Fits with random effects and priors, against dense likelihoods in base R.

set.seed(2)
d <- data.frame(g = factor(rep(1:6, each = 5)), x = rnorm(30), w = runif(30, 0.5, 2))
d$y <- 10 * (1 + d$x + rnorm(6)[d$g] + rnorm(30))
d$n <- rpois(30, exp(0.5 + 0.3 * d$x + rnorm(6, 0, 0.5)[d$g]))

test_that("the mode of a linear model is that of its dense density", {
  priors <- list(intercept = prior_normal(5, 20), coefficients = prior_student_t(4, 0, 3),
                 sd_g = prior_gamma(2.5, 0.05), cor = 1.7, sigma = prior_gamma(3, 0.2))
  fit <- cl_glm(y ~ x + (x | g), d, "normal_id", "map", prior = priors, weights = w)
  x <- cbind(1, d$x)
  g <- model.matrix(~ 0 + g, d)
  z <- cbind(g, g * d$x)
  at <- function(p) { # minus the log posterior density, and the log likelihood
    s <- exp(p[3:4])
    r <- tanh(p[5])
    sigma <- exp(p[6])
    v <- z %*% kronecker(outer(s, s) * matrix(c(1, r, r, 1), 2), diag(6)) %*% t(z) +
      diag(sigma^2 / d$w)
    root <- chol(v)
    value <- -sum(backsolve(root, d$y - x %*% p[1:2], transpose = TRUE)^2) / 2 -
      sum(log(diag(root))) - 15 * log(2 * pi)
    prior <- dnorm(p[1], 5, 20, log = TRUE) + dt(p[2] / 3, 4, log = TRUE) - log(3) +
      sum(dgamma(s, 2.5, 0.05, log = TRUE)) + 0.7 * log(1 - r^2) + dgamma(sigma, 3, 0.2, log = TRUE)
    structure(-value - prior, likelihood = value)
  }
  found <- nlminb(c(10, 5, 2, 2, 0, 2), at, control = list(rel.tol = 1e-14))
  found <- nlminb(found$par, at, control = list(rel.tol = 1e-14))
  spread <- fit$variances$g
  own <- c(coef(fit), log(diag(spread)) / 2, atanh(cov2cor(spread)[1, 2]), log(sigma(fit)))
  expect_equal(fit$objective, -found$objective, tolerance = 1e-9)
  expect_equal(-as.vector(at(own)), fit$objective, tolerance = 1e-9)
  expect_equal(fit$logLik, attr(at(own), "likelihood"), tolerance = 1e-9)
  expect_equal(unname(own), found$par, tolerance = 1e-4)
  # standard errors by second derivatives
  h <- optimHess(own, function(p) as.vector(at(p)))
  expect_equal(unname(sqrt(diag(vcov(fit)))), unname(sqrt(diag(solve(h)))[1:2]), tolerance = 1e-3)
  expect_output(print(summary(fit)), "posterior mode.*Priors:.*gamma\\(2.5, 0.05\\)")
  expect_refused("...", anova(fit, fit))
})

test_that("the mode of a count model is that of its Laplace approximation", {
  priors <- list(coefficients = prior_normal(0, 1), sd = function(s) dexp(s, 2, log = TRUE))
  fit <- cl_glm(n ~ x + (1 | g), d, "poisson_log", "map", prior = priors)
  shown <- as.numeric(regmatches(fit$prior[[1]], gregexpr("[0-9.-]+", fit$prior[[1]]))[[1]])
  at <- function(p) {
    s <- exp(p[3])
    value <- 0
    for (k in 1:6) {
      own <- d$g == k
      eta <- p[1] + p[2] * d$x[own]
      joint <- function(b) sum(dpois(d$n[own], exp(eta + b), log = TRUE)) + dnorm(b, 0, s, TRUE)
      b <- 0
      for (i in 1:30) {
        mu <- exp(eta + b)
        b <- b + (sum(d$n[own] - mu) - b / s^2) / (sum(mu) + 1 / s^2)
      }
      value <- value + joint(b) - log(sum(exp(eta + b)) + 1 / s^2) / 2 + log(2 * pi) / 2
    }
    -value - dnorm(p[1], shown[1], shown[2], log = TRUE) - dnorm(p[2], log = TRUE) -
      dexp(s, 2, log = TRUE)
  }
  found <- nlminb(c(0.5, 0, -1), at, control = list(rel.tol = 1e-13))
  expect_equal(fit$objective, -found$objective, tolerance = 1e-8)
  expect_equal(unname(c(coef(fit), log(fit$variances$g) / 2)), found$par, tolerance = 1e-4)
  negative <- suppressWarnings(cl_glm(n ~ x + (1 | g), d, "neg_binomial_2_log", "map",
                                      prior = list(phi = prior_gamma(4, 1))))
  expect_true(negative$converged)
  expect_gt(negative$aux_error, 0)
})

test_that("default priors keep variances off 0 and correlations off 1", {
  flat <- data.frame(g = factor(rep(1:5, each = 4)), x = rep(1:4, 5), n = rep(c(3, 1, 4, 2), 5))
  expect_message(ml <- cl_glm(n ~ x + (x | g), flat, "poisson_log"), "singular")
  expect_silent(map <- cl_glm(n ~ x + (x | g), flat, "poisson_log", "map"))
  expect_true(ml$singular)
  expect_false(map$singular)
  expect_gt(min(eigen(map$variances$g)$values), 0)
  expect_true(all(is.finite(predict(map, se.fit = TRUE)$se.fit)))
  d$y <- d$y / 1e6 # other units
  small <- cl_glm(y ~ x + (x | g), d, "normal_id", "map")
  d$y <- d$y * 1e6
  usual <- cl_glm(y ~ x + (x | g), d, "normal_id", "map")
  expect_equal(coef(small) * 1e6, coef(usual), tolerance = 1e-4)
  expect_equal(small$variances$g * 1e12, usual$variances$g, tolerance = 1e-3)
})

test_that("sampling has the same priors", {
  d$w <- NULL
  work <- function(prior) {
    frame <- model.frame(y ~ x + g, d)
    x <- model.matrix(~ x, d)
    work <- list(glm = new_glm_problem("normal_id", x, list(y = d$y), NULL, 1L), x = x, kept = 1:2,
                 designs = random_designs(list(list(columns = quote(x), group = quote(g))), frame),
                 family = "normal_id", method = "mcmc")
    work$priors <- mixed_priors(prior, work)
    mixed_target(work, list(beta = c(9, 8), vcov = diag(2:3), sigma = 8))
  }
  plain <- work(list(sd = prior_normal(0, 1), cor = 1, sigma = prior_normal(0, 3)))
  other <- work(list(x = prior_normal(1, 2), sd = prior_gamma(3, 0.5), cor = 3,
                     sigma = prior_lognormal(1, 1)))
  at <- function(target, b = 0, s = 0, r = 0, aux = 0) {
    start <- target$init
    start$b[] <- b
    start$s1 <- start$s1 + s
    start$r1 <- r
    start$aux <- aux
    list(value = do.call(target$density, start), beta = c(9, 8) + sqrt(2:3) * b,
         sd = exp(start$s1) / target$scale[[1]], cor = tanh(r), sigma = exp(aux))
  }
  points <- list(list(), list(b = 1), list(s = 0.7), list(r = 0.4), list(aux = 1.1))
  expected <- function(q) {
    usual <- default_coefficients(list(intercept = 1L, names = c("(Intercept)", "x")),
                                  glm_spread(list(x = cbind(1, d$x), y = d$y,
                                                  family = "normal_id")))
    dnorm(q$beta[2], 1, 2, TRUE) - dnorm(q$beta[2], usual$mean[2], usual$sd[2], TRUE) +
      sum(dgamma(q$sd, 3, 0.5, log = TRUE) - dnorm(q$sd, 0, 1, TRUE)) + 2 * log(1 - q$cor^2) +
      dlnorm(q$sigma, 1, 1, TRUE) - dnorm(q$sigma, 0, 3, TRUE)
  }
  change <- vapply(points, function(p) do.call(at, c(list(other), p))$value -
                     do.call(at, c(list(plain), p))$value, 0)
  wanted <- vapply(points, function(p) expected(do.call(at, c(list(other), p))), 0)
  expect_equal(diff(change), diff(wanted), tolerance = 1e-7)
  strong <- suppressWarnings(cl_glm(y ~ x + (1 | g), d, "normal_id", "mcmc", control = list(
    seed = 1, chains = 1, warmup = 100, iter = 100), prior = list(x = prior_normal(3, 0.01))))
  expect_equal(coef(strong)[["x"]], 3, tolerance = 0.01)
  expect_output(print(summary(strong)), "normal\\(3, 0.01\\)")
  for (prior in list(list(z = prior_normal()), list(sd_h = prior_normal()), list(sd = 1),
                     list(cor = 0.5), prior_normal, 3)) {
    expect_fault(cl_glm(y ~ x + (1 | g), d, "normal_id", "map", prior = prior), "argument")
  }
})
