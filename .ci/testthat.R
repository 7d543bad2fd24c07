# Runs the R tests against the installed package and prints "N passed, N failed, N skipped", where a
# warning counts as a failure. Arguments: name filters of test files.
filter <- commandArgs(TRUE)
library(statcl)
results <- testthat::test_dir(
  "tests/testthat", package = "statcl", load_package = "installed", stop_on_failure = FALSE,
  filter = if (length(filter) > 0) paste(filter, collapse = "|"),
  reporter = testthat::SummaryReporter$new(show_praise = FALSE, omit_dots = TRUE))
table <- as.data.frame(results)
slow <- head(table[order(-table$real), ], 8)
cat("\nslowest tests\n", sprintf("%5.1f s  %s: %s\n", slow$real, slow$file, slow$test), sep = "")
failed <- sum(table$failed) + sum(table$error) + sum(table$warning)
cat(sprintf("%d passed, %d failed, %d skipped\n",
            sum(table$passed), failed, sum(table$skipped)))
quit(status = failed > 0)
