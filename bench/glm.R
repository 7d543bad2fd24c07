# Generalised linear models: log likelihoods and gradients with the data on the device; one
# evaluation reads x and y once. "wall ms" is that of calls one after the other, without event
# times.

# Times f(...), where f is what make() gives: made twice, in a context without event times and in
# one with them.
measure_likelihood <- function(operation, make, arguments, n, p, ...) {
  if (!is_wanted(operation, sprintf("%dx%d", n, p))) return(invisible())
  large <- n * p > 1e7
  .Call(statcl:::r_profiling, FALSE)
  wall <- time_calls(call_of(make(), arguments), if (large) 50L else 1000L, if (large) 1L else 10L)
  .Call(statcl:::r_profiling, TRUE)
  measure(operation, sprintf("%dx%d", n, p), call_of(make(), arguments), bytes = 8 * n * (p + 1),
          by = "wall", times = 25L, wall = wall, ...)
}

# A function that calls f with these arguments, as one would write it.
call_of <- function(f, arguments) {
  force(f)
  run <- function() NULL
  body(run) <- as.call(c(list(as.name("f")), arguments))
  run
}

shapes <- wanted(sizes(
  gpu = list(c(1e4, 10), c(1e5, 10), c(1e6, 10), c(1e5, 100), c(1e6, 100), c(1e5, 500),
             c(1e6, 1000)),
  cpu = list(c(1e4, 10), c(1e5, 10), c(1e5, 100), c(2e4, 500))))
for (shape in shapes) {
  n <- shape[1L]
  p <- shape[2L]
  x <- random_matrix(n, p)
  beta <- rnorm(p) / sqrt(p)
  y <- as.double(runif(n) < plogis(x %*% beta))
  make <- function() cl_likelihood("bernoulli_logit", y, x)
  # The host engine stands for R here: glm() itself needs a pass over x for the value, another one
  # for the gradient.
  on_host <- if (n * p <= 1e8) with_cl(make(), engine = "host")
  measure_likelihood("glm_bernoulli_logit", make, list(0.1, beta), n, p,
                     peer = "bernoulli_logit_by_hand",
                     host = if (!is.null(on_host)) function() on_host(0.1, beta))
  rm(x, y, make, on_host)
  gc()
}

# The other families, and four parameter vectors in one evaluation.
shape <- sizes(gpu = list(c(1e6, 100)), cpu = list(c(1e5, 20)))[[1L]]
n <- shape[1L]
p <- shape[2L]
x <- random_matrix(n, p)
beta <- rnorm(p) / p
counts <- as.double(rpois(n, 2))
evaluations <- list(
  binomial_logit = list(counts, trials = 20), normal_id = list(counts, sigma = 2),
  poisson_log = list(counts), neg_binomial_2_log = list(counts, phi = 3),
  categorical_logit = list(), ordered_logistic = list(rep_len(1:4, n), cuts = c(-1, 0, 1)),
  bernoulli_logit = list(as.double(counts > 1)))
measure_family <- function(family, vectors = 1L, classes = NULL) {
  data <- evaluations[[family]]
  own <- data[intersect(names(data), c("sigma", "phi", "cuts"))]
  y <- if (is.null(classes)) data[[1L]] else rep_len(seq_len(classes), n)
  make <- function() cl_likelihood(family, y, x, trials = data$trials)
  columns <- max(classes, vectors)
  start <- if (columns > 1L) matrix(beta, p, columns) else beta
  measure_likelihood(paste0("glm_", family, if (vectors > 1L) paste(",", vectors, "vectors"),
                            if (!is.null(classes)) paste(",", classes, "classes")),
                     make, c(list(0.1, start), own), n, p)
}
for (family in setdiff(names(evaluations), c("bernoulli_logit", "categorical_logit"))) {
  measure_family(family)
}
for (classes in c(2:4, 8L, 40L)) measure_family("categorical_logit", classes = classes)
for (vectors in c(4L, 8L)) measure_family("bernoulli_logit", vectors)

# A whole fit by cl_glm(): Newton's method, some six evaluations with their Hessians. "resident": x
# is on the device already. The host engine next to it, and in the remark glm.fit() of base R, once.
for (shape in wanted(sizes(gpu = list(c(1e5, 50), c(1e6, 50)), cpu = list(c(2e4, 20))))) {
  n <- shape[1L]
  p <- shape[2L]
  # the numbers repeat after a prime number of them: no column is a copy of another
  x <- cbind(1, matrix(rep_len(rnorm(9999991), n * (p - 1)), n))
  y <- as.double(runif(n) < plogis(x %*% (rnorm(p) / sqrt(p))))
  on_device <- as_cl(x)
  fit <- function(x) cl_glm(x, y, intercept = FALSE)
  peer <- function() {
    if (n * p > 1e7) return("")
    sprintf("glm.fit() %.0f ms", 1000 * system.time(glm.fit(x, y, family = binomial()))[[3L]])
  }
  measure("glm_fit_bernoulli_logit", sprintf("%dx%d", n, p), function() fit(x), by = "wall",
          times = 5L, host = function() with_cl(fit(x), engine = "host"), note = peer)
  measure("glm_fit_bernoulli_logit, resident", sprintf("%dx%d", n, p), function() fit(on_device),
          by = "wall", times = 5L)
  rm(x, y, on_device)
  gc()
}
