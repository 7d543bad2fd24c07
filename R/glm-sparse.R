# Fits with a sparse matrix of predictors: the solver of iteratively reweighted least squares whose
# products with x, on the host or a device, never make x dense (R/matrix-sparse.R). The information
# X' W X of p columns is dense, as nearly all of its elements usually are not zero.

# The host's work on a fit in the unit of work_size(): links, X' W X, and its factor.
sparse_work <- function(x) {
  rows <- if (is_cl_sparse(x)) x@state$source else sparse_columns(x)
  25 * nrow(x) + sum(as.double(tabulate(rows@i + 1L, nrow(x)))^2) + as.double(ncol(x))^3 / 16
}

# x as predictors: those of package Matrix stay what they are.
design_matrix <- function(x) {
  if (is_cl_sparse(x)) as_sparse(x) else if (is_sparse(x)) x else predictors(x)
}

# Up to this number of columns R has the factor of the information, and looks for columns that are
# linear combinations of others; from there on the engine has it.
few_columns <- 400L
most_searched <- 4000L # columns among which to look for those

by_sparse_products <- function(problem, data) {
  s <- sparse_columns(problem$x)
  if (!is.null(problem$rows)) s <- s[problem$rows, , drop = FALSE]
  bad <- which(!is.finite(s@x))
  if (length(bad) > 0L) {
    column <- findInterval(bad[1L] - 1L, s@p)
    abort_nonfinite_column(problem$names[column], column)
  }
  work <- sparse_work(s)
  where <- if (is_on_device("glm_fit", work)) where_resident() else -1L
  x <- new_cl_sparse(s)
  sparse_upload(x, where)
  column <- if (where < 0L) identity else function(v) {
    value(.Call(r_matrix_new, as.double(rep_len(v, nrow(x))), nrow(x), 1L, 0L, where))
  }
  offset <- if (!is.null(data$offset)) column(data$offset)
  family <- r_family(problem$family)
  point <- if (where < 0L) host_point(family, data) else device_point(family, data, column)
  eta <- function(beta) {
    eta <- cl_matmul(x, matrix(beta))
    if (where < 0L) eta <- as.vector(as.matrix(eta))
    if (is.null(offset)) eta else eta + offset
  }
  kept <- NULL
  step <- function(weight, score) {
    gram <- sparse_gram(x, if (is_cl(weight)) weight@handle else weight)
    right <- as.vector(as.matrix(cl_crossprod(x, score)))
    if (is.null(kept) && ncol(x) > few_columns) {
      found <- factored_step(gram, right)
      if (!is.null(found)) return(found)
      abort_dependent(ncol(x))
    }
    found <- gram_step(unname(as.matrix(gram)), right, s, weight, kept)
    if (!is.null(found)) kept <<- found$kept
    found
  }
  list(column = column, eta = eta, point = point, at = function(beta) point(eta(beta)), step = step,
       x = x)
}

# The step by the Cholesky factor on the engine of the information; NULL if that is not accurate.
# The root stays there.
factored_step <- function(gram, right) {
  size <- sqrt(diag(gram))
  if (!all(is.finite(size)) || any(size < 1e-140)) return(NULL)
  l <- tryCatch(cl_chol(as_cl(t(t(gram / size) / size), "symmetric"), lower = TRUE),
                statcl_error_not_pd = function(e) NULL, statcl_error_nonfinite = function(e) NULL)
  if (is.null(l) || min(diag(l)) < 1e-4) return(NULL)
  half <- cl_tri_solve(l, right / size)
  change <- as.vector(as.matrix(cl_tri_solve(l, half, transpose = TRUE))) / size
  list(change = change, square = sum(half^2), kept = seq_along(size), root = t(l * size))
}

abort_dependent <- function(p) {
  if (p <= most_searched) return(invisible())
  abort_argument("x", sprintf(paste("columns of 'x' are linear combinations of others, or nearly:",
                                    "they are found among up to %d columns, but 'x' has %d; remove",
                                    "them, for example a level of each factor"),
                              most_searched, p))
}
