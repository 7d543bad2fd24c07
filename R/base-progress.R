# When lines of progress are due.

seconds_now <- function() proc.time()[[3L]]

# Seconds between two lines where somebody may look, and in scripts.
progress_pace <- function() {
  if (interactive()) 1 else if (isTRUE(getOption("statcl.quiet"))) Inf else 10
}

# A function that returns whether a line is due, for work that may take longer than `first` seconds.
# Where calls are fast, only every 16th looks at the clock: a look at each of the evaluations of
# cl_gp() took 5% of the time of a small fit (bench/everyday.R).
progress_clock <- function(first = 3) {
  started <- last <- seconds_now()
  calls <- look <- 0
  function() {
    calls <<- calls + 1
    if (calls < look) return(FALSE)
    now <- seconds_now()
    look <<- calls + if (now - started < 0.01 * calls) 16 else 1
    if (now - started < first || now - last < progress_pace()) return(FALSE)
    last <<- now
    TRUE
  }
}
