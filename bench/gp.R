# Gaussian processes: covariance matrices, and the log marginal likelihood with its gradient, for a
# squared exponential kernel with a lengthscale for each of three inputs (the peer's problem), and a
# sum of two kernels.

for (n in sizes(gpu = c(500, 1000, 2000, 4000, 8000, 16000), cpu = c(200, 500, 1000))) {
  times <- if (n > 4000) 3L else 7L
  kernel <- k_exp_quad(1, c(1, 1.5, 2))
  par <- c(coef(kernel), noise = 0.3)
  x <- matrix(10 * runif(3 * n), n)
  y <- rnorm(n)
  points <- as_cl(x)
  measure("covariance", n, function() cl_cov(points, kernel = kernel), bytes = 8 * n^2,
          times = times, host = if (n <= 2000) {
            function() exp(-0.5 * as.matrix(dist(sweep(x, 2, c(1, 1.5, 2), "/")))^2)
          })
  f <- cl_gp_likelihood(y, points, kernel)
  # n^3 / 3 for the factor, 2 n^3 / 3 for the inverse from it.
  on_host <- with_cl(cl_gp_likelihood(y, x, kernel), engine = "host")
  measure("gp_lml_and_gradient", n, function() f(par), flops = n^3, by = "wall", times = times,
          host = if (n <= 2000) function() on_host(par))
  measure("gp_lml", n, function() f(par, gradient = FALSE), flops = n^3 / 3, by = "wall",
          times = times)
  rm(f, on_host)
  if (n <= 4000) {
    both <- kernel + k_matern52(0.5, 1)
    g <- cl_gp_likelihood(y, points, both)
    measure("gp_lml_and_gradient_sum", n, function() g(c(coef(both), noise = 0.3)), flops = n^3,
            by = "wall", times = times)
    rm(g)
  }
  rm(points)
}
