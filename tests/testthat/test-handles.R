# Handles and nodes (src/r/handle.c, src/r/node.c): R's references to a matrix, whatever fails, is
# freed, is changed by hand or comes from a file in between.

skip_on_cran() # long; run by ./dev check

# 120 operations: more than the graph of the core holds at once, so that requesting the matrix
# computes a part of it.
deep <- function(x) {
  for (k in 1:40) x <- (sin(x) + 1) * 0.5
  x
}

# Ways to request values of a square matrix with positive elements.
consumers <- list(
  as.matrix = function(z) as.matrix(z),
  rowSums = function(z) rowSums(z),
  `sum without missing` = function(z) sum(z, na.rm = TRUE),
  `one row` = function(z) z[3, ],
  diag = function(z) diag(z),
  `some columns` = function(z) as.matrix(z[, c(1, 3)]),
  crossprod = function(z) {
    a <- crossprod(z)
    as.matrix(a)
  },
  solve = function(z) { # R's search for methods hides the class of a fault in an argument
    a <- crossprod(z)
    a <- a + diag(ncol(z))
    x <- solve(a, rep(1, ncol(z)))
    as.matrix(x)
  },
  `two at once` = function(z) as.matrix(if (is_cl(z)) cl_eval(z, z + 1)[[2L]] else z + 1))

# Has call number 1, 2, ... of those that `arm` counts fail, until none does: each time the error
# is `class` and a fresh expression, asked again, has the right values.
fail_in_turn <- function(x, want, arm, class) {
  for (name in names(consumers)) {
    consume <- consumers[[name]]
    for (n in 1:60) {
      z <- deep(x)
      arm(n)
      got <- tryCatch(consume(z), condition = identity)
      arm(-1L)
      if (!inherits(got, "condition")) break
      expect_s3_class(got, class)
      expect_equal(consume(z), want[[name]], info = paste(name, "after fault", n))
    }
    expect_equal(got, want[[name]], info = name)
    expect_gt(n, 1L)
  }
}

test_that("values requested while anything fails are correct or an error", {
  x <- matrix(seq(0.1, 2, length.out = 64), 8)
  want <- lapply(consumers, function(f) f(deep(x)))
  each_engine(expect_no_leak({
    device <- as_cl(x)
    fail_in_turn(device, want, function(n) .Call(r_fail_buffer_after, as.integer(n)),
                 "statcl_error_memory")
  }))
})

test_that("values requested while the user interrupts are correct or missing", {
  x <- matrix(seq(0.1, 2, length.out = 64), 8)
  want <- lapply(consumers, function(f) f(deep(x)))
  each_engine(expect_no_leak({
    device <- as_cl(x)
    fail_in_turn(device, want, function(n) .Call(r_interrupt_after, as.integer(n)), "interrupt")
  }))
})

test_that("an expression that cannot be computed does not damage R's memory", {
  # The result had room for no number and then took 90,000.
  run <- run_r(c(
    "suppressMessages(library(statcl))",
    "cl_use(engine = 'host')",
    "x <- as_cl(matrix(runif(9e4), 300))",
    "z <- x",
    "for (i in 1:120) z <- sin(z)",
    "invisible(.Call(statcl:::r_fail_buffer_after, 1L))",
    "fault <- tryCatch(as.matrix(z), error = class)",
    "cat(fault[1L], dim(as.matrix(z)), '\\n')"))
  expect_identical(run$status, 0L)
  expect_identical(tail(run$output, 1L), "statcl_error_memory 300 300 ")
})

test_each_engine("asking for a shape computes nothing", {
  z <- deep(as_cl(matrix(1, 3, 4)))
  before <- .Call(r_expr_stats)
  expect_identical(.Call(r_matrix_shape, z@handle), c(3L, 4L, 0L))
  expect_identical(dim(z), 3:4)
  cl_free(z)
  expect_identical(.Call(r_expr_stats)[1L], before[1L])
  expect_fault(as.matrix(z), "stale", argument = "x")
  expect_fault(z %*% diag(4), "stale")
})

# ---- freeing ------------------------------------------------------------------------------------

test_each_engine("expressions of a matrix outlive it, also if a part was computed in between", {
  a <- as_cl(matrix(3, 3, 2))
  n1 <- a + 1
  n2 <- trunc(n1)
  n3 <- n2 * n1
  cl_free(a)
  expect_equal(as.matrix(n1), matrix(4, 3, 2))
  expect_equal(as.matrix(-n2), matrix(-4, 3, 2))
  expect_equal(as.matrix(exp(n2)), matrix(exp(4), 3, 2))
  expect_equal(as.matrix(round(n2)), matrix(4, 3, 2))
  cl_free(n1)
  cl_free(n2)
  expect_equal(as.matrix(n3 + 1), matrix(17, 3, 2))
  expect_fault(n1 + 1, "stale")
  expect_fault(n2 + 1, "stale")
})

test_that("a freed matrix is released with the last expression of it, even a dropped one", {
  live <- function() sum(cl_memory()$live)
  each_engine({
    gc()
    before <- live()
    x <- as_cl(matrix(0, 100, 100))
    y <- x + 1
    rm(y)
    gc()
    cl_free(x)
    gc()
    expect_identical(live(), before)
    # a part that was computed, dropped and freed in every order
    x <- as_cl(matrix(0, 100, 100))
    part <- x + 1
    whole <- sqrt(part)
    dropped <- part * 2
    rm(dropped)
    as.matrix(part)
    cl_free(x)
    cl_free(part)
    gc()
    expect_gt(live(), before) # `whole` needs it
    rm(whole)
    gc()
    expect_identical(live(), before)
  })
})

test_that("finalizers that run in the middle of a computation may free matrices and nothing else", {
  run <- run_r(c(
    "suppressMessages(library(statcl))",
    "cl_use(engine = 'host')",
    "plain <- matrix(runif(9e4), 300)",
    "x <- as_cl(plain)",
    "f <- cl_gp_likelihood(1:3, 1:3, k_exp_quad())",
    "try_all <- function(z) {",
    "  tell <- function(code) cat(class(tryCatch(code, error = identity))[1L], '')",
    "  tell(as.matrix(z)); tell(sum(z)); tell(z + 1); tell(as_cl(diag(2))); tell(f(c(1, 1, 1)))",
    "  tell(cl_free(z)); tell(sum(z))",
    "}",
    "late <- function(z) {", # runs when the first buffer that is needed cannot be made
    "  e <- new.env()",
    "  e$z <- z",
    "  reg.finalizer(e, function(e) try_all(e$z))",
    "  invisible(.Call(statcl:::r_fail_buffer_after, 1L))",
    "}",
    "wave <- function(x) {",
    "  for (k in 1:120) x <- sin(x)",
    "  x",
    "}",
    "z <- wave(x)",
    "late(z)",
    "cat(class(tryCatch(as.matrix(z), error = identity))[1L], '\\n')",
    "late(x)",
    "cat(class(tryCatch(x %*% x, error = identity))[1L], '\\n')",
    "rm(x, z)",
    "invisible(gc())",
    "right <- all.equal(as.matrix(wave(as_cl(plain))), wave(plain))",
    "invisible(gc())",
    "cat(cl_memory()$live[1L] < 1e5, right, '\\n')"))
  expect_identical(run$status, 0L)
  refused <- paste(rep("statcl_error_argument", 5L), collapse = " ")
  said <- paste(refused, "NULL statcl_error_argument statcl_error_memory ")
  expect_identical(tail(run$output, 3L), c(said, said, "TRUE TRUE "))
})

# ---- changed by hand, or from a file ------------------------------------------------------------

test_each_engine("dimensions are those of the data, whatever the slot contains", {
  x <- matrix(1:12 + 0, 3)
  for (dim in list(c(1L, 1L), c(12L, 1L), c(3000L, 4000L))) {
    forged <- as_cl(x)
    attr(forged, "Dim") <- dim
    expect_identical(rowSums(forged), rowSums(x))
    expect_identical(colSums(forged), colSums(x))
    expect_equal(rowMeans(forged), rowMeans(x))
    expect_identical(colMeans(forged), colMeans(x))
    expect_identical(sum(forged), sum(x))
    expect_identical(as.matrix(forged), x)
    expect_identical(dim(exp(forged)), c(3L, 4L))
    expect_identical(as.matrix(forged + 1), x + 1)
    expect_identical(as.matrix(forged * as_cl(x)), x * x)
    expect_identical(as.matrix(as_cl(x) - forged), x - x)
    expect_identical(as.matrix(crossprod(forged)), crossprod(x))
    expect_fault(forged + as_cl(diag(2)), "argument")
  }
  forged@Dim <- c(1L, 1L)
  expect_identical(norm(forged), norm(x))
  forged@Dim <- c(5L, 6L)
  for (use in list(function(z) z[5, ], function(z) z[, 6], function(z) z[c(5, 1), ],
                   function(z) z[4:5, 5:6], function(z) z %*% matrix(1, 6, 2))) {
    expect_fault(as.matrix(use(forged)), "argument")
  }
})

test_that("a likelihood that was changed by hand is rejected", {
  run <- run_r(c(
    "suppressMessages(library(statcl))",
    "cl_use(engine = 'host')",
    "par <- c(1, 1, 0.1)",
    "make <- function() cl_gp_likelihood(c(1, 3, 2), c(0, 1, 2), k_exp_quad())",
    "right <- environment(make())$layout",
    "wrong <- list(1, list(), right[1], right[c(1, 1, 1)], NULL, 'a', quote(x),",
    "              list(right[[1]], 1:99, right[[3]]), list(right[[1]], right[[2]], -1L),",
    "              list(right[[1]], right[[2]], 99L), list(list(), right[[2]], right[[3]]))",
    "for (i in seq_along(right[[1]])) {",
    "  for (value in list(NULL, 1, 99L, -5L, integer(), 'a', list(), NA_integer_)) {",
    "    bad <- right",
    "    bad[[1]][i] <- list(value)",
    "    wrong <- c(wrong, list(bad))",
    "  }",
    "}",
    "count <- 0",
    "for (bad in wrong) {",
    "  f <- make()",
    "  assign('layout', bad, environment(f))",
    "  fault <- tryCatch(f(par), error = identity)",
    "  ok <- inherits(fault, 'statcl_error') || identical(bad, right)",
    "  if (!ok && inherits(fault, 'error')) print(fault)",
    "  count <- count + ok",
    "}",
    "for (name in c('names', 'handle', 'loo', 'trend')) {",
    "  f <- make()",
    "  home <- environment(f)",
    "  assign(name, 1, if (name == 'handle') environment(home$on_handle) else home)",
    "  try(f(par), silent = TRUE)",
    "}",
    "f <- cl_likelihood('poisson_log', c(1, 2), diag(2))",
    "assign('handle', NULL, environment(f))",
    "assign('family', 1, environment(f))",
    "try(f(0, c(0, 0)), silent = TRUE)",
    "cat(length(wrong) - count, 'were taken\\n')"))
  expect_identical(run$status, 0L)
  expect_match(tail(run$output, 1L), "were taken")
})

# ---- unloading ----------------------------------------------------------------------------------

test_that("the library stays loaded as long as anything needs it, and is then unloaded", {
  skip_on_cran()
  makers <- c(
    "as_cl(diag(3))",
    "as_cl(diag(3)) + 1",
    "cl_gp_likelihood(1:3, 1:3, k_exp_quad())",
    "cl_likelihood('poisson_log', c(1, 2), diag(2))",
    "as.matrix(as_cl(matrix(0, 1000, 1000)))",
    # nothing but an empty handle
    "{ y <- as_cl(diag(3)); cl_free(y); y }")
  run <- run_r(c(
    "loaded <- function() 'statcl' %in% vapply(getLoadedDLLs(), `[[`, '', 'name')",
    "begin <- function() {",
    "  suppressMessages(library(statcl))",
    "  cl_use(engine = 'host')",
    "}",
    paste0("make <- list(", paste0("function() ", makers, collapse = ", "), ")"),
    "for (f in make) {",
    "  begin()",
    "  x <- f()",
    "  unloadNamespace('statcl')",
    "  cat(loaded(), '')",
    "  rm(x)",
    "  invisible(gc())",
    "}",
    "begin()",
    "x <- as_cl(diag(3))",
    "freed <- x * 1",
    "cl_free(freed)",
    "f <- cl_gp_likelihood(1:3, 1:3, k_exp_quad())",
    "unloadNamespace('statcl')",
    "begin()",
    "cat(sum(x + 1), dim(x), f(c(1, 1, 1), gradient = FALSE) < 0, '')",
    "rm(x, f)",
    "unloadNamespace('statcl')",
    "cat(loaded(), '')",
    "begin()",
    "cat(class(tryCatch(freed + 1, error = identity))[1L], sum(as_cl(diag(3))), '\\n')"))
  expect_identical(run$status, 0L)
  expect_identical(tail(run$output, 1L), paste("TRUE TRUE TRUE TRUE TRUE FALSE", "12 3 3 TRUE",
                                               "FALSE", "statcl_error_stale 3 "))
})
