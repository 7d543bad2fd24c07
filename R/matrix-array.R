# The class clArray: matrices of one shape, n x m x batch, on a device or on the host engine. Its
# handle is a column of all elements; the dimensions are stored here.

#' Arrays on a device
#'
#' `as_cl()` copies a base R array with three dimensions to the device in use, as it does matrices
#' ([clMatrix]). The result is a batch of matrices for the functions of [cl_batch]. `as.array()`
#' copies it back. Arrays are saved like matrices. `x[i, j, k]` extracts a part; with `drop = TRUE`
#' a single matrix of the batch becomes a `clMatrix`. `c()`, `rep()` and `outer()` return base R
#' vectors and arrays.
#'
#' @param x,object A `clArray`.
#' @param i,j,k Indices as for base R arrays.
#' @param drop Whether `x[, , k]` with a single `k` becomes a `clMatrix`.
#' @param mode As for [as.vector()].
#' @param target,current Arrays to compare.
#' @param recursive,use.names As for [c()].
#' @param ... Passed on to the method for arrays.
#' @return `as.array()`: a base R array. `x[i, j, k]`: a `clArray`, or a `clMatrix` as described
#'   above.
#' @section Errors:
#' `statcl_error_argument` for subscripts out of bounds, `statcl_error_stale` if the data no longer
#' exists.
#' @name clArray
#' @examples
#' x <- as_cl(array(1:24, c(2, 3, 4)))
#' x
#' dim(x)
#' x[, , 2]
#' as.array(x[1, 2:3, 4, drop = FALSE])
NULL

clArray_prototype <- new("clArray")

new_array <- function(handle, dim, dimnames = NULL) {
  x <- clArray_prototype
  x@handle <- handle
  x@Dim <- as.integer(dim)
  x@Dimnames <- if (is.null(dimnames)) vector("list", 3L) else dimnames
  x
}

is_cl_array <- function(x) isS4(x) && methods::is(x, "clArray")

# A base array with three dimensions as double; any other value is an argument error.
check_array <- function(x, argument) {
  usable <- (is.double(x) || is.integer(x) || is.logical(x)) && !is.object(x)
  if (!usable || !length(dim(x)) %in% 2:3) {
    abort_argument(argument, sprintf(paste("'%s' must be a numeric array with dimensions n x n x",
                                           "batch, not %s"), argument, describe(x)))
  }
  if (length(x) > .Machine$integer.max) {
    abort_argument(argument, sprintf("'%s' must have at most %d elements", argument,
                                     .Machine$integer.max))
  }
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

array_to_cl <- function(x) {
  x <- check_array(x, "x")
  handle <- .Call(r_matrix_new, x, length(x), 1, 0L, where_resident())
  new_array(handle, dim(x), dimnames(x))
}

#' @rdname clArray
#' @export
as.array.clArray <- function(x, ...) {
  values <- .Call(r_matrix_to_host, x@handle)
  dim(values) <- x@Dim
  if (!all(vapply(x@Dimnames, is.null, NA))) dimnames(values) <- x@Dimnames
  values
}

#' @rdname clArray
#' @export
as.vector.clArray <- function(x, mode = "any") as.vector(as.array(x), mode)

#' @rdname clArray
#' @export
as.double.clArray <- function(x, ...) as.double(as.array(x))

#' @rdname clArray
#' @export
is.array.clArray <- function(x) TRUE

#' @rdname clArray
#' @export
rep.clArray <- function(x, ...) rep(as.vector(x), ...)

#' @rdname clArray
#' @export
c.clArray <- function(..., recursive = FALSE, use.names = TRUE) {
  combine_parts(list(..., recursive = recursive, use.names = use.names))
}

#' @rdname clArray
#' @export
dim.clArray <- function(x) x@Dim

#' @rdname clArray
#' @export
length.clArray <- function(x) as.integer(prod(x@Dim))

#' @rdname clArray
#' @export
dimnames.clArray <- function(x) if (!all(vapply(x@Dimnames, is.null, NA))) x@Dimnames

#' @rdname clArray
#' @export
`[.clArray` <- function(x, i, j, k, drop = TRUE) {
  subscripts <- nargs() - 1L - (!missing(drop))
  drop <- check_flag(drop, "drop")
  if (subscripts != 3L) abort_argument("x", "a clArray needs three subscripts: x[i, j, k]")
  names <- x@Dimnames
  at <- list(if (missing(i)) seq_len(x@Dim[1L]) else positions(i, x@Dim[1L], names[[1L]], "i"),
             if (missing(j)) seq_len(x@Dim[2L]) else positions(j, x@Dim[2L], names[[2L]], "j"),
             if (missing(k)) seq_len(x@Dim[3L]) else positions(k, x@Dim[3L], names[[3L]], "k"))
  dim <- lengths(at)
  names <- Map(function(side, rows) if (!is.null(side)) side[rows], names, at)
  rows <- outer(at[[1L]], (at[[2L]] - 1) * x@Dim[1L], `+`)
  rows <- outer(as.vector(rows), (at[[3L]] - 1) * prod(x@Dim[1:2]), `+`)
  part <- if (anyNA(rows)) { # as in base R, the result is NA: computed on the host
    like(matrix(as.vector(as.array(x))[as.vector(rows)], ncol = 1L), x)@handle
  } else {
    .Call(r_matrix_select, x@handle, as.integer(rows), NULL, TRUE)
  }
  if (!drop || dim[3L] != 1L) return(new_array(part, dim, names))
  new_cl(.Call(r_array_matrix, part, dim[1L], dim[2L]), dim[1:2], unname(names[1:2]))
}

#' @rdname clArray
#' @method all.equal clArray
#' @export
all.equal.clArray <- function(target, current, ...) {
  if (is_cl_array(current)) current <- as.array(current)
  all.equal(as.array(target), current, ...)
}

# ---- printing -----------------------------------------------------------------------------------

#' @rdname clArray
#' @export
setMethod("show", "clArray", function(object) print.clArray(object))

#' @rdname clArray
#' @export
print.clArray <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  if (nzchar(state_of(x)$state) || length(x) == 0L) return(invisible(x))
  print(x[seq_len(min(x@Dim[1L], 6L)), seq_len(min(x@Dim[2L], 6L)), 1L], ...)
  if (x@Dim[3L] > 1L) cat(sprintf("# the first of %d matrices\n", x@Dim[3L]))
  invisible(x)
}

#' @rdname clArray
#' @export
format.clArray <- function(x, ...) {
  info <- state_of(x)
  place <- if (nzchar(info$state)) {
    info$state
  } else {
    sprintf("%s on %s", format_bytes(info$bytes), if (info$host) "the host" else info$device)
  }
  sprintf("<clArray %s double, %s>", paste(x@Dim, collapse = " x "), place)
}

#' @rdname clArray
#' @export
str.clArray <- function(object, ...) {
  cat(" Formal class 'clArray' ", format(object), "\n", sep = "")
  invisible()
}
