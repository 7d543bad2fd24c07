# Models as plain R functions: value and gradient by cl_gradient() and by RTMB, on the host.
#
#   Rscript bench/rtmb.R
#
# needs RTMB (CRAN). Both evaluate the same log density at the same points, once for the value and
# once for the gradient, as optimisers do. Processor time, the best of three rounds, in us.
suppressMessages({
  library(statcl)
  library(RTMB)
})
cl_use(engine = "host")
set.seed(1)

processor_us <- function(f, times) {
  f()
  1e6 * min(replicate(3, {
    start <- sum(proc.time()[1:2])
    for (i in seq_len(times)) f()
    (sum(proc.time()[1:2]) - start) / times
  }))
}

# `density`: a function of one list of parameters.
compare <- function(label, density, start, times) {
  theirs <- RTMB::MakeADFun(function(p) -density(p), start, silent = TRUE)
  begin <- proc.time()[[3]]
  compiled <- cl_gradient(density)
  compiled(start)
  first <- proc.time()[[3]] - begin
  ours <- cl_objective(compiled, init = start)
  x <- theirs$par
  both <- function(objective) {
    force(objective)
    function() {
      objective$fn(x + 1e-8 * stats::rnorm(1))
      objective$gr(x)
    }
  }
  stopifnot(all.equal(as.vector(theirs$gr(x)), as.vector(ours$gr(x)), tolerance = 1e-8))
  data.frame(model = label, rtmb_us = processor_us(both(theirs), times),
             statcl_us = processor_us(both(ours), times), first_call_s = first)
}

n <- 1e5
x <- matrix(rnorm(n * 10), n)
y <- rbinom(n, 1, 0.5)
effect <- c(28, 8, -3, 7, -1, 1, 18, 12)
error <- c(15, 10, 16, 11, 9, 11, 10, 18)
person <- rep(1:316, 24)
item <- rep(1:24, each = 316)
answer <- rbinom(316 * 24, 1, 0.5)
distance2 <- as.matrix(dist(sort(runif(500, 0, 10))))^2
response <- rnorm(500)
walk <- cumsum(rnorm(1000))

rows <- list(
  compare("logistic regression, 1e5 x 10", function(p) {
    sum(dbinom(y, 1, plogis(x %*% p$b), log = TRUE))
  }, list(b = rep(0.1, 10)), 5),
  compare("eight schools", function(p) {
    theta <- p$mu + exp(p$log_tau) * p$z
    sum(dnorm(effect, theta, error, log = TRUE)) + sum(dnorm(p$z, 0, 1, log = TRUE)) +
      dnorm(p$mu, 0, 5, log = TRUE) + dnorm(p$log_tau, 0, 1, log = TRUE)
  }, list(mu = 1, log_tau = 0.3, z = rep(0.1, 8)), 2000),
  compare("item response, 316 x 24", function(p) {
    eta <- exp(p$a[item]) * (p$theta[person] - p$b[item])
    sum(dbinom(answer, 1, plogis(eta), log = TRUE)) + sum(dnorm(p$theta, 0, 1, log = TRUE))
  }, list(theta = rnorm(316), a = rnorm(24, 0, 0.1), b = rnorm(24)), 100),
  compare("Gaussian process, n = 500", function(p) {
    k <- exp(p$s) * exp(-0.5 * distance2 * exp(p$l)) + diag(0.1, 500)
    dmvnorm(response, 0, k, log = TRUE)
  }, list(s = 0.2, l = 0.3), 2),
  compare("random walk, 1000 steps", function(p) {
    sum(dnorm(diff(p$u), 0, exp(p$log_sd), log = TRUE)) + sum(dnorm(walk, p$u, 1, log = TRUE))
  }, list(u = walk + rnorm(1000, 0, 0.1), log_sd = 0.1), 200)
)
table <- do.call(rbind, rows)
table$ratio <- table$rtmb_us / table$statcl_us
print(table, digits = 3, row.names = FALSE)
