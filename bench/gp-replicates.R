# Fits of cl_gp() to inputs that repeat, of which the likelihood is computed from means, and to the
# same inputs moved by 1e-9, which is computed from all observations. Seconds and log likelihoods.
# Run by itself: Rscript bench/gp-replicates.R

library(statcl)
set.seed(3)
at <- seq(0, 1, length.out = 200)^1.1
for (times in c(5, 20)) {
  d <- data.frame(x = rep(at, times))
  d$y <- sin(9 * d$x) + rnorm(nrow(d), sd = 0.4)
  moved <- transform(d, x = x + 1e-9 * seq_along(x))
  by_means <- system.time(one <- cl_gp(y ~ x, d))[["elapsed"]]
  all <- system.time(each <- cl_gp(y ~ x, moved))[["elapsed"]]
  print(data.frame(observations = nrow(d), inputs = length(at), seconds_means = by_means,
                   seconds_all = all, log_likelihood_means = as.numeric(logLik(one)),
                   log_likelihood_all = as.numeric(logLik(each))), row.names = FALSE)
}
