# Rows of families: log densities and derivatives from C, one by one, and what rows promise.

family_cases <- function(name) {
  n <- 12
  eta <- seq(-2, 2.5, length.out = n)
  row <- family_row(name)
  list(row = row, eta = eta, trials = if (row$trials) rep(7, n),
       y = switch(row$read, binary = rep(0:1, n / 2), trials = rep(c(0, 3, 7), n / 3),
                  classes = rep(1:4, n / 4), if (row$whole) rep(c(0, 1, 2, 5, 40, 700), n / 6) else
                    if (row$link == "log") exp(eta) * rep(c(0.4, 3, 1.1), n / 3) else
                      eta + rep(c(-1, 2, 0.3), n / 3)),
       aux = switch(aux_parameter(name), sigma = 1.7, phi = 2.3, cuts = c(-1, 0.4, 1.5)))
}

slope_of <- function(f, h = 1e-4) (f(-2 * h) - 8 * f(-h) + 8 * f(h) - f(2 * h)) / (12 * h)

test_that("log densities are those of R, derivatives those of the values", {
  by_r <- list(
    bernoulli_logit = function(a) dbinom(a$y, 1, plogis(a$eta), log = TRUE),
    binomial_logit = function(a) dbinom(a$y, a$trials, plogis(a$eta), log = TRUE),
    normal_id = function(a) dnorm(a$y, a$eta, a$aux, log = TRUE),
    poisson_log = function(a) dpois(a$y, exp(a$eta), log = TRUE),
    neg_binomial_2_log = function(a) dnbinom(a$y, a$aux, mu = exp(a$eta), log = TRUE),
    ordered_logistic = function(a) {
      ends <- c(-Inf, a$aux, Inf)
      log(plogis(ends[a$y + 1] - a$eta) - plogis(ends[a$y] - a$eta))
    })
  expect_setequal(names(by_r), setdiff(families_with("glm"), "categorical_logit"))
  for (name in names(by_r)) {
    a <- family_cases(name)
    terms <- function(d = 0, aux = a$aux) {
      family_terms(a$row, a$y, a$eta + d, aux, a$trials, 10L)
    }
    at <- terms()
    expect_close(at$value, by_r[[name]](a), 1e-12)
    expect_close(at$score, slope_of(function(d) terms(d)$value), 1e-7)
    expect_close(at$weight, -slope_of(function(d) terms(d)$score), 1e-7)
    expect_equal(at$d_weight, slope_of(function(d) terms(d)$weight), tolerance = 1e-7)
    for (part in c("value", "score", "weight")) for (k in seq_along(a$aux)) {
      moved <- slope_of(function(d) terms(aux = replace(a$aux, k, a$aux[k] + d))[[part]])
      own <- at[[paste0(part, "_aux")]]
      if (a$row$ordered) own <- own * (a$y == k) + at[[paste0(part, "_low")]] * (a$y == k + 1)
      expect_close(own, moved, 1e-7)
    }
    again <- family_terms(a$row, a$y, a$eta, a$aux, a$trials, 1L, at$constant)
    expect_identical(again$value, at$value)
  }
})

test_that("the log density of classes has the shares as derivatives", {
  eta <- matrix(c(0.3, -1, 2, 0, 1, 5, -2, 0.5, 30), 3)
  at <- family_terms(family_row("categorical_logit"), 1:3, eta)
  share <- exp(eta) / rowSums(exp(eta))
  expect_close(at$value, log(share[cbind(1:3, 1:3)]), 1e-12)
  expect_close(at$score, diag(3) - share, 1e-12)
})

test_that("weights on a device and moments of draws are those of the rows", {
  set.seed(3)
  for (name in families_with("glm")) {
    a <- family_cases(name)
    if (!a$row$classes) {
      mu <- a$row$inverse(c(-0.3, 0.4))
      drawn <- lapply(mu, function(m) {
        a$row$draw(4e4, rep(m, 4e4), if (a$row$trials) 7 else 1, a$aux)
      })
      size <- if (a$row$trials) 7 else 1
      expect_equal(vapply(drawn, mean, 0), size * mu, tolerance = 0.03, label = name)
      expect_equal(vapply(drawn, var, 0), size * a$row$variance(mu, a$aux) *
                     if (a$row$least_squares) a$aux^2 else 1, tolerance = 0.05, label = name)
    }
    if (is.function(a$row$probability)) {
      cumulative <- a$row$probability(a$y, a$row$inverse(a$eta), a$aux, a$trials)
      expect_true(all(cumulative >= 0 & cumulative <= 1), label = name)
    }
    if (a$row$classes && !a$row$ordered || is.null(a$row$device$weight)) next
    expect_close(a$row$device$weight(a$y, a$eta, a$aux, a$trials),
                 family_terms(a$row, a$y, a$eta, a$aux, a$trials, 3L)$weight, 1e-12)
  }
})

test_that("a proportion that is no whole count has the log likelihood of its weight", {
  set.seed(1)
  d <- data.frame(x = rnorm(20), y = runif(20, 0.1, 0.9), w = rep(c(3, 40), 10))
  fit <- on_host(suppressWarnings(cl_glm(y ~ x, d, "binomial_logit", weights = w)))
  eta <- fit$linear.predictors
  choose_of <- function(n, k) lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
  expect_close(as.numeric(logLik(fit)),
               sum(choose_of(d$w, d$w * d$y) + d$w * (d$y * eta - log1p(exp(eta)))), 1e-10)
})
