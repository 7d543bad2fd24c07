# cl_laplace(random = ): against exact posteriors of normal models, against integrals, and against
# cl_sample().

on_grid <- function(log_density, a, b) {
  at <- expand.grid(a, b)
  value <- mapply(log_density, at[, 1], at[, 2])
  weight <- exp(value - max(value))
  list(at = at, weight = weight / sum(weight),
       log_integral = max(value) + log(sum(weight) * diff(a[1:2]) * diff(b[1:2])))
}

weighted_quantile <- function(x, w, probs) {
  sums <- tapply(w, x, sum)
  at <- as.numeric(names(sums))
  total <- cumsum(sums) - sums / 2
  keep <- sums > 1e-10
  stats::approx(total[keep], at[keep], probs)$y
}

series <- local({
  n <- 20
  set.seed(2)
  x <- as.numeric(stats::arima.sim(list(ar = 0.8), n, sd = 0.5))
  list(n = n, y = x + stats::rnorm(n, 0, 0.4), prior = 0.8^abs(outer(1:n, 1:n, "-")) / 0.36)
})

test_each_engine("a normal response has its exact posterior", {
  n <- series$n
  y <- series$y
  nll <- function(p) {
    sd <- exp(p$sd)
    -sum(dnorm(c(p$sd, p$noise), 0, 0.7, log = TRUE)) -
      dnorm(p$x[1], 0, sd / 0.6, log = TRUE) -
      sum(dnorm(p$x[-1], 0.8 * p$x[-n], sd, log = TRUE)) -
      sum(dnorm(y, p$x, exp(p$noise), log = TRUE))
  }
  fit <- cl_laplace(cl_tmb(nll, list(sd = 0, noise = 0, x = numeric(n)), random = "x"), seed = 1)
  exact <- on_grid(function(sd, noise) {
    root <- chol(exp(2 * sd) * series$prior + exp(2 * noise) * diag(n))
    sum(dnorm(c(sd, noise), 0, 0.7, log = TRUE)) - sum(log(diag(root))) -
      sum(backsolve(root, y, transpose = TRUE)^2) / 2 - n * log(2 * pi) / 2
  }, seq(-2.6, 0.8, length.out = 60), seq(-3.8, 0.8, length.out = 60))
  expect_equal(fit$log_marginal, exact$log_integral, tolerance = 1e-4)
  probs <- c(0.05, 0.5, 0.95)
  hyper <- summary(fit, c("sd", "noise"), probs)
  for (k in 1:2) {
    x <- exact$at[, k]
    mean <- sum(exact$weight * x)
    sd <- sqrt(sum(exact$weight * (x - mean)^2))
    expect_equal(c(hyper$mean[k], hyper$sd[k]), c(mean, sd), tolerance = 5e-3)
    found <- unlist(hyper[k, c("5%", "50%", "95%")], use.names = FALSE)
    expect_lt(max(abs(found - weighted_quantile(x, exact$weight, probs))), 0.02 * sd)
  }
  first <- second <- numeric(n)
  for (k in which(exact$weight > 1e-7)) {
    prior <- exp(2 * exact$at[k, 1]) * series$prior
    gain <- prior %*% solve(prior + exp(2 * exact$at[k, 2]) * diag(n))
    m <- as.vector(gain %*% y)
    first <- first + exact$weight[k] * m
    second <- second + exact$weight[k] * (m^2 + diag(prior - gain %*% prior))
  }
  sd <- sqrt(second - first^2)
  field <- summary(fit, "x")
  expect_lt(max(abs(field$mean - first) / sd), 5e-3)
  expect_equal(field$sd, sd, tolerance = 5e-3)
  expect_lt(fit$khat, 0.01)
})

on_host({

test_that("a composite design is exact for a normal posterior", {
  set.seed(3)
  p <- 4
  d <- p + 6
  precision <- crossprod(matrix(rnorm(d * (d + 2)), d + 2))
  centre <- seq(-1, 1, length.out = d)
  f <- cl_gradient(function(theta, x) {
    z <- c(theta, x) - centre
    -sum(z * (precision %*% z)) / 2
  })
  fit <- cl_laplace(f, list(theta = numeric(p), x = numeric(6)), random = "x", seed = 1)
  expect_identical(fit$design$kind, "ccd")
  expect_length(fit$design$weight, 1 + 2 * p + 16)
  expect_equal(fit$log_marginal,
               d * log(2 * pi) / 2 - as.numeric(determinant(precision)$modulus) / 2,
               tolerance = 1e-6)
  table <- summary(fit, probs = c(0.025, 0.5, 0.975))
  sd <- sqrt(diag(solve(precision)))
  expect_equal(table$mean, centre, tolerance = 1e-4)
  expect_equal(table$sd, sd, tolerance = 1e-3)
  # elements of the field are mixtures of 25 normal distributions
  for (k in 1:3) {
    expect_equal(table[1:p, 3 + k], (centre + qnorm(c(0.025, 0.5, 0.975))[k] * sd)[1:p],
                 tolerance = 2e-3)
  }
})

test_that("three hyperparameters with a curved posterior have nearly its means and deviations", {
  set.seed(6)
  n <- 15
  y <- as.numeric(stats::arima.sim(list(ar = 0.7), n, sd = 0.5)) + rnorm(n, 0, 0.4)
  f <- cl_gradient(function(sd, noise, b, x) {
    rho <- plogis(b)
    sum(dnorm(c(sd, noise), 0, 0.7, log = TRUE)) + dnorm(b, 1, 1, log = TRUE) +
      dnorm(x[1], 0, exp(sd) / sqrt(1 - rho^2), log = TRUE) +
      sum(dnorm(x[-1], rho * x[-n], exp(sd), log = TRUE)) + sum(dnorm(y, x, exp(noise), log = TRUE))
  })
  fit <- cl_laplace(f, list(sd = 0, noise = 0, b = 1, x = numeric(n)), random = "x", seed = 1)
  axes <- list(seq(-3.2, 1.5, length.out = 18), seq(-3.2, 1.2, length.out = 18),
               seq(-2.8, 4.8, length.out = 18))
  at <- as.matrix(expand.grid(axes))
  lag <- abs(outer(1:n, 1:n, "-"))
  value <- apply(at, 1, function(p) {
    rho <- plogis(p[3])
    root <- chol(exp(2 * p[1]) / (1 - rho^2) * rho^lag + exp(2 * p[2]) * diag(n))
    sum(dnorm(p, c(0, 0, 1), c(0.7, 0.7, 1), log = TRUE)) - sum(log(diag(root))) -
      sum(backsolve(root, y, transpose = TRUE)^2) / 2 - n * log(2 * pi) / 2
  })
  weight <- exp(value - max(value))
  volume <- prod(vapply(axes, function(x) x[2] - x[1], 0))
  expect_lt(abs(fit$log_marginal - max(value) - log(sum(weight) * volume)), 0.15)
  weight <- weight / sum(weight)
  mean <- colSums(weight * at)
  spread <- sqrt(colSums(weight * at^2) - mean^2)
  found <- summary(fit, c("sd", "noise", "b"))
  expect_lt(max(abs(found$mean - mean) / spread), 0.3)
  expect_true(all(found$sd > 0.8 * spread & found$sd < spread)) # as the help page says
})

test_that("corners of a composite design estimate all products of two coordinates", {
  for (p in c(1:9, 20)) {
    corners <- statcl:::fractional_factorial(p)
    expect_identical(ncol(corners), as.integer(p))
    expect_true(all(corners %in% c(-1, 1)))
    pairs <- if (p > 1) combn(p, 2, function(i) corners[, i[1]] * corners[, i[2]])
    expect_identical(qr(cbind(1, corners, pairs))$rank, as.integer(1 + p + choose(p, 2)))
  }
  expect_identical(vapply(3:8, function(p) nrow(statcl:::fractional_factorial(p)), 0L),
                   c(8L, 16L, 16L, 32L, 64L, 64L))
})

# Counts of groups, whose effects can be integrated one by one.
counts <- list(c(0, 1), c(2, 0), c(5, 3), c(1, 0), c(9, 12))

test_that("effects of groups have the posterior that integrals give", {
  y <- unlist(counts)
  group <- rep(seq_along(counts), lengths(counts))
  f <- cl_gradient(function(sd, u) {
    dexp(sd, 1, log = TRUE) + sum(dnorm(u, 0.5, sd, log = TRUE)) +
      sum(dpois(y, exp(u[group]), log = TRUE))
  })
  fit <- cl_laplace(f, list(sd = 1, u = numeric(5)), list(sd = cl_lower(0)), random = "u", seed = 1)
  u <- seq(-9, 5, length.out = 2801)
  by_group <- vapply(counts, function(n) sum(n) * u - length(n) * exp(u) - sum(lfactorial(n)), u)
  sd <- exp(seq(-5, 2.5, length.out = 400))
  joint <- lapply(sd, function(s) exp(by_group + dnorm(u, 0.5, s, log = TRUE)) * diff(u[1:2]))
  weight <- dexp(sd, 1) * vapply(joint, function(j) prod(colSums(j)), 0) * sd
  expect_equal(fit$log_marginal, log(sum(weight) * diff(log(sd))[1]), tolerance = 1e-2)
  weight <- weight / sum(weight)
  probs <- c(0.05, 0.5, 0.95)
  found <- summary(fit, "sd", probs)
  mean <- sum(weight * sd)
  spread <- sqrt(sum(weight * (sd - mean)^2))
  expect_lt(abs(found$mean - mean), 0.05 * spread)
  expect_equal(found$sd, spread, tolerance = 0.05)
  quantiles <- weighted_quantile(sd, weight, probs)
  expect_lt(max(abs(unlist(found[4:6]) - quantiles)), 0.06 * spread)
  field <- summary(fit, "u", probs)
  for (k in 1:5) {
    marginal <- Reduce(`+`, Map(function(j, w) w * j[, k] / sum(j[, k]), joint, weight))
    mean <- sum(marginal * u)
    spread <- sqrt(sum(marginal * (u - mean)^2))
    expect_lt(abs(field$mean[k] - mean), 0.05 * spread)
    expect_equal(field$sd[k], spread, tolerance = 0.06)
    quantiles <- weighted_quantile(u, marginal, probs)
    expect_lt(max(abs(unlist(field[k, 4:6]) - quantiles)), 0.1 * spread)
    expect_lt(abs(field$mode[k] - u[which.max(marginal)]), 0.1 * spread)
    d <- density(fit, sprintf("u[%d]", k))
    expect_s3_class(d, "density")
    expect_equal(sum(d$y) * diff(d$x[1:2]), 1, tolerance = 1e-3)
  }
  # without the correction by draws the standard deviation is too small, with resampled draws not
  again <- cl_laplace(f, list(sd = 1, u = numeric(5)), list(sd = cl_lower(0)), random = "u",
                      seed = 1)
  expect_identical(again$draws, fit$draws)
  mine <- cl_laplace(f, list(sd = 1, u = numeric(5)), list(sd = cl_lower(0)), random = "u",
                     seed = 1, draws = 4000, resample = TRUE)
  draws <- as.matrix(mine)
  expect_identical(dim(as.array(mine)), c(4000L, 1L, 6L))
  expect_lt(max(abs(colMeans(draws)[-1] - field$mean) / field$sd), 0.1)
  expect_equal(unname(quantile(draws[, "sd"], probs)), unlist(found[4:6], use.names = FALSE),
               tolerance = 0.05)
})

test_that("a model may be a function with transforms, an objective or a Stan program", {
  y <- c(2, 0, 3, 1, 4, 2, 5)
  n <- length(y)
  f <- cl_gradient(function(sd, x) {
    dexp(sd, 2, log = TRUE) + dnorm(x[1], 0, 1, log = TRUE) +
      sum(dnorm(x[-1], x[-n], sd, log = TRUE)) + sum(dpois(y, exp(x), log = TRUE))
  })
  nll <- function(p) {
    sd <- exp(p$log_sd)
    -dexp(sd, 2, log = TRUE) - p$log_sd - dnorm(p$x[1], 0, 1, log = TRUE) -
      sum(dnorm(p$x[-1], p$x[-n], sd, log = TRUE)) - sum(dpois(y, exp(p$x), log = TRUE))
  }
  program <- cl_stan(code = "data { int n; array[n] int y; }
    parameters { real<lower=0> sd; vector[n] x; }
    model {
      sd ~ exponential(2);
      x[1] ~ std_normal();
      x[2:n] ~ normal(x[1:(n - 1)], sd);
      y ~ poisson_log(x);
    }
    generated quantities { real last = exp(x[n]); }")
  init <- list(sd = 0.5, x = numeric(n))
  one <- cl_laplace(f, init, list(sd = cl_lower(0)), random = "x", seed = 1)
  other <- cl_laplace(cl_tmb(nll, list(log_sd = -1, x = numeric(n)), random = "x"), seed = 1)
  third <- cl_laplace(program, data = list(n = n, y = y), random = "x", seed = 1)
  probs <- c(0.1, 0.5, 0.9)
  a <- summary(one, probs = probs)
  b <- summary(other, probs = probs)
  c <- summary(third, c("sd", "x"), probs = probs)
  expect_equal(unlist(a[1, 4:6]), exp(unlist(b[1, 4:6])), tolerance = 1e-3)
  expect_equal(a[-1, -1], b[-1, -1], tolerance = 1e-3)
  expect_equal(a[, -1], c[, -1], tolerance = 1e-3)
  expect_equal(one$log_marginal, other$log_marginal, tolerance = 1e-4)
  expect_true(is.na(third$from[dimnames(third$draws)[[3]] == "last"]))
  expect_equal(summary(third, "last")$mean, mean(exp(as.matrix(third)[, "x[7]"])))
  expect_output(print(one), "posterior of 1 hyperparameter and 7 latent values")
  grDevices::pdf(NULL)
  expect_identical(plot(one), one)
  grDevices::dev.off()
  # whether one of so few iterations diverges depends on the last bits
  sampled <- function(...) suppressWarnings(cl_sample(..., warmup = 50, iter = 20, seed = 1,
                                                      refresh = 0),
                                            classes = "statcl_warning_sampling")
  again <- sampled(f, one, chains = 2)
  expect_identical(dim(again$draws), c(20L, 2L, 8L))
  started <- sampled(cl_tmb(nll, list(log_sd = -1, x = rep(0.5, n)), random = "x"), chains = 1)
  expect_identical(dimnames(started$draws)[[3]][1], "log_sd")
})

test_that("the posterior of binary areas is that of long chains", {
  skip_if(nzchar(Sys.getenv("STATCL_TEST_QUICK")))
  set.seed(4)
  id <- matrix(1:36, 6)
  edges <- rbind(cbind(c(id[-1, ]), c(id[-6, ])), cbind(c(id[, -1]), c(id[, -6])))
  y <- rbinom(36, 4, plogis(sin(1:36 / 5)))
  f <- cl_gradient(function(log_sd, b, x) {
    d <- x[edges[, 1]] - x[edges[, 2]]
    dnorm(log_sd, -0.5, 0.5, log = TRUE) + dnorm(b, 0, 2, log = TRUE) -
      35 * log_sd - sum(d^2) / (2 * exp(2 * log_sd)) + dnorm(sum(x), 0, 0.6, log = TRUE) +
      sum(dbinom(y, 4, plogis(b + x), log = TRUE))
  })
  init <- list(log_sd = 0, b = 0, x = numeric(36))
  fit <- cl_laplace(f, init, random = c("b", "x"), seed = 1)
  chains <- suppressWarnings(cl_sample(f, fit, iter = 5000, seed = 1, refresh = 0))
  a <- summary(fit)
  b <- summary(chains)
  expect_lt(max(abs(a$mean - b$mean) / b$sd), 0.08)
  # of 114 quantiles of some 2000 effective draws: a standard error is 0.03 to 0.06
  expect_lt(max(abs(as.matrix(a[4:6]) - as.matrix(b[5:7])) / b$sd), 0.25)
  expect_equal(a$sd, b$sd, tolerance = 0.03)
})

test_that("posteriors that cannot be approximated are errors", {
  laplace <- function(f, ...) cl_laplace(f, list(...), random = "x")
  up <- cl_gradient(function(a, x) dnorm(a, log = TRUE) + sum(c(1, -2, 1) * x^2))
  e <- expect_fault(laplace(up, a = 0, x = rep(0.1, 3)), "not_pd")
  expect_match(conditionMessage(e), "not positive definite at 'x\\[[13]\\]'")
  y <- c(1.2, 0.8, 1.1, 0.9)
  # a variance that may be zero, whose prior is flat
  flat <- cl_gradient(function(log_sd, b, x) {
    dnorm(b, log = TRUE) + sum(dnorm(x, 0, 1, log = TRUE)) +
      sum(dnorm(y, 1 + b + exp(log_sd) * x, 1, log = TRUE))
  })
  expect_fault(laplace(flat, log_sd = 0, b = 0, x = numeric(4)), "density", parameter = "log_sd")
  # densities that end at a level on one side of the mode, for a grid and a composite design
  for (n in 1:2) {
    level <- cl_gradient(function(a, b, x) {
      dnorm(a, 0, 0.5) + log(plogis(-9 * (a - 1))) - sum(b^2) + dnorm(x, 0, 1, log = TRUE)
    })
    expect_fault(laplace(level, a = 0.1, b = numeric(n), x = 0), "density", parameter = "a",
                 says = "no finite integral")
  }
  many <- cl_gradient(function(b, x) -sum(b^2) - sum(x^2))
  expect_refused("random", laplace(many, b = numeric(21), x = 0),
                 cl_laplace(many, list(b = 0, x = 0), random = "z"))
  expect_fault(cl_laplace(many, list(b = numeric(3), x = 0), random = "x", design = "grid"),
               "argument", argument = "design")
  plain <- function(b, x) structure(-b^2 - x^2, gradient = list(b = -2 * b, x = -2 * x))
  expect_refused("random", laplace(plain, b = 1, x = 1))
  dense <- cl_gradient(function(b, x) -b^2 - sum(x^2) - prod(x)^2)
  expect_fault(cl_laplace(dense, list(b = 0, x = numeric(4001)), random = "x",
                          check_gradient = FALSE), "argument", argument = "random")
  fit <- laplace(many, b = 0.1, x = 0.1)
  expect_refused("parameter", density(fit, "y"))
  expect_refused("probs", summary(fit, probs = 2))
})

})
