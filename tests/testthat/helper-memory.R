# Live bytes, and separate R processes.

# Bytes held on the host engine and on the device of the tests, after dropping what is unreachable.
live_bytes <- function() {
  gc()
  places <- c(-1L, if (has_test_device()) test_device())
  for (where in places) .Call(r_sync, where)
  sum(vapply(places, function(where) .Call(r_memory, where)[1L], 0))
}

# Whether the code leaves as many live bytes as it found; its value is dropped. `label` names it.
expect_no_leak <- function(code, label = "the code") {
  code <- substitute(code)
  home <- new.env(parent = parent.frame())
  before <- live_bytes()
  eval(code, home)
  rm(list = ls(home, all.names = TRUE), envir = home)
  after <- live_bytes()
  testthat::expect(after == before,
                   sprintf("%s: %.0f bytes before, %.0f after", label, before, after))
}

# Runs R code (text, one string a line) in a new R process that sees the same packages, with further
# environment variables ("NAME=value"); `mount` is a shell command that it alone sees the effect of.
# Gives list(status, output); status 124 after `timeout` seconds, which only ends what hangs.
run_r <- function(code, env = character(), timeout = 900, mount = NULL) {
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(code, script)
  libraries <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  command <- file.path(R.home("bin"), "Rscript")
  arguments <- c("--vanilla", shQuote(script))
  if (!is.null(mount)) {
    arguments <- c("-m", "sh", "-c", shQuote(paste(c(mount, "&& exec", shQuote(command), arguments),
                                                   collapse = " ")))
    command <- "unshare"
  }
  output <- suppressWarnings(system2(command, arguments, stdout = TRUE, stderr = TRUE,
                                     env = c(libraries, env), timeout = timeout))
  status <- attr(output, "status")
  list(status = if (is.null(status)) 0L else status, output = as.character(output))
}

# Code that must run to its end there.
in_new_session <- function(code, ...) {
  result <- run_r(c("library(statcl)", code, "cat('done')"), ...)
  expect_equal(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_match(paste(result$output, collapse = " "), "done")
}
