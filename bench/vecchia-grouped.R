# Grouped likelihoods of Vecchia's approximation next to those of single observations, on the device
# in use: 30 neighbours, Matern 3/2, points in the plane and in three dimensions. Medians of
# STATCL_BENCH_TIMES calls (7) by R's clock, in ms; sizes from STATCL_BENCH_SIZES (1e6).
# Rscript bench/vecchia-grouped.R [label]

library(statcl)

sizes <- as.numeric(strsplit(Sys.getenv("STATCL_BENCH_SIZES", "1e6"), "[ ,]+")[[1L]])
times <- as.integer(Sys.getenv("STATCL_BENCH_TIMES", "7"))
label <- c(commandArgs(TRUE), "")[1L]
par <- c(sd = 1, lengthscale = 0.1, noise = 0.3)

seconds <- function() proc.time()[["elapsed"]]

# Medians, each call of all functions in turn.
timed <- function(functions) {
  for (f in functions) f() # kernels are built
  taken <- replicate(times, vapply(functions, function(f) {
    start <- seconds()
    for (i in 1:3) f()
    (seconds() - start) / 3
  }, 0))
  1000 * apply(matrix(taken, length(functions)), 1L, stats::median)
}

cat(statcl:::cl_devices()$name[1L], label, "\n")
cat("| points | columns | grouped | order, neighbours (blocks), s | value | gradient |",
    "information | check |\n|---:|---:|---|---:|---:|---:|---:|---|\n")
for (n in sizes) {
  for (p in 2:3) {
    set.seed(p)
    x <- matrix(stats::runif(n * p), n)
    y <- sin(9 * x[, 1L]) * cos(7 * x[, 2L]) + 0.3 * stats::rnorm(n)
    for (grouped in c(FALSE, TRUE)) {
      start <- seconds()
      f <- cl_gp_likelihood(y, x, k_matern32(), approx = "vecchia", neighbours = 30,
                            grouped = grouped)
      made <- seconds() - start
      ms <- timed(list(function() f(par, gradient = FALSE), function() f(par),
                       function() f(par, information = TRUE)))
      value <- f(par, information = TRUE)
      # a likelihood, and sums of its gradient and of the information: equal for equal results
      cat(sprintf("| %.0f | %d | %s | %.2f | %s | %.6f %.6f %.6f |\n", n, p, grouped, made,
                  paste(sprintf("%.2f", ms), collapse = " | "), as.numeric(f(par, FALSE)),
                  sum(attr(f(par), "gradient")), sum(attr(value, "information"))))
      rm(f)
      gc()
    }
    rm(x, y)
  }
}
