# The experiment of the paper on GPU support in Stan (Cesnovar et al., section 4.1): logistic
# regression on standard normal predictors, of which two matter, flat priors, 500 + 500 iterations,
# 1 and 4 chains. Rows `nuts` are that experiment: "wall ms" is the time for one gradient of one
# chain, everything included; rows `hmc` make the same number of steps on each engine, so that "R
# host ms", the host engine's time for a gradient, can be held against it. Lines with whole runs go
# between.
#
# STATCL_BENCH_SHAPES="1e6x100,1e4x10" takes other sizes, STATCL_BENCH_STEPS=200 more steps for
# the rows `hmc`, STATCL_BENCH_NUTS=0 leaves the whole runs out.

shapes <- Sys.getenv("STATCL_BENCH_SHAPES",
                     if (bench$gpu) "1e4x10,1e5x10,1e6x10,1e6x100" else "1e3x5")
shapes <- lapply(strsplit(strsplit(shapes, ",")[[1L]], "x"), as.numeric)
steps <- as.numeric(Sys.getenv("STATCL_BENCH_STEPS", "100"))
whole_runs <- Sys.getenv("STATCL_BENCH_NUTS", "1") != "0"

experiment_data <- function(n, k) {
  # No more numbers than needed: time does not depend on their being different.
  x <- matrix(rnorm(min(n * k, 1e7)), n, k)
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
static_run <- function(f, n, k, chains) {
  cl_sample(f, list(alpha = 1, beta = c(3, -2, numeric(k - 2))), chains = chains, warmup = 0,
            iter = max(1, steps %/% 10), method = "hmc", leapfrogs = 10, step_size = 0.1,
            inverse_metric = 8 / n, jitter = 0, seed = 1, batch = chains > 1)
}

nuts_run <- function(f, k, chains) {
  cl_sample(f, list(alpha = 0, beta = numeric(k)), chains = chains, warmup = 500, iter = 500,
            seed = 1, batch = chains > 1)
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
  for (chains in c(1, 4)) {
    name <- sprintf("hmc_%d_chain%s", chains, if (chains > 1) "s" else "")
    static_run(on_device, n, k, chains) # compiles
    device <- timed(static_run(on_device, n, k, chains))
    host <- timed(static_run(on_host, n, k, chains))
    gradient_row(name, n, k, per_gradient(device$fit, device$seconds),
                 per_gradient(host$fit, host$seconds))
    if (!whole_runs) next
    run <- timed(nuts_run(on_device, k, chains))
    gradient_row(sub("hmc", "nuts", name), n, k, per_gradient(run$fit, run$seconds))
    table <- summary(run$fit)
    cat(sprintf("<!-- %dx%d, %d chain%s: %.2f s, %.0f gradients, rhat <= %.3f, ess >= %.0f -->\n",
                n, k, chains, if (chains > 1) "s" else "", run$seconds, sum(run$fit$evaluations),
                max(table$rhat), min(table$ess_bulk)))
  }
  rm(data, on_device, on_host)
  gc()
}
