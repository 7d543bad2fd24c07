# Gaussian processes with observations that are not normal, by Laplace's approximation: the time of
# a value with its gradient (mode, factor, inverse), and of the mode alone next to kernlab's
# gausspr(), which computes nothing else. Bernoulli, three inputs, lengthscale and sd held.
# STATCL_BENCH_SIZES="500,2000" are the sizes; the engine is that of the session.

library(statcl)
sizes <- as.numeric(strsplit(Sys.getenv("STATCL_BENCH_SIZES", "500,2000"), ",")[[1L]])
least <- function(code, times) {
  min(vapply(seq_len(times), function(i) system.time(code(i))[["elapsed"]], 0))
}
for (n in sizes) {
  set.seed(1)
  x <- matrix(runif(3 * n), n)
  y <- factor(rbinom(n, 1, plogis(4 * sin(5 * x[, 1L]) + x[, 2L])))
  held <- c(sd = 1, lengthscale = 0.5)
  fit <- cl_gp(x, y, k_exp_quad(), family = "bernoulli_logit", mean = 0, ard = FALSE, fixed = held)
  f <- statcl:::gp_function(statcl:::gp_problem(fit))
  times <- if (n > 4000) 1L else 3L
  f(held)
  # other parameters each time, and a new function for the mode, so that no search starts at its end
  gradient <- least(function(i) f(held * (1 + 0.1 * i)), times)
  mode <- least(function(i) statcl:::gp_function(statcl:::gp_problem(fit))(held, FALSE), times)
  peer <- NA
  if (n <= 4000 && requireNamespace("kernlab", quietly = TRUE)) {
    peer <- least(function(i) {
      kernlab::gausspr(x, y, kernel = "rbfdot", kpar = list(sigma = 2), scaled = FALSE, tol = 1e-6)
    }, 1L)
  }
  cat(sprintf("n = %5d: value with gradient %.3f s, value %.3f s, kernlab's mode %.3f s\n", n,
              gradient, mode, peer))
}
