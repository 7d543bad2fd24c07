# Which engine everyday calls run on: "auto" against the better of the two that are forced, each in
# a new process with empty caches of kernels, so that the first call pays for them; then the second
# call, and "settled" ones, when nothing is built any more.
#
#   Rscript bench/engines.R [quick] [control] [pattern] [--lanes=4]
#
# quick: fewer draws and a limit of 40 s a process, for 15 minutes on 16 cores. Several lanes run
# side by side, each bound to its share of the cores. Where the first call takes less than 3 s, the
# first two are medians of several processes, auto and host in turn. The verdict is "ok" if auto
# takes at most 1.1 times the better engine and 5 ms in all three: in the first call, in the first
# two together (the device has then paid for its kernels), and settled. What is late is measured
# again, at most twice, and the medians are then of all processes; the verdict says in how many
# rounds. control: the host stands in for auto, without a device, so that what is late is late by
# chance.
#
# Posteriors are those of tests/posteriors, with the data of the folder STATCL_POSTERIORS (JSON
# files, ../shared/posteriordb if it is there), else with simulated data of the same sizes.
# STATCL_DEVICE names the device: a CPU device, which auto never takes, then gets the thresholds of
# GPUs, and devices are listed before the first call. "costs" for a pattern: a gradient of each
# compiled function on each engine next to the estimate (R/base-choice.R). "turns" before a pattern:
# milliseconds of settled calls on each engine in turn, in one process.

arguments <- commandArgs(TRUE)
quick <- "quick" %in% arguments
control <- "control" %in% arguments
lanes <- as.integer(c(sub("--lanes=", "", grep("--lanes=", arguments, value = TRUE)),
                      max(1L, parallel::detectCores() %/% 4L))[1L])
arguments <- arguments[!arguments %in% c("quick", "control") & !startsWith(arguments, "--")]
self <- sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE))
draws <- if (quick) 100 else 200
most <- if (quick) 20 else 60 # seconds until calls count as settled

calls <- list()
call <- function(name, setup, run) {
  calls[[name]] <<- list(setup = substitute(setup), run = substitute(run))
}
density <- function(name, setup, f, init) {
  call(name, NULL, NULL)
  calls[[name]] <<- list(setup = bquote({
    .(substitute(setup))
    f <- cl_gradient(.(substitute(f)))
    init <- .(substitute(init))
  }), run = quote(cl_sample(f, init, chains = 2, warmup = draws, iter = draws, seed = 1,
                            refresh = 0)),
  gradient = TRUE)
}
density("eight schools", {
  y <- c(28, 8, -3, 7, -1, 1, 18, 12)
  s <- c(15, 10, 16, 11, 9, 11, 10, 18)
}, function(mu, tau, eta) {
  sum(dnorm(y, mu + exp(tau) * eta, s, log = TRUE)) + sum(dnorm(eta, log = TRUE)) +
    dnorm(mu, 0, 5, log = TRUE) + dcauchy(exp(tau), 0, 5, log = TRUE) + tau
}, list(mu = 1, tau = 0.5, eta = rep(0.1, 8)))
density("AR(1) of lynx", {
  y <- log(as.numeric(lynx))
  n <- length(y)
}, function(a, b, s) {
  sum(dnorm(y[-1], a + b * y[-n], exp(s), log = TRUE)) + dnorm(s, log = TRUE)
}, list(a = 1, b = 0.5, s = 0))
density("ARMA(1,1), a loop of 100", y <- sin(1:100), function(mu, phi, theta, s) {
  e <- y[1] - mu - phi * mu
  total <- dnorm(e, 0, exp(s), log = TRUE)
  for (t in 2:100) {
    e <- y[t] - (mu + phi * y[t - 1] + theta * e)
    total <- total + dnorm(e, 0, exp(s), log = TRUE)
  }
  total
}, list(mu = 0.1, phi = 0.2, theta = 0.1, s = 0))
density("ARMA(1,1), cl_scan() of 1000", y <- sin(1:1001), function(mu, phi, theta, s) {
  e <- cl_scan(function(e, x) x[1] - (mu + phi * x[2] + theta * e), 0, cbind(y[-1], y[-1001]))
  sum(dnorm(e, 0, exp(s), log = TRUE)) + dnorm(phi) + dnorm(theta)
}, list(mu = 0.1, phi = 0.2, theta = 0.1, s = 0))
density("logistic, 300 x 5", {
  set.seed(1)
  x <- matrix(rnorm(1500), 300)
  y <- as.numeric(runif(300) < 0.5)
}, function(a, b) sum(dbinom(y, 1, plogis(a + x %*% b), log = TRUE)) + sum(dnorm(b, log = TRUE)),
list(a = 0.1, b = rep(0.1, 5)))
density("logistic, 1e5 x 10", {
  set.seed(1)
  x <- matrix(rnorm(1e6), 1e5)
  y <- as.numeric(runif(1e5) < 0.5)
}, function(a, b) sum(dbinom(y, 1, plogis(a + x %*% b), log = TRUE)) + sum(dnorm(b, log = TRUE)),
list(a = 0.1, b = rep(0.1, 10)))
density("Poisson with 60 groups, 2000", {
  set.seed(1)
  x <- rnorm(2000)
  y <- rpois(2000, 3)
  g <- sample(60, 2000, TRUE)
}, function(a, b, u, t) {
  sum(dpois(y, exp(a + b * x + exp(t) * u[g]), log = TRUE)) + sum(dnorm(u, log = TRUE)) +
    dnorm(t, log = TRUE)
}, list(a = 0.1, b = 0.1, u = rep(0.1, 60), t = 0))
density("Gaussian process, 40", {
  d <- unname(as.matrix(dist(seq(0, 1, length.out = 40)))^2)
  y <- sin(6 * seq(0, 1, length.out = 40))
}, function(l, s, t) {
  k <- exp(2 * s) * exp(-d / (2 * exp(2 * l))) + diag(exp(2 * t) + 1e-6, 40)
  r <- chol(k)
  z <- backsolve(r, y, transpose = TRUE)
  -sum(log(diag(r))) - sum(z^2) / 2 + dnorm(l, log = TRUE) + dnorm(s, log = TRUE) +
    dnorm(t, log = TRUE)
}, list(l = -1, s = 0, t = -1))

call("cl_glm(), mtcars", NULL, cl_glm(am ~ wt, "bernoulli_logit", data = mtcars))
call("cl_glm(), 5000 rows", {
  set.seed(1)
  d <- data.frame(x = rnorm(5000), y = rpois(5000, 2))
}, cl_glm(y ~ x, d, "poisson_log"))
call("cl_glm(), 1e6 rows", {
  set.seed(1)
  d <- data.frame(x = rnorm(1e6), z = rnorm(1e6), y = rpois(1e6, 2))
}, cl_glm(y ~ x + z, d, "poisson_log"))
call("cl_glmm(), Orthodont", d <- as.data.frame(nlme::Orthodont),
     cl_glmm(distance ~ age + (age | Subject), d, "normal_id"))
call("cl_gp(), mcycle", NULL, cl_gp(accel ~ times, MASS::mcycle))
call("cl_gp(), 20 points", NULL, cl_gp(1:20, sin(1:20)))
call("cl_gp(), 500 points", {
  set.seed(1)
  x <- matrix(runif(1000), 500)
  y <- sin(6 * x[, 1]) + x[, 2] + rnorm(500) / 10
}, cl_gp(x, y, starts = 1))
call("cl_chol(), 64", a <- diag(64) + 0.5, cl_chol(a))
call("cl_chol(), 512", a <- diag(512) + 0.5, cl_chol(a))
call("cl_chol(), 4000", a <- diag(4000) + 0.5, cl_chol(a))
call("cl_matmul(), 300", a <- matrix(sin(1:90000), 300), cl_matmul(a, a))
call("cl_matmul(), 3000", a <- matrix(sin(1:9e6), 3000), cl_matmul(a, a))
call("cl_map(), 1e4", x <- sin(1:1e4), cl_map(function(x) exp(-x * x), x))
call("cl_cov(), 400", x <- matrix(sin(1:1200), 400), cl_cov(x, kernel = k_exp_quad()))
call("cl_batch_lm(), 200 groups", {
  set.seed(1)
  d <- data.frame(g = rep(1:200, each = 10), x = rnorm(2000), y = rnorm(2000))
}, cl_batch_lm(y ~ x, d, group = d$g))
call("cl_tmb(), 300 rows, 30 effects", {
  set.seed(1)
  g <- rep(1:30, each = 10)
  y <- rnorm(30)[g] + rnorm(300)
  nll <- function(p) {
    -sum(dnorm(y, p$mu + p$u[g], exp(p$s), log = TRUE)) -
      sum(dnorm(p$u, 0, exp(p$t), log = TRUE))
  }
}, {
  o <- cl_tmb(nll, list(mu = 0, s = 0, t = 0, u = numeric(30)), random = "u", silent = TRUE)
  nlminb(o$par, o$fn, o$gr)
})

call("cl_gp(), 1000 points, exact", {
  set.seed(1)
  x <- matrix(runif(2000), 1000)
  y <- sin(6 * x[, 1]) + x[, 2] + rnorm(1000) / 10
}, cl_gp(x, y, starts = 1))
call("cl_gp_likelihood(), 4000", {
  set.seed(1)
  x <- matrix(runif(8000), 4000)
  y <- sin(6 * x[, 1]) + x[, 2] + rnorm(4000) / 10
  f <- cl_gp_likelihood(y, x, k_exp_quad())
}, f(c(sd = 1, lengthscale = 0.5, noise = 0.1)))
call("cl_gp(), counts of 200", {
  set.seed(1)
  x <- matrix(runif(200))
  y <- rpois(200, exp(sin(6 * x[, 1])))
}, cl_gp(x, y, family = "poisson_log", starts = 1))
call("predict() of cl_gp()", fit <- with_cl(cl_gp(accel ~ times, MASS::mcycle), engine = "host"),
     predict(fit, data.frame(times = 1:50), interval = "prediction"))
call("cl_glm(), 20 rows", d <- data.frame(x = 1:20, y = rep(0:3, 5)),
     cl_glm(y ~ x, d, "poisson_log"))
call("cl_glm(), 1e5 rows, 20 columns", {
  set.seed(1)
  x <- matrix(rnorm(2e6), 1e5)
  y <- rbinom(1e5, 1, 0.4)
}, cl_glm(x, y, "bernoulli_logit"))
call("cl_glm(), mcmc", NULL, cl_glm(am ~ wt, "bernoulli_logit", data = mtcars, method = "mcmc",
                                    progress = FALSE))
call("cl_glm(), classes of housing", NULL,
     cl_glm(Sat ~ Infl + Type + Cont, data = MASS::housing, weights = Freq,
            family = "ordered_logistic"))
call("cl_glm(), Gamma() of R", NULL, cl_glm(mpg ~ wt, Gamma("log"), mtcars))
call("cl_cv() of cl_glm()", fit <- cl_glm(mpg ~ wt + hp, "normal_id", data = mtcars), cl_cv(fit, 5))
call("cl_likelihood(), 1e5 x 10, sampled", {
  set.seed(1)
  x <- matrix(rnorm(1e6), 1e5)
  f <- cl_likelihood("bernoulli_logit", rbinom(1e5, 1, 0.4), x)
}, cl_sample(f, list(alpha = 0, beta = numeric(10)), chains = 2, warmup = 50, iter = 50, seed = 1,
             refresh = 0))
call("cl_glm_lpdf(), 1e4", {
  x <- matrix(sin(1:50000), 1e4)
  y <- as.numeric(cos(1:1e4) > 0)
}, cl_glm_lpdf("bernoulli_logit", y, x, 0, rep(0.1, 5)))
call("cl_optimise(), AR(1) of lynx", {
  y <- log(as.numeric(lynx))
  f <- cl_gradient(function(a, b, s) {
    sum(dnorm(y[-1], a + b * y[-length(y)], exp(s), log = TRUE)) + dnorm(s, log = TRUE)
  })
}, cl_optimise(f, list(a = 1, b = 0.5, s = 0)))
call("cl_chol_adjoint(), 512", l <- t(chol(diag(512) + 0.5)), cl_chol_adjoint(l, l))
call("cl_tri_solve(), 1000 x 50", {
  l <- t(chol(diag(1000) + 0.5))
  b <- matrix(sin(1:50000), 1000)
}, cl_tri_solve(l, b))
call("cl_batch_chol(), 1e4 of order 5", {
  a <- array(diag(5) + 0.5, c(5, 5, 1e4))
}, cl_batch_chol(a))
call("cl_map(), 1e6", x <- sin(1:1e6), cl_map(function(x) exp(-x * x), x))
call("cl_reduce(), 1e6", x <- sin(1:1e6), cl_reduce(x, map = function(x) x^2))

# A call at several sizes; `.size` in the code is the size.
at_sizes <- function(name, sizes, setup, run) {
  for (n in sizes) {
    put <- function(code) do.call(substitute, list(code, list(.size = n)))
    calls[[sprintf("%s, %g", name, n)]] <<- list(setup = put(substitute(setup)),
                                                 run = put(substitute(run)))
  }
}
at_sizes("cl_glm(), binary, rows", c(20, 100, 1000, 3000, 1e4, 3e5), {
  set.seed(1)
  d <- data.frame(x = rnorm(.size), z = rnorm(.size), y = rbinom(.size, 1, 0.4))
}, cl_glm(y ~ x + z, d, "bernoulli_logit"))
at_sizes("cl_glm(), normal, rows", c(100, 1e4, 1e6), {
  set.seed(1)
  d <- data.frame(x = rnorm(.size), y = rnorm(.size))
}, cl_glm(y ~ x, d, "normal_id"))
at_sizes("cl_gp(), points", c(16, 32, 64, 128, 250, 400), {
  set.seed(1)
  x <- matrix(runif(.size))
  y <- sin(6 * x[, 1]) + rnorm(.size) / 10
}, cl_gp(x, y, starts = 1))
at_sizes("cl_gp_likelihood(), points", c(100, 500, 1000, 2000), {
  set.seed(1)
  x <- matrix(runif(2 * .size), .size)
  f <- cl_gp_likelihood(sin(6 * x[, 1]) + x[, 2], x, k_matern52())
}, f(c(sd = 1, lengthscale = 0.5, noise = 0.1)))
at_sizes("20 of cl_likelihood(), counts, rows", c(1e4, 1e5, 1e6), {
  set.seed(1)
  x <- matrix(rnorm(5 * .size), .size)
  f <- cl_likelihood("poisson_log", rpois(.size, 2), x)
}, for (i in 1:20) f(0.1, rep(0.05, 5)))
at_sizes("20 of cl_likelihood(), ordered, rows", c(3e4, 3e5), {
  set.seed(1)
  x <- matrix(rnorm(5 * .size), .size)
  f <- cl_likelihood("ordered_logistic", sample(4, .size, TRUE), x)
}, for (i in 1:20) f(beta = rep(0.05, 5), cuts = c(-1, 0, 1)))
at_sizes("cl_chol(), order", c(32, 128, 256, 700, 1000, 2000), a <- diag(.size) + 0.5, cl_chol(a))
at_sizes("cl_matmul(), order", c(64, 500, 1000, 2000), a <- matrix(sin(seq_len(.size^2)), .size),
         cl_matmul(a, a))
at_sizes("cl_cov(), points", c(100, 1000, 2000), x <- matrix(sin(seq_len(3 * .size)), .size),
         cl_cov(x, kernel = k_exp_quad()))
at_sizes("cl_chol_adjoint(), order", c(100, 1000), l <- t(chol(diag(.size) + 0.5)),
         cl_chol_adjoint(l, l))
at_sizes("cl_tri_inverse(), order", c(300, 2000), l <- t(chol(diag(.size) + 0.5)),
         cl_tri_inverse(l))
at_sizes("cl_map(), numbers", c(100, 1000, 1e5), x <- sin(seq_len(.size)),
         cl_map(function(x) exp(-x * x), x))
at_sizes("cl_batch_lm(), groups", c(20, 1e4), {
  set.seed(1)
  d <- data.frame(g = rep(seq_len(.size), each = 10), x = rnorm(10 * .size),
                  y = rnorm(10 * .size))
}, cl_batch_lm(y ~ x, d, group = d$g))
at_sizes("cl_batch_glm(), groups", c(20, 1e3), {
  set.seed(1)
  d <- data.frame(g = rep(seq_len(.size), each = 20), x = rnorm(20 * .size),
                  y = rpois(20 * .size, 2))
}, cl_batch_glm(y ~ x, d, group = d$g, family = poisson()))

# ---- posteriors ----------------------------------------------------------------------------------

# Data of the size and kind of a posterior's.
simulated <- function(name) {
  set.seed(1)
  level <- function(n, k) sample.int(k, n, TRUE) - 1L
  kind <- sub("-.*", "", name)
  n <- switch(kind, earnings = 1192L, mesquite = 46L, 434L)
  if (startsWith(kind, "nes")) {
    return(list(age_discrete = 1L + level(1000L, 4L), educ1 = 1L + level(1000L, 4L),
                gender = level(1000L, 2L), income = 1L + level(1000L, 5L),
                partyid7 = 1 + level(1000L, 7L), race_adj = 1 + level(1000L, 2L) / 2,
                real_ideo = 1L + level(1000L, 7L)))
  }
  switch(kind,
    arK = list(K = 5L, T = 200L, y = as.numeric(arima.sim(list(ar = 0.5), 200L))),
    bball_drive_event_0 = list(u = runif(416L), v = 5 * runif(416L), K = 2L, N = 416L,
                               alpha = matrix(c(6, 1, 1, 6), 2L)),
    diamonds = list(X = cbind(1, matrix(rnorm(5000 * 24), 5000L)), Y = rnorm(5000L, 8)),
    earnings = list(earn = exp(rnorm(n, 9.5)), height = rnorm(n, 67, 4), male = level(n, 2L)),
    eight_schools = list(J = 8L, y = c(28, 8, -3, 7, -1, 1, 18, 12),
                         sigma = c(15, 10, 16, 11, 9, 11, 10, 18)),
    gp_pois_regr = list(x = seq(-10, 10, 2), y = sin(1:11), k = 1:11),
    hudson_lynx_hare = list(ts = 1:20, y_init = c(30, 4),
                            y = exp(matrix(rnorm(40, 3, 0.5), 20L))),
    kidiq = , kidiq_with_mom_work =
      list(kid_score = rnorm(n, 87, 20), mom_hs = level(n, 2L), mom_iq = rnorm(n, 100, 15),
           mom_work = 1L + level(n, 4L)),
    mesquite = list(canopy_height = exp(rnorm(n)), density = 1L + level(n, 9L),
                    diam1 = exp(rnorm(n)), diam2 = exp(rnorm(n)), group = level(n, 2L),
                    total_height = exp(rnorm(n)), weight = exp(rnorm(n, 6))),
    one_comp_mm_elim_abs = list(t0 = 0, D = 30, V = 2, times = 1:20 / 2, N_t = 20L,
                                C_hat = exp(rnorm(20, 1, 0.3))),
    sblrc = list(X = matrix(rnorm(500), 100L), y = rnorm(100L)))
}

posterior <- function(name) {
  folder <- c(Sys.getenv("STATCL_POSTERIORS"), file.path(dirname(self), "../../shared/posteriordb"),
              file.path(dirname(self), "../shared/posteriordb"))
  file <- file.path(folder, paste0(name, ".json"))
  file <- file[file.exists(file)]
  data <- if (length(file) > 0L && requireNamespace("jsonlite", quietly = TRUE)) {
    jsonlite::fromJSON(file[1L])$data
  } else {
    simulated(name)
  }
  if (name %in% linear) model_of("regressions")(name, data) else model_of(name)(data)
}
model_of <- function(name) {
  file <- file.path(dirname(self), "../tests/posteriors", paste0(name, ".R"))
  source(file, local = new.env())$value
}
linear <- names(environment(model_of("regressions"))$regressions)
files <- list.files(file.path(dirname(self), "../tests/posteriors"), "-.*[.]R$")
for (name in c(sub("[.]R$", "", files), linear)) {
  calls[[name]] <- list(setup = bquote({
    model <- posterior(.(name))
    f <- cl_gradient(model$log_density)
  }), run = quote(cl_sample(f, model$init, transform = model$transform, chains = 2, warmup = draws,
                            iter = draws, seed = 1, refresh = 0, nan = "reject",
                            jitter = c(model$jitter, 1)[1L])))
}

# ---- one call ------------------------------------------------------------------------------------

# The package on an engine; auto gets the thresholds of GPUs for a CPU that is named.
load_on <- function(engine) {
  suppressMessages(library(statcl))
  options(statcl.quiet = TRUE)
  own <- asNamespace("statcl")
  cl_use(engine = engine)
  named <- engine == "auto" && nzchar(Sys.getenv("STATCL_DEVICE"))
  device <- if (named) own$device_table()[own$current_device() + 1L, ]
  if (identical(device$type, "cpu")) {
    device$type <- "gpu"
    session <- own$session
    session$tuned[[device$id]] <- unlist(unname(own$shipped_tuning(device)))
  }
  own
}
seconds_of <- function(this, clean = TRUE) {
  system.time(suppressWarnings(suppressMessages(eval(this$run))), gcFirst = clean)[[3L]]
}
if (identical(arguments[1L], "one")) { # the times of one call on one engine, for the process below
  own <- load_on(arguments[3L])
  this <- calls[[arguments[2L]]]
  eval(this$setup)
  begin <- proc.time()[[3L]]
  first <- seconds_of(this)
  second <- seconds_of(this)
  if (identical(arguments[4L], "early")) {
    cat(first, second, NA, "\n")
    quit()
  }
  # auto may move to a device by and by: it has some seconds, and the last calls count; but not a
  # call below all thresholds
  later <- second
  passed <- function(limit) proc.time()[[3L]] - begin >= limit
  stays <- function() arguments[3L] != "auto" || (length(own$session$owed) == 0L &&
                                                    !startsWith(deparse(this$run)[1L], "cl_sample"))
  settled <- function() {
    last <- utils::tail(later, 12L)
    length(later) >= 12L && own$count_building() == 0L && passed(if (stays()) 0 else 10) &&
      max(last) <= 1.5 * min(last) + 0.002
  }
  while (!settled() && !passed(most)) {
    later <- c(later, seconds_of(this, FALSE)) # cleaning takes longer than a short call
    while (own$count_building() > 0L && !passed(most)) Sys.sleep(0.01)
  }
  # of short calls the mean without extremes, as garbage is collected in some of them only
  last <- utils::tail(later, 12L)
  short <- length(last) == 12L && sum(last) < 5
  settled <- if (short) mean(last, trim = 0.1) else stats::median(utils::tail(later, 5L))
  cat(sprintf("%.6f %.6f %.6f\n", first, second, settled))
  quit()
}
if (identical(arguments[1L], "turns")) {
  own <- load_on("auto")
  for (name in grep(c(arguments[-1L], "")[1L], names(calls), value = TRUE)) {
    eval(calls[[name]]$setup)
    end <- proc.time()[[3L]] + most
    while (proc.time()[[3L]] < end) seconds_of(calls[[name]], FALSE) # auto settles
    for (turn in 1:3) for (engine in c("device", "host", "auto")) {
      cl_use(engine = engine)
      times <- replicate(12L, seconds_of(calls[[name]], FALSE))
      cat(sprintf("%-42s %-6s %9.1f\n", name, engine, 1e3 * mean(times, trim = 0.1)))
    }
  }
  quit()
}
if (identical(arguments[1L], "costs")) {
  own <- load_on("auto")
  cat(sprintf("%-30s %12s %12s %12s %12s\n", "us a gradient", "host", "estimate", "device",
              "estimate"))
  for (name in names(calls)) {
    if (is.null(calls[[name]]$gradient)) next
    eval(calls[[name]]$setup)
    times <- numeric()
    for (engine in c("host", "device", "auto")) {
      cl_use(engine = engine)
      compiled <- cl_gradient(environment(f)$f)
      for (k in 1:20) do.call(compiled, init)
      if (engine == "auto") break
      one <- function() system.time(for (k in 1:200) do.call(compiled, init))[[3L]] / 200
      times[engine] <- 1e6 * stats::median(vapply(1:5, function(i) one(), 0))
    }
    cost <- environment(compiled)$cost
    cat(sprintf("%-30s %12.1f %12.1f %12.1f %12.1f\n", name, times[["host"]], cost$host,
                times[["device"]], own$device_time(cost, own$host_limit("program"))))
  }
  quit()
}

# ---- all calls -----------------------------------------------------------------------------------

# c(first, second, settled) of a call on an engine, in a process that has no kernels; Inf if that
# takes too long. `early`: the first two alone.
measure <- function(name, engine, threads, early = FALSE) {
  folder <- tempfile("kernels")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  env <- paste0(c("CUDA_CACHE_PATH=", "POCL_CACHE_DIR=", "R_USER_CACHE_DIR=",
                  "OPENBLAS_NUM_THREADS="), c(rep(folder, 3L), threads))
  out <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"),
    c(shQuote(self), "one", shQuote(name), engine, if (early) "early", if (quick) "quick"),
    stdout = TRUE, stderr = FALSE, env = env, timeout = if (quick) 40 else 300))
  if (identical(attr(out, "status"), 124L)) return(c(Inf, Inf, Inf))
  suppressWarnings(as.numeric(strsplit(c(utils::tail(out, 1L), "NA")[1L], " ")[[1L]])[1:3])
}

# list(times (a row for each engine, a column for each moment), verdict).
measure_all <- function(name, threads) {
  runs <- list(auto = NULL, host = NULL, device = NULL) # a column for each process
  add <- function(engine, early = FALSE) {
    as <- if (control && engine == "auto") "host" else engine
    times <- if (control && engine == "device") rep(Inf, 3L) else
      measure(name, as, threads, early)
    if (early) times[3L] <- NA
    runs[[engine]] <<- cbind(runs[[engine]], times)
  }
  in_turn <- function(times, engines = c("host", "auto")) { # one is not always the first
    for (i in seq_len(times)) for (engine in if (i %% 2L == 1L) engines else rev(engines)) {
      add(engine, TRUE)
    }
  }
  medians <- function() {
    t(vapply(runs, function(r) {
      whole <- !is.na(r[3L, ]) | is.na(r[1L, ])
      c(apply(r[1:2, , drop = FALSE], 1L, stats::median), stats::median(r[3L, whole]))
    }, numeric(3L)))
  }
  for (engine in names(runs)) add(engine)
  first <- medians()["host", 1L]
  short <- if (is.na(first) || first >= 3) 0L else if (first < 0.5) 4L else 2L
  in_turn(short)
  rounds <- 1L
  while (rounds < 3L && !anyNA(late <- is_late(medians())) && any(late)) {
    if (late[3L]) for (engine in c("auto", names(which.min(medians()[-1L, 3L])))) add(engine)
    times <- medians()
    device <- if (any(times["device", 1:2] < times["host", 1:2])) "device"
    if (any(late[1:2])) in_turn(2L * max(short, 1L), c("host", "auto", device))
    rounds <- rounds + 1L
  }
  list(times = medians(), verdict = verdict(medians(), rounds))
}

moments <- c("first", "second", "settled")
is_late <- function(t) {
  t <- cbind(t[, 1L], t[, 1L] + t[, 2L], t[, 3L])
  t["auto", ] > 1.1 * pmin(t["host", ], t["device", ]) + 0.005
}
verdict <- function(t, rounds) {
  if (anyNA(t) || all(t == Inf)) return("no result")
  late <- is_late(t)
  paste0(if (any(late)) paste(moments[late], collapse = ", ") else "ok",
         if (rounds > 1L) sprintf(" (%d rounds)", rounds))
}

columns <- paste0("%-42s ", strrep("%9s ", 7L), " %s\n")
cat(sprintf(columns, "seconds", "auto:1st", "2nd", "settled", "host:1st", "settled", "dev:1st",
            "settled", "verdict"))
threads <- max(1L, parallel::detectCores() %/% lanes)
chosen <- grep(c(arguments, "")[1L], names(calls), value = TRUE)
# A lane has cores of its own, so that no other lane's builds and BLAS threads take them.
lane <- function(k) {
  parallel::mcaffinity(seq_len(threads) + (k - 1L) * threads)
  vapply(chosen[seq_along(chosen) %% lanes == k - 1L], function(name) {
    all <- measure_all(name, threads)
    t <- all$times
    text <- formatC(c(t["auto", ], t["host", -2L], t["device", -2L]), format = "f", digits = 4L)
    cat(do.call(sprintf, c(list(columns, name), as.list(text), all$verdict)))
    all$verdict
  }, "")
}
verdicts <- unlist(parallel::mclapply(seq_len(lanes), lane, mc.cores = lanes,
                                      mc.preschedule = FALSE))
cat(sprintf("%d calls, %d ok\n", length(verdicts), sum(startsWith(as.character(verdicts), "ok"))))
