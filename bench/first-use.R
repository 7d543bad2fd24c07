# What the first use of each topic costs, kernels built included: seconds since the data was
# made; below, the programs that the driver has built for it: when each began, counted from the
# first one, and its seconds (several are built at the same time, so that these add up to more). Not
# a family of ./dev bench, as each topic can be first only once in a session:
#
#   CUDA_CACHE_PATH=$(mktemp -d) Rscript bench/first-use.R    a machine new to statcl (NVIDIA)
#
# and the same again with that folder for a second session. Names of topics run only these.

library(statcl)
cl_use(engine = "device")
set.seed(1)
a <- crossprod(matrix(rnorm(2000^2), 2000))
x <- matrix(rnorm(1e5 * 20), 1e5)
y <- rbinom(1e5, 1, 0.5)
points <- matrix(runif(4000), 2000)
topics <- list(
  chol = function() cl_chol(a),
  gradient = function() cl_chol_adjoint(cl_chol(a, lower = TRUE), a),
  likelihood = function() {
    cl_likelihood("bernoulli_logit", y, x)(alpha = 0, beta = numeric(20))
  },
  cl_glm = function() cl_glm(y ~ x, family = "bernoulli_logit"),
  gp = function() {
    f <- cl_gp_likelihood(points[, 1], points, k_matern32() + k_white())
    f(c(sd1 = 1, lengthscale1 = 1, sd2 = 1, noise = 1))
  })
chosen <- commandArgs(TRUE)
if (length(chosen) == 0L) chosen <- names(topics)
start <- proc.time()[["elapsed"]]
built <- 0L
for (topic in chosen) {
  before <- proc.time()[["elapsed"]]
  invisible(topics[[topic]]())
  now <- proc.time()[["elapsed"]]
  cat(sprintf("%-12s %6.2f s, %6.2f s since the start\n", topic, now - before, now - start))
  builds <- as.data.frame(.Call(statcl:::r_builds), col.names = c("program", "start", "seconds"))
  new <- builds[seq_len(nrow(builds)) > built, ]
  built <- nrow(builds)
  cat(sprintf("    %-36s %6.2f %6.2f\n", new$program, new$start, new$seconds), sep = "")
}
