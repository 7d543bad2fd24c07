# Gaussian processes with observations that are not normal, by Laplace's approximation: the time of
# a value with its gradient (mode, factor, inverse), and of the mode alone next to kernlab's
# gausspr(), which computes nothing else. Bernoulli, three inputs, lengthscale and sd held.
# STATCL_BENCH_SIZES="500,2000" are the sizes; the engine is that of the session.
# Then fits to binary observations and counts over the plane, next to mgcv's gam() (thin plate
# splines with 200 columns, REML): time, and mean deviance of as many observations held out.
# Then fits by Student's t to data with outliers: whether they end, and where.

library(statcl)
sizes <- as.numeric(strsplit(Sys.getenv("STATCL_BENCH_SIZES", "500,2000"), ",")[[1L]])
least <- function(code, times) {
  min(vapply(seq_len(times), function(i) system.time(code(i))[["elapsed"]], 0))
}
for (n in sizes) {
  set.seed(1)
  x <- matrix(runif(3 * n), n)
  y <- factor(rbinom(n, 1, plogis(4 * sin(5 * x[, 1L]) + x[, 2L])))
  held <- c(sd = 1, lengthscale = 0.5)
  fit <- cl_gp(x, y, k_exp_quad(), family = "bernoulli_logit", mean = 0, ard = FALSE, fixed = held)
  f <- statcl:::gp_function(statcl:::gp_problem(fit))
  times <- if (n > 4000) 1L else 3L
  f(held)
  # other parameters each time, and a new function for the mode, so that no search starts at its end
  gradient <- least(function(i) f(held * (1 + 0.1 * i)), times)
  mode <- least(function(i) statcl:::gp_function(statcl:::gp_problem(fit))(held, FALSE), times)
  peer <- NA
  if (n <= 4000 && requireNamespace("kernlab", quietly = TRUE)) {
    peer <- least(function(i) {
      kernlab::gausspr(x, y, kernel = "rbfdot", kpar = list(sigma = 2), scaled = FALSE, tol = 1e-6)
    }, 1L)
  }
  cat(sprintf("n = %5d: value with gradient %.3f s, value %.3f s, kernlab's mode %.3f s\n", n,
              gradient, mode, peer))
}

# ---- fits next to mgcv ---------------------------------------------------------------------------

# A field of 60 waves of random direction, standard deviation 1, with details of 0.1 of the side.
field <- function(x) {
  set.seed(7)
  wave <- matrix(rnorm(120, sd = 9), 60)
  shift <- runif(60, 0, 2 * pi)
  rowSums(cos(sweep(x %*% t(wave), 2L, shift, `+`))) * sqrt(2 / 60)
}
unit_deviance <- function(family, y, mean) {
  switch(family,
    binomial = -2 * ifelse(y == 1, log(mean), log1p(-mean)),
    poisson = 2 * (ifelse(y > 0, y * log(y / mean), 0) - (y - mean)))
}
for (n in sizes) for (family in c("binomial", "poisson")) {
  set.seed(n)
  d <- data.frame(a = runif(2 * n), b = runif(2 * n))
  f <- field(as.matrix(d))
  truth <- if (family == "binomial") plogis(2 * f) else exp(0.5 + 0.7 * f)
  d$y <- if (family == "binomial") rbinom(2 * n, 1, truth) else rpois(2 * n, truth)
  train <- d[seq_len(n), ]
  test <- d[-seq_len(n), ]
  show <- function(what, fit_it) {
    time <- system.time(fit <- fit_it())
    mean <- as.vector(predict(fit, test, type = "response"))
    cat(sprintf("%s, n = %5d, %s: fit %.1f s (processor %.1f s), deviance held out %.4f\n", family,
                n, what, time[["elapsed"]], sum(time[1:2]),
                mean(unit_deviance(family, test$y, mean))))
  }
  if (n <= 2000) {
    show("exact process", function() cl_gp(y ~ a + b, train, k_matern52(), family = family,
                                           ard = FALSE, starts = 1))
  }
  show("Vecchia's approximation", function() cl_gp(y ~ a + b, train, k_matern52(), family = family,
                                                   ard = FALSE, starts = 1, approx = "vecchia",
                                                   neighbours = 20))
  if (requireNamespace("mgcv", quietly = TRUE)) {
    show("mgcv's gam()", function() {
      mgcv::gam(y ~ s(a, b, k = min(200, n / 4)), family = family, data = train, method = "REML")
    })
  }
  cat(sprintf("%s, n = %5d, the true means: deviance %.4f\n", family, n,
              mean(unit_deviance(family, test$y, truth[-seq_len(n)]))))
}

# ---- outliers ------------------------------------------------------------------------------------

outliers <- list(
  mcycle = list(accel ~ times, MASS::mcycle), stackloss = list(stack.loss ~ ., stackloss),
  faithful = list(waiting ~ eruptions, faithful), cars = list(dist ~ speed, cars),
  ozone = list(Ozone ~ Temp + Wind, na.omit(airquality)),
  phones = list(calls ~ year, as.data.frame(MASS::phones)),
  boston = list(medv ~ rm + lstat, MASS::Boston[seq(1, 506, 2), ]),
  animals = list(log(brain) ~ log(body), MASS::Animals),
  nile = list(y ~ t, data.frame(t = 1871:1970, y = as.vector(Nile))),
  lynx = list(y ~ t, data.frame(t = 1821:1934, y = as.vector(log(lynx)))))
for (n in c(40, 150)) {
  set.seed(n)
  d <- data.frame(a = runif(n), b = runif(n))
  d$y <- 2 * sin(5 * d$a) + d$b + 0.1 * rt(n, 3) + 3 * (seq_len(n) %% 10 == 5)
  outliers[[sprintf("gross_%d", n)]] <- list(y ~ a + b, d)
}
for (name in names(outliers)) for (ard in c(TRUE, FALSE)) {
  set <- outliers[[name]]
  if (!ard && length(all.vars(set[[1L]])) == 2L && name != "stackloss") next
  time <- system.time(fit <- suppressWarnings(
    cl_gp(set[[1L]], set[[2L]], k_matern52(), family = "student_t", ard = ard, starts = 1)))
  cat(sprintf("%-10s n = %3d, ard = %-5s: %s, log likelihood %.3f, %d not definite, %.1f s\n",
              name, nrow(fit$x), ard, if (fit$converged) "converged" else "NOT CONVERGED",
              fit$logLik, fit$not_pd, sum(time[1:2])))
}
