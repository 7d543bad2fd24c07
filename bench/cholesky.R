# Cholesky factor, its adjoint and triangular solves, on the matrix of the Stan GPU paper:
# n - |i - j| off the diagonal, n^2 on it.

paper_matrix <- function(n) {
  a <- n - abs(outer(seq_len(n), seq_len(n), `-`))
  diag(a) <- n^2
  a
}

for (n in sizes(gpu = c(128, 256, 512, 1000, 2000, 4000, 8000, 16000), cpu = c(128, 256, 512))) {
  times <- if (n > 4000) 3L else 7L
  host <- n <= 2000
  a <- paper_matrix(n)
  x <- as_cl(a)
  measure("potrf", n, function() cl_chol(x, lower = TRUE), flops = n^3 / 3, times = times,
          host = if (host) function() chol(a))
  rm(a)
  l <- cl_chol(x, lower = TRUE)
  rm(x)
  adjoint <- as_cl(matrix(rnorm(n * n), n))
  measure("potrf_adjoint", n, function() cl_chol_adjoint(l, adjoint), flops = 2 * n^3 / 3,
          times = times)
  measure("trsm", n, function() cl_tri_solve(l, adjoint), flops = n^3, times = times)
  rm(adjoint)
  b <- as_cl(matrix(rnorm(n), n))
  measure("trsv", n, function() cl_tri_solve(l, b), bytes = 4 * n^2, times = times)
  measure("trtri", n, function() cl_tri_inverse(l), flops = n^3 / 3, times = times)
  rm(b, l)
}
