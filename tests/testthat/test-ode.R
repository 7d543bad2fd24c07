# cl_ode(): exact solutions, gradients, errors.

decay <- function(t, y, k) -k * y

swing <- function(t, y, w) c(y[2], -w^2 * y[1])

each_engine({
  test_that("solutions and gradients are exact to the order of the method", {
    f <- cl_gradient(function(w, a) {
      y <- cl_ode(swing, c(a, 0), c(0, 0.5, 2), w = w)
      sum(y[, 1] * c(1, 2, 3)) + y[3, 2]
    })
    w <- 1.3
    t <- c(0, 0.5, 2)
    got <- f(w = w, a = 2)
    expect_close(as.vector(got), 2 * (sum(cos(w * t) * 1:3) - w * sin(w * 2)), 1e-6)
    slope <- 2 * (sum(-t * sin(w * t) * 1:3) - sin(w * 2) - 2 * w * cos(w * 2))
    expect_close(attr(got, "gradient")$w, slope, 1e-5)
  })

  test_that("several solutions are computed beside each other", {
    k <- c(0.5, 1, 2)
    f <- cl_gradient(function(k, y0) {
      y <- cl_ode(decay, y0, 0:2, k = rbind(k), sequences = 3)
      expect_identical(dim(y), c(3L, 3L))
      sum(y * 1:9)
    })
    want <- sum(2 * exp(-outer(0:2, k)) * 1:9)
    expect_close(as.vector(f(k = k, y0 = 2)), want, 1e-6)
  })
})

on_host({

test_that("plain numbers, and orders", {
  expect_equal(cl_ode(decay, 3, c(0, 1, 3), k = 1), 3 * exp(-c(0, 1, 3)), tolerance = 1e-5)
  y <- cl_ode(swing, c(1, 0), c(0, 1, 2, 3), w = 1)
  expect_identical(dim(y), c(4L, 2L))
  expect_equal(y[, 1], cos(0:3), tolerance = 1e-7)
  inner <- cl_gradient(function(a) {
    slope <- function(t, y) a * y
    sum(cl_ode(slope, 1, 0:2))
  })
  expect_equal(attr(inner(a = 0.5), "gradient")$a, exp(0.5) + 2 * exp(1), tolerance = 1e-7)
  error <- function(steps) abs(cl_ode(decay, 1, 0:1, k = 1, steps = steps)[2] - exp(-1))
  expect_gt(error(4) / error(8), 25)
  both <- cl_ode(function(t, y) t * y, rbind(c(1, 2)), 0:1, sequences = 2)
  expect_equal(both, rbind(c(1, 2), exp(0.5) * c(1, 2)), tolerance = 1e-8)
})

test_that("errors of equations", {
  refused <- function(code, argument) expect_fault(code, "argument", argument = argument)
  refused(cl_ode(1, 1, 0:1), "f")
  refused(cl_ode(decay, 1, 1, k = 1), "times")
  refused(cl_ode(decay, 1, c(1, 0), k = 1), "times")
  refused(cl_ode(decay, 1, 0:1, k = 1, steps = 0), "steps")
  refused(cl_ode(function(t, y) c(y, y), 1, 0:1), "f")
  refused(cl_gradient(function(a) sum(cl_ode(function(t, y) c(y, y), a, 0:1)))(a = 1), "f")
})

})
