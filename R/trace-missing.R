# Missing data in traced functions. An element that is NaN because of data must not reach the
# derivatives, because zero times NaN is NaN. Where such elements are omitted (na.rm = TRUE, or
# ifelse() with a condition on data), they are computed from another element's operands instead.

# For each element of a node, whether data make it NaN, as far as data and elementwise operations
# show; NULL if none is.
missing_elements <- function(id) {
  tape <- tracing$tape
  if (!tape$has_missing) return(NULL)
  first <- length(tape$lost) + 1L
  if (id >= first) for (k in first:id) {
    found <- missing_by_kind(node_at(tape, k), tape$size[k], tape)
    tape$lost[k] <- list(if (any(found)) found)
  }
  tape$lost[[id]]
}

# Operations that can have a number as value where an operand is NaN.
decisive <- c("is_nan", "is_finite", "is_infinite", "shift", "fill_nan", "ifelse", "and", "or")

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

# A node with the elements `index` of another node, in which elementwise operations apply to the
# elements of their operands.
elements_of <- function(id, index, done = new.env(parent = emptyenv())) {
  tape <- tracing$tape
  key <- as.character(id)
  if (exists(key, envir = done, inherits = FALSE)) return(done[[key]])
  node <- node_at(tape, id)
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

# x with replacements for those of its elements `at` that are NaN because of data; their values are
# arbitrary.
without_missing <- function(x, at = TRUE) {
  if (!is_traced(x) || x$n == 0L) return(x)
  lost <- missing_elements(node_of(x))
  if (is.null(lost)) return(x)
  lost <- lost & at
  usable <- which(!lost)
  if (!any(lost) || length(usable) == 0L) return(x)
  index <- seq_len(x$n)
  index[lost] <- usable[1L]
  traced(elements_of(node_of(x), index), x$n, x$dim)
}

# list(values: x with `none` in place of missing elements; lost: 1 at these, else 0).
left_out <- function(x, none) {
  lost <- missing_elements(node_of(x))
  if (!is.null(lost) && all(lost)) {
    return(list(values = trace_operand(rep_len(none, x$n)), lost = rep_len(1, x$n)))
  }
  x <- without_missing(x)
  test <- traced_unary("is_nan", x)
  if (!is.null(lost)) {
    dim(lost) <- x$dim
    test <- trace_apply("pmax", test, lost + 0)
  }
  list(values = trace_apply("ifelse", test, none, where_present(x, test, FALSE)), lost = test)
}

# As take(), from a node in which data make some elements NaN, but none of these.
take_present <- function(id, index, shape = NULL) {
  lost <- missing_elements(id)
  if (is.null(lost) || any(lost[index])) take(id, index, shape) else elements_of(id, index)
}

# ---- in a step of cl_scan() ----------------------------------------------------------------------

# In a step, data differ between steps, and a choice such as ifelse(is.na(y), 0, dnorm(y, mu)) has a
# traced condition. Where the condition implies that data are present, the node with numbers in the
# gaps is used (R/trace-scan-body.R).

# x where `test` has the given truth value.
where_present <- function(x, test, truth) {
  tape <- tracing$tape
  if (length(tape$gaps) == 0L || !is_traced(x) || !is_traced(test)) return(x)
  known <- known_present(node_of(test), truth, tape)
  if (length(known) == 0L) return(x)
  id <- with_present(node_of(x), known, test$n, tape)
  if (id == node_of(x)) x else traced(id, x$n, x$dim)
}

# The elements of data, list(leaf, at), that are present according to an element of a test.
known_present <- function(id, truth, tape) {
  node <- node_at(tape, id)
  if (node[[1L]] != "apply") return(list())
  both <- function(truth) {
    do.call(c, lapply(node[[3L]], known_present, truth = truth, tape = tape))
  }
  switch(node[[2L]],
    is_nan = if (truth) list() else data_of(node[[3L]], tape),
    is_finite = if (truth) data_of(node[[3L]], tape) else list(),
    not = both(!truth),
    and = if (truth) both(TRUE) else list(),
    or = if (truth) list() else both(FALSE),
    list())
}

# The data in an elementwise expression.
data_of <- function(id, tape) {
  found <- gap_elements(id, tape)
  if (!is.null(found)) return(list(found))
  node <- node_at(tape, id)
  if (node[[1L]] != "apply" || node[[2L]] %in% decisive) return(list())
  do.call(c, lapply(node[[3L]], data_of, tape = tape))
}

# list(leaf: a node with gaps, at: which of its elements the node consists of), or NULL.
gap_elements <- function(id, tape) {
  gaps <- vapply(tape$gaps, function(gap) as.double(gap[1L]), 0)
  if (id %in% gaps) return(list(leaf = id, at = seq_len(tape$size[id]) - 1))
  node <- node_at(tape, id)
  at <- node[[4L]]
  if (!node[[1L]] %in% c("part", "gather", "broadcast")) return(NULL)
  of <- gap_elements(node[[3L]], tape)
  if (is.null(of)) return(NULL)
  taken <- switch(node[[1L]],
    part = at[2L] + rep(seq_len(at[4L]) - 1, times = at[5L]) +
      at[1L] * rep(at[3L] + seq_len(at[5L]) - 1, each = at[4L]),
    gather = tape$data[[at[1L]]],
    broadcast = if (at[3L] == 0) rep(seq_len(at[1L]) - 1, times = at[2L])
                else rep(seq_len(at[2L]) - 1, each = at[1L]))
  list(leaf = of$leaf, at = of$at[taken + 1])
}

# A node computed from present data. A test of one element applies to everything in an expression; a
# test of several elements applies to elementwise operations only.
with_present <- function(id, known, n, tape) {
  is_known <- function(k) {
    mine <- gap_elements(k, tape)
    if (is.null(mine)) return(FALSE)
    facts <- Filter(function(fact) fact$leaf == mine$leaf, known)
    one <- vapply(facts, function(fact) n == 1L || length(fact$at) == 1L, NA)
    all(mine$at %in% unlist(lapply(facts[one], `[[`, "at"))) ||
      any(vapply(facts, function(fact) identical(mine$at, fact$at), NA))
  }
  needed <- inner <- logical(id)
  needed[id] <- TRUE
  new <- seq_len(id)
  for (k in id:1) {
    if (!needed[k]) next
    node <- node_at(tape, k)
    if (is_known(k)) {
      new[k] <- filled_node(k, tape)
    } else if (n == 1L || node[[1L]] == "apply") {
      inner[k] <- TRUE
      needed[node[[3L]]] <- TRUE
    }
  }
  for (k in which(inner)) {
    node <- node_at(tape, k)
    args <- new[node[[3L]]]
    if (any(args != node[[3L]])) {
      new[k] <- tape$add(node[[1L]], node[[2L]], args, node[[4L]], node[[5L]], tape$size[k])
    }
  }
  new[id]
}

# The same elements of the node without gaps.
filled_node <- function(id, tape) {
  for (gap in tape$gaps) if (gap[1L] == id) return(gap[2L])
  node <- node_at(tape, id)
  tape$add(node[[1L]], "", as.integer(filled_node(node[[3L]], tape)), node[[4L]], 0, tape$size[id])
}
