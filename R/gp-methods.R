# What a fitted Gaussian process tells about itself.

#' @export
print.cl_gp <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  cat("Gaussian process, ", length(x$y), " observations", dropped_rows(x), "\n", sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  print(x$kernel, digits = digits)
  cat(sprintf("noise sd: %s%s   mean: %s%s\n", format(x$noise, digits = digits),
              if ("noise" %in% x$fixed) " (fixed)" else "", format(x$mean, digits = digits),
              if (x$mean_estimated) "" else " (fixed)"))
  cat(sprintf("log marginal likelihood: %s (%s)\n", format(x$logLik, digits = digits + 2L),
              convergence_text(x)))
  invisible(x)
}

dropped_rows <- function(x) {
  count <- length(x$na.action)
  if (count == 0L) "" else sprintf(" (%d dropped: missing values)", count)
}

convergence_text <- function(x) {
  text <- if (x$converged) "converged" else paste("NOT converged:", x$message)
  if (length(x$at_bound) > 0L) {
    text <- paste0(text, "; at a bound: ", paste(x$at_bound, collapse = ", "))
  }
  text
}

#' @rdname cl_gp
#' @export
summary.cl_gp <- function(object, ...) {
  errors <- sqrt(diag(vcov(object)))
  par <- object$coefficients
  table <- cbind(Estimate = par, `Std. Error` = errors[names(par)])
  r2 <- 1 - sum(object$residuals^2) / sum((object$y - mean(object$y))^2)
  structure(c(object[c("call", "kernel", "logLik", "converged", "message", "at_bound", "fixed",
                       "evaluations", "not_pd", "residuals", "noise", "na.action")],
              list(parameters = table, columns = parameter_columns(object), r.squared = r2,
                   n = length(object$y), aic = stats::AIC(object), bic = stats::BIC(object))),
            class = "summary.cl_gp")
}

# For each coefficient, the columns that it speaks about.
parameter_columns <- function(object) {
  all <- colnames(object$x)
  if (is.null(all)) all <- paste("column", seq_len(ncol(object$x)))
  of_terms <- lapply(object$kernel$terms, function(term) {
    used <- all[find_columns(term$columns, ncol(object$x), colnames(object$x))]
    one <- length(term$lengthscale) == 1L
    c("", if (one) paste(used, collapse = ", ") else used)
  })
  columns <- unlist(of_terms)
  c(columns, rep("", length(object$coefficients) - length(columns)))
}

#' @export
print.summary.cl_gp <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  cat("Gaussian process, ", x$n, " observations", dropped_rows(x), "\n", sep = "")
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\nResiduals:\n", sep = "")
  print(summary(unname(x$residuals), digits = digits))
  table <- data.frame(Estimate = format_each(x$parameters[, 1L], digits),
                      `Std. Error` = format_each(x$parameters[, 2L], digits), columns = x$columns,
                      row.names = rownames(x$parameters), check.names = FALSE)
  table[rownames(table) %in% x$fixed, 2L] <- "fixed"
  table[rownames(table) %in% x$at_bound, 2L] <- "at bound"
  cat("\nParameters (sd and noise in units of y, lengthscales in units of their columns):\n")
  print(table)
  cat(sprintf("\nlog marginal likelihood: %s   AIC: %s   BIC: %s   R squared: %s\n",
              format(x$logLik, digits = digits + 2L), format(x$aic, digits = digits + 2L),
              format(x$bic, digits = digits + 2L), format(x$r.squared, digits = digits)))
  cat(sprintf("%s after %d evaluations", convergence_text(x), x$evaluations))
  if (x$not_pd > 0L) cat(sprintf(", %d of them not positive definite", x$not_pd))
  cat("\n")
  invisible(x)
}

#' @rdname cl_gp
#' @export
vcov.cl_gp <- function(object, ...) {
  f <- new_gp_likelihood(object$y, object$x, object$kernel,
                         if (object$mean_estimated) NA_real_ else object$mean)
  all <- object$coefficients[seq_len(length(coef(object$kernel)) + 1L)]
  free <- setdiff(names(all), c(object$fixed, object$at_bound))
  slope <- function(logs) {
    par <- all
    par[free] <- exp(logs)
    (attr(f(par), "gradient") * par)[free]
  }
  result <- matrix(NA_real_, length(object$coefficients), length(object$coefficients),
                   dimnames = list(names(object$coefficients), names(object$coefficients)))
  if (length(free) > 0L) {
    at <- log(all[free])
    h <- 1e-4
    hessian_row <- function(i) {
      step <- replace(numeric(length(free)), i, h)
      (slope(at + step) - slope(at - step)) / (2 * h)
    }
    inverse <- tryCatch({
      hessian <- matrix(vapply(seq_along(free), hessian_row, numeric(length(free))), length(free))
      chol2inv(chol(-(hessian + t(hessian)) / 2))
    }, error = function(e) NULL)
    if (is.null(inverse)) {
      warning("the likelihood is not curved downwards in all directions at the estimate: ",
              "no standard errors", call. = FALSE)
    } else {
      result[free, free] <- inverse * tcrossprod(all[free])
    }
  }
  if (object$mean_estimated) result["mean", "mean"] <- mean_variance(object)
  result
}

# Variance of the estimated mean, for these parameters: 1 / (1' C^-1 1). A point far from all data,
# for which only the mean is left, has it besides the process's own.
mean_variance <- function(object) {
  ones <- rep(1, length(object$y))
  state <- condition_gp(ones, object$x, object$kernel, object$noise, 0)
  1 / sum(state$weights)
}

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
fitted.cl_gp <- function(object, ...) stats::napredict(object$na.action, object$fitted.values)

#' @export
residuals.cl_gp <- function(object, ...) stats::naresid(object$na.action, object$residuals)

#' @export
formula.cl_gp <- function(x, ...) {
  if (is.null(x$terms)) abort_argument("x", "the fit was made without a formula")
  stats::formula(x$terms)
}

#' @export
update.cl_gp <- function(object, formula., ..., evaluate = TRUE) {
  call <- object$call
  if (!missing(formula.)) {
    names(call)[2L] <- "formula"
    call$formula <- stats::update.formula(formula(object), formula.)
  }
  extra <- match.call(expand.dots = FALSE)$...
  for (name in names(extra)) call[[name]] <- extra[[name]]
  if (check_flag(evaluate, "evaluate")) eval(call, parent.frame()) else call
}
