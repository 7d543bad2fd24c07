# A dense metric, and one from the draws of all chains. test-sample-reference.R: draw for draw.

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

test_that("50 correlated parameters, condition 1e6: right, with few gradients", {
  normal <- ill_conditioned(50)
  precision <- normal$precision
  sd <- sqrt(diag(normal$covariance))
  on_host({
    f <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
    run <- function(...) quiet_sample(f, numeric(50), seed = 1, ...)
    dense <- run(metric = "dense", chains = 2, warmup = 700, iter = 700)
    expect_moments(dense, numeric(50), sd, width = 5)
    pooled <- run(metric = "dense", pooled = TRUE, chains = 4, warmup = 400, iter = 1000)
    expect_moments(pooled, numeric(50), sd, width = 5) # of 50 variances, by some 1,000 draws each
    expect_lt(mean(pooled$diagnostics$leapfrogs), 16)
    diagonal <- run(chains = 1, warmup = 200, iter = 50)
    expect_gt(mean(diagonal$diagnostics$leapfrogs), 20 * mean(dense$diagnostics$leapfrogs))
    relative <- dense$inverse_metric[, , 1] %*% precision # near the identity
    expect_lt(max(abs(log(Re(eigen(relative)$values)))), log(4))
    expect_output(print(pooled), "(NUTS, dense metric, pooled)", fixed = TRUE)
  })
})

test_that("compiled chains with these metrics go on from a checkpoint with the same draws", {
  on_host({
    f <- cl_gradient(function(x) -0.5 * sum(x^2) - 2 * (x[1] - x[2])^2)
    for (batch in c(FALSE, TRUE)) {
      again <- function(...) {
        utils::capture.output(type = "message", fit <- quiet_sample(
          f, c(0, 0), chains = 3, warmup = 160, iter = 20, seed = 2, metric = "dense",
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
    error <- tryCatch(cl_sample(f, c(0, 0), chains = 3, warmup = 160, iter = 20, seed = 2,
                                batch = TRUE, checkpoint = copy), error = identity)
    expect_s3_class(error, "statcl_error_checkpoint")
  })
})

test_that("chains of functions of R and compiled ones are the same", {
  on_host({
    f <- cl_gradient(function(x) -0.5 * sum(x^2) - 2 * (x[1] - x[2])^2)
    plain <- function(x) f(x)
    for (pooled in c(FALSE, TRUE)) {
      fits <- lapply(list(f, plain), function(f) {
        quiet_sample(f, list(x = c(0, 0)), chains = 2, warmup = 200, iter = 20, seed = 2,
                     metric = "dense", pooled = pooled)
      })
      expect_equal(fits[[1]]$draws, fits[[2]]$draws, tolerance = 1e-6)
    }
  })
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
})
