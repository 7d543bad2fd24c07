# Parts of matrices: selection, replacement, binding, transposes, diagonals.

#' Parts of device matrices
#'
#' Indices are those of base matrices: positive, negative, logical, names, or missing. `x[i, j]` is
#' a `clMatrix`, except that with `drop = TRUE` a result of one row or one column is a base R
#' vector, as `diag(x)` is: what base R gives as a vector comes to the host, what it gives as a
#' matrix stays where `x` is. `x[i]` with one index (positions, a logical matrix, or a matrix of row
#' and column numbers) reads those values.
#'
#' Replacement makes a new matrix; others that share the data keep their values. Blocks of
#' consecutive rows and columns are lazy ([lazy]), to read as to replace, and `t(x)` is: they take
#' part in the kernel of what they are used for. Other patterns of replacement go through the host.
#'
#' @param x a [clMatrix].
#' @param i,j indices.
#' @param drop whether one row or column is given as a base R vector.
#' @param value a number, vector, matrix or `clMatrix` that fits or recycles as in base R.
#' @param n how many rows (and, as a second number, columns); negative: all but so many.
#' @param keepnums whether `tail()` names rows and columns without names by their numbers.
#' @param nrow,ncol not used for a `clMatrix`.
#' @param names whether `diag()` keeps names that rows and columns share.
#' @param y,... as for [cbind2()]; vectors are taken as columns or rows.
#' @param object a [clMatrix].
#' @param tol the largest difference allowed between `a[i, j]` and `a[j, i]`, relative to the larger
#'   of both.
#' @param check.attributes whether row and column names have to be equal too.
#' @return A `clMatrix`; a base R vector as said above; for `isSymmetric()` `TRUE` or `FALSE`.
#' @section Errors:
#' `statcl_error_argument` for subscripts out of bounds and for shapes that do not fit.
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

# An index of base R as positions 1 .. n.
positions <- function(index, n, names, argument) {
  if (is.factor(index)) index <- as.integer(index)
  out_of_bounds <- function() abort_argument(argument, "subscript out of bounds")
  if (is.character(index)) {
    found <- match(index, names)
    if (anyNA(found)) out_of_bounds()
    return(found)
  }
  if (is.logical(index)) {
    if (length(index) > n) abort_argument(argument, "(subscript) logical subscript too long")
    if (anyNA(index)) abort_argument(argument, sprintf("'%s' has missing subscripts", argument))
    return(which(rep_len(index, n)))
  }
  if (!is.numeric(index) || is.object(index)) {
    abort_argument(argument, sprintf("'%s' must be numbers, names or logical, not %s", argument,
                                     describe(index)))
  }
  if (anyNA(index)) abort_argument(argument, sprintf("'%s' has missing subscripts", argument))
  if (any(abs(index) >= n + 1)) {
    # As base R: a negative subscript beyond the end leaves out nothing.
    if (any(index >= n + 1)) out_of_bounds()
    index <- index[index > -(n + 1)]
    if (length(index) == 0L) return(seq_len(n))
  }
  index <- trunc(index)
  if (any(index < 0)) {
    if (any(index > 0)) abort_argument(argument, "can't mix positive and negative subscripts")
    return(seq_len(n)[index])
  }
  as.integer(index[index != 0])
}

is_run <- function(index) {
  n <- length(index)
  n > 0L && index[n] - index[1L] == n - 1L && all(diff(index) == 1L)
}

#' @rdname clMatrix-index
#' @export
`[.clMatrix` <- function(x, i, j, ..., drop = TRUE) {
  if (...length() > 0L) abort_argument("...", "incorrect number of dimensions")
  # x[i] has one index besides drop; x[i, ] has two, one of them empty.
  indices <- nargs() - 1L - !missing(drop)
  drop <- check_flag(drop, "drop")
  if (indices == 1L) return(if (missing(i)) x else values_at(x, i))
  rows <- if (!missing(i)) positions(i, x@Dim[1L], x@Dimnames[[1L]], "i")
  columns <- if (!missing(j)) positions(j, x@Dim[2L], x@Dimnames[[2L]], "j")
  m <- if (is.null(rows)) x@Dim[1L] else length(rows)
  n <- if (is.null(columns)) x@Dim[2L] else length(columns)
  if (drop && (m == 1L || n == 1L)) return(fetch(x, rows, columns)[, , drop = TRUE])
  if ((is.null(rows) || is_run(rows)) && (is.null(columns) || is_run(columns))) {
    at <- c(if (is.null(rows)) 1L else rows[1L], if (is.null(columns)) 1L else columns[1L])
    return(value(.Call(r_expr_part, x@handle, at[1L] - 1L, at[2L] - 1L, m, n), NULL,
                 part_names(x, rows, columns)))
  }
  value(.Call(r_matrix_select, x@handle, rows, columns, TRUE), NULL, part_names(x, rows, columns))
}

# x[i]: fetches the rows and columns that the positions lie in.
values_at <- function(x, i) {
  if (is_cl(i)) {
    abort_argument("i", "a clMatrix cannot be an index: use as.matrix(i) != 0 for a logical one")
  }
  n <- x@Dim[1L]
  if (is.matrix(i) && is.numeric(i) && ncol(i) == 2L) {
    rows <- i[, 1L]
    columns <- i[, 2L]
  } else if (is.numeric(i) && n > 0L && !anyNA(i) && all(i >= 1)) {
    at <- trunc(as.vector(i))
    rows <- (at - 1) %% n + 1
    columns <- (at - 1) %/% n + 1
  } else {
    return(plain_values(x, i))
  }
  inside <- all(rows >= 1, rows < n + 1, columns >= 1, columns < x@Dim[2L] + 1, na.rm = FALSE)
  if (is.na(inside) || !inside) return(plain_values(x, i))
  used_rows <- sort(unique(as.integer(rows)))
  used_columns <- sort(unique(as.integer(columns)))
  block <- fetch(x, used_rows, used_columns)
  as.vector(block[cbind(match(as.integer(rows), used_rows),
                        match(as.integer(columns), used_columns))])
}

# x[i] by base R, on a copy of all values.
plain_values <- function(x, i) {
  x <- as.matrix(x)
  tryCatch(x[i], error = function(e) abort_argument("i", conditionMessage(e)))
}

#' @rdname clMatrix-index
#' @export
`[<-.clMatrix` <- function(x, i, j, ..., value) {
  if (...length() > 0L) abort_argument("...", "incorrect number of subscripts")
  if (!is_cl(value)) value <- check_numeric(value, "value")
  if (nargs() == 3L && !missing(i)) return(replace_values(x, i, value))
  rows <- if (missing(i)) seq_len(x@Dim[1L]) else positions(i, x@Dim[1L], x@Dimnames[[1L]], "i")
  columns <- if (missing(j)) seq_len(x@Dim[2L]) else positions(j, x@Dim[2L], x@Dimnames[[2L]], "j")
  m <- length(rows)
  n <- length(columns)
  if (m == 0L || n == 0L) return(x)
  size <- as.double(m) * n
  if (length(value) == 0L || size %% length(value) != 0) {
    abort_argument("value", sprintf("'value' has %d values, which do not fill %d x %d",
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
            .Call(r_expr_broadcast, like(matrix(value), x)@handle, m, n)
          else matrix(value, m, n)
  value(.Call(r_expr_with_part, x@handle, rows[1L] - 1L, columns[1L] - 1L, part), NULL, x@Dimnames)
}

replace_values <- function(x, i, value) {
  whole <- as.matrix(x)
  if (is_cl(i)) abort_argument("i", "a clMatrix cannot be an index: use as.matrix(i) != 0")
  if (is_cl(value)) value <- as.vector(value)
  before <- length(whole)
  if (length(value) == 0L) abort_argument("value", "replacement has length zero")
  tryCatch(whole[i] <- value, error = function(e) abort_argument("i", conditionMessage(e)))
  if (length(whole) != before) abort_argument("i", "subscript out of bounds")
  like(whole, x, x@Dimnames)
}

#' @rdname clMatrix-index
#' @export
t.clMatrix <- function(x) {
  value(.Call(r_expr_transpose, x@handle), NULL, x@Dimnames[2:1])
}

#' @importFrom utils head tail str
NULL

# How many of `size` elements head() or tail() keep.
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
  value(.Call(r_matrix_with_diagonal, x@handle, matrix(rep_len(value, n), ncol = 1L)), NULL,
        x@Dimnames)
})

# A base R value: the matrix itself, or the copy of a clMatrix.
on_host <- function(x) if (is_cl(x)) as.matrix(x) else x

# ---- binding ------------------------------------------------------------------------------------

# The operand of a bind beside a matrix of `size` rows (columns): a vector becomes one column (row).
bind_operand <- function(x, size, by_columns, argument) {
  if (is_cl(x)) return(x)
  x <- check_numeric(x, argument)
  if (!is.null(dim(x))) return(x)
  if (length(x) == 0L || size %% length(x) != 0) {
    abort_argument(argument, sprintf("'%s' has length %d, which does not fill %.0f %s", argument,
                                     length(x), size, if (by_columns) "rows" else "columns"))
  }
  x <- rep_len(x, size)
  if (by_columns) matrix(x, ncol = 1L) else matrix(x, nrow = 1L)
}

bind_two <- function(x, y, by_columns) {
  if (is.null(y)) return(x)
  if (is.null(x)) return(y)
  across <- if (by_columns) 1L else 2L
  size <- dim(if (is_cl(x)) x else y)[across]
  x <- bind_operand(x, size, by_columns, "x")
  y <- bind_operand(y, size, by_columns, "y")
  if (dim(x)[across] != dim(y)[across]) {
    abort_argument("y", sprintf("number of %s of matrices must match: %d and %d",
                                if (by_columns) "rows" else "columns", dim(x)[across],
                                dim(y)[across]))
  }
  names <- list(NULL, NULL)
  names[across] <- list(if (is.null(dimnames(x)[[across]])) dimnames(y)[[across]]
                        else dimnames(x)[[across]])
  names[3L - across] <- list(join_names(dimnames(x)[[3L - across]], dim(x)[3L - across],
                                        dimnames(y)[[3L - across]], dim(y)[3L - across]))
  value(.Call(r_matrix_bind, operand(x, "x"), operand(y, "y"), by_columns), NULL, names)
}

join_names <- function(x, size_x, y, size_y) {
  if (is.null(x) && is.null(y)) return(NULL)
  c(if (is.null(x)) character(size_x) else x, if (is.null(y)) character(size_y) else y)
}

#' @rdname clMatrix-index
#' @export
setMethod("cbind2", signature("clMatrix", "ANY"), function(x, y, ...) bind_two(x, y, TRUE))

#' @rdname clMatrix-index
#' @export
setMethod("cbind2", signature("ANY", "clMatrix"), function(x, y, ...) bind_two(x, y, TRUE))

#' @rdname clMatrix-index
#' @export
setMethod("cbind2", signature("clMatrix", "clMatrix"), function(x, y, ...) bind_two(x, y, TRUE))

#' @rdname clMatrix-index
#' @export
setMethod("cbind2", signature("clMatrix", "missing"), function(x, y, ...) x)

#' @rdname clMatrix-index
#' @export
setMethod("rbind2", signature("clMatrix", "ANY"), function(x, y, ...) bind_two(x, y, FALSE))

#' @rdname clMatrix-index
#' @export
setMethod("rbind2", signature("ANY", "clMatrix"), function(x, y, ...) bind_two(x, y, FALSE))

#' @rdname clMatrix-index
#' @export
setMethod("rbind2", signature("clMatrix", "clMatrix"), function(x, y, ...) bind_two(x, y, FALSE))

#' @rdname clMatrix-index
#' @export
setMethod("rbind2", signature("clMatrix", "missing"), function(x, y, ...) x)

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
