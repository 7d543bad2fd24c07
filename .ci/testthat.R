# Runs the R tests against the installed package and prints "N passed, N failed, N skipped", where a
# warning counts as a failure. Arguments: name filters of test files. With STATCL_TEST_JOBS > 1 each
# file has its own process, that many at a time; then only failures and skips are printed.
#
# STATCL_TEST_TURN (`./dev check`), the number of a day, takes some of the files: on the host a
# third of the longest ones and all others; with STATCL_TEST_ENGINE=device a seventh of those that
# name a device, as the others would run on the host once more.
filter <- commandArgs(TRUE)
jobs <- as.integer(Sys.getenv("STATCL_TEST_JOBS", "1"))
folder <- "tests/testthat"
# These call gc() often, which takes longer in a process that has run others: they have their own.
collecting <- c("altrep-result", "handles", "lazy-lives", "memory")

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
  table <- as.data.frame(results)
  table$seconds <- table$user + table$system
  table[c("file", "test", "passed", "failed", "error", "warning", "skipped", "seconds")]
}

unusual <- function(table) sum(table$failed) + sum(table$error) + sum(table$warning)

# A row for what went wrong outside of tests.
fault <- function(file, what) {
  data.frame(file = file, test = what, passed = 0, failed = 0, error = TRUE, warning = 0,
             skipped = FALSE, seconds = 0)
}

# The same for some files in another process, with its output; a process that dies is an error.
run_apart <- function(names) {
  to <- tempfile(fileext = ".rds")
  text <- suppressWarnings(system2(
    file.path(R.home("bin"), "Rscript"), c(".ci/testthat.R", shQuote(paste0("^", names, "$"))),
    stdout = TRUE, stderr = TRUE, env = c("STATCL_TEST_JOBS=1", paste0("STATCL_TEST_RESULT=", to))))
  table <- if (file.exists(to)) {
    readRDS(to)
  } else {
    fault(paste(names, collapse = " "), "the process ended")
  }
  unlink(to)
  if (unusual(table) > 0 || any(table$skipped)) cat(text, sep = "\n")
  table
}

# Files that take more than 2 s on the host, the longest first; without "messages", which most
# changes can break.
long <- c(
  "handles", "sample-posteriors", "gp-acquire", "sample-reference", "gp-fit", "sample",
  "gp-response", "cv", "sample-compiled", "transforms", "calibrate", "glm-stream",
  "sample-metric", "memory", "trace", "glm-around", "matrix-index", "gp-peers", "glm-mcmc",
  "glm-r-families", "glm-stream-text", "glm-mixed-profile", "lazy-lives", "gp-response-vecchia",
  "tmb-blocks", "glm-fit", "lazy", "gp-vecchia-grouped", "altrep-result", "fuzz-errors",
  "gp-starts", "trace-gradient", "approximate", "glm-families", "sample-result",
  "sample-failure", "glm-fit-methods", "sample-input", "glm", "glm-datasets", "gp",
  "covariance-inputs", "gp-vecchia-fit", "checkpoint", "gp-workers", "arith", "gp-methods",
  "gp-likelihood", "gp-noise", "glm-mixed", "matrix", "glm-tools", "gp-covariance", "products",
  "map", "glm-numerics", "sample-targets", "scan", "density-traced", "batch-glm",
  "glm-mixed-methods", "glm-mixed-uncertainty", "log-posterior", "cholesky", "gp-toeplitz",
  "gp-features", "sample-start", "sample-sparse", "latent", "mixed-fields", "stan-elements",
  "trace-pass", "stan-chains", "stan-ode", "stan-solve", "stan-complex", "stan-constraints",
  "trace-triangles", "tmb-sparse")

# The names of the files of a day's turn; all without a day.
in_turn <- function(day) {
  files <- list.files(folder, "^test-.*[.]R$", full.names = TRUE)
  names <- sub("^test-(.*)[.]R$", "\\1", basename(files))
  if (is.na(day)) return(names)
  today <- function(names, days) names[(seq_along(names) + day) %% days == 0L]
  if (Sys.getenv("STATCL_TEST_ENGINE") != "device") return(c(today(long, 3L), setdiff(names, long)))
  name_device <- vapply(files, function(file) {
    any(grepl("device|each_engine|no_leak", readLines(file)))
  }, NA)
  today(names[name_device], 7L)
}

run_all <- function(names) {
  names <- c(intersect(long, names), setdiff(names, long))
  tables <- parallel::mclapply(names, run_apart, mc.cores = jobs, mc.preschedule = FALSE)
  do.call(rbind, tables)
}

names <- in_turn(as.integer(Sys.getenv("STATCL_TEST_TURN", NA)))
if (length(filter) > 0) names <- grep(paste(filter, collapse = "|"), names, value = TRUE)
apart <- intersect(collecting, names)
table <- if (jobs > 1) {
  run_all(names)
} else if (length(apart) %in% c(0L, length(names))) {
  run_here(paste0("^", names, "$"))
} else {
  rbind(run_apart(apart), run_here(paste0("^", setdiff(names, apart), "$")))
}
left <- list.files(home, all.files = TRUE, recursive = TRUE)
if (length(left)) {
  table <- rbind(table, fault(paste(names, collapse = " "), "files are left behind"))
  cat("files that tests have left behind:", left, sep = "\n")
}
result <- Sys.getenv("STATCL_TEST_RESULT")
if (nzchar(result)) saveRDS(table, result)
slow <- head(table[order(-table$seconds), ], 8)
cat("\nslowest tests (processor time)\n",
    sprintf("%5.1f s  %s: %s\n", slow$seconds, slow$file, slow$test), sep = "")
failed <- unusual(table)
cat(sprintf("%d passed, %d failed, %d skipped\n", sum(table$passed), failed, sum(table$skipped)))
quit(status = failed > 0)
