# Live bytes: dropped objects are freed, too large ones rejected, and nothing leaks.

points <- matrix(sin(1:60), 30)
response <- cos(1:30)

# What leaves no memory behind, calls that fail among it.
leaving_nothing <- expression(
  `dropped matrices` = for (i in 1:20) x <- as_cl(matrix(0, 100, 100)),
  matrices = {
    x <- as_cl(diag(3))
    y <- x %*% x + 1
    try(cl_chol(-x), silent = TRUE)
    y[1:2, ]
  },
  arithmetic = {
    x <- as_cl(matrix(runif(50), 10))
    y <- exp(x) + t(t(x))
    cl_eval(y, cl_reduce(y, margin = "rows"))
    z <- y[2:3, ] * 2
    z[1, 1] <- 0
    sum(z)
    range(y - 1)
    w <- x %*% rep(1, 5) + 1
    rowMeans(w * w)
    pmax(x, 0.5, na.rm = TRUE)
  },
  `a long graph that nobody needed` = {
    x <- as_cl(matrix(1, 3, 3))
    for (k in 1:500) x <- x + exp(x)
    y <- x * 2
    cl_free(y)
  },
  `functions of elements` = {
    x <- as_cl(matrix(runif(40), 8))
    y <- cl_map(function(x, i) exp(x) * i, x)
    cl_reduce(y, function(y, j) y / j, combine = function(u, v) u + v, margin = "rows")
    cl_map(function(x) list(x + 1, x^2), diag(3))
    try(cl_map(function(x) if (x > 0) 1 else 2, x), silent = TRUE)
    for (k in 1:3) cl_map(function(x, y) x * y + k, matrix(1:6, 2), 2)
  },
  batches = {
    d <- as_cl(array(rnorm(3 * 3 * 50), c(3, 3, 50)))
    x <- cl_batch_inverse(d)
    d[, , 2]
    suppressWarnings(cl_batch_chol(d))
  },
  `likelihoods of regressions` = {
    f <- cl_likelihood("poisson_log", 1:30, points)
    f(0, c(0, 0))
    cl_glm_lpdf("poisson_log", 1:30, as_cl(points), 0, c(0, 0), gradient = "x")
    try(f(0, c(NA, 0)), silent = TRUE)
    try(cl_glm_lpdf("poisson_log", -1, points, 0, c(0, 0)), silent = TRUE)
  },
  regressions = {
    cl_glm(am ~ wt, mtcars)
    cl_glm(factor(gear) ~ wt, mtcars, "ordered_logistic", weights = hp)
  },
  covariances = cl_cov(as_cl(points), kernel = k_exp_quad()),
  `likelihoods of processes` = {
    f <- cl_gp_likelihood(response, as_cl(points), k_exp_quad(), "linear", objective = "loo")
    f(c(1, 1, 0.1))
    gp_condition(f, c(1, 1, 0.1))$predict(points, "covariance")
    try(cl_gp_likelihood(response, points, k_matern52())(c(1, 1, -1)), silent = TRUE)
  },
  processes = {
    gp_states$list <- list()
    predict(cl_gp(points, response, fixed = c(noise = 0.3)), points, se.fit = TRUE)
    gp_states$list <- list()
  })

test_each_engine("what is dropped returns its memory", {
  gp_states$list <- list() # of tests before this one
  for (name in names(leaving_nothing)) {
    code <- leaving_nothing[[name]]
    expect_no_leak(eval(code), name)
  }
})

test_each_engine("cl_free() returns memory at once, and may be called twice", {
  before <- live_bytes()
  x <- as_cl(matrix(0, 100, 100))
  cl_free(x)
  cl_free(x)
  expect_equal(live_bytes(), before)
  expect_fault(as.matrix(x), "stale")
})

test_that("making and dropping many matrices stays within 64 MB", {
  skip_on_cran()
  data <- matrix(0, 1250, 1000)
  count <- as.integer(Sys.getenv("STATCL_TEST_CYCLES", full_or_quick("100", "30")))
  each_engine({
    start <- live_bytes()
    most <- 0
    for (i in seq_len(count)) {
      x <- as_cl(data)
      most <- max(most, .Call(r_memory, current_device())[1L])
    }
    rm(x)
    expect_lt(most - start, 64e6)
    expect_equal(live_bytes(), start)
  })
})

test_that("garbage of many small operations stays within its limit", {
  skip_on_cran()
  skip_if_not(file.exists("/proc/self/statm"), "no /proc/self/statm")
  run <- run_r(c(
    "suppressMessages(library(statcl))",
    "cl_use(engine = 'host')",
    "resident <- function() {",
    "  pages <- scan('/proc/self/statm', quiet = TRUE)[2L]",
    "  pages * 4096 / 2^20",
    "}",
    "x <- as_cl(matrix(0.5, 8, 8))",
    "work <- function(n) for (i in seq_len(n)) { y <- x %*% x; z <- sum(y * 2 + 1) }",
    "work(1000)",
    "before <- resident()",
    paste0("work(", full_or_quick(60000, 25000), ")"),
    "middle <- resident()",
    "work(20000)",
    "cat(middle - before, resident() - middle, '\\n')"))
  grown <- as.numeric(strsplit(tail(run$output, 1L), " ")[[1L]])
  expect_lt(sum(grown), 128)
  expect_lt(grown[2L], 32)
})

test_each_engine("failure to allocate a buffer is a classed error that changes nothing", {
  before <- live_bytes()
  .Call(r_fail_buffer_after, 1L)
  fault <- expect_fault(as_cl(matrix(1, 10, 10)), "memory", bytes = 800)
  expect_true(is.call(conditionCall(fault)))
  .Call(r_fail_buffer_after, -1L)
  expect_equal(live_bytes(), before)
  expect_equal(as.matrix(as_cl(matrix(1, 10, 10))), matrix(1, 10, 10))
})

test_each_engine("sizes beyond any memory are rejected before any work", {
  expect_error(cl_matrix(0, 2^31, 1), class = "statcl_error_argument")
  expect_error(cl_matrix(0, 2^30, 2^30), class = "statcl_error")
})

test_that("cl_memory() has a row for the host and one for the device", {
  expect_equal(with_cl(cl_memory()$device, engine = "host"), "host")
  require_device()
  memory <- on_device(cl_memory())
  expect_equal(nrow(memory), 2L)
  expect_true(all(c("live", "peak", "kept", "limit", "largest", "buffers") %in% names(memory)))
  expect_true(all(memory$peak >= memory$live))
})

test_that("the host keeps the memory of released matrices for the next, until cl_free()", {
  with_cl(engine = "host", {
    cl_free()
    expect_equal(cl_memory()$kept[1L], 0)
    x <- as_cl(matrix(1, 100, 100))
    cl_free(x)
    kept <- cl_memory()$kept[1L]
    expect_gte(kept, 8e4)
    expect_lt(kept, 1.3 * 8e4)
    y <- as_cl(matrix(2, 100, 100))
    expect_equal(cl_memory()$kept[1L], 0)
    expect_equal(as.matrix(y), matrix(2, 100, 100))
    cl_free(y)
    for (k in 1:5) cl_free(as_cl(matrix(1, 1000, 1500)))
    expect_lte(cl_memory()$kept[1L], 2^26)
    cl_free()
    expect_equal(cl_memory()$kept[1L], 0)
  })
})

test_that("cl_memory() reports the memory of released matrices that a GPU keeps", {
  require_device()
  kept <- on_device({
    cl_free()
    cl_free(as_cl(diag(200)))
    cl_sync()
    cl_memory()$kept
  })
  expect_equal(kept[1L], 0)
  keeps <- cl_devices()$type[test_device() + 1L] == "gpu" ||
    identical(Sys.getenv("STATCL_GPU_KERNELS"), "1")
  if (keeps) expect_gte(kept[2L], 8 * 200^2) else expect_equal(kept[2L], 0)
  on_device({
    x <- as_cl(diag(300))
    rm(x)
    expect_null(cl_free()) # also garbage
    expect_equal(cl_memory()$kept, c(0, 0))
  })
})
