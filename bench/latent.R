# Latent fields of counts: chains with several metrics, and nested Laplace approximations.
#
#   Rscript bench/latent.R [cells ...]
#
# Processor time on the host, preparations included. ess: the smallest of all parameters and of the
# hyperparameters. `mean`, `quantile`: the largest differences of cl_laplace(random = ) from the
# chains with the sparse metric, in standard deviations, of means and of 5%, 50% and 95% quantiles.
library(statcl)
cl_use(engine = "host")
cells <- as.integer(commandArgs(TRUE))
if (length(cells) == 0L) cells <- 300L

processor_time <- function(expr) {
  start <- sum(proc.time()[1:2])
  force(expr)
  sum(proc.time()[1:2]) - start
}

autoregression <- function(n) {
  y <- rpois(n, exp(0.5 + as.numeric(stats::arima.sim(list(ar = 0.9), n, sd = 0.3))))
  list(init = list(log_sd = -1, logit = 2, b = 0, x = numeric(n)), random = c("b", "x"),
       density = cl_gradient(function(log_sd, logit, b, x) {
         sd <- exp(log_sd)
         rho <- 2 * plogis(logit) - 1
         dnorm(log_sd, -1, 0.7, log = TRUE) + dnorm(logit, 2, 1, log = TRUE) +
           dnorm(b, 0, 3, log = TRUE) + dnorm(x[1], 0, sd / sqrt(1 - rho^2), log = TRUE) +
           sum(dnorm(x[-1], rho * x[-n], sd, log = TRUE)) + sum(dpois(y, exp(b + x), log = TRUE))
       }))
}

second_differences <- function(n) {
  y <- rpois(n, exp(1 + sin(seq_len(n) / n * 9)))
  list(init = list(log_sd = -4, x = rep(log(mean(y)), n)), random = "x",
       density = cl_gradient(function(log_sd, x) {
         dnorm(log_sd, -4, 1, log = TRUE) + sum(dnorm(x[1:2], 1, 2, log = TRUE)) +
           sum(dnorm(x[3:n] - 2 * x[2:(n - 1)] + x[1:(n - 2)], 0, exp(log_sd), log = TRUE)) +
           sum(dpois(y, exp(x), log = TRUE))
       }))
}

areas <- function(n) {
  m <- round(sqrt(n))
  id <- matrix(seq_len(m * m), m)
  edges <- rbind(cbind(as.vector(id[-1, ]), as.vector(id[-m, ])),
                 cbind(as.vector(id[, -1]), as.vector(id[, -m])))
  y <- rpois(m * m, 3 * exp(as.vector(outer(1:m, 1:m, function(i, j) sin(i / 4) * cos(j / 5)))))
  list(init = list(log_sd = -1, b = 1, x = numeric(m * m)), random = c("b", "x"),
       density = cl_gradient(function(log_sd, b, x) {
         d <- x[edges[, 1]] - x[edges[, 2]]
         dnorm(log_sd, -1, 0.7, log = TRUE) + dnorm(b, 0, 3, log = TRUE) - (m * m - 1) * log_sd -
           sum(d^2) / (2 * exp(2 * log_sd)) - 0.005 * sum(x^2) +
           sum(dpois(y, exp(b + x), log = TRUE))
       }))
}

compare <- function(name, make, n) {
  set.seed(1)
  model <- make(n)
  fits <- list()
  rows <- lapply(c("diag", "auto", "sparse"), function(metric) {
    seconds <- processor_time(fits[[metric]] <<- suppressWarnings(
      cl_sample(model$density, model$init, chains = 2, metric = metric, seed = 1, refresh = 0)))
    table <- summary(fits[[metric]])
    hyper <- !sub("\\[.*", "", table$parameter) %in% model$random
    size <- min(table$ess_bulk)
    data.frame(model = name, cells = n, by = metric, seconds = seconds,
               gradients = mean(fits[[metric]]$diagnostics$leapfrogs), ess = size,
               hyper_ess = min(table$ess_bulk[hyper]), ess_a_second = size / seconds,
               rhat = max(table$rhat), mean = NA, quantile = NA)
  })
  seconds <- processor_time(fit <- cl_laplace(model$density, model$init, random = model$random,
                                              seed = 1))
  a <- summary(fit)
  b <- summary(fits$sparse)
  difference <- function(columns) {
    max(abs(as.matrix(as.data.frame(a)[columns]) - as.matrix(as.data.frame(b)[columns])) / b$sd)
  }
  rbind(do.call(rbind, rows),
        data.frame(model = name, cells = n, by = "laplace", seconds = seconds, gradients = NA,
                   ess = NA, hyper_ess = NA, ess_a_second = NA, rhat = NA,
                   mean = difference("mean"), quantile = difference(c("5%", "50%", "95%"))))
}

for (n in cells) {
  for (name in c("autoregression", "second_differences", "areas")) {
    print(compare(name, get(name), n), digits = 3, row.names = FALSE)
  }
}
