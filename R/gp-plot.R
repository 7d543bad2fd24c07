# Plots of a fitted Gaussian process: curves, surfaces, leave-one-out diagnostics, traces.

#' Plots of a Gaussian process
#'
#' With one numeric input variable (which may enter the model as several columns), the fit is drawn
#' as a curve: the mean with 95% bands for the process and for new observations, and the data. With
#' two it is drawn as a surface: the mean in colours and contours, the locations of the
#' observations, and a key. Dates and times count as numeric. With a numeric variable and a factor
#' there is a curve with its 95% band of the process for each level; with one or two factors a point
#' for each level, with thick 95% intervals for the process and thin ones for new observations. With
#' more variables, `along` selects one or two, and the others are held at their medians (factors at
#' their most frequent level); without `along`, `type = "loo"` is drawn.
#'
#' `type = "loo"` draws three panels of leave-one-out diagnostics: observations against
#' leave-one-out predictions with 95% intervals; their standardised residuals; and the normal
#' quantile plot of these. If the model is correct, 95% of the intervals contain the diagonal, and
#' 95% of the residuals lie between the dashed lines. `type = "trace"` shows the draws of a fit with
#' `method = "mcmc"`. `type = "parts"` draws each summand of the kernel, such as a trend and a
#' season, with 95% bands, without the mean.
#'
#' @param x A fit of [cl_gp()].
#' @param type What to draw, see below.
#' @param along One or two names of input variables, numeric or factors. With a numeric variable, a
#'   factor of more than 12 levels is drawn only if it is named here; otherwise it is held.
#' @param se For a surface: whether to draw the standard error of the process instead of its mean.
#' @param n Number of points of the curve, or of the surface in each direction.
#' @param xlim,ylim Ranges to draw; an `xlim` wider than the data shows a forecast.
#' @param which Which of the panels of `"loo"` to draw.
#' @param xlab,ylab,main,col,pch,cex,las As for [plot.default()]; `col` is the colour of the curve,
#'   the colours of the levels, or those of the surface from low to high values.
#' @param legend For curves and factors: the position of the legend (see [legend()]); `"auto"` for
#'   the emptiest corner, `NULL` for none.
#' @param ... Further arguments for [plot.default()], or for `"trace"` for
#'   [plot()][cl_sample-methods] of the draws.
#' @return The plotted values, a data frame, invisibly.
#' @section Errors:
#' `statcl_error_argument` if `along` does not name inputs that can be drawn (for `"parts"`: a
#' numeric one), and for `"trace"` without draws.
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars)
#' plot(fit, xlim = c(0, 40))
#' plot(fit, type = "loo")
#' plot(cl_gp(depth ~ long + lat, data = quakes[1:80, ]), n = 30)
#' plot(cl_gp(mpg ~ wt + cyl, transform(mtcars, cyl = factor(cyl)), starts = 1,
#'            kernel = k_matern52() * k_factor("cyl")))
plot.cl_gp <- function(x, type = c("fit", "loo", "trace", "parts"), along = NULL, se = FALSE,
                       n = NULL, xlim = NULL, ylim = NULL, which = 1:3, xlab = NULL, ylab = NULL,
                       main = NULL, col = NULL, pch = 16, cex = 0.6, las = 1, legend = "auto",
                       ...) {
  type <- check_choice(type, c("fit", "loo", "trace", "parts"), "type")
  if (type == "trace") {
    if (is.null(x$draws)) {
      abort_argument("type", "only a fit with method = \"mcmc\" has traces")
    }
    return(invisible(plot(x$draws, ...)))
  }
  if (type == "loo") return(plot_loo(x, which, main, col, pch, cex, las, ...))
  inputs <- plot_inputs(x, along, type == "fit")
  labels <- list(xlab = xlab, ylab = ylab, main = main, y = response_label(x))
  if (type == "parts") {
    if (is.null(col)) col <- curve_colour
    return(plot_parts(x, inputs, n, xlim, labels, col, las, ...))
  }
  if (is.null(inputs)) return(plot_loo(x, which, main, col, pch, cex, las, ...))
  if (length(inputs$by) > 0L) {
    return(plot_levels(x, inputs, n, xlim, ylim, labels, col, pch, cex, las, legend, ...))
  }
  if (length(inputs$names) == 2L) {
    return(plot_surface(x, inputs, check_flag(se, "se"), n, xlim, ylim, labels, col, pch, cex, las,
                        ...))
  }
  plot_curve(x, inputs, n, xlim, ylim, labels, col, pch, cex, las, legend, ...)
}

response_label <- function(x) {
  if (is.null(x$formula)) "y" else paste(deparse(x$formula[[2L]], width.cutoff = 500L),
                                         collapse = " ")
}

# The inputs on the axes: list(names, values (by name), points(data frame of these) for gp_points(),
# slice (whether others are fixed), by (for each factor on them, by name: its values, and the index
# of each observation's value)); NULL if there are more than two variables and none was chosen.
# `factors`: whether factors may be on the axes.
plot_inputs <- function(object, along, factors = FALSE) {
  if (is.null(object$terms)) {
    names <- colnames(object$x)
    if (is.null(names)) names <- if (ncol(object$x) == 1L) "x" else
      paste0("x", seq_len(ncol(object$x)))
    coded <- object$coded
    variables <- sapply(names, function(name) {
      v <- object$x[, match(name, names)]
      if (is.null(coded[[name]])) v else factor(coded[[name]][v], coded[[name]])
    }, simplify = FALSE)
    convert <- function(frame) {
      if (is.null(coded)) unname(as.matrix(frame[names])) else frame[names]
    }
  } else {
    variables <- object$variables
    names <- names(variables)
    convert <- function(frame) frame
  }
  numeric <- vapply(variables, is_drawable, NA) & !names %in% factor_variables(object)
  levels <- if (factors) lapply(variables[!numeric & lengths(lapply(variables, dim)) == 0L],
                                level_values)
  if (is.null(along)) {
    few <- names(levels)[vapply(levels, function(v) length(v$values) <= 12L || !any(numeric), NA)]
    if (length(names) > 2L || !any(numeric) && length(few) < length(names)) return(NULL)
    along <- c(names[numeric], few)
  } else {
    usable <- c(names[numeric], names(levels))
    if (!is.character(along) || !length(along) %in% 1:2 || !all(along %in% usable) ||
          anyDuplicated(along)) {
      abort_argument("along", sprintf("'along' must name one or two of the %sinputs: %s",
                                      if (factors) "" else "numeric ",
                                      paste(usable, collapse = ", ")))
    }
  }
  others <- setdiff(names, along)
  held <- Map(typical_value, variables[others], numeric[others])
  by <- intersect(along, names(levels))
  along <- setdiff(along, by)
  list(names = along, values = lapply(variables[along], function(v) as.vector(unclass(v))),
       like = variables[along], slice = length(others) > 0L, by = levels[by],
       points = function(grid) {
         frame <- grid
         for (name in along) frame[[name]] <- as_variable(grid[[name]], variables[[name]])
         for (name in others) frame[[name]] <- rep(held[[name]], nrow(grid))
         gp_points(object, convert(frame))
       })
}

# Numbers, dates and times.
is_drawable <- function(v) {
  (is.numeric(v) || inherits(v, c("Date", "POSIXct", "difftime"))) && is.null(dim(v))
}

# Numbers as values of a variable, which may be a date.
as_variable <- function(v, like) {
  if (!inherits(like, c("Date", "POSIXct", "difftime"))) return(v)
  kept <- intersect(names(attributes(like)), c("class", "tzone", "units"))
  attributes(v) <- attributes(like)[kept]
  v
}

# The variables that the formulas turn into factors, as factor(g) does.
factor_variables <- function(object) {
  classes <- attr(object$terms, "dataClasses")
  made <- names(classes)[!classes %in% c("numeric", "other") & !grepl("^nmatrix", classes)]
  unlist(lapply(made, function(text) {
    tryCatch(all.vars(str2lang(text)), error = function(e) character())
  }))
}

# The values of a variable that counts as a factor, and the index of each observation's value.
level_values <- function(v) {
  values <- if (is.numeric(v) || is.logical(v)) sort(unique(v)) else {
    v <- as.factor(v)
    factor(levels(v)[tabulate(v, nlevels(v)) > 0L], levels(v))
  }
  list(values = values, index = match(v, values))
}

# The median, or the most frequent value.
typical_value <- function(v, numeric = is_drawable(v)) {
  if (numeric) return(stats::median(v, na.rm = TRUE))
  if (is.logical(v)) return(isTRUE(mean(v, na.rm = TRUE) > 0.5))
  if (is.numeric(v)) return(v[which.max(tabulate(match(v, v)))])
  v <- as.factor(v)
  factor(names(which.max(table(v))), levels(v))
}

# ---- a curve -------------------------------------------------------------------------------------

plot_curve <- function(object, inputs, n, xlim, ylim, labels, col, pch, cex, las, legend, ...) {
  if (is.null(col)) col <- curve_colour
  values <- inputs$values[[1L]]
  xlim <- if (is.null(xlim)) range(values) else as.numeric(xlim)
  grid <- seq(xlim[1L], xlim[2L], length.out = check_count(if (is.null(n)) 400 else n, "n", 2))
  at <- inputs$points(stats::setNames(data.frame(grid), inputs$names))
  curve <- data.frame(x = grid, plotted_values(object, at))
  y <- object$y
  inside <- values >= xlim[1L] & values <= xlim[2L] & !inputs$slice
  if (is.null(ylim)) ylim <- range(curve$lwr_new, curve$upr_new, y[inside], finite = TRUE)
  xlab <- if (is.null(labels$xlab)) inputs$names else labels$xlab
  ylab <- if (is.null(labels$ylab)) labels$y else labels$ylab
  graphics::plot(as_variable(xlim, inputs$like[[1L]]), ylim, type = "n", xlab = xlab, ylab = ylab,
                 main = labels$main, las = las, ...)
  draw_curve(curve, col)
  graphics::points(values[inside], y[inside], pch = pch, cex = cex, col = point_colour())
  if (inputs$slice) {
    graphics::rug(values, col = "grey40")
    if (is.null(labels$main)) graphics::mtext("other inputs fixed at typical values", cex = 0.8)
  }
  if (identical(legend, "auto")) legend <- empty_corner(curve, values[inside], y[inside])
  if (!is.null(legend)) draw_legend(legend, col, pch, cex, !inputs$slice)
  graphics::box()
  invisible(curve)
}

# The mean with 95% intervals at points; for other families on the response scale.
plotted_values <- function(object, points) {
  if (inherits(object, "cl_gp_response")) return(plotted_response(object, points))
  result <- predict_points(object, points, "variance")
  inner <- gp_interval(result, FALSE, 0.95)
  outer <- gp_interval(result, TRUE, 0.95)
  data.frame(fit = result$mean, lwr = inner[, 1L], upr = inner[, 2L], lwr_new = outer[, 1L],
             upr_new = outer[, 2L], row.names = NULL)
}

draw_curve <- function(curve, col) {
  draw_band(curve$x, curve$lwr_new, curve$upr_new, col, 0.15)
  draw_band(curve$x, curve$lwr, curve$upr, col, 0.30)
  graphics::lines(curve$x, curve$fit, col = col, lwd = 2)
}

draw_band <- function(x, lower, upper, col, alpha) {
  graphics::polygon(c(x, rev(x)), c(lower, rev(upper)), border = NA,
                    col = grDevices::adjustcolor(col, alpha))
}

point_colour <- function() grDevices::adjustcolor("black", 0.65)

draw_legend <- function(where, col, pch, cex, points) {
  shown <- if (points) 1:4 else 2:4
  graphics::legend(
    where, c("observations", "mean", "95% confidence", "95% prediction")[shown], bty = "n",
    pch = c(pch, NA, 15, 15)[shown], pt.cex = c(cex, NA, 2, 2)[shown],
    lty = c(NA, 1, NA, NA)[shown], lwd = 2,
    col = c(point_colour(), col, grDevices::adjustcolor(col, 0.45),
            grDevices::adjustcolor(col, 0.15))[shown])
}

# The corner of the plot (a third of each axis) with the fewest points and the least of the curve.
empty_corner <- function(curve, x, y) {
  usr <- graphics::par("usr")
  across <- c((curve$x - usr[1L]) / (usr[2L] - usr[1L]), (x - usr[1L]) / (usr[2L] - usr[1L]))
  scaled <- function(v) (v - usr[3L]) / (usr[4L] - usr[3L])
  top <- scaled(c(curve$upr_new, y))
  bottom <- scaled(c(curve$lwr_new, y))
  left <- across < 0.35
  right <- across > 0.65
  filled <- c(topleft = sum(pmax(top[left] - 0.65, 0)), topright = sum(pmax(top[right] - 0.65, 0)),
              bottomleft = sum(pmax(0.35 - bottom[left], 0)),
              bottomright = sum(pmax(0.35 - bottom[right], 0)))
  names(which.min(filled))
}

# ---- leave-one-out diagnostics -------------------------------------------------------------------

plot_loo <- function(object, which, main, col, pch, cex, las, ...) {
  if (!is.numeric(which) || length(which) == 0L || !all(which %in% 1:3)) {
    abort_argument("which", "'which' must be one or more of 1, 2 and 3")
  }
  if (is.null(col)) col <- curve_colour
  loo <- gp_loo(object)
  sd <- sqrt(loo$variance)
  drawn <- data.frame(y = object$y, fit = loo$mean, sd = sd, residual = object$y - loo$mean,
                      standardized = (object$y - loo$mean) / sd, row.names = rownames(object$x))
  if (length(which) > 1L) {
    old <- graphics::par(mfrow = c(1L, length(which)))
    on.exit(graphics::par(old))
  }
  titles <- if (is.null(main)) c("Leave-one-out prediction", "Standardized residuals",
                                 "Normal quantiles") else rep_len(main, 3L)
  y <- response_label(object)
  point <- grDevices::adjustcolor("black", if (nrow(drawn) > 300) 0.4 else 0.65)
  if (1 %in% which) {
    half <- stats::qnorm(0.975) * sd
    graphics::plot(drawn$fit, drawn$y, type = "n", xlab = "predicted from all other observations",
                   ylab = paste("observed", y), main = titles[1L], las = las,
                   xlim = range(drawn$fit - half, drawn$fit + half), ...)
    graphics::segments(drawn$fit - half, drawn$y, drawn$fit + half, drawn$y,
                       col = grDevices::adjustcolor(col, 0.35))
    graphics::abline(0, 1, col = col, lwd = 2)
    graphics::points(drawn$fit, drawn$y, pch = pch, cex = cex, col = point)
  }
  if (2 %in% which) {
    graphics::plot(drawn$fit, drawn$standardized, type = "n", las = las,
                   xlab = "predicted from all other observations",
                          ylab = "residual / standard deviation",
                   main = titles[2L], ylim = range(-2.2, 2.2, drawn$standardized), ...)
    graphics::abline(h = 0, col = col, lwd = 2)
    graphics::abline(h = c(-1, 1) * stats::qnorm(0.975), lty = 2, col = "grey30")
    graphics::points(drawn$fit, drawn$standardized, pch = pch, cex = cex, col = point)
  }
  if (3 %in% which) {
    quantiles <- stats::qqnorm(drawn$standardized, plot.it = FALSE)
    graphics::plot(quantiles, type = "n", las = las, main = titles[3L], xlab = "normal quantile",
                   ylab = "standardized residual")
    graphics::abline(0, 1, col = col, lwd = 2)
    graphics::points(quantiles, pch = pch, cex = cex, col = point)
  }
  invisible(drawn)
}
