# Transforms of correlation and covariance matrices (R/trace-transforms.R). Values and derivatives
# are plain vectors, matrices stored by columns; unconstrained numbers are those of a lower
# triangle, by columns.

#' @rdname transforms
#' @export
cl_corr_factor <- function() {
  new_transform("the Cholesky factor of a correlation matrix",
                inside = function(x) is_corr_factor(as_square(x)),
                free = function(x) free_corr_factor(as_square(x)),
                value = function(u) as.vector(corr_factor(u)$l),
                jacobian = function(u, x) corr_factor_jacobian(corr_factor(u)),
                pull = function(u, x, slope) corr_factor_pull(corr_factor(u), as_square(slope)),
                size = below_diagonal, fits = is_order_two, lower = -1, upper = 1)
}

#' @rdname transforms
#' @export
cl_corr_matrix <- function() {
  log_diagonal <- function(l) (nrow(l) - seq_len(nrow(l))) * log(diag(l))
  new_transform("a correlation matrix",
                inside = function(x) {
                  x <- as_square(x)
                  max(abs(diag(x) - 1)) < 1e-8 && is_positive_definite(x)
                },
                free = function(x) free_corr_factor(t(chol(as_square(x)))),
                value = function(u) {
                  r <- tcrossprod(corr_factor(u)$l)
                  diag(r) <- 1
                  as.vector(r)
                },
                jacobian = function(u, x) {
                  factor <- corr_factor(u)
                  corr_factor_jacobian(factor) + sum(log_diagonal(factor$l)[-nrow(factor$l)])
                },
                pull = function(u, x, slope) {
                  factor <- corr_factor(u)
                  n <- nrow(factor$l)
                  by_factor <- factor_slope(factor$l, slope)
                  diag(by_factor) <- diag(by_factor) + (n - seq_len(n)) / diag(factor$l)
                  corr_factor_pull(factor, by_factor)
                }, size = below_diagonal, fits = is_order_two, lower = -1, upper = 1)
}

#' @rdname transforms
#' @export
cl_cov_matrix <- function() {
  factor_of <- function(u) {
    n <- as.integer(round((sqrt(8 * length(u) + 1) - 1) / 2))
    l <- matrix(0, n, n)
    l[lower.tri(l, TRUE)] <- u
    diag(l) <- exp(diag(l))
    l
  }
  powers <- function(n) n - seq_len(n) + 2
  new_transform("a covariance matrix",
                inside = function(x) is_positive_definite(as_square(x)),
                free = function(x) {
                  l <- t(chol(as_square(x)))
                  diag(l) <- log(diag(l))
                  l[lower.tri(l, TRUE)]
                },
                value = function(u) as.vector(tcrossprod(factor_of(u))),
                jacobian = function(u, x) {
                  l <- factor_of(u)
                  nrow(l) * log(2) + sum(powers(nrow(l)) * log(diag(l)))
                },
                pull = function(u, x, slope) {
                  l <- factor_of(u)
                  by_factor <- factor_slope(l, slope)
                  diag(by_factor) <- diag(by_factor) * diag(l) + powers(nrow(l))
                  by_factor[lower.tri(l, TRUE)]
                },
                size = function(n) as.integer(round((n + sqrt(n)) / 2)), fits = is_square_number)
}

is_square_number <- function(n) round(sqrt(n))^2 == n

is_order_two <- function(n) n >= 4 && is_square_number(n)

below_diagonal <- function(n) as.integer(round((n - sqrt(n)) / 2))

is_positive_definite <- function(x) {
  all(is.finite(x)) && isSymmetric(x, tol = 1e-8) &&
    !is.null(tryCatch(chol(x), error = function(e) NULL))
}

is_corr_factor <- function(l) {
  force(l)
  all(is.finite(l)) && all(l[upper.tri(l)] == 0) && all(diag(l) > 0) &&
    max(abs(rowSums(l^2) - 1)) < 1e-8
}

# From the derivatives with respect to all elements of L L' to those with respect to the lower
# triangle of L.
factor_slope <- function(l, slope) {
  slope <- as_square(slope)
  by_factor <- (slope + t(slope)) %*% l
  by_factor[upper.tri(l)] <- 0
  by_factor
}

# ---- factors of correlation matrices -------------------------------------------------------------

# list(l, and below its diagonal: z = tanh(u); c = sqrt(1 - z^2); s, the remainder of the row).
corr_factor <- function(u) {
  n <- as.integer(round((1 + sqrt(8 * length(u) + 1)) / 2))
  z <- matrix(0, n, n)
  c <- s <- matrix(1, n, n)
  below <- lower.tri(z)
  z[below] <- tanh(u)
  c[below] <- 1 / cosh(u)
  for (j in seq_len(n - 1L)) s[, j + 1L] <- s[, j] * c[, j]
  l <- z * s
  diag(l) <- diag(s)
  list(l = l, z = z, c = c, s = s, below = below)
}

free_corr_factor <- function(l) {
  left <- 1 - t(apply(cbind(0, l[, -ncol(l)]^2), 1L, cumsum))
  below <- lower.tri(l)
  atanh(l[below] / sqrt(left[below]))
}

corr_factor_jacobian <- function(f) sum(2 * log(f$c[f$below]) + log(f$s[f$below]))

# The gradient of F + log Jacobian with respect to u, from the derivatives of F with respect to the
# lower triangle. `by_s`: the derivatives with respect to the remainder of each row after column j.
corr_factor_pull <- function(f, slope) {
  force(slope)
  n <- nrow(f$l)
  by_u <- matrix(0, n, n)
  by_s <- diag(slope)
  for (j in (n - 1L):1L) {
    i <- (j + 1L):n
    z <- f$z[i, j]
    c <- f$c[i, j]
    s <- f$s[i, j]
    by_u[i, j] <- c * (slope[i, j] * s * c - by_s[i] * s * z) - 2 * z
    by_s[i] <- by_s[i] * c + slope[i, j] * z + 1 / s
  }
  by_u[f$below]
}
