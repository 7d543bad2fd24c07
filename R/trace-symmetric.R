# Which recorded matrices are symmetric whatever the parameters are, so that no evaluation has to
# look.

known_symmetric <- function(x) {
  size <- dim(x)
  if (length(size) != 2L || size[1L] != size[2L]) return(FALSE)
  n <- size[1L]
  symmetric <- symmetric_nodes(x$tape, n)
  if (is.null(x$from)) return(symmetric(x$id))
  # Elements of several nodes: a pair is one element, or at its own places in a symmetric matrix.
  from <- matrix(x$from, n, n)
  index <- matrix(x$index, n, n)
  pairs <- from == t(from) & index == t(index)
  if (all(pairs)) return(TRUE)
  whole <- from[!pairs][1L]
  all(pairs | from == whole & index == seq_len(n * n)) && x$tape$size[whole] == n * n &&
    symmetric(whole)
}

# A function that says whether a node of n x n elements is symmetric.
symmetric_nodes <- function(tape, n) {
  found <- new.env(parent = emptyenv())
  mirrored <- function(values) identical(matrix(values, n), t(matrix(values, n)))
  diagonal <- function(id) {
    tape$kind[id] == "data" && all(matrix(tape$data[[tape$at[[id]][1L]]], n)[!diag(TRUE, n)] == 0)
  }
  look <- function(node) {
    args <- node[[3L]]
    at <- node[[4L]]
    switch(node[[1L]],
      data = mirrored(tape$data[[at[1L]]]),
      apply = all(vapply(args, function(k) tape$size[k] == 1L || symmetric(k), NA)) ||
        node[[2L]] == "mul" && any(tape$size[args] == n * n &
                                     vapply(args, diagonal, NA)),
      transpose = symmetric(args),
      matmul = is_square(operand(args[1L], at[4L]), operand(args[2L], at[5L])) ||
        at[4L] == 1 && at[5L] == 0 && is_form(args[1L], node_at(tape, args[2L])),
      gather = mirrored(tape$data[[at[1L]]]),
      FALSE)
  }
  # list(a matrix, whether it is transposed)
  operand <- function(id, turned) {
    node <- node_at(tape, id)
    if (node[[1L]] == "transpose") list(node[[3L]], turned == 0) else list(id, turned == 1)
  }
  is_square <- function(a, b) a[[1L]] == b[[1L]] && a[[2L]] != b[[2L]]
  # b' (a b) of a symmetric a with as many rows
  is_form <- function(b, node) {
    at <- node[[4L]]
    node[[1L]] == "matmul" && node[[3L]][2L] == b && all(at[4:5] == 0) && at[1L] == n &&
      at[2L] == n && symmetric(node[[3L]][1L])
  }
  symmetric <- function(id) {
    key <- as.character(id)
    if (is.null(found[[key]])) {
      found[[key]] <- tape$size[id] == n * n && look(node_at(tape, id))
    }
    found[[key]]
  }
  symmetric
}

#' @export
chol.cl_traced <- function(x, ...) {
  n <- square_order(x, "a")
  if (n == 0L) return(no_elements(c(0L, 0L)))
  if (is_traced_sparse(x) && has_sparse_factor(x)) return(sparse_root(x))
  x <- trace_operand(x)
  if (n == 1L) return(matrix_of(sqrt(x), 1L, 1L))
  # The lower factor of the upper triangle, which is what base R reads.
  lower <- record("chol", "", node_of(if (known_symmetric(x)) x else t(x)), n, n * n, c(n, n))
  named(t(lower), labels_of(x))
}
