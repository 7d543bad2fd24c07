# cl_scan() compared with a plain loop and with the same loop unrolled.

set.seed(1)
y40 <- round(rnorm(40), 3)

# Value and gradient of `scanned` agree with those of `unrolled` on the host, and values with those
# of plain calls.
expect_scan <- function(scanned, unrolled, ..., tol = 1e-10) {
  plain <- unrolled(...)
  expect_equal(as.vector(scanned(...)), as.vector(plain), tolerance = tol)
  got <- cl_gradient(scanned)(...)
  want <- with_cl(cl_gradient(unrolled)(...), engine = "host")
  expect_equal(as.vector(got), as.vector(plain), tolerance = tol)
  expect_equal(attr(got, "gradient"), attr(want, "gradient"), tolerance = tol)
  invisible(got)
}

garch <- function(omega, alpha, beta) {
  h <- cl_scan(function(h, y) list(state = omega + alpha * y^2 + beta * h, out = h), 1, y40)$out
  sum(dnorm(y40, 0, sqrt(h), log = TRUE))
}

garch_loop <- function(omega, alpha, beta) {
  h <- 1
  total <- 0
  for (y in y40) {
    total <- total + dnorm(y, 0, sqrt(h), log = TRUE)
    h <- omega + alpha * y^2 + beta * h
  }
  total
}

# The forward algorithm, in logarithms, of the matrix of log emissions.
forward <- function(emit, log_move) {
  step <- function(a, e) c(cl_log_sum_exp(a + log_move, 2)) + e
  cl_log_sum_exp(cl_scan(step, emit[1, ], emit[-1, , drop = FALSE]))
}

forward_loop <- function(emit, log_move) {
  a <- emit[1, ]
  for (t in seq_len(nrow(emit))[-1]) a <- c(cl_log_sum_exp(a + log_move, 2)) + emit[t, ]
  cl_log_sum_exp(a)
}

# A Kalman filter with a state of two numbers: the state is a list.
kalman <- function(phi, q, r) {
  move <- rbind(c(1, 1), c(0, phi))
  noise <- diag(c(0.01, 1)) * q
  found <- cl_scan(function(s, y) {
    p <- move %*% s$p %*% t(move) + noise
    m <- move %*% s$m
    v <- p[1, 1] + r
    gain <- p[, 1] / v
    list(state = list(m = m + gain * (y - m[1]), p = p - outer(gain, p[1, ])),
         out = dnorm(y, m[1], sqrt(v), log = TRUE))
  }, list(m = c(0, 0), p = diag(2)), y40)
  sum(found$out) + sum(found$state$m)
}

kalman_loop <- function(phi, q, r) {
  move <- rbind(c(1, 1), c(0, phi))
  noise <- diag(c(0.01, 1)) * q
  m <- c(0, 0)
  p <- diag(2)
  total <- 0
  for (y in y40) {
    p <- move %*% p %*% t(move) + noise
    m <- c(move %*% m)
    v <- p[1, 1] + r
    gain <- p[, 1] / v
    total <- total + dnorm(y, m[1], sqrt(v), log = TRUE)
    m <- m + gain * (y - m[1])
    p <- p - outer(gain, p[1, ])
  }
  total + sum(m)
}

each_engine({
  test_that("recursions are those of loops", {
    expect_no_leak({
      expect_scan(garch, garch_loop, omega = 0.1, alpha = 0.2, beta = 0.7)
      emit <- matrix(sin(1:60), 20)
      expect_scan(forward, forward_loop, emit = emit, log_move = log(matrix(1:9 / 15, 3)))
      expect_scan(kalman, kalman_loop, phi = 0.8, q = 0.5, r = 0.3)
    })
  })

  test_that("steps solve systems with more than three rows, with pivots", {
    base <- matrix(sin((1:25)^2), 5)
    base[1, 1] <- 0 # a first pivot that needs another row
    for (n in 4:5) {
      m <- base[seq_len(n), seq_len(n)]
      one <- function(s, y, a, b) {
        k <- m + a * diag(c(0, seq_len(n - 1))) + outer(s, s) * 0.1
        d <- determinant(k)
        s <- solve(k, s + b * y)
        list(s = s, more = d$modulus + d$sign + sum(solve(t(k))[2, ]))
      }
      f <- function(a, b) {
        found <- cl_scan(function(s, y) {
          r <- one(s, y, a, b)
          list(state = r$s, out = r$more)
        }, rep(0.3, n), y40[1:6])
        sum(found$out) + sum(found$state * seq_len(n))
      }
      loop <- function(a, b) {
        s <- rep(0.3, n)
        total <- 0
        for (y in y40[1:6]) {
          r <- one(s, y, a, b)
          s <- r$s
          total <- total + r$more
        }
        total + sum(s * seq_len(n))
      }
      expect_scan(f, loop, a = 0.4, b = 0.7)
    }
  })

  test_that("several sequences are run at once", {
    b <- 7
    y <- matrix(sin(1:(5 * b)), 5)
    f <- function(a, start, slope) {
      found <- cl_scan(function(s, y, k) {
        s <- tanh(a %*% s + y) * k
        list(state = s, out = list(sum(s), s^2))
      }, start, y, sequences = b, k = slope)
      sum(found$out[[1]]^2) + sum(found$out[[2]] * sin(seq_len(5 * 2 * b))) + sum(found$state^3)
    }
    loop <- function(a, start, slope) {
      one <- two <- three <- 0
      for (i in seq_len(b)) {
        s <- start[, i]
        for (t in 1:5) {
          s <- c(tanh(a %*% s + y[t, i])) * slope[1, i]
          one <- one + sum(s)^2
          two <- two + sum(s^2 * sin(t + 5 * (0:1) + 10 * (i - 1)))
        }
        three <- three + sum(s^3)
      }
      one + two + three
    }
    start <- matrix(cos(1:(2 * b)), 2)
    slope <- rbind(seq(0.5, 1.5, length.out = b))
    a <- matrix(c(0.5, 0.1, -0.2, 0.9), 2)
    expect_scan(f, loop, a = a, start = start, slope = slope)
  })

  test_that("one step, one sequence, shared and captured values", {
    one <- function(a) sum(cl_scan(function(s, x) s * a + x, c(1, 2), 5))
    expect_scan(one, function(a) sum(c(1, 2) * a + 5), a = 0.5)
    beside <- function(a, x) {
      s <- cl_scan(function(s, x) s * a + x, a, x, sequences = 1)
      expect_identical(dim(s), c(2L, 1L))
      sum(s)
    }
    loop <- function(a, x) {
      s <- a
      for (t in 1:4) s <- s * a + x[t, 1:2]
      sum(s)
    }
    expect_scan(beside, loop, a = c(0.5, 0.3), x = matrix(sin(1:8), 4))
    counted <- function(a) cl_scan(function(s) sin(s) + a, a, length.out = 3)
    expect_scan(counted, function(a) sin(sin(sin(a) + a) + a) + a, a = 0.4)
  })
})

on_host({

test_that("many sequences, many steps", {
  n <- 1000
  y <- matrix(sin(1:(3 * n)), 3)
  f <- cl_gradient(function(a) {
    sum(cl_scan(function(s, y) s * a + y, 0, y, sequences = n)^2)
  })
  want <- function(a) sum((y[1, ] * a^2 + y[2, ] * a + y[3, ])^2)
  expect_equal(as.vector(f(a = 0.5)), want(0.5), tolerance = 1e-13)
  expect_true(all(cl_check_gradient(f, a = 0.5)$ok))
  long <- sin(seq_len(1e5))
  g <- cl_gradient(function(a) mean(cl_scan(function(s, y) {
    list(state = s * a + y, out = s^2)
  }, 0, long)$out))
  s <- stats::filter(long, 0.9, "recursive")
  slope <- stats::filter(c(0, s[-1e5]), 0.9, "recursive")
  got <- g(a = 0.9)
  expect_equal(as.vector(got), sum(s[-1e5]^2) / 1e5, tolerance = 1e-12)
  expect_equal(attr(got, "gradient")$a, 2 * sum((s * slope)[-1e5]) / 1e5, tolerance = 1e-12)
})

test_that("outside a traced function it is a loop", {
  expect_identical(cl_scan(function(s, x) s + x, 0, 1:4), 10)
  expect_identical(cl_scan(function(s, x) list(state = s + x, out = s), 0, 1:4),
                   list(state = 10, out = c(0, 1, 3, 6)))
  m <- matrix(1:6 + 0, 3)
  expect_identical(cl_scan(function(s, x) list(state = s + x, out = x), c(0, 0), m),
                   list(state = c(6, 15), out = m))
  found <- cl_scan(function(s, x) list(state = s, out = list(a = s$m * x$u, b = x$w)),
                   list(m = diag(2)), list(u = 1:2, w = m[1:2, ]))
  expect_identical(found$state, list(m = diag(2)))
  expect_identical(found$out$a[2, , ], diag(2) * 2)
  expect_identical(found$out$b, m[1:2, ])
  expect_identical(cl_scan(function(s, x) s + x, c(0, 0), array(1:12 + 0, c(2, 2, 3)),
                           sequences = 3), matrix(c(3, 7, 11, 15, 19, 23), 2))
  # recorded, but independent of parameters
  f <- cl_gradient(function(a) a * cl_scan(function(s, x) s + x, 0, 1:4))
  expect_equal(as.vector(f(a = 2)), 20)
})

test_that("second derivatives, new data, comparisons", {
  f <- function(omega, alpha, beta) garch(omega, alpha, beta)
  at <- list(omega = 0.1, alpha = 0.2, beta = 0.7)
  expect_equal(do.call(cl_hessian(garch), at), do.call(cl_hessian(garch_loop), at),
               tolerance = 1e-10)
  y <- y40
  k <- c(1, 2)
  g <- cl_gradient(function(a) sum(cl_scan(function(s, y) s * a + y * k, c(0, 0), y)))
  want <- function(a) sum(y * a^(39:0)) * sum(k)
  expect_equal(as.vector(g(a = 0.5)), want(0.5))
  update(g, y = 2 * y, k = 2 * k)
  expect_equal(as.vector(g(a = 0.5)), 4 * want(0.5))
  h <- cl_gradient(function(a) {
    s <- cl_scan(function(s, y) list(state = c(s[2], s[1] * a + y), out = s), c(0, 0), y)
    if (s$state[1] > 0) sum(s$out[, 2]) else a
  }, retrace = TRUE)
  expect_true(all(cl_check_gradient(h, a = 0.5)$ok))
})

test_that("missing data that a step omits do not affect the derivative", {
  x <- cbind(c(1, NA, 3, 0.5, NA), c(NA, 2, 1, NA, 3))
  pieces <- list(
    one = function(s, x, a) s * a + ifelse(is.na(x[1]), a, x[1] * a),
    elements = function(s, x, a) s * a + ifelse(!is.na(x), dnorm(x, s, a, log = TRUE), a),
    rm = function(s, x, a) s * a + sum(x * a, na.rm = TRUE),
    whole = function(s, x, a) {
      s * a + cl_ifelse(is.na(x[1]) | is.na(x[2]), 0, c(x %*% matrix(a, 2, 2)))
    },
    finite = function(s, x, a) s * a + cl_ifelse(is.finite(x * a) & s < 1e9, exp(x * a / 9), s))
  for (step in pieces) {
    f <- function(a) sum(cl_scan(function(s, x) step(s, x, a), c(0, 0), x))
    got <- cl_gradient(f)(a = 0.5)
    expect_equal(as.vector(got), f(0.5), tolerance = 1e-13)
    slope <- (f(0.5 + 1e-5) - f(0.5 - 1e-5)) / 2e-5
    expect_equal(attr(got, "gradient")$a, slope, tolerance = 1e-7)
  }
  y <- x
  model <- cl_gradient(function(a) sum(cl_scan(function(s, y) {
    s * a + ifelse(is.na(y), 0, y * a)
  }, 0, y, sequences = 2)))
  want <- function(y, a) sum(ifelse(is.na(y), 0, y) * a^(5:1))
  expect_equal(as.vector(model(a = 0.5)), want(y, 0.5))
  model <- update(model, y = y[5:1, ])
  got <- model(a = 0.5)
  expect_equal(as.vector(got), want(y[5:1, ], 0.5))
  expect_true(is.finite(attr(got, "gradient")$a))
})

test_that("missing data that a step uses give NaN", {
  x <- c(1, NA, 3)
  value <- function(step) {
    f <- cl_gradient(function(a) cl_scan(function(s, x) step(s, x, a), 0, x))
    as.vector(f(a = 1))
  }
  expect_identical(value(function(s, x, a) s + x * a), NaN)
  expect_identical(value(function(s, x, a) s + ifelse(is.na(x), x, a)), NaN)
  expect_identical(value(function(s, x, a) s + ifelse(is.na(a), 0, x * a)), NaN)
  both <- cbind(c(1, NA), 3)
  f <- cl_gradient(function(a) {
    sum(cl_scan(function(s, x) s + ifelse(is.na(x), 0, sum(x) * a), c(0, 0), both))
  })
  expect_identical(as.vector(f(a = 1)), NaN)
})

test_that("a scan within a scan is unrolled", {
  inner <- function(a, s) cl_scan(function(u, v) u * a + v, s, 1:3)
  f <- function(a) cl_scan(function(s, x) inner(a, s) + x, a, y40[1:5])
  loop <- function(a) {
    s <- a
    for (x in y40[1:5]) {
      for (v in 1:3) s <- s * a + v
      s <- s + x
    }
    s
  }
  expect_scan(f, loop, a = 0.3)
})

test_that("errors name what is wrong", {
  step <- function(s, x) s + x
  expect_refused("f", cl_scan(1, 0, 1:3), cl_scan(function(s, x) c(s, x), 0, 1:3),
                 cl_scan(function(s, x) list(state = s, out = "a"), 0, 1:3),
                 cl_scan(function(s, x) list(b = s$a), list(a = 1), 1:3))
  expect_refused("init", cl_scan(step, "a", 1:3), cl_scan(step, numeric(), 1:3))
  expect_refused("xs", cl_scan(step, 0, "a"), cl_scan(step, 0, numeric()),
                 cl_scan(step, 0, list(1:3, 1:4)))
  expect_refused("length.out", cl_scan(step, 0), cl_scan(step, 0, length.out = 0),
                 cl_scan(step, 0, 1:3, length.out = 3))
  expect_refused("sequences", cl_scan(step, 0, 1:3, sequences = 1.5))
  traced <- function(f) expect_fault(cl_gradient(f)(a = 1), "argument", argument = "f")
  traced(function(a) cl_scan(function(s, x) c(s, x), a, 1:3))
  traced(function(a) cl_scan(function(s, x) list(s, x), a, 1:3))
  traced(function(a) sum(cl_scan(function(s, x) s %*% s + a, diag(40), 1:3)))
  expect_error(cl_gradient(function(a) cl_scan(function(s, x) if (s > 0) a else x, a, 1:3))(a = 1),
               "cl_scan\\(\\) records its step once", class = "statcl_error_argument")
})

})
