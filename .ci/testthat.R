# Runs the R tests against the installed package and prints "N passed, N failed, N skipped", where a
# warning counts as a failure. Arguments: name filters of test files. With STATCL_TEST_JOBS > 1 each
# file has its own process, that many at a time; then only failures and skips are printed.
#
# STATCL_TEST_TURN (`./dev check`) takes some of the files by the day of the year, so that three
# days take all: "device" a third of them, "host" all but two thirds of the longest ones.
filter <- commandArgs(TRUE)
jobs <- as.integer(Sys.getenv("STATCL_TEST_JOBS", "1"))
folder <- "tests/testthat"

# Where a package may keep files of a user. The tests must leave nothing there.
home <- tempfile("home")
for (kind in c("CACHE", "CONFIG", "DATA")) {
  do.call(Sys.setenv, stats::setNames(list(home), sprintf("R_USER_%s_DIR", kind)))
}

# The results of the files that the filters name, a row for each test.
run_here <- function(filter) {
  library(statcl)
  results <- testthat::test_dir(
    folder, package = "statcl", load_package = "installed", stop_on_failure = FALSE,
    filter = if (length(filter) > 0) paste(filter, collapse = "|"),
    reporter = testthat::SummaryReporter$new(show_praise = FALSE, omit_dots = TRUE))
  as.data.frame(results)[c("file", "test", "passed", "failed", "error", "warning", "skipped",
                           "real")]
}

unusual <- function(table) sum(table$failed) + sum(table$error) + sum(table$warning)

# The same for one file in another process, with its output; a process that dies is an error.
run_apart <- function(name) {
  to <- tempfile(fileext = ".rds")
  text <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c(".ci/testthat.R", shQuote(paste0("^", name, "$"))),
    stdout = TRUE, stderr = TRUE, env = c("STATCL_TEST_JOBS=1", paste0("STATCL_TEST_RESULT=", to))))
  table <- if (file.exists(to)) {
    readRDS(to)
  } else {
    data.frame(file = name, test = "the process ended", passed = 0, failed = 0, error = TRUE,
               warning = 0, skipped = FALSE, real = 0)
  }
  unlink(to)
  if (unusual(table) > 0 || any(table$skipped)) cat(text, sep = "\n")
  table
}

# Files that take the longest on the host, the longest first.
long <- c("gp-response", "gp-acquire", "glm-mixed-prior", "sample-compiled", "sample-posteriors",
          "gp-fit", "cv", "sample-reference", "sample", "glm-mixed-uncertainty", "glm-mixed-mcmc",
          "calibrate", "sample-metric", "glm-mcmc", "lazy", "memory", "batch")

# The names of the files of today's turn.
in_turn <- function(turn) {
  names <- sub("^test-(.*)[.]R$", "\\1", list.files(folder, "^test-.*[.]R$"))
  today <- function(names) {
    names[seq_along(names) %% 3L == as.integer(format(Sys.Date(), "%j")) %% 3L]
  }
  switch(turn, device = today(names), host = c(today(long), setdiff(names, long)), names)
}

run_all <- function(filter) {
  names <- in_turn(Sys.getenv("STATCL_TEST_TURN"))
  if (length(filter) > 0) names <- grep(paste(filter, collapse = "|"), names, value = TRUE)
  names <- c(intersect(long, names), setdiff(names, long))
  tables <- parallel::mclapply(names, run_apart, mc.cores = jobs, mc.preschedule = FALSE)
  do.call(rbind, tables)
}

if (jobs == 1L && nzchar(Sys.getenv("STATCL_TEST_TURN"))) {
  filter <- paste0("^", in_turn(Sys.getenv("STATCL_TEST_TURN")), "$")
}
table <- if (jobs > 1) run_all(filter) else run_here(filter)
result <- Sys.getenv("STATCL_TEST_RESULT")
if (nzchar(result)) saveRDS(table, result)
slow <- head(table[order(-table$real), ], 8)
cat("\nslowest tests\n", sprintf("%5.1f s  %s: %s\n", slow$real, slow$file, slow$test), sep = "")
left <- list.files(home, all.files = TRUE, recursive = TRUE)
if (length(left)) cat("files that tests have left behind:", left, sep = "\n")
failed <- unusual(table) + length(left)
cat(sprintf("%d passed, %d failed, %d skipped\n", sum(table$passed), failed, sum(table$skipped)))
quit(status = failed > 0)
