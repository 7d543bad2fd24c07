# Predictions, simulations, tests and intervals of fits with random effects.

# ---- predictions ---------------------------------------------------------------------------------

#' Predictions, simulations and tests of models with random effects
#'
#' @param object A fit of [cl_glmm()].
#' @param newdata A data frame; by default the data of the fit.
#' @param type `"link"`: linear predictors; `"response"`: means.
#' @param re.form `NULL`: with the random effects; `NA`: without them (for `simulate()`, with new
#'   ones); for `predict()` also a formula with some of the fit's random terms, such as `~ (1 | g)`,
#'   or fields. New values of `rw2()` and `seasonal()` cannot be drawn.
#' @param allow.new.levels Whether levels of a grouping factor that the fit has not seen get effects
#'   of 0; otherwise they are an error.
#' @param se.fit Whether to give standard errors.
#' @param interval `"confidence"` adds limits for the linear predictor or mean, `"prediction"`
#'   limits for a new observation, see below.
#' @param level Level of the intervals.
#' @param condVar Whether the effects have the attribute `"postVar"`, their K x K x L covariance
#'   matrices given the other estimates, as in lme4.
#' @param parm Names or numbers of parameters; `"theta_"` stands for standard deviations,
#'   correlations and `sigma`, `"beta_"` for the fixed effects.
#' @param method `"wald"`: intervals of the fixed effects from standard errors; `"profile"`: by
#'   profile likelihoods, also for standard deviations and correlations of random effects and
#'   `sigma`, as in lme4. Fits by REML are first fitted by maximum likelihood.
#' @param nsim,seed As for [simulate()].
#' @param ... For `anova()`: further fits, of which each is compared with the one before, ordered by
#'   their number of parameters. Otherwise not used.
#' @param refit Whether fits by REML are first fitted by maximum likelihood, as `extractAIC()` does,
#'   and with it `drop1()`. Restricted likelihoods can be compared for equal fixed effects only:
#'   otherwise `anova(refit = FALSE)`, and `AIC()` and `BIC()` of several fits, are an error.
#' @return `predict()`: a vector, a matrix with limits, or a list with `fit` and `se.fit`.
#'   `simulate()`: a data frame. `confint()`: a matrix. `ranef()`: a list of data frames, one for
#'   each grouping factor, with methods for `plot()` and `as.data.frame()`.
#'   `anova()`: a data frame of class `"anova"` with the columns of lme4.
#' @section Uncertainty of predictions:
#' Standard errors have the uncertainty of the fixed effects and, where predictions contain random
#' effects, that of these and their dependence, given the variances. For `"normal_id"` they are
#' those of best linear unbiased prediction; for other families the effects are normal about their
#' modes, with the Hessian of Laplace's approximation. The effects of a new level
#' (`allow.new.levels = TRUE`) add their variance in the model.
#'
#' A prediction interval is for a new observation of weight 1, for `newdata = NULL` of the weight in
#' the fit; random terms that `re.form` leaves out count as new levels. It is available for normal,
#' gamma, Poisson and negative binomial responses.
#'
#' For fits by `"mcmc"` predictions are means over draws of coefficients and effects, standard
#' errors their standard deviations and intervals their quantiles.
#' @section Errors:
#' `statcl_error_argument` for new levels, missing variables, and fits to different data.
#' @export
#' @examples
#' fit <- cl_glmm(breaks ~ tension + (1 | wool:tension), warpbreaks, "poisson_log")
#' predict(fit, data.frame(tension = "L"), re.form = NA, type = "response", se.fit = TRUE)
#' anova(fit, update(fit, . ~ . - tension))
predict.cl_glmm <- function(object, newdata = NULL, type = c("link", "response"), re.form = NULL,
                            allow.new.levels = FALSE, se.fit = FALSE,
                            interval = c("none", "confidence", "prediction"), level = 0.95, ...) {
  check_dots_empty(...)
  type <- check_choice(type, c("link", "response"), "type")
  interval <- check_choice(interval, c("none", "confidence", "prediction"), "interval")
  level <- check_number(level, "level", 0, 1)
  se.fit <- check_flag(se.fit, "se.fit")
  allow <- check_flag(allow.new.levels, "allow.new.levels")
  used <- used_effects(object, re.form)
  if (interval == "prediction") check_response_law(object, type)
  fresh <- !is.null(newdata)
  pad <- function(v) if (fresh) v else stats::napredict(object$na.action, v)
  points <- if (fresh || !all(used) || se.fit || interval != "none" || !is.null(object$draws))
    glm_points(object, newdata)
  rows <- if (any(used) || interval == "prediction")
    predict_rows(object, newdata, used, allow, interval == "prediction")
  eta <- if (!fresh && all(used)) object$linear.predictors else
    glm_predictor(object, points$x, points$offset) + predict_effects(object, rows)
  weights <- if (fresh) 1 else ones_unless(object$prior.weights, 1L)
  if (is.null(object$draws) && !se.fit && interval == "none") {
    return(pad(if (type == "link") eta else glm_mean(object, eta)))
  }
  found <- if (is.null(object$draws))
    predict_wald(object, eta, points, rows, type, interval, level, weights) else
      predict_drawn(object, points, rows, type, interval, level, weights)
  fit <- stats::setNames(found$fit, names(eta))
  if (interval != "none") {
    fit <- matrix(c(fit, found$lower, found$upper), length(eta), 3L,
                  dimnames = list(names(fit), c("fit", "lwr", "upr")))
  }
  if (!se.fit) return(pad(fit))
  list(fit = pad(fit), se.fit = pad(stats::setNames(found$se, names(eta))))
}

# For each random term, and then for each field, whether predictions contain it.
used_effects <- function(object, re.form) {
  if (!inherits(re.form, "formula") || identical(deparse(re.form), "~0")) {
    return(rep(with_effects(re.form), length(object$effects) + length(object$fields)))
  }
  label <- function(columns, of) paste(deparse1(columns), "|", deparse1(of))
  own <- vapply(object$effects, function(e) label(stats::formula(e$terms)[[2L]], e$of), "")
  fields <- vapply(object$fields, `[[`, "", "label")
  given <- c(vapply(random_terms(random_bars(re.form[[length(re.form)]])), function(term)
    label(term$columns, term$group), ""),
    vapply(field_calls(re.form[[length(re.form)]]), deparse1, ""))
  shown <- c(sprintf("(%s)", own), fields)
  own <- c(own, fields)
  if (length(given) == 0L || !all(given %in% own)) {
    abort_argument("re.form", sprintf("'re.form' must have random terms of the fit: %s",
                                      paste0(shown, collapse = ", ")))
  }
  own %in% given
}

# The design of a random term at new data.
new_design <- function(object, effect, newdata) {
  group <- terms_within(call_formula(effect$of, environment(object$all_terms)), object$all_terms)
  list(x = new_effect_columns(effect, newdata),
       factor = group_factor(effect$of, new_frame(group, newdata, NULL))$factor)
}

new_effect_columns <- function(effect, newdata) {
  stats::model.matrix(effect$terms, new_frame(effect$terms, newdata, effect$xlevels),
                      contrasts.arg = effect$contrasts)
}

with_effects <- function(re.form) {
  if (is.null(re.form)) return(TRUE)
  if (length(re.form) == 1L && is.na(re.form) || identical(deparse(re.form), "~0")) return(FALSE)
  abort_argument("re.form", "'re.form' must be NULL (with all random effects) or NA (with none)")
}

#' @rdname predict.cl_glmm
#' @export
simulate.cl_glmm <- function(object, nsim = 1, seed = NULL, re.form = NA, ...) {
  nsim <- check_count(nsim, "nsim")
  old <- with_effects(re.form)
  designs <- if (!old) random_designs(random_terms(random_bars(object$formula[[3L]])),
                                      stats::model.frame(object))
  dropped <- object$na.action
  object$na.action <- NULL
  fixed <- if (!old) stats::predict(object, re.form = NA)
  fields <- if (!old) field_draws(object)
  with_seed(seed, {
    values <- lapply(seq_len(nsim), function(i) {
      if (old) return(draw_response(object, object$fitted.values, object$aux))
      eta <- fixed
      for (t in seq_along(designs)) {
        d <- designs[[t]]
        b <- tcrossprod(matrix(stats::rnorm(nlevels(d$factor) * ncol(d$x)), ncol = ncol(d$x)),
                        object$roots[[t]])
        eta <- eta + rowSums(d$x * b[as.integer(d$factor), , drop = FALSE])
      }
      for (draw in fields) eta <- eta + draw()
      draw_response(object, glm_mean(object, eta), object$aux)
    })
    names(values) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
    place <- stats::napredict(dropped, seq_along(object$fitted.values))
    as.data.frame(lapply(values, `[`, place))
  })
}

# ---- tests and intervals -------------------------------------------------------------------------

# A fit by REML, fitted again by maximum likelihood.
by_likelihood <- function(fit) {
  if (fit$method != "reml") return(fit)
  work <- mixed_work(fit, "ml")
  again <- if (has_latent(fit)) fit_fields else fit_normal
  found <- suppressMessages(finish_mixed(work, again(work)))
  fit[names(found)] <- found
  fit$call$method <- "ml"
  fit
}

# A restricted likelihood is that of the data without the part of the fixed effects.
check_restricted <- function(fits) {
  fits <- Filter(function(fit) inherits(fit, "cl_glmm"), fits)
  reml <- vapply(fits, function(fit) fit$method == "reml", NA)
  fixed <- unique(lapply(fits, function(fit) list(names(fit$coefficients), fit$contrasts)))
  if (any(reml) && (!all(reml) || length(fixed) > 1L)) {
    abort_argument("...", paste("restricted likelihoods can be compared for equal fixed effects",
                                "only: fit the models with method = \"ml\""))
  }
}

#' @export
AIC.cl_glmm <- function(object, ..., k = 2) {
  check_restricted(list(object, ...))
  NextMethod()
}

#' @export
BIC.cl_glmm <- function(object, ...) {
  check_restricted(list(object, ...))
  NextMethod()
}

# For drop1(), which compares different fixed effects; step() would remove the random ones from the
# formula.
#' @export
extractAIC.cl_glmm <- function(fit, scale = 0, k = 2, ...) {
  if (!has_effects(fit$formula[[3L]])) {
    abort_argument("object", "step() cannot change models with random effects: use drop1()")
  }
  extractAIC.cl_glm(by_likelihood(fit), scale, k, ...)
}

#' @rdname predict.cl_glmm
#' @export
anova.cl_glmm <- function(object, ..., refit = TRUE) {
  fits <- c(list(object), list(...))
  if (length(fits) < 2L || !all(vapply(fits, inherits, NA, "cl_glmm"))) {
    abort_argument("...", "anova() compares two or more fits with random effects")
  }
  if (any(vapply(fits, function(fit) fit$method %in% c("map", "mcmc"), NA))) {
    abort_argument("...", "anova() compares fits by maximum likelihood")
  }
  same <- vapply(fits, function(fit) fit$family == object$family &&
                   identical(unname(fit$y), unname(object$y)), NA)
  if (!all(same)) abort_argument("...", "the fits must have the same response and family")
  if (check_flag(refit, "refit")) fits <- lapply(fits, by_likelihood) else check_restricted(fits)
  fits <- fits[order(vapply(fits, function(fit) fit$df, 0))]
  df <- vapply(fits, function(fit) fit$df, 0)
  value <- vapply(fits, function(fit) fit$logLik, 0)
  ratio <- pmax(c(NA, 2 * diff(value)), 0)
  by <- c(NA, diff(df))
  p <- ifelse(by > 0, stats::pchisq(ratio, by, lower.tail = FALSE), NA)
  table <- data.frame(npar = df, AIC = vapply(fits, stats::AIC, 0),
                      BIC = vapply(fits, stats::BIC, 0), logLik = value, deviance = -2 * value,
                      Chisq = ratio, Df = by, `Pr(>Chisq)` = p, check.names = FALSE)
  labels <- vapply(fits, function(fit) deparse1(stats::formula(fit)), "")
  heading <- c("Likelihood ratio tests\n", paste0("Model ", seq_along(fits), ": ", labels), "")
  structure(table, heading = paste(heading, collapse = "\n"), class = c("anova", "data.frame"))
}

#' @rdname predict.cl_glmm
#' @export
confint.cl_glmm <- function(object, parm, level = 0.95, method = c("wald", "profile"), ...) {
  method <- check_choice(method, c("wald", "profile"), "method")
  if (method == "wald") return(NextMethod(method = "wald"))
  check_dots_empty(...)
  level <- check_number(level, "level", 0, 1)
  if (object$method %in% c("map", "mcmc")) {
    abort_argument("method", "profile likelihoods need a fit by maximum likelihood")
  }
  spread <- all_spread_names(object)
  all <- c(spread, rownames(object$vcov))
  wanted <- if (missing(parm)) all else if (is.numeric(parm)) all[parm] else
    switch(parm[1L], theta_ = spread, beta_ = rownames(object$vcov), parm)
  if (!all(wanted %in% all)) {
    abort_argument("parm", sprintf("there is no parameter '%s'", wanted[!wanted %in% all][1L]))
  }
  tails <- c((1 - level) / 2, (1 + level) / 2)
  result <- mixed_profiles(object, wanted, stats::qnorm(tails[2L]))
  colnames(result) <- paste(format(100 * tails, trim = TRUE, digits = 3), "%")
  result
}

#' @rdname cl_glm-tools
#' @exportS3Method generics::tidy
tidy.cl_glmm <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, ...) {
  fixed <- as.data.frame(NextMethod())
  rows <- as.data.frame(variance_components(x))
  own <- rows$grp == "Residual" & is.na(rows$var1)
  what <- ifelse(is.na(rows$var2), paste0("sd__", ifelse(own, "Observation", rows$var1)),
                 paste0("cor__", rows$var1, ".", rows$var2))
  table <- fixed[rep(NA_integer_, nrow(rows)), , drop = FALSE]
  table$term <- what
  table$estimate <- rows$sdcor
  table$std.error <- unname(spread_errors(x)[ifelse(own, "sigma", paste0(
    ifelse(is.na(rows$var2), "sd_", paste0("cor_", rows$var2, ".")), rows$var1, "|", rows$grp))])
  table_of(cbind(data.frame(effect = rep(c("fixed", "ran_pars"), c(nrow(fixed), nrow(rows))),
                            group = c(rep(NA_character_, nrow(fixed)), rows$grp),
                            stringsAsFactors = FALSE), rbind(fixed, table)))
}

#' @rdname cl_glm-tools
#' @exportS3Method generics::glance
glance.cl_glmm <- function(x, ...) {
  table_of(list(nobs = stats::nobs(x), sigma = stats::sigma(x), logLik = x$logLik,
                AIC = stats::AIC(x), BIC = stats::BIC(x), df.residual = x$df.residual))
}
