# Methods of fitted generalised linear models.

#' @exportS3Method posterior::as_draws
as_draws.cl_glm <- function(x, ...) {
  as_draws.cl_sample(fit_draws(x), ...)
}

# ---- the usual ones ------------------------------------------------------------------------------

#' @export
coef.cl_glm <- function(object, complete = TRUE, ...) {
  beta <- object$coefficients
  if (check_flag(complete, "complete")) beta else beta[!is.na(beta)]
}

#' @export
vcov.cl_glm <- function(object, complete = TRUE, ...) {
  if (!complete) return(object$vcov)
  names <- c(names(object$coefficients), names(tabled_aux(object)))
  if (identical(names, rownames(object$vcov))) return(object$vcov)
  full <- matrix(NA_real_, length(names), length(names), dimnames = list(names, names))
  full[rownames(object$vcov), rownames(object$vcov)] <- object$vcov
  full
}

# Whether the dispersion is estimated as in lm() and glm().
has_t_tests <- function(object) {
  if (!is.null(object$random)) return(FALSE)
  dispersion_estimated(object) || is_least_squares(object$family) && object$method == "ml"
}

# From Student's t distribution if the dispersion is estimated.
wald_quantile <- function(object, p) {
  if (has_t_tests(object)) {
    stats::qt(p, object$df.residual)
  } else {
    stats::qnorm(p)
  }
}

#' @export
logLik.cl_glm <- function(object, ...) {
  structure(object$logLik, df = likelihood_df(object), nobs = object$nobs,
            class = "logLik")
}

#' @export
nobs.cl_glm <- function(object, ...) {
  n <- object$nobs
  if (n == round(n) && n <= .Machine$integer.max) as.integer(n) else n
}

#' @export
deviance.cl_glm <- function(object, ...) object$deviance

#' @export
df.residual.cl_glm <- function(object, ...) object$df.residual

#' @export
extractAIC.cl_glm <- function(fit, scale = 0, k = 2, ...) {
  check_no_scale(scale)
  edf <- likelihood_df(fit)
  c(edf, -2 * fit$logLik + k * edf)
}

# step() and extractAIC() have it for Mallows' Cp, which only lm() has.
check_no_scale <- function(scale) {
  if (!identical(as.numeric(scale), 0)) {
    abort_argument("scale", "'scale' must be 0: Mallows' Cp is for fits of lm()")
  }
}

# As for glm(): 1 if the family has no sigma or dispersion.
#' @export
sigma.cl_glm <- function(object, ...) {
  if (is_least_squares(object$family)) object$aux[[1L]] else sqrt(dispersion(object))
}

#' @export
family.cl_glm <- function(object, ...) full_family(object$family)

full_family <- function(name) {
  r <- glm_family_object(name)
  if (!is.null(r$linkinv)) return(r)
  link <- stats::make.link(r$link)
  structure(c(unclass(r), link[c("linkfun", "linkinv", "mu.eta")]), class = "family")
}

#' Weights of the observations
#'
#' @param object A fit of [cl_glm()].
#' @param type `"prior"`: the factor of each observation's contribution to the deviance, as for
#'   [glm()]: the weights of the fit or 1, times the trials for `binomial_logit`. `"working"`: the
#'   diagonal of W in the expected information X' W X (without the factor 1 / sigma^2, or 1 /
#'   dispersion).
#' @param ... Not used.
#' @return A vector with one number for each observation.
#' @section Errors:
#' `statcl_error_argument` for the working weights of families with classes.
#' @export
#' @examples
#' weights(cl_glm(am ~ wt, data = mtcars), "working")
weights.cl_glm <- function(object, type = c("prior", "working"), ...) {
  type <- check_choice(type, c("prior", "working"), "type")
  w <- deviance_weights(object)
  if (type == "working") {
    if (several_predictors(object)) {
      abort_argument("type", sprintf(paste("working weights are not available for family \"%s\",",
                                           "which has several for each row"), object$family))
    }
    row <- family_row(object$family)
    slope <- row$slope(object$linear.predictors)
    w <- w * slope^2 / row$variance(object$fitted.values, object$aux)
  }
  names <- if (has_classes(object$family)) rownames(object$fitted.values) else
    names(object$fitted.values)
  stats::naresid(object$na.action, stats::setNames(as.vector(w), names))
}

#' @export
fitted.cl_glm <- function(object, ...) stats::napredict(object$na.action, object$fitted.values)

#' @export
formula.cl_glm <- function(x, ...) {
  if (is.null(x$formula)) abort_argument("x", "the fit was made without a formula")
  stats::formula(x$formula) # step() leaves terms there
}

#' @export
terms.cl_glm <- function(x, ...) {
  if (is.null(x$terms)) abort_argument("x", "the fit was made without a formula")
  x$terms
}

#' @export
model.frame.cl_glm <- function(formula, ...) {
  if (is.null(formula$model)) {
    abort_argument("formula", paste("the fit has no model frame: it was made with model = FALSE,",
                                    "or without a formula"))
  }
  formula$model
}

#' @export
model.matrix.cl_glm <- function(object, ...) {
  if (is.null(object$terms)) return(default_matrix(object, NULL))
  stats::model.matrix(object$terms, stats::model.frame(object), contrasts.arg = object$contrasts)
}

# For a fit without formula: its predictors, or those of `newdata`, with the column of ones.
default_matrix <- function(object, newdata) {
  x <- newdata
  if (is.null(x)) {
    x <- object$x
    if (is.null(x)) {
      abort_argument("newdata", "the fit does not store its predictors: supply 'newdata'")
    }
    if (is.null(colnames(x))) dimnames(x) <- list(rownames(x), object$columns)
  } else {
    x <- named_columns(x, object$columns)
    x <- design_matrix(x)
    if (ncol(x) != length(object$columns)) {
      abort_argument("newdata", sprintf("'newdata' has %d columns, but the model has %d", ncol(x),
                                        length(object$columns)))
    }
  }
  if (object$intercept == 0L) return(x)
  full <- cbind(1, x)
  dimnames(full) <- list(rownames(x), c("(Intercept)", object$columns))
  full
}

# ---- residuals -----------------------------------------------------------------------------------

#' Residuals of generalised linear models
#'
#' @param object A fit of [cl_glm()].
#' @param type `"deviance"`: the signed square roots of the observations' contributions to the
#'   deviance. `"pearson"`: observations minus means, divided by their standard deviations (without
#'   the factor sigma of `normal_id`, and the dispersion of families of R). `"response"`:
#'   observations minus means; for `binomial_logit` as proportions; for families with classes, which
#'   have no other residuals, a matrix of indicators minus probabilities. `"working"`: those of the
#'   last step of iteratively reweighted least squares, observations minus means, divided by the
#'   derivative of the mean by the linear predictor. `"partial"`: working residuals plus each of the
#'   centred terms of `predict(object, type = "terms")`, a matrix.
#' @param ... Not used.
#' @return A vector with one number for each observation, or a matrix.
#' @section Errors:
#' `statcl_error_argument` for residuals of families with classes other than `"response"`, and for
#' partial residuals of a fit without a formula.
#' @export
#' @examples
#' fit <- cl_glm(count ~ spray, data = InsectSprays, family = "poisson_log")
#' head(residuals(fit, "pearson"))
residuals.cl_glm <- function(object, type = c("deviance", "pearson", "response", "working",
                                              "partial"), ...) {
  classes <- has_classes(object$family)
  if (classes && missing(type)) type <- "response"
  type <- check_choice(type, c("deviance", "pearson", "response", "working", "partial"), "type")
  if (classes && type != "response") {
    abort_argument("type", sprintf("family \"%s\" has residuals of type \"response\" only",
                                   object$family))
  }
  stats::naresid(object$na.action, if (type == "partial") partial_residuals(object) else
    glm_residuals(object, type))
}

glm_residuals <- function(object, type) {
  mu <- object$fitted.values
  if (has_classes(object$family)) return(outer(object$y, seq_along(object$levels), `==`) - mu)
  row <- family_row(object$family)
  y <- mean_response(object)
  w <- deviance_weights(object)
  result <- switch(type,
    response = y - mu,
    working = (y - mu) / row$slope(object$linear.predictors),
    pearson = sqrt(w / row$variance(mu, object$aux)) * (y - mu),
    deviance = sign(y - mu) * sqrt(pmax(row$deviance(y, mu, w, object$aux), 0)))
  stats::setNames(result, names(mu))
}

# ---- comparison ----------------------------------------------------------------------------------

#' Likelihood ratio tests of generalised linear models
#'
#' With several fits, each is compared with the one before. With one fit, its terms are tested one
#' after another, in the order in which they are added to the model. `"LRT"` and `"Chisq"` are the
#' same, the likelihood ratio test. `"F"`, for `normal_id`, is the test of [anova.lm()], with the
#' residual variance of the largest model. Families of R have the table of deviances that
#' [anova.glm()] has; where their dispersion is estimated, `"F"` is the default.
#'
#' @param object,... Fits of [cl_glm()] with `method = "ml"`: one fit, made with a formula and with
#'   its model frame; or several, of the same observations and family, nested in increasing or
#'   decreasing order.
#' @param test The test.
#' @return An object of class `"anova"`, a data frame with one row for each model and columns
#'   `Resid. Df`, `logLik`, `Df`, `LR` (twice the difference of the log likelihoods) and `Pr(>Chi)`;
#'   for `"F"` columns `Resid. Df`, `RSS`, `Df`, `Sum of Sq`, `F` and `Pr(>F)`.
#' @section Errors:
#' `statcl_error_argument` for other fits, for fits to different data, for other tests, and for
#' `"F"` with a family whose variance is known.
#' @export
#' @examples
#' small <- cl_glm(am ~ wt, data = mtcars)
#' anova(small, update(small, . ~ . + hp))
#' anova(cl_glm(count ~ spray, data = InsectSprays, family = "poisson_log"))
anova.cl_glm <- function(object, ..., test = c("LRT", "Chisq", "F")) {
  if (missing(test) && dispersion_estimated(object)) test <- "F"
  test <- check_choice(test, c("LRT", "Chisq", "F"), "test")
  if (test == "F" && !has_t_tests(object)) {
    abort_argument("test", sprintf(paste("an F test is not available for family \"%s\", whose",
                                         "variance is not estimated; use family \"normal_id\""),
                                   object$family))
  }
  table <- if (!is.null(r_family(object$family))) {
    single <- ...length() == 0L
    function(...) deviance_table(..., test, single)
  } else if (test == "F") f_table else ratio_table
  fits <- c(list(object), list(...))
  if (!all(vapply(fits, inherits, NA, "cl_glm"))) {
    abort_argument("...", "all arguments except 'test' must be fits of cl_glm()")
  }
  right <- vapply(fits, function(fit) fit$method == "ml", NA)
  if (!all(right)) abort_argument("...", "all fits must have method = \"ml\"")
  if (length(fits) == 1L) {
    if (!is.null(object$second)) {
      abort_argument("object", sprintf("family \"%s\": supply two fits", object$family))
    }
    fits <- term_fits(object)
    labels <- paste("Terms added sequentially, to", deparse1(formula(object)))
    return(table(fits, c("NULL", attr(stats::terms(object), "term.labels")), labels))
  }
  same <- vapply(fits, function(fit) {
    fit$family == object$family && identical(unname(fit$y), unname(object$y)) &&
      identical(fit$trials, object$trials) && identical(fit$prior.weights, object$prior.weights) &&
      identical(fit$stream$sums[1:4], object$stream$sums[1:4])
  }, NA)
  if (!all(same)) abort_argument("...", "the fits must have the same response and family")
  labels <- vapply(fits, function(fit) {
    deparse1(if (is.null(fit$formula)) fit$call else stats::formula(fit))
  }, "")
  table(fits, seq_along(fits), paste0("Model ", seq_along(fits), ": ", labels))
}

ratio_table <- function(fits, names, labels) {
  likelihood <- vapply(fits, function(fit) fit$logLik, 0)
  df <- vapply(fits, function(fit) as.numeric(fit$df.residual), 0)
  by <- c(NA, -diff(df))
  ratio <- c(NA, 2 * diff(likelihood)) * sign(by)
  p <- stats::pchisq(ratio, abs(by), lower.tail = FALSE)
  p[by %in% 0] <- NA
  table <- data.frame(df, likelihood, by, ratio, p, row.names = names)
  names(table) <- c("Resid. Df", "logLik", "Df", "LR", "Pr(>Chi)")
  heading <- c("Likelihood ratio tests\n", paste0(paste(labels, collapse = "\n"), "\n"))
  structure(table, heading = heading, class = c("anova", "data.frame"))
}

# Like ratio_table(), with F tests: the residual variance is that of the fit with the most
# coefficients.
f_table <- function(fits, names, labels) {
  df <- vapply(fits, function(fit) as.numeric(fit$df.residual), 0)
  rss <- vapply(fits, function(fit) fit$deviance, 0)
  largest <- which.min(df)
  by <- c(NA, -diff(df))
  squares <- c(NA, -diff(rss))
  f <- squares / by / (rss[largest] / df[largest])
  f[by %in% 0] <- NA
  p <- stats::pf(f, abs(by), df[largest], lower.tail = FALSE)
  table <- data.frame(df, rss, by, squares, f, p, row.names = names)
  names(table) <- c("Resid. Df", "RSS", "Df", "Sum of Sq", "F", "Pr(>F)")
  heading <- c("Analysis of variance\n", paste0(paste(labels, collapse = "\n"), "\n"))
  structure(table, heading = heading, class = c("anova", "data.frame"))
}

# Fits with no term, the first one, the first two, and so on; the last one is the object.
term_fits <- function(object) {
  if (is.null(object$terms)) {
    abort_argument("object", "the fit was made without a formula and has no terms: supply two fits")
  }
  if (!is.null(object$blocks)) return(stream_term_fits(object))
  x <- stats::model.matrix(object)
  response <- object[c("y", "trials", "levels", "kind")]
  response$weights <- object$prior.weights
  control <- glm_control(list(), "ml")$search
  smaller <- lapply(seq_len(max(object$assign)) - 1L, function(k) {
    columns <- x[, object$assign <= k, drop = FALSE]
    problem <- new_glm_problem(object$family, columns, response, object$offset, object$intercept)
    finish_glm(problem, glm_fit_mode(problem, NULL, NULL, control, FALSE), "ml")
  })
  c(smaller, list(object))
}
