small_fit <- function(...) {
  cl_sample(standard_normal, c(a = 0, b = 0), chains = 3, warmup = 100, iter = 80, seed = 1, ...)
}

# ---- the result ----------------------------------------------------------------------------------

test_that("the result has its parts and conversions", {
  fit <- small_fit()
  expect_identical(dim(fit$draws), c(80L, 3L, 2L))
  expect_identical(as.array(fit), fit$draws)
  m <- as.matrix(fit)
  expect_identical(dim(m), c(240L, 2L))
  expect_identical(unname(m[81:160, "b"]), unname(fit$draws[, 2, "b"]))
  d <- as.data.frame(fit)
  expect_named(d, c(".chain", ".iteration", ".draw", "a", "b"))
  expect_identical(d$a[d$.chain == 3 & d$.iteration == 5], fit$draws[[5, 3, "a"]])
  expect_identical(d$.draw, 1:240)
  for (name in names(fit$diagnostics)) expect_identical(dim(fit$diagnostics[[name]]), c(80L, 3L))
  expect_named(fit$diagnostics, c("accept_stat", "step_size", "tree_depth", "leapfrogs",
                                  "divergent", "energy", "log_density"))
  expect_equal(fit$diagnostics$log_density, unname(-apply(fit$draws^2, 1:2, sum)) / 2)
  expect_true(all(fit$diagnostics$energy >= -fit$diagnostics$log_density))
  expect_identical(fit$diagnostics$leapfrogs >= 2^(fit$diagnostics$tree_depth) - 1,
                   matrix(TRUE, 80, 3))
  expect_true(fit$complete)
  expect_identical(fit$call[[1]], quote(cl_sample))
})

test_that("the warm-up is kept on request, and the draws are the same", {
  fit <- small_fit(save_warmup = TRUE)
  expect_identical(dim(fit$warmup$draws), c(100L, 3L, 2L))
  expect_identical(fit$draws, small_fit()$draws)
  expect_null(small_fit()$warmup)
})

test_that("print, summary and plot show what they should", {
  fit <- small_fit()
  expect_output(print(fit), "3 chains of 80 iterations each after 100 of warm-up \\(NUTS\\)")
  table <- summary(fit, "b", probs = 0.25)
  expect_s3_class(table, "summary.cl_sample")
  expect_named(table, c("parameter", "mean", "mcse", "sd", "25%", "ess_bulk", "ess_tail", "rhat"))
  expect_equal(table$mean, mean(fit$draws[, , "b"]))
  expect_equal(table[["25%"]], unname(quantile(fit$draws[, , "b"], 0.25)))
  expect_output(print(table), "ess_bulk")
  expect_refused("parameters", summary(fit, "c"))
  expect_refused("probs", summary(fit, probs = 2))
  many <- cl_sample(standard_normal, numeric(12), chains = 1, warmup = 50, iter = 20, seed = 1)
  expect_output(print(many), "and 2 more parameters")
  expect_identical(nrow(summary(many, "par")), 12L)
  file <- tempfile(fileext = ".pdf")
  pdf(file)
  on.exit(unlink(file))
  old <- par("mfrow")
  plot(fit)
  expect_identical(par("mfrow"), old)
  suppressMessages(plot(many))
  dev.off()
  expect_gt(file.size(file), 5000)
  expect_refused("parameters", plot(fit, "c"))
})

test_that("plot() reports that it shows some parameters only, and shows more on request", {
  fit <- cl_sample(standard_normal, numeric(12), chains = 1, warmup = 50, iter = 20, seed = 1)
  pdf(NULL)
  on.exit(dev.off())
  shown <- function(...) { # two pictures a parameter
    pictures <- 0
    old <- getHook("before.plot.new")
    on.exit(setHook("before.plot.new", old, "replace"))
    setHook("before.plot.new", function() pictures <<- pictures + 1)
    plot(fit, ...)
    pictures / 2
  }
  expect_message(expect_equal(shown(), 6), "showing 6 of 12 parameters")
  expect_message(expect_equal(shown(max = 3), 3), "showing 3 of 12")
  expect_silent(expect_equal(shown(max = 12), 12))
  expect_silent(expect_equal(shown("par"), 12))
  expect_silent(expect_equal(shown("par[7]"), 1))
  expect_refused("max", plot(fit, max = 0))
})

test_that("densities of bounded parameters stay within their bounds, with all of their mass", {
  density <- function(sd, p, q, low, free) {
    with_slope(-sd - free^2 / 2 + low, list(sd = -1, p = 0, q = c(0, 0), low = 1, free = -free))
  }
  fit <- cl_sample(density, list(sd = 1, p = 0.5, q = c(0.5, 0.5), low = -1, free = 0), seed = 1,
                   transform = list(sd = cl_lower(0), p = cl_bounds(0, 1), q = cl_simplex(),
                                    low = cl_upper(0)), chains = 1, warmup = 200, iter = 2000)
  expect_identical(fit$bounds, matrix(c(0, 0, 0, 0, -Inf, -Inf, Inf, 1, 1, 1, 0, Inf), 6,
                                      dimnames = list(dimnames(fit$draws)[[3]],
                                                      c("lower", "upper"))))
  for (name in rownames(fit$bounds)) {
    x <- fit$draws[, 1, name]
    curve <- bounded_density(x, fit$bounds[name, ])
    expect_identical(range(curve$x), range(x))
    mass <- sum(diff(curve$x) * (curve$y[-1] + curve$y[-512]) / 2)
    expect_equal(mass, 1, tolerance = 0.01, label = name)
    # no fall towards a bound
    if (name == "sd") expect_equal(curve$y[1], 1, tolerance = 0.2)
    if (name == "p") expect_equal(curve$y[c(1, 512)], c(1, 1), tolerance = 0.25)
  }
  # without bounds, too, the curve does not extend beyond the draws
  expect_gt(min(bounded_density(rexp(200))$x), 0)
  pdf(NULL)
  on.exit(dev.off())
  expect_silent(plot(fit))
  expect_silent(plot(cl_sample(standard_normal, 0, chains = 2, warmup = 30, iter = 1, seed = 1)))
})

test_that("a stuck chain and too few draws are handled", {
  fit <- quiet_sample(function(x) with_slope(if (x[1] == 1) 0 else -1e4, 0 * x), c(1, 2),
                      chains = 1, warmup = 0, iter = 30, step_size = 0.1, seed = 1)
  table <- summary(fit)
  expect_identical(table$sd, c(0, 0))
  expect_true(all(is.na(table$ess_bulk)) && all(is.na(table$rhat)))
  expect_output(print(fit), "diverged")
  one <- cl_sample(standard_normal, 0, chains = 1, warmup = 50, iter = 1, seed = 1)
  expect_output(print(one), "1 chain of 1 iteration ")
  expect_identical(dim(as.matrix(one)), c(1L, 1L))
})

test_that("as_draws() gives draws of the package posterior", {
  expect_identical(names(dimnames(as_draws.cl_sample(small_fit()))),
                   c("iteration", "chain", "variable"))
  draws <- as_draws.cl_sample(small_fit())
  expect_s3_class(draws, c("draws_array", "draws", "array"), exact = TRUE)
  expect_identical(as.vector(draws), as.vector(small_fit()$draws))
})

# ---- R-hat and effective sample size -------------------------------------------------------------

test_that("R-hat and effective sizes agree with the package posterior", {
  # figures by posterior 1.4.0
  x <- outer(1:200, 1:4, function(i, j) {
    sin(i * (j + 0.3)) + cos(i^2 / 7 + j) + 0.2 * j * sin(i / 40)
  })
  expect_equal(rhat(x), 1.0445149882243780, tolerance = 1e-12)
  expect_equal(ess_bulk(x), 293.6252130615755505, tolerance = 1e-10)
  expect_equal(ess_tail(x), 661.5699808874289829, tolerance = 1e-10)
  expect_equal(sd(x) / sqrt(effective_size(halves(x))), 0.0566287154457163, tolerance = 1e-10)
})

test_that("autocovariances agree with their sums", {
  set.seed(1)
  x <- cumsum(rnorm(37))
  off <- x - mean(x)
  expected <- vapply(0:36, function(k) sum(off[seq_len(37 - k)] * off[k + seq_len(37 - k)]) / 37, 0)
  expect_equal(autocovariance(x), expected, tolerance = 1e-12)
})

test_that("the effective size is correct for processes with a known one", {
  set.seed(2)
  for (phi in c(-0.5, 0, 0.5, 0.9)) {
    x <- if (phi == 0) {
      matrix(rnorm(20000), 5000)
    } else {
      replicate(4, as.vector(arima.sim(list(ar = phi), 5000)))
    }
    expected <- 20000 * (1 - phi) / (1 + phi)
    tolerance <- if (phi > 0.5) 0.25 else 0.12
    expect_equal(effective_size(x), expected, tolerance = tolerance)
    expect_equal(ess_bulk(x), expected, tolerance = tolerance + 0.03)
    expect_lt(abs(rhat(x) - 1), 0.01)
  }
})

test_that("R-hat detects chains that differ in location or scale, and drift", {
  set.seed(3)
  x <- matrix(rnorm(4000), 1000)
  expect_lt(rhat(x), 1.01)
  expect_gt(rhat(sweep(x, 2, c(0, 0, 0, 2), "+")), 1.1)
  expect_gt(rhat(sweep(x, 2, c(1, 1, 1, 3), "*")), 1.1)
  expect_gt(rhat(x + seq(0, 2, length.out = 1000)), 1.1)
  expect_lt(ess_bulk(sweep(x, 2, c(0, 0, 0, 3), "+")), 50)
  # with heavy tails, for which variances do not exist
  heavy <- matrix(rcauchy(4000), 1000)
  expect_lt(rhat(heavy), 1.01)
  expect_gt(ess_bulk(heavy), 3000)
})

test_that("draws far from their starts hint at an improper distribution, if there are problems", {
  separated <- cl_likelihood("bernoulli_logit", c(0, 0, 1, 1), cbind(1:4))
  run <- function(f, init) cl_sample(f, init, chains = 2, warmup = 200, iter = 200, seed = 1)
  expect_warning(fit <- run(separated, list(alpha = 0, beta = 0)), "may be improper",
                 class = "statcl_warning_sampling")
  expect_identical(fit$remote, c("alpha", "beta"))
  expect_output(print(fit), "draws of alpha, beta are far from their starts")
  # a scale of that size is no problem by itself
  wide <- function(a) structure(-(a / 1e6)^2 / 2, gradient = -a / 1e12)
  expect_warning(fit <- run(wide, c(a = 0)), NA)
  expect_identical(fit$remote, "a")
  # without iterations, as after an interrupt
  none <- array(0, c(0, 2, 1))
  expect_identical(statcl:::remote_parameters(none, list(layout = list(n = 1L))), integer())
})

test_that("a printed table fits into a line, and coef() gives the means", {
  draws <- array(rnorm(400), c(100, 2, 2),
                 list(NULL, NULL, c("(Intercept)", "a_name_of_20_letters")))
  sample <- structure(list(draws = draws), class = "cl_sample")
  table <- summary(sample)
  lines <- function(width) {
    old <- options(width = width)
    on.exit(options(old))
    capture.output(print(table))
  }
  expect_length(lines(80), 3L)
  expect_match(lines(80)[1L], "rhat")
  expect_no_match(lines(80)[1L], "mcse")
  expect_match(lines(120)[1L], "mcse")
  expect_identical(coef(sample), colMeans(as.matrix(sample)))
})
