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
keeping_draws <- function(job, chains, code) {
  interrupted <- FALSE
  tryCatch(code, interrupt = function(e) interrupted <<- TRUE, statcl_error_density = function(e) {
    e["draws"] <- list(collect_draws(job, chains(), complete = FALSE))
    stop(e)
  })
  keep_checkpoint(job$checkpoint, now = TRUE)
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

# Advances a chain to its end, or to the time `until`. A point that cannot be computed has density
# zero. Only then are the handlers of the loop set up again, so that other points have no overhead.
run_chain <- function(s, evaluate, until = Inf) {
  if (!is.null(s$program)) return(run_compiled(list(s), evaluate, until))
  rejected <- function(e) TRUE
  start_clock(s)
  on.exit(stop_clock(s))
  repeat {
    failed <- tryCatch({
      step_chain(s, evaluate, until)
      FALSE
    }, statcl_error_not_pd = rejected, statcl_error_singular = rejected,
    statcl_error_nonfinite = rejected, error = function(e) rethrow_density(s, e))
    if (!failed) return(invisible())
    take_answer(s, -Inf, NULL)
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

# The one in progress.
iteration_of <- function(s) .Call(r_chain_state, s$native, FALSE)$iteration

# Turns an error in an evaluation into a statcl_error_density with chain and iteration.
rethrow_density <- function(s, e) {
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

# Named and constrained.
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

# After an error in an evaluation of several points: finds the point that fails. If each point works
# alone, the function does not support several points, unless the error counts as zero density.
one_by_one <- function(running, evaluate, error) {
  answers <- lapply(running, function(s) evaluate_once(s, function(u) evaluate(matrix(u))[[1L]]))
  alone <- vapply(answers, function(answer) is.null(answer[[2L]]), NA)
  if (!any(alone)) rethrow_density(running[[1L]], error)
  answers
}

# ---- worker processes ----------------------------------------------------------------------------

# The number of worker processes, or a cluster; NULL for none.
check_workers <- function(workers, chains) {
  if (inherits(workers, "cluster")) return(workers[seq_len(min(length(workers), chains))])
  n <- min(check_count(workers, "workers", lower = 1), chains)
  if (n == 1) NULL else n
}

# Whether processes can be forked, which is not possible after any use of OpenCL.
can_fork <- function() {
  .Platform$OS.type == "unix" && is.null(session$opened_by) &&
    (session$engine == "host" || is.null(session$devices))
}

# makeCluster() draws its port from R's generator, so scripts with equal seeds would use the same
# port at the same time. Ports are derived from process ids instead, and a port in use is retried.
make_workers <- function(n, type) {
  if (nzchar(Sys.getenv("R_PARALLEL_PORT"))) return(parallel::makeCluster(n, type = type))
  for (attempt in 1:20) {
    port <- 11000L + (Sys.getpid() * 7L + attempt * 131L) %% 1000L
    nodes <- tryCatch(suppressWarnings(parallel::makeCluster(n, type = type, port = port)),
                      error = function(e) e)
    if (!inherits(nodes, "error")) return(nodes)
    if (!grepl(port, conditionMessage(nodes), fixed = TRUE)) break
  }
  stop(nodes)
}

run_in_workers <- function(job, workers) {
  own <- is.numeric(workers)
  fork <- own && can_fork()
  nodes <- workers
  if (own) {
    if (fork) { # forked workers already have the job
      worker$job <- job
      on.exit(worker$job <- NULL)
    }
    nodes <- make_workers(workers, if (fork) "FORK" else "PSOCK")
    on.exit(parallel::stopCluster(nodes), add = TRUE)
  }
  if (!fork) send_job(nodes, job)
  ids <- split(seq_along(job$points), rep_len(seq_along(nodes), length(job$points)))
  parallel::clusterApply(nodes, ids, worker_begin)
  chains <- list()
  collect <- function() {
    if (length(chains) == 0L) chains <<- collect_chains(nodes)
    chains[order(vapply(chains, `[[`, 0L, "id"))]
  }
  report <- worker_progress(job)
  keeping_draws(job, collect, {
    repeat { # short time slices, so that the chains return soon after an interrupt
      states <- parallel::clusterCall(nodes, worker_spell, 0.3)
      for (state in states) if (!is.null(state$error)) stop(state$error)
      report(states)
      if (all(vapply(states, `[[`, NA, "done"))) break
    }
  })
}

# The chains of the workers, also within a time slice: a worker whose answer was not read at an
# interrupt sends that first and its chains in a second answer. A worker that was ended by an
# interrupt sends nothing.
collect_chains <- function(nodes) {
  chains <- lapply(seq_along(nodes), function(i) {
    tryCatch({
      answer <- parallel::clusterCall(nodes[i], worker_end)[[1L]]
      if (!is.null(answer$chains)) return(answer$chains)
      connection <- nodes[[i]]$con
      if (inherits(connection, "connection")) {
        unserialize(connection)$value$chains
      } else {
        parallel::clusterCall(nodes[i], function() NULL)[[1L]]$chains
      }
    }, error = function(e) NULL)
  })
  do.call(c, chains)
}

# The job, the objects of the global environment that it uses, and the settings of the session, for
# new R processes.
send_job <- function(nodes, job) {
  parallel::clusterCall(nodes, eval, bquote(.libPaths(.(.libPaths()))))
  globals <- global_objects(job$log_density)
  if (length(globals) > 0L) parallel::clusterCall(nodes, list2env, globals, globalenv())
  settings <- list(device = session$device, engine = session$engine,
                   thresholds = session$thresholds, options = options()["statcl.device"])
  parallel::clusterCall(nodes, worker_receive, job, settings)
}

# The objects of the global environment that a function uses, directly or through functions it
# calls, as a named list.
global_objects <- function(f) {
  found <- list()
  seen <- character()
  visit <- function(f) {
    home <- environment(f)
    body <- if (inherits(f, "formula")) f else body(f)
    if (is.null(home)) return()
    if (inherits(f, "cl_log_posterior")) for (term in home$terms) visit(term)
    while (!isNamespace(home) && !identical(home, globalenv()) && !identical(home, emptyenv())) {
      home <- parent.env(home)
    }
    if (!identical(home, globalenv())) return()
    for (name in setdiff(all.names(body, unique = TRUE), seen)) {
      here <- get0(name, environment(f), inherits = TRUE)
      if (is.function(here) && !is.primitive(here) && !isNamespace(topenv(environment(here)))) {
        seen <<- c(seen, name)
        visit(here)
      }
      object <- get0(name, globalenv(), inherits = FALSE)
      if (!is.null(object) && identical(object, here)) found[[name]] <<- object
    }
  }
  visit(f)
  found
}

worker <- new.env(parent = emptyenv()) # the state of a worker process between time slices

worker_receive <- function(job, settings) {
  session$device <- settings$device
  session$engine <- settings$engine
  session$thresholds <- settings$thresholds
  options(settings$options)
  worker$job <- job
  NULL
}

worker_begin <- function(ids) {
  ensure_generator()
  job <- worker$job
  worker$evaluate <- make_evaluator(job$log_density, job$layout, job$control$nan)
  worker$ids <- ids
  worker$chains <- list()
  NULL
}

# Continues this worker's chains, one after another, for some seconds. Returns the progress, and an
# error as a value, because its class would be lost otherwise.
worker_spell <- function(seconds) {
  suspendInterrupts(tryCatch({
    until <- seconds_now() + seconds
    repeat {
      last <- length(worker$chains)
      if (last == 0L || is.null(worker$chains[[last]]$at)) {
        if (last == length(worker$ids)) break
        last <- last + 1L
        worker$chains[[last]] <- start_chain(worker$job, worker$ids[last], worker$evaluate)
      }
      run_chain(worker$chains[[last]], worker$evaluate, until)
      if (seconds_now() > until) break
    }
    worker_state(NULL)
  }, error = worker_state))
}

worker_state <- function(error) {
  running <- Filter(function(s) !is.null(s$at), worker$chains)
  list(error = error, done = length(running) == 0L && length(worker$chains) == length(worker$ids),
       ids = vapply(worker$chains, `[[`, 0L, "id"),
       iterations = vapply(worker$chains, `[[`, 0L, "iteration_done"))
}

# The chains as lists; the worker's state is cleared.
worker_end <- function() {
  chains <- lapply(worker$chains, chain_result)
  rm(list = ls(worker), envir = worker)
  list(chains = chains)
}
