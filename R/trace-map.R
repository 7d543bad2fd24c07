# cl_map() and cl_reduce(): functions of the user, which are traced by one call.

#' Apply a function to every element
#'
#' `cl_map(f, x, y)` computes `f(x[i, j], y[i, j])` for all `i` and `j` in one kernel. `f` is an R
#' function. It is called *once*, with values that stand for one element of each matrix; the
#' operations on them are recorded and become the kernel. Closures, constants, and functions that
#' `f` calls therefore all work, and a loop with a fixed number of iterations is unrolled. The
#' record is made as by [cl_gradient()]: each element is one number, for which `f` may use what is
#' listed there, also `c()` and `x[i]`, but no other vectors and matrices, which are passed as
#' further arguments. `if`, `while`, `&&`, `||`, `isTRUE()`, `identical()`, `match()` and the like
#' cannot depend on data: use [ifelse()] or [cl_ifelse()], `&`, `|`.
#'
#' A later call with the same function does not call it again if its value can depend only on its
#' arguments and on variables that have not changed: if it uses R's operators, the functions listed
#' below, and your own functions of that kind.
#'
#' If `f` has arguments named `i` or `j` in addition to those for the matrices, they are the row and
#' column numbers. Matrices with one row, one column or one element are recycled. Base R vectors are
#' columns.
#'
#' Elements support the operators of [clMatrix-arith]; `abs`, `sign`, `sqrt`, `ceiling`, `floor`,
#' `trunc`, `round`, `exp`, `expm1`, `log`, `log1p`, `log2`, `log10`, the trigonometric and
#' hyperbolic functions and their inverses, `sinpi`, `cospi`, `tanpi`; `gamma`, `lgamma`, `digamma`,
#' `trigamma`; `min`, `max`, `sum`, `prod`, `any`, `all` of elements and numbers, `pmin`, `pmax`;
#' `dnorm`, `pnorm`, `qnorm`, `plogis` and other [densities][cl_densities]; `beta`, `lbeta`,
#' `choose`, `lchoose`, `atan2`; `is.na`, `is.nan`, `is.finite`, `is.infinite`; [ifelse()],
#' [cl_ifelse()], and [cl_inv_logit()] and the functions documented with it.
#'
#' @param f An R function of as many elements as there are matrices, and optionally of `i` and `j`.
#'   It returns an element, a number, or a list of these.
#' @param ... clMatrix objects, base R matrices, vectors or numbers of the same shape, or with one
#'   row or column; names are matched with the arguments of `f`.
#' @return A lazy `clMatrix` ([lazy]) if any of the matrices is one; otherwise a base R matrix, or a
#'   vector if all are vectors. If `f` returns a list, a list of these, which are computed in one
#'   kernel when they are base R values, or when evaluated by [cl_eval()].
#' @section Errors:
#' `statcl_error_argument` if `f` makes a decision that depends on data, uses an operation that
#' elements do not have, or returns something else (the message names the call in `f`); and for
#' matrices that do not conform.
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
  entry <- map_entry(check_function(f, "f"), names(operands), length(operands))
  if (!is.null(entry$template)) {
    shape <- .Call(r_map_shape, operands)
    if (!is.null(shape)) {
      run <- function(where) {
        if (where < 0L) .Call(r_map_run, entry, operands) else map_matrices(f, entry, operands,
                                                                            where)
      }
      return(on_engine(where_for("arith", shape[3L], kind = text_kind(f)), run))
    }
  }
  map_on_engine(operands, function(where) map_matrices(f, entry, operands, where), text_kind(f))
}

# The kind of calls with these functions, by the beginning of their text.
text_kind <- function(...) paste(unlist(lapply(list(...), deparse, nlines = 20L)), collapse = " ")

# `run(where)` on the engine for these operands; NULL if one of them is a clMatrix, which has one.
map_on_engine <- function(operands, run, kind) {
  if (any_cl(operands)) return(run(NULL))
  on_engine(where_for("arith", max(lengths(operands)), kind = kind), run)
}

map_matrices <- function(f, entry, operands, where) {
  inputs <- map_inputs(operands, rep_len("...", length(operands)), where)
  if (inputs$base) on.exit(for (x in inputs$matrices) cl_free(x)) # copies, freed at once
  record <- if (is.null(entry$record)) record_map(f, names(operands), length(operands))
            else entry$record
  matrices <- map_results(record, inputs)
  if (isFALSE(record$names)) return(map_finish(matrices[[1L]], inputs))
  if (inputs$base) force_all(matrices)
  stats::setNames(lapply(matrices, map_finish, inputs), record$names)
}

#' @rdname cl_operations
#' @export
cl_op <- function(name, ...) {
  operands <- list(...)
  table <- .Call(r_expr_ops)$operations
  row <- if (is.character(name) && length(name) == 1L) match(name, table$name) else NA
  if (is.na(row)) {
    abort_argument("name", "'name' must be the name of an operation (see cl_operations())")
  }
  if (length(operands) != table$arity[row]) {
    abort_argument("...", sprintf("'%s' takes %d operands, not %d", name, table$arity[row],
                                  length(operands)))
  }
  if (any_traced(...)) return(trace_apply(name, ...))
  if (any_cl(operands)) return(apply_op(name, operands, rep_len("...", length(operands))))
  f <- eval(bquote(function(...) trace_apply(.(name), ...)))
  do.call(cl_map, c(list(f), unname(operands)), quote = TRUE)
}

#' @rdname cl_inv_logit
#' @export
cl_erf <- function(x) special_function("erf", x, function(x) cl_op("erf", x))

#' @rdname cl_inv_logit
#' @export
cl_erfc <- function(x) special_function("erfc", x, function(x) cl_op("erfc", x))

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
  operands <- c(list(x), list(...))
  map_on_engine(operands, function(where) {
    reduce_matrices(map_inputs(operands, c("x", rep_len("...", length(operands) - 1L)), where),
                    map, combine, as.double(identity), finalize, margin)
  }, text_kind(map, combine, finalize, margin))
}

reduce_matrices <- function(inputs, map, combine, identity, finalize, margin) {
  mapped <- if (is.null(map)) inputs$matrices[[1L]] else map_result(map, inputs, "map")
  reduced <- value(
    if (is.character(combine)) .Call(r_op, combine, list(mapped@handle), margin, NULL)
    else combine_handle(mapped, combine, identity, margin))
  if (!is.null(finalize)) {
    final <- list(matrices = list(reduced), dim = reduced@Dim)
    reduced <- map_result(finalize, final, "finalize")
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
    value(.Call(r_op, "placeholder", list(), k, mapped@handle), c(1L, 1L), NULL, "general")
  })
  combined <- map_values(recorded_map(combine, sides, "combine"), list(matrices = sides))[[1L]]
  if (!is_cl(combined)) {
    abort_argument("combine", "'combine' must use both of its arguments")
  }
  .Call(r_op, "reduce_with", list(mapped@handle, combined@handle), c(margin, identity), NULL)
}

# ---- operands and results -----------------------------------------------------------------------

# The operands as matrices of one shape; whether all operands are base R (base) and none is a matrix
# (vector); names and dimensions of the result.
map_inputs <- function(operands, arguments, where) {
  device <- vapply(operands, is_cl, NA)
  plain <- lapply(seq_along(operands), function(k) {
    if (device[k]) operands[[k]] else check_numeric(operands[[k]], arguments[k])
  })
  vector <- !any(device) && all(vapply(plain, function(x) is.null(dim(x)), NA))
  names <- if (vector) names(plain[[1L]])
  like <- if (any(device)) plain[[which(device)[1L]]]
  matrices <- lapply(plain, function(x) if (is_cl(x)) x else input_matrix(x, like, where))
  dim <- common_dim(matrices, arguments)
  whole <- lapply(matrices, function(x) {
    if (identical(x@Dim, dim)) x else value(repeated(x, dim), dim, NULL, "general")
  })
  names(whole) <- names(operands)
  list(matrices = whole, dim = dim, base = !any(device), vector = vector,
       names = if (vector) names else common_names(matrices, dim))
}

# A base R operand on the engine of a clMatrix, or on engine `where`.
input_matrix <- function(x, like, where) {
  names <- dimnames(x)
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  if (!is.null(like)) return(like(x, like, names))
  new_cl(.Call(r_matrix_new, x, nrow(x), ncol(x), 0L, where), dim(x), names)
}

# With names; a base R value if all inputs are base R.
map_finish <- function(x, inputs) {
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

# ---- records ------------------------------------------------------------------------------------

# The computation of f for one element of each of `count` operands: list(nodes, as they are in a
# tape (R/trace.R), NULL if not needed; results, a node each; names, of the list that f returns, or
# FALSE if it returns no list; indices, the names of those of its arguments that are row and column
# numbers).
record_map <- function(f, names, count, argument = "f") {
  indices <- index_arguments(f, names, count)
  point <- rep(list(0), count + length(indices))
  if (length(indices) > 0L || !is.null(names)) {
    names(point) <- c(if (is.null(names)) rep("", count) else names, indices)
  }
  trace <- trace_function(f, point, more = element_masks(), few = TRUE, prepare = function(tape) {
    tape$argument <- argument
    tape$elements <- TRUE
    tape$add <- only_elements(tape$add)
  })
  result <- trace$result
  listed <- is.list(result)
  results <- vapply(if (listed) result else list(result), function(x) {
    if (is_traced(x) && length(x) == 1L || is_constant(x)) return(trace$node(x))
    what <- if (is_traced(x)) sprintf("%d elements", length(x)) else describe(x)
    abort_argument(argument, sprintf("'%s' must return an element or a number, not %s", argument,
                                     what))
  }, 0)
  nodes <- lapply(seq_len(trace$tape$count), node_at, tape = trace$tape)
  reached <- seq_along(nodes) %in% results
  for (k in rev(seq_along(nodes))) if (reached[k]) reached[nodes[[k]][[3L]]] <- TRUE
  nodes[!reached] <- list(NULL)
  list(nodes = nodes, results = results, names = if (listed) names(result) else FALSE,
       indices = indices)
}

# The tape's function add() for functions of elements.
only_elements <- function(add) {
  force(add)
  function(kind, op, args, at, number, n) {
    if (n != 1L || !kind %in% c("param", "number", "apply")) trace_stop(only_elements_text)
    add(kind, op, args, at, number, n)
  }
}

only_elements_text <- paste("a function of elements can use only elements and numbers: pass",
                            "vectors and matrices as further arguments")

# Functions that have the same values for elements as for a clMatrix, to the last digit: those for a
# clMatrix, with what they call replaced.
element_masks <- function() {
  if (is.null(tracing$element_masks)) {
    own <- element_functions()
    names <- c("dnorm", "pnorm", "qnorm", "plogis")
    masks <- lapply(names, function(name) mask(name, own[[paste0(name, "_cl")]], get(name)))
    tracing$element_masks <- stats::setNames(masks, names)
  }
  tracing$element_masks
}

element_functions <- function() {
  home <- new.env(parent = topenv())
  for (name in c("standardized", "at_zero_sd", "log_of", "rounded", "dnorm_cl", "pnorm_cl",
                 "qnorm_cl", "plogis_cl")) {
    f <- get(name)
    environment(f) <- home
    assign(name, f, envir = home)
  }
  home$is_cl <- is_traced
  home$is_number <- function(x) !is_traced(x) && is_number(x)
  home$lazy_op <- trace_apply
  home$cl_ifelse <- traced_choice
  home
}

# Arguments named i and j of f that remain after `count` operands are matched.
index_arguments <- function(f, names, count) {
  wanted <- names(formals(args(f)))
  if (!any(c("i", "j") %in% wanted)) return(character())
  free <- setdiff(wanted, c("...", names))
  unnamed <- if (is.null(names)) count else sum(!nzchar(names))
  intersect(c("i", "j"), free[seq_along(free) > unnamed])
}

# The results of a record, each a clMatrix or a number.
map_values <- function(record, inputs) {
  given <- c(inputs$matrices, lapply(record$indices, function(name) {
    value(index_handle(inputs$matrices[[1L]], match(name, c("i", "j"))), inputs$dim, NULL,
          "general")
  }))
  values <- vector("list", length(record$nodes))
  for (k in seq_along(values)) {
    node <- record$nodes[[k]]
    if (is.null(node)) next
    values[[k]] <- switch(node[[1L]], param = given[[node[[4L]][1L] + 1]], number = node[[5L]],
                          apply_values(node[[2L]], values[node[[3L]]]))
  }
  values[record$results]
}

apply_values <- function(op, operands) {
  if (!any_cl(operands)) return(do.call(core_numbers, c(op, operands)))
  if (length(operands) == 3L) return(apply_op(op, operands, rep("...", 3L)))
  .Call(r_lazy_apply, op, operands[[1L]], if (length(operands) == 2L) operands[[2L]])
}

# The same as lazy matrices of the shape of the inputs.
map_results <- function(record, inputs) {
  lapply(map_values(record, inputs), function(x) {
    if (is_cl(x)) x else value(repeated(like(matrix(x), inputs$matrices[[1L]]), inputs$dim))
  })
}

# A record of f for these matrices.
recorded_map <- function(f, matrices, argument) {
  entry <- map_entry(check_function(f, argument), names(matrices), length(matrices), argument)
  if (is.null(entry$record)) record_map(f, names(matrices), length(matrices), argument)
  else entry$record
}

# The only result of a function of cl_reduce().
map_result <- function(f, inputs, argument) {
  record <- recorded_map(f, inputs$matrices, argument)
  if (!isFALSE(record$names)) {
    abort_argument(argument, sprintf("'%s' must return an element or a number, not a list",
                                     argument))
  }
  map_results(record, inputs)[[1L]]
}
