# Interrupts and time limits during long work: answered soon, and raised with the correct class.

# Processor time of a process and its threads, in seconds; where the system does not tell, 0.
processor_seconds <- function(pid) {
  stat <- sprintf("/proc/%d/stat", pid)
  if (!file.exists(stat)) return(0)
  fields <- strsplit(sub(".*\\) ", "", readLines(stat, 1L)), " ", fixed = TRUE)[[1L]]
  sum(as.numeric(fields[12:13])) / 100 # user and system, in ticks
}

# Runs `code` in a separate process that receives SIGINT after `after` seconds of work; returns its
# output and the processor time for one core until it answered, which other processes do not change.
interrupted <- function(code, after = 0.7) {
  folder <- tempfile("interrupt")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  ready <- file.path(folder, "ready")
  done <- file.path(folder, "done")
  script <- c(
    "library(statcl); cl_use(engine = 'host')",
    "what <- 'finished'",
    code[-length(code)],
    sprintf("writeLines(as.character(Sys.getpid()), '%s.tmp')", ready),
    sprintf("file.rename('%s.tmp', '%s')", ready, ready),
    "what <- tryCatch({",
    code[length(code)],
    "  'finished'",
    "}, interrupt = function(e) 'interrupt', error = function(e) class(e)[1])",
    sprintf("writeLines(c(what, sum(proc.time()[1:2])), '%s.tmp')", done),
    sprintf("file.rename('%s.tmp', '%s')", done, done))
  file <- file.path(folder, "script.R")
  writeLines(script, file)
  libraries <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", shQuote(file)), stdout = FALSE,
          stderr = FALSE, env = libraries, wait = FALSE)
  wait_for <- function(path, seconds) {
    until <- Sys.time() + seconds
    while (!file.exists(path) && Sys.time() < until) Sys.sleep(0.02)
    file.exists(path)
  }
  if (!wait_for(ready, 60)) return(list(what = "never began", seconds = Inf))
  pid <- as.integer(readLines(ready))
  Sys.sleep(after)
  before <- processor_seconds(pid)
  tools::pskill(pid, tools::SIGINT)
  if (!wait_for(done, 60)) {
    tools::pskill(pid, tools::SIGKILL)
    return(list(what = "never ended", seconds = Inf))
  }
  answer <- readLines(done)
  used <- if (before > 0) as.numeric(answer[2L]) - before else 0
  list(what = answer[1L], seconds = used / max(1L, parallel::detectCores(), na.rm = TRUE))
}

long_work <- list(
  expression = c("x <- as_cl(matrix(runif(4e6), 2000))",
                 "repeat { z <- x; for (i in 1:120) z <- sin(z); as.matrix(z) }"),
  product = c("x <- matrix(runif(1.6e7), 4000)", "repeat cl_matmul(x, x)"),
  chol = c("x <- diag(1, 5000)", "repeat cl_chol(x)"),
  solve = c("x <- diag(1, 4000)", "repeat cl_tri_solve(x, x)"),
  inverse = c("x <- as_cl(diag(1, 5000))", "repeat chol2inv(x)"))

test_that("SIGINT is answered in the middle of long work", {
  skip_on_os("windows")
  skip_on_cran()
  for (name in names(long_work)) {
    got <- interrupted(long_work[[name]])
    expect_identical(got$what, "interrupt", info = name)
    expect_lt(got$seconds, 2.5)
  }
})

test_that("a time limit is an error that tryCatch() catches, and the session goes on", {
  result <- run_r(c(
    "library(statcl)", "cl_use(engine = 'host')",
    "x <- as_cl(matrix(runif(4e6), 2000)); z <- x",
    "setTimeLimit(elapsed = 0.5)", # enough work for many processors
    "e <- tryCatch({ for (i in 1:3000) z <- sin(z); as.matrix(z) }, error = function(e) e)",
    "setTimeLimit()",
    "stopifnot(inherits(e, 'statcl_error_time_limit'), inherits(e, 'statcl_error'))",
    "stopifnot(grepl('time limit', conditionMessage(e)))",
    "b <- matrix(runif(4e6), 2000)",
    "setTimeLimit(elapsed = 0.3)",
    "e <- tryCatch(repeat cl_matmul(b, b), error = function(e) e)",
    "setTimeLimit()",
    "stopifnot(inherits(e, 'error'), grepl('time limit', conditionMessage(e)))",
    "stopifnot(abs(sum(x) - sum(as.matrix(x))) < 1e-6)",
    "cat('goes on')"))
  expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_match(tail(result$output, 1L), "goes on")
  expect_false(any(grepl("^Error", result$output)))
})

test_that("threads of a driver take no signals: R's handlers jump, and must run in R's thread", {
  skip_if_not(dir.exists("/proc/self/task"))
  require_device()
  in_new_session(c(
    "threads <- function() list.files('/proc/self/task')",
    "blocked <- function(thread) {",
    "  text <- readLines(file.path('/proc/self/task', thread, 'status'))",
    "  mask <- sub('.*\\t', '', grep('^SigBlk', text, value = TRUE))",
    "  (strtoi(substring(mask, nchar(mask)), 16L) %/% 2L) %% 2L == 1L # SIGINT is number 2",
    "}",
    "before <- threads()",
    sprintf("cl_use('%s', engine = 'device')", test_device_id()),
    "stopifnot(sum(as_cl(1:10)) == 55)",
    "made <- setdiff(threads(), before)",
    "stopifnot(vapply(made, blocked, NA), !blocked(Sys.getpid()))"))
})

test_that("time limits, full memory and full stacks pass through as they are", {
  catch <- function(code) base::tryCatch(code, error = identity)
  full <- catch(numeric(1e15))
  expect_true(is_foreign(full))
  limit <- simpleError("reached elapsed time limit", quote(Sys.sleep(1)))
  deep <- structure(class = c("CStackOverflowError", "stackOverflowError", "error", "condition"),
                    list(message = "C stack usage is too close to the limit", call = NULL))
  d <- data.frame(y = c(0, 1, 1, 0, 1), x = c(1, 2, 3, 5, 4))
  fit <- cl_glm(y ~ x, data = d)
  for (e in list(full, limit, deep)) {
    fails <- function(...) stop(e)
    calls <- expression(
      classed(stop(e), "x"), cl_glm(y ~ x, data = fails), cl_glm(y ~ fails(x), data = d),
      cl_glm(y ~ fails(x), data = d, block = 2), cl_glm(y ~ x, family = fails, data = d),
      cl_glm(y ~ x, data = d, offset = fails(x)),
      cl_map(fails, diag(2)), with_whole_object(fit, "fit", stop(e)), tryCatch(
        stop(e), statcl_error = function(e) NULL, error = function(e) NULL), chol_or_null(stop(e)))
    for (i in seq_along(calls)) {
      found <- catch(eval(calls[[i]]))
      expect_identical(class(found), class(e), label = deparse1(calls[[i]]))
      expect_identical(conditionMessage(found), conditionMessage(e))
    }
    # whose message is of recursion that the tracing makes endless, where the stack is full
    if (!identical(e, deep)) expect_identical(catch(cl_gradient(fails)(x = 1)), e)
  }
  log_density <- function(a) stop(limit)
  expect_identical(catch(cl_sample(log_density, c(a = 1))), limit)
})
