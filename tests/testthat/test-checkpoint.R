# Checkpoint files of cl_sample(), and thinning.

bowl <- function(scale = 1) {
  force(scale)
  function(a, b) {
    structure(-sum(a^2) * scale / 2 - exp(b) + b, gradient = list(a = -a * scale, b = 1 - exp(b)))
  }
}
traced_bowl <- function() cl_gradient(function(a, b) -sum(a^2) / 2 - exp(b) + b)
init <- list(a = c(0, 0, 0), b = 0)
run <- function(f = bowl(), ..., iter = 60, seed = 3) {
  cl_sample(f, init, chains = 2, warmup = 60, iter = iter, seed = seed, refresh = 0, ...)
}
same_draws <- function(x, y) {
  expect_identical(x$draws, y$draws)
  expect_identical(x$diagnostics, y$diagnostics)
  expect_identical(x$evaluations, y$evaluations)
}

test_on_host("a run that is stopped at any moment goes on with the same draws", {
  columns <- function(a, b) {
    structure(colSums(a^2) / -2 - as.vector(exp(b) - b), gradient = list(a = -a, b = 1 - exp(b)))
  }
  for (compiled in c(FALSE, TRUE)) for (batch in c(FALSE, TRUE)) {
    f <- if (compiled) traced_bowl() else if (batch) columns else bowl()
    again <- function(...) { # compiled chains are looked at every 5 iterations
      utils::capture.output(type = "message", fit <- cl_sample(
        f, init, chains = 2, warmup = 25, iter = 10, seed = 3, batch = batch, refresh = 5, ...))
      fit
    }
    expected <- again()
    for (at in if (compiled) c(2, 7) else c(1, 150)) {
      file <- tempfile(fileext = ".rds")
      copy <- tempfile(fileext = ".rds")
      with_checkpoint_copy(copy, at, same_draws(again(checkpoint = file, checkpoint_seconds = 0),
                                                expected))
      expect_true(file.exists(copy))
      same_draws(again(checkpoint = copy), expected)
      same_draws(again(checkpoint = file), expected) # it is complete
    }
  }
})

test_that("a killed process loses nothing that was saved", {
  skip_on_os("windows")
  expected <- on_host(run())
  file <- tempfile(fileext = ".rds")
  script <- tempfile(fileext = ".R")
  writeLines(c(
    sprintf(".libPaths(%s)", deparse1(.libPaths())),
    "library(statcl); cl_use(engine = 'host'); count <- 0",
    paste("bowl <-", paste(deparse(bowl), collapse = "\n")),
    "calm <- bowl()",
    "f <- function(a, b) { count <<- count + 1",
    "  if (count > 400) tools::pskill(Sys.getpid(), tools::SIGKILL); calm(a, b) }",
    "init <- list(a = c(0, 0, 0), b = 0)",
    sprintf("cl_sample(f, init, chains = 2, warmup = 60, iter = 60, seed = 3, checkpoint = %s,",
            deparse(file)), "checkpoint_seconds = 0, refresh = 0)"), script)
  expect_true(suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script),
                                       stdout = FALSE, stderr = FALSE)) != 0)
  expect_true(file.exists(file))
  calls <- 0
  counted <- function(a, b) {
    calls <<- calls + 1
    bowl()(a, b)
  }
  same_draws(on_host(run(counted, checkpoint = file)), expected)
  expect_lt(calls, sum(expected$evaluations) - 300)
})

test_on_host("a file of another run is refused", {
  file <- tempfile(fileext = ".rds")
  run(checkpoint = file)
  refused <- function(code) expect_fault(code, "checkpoint", argument = "checkpoint")
  refused(run(bowl(2), checkpoint = file))
  refused(run(checkpoint = file, seed = 4))
  refused(run(checkpoint = file, adapt_delta = 0.9))
  refused(run(checkpoint = file, transform = list(b = cl_lower(-9))))
  kept <- read_checked(file)
  kept$header$version <- "0.0.1"
  write_checked(kept, file)
  refused(run(checkpoint = file))
  kept$header$version <- as.character(utils::packageVersion("statcl"))
  kept$chains[[1]]$image <- kept$chains[[1]]$image[1:2000]
  write_checked(kept, file)
  expect_refused("checkpoint", run(checkpoint = file))
  writeLines("not a checkpoint", file)
  refused(run(checkpoint = file))
  expect_identical(readLines(file), "not a checkpoint")
  expect_refused("checkpoint", run(checkpoint = 1),
                 run(checkpoint = file.path(file, "none", "a.rds")))
})

test_on_host("a file with a flipped bit is refused, whatever the bit", {
  file <- tempfile(fileext = ".rds")
  expected <- run(checkpoint = file)
  calibrate <- function() {
    cl_calibrate(function() list(parameters = c(a = rnorm(1)), data = rnorm(1)), function(y) {
      function(a) structure(-(a^2 + (y - a)^2) / 2, gradient = y - 2 * a)
    }, 2, 3, 20, seed = 1, refresh = 0, checkpoint = other)
  }
  other <- tempfile(fileext = ".rds")
  calibrate()
  set.seed(1)
  for (what in c(file, other)) {
    bytes <- read_raw(what)
    again <- if (what == file) function() run(checkpoint = file) else calibrate
    for (k in seq_len(full_or_quick(1000L, 25L))) {
      at <- sample(length(bytes), 1L)
      flipped <- bytes
      flipped[at] <- xor(bytes[at], as.raw(2^sample(0:7, 1L)))
      writeBin(flipped, what)
      expect_error(again(), class = "statcl_error_checkpoint")
    }
    writeBin(bytes, what)
  }
  same_draws(run(checkpoint = file), expected)
})

test_on_host("a file that cannot be written does not end the run", {
  folder <- tempfile()
  dir.create(folder)
  file <- file.path(folder, "run.rds")
  dir.create(paste0(file, ".part"))
  expect_warning(fit <- run(checkpoint = file), class = "statcl_warning_checkpoint")
  same_draws(fit, run())
})

test_on_host("thinning keeps every n-th draw", {
  all <- run(save_warmup = TRUE)
  thin <- run(save_warmup = TRUE, thin = 7)
  expect_identical(thin$draws, all$draws[seq(7, 60, 7), , , drop = FALSE])
  expect_identical(thin$diagnostics$energy, all$diagnostics$energy[seq(7, 60, 7), ])
  expect_identical(thin$warmup$draws, all$warmup$draws)
  expect_refused("thin", run(thin = 61))
})
