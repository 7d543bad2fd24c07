# Parts of matrices: selection, replacement, binding, transposes, diagonals.

#' Extract and replace parts of device matrices
#'
#' Indices are those of base R matrices: positive, negative, logical, names, `NA`, `NULL`, or
#' missing. `x[i, j]` is a `clMatrix`, except that with `drop = TRUE` a result with one row or one
#' column is a base R vector, and so is `diag(x)`. In general, results that are vectors in base R
#' are copied to the host, and results that are matrices stay where `x` is. `x[i]` with a single
#' index (positions, a logical matrix, or a matrix of row and column numbers or names) returns those
#' values, `x[[i]]` and `x[[i, j]]` a single number.
#'
#' A `clMatrix` as index is a condition, as comparisons return it: 1 selects an element, 0 does not.
#' `x[x > 0]` is a base R vector; `x[x < 0] <- 0` stays where `x` is. (If a `clMatrix` `i` contains
#' positions, use `as.vector(i)`.)
#'
#' Replacement makes a new matrix; other matrices that share the data keep their values. Reading and
#' replacing blocks of consecutive rows and columns is lazy ([lazy]), and so is `t(x)`: they become
#' part of the kernel of the expression that uses them. Other replacements copy the data through the
#' host. A matrix never grows: where base R would extend it to a longer vector, the subscript is out
#' of bounds. Subscripts are checked before anything is computed.
#'
#' @param x A [clMatrix].
#' @param i,j Indices.
#' @param drop Whether a single row or column is returned as a base R vector.
#' @param value A number, vector, matrix or `clMatrix` that has the right size or is recycled as in
#'   base R.
#' @param n Number of rows (and, as a second number, columns); negative numbers are those to omit.
#' @param keepnums Whether `tail()` names unnamed rows and columns by their numbers.
#' @param nrow,ncol Not used for a `clMatrix`.
#' @param names Whether `diag()` keeps names that rows and columns share.
#' @param y,... As for [cbind()] and [cbind2()]; vectors are used as columns or rows.
#' @param deparse.level As for [cbind()].
#' @param exact Not used.
#' @param object A [clMatrix].
#' @param tol The largest difference allowed between `a[i, j]` and `a[j, i]`, relative to the larger
#'   of the two.
#' @param check.attributes Whether row and column names must be equal too.
#' @return A `clMatrix`, or a base R vector as described above; for `isSymmetric()` `TRUE` or
#'   `FALSE`.
#' @section Errors:
#' `statcl_error_argument` for subscripts out of bounds and for shapes that do not conform.
#' @name clMatrix-index
#' @examples
#' x <- as_cl(matrix(1:12, 3))
#' x[2:3, ]
#' x[1, ]
#' x[5]
#' x[1, 2] <- 0
#' t(x)
#' diag(x)
#' cbind(x, 1:3)
#' head(x, 2)
NULL

# Values x[rows, columns] (checked integers, NULL for all) as a base R matrix with dimnames.
fetch <- function(x, rows, columns) {
  value(.Call(r_matrix_select, x@handle, rows, columns, FALSE), NULL, part_names(x, rows, columns))
}

part_names <- function(x, rows, columns) {
  names <- x@Dimnames
  if (!is.null(rows) && !is.null(names[[1L]])) names[[1L]] <- names[[1L]][rows]
  if (!is.null(columns) && !is.null(names[[2L]])) names[[2L]] <- names[[2L]][columns]
  names
}

#' @rdname clMatrix-index
#' @export
`[.clMatrix` <- function(x, i, j, ..., drop = TRUE) {
  if (...length() > 0L) abort_argument("...", "incorrect number of dimensions")
  # x[i] has one index in addition to drop; x[i, ] has two, one of them empty.
  indices <- nargs() - 1L - !missing(drop)
  drop <- check_flag(drop, "drop")
  if (indices == 1L) return(if (missing(i)) x else values_at(x, i))
  rows <- if (!missing(i)) positions(i, x@Dim[1L], x@Dimnames[[1L]], "i")
  columns <- if (!missing(j)) positions(j, x@Dim[2L], x@Dimnames[[2L]], "j")
  m <- if (is.null(rows)) x@Dim[1L] else length(rows)
  n <- if (is.null(columns)) x@Dim[2L] else length(columns)
  if (anyNA(rows) || anyNA(columns)) return(part_with_missing(x, rows, columns, drop))
  if (drop && (m == 1L || n == 1L)) return(fetch(x, rows, columns)[, , drop = TRUE])
  if ((is.null(rows) || is_run(rows)) && (is.null(columns) || is_run(columns))) {
    at <- c(if (is.null(rows)) 1L else rows[1L], if (is.null(columns)) 1L else columns[1L])
    return(value(.Call(r_op, "part", list(x@handle), c(at - 1L, m, n), NULL), NULL,
                 part_names(x, rows, columns)))
  }
  value(.Call(r_matrix_select, x@handle, rows, columns, TRUE), NULL, part_names(x, rows, columns))
}

# The same with missing subscripts, which give rows and columns of NA as in base R. Computed on the
# host.
part_with_missing <- function(x, rows, columns, drop) {
  if (is.null(rows)) rows <- seq_len(x@Dim[1L])
  if (is.null(columns)) columns <- seq_len(x@Dim[2L])
  whole <- matrix(NA_real_, length(rows), length(columns))
  m <- which(!is.na(rows))
  n <- which(!is.na(columns))
  if (length(m) > 0L && length(n) > 0L) whole[m, n] <- fetch(x, rows[m], columns[n])
  names <- part_names(x, rows, columns)
  if (has_names(names)) dimnames(whole) <- names
  if (drop && any(dim(whole) == 1L)) whole[, , drop = TRUE] else like(whole, x)
}

# x[i]: downloads the rows and columns that contain the elements, or the whole matrix if these are
# most of it.
values_at <- function(x, i) {
  at <- linear_index(x, i)
  if (length(at) == 0L) return(numeric())
  known <- !is.na(at)
  out <- rep(NA_real_, length(at))
  if (!any(known)) return(out)
  if (2 * length(at) > length(x)) return(as.matrix(x)[at])
  rows <- as.integer((at[known] - 1) %% x@Dim[1L]) + 1L
  columns <- as.integer((at[known] - 1) %/% x@Dim[1L]) + 1L
  used_rows <- sort(unique(rows))
  used_columns <- sort(unique(columns))
  block <- fetch(x, used_rows, used_columns)
  out[known] <- block[cbind(match(rows, used_rows), match(columns, used_columns))]
  out
}

#' @rdname clMatrix-index
#' @export
`[[.clMatrix` <- function(x, i, j, ..., exact = TRUE) {
  at <- single_index(x, count_single(nargs() - !missing(exact), missing(i), missing(j)), i, j)
  as.vector(fetch(x, at[1L], at[2L]))
}

# The number of subscripts of x[[...]]; an error unless one or two.
count_single <- function(arguments, no_row, no_column) {
  if (!arguments %in% 2:3) abort_argument("...", "incorrect number of subscripts")
  if (no_row) abort_argument("i", "x[[i]] and x[[i, j]] must not have empty subscripts")
  if (arguments == 3L && no_column) {
    abort_argument("j", "x[[i]] and x[[i, j]] must not have empty subscripts")
  }
  arguments - 1L
}

# ---- replacement --------------------------------------------------------------------------------

#' @rdname clMatrix-index
#' @export
`[<-.clMatrix` <- function(x, i, j, ..., value) {
  if (...length() > 0L) abort_argument("...", "incorrect number of subscripts")
  if (!is_cl(value)) value <- check_numeric(value, "value")
  if (length(x) == 0L && length(value) == 0L) return(x)
  if (nargs() == 3L && !missing(i)) return(replace_values(x, i, value))
  if (nargs() == 3L) value <- replacement(value, length(x))
  rows <- if (missing(i)) seq_len(x@Dim[1L]) else positions(i, x@Dim[1L], x@Dimnames[[1L]], "i")
  columns <- if (missing(j)) seq_len(x@Dim[2L]) else positions(j, x@Dim[2L], x@Dimnames[[2L]], "j")
  if (length(value) == 0L && length(rows) > 0L && length(columns) > 0L) {
    abort_argument("value", "replacement has length zero")
  }
  rows <- drop_missing(rows, "i", length(value))
  columns <- drop_missing(columns, "j", length(value))
  m <- length(rows)
  n <- length(columns)
  if (m == 0L || n == 0L) return(x)
  size <- as.double(m) * n
  if (size %% length(value) != 0) {
    abort_argument("value", sprintf("'value' has length %d and cannot be recycled to %d x %d",
                                    length(value), m, n))
  }
  if (is_cl(value) && !identical(value@Dim, c(m, n))) value <- as.vector(value)
  if (!is_run(rows) || !is_run(columns)) {
    whole <- as.matrix(x)
    whole[rows, columns] <- if (is_cl(value)) as.matrix(value) else value
    return(like(whole, x, x@Dimnames))
  }
  part <- if (is_cl(value)) value@handle
          else if (size > 1 && length(value) == 1L)
            repeated(like(matrix(value), x), c(m, n))
          else matrix(value, m, n)
  at <- c(rows[1L], columns[1L]) - 1L
  value(.Call(r_op, "with_part", list(x@handle, part), at, NULL), NULL, x@Dimnames)
}

# `value` recycled to `count` elements of a vector, as in base R: with a warning if count is not a
# multiple.
replacement <- function(value, count) {
  if (count == 0 || length(value) == 1L) return(value)
  if (length(value) == 0L) abort_argument("value", "replacement has length zero")
  if (length(value) == count) return(value)
  if (count %% length(value) != 0) {
    statcl_warning("recycled",
                   "number of items to replace is not a multiple of replacement length")
  }
  rep_len(as.vector(value), count)
}

# x[i] <- value with one subscript.
replace_values <- function(x, i, value) {
  if (is_cl(i) && identical(i@Dim, x@Dim) && length(value) == 1L) {
    return(replace_where(x, i, value))
  }
  at <- linear_index(x, i, within = TRUE)
  if (length(at) > 0L && length(value) == 0L) {
    abort_argument("value", "replacement has length zero")
  }
  at <- drop_missing(at, "i", length(value))
  if (length(at) == 0L) return(x)
  value <- as.vector(replacement(value, length(at)))
  if (length(at) == 1L) {
    row <- (at - 1) %% x@Dim[1L] + 1
    column <- (at - 1) %/% x@Dim[1L] + 1
    x[row, column] <- value
    return(x)
  }
  whole <- as.matrix(x)
  whole[at] <- value
  like(whole, x, x@Dimnames)
}

# Replaces elements for which a condition holds (a clMatrix of the same shape) by one value; lazy,
# on the engine of x.
replace_where <- function(x, i, value) {
  if (length(x) == 0L) return(x)
  if (reduce("count_true", binary("and", i != 0, i != 1)) > 0) refuse_condition("i")
  out <- ternary("ifelse", without_na(i, 0), value, x, c("i", "value", "x"))
  out@Dimnames <- x@Dimnames
  out
}

#' @rdname clMatrix-index
#' @export
`[[<-.clMatrix` <- function(x, i, j, ..., value) {
  subscripts <- count_single(nargs() - 1L, missing(i), missing(j))
  if (!is_cl(value)) value <- check_numeric(value, "value")
  if (length(value) != 1L) {
    abort_argument("value", if (length(value) == 0L) "replacement has length zero"
                            else "more elements supplied than there are to replace")
  }
  at <- single_index(x, subscripts, i, j)
  x[at[1L], at[2L]] <- value
  x
}

#' Select rows of a device matrix by a condition
#'
#' The method of [subset()] for a [clMatrix].
#'
#' @param x A [clMatrix].
#' @param subset A condition for each row: logical, or a `clMatrix` of 1 and 0; missing values count
#'   as `FALSE`.
#' @param select Columns, as names or numbers: for example `c(a, b)`, `a:c`, `-a`.
#' @param drop Whether a single row or column is returned as a base R vector.
#' @param ... Not used.
#' @return A `clMatrix`, or a base R vector as described for `drop`.
#' @section Errors:
#' `statcl_error_argument` for a condition that is not logical, or longer than the number of rows.
#' @export
#' @examples
#' x <- as_cl(matrix(1:6, 3, dimnames = list(NULL, c("a", "b"))))
#' subset(x, x[, "a"] > 1)
#' subset(x, select = b)
subset.clMatrix <- function(x, subset, select, drop = FALSE, ...) {
  columns <- TRUE
  if (!missing(select)) {
    numbers <- as.list(seq_len(x@Dim[2L]))
    names(numbers) <- x@Dimnames[[2L]]
    columns <- eval(substitute(select), numbers, parent.frame())
  }
  if (missing(subset)) return(x[, columns, drop = drop])
  if (is_cl(subset)) subset <- condition_values(subset, "subset")
  if (!is.logical(subset)) abort_argument("subset", "'subset' must be logical")
  x[subset & !is.na(subset), columns, drop = drop]
}

#' @rdname clMatrix-index
#' @export
t.clMatrix <- function(x) {
  value(.Call(r_op, "transpose", list(x@handle), NULL, NULL), NULL, x@Dimnames[2:1])
}

#' @importFrom utils head tail str
NULL

# The number of `size` elements that head() or tail() keep.
kept <- function(n, size) {
  if (is.na(n)) size else if (n < 0) max(size + n, 0) else min(n, size)
}

check_head <- function(n) {
  if (!is.numeric(n) || is.object(n) || !length(n) %in% 1:2 || all(is.na(n)) ||
      any(n != round(n), na.rm = TRUE)) {
    abort_argument("n", "'n' must be one or two whole numbers")
  }
  if (length(n) == 1L) c(n, NA) else n
}

#' @rdname clMatrix-index
#' @export
head.clMatrix <- function(x, n = 6L, ...) {
  n <- check_head(n)
  size <- mapply(kept, n, x@Dim)
  x[seq_len(size[1L]), seq_len(size[2L]), drop = FALSE]
}

#' @rdname clMatrix-index
#' @export
tail.clMatrix <- function(x, n = 6L, keepnums = TRUE, ...) {
  n <- check_head(n)
  size <- mapply(kept, n, x@Dim)
  first <- x@Dim - size
  part <- x[first[1L] + seq_len(size[1L]), first[2L] + seq_len(size[2L]), drop = FALSE]
  if (!check_flag(keepnums, "keepnums")) return(part)
  names <- part@Dimnames
  for (side in which(!is.na(n) & size > 0)) {
    if (!is.null(names[[side]])) next
    names[[side]] <- sprintf(c("[%.0f,]", "[,%.0f]")[side], first[side] + seq_len(size[side]))
  }
  part@Dimnames <- names
  part
}

# ---- diagonals ----------------------------------------------------------------------------------

setGeneric("diag")
setGeneric("diag<-")

#' @rdname clMatrix-index
#' @export
setMethod("diag", "clMatrix", function(x = 1, nrow, ncol, names = TRUE) {
  if (!missing(nrow) || !missing(ncol)) {
    abort_argument("nrow", "'nrow' or 'ncol' cannot be specified when 'x' is a matrix")
  }
  values <- .Call(r_matrix_diagonal, x@handle)
  sides <- x@Dimnames
  if (check_flag(names, "names") && !is.null(sides[[1L]]) && !is.null(sides[[2L]])) {
    shared <- sides[[1L]][seq_along(values)]
    if (identical(shared, sides[[2L]][seq_along(values)])) names(values) <- shared
  }
  values
})

#' @rdname clMatrix-index
#' @export
setMethod("diag<-", "clMatrix", function(x, value) {
  n <- min(x@Dim)
  value <- as.vector(check_numeric(on_host(value), "value"))
  if (length(value) != 1L && length(value) != n) {
    abort_argument("value", "replacement diagonal has wrong length")
  }
  diagonal <- matrix(rep_len(value, n), ncol = 1L)
  value(.Call(r_op, "with_diagonal", list(x@handle, diagonal), NULL, NULL), NULL, x@Dimnames)
})

# A base R value: the matrix itself, or the copy of a clMatrix.
# ---- symmetry -----------------------------------------------------------------------------------

#' @rdname clMatrix-index
#' @export
isSymmetric.clMatrix <- function(object, tol = 100 * .Machine$double.eps, check.attributes = TRUE,
                                 ...) {
  tol <- check_number(tol, "tol", 0)
  if (object@Dim[1L] != object@Dim[2L]) return(FALSE)
  names <- object@Dimnames
  if (check_flag(check.attributes, "check.attributes") && !identical(names[[1L]], names[[2L]])) {
    return(FALSE)
  }
  if (object@view == "symmetric") return(TRUE)
  .Call(r_matrix_check, object@handle, 1L, tol) == 0
}
