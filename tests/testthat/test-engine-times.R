# What calls have taken, and whether a device is the slower one: R/base-times.R.

test_that("a device is not judged by its first calls", {
  with_thresholds(c(chol = 100), {
    note <- function(where, seconds) {
      for (s in seconds) note_time(list(size = 200, times = 1, kind = "chol"), where, s)
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
    of <- list(op = "chol", size = 200, times = 1, kind = "chol")
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
    host <- times_key("gp", 60, -1L)
    device <- times_key("gp", 60, test_device())
    session$owed$gp <- -1e6
    run()
    engine$spare <- 1
    f(par) # does not ask
    expect_identical(session$times[[host]][["calls"]], 2) # all of the host's are timed
    for (i in 1:5) f(par, gradient = FALSE) # except values alone, and a handle of another process
    restored <- unserialize(serialize(f, NULL))
    environment(environment(restored)$on_handle)$engine$spare <- 1
    expect_equal(restored(par), want, tolerance = 1e-8)
    expect_identical(session$times[[host]][["calls"]], 2)
    session$owed$gp <- 1e6
    expect_lt(calls_until(run, function() isTRUE(session$times[[device]]["calls"] > 5)), 30)
    expect_identical(engine$at, test_device())
    session$times[[host]] <- NULL
    for (i in 1:20) note_time(list(size = 60, times = 1, kind = "gp"), -1L, 1e-9)
    session$times[[device]][["all"]] <- session$times[[device]][["all"]] + 0.1
    run()
    expect_identical(c(engine$at, engine$moves), c(-1L, FALSE))
    expect_equal(f(par), want, tolerance = 1e-8)
    session$times[[host]] <- session$times[[device]] <- NULL
    for (i in 1:20) note_time(list(size = 60, times = 1, kind = "gp"), -1L, 10)
    engine$moves <- TRUE
    run()
    expect_identical(c(engine$at, engine$moves), c(test_device(), TRUE))
    for (i in 1:4) for (k in 1:20) run() # and a faster one is not timed for ever
    expect_identical(c(engine$at, engine$moves), c(test_device(), FALSE))
  })
})

test_that("likelihoods return from a device that turns out to be slower", {
  skip_if_not_installed("Matrix")
  x <- cbind(sin(1:40), cos(1:40))
  y <- rep(c(0, 1, 1, 0, 2), 8)
  sparse <- Matrix::sparseMatrix(1:40, rep(1:2, 20), x = 1, dims = c(40, small_dense / 40 + 1))
  beta <- rep(0.1, ncol(sparse))
  make <- list(
    function() cl_likelihood("poisson_log", y, x),
    function() cl_likelihood("ordered_logistic", y + 1, x),
    function() cl_likelihood("neg_binomial_2_log", y, sparse),
    function() cl_gp_likelihood(y, x, k_exp_quad(), approx = "vecchia", neighbours = 5))
  value <- list(
    function(f) f(alpha = 0.1, beta = c(0.2, -0.3)),
    function(f) f(beta = c(0.2, -0.3), cuts = c(-1, 1)),
    function(f) f(alpha = 0.1, beta = beta, phi = 2),
    function(f) f(c(sd = 1, lengthscale = 0.3, noise = 0.1)))
  for (i in seq_along(make)) {
    want <- with_cl(value[[i]](make[[i]]()), engine = "host")
    with_thresholds(c(likelihood = 10, gp = 10), {
      f <- make[[i]]()
      engine <- environment(f)$engine
      if (is.null(engine)) engine <- environment(environment(f)$on_handle)$engine
      run <- function() {
        engine$spare <- 0 # asks in each evaluation
        session$lost <- list()
        expect_equal(value[[i]](f), want, tolerance = 1e-8)
      }
      session$owed <- list(likelihood = 1e6, gp = 1e6)
      expect_lt(calls_until(run, function() engine$at >= 0L), 30)
      run()
      of <- engine$choice
      key <- function(where) times_key(of$kind, of$size, where, of$times)
      for (k in 1:8) run()
      device <- session$times[[key(test_device())]]
      expect_gte(device[["calls"]], 8)
      session$times[[key(-1L)]] <- NULL
      for (k in 1:20) note_time(of, -1L, 1e-9)
      session$times[[key(test_device())]][["all"]] <- device[["all"]] + 0.1
      run()
      expect_identical(c(engine$at, engine$moves), c(-1L, FALSE))
      run()
      expect_output(print(f), "engine: host .such calls took longer on the device")
      if (!inherits(f, "cl_likelihood") || i == 3L) next
      settle_densities(f, 1e12) # a sampler is another matter
      expect_identical(c(engine$at, engine$moves), c(test_device(), FALSE))
      run()
    })
  }
})

test_that("a host that had no calls is compared with a slow device", {
  with_thresholds(c(chol = 100), {
    session$multiplication <- 1e-6
    on.exit(session$multiplication <- NULL)
    note_built("chol")
    estimate <- host_seconds$chol(200, 1e-6)
    where <- function() as.integer(where_for("chol", 200))
    note <- function(at, seconds, times = 1) {
      for (k in seq_len(times)) note_time(list(size = 200, times = 1, kind = "chol"), at, seconds)
    }
    note(test_device(), 0.4 * estimate, 100) # fast enough
    expect_identical(where(), test_device())
    session$times <- list()
    note(test_device(), 0.02, 63)
    session$times[[1L]][["all"]] <- 0
    expect_identical(where(), test_device()) # few
    session$times <- list()
    note(test_device(), 0.6 * estimate, 64)
    for (k in 1:3) {
      expect_identical(where(), -1L)
      expect_identical(choice_reason("chol", 200, -1L)$why, "compared")
      note(-1L, 0.7 * estimate)
    }
    expect_identical(where(), test_device()) # the host takes longer
    note(-1L, 0.58 * estimate)
    expect_identical(where(), -1L)
    note(-1L, 0.58 * estimate, 60)
    expect_identical(where(), test_device()) # hardly less
    note(-1L, 0.3 * estimate, 16)
    expect_identical(where(), -1L)
    expect_true(is_slower("chol", 200, test_device()))
  })
})

test_that("evaluations whose times are not compared stop asking on a device", {
  with_thresholds(c(likelihood = 10), {
    f <- cl_likelihood("poisson_log", rep(0:1, 20), cbind(sin(1:40), cos(1:40)))
    engine <- environment(f)$engine
    run <- function(...) {
      engine$spare <- 0
      f(0.1, c(0.2, -0.3), ...)
    }
    session$owed$likelihood <- 1e6
    expect_lt(calls_until(run, function() engine$at >= 0L), 30)
    calls <- function() vapply(session$times, `[[`, 0, "calls")
    before <- calls()
    for (i in 1:250) run(gradient = NULL)
    for (i in 1:5) f(0.1, matrix(0.1, 2, 3))
    f(0.1, c(0.2, -0.3), gradient = "beta")
    expect_true(engine$moves)
    expect_identical(calls(), before)
    for (i in 1:5) run(gradient = NULL)
    expect_false(engine$moves)
    expect_identical(engine$at, test_device())
  })
})
