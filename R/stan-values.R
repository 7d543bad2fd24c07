# What the code of Stan programs (R/stan-compile.R) computes with: elements of values, on both sides
# of assignments, shapes and choices, for numbers and traced values.

# ---- elements ------------------------------------------------------------------------------------

# x[i]
stan_item <- function(x, i) {
  usual <- .Call(r_trace_element, tracing$tape, x, i, NULL)
  if (!is.null(usual)) return(usual)
  if (is_traced(i)) refuse_index()
  n <- length(x)
  if (is.na(i) || i < 1 || i > n) stan_outside(substitute(x), i, n)
  if (is_traced(x)) place(trace_operand(x), i) else x[[i]]
}

# x[i, j]
stan_at <- function(x, i, j) {
  usual <- .Call(r_trace_element, tracing$tape, x, i, j)
  if (!is.null(usual)) return(usual)
  d <- dim(x)
  if (is_traced(i) || is_traced(j)) refuse_index()
  if (is.na(i) || i < 1 || i > d[1L]) stan_outside(substitute(x), i, d[1L])
  if (is.na(j) || j < 1 || j > d[2L]) stan_outside(substitute(x), j, d[2L])
  if (is_traced(x)) place(trace_operand(x), i + d[1L] * (j - 1)) else x[[i, j]]
}

# x[i, ] of numbers
stan_row <- function(x, i) {
  if (is.na(i) || i < 1 || i > nrow(x)) stan_outside(substitute(x), i, nrow(x))
  x[i, ]
}

# x is a name, or a call that begins with one.
stan_outside <- function(x, i, n) {
  name <- x
  while (is.call(name)) name <- name[[2L]]
  stop(sprintf("index %s of '%s' is out of bounds: it has %s element%s", format(i),
               as.character(name), format(n), if (n == 1) "" else "s"), call. = FALSE)
}

# The positions in an array with these dimensions, counted from 1, and the number of indices along
# each. NULL is a whole dimension, a list the bounds of a range.
stan_positions <- function(dims, parts, name) {
  at <- 0
  stride <- 1
  counts <- integer(length(dims))
  for (k in seq_along(dims)) {
    i <- parts[[k]]
    n <- dims[k]
    if (is.null(i)) {
      i <- seq_len(n)
    } else {
      if (is.list(i)) i <- stan_count(i[[1L]], if (is.null(i[[2L]])) n else i[[2L]])
      if (is_traced(i)) refuse_index()
      out <- i < 1 | i > n | is.na(i)
      if (any(out)) stan_outside(name, i[out][1L], n)
    }
    counts[k] <- length(i)
    step <- (i - 1) * stride
    at <- if (length(at) == 1L || length(step) == 1L) at + step else
      rep(at, times = length(step)) + rep(step, each = length(at))
    stride <- stride * n
  }
  list(at = at + 1, counts = counts)
}

# x[i, j, ...]; `single`: which indices drop their dimension.
stan_pick <- function(x, single, ...) {
  usual <- .Call(r_trace_pick, tracing$tape, x, list(...), single)
  if (!is.null(usual)) return(usual)
  dims <- if (is.null(dim(x))) length(x) else dim(x)
  found <- stan_positions(dims, list(...), substitute(x))
  shape <- found$counts[!single]
  stan_elements(x, found$at, if (length(shape) > 1L) shape)
}

# The elements at these positions in a shape; NULL: a vector.
stan_elements <- function(x, at, shape = NULL) {
  if (!is_traced(x)) {
    x <- x[at]
    if (!is.null(shape)) dim(x) <- shape
    return(x)
  }
  x <- trace_operand(x)
  n <- length(at)
  if (n == 0L) return(no_elements(shape))
  from <- .subset2(x, "from")
  at <- as.integer(at)
  if (is.null(from)) {
    id <- .subset2(x, "id")
    id <- if (n == 1L) take(id, at) else take_present(id, at, .subset2(x, "dim"))
    return(traced(id, n, shape))
  }
  from <- from[at]
  index <- .subset2(x, "index")[at]
  if (all(from == from[1L])) return(traced(take(from[1L], index), n, shape))
  traced(0L, n, shape, from, index)
}

# x with x[i, j, ...] = value.
stan_put <- function(x, value, single, ...) {
  usual <- .Call(r_trace_place, tracing$tape, x, list(...), single, value)
  if (!is.null(usual)) return(usual)
  stan_place(x, stan_put_places(x, value, single, ..., name = substitute(x)), value)
}

# The positions of x[i, j, ...], where the value fits.
stan_put_places <- function(x, value, single, ..., name = substitute(x)) {
  dims <- if (is.null(dim(x))) length(x) else dim(x)
  found <- stan_positions(dims, list(...), name)
  n <- length(found$at)
  if (length(value) != n) {
    stop(sprintf("%d elements are assigned to %d", length(value), n), call. = FALSE)
  }
  stan_same_shape(stan_shape(value), found$counts[!single])
  found$at
}

# `new` in place of all of x.
stan_replaced <- function(x, new) {
  if (length(x) > 0L) stan_same_shape(stan_shape(new), stan_shape(x))
  new
}

stan_place <- function(x, at, value) {
  if (!is_traced(x) && !is_traced(value)) {
    x[at] <- value
    return(x)
  }
  if (length(at) == 0L) return(x)
  dims <- dim(x)
  old <- stan_sources(x)
  new <- stan_sources(value)
  if (length(at) == length(old$from) && is.null(dims) && all(at == seq_along(old$from))) {
    return(as.vector(value))
  }
  old$from[at] <- new$from
  old$index[at] <- new$index
  traced(0L, length(old$from), dims, old$from, old$index)
}

# For each element its node and its place there. Elements that are not assigned yet, NaN, are the
# number NaN, not missing data.
stan_sources <- function(x) {
  if (!is_traced(x)) {
    lost <- is.na(x)
    if (all(lost)) {
      from <- rep(tracing$tape$add_number(NaN), length(x))
      return(list(from = from, index = rep(1L, length(x))))
    }
    data <- trace_operand(as.vector(replace(x, lost, 0)))
    from <- rep(data$id, length(x))
    index <- if (length(x) == 1L) 1L else seq_along(x)
    from[lost] <- if (any(lost)) tracing$tape$add_number(NaN)
    index[lost] <- 1L
    return(list(from = from, index = index))
  }
  x <- trace_operand(x)
  from <- .subset2(x, "from")
  if (!is.null(from)) return(list(from = from, index = .subset2(x, "index")))
  n <- .subset2(x, "n")
  list(from = rep(.subset2(x, "id"), n), index = seq_len(n))
}

# A tuple with another part.
stan_put_part <- function(x, i, value) {
  x[[i]] <- value
  x
}

# ---- shapes --------------------------------------------------------------------------------------

stan_count <- function(from, to) {
  if (is_traced(from) || is_traced(to)) refuse_index()
  if (to < from) numeric() else from:to
}

stan_empty <- function(...) {
  size <- stan_sizes(...)
  if (length(size) == 1L) rep(NaN, size) else array(NaN, size)
}

stan_sizes <- function(...) {
  size <- c(...)
  if (is_traced(size)) trace_stop("a size cannot depend on parameters")
  if (anyNA(size) || any(size < 0)) {
    stop(sprintf("a size is %s", format(min(size))), call. = FALSE)
  }
  size
}

stan_shape <- function(x) {
  x <- stan_re(x)
  if (is.null(dim(x))) length(x) else dim(x)
}

# The value of a declaration, if it has the declared sizes.
stan_sized <- function(value, ...) {
  if (is_stan_complex(value)) return(stan_both(value, function(x) stan_sized(x, ...)))
  size <- stan_sizes(...)
  if (prod(size) == 0 && length(value) == 0L) return(stan_empty(...))
  stan_same_shape(stan_shape(value), size)
  value
}

stan_same_shape <- function(have, size) {
  if (length(have) == length(size) && all(have == size) || prod(have) == 1 && prod(size) == 1) {
    return(invisible())
  }
  stop(sprintf("a value of size %s is assigned to a variable of size %s",
               paste(have, collapse = " x "), paste(size, collapse = " x ")), call. = FALSE)
}

# {a, b, ...} of vectors or arrays: the first dimension counts them.
stan_stack <- function(...) {
  values <- list(...)
  each <- if (is.null(dim(values[[1L]]))) length(values[[1L]]) else dim(values[[1L]])
  if (any(lengths(values) != prod(each))) {
    stop("the parts of an array differ in size", call. = FALSE)
  }
  n <- length(values)
  all <- if (any(vapply(values, is_traced, NA))) combine_traced(lapply(values, as.vector)) else
    unlist(values)
  stan_elements(all, as.vector(t(matrix(seq_len(n * prod(each)), prod(each), n))), c(n, each))
}

# ---- arithmetic ----------------------------------------------------------------------------------

stan_same_size <- function(x, y) stan_same_count(length(x), length(y))

stan_same_count <- function(n, m) {
  if (n != m) {
    stop(sprintf("sizes differ: %d and %d", as.integer(n), as.integer(m)), call. = FALSE)
  }
}

# The number of elements of several values, of which those of one element are repeated; 0 if one of
# them has none.
stan_common <- function(...) {
  n <- 1L
  for (k in seq_len(...length())) {
    m <- length(...elt(k))
    if (m == 0L) return(0L)
    if (m == 1L) next
    if (n != 1L) stan_same_count(n, m)
    n <- m
  }
  n
}

# A function of each element.
stan_by_element <- function(f, ...) {
  stan_common(...)
  f(...)
}

stan_each <- function(op, x, y) {
  stan_same_size(x, y)
  op(x, y)
}

stan_dot <- function(x, y) {
  usual <- .Call(r_trace_dot, tracing$tape, x, y)
  if (!is.null(usual)) return(usual)
  stan_same_size(x, y)
  sum(x * y)
}

# Of integers.
stan_quotient <- function(x, y) {
  if (!is_traced(y) && any(y == 0, na.rm = TRUE)) {
    stop("an integer is divided by zero", call. = FALSE)
  }
  trunc(x / y)
}

# The result of an operation on integers, which have 32 bits.
stan_int32 <- function(x) {
  if (is.double(x) && length(x) == 1L && isTRUE(x < 2147483648 && x > -2147483648)) return(x)
  if (!is_traced(x) && any(abs(x) > 2147483647, na.rm = TRUE)) {
    stop(sprintf("an integer is %s: integers end at 2147483647",
                 format(max(abs(x), na.rm = TRUE), digits = 15)), call. = FALSE)
  }
  x
}

stan_modulo <- function(x, y) x - y * stan_quotient(x, y)

# The sum of the log densities of several values.
stan_total <- function(f, ...) if (stan_common(...) == 0L) 0 else sum(f(...))

stan_truncated <- function(value, norm, y, lower, upper) {
  inside <- (y >= lower) * (y <= upper)
  if (!is_traced(inside)) return(if (all(inside == 1)) value - norm else -Inf)
  value - norm + sum(log(inside))
}

# ---- choices -------------------------------------------------------------------------------------

# `yes` or `no`. If the condition is traced, both are computed, and elements chosen.
stan_either <- function(test, yes, no) {
  if (!is_traced(test)) return(if (isTRUE(test != 0)) yes else no)
  if (identical(yes, no)) return(yes)
  if (is_stan_complex(yes) || is_stan_complex(no)) {
    return(stan_put_both(yes, no, function(yes, no) stan_either(test, yes, no)))
  }
  if (is.list(yes)) {
    yes[] <- Map(stan_either, list(test), yes, no)
    return(yes)
  }
  if (!identical(as.double(stan_shape(yes)), as.double(stan_shape(no)))) {
    return(if (test != 0) yes else no) # the program is recorded again in each evaluation
  }
  trace_apply("ifelse", test, yes, no)
}

# Nested choices: tests and their values in turn, then the value if no test holds.
stan_chosen <- function(...) {
  last <- ...length()
  open <- integer()
  tests <- list()
  for (k in seq(1L, last - 1L, by = 2L)) {
    test <- ...elt(k)
    if (is_traced(test)) {
      open <- c(open, k)
      tests <- c(tests, list(test))
    } else if (isTRUE(test != 0)) {
      last <- k + 1L
      break
    }
  }
  value <- ...elt(last)
  for (k in rev(seq_along(open))) value <- stan_either(tests[[k]], ...elt(open[k] + 1L), value)
  value
}

# The number of the first test that holds; 0: none does.
stan_first <- function(...) {
  for (k in seq_len(...length())) if (...elt(k)) return(k)
  0
}

# stan_either() of the results of functions, which are both called.
stan_branch <- function(test, yes, no) stan_either(test, yes(), no())

stan_and <- function(a, b) {
  if (!is_traced(a)) return(if (isTRUE(a != 0)) b else FALSE)
  a * b
}

stan_or <- function(a, b) {
  if (!is_traced(a)) return(if (isTRUE(a != 0)) TRUE else b)
  1 - (1 - a) * (1 - b)
}

# ---- all iterations of a loop at once (R/stan-lanes.R) -------------------------------------------

# The positions of x[i, j, ...] for vectors of indices, of which those of length one are the same in
# all lanes.
stan_lane_positions <- function(dims, parts, name) {
  at <- 1
  stride <- 1
  for (k in seq_along(dims)) {
    i <- parts[[k]]
    if (is_traced(i)) refuse_index()
    out <- i < 1 | i > dims[k] | is.na(i)
    if (any(out)) stan_outside(name, i[out][1L], dims[k])
    at <- at + (i - 1) * stride
    stride <- stride * dims[k]
  }
  at
}

stan_lane_pick <- function(x, ...) {
  usual <- .Call(r_trace_pick, tracing$tape, x, list(...), NULL)
  if (!is.null(usual)) return(usual)
  dims <- if (is.null(dim(x))) length(x) else dim(x)
  stan_elements(x, stan_lane_positions(dims, list(...), substitute(x)))
}

stan_lane_put <- function(x, value, ...) {
  usual <- .Call(r_trace_place, tracing$tape, x, list(...), NULL, value)
  if (!is.null(usual)) return(usual)
  dims <- if (is.null(dim(x))) length(x) else dim(x)
  at <- stan_lane_positions(dims, list(...), substitute(x))
  if (length(value) == 1L && length(at) > 1L) value <- rep_value(value, length(at))
  stan_place(x, at, value)
}

# The lanes by sizes that differ between them, a list.
stan_lane_groups <- function(lanes, sizes) {
  if (length(lanes) == 0L) return(list())
  unname(split(lanes, do.call(paste, sizes)))
}

# segment(x, i, n) of all lanes, which have one n.
stan_lane_segment <- function(x, i, n) {
  at <- outer(i, seq_len(n[1L]) - 1, `+`)
  out <- at < 1 | at > length(x)
  if (any(out)) stan_outside(substitute(x), at[out][1L], length(x))
  stan_elements(x, as.vector(at), dim(at))
}

# Vectors of all lanes, if they have the declared size.
stan_lane_sized <- function(x, size) {
  stan_same_shape(ncol(x), size)
  x
}

# The value of the last of n lanes.
stan_lane_last <- function(x, n) {
  if (length(dim(x)) == 2L) return(stan_pick(x, c(TRUE, FALSE), n, NULL))
  if (length(x) == 1L) x else stan_item(x, n)
}

rep_value <- function(x, n) if (is_traced(x)) stan_elements(x, rep(1L, n)) else rep(x, n)

# a && b, or a || b if `either`: b(lanes) where a does not decide.
stan_lane_logic <- function(either, a, b, lanes, ...) {
  open <- stan_lane_mask(a, length(lanes)) != either
  value <- rep(either + 0, length(lanes))
  if (!any(open)) return(value)
  second <- do.call(b, c(list(lanes[open]), lapply(list(...), stan_lane_part, open)))
  stan_lane_merge(value, open, (second != 0) + 0)
}

stan_lane_mask <- function(test, n) rep_len(!is.na(test) & test != 0, n)

# The lanes of a branch: a number that is the same in all, elements, or rows.
stan_lane_part <- function(x, chosen) {
  if (length(dim(x)) == 2L) return(stan_pick(x, c(FALSE, FALSE), which(chosen), NULL))
  if (length(x) == 1L) x else stan_elements(x, which(chosen))
}

stan_lane_merge <- function(old, chosen, new) {
  n <- length(chosen)
  if (length(dim(new)) == 2L) {
    at <- which(rep(chosen, ncol(new)))
    return(stan_place(old, at, as.vector(new)))
  }
  if (length(old) == 1L) old <- rep_value(old, n)
  if (length(new) == 1L) new <- rep_value(new, sum(chosen))
  stan_place(old, which(chosen), new)
}

# A vector that is the same in all n lanes as a matrix.
stan_lane_repeat <- function(x, n) stan_elements(x, rep(seq_along(x), each = n), c(n, length(x)))

st_lane_log_sum_exp <- function(x) cl_log_sum_exp(x, 1)

st_lane_dot_self <- function(x) rowSums(x^2)

st_lane_softmax <- function(x) cl_softmax(x, 1)

st_lane_log_softmax <- function(x) x - cl_log_sum_exp(x, 1)

st_lane_cumulative_sum <- function(x) {
  x %*% upper.tri(diag(ncol(x)), TRUE)
}

st_lane_categorical_lpmf <- function(y, theta) {
  st_simplex_only(theta) +
    log(stan_elements(theta, seq_along(y) + length(y) * (st_category(y, ncol(theta)) - 1)))
}

st_lane_categorical_logit_lpmf <- function(y, beta) {
  st_category(y, ncol(beta))
  stan_elements(beta, seq_along(y) + length(y) * (y - 1)) - cl_log_sum_exp(beta, 1)
}
