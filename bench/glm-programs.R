# Regressions as compiled functions on the host, next to cl_likelihood() of the same data: an R
# function, and a Stan program by a statement of vectors, a loop over the rows and the density of
# linear models. Milliseconds of processor time of a value and a gradient.
#   Rscript bench/glm-programs.R [rows columns]
library(statcl)
cl_use(engine = "host")
shape <- as.numeric(commandArgs(TRUE))
n <- if (length(shape) == 2L) shape[1L] else 1e5
p <- if (length(shape) == 2L) shape[2L] else 30
set.seed(1)
x <- matrix(rnorm(n * p), n)
beta <- rnorm(p) / 20
eta <- c(x %*% beta)

# The name of the family, its further parameter, the response, the R function, and the statements of
# Stan by the predictor `e`.
models <- list(
  poisson = list(family = "poisson_log", y = rpois(n, exp(eta)), f = function(alpha, beta) {
    sum(dpois(y, exp(alpha + c(x %*% beta)), log = TRUE))
  }, stan = "poisson_log", more = ""),
  bernoulli = list(family = "bernoulli_logit", y = rbinom(n, 1, plogis(eta)),
                   f = function(alpha, beta) {
    sum(dbinom(y, 1, plogis(alpha + c(x %*% beta)), log = TRUE))
  }, stan = "bernoulli_logit", more = ""),
  normal = list(family = "normal_id", y = eta + rnorm(n), f = function(alpha, beta, sigma) {
    sum(dnorm(y, alpha + c(x %*% beta), sigma, log = TRUE))
  }, stan = "normal", more = "sigma"),
  "negative binomial" = list(family = "neg_binomial_2_log",
                             y = as.integer(rnbinom(n, 3, mu = exp(eta))),
                             f = function(alpha, beta, phi) {
    sum(dnbinom(y, mu = exp(alpha + c(x %*% beta)), size = phi, log = TRUE))
  }, stan = "neg_binomial_2_log", more = "phi"))

milliseconds <- function(run) {
  run()
  count <- max(3, round(3e7 / (n * p)))
  1000 * min(vapply(1:7, function(i) {
    sum(system.time(for (k in seq_len(count)) run())[1:2]) / count
  }, 0))
}

cat("| family | cl_likelihood() | R function | vectors | loop | *_glm |\n",
    "|---|---:|---:|---:|---:|---:|\n", sep = "")
for (name in names(models)) {
  m <- models[[name]]
  y <- m$y
  at <- c(list(alpha = 0.1, beta = beta), if (nzchar(m$more)) stats::setNames(list(1.3), m$more))
  more <- if (nzchar(m$more)) paste0(", ", m$more) else ""
  program <- function(statement) {
    model <- cl_stan(code = sprintf(
      "data { int N; int p; matrix[N, p] X; %s y; }
       parameters { real alpha; vector[p] beta; %s } model { %s }",
      if (is.integer(y)) "array[N] int" else "vector[N]",
      if (nzchar(m$more)) sprintf("real<lower=0> %s;", m$more) else "", statement))
    f <- model(list(N = n, p = p, X = x, y = y))
    function() do.call(f, at)
  }
  likelihood <- cl_likelihood(m$family, y, x)
  compiled <- cl_gradient(m$f)
  runs <- list(
    function() do.call(likelihood, at), function() do.call(compiled, at),
    program(sprintf("y ~ %s(alpha + X * beta%s);", m$stan, more)),
    program(sprintf("for (i in 1:N) y[i] ~ %s(alpha + X[i] * beta%s);", m$stan, more)),
    program(sprintf("y ~ %s_glm(X, alpha, beta%s);", sub("^normal$", "normal_id", m$stan), more)))
  values <- vapply(runs[-1L], function(run) as.numeric(run()), 0)
  stopifnot(abs(values - values[1L]) < 1e-8 * abs(values[1L]))
  cat(sprintf("| %s | %s |\n", name, paste(sprintf("%.2f", vapply(runs, milliseconds, 0)),
                                           collapse = " | ")))
}
