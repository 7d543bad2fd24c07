# Densities with gradients for the tests of the sampler.

# A value with its gradient; structure() is slow.
with_slope <- function(value, slope) {
  attr(value, "gradient") <- slope
  value
}

standard_normal <- function(x) with_slope(-sum(x * x) / 2, -x)

# For one vector, or for the columns of a matrix.
normal_density <- function(mean, covariance) {
  precision <- solve(covariance)
  function(x) {
    off <- x - mean
    # Not by BLAS, which may round a column of a matrix otherwise than a vector.
    slope <- 0
    for (k in seq_along(mean)) slope <- slope - outer(precision[, k], as.matrix(off)[k, ])
    if (!is.matrix(x)) return(with_slope(sum(off * slope) / 2, as.vector(slope)))
    with_slope(colSums(off * slope) / 2, slope)
  }
}

# Not quadratic, so that the leapfrog has an error of every order.
quartic <- function(x) {
  with_slope(-sum(x^4) / 4 - sum(x)^2 / 2, -x^3 - sum(x))
}

funnel <- function(x) {
  v <- x[1L]
  rest <- x[-1L]
  with_slope(-v^2 / 18 - length(rest) * v / 2 - sum(rest^2) * exp(-v) / 2,
             c(-v / 9 - length(rest) / 2 + sum(rest^2) * exp(-v) / 2, -rest * exp(-v)))
}

quiet_sample <- function(...) suppressWarnings(cl_sample(...), classes = "statcl_warning")

# Whether means and standard deviations of the draws are within `width` standard errors.
expect_moments <- function(fit, mean, sd, width = 4, rhat = 1.03) {
  table <- summary(fit)
  off <- abs(table$mean - mean) / table$mcse
  testthat::expect(all(off < width), sprintf("a mean is off by %.1f standard errors", max(off)))
  # the standard error of a variance, from the effective size of squared deviations
  draws <- as.array(fit)
  for (k in seq_along(mean)) {
    squares <- (matrix(draws[, , k], nrow(draws)) - mean[k])^2
    error <- stats::sd(squares) / sqrt(effective_size(halves(squares)))
    off <- abs(mean(squares) - sd[k]^2) / error
    testthat::expect(off < width, sprintf("the variance of %s is off by %.1f standard errors",
                                          table$parameter[k], off))
  }
  testthat::expect_lt(max(table$rhat), rhat)
}

# Runs the code with entries of the session set.
with_session <- function(entries, code) {
  old <- mget(names(entries), envir = session)
  on.exit(list2env(old, envir = session))
  list2env(entries, envir = session)
  force(code)
}

# Copies the checkpoint file when it has been written `at` times: what a kill at that moment leaves.
with_checkpoint_copy <- function(copy, at, code) {
  original <- keep_checkpoint
  count <- 0
  with_functions(list(keep_checkpoint = function(kept, now = FALSE) {
    original(kept, now)
    count <<- count + 1
    if (count == at) file.copy(kept$file, copy)
  }), code)
}
