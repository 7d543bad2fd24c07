# The class clSparse: a sparse matrix on a device, or on the host engine. Products read its stored
# elements only.
#
# `state` is shared with transposes: `source`, the dgCMatrix that it was made of, and `handle`, what
# C has on the engine `where` (src/r/compressed.c), made again where it cannot be used.

#' Sparse matrices on a device
#'
#' [as_cl()] of a sparse matrix of package Matrix (general, symmetric, triangular, diagonal, of
#' logicals, by columns, rows or triplets) copies the stored elements to the device in use
#' ([cl_use()]), by rows and by columns, so that products with the matrix and with its transpose are
#' equally fast. Without a device it stays in host memory and everything works the same. Duplicates
#' are added up; elements that are zero and stored remain stored.
#'
#' Products with dense matrices and vectors, on either side, give a [clMatrix]: `%*%`, `crossprod()`
#' and `tcrossprod()`. `crossprod(x)` and `tcrossprod(x)` give a dense symmetric `clMatrix`, of all
#' columns or rows. What is not stored counts as zero, also beside `Inf` and `NaN`, as in package
#' Matrix. The order of summation is fixed: the same product has the same bits in every run on one
#' device.
#'
#' Further operations: `t()` (without a copy), `dim()`, `dimnames()`, `sum()`, `rowSums()`,
#' `colSums()`, `rowMeans()`, `colMeans()`, `x[i, j]`, and `*` and `/` by a finite number, or by one
#' for each row. Others are refused: convert to dense by `as.matrix()`, or use package Matrix on
#' `as_sparse(x)`. `cl_matrix(x)` makes a dense `clMatrix` of a sparse matrix.
#'
#' [cl_glm()] and [cl_likelihood()] take a sparse matrix, of package Matrix or of this class, as
#' predictors.
#'
#' The matrix of package Matrix is kept in host memory, so that a `clSparse` can be saved with its
#' values, sent to other processes and used in forked ones: it is copied to the engine in use at
#' its first use there.
#'
#' @param x,object A `clSparse`.
#' @param y A numeric matrix, vector, or [clMatrix].
#' @param i,j,drop Rows and columns, as for a base R matrix. The result is a `clSparse`, unless
#'   `drop` makes a vector of it.
#' @param e1,e2 Operands.
#' @param na.rm,dims As for [rowSums()].
#' @param ... Ignored.
#' @return `as_sparse()`: a `dgCMatrix`. `as.matrix()`: a base R matrix. Products: a [clMatrix].
#'   Sums: base R numbers and vectors. `t()`, `[`, `*` and `/`: a `clSparse`.
#' @section Errors:
#' `statcl_error_argument` for operations that a sparse matrix does not have and for operands that
#' do not conform or are on another device, `statcl_error_memory`.
#' @name clSparse
#' @examples
#' if (requireNamespace("Matrix", quietly = TRUE)) {
#'   s <- Matrix::sparseMatrix(i = c(1, 3, 3), j = c(1, 1, 2), x = c(2, -1, 4), dims = c(4, 2))
#'   x <- as_cl(s)
#'   x
#'   as.matrix(x %*% c(1, 10))
#'   as.matrix(crossprod(x))
#'   colSums(x)
#'   as_sparse(t(x) * 2)
#' }
NULL

is_cl_sparse <- function(x) isS4(x) && inherits(x, "clSparse")

sparse_to_cl <- function(x) {
  if (!requireNamespace("Matrix", quietly = TRUE)) {
    abort_argument("x", "'x' is of package Matrix, which is not installed")
  }
  x <- new_cl_sparse(sparse_columns(x))
  sparse_upload(x)
  x
}

# Copied to an engine at its first use.
new_cl_sparse <- function(source) {
  state <- new.env(parent = emptyenv())
  names <- dimnames(source)
  dimnames(source) <- list(NULL, NULL)
  state$source <- source
  new("clSparse", state = state, transposed = FALSE, Dim = dim(source),
      Dimnames = if (is.null(names)) list(NULL, NULL) else names)
}

sparse_upload <- function(x, where = where_resident()) {
  s <- x@state$source
  x@state$handle <- .Call(r_compressed_new, dim(s), s@p, s@i, s@x, where)
  x@state$where <- where
}

# The result of an entry for the handle of x, made again if it cannot be used.
with_sparse <- function(x, run) {
  if (is.null(x@state$handle)) sparse_upload(x)
  result <- run(x@state$handle)
  if (is.null(result)) {
    sparse_upload(x)
    result <- run(x@state$handle)
  }
  result
}

#' @rdname clSparse
#' @export
as_sparse <- function(x) {
  if (is_sparse(x)) return(sparse_columns(x))
  if (!is_cl_sparse(x)) {
    abort_argument("x", sprintf("'x' must be a clSparse, not %s", describe(x)))
  }
  s <- x@state$source
  if (x@transposed) s <- Matrix::t(s)
  dimnames(s) <- x@Dimnames
  s
}

# ---- shape and values ----------------------------------------------------------------------------

#' @rdname clSparse
#' @export
dim.clSparse <- function(x) x@Dim

#' @rdname clSparse
#' @export
length.clSparse <- function(x) length.clMatrix(x)

#' @rdname clSparse
#' @export
dimnames.clSparse <- function(x) if (has_names(x@Dimnames)) x@Dimnames

#' @rdname clSparse
#' @param value `NULL` or a list of row and column names.
#' @export
`dimnames<-.clSparse` <- function(x, value) {
  x@Dimnames <- check_dimnames(value, x@Dim)
  x
}

#' @rdname clSparse
#' @export
as.matrix.clSparse <- function(x, ...) {
  with_memory(as.matrix(as_sparse(x), ...), 8 * prod(x@Dim))
}

#' @rdname clSparse
#' @export
t.clSparse <- function(x) {
  x@transposed <- !x@transposed
  x@Dim <- rev(x@Dim)
  x@Dimnames <- rev(x@Dimnames)
  x
}

#' @rdname clSparse
#' @export
setMethod("[", "clSparse", function(x, i, j, ..., drop = TRUE) {
  s <- as_sparse(x)
  if (nargs() - (!missing(drop)) < 3L) sparse_refused("x[i]")
  if (missing(i)) i <- seq_len(nrow(s))
  if (missing(j)) j <- seq_len(ncol(s))
  part <- tryCatch(s[i, j, drop = drop],
                   error = function(e) abort_argument("i", conditionMessage(e)))
  if (is_sparse(part)) new_cl_sparse(sparse_columns(part)) else part
})

#' @rdname clSparse
#' @export
setMethod("show", "clSparse", function(object) print.clSparse(object))

#' @rdname clSparse
#' @export
print.clSparse <- function(x, ...) {
  cat(format(x), "\n", sep = "")
  invisible(x)
}

#' @rdname clSparse
#' @export
format.clSparse <- function(x, ...) {
  info <- sparse_info(x)
  place <- if (is.null(info)) "not on a device now" else
    sprintf("%s on %s", format_bytes(info$bytes), if (info$host) "the host" else info$device)
  sprintf("<clSparse %d x %d double, %s, %s>", x@Dim[1L], x@Dim[2L],
          count_of(length(x@state$source@x), "stored element"), place)
}

# Facts from C about the matrix; NULL if it is on no engine now.
sparse_info <- function(x) {
  if (!is.null(x@state$handle)) .Call(r_compressed_info, x@state$handle)
}

#' @rdname clSparse
#' @export
str.clSparse <- function(object, ...) {
  cat(" Formal class 'clSparse' ", format(object), "\n", sep = "")
  invisible()
}

# ---- products ------------------------------------------------------------------------------------

# op(x) y as a clMatrix; y: an operand of .Call with rows that fit.
sparse_by_dense <- function(x, y, transposed, dimnames = NULL) {
  value(with_sparse(x, function(handle) {
    .Call(r_compressed_multiply, handle, xor(transposed, x@transposed), y)
  }), NULL, dimnames)
}

# op(x)' diag(w) op(x).
sparse_gram <- function(x, w = NULL, transposed = FALSE) {
  names <- product_names(x, 2L - transposed, x, 2L - transposed)
  value(with_sparse(x, function(handle) {
    .Call(r_compressed_gram, handle, xor(transposed, x@transposed), w)
  }), NULL, names)
}

# The dense operand y of a product with the sparse one: a clMatrix or a matrix. `first`: whether it
# stands left.
dense_operand <- function(y, sparse, kind, first, argument) {
  if (is_cl_sparse(y) || is_sparse(y)) {
    abort_argument(argument, paste("the product of two sparse matrices is not supported on a",
                                   "device: use as.matrix() for one of them, or package Matrix"))
  }
  if (is_cl(y)) return(y)
  y <- check_numeric(y, argument)
  if (is.null(dim(y))) vector_operand(y, dim(sparse), kind, first) else y
}

check_conform <- function(x, y, side_x, side_y, name_x, name_y) {
  product_dim(list(dim_x = dim(x), dim_y = dim(y)), 3L - side_x, 3L - side_y, side_x, side_y,
              name_x, name_y)
}

dense_argument <- function(y) if (is_cl(y)) y@handle else unname(y)

sparse_matmul <- function(a, b) {
  if (!is_cl_sparse(a)) {
    a <- dense_operand(a, b, "matmul", TRUE, "a")
    check_conform(a, b, 2L, 1L, "a", "b")
    names <- product_names(a, 1L, b, 2L)
    return(renamed(t(sparse_by_dense(b, dense_argument(t(a)), TRUE)), names))
  }
  b <- dense_operand(b, a, "matmul", FALSE, "b")
  check_conform(a, b, 2L, 1L, "a", "b")
  sparse_by_dense(a, dense_argument(b), FALSE, product_names(a, 1L, b, 2L))
}

renamed <- function(x, names) {
  dimnames(x) <- names
  x
}

sparse_crossprod <- function(x, y) {
  if (is.null(y) || identical(x, y)) return(sparse_gram(x))
  if (!is_cl_sparse(x)) return(t(sparse_crossprod(y, dense_operand(x, y, "crossprod", TRUE, "x"))))
  y <- dense_operand(y, x, "crossprod", FALSE, "y")
  check_conform(x, y, 1L, 1L, "x", "y")
  sparse_by_dense(x, dense_argument(y), TRUE, product_names(x, 2L, y, 2L))
}

sparse_tcrossprod <- function(x, y) {
  if (is.null(y) || identical(x, y)) return(sparse_gram(x, transposed = TRUE))
  if (!is_cl_sparse(x)) {
    return(t(sparse_tcrossprod(y, dense_operand(x, y, "tcrossprod", TRUE, "x"))))
  }
  y <- dense_operand(y, x, "tcrossprod", FALSE, "y")
  check_conform(x, y, 2L, 2L, "x", "y")
  sparse_by_dense(x, dense_argument(t(y)), FALSE, product_names(x, 1L, y, 1L))
}

#' @rdname clSparse
#' @eval method_aliases(c("%*%", "crossprod", "tcrossprod", "Ops"), sparse_signatures)
#' @export
setMethod("%*%", signature("clSparse", "ANY"), function(x, y) cl_matmul(x, y))

#' @rdname clSparse
#' @export
setMethod("crossprod", signature("clSparse", "ANY"), crossprod_method)

#' @rdname clSparse
#' @export
setMethod("tcrossprod", signature("clSparse", "ANY"), tcrossprod_method)

# ---- arithmetic and sums -------------------------------------------------------------------------

sparse_refused <- function(what) {
  abort_argument("x", sprintf(paste("%s is not supported for a clSparse: use as.matrix() for a",
                                    "dense matrix, or package Matrix on as_sparse(x)"), what))
}

# x * v or x / v; v: finite, one number or one for each row.
scale_sparse <- function(x, v, name) {
  v <- on_host(v)
  if (!is.numeric(v) || is.object(v) || !(length(v) == 1L || length(v) == x@Dim[1L]) ||
        !all(is.finite(v)) || (name == "/" && any(v == 0))) {
    abort_argument("e2", sprintf(paste("'%s' of a clSparse needs a finite number, or one for each",
                                       "row%s: use as.matrix() for others"), name,
                                 if (name == "/") ", not 0" else ""))
  }
  s <- as_sparse(x)
  by <- if (length(v) == 1L) as.vector(v) else as.vector(v)[s@i + 1L]
  s@x <- if (name == "*") s@x * by else s@x / by
  new_cl_sparse(s)
}

sparse_operator <- function(name, e1, e2) {
  if (name == "*" && is_cl_sparse(e1) != is_cl_sparse(e2)) {
    return(if (is_cl_sparse(e1)) scale_sparse(e1, e2, name) else scale_sparse(e2, e1, name))
  }
  if (name == "/" && !is_cl_sparse(e2)) return(scale_sparse(e1, e2, name))
  sparse_refused(sprintf("'%s'", name))
}

#' @rdname clSparse
#' @export
setMethod("Ops", signature("clSparse", "ANY"), function(e1, e2) {
  if (missing(e2)) {
    if (.Generic == "-") return(scale_sparse(e1, -1, "*"))
    if (.Generic == "+") return(e1)
  }
  sparse_operator(.Generic, e1, e2)
})

for (classes in sparse_signatures[-1L]) {
  setMethod("Ops", classes, function(e1, e2) sparse_operator(.Generic, e1, e2))
}
rm(classes)

#' @rdname clSparse
#' @export
setMethod("!", "clSparse", function(x) sparse_refused("'!'"))

#' @rdname clSparse
#' @export
setMethod("Math", "clSparse", function(x) sparse_refused(sprintf("%s()", .Generic)))

#' @rdname clSparse
#' @export
setMethod("Summary", "clSparse", function(x, ..., na.rm = FALSE) {
  if (.Generic != "sum") sparse_refused(sprintf("%s()", .Generic))
  sum(x@state$source@x, ..., na.rm = na.rm)
})

#' @rdname clSparse
#' @param a,b As for [solve()], which is refused.
#' @method solve clSparse
#' @export
solve.clSparse <- function(a, b, ...) {
  check_dots_empty(...)
  sparse_refused(if (missing(b)) "the inverse" else "solve()")
}

# Sums or means of rows (margin 1) or columns, by a product with ones.
sparse_sums <- function(x, margin, na.rm, dims, average = FALSE) {
  if (check_number(dims, "dims") != 1) abort_argument("dims", "'dims' must be 1")
  if (check_flag(na.rm, "na.rm")) {
    sums <- if (margin == 1L) Matrix::rowSums else Matrix::colSums
    if (average) sums <- if (margin == 1L) Matrix::rowMeans else Matrix::colMeans
    return(sums(as_sparse(x), na.rm = TRUE))
  }
  n <- x@Dim[3L - margin]
  found <- as.vector(as.matrix(sparse_by_dense(x, matrix(1, n, 1L), margin == 2L)))
  stats::setNames(if (average) found / n else found, x@Dimnames[[margin]])
}

#' @rdname clSparse
#' @export
setMethod("rowSums", "clSparse", function(x, na.rm = FALSE, dims = 1, ...) {
  sparse_sums(x, 1L, na.rm, dims)
})

#' @rdname clSparse
#' @export
setMethod("colSums", "clSparse", function(x, na.rm = FALSE, dims = 1, ...) {
  sparse_sums(x, 2L, na.rm, dims)
})

#' @rdname clSparse
#' @export
setMethod("rowMeans", "clSparse", function(x, na.rm = FALSE, dims = 1, ...) {
  sparse_sums(x, 1L, na.rm, dims, average = TRUE)
})

#' @rdname clSparse
#' @export
setMethod("colMeans", "clSparse", function(x, na.rm = FALSE, dims = 1, ...) {
  sparse_sums(x, 2L, na.rm, dims, average = TRUE)
})
