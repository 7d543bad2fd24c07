# Lazy arithmetic: random programs in which matrices are computed, freed, dropped and collected in
# any order while expressions of them exist.

skip_on_cran() # long; run by ./dev check

# Functions of one number whose values stay between -3 and 3.
unary_steps <- list(sin, function(x) x * 0.5, function(x) -x, function(x) exp(-abs(x)), tanh,
                    function(x) 1 - x / 2, function(x) x^2 / 3)
binary_steps <- list(function(x, y) (x + y) / 2, function(x, y) x * y / 3,
                     function(x, y) (x - y) / 2, function(x, y) x / (abs(y) + 1))

# One program: pairs of a matrix and its expected value, and `steps` random actions on them. Returns
# what went wrong.
run_program <- function(seed, steps) {
  set.seed(seed)
  m <- sample(1:6, 1L)
  n <- sample(1:5, 1L)
  pool <- list()
  wrong <- character()
  note <- function(...) wrong <<- c(wrong, sprintf("program %d: %s", seed, paste0(...)))
  add <- function(cl, base) pool[[length(pool) + 1L]] <<- list(cl = cl, base = base)
  leaf <- function() {
    base <- matrix(round(runif(m * n, -2, 2), 2), m, n)
    add(as_cl(base), base)
  }
  any_place <- function() sample(length(pool), 1L)
  step_unary <- function() {
    f <- unary_steps[[sample(length(unary_steps), 1L)]]
    x <- pool[[any_place()]]
    add(f(x$cl), f(x$base))
  }
  step_binary <- function() {
    f <- binary_steps[[sample(length(binary_steps), 1L)]]
    x <- pool[[any_place()]]
    y <- pool[[any_place()]]
    add(f(x$cl, y$cl), f(x$base, y$base))
  }
  step_other <- function() {
    x <- pool[[any_place()]]
    y <- pool[[any_place()]]
    switch(sample(4L, 1L),
      add(t(t(x$cl) * 0.5), x$base * 0.5),
      add(x$cl - cl_reduce(x$cl, margin = "rows") / n, x$base - rowSums(x$base) / n),
      {
        x$cl[1L, ] <- y$cl[m, , drop = FALSE]
        x$base[1L, ] <- y$base[m, ]
        add(x$cl, x$base)
      },
      add(cl_ifelse(x$cl > 0, y$cl, 0), ifelse(x$base > 0, y$base, 0)))
  }
  compare <- function(place) {
    x <- pool[[place]]
    if (!same_numbers(as.matrix(x$cl), x$base)) note("wrong values")
  }
  step_values <- function() {
    x <- pool[[any_place()]]
    switch(sample(4L, 1L),
      compare(any_place()),
      if (!same_numbers(sum(x$cl), sum(x$base))) note("wrong sum"),
      if (!same_numbers(rowSums(x$cl), rowSums(x$base))) note("wrong sums of rows"),
      cl_eval(x$cl, pool[[any_place()]]$cl))
  }
  step_end <- function() {
    if (length(pool) < 3L) return(leaf())
    place <- any_place()
    x <- pool[[place]]$cl
    pool[[place]] <<- NULL
    if (runif(1) < 0.7) {
      cl_free(x)
      fault <- tryCatch(if (runif(1) < 0.5) x + 1 else sum(x), error = identity)
      if (!inherits(fault, "statcl_error_stale")) note("a freed matrix was used")
    }
    if (runif(1) < 0.05) gc(FALSE)
  }
  leaf()
  leaf()
  for (k in seq_len(steps)) {
    step <- sample(c("unary", "binary", "other", "values", "end", "show"), 1L,
                   prob = c(6, 6, 2, 2, 5, 1))
    switch(step, unary = step_unary(), binary = step_binary(), other = step_other(),
           values = step_values(), end = step_end(), show = format(pool[[any_place()]]$cl))
  }
  for (place in seq_along(pool)) compare(place)
  wrong
}

run_programs <- function(count, steps) {
  as.character(unlist(lapply(seq_len(count), run_program, steps = steps)))
}

test_that("random programs that free and drop operands agree with base R", {
  on_host(expect_no_leak({
    wrong <- run_programs(full_or_quick(400, 30), 40L)
    expect_identical(wrong, character())
  }))
})

test_that("random programs that free and drop operands agree with base R on the device", {
  # Kernels are compiled for each.
  on_device(expect_no_leak({
    wrong <- run_programs(full_or_quick(30, 5), 25L)
    expect_identical(wrong, character())
  }))
})

test_on_host("computing or freeing parts of a tree midway changes nothing", {
  wrong <- 0L
  set.seed(1)
  for (number in seq_len(full_or_quick(300, 40))) {
    base <- list(matrix(runif(12, -2, 2), 4))
    cl <- list(as_cl(base[[1L]]))
    freed <- integer()
    for (k in 2:30) {
      held <- setdiff(seq_along(cl), freed)
      # mostly the last ones, so that trees get deep
      at <- held[pmax(length(held) - rgeom(2L, 0.5), 1L)]
      f <- binary_steps[[sample(length(binary_steps), 1L)]]
      base[[k]] <- f(base[[at[1L]]], base[[at[2L]]])
      cl[[k]] <- f(cl[[at[1L]]], cl[[at[2L]]])
      if (runif(1) < 0.2) cl_eval(cl[[sample(c(held, k), 1L)]])
      if (runif(1) < 0.4) {
        gone <- held[sample(length(held), 1L)]
        cl_free(cl[[gone]])
        freed <- c(freed, gone)
      }
    }
    for (k in setdiff(seq_along(cl), freed)) {
      wrong <- wrong + !same_numbers(as.matrix(cl[[k]]), base[[k]])
    }
  }
  expect_identical(wrong, 0L)
})

test_that("forty calls with a garbage collection at every allocation", {
  skip_on_cran()
  run <- run_r(c(
    "suppressMessages(library(statcl))",
    "invisible(compiler::enableJIT(0))", # which would allocate most
    "cl_use(engine = 'host')",
    "plain <- matrix(c(0.5, 1, 1.5, 2), 2, dimnames = list(c('a', 'b'), NULL))",
    "calls <- function() {",
    "  x <- as_cl(plain)",
    "  a <- x + 1; b <- a * x; c <- sin(b); d <- -c; e <- d / a",
    "  first <- as.matrix(c)",
    "  cl_free(a); cl_free(x)",
    "  second <- as.matrix(e)",
    "  f <- d^2; g <- f - e; h <- abs(g); i <- h > 0; j <- !i",
    "  cl_eval(h, cl_reduce(g))",
    "  s <- sum(g); r <- rowSums(h); k <- t(h); l <- k %*% h",
    "  cl_free(d); cl_free(f)",
    "  m <- l[1, ]; n <- cl_ifelse(i, h, 0); o <- pmax(h, g); p <- range(o)",
    "  h[1, 1] <- 5; q <- diag(l); u <- cl_chol(crossprod(n)); v <- format(o)",
    "  w <- as.matrix(n); fault <- tryCatch(as.matrix(d), error = function(e) class(e)[1L])",
    "  list(first, second, s, r, m, p, q, as.matrix(u), w, as.matrix(h), fault)",
    "}",
    "want <- calls()",
    "gctorture(TRUE)",
    "got <- calls()",
    "gctorture(FALSE)",
    "cat(identical(got, want), got[[11L]], '\\n')"), timeout = 250)
  expect_identical(run$status, 0L)
  expect_identical(tail(run$output, 1L), "TRUE statcl_error_stale ")
})
