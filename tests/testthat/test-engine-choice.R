# The choice of an engine by cost: R/trace-engine.R, where_for(), is_worth_building().

# Runs the code as on a machine whose device is a GPU with these thresholds.
with_thresholds <- function(thresholds, code) {
  require_device()
  own <- asNamespace("statcl")$session
  id <- test_device_id()
  kept <- mget(c("tuned", "settled", "built", "owed"), envir = own)
  on.exit(list2env(kept, envir = own))
  own$tuned[[id]] <- thresholds
  own$settled <- list()
  own$built <- character()
  own$owed <- list()
  with_cl(code, device = id, engine = "auto")
}

log_density <- function(n) {
  y <- sin(seq_len(n))
  cl_gradient(function(a, s) sum(dnorm(y, a, exp(s), log = TRUE)))
}

test_that("a compiled function moves to a device when that has paid for its build", {
  with_thresholds(c(program = 10), {
    f <- log_density(50000L)
    state <- environment(f)
    first <- f(a = 0.1, s = 0.2)
    expect_identical(state$where, -1L)
    expect_gt(state$gain, 0)
    expect_output(print(f), "engine: host.*chosen by cost: about [0-9]+ us")
    state$saved <- build_time(state$cost) - 1.5e-6 * state$gain
    f(a = 0.1, s = 0.2)
    expect_identical(state$where, -1L)
    second <- f(a = 0.1, s = 0.2)
    expect_identical(state$where, test_device())
    expect_equal(second, first, tolerance = 1e-10)
    expect_equal(f(a = 0.1, s = 0.2), first, tolerance = 1e-10)
    expect_output(print(f), "engine: device")
  })
})

test_that("cl_tune() measures functions of the size that it names", {
  with_thresholds(c(program = 1e6), {
    run <- tune_tasks()$program$make(16, 1)
    run()
    cost <- environment(environment(run)$at$auto)$cost
    expect_equal(cost$host / cost$launches, 16, tolerance = 0.25)
  })
})

test_that("a small function, one of many launches and one of many steps stay on the host", {
  with_thresholds(c(program = 10), {
    small <- log_density(10L)
    small(a = 0.1, s = 0.2)
    y <- sin(1:300)
    loop <- cl_gradient(function(a, b) {
      e <- y[1L] - a
      total <- 0
      for (t in 2:40) {
        e <- y[t] - a - b * e
        total <- total - e^2
      }
      total
    })
    loop(a = 0.1, b = 0.2)
    long <- sin(1:5000) # few launches: only the steps keep it on the host
    scan <- cl_gradient(function(a, b) sum(cl_scan(function(e, x) x - a - b * e, 0, long)^2))
    scan(a = 0.1, b = 0.2)
    for (f in list(small, loop, scan)) {
      state <- environment(f)
      expect_identical(choose_engine(state$cost, Inf)$where, -1L)
      expect_identical(c(state$where, state$gain), c(-1, 0))
    }
  })
})

test_that("the number of evaluations to come decides on a build", {
  with_thresholds(c(program = 10), {
    f <- log_density(50000L)
    f(a = 0.1, s = 0.2)
    expect_identical(density_engine(f, 10), -1L)
    expect_identical(density_engine(f, 1e6), test_device())
    expect_identical(density_engine(f), -1L)
  })
})

test_that("a forced engine is used at once", {
  f <- log_density(10L)
  on_device(f(a = 0.1, s = 0.2))
  expect_identical(environment(f)$where, test_device())
  g <- log_density(50000L)
  with_thresholds(c(program = 0.001), with_cl(g(a = 0.1, s = 0.2), engine = "host"))
  expect_identical(environment(g)$where, -1L)
})

test_that("an operation runs on the host until a device would have saved its build", {
  with_thresholds(c(chol = 100, matmul = 10), {
    expect_identical(where_for("chol", 99), -1L)
    expect_identical(where_for("chol", 200), -1L)
    expect_equal(session$owed$chol, 1e-10 * 200^3)
    session$owed$chol <- 3
    expect_identical(where_for("chol", 200), test_device())
    expect_identical(where_for("matmul", 200), -1L)
    session$built <- character() # the user's own threshold is obeyed at once
    old <- options(statcl.thresholds = c(chol = 100))
    on.exit(options(old))
    expect_identical(where_for("chol", 200), test_device())
  })
  expect_identical(on_device(where_for("matmul", 2)), test_device())
  with_thresholds(c(glm_fit = 100), { # a fit asks more than once, and has one answer
    fit <- function() c(where_for("glm_fit", 1.5e8), where_for("glm_fit", 1.5e8))
    environment(fit) <- asNamespace("statcl")
    expect_identical(fit(), c(-1L, -1L))
    expect_equal(session$owed$glm_fit, 1.5)
    expect_identical(fit(), rep(test_device(), 2L))
  })
})

test_that("results are the same before and after an operation moves to a device", {
  tasks <- tune_tasks()
  ops <- full_or_quick(names(tasks), c("chol", "arith", "glm_fit", "gp", "batch"))
  with_thresholds(stats::setNames(rep(1, length(tasks)), names(tasks)), {
    for (op in ops) {
      # small products and solves run on the host without a question
      size <- tasks[[op]]$sizes[if (op %in% c("matmul", "tri_solve")) 4L else 2L]
      run <- function() tasks[[op]]$make(size, tasks[[op]]$shapes[[1L]])()
      host <- with_cl(run(), engine = "host")
      expect_equal(run(), host, tolerance = 1e-6, info = op)
      expect_false(is_built(op), info = op)
      session$owed[[op]] <- 100
      expect_equal(run(), host, tolerance = 1e-6, info = op)
      if (op != "program") expect_true(is_built(op), info = op)
    }
  })
})
