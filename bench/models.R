# Models written as plain R functions: value and gradient by cl_gradient(), from parameters at the R
# prompt to the result there. Peers (peers_models.py) compile the same densities: JAX by
# jit(value_and_grad), PyTorch by torch.compile. "built in" is the package's own function for the
# same density, timed in turn.

# Value and gradient at new parameters, near `start`, as an optimiser asks for them.
evaluation <- function(model, start) {
  force(model)
  at <- 0
  function() {
    at <<- at + 1
    do.call(model, lapply(start, function(x) x + 1e-6 * (at %% 7)))
  }
}

times_of <- function(work) if (work > 1e8) 11L else 25L

# ---- logistic regression ---------------------------------------------------------------------
for (shape in sizes(gpu = list(c(581012, 55), c(1e6, 100)), cpu = list(c(2e4, 10)))) {
  n <- shape[1L]
  p <- shape[2L]
  x <- random_matrix(n, p)
  y <- as.double(runif(n) < 0.5)
  model <- cl_gradient(function(alpha, beta) {
    sum(dbinom(y, 1, plogis(alpha + x %*% beta), log = TRUE))
  })
  own <- cl_likelihood("bernoulli_logit", y, x)
  start <- list(alpha = 0.1, beta = rnorm(p) / p)
  four <- list(alpha = rep(0.1, 4), beta = matrix(rnorm(4 * p) / p, p))
  measure_in_turn(list(model_logistic = evaluation(model, start),
                       "model_logistic, built in" = evaluation(own, start),
                       "model_logistic, 4 vectors" = evaluation(function(...) {
                         cl_map_gradient(model, ...)
                       }, four)),
                  sprintf("%dx%d", n, p), bytes = 8 * n * (p + 1), by = "wall",
                  times = times_of(n * p))
  rm(x, y, model, own)
  gc()
}

# ---- intercepts and slopes that vary between groups ------------------------------------------
n <- sizes(gpu = 1e6, cpu = 1e4)
groups <- n / 100
group <- rep_len(seq_len(groups), n)
x <- rnorm(n)
y <- rnorm(n)
start <- list(mu = c(0.1, 0.2), log_tau = c(-0.5, -0.3), log_sigma = 0.1,
              a = rnorm(groups) / 10, b = rnorm(groups) / 10)
model <- cl_gradient(function(mu, log_tau, log_sigma, a, b) {
  eta <- mu[1] + exp(log_tau[1]) * a[group] + (mu[2] + exp(log_tau[2]) * b[group]) * x
  sum(dnorm(y, eta, exp(log_sigma), log = TRUE)) + sum(dnorm(a, log = TRUE)) +
    sum(dnorm(b, log = TRUE)) + sum(dnorm(mu, 0, 5, log = TRUE)) +
    sum(dnorm(log_tau, log = TRUE)) + dnorm(log_sigma, log = TRUE)
})
measure("model_hierarchical", sprintf("%d in %d", n, groups), evaluation(model, start),
        bytes = 8 * 3 * n, by = "wall", times = 25L)

# ---- a Gaussian process ----------------------------------------------------------------------
for (n in sizes(gpu = c(1000, 4000), cpu = 100)) {
  x <- sort(runif(n, 0, 10))
  y <- rnorm(n)
  distance2 <- outer(x, x, "-")^2
  model <- cl_gradient(function(log_sd, log_lengthscale, log_noise) {
    k <- exp(2 * log_sd - 0.5 * distance2 * exp(-2 * log_lengthscale)) +
      diag(exp(2 * log_noise), n)
    dmvnorm(y, 0, k, log = TRUE)
  })
  own <- cl_gp_likelihood(y, matrix(x), k_exp_quad())
  at <- 0
  measure_in_turn(list(model_gp = evaluation(model, list(log_sd = 0.1, log_lengthscale = 0,
                                                          log_noise = -1)),
                       "model_gp, built in" = function() {
                         at <<- at + 1
                         own(c(sd = 1.1, lengthscale = 1 + 1e-6 * (at %% 7), noise = 0.4))
                       }),
                  n, flops = n^3, by = "wall", times = times_of(n^2))
}

# ---- a mixture of normal distributions -------------------------------------------------------
n <- sizes(gpu = 1e6, cpu = 1e4)
y <- rnorm(n)
model <- cl_gradient(function(mu, log_sigma, weight) {
  log_weight <- weight - cl_log_sum_exp(weight)
  parts <- sapply(1:4, function(k) log_weight[k] + dnorm(y, mu[k], exp(log_sigma[k]), log = TRUE))
  sum(cl_log_sum_exp(parts, margin = 1))
})
start <- list(mu = c(-1, 0, 1, 2), log_sigma = rep(0.1, 4), weight = c(0.1, 0.2, 0.3, 0.4))
measure("model_mixture", sprintf("%.0f", n), evaluation(model, start),
        bytes = 8 * n, by = "wall", times = 25L)

# ---- factors of many responses ---------------------------------------------------------------
n <- sizes(gpu = 1e5, cpu = 1e3)
y <- random_matrix(n, 20)
model <- cl_gradient(function(scores, loadings, log_psi) {
  mean <- matrix(scores, n, 3) %*% t(matrix(loadings, 20, 3))
  sum(dnorm(y, mean, exp(rep(log_psi, each = n)), log = TRUE)) + sum(dnorm(scores, log = TRUE)) +
    sum(dnorm(loadings, log = TRUE)) + sum(dnorm(log_psi, log = TRUE))
})
measure("model_factor", sprintf("%dx20", n),
        evaluation(model, list(scores = rnorm(3 * n), loadings = rnorm(60),
                               log_psi = rep(0.1, 20))),
        bytes = 8 * 26 * n, by = "wall", times = 25L)

# ---- hidden Markov chains --------------------------------------------------------------------
sequences <- sizes(gpu = 1e4, cpu = 100)
y <- t(random_matrix(sequences, 100)) # a column for each sequence
model <- cl_gradient(function(mu, log_sigma, logits) {
  transition <- cl_softmax(matrix(logits, 4, 4), margin = 1)
  step <- function(state, now) {
    ahead <- (state %*% transition) * exp(dnorm(now, mu, exp(log_sigma), log = TRUE))
    total <- sum(ahead)
    list(state = ahead / total, out = log(total))
  }
  # At the first time all states are equally likely.
  first <- 0.25 * exp(dnorm(matrix(y[1, ], 4, sequences, byrow = TRUE), mu, exp(log_sigma),
                            log = TRUE))
  total <- colSums(first)
  sum(log(total)) +
    sum(cl_scan(step, sweep(first, 2, total, "/"), y[-1, ], sequences = sequences)$out)
})
measure("model_hidden_markov", sprintf("%dx100", sequences),
        evaluation(model, list(mu = c(-1, 0, 1, 2), log_sigma = 0.1,
                               logits = as.vector(diag(4)))),
        bytes = 8 * 100 * sequences, by = "wall", times = 11L)
