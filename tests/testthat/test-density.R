# The formulas of densities and distribution functions for traced values (R/density.R), evaluated on
# plain numbers and held against base R.

formulas <- density_formulas()

numbers <- c(-Inf, -1e3, -40, -3, -1e-5, 0, 1e-300, 1e-10, 0.01, 0.3, 0.999, 1, 1.5, 7, 50, 1e3,
             1e6, Inf, NaN)
scales <- c(-1, 0, 0.01, 0.5, 1, 2.5, 30, 60, 1e4, 1e8)
places <- c(0, 2, -5)
counts <- c(-1, 0, 1, 2, 5, 20, 100, 101, 1000, 1e6, 1.5, Inf, NaN)
chances <- c(-0.1, 0, 1e-300, 1e-12, 0.01, 0.3, 0.5, 0.9, 1 - 1e-12, 1, 1.1, NaN)

combinations <- function(...) {
  expand.grid(..., KEEP.OUT.ATTRS = FALSE)
}

# The values of `grid` where f differs from base R's function by more than tol: relative to it, or
# to 1 for a logarithm that is small. Subnormal numbers have fewer digits.
differing <- function(name, grid, tol, ..., small = 0) {
  got <- suppressWarnings(do.call(formulas[[name]], c(as.list(grid), list(...))))
  want <- suppressWarnings(do.call(name, c(as.list(grid), list(...))))
  same <- is.na(got) == is.na(want) & (is.na(want) | got == want |
    abs(got - want) <= tol * pmax(abs(want), small, 1e-307 / tol))
  stopifnot(length(got) == nrow(grid))
  bad <- which(!(same %in% TRUE))
  cbind(grid[bad, , drop = FALSE], got = got[bad], want = want[bad])
}

expect_no_difference <- function(found, label) {
  text <- paste(utils::capture.output(print(utils::head(found, 4L), digits = 17)), collapse = "\n")
  expect(nrow(found) == 0L, sprintf("%s differs from base R:\n%s", label, text))
}

# Each column alone as well, so that the forms for few and for many counts are both used.
expect_density <- function(name, grid, tol = 1e-12, except = function(grid) FALSE) {
  grid <- grid[!(except(grid) %in% TRUE), ]
  parts <- split(grid, grid[[min(2L, length(grid))]])
  for (part in c(list(grid), parts)) {
    expect_no_difference(differing(name, part, tol, log = TRUE, small = 1), paste(name, "(log)"))
    expect_no_difference(differing(name, part, tol, log = FALSE), name)
  }
}

expect_probability <- function(name, grid, tol = 1e-12, except = function(grid) FALSE, small = 0) {
  grid <- grid[!(except(grid) %in% TRUE), ]
  for (lower in c(TRUE, FALSE)) for (log in c(TRUE, FALSE)) {
    found <- differing(name, grid, tol, lower.tail = lower, log.p = log, small = small)
    expect_no_difference(found, sprintf("%s (lower.tail %s, log.p %s)", name, lower, log))
  }
}

test_that("densities of real numbers are base R's", {
  for (name in c("dnorm", "dcauchy", "dlogis")) {
    grid <- combinations(numbers, places, scales)
    names(grid) <- c("x", names(formals(name))[2:3])
    expect_density(name, grid)
  }
  expect_density("dunif", combinations(x = numbers, min = places, max = scales))
  expect_density("dt", combinations(x = numbers, df = c(scales, 1e12, Inf)))
})

test_that("densities of positive numbers are base R's", {
  expect_density("dlnorm", combinations(x = numbers, meanlog = places, sdlog = scales))
  # Base R has NaN for an infinite x with an infinite mean.
  expect_density("dexp", combinations(x = numbers, rate = scales),
                 except = function(grid) grid$x == Inf & grid$rate == 0)
  expect_density("dgamma", combinations(x = numbers, shape = scales, rate = scales))
  expect_density("dgamma", combinations(x = numbers, shape = scales, scale = scales[-2]))
  expect_density("dchisq", combinations(x = numbers, df = scales))
  # Base R computes the power itself, which overflows or underflows there.
  expect_density("dweibull", combinations(x = numbers, shape = scales, scale = scales),
                 except = function(grid) {
                   grid$x > 0 & grid$scale > 0 &
                     abs(grid$shape * log(abs(grid$x / grid$scale))) > 600
                 })
  expect_identical(formulas$dweibull(1e6, 60, 0.01), 0)
  # Beyond 1e8 base R has only nine digits.
  expect_density("dbeta", combinations(x = c(numbers, 1 - 1e-9), shape1 = scales[-10],
                                       shape2 = scales[-10]))
  expect_equal(formulas$dbeta(1 - 1e-9, 1e8, 2.5), 2152456.3021313326517, tolerance = 1e-14)
})

test_that("densities of counts are base R's", {
  expect_density("dpois", combinations(x = counts, lambda = scales))
  expect_density("dbinom", combinations(x = counts, size = c(0, 1, 2, 20, 100, 101, 1e6, 2.5, -1),
                                        prob = chances))
  expect_density("dgeom", combinations(x = counts, prob = chances))
  # Base R has only ten digits unless the size is far larger than x.
  expect_density("dnbinom", combinations(x = counts, size = scales, prob = chances),
                 except = function(grid) grid$size == 1e8 & grid$x < 1000)
  expect_equal(formulas$dnbinom(1, 1e8, 1 - 1e-12, log = TRUE), -9.210462491728821137,
               tolerance = 1e-15)
  expect_equal(formulas$dnbinom(1, 1e8, mu = 0.01, log = TRUE), -4.61517018608759,
               tolerance = 1e-14)
  # Mean 0 and size 0: base R has NaN, the limit is the mass at 0.
  expect_density("dnbinom", combinations(x = counts, size = c(scales, 1e15), mu = scales),
                 except = function(grid) {
                   grid$size == 0 & grid$mu == 0 | grid$size >= 1e8 & grid$x <= 1000
                 })
  expect_warning(formulas$dpois(1.5, 1), "non-integer x = 1.500000")
  expect_warning(formulas$dbinom(c(1, 0.5), 2, 0.5), "non-integer x = 0.500000")
})

test_that("multinomial densities are base R's", {
  for (x in list(c(1, 2, 3), c(0, 0, 0), c(0, 5, 1e6))) {
    for (p in list(c(1, 1, 1), c(0.2, 0.3, 0.5), c(0, 2, 1e-9))) for (log in c(TRUE, FALSE)) {
      expect_equal(formulas$dmultinom(x, prob = p, log = log), dmultinom(x, prob = p, log = log),
                   tolerance = 1e-12)
    }
  }
  expect_equal(formulas$dmultinom(1:3, 6, c(1, 2, 3)), dmultinom(1:3, 6, c(1, 2, 3)))
  expect_refused("size", formulas$dmultinom(1:3, 7, c(1, 2, 3)))
  expect_refused("prob", formulas$dmultinom(1:3, prob = c(1, 2)))
  expect_refused("x", formulas$dmultinom(-1:1, prob = c(1, 2, 3)))
})

test_that("distribution functions are base R's, in both tails", {
  for (name in c("pnorm", "plogis", "pcauchy")) {
    grid <- combinations(numbers, places, scales)
    names(grid) <- c("q", names(formals(name))[2:3])
    expect_probability(name, grid)
  }
  expect_probability("punif", combinations(q = numbers, min = places, max = scales))
  expect_probability("plnorm", combinations(q = numbers, meanlog = places, sdlog = scales))
  expect_probability("pexp", combinations(q = numbers, rate = scales),
                     except = function(grid) grid$q == Inf & grid$rate == 0)
  expect_probability("pweibull", combinations(q = numbers, shape = scales, scale = scales))
})

test_that("distribution functions of gamma and beta variables are base R's", {
  # For an infinite mean and shape 0 base R has NaN, 0 or 1.
  expect_probability("pgamma", combinations(q = numbers, shape = scales, rate = scales),
                     except = function(grid) {
                       grid$rate == 0 & (grid$shape == 0 | is.infinite(grid$q))
                     })
  expect_probability("pgamma", combinations(q = numbers, shape = scales, scale = scales[-2]))
  expect_probability("pchisq", combinations(q = numbers, df = scales))
  # For shape 0 base R does not reach 1 at 1 and beyond.
  expect_probability("pbeta", combinations(q = numbers, shape1 = scales, shape2 = scales),
                     except = function(grid) grid$shape1 * grid$shape2 == 0 & grid$q >= 1)
  expect_refused("ncp", formulas$pbeta(0.5, 1, 2, 0.1))
  expect_probability("pt", combinations(q = numbers, df = scales[scales != 0]))
})

test_that("quantiles are base R's", {
  p <- c(chances, -1e-10, -1, -50, -600, -1e5)
  proper <- scales[scales > 0]
  expect_probability("qnorm", combinations(p = p, mean = places, sd = proper), 1e-11)
  expect_probability("qlogis", combinations(p = p, location = places, scale = proper), 1e-11,
                     small = 1e-2)
  expect_probability("qexp", combinations(p = p, rate = proper), 1e-12)
  for (name in c("qnorm", "qlogis")) expect_true(is.nan(formulas[[name]](0.3, 0, -1)))
  expect_true(is.nan(formulas$qexp(0.3, -1)))
})

test_that("arguments have R's names, order and defaults", {
  for (name in names(formulas)) {
    if (!exists(name, asNamespace("stats")) && !exists(name, baseenv())) next
    ours <- formals(formulas[[name]])
    theirs <- formals(if (exists(name, asNamespace("stats"), inherits = FALSE)) {
      get(name, asNamespace("stats"))
    } else {
      get(name, baseenv())
    })
    expect_identical(names(ours), names(theirs), label = name)
    for (argument in setdiff(names(theirs), "rate")) {
      if (!identical(theirs[[argument]], quote(expr = ))) { # nolint: an argument without default
        expect_equal(ours[[argument]], theirs[[argument]], label = paste(name, argument))
      }
    }
  }
  expect_refused("log", formulas$dnorm(1, log = NA))
  expect_refused("lower.tail", formulas$pnorm(1, lower.tail = 2))
  expect_refused("log.p", formulas$pnorm(1, log.p = "a"))
  expect_refused("scale", formulas$dgamma(1, 2, 3, 4))
  expect_equal(formulas$dgamma(1, 2, 4, 0.25), dgamma(1, 2, 4))
  expect_refused("ncp", formulas$dbeta(0.5, 2, 3, 1))
  expect_refused("mu", formulas$dnbinom(1, 2, 0.5, 1))
})

test_that("results have R's lengths and shapes", {
  x <- matrix(c(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 2)
  expect_equal(formulas$dunif(x), dunif(x))
  expect_equal(formulas$dbeta(x, 1:2, 3), dbeta(x, 1:2, 3))
  expect_length(formulas$dunif(0.5, 0, 1:3), 3L)
  expect_length(formulas$dnorm(numeric(), 1, 2), 0L)
  expect_length(formulas$pexp(1, numeric()), 0L)
  expect_equal(formulas$dpois(c(0, 1), c(1, 2, 3, 4)), dpois(c(0, 1), c(1, 2, 3, 4)))
})

test_each_engine(
  "negative binomial counts with the mean exp(eta) have R's density and its gradient", {
  y <- c(0, 0, 1, 2, 7, 100, 1, 0, 3, 2)
  x <- seq(-1, 1, length.out = 10)
  # The derivatives with respect to a and log(size), by base R.
  exact <- function(a, size) {
    mu <- exp(a + x)
    rise <- vapply(y, function(v) sum(size / (size + (seq_len(v) - 1))), 0)
    c(sum((y - mu) * (size / (size + mu))),
      sum(rise - size * log1p(mu / size) + (size + y) * (mu / (size + mu)) - y))
  }
  f <- cl_gradient(function(a, s) sum(dnbinom(y, mu = exp(a + x), size = exp(s), log = TRUE)))
  for (s in c(-600, -7, 0.3, 4)) {
    for (a in c(-9, 1, 80)) {
      found <- f(a, s)
      expect_close(as.numeric(found), sum(dnbinom(y, exp(s), mu = exp(a + x), log = TRUE)))
      expect_close(unlist(attr(found, "gradient"), use.names = FALSE), exact(a, exp(s)),
                   scale = 100)
    }
  }
  expect_lt(f(1, 3), 0)
  expect_true(is.finite(f(800, 3))) # exp(800) is infinite
})

test_that("R's own functions are called where nothing is traced", {
  functions <- statcl:::density_functions()
  expect_named(functions, names(formulas))
  expect_identical(functions$dgamma(2, 3, scale = 4), dgamma(2, 3, scale = 4))
  expect_identical(functions$dchisq(2, 3, 1), dchisq(2, 3, 1))
  expect_identical(functions$pnorm(-3, log.p = TRUE), pnorm(-3, log.p = TRUE))
  expect_identical(functions$lchoose(5, 2), lchoose(5, 2))
})
