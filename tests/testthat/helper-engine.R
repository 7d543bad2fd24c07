# Helpers that run a test on each engine.
#
# The environment variable STATCL_TEST_DEVICE says what a missing device means: "required" (in
# continuous integration) makes it a failure, anything else a skip that the reporter shows.
# STATCL_TEST_QUICK=1 (`./dev test`) makes the longest tests take fewer cases: full_or_quick().

# Kernels are compiled repeatedly in tests: no announcements.
options(statcl.quiet = TRUE)

# The number of cases, or the cases, that a test uses.
full_or_quick <- function(full, quick) {
  if (identical(Sys.getenv("STATCL_TEST_QUICK"), "1")) quick else full
}

# `where` (see R/base-session.R) of the device that the tests use: the default GPU, else any device
# with double precision; -1 if there is none.
test_device <- function() {
  where <- default_device()
  if (where < 0L) any_device() else where
}

has_test_device <- function() test_device() >= 0L

# Its id, for cl_use() and with_cl().
test_device_id <- function() device_table()$id[test_device() + 1L]

# Fails or skips when there is no device, or the only one computes wrongly.
require_device <- function() {
  reason <- if (has_test_device()) refusal_of(test_device()) else no_device_reason()
  if (!nzchar(reason)) return(invisible())
  if (identical(Sys.getenv("STATCL_TEST_DEVICE"), "required")) {
    stop("a device is required, but there is none: ", reason)
  }
  testthat::skip(paste("no OpenCL device:", reason))
}

on_host <- function(code) with_cl(code, engine = "host")

on_device <- function(code) {
  require_device()
  with_cl(code, device = test_device_id(), engine = "device")
}

# Runs the code with everything on the host, then with everything on a device, in the environment
# of the caller. Failures name the engine. Without a device the second half counts as skipped, and
# the test goes on. STATCL_TEST_ENGINE=device leaves out the host, where another run has it.
each_engine <- function(code) {
  code <- substitute(code)
  home <- parent.frame()
  if (Sys.getenv("STATCL_TEST_ENGINE") != "device") {
    naming_engine("host", on_host(eval(code, home)))
  }
  missing <- tryCatch(require_device(), skip = function(s) s)
  if (inherits(missing, "skip")) {
    testthat::exp_signal(testthat::new_expectation("skip", conditionMessage(missing)))
  } else {
    naming_engine("device", on_device(eval(code, home)))
  }
  invisible()
}

# test_that() with all of its code on each engine, on the host, or on a device. What is outside of a
# statement of the code is reported at its first line.
test_where <- function(where) {
  function(desc, code) {
    code <- substitute(code)
    block <- call("{", call(where, code))
    at <- attr(code, "srcref")[1L]
    attributes(block) <- c(list(srcref = c(at, at)), attributes(code)[c("srcfile", "wholeSrcref")])
    eval(bquote(test_that(.(desc), .(block))), parent.frame())
  }
}
test_each_engine <- test_where("each_engine")
test_on_host <- test_where("on_host")
test_on_device <- test_where("on_device")

naming_engine <- function(engine, code) {
  withCallingHandlers(
    code,
    expectation = function(e) {
      if (!inherits(e, "expectation_failure")) return()
      e$message <- sprintf("[engine: %s] %s", engine, e$message)
      testthat::exp_signal(e)
      invokeRestart("continue_test")
    },
    error = function(e) {
      if (inherits(e, "expectation")) return()
      e$message <- sprintf("[engine: %s] %s", engine, conditionMessage(e))
      stop(e)
    })
}

# Runs the code as on a machine whose device is a GPU with these thresholds.
with_thresholds <- function(thresholds, code) {
  require_device()
  own <- asNamespace("statcl")$session
  id <- test_device_id()
  kept <- mget(c("tuned", "settled", "built", "owed", "lost", "asked", "waits", "refused", "times",
                 "crowded"), envir = own)
  on.exit(list2env(kept, envir = own))
  own$tuned[[id]] <- thresholds
  own$settled <- list()
  own$built <- own$waits <- character()
  own$owed <- own$lost <- own$asked <- own$refused <- own$times <- own$crowded <- list()
  .Call(r_sync, test_device()) # is open
  with_cl(code, device = id, engine = "auto")
}

# Calls until the device has taken over; the number of calls that the host has computed.
calls_until <- function(run, done) {
  for (k in 0:30) {
    run()
    while (count_building() > 0L) Sys.sleep(0.01)
    if (done()) return(k)
  }
  Inf
}
