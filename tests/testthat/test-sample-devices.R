# Chains of one call on several devices of this process: two POCL devices of one name.

skip_on_cran() # long; run by ./dev check

on_two_devices <- function(code, env = "POCL_DEVICES='pthread pthread'") {
  skip_on_os("windows")
  require_device()
  in_new_session(c(
    "options(statcl.quiet = TRUE)",
    "id <- cl_devices()$id",
    "if (length(id) < 2) {",
    "  cat('one device only: done')",
    "  quit()",
    "}",
    "cl_use(id[1], engine = 'device')",
    "x <- matrix(sin(1:90), 30)",
    "y <- rep(0:1, 15)",
    "init <- list(alpha = 0, beta = numeric(3))",
    "run <- function(f, start = init, ...) cl_sample(f, start, chains = 3, warmup = 40, iter = 30,",
    "                                                seed = 1, refresh = 0, ...)",
    "same <- function(a, b) stopifnot(identical(a$draws, b$draws),",
    "                                 identical(a$diagnostics, b$diagnostics),",
    "                                 identical(a$evaluations, b$evaluations))",
    "made <- function(k) with_cl(cl_memory()$peak[2], device = id[k])",
    "logit <- function(alpha, beta) {",
    "  sum(dbinom(y, 1, plogis(alpha + x %*% beta), log = TRUE)) - sum(beta^2) / 8",
    "}",
    code), env = env)
}

test_that("the same draws on two devices as on one: programs and likelihoods, with priors", {
  on_two_devices(c(
    "f <- cl_gradient(logit)",
    "stopifnot(made(2) == 0)",
    "alone <- run(f, batch = FALSE)",
    "stopifnot(made(2) == 0)",
    "same(alone, run(f, batch = FALSE, devices = id))",
    "stopifnot(made(2) > 8 * length(x))",
    "same(alone, run(f, batch = FALSE, devices = 'all'))",
    "same(alone, run(f, batch = FALSE, devices = 2))",
    "stopifnot(max(abs(run(f, batch = TRUE, devices = id)$draws - alone$draws)) < 1e-3)",
    "l <- cl_likelihood('normal_id', x[, 1], as_cl(x[, 2:3]))",
    "p <- cl_log_posterior(l, ~ dnorm(beta, 0, 2, log = TRUE))",
    "positive <- list(sigma = cl_lower(0))",
    "start <- list(alpha = 0, beta = c(0, 0), sigma = 1)",
    "for (f in list(l, p)) {",
    "  a <- run(f, start, transform = positive, batch = FALSE)",
    "  same(a, run(f, start, transform = positive, batch = FALSE, devices = id))",
    "  same(run(f, start, transform = positive, batch = TRUE),",
    "       run(f, start, transform = positive, batch = TRUE, devices = id))",
    "}",
    "same(run(p, start, transform = positive, batch = FALSE, pooled = TRUE),",
    "     run(p, start, transform = positive, batch = FALSE, pooled = TRUE, devices = id))"))
})

test_that("interrupts, points that fail, and checkpoints, as on one device", {
  on_two_devices(c(
    "f <- cl_gradient(logit)",
    "a <- run(f, batch = FALSE)",
    "file <- tempfile(fileext = '.rds')",
    ".Call(statcl:::r_interrupt_after, 3000L)",
    "b <- tryCatch(run(f, batch = FALSE, devices = id, checkpoint = file), warning = identity,",
    "              error = identity)",
    ".Call(statcl:::r_interrupt_after, -1L)",
    # the error if no chain has a draw yet: how often the core asks depends on waits
    "stopifnot(inherits(b, c('statcl_warning_interrupted', 'statcl_error_interrupted')))",
    "saved <- statcl:::read_checked(file)$chains",
    "stopifnot(length(saved) == 3, lengths(lapply(saved, `[[`, 'image')) > 0)",
    "same(a, run(f, batch = FALSE, devices = id, checkpoint = file))",
    "same(a, run(f, batch = FALSE, checkpoint = file))",
    # NaN beyond 2
    "g <- cl_gradient(function(a) sum(-a^2 / 2 + 0 * log(2 - a)))",
    "a <- run(g, list(a = c(0, 0)), batch = FALSE)",
    "stopifnot(a$rejections > 0)",
    "same(a, run(g, list(a = c(0, 0)), batch = FALSE, devices = id))",
    "e <- tryCatch(run(g, list(a = c(0, 0)), batch = FALSE, devices = id, nan = 'stop'),",
    "              statcl_error_density = identity)",
    "stopifnot(grepl('NaN.*[(]chain ', conditionMessage(e)))"))
})

test_that("functions of R, and a device without memory for its copy, are classed errors", {
  on_two_devices(c(
    "e <- tryCatch(run(function(a) structure(-a^2, gradient = list(a = -2 * a)), list(a = 0),",
    "                  devices = id), statcl_error_argument = identity)",
    "stopifnot(identical(e$argument, 'devices'), grepl('without R', conditionMessage(e)))",
    "rows <- rep(1:30, 500)",
    "two <- list(alpha = 0, beta = c(0, 0))",
    "f <- cl_likelihood('bernoulli_logit', y[rows], x[rows, 1:2])",
    "few <- with_cl(as_cl(matrix(0, 1000, 230)), device = id[2])",
    "stopifnot(inherits(run(f, two), 'cl_sample'))",
    "e <- tryCatch(run(f, two, devices = id), statcl_error_memory = identity)",
    "stopifnot(inherits(e, 'statcl_error_memory'))",
    "cl_free(few)",
    "stopifnot(inherits(run(f, two, devices = id), 'cl_sample'))"),
    env = c("POCL_DEVICES='pthread pthread'", "STATCL_MEMORY_LIMIT=2000000"))
})
