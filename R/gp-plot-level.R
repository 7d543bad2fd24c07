# The plot of a fitted Gaussian process over a factor, alone or with another variable.

# A curve for each level of a factor, or intervals at the levels of one or two factors. With two
# variables, the last factor determines the colours.
plot_levels <- function(object, inputs, n, xlim, ylim, labels, col, pch, cex, las, legend, ...) {
  curves <- length(inputs$names) == 1L
  names <- c(inputs$names, names(inputs$by))
  if (curves) {
    values <- inputs$values[[1L]]
    xlim <- if (is.null(xlim)) range(values) else as.numeric(xlim)
    axis <- seq(xlim[1L], xlim[2L], length.out = check_count(if (is.null(n)) 400 else n, "n", 2))
    like <- inputs$like[[1L]]
  } else {
    values <- inputs$by[[1L]]$index
    axis <- seq_along(inputs$by[[1L]]$values)
    if (is.null(xlim)) xlim <- range(axis) + c(-0.5, 0.5)
    like <- 0
  }
  by <- if (length(names) == 2L) inputs$by[[length(inputs$by)]] else
    list(values = 1L, index = rep(1L, length(values)))
  count <- length(by$values)
  if (is.null(col)) {
    col <- if (length(names) == 1L) curve_colour else grDevices::hcl.colors(count, "Dark 3")
  }
  col <- rep_len(col, count)
  cell <- expand.grid(at = seq_along(axis), level = seq_len(count))
  x <- axis[cell$at]
  at <- list(if (curves) x else inputs$by[[1L]]$values[cell$at], by$values[cell$level])
  at <- stats::setNames(data.frame(at[seq_along(names)]), names)
  drawn <- plotted_values(object, inputs$points(at))
  y <- plotted_observations(object)
  inside <- values >= xlim[1L] & values <= xlim[2L] & !inputs$slice
  if (is.null(ylim)) ylim <- range(drawn[if (curves) c("lwr", "upr") else TRUE], y[inside],
                                   finite = TRUE)
  graphics::plot(as_variable(xlim, like), ylim, type = "n", las = las, main = labels$main,
                 xaxt = if (curves) "s" else "n",
                 xlab = if (is.null(labels$xlab)) names[1L] else labels$xlab,
                 ylab = if (is.null(labels$ylab)) labels$y else labels$ylab, ...)
  if (!curves) {
    graphics::axis(1L, axis, as.character(inputs$by[[1L]]$values))
    apart <- 0.6 * ((seq_len(count) - 0.5) / count - 0.5)
  }
  for (i in seq_len(count)) {
    rows <- cell$level == i
    own <- inside & by$index == i
    one <- drawn[rows, ]
    place <- x[rows]
    if (curves) {
      draw_band(place, one$lwr, one$upr, col[i], 0.2)
      graphics::lines(place, one$fit, col = col[i], lwd = 2, lty = (i - 1L) %% 6L + 1L)
      graphics::points(values[own], y[own], pch = pch, cex = cex, col = col[i])
    } else {
      place <- place + apart[i]
      graphics::points(values[own] + apart[i] - 0.1 / count, y[own], pch = pch, cex = cex,
                       col = point_colour())
      if (!is.null(one$lwr_new)) {
        graphics::segments(place, one$lwr_new, place, one$upr_new, col = col[i])
      }
      graphics::segments(place, one$lwr, place, one$upr, col = col[i], lwd = 4, lend = 1L)
      graphics::points(place, one$fit, pch = 21, bg = "white", col = col[i], cex = 1.2)
    }
  }
  if (inputs$slice && is.null(labels$main)) {
    graphics::mtext("other inputs fixed at typical values", cex = 0.8)
  }
  if (length(names) == 2L && !is.null(legend)) {
    if (identical(legend, "auto")) {
      legend <- empty_corner(data.frame(x = x, upr_new = drawn$upr, lwr_new = drawn$lwr),
                             values[inside], y[inside])
    }
    graphics::legend(legend, as.character(by$values), title = names[2L], bty = "n", col = col,
                     lwd = if (curves) 2 else 4,
                     lty = if (curves) (seq_len(count) - 1L) %% 6L + 1L else 1L)
  }
  graphics::box()
  invisible(if (curves) data.frame(x = x, drawn, level = at[[2L]]) else data.frame(
    at, drawn, check.names = FALSE))
}
