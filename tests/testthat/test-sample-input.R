# ---- arguments -----------------------------------------------------------------------------------
skip_on_cran() # long; run by ./dev check

test_that("wrong arguments are rejected before any work", {
  calls <- 0
  density <- function(x) {
    calls <<- calls + 1
    standard_normal(x)
  }
  refused <- function(argument, ...) expect_fault(cl_sample(...), "argument", argument = argument)
  refused("log_density", 1, 0)
  refused("init", density, "a")
  refused("init", density, NULL)
  refused("init", density, numeric())
  refused("init", density, c(1, NA))
  refused("init", density, list(a = 1, 2))
  refused("init", density, list(a = 1, a = 2))
  refused("init", density, list(1, 2, 3), chains = 2)
  refused("init", density, list(1, 2:3), chains = 2)
  refused("init", density, function(chain) "a")
  refused("init", cl_likelihood("bernoulli_logit", 1, 1), c(0, 0))
  refused("init", cl_log_posterior(~ -a^2), c(a = 0))
  refused("chains", density, 0, chains = 0)
  refused("warmup", density, 0, warmup = -1)
  refused("iter", density, 0, iter = 0)
  refused("iter", density, 0, iter = 1.5)
  refused("method", density, 0, method = "gibbs")
  refused("adapt_delta", density, 0, adapt_delta = 1)
  refused("max_depth", density, 0, max_depth = 0)
  refused("leapfrogs", density, 0, leapfrogs = 0)
  refused("metric", density, 0, metric = "full")
  refused("step_size", density, 0, step_size = -1)
  refused("inverse_metric", density, 0, inverse_metric = c(1, 2))
  refused("inverse_metric", density, 0, inverse_metric = 0)
  refused("jitter", density, 0, jitter = -1)
  refused("seed", density, 0, seed = "a")
  refused("workers", density, 0, workers = 0)
  refused("batch", density, 0, batch = NA)
  refused("nan", density, 0, nan = "ignore")
  refused("check_gradient", density, 0, check_gradient = NA)
  refused("save_warmup", density, 0, save_warmup = "yes")
  refused("refresh", density, 0, refresh = -1)
  expect_identical(calls, 0)
})

test_that("starting values may be a vector, a list, a function or one for each chain", {
  first <- function(...) {
    at <- list()
    density <- function(x, y = NULL) {
      at[[length(at) + 1L]] <<- x
      if (is.null(y)) standard_normal(x) else with_slope(-(x^2 + y^2) / 2, list(x = -x, y = -y))
    }
    fit <- cl_sample(density, ..., warmup = 0, iter = 3, step_size = 0.1, seed = 1)
    list(at = at, fit = fit)
  }
  expect_identical(first(c(0.5, 2), chains = 1)$at[[1]], c(0.5, 2))
  expect_identical(first(c(a = 0.5), chains = 1)$at[[1]], c(a = 0.5))
  expect_identical(first(list(x = 1, y = 2), chains = 1)$at[[1]], 1)
  run <- first(function(chain) chain / 4, chains = 2)
  expect_identical(run$at[[1]], 0.25)
  expect_true(0.5 %in% unlist(run$at))
  run <- first(list(c(1, 1), c(2, 2)), chains = 2)
  expect_true(any(vapply(run$at, identical, NA, c(2, 2))))
  jittered <- first(c(10, 10), chains = 2)$at[[1]]
  expect_true(all(jittered != 10 & abs(jittered - 10) <= 1))
})

test_that("arguments keep their shapes, and draws get names by index", {
  density <- function(m, v) {
    stopifnot(identical(dim(m), c(2L, 2L)), length(v) == 3L)
    with_slope(-sum(m^2) / 2 - sum(v^2) / 2, list(v = -v, m = -m))
  }
  fit <- cl_sample(density, list(m = diag(2), v = c(a = 1, b = 2, c = 3)), chains = 1,
                   warmup = 20, iter = 10, seed = 1)
  expect_identical(colnames(as.matrix(fit)),
                   c("m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "v[a]", "v[b]", "v[c]"))
})

# ---- densities that fail -------------------------------------------------------------------------

# A standard normal density that behaves differently in its n-th call.
fails_at <- function(n, what) {
  calls <- 0
  function(x) {
    calls <<- calls + 1
    if (calls == n) what(x) else standard_normal(x)
  }
}

density_fault <- function(n, what, ...) {
  expect_fault(cl_sample(fails_at(n, what), c(a = 0, b = 0), chains = 2, warmup = 50, iter = 50,
                         seed = 1, ...), "density", argument = "log_density")
}

test_that("a failing density is reported with the point and the draws so far", {
  e <- density_fault(500, function(x) stop("no such luck"))
  expect_match(conditionMessage(e), "'log_density' failed: no such luck \\(chain [12], iteration")
  expect_match(conditionMessage(e$parent), "no such luck")
  expect_named(e$parameters, c("a", "b"))
  expect_true(e$chain %in% 1:2 && e$iteration > 10)
  expect_s3_class(e$draws, "cl_sample")
  expect_false(e$draws$complete)
  expect_equal(nrow(e$draws$draws), max(e$iteration - 51, 50 * (e$chain == 2)))
  expect_identical(deparse(conditionCall(e)[[1]]), "cl_sample")
  early <- density_fault(1, function(x) stop("at once"))
  expect_null(early$draws)
  expect_identical(early$iteration, 0L)
})

test_that("NaN, Inf, wrong lengths and missing gradients are errors, at the start and later", {
  for (n in c(1, 300)) {
    say <- function(what, pattern, ...) {
      expect_match(conditionMessage(density_fault(n, what, ...)), pattern)
    }
    say(function(x) with_slope(NaN, -x), "the value of 'log_density' is NaN", nan = "stop")
    say(function(x) with_slope(NA_real_, -x), "the value of 'log_density' is NaN", nan = "stop")
    say(function(x) with_slope(-1, c(NaN, 1)), "the gradient of 'log_density' is NaN", nan = "stop")
    say(function(x) with_slope(Inf, -x), "is Inf")
    say(function(x) with_slope(-1, 1), "length 1, not 2")
    say(function(x) with_slope(-1, numeric()), "length 0, not 2")
    say(function(x) -1, "must have the attribute \"gradient\"")
    say(function(x) with_slope(c(-1, 2), x), "must return one number")
    say(function(x) NULL, "must return one number")
    say(function(x) with_slope("a", x), "must return one number")
  }
  named <- function(slope) {
    expect_fault(cl_sample(function(a) with_slope(-1, slope), list(a = 0), chains = 1), "density")
  }
  expect_match(conditionMessage(named(list(b = 1))), "a list with the elements a")
  expect_match(conditionMessage(named(1)), "a list with the elements a")
  expect_match(conditionMessage(named(list(a = 1:2))),
               "gradient with respect to 'a' has length 2, not 1")
})

test_that("errors in lockstep name the chain, and functions for one point only are rejected", {
  calls <- 0
  density <- function(x) {
    calls <<- calls + 1
    if (calls > 400 && ncol(x) > 1) x[, 2] <- NaN
    with_slope(-colSums(x^2) / 2, -x)
  }
  e <- expect_fault(cl_sample(density, c(0, 0), chains = 3, warmup = 50, iter = 200, seed = 1,
                              batch = TRUE, nan = "stop"), "density")
  expect_match(conditionMessage(e), "NaN")
  expect_s3_class(e$draws, "cl_sample")
  expect_fault(cl_sample(standard_normal, c(0, 0), chains = 3, batch = TRUE), "density",
               says = "must return 3 values for 3 columns")
  broken <- function(x) if (any(x[1, ] > 1.5)) stop("out") else with_slope(-colSums(x^2) / 2, -x)
  e <- expect_fault(cl_sample(broken, c(0, 0), chains = 3, seed = 1, batch = TRUE), "density")
  expect_match(conditionMessage(e), "failed: out \\(chain")
  expect_gt(e$parameters[[1]], 1.5)
})

test_that("a density that is zero everywhere has no start", {
  nowhere <- function(x) with_slope(-Inf, 0)
  expect_fault(cl_sample(nowhere, 0, chains = 1), "density", says = "is not finite at 'init'")
  expect_fault(cl_sample(nowhere, 0, chains = 2), "density", says = "100 points around")
})

test_that("densities that cannot be sampled from give an error", {
  refused <- function(density, text) {
    expect_warning(e <- expect_fault(cl_sample(density, 0, chains = 1, seed = 1), "density"),
                   class = "statcl_warning_unused")
    expect_match(conditionMessage(e), text)
  }
  refused(function(x) with_slope(0, 0), "so flat")
  refused(function(x) with_slope(if (x == 0) 0 else -1e300, 0), "however small the step size")
})

# ---- the check of the gradient -------------------------------------------------------------------

test_that("a wrong gradient is found at the start, by name, for each way to run chains", {
  calls <- 0
  wrong <- function(x) {
    calls <<- calls + 1
    x <- as.matrix(x)
    structure(-colSums(x^2) / 2, gradient = c(-1, 1, -1) * x)
  }
  run <- function(...) {
    cl_sample(wrong, c(a = 0, b = 1, c = 2), chains = 2, warmup = 30, iter = 20, seed = 1, ...)
  }
  fault <- function(...) expect_fault(run(...), "density", argument = "log_density")
  e <- fault()
  expect_match(conditionMessage(e), "gradient of 'log_density' with respect to 'b' is wrong")
  expect_identical(e$wrong$parameter, "b")
  expect_equal(e$wrong$gradient, -e$wrong$difference, tolerance = 1e-6)
  expect_equal(e$wrong$gradient, e$parameters[["b"]])
  expect_lt(calls, 40)
  expect_identical(fault(batch = TRUE)$wrong, e$wrong)
  expect_identical(fault(workers = 2)$wrong, e$wrong)
  expect_s3_class(suppressWarnings(run(check_gradient = FALSE, max_depth = 3)), "cl_sample")
  # by names of arguments, including constrained parameters and many parameters
  listed <- function(sigma, p, m) {
    with_slope(-2 * sigma + sum(log(p)) - sum(m^2),
               list(sigma = -1, p = 2 / p, m = -2 * m + c(0, 0, 0, 1)))
  }
  e <- expect_fault(cl_sample(listed, list(sigma = 1, p = c(0.2, 0.3, 0.5), m = matrix(1, 2, 2)),
                              transform = list(sigma = cl_lower(0), p = cl_simplex())), "density")
  expect_identical(e$wrong$parameter, c("sigma", "p", "p", "m[2,2]"))
  expect_match(conditionMessage(e), "to 'sigma'.*unconstrained scale.*to p, p, m\\[2,2\\]")
  one_of_many <- function(x) with_slope(-sum(x^2) / 2, -x + (seq_along(x) == 150) / 100)
  e <- expect_fault(cl_sample(one_of_many, numeric(200), chains = 1), "density")
  expect_identical(e$wrong$parameter, "par[150]")
})

test_that("a wrong sign is found at a mode, where the gradient is zero", {
  wrong <- function(x) structure(-sum(x^2) / 2, gradient = x)
  e <- expect_fault(cl_sample(wrong, c(0, 0), chains = 1), "density", argument = "log_density")
  expect_identical(e$wrong$parameter, c("par[1]", "par[2]"))
})

test_that("a correct gradient passes the check, also if differences are inconclusive", {
  calls <- 0
  passes <- function(f, init, ...) {
    counted <- function(x) {
      calls <<- calls + 1
      f(x)
    }
    calls <<- 0
    run <- function(...) {
      quiet_sample(counted, init, jitter = 0, chains = 1, warmup = 0, iter = 2, step_size = 1e-6,
                   method = "hmc", leapfrogs = 1, seed = 1, ...)
    }
    fit <- run(...)
    spent <- calls
    calls <<- 0
    expect_identical(run(check_gradient = FALSE, ...)$draws, fit$draws)
    spent - calls
  }
  expect_identical(passes(standard_normal, c(1, 2, 3)), 7)
  expect_identical(passes(standard_normal, rep(1, 200)), 101)
  for (scale in 10^c(-8, -4, 0, 4, 8)) for (at in c(0, 0.5, 1, 30)) {
    student <- function(x) {
      z <- x / scale
      with_slope(dt(z, 3, log = TRUE), -4 * z / (3 + z^2) / scale)
    }
    passes(student, at * scale)
  }
  passes(function(x) with_slope(-sum(abs(x)), -ifelse(x >= 0, 1, -1)), c(0, 0)) # a kink
  wall <- function(x) if (x < 0) with_slope(-Inf, 0) else with_slope(-x, -1)
  passes(wall, 1e-12)
  nan <- function(x) if (x < 0) with_slope(NaN, NaN) else with_slope(-x, -1)
  passes(nan, 1e-12)
  large <- function(x) with_slope(-1e10 - sum(x^2), -2 * x)
  passes(large, c(1e-3, 1))
  for (noise in 10^-c(1, 3, 6, 10)) for (seed in 1:full_or_quick(20, 5)) {
    noisy <- function(x) with_slope(-sum(x^2) / 2 + noise * rnorm(1), -x)
    set.seed(seed)
    expect_s3_class(quiet_sample(noisy, rnorm(5), jitter = 0, chains = 1, warmup = 0, iter = 2,
                                 step_size = 1e-3, seed = 1), "cl_sample")
  }
})

# ---- interrupts ----------------------------------------------------------------------------------

interrupt <- function(x) {
  tools::pskill(Sys.getpid(), tools::SIGINT)
  Sys.sleep(0.2)
  stop("not interrupted")
}

test_that("an interrupted run keeps its draws", {
  skip_on_os("windows")
  run <- function(n, ...) {
    cl_sample(fails_at(n, interrupt), c(a = 0, b = 0), chains = 2, warmup = 50, seed = 1, ...)
  }
  expect_warning(fit <- run(600, iter = 200), "interrupted: the result has",
                 class = "statcl_warning")
  expect_false(fit$complete)
  expect_output(print(fit), "interrupted")
  whole <- cl_sample(standard_normal, c(a = 0, b = 0), chains = 2, warmup = 50, iter = 200,
                     seed = 1)
  kept <- nrow(fit$draws)
  expect_gt(kept, 10)
  expect_identical(unname(fit$draws), unname(whole$draws[seq_len(kept), seq_len(ncol(fit$draws)), ,
                                                         drop = FALSE]))
  # late in the second chain, draws of both chains are kept
  expect_warning(fit <- run(round(sum(whole$evaluations) - 50), iter = 200), "interrupted")
  expect_identical(dim(fit$draws)[2], 2L)
  expect_fault(run(20, iter = 200), "interrupted")
})

test_that("an interrupted run in lockstep keeps its draws", {
  skip_on_os("windows")
  calls <- 0
  density <- function(x) {
    calls <<- calls + 1
    if (calls == 400) interrupt(x)
    with_slope(-colSums(x^2) / 2, -x)
  }
  expect_warning(fit <- cl_sample(density, c(0, 0), chains = 3, warmup = 30, iter = 400, seed = 1,
                                  batch = TRUE), "interrupted")
  expect_gte(dim(fit$draws)[2], 2L)
  expect_gt(nrow(fit$draws), 10)
})

test_that("an interrupt of all processes, as by a terminal: draws are kept, a cluster is usable", {
  skip_on_cran()
  skip_on_os("windows")
  in_new_session(c(
    # each worker writes a file once it has drawn for a while
    "folder <- tempfile('workers'); calls <- 0",
    "density <- function(x) {",
    "  calls <<- calls + 1",
    "  if (calls == 600) file.create(file.path(folder, Sys.getpid()))",
    "  Sys.sleep(0.001)",
    "  structure(-sum(x^2) / 2, gradient = -x)",
    "}",
    "interrupted <- function(workers) {",
    "  unlink(folder, recursive = TRUE); dir.create(folder)",
    "  wait <- sprintf('until [ $(ls %s | wc -l) -ge 2 ]; do sleep 0.2; done', folder)",
    "  system(sprintf('(%s; kill -INT 0)', wait), wait = FALSE)", # the group of this session
    "  suppressWarnings(cl_sample(density, c(0, 0), chains = 2, warmup = 20, iter = 20000,",
    "                             workers = workers, seed = 1))",
    "}",
    "old <- cl_use(engine = 'host')",
    "fit <- interrupted(2)",
    "stopifnot(!fit$complete, nrow(fit$draws) > 20)",
    "fit <- interrupted(cluster <- parallel::makePSOCKcluster(2))",
    "stopifnot(!fit$complete, nrow(fit$draws) > 20)",
    "stopifnot(identical(parallel::clusterCall(cluster, function() 7), list(7, 7)))",
    "parallel::stopCluster(cluster)"), timeout = 120)
})

# ---- workers -------------------------------------------------------------------------------------

test_that("new R processes get the objects that the density uses, and report its errors", {
  skip_on_cran()
  in_new_session(c(
    "precision <- 4",
    "scaled <- function(x) x * precision",
    "likelihood <- cl_likelihood('bernoulli_logit', c(0, 1, 1, 0), c(-1, 0, 1, 2))",
    "density <- function(alpha, beta) {",
    "  value <- likelihood(alpha, beta)",
    "  slope <- attr(value, 'gradient')",
    "  slope$beta <- slope$beta - scaled(beta)",
    "  slope$alpha <- slope$alpha - alpha",
    "  structure(value - precision * beta^2 / 2 - alpha^2 / 2, gradient = slope)",
    "}",
    "run <- function(f, ...) cl_sample(f, list(alpha = 0, beta = 0), chains = 2, warmup = 100,",
    "                                  iter = 50, seed = 3, ...)",
    "cluster <- parallel::makePSOCKcluster(2)",
    "a <- run(density, workers = cluster)",
    "b <- run(density)",
    "stopifnot(identical(a$draws, b$draws))",
    "bad <- function(alpha, beta) if (alpha > 0.5) stop('too large') else density(alpha, beta)",
    "e <- tryCatch(run(bad, workers = cluster), statcl_error_density = function(e) e)",
    "stopifnot(grepl('too large', conditionMessage(e)), e$chain %in% 1:2)",
    "posterior <- cl_log_posterior(likelihood, ~ -precision * beta^2 / 2, ~ -alpha^2 / 2)",
    "a <- run(posterior, workers = cluster)",
    "stopifnot(max(abs(a$draws - b$draws)) < 1e-6)",
    "parallel::stopCluster(cluster)"))
})

test_that("workers run while this session has a device in use", {
  skip_on_cran()
  require_device()
  in_new_session(c(
    sprintf("cl_use('%s', engine = 'device')", test_device_id()),
    "set.seed(1)",
    "x <- matrix(rnorm(200), 100)",
    "likelihood <- cl_likelihood('bernoulli_logit', rbinom(100, 1, 0.5), x)",
    "run <- function(...) cl_sample(likelihood, list(alpha = 0, beta = c(0, 0)), chains = 2,",
    "                               warmup = 30, iter = 20, seed = 3, ...)",
    "a <- run()",
    "b <- run(workers = 2)",
    "stopifnot(max(abs(a$draws - b$draws)) < 1e-6)"), timeout = 120)
})

test_that("a port in use is retried, and the generator's state is not changed", {
  skip_on_cran()
  taken <- 11000L + (Sys.getpid() * 7L + 131L) %% 1000L
  listener <- tryCatch(serverSocket(taken), error = function(e) NULL) # else another program listens
  if (!is.null(listener)) on.exit(close(listener))
  set.seed(1)
  before <- .Random.seed
  nodes <- make_workers(1, "PSOCK")
  expect_identical(parallel::clusterCall(nodes, function() 7), list(7))
  parallel::stopCluster(nodes)
  expect_identical(.Random.seed, before)
})

test_that("progress is shown on request only", {
  run <- function(refresh) {
    capture.output({
      fit <- cl_sample(standard_normal, 0, chains = 1, warmup = 20, iter = 20, seed = 1,
                       refresh = refresh)
    }, type = "message")
  }
  expect_identical(run(0), character())
  lines <- run(10)
  expect_length(lines, 4)
  expect_match(lines[1], "chain 1: 10 of 40 (warm-up)", fixed = TRUE)
  expect_match(lines[4], "chain 1: 40 of 40 (sampling)", fixed = TRUE)
})

test_that("chains stop for lines that were asked for only, short iterations seldom", {
  control <- list(warmup = 50, iter = 50, refresh = 10, announce = TRUE)
  expect_identical(next_multiple(c(0, 57), control), c(100, 100))
  job <- list2env(list(control = control, started = seconds_now()))
  s <- list2env(list(iteration = 40, id = 1L))
  progress_line(job, 0)(s)
  expect_gt(s$report_at, 60)
  control$announce <- job$control$announce <- FALSE
  expect_identical(next_multiple(c(0, 57, 99, 10), control), c(10, 60, 100, 20))
  s <- list2env(list(iteration = 45, id = 1L, elapsed = 0, started = 0))
  capture.output(progress_line(job, 0)(s), type = "message")
  expect_identical(s$report_at, 50)
})

test_that("the remaining time is shown with the progress, and once if it is long", {
  said <- function(..., delay = 0) {
    slow <- function(x) {
      if (delay > 0) Sys.sleep(delay)
      standard_normal(x)
    }
    text <- character()
    withCallingHandlers(
      lines <- capture.output(fit <- cl_sample(slow, 0, warmup = 20, seed = 1, method = "hmc",
                                               leapfrogs = 1, ...), type = "message"),
      message = function(m) {
        text <<- c(text, conditionMessage(m))
        invokeRestart("muffleMessage")
      })
    list(text = text, lines = lines)
  }
  # a run that would take 40 seconds, stopped after the message
  stopped <- tryCatch(cl_sample(function(x) {
    Sys.sleep(0.05)
    standard_normal(x)
  }, 0, chains = 2, warmup = 50, iter = 350, seed = 1, method = "hmc", leapfrogs = 1),
  message = function(m) conditionMessage(m))
  expect_match(stopped, "about [0-9]+ (s|min) left for 2 chains of 50 \\+ 350 iterations")
  seconds <- as.numeric(sub(".*about ([0-9]+) s.*", "\\1", stopped))
  expect_true(seconds > 25 && seconds < 100) # the first ones search for a step size
  quiet <- said(chains = 1, iter = 20)
  expect_length(quiet$text, 0)
  shown <- said(chains = 2, iter = 20, refresh = 20, delay = 0.01)
  expect_length(shown$lines, 4)
  expect_match(shown$lines[1], "chain 1: 20 of 40 .warm-up., [0-9.]+ s, about [0-9]+ (s|min) left")
  expect_false(grepl("left", shown$lines[4]))
  expect_identical(vapply(c(0.2, 59, 200, 7200), time_text, ""), c("1 s", "59 s", "3 min", "2.0 h"))
})

test_that("lockstep and workers show the remaining time, too", {
  skip_on_cran()
  long <- function(...) {
    tryCatch(cl_sample(function(x) {
      Sys.sleep(0.05)
      x <- as.matrix(x)
      structure(-colSums(x^2) / 2, gradient = -x)
    }, c(0, 0), chains = 2, warmup = 50, iter = 950, seed = 1, method = "hmc", leapfrogs = 1, ...),
    message = function(m) conditionMessage(m))
  }
  expect_match(long(batch = TRUE), "about [0-9]+ (s|min) left for 2 chains")
  expect_match(long(workers = 2), "about [0-9]+ (s|min) left for 2 chains")
})

test_that("a gradient with the names of the parameters is matched by name", {
  density <- function(p) {
    structure(-(p[["a"]] - 3)^2 / 2 - 50 * (p[["b"]] + 1)^2,
              gradient = c(b = -100 * (p[["b"]] + 1), a = 3 - p[["a"]]))
  }
  several <- function(p) {
    structure(-(p["a", ] - 3)^2 / 2 - 50 * (p["b", ] + 1)^2,
              gradient = rbind(b = -100 * (p["b", ] + 1), a = 3 - p["a", ]))
  }
  start <- c(a = 0, b = 0)
  for (batch in c(FALSE, TRUE)) {
    fit <- cl_sample(if (batch) several else density, start, chains = 2, warmup = 200, iter = 300,
                     seed = 1, batch = batch)
    expect_equal(colMeans(as.matrix(fit)), c(a = 3, b = -1), tolerance = 0.1)
  }
  expect_lt(max(cl_check_gradient(density, start)$error), 1e-8)
  pair <- cl_objective(density, maximise = TRUE)
  expect_equal(optim(start, pair$fn, pair$gr, method = "BFGS")$par, c(a = 3, b = -1),
               tolerance = 1e-6)
  partly <- function(p) structure(-sum(p^2) / 2, gradient = c(b = 1, other = 2))
  expect_fault(cl_sample(partly, start, chains = 1), "density")
  expect_refused("f", cl_check_gradient(partly, start))
  # other names are ignored
  other <- function(p) structure(-sum(p^2) / 2, gradient = c(u = -p[[1]], v = -p[[2]]))
  expect_lt(max(cl_check_gradient(other, c(a = 1, b = 2))$error), 1e-8)
})
