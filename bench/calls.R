# Everyday calls at sizes where what is around the work counts: what wall exceeds device by is
# R, launches, and waiting for the result.

for (n in wanted(sizes(gpu = c(512, 1000), cpu = 64))) {
  m <- crossprod(matrix(rnorm(2 * n^2), 2 * n)) / n
  a <- as_cl(m)
  s <- cl_matrix(m, n, n, view = "symmetric")
  u <- chol(a)
  b <- as_cl(matrix(rnorm(n)))
  f <- cl_gp_likelihood(as.vector(b), matrix(rnorm(3 * n), n), k_exp_quad())
  calls <- list(
    "chol(a)" = function() chol(a),
    "solve(s)" = function() solve(s),
    "solve(s, b)" = function() solve(s, b),
    "determinant(s)" = function() determinant(s),
    "chol2inv(u)" = function() chol2inv(u),
    "backsolve(u, b)" = function() backsolve(u, b),
    "a %*% a" = function() a %*% a,
    "a %*% b" = function() a %*% b,
    "crossprod(a)" = function() crossprod(a),
    "sum(a)" = function() sum(a),
    "rowSums(a)" = function() rowSums(a),
    "a[1, 2]" = function() a[1, 2],
    "t(a)" = function() t(a),
    "cl_gp_likelihood" = function() f(c(sd = 1, lengthscale = 1, noise = 0.5)))
  for (name in names(calls)) measure(name, n, calls[[name]], times = 15L)
}
