# Missing data in traced functions. An element that is NaN because of data must not reach the
# derivatives: zero times NaN is NaN. Where such elements are left out (na.rm = TRUE, or a choice by
# ifelse() that data make), they are computed from another element's operands instead.

# For each element of a node whether data make it NaN, as far as data and elementwise operations
# tell; NULL if there is none.
missing_places <- function(id) {
  tape <- tracing$tape
  if (!tape$has_missing) return(NULL)
  first <- length(tape$lost) + 1L
  if (id >= first) for (k in first:id) {
    found <- missing_by_kind(tape$nodes[[k]], tape$size[k], tape)
    tape$lost[k] <- list(if (any(found)) found)
  }
  tape$lost[[id]]
}

# Operations whose value is a number where an operand is NaN.
decisive <- c("is_nan", "is_finite", "is_infinite", "fill_nan", "ifelse", "and", "or")

missing_by_kind <- function(node, n, tape) {
  args <- node[[3L]]
  at <- node[[4L]]
  of <- if (length(args) > 0L) tape$lost[args]
  if (!is.null(of) && all(vapply(of, is.null, NA))) return(FALSE)
  switch(node[[1L]],
    data = is.na(tape$data[[at[1L]]]),
    number = is.na(node[[5L]]),
    apply = {
      if (node[[2L]] %in% decisive) return(FALSE)
      found <- logical(n)
      for (mine in of) if (!is.null(mine)) found <- found | mine
      found
    },
    broadcast = if (at[3L] == 0) rep(of[[1L]], times = at[2L]) else rep(of[[1L]], each = at[1L]),
    gather = of[[1L]][tape$data[[at[1L]]] + 1],
    FALSE)
}

# A node of the elements `index` of another, in which elementwise operations are done with the
# elements of their operands.
elements_of <- function(id, index, done = new.env(parent = emptyenv())) {
  tape <- tracing$tape
  key <- as.character(id)
  if (exists(key, envir = done, inherits = FALSE)) return(done[[key]])
  node <- tape$nodes[[id]]
  result <- if (tape$size[id] == 1L) {
    id
  } else if (node[[1L]] == "apply") {
    args <- vapply(node[[3L]], elements_of, 0, index = index, done = done)
    tape$add("apply", node[[2L]], as.integer(args), numeric(), 0, length(index))
  } else if (node[[1L]] == "data") {
    values <- tape$data[[node[[4L]][1L]]][index]
    at <- c(tape$add_data(values), length(values))
    if (length(values) == 1L) tape$add_number(values)
    else tape$add("data", "", integer(), at, 0, length(values))
  } else {
    take(id, index)
  }
  assign(key, result, envir = done)
  result
}

# x where its elements at `places` do not matter: those of them that data make NaN are replaced.
without_missing <- function(x, places = TRUE) {
  if (!is_traced(x) || x$n == 0L) return(x)
  lost <- missing_places(node_of(x))
  if (is.null(lost)) return(x)
  lost <- lost & places
  usable <- which(!lost)
  if (!any(lost) || length(usable) == 0L) return(x)
  index <- seq_len(x$n)
  index[lost] <- usable[1L]
  traced(elements_of(node_of(x), index), x$n, x$dim)
}

# list(values: x with `none` in place of missing elements; lost: 1 at these, else 0).
left_out <- function(x, none) {
  lost <- missing_places(node_of(x))
  if (!is.null(lost) && all(lost)) {
    return(list(values = trace_operand(rep_len(none, x$n)), lost = rep_len(1, x$n)))
  }
  x <- without_missing(x)
  test <- traced_unary("is_nan", x)
  if (!is.null(lost)) {
    dim(lost) <- x$dim
    test <- trace_apply("pmax", test, lost + 0)
  }
  list(values = trace_apply("ifelse", test, none, x), lost = test)
}

# As take(), from a node of which data make some elements NaN, but none of these.
take_present <- function(id, index, shape = NULL) {
  lost <- missing_places(id)
  if (is.null(lost) || any(lost[index])) take(id, index, shape) else elements_of(id, index)
}
