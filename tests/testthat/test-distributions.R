# Distributions and special functions of base R (R/matrix-distributions.R).

skip_on_cran() # long; run by ./dev check

relative <- function(got, want, tol) {
  got <- as.vector(got)
  want <- as.vector(want)
  identical(is.na(got), is.na(want)) &&
    all(is.na(want) | got == want | abs(got - want) <= tol * abs(want))
}

test_that("normal densities, probabilities and quantiles are base R's, in both tails", {
  x <- c(-Inf, -1e5, -38.4, -12.3456789, -5.1, -1, -1e-9, 0, 0.3, 2, 7.7, 30.123, 39.5, Inf, NA)
  mean <- 0.5 + seq_along(x) / 7
  sd <- c(0.5, 1, 2, 0, 3)[seq_along(x) %% 5 + 1]
  each_engine({
    d <- as_cl(x)
    for (log in c(FALSE, TRUE)) {
      expect_true(relative(dnorm(d, log = log), dnorm(x, log = log), 4e-15))
      expect_true(relative(dnorm(d, 1, 2, log), dnorm(x, 1, 2, log), 4e-15))
      expect_true(relative(dnorm(0.25, d, 2, log), dnorm(0.25, x, 2, log), 4e-15))
      finite <- is.finite(x)
      expect_true(relative(dnorm(as_cl(x[finite]), as_cl(mean[finite]), as_cl(sd[finite]), log),
                           dnorm(x[finite], mean[finite], sd[finite], log), 4e-14))
      for (lower in c(FALSE, TRUE)) {
        expect_true(relative(pnorm(d, 1, 2, lower, log), pnorm(x, 1, 2, lower, log), 1e-14))
        expect_true(relative(pnorm(0.25, 0, as_cl(sd), lower, log),
                             pnorm(0.25, 0, sd, lower, log), 1e-14))
        expect_true(relative(plogis(d, 1, 2, lower, log), plogis(x, 1, 2, lower, log), 1e-14))
        expect_true(relative(plogis(3, d, 2, lower, log), plogis(3, x, 2, lower, log), 1e-14))
      }
    }
    p <- c(0, 1e-310, 1e-200, 1e-20, 0.01, 0.074, 0.076, 0.3, 0.5, 0.7, 0.93, 1 - 1e-10, 1)
    for (lower in c(FALSE, TRUE)) {
      expect_true(relative(qnorm(as_cl(p), lower.tail = lower), qnorm(p, lower.tail = lower),
                           2e-15))
      expect_true(relative(qnorm(as_cl(log(p)), 3, 2, lower, TRUE),
                           qnorm(log(p), 3, 2, lower, TRUE), 1e-13))
      expect_true(relative(qnorm(0.2, as_cl(1:3), 0:2, lower), qnorm(0.2, 1:3, 0:2, lower), 4e-15))
    }
    # Far in the tail base R 4.2 is not exact: check that the inverse recovers the argument.
    far <- -c(800, 1e4, 1e10, 1e100)
    expect_true(relative(pnorm(qnorm(as_cl(far), log.p = TRUE), log.p = TRUE), far, 1e-13))
    expect_true(all(is.nan(as.vector(qnorm(as_cl(c(-0.1, 1.1)))))))
    expect_true(all(is.na(as.vector(dnorm(d, 0, -1)))))
    expect_true(all(is.nan(as.vector(pnorm(as_cl(c(-1, 1)), 0, -1)))))
    expect_true(all(is.nan(as.vector(plogis(as_cl(c(-1, 1)), 0, 0)))))
    expect_refused("log", dnorm(d, log = NA))
    expect_fault(pnorm(d, "a"), "argument")
    expect_refused("lower.tail", pnorm(d, lower.tail = 2))
  })
  expect_identical(dnorm(x, 1), stats::dnorm(x, 1))
})

test_that("binomial coefficients and the beta function are base R's", {
  n <- c(0, 1, 2, 5, 10, 50, 60, 61, 100, 500, 1e5, -1, -3, -50, 0.5, 2.7, 29.3, 55.5, -2.5, -60.2)
  k <- c(-1, 0, 1, 2, 3, 5, 10, 28, 29, 30, 31, 47, 50, 60, 100)
  grid <- expand.grid(n = n, k = k)
  a <- c(0, 1e-305, 1e-8, 0.3, 1, 3.7, 9.9, 11, 12, 13.3, 80, 1e4, 1e10, 1e300, Inf, -1, NA)
  pairs <- expand.grid(a = a, b = a)
  each_engine({
    n <- as_cl(grid$n)
    k <- as_cl(grid$k)
    expect_true(relative(choose(n, k), choose(grid$n, grid$k), 2e-12))
    expect_true(relative(choose(n, grid$k), choose(grid$n, grid$k), 2e-12))
    expect_true(relative(choose(5, as_cl(0:5)), choose(5, 0:5), 0))
    want <- lchoose(grid$n, grid$k)
    got <- as.vector(lchoose(n, k))
    expect_true(all(got == want | abs(got - want) <= 1e-12 * pmax(1, abs(want))))
    want <- suppressWarnings(lbeta(pairs$a, pairs$b))
    got <- as.vector(lbeta(as_cl(pairs$a), pairs$b))
    expect_identical(is.na(got), is.na(want))
    expect_true(all(is.na(want) | got == want | abs(got - want) <= 1e-13 * pmax(1, abs(want))))
    expect_equal(as.vector(atan2(as_cl(-2:2), 3)), atan2(-2:2, 3))
    expect_equal(as.vector(atan2(-2, as_cl(-2:2))), atan2(-2, -2:2))
  })
  expect_identical(choose(5, 2), 10)
  expect_error(lbeta("a", 1), "numeric")
})

test_that("they work on elements, under any name", {
  x <- seq(-2, 3, length.out = 11)
  f <- function(x) {
    dnorm(x, 1, 2) + pnorm(x, log.p = TRUE) * plogis(1, x) + choose(x, 2) + atan2(x, 1) +
      lbeta(x + 3, 2) + lchoose(7 + x^2, 3) + qnorm(plogis(x))
  }
  g <- function(x) stats::dnorm(x, 1, 2) - base::atan2(1, x)
  each_engine({
    expect_equal(cl_map(f, x), f(x), tolerance = 1e-13)
    expect_equal(cl_map(g, x), g(x), tolerance = 1e-13)
    expect_equal(as.vector(cl_map(f, as_cl(x))), f(x), tolerance = 1e-13)
    expect_equal(cl_map(function(x, m, s) dnorm(x, m, s, log = TRUE), x, 0.5, 2:12),
                 dnorm(x, 0.5, 2:12, log = TRUE))
  })
  # Without the package attached, R's functions are found and replaced.
  h <- function(x) dnorm(x) + pmax(0, plogis(x))
  environment(h) <- list2env(list(), parent = asNamespace("stats"))
  expect_equal(on_host(cl_map(h, x)), dnorm(x) + plogis(x))
})

test_that("functions of statistics have both tails", {
  x <- c(-800, -30, -1, 0, 1, 30, 800)
  exact <- c(0, exp(-30) - exp(-60) / 2, log1p(exp(-1)), log(2), 1 + log1p(exp(-1)), 30 + exp(-30),
             800)
  expect_equal(cl_log1p_exp(x), exact, tolerance = 1e-14)
  expect_equal(cl_inv_logit(x), plogis(x), tolerance = 1e-14)
  each_engine({
    expect_equal(as.vector(cl_log1p_exp(as_cl(x))), exact, tolerance = 1e-14)
    expect_equal(as.vector(cl_inv_logit(as_cl(x))), plogis(x), tolerance = 1e-14)
    expect_equal(as.vector(cl_atan2(as_cl(x), 3)), atan2(x, 3), tolerance = 1e-14)
  })
  expect_equal(cl_atan2(1, 2), atan2(1, 2))
  x <- c(-Inf, -1e5, -37.5, -5, -0.3, 0, 1, 9, 40, Inf, NA)
  each_engine(for (lower in c(TRUE, FALSE)) for (log in c(TRUE, FALSE)) {
    want <- pnorm(x, lower.tail = lower, log.p = log)
    expect_true(same_numbers(cl_pnorm(x, lower, log), want, 0))
    got <- as.vector(cl_pnorm(as_cl(x), lower.tail = lower, log.p = log))
    expect_identical(is.na(got), is.na(want))
    expect_true(all(got == want | abs(got - want) <= 3e-15 * abs(want), na.rm = TRUE))
  })
  small <- 10^-(1:20)
  each_engine({
    expect_equal(as.vector(cl_erf(as_cl(small))) / small, 2 / sqrt(pi) * (1 - small^2 / 3),
                 tolerance = 1e-4)
    expect_equal(as.vector(cl_erfc(as_cl(c(0, 20)))), c(1, 2 * pnorm(-20 * sqrt(2))),
                 tolerance = 1e-12)
  })
  expect_equal(cl_erf(matrix(0.5)) + cl_erfc(matrix(0.5)), matrix(1))
  expect_refused("log.p", cl_pnorm(1, log.p = NA))
  expect_refused("x", cl_inv_logit("a"))
})
