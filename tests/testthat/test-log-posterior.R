likelihood_of <- function(n = 50, k = 2) {
  set.seed(1)
  x <- matrix(rnorm(n * k), n)
  cl_likelihood("bernoulli_logit", rbinom(n, 1, plogis(0.5 + x[, 1])), x)
}

test_that("terms add up, with right gradients", {
  likelihood <- likelihood_of()
  scale <- 2.5
  posterior <- cl_log_posterior(
    likelihood, ~ -(beta / scale)^2 / 2, ~ log(dnorm(alpha / 5)) - 0.1 * exp(alpha),
    function(beta) with_slope(-sum(beta^4), -4 * beta^3),
    function(alpha, beta) with_slope(alpha * sum(beta), list(alpha = sum(beta), beta = alpha + 0 *
                                                               beta)))
  beta <- c(0.4, -0.7)
  value <- posterior(alpha = 0.3, beta = beta)
  expect_equal(as.vector(value),
               as.vector(likelihood(0.3, beta)) - sum((beta / 2.5)^2) / 2 +
                 dnorm(0.3 / 5, log = TRUE) - 0.1 * exp(0.3) - sum(beta^4) + 0.3 * sum(beta),
               tolerance = 1e-14)
  expect_named(attr(value, "gradient"), c("alpha", "beta"))
  expect_lt(max(cl_check_gradient(posterior, alpha = 0.3, beta = beta)$error), 1e-8)
  # in another order, too, and with other lengths
  expect_equal(as.vector(posterior(beta = beta, alpha = 0.3)), as.vector(value))
  expect_output(print(posterior), "~-\\(beta/scale\\)\\^2/2")
  expect_output(print(posterior), "function\\(alpha, beta\\)")
})

test_that("parameters of different lengths are recycled, and shapes stay", {
  # eight schools, centred
  posterior <- cl_log_posterior(~ -(theta - mu)^2 / (2 * tau^2) - log(tau), ~ -tau / 5)
  theta <- c(1, -0.5, 2, 0.3)
  value <- posterior(theta = theta, mu = 0.5, tau = 1.5)
  expect_equal(as.vector(value), sum(dnorm(theta, 0.5, 1.5, log = TRUE)) + 2 * log(2 * pi) - 0.3)
  expect_lt(max(cl_check_gradient(posterior, theta = theta, mu = 0.5, tau = 1.5)$error), 1e-8)
  matrices <- cl_log_posterior(~ -(m - v)^2)
  m <- matrix(1:6 / 7, 3)
  slope <- attr(matrices(m = m, v = c(1, 2, 3)), "gradient")
  expect_identical(dim(slope$m), c(3L, 2L))
  expect_equal(slope$v, rowSums(2 * (m - c(1, 2, 3))))
})

test_that("terms that cannot be used are refused by name", {
  refused <- function(pattern, ..., at = list(a = 1, b = c(1, 2, 3))) {
    e <- expect_fault(do.call(cl_log_posterior(...), at), "argument", argument = "...")
    expect_match(conditionMessage(e), pattern, fixed = TRUE)
  }
  refused("no terms")
  refused("must be a formula or a function, not", 3)
  refused("no left side", a ~ b)
  refused("none of the parameters a, b", ~ -x^2)
  refused("cannot be derived", ~ -sum(b))
  refused("none of the parameters a, b", function(x) x)
  refused("attribute \"gradient\"", function(a) -a^2)
  refused("attribute \"gradient\"", function(a, b) with_slope(-a^2, -2 * a))
  refused("differ in length", ~ -(b - d)^2, at = list(b = c(1, 2, 3, 4), d = c(1, 2, 3, 4, 5, 6) *
                                                        1))
  refused("with names", ~ -a^2, at = list(1))
})

test_that("a hierarchical model with priors has the right posterior", {
  # y_i ~ N(mu, sigma), both unknown, conjugate: sigma^-2 ~ gamma(2, 1), mu ~ N(0, 2 sigma)
  set.seed(3)
  y <- rnorm(20, 1, 2)
  posterior <- cl_log_posterior(~ -(y_data - mu)^2 / (2 * sigma^2) - log(sigma),
                                ~ -mu^2 / (8 * sigma^2) - log(sigma),
                                ~ -5 * log(sigma) - 1 / sigma^2)
  y_data <- y
  fit <- cl_sample(posterior, list(mu = 0, sigma = 1), transform = list(sigma = cl_lower(0)),
                   chains = 4, warmup = 300, iter = 500, seed = 2)
  n <- length(y)
  precision <- n + 1 / 4
  shape <- 2 + n / 2
  rate <- 1 + (sum(y^2) - sum(y)^2 / precision) / 2
  draws <- as.matrix(fit)
  tau <- array(1 / draws[, "sigma"]^2, c(500, 4))
  error <- sd(tau) / sqrt(effective_size(halves(tau)))
  expect_lt(abs(mean(tau) - shape / rate), 4 * error)
  table <- summary(fit, "mu")
  expect_lt(abs(table$mean - sum(y) / precision), 4 * table$mcse)
  expect_equal(table$sd, sqrt(rate / (shape - 1) / precision), tolerance = 0.07)
})

test_that("several chains at once agree with one after another", {
  posterior <- cl_log_posterior(function(beta) with_slope(-sum(beta^2), -2 * beta), ~ -alpha^2)
  run <- function(...) {
    cl_sample(posterior, list(alpha = 0, beta = c(0, 0)), chains = 3, warmup = 100, iter = 50,
              seed = 1, ...)
  }
  expect_identical(run(batch = TRUE)$draws, run()$draws)
})
