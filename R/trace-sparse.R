# Sparse matrices of the package Matrix as data of a traced function. A product is recorded by its
# nonzero elements: gathers, products of numbers, and sums by row.

# op(a) op(y) of a sparse matrix and a traced value. `kind`: 0: a y, 1: a' y, 2: a y'. `left`:
# whether the sparse matrix is the left operand. NULL if it is not sparse enough.
sparse_product <- function(x, y, kind) {
  left <- is_sparse(x)
  a <- if (left) x else y
  if (!left) {
    # y a = (a' y')', and so on; a vector is a row where that fits
    rows <- kind == 1L # of y
    y <- vector_as_matrix(trace_operand(x), if (kind == 2L) ncol(a) else nrow(a), rows)
    a <- if (kind == 2L) a else Matrix::t(a)
    return(t(sparse_times(a, if (rows) y else t(y))))
  }
  a <- if (kind == 1L) Matrix::t(a) else a
  y <- vector_as_matrix(trace_operand(y), ncol(a), kind != 2L)
  sparse_times(a, if (kind == 2L) t(y) else y)
}

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
  products <- traced_binary("mul", rep(a$x, n), traced(elements, length(columns)))
  place <- as.double(a$i + m * columns)
  result <- record("scatter", "", node_of(products), c(tracing$tape$add_data(place), m * n), m * n,
                   c(m, n))
  named(result, list(a$names, if (is.list(y$names)) y$names[[2L]]))
}

# The nonzero elements: list(i, j, x, names), rows and columns from 0 on.
plain_sparse <- function(a) {
  for (class in c("dMatrix", "CsparseMatrix", "generalMatrix")) a <- methods::as(a, class)
  list(i = a@i, j = rep.int(seq_len(ncol(a)) - 1L, diff(a@p)), x = a@x, names = rownames(a))
}

# log(det(q)) of a symmetric matrix; it must be positive definite.
sparse_log_det <- function(q) {
  factor <- tryCatch(Matrix::Cholesky(methods::as(Matrix::forceSymmetric(q), "CsparseMatrix"),
                                      LDL = FALSE),
                     error = function(e) NULL, warning = function(w) NULL)
  if (is.null(factor)) trace_stop("the precision matrix must be positive definite")
  2 * sum(log(Matrix::diag(methods::as(factor, "CsparseMatrix"))))
}
