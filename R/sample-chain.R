# One Markov chain of cl_sample(). It runs in the core (src/sample). In R it is an environment `s`
# with `s$at`, the next point to evaluate (NULL at the end), and the numbers that look_at() copies.
# So one driver can evaluate several chains together, stop between any two evaluations and continue
# later.

new_chain <- function(job, id) {
  s <- new.env(parent = emptyenv())
  s$id <- id
  s$layout <- job$layout
  s$log_density <- job$log_density
  s$batch <- job$batch
  s$control <- o <- job$control
  at <- as.double(job$points[[id]])
  options <- c(o$warmup, o$iter, o$method == "hmc", o$leapfrogs, o$max_depth, o$metric != "unit",
               o$metric == "dense", min(o$rank, length(at)), o$metric %in% c("auto", "sparse"),
               o$pooled, o$adapt_delta,
               if (is.null(o$step_size)) 0 else o$step_size, o$save_warmup, o$nan == "reject",
               if (o$metric == "dense" || has_rank(o$metric)) o$inverse_metric else
                 rep_len(o$inverse_metric, length(at)))
  s$native <- .Call(r_chain_make, at, as.double(options), job$states[[id]], metric_factor(job))
  s$started <- NULL
  s$report_at <- 1
  look_at(s)
  s
}

# A chain at a start where the density is finite. Without a program of the density (job_program()),
# the chain is driven by take_answer().
start_chain <- function(job, id, evaluate, may_compile = TRUE) {
  s <- new_chain(job, id)
  if (restore_chain(s, job, evaluate, may_compile)) return(s)
  tries <- if (job$jitter > 0) 100L else 1L
  for (i in seq_len(tries)) {
    s$at <- .Call(r_chain_place, s$native, as.double(job$points[[id]]), job$jitter)
    answer <- evaluate_once(s, evaluate)
    if (is.null(answer[[2L]])) next
    if (id == 1L && job$control$check_gradient) check_start_gradient(s, evaluate, answer)
    s$start <- s$at
    join_checkpoint(s, job$checkpoint, s$at, evaluate)
    if (may_compile) s$program <- job_program(job, s$at, answer, id)
    if (is.null(s$program)) take_answer(s, answer[[1L]], answer[[2L]])
    return(s)
  }
  abort_no_start(s, tries)
}

abort_no_start <- function(s, tries) {
  abort_density(s, sprintf("the log density is not finite at %s: %s",
                           if (tries > 1L) "any of 100 points around 'init'" else "'init'",
                           failure_text(s, s$at)))
}

# The result of an evaluation, also where the density cannot be computed.
evaluate_once <- function(s, evaluate) {
  base::tryCatch(evaluate(s$at), error = function(e) {
    if (is_failure(e)) list(NaN, NULL) else rethrow_density(s, e)
  })
}

# Whether an error says that the density cannot be evaluated at a point. Those of this package have
# a class, or name the parameter of a likelihood; those of base R's chol() and solve() have a call.
is_failure <- function(e) {
  if (inherits(e, "statcl_error")) {
    failures <- c("statcl_error_not_pd", "statcl_error_singular", "statcl_error_nonfinite")
    return(inherits(e, failures) || inherits(e, "statcl_error_argument") &&
             isTRUE(e$argument %in% c("sigma", "phi", "cuts")))
  }
  call <- conditionCall(e)
  is.call(call) &&
    (identical(call[[1L]], quote(chol.default)) && grepl("[0-9]", conditionMessage(e)) ||
       identical(call[[1L]], quote(solve.default)) && grepl("singular", conditionMessage(e)))
}

# Gives the chain the result at s$at, and sets the next point.
take_answer <- function(s, value, gradient) {
  goal <- if (is.null(s$progress)) .Machine$integer.max else s$report_at
  at <- .Call(r_chain_step, s$native, value, gradient, goal)
  if (is.integer(at)) {
    ended <- judge_stop(s, at)
    if (!is.null(s$progress) && s$iteration_done >= goal) report(s)
    at <- if (!ended) s$at
  }
  s$at <- at
}

# Why the core has stopped (scl_chain_stop of sample/chain.h); TRUE at the end.
judge_stop <- function(s, stop) {
  look_at(s)
  if (stop == 3L) {
    abort_density(s, paste("the log density is so flat that no step size is too large; the",
                           "distribution may be improper"))
  }
  if (stop == 6L) {
    after <- s$iteration_done > s$control$warmup
    abort_failing(s, sprintf(paste("%d of %d iterations %s the warm-up ended at points that cannot",
                                   "be evaluated"), s$failures[3L],
                             s$iteration_done - if (after) s$control$warmup else 0L,
                             if (after) "after" else "of"))
  }
  if (stop == 4L && sum(s$failures[1:2]) > 0.5 * s$evaluations) {
    abort_failing(s, "no step size avoids points that cannot be evaluated")
  }
  if (stop == 4L) {
    abort_density(s, paste("the log density does not change as its gradient predicts, however",
                           "small the step size: see cl_check_gradient()"))
  }
  stop == 1L
}

# Stops with the reason why the last of the failing points could not be evaluated.
abort_failing <- function(s, what) {
  s$at <- as.vector(s$lost)
  abort_density(s, paste0(what, ", the last one: ", failure_text(s, s$at)))
}

# When all chains wait at the end of a window, they continue with a metric estimated from all
# positions.
pool_chains <- function(chains) {
  .Call(r_chains_pool, lapply(chains, `[[`, "native"))
  for (s in chains) look_at(s)
}

waiting <- function(s) s$waits && !is.null(s$at)

# Copies the numbers that R code reads.
look_at <- function(s) list2env(.Call(r_chain_state, s$native, FALSE), envir = s)

# The progress line counts completed iterations.
report <- function(s) {
  now <- s$iteration
  s$iteration <- s$iteration_done
  s$progress(s)
  s$iteration <- now
}

record_names <- c("accept_stat", "step_size", "tree_depth", "leapfrogs", "divergent", "energy",
                  "log_density")

# A chain's results as a list of plain values.
chain_result <- function(s) {
  state <- .Call(r_chain_state, s$native, TRUE)
  state$figures <- t(state$figures)
  colnames(state$figures) <- record_names
  c(list(id = s$id), state)
}

# ---- time ---------------------------------------------------------------------------------------

start_clock <- function(s) {
  s$started <- seconds_now()
  .Call(r_chain_clock, s$native, TRUE)
}

stop_clock <- function(s) {
  at <- s$at
  .Call(r_chain_clock, s$native, FALSE)
  look_at(s)
  s$at <- at
}

# ---- random numbers -----------------------------------------------------------------------------

# States for `n` streams of random numbers, one for each chain, which leave the session's generator
# as it is. So chains run one after another, in lockstep or in workers give the same draws. Without
# a seed they follow from the session's generator, which advances by one number; with a seed the
# generator is not changed.
stream_states <- function(n, seed) {
  if (is.null(seed)) seed <- sample.int(.Machine$integer.max, 1L)
  ensure_generator()
  old <- get(".Random.seed", envir = globalenv(), inherits = FALSE)
  on.exit(assign(".Random.seed", old, envir = globalenv()))
  set.seed(seed, kind = "L'Ecuyer-CMRG", normal.kind = "Inversion", sample.kind = "Rejection")
  state <- get(".Random.seed", envir = globalenv(), inherits = FALSE)
  states <- vector("list", n)
  for (i in seq_len(n)) {
    states[[i]] <- state
    state <- parallel::nextRNGStream(state)
  }
  states
}

# R creates the state of its generator at the first use.
ensure_generator <- function() {
  if (!exists(".Random.seed", envir = globalenv(), inherits = FALSE)) set.seed(NULL)
}
