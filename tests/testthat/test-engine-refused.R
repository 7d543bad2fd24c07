# Devices that compute wrongly (tests/core/test_primitives.c has each error): refused, and what the
# session then does; devices without double precision; and a host whose BLAS is slow.

in_refusing_session <- function(...) {
  require_device()
  in_new_session(c("Sys.unsetenv('STATCL_DEVICE')", "own <- asNamespace('statcl')",
                   "session <- own$session",
                   "fault <- function(code) tryCatch(code, error = identity)",
                   sprintf("id <- '%s'; where <- %dL", test_device_id(), test_device()), ...),
                 env = "STATCL_TRIAL_FAULT=device:divide,device:atomics")
}

test_that("a named device that computes wrongly is an error that says what is wrong", {
  in_refusing_session(
    "cl_use(id)", "e <- fault(as_cl(1))",
    "stopifnot(inherits(e, 'statcl_error_refused'), nzchar(e$device))",
    "for (text in c(id, 'division', 'atomic operations', 'driver', 'the host'))",
    "  stopifnot(grepl(text, conditionMessage(e), fixed = TRUE))",
    "shown <- capture.output(cl_sitrep())",
    "stopifnot(any(grepl('^refused .*division', shown)))",
    "again <- fault(with_cl(as_cl(1), device = id, engine = 'device'))",
    "stopifnot(identical(conditionMessage(again), conditionMessage(e)))",
    "cl_use(engine = 'host')", "stopifnot(sum(as_cl(1:3)) == 6)")
  in_refusing_session( # there is no other one
    "cl_use(engine = 'device')", "stopifnot(inherits(fault(as_cl(1)), 'statcl_error_refused'))",
    "cl_sitrep()", "if (nrow(cl_devices()) == 1L) as_cl <- fault(as_cl(1))",
    "if (nrow(cl_devices()) == 1L) stopifnot(inherits(as_cl, 'statcl_error_refused'))")
})

test_that("a device that nobody has named is left for the host without an error", {
  default <- c("session$default <- where", "session$least <- c(chol = 100, program = 10)",
               "session$tuned[[id]] <- c(chol = 100, program = 10)",
               "a <- crossprod(sin(outer(1:200, 1:200))) + diag(200)")
  left <- c("stopifnot(own$current_device() != where, grepl('division', session$unfit[[1L]]))",
            "stopifnot(any(grepl('^refused .*division', capture.output(cl_sitrep()))))")
  in_refusing_session(default, # a thread opens it
    "session$multiplication <- 1e-16", "session$owed$chol <- 1e6",
    "for (k in 1:3000) {",
    "  stopifnot(all.equal(cl_chol(a), chol(a)))",
    "  if (length(session$unfit)) break",
    "  Sys.sleep(0.01)",
    "}", left)
  in_refusing_session(default, # a call that waits
    "session$multiplication <- 1", "stopifnot(own$where_for('chol', 1e4) < 0L)", left)
  in_refusing_session(default, "cl_devices()", "stopifnot(all.equal(sum(as_cl(a)), sum(a)))", left)
  in_refusing_session(default, "options(statcl.thresholds = c(chol = 10))",
                      "stopifnot(all.equal(cl_chol(a), chol(a)))", left)
  in_refusing_session(default, "shown <- capture.output(cl_sitrep())",
                      "stopifnot(any(grepl('^in use +host .*refused', shown)))", left)
  in_refusing_session(default, "f <- cl_gradient(function(a) sum(dnorm(sin(1:1e5), a)))",
                      "stopifnot(is.numeric(f(a = 1)))", "cl_sitrep()", left)
})

test_that("a device that computes rightly is none of these", {
  require_device()
  expect_identical(refusal_of(test_device()), "")
  expect_identical(refusal_of(test_device()), "")
  expect_false(any(grepl("^refused.*computes", capture.output(print(on_device(cl_sitrep()))))))
})

test_that("cl_sitrep() says why a device without double precision is not used", {
  devices <- data.frame(id = "0:0", name = "Iris Xe", fp64 = FALSE)
  local <- on_host(refusal_facts(devices))
  expect_match(local, "'Iris Xe (0:0)' does not support double precision", fixed = TRUE,
               all = FALSE)
  expect_match(local, "use another device or the host", all = FALSE)
})

test_that("a slow BLAS is named once, with what to install", {
  expect_match(blas_advice("Linux"), "reference BLAS.*libopenblas0-pthread")
  expect_match(blas_advice("Darwin"), "Accelerate")
  expect_match(blas_advice("Windows"), "OpenBLAS")
  slow <- "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3"
  skip_if(!file.exists(slow), "the reference BLAS is not here")
  result <- run_r(c(
    "library(statcl); said <- character()",
    "heard <- function(code) withCallingHandlers(code, message = function(m) {",
    "  said <<- c(said, conditionMessage(m)); invokeRestart('muffleMessage') })",
    "x <- matrix(0, 1100, 1100); own <- asNamespace('statcl')",
    "heard(cl_matmul(x[1:100, 1:100], x[1:100, 1:100])); stopifnot(length(said) == 0L)",
    "if (own$blas_facts()$reference) {",
    "  for (k in 1:2) heard(own$where_for('matmul', 1100))",
    "  heard(with_cl(own$where_for('chol', 1e4), engine = 'host'))",
    "  stopifnot(length(said) == 1L, grepl('OpenBLAS', said))",
    "  options(statcl.quiet = TRUE); own$session$blas_said <- FALSE",
    "  heard(own$where_for('matmul', 1100)); stopifnot(length(said) == 1L)",
    "  cat('said', any(grepl('OpenBLAS', capture.output(cl_sitrep()))))",
    "} else cat('said another')"), env = paste0("LD_PRELOAD=", slow))
  expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_match(tail(result$output, 1L), "said (TRUE|another)")
})
