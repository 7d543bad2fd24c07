# The textbook formulas of Gaussian processes in plain R, all from one Cholesky factor. The kernel's
# matrices come from cl_cov() on the host, which test-covariance.R tests.
#
# `noise` is a standard deviation; `diagonal` the variances of the noise if they differ; `mean` a
# number, "estimate", or a matrix of columns whose coefficients are estimated.
plain_gp <- function(y, x, kernel, noise, mean = 0, diagonal = rep(noise^2, length(y))) {
  covariance <- function(a, b) on_host(cl_cov(a, b, kernel))
  n <- length(y)
  root <- chol(covariance(x, x) + diag(diagonal, n))
  solve_c <- function(b) backsolve(root, backsolve(root, b, transpose = TRUE))
  h <- if (is.character(mean)) matrix(1, n, 1) else if (is.matrix(mean)) mean
  inverse <- solve_c(diag(n))
  if (is.null(h)) {
    residual <- y - mean
    projected <- inverse
  } else {
    beta_cov <- solve(crossprod(h, solve_c(h)))
    beta <- drop(beta_cov %*% crossprod(h, solve_c(y)))
    residual <- drop(y - h %*% beta)
    projected <- inverse - solve_c(h) %*% beta_cov %*% t(solve_c(h))
  }
  a <- drop(solve_c(residual))
  value <- -sum(residual * a) / 2 - sum(log(diag(root))) - n * log(2 * pi) / 2
  list(mean = if (is.null(h)) mean else beta, weights = a, value = value,
       beta_cov = if (!is.null(h)) beta_cov,
       integrated = if (!is.null(h)) {
         value + determinant(beta_cov)$modulus[1] / 2 + ncol(h) * log(2 * pi) / 2
       },
       loo = list(mean = y - a / diag(projected), variance = 1 / diag(projected)),
       predict = function(at, estimated = !is.null(h), h_at = matrix(1, NROW(at), 1)) {
         k <- covariance(at, x)
         v <- covariance(at, at) - k %*% solve_c(t(k))
         m <- drop(k %*% a) + if (is.null(h)) mean else drop(h_at %*% beta)
         if (estimated) {
           u <- h_at - k %*% solve_c(h)
           v <- v + u %*% beta_cov %*% t(u)
         }
         list(mean = m, covariance = v)
       })
}

some_data <- function(n = 45, p = 2) {
  set.seed(n + p)
  x <- matrix(runif(n * p), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(5 * x[, 1]) + 0.3 * x[, p] + rnorm(n, sd = 0.1) + 2)
}

mixed_kernel <- k_exp_quad(1.2, 0.5) + k_matern32(0.4, c(0.8, 0.3)) + k_matern52(0.3, 1, "b")
