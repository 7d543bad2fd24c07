# cl_sample() with a sparse precision as metric.

field <- local({
  n <- 40
  y <- rep(c(0, 2, 1, 4, 3), length.out = n)
  list(n = n, init = list(log_sd = -1, b = 0, x = numeric(n)),
       density = cl_gradient(function(log_sd, b, x) {
         dnorm(log_sd, -1, 0.5, log = TRUE) + dnorm(b, 0, 2, log = TRUE) +
           dnorm(x[1], 0, 1, log = TRUE) + sum(dnorm(x[-1], x[-n], exp(log_sd), log = TRUE)) +
           sum(dpois(y, exp(b + x), log = TRUE))
       }))
})
walk <- local({
  n <- 60
  p <- as.matrix(Matrix::bandSparse(n, n, 0:1, list(rep(2.001, n), rep(-1, n - 1)), TRUE))
  list(n = n, precision = p, plain = function(x) {
    slope <- -as.vector(p %*% (x - 1))
    structure(sum((x - 1) * slope) / 2, gradient = slope)
  })
})
run <- function(...) cl_sample(..., refresh = 0, seed = 1)

test_each_engine("a normal field needs few steps, from R and compiled, on each engine", {
  f <- cl_gradient(function(x) -sum((x - 1) * (walk$precision %*% (x - 1))) / 2)
  for (density in list(f, walk$plain)) {
    fit <- run(density, numeric(walk$n), chains = 2, warmup = 300, iter = 300,
               metric = Matrix::Matrix(walk$precision, sparse = TRUE))
    expect_lt(mean(fit$diagnostics$leapfrogs), 8)
    x <- as.matrix(fit)
    v <- solve(walk$precision)
    expect_lt(max(abs(colMeans(x) - 1) / sqrt(diag(v))), 0.25)
    # the sum, which is hard for other metrics
    expect_equal(stats::sd(rowSums(x)), sqrt(sum(v)), tolerance = 0.2)
    expect_equal(unname(as.matrix(fit$precision)), walk$precision)
  }
})

on_host({

test_that("the metric is chosen where a latent field is known", {
  make <- function(n) {
    y <- rep(c(0, 2, 1, 4, 3), length.out = n)
    cl_tmb(function(p) {
      -dnorm(p$s, -1, 0.5, log = TRUE) - dnorm(p$x[1], 0, 1, log = TRUE) -
        sum(dnorm(p$x[-1], p$x[-n], exp(p$s), log = TRUE)) - sum(dpois(y, exp(p$x), log = TRUE))
    }, list(s = -1, x = numeric(n)), random = "x")
  }
  short <- function(f, ...) run(f, chains = 1, warmup = 30, iter = 5, ...)$precision
  expect_equal(dim(short(make(50))), c(51L, 51L))
  expect_null(short(make(49)))
  expect_null(short(make(50), metric = "diag"))
  # a factor of too many numbers
  full <- function(n) cl_tmb(function(p) sum(p$x^2) + sum(p$x)^2 / n + p$s^2,
                             list(s = 0, x = numeric(n)), random = "x")
  expect_equal(dim(short(full(60))), c(61L, 61L))
  expect_null(short(full(410)))
})

test_that("means and standard deviations are those of the diagonal metric", {
  fit <- suppressWarnings(run(field$density, field$init, chains = 4, warmup = 500, iter = 1000,
                              metric = "sparse"))
  other <- suppressWarnings(run(field$density, field$init, chains = 4, warmup = 500, iter = 2000,
                                metric = "diag"))
  a <- summary(fit)
  b <- summary(other)
  expect_lt(max(abs(a$mean - b$mean) / sqrt(a$mcse^2 + b$mcse^2)), 4.5)
  expect_lt(mean(fit$diagnostics$leapfrogs), 0.75 * mean(other$diagnostics$leapfrogs))
  expect_output(print(fit), "sparse metric")
  # hyperparameters are found: the precision is that of cl_laplace()
  laplace <- cl_laplace(field$density, field$init, random = "x", draws = 10, seed = 1)
  p <- laplace$precision
  given <- Matrix::sparseMatrix(pmax(p$row, p$column), pmin(p$row, p$column), x = p$x,
                                symmetric = TRUE)
  expect_equal(unname(as.matrix(fit$precision)), unname(as.matrix(given)), tolerance = 1e-4)
  short <- function(...) run(field$density, chains = 1, warmup = 40, iter = 20, ...)
  expect_identical(short(field$init, metric = laplace)$draws,
                   short(field$init, metric = given)$draws)
  expect_identical(dim(short(laplace, metric = "sparse")$draws), c(20L, 1L, 42L))
})

columns <- function(x) { # for lockstep
  if (!is.matrix(x)) return(walk$plain(x))
  each <- lapply(seq_len(ncol(x)), function(k) walk$plain(x[, k]))
  structure(vapply(each, as.vector, 0), gradient = vapply(each, attr, x[, 1], "gradient"))
}

test_that("draws do not depend on workers, threads, lockstep or an interrupted run", {
  sampled <- function(f, ...) run(f, numeric(walk$n), chains = 2, warmup = 60, iter = 40,
                                  metric = walk$precision, ...)
  one <- sampled(walk$plain)
  expect_identical(sampled(walk$plain, workers = 2)$draws, one$draws)
  expect_identical(sampled(columns, batch = TRUE)$draws, one$draws)
  file <- tempfile()
  count <- 0
  counted <- function(x) {
    count <<- count + 1
    if (count == 400) stop("enough")
    walk$plain(x)
  }
  cut <- function(f, ...) sampled(f, checkpoint = file, checkpoint_seconds = 0, ...)
  expect_fault(cut(counted), "density")
  expect_identical(cut(counted)$draws, one$draws)
  expect_fault(run(walk$plain, numeric(walk$n), chains = 2, warmup = 60, iter = 40,
                   metric = 2 * walk$precision, checkpoint = file), "checkpoint")
  pooled <- sampled(walk$plain, pooled = TRUE)
  expect_lt(mean(pooled$diagnostics$leapfrogs), 14)
  # compiled: on threads of this process, which share the factor, and in workers
  sampled <- function(...) {
    suppressWarnings(run(field$density, field$init, chains = 2, warmup = 60, iter = 40,
                         metric = "sparse", ...))
  }
  one <- sampled()
  expect_identical(sampled(workers = 2)$draws, one$draws)
  file <- tempfile()
  expect_identical(sampled(checkpoint = file)$draws, one$draws)
  expect_identical(sampled(checkpoint = file)$draws, one$draws)
})

test_that("metrics that are none are errors", {
  expect_refused("metric", run(walk$plain, numeric(walk$n), metric = -walk$precision),
                 run(walk$plain, numeric(walk$n), metric = diag(3)),
                 run(walk$plain, numeric(walk$n), metric = 1))
  missing <- walk$precision
  missing[2, 5] <- missing[5, 2] <- NA
  expect_refused("metric", run(walk$plain, numeric(walk$n), metric = missing),
                 run(walk$plain, numeric(walk$n), metric = "sparse"))
  up <- cl_gradient(function(x) sum(x^2) / 2)
  expect_fault(run(up, c(1, 1), metric = "sparse"), "density", argument = "metric")
})

})
