# What other processes that compute on some cores cost the host engine, by their priority and by
# threads of BLAS: why threads that build kernels get what others leave (scl_thread_give_way() in
# src/base/threads.c), and why BLAS leaves cores to those that get more (r_blas_leave() in
# src/r/context.c). Seconds of the host's calls, medians of four, in processes with that many
# threads; then the part of a core that the others have had meanwhile.
#
#   Rscript bench/beside.R [most threads, by default all cores]
#
# Needs Linux, a shell with nice and chrt; OpenBLAS.

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
    "cl_gp_likelihood(), 4000 | others' part |\n|---|---:|---:|---:|---:|---:|---:|\n")
others <- max(1L, most %/% 8L)
for (kind in c("none", "nice -n 0", "nice -n 10", "nice -n 19", "chrt -i 0")) {
  for (threads in unique(c(most, most - others, 1L))) {
    burn <- sprintf("%s sh -c 'while :; do :; done' & p=\"$p $!\"; ", kind)
    # the processor time of the others, in hundredths of a second
    used <- "for i in $p; do awk '{print $14 + $15}' /proc/$i/stat; done; [ -z \"$p\" ] || kill $p"
    run <- sprintf("OPENBLAS_NUM_THREADS=%d %s/bin/Rscript %s one; echo; %s", threads, R.home(),
                   shQuote(self), used)
    if (kind != "none") run <- paste0(strrep(burn, others), run)
    seconds <- system.time(out <- system2("sh", c("-c", shQuote(run)), stdout = TRUE))[[3L]]
    part <- sum(as.numeric(out[-1L])) / 100 / seconds
    cat(sprintf("| %s | %d | %s | %.2f |\n", if (kind == "none") kind else paste(others, kind),
                threads, paste(sprintf("%.2f", as.numeric(strsplit(out[1L], " ")[[1L]])),
                               collapse = " | "), part))
  }
}
