# Gaussian processes fitted to 30 observations of 5 inputs: coverage of 95% prediction intervals,
# share of fits whose noise collapsed (below 2% of the standard deviation of y; the truth is 10% to
# 45%), prediction error relative to the process without its noise, by method.
# Rscript bench/gp-small.R [replicates] [methods ...]

library(statcl)
cl_use(engine = "host")

given <- commandArgs(TRUE)
replicates <- if (length(given) > 0L) as.integer(given[1L]) else 60L
methods <- if (length(given) > 1L) given[-1L] else c("ml", "reml", "map", "loo")

friedman <- function(x) {
  10 * sin(pi * x[, 1] * x[, 2]) + 20 * (x[, 3] - 0.5)^2 + 10 * x[, 4] + 5 * x[, 5]
}

# Half from Friedman's function, half drawn from processes with three of five inputs active.
draw <- function(i) {
  set.seed(i)
  x <- matrix(runif(530 * 5), ncol = 5)
  f <- if (i %% 2 == 0) friedman(x) else {
    kernel <- k_matern52(lengthscale = c(exp(runif(3, log(0.4), log(2))), 20, 20))
    as.vector(crossprod(chol(cl_cov(x, kernel = kernel) + diag(1e-8, 530)), rnorm(530)))
  }
  noise <- sd(f) * exp(runif(1, log(0.1), log(0.5)))
  list(x = x[1:30, ], y = (f + rnorm(530, sd = noise))[1:30], at = x[-(1:30), ], f = f[-(1:30)],
       new = f[-(1:30)] + rnorm(500, sd = noise), noise = noise)
}

one <- function(i, method) {
  d <- draw(i)
  fit <- suppressWarnings(if (method == "reml") cl_gp(d$x, d$y, beta = "integrate") else
    cl_gp(d$x, d$y, method = method))
  p <- predict(fit, d$at, interval = "prediction")
  c(coverage = mean(d$new > p[, "lwr"] & d$new < p[, "upr"]),
    collapsed = fit$noise < 0.02 * sd(d$y), error = sqrt(mean((p[, "fit"] - d$f)^2)) / sd(d$f),
    noise = log(fit$noise / d$noise), cv = sqrt(mean(residuals(fit, "loo")^2)) / sd(d$y))
}

for (method in methods) {
  used <- system.time(rows <- t(vapply(seq_len(replicates), one, numeric(5), method)))
  cat(sprintf("%-5s coverage %.3f  collapsed %2.0f%%  error %.3f  leave-one-out %.3f  ", method,
              mean(rows[, 1]), 100 * mean(rows[, 2]), mean(rows[, 3]), mean(rows[, 5])))
  cat(sprintf("log(noise / truth) %.2f  %.1f s\n", mean(rows[, 4]), sum(used[1:2])))
}
