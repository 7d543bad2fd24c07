# Sparse matrices on a device: products of a matrix and of its transpose with a vector and with 8
# columns, crossproducts, and logistic regression with a sparse design, end to end, on the device,
# on the host engine, and by iteratively reweighted least squares in plain R with package Matrix.
# Elements are in random places, or, in lines with "local", near the diagonal, as in designs of
# splines, of finite elements and of sorted groups: ten in each row, in 30 columns around it.
#
#   Rscript bench/sparse-device.R [scale] [all]      from the top folder, with statcl installed
#
# scale: 1 (default) is 1e6 x 1e5 with 1e7 elements; 0.01 is for a CPU device. Each
# line has the time on the device, the bytes that must be read or written once, and their rate as a
# share of the rate of a copy, measured here. Gathers are not counted there, and limit what is
# reached: each takes sectors of 32 bytes, from the cache at best. The second rate counts them.
# `all`: also the fits on the host with most columns, whose dense information takes a host many
# minutes. Peers: peers_sparse_device.py.
arguments <- commandArgs(TRUE)
scale <- suppressWarnings(as.numeric(arguments[1L]))
if (is.na(scale)) scale <- 1
everything <- "all" %in% arguments
Sys.setenv(STATCL_BENCH_SCALE = format(scale))
source("bench/common.R")
suppressMessages(library(Matrix))
bench_open("sparse-device")
cat(bench$device$name, ", statcl ", format(packageVersion("statcl")), "\n", sep = "")
set.seed(1)

random_sparse <- function(m, n, count) {
  sparseMatrix(sample.int(m, count, TRUE), sample.int(n, count, TRUE), x = rnorm(count),
               dims = c(m, n))
}

# Row i has elements in one of each three columns around i n / m.
local_sparse <- function(m, n, count) {
  each <- count / m
  from <- rep(floor(seq(0, n - 3 * each, length.out = m)), each = each)
  j <- from + rep(3 * seq_len(each), m) - sample.int(3L, count, TRUE) + 1
  sparseMatrix(rep(seq_len(m), each = each), j, x = rnorm(count), dims = c(m, n))
}

n <- round(1e6 * scale)
copied <- as_cl(matrix(rnorm(1e6), 1e4)[, rep_len(1:100, max(100, round(1e4 * scale)))])
ms <- time_device(function() cl_eval(copied * 2), 15L, free_value)
copy <- 16 * length(copied) / ms$device * 1e-6
cat(sprintf("copy: %.0f GB/s\n", copy))
cl_free(copied)

line <- function(operation, size, run, bytes, sectors = 0) {
  ms <- time_device(run, 15L, free_value)
  rate <- bytes / ms$device * 1e-6
  all <- rate + 32 * sectors / ms$device * 1e-6
  peers <- bench$peers[bench$peers$operation == operation & bench$peers$size == size, ]
  cat(sprintf(paste("%-29s %-20s %9.4f ms  wall %9.4f ms  %6.1f MB  %6.0f GB/s  %3.0f%% of copy ",
                    "%6.0f GB/s  %s\n"),
              operation, size, ms$device, ms$wall, bytes / 1e6, rate, 100 * rate / copy, all,
              paste(sprintf("%s %.4g ms", peers$peer, peers$ms), collapse = ", ")))
}

# Elements have 12 bytes, starts of rows 4.
for (design in c("1e5", "1e5 local", "1e4")) {
  p <- round(as.numeric(sub(" .*", "", design)) * scale)
  near <- grepl("local", design)
  s <- (if (near) local_sparse else random_sparse)(n, p, 10 * n)
  count <- length(s@x)
  size <- sprintf("%.0fx%.0f%s", n, p, if (near) " local" else "")
  start <- seconds()
  x <- as_cl(s)
  cl_sync()
  cat(sprintf("%s, %d elements, to the device: %.3f s\n", size, count, seconds() - start))
  for (k in c(1, 8)) {
    b <- as_cl(matrix(rnorm(p * k), p))
    r <- as_cl(matrix(rnorm(n * k), n))
    dense <- 8 * (n + p) * k
    name <- function(text) paste0(text, if (k == 1) "" else ", 8 columns")
    sectors <- count * ceiling(k / 4)
    line(name("product"), size, function() x %*% b, 12 * count + 4 * n + dense, sectors)
    line(name("transposed product"), size, function() crossprod(x, r), 12 * count + 4 * p + dense,
         sectors)
  }
  found <- as.matrix(x %*% b)
  cat(sprintf("largest relative difference from Matrix: %.1e\n",
              max(abs(found - as.matrix(s %*% as.matrix(b)))) / max(abs(found))))
}
line("crossproduct", size, function() crossprod(x), 24 * count + 8 * p^2)
cl_free(crossprod(x))
rm(x)

# ---- logistic regression -------------------------------------------------------------------------

plain_fit <- function(x, y) {
  beta <- numeric(ncol(x))
  for (iteration in 1:50) {
    mu <- plogis(as.vector(x %*% beta))
    w <- mu * (1 - mu)
    root <- chol(as.matrix(crossprod(sqrt(w) * x)))
    half <- backsolve(root, as.vector(crossprod(x, y - mu)), transpose = TRUE)
    beta <- beta + backsolve(root, half)
    if (sum(half^2) < 1e-16) break
  }
  list(coefficients = beta, vcov = chol2inv(root))
}

elapsed <- function(run) {
  gc()
  start <- seconds()
  value <- run()
  list(value = value, seconds = seconds() - start)
}

for (p in round(c(1e3, 1e4) * scale)) {
  s <- random_sparse(n, p, 10 * n)
  y <- as.double(runif(n) < plogis(as.vector(s %*% rnorm(p, sd = 0.3))))
  on <- function(engine) {
    function() with_cl(engine = engine, cl_glm(s, y, "bernoulli_logit", intercept = FALSE))
  }
  elapsed(on("device")) # kernels are built
  device <- elapsed(on("device"))
  size <- sprintf("%.0fx%.0f", n, p)
  cat(sprintf("logistic regression, %s: device %.2f s (%d iterations)\n", size, device$seconds,
              device$value$iterations))
  if (p > 1000 && !everything) next
  host <- elapsed(on("host"))
  plain <- elapsed(function() plain_fit(s, y))
  apart <- function(a, b) max(abs(unname(a) - unname(b)))
  cat(sprintf("logistic regression, %s: host %.2f s, Matrix in plain R %.2f s; %s %.1e and %.1e\n",
              size, host$seconds, plain$seconds, "coefficients differ from the device's by",
              apart(coef(host$value), coef(device$value)),
              apart(plain$value$coefficients, coef(device$value))))
}
