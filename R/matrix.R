# The class clMatrix: a matrix of doubles on a device, or on the host engine.
#
# Shape, names and view are kept in R, so that a handle whose data is gone still prints. Everything
# else is behind the external pointer (src/r/glue.h).

#' Matrices on a device
#'
#' `as_cl()` and `cl_matrix()` copy a base R matrix to the device in use ([cl_use()]), where it
#' stays until it is garbage-collected. Without a device it stays in host memory and everything
#' works the same. `as.matrix()` copies it back. Work on the device is asynchronous: operations
#' return at once, and functions that need values wait.
#'
#' A *view* declares the structure of the values. Only the named triangle of the data is read; for a
#' symmetric matrix the lower one. Triangular and symmetric matrices are transferred in packed form,
#' with half the bytes, to the device, and triangular matrices of less than 64 MiB also back to the
#' host. Products and solves skip the zeros.
#'
#' A `clMatrix` is saved with its values: `saveRDS()`, `save()` and functions that send objects to
#' other processes (`parallel`, `future`) copy them from the device, and compute a pending matrix
#' first. A restored matrix is uploaded to the device in use at its first use. The data is missing
#' (`statcl_error_stale`) in files of version 2 of R's format, and if the matrix was freed before it
#' was saved. A forked process (`parallel::mclapply()`) cannot access a device that its parent has
#' used, but it can access matrices of the host engine.
#'
#' @param data,x A numeric or logical matrix, vector or time series (a vector becomes one column),
#'   or a matrix of package Matrix, all elements of which are stored, except that `as_cl()` without
#'   `view` keeps a sparse matrix sparse ([clSparse]); for `as_cl()` also an array with three
#'   dimensions, which becomes a [clArray], and a `clMatrix`, which is returned unchanged unless
#'   `view` is given.
#' @param nrow,ncol The dimensions; `data` is recycled as by [matrix()], with its warnings; `data`
#'   of length zero gives `NA`.
#' @param view The structure of the values. Triangular and symmetric classes of package Matrix
#'   determine it themselves. For a `clMatrix`, `as_cl()` makes a copy with the view: elements
#'   outside the triangle are zero, and the upper triangle of a symmetric matrix is a copy of the
#'   lower one.
#' @param dimnames `NULL` or a list of row and column names.
#' @return A `clMatrix`.
#' @section Errors:
#' `statcl_error_argument` for data that is not numeric or has the wrong shape,
#' `statcl_error_memory` if the device does not have enough memory.
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
  check_view(view, shape)
  dimnames <- check_dimnames(dimnames, shape)
  if (length(data) != prod(shape)) data <- fill_shape(data, shape)
  handle <- .Call(r_matrix_new, data, shape[1L], shape[2L], match(view, view_names) - 1L,
                  where_resident())
  new_cl(handle, as.integer(shape), dimnames, view)
}

#' @rdname clMatrix
#' @export
as_cl <- function(x, view = c("general", "lower", "upper", "symmetric")) {
  if (is_cl(x) && missing(view)) return(x)
  if (is_cl(x)) return(with_view(x, check_choice(view, view_names, "view")))
  if (missing(view) && is_cl_sparse(x)) return(x)
  if (missing(view) && is_sparse(x)) return(sparse_to_cl(x))
  if (is_cl_array(x) || length(dim(x)) == 3L) {
    if (!missing(view) && check_choice(view, view_names, "view") != "general") {
      abort_argument("view", "'view' must be \"general\" for an array")
    }
    return(if (is_cl_array(x)) x else array_to_cl(x))
  }
  if (missing(view)) view <- matrix_class_view(x)
  x <- check_numeric(x, "x")
  if (is.null(dim(x))) {
    x <- matrix(x, ncol = 1L, dimnames = if (!is.null(names(x))) list(names(x), NULL))
  }
  cl_matrix(x, view = view)
}

view_names <- c("general", "lower", "upper", "symmetric")

check_view <- function(view, shape) {
  if (view != "general" && shape[1L] != shape[2L]) {
    abort_argument("view", sprintf("a %s matrix must be square, not %d x %d", view, shape[1L],
                                   shape[2L]))
  }
}

# x itself, or a copy that has only the elements of `view`.
with_view <- function(x, view) {
  if (view == x@view) return(x)
  check_view(view, x@Dim)
  if (view == "general") { # before cbind(), whose operands are general
    empty <- matrix(0, x@Dim[1L], 0L)
    return(value(.Call(r_op, "bind", list(x@handle, empty), TRUE, NULL), NULL, x@Dimnames))
  }
  value(.Call(r_op, "copy_as", list(x@handle), match(view, view_names), NULL), NULL, x@Dimnames)
}

# The view of a matrix of package Matrix; "general" for other objects.
matrix_class_view <- function(x) {
  if (!isS4(x)) return("general")
  if (methods::is(x, "symmetricMatrix")) return("symmetric")
  if (methods::is(x, "triangularMatrix")) return(if (x@uplo == "L") "lower" else "upper")
  "general"
}

# `data` recycled to all elements by the rules of matrix().
fill_shape <- function(data, shape) {
  size <- prod(shape)
  n <- length(data)
  if (n == 0L) return(with_memory(rep_len(NA_real_, size), 8 * size))
  if (n > 1L && size %% n != 0) {
    statcl_warning("recycled", sprintf("data length [%d] does not fill %.0f x %.0f evenly", n,
                                       shape[1L], shape[2L]))
  }
  with_memory(rep_len(as.vector(data), size), 8 * size)
}

clMatrix_prototype <- new("clMatrix", Dimnames = list(NULL, NULL))

# Wraps a handle from C. Because is() and checked slot assignment cost more than a short kernel, it
# uses inherits() and sets slots as attributes.
new_cl <- function(handle, dim, dimnames = NULL, view = "general") {
  x <- clMatrix_prototype
  attr(x, "handle") <- handle
  attr(x, "Dim") <- dim
  if (!is.null(dimnames)) attr(x, "Dimnames") <- dimnames
  attr(x, "view") <- view
  x
}

is_cl <- function(x) isS4(x) && inherits(x, "clMatrix")

# A clMatrix as a base R matrix; other values unchanged.
on_host <- function(x) if (is_cl(x)) as.matrix(x) else x

#' @rdname clMatrix
#' @param n Order of the identity matrix.
#' @param batch Number of identity matrices next to each other: `n x (n * batch)`.
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
    .Call(r_result_pool_clear)
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

# x as an argument of an entry: the handle of a clMatrix, or a double matrix (vectors as one column
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

# Whether x is a matrix of doubles without class and names: entries take it as it is.
is_plain <- function(x) {
  is.double(x) && is.matrix(x) && !is.object(x) && is.null(dimnames(x))
}

# The value of an entry: a clMatrix if it is a handle, else the base matrix; with dimnames. Every
# operation ends here. Shape and view are read from the handle unless given.
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

# A base matrix copied to the engine and device of x.
like <- function(data, x, dimnames = base::dimnames(data), view = "general") {
  storage.mode(data) <- "double"
  code <- match(view, view_names) - 1L
  handle <- .Call(r_matrix_new, data, nrow(data), ncol(data), code, x@handle)
  new_cl(handle, dim(data), dimnames, view)
}

# Dimnames of a base or device matrix, for results; NULL when there are none.
names_of <- function(x) {
  if (is_cl(x)) return(if (has_names(x@Dimnames)) x@Dimnames)
  if (length(dim(x)) == 2L) dimnames(x)
}

# Row (1) or column (2) names out of dimnames.
side <- function(names, which) if (!is.null(names)) names[[which]]

# Numeric and logical vectors and matrices as double; any other value is an argument error.
check_numeric <- function(x, argument) {
  if (is.object(x)) x <- plain_values(x, argument)
  usable <- is.double(x) || is.integer(x) || is.logical(x)
  if (!usable || length(dim(x)) > 2L) {
    abort_argument(argument, sprintf("'%s' must be a numeric matrix or vector, not %s", argument,
                                     describe(x)))
  }
  if (length(dim(x)) == 1L) dim(x) <- NULL
  if (is.double(x)) return(x)
  if (is.null(attributes(x))) return(as.double(x))
  storage.mode(x) <- "double"
  x
}

# An object with a class as plain numbers for check_numeric(), if its values are numbers.
plain_values <- function(x, argument) {
  if (is.data.frame(x)) {
    plain <- function(v) (is.numeric(v) || is.logical(v)) && !is.object(v)
    if (all(vapply(x, plain, NA))) return(as.matrix(x))
  } else if (inherits(x, "integer64")) {
    abort_argument(argument, sprintf(paste("'%s' has class \"integer64\", which is not supported:",
                                           "convert it with as.double()"), argument))
  } else if (isS4(x) && methods::is(x, "Matrix") && length(dim(x)) == 2L) {
    return(as.matrix(x))
  } else if (!inherits(x, c("factor", "Date", "POSIXct", "difftime")) &&
             (is.matrix(x) || inherits(x, c("ts", "table", "AsIs")))) {
    return(if (isS4(x)) x else without_class(x))
  }
  abort_argument(argument, sprintf("'%s' must be a numeric matrix or vector, not %s", argument,
                                   describe(x)))
}

# The same numbers with dimensions and names only.
without_class <- function(x) {
  attributes(x) <- attributes(x)[intersect(names(attributes(x)), c("dim", "dimnames", "names"))]
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
