# Which engine everyday calls run on: "auto" against the better of the two that are forced, in new
# processes, so that the first call pays for kernels; then the same call again (median of five).
# Rscript bench/engines.R [pattern]; STATCL_DEVICE names the device. A column says by how much auto
# is slower than the better engine, in the first call and later. With "costs" as pattern: a gradient
# of each compiled function on each engine next to the estimate (R/trace-engine.R).

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
  }), run = quote(cl_sample(f, init, chains = 2, warmup = 200, iter = 200, seed = 1, refresh = 0)),
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

arguments <- commandArgs(TRUE)
if (identical(arguments[1L], "one")) { # the times of one call on one engine, for the process below
  suppressMessages(library(statcl))
  options(statcl.quiet = TRUE)
  cl_use(engine = arguments[3L])
  this <- calls[[arguments[2L]]]
  eval(this$setup)
  seconds <- function() system.time(suppressWarnings(suppressMessages(eval(this$run))))[[3L]]
  first <- seconds()
  later <- if (first > 20) first else vapply(1:5, function(i) seconds(), 0)
  cat(sprintf("%.6f %.6f\n", first, stats::median(later)))
  quit()
}
if (identical(arguments[1L], "costs")) {
  suppressMessages(library(statcl))
  own <- asNamespace("statcl")
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
                times[["device"]], own$device_time(cost, own$current_device())))
  }
  quit()
}
self <- sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE))
cat(sprintf("%-32s %29s %29s %8s %8s\n", "seconds", "first: host, device, auto",
            "later: host, device, auto", "loss", "loss"))
for (name in grep(c(arguments, "")[1L], names(calls), value = TRUE)) {
  both <- vapply(c("host", "device", "auto"), function(engine) {
    out <- system2("Rscript", c(shQuote(self), "one", shQuote(name), engine), stdout = TRUE,
                   stderr = FALSE)
    as.numeric(strsplit(c(utils::tail(out, 1L), "NA NA")[1L], " ")[[1L]])[1:2]
  }, numeric(2L))
  # a call that takes 5 ms longer is no loss that a user feels
  loss <- apply(both, 1L, function(t) max(1, (t[["auto"]] - 0.005) / min(t[1:2])))
  cat(sprintf("%-32s %9.3f %9.3f %9.3f %9.4f %9.4f %9.4f %8.2f %8.2f\n", name, both[1L, 1L],
              both[1L, 2L], both[1L, 3L], both[2L, 1L], both[2L, 2L], both[2L, 3L], loss[1L],
              loss[2L]))
}
