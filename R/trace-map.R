# cl_map() and cl_reduce(): functions of the user, which are traced by one call.

#' Apply a function to every element
#'
#' `cl_map(f, x, y)` computes `f(x[i, j], y[i, j])` for all `i` and `j` in one kernel. `f` is an R
#' function. It is called *once*, with values that stand for one element of each matrix; the
#' operations on them are recorded and become the kernel. Closures, constants, and functions that
#' `f` calls therefore all work, and a loop with a fixed number of iterations is unrolled. `if`,
#' `while`, `&&` and `||` cannot depend on data: use [cl_ifelse()], `&`, `|`. For the same reason
#' functions that examine the type or the identity of a value do not accept elements: `isTRUE()`,
#' `isFALSE()`, `identical()`, `all.equal()`, `is.numeric()` and related functions, `typeof()`,
#' `class()`, `inherits()`, `match()`, `%in%`; nor does `c()`. As most of these have no methods, `f`
#' and your own functions that it calls by name are traced with replacements for them; functions of
#' packages are called as they are.
#'
#' For base R values on the host engine, a later call with the same function does not call it again
#' if its value can depend only on its arguments and on variables that have not changed: if it uses
#' R's operators, the functions listed below, and your own functions of that kind.
#'
#' If `f` has arguments named `i` or `j` besides those for the matrices, they are the row and column
#' numbers. Matrices with one row, one column or one element are recycled. Base R vectors are
#' columns.
#'
#' Elements support the operators of [clMatrix-arith]; `abs`, `sign`, `sqrt`, `ceiling`, `floor`,
#' `trunc`, `round`, `exp`, `expm1`, `log`, `log1p`, `log2`, `log10`, the trigonometric and
#' hyperbolic functions and their inverses, `sinpi`, `cospi`, `tanpi`; `gamma`, `lgamma`, `digamma`,
#' `trigamma`; `min`, `max`, `sum`, `prod`, `any`, `all` of an element and further arguments,
#' `pmin`, `pmax`; `dnorm`, `pnorm`, `qnorm`, `plogis`, `lbeta`, `choose`, `lchoose`, `atan2`;
#' `is.na`, `is.nan`, `is.finite`, `is.infinite`; [cl_ifelse()], and [cl_inv_logit()] and the
#' functions documented with it.
#'
#' @param f An R function of as many elements as there are matrices, and optionally of `i` and `j`.
#'   It returns an element, a number, or a list of these.
#' @param ... clMatrix objects, base R matrices, vectors or numbers of the same shape, or with one
#'   row or column; names are matched with the arguments of `f`.
#' @return A lazy `clMatrix` ([lazy]) if any of the matrices is one; otherwise a base R matrix, or a
#'   vector if all are vectors. If `f` returns a list, a list of these, which are computed in one
#'   kernel when they are base R values, or when evaluated by [cl_eval()].
#' @section Errors:
#' `statcl_error_argument` if `f` makes a decision that depends on data (the message names
#' [cl_ifelse()]), uses an operation that elements do not have (the message names it), or returns
#' something else; and for matrices that do not conform.
#' @export
#' @examples
#' x <- matrix(c(-1, 0.5, 2, 3), 2)
#' cl_map(function(x) cl_ifelse(x > 1, 1 + log(x), x), x)
#' huber <- function(r, k) cl_ifelse(abs(r) <= k, r^2 / 2, k * (abs(r) - k / 2))
#' cl_map(function(x, y) huber(x - y, k = 1.5), x, 1)
#' cl_map(function(x, i, j) x * (i == j), as_cl(x))
cl_map <- function(f, ...) {
  limit <- if (session$engine == "host") Inf else host_limit("arith")
  quick <- .Call(r_map_quick, known$maps, f, list(...), limit)
  if (!is.null(quick)) return(quick)
  operands <- list(...)
  if (length(operands) == 0L) abort_argument("...", "supply at least one matrix")
  first <- map_known(f, operands)
  if (!is.null(first)) return(first[[1L]])
  inputs <- trace_inputs(operands, rep_len("...", length(operands)))
  if (inputs$base) on.exit(for (x in inputs$elements) cl_free(x@all)) # copies: no garbage
  result <- trace_call(check_function(f, "f"), inputs, "f")
  if (!is.list(result)) return(trace_output(result, inputs, "f"))
  matrices <- lapply(result, trace_matrix, inputs, "f")
  if (inputs$base) force_all(matrices)
  lapply(matrices, trace_finish, inputs)
}

#' Reduce with your own functions
#'
#' `cl_reduce()` maps the elements of a matrix and combines them, over the matrix or over each row
#' or column, in one kernel: `cl_reduce(x, map = function(x) x^2)` is a sum of squares. All
#' functions are called once, with values that stand for one element, as in [cl_map()].
#'
#' Elements are combined in a fixed order, the same in every run, but not from first to last.
#' Therefore `combine(u, v)` must be associative and commutative, and `combine(identity, v)` must be
#' `v`.
#'
#' @param x A clMatrix, or a base R matrix or vector.
#' @param map A function of an element of `x`, of one of each of `...`, and optionally of `i` and
#'   `j`, the row and column numbers; `NULL` for the elements of `x` themselves.
#' @param combine A function of two values, such as `function(u, v) u + v`, or the name of one of
#'   R's (`"+"`, `"*"`, `"max"`, `"min"`).
#' @param identity The initial value, and the result if there are no elements.
#' @param finalize A function of the combined value, or `NULL`.
#' @param margin `"all"` for one value, `"rows"` for one for each row, `"cols"` for one for each
#'   column.
#' @param ... Further matrices for `map`, as for [cl_map()].
#' @return If `x` or one of `...` is a `clMatrix`: a lazy `clMatrix` ([lazy]), 1 x 1, m x 1 or 1 x
#'   n. Otherwise a number, or a vector with the row or column names.
#' @section Errors:
#' As for [cl_map()].
#' @seealso [clMatrix-reductions] for `sum()`, `rowSums()`, `max()` and related functions.
#' @export
#' @examples
#' x <- matrix(1:6, 2)
#' cl_reduce(x, map = function(x) x^2)
#' cl_reduce(x, combine = "max", identity = -Inf, margin = "rows")
#' # log(rowSums(exp(x))) without overflow
#' log_add <- function(u, v) max(u, v) + log1p(exp(-abs(u - v)))
#' cl_reduce(x, combine = log_add, identity = -1e300, margin = "cols")
#' cl_reduce(x, map = function(x, i) i * x, finalize = function(s) s / 6)
cl_reduce <- function(x, map = NULL, combine = "+", identity = 0, finalize = NULL,
                      margin = c("all", "rows", "cols"), ...) {
  margin <- match(check_choice(margin, c("all", "rows", "cols"), "margin"),
                  c("all", "rows", "cols")) - 1L
  if (!is.numeric(identity) || is.object(identity) || length(identity) != 1L || is.na(identity)) {
    abort_argument("identity", "'identity' must be one number")
  }
  if (is.character(combine)) combine <- named_combine(combine, identity)
  inputs <- trace_inputs(c(list(x), list(...)), c("x", rep_len("...", ...length())))
  mapped <- if (is.null(map)) inputs$elements[[1L]]
            else trace_call(check_function(map, "map"), inputs, "map")
  mapped <- trace_matrix(mapped, inputs, "map")
  reduced <- value(
    if (is.character(combine)) .Call(r_op, combine, list(mapped@handle), margin, NULL)
    else combine_handle(mapped, check_function(combine, "combine"), as.double(identity), margin))
  if (!is.null(finalize)) {
    final <- list(elements = list(element(reduced)), dim = reduced@Dim)
    reduced <- trace_matrix(trace_call(check_function(finalize, "finalize"), final, "finalize"),
                            final, "finalize")
  }
  names <- if (inputs$vector && !is.null(inputs$names)) list(inputs$names, NULL) else inputs$names
  if (!inputs$base) {
    if (margin > 0L && !is.null(names)) reduced@Dimnames[margin] <- names[margin]
    return(reduced)
  }
  values <- as.vector(.Call(r_matrix_to_host, reduced@handle))
  if (margin > 0L && !is.null(names)) names(values) <- names[[margin]]
  values
}

# The argument 'combine' as the name of a reduction; a function if the identity is not that of the
# reduction.
named_combine <- function(name, identity) {
  known <- c(`+` = "sum", sum = "sum", `*` = "prod", prod = "prod", max = "max", min = "min")
  if (length(name) != 1L || !name %in% names(known)) {
    abort_argument("combine", sprintf("'combine' must be a function of two values, or one of %s",
                                      paste0("\"", names(known), "\"", collapse = ", ")))
  }
  op <- known[[name]]
  if (identity == c(sum = 0, prod = 1, max = -Inf, min = Inf)[[op]]) return(op)
  switch(op, sum = function(u, v) u + v, prod = function(u, v) u * v,
         max = function(u, v) max(u, v), min = function(u, v) min(u, v))
}

combine_handle <- function(mapped, combine, identity, margin) {
  sides <- lapply(0:1, function(k) {
    element(value(.Call(r_op, "placeholder", list(), k, mapped@handle), c(1L, 1L), NULL, "general"))
  })
  pair <- list(elements = sides, dim = c(1L, 1L))
  combined <- trace_call(combine, pair, "combine")
  if (!is_element(combined)) {
    abort_argument("combine", "'combine' must use both of its arguments")
  }
  .Call(r_op, "reduce_with", list(mapped@handle, combined@all@handle), c(margin, identity), NULL)
}

check_function <- function(f, argument) {
  if (!is.function(f)) {
    abort_argument(argument, sprintf("'%s' must be a function, not %s", argument, describe(f)))
  }
  f
}

# ---- tracing ------------------------------------------------------------------------------------

# The arguments for tracing a function: an element for each operand, recycled to the common shape;
# whether all operands are base R (base) and none is a matrix (vector); names and dimensions of the
# result.
trace_inputs <- function(operands, arguments) {
  device <- vapply(operands, is_cl, NA)
  plain <- lapply(seq_along(operands), function(k) {
    if (device[k]) operands[[k]] else check_numeric(operands[[k]], arguments[k])
  })
  vector <- !any(device) && all(vapply(plain, function(x) is.null(dim(x)), NA))
  names <- if (vector) names(plain[[1L]])
  size <- max(vapply(plain, length, 0), 0)
  like <- if (any(device)) plain[[which(device)[1L]]]
  where <- if (is.null(like)) where_for("arith", size)
  matrices <- lapply(plain, function(x) if (is_cl(x)) x else input_matrix(x, like, where))
  dim <- common_dim(matrices, arguments)
  elements <- lapply(matrices, function(x) {
    element(if (identical(x@Dim, dim)) x
            else value(repeated(x, dim), dim, NULL, "general"))
  })
  names(elements) <- names(operands)
  list(elements = elements, dim = dim, base = !any(device),
       vector = vector, names = if (vector) names else common_names(matrices, dim))
}

# A base R operand on the engine of a clMatrix, or on engine `where`.
input_matrix <- function(x, like, where) {
  names <- dimnames(x)
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  if (!is.null(like)) return(like(x, like, names))
  new_cl(.Call(r_matrix_new, x, nrow(x), ncol(x), 0L, where), dim(x), names)
}

# Calls a user's function with elements, and with row and column numbers if it has arguments i and
# j.
trace_call <- function(f, inputs, argument) {
  elements <- inputs$elements
  given <- names(elements)
  wanted <- names(formals(args(f)))
  if (any(c("i", "j") %in% wanted)) {
    # The arguments that remain after the elements are matched.
    free <- setdiff(wanted, c("...", given))
    unnamed <- if (is.null(given)) length(elements) else sum(!nzchar(given))
    free <- free[seq_along(free) > unnamed]
    for (name in intersect(c("i", "j"), free)) {
      handle <- index_handle(inputs$elements[[1L]]@all, match(name, c("i", "j")))
      elements[[name]] <- element(value(handle, inputs$dim, NULL, "general"))
    }
  }
  withCallingHandlers(do.call(guarded(f), elements, quote = TRUE),
                      error = function(e) explain_trace(e, argument))
}

# Turns an error of a traced function into one that explains the limits of elements.
explain_trace <- function(e, argument) {
  if (is_foreign(e)) return()
  if (inherits(e, "statcl_error")) {
    # Errors of elements name the traced function "f".
    if (identical(e$argument, "f") && argument != "f") abort_argument(argument, conditionMessage(e))
    return()
  }
  call <- conditionCall(e)
  head <- if (is.call(call) && is.name(call[[1L]])) as.character(call[[1L]]) else ""
  if (head %in% c("if", "while", "&&", "||")) {
    advice <- switch(head, `&&` = "use '&' or ", `||` = "use '|' or ", "use ")
    abort_argument(argument, sprintf(paste("'%s' uses '%s' on an element, which has no value while",
                                           "the function is traced: %scl_ifelse(test, yes, no)"),
                                     argument, head, advice))
  }
  # R dispatches summaries on the first argument only.
  advice <- if (head %in% c("max", "min")) {
    sprintf("; use p%s() if the first argument is a number", head)
  } else {
    ""
  }
  abort_argument(argument, sprintf(paste("'%s' failed when called with elements%s: %s (see ?cl_map",
                                         "for the operations they support%s)"),
                                   argument, if (nzchar(head)) sprintf(" in %s()", head) else "",
                                   conditionMessage(e), advice))
}

# The result of a traced function as a lazy matrix of the shape of its inputs.
trace_matrix <- function(result, inputs, argument) {
  if (is_element(result)) return(result@all)
  if (is_constant(result)) {
    number <- like(matrix(as.double(result)), inputs$elements[[1L]]@all)
    return(value(repeated(number, inputs$dim)))
  }
  abort_argument(argument, sprintf("'%s' must return an element or a number, not %s", argument,
                                   describe(result)))
}

trace_output <- function(result, inputs, argument) {
  trace_finish(trace_matrix(result, inputs, argument), inputs)
}

# With names; a base R value if all inputs are base R.
trace_finish <- function(x, inputs) {
  if (!inputs$base) {
    if (!is.null(inputs$names)) x@Dimnames <- inputs$names
    return(x)
  }
  values <- .Call(r_matrix_to_host, x@handle)
  if (inputs$vector) {
    values <- as.vector(values)
    names(values) <- inputs$names
  } else if (!is.null(inputs$names)) {
    dimnames(values) <- inputs$names
  }
  values
}
