# The checkpoint file of cl_sample(): images of the chains, and the fingerprint of the call to which
# they belong.

# An environment with the file, what was read from it, and the chains by number; NULL without a
# file.
open_checkpoint <- function(file, seconds, job, seed) {
  if (is.null(file)) return(NULL)
  if (!is.character(file) || length(file) != 1L || is.na(file) || !nzchar(file)) {
    abort_argument("checkpoint", "'checkpoint' must be the name of a file")
  }
  seconds <- check_number(seconds, "checkpoint_seconds", lower = 0)
  if (!dir.exists(dirname(file))) {
    abort_argument("checkpoint", sprintf("there is no folder '%s'", dirname(file)))
  }
  kept <- new.env(parent = emptyenv())
  kept$file <- file
  kept$seconds <- seconds
  kept$last <- seconds_now()
  kept$chains <- vector("list", length(job$points))
  control <- job$control[setdiff(names(job$control), c("refresh", "announce", "check_gradient"))]
  kept$header <- list(version = own_version(), platform = R.version$platform,
                      parameters = job$layout$names, bounds = job$layout$bounds,
                      chains = length(job$points), control = control, jitter = job$jitter,
                      seed = seed)
  if (file.exists(file)) kept$saved <- read_checkpoint(file, kept$header)
  for (part in c("points", "states")) {
    kept[[part]] <- if (is.null(kept$saved)) job[[part]] else kept$saved[[part]]
  }
  kept
}

read_checkpoint <- function(file, header) {
  refuse <- function(...) {
    statcl_abort("checkpoint", sprintf(paste("the checkpoint '%s' %s; name another file,",
                                             "or delete it to start again"), file, sprintf(...)),
                 argument = "checkpoint")
  }
  saved <- read_checked(file)
  if (!is.list(saved) || !is.list(saved$header) || !is.list(saved$chains)) {
    refuse("is damaged, or is no checkpoint")
  }
  differs <- names(header)[!mapply(identical, saved$header[names(header)], header)]
  if (length(differs) > 0L) {
    refuse(switch(differs[1L], version = , platform = "is of another version of the package",
                  parameters = , bounds = "has other parameters",
                  chains = "has another number of chains", "is of a run with other settings"))
  }
  saved$refuse <- refuse
  saved
}

# Adds the chain to the file, with the start at which its density is compiled.
join_checkpoint <- function(s, kept, start, evaluate) {
  if (is.null(kept)) return(invisible())
  s$start <- start
  s$answer <- probe(s, evaluate, start)
  s$checkpoint <- kept
  kept$chains[[s$id]] <- s
}

# The fingerprint of a model with its data: the density near a point. At the point itself, which may
# be a mode, different models may have the same value.
probe <- function(s, evaluate, start) {
  at <- s$at
  on.exit(s$at <- at)
  s$at <- start + 0.1 * cos(seq_along(start))
  unlist(evaluate_once(s, evaluate))
}

# Restores a chain from its image; FALSE if there is none.
restore_chain <- function(s, job, evaluate, may_compile) {
  saved <- job$checkpoint$saved$chains[[s$id]]
  if (is.null(saved)) return(FALSE)
  s$at <- saved$start
  answer <- evaluate_once(s, evaluate)
  if (!alike(probe(s, evaluate, s$at), saved$answer)) {
    job$checkpoint$saved$refuse("is of another model or of other data")
  }
  if (may_compile) s$program <- job_program(job, s$at, answer, s$id)
  .Call(r_chain_restore, s$native, saved$image)
  look_at(s)
  join_checkpoint(s, job$checkpoint, saved$start, evaluate)
  if (s$iteration_done >= s$control$warmup + s$control$iter) s$at <- NULL
  TRUE
}

# Writes the file if the interval has passed: to another file, which then takes its name.
keep_checkpoint <- function(kept, now = FALSE) {
  if (is.null(kept) || !now && seconds_now() - kept$last < kept$seconds) return(invisible())
  chains <- lapply(seq_along(kept$chains), function(id) {
    s <- kept$chains[[id]]
    if (is.null(s)) return(kept$saved$chains[[id]])
    if (!is.environment(s)) return(s) # of a worker
    list(start = s$start, answer = s$answer, image = .Call(r_chain_save, s$native))
  })
  data <- list(header = kept$header, points = kept$points, states = kept$states, chains = chains)
  tryCatch(suppressWarnings(write_checked(data, kept$file)), error = function(e) {
    statcl_warning("checkpoint", sprintf("the checkpoint '%s' was not written: %s", kept$file,
                                         conditionMessage(e)))
  })
  kept$last <- seconds_now()
  invisible()
}
