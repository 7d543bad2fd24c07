# Posteriors of tests/posteriors against reference draws. STATCL_POSTERIORDB is the folder with data
# and references, see tests/posteriors/run.R.

skip_on_cran() # long; run by ./dev check

test_that("plain R functions reproduce the reference posteriors", {
  folder <- Sys.getenv("STATCL_POSTERIORDB")
  here <- test_path("..", "posteriors")
  skip_if_not(nzchar(folder) && dir.exists(folder) && dir.exists(here), "reference posteriors")
  skip_if_not(nzchar(system.file(package = "jsonlite")), "the package jsonlite")
  tools <- new.env(parent = globalenv())
  sys.source(file.path(here, "run.R"), tools)
  names <- c("kidiq-kidscore_momhs", "mesquite-logmesquite_logvolume", "gp_pois_regr-gp_regr")
  for (name in names) {
    row <- suppressMessages(tools$run_posterior(name, folder, here, iter = 2000))
    expect_lt(row$gradient, 1e-6)
    expect_lt(row$value, 1e-12)
    expect_true(row$agrees, info = paste(name, "z", row$z, "sd", row$sd_off))
  }
})
