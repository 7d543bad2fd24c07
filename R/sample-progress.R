# The progress of cl_sample() and the remaining time.

# function(s), called when a chain has reached the iteration s$report_at; it sets the next one.
# `waiting` chains have not begun. NULL for no output.
progress_line <- function(job, waiting) {
  control <- job$control
  if (control$refresh == 0 && !control$announce) return(NULL)
  total <- control$warmup + control$iter
  # Iteration and time of the last doubling of the count: later iterations predict the remaining
  # ones better than the first.
  recent <- before <- c(0, seconds_now())
  shown <- 0
  function(s) {
    i <- s$iteration
    now <- seconds_now()
    if (i >= 2 * recent[1L]) {
      before <<- recent
      recent <<- c(i, now)
    }
    pace <- (now - before[2L]) / (i - before[1L])
    left <- pace * (total - i + waiting * total)
    s$report_at <- if (control$announce) i + max(1, min(i, report_seconds / pace)) else
      next_multiple(i, control)
    if (i >= 0.1 * total || now - job$started > 30) announce(job, left)
    if (control$refresh > 0 && (i %/% control$refresh > shown || i == total) && is_due(job)) {
      shown <<- i %/% control$refresh
      show_progress(s$id, i, control, s$elapsed + now - s$started, left)
    }
  }
}

# Between two looks at a chain if the user has not set `refresh`: a look takes longer than a short
# iteration.
report_seconds <- 0.25

# The iterations at which chains that have done `i` stop for a line that the user asked for. Without
# such lines they never wait for each other.
next_multiple <- function(i, control) {
  total <- control$warmup + control$iter
  if (control$announce || control$refresh == 0) return(rep(total, length(i)))
  pmin(total, (i %/% control$refresh + 1) * control$refresh)
}

# The same for the states of workers.
worker_progress <- function(job) {
  control <- job$control
  chains <- length(job$points)
  shown <- numeric(chains)
  start <- seconds_now()
  first <- NULL
  function(states) {
    if (control$refresh == 0 && !control$announce) return()
    elapsed <- seconds_now() - start
    done <- sum(unlist(lapply(states, `[[`, "iterations")))
    if (is.null(first) && done > 0L) first <<- c(elapsed, done) # without the start of the workers
    if (is.null(first)) return()
    left <- (elapsed - first[1L]) / (done - first[2L]) *
      (chains * (control$warmup + control$iter) - done)
    total <- chains * (control$warmup + control$iter)
    if (isTRUE(done - first[2L] >= 0.1 * total) || elapsed > 30) announce(job, left)
    if (control$refresh == 0 || !is_due(job)) return()
    for (state in states) for (k in seq_along(state$ids)) {
      id <- state$ids[k]
      if (state$iterations[k] %/% control$refresh > shown[id]) {
        shown[id] <<- state$iterations[k] %/% control$refresh
        show_progress(id, state$iterations[k], control, elapsed, left)
      }
    }
  }
}

# Whether lines are due. Lines that the user asked for always are.
is_due <- function(job) {
  now <- seconds_now()
  last <- if (is.null(job$announced$line)) job$started else job$announced$line
  if (job$control$announce && now - last < progress_pace()) return(FALSE)
  job$announced$line <- now
  TRUE
}

# Announces a long run once: after the first windows of the warm-up, in which steps are short, or
# after half a minute.
announce <- function(job, left) {
  if (!job$control$announce || !is.null(job$announced$yes)) return(invisible())
  if (seconds_now() - job$started < 2 || !is.finite(left) || left < 10) return(invisible())
  job$announced$yes <- TRUE
  message(sprintf(paste("cl_sample(): about %s left for %s of %d + %d iterations (refresh = 0",
                        "turns this message off)"), time_text(left),
                  count_of(length(job$points), "chain"), job$control$warmup, job$control$iter))
}

show_progress <- function(id, i, control, seconds, left) {
  total <- control$warmup + control$iter
  rest <- if (is.finite(left) && left > 0) sprintf(", about %s left", time_text(left)) else ""
  cat(sprintf("chain %d: %*d of %d (%s), %.1f s%s\n", id, nchar(total), i, total,
              if (i <= control$warmup) "warm-up" else "sampling", seconds, rest), file = stderr())
}

# Seconds as text, in a suitable unit.
time_text <- function(seconds) {
  if (seconds < 1) return("1 s")
  if (seconds < 100) return(sprintf("%.0f s", seconds))
  if (seconds < 6000) return(sprintf("%.0f min", seconds / 60))
  sprintf("%.1f h", seconds / 3600)
}
