# What each parameter of kernels gains over its default on this device: for every permitted value
# the time of several problems that it governs, against the default in the same run, values taken in
# turn, least of several rounds. Run by itself:
# Rscript bench/tune-kernels.R [rounds, 3] [parameters, comma]
suppressMessages(library(statcl))
args <- commandArgs(TRUE)
rounds <- if (length(args) > 0L) as.integer(args[1L]) else 3L
if (!cl_available()) {
  cat("no OpenCL device in use\n")
  quit()
}
cl_use(engine = "device")
seconds <- getFromNamespace("least_seconds", "statcl")

numbers <- function(m, n) as_cl(matrix(sin(0.37 * seq_len(m * n)^2), m, n))
product <- function(m, n, k) {
  a <- numbers(m, k)
  b <- numbers(k, n)
  function() {
    cl_matmul(a, b)
    cl_sync()
  }
}
likelihood <- function(n, p) {
  x <- matrix(sin(0.37 * seq_len(n * p)^2), n, p)
  f <- cl_likelihood("bernoulli_logit", as.numeric(x[, 1L] > 0.3), x)
  function() f(alpha = 0, beta = numeric(p))
}
total <- function(n) {
  x <- numbers(n, 1L)
  function() sum(x)
}
long <- list(c(40, 40, 1e5), c(100, 100, 1e5), c(10, 10, 1e6), c(200, 200, 2e4), c(64, 64, 1e4),
             c(20, 400, 5e4))
thin <- list(c(2000, 3, 2000), c(8000, 8, 8000), c(500, 2, 500), c(20000, 4, 1000))
square <- list(c(500, 500, 500), c(1000, 1000, 1000), c(1500, 1500, 500), c(2000, 2000, 2000),
               c(4000, 4000, 400), c(4000, 4000, 4000), c(3000, 600, 1500))
rows <- list(c(1e4, 10), c(1e5, 10), c(1e6, 10), c(1e5, 50))
more <- list(c(1e4, 30), c(1e5, 30), c(1e6, 30), c(1e5, 50)) # not of one launch
wide <- list(c(2e4, 150), c(1e5, 150), c(5e4, 300), c(4e5, 200))
problems <- list(
  gemm_split_groups = list(product, long), gemm_thin_groups = list(product, thin),
  gemm_large_groups = list(product, square), gemm_small_cost = list(product, square),
  gemm_large_cost = list(product, square), gemm_cpu_tiles = list(product, square),
  glm_more_groups = list(likelihood, more), glm_split_groups = list(likelihood, wide),
  glm_rows_groups = list(likelihood, rows), sum_groups = list(total, list(1e5, 1e6, 1e7, 1e8)),
  sum_cpu_groups = list(total, list(1e5, 1e6, 1e7)))

own <- getFromNamespace("tunables", "statcl")()
device <- cl_devices()
cpu <- identical(device$type[device$default], "cpu")
use <- if (length(args) > 1L) strsplit(args[2L], ",")[[1L]] else
  intersect(names(problems), own$name[bitwAnd(as.integer(own$kinds), if (cpu) 2L else 1L) > 0L])
cat(device$name[device$default], "\n")
for (name in use) {
  k <- match(name, own$name)
  values <- own$permitted[[k]]
  for (size in problems[[name]][[2L]]) {
    run <- do.call(problems[[name]][[1L]], as.list(size))
    times <- vapply(seq_len(rounds), function(round) {
      vapply(values, function(value) {
        old <- options(statcl.thresholds = stats::setNames(value, name))
        on.exit(options(old))
        cl_thresholds() # has the device use it
        seconds(run)
      }, 0)
    }, numeric(length(values)))
    least <- apply(times, 1L, min)
    gains <- least[match(own$default[k], values)] / least
    cat(sprintf("%-18s %-20s %9.1f us  %s\n", name, paste(size, collapse = " x "),
                1e6 * least[match(own$default[k], values)],
                paste(sprintf("%g: %.2f", values, gains), collapse = "  ")))
    rm(run)
    invisible(gc())
  }
}
