# Gradients of small models on the host, in microseconds of processor time, the least of several
# rounds: inside the sampler ("loop": leapfrog steps of NUTS), and one call of the compiled function
# from R. Recursions are plain `for` loops. With the argument "stan" the Stan program of the model
# by cl_stan() too; with "rstan" next to the same steps of rstan; with "chains" seconds of four
# chains by the clock.
#
#   Rscript bench/host-programs.R [library=PATH] [posteriordb=FOLDER] [stan] [rstan] [chains]
#                                 [model ...]
#
# FOLDER is posterior_database of a clone of stan-dev/posteriordb: then the models are those of
# host-models.R. STATCL_HOST_PROGRAMS is a folder for compiled Stan programs, kept between runs.
asked <- commandArgs(TRUE)
named <- function(name) {
  pattern <- paste0("^", name, "=")
  sub(pattern, "", grep(pattern, asked, value = TRUE))
}
place <- named("library")
folder <- named("posteriordb")
child <- named("child")
library(statcl, lib.loc = if (length(place) > 0L) place)
with_rstan <- "rstan" %in% asked
with_chains <- "chains" %in% asked
with_stan <- "stan" %in% asked
asked <- grep("=", setdiff(asked, c("stan", "rstan", "chains")), value = TRUE, invert = TRUE)
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
cl_use(engine = "host")
set.seed(1)

# ---- models ----------------------------------------------------------------------------------

models <- list()

models$eight_schools <- function() {
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
  list(
    f = function(z, mu, tau) {
      sum(dnorm(y, mu + tau * z, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
        dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
    },
    at = list(z = (1:8) / 8, mu = 1, tau = 2), transform = list(tau = cl_lower(0)),
    data = list(J = 8L, y = y, sigma = sigma),
    stan = "data { int J; vector[J] y; vector[J] sigma; }
            parameters { vector[J] z; real mu; real<lower=0> tau; }
            model { z ~ normal(0, 1); mu ~ normal(0, 5); tau ~ cauchy(0, 5);
                    y ~ normal(mu + tau * z, sigma); }")
}

series <- function(n = 200L) {
  e <- rnorm(n)
  y <- numeric(n)
  for (t in seq_len(n)) y[t] <- 0.5 + (if (t > 1L) 0.4 * y[t - 1L] + 0.3 * e[t - 1L] else 0) + e[t]
  y
}

models$arma11 <- function() {
  y <- series()
  n <- length(y)
  list(
    f = function(mu, phi, theta, sigma) {
      error <- y[1] - mu - phi * mu
      total <- dnorm(error, 0, sigma, log = TRUE)
      for (t in 2:n) {
        error <- y[t] - (mu + phi * y[t - 1] + theta * error)
        total <- total + dnorm(error, 0, sigma, log = TRUE)
      }
      total + dnorm(mu, 0, 10, log = TRUE) + dnorm(phi, 0, 2, log = TRUE) +
        dnorm(theta, 0, 2, log = TRUE) + dcauchy(sigma, 0, 2.5, log = TRUE)
    },
    at = list(mu = 0.4, phi = 0.3, theta = 0.2, sigma = 1.1), transform = list(sigma = cl_lower(0)),
    data = list(N = n, y = y),
    stan = "data { int N; real y[N]; }
            parameters { real mu; real phi; real theta; real<lower=0> sigma; }
            model { vector[N] nu; vector[N] err;
                    mu ~ normal(0, 10); phi ~ normal(0, 2); theta ~ normal(0, 2);
                    sigma ~ cauchy(0, 2.5);
                    nu[1] = mu + phi * mu; err[1] = y[1] - nu[1];
                    for (t in 2:N) { nu[t] = mu + phi * y[t - 1] + theta * err[t - 1];
                                     err[t] = y[t] - nu[t]; }
                    err ~ normal(0, sigma); }")
}

models$garch11 <- function() {
  y <- rnorm(200, 5, exp(sin((1:200) / 20)))
  n <- length(y)
  list(
    f = function(mu, alpha0, alpha1, beta1) {
      variance <- 0.5^2
      total <- dnorm(y[1], mu, 0.5, log = TRUE)
      for (t in 2:n) {
        variance <- alpha0 + alpha1 * (y[t - 1] - mu)^2 + beta1 * variance
        total <- total + dnorm(y[t], mu, sqrt(variance), log = TRUE)
      }
      total
    },
    at = list(mu = 5, alpha0 = 1.2, alpha1 = 0.4, beta1 = 0.3),
    transform = list(alpha0 = cl_lower(0), alpha1 = cl_bounds(0, 1), beta1 = cl_bounds(0, 1)),
    data = list(N = n, y = y),
    stan = "data { int N; real y[N]; }
            parameters { real mu; real<lower=0> alpha0; real<lower=0, upper=1> alpha1;
                         real<lower=0, upper=1> beta1; }
            model { real sigma[N]; sigma[1] = 0.5;
                    for (t in 2:N) sigma[t] = sqrt(alpha0 + alpha1 * pow(y[t - 1] - mu, 2)
                                                   + beta1 * pow(sigma[t - 1], 2));
                    y ~ normal(mu, sigma); }")
}

models$hmm_drive_1 <- function() {
  n <- 416L
  state <- 1L + (cumsum(runif(n) < 0.1) %% 2L)
  u <- rnorm(n, c(0.3, 2)[state], 0.1)
  v <- rnorm(n, c(0.2, 3)[state], 0.1)
  add <- function(a, b) pmax(a, b) + log1p(exp(-abs(a - b)))
  list(
    f = function(theta1, theta2, phi, lambda) {
      phi <- cumsum(phi)
      lambda <- cumsum(lambda)
      move1 <- log(c(theta1[1], theta2[1]))
      move2 <- log(c(theta1[2], theta2[2]))
      emit <- function(t) dnorm(u[t], phi, 0.1, log = TRUE) + dnorm(v[t], lambda, 0.1, log = TRUE)
      state <- emit(1)
      for (t in 2:n) {
        a <- state + move1
        b <- state + move2
        state <- c(add(a[1], a[2]), add(b[1], b[2])) + emit(t)
      }
      add(state[1], state[2]) + sum(dnorm(phi, c(0, 3), 1, log = TRUE)) +
        sum(dnorm(lambda, c(0, 3), 1, log = TRUE)) +
        3 * log(theta1[1]) + 2 * log(theta1[2]) + 2 * log(theta2[1]) + 3 * log(theta2[2])
    },
    at = list(theta1 = c(0.9, 0.1), theta2 = c(0.1, 0.9), phi = c(0.3, 1.7), lambda = c(0.2, 2.8)),
    transform = list(theta1 = cl_simplex(), theta2 = cl_simplex(), phi = cl_lower(0),
                     lambda = cl_lower(0)),
    data = list(K = 2L, N = n, u = u, v = v, alpha = rbind(c(4, 3), c(3, 4))),
    stan = "data { int K; int N; real u[N]; real v[N]; matrix<lower=0>[K, K] alpha; }
            parameters { simplex[K] theta[K]; positive_ordered[K] phi; positive_ordered[K] lambda; }
            model {
              for (k in 1:K) theta[k] ~ dirichlet(alpha[k, ]');
              phi[1] ~ normal(0, 1); phi[2] ~ normal(3, 1);
              lambda[1] ~ normal(0, 1); lambda[2] ~ normal(3, 1);
              { real acc[K]; real gamma[N, K];
                for (k in 1:K)
                    gamma[1, k] = normal_lpdf(u[1] | phi[k], 0.1)
                                  + normal_lpdf(v[1] | lambda[k], 0.1);
                for (t in 2:N) for (k in 1:K) {
                  for (j in 1:K)
                    acc[j] = gamma[t - 1, j] + log(theta[j, k]) + normal_lpdf(u[t] | phi[k], 0.1)
                             + normal_lpdf(v[t] | lambda[k], 0.1);
                  gamma[t, k] = log_sum_exp(acc);
                }
                target += log_sum_exp(gamma[N]);
              } }")
}

models$kidiq <- function() {
  n <- 434L
  x <- cbind(1, runif(n) < 0.8, rnorm(n, 100, 15))
  y <- c(x %*% c(26, 6, 0.6)) + rnorm(n, 0, 18)
  list(
    f = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE)) + dcauchy(sigma, 0, 2.5, log = TRUE)
    },
    at = list(beta = c(25, 5, 0.5), sigma = 18), transform = list(sigma = cl_lower(0)),
    data = list(N = n, K = 3L, x = x, y = y),
    stan = "data { int N; int K; matrix[N, K] x; vector[N] y; }
            parameters { vector[K] beta; real<lower=0> sigma; }
            model { sigma ~ cauchy(0, 2.5); y ~ normal(x * beta, sigma); }")
}

models$radon <- function() {
  n <- 919L
  county <- sample.int(85L, n, TRUE)
  floor <- as.double(runif(n) < 0.2)
  y <- rnorm(85, 1.5, 0.3)[county] - 0.7 * floor + rnorm(n, 0, 0.75)
  list(
    f = function(mu, tau, alpha, beta, sigma) {
      sum(dnorm(y, (mu + tau * alpha)[county] + beta * floor, sigma, log = TRUE)) +
        sum(dnorm(alpha, log = TRUE)) + dnorm(mu, 0, 10, log = TRUE) +
        dnorm(beta, 0, 10, log = TRUE) + dnorm(tau, log = TRUE) + dnorm(sigma, log = TRUE)
    },
    at = list(mu = 1.4, tau = 0.3, alpha = rnorm(85), beta = -0.6, sigma = 0.8),
    transform = list(tau = cl_lower(0), sigma = cl_lower(0)),
    data = list(N = n, county = county, x = floor, y = y),
    stan = "data { int N; int county[N]; vector[N] x; vector[N] y; }
            parameters { real mu; real<lower=0> tau; vector[85] alpha; real beta;
                         real<lower=0> sigma; }
            model { vector[85] a = mu + tau * alpha;
                    mu ~ normal(0, 10); beta ~ normal(0, 10); tau ~ normal(0, 1);
                    sigma ~ normal(0, 1); alpha ~ normal(0, 1);
                    y ~ normal(a[county] + beta * x, sigma); }")
}

models$logistic <- function() {
  n <- 100L
  x <- cbind(1, rnorm(n), rnorm(n))
  y <- as.double(runif(n) < plogis(c(x %*% c(0.2, 1, -0.5))))
  list(
    f = function(beta) {
      sum(dbinom(y, 1, plogis(c(x %*% beta)), log = TRUE)) + sum(dnorm(beta, 0, 2, log = TRUE))
    },
    at = list(beta = c(0.1, 0.9, -0.4)), transform = list(),
    data = list(N = n, K = 3L, x = x, y = as.integer(y)),
    stan = "data { int N; int K; matrix[N, K] x; int y[N]; }
            parameters { vector[K] beta; }
            model { beta ~ normal(0, 2); y ~ bernoulli_logit(x * beta); }")
}

# ---- those of posteriordb ----------------------------------------------------------------------

source(file.path(dirname(script), "stan-common.R"))

of_posteriordb <- function(name, entry) {
  data <- if (is.null(entry$posterior)) entry$simulate() else {
    zip <- file.path(folder, "data", "data", paste0(entry$posterior, ".json.zip"))
    jsonlite::fromJSON(unzip(zip, exdir = tempfile("data")))
  }
  file <- file.path(folder, "models", "stan", paste0(name, ".stan"))
  code <- sub("generated quantities.*", "", paste(readLines(file), collapse = "\n"))
  c(entry$model(data), list(data = data, stan = old_syntax(code), program = code, init = 0))
}

if (length(folder) > 0L) {
  source(file.path(dirname(script), "host-models.R"))
  models <- Map(function(name, entry) function() of_posteriordb(name, entry), names(slice), slice)
}

# ---- timing ----------------------------------------------------------------------------------

least <- function(call, rounds = 20L) {
  call()
  once <- max(1e-7, system.time(for (k in 1:20) call())[[1L]] / 20)
  many <- max(5, floor(0.01 / once))
  min(vapply(seq_len(rounds), function(r) {
    start <- Sys.time()
    for (k in seq_len(many)) call()
    as.double(Sys.time() - start, units = "secs") / many
  }, 0)) * 1e6
}

# Processor time of `each` evaluations in microseconds: a long run's less a short one's, each the
# least of several, short enough that some are not interrupted.
by_length <- function(run, count, each) {
  least <- function(length, rounds) min(vapply(seq_len(rounds), function(r) run(length), 0))
  short <- least(1L, 8L)
  # more than what a run takes to begin, which varies
  while (least(count, 2L) - short < max(0.06, short / 2)) count <- 4L * count
  (least(count, 9L) - short) / (count - 1) / each * 1e6
}

# Leapfrog steps so small that the point does not leave, and trees are full. Not those of static
# HMC, for which rstan 2.21 takes a step size of 1 whatever it is given: the point leaves at once
# to where gradients end early.
depth <- 6L
leapfrogs <- 2L^depth - 1L
step_size <- 1e-9

in_loop <- function(f, init, transform = NULL) {
  by_length(function(iter) {
    start <- sum(proc.time()[1:2])
    fit <- suppressWarnings(cl_sample(f, init, transform = transform, chains = 1, warmup = 0,
                                      iter = iter, max_depth = depth, step_size = step_size,
                                      metric = "unit", jitter = 0, seed = 1, refresh = 0))
    took <- sum(proc.time()[1:2]) - start
    stopifnot(fit$diagnostics$leapfrogs == leapfrogs)
    took
  }, 10L, leapfrogs)
}

program_loop <- function(case) {
  if (!with_stan) return(NA)
  code <- if (is.null(case$program)) case$stan else case$program
  bound <- cl_stan(code = code)(case$data)
  in_loop(bound, numeric(bound$dimension))
}

chains <- function(f, case) {
  if (!with_chains) return(NA)
  start <- proc.time()
  fit <- suppressWarnings(cl_sample(f, case$at, transform = case$transform, chains = 4,
                                    warmup = 1000, iter = 1000, seed = 1, refresh = 0))
  (proc.time() - start)[[3L]]
}

stan_folder <- Sys.getenv("STATCL_HOST_PROGRAMS", tempdir())

# The same for rstan. One program a process: several ended R.
stan_loop <- function(name, case) {
  suppressMessages(requireNamespace("rstan"))
  boost <- if (nzchar(system.file("include", package = "BH"))) NULL else "/usr/include"
  file <- file.path(stan_folder, paste0(name, if (length(folder) == 0L) "_own", ".stan"))
  writeLines(case$stan, file)
  compiled <- rstan::stan_model(file, boost_lib = boost, model_name = name, auto_write = TRUE)
  init <- if (is.null(case$init)) list(case$at) else case$init
  if (name == "hmm_drive_1") {
    init <- with(case$at, list(list(theta = rbind(theta1, theta2), phi = cumsum(phi),
                                    lambda = cumsum(lambda))))
  }
  by_length(function(iter) {
    start <- sum(proc.time()[1:2])
    fit <- suppressWarnings(rstan::sampling(
      compiled, case$data, chains = 1, warmup = 0, iter = iter, refresh = 0, init = init, cores = 1,
      seed = 1, check_data = FALSE, pars = "lp__",
      control = list(adapt_engaged = FALSE, stepsize = step_size, max_treedepth = depth,
                     metric = "unit_e")))
    took <- sum(proc.time()[1:2]) - start
    stopifnot(attr(fit@sim$samples[[1L]], "sampler_params")$n_leapfrog__ == leapfrogs)
    took
  }, 10L, leapfrogs)
}

in_child <- function(name) {
  given <- c(script, paste0("child=", name), grep("^(library|posteriordb)=", commandArgs(TRUE),
                                                  value = TRUE))
  as.double(tail(system2(file.path(R.home("bin"), "Rscript"), shQuote(given), stdout = TRUE), 1L))
}

if (length(child) > 0L) {
  cat(stan_loop(child, models[[child]]()), "\n")
  quit("no")
}
if (length(asked) == 0L) asked <- names(models)
width <- max(nchar(asked))
cat(sprintf("%-*s %9s %9s %12s %9s%s\n", width, "model", "loop us", "from R", "4 chains s",
            "Stan us", if (with_rstan) "  rstan us  ratios" else ""))
ratios <- list()
for (name in asked) {
  case <- models[[name]]()
  f <- cl_gradient(case$f)
  ours <- c(in_loop(f, case$at, case$transform), program_loop(case))
  call <- least(function() do.call(f, case$at))
  cat(sprintf("%-*s %9.2f %9.2f %12.3f %9.2f", width, name, ours[1L], call, chains(f, case),
              ours[2L]))
  if (with_rstan) {
    theirs <- in_child(name)
    ratios[[name]] <- theirs / ours
    cat(sprintf(" %9.2f %s", theirs, paste(sprintf("%.2f", theirs / ours), collapse = " ")))
  }
  cat("\n")
}
if (with_rstan) {
  ratios <- do.call(rbind, ratios)
  summaries <- function(x) sprintf("median %.2f, least %.2f", stats::median(x), min(x))
  cat("R functions:", summaries(ratios[, 1L]), "\n")
  if (with_stan) cat("Stan programs:", summaries(ratios[, 2L]), "\n")
}
