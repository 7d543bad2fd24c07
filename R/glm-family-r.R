# Fits of families of R: responses, likelihoods and tables as those of glm().

#' @export
print.cl_family <- function(x, ...) print(as.vector(unclass(x)), ...)

# Whether the dispersion of the fit is an estimate that its summary shows, by Pearson's statistic.
dispersion_estimated <- function(object) "dispersion" %in% names(object$aux)

# The response and weights as glm() has them: proportions of trials, with the trials as weights.
r_response <- function(family, y, trials, weights) {
  r <- r_family(family)
  n <- NROW(y)
  binary <- family_row(family)$trials
  if (is.character(y) && binary) y <- factor(y)
  levels <- if (is.factor(y) && nlevels(y) == 2L) levels(y)
  kind <- if (!is.null(levels)) "factor" else if (is.logical(y)) "logical" else
    if (is.matrix(y) || !is.null(trials)) "counts" else "number"
  weights <- ones_unless(weights, n)
  if (!binary) y <- check_numeric(y, "y")
  if (!is.null(trials)) {
    if (!binary) abort_argument("trials", "'trials' can be used with binomial families only")
    trials <- rep_len(check_numeric(trials, "trials"), n)
    y <- ifelse(trials > 0, y / trials, 0)
    weights <- weights * trials
  }
  read <- withCallingHandlers(
    glm_response_as_r(r, y, weights, n),
    warning = function(w) {
      statcl_warning("counts", conditionMessage(w))
      invokeRestart("muffleWarning")
    })
  y <- as.double(read$y)
  if (length(y) != n || !all(is.finite(y))) {
    abort_argument("y", "the response has missing or infinite values")
  }
  list(y = y, weights = as.double(read$weights), levels = levels, kind = kind)
}

# Starting values of all observations, for families that are fitted from these.
check_row_start <- function(v, name, n) {
  if (is.null(v)) return(NULL)
  v <- plain_numbers(v)
  if (!is.numeric(v) || length(v) != n || !all(is.finite(v))) {
    abort_argument(name, sprintf("'%s' must be a vector of %d finite numbers", name, n))
  }
  as.double(v)
}

# Results of a fit that depend on its family: the dispersion, which scales the covariance matrix,
# and the log likelihood as in logLik() of glm().
finish_r_family <- function(fit) {
  r <- r_family(fit$family)
  w <- deviance_weights(fit)
  if (!dispersion_known(r)) {
    squares <- sum(glm_residuals(fit, "pearson")[w > 0]^2)
    fit$aux <- c(dispersion = if (fit$df.residual > 0) squares / fit$df.residual else NaN)
  }
  phi <- dispersion(fit)
  fit$vcov <- fit$vcov * phi
  fit$vcov.root <- fit$vcov.root * sqrt(phi)
  aic <- suppressWarnings(r$aic(fit$y, rep(1, length(fit$y)), as.vector(fit$fitted.values), w,
                                fit$deviance))
  fit$logLik <- fit$objective <- likelihood_df(fit) - fit$rank - aic / 2
  warn_r_means(r, fit, w)
  fit
}

# The number of parameters of the likelihood.
likelihood_df <- function(fit) {
  if (!is.null(fit$random)) return(fit$df)
  row <- family_row(fit$family)
  fit$rank + if (is.null(row$r)) length(fit$aux) else isTRUE(row$counted)
}

# In the words of glm().
warn_r_means <- function(r, fit, w) {
  row <- r_rows[[r$family]]
  mu <- fit$fitted.values[w > 0]
  if (is.function(row$bound) && any(row$bound(mu, 10 * .Machine$double.eps))) {
    statcl_warning("separation", sprintf("fitted %s numerically 0%s occurred", row$means,
                                         if (isTRUE(row$trials)) " or 1" else ""))
  }
  if (isTRUE(row$counts) && any(abs(fit$y - round(fit$y)) > 1e-7 * pmax(1, fit$y))) {
    statcl_warning("counts", paste("a Poisson response that is not whole has no likelihood:",
                                   "logLik() is -Inf; quasipoisson() is for such responses"))
  }
  if (!fit$converged) {
    statcl_warning("convergence", sprintf("the optimiser has not converged (%s)", fit$message))
  }
}

# The means of the model with the intercept only and an offset.
r_null_mean <- function(fit) {
  n <- length(fit$y)
  response <- list(y = fit$y, weights = fit$prior.weights)
  one <- matrix(1, n, 1L, dimnames = list(NULL, "(Intercept)"))
  problem <- new_glm_problem(fit$family, one, response, fit$offset, 1L)
  beta <- irls_mode(problem, NULL, glm_control(list(), "ml")$search)$found$theta
  r_family(fit$family)$linkinv(sum(beta) + fit$offset)
}

# ---- comparison and profiles ---------------------------------------------------------------------

# As anova() of glm() fits. `single`: whether the fits are the terms of one.
deviance_table <- function(fits, names, labels, test, single) {
  df <- vapply(fits, function(fit) as.numeric(fit$df.residual), 0)
  deviance <- vapply(fits, function(fit) fit$deviance, 0)
  table <- data.frame(c(NA, -diff(df)), c(NA, -diff(deviance)), df, deviance, row.names = names)
  if (!single) table <- table[c(3L, 4L, 1L, 2L)]
  names(table) <- if (single) c("Df", "Deviance", "Resid. Df", "Resid. Dev") else
    c("Resid. Df", "Resid. Dev", "Df", "Deviance")
  largest <- fits[[which.min(df)]]
  table <- stats::stat.anova(table, test, dispersion(largest),
                             if (dispersion_estimated(largest)) min(df) else Inf,
                             length(largest$y))
  heading <- c("Analysis of Deviance Table\n", paste0(paste(labels, collapse = "\n"), "\n"))
  structure(table, heading = heading, class = c("anova", "data.frame"))
}

# For profiles: minus half the smallest deviance, in units of the dispersion, with the coefficient
# `fixed` as it is in theta, as profile_at().
r_profile_at <- function(core, theta, fixed) {
  problem <- core$problem
  left <- problem$x[, core$kept, drop = FALSE]
  offset <- left[, fixed] * theta[fixed]
  problem$offset <- if (is.null(problem$offset)) offset else problem$offset + offset
  problem$x <- left[, -fixed, drop = FALSE]
  problem$names <- problem$names[core$kept][-fixed]
  problem$intercept <- 0L
  data <- used_data(problem)
  found <- tryCatch(
    irls(problem, data, by_rotation(problem, data), theta[-fixed],
         list(maxit = 100, tolerance = 1e-6), function(...) NULL),
    statcl_error_argument = function(e) NULL)
  if (is.null(found)) return(NULL)
  list(value = -found$deviance / core$dispersion / 2, theta = append(found$beta, theta[fixed],
                                                                     fixed - 1L))
}

# ---- the summary ---------------------------------------------------------------------------------

# An object of class "summary.glm", which prints as those of glm() do.
as_summary_glm <- function(object, table) {
  phi <- dispersion(object)
  structure(list(
    call = object$call, terms = object$terms, family = r_family(object$family),
    deviance = object$deviance, aic = stats::AIC(object), contrasts = object$contrasts,
    df.residual = object$df.residual, null.deviance = object$null.deviance,
    df.null = object$df.null, iter = object$iterations, na.action = object$na.action,
    deviance.resid = glm_residuals(object, "deviance"), coefficients = table,
    aliased = is.na(object$coefficients), dispersion = phi,
    df = c(object$rank, object$df.residual, length(object$coefficients)),
    kind = if (object$method == "firth") "Firth's penalised likelihood",
    cov.unscaled = object$vcov / phi, cov.scaled = object$vcov),
    class = c("summary.cl_glm", "summary.glm"))
}

# ---- draws ---------------------------------------------------------------------------------------

# Responses at the means mu, with the weights w of the fit.
r_draw <- function(object, mu, w) {
  draw <- family_row(object$family)$draw
  if (is.null(draw)) {
    abort_argument("object", sprintf("responses of family %s cannot be simulated", object$family))
  }
  draw(length(mu), mu, w, dispersion(object), object$kind)
}
