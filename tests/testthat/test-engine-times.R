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
    expect_identical(c(engine$at, engine$moves), c(-1L, TRUE))
    expect_equal(f(par), want, tolerance = 1e-8)
    session$times[[host]] <- session$times[[device]] <- NULL
    for (i in 1:20) note_time(list(size = 60, times = 1, kind = "gp"), -1L, 10)
    run()
    expect_identical(c(engine$at, engine$moves), c(test_device(), TRUE))
    for (i in 1:4) for (k in 1:20) run() # and a faster one is not timed for ever
    expect_identical(c(engine$at, engine$moves), c(test_device(), FALSE))
  })
})

test_that("likelihoods return from a device that turns out to be slower", {
  x <- cbind(sin(1:40), cos(1:40))
  y <- rep(c(0, 1, 1, 0, 2), 8)
  make <- c(
    function() cl_likelihood("poisson_log", y, x),
    function() cl_likelihood("ordered_logistic", y + 1, x),
    function() cl_likelihood("categorical_logit", y + 1, x),
    if (requireNamespace("Matrix", quietly = TRUE))
      function() sparse_likelihood("poisson_log", y, Matrix::Matrix(x, sparse = TRUE), NULL))
  value <- list(
    function(f) f(alpha = 0.1, beta = c(0.2, -0.3)),
    function(f) f(beta = c(0.2, -0.3), cuts = c(-1, 1)),
    function(f) f(alpha = c(0.1, 0, 0.2), beta = matrix(c(0.2, -0.3), 2, 3)),
    function(f) {
      result <- f(alpha = 0.1, beta = c(0.2, -0.3))
      expect_identical(environment(f)$state$where, environment(f)$engine$at) # with its matrix
      result
    })
  for (i in seq_along(make)) {
    want <- with_cl(value[[i]](make[[i]]()), engine = "host")
    with_thresholds(c(likelihood = 10), {
      f <- make[[i]]()
      engine <- environment(f)$engine
      run <- function() {
        engine$spare <- 0 # asks in each evaluation
        session$lost <- list()
        expect_equal(value[[i]](f), want, tolerance = 1e-8)
      }
      session$owed$likelihood <- 1e6
      expect_lt(calls_until(run, function() engine$at >= 0L), 30)
      for (k in 1:8) run()
      of <- engine$choice
      key <- function(where) times_key(of$kind, of$size, where, of$times)
      device <- session$times[[key(test_device())]]
      expect_gte(device[["calls"]], 8)
      session$times[[key(-1L)]] <- NULL
      for (k in 1:20) note_time(of, -1L, 1e-9)
      session$times[[key(test_device())]][["all"]] <- device[["all"]] + 0.1
      for (k in 1:2) {
        run()
        expect_identical(c(engine$at, engine$moves), c(-1L, TRUE))
      }
      expect_output(print(f), "engine: host .such calls took longer on the device")
      settle_densities(f, 1e12) # a sampler is another matter
      expect_identical(c(engine$at, engine$moves), c(test_device(), FALSE))
      run()
      expect_identical(engine$at, test_device())
      pace_densities(f, 1, 1, 1)
      run()
      expect_identical(engine$at, -1L)
    })
  }
})

test_that("a host that had no calls is compared with a slow device", {
  with_thresholds(c(gp = 10), {
    session$multiplication <- 1e-6
    on.exit(session$multiplication <- NULL)
    estimate <- host_seconds$gp(200, 1e-6)
    lacks <- function() lacks_host("gp", 200, test_device())
    note <- function(at, seconds, times = 1) {
      for (k in seq_len(times)) note_time(list(size = 200, times = 1, kind = "gp"), at, seconds)
    }
    expect_false(lacks())
    note(test_device(), 0.4 * estimate, 100) # fast enough
    expect_false(lacks())
    session$times <- list()
    note(test_device(), 0.6 * estimate, 30) # few
    expect_false(lacks())
    note(test_device(), 0.6 * estimate, 40)
    session$crowded[[times_key("gp", 200, -1L)]] <- c(least = 2 * estimate) # not of all cores
    expect_true(lacks())
    expect_identical(choice_reason("gp", 200, -1L)$why, "compared")
    note(-1L, 3 * estimate) # takes longer, and much of the device's time
    note(-1L, 2.5 * estimate)
    expect_false(lacks())
    session$times[[times_key("gp", 200, -1L)]] <- NULL
    for (k in 1:3) {
      expect_true(lacks())
      note(-1L, 0.7 * estimate)
    }
    expect_false(lacks())
    note(-1L, 0.58 * estimate)
    expect_true(lacks())
    note(-1L, 0.58 * estimate, 60)
    expect_false(lacks())
    expect_false(is_slower("gp", 200, test_device())) # hardly
    note(-1L, 0.3 * estimate, 16)
    expect_true(is_slower("gp", 200, test_device()))
  })
})

test_that("Vecchia's approximation returns from a device that turns out to be slower", {
  x <- seq(0, 1, length.out = 60)
  par <- c(sd = 1, lengthscale = 0.3, noise = 0.1)
  for (mean in full_or_quick(list("constant", 0), "constant")) with_thresholds(c(gp = 10), {
    f <- cl_gp_likelihood(sin(6 * x), x, k_exp_quad(), mean = mean, approx = "vecchia")
    want <- with_cl(f(par, information = TRUE), engine = "host")
    engine <- environment(environment(f)$on_handle)$engine
    run <- function() {
      engine$spare <- 0
      session$lost <- list()
      expect_equal(f(par, information = TRUE), want, tolerance = 1e-8)
    }
    session$owed$gp <- 1e6
    expect_lt(calls_until(run, function() engine$at >= 0L), 30)
    of <- engine$choice
    key <- function(where) times_key(of$kind, of$size, where, of$times)
    for (k in 1:8) run()
    device <- session$times[[key(test_device())]]
    value <- function() f(par, gradient = FALSE) # takes less
    expect_lt(calls_until(value, function() !"gp" %in% session$waits), 30)
    expect_identical(session$times[[key(test_device())]], device)
    session$times[[key(-1L)]] <- NULL
    for (k in 1:20) note_time(of, -1L, 1e-9)
    session$times[[key(test_device())]][["all"]] <- device[["all"]] + 0.1
    run()
    expect_identical(c(engine$at, engine$moves), c(-1L, TRUE))
    expect_output(print(f), "engine: host .such calls took longer on the device")
  })
})

counts_likelihood <- function() {
  cl_likelihood("poisson_log", rep(0:1, 20), cbind(sin(1:40), cos(1:40)))
}

# An evaluation that asks for its engine.
ask_and_run <- function(f, ...) {
  assign("spare", 0, environment(f)$engine)
  f(0.1, c(0.2, -0.3), ...)
}

test_that("a likelihood that has only been on a device is evaluated on the host, too", {
  with_thresholds(c(likelihood = 10), {
    f <- counts_likelihood()
    engine <- environment(f)$engine
    run <- function(...) ask_and_run(f, ...)
    want <- run()
    session$owed$likelihood <- 1e6
    expect_lt(calls_until(run, function() engine$at >= 0L), 30)
    session$times <- session$crowded <- list()
    for (k in 1:70) expect_equal(run(), want, tolerance = 1e-8) # this device is slower than a loop
    expect_identical(c(engine$at, engine$moves), c(-1L, TRUE))
    run()
    host <- times_key(engine$choice$kind, engine$choice$size, -1L)
    expect_gte(session$times[[host]][["calls"]], 2)
  })
})

test_that("the times of calls are compared with those of the same work alone", {
  set.seed(1)
  limits <- c(glm_fit = 1, glm = 1, glm_wide = 1, matmul = 1, tri_solve = 1, covariance = 1,
              batch = 1, arith = 1, gp = 1)
  with_thresholds(limits, {
    keys <- function(call) {
      session$times <- session$crowded <- list()
      call()
      unique(c(names(session$times), names(session$crowded)))
    }
    d <- data.frame(x = sin(1:40), y = rep(c(0, 1, 1, 0, 1), 8), z = 1:40 / 7)
    x <- cbind(1, d$x)
    several <- array(crossprod(matrix(rnorm(16), 4)), c(4, 4, 8))
    few <- array(diag(2), c(2, 2, 64))
    lpdf <- function(family, ...) cl_glm_lpdf(family, d$y, x, 0.1, c(0.2, 0.3), ...)
    cases <- list(
      glm_fit = list(function() cl_glm(y ~ x, d, "bernoulli_logit"),
                     function() cl_glm(y ~ x, d, "poisson_log"),
                     function() cl_glm(z ~ x, d, Gamma("log")),
                     function() cl_glm(z ~ x, d, Gamma("inverse")),
                     function() cl_glm(y ~ x, d, binomial("probit"))),
      glm = list(function() lpdf("bernoulli_logit"), function() lpdf("poisson_log"),
                 function() lpdf("poisson_log", gradient = "beta"),
                 function() cl_glm_lpdf("poisson_log", d$y, x, 0.1, matrix(0.1, 2, 9))),
      matmul = list(function() cl_matmul(matrix(1, 110, 110), matrix(1, 110, 110)),
                    function() cl_matmul(matrix(1, 1000, 40), matrix(1, 40, 1000))),
      tri_solve = list(function() cl_tri_solve(diag(110), matrix(1, 110, 110)),
                       function() cl_tri_solve(diag(80), matrix(1, 80, 440))),
      covariance = list(function() cl_cov(x, kernel = k_exp_quad()),
                        function() cl_cov(x, kernel = k_matern32()),
                        function() cl_cov(x, kernel = k_exp_quad() + k_linear()),
                        function() cl_cov_adjoint(diag(40), x, kernel = k_exp_quad())),
      batch = list(function() cl_batch_chol(several), function() cl_batch_chol(few),
                   function() cl_batch_inverse(several), function() cl_batch_det(several),
                   function() cl_batch_solve(several, several)),
      arith = list(function() cl_map(function(u) u + 1, x), function() cl_map(exp, x),
                   function() cl_op("erf", x), function() cl_op("abs", x),
                   function() cl_reduce(x), function() cl_reduce(x, margin = "rows")))
    for (name in names(cases)) {
      found <- lapply(cases[[name]], keys)
      expect_true(all(lengths(found) > 0L), info = name)
      expect_identical(anyDuplicated(unlist(found)), 0L, info = name)
      expect_identical(lapply(cases[[name]], keys), found, info = name)
    }
    expect_refused("family", lpdf(mean), lpdf(NULL), lpdf(list(1))) # before it is a part of a kind
    expect_refused("gradient", lpdf("poisson_log", gradient = mean))
  })
})

test_that("evaluations whose times are not compared stop asking on a device", {
  with_thresholds(c(likelihood = 10), {
    f <- counts_likelihood()
    engine <- environment(f)$engine
    run <- function(...) ask_and_run(f, ...)
    session$owed$likelihood <- 1e6
    expect_lt(calls_until(run, function() engine$at >= 0L), 30)
    calls <- function() vapply(session$times, `[[`, 0, "calls")
    before <- calls()
    for (i in 1:240) run(gradient = NULL)
    for (i in 1:5) f(0.1, matrix(0.1, 2, 3))
    f(0.1, c(0.2, -0.3), gradient = "beta")
    expect_true(engine$moves)
    with_cl(run(), engine = "host")
    expect_true(engine$moves)
    expect_identical(calls(), before)
    for (i in 1:15) run(gradient = NULL)
    expect_false(engine$moves)
    expect_identical(engine$at, test_device())
    engine$restore()
    expect_identical(engine$uncounted, 0)
  })
})
