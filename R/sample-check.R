# Checks the gradient of a log density against finite differences at the start of the first chain.

most_differences <- 50L

# `answer`: the evaluator's result at the chain's point, on the unconstrained scale. A start is
# often a mode or a centre of symmetry, where the gradient is zero even with the wrong sign, so a
# nearby point is checked unless the density is zero there.
check_start_gradient <- function(s, evaluate, answer) {
  given <- start <- s$at
  flat <- integer()
  on.exit(s$at <- given)
  s$at <- given + 0.01 * pmax(1, abs(given)) * cos(seq_along(given))
  nearby <- tryCatch(evaluate_once(s, evaluate), statcl_error_density = function(e) NULL)
  if (!is.null(nearby[[2L]]) && all(is.finite(c(nearby[[1L]], nearby[[2L]])))) {
    start <- s$at
    flat <- flat_parameters(s$layout, list(given, start), list(answer[[2L]], nearby[[2L]]))
    answer <- nearby
  }
  value_at <- function(u) {
    s$at <- u
    tryCatch(evaluate_once(s, evaluate)[[1L]], statcl_error_density = function(e) {
      if (is.null(e$parent)) NA_real_ else stop(e) # NaN near the start, or the function's error
    })
  }
  scale <- pmax(1, abs(start))
  verdict <- function(direction) {
    along <- function(t) c(value_at(start + t * direction * scale), t)
    slope_verdict(along, sum(direction * scale * answer[[2L]]), answer[[1L]], 10^-(4:8), 1e-4)
  }
  suspects <- unlist(lapply(difference_groups(length(start)), function(group) {
    direction <- numeric(length(start))
    direction[group] <- ifelse(sin(group^2) > 0, 1, -1)
    if (isFALSE(verdict(direction)$ok)) group
  }))
  along_axis <- function(i) verdict(replace(numeric(length(start)), i, 1))
  warn_flat(s$layout, Filter(function(i) isTRUE(along_axis(i)$ok), utils::head(flat, 5L)))
  found <- lapply(suspects, along_axis)
  wrong <- vapply(found, function(v) isFALSE(v$ok), NA)
  if (!any(wrong)) return(invisible())
  s$at <- start
  at <- suspects[wrong]
  abort_gradient(s, at, answer[[2L]][at],
                 vapply(found[wrong], `[[`, 0, "difference") / scale[at])
}

# The parameters on which the density does not depend at two points (without the Jacobian of their
# transforms), unless their range is finite: their distribution is improper.
flat_parameters <- function(layout, points, slopes) {
  moved <- Map(function(u, slope) {
    x <- if (length(layout$blocks) > 0L) constrain(layout, u)
    if (is.null(x)) slope else slope - pull_back(layout, u, x, numeric(layout$n))
  }, points, slopes)
  open <- logical(layout$dimension)
  open[layout$free_u] <- TRUE
  for (b in layout$blocks) if (b$each) open[b$u] <- is.infinite(b$upper - b$lower)
  which(moved[[1L]] == 0 & moved[[2L]] == 0 & open)
}

warn_flat <- function(layout, flat) {
  if (length(flat) == 0L) return(invisible())
  statcl_warning("unused", sprintf(paste("the log density does not depend on %s: without a prior",
                                         "the distribution is improper"),
                                   paste0("'", free_names(layout)[flat], "'", collapse = ", ")))
}

# Groups of parameters, each of which is checked as one sum of derivatives.
difference_groups <- function(n) {
  unname(split(seq_len(n), (seq_len(n) - 1L) %% min(n, most_differences)))
}

abort_gradient <- function(s, at, gradient, difference) {
  names <- free_names(s$layout)
  more <- length(at) - 1L
  others <- ""
  if (more > 0L) {
    others <- sprintf(", and so are those with respect to %s%s",
                      paste(utils::head(names[at[-1L]], 4L), collapse = ", "),
                      if (more > 4L) sprintf(" and %d more", more - 4L) else "")
  }
  unit <- if (length(s$layout$blocks) > 0L) " (on the unconstrained scale)" else ""
  abort_density(s, sprintf(paste("the gradient of 'log_density' with respect to '%s' is wrong at",
                                 "the starting point: it is %.6g, but finite differences give",
                                 "%.6g%s%s; see cl_check_gradient(); check_gradient = FALSE skips",
                                 "this check"), names[at[1L]], gradient[1L], difference[1L], unit,
                           others),
                wrong = data.frame(parameter = names[at], gradient = gradient,
                                   difference = difference, stringsAsFactors = FALSE))
}

# For each unconstrained number the name of the parameter that it moves.
free_names <- function(layout) {
  names <- character(layout$dimension)
  names[layout$free_u] <- layout$names[layout$free_x]
  for (b in layout$blocks) {
    names[b$u] <- if (length(b$u) == length(b$x)) layout$names[b$x] else b$name
  }
  names
}
