# Other families of observations with Vecchia's approximation, against the exact latent process.

# Several classes have no such approximation.
latent_cases <- function(n) {
  cases <- response_cases(n, slope = 2)
  cases$y$categorical_logit <- NULL
  cases
}

latent_likelihoods <- function(cases, family, kernel, mean, beta, neighbours, weights = NULL,
                               offset = NULL) {
  response <- gp_response(family, cases$y[[family]], weights, offset)
  problem <- new_gp_problem(cases$x, response_guess(response)[, 1L], kernel, mean, beta, NULL, NULL,
                            NULL)
  problem$response <- response
  problem <- plain_trend(problem)
  near <- problem
  near$vecchia <- list(neighbours = neighbours, scale = c(1, 1))
  list(exact = gp_function(problem), near = gp_function(near), trend = problem$mean)
}

test_that("with n - 1 neighbours all is Laplace's approximation of the exact process", {
  n <- 40L
  cases <- latent_cases(n)
  kernel <- k_matern32(1.3, c(0.4, 0.8))
  new <- cbind(a = c(0.2, 0.9, 1.5), b = c(0.3, 0.1, 0.5))
  with_cl({
    for (family in names(cases$y)) {
      for (mean in list(0.3, "constant", "linear")) {
        beta <- if (identical(mean, "linear")) "integrate" else "profile"
        f <- latent_likelihoods(cases, family, kernel, mean, beta, n - 1L,
                                weights = if (family == "poisson_log") rep(1:2, n / 2),
                                offset = cases$x[, 1L])
        par <- c(coef(kernel), cases$own[[family]])
        exact <- f$exact(par)
        near <- f$near(par)
        expect_lt(abs(near - exact), 1e-6)
        expect_lt(max(abs(attr(near, "gradient") - attr(exact, "gradient"))), 0.01)
        states <- lapply(f[1:2], gp_condition, par)
        expect_close(states$near$f, states$exact$f, 1e-7)
        expect_equal(as.numeric(states$near$beta), as.numeric(states$exact$beta), tolerance = 1e-6)
        expect_equal(states$near$beta_cov, states$exact$beta_cov, tolerance = 1e-6)
        basis <- if (identical(mean, "linear")) mean_basis(f$trend, cbind(1, new))
        at <- lapply(states, function(s) s$predict(new, "variance", basis))
        expect_equal(at$near$mean, at$exact$mean, tolerance = 1e-4)
        expect_equal(at$near$variance, at$exact$variance, tolerance = 1e-4)
      }
    }
  }, engine = "host")
})

test_that("few neighbours come close, closer with more of them", {
  n <- 300L
  cases <- latent_cases(n)
  kernel <- k_matern32(1.3, 0.4)
  with_cl({
    for (family in c("bernoulli_logit", "poisson_log", "student_t")) {
      par <- c(coef(kernel), cases$own[[family]])
      away <- vapply(c(5L, 20L, 60L), function(m) {
        f <- latent_likelihoods(cases, family, kernel, 0, "profile", m)
        abs(f$near(par, FALSE) - f$exact(par, FALSE))
      }, 0)
      expect_lt(away[2L], 0.5 * away[1L])
      expect_lt(away[3L], 0.02)
    }
  }, engine = "host")
})

test_that("a fit is near the exact one, with its methods", {
  n <- full_or_quick(300L, 150L)
  cases <- latent_cases(n)
  d <- data.frame(cases$x, y = cases$y$poisson_log)
  d$a[3L] <- NA
  with_cl({
    exact <- cl_gp(y ~ a + b, d, k_matern32(), family = poisson(), ard = FALSE, starts = 1)
    near <- cl_gp(y ~ a + b, d, k_matern32(), family = poisson(), ard = FALSE, starts = 1,
                  approx = "vecchia", neighbours = 40)
    expect_true(near$converged)
    expect_lt(abs(as.numeric(logLik(near) - logLik(exact))), 0.3)
    expect_equal(coef(near), coef(exact), tolerance = 0.1)
    expect_equal(vcov(near), vcov(exact), tolerance = 0.2)
    expect_output(print(near), "Vecchia's approximation: 40 neighbours")
    expect_output(print(summary(near)), "40 neighbours")
    expect_identical(length(residuals(near)), n - 1L)
    new <- data.frame(a = c(0.2, NA, 0.8), b = 0.5)
    at <- lapply(list(near, exact), predict, new, type = "response", interval = "confidence")
    expect_equal(at[[1L]], at[[2L]], tolerance = 0.05)
    counts <- predict(near, new, type = "response", interval = "prediction")
    expect_true(is.na(counts[2L, 1L]) && all(counts[-2L, "lwr"] <= counts[-2L, "upr"]))
    expect_refused("approx", predict(near, new, covariance = TRUE))
  }, engine = "host")
})

test_that("equal points have equal values; what is not available is refused", {
  set.seed(1)
  x <- cbind(a = rep(1:8, 5) / 8, b = 0.5)
  y <- stats::rbinom(40, 1, stats::plogis(3 * sin(6 * x[, 1L])))
  of <- function(...) {
    cl_gp(x, y, k_matern32(), family = binomial(), mean = 0, ard = FALSE,
          fixed = c(sd = 1.5, lengthscale = 0.3), ...)
  }
  fits <- list(of(), of(approx = "vecchia", neighbours = 39))
  expect_lt(abs(diff(vapply(fits, function(f) as.numeric(logLik(f)), 0))), 1e-4)
  link <- predict(fits[[2L]])
  expect_equal(as.vector(link), rep(as.vector(link[1:8]), 5), tolerance = 1e-4)
  d <- data.frame(x, y = y)
  d$z <- factor(d$y + rep(0:1, 20))
  expect_fault(cl_gp(y ~ a, d, family = binomial(), approx = "vecchia", method = "mcmc"),
               "argument", argument = "method")
  expect_fault(cl_gp(y ~ a, d, k_matern32() + k_white(), family = binomial(), approx = "vecchia"),
               "argument", argument = "kernel")
})

test_that("outliers move a fit by Student\'s t as little as the exact one", {
  n <- 200L
  set.seed(n)
  d <- data.frame(a = stats::runif(n), b = stats::runif(n))
  truth <- 2 * sin(5 * d$a) + d$b
  d$y <- truth + 0.1 * stats::rt(n, 3) + 3 * (seq_len(n) %% 40L == 5L)
  with_cl({
    of <- function(...) {
      cl_gp(y ~ a + b, d, k_matern52(), family = "student_t", ard = FALSE, starts = 1, ...)
    }
    exact <- of()
    near <- of(approx = "vecchia", neighbours = 30)
    expect_true(near$converged)
    expect_lt(abs(as.numeric(logLik(near) - logLik(exact))), 0.3)
    expect_equal(coef(near), coef(exact), tolerance = 0.1)
    expect_lt(sqrt(mean((fitted(near) - fitted(exact))^2)), 0.01)
    expect_lt(sqrt(mean((fitted(near) - truth)^2)), 0.1)
    new <- data.frame(a = c(0.3, 0.7), b = 0.5)
    at <- lapply(list(near, exact), predict, new, type = "response",
                 interval = "prediction")
    expect_equal(at[[1L]], at[[2L]], tolerance = 0.05)
  }, engine = "host")
})

test_that("curvatures that are negative: the right answer, or that the matrix is not definite", {
  n <- 60L
  set.seed(5)
  x <- cbind(stats::runif(n), stats::runif(n))
  kernel <- k_matern32(1.2, 0.5)
  with_cl({
    f <- cl_gp_likelihood(numeric(n), x, kernel, approx = "vecchia", neighbours = n - 1L)
    e <- environment(f)
    weights <- e$on_handle(function(v) {
      .Call(r_vecchia_latent, v, e$layout$c, layout_values(e$layout, c(coef(kernel), 0)))
    })
    precision <- solve(as.matrix(cl_cov(x, x, kernel)))
    least <- 1 / max(eigen(solve(precision), symmetric = TRUE, only.values = TRUE)$values)
    solved <- function(d) {
      b <- cbind(x[, 1L], 1)
      e$on_handle(function(v) .Call(r_vecchia_latent_solve, v, weights, d, b))
    }
    d <- rep(c(-0.9 * least, 3), length.out = n)
    got <- solved(d)
    p <- precision + diag(d)
    expect_equal(got$x, solve(p, cbind(x[, 1L], 1)), tolerance = 1e-7)
    expect_equal(got$half, as.numeric(determinant(p)$modulus - determinant(precision)$modulus) / 2,
                 tolerance = 1e-7)
    expect_fault(solved(rep(-1.5 * least, n)), "not_pd")
    expect_fault(solved(replace(d, 7L, -1e6)), "not_pd")
  }, engine = "host")
})
