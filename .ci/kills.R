# Rscript .ci/kills.R [TIMES] [SEED]: kills a run with a checkpoint at random moments (20), each
# time until it is allowed to end; the draws must be those of a run that was not killed. Chains of
# an R function in turn, compiled ones, chains in workers, and calibration come in turn. Then a disk
# that is full (a small tmpfs, if it can be mounted): the run continues, with a warning.
given <- as.numeric(commandArgs(TRUE))
times <- if (length(given) > 0) given[1] else 20
seed <- if (length(given) > 1) given[2] else as.integer(Sys.time()) %% 1e6
place <- tempfile("kills-")
dir.create(place)
script <- file.path(place, "run.R")
writeLines(c(
  "library(statcl)", "cl_use(engine = 'host')", "given <- commandArgs(TRUE)",
  "slow <- function(x) {", "  for (i in 1:300) y <- sum(x^2)",
  "  structure(-sum(x^4) / 4 - y / 2, gradient = -x^3 - x)", "}",
  "x <- matrix(sin(1:2000), 400)", "y <- cos(1:400)",
  "compiled <- cl_gradient(function(b, s) sum(dnorm(y, x %*% b, s, log = TRUE)) - s)",
  "simulate <- function() {", "  a <- rnorm(1)",
  "  list(parameters = list(a = a), data = rnorm(9, a))", "}",
  "model <- function(y) cl_gradient(function(a) sum(dnorm(c(a, y - a), log = TRUE)))",
  "file <- if (given[2] != 'none') given[2]",
  "sample <- function(...) cl_sample(..., chains = 3, seed = 1, refresh = 0, checkpoint = file,",
  "                                  checkpoint_seconds = 0.05)$draws",
  "result <- suppressWarnings(switch(given[1],",
  "  turn = sample(slow, numeric(3), warmup = 300, iter = 500),",
  "  compiled = sample(compiled, list(b = numeric(5), s = 1), warmup = 500, iter = 1500,",
  "                    transform = list(s = cl_lower(0))),",
  "  workers = sample(slow, numeric(3), warmup = 300, iter = 500, workers = 2),",
  "  calibration = cl_calibrate(simulate, model, 60, seed = 1, refresh = 0, checkpoint = file,",
  "                             checkpoint_seconds = 0.05)$ranks))",
  "saveRDS(result, given[3])"), script)

run <- function(kind, file, out, limit = Inf) {
  command <- paste(shQuote(file.path(R.home("bin"), "Rscript")), "--vanilla", shQuote(script), kind,
                   shQuote(file), shQuote(out), "> /dev/null 2>&1")
  if (is.finite(limit)) command <- sprintf("timeout -s KILL %g %s", limit, command)
  system.time(system(command, ignore.stdout = TRUE, ignore.stderr = TRUE))[[3]]
}

kinds <- c("turn", "compiled", "workers", "calibration")
expected <- seconds <- list()
for (kind in kinds) {
  out <- file.path(place, "expected.rds")
  seconds[[kind]] <- run(kind, "none", out)
  expected[[kind]] <- readRDS(out)
}
set.seed(seed)
cat(sprintf("seed %d; seconds of whole runs: %s\n", seed,
            paste(kinds, format(unlist(seconds), digits = 2), collapse = ", ")))
failures <- 0L
for (k in seq_len(times)) {
  kind <- kinds[(k - 1) %% length(kinds) + 1]
  file <- file.path(place, sprintf("%d.rds", k))
  out <- file.path(place, "out.rds")
  unlink(out)
  limit <- stats::runif(1, 0.1, 0.9) * seconds[[kind]]
  run(kind, file, out, limit)
  kept <- file.exists(file)
  ended <- file.exists(out)
  if (!ended) run(kind, file, out)
  same <- file.exists(out) && identical(readRDS(out), expected[[kind]])
  cat(sprintf("%2d %-12s killed after %4.1f s%s%s: %s\n", k, kind, limit,
              if (kept) ", with a checkpoint" else "", if (ended) ", had ended" else "",
              if (same) "the same draws" else "DIFFERENT"))
  if (!same) failures <- failures + 1L
}

# ---- a full disk ---------------------------------------------------------------------------------

full <- file.path(place, "full")
dir.create(full)
mounted <- system(sprintf("mount -t tmpfs -o size=16k none %s 2> /dev/null", shQuote(full))) == 0
if (mounted) {
  library(statcl)
  cl_use(engine = "host")
  f <- function(x) structure(-sum(x^2) / 2, gradient = -x)
  whole <- cl_sample(f, numeric(5), chains = 2, seed = 1)
  told <- character()
  fit <- withCallingHandlers(
    cl_sample(f, numeric(5), chains = 2, seed = 1, checkpoint = file.path(full, "run.rds"),
              checkpoint_seconds = 0.1),
    statcl_warning_checkpoint = function(w) {
      told <<- c(told, conditionMessage(w))
      invokeRestart("muffleWarning")
    })
  left <- dir(full)
  system(sprintf("umount %s", shQuote(full)))
  right <- identical(fit$draws, whole$draws) && length(told) > 0 &&
    !any(grepl("part$", left))
  cat(sprintf("full disk: %d warnings, %s\n", length(told), if (right) "the same draws" else
    "WRONG"), if (length(told) > 0) c("  ", told[1], "\n"), sep = "")
  if (!right) failures <- failures + 1L
} else {
  cat("a small tmpfs cannot be mounted here: the full disk was not tried\n")
}
unlink(place, recursive = TRUE)
quit(status = min(failures, 1L))
