# When lines of progress are due.

seconds_now <- function() proc.time()[[3L]]

# Seconds between two lines where somebody may look, and in scripts.
progress_pace <- function() {
  if (interactive()) 1 else if (isTRUE(getOption("statcl.quiet"))) Inf else 10
}

# A function that returns whether a line is due, for work that may take longer than `first` seconds.
progress_clock <- function(first = 3) {
  started <- last <- seconds_now()
  function() {
    now <- seconds_now()
    if (now - started < first || now - last < progress_pace()) return(FALSE)
    last <<- now
    TRUE
  }
}
