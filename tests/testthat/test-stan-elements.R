# Elements of traced values in the code of Stan programs (R/stan-values.R, src/r/trace_move.c)
# against the same functions of plain numbers, which are base R's.

stan_pick <- statcl:::stan_pick
stan_put <- statcl:::stan_put
stan_lane_pick <- statcl:::stan_lane_pick
stan_lane_put <- statcl:::stan_lane_put

# The value and gradient of sum(w * f(x)) against f of numbers and differences.
expect_moved <- function(f, x) {
  want <- f(x)
  w <- cos(seq_along(want))
  model <- cl_gradient(function(x) sum(w * as.vector(f(x))))
  found <- suppressWarnings(model(x))
  expect_equal(as.numeric(found), sum(w * as.vector(want)), tolerance = 1e-12)
  slope <- vapply(seq_along(x), function(k) {
    up <- down <- x
    up[k] <- up[k] + 1e-4
    down[k] <- down[k] - 1e-4
    sum(w * as.vector(f(up) - f(down))) / 2e-4
  }, 0)
  expect_equal(as.vector(attr(found, "gradient")[[1L]]), slope, tolerance = 1e-7)
}

# A value made of elements of several nodes, one of them a number.
mixed <- function(x, dims) {
  y <- c(sin(x[1:3]), x[1]^2, exp(x), x[2:5] * x[1], 0.5 * x[3])
  n <- prod(dims)
  y <- if (statcl:::is_traced(y)) y[rep_len(seq_along(y), n)] else rep_len(y, n)
  if (length(dims) > 1L) dim(y) <- dims
  y
}

random_index <- function(n) {
  switch(sample(5L, 1L), NULL, sample(n, 1L), sample(n, sample(n, 1L)), sample(n, n, TRUE),
         list(1 + (n > 2), n))
}

test_that("random indices pick and replace as in base R", {
  seeds <- full_or_quick(400L, 60L)
  x <- c(0.3, -0.7, 1.1, 0.4, -0.2)
  with_cl(engine = "host", for (seed in seq_len(seeds)) {
    set.seed(seed)
    rank <- sample(3L, 1L)
    dims <- sample(2:4, rank, TRUE)
    parts <- lapply(dims, random_index)
    single <- vapply(parts, function(i) is.numeric(i) && length(i) == 1L, NA)
    pick <- function(y) do.call(stan_pick, c(list(y, single), parts))
    expect_moved(function(x) pick(mixed(x, dims)), x)
    expect_moved(function(x) {
      y <- sin(x[1] + seq_len(prod(dims)))
      if (rank > 1L) dim(y) <- dims
      pick(y)
    }, x)
    count <- length(pick(mixed(x, dims)))
    if (sum(!single) < 2L) {
      expect_moved(function(x) {
        y <- do.call(stan_put, c(list(mixed(x, dims), exp(x)[rep_len(1:5, count)], single), parts))
        y + 2 * do.call(stan_put, c(list(y, mixed(x, 7L)[rep_len(7:1, count)], single), parts))
      }, x)
    }
    lanes <- lapply(dims, function(n) sample(n, if (runif(1) < 0.3) 1L else 6L, TRUE))
    if (any(lengths(lanes) > 1L)) {
      expect_moved(function(x) {
        y <- mixed(x, dims)
        z <- do.call(stan_lane_pick, c(list(y), lanes))
        c(z, as.vector(do.call(stan_lane_put, c(list(y, z * x[1]), lanes))),
          as.vector(do.call(stan_lane_put, c(list(y, x[2]), lanes))),
          as.vector(do.call(stan_lane_put, c(list(y, 0.25), lanes))))
      }, x)
    }
  })
})

test_that("a value joined of several nodes is what its elements are", {
  data <- c(1.5, NA, 0.2, 3)
  x <- c(0.3, -0.7, 1.1, 0.4, -0.2)
  with_cl(engine = "host", {
    expect_moved(function(x) c(x[1:2], sin(x)[2:4], x[4] * x[5]) * 2, x)
    expect_moved(function(x) c(x[1:2], sin(x)[2:4], x[2:1]) * c(x, 1, 2), x)
    expect_moved(function(x) c(x[1], x[1], x[1]) + c(x[2], 3, x[2]), x)
    expect_moved(function(x) pmax(c(x[3:5], 0), c(0, x[1:3])), x)
    f <- function(x) sum(c(data * x[1], sin(x))[c(1, 3, 4, 6, 7)] * x)
    expect_equal(as.numeric(cl_gradient(f)(x)), f(x))
  })
})

test_that("wrong indices and sizes are errors that name them", {
  run <- function(body) {
    code <- sprintf(paste("parameters { vector[3] a; } model { array[3] real z; vector[3] y;",
                          "z[1] = a[1]; z[2] = a[2]; y = a * a[1]; y[1] = a[2]; %s }"), body)
    cl_stan(code = code)(list())$unconstrained(c(0.1, 0.2, 0.3))
  }
  expect_error(run("y[4] = a[1];"), "index 4 of 'y' is out of bounds")
  expect_error(run("target += y[0];"), "index 0 of 'y' is out of bounds")
  expect_error(run("target += sum(y[{1, 5}]);"), "index 5 of 'y' is out of bounds")
  expect_error(run("y[{1, 2}] = a;"), "elements are assigned to 2|assigned to a variable of size")
})

test_that("R's own messages of subscripts are said in words of Stan", {
  said <- function(call) statcl:::stan_message("subscript out of bounds", call)
  expect_identical(said(quote(x[[3]][2])), "an index of 'x' is out of bounds")
  expect_identical(said(quote((1:3)[[4]])), "an index is out of bounds")
})
