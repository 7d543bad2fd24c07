# The class clMatrix: a matrix of doubles on a device, or on the host engine.
#
# Shape, names and view are kept in R, so that a handle whose data is gone still prints. Everything
# else is behind the external pointer (src/r_glue.h).

#' Matrices on a device
#'
#' `as_cl()` and `cl_matrix()` copy a base R matrix to the device in use ([cl_use()]), where it
#' stays until it is dropped; without a device it stays in host memory and everything works the
#' same. `as.matrix()` brings it back. Work on the device is asynchronous: an operation returns at
#' once, and whatever needs values waits.
#'
#' A *view* says what is known about the shape of the values. Only the named triangle of the data is
#' read; of a symmetric matrix the lower one. Triangular and symmetric matrices cross the bus
#' packed, at half the bytes, on their way to the device, triangular ones of less than 64 MiB on
#' their way back too; products and solves skip the zeros.
#'
#' A `clMatrix` cannot be saved: after `readRDS()` or in a restored session it still prints, but its
#' data is gone (`statcl_error_stale`). Save `as.matrix(x)`.
#'
#' @param data,x a numeric or logical matrix or vector (a vector becomes one column); for `as_cl()`
#'   also an array with three dimensions, which becomes a [clArray], and a `clMatrix`, which is
#'   returned as it is.
#' @param nrow,ncol the dimensions; `data` is recycled as by [matrix()].
#' @param view what is known of the values.
#' @param dimnames `NULL` or a list of row and column names.
#' @return A `clMatrix`.
#' @section Errors:
#' `statcl_error_argument` for data that is not numeric or of the wrong shape, `statcl_error_memory`
#' when the device cannot hold it.
#' @name clMatrix
#' @export
#' @examples
#' x <- as_cl(matrix(1:6, 2))
#' x
#' as.matrix(x %*% t(x))
#' cl_matrix(c(2, 1, 0, 3), 2, 2, view = "lower")
cl_matrix <- function(data = NA_real_, nrow = NULL, ncol = NULL,
                      view = c("general", "lower", "upper", "symmetric"), dimnames = NULL) {
  view <- check_choice(view, view_names, "view")
  if (is_cl(data)) data <- as.matrix(data)
  data <- check_numeric(data, "data")
  if (is.null(dimnames)) dimnames <- base::dimnames(data)
  shape <- matrix_shape(data, nrow, ncol)
  if (length(data) != prod(shape)) {
    if (length(data) == 0L || prod(shape) %% length(data) != 0) {
      abort_argument("data", sprintf("'data' has %d values, which do not fill %d x %d",
                                     length(data), shape[1L], shape[2L]))
    }
    data <- with_memory(rep_len(data, prod(shape)), 8 * prod(shape))
  }
  if (view != "general" && shape[1L] != shape[2L]) {
    abort_argument("view", sprintf("a %s matrix must be square, not %d x %d", view, shape[1L],
                                   shape[2L]))
  }
  dimnames <- check_dimnames(dimnames, shape)
  handle <- .Call(r_matrix_new, data, shape[1L], shape[2L], match(view, view_names) - 1L,
                  where_resident())
  new_cl(handle, as.integer(shape), dimnames, view)
}

#' @rdname clMatrix
#' @export
as_cl <- function(x, view = c("general", "lower", "upper", "symmetric")) {
  if (is_cl(x) || is_cl_array(x)) return(x)
  if (length(dim(x)) == 3L) return(array_to_cl(x))
  x <- check_numeric(x, "x")
  if (is.null(dim(x))) {
    x <- matrix(x, ncol = 1L, dimnames = if (!is.null(names(x))) list(names(x), NULL))
  }
  cl_matrix(x, view = view)
}

view_names <- c("general", "lower", "upper", "symmetric")

clMatrix_prototype <- new("clMatrix", Dimnames = list(NULL, NULL))

# Wraps a handle from C. is() and the checked assignment of slots cost more than a short kernel: so
# inherits(), and the attributes that slots are.
new_cl <- function(handle, dim, dimnames = NULL, view = "general") {
  x <- clMatrix_prototype
  attr(x, "handle") <- handle
  attr(x, "Dim") <- dim
  if (!is.null(dimnames)) attr(x, "Dimnames") <- dimnames
  attr(x, "view") <- view
  x
}

is_cl <- function(x) isS4(x) && inherits(x, "clMatrix")

#' @rdname clMatrix
#' @param n rows and columns of an identity matrix.
#' @param batch how many identity matrices, side by side: `n x (n * batch)`.
#' @export
#' @examples
#' cl_identity(3)
#' cl_zeros(2, 3)
cl_identity <- function(n, batch = 1) {
  n <- check_count(n, "n")
  batch <- check_count(batch, "batch")
  value(.Call(r_matrix_identity, n, batch, where_resident()))
}

#' @rdname clMatrix
#' @export
cl_zeros <- function(nrow, ncol = nrow) {
  nrow <- check_count(nrow, "nrow")
  ncol <- check_count(ncol, "ncol")
  value(.Call(r_matrix_constant, 0, nrow, ncol, where_resident()))
}

#' @rdname cl_memory
#' @export
cl_free <- function(x = NULL) {
  if (is.null(x)) {
    gc()
    .Call(r_large_clear)
    where <- current_device()
    if (where >= 0L && !forked()) .Call(r_trim, where)
    return(invisible())
  }
  if (inherits(x, "cl_gp")) return(drop_gp_state(x))
  if (!is_cl(x) && !is_cl_array(x)) {
    abort_argument("x", sprintf("'x' must be a clMatrix, not %s", describe(x)))
  }
  .Call(r_matrix_free, x@handle)
  invisible()
}

# ---- operands and results of .Call --------------------------------------------------------------

# What an entry takes for x: the handle of a clMatrix, or a double matrix (vectors as one column
# unless `vector = FALSE`).
operand <- function(x, argument, vector = TRUE) {
  if (is_cl(x)) return(x@handle)
  x <- check_numeric(x, argument)
  if (is.null(dim(x))) {
    if (!vector) {
      abort_argument(argument, sprintf("'%s' must be a matrix, not %s", argument, describe(x)))
    }
    dim(x) <- c(length(x), 1L)
  }
  x
}

# The value of an entry: a clMatrix if it is a handle, else the base matrix; with dimnames. Every
# operation ends here. What is not given of shape and view is asked of the handle.
value <- function(result, dim = NULL, dimnames = NULL, view = NULL) {
  if (typeof(result) == "externalptr") {
    if (is.null(dim) && is.null(view)) {
      return(.Call(r_matrix_wrap, result, dimnames, clMatrix_prototype))
    }
    if (is.null(dim) || is.null(view)) {
      shape <- .Call(r_matrix_shape, result)
      dim <- shape[1:2]
      if (is.null(view)) view <- view_names[shape[3L] + 1L]
    }
    if (!is.integer(dim)) dim <- as.integer(dim)
    return(new_cl(result, dim, dimnames, view))
  }
  if (has_names(dimnames)) dimnames(result) <- dimnames
  result
}

# Whether dimnames, NULL or a list of two, name anything.
has_names <- function(dimnames) {
  !is.null(dimnames) && !(is.null(dimnames[[1L]]) && is.null(dimnames[[2L]]))
}

# A base matrix copied beside x: to the same engine and device.
like <- function(data, x, dimnames = base::dimnames(data), view = "general") {
  storage.mode(data) <- "double"
  code <- match(view, view_names) - 1L
  new_cl(.Call(r_matrix_like, data, code, x@handle), dim(data), dimnames, view)
}

# Dimnames of a base or device matrix, for results; NULL when there are none.
names_of <- function(x) {
  if (is_cl(x)) return(if (has_names(x@Dimnames)) x@Dimnames)
  if (length(dim(x)) == 2L) dimnames(x)
}

# Row (1) or column (2) names out of dimnames.
side <- function(names, which) if (!is.null(names)) names[[which]]

# Numeric and logical vectors and matrices as double; anything else is refused by name.
check_numeric <- function(x, argument) {
  plain <- function(v) (is.numeric(v) || is.logical(v)) && !is.object(v)
  if (is.data.frame(x) && all(vapply(x, plain, NA))) x <- as.matrix(x)
  usable <- (is.double(x) || is.integer(x) || is.logical(x)) && (!is.object(x) || is.matrix(x))
  if (!usable || length(dim(x)) > 2L || inherits(x, c("factor", "Date", "POSIXct", "difftime"))) {
    abort_argument(argument, sprintf("'%s' must be a numeric matrix or vector, not %s", argument,
                                     describe(x)))
  }
  if (length(dim(x)) == 1L) dim(x) <- NULL
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

# Rows and columns from arguments as matrix() takes them.
matrix_shape <- function(data, nrow, ncol) {
  if (!is.null(nrow)) nrow <- check_count(nrow, "nrow")
  if (!is.null(ncol)) ncol <- check_count(ncol, "ncol")
  if (is.null(nrow) && is.null(ncol)) {
    return(if (is.null(dim(data))) c(length(data), 1) else dim(data))
  }
  if (is.null(nrow)) nrow <- ceiling(length(data) / max(ncol, 1))
  if (is.null(ncol)) ncol <- ceiling(length(data) / max(nrow, 1))
  if (nrow * ncol * 8 > 2^53) abort_argument("nrow", "'nrow' times 'ncol' is too large")
  c(nrow, ncol)
}
