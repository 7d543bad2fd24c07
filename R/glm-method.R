# The fit as a method of glm().

#' A fitting method for glm()
#'
#' `glm(..., method = cl_glm_fit)` gives an object of class `"glm"`, which all functions for such
#' objects accept, fitted by the search of [cl_glm()] until the maximum is found, with the data on
#' the device if they are large enough. For all families and links that [glm()] has.
#'
#' The columns that are linearly dependent, and so get the coefficient `NA`, are chosen as by
#' [cl_glm()]. After the search one QR decomposition is computed, which summaries and leverages of
#' `"glm"` objects use; it takes most of the time where there are many rows. For the fastest fit use
#' [cl_glm()] itself.
#'
#' @param x,y,weights,start,offset,family,intercept As for [glm.fit()].
#' @param etastart,mustart As for [glm.fit()], but not used for binomial families with a logit link,
#'   Poisson with a log and Gaussian with an identity link, which need no starting values.
#' @param control As from [glm.control()]. `maxit` is used; `epsilon` is the tolerance of the rank
#'   in the QR decomposition, while the search stops as described in [cl_glm()].
#' @param singular.ok Whether linearly dependent columns are allowed.
#' @return A list as from [glm.fit()].
#' @section Errors:
#' `statcl_error_argument` for dependent columns if `singular.ok` is `FALSE`; otherwise the errors
#' and warnings of [cl_glm()].
#' @seealso [cl_glm()]
#' @export
#' @examples
#' fit <- glm(am ~ wt, binomial, mtcars, method = cl_glm_fit)
#' summary(fit)
#' coef(glm(am ~ wt, binomial, mtcars)) - coef(fit)
cl_glm_fit <- function(x, y, weights = rep(1, nobs), start = NULL, etastart = NULL, mustart = NULL,
                       offset = NULL, family = stats::gaussian(), control = list(),
                       intercept = TRUE, singular.ok = TRUE) {
  nobs <- NROW(y)
  control <- do.call(stats::glm.control, as.list(control))
  x <- as.matrix(x)
  if (is.null(weights)) weights <- rep(1, nobs)
  ynames <- if (is.matrix(y)) rownames(y) else names(y)
  read <- glm_response_as_r(family, y, weights, nobs)
  y <- read$y
  weights <- read$weights
  counts <- r_row(family)$two_classes && !all(weights %in% c(0, 1) & y %in% c(0, 1))
  name <- read_glm_family(family, counts, y)
  columns <- colnames(x)
  if (is.null(columns)) columns <- paste0("x", seq_len(ncol(x)))
  one <- if (intercept) match("(Intercept)", columns, constant_column(x)) else 0L
  fit <- withCallingHandlers(
    fit_glm(matrix(as.double(x), nobs, dimnames = list(NULL, columns)), y, name, "ml", NULL,
            weights, offset, NULL, one, start, list(maxit = control$maxit), FALSE, etastart,
            mustart),
    statcl_warning_counts = function(w) invokeRestart("muffleWarning")) # `family` has warned
  if (anyNA(fit$coefficients) && !singular.ok) {
    abort_argument("x", sprintf(paste("the columns are linearly dependent: '%s' is a combination",
                                      "of others"), columns[is.na(fit$coefficients)][1L]))
  }
  as_glm(fit, x, y, weights, read$trials, family, control, ynames)
}

# Proportions and weights, by the family's own initialisation, which also checks them.
glm_response_as_r <- function(family, y, weights, nobs) {
  home <- list2env(list(y = y, weights = weights, nobs = nobs, family = family, etastart = NULL,
                        mustart = NULL, start = NULL, offset = rep(0, nobs)))
  classed(eval(family$initialize, home), "y")
  list(y = as.vector(home$y), weights = home$weights, trials = home$n, mustart = home$mustart)
}

# The parts of a glm object.
as_glm <- function(fit, x, y, weights, trials, family, control, names) {
  eta <- unname(fit$linear.predictors)
  mu <- family$linkinv(eta)
  slope <- family$mu.eta(eta)
  good <- weights > 0 & slope != 0
  work <- ifelse(good, weights * slope^2 / family$variance(mu), 0)
  residuals <- (y - mu) / slope
  used <- unname(which(!is.na(fit$coefficients)))
  order <- c(used, setdiff(seq_len(ncol(x)), used))
  target <- if (is.null(fit$offset)) eta + residuals else eta - fit$offset + residuals
  rotation <- qr(x[good, order, drop = FALSE] * sqrt(work[good]),
                 tol = min(1e-7, control$epsilon / 1000))
  rotation$rank <- length(used)
  rotation$pivot <- order[rotation$pivot]
  rotation$tol <- min(1e-7, control$epsilon / 1000)
  p <- min(sum(good), ncol(x))
  root <- as.matrix(rotation$qr[seq_len(p), seq_len(p)])
  root[row(root) > col(root)] <- 0
  dimnames(root) <- list(colnames(x)[rotation$pivot][seq_len(p)], colnames(x)[rotation$pivot])
  effects <- qr.qty(rotation, (target * sqrt(work))[good])
  names(effects) <- c(colnames(x)[rotation$pivot][seq_along(used)],
                      rep("", sum(good) - length(used)))
  n <- sum(weights > 0)
  deviance <- sum(family$dev.resids(y, mu, weights))
  named <- function(v) stats::setNames(v, names)
  list(coefficients = fit$coefficients, residuals = named(residuals), fitted.values = named(mu),
       effects = effects, R = root, rank = length(used), qr = structure(rotation, class = "qr"),
       family = family, linear.predictors = named(eta), deviance = deviance,
       aic = family$aic(y, trials, mu, weights, deviance) + 2 * length(used),
       null.deviance = fit$null.deviance, iter = fit$iterations, weights = named(work),
       prior.weights = named(weights), df.residual = n - length(used),
       df.null = n - as.integer(fit$intercept > 0L), y = named(y), converged = fit$converged,
       boundary = FALSE)
}

# Fits inherit from "cl_glm"; methods that do not support random effects are refused.
refuse_mixed <- function(object, what) {
  if (!is.null(object$random)) {
    abort_argument("object", sprintf("%s are not available for fits with random effects", what))
  }
}
