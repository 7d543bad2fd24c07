# cl_generate(), and draws for other packages.

model <- function() {
  cl_gradient(function(mu, tau, z) {
    sum(dnorm(z, log = TRUE)) + dnorm(mu, 1, 2, log = TRUE) - tau + sum(dnorm(mu + tau * z, 0, 3,
                                                                              log = TRUE))
  })
}
model_fit <- local({
  fit <- NULL
  function() {
    if (is.null(fit)) {
      fit <<- on_host(cl_sample(model(), list(mu = 0, tau = 1, z = matrix(0, 2, 2)), chains = 2,
                                warmup = 100, iter = 60, transform = list(tau = cl_lower(0)),
                                seed = 1))
    }
    fit
  }
})

test_that("cl_generate() calls the function with the parameters in their shapes", {
  fit <- model_fit()
  draws <- as.matrix(fit)
  g <- cl_generate(fit, function(tau, z) list(a = tau, b = tau * z))
  expect_s3_class(g, c("draws_array", "draws", "array"), exact = TRUE)
  expect_identical(dim(g), c(60L, 2L, 5L))
  expect_identical(dimnames(g)$variable, c("a", "b[1,1]", "b[2,1]", "b[1,2]", "b[2,2]"))
  expect_identical(as.vector(g[, , "b[2,1]"]), unname(draws[, "tau"] * draws[, "z[2,1]"]))
  all_of_them <- cl_generate(fit, function(p) c(one = p$mu, two = sum(p$z)))
  expect_identical(dimnames(all_of_them)$variable, c("one", "two"))
  expect_equal(as.vector(all_of_them[, , "two"]), unname(rowSums(draws[, 3:6])))
  expect_identical(as.vector(cl_generate(fit, function(...) ..1)), unname(draws[, "mu"]))
  vector <- cl_sample(function(x) structure(-sum(x^2) / 2, gradient = -x), c(a = 0, b = 0),
                      chains = 1, warmup = 20, iter = 5, seed = 1)
  expect_identical(as.vector(cl_generate(vector, function(x) x[["a"]] - x[["b"]])),
                   unname(as.matrix(vector)[, "a"] - as.matrix(vector)[, "b"]))
  expect_identical(as.vector(cl_generate(vector, function(b) b)), unname(as.matrix(vector)[, "b"]))
})

test_that("recorded functions have the values that R gives", {
  fit <- model_fit()
  x <- matrix(sin(1:40), 10)
  f <- function(mu, tau, z) {
    eta <- x %*% c(z) + mu
    list(eta = eta, log_lik = dnorm(1:10, eta, tau, log = TRUE), constant = 3, up = mu > 0)
  }
  each_engine(expect_equal(cl_generate(fit, f, batch = TRUE), cl_generate(fit, f, batch = FALSE),
                           tolerance = 1e-10))
})

test_that("functions with random numbers are called at each draw, with a seed", {
  fit <- model_fit()
  f <- function(mu) rnorm(3, mu)
  set.seed(5)
  before <- .Random.seed
  one <- cl_generate(fit, f, seed = 2)
  expect_identical(.Random.seed, before)
  expect_identical(one, cl_generate(fit, f, seed = 2))
  expect_false(identical(one, cl_generate(fit, f, seed = 3)))
  set.seed(2)
  expect_identical(as.vector(one[1, 1, ]), rnorm(3, as.matrix(fit)[1, "mu"]))
  expect_gt(sd(one[, , 1] - one[, , 2]), 0.5) # not one number recorded for all
  branch <- function(mu) if (mu > 0) 1 else 0
  expect_identical(as.vector(cl_generate(fit, branch)), as.numeric(as.matrix(fit)[, "mu"] > 0))
  expect_fault(cl_generate(fit, branch, batch = TRUE), "argument")
})

test_that("cl_generate() explains what is wrong", {
  fit <- model_fit()
  expect_refused("f", cl_generate(fit, 1), cl_generate(fit, function() 1),
                 cl_generate(fit, function(mu, nu) mu))
  expect_error(cl_generate(fit, function(mu) stop("no")), "iteration 1 of chain 1: no",
               class = "statcl_error_argument")
  expect_fault(cl_generate(cl_glm(am ~ wt, mtcars), identity), "argument")
})

# ---- other packages ------------------------------------------------------------------------------

glm_draws_fit <- function() {
  on_host(cl_glm(am ~ wt, mtcars, "bernoulli_logit", method = "mcmc",
                 prior = list(wt = prior_normal(0, 5)),
                 control = list(chains = 2, iter = 200, seed = 1)))
}

test_that("draws, diagnostics and generated values suit posterior and bayesplot", {
  fit <- glm_draws_fit()
  expect_identical(as.matrix(fit), as.matrix(fit$draws))
  expect_identical(as.array(fit), fit$draws$draws)
  expect_identical(as.data.frame(fit), as.data.frame(fit$draws))
  expect_refused("x", as.matrix(cl_glm(am ~ wt, mtcars)))
  g <- cl_generate(fit, function(p) p[["wt"]])
  expect_identical(as.vector(g), unname(as.matrix(fit)[, "wt"]))
  skip_if_not_installed("posterior")
  expect_s3_class(posterior::as_draws_rvars(fit), "draws_rvars")
  expect_identical(posterior::variables(posterior::as_draws_df(g)), "value")
  expect_equal(as.numeric(posterior::summarise_draws(model_fit(), mean)$mean),
               summary(model_fit())$mean)
  skip_if_not_installed("bayesplot")
  nuts <- bayesplot::nuts_params(model_fit())
  expect_identical(dim(nuts), c(720L, 4L))
  energy <- nuts[nuts$Parameter == "energy__" & nuts$Chain == 2, ]
  expect_identical(energy$Value, model_fit()$diagnostics$energy[, 2])
  expect_identical(levels(bayesplot::nuts_params(fit, pars = "divergent__")$Parameter),
                   "divergent__")
  lp <- bayesplot::log_posterior(model_fit())
  expect_identical(lp$Value[lp$Chain == 1], model_fit()$diagnostics$log_density[, 1])
})

test_that("loo() takes pointwise log likelihoods", {
  skip_if_not_installed("loo")
  fit <- glm_draws_fit()
  found <- suppressWarnings(loo::loo(fit)) # high Pareto k: weak priors, few observations
  by_hand <- suppressWarnings(loo::loo(fit$draws, function(p) {
    dbinom(mtcars$am, 1, plogis(p[[1]] + p[[2]] * mtcars$wt), log = TRUE)
  }))
  expect_equal(found$estimates, by_hand$estimates)
  expect_fault(loo::loo(cl_glm(am ~ wt, mtcars)), "argument")
})

test_that("pointwise log likelihoods add up", {
  set.seed(1)
  x <- rnorm(30)
  y <- list(bernoulli_logit = rbinom(30, 1, 0.4), normal_id = x + rnorm(30),
            poisson_log = rpois(30, 3), neg_binomial_2_log = rnbinom(30, 2, mu = 5),
            categorical_logit = gl(3, 10), ordered_logistic = gl(3, 10))
  for (family in names(y)) {
    fit <- on_host(cl_glm(y ~ x, data.frame(y = y[[family]], x = x), family = family,
                          weights = rep(1:2, 15)))
    own <- fit$aux * if (family == "normal_id") sqrt(fit$df.residual / fit$nobs) else 1
    each <- weighted_log_density(fit$family, fit, fit$linear.predictors, own)
    expect_equal(sum(each), as.numeric(logLik(fit)), tolerance = 1e-8, label = family)
  }
  fit <- on_host(cl_glm(cbind(am + 1, 3 - am) ~ wt, mtcars, family = "binomial_logit"))
  each <- weighted_log_density(fit$family, fit, fit$linear.predictors, fit$aux)
  expect_equal(sum(each), as.numeric(logLik(fit)))
})
