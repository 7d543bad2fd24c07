# Firth's penalised likelihood: cl_glm(method = "firth").

test_each_engine("saturated models add half a success and half a failure, or half an event", {
  group <- factor(c("a", "b", "c"))
  successes <- c(0, 3, 10)
  trials <- c(10, 10, 10)
  fit <- cl_glm(cbind(successes, trials - successes) ~ group - 1, family = binomial,
                method = "firth")
  expect_equal(unname(coef(fit)), qlogis((successes + 0.5) / (trials + 1)), tolerance = 1e-9)
  mu <- unname(fitted(fit))
  expect_equal(unname(diag(vcov(fit))), 1 / (trials * mu * (1 - mu)), tolerance = 1e-9)
  expect_output(print(fit), "by Firth's penalised likelihood", fixed = TRUE)
  counts <- c(0, 0, 1, 4, 2, 9)
  where <- gl(3, 2)
  fit <- cl_glm(counts ~ where - 1, family = "poisson_log", method = "firth")
  expect_equal(unname(coef(fit)), log((tapply(counts, where, sum) + 0.5) / 2)[1:3],
               ignore_attr = TRUE, tolerance = 1e-9)
})

test_each_engine("it is the maximum of the likelihood times the root of the information", {
  set.seed(3)
  x <- cbind(1, matrix(rnorm(90), 30), rep(0:1, 15))
  y <- as.double(x[, 2] + 0.1 * x[, 3] > 0) # separated
  w <- runif(30, 0.5, 2)
  offset <- rnorm(30) / 4
  penalised <- function(beta, log_density, weight) {
    eta <- as.vector(x %*% beta) + offset
    -sum(w * log_density(eta)) -
      0.5 * as.vector(determinant(crossprod(x * sqrt(w * weight(eta))))$modulus)
  }
  of <- function(...) optim(numeric(5), penalised, ..., method = "BFGS",
                            control = list(reltol = 1e-15, maxit = 1000))$par
  expect_warning(fit <- cl_glm(x, y, method = "firth", intercept = FALSE, weights = w,
                               offset = offset), "non-integer #successes") # as glm()'s
  expect_true(fit$converged)
  best <- of(log_density = function(eta) dbinom(y, 1, plogis(eta), log = TRUE),
             weight = function(eta) plogis(eta) * plogis(-eta))
  expect_equal(unname(coef(fit)), best, tolerance = 1e-5)
  # the likelihood itself has no maximum
  expect_warning(cl_glm(x, y, intercept = FALSE), class = "statcl_warning")
  k <- rpois(30, 1)
  fit <- cl_glm(x, k, "poisson_log", method = "firth", intercept = FALSE, weights = w,
                offset = offset)
  best <- of(log_density = function(eta) dpois(k, exp(eta), log = TRUE), weight = exp)
  expect_equal(unname(coef(fit)), best, tolerance = 1e-5)
})

test_that("columns that are combinations of others, predictions, and what is refused", {
  d <- data.frame(y = c(0, 0, 0, 1, 1), x = 1:5, twice = 2 * 1:5)
  fit <- cl_glm(y ~ x + twice, data = d, method = "firth")
  expect_true(is.na(coef(fit)[["twice"]]))
  expect_equal(coef(fit)[1:2], coef(cl_glm(y ~ x, data = d, method = "firth")), tolerance = 1e-8)
  expect_warning(again <- predict(fit, d, type = "response"), "rank-deficient")
  expect_equal(unname(again), unname(fitted(fit)))
  expect_true(all(is.finite(confint(fit)[1:2, ])))
  expect_error(cl_glm(x ~ y, data = d, family = "normal_id", method = "firth"),
               "not for family normal_id", class = "statcl_error_argument")
  expect_error(cl_glm(y ~ x, data = d, family = binomial("probit"), method = "firth"),
               "not for family binomial(probit)", fixed = TRUE)
  expect_error(cl_glm(y ~ x, data = d, method = "firth", prior = prior_normal()),
               class = "statcl_error_argument")
})
