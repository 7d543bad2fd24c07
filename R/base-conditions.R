#' Conditions raised by statcl
#'
#' Every error of the package inherits from `statcl_error` and from one class for its cause, so that
#' code can handle it with [tryCatch()]:
#'
#' | class | cause | fields |
#' |---|---|---|
#' | `statcl_error_argument` | an argument has the wrong type, shape or range | `argument` |
#' | `statcl_error_no_device` | no OpenCL loader or platform, or no device that matches | |
#' | `statcl_error_no_fp64` | the device does not support double precision | `device` |
#' | `statcl_error_refused` | the device computes wrongly | `device`, `log` |
#' | `statcl_error_memory` | not enough host or device memory | `bytes`, `limit` |
#' | `statcl_error_not_pd` | a matrix is not positive definite | `order` of the leading minor |
#' | `statcl_error_singular` | a pivot or diagonal element is zero | `index` |
#' | `statcl_error_nonfinite` | `NA`, `NaN` or `Inf` in the input | `index`, `argument` |
#' | `statcl_error_stale` | a device matrix was freed, or saved without its data | `argument` |
#' | `statcl_error_fork` | a device, or a device matrix, was used in a forked process | |
#' | `statcl_error_build` | a kernel does not compile on the device | `log`, `device` |
#' | `statcl_error_lost` | the device does not respond any more | `device` |
#' | `statcl_error_stan` | a Stan program is wrong | `line`, `column`, `text`, `file` |
#' | `statcl_error_time_limit` | the limit of [setTimeLimit()] was reached; with R's message | |
#' | `statcl_error_density` | the log density fails or cannot be sampled from | see [cl_sample()] |
#' | `statcl_error_interrupted` | sampling was interrupted before the first draw | |
#' | `statcl_error_opencl` | any other OpenCL error | `status`, `where`, `device` |
#'
#' @name statcl-conditions
#' @aliases statcl_error
#' @examples
#' tryCatch(cl_chol(matrix(c(1, 2, 2, 1), 2)),
#'          statcl_error_not_pd = function(e) e$order)
NULL

# Raises a statcl_error_<what> with the given fields. The call shown is that of the exported
# function that the user called.
statcl_abort <- function(what, message, ..., call = user_call()) {
  fields <- list(...)
  stop(structure(c(list(message = message, call = call), fields),
                 class = c(paste0("statcl_error_", what), "statcl_error", "error", "condition")))
}

# An argument error that names the argument.
abort_argument <- function(argument, message, call = user_call()) {
  statcl_abort("argument", message, argument = argument, call = call)
}

# The outermost call of a function of this package that is on the stack, or NULL. with_cl() and
# tryCatch() are skipped: the error is in their argument.
user_call <- function() {
  k <- outer_call()
  if (k > 0L) sys.call(k)
}

# Its number on the stack, or 0.
outer_call <- function() {
  home <- topenv()
  for (i in seq_len(sys.nframe())) {
    f <- sys.function(i)
    ours <- identical(topenv(environment(f)), home)
    if (ours && !identical(f, with_cl) && !identical(f, tryCatch)) return(i)
  }
  0L
}

# Called by src/r/throw.c with the fields of the core's last error.
abort_fault <- function(fault) {
  if (fault$what == "interrupt") {
    interrupt <- structure(list(message = "interrupted", call = NULL),
                           class = c("interrupt", "condition"))
    signalCondition(interrupt)
    invokeRestart("abort")
  }
  if (fault$what == "building") { # for try_device() alone: no handler of errors sees it
    signalCondition(structure(list(message = fault$message, call = NULL),
                              class = c("statcl_building", "condition")))
    fault$what <- "build"
  }
  message <- fault$message
  if (fault$what == "not_pd" && getRversion() < "4.3.0") message <- paste(message, "definite")
  if (nzchar(fault$where) && fault$what == "opencl") {
    message <- sprintf("%s (%s)", message, fault$where)
  }
  if (fault$what == "stan") {
    message <- sprintf("%sline %d, column %d: %s\n  %s\n  %s^",
                       if (nzchar(fault$where)) paste0(fault$where, ", ") else "", fault$line,
                       fault$column, message, fault$log, strrep(" ", fault$index))
  }
  fields <- switch(fault$what,
    argument = fault["argument"],
    memory = fault[c("bytes", "limit")],
    not_pd = list(order = fault$index),
    singular = fault["index"],
    nonfinite = fault[c("index", "argument")],
    stale = fault["argument"],
    build = fault[c("log", "device")],
    opencl = fault[c("status", "where", "device")],
    stan = list(line = fault$line, column = fault$column, text = fault$log, file = fault$where),
    fault["device"])
  # quote: the call is data here, not an argument to evaluate
  arguments <- c(list(fault$what, message), fields, list(call = user_call()))
  do.call(statcl_abort, arguments, quote = TRUE)
}

# The value of `code`, which allocates this many bytes in R. An allocation larger than the memory of
# the machine is not attempted: some systems grant it and kill the process that uses it.
with_memory <- function(code, bytes) {
  limit <- .Call(r_memory_limit)
  if (limit > 0 && bytes > limit) {
    statcl_abort("memory", sprintf("%.3g GB are needed, but this machine has %.3g GB of memory",
                                   bytes / 1e9, limit / 1e9), bytes = bytes, limit = limit)
  }
  base::tryCatch(code, error = function(e) {
    if (is_time_limit(e) || inherits(e, "stackOverflowError")) stop(e)
    statcl_abort("memory", conditionMessage(e), bytes = bytes, limit = 0)
  })
}

# base::tryCatch() for all code of this package: time limits, and memory or the stack that ran out,
# are not errors of `expr`, so they pass its handlers and reach those of the caller. Code that
# handles them calls base::tryCatch() by its full name.
tryCatch <- function(expr, ..., statcl_error, error) {
  ours <- function(handler) {
    force(handler)
    function(e) if (is_foreign(e)) stop(e) else handler(e)
  }
  if (missing(error)) {
    if (missing(statcl_error)) return(base::tryCatch(expr, ...))
    return(base::tryCatch(expr, ..., statcl_error = ours(statcl_error)))
  }
  if (missing(statcl_error)) return(base::tryCatch(expr, ..., error = ours(error)))
  base::tryCatch(expr, ..., statcl_error = ours(statcl_error), error = ours(error))
}

is_foreign <- function(e) {
  full <- c("cannot allocate vector of size %0.1f Gb", "cannot allocate vector of size %0.1f Mb",
            "cannot allocate vector of size %0.f Kb")
  full <- sub("%.*", "", c(full, gettext(full, domain = "R")))
  is_time_limit(e) || inherits(e, "stackOverflowError") ||
    is_message(e, c("evaluation nested too deeply: infinite recursion / options(expressions=)?",
                    "node stack overflow")) || any(startsWith(conditionMessage(e), full))
}

is_time_limit <- function(e) {
  is_message(e, c("reached elapsed time limit", "reached CPU time limit",
                  "reached session elapsed time limit", "reached session CPU time limit"))
}

# Whether the error has one of these messages of R.
is_message <- function(e, messages) {
  conditionMessage(e) %in% c(messages, gettext(messages, domain = "R"))
}

# ---- argument checks ----------------------------------------------------------------------------

# "non-negative integer", "finite number between 0 and 1" and the like.
number_text <- function(kind, lower, upper) {
  if (upper >= .Machine$integer.max) {
    if (lower == 0) return(paste("non-negative", kind))
    if (lower == -Inf || lower <= -.Machine$integer.max) return(kind)
    return(if (lower == 1 && kind == "integer") "positive integer" else
      sprintf("%s not less than %g", kind, lower))
  }
  sprintf("%s between %g and %g", kind, lower, upper)
}

# One whole number within [lower, upper].
check_count <- function(x, argument, lower = 0, upper = .Machine$integer.max) {
  check_number(x, argument, lower, upper, "integer")
}

# A warning of class statcl_warning_<what>.
statcl_warning <- function(what, message) {
  warning(structure(list(message = message, call = NULL),
                    class = c(paste0("statcl_warning_", what), "statcl_warning", "warning",
                              "condition")))
}
