# Objectives in RTMB's syntax, run by RTMB and, unchanged, by cl_tmb(): value, gradient, result of
# nlminb(), standard errors. RTMB is attached, as by its users; without it all tests are skipped.

skip_on_cran() # long; run by ./dev check

peer <- "RTMB" # as text: the package does not depend on it
skip_if_not(suppressWarnings(requireNamespace(peer, quietly = TRUE)), paste("with", peer))

# `objective`: a function of a list. The estimates of both are compared where each of them ends.
expect_rtmb <- function(objective, start, random = NULL, map = list()) {
  suppressMessages(library(peer, character.only = TRUE))
  on.exit(detach(paste0("package:", peer), character.only = TRUE))
  make <- getExportedValue(peer, "MakeADFun")
  theirs <- make(objective, start, random = random, map = map, silent = TRUE)
  ours <- on_host(cl_tmb(objective, start, random = random, map = map))
  expect_identical(names(ours$par), names(theirs$par))
  set.seed(1)
  for (x in list(theirs$par, theirs$par + runif(length(theirs$par), -0.1, 0.1))) {
    expect_equal(ours$fn(x), as.numeric(theirs$fn(x)), tolerance = 1e-9)
    expect_equal(c(ours$gr(x)), c(theirs$gr(x)), tolerance = 1e-6)
  }
  best <- lapply(list(ours, theirs), function(obj) {
    suppressWarnings(nlminb(obj$par, obj$fn, obj$gr, control = list(rel.tol = 1e-12)))
  })
  expect_equal(best[[1]]$objective, best[[2]]$objective, tolerance = 1e-9)
  expect_equal(best[[1]]$par, best[[2]]$par, tolerance = 1e-4)
  x <- best[[2]]$par
  theirs$fn(x)
  report <- getExportedValue(peer, "sdreport")(theirs, x)
  own <- on_host(cl_sdreport(ours, x))
  expect_true(own$pdHess)
  for (part in c("fixed", "random", "report")) {
    want <- suppressWarnings(summary(report, part))
    got <- summary(own, part)
    expect_identical(dim(got), dim(want), info = part)
    expect_equal(got, want, tolerance = 2e-5, ignore_attr = TRUE, info = part)
  }
}

test_that("a regression with random slopes and intercepts", {
  chicks <- as.data.frame(ChickWeight)
  expect_rtmb(function(parms) {
    getAll(chicks, parms, warn = FALSE)
    weight <- OBS(weight)
    a %~% dnorm(mean_a, exp(log_sd_a))
    b %~% dnorm(mean_b, exp(log_sd_b))
    predicted <- a[Chick] * Time + b[Chick]
    weight %~% dnorm(predicted, exp(log_sd))
    ADREPORT(exp(log_sd))
  }, list(mean_a = 8, log_sd_a = 1, mean_b = 40, log_sd_b = 1, log_sd = 2, a = rep(8, 50),
          b = rep(40, 50)), c("a", "b"))
})

test_that("a random walk of several dimensions", {
  set.seed(2)
  apart <- abs(outer(1:3, 1:3, "-"))
  steps <- matrix(rnorm(3 * 40), 40) %*% chol(0.3^apart * 0.25)
  seen <- apply(steps, 2, cumsum) + rnorm(120, sd = 0.3)
  expect_rtmb(function(parms) {
    getAll(parms)
    seen <- OBS(seen)
    rho <- 2 / (1 + exp(-trans_rho)) - 1
    sds <- exp(log_sd)
    covariance <- rho^apart * (sds %*% t(sds))
    nll <- -sum(dmvnorm(u[-1, ] - u[-40, ], 0, covariance, log = TRUE))
    nll <- nll - sum(dnorm(seen, u, exp(log_sd_seen), log = TRUE))
    ADREPORT(rho)
    nll
  }, list(trans_rho = 0.1, log_sd = c(-0.5, -0.6, -0.7), log_sd_seen = -1, u = seen * 0), "u")
})

test_that("logistic growth with a state for each year", {
  set.seed(3)
  state <- 3
  for (t in 2:60) {
    state[t] <- state[t - 1] + 0.3 * (1 - (exp(state[t - 1]) / 400)^0.8) + rnorm(1, sd = 0.1)
  }
  count <- state + rnorm(60, sd = 0.15)
  expect_rtmb(function(parms) {
    getAll(parms)
    before <- x[-length(x)]
    growth <- before + exp(log_r) * (1 - (exp(before) / exp(log_k))^exp(log_theta))
    nll <- -sum(dnorm(x[-1], growth, exp(log_q), log = TRUE))
    nll <- nll - sum(dnorm(count, x, exp(log_s), log = TRUE))
    r <- exp(log_r)
    ADREPORT(r)
    ADREPORT(exp(log_k))
    nll
  }, list(log_r = -1, log_k = 6, log_theta = 0, log_q = -2, log_s = -2, x = count), "x",
  map = list(log_theta = factor(NA)))
})

test_that("a gamma regression with derived quantities", {
  set.seed(4)
  dose <- runif(60, 0, 3)
  time <- rgamma(60, 3, 3 / exp(0.4 + 0.7 * dose))
  expect_rtmb(function(parms) {
    getAll(parms)
    shape <- exp(log_shape)
    mu <- exp(cbind(1, dose) %*% beta)
    ADREPORT(shape)
    ADREPORT(exp(beta[1] + beta[2] * c(1, 2)))
    ADREPORT(-beta[1] / beta[2])
    -sum(dgamma(time, shape = shape, scale = mu / shape, log = TRUE))
  }, list(beta = c(0, 0.5), log_shape = 0))
})

test_that("counts with lognormal effects of sites", {
  set.seed(5)
  site <- factor(rep(1:25, each = 4))
  slope <- rnorm(100)
  birds <- rpois(100, exp(1 + 0.3 * slope + rnorm(25, sd = 0.6)[site]))
  expect_rtmb(function(parms) {
    getAll(parms)
    birds <- OBS(birds)
    u %~% dnorm(0, exp(log_sd))
    rate <- exp(b0 + b1 * slope + u[site])
    birds %~% dpois(rate)
    ADREPORT(exp(b0 + 0.5 * exp(2 * log_sd)))
  }, list(b0 = 0, b1 = 0, log_sd = -1, u = numeric(25)), "u")
})

test_that("a logistic regression with priors, by matrices", {
  set.seed(6)
  x <- cbind(1, matrix(rnorm(300 * 3), 300))
  answer <- rbinom(300, 1, plogis(x %*% c(-0.5, 1, 0, 0.4)))
  expect_rtmb(function(parms) {
    nll <- -sum(dbinom(answer, 1, plogis(x %*% parms$b), log = TRUE))
    nll - sum(dnorm(parms$b, 0, 2.5, log = TRUE))
  }, list(b = rep(0.1, 4)))
})

test_that("eight schools, the effects integrated out", {
  effect <- c(28, 8, -3, 7, -1, 1, 18, 12)
  error <- c(15, 10, 16, 11, 9, 11, 10, 18)
  expect_rtmb(function(parms) {
    getAll(parms)
    theta <- mu + exp(log_tau) * z
    ADREPORT(theta)
    -sum(dnorm(effect, theta, error, log = TRUE)) - sum(dnorm(z, 0, 1, log = TRUE)) -
      dnorm(mu, 0, 5, log = TRUE) - dnorm(log_tau, 1, 0.5, log = TRUE)
  }, list(mu = 1, log_tau = 0.3, z = rep(0.1, 8)), "z")
})

test_that("item responses", {
  set.seed(7)
  person <- rep(1:60, 8)
  item <- rep(1:8, each = 60)
  right <- rbinom(480, 1, plogis(rnorm(60)[person] - seq(-1, 1, length.out = 8)[item]))
  expect_rtmb(function(parms) {
    getAll(parms)
    nll <- -sum(dnorm(ability, 0, exp(log_sd), log = TRUE))
    nll - sum(dbinom_robust(right, 1, ability[person] - difficulty[item], log = TRUE))
  }, list(log_sd = 0, difficulty = numeric(8), ability = numeric(60)), "ability")
})

test_that("a spatial Gaussian process", {
  set.seed(8)
  place <- matrix(runif(60), 30)
  distance <- as.matrix(dist(place))
  found <- rpois(30, exp(1 + c(t(chol(exp(-distance / 0.3))) %*% rnorm(30))))
  expect_rtmb(function(parms) {
    getAll(parms)
    covariance <- exp(2 * log_sd) * exp(-distance * exp(-log_range))
    nll <- -dmvnorm(u, 0, covariance, log = TRUE)
    nll <- nll - sum(dpois(found, exp(mu + u), log = TRUE)) - dnorm(log_range, -1, 0.5, log = TRUE)
    ADREPORT(exp(log_range))
    nll
  }, list(mu = 1, log_sd = -0.5, log_range = -1, u = numeric(30)), "u")
})

test_that("an autoregression of counts with too many zeros", {
  set.seed(9)
  level <- as.vector(arima.sim(list(ar = 0.7), 60, sd = 0.5))
  caught <- rnbinom(60, size = 4, mu = exp(1.5 + level)) * rbinom(60, 1, 0.8)
  none <- caught == 0
  expect_rtmb(function(parms) {
    getAll(parms)
    phi <- 2 * plogis(trans_phi) - 1
    nll <- -dautoreg(u, phi = phi, scale = exp(log_sd), log = TRUE)
    mu <- exp(b + u)
    counted <- log(1 - plogis(logit_zero)) + dnbinom2(caught, mu, mu + mu^2 / exp(log_size),
                                                      log = TRUE)
    nll <- nll - sum(counted[!none]) - dnorm(log_size, 1.4, 0.5, log = TRUE)
    nll <- nll - sum(logspace_add(counted[none], log(plogis(logit_zero))))
    ADREPORT(phi)
    nll
  }, list(b = 1, trans_phi = 0.5, log_sd = -0.5, log_size = 1, logit_zero = -1, u = numeric(60)),
  "u")
})

test_that("random intercepts of a logistic regression, in blocks of 1", {
  set.seed(11)
  group <- rep(1:40, each = 5)
  x <- rnorm(200)
  success <- rbinom(200, 1, plogis(0.4 + 0.8 * x + rnorm(40)[group]))
  expect_rtmb(function(parms) {
    getAll(parms)
    success <- OBS(success)
    u %~% dnorm(0, exp(log_sd))
    success %~% dbinom(1, plogis(a + b * x + u[group]))
    ADREPORT(exp(log_sd))
  }, list(a = 0, b = 0, log_sd = 0, u = numeric(40)), "u")
})

test_that("random slopes of counts, in blocks of 2", {
  set.seed(12)
  group <- rep(1:30, each = 8)
  x <- rnorm(240)
  effect <- cbind(rnorm(30, sd = 0.6), rnorm(30, sd = 0.3))
  count <- rpois(240, exp(0.5 + effect[group, 1] + (0.4 + effect[group, 2]) * x))
  expect_rtmb(function(parms) {
    getAll(parms)
    count <- OBS(count)
    sds <- exp(log_sd)
    rho <- tanh(at_rho)
    covariance <- rbind(c(sds[1]^2, rho * sds[1] * sds[2]), c(rho * sds[1] * sds[2], sds[2]^2))
    nll <- -sum(dmvnorm(u, 0, covariance, log = TRUE))
    eta <- b[1] + u[group, 1] + (b[2] + u[group, 2]) * x
    ADREPORT(rho)
    nll - sum(dpois(count, exp(eta), log = TRUE))
  }, list(b = c(0, 0), log_sd = c(-1, -1), at_rho = 0, u = matrix(0, 30, 2)), "u")
})
