# Shape, names, and the way back to base R.

#' Device matrices as base R values
#'
#' `as.matrix()` copies all values to the host; `as.vector()`, `as.numeric()`, `as.array()` and
#' `as.data.frame()` likewise. `dim()`, `nrow()`, `ncol()`, `length()`, `dimnames()` need no values
#' and never wait. Functions of base R that call `as.matrix()` themselves (`svd()`, `eigen()`,
#' `apply()`, ...) work on a copy on the host and give base R values. Results of 6 MiB and more
#' come in memory that earlier ones had, see [cl_memory()].
#'
#' @param x a [clMatrix].
#' @param mode as for [as.vector()].
#' @param value `NULL` or a list of row and column names.
#' @param ... passed on to the method for matrices.
#' @return A base R matrix, vector or data frame. `dimnames<-`: a `clMatrix` on the same data.
#' @section Errors:
#' `statcl_error_stale` when the data is gone.
#' @name clMatrix-convert
#' @examples
#' x <- as_cl(matrix(1:6, 2, dimnames = list(c("a", "b"), NULL)))
#' as.matrix(x)
#' dim(x)
#' dimnames(x) <- NULL
#' as.vector(x)
NULL

#' @rdname clMatrix-convert
#' @export
as.matrix.clMatrix <- function(x, ...) {
  values <- .Call(r_matrix_to_host, x@handle)
  if (has_names(x@Dimnames)) dimnames(values) <- x@Dimnames
  values
}

#' @rdname clMatrix-convert
#' @export
as.array.clMatrix <- function(x, ...) as.matrix(x)

#' @rdname clMatrix-convert
#' @export
as.vector.clMatrix <- function(x, mode = "any") as.vector(as.matrix(x), mode)

#' @rdname clMatrix-convert
#' @export
as.double.clMatrix <- function(x, ...) as.double(as.matrix(x))

#' @rdname clMatrix-convert
#' @export
as.integer.clMatrix <- function(x, ...) as.integer(as.matrix(x))

#' @rdname clMatrix-convert
#' @export
as.logical.clMatrix <- function(x, ...) as.logical(as.matrix(x))

#' @rdname clMatrix-convert
#' @export
as.data.frame.clMatrix <- function(x, ...) as.data.frame(as.matrix(x), ...)

#' @rdname clMatrix-convert
#' @export
dim.clMatrix <- function(x) {
  if (!isS4(x)) abort_argument("x", "not a clMatrix: the class attribute was set by hand")
  x@Dim
}

#' @rdname clMatrix-convert
#' @export
length.clMatrix <- function(x) {
  n <- prod(dim(x))
  if (n <= .Machine$integer.max) as.integer(n) else n
}

#' @rdname clMatrix-convert
#' @export
dimnames.clMatrix <- function(x) if (has_names(x@Dimnames)) x@Dimnames

#' @rdname clMatrix-convert
#' @export
`dimnames<-.clMatrix` <- function(x, value) {
  x@Dimnames <- check_dimnames(value, x@Dim)
  x
}

# NULL or two vectors that fit, as base R keeps them: character, empty ones as NULL.
check_dimnames <- function(dimnames, dim) {
  if (is.null(dimnames)) return(list(NULL, NULL))
  if (!is.list(dimnames) || is.object(dimnames) || length(dimnames) > 2L) {
    abort_argument("dimnames", "'dimnames' must be NULL or a list of row and column names")
  }
  out <- list(NULL, NULL)
  for (i in seq_along(dimnames)) {
    side <- dimnames[[i]]
    if (length(side) == 0L) next
    if (length(side) != dim[i]) {
      abort_argument("dimnames", sprintf("'dimnames' has %d names for %d %s", length(side), dim[i],
                                         c("rows", "columns")[i]))
    }
    out[[i]] <- as.character(side)
  }
  if (length(dimnames) == 2L) names(out) <- names(dimnames)
  out
}

#' @rdname clMatrix-convert
#' @export
is.numeric.clMatrix <- function(x) TRUE

#' @rdname clMatrix-convert
#' @export
is.matrix.clMatrix <- function(x) TRUE

#' @rdname clMatrix-convert
#' @param target,current matrices to compare.
#' @method all.equal clMatrix
#' @export
all.equal.clMatrix <- function(target, current, ...) {
  if (is_cl(current)) current <- as.matrix(current)
  all.equal(as.matrix(target), current, ...)
}
