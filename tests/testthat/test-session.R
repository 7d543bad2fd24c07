# Choice of engine and device (R/base-session.R), cl_sitrep(), loading.

# A device table as default_device() sees it.
fake_devices <- function(type, fp64 = TRUE, host_memory = FALSE, memory = 8e9, compiler = TRUE) {
  data.frame(type = type, fp64 = fp64, host_memory = host_memory, memory = memory,
             compiler = compiler, stringsAsFactors = FALSE)
}

local_settings <- function(env = parent.frame()) {
  old <- session_settings()
  do.call(on.exit, list(substitute(restore_session(old), list(old = old)), add = TRUE), envir = env)
}

test_that("the default is a GPU with double precision, whatever the order of platforms", {
  expect_equal(default_device(fake_devices(c("cpu", "gpu"))), 1L)
  expect_equal(default_device(fake_devices(c("gpu", "cpu"))), 0L)
  expect_equal(default_device(fake_devices(c("gpu", "cpu", "gpu"), c(FALSE, TRUE, TRUE))), 2L)
  expect_equal(default_device(fake_devices(c("gpu", "gpu"), compiler = c(FALSE, TRUE))), 1L)
})

test_that("of several GPUs, one with dedicated memory is preferred, then the larger", {
  expect_equal(default_device(fake_devices(c("gpu", "gpu"), host_memory = c(TRUE, FALSE),
                                           memory = c(64e9, 8e9))), 1L)
  expect_equal(default_device(fake_devices(c("gpu", "gpu"), memory = c(8e9, 80e9))), 1L)
})

test_that("a CPU device is never the default", {
  expect_equal(default_device(fake_devices("cpu")), -1L)
  expect_equal(default_device(fake_devices("gpu")[0L, ]), -1L)
  expect_equal(default_device(fake_devices("gpu", fp64 = FALSE)), -1L)
})

test_that("cl_use() returns the previous settings and accepts them", {
  local_settings()
  first <- cl_use(engine = "host")
  expect_equal(session$engine, "host")
  second <- do.call(cl_use, first)
  expect_equal(second$engine, "host")
  expect_equal(session$engine, first$engine)
})

test_that("with_cl() restores the settings, after an error too", {
  local_settings()
  cl_use(engine = "auto")
  expect_equal(with_cl(session$engine, engine = "host"), "host")
  expect_equal(session$engine, "auto")
  expect_error(with_cl(stop("planned"), engine = "host"), "planned")
  expect_equal(session$engine, "auto")
})

test_that("settings that match no device are rejected and change nothing", {
  local_settings()
  cl_use(engine = "host")
  expect_fault(cl_use("no such device"), "no_device")
  expect_refused("engine", cl_use(engine = "gpu"))
  for (device in list(NA, c("a", "b"), list(), -1, 1.5, 1e6, "99:99", TRUE)) {
    expect_error(cl_use(device), class = "statcl_error")
  }
  expect_equal(session$engine, "host")
  expect_null(session$device)
})

test_that("the order of settings is: argument, option, environment, default", {
  local_settings()
  restore_session(list(device = NULL, engine = "auto"))
  withr_like <- options(statcl.device = NULL)
  on.exit(options(withr_like), add = TRUE)
  old <- Sys.getenv("STATCL_DEVICE", NA)
  on.exit(if (is.na(old)) Sys.unsetenv("STATCL_DEVICE") else Sys.setenv(STATCL_DEVICE = old),
          add = TRUE)
  Sys.setenv(STATCL_DEVICE = "environment")
  expect_equal(requested_device(), "environment")
  options(statcl.device = "option")
  expect_equal(requested_device(), "option")
  session$device <- "argument"
  expect_equal(requested_device(), "argument")
})

test_that("a device is found by id, number, type and part of its name", {
  require_device()
  where <- test_device()
  row <- device_table()[where + 1L, ]
  expect_equal(find_device(row$id), where)
  expect_equal(find_device(where + 1), where)
  expect_equal(device_table()$type[find_device(row$type) + 1L], row$type)
  expect_equal(device_table()$name[find_device(toupper(row$name)) + 1L], row$name)
  expect_equal(find_device("host"), -1L)
})

test_that("cl_devices() marks the device in use", {
  require_device()
  with_cl({
    devices <- cl_devices()
    expect_equal(devices$id[devices$default], test_device_id())
    expect_true(cl_available())
  }, device = test_device_id(), engine = "device")
  with_cl({
    expect_false(any(cl_devices()$default))
    expect_false(cl_available())
  }, engine = "host")
})

test_that("CPU devices are never preferred, the option overrides, bad options are named", {
  require_device()
  with_cl({
    if (device_table()$type[test_device() + 1L] == "cpu") {
      expect_true(all(is.infinite(cl_thresholds()$threshold)))
    }
    old <- options(statcl.thresholds = c(chol = 77))
    on.exit(options(old))
    expect_equal(subset(cl_thresholds(), op == "chol")$threshold, 77)
    expect_equal(subset(cl_thresholds(), op == "chol")$source, "option")
    expect_gte(where_for("chol", 78), 0L)
    expect_equal(where_for("chol", 76), -1L)
    options(statcl.thresholds = "many")
    expect_refused("statcl.thresholds", cl_thresholds())
  }, device = test_device_id(), engine = "auto")
})

test_that("an error shows the user's call", {
  in_new_session(c(
    "e <- tryCatch(with_cl(as_cl(\"a\"), engine = 'host'), error = function(e) e)",
    "stopifnot(identical(conditionCall(e), quote(as_cl(\"a\"))))",
    ".Call(statcl:::r_fail_buffer_after, 1L)",
    "e <- tryCatch(as_cl(1), error = function(e) e)",
    "stopifnot(inherits(e, 'statcl_error_memory'))",
    "stopifnot(identical(conditionCall(e), quote(as_cl(1))))"))
})

test_that("cl_sitrep() reports on the machine and never fails", {
  local_settings()
  report <- cl_sitrep()
  expect_s3_class(report, "cl_sitrep")
  expect_output(print(report), "statcl")
  expect_output(print(report), "in use")
  old <- options(statcl.device = "no such device", statcl.thresholds = NA)
  on.exit(options(old), add = TRUE)
  expect_output(print(cl_sitrep()), "no such device")
})

test_that("loading queries no platform and writes nothing", {
  result <- run_r(c(
    "before <- list.files(tempdir())",
    "library(statcl)",
    "stopifnot(is.null(statcl:::session$devices))",
    "stopifnot(identical(list.files(tempdir()), before))",
    "libraries <- if (file.exists('/proc/self/maps')) readLines('/proc/self/maps')",
    "stopifnot(!any(grepl('libOpenCL', libraries)))",
    "unloadNamespace('statcl')",
    "cat('unloaded')"))
  expect_equal(result$status, 0L)
  expect_match(paste(result$output, collapse = " "), "unloaded")
})

test_that("without a platform or loader the host works, and requesting a device is an error", {
  empty <- tempfile("vendors")
  dir.create(empty)
  on.exit(unlink(empty, recursive = TRUE))
  no_driver <- c(paste0("OCL_ICD_VENDORS=", empty), "OCL_ICD_FILENAMES=")
  for (setting in list(no_driver, "STATCL_LOADER=no-such-library.so")) {
    result <- run_r(c(
      "library(statcl)", "Sys.unsetenv('STATCL_DEVICE')",
      "stopifnot(nrow(cl_devices()) == 0, !cl_available())",
      "x <- as_cl(diag(2))",
      "stopifnot(identical(as.matrix(x), diag(2)))",
      "e <- tryCatch(cl_use(engine = 'device'), error = function(e) e)",
      "stopifnot(inherits(e, 'statcl_error_no_device'))",
      "cl_sitrep()"), env = setting)
    expect_equal(result$status, 0L, info = paste(c(setting, result$output), collapse = "\n"))
    expect_match(paste(result$output, collapse = " "), "advice")
  }
})

test_that("a child forked after devices were listed is rejected at once, or works on the host", {
  skip_on_os("windows")
  require_device()
  id <- test_device_id()
  child <- function(settings, where) run_r(c(
    "library(statcl)", settings, where,
    "job <- parallel::mcparallel(tryCatch(sum(cl_chol(diag(4, 20))), error = class))",
    "got <- parallel::mccollect(job, wait = FALSE, timeout = 20)",
    "if (is.null(got)) {",
    "  tools::pskill(job$pid, tools::SIGKILL)",
    "  got <- 'hangs'",
    "}",
    "cat('got', got[[1]][1])"))
  named <- sprintf("options(statcl.device = '%s', statcl.thresholds = c(chol = 10))", id)
  for (listed in c("cl_available()", "cl_devices()", "cl_sitrep()")) {
    expect_match(tail(child(named, listed)$output, 1L), "got statcl_error_fork")
  }
  forced <- sprintf("cl_use('%s', engine = 'device')", id)
  expect_match(tail(child(forced, "NULL")$output, 1L), "got statcl_error_fork")
  # The user has not named the device: it is the default.
  default <- c("options(statcl.thresholds = c(chol = 10))", "cl_devices()",
               sprintf("s <- statcl:::session; s$default <- %dL", test_device()))
  expect_match(tail(child(default, "NULL")$output, 1L), "got 40$")
})

test_that("an empty environment variable counts as unset", {
  require_device()
  empty <- paste0(c("POCL_CACHE_DIR", "POCL_DEVICES", "STATCL_LOADER", "STATCL_VARIANT",
                    "STATCL_GPU_KERNELS", "STATCL_MEMORY_LIMIT", "STATCL_COPY_THREADS",
                    "STATCL_DEVICE", "_R_CHECK_LIMIT_CORES_"), "=")
  count <- "library(statcl); cat('rows', nrow(cl_devices()))"
  usual <- tail(run_r(count)$output, 1L)
  for (setting in c(empty, list(empty))) {
    expect_identical(tail(run_r(count, env = setting)$output, 1L), usual,
                     info = paste(setting, collapse = " "))
  }
})

test_that("kernels made for GPUs run on a CPU device without harm", {
  require_device()
  skip_on_cran()
  if (device_table()$type[test_device() + 1L] != "cpu") skip("not a CPU device")
  result <- run_r(c(
    "library(statcl)",
    sprintf("cl_use('%s', engine = 'device')", test_device_id()),
    "for (n in c(50, 65)) {",
    "  x <- matrix(sin(1:(n * n)), n); s <- crossprod(x) + diag(n)",
    "  stopifnot(all.equal(cl_matmul(x, x), x %*% x), all.equal(cl_chol(s), chol(s)))",
    "  l <- t(chol(s))",
    "  stopifnot(all.equal(cl_tri_solve(l, x), forwardsolve(l, x)))",
    "}",
    "cat('right')"), env = "STATCL_GPU_KERNELS=1", timeout = 280)
  expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_match(tail(result$output, 1L), "right")
})

test_that("building kernels is announced by a message, once per session", {
  require_device()
  skip_on_cran()
  if (device_table()$type[test_device() + 1L] != "cpu") skip("not a CPU device")
  folder <- tempfile("cold")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  run <- function(...) {
    unlink(folder, recursive = TRUE)
    dir.create(folder)
    result <- run_r(c("library(statcl)", "said <- character()",
                      sprintf("cl_use('%s', engine = 'device')", test_device_id()), ...,
                      "cat('said', length(said), said)"),
                    env = paste0("POCL_CACHE_DIR=", folder), timeout = 280)
    expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
    result$output
  }
  work <- "invisible(cl_gp(1:20, sin(1:20), starts = 1, progress = FALSE))"
  heard <- function(code) sprintf(
    "withCallingHandlers(%s, message = function(m) said <<- c(said, conditionMessage(m)))", code)
  output <- run(heard(work), heard("invisible(cl_chol(diag(50)))"))
  expect_match(output, "said 1 statcl: building kernels for ", all = FALSE)
  if (full_or_quick(FALSE, TRUE)) return()
  output <- run("options(statcl.quiet = TRUE)", heard(work))
  expect_match(output, "said 0", all = FALSE)
  # a handler that leaves the call leaves no memory allocated
  output <- run(sprintf("said <- tryCatch({ %s; 'no' }, message = function(m) 'left')", work),
                "invisible(gc()); cl_sync()", "stopifnot(cl_memory()$live[2] == 0)", work)
  expect_match(output, "said 1 left", all = FALSE)
})
