# Mass matrices for 200 parameters of which few combinations are correlated: gradients, and the
# smallest bulk effective size of all parameters.
#
#   Rscript bench/metric.R
library(statcl)
cl_use(engine = "host")
set.seed(1)
d <- 200
scale <- 10^runif(d, -2, 2)
correlation <- diag(d)
for (k in c(1, 3, 5)) correlation[k, k + 1] <- correlation[k + 1, k] <- 0.995
correlation <- correlation + 400 * tcrossprod(rnorm(d) / sqrt(d))
precision <- solve(scale * correlation * rep(scale, each = d))
density <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
cat("| metric | gradients | steps an iteration | ess | ess of 1,000 gradients | seconds |\n",
    "|---|---|---|---|---|---|\n", sep = "")
for (metric in c("diag", "dense", "low-rank")) {
  seconds <- system.time(fit <- suppressWarnings(cl_sample(
    density, numeric(d), chains = 2, metric = metric, seed = 1, refresh = 0)))[[3L]]
  ess <- min(summary(fit)$ess_bulk)
  gradients <- sum(fit$evaluations)
  cat(sprintf("| %s | %.0f | %.1f | %.0f | %.2f | %.1f |\n", metric, gradients,
              mean(fit$diagnostics$leapfrogs), ess, 1000 * ess / gradients, seconds))
}
