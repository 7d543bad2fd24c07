# Simulation, one-step-ahead residuals, bias correction and correlation matrices of cl_tmb().

level_y <- c(1.2, 0.4, 1.9, 2.6, 2.1, 3.5, 2.2, 3.9, 4.4, 3.1, 5.0, 4.2)
level_n <- length(level_y)
level_nll <- function(p) {
  getAll(p)
  level_y <- OBS(level_y)
  REPORT(log_sd)
  u[1] %~% dnorm(0, 2)
  for (i in 2:level_n) u[i] %~% dnorm(u[i - 1], exp(log_sd[1]))
  level_y %~% dnorm(u, exp(log_sd[2]))
}
level_start <- list(log_sd = c(-0.5, -0.2), u = numeric(level_n))

# The joint covariance matrix of the observations.
level_covariance <- function(log_sd) {
  4 + exp(2 * log_sd[1]) * (outer(1:level_n, 1:level_n, pmin) - 1) +
    exp(2 * log_sd[2]) * diag(level_n)
}

on_host({

test_that("residuals of a normal model are those of its covariance matrix", {
  obj <- cl_tmb(level_nll, level_start, random = "u")
  at <- c(-0.3, -0.1)
  v <- level_covariance(at)
  want <- forwardsolve(t(chol(v)), level_y)
  full <- cl_one_step(obj, par = at)
  expect_equal(full$residual, want, tolerance = 1e-8)
  expect_equal(full$sd, diag(chol(v)), tolerance = 1e-8)
  expect_equal(full$mean[5], c(v[5, 1:4] %*% solve(v[1:4, 1:4], level_y[1:4])), tolerance = 1e-8)
  expect_identical(full$observation, level_y)
  # the distribution function of each observation, whose Laplace approximation is not exact
  by_cdf <- cl_one_step(obj, "level_y", "cdf", at)
  expect_equal(by_cdf$residual, want, tolerance = 0.15)
})

test_that("residuals by the density of each observation given those before it", {
  obj <- cl_tmb(level_nll, level_start, random = "u") # normal, so that all methods are exact
  want <- cl_one_step(obj, par = obj$par)$residual
  for (method in c("oneStepGeneric", "oneStepGaussianOffMode")) {
    expect_equal(cl_one_step(obj, method = method, par = obj$par)$residual, want, tolerance = 1e-5)
  }
  y <- c(0.2, 1.5, 3, 0.9)
  gamma <- cl_tmb(function(p) {
    y <- OBS(y)
    -sum(dgamma(y, exp(p$a), scale = 0.7, log = TRUE))
  }, list(a = 0.5))
  expect_equal(cl_one_step(gamma, method = "oneStepGeneric", range = c(0, Inf))$residual,
               qnorm(pgamma(y, exp(0.5), scale = 0.7)), tolerance = 1e-5)
  count <- c(0, 3, 1, 7)
  counts <- cl_tmb(function(p) {
    count <- OBS(count)
    -sum(dpois(count, exp(p$a), log = TRUE))
  }, list(a = 0.5))
  set.seed(9)
  got <- cl_one_step(counts, method = "oneStepGeneric", discrete = TRUE)$residual
  set.seed(9)
  share <- ppois(count - 1, exp(0.5)) + runif(4) * dpois(count, exp(0.5))
  expect_equal(got, qnorm(share), tolerance = 1e-8)
})

test_that("residuals of counts that do not depend on each other are those of each alone", {
  count <- c(2, 0, 5, 3, 1, 9)
  x <- c(0.1, -1, 1, 0.4, 0, 1.8)
  obj <- cl_tmb(function(p) {
    count <- OBS(count)
    -sum(dpois(count, exp(p$a + p$b * x), log = TRUE))
  }, list(a = 0.5, b = 0.8))
  set.seed(3)
  got <- cl_one_step(obj, method = "cdf", discrete = TRUE)
  mean <- exp(0.5 + 0.8 * x)
  set.seed(3)
  expect_equal(got$residual, qnorm(ppois(count, mean) - runif(6) * dpois(count, mean)),
               tolerance = 1e-8)
  # P(count 2 <= y | count 1) where both share an effect, by integration
  two <- count[1:2]
  shared <- cl_tmb(function(p) {
    two <- OBS(two)
    -dnorm(p$u, 0, 0.6, log = TRUE) - sum(dpois(two, exp(p$a + p$u), log = TRUE))
  }, list(a = 0.5, u = 0), random = "u")
  set.seed(4)
  got <- cl_one_step(shared, method = "cdf", discrete = TRUE)$residual
  over <- function(f) integrate(function(u) dnorm(u, 0, 0.6) * f(exp(0.5 + u)), -6, 6)$value
  set.seed(4)
  z <- runif(2)
  first <- over(function(m) ppois(2, m)) - z[1] * over(function(m) dpois(2, m))
  past <- over(function(m) dpois(2, m))
  second <- over(function(m) dpois(2, m) * ppois(0, m)) / past -
    z[2] * over(function(m) dpois(2, m) * dpois(0, m)) / past
  expect_equal(got, qnorm(c(first, second)), tolerance = 0.05)
})

test_that("simulations have the distribution of the model", {
  obj <- cl_tmb(level_nll, level_start, random = "u")
  at <- c(-0.3, -0.1)
  n <- 400L
  draws <- simulate(obj, n, seed = 5, par = at)
  expect_named(draws[[1]], c("u", "level_y", "log_sd"))
  expect_identical(draws[[7]]$log_sd, at)
  y <- vapply(draws, function(d) d$level_y, numeric(level_n))
  # whitened, these are standard normal
  z <- forwardsolve(t(chol(level_covariance(at))), y)
  expect_lt(abs(mean(z)), 4 / sqrt(length(z)))
  expect_lt(abs(mean(z^2) - 1), 4 * sqrt(2 / length(z)))
  expect_lt(max(abs(rowMeans(z[-1, ] * z[-level_n, ]))), 5 / sqrt(n))
  expect_identical(simulate(obj, seed = 5, par = at), draws[[1]])
  expect_identical(obj$simulate(at)$log_sd, at)
  # densities of vectors and of shifted values
  k <- 0.5^abs(outer(1:4, 1:4, "-"))
  y4 <- numeric(4)
  vectors <- cl_tmb(function(p) {
    y4 <- OBS(y4)
    -dmvnorm(p$u, 1, k, log = TRUE) - dgmrf(p$v, 0, solve(k), log = TRUE, scale = 2) -
      dautoreg(p$w, phi = c(0.4, 0.2), log = TRUE) - sum(dnorm(y4 - 3, p$m, 0.1, log = TRUE))
  }, list(m = 0.5, u = numeric(4), v = numeric(4), w = numeric(4)), random = c("u", "v", "w"))
  draws <- simulate(vectors, 500, seed = 6)
  of <- function(name) vapply(draws, function(d) d[[name]], numeric(4))
  expect_equal(cov(t(of("u"))), k, tolerance = 0.2)
  expect_equal(cov(t(of("v"))), 4 * k, tolerance = 0.2)
  auto <- ARMAacf(c(0.4, 0.2), lag.max = 3)
  expect_equal(cov(t(of("w"))), unname(toeplitz(auto)), tolerance = 0.2)
  expect_equal(rowMeans(of("y4")), rep(3.5, 4), tolerance = 0.01)
})

test_that("estimates are corrected for the skewness of the random effects", {
  count <- c(0, 3, 1, 7)
  obj <- cl_tmb(function(p) {
    nll <- -sum(dnorm(p$u, 0, exp(p$s), log = TRUE)) - sum(dpois(count, exp(0.4 + p$u), log = TRUE))
    ADREPORT(exp(p$u))
    ADREPORT(sum(exp(p$u))^2)
    nll
  }, list(s = -0.5, u = numeric(4)), random = "u")
  sdr <- cl_sdreport(obj, -0.5, bias.correct = TRUE)
  # the derivative of Laplace's approximation with q added to the log density
  laplace <- function(e, q) {
    f <- function(u) {
      -sum(dnorm(u, 0, exp(-0.5), log = TRUE)) - sum(dpois(count, exp(0.4 + u), log = TRUE)) -
        e * q(u)
    }
    best <- optim(numeric(4), f, method = "BFGS", control = list(reltol = 1e-15))$par
    h <- optimHess(best, f, control = list(ndeps = rep(1e-3, 4)))
    f(best) + 0.5 * log(det(h))
  }
  slope <- function(q) -(laplace(1e-3, q) - laplace(-1e-3, q)) / 2e-3
  want <- c(vapply(1:4, function(k) slope(function(u) exp(u[k])), 0),
            slope(function(u) sum(exp(u))^2))
  expect_equal(unname(sdr$unbiased$value), want, tolerance = 1e-4)
  exact <- vapply(count, function(y) {
    f <- function(u) dnorm(u, 0, exp(-0.5)) * dpois(y, exp(0.4 + u))
    over <- function(g) integrate(function(u) g(u) * f(u), -8, 8)$value
    over(exp) / over(function(u) 1)
  }, 0)
  miss <- function(value) max(abs(value[1:4] / exact - 1))
  expect_lt(miss(sdr$unbiased$value), 0.3 * miss(sdr$value))
  expect_refused("bias.correct", cl_sdreport(obj, bias.correct = 1))
})

test_that("correlation matrices by their factors", {
  x <- c(0.3, -0.5, 0.8)
  obj <- cl_tmb(function(p) {
    r <- unstructured(3)$corr(p$x)
    REPORT(r)
    sum(r * 1:9) + sum(unstructured(3)$parms())
  }, list(x = x))
  root <- diag(3)
  root[lower.tri(root)] <- x
  r <- cov2cor(tcrossprod(root))
  expect_equal(obj$fn(), sum(r * 1:9), tolerance = 1e-12)
  expect_equal(obj$report()$r, r, tolerance = 1e-12)
  expect_equal(c(obj$gr()), slopes_of(obj$fn, x), tolerance = 1e-7)
})

test_that("what cannot be simulated says so", {
  early <- cl_tmb(function(p) sum((OBS(level_y) - p$a)^2), list(a = 1))
  expect_fault(simulate(early), "argument")
  expect_refused("nsim", simulate(early, nsim = 0.5))
  expect_refused("obj", cl_one_step(1))
  obj <- cl_tmb(level_nll, level_start, random = "u")
  expect_refused("observation", cl_one_step(obj, "z"))
  expect_refused("method", cl_one_step(obj, method = "other"))
})

})
