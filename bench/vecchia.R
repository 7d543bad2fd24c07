# Vecchia's approximation of Gaussian processes, 30 neighbours, Matern 3/2, points in three
# dimensions: order and neighbours, value and gradient by three parameters, a fit from a data frame
# to its summary; value and gradient also grouped. The rate is in million points a second. On the
# host next to GpGp (CRAN), if it is installed: its call also computes the information matrix.

vecchia_m <- 30L
vecchia_par <- c(1, 0.1, 0.3)

vecchia_row <- function(operation, n, device, wall, peer = NA_real_) {
  add_row(data.frame(operation = operation, size = sprintf("%.0f", n), device_ms = device,
                     wall_ms = wall, rate = sprintf("%.3g million/s", n / wall / 1000),
                     peer_ms = peer, host_ms = NA_real_, floor_ms = NA_real_,
                     stringsAsFactors = FALSE), "wall")
}

elapsed_ms <- function(code) {
  start <- seconds()
  force(code)
  1000 * (seconds() - start)
}

vecchia_data <- function(n) list(x = matrix(runif(3 * n), n), y = rnorm(n))

vecchia_likelihood <- function(d, grouped = FALSE) {
  cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia", neighbours = vecchia_m,
                   grouped = grouped)
}

for (n in sizes(gpu = c(1e6, 1e7), cpu = 1e4)) {
  d <- vecchia_data(n)
  vecchia_row("vecchia: order and neighbours, upload", n, NA_real_,
              elapsed_ms(f <- vecchia_likelihood(d)))
  ms <- time_device(function() f(vecchia_par), 5L)
  vecchia_row("vecchia: value and gradient", n, ms$device, ms$wall)
  ms <- time_device(function() f(vecchia_par, gradient = FALSE), 5L)
  vecchia_row("vecchia: value", n, ms$device, ms$wall)
  rm(f)
  gc()
  if (n <= 1e6) {
    vecchia_row("vecchia: order, neighbours and blocks, upload", n, NA_real_,
                elapsed_ms(f <- vecchia_likelihood(d, TRUE)))
    ms <- time_device(function() f(vecchia_par), 5L)
    vecchia_row("vecchia: value and gradient, grouped", n, ms$device, ms$wall)
    ms <- time_device(function() f(vecchia_par, gradient = FALSE), 5L)
    vecchia_row("vecchia: value, grouped", n, ms$device, ms$wall)
    rm(f)
    gc()
  }
  rm(d)
}

n <- sizes(gpu = 1e6, cpu = 5e3)
d <- data.frame(a = runif(n), b = runif(n))
d$y <- sin(9 * d$a) * cos(7 * d$b) + 0.3 * rnorm(n)
vecchia_row("vecchia: fit and its summary", n, NA_real_, elapsed_ms({
  fit <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = vecchia_m, starts = 1)
  summary(fit)
}))
vecchia_row("vecchia: as many predictions, with intervals", n, NA_real_, elapsed_ms(
  predict(fit, data.frame(a = runif(n), b = runif(n)), interval = "prediction")))
rm(fit, d)

with_cl({
  n <- sizes(gpu = 1e5, cpu = 2e4)
  d <- vecchia_data(n)
  peer <- c(order = NA_real_, likelihood = NA_real_)
  if (!bench_alone && requireNamespace("GpGp", quietly = TRUE)) {
    peer[["order"]] <- elapsed_ms({
      order <- GpGp::order_maxmin(d$x)
      neighbours <- GpGp::find_ordered_nn(d$x[order, ], vecchia_m)
    })
    peer[["likelihood"]] <- elapsed_ms(GpGp::vecchia_profbeta_loglik_grad_info(
      c(1, 0.1, 0.09), "matern15_isotropic", d$y[order], matrix(1, n), d$x[order, ], neighbours))
    note_peers("Peer of the lines on the host: GpGp.")
  }
  vecchia_row("vecchia: order and neighbours, on the host", n, NA_real_,
              elapsed_ms(f <- vecchia_likelihood(d)), peer[["order"]])
  vecchia_row("vecchia: value and gradient, on the host", n, NA_real_,
              elapsed_ms(f(vecchia_par)), peer[["likelihood"]])
  f <- vecchia_likelihood(d, TRUE)
  vecchia_row("vecchia: value and gradient, grouped, on the host", n, NA_real_,
              elapsed_ms(f(vecchia_par)))
}, engine = "host")
