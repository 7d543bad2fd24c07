# The engine of densities that are sampled: R/sample-compiled.R, R/base-movable.R.

test_that("a sampler's evaluations of a likelihood count", {
  with_thresholds(c(likelihood = 10), {
    make <- function() cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
    engine <- environment(make())$engine
    expect_identical(as.integer(engine$at), -1L)
    f <- make()
    session$owed$likelihood <- 0
    settle_densities(f, 10)
    expect_lt(session$owed$likelihood, 1e-4)
    settle_densities(f, 1e6) # the next evaluation asks for kernels
    owed <- session$owed$likelihood
    expect_gte(owed, build_begins * build_cost("likelihood"))
    settle_densities(f, 1e6) # and so do those of another sampler
    expect_equal(session$owed$likelihood, 2 * owed, tolerance = 1e-3)
    settle_densities(f, 1e10) # this waits for them
    expect_identical(as.integer(environment(f)$engine$at), test_device())
  })
})

test_that("a likelihood moves for a sampler once the kernels of several chains stand", {
  require_device()
  in_new_session(c(
    "own <- asNamespace('statcl')",
    "session <- own$session",
    sprintf("session$default <- %dL", test_device()),
    sprintf("session$tuned[['%s']] <- c(likelihood = 2)", test_device_id()),
    sprintf("stopifnot(nrow(cl_devices()) > 0L, is.null(.Call(own$r_sync, %dL)))", test_device()),
    "session$owed$likelihood <- 1e6",
    "f <- cl_likelihood('bernoulli_logit', rep(0:1, 50), matrix(sin(1:300), 100))",
    "programs <- function() .Call(own$r_builds)[[1L]]",
    "draw <- function() {",
    "  cl_sample(f, list(alpha = 0, beta = numeric(3)), chains = 2, warmup = 20, iter = 20,",
    "            seed = 1, refresh = 0, batch = TRUE)",
    "}",
    "draw()",
    "while (own$count_building() > 0L) Sys.sleep(0.01)",
    "before <- programs()",
    "stopifnot(environment(f)$engine$at < 0L, 'leapfrog_sum' %in% before)",
    "environment(f)$engine$paces[['host 2']] <- 1e3",
    "draw()",
    "stopifnot(environment(f)$engine$at >= 0L, length(programs()) == length(before))"))
})

test_that("a likelihood returns to the host before a sampler that would be slower on the device", {
  with_thresholds(c(likelihood = 10), {
    move <- function(pace, evaluations) {
      session$built <- character() # else the device has the data at once
      session$owed$likelihood <- 0
      f <- cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
      engine <- environment(f)$engine
      engine$paces <- pace
      host <- as.numeric(f(0, numeric(3)))
      session$owed$likelihood <- 1e3
      settle_densities(f, evaluations, 4)
      run <- function() {
        engine$spare <- 0
        f(0, numeric(3))
      }
      expect_lt(calls_until(run, function() engine$at >= 0L || engine$stays), 31)
      expect_equal(as.numeric(f(0, numeric(3))), host)
      f
    }
    for (evaluations in c(1, 1e10)) { # for so many the kernels are waited for
      slow <- move(list("host 4" = 1e-9), evaluations)
      expect_identical(as.integer(environment(slow)$engine$at), -1L)
      expect_output(print(slow), "host (such calls took longer on the device)", fixed = TRUE)
      for (pace in list(list("host 4" = 10), list("host 2" = 1e-9), list())) {
        fast <- move(pace, evaluations)
        expect_identical(as.integer(environment(fast)$engine$at), test_device())
      }
    }
    copy <- unserialize(serialize(slow, NULL))
    copy(0, numeric(3))
    expect_false(environment(copy)$engine$stays) # the paces may be another device's
    expect_length(environment(copy)$engine$paces, 0L)
  })
})

test_that("a likelihood stays on a device that is asked for, however slow", {
  require_device()
  f <- cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
  engine <- environment(f)$engine
  for (ask in list(list(engine = "device"), list(thresholds = c(likelihood = 10)))) {
    with_cl({
      engine$hold(engine$make(-1L), -1L)
      engine$moves <- TRUE
      engine$ahead <- 4
      engine$paces <- list("host 4" = 1e-9)
      old <- options(statcl.thresholds = ask$thresholds)
      on.exit(options(old))
      f(0, numeric(3))
      expect_identical(as.integer(engine$at), test_device())
      expect_false(engine$stays)
    }, device = test_device_id(), engine = if (is.null(ask$engine)) "auto" else ask$engine)
  }
})

test_that("the pace of samplers on an engine is that of the best one, without a device's first", {
  paces <- NULL
  expect_false(is_paced_slower(paces, 4))
  paces <- add_pace(paces, -1L, 4, 2, 1)
  paces <- add_pace(paces, -1L, 4, 0.5, 0.5)
  expect_identical(paces, list("host 4" = 1))
  paces <- add_pace(paces, 0L, 4, 50, 1)
  expect_false(is_paced_slower(paces, 4)) # it built kernels
  expect_true(is_paced_slower(add_pace(paces, 0L, 4, 13, 10), 4))
  expect_false(is_paced_slower(add_pace(paces, 0L, 4, 12, 10), 4))
  expect_false(is_paced_slower(add_pace(paces, 0L, 4, 0.9, 0.1), 4)) # too short
  expect_false(is_paced_slower(add_pace(paces, 0L, 4, 13, 10), 2)) # not known of 2 chains
})

test_that("a density whose samplers were slower on the device goes back to the host", {
  with_thresholds(c(likelihood = 10, program = 1e-6), {
    draw <- function(f, init) {
      cl_sample(f, init, chains = 2, warmup = 10, iter = 10, seed = 1, refresh = 0)
    }
    f <- cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
    init <- list(alpha = 0, beta = numeric(3))
    engine <- environment(f)$engine
    settle_densities(f, 1e10) # waits
    suppressWarnings(fit <- draw(f, init))
    expect_identical(engine$at, test_device())
    expect_identical(names(engine$paces), paste("device", 2))
    engine$paces <- list("host 2" = 1, "device 2" = 2)
    suppressWarnings(again <- draw(f, init))
    expect_identical(engine$at, -1L)
    expect_false(engine$moves)
    expect_identical(dim(again$draws), dim(fit$draws))

    g <- cl_gradient(function(a, s) sum(dnorm(c(1, 2, 4), a, exp(s), log = TRUE)) - s^2)
    state <- environment(g)
    init <- list(a = 0.1, s = 0.2)
    g(a = 0.1, s = 0.2)
    state$paces <- list("host 2" = 1, "device 2" = 2)
    suppressWarnings(draw(g, init))
    expect_identical(state$where, -1L)
    expect_lte(state$paces[["host 2"]], 1)
    state$paces <- NULL
    move_program(state, test_device())
    suppressWarnings(draw(g, init))
    expect_identical(names(state$paces), paste(if (state$where < 0L) "host" else "device", 2))
    state$paces <- NULL
    session$notes$density <- test_device() # where a program with transforms was
    pace_densities(g, 1, 1, 2)
    session$notes$density <- NULL
    expect_identical(names(state$paces), "device 2")
  })
})

test_that("what samplers on the host lose counts, so that a compiled function moves", {
  with_thresholds(c(program = 0.1), {
    y <- sin(1:50000)
    f <- cl_gradient(function(a, s) sum(dnorm(y, cos(a), 1 + s^2, log = TRUE))) # no other test's
    for (k in 1:2) f(a = 0.1, s = 0.2)
    state <- environment(f)
    expect_gt(state$gain, 0)
    evaluations <- 0.5 * 1e6 * build_time(state$cost) / state$gain # half of a build
    expect_identical(sampler_engine(state, evaluations), -1L)
    expect_gte(state$saved, build_begins * build_time(state$cost))
    expect_identical(sampler_engine(state, evaluations), -1L) # asks for kernels
    expect_gt(count_building(), 0L)
    while (count_building() > 0L) Sys.sleep(0.01)
    calls <- calls_until(function() sampler_engine(state, evaluations),
                         function() state$where == test_device())
    expect_lt(calls, 5)
    expect_identical(sampler_engine(state, 1), test_device()) # its kernels stand
  })
})

test_that("a sampler counts once, and not in a forked process, whose devices are the parent's", {
  with_thresholds(c(program = 0.1), {
    y <- sin(1:50000)
    f <- cl_gradient(function(a, s) sum(dnorm(y, sin(a), 1 + s^2, log = TRUE)))
    for (k in 1:2) f(a = 0.1, s = 0.2)
    state <- environment(f)
    state$saved <- 0
    settle_densities(f, 100, 4)
    for (k in 1:2) expect_identical(sampler_engine(state, 100), -1L)
    expect_lt(state$saved, 1e-6 * state$gain * 104)
    settle_densities(f, 100, 4)
    sampler_engine(state, 100)
    expect_gt(state$saved, 1e-6 * state$gain * 200)
    skip_on_os("windows")
    state$saved <- 1e6
    child <- function(k) list(f(a = 0.1, s = 0.2), sampler_engine(state, 1e9))
    there <- parallel::mclapply(1:2, child, mc.cores = 2)
    state$saved <- 0
    here <- list(f(a = 0.1, s = 0.2), -1L)
    expect_identical(there, list(here, here))
  })
})

test_that("a likelihood of an older version is sampled", {
  f <- cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
  rm("pace", envir = environment(f)$engine)
  suppressWarnings(fit <- cl_sample(f, list(alpha = 0, beta = numeric(3)), chains = 2, warmup = 10,
                                    iter = 10, seed = 1, refresh = 0))
  expect_true(fit$complete)
})

test_that("a sampler that has not ended has no pace", {
  f <- cl_likelihood("bernoulli_logit", rep(0:1, 50), matrix(sin(1:300), 100))
  draw <- function(complete) {
    run <- function(job) list(complete = complete, elapsed = 1, evaluations = c(10, 10))
    with_functions(list(run_in_turn = run),
                   cl_sample(f, list(alpha = 0, beta = numeric(3)), chains = 2, batch = FALSE))
  }
  draw(FALSE)
  expect_length(environment(f)$engine$paces, 0L)
  draw(TRUE)
  expect_length(environment(f)$engine$paces, 1L)
})
