# Whether the engine chosen for base R input is the faster one: after cl_tune(), times both engines
# at sizes from 8 to 8192 rows (operations by elements: as many numbers), which tuning did not see,
# and prints the choice and its loss. Run by itself:
# Rscript bench/tune.R [seconds for tuning, 30] [seconds for these times, 60] [operations, comma]
# With STATCL_BENCH_TUNING=file.svg it also draws the times at which cl_tune() looked; file.rds
# keeps its result, to be drawn elsewhere.
suppressMessages(library(statcl))
args <- commandArgs(TRUE)
number <- function(k, default) if (length(args) >= k) as.numeric(args[k]) else default
internal <- function(name) getFromNamespace(name, "statcl")
if (!cl_available()) {
  devices <- cl_devices()
  if (nrow(devices) == 0L) {
    cat("no OpenCL device: the host is the only engine\n")
    quit()
  }
  cl_use(devices$id[1L])
}
draw_tuning <- function(tuned, file) {
  if (!nzchar(file)) return(invisible())
  if (grepl("rds$", file)) return(saveRDS(tuned, file))
  svg(file, width = 11, height = 9)
  on.exit(dev.off())
  plot(tuned)
}
tasks <- internal("tune_tasks")()
if (length(args) >= 3L) tasks <- tasks[strsplit(args[3L], ",")[[1L]]]
cat(cl_devices()$name[cl_devices()$default], "\n")
tuned <- cl_tune(names(tasks), budget = number(1L, 30), verbose = FALSE)
print(tuned)
draw_tuning(tuned, Sys.getenv("STATCL_BENCH_TUNING"))

rows <- c(8, 24, 48, 96, 192, 384, 768, 1536, 3072, 6144, 8192)
left <- number(2L, 60)
table <- NULL
for (op in names(tasks)) {
  task <- tasks[[op]]
  by_rows <- max(task$sizes) <= 8192
  sizes <- if (by_rows) rows[rows <= 2 * max(task$sizes)] else 1.5 * task$sizes
  share <- left / (length(tasks) - match(op, names(tasks)) + 1L)
  numbers <- cl_thresholds()
  threshold <- numbers$threshold[numbers$op == op]
  for (shape in names(task$shapes)) {
    spent <- cost <- 0
    for (size in sizes) {
      if (spent + 6 * cost > share / length(task$shapes)) break
      run <- task$make(size, task$shapes[[shape]])
      start <- proc.time()[[3L]]
      seconds <- internal("time_engines")(run)
      cost <- proc.time()[[3L]] - start
      spent <- spent + cost
      choice <- if (size >= threshold) "device" else "host"
      table <- rbind(table, data.frame(
        op = op, shape = shape, size = size, host.ms = 1e3 * seconds[["host"]],
        device.ms = 1e3 * seconds[["device"]], choice = choice,
        better = names(which.min(seconds)), ratio = seconds[[choice]] / min(seconds),
        stringsAsFactors = FALSE))
    }
    left <- left - spent
  }
}
show <- function(rows) print(format(rows, digits = 3), row.names = FALSE)
show(table)
cat(sprintf("\n%d of %d choices are within 10%% of the faster engine; the worst:\n",
            sum(table$ratio <= 1.1), nrow(table)))
show(head(table[order(-table$ratio), ], 12L))
