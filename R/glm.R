# Likelihoods of generalised linear models.

#' Log likelihood of a generalised linear model
#'
#' The log density of `y` given the linear predictor `alpha + x %*% beta`, summed over the
#' observations, and its gradients, in one pass over `x`. All constants of the density are kept.
#'
#' For the family `"bernoulli_logit"`, with \eqn{\eta_i = \alpha_i + x_i \beta},
#' \deqn{\log p(y) = \sum_i y_i \eta_i - \log(1 + \exp \eta_i), \qquad
#'   \frac{\partial}{\partial \eta_i} = y_i - \frac{1}{1 + \exp(-\eta_i)},}{log p(y) = sum of
#'   y * eta - log(1 + exp(eta)), with derivative y - 1 / (1 + exp(-eta)) by eta,}
#' computed without cancellation: both keep their full relative precision in both tails.
#'
#' With base R input the engine is chosen by the number of elements of `x` ([cl_thresholds()]); a
#' `clMatrix` stays where it is. For repeated evaluation on the same data see [cl_likelihood()].
#'
#' @param family name of the family: `"bernoulli_logit"`, with `y` 0 or 1.
#' @param y the observations, one for each row of `x`, or one for all rows: integer, logical or
#'   double.
#' @param x the predictors: a numeric matrix or a `clMatrix`, n x k. A vector is one column. n and k
#'   may be 0.
#' @param alpha the intercept: one number, or one for each row of `x`.
#' @param beta the coefficients: one number for each column of `x`.
#' @param ... for parameters of further families; must be empty.
#' @param gradient what to differentiate by: `NULL`, or some of `"alpha"`, `"beta"` and `"x"`.
#' @return The log density, one number. With `gradient`, its attribute `"gradient"` is a list with
#'   one element for each name asked for, in the order alpha, beta, x, shaped like that argument (a
#'   `clMatrix` for `x` if `x` is one).
#' @section Errors:
#' `statcl_error_argument` for wrong types, lengths and values outside the family's support, naming
#' the argument; `statcl_error_nonfinite` if `alpha`, `beta` or `x` holds `NA`, `NaN` or `Inf`, or
#' if the linear predictor overflows.
#' @seealso [cl_likelihood()]
#' @export
#' @examples
#' x <- cbind(c(-1, 0, 1, 2))
#' y <- c(0, 0, 1, 1)
#' cl_glm_lpdf("bernoulli_logit", y, x, alpha = -0.5, beta = 2, gradient = c("alpha", "beta"))
#'
#' sum(dbinom(y, 1, plogis(-0.5 + 2 * x), log = TRUE))
cl_glm_lpdf <- function(family, y, x, alpha = 0, beta = numeric(), ..., gradient = NULL) {
  check_dots_empty(...)
  x <- predictors(x)
  result <- .Call(r_glm_lpdf, check_family(family), response(y), if (is_cl(x)) x@handle else x,
                  on_host_memory(alpha), on_host_memory(beta), gradient,
                  where_for("glm", length(x)))
  if ("x" %in% gradient) finish_gradient(result, x) else result
}

#' A likelihood with its data on the device
#'
#' Copies `y` and `x` to the device once and gives a function of the parameters, for optimisers and
#' samplers: only the parameters go up and only the value and its gradient come down.
#'
#' The data goes where [cl_glm_lpdf()] would work: to the device in use if `x` is above the
#' threshold `"glm"` of [cl_thresholds()], or is a `clMatrix` there; else it stays with the host
#' engine, which uses it where it is.
#'
#' The function can be saved ([saveRDS()]), sent to parallel workers and used in forked ones: it
#' holds on to its data, and uploads it again at its first use elsewhere. In a forked process it
#' runs on the host. If it was made from a `clMatrix`, it is as bound to this session as that.
#'
#' @inheritParams cl_glm_lpdf
#' @return A function `f(alpha = 0, beta, ..., gradient = c("alpha", "beta"))` of class
#'   `"cl_likelihood"`, with arguments, value and errors as for [cl_glm_lpdf()].
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
cl_likelihood <- function(family, y, x) {
  new_likelihood(check_family(family), response(y), predictors(x))
}

new_likelihood <- function(family, y, x) {
  force(y)
  handle <- NULL
  build <- function() {
    where <- if (forked()) -1L else where_for("glm", length(x))
    handle <<- .Call(r_glm_new, family, y, if (is_cl(x)) x@handle else x, where)
  }
  f <- function(alpha = 0, beta = numeric(), ..., gradient = c("alpha", "beta")) {
    if (...length() > 0L) check_dots_empty(...)
    result <- .Call(r_glm_evaluate, handle, alpha, beta, gradient)
    if (is.null(result)) { # restored from a file, in a forked process, or the device was lost
      build()
      result <- .Call(r_glm_evaluate, handle, alpha, beta, gradient)
    }
    if ("x" %in% gradient) finish_gradient(result, x) else result
  }
  build()
  structure(f, class = c("cl_likelihood", "function"))
}

#' @export
print.cl_likelihood <- function(x, ...) {
  data <- environment(x)
  n <- if (is.null(dim(data$x))) length(data$x) else dim(data$x)[1L]
  cat(sprintf("<cl_likelihood> %s, %d observations, %d coefficients\n", data$family, n,
              ncol(data$x)))
  info <- .Call(r_glm_info, data$handle)
  if (is.null(info)) {
    cat("not on a device now; the next evaluation copies the data\n")
  } else {
    cat(sprintf("engine: %s; %s\n", if (info$host) "host" else paste("device", info$device),
                format(structure(info$bytes, class = "object_size"), units = "auto")))
  }
  cat("f(alpha = 0, beta, gradient = c(\"alpha\", \"beta\"))\n")
  invisible(x)
}

# ---- arguments and results ----------------------------------------------------------------------

check_family <- function(family) {
  if (!is.character(family) || length(family) != 1L || is.na(family)) {
    abort_argument("family", "'family' must be the name of a family, such as \"bernoulli_logit\"")
  }
  family
}

check_dots_empty <- function(...) {
  if (...length() == 0L) return(invisible())
  given <- names(list(...))
  name <- if (is.null(given) || !nzchar(given[1L])) "..." else given[1L]
  abort_argument(name, sprintf("unused argument '%s'", name))
}

response <- function(y) {
  y <- check_numeric(on_host_memory(y), "y")
  if (is.matrix(y) && ncol(y) != 1L) {
    abort_argument("y", sprintf("'y' must be a vector, not %s", describe(y)))
  }
  y
}

on_host_memory <- function(x) if (is_cl(x)) as.matrix(x) else x

# x as a clMatrix or a double matrix; a vector is one column.
predictors <- function(x) {
  if (is_cl(x)) return(x)
  x <- check_numeric(x, "x")
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  x
}

# Shape and names for the gradient by x.
finish_gradient <- function(result, x) {
  gradient <- attr(result, "gradient")
  gradient$x <- value(gradient$x, dim(x), dimnames(x))
  attr(result, "gradient") <- gradient
  result
}
