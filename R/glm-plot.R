# Plots of a fitted generalised linear model: coefficients, residuals, calibration, traces.

#' Plots of a generalised linear model
#'
#' `"coefficients"` shows estimates with 50% and 95% intervals, without the intercept. A coefficient
#' is scaled to one standard deviation of its column, so that coefficients can be compared, unless
#' the column contains only 0 and 1.
#'
#' `"residuals"` shows, for `bernoulli_logit`, mean residuals of groups of observations with similar
#' fitted values; if the model is correct, 95% of them lie within the dashed lines. For other
#' families it shows Pearson residuals against the linear predictor, with a running mean
#' (20,000 of the observations if there are more).
#'
#' `"calibration"` shows mean observed values of groups, with 95% intervals, against the predicted
#' values; if the model is correct, they lie on the diagonal. For families with classes each class
#' has its own colour.
#'
#' `"trace"` shows the draws of a fit with `method = "mcmc"`.
#'
#' @param x A fit of [cl_glm()].
#' @param type Which plots, in this order; by default all that the family has except the traces.
#' @param groups Number of groups for residuals and calibration; the default depends on the number
#'   of observations.
#' @param col,pch,cex,las,main As for [plot.default()]; `col` is the colour of estimates.
#' @param which `1`, the number of the residual plot in [plot.lm()], as an alternative to `type`.
#' @param ... Further arguments for [plot.default()], or for `"trace"` for
#'   [plot()][cl_sample-methods] of the draws.
#' @return The plotted values, a list with a data frame for each plot, invisibly.
#' @section Errors:
#' `statcl_error_argument` for `"trace"` without draws and `"residuals"` of families with classes.
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt + hp, data = mtcars)
#' plot(fit)
#' plot(fit, type = "coefficients")
plot.cl_glm <- function(x, type = NULL, groups = NULL, col = NULL, pch = 16, cex = 0.7, las = 1,
                        main = NULL, which = NULL, ...) {
  known <- c("coefficients", "residuals", "calibration", "trace")
  classes <- has_classes(x$family)
  if (!is.null(which)) {
    if (!is.null(type) || !identical(as.vector(which), 1) && !identical(as.vector(which), 1L)) {
      abort_argument("which", paste("'which' must be 1: the other plots of plot.lm() are not",
                                    "available; see 'type' for more plots"))
    }
    type <- "residuals"
  }
  if (is.null(type)) {
    type <- c(if (nrow(shown_coefficients(x)) > 0L) "coefficients", if (!classes) "residuals",
              "calibration")
  }
  if (!is.character(type) || length(type) == 0L || !all(type %in% known)) {
    abort_argument("type", sprintf("'type' must be one or more of %s",
                                   paste0("\"", known, "\"", collapse = ", ")))
  }
  if (!is.null(groups)) groups <- check_count(groups, "groups", 1)
  if ("trace" %in% type) {
    if (is.null(x$draws)) abort_argument("type", "only a fit with method = \"mcmc\" has traces")
    return(invisible(plot(x$draws, ...)))
  }
  if (classes && "residuals" %in% type) {
    abort_argument("type", sprintf("residual plots are not available for family \"%s\"", x$family))
  }
  if (is.null(col)) col <- curve_colour
  if (length(type) > 1L) {
    old <- graphics::par(mfrow = c(1L, length(type)))
    on.exit(graphics::par(old))
  }
  drawn <- lapply(stats::setNames(type, type), function(one) {
    switch(one,
      coefficients = plot_coefficients(x, col, pch, cex, main, ...),
      residuals = plot_glm_residuals(x, groups, col, pch, cex, las, main, ...),
      calibration = plot_calibration(x, groups, col, pch, cex, las, main, ...))
  })
  invisible(drawn)
}

title_or <- function(main, default) if (is.null(main)) default else main

# ---- coefficients --------------------------------------------------------------------------------

# Estimates with their intervals; those of numeric columns are per standard deviation.
shown_coefficients <- function(object) {
  name <- names(object$coefficients)
  shown <- !is.na(object$coefficients) & !grepl("(^|:)\\(Intercept\\)$", name)
  inner <- stats::confint(object, level = 0.5)[name, , drop = FALSE]
  outer <- stats::confint(object)[name, , drop = FALSE]
  table <- data.frame(estimate = object$coefficients, lower = outer[, 1L], lower_half = inner[, 1L],
                      upper_half = inner[, 2L], upper = outer[, 2L], row.names = name)
  (table * coefficient_units(object))[shown, , drop = FALSE]
}

coefficient_units <- function(object) {
  count <- length(object$coefficients)
  if (is.null(object$model) && is.null(object$x)) return(rep(1, count))
  x <- stats::model.matrix(object)
  if (is_ordered(object$family) && object$intercept > 0L) {
    x <- x[, -object$intercept, drop = FALSE]
  }
  unit <- apply(x, 2L, function(v) if (all(v %in% c(0, 1))) 1 else stats::sd(v))
  rep(unname(unit), length.out = count)
}

plot_coefficients <- function(object, col, pch, cex, main, ...) {
  table <- shown_coefficients(object)
  n <- nrow(table)
  if (n == 0L) abort_argument("type", "the model has no coefficients other than the intercept")
  finite <- unlist(table)[is.finite(unlist(table))]
  old <- graphics::par(mar = graphics::par("mar") + c(0, label_lines(rownames(table)), 0, 0))
  on.exit(graphics::par(mar = old$mar))
  at <- rev(seq_len(n))
  graphics::plot(range(0, finite), c(0.5, n + 0.5), type = "n", yaxt = "n", ylab = "",
                 xlab = "coefficient (numeric predictors: per sd)", las = 1,
                 main = title_or(main, "Coefficients"), ...)
  graphics::abline(v = 0, col = "grey50", lty = 2)
  graphics::axis(2, at, rownames(table), las = 1, tick = FALSE,
                 cex.axis = min(1, 30 / max(n, 30)))
  graphics::segments(table$lower, at, table$upper, at, col = col, lwd = 1.5)
  graphics::segments(table$lower_half, at, table$upper_half, at, col = col, lwd = 4)
  graphics::points(table$estimate, at, pch = pch, cex = cex * 1.6, col = col)
  invisible(table)
}

# Lines of margin that the labels need beyond the default.
label_lines <- function(labels) {
  line <- graphics::par("mai")[2L] / graphics::par("mar")[2L]
  max(0, min(max(graphics::strwidth(labels, units = "inches")) / line - 2.5, 14))
}

# ---- residuals -----------------------------------------------------------------------------------

plot_glm_residuals <- function(object, groups, col, pch, cex, las, main, ...) {
  if (family_row(object$family)$read == "binary") {
    return(plot_binned(object, groups, col, pch, cex, las, main, ...))
  }
  eta <- as.vector(object$linear.predictors)
  residual <- as.vector(glm_residuals(object, "pearson"))
  residual <- residual / stats::sigma(object)
  if (length(eta) > 20000L) { # more would not be visible
    some <- round(seq(1, length(eta), length.out = 20000))
    eta <- eta[some]
    residual <- residual[some]
  }
  graphics::plot(eta, residual, type = "n", xlab = "linear predictor", ylab = "Pearson residual",
                 las = las, main = title_or(main, "Residuals"), ...)
  graphics::abline(h = 0, col = "grey50", lty = 2)
  graphics::points(eta, residual, pch = pch, cex = cex,
                   col = grDevices::adjustcolor("black", min(0.65, 60 / sqrt(length(eta)) * 0.5)))
  smooth <- stats::lowess(eta, residual, iter = 0)
  graphics::lines(smooth, col = col, lwd = 2)
  invisible(data.frame(linear.predictor = eta, residual = residual))
}

plot_binned <- function(object, groups, col, pch, cex, las, main, ...) {
  mu <- as.vector(object$fitted.values)
  w <- deviance_weights(object)
  table <- grouped(mu, object$y, w, group_count(groups, length(mu)))
  spread <- grouped(mu, mu * (1 - mu), w, group_count(groups, length(mu)))$observed
  table$residual <- table$observed - table$fitted
  table$bound <- 2 * sqrt(spread / table$weight)
  limit <- max(abs(table$residual), table$bound)
  graphics::plot(table$fitted, table$residual, type = "n", ylim = c(-limit, limit), las = las,
                 xlab = "fitted probability", ylab = "mean residual",
                 main = title_or(main, "Binned residuals"), ...)
  graphics::abline(h = 0, col = "grey50", lty = 2)
  for (side in c(-1, 1)) {
    graphics::lines(table$fitted, side * table$bound, lty = 2, col = "grey30")
  }
  graphics::points(table$fitted, table$residual, pch = pch, cex = cex * 1.3, col = col)
  invisible(table)
}

group_count <- function(groups, n) {
  if (is.null(groups)) groups <- if (n >= 100) floor(sqrt(n)) else max(4, n %/% 10)
  min(groups, 40, n)
}

# Means within groups of about equal size of observations ordered by `fitted`.
grouped <- function(fitted, observed, w, count) {
  group <- ceiling(rank(fitted, ties.method = "average") / length(fitted) * count)
  total <- as.vector(rowsum(w, group))
  mean <- function(v) as.vector(rowsum(w * v, group)) / total
  table <- data.frame(fitted = mean(fitted), observed = mean(observed), weight = total,
                      spread = pmax(mean(observed^2) - mean(observed)^2, 0),
                      count = as.vector(table(group)))
  table[table$weight > 0, ]
}

# ---- calibration ---------------------------------------------------------------------------------

plot_calibration <- function(object, groups, col, pch, cex, las, main, ...) {
  parts <- calibration_parts(object)
  n <- NROW(object$fitted.values)
  row <- family_row(object$family)
  shares <- row$classes || row$trials || row$two_classes
  count <- if (is.null(groups)) min(10, group_count(NULL, n)) else groups
  tables <- lapply(parts, function(part) {
    table <- grouped(part$fitted, part$observed, part$weight, count)
    cbind(table, calibration_interval(table, shares))
  })
  all <- do.call(rbind, tables)
  limits <- if (shares) c(0, min(1, max(all$upper, all$fitted))) else
    range(all[c("fitted", "lower", "upper")])
  colours <- if (length(parts) == 1L) col else grDevices::hcl.colors(length(parts), "Dark 3")
  graphics::plot(limits, limits, type = "n", las = las, xlab = "fitted mean",
                 ylab = "observed mean", main = title_or(main, "Calibration"), ...)
  graphics::abline(0, 1, col = "grey50", lty = 2)
  for (k in seq_along(tables)) {
    table <- tables[[k]]
    graphics::segments(table$fitted, table$lower, table$fitted, table$upper, col = colours[k])
    graphics::points(table$fitted, table$observed, pch = pch, cex = cex * 1.3, col = colours[k],
                     type = "b", lwd = 1)
  }
  if (length(parts) > 1L) {
    graphics::legend("topleft", object$levels, col = colours, pch = pch, lwd = 1, bty = "n")
  }
  if (length(parts) > 1L) all <- cbind(class = rep(object$levels, vapply(tables, nrow, 0L)), all)
  invisible(all)
}

# For each class, or once: list(fitted, observed, weight).
calibration_parts <- function(object) {
  w <- deviance_weights(object)
  if (!has_classes(object$family)) {
    return(list(list(fitted = as.vector(object$fitted.values),
                     observed = as.vector(mean_response(object)), weight = w)))
  }
  lapply(seq_along(object$levels), function(k) {
    list(fitted = object$fitted.values[, k], observed = as.numeric(object$y == k), weight = w)
  })
}

# Wilson's interval for proportions; from standard errors for other means.
calibration_interval <- function(table, shares) {
  z <- stats::qnorm(0.975)
  if (!shares) {
    half <- z * sqrt(table$spread / pmax(table$count - 1, 1))
    return(data.frame(lower = table$observed - half, upper = table$observed + half))
  }
  n <- table$weight
  centre <- (table$observed + z^2 / (2 * n)) / (1 + z^2 / n)
  half <- z / (1 + z^2 / n) * sqrt(table$observed * (1 - table$observed) / n + z^2 / (4 * n^2))
  data.frame(lower = centre - half, upper = centre + half)
}
