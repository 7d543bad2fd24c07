# The report of ./dev report: Rscript .ci/report.R LOG STATUS, of the R tests. Prints it.
suppressMessages(library(statcl))
args <- commandArgs(TRUE)
log <- readLines(args[1L], warn = FALSE)
part <- function(title) cat("\n== ", title, " ==\n", sep = "")
seconds <- as.numeric(Sys.getenv("STATCL_REPORT_SECONDS", "60"))
options(width = 120)

# As in the tests: a CPU device takes part if there is no other.
devices <- cl_devices()
if (!cl_available() && nrow(devices) > 0L && any(devices$fp64)) {
  cl_use(devices$id[which(devices$fp64)[1L]])
}
chosen <- cl_devices()[cl_devices()$default, ]
refusal <- tryCatch({
  if (nrow(chosen)) as_cl(1)
  ""
}, statcl_error = conditionMessage)
summary <- tail(grep("[0-9]+ passed, [0-9]+ failed", log, value = TRUE), 1L)
cat("statcl", as.character(packageVersion("statcl")), "report,", format(Sys.time(), tz = "UTC"),
    "UTC\n")
cat("device:", if (nrow(chosen)) chosen$name else "none; tests and times of the host only",
    if (nzchar(refusal)) paste("is refused:", refusal), "\n")
if (nzchar(refusal)) chosen <- chosen[0L, ]
cat("tests: ", if (length(summary)) summary else "did not end", " (status ", args[2L], ")\n",
    sep = "")

part("machine")
print(cl_sitrep())
print(R.version.string)
cat(parallel::detectCores(), "cores\n")
part("devices")
if (nrow(devices)) str(devices) else cat("none\n")

part("tests that failed or were skipped")
shown <- function(heading) {
  from <- grep(heading, log)
  if (length(from) == 0L) return(character())
  unlist(lapply(from, function(k) {
    ends <- grep("DONE|^slowest tests", log)
    log[k:min(ends[ends > k], length(log))]
  }))
}
lines <- c(shown("Failed"), shown("Skipped"))
cat(if (length(lines)) lines else "none", if (!length(summary)) tail(log, 60L), sep = "\n")

part("tuning")
if (nrow(chosen)) {
  tuned <- cl_tune(budget = seconds, verbose = FALSE)
  print(tuned)
  print(summary(tuned))
  print(tuned$points, digits = 3, row.names = FALSE)
  part("lines for inst/tuning.csv")
  found <- subset(tuned$sizes, !is.na(found))
  if (nrow(found) == 0L) cat("none: there was no time to find any (STATCL_REPORT_SECONDS)\n")
  cat(sprintf("\"^%s$\",%s,%s,%s,%d cores of the host\n",
              gsub("([^[:alnum:] _-])", "\\\\\\1", chosen$name), chosen$type, found$op,
              format(found$found, trim = TRUE), parallel::detectCores()), sep = "")
} else {
  cat("no device: nothing to tune\n")
}
