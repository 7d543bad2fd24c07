# Methods of fitted Gaussian processes.

#' @export
print.cl_gp <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_gp_head(x, length(x$y))
  print(x$kernel, digits = digits)
  if (is.null(x$noise_process)) {
    cat(sprintf("noise sd: %s%s%s", format(x$noise, digits = digits),
                if ("noise" %in% x$fixed) " (held)" else "", noise_text(x)))
  } else {
    sds <- range(sqrt(new_noise(x, x$x)))
    cat(sprintf("noise sd: %s to %s, its log variance by the kernel\n",
                format(sds[1L], digits = digits), format(sds[2L], digits = digits)))
    print(x$noise_process$kernel, digits = digits)
  }
  if (is.null(x$trend$basis)) {
    cat(sprintf("   mean: %s%s\n", format(x$mean, digits = digits),
                if (x$trend$kind == "number") " (held)" else ""))
  } else {
    cat("\nmean:\n")
    print(x$coefficients[x$trend$names], digits = digits)
  }
  cat(sprintf("%s: %s (%s)\n", objective_text(x), format(x$objective, digits = digits + 2L),
              convergence_text(x)), engine_line(x$engine), sep = "")
  invisible(x)
}

print_gp_head <- function(x, n) {
  added <- if (is.null(x$added)) "" else sprintf(" (%d added by update())", x$added)
  cat("Gaussian process, ", n, " observations", dropped_rows(x), added, "\n", sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n", vecchia_text(x), "\n", sep = "")
}

noise_text <- function(x) {
  parts <- c(if (!is.null(x$weights)) "by weights", if (!is.null(x$variance)) "and known variances")
  if (length(parts) == 0L) "" else paste0(" ", paste(parts, collapse = " "))
}

objective_text <- function(x) {
  if (isTRUE(x$extended)) return("log marginal likelihood")
  switch(x$method, ml = if (x$beta == "integrate") "log likelihood, mean integrated out" else
           "log marginal likelihood",
         map = "log marginal likelihood plus log priors", loo = "leave-one-out log density",
         mcmc = "log posterior density at its maximum")
}

convergence_text <- function(x) {
  text <- if (x$method == "mcmc" || identical(x$message, edge_message)) x$message else
    if (x$converged) "converged" else paste("NOT converged:", x$message)
  if (length(x$at_bound) > 0L) {
    text <- paste0(text, "; at a bound: ", paste(x$at_bound, collapse = ", "))
  }
  text
}

#' @rdname cl_gp
#' @export
summary.cl_gp <- function(object, ...) {
  variances <- vcov(object)
  errors <- sqrt(diag(variances))
  estimates <- object$coefficients
  table <- cbind(Estimate = estimates, `Std. Error` = errors[names(estimates)])
  r2 <- 1 - sum(object$residuals^2) / sum((object$y - mean(object$y))^2)
  kept <- c("call", "kernel", "logLik", "objective", "method", "beta", "converged", "message",
            "at_bound", "fixed", "evaluations", "not_pd", "trials", "residuals", "noise",
            "na.action", "prior", "added", "weights", "variance", "vecchia", "engine")
  structure(c(object[intersect(kept, names(object))],
              list(parameters = table, columns = parameter_columns(object), r.squared = r2,
                   loo = loo_summary(object), n = length(object$y), aic = stats::AIC(object),
                   bic = stats::BIC(object),
                   sampling = if (!is.null(object$draws)) summary(object$draws))),
            class = "summary.cl_gp")
}

# Leave-one-out prediction of each observation: root mean square error, log density, and the
# proportion of observations within their 95% intervals.
loo_summary <- function(object) {
  loo <- gp_loo(object)
  z <- (object$y - loo$mean) / sqrt(loo$variance)
  c(rmse = sqrt(mean((object$y - loo$mean)^2)),
    log_density = sum(stats::dnorm(z, log = TRUE) - log(loo$variance) / 2),
    within = mean(abs(z) < stats::qnorm(0.975)))
}

# Leave-one-out means and variances of the observations, noise included.
gp_loo <- function(object) {
  loo <- gp_state(object)$loo()
  list(mean = loo$mean + object$trend$centre, variance = loo$variance)
}

# For each coefficient, the columns that it belongs to.
parameter_columns <- function(object) {
  names <- colnames(object$x)
  if (is.null(names)) names <- paste("column", seq_len(ncol(object$x)))
  parts <- kernel_parameters(object$kernel, ncol(object$x), colnames(object$x))
  of_kernel <- vapply(seq_len(nrow(parts)), function(i) {
    if (!is.na(parts$column[i])) return(names[parts$column[i]])
    if (!parts$role[i] %in% c("lengthscale", "period")) return("")
    term <- object$kernel$terms[[parts$term[i]]]
    paste(names[find_columns(term$columns, ncol(object$x), colnames(object$x))], collapse = ", ")
  }, "")
  own <- length(object$par) - length(of_kernel)
  c(of_kernel, rep("", own + length(object$trend$names)))
}

#' @export
print.summary.cl_gp <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_gp_head(x, x$n)
  cat("Residuals:\n")
  print(summary(unname(x$residuals), digits = digits))
  cat("\nParameters (sd and noise in units of y, lengthscales in units of their columns):\n")
  print_gp_parameters(x, digits)
  cat("\nlog marginal likelihood: ", format(x$logLik, digits = digits + 2L), sep = "")
  if (is.null(x$sampling)) { # these criteria are defined at a maximum
    cat("   AIC: ", format(x$aic, digits = digits + 2L), "   BIC: ",
        format(x$bic, digits = digits + 2L), sep = "")
  }
  cat("\n")
  cat(sprintf("R squared: %s   leave-one-out: rmse %s, log density %s, %.0f%% within 95%%\n",
              format(x$r.squared, digits = digits), format(x$loo[["rmse"]], digits = digits),
              format(x$loo[["log_density"]], digits = digits + 2L), 100 * x$loo[["within"]]))
  cat(sprintf("%s after %d evaluations", convergence_text(x), x$evaluations))
  if (x$not_pd > 0L) cat(sprintf(", %d of them not positive definite", x$not_pd))
  cat("\n", engine_line(x$engine), sep = "")
  invisible(x)
}

print_gp_parameters <- function(x, digits) {
  table <- data.frame(Estimate = format_each(x$parameters[, 1L], digits),
                      `Std. Error` = format_each(x$parameters[, 2L], digits), columns = x$columns,
                      row.names = rownames(x$parameters), check.names = FALSE)
  table[rownames(table) %in% x$fixed, 2L] <- "held"
  table[rownames(table) %in% x$at_bound, 2L] <- "at bound"
  print(table)
  if (!is.null(x$cuts)) cat("\ncuts:", format(x$cuts, digits = digits), "\n")
  print_priors(x$prior, x$fixed)
  if (!is.null(x$sampling)) {
    cat("\nDraws:\n")
    print(x$sampling[names(x$sampling)], digits = digits) # without its engine
  }
}

print_priors <- function(prior, fixed) {
  text <- vapply(prior[setdiff(names(prior), fixed)], function(p) {
    label <- attr(p, "label")
    if (is.null(p)) "flat" else if (is.null(label)) "a function" else label
  }, "")
  print_prior_texts(text)
}

# ---- uncertainty of the coefficients -------------------------------------------------------------

#' @rdname cl_gp
#' @export
vcov.cl_gp <- function(object, ...) {
  names <- names(object$coefficients)
  result <- matrix(NA_real_, length(names), length(names), dimnames = list(names, names))
  trend <- trend_names(object)
  if (!is.null(object$draws)) {
    draws <- parameter_draws(object)
    trend <- setdiff(trend, colnames(draws))
    result[colnames(draws), colnames(draws)] <- stats::cov(draws)
  } else {
    curved <- log_vcov(object)
    free <- rownames(curved)
    if (length(free) > 0L) {
      slope <- ifelse(log_scale(object, free), object$par[free], 1)
      result[free, free] <- curved * tcrossprod(slope)
    }
  }
  if (length(trend) > 0L) {
    result[trend, trend] <- mean_covariance(object$trend, as.matrix(gp_state(object)$beta_cov))
  }
  result
}

log_scale <- function(object, names) object$log_scale[match(names, names(object$par))]

trend_names <- function(object) {
  if (is.null(object$response)) object$trend$names else object$beta_names
}

# The inverse of the second derivatives of the objective at the estimate with respect to the
# logarithms of the free parameters that are not on a bound: from differences of gradients, or from
# the Fisher information.
log_vcov <- function(object) {
  free <- setdiff(names(object$par), c(object$fixed, object$at_bound))
  empty <- matrix(NA_real_, length(free), length(free), dimnames = list(free, free))
  if (length(free) == 0L) return(empty)
  if (object$method == "loo") {
    warning(paste("standard errors are not available for leave-one-out estimates, which do not",
                  "maximise a likelihood"),
            call. = FALSE)
    return(empty)
  }
  f <- gp_state_likelihood(object)
  prior <- if (object$method == "map") prior_of_fit(object)
  logged <- log_scale(object, free)
  slope <- function(at) {
    par <- object$par
    par[free] <- replace(at, logged, exp(at[logged]))
    gradient <- attr(f(par), "gradient")
    if (!is.null(prior)) gradient <- gradient + prior$value(par)$gradient
    (gradient * ifelse(object$log_scale, par, 1))[match(free, names(par))]
  }
  at <- to_search(object$par[free], logged)
  informed <- inherits(f, "cl_gp_vecchia") && is.null(prior) && object$beta == "profile"
  hessian_row <- function(i) {
    h <- 1e-4 * if (logged[i]) 1 else max(1, abs(at[i]))
    step <- replace(numeric(length(free)), i, h)
    (slope(at + step) - slope(at - step)) / (2 * h)
  }
  inverse <- tryCatch({
    hessian <- if (informed) {
      by <- ifelse(logged, object$par[free], 1)
      -attr(f(object$par, information = TRUE), "information")[free, free] * outer(by, by)
    } else if (inherits(f, "cl_gp_response_vecchia")) {
      value_hessian(function(at) {
        par <- replace(object$par, free, replace(at, logged, exp(at[logged])))
        total <- f(par, FALSE)
        if (is.null(prior)) total else total + prior$value(par)$value
      }, at)
    } else {
      matrix(vapply(seq_along(free), hessian_row, numeric(length(free))), length(free))
    }
    chol2inv(chol(-as.matrix(hessian + t(hessian)) / 2))
  }, error = function(e) NULL)
  if (is.null(inverse)) {
    warning("the Hessian of the objective is not negative definite at the estimate: ",
            "no standard errors", call. = FALSE)
    return(empty)
  }
  empty[] <- inverse
  empty
}

prior_of_fit <- function(object) {
  gp_prior(Filter(Negate(is.null), object$prior), names(object$par),
           names(object$par) %in% object$fixed)
}

#' @rdname predict.cl_gp
#' @param parm Names or numbers of coefficients; all by default.
#' @details `confint()` returns confidence intervals for the coefficients. For the parameters they
#'   are normal approximations on the log scale, with the curvature at the estimate (of maximum
#'   likelihood fits with `approx = "vecchia"` the Fisher information), so that limits are positive;
#'   for the coefficients of the mean they use their normal distribution given the parameters; for a
#'   fit with `method = "mcmc"` they are quantiles of the draws. They are `NA` for parameters that
#'   are held fixed or at a bound.
#' @export
confint.cl_gp <- function(object, parm, level = 0.95, ...) {
  level <- check_number(level, "level", 0, 1)
  names <- names(object$coefficients)
  tails <- c((1 - level) / 2, (1 + level) / 2)
  result <- matrix(NA_real_, length(names), 2L, dimnames = list(
    names, paste(format(100 * tails, trim = TRUE, digits = 3), "%")))
  trend <- trend_names(object)
  if (!is.null(object$draws)) {
    draws <- parameter_draws(object)
    trend <- setdiff(trend, colnames(draws))
    result[colnames(draws), ] <- t(apply(draws, 2L, stats::quantile, tails, names = FALSE))
  } else {
    curved <- log_vcov(object)
    half <- outer(sqrt(diag(curved)), stats::qnorm(tails))
    for (name in rownames(curved)) {
      estimate <- object$par[[name]]
      result[name, ] <- if (log_scale(object, name)) estimate * exp(half[name, ]) else
        estimate + half[name, ]
    }
  }
  if (length(trend) > 0L) {
    v <- mean_covariance(object$trend, as.matrix(gp_state(object)$beta_cov))
    errors <- sqrt(diag(v))
    result[trend, ] <- object$coefficients[trend] + outer(errors, stats::qnorm(tails))
  }
  if (missing(parm)) return(result)
  known <- if (is.character(parm)) parm %in% names else parm %in% seq_along(names)
  if (!all(known)) abort_argument("parm", sprintf("there is no coefficient '%s'", parm[!known][1L]))
  result[parm, , drop = FALSE]
}

# ---- small ones ----------------------------------------------------------------------------------

#' @export
coef.cl_gp <- function(object, ...) object$coefficients

#' @export
logLik.cl_gp <- function(object, ...) {
  structure(object$logLik, df = length(object$coefficients) - length(object$fixed),
            nobs = length(object$y), class = "logLik")
}

#' @export
nobs.cl_gp <- function(object, ...) length(object$y)

#' @export
sigma.cl_gp <- function(object, ...) object$noise

#' @export
weights.cl_gp <- function(object, ...) stats::naresid(object$na.action, object$weights)

#' @export
fitted.cl_gp <- function(object, ...) stats::napredict(object$na.action, object$fitted.values)

#' @rdname predict.cl_gp
#' @param type `"response"`: observations minus the mean of the process; `"loo"`: observations
#'   minus their leave-one-out predictions; `"standardized"`: the latter divided by their standard
#'   deviations, standard normal if the model is correct (section 5.4.2).
#' @export
residuals.cl_gp <- function(object, type = c("response", "loo", "standardized"), ...) {
  type <- check_choice(type, c("response", "loo", "standardized"), "type")
  residuals <- object$residuals
  if (type != "response") {
    loo <- gp_loo(object)
    residuals[] <- object$y - loo$mean
    if (type == "standardized") residuals <- residuals / sqrt(loo$variance)
  }
  stats::naresid(object$na.action, residuals)
}

#' @importFrom stats rstandard
#' @export
rstandard.cl_gp <- function(model, ...) residuals(model, "standardized")

#' @rdname cl_gp
#' @importFrom stats anova
#' @export
anova.cl_gp <- function(object, ...) {
  fits <- list(object, ...)
  right <- vapply(fits, inherits, NA, "cl_gp")
  if (length(fits) < 2L || !all(right)) {
    abort_argument("...", "fits of cl_gp() to compare with are needed")
  }
  if (any(vapply(fits, function(f) f$method != "ml" || length(f$y) != length(object$y), NA))) {
    abort_argument("...", paste("the fits must be of the same data, by maximum likelihood",
                                "(method = \"ml\")"))
  }
  warn_means(fits)
  labels <- vapply(fits, function(f) paste(deparse(f$call, 500L), collapse = " "), "")
  value <- vapply(fits, `[[`, 0, "logLik")
  df <- vapply(fits, function(f) attr(logLik(f), "df"), 0)
  chisq <- c(NA, 2 * diff(value) * sign(diff(df)))
  by <- c(NA, abs(diff(df)))
  p <- ifelse(by > 0, stats::pchisq(pmax(chisq, 0), by, lower.tail = FALSE), NA)
  structure(data.frame(df = df, logLik = value, Chisq = chisq, Df = by, `Pr(>Chisq)` = p,
                       check.names = FALSE),
            heading = c("Likelihood ratio tests of Gaussian processes\n",
                        paste0("Model ", seq_along(fits), ": ", labels, collapse = "\n")),
            class = c("anova", "data.frame"))
}

# Likelihoods with the mean integrated out belong to different data if the means differ.
warn_means <- function(fits) {
  fits <- Filter(function(f) inherits(f, "cl_gp"), fits)
  means <- lapply(fits, function(f) list(f$trend$kind, f$trend$names, f$trend$value))
  integrated <- vapply(fits, function(f) identical(f$beta, "integrate"), NA)
  if (any(integrated) && (length(unique(means)) > 1L || !all(integrated))) {
    statcl_warning("means", paste("likelihoods with the mean integrated out (beta = \"integrate\")",
                                  "can be compared for equal means only"))
  }
}

#' @importFrom stats AIC
#' @export
AIC.cl_gp <- function(object, ..., k = 2) {
  warn_means(list(object, ...))
  NextMethod()
}

#' @importFrom stats BIC
#' @export
BIC.cl_gp <- function(object, ...) {
  warn_means(list(object, ...))
  NextMethod()
}

#' @importFrom stats extractAIC
#' @export
extractAIC.cl_gp <- function(fit, scale = 0, k = 2, ...) {
  check_no_scale(scale)
  df <- attr(logLik(fit), "df")
  c(df, k * df - 2 * fit$logLik)
}

#' @rdname cl_gp
#' @param columns For `model.matrix()`: those of the `"inputs"`, or of the `"mean"`.
#' @importFrom stats model.matrix
#' @export
model.matrix.cl_gp <- function(object, columns = c("inputs", "mean"), ...) {
  columns <- check_choice(columns, c("inputs", "mean"), "columns")
  if (columns == "inputs") return(object$x)
  h <- gp_points(object, NULL)$h
  if (object$trend$kind == "constant") h <- matrix(1, length(object$y))
  if (is.null(h)) h <- matrix(0, length(object$y), 0L)
  structure(h, dimnames = list(rownames(object$x), object$trend$names))
}

#' @export
formula.cl_gp <- function(x, ...) {
  if (is.null(x$formula)) abort_argument("x", "the fit was made without a formula")
  x$formula
}
