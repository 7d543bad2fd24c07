# Batches of small matrices: the same operation on many independent matrices at once.

#' Batches of small matrices
#'
#' Solves thousands or millions of small problems at once: inverses, Cholesky factors, linear
#' systems, determinants, products and normal densities of matrices stored in an array `n x n x
#' batch`. Regressions by group, Kalman filters and mixed models need them. One call does the work
#' of a loop `for (i in seq_len(batch)) solve(a[, , i])`.
#'
#' An operand with a single matrix (a matrix, or an array whose third dimension is 1) is used for
#' the whole batch in `cl_batch_solve()`, `cl_batch_tri_solve()`, `cl_batch_matmul()` and
#' `cl_batch_mvn_lpdf()`. The order n is at most 128, except in products. With base R input the
#' engine is chosen by the total work ([cl_thresholds()], entry `batch`, counted as n^3 times the
#' number of matrices); a [clArray] (from [as_cl()]) stays where it is.
#'
#' * `cl_batch_inverse()`: inverses by Gauss-Jordan elimination with row pivoting. For n <= 3,
#'   `method = "cofactors"` divides the cofactors by the determinant. The residual |I - A X| of
#'   cofactors, as a multiple of n |A| |X| eps, stays below 1 up to condition numbers of 100, as
#'   that of pivoting does for all condition numbers, but then grows: to about 2 at 1e3, 20 at 1e5,
#'   700 at 1e8 and 1e5 at 1e12 (3 x 3, measured). On a device both methods take the same time,
#'   because memory bandwidth limits them, so `"auto"` uses pivoting.
#' * `cl_batch_chol()`: upper factors, like [chol()], or lower factors. Only the lower triangles of
#'   `a` are read. `cl_batch_chol_adjoint()` is its reverse mode, [cl_chol_adjoint()] for each
#'   matrix.
#' * `cl_batch_solve()`: solutions of `a x = b` by elimination with row pivoting.
#' * `cl_batch_tri_solve()`: like [cl_tri_solve()]; only one triangle is read.
#' * `cl_batch_det()`: determinants, or the logarithms of their absolute values with the signs as
#'   attribute `"sign"`. A singular matrix has determinant 0 and is not an error.
#' * `cl_batch_matmul()`: products, optionally of transposed matrices.
#' * `cl_batch_mvn_lpdf()`: log densities of multivariate normal distributions at the columns of
#'   `y`: -n/2 log(2 pi) - sum(log(diag(L))) - |L^-1 (y - mean)|^2 / 2, with all constants.
#'
#' The result for a matrix depends on that matrix only: on the same engine it is bitwise the same
#' whatever the batch and the position in it.
#'
#' To `cl_batch_chol()` and `cl_batch_solve()`, matrices of different sizes can be passed as a list
#' (for `cl_batch_solve()` with a list of right-hand sides). The result is then a list in the same
#' order.
#'
#' @param a,l An array `n x n x batch`, base R or [clArray]; a matrix is a batch of one.
#'   `cl_batch_matmul()` takes arrays `m x k x batch` and `k x n x batch`. `cl_batch_chol()` and
#'   `cl_batch_solve()` also take a list of base R matrices.
#' @param b Right-hand sides: an array `n x k x batch`, a matrix `n x batch` with one column for
#'   each matrix, or a vector of length n that is used for all matrices.
#' @param method How inverses are computed, see above.
#' @param on_error What to do if some matrices are singular, not positive definite or not finite:
#'   warn, or stop with an error.
#' @param lower Whether lower factors are returned, or given in `chol`.
#' @param l_adj dF/dl for each factor; the lower triangles are read.
#' @param upper,transpose Whether `l` is upper triangular, and whether it is transposed.
#' @param log Whether to return logarithms.
#' @param transpose_a,transpose_b Whether the matrices of `a`, `b` are transposed first.
#' @param y A matrix `n x batch` with one observation in each column; a vector is one observation.
#' @param mean `NULL` for zero, a vector of length n for all observations, or a matrix `n x batch`.
#' @param chol Cholesky factors of the covariance matrices: an array `n x n x batch`, or one matrix
#'   for all observations.
#' @return An array: base R if all operands are base R, otherwise a [clArray]. If `b` of
#'   `cl_batch_solve()` and `cl_batch_tri_solve()` is a matrix, the result is a matrix `n x batch`
#'   (or [clMatrix]). `cl_batch_det()` and `cl_batch_mvn_lpdf()` return a vector. Names are kept.
#'
#'   Matrices for which the computation fails do not affect the others. Their part of the result is
#'   `NaN`, one warning reports their number and the first of them, and the attribute `"info"` of
#'   the result has one integer for each matrix: 0 for success, k if the k-th pivot is zero (or the
#'   leading minor of order k is not positive), `NA` if the matrix has values that are not finite.
#'   Without a failure there is no such attribute.
#' @section Errors:
#' `statcl_error_argument` for shapes that do not conform. With `on_error = "stop"`, for the first
#' matrix that fails (field `matrix`): `statcl_error_singular` (field `index`),
#' `statcl_error_not_pd` (field `order`) or `statcl_error_nonfinite`. The warning has the class
#' `statcl_warning_batch` and the fields `count` and `index` (of all matrices that failed).
#' @seealso [cl_batch_lm()] for regressions by group.
#' @references
#' Higham, N. J. (2002) *Accuracy and Stability of Numerical Algorithms*, chapter 14.
#'
#' Murray, I. (2016) Differentiation of the Cholesky decomposition.
#' <https://arxiv.org/abs/1602.07527>
#' @name cl_batch
#' @examples
#' a <- array(rnorm(3 * 3 * 1000), c(3, 3, 1000))
#' x <- cl_batch_inverse(a)
#' all.equal(x[, , 7], solve(a[, , 7]))
#' cl_batch_det(a)[1:3]
#'
#' # Mahalanobis distances of points to the centres of their groups
#' s <- cl_batch_matmul(a, a, transpose_a = TRUE)
#' z <- cl_batch_tri_solve(cl_batch_chol(s), rbind(1:1000, 0, 1), upper = TRUE, transpose = TRUE)
#' colSums(z^2)[1:3]
#'
#' a[, , 2] <- 0
#' x <- suppressWarnings(cl_batch_inverse(a))
#' which(attr(x, "info") != 0)
#'
#' cl_batch_chol(list(diag(2), diag(3) + 1))
NULL

batch_order <- 128L

# ---- operands -----------------------------------------------------------------------------------

# An operand with a batch of matrices: list(x as .Call takes it, dim (three numbers), names (three),
# single (whether it was one matrix)).
batch_operand <- function(x, argument) {
  names <- dimnames(x)
  dim <- dim(x)
  if (is_cl_array(x) || is_cl(x)) {
    x <- x@handle
  } else {
    x <- check_array(x, argument)
  }
  single <- length(dim) == 2L
  if (single) dim <- c(dim, 1L)
  list(x = x, dim = dim, names = c(if (is.null(names)) list(NULL, NULL) else unname(names),
                                   list(NULL))[1:3], single = single)
}

batch_square <- function(x, argument) {
  x <- batch_operand(x, argument)
  if (x$dim[1L] != x$dim[2L]) {
    abort_argument(argument, sprintf("'%s' must contain square matrices, not %d x %d", argument,
                                     x$dim[1L], x$dim[2L]))
  }
  check_order(x$dim[1L], argument)
  x
}

check_order <- function(n, argument) {
  if (n > batch_order) {
    abort_argument(argument, sprintf("'%s' must contain matrices of order at most %d, not %d",
                                     argument, batch_order, as.integer(n)))
  }
}

# Right-hand sides for matrices of order n: as batch_operand(), with dim = c(n, k, batch), and
# `columns` if the result is a matrix with a column for each.
batch_columns <- function(b, n, argument) {
  dim <- dim(b)
  columns <- length(dim) != 3L
  names <- if (length(dim) == 2L) dimnames(b)
  if (is_cl_array(b) || is_cl(b)) {
    b <- b@handle
  } else if (is.null(dim)) {
    b <- check_numeric(b, argument)
    dim <- c(length(b), 1L)
  } else {
    b <- check_array(b, argument)
  }
  if (dim[1L] != n) {
    abort_argument(argument, sprintf("'%s' must have %d rows, not %d", argument, as.integer(n),
                                     as.integer(dim[1L])))
  }
  if (columns) {
    list(x = b, dim = c(n, 1L, dim[2L]), names = list(side(names, 1L), NULL, side(names, 2L)),
         columns = TRUE)
  } else {
    list(x = b, dim = dim, columns = FALSE)
  }
}

# The number of matrices in the operands (named lists with dim); an operand with one is recycled.
batch_count <- function(...) {
  operands <- list(...)
  counts <- unname(vapply(operands, function(x) as.numeric(x$dim[3L]), 0))
  batch <- if (any(counts != 1)) counts[counts != 1][1L] else 1
  wrong <- which(counts != 1 & counts != batch)
  if (length(wrong) > 0L) {
    name <- names(operands)[wrong[1L]]
    abort_argument(name, sprintf("'%s' must contain %d matrices or 1, not %d", name,
                                 as.integer(batch), as.integer(counts[wrong[1L]])))
  }
  batch
}

# The engine for an operation, named by its entry, on matrices of these dimensions.
batch_where <- function(entry, dim, work, ...) {
  if (any_handle(...)) return(-1L)
  where_for("batch", work, kind = shape_kind(paste("batch", entry), dim))
}

# ---- results ------------------------------------------------------------------------------------

# The result of .Call as an array with dimensions and names, or as a matrix if the operand was one.
batch_value <- function(result, dim, names = vector("list", 3L), single = FALSE) {
  named <- !all(vapply(names, is.null, NA))
  if (typeof(result) == "externalptr") {
    if (!single) return(new_array(result, dim, names))
    return(new_cl(.Call(r_array_matrix, result, dim[1L], dim[2L]), as.integer(dim[1:2]),
                  names[1:2]))
  }
  if (single) dim <- dim[1:2]
  dim(result) <- dim
  if (named) dimnames(result) <- if (single) names[1:2] else names
  result
}

# The value of a result list(value, status). Matrices that failed raise a warning or an error and
# are recorded in the attribute "info"; a status of NULL means that none failed. `fault`: "singular"
# or "not_pd".
batch_report <- function(value, status, on_error, fault) {
  if (is.null(status)) return(value)
  info <- as.integer(status)
  bad <- which(info != 0L)
  if (length(bad) == 0L) return(value)
  info[info == 255L] <- NA
  if (on_error == "stop") batch_abort(bad[1L], info[bad[1L]], fault)
  batch_warn(bad, info, fault)
  attr(value, "info") <- info
  value
}

batch_abort <- function(matrix, info, fault) {
  if (is.na(info)) {
    statcl_abort("nonfinite", sprintf("matrix %d has missing or infinite values", matrix),
                 matrix = matrix)
  }
  if (fault == "singular") {
    statcl_abort("singular", sprintf("matrix %d is singular: pivot %d is zero", matrix, info),
                 matrix = matrix, index = info)
  }
  statcl_abort("not_pd", sprintf(paste("matrix %d is not positive definite: its leading minor of",
                                       "order %d is not positive"), matrix, info),
               matrix = matrix, order = info)
}

batch_warn <- function(bad, info, fault) {
  what <- c(singular = "singular", not_pd = "not positive definite")[[fault]]
  if (anyNA(info)) what <- paste(what, "or not finite")
  first <- paste(utils::head(bad, 5L), collapse = ", ")
  message <- sprintf("%d of %d matrices %s %s: %s%s", length(bad), length(info),
                     if (length(bad) == 1L) "is" else "are", what, first,
                     if (length(bad) > 5L) ", ..." else "")
  warning(structure(list(message = message, call = user_call(), count = length(bad), index = bad),
                    class = c("statcl_warning_batch", "statcl_warning", "warning", "condition")))
}

check_on_error <- function(on_error) check_choice(on_error, c("warn", "stop"), "on_error")

# ---- one matrix each ----------------------------------------------------------------------------

#' @rdname cl_batch
#' @export
cl_batch_inverse <- function(a, method = c("auto", "pivoting", "cofactors"),
                             on_error = c("warn", "stop")) {
  method <- check_choice(method, c("auto", "pivoting", "cofactors"), "method")
  on_error <- check_on_error(on_error)
  a <- batch_square(a, "a")
  n <- a$dim[1L]
  if (method == "cofactors" && n > 3L) {
    abort_argument("method", sprintf(paste("method = \"cofactors\" needs matrices of order at most",
                                           "3, not %d"), n))
  }
  where <- batch_where("inverse", n, n^3 * a$dim[3L], a$x)
  result <- call_on(where, r_batch_inverse, a$x, n, a$dim[3L], method == "cofactors")
  value <- batch_value(result$value, a$dim, a$names[c(2L, 1L, 3L)], a$single)
  batch_report(value, result$status, on_error, "singular")
}

#' @rdname cl_batch
#' @export
cl_batch_chol <- function(a, lower = FALSE, on_error = c("warn", "stop")) {
  lower <- check_flag(lower, "lower")
  on_error <- check_on_error(on_error)
  if (is.list(a) && !is.object(a)) return(batch_chol_list(a, lower, on_error))
  a <- batch_square(a, "a")
  where <- batch_where("chol", a$dim[1L], a$dim[1L]^3 * a$dim[3L], a$x)
  result <- call_on(where, r_batch_chol, a$x, a$dim[1L], a$dim[3L], !lower)
  batch_report(batch_value(result$value, a$dim, a$names, a$single), result$status, on_error,
               "not_pd")
}

#' @rdname cl_batch
#' @export
cl_batch_chol_adjoint <- function(l, l_adj, on_error = c("warn", "stop")) {
  on_error <- check_on_error(on_error)
  l <- batch_square(l, "l")
  l_adj <- batch_square(l_adj, "l_adj")
  if (any(l$dim != l_adj$dim)) {
    abort_argument("l_adj", sprintf("'l_adj' must be %s like 'l', not %s",
                                    paste(l$dim, collapse = " x "),
                                    paste(l_adj$dim, collapse = " x ")))
  }
  where <- batch_where("adjoint", l$dim[1L], l$dim[1L]^3 * l$dim[3L], l$x, l_adj$x)
  result <- call_on(where, r_batch_chol_adjoint, l$x, l_adj$x, l$dim[1L], l$dim[3L])
  batch_report(batch_value(result$value, l$dim, l$names, l$single), result$status, on_error,
               "singular")
}

#' @rdname cl_batch
#' @export
cl_batch_det <- function(a, log = FALSE) {
  log <- check_flag(log, "log")
  a <- batch_square(a, "a")
  where <- batch_where("det", a$dim[1L], a$dim[1L]^3 * a$dim[3L], a$x)
  result <- call_on(where, r_batch_det, a$x, a$dim[1L], a$dim[3L], log)
  if (typeof(result) == "externalptr") {
    result <- value(result, c(a$dim[3L], 1L + log), list(a$names[[3L]], NULL), "general")
    if (!log) return(result)
    det <- result[, 1L, drop = FALSE]
    attr(det, "sign") <- result[, 2L, drop = FALSE]
    return(det)
  }
  det <- result[, 1L]
  names(det) <- a$names[[3L]]
  if (log) attr(det, "sign") <- as.integer(result[, 2L])
  det
}

# ---- two operands -------------------------------------------------------------------------------

#' @rdname cl_batch
#' @export
cl_batch_solve <- function(a, b, on_error = c("warn", "stop")) {
  on_error <- check_on_error(on_error)
  if (is.list(a) && !is.object(a)) return(batch_solve_list(a, b, on_error))
  a <- batch_square(a, "a")
  b <- batch_columns(b, a$dim[1L], "b")
  batch <- batch_count(a = a, b = b)
  k <- b$dim[2L]
  where <- batch_where("solve", c(a$dim[1L], k), a$dim[1L]^2 * (a$dim[1L] + k) * batch, a$x, b$x)
  result <- call_on(where, r_batch_solve, a$x, b$x, a$dim[1L], k, batch)
  batch_report(batch_solution(result$value, a, b, batch, a$names[[2L]]), result$status, on_error,
               "singular")
}

# A solution n x k x batch, or n x batch where the right-hand side was a matrix or a vector.
batch_solution <- function(result, a, b, batch, rows) {
  dim <- c(b$dim[1L], b$dim[2L], batch)
  if (b$columns) {
    last <- if (is.null(b$names[[3L]])) a$names[[3L]] else b$names[[3L]]
    return(batch_value(result, dim[c(1L, 3L, 2L)], list(rows, last, NULL), TRUE))
  }
  batch_value(result, dim, list(rows, NULL, a$names[[3L]]))
}

#' @rdname cl_batch
#' @export
cl_batch_tri_solve <- function(l, b, upper = FALSE, transpose = FALSE,
                               on_error = c("warn", "stop")) {
  upper <- check_flag(upper, "upper")
  transpose <- check_flag(transpose, "transpose")
  on_error <- check_on_error(on_error)
  l <- batch_square(l, "l")
  b <- batch_columns(b, l$dim[1L], "b")
  batch <- batch_count(l = l, b = b)
  k <- b$dim[2L]
  where <- batch_where("tri_solve", c(l$dim[1L], k), l$dim[1L]^2 * k * batch, l$x, b$x)
  result <- call_on(where, r_batch_tri_solve, l$x, b$x, l$dim[1L], k, batch, upper, transpose)
  rows <- l$names[[if (transpose) 1L else 2L]]
  batch_report(batch_solution(result$value, l, b, batch, rows), result$status, on_error, "singular")
}

#' @rdname cl_batch
#' @export
cl_batch_matmul <- function(a, b, transpose_a = FALSE, transpose_b = FALSE) {
  transposed <- c(check_flag(transpose_a, "transpose_a"), check_flag(transpose_b, "transpose_b"))
  a <- batch_operand(a, "a")
  b <- batch_operand(b, "b")
  batch <- batch_count(a = a, b = b)
  rows <- if (transposed[1L]) 2:1 else 1:2
  columns <- if (transposed[2L]) 2:1 else 1:2
  m <- a$dim[rows[1L]]
  k <- a$dim[rows[2L]]
  n <- b$dim[columns[2L]]
  if (b$dim[columns[1L]] != k) {
    abort_argument("b", sprintf("'b' must have %d %s, not %d", as.integer(k),
                                if (transposed[2L]) "columns" else "rows",
                                as.integer(b$dim[columns[1L]])))
  }
  where <- batch_where("matmul", c(m, k, n), as.numeric(m) * k * n * batch, a$x, b$x)
  result <- call_on(where, r_batch_matmul, a$x, b$x, as.numeric(c(m, n, k, batch)), transposed)
  last <- if (is.null(a$names[[3L]])) b$names[[3L]] else a$names[[3L]]
  batch_value(result, c(m, n, batch),
              list(a$names[[rows[1L]]], b$names[[columns[2L]]], last), a$single && b$single)
}

#' @rdname cl_batch
#' @export
cl_batch_mvn_lpdf <- function(y, mean = NULL, chol, lower = FALSE, on_error = c("warn", "stop")) {
  lower <- check_flag(lower, "lower")
  on_error <- check_on_error(on_error)
  chol <- batch_square(chol, "chol")
  n <- chol$dim[1L]
  columns <- function(x, argument) {
    if (length(dim(x)) == 3L) {
      abort_argument(argument, sprintf("'%s' must be an n x batch matrix, not an array", argument))
    }
    batch_columns(x, n, argument)
  }
  y <- columns(y, "y")
  operands <- list(y = y, chol = chol)
  if (!is.null(mean)) operands$mean <- mean <- columns(mean, "mean")
  batch <- do.call(batch_count, operands, quote = TRUE)
  # One observation under many distributions is repeated; the mean and the factor are not.
  where <- batch_where("mvn", n, n^2 * batch, y$x, mean$x, chol$x)
  result <- call_on(where, r_batch_mvn, y$x, mean$x, chol$x, n, batch, !lower)
  value <- result$value
  if (typeof(value) == "externalptr") {
    value <- value(value, c(batch, 1L), NULL, "general")
  } else {
    value <- as.vector(value)
    names(value) <- if (is.null(y$names[[3L]])) chol$names[[3L]] else y$names[[3L]]
  }
  batch_report(value, result$status, on_error, "singular")
}
