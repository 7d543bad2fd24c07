# Log densities of vectors, matrices and ordered categories (R/density.R).

# The upper Cholesky factor; NaN for a number that is not positive.
upper_factor <- function(a) {
  a <- as_square(a)
  if (any_traced(a)) return(chol(a))
  tryCatch(chol.default(a), error = function(e) a * NaN)
}

# log(det(A)) of A = U'U.
log_det <- function(u) 2 * sum(log(linear("diag", u)))

# Rows of x are observations; a vector is one observation. `chol`: the upper factor, as from chol().
dmvnorm_formula <- function(x, mean = 0, Sigma = NULL, log = FALSE, precision = NULL, chol = NULL,
                            lower = FALSE) {
  log <- density_flag(log, "log")
  given <- !vapply(list(Sigma, precision, chol), is.null, NA)
  if (sum(given) != 1L) {
    abort_argument("Sigma", "give one of 'Sigma', 'precision' and 'chol'")
  }
  d <- t(centred_rows(x, mean))
  n <- nrow(d)
  if (given[2L]) {
    u <- upper_factor(precision)
    rows <- linear("%*%", u, d)
    half_log_det <- -0.5 * log_det(u)
  } else {
    u <- if (given[1L]) upper_factor(Sigma) else as_square(chol)
    if (given[3L] && check_flag(lower, "lower")) u <- t(u)
    rows <- linear("backsolve", u, d, n, TRUE, TRUE)
    half_log_det <- 0.5 * log_det(u)
  }
  if (nrow(u) != n) {
    abort_argument("x", sprintf("'x' has %d columns, but the matrix is %d x %d", n, nrow(u),
                                ncol(u)))
  }
  value <- -0.5 * linear("colSums", square(rows)) - (half_log_det + n * log_sqrt_2pi)
  if (log) value else exp(value)
}

# x - mean with the mean subtracted from each row; a vector x is one row.
centred_rows <- function(x, mean) {
  if (is.null(dim(x))) {
    d <- x - mean
    dim(d) <- c(1L, length(d))
    return(d)
  }
  if (length(mean) == 1L || !is.null(dim(mean))) return(x - mean)
  if (length(mean) != ncol(x)) {
    abort_argument("mean", sprintf("'mean' has length %d, but 'x' has %d columns", length(mean),
                                   ncol(x)))
  }
  t(t(x) - mean)
}

# The density of the lower Cholesky factor L of a correlation matrix R whose density is proportional
# to det(R)^(eta - 1), with respect to the elements of L below the diagonal (Lewandowski, Kurowicka
# and Joe 2009; the form for L is Stan's).
dlkj_formula <- function(L, eta = 1, log = FALSE) {
  log <- density_flag(log, "log")
  L <- as_square(L)
  n <- nrow(L)
  k <- seq_len(n - 1L)
  valid <- eta > 0
  shape <- where(valid, eta, NaN)
  constant <- -0.25 * n * (n - 1) * base::log(pi)
  for (j in k) { # the logarithm of gamma(shape + (n - 1) / 2) / gamma(shape + (n - 1 - j) / 2)
    rise <- lgamma(0.5 * j) - density_op("lbeta", shape + 0.5 * (n - 1 - j), 0.5 * j)
    constant <- constant + rise
  }
  d <- linear("diag", L)[-1L]
  value <- constant + sum((n - 1 - k + 2 * (shape - 1)) * log(d))
  if (log) value else exp(value)
}

# The scale matrix is called Sigma, as in rWishart(): the mean is df Sigma.
dwishart_formula <- function(x, df, Sigma, log = FALSE) {
  log <- density_flag(log, "log")
  u <- upper_factor(Sigma)
  v <- upper_factor(x)
  n <- nrow(u)
  nu <- where(df > n - 1, df, NaN)
  # By Bartlett's factor of x for Sigma = I: squares on its diagonal are chi-squared, the numbers
  # below are normal. Terms of large df do not cancel.
  factor <- linear("backsolve", u, t(v), n, TRUE, TRUE)
  half <- 0.5 * square(linear("diag", factor))
  j <- seq_len(n) - 1
  value <- sum(density_op("gamma_power", half, 0.5 * (nu - j), 1) + 0.5 * j * log(half)) -
    0.5 * (n + 1) * log_det(v) - 0.25 * n * (n - 1) * base::log(pi)
  if (n > 1L) value <- value - 0.5 * sum(square(factor[lower.tri(diag(n))]))
  if (log) value else exp(value)
}

# P(x = k) = plogis(b) - plogis(a), where a = cuts[k - 1] - eta and b = cuts[k] - eta: its logarithm
# is log(1 - exp(a - b)) - log(1 + exp(-b)) - log(1 + exp(a)).
dordlogit_formula <- function(x, eta, cuts, log = FALSE) {
  log <- density_flag(log, "log")
  if (any_traced(x)) abort_argument("x", "'x' must be data: categories have no derivatives")
  n <- length(cuts)
  inside <- x >= 1 & x <= n + 1 & x == round(x)
  k <- ifelse(is.na(inside) | !inside, 1, x)
  # no infinite cuts, with which vector instructions are of no use; exp(-700) has no effect
  above <- where(k == n + 1, -700, eta - c(cuts, 0)[k])
  below <- where(k == 1, -700, c(cuts, 0)[ifelse(k == 1, n + 1, k - 1)] - eta)
  value <- -log1p_exp(above) - log1p_exp(below)
  if (n > 1L) {
    width <- log1m_exp(cuts[-n] - cuts[-1L])
    value <- value + c(width, 0)[ifelse(k == 1 | k == n + 1, n, k - 1)]
  }
  density_value(value, inside, TRUE, log, x, eta)
}
