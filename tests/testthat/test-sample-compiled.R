# Chains in the core (src/sample) against those in R (helper-sample-chain.R), draw for draw.

skip_on_cran() # long; run by ./dev check

# The same run by the sampler in R: the program of the unconstrained vector as a function of R.
reference_sample <- function(f, init, transform = NULL, ...) {
  layout <- parameter_layout(init, transform)
  if (inherits(f, "cl_gradient")) do.call(f, if (is.list(init)) init else list(init))
  u <- free_start(layout, init)
  program <- density_program(f, layout, u)
  slow <- function(u) {
    both <- .Call(r_program_run, program$program, u, TRUE)
    with_slope(both[1L], both[-1L])
  }
  fit <- suppressWarnings(sample_in_r(slow, u, ...), classes = "statcl_warning")
  draws <- apply(fit$draws, 2, function(u) constrain_draws(layout, t(matrix(u, ncol = length(u) /
                                                                              nrow(fit$draws)))))
  fit$draws <- aperm(array(draws, c(layout$n, nrow(fit$draws), ncol(fit$draws))), c(2, 3, 1))
  fit
}

in_core <- function(f, init, transform = NULL) {
  layout <- parameter_layout(init, transform)
  u <- free_start(layout, init)
  !is.null(compile_density(f, layout, u, make_evaluator(f, layout, "reject")(u)))
}

expect_same_draws <- function(f, init, transform = NULL, metric = "diag", ...) {
  fit <- quiet_sample(f, init, transform = transform, chains = 2, seed = 5, metric = metric, ...)
  expect_true(in_core(f, init, transform))
  reference <- reference_sample(f, init, transform, chains = 2, seed = 5, metric = metric, ...)
  expect_identical(as.vector(fit$draws), as.vector(reference$draws))
  same <- c("diagnostics", "step_size", "inverse_metric", "evaluations", "rejections", "failures",
            "complete")
  expect_identical(fit[same], reference[same])
  expect_identical(dimnames(fit$seconds), dimnames(reference$seconds))
  expect_true(all(fit$seconds >= 0 | is.na(fit$seconds)))
  invisible(fit)
}

schools_effect <- c(28, 8, -3, 7, -1, 1, 18, 12)
schools_error <- c(15, 10, 16, 11, 9, 11, 10, 18)

test_that("eight schools: a function, and formulas", {
  init <- list(mu = 0, tau = 1, z = numeric(8))
  positive <- list(tau = cl_lower(0))
  f <- cl_gradient(function(tau, z, mu) { # another order than that of init
    sum(dnorm(schools_effect, mu + tau * z, schools_error, log = TRUE)) +
      sum(dnorm(z, log = TRUE)) + dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
  })
  fit <- expect_same_draws(f, init, positive, warmup = 300, iter = 300)
  formulas <- cl_log_posterior(
    ~ dnorm(schools_effect, mu + tau * z, schools_error, log = TRUE),
    ~ dnorm(z, 0, 1, log = TRUE), ~ dnorm(mu, 0, 5, log = TRUE), ~ dcauchy(tau, 0, 5, log = TRUE))
  expect_same_draws(formulas, init, positive, warmup = 100, iter = 50)
  expect_same_draws(f, init, positive, warmup = 50, iter = 20, method = "hmc", leapfrogs = 5)
  expect_same_draws(f, init, positive, warmup = 10, iter = 20, metric = "unit", jitter = 0.3)
  expect_same_draws(f, init, positive, warmup = 0, iter = 20, step_size = 0.2,
                    inverse_metric = seq(0.5, 1.4, by = 0.1))
})

test_that("divergent iterations, points without a density, and the largest depth", {
  neck <- cl_gradient(function(v, x) dnorm(v, 0, 3, log = TRUE) +
                        sum(dnorm(x, 0, exp(v / 2), log = TRUE)))
  fit <- expect_same_draws(neck, list(v = 0, x = numeric(9)), warmup = 200, iter = 200,
                           adapt_delta = 0.6)
  expect_gt(sum(fit$diagnostics$divergent), 0)
  half <- cl_gradient(function(x) sum(1.5 * log(1 - x^2)))
  fit <- expect_same_draws(half, list(x = c(0.1, 0.2)), warmup = 200, iter = 200)
  expect_gt(sum(fit$rejections), 0)
  narrow <- cl_gradient(function(p) -sum((p / c(1, 100, 1e-3))^2) / 2)
  fit <- expect_same_draws(narrow, c(a = 0, b = 0, c = 0), warmup = 100, iter = 100, max_depth = 3,
                           save_warmup = TRUE)
  expect_gt(sum(fit$diagnostics$tree_depth == 3), 0)
  expect_identical(dim(fit$warmup$draws), c(100L, 2L, 3L))
})

test_that("every transform, and a likelihood with priors", {
  cases <- list(list(cl_lower(1:3), c(2, 3, 4)), list(cl_upper(2), c(0, 1)),
                list(cl_bounds(-1, 1:2), c(0, 1)), list(cl_ordered(), 1:3),
                list(cl_positive_ordered(), 1:3), list(cl_simplex(), c(0.2, 0.3, 0.5)),
                list(cl_zero_sum(), c(1, -2, 1)), list(cl_unit_vector(), c(0.6, 0.8)),
                list(cl_corr_factor(), diag(3)), list(cl_corr_matrix(), diag(2)),
                list(cl_cov_matrix(), diag(2)))
  for (case in cases) {
    f <- cl_gradient(function(a, x) -a^2 / 2 - sum((as.vector(x) - a)^2))
    expect_same_draws(f, list(a = 0.5, x = case[[2]]), list(x = case[[1]]), warmup = 60, iter = 20)
  }
  x <- cbind(sin(1:50), cos(1:50))
  likelihood <- on_host(cl_likelihood("normal_id", 1:50 / 10, x))
  posterior <- cl_log_posterior(likelihood, ~ dnorm(beta, 0, 5, log = TRUE),
                                ~ prior_normal(0, 5)(alpha))
  expect_same_draws(posterior, list(alpha = 0, beta = c(0, 0), sigma = 1),
                    list(sigma = cl_lower(0)), warmup = 100, iter = 50)
})

test_that("known targets within four standard errors", {
  sd <- 10^seq(-2, 2)
  wide <- cl_gradient(function(p) -sum((p / sd)^2) / 2)
  fit <- quiet_sample(wide, numeric(5), warmup = 600, iter = 1000, seed = 1)
  expect_moments(fit, numeric(5), sd)
  beta <- cl_gradient(function(p) 2 * log(p) + 4 * log(1 - p))
  fit <- quiet_sample(beta, c(p = 0.5), transform = cl_bounds(0, 1), iter = 2000, seed = 2)
  expect_moments(fit, 3 / 8, sqrt(3 * 5 / 64 / 9))
  shares <- cl_gradient(function(p) sum(c(1, 2, 3) * log(p))) # Dirichlet(2, 3, 4)
  fit <- quiet_sample(shares, list(p = c(0.3, 0.3, 0.4)), transform = list(p = cl_simplex()),
                      iter = 2000, seed = 3)
  expect_moments(fit, 2:4 / 9, sqrt(2:4 * 7:5 / 81 / 10))
})

test_that("a value that rounding has put on its bound has density zero", {
  f <- cl_gradient(function(s) -s) # flat in log(s), as the Jacobian is taken back
  layout <- parameter_layout(list(s = 1), list(s = cl_lower(1e6)))
  f(s = 1e6 + 1)
  program <- density_program(f, layout, 0)
  at <- function(u) .Call(r_program_run, program$program, u, FALSE)
  expect_equal(at(0), -1e6 - 1)
  expect_identical(at(-40), -Inf)
  expect_identical(make_evaluator(f, layout, "stop")(-40)[[1L]], -Inf)
})

test_that("faults are those of chains in R", {
  f <- cl_gradient(function(x) sum(log(x) - x))
  error <- tryCatch(cl_sample(f, list(x = c(1, 2)), chains = 2, seed = 1, warmup = 50, iter = 50,
                              nan = "stop"), statcl_error_density = identity)
  expect_s3_class(error, "statcl_error_density")
  expect_match(conditionMessage(error),
               "value of 'log_density' is NaN.*\\(chain 1, iteration \\d+\\)")
  expect_true(any(error$parameters < 0))
  expect_named(error$parameters, c("x[1]", "x[2]"))
  expect_identical(error$chain, 1L)
  flat <- cl_gradient(function(x) 0 * x + 1)
  expect_warning(expect_error(cl_sample(flat, c(x = 0), chains = 1), "so flat",
                              class = "statcl_error_density"), "does not depend on 'x'")
  gone <- .Call(r_chain_make, c(1, 2), c(5, 5, 0, 1, 10, 1, 0, 0, 0, 0, 0.8, 0, 0, 1, 1, 1),
                stream_states(1L, 1)[[1L]], NULL)
  gone <- unserialize(serialize(gone, NULL))
  expect_fault(.Call(r_chain_step, gone, 0, c(0, 0), 10L), "stale")
})

test_that("draws follow from the seed in workers, with reports, and memory is freed", {
  f <- eval(quote(cl_gradient(function(a, b) -(a - 1)^2 - sum((b - a)^2) + log(a))), globalenv())
  run <- function(...) {
    cl_sample(f, list(a = 1, b = c(0, 0)), chains = 3, warmup = 100, iter = 50, seed = 3,
              transform = list(a = cl_lower(0)), ...)
  }
  one <- on_host(run())
  expect_identical(on_host(run(workers = 2))$draws, one$draws)
  said <- capture.output(again <- on_host(run(refresh = 40)), type = "message")
  expect_identical(again$draws, one$draws)
  expect_length(grep("^chain 2: +(40|80|120|150) of 150", said), 4L)
  expect_no_leak(on_host(run()))
})

test_that("an interrupted run returns its draws, and can be repeated", {
  f <- cl_gradient(function(a, b) -a^2 - sum((b - a)^2))
  run <- function() {
    cl_sample(f, list(a = 1, b = c(0, 0)), chains = 3, warmup = 100, iter = 200, seed = 3)
  }
  whole <- on_host(run())
  later <- sum(whole$evaluations[1:2]) # as many checks at least
  .Call(r_interrupt_after, as.integer(later))
  expect_warning(fit <- on_host(run()), "interrupted", class = "statcl_warning_interrupted")
  .Call(r_interrupt_after, -1L)
  expect_false(fit$complete)
  made <- dim(fit$draws)
  # chains that ran side by side may be any of the three
  begun <- whole$draws[seq_len(made[1]), , , drop = FALSE]
  of <- vapply(seq_len(made[2]), function(k) {
    which(vapply(1:3, function(j) identical(fit$draws[, k, ], begun[, j, ]), NA))
  }, 0L)
  expect_false(is.unsorted(of, strictly = TRUE))
  expect_identical(on_host(run())$draws, whole$draws)
})

test_that("chains on threads make the draws of one thread", {
  threads <- Sys.getenv("STATCL_COPY_THREADS", NA)
  on.exit(if (is.na(threads)) Sys.unsetenv("STATCL_COPY_THREADS")
          else Sys.setenv(STATCL_COPY_THREADS = threads))
  positive <- function(n) diag(n) + 1 / outer(1:n, 1:n, `+`)
  f <- cl_gradient(function(s, m) {
    l <- chol(positive(5) * exp(s))
    -sum(backsolve(l, m - 1:5, transpose = TRUE)^2) / 2 - sum(log(diag(l))) - s^2 / 2
  })
  half <- cl_gradient(function(x) sum(1.5 * log(1 - x^2)))
  run <- function(threads, f, init, ...) {
    Sys.setenv(STATCL_COPY_THREADS = threads)
    on_host(quiet_sample(f, init, chains = 5, warmup = 60, iter = 40, seed = 8, ...))[
      c("draws", "diagnostics", "step_size", "evaluations", "rejections")]
  }
  one <- run(1, f, list(s = 0, m = numeric(5)))
  expect_identical(run(2, f, list(s = 0, m = numeric(5))), one)
  expect_identical(run(3, f, list(s = 0, m = numeric(5)), refresh = 0), one)
  judged <- run(1, half, list(x = c(0.1, 0.2)), jitter = 0.1)
  expect_gt(sum(judged$rejections), 0)
  expect_identical(run(3, half, list(x = c(0.1, 0.2)), jitter = 0.1), judged)
  expect_error(run(3, half, list(x = c(0.1, 0.2)), jitter = 0.1, nan = "stop"),
               "NaN.*chain \\d, iteration", class = "statcl_error_density")
  expect_no_leak(run(2, f, list(s = 0, m = numeric(5))))
  # a recursion, and the same as a loop over single numbers
  y <- sin(1:12)
  scanned <- cl_gradient(function(r, s) {
    at <- cl_scan(function(e, v) list(state = v - r * e, out = v - r * e), y[1], y[-1])$out
    sum(dnorm(at, 0, exp(s), log = TRUE)) - r^2
  })
  looped <- cl_gradient(function(r, s) {
    at <- y[1]
    total <- 0
    for (v in y[-1]) {
      at <- v - r * at
      total <- total + dnorm(at, 0, exp(s), log = TRUE)
    }
    total - r^2
  })
  for (g in list(scanned, looped)) {
    expect_identical(run(3, g, list(r = 0, s = 0)), run(1, g, list(r = 0, s = 0)))
  }
})

test_each_engine("a built-in likelihood with priors is a target of the core", {
  x <- cbind(sin(1:60), cos(1:60))
  y <- as.double(sin(3 * (1:60)) > 0)
  target_of <- function(f, init, transform = NULL) {
    layout <- parameter_layout(init, transform)
    u <- free_start(layout, init) + 0.1
    answer <- make_evaluator(f, layout, "stop")(u)
    target <- compile_density(f, layout, u, answer, batch = TRUE)
    expect_false(is.null(target$likelihood))
    expect_close(.Call(r_target_run, target, u), unlist(answer), tol = 1e-12)
    target
  }
  bernoulli <- cl_likelihood("bernoulli_logit", y, x)
  both <- list(alpha = 0, beta = c(0, 0))
  expect_null(target_of(bernoulli, both)$program)
  target_of(bernoulli, list(beta = c(0, 0)))
  target_of(bernoulli, rev(both))
  posterior <- cl_log_posterior(~ dnorm(beta, 0, scale, log = TRUE), bernoulli,
                                ~ dexp(scale, 1, log = TRUE))
  target_of(posterior, c(both, scale = 1), list(scale = cl_lower(0)))
  normal <- cl_likelihood("normal_id", y, x)
  target_of(normal, c(both, sigma = 1), list(sigma = cl_lower(0)))
  target_of(normal, c(both, sigma = 1))
  target_of(cl_likelihood("neg_binomial_2_log", y, x), c(phi = 1, both), list(phi = cl_lower(0)))
  # others are not: they run as before
  bounded <- parameter_layout(c(both, sigma = 1), list(sigma = cl_bounds(0, 3)))
  expect_null(likelihood_places(normal, bounded))
  expect_null(likelihood_places(bernoulli, parameter_layout(both, list(beta = cl_ordered()))))
  few <- function(batch) {
    quiet_sample(cl_log_posterior(normal, ~ dnorm(beta, 0, 5, log = TRUE)), c(both, sigma = 1),
                 transform = list(sigma = cl_lower(0)), chains = 3, warmup = 0, iter = 5,
                 step_size = 0.05, seed = 4, batch = batch)$draws
  }
  expect_equal(few(TRUE), few(FALSE), tolerance = 1e-9)
  expect_no_leak(few(TRUE))
})

test_that("values given by update() are those of the chains", {
  y <- c(1, 2, 3)
  init <- list(m = 0)
  each_engine({ # the formula's part of the density is on f's engine
    f <- cl_gradient(function(m) -sum((y - m)^2))
    update(f, y = c(11, 12, 13))
    expect_same_draws(f, init, warmup = 50, iter = 20)
    both <- cl_log_posterior(f, ~ dnorm(m, 0, 10, log = TRUE))
    fit <- expect_same_draws(both, init, warmup = 50, iter = 50)
    expect_equal(mean(fit$draws), 12 * 3 / (3 + 1 / 200), tolerance = 0.05)
  })
})

test_that("lockstep in the core: its draws, whoever asks for reports", {
  y <- sin(1:40)
  f <- cl_gradient(function(a, b) sum(dnorm(y, a + b[1] * (1:40) / 40, exp(b[2]), log = TRUE)) +
                     dnorm(a, 0, 5, log = TRUE) + sum(dnorm(b, 0, 2, log = TRUE)))
  init <- list(a = 0, b = c(0, 0))
  run <- function(...) {
    quiet_sample(f, init, warmup = 100, iter = 60, seed = 4, batch = TRUE, ...)
  }
  each_engine({
    fit <- run(chains = 3)
    said <- capture.output(again <- run(chains = 3, refresh = 30), type = "message")
    expect_identical(again$draws, fit$draws)
    expect_length(grep("^chain 3: +(30|60|90|120|150|160) of 160", said), 6L)
    points <- matrix(0, 3, 2) # the program was mapped to two vectors, and its own order is kept
    expect_false(is.null(.Call(r_program_run_vectors, environment(f)$program, points, TRUE)))
    few <- function(batch) { # the rounding of several points at once grows with the iterations
      quiet_sample(f, init, chains = 3, warmup = 0, iter = 5, step_size = 0.1, seed = 4,
                   batch = batch)$draws
    }
    expect_equal(few(TRUE), few(FALSE), tolerance = 1e-9)
  })
  # one parameter
  peak <- cl_gradient(function(x) -x^2 / 2)
  each_engine({
    fit <- quiet_sample(peak, c(x = 1), chains = 2, warmup = 20, iter = 10, seed = 1, batch = TRUE)
    expect_identical(dim(fit$draws), c(10L, 2L, 1L))
  })
  # more chains than one run evaluates, and points that R judges
  half <- cl_gradient(function(x) sum(1.5 * log(1 - x^2)))
  fit <- on_host(quiet_sample(half, list(x = c(0.1, 0.2)), warmup = 50, iter = 30,
                              chains = 18, batch = TRUE, seed = 1, jitter = 0.1))
  expect_identical(dim(fit$draws), c(30L, 18L, 2L))
  expect_gt(sum(fit$rejections), 0)
  expect_true(all(abs(fit$draws) < 1))
  expect_error(on_host(cl_sample(half, list(x = c(0.1, 0.2)), batch = TRUE, seed = 1,
                                 nan = "stop")), "NaN",
               class = "statcl_error_density")
})

test_each_engine("many chains in lockstep, whose own work threads share, draw as each by itself", {
  set.seed(8)
  x <- matrix(rnorm(300), 100)
  y <- as.numeric(runif(100) < 0.5)
  f <- cl_likelihood("bernoulli_logit", y, x)
  run <- function(batch) {
    suppressWarnings(cl_sample(f, init = list(alpha = 0, beta = numeric(3)), chains = 26,
                               warmup = 40, iter = 10, seed = 3, batch = batch))$draws
  }
  together <- run(TRUE)
  expect_equal(together[1:5, , ], run(FALSE)[1:5, , ], tolerance = 1e-6)
  expect_length(unique(together[1, , 1]), 26)
})

# As the value of STATCL_AHEAD is one of these in turn.
by_points <- function(points, code) {
  old <- Sys.getenv("STATCL_AHEAD", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("STATCL_AHEAD") else Sys.setenv(STATCL_AHEAD = old))
  lapply(points, function(p) {
    Sys.setenv(STATCL_AHEAD = p)
    code()
  })
}

test_that("points evaluated in advance on a device change no draw", {
  set.seed(12)
  n <- 61
  x <- matrix(rnorm(3 * n), n)
  y <- as.numeric(runif(n) < plogis(x[, 1]))
  counts <- rpois(n, 2)
  expect_equal_ways <- function(f, init, ...) {
    fits <- by_points(c("1", "2", "5", ""), function() {
      quiet_sample(f, init, chains = 1, warmup = 60, iter = 30, seed = 3, ...)
    })
    for (fit in fits[-1L]) {
      expect_identical(fit$draws, fits[[1L]]$draws)
      expect_identical(fit$evaluations, fits[[1L]]$evaluations)
    }
  }
  each_engine({
    f <- cl_likelihood("bernoulli_logit", y, x)
    expect_equal_ways(f, list(beta = numeric(3), alpha = 0)) # another order than the likelihood's
    expect_equal_ways(f, list(alpha = 0, beta = numeric(3)), method = "hmc", leapfrogs = 7)
    # metrics that are not diagonal, also of an alpha that comes last or is none
    for (metric in c("dense", "low-rank", "auto")) {
      g <- cl_likelihood("bernoulli_logit", y, x[, c(1, 1, 2)] + 0.1 * x)
      expect_equal_ways(g, list(beta = numeric(3), alpha = 0), metric = metric)
      expect_equal_ways(g, list(alpha = 0, beta = numeric(3)), metric = metric)
      expect_equal_ways(g, list(beta = numeric(3)), metric = metric)
    }
    # no intercept, and a step so large that trajectories diverge
    g <- cl_likelihood("poisson_log", counts, x)
    expect_equal_ways(g, list(beta = numeric(3)))
    expect_equal_ways(g, list(beta = numeric(3)), adapt_delta = 0.1)
    h <- cl_gradient(function(alpha, beta) {
      eta <- alpha + x %*% beta
      sum(y * eta - log1p(exp(eta))) - sum(beta^2)
    })
    expect_equal_ways(h, list(alpha = 0, beta = numeric(3)))
    edge <- cl_gradient(function(z) sum(1.5 * log(1 - z^2))) # NaN beyond
    expect_equal_ways(edge, list(z = c(0.1, 0.2)))
    expect_no_leak(expect_equal_ways(f, list(alpha = 0, beta = numeric(3))))
  })
})

test_each_engine("points evaluated in advance follow the priors", {
  set.seed(14)
  n <- 61
  x <- matrix(rnorm(2 * n), n)
  y <- as.numeric(runif(n) < plogis(x[, 1]))
  init <- list(beta = numeric(2), alpha = 0)
  f <- cl_likelihood("bernoulli_logit", y, x)
  # the slopes seem to be 0, but are not where trajectories get
  separated <- cl_likelihood("bernoulli_logit", as.numeric(x[, 1] > 0), x)
  for (posterior in list(
    cl_log_posterior(separated, ~ -pmax(beta - 8, 0)^2),
    cl_log_posterior(f, ~ dnorm(alpha, 1, 0.3, log = TRUE), ~ -(beta / c(0.1, 2))^2 / 2),
    cl_log_posterior(f, ~ prior_student_t(4, 1, 0.2)(beta), ~ dnorm(beta, 0, 1, log = TRUE)),
    cl_log_posterior(f, ~ dcauchy(beta, c(-1, 1), 0.2, log = TRUE),
                     ~ dt(alpha, 3, log = TRUE)))) {
    for (chains in c(1, 3)) {
      fits <- by_points(c("1", "5", ""), function() {
        quiet_sample(posterior, init, chains = chains, warmup = 0, iter = 8, step_size = 0.2,
                     seed = 3, batch = chains > 1)
      })
      for (fit in fits[-1L]) {
        expect_close(fit$draws[1L, , ], fits[[1L]]$draws[1L, , ], tol = 1e-12)
        expect_close(fit$draws, fits[[1L]]$draws, tol = 1e-9)
        expect_identical(fit$evaluations, fits[[1L]]$evaluations)
      }
    }
  }
})

test_each_engine("posterior moments with priors are those of a sum over a grid", {
  set.seed(15)
  x <- rnorm(20)
  y <- rpois(20, exp(0.5 + 0.4 * x))
  at <- expand.grid(alpha = seq(-1.5, 2, length.out = 301), beta = seq(-1, 1.5, length.out = 301))
  density <- dnorm(at$alpha, -0.5, 0.2, log = TRUE) + dt((at$beta - 1) / 0.1, 4, log = TRUE)
  for (i in seq_along(y)) {
    density <- density + dpois(y[i], exp(at$alpha + at$beta * x[i]), log = TRUE)
  }
  weight <- exp(density - max(density))
  mean_of <- function(v) sum(weight * v) / sum(weight)
  posterior <- cl_log_posterior(cl_likelihood("poisson_log", y, matrix(x)),
                                ~ dnorm(alpha, -0.5, 0.2, log = TRUE),
                                ~ dt((beta - 1) / 0.1, 4, log = TRUE))
  draws <- as.matrix(quiet_sample(posterior, list(alpha = 0, beta = 0), chains = 4, warmup = 300,
                                  iter = full_or_quick(2000, 500), seed = 1, batch = TRUE))
  for (k in 1:2) {
    mean <- mean_of(at[[k]])
    sd <- sqrt(mean_of((at[[k]] - mean)^2))
    off <- sqrt(nrow(draws) / 4) # standard errors, were every fourth draw independent
    expect_lt(abs(mean(draws[, k]) - mean), 4 * sd / off)
    expect_lt(abs(sd(draws[, k]) - sd), 4 * sd / off)
  }
})

test_that("priors that trajectories can follow are found from their derivatives", {
  u <- c(0.1, -3, 40)
  found <- function(...) {
    layout <- parameter_layout(list(b = u), NULL)
    terms <- lapply(list(...), plain_term, "b")
    prior_slopes(trace_program(terms, layout, u, list(), -1L), u)
  }
  s <- c(0.3, 1, 200)
  expect_close(found(~ dnorm(b, 2, s, log = TRUE)), cbind(2, s^2, 0), tol = 1e-12)
  expect_close(found(~ -(b / s)^2 / 2, ~ dnorm(b, 0, s, log = TRUE)), cbind(0, s^2 / 2, 0),
               tol = 1e-12)
  t4 <- found(~ dt((b - 1) / s, 4, log = TRUE))
  expect_close(t4, cbind(1, 4 * s^2 / 5, 1 / 5), tol = 1e-9)
  expect_identical(found(~ 0 * b), cbind(c(0, 0, 0), Inf, 0))
  expect_null(found(~ dlogis(b, log = TRUE)))
  expect_null(found(~ dnorm(b[1:2], b[2:3], log = TRUE)))
  expect_null(found(~ dgamma(b, 2, log = TRUE)))
  expect_null(found(~ -abs(b)))
})
