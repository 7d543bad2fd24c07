# Dimensions, names, and conversion to base R.

#' Convert device matrices to base R
#'
#' `as.matrix()` copies all values to the host; so do `as.vector()`, `as.numeric()`, `as.array()`
#' and `as.data.frame()`. `dim()`, `nrow()`, `ncol()`, `length()` and `dimnames()` need no values
#' and never wait. Functions of base R that call `as.matrix()` themselves (`svd()`, `eigen()`,
#' `apply()`, ...) work on a copy on the host and return base R values. Results of 6 MiB and more
#' reuse the memory of freed results, see [cl_memory()].
#'
#' Functions that return a vector in base R return a base R vector: `c(x, ...)`, `append()`, `rep()`
#' and `dim(x) <- NULL`. `outer()`, `%o%` and `ifelse()` return base R arrays with the correct
#' dimensions; [cl_ifelse()] is `ifelse()` on the device. `dim(x) <- c(m, n)` and
#' `dim(x) <- c(m, n, batch)` give a `clMatrix` and a [clArray], and copy the data through the host.
#'
#' R does not dispatch on a `clMatrix` inside a list or after a named argument: `unlist(list(x))`,
#' `c(list(), x)`, `c(NULL, x)` and `c(a = 1, x)` are lists that contain the `clMatrix`. Use
#' `unlist(lapply(list(x), as.vector))` and `c(a = 1, as.vector(x))` instead. `all.equal(m, x)` with
#' a base R matrix as first argument works only if statcl is attached.
#'
#' @param x A [clMatrix].
#' @param mode As for [as.vector()].
#' @param value `NULL` or a list of row and column names; for `dim<-` `NULL` or the dimensions.
#' @param recursive,use.names As for [c()].
#' @param ... Passed on to the method for matrices; for `c()` and `rep()`, arguments of the base R
#'   functions.
#' @return A base R matrix, vector or data frame. `dimnames<-`: a `clMatrix` with the same data.
#' @section Errors:
#' `statcl_error_argument` for dimensions that do not match, `statcl_error_stale` if the data no
#' longer exists.
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
  if (!isS4(x)) {
    abort_argument("x", "'x' is not a valid clMatrix: its class attribute was set by hand")
  }
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

# NULL or two matching vectors, as in base R: character, with empty ones as NULL.
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
      abort_argument("dimnames", sprintf("'dimnames' has %d names, but there are %d %s",
                                         length(side), dim[i],
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
#' @export
is.array.clMatrix <- function(x) TRUE

#' @rdname clMatrix-convert
#' @export
`dim<-.clMatrix` <- function(x, value) {
  if (is.null(value)) return(as.vector(x))
  if (!is.numeric(value) || is.object(value) || !length(value) %in% 2:3 || anyNA(value) ||
      any(value < 0)) {
    abort_argument("value", paste("'value' must have two elements, or three for a clArray: use",
                                  "as.vector(x) for a vector"))
  }
  value <- trunc(value)
  if (prod(value) != length(x)) {
    abort_argument("value", sprintf("dims [product %.0f] do not match the length of object [%.0f]",
                                    prod(value), length(x)))
  }
  values <- as.vector(x)
  if (length(value) == 3L) {
    return(new_array(like(matrix(values, ncol = 1L), x)@handle, value))
  }
  like(matrix(values, value[1L], value[2L]), x)
}

# ---- vectors ------------------------------------------------------------------------------------

#' @rdname clMatrix-convert
#' @export
rep.clMatrix <- function(x, ...) rep(as.vector(x), ...)

#' @rdname clMatrix-convert
#' @export
c.clMatrix <- function(..., recursive = FALSE, use.names = TRUE) {
  combine_parts(list(..., recursive = recursive, use.names = use.names))
}

# An argument of c() converted so that no method is dispatched: the values of a clMatrix as a
# vector; for other S4 objects the basic type they extend, or else a list with the object.
vector_part <- function(x) {
  if (!isS4(x)) return(x)
  if (is_cl(x) || is_cl_array(x)) return(as.vector(x))
  if (is.vector(unclass(asS4(x, FALSE, FALSE)))) asS4(x, FALSE) else list(x)
}

# Reached only if one of the arguments is an S4 object, of whatever class.
#' @rdname clMatrix-convert
#' @export
setMethod("c", "clPlain", function(x, ...) {
  combine_parts(c(list(x), list(...)))
})

combine_parts <- function(parts) {
  option <- names(parts) %in% c("recursive", "use.names")
  if (length(option) == 0L) option <- rep(FALSE, length(parts))
  parts[!option] <- lapply(parts[!option], vector_part)
  do.call("c", parts, quote = TRUE)
}

# ifelse(x > 2, 1, 0) builds its result from this value.
setAs("clMatrix", "logical", function(from) {
  values <- as.matrix(from)
  storage.mode(values) <- "logical"
  values
})

# ---- comparison ---------------------------------------------------------------------------------

#' @rdname clMatrix-convert
#' @param target,current Matrices to compare.
#' @method all.equal clMatrix
#' @export
all.equal.clMatrix <- function(target, current, ...) {
  if (is_cl(current)) current <- as.matrix(current)
  all.equal(as.matrix(target), current, ...)
}

setGeneric("all.equal")

#' @rdname clMatrix-convert
#' @export
setMethod("all.equal", signature("ANY", "clMatrix"), function(target, current, ...) {
  all.equal(on_host(target), as.matrix(current), ...)
})

# New columns are matched to those of the fit by name, if both have names.
named_columns <- function(newdata, names) {
  given <- if (is.data.frame(newdata)) base::names(newdata) else colnames(newdata)
  if (is.null(names) || is.null(given) || identical(given, names)) return(newdata)
  lacking <- setdiff(names, given)
  if (length(lacking) > 0L) {
    abort_argument("newdata", sprintf("'newdata' has no column '%s'", lacking[1L]))
  }
  if (is_cl(newdata)) newdata <- as.matrix(newdata)
  newdata[, names, drop = FALSE]
}
