# What calls have taken, and whether a device is the slower one: R/base-times.R.

test_that("a device is not judged by its first calls", {
  with_thresholds(c(chol = 100), {
    note <- function(where, seconds) {
      for (s in seconds) note_time(list(op = "chol", size = 200, times = 1), where, s)
    }
    slower <- function() is_slower("chol", 200, test_device())
    note(-1L, rep(0.2, 10))
    note(test_device(), c(9, 0.3, 0.3, 0.3))
    expect_false(slower())
    note(test_device(), 0.3)
    expect_true(slower())
    session$times <- list() # the shortest of many calls that differ
    note(-1L, rep(c(0.2, 0.3), 50))
    note(test_device(), rep(0.3, 5))
    expect_false(slower())
    note(test_device(), rep(0.25, 30))
    expect_false(slower())
    expect_false(is_settled("chol", 200, test_device()))
    note(test_device(), rep(0.25, 30))
    expect_true(is_settled("chol", 200, test_device()))
    session$times <- list()
    note(-1L, c(rep(0.5, 20), rep(c(0.2, 0.25), 50))) # a slow machine for some seconds
    note(test_device(), rep(0.3, 100))
    expect_true(slower())
    expect_false(is_settled("chol", 200, test_device()))
    session$times <- list() # far apart
    note(-1L, rep(c(0.2, 0.3), 50))
    note(test_device(), rep(0.41, 5))
    expect_true(slower())
  })
})

test_that("a host that lacks cores does not make a device look fast", {
  with_thresholds(c(chol = 100), {
    of <- list(op = "chol", size = 200, times = 1)
    run <- function(where) Sys.sleep(0.05)
    took <- with_functions(list(blas_share = function() 0.5), timed(of, run, -1L))$seconds
    key <- times_key("chol", 200, test_device())
    device <- function(seconds) session$times[[key]] <- c(least = seconds, calls = 9, all = 9,
                                                              mean = Inf)
    host <- session$crowded[[1L]][["least"]]
    expect_equal(host, took / 2)
    device(1.2 * host)
    expect_true(is_slower("chol", 200, test_device()))
    device(0.8 * host)
    expect_false(is_slower("chol", 200, test_device()))
    device(0.04)
    timed(of, run, -1L) # and with all cores 0.05
    expect_false(is_slower("chol", 200, test_device()))
  })
})

test_that("a Gaussian process returns from a device that turns out to be slower", {
  with_thresholds(c(gp = 10), {
    x <- seq(0, 1, length.out = 60)
    par <- c(sd = 1, lengthscale = 0.3, noise = 0.1)
    f <- cl_gp_likelihood(sin(6 * x), x, k_exp_quad())
    want <- with_cl(cl_gp_likelihood(sin(6 * x), x, k_exp_quad())(par), engine = "host")
    engine <- environment(environment(f)$on_handle)$engine
    run <- function() {
      engine$spare <- 0 # asks in each evaluation
      session$lost <- list()
      expect_equal(f(par), want, tolerance = 1e-8)
    }
    session$owed$gp <- 1e6
    device <- times_key("gp", 60, test_device())
    expect_lt(calls_until(run, function() isTRUE(session$times[[device]]["calls"] > 5)), 30)
    expect_identical(engine$at, test_device())
    host <- times_key("gp", 60, -1L)
    session$times[[host]] <- NULL
    for (i in 1:20) note_time(list(op = "gp", size = 60, times = 1), -1L, 1e-9)
    session$times[[device]][["all"]] <- session$times[[device]][["all"]] + 0.1
    run()
    expect_identical(engine$at, -1L)
    expect_equal(f(par), want, tolerance = 1e-8)
    expect_identical(session$times[[host]][["calls"]], 22) # all of the host's are timed
    for (i in 1:5) f(par, gradient = FALSE) # except values alone, and a handle of another process
    restored <- unserialize(serialize(f, NULL))
    environment(environment(restored)$on_handle)$engine$spare <- 1
    expect_equal(restored(par), want, tolerance = 1e-8)
    expect_identical(session$times[[host]][["calls"]], 22)
    for (where in c(-1L, test_device())) session$times[[times_key("gp", 60, where)]] <- NULL
    for (i in 1:20) note_time(list(op = "gp", size = 60, times = 1), -1L, 10)
    run()
    expect_identical(c(engine$at, engine$moves), c(test_device(), TRUE))
    for (i in 1:4) for (k in 1:20) run() # and a faster one is not timed for ever
    expect_identical(c(engine$at, engine$moves), c(test_device(), FALSE))
  })
})
