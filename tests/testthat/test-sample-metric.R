# Metrics that are dense or of low rank, and from the draws of all chains. Draw for draw:
# test-sample-reference.R.

skip_on_cran() # long; run by ./dev check

# Eigenvalues from 1e-3 to 1e3, in random directions.
ill_conditioned <- function(d) {
  set.seed(1)
  q <- qr.Q(qr(matrix(rnorm(d * d), d)))
  of <- function(values) {
    m <- q %*% (values * t(q))
    (m + t(m)) / 2
  }
  values <- 10^seq(-3, 3, length.out = d)
  list(covariance = of(values), precision = of(1 / values))
}

test_on_host("50 correlated parameters, condition 1e6: right, with few gradients", {
  normal <- ill_conditioned(50)
  precision <- normal$precision
  sd <- sqrt(diag(normal$covariance))
  f <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
  run <- function(...) quiet_sample(f, numeric(50), seed = 1, ...)
  dense <- run(metric = "dense", chains = 2, warmup = 700, iter = 700)
  expect_moments(dense, numeric(50), sd, width = 5)
  pooled <- run(metric = "dense", pooled = TRUE, chains = 4, warmup = 400, iter = 1000)
  expect_moments(pooled, numeric(50), sd, width = 5) # of 50 variances, by some 1,000 draws each
  expect_lt(mean(pooled$diagnostics$leapfrogs), 16)
  diagonal <- run(metric = "diag", chains = 1, warmup = 200, iter = 50)
  expect_gt(mean(diagonal$diagnostics$leapfrogs), 20 * mean(dense$diagnostics$leapfrogs))
  relative <- dense$inverse_metric[, , 1] %*% precision # near the identity
  expect_lt(max(abs(log(Re(eigen(relative)$values)))), log(4))
  expect_output(print(pooled), "(NUTS, dense metric, pooled)", fixed = TRUE)
})

test_on_host("200 parameters with few strong correlations: low rank is right, with few gradients", {
  set.seed(1)
  d <- 200
  v <- rnorm(d) / sqrt(d)
  correlation <- diag(d) + 100 * tcrossprod(v)
  for (k in 1:2) {
    pair <- 2 * k - 0:1
    correlation[pair, pair] <- correlation[pair, pair] + matrix(c(0, 0.998, 0.998, 0), 2)
  }
  scale <- 10^runif(d, -1, 1)
  covariance <- scale * correlation * rep(scale, each = d)
  precision <- solve(covariance)
  f <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
  run <- function(...) quiet_sample(f, numeric(d), seed = 1, refresh = 0, max_depth = 7, ...)
  fit <- run(metric = "low-rank", chains = 2, warmup = 500, iter = 400)
  # of 400 numbers, and the largest R-hat of 200; BLAS rounds with its number of threads
  expect_moments(fit, numeric(d), sqrt(diag(covariance)), width = 5, rhat = 1.06)
  diagonal <- run(metric = "diag", chains = 1, warmup = 200, iter = 50)
  expect_gt(mean(diagonal$diagnostics$leapfrogs), 4 * mean(fit$diagnostics$leapfrogs))
  expect_output(print(fit), "\\(NUTS, low-rank metric of rank [0-9]+( to [0-9]+)?\\)")
  # what is left of the correlations: eigenvalues near 1
  m <- fit$inverse_metric[[1]]
  expect_lte(length(m$values), 32)
  expect_equal(crossprod(m$vectors), diag(length(m$values)), tolerance = 1e-10)
  inverse <- m$vectors %*% ((1 / m$values - 1) * t(m$vectors)) + diag(d)
  root <- sqrt(m$diagonal)
  whole <- covariance / root / rep(root, each = d)
  expect_lt(max(abs(log(Re(eigen(inverse %*% whole)$values)))), log(4))
  expect_gt(max(abs(log(eigen(whole)$values))), log(10))
  expect_length(run(metric = "low-rank", rank = 2, chains = 1, warmup = 200,
                    iter = 5)$inverse_metric[[1]]$values, 2)
})

test_on_host("a metric of low rank that cannot be estimated is diagonal", {
  line <- function(x) with_slope(if (x > 0 && x < 1) 0 else -Inf, 0) # no gradient
  fit <- quiet_sample(line, 0.5, chains = 1, warmup = 100, iter = 50, metric = "low-rank",
                      seed = 1, jitter = 0, check_gradient = FALSE)
  expect_true(all(fit$draws > 0 & fit$draws < 1))
  expect_length(fit$inverse_metric[[1]]$values, 0)
  expect_gt(fit$inverse_metric[[1]]$diagonal, 0)
  independent <- quiet_sample(standard_normal, numeric(5), chains = 2, warmup = 200, iter = 200,
                              metric = "low-rank", seed = 1)
  expect_equal(lapply(independent$inverse_metric, `[[`, "diagonal"), rep(list(rep(1, 5)), 2),
               tolerance = 1e-10) # exact for a normal distribution
  expect_output(print(independent), "(NUTS, low-rank metric of rank 0)", fixed = TRUE)
})

test_on_host("auto has directions where they save steps, else the diagonal metric", {
  set.seed(1)
  d <- 60
  covariance <- diag(d) + 100 * tcrossprod(rnorm(d) / sqrt(d))
  precision <- solve(covariance)
  run <- function(f, d, ...) quiet_sample(f, numeric(d), chains = 2, seed = 1, ...)
  f <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
  fit <- run(f, d, warmup = 400, iter = 1000) # the default
  expect_moments(fit, numeric(d), sqrt(diag(covariance)), width = 5)
  ranks <- vapply(fit$inverse_metric, function(m) length(m$values), 0L)
  expect_true(all(ranks >= 1L))
  diagonal <- run(f, d, warmup = 400, iter = 50, metric = "diag")
  expect_gt(mean(diagonal$diagnostics$leapfrogs), 1.5 * mean(fit$diagnostics$leapfrogs))
  expect_output(print(fit), "(NUTS, low-rank metric of rank", fixed = TRUE)
  again <- run(f, d, warmup = 0, iter = 20, metric = "auto", inverse_metric =
                 fit$inverse_metric[[1]], step_size = 0.3)
  expect_equal(again$inverse_metric[[1]], fit$inverse_metric[[1]], tolerance = 1e-12)
  # gradients of heavy tails vary less than those of a normal distribution
  heavy <- cl_gradient(function(x) -2 * sum(log1p(x^2 / (1:6)^2)))
  fit <- run(heavy, 6, warmup = 400, iter = 20, metric = "auto")
  expect_identical(lengths(lapply(fit$inverse_metric, `[[`, "values")), c(0L, 0L))
  expect_output(print(fit), "(NUTS)", fixed = TRUE)
  diagonal <- run(heavy, 6, warmup = 400, iter = 20, metric = "diag")
  expect_identical(fit$draws, diagonal$draws) # in each window
  many <- cl_gradient(function(x) -0.5 * sum(x^2))
  expect_true(is.matrix(run(many, 5001, warmup = 20, iter = 1)$inverse_metric))
})

test_each_engine("likelihoods have a metric of low rank, and go on with that of a result", {
  x <- cbind(sin(1:80), sin(1:80) + 0.02 * cos(1:80 * 5))
  likelihood <- cl_likelihood("bernoulli_logit", rep(c(0, 1, 1, 0), 20), x)
  target <- cl_log_posterior(likelihood, ~ sum(dnorm(beta, 0, 5, log = TRUE)))
  run <- function(...) {
    quiet_sample(target, list(alpha = 0, beta = c(0, 0)), chains = 2, iter = 150, seed = 1,
                 metric = "low-rank", ...)
  }
  fit <- run(warmup = 300)
  found <- fit$inverse_metric[[2]]
  expect_gte(length(found$values), 1)
  again <- run(warmup = 0, inverse_metric = found, step_size = 0.5)
  expect_equal(again$inverse_metric[[1]], found, tolerance = 1e-12)
  expect_lt(mean(again$diagnostics$leapfrogs), 12)
})

test_on_host("compiled chains with these metrics go on from a checkpoint with the same draws", {
  f <- cl_gradient(function(x) -0.5 * sum(x^2) - 2 * (x[1] - x[2])^2)
  for (metric in c("dense", "low-rank", "auto")) for (batch in c(FALSE, TRUE)) {
    again <- function(...) {
      utils::capture.output(type = "message", fit <- quiet_sample(
        f, c(0, 0), chains = 3, warmup = 160, iter = 20, seed = 2, metric = metric,
        pooled = TRUE, batch = batch, refresh = 5, ...))
      fit[c("draws", "diagnostics", "inverse_metric", "step_size", "evaluations")]
    }
    expected <- again()
    for (at in c(4, 20)) {
      file <- tempfile(fileext = ".rds")
      copy <- tempfile(fileext = ".rds")
      with_checkpoint_copy(copy, at, again(checkpoint = file, checkpoint_seconds = 0))
      expect_true(file.exists(copy))
      expect_identical(again(checkpoint = copy), expected)
    }
  }
  for (other in list(list(metric = "diag"), list(metric = "low-rank", pooled = TRUE),
                     list(metric = "auto", pooled = TRUE, rank = 1))) {
    arguments <- c(list(f, c(0, 0), chains = 3, warmup = 160, iter = 20, seed = 2, batch = TRUE,
                        checkpoint = copy), other)
    error <- tryCatch(do.call(cl_sample, arguments), error = identity)
    expect_s3_class(error, "statcl_error_checkpoint")
  }
})

test_on_host("chains of functions of R and compiled ones are the same", {
  f <- cl_gradient(function(x) -0.5 * sum(x^2) - 2 * (x[1] - x[2])^2)
  plain <- function(x) f(x)
  for (pooled in c(FALSE, TRUE)) for (metric in c("dense", "low-rank", "auto")) {
    fits <- lapply(list(f, plain), function(f) {
      quiet_sample(f, list(x = c(0, 0)), chains = 2, warmup = 200, iter = 20, seed = 2,
                   metric = metric, pooled = pooled)
    })
    expect_equal(fits[[1]]$draws, fits[[2]]$draws, tolerance = 1e-6)
  }
})

test_that("arguments that do not fit are refused", {
  refused <- function(argument, ...) {
    expect_fault(cl_sample(standard_normal, c(0, 0), ...), "argument", argument = argument)
  }
  refused("pooled", pooled = NA)
  refused("pooled", pooled = TRUE, workers = 2)
  refused("inverse_metric", inverse_metric = diag(2))
  for (wrong in list(matrix(1, 2, 2), diag(3), matrix(1:4, 2), diag(c(1, NA)))) {
    refused("inverse_metric", metric = "dense", inverse_metric = wrong)
  }
  refused("rank", metric = "diag", rank = 3)
  refused("rank", metric = "low-rank", rank = 0)
  refused("inverse_metric", metric = "low-rank", inverse_metric = diag(2))
  right <- list(diagonal = c(1, 2), values = 3, vectors = matrix(c(0.6, 0.8)))
  for (part in list(list(diagonal = c(1, -2)), list(values = 0), list(values = c(3, 3)),
                    list(vectors = matrix(c(1, 1))), list(vectors = c(0.6, 0.8)))) {
    refused("inverse_metric", metric = "low-rank", inverse_metric = utils::modifyList(right, part))
  }
  refused("inverse_metric", metric = "low-rank", inverse_metric = right[-1])
  refused("inverse_metric", metric = "low-rank", rank = 1, inverse_metric = list(
    diagonal = c(1, 2), values = c(3, 4), vectors = diag(2)))
})
