# Whole runs of many chains of a logistic regression on the device in use: seconds of four runs of
# 500 + 500 iterations each, the first of which may build kernels, and gradients. For two versions
# of the package in turn name their libraries by R_LIBS.
#
#   Rscript bench/many-chains.R [rows, 1e4] [numbers of chains, 4,32,64]

given <- c("1e4", "4,32,64")
given[seq_along(commandArgs(TRUE))] <- commandArgs(TRUE)
suppressMessages(library(statcl))
options(statcl.quiet = TRUE)
cl_use(engine = "device")
n <- as.numeric(given[1L])
set.seed(1)
x <- matrix(rnorm(n * 10), n)
y <- as.double(runif(n) < plogis(3 * x[, 1L] - 2 * x[, 2L] + 1))
invisible(.Call(statcl:::r_profiling, FALSE))
f <- cl_likelihood("bernoulli_logit", y, x)
for (chains in as.numeric(strsplit(given[2L], ",")[[1L]])) {
  times <- vapply(1:4, function(run) {
    system.time(fit <<- cl_sample(f, list(alpha = 0, beta = numeric(10)), chains = chains,
                                  warmup = 500, iter = 500, seed = 1, batch = chains > 1))[[3L]]
  }, 0)
  cat(sprintf("%g rows, %g chains: %s s, %.0f gradients\n", n, chains,
              paste(format(times, digits = 3), collapse = " "), sum(fit$evaluations)))
}
