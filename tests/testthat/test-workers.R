# Chains in worker processes: pools, lost workers, checkpoints, devices.

skip_on_cran() # long; run by ./dev check

chain_code <- c(
  "cl_use(engine = 'host')",
  "shift <- 3",
  "f <- function(x) structure(-sum((x - shift)^2) / 2, gradient = shift - x)",
  "run <- function(...) cl_sample(f, c(a = 0, b = 0), chains = 3, warmup = 60, iter = 100,",
  "                               seed = 1, refresh = 0, ...)",
  "a <- run()",
  "same <- function(b) stopifnot(identical(a$draws, b$draws),",
  "                              identical(a$diagnostics, b$diagnostics),",
  "                              identical(a$evaluations, b$evaluations))")

test_on_host("a checkpoint of workers is one of chains in turn, and the other way round", {
  # not by functions of the tests, which new processes do not have
  f <- function(x) structure(-sum(x^2) / 2, gradient = -x)
  run <- function(...) cl_sample(f, c(0, 0), chains = 2, warmup = 60, iter = 60, seed = 1, ...)
  expected <- run()
  file <- tempfile(fileext = ".rds")
  copy <- tempfile(fileext = ".rds")
  with_checkpoint_copy(copy, 1, run(workers = 2, checkpoint = file, checkpoint_seconds = 0))
  expect_identical(run(checkpoint = copy)$draws, expected$draws)
  expect_identical(run(checkpoint = file, workers = 2)$draws, expected$draws)
  unlink(c(file, copy))
  with_checkpoint_copy(copy, 70, run(checkpoint = file, checkpoint_seconds = 0))
  expect_identical(run(checkpoint = copy, workers = 2)$draws, expected$draws)
  other <- function(x) structure(-sum(x^2), gradient = -2 * x)
  expect_fault(cl_sample(other, c(0, 0), chains = 2, warmup = 60, iter = 60, seed = 1,
                         workers = 2, checkpoint = file), "checkpoint")
})

skip_on_os("windows") # all that follow

test_that("plans of future", {
  skip_if_not_installed("future")
  in_new_session(c(
    chain_code,
    "same(run(workers = future::sequential))",
    "future::plan(future::multisession, workers = 2)",
    "same(run(workers = 'future'))",
    "before <- future::plan()",
    "same(run(workers = future::sequential))",
    "stopifnot(identical(class(before), class(future::plan())))",
    "future::plan(future::sequential)",
    "e <- tryCatch(run(workers = future::multicore), statcl_error_argument = identity)",
    "stopifnot(grepl('does not survive', conditionMessage(e)))"))
})

test_that("daemons of mirai", {
  skip_if_not_installed("mirai")
  in_new_session(c(
    chain_code,
    "e <- tryCatch(run(workers = 'mirai'), statcl_error_argument = identity)",
    "stopifnot(grepl('no daemons', conditionMessage(e)))",
    "mirai::daemons(2)",
    "same(run(workers = 'mirai'))",
    "simulate <- function() list(parameters = list(a = rnorm(1)), data = rnorm(1))",
    "model <- function(y) cl_gradient(function(a) dnorm(a, log = TRUE))",
    "ranks <- function(workers) cl_calibrate(simulate, model, 12, draws = 4, warmup = 20,",
    "                                        seed = 1, refresh = 0, workers = workers)$ranks",
    "stopifnot(identical(ranks('mirai'), ranks(1)))",
    "mirai::daemons(0)"))
})

test_that("a worker is killed in the middle: others go on with its chain, with the same draws", {
  in_new_session(c(
    chain_code,
    "folder <- tempfile(); dir.create(folder)",
    "f <- function(x) {",
    "  file.create(file.path(folder, Sys.getpid()))",
    "  Sys.sleep(0.001)",
    "  structure(-sum((x - shift)^2) / 2, gradient = shift - x)",
    "}",
    "files <- function(count) sprintf('until [ $(ls %s | wc -l) -ge %d ]; do sleep 0.1; done',",
    "                                 folder, count)",
    "lose <- function(workers, all) {",
    "  unlink(file.path(folder, '*'))",
    "  system(sprintf('(%s; sleep 0.7; kill -9 $(ls %s %s)) > /dev/null 2>&1', files(2), folder,",
    "                 if (all) '' else '| head -1'), wait = FALSE)",
    "  told <- character()",
    "  same(withCallingHandlers(run(workers = workers), statcl_warning_worker = function(w) {",
    "    told <<- c(told, conditionMessage(w))",
    "    invokeRestart('muffleWarning')",
    "  }))",
    "  told",
    "}",
    "told <- lose(2, FALSE)",
    "stopifnot(grepl('goes on in another one', told), length(told) == 1)",
    "told <- lose(parallel::makePSOCKcluster(2), TRUE)",
    "stopifnot(any(grepl('goes on in this session', told)))"))
})

test_that("errors of one worker only, and another version, are classed; the cluster stays usable", {
  in_new_session(c(
    chain_code,
    "cluster <- parallel::makePSOCKcluster(2)",
    "nodes <- unlist(parallel::clusterCall(cluster, Sys.getpid))",
    "good <- f",
    "f <- function(x) if (Sys.getpid() == nodes[2]) stop('only here') else good(x)",
    "e <- tryCatch(run(workers = cluster), statcl_error_density = identity)",
    "stopifnot(grepl('only here', conditionMessage(e)), e$chain == 2L)",
    # later, when the chain has a state: it is kept, and the chain goes on from it
    "calls <- 0",
    "f <- function(x) {",
    "  calls <<- calls + 1",
    "  if (calls > 400 && Sys.getpid() == nodes[2]) stop('later here')",
    "  good(x)",
    "}",
    "file <- tempfile(fileext = '.rds')",
    "e <- tryCatch(run(workers = cluster, checkpoint = file), statcl_error_density = identity)",
    "stopifnot(grepl('later here', conditionMessage(e)), e$iteration > 1,",
    "          inherits(e$draws, 'cl_sample'),",
    "          is.raw(statcl:::read_checked(file)$chains[[e$chain]]$image))",
    "f <- good",
    "same(run(workers = cluster, checkpoint = file))",
    "same(run(workers = cluster))",
    "parallel::clusterCall(cluster[2], function() {",
    "  about <- asNamespace('statcl')[['.__NAMESPACE__.']]",
    "  assign('spec', c(name = 'statcl', version = '9.9'), about)",
    "})",
    "e <- tryCatch(run(workers = cluster), statcl_error_worker = identity)",
    "stopifnot(grepl('has version 9.9', conditionMessage(e)))",
    "same(run(workers = cluster[1]))",
    "parallel::stopCluster(cluster)"))
})

test_that("calibration: new processes find this package's functions", {
  in_new_session(c(
    "cl_use(engine = 'host')",
    "scale <- 2",
    "simulate <- function() list(parameters = list(a = rnorm(1, 0, scale)), data = rnorm(1))",
    "model <- function(y) cl_gradient(function(a) dnorm(a, 0, scale, log = TRUE))",
    "run <- function(workers) cl_calibrate(simulate, model, 6, draws = 4, warmup = 20,",
    "                                      seed = 1, refresh = 0, workers = workers)",
    "cluster <- parallel::makePSOCKcluster(2)",
    "stopifnot(identical(run(cluster)$ranks, run(1)$ranks))",
    "parallel::stopCluster(cluster)"))
})

test_that("workers attach the packages whose functions a density calls", {
  skip_if_not_installed("MASS")
  in_new_session(c(
    "library(MASS); cl_use(engine = 'host')",
    "half <- function(x) ginv(matrix(2))[1] * x",
    "f <- function(x) structure(-sum(half(x^2)), gradient = -x)",
    "run <- function(...) cl_sample(f, 0, chains = 2, warmup = 30, iter = 30, seed = 1, ...)$draws",
    "cluster <- parallel::makePSOCKcluster(2)",
    "stopifnot(identical(run(workers = cluster), run()))",
    "before <- run()",
    "half <- function(x) x / 2 + x^2 * 0", # the workers have one of this name from before
    "f <- function(x) structure(-half(x^2) - x^4, gradient = -x - 4 * x^3)",
    "now <- run(workers = cluster)",
    "stopifnot(identical(now, run()), !identical(now, before))",
    "y <- c(1, 3); f <- cl_gradient(function(m) sum(dnorm(y, m, log = TRUE)))",
    "for (density in list(f, cl_log_posterior(f, ~ dnorm(m, log = TRUE)))) {",
    "  run <- function(...) cl_sample(density, list(m = 0), chains = 2, warmup = 30, iter = 30,",
    "                                 seed = 1, ...)$draws",
    "  stopifnot(identical(run(workers = cluster), run()))",
    "}",
    "parallel::stopCluster(cluster)"))
})

test_that("an error before a task is sent ends the run: nobody waits for its answer", {
  in_new_session(c(
    "begin <- function(work) function(task) list(value = task$i)",
    "cluster <- parallel::makePSOCKcluster(2)",
    "run <- function(last) {",
    "  got <- 0",
    "  statcl:::run_shares(3, cluster, list(begin = begin, work = 1, uses = list()), function(i) {",
    "    if (i > last) stop('no such task') else list(i = i)",
    "  }, function(id, value) {",
    "    got <<- got + value",
    "    TRUE",
    "  })",
    "  got",
    "}",
    "setTimeLimit(elapsed = 60)",
    "stopifnot(run(3) == 6)",
    "e <- tryCatch(run(1), error = identity)",
    "stopifnot(conditionMessage(e) == 'no such task', run(3) == 6)",
    "parallel::stopCluster(cluster)"))
})

test_that("what a task needs is there again after the packages of workers have cleaned up", {
  in_new_session(c(
    "precision <- 4",
    "begin <- function(work) function(task) {",
    "  found <- exists('cl_gradient', globalenv()) && get('precision', globalenv()) == 4",
    "  list(value = found && getOption('statcl.device') == 'host')",
    "}",
    "options(statcl.device = 'host')",
    "job <- statcl:::describe_job('key', list(begin = begin, work = 1,",
    "                                         uses = function(x) x * precision))",
    "run <- function() {", # as mirai leaves a daemon
    "  detach('package:statcl')",
    "  rm(precision, envir = globalenv())",
    "  options(statcl.device = NULL)",
    "  statcl:::run_task(list(key = 'key', job = job, slot = 1L))$value",
    "}",
    "stopifnot(run(), run())"))
})

test_that("workers use devices of one kind in turn", {
  require_device()
  in_new_session(c(
    "Sys.setenv(POCL_DEVICES = 'pthread pthread')",
    "devices <- cl_devices()",
    "if (nrow(devices) == 2 && devices$name[1] == devices$name[2]) {",
    "  cl_use(devices$id[1], engine = 'device')",
    "  folder <- tempfile(); dir.create(folder)",
    "  f <- function(x) {",
    "    file.create(file.path(folder, sub(':', '-', statcl:::session$device)))",
    "    structure(-sum(x^2) / 2, gradient = -x)",
    "  }",
    "  cl_sample(f, 0, chains = 2, warmup = 20, iter = 20, workers = 2, seed = 1)",
    "  stopifnot(identical(dir(folder), sub(':', '-', devices$id)))",
    "}"))
})

test_that("an interrupt in the middle of a worker's message waits for its end", {
  in_new_session(c(
    "port <- 0L",
    "while (is.null(server <- tryCatch(serverSocket(port <- sample(20000:40000, 1)),",
    "                                  error = function(e) NULL))) NULL",
    # half of a message, the rest once this process was interrupted, and another message
    "told <- tempfile()",
    "sender <- c(sprintf('port <- %d; pid <- %d; told <- \"%s\"', port, Sys.getpid(), told),",
    "            'to <- socketConnection(port = port, blocking = TRUE, open = \"a+b\")',",
    "            'bytes <- serialize(as.numeric(1:50), NULL)', 'writeBin(bytes[1:100], to)',",
    "            'while (!file.exists(told)) Sys.sleep(0.05)', 'Sys.sleep(0.3)',",
    "            'tools::pskill(pid, 2L)', 'Sys.sleep(0.5)', 'writeBin(bytes[-(1:100)], to)',",
    "            'serialize(7, to)', 'close(to)')",
    "writeLines(sender, file <- tempfile(fileext = '.R'))",
    "system2(file.path(R.home('bin'), 'Rscript'), c('--vanilla', file), wait = FALSE)",
    "from <- socketAccept(server, blocking = TRUE, open = 'a+b', timeout = 60)",
    "got <- NULL",
    "e <- tryCatch({",
    "  statcl:::defer_interrupts({ file.create(told); got <- unserialize(from) })",
    "  'no interrupt'",
    "}, interrupt = function(e) 'interrupt')",
    "stopifnot(identical(e, 'interrupt'), identical(got, as.numeric(1:50)))",
    "stopifnot(identical(unserialize(from), 7))"), timeout = 120)
})
