# Triangular solves, inverses, and their adjoints.

#' Triangular solves and inverses
#'
#' `cl_tri_solve()` solves `l x = b` or `t(l) x = b`, with `l` lower triangular (upper with `upper =
#' TRUE`); `cl_tri_inverse()` inverts `l`. Only the named triangle is read; the other one is
#' ignored. `backsolve()` and `forwardsolve()` of base R do the same if an operand is a [clMatrix].
#'
#' `cl_tri_solve_adjoint()` is the reverse mode of `x = cl_tri_solve(l, b)`: from `x` and `x_adj` =
#' dF/dx it computes dF/dl and dF/db. With T = l or t(l), dF/db = T^-T x_adj, and dF/dT is the
#' triangle of l of -(dF/db) x^T.
#'
#' With base R input the engine is chosen by size ([cl_thresholds()], entries `tri_solve`, the
#' harmonic mean of n, n and the number of columns, and `tri_inverse`). Missing values propagate as
#' in base R.
#'
#' @param l,r A square matrix, base R or `clMatrix`, of which one triangle is read.
#' @param b,x The right-hand side: a matrix with as many rows as `l`, or a vector, which is one
#'   column. For `cl_tri_solve_adjoint()`, `x` is the solution.
#' @param upper Whether `l` is upper triangular.
#' @param transpose Whether `l` is transposed.
#' @param x_adj dF/dx, with the shape of `x`.
#' @return The solution or inverse: base R if all operands are base R (a vector for a vector),
#'   otherwise a `clMatrix`. `cl_tri_solve_adjoint()`: a list of `l` (triangular) and `b`.
#' @section Errors:
#' `statcl_error_argument` for a matrix that is not square and a right-hand side with the wrong
#' number of rows, `statcl_error_singular` (field `index`) for an exact zero on the diagonal.
#' @export
#' @examples
#' l <- cl_chol(crossprod(matrix(rnorm(30), 10)) + diag(3), lower = TRUE)
#' b <- 1:3
#' x <- cl_tri_solve(l, b)
#' all.equal(drop(l %*% x), b)
#' cl_tri_inverse(l) %*% l
#' adj <- cl_tri_solve_adjoint(l, x, x_adj = c(1, 0, 0))
#' adj$b
cl_tri_solve <- function(l, b, upper = FALSE, transpose = FALSE) {
  form <- if (is.logical(upper) && is.logical(transpose)) c(upper, transpose, FALSE)
  if (length(form) == 3L && !anyNA(form) && is_small(l, b) &&
        (n <- dim(l)[1L]) > 0L && dim(l)[2L] == n && dim(b)[1L] == n && length(b) > 0L &&
        is.null(attr(l, "dimnames")) && is.null(attr(b, "dimnames"))) {
    return(.Call(r_op, "tri_solve", list(l, b), form, -1L))
  }
  tri_solve(l, b, check_flag(upper, "upper"), check_flag(transpose, "transpose"), "l", "b")
}

tri_solve <- function(l, b, upper, transpose, name_l, name_b, named = TRUE) {
  if (is_plain(l) && (n <- dim(l)[1L]) == dim(l)[2L] && n > 0L && length(b) > 0L) {
    vector <- is.double(b) && is.null(attributes(b))
    if ((vector && length(b) == n) || (is_plain(b) && dim(b)[1L] == n)) {
      result <- tri_solve_left(l, b, upper, transpose, where_for_solve(n, NCOL(b)))
      if (vector) dim(result) <- NULL
      return(result)
    }
  }
  l <- square_operand(l, name_l)
  as_vector <- !is_cl(b) && is.null(dim(b)) && !any_handle(l$x)
  names <- if (named) list(side(l$names, if (transpose) 1L else 2L), side(names_of(b), 2L))
  b <- check_rows(b, l$n, name_b)
  where <- if (any_handle(l$x, b)) -1L else where_for_solve(l$n, NCOL(b))
  result <- tri_solve_left(l$x, b, upper, transpose, where)
  if (as_vector) as.vector(result) else value(result, NULL, names)
}

where_for_solve <- function(n, columns) {
  shape <- c(n, n, columns)
  where_for("tri_solve", harmonic_mean(shape), kind = shape_kind("tri_solve", shape))
}

# op(l)^-1 b; operands as .Call takes them.
tri_solve_left <- function(l, b, upper, transpose, where) {
  form <- c(upper, transpose, FALSE)
  if (is.null(attributes(where))) return(.Call(r_op, "tri_solve", list(l, b), form, where))
  call_on(where, r_op, "tri_solve", list(l, b), form)
}

# A square operand: list(x = as .Call takes it, n = rows, names = dimnames). One number counts as a
# 1 x 1 matrix.
square_operand <- function(x, argument) {
  names <- names_of(x)
  if (is_cl(x)) {
    dim <- x@Dim
    x <- x@handle
  } else {
    if (is.numeric(x) && is.null(dim(x)) && length(x) == 1L) x <- matrix(x)
    dim <- dim(x)
    x <- operand(x, argument, vector = FALSE)
  }
  if (dim[1L] != dim[2L]) {
    abort_argument(argument, sprintf("'%s' must be a square matrix, not %d x %d", argument, dim[1L],
                                     dim[2L]))
  }
  list(x = x, n = dim[1L], names = names)
}

any_handle <- function(...) {
  for (x in list(...)) if (typeof(x) == "externalptr") return(TRUE)
  FALSE
}

# A right-hand side with n rows, as .Call takes it.
check_rows <- function(b, n, argument) {
  rows <- if (is_cl(b)) b@Dim[1L] else NROW(b)
  b <- operand(b, argument)
  if (rows != n) {
    abort_argument(argument, sprintf("'%s' must have %d rows, not %d", argument, n, rows))
  }
  b
}

#' @rdname cl_tri_solve
#' @export
cl_tri_inverse <- function(l, upper = FALSE) {
  upper <- check_flag(upper, "upper")
  if (is_plain(l) && (n <- dim(l)[1L]) == dim(l)[2L]) {
    where <- where_for("tri_inverse", n)
    if (is.null(attributes(where))) return(.Call(r_op, "tri_inverse", list(l), upper, where))
    return(call_on(where, r_op, "tri_inverse", list(l), upper))
  }
  l <- square_operand(l, "l")
  where <- if (any_handle(l$x)) -1L else where_for("tri_inverse", l$n)
  value(call_on(where, r_op, "tri_inverse", list(l$x), upper), NULL, l$names[2:1])
}

#' @rdname cl_tri_solve
#' @export
cl_tri_solve_adjoint <- function(l, x, x_adj, upper = FALSE, transpose = FALSE) {
  upper <- check_flag(upper, "upper")
  transpose <- check_flag(transpose, "transpose")
  l <- square_operand(l, "l")
  columns <- c(NCOL(x), NCOL(x_adj))
  as_vector <- is.null(dim(x))
  x <- check_rows(x, l$n, "x")
  x_adj <- check_rows(x_adj, l$n, "x_adj")
  if (columns[1L] != columns[2L]) {
    abort_argument("x_adj", sprintf("'x_adj' must have %d columns like 'x', not %d", columns[1L],
                                    columns[2L]))
  }
  device <- any_handle(l$x, x, x_adj)
  where <- if (device) -1L else where_for_solve(l$n, columns[1L])
  result <- lapply(call_on(where, r_tri_solve_adjoint, l$x, x, x_adj, upper, transpose), value)
  if (as_vector && !device) result$b <- as.vector(result$b)
  result
}

# ---- methods of base R's functions --------------------------------------------------------------

# backsolve() and forwardsolve(): the leading k x k part and the first k rows. Unlike in base R, a
# right-hand side longer than the matrix is an error.
solve_leading <- function(r, x, k, upper, transpose, name_r) {
  upper <- check_flag(upper, "upper.tri")
  transpose <- check_flag(transpose, "transpose")
  shape <- if (is_cl(r)) r@Dim else dim(r)
  if (length(shape) != 2L) {
    abort_argument(name_r, sprintf("'%s' must be a matrix, not %s", name_r, describe(r)))
  }
  n <- shape[2L]
  k <- check_count(k, "k", min(1, n), n)
  rows <- if (is_cl(x)) x@Dim[1L] else NROW(x)
  if (rows != k && rows != n) {
    abort_argument("x", sprintf("'x' must have %d rows, not %d", as.integer(k), rows))
  }
  if (shape[1L] < k) abort_argument(name_r, sprintf("'%s' must have at least 'k' rows", name_r))
  if (shape[1L] != k || n != k) r <- r[seq_len(k), seq_len(k), drop = FALSE]
  if (rows != k) x <- if (is.null(dim(x))) x[seq_len(k)] else x[seq_len(k), , drop = FALSE]
  tri_solve(r, x, upper, transpose, name_r, "x", named = FALSE) # no names, as base R has it
}

setGeneric("backsolve")
setGeneric("forwardsolve")

backsolve_method <- with_formals_of("backsolve", function() {
  solve_leading(r, x, k, upper.tri, transpose, "r")
})

forwardsolve_method <- with_formals_of("forwardsolve", function() {
  solve_leading(l, x, k, upper.tri, transpose, "l")
})

#' @rdname cl_tri_solve
#' @eval method_aliases(c("backsolve", "forwardsolve"))
#' @param k The order of the leading part of the matrix that is used.
#' @param upper.tri Whether the upper triangle is used.
#' @param ... Not used.
#' @export
setMethod("backsolve", signature("clMatrix", "ANY"), backsolve_method)

#' @rdname cl_tri_solve
#' @export
setMethod("forwardsolve", signature("clMatrix", "ANY"), forwardsolve_method)

for (classes in pair_signatures[-1L]) {
  setMethod("backsolve", classes, backsolve_method)
  setMethod("forwardsolve", classes, forwardsolve_method)
}
rm(classes)
