# Logistic regression by NUTS on one device and on all devices of its kind, 500 + 500 iterations:
# in one process (`devices = "all"`), in workers that cl_sample() starts (`workers = 2`), and in
# workers that wait in a cluster already. Also the time until a new worker has loaded the package
# and found its device. Run by itself: Rscript bench/sampling-devices.R [shape ...], by default
# 1e5x10 and 1e6x100, on a machine with two devices. Each time is the second of two runs.

library(statcl)
shapes <- commandArgs(TRUE)
if (length(shapes) == 0L) shapes <- c("1e5x10", "1e6x100")
count <- length(statcl:::alike_devices(statcl:::current_device()))
cat("devices of the kind in use:", count, "\n")
print(cl_devices()[c("id", "name", "default")])
elapsed <- function(code) system.time(code)[["elapsed"]]

for (i in 1:3) {
  took <- elapsed({
    cluster <- parallel::makePSOCKcluster(1)
    parallel::clusterCall(cluster, function() statcl::cl_available())
  })
  cat(sprintf("a worker has started, loaded the package and found its device: %.2f s\n", took))
  parallel::stopCluster(cluster)
}

waiting <- parallel::makePSOCKcluster(max(2L, count))
for (shape in shapes) {
  size <- as.numeric(strsplit(shape, "x")[[1L]])
  set.seed(1)
  x <- matrix(rnorm(prod(size)), size[1L])
  y <- as.double(runif(size[1L]) < plogis(3 * x[, 1L] - 2 * x[, 2L] + 1))
  likelihood <- cl_likelihood("bernoulli_logit", y, x)
  run <- function(chains, ...) {
    draw <- function() {
      cl_sample(likelihood, list(alpha = 0, beta = numeric(size[2L])), chains = chains,
                warmup = 500, iter = 500, seed = 1, refresh = 0, check_gradient = FALSE, ...)
    }
    suppressWarnings({
      draw()
      elapsed(draw())
    })
  }
  for (chains in c(4, 16)) {
    cat(sprintf("%s, %2d chains, s: one device %.2f", shape, chains, run(chains, batch = TRUE)))
    cat(sprintf(", all devices in one process %.2f", run(chains, batch = TRUE, devices = "all")))
    cat(sprintf(", %d new workers %.2f", length(waiting), run(chains, workers = length(waiting))))
    cat(sprintf(", one waiting worker %.2f", run(chains, workers = waiting[1L])))
    cat(sprintf(", %d waiting workers %.2f\n", length(waiting), run(chains, workers = waiting)))
  }
}
parallel::stopCluster(waiting)
