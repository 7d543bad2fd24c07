# Likelihoods of generalised linear models.

#' Log likelihood of a generalised linear model
#'
#' The log density of `y` given the linear predictor `alpha + x %*% beta`, summed over the
#' observations, and its gradients, in one pass over `x`. All constants of the density are included.
#'
#' With `eta = alpha + x %*% beta`, the families and their densities are as follows (names and
#' parameters are Stan's):
#'
#' `r family_help_table(c("y", "density"), "| family | y | log density of one y |")`
#'
#' where C is at most 2,000, `F(t) = 1 / (1 + exp(-t))`, and the first and last cuts are extended by
#' `-Inf` and `Inf`. They are computed without cancellation: value and derivatives keep their full
#' relative precision in both tails, and for counts up to 4e15.
#'
#' Several parameter vectors are evaluated together, in about one pass over `x`, when `beta` has one
#' more dimension: a matrix with M columns, or for `categorical_logit` a k x C x M array. The value
#' is then a vector of length M.
#'
#' With base R input the engine is chosen by the number of elements of `x` ([cl_thresholds()]); a
#' `clMatrix` stays where it is. For repeated evaluation on the same data see [cl_likelihood()].
#'
#' @param family Name of the family, as in the table.
#' @param y The observations, one for each row of `x`, or one for all rows: integer, logical or
#'   double.
#' @param x The predictors: a numeric matrix or a `clMatrix`, n x k. A vector is one column. A
#'   matrix of one row is used for all of several `y`. n and k may be 0.
#' @param alpha The intercept: one number, or one for each row of `x`. For `categorical_logit`: one
#'   for each class. With M parameter vectors: M numbers, an n x M or a C x M matrix. A scalar is
#'   recycled over classes and parameter vectors; its gradient has one element for each.
#' @param beta The coefficients: one number for each column of `x`, or one for all columns. For
#'   `categorical_logit`: a k x C matrix with one column for each class.
#' @param ... Must be empty.
#' @param sigma For `normal_id`, the standard deviation: one number or one for each row of `x`; with
#'   M parameter vectors M numbers or an n x M matrix.
#' @param phi For `neg_binomial_2_log`, the precision: as `sigma`.
#' @param cuts For `ordered_logistic`, the C - 1 cuts between the classes, increasing; with M
#'   parameter vectors a matrix with M columns.
#' @param trials For `binomial_logit`, the numbers of trials: one for each row of `x`, or one for
#'   all.
#' @param gradient What to differentiate with respect to: `NULL`, or some of `"alpha"`, `"beta"`,
#'   `"x"` (for one parameter vector), the family's auxiliary parameter `"sigma"`, `"phi"` or
#'   `"cuts"`, and for `normal_id` `"y"`.
#' @return The log density: one number, or one for each parameter vector. It is `-Inf` where it is
#'   below the range of a double; the gradient is then undefined. With `gradient`, its attribute
#'   `"gradient"` is a list with one element for each requested name, in the order alpha, beta, x,
#'   auxiliary parameter, y, with the shape of that argument (a `clMatrix` for `x` if `x` is one).
#'   For `y` and M parameter vectors it is n x M.
#' @section Errors:
#' `statcl_error_argument`, naming the argument, for wrong types, lengths and values outside the
#' support of the family, classes beyond those of the parameters, cuts that do not increase, `sigma`
#' or `phi` that is not positive; `statcl_error_nonfinite` if `alpha`, `beta`, the auxiliary
#' parameter or `x` contains `NA`, `NaN` or `Inf`, or if the linear predictor overflows.
#' @seealso [cl_likelihood()]
#' @export
#' @examples
#' x <- cbind(c(-1, 0, 1, 2))
#' y <- c(0, 0, 1, 1)
#' cl_glm_lpdf("bernoulli_logit", y, x, alpha = -0.5, beta = 2, gradient = c("alpha", "beta"))
#'
#' sum(dbinom(y, 1, plogis(-0.5 + 2 * x), log = TRUE))
cl_glm_lpdf <- function(family, y, x, alpha = 0, beta = numeric(), ..., sigma = NULL, phi = NULL,
                        cuts = NULL, trials = NULL, gradient = NULL) {
  # The usual arguments need no call of the functions that prepare others: each takes 0.5 us.
  if (...length() > 0L) check_dots_empty(...)
  if (!is.double(x) || !is.matrix(x) || is.object(x)) x <- predictors(x)
  size <- dim(x)
  rows <- if (size[1L] == 1L) one_for_each(x, y) else x
  kind <- function() {
    shape_kind(paste(c("glm", check_family(family), if (is.character(gradient)) gradient),
                     collapse = " "), c(size[2L], length(beta), length(cuts)) + 1)
  }
  where <- if (is_cl(rows)) -1L else if (size[2L] < 32L)
    where_for("glm", dim(rows)[1L], kind = kind()) else
    where_for("glm_wide", length(rows), kind = kind())
  if (!is.null(attributes(where))) {
    again <- function() cl_glm_lpdf(family, y, x, alpha, beta, sigma = sigma, phi = phi,
                                    cuts = cuts, trials = trials, gradient = gradient)
    return(fit_on_engine(attr(where, "op"), run = again, where = where, whole = TRUE))
  }
  result <- .Call(r_glm_lpdf, check_family(family), response(y),
                  if (!is.null(trials)) response(trials, "trials"),
                  if (is_cl(rows)) rows@handle else rows,
                  if (isS4(alpha)) on_host(alpha) else alpha,
                  if (isS4(beta)) on_host(beta) else beta,
                  if (isS4(sigma)) on_host(sigma) else sigma,
                  if (isS4(phi)) on_host(phi) else phi,
                  if (isS4(cuts)) on_host(cuts) else cuts, gradient, where)
  if (is.null(gradient) || !any(c("x", "y") %in% gradient)) return(result)
  finish_gradient(result, x, y)
}

#' Likelihood function with data on the device
#'
#' Copies `y` and `x` to the device once and returns a function of the parameters, for optimisers
#' and samplers. A call uploads the parameters and downloads the value and its gradient.
#'
#' A sparse `x`, a [clSparse] or a matrix of package Matrix of more than a million elements, stays
#' sparse; its products with `beta` and the gradient are computed where it is, and the observations'
#' densities from one linear predictor for each, which crosses the bus. There is no gradient by `x`
#' then, and no `categorical_logit`.
#'
#' The data is stored on the device in use if it is above the threshold `"likelihood"` of
#' [cl_thresholds()], or if `x` is a `clMatrix` there; otherwise in host memory, without a copy.
#'
#' The function can be saved ([saveRDS()]), sent to parallel workers and used in forked ones: it
#' keeps a reference to its data and uploads it again at its first use elsewhere. In a forked
#' process it runs on the host. If it was made from a `clMatrix`, the rules for saving and forking a
#' `clMatrix` apply.
#'
#' @inheritParams cl_glm_lpdf
#' @return A function `f(alpha = 0, beta, ..., sigma, phi, cuts, gradient)` of class
#'   `"cl_likelihood"`, with arguments, value and errors as for [cl_glm_lpdf()]. By default
#'   `gradient` contains `alpha`, `beta` and the family's auxiliary parameter, except that for
#'   `ordered_logistic` it does not contain `alpha`, which the cuts make redundant.
#' @seealso [cl_objective()] for [optim()], [cl_check_gradient()]
#' @export
#' @examples
#' x <- scale(as.matrix(mtcars[c("wt", "hp")]))
#' f <- cl_likelihood("bernoulli_logit", mtcars$am, x)
#' f
#' f(alpha = 0, beta = c(0, 0))
#'
#' fit <- with(cl_objective(f), optim(c(0, 0, 0), fn, gr, method = "BFGS"))
#' fit$par
#' coef(glm(mtcars$am ~ x, family = binomial))
cl_likelihood <- function(family, y, x, trials = NULL) {
  family <- check_family(family)
  y <- response(y)
  trials <- response(trials, "trials")
  if (is_cl_sparse(x) || (is_sparse(x) && length(x) > small_dense)) {
    return(sparse_likelihood(family, y, x, trials))
  }
  new_likelihood(family, y, predictors(x), trials)
}

# Elements of a sparse matrix up to which its likelihood is that of the dense one, which samplers
# evaluate in C.
small_dense <- 1e6

# `weights`: NULL, or a factor for the log density of each observation. `op`: whose threshold holds.
new_likelihood <- function(family, y, x, trials, weights = NULL, op = "likelihood") {
  force(y)
  force(trials)
  force(weights)
  one <- if (nrow(x) == 1L) x
  x <- one_for_each(x, y)
  handle <- NULL
  all <- default_gradient(family)
  kind <- paste(c(op, family, if (is_categorical(family)) length(unique(y))), collapse = " ")
  place <- function(times = 1) {
    if (forked() || is_cl(x)) -1L else where_for(op, x, times, kind)
  }
  engine <- movable(place, function(where) {
    .Call(r_glm_new, family, y, trials, weights, if (is_cl(x)) x@handle else x, where)
  }, function(made, where) handle <<- made, clean = TRUE,
  rehearse = function(chains) .Call(r_glm_rehearse, handle, chains),
  time = function(chains) .Call(r_glm_pace, handle, chains), counts = of_one_gradient(all))
  f <- function(alpha = 0, beta = numeric(), ..., sigma = NULL, phi = NULL, cuts = NULL,
                gradient = all) {
    if (...length() > 0L) check_dots_empty(...)
    result <- if (!engine$moves)
      .Call(r_glm_evaluate, handle, alpha, beta, sigma, phi, cuts, gradient)
    if (is.null(result)) {
      evaluate <- function() .Call(r_glm_evaluate, handle, alpha, beta, sigma, phi, cuts, gradient)
      if (engine$moves) result <- engine$run(evaluate)
    }
    if (is.null(result)) { # restored from a file, in a forked process, or the device was lost
      engine$restore()
      result <- evaluate()
    }
    if (missing(gradient) || !any(c("x", "y") %in% gradient)) return(result)
    finish_gradient(result, if (is.null(one)) x else one, y)
  }
  engine$build()
  class(f) <- c("cl_likelihood", "function") # structure() takes 5 us
  f
}

# Tells whether a value is that of one parameter vector with this gradient: others take other times.
of_one_gradient <- function(all) {
  function(value) length(value) == 1L && identical(names(attr(value, "gradient")), all)
}

# The default of 'gradient': the parameters of a likelihood. alpha and cuts are redundant together.
default_gradient <- function(family) {
  aux <- aux_parameter(family)
  if (is.na(aux)) return(c("alpha", "beta"))
  if (aux == "cuts") c("beta", "cuts") else c("alpha", "beta", aux)
}

#' @export
print.cl_likelihood <- function(x, ...) {
  data <- environment(x)
  n <- if (is.null(dim(data$x))) length(data$x) else dim(data$x)[1L]
  cat(sprintf("<cl_likelihood> %s, %d observations, %d coefficients\n", data$family, n,
              ncol(data$x)))
  print_engine(likelihood_info(data), likelihood_note(data))
  aux <- aux_parameter(data$family)
  cat(sprintf("f(alpha = 0, beta, %sgradient = c(%s))\n", if (is.na(aux)) "" else paste0(aux, ", "),
              paste0("\"", default_gradient(data$family), "\"", collapse = ", ")))
  invisible(x)
}

# Prints where the data of a likelihood are, and why: `info` is what C knows, NULL if they are on no
# device.
print_engine <- function(info, note) {
  if (is.null(info)) {
    cat("not on a device now; the next evaluation will copy the data\n")
  } else {
    bytes <- structure(info$bytes, class = "object_size")
    cat(engine_line(note), "data: ", format(bytes, units = "auto"), "\n", sep = "")
  }
}

# Facts from C about the data of a likelihood with this environment, and its note.
likelihood_info <- function(state) {
  if (is_cl_sparse(state$x)) sparse_info(state$x) else .Call(r_glm_info, state$handle)
}

likelihood_note <- function(state) {
  info <- likelihood_info(state)
  if (is_cl(state$x)) info <- state_of(state$x)
  if (is_cl(state$x) || isTRUE(state$resident)) return(data_note(info))
  size <- if (is_cl_sparse(state$x)) state$size else state$x
  note <- handle_note(info, state$op, size, kind = state$kind)
  went_back <- is.environment(state$engine) && isTRUE(state$engine$stays)
  if (went_back && note$why %in% c("unbuilt", "building")) note$why <- "slower"
  note
}

# ---- arguments and results ----------------------------------------------------------------------

# Observations, one for each row; NULL if there are no trials.
response <- function(y, argument = "y") {
  if (is.null(y) && argument != "y") return(NULL)
  y <- check_numeric(if (isS4(y)) on_host(y) else y, argument)
  if (is.matrix(y) && ncol(y) != 1L) {
    abort_argument(argument, sprintf("'%s' must be a vector, not %s", argument, describe(y)))
  }
  y
}

# x as a clMatrix or a double matrix; a vector is one column.
predictors <- function(x) {
  if (is_cl(x)) return(x)
  x <- check_numeric(x, "x")
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  x
}

# A single row of x stands for all observations.
one_for_each <- function(x, y) {
  if (nrow(x) == 1L && length(y) > 1L) x[rep(1L, length(y)), , drop = FALSE] else x
}

# Shape and names of the gradients with respect to x and y; sums where one stands for all.
finish_gradient <- function(result, x, y) {
  gradient <- attr(result, "gradient")
  n <- max(nrow(x), length(y))
  if ("x" %in% names(gradient)) {
    by_x <- value(gradient[["x"]], c(n, ncol(x)), if (n == nrow(x)) dimnames(x))
    if (n > nrow(x)) {
      by_x <- matrix(colSums(as.matrix(by_x)), 1L, dimnames = dimnames(x))
      if (is_cl(x)) by_x <- as_cl(by_x)
    }
    gradient[["x"]] <- by_x
  }
  if ("y" %in% names(gradient)) {
    by_y <- gradient[["y"]]
    if (length(y) == 1L && n > 1L) by_y <- colSums(by_y)
    gradient[["y"]] <- if (length(result) > 1L) by_y else
      structure(as.vector(by_y), names = names(y), dim = if (!is_cl(y)) dim(y))
  }
  attr(result, "gradient") <- gradient
  result
}
