# The plot of a fitted Gaussian process over two inputs.

# Colours whose lightness increases with the value, so that they can be distinguished in grey and by
# readers with a colour vision deficiency; without the darkest ones, so that black contours are
# visible.
surface_colours <- function(count) {
  utils::tail(grDevices::hcl.colors(ceiling(count / 0.7), "viridis"), count)
}

plot_surface <- function(object, inputs, se, n, xlim, ylim, labels, col, pch, cex, las, ...) {
  u <- inputs$values[[1L]]
  v <- inputs$values[[2L]]
  xlim <- if (is.null(xlim)) range(u) else as.numeric(xlim)
  ylim <- if (is.null(ylim)) range(v) else as.numeric(ylim)
  n <- check_count(if (is.null(n)) 80 else n, "n", 2)
  axis_u <- seq(xlim[1L], xlim[2L], length.out = n)
  axis_v <- seq(ylim[1L], ylim[2L], length.out = n)
  grid <- stats::setNames(expand.grid(axis_u, axis_v), inputs$names)
  result <- predict_points(object, inputs$points(grid), if (se) "variance" else "mean")
  z <- if (se) sqrt(result$variance) else result$mean
  if (is.null(col)) col <- surface_colours(128L)
  range <- range(z)
  if (diff(range) <= 0) range <- range + c(-0.5, 0.5) * max(abs(range), 1) * 1e-6
  quantity <- if (se) paste("standard error of", labels$y) else labels$y
  # room for the key
  old <- graphics::par(mar = graphics::par("mar") + c(0, 0, 0, 3.6))
  on.exit(graphics::par(old))
  surface <- matrix(z, n)
  graphics::plot(as_variable(xlim, inputs$like[[1L]]), as_variable(ylim, inputs$like[[2L]]),
                 type = "n", xaxs = "i", yaxs = "i", las = las,
                 xlab = if (is.null(labels$xlab)) inputs$names[1L] else labels$xlab,
                 ylab = if (is.null(labels$ylab)) inputs$names[2L] else labels$ylab,
                 main = if (is.null(labels$main)) quantity else labels$main, ...)
  draw_colours(axis_u, axis_v, surface, range, col)
  graphics::contour(axis_u, axis_v, surface, add = TRUE, labcex = 0.7,
                    col = grDevices::adjustcolor("black", 0.75))
  if (!inputs$slice) {
    # black points with white rings are visible on dark and light colours
    graphics::points(u, v, pch = 21, bg = "black", col = "white", cex = cex, lwd = 0.6)
  } else if (is.null(labels$main)) {
    graphics::mtext("other inputs fixed at typical values", cex = 0.8)
  }
  graphics::box()
  draw_key(range, col, las)
  grid[[if (se) "se" else "fit"]] <- unname(z)
  invisible(grid)
}

# The values as colours, interpolated between the points of the grid; half cells outside are cut.
draw_colours <- function(u, v, z, range, col) {
  n <- length(u)
  steps <- seq(range[1L], range[2L], length.out = length(col) + 1L)
  shade <- matrix(col[findInterval(z, steps, all.inside = TRUE)], n)
  half <- c(u[2L] - u[1L], v[2L] - v[1L]) / 2
  usr <- graphics::par("usr")
  graphics::clip(usr[1L], usr[2L], usr[3L], usr[4L])
  graphics::rasterImage(t(shade)[rev(seq_along(v)), ], u[1L] - half[1L], v[1L] - half[2L],
                        u[n] + half[1L], v[length(v)] + half[2L], interpolate = TRUE)
}

# A bar of the colours with an axis, right of the plot.
draw_key <- function(range, col, las) {
  usr <- graphics::par("usr")
  width <- usr[2L] - usr[1L]
  left <- usr[2L] + 0.03 * width
  right <- usr[2L] + 0.07 * width
  at <- seq(usr[3L], usr[4L], length.out = length(col) + 1L)
  graphics::rect(left, at[-length(at)], right, at[-1L], col = col, border = NA, xpd = NA)
  graphics::rect(left, usr[3L], right, usr[4L], xpd = NA)
  ticks <- pretty(range, 5L)
  ticks <- ticks[ticks >= range[1L] & ticks <= range[2L]]
  where <- usr[3L] + (ticks - range[1L]) / diff(range) * (usr[4L] - usr[3L])
  graphics::axis(4L, at = where, labels = format(ticks), las = las, line = NA, pos = right,
                 cex.axis = 0.85, xpd = NA)
}
