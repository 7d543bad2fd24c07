# cl_generate(): functions of the draws.

#' Quantities generated from draws
#'
#' Evaluates a function at every draw: derived quantities, predictions, log likelihoods of
#' observations, simulated data.
#'
#' `f` is called with the parameters of a draw, in the shapes that they had in `init`: with those
#' that its arguments name; or, if it has one argument of another name, with all of them, as a list,
#' or as a named vector if `init` was one or `fit` is a fit of [cl_glm()] or [cl_gp()].
#'
#' If calling `f` at each draw would take long, it is recorded once, as by [cl_gradient()], and the
#' record is evaluated at many draws at a time, on the engine in use. A function that draws random
#' numbers or that cannot be recorded is called at each draw, in order.
#'
#' @param fit A result of [cl_sample()] or of [cl_laplace()] and its relatives, or a fit of
#'   [cl_glm()] or [cl_gp()] with `method = "mcmc"`.
#' @param f A function of a draw that returns numbers: a vector, a matrix, or a list of these by
#'   name, with the same lengths at every draw. Or a program of [cl_stan()] whose parameters are
#'   among those of the draws: its transformed parameters and generated quantities.
#' @param seed An integer for the random numbers in `f`; `NULL`: the state of R's generator.
#' @param batch `FALSE`: call `f` at each draw. `TRUE`: record it, or give the error that prevents
#'   this. `NULL` chooses.
#' @param data `NULL`, or the data of `f`, a program of [cl_stan()].
#' @return An array iteration x chain x variable of class `"draws_array"`, which the package
#'   posterior understands (`posterior::as_draws_rvars()`, `posterior::summarise_draws()`).
#' @section Errors:
#' `statcl_error_argument` if `fit` has no draws, if `f` is not such a function or fails at a draw,
#' and with `batch = TRUE` if it cannot be recorded or draws random numbers.
#' @seealso [cl_sample()]
#' @export
#' @examples
#' density <- cl_gradient(function(mu, tau) {
#'   sum(dnorm(mtcars$mpg, mu, tau, log = TRUE)) + dnorm(mu, 20, 10, log = TRUE) - log(tau)
#' })
#' fit <- cl_sample(density, list(mu = 20, tau = 5), transform = list(tau = cl_lower(0)),
#'                  chains = 2, warmup = 200, iter = 100, seed = 1)
#' ratio <- cl_generate(fit, function(mu, tau) list(ratio = mu / tau))
#' quantile(ratio, c(0.05, 0.95))
#' replicated <- cl_generate(fit, function(mu, tau) rnorm(32, mu, tau), seed = 1)
#' dim(replicated)
cl_generate <- function(fit, f, seed = NULL, batch = NULL, data = NULL) {
  draws <- if (inherits(fit, c("cl_sample", "cl_glm", "cl_gp"))) fit_draws(fit)
  if (is.null(draws)) {
    abort_argument("fit", sprintf("'fit' must be a result of cl_sample(), not %s", describe(fit)))
  }
  check_function(f, "f")
  if (inherits(f, "cl_stan")) f <- f(data)
  if (!is.null(batch)) check_flag(batch, "batch")
  if (!is.null(seed)) check_count(seed, "seed", lower = -.Machine$integer.max)
  x <- t(as.matrix(draws))
  arguments <- if (inherits(fit, "cl_sample")) draws$arguments
  values <- with_seed(seed, values_at_draws(f, x, arguments, batch, dim(draws$draws)[1L]))
  size <- dim(draws$draws)[1:2]
  structure(array(t(values), c(size, nrow(values)),
                  list(iteration = as.character(seq_len(size[1L])),
                       chain = as.character(seq_len(size[2L])), variable = rownames(values))),
            class = c("draws_array", "draws", "array"))
}

# The values of f at the draws in columns of x, a row for each variable.
values_at_draws <- function(f, x, arguments, batch, iterations) UseMethod("values_at_draws")

values_at_draws.default <- function(f, x, arguments, batch, iterations) {
  call_f <- draw_caller(f, rownames(x), arguments)
  generate_values(call_f, x, batch, iterations)
}

# The arguments of draws without any: a number each.
single_arguments <- function(names) {
  Map(function(name, k) list(name = name, index = k), names, seq_along(names))
}

# function(x) that calls f with the parameters in the vector x.
draw_caller <- function(f, names, arguments) {
  as_list <- !is.null(arguments)
  if (!as_list) arguments <- single_arguments(names)
  by_name <- vapply(arguments, `[[`, "", "name", USE.NAMES = FALSE)
  takes <- names(formals(args(f)))
  used <- if ("..." %in% takes && as_list) by_name else intersect(by_name, takes)
  whole <- length(used) == 0L && length(takes) > 0L
  if (whole) used <- by_name
  needed <- setdiff(required_arguments(f), used)
  if (length(takes) == 0L || length(needed) > whole) {
    abort_argument("f", sprintf("'f' must be a function of the parameters %s, or of all of them%s",
                                paste(utils::head(by_name, 10L), collapse = ", "),
                                if (length(needed) > 0L)
                                  sprintf(": there is no parameter '%s'", needed[1L]) else ""))
  }
  chosen <- arguments[match(used, by_name)]
  plain <- whole && !as_list
  function(x) {
    if (plain) return(f(x))
    given <- lapply(chosen, function(a) as_argument(as.vector(x[a$index]), a))
    names(given) <- used
    if (whole) f(given) else do.call("f", given, quote = TRUE)
  }
}

required_arguments <- function(f) {
  formals <- as.list(formals(args(f)))
  setdiff(names(formals)[vapply(formals, function(a) identical(a, quote(expr = )), NA)], "...")
}

# The values of f, a column for each column of x, named as variables.
generate_values <- function(call_f, x, batch, iterations) {
  state <- random_state()
  started <- Sys.time()
  first <- value_at(call_f, x, 1L, iterations)
  seconds <- as.numeric(Sys.time() - started, units = "secs") * ncol(x)
  random <- !identical(state, random_state())
  values <- matrix(unlist(first), sum(lengths(first)), ncol(x))
  rownames(values) <- value_names(first)
  if (isTRUE(batch) && random) abort_argument("batch", "'f' draws random numbers")
  if (isTRUE(batch) || is.null(batch) && seconds > 0.25 && !random) {
    together <- generate_together(call_f, x, nrow(values), isTRUE(batch))
    last <- ncol(x)
    if (!is.null(together) && alike(together[, 1L], values[, 1L]) &&
          alike(together[, last], unlist(value_at(call_f, x, last, iterations)))) {
      values[] <- together
      return(values)
    }
    if (isTRUE(batch)) abort_argument("batch", "'f' has other values when it is recorded")
  }
  for (k in seq_len(ncol(x))[-1L]) {
    value <- unlist(value_at(call_f, x, k, iterations))
    if (length(value) != nrow(values)) {
      abort_argument("f", sprintf("'f' returns %d numbers at one draw and %d at another",
                                  nrow(values), length(value)))
    }
    values[, k] <- value
  }
  values
}

random_state <- function() get(".Random.seed", envir = globalenv())

# The value of f at column k as a list by name, which is NULL for a value that is not a list.
value_at <- function(call_f, x, k, iterations) {
  where <- function() sprintf("iteration %d of chain %d", (k - 1L) %% iterations + 1L,
                              (k - 1L) %/% iterations + 1L)
  value <- tryCatch(call_f(x[, k]), error = function(e) {
    abort_argument("f", sprintf("'f' failed at %s: %s", where(), conditionMessage(e)))
  })
  if (!is.list(value)) value <- list(value)
  value <- lapply(value, function(v) if (is_cl(v)) as.matrix(v) else v)
  numbers <- vapply(value, function(v) is.numeric(v) || is.logical(v), NA)
  if (!all(numbers)) {
    abort_argument("f", sprintf("'f' must return numbers, or a list of them, not %s",
                                describe(value[!numbers][[1L]])))
  }
  value
}

value_names <- function(value) {
  given <- names(value)
  if (is.null(given) && length(value) == 1L && !is.null(names(value[[1L]]))) {
    return(names(value[[1L]]))
  }
  if (is.null(given)) given <- if (length(value) == 1L) "value" else paste0("V", seq_along(value))
  unlist(Map(element_names, given, value), use.names = FALSE)
}

# The values at all draws by the record of f; NULL if it cannot be recorded, an error if `must`.
# Programs have one result: that of the weighted sum of f's values, whose gradient with respect to
# the weights is these values.
generate_together <- function(call_f, x, n, must) {
  model <- cl_gradient(function(x, w) sum(w * unlist(call_f(x))))
  failed <- function(e) if (must) stop(e)
  tryCatch(withCallingHandlers({
    model(x = x[, 1L], w = numeric(n))
    values <- matrix(0, n, ncol(x))
    for (first in seq(1L, ncol(x), by = 256L)) {
      columns <- first:min(ncol(x), first + 255L)
      points <- rbind(x[, columns, drop = FALSE], matrix(0, n, length(columns)))
      values[, columns] <- run_vectors(environment(model), points)[-seq_len(nrow(x) + 1L), ]
    }
    values
  }, statcl_warning_unused = function(w) invokeRestart("muffleWarning"),
  statcl_message = function(m) invokeRestart("muffleMessage")),
  statcl_error = failed)
}

alike <- function(a, b) isTRUE(all.equal(as.double(a), as.double(b), tolerance = 1e-8))
