# Where the search of a Gaussian process has ended: R/gp-fit.R.

# Without noise the likelihood often increases with the lengthscales up to where the covariance
# matrix is singular to rounding; the search ends near that edge, where the likelihood has no more
# than some digits. A point inside the edge at which everything can be computed; NULL if the search
# ended elsewhere.
inside_edge <- function(space, target, at, done) {
  long <- space$role[space$free] == "lengthscale"
  if (!any(long)) return(NULL)
  screen <- function(by) vapply(by, function(by) target$screen(at + by * long), 0)
  if (done && target$settles(at)) return(NULL)
  rounding <- target$n * rounding_of(screen)
  if (!done && rounding < 1e-7 && all(is.finite(screen(c(0.01, 0.05, 0.2, 0.5))))) return(NULL)
  for (by in c(0, 0.002 * 2^(0:7))) {
    if (target$settles(at - by * long)) return(at - by * long)
  }
  NULL
}

# The spread of f(0), a function of vectors, where it should be one number.
rounding_of <- function(f) diff(range(f(1e-12 * (-2:2))))

edge_message <- "ended where the covariance matrix becomes singular to rounding"

# The lengthscales of inputs without effect are not determined beyond some length: they are set to
# their upper bounds, unless the objective is less there.
without_effect <- function(space, target, at, bounds) {
  none <- is_reach(space) & is.finite(bounds$upper) & at > log(100 * space$to[space$free])
  if (!any(none)) return(at)
  moved <- replace(at, none, bounds$upper[none])
  if (target$screen(moved) <= target$value(at) + 1e-9) moved else at
}

# A slope by which a twentieth of a unit changes the objective by less than its rounding does, which
# is large where the covariance matrix is nearly singular.
flat_slope <- function(target, at) {
  rounding <- rounding_of(function(by) vapply(1 + by, function(by) target$value(by * at), 0))
  if (is.finite(rounding)) max(1e-2, 20 * rounding) else 1e-2
}

search_result <- function(space, target, best, at, subsets = list()) {
  bounds <- search_bounds(space)
  at <- without_effect(space, target, at, bounds)
  # where only rounding decides whether the matrix has a factor, the search may end next to a point
  # that has one
  lost <- !is.finite(target$value(at))
  if (lost && !is.null(target$best())) at <- target$best()
  name <- space$name[space$free]
  at_bound <- pmin(at - bounds$lower, bounds$upper - at) < 1e-6
  # nlminb() also stops, with other messages, where the likelihood is flat to rounding
  done <- best$convergence == 0L && !lost || best$message != "interrupted" &&
    all(abs(target$gradient(at)[!at_bound]) <
          if (isTRUE(best$stalled)) flat_slope(target, at) else 1e-6)
  silent <- identical(space$value[nrow(space)], 0) && !space$free[nrow(space)]
  edge <- if (silent && (done || lost || best$message == "false convergence (8)")) {
    inside_edge(space, target, at, done)
  }
  if (!is.null(edge)) at <- edge
  gradient <- target$gradient(at)
  value <- target$value(at)
  counts <- target$counts()
  for (subset in subsets[!duplicated(subsets)]) {
    if (!identical(subset, target)) counts <- Map(`+`, counts, subset$counts())
  }
  list(par = stats::setNames(search_parameters(space, at), space$name),
       converged = done || !is.null(edge),
       message = if (is.null(edge)) best$message else edge_message,
       gradient = stats::setNames(-gradient * target$n, name), objective = target$total(value),
       evaluations = counts[["all"]], not_pd = counts[["not_pd"]], at_bound = name[at_bound],
       trials = if (!is.null(best$trials)) target$total(best$trials))
}
