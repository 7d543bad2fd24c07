# Generalised linear models: log likelihood and gradient of logistic regression with the data on the
# device; one evaluation reads x and y once.

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
