# cl_scan(): recursions. For plain numbers an ordinary loop; in a traced function one node, whose
# step is recorded once on its own tape (R/trace-scan-body.R).

#' Recursions
#'
#' `cl_scan()` repeats a step, `state <- f(state, x)`, for each element `x` of `xs`. In a function
#' given to [cl_gradient()], [cl_hessian()] or [cl_tmb()] it becomes one compiled loop with its
#' reverse pass. Use it for autoregressions, GARCH, hidden Markov models, Kalman filters and
#' differential equations. A `for` loop gives the same result and, where its iterations are alike,
#' the same compiled loop (see `roll` in [cl_gradient()]); but each of them is recorded, which takes
#' longer if there are many.
#'
#' @section Steps:
#' Each element of `xs` is an input of all steps. Step `t` receives `x[t]` of a vector, the row
#' `x[t, ]` of a matrix, as a vector, and the matrix `x[t, , ]` of an array with three dimensions.
#' `xs` may be a list of these (such as a data frame): then `x` is a list with the same names.
#'
#' The new state must have the shape of the old one: the same number of elements, and if the state
#' is a list, of components. It takes its dimensions from `init`.
#'
#' `f` is recorded once for all steps. It therefore cannot branch on the values of `state` or `x`:
#' use `ifelse()` or [cl_ifelse()]. Other values that it uses, such as parameters or a transition
#' matrix, are the same in all steps. If it selects by `is.na(x)`, missing data in `xs` have no
#' effect on derivatives, as with `na.rm = TRUE`. The step is compiled to operations on single
#' numbers, at most 20,000 including its derivative: a product of two 20 x 20 matrices takes 16,000.
#' Kalman filters that use `solve()` may have up to 8 states.
#'
#' @section Sequences:
#' With `sequences = B`, `f` is written for one sequence and run for B independent sequences at
#' once. An array in `xs`, `init` or `...` whose last dimension is B has one part for each sequence,
#' and `f` receives its part without that dimension: of a T x B matrix in `xs`, one number in each
#' step; of a k x B matrix in `init` or `...`, a vector of length k. Everything else is shared by
#' the sequences. (To share a matrix that happens to have B columns, repeat it in an array with a
#' third dimension.) On a GPU each sequence is one work-item, so a few sequences are slower than on
#' the host.
#'
#' @section Memory:
#' The reverse pass stores the state of every step: 8 bytes for each number, step and sequence, and
#' the same for outputs.
#'
#' @param f `function(state, x, ...)`, or `function(state, ...)` without `xs`. It returns the new
#'   state, or `list(state = , out = )` if each step also has outputs.
#' @param init The initial state: a numeric vector or matrix, or a list of these.
#' @param xs Inputs of the steps, see below, or `NULL`.
#' @param length.out The number of steps if `xs` is `NULL`.
#' @param sequences `NULL`, or the number of sequences, see below.
#' @param ... Further arguments of `f`, the same in all steps.
#' @return The last state, in the form of `init`. With outputs, `list(state = , out = )`, where
#'   `out` contains those of all steps: a vector if each is a number, a matrix with one row for each
#'   step if each is a vector, an array if each is a matrix, or a list of these. With `sequences`,
#'   the last dimension of states and outputs is that of the sequences. In `f`, vectors have the
#'   names of `init` and the column names of `xs`, and a new state that has the names of `init` in
#'   another order is understood by name; results have no names.
#' @section Errors:
#' `statcl_error_argument` if `f` is not a function; if shapes do not match; if the number of steps
#' is unknown, zero, or differs between elements of `xs`; if the new state has another shape; and,
#' in a recorded function, if the step is too large or branches on a value.
#' @seealso [cl_gradient()]
#' @export
#' @examples
#' # GARCH(1, 1): the log density of returns
#' y <- c(0.4, -1.2, 0.3, 2.1, -0.7)
#' garch <- cl_gradient(function(omega, alpha, beta) {
#'   h <- cl_scan(function(h, y) {
#'     list(state = omega + alpha * y^2 + beta * h, out = h)
#'   }, init = 1, xs = y)$out
#'   sum(dnorm(y, 0, sqrt(h), log = TRUE))
#' })
#' garch(omega = 0.1, alpha = 0.2, beta = 0.7)
#'
#' # A hidden Markov model with two states: the forward algorithm, scaled at each step
#' hmm <- cl_gradient(function(mu, stay) {
#'   move <- rbind(c(stay, 1 - stay), c(1 - stay, stay))
#'   result <- cl_scan(function(p, y) {
#'     p <- c(p %*% move) * dnorm(y, mu, 1)
#'     list(state = p / sum(p), out = log(sum(p)))
#'   }, init = c(0.5, 0.5), xs = y)
#'   sum(result$out)
#' })
#' hmm(mu = c(-1, 1), stay = 0.8)
#'
#' # Three random walks at once
#' cl_scan(function(s, e) s + e, init = 0, xs = matrix(1:12, 4), sequences = 3)
cl_scan <- function(f, init, xs = NULL, length.out = NULL, sequences = NULL, ...) {
  check_function(f, "f")
  spec <- scan_spec(init, xs, length.out, sequences, list(...))
  tape <- tracing$tape
  if (!is.null(tape) && is.null(tape$parent)) {
    found <- traced_scan(f, spec)
    if (!is.null(found)) return(found)
  }
  plain_scan(f, spec)
}

# ---- shapes --------------------------------------------------------------------------------------

# The parsed arguments: state, x and more, each list(leaves, listed, names); steps and sequences.
scan_spec <- function(init, xs, length.out, sequences, more) {
  if (!is.null(sequences)) {
    sequences <- check_number(sequences, "sequences", 1, .Machine$integer.max)
    if (sequences != round(sequences)) abort_argument("sequences", "'sequences' must be an integer")
  }
  state <- scan_leaves(init, "init", sequences, step_leaf = FALSE)
  if (length(state$leaves) == 0L) abort_argument("init", "'init' must have elements")
  x <- if (!is.null(xs)) scan_leaves(xs, "xs", sequences, step_leaf = TRUE)
  steps <- unique(vapply(x$leaves, `[[`, 0, "steps"))
  if (is.null(xs)) {
    if (is.null(length.out)) {
      abort_argument("length.out", "give 'xs', or 'length.out' for steps without inputs")
    }
    steps <- round(check_number(length.out, "length.out", 0, 2^31 - 1))
  } else if (!is.null(length.out)) {
    abort_argument("length.out", "'length.out' is for steps without 'xs'")
  }
  if (length(steps) != 1L) {
    abort_argument("xs", sprintf("all elements of 'xs' must have as many steps, not %s",
                                 paste(steps, collapse = ", ")))
  }
  if (steps == 0) abort_argument(if (is.null(xs)) "length.out" else "xs", "there are no steps")
  list(state = state, x = x, more = scan_arguments(more, sequences), steps = steps,
       sequences = sequences, b = if (is.null(sequences)) 1 else sequences)
}

scan_leaves <- function(values, argument, sequences, step_leaf) {
  listed <- is.list(values)
  if (!listed) values <- list(values)
  leaves <- lapply(values, function(v) {
    if (!is_numbers(v) || length(v) == 0L) {
      abort_argument(argument, sprintf("'%s' must be %s, not %s", argument,
                                       "a numeric vector or matrix, or a list of these",
                                       if (is_traced(v)) format(v) else describe(v)))
    }
    if (step_leaf) step_leaf_of(v, sequences) else leaf_of(v, sequences)
  })
  list(leaves = unname(leaves), listed = listed, names = if (listed) names(values))
}

is_numbers <- function(v) is_traced(v) || (is.numeric(v) || is.logical(v)) && !is.object(v)

# list(value, n, shape, each, names) for the input of one sequence; only vectors have names.
leaf_of <- function(v, sequences) {
  d <- dim(v)
  each <- !is.null(sequences) && length(d) > 1L && d[length(d)] == sequences
  if (each) d <- d[-length(d)]
  if (length(d) == 1L) shape <- NULL else shape <- d
  list(value = v, n = length(v) / (if (each) sequences else 1), shape = shape, each = each,
       names = if (is.null(shape)) scan_names(v, 1L))
}

# Names along a dimension. f may depend on them, so a record is valid for these only.
scan_names <- function(v, along) {
  names <- if (is_traced(v)) asked_names(v) else labels_of(v)
  if (is.list(names)) names[[along]] else names
}

step_leaf_of <- function(v, sequences) {
  leaf <- leaf_of(v, sequences)
  d <- if (is.null(leaf$shape)) leaf$n else leaf$shape
  leaf$steps <- d[1L]
  leaf$n <- leaf$n / d[1L]
  leaf$shape <- if (length(d) > 2L) d[-1L]
  leaf["names"] <- list(if (length(d) == 2L) scan_names(v, 2L))
  leaf
}

# Further arguments of f: numbers as leaves, anything else unchanged.
scan_arguments <- function(more, sequences) {
  lapply(more, function(v) {
    if (is_numbers(v) && length(v) > 0L) leaf_of(v, sequences) else list(plain = v)
  })
}

like_spec <- function(values, spec) {
  if (!spec$listed) return(values[[1L]])
  names(values) <- spec$names
  values
}

shaped <- function(x, shape) {
  if (!identical(dim(x), shape)) dim(x) <- shape
  x
}

# ---- results of f --------------------------------------------------------------------------------

# list(state, out): lists of leaves; out is NULL if there are no outputs.
split_result <- function(result, spec) {
  parts <- c("state", "out")
  has_out <- is.list(result) && length(result) == 2L && setequal(names(result), parts) &&
    !setequal(spec$state$names, parts)
  state <- if (has_out) result$state else result
  out <- if (has_out) result$out
  state <- if (is.list(state)) state else list(state)
  check_state(state, spec$state)
  if (!is.null(spec$state$names) && !is.null(names(state))) state <- state[spec$state$names]
  state <- Map(function(v, leaf) shaped(doubles_of(state_in_order(v, leaf)), leaf$shape),
               unname(state), spec$state$leaves)
  leaves <- if (is.list(out)) out else if (!is.null(out)) list(out)
  for (v in leaves) {
    if (!is_numbers(v) || length(v) == 0L) {
      scan_stop(sprintf("the outputs of 'f' must be numbers, not %s", describe_value(v)))
    }
  }
  list(state = state, out = unname(leaves), listed = is.list(out), names = names(out))
}

# A state with the names of 'init' in another order; names that 'init' lacks are ignored.
state_in_order <- function(v, leaf) {
  names <- if (!is.null(leaf$names)) scan_names(v, 1L)
  if (is.null(names) || identical(names, leaf$names) || anyDuplicated(names) > 0L) return(v)
  if (setequal(names, leaf$names)) v[leaf$names] else v
}

doubles_of <- function(v) if (is_traced(v)) v else shaped(as.double(v), dim(v))

describe_value <- function(v) if (is_traced(v)) format(v) else describe(v)

check_state <- function(state, spec) {
  wanted <- spec$leaves
  named <- !is.null(spec$names) && !is.null(names(state))
  if (length(state) != length(wanted) || named && !setequal(names(state), spec$names)) {
    scan_stop(sprintf("'f' must return a state like 'init', with %s, not %s",
                      elements_text(wanted, spec$names), elements_text(state, names(state))))
  }
  if (named) state <- state[spec$names]
  for (k in seq_along(wanted)) {
    v <- state[[k]]
    if (is_numbers(v) && length(v) == wanted[[k]]$n) next
    what <- if (spec$listed) sprintf("element %d of the state", k) else "the state"
    scan_stop(sprintf("'f' must return %s with the shape that it has in 'init', %s, not %s", what,
                      shape_words(wanted[[k]]), describe_value(v)))
  }
}

shape_words <- function(leaf) {
  if (!is.null(leaf$shape)) return(paste(leaf$shape, collapse = " x "))
  sprintf("%.0f number%s", leaf$n, if (leaf$n == 1) "" else "s")
}

elements_text <- function(x, names) {
  text <- sprintf("%d element%s", length(x), if (length(x) == 1L) "" else "s")
  if (is.null(names)) text else sprintf("%s (%s)", text, paste(names, collapse = ", "))
}

# Raises an error of a step, in a recorded function or elsewhere.
scan_stop <- function(message) {
  if (is.null(tracing$tape)) abort_argument("f", message)
  trace_stop(message)
}

# ---- an ordinary loop ----------------------------------------------------------------------------

plain_scan <- function(f, spec) {
  results <- vector("list", spec$b)
  for (b in seq_len(spec$b)) results[[b]] <- plain_sequence(f, spec, b)
  states <- Map(function(k, leaf) {
    bind_sequences(lapply(results, function(r) r$state[[k]]), leaf$shape, spec$sequences)
  }, seq_along(spec$state$leaves), spec$state$leaves)
  state <- like_spec(states, spec$state)
  first <- results[[1L]]
  if (is.null(first$out)) return(state)
  outs <- lapply(seq_along(first$out), function(k) {
    bind_sequences(lapply(results, function(r) r$out[[k]]), dim(first$out[[k]]), spec$sequences)
  })
  list(state = state, out = like_spec(outs, first))
}

# One sequence: its last state and the outputs of all steps.
plain_sequence <- function(f, spec, b) {
  state <- lapply(spec$state$leaves, leaf_part, b = b)
  more <- lapply(spec$more, function(a) if (is.null(a$n)) a$plain else leaf_part(a, b))
  outs <- vector("list", spec$steps)
  for (t in seq_len(spec$steps)) {
    x <- lapply(spec$x$leaves, step_part, t = t, b = b)
    result <- split_result(call_step(f, spec, state, x, more), spec)
    state <- result$state
    if (!is.null(result$out)) outs[[t]] <- result$out
  }
  result$state <- state
  result$out <- lapply(seq_along(result$out), function(k) {
    stack_steps(lapply(outs, function(o) doubles_of(o[[k]])))
  })
  if (length(result$out) == 0L) result["out"] <- list(NULL)
  result
}

call_step <- function(f, spec, state, x, more) {
  arguments <- list(like_spec(Map(with_scan_names, state, spec$state$leaves), spec$state))
  if (!is.null(spec$x)) {
    arguments <- c(arguments, list(like_spec(Map(with_scan_names, x, spec$x$leaves), spec$x)))
  }
  more <- Map(with_scan_names, more, spec$more)
  do.call(f, c(arguments, more), quote = TRUE)
}

with_scan_names <- function(v, leaf) {
  if (is.null(leaf$names) || length(v) != length(leaf$names)) return(v)
  if (is_traced(v)) named(v, leaf$names) else labelled(v, leaf$names)
}

leaf_part <- function(leaf, b) {
  v <- leaf$value
  if (!is_traced(v)) v <- as.double(v)
  if (leaf$each) v <- v[(b - 1) * leaf$n + seq_len(leaf$n)]
  shaped(v, leaf$shape)
}

step_part <- function(leaf, t, b) {
  v <- leaf$value
  before <- if (leaf$each) leaf$steps * leaf$n * (b - 1) else 0
  v <- v[before + t + leaf$steps * (seq_len(leaf$n) - 1)]
  shaped(if (is_traced(v)) v else as.double(v), leaf$shape)
}

joined <- function(values) {
  if (any(vapply(values, is_traced, NA))) combine_traced(values)
  else unlist(values, use.names = FALSE)
}

# One output of all steps as an array whose first dimension is the step.
stack_steps <- function(values) {
  n <- lengths(values)
  if (any(n != n[1L])) scan_stop("the outputs of 'f' must have one shape at all steps")
  shape <- dim(values[[1L]])
  all <- joined(lapply(values, as.vector))
  if (n[1L] == 1L && is.null(shape)) return(all)
  dim(all) <- c(n[1L], length(values))
  all <- t(all)
  dim(all) <- c(length(values), if (is.null(shape)) n[1L] else shape)
  all
}

bind_sequences <- function(values, shape, sequences) {
  if (is.null(sequences)) return(values[[1L]])
  all <- joined(lapply(values, as.vector))
  dim(all) <- c(if (is.null(shape)) length(values[[1L]]) else shape, sequences)
  all
}
