# Densities and distribution functions for traced values (cl_gradient()), with R's names, arguments
# and defaults. Each is a formula of arithmetic and elementwise operations, so that it works on
# numbers and on traced values alike. Terms that depend on data alone are computed by R while
# tracing.
#
# Rules for the formulas: Terms must not cancel, so that a log density is accurate far into both
# tails. The argument of log() is guarded before it is used (`where`), not only the result: zero
# times the infinite derivative of the branch not taken would be NaN. Conditions on plain numbers
# cost nothing if all hold.

log_sqrt_2pi <- 0.91893853320467274178

# ---- elementwise operations that are no functions of base R, or not generic ----------------------

# op(...), with the name of an operation of elementwise.def, for traced values or numbers.
density_op <- function(op, ...) {
  if (any_traced(...)) return(trace_apply(op, ...))
  f <- number_ops[[op]]
  if (is.null(f)) core_numbers(op, ...) else f(...)
}

square <- function(x) density_op("square", x)
inv_logit <- function(x) density_op("inv_logit", x)
log1p_exp <- function(x) density_op("log1p_exp", x)

# log(exp(x) + exp(y))
log_add_exp <- function(x, y) density_op("log_add_exp", x, y)

# log(1 - exp(x)) for x <= 0.
log1m_exp <- function(x) density_op("log1m_exp", x)

# x log(x / m) + m - x, half the deviance of a Poisson count x of mean m; m where x is 0.
poisson_deviance <- function(x, m) density_op("deviance", x, m)

# The remainder of Stirling's formula: lgamma(x) - ((x - 1/2) log(x) - x + log(2 pi) / 2).
stirling_rest <- function(x) density_op("stirling", x)

# The traced a if x is op(a), else NULL. log(exp(a)) and log(plogis(a)) then need no exponential and
# no condition, and are accurate in both tails.
argument_of <- function(x, op) {
  if (!inherits(x, "cl_traced")) return(NULL)
  id <- .subset2(x, "id")
  tape <- .subset2(x, "tape")
  if (is.na(id) || id == 0L) return(NULL)
  if (!identical(tape, tracing$tape)) return(NULL) # of the function around a step of cl_scan()
  node <- node_at(tape, id)
  if (node[[1L]] != "apply" || node[[2L]] != op) return(NULL)
  traced(node[[3L]], .subset2(x, "n"), .subset2(x, "dim"))
}

# The number that is recorded as a traced x, else NULL.
number_of <- function(x) {
  if (!inherits(x, "cl_traced") || !identical(.subset2(x, "tape"), tracing$tape)) return(NULL)
  id <- .subset2(x, "id")
  if (is.na(id) || id == 0L) return(NULL)
  node <- node_at(tracing$tape, id)
  if (node[[1L]] == "number") node[[5L]]
}

# log(x); of a traced exp(), its argument.
log_of_positive <- function(x) {
  exponent <- argument_of(x, "exp")
  if (is.null(exponent)) log(x) else exponent
}

above_zero <- function(x) if (is.null(argument_of(x, "exp"))) x > 0 else TRUE

not_negative <- function(x) {
  if (!is.null(argument_of(x, "exp"))) return(TRUE)
  known <- number_of(x)
  if (is.null(known)) x >= 0 else known >= 0
}

# ---- conditions ----------------------------------------------------------------------------------

# The usual condition and flag, for which nothing else is asked: densities are recorded element by
# element in loops.
is_known_flag <- function(x) is.logical(x) && length(x) == 1L && !is.na(x)

# `yes` where the condition holds, `no` where it does not, NaN where it is NA. If the condition is a
# plain TRUE or FALSE throughout, the result is `yes` or `no`, and the other one is not evaluated.
where <- function(condition, yes, no) {
  if (is_known_flag(condition)) return(if (condition) yes else no)
  if (any_traced(condition)) return(trace_apply("ifelse", condition, yes, no))
  if (!anyNA(condition)) {
    if (all(condition)) return(yes)
    if (!any(condition)) return(no)
  }
  if (!any_traced(yes, no)) return(plain_where(condition, yes, no))
  trace_apply("ifelse", condition + 0, yes, no)
}

both <- function(a, b) {
  if (always(a) || identical(b, FALSE)) return(b)
  if (always(b) || identical(a, FALSE)) a else a & b
}

# Whether a condition is known to hold for all values of the parameters.
always <- function(condition) {
  if (is_known_flag(condition)) return(condition)
  !any_traced(condition) && !anyNA(condition) && all(condition)
}

# Not infinite; traced values count as finite.
not_infinite <- function(x) if (any_traced(x)) TRUE else !is.infinite(x)

# x < Inf, for formulas that are NaN at Inf; a traced exp() counts as finite.
below_infinity <- function(x) if (is.null(argument_of(x, "exp"))) x < Inf else TRUE

# More than zero and, if known, finite.
is_positive <- function(x) if (any_traced(x)) above_zero(x) else x > 0 & x < Inf

# Whether x is a count. Numbers that are not whole have density zero and give a warning, as in R.
is_count <- function(x) {
  if (any_traced(x)) return((x >= 0) & (x == trace_apply("round", x)))
  whole <- abs(x - round(x)) <= 1e-9 * pmax(1, abs(x))
  odd <- which(!whole & is.finite(x))
  if (length(odd) > 0L) {
    warning(sprintf("non-integer x = %f", x[odd[1L]]), call. = FALSE)
  }
  x >= 0 & x < Inf & (whole | is.na(whole))
}

# (x - centre) / scale
from_centre <- function(x, centre, scale) {
  if (!identical(centre, 0)) x <- x - centre
  if (identical(scale, 1)) x else x / scale
}

# A flag; R takes numbers too.
density_flag <- function(x, argument) {
  if (is_known_flag(x)) return(x)
  if (!is_traced(x) && is_number(x) && x %in% 0:1) x == 1 else check_flag(x, argument)
}

# ---- results -------------------------------------------------------------------------------------

# The density from its logarithm: `value` where `inside`, a condition on x, holds, else `outside`;
# NaN where the parameters are invalid. Further arguments determine the length.
density_value <- function(value, inside, valid, log, ..., outside = -Inf) {
  log <- density_flag(log, "log")
  value <- where(inside, value, where(valid, outside, NaN))
  full_length(if (log) value else exp(value), ...)
}

full_length <- function(value, ...) {
  n <- common_length(...)
  if (size_of(value) == n) return(value)
  if (n == 0L) return(numeric())
  zeros <- numeric(n)
  dim(zeros) <- shape_of_longest(n, ...)
  zeros + value
}

# The probability below (0) or above (1) the support, in the form asked for.
edge_probability <- function(side, lower, log) {
  p <- if (lower) side else 1 - side
  if (log) log(p) else p
}

# A distribution function, given the values where q is within the support; `below` and `above` are
# conditions on q.
probability_value <- function(value, below, above, valid, lower, log, ...) {
  value <- where(above, edge_probability(1, lower, log),
                 where(below, edge_probability(0, lower, log), value))
  full_length(where(valid, value, NaN), ...)
}

# The probability of an exponential variable beyond or below t >= 0.
exponential_probability <- function(t, lower, log) {
  if (!lower) return(if (log) -t else exp(-t))
  if (log) log1m_exp(-t) else -expm1(-t)
}

# ---- the functions -------------------------------------------------------------------------------

# The functions that replace R's in cl_gradient(), by R/density-table.R. Without traced arguments
# they call R's own (or, for matrices of this package, its generic).
density_functions <- function() {
  functions <- lapply(names(density_table), function(name) {
    density_function(name, density_table[[name]])
  })
  names(functions) <- names(density_table)
  functions
}

density_function <- function(name, row) {
  formula <- row$formula
  original <- original_function(name)
  function(...) {
    again <- .Call(r_trace_again, tracing$tape, name, list(...))
    if (!is.null(again)) return(again)
    if (!is.null(original) && !any_traced(...)) return(original(...))
    if (any_classed(...)) {
      return(do.call(formula, lapply(list(...), operand_numbers), quote = TRUE))
    }
    result <- recorded_density(..., .name = name, .row = row)
    for (k in rev(seq_len(...length()))) {
      labels <- labels_of(...elt(k))
      if (!is.null(labels)) result <- named(result, labels)
    }
    result
  }
}

# Whether any argument has a class, such as a time series; the formulas use its plain numbers.
any_classed <- function(...) {
  for (k in seq_len(...length())) if (is.object(...elt(k)) && !is_traced(...elt(k))) return(TRUE)
  FALSE
}

operand_numbers <- function(x) {
  if (!is.object(x) || is_traced(x) || is_cl(x)) return(x)
  if (!is.numeric(x)) trace_stop(no_operand_text(x))
  array_or_vector(x)
}

# R's function of this name; NULL if R has none.
original_function <- function(name) {
  for (home in list(topenv(), asNamespace("stats"), baseenv())) {
    found <- get0(name, envir = home, mode = "function", inherits = FALSE)
    if (!is.null(found)) return(found)
  }
  NULL
}
