# Methods of fits with random effects; the others are those of cl_glm().

#' @export
print.cl_glmm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_mixed_head(x, digits)
  cat("\nFixed effects:\n")
  print(format(x$coefficients, digits = digits), quote = FALSE)
  print_mixed_tail(x, digits)
  invisible(x)
}

print_mixed_head <- function(x, digits) {
  kind <- switch(x$method, mcmc = "sampling", reml = "restricted maximum likelihood",
                 ml = if (x$family == "normal_id") "maximum likelihood" else
                   "maximum likelihood (Laplace's approximation)")
  cat(x$family, ", ", count_of(x$nobs, "observation"), dropped_rows(x), ", by ", kind, "\n",
      sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\nRandom effects:\n", sep = "")
  print(variance_components(x), digits = digits)
  cat("Levels: ", paste(names(x$random), vapply(x$random, nrow, 0L), sep = " ", collapse = ", "),
      "\n", sep = "")
}

print_mixed_tail <- function(x, digits) {
  if (x$family != "normal_id") print_aux(x, digits)
  if (x$method == "mcmc") return(cat("\n", convergence_line(x), "\n", sep = ""))
  cat("\n", likelihood_text(x, stats::AIC(x), digits), "   df: ", x$df, "\n", convergence_line(x),
      if (x$singular) "\nA variance is 0, or a correlation 1 or -1 (singular fit)", "\n", sep = "")
}

#' @export
summary.cl_glmm <- function(object, ...) {
  found <- object$coefficients
  error <- stats::setNames(rep(NA_real_, length(found)), names(found))
  error[rownames(object$vcov)] <- coefficient_errors(object)
  table <- cbind(Estimate = found, `Std. Error` = error)
  z <- found / error
  table <- if (object$family == "normal_id") cbind(table, `t value` = z) else
    if (object$method == "mcmc") table else
      cbind(table, `z value` = z, `Pr(>|z|)` = 2 * stats::pnorm(-abs(z)))
  structure(list(object = object, coefficients = table), class = "summary.cl_glmm")
}

#' @export
print.summary.cl_glmm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_mixed_head(x$object, digits)
  cat("\nFixed effects:\n")
  if (nrow(x$coefficients) > 0L) {
    stats::printCoefmat(x$coefficients, digits = digits, na.print = "NA")
  }
  print_mixed_tail(x$object, digits)
  invisible(x)
}

# ---- random effects ------------------------------------------------------------------------------

# Fits inherit from "cl_glm"; what is not meant for random effects is refused.
refuse_mixed <- function(object, what) {
  if (!is.null(object$random)) {
    abort_argument("object", sprintf("%s are not available for fits with random effects", what))
  }
}

# The covariance matrices by term, as VarCorr() of nlme and lme4 gives them.
variance_components <- function(x) {
  components <- lapply(x$variances, function(v) {
    sd <- sqrt(diag(v))
    scale <- ifelse(sd > 0, 1 / sd, 0)
    correlation <- v * outer(scale, scale)
    diag(correlation) <- 1
    structure(v, stddev = sd, correlation = correlation)
  })
  structure(components, sc = if (x$family == "normal_id") x$own[[1L]], class = "cl_varcorr")
}

#' @exportS3Method nlme::fixef
fixef.cl_glmm <- function(object, ...) object$coefficients

#' @exportS3Method nlme::ranef
ranef.cl_glmm <- function(object, ...) {
  structure(lapply(object$random, as.data.frame, optional = TRUE), class = "ranef.cl_glmm")
}

#' @export
print.ranef.cl_glmm <- function(x, ...) {
  print(unclass(x), ...)
  invisible(x)
}

#' @exportS3Method nlme::VarCorr
VarCorr.cl_glmm <- function(x, sigma = 1, ...) variance_components(x)

#' @export
as.data.frame.cl_varcorr <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- lapply(seq_along(x), function(t) {
    v <- x[[t]]
    sd <- attr(v, "stddev")
    names <- rownames(v)
    at <- which(row(v) > col(v), arr.ind = TRUE)
    data.frame(grp = names(x)[t], var1 = c(names, names[at[, 2L]]),
               var2 = c(rep(NA_character_, length(names)), names[at[, 1L]]),
               vcov = c(diag(v), v[at]), sdcor = c(sd, attr(v, "correlation")[at]),
               stringsAsFactors = FALSE)
  })
  sc <- attr(x, "sc")
  if (!is.null(sc)) {
    rows <- c(rows, list(data.frame(grp = "Residual", var1 = NA_character_, var2 = NA_character_,
                                    vcov = sc^2, sdcor = sc, stringsAsFactors = FALSE)))
  }
  do.call(rbind, rows)
}

#' @export
print.cl_varcorr <- function(x, digits = max(3L, getOption("digits") - 2L), ...) {
  rows <- as.data.frame(x)
  single <- rows[is.na(rows$var2), ]
  widest <- max(vapply(x, nrow, 0L))
  corr <- matrix("", nrow(single), widest - 1L)
  at <- 0L
  for (v in x) {
    c <- attr(v, "correlation")
    for (i in seq_len(nrow(v))[-1L]) {
      corr[at + i, seq_len(i - 1L)] <- sprintf("%.2f", c[i, seq_len(i - 1L)])
    }
    at <- at + nrow(v)
  }
  table <- cbind(single$grp, ifelse(is.na(single$var1), "", single$var1),
                 format(single$vcov, digits = digits), format(single$sdcor, digits = digits), corr)
  table[duplicated(rep(seq_along(x), vapply(x, nrow, 0L))), 1L] <- ""
  dimnames(table) <- list(rep("", nrow(table)),
                          c("Group", "Name", "Variance", "Std.Dev.", if (widest > 1L)
                            c("Corr", rep("", widest - 2L))))
  print(table, quote = FALSE)
  invisible(x)
}

# ---- predictions ---------------------------------------------------------------------------------

#' Predictions, simulations and tests of models with random effects
#'
#' @param object A fit of [cl_glmm()].
#' @param newdata A data frame; by default the data of the fit.
#' @param type `"link"`: linear predictors; `"response"`: means.
#' @param re.form `NULL`: with the random effects; `NA`: without them (for `simulate()`, with new
#'   ones).
#' @param allow.new.levels Whether levels of a grouping factor that the fit has not seen get effects
#'   of 0; otherwise they are an error.
#' @param se.fit Whether to give standard errors, for `re.form = NA`.
#' @param nsim,seed As for [simulate()].
#' @param ... For `anova()`: further fits, of which each is compared with the one before, ordered by
#'   their number of parameters. Otherwise not used.
#' @param refit Whether fits by REML are first fitted by maximum likelihood.
#' @return `predict()`: a vector, or a list with `fit` and `se.fit`. `simulate()`: a data frame.
#'   `anova()`: a data frame of class `"anova"` with the columns of lme4.
#' @section Errors:
#' `statcl_error_argument` for new levels, missing variables, and fits to different data.
#' @export
#' @examples
#' fit <- cl_glmm(breaks ~ tension + (1 | wool:tension), warpbreaks, "poisson_log")
#' predict(fit, data.frame(tension = "L"), re.form = NA, type = "response", se.fit = TRUE)
#' anova(fit, update(fit, . ~ . - tension))
predict.cl_glmm <- function(object, newdata = NULL, type = c("link", "response"), re.form = NULL,
                            allow.new.levels = FALSE, se.fit = FALSE, ...) {
  check_dots_empty(...)
  type <- check_choice(type, c("link", "response"), "type")
  se.fit <- check_flag(se.fit, "se.fit")
  effects <- with_effects(re.form)
  if (se.fit && effects) {
    abort_argument("se.fit", "standard errors are for predictions with re.form = NA")
  }
  fresh <- !is.null(newdata)
  if (!fresh && effects) {
    eta <- object$linear.predictors
  } else {
    points <- glm_points(object, newdata)
    eta <- glm_predictor(object, points$x, points$offset)
    if (effects) eta <- eta + new_effects(object, newdata, check_flag(allow.new.levels,
                                                                      "allow.new.levels"))
  }
  fit <- if (type == "link") eta else glm_mean(object, eta)
  pad <- function(v) if (fresh) v else stats::napredict(object$na.action, v)
  if (!se.fit) return(pad(fit))
  se <- wald_errors(object, points$x[, rownames(object$vcov), drop = FALSE], rownames(object$vcov))
  if (type == "response") se <- se * abs(link_slope(object$family, eta))
  list(fit = pad(fit), se.fit = pad(stats::setNames(se, names(fit))))
}

with_effects <- function(re.form) {
  if (is.null(re.form)) return(TRUE)
  if (length(re.form) == 1L && is.na(re.form) || identical(deparse(re.form), "~0")) return(FALSE)
  abort_argument("re.form", "'re.form' must be NULL (with all random effects) or NA (with none)")
}

# Z b of new data.
new_effects <- function(object, newdata, allow) {
  xlevels <- do.call(c, lapply(object$effects, `[[`, "xlevels"))
  xlevels <- c(object$xlevels, xlevels)
  xlevels <- xlevels[!duplicated(names(xlevels))]
  frame <- new_frame(stats::delete.response(object$all_terms), newdata, xlevels)
  eta <- 0
  used <- stats::setNames(integer(length(object$random)), names(object$random))
  for (effect in object$effects) {
    b <- object$random[[effect$group]]
    k <- used[[effect$group]] + seq_along(effect$columns)
    used[[effect$group]] <- max(k)
    group <- as.character(group_factor(effect$of, frame)$factor)
    x <- stats::model.matrix(effect$terms, frame, contrasts.arg = effect$contrasts)
    at <- match(group, rownames(b))
    new <- is.na(at) & !is.na(group)
    if (any(new) && !allow) {
      abort_argument("newdata", sprintf(paste("'%s' has the new level \"%s\": set",
                                              "allow.new.levels = TRUE to give it effects of 0"),
                                        effect$group, group[new][1L]))
    }
    own <- rowSums(x * b[at, k, drop = FALSE])
    own[new] <- 0
    eta <- eta + own
  }
  eta
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
  with_seed(seed, {
    values <- lapply(seq_len(nsim), function(i) {
      if (old) return(draw_response(object, object$fitted.values, object$own))
      eta <- fixed
      for (t in seq_along(designs)) {
        d <- designs[[t]]
        b <- tcrossprod(matrix(stats::rnorm(nlevels(d$factor) * ncol(d$x)), ncol = ncol(d$x)),
                        object$roots[[t]])
        eta <- eta + rowSums(d$x * b[as.integer(d$factor), , drop = FALSE])
      }
      draw_response(object, glm_mean(object, eta), object$own)
    })
    names(values) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
    place <- stats::napredict(dropped, seq_along(object$fitted.values))
    as.data.frame(lapply(values, `[`, place))
  })
}

# ---- tests and intervals -------------------------------------------------------------------------

#' @rdname predict.cl_glmm
#' @export
anova.cl_glmm <- function(object, ..., refit = TRUE) {
  fits <- c(list(object), list(...))
  if (length(fits) < 2L || !all(vapply(fits, inherits, NA, "cl_glmm"))) {
    abort_argument("...", "anova() compares two or more fits with random effects")
  }
  if (any(vapply(fits, function(fit) fit$method == "mcmc", NA))) {
    abort_argument("...", "anova() compares fits by maximum likelihood")
  }
  same <- vapply(fits, function(fit) fit$family == object$family &&
                   identical(unname(fit$y), unname(object$y)), NA)
  if (!all(same)) abort_argument("...", "the fits must have the same response and family")
  if (check_flag(refit, "refit")) fits <- lapply(fits, function(fit) {
    if (fit$method != "reml") return(fit)
    suppressMessages(eval(stats::update(fit, method = "ml", evaluate = FALSE),
                          environment(fit$formula)))
  })
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
  heading <- c("Likelihood ratio tests\n", paste0("Model ", seq_along(fits), ": ", labels),
               if (any(vapply(fits, function(fit) fit$method == "reml", NA)))
                 "(restricted likelihoods: fixed effects must be the same)", "")
  structure(table, heading = paste(heading, collapse = "\n"), class = c("anova", "data.frame"))
}

#' @export
confint.cl_glmm <- function(object, parm, level = 0.95, ...) NextMethod(method = "wald")

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
