# Generalised linear models: log likelihoods and gradients with the data on the device; one
# evaluation reads x and y once.

shapes <- sizes(gpu = list(c(1e4, 10), c(1e5, 10), c(1e6, 10), c(1e5, 100), c(1e6, 100),
                           c(1e5, 500), c(1e6, 1000)),
                cpu = list(c(1e4, 10), c(1e5, 10), c(1e5, 100), c(2e4, 500)))
for (shape in shapes) {
  n <- shape[1L]
  p <- shape[2L]
  x <- random_matrix(n, p)
  beta <- rnorm(p) / sqrt(p)
  y <- as.double(runif(n) < plogis(x %*% beta))
  f <- cl_likelihood("bernoulli_logit", y, x)
  # The host engine stands for R here: glm() itself needs a pass over x for the value, another one
  # for the gradient.
  on_host <- if (n * p <= 1e8) with_cl(cl_likelihood("bernoulli_logit", y, x), engine = "host")
  measure("glm_bernoulli_logit", sprintf("%dx%d", n, p), function() f(0.1, beta),
          bytes = 8 * n * (p + 1), peer = "bernoulli_logit_by_hand", by = "wall", times = 25L,
          host = if (!is.null(on_host)) function() on_host(0.1, beta))
  rm(x, y, f, on_host)
  gc()
}

# The other families, and four parameter vectors in one evaluation.
shape <- sizes(gpu = list(c(1e6, 100)), cpu = list(c(1e5, 20)))[[1L]]
n <- shape[1L]
p <- shape[2L]
x <- as_cl(random_matrix(n, p))
beta <- rnorm(p) / p
counts <- as.double(rpois(n, 2))
classes <- rep_len(as.double(1:4), n)
evaluations <- list(
  binomial_logit = list(counts, trials = 20), normal_id = list(counts, sigma = 2),
  poisson_log = list(counts), neg_binomial_2_log = list(counts, phi = 3),
  categorical_logit = list(classes), ordered_logistic = list(classes, cuts = c(-1, 0, 1)),
  bernoulli_logit = list(as.double(counts > 1)))
measure_family <- function(family, vectors = 1L) {
  data <- evaluations[[family]]
  own <- data[intersect(names(data), c("sigma", "phi", "cuts"))]
  f <- cl_likelihood(family, data[[1L]], x, trials = data$trials)
  columns <- if (family == "categorical_logit") 4L else vectors
  start <- if (columns > 1L) matrix(beta, p, columns) else beta
  measure(paste0("glm_", family, if (vectors > 1L) paste(",", vectors, "vectors")),
          sprintf("%dx%d", n, p), function() do.call(f, c(list(0.1, start), own)),
          bytes = 8 * n * (p + 1), by = "wall", times = 15L)
}
for (family in setdiff(names(evaluations), "bernoulli_logit")) measure_family(family)
measure_family("bernoulli_logit", 4L)
