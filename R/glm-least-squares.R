# The maximum of the likelihood of a normal linear model: least squares, without iterations.

# As glm_fit_mode(); `found` has also the covariance matrix and the residual sum of squares, and its
# theta is for the columns of x.
least_squares_mode <- function(problem, start) {
  data <- used_data(problem)
  core <- list(family = problem$family, problem = problem, data = data, classes = 1L,
               columns = ncol(problem$x), aux = "sigma", aux_count = 1L, logged = TRUE)
  y <- if (is.null(data$offset)) data$y else data$y - data$offset
  found <- if (basis_is_cheap(problem$x)) NULL else solve_by_products(problem, y)
  if (is.null(found)) found <- solve_by_rotation(problem, y)
  core <- free_columns(core, found$kept)
  core$data$x <- found$x
  if (!is.null(start)) start_beta(core, start)
  found <- least_squares_found(core, found)
  if (found$perfect) warn_perfect()
  list(core = core, found = found)
}

# y scaled to about 1, times the square roots of the weights: list(y, centre, unit): the given y is
# (y / sqrt(weights) + centre) * unit. If the columns contain a constant and all of y is near its
# mean, the mean is subtracted; that difference is exact. The unit is a power of two.
working_unit <- function(y, weights, centred) {
  if (only_asks()) return(list(y = y, centre = 0, unit = 1)) # spares passes over y
  ends <- c(min(y), max(y)) # of many rows each further vector is garbage that R has to collect
  if (!all(is.finite(ends))) {
    abort_argument("y", "the response (minus the offset) has missing or infinite values")
  }
  first <- power_of_two(max(abs(ends)))
  if (first > 2^-500 && first < 2^500) first <- 1 # no sum overflows
  if (first != 1) y <- y / first
  ends <- ends / first
  centre <- if (centred) sum(y) / length(y) else 0
  if (any(abs(ends - centre) > abs(centre) / 2)) centre <- 0
  second <- power_of_two(max(abs(ends - centre)))
  y <- (y - centre) / second
  list(y = if (is.null(weights)) y else y * sqrt(weights), centre = centre / second,
       unit = first * second)
}

# Both solvers give list(kept, unit (of columns), beta (in these units), root (of the kept columns:
# its inverse times its transpose is the inverse of X' W X), rss, y (working_unit()), ones (index of
# the constant column among those kept, 0 for none), constant (its value)).

# By Householder's QR of the columns, as lm().
solve_by_rotation <- function(problem, y) {
  w <- problem$row_weights
  found <- rotate(problem, w)
  ones <- match(found$ones, found$kept, 0L)
  y <- working_unit(y, w, ones > 0L)
  best <- .Call(r_least_squares, found$x, y$y, found$qr, found$aux, found$root)
  unit <- found$unit[found$kept]
  list(kept = found$kept, unit = unit, beta = best$beta, root = found$root,
       rss = sum(best$rest^2), y = y, ones = ones,
       constant = if (ones > 0L) used_x(problem)[1L, found$ones] / unit[ones])
}

# The first column of x that is the same number, not 0, in all rows; 0 for none.
constant_column <- function(x) {
  if (nrow(x) == 0L) return(0L)
  for (j in seq_len(ncol(x))) if (x[1L, j] != 0 && all(x[, j] == x[1L, j])) return(j)
  0L
}

# For large problems: by the cross-product matrix, refined with residuals until they no longer
# improve. NULL if the columns are too ill-conditioned.
solve_by_products <- function(problem, y) {
  x <- likelihood_x(problem)
  gram <- glm_gram(x, NULL)
  inside <- seq_len(ncol(problem$x))
  if (!all(is.finite(gram)) || any(diag(gram)[inside] < 1e-280)) return(NULL)
  columns <- independent_columns(gram[inside, inside, drop = FALSE], x, NULL,
                                 dependence(problem$family))
  if (columns$least < 1e-4) return(NULL)
  kept <- columns$columns
  size <- sqrt(diag(gram)[kept])
  root <- chol(gram[kept, kept, drop = FALSE] / tcrossprod(size))
  ones <- match(problem$intercept, kept, 0L)
  y <- working_unit(y, problem$row_weights, ones > 0L)
  beta <- numeric(ncol(x))
  rest <- target <- if (is_cl(x)) column_beside(y$y, x)
  last <- Inf
  for (i in 1:9) {
    if (is.null(target)) {
      slope <- .Call(r_rest, x, y$y, beta)
      rss <- slope[length(slope)]
    } else if (i > 1L) {
      rest <- target - cl_matmul(x, beta)
      cl_eval(rest)
      rss <- sum(rest^2)
    }
    if (i == 9L || (i > 1L && last <= 1e-26 * rss)) break
    if (!is.null(target)) slope <- as.vector(as.matrix(cl_crossprod(x, rest)))
    half <- backsolve(root, slope[kept] / size, transpose = TRUE)
    change <- sum(half^2)
    if (!is.finite(change)) return(NULL)
    if (change > last / 4) break
    last <- change
    beta[kept] <- beta[kept] + backsolve(root, half) / size
  }
  list(kept = kept, unit = rep(1, length(kept)), beta = beta[kept],
       root = root * rep(size, each = nrow(root)), rss = rss, y = y, ones = ones,
       constant = 1, x = if (is.null(problem$row_weights)) x)
}

# In the words of the summary of lm().
warn_perfect <- function() {
  statcl_warning("boundary", "essentially perfect fit: summary may be unreliable")
}

# Compares mean squares of residuals and fitted values, as lm() does.
is_perfect <- function(residual, fitted) is.finite(residual) && residual < fitted * 1e-30

# The same list as from glm_newton().
least_squares_found <- function(core, fit) {
  y <- fit$y
  n <- length(y$y)
  beta <- fit$beta
  if (fit$ones > 0L) beta[fit$ones] <- beta[fit$ones] + y$centre / fit$constant
  sigma <- sqrt(fit$rss / n)
  k <- length(beta)
  inverse <- .Call(r_solve_right, diag(k), fit$root) / fit$unit
  root <- inverse * sigma * y$unit
  dimnames(root) <- list(core$problem$names[core$kept], NULL)
  w <- core$problem$row_weights
  square <- drop(base::crossprod(y$y))
  value <- -n * (log(2 * pi) / 2 + log(sigma) + log(y$unit)) - n / 2 +
    if (is.null(w)) 0 else sum(log(w)) / 2
  list(theta = c(beta / fit$unit * y$unit, log(sigma) + log(y$unit)), value = value,
       objective = value, decrement = 0, converged = TRUE, message = "converged", iterations = 1L,
       held = FALSE, rss = fit$rss * y$unit^2,
       perfect = n > k && is_perfect(fit$rss / (n - k), y$centre^2 + square / n),
       covariance = list(vcov = base::tcrossprod(root), aux_error = sigma * y$unit / sqrt(2 * n),
                         root = root))
}

# As finish_glm(). As in lm(), sigma is the root of the residual sum of squares divided by the
# degrees of freedom.
finish_normal <- function(problem, mode) {
  core <- mode$core
  found <- mode$found
  x <- problem$x
  k <- core$beta_count
  beta <- rep(NA_real_, ncol(x))
  beta[core$kept] <- found$theta[seq_len(k)]
  names(beta) <- problem$names[seq_along(beta)]
  nobs <- glm_nobs(problem)
  df <- nobs - k
  ratio <- if (df > 0) nobs / df else NaN
  sigma <- exp(found$theta[[k + 1L]]) * sqrt(ratio)
  whole <- is_cl(core$data$x) && is.null(problem$rows) && is.null(problem$row_weights)
  eta <- if (whole) glm_eta(core, found$theta) else
    if (is_cl(x)) cl_matmul(x, zero_unless(beta)) else host_times(x, zero_unless(beta))
  end_asking(if (is_cl(eta)) eta)
  eta <- as.matrix(eta)
  dim(eta) <- NULL # as.vector() would copy
  if (!whole && !is.null(problem$offset)) eta <- eta + problem$offset
  if (!is.null(rownames(x))) names(eta) <- rownames(x)
  fit <- list(coefficients = beta, aux = c(sigma = sigma), aux_error = sigma / sqrt(2 * df),
              vcov = found$covariance$vcov * ratio,
              vcov.root = found$covariance$root * sqrt(ratio), logLik = found$value,
              objective = found$value, rank = k, family = problem$family, method = "ml",
              levels = NULL, kind = problem$kind, y = problem$y, trials = NULL,
              prior.weights = problem$weights, offset = problem$offset, nobs = nobs,
              converged = TRUE, message = found$message, iterations = 1L, decrement = 0,
              prior = NULL, intercept = problem$intercept, engine = glm_note(x),
              linear.predictors = eta,
              fitted.values = eta, df.residual = df,
              df.null = nobs - as.integer(problem$intercept > 0L), deviance = found$rss)
  w <- fit$prior.weights
  square <- (fit$y - null_mean(fit, fit$y, w))^2
  fit$null.deviance <- sum(if (is.null(w)) square else w * square)
  structure(fit, class = "cl_glm")
}

zero_unless <- function(beta) {
  beta[is.na(beta)] <- 0
  unname(beta)
}
