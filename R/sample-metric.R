# The metric of cl_sample(): its arguments, and the precision of a sparse one.

# The most parameters for which metric = "auto" keeps the draws of a window: they take 10 MB a chain
# (MOST_ROWS of src/sample/adapt.c).
most_chosen <- 5000

has_rank <- function(metric) metric %in% c("low-rank", "auto", "sparse")

check_inverse_metric <- function(x, dimension, metric = "diag", rank = 0) {
  dense <- metric == "dense"
  if (is.null(x)) x <- 1
  if (is.list(x) && has_rank(metric)) return(check_low_rank(x, dimension, rank))
  right <- is.numeric(x) && all(is.finite(x))
  if (is.matrix(x) && dense) {
    right <- right && all(dim(x) == dimension) && isSymmetric(unname(x))
    if (right) right <- !is.null(chol_or_null(x))
    if (right) return(unname(x) + 0)
  }
  if (!right || is.matrix(x) || !length(x) %in% c(1L, dimension) || any(x <= 0)) {
    abort_argument("inverse_metric", sprintf(
      "'inverse_metric' must be one positive number, or one for each of the %d parameters%s",
      dimension, if (dense) ", or a positive definite matrix" else ""))
  }
  if (has_rank(metric)) x <- rep_len(x, dimension)
  if (dense) diag(rep_len(as.double(x), dimension), dimension) else as.double(x)
}

# The parts of an inverse metric of low rank, as in a result, in one vector.
check_low_rank <- function(x, dimension, rank) {
  numbers <- vapply(x, function(part) is.numeric(part) && all(is.finite(part)), NA)
  v <- x$vectors
  right <- setequal(names(x), c("diagonal", "values", "vectors")) && all(numbers) &&
    length(x$diagonal) == dimension && all(unlist(x[c("diagonal", "values")]) > 0) &&
    is.matrix(v) && all(dim(v) == c(dimension, length(x$values))) && ncol(v) <= rank &&
    all(abs(crossprod(v) - diag(ncol(v))) < 1e-8)
  if (!right) {
    abort_argument("inverse_metric", sprintf(paste(
      "'inverse_metric' must be a list of 'diagonal' (%d positive numbers), 'values' (positive, at",
      "most %.0f) and 'vectors' (a matrix with an orthonormal column for each)"), dimension, rank))
  }
  as.double(c(x$diagonal, x$values, v))
}

# ---- a sparse precision --------------------------------------------------------------------------

# list(start, row, x): the lower triangle of the precision of `metric`, a matrix, a result of
# cl_laplace(random = ), or "sparse", on the unconstrained scale; NULL for another metric.
precision_of <- function(metric, f, layout, start, init) {
  if (identical(metric, "sparse")) metric <- if (inherits(init, "cl_latent")) init else
    found_precision(f, layout, start)
  if (is.character(metric)) return(NULL)
  if (inherits(metric, "cl_latent")) metric <- metric$precision
  if (inherits(metric, "sparseMatrix") && all(dim(metric) == layout$dimension)) {
    dimnames(metric) <- list(NULL, NULL)
    if (!Matrix::isSymmetric(metric)) abort_metric(layout$dimension)
    at <- Matrix::summary(Matrix::tril(methods::as(metric, "CsparseMatrix")))
    metric <- list(row = at[[1L]], column = at[[2L]], x = if (ncol(at) > 2L) at[[3L]] else 1)
  } else if (is.matrix(metric) && is.numeric(metric) && all(dim(metric) == layout$dimension)) {
    if (!isSymmetric(unname(metric))) abort_metric(layout$dimension)
    at <- which(lower.tri(metric, TRUE) & !metric %in% 0, arr.ind = TRUE)
    metric <- list(row = at[, 1L], column = at[, 2L], x = metric[at])
  }
  right <- is.list(metric) && all(c("row", "column", "x") %in% names(metric)) &&
    max(metric$row) <= layout$dimension && all(is.finite(metric$x))
  if (!right) abort_metric(layout$dimension)
  low <- pmax(metric$row, metric$column)
  high <- pmin(metric$row, metric$column)
  d <- layout$dimension
  own <- setdiff(seq_len(d), high[low == high]) # diagonal elements that are not there
  row <- c(low, own)
  column <- c(high, own)
  x <- c(rep_len(metric$x, length(low)), numeric(length(own)))
  order <- order(column, row)
  result <- list(start = as.double(c(0, cumsum(tabulate(column, d)))),
                 row = as.integer(row[order] - 1L), x = as.double(x[order]))
  factor <- .Call(r_sparse_analyse, result$start, result$row, NULL)
  if (.Call(r_sparse_factorize, factor, result$x, 0) != 0) abort_metric(d)
  result$size <- .Call(r_sparse_size, factor)
  result
}

# The sparse precision that metric = "auto" takes where a latent field is known, or NULL. The limits
# are measured (bench/metric-limits.R): chains of 50 effects and more have 0.9 to 2.1 times
# the effective draws a second with it, those of 25 a sixth fewer. Its cost grows with the numbers
# of the factor for each parameter: a field that hardly needs it loses a fifth with 40 of them, and
# 60% with 200. Smooth fields gain up to 20 times (bench/latent.R), so the limit is between.
least_latent <- 50
most_factor <- 100
known_precision <- function(f, layout, start, init) {
  random <- attr(f, "random", exact = TRUE)
  latent <- if (is.list(start)) sum(lengths(start[random])) else 0
  if (!inherits(init, "cl_latent") && latent < least_latent) return(NULL)
  found <- tryCatch(precision_of("sparse", f, layout, free_start(layout, start), init),
                    statcl_error = function(e) NULL)
  d <- layout$dimension
  if (d >= least_latent && !is.null(found) && found$size <= most_factor * d) found
}

abort_metric <- function(d) {
  abort_argument("metric", sprintf(paste(
    "'metric' must be one of the words of ?cl_sample, or a positive definite precision matrix of",
    "the %d unconstrained parameters, or a result of cl_laplace(random = )"), d))
}

# The negative Hessian where a posterior has its mode: that of the hyperparameters, with the other
# parameters integrated out by Laplace's approximation, if some parameters interact with very many
# others; else, or if there is none, that of the joint density.
found_precision <- function(f, layout, start) {
  o <- new.env(parent = emptyenv())
  o$start <- start
  o$names <- free_names(layout)
  # a call compiles a cl_gradient()
  tryCatch(make_evaluator(f, layout, "reject")(start), error = function(e) NULL)
  compile_latent(o, f, layout, "metric")
  all <- seq_along(start)
  settle <- function(fixed) {
    o$fixed <- fixed
    o$random <- setdiff(all, fixed)
    o$inner <- start[o$random]
    o$last_z <- start
    o$sparse_of <- o$mode_of <- NULL
    tmb_sparse(o)
  }
  s <- settle(integer())
  if (is.null(s)) {
    abort_argument("metric", paste("metric = \"sparse\" needs a density whose operations have",
                                   "sparse second derivatives, see ?cl_hessian"))
  }
  degree <- tabulate(c(s$row, s$column)[c(s$row != s$column, s$row != s$column)] + 1L, length(all))
  hyper <- which(degree > max(8, 2 * sqrt(length(all))))
  if (length(hyper) > 0L && length(hyper) <= most_hyper && length(hyper) < length(all)) {
    settle(hyper)
    top <- tryCatch(hyper_mode(o), statcl_error = function(e) NULL)
    if (!is.null(top)) return(joint_numbers(o, top$theta, top$hessian))
    s <- settle(integer())
  }
  mode <- tmb_mode(o, numeric())
  if (is.null(mode)) {
    statcl_abort("density", paste("metric = \"sparse\" has found no mode of 'log_density': give",
                                  "a result of cl_laplace(random = ), or a precision matrix, as",
                                  "'metric'"), argument = "metric")
  }
  list(row = s$row + 1L, column = s$column + 1L, x = mode$step$factor$h)
}

# The factor of the precision in this process; NULL for another metric.
metric_factor <- function(job) {
  p <- job$control$precision
  if (is.null(p)) return(NULL)
  kept <- job$compiled
  if (!.Call(r_sparse_is_live, kept$factor)) {
    kept$factor <- .Call(r_sparse_analyse, p$start, p$row, NULL)
    .Call(r_sparse_factorize, kept$factor, p$x, 0)
  }
  kept$factor
}

# The precision as a matrix, for the result.
metric_precision <- function(job) {
  p <- job$control$precision
  if (is.null(p) || !requireNamespace("Matrix", quietly = TRUE)) return(NULL)
  names <- free_names(job$layout)
  Matrix::sparseMatrix(p$row + 1L, rep(seq_along(names), diff(p$start)), x = p$x,
                       dims = rep(length(names), 2L), symmetric = TRUE,
                       dimnames = list(names, names))
}
