# Posterior draws of predictors, means, responses and log likelihoods, for rstantools' generics.

#' Posterior predictions from generalised linear models
#'
#' Draws from the posterior distribution of the linear predictor, the mean, a new response, or the
#' log likelihood of each observation, as the generics of the package rstantools return them: a row
#' for each draw, a column for each observation. Call these generics
#' (`rstantools::posterior_predict(fit)`); bayesplot and loo take the results.
#'
#' @param object A fit of [cl_glm()] with `method = "mcmc"`, without random effects.
#' @param newdata As for [predict.cl_glm()]; `NULL`: the data of the fit. A row with missing values
#'   gives a column of `NA`.
#' @param draws Number of draws, spread evenly over all; `NULL`: all of them.
#' @param trials For `posterior_predict()` of `binomial_logit` at `newdata`: the number of trials of
#'   each row, or one number. New responses of other families have weight 1.
#' @param seed As for [simulate()].
#' @param transform Whether to return means instead of linear predictors.
#' @param ... Not used.
#' @return A matrix of `draws` rows and a column for each observation. Responses are numbers: counts
#'   of successes for `binomial_logit`, 0 or 1 for `bernoulli_logit`, the number of the class for
#'   families with classes. For these families means are an array, draw x observation x class.
#' @section Errors:
#' `statcl_error_argument` for fits without draws or with random effects.
#' @name cl_glm-posterior
#' @examples
#' \donttest{
#' fit <- cl_glm(count ~ spray, data = InsectSprays, family = "poisson_log", method = "mcmc")
#' if (requireNamespace("rstantools", quietly = TRUE)) {
#'   y <- rstantools::posterior_predict(fit, draws = 200)
#'   quantile(rowMeans(y == 0))    # share of zeros in replicated data
#'   mean(InsectSprays$count == 0) # and in the data
#' }
#' }
NULL

#' @rdname cl_glm-posterior
#' @exportS3Method rstantools::posterior_predict
posterior_predict.cl_glm <- function(object, newdata = NULL, draws = NULL, trials = NULL,
                                     seed = NULL, ...) {
  check_dots_empty(...)
  at <- posterior_at(object, newdata, draws)
  n <- nrow(at$x)
  object$kind <- "numeric" # numbers, not levels
  if (!is.null(newdata)) {
    object$prior.weights <- NULL
    if (family_row(object$family)$trials) object$trials <- posterior_trials(trials, n)
  } else if (!is.null(trials)) {
    abort_argument("trials", "'trials' is for 'newdata'; without it the trials of the fit are used")
  }
  with_seed(seed, posterior_rows(object, at, function(eta, aux) {
    as.numeric(draw_response(object, glm_mean(object, eta, aux), aux))
  }))
}

#' @rdname cl_glm-posterior
#' @exportS3Method rstantools::posterior_epred
posterior_epred.cl_glm <- function(object, newdata = NULL, draws = NULL, ...) {
  check_dots_empty(...)
  at <- posterior_at(object, newdata, draws)
  values <- posterior_rows(object, at, function(eta, aux) as.vector(glm_mean(object, eta, aux)))
  if (!has_classes(object$family)) return(values)
  array(values, c(nrow(values), nrow(at$x), ncol(values) / nrow(at$x)),
        list(NULL, rownames(at$x), object$levels))
}

#' @rdname cl_glm-posterior
#' @exportS3Method rstantools::posterior_linpred
posterior_linpred.cl_glm <- function(object, transform = FALSE, newdata = NULL, draws = NULL,
                                     ...) {
  if (check_flag(transform, "transform")) {
    return(posterior_epred.cl_glm(object, newdata, draws, ...))
  }
  check_dots_empty(...)
  if (is_categorical(object$family)) {
    abort_argument("object", paste("categorical_logit has a linear predictor for each class: use",
                                   "posterior_epred()"))
  }
  posterior_rows(object, posterior_at(object, newdata, draws), function(eta, aux) as.vector(eta))
}

#' @rdname cl_glm-posterior
#' @exportS3Method rstantools::log_lik
log_lik.cl_glm <- function(object, draws = NULL, ...) {
  check_dots_empty(...)
  posterior_rows(object, posterior_at(object, NULL, draws), function(eta, aux) {
    weighted_log_density(object$family, object, eta, aux)
  })
}

# list(x, offset, draws): the points of the linear predictor, and the draws.
posterior_at <- function(object, newdata, draws) {
  if (is.null(object$draws)) {
    abort_argument("object", "only a fit with method = \"mcmc\" has draws")
  }
  if (inherits(object, "cl_glmm")) {
    abort_argument("object", paste("draws at observations are not computed for fits with random",
                                   "effects: use predict(), with se.fit = TRUE or an interval"))
  }
  count <- if (is.null(draws)) nrow(as.matrix(object$draws)) else check_count(draws, "draws", 1)
  c(glm_points(object, newdata), list(draws = glm_draws(object, count)))
}

posterior_trials <- function(trials, n) {
  trials <- if (is.null(trials)) 1 else trials
  if (!is.numeric(trials) || !length(trials) %in% c(1L, n) || !all(is.finite(trials)) ||
        any(trials < 0 | trials != round(trials))) {
    abort_argument("trials", sprintf("'trials' must be 1 or %d whole numbers of at least 0", n))
  }
  rep_len(as.numeric(trials), n)
}

# The values of `what(eta, aux)` for each draw; aux: sigma, phi or cut points. A missing predictor
# gives NA, without the warnings of random numbers.
posterior_rows <- function(object, at, what) {
  k <- names(object$coefficients)
  aux <- setdiff(colnames(at$draws), k)
  missing <- which(rowSums(is.na(at$x)) > 0)
  at$x[missing, ] <- 0
  values <- lapply(seq_len(nrow(at$draws)), function(i) {
    what(glm_predictor(object, at$x, at$offset, at$draws[i, k]), at$draws[i, aux])
  })
  values <- matrix(unlist(values), nrow(at$draws), byrow = TRUE)
  lost <- (seq_len(ncol(values)) - 1L) %% nrow(at$x) + 1L
  values[, lost %in% missing] <- NA
  if (ncol(values) == nrow(at$x)) colnames(values) <- rownames(at$x)
  values
}

#' @exportS3Method loo::loo
loo.cl_glm <- function(x, ...) {
  log_lik <- log_lik.cl_glm(x)[, deviance_weights(x) > 0, drop = FALSE]
  loo_of(array(log_lik, c(dim(fit_draws(x)$draws)[1:2], ncol(log_lik))), ...)
}
