# OpenBLAS leaves cores to threads that open a device or build kernels (src/r/blas.c).

# With as many threads of BLAS as it has by itself; the check of the package has one.
in_blas_session <- function(code) {
  require_device()
  skip_if_not(grepl("openblas", extSoftVersion()[["BLAS"]]), "OpenBLAS")
  in_new_session(c("own <- asNamespace('statcl')", code),
                 env = c("OPENBLAS_NUM_THREADS=", "OMP_NUM_THREADS="))
}

test_that("BLAS leaves a core to a thread that opens a device, and has it again when it is open", {
  in_blas_session(c(
    sprintf("ready <- function() .Call(own$r_device_ready, %dL)", test_device()),
    "threads <- function() .Call(own$r_blas_count)[1L]",
    "stopifnot(nrow(cl_devices()) > 0L, own$blas_share() == 1)",
    "all <- threads()",
    "few <- all < .Call(own$r_blas_count)[[4L]]", # it has cores to spare
    "own$leaving_cores({",
    "  stopifnot(threads() == all)",
    "  opens <- !ready()", # it begins in the middle
    "  stopifnot(few || all == 1L || !opens || own$blas_share() < 1)",
    "  while (!ready()) Sys.sleep(0.01)",
    "  Sys.sleep(0.05)", # R is asked at most every 20 ms
    "  with_cl(cl_chol(diag(300) + 0.5), engine = 'host')", # polls
    "  stopifnot(threads() == all, few || all == 1L || (own$blas_share() < 1) == opens)",
    "  own$leaving_cores(cl_use(engine = 'host'))", # an inner one changes nothing
    "  stopifnot(few || all == 1L || (own$blas_share() < 1) == opens)",
    "})",
    "stopifnot(threads() == all, own$leaving_cores(threads()) == all, own$blas_share() == 1)"))
})

test_that("BLAS leaves a core at once to a thread that builds, from four cores on", {
  in_blas_session(c(
    sprintf("device <- %dL", test_device()),
    "while (!.Call(own$r_device_ready, device)) Sys.sleep(0.01)",
    "where <- structure(device, op = 'arith', size = 10, times = 1, waits = FALSE)",
    "source <- sprintf('__kernel void a%d(__global double *x) {}', Sys.getpid())",
    "run <- function(where) {",
    "  if (where >= 0L) cl_kernel(source, sprintf('a%d', Sys.getpid()), c(x = 'out'))",
    "  c(.Call(own$r_blas_count), own$count_building(), own$blas_share())",
    "}",
    sprintf("host <- with_cl(own$on_engine(where, run), engine = 'auto', device = '%s')",
            test_device_id()),
    "cores <- host[[4L]]",
    "stopifnot(host[[2L]] >= 1L)",
    "busy <- host[[5L]] > 0L && host[[2L]] >= cores", # BLAS has all of them
    "if (busy && cores >= 4L) stopifnot(host[[1L]] < host[[2L]], host[[6L]] < 1)",
    "stopifnot(host[[6L]] > 0, host[[6L]] >= 1 / cores)"))
})

test_that("BLAS has all cores after a call, though a device is still being opened", {
  in_blas_session(c(
    "threads <- function() .Call(own$r_blas_count)[1L]",
    "stopifnot(nrow(cl_devices()) > 0L)",
    "all <- threads()",
    sprintf("own$leaving_cores(.Call(own$r_device_ready, %dL))", test_device()),
    "stopifnot(threads() == all)"))
})

test_that("BLAS no longer leaves cores after an error, a jump or an interrupt", {
  skip_if_not(grepl("openblas", extSoftVersion()[["BLAS"]]), "OpenBLAS")
  leaves <- function() .Call(r_blas_count)[[2L]] > 0L
  expect_true(leaving_cores(leaves()))
  expect_error(leaving_cores(leaving_cores(stop("here"))), "here")
  expect_false(leaves())
  jump <- function() leaving_cores(return(leaves()))
  interruption <- structure(class = c("interrupt", "condition"), list())
  expect_true(jump())
  expect_false(leaves())
  stopped <- tryCatch(leaving_cores(stop(interruption)), interrupt = function(e) leaves())
  expect_false(stopped)
  # nor if one comes when the call has begun to leave cores
  steps <- as.character(body(leaving_cores))
  expect_lt(grep("on.exit", steps), grep("r_blas_leave, TRUE", steps))
})
