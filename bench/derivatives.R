# Values, gradients and Hessians of models of everyday size, as plain R functions, on the host: the
# least of many batches of about 2 ms each, in microseconds a call. With the folder of an installed
# package as the argument, that one is measured: run it for two of them in turn to compare versions.
#
#   Rscript bench/derivatives.R [library]
library(statcl, lib.loc = if (length(commandArgs(TRUE)) > 0L) commandArgs(TRUE)[1L])
cl_use(engine = "host")
set.seed(1)

least <- function(call, batches = 200L) {
  call()
  once <- system.time(for (k in 1:20) call())[["elapsed"]] / 20
  many <- max(1, floor(2e-3 / max(once, 1e-6)))
  best <- Inf
  for (batch in seq_len(batches)) {
    start <- Sys.time()
    for (k in seq_len(many)) call()
    best <- min(best, as.double(Sys.time() - start, units = "secs") / many)
  }
  best * 1e6
}

show <- function(name, f, ..., of = cl_gradient) {
  model <- of(f)
  point <- list(...)
  cat(sprintf("%-28s %9.1f\n", name, least(function() do.call(model, point))))
}

y8 <- c(28, 8, -3, 7, -1, 1, 18, 12)
sigma8 <- c(15, 10, 16, 11, 9, 11, 10, 18)
schools <- function(mu, tau, z) {
  sum(dnorm(y8, mu + tau * z, sigma8, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
    dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
}
show("eight schools", schools, mu = 1, tau = 2, z = (1:8) / 8)
show("eight schools, Hessian", schools, mu = 1, tau = 2, z = (1:8) / 8, of = cl_hessian)

n <- 10000L
x <- rnorm(n)
y <- rnorm(n)
group <- rep_len(1:100, n)
show("groups, 1e4 rows", function(mu, tau, sigma, a) {
  sum(dnorm(y, mu + exp(tau) * a[group] + x, exp(sigma), log = TRUE)) + sum(dnorm(a, log = TRUE))
}, mu = 0.1, tau = -0.5, sigma = 0.1, a = rnorm(100) / 10)
show("mixture, 1e4 rows", function(m, s, w) {
  p <- plogis(w)
  sum(log(p * dnorm(x, m[1], exp(s[1])) + (1 - p) * dnorm(x, m[2], exp(s[2]))))
}, m = c(-1, 1), s = c(0, 0.1), w = 0.2)

count <- rpois(5000, 3)
z <- rnorm(5000)
poisson <- function(a, b) sum(dpois(count, exp(a + b * z), log = TRUE))
show("Poisson, 5000 rows", poisson, a = 0.1, b = 0.1)
show("Poisson, Hessian", poisson, a = 0.1, b = 0.1, of = cl_hessian)

at <- sort(runif(100, 0, 10))
process <- function(s, l, noise, n = 100L) {
  dmvnorm(sin(at[1:n]), 0, cl_cov(at[1:n], kernel = k_matern52(s, l)) + noise^2 * diag(n),
          log = TRUE)
}
show("Gaussian process, n = 100", function(s, l, u) process(s, l, u), s = 1.2, l = 0.8, u = 0.3)
show("n = 30, Hessian", function(s, l, u) process(s, l, u, 30L), s = 1.2, l = 0.8, u = 0.3,
     of = cl_hessian)

series <- cumsum(rnorm(500))
show("Kalman filter, 500 steps", function(q, r) {
  move <- matrix(c(1, 0, 1, 1), 2)
  see <- matrix(c(1, 0), 1)
  sum(cl_scan(function(s, v) {
    m <- move %*% s[1:2]
    p <- move %*% matrix(s[3:6], 2) %*% t(move) + diag(q, 2)
    total <- (see %*% p %*% t(see))[1] + r
    gain <- p %*% t(see) / total
    list(state = c(m + gain * (v - m[1]), p - gain %*% see %*% p),
         out = dnorm(v, m[1], sqrt(total), log = TRUE))
  }, c(0, 0, 1, 0, 0, 1), series)$out)
}, q = 0.1, r = 1)
