# What a low-priority process on each of some cores costs the host engine, by threads of BLAS: why
# BLAS leaves cores to threads that build kernels (r_blas_leave() in src/r/context.c). Seconds of
# the host's calls, medians of four, in processes with that many threads.
#
#   Rscript bench/beside.R [most threads, by default all cores]
#
# Needs a shell with nice; OpenBLAS.

given <- commandArgs(TRUE)
self <- sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE))
if (identical(given[1L], "one")) {
  suppressMessages(library(statcl))
  cl_use(engine = "host")
  set.seed(1)
  x <- matrix(runif(8000), 4000)
  y <- sin(6 * x[, 1]) + x[, 2] + rnorm(4000) / 10
  of <- cl_gp_likelihood(y, x, k_exp_quad())
  calls <- list(function() cl_gp(x[1:1000, ], y[1:1000], starts = 1),
                function() cl_chol(diag(4000) + 0.5),
                function() cl_matmul(matrix(0.5, 3000, 3000), matrix(0.5, 3000, 3000)),
                function() of(c(sd = 1, lengthscale = 0.5, noise = 0.1)))
  for (f in calls) {
    f()
    cat(stats::median(replicate(4L, system.time(f())[[3L]])), "")
  }
  quit()
}

most <- as.integer(c(given, parallel::detectCores())[1L])
cat("| others | threads of BLAS | cl_gp(), 1000 points | cl_chol(), 4000 | cl_matmul(), 3000 |",
    "cl_gp_likelihood(), 4000 |\n|---:|---:|---:|---:|---:|---:|\n")
for (others in c(0L, max(1L, most %/% 8L))) {
  for (threads in unique(c(most, most - others, 1L))) {
    burn <- strrep("nice -n 10 sh -c 'while :; do :; done' & p=\"$p $!\"; ", others)
    run <- sprintf("OPENBLAS_NUM_THREADS=%d %s/bin/Rscript %s one; [ -z \"$p\" ] || kill $p",
                   threads, R.home(), shQuote(self))
    times <- strsplit(system2("sh", c("-c", shQuote(paste0(burn, run))), stdout = TRUE), " ")[[1L]]
    cat(sprintf("| %d | %d | %s |\n", others, threads,
                paste(sprintf("%.2f", as.numeric(times)), collapse = " | ")))
  }
}
