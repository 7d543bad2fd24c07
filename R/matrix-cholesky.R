# The Cholesky factor, its adjoint, and solutions of systems with it.

#' Cholesky factor
#'
#' `cl_chol()` computes the Cholesky factor of a symmetric positive definite matrix: A = R'R with R
#' upper triangular, like [chol()], or, with `lower = TRUE`, A = L L' with L lower triangular. The
#' method of `chol()` for a [clMatrix] does the same.
#'
#' Only the **lower triangle** of `a` is read, on either engine; the upper triangle is ignored.
#' (`chol()` of base R reads the upper triangle. The results differ only for matrices that are not
#' symmetric.)
#'
#' Nothing is added to the diagonal unless `jitter` is given.
#'
#' `cl_chol_adjoint()` is the reverse mode of the factorisation. From the lower factor L and
#' `l_adj` = dF/dL, of which the lower triangle is read, it computes the symmetric matrix S with
#' dF = sum(S * dA) for every symmetric change dA. It takes 2 n^3 / 3 operations, by the blocked
#' recursion of Murray (2016).
#'
#' With base R input the engine is chosen by the number of rows ([cl_thresholds()], entries `chol`
#' and `chol_adjoint`).
#'
#' @param a A symmetric positive definite matrix, base R or `clMatrix`.
#' @param lower Whether to return the lower factor.
#' @param jitter A number >= 0 that is added to the diagonal first.
#' @param l The lower factor; its lower triangle is read.
#' @param l_adj dF/dL, a matrix of the same size.
#' @param x A `clMatrix`.
#' @param pivot Must be `FALSE`.
#' @param ... Not used.
#' @return The factor, or S: a base R matrix for base R input, otherwise a `clMatrix`. Row and
#'   column names of `a` are kept.
#' @section Errors:
#' `statcl_error_argument` for a matrix that is not square or has no rows; `statcl_error_nonfinite`
#' (field `index`: the first such element, in column-major order) for `NA`, `NaN` or `Inf` in the
#' triangle that is read; `statcl_error_not_pd` (field `order`) if the leading minor of that order
#' is not positive; `statcl_error_singular` (field `index`) from `cl_chol_adjoint()` for a zero on
#' the diagonal of `l`.
#' @references
#' Murray, I. (2016) Differentiation of the Cholesky decomposition.
#' <https://arxiv.org/abs/1602.07527>
#' @export
#' @examples
#' a <- crossprod(matrix(rnorm(50), 10)) + diag(5)
#' r <- cl_chol(a)
#' all.equal(r, chol(a))
#'
#' # The gradient of log det A = 2 sum(log(diag(L))) with respect to A is the inverse of A
#' l <- cl_chol(a, lower = TRUE)
#' all.equal(cl_chol_adjoint(l, diag(2 / diag(l))), solve(a))
#'
#' tryCatch(cl_chol(matrix(c(1, 2, 2, 1), 2)), statcl_error_not_pd = function(e) e$order)
cl_chol <- function(a, lower = FALSE, jitter = 0) {
  lower <- check_flag(lower, "lower")
  jitter <- check_number(jitter, "jitter", 0)
  factor_of(a, lower, jitter, "a")
}

factor_of <- function(a, lower, jitter, argument) {
  form <- c(jitter, !lower)
  if (is_plain(a) && (n <- dim(a)[1L]) == dim(a)[2L] && n > 0L) {
    where <- where_for("chol", n)
    if (is.null(attributes(where))) return(.Call(r_op, "chol", list(a), form, where))
    return(call_on(where, r_op, "chol", list(a), form))
  }
  a <- square_operand(a, argument)
  if (a$n == 0L) {
    abort_argument(argument, sprintf("'%s' must have at least one row and one column", argument))
  }
  where <- if (any_handle(a$x)) -1L else where_for("chol", a$n)
  value(call_on(where, r_op, "chol", list(a$x), form), NULL, a$names)
}

#' @rdname cl_chol
#' @export
chol.clMatrix <- function(x, pivot = FALSE, ...) {
  if (check_flag(pivot, "pivot")) {
    abort_argument("pivot", "pivoting is not supported: use chol(as.matrix(x), pivot = TRUE)")
  }
  factor_of(x, FALSE, 0, "x")
}

#' @rdname cl_chol
#' @export
cl_chol_adjoint <- function(l, l_adj) {
  l <- square_operand(l, "l")
  l_adj <- square_operand(l_adj, "l_adj")
  if (l_adj$n != l$n) {
    abort_argument("l_adj", sprintf("'l_adj' must be %d x %d like 'l', not %d x %d", l$n, l$n,
                                    l_adj$n, l_adj$n))
  }
  where <- if (any_handle(l$x, l_adj$x)) -1L else where_for("chol_adjoint", l$n)
  value(call_on(where, r_op, "chol_adjoint", list(l$x, l_adj$x), NULL), NULL, l$names)
}
