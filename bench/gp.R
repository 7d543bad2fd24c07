# Gaussian processes: covariance matrices, the log marginal likelihood with its gradient, for a
# squared exponential kernel with a lengthscale for each of three inputs (the peers' problem), other
# kernels, leave-one-out; memory at the sizes that are asked of one device.

gp_par <- function(kernel) c(coef(kernel), noise = 0.3)

gp_problem <- function(n) list(x = matrix(10 * runif(3 * n), n), y = rnorm(n))

gp_kernel <- k_exp_quad(1, c(1, 1.5, 2))

gp_other <- list(
  sum = gp_kernel + k_matern52(0.5, 1),
  product = gp_kernel * k_periodic(1, 1, 3, columns = 1) + k_linear(0.2))

for (n in sizes(gpu = c(500, 1000, 2000, 4000, 8000, 16000), cpu = c(200, 500, 1000))) {
  times <- if (n > 4000) 3L else 7L
  d <- gp_problem(n)
  points <- as_cl(d$x)
  measure("covariance", n, function() cl_cov(points, kernel = gp_kernel), bytes = 8 * n^2,
          times = times, host = if (n <= 2000) {
            function() exp(-0.5 * as.matrix(dist(sweep(d$x, 2, c(1, 1.5, 2), "/")))^2)
          })
  f <- cl_gp_likelihood(d$y, points, gp_kernel)
  par <- gp_par(gp_kernel)
  # n^3 / 3 for the factor, 2 n^3 / 3 for the inverse from it.
  on_host <- if (n <= 2000) with_cl(cl_gp_likelihood(d$y, d$x, gp_kernel), engine = "host")
  measure("gp_lml_and_gradient", n, function() f(par), flops = n^3, by = "wall",
          times = times, host = if (n <= 2000) function() on_host(par))
  measure("gp_lml", n, function() f(par, gradient = FALSE), flops = n^3 / 3,
          by = "wall", times = times)
  rm(f, on_host)
  # n^3 more for the product that the gradient's weights are.
  loo <- cl_gp_likelihood(d$y, points, gp_kernel, objective = "loo")
  measure("gp_loo_and_gradient", n, function() loo(par), flops = 2 * n^3,
          by = "wall", times = times)
  rm(loo)
  for (name in names(gp_other)[n <= 4000]) {
    other <- gp_other[[name]]
    g <- cl_gp_likelihood(d$y, points, other)
    par_other <- gp_par(other)
    measure(paste0("gp_lml_and_gradient_", name), n, function() g(par_other), flops = n^3,
            by = "wall", times = times)
    rm(g)
  }
  rm(points)
}

# Two matrices of 7.2 and 28.8 GB; `peak` is the most that was held at any time in this session.
gc() # the matrices of the sizes before
for (n in sizes(gpu = c(30000, 60000), cpu = integer())) {
  if (!fits(n, 2)) next
  d <- gp_problem(n)
  f <- cl_gp_likelihood(d$y, as_cl(d$x), gp_kernel)
  measure("gp_lml_and_gradient", n, function() f(gp_par(gp_kernel)), flops = n^3, by = "wall",
          times = 1L, note = function() {
            sprintf("%.4g GB at most", max(cl_memory()$peak) / 1e9)
          })
  rm(f)
  gc()
}
