# Batches of matrices of different sizes: lists, whose matrices of equal size are computed together.

# A list of square base matrices as double, checked; the condition names the element.
list_of_squares <- function(a, argument) {
  lapply(seq_along(a), function(i) {
    x <- check_numeric(a[[i]], sprintf("%s[[%d]]", argument, i))
    if (is.null(dim(x)) && length(x) == 1L) dim(x) <- c(1L, 1L)
    if (is.null(dim(x)) || dim(x)[1L] != dim(x)[2L]) {
      abort_argument(argument, sprintf("'%s[[%d]]' must be a square matrix, not %s", argument, i,
                                       describe(x)))
    }
    check_order(dim(x)[1L], argument)
    x
  })
}

# Runs `call(indices)` for the indices of each kind and returns the results in the original order.
# `call` returns list(value, status); value(i) is the matrix of the i-th index.
by_kind <- function(kind, call) {
  result <- vector("list", length(kind))
  status <- raw(length(kind))
  for (indices in split(seq_along(kind), kind)) {
    part <- call(indices)
    for (i in seq_along(indices)) result[[indices[i]]] <- part$value(i)
    if (!is.null(part$status)) status[indices] <- part$status
  }
  list(value = result, status = status)
}

stack <- function(x) unlist(x, use.names = FALSE)

batch_chol_list <- function(a, lower, on_error) {
  x <- list_of_squares(a, "a")
  n <- vapply(x, nrow, 0L)
  result <- by_kind(n, function(indices) {
    order <- n[indices[1L]]
    count <- length(indices)
    where <- batch_where("chol", order, as.numeric(order)^3 * count)
    part <- call_on(where, r_batch_chol, as.double(stack(x[indices])), order, count, !lower)
    each <- order^2
    list(status = part$status, value = function(i) {
      matrix(part$value[(i - 1) * each + seq_len(each)], order,
             dimnames = dimnames(x[[indices[i]]]))
    })
  })
  names(result$value) <- names(a)
  batch_report(result$value, result$status, on_error, "not_pd")
}

batch_solve_list <- function(a, b, on_error) {
  x <- list_of_squares(a, "a")
  if (!is.list(b) || is.object(b) || length(b) != length(a)) {
    abort_argument("b", sprintf(paste("'b' must be a list of %d right-hand sides, one for each",
                                      "matrix in 'a'"), length(a)))
  }
  n <- vapply(x, nrow, 0L)
  right <- lapply(seq_along(b), function(i) check_numeric(b[[i]], sprintf("b[[%d]]", i)))
  wrong <- which(vapply(right, NROW, 0L) != n)
  if (length(wrong) > 0L) {
    i <- wrong[1L]
    abort_argument("b", sprintf("'b[[%d]]' must have %d rows, not %d", i, n[i], NROW(right[[i]])))
  }
  k <- vapply(right, NCOL, 0L)
  result <- by_kind(paste(n, k), function(indices) {
    order <- n[indices[1L]]
    columns <- k[indices[1L]]
    count <- length(indices)
    where <- batch_where("solve", c(order, columns),
                         as.numeric(order)^2 * (order + columns) * count)
    part <- call_on(where, r_batch_solve, as.double(stack(x[indices])),
                    as.double(stack(right[indices])), order, columns, count)
    each <- order * columns
    list(status = part$status, value = function(i) {
      solution <- part$value[(i - 1) * each + seq_len(each)]
      b <- right[[indices[i]]]
      rows <- colnames(x[[indices[i]]])
      if (is.null(dim(b))) {
        names(solution) <- rows
        return(solution)
      }
      names <- list(rows, colnames(b))
      matrix(solution, order, columns, dimnames = if (has_names(names)) names)
    })
  })
  names(result$value) <- names(a)
  batch_report(result$value, result$status, on_error, "singular")
}
