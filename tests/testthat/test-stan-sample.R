# Sampling Stan programs.

schools <- "data { int J; vector[J] y; vector<lower=0>[J] sigma; }
  parameters { real mu; real<lower=0> tau; vector[J] z; }
  transformed parameters { vector[J] theta = mu + tau * z; }
  model { mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ std_normal(); y ~ normal(theta, sigma); }
  generated quantities { vector[J] log_lik; matrix[2, 2] m = [[mu, tau], [1, 2]];
    array[J] real rep = normal_rng(theta, sigma);
    for (j in 1:J) log_lik[j] = normal_lpdf(y[j] | theta[j], sigma[j]); }"
data <- list(J = 8, y = c(28, 8, -3, 7, -1, 1, 18, 12), sigma = c(15, 10, 16, 11, 9, 11, 10, 18))

test_that("a program is sampled as a plain R function is", {
  m <- cl_stan(code = schools)
  b <- m(data)
  quiet <- function(code) suppressWarnings(code)
  fit <- quiet(cl_sample(b, chains = 2, warmup = 100, iter = 50, seed = 1, refresh = 0))
  expect_identical(dim(fit$draws), c(50L, 2L, 38L))
  names <- dimnames(fit$draws)[[3]]
  expect_identical(names[c(1, 2, 3, 11, 19, 27, 28, 31)],
                   c("mu", "tau", "z[1]", "theta[1]", "log_lik[1]", "m[1,1]", "m[2,1]", "rep[1]"))
  draws <- as.matrix(fit)
  expect_equal(draws[, "theta[3]"], draws[, "mu"] + draws[, "tau"] * draws[, "z[3]"])
  expect_equal(draws[, "log_lik[2]"], dnorm(8, draws[, "theta[2]"], 10, log = TRUE))
  f <- cl_gradient(function(u) {
    tau <- exp(u[2])
    z <- u[3:10]
    dnorm(u[1], 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE) + u[2] +
      sum(dnorm(z, log = TRUE)) + sum(dnorm(data$y, u[1] + tau * z, data$sigma, log = TRUE))
  })
  short <- function(f, ...) {
    as.matrix(quiet(cl_sample(f, ..., chains = 2, warmup = 20, iter = 3, seed = 1, refresh = 0)))
  }
  expect_equal(unname(short(f, numeric(10), start = "random")[, 1]), unname(short(b)[, "mu"]),
               tolerance = 1e-4)
  again <- quiet(cl_sample(m, data = data, chains = 2, warmup = 100, iter = 50, seed = 1,
                           refresh = 0))
  expect_identical(again$draws, fit$draws)
  expect_identical(rownames(fit$bounds)[fit$bounds[, 1] == 0], "tau")
  expect_equal(mean(cl_generate(fit, function(mu, m) m[1, 1] - mu)), 0)
  more <- quiet(cl_sample(b, fit, chains = 1, warmup = 20, iter = 20, seed = 1, refresh = 0))
  expect_identical(dim(more$draws), c(20L, 1L, 38L))
})

test_that("modes and approximations", {
  b <- cl_stan(code = "data { int N; vector[N] y; } parameters { real m; real<lower=0> s; }
    model { y ~ normal(m, s); } generated quantities { real v = s^2; }")(
      list(N = 10, y = (1:10) / 3))
  mode <- cl_optimise(b, list(m = 1, s = 1))
  s <- sqrt(mean(((1:10) / 3 - 5.5 / 3)^2))
  expect_equal(coef(mode), c(m = 5.5 / 3, s = s), tolerance = 1e-6)
  expect_equal(unname(sqrt(diag(vcov(mode)))), s / sqrt(c(10, 20)), tolerance = 1e-4)
  x <- cl_laplace(b, seed = 1, draws = 50)
  expect_identical(dimnames(x$draws)[[3]], c("m", "s", "v"))
  expect_equal(x$draws[, 1, "v"], x$draws[, 1, "s"]^2)
})

test_that("what takes a log density takes a program with data, too", {
  m <- cl_stan(code = "data { int N; vector[N] y; } parameters { real m; real<lower=0> s; }
    model { y ~ normal(m, s); } generated quantities { real v = s^2; }")
  d <- list(N = 10, y = (1:10) / 3)
  mode <- cl_optimise(m, data = d)
  expect_equal(coef(mode), coef(cl_optimise(m(d))))
  expect_gt(mode$evaluations, 10)
  for (f in list(cl_laplace, cl_pathfinder, cl_vi)) {
    expect_equal(suppressWarnings(f(m, data = d, draws = 20, seed = 1))$draws,
                 suppressWarnings(f(m(d), draws = 20, seed = 1))$draws)
  }
  expect_fault(cl_optimise(m), "stan", variable = "N")
  expect_fault(cl_optimise(m, list(m = 1, sd = 2), data = d), "argument", argument = "init",
               message = "the model has no parameter 'sd': its parameters are m, s")
  expect_fault(cl_optimise(m, list(m = 1, s = -2), data = d), "argument", argument = "init")
})

test_that("a search goes around points where the program fails", {
  f <- cl_stan(code = "parameters { real a; } model { matrix[2, 2] S = [[1, a], [a, 1]];
    if (a > 0.98) reject(\"a\");
    [1, 2]' ~ multi_normal_cholesky([0, 0]', cholesky_decompose(S)); }")
  mode <- cl_optimise(f, list(a = -0.9), data = list())
  density <- function(a) -log(1 - a^2) / 2 - (5 - 4 * a) / (2 * (1 - a^2))
  expect_equal(coef(mode)[["a"]], optimise(density, c(-0.99, 0.98), maximum = TRUE,
                                           tol = 1e-9)$maximum, tolerance = 1e-6)
})

test_that("a program's quantities at the draws of another one", {
  d <- list(J = 8, y = data$y, sigma = data$sigma)
  fit <- suppressWarnings(cl_sample(cl_stan(code = schools), data = d, chains = 2, warmup = 50,
                                    iter = 20, seed = 1, refresh = 0))
  other <- cl_stan(code = "data { int K; } parameters { real<lower=0> tau; vector[K] z; }
    transformed parameters { matrix[2, 2] m = [[tau, z[1]], [z[K], 1]]; }
    generated quantities { real r = normal_rng(0, 1); vector[2] q = z[1:2] * tau;
      if (tau < 1) reject(\"small\"); }")
  found <- suppressWarnings(cl_generate(fit, other, seed = 1, data = list(K = 8)))
  expect_identical(dimnames(found)$variable,
                   c("m[1,1]", "m[2,1]", "m[1,2]", "m[2,2]", "r", "q[1]", "q[2]"))
  x <- fit$draws
  kept <- x[, , "tau"] >= 1
  expect_equal(found[, , "m[2,1]"][kept], x[, , "z[8]"][kept])
  expect_equal(found[, , "q[2]"][kept], (x[, , "z[2]"] * x[, , "tau"])[kept])
  expect_identical(is.nan(found[, , "r"]), !kept, ignore_attr = TRUE)
  expect_identical(suppressWarnings(cl_generate(fit, other(list(K = 8)), seed = 1)), found)
  expect_fault(cl_generate(fit, cl_stan(code = "parameters { real b; }
    generated quantities { real c = b; }")), "argument", argument = "fit")
  expect_fault(cl_generate(fit, cl_stan(code = "parameters { real mu; }")), "argument",
               argument = "f")
  expect_fault(cl_generate(fit, cl_stan(code = "parameters { real<upper=-99> mu; }
    generated quantities { real c = mu; }")), "argument", argument = "fit")
})

test_that("the sampler calibrates a program", {
  m <- cl_stan(code = "data { int N; array[N] int y; } parameters { real<lower=0> l; }
    model { l ~ exponential(1); y ~ poisson(l); }")
  simulate <- function() {
    l <- rexp(1)
    list(parameters = list(l = l), data = list(N = 3, y = rpois(3, l)))
  }
  result <- suppressWarnings(cl_calibrate(simulate, m, replicates = 3, draws = 9, warmup = 100,
                                          seed = 1))
  expect_identical(nrow(result$ranks), 3L)
})

test_that("printing", {
  m <- cl_stan(code = schools)
  expect_output(print(m), "parameters: real mu; real tau; vector\\[J\\] z")
  expect_output(print(m(data)), "10 numbers")
})

test_that("a program has the same density on each engine", {
  d <- list(N = 40, J = 4, y = cos(1:40), g = rep(1:4, 10))
  m <- cl_stan(code = "data { int N; int J; vector[N] y; array[N] int g; }
    parameters { vector[J] a; real<lower=0> s; }
    model { for (n in 1:N) y[n] ~ normal(a[g[n]], s); a ~ normal(0, 1); }")
  at <- function() m(d)$unconstrained(c(0.1, -0.2, 0.3, 0.4, 0.2))
  want <- on_host(at())
  each_engine({
    found <- at()
    expect_close(as.vector(found), as.vector(want))
    expect_close(attr(found, "gradient"), attr(want, "gradient"))
  })
})

test_that("draws that generated quantities reject are NaN there", {
  model <- cl_stan(code = "parameters { real a; } model { a ~ normal(0, 1); }
    generated quantities { real z = a; if (a > 0) reject(\"positive\"); }")
  with_cl(engine = "host", {
    expect_warning(fit <- cl_sample(model, data = list(), chains = 1, warmup = 100, iter = 50,
                                    seed = 1, refresh = 0), class = "statcl_warning_stan")
  })
  draws <- as.array(fit)
  expect_identical(is.nan(draws[, 1, "z"]), draws[, 1, "a"] > 0)
  few <- function(code) {
    cl_sample(cl_stan(code = sprintf("parameters { real a; } model { a ~ normal(0, 1); }
      generated quantities { vector[2] z = [1, a]'; %s }", code)), data = list(), chains = 1,
      warmup = 20, iter = 20, seed = 1, refresh = 0)
  }
  with_cl(engine = "host", {
    expect_warning(fit <- few("if (a < 0) z[3] = 1;"), "line 2: index 3 of 'z' is out of bounds")
    expect_error(few("fatal_error(\"stop\");"), "stop", class = "statcl_error_stan")
  })
  draws <- as.array(fit)
  expect_identical(is.nan(draws[, 1, "z[1]"]), draws[, 1, "a"] < 0)
})

test_that("points of infinite density are rejected", {
  b <- cl_stan(code = "parameters { real a; } model { a ~ std_normal();
               if (a > 0.5) target += positive_infinity(); }")()
  expect_equal(as.vector(b$unconstrained(0.2)), dnorm(0.2, log = TRUE))
  expect_true(is.nan(b$unconstrained(0.7)))
  fit <- suppressWarnings(cl_sample(b, chains = 2, warmup = 100, iter = 100, seed = 1, refresh = 0))
  expect_true(all(as.matrix(fit) <= 0.5))
})

test_that("the error of points that fail names the line, and parameters on their own scale", {
  b <- cl_stan(code = "parameters { real<lower=0, upper=4> s; }
    model {
      target += log(s - 5);
    }")()
  message <- tryCatch(cl_sample(b, chains = 1, warmup = 50, iter = 5, seed = 1, refresh = 0),
                      error = conditionMessage)
  expect_match(message, "line 3: log\\(\\): NaN at s = [0-9]")
})
