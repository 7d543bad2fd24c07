# The optimiser of the parameters of a Gaussian process.
#
# It works on (y - centre) / scale, so that its path does not depend on the unit of y, and on the
# logarithms of the parameters, for which a change of the units of x is a shift.

# The likelihood of a problem, with y (minus the least-squares fit of the mean) divided by `scale`.
gp_function <- function(problem, objective = "ml", scale = 1) {
  mean <- if (problem$mean$kind == "number") 0 else mean_argument(problem$mean)
  cl_gp_likelihood((problem$y - problem$mean$centre) / scale, problem$x, problem$kernel, mean,
                   beta = problem$beta, weights = problem$weights,
                   variance = if (!is.null(problem$variance)) problem$variance / scale^2,
                   objective = objective)
}

# Gives par (named), converged, message, evaluations, not_pd, at_bound, trials (the result from each
# start), objective.
gp_search <- function(problem, space, prior, objective, starts, control, progress) {
  check_duplicates(problem, space)
  if (!any(space$free)) return(search_nothing(problem, space, prior, objective))
  report <- search_reporter(progress)
  target <- gp_target(problem, space, prior, objective, report)
  rough <- rough_target(problem, space, prior, objective, report)
  if (is.null(rough)) rough <- target
  best <- tryCatch(search_all(space, target, rough, starts, control), interrupt = function(e) NULL)
  at <- if (!is.null(best)) best$par else if (is.null(target$best())) rough$best() else
    target$best()
  if (is.null(at)) {
    statcl_abort("interrupted", "interrupted before the first successful evaluation")
  }
  if (is.null(best)) best <- list(convergence = 1L, message = "interrupted")
  search_result(space, target, rough, best, at)
}

# All parameters are fixed. The log likelihood is computed later with everything else.
search_nothing <- function(problem, space, prior, objective) {
  value <- if (objective == "loo" || !is.null(prior)) {
    target <- gp_target(problem, space, prior, objective, search_reporter(FALSE))
    value <- target$screen(numeric())
    if (!is.finite(value)) stop(target$fault())
    target$total(value)
  }
  list(par = stats::setNames(space$value, space$name), converged = TRUE,
       message = "all parameters are fixed", gradient = numeric(), objective = value,
       evaluations = 0L, not_pd = 0L, at_bound = character())
}

# With many observations, a subset is enough to find the region of the optimum. It is chosen in an
# order that does not coincide with a period of the data. NULL if there are few observations, or if
# the subset does not identify the coefficients of the mean.
rough_target <- function(problem, space, prior, objective, report) {
  n <- length(problem$y)
  if (n <= 2 * rough_size) return(NULL)
  rows <- sort(order((seq_len(n) * 0.6180339887498949) %% 1)[seq_len(rough_size)])
  trend <- problem$mean
  if (!is.null(trend$basis)) {
    trend$basis <- trend$basis[rows, , drop = FALSE]
    if (qr(trend$basis)$rank < ncol(trend$basis)) return(NULL)
  }
  trend$centre <- trend$centre[rows]
  some <- problem
  some$mean <- trend
  some$y <- problem$y[rows]
  some$x <- problem$x[rows, , drop = FALSE]
  some$weights <- problem$weights[rows]
  some$variance <- problem$variance[rows]
  gp_target(some, space, prior, objective, report)
}

rough_size <- 1000L

search_all <- function(space, target, rough, starts, control) {
  bounds <- search_bounds(space)
  points <- search_screen(space, rough, starts)
  run <- function(on, from, control, scale = 1) {
    stats::nlminb(from, on$value, on$gradient, scale = scale, lower = bounds$lower,
                  upper = bounds$upper, control = control)
  }
  trials <- NULL
  from <- points[1L, ]
  if (nrow(points) > 1L) {
    trials <- lapply(seq_len(nrow(points)), function(i) {
      run(rough, points[i, ], list(iter.max = 10L))
    })
    values <- vapply(trials, `[[`, 0, "objective")
    if (!identical(rough, target)) {
      values <- vapply(trials, function(trial) target$screen(trial$par), 0)
      if (all(is.infinite(values))) stop(target$fault())
    }
    from <- trials[[which.min(values)]]$par
    trials <- values
  }
  best <- run(target, from, control, curvature_scale(rough, from, bounds))
  # a search that stopped at a matrix that could not be factored may continue from there
  for (again in 1:2) {
    if (best$convergence == 0L || best$message %in% limit_messages) break
    next_run <- run(target, best$par, control, curvature_scale(rough, best$par, bounds))
    if (next_run$objective > best$objective) break
    done <- next_run$objective > best$objective - 1e-10
    best <- next_run
    if (done) break
  }
  best$trials <- trials
  best
}

# Square roots of the second derivatives, from differences of gradients. In these units, all
# parameters have similar curvature; otherwise a period (well identified) together with a
# lengthscale (poorly identified) takes hundreds of steps.
curvature_scale <- function(target, at, bounds) {
  if (length(at) == 1L) return(1)
  here <- target$gradient(at)
  curvature <- vapply(seq_along(at), function(i) {
    h <- if (at[i] + 1e-4 > bounds$upper[i]) -1e-4 else 1e-4
    moved <- replace(at, i, at[i] + h)
    if (!is.finite(target$value(moved))) return(NA_real_)
    abs(target$gradient(moved)[i] - here[i]) / abs(h)
  }, 0)
  typical <- stats::median(curvature, na.rm = TRUE)
  if (!is.finite(typical) || typical <= 0) return(1)
  curvature[is.na(curvature)] <- typical
  sqrt(pmin(pmax(curvature, 1e-4 * typical), 1e6 * typical) / typical)
}

limit_messages <- c("function evaluation limit reached without convergence (9)",
                    "iteration limit reached without convergence (10)")

search_result <- function(space, target, rough, best, at) {
  bounds <- search_bounds(space)
  name <- space$name[space$free]
  at_bound <- pmin(at - bounds$lower, bounds$upper - at) < 1e-6
  gradient <- target$gradient(at)
  value <- target$value(at)
  # nlminb() also stops, with other messages, where the likelihood is flat to rounding
  flat <- best$message != "interrupted" && all(abs(gradient[!at_bound]) < 1e-6)
  counts <- target$counts()
  if (!identical(rough, target)) counts <- Map(`+`, counts, rough$counts())
  list(par = stats::setNames(search_parameters(space, at), space$name),
       converged = best$convergence == 0L || flat, message = best$message,
       gradient = stats::setNames(-gradient * target$n, name), objective = target$total(value),
       evaluations = counts[["all"]], not_pd = counts[["not_pd"]], at_bound = name[at_bound],
       trials = if (!is.null(best$trials)) target$total(best$trials))
}

# The best `starts` of many points, always including the user's. Points near a better one are used
# only if there are no others, because they would lead to the same maximum.
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

# The function that is minimised: minus the objective (including log priors) per observation, and
# its gradient. The last evaluation is stored, because the optimiser asks for both at the same
# point. The objective of (y - centre) / scale has `constant` more than that of y.
gp_target <- function(problem, space, prior, objective, report) {
  n <- length(problem$y)
  scale <- search_scale(problem)
  f <- gp_function(problem, objective, scale)
  integrated <- objective == "ml" && identical(problem$beta, "integrate")
  constant <- (n - if (integrated) length(problem$mean$names) else 0L) * log(scale) +
    if (integrated) mean_constant(problem$mean, problem$beta) else 0
  state <- list(all = 0L, not_pd = 0L, fault = NULL, best = NULL, best_value = Inf)
  last <- list(at = NULL)
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
  list(n = n, total = function(value) -value * n - constant,
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
      paste("the covariance matrix is not positive definite at any starting point: some points are",
            "equal or"),
      "almost equal; estimate 'noise', increase its lower bound, or remove points")
  }
  fault["call"] <- list(user_call())
  fault
}

# A function that shows how a long search goes: at most every second, from the third second on.
search_reporter <- function(progress) {
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

# Equal points have a singular covariance matrix unless there is noise.
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
  statcl_abort("not_pd", sprintf(paste("row %d of the inputs repeats an earlier row, which is not",
                                       "possible with 'noise' fixed at 0: estimate 'noise', supply",
                                       "the variances of the measurements in 'variance', or",
                                       "average the repeated rows"), row), order = row)
}
