# The search for the best point of a criterion, and the methods of its result.

acquire_points <- function(model, x, argument) {
  names <- colnames(model$x)
  x <- named_columns(x, names)
  if (is.data.frame(x)) x <- as.matrix(x)
  if (is.null(dim(x))) x <- as.matrix(x)
  if (!is.numeric(x) || ncol(x) != ncol(model$x) || !all(is.finite(x))) {
    abort_argument(argument, sprintf(paste("'%s' must be a matrix of finite numbers with the",
                                           "columns of the fit, %d"), argument, ncol(model$x)))
  }
  storage.mode(x) <- "double"
  structure(unname(x), dimnames = if (!is.null(names)) list(NULL, names))
}

acquire_bound <- function(model, v, extreme, argument) {
  names <- colnames(model$x)
  if (is.null(names)) names <- paste0("x", seq_len(ncol(model$x)))
  if (is.null(v)) v <- apply(model$x, 2L, extreme)
  if (!is.numeric(v) || length(v) != length(names) || !all(is.finite(v))) {
    abort_argument(argument, sprintf("'%s' must have a finite number for each column of x: %s",
                                     argument, paste(names, collapse = ", ")))
  }
  if (!is.null(names(v)) && setequal(names(v), names)) v <- v[names]
  stats::setNames(as.double(v), names)
}

# n points spread over a box.
acquire_box <- function(n, lower, upper) {
  t(lower + (upper - lower) * t(even_points(n, length(lower))))
}

# list(at, value): the best allowed point. The search works in the unit cube, on logarithms where
# the criterion is positive. `near`: points around which there may be a narrow peak. `left`: NULL or
# acquire_left(), which has to be 0.01 or more, if that is possible.
acquire_search <- function(f, lower, upper, constraint, starts, near, left) {
  p <- length(lower)
  to_x <- function(u) {
    x <- t(lower + (upper - lower) * t(u))
    matrix(x, ncol = p, dimnames = list(NULL, names(lower)))
  }
  allowed <- function(u) {
    x <- to_x(u)
    right <- if (is.null(constraint)) rep(TRUE, nrow(u)) else constraint(x)
    if (!is.logical(right) || length(right) != nrow(u) || anyNA(right)) {
      abort_argument("constraint", "'constraint' must return TRUE or FALSE for each point")
    }
    if (!is.null(left)) right[right] <- left(x[right, , drop = FALSE]) >= 0.01
    right
  }
  value <- function(u) {
    found <- rep(-Inf, nrow(u))
    good <- allowed(u)
    good <- which(good)
    for (i in split(good, (seq_along(good) - 1L) %/% 256L)) {
      v <- f(to_x(u[i, , drop = FALSE]), FALSE, TRUE)$value
      found[i] <- ifelse(is.nan(v), -Inf, v)
    }
    found
  }
  # some on the faces, where criteria often have maxima
  u <- pmin(pmax(1.25 * even_points(200L * p + 50L * starts, p) - 0.125, 0), 1)
  values <- value(u)
  good <- allowed(u)
  if (!any(good)) {
    if (!is.null(left)) return(acquire_search(f, lower, upper, constraint, starts, near, NULL))
    abort_argument("constraint", "no point that was tried satisfies the constraint")
  }
  order <- order(-values)
  from <- u[apart_rows(u, order[good[order]], starts, 0.15), , drop = FALSE]
  cloud <- t(2 * even_points(20L * p, p) - 1)
  for (i in seq_len(nrow(near))) {
    centre <- (near[i, ] - lower) / (upper - lower)
    cloud_at <- centre + cbind(0.1 * cloud, 0.02 * cloud, 0.004 * cloud)
    around <- t(pmin(pmax(cloud_at, 0), 1))
    near_values <- value(around)
    from <- rbind(from, around[which.max(near_values), ])
  }
  tops <- apply(from[allowed(from), , drop = FALSE], 1L, function(at) {
    acquire_climb(f, to_x, value, at, upper - lower)
  })
  top <- tops[[which.max(vapply(tops, `[[`, 0, "value"))]]
  # a search along a gradient stops at a constraint: points around the best one follow
  limited <- !is.null(constraint) || !is.null(left) && left(to_x(rbind(top$at))) < 0.02
  if (limited) top <- acquire_around(value, top)
  at <- to_x(rbind(top$at))
  at[] <- pmin(pmax(at, lower), upper)
  list(at = as.vector(at), value = f(at, FALSE)$value)
}

acquire_climb <- function(f, to_x, value, from, width) {
  start <- value(rbind(from))
  if (!is.finite(start)) return(list(at = from, value = start))
  found <- stats::nlminb(from, function(u) {
    v <- -value(rbind(u))
    if (is.nan(v)) Inf else v
  }, function(u) {
    by <- -as.vector(f(to_x(rbind(u)), TRUE, TRUE)$gradient) * width
    ifelse(is.finite(by), by, 0)
  }, lower = 0, upper = 1, control = list(iter.max = 100L))
  if (-found$objective < start) list(at = from, value = start) else
    list(at = found$par, value = -found$objective)
}

# Moves within a radius that shrinks where none of them is better. From 0.2 to 1e-6 are 35 rounds
# without success; 400 also end a search that never stops to gain.
acquire_around <- function(value, top) {
  p <- length(top$at)
  count <- 60L * p
  offsets <- 2 * even_points(8L * count, p) - 1
  radius <- 0.2
  round <- 0L
  while (radius > 1e-6 && round < 400L) {
    # new directions each time, since few of them are allowed and better
    rows <- count * (round %% 8L) + seq_len(count)
    move <- rbind(offsets[rows, , drop = FALSE], diag(p), -diag(p))
    u <- matrix(t(pmin(pmax(top$at + radius * t(move), 0), 1)), ncol = p)
    values <- value(u)
    best <- which.max(values)
    if (values[best] > top$value) {
      top <- list(at = u[best, ], value = values[best])
      radius <- min(1.5 * radius, 0.2)
    } else {
      radius <- 0.7 * radius
    }
    round <- round + 1L
  }
  top
}

# ---- methods -------------------------------------------------------------------------------------

acquire_title <- function(x) {
  switch(x$type, ei = "expected improvement",
         bound = if (x$maximise) "upper bound" else "lower bound",
         variance = "decrease of the mean variance")
}

#' @export
print.cl_acquire <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  count <- nrow(x$points)
  cat(sprintf("%d point%s by %s%s\n", count, if (count == 1L) "" else "s", acquire_title(x),
              if (x$type == "variance") "" else
                sprintf(" (%s mean so far: %s)", if (x$maximise) "largest" else "lowest",
                        format(x$best, digits = digits))))
  value <- if (x$type == "bound" && !x$maximise) -x$value else x$value
  print(cbind(x$points, stats::setNames(data.frame(value), acquire_title(x))), digits = digits)
  invisible(x)
}

#' @rdname cl_acquire
#' @param x A result of `cl_acquire()`.
#' @param along One or two names of columns: the criterion for the first point is drawn along them,
#'   and others are held at this point. By default the first two columns, or the only one.
#' @param n The number of values of each.
#' @param ... Further arguments of [plot.default()].
#' @export
plot.cl_acquire <- function(x, along = NULL, n = NULL, ...) {
  names <- names(x$lower)
  if (is.null(along)) along <- utils::head(names, 2L)
  if (!is.character(along) || !all(along %in% names) || !length(along) %in% 1:2) {
    abort_argument("along", sprintf("'along' must name one or two of %s",
                                    paste(names, collapse = ", ")))
  }
  n <- check_count(if (is.null(n)) if (length(along) == 1L) 400 else 80 else n, "n", 2)
  axes <- lapply(along, function(name) seq(x$lower[[name]], x$upper[[name]], length.out = n))
  grid <- expand.grid(stats::setNames(axes, along))
  full <- x$points[rep(1L, nrow(grid)), , drop = FALSE]
  full[along] <- grid
  grid$value <- as.vector(x$criterion(full))
  data <- x$fit$x
  colnames(data) <- names
  title <- acquire_title(x)
  if (length(along) == 1L) {
    sign <- if (x$type == "bound" && !x$maximise) -1 else 1
    graphics::plot(grid[[1L]], sign * grid$value, type = "l", lwd = 2, col = curve_colour,
                   xlab = along, ylab = title, las = 1, ...)
    graphics::rug(data[, along], col = "grey40")
    graphics::abline(v = x$points[[along]], lty = 2)
    return(invisible(grid))
  }
  surface <- matrix(grid$value, n)
  range <- range(surface)
  if (diff(range) <= 0) range <- range + c(-0.5, 0.5) * max(abs(range), 1) * 1e-6
  graphics::plot(range(axes[[1L]]), range(axes[[2L]]), type = "n", xaxs = "i", yaxs = "i", las = 1,
                 xlab = along[1L], ylab = along[2L], main = title, ...)
  draw_colours(axes[[1L]], axes[[2L]], surface, range, surface_colours(128L))
  graphics::contour(axes[[1L]], axes[[2L]], surface, add = TRUE, labcex = 0.7)
  graphics::points(data[, along], pch = 21, bg = "black", col = "white", cex = 0.6, lwd = 0.6)
  graphics::points(x$points[, along], pch = 4, lwd = 2)
  graphics::box()
  invisible(grid)
}
