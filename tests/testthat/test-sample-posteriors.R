# Posteriors known from other sources.

skip_on_cran() # long; run by ./dev check

test_that("a density whose scale changes, and a nearly singular one, have the correct moments", {
  # v ~ N(0, 1), x_i ~ N(0, exp(v / 2)): a mild funnel
  funnel <- function(z) {
    x <- z[-1]
    with_slope(-z[1]^2 / 2 - z[1] - sum(x^2) * exp(-z[1]) / 2,
               c(-z[1] - 1 + sum(x^2) * exp(-z[1]) / 2, -x * exp(-z[1])))
  }
  fit <- quiet_sample(funnel, c(v = 0, x1 = 0, x2 = 0), chains = full_or_quick(4, 2), warmup = 500,
                      iter = full_or_quick(1500, 700), seed = 1, adapt_delta = 0.95)
  expect_lt(mean(fit$diagnostics$divergent), 0.005)
  expect_moments(fit, c(0, 0, 0), sqrt(c(1, exp(0.5), exp(0.5))))
  # a random walk of 12 steps, observed by its positions: correlations up to 0.96
  covariance <- outer(1:12, 1:12, pmin)
  fit <- cl_sample(normal_density(numeric(12), covariance), numeric(12), warmup = 400, seed = 1,
                   chains = full_or_quick(4, 2), iter = 800)
  expect_moments(fit, numeric(12), sqrt(1:12))
  expect_lt(max(abs(cov(as.matrix(fit)) - covariance)), full_or_quick(1, 1.5))
})

test_that("a logistic posterior agrees with quadrature", {
  # two parameters, few observations: far from normal
  x <- c(-1.2, -0.3, 0.1, 0.8, 1.5, 2.2)
  y <- c(0, 0, 1, 0, 1, 1)
  likelihood <- cl_likelihood("bernoulli_logit", y, x)
  posterior <- cl_log_posterior(likelihood, ~ -alpha^2 / 8, ~ -beta^2 / 8)
  a <- seq(-9, 9, length.out = 241)
  grid <- expand.grid(alpha = a, beta = a)
  eta <- outer(grid$alpha, rep(1, 6)) + outer(grid$beta, x)
  weight <- exp(rowSums(matrix(plogis(eta * rep(2 * y - 1, each = nrow(grid)), log.p = TRUE),
                               nrow(grid))) - grid$alpha^2 / 8 - grid$beta^2 / 8)
  weight <- weight / sum(weight)
  mean <- colSums(grid * weight)
  sd <- sqrt(colSums(grid^2 * weight) - mean^2)
  fit <- cl_sample(posterior, list(alpha = 0, beta = 0), chains = 4, warmup = 300, iter = 1000,
                   seed = 1)
  expect_moments(fit, unname(mean), unname(sd))
  below <- sum(weight[grid$beta < 1])
  draws <- 1 * (fit$draws[, , "beta"] < 1)
  expect_lt(abs(mean(draws) - below), 4 * sd(draws) / sqrt(effective_size(halves(draws))))
})

test_that("a logistic posterior agrees with Stan", {
  skip_if_not(nzchar(system.file(package = "MASS")), "the package MASS")
  expected <- read.csv(test_path("..", "reference", "logistic-rstan.csv"))
  data <- MASS::birthwt
  x <- with(data, cbind(age = (age - 23) / 5, lwt = (lwt - 130) / 30, smoke = smoke, ht = ht,
                        ui = ui, ptl = pmin(ptl, 1)))
  posterior <- cl_log_posterior(cl_likelihood("bernoulli_logit", data$low, x), ~ -alpha^2 / 50,
                                ~ -beta^2 / 12.5)
  fit <- cl_sample(posterior, list(alpha = 0, beta = numeric(6)), chains = 4, warmup = 400,
                   iter = 1000, seed = 1)
  probs <- c(0.025, 0.5, 0.975)
  table <- summary(fit, probs = probs)
  expect_identical(table$parameter, expected$parameter)
  expect_lt(max(abs(table$mean - expected$mean) / sqrt(table$mcse^2 + expected$mcse^2)), 4)
  expect_lt(max(abs(table$sd / expected$sd - 1)), 0.05)
  off <- abs(table[c("2.5%", "50%", "97.5%")] - expected[c("q025", "q50", "q975")]) / expected$sd
  draws <- 1 / (1 / table$ess_tail + (expected$mcse / expected$sd)^2)
  error <- outer(1 / sqrt(draws), sqrt(probs * (1 - probs)) / dnorm(qnorm(probs)))
  expect_lt(max(off / error), 5)
})

test_that("a model may have no predictors", {
  y <- c(0, 1, 1, 1, 0, 1, 1)
  likelihood <- cl_likelihood("bernoulli_logit", y, matrix(0, 7, 0))
  fit <- cl_sample(cl_log_posterior(likelihood, ~ alpha - 2 * log(1 + exp(alpha))),
                   list(alpha = 0, beta = numeric()), chains = 2, warmup = 200, iter = 1000,
                   seed = 1)
  # the prior makes the probability beta(1, 1): the posterior is beta(6, 3)
  share <- plogis(fit$draws[, , "alpha"])
  error <- sd(share) / sqrt(effective_size(halves(share)))
  expect_lt(abs(mean(share) - 6 / 9), 4 * error)
})

test_that("with many observations the posterior is that of maximum likelihood", {
  set.seed(4)
  n <- 4000
  x <- matrix(rnorm(n * 3), n)
  y <- rbinom(n, 1, plogis(3 * x[, 1] - 2 * x[, 2] + 1))
  peer <- glm(y ~ x, family = binomial)
  likelihood <- cl_likelihood("bernoulli_logit", y, x)
  fit <- cl_sample(likelihood, list(alpha = 0, beta = numeric(3)), chains = 2, warmup = 300,
                   iter = 500, seed = 1)
  error <- sqrt(diag(vcov(peer)))
  table <- summary(fit)
  # the skewness moves the mean by a tenth or so of the standard error
  expect_lt(max(abs(table$mean - coef(peer)) / error), 0.25)
  expect_equal(table$sd, unname(error), tolerance = 0.1)
  expect_lt(max(table$rhat), 1.02)
})

test_each_engine("a likelihood on a device gives the host's posterior", {
  set.seed(5)
  x <- matrix(rnorm(600), 200)
  y <- rbinom(200, 1, plogis(x[, 1]))
  likelihood <- cl_likelihood("bernoulli_logit", y, x)
  fit <- cl_sample(likelihood, list(alpha = 0, beta = numeric(3)), chains = 1, warmup = 40,
                   iter = 10, seed = 1, jitter = 1)
  again <- with_cl(cl_sample(cl_likelihood("bernoulli_logit", y, x),
                             list(alpha = 0, beta = numeric(3)), chains = 1, warmup = 40,
                             iter = 10, seed = 1, jitter = 1), engine = "host")
  # chains diverge after rounding differences have grown; at first they are the same
  expect_equal(fit$draws[1, 1, ], again$draws[1, 1, ], tolerance = 1e-3)
})

test_that("the parameters of a Gaussian process can be sampled", {
  set.seed(6)
  x <- seq(0, 1, length.out = 15)
  y <- sin(6 * x) + rnorm(15, sd = 0.2)
  likelihood <- cl_gp_likelihood(y, x, k_exp_quad())
  # log-normal priors on all three: with the Jacobian, normal ones on the logarithms
  density <- function(par) {
    value <- likelihood(par)
    logs <- log(par / c(1, 0.3, 0.2))
    with_slope(as.vector(value) - sum(logs^2) / 2 - sum(log(par)),
               attr(value, "gradient") - (logs + 1) / par)
  }
  fit <- quiet_sample(density, c(sd = 1, lengthscale = 0.3, noise = 0.2), transform = cl_lower(0),
                      chains = 2, warmup = 150, iter = 200, seed = 1)
  # self-normalised importance sampling from the prior
  logs <- matrix(rnorm(3 * 4000), 3) + log(c(1, 0.3, 0.2))
  weight <- apply(logs, 2, function(z) {
    tryCatch(likelihood(exp(z), gradient = FALSE)[1], statcl_error = function(e) -Inf)
  })
  weight <- exp(weight - max(weight))
  expected <- colSums(t(logs) * weight) / sum(weight)
  spread <- sqrt(colSums(t((logs - expected)^2) * weight) / sum(weight))
  found <- colMeans(log(as.matrix(fit)))
  expect_lt(max(abs(found - expected) / spread), 0.25)
})

test_that("ranks are uniform in simulation-based calibration", {
  # half a minute, and the same on all engines: once in continuous integration is enough
  skip_if_not(identical(Sys.getenv("STATCL_TEST_DEVICE"), "required"), "the long run")
  # mu ~ N(0, 1), sigma ~ exponential(1), y_i ~ N(mu, sigma), 5 of them. Ranks of the parameters
  # and of the log likelihood among 19 draws, of 500 data sets.
  ranks <- function(jacobian, count) {
    set.seed(7)
    t(vapply(seq_len(count), function(i) {
      mu <- rnorm(1)
      sigma <- rexp(1)
      y <- rnorm(5, mu, sigma)
      sums <- c(sum(y), sum(y^2))
      log_likelihood <- function(mu, sigma) {
        -5 * log(sigma) - (sums[2] - 2 * mu * sums[1] + 5 * mu^2) / (2 * sigma^2)
      }
      density <- function(x) {
        mu <- x[1L]
        sigma <- x[2L]
        squares <- sums[2L] - 2 * mu * sums[1L] + 5 * mu^2
        with_slope(-mu^2 / 2 - sigma - (5 + jacobian) * log(sigma) - squares / (2 * sigma^2),
                   c(-mu + (sums[1L] - 5 * mu) / sigma^2,
                     -1 - (5 + jacobian) / sigma + squares / sigma^3))
      }
      fit <- quiet_sample(density, c(mu = 0, sigma = 1), transform = list(sigma = cl_lower(0)),
                          chains = 1, warmup = 80, iter = 57, jitter = 0.5)
      draws <- as.matrix(fit)[seq(3, 57, by = 3), ]
      c(sum(draws[, 1] < mu), sum(draws[, 2] < sigma),
        sum(log_likelihood(draws[, 1], draws[, 2]) < log_likelihood(mu, sigma)))
    }, numeric(3)))
  }
  p_values <- function(ranks) {
    apply(ranks, 2, function(r) chisq.test(table(factor(r %/% 2, 0:9)))$p.value)
  }
  expect_gt(min(p_values(ranks(0, full_or_quick(500, 250)))), 1e-3)
  # a density without its Jacobian is detected
  expect_lt(min(p_values(ranks(1, 100))), 1e-3)
})

# ---- families, several chains at once -----------------------------------------------------------

# Likelihoods of all families with a start value and transforms for their parameters.
family_models <- function() {
  set.seed(8)
  n <- 40
  x <- matrix(rnorm(2 * n), n)
  eta <- 0.5 + x[, 1]
  ab <- list(alpha = 0, beta = c(0, 0))
  positive <- cl_lower(0)
  model <- function(family, y, init = ab, transform = NULL, ...) {
    list(f = cl_likelihood(family, y, x, ...), init = init, transform = transform)
  }
  list(
    bernoulli = model("bernoulli_logit", rbinom(n, 1, plogis(eta))),
    binomial = model("binomial_logit", rbinom(n, 7, plogis(eta)), trials = 7),
    normal = model("normal_id", eta + rnorm(n), c(ab, sigma = 1), list(sigma = positive)),
    poisson = model("poisson_log", rpois(n, exp(eta))),
    negative = model("neg_binomial_2_log", rnbinom(n, mu = exp(eta), size = 2), c(ab, phi = 1),
                     list(phi = positive)),
    categorical = model("categorical_logit", rep_len(1:3, n),
                        list(alpha = c(0, 0, 0), beta = matrix(0, 2, 3))),
    ordered = model("ordered_logistic", rep_len(c(1, 2, 2, 3), n),
                    list(beta = c(0, 0), cuts = c(-1, 1)), list(cuts = cl_ordered())))
}

test_each_engine("a family's evaluations for several chains are those for each", {
  for (model in family_models()) {
    layout <- parameter_layout(model$init, model$transform)
    points <- matrix(sin(seq_len(3 * layout$dimension)), layout$dimension)
    one <- make_evaluator(model$f, layout, "stop")
    many <- make_batch_evaluator(model$f, layout, "stop")(points)
    for (j in 1:3) {
      single <- one(points[, j])
      expect_close(many[[j]][[1]], single[[1]], 1e-12)
      expect_close(many[[j]][[2]], single[[2]], 1e-11)
      by <- function(u) with_slope(one(u)[[1]], one(u)[[2]])
      expect_lt(max(cl_check_gradient(by, points[, j])$error), 1e-7)
    }
    # with a prior, on the largest of the parameters
    prior <- stats::as.formula(sprintf("~ -%s^2", names(model$init)[2]))
    sum <- make_batch_evaluator(cl_log_posterior(model$f, prior), layout, "stop")(points)
    alone <- make_evaluator(cl_log_posterior(model$f, prior), layout, "stop")
    for (j in 1:3) {
      expect_close(sum[[j]][[1]], alone(points[, j])[[1]], 1e-12)
      expect_close(sum[[j]][[2]], alone(points[, j])[[2]], 1e-11)
    }
  }
})

test_that("chains of a large likelihood run in lockstep by default", {
  set.seed(9)
  x <- matrix(rnorm(12000), 3000)
  y <- rbinom(3000, 1, plogis(x[, 1]))
  likelihood <- cl_likelihood("bernoulli_logit", y, x)
  expect_true(batch_pays(likelihood, 4))
  expect_true(batch_pays(cl_log_posterior(likelihood, ~ -alpha^2), 4))
  expect_false(batch_pays(likelihood, 1))
  expect_false(batch_pays(cl_likelihood("bernoulli_logit", y, x[, 1]), 4))
  expect_false(batch_pays(standard_normal, 4))
  run <- function(...) {
    cl_sample(likelihood, list(alpha = 0, beta = numeric(4)), chains = 3, warmup = 100, iter = 100,
              seed = 1, ...)
  }
  lockstep <- run()
  expect_identical(lockstep$draws, run(batch = TRUE)$draws)
  turn <- summary(run(batch = FALSE))
  together <- summary(lockstep)
  expect_lt(max(abs(turn$mean - together$mean) / sqrt(turn$mcse^2 + together$mcse^2)), 4.5)
  # priors are computed once for all chains: as often as the chain with most steps needs
  passes <- 0
  counted <- function(x) {
    passes <<- passes + 1
    x
  }
  posterior <- cl_log_posterior(likelihood, ~ dnorm(alpha, 0, counted(5), log = TRUE),
                                ~ dnorm(beta, 0, 2.5, log = TRUE))
  fit <- cl_sample(posterior, list(alpha = 0, beta = numeric(4)), chains = 4, warmup = 50,
                   iter = 50, seed = 1, check_gradient = FALSE)
  expect_lte(passes, max(fit$evaluations) + 10) # each chain's first point is one, too
  expect_lt(passes, 0.5 * sum(fit$evaluations))
})
