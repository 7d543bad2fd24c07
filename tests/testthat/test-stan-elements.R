# Elements of traced values in the code of Stan programs (R/stan-values.R, src/r/trace_move.c)
# against the same functions of plain numbers, and these against base R.

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

test_that("random indices of numbers pick and replace as in base R", {
  for (seed in 1:300) {
    set.seed(seed)
    rank <- sample(4L, 1L)
    dims <- sample(1:4, rank, TRUE)
    x <- rnorm(prod(dims))
    if (rank > 1L) dim(x) <- dims
    parts <- lapply(dims, random_index)
    single <- vapply(parts, function(i) is.numeric(i) && length(i) == 1L, NA)
    plain <- lapply(parts, function(i) {
      if (is.null(i)) return(TRUE)
      if (is.list(i)) i[[1L]] + seq_len(i[[2L]] - i[[1L]] + 1L) - 1L else i
    })
    want <- do.call(`[`, c(list(x), plain, drop = FALSE))
    kept <- dim(array(want, if (is.null(dim(want))) length(want) else dim(want)))[!single]
    want <- as.vector(want)
    if (length(kept) > 1L) dim(want) <- kept
    expect_identical(do.call(stan_pick, c(list(x, single), parts)), want)
    if (rank < 3L) {
      at <- vapply(dims, sample, 0L, 1L)
      one <- if (rank == 1L) statcl:::stan_item else statcl:::stan_at
      expect_identical(do.call(one, c(list(x), at)), do.call(`[[`, c(list(x), at)))
    }
    lanes <- lapply(dims, sample, 5L, TRUE)
    expect_identical(do.call(stan_lane_pick, c(list(x), lanes)), x[do.call(cbind, lanes)])
  }
})

test_that("values that are not set are filled", {
  x <- c(0.3, -0.7, 1.1, 0.4, -0.2)
  with_cl(engine = "host", {
    expect_moved(function(x) {
      y <- stan_put(array(NaN, c(3, 5)), sin(x), c(TRUE, FALSE), 2, NULL)
      y <- stan_put(y, x[1] * x, c(TRUE, FALSE), 1, NULL)
      y <- stan_put(y, x[3], c(TRUE, TRUE), 3, 4)
      y <- stan_put(y, exp(x[2]), c(TRUE, TRUE), 3, 4)
      y <- stan_put(y, stan_pick(y, c(TRUE, FALSE), 1, 5:1), c(TRUE, FALSE), 2, NULL)
      old <- stan_put(y, x[4:5], c(TRUE, FALSE), 3, 2:3)
      new <- stan_put(old, x[5], c(TRUE, TRUE), 3, 2)
      stan_put(new, stan_pick(old, c(TRUE, TRUE), 3, 2), c(TRUE, TRUE), 3, 1)[, 1:4]
    }, x)
    expect_moved(function(x) {
      y <- rep(NaN, 80)
      for (k in 1:80) y <- stan_put(y, x[1 + k %% 5] * k, TRUE, k)
      z <- stan_put(y, x[2], TRUE, 7)
      c(y, stan_pick(z, FALSE, 1:9), stan_pick(y, FALSE, 9:1))
    }, x)
  })
})

test_that("products of vectors of all forms are those of base R", {
  x <- c(0.3, -0.7, 1.1, 0.4, -0.2)
  dot <- statcl:::stan_dot
  with_cl(engine = "host", expect_moved(function(x) {
    c(dot(x, sin(x)), dot(x, 1:5 / 7), dot(cos(1:5), x), dot(x[5:1], x), dot(c(x[1], 2), x[1:2]),
      dot(x[1], x[2]), dot(2, x[3]), dot(c(2, 3), c(1, 4)))
  }, x))
  expect_error(dot(1:2, 1:3), "sizes differ")
})

test_that("assignments in plain code change one variable", {
  m <- cl_stan(code = "
    data { int N; }
    transformed data {
      matrix[N, 3] A = rep_matrix(0, N, 3);
      matrix[N, 3] B;
      vector[N] v = rep_vector(1, N);
      array[2, N] vector[3] w;
      for (i in 1:N) A[i] = [i, 2 * i, 3 * i];
      B = A;
      A[2:3, 1] = A[1:2, 2];
      A[, 3] = v;
      v[2:3] = v[{1, 2}] + 4;
      for (i in 1:N) for (j in 1:2) w[j, i] = B[i]' * j;
      w[1] = w[2];
      w[2, 1][2:3] = [7, 8]';
    }
    parameters { real mu; }
    model { mu ~ normal(sum(A) + 2 * sum(B), 1); }
    generated quantities { matrix[N, 3] C = B; C[1, 2:3] = [mu, mu]; real s = sum(C - B); }")
  home <- environment(m(list(N = 4)))$state$home
  b <- outer(1:4, 1:3)
  a <- b
  a[2:3, 1] <- a[1:2, 2]
  a[, 3] <- 1
  expect_identical(home$A, a)
  expect_identical(home$B, b)
  expect_identical(home$v, c(1, 5, 5, 1))
  w <- aperm(array(c(2 * b, 2 * b), c(4, 3, 2)), c(3, 1, 2))
  w[2, 1, 2:3] <- c(7, 8)
  expect_identical(home$w, w)
  fit <- suppressWarnings(cl_sample(m(list(N = 4)), chains = 1, warmup = 50, iter = 5, seed = 1))
  draws <- as.matrix(fit)
  expect_equal(unname(draws[, "s"]), unname(2 * draws[, "mu"]) - 5)
  wrong <- function(code) {
    code <- sprintf("transformed data { matrix[2, 3] A = rep_matrix(0, 2, 3); %s }
                     parameters { real m; } model { m ~ normal(sum(A), 1); }", code)
    cl_stan(code = code)(list())
  }
  expect_error(wrong("A[3] = [1, 2, 3];"), "index 3 of 'A' is out of bounds")
  expect_error(wrong("A[1, 2:4] = [1, 2, 3];"), "index 4 of 'A' is out of bounds")
  expect_error(wrong("A[1] = [1, 2];"), "2 elements are assigned to 3")
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
