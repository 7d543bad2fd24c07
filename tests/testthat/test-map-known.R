# cl_map() of functions whose trace is known (R/trace-map-known.R, src/r/map.c,
# src/graph/template.c).

known_maps <- function() statcl:::known$maps
forget <- function() {
  space <- statcl:::known
  space$maps <- list()
}

# Evaluates the code with the host engine, where functions are known.
on_host <- function(code) with_cl(code, engine = "host")

# Whether a second call of cl_map(f, ...) traces f no more: a known function never sees elements.
is_known <- function(f, ...) {
  forget()
  cl_map(f, ...)
  length(known_maps()) == 1L && !is.null(known_maps()[[1L]]$template)
}

test_each_engine("a second call has the values of base R, for all shapes of operands", {
  f <- function(x, y) exp(-x / 3) * y + 2
  shapes <- list(list(5, 3), list(1:7 / 2, 7:1), list(c(1, NA, NaN, Inf, -Inf), -3),
                 list(numeric(), numeric()), list(numeric(), 1), list(2, numeric()),
                 list(matrix(1:6 / 7, 2), matrix(6:1, 2)), list(matrix(1:6, 1), 2),
                 list(matrix(1:6 / 3, 6), 2), list(matrix(0, 0, 3), 1), list(matrix(0, 3, 0), 1),
                 list(matrix(1:513 / 100, 171), 0.5), list(seq(-3, 3, length.out = 1025), 1),
                 list(matrix(rnorm(40000), 200), matrix(rnorm(40000), 200)))
  for (s in c(shapes, rev(shapes))) expect_equal(cl_map(f, s[[1]], s[[2]]), f(s[[1]], s[[2]]))
})

test_each_engine("single rows, columns and elements are recycled", {
  f <- function(x, y) x - 2 * y
  whole <- matrix(rnorm(15), 5)
  row <- matrix(1:3 / 2, 1)
  column <- matrix(1:5 / 2, 5)
  one <- matrix(4)
  full <- function(x) matrix(x, 5, 3, byrow = nrow(x) == 1L)
  for (repeated in list(row, column, one)) {
    expect_equal(cl_map(f, whole, repeated), f(whole, full(repeated)))
    expect_equal(cl_map(f, repeated, whole), f(full(repeated), whole))
  }
  expect_equal(cl_map(f, row, column), f(full(row), full(column)))
  expect_equal(cl_map(f, column, row), f(full(column), full(row)))
  expect_equal(cl_map(f, row, 2), f(row, 2))
  expect_equal(cl_map(f, 1:5, row), f(full(column * 2), full(row))) # a vector is a column
  expect_fault(cl_map(f, whole, 1:2), "argument")
  expect_fault(cl_map(f, whole, t(whole)), "argument")
  expect_fault(cl_map(f, 1:3, 1:2), "argument")
})

test_each_engine("integer and logical operands are numbers, with NA", {
  for (k in 1:2) {
    expect_identical(cl_map(function(x, y) x * y, c(2L, NA, -3L), c(TRUE, TRUE, NA)),
                     c(2, NA, NA))
    expect_identical(cl_map(function(x) -x, matrix(c(TRUE, FALSE, NA, TRUE), 2)),
                     matrix(c(-1, 0, NA, -1), 2))
    expect_identical(cl_map(function(x) x, 1:3), c(1, 2, 3))
  }
})

test_each_engine(
  "names and dimensions are those of the first operand that has them; others are dropped", {
  f <- function(x, y) x + y
  x <- matrix(1:4 / 1, 2, dimnames = list(c("a", "b"), NULL))
  named <- c(p = 1, q = 2)
  marked <- structure(c(1, 2), note = "n")
  for (k in 1:2) {
    expect_identical(cl_map(f, unname(x), x), x + x)
    expect_identical(cl_map(f, x, matrix(0, 2, 2, dimnames = list(NULL, c("u", "v")))), x)
    expect_identical(cl_map(f, 0, x), x)
    expect_identical(cl_map(f, named, 1), named + 1)
    expect_identical(cl_map(f, 1:2, named), c(2, 4))
    expect_identical(cl_map(f, marked, 1), c(2, 3))
    expect_identical(cl_map(f, array(1:2), 1), c(2, 3)) # one dimension
    expect_identical(cl_map(f, ts(c(1, 2, 3)), 1), cl_map(f, c(1, 2, 3), 1))
    expect_identical(dim(cl_map(f, matrix(1, 1, 1), 1)), c(1L, 1L))
  }
  expect_fault(cl_map(f, NULL, 1), "argument")
  expect_fault(cl_map(f, "a", 1), "argument")
  expect_fault(cl_map(f, factor("a"), 1), "argument")
  expect_fault(cl_map(f, array(1, c(1, 1, 1)), 1), "argument")
  expect_fault(cl_map(3, 1), "argument")
})

test_on_host("operands are not changed, and results are new", {
  x <- c(1, 2, 3)
  y <- cl_map(function(x) x, x)
  y[1] <- 7
  expect_identical(x, c(1, 2, 3))
  z <- cl_map(function(x) x + 1, x)
  expect_identical(x, c(1, 2, 3))
  expect_identical(z, x + 1)
})

test_each_engine("what a function reads is noticed when it changes", {
  k <- 2
  f <- function(x) x * k
  expect_identical(cl_map(f, 3), 6)
  k <- 5
  expect_identical(cl_map(f, 3), 15)
  k <- 0
  expect_identical(1 / cl_map(f, 3), Inf)
  k <- -0
  expect_identical(1 / cl_map(f, 3), -Inf)
  k <- NA
  expect_identical(cl_map(f, 3), NA_real_)
  k <- 2L
  expect_identical(cl_map(f, 3), 6)
  rm(k)
  expect_fault(cl_map(f, 3), "argument", "k")
  helper <- function(u) u + 1
  g <- function(x) helper(x) * 2
  expect_identical(cl_map(g, 3), 8)
  helper <- function(u) u + 2
  expect_identical(cl_map(g, 3), 10)
  inner <- 1
  helper <- function(u) u + inner
  expect_identical(cl_map(g, 3), 8)
  inner <- 2
  expect_identical(cl_map(g, 3), 10)
  h <- function(x) exp(x)
  expect_identical(cl_map(h, 0), 1)
  exp <- function(x) x - 1
  expect_identical(cl_map(h, 0), -1)
  body(h) <- quote(x + 7)
  expect_identical(cl_map(h, 0), 7)
  formals(h) <- alist(x = , y = 2)
  body(h) <- quote(x + y)
  expect_identical(cl_map(h, 1), 3)
  expect_identical(cl_map(h, 1, 5), 6)
  formals(h)$y <- 4
  expect_identical(cl_map(h, 1), 5)
  rm(exp)
})

test_each_engine("functions made by a function differ in what they enclose", {
  times <- function(k) function(x) x * k
  for (k in c(1:20, 3, 3)) expect_identical(cl_map(times(k), 2), 2 * k)
  two <- times(2)
  three <- times(3)
  for (k in 1:3) expect_identical(c(cl_map(two, 1), cl_map(three, 1)), c(2, 3))
  local_helper <- function(k) {
    shift <- function(u) u + k
    cl_map(function(x) shift(x), 1)
  }
  for (k in 1:3) expect_identical(local_helper(k), 1 + k)
})

test_each_engine("the same operands by name, by place, and with i and j", {
  f <- function(x, i) x + 10 * i
  for (k in 1:2) {
    expect_identical(cl_map(f, c(1, 1)), c(11, 21))
    expect_identical(cl_map(f, c(1, 1), c(2, 3)), c(21, 31)) # i is the second matrix here
    expect_identical(cl_map(f, i = c(1, 1), x = c(2, 3)), c(12, 13))
    expect_identical(cl_map(f, matrix(1, 1, 2)), matrix(11, 1, 2))
    expect_identical(cl_map(function(x, i, j) i + 10 * j, matrix(0, 1, 3)),
                     matrix(c(11, 21, 31), 1))
    expect_identical(cl_map(function(x, i, j) i + 10 * j, matrix(0, 2, 2)),
                     matrix(c(11, 12, 21, 22), 2))
  }
})

test_each_engine("lists, numbers and names of results", {
  x <- matrix(c(1, 2, 3, 4), 2, dimnames = list(NULL, c("a", "b")))
  for (k in 1:2) {
    expect_identical(cl_map(function(x) list(up = x + 1, x, one = 1), x),
                     list(up = x + 1, x, one = x * 0 + 1))
    expect_identical(cl_map(function(x) TRUE, 1:2), c(1, 1))
    expect_identical(cl_map(function(x) list(), x), list())
    expect_fault(cl_map(function(x) "a", x), "argument")
    expect_fault(cl_map(function(x) list(x, "a"), x), "argument")
  }
})

test_on_host("functions that depend on nothing else are traced once, all others in each call", {
  expect_true(is_known(function(x, y) x + y, 1, 2))
  expect_true(is_known(exp, 1))
  expect_true(is_known(`+`, 1, 2))
  expect_true(is_known(cl_inv_logit, 1))
  scale <- 2
  square <- function(u) u^2
  expect_true(is_known(function(x) scale * square(dnorm(x)), 1))
  expect_true(is_known(function(x) { s <- 0; for (k in 1:3) s <- s + x^k; s }, 2))
  kind <- "twice"
  expect_true(is_known(function(x) switch(kind, twice = 2 * mean(x), identity(x)), 2))
  expect_false(is_known(function(x) x + rnorm(1), 1))
  expect_false(is_known(function(x) { cat(""); x }, 1))
  expect_false(is_known(function(x) get("scale") * x, 1))
  state <- new.env()
  state$k <- 1
  expect_false(is_known(function(x) x * state$k, 1))
  large <- rnorm(2000)
  expect_false(is_known(function(x) x * large[1], 1))
  deep <- function(x) { for (k in 1:150) x <- sin(x); x }
  expect_false(is_known(deep, 1))
  many <- function(x) Reduce(`+`, lapply(1:40, function(k) x * (k + 0.5)))
  expect_equal(cl_map(many, 2), many(2))
  expect_equal(cl_map(many, 2), many(2))
  calls <- 0
  counted <- function(x) { calls <<- calls + 1; x }
  for (k in 1:3) cl_map(counted, 1)
  expect_identical(calls, 3)
  # Replaced functions of R, which see elements only while a function is traced
  expect_fault(cl_map(function(x) if (isTRUE(x)) 1 else 2, 1), "argument")
  expect_fault(cl_map(function(x) if (x > 1) 1 else 2, 1), "argument")
})

test_that("a known function runs on the device from its threshold on", {
  require_device()
  old <- options(statcl.thresholds = c(arith = 4))
  on.exit(options(old))
  with_cl(device = cl_devices()$id[1L], engine = "auto", {
    f <- function(x) x * 3
    forget()
    expect_identical(cl_map(f, 1:4), c(3, 6, 9, 12))
    cl_map(f, 1:3)
    cl_map(function(x) x * 5, 1:3)
    space <- statcl:::known
    space$maps[[2L]]$template <- space$maps[[1L]]$template # tells who computes
    expect_identical(cl_map(f, 1:3), c(5, 10, 15))
    expect_identical(cl_map(f, 1:4), c(3, 6, 9, 12))
    forget()
  })
})

test_on_host("few functions are kept, and nothing large", {
  forget()
  for (k in 1:40) cl_map(eval(bquote(function(x) x + .(k))), 1)
  expect_lte(length(known_maps()), 16L)
  forget()
  enclosing <- function() {
    held <- rnorm(1e5)
    f <- function(u) u + 1
    cl_map(function(x) f(x), held)[1:2]
  }
  enclosing()
  expect_lt(length(serialize(known_maps(), NULL)), 4e5) # `held` has 8e5
  expect_false(is.null(known_maps()[[1L]]$template))
})
