# Matrix products.

#' Matrix products
#'
#' `cl_matmul(a, b)` is `a %*% b`, `cl_crossprod(x, y)` is `t(x) %*% y` and `cl_tcrossprod(x, y)` is
#' `x %*% t(y)`, for base R matrices and [clMatrix] objects in any combination. `y = NULL` stands
#' for `x`; this takes half the work and gives an exactly symmetric result. The operators and
#' functions of base R do the same if an operand is a `clMatrix`. Vectors are row or column vectors,
#' by the rules of base R.
#'
#' Triangular views save work: `%*%` of two lower triangular matrices is again lower triangular.
#' Elements that are zero by the view are skipped, even where the other operand is infinite or
#' missing.
#'
#' The product of a `clMatrix` and a single column is lazy ([lazy]): it becomes part of the kernel
#' of the arithmetic that uses it. Other products are computed at once.
#'
#' With base R input the engine is chosen by size ([cl_thresholds()], entry `matmul`: the harmonic
#' mean of rows, columns and inner dimension, which is the work for each number transferred).
#'
#' @param a,b,x,y Numeric matrices, vectors, or `clMatrix` objects.
#' @return A base R matrix if all operands are base R, otherwise a `clMatrix`. Row and column names
#'   are kept as in base R.
#' @section Errors:
#' `statcl_error_argument` for operands that are not numeric, do not conform, or are on different
#' devices.
#' @export
#' @examples
#' x <- matrix(rnorm(12), 4)
#' all.equal(cl_crossprod(x), crossprod(x))
#' d <- as_cl(x)
#' t(d) %*% d
#' d %*% c(1, 2, 3)
cl_matmul <- function(a, b) {
  if (!is.null(b) && is_small(a, b) && dim(a)[2L] == dim(b)[1L]) return(a %*% b)
  if (is_cl_sparse(a) || is_cl_sparse(b)) return(sparse_matmul(a, b))
  if (is_sparse(a) && !is_cl(b)) return(as.matrix(a %*% b))
  # fast path for a plain vector as a column, which likelihoods call repeatedly
  if (is_cl(a) && is.double(b) && is.null(attributes(b)) && length(b) == a@Dim[2L]) {
    names <- product_names(a, 1L, b, 2L)
    dim(b) <- c(length(b), 1L)
    return(value(.Call(r_op, "matvec", list(a@handle, b), NULL, NULL), NULL, names))
  }
  pair <- product_operands(a, b, "a", "b", "matmul")
  dim <- product_dim(pair, 1L, 2L, 2L, 1L, "a", "b")
  names <- product_names(a, 1L, b, 2L)
  if (dim[2L] == 1 && is_cl(a)) {
    return(value(.Call(r_op, "matvec", list(pair$x, pair$y), NULL, NULL), NULL, names))
  }
  where <- product_where(pair, dim)
  value(call_on(where, r_op, "matmul", list(pair$x, pair$y), c(FALSE, FALSE)), NULL, names)
}

#' @rdname cl_matmul
#' @export
cl_crossprod <- function(x, y = NULL) {
  if (is_small(x, y) && (is.null(y) || dim(x)[1L] == dim(y)[1L])) return(crossprod(x, y))
  if (is_cl_sparse(x) || is_cl_sparse(y)) return(sparse_crossprod(x, y))
  if (is_sparse(x) && !is_cl(y)) {
    return(as.matrix(if (is.null(y)) Matrix::crossprod(x) else Matrix::crossprod(x, y)))
  }
  product_along(x, y, 2L, "crossprod")
}

#' @rdname cl_matmul
#' @export
cl_tcrossprod <- function(x, y = NULL) {
  if (is_small(x, y) && (is.null(y) || dim(x)[2L] == dim(y)[2L])) return(tcrossprod(x, y))
  if (is_cl_sparse(x) || is_cl_sparse(y)) return(sparse_tcrossprod(x, y))
  product_along(x, y, 1L, "tcrossprod")
}

# The product with this side of both, 1 or 2, as the sides of the result; y may be NULL, for x.
product_along <- function(x, y, side, kind) {
  pair <- product_operands(x, y, "x", "y", kind)
  where <- product_where(pair, product_dim(pair, side, side, 3L - side, 3L - side, "x", "y"))
  form <- c(side == 2L, side == 1L)
  value(call_on(where, r_op, "matmul", list(x = pair$x, y = pair$y), form), NULL,
        product_names(x, side, if (is.null(y)) x else y, side))
}

# Whether base R is to compute with these, as the checks take longer than the work: plain matrices
# of at most 1e4 elements, which no device takes unless thresholds say so.
is_small <- function(x, y = NULL) {
  is.double(x) && is.matrix(x) && !is.object(x) && length(x) <= 1e4 &&
    (is.null(y) || is.double(y) && is.matrix(y) && !is.object(y) && length(y) <= 1e4) &&
    session$engine != "device" && is.null(getOption("statcl.thresholds"))
}

# Both operands as .Call takes them, vectors as rows or columns.
product_operands <- function(x, y, name_x, name_y, kind) {
  if (is_cl(x) && (is_cl(y) || (is.null(y) && kind != "matmul"))) {
    if (is.null(y)) return(list(x = x@handle, y = NULL, dim_x = x@Dim, dim_y = x@Dim))
    return(list(x = x@handle, y = y@handle, dim_x = x@Dim, dim_y = y@Dim))
  }
  if (!is_cl(x)) x <- check_numeric(x, name_x)
  if (!is_cl(y) && (!is.null(y) || kind == "matmul")) y <- check_numeric(y, name_y)
  vector_x <- is.null(dim(x))
  vector_y <- !is.null(y) && is.null(dim(y))
  if (vector_x && vector_y) {
    rows <- vectors_as_rows(length(x), length(y), kind)
    x <- as_row_or_column(x, rows[1L])
    y <- as_row_or_column(y, rows[2L])
  } else if (vector_x) {
    x <- vector_operand(x, if (is.null(y)) NULL else dim(y), kind, first = TRUE)
  } else if (vector_y) {
    y <- vector_operand(y, dim(x), kind, first = FALSE)
  }
  list(x = if (is_cl(x)) x@handle else x, y = if (is_cl(y)) y@handle else y, dim_x = dim(x),
       dim_y = if (is.null(y)) dim(x) else dim(y))
}

as_row_or_column <- function(v, row) if (row) matrix(v, nrow = 1L) else matrix(v, ncol = 1L)

# Which of two vectors of m and n numbers is a row, by base R's rules.
vectors_as_rows <- function(m, n, kind) {
  switch(kind, matmul = if (m == 1L && n != 1L) c(FALSE, TRUE) else c(TRUE, FALSE),
         crossprod = c(FALSE, m == 1L && n != 1L), tcrossprod = c(FALSE, FALSE))
}

# A vector as a factor of a matrix with dimensions `other`, or (NULL) of another vector: by base R's
# rules a column, or a row where only that conforms. If neither conforms and the inner dimension is
# 0, it is a 0 x 0 matrix and the product is empty.
vector_operand <- function(v, other, kind, first) {
  if (is.null(other)) return(as_row_or_column(v, FALSE))
  n <- length(v)
  row <- switch(kind,
    matmul = if (first) n == other[1L] else n != other[2L] && other[2L] == 1L,
    crossprod = !first && n != other[1L] && other[1L] == 1L,
    tcrossprod = if (first) n == other[2L] else other[1L] == 1L)
  inner <- switch(kind, matmul = other[if (first) 1L else 2L], crossprod = other[1L],
                  tcrossprod = other[2L])
  if (inner == 0L && n > 0L && (kind != "tcrossprod" || first)) return(matrix(0, 0L, 0L))
  as_row_or_column(v, row)
}

# Dimensions (m, n, k) of a product: m and n are outer dimensions of x and y, k is the inner
# dimension.
product_dim <- function(pair, side_x, side_y, inner_x, inner_y, name_x, name_y) {
  if (pair$dim_x[inner_x] != pair$dim_y[inner_y]) {
    abort_argument(name_y, sprintf("non-conformable arguments: '%s' is %d x %d, '%s' is %d x %d",
                                   name_x, pair$dim_x[1L], pair$dim_x[2L], name_y, pair$dim_y[1L],
                                   pair$dim_y[2L]))
  }
  as.double(c(pair$dim_x[side_x], pair$dim_y[side_y], pair$dim_x[inner_x]))
}

# The engine for base R operands; a clMatrix among the operands determines it.
product_where <- function(pair, dim) {
  if (typeof(pair$x) == "externalptr" || typeof(pair$y) == "externalptr") return(-1L)
  where_for("matmul", harmonic_mean(dim), kind = shape_kind("matmul", dim))
}

# Names of one side of x and of one of y; vectors have none.
product_names <- function(x, side_x, y, side_y) {
  x <- names_of(x)
  y <- names_of(y)
  if (is.null(x) && is.null(y)) return(NULL)
  if (is.null(side(x, side_x)) && is.null(side(y, side_y))) return(NULL)
  both <- c(side_or_empty(x, side_x), side_or_empty(y, side_y))
  if (is.null(names(x)) && is.null(names(y))) names(both) <- NULL
  both
}

# One side of dimnames as a list of one, with its name ("" for none).
side_or_empty <- function(names, side) {
  one <- if (is.null(names)) list(NULL) else names[side]
  if (is.null(names(one))) names(one) <- ""
  one
}

# ---- methods of base R's functions --------------------------------------------------------------

# The formals of some generics differ between versions of R ("..." came with 4.4.0): a method takes
# those of the running version.
with_formals_of <- function(generic, definition) {
  formals(definition) <- formals(getGeneric(generic))
  definition
}

if (!is.primitive(base::crossprod)) setGeneric("crossprod")
if (!is.primitive(base::tcrossprod)) setGeneric("tcrossprod")

crossprod_method <- with_formals_of("crossprod", function() {
  cl_crossprod(x, if (missing(y)) NULL else y)
})

tcrossprod_method <- with_formals_of("tcrossprod", function() {
  cl_tcrossprod(x, if (missing(y)) NULL else y)
})

#' @rdname cl_matmul
#' @eval method_aliases(c("%*%", "crossprod", "tcrossprod"))
#' @export
setMethod("%*%", signature("clMatrix", "ANY"), function(x, y) cl_matmul(x, y))

#' @rdname cl_matmul
#' @param ... Not used.
#' @export
setMethod("crossprod", signature("clMatrix", "ANY"), crossprod_method)

#' @rdname cl_matmul
#' @export
setMethod("tcrossprod", signature("clMatrix", "ANY"), tcrossprod_method)

for (classes in c(pair_signatures[-1L], sparse_signatures[-1L])) {
  setMethod("%*%", classes, function(x, y) cl_matmul(x, y))
  setMethod("crossprod", classes, crossprod_method)
  setMethod("tcrossprod", classes, tcrossprod_method)
}
rm(classes)
