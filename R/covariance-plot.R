# Plots of kernels along one column.

#' Plot a covariance function
#'
#' Draws the covariance between the values at 0 and at points along one column of x, and those of
#' the terms of a sum.
#'
#' @param x A kernel.
#' @param column The column (its name or number) along which the points lie; the other columns
#'   are 0. `NULL`: the distance over all columns, if every term has one lengthscale.
#' @param to Largest distance.
#' @param xlab,ylab,col,lwd,las As for [plot.default()].
#' @param ... Further arguments for [plot.default()].
#' @return The plotted values, a data frame with columns `distance` and `covariance`, invisibly.
#' @section Errors:
#' `statcl_error_argument` if no term uses the column, or if `column` is needed.
#' @seealso [kernels]
#' @export
#' @examples
#' plot(k_exp_quad(sd = 2, lengthscale = 10) + k_periodic(sd = 0.5, period = 5))
plot.cl_kernel <- function(x, column = NULL, to = NULL, xlab = NULL, ylab = "covariance",
                           col = "#0072B2", lwd = 2, las = 1, ...) {
  if (has_user(x)) abort_argument("x", "kernels with k_user() cannot be plotted")
  if (any(vapply(x$terms, function(term) length(c(term$distance, term$factors)) > 0L, NA))) {
    abort_argument("x", "kernels of factors, or of points on the Earth, cannot be plotted")
  }
  reach <- vapply(x$terms, leaf_reach, 0, column = column)
  if (all(is.infinite(reach))) {
    abort_argument("column", "no term of the kernel uses this column")
  }
  if (is.null(to)) to <- 3 * max(reach[is.finite(reach)])
  distance <- seq(0, check_positive(to, "to"), length.out = 201L)
  if (is.null(xlab)) xlab <- if (is.null(column)) "distance" else paste("distance in", column)
  along <- x
  along$terms <- Map(leaf_along, x$terms, reach, MoreArgs = list(column = column))
  parts <- vapply(kernel_products(along), function(leaves) {
    values <- lapply(along$terms[leaves], function(leaf) {
      with_cl(drop(cl_cov(distance, 0, new_kernel(leaf))), engine = "host")
    })
    Reduce(`*`, values)
  }, numeric(201L))
  total <- rowSums(parts)
  graphics::plot(distance, total, type = "l", xlab = xlab, ylab = ylab, col = col, lwd = lwd,
                 las = las, ylim = range(0, total), ...)
  if (ncol(parts) > 1L) {
    graphics::matlines(distance, parts, lty = 2L, lwd = 1, col = "grey40")
    graphics::legend("topright", c("sum", "terms"), col = c(col, "grey40"), lty = 1:2,
                     lwd = c(lwd, 1), bty = "n")
  }
  invisible(data.frame(distance = distance, covariance = total))
}

# The range of a leaf along a column; Inf if it does not use the column or has no lengthscale.
leaf_reach <- function(leaf, column) {
  l <- leaf$lengthscale
  if (is.null(l)) return(if (leaf$type == "linear") 1 else Inf)
  if (leaf$type == "periodic") l[] <- leaf$period
  if (is.null(column)) {
    if (length(l) == 1L) return(l)
    abort_argument("column", "'column' must name a column: a term has a lengthscale for each")
  }
  at <- leaf_index(leaf, column, length(l))
  if (is.na(at)) Inf else l[at]
}

# The index of a column among a leaf's values; NA if the leaf does not use it.
leaf_index <- function(leaf, column, count) {
  at <- if (is.null(leaf$columns)) column else match(column, leaf$columns)
  if (is.na(at)) return(NA_integer_)
  if (count == 1L) return(1L)
  if (!is.numeric(at) || at > count) {
    abort_argument("column", sprintf("the kernel does not name column '%s'", column))
  }
  as.integer(at)
}

# The leaf for points with this column alone.
leaf_along <- function(leaf, reach, column) {
  pick <- function(v) {
    if (length(v) <= 1L || is.null(column)) return(v[1L])
    at <- leaf_index(leaf, column, length(v))
    v[if (is.na(at)) 1L else at]
  }
  if (leaf$type %in% plain_types) return(leaf)
  if (leaf$type == "linear") {
    leaf$sd <- pick(leaf$sd)
    leaf$center <- pick(leaf$center)
  } else {
    leaf$lengthscale <- if (is.finite(reach)) pick(leaf$lengthscale) else .Machine$double.xmax
  }
  leaf["columns"] <- list(NULL)
  leaf
}
