# cl_batch_glm() from R's vectors, on each engine, next to a loop of glm.fit() over 200 of the
# groups, whose time is taken in proportion. Wall ms, the median of 7 calls; "rows in another order"
# has the rows of all groups mixed.
#
#   Rscript bench/batch-glm.R

suppressMessages(library(statcl))
milliseconds <- function(run, times) {
  at <- vapply(seq_len(times), function(i) {
    start <- Sys.time()
    run()
    1000 * as.numeric(Sys.time() - start, units = "secs")
  }, 0)
  stats::median(at)
}
set.seed(1)
engines <- c("host", if (cl_available()) "device")
rows <- list()
for (shape in list(c(1e4, 50, 4), c(2e3, 100, 8), c(5e4, 30, 3))) {
  n <- shape[1L] * shape[2L]
  x <- cbind(1, matrix(stats::rnorm(n * (shape[3L] - 1)), n))
  eta <- 0.2 * rowSums(x)
  group <- rep(seq_len(shape[1L]), each = shape[2L])
  for (family in list(stats::binomial(), stats::poisson())) {
    y <- as.double(if (family$family == "binomial") stats::runif(n) < stats::plogis(eta) else
      stats::rpois(n, exp(eta)))
    first <- split(seq_len(200 * shape[2L]), group[seq_len(200 * shape[2L])])
    loop <- function() for (k in first) stats::glm.fit(x[k, ], y[k], family = family)
    theirs <- milliseconds(function() suppressWarnings(loop()), 3) * shape[1L] / 200
    for (engine in engines) {
      cl_use(engine = engine)
      ours <- function(k) suppressWarnings(cl_batch_glm(x, y, group, family))
      ours()
      mixed <- list(at = sample(n))
      time <- milliseconds(ours, 7)
      mixed <- lapply(list(x = x, y = y, group = group), function(v)
        if (is.matrix(v)) v[mixed$at, ] else v[mixed$at])
      other <- milliseconds(function() suppressWarnings(
        cl_batch_glm(mixed$x, mixed$y, mixed$group, family)), 3)
      rows <- c(rows, list(data.frame(
        groups = shape[1L], rows = shape[2L], columns = shape[3L], family = family$family,
        engine = engine, glm.fit_ms = theirs, ours_ms = time, ratio = theirs / time,
        other_order_ms = other)))
    }
  }
}
print(format(do.call(rbind, rows), digits = 3), row.names = FALSE)
