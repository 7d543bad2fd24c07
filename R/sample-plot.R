# Plots of the draws of cl_sample().

#' @rdname cl_sample-methods
#' @export
plot.cl_sample <- function(x, parameters = NULL, max = if (is.null(parameters)) 6 else Inf, ...) {
  names <- pick_parameters(x, parameters)
  if (!identical(max, Inf)) max <- check_count(max, "max", 1)
  if (length(names) > max) {
    left <- utils::tail(names, -max)
    message(sprintf(paste0("showing %d of %d parameters, without %s%s: select others with ",
                           "'parameters', or increase 'max'"), max, length(names),
                    paste(utils::head(left, 5L), collapse = ", "),
                    if (length(left) > 5L) ", ..." else ""))
    names <- utils::head(names, max)
  }
  pages <- plot_pages(length(names))
  old <- graphics::par(mfrow = pages$shape, mar = c(2.5, 2.5, 2, 0.5), mgp = c(1.5, 0.5, 0))
  on.exit(graphics::par(old))
  if (pages$count > 1L && grDevices::dev.interactive()) {
    asked <- grDevices::devAskNewPage(TRUE)
    on.exit(grDevices::devAskNewPage(asked), add = TRUE)
  }
  colours <- grDevices::hcl.colors(dim(x$draws)[2L] + 1L, "viridis")[seq_len(dim(x$draws)[2L])]
  divergent <- if (!is.null(x$diagnostics)) which(rowSums(x$diagnostics$divergent) > 0)
  for (name in names) {
    draws <- matrix(x$draws[, , name], nrow(x$draws))
    graphics::matplot(draws, type = "l", lty = 1, lwd = 0.5, col = colours, xlab = "", ylab = "",
                      main = name, ...)
    graphics::rug(divergent, col = "red")
    plot_densities(draws, bounds_of(x, name), colours, name)
  }
  invisible(x)
}

# Rows and columns of a page, and the number of pages, for n parameters with two pictures each: up
# to 4 parameters one below the other, else two in a row.
plot_pages <- function(n) {
  if (n <= 4L) return(list(shape = c(n, 2L), count = 1L))
  rows <- min(ceiling(n / 2), 4)
  list(shape = c(rows, 4L), count = ceiling(n / (2 * rows)))
}

# Lower and upper bound; results made in several steps may have none.
bounds_of <- function(x, name) {
  if (name %in% rownames(x$bounds)) x$bounds[name, ] else c(-Inf, Inf)
}

plot_densities <- function(draws, bounds, colours, name) {
  curves <- lapply(seq_len(ncol(draws)), function(j) bounded_density(draws[, j], bounds))
  graphics::plot(range(unlist(lapply(curves, `[[`, "x"))),
                 c(0, max(unlist(lapply(curves, `[[`, "y")))), type = "n", xlab = "", ylab = "",
                 main = name)
  for (j in seq_along(curves)) graphics::lines(curves[[j]], col = colours[j])
}

# A kernel density on the range of x. At bounds it is reflected, so that no mass lies beyond them.
bounded_density <- function(x, bounds = c(-Inf, Inf)) {
  if (length(x) < 2L) return(list(x = x, y = 0))
  bounds <- bounds[is.finite(bounds)]
  mirrored <- c(x, unlist(lapply(bounds, function(b) 2 * b - x)))
  curve <- stats::density(mirrored, bw = stats::bw.nrd0(x), from = min(x), to = max(x))
  list(x = curve$x, y = curve$y * (1 + length(bounds)))
}
