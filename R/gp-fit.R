# The optimiser of the parameters of a Gaussian process.
#
# It works on (y - centre) / scale, so that its path does not depend on the unit of y, and on the
# logarithms of the parameters, for which a change of the units of x is a shift.

# The likelihood of a problem, with y (minus the least-squares fit of the mean) divided by `scale`.
gp_function <- function(problem, objective = "ml", scale = 1) {
  if (!is.null(problem$response)) return(make_gp_response(problem))
  if (!is.null(problem$vecchia)) return(vecchia_function(problem, scale))
  if (!is.null(problem$noise_kernel)) return(noise_function(problem, scale))
  if (isTRUE(problem$toeplitz)) return(toeplitz_function(problem, scale))
  if (objective == "ml" && replicate_count(problem) < length(problem$y)) {
    return(replicates_function(problem, scale))
  }
  mean <- if (problem$mean$kind == "number") 0 else mean_argument(problem$mean)
  cl_gp_likelihood((problem$y - problem$mean$centre) / scale, problem$x, problem$kernel, mean,
                   beta = problem$beta, weights = problem$weights,
                   variance = if (!is.null(problem$variance)) problem$variance / scale^2,
                   objective = objective)
}

# Gives par (named), converged, message, evaluations, not_pd, at_bound, trials (the result from each
# start), objective.
gp_search <- function(problem, space, prior, objective, starts, control, progress,
                      workers = NULL) {
  check_duplicates(problem, space)
  if (!any(space$free)) return(search_nothing(problem, space, prior, objective))
  report <- search_reporter(progress)
  levels <- search_levels(problem, space, prior, objective, report, starts)
  target <- levels$target
  best <- tryCatch({
    trials <- open_trials(levels$rough, space, prior, objective, if (starts > 1L) workers)
    on.exit(trials$close())
    search_all(space, levels, starts, control, trials)
  }, interrupt = function(e) NULL)
  reached <- list(best$par, target$best(), levels$middle$best(), levels$rough$best())
  at <- Find(Negate(is.null), reached)
  if (is.null(at)) {
    statcl_abort("interrupted", "interrupted before the first successful evaluation")
  }
  if (is.null(best)) best <- list(convergence = 1L, message = "interrupted")
  search_result(space, target, best, at, levels[c("middle", "rough")])
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

# The likelihoods of a search: that of all observations, `target`, and before it, with many inputs,
# those of subsets: `rough` finds the region of the optimum, `middle` most of the way to it. Without
# a subset, each is the next larger one. With points in equal steps, both are the likelihood of all
# observations by a Toeplitz matrix, if it can be computed at the points of the first starts.
search_levels <- function(problem, space, prior, objective, report, starts = 1L) {
  n <- if (objective == "ml") replicate_count(problem) else length(problem$y)
  target <- gp_target(problem, space, prior, objective, report)
  if (objective == "ml" && starts > 1L && !has_subset(n, rough_size) && is_toeplitz(problem)) {
    problem$toeplitz <- TRUE
    fast <- gp_target(problem, space, prior, objective, report)
    if (mostly_toeplitz(problem, space)) return(list(target = target, middle = fast, rough = fast))
  }
  subset <- function(size, otherwise) {
    if (!has_subset(n, size)) return(otherwise)
    some <- some_rows(problem, subset_rows(problem$x, size))
    if (is.null(some)) otherwise else gp_target(some, space, prior, objective, report)
  }
  middle <- subset(2L * rough_size, target)
  list(target = target, middle = middle, rough = subset(rough_size, middle))
}

# Half of the rows spread over the data, in an order that does not coincide with a period of them,
# half neighbours of one point, for short lengthscales.
subset_rows <- function(x, size) {
  half <- size %/% 2L
  spread <- order((seq_len(nrow(x)) * golden_ratio) %% 1)[seq_len(half)]
  z <- scale(x, x[spread[1L], ], pmax(apply(x, 2L, function(v) diff(range(v))), 1e-300))
  near <- setdiff(order(rowSums(z^2)), spread)
  sort(c(spread, utils::head(near, size - half)))
}

search_all <- function(space, levels, starts, control, trials) {
  target <- levels$target
  middle <- levels$middle
  bounds <- search_bounds(space)
  run <- function(on, from, control, scale = 1) {
    stats::nlminb(from, on$value, on$gradient, scale = scale, lower = bounds$lower,
                  upper = bounds$upper, control = control)
  }
  found <- search_trials(space, levels, starts, run, trials)
  from <- found$from
  curvature <- curvature_at(middle, from, bounds)
  scale <- curvature_scale(middle, from, bounds, curvature)
  if (starts > 1L && middle$n < target$n && !anyNA(curvature)) {
    # the curvature of many observations is about that of a subset
    from <- stats::nlminb(from, target$value, target$gradient,
                          learnt_curvature(target, curvature), lower = bounds$lower,
                          upper = bounds$upper,
                          control = utils::modifyList(list(iter.max = 20L), control))$par
  }
  best <- run(target, from, control, scale)
  # a search that stopped at a matrix that could not be factored may continue from there
  for (again in 1:2) {
    if (best$convergence == 0L || best$message %in% limit_messages) break
    next_run <- run(target, best$par, control, curvature_scale(middle, best$par, bounds))
    # the search has ended at the same point: the objective is flat up to rounding
    stalled <- best$message == "false convergence (8)" && best$objective - next_run$objective < 1e-7
    best$stalled <- next_run$stalled <- stalled
    if (next_run$objective > best$objective) break
    done <- next_run$objective > best$objective - 1e-10
    best <- next_run
    if (done) break
  }
  best$trials <- found$trials
  best
}

# Tries starting points independently, here or in workers, which have their own copies of the
# target. list(screen(points): values, run(points, count): results of nlminb(), close()).
open_trials <- function(target, space, prior, objective, workers) {
  sent <- list(problem = target$problem, space = space, prior = prior, objective = objective)
  mapper <- if (is.null(workers)) {
    list(map = function(tasks) lapply(tasks, try_points, target = target, bounds =
                                        search_bounds(space)), slots = 1L, close = function() NULL)
  } else {
    open_mapper(workers, 64L, begin_trials, sent, sent)
  }
  ask <- function(points, count) {
    m <- nrow(points)
    # tasks of several points if these are only screened
    of <- if (count > 0L || mapper$slots == 1L) seq_len(m) else
      ceiling(seq_len(m) * 2 * mapper$slots / m)
    answers <- mapper$map(lapply(split(seq_len(m), of), function(rows) {
      list(points = points[rows, , drop = FALSE], count = count)
    }))
    if (!is.null(workers)) for (answer in answers) target$add(answer$state)
    do.call(c, lapply(unname(answers), `[[`, "found"))
  }
  list(screen = function(points) as.double(unlist(ask(points, 0L))), run = ask,
       close = mapper$close)
}

begin_trials <- function(sent) {
  target <- gp_target(sent$problem, sent$space, sent$prior, sent$objective, search_reporter(FALSE))
  bounds <- search_bounds(sent$space)
  function(task) {
    answer <- try_points(task, target, bounds)
    answer$state <- target$take()
    answer
  }
}

try_points <- function(task, target, bounds) {
  list(found = lapply(seq_len(nrow(task$points)), function(i) {
    target$fresh()
    at <- task$points[i, ]
    if (task$count == 0L) return(target$screen(at))
    stats::nlminb(at, target$value, target$gradient, lower = bounds$lower, upper = bounds$upper,
                  control = list(iter.max = task$count))[c("par", "objective")]
  }))
}

# `count` steps from each point: list(points, values), the best first.
run_steps <- function(trials, points, count) {
  found <- trials$run(points, count)
  values <- vapply(found, `[[`, 0, "objective")
  order <- order_finite(values)
  list(points = do.call(rbind, lapply(found[order], `[[`, "par")), values = values[order])
}

best_of <- function(found, count, least) {
  found$points[apart_rows(found$points, seq_along(found$values), count, least), , drop = FALSE]
}

# Where to continue: by the schedule from many points to the best of them; then from points around
# the best until none is better. list(from, trials: the values after the middle steps).
search_trials <- function(space, levels, starts, run, trials) {
  target <- levels$target
  rough <- levels$rough
  few <- !is.null(target$problem$noise_kernel) # its likelihood is slow
  wide <- starts * if (few) 2L else 1L + sum(space$free)
  if (isTRUE(rough$problem$toeplitz)) return(toeplitz_trials(space, rough, starts, trials))
  effort <- search_effort$usual
  points <- search_screen(space, rough, if (starts > 1L) wide else 1L, trials, effort$screen_apart)
  if (starts == 1L) return(list(from = points[1L, ]))
  steps <- function(points, count) run_steps(trials, points, count)
  first <- steps(points, effort$start_steps)
  first <- steps(best_of(first, if (few) starts else 2L * starts, effort$start_apart),
                 effort$middle_steps)
  best <- steps(best_of(first, if (few) 2L else effort$last_points, effort$last_apart),
                effort$last_steps)
  inputs <- if (!few) search_inputs(space, starts, rough$n)
  if (!is.null(inputs)) {
    others <- steps(inputs, effort$inputs_steps)
    others <- steps(best_of(others, max(3L, nrow(inputs) %/% 3L), effort$start_apart),
                    effort$inputs_last_steps)
    if (others$values[1L] < best$values[1L]) best <- others
  }
  for (again in 1:3) {
    around <- search_around(space, best$points[1L, ], again)
    if (is.null(around)) break
    if (few) around <- around[seq(again, nrow(around), by = 4L), , drop = FALSE]
    near <- order_finite(trials$screen(around))
    apart <- apart_rows(around, near, effort$around_points, effort$screen_apart)
    others <- steps(around[apart, , drop = FALSE], effort$around_steps)
    if (others$values[1L] > best$values[1L] - 1e-3 / rough$n) break
    best <- steps(others$points[1L, , drop = FALSE], effort$last_steps)
  }
  from <- best$points[1L, ]
  values <- utils::head(first$values, starts)
  if (!identical(rough, target)) {
    tried <- utils::head(first$points, starts)
    # most end at the same optimum
    like <- vapply(seq_len(nrow(tried)), function(i) {
      which(colSums(abs(t(tried) - tried[i, ])) < 0.02)[1L]
    }, 0L)
    values <- numeric(nrow(tried))
    for (i in unique(like)) values[i] <- target$screen(tried[i, ])
    values <- values[like]
    known <- target$screen(from)
    if (is.infinite(min(values, known))) stop(target$fault())
    if (min(values) < known) from <- tried[which.min(values), ]
    from <- finer_start(space, levels, from, min(values, known), run)
  }
  list(from = from, trials = values)
}

# A subset shows less detail than more observations: a few steps from its optimum and from half its
# lengthscales with half its variance of noise, and, if these are not all observations either, to
# the optimum of the better of both, with the steps of the schedule. `known`: the value at `from`.
finer_start <- function(space, levels, from, known, run) {
  effort <- search_effort$usual
  roles <- space$role[space$free]
  bounds <- search_bounds(space)
  middle <- levels$middle
  shorter <- from - log(2) * (roles == "lengthscale") - log(2) / 2 * (roles == "noise")
  trials <- lapply(list(from, pmin(pmax(shorter, bounds$lower), bounds$upper)), function(at) {
    run(middle, at, list(iter.max = effort$middle_steps))
  })
  finer <- trials[[which.min(vapply(trials, `[[`, 0, "objective"))]]$par
  if (identical(middle, levels$target)) return(finer)
  finer <- run(middle, finer, list(iter.max = effort$last_steps))$par
  if (levels$target$screen(finer) < known) finer else from
}

# The first `count` of the rows `order` that are not near an earlier one; near ones if there are no
# others.
apart_rows <- function(points, order, count, least) {
  apart <- integer()
  distance <- rep(Inf, nrow(points)) # from the nearest of them
  for (i in order) {
    if (length(apart) >= count) break
    if (distance[i] <= least) next
    apart <- c(apart, i)
    far <- 0
    for (k in seq_len(ncol(points))) far <- pmax(far, abs(points[, k] - points[i, k]))
    distance <- pmin(distance, far)
  }
  utils::head(union(apart, order), count)
}

# Second derivatives, from differences of gradients; NA where they could not be computed.
curvature_at <- function(target, at, bounds) {
  here <- target$gradient(at)
  found <- vapply(seq_along(at), function(i) {
    h <- if (at[i] + 1e-4 > bounds$upper[i]) -1e-4 else 1e-4
    moved <- replace(at, i, at[i] + h)
    if (!is.finite(target$value(moved))) return(rep(NA_real_, length(at)))
    (target$gradient(moved) - here) / h
  }, at)
  (found + t(found)) / 2
}

# Square roots of the second derivatives. In these units, all parameters have similar curvature;
# otherwise a period (well identified) together with a lengthscale (poorly identified) takes
# hundreds of steps.
curvature_scale <- function(target, at, bounds, curvature = NULL) {
  if (length(at) == 1L) return(1)
  if (is.null(curvature)) curvature <- curvature_at(target, at, bounds)
  curvature <- abs(diag(curvature))
  typical <- stats::median(curvature, na.rm = TRUE)
  if (!is.finite(typical) || typical <= 0) return(1)
  curvature[is.na(curvature)] <- typical
  sqrt(pmin(pmax(curvature, 1e-4 * typical), 1e6 * typical) / typical)
}

limit_messages <- c("function evaluation limit reached without convergence (9)",
                    "iteration limit reached without convergence (10)")

# The best `count` of twice as many points, always including the user's. Points near a better one
# are used only if there are no others, because they would lead to the same maximum.
search_screen <- function(space, target, count, trials, least) {
  points <- search_design(space, max(8L, 2L * count))
  values <- trials$screen(points)
  if (all(is.infinite(values))) stop(target$fault())
  order <- order_finite(values)
  if (any(!is.na(space$start)) && is.finite(values[1L])) order <- c(1L, setdiff(order, 1L))
  points[apart_rows(points, order, count, least), , drop = FALSE]
}

order_finite <- function(values) {
  order <- order(values)
  order[is.finite(values[order])]
}

# The function that is minimised: minus the objective (including log priors) per observation, and
# its gradient. The last evaluation is stored, because the optimiser asks for both at the same
# point. The objective of (y - centre) / scale has `constant` more than that of y.
gp_target <- function(problem, space, prior, objective, report) {
  n <- length(problem$y)
  scale <- search_scale(problem)
  f <- gp_function(problem, objective, scale)
  vecchia <- inherits(f, "cl_gp_vecchia")
  integrated <- objective == "ml" && identical(problem$beta, "integrate") &&
    is.null(problem$response)
  constant <- (n - if (integrated) length(problem$mean$names) else 0L) * log(scale) +
    if (integrated) mean_constant(problem$mean, problem$beta) else 0
  state <- list(all = 0L, not_pd = 0L, fault = NULL, best = NULL, best_value = Inf)
  last <- list(at = NULL)
  evaluate <- function(at, gradient = TRUE) {
    if (identical(at, last$at)) return(last)
    par <- search_parameters(space, at)
    state$all <<- state$all + 1L
    value <- tryCatch(if (vecchia) f(par / space$unit, gradient, gradient) else
      f(par / space$unit, gradient), statcl_error_not_pd = function(e) e)
    if (inherits(value, "condition") || !is.finite(value)) {
      state$not_pd <<- state$not_pd + 1L
      if (inherits(value, "condition")) state$fault <<- value
      return(list(at = at, value = Inf, gradient = numeric(length(at)),
                  hessian = diag(length(at))))
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
    if (vecchia) {
      by <- search_slope(space, par / space$unit)
      found$hessian <- attr(value, "information")[space$free, space$free] * outer(by, by) / n
    }
    last <<- found
    found
  }
  # whether a fit with these parameters can be computed
  settles <- function(at) {
    par <- stats::setNames(search_parameters(space, at), space$name)
    tryCatch({
      gp_condition(gp_function(problem), par)
      TRUE
    }, statcl_error_not_pd = function(e) FALSE)
  }
  list(n = n, total = function(value) -value * n - constant, settles = settles,
       problem = problem,
       screen = function(at) evaluate(at, gradient = FALSE)$value,
       value = function(at) evaluate(at)$value,
       gradient = function(at) evaluate(at)$gradient,
       hessian = if (vecchia) function(at) as.matrix(evaluate(at)$hessian), # expected
       counts = function() state[c("all", "not_pd")],
       fresh = function() { # so that results do not depend on earlier evaluations
         last <<- list(at = NULL)
         if (!is.null(problem$response)) forget_mode(f)
       },
       take = function() {
         taken <- state
         state[c("all", "not_pd", "best_value")] <<- list(0L, 0L, Inf)
         taken
       },
       add = function(other) {
         state$all <<- state$all + other$all
         state$not_pd <<- state$not_pd + other$not_pd
         if (!is.null(other$fault)) state$fault <<- other$fault
         if (other$best_value < state$best_value) {
           state[c("best", "best_value")] <<- other[c("best", "best_value")]
         }
         report(state$all, -state$best_value * n)
       },
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

# A function that shows the progress of a long search.
search_reporter <- function(progress, due = progress_clock()) {
  if (!progress) return(function(count, value) NULL)
  started <- seconds_now()
  force(due)
  function(count, value) {
    if (due()) message(sprintf("cl_gp: %d evaluations, %.2g s each; best so far %.6g", count,
                               (seconds_now() - started) / count, value))
  }
}

# Equal points have a singular covariance matrix unless there is noise.
check_duplicates <- function(problem, space) {
  last <- nrow(space)
  if (!is.null(problem$response) || !identical(space$value[last], 0)) return(invisible())
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
