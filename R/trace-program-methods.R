# Methods of cl_gradient(), and the tracing of its function.

# Calls f, a function of the parameters in the list `point`, with traced values. Returns the tape,
# the traced (or plain) result, and node(value), the node of a value. `live`: comparisons have the
# values of the point. `prepare`: a function that is applied to the tape first. `...`: arguments of
# looking_up().
trace_function <- function(f, point, as_list = FALSE, live = FALSE, ...,
                           prepare = function(tape) NULL) {
  before <- tracing$tape
  outside <- tracing$outside
  further <- tracing$leave
  on.exit({
    tracing$tape <- before
    tracing$outside <- outside
    tracing$leave <- further
  })
  tape <- new_tape(if (live) as.double(unlist(point, use.names = FALSE)))
  prepare(tape)
  tracing$tape <- tape
  tracing$outside <- f
  offset <- 0
  arguments <- lapply(point, function(p) {
    n <- length(p)
    if (n == 0L) return(no_elements(dim(p)))
    at <- c(offset, n)
    offset <<- offset + n
    named(record("param", "", integer(), at, n, dim(p)), labels_of(p))
  })
  if (as_list) arguments <- list(arguments)
  copy <- looking_up(f, ...)
  failure <- NULL
  result <- callCC(function(leave) {
    tracing$leave <- function(e) { # for errors within the tryCatch() of f (R/trace-inspect.R)
      failure <<- e
      leave(NULL)
    }
    withCallingHandlers(do.call(copy, arguments), error = explain_error)
  })
  if (!is.null(failure)) stop(failure)
  list(tape = tape, result = result, node = function(x) {
    before <- tracing$tape
    on.exit(tracing$tape <- before)
    tracing$tape <- tape
    node_of(trace_operand(x))
  })
}

#' @rdname cl_gradient
#' @export
update.cl_gradient <- function(object, ...) {
  state <- environment(object)
  values <- list(...)
  if (length(values) == 0L || is.null(names(values)) || !all(nzchar(names(values)))) {
    abort_argument("...", "give new values of variables of 'f' by name")
  }
  twice <- anyDuplicated(names(values))
  if (twice > 0L) {
    abort_argument("...", sprintf("'%s' is given more than once", names(values)[twice]))
  }
  overrides <- state$overrides
  for (name in names(values)) {
    overrides[[name]] <- list(value = values[[name]],
                              home = check_override(state, name, values[[name]]))
  }
  before <- state$overrides
  state$overrides <- overrides
  if (is.null(state$like)) return(invisible(object))
  done <- FALSE
  on.exit(if (!done) state$overrides <- before)
  compile_point(state, list(values = state$like, listed = state$listed))
  done <- TRUE
  invisible(object)
}

# The environment of this variable of f; an error if there is no such variable of that shape.
check_override <- function(state, name, value) {
  home <- home_of(name, environment(state$f))
  old <- state$overrides[[name]]$value
  if (is.null(old) && !is.null(home)) old <- get(name, envir = home)
  if (is.null(old) || is.function(old)) {
    abort_argument(name, sprintf("'f' has no variable '%s'", name))
  }
  numbers <- function(x) is.numeric(x) || is.logical(x)
  if (!identical(length(value), length(old)) || !identical(dim(value), dim(old)) ||
        numbers(old) && !numbers(value)) {
    abort_argument(name, sprintf("'%s' must have the shape that it had, %s, not %s", name,
                                 describe(old), describe(value)))
  }
  home
}

#' @rdname cl_gradient
#' @export
print.cl_gradient <- function(x, ...) {
  state <- environment(x)
  cat(sprintf("<cl_gradient> function(%s)%s\n", paste(names(formals(state$f)), collapse = ", "),
              if (state$retrace) ", traced at every call" else ""))
  if (is.null(state$shapes)) {
    cat("not traced yet: the first call does it\n")
    return(invisible(x))
  }
  sizes <- vapply(state$shapes, paste, "", collapse = " x ")
  writeLines(strwrap(paste("parameters:", paste0(names(sizes), " (", sizes, ")", collapse = ", ")),
                     exdent = 2L))
  writeLines(strwrap(paste("operations:", operation_counts(state)), exdent = 2L))
  cat(rolled_text(state))
  if (is.null(state$program)) {
    cat("the value does not depend on the parameters\n")
    return(invisible(x))
  }
  facts <- tryCatch(.Call(r_program_facts, state$program), statcl_error = function(e) NULL)
  if (is.null(facts)) {
    cat("engine: none yet in this session\n")
  } else {
    cat(engine_line(program_note(state$cost, state$where, state$gain)))
    cat(sprintf("program: %d kernels, %d calls, %s\n", as.integer(facts[["kernels"]]),
                as.integer(facts[["calls"]]), bytes_text(facts[["bytes"]])))
  }
  invisible(x)
}

# A line about loops that are rolled.
rolled_text <- function(state) {
  if (is.null(state$program)) return("")
  facts <- tryCatch(.Call(r_program_facts, state$program), statcl_error = function(e) NULL)
  applied <- sum(state$nodes$kind[state$reached] == "apply")
  if (is.null(facts) || facts[["operations"]] > 0.9 * applied) return("")
  sprintf("loops are rolled: of %d elementwise operations recorded, %.0f are left\n", applied,
          facts[["operations"]])
}

# "12 mul, 3 exp, 2 sum": the operations on which the result depends, the most frequent first.
operation_counts <- function(state) {
  kind <- state$nodes$kind[state$reached]
  name <- ifelse(kind %in% c("apply", "reduce"), state$nodes$op[state$reached], kind)
  name <- name[!kind %in% c("param", "data", "number")]
  if (length(name) == 0L) return("none")
  counts <- sort(table(name), decreasing = TRUE)
  paste(counts, names(counts), collapse = ", ")
}

bytes_text <- function(bytes) {
  unit <- max(0, min(3, floor(log2(max(bytes, 1)) / 10)))
  sprintf(if (unit == 0) "%.0f %s" else "%.1f %s", bytes / 1024^unit,
          c("bytes", "KiB", "MiB", "GiB")[unit + 1])
}

# ---- sums of exponentials ------------------------------------------------------------------------

#' Logarithms of sums of exponentials
#'
#' `cl_log_sum_exp(x)` is `log(sum(exp(x)))` and `cl_softmax(x)` is `exp(x) / sum(exp(x))`, both
#' without overflow or underflow. Both may be used in functions given to [cl_gradient()].
#'
#' @param x A numeric vector or matrix.
#' @param margin `NULL` for all elements; for a matrix also 1 for each row or 2 for each column.
#' @return `cl_log_sum_exp()`: one number, or a vector with one for each row or column; `-Inf` for
#'   no elements. `cl_softmax()`: positive numbers in the shape of `x`, which sum to 1 over all
#'   elements or over each row or column.
#' @section Errors:
#' `statcl_error_argument` if `x` is not numeric, or `margin` is given and `x` is not a matrix.
#' @seealso [cl_inv_logit()], [cl_log1p_exp()]
#' @export
#' @examples
#' cl_log_sum_exp(c(1000, 1000))
#' cl_softmax(c(1000, 1001, 1002))
#' cl_softmax(matrix(c(0, 1, 2, 3), 2), margin = 1)
cl_log_sum_exp <- function(x, margin = NULL) {
  x <- check_softmax(x, margin)
  if (length(x) == 0L) return(empty_log_sums(x, margin))
  pair <- if (is_traced(x)) pair_of(x, margin)
  if (!is.null(pair)) return(trace_apply("log_add_exp", pair[[1L]], pair[[2L]]))
  if (!is_traced(x)) return(log_sum_exp(x, margin))
  node_of(x)
  recorded_again("log_sum_exp", log_sum_exp, x, margin)
}

log_sum_exp <- function(x, margin) {
  highest <- margin_of(x, margin, "max")
  shift <- finite_shift(highest)
  shift + log(margin_of(exp(minus_margin(x, shift, margin)), margin, "sum"))
}

#' @rdname cl_log_sum_exp
#' @export
cl_softmax <- function(x, margin = NULL) {
  x <- check_softmax(x, margin)
  if (length(x) == 0L) return(x)
  softmax <- function(x, margin) exp(minus_margin(x, cl_log_sum_exp(x, margin), margin))
  if (!is_traced(x)) return(softmax(x, margin))
  node_of(x)
  recorded_again("softmax", softmax, x, margin)
}

finite_shift <- function(x) {
  if (is_traced(x)) trace_apply("shift", x) else ifelse(is.finite(x), x, 0)
}

check_softmax <- function(x, margin) {
  if (!is.null(margin) && !(is.numeric(margin) && length(margin) == 1L && margin %in% 1:2)) {
    abort_argument("margin", "'margin' must be NULL, 1 or 2")
  }
  if (!is_traced(x) && (!is.numeric(x) || is.object(x))) {
    abort_argument("x", sprintf("'x' must be numeric, not %s", describe(x)))
  }
  if (!is.null(margin) && length(dim(x)) != 2L) {
    abort_argument("x", "'x' must be a matrix where 'margin' is given")
  }
  x
}

# The two traced terms of each sum, or NULL for other numbers of terms.
pair_of <- function(x, margin) {
  if (is.null(margin)) return(if (length(x) == 2L) list(x[1L], x[2L]))
  if (dim(x)[3L - margin] != 2L) return(NULL)
  if (margin == 1L) list(x[, 1L], x[, 2L]) else list(x[1L, ], x[2L, ])
}

empty_log_sums <- function(x, margin) rep(-Inf, if (is.null(margin)) 1L else dim(x)[margin])

# The sum or maximum of all elements, or of each row or column.
margin_of <- function(x, margin, op) {
  if (is_traced(x)) {
    if (is.null(margin)) return(traced_summary(op, list(x)))
    d <- as.double(dim(x))
    return(record("reduce", op, node_of(x), c(d, margin), d[margin]))
  }
  if (is.null(margin)) return(if (op == "sum") sum(x) else max(x))
  if (op == "sum") return(unname(if (margin == 1) rowSums(x) else colSums(x)))
  unname(apply(x, margin, max))
}

# x minus a number for each row or column.
minus_margin <- function(x, shift, margin) {
  if (is.null(margin) || margin == 1) return(x - shift)
  if (is_traced(x)) return(traced_sweep(x, 2, shift, `-`))
  x - rep(shift, each = nrow(x))
}

# Has the tape stop with a condition when the node is added: its fields are the call that adds it,
# and the description of a wrong subscript.
stop_at_node <- function(tape, node) {
  add <- tape$add
  tape$watched <- TRUE # for src/r/trace.c
  tape$add <- function(...) {
    id <- add(...)
    if (id < node) return(id)
    calls <- sys.calls()
    functions <- lapply(seq_along(calls), sys.function)
    call <- failing_call(calls, functions, sys.parents(), NULL)
    stop(structure(class = c("cl_trace_reached", "condition"),
                   list(message = "", call = call, subscript = beyond_length(call, calls))))
  }
}

# "z[g]: subscript 3 of 2" where one of the calls in progress is `call`, of a vector's elements.
beyond_length <- function(call, calls) {
  if (is.null(call) || !identical(call[[1L]], quote(`[`)) || length(call) != 3L) return(NULL)
  mine <- which(vapply(calls, function(e) identical(e[[1L]], quote(`[.cl_traced`)), NA))
  frame <- sys.frame(max(mine, 1L))
  x <- get("x", envir = frame)
  i <- eval(quote(if (...length() == 1L) ..1), frame)
  if (!is.numeric(i) || !any(i > x$n, na.rm = TRUE)) return(NULL)
  sprintf("%s: subscript %s of %d", call_line(call), format(max(i)), x$n)
}
