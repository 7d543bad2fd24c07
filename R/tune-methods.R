# Methods of cl_tune()'s result.

#' @rdname cl_tune
#' @export
print.cl_tuning <- function(x, ...) {
  if (is.na(x$device)) {
    cat("Tuning: no device\n")
    return(invisible(x))
  }
  cat("Tuning of ", x$device, " (driver ", x$driver, ")\n",
      "Base R input goes to the device from these sizes:\n", sep = "")
  for (k in seq_len(NROW(x$sizes))) {
    row <- x$sizes[k, ]
    cat(sprintf("  %-13s %-8s %s; %s %s (%s)\n    %s\n", row$op,
                format(row$threshold, digits = 3L), row$unit,
                if (is.na(row$found)) "kept" else "before", format(row$before, digits = 3L),
                row$source, row$why))
  }
  for (name in unique(x$kernels$name)) {
    row <- x$kernels[x$kernels$name == name & x$kernels$chosen, ]
    if (row$gain > 1) {
      cat(sprintf("  kernels: %s = %g, %.2f times as fast as with the default\n", name, row$value,
                  row$gain))
    }
  }
  cat(if (x$saved) paste("Saved in", tuning_file()) else
    "For this session; save = TRUE keeps it for later ones", "\n", sep = "")
  invisible(x)
}

#' @rdname cl_tune
#' @export
summary.cl_tuning <- function(object, ...) {
  worst <- function(op, threshold) {
    at <- object$points[object$points$op == op, ]
    if (any(!at$agree)) return(NA_real_)
    max(ifelse(at$size >= threshold, at$device, at$host) / pmin(at$device, at$host))
  }
  sizes <- object$sizes
  data.frame(op = sizes$op, before = sizes$before, threshold = sizes$threshold,
             loss_before = as.numeric(Map(worst, sizes$op, sizes$before)),
             loss = as.numeric(Map(worst, sizes$op, sizes$threshold)), stringsAsFactors = FALSE)
}

#' @rdname cl_tune
#' @export
plot.cl_tuning <- function(x, ...) {
  if (is.na(x$device)) {
    message("statcl: there is nothing to draw, as there was no device")
    return(invisible(x))
  }
  ops <- x$sizes$op
  rows <- ceiling(sqrt(length(ops)))
  old <- graphics::par(mfrow = c(ceiling(length(ops) / rows), rows), mar = c(4, 4, 2, 1))
  on.exit(graphics::par(old))
  colours <- c(host = "#555555", device = "#0072B2")
  for (k in seq_along(ops)) {
    at <- x$points[x$points$op == ops[k], ]
    graphics::plot(range(at$size), 1e3 * range(at$host, at$device), type = "n", log = "xy",
                   xlab = x$sizes$unit[k], ylab = "ms", main = ops[k], ...)
    shapes <- unique(at$shape)
    for (shape in shapes) {
      these <- at[at$shape == shape, ]
      these <- these[order(these$size), ]
      for (engine in names(colours)) {
        graphics::lines(these$size, 1e3 * these[[engine]], col = colours[[engine]], type = "b",
                        pch = match(shape, shapes), lty = match(shape, shapes))
      }
    }
    if (is.finite(x$sizes$threshold[k])) {
      graphics::abline(v = x$sizes$threshold[k], lty = 3)
    }
    if (k == 1L) graphics::legend("topleft", names(colours), col = colours, lty = 1, bty = "n")
  }
  invisible(x)
}
