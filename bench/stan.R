# Whole Stan programs on the device: value and gradient at new parameters, from the R prompt to the
# result there, next to the package's own likelihoods of the same data ("built in"), timed in turn.
# Peer: NumPyro (peers_stan.py), the same models and sizes with other random data.

# Value and gradient of a bound program, for its unconstrained parameters, near `start`.
program_at <- function(code, data, start) {
  model <- cl_stan(code = code)(data)
  at <- 0
  function() {
    at <<- at + 1
    model$unconstrained(start + 1e-6 * (at %% 7), jacobian = TRUE)
  }
}

# ---- logistic regression: the density of the model, a statement of vectors, a loop -------------
logistic <- function(statement) sprintf("
  data { int N; int K; matrix[N, K] x; array[N] int<lower=0, upper=1> y; }
  parameters { real alpha; vector[K] beta; }
  model { %s }", statement)
for (shape in sizes(gpu = list(c(1e6, 100)), cpu = list(c(2e4, 10)))) {
  n <- shape[1L]
  p <- shape[2L]
  data <- list(N = n, K = p, x = random_matrix(n, p), y = as.integer(runif(n) < 0.5))
  start <- rnorm(p + 1) / p
  own <- cl_likelihood("bernoulli_logit", data$y, data$x)
  at <- 0
  runs <- lapply(c(
    stan_logistic = "y ~ bernoulli_logit_glm(x, alpha, beta);",
    "stan_logistic, vectors" = "y ~ bernoulli_logit(alpha + x * beta);",
    "stan_logistic, loop" = "for (n in 1:N) y[n] ~ bernoulli_logit(alpha + x[n] * beta);"
  ), function(statement) program_at(logistic(statement), data, start))
  runs[["stan_logistic, built in"]] <- function() {
    at <<- at + 1
    own(start[1L] + 1e-6 * (at %% 7), start[-1L])
  }
  measure_in_turn(runs, sprintf("%.0fx%d", n, p), bytes = 8 * n * (p + 1), by = "wall",
                  times = 11L, peers = rep("stan_logistic", 4))
  rm(data, runs, own)
  gc()
}

# ---- houses in counties, a loop over the rows --------------------------------------------------
n <- sizes(gpu = 1e6, cpu = 1e4)
counties <- n / 100
data <- list(N = n, J = counties, county = rep_len(seq_len(counties), n),
             floor = as.numeric(runif(n) < 0.3), y = rnorm(n))
radon <- function(statement) sprintf("
  data {
    int N; int J; array[N] int<lower=1, upper=J> county; vector[N] floor; vector[N] y;
  }
  parameters { real mu; real beta; real<lower=0> tau; real<lower=0> sigma; vector[J] a; }
  model {
    mu ~ normal(0, 10); beta ~ normal(0, 10); tau ~ normal(0, 1); sigma ~ normal(0, 1);
    a ~ normal(mu, tau);
    %s
  }", statement)
start <- c(0.1, 0.2, -0.5, 0.1, rnorm(counties) / 10)
runs <- lapply(c(
  stan_radon = "y ~ normal(a[county] + beta * floor, sigma);",
  "stan_radon, loop" = "for (n in 1:N) y[n] ~ normal(a[county[n]] + beta * floor[n], sigma);"
), function(statement) program_at(radon(statement), data, start))
measure_in_turn(runs, sprintf("%.0f", n), bytes = 8 * 3 * n, by = "wall", times = 11L,
                peers = rep("stan_radon", 2))
rm(data, runs)

# ---- loops over the rows: a mixture, and answers of persons to items ---------------------------
one_run <- function(name, code, data, start, bytes) {
  measure_in_turn(setNames(list(program_at(code, data, start)), name), sprintf("%.0f", data$N),
                  bytes = bytes, by = "wall", times = 11L)
}
one_run("stan_mixture", "
  data { int N; vector[N] y; }
  parameters { ordered[2] mu; array[2] real<lower=0> sigma; real<lower=0, upper=1> theta; }
  model {
    sigma ~ normal(0, 2); mu ~ normal(0, 2); theta ~ beta(5, 5);
    for (n in 1:N)
      target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]),
                               normal_lpdf(y[n] | mu[2], sigma[2]));
  }", list(N = n, y = rnorm(n, 2 * (runif(n) < 0.5))), c(-0.1, 0.2, 0.1, -0.1, 0.1), 8 * n)
one_run("stan_items", "
  data {
    int N; int J; array[N] int person; array[N] int item; array[N] int<lower=0, upper=1> y;
  }
  parameters { real mu; vector[J] ability; vector<lower=0>[100] a; vector[100] b; }
  model {
    mu ~ normal(0, 5); ability ~ normal(0, 1); a ~ lognormal(0, 1); b ~ normal(mu, 1);
    for (n in 1:N) y[n] ~ bernoulli_logit(a[item[n]] * (ability[person[n]] - b[item[n]]));
  }", list(N = n, J = counties, person = rep_len(seq_len(counties), n),
           item = rep(1:100, each = counties), y = as.integer(runif(n) < 0.5)),
  rnorm(counties + 201) / 10, 8 * 3 * n)

# ---- a Gaussian process ------------------------------------------------------------------------
for (n in sizes(gpu = 4000, cpu = 100)) {
  x <- sort(runif(n, 0, 10))
  y <- rnorm(n)
  start <- c(0.1, 0, -1) # logarithms
  own <- cl_gp_likelihood(y, matrix(x), k_exp_quad())
  at <- 0
  measure_in_turn(list(stan_gp = program_at("
    data { int N; array[N] real x; vector[N] y; }
    parameters { real<lower=0> sd; real<lower=0> lengthscale; real<lower=0> noise; }
    model {
      matrix[N, N] k = add_diag(gp_exp_quad_cov(x, sd, lengthscale), square(noise));
      y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(k));
    }", list(N = n, x = x, y = y), start),
    "stan_gp, built in" = function() {
      at <<- at + 1
      own(exp(start) * c(sd = 1, lengthscale = 1 + 1e-6 * (at %% 7), noise = 1))
    }), n, flops = n^3, by = "wall", times = 11L)
}
