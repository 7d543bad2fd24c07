# Sparse matrices in traced functions. Those of the package Matrix are data; a traced one has the
# class "cl_traced_sparse": a fixed pattern, `i` and `j`, rows and columns from 0 on, by columns and
# then rows, and `values`, a vector of its elements there, numbers or a traced vector. So its
# operations are few: gathers, products and sums of such vectors. Its `tape` is NULL, so that
# whatever does not know it takes it through trace_operand(), which makes it dense.

sparse_class <- c("cl_traced_sparse", "cl_traced", "numeric")

is_traced_sparse <- function(x) is.environment(x) && inherits(x, "cl_traced_sparse")

# `symmetric`: whether it is known to be, whatever the values are; `names`: of rows and columns.
new_sparse <- function(values, i, j, dim, symmetric = FALSE, names = NULL) {
  self <- list2env(list(id = 0L, n = prod(dim), dim = as.integer(dim), from = NULL, index = NULL,
                        tape = NULL, names = if (has_names(names)) names, values = values, i = i,
                        j = j, symmetric = symmetric), parent = emptyenv())
  class(self) <- sparse_class
  self
}

with_values <- function(x, values, symmetric = x$symmetric) {
  new_sparse(values, x$i, x$j, x$dim, symmetric, x$names)
}

# Any matrix as a sparse value; a traced dense one has all elements.
as_traced_sparse <- function(x) {
  if (is_traced_sparse(x)) return(x)
  if (is_traced(x)) {
    x <- as.matrix(x)
    d <- dim(x)
    return(new_sparse(as.vector(x), rep(seq_len(d[1L]) - 1L, d[2L]),
                      rep(seq_len(d[2L]) - 1L, each = d[1L]), d, names = labels_of(x)))
  }
  if (!is_sparse(x)) x <- Matrix::Matrix(as.matrix(x) + 0, sparse = TRUE)
  a <- plain_sparse(x)
  symmetric <- nrow(x) == ncol(x) && Matrix::isSymmetric(x, tol = 0, check.attributes = FALSE)
  new_sparse(a$x, a$i, a$j, dim(x), symmetric, dimnames(x))
}

# The nonzero elements: list(i, j, x, names), rows and columns from 0 on.
plain_sparse <- function(a) {
  if (is_traced_sparse(a)) return(list(i = a$i, j = a$j, x = a$values, names = a$names[[1L]]))
  a <- sparse_columns(a)
  list(i = a@i, j = rep.int(seq_len(ncol(a)) - 1L, diff(a@p)), x = a@x, names = rownames(a))
}

dense_of <- function(x) {
  if (x$n > most_dense) {
    trace_stop(sprintf("a sparse matrix of %d x %d would become dense here: %s", x$dim[1L],
                       x$dim[2L], if (is.null(tracing$tape$parent)) {
                         "use products, sums, solve() and determinant(), which keep it sparse"
                       } else {
                         "factorize before cl_scan() what does not depend on the state"
                       }))
  }
  if (x$n == 0L) return(no_elements(x$dim))
  if (length(x$i) == 0L) return(trace_operand(matrix(0, x$dim[1L], x$dim[2L], FALSE, x$names)))
  named(matrix_of(trace_operand(placed(x$values, keys_of(x) + 1, x$n)), x$dim[1L], x$dim[2L]),
        x$names)
}

keys_of <- function(x) x$i + x$j * as.double(x$dim[1L])

# n numbers: zeros, and to place at[k] the values k are added.
placed <- function(values, at, n) {
  if (length(values) == 0L) return(numeric(n))
  if (length(values) == n && all(at == seq_len(n))) return(values)
  if (!is_traced(values)) {
    if (!anyDuplicated(at)) return(replace(numeric(n), at, values))
    return(as.vector(base::rowsum(c(values, numeric(n)), c(at, seq_len(n)))))
  }
  record("scatter", "", node_of(values), c(tracing$tape$add_data(as.double(at - 1)), n), n)
}

# A sparse value of entries in any order, in which places may be repeated: these are added.
gathered <- function(values, i, j, dim, symmetric = FALSE) {
  key <- i + j * as.double(dim[1L])
  known <- sort(unique(key))
  new_sparse(placed(values, match(key, known), length(known)), as.integer(known %% dim[1L]),
             as.integer(known %/% dim[1L]), dim, symmetric)
}

# fun(matrices, ...), where fun, of the package Matrix, only moves elements: of matrices of their
# numbers, which it leaves sparse or makes a vector of.
sparse_move <- function(fun, values, ..., symmetric = FALSE) {
  values <- lapply(values, as_traced_sparse)
  sizes <- vapply(values, function(x) length(x$i), 0L)
  starts <- cumsum(c(0L, sizes[-length(sizes)]))
  like <- Map(function(x, size, start) {
    sparse_places(x, start + seq_len(size))
  }, values, sizes, starts)
  result <- plainly(do.call(fun, c(unname(like), list(...)), quote = TRUE))
  all <- do.call(combine_numbers, lapply(values, function(x) x$values))
  if (!is_sparse(result)) {
    vector <- is.null(dim(result))
    return(named(assemble(if (vector) as.vector(result) else as.matrix(result),
                          list(trace_operand(all))),
                 if (vector) names(result) else dimnames(result)))
  }
  p <- plain_sparse(result)
  new_sparse(all[p$x], p$i, p$j, dim(result), symmetric, dimnames(result))
}

# The same matrix with these numbers in place of its elements.
sparse_places <- function(x, numbers) {
  Matrix::sparseMatrix(x$i, x$j, x = numbers, dims = x$dim, index1 = FALSE, dimnames = x$names)
}

first_names <- function(a, b) if (is.null(a$names)) b$names else a$names

combine_numbers <- function(...) if (any_traced(...)) combine_traced(list(...)) else base::c(...)

# ---- arithmetic ----------------------------------------------------------------------------------

# An operator, where an operand is sparse.
sparse_arithmetic <- function(op, e1, e2) {
  f <- get(op, baseenv())
  if (missing(e2)) {
    if (op == "!") return(f(trace_operand(e1)))
    return(with_values(e1, f(e1$values)))
  }
  left <- is_traced_sparse(e1) || is_sparse(e1)
  if (left && (is_traced_sparse(e2) || is_sparse(e2))) {
    a <- as_traced_sparse(e1)
    b <- as_traced_sparse(e2)
    if (any(a$dim != b$dim)) trace_stop("non-conformable arrays", of_numbers = TRUE)
    if (op %in% c("+", "-")) return(sparse_sum(f, a, b))
    if (op == "*") return(sparse_overlap(a, b))
  } else if (op == "*" || op == "/" && left) {
    return(if (left) sparse_scaled(f, as_traced_sparse(e1), e2) else
      sparse_scaled(f, as_traced_sparse(e2), e1))
  } else if (op == "^" && left && !is_traced(e2) && is_number(e2) && e2 > 0) {
    a <- as_traced_sparse(e1)
    return(with_values(a, a$values^e2))
  }
  f(trace_operand(e1), trace_operand(e2))
}

sparse_sum <- function(f, a, b) {
  both <- a$symmetric && b$symmetric
  same <- identical(a$i, b$i) && identical(a$j, b$j)
  names <- first_names(a, b)
  if (same) return(new_sparse(f(a$values, b$values), a$i, a$j, a$dim, both, names))
  ka <- keys_of(a)
  kb <- keys_of(b)
  known <- sort(unique(c(ka, kb)))
  n <- length(known)
  new_sparse(f(placed(a$values, match(ka, known), n), placed(b$values, match(kb, known), n)),
             as.integer(known %% a$dim[1L]), as.integer(known %/% a$dim[1L]), a$dim, both, names)
}

sparse_overlap <- function(a, b) {
  other <- match(keys_of(a), keys_of(b))
  at <- which(!is.na(other))
  new_sparse(a$values[at] * b$values[other[at]], a$i[at], a$j[at], a$dim,
             a$symmetric && b$symmetric, first_names(a, b))
}

# By a number, a vector along the columns, or a matrix.
sparse_scaled <- function(f, a, by) {
  shape <- dim(by)
  by <- if (is_traced(by)) as.vector(by) else as.vector(as.matrix(by))
  if (length(by) == 1L) return(with_values(a, f(a$values, by)))
  if (!is.null(shape) && any(shape != a$dim) || length(by) == 0L && a$n > 0L) {
    trace_stop("non-conformable arrays", of_numbers = TRUE)
  }
  with_values(a, f(a$values, by[keys_of(a) %% length(by) + 1]), FALSE)
}

# Operators for functions in which there may be matrices of the package Matrix, whose own methods
# would take traced values for numbers.
sparse_operators <- function() {
  names <- c("+", "-", "*", "/", "^", "==", "!=", "<", ">", "<=", ">=", "&", "|")
  operators <- lapply(names, function(op) {
    original <- get(op, baseenv())
    force(op)
    function(e1, e2) {
      if (nargs() == 1L) return(original(e1))
      if (isS4(e1) && is_traced(e2) || isS4(e2) && is_traced(e1)) {
        return(sparse_arithmetic(op, e1, e2))
      }
      original(e1, e2)
    }
  })
  names(operators) <- names
  operators
}

# Whether a variable of this name may have to do with such matrices.
concerns_sparse <- function(name, home) {
  if (name == "Matrix") return(TRUE)
  value <- get0(name, envir = home)
  if (is.function(value)) {
    package <- attr(value, "package")
    return(identical(package, "Matrix") || !is.primitive(value) &&
             environmentName(topenv(environment(value))) == "Matrix")
  }
  holds_matrix(value, 3L)
}

holds_matrix <- function(x, depth) {
  if (isS4(x)) return(inherits(x, "Matrix"))
  if (!is.list(x) || depth == 0L || is.data.frame(x) || length(x) > 1000L) return(FALSE)
  for (part in x) if (holds_matrix(part, depth - 1L)) return(TRUE)
  FALSE
}

# ---- methods and replacements --------------------------------------------------------------------

#' @export
t.cl_traced_sparse <- function(x) {
  if (!x$symmetric) return(sparse_move(Matrix::t, list(x)))
  new_sparse(x$values, x$i, x$j, x$dim, TRUE, rev(x$names))
}

#' @export
dimnames.cl_traced_sparse <- function(x) x$names

#' @export
`dimnames<-.cl_traced_sparse` <- function(x, value) {
  new_sparse(x$values, x$i, x$j, x$dim, x$symmetric, plainly(check_dimnames(value, x$dim)))
}

#' @export
`[.cl_traced_sparse` <- function(x, ..., drop = TRUE) {
  if (missing(drop)) return(sparse_move(function(p) p[...], list(x)))
  sparse_move(function(p) p[..., drop = drop], list(x))
}

#' @export
`[[.cl_traced_sparse` <- function(x, ...) x[...]

# Functions that leave zeros as they are.
keeps_zeros <- c("abs", "sign", "sqrt", "floor", "ceiling", "trunc", "round", "expm1", "log1p",
                 "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "sinpi", "tanpi")

sparse_function <- function(op, x, ...) {
  f <- get(op, baseenv())
  if (op %in% keeps_zeros) with_values(x, f(x$values, ...)) else f(dense_of(x), ...)
}

#' @export
as.matrix.cl_traced_sparse <- function(x, ...) dense_of(x)

#' @export
as.array.cl_traced_sparse <- function(x, ...) dense_of(x)

#' @export
as.vector.cl_traced_sparse <- function(x, mode = "any") as.vector(dense_of(x), mode)

#' @export
as.double.cl_traced_sparse <- function(x, ...) as.vector(dense_of(x))

#' @export
`dim<-.cl_traced_sparse` <- function(x, value) {
  x <- dense_of(x)
  dim(x) <- value
  x
}

sparse_diagonal <- function(x) {
  n <- min(x$dim)
  at <- match((seq_len(n) - 1) * (x$dim[1L] + 1), keys_of(x), 0L)
  place_elements(at, list(trace_operand(x$values)))
}

sparse_set_diagonal <- function(x, value) {
  off <- which(x$i != x$j)
  rest <- new_sparse(x$values[off], x$i[off], x$j[off], x$dim, x$symmetric, x$names)
  n <- min(x$dim)
  if (!length(value) %in% c(1L, n)) {
    trace_stop("replacement diagonal has wrong length", of_numbers = TRUE)
  }
  diagonal <- traced_diagonal_matrix(n, value)
  diagonal$dim <- x$dim
  diagonal$n <- x$n
  sparse_sum(`+`, rest, diagonal)
}

traced_diagonal_matrix <- function(n, x = NULL, names = FALSE) {
  if (missing(n)) n <- length(x)
  if (is.null(x)) x <- rep(1, n)
  x <- if (is_traced(x)) as.vector(x) else as.double(x)
  k <- seq_len(n) - 1L
  new_sparse(if (length(x) == n) x else x[rep_len(seq_along(x), n)], k, k, c(n, n), TRUE)
}

# Sums or means by row (1) or column (2).
sparse_margin <- function(x, margin, mean) {
  at <- if (margin == 1L) x$i else x$j
  sums <- placed(x$values, at + 1, x$dim[margin])
  named(if (mean) sums / x$dim[3L - margin] else sums, x$names[[margin]])
}

traced_kronecker <- function(X, Y, FUN = "*", ...) {
  if (!identical(FUN, "*")) trace_stop("kronecker() of traced values has no 'FUN'")
  sparse <- vapply(list(X, Y), function(x) is_sparse(x) || is_traced_sparse(x), NA)
  if (any(sparse)) return(sparse_kronecker(X, Y))
  X <- as.matrix(X)
  Y <- as.matrix(Y)
  i <- rep(seq_len(nrow(X)), each = nrow(Y))
  j <- rep(seq_len(ncol(X)), each = ncol(Y))
  k <- rep(seq_len(nrow(Y)), times = nrow(X))
  l <- rep(seq_len(ncol(Y)), times = ncol(X))
  unnamed(X[i, j, drop = FALSE] * Y[k, l, drop = FALSE])
}

sparse_kronecker <- function(x, y) {
  a <- as_traced_sparse(x)
  b <- as_traced_sparse(y)
  p <- rep(seq_along(a$i), each = length(b$i))
  q <- rep(seq_along(b$i), times = length(a$i))
  gathered(a$values[p] * b$values[q], a$i[p] * b$dim[1L] + b$i[q], a$j[p] * b$dim[2L] + b$j[q],
           a$dim * b$dim, a$symmetric && b$symmetric)
}

sparse_blocks <- function(...) {
  blocks <- list(...)
  if (length(blocks) == 1L && is.list(blocks[[1L]])) blocks <- blocks[[1L]]
  blocks <- lapply(blocks, as_traced_sparse)
  sizes <- vapply(blocks, function(x) x$dim, integer(2L))
  starts <- apply(sizes, 1L, function(n) cumsum(c(0L, n[-length(n)])))
  starts <- matrix(starts, length(blocks))
  new_sparse(do.call(combine_numbers, lapply(blocks, function(x) x$values)),
             unlist(Map(function(x, at) x$i + at, blocks, starts[, 1L])),
             unlist(Map(function(x, at) x$j + at, blocks, starts[, 2L])), rowSums(sizes),
             all(vapply(blocks, function(x) x$symmetric, NA)))
}

# as(x, class) for the classes of matrices.
traced_as <- function(object, Class) {
  if (grepl("atrix$", Class) && Class != "matrix") {
    x <- as_traced_sparse(object)
    if (Class == "symmetricMatrix" || grepl("^.s.Matrix$", Class)) x <- force_symmetric(x)
    return(x)
  }
  if (Class %in% c("matrix", "array")) return(as.matrix(object))
  if (Class %in% c("numeric", "vector", "double")) return(as.vector(object))
  trace_stop(sprintf("as() of a traced value has no class \"%s\"", Class))
}

force_symmetric <- function(x, uplo = "U") {
  x <- as_traced_sparse(x)
  if (x$symmetric) return(x)
  if (missing(uplo) && any(x$i > x$j) && !any(x$i < x$j)) {
    trace_stop(paste("a symmetric matrix is made of the upper triangle, which is empty here: use",
                     "forceSymmetric() with uplo = \"L\""))
  }
  sparse_move(function(p) methods::as(Matrix::forceSymmetric(p, uplo), "generalMatrix"), list(x),
              symmetric = TRUE)
}
