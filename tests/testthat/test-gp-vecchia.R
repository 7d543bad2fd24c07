# Vecchia's approximation, held against a plain version of it in R and against exact processes.

vecchia_graph <- statcl:::vecchia_graph

scattered <- function(n, p, seed = 1) {
  set.seed(seed)
  x <- matrix(stats::runif(n * p), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(6 * x[, 1L]) + rowSums(x) + 0.1 * stats::rnorm(n))
}

# The log density by its definition: each observation given its neighbours, with a known mean.
plain_vecchia <- function(y, covariance, graph) {
  total <- 0
  for (i in seq_along(y)) {
    own <- graph$order[i]
    near <- graph$order[stats::na.omit(graph$neighbours[, i])]
    mean <- 0
    variance <- covariance[own, own]
    if (length(near) > 0L) {
      weights <- solve(covariance[near, near], covariance[near, own])
      mean <- sum(weights * y[near])
      variance <- variance - sum(weights * covariance[near, own])
    }
    total <- total + stats::dnorm(y[own], mean, sqrt(variance), log = TRUE)
  }
  total
}

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

kernels <- list(
  matern32 = k_matern32(sd = 1.3, lengthscale = c(0.3, 0.5)),
  matern52 = k_matern52(sd = 0.7, lengthscale = 0.4),
  exp_quad = k_exp_quad(lengthscale = 0.2),
  exponential = k_exponential(lengthscale = 0.7),
  sum = k_matern32(lengthscale = 0.3, columns = 1) + k_periodic(period = 0.4, columns = 2) +
    k_white(sd = 0.3),
  product = k_rational_quadratic(alpha = 0.7) * k_matern52(columns = 2) + k_linear(sd = 0.5))

test_that("the order is maximin, and neighbours are the nearest earlier points", {
  for (p in c(1L, 2L, 5L)) {
    d <- scattered(300L, p, seed = p)
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
  d <- scattered(200L, 2L)
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

test_that("likelihoods equal their definition, and have the derivatives that they say", {
  each_engine({
    for (name in names(kernels)) {
      for (n in full_or_quick(c(1L, 2L, 33L, 130L), c(2L, 130L))) {
        kernel <- kernels[[name]]
        d <- scattered(n, 2L, seed = n)
        f <- cl_gp_likelihood(d$y, d$x, kernel, mean = 0.3, approx = "vecchia", neighbours = 12)
        par <- c(coef(kernel), noise = 0.2)
        covariance <- cl_cov(d$x, kernel = kernel) + diag(0.04, n)
        value <- f(par)
        expect_close(as.numeric(value),
                     plain_vecchia(d$y - 0.3, as.matrix(covariance), vecchia_graph(f)), 1e-10)
        expect_equal(as.numeric(f(par, gradient = FALSE)), as.numeric(value), tolerance = 1e-13)
        check <- cl_check_gradient(f, par)
        expect_lt(max(abs(check$error)), 1e-5)
      }
    }
  })
})

test_that("with all earlier points as neighbours the likelihood is exact", {
  each_engine({
    d <- scattered(60L, 2L)
    kernel <- kernels$sum
    par <- c(coef(kernel), noise = 0.2)
    for (beta in c("profile", "integrate")) {
      for (mean in list(0, "constant", "linear")) {
        y <- cbind(d$y, d$y^2)
        exact <- cl_gp_likelihood(y, d$x, kernel, mean = mean, beta = beta, weights = 1 + d$x[, 1],
                                  variance = d$x[, 2] / 50)
        near <- cl_gp_likelihood(y, d$x, kernel, mean = mean, beta = beta, weights = 1 + d$x[, 1],
                                 variance = d$x[, 2] / 50, approx = "vecchia", neighbours = 59)
        expect_equal(near(par), exact(par), tolerance = 1e-9)
      }
    }
  })
})
