# Devices are listed and opened by a thread, in the background (R/base-choice.R,
# src/r/context.c).

# Runs code in a new session whose default is the test device, with the thresholds of a GPU.
in_opening_session <- function(...) {
  require_device()
  settings <- c(
    "Sys.unsetenv('STATCL_DEVICE')", # a named device is opened at once
    "own <- asNamespace('statcl')", "session <- own$session",
    sprintf("session$default <- %dL", test_device()),
    "session$least <- c(chol = 100, program = 10)",
    sprintf("session$tuned[['%s']] <- c(chol = 100, program = 10)", test_device_id()),
    "opened <- function() { # the work goes on until the device is there",
    "  for (k in 1:3000) {",
    "    if (as.integer(own$where_for('chol', 1e5)) >= 0L) return(k)",
    "    Sys.sleep(0.01)",
    "  }",
    "}",
    "session$multiplication <- 1e-16", # nothing is worth a wait
    "session$owed$chol <- 1e6",
    "a <- crossprod(sin(outer(1:200, 1:200))) + diag(200)")
  in_new_session(c(settings, ...))
}

test_that("the host computes while devices are listed and opened; small calls ask for none", {
  in_opening_session(
    "cl_use(engine = 'auto')",
    "cl_chol(diag(50)); cl_matmul(a, a); cl_map(function(x) x^2, a)",
    "stopifnot(is.null(session$listed_by))",
    "session$owed$chol <- 0", # the host is fast enough
    "cl_chol(a)",
    "stopifnot(is.null(session$listed_by), session$owed$chol > 0)",
    "session$owed$chol <- 1e6",
    "first <- cl_chol(a)",
    "stopifnot(all.equal(first, chol(a)), !is.null(session$listed_by), is.null(session$devices))",
    "stopifnot(is.na(own$host_limit('chol', NA)), is.null(session$opened_by))",
    "k <- opened()",
    "stopifnot(k > 1, !is.null(session$devices), .Call(own$r_device_ready, session$default))",
    "for (k in 1:20) {",
    "  stopifnot(all.equal(cl_chol(a), first))",
    "  while (own$count_building() > 0L) Sys.sleep(0.01)",
    "  if (own$is_built('chol')) break",
    "}",
    "stopifnot(own$is_built('chol'))")
})

test_that("a first call reads no table of thresholds and measures no speed", {
  in_new_session(c(
    "Sys.unsetenv('STATCL_DEVICE')",
    "own <- asNamespace('statcl')",
    "for (name in c('shipped_table', 'multiplication_seconds', 'installed_kernels')) {",
    "  unlockBinding(name, own)",
    "  assign(name, function(...) stop('too early'), own)",
    "}",
    "a <- diag(64) + 0.5",
    "stopifnot(all.equal(cl_chol(a), chol(a)), own$session$least[['chol']] > 64)",
    "b <- diag(200) + 0.5", # above the least threshold
    "stopifnot(all.equal(cl_chol(b), chol(b)), is.null(own$session$listed_by))"))
})

test_that("whatever needs the list or the device waits for the thread", {
  in_opening_session(
    "first <- cl_chol(a)",
    "stopifnot(is.null(session$devices), cl_available(), nrow(cl_devices()) > 0L)",
    "stopifnot(as.integer(own$where_for('chol', 1e5)) < 0L)", # a thread opens the device
    "stopifnot(identical(dim(as_cl(a)), dim(a)), nrow(cl_memory()) == 2L)",
    "stopifnot(as.integer(own$where_for('chol', 1e5)) >= 0L)")
  in_opening_session( # a call that the host would take much longer for
    "session$multiplication <- 1",
    "where <- own$where_for('chol', 1e4)",
    "stopifnot(where >= 0L, attr(where, 'waits'))")
  in_opening_session("options(statcl.thresholds = c(chol = 100))",
                     "stopifnot(identical(own$where_for('chol', 150), session$default))")
  in_opening_session("options(statcl.device = 'no such device')",
                     "e <- tryCatch(cl_chol(a), error = identity)",
                     "stopifnot(inherits(e, 'statcl_error_no_device'))")
})

test_that("a compiled function begins on the host and moves to a device that is opened meanwhile", {
  in_opening_session(
    "y <- sin(1:50000)",
    "f <- cl_gradient(function(a, s) sum(dnorm(y, a, exp(s), log = TRUE)))",
    "first <- f(a = 0.1, s = 0.2)",
    "state <- environment(f)",
    "stopifnot(state$where == -1L, state$gain > 0, is.null(session$devices))",
    "small <- cl_gradient(function(a) sum(dnorm(c(1, 2), a, log = TRUE)))",
    "stopifnot(is.numeric(small(a = 1)), environment(small)$gain == 0)",
    "opened()",
    "for (k in 1:20) {",
    "  state$saved <- 1000",
    "  stopifnot(all.equal(f(a = 0.1, s = 0.2), first))",
    "  while (own$count_building() > 0L) Sys.sleep(0.01)",
    "}",
    "stopifnot(state$where == session$default)")
})

test_that("a process that forks or ends while a thread lists devices is not harmed", {
  skip_on_os("windows")
  fork <- c(
    "child <- function(code) {",
    "  job <- parallel::mcparallel(tryCatch(code, error = class))",
    "  got <- parallel::mccollect(job, wait = FALSE, timeout = 20)",
    "  if (is.null(got)) tools::pskill(job$pid, tools::SIGKILL)",
    "  got[[1L]]",
    "}",
    "stopifnot(is.na(own$host_limit('chol', 1e5)))")
  in_opening_session(fork, "stopifnot(all.equal(child(cl_chol(a)), chol(a)))",
                     "stopifnot(cl_available(), opened() > 0)")
  in_opening_session(fork, sprintf("options(statcl.device = '%s')", test_device_id()),
                     "cl_chol(a)",
                     "stopifnot('statcl_error_fork' %in% child(as_cl(a)))")
  in_opening_session("stopifnot(is.na(own$host_limit('chol', 1e5)))")
  in_opening_session("stopifnot(is.na(own$host_limit('chol', 1e5)))", "unloadNamespace('statcl')")
})
