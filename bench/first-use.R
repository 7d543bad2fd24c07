# What the first use of each topic costs, kernels built included: seconds since the data was
# made; below, the programs that the driver has built for it: when each began, counted from the
# first one, and its seconds (several are built at the same time, so that these add up to more). Not
# a family of ./dev bench, as each topic can be first only once in a session:
#
#   CUDA_CACHE_PATH=$(mktemp -d) Rscript bench/first-use.R    a machine new to statcl (NVIDIA)
#
# and the same again with that folder for a second session. Names of topics run only these.
#
#   Rscript bench/first-use.R --sessions    a table: a machine new to statcl, and two later sessions
#
# with folders that are empty at first for NVIDIA's cache and that of cl_cache().

if ("--sessions" %in% commandArgs(TRUE)) {
  folder <- tempfile("first-use")
  dir.create(folder)
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  environment <- paste0(c("CUDA_CACHE_PATH=", "R_USER_CACHE_DIR=", "STATCL_CACHE="),
                        c(folder, folder, "TRUE"))
  Sys.unsetenv("POCL_CACHE_DIR")
  seconds <- sapply(1:3, function(session) {
    lines <- system2(file.path(R.home("bin"), "Rscript"), shQuote(script), stdout = TRUE,
                     stderr = FALSE, env = environment)
    lines <- grep(" since the start$", lines, value = TRUE)
    structure(as.numeric(sub("^[^ ]+ +([0-9.]+) s,.*", "\\1", lines)),
              names = sub(" .*", "", lines))
  })
  unlink(folder, recursive = TRUE)
  device <- statcl::cl_devices()
  device <- device[order(!device$default), ][1L, ] # none is marked: the first
  cat(sprintf("First results in seconds on %s, %s:\n\n", device$name, device$driver))
  cat("| topic | new machine | second session | third |", "|---|---:|---:|---:|", sep = "\n")
  cat(sprintf("| %s | %.2f | %.2f | %.2f |\n", rownames(seconds), seconds[, 1L], seconds[, 2L],
              seconds[, 3L]), sep = "")
  quit()
}

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
