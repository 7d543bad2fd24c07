# Plots of the draws of cl_sample().

#' @rdname cl_sample-methods
#' @export
plot.cl_sample <- function(x, parameters = NULL, max = if (is.null(parameters)) 6 else Inf, ...) {
  names <- names_shown(pick_parameters(x, parameters), max, "parameters")
  old <- open_pages(length(names))
  on.exit(close_pages(old))
  colours <- grDevices::hcl.colors(dim(x$draws)[2L] + 1L, "viridis")[seq_len(dim(x$draws)[2L])]
  divergent <- if (!is.null(x$diagnostics)) which(rowSums(x$diagnostics$divergent) > 0)
  for (name in names) {
    draws <- matrix(x$draws[, , name], nrow(x$draws))
    graphics::matplot(draws, type = "l", lty = 1, lwd = 0.5, col = colours, xlab = "", ylab = "",
                      main = name, ...)
    if (length(divergent) > 0L) graphics::rug(divergent, col = "red")
    plot_densities(draws, bounds_of(x, name), colours, name)
  }
  invisible(x)
}

# The first `max` names; a message lists the rest.
names_shown <- function(names, max, what) {
  if (!identical(max, Inf)) max <- check_count(max, "max", 1)
  if (length(names) > max) {
    left <- utils::tail(names, -max)
    message(sprintf(paste0("showing %d of %d %s, without %s%s: select others with '%s', or ",
                           "increase 'max'"), max, length(names), what,
                    paste(utils::head(left, 5L), collapse = ", "),
                    if (length(left) > 5L) ", ..." else "", what))
    names <- utils::head(names, max)
  }
  names
}

# Pages for n rows of two pictures; the user is asked before each page but the first. The result is
# for close_pages().
open_pages <- function(n) {
  pages <- plot_pages(n)
  old <- graphics::par(mfrow = pages$shape, mar = c(2.5, 2.5, 2, 0.5), mgp = c(1.5, 0.5, 0))
  asks <- pages$count > 1L && grDevices::dev.interactive()
  list(par = old, asked = if (asks) grDevices::devAskNewPage(TRUE))
}

close_pages <- function(old) {
  graphics::par(old$par)
  if (!is.null(old$asked)) grDevices::devAskNewPage(old$asked)
}

# Rows and columns of a page, and the number of pages, for n parameters with two pictures each: up
# to 4 parameters one below the other, else two in a row.
plot_pages <- function(n) {
  if (n <= 4L) return(list(shape = c(n, 2L), count = 1L))
  rows <- min(ceiling(n / 2), 4)
  list(shape = c(rows, 4L), count = ceiling(n / (2 * rows)))
}

# Lower and upper bound; results without bounds have infinite ones.
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
