# Methods of regressions by group (batch-lm.R, batch-glm.R), whose fits share the class cl_batch_lm.

#' Methods for regressions by group
#'
#' These methods return for all groups of a fit of [cl_batch_lm()] or [cl_batch_glm()] what the
#' methods for fits of [lm()] and [glm()] return for one model.
#'
#' Tests and intervals use Student's t distribution if the dispersion is estimated (normal
#' responses), otherwise the normal distribution. Groups without a fit have `NaN`.
#'
#' @param object,x A fit of [cl_batch_lm()] or [cl_batch_glm()].
#' @param parm Names or numbers of coefficients; all by default.
#' @param level,conf.level Level of the intervals.
#' @param newdata A data frame with the variables of the formula; for a fit without a formula a
#'   matrix with its columns. Default: the data of the fit.
#' @param group The group of each row of `newdata`; by default the expression given in the call of
#'   the fit, looked up in `newdata`. Rows of groups that the fit does not have give `NA`.
#' @param type Type of predictions (linear predictors or means) and residuals.
#' @param se.fit,interval As for [predict.lm()]. Intervals of means are those of the linear
#'   predictors, transformed.
#' @param exponentiate Whether to give `exp()` of estimates and limits, such as odds ratios.
#' @param conf.int Whether to add confidence limits.
#' @param sort Whether groups are ordered by their estimates.
#' @param row.names Names of the rows, or `NULL`.
#' @param optional Not used.
#' @param digits Significant digits.
#' @param ... For `plot()`, arguments of [plot.default()].
#' @return
#'   * `coef()`, `confint()`, `vcov()`: a matrix with one row for each group; arrays groups x
#'     coefficients x 2 and p x p x groups,
#'   * `sigma()`, `deviance()`, `nobs()`, `df.residual()`, `logLik()` (with [AIC()], [BIC()]): one
#'     number for each group,
#'   * `fitted()`, `residuals()`, `predict()`: one number for each row; a matrix with columns `fit`,
#'     `lwr`, `upr` with an interval; with `se.fit` a list of `fit`, `se.fit` and `df`,
#'   * `summary()`: the distribution over groups of each coefficient, with the number of groups
#'     in which it differs from 0 at the 5% level,
#'   * `as.data.frame()`, and `tidy()` of the packages generics and broom: one row for each
#'     coefficient of each group; `glance()`: one row for each group,
#'   * `plot()`: the table that it has drawn, invisibly. It draws estimates and intervals of all
#'     groups, a panel for each coefficient.
#' @section Errors:
#' `statcl_error_argument` for unknown coefficients, and `newdata` without a variable or a group.
#' @name cl_batch-methods
#' @examples
#' fit <- cl_batch_lm(weight ~ Time, ChickWeight, group = Diet)
#' summary(fit)
#' confint(fit)["2", , ]
#' predict(fit, data.frame(Time = 10, Diet = 1:4), interval = "confidence")
#' AIC(fit)
#' plot(fit)
NULL

#' @rdname cl_batch-methods
#' @export
print.cl_batch_lm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  groups <- nrow(x$coefficients)
  cat(sprintf("<%s: %s%s, %s, %.0f observations>\n", class(x)[1L], family_text(x, ", "),
              count_of(groups, "group"), count_of(ncol(x$coefficients), "coefficient"),
              sum(x$nobs)))
  table <- cbind(x$coefficients, if (has_sigma(x)) cbind(sigma = x$sigma) else
    cbind(deviance = x$deviance))
  print(utils::head(table), digits = digits, ...)
  if (groups > 6L) cat(sprintf("# ... %s\n", count_of(groups - 6L, "more group")))
  cat(failed_line(x), engine_line(x$engine), sep = "")
  invisible(x)
}

family_text <- function(x, end) {
  if (is.null(x$family)) "" else sprintf("%s(%s)%s", x$family$family, x$family$link, end)
}

has_sigma <- function(x) is.null(x$family) || isTRUE(r_rows[[x$family$family]]$counted)

# Counts of groups by status: those without a fit, or with a fit of fewer columns.
failed_line <- function(x) {
  why <- x$status
  if (is.null(why)) {
    few <- x$nobs < ncol(x$coefficients)
    why <- ifelse(x$info %in% 0L, "ok", paste("not fitted:", ifelse(
      few, "fewer rows than coefficients", "collinear columns")))
  }
  why <- table(why[why != "ok"])
  if (length(why) == 0L) return("")
  counts <- vapply(why, count_of, "", "group")
  paste0("# ", paste0(counts, " ", names(why), collapse = "; "), "\n")
}

# Degrees of freedom of the t distribution; infinite for the normal distribution.
test_df <- function(x) {
  if (!has_sigma(x)) return(rep(Inf, length(x$df.residual)))
  ifelse(x$df.residual > 0, x$df.residual, NaN)
}

#' @rdname cl_batch-methods
#' @export
as.data.frame.cl_batch_lm <- function(x, row.names = NULL, optional = FALSE, ...) {
  beta <- x$coefficients
  statistic <- as.vector(beta / x$std.error)
  long <- data.frame(group = factor(rownames(beta)[row(beta)], rownames(beta)),
                     term = colnames(beta)[col(beta)], estimate = as.vector(beta),
                     std.error = as.vector(x$std.error), statistic = statistic,
                     p.value = 2 * stats::pt(-abs(statistic), rep(test_df(x), ncol(beta))),
                     stringsAsFactors = FALSE)
  long <- long[order(row(beta)), ]
  rownames(long) <- NULL
  long
}

#' @rdname cl_batch-methods
#' @export
sigma.cl_batch_lm <- function(object, ...) object$sigma

#' @rdname cl_batch-methods
#' @export
nobs.cl_batch_lm <- function(object, ...) object$nobs

#' @rdname cl_batch-methods
#' @export
vcov.cl_batch_lm <- function(object, ...) {
  p <- ncol(object$coefficients)
  object$cov.unscaled * rep(object$sigma^2, each = p * p)
}

#' @rdname cl_batch-methods
#' @export
confint.cl_batch_lm <- function(object, parm, level = 0.95, ...) {
  level <- check_number(level, "level", 0, 1)
  beta <- object$coefficients
  names <- colnames(beta)
  parm <- if (missing(parm)) names else if (is.numeric(parm)) names[parm] else parm
  if (anyNA(parm) || !all(parm %in% names)) {
    abort_argument("parm", sprintf("there is no coefficient '%s'", setdiff(parm, names)[1L]))
  }
  tails <- c(1 - level, 1 + level) / 2
  beta <- beta[, parm, drop = FALSE]
  half <- object$std.error[, parm, drop = FALSE] * stats::qt(tails[2L], test_df(object))
  array(c(beta - half, beta + half), c(dim(beta), 2L),
        c(dimnames(beta), list(paste(format(100 * tails, trim = TRUE, digits = 3), "%"))))
}

#' @rdname cl_batch-methods
#' @export
logLik.cl_batch_lm <- function(object, ...) {
  n <- object$nobs
  p <- ncol(object$coefficients)
  structure(-n / 2 * (log(2 * pi * object$deviance / n) + 1), df = p + 1, nobs = n,
            class = "logLik")
}

#' @rdname cl_batch-methods
#' @export
predict.cl_batch_lm <- function(object, newdata, group, type = c("link", "response"),
                                se.fit = FALSE, interval = c("none", "confidence", "prediction"),
                                level = 0.95, ...) {
  type <- check_choice(type, c("link", "response"), "type")
  interval <- check_choice(interval, c("none", "confidence", "prediction"), "interval")
  if (interval == "prediction" && !has_sigma(object)) {
    abort_argument("interval", "prediction intervals are for normal responses only")
  }
  if (missing(newdata)) {
    if (check_flag(se.fit, "se.fit") || interval != "none") {
      abort_argument("newdata", "standard errors and intervals need 'newdata'")
    }
    fit <- object$fitted.values
    return(if (type == "link" && !is.null(object$family)) object$family$linkfun(fit) else fit)
  }
  if (missing(group)) group <- classed(eval(object$call$group, newdata, parent.frame()), "group")
  points <- glm_points_of_groups(object, newdata)
  x <- points$x
  if (length(group) != nrow(x)) abort_group(length(group), nrow(x))
  code <- match(as.character(group), rownames(object$coefficients))
  beta <- object$coefficients[code, , drop = FALSE]
  eta <- rowSums(x * beta) + if (is.null(points$offset)) 0 else points$offset
  if (!se.fit && interval == "none") {
    return(if (type == "response" && !is.null(object$family)) object$family$linkinv(eta) else eta)
  }
  group_uncertainty(object, x, code, eta, type, se.fit, interval, level)
}

glm_points_of_groups <- function(object, newdata) {
  if (!is.null(object$terms)) return(glm_points(object, newdata))
  x <- check_numeric(if (is.data.frame(newdata)) data.matrix(newdata) else newdata, "newdata")
  if (is.null(dim(x))) x <- matrix(x)
  if (ncol(x) != ncol(object$coefficients)) {
    abort_argument("newdata", sprintf("'newdata' must have %d columns, not %d",
                                      ncol(object$coefficients), ncol(x)))
  }
  list(x = x)
}

group_uncertainty <- function(object, x, code, eta, type, se.fit, interval, level) {
  link <- if (type == "response") object$family
  root <- 0
  p <- ncol(x)
  for (k in seq_len(p)) {
    for (j in seq_len(p)) root <- root + x[, j] * x[, k] * object$cov.unscaled[j, k, ][code]
  }
  se <- sqrt(root) * object$sigma[code]
  df <- test_df(object)[code]
  fit <- mean <- if (is.null(link)) eta else link$linkinv(eta)
  if (interval != "none") {
    spread <- if (interval == "prediction") sqrt(se^2 + object$sigma[code]^2) else se
    half <- spread * stats::qt((1 + check_number(level, "level", 0, 1)) / 2, df)
    limits <- list(lwr = eta - half, upr = eta + half)
    if (!is.null(link)) limits <- lapply(limits, link$linkinv)
    fit <- cbind(fit = mean, lwr = limits$lwr, upr = limits$upr)
  }
  if (!check_flag(se.fit, "se.fit")) return(fit)
  list(fit = fit, se.fit = unname(if (is.null(link)) se else se * abs(link$mu.eta(eta))),
       df = unname(df))
}

#' @rdname cl_batch-methods
#' @export
summary.cl_batch_lm <- function(object, ...) {
  long <- as.data.frame(object)
  over <- function(v) {
    v <- v[is.finite(v)]
    if (length(v) == 0L) v <- NA_real_
    c(stats::quantile(v, 0:4 / 4, names = FALSE), mean(v), if (length(v) > 1L) stats::sd(v) else NA)
  }
  rows <- split(seq_len(nrow(long)), factor(long$term, colnames(object$coefficients)))
  table <- t(vapply(rows, function(i) {
    c(over(long$estimate[i]), stats::median(long$std.error[i], na.rm = TRUE),
      sum(long$p.value[i] < 0.05, na.rm = TRUE))
  }, numeric(9L)))
  colnames(table) <- c("Min", "1Q", "Median", "3Q", "Max", "Mean", "SD", "Median SE", "p < 0.05")
  structure(list(call = object$call, coefficients = table, nobs = object$nobs, failed =
                   failed_line(object), family = object$family, engine = object$engine,
                 sigma = if (has_sigma(object)) over(object$sigma)[1:5]),
            class = "summary.cl_batch_lm")
}

#' @rdname cl_batch-methods
#' @export
print.summary.cl_batch_lm <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  size <- range(x$nobs)
  cat(sprintf("%s%s of %s observations\n%s\nCoefficients over groups:\n", family_text(x, ", "),
              count_of(length(x$nobs), "group"),
              if (size[1L] == size[2L]) size[1L] else paste(size, collapse = " to "), x$failed))
  print(as.data.frame(signif(x$coefficients, digits)), digits = digits)
  if (!is.null(x$sigma)) {
    cat("\nResidual standard errors (min, 1Q, median, 3Q, max):\n",
        paste(format(x$sigma, digits = digits), collapse = "  "), "\n", sep = "")
  }
  cat(engine_line(x$engine))
  invisible(x)
}

#' @rdname cl_batch-methods
#' @export
plot.cl_batch_lm <- function(x, parm, level = 0.95, sort = TRUE, ...) {
  limits <- confint.cl_batch_lm(x, parm, level)
  names <- dimnames(limits)[[2L]]
  sort <- check_flag(sort, "sort")
  panels <- min(length(names), 6L)
  old <- graphics::par(mfrow = grDevices::n2mfrow(panels))
  on.exit(graphics::par(old))
  drawn <- lapply(stats::setNames(names, names), function(name) {
    table <- data.frame(group = rownames(x$coefficients), estimate = x$coefficients[, name],
                        lower = limits[, name, 1L], upper = limits[, name, 2L])
    table <- table[is.finite(table$estimate), ]
    if (sort) table <- table[order(table$estimate), ]
    at <- seq_len(nrow(table))
    few <- length(at) <= 40L
    shown <- list(x = table$estimate, y = at, ylab = "", yaxt = if (few) "n", pch = 16, cex = 0.6,
                  main = name, xlab = sprintf("Estimate, %g%% interval", 100 * level),
                  xlim = range(table[3:4], table$estimate, finite = TRUE), col = curve_colour)
    if (!few) shown$yaxt <- NULL
    do.call(graphics::plot, utils::modifyList(shown, list(...)))
    if (few) graphics::axis(2L, at, table$group, las = 1)
    graphics::segments(table$lower, at, table$upper, at, col = curve_colour)
    graphics::abline(v = 0, lty = 3)
    table
  })
  invisible(drawn)
}

#' @rdname cl_batch-methods
#' @exportS3Method generics::tidy
tidy.cl_batch_lm <- function(x, conf.int = FALSE, conf.level = 0.95, exponentiate = FALSE, ...) {
  table <- as.data.frame(x)
  if (check_flag(conf.int, "conf.int")) {
    limits <- stats::confint(x, level = conf.level)
    table$conf.low <- as.vector(t(limits[, , 1L]))
    table$conf.high <- as.vector(t(limits[, , 2L]))
  }
  if (check_flag(exponentiate, "exponentiate")) {
    for (name in intersect(c("estimate", "conf.low", "conf.high"), names(table))) {
      table[[name]] <- exp(table[[name]])
    }
  }
  table_of(table)
}

#' @rdname cl_batch-methods
#' @exportS3Method generics::glance
glance.cl_batch_lm <- function(x, ...) {
  table_of(c(list(group = factor(rownames(x$coefficients), rownames(x$coefficients))),
             if (has_sigma(x)) list(sigma = unname(x$sigma)),
             list(logLik = as.numeric(stats::logLik(x)), AIC = unname(stats::AIC(x)),
                  BIC = unname(stats::BIC(x)), deviance = unname(x$deviance),
                  df.residual = unname(x$df.residual), nobs = unname(x$nobs)),
             if (!is.null(x$status)) list(status = unname(x$status))))
}
