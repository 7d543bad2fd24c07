# Printed fits of generalised linear models and their summaries.

#' @export
print.cl_glm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print_glm_head(x)
  if (length(x$coefficients) > 0L) {
    cat(coefficients_title(x), "\n", sep = "")
    print(format(x$coefficients, digits = digits), quote = FALSE)
  } else {
    cat("No coefficients\n")
  }
  print_aux(x, digits)
  cat("\n", fit_line(x, digits), "\n", engine_line(x$engine), sep = "")
  invisible(x)
}

print_glm_head <- function(x) {
  kind <- switch(x$method, map = "posterior mode", mcmc = "sampling",
                 firth = "Firth's penalised likelihood",
                 if (is.na(x$logLik)) "quasi-likelihood" else "maximum likelihood")
  if (!is.null(x$blocks)) cat("Fit of ", count_of(x$blocks, "block"), " of rows\n", sep = "")
  cat(x$family, ", ", count_of(x$nobs, "observation"), dropped_rows(x), ", by ", kind, "\n",
      sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
}

coefficients_title <- function(x) {
  paste0("Coefficients", if (x$method == "mcmc") " (posterior means)",
         if (is_categorical(x$family)) sprintf(" (log odds against %s)", x$levels[1L]), ":")
}

second_title <- function(x) {
  what <- if (is_ordered(x$family)) "Cuts" else
    switch(x$second$name, zero = "Zero inflation (logit)",
           nonzero = "Hurdle (logit of a count above 0)",
           phi = "Precision (logarithm of phi)")
  paste0("\n", what, ":\n")
}

print_aux <- function(x, digits) {
  second <- tabled_aux(x)
  if (length(second) > 0L) {
    cat(second_title(x))
    print(format(second, digits = digits), quote = FALSE)
  }
  print_one_aux(x, digits)
}

print_one_aux <- function(x, digits) {
  if (is_ordered(x$family)) return(invisible())
  aux <- if (is.null(x$second) || !is.null(density_of(x$family)$user)) x$aux else
    x$aux[names(x$aux) == "phi"]
  if (length(aux) == 0L) return(invisible())
  error <- vapply(x$aux_error, function(e) if (is.na(e)) "" else
    sprintf(" (%s %s)", if (x$method == "mcmc") "posterior sd" else "standard error",
            format(e, digits = digits)), "")
  cat("\n", sprintf("%s: %s%s\n", names(aux), vapply(aux, format, "", digits = digits), error),
      sep = "")
}

fit_line <- function(x, digits) {
  likelihood <- likelihood_text(x, stats::AIC(x), digits)
  sprintf("%s%sdeviance: %s on %s degrees of freedom\n%s", likelihood,
          if (nzchar(likelihood)) "   " else "", format(x$deviance, digits = digits + 2L),
          format(x$df.residual), convergence_line(x))
}

# AIC is defined at a maximum, so it is not shown for posterior means and modes.
likelihood_text <- function(x, aic, digits) {
  if (is.na(x$logLik)) return("")
  value <- format(x$logLik, digits = digits + 2L)
  switch(x$method, mcmc = paste("log likelihood at the means:", value),
         map = paste("log likelihood at the mode:", value),
         sprintf("%slog likelihood: %s   AIC: %s", if (x$method == "reml") "restricted " else "",
                 value, format(aic, digits = digits + 2L)))
}

convergence_line <- function(x) {
  if (x$method == "mcmc") return(paste0(if (!x$converged) "NOT converged: ", x$message))
  if (!x$converged) return(paste("NOT converged:", x$message))
  sprintf("converged in %s", count_of(x$iterations, "iteration"))
}

#' @rdname cl_glm
#' @export
summary.cl_glm <- function(object, ...) {
  if (is_least_squares(object$family) && object$method == "ml" && object$df.residual > 0 &&
        is_perfect(object$deviance / object$df.residual, if (is.null(object$blocks))
          mean(object$fitted.values^2) else object$mean_square)) {
    warn_perfect()
  }
  estimate <- c(object$coefficients, tabled_aux(object))
  error <- stats::setNames(rep(NA_real_, length(estimate)), names(estimate))
  error[rownames(object$vcov)] <- coefficient_errors(object)
  table <- cbind(Estimate = estimate, `Std. Error` = error)
  if (object$method != "mcmc") {
    z <- estimate / error
    table <- if (has_t_tests(object)) {
      cbind(table, `t value` = z,
            `Pr(>|t|)` = 2 * stats::pt(-abs(z), object$df.residual))
    } else {
      cbind(table, `z value` = z, `Pr(>|z|)` = 2 * stats::pnorm(-abs(z)))
    }
  }
  if (!is.null(r_family(object$family)) && is.null(object$blocks)) {
    return(as_summary_glm(object, table))
  }
  kept <- c("call", "family", "method", "aux", "aux_error", "logLik", "deviance", "null.deviance",
            "df.residual", "df.null", "nobs", "iterations", "converged", "message", "na.action",
            "prior", "second", "levels", "blocks", "engine")
  structure(c(object[intersect(kept, names(object))],
              list(coefficients = table, aliased = is.na(object$coefficients),
                   aic = stats::AIC(object), residuals = summary_residuals(object),
                   linear = if (has_t_tests(object)) linear_tests(object),
                   sampling = if (!is.null(object$draws)) summary(object$draws))),
            class = "summary.cl_glm")
}

# The results of summary.lm() in addition to the coefficients. With an offset it compares other
# models.
linear_tests <- function(object) {
  df <- c(object$df.null - object$df.residual, object$df.residual)
  offset <- c(object$offset, object$call$offset, attr(object$terms, "offset"))
  if (!is_least_squares(object$family) || any(df <= 0) || length(offset) > 0L) return(NULL)
  rest <- object$deviance / df[2L]
  f <- (object$null.deviance - object$deviance) / df[1L] / rest
  list(r.squared = 1 - object$deviance / object$null.deviance,
       adj.r.squared = 1 - rest * object$df.null / object$null.deviance,
       fstatistic = c(value = f, numdf = df[1L], dendf = df[2L]),
       p.value = stats::pf(f, df[1L], df[2L], lower.tail = FALSE))
}

print_linear_tests <- function(x, digits) {
  cat(sprintf("R-squared: %s   adjusted: %s\nF: %s on %.0f and %.0f degrees of freedom   p: %s\n",
              format(x$r.squared, digits = digits), format(x$adj.r.squared, digits = digits),
              format(x$fstatistic[[1L]], digits = digits), x$fstatistic[[2L]], x$fstatistic[[3L]],
              format.pval(x$p.value, digits = digits)))
}

summary_residuals <- function(object) {
  if (has_classes(object$family) || !is.null(object$blocks)) return(NULL)
  if (is.null(object$second)) glm_residuals(object, "deviance")
}

#' @export
print.summary.cl_glm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  if (inherits(x, "summary.glm")) {
    given <- x
    class(x) <- "summary.glm"
    x$coefficients <- x$coefficients[!x$aliased, , drop = FALSE]
    print(x, digits = digits, ...)
    if (!is.null(x$kind)) cat("By ", x$kind, "\n\n", sep = "")
    return(invisible(given))
  }
  print_glm_head(x)
  if (!is.null(x$residuals)) {
    cat("Deviance residuals:\n")
    five <- stats::quantile(x$residuals, names = FALSE, na.rm = TRUE)
    print(stats::setNames(zapsmall(five, digits + 1L), c("Min", "1Q", "Median", "3Q", "Max")),
          digits = digits)
    cat("\n")
  }
  if (is.null(x$sampling)) {
    missing <- sum(x$aliased)
    cat(if (length(x$aliased) > 0L) coefficients_title(x) else "No coefficients",
        if (missing > 0L) sprintf(" (%d not defined because of collinearity)", missing), "\n",
        sep = "")
    first <- seq_along(x$aliased)
    second <- nrow(x$coefficients) > length(first)
    if (length(first) > 0L) {
      stats::printCoefmat(x$coefficients[first, , drop = FALSE], digits = digits, na.print = "NA",
                          signif.legend = getOption("show.signif.stars") && !second)
    }
    if (second) {
      cat(second_title(x))
      rows <- setdiff(seq_len(nrow(x$coefficients)), first)
      stats::printCoefmat(x$coefficients[rows, , drop = FALSE], digits = digits, na.print = "NA")
    }
    print_one_aux(x, digits)
    if (!is.null(x$linear)) print_linear_tests(x$linear, digits)
  } else {
    print_draws(x$sampling, digits)
  }
  print_prior_texts(x$prior)
  cat(sprintf("\nnull deviance: %s on %s degrees of freedom\n",
              format(x$null.deviance, digits = digits + 2L), format(x$df.null)))
  cat(sprintf("     deviance: %s on %s degrees of freedom%s\n",
              format(x$deviance, digits = digits + 2L), format(x$df.residual),
              if (is.null(density_of(x$family))) "" else " (-2 log likelihood)"))
  likelihood <- likelihood_text(x, x$aic, digits)
  cat(likelihood, if (nzchar(likelihood)) "\n", convergence_line(x), "\n", engine_line(x$engine),
      sep = "")
  invisible(x)
}

# Without the standard errors of means, which ess_bulk gives: the table fits into one screen.
print_draws <- function(table, digits) {
  cat("Draws:\n")
  print(table[names(table) != "mcse"], digits = digits - 1L)
}
