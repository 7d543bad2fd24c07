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
#' With `sparse = TRUE` the pattern of the Hessian is found from the recorded operations, and only
#' its elements are computed: for functions of very many parameters, each of which interacts with
#' few others.
#'
#' @param f A function as for [cl_gradient()], or a result of `cl_gradient()`, whose data it then
#'   shares, including later changes by `update()`.
#' @param sparse Whether the result is a sparse matrix, of the class `dsCMatrix` of the package
#'   Matrix. An element outside of its pattern is 0 for all parameters.
#' @param x A result of `cl_hessian()`.
#' @param ... Must be empty.
#' @return A function called like `f`, with one more argument, `.direction = NULL`. Its value is the
#'   symmetric matrix of second derivatives, with one row and one column for each element of the
#'   parameters, in their order, named `"mu"`, `"theta[1]"`, ...; with `.direction`, a numeric
#'   vector with as many elements as the parameters have (or a list like them), the product of that
#'   matrix and the vector. `NaN` if a matrix has no Cholesky factor.
#' @section Errors:
#' Those of [cl_gradient()]; `statcl_error_argument` if `.direction` does not have the length of the
#' parameters, if a derivative that is needed is not available, or for `sparse = TRUE` if an
#' operation has no rule for it, such as `chol()` of a matrix that depends on parameters;
#' `statcl_error_memory` before a sparse Hessian takes more memory than the machine has.
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
#'
#' walk <- function(u) -sum(diff(u)^2) / 2 - sum(exp(u))
#' if (requireNamespace("Matrix", quietly = TRUE)) cl_hessian(walk, sparse = TRUE)(numeric(6))
cl_hessian <- function(f, sparse = FALSE) {
  check_flag(sparse, "sparse")
  if (sparse && !requireNamespace("Matrix", quietly = TRUE)) {
    abort_argument("sparse", "'sparse = TRUE' needs the package Matrix")
  }
  gradient <- if (inherits(f, "cl_gradient")) f else cl_gradient(f)
  state <- new.env(parent = environment(cl_hessian))
  state$gradient <- environment(gradient)
  state$program <- NULL
  state$order <- 2L
  state$sparse <- sparse
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
    if (!is.null(direction)) return(0 * direction)
    if (state$sparse) return(sparse_hessian(numeric(), integer(), integer(), point))
    return(named_hessian(numeric(length(x)^2), point))
  }
  if (state$sparse) return(run_sparse_hessian(state, point, x, direction))
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

run_sparse_hessian <- function(state, point, x, direction) {
  s <- sparse_second(state, length(x))
  if (!is.null(direction)) return(.Call(r_sparse_along, s$program, x, direction))
  sparse_hessian(.Call(r_sparse_run, s$program, x), s$row, s$column, point)
}

# The program of the sparse Hessian that belongs to the current program, with its pattern.
sparse_second <- function(state, n) {
  of <- state$gradient$known[[1L]]
  key <- list(of$nodes, of$data, of$output, state$gradient$where)
  live <- identical(state$sparse_of, key) && .Call(r_sparse_is_live, state$second$program)
  if (!live) {
    state$second <- sparse_program(state$gradient$where, of, rep(TRUE, n))
    state$sparse_of <- key
    if (is.null(state$second)) {
      state$sparse_of <- NULL
      abort_argument("f", paste("'f' has an operation without sparse second derivatives (see",
                                "?cl_hessian): use sparse = FALSE"))
    }
  }
  state$second
}

# list(program, start, row, column) of the second derivatives by chosen parameters, the lower
# triangle by columns, counted from 0; NULL if an operation has no rule for them. An error if they
# take too much memory.
sparse_program <- function(where, of, chosen) {
  # loops are first rolled; recursions that are left have no rule, but their single steps do
  for (rolled in c(TRUE, FALSE)) {
    program <- tryCatch(
      .Call(r_sparse_make, where, of$nodes, of$data, as.double(length(chosen)), of$output,
            as.raw(chosen), rolled, most_sparse()),
      statcl_error_argument = function(e) NULL)
    if (!is.null(program) || !isTRUE(of$nodes[[7L]])) break
  }
  if (is.null(program)) return(NULL)
  pattern <- .Call(r_sparse_pattern, program)
  list(program = program, start = pattern[[1L]], row = pattern[[2L]],
       column = rep.int(seq_len(sum(chosen)) - 1L, diff(pattern[[1L]])))
}

# Numbers of intermediate sparse matrices, of which each takes about 128 bytes.
most_sparse <- function() {
  limit <- .Call(r_memory_limit)
  if (limit > 0) min(2^26, limit / 128) else 2^26
}

sparse_hessian <- function(h, row, column, point) {
  names <- parameter_layout(point$values, NULL)$names
  Matrix::sparseMatrix(row, column, x = h, dims = rep(length(names), 2L), symmetric = TRUE,
                       index1 = FALSE, dimnames = list(names, names))
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
  if (state$sparse && !is.null(state$second)) {
    cat(sprintf("%d parameters; %d numbers of the lower triangle\n",
                length(state$second$start) - 1L, length(state$second$row)))
  } else if (is.null(state$program)) {
    cat("not compiled yet: it is at the first call\n")
  } else {
    facts <- .Call(r_program_facts, state$program)
    cat(sprintf("%.0f parameters; %.0f kernels, %.0f calls for each column; %s\n",
                facts[["parameters"]], facts[["kernels"]], facts[["calls"]],
                bytes_text(facts[["bytes"]])))
  }
  invisible(x)
}
