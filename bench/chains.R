# Many chains of compiled functions on the host: processor time of 4 and of 64 chains, each by
# itself and in lockstep, whose evaluations are one run of the program for several points.
#   Rscript bench/chains.R
library(statcl)
cl_use(engine = "host")
set.seed(1)

y <- c(28, 8, -3, 7, -1, 1, 18, 12)
error <- c(15, 10, 16, 11, 9, 11, 10, 18)
x <- matrix(rnorm(1500), 300)
z <- rbinom(300, 1, plogis(x %*% c(1, -1, 0.5, 0, 0)))
group <- rep(1:30, each = 10)
w <- rnorm(300, rnorm(30)[group])
normal <- function(x, m = 0, s = 1) sum(dnorm(x, m, s, log = TRUE))

models <- list(
  "eight schools" = list(f = function(mu, tau, t) {
    normal(y, mu + exp(tau) * t, error) + normal(t) + normal(mu, 0, 5) + normal(tau)
  }, init = list(mu = 0, tau = 0, t = numeric(8))),
  "logistic, 300 x 5" = list(f = function(a, b) {
    eta <- a + drop(x %*% b)
    sum(z * eta - cl_log1p_exp(eta)) + normal(b, 0, 2) + normal(a, 0, 2)
  }, init = list(a = 0, b = numeric(5))),
  "30 groups of 10" = list(f = function(mu, t, s, b) {
    normal(w, mu + exp(t) * b[group], exp(s)) + normal(b) + normal(mu) + normal(t) + normal(s)
  }, init = list(mu = 0, t = 0, s = 0, b = numeric(30))))

cat("| model | 4 chains, s | us a point | 64 chains, s | us a point |",
    " in lockstep, s | us a point |\n|---|---:|---:|---:|---:|---:|---:|\n", sep = "")
for (name in names(models)) {
  m <- models[[name]]
  f <- cl_gradient(m$f)
  do.call(f, m$init)
  once <- function(chains, batch) {
    seconds <- sum(system.time(fit <- suppressWarnings(cl_sample(
      f, m$init, chains = chains, warmup = 200, iter = 200, metric = "diag", seed = 1, refresh = 0,
      batch = batch, check_gradient = FALSE)))[1:2])
    c(seconds, 1e6 * seconds / sum(fit$evaluations))
  }
  run <- function(...) { # threads that wait for a processor count as busy
    runs <- vapply(1:5, function(i) once(...), numeric(2))
    runs[, which.min(runs[1L, ])]
  }
  times <- c(run(4, FALSE), run(64, FALSE), run(64, TRUE))
  cat(sprintf("| %s |", name), sprintf(" %.2f | %.2f |", times[c(1, 3, 5)], times[c(2, 4, 6)]),
      "\n", sep = "")
}
