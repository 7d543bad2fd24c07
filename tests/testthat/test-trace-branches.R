# Branches that are not taken have no influence on derivatives, whatever their numbers are.

# Each operation at a number where it or its derivative is not finite, and where it is.
edges <- list(
  log = list(log, 0, 2), log_negative = list(log, -1, 2), log1p = list(log1p, -1, 2),
  log2 = list(log2, 0, 2), log10 = list(log10, 0, 2), sqrt = list(sqrt, 0, 2),
  sqrt_negative = list(sqrt, -1, 2), inverse = list(function(x) 1 / x, 0, 2),
  power = list(function(x) x^0.3, 0, 2), power_of = list(function(x) (x - 1)^x, 0.5, 2),
  exp = list(exp, 800, 1), expm1 = list(expm1, 800, 1), square = list(function(x) x^2, 1e200, 2),
  product = list(function(x) exp(x) * x, 800, 1), ratio = list(function(x) exp(x) / x, 800, 1),
  logistic = list(function(x) 1 / (1 + exp(-x)), -800, 1),
  softplus = list(function(x) log1p(exp(x)), 800, 1),
  chain = list(function(x) log(sqrt(exp(x) - 1)), 0, 1),
  asin = list(asin, 1, 0.3), acos = list(acos, 2, 0.3), atanh = list(atanh, 1, 0.3),
  acosh = list(acosh, 1, 2), cosh = list(cosh, 800, 1), sinh = list(sinh, 800, 1),
  tanh = list(function(x) tanh(1 / x), 0, 1), sin = list(function(x) sin(1 / x), 0, 1),
  lgamma = list(lgamma, 0, 2), gamma = list(gamma, 0, 2), digamma = list(digamma, 0, 2),
  lbeta = list(function(x) lbeta(x, 2), 0, 2), lchoose = list(function(x) lchoose(x, 2), -1, 4),
  pnorm = list(function(x) pnorm(log(x), log.p = TRUE), 0, 2), qnorm = list(qnorm, 1, 0.3),
  gamma_density = list(function(x) dgamma(x, 0.5, log = TRUE), 0, 2),
  gamma_probability = list(function(x) pgamma(x, 2, log.p = TRUE), 0, 2),
  atan2 = list(function(x) atan2(x, x), 0, 2), mod = list(function(x) (1 / x) %% 2, 0, 3),
  mean = list(function(x) exp(x - 790 + mean(c(x, 1600 - x))), 800, 1),
  inner = list(function(x) ifelse(log(x) > 0, x^3, x), -1, 2),
  bound = list(function(x) pmin(log(x), 5) + pmax(sqrt(x), 1), -1, 2))

# Ways to leave out elements that are not `good`; f() is elementwise.
masks <- list(
  ifelse = function(f, x, good) sum(ifelse(x * 0 + good > 0, f(x), x)),
  ifelse_data = function(f, x, good) sum(ifelse(good == 1, f(x), x)),
  cl_ifelse = function(f, x, good) sum(cl_ifelse(x * 0 + good > 0, f(x), x)),
  assigned = function(f, x, good) {
    y <- f(x)
    y[x * 0 + good == 0] <- 0
    sum(y + x * (1 - good))
  },
  assigned_data = function(f, x, good) {
    y <- f(x)
    y[good == 0] <- 0
    sum(y + x * (1 - good))
  },
  index = function(f, x, good) sum(f(x)[good == 1]) + sum(x[good == 0]),
  rows = function(f, x, good) sum(rowSums(cbind(f(x), x))[good == 1]) + sum(x) - sum(x * good),
  nested = function(f, x, good) sum(ifelse(good == 1, ifelse(x * 0 + good > 0, f(x), f(x)^2), x)))

# The gradient of the elements that are left, and 1 for the others, or 0 where they are absent.
expect_branch <- function(edge, mask, label, good = c(1, 0, 1)) {
  f <- edge[[1]]
  x <- ifelse(good == 1, edge[[3]] + c(0, 0, 0.1), edge[[2]])
  masked <- function(x) mask(f, x, good)
  left <- function(x) sum(f(x))
  model <- cl_gradient(masked)
  got <- suppressWarnings(attr(model(x = x), "gradient")$x)
  want <- attr(cl_gradient(left)(x = x[good == 1]), "gradient")$x
  if (identical(mask, masks$rows)) want <- want + 1
  expect_equal(got[good == 1], want, tolerance = 1e-12, label = label)
  expect_equal(got[good == 0], 1, label = label)
  h <- suppressWarnings(cl_hessian(masked)(x = x))
  expect_equal(unname(h[good == 1, good == 1]), unname(cl_hessian(left)(x = x[good == 1])),
               tolerance = 1e-12, label = paste("Hessian:", label))
  expect_equal(c(h[good == 0, ], h[, good == 0]), numeric(6), ignore_attr = TRUE,
               label = paste("Hessian:", label))
}

on_host({
  test_that("a branch that is not taken has no influence", {
    for (k in seq_along(edges)) {
      for (mask in full_or_quick(names(masks), names(masks)[k %% length(masks) + 1])) {
        expect_branch(edges[[k]], masks[[mask]], paste(names(edges)[k], "by", mask))
      }
    }
  })
})

# `kept` of the sum's elements have no influence of the others, with a derivative by each parameter.
expect_kept <- function(f, ..., want, tol = 1e-12) {
  model <- cl_gradient(f)
  got <- suppressWarnings(attr(model(...), "gradient"))
  expect_equal(got, want, tolerance = tol, label = deparse(body(f))[1])
}

mixed_cases <- function() {
  # a count of zero
  y <- c(2, 0)
  expect_kept(function(a) sum(ifelse(y > 0, a * log(y) - y, -1)), a = 1.3, want = list(a = log(2)))
  expect_kept(function(a, y) sum(ifelse(y > 0, a * log(y) - y, -1)), a = 1.3, y = y,
              want = list(a = log(2), y = c(1.3 / 2 - 1, 0)))
  expect_kept(function(x) sum(ifelse(x > 30, x, log1p(exp(x)))), x = c(0, 800),
              want = list(x = c(0.5, 1)))
  # products of matrices with rows that are not finite
  m <- matrix(c(1, 2, 3, 4), 2)
  expect_kept(function(a, b) sum((cbind(exp(a), 1) %*% b)[1, ] * 2), a = c(0, 800), b = c(1, 2),
              want = list(a = c(2, 0), b = c(2, 2)))
  expect_kept(function(a, b) sum(ifelse(matrix(a < 30, 2, 2), exp(a) %*% t(b), 0) * m),
              a = c(0, 800), b = c(1, 2), want = list(a = c(7, 0), b = c(1, 3)))
  # a recursion of which some steps are left out, or do not choose a branch
  x <- c(1, 0, 4)
  expect_kept(function(a) {
    sum(cl_scan(function(s, x) s + ifelse(x > 0, a * log(x * a), a), 0, x))
  }, a = 2, want = list(a = log(2) + log(8) + 3))
  expect_kept(function(a) {
    out <- cl_scan(function(s, x) list(state = s * a, out = log(s - x)), 2, x = c(1, 4, 1))$out
    sum(ifelse(is.nan(out) | c(FALSE, TRUE, FALSE), 0, out))
  }, a = 2, want = list(a = 8 / 7))
}

test_that("branches by data and parameters, products of matrices and recursions", {
  on_host(mixed_cases())
})

test_that("the same on a device, for several points, and in second derivatives", {
  f <- function(a, x) {
    z <- log(x)
    z[x <= 0] <- 0
    sum(ifelse(x > 0, a * z + sqrt(x), x) + pmin(exp(x), 9) + ifelse(x < 30, exp(x) / x, 1))
  }
  each_engine({
    model <- cl_gradient(f)
    for (x in list(c(0.7, 800, 800), c(0.7, -1, 800), c(0.7, -1, -1))) {
      got <- suppressWarnings(attr(model(a = 2, x = x), "gradient"))
      good <- x > 0
      e <- exp(x)
      want <- ifelse(good, 2 / x + 0.5 / sqrt(pmax(x, 0)), 1) + ifelse(e < 9, e, 0) +
        ifelse(x < 30, e / x - e / x^2, 0)
      want[x == 800] <- 2 / 800 + 0.5 / sqrt(800)
      expect_close(got$x, want, 1e-13)
      expect_close(got$a, sum(log(x[good])), 1e-13)
    }
    at <- cbind(c(0.7, 800, 800), c(0.7, -1, 800))
    both <- suppressWarnings(attr(cl_map_gradient(model, a = c(2, 2), x = at), "gradient")$x)
    for (k in 1:2) {
      expect_close(both[, k], suppressWarnings(attr(model(2, at[, k]), "gradient")$x), 1e-13)
    }
  })
})

on_host({
  test_that("standard deviations and distances of equal numbers", {
    f <- cl_gradient(function(x) sd(x) + sum(x))
    expect_equal(f(x = c(2, 2, 2)), structure(6, gradient = list(x = c(1, 1, 1))))
    expect_equal(unname(cl_hessian(function(x) sd(x) + sum(x^2))(x = c(2, 2))), diag(2, 2))
    expect_equal(attr(cl_gradient(function(x) sd(x))(x = c(1, 3)), "gradient")$x,
                 c(-1, 1) / sqrt(2))
  })

  test_that("a factor that only tends to zero is no branch", {
    # the derivative is 1 there: no number is better than a wrong one
    expect_true(is.nan(attr(cl_gradient(function(x) exp(log(x)))(0), "gradient")$x))
    expect_equal(attr(cl_gradient(function(x) 1 / (1 + exp(-x)))(-800), "gradient")$x, 0)
    expect_equal(attr(cl_gradient(function(w, x) sum(w * sqrt(x)))(c(0, 1), c(0, 4)), "gradient"),
                 list(w = c(0, 2), x = c(0, 0.25)))
  })

  test_that("new data with zeros", {
    w <- c(1, 2)
    f <- cl_gradient(function(x) sum(w * sqrt(x)))
    f(x = c(1, 4))
    update(f, w = c(0, 2))
    expect_equal(attr(f(x = c(0, 4)), "gradient")$x, c(0, 0.5))
  })
})
