# Simulation-based calibration: cl_calibrate().

skip_on_cran() # long; run by ./dev check

simulate <- function() {
  mu <- stats::rnorm(1)
  sigma <- stats::rexp(1)
  list(parameters = list(mu = mu, sigma = sigma), data = stats::rnorm(5, mu, sigma))
}
# The prior of sigma is exponential(1).
model <- function(y) {
  cl_log_posterior(~ dnorm(y, mu, sigma, log = TRUE), ~ dnorm(mu, 0, 1, log = TRUE), ~ -sigma)
}
calibrate <- function(model, replicates, ..., draws = 19, seed = 1) {
  cl_calibrate(simulate, model, replicates, draws = draws, warmup = 100, seed = seed, refresh = 0,
               transform = list(sigma = cl_lower(0)), ...)
}
# Bands by simulation of uniform ranks: how often all counts lie within.
within_bands <- function(n, draws, p, times) {
  bands <- count_bands(n, draws, p)
  mean(replicate(times, {
    at <- counts_below(sample.int(draws + 1L, n, TRUE) - 1L, draws)
    all(at >= bands[, 1] & at <= bands[, 2])
  }))
}

test_that("the p-value is exact: by hand, by all cases, by simulation", {
  # one rank of 0, 1: one count, which is binomial(1, 1/2)
  expect_equal(uniform_p(0L, 1), 1)
  # ranks 0, 1, 2 of three replicates: all 27 cases
  cases <- as.matrix(expand.grid(0:2, 0:2, 0:2))
  least <- apply(cases, 1, function(r) least_p(as.integer(r), 2))
  p <- apply(cases, 1, function(r) uniform_p(as.integer(r), 2))
  expect_equal(p, vapply(least, function(l) mean(least <= l * (1 + 1e-9)), 0))
  set.seed(1)
  for (size in list(c(40, 9), c(200, 30))) {
    level <- band_level(size[1], size[2], 0.9)
    chance <- band_probability(size[1], size[2], level)
    expect_gte(chance, 0.9)
    expect_lt(chance, 0.97)
    found <- within_bands(size[1], size[2], level, 4000)
    expect_lt(abs(found - chance), 4 * sqrt(0.1 * 0.9 / 4000))
  }
  # the p-value of uniform ranks is uniform, of others small
  p <- replicate(400, uniform_p(sample.int(20L, 50, TRUE) - 1L, 19))
  expect_lt(abs(mean(p < 0.2) - 0.2), 4 * sqrt(0.16 / 400))
  expect_lt(uniform_p(rep(0:9, 6), 19), 1e-10)
})

test_that("a right model passes and wrong ones fail, each with its reason", {
  # with three numbers of the test the threshold is 1e-3 / 3: a seed that passes is not chosen
  right <- on_host(calibrate(model, 60))
  expect_gt(min(summary(right)$p_adjusted), 1e-3)
  expect_identical(colnames(right$ranks), c("mu", "sigma", "log_density"))
  expect_true(all(right$diagnostics$size >= 19))
  expect_output(print(right), "no sign that ranks are not uniform")
  # a likelihood that counts the data four times; one that ignores them
  narrow <- function(y) {
    cl_log_posterior(~ 4 * dnorm(y, mu, sigma, log = TRUE), ~ dnorm(mu, 0, 1, log = TRUE), ~ -sigma)
  }
  wrong <- on_host(calibrate(narrow, 60))
  expect_lt(min(summary(wrong)$p_adjusted), 1e-3)
  expect_output(print(wrong), "draws vary too little")
  shifted <- function(y) {
    cl_log_posterior(~ dnorm(y + 2, mu, sigma, log = TRUE), ~ dnorm(mu, 0, 1, log = TRUE), ~ -sigma)
  }
  expect_output(print(on_host(calibrate(shifted, 60))), "mu: the ranks .* draws are too large")
  # the prior is right for each parameter: only the log likelihood shows that data are ignored
  prior <- function(y) cl_log_posterior(~ dnorm(mu, 0, 1, log = TRUE), ~ -sigma)
  fit <- on_host(calibrate(prior, 80, quantities = function(parameters, y) {
    c(log_likelihood = sum(stats::dnorm(y, parameters$mu, parameters$sigma, log = TRUE)))
  }))
  p <- stats::setNames(summary(fit)$p_adjusted, summary(fit)$quantity)
  expect_gt(min(p[c("mu", "sigma", "log_density")]), 1e-3)
  expect_lt(p[["log_likelihood"]], 1e-3)
})

test_on_host("ranks depend on the seed only: with workers, more replicates, a checkpoint", {
  first <- calibrate(model, 12)
  expect_false(identical(first$ranks, calibrate(model, 12, seed = 2)$ranks))
  set.seed(3)
  kept <- .Random.seed
  expect_identical(calibrate(model, 12, workers = 2)$ranks, first$ranks)
  expect_identical(.Random.seed, kept)
  expect_identical(calibrate(model, 5)$ranks, first$ranks[1:5, ])
  file <- tempfile(fileext = ".rds")
  calibrate(model, 5, checkpoint = file)
  calls <- 0
  counted <- function(y) {
    calls <<- calls + 1
    model(y)
  }
  expect_identical(calibrate(counted, 12, checkpoint = file)$ranks, first$ranks)
  expect_equal(calls, 8) # the seven that are left, and one that shows that the model is the same
  expect_identical(calibrate(model, 5, checkpoint = file)$ranks, first$ranks[1:5, ])
  expect_identical(calibrate(model, 12, checkpoint = file)$ranks, first$ranks)
  expect_fault(calibrate(function(y) model(2 * y), 12, checkpoint = file), "checkpoint")
  expect_fault(calibrate(model, 12, checkpoint = file, adapt_delta = 0.9), "checkpoint")
})

test_on_host("an error has the number of the replicate, and what was made is kept", {
  whole <- calibrate(model, 10)
  file <- tempfile(fileext = ".rds")
  count <- 0
  failing <- function(y) {
    count <<- count + 1
    if (count > 4) stop("no more")
    model(y)
  }
  e <- tryCatch(calibrate(failing, 10, checkpoint = file), statcl_error_argument = identity)
  expect_match(conditionMessage(e), "replicate 5: 'model' failed: no more")
  expect_identical(e$replicate, 5L)
  expect_identical(e$calibration$ranks, whole$ranks[1:4, ])
  expect_identical(calibrate(model, 10, checkpoint = file)$ranks, whole$ranks)
  # of one worker only, and with the class of a density
  here <- Sys.getpid()
  worse <- function(y) {
    f <- model(y)
    function(mu, sigma) {
      if (Sys.getpid() != here) stop("only there")
      f(mu = mu, sigma = sigma)
    }
  }
  unlink(file)
  e <- tryCatch(calibrate(worse, 10, workers = 2, checkpoint = file),
                statcl_error_density = identity)
  expect_s3_class(e, "statcl_error_density")
  expect_match(conditionMessage(e), "replicate [0-9]+: 'log_density' failed: only there")
  expect_identical(calibrate(worse, 10, checkpoint = file)$ranks, calibrate(worse, 10)$ranks)
})

test_that("an interrupt leaves the replicates that were made", {
  skip_on_os("windows")
  on_host({
    whole <- calibrate(model, 6)
    count <- 0
    stopping <- function(y) {
      count <<- count + 1
      if (count == 4) signalCondition(structure(class = c("interrupt", "condition"),
                                                list(message = "", call = NULL)))
      model(y)
    }
    expect_warning(fit <- calibrate(stopping, 6), class = "statcl_warning_interrupted")
    expect_false(fit$complete)
    expect_identical(fit$ranks, whole$ranks[1:3, ])
    expect_output(print(fit), "3 replicates, .*interrupted")
  })
})

test_that("draws of other algorithms, vectors, starts, conversions and plots", {
  on_host({
    one <- function() {
      theta <- c(a = stats::rnorm(1), b = stats::rnorm(1))
      list(parameters = theta, data = stats::rnorm(2, theta, 0.5))
    }
    density <- function(y) {
      function(x) structure(-sum(x^2) / 2 - sum((y - x)^2) * 2, gradient = -x + 4 * (y - x))
    }
    # the posterior is normal, so Laplace's approximation is exact
    exact <- cl_calibrate(one, function(y) cl_laplace(density(y), c(a = 0, b = 0), draws = 39),
                          replicates = 60, draws = 39, seed = 4)
    expect_gt(min(summary(exact)$p_adjusted), 1e-3)
    expect_identical(colnames(exact$ranks), c("a", "b"))
    fit <- cl_calibrate(one, density, replicates = 4, draws = 9, warmup = 50, seed = 1,
                        init = function(y) c(a = y[1], b = y[2]), refresh = 0, thin = 2)
    expect_true(all(fit$diagnostics$thin == 2))
    frame <- as.data.frame(fit)
    expect_equal(dim(frame), c(12L, 5L))
    expect_equal(frame$rank[frame$quantity == "b"], unname(fit$ranks[, "b"]))
    expect_true(all(frame$rank >= 0 & frame$rank <= 9))
    grDevices::pdf(NULL)
    on.exit(grDevices::dev.off())
    expect_identical(plot(fit), fit)
    expect_message(plot(fit, max = 1), "showing 1 of 3 quantities")
    # equal values have random ranks: a parameter that is always 0 in the model and in the truth
    still <- function(parameters, y) c(zero = 0)
    tied <- cl_calibrate(one, density, replicates = 40, draws = 9, warmup = 30, seed = 1,
                         quantities = still, refresh = 0)
    expect_gt(length(unique(tied$ranks[, "zero"])), 5)
  })
  told <- utils::capture.output(type = "message", on_host(calibrate(model, 4, workers = 1)))
  expect_length(told, 0)
  told <- utils::capture.output(type = "message", on_host(
    cl_calibrate(simulate, model, replicates = 4, draws = 2, warmup = 20, seed = 1, refresh = 2,
                 transform = list(sigma = cl_lower(0)))))
  expect_match(told[1], "replicate 2 of 4, .* left")
})

test_each_engine("a device's ranks are those of the host, but for rounding", {
  data <- as.double(1:5)
  fit <- calibrate(function(y) cl_gradient(function(mu, sigma) {
    sum(dnorm(y, mu, sigma, log = TRUE)) + dnorm(mu, 0, 1, log = TRUE) - sigma
  }), 6)
  expect_equal(dim(fit$ranks), c(6L, 3L))
  again <- with_cl(calibrate(model, 6), engine = "host")
  expect_equal(fit$values, again$values, tolerance = 1e-10)
})
