# Sparse matrices in traced functions made of others, and by functions of the package Matrix
# (R/trace-sparse.R).

traced_sparse_matrix <- function(i, j, x, dims, symmetric = FALSE, index1 = TRUE, ...) {
  if (any_traced(i, j)) refuse_index()
  if (...length() > 0L) trace_stop("sparseMatrix() of a traced value takes i, j, x and dims")
  if (length(x) == 1L) x <- rep(x, length(i))
  i <- as.integer(i) - (index1 != FALSE)
  j <- as.integer(j) - (index1 != FALSE)
  if (missing(dims)) dims <- c(max(i), max(j)) + 1L
  if (symmetric) {
    off <- which(i != j)
    x <- combine_numbers(x, x[off])
    both <- list(i = c(i, j[off]), j = c(j, i[off]))
    i <- both$i
    j <- both$j
  }
  gathered(x, i, j, dims, symmetric)
}

# x[...] <- value: `...` are subscripts that are not traced.
sparse_assign <- function(x, value, ...) {
  if (...length() == 1L && !missing(..1) && is_traced(..1)) {
    x <- as_traced_sparse(x)
    return(traced_assign(dense_of(x), `[<-`, value, as.vector(..1)))
  }
  x <- as_traced_sparse(x)
  value <- as.vector(if (is_traced(value)) value else as.matrix(value))
  if (x$n == 0L) {
    if (length(plainly(`[<-`(array(0, x$dim), ..., value = numeric(length(value))))) > 0L) {
      trace_stop("subscript out of bounds", of_numbers = TRUE)
    }
    return(x)
  }
  size <- length(x$i)
  places <- sparse_places(x, seq_len(size))
  assign_to <- function(...) plainly(`[<-`(places, ..., value = size + seq_along(value)))
  if (...length() == 1L && !missing(..1) && is_logical(..1)) {
    at <- chosen_places(..1, x$dim, length(value))
    p <- plain_sparse(assign_to(at))
  } else {
    p <- plain_sparse(assign_to(...))
  }
  new_sparse(combine_numbers(x$values, value)[p$x], p$i, p$j, x$dim, names = x$names)
}

is_logical <- function(x) is.logical(x) || inherits(x, c("lMatrix", "nMatrix"))

# Rows and columns of the elements that `test` chooses for `count` values: package Matrix reads
# beyond them where there are NA.
chosen_places <- function(test, dim, count) {
  if (count > 1L && anyNA(test)) trace_stop("NAs are not allowed in subscripted assignments")
  if (is.null(dim(test))) test <- rep_len(test, prod(dim))
  if (any(dim(test) != dim)) trace_stop("non-conformable arrays", of_numbers = TRUE)
  arrayInd(Matrix::which(test), dim)
}

# cbind() or rbind(): vectors are columns or rows, and numbers are repeated.
sparse_bind <- function(fun, values) {
  values <- values[!vapply(values, is.null, NA)]
  columns <- identical(fun, base::cbind)
  flat <- vapply(values, function(x) is.null(dim(x)), NA)
  length_of <- function(x) dim(x)[if (columns) 1L else 2L]
  n <- length_of(values[[which(!flat)[1L]]])
  values[flat] <- lapply(values[flat], function(x) {
    x <- x[rep_len(seq_along(x), n)]
    as.matrix(if (columns) x else t(x))
  })
  if (any(vapply(values, length_of, 0L) != n)) {
    trace_stop("the matrices that are bound differ in length", of_numbers = TRUE)
  }
  sparse_move(fun, values)
}

traced_band_sparse <- function(n, m = n, k, diagonals, symmetric = FALSE, ...) {
  if (...length() > 0L) trace_stop("bandSparse() of traced values takes n, m, k, diagonals")
  size <- pmin(n, m - k) - pmax(0, -k)
  all <- Map(function(which, k, size) {
    x <- if (is.list(diagonals)) diagonals[[which]] else diagonals[, which]
    if (length(x) < size) trace_stop("a diagonal of bandSparse() is too short", of_numbers = TRUE)
    list(i = seq_len(size) + max(0, -k), j = seq_len(size) + max(0, k), x = x[seq_len(size)])
  }, seq_along(k), k, size)
  part <- function(name) lapply(all, `[[`, name)
  traced_sparse_matrix(unlist(part("i")), unlist(part("j")), do.call(combine_numbers, part("x")),
                       c(n, m), symmetric)
}

traced_general_matrix <- function(data, nrow, ncol, byrow = FALSE, dimnames = NULL,
                                  sparse = FALSE, ...) {
  if (is.null(dim(data)) || !missing(nrow) || !missing(ncol)) {
    data <- matrix_mask(data, nrow, ncol, byrow)
  }
  if (isTRUE(sparse)) as_traced_sparse(data) else data
}

# Functions of the package Matrix, by name.
sparse_masks <- function() {
  from_matrix <- function(name, mine) {
    force(mine)
    function(...) if (any_traced(...)) mine(...) else getExportedValue("Matrix", name)(...)
  }
  moved <- function(name) {
    from_matrix(name, function(x, ...) {
      sparse_move(function(p) getExportedValue("Matrix", name)(p, ...), list(x))
    })
  }
  diagonal_of <- function(n, x = 1, ...) traced_diagonal_matrix(n, x)
  half <- function(x, y) (x + y) / 2
  symmetric_part <- function(x) {
    square_order(x, "x")
    x <- as_traced_sparse(x)
    x <- sparse_sum(half, x, t(x))
    with_values(x, x$values, TRUE)
  }
  bind <- function(fun) {
    force(fun)
    function(x, y, ...) bind_traced(fun, list(x, y))
  }
  list(Diagonal = from_matrix("Diagonal", traced_diagonal_matrix),
       sparseMatrix = from_matrix("sparseMatrix", traced_sparse_matrix),
       bdiag = function(...) {
         if (contains_traced(list(...))) sparse_blocks(...) else Matrix::bdiag(...)
       },
       forceSymmetric = from_matrix("forceSymmetric", force_symmetric),
       tril = moved("tril"), triu = moved("triu"), band = moved("band"),
       symmpart = from_matrix("symmpart", symmetric_part),
       skewpart = from_matrix("skewpart", function(x) x - symmetric_part(x)),
       Matrix = from_matrix("Matrix", traced_general_matrix),
       bandSparse = function(...) {
         if (contains_traced(list(...))) traced_band_sparse(...) else Matrix::bandSparse(...)
       },
       .sparseDiagonal = from_matrix(".sparseDiagonal", diagonal_of),
       .symDiagonal = from_matrix(".symDiagonal", diagonal_of),
       spMatrix = from_matrix("spMatrix", function(nrow, ncol, i, j, x) {
         traced_sparse_matrix(i, j, x, c(nrow, ncol))
       }),
       cbind2 = mask("cbind2", bind(base::cbind), methods::cbind2),
       rbind2 = mask("rbind2", bind(base::rbind), methods::rbind2),
       drop0 = from_matrix("drop0", function(x, ...) x),
       as = mask("as", traced_as, methods::as))
}
