# Fits as objects of class "glm", and with them methods for insight, performance, parameters and
# xtable.

#' A fit as an object of class "glm"
#'
#' For functions that access objects of [glm()] directly, without generics: the fit of [cl_glm()]
#' with all elements that [glm()] gives, of class `"glm"`, and with `MASS::glm.nb()`'s class for
#' `neg_binomial_2_log`. Estimates and the deviance are those of the fit. One QR decomposition is
#' computed, as by [cl_glm_fit()].
#'
#' Methods for insight, parameters and performance use this object, so that for example
#' `performance::r2()` and `performance::check_overdispersion()` give for a fit what they give for a
#' fit of [glm()]. Packages that take objects of a list of classes only, such as marginaleffects,
#' need the object itself, `marginaleffects::slopes(cl_as_glm(fit))`, or the name of the class:
#' `options(marginaleffects_model_classes = "cl_glm")`. These calls are not tested, as the tests
#' run with insight 0.19, and marginaleffects 0.27 needs insight 1.3. It uses these parts of a fit:
#' `insight::get_parameters()`, `get_varcov()`, `get_data()`, other `coefficients` in the fit, and
#' [predict()] of new data.
#'
#' @param fit A fit of [cl_glm()] by maximum likelihood, with a formula and its model frame, of a
#'   family that [glm()] or `MASS::glm.nb()` has, or a family of R.
#' @return An object of class `"glm"`.
#' @section Errors:
#' `statcl_error_argument` for other fits.
#' @seealso [cl_glm_fit()], [cl_glm-tools]
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt, data = mtcars)
#' drop1(cl_as_glm(fit), test = "Rao")
cl_as_glm <- function(fit) {
  if (!inherits(fit, "cl_glm")) abort_argument("fit", "'fit' must be a fit of cl_glm()")
  one_predictor(fit, "fit")
  refuse_mixed(fit, "objects of class \"glm\"")
  if (fit$method != "ml") {
    abort_argument("fit", "only fits with method = \"ml\" have an object of class \"glm\"")
  }
  frame <- stats::model.frame(fit)
  row <- family_row(fit$family)
  negative <- is.null(row$base) && identical(row$aux, "phi")
  if (negative) {
    if (!requireNamespace("MASS", quietly = TRUE)) {
      abort_argument("fit", "family \"neg_binomial_2_log\" needs the package MASS here")
    }
    family <- MASS::negative.binomial(fit$aux[[1L]], link = "log")
  } else {
    family <- irls_family(fit$family, fit$aux)
  }
  y <- mean_response(fit)
  trials <- ones_unless(fit$trials, length(y))
  parts <- as_glm(fit, as.matrix(stats::model.matrix(fit)), y, deviance_weights(fit), trials,
                  family, stats::glm.control(), names(fit$fitted.values))
  if (is.null(row$base)) parts$aic <- stats::AIC(fit)
  formula <- stats::formula(fit)
  own <- fit$call
  own <- own[names(own) %in% c("data", "weights", "subset", "na.action", "offset", "contrasts")]
  call <- as.call(c(if (negative) quote(MASS::glm.nb) else quote(glm), formula = formula,
                    if (!negative) list(family = call(family$family, link = family$link)),
                    as.list(own)))
  structure(c(parts, list(
    model = frame, call = call, formula = formula, terms = fit$terms,
    data = environment(formula), offset = fit$offset, control = stats::glm.control(),
    method = "glm.fit", contrasts = fit$contrasts, xlevels = fit$xlevels, na.action = fit$na.action,
    theta = if (negative) fit$aux[[1L]], SE.theta = if (negative) fit$aux_error,
    twologlik = if (negative) 2 * fit$logLik)), class = c(if (negative) "negbin", "glm", "lm"))
}

# Whether cl_as_glm() takes the fit.
has_twin <- function(x) {
  x$method == "ml" && is.null(x$random) && !several_predictors(x) && !is.null(x$model)
}

# A method that calls the generic of `package` for the "glm" object. For fits without one, the
# generic's method for the class other(fit).
twin_method <- function(package, other = function(x) "default") {
  force(other)
  function(...) {
    given <- list(...)
    method <- getExportedValue(package, .Generic)
    if (has_twin(given[[1L]])) {
      given[[1L]] <- cl_as_glm(given[[1L]])
    } else {
      home <- environment(method)
      method <- utils::getS3method(.Generic, other(given[[1L]]), TRUE, home)
      if (is.null(method)) method <- utils::getS3method(.Generic, "default", TRUE, home)
      if (is.null(method)) {
        refuse_mixed(given[[1L]], "these results")
        one_predictor(given[[1L]], "x")
      }
    }
    do.call(method, given, quote = TRUE)
  }
}

# ---- stats and car -------------------------------------------------------------------------------

#' @importFrom stats drop1
#' @export
drop1.cl_glm <- function(object, ...) single_terms(object, "drop1", ...)

#' @importFrom stats add1
#' @export
add1.cl_glm <- function(object, ...) single_terms(object, "add1", ...)

# By the method for glm() if the family has one; otherwise by refits to the rows in use.
single_terms <- function(object, generic, ..., test = "none") {
  given <- list(...)
  do.call(check_dots_empty, given[!names(given) %in% c("", "scope", "scale", "k", "trace", "x")])
  if (has_twin(object) && !is.null(family_row(object$family)$base)) {
    return(getExportedValue("stats", generic)(cl_as_glm(object), ..., test = test))
  }
  test <- if (identical(test, "LRT")) "Chisq" else
    check_choice(test, c("none", "Chisq", "LRT"), "test")
  data <- object$call$data
  if (!is.null(object$na.action) && !is.null(data)) {
    data <- as.data.frame(eval(data, environment(stats::formula(object))))
    object$call$data <- data[!rownames(data) %in% names(object$na.action), , drop = FALSE]
  }
  utils::getS3method(generic, "default")(object, ..., test = test)
}

#' @exportS3Method car::Anova
Anova.cl_glm <- function(mod, ..., vcov. = coefficient_vcov(mod)) {
  Anova <- getExportedValue("car", "Anova")
  if (has_twin(mod)) {
    twin <- cl_as_glm(mod)
    return(if (missing(vcov.)) Anova(twin, ...) else Anova(twin, ..., vcov. = vcov.))
  }
  if (has_classes(mod$family)) {
    abort_argument("mod", "Anova() is not available for classes: use drop1(fit, test = \"LRT\")")
  }
  utils::getS3method("Anova", "default", FALSE, environment(Anova))(mod, ..., vcov. = vcov.)
}

#' @importFrom stats variable.names
#' @export
variable.names.cl_glm <- function(object, full = FALSE, ...) {
  names(if (check_flag(full, "full")) object$coefficients else coef(object, complete = FALSE))
}

#' @importFrom stats case.names
#' @export
case.names.cl_glm <- function(object, full = FALSE, ...) {
  names(stats::weights(object))[check_flag(full, "full") | !stats::weights(object) %in% 0]
}

# Elements of a glm object that functions without methods need: dffits() and covratio().
# influence.measures() would treat a fit as one of lm().
#' @export
`$.cl_glm` <- function(x, name) {
  value <- .subset2(x, name, exact = FALSE)
  if (name == "family") class(value) <- c("cl_family_name", oldClass(value), "character")
  if (!is.null(value)) return(value)
  if (name == "aic") return(stats::AIC(x))
  if (name != "qr" || !has_twin(x)) return(NULL)
  callers <- lapply(seq_len(sys.nframe()), sys.function)
  if (any(vapply(callers, identical, NA, stats::influence.measures))) {
    abort_argument("model", paste("influence.measures() is for fits of lm() and glm(): write",
                                  "influence.measures(cl_as_glm(fit))"))
  }
  cl_as_glm(x)$qr
}

# The name of a family, whose parts are those of family(): fit$family$family, fit$family$linkinv.
#' @export
`$.cl_family_name` <- function(x, name) full_family(x)[[name]]

#' @export
print.cl_family_name <- function(x, ...) {
  print(as.vector(unclass(x)))
  invisible(x)
}

# ---- insight -------------------------------------------------------------------------------------

on_insight <- twin_method("insight")

#' @rawNamespace S3method(insight::model_info,cl_glm,on_insight)
NULL

# With limits by predict(). ggpredict() of ggeffects 1 does not pass its level on.
#' @exportS3Method insight::get_predicted
get_predicted.cl_glm <- function(x, data = NULL, predict = "expectation", ...,
                                 ci = dynGet("ci.lvl", NULL)) {
  ranges <- c(expectation = "confidence", link = "confidence", prediction = "prediction")
  if (is.null(ci) || is.na(ci) || has_classes(x$family) || !predict %in% names(ranges)) {
    get_predicted <- getExportedValue("insight", "get_predicted")
    if (!has_twin(x)) get_predicted <- utils::getS3method("get_predicted", "default", FALSE,
                                                          environment(get_predicted))
    return(get_predicted(if (has_twin(x)) cl_as_glm(x) else x, data, predict, ..., ci = ci))
  }
  found <- stats::predict(x, data, type = if (predict == "link") "link" else "response",
                          se.fit = TRUE, interval = ranges[[predict]], level = ci)
  limits <- data.frame(SE = found$se.fit, CI_low = found$fit[, "lwr"],
                       CI_high = found$fit[, "upr"], row.names = NULL)
  structure(unname(found$fit[, "fit"]), ci_data = limits, ci = ci,
            class = c("get_predicted", "numeric"))
}

#' @exportS3Method insight::get_predicted
get_predicted.cl_glmm <- function(x, data = NULL, predict = "expectation", ...) {
  type <- if (identical(predict, "link")) "link" else "response"
  structure(stats::predict(x, data, type = type), class = c("get_predicted", "numeric"))
}

# The name of the test statistic, as insight has it.
statistic_name <- function(x) {
  if (x$method == "mcmc") return(NULL)
  if (has_t_tests(x) || is_least_squares(x$family) && !is.null(x$random)) "t-statistic" else
    "z-statistic"
}

#' @exportS3Method insight::get_statistic
get_statistic.cl_glm <- function(x, ...) {
  found <- summary(x)$coefficients
  structure(data.frame(Parameter = rownames(found), Statistic = unname(found[, 3L]),
                       stringsAsFactors = FALSE), statistic = statistic_name(x))
}

#' @exportS3Method insight::get_df
get_df.cl_glm <- function(x, type = "residual", ...) {
  type <- check_choice(type, c("residual", "model", "wald", "normal", "analytical"), "type")
  if (type == "model") return(likelihood_df(x))
  if (type == "normal" || type == "wald" && statistic_name(x) == "z-statistic") Inf else
    x$df.residual
}

#' @exportS3Method insight::get_loglikelihood
get_loglikelihood.cl_glm <- function(x, ...) stats::logLik(x)

# On the scale of the link; with a logarithmic one by the log-normal approximation, for counts at
# the mean of the model without predictors.
distribution_variance <- function(x) {
  row <- family_row(x$family)
  if (row$least_squares) return(x$aux[[1L]]^2)
  link <- stats::family(x)$link
  if (row$trials || row$two_classes) {
    return(switch(link, logit = pi^2 / 3, probit = 1, cloglog = pi^2 / 6, NA_real_))
  }
  if (link != "log") return(if (link == "sqrt") 0.25 else NA_real_)
  if (!row$counts) return(log1p(x$aux[[1L]]))
  null <- suppressMessages(eval(stats::update(x, null_formula(x), evaluate = FALSE),
                                environment(x$formula)))
  mu <- exp(null$coefficients[[1L]])
  log1p(row$variance(mu, x$aux[1L]) / mu^2)
}

# The formula with the random effects and no other predictor.
null_formula <- function(x) {
  whole <- x$formula
  bars <- c(lapply(random_bars(whole[[3L]]), function(e) call("(", e)), field_calls(whole[[3L]]))
  whole[[3L]] <- Reduce(function(a, b) call("+", a, b), bars, 1)
  whole
}

# ---- performance ---------------------------------------------------------------------------------

on_performance <- twin_method("performance", function(x)
  if (!is.null(x$random)) "merMod" else "lm")

#' @rawNamespace
#' S3method(performance::model_performance,cl_glm,on_performance)
#' S3method(performance::check_overdispersion,cl_glm,on_performance)
#' S3method(performance::check_outliers,cl_glm,on_performance)
#' S3method(performance::check_model,cl_glm,on_performance)
#' S3method(performance::check_heteroscedasticity,cl_glm,on_performance)
#' S3method(performance::r2_coxsnell,cl_glm,on_performance)
NULL

on_twin_performance <- function(name, model, ...) {
  getExportedValue("performance", name)(cl_as_glm(model), ...)
}

#' @exportS3Method performance::r2
r2.cl_glm <- function(model, ...) {
  if (!is.null(model$random)) return(getExportedValue("performance", "r2_nakagawa")(model, ...))
  if (has_twin(model)) return(on_twin_performance("r2", model, ...))
  structure(list(R2_Nagelkerke = r2_nagelkerke.cl_glm(model)), class = c("r2_pseudo", "list"))
}

#' @exportS3Method performance::r2_nagelkerke
r2_nagelkerke.cl_glm <- function(model, ...) {
  refuse_mixed(model, "pseudo R2")
  if (has_twin(model)) return(on_twin_performance("r2_nagelkerke", model, ...))
  n <- model$nobs
  found <- expm1((model$deviance - model$null.deviance) / n) / expm1(-model$null.deviance / n)
  c("Nagelkerke's R2" = found)
}

#' @exportS3Method performance::r2_mcfadden
r2_mcfadden.cl_glm <- function(model, ...) {
  refuse_mixed(model, "pseudo R2")
  if (has_twin(model)) return(on_twin_performance("r2_mcfadden", model, ...))
  structure(list(R2 = c("McFadden's R2" = 1 - model$deviance / model$null.deviance)),
            model_type = "GLM", class = c("r2_mcfadden", "list"))
}

on_parameters <- twin_method("parameters")

#' @rawNamespace S3method(parameters::model_parameters,cl_glm,on_parameters)
NULL

# ---- xtable --------------------------------------------------------------------------------------

#' @exportS3Method xtable::xtable
xtable.cl_glm <- function(x, ...) {
  getExportedValue("xtable", "xtable")(as.data.frame(summary(x)$coefficients), ...)
}

# ---- datawizard ----------------------------------------------------------------------------------

# Fits to standardised data, for effectsize::standardize_parameters() too. insight knows models by
# the names of their classes.
#' @exportS3Method datawizard::standardize
standardize.cl_glm <- function(x, ...) {
  class(x) <- c(class(x), if (is.null(x$random)) "glm" else "glmmTMB")
  utils::getS3method("standardize", "default", FALSE, asNamespace("datawizard"))(x, ...)
}
