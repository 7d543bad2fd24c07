# Products of square matrices that lie on the device, the symmetric product, shapes of statistics.

for (n in wanted(sizes(gpu = c(1024, 2048, 4096, 8192), cpu = c(128, 256, 512)))) {
  a <- random_matrix(n)
  b <- random_matrix(n)
  x <- as_cl(a)
  y <- as_cl(b)
  measure("gemm", n, function() cl_matmul(x, y), flops = 2 * n^3,
          host = if (n <= 2048) function() a %*% b)
  measure("crossprod", n, function() cl_crossprod(x), flops = n^3,
          host = if (n <= 2048) function() crossprod(a))
  rm(a, b, x, y)
}

for (n in wanted(sizes(gpu = c(1e5, 1e6), cpu = 1e4))) {
  k <- 100
  x <- as_cl(random_matrix(n, k))
  beta <- as_cl(matrix(rnorm(k), k))
  size <- sprintf("%.0fx%.0f", n, k)
  measure("matrix-vector", size, function() cl_eval(cl_matmul(x, beta)), bytes = 8 * n * k)
  measure("crossprod", size, function() cl_crossprod(x), flops = n * k^2)
  rm(x, beta)
}

# The kernels that every GPU with double precision can run. A context decides once which it uses.
with_portable <- function(run) {
  Sys.setenv(STATCL_VARIANT = "portable")
  .Call(statcl:::r_profiling, TRUE) # the next matrix opens a context
  on.exit({
    Sys.unsetenv("STATCL_VARIANT")
    .Call(statcl:::r_profiling, TRUE)
  })
  run()
}

with_portable(function() {
  for (n in wanted(sizes(gpu = c(2048, 4096, 8192), cpu = 256))) {
    x <- as_cl(random_matrix(n))
    y <- as_cl(random_matrix(n))
    measure("gemm, portable", n, function() cl_matmul(x, y), flops = 2 * n^3, peer = "gemm")
    measure("crossprod, portable", n, function() cl_crossprod(x), flops = n^3)
    rm(x, y)
  }
})
