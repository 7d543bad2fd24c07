# cl_ode(): exact solutions, gradients, errors.

decay <- function(t, y, k) -k * y

swing <- function(t, y, w) c(y[2], -w^2 * y[1])

each_engine({
  test_that("solutions and gradients are exact to the order of the method", {
    f <- cl_gradient(function(w, a) {
      y <- cl_ode(swing, c(a, 0), c(0, 0.5, 2), w = w, steps = 10)
      sum(y[, 1] * c(1, 2, 3)) + y[3, 2]
    })
    w <- 1.3
    t <- c(0, 0.5, 2)
    got <- f(w = w, a = 2)
    expect_close(as.vector(got), 2 * (sum(cos(w * t) * 1:3) - w * sin(w * 2)), 1e-6)
    slope <- 2 * (sum(-t * sin(w * t) * 1:3) - sin(w * 2) - 2 * w * cos(w * 2))
    expect_close(attr(got, "gradient")$w, slope, 1e-5)
  })

  test_that("several solutions are computed at once", {
    k <- c(0.5, 1, 2)
    f <- cl_gradient(function(k, y0) {
      y <- cl_ode(decay, y0, 0:2, k = rbind(k), steps = 10, sequences = 3)
      expect_identical(dim(y), c(3L, 3L))
      sum(y * 1:9)
    })
    want <- sum(2 * exp(-outer(0:2, k)) * 1:9)
    expect_close(as.vector(f(k = k, y0 = 2)), want, 1e-6)
  })

  test_that("steps adapt separately in each sequence", {
    f <- function(k, y0) {
      y <- cl_ode(decay, y0, c(0, 1, 4), k = rbind(k), rtol = 1e-8, atol = 1e-10, max_steps = 90,
                  sequences = 3)
      sum(y * 1:9)
    }
    k <- c(0.1, 1, 5)
    got <- cl_gradient(f)(k = k, y0 = 2)
    e <- exp(-outer(c(0, 1, 4), k)) * 1:9
    expect_close(as.vector(got), 2 * sum(e), 1e-7)
    expect_close(attr(got, "gradient")$k, -2 * colSums(c(0, 1, 4) * e), 1e-6)
    expect_close(attr(got, "gradient")$y0, sum(e), 1e-7)
    expect_close(f(k, 2), as.vector(got), 1e-12)
  })
})

# Robertson's reactions, and the solution of Hairer and Wanner's book at t = 40
reactions <- function(t, y, k) {
  a <- -k[1] * y[1] + k[2] * y[2] * y[3]
  b <- k[3] * y[2]^2
  c(a, -a - b, b)
}

each_engine(test_that("stiff equations, by few steps", {
  # at t = 40 the state changes slowly, and its second part follows in 1e-3
  f <- cl_gradient(function(k) {
    y <- cl_ode(reactions, c(1, 0, 0), c(0, 40), k = k * c(1, 1e4, 1e7), stiff = TRUE,
                rtol = 1e-7, atol = 1e-11, max_steps = 400)
    sum(y[2, ] * c(1, 1e4, 3))
  })
  k <- c(0.04, 1, 3)
  y <- c(0.7158270688, 0.9185534765e-5, 0.2841637457)
  got <- f(k = k)
  expect_close(as.vector(got), sum(y * c(1, 1e4, 3)), 1e-7)
  expect_close(attr(got, "gradient")$k, slopes_of(function(k) f(k = k), k, 1e-3 * k), 1e-5)
}))

on_host({

test_that("the stiff method has order 4, several solutions, and adapts for plain numbers", {
  slope <- function(t, y, k) -k * (y - cos(t))
  exact <- function(t, k) { # from y = 0
    (k^2 * (cos(t) - exp(-k * t)) + k * sin(t)) / (1 + k^2)
  }
  error <- vapply(c(20, 40, 80), function(n) {
    cl_ode(slope, 0, c(0, 2), k = 3, steps = n, stiff = TRUE)[2] - exact(2, 3)
  }, 0)
  ratio <- error[-3] / error[-1]
  expect_true(all(ratio > 11 & ratio < 24), info = paste(ratio))
  k <- c(1, 30, 1e4)
  many <- function(k) {
    y <- cl_ode(slope, 0, c(0, 1, 3), k = rbind(k), rtol = 1e-6, atol = 1e-8, stiff = TRUE,
                max_steps = 400, sequences = 3)
    sum(y * 1:9)
  }
  want <- sum(outer(c(0, 1, 3), k, exact) * 1:9)
  expect_close(many(k), want, 1e-5)
  got <- cl_gradient(many)(k = k)
  expect_close(as.vector(got), many(k), 1e-10)
  slopes <- slopes_of(function(k) sum(outer(c(0, 1, 3), k, exact) * 1:9), k, 1e-3 * k)
  expect_close(attr(got, "gradient")$k, slopes, 1e-5)
  plain <- cl_ode(reactions, c(1, 0, 0), c(0, 40), k = c(0.04, 1e4, 3e7), stiff = TRUE,
                  rtol = 1e-7, atol = 1e-11, max_steps = 400)
  expect_close(plain[2, ], c(0.7158270688, 0.9185534765e-5, 0.2841637457), 1e-7)
  expect_refused("stiff", cl_ode(decay, 1, 0:1, k = 1, stiff = 2))
})

test_that("steps that are not needed change nothing", {
  start <- c(34, 6)
  slope <- function(t, z, theta) {
    c((theta[1] - theta[2] * z[2]) * z[1], (theta[4] * z[1] - theta[3]) * z[2])
  }
  theta <- c(0.55, 0.028, 0.8, 0.024)
  of <- function(...) {
    cl_gradient(function(theta) sum(log(cl_ode(slope, start, 0:8, theta = theta, ...))))
  }
  expect_identical(of(max_steps = 2000)(theta = theta), of(max_steps = 50)(theta = theta))
})

test_that("plain numbers, and the order of the method", {
  y <- cl_ode(decay, 3, c(0, 1, 3), k = 1, steps = 10)
  expect_equal(y, 3 * exp(-c(0, 1, 3)), tolerance = 1e-5)
  y <- cl_ode(swing, c(1, 0), 0:3, w = 1, steps = 10)
  expect_identical(dim(y), c(4L, 2L))
  expect_equal(y[, 1], cos(0:3), tolerance = 1e-7)
  inner <- cl_gradient(function(a) {
    slope <- function(t, y) a * y
    sum(cl_ode(slope, 1, 0:2, steps = 10))
  })
  expect_equal(attr(inner(a = 0.5), "gradient")$a, exp(0.5) + 2 * exp(1), tolerance = 1e-7)
  error <- function(steps) abs(cl_ode(decay, 1, 0:1, k = 1, steps = steps)[2] - exp(-1))
  expect_gt(error(4) / error(8), 25)
  both <- cl_ode(function(t, y) t * y, rbind(c(1, 2)), 0:1, steps = 10,
                 sequences = 2)
  expect_equal(both, rbind(c(1, 2), exp(0.5) * c(1, 2)), tolerance = 1e-8)
})

# van der Pol's equation: stiff if mu is large
van_der_pol <- function(t, y, mu) c(y[2], mu * (1 - y[1]^2) * y[2] - y[1])

test_that("adaptive steps reach the requested accuracy", {
  error <- function(tol) {
    y <- cl_ode(swing, c(1, 0), 0:3, w = 1, rtol = tol, atol = tol)
    max(abs(y[, 1] - cos(0:3)))
  }
  expect_lt(error(1e-6), 1e-5)
  expect_lt(error(1e-10), 1e-9)
  f <- function(mu, ...) sum(cl_ode(van_der_pol, c(2, 0), c(0, 5, 10), mu = mu, ...) * 1:6)
  got <- cl_gradient(function(mu) {
    f(mu, rtol = 1e-10, atol = 1e-10, max_steps = 1500)
  })
  want <- cl_gradient(function(mu) f(mu, steps = 10000))
  for (mu in c(0.5, 20)) expect_equal(got(mu = mu), want(mu = mu), tolerance = 1e-7)
  forced <- function(t, y, w) cos(w * t) + 0 * y
  g <- cl_gradient(function(w) {
    cl_ode(forced, 0, c(-2, 2), w = w, rtol = 1e-10, atol = 1e-10, max_steps = 500)[2]
  })
  slope <- 4 * cos(6) / 3 - 2 * sin(6) / 9 # of 2 sin(2 w) / w
  expect_equal(attr(g(w = 3), "gradient")$w, slope, tolerance = 1e-8)
  h <- function(w, a) sum(cl_ode(swing, c(a, 0), 0:2, w = w, rtol = 1e-9, atol = 1e-9))
  expect_true(all(cl_check_gradient(cl_gradient(h), w = 2, a = 1)$ok))
  whole <- cl_hessian(function(w, a) sum(cl_ode(swing, c(a, 0), 0:2, w = w, steps = 200)))
  expect_equal(cl_hessian(h)(w = 2, a = 1), whole(w = 2, a = 1), tolerance = 1e-5)
})

test_that("a failed step is rejected and does not contribute to the derivative", {
  # the first steps tried lead to negative numbers, whose roots are NaN
  f <- function(a) {
    y <- cl_ode(function(t, y) -a * c(sqrt(y[1]), 100 * sqrt(y[2])), c(1, 1e4), c(0, 1, 1.8))
    expect_identical(dim(y), c(3L, 2L))
    sum(y[, 1]) + sum(y[, 2])
  }
  t <- c(0, 1, 1.8)
  got <- cl_gradient(f)(a = 1)
  expect_equal(as.vector(got), sum((1 - t / 2)^2 + 1e4 * (1 - t / 2)^2), tolerance = 1e-6)
  expect_equal(attr(got, "gradient")$a, sum(-10001 * (1 - t / 2) * t), tolerance = 1e-5)
  expect_equal(f(1), as.vector(got))
  root <- cl_gradient(function(a) cl_ode(function(t, y) -a * sqrt(y), 1, c(0, 30))[2])
  expect_equal(attr(root(a = 0.05), "gradient")$a, -(1 - 0.05 * 30 / 2) * 30,
               tolerance = 1e-5)
})

test_that("too few steps", {
  f <- function(mu) cl_ode(van_der_pol, c(2, 0), c(0, 0.1, 9), mu = mu, max_steps = 20)
  parts <- cl_gradient(function(mu) sum(f(mu)[1:2, ]))
  expect_equal(as.vector(parts(mu = 20)), 3.97, tolerance = 1e-2)
  expect_identical(as.vector(cl_gradient(function(mu) sum(f(mu)))(mu = 20)), NaN)
  expect_refused("max_steps", f(20))
  # y = 1 / (1 - t)
  expect_refused("max_steps", cl_ode(function(t, y) y^2, 1, c(0, 2)))
})

test_that("arguments of equations may have any names", {
  slope <- function(t, y, x, h, s) -(x + h + s) * y
  got <- cl_gradient(function(x) sum(cl_ode(slope, 1, 0:1, x = x, h = 0.1, s = 0.2)))
  expect_equal(as.vector(got(x = 0.5)), 1 + exp(-0.8), tolerance = 1e-5)
  fixed <- cl_ode(slope, 1, 0:1, x = 0.5, h = 0.1, s = 0.2, steps = 20)
  expect_equal(fixed, c(1, exp(-0.8)), tolerance = 1e-7)
  expect_equal(cl_ode(slope, 1, 0:1, x = 0.5, h = 0.1, s = 0.2), fixed, tolerance = 1e-5)
})

test_that("errors of equations", {
  expect_refused("f", cl_ode(1, 1, 0:1), cl_ode(function(t, y) c(y, y), 1, 0:1),
                 cl_ode(function(t, y) c(y, y), 1, 0:1, steps = 3),
                 cl_gradient(function(a) sum(cl_ode(function(t, y) c(y, y), a, 0:1)))(a = 1))
  expect_refused("times", cl_ode(decay, 1, 1, k = 1), cl_ode(decay, 1, c(1, 0), k = 1))
  expect_refused("steps", cl_ode(decay, 1, 0:1, k = 1, steps = 0),
                 cl_ode(decay, 1, 0:1, k = 1, rtol = 1e-3, steps = 5))
  expect_refused("rtol", cl_ode(decay, 1, 0:1, k = 1, rtol = -1))
  expect_refused("atol", cl_ode(decay, 1, 0:1, k = 1, atol = 0))
  expect_refused("max_steps", cl_ode(decay, 1, 0:1, k = 1, max_steps = 0))
  expect_refused("y0", cl_ode(decay, "a", 0:1, k = 1))
})

})
