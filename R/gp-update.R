# A fitted Gaussian process with more observations, or fitted anew.

#' Add observations to a Gaussian process, or refit it
#'
#' With `newdata` observations are added to the fit. Its parameters do not change, and the factor of
#' its covariance matrix is extended, which takes n^2 operations for each new observation instead of
#' n^3 / 3 in total. Coefficients of the mean, likelihood, fitted values, residuals and predictions
#' then use all observations.
#'
#' Without `newdata` the call of the fit is evaluated again with changed arguments, as by the
#' default method of [update()].
#'
#' @param object A fit of [cl_gp()].
#' @param formula. A new formula, see [update.formula()].
#' @param newdata A data frame with all variables of the formula, including the response; rows with
#'   missing values are dropped. For a fit without a formula, a matrix of inputs.
#' @param y For a fit without a formula: the new observations.
#' @param weights,variance Weights and variances of the new observations, if the fit has them.
#' @param refit Whether to estimate the parameters again from all observations, starting from the
#'   present values.
#' @param ... Arguments of [cl_gp()] to change or add; with `refit`, arguments of the search.
#' @param evaluate Whether to evaluate the new call or return it.
#' @return A fit.
#' @section Errors:
#' `statcl_error_argument` for `newdata` that does not match the model, and for a new call after
#' observations were added (they are not part of the call); `statcl_error_not_pd` if the extended
#' covariance matrix is not positive definite.
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars[1:45, ])
#' more <- update(fit, newdata = cars[46:50, ])
#' nobs(more)
#' coef(update(fit, kernel = k_matern32()))
update.cl_gp <- function(object, formula., ..., newdata = NULL, y = NULL, weights = NULL,
                         variance = NULL, refit = FALSE, evaluate = TRUE) {
  refit <- check_flag(refit, "refit")
  if (!is.null(object$response) && (refit || !is.null(newdata))) {
    abort_argument(if (refit) "refit" else "newdata",
                   paste("observations can be added to fits of normal observations only: fit all",
                         "data by cl_gp(), with 'start' at the present parameters"))
  }
  if (!is.null(newdata) && !is.null(object$noise_process)) {
    abort_argument("newdata", paste("observations cannot be added to a fit with a process of the",
                                    "noise: fit all data by cl_gp()"))
  }
  if (!is.null(newdata)) {
    if (!missing(formula.)) {
      abort_argument("formula.", "supply 'formula.' or 'newdata', not both")
    }
    if (!refit && ...length() > 0L) {
      abort_argument(names(list(...))[1L], "with 'newdata', further arguments need refit = TRUE")
    }
    longer <- extend_gp(object, newdata, y, weights, variance)
    return(if (refit) refit_gp(longer, ...) else longer)
  }
  if (!is.null(y)) abort_argument("y", "'y' can be used together with 'newdata' only")
  if (refit) return(refit_gp(object, ...))
  if (!is.null(object$added)) {
    abort_argument("object", paste("observations were added to this fit that are not in its call:",
                                   "use refit = TRUE, or cl_gp() with all data"))
  }
  call <- object$call
  if (!missing(formula.)) {
    names(call)[2L] <- "formula"
    call$formula <- stats::update.formula(formula(object), formula.)
  }
  extra <- match.call(expand.dots = FALSE)
  noise <- intersect(names(extra), c("weights", "variance"))
  changed <- c(as.list(extra$...), as.list(extra)[noise])
  for (name in names(changed)) call[[name]] <- changed[[name]]
  if (check_flag(evaluate, "evaluate")) eval(call, parent.frame()) else call
}

extend_gp <- function(object, newdata, y, weights, variance) {
  new <- if (is.null(object$terms)) new_matrix_rows(object, newdata, y) else
    new_frame_rows(object, newdata, c(if (!is.null(weights)) "weights",
                                      if (!is.null(variance)) "variance"))
  m <- length(new$y)
  if (m == 0L) return(object)
  if (is.null(weights)) weights <- new$weights
  if (is.null(variance)) variance <- new$variance
  weights <- check_noise(weights, m, "weights", TRUE)
  variance <- check_noise(variance, m, "variance", FALSE)
  if (is.null(object$weights) != is.null(weights)) {
    abort_argument("weights", "either all observations or none must have weights")
  }
  if (is.null(object$variance) != is.null(variance)) {
    abort_argument("variance", "either all observations or none must have a known variance")
  }
  check_gp_finite(new$y, "newdata")
  check_gp_finite(new$x, "newdata")
  trend <- object$trend
  q <- mean_basis(trend, new$h)
  centre <- mean_centre(trend, m, q)
  state <- gp_state(object)$extend(new$y - centre, fit_columns(object, new$x), basis = q,
                                   weights = weights, variance = variance)
  # the basis need no longer be orthonormal, nor the centre the least-squares fit
  object$trend$centre <- c(trend$centre, centre)
  if (!is.null(q)) object$trend$basis <- rbind(trend$basis, q)
  object$x <- rbind(object$x, new$x)
  object$y <- c(object$y, new$y)
  object$weights <- c(object$weights, weights)
  object$variance <- c(object$variance, variance)
  object$added <- sum(object$added, m)
  for (name in names(object$variables)) {
    object$variables[[name]] <- c_values(object$variables[[name]], new$variables[[name]])
  }
  object$model <- NULL
  longer <- settle_gp(object, state)
  # results of the search, which did not use all observations
  longer["gradient"] <- list(NULL)
  longer$objective <- longer$logLik
  longer$extended <- TRUE
  longer
}

c_values <- function(old, new) {
  if (is.factor(old)) factor(c(as.character(old), as.character(new)), levels(old)) else c(old, new)
}

new_matrix_rows <- function(object, newdata, y) {
  points <- gp_points(object, newdata)
  if (is.null(y)) abort_argument("y", "'y', the response of the new observations, is missing")
  y <- as.vector(check_numeric(y, "y"))
  if (length(y) != nrow(points$x)) {
    abort_argument("y", sprintf("'y' has %d values, but 'newdata' has %d rows", length(y),
                                nrow(points$x)))
  }
  colnames(points$x) <- colnames(object$x)
  if (is.null(rownames(points$x)) && !is.null(rownames(object$x))) {
    rownames(points$x) <- seq_len(nrow(points$x)) + nrow(object$x)
  }
  list(x = points$x, h = points$h, y = y)
}

# `given`: which of weights and variance the user supplies in addition to `newdata`.
new_frame_rows <- function(object, newdata, given) {
  points <- gp_points(object, newdata)
  response <- object$formula[[2L]]
  lacking <- setdiff(all.vars(response), names(newdata))
  if (length(lacking) > 0L) {
    abort_argument("newdata", sprintf("'newdata' has no variable '%s'", lacking[1L]))
  }
  y <- eval(response, newdata, environment(object$formula))
  extra <- lapply(list(weights = "weights", variance = "variance"), function(name) {
    if (name %in% given) return(NULL)
    tryCatch(eval(object$call[[name]], newdata, environment(object$formula)), error = function(e) {
      abort_argument("newdata", sprintf("the '%s' of new observations: %s", name,
                                        conditionMessage(e)), call = user_call())
    })
  })
  use <- points$complete & !is.na(y)
  list(x = points$x[use, , drop = FALSE], h = if (!is.null(points$h)) points$h[use, , drop = FALSE],
       y = as.vector(y[use]), weights = extra$weights[use], variance = extra$variance[use],
       variables = lapply(newdata[names(object$variables)], `[`, use))
}

# Estimates all parameters again, starting from their current values; from the rows `rows`, if
# given.
refit_gp <- function(object, ..., rows = NULL) {
  arguments <- list(...)
  defaults <- list(start = object$par[setdiff(names(object$par), object$fixed)],
                   fixed = object$par[object$fixed], method = object$method, starts = 1)
  if (!is.null(object$vecchia)) {
    defaults <- c(defaults, approx = "vecchia", neighbours = object$vecchia$neighbours,
                  grouped = isTRUE(object$vecchia$grouped))
  }
  arguments <- c(arguments, defaults[setdiff(names(defaults), names(arguments))])
  if (length(arguments$start) == 0L) arguments["start"] <- list(NULL)
  if (length(arguments$fixed) == 0L) arguments["fixed"] <- list(NULL)
  prior <- Filter(Negate(is.null), object$prior)
  if (is.null(arguments$prior) && arguments$method %in% c("map", "mcmc") && length(prior) > 0L) {
    arguments$prior <- prior
  }
  trend <- object$trend
  kind <- trend$kind
  some <- function(v) if (is.null(v) || is.null(rows)) v else pick_rows(v, rows)
  h <- if (!is.null(trend$basis)) {
    structure(some(trend$basis) %*% trend$root, dimnames = list(NULL, trend$names))
  }
  mean <- switch(kind, number = trend$value, constant = "constant", linear = "linear",
                 trend$formula)
  response <- object$response
  if (!is.null(response) && !is.null(rows)) response <- response_subset(response, rows)
  fit <- do.call(fit_gp, c(list(some(object$x), some(object$y), object$kernel, mean = mean, h = h,
                                ard = FALSE, coded = object$coded, beta = object$beta,
                                weights = if (is.null(response)) some(gp_problem(object)$weights),
                                noise = object$noise_kernel,
                                variance = some(object$variance), response = response), arguments),
                 quote = TRUE)
  fit$trend[c("learnt", "xlevels")] <- trend[c("learnt", "xlevels")]
  kept <- c("call", "formula", "terms", "xlevels", "design", "variables", "na.action", "added")
  fit[intersect(kept, names(object))] <- object[intersect(kept, names(object))]
  fit
}
