# Shared by all benchmark scripts: choice of device, timing, peers, floors, tables. See README.md.

library(statcl)

bench <- new.env()
bench$rows <- list()

# With STATCL_BENCH_ALONE=1 neither peers nor base R are timed (compare.R).
bench_alone <- nzchar(Sys.getenv("STATCL_BENCH_ALONE"))

# The lines that this run is for, as "operation size" (STATCL_BENCH_ONLY names a file of them, which
# compare.R writes); all lines if NULL. Such a run takes more calls of a line.
bench$only <- if (nzchar(only <- Sys.getenv("STATCL_BENCH_ONLY"))) readLines(only)
is_wanted <- function(operation, size) {
  is.null(bench$only) || any(paste(operation, size) %in% bench$only)
}

# Takes the device that statcl would take (STATCL_DEVICE names another), or any OpenCL device when
# there is no GPU. Event times are on from the first context on, so this comes first. `families` are
# those whose peers are timed.
bench_open <- function(families) {
  .Call(statcl:::r_profiling, TRUE)
  cl_use(engine = "device")
  devices <- cl_devices()
  bench$device <- devices[devices$default, ]
  bench$where <- which(devices$default) - 1L
  bench$gpu <- bench$device$type == "gpu"
  bench$floor <- device_floors(bench$device$name)
  bench$peers <- read_peers(families)
  if (bench$gpu) warm_up()
  invisible(bench$device)
}

# An idle GPU runs at a low clock, and the first timings would be of that: a second of products.
warm_up <- function() {
  a <- cl_matrix(random_matrix(2048))
  start <- seconds()
  while (seconds() - start < 1) {
    product <- a %*% a
    cl_sync()
    cl_free(product)
  }
  cl_free(a)
}

# What the hardware can do, measured or by its data sheet, for FP64: flop/s of matrix products,
# bytes/s of device memory, bytes/s over the bus in one direction. NA for a device that is not
# listed: then there is no floor.
device_floors <- function(name) {
  table <- data.frame(
    pattern = c("H200", "H100", "A100"),
    flops = c(66.4e12, 66.9e12, 19.5e12),
    bytes = c(4.27e12, 3.35e12, 2.04e12),
    bus = c(55e9, 55e9, 25e9))
  hit <- which(vapply(table$pattern, grepl, NA, x = name, fixed = TRUE))
  if (length(hit) == 0L) return(list(flops = NA_real_, bytes = NA_real_, bus = NA_real_))
  as.list(table[hit[1L], -1L])
}

# Sizes for a GPU, or the smaller ones for a CPU device.
sizes <- function(gpu, cpu) if (bench$gpu) gpu else cpu

# Of these sizes (numbers, shapes or names), those that bench$only has lines of, or else the first.
wanted <- function(all) {
  if (is.null(bench$only)) return(all)
  text <- if (!is.null(names(all))) names(all) else {
    vapply(all, function(size) paste(sprintf("%.0f", size), collapse = "x"), "")
  }
  lines <- paste0(sub(".* ", "", bench$only), "x")
  kept <- vapply(text, function(size) any(startsWith(lines, paste0(size, "x"))), NA)
  if (any(kept)) all[kept] else all[1L]
}

# Whether `matrices` matrices of n x n fit the device, each in one buffer: most drivers allow a
# quarter of the memory for that.
fits <- function(n, matrices) max(matrices / 0.9, 4) * 8 * n^2 < bench$device$memory

# Random numbers, repeated after ten million: making them would take longer than what is timed.
random_matrix <- function(n, p = n) matrix(rep_len(rnorm(min(n * p, 1e7)), n * p), n, p)

# ---- timing -------------------------------------------------------------------------------------

# Microseconds count, and proc.time() has steps of a millisecond.
seconds <- function() as.numeric(Sys.time())

# Median milliseconds of calls: on the device, from the start of the first command to the end of the
# last; and by the clock at the R prompt, with the device finished. The first calls (which
# compile) are not counted. With several functions each is called in turn, so that all see the same
# state of the device; the result has an element for each. `drop` is called with each value,
# outside of what is timed.
time_device <- function(runs, times = 7L, drop = NULL) {
  alone <- is.function(runs)
  if (alone) runs <- list(runs)
  for (i in 1:2) for (run in runs) {
    start <- seconds()
    call_and_drop(run, drop)
  }
  if (!is.null(bench$only)) times <- max(times, min(51L, ceiling(0.3 / (seconds() - start))))
  device <- wall <- matrix(0, times, length(runs))
  for (i in seq_len(times)) for (k in seq_along(runs)) {
    cl_sync()
    .Call(statcl:::r_profile_begin, bench$where)
    start <- seconds()
    value <- runs[[k]]()
    cl_sync()
    wall[i, k] <- seconds() - start
    device[i, k] <- .Call(statcl:::r_profile_end, bench$where)
    if (!is.null(drop)) drop(value)
    rm(value)
  }
  gc()
  ms <- lapply(seq_along(runs), function(k) {
    list(device = median(device[, k]), wall = 1000 * median(wall[, k]))
  })
  if (alone) ms[[1L]] else ms
}

call_and_drop <- function(run, drop) {
  value <- run()
  if (!is.null(drop)) drop(value)
}

# Frees the matrices that a call made (a matrix, or a list of them), so that the next call gets the
# same memory: the first use of memory costs up to a tenth of the time of a kernel that fills it.
free_value <- function(value) {
  if (is.list(value)) for (part in value) free_value(part)
  if (inherits(value, "clMatrix")) cl_free(value)
}

# Median milliseconds of `run()`, which waits by itself, in calls one after the other without event
# times, as a sampler makes them. The clock, which takes 2 us itself, is looked at after `block`
# calls.
time_calls <- function(run, times = 200L, block = 1L) {
  for (i in 1:10) run()
  at <- numeric(times %/% block + 1L)
  for (i in seq_along(at)) {
    at[i] <- seconds()
    for (j in seq_len(block)) run()
  }
  1000 * median(diff(at)) / block
}

# Median milliseconds of `run()` with R alone.
time_host <- function(run, times = 3L) {
  run()
  1000 * median(vapply(seq_len(times), function(i) {
    start <- seconds()
    run()
    seconds() - start
  }, 0))
}

# ---- peers -------------------------------------------------------------------------------------

# Peers are Python scripts that print, or CSV files that hold, lines
# "peer,operation,size,ms,rate,unit": peers_<family>.py next to the family's script, where there is
# a GPU, and what STATCL_BENCH_PEERS names. The scripts run now, with the same device and driver;
# those of this folder print nothing where what they time is not installed.
read_peers <- function(families) {
  if (bench_alone) families <- character()
  own <- file.path("bench", paste0("peers_", gsub("-", "_", families), ".py"))
  own <- if (bench$gpu && nzchar(Sys.which("python3"))) own[file.exists(own)]
  named <- Sys.getenv("STATCL_BENCH_PEERS", "")
  named <- named[nzchar(named)]
  if (!all(file.exists(named))) stop("STATCL_BENCH_PEERS names no file: ", named)
  lines <- unlist(lapply(c(own, named), function(path) {
    if (grepl("\\.py$", path)) system2("python3", path, stdout = TRUE) else readLines(path)
  }))
  fields <- strsplit(grep("^([^,]+,){4}", lines, value = TRUE), ",", fixed = TRUE)
  if (length(named) > 0L && length(fields) == 0L) stop("no measurement of a peer in ", named)
  take <- function(i) vapply(fields, `[[`, "", i)
  peers <- data.frame(peer = take(1L), operation = take(2L), size = take(3L),
                      ms = suppressWarnings(as.numeric(take(4L))), stringsAsFactors = FALSE)
  peers[is.finite(peers$ms), ]
}

# What peers a family has that its script times itself: a sentence at the head of its section.
note_peers <- function(text) bench$peers_note <- unique(c(bench$peers_note, text))

peer_ms <- function(operation, size) {
  bench$peers_asked <- c(bench$peers_asked, operation)
  rows <- bench$peers$operation == operation & bench$peers$size == as.character(size)
  if (any(rows)) min(bench$peers$ms[rows]) else NA_real_
}

# ---- rows and tables ---------------------------------------------------------------------------

# Times `run` and adds a row. `flops`, `bytes` (of device memory) and `bus` (bytes over the bus)
# give the floor; `peer` is the peer's name for the operation; `host` does the same with R alone;
# `by` says whether the device's time or the wall clock is held against the peer; `wall` gives the
# wall time if it was taken otherwise; `note` is a function called afterwards, for a remark next to
# the rate; `drop` as in time_device().
measure <- function(operation, size, run, flops = NA, bytes = NA, bus = NA, peer = operation,
                    host = NULL, by = c("device", "wall"), times = 7L, wall = NULL, note = NULL,
                    drop = NULL) {
  by <- match.arg(by)
  if (!is_wanted(operation, size)) return(invisible())
  ms <- time_device(run, times, drop)
  if (!is.null(wall)) ms$wall <- wall
  measured(operation, size, ms, flops, bytes, bus, peer, host, by, note)
}

# The same of several functions, timed in turn: a row for each name of `runs`, with the names'
# peers.
measure_in_turn <- function(runs, size, flops = NA, bytes = NA, by = c("device", "wall"),
                            times = 7L, drop = NULL, peers = names(runs)) {
  by <- match.arg(by)
  if (!is_wanted(names(runs), size)) return(invisible())
  ms <- time_device(runs, times, drop)
  for (k in seq_along(runs)) {
    measured(names(runs)[k], size, ms[[k]], flops, bytes, NA, peers[k], NULL, by, NULL)
  }
}

measured <- function(operation, size, ms, flops, bytes, bus, peer, host, by, note) {
  floor <- 1000 * max(flops / bench$floor$flops, bytes / bench$floor$bytes, bus / bench$floor$bus,
                      -Inf, na.rm = TRUE)
  remarks <- c(rate(flops, bytes, bus, ms[[by]]), if (!is.null(note)) note())
  add_row(data.frame(
    operation = operation, size = as.character(size), device_ms = ms$device, wall_ms = ms$wall,
    rate = paste(remarks[nzchar(remarks)], collapse = "; "),
    peer_ms = peer_ms(peer, size),
    host_ms = if (is.null(host) || bench_alone) NA_real_ else time_host(host),
    floor_ms = if (is.finite(floor)) floor else NA_real_, stringsAsFactors = FALSE), by)
}

# Adds the ratios and prints. `by`: whose time is "ours".
add_row <- function(row, by) {
  ours <- row[[paste0(by, "_ms")]]
  row$by_peer <- ours / row$peer_ms
  row$of_floor <- row$floor_ms / ours
  bench$rows[[length(bench$rows) + 1L]] <- row
  cat(format_row(row), "\n", sep = "")
  invisible(row)
}

rate <- function(flops, bytes, bus, ms) {
  if (!is.na(flops)) return(sprintf("%.3g TFLOP/s", flops / ms * 1e-9))
  amount <- if (is.na(bytes)) bus else bytes
  if (is.na(amount)) "" else sprintf("%.4g GB/s", amount / ms * 1e-6)
}

table_head <- c(
  paste("| operation | size | device ms | wall ms | rate | peer ms | ours/peer | floor ms |",
        "floor/ours | R host ms |"),
  "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")

format_row <- function(row) {
  number <- function(x) if (is.na(x)) "" else format(signif(x, 3), scientific = FALSE)
  sprintf("| %s |", paste(c(
    row$operation, row$size, number(row$device_ms), number(row$wall_ms), row$rate,
    number(row$peer_ms), number(row$by_peer), number(row$floor_ms), number(row$of_floor),
    number(row$host_ms)), collapse = " | "))
}
