# Subscripts of base R as positions. They are checked against the shape alone, before anything is
# computed, copied or allocated.

out_of_bounds <- function(argument) abort_argument(argument, "subscript out of bounds")

# The elements of a condition given as a clMatrix (1, 0 or NA) as logical values.
condition_values <- function(index, argument) {
  values <- as.vector(index)
  if (any(values != 0 & values != 1, na.rm = TRUE)) refuse_condition(argument)
  values != 0
}

refuse_condition <- function(argument) {
  abort_argument(argument, sprintf(paste("a clMatrix used as '%s' must have only the values 0 and",
                                         "1, as from a comparison: use as.vector(%s) for",
                                         "positions"),
                                   argument, argument))
}

# An index of rows or columns as positions 1 .. n, NA where it is missing.
positions <- function(index, n, names, argument) {
  if (is.null(index)) return(integer())
  if (is.factor(index)) index <- as.integer(index)
  if (is_cl(index)) {
    if (length(index) != n) {
      abort_argument(argument, sprintf(paste("a clMatrix used as '%s' must have %d elements, one",
                                             "condition for each, not %.0f: use as.vector(%s) for",
                                             "positions"), argument, n, length(index), argument))
    }
    index <- condition_values(index, argument)
  }
  if (is.character(index)) {
    found <- match(index, names, incomparables = c(NA, ""))
    if (anyNA(found)) out_of_bounds(argument)
    return(found)
  }
  if (is.logical(index)) {
    if (length(index) > n) abort_argument(argument, "(subscript) logical subscript too long")
    return(seq_len(n)[as.vector(index)])
  }
  if (!is.numeric(index) || is.object(index)) {
    abort_argument(argument, sprintf("'%s' must be numeric, character or logical, not %s", argument,
                                     describe(index)))
  }
  index <- as.vector(index)
  if (any(index >= n + 1, na.rm = TRUE)) out_of_bounds(argument)
  if (check_signs(index, argument)) {
    # As in base R, a negative subscript beyond the end excludes nothing.
    index <- index[index > -(n + 1)]
    if (length(index) == 0L) return(seq_len(n))
    return(seq_len(n)[index])
  }
  index <- trunc(index)
  as.integer(index[is.na(index) | index != 0])
}

# Whether the subscripts are negative, which exclude elements; signs must not be mixed.
check_signs <- function(index, argument) {
  if (!any(index <= -1, na.rm = TRUE)) return(FALSE)
  if (anyNA(index) || any(index >= 1)) {
    abort_argument(argument, "can't mix NAs or positive subscripts with negative ones")
  }
  TRUE
}

# Positions to be replaced by `length` values: as in base R, missing positions are allowed for one
# value only.
drop_missing <- function(at, argument, length) {
  if (!anyNA(at)) return(at)
  if (length > 1) {
    abort_argument(argument, "NAs are not allowed in subscripted assignments of several values")
  }
  at[!is.na(at)]
}

is_run <- function(index) {
  n <- length(index)
  n > 0L && index[n] - index[1L] == n - 1L && all(diff(index) == 1L)
}

# ---- one subscript ------------------------------------------------------------------------------

# x[i] as linear indices 1 .. length(x) in column order. Missing subscripts, and as in base R those
# beyond the end, are NA; for replacement (`within`) those beyond the end are an error.
linear_index <- function(x, i, within = FALSE) {
  n <- as.double(length(x))
  if (is_cl(i)) i <- condition_values(i, "i")
  if (is.factor(i)) i <- as.integer(i)
  if (is.matrix(i) && ncol(i) == 2L && !is.logical(i)) return(pair_index(x, i))
  if (within) {
    beyond <- if (is.numeric(i)) any(i >= n + 1, na.rm = TRUE)
              else if (is.logical(i)) length(i) > n else is.character(i) && length(i) > 0L
    if (beyond) out_of_bounds("i")
  }
  if (is.numeric(i) && !is.object(i)) {
    i <- as.vector(i)
    check_signs(i, "i")
    i[i >= n + 1] <- NA
    kept <- is.na(i) | i > -(n + 1) # those beyond the end exclude nothing
    if (!all(kept)) i <- if (any(kept)) i[kept] else seq_len(n)
  } else if (!is.logical(i) && !is.character(i) && !is.null(i)) {
    abort_argument("i", sprintf("'i' must be numeric, logical or a matrix with two columns, not %s",
                                describe(i)))
  }
  subscript_index(n, i)
}

subscript_index <- function(n, i) {
  tryCatch(seq_len(n)[as.vector(i)], error = function(e) abort_argument("i", conditionMessage(e)))
}

# The same for a matrix of two columns, numbers or names of rows and of columns.
pair_index <- function(x, i) {
  if (is.character(i)) {
    at <- cbind(match(i[, 1L], x@Dimnames[[1L]], incomparables = c(NA, "")),
                match(i[, 2L], x@Dimnames[[2L]], incomparables = c(NA, "")))
    if (any(is.na(at) & !is.na(i))) out_of_bounds("i")
    i <- at
  } else if (!is.numeric(i) || is.object(i)) {
    abort_argument("i", sprintf("'i' must be numeric, logical or a matrix with two columns, not %s",
                                describe(i)))
  }
  row <- trunc(i[, 1L])
  column <- trunc(i[, 2L])
  # As R does: the column is ignored if the row is NA or 0.
  if (any(row < 0, column[!is.na(row) & row != 0] < 0, na.rm = TRUE)) {
    abort_argument("i", "negative values are not allowed in a matrix subscript")
  }
  used <- is.na(row) | (row != 0 & (is.na(column) | column != 0))
  row <- row[used]
  column <- column[used]
  known <- !is.na(row) & !is.na(column)
  if (any(row[known] > x@Dim[1L], column[known] > x@Dim[2L])) out_of_bounds("i")
  (column - 1) * x@Dim[1L] + row
}

# The row and column of x[[i]] or x[[i, j]]. `subscripts`: how many are given.
single_index <- function(x, subscripts, i, j) {
  if (subscripts == 1L) {
    at <- one_of(length(x), NULL, i, "i")
    return(as.integer(c((at - 1) %% x@Dim[1L], (at - 1) %/% x@Dim[1L])) + 1L)
  }
  c(one_of(x@Dim[1L], x@Dimnames[[1L]], i, "i"), one_of(x@Dim[2L], x@Dimnames[[2L]], j, "j"))
}

one_of <- function(n, names, index, argument) {
  if (is_cl(index)) {
    abort_argument(argument, sprintf("'%s' must be a number or a name, not a clMatrix", argument))
  }
  if (is.character(index) && length(index) == 1L) {
    return(positions(index, n, names, argument))
  }
  at <- tryCatch(seq_len(n)[[index]],
                 error = function(e) abort_argument(argument, conditionMessage(e)))
  if (is.na(at)) out_of_bounds(argument)
  at
}
