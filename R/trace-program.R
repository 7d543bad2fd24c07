# cl_gradient(): a plain R function with its gradient. The function is traced (R/trace.R), and the
# record becomes a program of the core, which runs without R.

#' Gradient of a plain R function
#'
#' `cl_gradient(f)` returns `f` with its gradient, for [cl_sample()], [cl_objective()] and
#' [cl_log_posterior()]. You write the model; its derivatives are computed for you. `f` takes
#' parameters and returns one number, for example a log density.
#'
#' The first call runs `f` once with placeholders for the parameters and records the operations on
#' them. The record is differentiated in reverse mode and compiled for the engine that is
#' estimated to take less time (see [cl_use()]); later calls run the compiled program, without R.
#' Loops are *rolled*: what their iterations do alike is done at once, by operations on vectors, or
#' by a compiled loop as that of [cl_scan()] where an iteration needs those before it.
#' The record is valid for all values of the parameters; `f` is recorded again if their lengths or
#' dimensions change. Everything else that `f` uses is data: R computes it while recording, and it
#' is copied to the engine once.
#'
#' @section What `f` may use:
#' - arithmetic, comparisons, mathematical functions, `sum`, `prod`, `min`, `max`, `mean`, `cumsum`,
#'   `cumprod`, `gamma`, `lgamma`, `beta`, `choose` and their relatives, `besselK` (whose order is
#'   data), `pmin`, `pmax`, `ifelse`, [cl_ifelse()], [cl_inv_logit()] and the functions documented
#'   with it, [cl_log_sum_exp()], [cl_softmax()];
#' - `%*%`, `crossprod`, `tcrossprod`, `outer`, `chol`, `backsolve`, `forwardsolve`, `chol2inv`,
#'   [cl_tri_inverse()], `diag`, `t`, `solve`, `det` and `determinant` (by LU factors; above order
#'   128 these are computed on the host even if a device is in use, where a Cholesky factor is
#'   faster);
#' - sparse matrices of the package Matrix, which stay sparse in products, sums, multiples,
#'   `kronecker`, `t`, `x[i, j]`, `diag`, `Diagonal`, `sparseMatrix`, `bdiag`, and if they are
#'   symmetric, in `solve`, `determinant` and `chol` (the upper factor, not permuted, with what
#'   fills in), by a sparse Cholesky factor on the host: then they must be positive definite, or the
#'   result is `NaN`. All other functions make them dense;
#' - `x[i]`, `x[[i]]`, `x[i] <- value` in all forms, with indices that do not depend on parameters;
#'   `c`, `cbind`, `rbind`, `rep`, `rev`, `head`, `tail`, `matrix`, `array`, `aperm`, `unlist`,
#'   `diff`, `sweep`, `rowSums`, `colSums`, `rowMeans`, `colMeans`, `rowsum`, `tapply`, `var`,
#'   `cov`, `cor`, `cov2cor`, `mahalanobis`, `norm`; `na.rm = TRUE` omits missing data;
#' - `for`, `lapply`, `sapply`, `vapply`, `mapply`, `Map`, `Reduce` and `apply`; for recursions also
#'   [cl_scan()], which records one step for all;
#' - densities and distribution functions under R's names, such as `dnorm(y, mu, sigma, log =
#'   TRUE)`, differentiable with respect to all real-valued arguments; in addition `dmvnorm`,
#'   `dlkj`, `dwishart` and `dordlogit`, which R does not have: see [cl_densities];
#' - [cl_cov()] and [cl_distance()] with the [kernels], parameters and points; [cl_glm_lpdf()], a
#'   [cl_likelihood()], and [priors];
#' - your own functions that use these, by name or in a list, and functions of packages that use
#'   only these.
#'
#' Names and dimnames of parameters are kept and follow R's rules in `f`, so `par["mu"]` works.
#' An error that only a recorded value has is not passed to the `tryCatch()` of `f`; `print()`,
#' `cat()` and `str()` show what is recorded. A decision that depends on a parameter (`if`, `while`,
#' a length, an index) cannot be recorded: select elements with `ifelse`, whose branch that is not
#' taken may have any numbers, or use `retrace = TRUE`. Then `f` is run at every call, and
#' comparisons have the values of that call; a record is compiled only if it differs from earlier
#' ones.
#'
#' @param f A function of named parameters, `function(mu, tau, theta)`, or of one list,
#'   `function(p)`, that returns one number. Arguments that are not supplied in a call keep their
#'   defaults and are data.
#' @param retrace Whether to run `f` at every call, see below.
#' @param roll Whether loops are rolled. The iterations are compared one by one, and only what is
#'   proved to be the same becomes one operation: with `FALSE`, which keeps the operations as they
#'   were recorded, results differ by rounding error, as sums may have another order. `print()`
#'   says how many operations were recorded and how many are left.
#' @param ... For `cl_gradient()`: must be empty. For `update()`: new values of variables of `f`, by
#'   name, with the same lengths and dimensions.
#' @param object,x A result of `cl_gradient()`.
#' @return A function of class `"cl_gradient"`, called like `f`: with the parameters by name, or
#'   with one list; a function of one list also accepts the elements of the list as named arguments.
#'   Its value is the number with the attribute `"gradient"`, a list with the names, lengths and
#'   dimensions of the parameters; `NaN` if a matrix has no Cholesky factor.
#'
#'   `update()` modifies `object` itself and returns it, invisibly: `f` then uses the new values.
#'   Everything that does not depend on them stays compiled and on the engine. The variables
#'   themselves do not change.
#' @section Errors:
#' `statcl_error_argument` if `f` is not a function; if a call has arguments that are not numeric or
#' that `f` does not have; if `update()` is given values of another shape or names no variable of
#' `f`; and while `f` is recorded: if it makes a decision that depends on a parameter, uses a
#' function that is not available, combines shapes that do not conform, assigns a value that depends
#' on parameters outside of itself, or returns anything but one number. The message names the call
#' in `f`. The warning `statcl_warning_unused` names parameters that `f` does not use: their
#' gradient is zero.
#' @seealso [cl_map_gradient()] for several points at once; [cl_check_gradient()] compares a
#'   gradient with differences.
#' @export
#' @examples
#' # Eight schools
#' y <- c(28, 8, -3, 7, -1, 1, 18, 12)
#' sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
#' f <- cl_gradient(function(mu, tau, z) {
#'   theta <- mu + tau * z
#'   sum(dnorm(y, theta, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
#'     dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
#' })
#' f(mu = 1, tau = 2, z = numeric(8))
#' f
#' cl_check_gradient(f, mu = 1, tau = 2, z = (1:8) / 8)
#'
#' fit <- cl_sample(f, list(mu = 0, tau = 1, z = numeric(8)), chains = 1, warmup = 100, iter = 100,
#'                  transform = list(tau = cl_lower(0)), seed = 1)
#' update(f, y = y + 1)
#' f(mu = 1, tau = 2, z = numeric(8))
#'
#' # One list, and an optimiser
#' g <- cl_gradient(function(p) -sum((p$x - 1:3)^2) - exp(p$s) + p$s)
#' objective <- cl_objective(g, init = list(x = numeric(3), s = 1))
#' optim(objective$par, objective$fn, objective$gr, method = "BFGS")$par
cl_gradient <- function(f, retrace = FALSE, roll = TRUE, ...) {
  check_function(f, "f")
  if (is.primitive(f) || is.object(f) || length(formals(f)) == 0L) {
    abort_argument("f", "'f' must be a plain R function of one or more parameters")
  }
  check_flag(retrace, "retrace")
  check_flag(roll, "roll")
  if (...length() > 0L) abort_argument("...", "cl_gradient() has no further arguments")
  state <- new.env(parent = environment(cl_gradient))
  state$f <- f
  state$retrace <- retrace
  state$roll <- roll
  state$overrides <- list()
  state$names <- setdiff(names(formals(f)), "...")
  state$tests <- lapply(state$names, function(name) call("missing", as.name(name)))
  state$variadic <- "..." %in% names(formals(f)) || length(state$names) == 1L
  state$known <- list()
  state$gain <- 0
  model <- function() NULL
  dots <- "..." %in% names(formals(f))
  formals(model) <- c(formals(f), if (!dots) alist(... = ))
  body(model) <- model_body(quote(.run(environment(), nargs())), state$variadic)
  state$.refuse <- function(...) refuse_further(state, ...)
  state$.run <- function(frame, count) run_gradient(state, frame, count)
  environment(model) <- state
  state$several <- model
  body(state$several) <- model_body(quote(.several(environment(), nargs())), state$variadic)
  state$.several <- function(frame, count) run_several(state, frame, count)
  structure(model, class = c("cl_gradient", "function"))
}

# ---- calls ---------------------------------------------------------------------------------------

# Raises an error of this package for arguments that f does not have; R's own would have no class.
model_body <- function(call, variadic) {
  if (variadic) call else bquote(if (...length() > 0L) .refuse(...) else .(call))
}

# Refuses a call with an argument that f does not have.
refuse_further <- function(state, ...) {
  names <- c(names(match.call(expand.dots = FALSE)$...), "")
  what <- if (nzchar(names[1L])) sprintf("no parameter '%s'", names[1L]) else "fewer parameters"
  abort_argument("...", sprintf("'f' has %s: its parameters are %s", what,
                                paste0("'", state$names, "'", collapse = ", ")))
}

# The value at the arguments of a call of the model, given its frame and the number of arguments.
run_gradient <- function(state, frame, count) {
  all_given <- gives_all(state, frame, count)
  if (all_given) {
    answer <- run_plain(state, mget(state$names, envir = frame))
    if (!is.null(answer)) return(answer)
  }
  point <- if (all_given) named_point(state, frame) else call_point(state, frame)
  prepare_point(state, point)
  if (is.null(state$program)) {
    return(structure(state$constant, gradient = lapply(point$values, function(v) v * 0)))
  }
  .Call(r_program_evaluate, state$program, point$values, NULL)
}

# Whether the call gives each parameter of f by an argument: of one that may also be a list of all
# parameters, whether it is numbers.
gives_all <- function(state, frame, count) {
  count == length(state$names) && (!state$variadic || length(state$names) == 1L &&
    !eval(state$tests[[1L]], frame) && is.numeric(get(state$names, envir = frame)))
}

# The usual case: there is a program for parameters of these lengths and dimensions. NULL otherwise.
run_plain <- function(state, values, several = FALSE) {
  usual <- !is.null(state$program) && !state$retrace && !state$listed &&
    is.null(state$element_names) && state$gain == 0
  if (!usual) return(NULL)
  if (several) return(.Call(r_program_evaluate_vectors, state$program, values, state$like))
  .Call(r_program_evaluate, state$program, values, state$like)
}

# Compiles the function for a point like this one unless that has been done.
prepare_point <- function(state, point) {
  live <- identical(state$pid, Sys.getpid()) &&
    (is.null(state$program) || .Call(r_program_is_live, state$program))
  if (!live) state$known <- list() # this is a copy in another session
  ready <- live && !state$retrace && same_shapes(point$values, state$shapes) &&
    point$listed == state$listed && same_names(point$values, state$element_names)
  if (!ready) {
    compile_point(state, point)
  } else if (state$gain > 0) {
    count_evaluation(state, unlist(point$values, use.names = FALSE))
  }
}

same_shapes <- function(values, shapes) {
  if (!identical(names(values), names(shapes))) return(FALSE)
  for (k in seq_along(values)) {
    if (!identical(shape_key(values[[k]]), shapes[[k]])) return(FALSE)
  }
  TRUE
}

# Whether vectors have the names by which f has found their elements, or none.
same_names <- function(values, known) {
  is.null(known) || all(mapply(function(v, names) {
    is.null(labels_of(v)) || identical(labels_of(v), names)
  }, values, known))
}

run_model <- function(state, x) {
  if (is.null(state$program)) return(c(state$constant, numeric(length(x))))
  .Call(r_program_run, state$program, x, TRUE)
}

shape_key <- function(x) if (is.null(dim(x))) length(x) else dim(x)

# The gradient by parameter.
split_slope <- function(slope, values) {
  result <- vector("list", length(values))
  names(result) <- names(values)
  last <- 0L
  for (k in seq_along(values)) {
    n <- length(values[[k]])
    part <- if (n == length(slope)) slope else slope[last + seq_len(n)]
    if (!is.null(dim(values[[k]]))) dim(part) <- dim(values[[k]])
    result[[k]] <- part
    last <- last + n
  }
  result
}

# call_point() if all arguments are given.
named_point <- function(state, frame) {
  values <- mget(state$names, envir = frame)
  for (v in values) if (!is.numeric(v) || is.object(v)) check_point(values)
  list(values = values, listed = FALSE)
}

# list(values: the parameters by name, listed: whether f takes them as one list).
call_point <- function(state, frame) {
  given <- list()
  for (k in seq_along(state$names)) {
    name <- state$names[k]
    if (!eval(state$tests[[k]], frame)) given[name] <- list(get(name, envir = frame))
  }
  if (state$variadic) given <- c(given, eval(quote(list(...)), frame))
  listed <- FALSE
  if (length(state$names) == 1L) {
    only <- state$names
    if (length(given) == 1L && is.list(given[[1L]]) && identical(names(given), only)) {
      given <- given[[1L]]
      listed <- TRUE
    } else if (!identical(names(given), only) && length(given) > 0L) {
      listed <- !"..." %in% names(formals(state$f))
    }
  }
  check_point(given)
  list(values = given, listed = listed)
}

check_point <- function(values) {
  if (length(values) == 0L) abort_argument("...", "supply the parameters of 'f'")
  names <- names(values)
  if (is.null(names) || !all(nzchar(names)) || anyDuplicated(names) > 0L) {
    abort_argument("...", "the parameters of 'f' must have unique names")
  }
  for (name in names) {
    v <- values[[name]]
    if (!is.numeric(v) || is.object(v)) {
      abort_argument(name, sprintf("'%s' must be numeric, not %s", name, describe(v)))
    }
  }
}

# ---- compiling -----------------------------------------------------------------------------------

# Traces f and sets state$program to the program for this point; an earlier program if it has the
# same nodes.
compile_point <- function(state, point) {
  trace <- trace_model(state, point)
  output <- model_output(state$f, trace)
  if (is.null(output)) {
    state$program <- NULL
    state$gain <- 0
    state$constant <- as.double(trace$result)
    used <- logical(length(point$values))
    state$nodes <- list(kind = character(), op = character(), args = list())
    state$reached <- integer()
  } else {
    nodes <- node_columns(trace$tape, state$roll)
    reached <- reached_nodes(nodes$args, output)
    used <- used_parameters_of(nodes, reached, lengths(point$values))
    program <- known_program(state, nodes, trace$tape$data, output)
    if (is.null(program)) {
      program <- make_program(state, trace$tape, nodes, as.double(sum(lengths(point$values))),
                              output)
    }
    keep_program(state, program, nodes, trace$tape$data, output)
    state$reached <- reached
    suggest_scan(state, trace$tape)
  }
  state$shapes <- lapply(point$values, shape_key)
  state$element_names <- if (trace$tape$named) lapply(point$values, labels_of)
  state$listed <- point$listed
  state$like <- lapply(point$values, function(v) v * 0)
  state$pid <- Sys.getpid()
  warn_unused(state, names(point$values)[!used])
}

trace_model <- function(state, point) {
  outside <- assigned_outside(state$f)
  trace <- base::tryCatch(
    trace_function(state$f, point$values, point$listed, state$retrace,
                   overrides = state$overrides),
    error = function(e) {
      restore_outside(outside)
      if (inherits(e, "stackOverflowError")) {
        statcl_abort("argument", paste("'f' cannot be traced: its calls are nested too deeply; a",
                                       "recursion must end by values that do not depend on",
                                       "parameters"), argument = "f", traced = TRUE, parent = e)
      }
      stop(e)
    })
  leaked <- restore_outside(outside)
  if (length(leaked) > 0L) {
    abort_argument("f", paste("'f' cannot be traced:", outside_text(leaked[1L])))
  }
  trace
}

# Many operations on a few numbers each are of a loop that cannot be rolled. Reported once per
# session.
suggest_scan <- function(state, tape) {
  if (!state$roll || tape$count < many_operations || !is.null(announced_copies[["for"]])) {
    return(invisible())
  }
  facts <- .Call(r_program_facts, state$program)
  few <- facts[["operations"]]
  if (few < many_operations || facts[["elements"]] > 8 * few) return(invisible())
  assign("for", TRUE, envir = announced_copies)
  text <- sprintf(paste("'f' has %.0f operations on a few numbers each, as the iterations of its",
                        "loops differ: cl_scan() is quicker for loops of many steps (this message",
                        "appears once per session)\n"), few)
  message(structure(list(message = text, call = NULL),
                    class = c("statcl_message_unrolled", "statcl_message", "message",
                              "condition")))
}

many_operations <- 6000L

# The node of the result; NULL if it is a plain number.
model_output <- function(f, trace) {
  result <- trace$result
  one <- (is_traced(result) || is.numeric(result) && !is.object(result)) && length(result) == 1L
  if (!one) {
    what <- if (is_traced(result)) sprintf("%d numbers", length(result)) else describe(result)
    abort_argument("f", sprintf("'f' must return one number, but '%s' gives %s",
                                call_line(last_expression(body(f))), what))
  }
  if (is_traced(result)) trace$node(result)
}

last_expression <- function(e) {
  while (is.call(e) && identical(e[[1L]], quote(`{`)) && length(e) > 1L) e <- e[[length(e)]]
  if (is.call(e) && identical(e[[1L]], quote(return)) && length(e) == 2L) e[[2L]] else e
}

# The nodes in the form that src/r/program.c reads.
node_columns <- function(tape, roll = FALSE) {
  all <- seq_len(tape$count)
  list(kind = tape$kind[all], op = tape$op[all], args = tape$args[all], at = tape$at[all],
       number = tape$number[all], scans = tape$scans, roll = roll)
}

# The nodes on which a node depends, including itself.
reached_nodes <- function(args, output) which(.Call(r_trace_reached, args, output))

# Whether each parameter is used. Each has one node, in order.
used_parameters_of <- function(nodes, reached, sizes) {
  used <- sizes == 0L
  used[sizes > 0L] <- tabulate(reached, length(nodes$kind))[nodes$kind == "param"] > 0L
  used
}

warn_unused <- function(state, names) {
  names <- setdiff(names, state$warned)
  if (length(names) == 0L) return(invisible())
  state$warned <- c(state$warned, names)
  statcl_warning("unused", sprintf("'f' does not use %s: the gradient is zero there",
                                   paste0("'", names, "'", collapse = ", ")))
}

most_programs <- 16L

# A program made in this process from the same nodes, with these data; NULL if there is none.
known_program <- function(state, nodes, data, output) {
  for (k in seq_along(state$known)) {
    old <- state$known[[k]]
    if (old$pid != Sys.getpid() || old$output != output || !identical(old$nodes, nodes)) next
    if (!identical(lengths(old$data), lengths(data))) next
    if (!renew_data(old$program, old$data, data)) next
    state$where <- old$where
    return(old$program)
  }
  NULL
}

# Replaces the old data in the program; FALSE if that is impossible because indices are among them.
renew_data <- function(program, old, new) {
  tryCatch({
    for (k in which(!mapply(identical, old, new))) {
      .Call(r_program_set_data, program, k, new[[k]])
    }
    TRUE
  }, statcl_error_argument = function(e) FALSE, statcl_error_stale = function(e) FALSE)
}

keep_program <- function(state, program, nodes, data, output) {
  state$program <- program
  state$nodes <- nodes
  same <- vapply(state$known, function(old) identical(old$program, program), NA)
  entry <- list(program = program, nodes = nodes, data = data, output = output, pid = Sys.getpid(),
                where = state$where)
  state$known <- utils::head(c(list(entry), state$known[!same]),
                             if (state$retrace) most_programs else 1L)
}

# ---- assignments outside of f --------------------------------------------------------------------

# The variables that f, and the functions that it calls by name, assign with `<<-`, with their
# current values: a list of name, home (NULL if the variable does not exist) and value.
assigned_outside <- function(f) {
  found <- list()
  done <- list()
  visit <- function(e, home) {
    if (!is.call(e)) return()
    if (identical(e[[1L]], quote(`<<-`))) {
      target <- e[[2L]]
      while (is.call(target)) target <- target[[2L]]
      name <- as.character(target)
      at <- home_of(name, home)
      found <<- c(found, list(list(name = name, home = at,
                                   value = if (!is.null(at)) get(name, envir = at))))
    }
    for (part in as.list(e)) if (!missing(part)) visit(part, home)
  }
  search <- function(g) {
    if (any(vapply(done, identical, NA, g))) return()
    done <<- c(done, list(g))
    visit(body(g), environment(g))
    for (name in names_in(g)) {
      value <- get0(name, envir = environment(g), mode = "function")
      if (is_followed(value)) search(value)
    }
  }
  search(f)
  unique(found)
}

home_of <- function(name, from) {
  while (!identical(from, emptyenv())) {
    if (exists(name, envir = from, inherits = FALSE)) return(from)
    from <- parent.env(from)
  }
  NULL
}

# Restores variables to which traced values were assigned, and returns their names.
restore_outside <- function(outside) {
  leaked <- character()
  for (variable in outside) {
    home <- if (is.null(variable$home)) globalenv() else variable$home
    now <- get0(variable$name, envir = home, inherits = FALSE)
    if (!contains_traced(now)) next
    leaked <- c(leaked, variable$name)
    if (is.null(variable$home)) {
      rm(list = variable$name, envir = home)
    } else {
      assign(variable$name, variable$value, envir = home)
    }
  }
  leaked
}
