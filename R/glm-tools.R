# Methods for the generics of other packages, which are used when these are installed: generics and
# broom, sandwich, lmtest, emmeans.

#' Fits in the tools of other packages
#'
#' Fits of [cl_glm()] by maximum likelihood work in the packages around [glm()]. These methods are
#' registered when the package that owns the generic is loaded; none of the packages is required.
#'
#' - **broom** (the generics `tidy()`, `glance()`, `augment()` of the generics package), and with it
#'   modelsummary and gtsummary: columns as for fits of [glm()]. For `categorical_logit`, `tidy()`
#'   has the column `y.level`; for `ordered_logistic` the column `coef.type`, as for `MASS::polr()`.
#' - **sandwich**: `estfun()` and `bread()`, with which `vcovHC()`, `vcovCL()` and `sandwich()`
#'   work.
#' - **lmtest**: `coeftest()` uses Student's t distribution for `normal_id` and the normal
#'   distribution for other families; `lrtest()` and `waldtest()` work as they are.
#' - **emmeans**: marginal means, contrasts and trends, on the link and on the response scale.
#' - **car**: `Anova()` as for [glm()], `linearHypothesis()`, `vif()`.
#'   **MASS**: `stepAIC()`. All of these use the
#'   methods listed in [cl_glm()].
#' - **insight** and **performance**: formulas, parameters, test statistics, model information;
#'   `r2()`, `model_performance()`, `check_collinearity()`, `check_overdispersion()` and others as
#'   for [glm()]; for random effects `get_variance()`, `icc()` and `r2_nakagawa()` as for lme4.
#' - **xtable**: the table of coefficients.
#'
#' Where a package needs an object of class `"glm"`, [cl_as_glm()] makes one.
#'
#' @param x,object A fit of [cl_glm()].
#' @param conf.int,conf.level Whether to add confidence limits, and their level.
#' @param exponentiate Whether to give `exp()` of estimates and limits, such as odds ratios.
#' @param data,newdata The data of the fit, by default its model frame; or new data.
#' @param type.predict,type.residuals Types of the predictions ([predict.cl_glm()]) and residuals
#'   ([residuals.cl_glm()]).
#' @param se_fit Whether to add standard errors of the predictions.
#' @param vcov.,df A covariance matrix, or a function that computes it from `x`; degrees of freedom.
#' @param trms,xlev,grid Set by emmeans.
#' @param ... Passed to [confint.cl_glm()] by `tidy()`, otherwise to the generic's other methods.
#' @return `tidy()`, `glance()` and `augment()`: a data frame, a tibble if that package is
#'   installed. `estfun()`: an n x p matrix, the derivatives of the log density of each observation
#'   with respect to the coefficients. `bread()`: the number of observations times `vcov(x)`.
#'   `coeftest()`: as for other models.
#' @section Errors:
#' `statcl_error_argument` for families with classes, except by `tidy()` and `glance()`.
#' @name cl_glm-tools
#' @examples
#' fit <- cl_glm(am ~ wt + hp, data = mtcars)
#' if (requireNamespace("generics", quietly = TRUE)) {
#'   generics::tidy(fit, conf.int = TRUE, exponentiate = TRUE)
#' }
NULL

# A tibble, or without that package a data frame.
table_of <- function(columns) {
  table <- as.data.frame(columns, stringsAsFactors = FALSE, optional = TRUE)
  rownames(table) <- NULL
  if (requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(table) else table
}

#' @rdname cl_glm-tools
#' @exportS3Method generics::tidy
tidy.cl_glm <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, ...) {
  conf.int <- check_flag(conf.int, "conf.int")
  exponentiate <- check_flag(exponentiate, "exponentiate")
  if (!conf.int) check_dots_empty(...)
  found <- summary(x)$coefficients
  table <- list(term = rownames(found), estimate = unname(found[, 1L]),
                std.error = unname(found[, 2L]))
  if (ncol(found) > 2L) {
    table$statistic <- unname(found[, 3L])
    if (ncol(found) > 3L) table$p.value <- unname(found[, 4L])
  }
  if (is_categorical(x$family)) {
    width <- nchar(x$levels)[-1L] + 1L
    of <- rep(seq_along(width), each = length(table$term) / length(width))
    table <- c(list(y.level = x$levels[-1L][of]), table)
    table$term <- substring(table$term, width[of] + 1L)
  }
  if (conf.int) {
    limits <- stats::confint(x, level = conf.level, ...)
    table$conf.low <- unname(limits[, 1L])
    table$conf.high <- unname(limits[, 2L])
  }
  if (exponentiate) {
    for (name in intersect(c("estimate", "conf.low", "conf.high"), names(table))) {
      table[[name]] <- exp(table[[name]])
    }
  }
  if (is_ordered(x$family)) {
    table$coef.type <- rep(c("coefficient", "scale"), c(length(x$coefficients), length(x$aux)))
  }
  table_of(table)
}

#' @rdname cl_glm-tools
#' @exportS3Method generics::glance
glance.cl_glm <- function(x, ...) {
  table_of(list(null.deviance = x$null.deviance, df.null = x$df.null, logLik = x$logLik,
                AIC = stats::AIC(x), BIC = stats::BIC(x), deviance = x$deviance,
                df.residual = x$df.residual, nobs = stats::nobs(x)))
}

#' @rdname cl_glm-tools
#' @exportS3Method generics::augment
augment.cl_glm <- function(x, data = stats::model.frame(x), newdata = NULL,
                           type.predict = c("link", "response", "terms"),
                           type.residuals = c("deviance", "pearson"), se_fit = FALSE, ...) {
  type.predict <- check_choice(type.predict, c("link", "response", "terms"), "type.predict")
  type.residuals <- check_choice(type.residuals, c("deviance", "pearson"), "type.residuals")
  se_fit <- check_flag(se_fit, "se_fit")
  one_predictor(x, "x")
  fresh <- !is.null(newdata)
  table <- as.data.frame(if (fresh) newdata else data)
  if (!fresh && nrow(table) <= length(x$y)) x["na.action"] <- list(NULL)
  found <- stats::predict(x, if (fresh) newdata, type = type.predict, se.fit = se_fit)
  # The fit has no values for rows that na.action removed, but `data` may have them.
  if (!fresh && inherits(x$na.action, "omit") && nrow(table) > length(x$y)) {
    table <- table[-x$na.action, , drop = FALSE]
  }
  plain <- function(v) if (is.matrix(v)) v else unname(v)
  if (any(rownames(table) != seq_len(nrow(table)))) {
    table <- cbind(data.frame(.rownames = rownames(table), stringsAsFactors = FALSE), table)
  }
  table$.fitted <- plain(if (se_fit) found$fit else found)
  if (se_fit) table$.se.fit <- plain(found$se.fit)
  if (!fresh) {
    infl <- stats::influence(x, do.coef = FALSE)
    table$.resid <- unname(stats::residuals(x, type.residuals))
    used <- !stats::naresid(x$na.action, deviance_weights(x)) %in% 0
    lost <- is.na(table$.resid) # rows that na.exclude removed
    fill <- function(v) replace(replace(rep(NA_real_, nrow(table)), used, v), lost, NA)
    table$.std.resid <- fill(stats::rstandard(x, type = type.residuals))
    table$.hat <- fill(infl$hat)
    table$.sigma <- fill(infl$sigma)
    table$.cooksd <- fill(stats::cooks.distance(x))
  }
  table_of(table)
}

# Whether a row has several linear predictors, or a density that is not that of a GLM.
several_predictors <- function(x) has_classes(x$family) || !is.null(density_of(x$family))

one_predictor <- function(x, argument) {
  if (!several_predictors(x)) return(invisible())
  abort_argument(argument, sprintf(paste("family \"%s\" is not supported here: it has several",
                                         "linear predictors"), x$family))
}

# ---- covariance matrices and tests ---------------------------------------------------------------

#' @rdname cl_glm-tools
#' @exportS3Method sandwich::estfun
estfun.cl_glm <- function(x, ...) {
  refuse_mixed(x, "contributions of observations")
  one_predictor(x, "x")
  x$na.action <- NULL
  design <- as.matrix(stats::model.matrix(x))[, !is.na(x$coefficients), drop = FALSE]
  slope <- stats::weights(x, "working") * glm_residuals(x, "working") / dispersion(x)
  slope[deviance_weights(x) == 0] <- 0
  result <- design * as.vector(slope)
  attr(result, "assign") <- attr(result, "contrasts") <- NULL
  result
}

#' @rdname cl_glm-tools
#' @exportS3Method sandwich::bread
bread.cl_glm <- function(x, ...) {
  one_predictor(x, "x")
  (if (is.null(x$blocks)) length(x$y) else x$nobs) * stats::vcov(x, complete = FALSE)
}

#' @rdname cl_glm-tools
#' @exportS3Method lmtest::coeftest
coeftest.cl_glm <- function(x, vcov. = NULL, df = NULL, ...) {
  if (is.null(df)) {
    df <- if (is_least_squares(x$family) && has_t_tests(x)) x$df.residual else Inf
  }
  NextMethod(df = df)
}

# ---- marginal means ------------------------------------------------------------------------------

#' @rdname cl_glm-tools
#' @exportS3Method emmeans::recover_data
recover_data.cl_glm <- function(object, ...) {
  refuse_stream(object, "reference grids")
  emmeans::recover_data(object$call, stats::delete.response(stats::terms(object)),
                        object$na.action, frame = object$model, ...)
}

# Without the second part of a fit.
coefficient_vcov <- function(object) {
  k <- intersect(names(object$coefficients), rownames(object$vcov))
  object$vcov[k, k, drop = FALSE]
}

#' @rdname cl_glm-tools
#' @exportS3Method emmeans::emm_basis
emm_basis.cl_glm <- function(object, trms, xlev, grid, ..., vcov. = NULL) {
  given <- if (!is.null(vcov.)) emmeans::.my.vcov(object, vcov., ...)
  if (has_classes(object$family)) return(class_basis(object, trms, xlev, grid, given, ...))
  frame <- stats::model.frame(trms, grid, na.action = stats::na.pass, xlev = xlev)
  design <- stats::model.matrix(trms, frame, contrasts.arg = object$contrasts)
  beta <- object$coefficients
  estimable <- if (anyNA(beta)) {
    estimability::nonest.basis(stats::model.matrix(object))
  } else {
    matrix(NA)
  }
  exact <- object$method == "ml" && is.null(object$random) &&
    (is_least_squares(object$family) || isTRUE(family_row(object$family)$exact))
  list(X = design, bhat = unname(beta), nbasis = estimable,
       V = if (is.null(given)) coefficient_vcov(object) else given,
       dffun = function(k, dfargs) dfargs$df,
       dfargs = list(df = if (exact) object$df.residual else Inf),
       misc = emmeans::.std.link.labels(family(object), list()))
}

# By the methods of emmeans for fits of MASS::polr() and nnet::multinom(), with their arguments
# `mode` and `rescale`.
class_basis <- function(object, trms, xlev, grid, vcov, ...) {
  beta <- object$coefficients
  if (anyNA(beta)) {
    abort_argument("object", "marginal means of classes need a fit without dependent columns")
  }
  levels <- object$levels
  like <- list(contrasts = object$contrasts, terms = object$terms, coefficients = beta,
               call = call("cl_glm", formula = stats::formula(object)))
  if (is_ordered(object$family)) {
    like$zeta <- stats::setNames(object$aux, paste(levels[-length(levels)], levels[-1L], sep = "|"))
    like$method <- "logistic"
    class(like) <- "polr"
  } else {
    rows <- matrix(beta, length(levels) - 1L, byrow = TRUE)
    like[c("lev", "edf", "n", "vcoefnames")] <-
      list(levels, length(beta), c(ncol(rows), 0, length(levels)), seq_len(ncol(rows)))
    like$wts <- c(if (length(levels) > 2L) numeric(ncol(rows) + 1L), t(cbind(0, rows)))
    if (length(levels) > 2L) like$coefficients <- rows
    class(like) <- "multinom"
  }
  basis <- utils::getS3method("emm_basis", class(like), FALSE, asNamespace("emmeans"))
  basis(like, trms, xlev, grid, vcov. = if (is.null(vcov)) object$vcov else vcov, ...)
}
