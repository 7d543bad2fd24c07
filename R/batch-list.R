# Batches of matrices of different sizes: lists, of which all matrices of one size go together.

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

# Runs `call(places)` for the places of each kind, which gives list(value, status) with a matrix
# for each in an array, and puts the results back in order.
by_kind <- function(kind, call) {
  result <- vector("list", length(kind))
  status <- raw(length(kind))
  for (places in split(seq_along(kind), kind)) {
    part <- call(places)
    for (i in seq_along(places)) result[[places[i]]] <- part$value(i)
    if (!is.null(part$status)) status[places] <- part$status
  }
  list(value = result, status = status)
}

stack <- function(x) unlist(x, use.names = FALSE)

batch_chol_list <- function(a, lower, on_error) {
  x <- list_of_squares(a, "a")
  n <- vapply(x, nrow, 0L)
  result <- by_kind(n, function(places) {
    order <- n[places[1L]]
    count <- length(places)
    where <- where_for("batch", as.numeric(order)^3 * count)
    part <- .Call(r_batch_chol, as.double(stack(x[places])), order, count, !lower, where)
    each <- order^2
    list(status = part$status, value = function(i) {
      matrix(part$value[(i - 1) * each + seq_len(each)], order, dimnames = dimnames(x[[places[i]]]))
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
  result <- by_kind(paste(n, k), function(places) {
    order <- n[places[1L]]
    columns <- k[places[1L]]
    count <- length(places)
    where <- where_for("batch", as.numeric(order)^2 * (order + columns) * count)
    part <- .Call(r_batch_solve, as.double(stack(x[places])), as.double(stack(right[places])),
                  order, columns, count, where)
    each <- order * columns
    list(status = part$status, value = function(i) {
      solution <- part$value[(i - 1) * each + seq_len(each)]
      b <- right[[places[i]]]
      rows <- colnames(x[[places[i]]])
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
