# The search for the parameters of a Gaussian process.
#
# It works on (y - centre) / scale, so that it takes the same path whatever the unit of y, and on
# the logarithms of the parameters, on which the units of x are a shift.

# The likelihood of a problem, with y (less what least squares gives to the mean) over `scale`.
gp_function <- function(problem, objective = "ml", scale = 1) {
  mean <- if (problem$mean$kind == "number") 0 else mean_argument(problem$mean)
  cl_gp_likelihood((problem$y - problem$mean$centre) / scale, problem$x, problem$kernel, mean,
                   beta = problem$beta, weights = problem$weights,
                   variance = if (!is.null(problem$variance)) problem$variance / scale^2,
                   objective = objective)
}

# Gives par (named), converged, message, evaluations, not_pd, at_bound, starts (what came out of
# each), objective.
gp_search <- function(problem, space, prior, objective, starts, control, progress) {
  check_duplicates(problem, space)
  target <- gp_target(problem, space, prior, objective, progress)
  if (!any(space$free)) {
    value <- target$value(numeric())
    if (!is.finite(value)) stop(target$fault())
    return(search_result(space, target, list(convergence = 0L, message = "all parameters held"),
                         numeric(), NULL))
  }
  best <- tryCatch(search_all(space, target, starts, control), interrupt = function(e) NULL)
  trials <- best$trials
  at <- if (is.null(best)) target$best() else best$par
  if (is.null(at)) {
    statcl_abort("interrupted", "interrupted before the first usable evaluation")
  }
  if (is.null(best)) best <- list(convergence = 1L, message = "interrupted")
  search_result(space, target, best, at, trials)
}

search_all <- function(space, target, starts, control) {
  bounds <- search_bounds(space)
  points <- search_screen(space, target, starts)
  run <- function(from, control) {
    stats::nlminb(from, target$value, target$gradient, lower = bounds$lower, upper = bounds$upper,
                  control = control)
  }
  trials <- NULL
  from <- points[1L, ]
  if (nrow(points) > 1L) {
    trials <- lapply(seq_len(nrow(points)), function(i) run(points[i, ], list(iter.max = 10L)))
    values <- vapply(trials, `[[`, 0, "objective")
    from <- trials[[which.min(values)]]$par
    trials <- values
  }
  best <- run(from, control)
  # a search that gave up where a step met a matrix that cannot be factored may go on from there
  for (again in 1:2) {
    if (best$convergence == 0L || best$message %in% limit_messages) break
    next_run <- run(best$par, control)
    if (next_run$objective > best$objective) break
    done <- next_run$objective > best$objective - 1e-10
    best <- next_run
    if (done) break
  }
  best$trials <- trials
  best
}

limit_messages <- c("function evaluation limit reached without convergence (9)",
                    "iteration limit reached without convergence (10)")

search_result <- function(space, target, best, at, trials) {
  bounds <- search_bounds(space)
  name <- space$name[space$free]
  at_bound <- pmin(at - bounds$lower, bounds$upper - at) < 1e-6
  counts <- target$counts()
  gradient <- target$gradient(at)
  # nlminb() also stops, with other messages, where the likelihood is flat to rounding
  flat <- best$message != "interrupted" && all(abs(gradient[!at_bound]) < 1e-6)
  list(par = stats::setNames(search_parameters(space, at), space$name),
       converged = best$convergence == 0L || flat, message = best$message,
       gradient = stats::setNames(-gradient * target$n, name),
       objective = -target$value(at) * target$n - target$constant,
       evaluations = counts[["all"]], not_pd = counts[["not_pd"]], at_bound = name[at_bound],
       trials = if (!is.null(trials)) -trials * target$n - target$constant)
}

# The best of many points, as many as there are `starts`; the user's own is always among them. Those
# that are near a better one are taken only if there are no others: they would lead to the same
# maximum.
search_screen <- function(space, target, starts) {
  points <- search_design(space, 8L * starts)
  values <- apply(points, 1L, target$screen)
  if (all(is.infinite(values))) stop(target$fault())
  order <- order(values)
  if (any(!is.na(space$start)) && is.finite(values[1L])) order <- c(1L, setdiff(order, 1L))
  keep <- order[is.finite(values[order])]
  apart <- keep[1L]
  for (i in keep[-1L]) {
    far <- apply(abs(sweep(points[apart, , drop = FALSE], 2L, points[i, ])), 1L, max)
    if (all(far > 1.2)) apart <- c(apart, i)
  }
  points[utils::head(union(apart, keep), starts), , drop = FALSE]
}

# What is minimised: minus the objective (with the log priors, if any) by observation, and its
# gradient, at a point of the search; the last evaluation is kept, as the optimiser asks for both at
# the same place. The objective of (y - centre) / scale has `constant` more than that of y.
gp_target <- function(problem, space, prior, objective, progress) {
  n <- length(problem$y)
  f <- gp_function(problem, objective, problem$scale)
  integrated <- objective == "ml" && identical(problem$beta, "integrate")
  constant <- (n - if (integrated) length(problem$mean$names) else 0L) * log(problem$scale) +
    if (integrated) mean_constant(problem$mean, problem$beta) else 0
  state <- list(all = 0L, not_pd = 0L, fault = NULL, best = NULL, best_value = Inf)
  last <- list(at = NULL)
  report <- search_reporter(progress, n, space)
  evaluate <- function(at, gradient = TRUE) {
    if (identical(at, last$at)) return(last)
    par <- search_parameters(space, at)
    state$all <<- state$all + 1L
    value <- tryCatch(f(par / space$unit, gradient), statcl_error_not_pd = function(e) e)
    if (inherits(value, "condition") || !is.finite(value)) {
      state$not_pd <<- state$not_pd + 1L
      if (inherits(value, "condition")) state$fault <<- value
      return(list(at = at, value = Inf, gradient = numeric(length(at))))
    }
    total <- as.numeric(value)
    slope <- if (gradient) attr(value, "gradient") / space$unit
    if (!is.null(prior)) {
      p <- prior$value(par)
      total <- total + p$value
      slope <- slope + p$gradient
    }
    found <- list(at = at, value = -total / n)
    if (found$value < state$best_value) {
      state$best <<- at
      state$best_value <<- found$value
    }
    report(state$all, -state$best_value * n)
    if (!gradient) return(found)
    found$gradient <- -(slope[space$free] * search_slope(space, par)) / n
    last <<- found
    found
  }
  list(n = n, constant = constant,
       screen = function(at) evaluate(at, gradient = FALSE)$value,
       value = function(at) evaluate(at)$value,
       gradient = function(at) evaluate(at)$gradient,
       counts = function() state[c("all", "not_pd")],
       best = function() state$best,
       fault = function() explain_not_pd(state$fault))
}

explain_not_pd <- function(fault) {
  if (is.null(fault)) {
    fault <- structure(class = c("statcl_error_nonfinite", "statcl_error", "error", "condition"),
                       list(message = "the likelihood is not finite at any starting point"))
  } else {
    fault$message <- paste(
      "the covariance matrix is not positive definite at any starting point: points coincide, or",
      "nearly so; let 'noise' be estimated, give it a larger lower bound, or leave points out")
  }
  fault["call"] <- list(user_call())
  fault
}

# A function that shows how a long search goes: at most every second, from the third second on.
search_reporter <- function(progress, n, space) {
  if (!progress) return(function(count, value) NULL)
  shown <- started <- seconds_now()
  function(count, value) {
    now <- seconds_now()
    if (now - started < 3 || now - shown < 1) return()
    shown <<- now
    message(sprintf("cl_gp: %d evaluations, %.2g s each; best so far %.6g", count,
                    (now - started) / count, value))
  }
}

# Points that coincide have a singular covariance matrix unless there is noise.
check_duplicates <- function(problem, space) {
  last <- nrow(space)
  if (!identical(space$value[last], 0)) return(invisible())
  types <- vapply(problem$kernel$terms, `[[`, "", "type")
  if ("white" %in% types || (!is.null(problem$variance) && all(problem$variance > 0))) {
    return(invisible())
  }
  x <- problem$x
  used <- unlist(lapply(problem$kernel$terms, function(term) {
    find_columns(term$columns, ncol(x), colnames(x))
  }))
  at <- x[, unique(used), drop = FALSE]
  if (!is.null(problem$variance)) at <- at[problem$variance == 0, , drop = FALSE]
  row <- anyDuplicated(at)
  if (row == 0L) return(invisible())
  if (!is.null(problem$variance)) row <- which(problem$variance == 0)[row]
  statcl_abort("not_pd", sprintf(paste(
    "row %d of the inputs is equal to an earlier one, and 'noise' is held at 0: a function cannot",
    "have two values at one point; let 'noise' be estimated, give the measurements' variances",
    "('variance'), or average equal rows"), row), order = row)
}

# A warning of class statcl_warning_<what>.
warn_gp <- function(what, message) {
  warning(structure(list(message = message, call = NULL),
                    class = c(paste0("statcl_warning_", what), "statcl_warning", "warning",
                              "condition")))
}
