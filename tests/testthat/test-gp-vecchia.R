# Vecchia's approximation, held against a plain version of it in R and against exact processes.

# Maximin order and nearest earlier neighbours by looking at all points.
plain_order <- function(x) {
  distance <- as.matrix(stats::dist(x))^2
  closest <- rep(Inf, nrow(x))
  order <- which.min(rowSums(sweep(x, 2L, colMeans(x))^2))
  while (length(order) < nrow(x)) {
    closest <- pmin(closest, distance[, order[length(order)]])
    order <- c(order, which.max(replace(closest, order, -1)))
  }
  order
}

plain_neighbours <- function(x, m) {
  distance <- as.matrix(stats::dist(x))
  vapply(seq_len(nrow(x)), function(i) {
    order(distance[i, seq_len(i - 1L)])[seq_len(m)]
  }, integer(m))
}

test_that("the order is maximin, and neighbours are the nearest earlier points", {
  for (p in c(1L, 2L, 5L)) {
    d <- scattered(300L, p)
    f <- with_cl(cl_gp_likelihood(d$y, d$x, k_matern32(), approx = "vecchia", neighbours = 7),
                 engine = "host")
    graph <- vecchia_graph(f)
    expect_identical(graph$order, unname(plain_order(d$x)))
    expect_identical(graph$neighbours, plain_neighbours(d$x[graph$order, , drop = FALSE], 7L))
  }
  # ties everywhere: a grid; the distances agree, if not the points
  x <- as.matrix(expand.grid(a = 1:15, b = 1:15))
  graph <- vecchia_graph(cl_gp_likelihood(rep(0, 225), x, k_matern32(), approx = "vecchia",
                                          neighbours = 5))
  expect_identical(sort(graph$order), 1:225)
  at <- x[graph$order, ]
  expect_identical(graph$neighbours, plain_neighbours(at, 5L))
})

test_that("lengthscales of the kernel are the units of distances", {
  d <- scattered(200L)
  of <- function(x, lengthscale) {
    vecchia_graph(cl_gp_likelihood(d$y, x, k_matern32(lengthscale = lengthscale),
                                   approx = "vecchia", neighbours = 6))
  }
  expect_identical(of(d$x, c(0.125, 4)), of(d$x %*% diag(c(8, 0.25)), 1))
})

test_that("beyond 100,000 points the order goes by grids, with early points far apart", {
  n <- 100500L
  set.seed(2)
  x <- cbind(stats::runif(n), stats::runif(n))
  graph <- vecchia_graph(cl_gp_likelihood(numeric(n), x, k_matern32(), approx = "vecchia",
                                          neighbours = 2))
  expect_identical(sort(graph$order), seq_len(n))
  head <- x[graph$order[1:1024], ]
  gap <- apply(as.matrix(stats::dist(head)) + diag(Inf, 1024), 1L, min)
  random <- apply(as.matrix(stats::dist(x[1:1024, ])) + diag(Inf, 1024), 1L, min)
  expect_gt(stats::quantile(gap, 0.05), 4 * stats::quantile(random, 0.05))
  some <- c(5L, 77L, 3000L, 100000L)
  for (i in some) {
    at <- x[graph$order[i], ]
    before <- x[graph$order[seq_len(i - 1L)], ]
    expect_identical(graph$neighbours[, i], order(colSums((t(before) - at)^2))[1:2])
  }
})

test_each_engine("likelihoods equal their definition, and have the derivatives that they say", {
  for (kernel in vecchia_kernels) for (grouped in c(FALSE, TRUE)) {
    for (n in full_or_quick(c(1L, 2L, 33L, 130L), c(2L, 130L))) {
      d <- scattered(n)
      y <- cbind(d$y, d$y^2)
      f <- cl_gp_likelihood(y, d$x, kernel, mean = 0.3, approx = "vecchia", neighbours = 9,
                            grouped = grouped)
      par <- c(coef(kernel), noise = 0.2)
      value <- f(par)
      expect_close(as.numeric(value),
                   plain_vecchia(y - 0.3, covariance_at(kernel, par, d$x), blocks_of(f)), 1e-10)
      expect_equal(as.numeric(f(par, gradient = FALSE)), as.numeric(value), tolerance = 1e-13)
      expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
    }
  }
})

test_each_engine("with all earlier points as neighbours the likelihood is exact", {
  d <- scattered(60L)
  kernel <- vecchia_kernels$sum
  par <- c(coef(kernel), noise = 0.2)
  y <- cbind(d$y, d$y^2)
  for (beta in c("profile", "integrate")) for (mean in list(0, "constant", "linear")) {
    make <- function(...) {
      cl_gp_likelihood(y, d$x, kernel, mean = mean, beta = beta, weights = 1 + d$x[, 1],
                       variance = d$x[, 2] / 50, ...)
    }
    exact <- make()(par)
    for (grouped in c(FALSE, TRUE)) {
      expect_equal(make(approx = "vecchia", neighbours = 59, grouped = grouped)(par), exact,
                   tolerance = 1e-9)
    }
  }
})
