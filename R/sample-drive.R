# Runs the chains of cl_sample() one after another, in lockstep, or in worker processes.

# ---- one after another ---------------------------------------------------------------------------

run_in_turn <- function(job) {
  evaluate <- make_evaluator(job$log_density, job$layout, job$control$nan)
  chains <- list()
  keeping_draws(job, function() lapply(chains, chain_result), {
    for (id in seq_along(job$points)) {
      s <- start_chain(job, id, evaluate)
      s$progress <- progress_line(job, waiting = length(job$points) - id)
      chains[[id]] <- s
      if (is.null(s$program)) run_chain(s, evaluate)
    }
    while (is.null(s$program) && waiting(s)) {
      pool_chains(chains)
      for (s in chains) run_chain(s, evaluate)
    }
    if (!is.null(s$program)) run_compiled(chains, evaluate)
  })
}

# Runs the code and returns its result, or the draws so far after an interrupt or an error of the
# density.
keeping_draws <- function(job, chains, code, kept = job$checkpoint) {
  interrupted <- FALSE
  tryCatch(code, interrupt = function(e) interrupted <<- TRUE, statcl_error_density = function(e) {
    keep_checkpoint(kept, now = TRUE)
    e["draws"] <- list(collect_draws(job, chains(), complete = FALSE))
    stop(e)
  })
  keep_checkpoint(kept, now = TRUE)
  result <- collect_draws(job, chains(), complete = !interrupted)
  if (interrupted) {
    if (is.null(result)) statcl_abort("interrupted", "interrupted before the first draw")
    statcl_warning("interrupted", sprintf("interrupted: the result has %d of %d iterations of %s",
                                       dim(result$draws)[1L], job$control$iter,
                                       count_of(dim(result$draws)[2L], "chain")))
  }
  warn_problems(result)
  result
}

# Advances a chain to its end, or to the time `until`. A point that cannot be evaluated has density
# zero. Only then are the handlers of the loop set up again, so that other points have no overhead.
run_chain <- function(s, evaluate, until = Inf) {
  if (!is.null(s$program)) return(run_compiled(list(s), evaluate, until))
  start_clock(s)
  on.exit(stop_clock(s))
  repeat {
    failed <- base::tryCatch({
      step_chain(s, evaluate, until)
      FALSE
    }, error = function(e) if (is_failure(e)) TRUE else rethrow_density(s, e))
    if (!failed) return(invisible())
    take_answer(s, NaN, NULL)
    if (s$waits) return(invisible())
  }
}

step_chain <- function(s, evaluate, until) {
  timed <- is.finite(until)
  while (!is.null(s$at)) {
    answer <- evaluate(s$at)
    take_answer(s, answer[[1L]], answer[[2L]])
    if (!is.null(s$checkpoint)) keep_checkpoint(s$checkpoint)
    if (s$waits || timed && seconds_now() > until) return()
  }
}

# ---- faults of the density -----------------------------------------------------------------------

# An error found by the chain itself.
abort_density <- function(s, message, ...) {
  statcl_abort("density", message, argument = "log_density", parameters = point_of(s, s$at),
               chain = s$id, iteration = iteration_of(s), ...)
}

# The number of the iteration in progress.
iteration_of <- function(s) .Call(r_chain_state, s$native, FALSE)$iteration

# Turns an error in an evaluation into a statcl_error_density with chain and iteration.
rethrow_density <- function(s, e) {
  if (is_time_limit(e)) stop(e)
  if (inherits(e, "statcl_error_density")) {
    if (!is.null(e$chain)) stop(e)
    message <- conditionMessage(e)
    parent <- NULL
  } else {
    message <- paste("'log_density' failed:", conditionMessage(e))
    parent <- e
  }
  iteration <- iteration_of(s)
  statcl_abort("density", sprintf("%s (chain %d, iteration %d)", message, s$id, iteration),
               argument = "log_density", parameters = point_of(s, s$at), chain = s$id,
               iteration = iteration, parent = parent)
}

# The constrained parameters with their names.
point_of <- function(s, u) {
  x <- constrain(s$layout, u)
  if (is.null(x)) x <- rep(NA_real_, s$layout$n)
  structure(as.vector(x), names = s$layout$names)
}

# ---- lockstep ------------------------------------------------------------------------------------

run_batch <- function(job) {
  evaluate <- make_batch_evaluator(job$log_density, job$layout, job$control$nan)
  single <- function(u) evaluate(matrix(u))[[1L]]
  job$batch <- compile <- TRUE
  chains <- list()
  keeping_draws(job, function() lapply(chains, chain_result), {
    for (id in seq_along(job$points)) {
      s <- start_chain(job, id, single, compile)
      compile <- !is.null(s$program)
      s$progress <- progress_line(job, waiting = 0)
      chains[[id]] <- s
    }
    if (compile) {
      run_compiled(chains, single, lockstep = TRUE)
    } else {
      for (s in chains) start_clock(s)
      lockstep(chains, evaluate)
    }
  })
}

lockstep <- function(chains, evaluate) {
  alive <- function(chains) Filter(function(s) !is.null(s$at), chains)
  running <- alive(chains)
  while (length(running) > 0L) {
    points <- vapply(running, function(s) s$at, running[[1L]]$at)
    dim(points) <- c(length(running[[1L]]$at), length(running))
    ended <- FALSE
    answers <- tryCatch(evaluate(points), error = function(e) one_by_one(running, evaluate, e))
    for (i in seq_along(running)) {
      s <- running[[i]]
      take_answer(s, answers[[i]][[1L]], answers[[i]][[2L]])
      if (is.null(s$at)) stop_clock(s)
      ended <- ended || is.null(s$at) || s$waits
    }
    keep_checkpoint(running[[1L]]$checkpoint)
    if (ended) running <- Filter(function(s) !s$waits, alive(running))
    if (length(running) == 0L && length(running <- alive(chains)) > 0L) pool_chains(running)
  }
}

# After an error in an evaluation of several points: finds the point that fails. If each point can
# be evaluated alone, the function does not support several points, unless the error counts as zero
# density.
one_by_one <- function(running, evaluate, error) {
  answers <- lapply(running, function(s) evaluate_once(s, function(u) evaluate(matrix(u))[[1L]]))
  alone <- vapply(answers, function(answer) is.null(answer[[2L]]), NA)
  if (!any(alone)) rethrow_density(running[[1L]], error)
  answers
}

# ---- worker processes ----------------------------------------------------------------------------

run_in_workers <- function(job, workers) {
  kept <- job$checkpoint
  job$checkpoint <- NULL
  total <- job$control$warmup + job$control$iter
  states <- vector("list", length(job$points))
  if (!is.null(kept$saved)) states <- saved_states(job, kept)
  iterations <- vapply(states, function(k) if (is.null(k)) 0L else k$iteration, 0L)
  seconds <- sent <- rep(NA_real_, length(states))
  report <- worker_progress(job)
  task <- function(id) {
    late <- if (is.na(sent[id])) 0 else seconds_now() - sent[id] - seconds[id]
    seconds[id] <<- if (is.na(seconds[id])) 0.3 else min(max(0.3, 5 * late), 30)
    sent[id] <<- seconds_now()
    list(id = id, state = states[[id]], seconds = seconds[id], probe = !is.null(kept))
  }
  take <- function(id, state) {
    states[[id]] <<- state
    iterations[id] <<- state$iteration
    if (!is.null(kept)) {
      kept$chains[[id]] <- state
      keep_checkpoint(kept)
    }
    report(lapply(seq_along(states), function(k) list(ids = k, iterations = iterations[k])))
    state$iteration >= total
  }
  chains <- function() {
    made <- which(lengths(states) > 0L)
    lapply(made, function(id) chain_result(restored_chain(job, id, states[[id]])))
  }
  keeping_draws(job, chains, {
    run_shares(length(states), workers,
               list(begin = begin_chains, work = job, uses = job$log_density), task, take,
               iterations >= total)
  }, kept)
}

# The images of the chains in a file, if it belongs to this model.
saved_states <- function(job, kept) {
  evaluate <- make_evaluator(job$log_density, job$layout, job$control$nan)
  lapply(seq_along(job$points), function(id) {
    state <- kept$saved$chains[[id]]
    if (is.null(state)) return(NULL)
    s <- restored_chain(job, id, state)
    if (!alike(probe(s, evaluate, state$start), state$answer)) {
      kept$saved$refuse("is of another model or of other data")
    }
    kept$chains[[id]] <- c(state[c("start", "answer", "image")], iteration = s$iteration_done)
  })
}

restored_chain <- function(job, id, state) {
  s <- new_chain(job, id)
  .Call(r_chain_restore, s$native, state$image)
  look_at(s)
  s
}

# In a worker: function(task), which runs a chain for some seconds, from its state if it has one.
begin_chains <- function(job) {
  ensure_generator()
  evaluate <- make_evaluator(job$log_density, job$layout, job$control$nan)
  function(task) {
    state <- task$state
    if (is.null(state)) {
      s <- start_chain(job, task$id, evaluate)
      state <- list(start = s$start, answer = if (task$probe) probe(s, evaluate, s$start))
    } else {
      s <- restored_chain(job, task$id, state)
      at <- s$at
      s$at <- state$start
      s$program <- job_program(job, s$at, evaluate_once(s, evaluate), task$id)
      s$at <- at
    }
    error <- base::tryCatch({
      run_chain(s, evaluate, seconds_now() + task$seconds)
      NULL
    }, error = identity)
    list(value = list(start = state$start, answer = state$answer,
                      image = .Call(r_chain_save, s$native), iteration = s$iteration_done),
         error = error)
  }
}
