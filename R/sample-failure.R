# Why a log density has no value at a point, in words: the operation, the call in the function of
# the user, and the parameters on which it depends.

# Of the density of a job, or of a chain, at the unconstrained vector u, such as "chol(): not
# positive definite in 'chol(K)' at sigma = 3e-14".
failure_text <- function(of, u) {
  layout <- of$layout
  x <- constrain(layout, u)
  if (is.null(x)) return("parameters that are too extreme for their transforms")
  x <- as.vector(x)
  cause <- tryCatch(failure_cause(of, x), error = function(e) NULL)
  if (is.null(cause)) cause <- list(text = "a value or a gradient that is not finite")
  shown <- if (is.null(cause$of)) seq_along(x) else cause$of
  if (length(shown) == 0L) return(cause$text)
  own <- attr(of$log_density, "own", exact = TRUE)
  if (!is.null(own)) { # parameters on their own scale
    given <- match(layout$names, own$parameters$names)
    values <- own$parameters$values(matrix(x), NULL)
    x <- ifelse(is.na(given), x, values[given])
  }
  at <- sprintf("%s = %s", layout$names[shown], format_each(x[shown], 3L))
  if (length(at) > 5L) at <- c(at[1:5], "...")
  text <- sprintf("%s at %s", cause$text, paste(at, collapse = ", "))
  j <- cause$outside
  if (is.null(j)) return(text)
  sprintf("%s: no %s bound given for '%s' (see 'transform')?", text,
          if (x[j] < 0) "lower" else "upper", layout$names[j])
}

# NULL, or list(text; of: the indices of the parameters; outside: the one outside of its range).
failure_cause <- function(of, x) {
  f <- of$log_density
  own <- attr(f, "own", exact = TRUE)
  rejected <- if (!is.null(own)) own$why(x)
  if (!is.null(rejected)) return(list(text = rejected))
  terms <- if (inherits(f, "cl_log_posterior")) environment(f)$terms else list(f)
  for (term in terms) {
    recorded <- inherits(term, c("cl_gradient", "cl_likelihood", "formula"))
    cause <- if (recorded) recorded_cause(term, of$layout, x) else
      called_cause(term, of$layout, x, isTRUE(of$batch))
    if (!is.null(cause)) return(cause)
  }
  NULL
}

# For a function that was not recorded: only the call is known.
called_cause <- function(f, layout, x, batch) {
  if (!is.null(layout$arguments)) f <- cl_log_posterior(f)
  first <- NULL
  answer <- tryCatch(
    withCallingHandlers({
      if (batch) batch_caller(f, layout)(matrix(x)) else density_caller(f, layout)(x)
    }, warning = function(w) {
      if (is.null(first)) first <<- w
      invokeRestart("muffleWarning")
    }),
    error = identity)
  if (inherits(answer, "error")) {
    return(list(text = sprintf("the error \"%s\"", conditionMessage(answer))))
  }
  if (all(is.finite(unlist(answer)))) return(NULL)
  what <- if (is.finite(answer[[1L]])) "a gradient that is not finite" else
    sprintf("the value %s", format(answer[[1L]]))
  if (is.null(first)) return(list(text = what))
  call <- conditionCall(first)
  list(text = sprintf("%s, with the warning \"%s\"%s", what, conditionMessage(first),
                      if (is.null(call)) "" else sprintf(" of '%s'", call_line(call))))
}

# ---- what was recorded --------------------------------------------------------------------------

# Records the function again, and computes the values of the record at x in R.
recorded_cause <- function(term, layout, x) {
  state <- environment(term)
  arguments <- layout$arguments
  if (is.null(arguments)) {
    of_vector <- state$f
    g <- function(parameters) of_vector(parameters[[1L]])
    point <- list(stats::setNames(x, layout$given))
  } else {
    names <- vapply(arguments, `[[`, "", "name")
    g <- plain_term(term, names)
    point <- lapply(arguments, function(a) as_argument(x[a$index], a))
    names(point) <- names
  }
  retrace <- inherits(term, "cl_gradient") && state$retrace
  record_until <- function(node = NULL) {
    trace_function(g, point, TRUE, retrace, overrides = density_overrides(term),
                   prepare = function(tape) {
      if (!is.null(node)) stop_at_node(tape, node)
    })
  }
  trace <- record_until()
  if (!is_traced(trace$result)) return(NULL)
  tape <- trace$tape
  tape$live <- x
  output <- trace$node(trace$result)
  value <- live_node(tape, output)
  at <- if (is.finite(value)) near_failure(tape, output) else failing_node(tape, output)
  if (is.null(at)) return(NULL)
  line <- NULL
  own <- attr(term, "own", exact = TRUE)
  found <- tryCatch(withCallingHandlers({
    record_until(at)
    NULL
  }, cl_trace_reached = function(e) line <<- if (!is.null(own)) own$line()),
  cl_trace_reached = identity)
  params <- Filter(function(k) tape$kind[k] == "param", reached_nodes(tape$args, at))
  of <- unlist(lapply(tape$at[params], function(at) at[1L] + seq_len(at[2L])))
  call <- if (!inherits(term, "cl_likelihood") && is.null(own)) found$call
  text <- found$subscript
  if (is.null(text)) text <- failure_at(node_at(tape, at), live_node(tape, at), call)
  if (inherits(term, "cl_likelihood")) text <- "the likelihood has no value"
  if (!is.null(line)) text <- sprintf("line %d: %s", as.integer(line), text)
  outside <- if (!retrace) outside_range(tape, at, of, layout)
  list(text = text, of = as.integer(of), outside = outside)
}

# Follows NaN, or an infinite value, from the output to the first node whose operands are free of
# it; or to the first of the nested choices that select the number NaN.
failing_node <- function(tape, id) {
  bad <- if (is.na(live_node(tape, id))) is.na else is.infinite
  choice <- NULL
  repeat {
    node <- node_at(tape, id)
    if (node[[1L]] == "number" && !is.null(choice)) return(choice)
    choice <- if (node[[2L]] == "ifelse") c(choice, id)[1L]
    args <- node[[3L]]
    values <- lapply(args, live_node, tape = tape)
    if (node[[1L]] == "apply") {
      n <- tape$size[id]
      k <- which(bad(rep_len(live_node(tape, id), n)))[1L]
      values <- lapply(values, function(v) rep_len(v, n)[k])
      if (node[[2L]] == "ifelse" && !is.na(values[[1L]])) {
        values[[if (values[[1L]] != 0) 3L else 2L]] <- 0 # the branch that is not taken
      }
    }
    wrong <- args[vapply(values, function(v) any(bad(v)), NA)]
    if (length(wrong) == 0L) { # NaN may come from infinite numbers
      bad <- is.infinite
      wrong <- args[vapply(values, function(v) any(bad(v)), NA)]
      if (length(wrong) == 0L) return(id)
    }
    id <- wrong[1L]
  }
}

# The chol() of a matrix so nearly singular that rounding decides whether there is a factor, if R
# finds one; else NULL.
near_failure <- function(tape, output) {
  factors <- which(tape$kind[seq_len(output)] == "chol")
  if (length(factors) == 0L) return(NULL)
  least <- vapply(factors, function(k) {
    pivots <- diag(matrix(live_node(tape, k), tape$at[[k]][1L]))
    min(pivots) / max(pivots)
  }, 0)
  if (min(least) < 1e-6) factors[which.min(least)]
}

# The parameter below 0 or above 1 without such a bound, if the node has a value only on the other
# side of the bound.
outside_range <- function(tape, at, of, layout) {
  x <- tape$live
  on.exit({
    tape$live <- x
    tape$values <- list()
  })
  has_value <- function(j, value) {
    tape$live <- replace(x, j, value)
    tape$values <- list()
    all(is.finite(live_node(tape, at)))
  }
  low <- of[x[of] < 0 & layout$bounds[of, 1L] == -Inf]
  for (j in utils::head(low, 5L)) if (has_value(j, 1e-3) && !has_value(j, -1e-3)) return(j)
  high <- of[x[of] > 1 & layout$bounds[of, 2L] == Inf]
  for (j in utils::head(high, 5L)) if (has_value(j, 0.999) && !has_value(j, 1.001)) return(j)
  NULL
}

# "chol(): not positive definite in 'chol(K)'". The operation is that of the user's call.
failure_at <- function(node, value, call) {
  head <- if (is.null(call) || !is.name(call[[1L]])) node[[if (nzchar(node[[2L]])) 2L else 1L]] else
    as.character(call[[1L]])
  value <- value[!is.finite(value)]
  what <- switch(node[[1L]],
    chol = paste0(if (length(value) > 0L) "not ", "positive definite",
                  if (length(value) == 0L) " but for rounding"),
    lu = , lu_solve = "singular",
    data = , number = if (anyNA(value)) "missing data" else "infinite data",
    format(value[1L]))
  inner <- is.null(call) && node[[1L]] %in% c("data", "number") # no call of the user's
  text <- if (inner) what else sprintf("%s: %s", call_text(head), what)
  if (is.null(call)) text else sprintf("%s in '%s'", text, call_line(call))
}
