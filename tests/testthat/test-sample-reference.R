# Chains of functions of R against the reference in R (helper-sample-chain.R), draw for draw.

skip_on_cran() # long; run by ./dev check

expect_reference <- function(..., metric = "diag") {
  fit <- quiet_sample(..., metric = metric, seed = 5, refresh = 0)
  reference <- suppressWarnings(sample_in_r(..., metric = metric, seed = 5),
                                classes = "statcl_warning")
  same <- c("draws", "diagnostics", "step_size", "inverse_metric", "evaluations", "rejections",
            "failures", "complete")
  expect_identical(fit[same], reference[same])
  invisible(fit)
}

test_that("a gradient by hand: one after another, in lockstep, with every option", {
  for (batch in c(FALSE, TRUE)) {
    density <- normal_density(c(1, 2, 3), diag(c(1, 4, 9)) + 0.5)
    expect_reference(density, numeric(3), warmup = 150, iter = 50, batch = batch)
    expect_reference(density, numeric(3), warmup = 30, iter = 30, batch = batch, method = "hmc",
                     leapfrogs = 5, adapt_delta = 0.6)
    expect_reference(density, numeric(3), chains = 2, warmup = 0, iter = 30, batch = batch,
                     step_size = 0.3, inverse_metric = 1:3, max_depth = 2)
  }
  expect_reference(funnel, numeric(4), chains = 2, warmup = 100, iter = 100, metric = "unit")
})

test_that("a dense metric, and one from the draws of all chains", {
  correlated <- matrix(0.9, 3, 3) + diag(c(0.1, 3, 8))
  density <- normal_density(c(1, 2, 3), correlated)
  for (batch in c(FALSE, TRUE)) {
    run <- function(...) expect_reference(density, numeric(3), batch = batch, ...)
    fit <- run(chains = 2, warmup = 150, iter = 50, metric = "dense")
    expect_identical(dim(fit$inverse_metric), c(3L, 3L, 2L))
    run(chains = 1, warmup = 0, iter = 30, metric = "dense", inverse_metric = correlated,
        method = "hmc")
    fit <- run(chains = 3, warmup = 200, iter = 20, metric = "dense", pooled = TRUE)
    expect_identical(fit$inverse_metric[, , 1], fit$inverse_metric[, , 3])
    fit <- run(chains = 3, warmup = 200, iter = 20, pooled = TRUE)
    expect_identical(fit$inverse_metric[, 1], fit$inverse_metric[, 3])
    expect_false(fit$step_size[1] == fit$step_size[3])
  }
})

test_that("a metric of low rank", {
  set.seed(3)
  v <- matrix(rnorm(12), 6)
  density <- normal_density(1:6, diag(1:6) / 10 + v %*% (c(20, 5) * t(v)))
  for (batch in c(FALSE, TRUE)) {
    run <- function(...) {
      expect_reference(density, numeric(6), batch = batch, metric = "low-rank", ...)
    }
    fit <- run(chains = 2, warmup = 150, iter = 50)
    found <- fit$inverse_metric[[2]]
    expect_gte(length(found$values), 2)
    run(chains = 2, warmup = 30, iter = 30, rank = 1)
    run(chains = 1, warmup = 0, iter = 30, inverse_metric = found, method = "hmc")
    run(chains = 1, warmup = 0, iter = 30, inverse_metric = 1:6)
    fit <- run(chains = 3, warmup = 200, iter = 20, pooled = TRUE)
    expect_identical(fit$inverse_metric[[1]], fit$inverse_metric[[3]])
  }
  many <- normal_density(1:30, diag(1:30) / 10 + 20) # more than eigenvectors
  expect_reference(many, numeric(30), chains = 1, warmup = 150, iter = 10, metric = "low-rank")
  # a window of more than 256 iterations, and one of a density that is not normal
  expect_reference(funnel, numeric(4), chains = 1, warmup = 600, iter = 20, metric = "low-rank")
})

test_that("likelihoods, sums with functions, and points without a density", {
  x <- cbind(sin(1:50), cos(1:50))
  likelihood <- on_host(cl_likelihood("normal_id", 1:50 / 10, x))
  own <- function(beta) with_slope(-sum(beta^2) / 8, -beta / 4)
  total <- cl_log_posterior(likelihood, own, ~ dnorm(alpha, 0, 5, log = TRUE))
  init <- list(alpha = 0, beta = c(0, 0), sigma = 1)
  positive <- list(sigma = cl_lower(0))
  expect_reference(total, init, transform = positive, warmup = 60, iter = 30)
  half <- function(x) {
    if (x < 0) statcl_abort("not_pd", "no factor")
    with_slope(log(x) - x, 1 / x - 1)
  }
  fit <- expect_reference(half, 1, chains = 2, warmup = 100, iter = 100, jitter = 0.5)
  expect_gt(sum(fit$rejections), 0)
})

test_that("whatever leaves the density, nothing is lost and the next run is right", {
  density_left_by <- function(leave) {
    calls <- 0
    function(x) {
      calls <<- calls + 1
      if (calls == 300) leave()
      standard_normal(x)
    }
  }
  run <- function(leave, ...) {
    cl_sample(density_left_by(leave), c(0, 0), chains = 2, warmup = 20, iter = 200, seed = 1, ...)
  }
  whole <- run(function() NULL)
  failing <- function() stop("by itself")
  jumping <- function() invokeRestart("away", "jumped") # past all handlers
  stopped <- function() {
    stop(structure(list(message = "", call = NULL), class = c("interrupt", "condition")))
  }
  expect_no_leak({
    error <- tryCatch(run(failing), statcl_error_density = identity)
    expect_match(conditionMessage(error), "by itself \\(chain 1, iteration \\d+\\)")
    expect_identical(dim(error$draws$draws)[2:3], c(1L, 2L))
    expect_identical(withRestarts(run(jumping), away = identity), "jumped")
    expect_warning(part <- run(stopped), "interrupted", class = "statcl_warning_interrupted")
    made <- nrow(part$draws)
    expect_identical(part$draws[, 1, ], whole$draws[seq_len(made), 1, ])
    rm(error, part)
  })
  expect_identical(run(function() NULL)$draws, whole$draws)
})
