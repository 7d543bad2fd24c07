# Linear systems, inverses and determinants of clMatrix.

#' Linear systems and determinants of device matrices
#'
#' The method of `solve()` depends on the view of `a`: triangular matrices are solved by
#' substitution, symmetric ones with the Cholesky factor, both where they are. A symmetric matrix
#' that is not positive definite and a matrix with general view are handled by the LU decomposition
#' of LAPACK on the host: `a` is copied there and the solution back. Create a covariance matrix with
#' `view = "symmetric"`, therefore; `crossprod(x)` has this view already. `determinant()` (and
#' therefore `det()`) chooses in the same way.
#'
#' Like base R, `solve()` stops if the estimated reciprocal condition number of `a` (see
#' [rcond()][clMatrix-norm]) is below `tol`, because no digit of the solution would be reliable.
#' Triangular views are always solved, as by [backsolve()].
#'
#' `chol2inv()` computes the inverse of A from the upper factor that `chol()` returns.
#'
#' @param a A square matrix.
#' @param b The right-hand side: a matrix with as many rows as `a`, or a vector, which is one
#'   column. If missing, the inverse of `a` is returned.
#' @param x A square `clMatrix`; for `chol2inv()` an upper triangular factor, of which the upper
#'   triangle is read.
#' @param tol The smallest reciprocal condition number of `a` that is accepted.
#' @param size The order of the leading part of `x` that is used.
#' @param logarithm Whether to return the logarithm of the modulus.
#' @param ... `size` for `chol2inv()`; not used otherwise.
#' @return `solve()` and `chol2inv()`: a `clMatrix` (the inverse of a symmetric matrix has the
#'   symmetric view). `determinant()`: as in base R, a list of class `det` with `modulus` and
#'   `sign`.
#' @section Errors:
#' `statcl_error_argument` for shapes that do not conform, `statcl_error_singular` for a singular
#' matrix (field `index`: the zero pivot; `NA` if it is numerically singular, with a reciprocal
#' condition number below `tol`).
#' @name clMatrix-solve
#' @examples
#' x <- as_cl(matrix(rnorm(40), 10))
#' a <- crossprod(x)
#' solve(a, c(1, 2, 3, 4))
#' chol2inv(chol(a)) %*% a
#' determinant(a)
NULL

#' @rdname clMatrix-solve
#' @method solve clMatrix
#' @export
solve.clMatrix <- function(a, b, tol = .Machine$double.eps, ...) {
  tol <- check_number(tol, "tol")
  square <- square_operand(a, "a")
  view <- a@view
  if (missing(b)) return(inverse_of(a, square, view, tol))
  if (view == "lower" || view == "upper") {
    return(tri_solve(a, b, view == "upper", FALSE, "a", "b"))
  }
  right <- check_rows(b, square$n, "b")
  factor <- if (view == "symmetric" && square$n > 0L) safe_factor(a, tol)
  if (is.null(factor)) return(solve_on_host(a, b, tol))
  value(factor_solve(factor, right), NULL, list(side(square$names, 2L), side(names_of(b), 2L)))
}

inverse_of <- function(a, square, view, tol) {
  names <- square$names[2:1]
  if (view == "lower" || view == "upper") {
    return(value(.Call(r_op, "tri_inverse", list(square$x), view == "upper", -1L), NULL, names))
  }
  size <- if (view == "symmetric" && square$n > 0L) usual_norm(a)
  factor <- if (!is.null(size)) pd_factor(a)
  if (is.null(factor)) return(solve_on_host(a, tol = tol))
  inverse <- value(.Call(r_op, "chol_inverse", list(factor), FALSE, -1L), NULL, names)
  check_condition(1 / (size * norm_of(inverse, "O")), tol)
  inverse
}

# The norm of a; NULL if an inverse might overflow: LAPACK on the host then scales the matrix.
usual_norm <- function(a) {
  size <- norm_of(a, "O")
  if (isTRUE(size > 1e-280 && size < 1e280)) size
}

# The lower Cholesky factor (a handle) of a symmetric matrix, NULL unless that is positive definite.
pd_factor <- function(a) {
  tryCatch(.Call(r_op, "chol", list(a@handle), c(0, FALSE), -1L),
           statcl_error_not_pd = function(e) NULL)
}

# The lower factor for a solution; an error as in base R if the matrix is computationally singular.
# For matrices of moderate size on a device, an inverse is cheaper than the successive solves of a
# condition estimate.
safe_factor <- function(a, tol) {
  size <- usual_norm(a)
  factor <- if (!is.null(size)) pd_factor(a)
  if (is.null(factor)) return(NULL)
  rcond <- if (a@Dim[1L] <= 1500L && !state_of(a)$host) {
    inverse <- value(.Call(r_op, "chol_inverse", list(factor), FALSE, -1L), NULL, list(NULL, NULL))
    on.exit(cl_free(inverse))
    1 / (size * norm_of(inverse, "O"))
  } else {
    rcond_factor(size, factor, a@Dim[1L])
  }
  check_condition(rcond, tol)
  factor
}

check_condition <- function(rcond, tol) {
  if (!is.na(rcond) && rcond >= tol) return(invisible())
  abort_singular(sprintf(paste("system is computationally singular: reciprocal condition number",
                               "= %g"), rcond))
}

# A^-1 b from the lower factor of A, by handles.
factor_solve <- function(factor, b) {
  half <- tri_solve_left(factor, b, FALSE, FALSE, -1L)
  tri_solve_left(factor, half, FALSE, TRUE, -1L)
}

# By LAPACK's LU decomposition in base R; the result is copied to the device of `a` or `b`.
solve_on_host <- function(a, b, tol = .Machine$double.eps) {
  operand <- if (is_cl(a)) a else b
  if (is_cl(a) && !missing(b) && is_cl(b)) {
    # The same error as for other operations on matrices of two devices.
    .Call(r_op, "matmul", list(a@handle, b@handle), c(TRUE, FALSE), -1L)
  }
  a <- on_host(a)
  if (nrow(a) == 0L) {
    return(like(if (missing(b)) a else matrix(0, 0L, NCOL(b)), operand))
  }
  result <- tryCatch(
    if (missing(b)) base::solve(a, tol = tol)
    else base::solve(a, as.matrix(on_host(b)), tol = tol),
    error = function(e) abort_singular(conditionMessage(e)))
  like(result, operand)
}

# LAPACK's messages as statcl_error_singular; they contain the pivot only if it is exactly zero.
abort_singular <- function(message) {
  if (!grepl("singular", message)) stop(message, call. = FALSE)
  index <- NA_real_
  if (grepl("exactly", message)) index <- as.numeric(sub(".*\\[([0-9]+),.*", "\\1", message))
  statcl_abort("singular", message, index = index)
}

setGeneric("solve")

#' @rdname clMatrix-solve
#' @export
setMethod("solve", signature("ANY", "clMatrix"), function(a, b, ...) {
  square_operand(a, "a")
  check_rows(b, NROW(a), "b")
  solve_on_host(if (is.null(dim(a))) matrix(a) else check_numeric(a, "a"), b, ...)
})

#' @rdname clMatrix-solve
#' @export
setMethod("solve", signature("clMatrix", "ANY"), function(a, b, ...) {
  if (missing(b)) solve.clMatrix(a, ...) else solve.clMatrix(a, b, ...)
})

#' @rdname clMatrix-solve
#' @export
setMethod("solve", signature("clMatrix", "clMatrix"), function(a, b, ...) {
  solve.clMatrix(a, b, ...)
})

setGeneric("chol2inv")

#' @rdname clMatrix-solve
#' @export
setMethod("chol2inv", "clMatrix", function(x, size = ncol(x), ...) {
  size <- check_count(size, "size", min(1, ncol(x)), ncol(x))
  if (nrow(x) < size) abort_argument("x", "'x' must have at least 'size' rows")
  first <- seq_len(size)
  if (any(x@Dim != size)) x <- x[first, first, drop = FALSE]
  value(.Call(r_op, "chol_inverse", list(x@handle), TRUE, -1L))
})

#' @rdname clMatrix-solve
#' @export
determinant.clMatrix <- function(x, logarithm = TRUE, ...) {
  logarithm <- check_flag(logarithm, "logarithm")
  square <- square_operand(x, "x")
  view <- x@view
  if (view == "lower" || view == "upper") {
    pivots <- .Call(r_matrix_diagonal, square$x)
  } else {
    roots <- if (view == "symmetric" && square$n > 0L) .Call(r_chol_pivots, square$x)
    if (is.null(roots)) return(determinant(as.matrix(x), logarithm))
    pivots <- roots^2
  }
  modulus <- if (logarithm) sum(log(abs(pivots))) else abs(prod(pivots))
  attr(modulus, "logarithm") <- logarithm
  result <- list(modulus = modulus, sign = if (sum(pivots < 0) %% 2 == 0) 1L else -1L)
  class(result) <- "det"
  result
}
