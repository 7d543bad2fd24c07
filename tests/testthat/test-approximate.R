# cl_optimise(), cl_laplace(), cl_pathfinder(), cl_vi(): the models of cl_sample().

covariance <- local({
  a <- matrix(sin(1:16), 4)
  s <- c(100, 1, 1, 0.1)
  s * t(s * (crossprod(a) + diag(4)))
})
normal_model <- function() {
  p <- solve(covariance)
  cl_gradient(function(x) -sum((x - 1:4) * (p %*% (x - 1:4))) / 2)
}
schools <- list(
  init = list(mu = 0, tau = 1, z = numeric(8)), transform = list(tau = cl_lower(0)),
  density = function() {
    y <- c(28, 8, -3, 7, -1, 1, 18, 12)
    sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
    cl_gradient(function(mu, tau, z) {
      sum(dnorm(y, mu + tau * z, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
        dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
    })
  })
logistic <- list(init = list(alpha = 0, beta = c(0, 0)), density = function() {
  x <- scale(as.matrix(mtcars[c("wt", "qsec")]))
  cl_log_posterior(cl_likelihood("bernoulli_logit", mtcars$vs, x),
                   ~ dnorm(beta, 0, 2.5, log = TRUE), ~ dnorm(alpha, 0, 5, log = TRUE))
})

test_on_host("normal targets are exact", {
  f <- normal_model()
  fit <- cl_optimise(f, numeric(4))
  expect_equal(unname(coef(fit)), 1:4, tolerance = 1e-7)
  expect_equal(unname(vcov(fit)), covariance, tolerance = 1e-6)
  expect_equal(fit$value, 0)
  expect_true(fit$converged)
  laplace <- cl_laplace(f, fit, draws = 4000, seed = 1)
  expect_lt(diff(range(laplace$log_weights)), 1e-6)
  expect_equal(laplace$elbo, as.numeric(determinant(2 * pi * covariance)$modulus) / 2)
  expect_equal(unname(cov2cor(cov(as.matrix(laplace)))), cov2cor(covariance), tolerance = 0.1)
  path <- suppressWarnings(cl_pathfinder(f, numeric(4), draws = 4000, paths = 2, seed = 1))
  expect_lt(max(abs((colMeans(as.matrix(path)) - 1:4) / sqrt(diag(covariance)))), 0.1)
  # with as many fixed points the bound is exact
  vi <- suppressWarnings(cl_vi(f, numeric(4), draws = 4000, seed = 1))
  expect_equal(unname(apply(as.matrix(vi), 2, sd)), 1 / sqrt(diag(solve(covariance))),
               tolerance = 0.05)
})

test_that("variational inference of low rank is exact for covariance matrices of that form", {
  set.seed(1)
  d <- 12
  scale <- exp(rnorm(d, 0, 0.5))
  wide <- qr.Q(qr(matrix(rnorm(d * 2), d))) %*% diag(c(15, 5))
  v <- scale * t(scale * t(diag(d) + tcrossprod(wide)))
  precision <- solve(v)
  f <- function(x) {
    slope <- -as.vector(precision %*% (x - 1))
    structure(sum((x - 1) * slope) / 2, gradient = slope)
  }
  best <- as.numeric(determinant(2 * pi * v)$modulus) / 2
  vi <- cl_vi(f, numeric(d), rank = 3, draws = 4000, seed = 1) # a rank more than is needed
  expect_lt(max(abs(vi$log_weights + log(4000))), 0.05)
  expect_equal(vi$elbo, best, tolerance = 1e-4)
  expect_output(print(vi), "by variational inference of rank 3")
  draws <- as.matrix(vi)
  expect_lt(max(abs(colMeans(draws) - 1) / sqrt(diag(v))), 0.1)
  expect_equal(unname(cov(draws)), v, tolerance = 0.1)
  mean_field <- suppressWarnings(cl_vi(f, numeric(d), draws = 4000, seed = 1))
  expect_lt(mean_field$elbo, best - 1)
  # fewer points than parameters, and a rank that the distribution does not need
  few <- suppressWarnings(cl_vi(standard_normal, numeric(60), rank = 2, samples = 20, seed = 1))
  expect_equal(range(apply(as.matrix(few), 2, sd)), c(1, 1), tolerance = 0.3)
  expect_refused("rank", cl_vi(f, numeric(d), rank = -1))
  expect_refused("samples", cl_vi(f, numeric(d), rank = 3, samples = 5))
})

test_that("the gradient of the bound of variational inference is right", {
  set.seed(2)
  many <- function(u) rbind(-colSums(u^4) / 4 - u[1, ] * u[2, ], -u^3 - rbind(u[2:1, ], 0))
  bound <- bound_of(many, fixed_points(3, 10, 2), c(0.1, 0.2, 2))
  par <- rnorm(12) / 2
  numbers <- vapply(1:12, function(i) {
    h <- replace(numeric(12), i, 1e-5)
    (bound(par + h)[[1]] - bound(par - h)[[1]]) / 2e-5
  }, 0)
  expect_equal(bound(par)[[2]], numbers, tolerance = 1e-7)
  # densities of draws
  drawn <- bound_draws(par, c(0.1, 0.2, 2), 50)
  l <- matrix(par[7:12], 3)
  v <- diag(exp(2 * par[4:6]) + c(0.1, 0.2, 2)^2) + tcrossprod(l)
  expect_equal(drawn$log_q, -0.5 * mahalanobis(t(drawn$u), par[1:3], v) -
                 as.numeric(determinant(2 * pi * v)$modulus) / 2)
})

test_on_host("modes agree with glm(), standard errors with transforms", {
  f <- cl_likelihood("bernoulli_logit", mtcars$am, cbind(mtcars$wt))
  fit <- cl_optimise(f, list(alpha = 0, beta = 0))
  theirs <- glm(am ~ wt, binomial, mtcars, epsilon = 1e-14)
  expect_equal(unname(coef(fit)), unname(coef(theirs)), tolerance = 1e-6)
  expect_equal(unname(vcov(fit)), unname(vcov(theirs)), tolerance = 1e-5)
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(theirs)))
  expect_identical(attr(logLik(fit), "df"), 2L)
  expect_equal(unname(confint(fit)), unname(confint.default(theirs)), tolerance = 1e-5)
  counts <- c(10, 20, 30)
  g <- cl_gradient(function(p, s) {
    sum(counts * log(p)) + sum(dnorm(mtcars$mpg, 20, s, log = TRUE))
  })
  fit <- cl_optimise(g, list(p = rep(1, 3) / 3, s = 3), list(p = cl_simplex(), s = cl_lower(0)))
  p <- counts / 60
  expect_equal(fit$par$p, p, tolerance = 1e-6)
  expect_equal(unname(vcov(fit)[1:3, 1:3]), (diag(p) - p %o% p) / 60, tolerance = 1e-5)
  s <- sqrt(mean((mtcars$mpg - 20)^2))
  expect_equal(c(fit$par$s, vcov(fit)[4, 4]), c(s, s^2 / 64), tolerance = 1e-5)
  # the density of log(s) has its mode at another place
  with <- cl_optimise(g, fit, list(p = cl_simplex(), s = cl_lower(0)), jacobian = TRUE)
  expect_equal(with$par$s, s * sqrt(32 / 31), tolerance = 1e-6)
  expect_output(print(fit), "estimate")
})

test_that("approximations are near long runs of the sampler, or say that they are not", {
  near <- function(fit, long, within) {
    a <- summary(fit)
    b <- summary(long)
    expect_lt(max(abs(a$mean - b$mean) / b$sd), within)
    expect_lt(max(abs(log(a$sd / b$sd))), within)
  }
  on_host({
    f <- logistic$density()
    long <- cl_sample(f, logistic$init, iter = 2500, seed = 1)
    near(cl_laplace(f, logistic$init, draws = 4000, resample = TRUE, seed = 1), long, 0.1)
    near(cl_pathfinder(f, logistic$init, draws = 2000, seed = 1), long, 0.15)
    near(cl_vi(f, logistic$init, draws = 4000, resample = TRUE, seed = 1), long, 0.15)
    f <- schools$density()
    long <- suppressWarnings(cl_sample(f, schools$init, iter = 2500, transform = schools$transform,
                                       seed = 1))
    vi <- suppressWarnings(cl_vi(f, schools$init, schools$transform, draws = 4000, seed = 1))
    near(vi, long, 0.3)
    skip_if_not_installed("loo")
    expect_warning(laplace <- cl_laplace(f, schools$init, schools$transform, seed = 1),
                   class = "statcl_warning_approximation")
    expect_gt(laplace$khat, 0.7)
    expect_lt(laplace$elbo, vi$elbo)
  })
})

test_on_host("results are draws, with the seed's numbers, from which the sampler starts", {
  f <- schools$density()
  run <- function(seed) {
    suppressWarnings(cl_pathfinder(f, schools$init, schools$transform, paths = 2, draws = 50,
                                   seed = seed))
  }
  fit <- run(1)
  expect_identical(fit$draws, run(1)$draws)
  expect_false(identical(fit$draws, run(2)$draws))
  expect_identical(dim(as.matrix(fit)), c(50L, 10L))
  expect_equal(sum(exp(fit$log_weights)), 1)
  expect_length(fit$elbo, 2)
  expect_identical(as.vector(cl_generate(fit, function(tau) tau)),
                   unname(as.matrix(fit)[, "tau"]))
  expect_output(print(fit), "50 draws by Pathfinder, 2 paths, resampled")
  expect_false("rhat" %in% names(summary(fit)))
  pdf(NULL)
  on.exit(dev.off())
  expect_silent(plot(fit, "mu"))
  starts <- start_values(fit, 2)
  expect_identical(starts[[2]]$z, unname(as.matrix(fit)[50, 3:10]))
  run <- function(...) {
    suppressWarnings(cl_sample(f, ..., chains = 2, warmup = 20, iter = 20, seed = 1))
  }
  draws <- run(fit, transform = schools$transform)
  expect_identical(dim(draws$draws), c(20L, 2L, 10L))
  expect_identical(run(fit)$draws, draws$draws) # with the transforms of the fit
  expect_gt(min(as.matrix(run(draws))[, "tau"]), 0)
  vector <- cl_optimise(normal_model(), c(a = 0, b = 0, c = 0, d = 0))
  expect_identical(names(start_values(vector, 2)[[2]]), c("a", "b", "c", "d"))
})

test_that("a model on a device gives the same", {
  f <- NULL
  on_device({
    fit <- cl_optimise(normal_model(), numeric(4))
    expect_equal(unname(coef(fit)), 1:4, tolerance = 1e-7)
    vi <- suppressWarnings(cl_vi(normal_model(), numeric(4), draws = 50, seed = 1))
  })
  on_host(expect_equal(suppressWarnings(cl_vi(normal_model(), numeric(4), draws = 50,
                                              seed = 1))$draws, vi$draws, tolerance = 1e-3))
})

test_on_host("improper and flat densities are reported", {
  flat <- function(a, b) structure(-a^2 / 2, gradient = list(a = -a, b = 0))
  init <- list(a = 1, b = 1)
  expect_warning(expect_warning(fit <- cl_optimise(flat, init), class = "statcl_warning_unused"),
                 class = "statcl_warning_hessian")
  expect_true(all(is.na(vcov(fit))))
  expect_fault(suppressWarnings(cl_laplace(flat, init)), "density")
  expect_warning(cl_sample(flat, init, transform = list(b = cl_lower(0)), chains = 1, warmup = 5,
                           iter = 5, seed = 1), class = "statcl_warning_unused")
  bounded <- list(b = cl_bounds(0, 2))
  expect_silent(cl_sample(flat, init, transform = bounded, chains = 1, warmup = 5, iter = 5,
                          seed = 1))
  rising <- function(a) structure(a, gradient = list(a = 1))
  expect_warning(fit <- cl_optimise(rising, list(a = 1), hessian = FALSE, max_iter = 50),
                 class = "statcl_warning_convergence")
  expect_false(fit$converged)
  expect_refused("object", vcov(fit))
  wrong <- function(a) structure(-a^2 / 2, gradient = list(a = a))
  expect_fault(cl_optimise(wrong, list(a = 1)), "density")
  expect_fault(cl_pathfinder(wrong, list(a = 1)), "density")
})
