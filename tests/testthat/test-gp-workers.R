# Starting points of Gaussian processes in worker processes.

skip_on_cran() # long; run by ./dev check

# BLAS may use other numbers of threads in a worker, and round differently.
expect_same_fit <- function(a, b) {
  fields <- c("par", "objective", "trials", "coefficients")
  expect_equal(a[fields], b[fields], tolerance = 1e-6)
  expect_equal(a$evaluations, b$evaluations, tolerance = 0.05)
}

curve_data <- local({
  set.seed(4)
  x <- sort(runif(60, 0, 10))
  list(x = x, y = sin(3 * x) + 0.3 * x + rnorm(60, sd = 0.2))
})

test_on_host("starts in workers give the same fit: normal, many observations, counts, Vecchia", {
  skip_on_os("windows")
  cluster <- parallel::makePSOCKcluster(2)
  on.exit(parallel::stopCluster(cluster))
  fits <- list(
    function(...) cl_gp(curve_data$x, curve_data$y, k_exp_quad(), starts = 2, ...),
    function(...) {
      x <- seq(0, 20, length.out = 520)
      cl_gp(x, sin(x) + 0.1 * cos(37 * seq_along(x)), starts = 2, ...)
    },
    function(...) cl_gp(carb ~ wt, mtcars, family = "poisson_log", starts = 2, ...),
    function(...) cl_gp(curve_data$x, curve_data$y, starts = 2, approx = "vecchia",
                        neighbours = 8, ...))
  for (fit in fits) expect_same_fit(fit(workers = cluster), fit())
  expect_same_fit(fits[[1L]](workers = 2), fits[[1L]]())
  # kernels and priors that use functions of the session
  double <- function(v) 2 * v
  environment(double) <- globalenv()
  prior <- function(v) -double(v)
  alone <- cl_gp(dist ~ speed, cars, method = "map", prior = list(noise = prior), starts = 2)
  expect_same_fit(cl_gp(dist ~ speed, cars, method = "map", prior = list(noise = prior),
                        starts = 2, workers = cluster), alone)
  draws <- function(...) suppressWarnings(cl_gp(dist ~ speed, cars, method = "mcmc", starts = 1,
    control = list(chains = 2, warmup = 40, iter = 40, seed = 1), ...))
  expect_equal(draws(workers = cluster)$draws$draws, draws()$draws$draws, tolerance = 1e-4)
  expect_refused("workers", cl_gp(dist ~ speed, cars, workers = 0))
  expect_fault(cl_gp(c(1, 1, 2), c(1, 2, 3), fixed = c(noise = 0), workers = cluster), "not_pd")
  expect_same_fit(fits[[1L]](workers = cluster), fits[[1L]]()) # the cluster is still usable
})

test_that("the share of a lost worker is done by another one, with the same fit", {
  skip_on_os("windows")
  in_new_session(c(
    "cl_use(engine = 'host')",
    "set.seed(4); x <- sort(runif(60, 0, 10)); y <- sin(3 * x) + rnorm(60, sd = 0.2)",
    "file <- tempfile(); main <- Sys.getpid()",
    # the first evaluation in any other process ends that process
    "kernel <- k_user(function(x1, x2, p) {",
    # (only one process can create a folder)
    "  if (Sys.getpid() != main && dir.create(file, showWarnings = FALSE)) {",
    "    tools::pskill(Sys.getpid(), 9); Sys.sleep(5)",
    "  }",
    "  p[['s']]^2 * exp(-cl_distance(x1, x2, squared = TRUE) / (2 * p[['l']]^2))",
    "}, c(s = 1, l = 1))",
    "fit <- function(...) cl_gp(x, y, kernel, starts = 1 + 1, ...)",
    "alone <- fit()",
    "told <- character()",
    "other <- withCallingHandlers(fit(workers = 2), statcl_warning_worker = function(w) {",
    "  told <<- c(told, conditionMessage(w)); invokeRestart('muffleWarning')",
    "})",
    "stopifnot(length(told) == 1, grepl('goes on in another one', told), file.exists(file))",
    "stopifnot(isTRUE(all.equal(alone$par, other$par, tolerance = 1e-6)))"), timeout = 120)
})
