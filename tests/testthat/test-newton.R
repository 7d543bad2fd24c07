# The search of modes by itself: newton_search() and newton_mode() in one dimension.

# f, its first and second derivatives; `other`: what replaces a second derivative that is not
# positive.
newton_of <- function(f, d, h, other = NULL) {
  at <- function(x) list(x = x, value = f(x))
  list(at = at, direction = function(now, exact) {
    curve <- h(now$x)
    if (exact && curve <= 0) return(NULL)
    if (!exact) {
      if (is.null(other)) return(NULL)
      curve <- other(now$x)
    }
    list(by = -d(now$x) / curve, decrement = d(now$x)^2 / curve)
  }, to = function(now, step, size) at(now$x + size * step$by))
}

find <- function(p, ...) {
  newton_mode(lapply(c(...), function(from) function() p$at(from)), p$direction, p$to)
}

test_that("a minimum is found by steps that are halved, and over values that are not finite", {
  p <- newton_of(function(x) x - log(x), function(x) 1 - 1 / x, function(x) 1 / x^2) # -log: x > 0
  p$to <- function(now, step, size) {
    x <- now$x + size * step$by
    list(x = x, value = if (x > 0) x - log(x) else Inf)
  }
  expect_equal(find(p, 5)$x, 1, tolerance = 1e-8) # the first step leads to -15
  far <- newton_of(function(x) sqrt(1 + x^2), function(x) x / sqrt(1 + x^2),
                   function(x) (1 + x^2)^-1.5) # full steps diverge from |x| > 1
  expect_lt(abs(find(far, 3)$x), 1e-8)
  expect_null(newton_mode(list(function() list(x = 0, value = Inf)), far$direction, far$to))
})

test_that("another direction is taken where the function is not convex, if there is one", {
  f <- function(x) x^4 / 4 - x^2 / 2
  d <- function(x) x^3 - x
  h <- function(x) 3 * x^2 - 1
  expect_null(find(newton_of(f, d, h), 0.3))
  expect_equal(find(newton_of(f, d, h), NaN, 0.3, 0.9)$x, find(newton_of(f, d, h), 0.9)$x)
  found <- find(newton_of(f, d, h, function(x) 3 * x^2 + 1), 0.3)
  expect_equal(found$x, 1, tolerance = 1e-8)
  expect_identical(names(found$step), c("by", "decrement"))
  # a maximum is no mode
  expect_null(find(newton_of(f, d, h, function(x) 3 * x^2 + 1), 0))
})

test_that("a search says how it ended", {
  p <- newton_of(function(x) cosh(x), sinh, cosh)
  search <- function(most, ...) newton_search(p$at(3), p$direction, p$to, most, ...)
  found <- search(2L)
  expect_identical(unlist(found[c("converged", "stuck", "iterations")]),
                   c(converged = 0L, stuck = 0L, iterations = 2L))
  expect_true(search(50L)$converged)
  expect_true(search(50L, shorten = function(...) NULL)$stuck)
  seen <- numeric()
  search(50L, report = function(i, now, step) seen[i + 1] <<- step$decrement)
  expect_true(all(diff(seen) < 0))
})
