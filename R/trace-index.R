# Moving elements of traced values. Base R's functions are applied to vectors of positions, which
# shows where elements go, for all forms of indices, with R's recycling, warnings and errors.
# Positions count through the elements of all operands; 0 stands for the number 0, NA for NA.

trace_positions <- function(x, offset = 0L) {
  p <- if (offset == 0) seq_len(x$n) else offset + seq_len(x$n)
  if (!is.null(x$dim)) dim(p) <- x$dim
  labelled(p, .subset2(x, "names"))
}

# fun(values, ...), where fun only moves elements; `values` are traced values and plain numbers.
move <- function(fun, values, ...) {
  values <- lapply(values, trace_operand)
  sizes <- vapply(values, function(v) v$n, 0L)
  starts <- cumsum(c(0L, sizes[-length(sizes)]))
  where <- Map(trace_positions, values, starts)
  rest <- list(...)
  assemble(plainly(do.call(fun, c(where, rest), quote = TRUE)), values)
}

# The value with the elements at these positions, and with their names.
assemble <- function(result, values) named(place_elements(result, values), labels_of(result))

place_elements <- function(result, values) {
  n <- length(result)
  shape <- dim(result)
  result <- as.vector(result)
  if (n == 0L) return(no_elements(shape))
  values <- values[vapply(values, function(v) v$n, 0L) > 0L]
  special <- anyNA(result) || any(result == 0)
  if (!special && length(values) == 1L && values[[1L]]$id > 0L) {
    id <- take_present(values[[1L]]$id, result, values[[1L]]$dim)
    return(traced(id, n, shape))
  }
  pool <- pooled(values)
  if (!special && n == length(pool$from) && all(result == seq_len(n))) {
    if (all(vapply(values, function(v) v$id, 0L) > 0L)) {
      ids <- vapply(values, function(v) v$id, 0L)
      return(traced(tracing$tape$add("concat", "", ids, numeric(), 0, n), n, shape))
    }
    return(traced(0L, n, shape, pool$from, pool$index))
  }
  if (special) {
    missing <- is.na(result)
    zero <- !missing & result == 0
    result[missing | zero] <- 1L
    from <- pool$from[result]
    index <- pool$index[result]
    if (any(missing)) from[missing] <- tracing$tape$add_number(NA_real_)
    if (any(zero)) from[zero] <- tracing$tape$add_number(0)
    index[missing | zero] <- 1L
  } else {
    from <- pool$from[result]
    index <- pool$index[result]
  }
  if (all(from == from[1L])) return(traced(take(from[1L], index), n, shape))
  traced(0L, n, shape, from, index)
}

# For each element of the values, its node and its index there.
pooled <- function(values) {
  if (length(values) == 1L && !is.null(values[[1L]]$from)) {
    return(list(from = values[[1L]]$from, index = values[[1L]]$index))
  }
  parts <- lapply(values, function(v) if (is.null(v$from)) rep_len(v$id, v$n) else v$from)
  places <- lapply(values, function(v) if (is.null(v$from)) seq_len(v$n) else v$index)
  list(from = unlist(parts, use.names = FALSE), index = unlist(places, use.names = FALSE))
}

# A node with the elements `index` (counted from 1) of a node: a part or a broadcast if possible,
# else a gather. `shape`: the dimensions of the elements.
take <- function(id, index, shape = NULL) {
  tape <- tracing$tape
  n <- length(index)
  size <- tape$size[id]
  first <- index[1L]
  if (n == 1L) {
    if (size == 1L) return(id)
    return(tape$add("part", "", id, c(size, first - 1, 0, 1, 1), 0, 1L))
  }
  if (size == 1L) return(tape$add("broadcast", "", id, c(n, 1, 1), 0, n))
  step <- index[2L] - first
  if (step == 1L && index[n] == first + n - 1 && all(index == seq.int(first, length.out = n))) {
    if (n == size) return(id)
    return(tape$add("part", "", id, c(size, first - 1, 0, n, 1), 0, n))
  }
  if (first == 1L && n %% size == 0L && index[n] == size) {
    if (step == 1L && all(index == seq_len(size))) {
      return(tape$add("broadcast", "", id, c(size, n / size, 0), 0, n))
    }
    if (step == 0L && all(index == rep(seq_len(size), each = n / size))) {
      return(tape$add("broadcast", "", id, c(n / size, size, 1), 0, n))
    }
  }
  block <- if (length(shape) == 2L) block_of(index, shape[1L])
  if (!is.null(block)) return(tape$add("part", "", id, block, 0, n))
  tape$add("gather", "", id, tape$add_data(as.double(index) - 1), 0, n)
}

# The attributes of a part if the indices are a block of a matrix with that many rows, else NULL.
block_of <- function(index, rows) {
  n <- length(index)
  i <- (index[1L] - 1L) %% rows
  j <- (index[1L] - 1L) %/% rows
  jump <- which(index[-1L] != index[-n] + 1L)
  m <- if (length(jump) == 0L) n else jump[1L]
  if (n %% m != 0L || i + m > rows) return(NULL)
  columns <- n %/% m
  expected <- index[1L] + rep(seq_len(m) - 1L, columns) +
    as.double(rows) * rep(seq_len(columns) - 1L, each = m)
  if (all(index == expected)) c(rows, i, j, m, columns)
}

# A node with the elements `index` of the nodes `from`.
join_nodes <- function(from, index) {
  tape <- tracing$tape
  sources <- unique(from)
  group <- match(from, sources)
  if (length(sources) < length(from) || any(tape$size[sources] > 1L)) {
    # Only the elements that are used of each node.
    places <- split(seq_along(index), group)
    pieces <- integer(length(sources))
    for (k in seq_along(sources)) {
      size <- tape$size[sources[k]]
      place <- places[[k]]
      if (size == 1L) {
        pieces[k] <- sources[k]
        index[place] <- 1L
      } else if (length(place) < size) {
        pieces[k] <- take_present(sources[k], index[place])
        index[place] <- seq_along(place)
      } else {
        pieces[k] <- sources[k]
      }
    }
    sources <- pieces
  } else {
    index[] <- 1L
  }
  sizes <- tape$size[sources]
  all <- tape$add("concat", "", sources, numeric(), 0, sum(sizes))
  if (length(sources) == 1L) all <- sources
  take(all, (cumsum(sizes) - sizes)[group] + index)
}

# ---- indices ------------------------------------------------------------------------------------

# Whether the only index is one number from 1 to n.
is_place <- function(i, n) {
  is.numeric(i) && !is.object(i) && length(i) == 1L && !is.na(i) && i >= 1 && i < n + 1 &&
    is.null(dim(i))
}

place <- function(x, i) {
  i <- as.integer(i)
  if (is.null(x$from)) return(traced(take(x$id, i), 1L))
  traced(take(x$from[i], x$index[i]), 1L)
}

#' @export
`[.cl_traced` <- function(x, ..., drop = TRUE) {
  if (missing(drop)) {
    # Of usual_element(), without another call.
    usual <- if (...length() == 1L && !missing(..1)) {
      .Call(r_trace_element, tracing$tape, x, ..1, NULL)
    } else usual_element(x, ...)
    if (!is.null(usual)) return(usual)
  }
  x <- trace_operand(x)
  if (...length() == 1L && !missing(..1)) {
    i <- ..1
    if (is_place(i, x$n)) {
      names <- .subset2(x, "names")
      return(if (is.null(names) || is.list(names)) place(x, i) else named(place(x, i), names[i]))
    }
    if (is_traced(i)) refuse_index()
  }
  p <- trace_positions(x)
  note_names(x, ...)
  assemble(plainly(if (missing(drop)) p[...] else p[..., drop = drop]), list(x))
}

#' @export
`[[.cl_traced` <- function(x, ..., exact = TRUE) {
  if (...length() == 1L) {
    usual <- usual_element(x, ...)
    if (!is.null(usual)) return(usual)
  }
  x <- trace_operand(x)
  if (...length() == 1L) {
    i <- ..1
    if (is_traced(i)) refuse_index()
    if (is_place(i, x$n)) return(place(x, i))
  }
  p <- trace_positions(x)
  note_names(x, ...)
  assemble(plainly(p[[...]]), list(x))
}

refuse_index <- function() {
  trace_stop("an index cannot be a traced value", choice = TRUE)
}

#' @export
`[<-.cl_traced` <- function(x, ..., value) traced_assign(x, `[<-`, value, ...)

#' @export
`[[<-.cl_traced` <- function(x, ..., value) traced_assign(x, `[[<-`, value, ...)

# x[i], x[i, j], x[i, ] or x[, j] of a value without names, for single numbers i and j; else NULL.
usual_element <- function(x, ...) {
  if (...length() == 1L) {
    return(if (!missing(..1)) .Call(r_trace_element, tracing$tape, x, ..1, NULL))
  }
  if (...length() != 2L) return(NULL)
  i <- if (missing(..1)) TRUE else ..1
  .Call(r_trace_element, tracing$tape, x, i, if (missing(..2)) TRUE else ..2)
}

# x with one element x[i] or x[i, j] replaced by a number; NULL in all other cases.
usual_put <- function(x, value, ...) {
  if (...length() == 1L && !missing(..1)) {
    .Call(r_trace_put, tracing$tape, x, ..1, NULL, value)
  } else if (...length() == 2L && !missing(..1) && !missing(..2)) {
    .Call(r_trace_put, tracing$tape, x, ..1, ..2, value)
  }
}

# `x[...] <- value` or `x[[...]] <- value`; either x or value, or both, are traced.
traced_assign <- function(x, assign_to, value, ...) {
  if (is_sparse(x) || is_traced_sparse(x)) return(sparse_assign(x, value, ...))
  usual <- usual_put(x, value, ...)
  if (!is.null(usual)) return(usual)
  if (is.list(x)) return(assign_to(x, ..., value = list(value)))
  if (is.null(x)) x <- numeric()
  x <- trace_operand(x)
  names <- x$names
  value <- trace_operand(value)
  if (...length() == 1L && !missing(..1)) {
    i <- ..1
    if (is_traced(i)) return(assign_where(i, x, value, names))
    if (value$n == 1L && is_place(i, x$n)) return(named(put(x, as.integer(i), value), names))
  }
  if (value$n == 0L && x$n > 0L) value <- trace_operand(numeric())
  if (!is.null(names)) asked_names(x)
  p <- trace_positions(x)
  q <- as.vector(trace_positions(value, x$n))
  assemble(plainly(assign_to(p, ..., value = q)), list(x, value))
}

# x[test] <- value, where one number takes the place of all elements that a comparison chooses.
assign_where <- function(test, x, value, names) {
  if (!is_truth(test) || test$n != x$n || value$n != 1L) refuse_index()
  result <- traced_choice(test, as.vector(value), as.vector(x))
  if (!is.null(x$dim)) dim(result) <- x$dim
  named(result, names)
}

# x with its element i replaced.
put <- function(x, i, value) {
  from <- x$from
  index <- x$index
  if (is.null(from)) {
    from <- rep_len(x$id, x$n)
    index <- seq_len(x$n)
  }
  if (is.null(value$from)) {
    from[i] <- value$id
    index[i] <- 1L
  } else {
    from[i] <- value$from
    index[i] <- value$index
  }
  traced(0L, x$n, x$dim, from, index)
}

# ---- methods ------------------------------------------------------------------------------------

#' @export
c.cl_traced <- function(...) combine_traced(list(...))

# c() of values, at least one of which is traced.
combine_traced <- function(values) {
  values <- values[!vapply(values, is.null, NA)]
  if (any(vapply(values, is.list, NA))) return(do.call(base::c, values, quote = TRUE))
  if (!is.null(names(values)) || any(vapply(values, function(v) is.character(labels_of(v)), NA))) {
    found <- lapply(values, name_pattern)
    return(named(unnamed(combine_traced(lapply(unname(values), as.vector))),
                 names(do.call(base::c, found))))
  }
  if (length(values) == 1L) return(as.vector(values[[1L]]))
  values <- lapply(values, trace_operand)
  values <- values[vapply(values, function(v) v$n, 0L) > 0L]
  n <- sum(vapply(values, function(v) v$n, 0L))
  ids <- vapply(values, function(v) v$id, 0L)
  # Not for short vectors, because their elements may be read one by one.
  if (n > 10000L && all(ids > 0L)) {
    return(traced(tracing$tape$add("concat", "", ids, numeric(), 0, n), n))
  }
  pool <- pooled(values)
  traced(0L, n, NULL, pool$from, pool$index)
}

#' @export
cbind.cl_traced <- function(..., deparse.level = 1) bind_traced(base::cbind, list(...))

#' @export
rbind.cl_traced <- function(..., deparse.level = 1) bind_traced(base::rbind, list(...))

# Vectors given as variables name their columns or rows.
bind_traced <- function(fun, values, given = NULL) {
  if (any(vapply(values, is_traced_sparse, NA))) return(sparse_bind(fun, values))
  if (is.call(given) && length(given) == length(values) + 1L) {
    if (is.null(names(values))) names(values) <- rep("", length(values))
    for (k in which(names(values) == "")) {
      if (is.symbol(given[[k + 1L]])) names(values)[k] <- as.character(given[[k + 1L]])
    }
  }
  values <- values[!vapply(values, is.null, NA)]
  move(function(...) fun(..., deparse.level = 0), values)
}

#' @export
rep.cl_traced <- function(x, ...) {
  for (a in list(...)) {
    if (is_traced(a)) {
      trace_stop("rep() needs the value of a traced value for a length", choice = TRUE)
    }
  }
  move(base::rep, list(x), ...)
}

#' @export
rev.cl_traced <- function(x) move(base::rev, list(x))

#' @export
t.cl_traced <- function(x) {
  if (is.null(x$dim)) return(named(reshaped(x, c(1L, x$n)), list(NULL, x$names)))
  if (length(x$dim) != 2L) trace_stop("argument is not a matrix")
  shape <- rev(x$dim)
  result <- if (any(shape == 1L)) reshaped(x, shape) else untransposed(x)
  if (is.null(result)) {
    result <- record("transpose", "", node_of(x), as.double(x$dim), x$n, shape)
  }
  named(result, rev(x$names))
}

# The matrix of which x is the transposed one, if it is recorded so.
untransposed <- function(x) {
  if (!is.null(x$from)) return(NULL)
  node <- node_at(x$tape, x$id)
  same <- node[[1L]] == "transpose" && identical(node[[4L]], as.double(rev(x$dim)))
  if (same && identical(x$tape, tracing$tape)) traced(node[[3L]], x$n, rev(x$dim))
}

#' @export
aperm.cl_traced <- function(a, perm = NULL, ...) {
  if (length(a$dim) == 2L && (is.null(perm) || all(perm == 2:1))) return(t(a))
  move(base::aperm, list(a), perm)
}

#' @export
diff.cl_traced <- function(x, lag = 1L, differences = 1L, ...) {
  rows <- if (is.null(x$dim)) x$n else x$dim[1L]
  if (lag * differences >= rows) return(x[0L])
  for (k in seq_len(differences)) {
    x <- if (is.null(x$dim)) {
      x[-seq_len(lag)] - x[seq_len(x$n - lag)]
    } else {
      x[-seq_len(lag), , drop = FALSE] - x[seq_len(nrow(x) - lag), , drop = FALSE]
    }
  }
  x
}

#' @export
head.cl_traced <- function(x, n = 6L, ...) move(utils::head, list(x), n)

#' @export
tail.cl_traced <- function(x, n = 6L, ...) move(tail_plain, list(x), n)

tail_plain <- function(x, n) {
  if (is.matrix(x)) utils::tail(x, n, keepnums = FALSE) else utils::tail(x, n)
}
