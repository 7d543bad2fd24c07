# Lazy arithmetic (R/matrix-arith.R, R/matrix-lazy.R): fusion against base R, laziness itself,
# limits.

skip_on_cran() # long; run by ./dev check

counters <- function() .Call(r_expr_stats)

built <- function() counters()[[2L]]

pending <- function(x) .Call(r_expr_info, x@handle)$pending

# ---- values -------------------------------------------------------------------------------------

test_that("2,000 random expressions agree with base R: fused, and with one kernel per operation", {
  on_host(expect_trees(seq_len(full_or_quick(2000, 500))))
})

test_that("random expressions on the device agree with base R", {
  # A kernel is compiled for each: 2,000 take a CPU device a quarter of an hour or more.
  count <- as.integer(Sys.getenv("STATCL_TEST_TREES", full_or_quick("60", "6")))
  on_device(expect_trees(seq_len(count)))
})

test_each_engine(
  "rows, columns and single elements are recycled; other shapes are rejected by name", {
  x <- matrix(1:12 + 0, 4)
  d <- as_cl(x)
  row <- as_cl(matrix(c(10, 20, 30), 1))
  one <- as_cl(matrix(5))
  expect_equal(as.matrix(d - row), x - rep(c(10, 20, 30), each = 4))
  expect_equal(as.matrix(row / d), matrix(rep(c(10, 20, 30), each = 4), 4) / x)
  expect_equal(as.matrix(one * d), 5 * x)
  expect_equal(as.matrix(as_cl(1:4) + row), outer(1:4, c(10, 20, 30), "+"))
  expect_equal(as.matrix(pmax(d, row)), pmax(x, rep(c(10, 20, 30), each = 4)))
  expect_equal(as.matrix(cl_ifelse(row > 15, d, 0)), ifelse(col(x) > 1, x, 0))
  expect_equal(as.matrix(d + 1:2), x + 1:2)
  expect_refused("e2", d + as_cl(matrix(1, 2, 3)), d + as_cl(matrix(1, 2, 1)))
  expect_refused("e2", d + matrix(1, 1, 3)) # as base R
  expect_refused("e1", 1:13 * d)
  expect_refused("no", cl_ifelse(d > 1, d, 1:13))
  expect_refused("yes", cl_ifelse(d, as_cl(diag(2)), 1))
  expect_fault(pmin(d, 1:13), "argument")
})

test_that("pmin and pmax dispatch on clMatrix arguments in any position, and leave base R alone", {
  x <- matrix(c(-2, NA, 3, 7), 2)
  each_engine({
    d <- as_cl(x)
    expect_equal(as.matrix(pmax(d, 0)), pmax(x, 0))
    expect_equal(as.matrix(pmin(0, d)), pmin(x, 0))
    expect_equal(as.matrix(pmax(d, x + 1, 1:2)), pmax(x, x + 1, 1:2))
    expect_equal(as.matrix(pmax(d, 5L, na.rm = TRUE)), pmax(x, 5, na.rm = TRUE))
    expect_equal(as.matrix(pmin(d, d, na.rm = TRUE)), x)
  })
  expect_identical(pmin(1:3, 2L), base::pmin(1:3, 2L))
  named <- c(a = 1, b = NA)
  expect_identical(pmax(named, 0, na.rm = TRUE), base::pmax(named, 0, na.rm = TRUE))
  expect_identical(pmax("a", "b"), "b")
  expect_identical(pmax(x, 0), base::pmax(x, 0))
})

test_that("cl_ifelse() is ifelse(), with missing tests missing", {
  x <- matrix(c(1, 0, NA, -2, 0, 5), 2)
  each_engine({
    expect_equal(as.matrix(cl_ifelse(as_cl(x), 1, 2)), ifelse(x, 1, 2))
    expect_equal(as.matrix(cl_ifelse(as_cl(x) > 0, as_cl(x), x * 10)), ifelse(x > 0, x, x * 10))
  })
  expect_equal(cl_ifelse(x > 0, x, 0), ifelse(x > 0, x, 0))
  expect_equal(cl_ifelse(c(a = 1, b = 0), 3, 4), ifelse(c(a = 1, b = 0), 3, 4))
  expect_refused("test", cl_ifelse("a", 1, 2))
  expect_refused("yes", cl_ifelse(as_cl(x), "a", 2))
})

test_that("which.max, which.min, any, all, anyNA and is.na agree with base R", {
  x <- matrix(c(NA, 3, 7, -1, 7, NaN, Inf, -1), 2)
  each_engine({
    d <- as_cl(x)
    expect_identical(which.max(d), which.max(x))
    expect_identical(which.min(d), which.min(x))
    expect_identical(which.max(d - d), which.max(x - x))
    expect_identical(which.min(as_cl(matrix(NA_real_, 2, 2))), integer())
    expect_identical(which.max(as_cl(matrix(0, 0, 2))), integer())
    expect_identical(anyNA(d), TRUE)
    expect_identical(anyNA(cl_ifelse(is.na(d), 0, d)), FALSE)
    expect_equal(as.matrix(is.na(d)), is.na(x) + 0)
    expect_equal(as.matrix(is.finite(d)), is.finite(x) + 0)
    expect_equal(as.matrix(is.infinite(d)), is.infinite(x) + 0)
    expect_identical(any(d > 100), TRUE)
    expect_identical(all(d > 100), FALSE)
  })
  expect_identical(which.max(c(a = 1, b = 3)), c(b = 2L))
})

test_each_engine("products with a column are fused with arithmetic", {
  x <- matrix(sin(1:60), 12)
  y <- cos(1:12)
  b <- c(1, -2, 0.5, 3, 0)
  d <- as_cl(x)
  r <- as_cl(y) - d %*% b
  expect_true(pending(r))
  expect_equal(sum(r^2), sum((y - x %*% b)^2))
  expect_equal(as.matrix(d %*% as_cl(b)), x %*% b)
  expect_equal(as.matrix((d * 2) %*% (as_cl(b) + 1)), (x * 2) %*% (b + 1))
  expect_equal(as.matrix(crossprod(d, r)), crossprod(x, y - x %*% b))
})

test_that("blocks read and replaced, transposes and indices stay in the graph", {
  x <- matrix(1:20 + 0, 5)
  each_engine({
    d <- as_cl(x) * 2
    part <- d[2:4, 1:3] + 1
    expect_true(pending(part))
    expect_true(pending(d))
    expect_equal(as.matrix(part), (x * 2)[2:4, 1:3] + 1)
    expect_equal(as.matrix(t(d) - 1), t(x * 2) - 1)
    d[1:2, 2:3] <- as_cl(matrix(-1, 2, 2)) * 5
    d[5, ] <- 0
    expect_true(pending(d))
    want <- x * 2
    want[1:2, 2:3] <- -5
    want[5, ] <- 0
    expect_equal(as.matrix(d), want)
    expect_equal(as.matrix(cl_ifelse(cl_row(d) >= cl_col(d), d, 0)), want * (row(x) >= col(x)))
    # a value computed for a part first, and then everywhere
    for (order in 1:2) {
      e <- d * 1.5
      both <- as_cl(x)
      both[2:3, ] <- e[2:3, ]
      mixed <- x
      mixed[2:3, ] <- want[2:3, ] * 1.5
      got <- if (order == 1) both + e else e + both
      expect_equal(as.matrix(got), mixed + want * 1.5)
    }
    expect_equal(d[c(1, 3), c(4, 2)]@Dim, c(2L, 2L))
    expect_equal(as.matrix(d[c(1, 3), c(4, 2)]), want[c(1, 3), c(4, 2)])
  })
  expect_refused("x", cl_row(x))
})

# ---- laziness -----------------------------------------------------------------------------------

test_each_engine("nothing is computed until it is needed, and then once", {
  x <- as_cl(matrix(runif(20), 4))
  before <- counters()
  y <- exp(x) * 2 + t(t(x))
  for (text in list(capture.output(str(y)), format(y))) {
    expect_match(paste(text, collapse = " "), "4 x 5")
    expect_match(paste(text, collapse = " "), "exp(", fixed = TRUE)
  }
  dim(y)
  dimnames(y)
  length(y)
  expect_true(pending(y))
  expect_identical(counters(), before)
  first <- as.matrix(y)
  expect_false(pending(y))
  done <- counters()
  expect_identical(as.matrix(y), first)
  expect_identical(counters(), done)
  expect_no_match <- function(x) expect_false(any(grepl("pending", x)))
  expect_no_match(capture.output(print(y)))
})

test_each_engine("printing computes the numbers that it shows, also of pending matrices", {
  plain <- matrix(seq_len(70) / 7, 10)
  x <- as_cl(plain)
  shown <- capture.output(print(plain[1:6, ] * 2))
  text <- capture.output(print(head(x * 2)))
  expect_match(text[1], "6 x 7")
  expect_identical(text[2:8], capture.output(print(plain[1:6, 1:6] * 2)))
  expect_identical(capture.output((x * 2)[1:2, 1:3])[-1],
                   capture.output(print(plain[1:2, 1:3] * 2)))
  y <- x * 2 + 1
  text <- capture.output(print(y)) # the corner alone is computed
  expect_match(text[1], "pending: ")
  expect_identical(text[2:8], capture.output(print(plain[1:6, 1:6] * 2 + 1)))
  expect_match(text[9], "4 rows, 1 column more")
  expect_true(pending(y))
  dimnames(y) <- list(letters[1:10], NULL)
  expect_match(capture.output(print(y + 0))[8], "^f ")
  expect_match(capture.output(print(t(x) %*% rep(1, 10)))[2:3], "[,1]", fixed = TRUE, all = FALSE)
})

test_on_device("a computed part is used by expressions of it", {
  x <- as_cl(matrix(runif(20), 4))
  part <- atanh(x / 2)
  whole <- part + 1
  format(whole) # from here on the graph is there
  transposed <- t(part)
  cl_eval(part)
  for (y in list(whole, transposed)) {
    expect_false(grepl("atanh", format(y)))
    expect_true(pending(y))
  }
  expect_equal(as.matrix(whole), atanh(as.matrix(x) / 2) + 1)
})

test_each_engine(
  "cl_eval() gives the matrices with their values, named, and reduces in the same kernel", {
  plain <- matrix(runif(30), 6)
  x <- as_cl(plain)
  r <- x - 0.5
  got <- cl_eval(score = r * 3, total = cl_reduce(r^2), abs(r))
  expect_named(got, c("score", "total", ""))
  expect_false(any(vapply(got, pending, NA)))
  expect_equal(as.matrix(got$score), (plain - 0.5) * 3)
  expect_equal(as.matrix(got$total), matrix(sum((plain - 0.5)^2)))
  expect_equal(as.matrix(got[[3]]), abs(plain - 0.5))
  expect_refused("...", cl_eval(x, 1))
  expect_identical(cl_eval(), list())
})

test_on_device("several results of one shape, and repeated structures, compile one kernel", {
  x <- as_cl(matrix(runif(30), 6))
  y <- as_cl(matrix(runif(30), 6))
  run <- function(a, b) cl_eval(atanh(a / 2) - b, cl_reduce(atanh(a / 2) * b, margin = "rows"))
  before <- built()
  run(x, y)
  expect_equal(built() - before, 1)
  run(y, x)
  run(x * 1, y) # another structure
  expect_equal(built() - before, 2)
  z <- as_cl(matrix(runif(80), 10))
  for (number in c(2, 3.5, -1)) run(z, z + 0) # again one
  sinh(x * 1.5 + 0.25) -> p
  after <- built()
  cl_eval(p)
  cl_eval(sinh(z * -7 + 1e-3))
  expect_equal(built() - after, 1)
})

test_on_device("a shared subexpression occurs once in the kernel", {
  x <- as_cl(matrix(runif(30), 6))
  z <- acosh(x + 1.5)
  source <- capture.output(text <- cl_show_kernel(z * z + z - sqrt(z)))
  expect_identical(paste(source, collapse = "\n"), sub("\n$", "", text))
  expect_length(gregexpr("acosh(", text, fixed = TRUE)[[1L]], 1L)
  expect_true(pending(z))
  # Equal parts that were written twice are computed once.
  capture.output(text <- cl_show_kernel(acosh(x + 1.5) + 2 * acosh(x + 1.5)))
  expect_length(gregexpr("acosh(", text, fixed = TRUE)[[1L]], 1L)
})

test_each_engine("a value that was printed, summed or passed on agrees with base R", {
  plain <- matrix(sin(1:40), 8, dimnames = list(letters[1:8], NULL))
  x <- as_cl(plain)
  y <- x^2 + 0.1
  expect_equal(as.matrix(y), plain^2 + 0.1)
  expect_equal(sum(x * y), sum(plain * (plain^2 + 0.1)))
  expect_equal(rowSums(exp(x - y)), rowSums(exp(plain - (plain^2 + 0.1))))
  expect_equal(as.matrix(crossprod(x - 1)), crossprod(plain - 1), ignore_attr = TRUE)
  expect_equal(as.matrix(cl_chol(crossprod(x) + diag(5))), chol(crossprod(plain) + diag(5)),
               ignore_attr = TRUE)
  expect_equal(as.matrix(rbind(x * 2, y)), rbind(plain * 2, plain^2 + 0.1))
  expect_equal((x + 1)["b", 2], (plain + 1)["b", 2])
})

# ---- limits and injection -----------------------------------------------------------------------

test_each_engine("deep and large graphs are split, with the same results", {
  x <- as_cl(matrix(c(0.5, 1, 2, -1), 2))
  y <- x
  for (k in 1:3000) y <- y * 0.999 + 0.001
  want <- as.matrix(x)
  for (k in 1:3000) want <- want * 0.999 + 0.001
  expect_equal(as.matrix(y), want)
  terms <- lapply(1:300, function(k) as_cl(matrix(k, 2, 2)))
  expect_equal(as.matrix(Reduce(`+`, terms)), matrix(sum(1:300), 2, 2))
  # Doubling: 2^60 nodes as a tree, 60 as a graph.
  z <- x
  for (k in 1:60) z <- z + z
  expect_equal(as.matrix(z), as.matrix(x) * 2^60)
  # Many elements replaced one after another.
  w <- as_cl(matrix(0, 5, 5))
  for (k in 1:5) for (l in 1:5) w[k, l] <- k * 10 + l
  expect_equal(as.matrix(w), outer(1:5 * 10, 1:5, "+"))
})

test_that("a freed matrix lives as long as pending expressions need it, and no longer", {
  live <- function() sum(cl_memory()$live)
  each_engine({
    gc()
    x <- as_cl(matrix(1, 500, 20))
    one <- live()
    y <- x + 1
    cl_free(x)
    expect_fault(x + 1, "stale")
    expect_fault(sum(x), "stale")
    expect_output(print(x), "freed")
    expect_true(pending(y)) # what was made of it is as good as before
    expect_identical(live(), one)
    expect_equal(sum(y), 500 * 20 * 2)
    cl_eval(y)
    expect_identical(live(), one) # y is there, x is gone
    cl_free(y)
    expect_lt(live(), one)
  })
})

test_each_engine("numbers of every kind are arguments and keep their values", {
  x <- matrix(c(1, -2, 0, 4), 2)
  numbers <- c(NA, NaN, Inf, -Inf, 0, -0, 1e-320, -4.9e-324, 2^53 + 1, .Machine$double.xmax, 1 / 3)
  d <- as_cl(x)
  before <- built()
  for (number in numbers) {
    got <- as.matrix((d * 0.5) * number)
    want <- (x * 0.5) * number
    expect_identical(is.na(got), is.na(want))
    expect_identical(got[!is.na(want)], want[!is.na(want)])
  }
  expect_lte(built() - before, 2) # one kernel for all numbers; NA may have its own
  expect_identical(1 / as.matrix(d * -0)[1, 1], -Inf)
  expect_identical(as.matrix(d + 2L), x + 2)
  expect_identical(as.matrix(is.na(d + NA_integer_)), matrix(1, 2, 2))
})

test_that("a decimal comma, shadowed functions and unusual names change nothing", {
  old <- options(OutDec = ",")
  locale <- Sys.getlocale("LC_NUMERIC")
  on.exit({
    options(old)
    suppressWarnings(Sys.setlocale("LC_NUMERIC", locale))
  })
  for (name in c("de_DE.UTF-8", "de_DE", "fr_FR.UTF-8")) {
    if (nzchar(suppressWarnings(Sys.setlocale("LC_NUMERIC", name)))) break
  }
  evil <- c("x; } __kernel void evil(", "/* */", "\"'\\\n#include <x>", strrep("a", 1e4),
            "__global", "double", "r\u00e4tsel")
  x <- matrix(c(0.5, 1.5), 1, 2)
  each_engine({
    for (name in evil) {
      d <- as_cl(matrix(c(0.5, 1.5), 1, 2, dimnames = list(name, c(name, "b"))))
      assign(name, d)
      y <- get(name) * 0.125 + 1.5
      expect_equal(as.matrix(y), x * 0.125 + 1.5, ignore_attr = TRUE)
      capture.output(text <- cl_show_kernel(exp(get(name)) / 3))
      expect_false(grepl(name, text, fixed = TRUE) && !name %in% c("__global", "double", "/* */"))
      expect_false(grepl("0,125", text, fixed = TRUE))
    }
    exp <- function(...) stop("not this one")
    `*` <- function(e1, e2) base::`+`(e1, e2)
    expect_equal(as.matrix(cl_map(function(x) base::exp(x), as_cl(x))), base::exp(x))
    expect_equal(as.matrix(as_cl(x) * 2), x + 2) # the caller's own operator, as R has it
    rm(exp, `*`)
  })
})

test_on_device("no generated source has an include, inline assembly or a build option", {
  x <- as_cl(matrix(runif(30), 6))
  texts <- vapply(list(
    exp(x) + 1, t(x) * 2, x[2:3, ] - 1, cl_reduce(x, margin = "rows") + 0,
    cl_map(function(x, i, j) x * i + j, x), cl_ifelse(x > 0.5, x, 0)),
    function(y) {
      capture.output(text <- cl_show_kernel(y))
      text
    }, "")
  expect_true(all(nzchar(texts)))
  expect_false(any(grepl("#include|asm|printf|#pragma OPENCL SELECT", texts)))
})

test_each_engine("similar structures do not share a kernel", {
  # The same text over other shapes, types of operands, orders and positions of numbers.
  a <- matrix(1:6 + 0, 3)
  full <- as_cl(a)
  column <- as_cl(1:3)
  row <- as_cl(matrix(1:2, 1))
  l <- matrix(c(1, 2, 3, 0, 4, 5, 0, 0, 6), 3)
  square <- as_cl(l, view = "lower")
  f <- function(x, y) x - y * 2
  expect_equal(as.matrix(f(full, full)), a - a * 2)
  expect_equal(as.matrix(f(full, column)), a - 1:3 * 2)
  expect_equal(as.matrix(f(full, row)), a - rep(c(1, 2), each = 3) * 2)
  expect_equal(as.matrix(f(column, full)), 1:3 - a * 2)
  expect_equal(as.matrix(f(full, 5)), a - 10)
  expect_equal(as.matrix(f(5, full)), 5 - a * 2)
  # a triangle, itself and transposed, and its known zeros
  expect_equal(as.matrix(f(square, t(square))), l - t(l) * 2)
  expect_equal(as.matrix(f(t(square), square)), t(l) - l * 2)
  expect_equal(as.matrix(f(square, square)), -l)
  expect_equal(as.matrix(f(as_cl(l), t(square))), l - t(l) * 2)
  expect_equal(as.matrix(f(t(square), t(square))), -t(l))
  general <- matrix(1:9 + 0, 3)
  expect_equal(as.matrix(f(as_cl(general), t(as_cl(general)))), general - t(general) * 2)
  expect_equal(as.matrix(f(t(as_cl(general)), as_cl(general))), t(general) - general * 2)
  expect_equal(as.matrix(f(as_cl(a), as_cl(a)[, ] + 0)), a - a * 2)
  expect_equal(as.matrix(full - full), a - a)
  expect_equal(as.matrix(full[1:2, ] - full[2:3, ]), a[1:2, ] - a[2:3, ])
  expect_equal(as.matrix(t(full) - t(full + 1)), matrix(-1, 2, 3))
  expect_equal(sum(full * 2), sum(a * 2))
  expect_equal(max(full * 2), 12)
  expect_equal(rowSums(full * 2), rowSums(a * 2))
  expect_equal(colSums(full * 2), colSums(a * 2))
})

test_each_engine("an operand may be an earlier value of the same variable", {
  x <- as_cl(matrix(1:4 + 0, 2))
  y <- x
  y[1, ] <- y[2, 1:2, drop = FALSE] * 10
  expect_equal(as.matrix(x), matrix(1:4, 2))
  expect_equal(as.matrix(y), matrix(c(20, 2, 40, 4), 2))
  z <- y + t(y)
  cl_eval(z)
  z <- z * z
  expect_equal(as.matrix(z), (as.matrix(y) + t(as.matrix(y)))^2)
})

# ---- errors and memory --------------------------------------------------------------------------

test_each_engine("an error during evaluation names the cause, and the next call works", {
  x <- as_cl(diag(3))
  y <- x * 2 + 1
  .Call(r_fail_buffer_after, 1L)
  expect_fault(as.matrix(y), "memory")
  .Call(r_fail_buffer_after, -1L)
  expect_equal(as.matrix(y), diag(3) * 2 + 1)
  z <- x + 1
  cl_free(x)
  expect_equal(as.matrix(z), diag(3) + 1) # the graph holds what it needs
  expect_fault(x + 1, "stale")
  saved <- unserialize(serialize(z + 1, NULL))
  expect_equal(as.matrix(saved + 1), diag(3) + 3)
})

test_that("matrices of two engines are not mixed", {
  here <- on_host(as_cl(diag(2)))
  on_device({
    there <- as_cl(diag(2))
    expect_fault(here + there, "argument")
    expect_fault(cl_ifelse(here, there, 0), "argument")
  })
})
