# What a user meets each day, on the host: the installed size, the time of library(statcl), and ten
# calls. Prints a table of milliseconds of processor time, the least of several calls.
#
#   Rscript bench/everyday.R [--against LIBRARY] [--rounds 5]
#
# With --against the statcl of another library (an older version, say) is timed in turn with this
# one, each time in a process of its own.

calls <- list(
  `chol(as_cl(a)), order 200` = quote(as.matrix(chol(as_cl(a)))),
  `cl_map() of 1e5 numbers` = quote(as.vector(cl_map(function(x) exp(-x^2), x))),
  `cl_glm(), 7,874 rows` = quote(cl_glm(death ~ age + sex, survival::flchain, binomial)),
  `summary() of it` = quote(summary(fit)),
  `cl_glm() with a random effect` = quote(
    cl_glm(distance ~ age + Sex + (1 | Subject), as.data.frame(nlme::Orthodont), "normal_id")),
  `cl_gp(), 50 rows` = quote(cl_gp(dist ~ speed, cars)),
  `predict() of it` = quote(predict(process, data.frame(speed = 1:30), interval = "prediction")),
  `cl_gradient() and its first call` = quote(cl_gradient(model)(start$mu, start$tau, start$z)),
  `a later call` = quote(density(start$mu, start$tau, start$z)),
  `cl_sample(), eight schools` = quote(suppressWarnings(
    cl_sample(density, start, transform = list(tau = cl_lower(0)), seed = 1))))

setup <- quote({
  suppressMessages(library(statcl))
  cl_use(engine = "host")
  set.seed(1)
  a <- crossprod(matrix(rnorm(200 * 200), 200)) + diag(200)
  x <- rnorm(1e5)
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  sigma <- c(15, 10, 16, 11, 9, 11, 10, 18)
  model <- function(mu, tau, z) {
    sum(dnorm(y, mu + tau * z, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
      dnorm(mu, 0, 10, log = TRUE) + dexp(tau, 0.1, log = TRUE)
  }
  start <- list(mu = 0, tau = 1, z = numeric(8))
  density <- cl_gradient(model)
  fit <- cl_glm(death ~ age + sex, survival::flchain, binomial)
  process <- cl_gp(dist ~ speed, cars)
})

processor_ms <- function() 1000 * sum(proc.time()[1:2])

# The least time of a call: of at least three, and of those within half a second.
least_ms <- function(code, where) {
  run <- function(times) {
    timed <- compiler::cmpfun(eval(bquote(function() for (k in seq_len(.(times))) .(code)), where))
    environment(timed) <- where
    start <- processor_ms()
    timed()
    (processor_ms() - start) / times
  }
  times <- 1L
  while (min(run(times), run(times)) * times < 50 && times < 1e5) times <- 4L * times
  best <- Inf
  end <- proc.time()[[3]] + 0.5
  for (k in seq_len(1000L)) {
    best <- min(best, run(times))
    if (k >= 3L && proc.time()[[3]] > end) return(best)
  }
}

measure <- function(file) {
  start <- processor_ms()
  suppressMessages(library(statcl))
  loading <- processor_ms() - start
  eval(setup, globalenv())
  found <- system.file(package = "statcl")
  bytes <- sum(file.size(list.files(found, recursive = TRUE, full.names = TRUE)))
  times <- vapply(calls, least_ms, 0, globalenv())
  saveRDS(c(`installed size, MB` = bytes / 1e6, `library(statcl)` = loading, times), file)
}

side <- function(libraries) {
  file <- tempfile(fileext = ".rds")
  status <- system2(file.path(R.home("bin"), "Rscript"), c("bench/everyday.R", "--measure", file),
                    env = paste0("R_LIBS=", shQuote(libraries)))
  if (status != 0L) stop("the calls failed with the statcl of ", libraries)
  readRDS(file)
}

main <- function(arguments) {
  value <- function(name) {
    at <- match(name, arguments)
    if (is.na(at)) NULL else arguments[at + 1L]
  }
  if (!is.null(value("--measure"))) return(measure(value("--measure")))
  rounds <- if (is.null(value("--rounds"))) 5L else as.integer(value("--rounds"))
  ours <- Sys.getenv("R_LIBS")
  other <- value("--against")
  least <- function(of, new) if (is.null(of)) new else pmin(of, new)
  now <- before <- NULL
  for (round in seq_len(rounds)) {
    if (!is.null(other)) before <- least(before, side(paste(other, ours, sep = .Platform$path.sep)))
    now <- least(now, side(ours))
  }
  number <- function(x) formatC(x, digits = 3, format = "fg")
  cat("Milliseconds of processor time, least of ", rounds, " processes.\n\n", sep = "")
  if (is.null(before)) {
    cat("| what | now |\n|---|---:|\n", sprintf("| %s | %s |\n", names(now), number(now)), sep = "")
  } else {
    cat("| what | before | now | now/before |\n|---|---:|---:|---:|\n",
        sprintf("| %s | %s | %s | %.2f |\n", names(now), number(before), number(now), now / before),
        sep = "")
  }
}

main(commandArgs(TRUE))
