# Simulation-based calibration of three models on the host and on a device: not timings, but
# p-values of uniform ranks. By itself:
#   Rscript bench/calibration.R [REPLICATES] [WORKERS] [host|device ...]
library(statcl)

given <- commandArgs(TRUE)
replicates <- if (length(given) > 0) as.integer(given[1]) else 1000L
workers <- if (length(given) > 1) as.integer(given[2]) else parallel::detectCores()
engines <- if (length(given) > 2) given[-(1:2)] else c("host", if (cl_available()) "device")

# Mean and standard deviation of 10 normal observations.
normal <- list(
  simulate = function() {
    mu <- rnorm(1)
    sigma <- rexp(1)
    list(parameters = list(mu = mu, sigma = sigma), data = rnorm(10, mu, sigma))
  },
  model = function(y) cl_gradient(function(mu, sigma) {
    sum(dnorm(y, mu, sigma, log = TRUE)) + dnorm(mu, log = TRUE) - sigma
  }),
  transform = list(sigma = cl_lower(0)))

# Eight schools with the published standard errors, in the non-centred form, and priors that can be
# simulated from.
errors <- c(15, 10, 16, 11, 9, 11, 10, 18)
schools <- list(
  simulate = function() {
    mu <- rnorm(1, 0, 5)
    tau <- rexp(1, 1 / 5)
    z <- rnorm(8)
    list(parameters = list(mu = mu, tau = tau, z = z), data = rnorm(8, mu + tau * z, errors))
  },
  model = function(y) cl_gradient(function(mu, tau, z) {
    sum(dnorm(y, mu + tau * z, errors, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
      dnorm(mu, 0, 5, log = TRUE) - tau / 5
  }),
  transform = list(tau = cl_lower(0)))

# Logistic regression: 50 rows, 3 predictors that are the same in all replicates, by the built-in
# likelihood.
set.seed(1)
x <- matrix(rnorm(150), 50)
logistic <- list(
  simulate = function() {
    alpha <- rnorm(1)
    beta <- rnorm(3)
    y <- rbinom(50, 1, plogis(alpha + x %*% beta))
    list(parameters = list(alpha = alpha, beta = beta), data = y)
  },
  model = function(y) {
    cl_log_posterior(cl_likelihood("bernoulli_logit", y, x), ~ dnorm(alpha, log = TRUE),
                     ~ dnorm(beta, log = TRUE))
  })

models <- list(normal = normal, schools = schools, logistic = logistic)
for (engine in engines) {
  cl_use(engine = engine)
  for (name in names(models)) {
    m <- models[[name]]
    result <- cl_calibrate(m$simulate, m$model, replicates, transform = m$transform, seed = 1,
                           workers = workers, refresh = 0)
    cat(sprintf("\n%s on the %s, %.0f ms a replicate\n", name, engine,
                1000 * result$elapsed / replicates))
    print(result)
  }
}
