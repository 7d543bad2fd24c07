# cl_glm() by blocks: rows from a function that generates them, against glm.fit() of a part of the
# rows (its time grows in proportion) and, if it is installed, biglm::bigglm(). Rows, columns and
# rows of a block may be given: Rscript bench/glm-stream.R 1e7 10 1e6

suppressMessages(library(statcl))
given <- as.numeric(commandArgs(TRUE))
n <- if (length(given) > 0L) given[1L] else 1e7
p <- if (length(given) > 1L) given[2L] else 10
size <- if (length(given) > 2L) given[3L] else 1e6

block_of <- function(i, rows) {
  set.seed(i)
  x <- matrix(stats::rnorm(rows * p), rows, dimnames = list(NULL, paste0("x", seq_len(p))))
  eta <- as.vector(x %*% (seq_len(p) / p / 3)) - 1
  data.frame(y = as.double(stats::runif(rows) < stats::plogis(eta)), x)
}
source_of <- function(n) {
  at <- 0
  function(reset = FALSE) {
    if (reset) at <<- 0 else if (at < n) {
      rows <- min(size, n - at)
      at <<- at + rows
      block_of(at / size, rows)
    }
  }
}
formula <- stats::reformulate(paste0("x", seq_len(p)), "y")

# The largest resident memory of this process, MB (Linux).
peak <- function() {
  line <- tryCatch(grep("VmHWM", readLines("/proc/self/status"), value = TRUE),
                   error = function(e) "", warning = function(w) "")
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}
show <- function(what, seconds) {
  cat(sprintf("%-34s %8.1f s   peak memory %6.0f MB\n", what, seconds, peak()))
}
cat(sprintf("%.0f x %.0f in blocks of %.0f rows; all of it %.0f MB\n", n, p, size,
            n * (p + 1) * 8 / 1e6))
read <- source_of(n)
show("one pass over the source", system.time({
  read(reset = TRUE)
  while (!is.null(read())) NULL
})[[3L]])
engines <- c("host", if (cl_available()) "device")
for (engine in engines) {
  cl_use(engine = engine)
  invisible(cl_glm(formula, source_of(2 * size), block = size)) # builds kernels
  time <- system.time(fit <- cl_glm(formula, source_of(n), progress = FALSE))[[3L]]
  show(paste("cl_glm() by blocks,", engine), time)
  if (engine == engines[1L]) first <- fit
  cat(sprintf("  %d iterations, largest difference of a coefficient from the first: %.1e\n",
              fit$iterations, max(abs(coef(fit) - coef(first)))))
}
if (requireNamespace("biglm", quietly = TRUE)) {
  show("biglm::bigglm()", system.time(
    peer <- biglm::bigglm(formula, source_of(n), family = stats::binomial(), maxit = 20))[[3L]])
  cat(sprintf("  largest difference of a coefficient: %.1e\n", max(abs(coef(peer) - coef(fit)))))
}
part <- block_of(1, min(size, n))
x <- cbind(1, as.matrix(part[-1L]))
show(sprintf("glm.fit() of %.0f rows in memory", nrow(x)),
     system.time(stats::glm.fit(x, part$y, family = stats::binomial()))[[3L]])

# Is reading hidden behind computing? A source that waits before each block, as for a disk or a
# network, and takes no processor time: what of the waits does not lengthen the fit.
cat("\nsource that waits; seconds by the clock\n")
few <- 6L
rows <- min(size, 4e4)
wide <- lapply(seq_len(few), block_of, rows = rows)
waiting <- function(wait) {
  at <- 0
  function(reset = FALSE) {
    if (reset) at <<- 0 else if (at < few) {
      at <<- at + 1
      if (wait > 0) Sys.sleep(wait)
      waits <<- waits + wait
      wide[[at]]
    }
  }
}
options(statcl.glm_cache = 0)
for (engine in engines) {
  cl_use(engine = engine)
  timed <- function(wait) {
    waits <<- 0
    system.time(cl_glm(formula, waiting(wait), progress = FALSE))[[3L]]
  }
  timed(0)
  alone <- timed(0)
  for (wait in c(0.05, 0.1, 0.2)) {
    both <- timed(wait)
    cat(sprintf("%-8s fit %.1f, waits %.1f, both %.1f: %.1f hidden\n", engine, alone, waits, both,
                alone + waits - both))
  }
}
