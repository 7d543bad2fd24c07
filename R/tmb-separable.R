# dseparable() of RTMB: the density of an array whose covariance matrix is the Kronecker product of
# those of its margins. The density of a margin is a function; it is called with an axis, for which
# densities give their precision matrix and its determinant.

new_axis <- function(n) {
  structure(list2env(list(n = n), parent = emptyenv()), class = "cl_axis")
}

is_axis <- function(x) is.environment(x) && inherits(x, "cl_axis")

#' @export
length.cl_axis <- function(x) x$n

# `of`: list(precision, log_det) for scale 1.
of_axis <- function(axis, of, mu, log, scale) {
  precision <- of[[1L]]
  if (!identical(as.double(mu), 0) || !isTRUE(as.logical(log)) || length(scale) != 1L) {
    trace_stop(paste("in a function given to dseparable() a density has mu = 0, log = TRUE and one",
                     "number as 'scale'"))
  }
  if (!identical(scale, 1)) {
    by <- 1 / square(scale)
    sparse <- is_sparse(precision) || is_traced_sparse(precision)
    precision <- if (sparse && any_traced(precision, by)) sparse_arithmetic("*", precision, by) else
      precision * by
  }
  structure(list(precision = precision, log_det = of[[2L]] - 2 * axis$n * base::log(scale)),
            class = "cl_axis_density")
}

# With A the rows of the regressions on what comes before and D the variances, Q = A' D^-1 A.
axis_autoreg <- function(axis, phi) {
  n <- axis$n
  order <- min(length(phi), n - 1L)
  lower <- autoreg_lower(phi)
  variance <- 1
  variances <- list(variance)
  for (j in seq_len(order)) {
    variance <- variance * (1 - square(lower[[j]][j]))
    variances[[j + 1L]] <- variance
  }
  variances <- do.call(combine_numbers, c(variances, rep(list(variance), n - 1L - order)))
  i <- j <- seq_len(n)
  elements <- list(rep(1, n))
  for (lag in seq_len(order)) {
    rows <- (lag + 1L):n
    i <- c(i, rows)
    j <- c(j, rows - lag)
    elements <- c(elements, lapply(rows, function(row) -lower[[min(row - 1L, length(phi))]][lag]))
  }
  elements <- do.call(combine_numbers, elements) / sqrt(variances[i])
  log_det <- -sum(log(variances))
  if (any_traced(elements)) {
    a <- gathered(elements, i - 1L, j - 1L, c(n, n))
    return(list(sparse_product(a, a, 1L), log_det))
  }
  a <- matrix(0, n, n)
  a[cbind(i, j)] <- elements
  list(sparse_if_possible(crossprod(a)), log_det)
}

sparse_if_possible <- function(q) {
  if (requireNamespace("Matrix", quietly = TRUE)) Matrix::Matrix(q, sparse = TRUE) else q
}

axis_precision <- function(Q) {
  if (is_sparse(Q) || is_traced_sparse(Q)) return(list(Q, sparse_log_det(Q)))
  if (!is_traced(Q)) Q <- as.matrix(Q)
  list(Q, log_det(upper_factor(Q)))
}

axis_covariance <- function(Sigma) {
  inverse <- if (is_traced(Sigma)) traced_solve(Sigma, NULL) else solve(as.matrix(Sigma))
  list(inverse, -log_det(upper_factor(Sigma)))
}

# list(precision, log_det) for each dimension of x.
separable_parts <- function(axes, size) {
  if (length(size) != length(axes)) {
    trace_stop(sprintf("dseparable() of %d functions takes an array of %d dimensions, not %d",
                       length(axes), length(axes), length(size)), of_numbers = TRUE)
  }
  Map(function(f, n) {
    part <- f(new_axis(n))
    if (!inherits(part, "cl_axis_density")) {
      trace_stop(paste("a function given to dseparable() must return the log density of its",
                       "argument by dautoreg(), dgmrf() or dmvnorm()"))
    }
    part
  }, axes, size)
}

# step(part, matrix) for each dimension of x in turn, whose elements are the rows of the matrix.
along_axes <- function(x, parts, step) {
  size <- dim(x)
  turn <- c(seq_along(size)[-1L], 1L)
  for (part in parts) {
    now <- dim(x)
    dim(x) <- c(now[1L], prod(now[-1L]))
    x <- step(part, x)
    dim(x) <- now
    x <- aperm(x, turn)
  }
  x
}

tmb_dseparable <- function(axes) {
  if (length(axes) == 0L || !all(vapply(axes, is.function, NA))) {
    trace_stop("dseparable() takes functions")
  }
  function(x, mu = 0, scale = 1, log = TRUE) {
    if (!isTRUE(as.logical(log))) trace_stop("dseparable() gives log densities only")
    if (is_weighted(x)) {
      trace_stop("dseparable() of observations has no one-step-ahead residuals of this method")
    }
    size <- dim(x)
    parts <- separable_parts(axes, size)
    if (is_draw(x)) {
      drawn <- along_axes(array(stats::rnorm(prod(size)), size), parts, function(part, z) {
        backsolve(chol(as.matrix(part$precision)), z)
      })
      fill_draw(x, drawn * scale + mu)
      return(0)
    }
    d <- (x - mu) / scale
    y <- along_axes(d, parts, function(part, d) {
      if (any_traced(part$precision, d)) return(traced_product(part$precision, d, 0L))
      as.matrix(part$precision %*% d)
    })
    value <- -0.5 * sum(d * y) - prod(size) * log_sqrt_2pi
    for (k in seq_along(parts)) value <- value + 0.5 * parts[[k]]$log_det * prod(size[-k])
    if (identical(scale, 1)) return(value)
    value - if (length(scale) == 1L) prod(size) * log(scale) else sum(log(scale))
  }
}
