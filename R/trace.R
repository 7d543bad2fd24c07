# Traced values: the arguments and intermediate results of a function given to cl_gradient() while
# it is recorded. A traced value represents a vector of numbers that are not known yet; operations
# on it add nodes to a tape, from which src/program makes a program. Nothing is evaluated.
#
# A traced value is an environment: functions of R without a method for it stop, because they do not
# support the type, whereas a list or a number would be taken for data. Its fields are `id` (its
# node; 0: not created yet), `n` (its length), `dim` (NULL for a vector), `tape`, and `names`, if it
# has names (a vector), or dimnames (an array: a list), which follow R's rules. A value
# assembled from several nodes, such as c(a, b) or x after x[2] <- a, has `from` and `index` instead
# of a node: for each element the node and the index there. The node is created when the value is
# used as a whole, so that recursions over x[t - 1] stay short.

tracing <- new.env(parent = emptyenv())
tracing$tape <- NULL # the one being recorded
# Of later rooms, set in R/zzz.R: functions that list further replacements, and by class those that
# make the traced twin of a function of this package.
tracing$rooms <- list()
tracing$twins <- list()

# An empty tape. `live`: NULL, or the parameters' values: then comparisons have plain results.
new_tape <- function(live = NULL) {
  data <- list()
  known <- new.env(parent = emptyenv()) # places in `data` by length, to use equal data once
  values <- list() # of nodes, as far as they were asked for (R/trace-value.R)
  has_missing <- FALSE # among the data
  lost <- list() # which elements of nodes data make NaN (R/trace-missing.R)
  named <- FALSE # whether names of parameters were asked for
  scans <- list() # the steps of cl_scan()
  gaps <- list() # inputs of a step with missing data: the node, and the one with numbers there
  parent <- NULL # of a step's tape: that of the function around it (R/trace-scan-body.R)
  argument <- "f" # the name of the function in messages
  elements <- FALSE # whether every value is one number (R/trace-map.R)
  self <- environment()
  add <- function(kind, op, args, at, number, n) {
    .Call(r_trace_add, self, kind, op, args, at, number, n)
  }
  add_number <- function(x) { # equal ones are mostly one node
    # Others may be where the tape is to stop (stop_at_node()).
    if (is.finite(x)) .Call(r_trace_number, self, x)
    else add("number", "", integer(), numeric(), x, 1L)
  }
  add_data <- function(x) {
    key <- as.character(length(x))
    candidates <- known[[key]]
    k <- .Call(r_trace_known, data, candidates, x)
    if (k > 0L) return(k)
    k <- length(data) + 1L
    data[[k]] <<- x
    if (!has_missing && anyNA(x)) has_missing <<- TRUE
    if (length(candidates) < 32L) assign(key, c(candidates, k), envir = known)
    k
  }
  # Of src/r/tape.c, which finds what was made last soonest: the columns of the nodes.
  recent <- integer(256L) # nodes of numbers
  patterns <- new.env(parent = emptyenv()) # nodes of densities (R/trace-again.R)
  kind <- character(256L)
  op <- character(256L)
  args <- vector("list", 256L)
  at <- vector("list", 256L)
  number <- numeric(256L)
  size <- integer(256L)
  count <- 0L
  watched <- NULL # not so by stop_at_node()
  self
}

# A node: its kind, operation, operands, attributes and number.
node_at <- function(tape, id) {
  list(tape$kind[[id]], tape$op[[id]], tape$args[[id]], tape$at[[id]], tape$number[[id]])
}

# A traced value of n elements.
traced <- function(id, n, dim = NULL, from = NULL, index = NULL) {
  # Forces the arguments.
  id
  n
  dim
  from
  index
  tape <- tracing$tape
  self <- environment()
  attr(self, "class") <- traced_class
  self
}

traced_class <- c("cl_traced", "numeric") # the second for generic functions of the user's

is_traced <- function(x) is.environment(x) && inherits(x, "cl_traced")

# Adds a node to the tape and returns it as a traced value.
record <- function(kind, op, args, at, n, dim = NULL) {
  id <- tracing$tape$add(kind, op, args, at, 0, n)
  traced(id, as.integer(n), if (is.null(dim)) NULL else as.integer(dim))
}

# Any number, vector or array that a traced function computes with, as a traced value.
trace_operand <- function(x) {
  if (inherits(x, "cl_traced")) {
    if (identical(.subset2(x, "tape"), tracing$tape)) return(x)
    if (is_traced_sparse(x)) return(trace_operand(dense_of(x)))
    if (!identical(.subset2(x, "tape"), tracing$tape$parent)) trace_stop(stale_text)
    return(named(captured(x, tracing$tape), .subset2(x, "names")))
  }
  if (is.double(x) && length(x) == 1L && is.null(attributes(x))) {
    return(traced(tracing$tape$add_number(x), 1L))
  }
  if (is_cl(x)) x <- as.matrix(x)
  if (!is.numeric(x) && !is.logical(x)) {
    if (!inherits(x, "Matrix")) trace_stop(no_operand_text(x))
    x <- as.matrix(x)
  }
  n <- length(x)
  shape <- dim(x)
  if (n == 0L) return(traced(NA_integer_, 0L, shape))
  if (n == 1L) return(named(traced(tracing$tape$add_number(as.double(x)), 1L, shape), labels_of(x)))
  values <- as.double(x)
  result <- if (is.null(tracing$tape$parent)) {
    record("data", "", integer(), c(tracing$tape$add_data(values), n), n, shape)
  } else {
    traced(captured_data(values, tracing$tape), n, shape)
  }
  keep_times(named(result, labels_of(x)), attr(x, "tsp"))
}

# Notes the times of a time series, which R aligns in arithmetic.
keep_times <- function(x, times) {
  if (!is.null(times)) assign("times", times, envir = x)
  x
}

no_operand_text <- function(x) {
  text <- sprintf("%s cannot be combined with a traced value", describe(x))
  if (is.null(x)) return(paste0(text, ": is a name missing or not spelled right?"))
  if (is.data.frame(x)) return(paste0(text, ": use as.matrix()"))
  if (is.object(x) && is.atomic(x)) paste0(text, ": use as.numeric()") else text
}

array_or_vector <- function(x) if (is.null(dim(x))) as.vector(x) else array(as.vector(x), dim(x))

stale_text <- paste("a traced value of an earlier call is used: 'f' has kept it outside of its",
                    "own variables")

# The node of a value.
node_of <- function(x) {
  if (!identical(.subset2(x, "tape"), tracing$tape)) x <- trace_operand(x)
  id <- .subset2(x, "id")
  if (id == 0L) {
    id <- .Call(r_trace_join, tracing$tape, x)
    if (is.null(id)) id <- join_nodes(x$from, x$index)
    assign("id", id, envir = x)
  }
  id
}

# The node of a value recycled to n elements, like rep_len(). Elementwise operations themselves
# recycle nodes of one element.
node_for <- function(x, n) {
  id <- node_of(x)
  m <- .subset2(x, "n")
  if (m == n || m == 1L) return(id)
  if (x$n > n || n %% x$n != 0L) return(take(id, rep_len(seq_len(x$n), n)))
  tracing$tape$add("broadcast", "", id, c(x$n, n / x$n, 0), 0, n)
}

# The node of exactly n elements; a single element is repeated.
full_node <- function(x, n) {
  if (x$n != 1L || n == 1L) return(node_for(x, n))
  tracing$tape$add("broadcast", "", node_of(x), c(n, 1, 1), 0, n)
}

# Zeros for a result without elements, which needs no node.
no_elements <- function(shape = NULL) if (is.null(shape)) numeric() else array(0, shape)

# ---- elementwise operations ---------------------------------------------------------------------

# op(values), with the name of an operation of elementwise.def, for n elements.
apply_node <- function(op, values, n, shape = NULL) {
  if (n == 0L) return(no_elements(shape))
  args <- integer(length(values))
  for (k in seq_along(values)) args[k] <- node_for(values[[k]], n)
  traced(tracing$tape$add("apply", op, args, numeric(), 0, n), n, shape)
}

traced_unary <- function(op, x) {
  usual <- .Call(r_trace_apply, tracing$tape, op, list(x))
  if (!is.null(usual)) return(usual)
  x <- trace_operand(x)
  n <- .subset2(x, "n")
  shape <- .subset2(x, "dim")
  if (n == 0L) return(no_elements(shape))
  result <- traced(tracing$tape$add("apply", op, node_of(x), numeric(), 0, n), n, shape)
  keep_times(named(result, .subset2(x, "names")), .subset2(x, "times"))
}

traced_binary <- function(op, a, b) {
  if (op == "pow" && is_traced(a) && !is_traced(b) && is_number(b) && b == 2) {
    return(traced_unary("square", a))
  }
  a <- trace_operand(a)
  b <- trace_operand(b)
  n <- .subset2(a, "n")
  m <- .subset2(b, "n")
  times <- .subset2(a, "times")
  others <- .subset2(b, "times")
  if (!is.null(times) && !is.null(others) && !identical(times, others)) {
    trace_stop("time series of different times cannot be combined here: use as.numeric()")
  }
  shape <- .subset2(a, "dim")
  other <- .subset2(b, "dim")
  if (is.null(shape)) {
    plain <- n == 1L && m > 0L || is.null(other) && (m == n || m == 1L && n > 0L)
    shape <- other
  } else {
    plain <- if (is.null(other)) m == 1L && n > 0L else identical(shape, other)
  }
  if (plain) {
    if (m > n) n <- m
  } else {
    like <- plainly(proxy(a) + proxy(b))
    n <- length(like)
    shape <- dim(like)
  }
  if (n == 0L) return(no_elements(shape))
  args <- c(node_for(a, n), node_for(b, n))
  result <- traced(tracing$tape$add("apply", op, args, numeric(), 0, n), n, shape)
  if (is.null(c(.subset2(a, "names"), .subset2(b, "names"), times, others))) return(result)
  result <- named(named(result, .subset2(b, "names")), .subset2(a, "names"))
  keep_times(result, if (is.null(times)) others else times)
}

# op of any number of operands, recycled to the longest, in the shape of the first one of that
# length.
trace_apply <- function(op, ...) {
  values <- list(...)
  usual <- .Call(r_trace_apply, tracing$tape, op, values)
  if (!is.null(usual)) return(usual)
  n <- 1L
  for (k in seq_along(values)) {
    values[[k]] <- v <- trace_operand(values[[k]])
    m <- .subset2(v, "n")
    if (n > 0L && (m > n || m == 0L)) n <- m
  }
  shape <- NULL
  for (v in values) if (is.null(shape) && .subset2(v, "n") == n) shape <- .subset2(v, "dim")
  apply_node(op, values, n, shape)
}

# Zeros in the shape of a value, to find out what base R does to shapes.
proxy <- function(x) {
  zeros <- logical(x$n)
  if (!is.null(x$dim)) dim(zeros) <- x$dim
  zeros
}

# The value of `code`, which computes shapes; its errors and warnings become errors of this package.
plainly <- function(code) {
  withCallingHandlers(code, error = function(e) {
    if (inherits(e, "cl_trace_stop") || is_foreign(e)) return()
    trace_stop(conditionMessage(e), of_numbers = TRUE)
  }, warning = function(w) {
    warning(conditionMessage(w), call. = FALSE)
    invokeRestart("muffleWarning")
  })
}

#' @export
Ops.cl_traced <- function(e1, e2) {
  if (!missing(e2)) {
    usual <- .Call(r_trace_binary, tracing$tape, .Generic, e1, e2)
    if (!is.null(usual)) return(usual)
  }
  op <- .Generic
  if (is_traced_sparse(e1) || nargs() == 2L && is_traced_sparse(e2)) {
    return(if (nargs() == 1L) sparse_arithmetic(op, e1) else sparse_arithmetic(op, e1, e2))
  }
  # Instead of the method for a class of data, see class_masks().
  if (!inherits(e1, "cl_traced") && (nargs() == 1L || !inherits(e2, "cl_traced"))) {
    return(do.call(op, if (nargs() == 1L) list(e1) else list(e1, e2), quote = TRUE))
  }
  if (nargs() == 1L) {
    return(switch(op, `-` = traced_unary("neg", e1), `+` = e1, `!` = logical_result("not", e1)))
  }
  name <- operators[[op]]
  if (is.null(tracing$tape$live)) return(traced_binary(name, e1, e2))
  if (op %in% logical_operators) logical_result(name, e1, e2) else traced_binary(name, e1, e2)
}

logical_operators <- c("==", "!=", "<", ">", "<=", ">=", "&", "|")

# Comparisons: plain if the values of the parameters are known, so that `if` works.
logical_result <- function(op, ...) {
  result <- if (...length() == 1L) traced_unary(op, ...) else traced_binary(op, ...)
  if (is_traced(result) && !is.null(tracing$tape$live)) {
    found <- live_value(result)
    storage.mode(found) <- "logical"
    return(labelled(found, labels_of(result)))
  }
  result
}

#' @export
Math.cl_traced <- function(x, ...) {
  op <- .Generic
  if (is_traced_sparse(x)) return(sparse_function(op, x, ...))
  if (op %in% device_functions) return(traced_unary(op, x))
  switch(op, log = traced_log(x, ...), round = traced_round(x, ...),
         cumsum = named(traced_cumsum(x), x$names), cumprod = named(cumulate("mul", x), x$names),
         cummax = named(cumulate("pmax", x), x$names), cummin = named(cumulate("pmin", x), x$names),
         trace_stop(sprintf("%s() is not available for traced values", op)))
}

traced_log <- function(x, base = exp(1)) {
  if (missing(base)) return(traced_unary("log", x))
  if (identical(base, 2)) return(traced_unary("log2", x))
  if (identical(base, 10)) return(traced_unary("log10", x))
  logarithm <- function(v) if (is_traced(v)) traced_unary("log", v) else log(v)
  traced_binary("div", logarithm(x), logarithm(base))
}

# Numbers whose derivatives count as 0: rounding to 1e-300 changes none of them.
as_constant <- function(x) {
  if (is_traced(x)) traced_binary("round_to", x, 1e300) else x
}

traced_round <- function(x, digits = 0) {
  if (is_traced(digits) || !is_number(digits)) trace_stop("'digits' must be a number")
  element_functions()$rounded(x, digits)
}

traced_psigamma <- function(x, deriv = 0L) {
  if (!is_traced(deriv) && is_number(deriv) && deriv %in% 0:2) {
    return(traced_unary(c("digamma", "trigamma", "tetragamma")[deriv + 1], x))
  }
  trace_stop("psigamma() of a traced value has 'deriv' 0, 1 or 2")
}

# exp(x) K_nu(x), and K itself. Half-integer order by its finite sum: sqrt(pi / (2 x)) times a
# polynomial in 1 / x.
traced_bessel_k <- function(x, nu, expon.scaled = FALSE) {
  if (is_traced(nu)) trace_stop("the order 'nu' of besselK() must not depend on parameters")
  half <- if (is_number(nu)) abs(nu) - 0.5 else NA
  if (is.na(half) || half != round(half) || half > 30) {
    value <- traced_binary("bessel_k_scaled", x, nu)
  } else {
    term <- sum <- 1
    for (j in seq_len(half)) {
      term <- term * ((half + j) * (half - j + 1) / (2 * j)) / x
      sum <- sum + term
    }
    value <- sqrt(pi / 2 / x) * sum
  }
  if (isTRUE(as.logical(expon.scaled))) value else value * exp(-x)
}

#' @export
Summary.cl_traced <- function(..., na.rm = FALSE) traced_summary(.Generic, list(...), na.rm)

traced_summary <- function(name, values, na.rm = FALSE) {
  if (name == "range") {
    return(c(traced_summary("min", values, na.rm), traced_summary("max", values, na.rm)))
  }
  if (name %in% c("any", "all")) {
    if (!tracing$tape$elements || !isFALSE(na.rm)) {
      trace_stop(paste(name, "needs the values of the traced values", sep = "() "), choice = TRUE)
    }
    op <- if (name == "any") "or" else "and"
    return(if (length(values) == 1L) values[[1L]] != 0
           else Reduce(function(a, b) traced_binary(op, a, b), values))
  }
  values <- lapply(values, function(x) {
    if (!is_traced_sparse(x)) return(x)
    if (name != "sum") return(dense_of(x))
    trace_operand(if (length(x$values) > 0L) x$values else 0)
  })
  mine <- vapply(values, is_traced, NA)
  if (!any(mine)) return(do.call(name, c(values, list(na.rm = na.rm)), quote = TRUE))
  if (length(values) == 1L && isFALSE(na.rm) && values[[1L]]$n > 1L && !tracing$tape$elements) {
    return(record("reduce", name, node_of(values[[1L]]), c(values[[1L]]$n, 1, 0), 1L))
  }
  rest <- if (!all(mine)) do.call(name, c(values[!mine], list(na.rm = na.rm)), quote = TRUE)
  op <- c(sum = "add", prod = "mul", min = "pmin", max = "pmax")[[name]]
  none <- c(sum = 0, prod = 1, min = Inf, max = -Inf)[[name]]
  result <- NULL
  for (x in values[mine]) {
    x <- trace_operand(x)
    if (isTRUE(na.rm)) x <- left_out(x, none)$values
    x <- if (x$n < 2L) as.vector(x)
         else if (tracing$tape$elements) Reduce(function(a, b) traced_binary(op, a, b), as.list(x))
         else record("reduce", name, node_of(x), c(x$n, 1, 0), 1L)
    result <- if (is.null(result)) x else traced_binary(op, result, x)
  }
  if (is.null(rest) || identical(as.double(rest), none)) return(result)
  traced_binary(op, result, rest)
}

#' @export
mean.cl_traced <- function(x, trim = 0, na.rm = FALSE, ...) {
  if (!identical(trim, 0)) trace_stop("mean() of a traced value has no 'trim'")
  if (!isTRUE(na.rm)) return(sum(x) / x$n)
  found <- left_out(x, 0)
  sum(found$values) / (x$n - sum(found$lost))
}

# ---- shape --------------------------------------------------------------------------------------

#' @export
length.cl_traced <- function(x) x$n

#' @export
dim.cl_traced <- function(x) x$dim

# The same elements with other dimensions, without names.
reshaped <- function(x, shape) {
  if (is.null(x$dim) && is.null(shape) && is.null(x$names)) return(x)
  result <- traced(x$id, x$n, shape, x$from, x$index)
  assign("tape", x$tape, envir = result)
  result
}

#' @export
`dim<-.cl_traced` <- function(x, value) {
  if (is_traced(value)) trace_stop(shape_text, choice = TRUE)
  like <- seq_len(x$n)
  plainly(dim(like) <- value)
  reshaped(x, dim(like))
}

#' @export
as.vector.cl_traced <- function(x, mode = "any") {
  if (mode %in% c("any", "numeric", "double")) return(reshaped(x, NULL))
  if (mode == "list") return(as.list(x))
  trace_stop(sprintf("a traced value cannot become one of mode \"%s\"", mode), choice = TRUE)
}

#' @export
as.double.cl_traced <- function(x, ...) reshaped(x, NULL)

#' @export
as.list.cl_traced <- function(x, ...) {
  result <- lapply(seq_len(x$n), function(k) x[[k]])
  names(result) <- names(x)
  result
}

#' @export
as.matrix.cl_traced <- function(x, ...) {
  if (length(x$dim) == 2L) return(x)
  named(reshaped(x, c(x$n, 1L)), if (is.null(x$dim)) list(x$names, NULL))
}

#' @export
as.array.cl_traced <- function(x, ...) if (is.null(x$dim)) reshaped(x, x$n) else x

#' @export
is.numeric.cl_traced <- function(x) TRUE

#' @export
is.matrix.cl_traced <- function(x) length(x$dim) == 2L

#' @export
is.array.cl_traced <- function(x) !is.null(x$dim)

# Conversions to types on which the course of a function may depend.
#' @export
as.logical.cl_traced <- function(x, ...) decided("as.logical", x, "logical")

#' @export
as.integer.cl_traced <- function(x, ...) decided("as.integer", x, "integer")

#' @export
as.character.cl_traced <- function(x, ...) decided("as.character", x, "character")

decided <- function(name, x, mode) {
  if (is.null(tracing$tape$live)) {
    trace_stop(sprintf("%s() needs the value of a traced value", name), choice = TRUE)
  }
  as.vector(live_value(x), mode)
}

#' @export
is.na.cl_traced <- function(x) logical_result("is_nan", x)

#' @export
is.nan.cl_traced <- function(x) logical_result("is_nan", x)

#' @export
is.finite.cl_traced <- function(x) logical_result("is_finite", x)

#' @export
is.infinite.cl_traced <- function(x) logical_result("is_infinite", x)
