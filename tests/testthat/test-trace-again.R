# Densities called with one number after another, and other functions, whose nodes are copied from
# an earlier call (R/trace-again.R), against the formulas of R/density-table.R, which record every
# call, and against base R.

# f's value and gradient where its calls are copied, and where each is recorded.
expect_same_record <- function(f, ...) {
  formulas <- lapply(density_table, `[[`, "formula")
  plain <- f
  environment(plain) <- list2env(formulas, parent = environment(f))
  found <- suppressWarnings(cl_gradient(f)(...))
  expect_equal(found, suppressWarnings(cl_gradient(plain)(...)), tolerance = 1e-12)
  invisible(found)
}

test_that("every density of numbers in a loop is what its formula gives", {
  with_cl(engine = "host", for (case in density_cases()) {
    given <- data_of(case$kinds)
    mine <- setdiff(names(case$kinds), given)
    code <- lapply(seq_along(mine), function(k) {
      form <- list(quote(v[i, K]), quote(exp(log(v[i, K]))), quote(z[i, K]))[[1L + k %% 3L]]
      if (case$kinds[[mine[k]]] %in% c("real", "share", "place", "lower") && k %% 3L == 1L) {
        form <- quote(v[i, K])
      }
      do.call(substitute, list(form, list(K = k)))
    })
    names(code) <- mine
    call <- as.call(c(as.name(case$name), code, points[case$kinds[given]][0L],
                      lapply(stats::setNames(case$kinds[given], given), function(kind) {
                        points[[kind]][1L]
                      })))
    z <- vapply(mine, function(k) rep_len(points[[case$kinds[[k]]]], 5L), numeric(5L))
    f <- function(v) {
      total <- 0
      for (i in 1:5) total <- total + CALL + 0.5 * CALL
      total
    }
    body(f) <- do.call(substitute, list(body(f), list(CALL = call)))
    expect_same_record(f, v = z)
  })
})

test_that("calls of another form are not copied", {
  forms <- list(
    # operands that are the same, and that are not
    function(a, b, s) dnorm(a, a, s) + dnorm(a, b, s) + dnorm(b, a, b),
    # functions of parameters, which formulas take apart
    function(a, b, s) dnorm(1, a, exp(s)) + dnorm(1, a, b) + dnorm(1, a, exp(exp(s))),
    function(a, b, s) dpois(3, exp(a)) + dpois(3, b) + dpois(3, sqrt(b)),
    function(a, b, s) dbinom(1, 3, cl_inv_logit(a)) + dbinom(1, 3, s) + dbinom(1, 3, exp(a)),
    # the order of arguments, and their values
    function(a, b, s) dnorm(a, b, s) + dnorm(sd = a, mean = b, x = s) + dnorm(b, s, a + 1),
    function(a, b, s) dnorm(a, 0, s, TRUE) + dnorm(a, 0, s, FALSE) + dnorm(a, 1, s),
    function(a, b, s) dnorm(0, a, s) + dnorm(2, a, s) + dnorm(0, a, s) + dnorm(-3, a, s),
    function(a, b, s) dbinom(2, 3, s) + dbinom(4, 3, s) + dbinom(2, 4, s) + dbinom(0, 3, s),
    function(a, b, s) dexp(1, s) + dexp(-1, s) + dexp(2, s) + dgamma(1, s, 2) + dgamma(0, s, 2),
    function(a, b, s) {
      for (x in c(0.5, 2, -1, 0, 3, -2, 0.1)) a <- a + dexp(x, s, TRUE) * 1e-9 + dexp(x, b)
      a
    },
    # other shapes
    function(a, b, s) dnorm(1, a, s) + sum(dnorm(1:3, a, s)) + sum(dnorm(1, c(a, b), s)) +
      dnorm(c(x = 2), a, s))
  with_cl(engine = "host", for (f in forms) {
    found <- expect_same_record(f, a = 0.4, b = 1.3, s = 0.7)
    expect_equal(as.numeric(found), as.numeric(suppressWarnings(f(0.4, 1.3, 0.7))),
                 tolerance = 1e-12)
  })
})

test_that("numbers that are not finite, and parameters without a density, are as in base R", {
  with_cl(engine = "host", for (x in c(Inf, -Inf, NaN, 0, -0)) {
    f <- function(a, s) {
      dnorm(1, a, s, log = TRUE) + dnorm(2, a, s, log = TRUE) + dnorm(x, a, s, log = TRUE)
    }
    g <- function(a, s) dcauchy(1, a, s) + dcauchy(x, a, s) + dnorm(1, x, s) + dnorm(1, 2, s)
    for (s in c(1.5, 0, -1)) {
      expect_equal(as.numeric(cl_gradient(f)(a = 0.5, s = s)), suppressWarnings(f(0.5, s)))
      expect_equal(as.numeric(cl_gradient(g)(a = 0.5, s = s)), suppressWarnings(g(0.5, s)))
    }
  })
  # The second call is that of a scale that may be negative.
  scale <- function(a, s) dnorm(1, a, exp(s), log = TRUE) + dnorm(1, a, s, log = TRUE)
  expect_equal(as.numeric(with_cl(cl_gradient(scale)(a = 0.5, s = -1), engine = "host")), NaN)
})

test_each_engine("a loop whose first iterations have other forms is rolled as a whole", {
  y <- sin(1:200)
  f <- function(mu, b, s) {
    e <- y[1L] - mu
    total <- dnorm(e, 0, s, log = TRUE)
    for (t in 2:200) {
      e <- y[t] - (mu + b * e)
      total <- total + dnorm(e, 0, s, log = TRUE)
    }
    total
  }
  e <- Reduce(function(e, y) y - (0.2 + 0.5 * e), y[-1L], y[1L] - 0.2, accumulate = TRUE)
  model <- cl_gradient(f)
  expect_equal(as.numeric(model(mu = 0.2, b = 0.5, s = 0.8)), sum(dnorm(e, 0, 0.8, log = TRUE)))
  left <- sub(".* recorded, ([0-9]+) are left.*", "\\1", paste(capture.output(print(model)),
                                                             collapse = " "))
  expect_lt(as.integer(left), 60L)
})

test_that("branches by values, steps of cl_scan() and other tapes have nodes of their own", {
  y <- c(0.3, -0.2, 0.5)
  f <- function(mu, s) {
    total <- 0
    for (v in y) total <- total + if (mu > 0) dnorm(v, mu, s) else dnorm(v, mu, 2 * s)
    total
  }
  step <- function(mu, s) {
    first <- dnorm(1, mu, s)
    run <- cl_scan(function(e, x) {
      e <- x - mu * e
      list(state = e, out = dnorm(e, mu, s) + dnorm(1, mu, s) + dnorm(x, e, s))
    }, first, y)
    sum(run$out) + dnorm(2, mu, s)
  }
  e <- dnorm(1, 0.4, 0.7)
  want <- dnorm(2, 0.4, 0.7)
  for (x in y) {
    e <- x - 0.4 * e
    want <- want + dnorm(e, 0.4, 0.7) + dnorm(1, 0.4, 0.7) + dnorm(x, e, 0.7)
  }
  with_cl(engine = "host", {
    model <- cl_gradient(f, retrace = TRUE)
    for (mu in c(0.4, -0.4)) expect_equal(as.numeric(model(mu = mu, s = 0.7)), f(mu, 0.7))
    expect_equal(as.numeric(cl_gradient(step)(mu = 0.4, s = 0.7)), want)
  })
})

test_that("log_sum_exp and softmax of values of several forms are those of base R", {
  sums <- function(x, margin = NULL) {
    if (is.null(margin)) log(sum(exp(x))) else log(apply(exp(x), margin, sum))
  }
  shares <- function(x, margin = NULL) {
    if (is.null(margin)) exp(x) / sum(exp(x)) else sweep(exp(x), margin, exp(sums(x, margin)), `/`)
  }
  with_functions <- function(sums, shares) {
    function(x, y) {
      m <- x %*% t(y)
      total <- 0
      for (k in 1:3) {
        total <- total + sums(k * x) * sums(y) + sum(shares(x + k)^2) + sum(shares(m)[, k]^2)
        for (margin in 1:2) {
          total <- total + sum(sums(k * m, margin)^2) + sum(shares(m / k, margin)[k, ]^2) +
            sum(sums(t(m), margin)^3) + sum(shares(m[1:3, ], margin)[, 1]^2)
        }
      }
      total
    }
  }
  model <- with_functions(cl_log_sum_exp, cl_softmax)
  plain <- with_functions(sums, shares)
  x <- c(0.3, -0.8, 0.5, 1.1, -0.2)
  y <- c(0.7, 0.2, -0.4, 0.9)
  each_engine({
    found <- cl_gradient(model)(x = x, y = y)
    expect_equal(as.numeric(found), plain(x, y), tolerance = 1e-12)
    slope <- vapply(seq_along(x), function(i) {
      h <- 1e-5 * (seq_along(x) == i)
      (plain(x + h, y) - plain(x - h, y)) / 2e-5
    }, 0)
    expect_equal(attr(found, "gradient")$x, slope, tolerance = 1e-7)
  })
  # values of the function around a step of cl_scan()
  f <- function(x) {
    run <- cl_scan(function(s, u) {
      s <- s * u + cl_log_sum_exp(x) + cl_log_sum_exp(x + s)
      list(state = s, out = cl_softmax(x)[1L] * s)
    }, cl_log_sum_exp(x), c(0.2, 0.1))
    sum(run$out)
  }
  s <- sums(x)
  want <- 0
  for (u in c(0.2, 0.1)) {
    s <- s * u + sums(x) + sums(x + s)
    want <- want + shares(x)[1L] * s
  }
  expect_equal(as.numeric(with_cl(cl_gradient(f)(x = x), engine = "host")), want)
})
