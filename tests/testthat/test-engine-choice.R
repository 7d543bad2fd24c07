# The choice of an engine by cost: R/trace-engine.R, where_for(), is_worth_building().

log_density <- function(n) {
  y <- sin(seq_len(n))
  cl_gradient(function(a, s) sum(dnorm(y, a, exp(s), log = TRUE)))
}

test_that("a compiled function moves to a device once its kernels have been built beside it", {
  with_thresholds(c(program = 10), {
    f <- log_density(50000L)
    state <- environment(f)
    first <- f(a = 0.1, s = 0.2)
    expect_identical(state$where, -1L)
    expect_gt(state$gain, 0)
    expect_output(print(f), "engine: host.*chosen by cost: about [0-9]+ us")
    state$saved <- build_begins * build_time(state$cost) - 1.5e-6 * state$gain
    f(a = 0.1, s = 0.2)
    expect_identical(count_building(), 0L)
    expect_equal(f(a = 0.1, s = 0.2), first, tolerance = 1e-10) # threads build, the host computes
    expect_identical(state$where, -1L)
    expect_output(print(f), "kernels for the device are being built")
    expect_lte(calls_until(function() f(a = 0.1, s = 0.2), function() state$where >= 0L), 3)
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

test_that("an operation runs on the host until that has spent as much as a part of the build", {
  with_thresholds(c(chol = 100, matmul = 10), {
    session$multiplication <- 1e-10
    on.exit(session$multiplication <- NULL)
    expect_identical(where_for("chol", 99), -1L)
    host <- where_for("chol", 200)
    expect_identical(c(host, attr(host, "op")), c("-1", "chol"))
    a <- diag(200) + 1
    cl_chol(a)
    expect_gte(session$owed$chol, 0)
    expect_match(choice_facts()[["chol"]], "^host, for")
    session$owed$chol <- build_begins * build_seconds[["chol"]]
    expect_identical(as.integer(where_for("chol", 200)), test_device())
    expect_false(attr(where_for("chol", 200), "waits"))
    expect_true(attr(where_for("chol", 2e4), "waits")) # the host would take 130 s
    session$times[[times_key("chol", 2e4, -1L)]] <- c(least = 0.5, all = 0.5, calls = 1)
    expect_false(attr(where_for("chol", 2e4), "waits")) # it has not
    expect_identical(as.integer(where_for("matmul", 200)), -1L)
    expect_identical(as.integer(where_for("matmul", 200, times = 1000)), test_device())
    old <- options(statcl.thresholds = c(chol = 100)) # the user's own threshold is obeyed at once
    on.exit(options(old), add = TRUE)
    session$owed$chol <- 0
    expect_identical(where_for("chol", 200), test_device())
  })
  expect_identical(on_device(where_for("matmul", 2)), test_device())
  with_thresholds(c(glm_fit = 100), { # a fit has one answer
    fit <- function() fit_on_engine("glm_fit", 1e6, function() {
      c(is_on_device("glm_fit", 1e6), is_on_device("glm_fit", 1e6))
    })
    expect_identical(fit(), c(FALSE, FALSE))
    session$owed$glm_fit <- 1e6
    expect_identical(fit(), c(TRUE, TRUE))
    expect_null(session$chosen$glm_fit)
    expect_false(is_on_device("glm_fit", 1e6)) # outside of a fit nobody waits
  })
})

test_that("what a fit on the host does is done there", {
  with_thresholds(c(gp = 100, chol = 100), {
    session$owed$chol <- 1e6
    part <- function() fit_on_engine("gp", 200, function() where_for("chol", 200))
    expect_identical(part(), -1L)
    expect_identical(as.integer(where_for("chol", 200)), test_device())
    session$owed$gp <- 1e6
    expect_identical(as.integer(part()), test_device())
    inner <- function() fit_on_engine("glm_fit", 1e6, function() where_for("chol", 200))
    outer <- function(run) fit_on_engine("gp", 200, run)
    session$built <- character()
    session$owed$gp <- 0
    forced <- function() with_cl(where_for("chol", 200), engine = "device")
    expect_identical(outer(forced), test_device())
    old <- options(statcl.thresholds = c(chol = 100)) # the user's own threshold is obeyed
    on.exit(options(old))
    expect_identical(part(), test_device())
    options(statcl.thresholds = c(glm_fit = 100)) # and a fit in the fit on the device has its parts
    expect_identical(as.integer(outer(inner)), test_device())
    expect_identical(as.integer(where_for("gp", 200)), -1L)
    expect_length(session$chosen, 0L)
  })
})

test_that("a fit on the host says so while kernels are built, and one on a device frees its copy", {
  with_thresholds(c(glm_fit = 10), {
    set.seed(1)
    x <- matrix(rnorm(1.2e5), 1e4)
    y <- rbinom(1e4, 1, 0.5)
    session$owed$glm_fit <- 1e3
    first <- cl_glm(x, y, "bernoulli_logit")
    expect_gt(length(session$waits), 0L)
    expect_identical(first$engine$where, "host")
    fit <- NULL
    calls_until(function() fit <<- cl_glm(x, y, "bernoulli_logit"),
                function() fit$engine$where != "host")
    expect_equal(coef(fit), coef(first), tolerance = 1e-8)
    freed <- 0
    count <- function(x = NULL) {
      freed <<- freed + nrow(x) * ncol(x)
      .Call(r_matrix_free, x@handle)
      invisible()
    }
    with_functions(list(cl_free = count), cl_glm(x, y, "bernoulli_logit"))
    expect_identical(freed, 1.2e5)
    expect_equal(predict(fit), predict(first), tolerance = 1e-8)
  })
})

test_that("an operation that is slower on the device returns to the host", {
  with_thresholds(c(arith = 10), {
    session$owed$arith <- 1e6
    session$times[[times_key("arith", 1000, -1L)]] <- c(least = 1e-9, all = 1e-9, calls = 1)
    noted <- note_time
    for (seconds in c(0.12, 0.01, 1e-3, 1e-3, 0.06, 0.06)) { # a tenth is lost after three
      expect_identical(as.integer(where_for("arith", 1000)), test_device())
      with_functions(list(note_time = function(of, where, took) noted(of, where, seconds)),
                     on_engine(where_for("arith", 1000), identity))
    }
    expect_identical(as.integer(where_for("arith", 1010)), -1L)
    expect_identical(as.integer(where_for("arith", 4000)), test_device())
  })
})

test_that("kernels that do not compile leave a call on the host", {
  with_thresholds(c(arith = 10), {
    where <- structure(test_device(), op = "arith", size = 10, times = 1, waits = FALSE)
    source <- sprintf("no kernel %d(", Sys.getpid())
    session$owed$arith <- 1e6
    run <- function(where) {
      if (where < 0L) return("host")
      cl_kernel(source, "none", c(x = "out"))
      "device"
    }
    expect_identical(on_engine(where, run), "host")
    while (count_building() > 0L) Sys.sleep(0.01)
    expect_identical(on_engine(where, run), "host")
    expect_match(session$refused$arith, "could not be compiled")
    expect_identical(as.integer(where_for("arith", 1e9)), -1L)
    expect_output(print(cl_sitrep()), "auto +arith: host, as kernels are refused")
  })
})

test_that("an attempt on a device leaves R's random numbers and errors as they were", {
  with_thresholds(c(arith = 10), {
    where <- structure(test_device(), op = "arith", size = 10, times = 1, waits = FALSE)
    set.seed(1)
    want <- runif(1)
    set.seed(1)
    swallowed <- FALSE
    draw <- function(where) {
      u <- runif(1)
      if (where >= 0L) {
        name <- sprintf("a%d", Sys.getpid())
        source <- sprintf("__kernel void %s(__global double *x) {}", name)
        tryCatch(cl_kernel(source, name, c(x = "out")), error = function(e) swallowed <<- TRUE)
      }
      u
    }
    expect_identical(on_engine(where, draw), want)
    expect_false(swallowed)
    while (count_building() > 0L) Sys.sleep(0.01)
    expect_error(on_engine(where, function(where) abort_argument("x", "'x' is bad")),
                 class = "statcl_error_argument")
  })
})

test_that("attempts that find kernels missing cost a tenth of the host's time at most", {
  with_thresholds(c(chol = 100), {
    session$multiplication <- 1e-10
    on.exit(session$multiplication <- NULL)
    session$owed$chol <- 10
    attempts <- 0
    call <- function() on_engine(where_for("chol", 200), function(where) {
      if (where < 0L) return("host")
      attempts <<- attempts + 1
      session$lost$chol <- session$lost$chol + 0.4 # as if the attempt took so long
      abort_fault(list(what = "building", message = "kernels are being built"))
    })
    session$lost$chol <- 0
    for (k in 1:20) expect_identical(call(), "host")
    expect_identical(attempts, 3) # 0, 0.4 and 0.8 of 10 seconds
    session$owed$chol <- 100
    call()
    expect_identical(attempts, 4)
  })
})

test_that("an attempt whose kernels stand is made at once, however long the last one took", {
  with_thresholds(c(arith = 10), {
    where <- structure(test_device(), op = "arith", size = 10, times = 1, waits = FALSE)
    attempts <- 0
    run <- function(where) {
      if (where < 0L) return("host")
      attempts <<- attempts + 1
      Sys.sleep(if (attempts == 3) 0.5 else 0.05)
      name <- sprintf("c%d_%d", Sys.getpid(), min(attempts, 3))
      cl_kernel(sprintf("__kernel void %s(__global double *x) {}", name), name, c(x = "out"))
      "device"
    }
    call <- function() {
      value <- on_engine(where, run)
      while (count_building() > 0L) Sys.sleep(0.01)
      value
    }
    expect_identical(call(), "host")
    expect_identical(call(), "host") # asks for another one
    expect_identical(attempts, 2)
    expect_identical(call(), "host") # the first attempt was lost: no third one
    expect_identical(attempts, 2)
    session$owed$arith <- 10
    expect_identical(c(call(), call()), c("host", "device"))
    expect_lt(session$lost$arith, 0.5) # without the one that led to it
    expect_null(session$asked$arith)
  })
})

test_that("a call that only asks for kernels collects no garbage", {
  require_device()
  with_thresholds(c(arith = 10), {
    where <- structure(test_device(), op = "arith", size = 10, times = 1, waits = FALSE)
    collected <- asks <- FALSE
    gc()
    reg.finalizer(new.env(), function(e) collected <<- TRUE)
    on_engine(where, function(where) {
      if (!only_asks()) return(0)
      on_device(for (i in 1:120) cl_zeros(250) + i) # 60 MB
      asks <<- !collected
    }, whole = TRUE)
    expect_true(asks)
  })
})

test_that("names of a response are not made for its copy on a device", {
  require_device()
  y <- stats::setNames(sqrt(1:10), 1:10)
  on_device(column_beside(y, cl_zeros(10, 1)))
  names <- paste(utils::capture.output(.Internal(inspect(y))), collapse = "\n")
  expect_match(names, "<deferred string conversion>")
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
      session$owed[[op]] <- 1e6
      calls <- calls_until(function() expect_equal(run(), host, tolerance = 1e-6, info = op),
                           function() is_built(op) || op == "program")
      expect_lt(calls, 12)
      if (op != "program") expect_match(choice_facts()[[op]], "^device")
    }
  })
})

test_that("a compiled function moves to a device before it is sampled", {
  require_device()
  f <- cl_gradient(function(a, b) sum(dnorm(c(1, 2), a, 2, log = TRUE)) - b^2)
  on_host(expect_equal(f(a = 1, b = 2), host <- f(a = 1, b = 2)))
  move_program(environment(f), test_device())
  expect_identical(environment(f)$where, test_device())
  expect_equal(on_device(f(a = 1, b = 2)), host)
})

test_that("the first attempt asks for the kernels of the whole call", {
  require_device()
  in_new_session(c(
    "own <- asNamespace('statcl')",
    "session <- own$session",
    sprintf("session$default <- %dL", test_device()),
    sprintf("session$tuned[['%s']] <- c(chol = 2, gp = 2, glm_fit = 2)", test_device_id()),
    sprintf("stopifnot(nrow(cl_devices()) > 0L, is.null(.Call(own$r_sync, %dL)))", test_device()),
    "session$owed <- list(chol = 1e6, gp = 1e6, glm_fit = 1e6)",
    "calls_until <- function(op, run) {",
    "  for (k in 1:20) {",
    "    stopifnot(all.equal(run(), with_cl(run(), engine = 'host'), tolerance = 1e-8))",
    "    while (own$count_building() > 0L) Sys.sleep(0.01)",
    "    if (own$is_built(op)) return(k)",
    "  }",
    "  Inf",
    "}",
    "a <- crossprod(sin(outer(1:150, 1:150))) + diag(150)",
    "reads <- NULL",
    "note <- quote(reads <<- c(reads, !unread))",
    "invisible(trace('lacks_kernels', note, print = FALSE, where = own))",
    "chol_a <- cl_chol(a)", # the first one only asks, which is no call on the device
    "stopifnot(own$count_building() > 0L, length(session$times) + length(session$crowded) == 1L,",
    "          !reads)",
    "while (own$count_building() > 0L) Sys.sleep(0.01)",
    "k <- calls_until('chol', function() cl_chol(a))",
    "programs <- .Call(own$r_builds)[[1L]]",
    "stopifnot(k == 1L, any(grepl('chol', programs)), 'transfer' %in% programs)",
    "f <- cl_gp_likelihood(sin(1:80), cbind(1:80), k_exp_quad())",
    "par <- c(sd = 1, lengthscale = 3, noise = 0.1)",
    "engine <- function() environment(environment(f)$on_handle)$engine",
    "k <- calls_until('gp', function() {",
    "  e <- engine()",
    "  e$spare <- 0", # each evaluation asks
    "  as.numeric(f(par, gradient = FALSE))",
    "})",
    "programs <- .Call(own$r_builds)[[1L]]",
    "stopifnot(k == 2L, 'covariance_adjoint' %in% programs)", # that of the gradient
    "f <- cl_gp_likelihood(sin(1:80), cbind(1:80), k_exp_quad())", # is made where the other one is
    "stopifnot(engine()$at == session$default)",
    "stopifnot(all.equal(as.numeric(f(par)), as.numeric(with_cl(cl_gp_likelihood(sin(1:80),",
    "  cbind(1:80), k_exp_quad())(par), engine = 'host'))))",
    "x <- matrix(sin(1:3000), 500)",
    "y <- rep(0:1, 250)",
    "set.seed(1); u <- runif(1); set.seed(1)",
    "tasks <- NULL",
    "note <- quote(tasks <<- c(tasks, only_asks()))",
    "invisible(trace('null_deviance_binary', note, print = FALSE, where = own))",
    "k <- calls_until('glm_fit', function() coef(cl_glm(x, y, 'bernoulli_logit')))",
    "stopifnot(k == 2L, runif(1) == u, !tasks)")) # the host's work is left out
})

test_that("a call that only asks for kernels leaves no trace", {
  with_thresholds(c(arith = 10, gp = 10), {
    where <- structure(test_device(), op = "arith", size = 10, times = 1, waits = FALSE)
    name <- sprintf("b%d", Sys.getpid())
    source <- sprintf("__kernel void %s(__global double *x) {}", name)
    set.seed(1)
    want <- runif(1)
    set.seed(1)
    asked <- 0
    kernel <- NULL
    run <- function(where) {
      u <- runif(1)
      if (where < 0L) return(u)
      if (only_asks()) {
        asked <<- asked + 1
        expect_identical(working_unit(c(2, 4), NULL, TRUE)$y, c(2, 4))
        warning("of zeros")
      }
      if (is.null(kernel)) kernel <<- cl_kernel(source, name, c(x = "out"))
      if (only_asks()) stop("of zeros")
      u
    }
    expect_silent(expect_identical(on_engine(where, run, whole = TRUE), want))
    expect_null(session$times[[times_key("arith", 10, test_device())]])
    while (count_building() > 0L) Sys.sleep(0.01)
    set.seed(1)
    session$lost <- list()
    expect_silent(expect_identical(on_engine(where, run, whole = TRUE), want))
    expect_identical(asked, 2)
    expect_true(is_built("arith"))
    on_engine(where, run, whole = TRUE)
    expect_identical(asked, 2) # not again
    make <- function() {
      response <- gp_response("poisson_log", rep(0:2, 20), NULL, NULL)
      problem <- new_gp_problem(matrix(sin(1:60)), response_guess(response)[, 1L], k_exp_quad(),
                                0.3, "profile", NULL, NULL, NULL)
      problem$response <- response
      make_gp_response(problem)
    }
    par <- c(sd = 1, lengthscale = 0.5)
    host <- with_cl(make()(par), engine = "host")
    session$owed$gp <- 1e6
    f <- make()
    expect_lte(calls_until(function() {
      session$lost <- list()
      expect_equal(f(par), host, tolerance = 1e-6)
    }, function() is_built("gp")), 1)
  })
})
