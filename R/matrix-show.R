# Printing. A clMatrix can be printed in every state of its data (freed, restored, in a forked
# process, on a lost device), which is shown; at most a corner of the values is fetched.

#' Print and summarise device matrices
#'
#' Printing shows one line with shape, view, size and device, and the first rows and columns, which
#' are the only values downloaded. For a pending matrix ([lazy]) only these are computed. If it has
#' more, it stays pending, and the line shows the expression, with `x1`, `x2`, ... for matrices.
#' `format()` and `str()` compute nothing. A matrix whose data no longer exists (because it was
#' freed, or after a fork) can be printed too; the line states the reason.
#'
#' `object.size()` cannot see the memory of a device: it returns the few bytes of the handle. The
#' printed line and [cl_memory()] show the bytes of the values.
#'
#' @param object,x A [clMatrix].
#' @param ... Passed on to the printing of the values; ignored by `format()` and `summary()`.
#' @return `format()`: the line as a string. `summary()`: a list of class `summary.clMatrix` with
#'   `dim`, `view`, `device`, `bytes`, `min`, `mean`, `max` and `missing` (the number of `NA`). The
#'   others: `x`, invisibly.
#' @name clMatrix-print
#' @examples
#' x <- as_cl(matrix(rnorm(200), 20))
#' x
#' format(x)
#' summary(x)
#' str(x)
NULL

#' @rdname clMatrix-print
#' @export
setMethod("show", "clMatrix", function(object) print_cl(object))

#' @rdname clMatrix-print
#' @export
print.clMatrix <- function(x, ...) print_cl(x, ...)

print_cl <- function(x, ...) {
  shown <- pmin(x@Dim, 6L)
  if (nzchar(state_of(x)$state) || any(shown == 0L)) {
    cat(format(x), "\n", sep = "")
    return(invisible(x))
  }
  corner <- corner_of(x, shown)
  cat(format(x), "\n", sep = "")
  print(corner, ...)
  rest <- x@Dim - shown
  if (any(rest > 0L)) {
    parts <- sprintf("%d %s%s", rest, c("row", "column"), ifelse(rest == 1L, "", "s"))
    cat("# ... ", paste(parts[rest > 0L], collapse = ", "), " more\n", sep = "")
  }
  invisible(x)
}

# The first rows and columns, as a base R matrix. Of a pending matrix that is larger only these are
# computed, and it stays pending.
corner_of <- function(x, shown) {
  rows <- seq_len(shown[1L])
  columns <- seq_len(shown[2L])
  if (all(shown == x@Dim) || !is_pending(x)) return(fetch(x, rows, columns))
  part <- .Call(r_op, "part", list(x@handle), c(0L, 0L, shown), NULL)
  value(.Call(r_matrix_to_host, part), NULL, part_names(x, rows, columns))
}

# The information of C on the data: state ("" if usable), device, host, bytes.
state_of <- function(x) .Call(r_matrix_info, x@handle)

# The note of a fit to data with this information (R/base-engine-text.R).
data_note <- function(info) {
  list(where = if (isTRUE(info$host)) "host" else info$device, why = "data")
}

# The information of C on the expression: pending, nodes, depth, text. Computes nothing.
pending_of <- function(x) .Call(r_expr_info, x@handle)

is_pending <- function(x) pending_of(x)$pending

#' @rdname clMatrix-print
#' @export
format.clMatrix <- function(x, ...) {
  info <- state_of(x)
  view <- if (x@view == "general") "" else paste0(", ", x@view)
  place <- if (nzchar(info$state)) {
    info$state
  } else if (is_pending(x)) {
    paste("pending:", pending_of(x)$text)
  } else {
    sprintf("%s on %s", format_bytes(info$bytes), if (info$host) "the host" else info$device)
  }
  sprintf("<clMatrix %d x %d double%s, %s>", x@Dim[1L], x@Dim[2L], view, place)
}

#' @rdname clMatrix-print
#' @export
str.clMatrix <- function(object, ...) {
  cat(" Formal class 'clMatrix' ", format(object), "\n", sep = "")
  invisible()
}

#' @rdname clMatrix-print
#' @export
summary.clMatrix <- function(object, ...) {
  info <- state_of(object)
  usable <- !nzchar(info$state)
  missing <- if (usable) reduce("count_nan", object) else NA_real_
  number <- function(f) if (usable && length(object) > 0L) f(object, na.rm = TRUE) else NA_real_
  structure(list(dim = object@Dim, view = object@view, device = info$device, bytes = info$bytes,
                 min = number(min), mean = number(mean), max = number(max), missing = missing,
                 header = format(object)),
            class = "summary.clMatrix")
}

#' @rdname clMatrix-print
#' @export
print.summary.clMatrix <- function(x, ...) {
  cat(x$header, "\n", sep = "")
  print(c(Min. = x$min, Mean = x$mean, Max. = x$max, "NA's" = x$missing), ...)
  invisible(x)
}
