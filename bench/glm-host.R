# The host engine's likelihood and gradient next to what one would write without statcl, on the same
# cores in the same run: logistic regression of 1e5 x 10 and 1e6 x 50 (STATCL_BENCH_SHAPES="2e5x20"
# takes others).
#
# A row for each peer: "wall ms" and "R host ms" are statcl's host engine, "rate" the processor
# time that a call of each takes. Peers: base R with `%*%` and crossprod() in the quickest form
# known to us that never overflows, and in the shortest one, which overflows beyond |eta| = 709;
# and with STATCL_BENCH_STAN=1, if rstan is there, Stan's bernoulli_logit_glm (it compiles a
# minute or two, and holds the data several times: 4 GB for 1e6 x 50).
#
# Each is called many times in a row, as a sampler calls it. A call right after one of another
# kind would be timed with the threads of R's BLAS still awake: those of OpenBLAS go on spinning for
# a while after a product, and where there are as many of them as cores, ours took twice as long.

host_shapes <- lapply(strsplit(Sys.getenv("STATCL_BENCH_SHAPES", "1e5x10,1e6x50"), ",")[[1L]],
                      function(shape) as.numeric(strsplit(shape, "x", fixed = TRUE)[[1L]]))

base_stable <- function(y, x) {
  function(alpha, beta) {
    eta <- alpha + as.vector(x %*% beta)
    e <- exp(-abs(eta))
    residual <- y - 0.5 - sign(eta) * (1 / (1 + e) - 0.5)
    structure(sum(y * eta) - (sum(eta) + sum(abs(eta))) / 2 - sum(log1p(e)),
              gradient = list(alpha = sum(residual), beta = as.vector(crossprod(x, residual))))
  }
}

base_shortest <- function(y, x) {
  function(alpha, beta) {
    eta <- alpha + as.vector(x %*% beta)
    e <- exp(eta)
    residual <- y - e / (1 + e)
    structure(sum(y * eta) - sum(log1p(e)),
              gradient = list(alpha = sum(residual), beta = as.vector(crossprod(x, residual))))
  }
}

stan_code <- "
data { int<lower=1> n; int<lower=1> p; int<lower=0, upper=1> y[n]; matrix[n, p] x; }
parameters { real alpha; vector[p] beta; }
model { target += bernoulli_logit_glm_lpmf(y | x, alpha, beta); }"
with_stan <- Sys.getenv("STATCL_BENCH_STAN") == "1" && requireNamespace("rstan", quietly = TRUE)
if (with_stan) {
  # Debian's package BH leaves Boost where the compiler finds it
  if (!nzchar(system.file("include", package = "BH"))) {
    rstan::rstan_options(boost_lib = "/usr/include")
  }
  stan_model <- rstan::stan_model(model_code = stan_code)
}

# grad_log_prob() gives the value as an attribute of the gradient.
stan_likelihood <- function(y, x) {
  suppressMessages(utils::capture.output(
    fit <- rstan::sampling(stan_model, list(n = nrow(x), p = ncol(x), y = as.integer(y), x = x),
                           chains = 0)))
  function(alpha, beta) {
    slope <- rstan::grad_log_prob(fit, c(alpha, beta))
    structure(attr(slope, "log_prob"), gradient = list(alpha = slope[1L], beta = slope[-1L]))
  }
}

# Median milliseconds by the clock of calls one after the other, and the mean of processor time.
in_a_row <- function(run, times) {
  Sys.sleep(0.2)
  for (i in 1:2) run()
  used <- proc.time()
  at <- numeric(times + 1L)
  for (i in seq_along(at)) {
    at[i] <- seconds()
    run()
  }
  used <- proc.time() - used
  c(wall = 1000 * median(diff(at)), processor = 1000 * sum(used[1:2]) / (times + 1L))
}

note_peers(paste0("Peers of `glm-host`: R without statcl",
                  if (with_stan) paste(", rstan", packageVersion("rstan")), "."))
for (shape in host_shapes) {
  n <- shape[1L]
  p <- shape[2L]
  x <- random_matrix(n, p)
  beta <- rnorm(p) / sqrt(p)
  y <- as.double(runif(n) < plogis(x %*% beta))
  likelihoods <- list("statcl" = with_cl(cl_likelihood("bernoulli_logit", y, x), engine = "host"),
                      "base R" = base_stable(y, x), "base R, shortest" = base_shortest(y, x))
  if (with_stan) likelihoods[["Stan"]] <- stan_likelihood(y, x)
  found <- lapply(likelihoods, function(f) f(0.1, beta))
  for (one in found[-1L]) {
    stopifnot(all.equal(as.vector(one), as.vector(found$statcl), tolerance = 1e-12),
              all.equal(unlist(attr(one, "gradient")), unlist(attr(found$statcl, "gradient")),
                        tolerance = 1e-9))
  }
  times <- if (n * p > 1e7) 20L else 100L
  ms <- lapply(likelihoods, function(f) in_a_row(function() f(0.1, beta), times))
  for (peer in names(ms)[-1L]) {
    add_row(data.frame(
      operation = paste0("glm_host_bernoulli_logit, peer ", peer), size = sprintf("%dx%d", n, p),
      device_ms = NA_real_, wall_ms = ms$statcl[["wall"]],
      rate = sprintf("processor %.3g; %.3g ms", ms$statcl[["processor"]],
                     ms[[peer]][["processor"]]),
      peer_ms = ms[[peer]][["wall"]], host_ms = ms$statcl[["wall"]], floor_ms = NA_real_,
      stringsAsFactors = FALSE), "wall")
  }
  rm(x, y, likelihoods)
  gc()
}
