# Points at which a log density cannot be evaluated.

gp_model <- local({
  set.seed(1)
  x <- sort(runif(20))
  y <- sin(6 * x) + rnorm(20, 0, 0.1)
  squares <- outer(x, x, "-")^2
  function(rho, alpha, sigma) {
    K <- alpha^2 * exp(-0.5 * squares / rho^2)
    diag(K) <- diag(K) + sigma^2
    R <- chol(K)
    -sum(log(diag(R))) - 0.5 * sum(backsolve(R, y, transpose = TRUE)^2) +
      dgamma(rho, 2, 4, log = TRUE) + dnorm(alpha, 0, 2, log = TRUE) + dnorm(sigma, log = TRUE)
  }
})
gp_start <- list(rho = 1, alpha = 1, sigma = 1)
gp_bounds <- lapply(gp_start, function(x) cl_lower(0))

test_that("a Gaussian process as in textbooks, at ten seeds", {
  f <- cl_gradient(gp_model)
  on_host({
    fits <- lapply(1:10, function(seed) {
      quiet_sample(f, gp_start, transform = gp_bounds, seed = seed, warmup = 150, iter = 50)
    })
    failures <- vapply(fits, function(fit) sum(fit$failures), 0)
    expect_gt(sum(failures > 0), 2)
    expect_identical(failures, vapply(fits, function(fit) sum(fit$rejections) + 0, 0))
    text <- unlist(lapply(fits, `[[`, "failure"))
    expect_identical(length(text), sum(failures > 0))
    expect_match(text, "chol\\(\\): (not )?positive definite.* in 'chol\\(K\\)' at rho = ")
    for (fit in fits) {
      expect_lt(max(summary(fit)$rhat), 1.2)
      expect_lt(abs(log(median(fit$draws[, , "sigma"]) / 0.085)), 0.5)
    }
  })
  on_device(for (seed in full_or_quick(1:10, 1)) {
    fit <- quiet_sample(f, gp_start, transform = gp_bounds, seed = seed, chains = 1, warmup = 6,
                        iter = 4)
    expect_identical(fit$failures[[1]] + 0, fit$rejections + 0)
  })
})

test_that("points of density zero, and points that cannot be evaluated, are rejected", {
  # a normal distribution cut off without a transform
  cut <- function(outside) function(x) if (x < -1.2) outside(x) else standard_normal(x)
  ways <- list(function(x) with_slope(-Inf, 0), function(x) with_slope(-Inf, NaN),
               function(x) statcl_abort("not_pd", "not positive definite", order = 1),
               function(x) statcl_abort("nonfinite", "overflow"),
               function(x) with_slope(NaN, 0), function(x) with_slope(0, Inf),
               function(x) chol(matrix(x)), function(x) solve(matrix(0, 2, 2)),
               function(x) cl_glm_lpdf("normal_id", 1:2, matrix(1:2), 0, 1, sigma = x))
  fits <- lapply(ways, function(way) {
    quiet_sample(cut(way), 1, chains = 2, warmup = 200, iter = 500, seed = 5)
  })
  for (k in seq_along(fits)) {
    expect_identical(fits[[k]][c("draws", "rejections")], fits[[1]][c("draws", "rejections")])
    expect_identical(rowSums(fits[[k]]$failures), (k > 2) * as.numeric(fits[[k]]$rejections))
  }
  expect_true(all(fits[[1]]$draws > -1.2) && all(fits[[1]]$rejections > 0))
  expect_lt(abs(mean(fits[[1]]$draws) - dnorm(1.2) / pnorm(1.2)), 0.1)
})

say <- function(f, init, ...) {
  e <- expect_fault(suppressWarnings(cl_sample(f, init, jitter = 0, chains = 1, ...)), "density",
                    argument = "log_density")
  sub("the log density is not finite at 'init': ", "", conditionMessage(e), fixed = TRUE)
}

on_host({

test_that("the error at the start names the operation, the call and the parameters", {
  y <- c(1, 2, 3.5)
  g <- c(1, 2, 3)
  # f at init is why
  because <- function(f, init, text, ...) {
    f <- cl_gradient(f)
    expect_identical(say(f, init, ...), text)
    if (!is.list(init)) return()
    e <- expect_fault(cl_optimise(f, init, ...), "density", argument = "log_density")
    expect_match(conditionMessage(e), text, fixed = TRUE)
    expect_equal(unname(e$parameters), unlist(init, use.names = FALSE))
  }
  asks <- function(bound, name) sprintf(": no %s bound given for '%s' (see 'transform')?", bound,
                                        name)
  because(function(mu, sigma) sum(dnorm(y, mu, sigma, log = TRUE)), list(mu = 0, sigma = -0.3),
          paste0("dnorm(): NaN in 'dnorm(y, mu, sigma, log = TRUE)' at sigma = -0.3",
                 asks("lower", "sigma")))
  because(function(p) sum(log(p[["b"]] - 1)), c(a = 1, b = 0.5),
          "log(): NaN in 'log(p[[\"b\"]] - 1)' at a = 1, b = 0.5")
  because(function(x) log(x[2]) - sum(x^2), c(1, -1), paste0(
    "log(): NaN in 'log(x[2])' at par[1] = 1, par[2] = -1", asks("lower", "par[2]")))
  because(function(p) dbinom(3, 5, p, log = TRUE), list(p = 1.3), paste0(
    "dbinom(): NaN in 'dbinom(3, 5, p, log = TRUE)' at p = 1.3", asks("upper", "p")))
  because(function(u) dunif(u, 0, 1, log = TRUE) - u^2, list(u = 3), paste0(
    "dunif(): -Inf in 'dunif(u, 0, 1, log = TRUE)' at u = 3", asks("upper", "u")))
  because(function(s, z) {
    K <- matrix(c(1, 2, 2, s + 0 * z), 2)
    sum(log(diag(chol(K))))
  }, list(s = 3, z = 1), "chol(): not positive definite in 'chol(K)' at s = 3, z = 1",
  transform = list(s = cl_lower(0)))
  because(function(z, s) sum(dnorm(y, z[g], s, log = TRUE)), list(z = c(0, 0), s = 1),
          "z[g]: subscript 3 of 2", transform = list(s = cl_lower(0)))
  because(function(a) sum(dnorm(c(1, NA), a, 1, log = TRUE)), list(a = 1),
          "dnorm(): missing data in 'dnorm(c(1, NA), a, 1, log = TRUE)'")
  because(function(a) sum(dpois(1:2, exp(a + c(0, -Inf)), log = TRUE)), list(a = 1),
          "'+': infinite data in 'a + c(0, -Inf)'")
  offset <- cl_stan(code = "data { vector[2] x; }\nparameters { real a; }\nmodel {
    {1, 2} ~ poisson_log(a + x);\n}")(list(x = c(0, -Inf)))
  expect_error(cl_sample(offset, refresh = 0), "line 4: infinite data$",
               class = "statcl_error_density")
  because(function(a, b) exp(a) * b^2 - exp(2 * a), list(a = 800, b = 1),
          "exp(): Inf in 'exp(a)' at a = 800")
  because(function(a) ifelse(a > 0, -a, log(a) - sqrt(5 + a)), list(a = -1), paste0(
    "log(): NaN in 'log(a)' at a = -1", asks("lower", "a")))
  # not the branch that is not taken, and a decision of this call
  live <- cl_gradient(function(a) if (a > 0) -a else log(a) - a, retrace = TRUE)
  expect_identical(say(live, list(a = -1)), "log(): NaN in 'log(a)' at a = -1")
  # helpers are followed; parts of a sum are told apart
  helper <- function(v) sqrt(v)
  total <- cl_log_posterior(cl_gradient(function(a) -a^2), cl_gradient(function(b) helper(b)))
  expect_identical(say(total, list(a = 1, b = -4)), paste0("sqrt(): NaN in 'sqrt(v)' at b = -4",
                                                          asks("lower", "b")))
  formula <- cl_log_posterior(~ dgamma(s, 2, rate, log = TRUE), ~ dnorm(rate, 0, 1, log = TRUE))
  expect_match(say(formula, list(s = 1, rate = -2)), "^dgamma\\(\\): NaN in 'dgamma.* rate = -2")
  likelihood <- cl_likelihood("normal_id", y, matrix(g))
  expect_identical(say(likelihood, list(alpha = 0, beta = 1, sigma = -1)), paste0(
    "the likelihood has no value at sigma = -1", asks("lower", "sigma")))
  expect_match(say(cl_log_posterior(likelihood, ~ -sigma), list(alpha = 0, beta = 1, sigma = -1)),
               "^the likelihood has no value at sigma = -1")
  # functions of R
  warned <- function(x) with_slope(dnorm(1, x[[1]], x[[2]], log = TRUE), c(1, 1))
  expect_identical(say(warned, c(m = 0, s = -1)), paste(
    "the value NaN, with the warning \"NaNs produced\" of 'dnorm(1, x[[1]], x[[2]], log = TRUE)'",
    "at m = 0, s = -1"))
  expect_identical(say(function(x) with_slope(-Inf, 0), c(a = 2)), "the value -Inf at a = 2")
  expect_match(say(function(x) with_slope(log(det(chol(x * diag(2)))), 0), c(a = -2)),
               "^the error \".*minor.*\" at a = -2")
  expect_match(say(function(x) with_slope(0, NaN * x), 1:9 / 9),
               "a gradient that is not finite at .*par\\[5\\] = 0.556, ...$")
})

test_that("if most iterations end at such points, that is an error with the draws so far", {
  half <- cl_gradient(function(s) -s^2 / 2 + 0 * sqrt(s))
  file <- tempfile()
  on.exit(unlink(file))
  run <- function() {
    expect_fault(quiet_sample(half, list(s = 1), chains = 1, seed = 1, checkpoint = file),
                 "density", argument = "log_density")
  }
  e <- run()
  expect_identical(conditionMessage(run()), conditionMessage(e)) # from the file
  expect_match(conditionMessage(e), paste("\\d+ of 1000 iterations of the warm-up ended at points",
    "that cannot be evaluated, the last one: sqrt\\(\\): NaN in 'sqrt\\(s\\)' at s = -.*no lower"))
  expect_true(e$parameters[["s"]] < 0)
  # after the warm-up the count begins anew
  calls <- 0
  late <- function(x) {
    calls <<- calls + 1
    if (calls > 400) with_slope(NaN, x) else with_slope(-sum(x^2) / 2, -x)
  }
  e <- expect_fault(cl_sample(late, c(a = 1, b = 2), chains = 1, warmup = 30, iter = 300, seed = 1),
                    "density")
  expect_match(conditionMessage(e), "[5-9]\\d of 100 iterations after|1\\d\\d of 200 iterations a")
  expect_identical(dim(e$draws$draws)[1], e$iteration - 30L)
  # steps that all fail
  calls <- 0
  once <- function(x) {
    calls <<- calls + 1
    if (calls > 1) with_slope(NaN, x) else with_slope(0, 1)
  }
  expect_fault(cl_sample(once, 0.5, chains = 1, seed = 1, check_gradient = FALSE), "density",
               says = "no step size avoids points that cannot be evaluated")
  # half of the space has density zero: nothing failed
  zero <- cl_gradient(function(x) ifelse(x > 0, -x^2 / 2, -Inf))
  fit <- quiet_sample(zero, list(x = 1), chains = 2, warmup = 300, iter = 1000, seed = 1)
  expect_identical(sum(fit$failures), 0L)
  expect_gt(sum(fit$rejections), 500)
  expect_lt(abs(mean(fit$draws) - sqrt(2 / pi)), 0.1)
})

test_that("searches pass points that cannot be evaluated, and count them", {
  f <- cl_gradient(gp_model)
  fit <- cl_optimise(f, list(rho = 0.3, alpha = 1, sigma = 0.1))
  expect_true(fit$converged)
  jump <- cl_gradient(function(s) 50 * log(s) - 1e4 * s)
  fit <- cl_optimise(jump, list(s = 1))
  expect_equal(fit$par$s, 0.005, tolerance = 1e-6)
  expect_gt(fit$failures, 0)
  expect_output(print(fit), "evaluations, \\d+ of which failed")
  own <- function(s) if (s < 0) stop("mine") else with_slope(50 * log(s) - 1e4 * s,
                                                             list(s = 50 / s - 1e4))
  expect_error(cl_optimise(own, list(s = 1)), "mine", class = "statcl_error_density")
  path <- suppressWarnings(cl_pathfinder(jump, list(s = 0.1), draws = 50, jitter = 0.05, seed = 1))
  expect_gt(path$failures, 0)
  expect_output(print(path), "which failed")
})

})

test_that("failures are counted, shown, and the same wherever chains run", {
  f <- cl_gradient(function(x) {
    R <- chol(matrix(c(1, x[1], x[1], 1.5), 2))
    sum(dnorm(x, log = TRUE)) + 0 * R[4]
  })
  run <- function(...) quiet_sample(f, list(x = c(0, 0)), chains = 2, warmup = 30, iter = 20,
                                    seed = 4, ...)
  fit <- on_host(run())
  expect_true(all(colSums(fit$failures) > 0))
  expect_identical(as.integer(rowSums(fit$failures)), as.integer(fit$rejections))
  expect_match(fit$failure, "^chol\\(\\): not positive definite in 'chol\\(matrix.* at x\\[1\\] = ")
  text <- gsub(" +", " ", paste(capture.output(print(fit)), collapse = " "))
  expect_match(text, "points of the warm-up could not be evaluated and were rejected: chol")
  expect_match(text, "! \\d+ points after the warm-up could not be evaluated")
  w <- tryCatch(on_host(cl_sample(f, list(x = c(0, 0)), warmup = 30, iter = 20, seed = 4)),
                statcl_warning_sampling = identity)
  expect_match(conditionMessage(w), "after the warm-up could not be evaluated")
  expect_error(on_host(run(nan = "stop")), "is NaN", class = "statcl_error_density")
  file <- tempfile()
  on.exit(unlink(file))
  same <- c("draws", "failures", "failure", "rejections")
  for (again in 1:2) expect_identical(on_host(run(checkpoint = file))[same], fit[same])
  each_engine(for (batch in c(FALSE, TRUE)) {
    other <- run(batch = batch)
    expect_equal(other$draws, fit$draws, tolerance = 1e-6)
    expect_identical(other[same[-1]], fit[same[-1]])
  })
})
