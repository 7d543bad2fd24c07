# cl_map_gradient(): a compiled function at several points at once agrees with one point after
# another; chains of cl_sample() that share its evaluations.

each_engine({
  test_that("several points give the same as each alone", {
    set.seed(1)
    x <- matrix(rnorm(300), 50)
    y <- rbinom(50, 1, 0.5)
    group <- sample(1:4, 50, TRUE)
    f <- cl_gradient(function(a, b, u, s) {
      eta <- a + x %*% b + u[group] * exp(s)
      k <- exp(-outer(1:4, 1:4, "-")^2 / 8) * exp(s) + diag(0.5, 4)
      z <- backsolve(chol(k), u, transpose = TRUE)
      sum(dbinom(y, 1, plogis(eta), log = TRUE)) - sum(z^2) / 2 + cl_log_sum_exp(b) +
        sum(rowSums(outer(u, b))^2)
    })
    for (n in full_or_quick(c(1, 2, 3, 4, 7), c(1, 3))) {
      a <- rnorm(n)
      b <- matrix(rnorm(6 * n), 6)
      u <- matrix(rnorm(4 * n), 4)
      s <- matrix(rnorm(n), 1)
      got <- cl_map_gradient(f, a, b = b, s = s, u = u)
      # once there is a program
      expect_identical(cl_map_gradient(f, a, b = b, s = s, u = u), got)
      slopes <- attr(got, "gradient")
      expect_identical(lapply(slopes, dim), list(a = NULL, b = dim(b), u = dim(u), s = dim(s)))
      for (k in seq_len(n)) {
        one <- f(a[k], b[, k], u[, k], s[, k])
        expect_close(got[k], as.vector(one), 1e-12)
        expect_close(c(slopes$a[k], slopes$b[, k], slopes$u[, k], slopes$s[, k]),
                     unlist(attr(one, "gradient")), 1e-11)
      }
    }
  })

  test_that("recursions are one scan of the sequences of all points", {
    set.seed(2)
    n <- 30
    y <- rnorm(n)
    z <- matrix(rnorm(3 * n), n)
    models <- list(
      arma = list(function(mu, s, w) { # loops are rolled
        e <- numeric(n)
        e[1] <- y[1] - mu
        for (t in 2:n) e[t] <- y[t] - mu - w[1] * y[t - 1] - w[2] * e[t - 1]
        sum(dnorm(e, 0, exp(s), log = TRUE))
      }, 1, 1, 2),
      several = list(function(a, s) { # three sequences, with shared and with own parameters
        r <- cl_scan(function(e, x) {
          e <- x - a * e
          list(state = e, out = e^2)
        }, s, z)
        sum(r$out) + sum(r$state)
      }, 1, 3),
      carried = list(function(a, b) { # two numbers, and inputs that depend on parameters
        r <- cl_scan(function(p, x) {
          p <- c(p[1] * a + x - p[2], p[2] + b[1] * p[1]^2 / 10)
          list(state = p, out = p[1])
        }, c(0.1, 0.2), y * b[2])
        sum(r$out^2) + r$state[2]
      }, 1, 2),
      constant = list(function(a) { # a scan of data alone
        r <- cl_scan(function(p, x) list(state = p / 2 + x, out = p), 0.1, y)$out
        sum(dnorm(r, a, 1, log = TRUE))
      }, 1))
    for (name in full_or_quick(names(models), c("arma", "several"))) {
      f <- cl_gradient(models[[name]][[1]])
      for (count in full_or_quick(c(1, 2, 5), 3)) {
        point <- lapply(models[[name]][-1], function(d) matrix(runif(d * count, 0.1, 0.4), d))
        got <- do.call(cl_map_gradient, c(list(f), point))
        for (k in seq_len(count)) {
          one <- do.call(f, lapply(point, function(x) x[, k]))
          expect_close(got[k], as.vector(one), 1e-12)
          slopes <- lapply(attr(got, "gradient"), function(g) matrix(g, ncol = count)[, k])
          expect_close(unlist(slopes), unlist(attr(one, "gradient")), 1e-11)
        }
      }
    }
  })

  test_that("a point that fails does not affect the others", {
    f <- cl_gradient(function(s, m) {
      r <- chol(m + diag(2))
      sum(log(diag(r))) + sum(m * s)
    })
    m <- array(c(1, 0.5, 0.5, 1), c(2, 2, 4))
    m[, , 2] <- matrix(c(1, 9, 9, 1), 2)
    got <- cl_map_gradient(f, s = c(1, 1, NaN, 1), m = m)
    one <- f(s = 1, m = m[, , 1])
    expect_identical(is.nan(got), c(FALSE, TRUE, TRUE, FALSE))
    expect_close(got[4], as.vector(one), 1e-14)
    expect_close(attr(got, "gradient")$m[, , 4], attr(one, "gradient")$m, 1e-14)
    expect_identical(colSums(is.nan(attr(got, "gradient")$m), dims = 2), c(0, 4, 4, 0))
  })
})

on_host({

test_that("forms of points", {
  f <- cl_gradient(function(p) sum(p$x * p$s))
  want <- structure(c(6, 9), gradient = list(x = matrix(c(2, 2, 3, 3), 2), s = c(3, 3)))
  x <- matrix(c(1, 2, 1, 2), 2)
  expect_equal(cl_map_gradient(f, list(x = x, s = 2:3)), want)
  expect_equal(cl_map_gradient(f, x = x, s = 2:3), want)
  g <- cl_gradient(function(m, z) sum(m^2) + sum(z))
  for (turn in 1:2) {
    got <- cl_map_gradient(g, m = array(1:8, c(2, 2, 2)), z = matrix(0, 0, 2))
    expect_equal(got, structure(c(30, 174), gradient = list(m = array(2 * 1:8, c(2, 2, 2)),
                                                           z = matrix(0, 0, 2))))
  }
  h <- cl_gradient(function(p) sum(p^2))
  many <- matrix(1:150, 3) # more than one run takes
  expect_equal(cl_map_gradient(h, many),
               structure(colSums(many^2), gradient = list(p = 2 * many)))
  none <- cl_map_gradient(h, matrix(0, 3, 0))
  expect_equal(none, structure(numeric(), gradient = list(p = matrix(0, 3, 0))))
  constant <- cl_gradient(function(a) 3)
  expect_warning(got <- cl_map_gradient(constant, a = 1:2), class = "statcl_warning_unused")
  expect_equal(got, structure(c(3, 3), gradient = list(a = c(0, 0))))
})

test_that("functions that are recorded again, and new data", {
  f <- cl_gradient(function(a) if (a > 0) a^2 else -a, retrace = TRUE)
  expect_equal(cl_map_gradient(f, a = c(3, -2)), structure(c(9, 2), gradient = list(a = c(6, -1))))
  home <- new.env()
  home$y <- c(1, 2)
  g <- function(a) sum(y * a)
  environment(g) <- home
  g <- cl_gradient(g)
  points <- cbind(1:2, 3:4)
  expect_equal(as.vector(cl_map_gradient(g, a = points)), c(5, 11))
  update(g, y = c(0, 1))
  expect_equal(as.vector(cl_map_gradient(g, a = points)), c(2, 4))
  expect_equal(as.vector(cl_map_gradient(g, a = 1:2)), c(1, 2))
  expect_equal(as.vector(cl_map_gradient(g, a = points)), c(2, 4))
})

test_that("points of the wrong shape are rejected", {
  f <- cl_gradient(function(a, b) a + sum(b))
  expect_refused("b", cl_map_gradient(f, a = 1:2, b = "1"))
  expect_refused("...", cl_map_gradient(f))
})

test_that("lockstep is the default on devices only, and not for functions recorded again", {
  f <- cl_gradient(function(a) -a^2)
  expect_false(batch_pays(f, 4))
  on_device({
    expect_true(batch_pays(f, 4))
    expect_false(batch_pays(f, 1))
    expect_false(batch_pays(cl_gradient(function(a) -a^2, retrace = TRUE), 4))
  })
})

test_that("chains in lockstep share evaluations of a compiled function", {
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
  f <- function(mu, tau, z) {
    sum(dnorm(y, mu + tau * z, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
      dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
  }
  for (init in list(list(mu = 0, tau = 1, z = numeric(8)), list(z = numeric(8), tau = 1, mu = 0))) {
    run <- function(batch) {
      cl_sample(cl_gradient(f), init, chains = 3, warmup = 20, iter = 10, seed = 1, batch = batch,
                transform = list(tau = cl_lower(0)))
    }
    # until rounding differences have grown
    expect_lt(max(abs(run(TRUE)$draws - run(FALSE)$draws)), 1e-5)
  }
})

test_that("a compiled function among other terms is called once for all chains", {
  y <- c(1, 3, 2)
  f <- cl_gradient(function(b, s) sum(dnorm(y, b, s, log = TRUE)))
  g <- cl_gradient(function(p) sum(p$a * p$b) * p$s)
  posterior <- cl_log_posterior(f, ~ dnorm(a, 0, 1, log = TRUE), g, ~ -s)
  layout <- parameter_layout(list(a = 0, b = numeric(3), s = 1), list(s = cl_lower(0)))
  several <- make_batch_evaluator(posterior, layout, "stop")
  alone <- make_evaluator(posterior, layout, "stop")
  points <- matrix(c(0.5, 1, 2, 3, 0.1, -0.5, 3, 2, 1, -0.2, 0, 0, 1, 0, 0.3), 5)
  for (round in 1:2) { # the first one compiles
    for (n in 3:1) {
      answers <- several(points[, 1:n, drop = FALSE])
      for (k in 1:n) expect_equal(answers[[k]], alone(points[, k]), tolerance = 1e-12)
    }
  }
})

})
