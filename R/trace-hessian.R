# cl_hessian(): exact second derivatives of a plain R function.

#' Hessian of a plain R function
#'
#' Exact second derivatives of a function that [cl_gradient()] can record: for standard errors at a
#' mode, Newton's method, Laplace's approximation, or the metric of a sampler.
#'
#' The recorded function is differentiated twice, both times in reverse mode, and compiled at the
#' first call. A column of the Hessian then takes a small multiple of the time of a gradient. A
#' product with one direction does not form the matrix.
#'
#' @param f A function as for [cl_gradient()], or a result of `cl_gradient()`, whose data it then
#'   shares, including later changes by `update()`.
#' @param x A result of `cl_hessian()`.
#' @param ... Must be empty.
#' @return A function called like `f`, with one more argument, `.direction = NULL`. Its value is the
#'   symmetric matrix of second derivatives, with one row and one column for each element of the
#'   parameters, in their order, named `"mu"`, `"theta[1]"`, ...; with `.direction`, a numeric
#'   vector with as many elements as the parameters have (or a list like them), the product of that
#'   matrix and the vector. `NaN` if a matrix has no Cholesky factor.
#' @section Errors:
#' Those of [cl_gradient()]; `statcl_error_argument` if `.direction` does not have the length of the
#' parameters, or if a derivative that is needed is not available.
#' @seealso [cl_gradient()]
#' @export
#' @examples
#' y <- c(2, 0, 3, 1, 4)
#' x <- 1:5
#' f <- function(a, b) sum(dpois(y, exp(a + b * x), log = TRUE))
#' h <- cl_hessian(f)
#' objective <- cl_objective(cl_gradient(f), init = list(a = 0, b = 0))
#' mode <- optim(objective$par, objective$fn, objective$gr, method = "BFGS")$par
#' solve(-h(a = mode[["a"]], b = mode[["b"]]))
#' vcov(glm(y ~ x, family = poisson))
#'
#' h(a = 0, b = 0, .direction = c(1, 0))
cl_hessian <- function(f) {
  gradient <- if (inherits(f, "cl_gradient")) f else cl_gradient(f)
  state <- new.env(parent = environment(cl_hessian))
  state$gradient <- environment(gradient)
  state$program <- NULL
  state$order <- 2L
  state$.run <- function(frame, direction) run_hessian(state, frame, direction)
  model <- function() NULL
  formals(model) <- c(formals(gradient), alist(.direction = NULL))
  body(model) <- model_body(quote(.run(environment(), .direction)), state$gradient$variadic)
  state$.refuse <- state$gradient$.refuse
  environment(model) <- state
  structure(model, class = c("cl_hessian", "function"))
}

run_hessian <- function(state, frame, direction) {
  of <- state$gradient
  point <- call_point(of, frame)
  prepare_point(of, point)
  x <- as.double(unlist(point$values, use.names = FALSE))
  direction <- check_direction(direction, length(x))
  if (is.null(of$program)) { # f does not depend on its parameters
    return(if (is.null(direction)) named_hessian(numeric(length(x)^2), point) else 0 * direction)
  }
  program <- second_program(state, length(x))
  if (!is.null(direction)) return(.Call(r_program_product, program, x, direction))
  h <- .Call(r_program_hessian, program, x)
  named_hessian((h + t(h)) / 2, point)
}

# The program of second derivatives, or of state$order, that belongs to the current program of first
# derivatives.
second_program <- function(state, n) {
  of <- state$gradient$known[[1L]]
  current <- identical(state$nodes, of$nodes) && identical(state$output, of$output) &&
    identical(state$pid, Sys.getpid())
  if (current && identical(state$data, of$data)) return(state$program)
  if (!current || !renew_data(state$program, state$data, of$data)) {
    state$program <- .Call(r_program_make_second, state$gradient$where, of$nodes, of$data,
                           as.double(n), of$output, state$order)
  }
  state$nodes <- of$nodes
  state$output <- of$output
  state$data <- of$data
  state$pid <- Sys.getpid()
  state$program
}

check_direction <- function(direction, n) {
  if (is.null(direction)) return(NULL)
  if (is.list(direction)) direction <- unlist(direction, use.names = FALSE)
  if (!is.numeric(direction) || length(direction) != n) {
    abort_argument(".direction", sprintf(paste("'.direction' must be a numeric vector of length",
                                               "%d, not %s"), n, describe(direction)))
  }
  as.double(direction)
}

# A matrix with the names that cl_objective() gives to the elements of parameters.
named_hessian <- function(h, point) {
  names <- parameter_layout(point$values, NULL)$names
  matrix(h, length(names), length(names), dimnames = list(names, names))
}

#' @rdname cl_hessian
#' @export
print.cl_hessian <- function(x, ...) {
  state <- environment(x)
  cat(sprintf("<cl_hessian> function(%s)\n", paste(state$gradient$names, collapse = ", ")))
  if (is.null(state$program)) {
    cat("not compiled yet: it is at the first call\n")
  } else {
    facts <- .Call(r_program_facts, state$program)
    cat(sprintf("%.0f parameters; %.0f kernels, %.0f calls for each column; %s\n",
                facts[["parameters"]], facts[["kernels"]], facts[["calls"]],
                bytes_text(facts[["bytes"]])))
  }
  invisible(x)
}
