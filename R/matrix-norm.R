# Norms and condition numbers of clMatrix.

#' Norms and condition numbers of device matrices
#'
#' `norm()` and `rcond()` of base R, computed where the matrix is.
#'
#' The spectral norm (`type = "2"`) is the largest singular value of a copy on the host. `rcond()`
#' estimates the reciprocal condition number 1 / (|A| |A^-1|) like LAPACK, from a few solves
#' (Higham, 1988): for a triangular view by substitution, for a symmetric matrix with its Cholesky
#' factor, on the device. Matrices that are not positive definite, not square, or have a general
#' view are handled by LAPACK on the host.
#'
#' @param x A [clMatrix].
#' @param type `"O"` or `"1"`: the largest column sum of absolute values; `"I"`: the largest row
#'   sum; `"F"` or `"E"`: the Frobenius norm; `"M"`: the largest absolute value; `"2"`: the spectral
#'   norm.
#' @param norm `"O"` or `"1"`, or `"I"`: the norm of the condition number.
#' @param ... For `rcond()` the argument `triangular`: whether to use only the upper triangle of a
#'   matrix with general view.
#' @return A number. The norm of a matrix without elements is 0.
#' @section Errors:
#' `statcl_error_argument` for another `type` or `norm`.
#' @references
#' Higham, N. J. (1988) FORTRAN codes for estimating the one-norm of a real or complex matrix, with
#' applications to condition estimation. *ACM Transactions on Mathematical Software* 14, 381-396.
#' @name clMatrix-norm
#' @examples
#' x <- as_cl(matrix(c(2, 1, 0, 3), 2))
#' norm(x)
#' norm(x, "F")
#' rcond(crossprod(x))
NULL

# These two have a generic form in methods, without defaults.
setGeneric("norm")
setGeneric("rcond")

#' @rdname clMatrix-norm
#' @export
setMethod("norm", signature("clMatrix", "ANY"), function(x, type, ...) norm_of(x, type))

#' @rdname clMatrix-norm
#' @export
setMethod("norm", signature("clMatrix", "missing"), function(x, type, ...) norm_of(x, "O"))

#' @rdname clMatrix-norm
#' @export
setMethod("norm", signature("ANY", "missing"), function(x, type, ...) base::norm(x, "O", ...))

norm_of <- function(x, type) {
  type <- check_type(type[1L], c("O", "1", "I", "F", "E", "M", "2"), "type")
  if (length(x) == 0L) return(0)
  # Errors of an argument of a generic function would lose their class.
  size <- if (type %in% c("O", "1", "I", "M")) abs(x)
  switch(EXPR = type,
    O = , `1` = {
      sums <- colSums(size)
      max(sums)
    },
    I = {
      sums <- rowSums(size)
      max(sums)
    },
    F = , E = frobenius(x),
    M = max(size),
    `2` = base::norm(as.matrix(x), "2"))
}

# One letter, small or capital.
check_type <- function(x, choices, argument) {
  if (is.character(x)) x <- toupper(x)
  check_choice(x, choices, argument)
}

# If squares would overflow or underflow, numbers are scaled by the largest.
frobenius <- function(x) {
  squares <- sum(x * x)
  if (is.finite(squares) && squares > 1e-250) return(sqrt(squares))
  largest <- max(abs(x))
  if (largest == 0 || !is.finite(largest)) return(largest)
  x <- x / largest
  largest * sqrt(sum(x * x))
}

#' @rdname clMatrix-norm
#' @export
setMethod("rcond", signature("clMatrix", "ANY"), function(x, norm, ...) rcond_of(x, norm, ...))

#' @rdname clMatrix-norm
#' @export
setMethod("rcond", signature("clMatrix", "missing"), function(x, norm, ...) rcond_of(x, "O", ...))

#' @rdname clMatrix-norm
#' @export
setMethod("rcond", signature("ANY", "missing"), function(x, norm, ...) base::rcond(x, "O", ...))

rcond_of <- function(x, type, triangular = FALSE) {
  type <- check_type(type[1L], c("O", "1", "I"), "norm")
  triangular <- check_flag(triangular, "triangular")
  n <- x@Dim[1L]
  view <- x@view
  if (n == x@Dim[2L] && n > 0L) {
    upper <- view == "upper" || (triangular && view != "lower")
    if (upper || view == "lower") return(rcond_triangular(x, type, upper))
    size <- if (view == "symmetric") usual_norm(x)
    factor <- if (!is.null(size)) factor_or_null(x)
    if (!is.null(factor)) return(rcond_factor(size, factor@handle, n))
  }
  base::rcond(as.matrix(x), type)
}

# The reciprocal condition of a positive definite matrix of n rows, from its norm and the handle of
# its lower factor.
rcond_factor <- function(size, factor, n) {
  inverse <- function(b, transpose) {
    as.vector(.Call(r_matrix_to_host, factor_solve(factor, matrix(b, ncol = 1L))))
  }
  reciprocal(size, inverse_norm(inverse, n, FALSE))
}

# The lower factor, or NULL if there is none.
factor_or_null <- function(x) {
  tryCatch(cl_chol(x, lower = TRUE),
           statcl_error_not_pd = function(e) NULL, statcl_error_nonfinite = function(e) NULL)
}

rcond_triangular <- function(x, type, upper) {
  # With a general view, the other triangle can have any values.
  whole <- if (x@view == "general") value(.Call(r_op, "copy_as", list(x@handle), 3L, NULL)) else x
  inverse <- function(b, transpose) solve_vector(x, b, upper, transpose)
  size <- tryCatch(inverse_norm(inverse, x@Dim[1L], type == "I"),
                   statcl_error_singular = function(e) Inf)
  reciprocal(norm_of(whole, type), size)
}

reciprocal <- function(size, inverse) {
  if (is.nan(size) || is.nan(inverse) || size == 0 || inverse == 0) 0 else 1 / inverse / size
}

solve_vector <- function(l, b, upper, transpose) {
  x <- tri_solve_left(l@handle, matrix(b, ncol = 1L), upper, transpose, -1L)
  as.vector(.Call(r_matrix_to_host, x))
}

# A lower bound of the one-norm of B, usually the norm itself, where inverse(b, transpose) is B b or
# B' b; of B' if `transposed`. Higham (1988), algorithm 4.1.
inverse_norm <- function(inverse, n, transposed) {
  size <- function(v) sum(abs(v))
  signs <- function(v) ifelse(v >= 0, 1, -1)
  x <- inverse(rep(1 / n, n), transposed)
  if (n == 1L) return(abs(x))
  best <- more <- size(x)
  from <- signs(x)
  at <- 0L
  for (i in 2:5) {
    z <- abs(inverse(from, !transposed))
    last <- at
    at <- which.max(z)
    # Stops if all are NaN, or if no element is larger than the last.
    if (length(at) == 0L || (last > 0L && z[at] <= z[last])) break
    x <- inverse(as.numeric(seq_len(n) == at), transposed)
    more <- size(x)
    if (is.nan(more) || more <= best || identical(signs(x), from)) break
    best <- more
    from <- signs(x)
  }
  # This vector gives a better bound where the steps stop too early.
  k <- seq_len(n) - 1
  max(best, more, 2 * size(inverse((-1)^k * (1 + k / (n - 1)), transposed)) / (3 * n))
}
