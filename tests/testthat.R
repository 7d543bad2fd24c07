library(testthat)
library(statcl)

# STATCL_TEST_FILES, a regular expression, names some of the files (.ci/check.sh).
files <- Sys.getenv("STATCL_TEST_FILES")
test_check("statcl", filter = if (nzchar(files)) files)
