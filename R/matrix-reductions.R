# Reductions of clMatrix: R's summaries, and sums and means of rows and columns. The arithmetic that
# leads to a matrix runs in the kernel that reduces it.

#' Sums, means and extremes of device matrices
#'
#' The summary functions of base R. Their argument is not stored first: `sum((y - x)^2)` reads `y`
#' and `x` once and returns a number ([lazy]). The order of summation is fixed, so results are
#' bitwise reproducible; they may differ from base R's in the last bits.
#'
#' These functions return R numbers and vectors, as base R does, and therefore wait for the device.
#' [cl_reduce()] is the lazy alternative: it returns a `clMatrix` for use in further arithmetic and,
#' with [cl_eval()], can share a kernel with other results.
#'
#' `sum(x, y)`, `max(0, x)` and the like accept several operands. R dispatches only on the first
#' two: `max(0, 1, x)` fails in R itself, `max(x, 0, 1)` does not.
#'
#' @param x A [clMatrix].
#' @param na.rm Whether to omit missing values.
#' @param dims Must be 1.
#' @param trim Must be 0.
#' @param recursive Not used.
#' @param ... Further operands, base R or `clMatrix`; ignored by `mean()` and the sums of rows and
#'   columns.
#' @return `sum()`, `prod()`, `min()`, `max()`, `mean()`: a number. `range()`: two numbers. `any()`,
#'   `all()`, `anyNA()`: a logical. `rowSums()` and related functions: a base R vector.
#'   `which.min()`, `which.max()`: the index of the first smallest or largest element, in
#'   column-major order, ignoring `NA`; `integer(0)` if all elements are `NA`.
#' @section Errors:
#' `statcl_error_argument` for arguments of the wrong type, `statcl_error_memory` if the device does
#' not have enough memory.
#' @name clMatrix-reductions
#' @examples
#' x <- as_cl(matrix(1:6, 2))
#' sum((x - 2)^2)
#' range(x)
#' rowMeans(exp(-x))
#' which.max(x %% 4)
NULL

# Reductions of one matrix by name (reduce.def), in one kernel: a list of vectors. `margin`: 0 for
# one value, 1 for one a row, 2 for one a column.
reductions <- function(ops, x, margin = 0L) .Call(r_lazy_reduce, ops, x, margin)

reduce <- function(op, x) .Call(r_lazy_reduce, op, x, 0L)[[1L]]

# Sums over all elements (margin 0), rows (1) or columns (2), divided by `counts`. If a partial sum
# overflows (base R uses extended precision), the numbers are scaled by a power of two, which is
# exact, and summed again.
sums_of <- function(x, margin = 0L, counts = 1) {
  sums <- .Call(r_lazy_reduce, "sum", x, margin)[[1L]]
  large <- !is.finite(sums)
  if (!any(large)) return(sums / counts)
  again <- .Call(r_lazy_reduce, "sum", x * 2^-64, margin)[[1L]] / counts
  sums <- sums / counts
  sums[large] <- again[large] * 2^64
  sums
}

# x with missing values replaced by `number`.
without_na <- function(x, number) binary("fill_nan", x, number)

# One operand of a summary, reduced to the value that represents it in base R's function.
summary_part <- function(name, x, na.rm) {
  if (!is_cl(x)) {
    x <- check_numeric(x, "...")
    if (name %in% c("any", "all")) x <- x != 0
    return(if (na.rm) x[!is.na(x)] else x)
  }
  if (length(x) == 0L) return(numeric())
  if (name %in% c("any", "all")) {
    counts <- reductions(c("count_nan", "count_true"), x)
    missing <- counts[[1L]]
    true <- counts[[2L]]
    false <- length(x) - missing - true
    return(c(if (true > 0) TRUE, if (false > 0) FALSE, if (missing > 0 && !na.rm) NA))
  }
  if (name == "sum" && !na.rm) return(sums_of(x))
  ops <- if (name == "range") c("min", "max") else name
  if (!na.rm) return(unlist(reductions(ops, x)))
  fill <- list(sum = 0, prod = 1, min = Inf, max = -Inf, range = c(Inf, -Inf))[[name]]
  parts <- lapply(seq_along(ops), function(k) {
    .Call(r_op, ops[k], list(without_na(x, fill[k])@handle), 0L, NULL)
  })
  # Together with the number of missing values, in one kernel.
  found <- .Call(r_expr_values, c(parts, .Call(r_op, "count_nan", list(x@handle), 0L, NULL)))
  found <- vapply(found, as.vector, 0)
  if (name == "sum" && !is.finite(found[1L])) found[1L] <- sums_of(without_na(x, 0))
  if (found[length(found)] == length(x)) numeric() else found[-length(found)]
}

#' @rdname clMatrix-reductions
#' @export
setMethod("Summary", "clMatrix", function(x, ..., na.rm = FALSE) {
  summarize(.Generic, list(x, ...), check_flag(na.rm, "na.rm"))
})

# Reached only if one of the first two arguments is an S4 object, of whatever class.
#' @rdname clMatrix-reductions
#' @export
setMethod("Summary", "clPlain", function(x, ..., na.rm = FALSE) {
  if (any(vapply(list(...), is_cl, NA))) {
    return(summarize(.Generic, list(x, ...), check_flag(na.rm, "na.rm")))
  }
  callNextMethod()
})

summarize <- function(name, operands, na.rm) {
  # Without na.rm, a sum that is NaN because of infinite values is the result.
  do.call(name, lapply(operands, function(part) summary_part(name, part, na.rm)), quote = TRUE)
}

#' @rdname clMatrix-reductions
#' @export
setMethod("sum", "clMatrix", function(x, ..., na.rm = FALSE) {
  if (...length() == 0L && identical(na.rm, FALSE)) return(sums_of(x))
  summarize("sum", list(x, ...), check_flag(na.rm, "na.rm"))
})

#' @rdname clMatrix-reductions
#' @export
mean.clMatrix <- function(x, trim = 0, na.rm = FALSE, ...) {
  if (check_number(trim, "trim") != 0) {
    abort_argument("trim", "'trim' must be 0 for a clMatrix: use mean(as.vector(x), trim = )")
  }
  n <- length(x)
  if (n == 0) return(NaN)
  if (!check_flag(na.rm, "na.rm")) return(sums_of(x, 0L, n))
  sums_without_na(x, 0L, n, TRUE)
}

# Like sums_of(), without missing values. `average`: divides by the number of values that are not
# missing, out of `counts`.
sums_without_na <- function(x, margin, counts, average) {
  filled <- without_na(x, 0)
  parts <- .Call(r_expr_values, list(.Call(r_op, "sum", list(filled@handle), margin, NULL),
                                     .Call(r_op, "count_nan", list(x@handle), margin, NULL)))
  counts <- if (average) counts - as.vector(parts[[2L]]) else 1
  sums <- as.vector(parts[[1L]])
  if (all(is.finite(sums))) sums / counts else sums_of(filled, margin, counts)
}

# Sums over columns (margin 1: a value for each row) or over rows.
margin_sums <- function(x, margin, na.rm, dims, average = FALSE) {
  if (check_number(dims, "dims") != 1) abort_argument("dims", "'dims' must be 1")
  counts <- .Call(r_matrix_shape, x@handle)[3L - margin]
  sums <- if (check_flag(na.rm, "na.rm")) sums_without_na(x, margin, counts, average)
          else sums_of(x, margin, if (average) counts else 1)
  names(sums) <- x@Dimnames[[margin]]
  sums
}

setGeneric("rowSums")
setGeneric("colSums")
setGeneric("rowMeans")
setGeneric("colMeans")
setGeneric("which.min")
setGeneric("which.max")

#' @rdname clMatrix-reductions
#' @export
setMethod("rowSums", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 1L, na.rm, dims)
})

#' @rdname clMatrix-reductions
#' @export
setMethod("colSums", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 2L, na.rm, dims)
})

#' @rdname clMatrix-reductions
#' @export
setMethod("rowMeans", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 1L, na.rm, dims, average = TRUE)
})

#' @rdname clMatrix-reductions
#' @export
setMethod("colMeans", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 2L, na.rm, dims, average = TRUE)
})

#' @rdname clMatrix-reductions
#' @export
setMethod("which.min", "clMatrix", function(x) index_of("which_min", x))

#' @rdname clMatrix-reductions
#' @export
setMethod("which.max", "clMatrix", function(x) index_of("which_max", x))

index_of <- function(op, x) {
  if (length(x) == 0L) return(integer())
  at <- reduce(op, x)
  if (at == 0) integer() else if (at <= .Machine$integer.max) as.integer(at) else at
}

#' @rdname clMatrix-reductions
#' @export
setMethod("anyNA", "clMatrix", function(x, recursive = FALSE) {
  length(x) > 0L && reduce("count_nan", x) > 0
})
