# Fits of generalised linear models by sampling: verdicts on draws, models with many columns.

skip_on_cran() # long; run by ./dev check

test_on_host("a fit with few draws is not marked as converged", {
  short <- function(iter, chains) {
    cl_glm(am ~ wt, mtcars, method = "mcmc",
           control = list(chains = chains, iter = iter, seed = 1))
  }
  expect_warning(fit <- short(8, 2), "increase 'iter'", class = "statcl_warning_sampling")
  expect_false(fit$converged)
  expect_output(print(fit), "NOT converged: largest R-hat [0-9.]+, smallest effective")
  expect_warning(fit <- short(8, 1), class = "statcl_warning_sampling")
  expect_false(fit$converged)
  fit <- expect_silent(short(300, 2))
  expect_true(fit$converged)
})

test_that("a Gaussian process with few draws is not marked as converged", {
  x <- seq(0, 1, length.out = 20)
  set.seed(3)
  arguments <- list(chains = 2, warmup = 20, iter = 20, seed = 1)
  expect_warning(fit <- on_host(cl_gp(x, sin(6 * x) + rnorm(20) / 10, method = "mcmc",
                                      control = arguments)), "do not agree")
  expect_false(fit$converged)
})

test_that("a linear model with as many coefficients as observations, and more", {
  # The posterior of sigma by its marginal density: with normal priors of standard deviation 1 y is
  # normal with covariance matrix X X' + sigma^2.
  for (k in c(7L, 8L, 11L)) {
    x <- outer(1:8, seq_len(k), function(i, j) cos(i * j + j^2))
    y <- x[, 1L] - x[, 2L] / 2 + sin(7 * (1:8))
    parts <- eigen(tcrossprod(x), symmetric = TRUE)
    along <- crossprod(parts$vectors, y)^2
    log_density <- function(s) {
      v <- pmax(parts$values, 0) + s^2
      -sum(log(v) + along / v) / 2 - s^2 / 2
    }
    grid <- seq(1e-3, 5, length.out = 2000)
    weight <- exp(vapply(grid, log_density, 0) - max(vapply(grid, log_density, 0)))
    mean <- sum(grid * weight) / sum(weight)
    sd <- sqrt(sum((grid - mean)^2 * weight) / sum(weight))
    fit <- suppressWarnings(on_host(
      cl_glm(x, y, "normal_id", "mcmc", intercept = FALSE,
             prior = list(coefficients = prior_normal(0, 1), sigma = prior_normal(0, 1)),
             control = list(seed = 1, chains = 4, iter = 3000, adapt_delta = 0.99))),
      classes = "statcl_warning_sampling")
    table <- summary(fit$draws)
    row <- table[table$parameter == "sigma", ]
    expect_lt(row$rhat, 1.05, label = k)
    expect_lt(abs(row$mean - mean), 5 * row$mcse, label = k)
    expect_lt(abs(row$sd / sd - 1), 0.25, label = k)
  }
})

test_on_host("Akaike's criterion is not shown for posterior means", {
  control <- list(chains = 2, iter = 300, seed = 1)
  fit <- cl_glm(am ~ wt, mtcars, method = "mcmc", control = control)
  for (shown in list(capture.output(print(fit)), capture.output(print(summary(fit))))) {
    expect_false(any(grepl("AIC", shown)))
    expect_true(any(grepl("log likelihood at the means", shown)))
  }
  expect_output(print(cl_glm(am ~ wt, mtcars)), "AIC")
})

of_posterior <- function(name) getExportedValue("posterior", name)

test_that("the package posterior accepts the draws of fits", {
  skip_if_not_installed("posterior")
  x <- seq(0, 1, length.out = 20)
  on_host({
    control <- list(chains = 2, iter = 300, seed = 1)
    fits <- list(cl_glm(am ~ wt, mtcars, method = "mcmc", control = control),
                 suppressWarnings(cl_gp(x, sin(6 * x), method = "mcmc",
                                        control = list(chains = 2, iter = 60, seed = 1))))
    for (fit in fits) {
      draws <- of_posterior("as_draws")(fit)
      expect_s3_class(draws, "draws_array")
      expect_identical(unclass(as.vector(draws)), as.vector(fit$draws$draws))
      expect_identical(of_posterior("variables")(draws), dimnames(fit$draws$draws)[[3]])
      expect_s3_class(of_posterior("as_draws_df")(fit), "draws_df")
    }
    gp <- cl_gp(x, sin(6 * x) + cos(40 * x) / 9)
    expect_refused("x", of_posterior("as_draws")(gp))
  })
})

posterior_of <- function(name) getExportedValue("rstantools", name)

test_that("rstantools' generics give draws of predictors, means, responses and log likelihoods", {
  skip_if_not_installed("rstantools")
  set.seed(1)
  n <- 40
  x <- rnorm(n)
  eta <- 0.3 + 0.5 * x
  y <- list(bernoulli_logit = rbinom(n, 1, plogis(eta)), normal_id = eta + rnorm(n),
            binomial_logit = rbinom(n, 6, plogis(eta)), poisson_log = rpois(n, exp(eta)),
            neg_binomial_2_log = rnbinom(n, size = 2, mu = exp(eta)),
            categorical_logit = gl(3, 1, n), ordered_logistic = gl(3, 1, n, ordered = TRUE))
  for (family in names(y)) {
    d <- data.frame(y = y[[family]], x = x)
    fit <- on_host(cl_glm(y ~ x, d, family = family, method = "mcmc",
                          control = list(chains = 2, iter = 600, warmup = 400),
                          trials = if (family == "binomial_logit") 6))
    all <- nrow(as.matrix(fit))
    mean <- posterior_of("posterior_epred")(fit)
    expect_identical(dim(mean)[1:2], c(all, as.integer(n)), info = family)
    share <- apply(mean, seq_along(dim(mean))[-1L], base::mean)
    expect_equal(unname(share), unname(predict(fit, type = "response", draws = all)),
                 tolerance = 1e-12, info = family)
    if (family != "categorical_logit") {
      expect_equal(unname(colMeans(posterior_of("posterior_linpred")(fit))),
                   unname(predict(fit, draws = all)), tolerance = 1e-12, info = family)
      expect_identical(posterior_of("posterior_linpred")(fit, transform = TRUE), mean)
    }
    got <- posterior_of("posterior_predict")(fit, seed = 1)
    expect_identical(got, posterior_of("posterior_predict")(fit, seed = 1))
    expect_identical(dim(got), c(all, as.integer(n)))
    want <- switch(family, binomial_logit = 6 * mean, categorical_logit = , ordered_logistic =
                     mean[, , 1L] + 2 * mean[, , 2L] + 3 * mean[, , 3L], mean)
    apart <- got - want
    expect_lt(abs(base::mean(apart)) / (sd(apart) / sqrt(length(apart))), 5)
    expect_gt(sd(apart), 0.2)
    some <- posterior_of("posterior_predict")(fit, data.frame(x = c(1, NA, -1)), draws = 30)
    expect_identical(dim(some), c(30L, 3L))
    expect_true(all(is.na(some[, 2L])) && !anyNA(some[, -2L]), info = family)
    expect_identical(dim(posterior_of("log_lik")(fit, draws = 10)), c(10L, as.integer(n)))
  }
  many <- posterior_of("posterior_predict")(
    on_host(cl_glm(y ~ x, data.frame(y = y$binomial_logit, x = x), family = "binomial_logit",
                   trials = 6, method = "mcmc",
                   control = list(chains = 2, iter = 500, warmup = 200))),
    data.frame(x = c(0, 0)), trials = c(0, 1000))
  expect_true(all(many[, 1L] == 0) && all(many[, 2L] > 50))
})

test_that("draws of normal responses have the standard deviation of the posterior distribution", {
  skip_if_not_installed("rstantools")
  fit <- on_host(cl_glm(mpg ~ wt, mtcars, family = "normal_id", method = "mcmc",
                        control = list(chains = 2, iter = 500, warmup = 200)))
  got <- posterior_of("posterior_predict")(fit, data.frame(wt = 3), seed = 1)
  sigma <- as.matrix(fit)[, "sigma"]
  centre <- posterior_of("posterior_epred")(fit, data.frame(wt = 3))
  z <- (got - centre) / sigma
  expect_gt(stats::ks.test(as.vector(z), "pnorm")$p.value, 1e-4)
})

test_that("the compiled density is that of the R functions", {
  set.seed(3)
  d <- data.frame(x = rnorm(25), z = runif(25), n = rpois(25, 2), w = rep(1:5, 5),
                  g = factor(sample(letters[1:3], 25, TRUE)))
  targets <- function(y, family, prior = NULL, weights = NULL, offset = NULL, trials = NULL) {
    x <- cbind(`(Intercept)` = 1, x = d$x, z = d$z)
    if (family == "ordered_logistic") x <- x[, -1L]
    response <- statcl:::glm_response(family, y, trials, weights)
    problem <- statcl:::new_glm_problem(family, x, response, offset,
                                        if (family == "ordered_logistic") 0L else 1L)
    priors <- statcl:::glm_priors(prior, problem)
    mode <- statcl:::glm_centre(problem, priors, NULL, statcl:::glm_control(list(), "ml")$search,
                                FALSE)
    target <- statcl:::glm_target(mode$core, mode$prior, mode$found)
    list(mode = mode, target = target,
         compiled = statcl:::compiled_target(mode$core, mode$prior, target))
  }
  same <- function(...) {
    of <- targets(...)
    expect_s3_class(of$compiled, "cl_gradient")
    for (i in 1:3) {
      z <- rnorm(of$mode$core$count)
      a <- of$compiled(z)
      b <- of$target$density(z)
      expect_close(as.vector(a), as.vector(b), 1e-10)
      expect_close(unlist(attr(a, "gradient"), use.names = FALSE), attr(b, "gradient"), 1e-8)
    }
  }
  on_host({
    b <- as.numeric(d$x + d$z > 0.3)
    same(b, "bernoulli_logit")
    same(b, "bernoulli_logit", prior_student_t(4, 0, 2), weights = d$w)
    same(cbind(d$n, 3), "binomial_logit", list(x = prior_normal(1, 2)))
    same(d$n, "poisson_log", list(x = function(b) -b^2 / 3), offset = d$z)
    same(d$n, "neg_binomial_2_log", list(phi = prior_gamma(2, 1)))
    same(d$x + d$n, "normal_id", weights = d$w, offset = d$z)
    same(d$g, "ordered_logistic", list(cuts = prior_normal(0, 3)))
    same(d$g, "categorical_logit", offset = cbind(0, d$x, d$z))
    # a prior that cannot be recorded
    choice <- function(b) if (b > 0) -b else b
    expect_null(targets(d$n, "poisson_log", list(x = choice))$compiled)
    fit <- suppressWarnings(cl_glm(n ~ x, d, "poisson_log", "mcmc", list(x = choice),
                                   control = list(warmup = 50, iter = 50, chains = 2, seed = 1)))
    expect_true(all(is.finite(coef(fit))))
  })
})
