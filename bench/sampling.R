# The experiment of the paper on GPU support in Stan (Cesnovar et al., section 4.1): logistic
# regression on standard normal predictors, of which two matter, flat priors, 500 + 500 iterations,
# 1 and 4 chains. Rows `nuts` are that experiment: "wall ms" is the time for one gradient of one
# chain, everything included; rows `hmc` make the same number of steps on each engine, so that "R
# host ms", the host engine's time for a gradient, and PyTorch's (peers_sampling.py) can be held
# against it. Rows `run` are whole runs of cl_sample(), the second of two, next to NumPyro's second
# run of the same experiment, and rows `ess` the milliseconds of these runs for an effective draw of
# the parameter that has fewest; on a GPU, up to 1e6 numbers, also of 64 chains, which should take
# less than three times as long as 4. Lines with their gradients, and that ratio, go between. Rows
# `prior` are rows `nuts` with a normal prior of the intercept and Student's t of the others.
#
# STATCL_BENCH_SHAPES="1e6x100,1e4x10" takes other sizes, STATCL_BENCH_STEPS=200 more steps for
# the rows `hmc` (the host makes as many of them as take it a second), STATCL_BENCH_NUTS=0 leaves
# the whole runs out, STATCL_BENCH_METRIC takes another metric than cl_sample()'s default. Event
# times are off here: they cost several microseconds a gradient.

shapes <- Sys.getenv("STATCL_BENCH_SHAPES",
                     if (bench$gpu) "1e4x10,1e5x10,1e6x10,1e6x100" else "1e3x5")
shapes <- lapply(strsplit(strsplit(shapes, ",")[[1L]], "x"), as.numeric)
steps <- as.numeric(Sys.getenv("STATCL_BENCH_STEPS", "100"))
whole_runs <- Sys.getenv("STATCL_BENCH_NUTS", "1") != "0"

.Call(statcl:::r_profiling, FALSE)

# No more random numbers than needed. Repeated with a period that the number of rows does not
# divide, they make columns that differ, so that the posterior is proper.
experiment_data <- function(n, k) {
  x <- matrix(rep_len(rnorm(min(n * k, 1e7 + 19)), n * k), n, k)
  list(x = x, y = as.double(runif(n) < plogis(3 * x[, 1L] - 2 * x[, 2L] + 1)))
}

# Milliseconds for a gradient of one chain.
per_gradient <- function(fit, seconds) 1000 * seconds / sum(fit$evaluations)

timed <- function(code) {
  start <- seconds()
  value <- suppressWarnings(code)
  list(fit = value, seconds = seconds() - start)
}

# Always the same work: from the true values, steps of a fixed size.
static_run <- function(f, n, k, chains, steps) {
  cl_sample(f, list(alpha = 1, beta = c(3, -2, numeric(k - 2))), chains = chains, warmup = 0,
            check_gradient = FALSE, iter = max(1, steps %/% 10), method = "hmc", leapfrogs = 10,
            step_size = 0.1, inverse_metric = 8 / n, jitter = 0, seed = 1, batch = chains > 1)
}

# Milliseconds for a gradient of one chain; the first run compiles.
hmc_ms <- function(f, n, k, chains) {
  first <- timed(static_run(f, n, k, chains, 10))
  again <- timed(static_run(f, n, k, chains, 10))
  at_most <- 10 * max(1, floor(1 / min(first$seconds, again$seconds)))
  run <- timed(static_run(f, n, k, chains, max(10, min(steps, at_most))))
  per_gradient(run$fit, run$seconds)
}

metric <- Sys.getenv("STATCL_BENCH_METRIC")

nuts_run <- function(f, k, chains) {
  do.call(cl_sample, c(list(f, list(alpha = 0, beta = numeric(k)), chains = chains, warmup = 500,
                            iter = 500, seed = 1, batch = chains > 1),
                       if (nzchar(metric)) list(metric = metric)))
}

# The second of two runs.
second_run <- function(f, k, chains) {
  nuts_run(f, k, chains)
  timed(nuts_run(f, k, chains))
}

chains_of <- function(kind, chains) {
  sprintf("%s_%d_chain%s", kind, chains, if (chains > 1) "s" else "")
}

whole_run <- function(f, n, k, chains) {
  run <- second_run(f, k, chains)
  table <- summary(run$fit)
  ess <- min(table$ess_bulk)
  gradient_row(chains_of("nuts", chains), n, k, per_gradient(run$fit, run$seconds))
  run_row(chains_of("run", chains), n, k, run$seconds)
  run_row(chains_of("ess", chains), n, k, run$seconds / ess,
          sprintf("%.0f effective draws/s", ess / run$seconds))
  cat(sprintf("<!-- %dx%d, %d chain%s: %.2f s, %.0f gradients, rhat <= %.3f, ess >= %.0f -->\n",
              n, k, chains, if (chains > 1) "s" else "", run$seconds, sum(run$fit$evaluations),
              max(table$rhat), ess))
  run$seconds
}

run_row <- function(operation, n, k, seconds, rate = "") {
  size <- sprintf("%dx%d", n, k)
  add_row(data.frame(operation = operation, size = size, device_ms = NA_real_,
                     wall_ms = 1000 * seconds, rate = rate, peer_ms = peer_ms(operation, size),
                     host_ms = NA_real_, floor_ms = NA_real_, stringsAsFactors = FALSE), "wall")
}

gradient_row <- function(operation, n, k, ms, host_ms = NA_real_) {
  size <- sprintf("%dx%d", n, k)
  bytes <- 8 * n * (k + 1)
  add_row(data.frame(operation = operation, size = size, device_ms = NA_real_, wall_ms = ms,
                     rate = rate(NA, bytes, NA, ms), peer_ms = peer_ms(operation, size),
                     host_ms = host_ms, floor_ms = 1000 * bytes / bench$floor$bytes,
                     stringsAsFactors = FALSE), "wall")
}

for (shape in shapes) {
  n <- shape[1L]
  k <- shape[2L]
  data <- experiment_data(n, k)
  on_device <- cl_likelihood("bernoulli_logit", data$y, data$x)
  on_host <- with_cl(cl_likelihood("bernoulli_logit", data$y, data$x), engine = "host")
  with_prior <- cl_log_posterior(on_device, ~ dnorm(alpha, 0, 5, log = TRUE),
                                 ~ dt(beta / 2.5, 4, log = TRUE))
  for (chains in c(1, 4)) {
    host <- if (chains == 1 || n * k <= 1e7) hmc_ms(on_host, n, k, chains) else NA_real_
    gradient_row(chains_of("hmc", chains), n, k, hmc_ms(on_device, n, k, chains), host)
    if (!whole_runs) next
    run <- whole_run(on_device, n, k, chains)
    prior <- second_run(with_prior, k, chains)
    gradient_row(chains_of("prior", chains), n, k, per_gradient(prior$fit, prior$seconds))
  }
  if (whole_runs && bench$gpu && n * k <= 1e6) {
    cat(sprintf("<!-- %dx%d: 64 chains take %.2f times as long as 4 -->\n", n, k,
                whole_run(on_device, n, k, 64) / run))
  }
  rm(data, on_device, on_host)
  gc()
}
