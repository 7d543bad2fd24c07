# Gaussian-process regression: the fit. Its methods are in gp-methods.R and gp-predict.R.

#' Gaussian-process regression
#'
#' Fits y = m + f(x) + noise, where f is a Gaussian process with the covariance function `kernel`, m
#' a constant and the noise independent normal, by maximum marginal likelihood, with analytic
#' gradients.
#'
#' The values of the parameters in `kernel` do not matter: starting values and bounds are taken
#' from the spread of x and y. The logarithms of the parameters are optimised ([nlminb()]), first by
#' a few steps from each of the best of many starting points (always the same ones: the result does
#' not depend on the state of the random number generator), then from the best of these to the end.
#' Parameters at which the covariance matrix is not positive definite in floating-point arithmetic
#' count as infinitely unlikely; how often that was met is reported.
#'
#' A term of the kernel that looks at all columns (`columns = NULL`), and has one lengthscale, gets
#' one for each column when there are several, unless `ard = FALSE`. Terms that name their columns
#' stay as they are.
#'
#' Factors in a formula become indicator columns, rows with missing values are dropped
#' ([na.omit()]). The formula's intercept is the mean m, whether it is written or not.
#'
#' The evaluations run on the engine that [cl_gp_likelihood()] describes. A fit holds copies of data
#' and parameters but nothing of a device: it can be saved and used in any session.
#'
#' @param x a formula `y ~ x1 + x2`, or the inputs: a numeric matrix, data frame or vector.
#' @param formula,data a formula and a data frame in which its variables are looked up.
#' @param y the observations: a numeric vector.
#' @param kernel a kernel, see [kernels].
#' @param method how parameters are found: `"ml"`, maximum marginal likelihood.
#' @param mean `"estimate"`, or a number to hold the mean at.
#' @param ard see Details.
#' @param start starting values: a named vector of some parameters on their natural scale (see
#'   [cl_gp_likelihood()] for the names). It is tried besides the starting points of our own.
#' @param fixed a named vector of parameters that are held at these values; `c(noise = 0)`
#'   interpolates.
#' @param lower,upper bounds: named vectors of some parameters.
#' @param starts from how many starting points to optimise.
#' @param control a list for [nlminb()].
#' @param subset,na.action as for [lm()].
#' @param object a fit.
#' @param ... for the generic: arguments of the methods.
#' @return An object of class `"cl_gp"`, a list with the elements `coefficients` (the parameters,
#'   and the mean if it is estimated), `kernel` (with these parameters), `noise`, `mean`, `logLik`,
#'   `gradient` (by the logarithms of the free parameters, at the end), `converged`, `message`,
#'   `evaluations`, `not_pd` (how many of them met a matrix that is not positive definite),
#'   `at_bound` (names of parameters that ended on a bound), `fitted.values`, `residuals`, `x`, `y`,
#'   `call` and, with a formula, `terms`, `xlevels`, `model`, `variables` and `na.action`. There are
#'   methods for [print()], [summary()], [coef()], [vcov()], [logLik()], [nobs()], [fitted()],
#'   [residuals()], [formula()], [update()], [predict()][predict.cl_gp], [simulate()][predict.cl_gp]
#'   and [plot()][predict.cl_gp].
#' @section Errors:
#' `statcl_error_argument` for unusable input (a single observation, a constant y, unknown
#' parameters); `statcl_error_nonfinite` for infinite values; `statcl_error_not_pd` if no starting
#' point has a positive definite covariance matrix, as happens when points coincide and `noise` is
#' fixed at 0.
#' @references
#' Rasmussen, C. E. and Williams, C. K. I. (2006) *Gaussian Processes for Machine Learning*. MIT
#' Press, chapters 2 and 5. <https://gaussianprocess.org/gpml/>
#' @seealso [predict.cl_gp()]
#' @importFrom stats coef fitted formula logLik nobs predict residuals sigma simulate update vcov
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars)
#' fit
#' predict(fit, data.frame(speed = c(10, 30)), interval = "prediction")
#' plot(fit)
#'
#' # Two inputs, one lengthscale each
#' coef(cl_gp(mpg ~ wt + hp, data = mtcars, kernel = k_exp_quad(), starts = 1))
cl_gp <- function(x, ...) UseMethod("cl_gp")

#' @rdname cl_gp
#' @export
cl_gp.formula <- function(formula, data = NULL, kernel = k_matern52(), method = "ml",
                          mean = "estimate", ..., subset, na.action = stats::na.omit) {
  call <- match.call()
  frame <- match.call(expand.dots = FALSE)
  frame <- frame[c(1L, match(c("formula", "data", "subset", "na.action"), names(frame), 0L))]
  if (is.null(frame$na.action)) frame$na.action <- quote(stats::na.omit)
  frame$drop.unused.levels <- TRUE
  frame[[1L]] <- quote(stats::model.frame)
  model <- eval(frame, parent.frame())
  terms <- stats::terms(model)
  if (!is.null(attr(terms, "offset"))) {
    abort_argument("formula", "an offset is not supported: subtract it from the response")
  }
  y <- stats::model.response(model)
  if (is.null(y)) abort_argument("formula", "the formula has no response")
  fit <- cl_gp.default(model_inputs(terms, model), y, kernel = kernel, method = method,
                       mean = mean, ...)
  fit$call <- call
  fit$call[[1L]] <- quote(cl_gp)
  fit$terms <- terms
  fit$xlevels <- stats::.getXlevels(terms, model)
  fit$model <- model
  fit$variables <- input_variables(terms, data, model)
  fit$na.action <- attr(model, "na.action")
  fit
}

# The variables of the right-hand side as they were before any function of the formula, for the rows
# of the model frame. What does not have one value a row (such as pi) is not among them.
input_variables <- function(terms, data, model) {
  names <- all.vars(stats::delete.response(terms))
  found <- lapply(stats::setNames(names, names), function(name) {
    eval(as.name(name), data, environment(terms))
  })
  rows <- if (is.data.frame(data)) row.names(data) else as.character(seq_len(max(lengths(found))))
  found <- found[lengths(found) == length(rows) & length(rows) > 1L]
  lapply(found, `[`, match(row.names(model), rows))
}

# The columns that a model frame gives, without the intercept.
model_inputs <- function(terms, model, ...) {
  attr(terms, "intercept") <- 1L # so that all factors have the same kind of columns
  x <- stats::model.matrix(terms, model, ...)
  x <- x[, colnames(x) != "(Intercept)", drop = FALSE]
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  if (ncol(x) == 0L) abort_argument("formula", "the formula has no inputs")
  x
}

#' @rdname cl_gp
#' @export
cl_gp.default <- function(x, y, kernel = k_matern52(), method = "ml", mean = "estimate",
                          ard = TRUE, start = NULL, fixed = NULL, lower = NULL, upper = NULL,
                          starts = 3, control = list(), ...) {
  call <- match.call()
  call[[1L]] <- quote(cl_gp)
  if (...length() > 0L) {
    extra <- names(list(...))
    abort_argument(if (is.null(extra)) "..." else extra[1L], "unused argument")
  }
  if (!identical(method, "ml")) {
    abort_argument("method", "'method' must be \"ml\", the only one so far")
  }
  if (check_flag(ard, "ard")) kernel <- expand_lengthscales(check_kernel(kernel), NCOL(x))
  data <- gp_data(y, x, check_kernel(kernel), mean)
  check_gp_data(data)
  starts <- check_count(starts, "starts", 1, 1000)
  space <- gp_space(data, kernel, start, fixed, lower, upper)
  found <- gp_maximise(data, kernel, space, starts, control)
  finish_gp(call, data, kernel, space, found)
}

check_gp_data <- function(data) {
  for (name in c("y", "x")) {
    bad <- which(!is.finite(data[[name]]))
    if (length(bad) > 0L) {
      statcl_abort("nonfinite", sprintf("'%s' holds a value that is not finite", name),
                   index = bad[1L], argument = name)
    }
  }
  if (length(data$y) < 2L) abort_argument("y", "a fit needs two observations or more")
  if (min(data$y) == max(data$y)) {
    abort_argument("y", "'y' is constant: there is nothing to fit")
  }
}

# One lengthscale for each column in the terms that look at all of them.
expand_lengthscales <- function(kernel, p) {
  for (i in seq_along(kernel$terms)) {
    term <- kernel$terms[[i]]
    if (p > 1L && is.null(term$columns) && length(term$lengthscale) == 1L) {
      kernel$terms[[i]]$lengthscale <- rep(term$lengthscale, p)
    }
  }
  kernel
}

# The object, from the parameters found.
finish_gp <- function(call, data, kernel, space, found) {
  par <- found$par
  last <- length(par)
  kernel <- with_parameters(kernel, par[-last])
  value <- new_gp_likelihood(data$y, data$x, kernel, data$mean)(par)
  state <- condition_gp(data$y, data$x, kernel, par[[last]], data$mean)
  residuals <- par[[last]]^2 * state$weights
  names(residuals) <- rownames(data$x)
  free <- !space$fixed
  mean <- if (is.na(data$mean)) c(mean = state$mean)
  structure(
    list(coefficients = c(par, mean), kernel = kernel, noise = par[[last]], mean = state$mean,
         mean_estimated = is.na(data$mean), fixed = names(par)[!free], logLik = as.numeric(value),
         gradient = (attr(value, "gradient") * par)[free], converged = found$converged,
         message = found$message, evaluations = found$evaluations, not_pd = found$not_pd,
         at_bound = found$at_bound, fitted.values = data$y - residuals, residuals = residuals,
         x = data$x, y = data$y, method = "ml", call = call),
    class = "cl_gp")
}

# A process given its data: the mean, the weights C^-1 (y - mean), and a function of points (a
# matrix) that gives list(mean, variance, covariance).
condition_gp <- function(y, x, kernel, noise, mean) {
  f <- new_gp_likelihood(y, x, kernel, mean)
  state <- gp_condition(f, c(coef(kernel), noise = noise))
  list(mean = if (is.na(mean)) unname(state$beta) else mean, weights = state$weights,
       predict = state$predict)
}

# Checked: y as a vector, x as a base matrix, the mean (NA: to be estimated).
gp_data <- function(y, x, kernel, mean) {
  data <- gp_observations(y, x, kernel)
  if (ncol(data$y) != 1L) {
    abort_argument("y", sprintf("'y' must be a vector, not %s", describe(y)))
  }
  if (!identical(mean, "estimate")) mean <- check_number(mean, "mean")
  list(y = as.vector(data$y), x = data$x, mean = if (is.character(mean)) NA_real_ else mean)
}

new_gp_likelihood <- function(y, x, kernel, mean) {
  cl_gp_likelihood(y, x, kernel, if (is.na(mean)) "estimate" else mean)
}
