# Cholesky factor, its adjoint and triangular solves, on the matrix of the Stan GPU paper:
# n - |i - j| off the diagonal, n^2 on it.

# Made on the device: at n = 32000 the host would take longer than all that is timed.
paper_matrix <- function(n) {
  i <- seq_len(n)
  difference <- cl_tcrossprod(as_cl(cbind(i, 1)), as_cl(cbind(1, -i)))
  n - abs(difference) + (n^2 - n) * (difference == 0)
}

# With products by 8-bit integers where these are expected to be faster, as after cl_tune() on a
# device that gains by them. STATCL_BENCH_ONLY with the lines "potrf 32000" and "potrf, integers
# 32000" times these two alone.
with_integers <- function(call) {
  set <- function(value) .Call(statcl:::r_tune, bench$where, "integer_products", value)
  set(1)
  on.exit(set(0))
  call()
}

for (n in wanted(sizes(gpu = c(128, 256, 512, 1000, 2000, 4000, 8000, 16000, 32000),
                       cpu = c(128, 256, 512)))) {
  if (!fits(n, 8)) break # the matrix, its factor, and what arithmetic holds on the way
  times <- if (n > 4000) 3L else 7L
  x <- paper_matrix(n)
  a <- if (n <= 2000) as.matrix(x)
  gc()
  measure("potrf", n, function() cl_chol(x, lower = TRUE), flops = n^3 / 3, times = times,
          host = if (!is.null(a)) function() chol(a))
  if (n >= 8000)
    with_integers(function() {
      measure("potrf, integers", n, function() cl_chol(x, lower = TRUE), flops = n^3 / 3,
              times = times)
    })
  rm(a)
  if (n > 16000) break
  l <- cl_chol(x, lower = TRUE)
  rm(x)
  adjoint <- as_cl(random_matrix(n))
  measure("potrf_adjoint", n, function() cl_chol_adjoint(l, adjoint), flops = 2 * n^3 / 3,
          times = times)
  measure("trsm", n, function() cl_tri_solve(l, adjoint), flops = n^3, times = times)
  rm(adjoint)
  b <- as_cl(matrix(rnorm(n), n))
  measure("trsv", n, function() cl_tri_solve(l, b), bytes = 4 * n^2, times = times)
  measure("trtri", n, function() cl_tri_inverse(l), flops = n^3 / 3, times = times)
  rm(b, l)
}
