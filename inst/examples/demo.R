# A tour on real data: Gaussian-process regression and logistic regression, with plots, on the
# host and on the device that statcl uses by default.
#
#   Rscript -e 'source(system.file("examples", "demo.R", package = "statcl"))' [FOLDER]
#
# Plots and the table are written to FOLDER (default: demo-output in the working folder). Each
# part is a file next to this one with a function demo_<part>(), which prints its results and
# returns rows made by both_engines().

library(statcl)

demo <- new.env()
demo$folder <- c(commandArgs(TRUE), "demo-output")[1L]
dir.create(demo$folder, showWarnings = FALSE, recursive = TRUE)

# The device that statcl uses by default, otherwise a CPU OpenCL device to show that path too.
demo$devices <- cl_devices()
demo$device <- demo$devices[demo$devices$default, ]
demo$by_itself <- nrow(demo$device) > 0L
if (!demo$by_itself) demo$device <- head(demo$devices[demo$devices$fp64, ], 1L)

# Calls `run()` on the host and on the device and times both (seconds; on the device the second of
# two calls, because the first compiles the kernels). `value` extracts the numbers to compare.
# Returns one row of the table, with the results of the host and, if there is one, of the device
# as attributes.
both_engines <- function(task, size, run, value = identity) {
  timed <- function() {
    start <- proc.time()[["elapsed"]]
    result <- run()
    cl_sync()
    list(result = result, seconds = proc.time()[["elapsed"]] - start)
  }
  host <- with_cl(timed(), engine = "host")
  row <- data.frame(task = task, size = size, host_s = host$seconds, device_s = NA_real_,
                    difference = NA_real_, stringsAsFactors = FALSE)
  attr(row, "host") <- host$result
  if (nrow(demo$device) == 0L) return(row)
  device <- with_cl({
    timed()
    timed()
  }, device = demo$device$id, engine = "device")
  row$device_s <- device$seconds
  a <- unlist(value(host$result))
  b <- unlist(value(device$result))
  row$difference <- max(abs(a - b)) / max(abs(a))
  attr(row, "device") <- device$result
  row
}

# Opens a plot file, PNG if this R can write it, otherwise PDF; end with dev.off(). Returns its
# path.
open_plot <- function(name, width = 9, height = 5) {
  path <- file.path(demo$folder, paste0(name, ".png"))
  opened <- capabilities("png") && tryCatch({
    grDevices::png(path, width = width, height = height, units = "in", res = 110)
    TRUE
  }, warning = function(w) FALSE, error = function(e) FALSE) # its libraries may be missing
  if (!opened) {
    path <- file.path(demo$folder, paste0(name, ".pdf"))
    grDevices::pdf(path, width = width, height = height)
  }
  path
}

section <- function(title) cat("\n", title, "\n", strrep("-", nchar(title)), "\n", sep = "")

section("This machine")
print(cl_sitrep())

parts <- c("gp", "logistic")
rows <- list()
for (part in parts) {
  source(system.file("examples", paste0(part, ".R"), package = "statcl", mustWork = TRUE))
  rows[[part]] <- do.call(paste0("demo_", part), list())
}

section("Engines")
table <- do.call(rbind, unname(rows))
rownames(table) <- NULL
cat("host:   ", extSoftVersion()[["BLAS"]], "\n", sep = "")
if (nrow(demo$device) == 0L) {
  cat("device: none\n\n")
} else {
  cat("device: ", demo$device$name, " (", demo$device$type, "; ",
      if (demo$by_itself) "the default" else "asked for: the default here is the host", ")\n\n",
      sep = "")
}
shown <- data.frame(task = table$task, size = table$size,
                    `host, s` = sprintf("%.3f", table$host_s),
                    `device, s` = ifelse(is.na(table$device_s), "-",
                                         sprintf("%.3f", table$device_s)),
                    `relative difference` = ifelse(is.na(table$difference), "-",
                                                   sprintf("%.1e", table$difference)),
                    check.names = FALSE, stringsAsFactors = FALSE)
options(width = 200L)
print(shown, right = FALSE, row.names = FALSE)
utils::write.csv(table, file.path(demo$folder, "engines.csv"), row.names = FALSE)

# Results of the engines may differ only by rounding and by the point at which an optimiser stops.
if (any(table$difference > 1e-4, na.rm = TRUE)) stop("the engines differ by more than 1e-4")
cat("\nWritten to ", demo$folder, ": ", paste(list.files(demo$folder), collapse = ", "), "\n",
    sep = "")
