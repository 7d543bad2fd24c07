# Large results in recycled memory (src/r/altrep_result.c): ordinary vectors to R, memory that
# serves again.

n <- 1025 # 8 MiB and a little
kept <- function() cl_memory()$kept[1]

# Whether this system has recycled memory at all.
recycles <- function() {
  cl_free()
  x <- as.matrix(on_host(as_cl(matrix(0, n, n))))
  rm(x)
  gc()
  found <- kept() > 0
  cl_free()
  found
}

test_each_engine("large results behave like any matrix", {
  a <- matrix(as.double(seq_len(n * n)), n, n)
  x <- as_cl(a)
  b <- as.matrix(x)
  expect_identical(b, a)
  expect_identical(typeof(b), "double")
  expect_identical(dim(b), c(1025L, 1025L))
  d <- b
  d[3, 5] <- -1
  expect_identical(b, a)
  expect_identical(d[3, 5], -1)
  d[3, 5] <- a[3, 5]
  expect_identical(d, a)
  expect_identical(sum(b), sum(a))
  expect_identical((b + 1)[n, n], a[n, n] + 1)
  expect_identical(crossprod(b[, 1:2], b[, 3]), crossprod(a[, 1:2], a[, 3]))
  expect_identical(b[c(1, n * n)], a[c(1, n * n)])
  expect_identical(range(b), range(a))
  v <- as.vector(x)
  expect_null(dim(v))
  expect_identical(v, as.vector(a))
  y <- x
  dimnames(y) <- list(NULL, paste0("c", seq_len(n)))
  expect_identical(colnames(as.matrix(y)), paste0("c", seq_len(n)))
  expect_identical(as.matrix(as_cl(b)), a)
  cl_free(x)
})

test_that("they are saved and restored as ordinary vectors", {
  b <- as.matrix(on_host(as_cl(matrix(as.double(seq_len(n * n)), n, n))))
  file <- tempfile(fileext = ".rds")
  on.exit(unlink(file))
  saveRDS(b, file, compress = FALSE)
  expect_identical(readRDS(file), b)
  expect_identical(unserialize(serialize(b, NULL)), b)
  result <- run_r(c(
    sprintf("b <- readRDS('%s')", file),
    "stopifnot(identical(dim(b), c(1025L, 1025L)), b[2] == 2, b[1025 * 1025] == 1025 * 1025)",
    "stopifnot(!'statcl' %in% loadedNamespaces())",
    "cat('done')"))
  expect_match(paste(result$output, collapse = " "), "done")
})

test_that("memory of dropped results is reused, reported, and freed on request", {
  skip_if_not(recycles(), "no recycled memory on this system")
  x <- on_host(as_cl(matrix(1, n, n)))
  b <- as.matrix(x)
  expect_identical(kept(), 0)
  rm(b)
  gc()
  size <- kept()
  expect_gte(size, 8 * n * n)
  b <- as.matrix(x)
  expect_identical(kept(), 0)
  expect_true(all(b == 1))
  old <- options(statcl.recycle = FALSE)
  on.exit(options(old))
  d <- as.matrix(x)
  rm(b, d)
  gc()
  expect_identical(kept(), size)
  cl_free()
  expect_identical(kept(), 0)
  cl_free(x)
})

test_that("garbage of large results does not pile up", {
  skip_if_not(recycles(), "no recycled memory on this system")
  skip_if_not(file.exists("/proc/self/status"))
  peak <- function() {
    line <- grep("^VmHWM", readLines("/proc/self/status"), value = TRUE)
    1024 * as.numeric(gsub("[^0-9]", "", line))
  }
  x <- on_host(as_cl(matrix(1, n, n)))
  before <- peak()
  for (i in 1:500) b <- as.matrix(x) # 4 GB, if nothing were collected
  expect_lt(peak() - before, 2e9)
  cl_free(x)
  rm(b)
  cl_free()
  expect_identical(kept(), 0)
})

test_that("they outlive the package's namespace", {
  skip_on_cran()
  in_new_session(c(
    "b <- as.matrix(with_cl(as_cl(matrix(3, 1025, 1025)), engine = 'host'))",
    "unloadNamespace('statcl')",
    "stopifnot(all(b == 3), identical(dim(b), c(1025L, 1025L)))",
    "d <- b + 1",
    "rm(b)",
    "for (i in 1:3) gc()",
    "stopifnot(sum(d) == 4 * 1025^2)",
    "library(statcl)",
    "b <- as.matrix(with_cl(as_cl(d), engine = 'host'))",
    "stopifnot(identical(b, d))"))
})
