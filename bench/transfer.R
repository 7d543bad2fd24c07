# Upload and download of R matrices, by the wall clock: general, and lower triangular (one half
# crosses).
#
# "download" is one of many, whose results are dropped: from 6 MiB on they come into memory that
# earlier ones had (medians: of 2 GB every third call also waits for R's collector, 40 ms). "new
# memory" is as the first one, or all while their results are kept: what the system gives it clears
# first.

download_rows <- function(operation, x, bus, times) {
  bytes <- 8 * length(x)
  size <- sprintf("%.0f MB", bytes / 1e6)
  measure_again <- function(operation, recycle) {
    old <- options(statcl.recycle = recycle)
    on.exit(options(old))
    cl_free()
    # until enough has been dropped and collected
    if (recycle) for (i in seq_len(min(300, max(10, 5e9 / bytes)))) as.matrix(x)
    measure(operation, size, function() as.matrix(x), bus = bus, by = "wall", times = times)
    cl_free()
  }
  measure_again(operation, TRUE)
  measure_again(paste0(operation, ", new memory"), FALSE)
}

for (n in sizes(gpu = c(1000, 4000, 16384), cpu = c(500, 1000))) {
  a <- matrix(1, n, n)
  bytes <- 8 * n^2
  times <- if (n > 8000) 9L else 15L
  size <- sprintf("%.0f MB", bytes / 1e6)
  measure("upload", size, function() as_cl(a), bus = bytes, by = "wall", times = times)
  measure("upload, lower", size, function() cl_matrix(a, n, n, view = "lower"), bus = bytes / 2,
          by = "wall", times = times)
  x <- as_cl(a)
  download_rows("download", x, bytes, times)
  rm(x)
  l <- cl_matrix(a, n, n, view = "lower")
  download_rows("download, lower", l, bytes / 2, times)
  rm(l, a)
}
