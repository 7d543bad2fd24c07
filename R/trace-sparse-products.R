# Products, solutions and determinants of sparse matrices (R/trace-sparse.R).

# op(x) op(y) where one of them is sparse; kind: 0: x y, 1: x' y, 2: x y'. A product with a dense
# matrix is dense, and recorded by the nonzero elements: gathers, products of numbers, and sums by
# row.
sparse_product <- function(x, y, kind) {
  left <- is_sparse(x) || is_traced_sparse(x)
  if (left && (is_sparse(y) || is_traced_sparse(y))) {
    same <- identical(x, y) && kind > 0L
    a <- if (kind == 1L) t(as_traced_sparse(x)) else as_traced_sparse(x)
    b <- if (kind == 2L) t(as_traced_sparse(y)) else as_traced_sparse(y)
    return(sparse_by_sparse(a, b, same))
  }
  a <- if (left) x else y
  if (!left) {
    # y a = (a' y')', and so on; a vector is a row where that fits
    rows <- kind == 1L # of y
    y <- vector_as_matrix(trace_operand(x), if (kind == 2L) ncol(a) else nrow(a), rows)
    a <- if (kind == 2L) a else transposed(a)
    return(t(sparse_times(a, if (rows) y else t(y))))
  }
  a <- if (kind == 1L) transposed(a) else a
  y <- vector_as_matrix(trace_operand(y), ncol(a), kind != 2L)
  sparse_times(a, if (kind == 2L) t(y) else y)
}

transposed <- function(a) if (is_sparse(a)) Matrix::t(a) else t(a)

# A vector as a column if it has n elements, else as a row; for `column = FALSE` the reverse.
vector_as_matrix <- function(y, n, column) {
  if (length(y$dim) == 2L) return(y)
  alone <- (y$n == n) == column
  matrix_of(y, if (alone) y$n else 1L, if (alone) 1L else y$n)
}

sparse_times <- function(a, y) {
  size <- dim(y)
  if (ncol(a) != size[1L]) trace_stop("non-conformable arguments", of_numbers = TRUE)
  m <- nrow(a)
  n <- size[2L]
  if (m * n == 0) return(no_elements(c(m, n)))
  a <- plain_sparse(a)
  if (length(a$x) == 0L) return(matrix(0, m, n))
  columns <- rep(seq_len(n) - 1, each = length(a$x))
  elements <- take(node_of(y), a$j + 1 + size[1L] * columns)
  weights <- if (n == 1L) a$x else a$x[rep(seq_along(a$x), n)]
  products <- traced_binary("mul", weights, traced(elements, length(columns)))
  place <- as.double(a$i + m * columns)
  result <- record("scatter", "", node_of(products), c(tracing$tape$add_data(place), m * n), m * n,
                   c(m, n))
  named(result, list(a$names, if (is.list(y$names)) y$names[[2L]]))
}

# The pairs of elements a[i, k] and b[k, j].
sparse_by_sparse <- function(a, b, symmetric) {
  if (a$dim[2L] != b$dim[1L]) trace_stop("non-conformable arguments", of_numbers = TRUE)
  by_row <- order(b$i)
  count <- tabulate(b$i + 1L, b$dim[1L])
  first <- cumsum(c(0L, count))
  each <- count[a$j + 1L]
  p <- rep.int(seq_along(a$i), each)
  q <- by_row[rep.int(first[a$j + 1L], each) + sequence(each)]
  product <- gathered(a$values[p] * b$values[q], a$i[p], b$j[q], c(a$dim[1L], b$dim[2L]), symmetric)
  named(product, list(a$names[[1L]], b$names[[2L]]))
}

# ---- symmetric positive definite matrices --------------------------------------------------------

# The lower triangle of a symmetric matrix, with its whole diagonal: list(values, pattern, count,
# i, j), the pattern as src/ops/operations.def has it, by its number among the data.
lower_triangle <- function(x) {
  if (!is.null(x$lower) && identical(x$lower$tape, tracing$tape)) return(x$lower)
  n <- x$dim[1L]
  low <- which(x$i >= x$j)
  if (sum(x$i == x$j) < n) {
    at <- setdiff(seq_len(n) - 1L, x$i[x$i == x$j])
    full <- gathered(combine_numbers(x$values[low], numeric(length(at))), c(x$i[low], at),
                     c(x$j[low], at), x$dim)
  } else {
    full <- new_sparse(if (length(low) == length(x$i)) x$values else x$values[low], x$i[low],
                       x$j[low], x$dim)
  }
  pattern <- as.double(c(0, cumsum(tabulate(full$j + 1L, n)), full$i))
  x$lower <- list(values = trace_operand(full$values), i = full$i, j = full$j,
                  pattern = tracing$tape$add_data(pattern), count = length(full$i),
                  tape = tracing$tape)
  x$lower
}

# Whether its factor is sparse: general matrices have dense factors, and so have those in steps of
# cl_scan(), which are operations on single numbers.
has_sparse_factor <- function(x) {
  x$symmetric && x$dim[1L] > 1L && is.null(tracing$tape$parent)
}

traced_log_det <- function(x) {
  low <- lower_triangle(x)
  record("sparse_log_det", "", node_of(low$values), c(low$pattern, x$dim[1L], low$count), 1L)
}

# x' Q x of a symmetric Q.
sparse_quadratic <- function(q, x) {
  low <- lower_triangle(q)
  x <- trace_operand(as.vector(x))
  sum(low$values * ifelse(low$i == low$j, 1, 2) * x[low$i + 1L] * x[low$j + 1L])
}

sparse_solution <- function(a, b) {
  n <- a$dim[1L]
  shape <- if (is.null(b)) c(n, n) else dim(b)
  if (!has_sparse_factor(a) || !is_traced(a$values) && !has_factor(a)) {
    return(traced_solve(dense_of(a), if (is_sparse(b) || is_traced_sparse(b)) as.matrix(b) else b))
  }
  b <- trace_operand(if (is.null(b)) diag(n) else b)
  if (b$n == 0L) return(no_elements(shape))
  low <- lower_triangle(a)
  record("sparse_solve", "", c(node_of(low$values), node_of(b)),
         c(low$pattern, n, low$count, b$n / n), b$n, shape)
}

#' @export
determinant.cl_traced_sparse <- function(x, logarithm = TRUE, ...) {
  n <- square_order(x, "x")
  if (!has_sparse_factor(x)) return(determinant(dense_of(x), logarithm))
  size <- traced_log_det(x)
  structure(list(modulus = if (logarithm) size else exp(size), sign = 1), class = "det")
}

# The upper factor, in the order of the matrix, with what fills in: that of a matrix of the same
# pattern whose factor has no zeros by chance.
sparse_root <- function(x) {
  n <- x$dim[1L]
  low <- lower_triangle(x)
  degree <- tabulate(low$i + 1L, n) + tabulate(low$j + 1L, n)
  like <- Matrix::sparseMatrix(low$i, low$j, x = ifelse(low$i == low$j, degree[low$j + 1L], -1),
                               dims = x$dim, symmetric = TRUE, index1 = FALSE)
  filled <- plain_sparse(Matrix::t(Matrix::chol(like)))
  key <- function(at) at$i + as.double(n) * at$j
  count <- length(filled$i)
  values <- trace_operand(placed(low$values, match(key(low), key(filled)), count))
  pattern <- tracing$tape$add_data(as.double(c(0, cumsum(tabulate(filled$j + 1L, n)), filled$i)))
  lower <- record("sparse_root", "", node_of(values), c(pattern, n, count), count)
  upper <- order(filled$i, filled$j)
  new_sparse(lower[upper], filled$j[upper], filled$i[upper], x$dim)
}

has_factor <- function(a) {
  !is.null(matrix_factor(Matrix::sparseMatrix(a$i, a$j, x = a$values, dims = a$dim,
                                              index1 = FALSE)))
}

# That of the package Matrix, or NULL.
matrix_factor <- function(q) {
  tryCatch(Matrix::Cholesky(methods::as(Matrix::forceSymmetric(q), "CsparseMatrix"), LDL = FALSE),
           error = function(e) NULL, warning = function(w) NULL)
}

# log(det(q)) of a symmetric matrix; it must be positive definite.
sparse_log_det <- function(q) {
  if (is_traced_sparse(q)) {
    q <- force_symmetric(q)
    if (is.null(tracing$tape$parent)) return(traced_log_det(q))
    return(2 * sum(log(traced_diag(chol(dense_of(q))))))
  }
  factor <- matrix_factor(q)
  if (is.null(factor)) trace_stop("the precision matrix must be positive definite")
  2 * sum(log(Matrix::diag(methods::as(factor, "CsparseMatrix"))))
}

# Values of records (R/trace-value.R), by dense matrices.
live_sparse <- function(kind, args, at, tape) {
  n <- at[2L]
  pattern <- tape$data[[at[1L]]]
  i <- pattern[-seq_len(n + 1L)] + 1
  j <- rep(seq_len(n), diff(pattern[seq_len(n + 1L)]))
  a <- matrix(0, n, n)
  a[cbind(i, j)] <- a[cbind(j, i)] <- args[[1L]]
  factor <- tryCatch(chol.default(a), error = function(e) NULL)
  switch(kind,
    sparse_root = if (is.null(factor)) args[[1L]] * NaN else factor[cbind(j, i)],
    sparse_log_det = if (is.null(factor)) NaN else 2 * sum(log(diag(factor))),
    sparse_solve = if (is.null(factor)) args[[2L]] * NaN else
      backsolve(factor, backsolve(factor, matrix(args[[2L]], n), transpose = TRUE)))
}
