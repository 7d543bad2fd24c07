# Upload and download of R matrices, by the wall clock: general, and lower triangular (one half
# crosses).

for (n in sizes(gpu = c(1000, 4000, 16384), cpu = c(500, 1000))) {
  a <- matrix(1, n, n)
  bytes <- 8 * n^2
  times <- if (n > 8000) 5L else 7L
  size <- sprintf("%.0f MB", bytes / 1e6)
  measure("upload", size, function() as_cl(a), bus = bytes, by = "wall", times = times)
  measure("upload, lower", size, function() cl_matrix(a, n, n, view = "lower"), bus = bytes / 2,
          by = "wall", times = times)
  x <- as_cl(a)
  measure("download", size, function() as.matrix(x), bus = bytes, by = "wall", times = times)
  rm(x)
  l <- cl_matrix(a, n, n, view = "lower")
  measure("download, lower", size, function() as.matrix(l), bus = bytes / 2, by = "wall",
          times = times)
  rm(l, a)
}
