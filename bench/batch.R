# Batches of small matrices that lie on the device: inverse and Cholesky factor of each order, and
# what else is made of them. The floor counts every matrix read and written once.

batches <- wanted(sizes(
  gpu = c("3" = 1e6, "8" = 2e5, "16" = 2e5, "32" = 1e5, "64" = 1e4, "128" = 2e3),
  cpu = c("3" = 1e4, "8" = 1e3, "16" = 100)))

# Symmetric positive definite matrices, repeated after a thousand.
definite_batch <- function(n, batch) {
  some <- min(batch, 1000)
  a <- array(rnorm(n * n * some), c(n, n, some))
  s <- cl_batch_matmul(a, a, transpose_a = TRUE) + as.vector(diag(n))
  array(s, c(n, n, batch))
}

for (n in as.integer(names(batches))) {
  batch <- batches[[as.character(n)]]
  s <- definite_batch(n, batch)
  size <- sprintf("%dx%dx%.0f", n, n, batch)
  both <- 16 * n^2 * batch
  x <- as_cl(s)
  l <- cl_batch_chol(x, lower = TRUE)
  b <- as_cl(array(rnorm(n * batch), c(n, 1, batch)))
  y <- as_cl(matrix(rnorm(n * batch), n))
  measure("batch inverse", size, function() cl_batch_inverse(x), bytes = both)
  if (n <= 3) {
    measure("batch inverse, cofactors", size, function() cl_batch_inverse(x, "cofactors"),
            bytes = both, peer = "batch inverse")
  }
  measure("batch chol", size, function() cl_batch_chol(x, lower = TRUE), bytes = both)
  measure("batch solve", size, function() cl_batch_solve(x, b), bytes = 8 * n * (n + 2) * batch)
  measure("batch det", size, function() cl_batch_det(x), bytes = 8 * n^2 * batch)
  measure("batch matmul", size, function() cl_batch_matmul(x, x), bytes = both)
  measure("batch mvn_lpdf", size, function() cl_batch_mvn_lpdf(y, chol = l, lower = TRUE),
          bytes = 8 * n * (n + 1) * batch)
  measure("batch chol_adjoint", size, function() cl_batch_chol_adjoint(l, x), bytes = 1.5 * both)
  rm(s, x, l, b, y)
}

# Products of two batches, with either factor transposed, also of sizes that fill no tile.
products <- wanted(sizes(
  gpu = c("16" = 2e5, "17" = 1.9e5, "32" = 1e5, "33" = 1e5, "48" = 3e4, "64" = 1e4, "100" = 4e3,
          "127" = 2e3, "128" = 2e3), cpu = c("17" = 100)))
for (n in as.integer(names(products))) {
  batch <- products[[as.character(n)]]
  size <- sprintf("%dx%dx%.0f", n, n, batch)
  some <- function() array(rnorm(n^2 * min(batch, 1000)), c(n, n, batch))
  x <- as_cl(some())
  y <- as_cl(some())
  form <- function(operation, ...) {
    measure(operation, size, function() cl_batch_matmul(x, y, ...), bytes = 24 * n^2 * batch)
  }
  form("batch a b")
  form("batch a' b", transpose_a = TRUE)
  form("batch a b'", transpose_b = TRUE)
  rm(x, y)
}

# The host engine on base R arrays, next to base R's loop: milliseconds in the last column.
for (n in c(3L, 8L, 16L, 32L, 64L, 128L)) {
  batch <- min(1e5, round(2e6 / n^2 / max(1, n / 16)))
  s <- definite_batch(n, batch)
  size <- sprintf("%dx%dx%.0f", n, n, batch)
  host <- function(operation, run, loop) {
    operation <- paste(operation, "on the host")
    if (!is_wanted(operation, size)) return(invisible())
    add_row(data.frame(
      operation = operation, size = size, device_ms = NA_real_,
      wall_ms = with_cl(time_host(run), engine = "host"), rate = "", peer_ms = NA_real_,
      host_ms = if (bench_alone) NA_real_ else time_host(loop, 1L), floor_ms = NA_real_,
      stringsAsFactors = FALSE), "wall")
  }
  host("batch inverse", function() cl_batch_inverse(s), function() apply(s, 3L, solve))
  host("batch chol", function() cl_batch_chol(s), function() apply(s, 3L, chol))
  host("batch det", function() cl_batch_det(s), function() apply(s, 3L, det))
  host("batch matmul", function() cl_batch_matmul(s, s),
       function() for (i in seq_len(batch)) s[, , i] %*% s[, , i])
}

# Logistic regressions by group, from R's memory, next to a loop of glm.fit().
for (groups in sizes(gpu = 1e4, cpu = 1e3)) {
  size <- sprintf("50x4x%.0f", groups)
  group <- rep(seq_len(groups), each = 50)
  x <- cbind(1, matrix(rnorm(150 * groups), ncol = 3))
  y <- as.double(rbinom(50 * groups, 1L, stats::plogis(drop(x %*% c(0.2, 0.5, -0.3, 0.1)))))
  loop <- function() {
    for (rows in split(seq_along(group), group)) {
      stats::glm.fit(x[rows, ], y[rows], family = stats::binomial())
    }
  }
  for (engine in c("device", "host")) {
    operation <- if (engine == "device") "batch glm" else "batch glm on the host"
    if (!is_wanted(operation, size)) next
    run <- function() suppressWarnings(cl_batch_glm(x, y, group, "binomial"))
    add_row(data.frame(
      operation = operation, size = size, device_ms = NA_real_,
      wall_ms = with_cl(time_host(run), engine = engine), rate = "", peer_ms = NA_real_,
      host_ms = if (bench_alone) NA_real_ else time_host(function() suppressWarnings(loop()), 1L),
      floor_ms = NA_real_, stringsAsFactors = FALSE), "wall")
  }
}
