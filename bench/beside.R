# What other processes that compute on some cores cost the host engine, by their priority and by
# threads of BLAS: why threads that build kernels get what others leave, and why BLAS leaves them a
# core nevertheless (scl_thread_give_way() in src/base/threads.h). Seconds of calls on the host,
# medians of three, in processes with that many threads of BLAS; then the part of a core that the
# others have had meanwhile.
#
#   Rscript bench/beside.R [threads, by default all cores] [priority]
#
# With fewer threads than cores, all processes are bound to that many of them. Needs Linux with
# nice, chrt and taskset; OpenBLAS.

given <- commandArgs(TRUE)
self <- sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE))
if (identical(given[1L], "one")) {
  suppressMessages(library(statcl))
  cl_use(engine = "host")
  set.seed(1)
  x <- matrix(runif(4000), 2000)
  y <- sin(6 * x[, 1]) + x[, 2] + rnorm(2000) / 10
  of <- cl_gp_likelihood(y, x, k_exp_quad())
  a <- lapply(c(512, 1000, 2000, 4000), function(n) diag(n) + 0.5)
  times <- function(n, f) function() for (i in seq_len(n)) f()
  calls <- list("60 x chol 512" = times(60, function() cl_chol(a[[1L]])),
                "15 x chol 1000" = times(15, function() cl_chol(a[[2L]])),
                "4 x chol 2000" = times(4, function() cl_chol(a[[3L]])),
                "chol 4000" = function() cl_chol(a[[4L]]),
                "matmul 2000" = function() cl_matmul(a[[3L]], a[[3L]]),
                "cl_gp() 500" = function() cl_gp(x[1:500, ], y[1:500], starts = 1),
                "cl_gp() 1000" = function() cl_gp(x[1:1000, ], y[1:1000], starts = 1),
                "likelihood 2000" = function() of(c(sd = 1, lengthscale = 0.5, noise = 0.1)))
  if (identical(given[2L], "names")) {
    cat(names(calls), sep = " | ")
    quit()
  }
  for (f in calls) {
    f()
    cat(sprintf("%.2f ", stats::median(replicate(3L, system.time(f())[[3L]]))))
  }
  quit()
}

most <- as.integer(c(given, parallel::detectCores())[1L])
kinds <- c("none", if (length(given) > 1L) given[-1L] else
  c("nice -n 0", "nice -n 10", "nice -n 19", "chrt -i 0"))
bound <- sprintf("taskset -c 0-%d", most - 1L)
rscript <- paste(file.path(R.home("bin"), "Rscript"), shQuote(self), "one")
head <- system(paste(rscript, "names"), intern = TRUE)
cat("| others | threads of BLAS |", head, "| others' part |\n")
cat("|---|", strrep("---:|", 2L + length(strsplit(head, "|", fixed = TRUE)[[1L]])), "\n", sep = "")
others <- max(1L, most %/% 8L)
for (kind in kinds) {
  for (threads in unique(c(most, max(1L, most - others)))) {
    burn <- sprintf("%s %s sh -c 'while :; do :; done' & p=\"$p $!\"; ", bound, kind)
    # the processor time of the others, in hundredths of a second
    used <- "for i in $p; do awk '{print $14 + $15}' /proc/$i/stat; done; [ -z \"$p\" ] || kill $p"
    run <- sprintf("OPENBLAS_NUM_THREADS=%d %s %s; echo; %s", threads, bound, rscript, used)
    if (kind != "none") run <- paste0(strrep(burn, others), run)
    seconds <- system.time(out <- system2("sh", c("-c", shQuote(run)), stdout = TRUE))[[3L]]
    part <- sum(as.numeric(out[-1L])) / 100 / seconds
    cat(sprintf("| %s | %d | %s | %.2f |\n", if (kind == "none") kind else paste(others, kind),
                threads, gsub(" ", " | ", trimws(out[1L])), part))
  }
}
