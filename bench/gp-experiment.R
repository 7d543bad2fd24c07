# The experiment of the paper on GPU support in Stan (Cesnovar et al., section 4.2): Gaussian-
# process regression by sampling. x is uniform on (-10, 10), y normal about f(x) = b (x + x^2 - x^3
# + 100 sin 2x - a), where a and b give f mean 0 and variance 1, with standard deviation 1/10;
# squared exponential kernel, priors of Betancourt's robust Gaussian processes (part 3):
# lengthscale inverse gamma with 1% of its mass below 2 and above 10, sd half-normal(2), noise
# half-normal(1). 30 iterations of warm-up and 10 draws of the no-U-turn sampler, one chain.
#
# Rows `gp_experiment_gradient` are one gradient, at the parameters of the last draw, on the device,
# by the peers (peers_gp_experiment.py) and on the host engine ("R host ms"); rows `gp_experiment`
# whole runs, by the clock ("peer ms": as many gradients by the peer). The host makes runs where n
# is at most STATCL_BENCH_HOST (2000), and gradients up to twice that. The lines between say how
# many gradients a run took and what it found. STATCL_BENCH_SIZES="1000,4000" takes other sizes.

# Event times are off here: they cost several microseconds a launch.
.Call(statcl:::r_profiling, FALSE)

read_sizes <- function(name, default) {
  as.numeric(strsplit(Sys.getenv(name, default), ",", fixed = TRUE)[[1L]])
}
experiment_sizes <- read_sizes("STATCL_BENCH_SIZES", sizes(gpu = "500,1000,2000,4000,8000,16000",
                                                          cpu = "200,500"))
host_largest <- read_sizes("STATCL_BENCH_HOST", "2000")

experiment_data <- function(n) {
  x <- runif(n, -10, 10)
  f <- x + x^2 - x^3 + 100 * sin(2 * x)
  list(x = x, y = as.vector(scale(f)) + rnorm(n, sd = 0.1))
}

priors <- list(sd = prior_normal(0, 2), lengthscale = prior_inv_gamma(tails = c(2, 10)),
               noise = prior_normal(0, 1))

log_posterior <- function(data) {
  f <- cl_gp_likelihood(data$y, data$x, k_exp_quad())
  function(par) {
    value <- f(par)
    for (name in names(priors)) {
      p <- priors[[name]](par[[name]])
      attr(value, "gradient")[[name]] <- attr(value, "gradient")[[name]] + attr(p, "gradient")
      value <- value + as.vector(p)
    }
    value
  }
}

experiment_run <- function(density) {
  start <- seconds()
  fit <- suppressWarnings(cl_sample(density, c(sd = 1, lengthscale = 3, noise = 0.2), chains = 1,
                                    warmup = 30, iter = 10, transform = cl_lower(0), seed = 1,
                                    nan = "reject")) # first steps may overflow
  list(fit = fit, seconds = seconds() - start, gradients = sum(fit$evaluations))
}

experiment_row <- function(operation, n, ms, peer, floor, rate, host) {
  add_row(data.frame(operation = operation, size = as.character(n), device_ms = NA_real_,
                     wall_ms = ms, rate = rate, peer_ms = peer, host_ms = host, floor_ms = floor,
                     stringsAsFactors = FALSE), "wall")
}

for (n in experiment_sizes) {
  data <- experiment_data(n)
  density <- with_cl(log_posterior(data), engine = "device")
  on_host <- with_cl(log_posterior(data), engine = "host")
  density(c(sd = 1, lengthscale = 3, noise = 0.2)) # compiles
  run <- experiment_run(density)
  par <- as.matrix(run$fit)[10L, ]
  ms <- time_host(function() density(par), if (n > 4000) 3L else 7L)
  peer <- peer_ms("gp_experiment_gradient", n)
  floor <- 1000 * n^3 / bench$floor$flops
  experiment_row("gp_experiment_gradient", n, ms, peer, floor, rate(n^3, NA, NA, ms),
                 if (n <= 2 * host_largest) time_host(function() on_host(par)) else NA_real_)
  host <- if (n <= host_largest) experiment_run(on_host)
  # a peer's sampler would need as many gradients
  experiment_row("gp_experiment", n, 1000 * run$seconds, run$gradients * peer,
                 run$gradients * floor, "", if (is.null(host)) NA_real_ else 1000 * host$seconds)
  cat(sprintf("<!-- n = %d: %.2f s, %d gradients, %.3g s each; %s%s -->\n", n, run$seconds,
              run$gradients, run$seconds / run$gradients,
              paste(sprintf("%s %.3g", names(par), colMeans(as.matrix(run$fit))), collapse = ", "),
              if (is.null(host)) "" else sprintf("; host %.2f s, %d gradients", host$seconds,
                                                 host$gradients)))
  rm(data, density, on_host)
  gc()
}

.Call(statcl:::r_profiling, TRUE)
