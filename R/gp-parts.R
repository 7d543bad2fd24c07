# The summands of a Gaussian process whose kernel is a sum: their distributions given the data.

# A kernel for each summand.
kernel_parts <- function(kernel) {
  run_program(kernel, function(i) list(new_kernel(kernel$terms[[i]])), c,
              function(a, b) list(Reduce(`+`, a) * Reduce(`+`, b)))
}

# The sum of the chosen summands as a kernel; NULL for the whole process.
chosen_part <- function(object, part) {
  if (is.null(part)) return(NULL)
  parts <- kernel_parts(object$kernel)
  right <- is.numeric(part) && length(part) > 0L && all(part %in% seq_along(parts)) &&
    !anyDuplicated(part)
  if (!right) {
    abort_argument("part", sprintf("'part' must be numbers of summands of the kernel, 1 to %d",
                                   length(parts)))
  }
  if (has_user(object$kernel)) abort_argument("part", "parts are not available for this fit")
  Reduce(`+`, parts[part])
}

# One panel for each summand.
plot_parts <- function(object, inputs, n, xlim, labels, col, las, ...) {
  if (length(inputs$names) != 1L) {
    abort_argument("along", "for type = \"parts\", 'along' must name one numeric input")
  }
  parts <- kernel_parts(object$kernel)
  titles <- vapply(parts, function(p) paste(format(p, digits = 3L), collapse = " + "), "")
  values <- inputs$values[[1L]]
  xlim <- if (is.null(xlim)) range(values) else as.numeric(xlim)
  grid <- seq(xlim[1L], xlim[2L], length.out = check_count(if (is.null(n)) 400 else n, "n", 2))
  at <- inputs$points(stats::setNames(data.frame(grid), inputs$names))
  old <- graphics::par(mfrow = c(length(parts), 1L),
                       mar = pmin(graphics::par("mar"), c(4.1, 4.1, 2.1, 1.1)))
  on.exit(graphics::par(old))
  drawn <- lapply(seq_along(parts), function(i) {
    result <- predict_points(object, at, "variance", part = i)
    band <- gp_interval(result, FALSE, 0.95)
    curve <- data.frame(part = i, x = grid, fit = result$mean, lwr = band[, 1L], upr = band[, 2L],
                        row.names = NULL)
    graphics::plot(as_variable(xlim, inputs$like[[1L]]), range(curve$lwr, curve$upr), type = "n",
                   xlab = if (is.null(labels$xlab)) inputs$names else labels$xlab,
                   ylab = if (is.null(labels$ylab)) labels$y else labels$ylab, las = las,
                   main = if (is.null(labels$main)) titles[i] else labels$main, cex.main = 0.9, ...)
    draw_band(grid, curve$lwr, curve$upr, col, 0.30)
    graphics::lines(grid, curve$fit, col = col, lwd = 2)
    curve
  })
  invisible(do.call(rbind, drawn))
}
