# ---- the integrator ----------------------------------------------------------------------------

skip_on_cran() # long; run by ./dev check

# A trajectory of `steps` leapfrog steps by the code of a chain; returns its end and the energy
# error.
trajectory <- function(density, q, p, step, steps, scale = 1) {
  control <- sample_control(0, 1, "hmc", 0.8, 10, steps + 1L, "unit", step, FALSE)
  control$inverse_metric <- scale^2
  s <- reference_chain(q, control, new_stream(stream_states(1L, 1)[[1L]]))
  start <- density(q)
  s$lp <- start[[1L]]
  s$g <- attr(start, "gradient")
  s$iteration <- 1L
  s$energy0 <- 0.5 * sum(p * p) - s$lp
  s$full <- step * s$scale
  s$leapfrog <- 0L
  s$at <- begin_static(s, p)
  for (i in seq_len(steps)) {
    answer <- density(s$at)
    q <- s$at
    p <- s$p + s$half * attr(answer, "gradient")
    chain_advance(s, answer[[1L]], attr(answer, "gradient"))
  }
  list(q = q, p = p, error = 0.5 * sum(p * p) - answer[[1L]] - s$energy0)
}

test_that("the energy error of the leapfrog step is of second order", {
  q <- c(0.3, -0.8, 1.1)
  p <- c(1, -0.4, 0.2)
  errors <- vapply(c(0.02, 0.01, 0.005), function(step) {
    trajectory(quartic, q, p, step, round(0.7 / step))$error
  }, 0)
  ratios <- errors[-3L] / errors[-1L]
  expect_equal(ratios, c(4, 4), tolerance = 0.02)
  expect_lt(abs(errors[3L]), 1e-5)
})

test_that("the leapfrog step is reversible and preserves volume", {
  q <- c(0.3, -0.8)
  p <- c(1, -0.4)
  there <- trajectory(quartic, q, p, 0.1, 30, scale = c(0.5, 2))
  back <- trajectory(quartic, there$q, -there$p, 0.1, 30, scale = c(0.5, 2))
  expect_equal(back$q, q, tolerance = 1e-12)
  expect_equal(back$p, -p, tolerance = 1e-12)
  expect_gt(max(abs(there$q - q)), 0.1)
  # The Jacobian of (q, p) -> (q', p') has determinant 1; momenta are in units of 1 / scale.
  flow <- function(z) {
    end <- trajectory(quartic, z[1:2], z[3:4], 0.1, 7, scale = c(0.5, 2))
    c(end$q, end$p)
  }
  z <- c(q, p)
  jacobian <- vapply(1:4, function(i) {
    h <- replace(numeric(4), i, 1e-5)
    (flow(z + h) - flow(z - h)) / 2e-5
  }, numeric(4))
  expect_equal(det(jacobian), 1, tolerance = 1e-8)
})

# ---- the no-U-turn sampler ----------------------------------------------------------------------

# A transition written as the recursion of the paper, with momenta in the usual units and the
# recursive order of checks. It uses random numbers like the package: for each doubling one for the
# direction, one for each point, one for the choice between the trees.
reference_transition <- function(density, q, step, inverse, stream, max_depth) {
  kinetic <- function(p) 0.5 * sum(inverse * p^2)
  slope <- function(q) attr(density(q), "gradient")
  p <- stream$normal(length(q)) / sqrt(inverse)
  energy0 <- kinetic(p) - density(q)[[1L]]
  persists <- function(a, b) { # trees in line: list(first, last, rho)
    velocity <- function(p) inverse * p
    check <- function(p1, p2, rho) sum(velocity(p1) * rho) > 0 && sum(velocity(p2) * rho) > 0
    check(a$first, b$last, a$rho + b$rho) && check(a$first, b$first, a$rho + b$first) &&
      check(a$last, b$last, a$last + b$rho)
  }
  z <- NULL
  points <- list()
  count <- 0
  divergent <- FALSE
  build <- function(depth, sign) {
    if (depth == 0) {
      p <- z$p + sign * step / 2 * slope(z$q)
      q <- z$q + sign * step * inverse * p
      p <- p + sign * step / 2 * slope(q)
      z <<- list(q = q, p = p)
      count <<- count + 1
      weight <- energy0 - (kinetic(p) - density(q)[[1L]])
      if (is.nan(weight)) weight <- -Inf
      points[[length(points) + 1]] <<- list(q = q, weight = weight)
      if (weight < -1000) divergent <<- TRUE
      return(list(first = p, last = p, rho = p, valid = weight >= -1000))
    }
    a <- build(depth - 1, sign)
    if (!a$valid) return(a)
    b <- build(depth - 1, sign)
    if (!b$valid) return(b)
    list(first = a$first, last = b$last, rho = a$rho + b$rho, valid = persists(a, b))
  }
  ends <- list(list(q = q, p = p), list(q = q, p = p))
  rho <- p
  log_weight <- 0
  depth <- 0
  while (depth < max_depth) {
    u <- stream$uniform(2L^depth + 2L)
    side <- if (u[1] > 0.5) 2 else 1
    z <- ends[[side]]
    points <- list()
    tree <- build(depth, if (side == 2) 1 else -1)
    if (!tree$valid) break
    weights <- vapply(points, function(point) point$weight, 0)
    # the last point that replaces those before it
    kept <- max(which(log(u[1 + seq_along(weights)]) <= weights - log(cumsum(exp(weights)))))
    tree_weight <- log(sum(exp(weights)))
    if (log(u[2^depth + 2]) < tree_weight - log_weight) q <- points[[kept]]$q
    log_weight <- log(exp(log_weight) + exp(tree_weight))
    depth <- depth + 1
    old <- list(first = ends[[3 - side]]$p, last = ends[[side]]$p, rho = rho)
    ends[[side]] <- z
    if (!persists(old, tree)) break
    rho <- rho + tree$rho
  }
  list(q = q, depth = depth, count = count, divergent = divergent)
}

test_that("transitions are those of the recursion", {
  covariance <- matrix(c(1, 0.8, 0, 0.8, 1, 0.3, 0, 0.3, 2), 3)
  cases <- list(list(density = normal_density(c(1, 2, 3), covariance), step = 0.3),
                list(density = quartic, step = 0.25), list(density = funnel, step = 0.4))
  inverse <- c(0.5, 1.5, 3)
  for (case in cases) {
    start <- c(0.1, -0.2, 0.4)
    fit <- quiet_sample(case$density, start, chains = 1, warmup = 0, iter = 60, seed = 7,
                        step_size = case$step, inverse_metric = inverse, max_depth = 6)
    stream <- new_stream(stream_states(1L, 7)[[1L]])
    stream$uniform(3L) # the jitter
    for (i in 1:60) {
      expected <- reference_transition(case$density, start, case$step, inverse, stream, 6)
      start <- as.vector(fit$draws[i, 1, ])
      expect_equal(start, expected$q, tolerance = 1e-9)
      expect_equal(fit$diagnostics$tree_depth[i, 1], expected$depth)
      expect_equal(fit$diagnostics$leapfrogs[i, 1], expected$count)
      expect_identical(fit$diagnostics$divergent[i, 1], expected$divergent)
    }
    expect_gt(length(unique(fit$diagnostics$tree_depth)), 1)
  }
})

test_that("U-turns are detected, also beyond a full circle", {
  # Momenta on a circle, as the flow of a standard normal has them: two halves of n points each.
  turned_after <- function(angle, points = 64L) {
    p <- sapply(seq(0, angle, length.out = points), function(t) c(cos(t), sin(t)))
    a <- p[, seq_len(points / 2), drop = FALSE]
    b <- p[, points / 2 + seq_len(points / 2), drop = FALSE]
    makes_u_turn(a[, 1], a[, ncol(a)], rowSums(a), b[, 1], b[, ncol(b)], rowSums(b), points == 2L)
  }
  expect_false(turned_after(0.5))
  expect_false(turned_after(0.95 * pi))
  expect_true(turned_after(1.05 * pi))
  expect_true(turned_after(1.9 * pi))
  # momenta at the ends agree with their sum again: the checks across the halves detect it
  expect_true(turned_after(2.3 * pi))
  expect_false(turned_after(0.9 * pi, 2L))
  expect_true(turned_after(pi, 2L))
})

test_that("moments of a normal distribution are correct, with NUTS, HMC, and each metric", {
  mean <- c(3, -1, 100)
  covariance <- matrix(c(4, 1.8, 0, 1.8, 1, 0, 0, 0, 1e-4), 3)
  density <- normal_density(mean, covariance)
  sd <- sqrt(diag(covariance))
  for (method in c("nuts", "hmc")) {
    fit <- cl_sample(density, mean, chains = 4, warmup = 400, iter = 800, seed = 11,
                     method = method, jitter = 0.5, leapfrogs = 7, metric = "diag")
    expect_moments(fit, mean, sd)
    between <- cor(as.matrix(fit))[1, 2]
    expect_equal(between, 0.9, tolerance = 0.03)
    expect_lt(max(abs(log(fit$inverse_metric / diag(covariance)))), log(2))
  }
  fit <- cl_sample(standard_normal, c(0, 0), chains = 2, warmup = 200, iter = 1000, seed = 12,
                   metric = "unit")
  expect_identical(unique(as.vector(fit$inverse_metric)), 1)
  expect_moments(fit, c(0, 0), c(1, 1))
})

test_that("a density far from normal has the correct moments", {
  # exp(-x^4 / 4): E x^2 = 2 gamma(3 / 4) / gamma(1 / 4)
  density <- function(x) with_slope(-sum(x^4) / 4, -x^3)
  fit <- quiet_sample(density, c(a = 0, b = 0), chains = 4, warmup = 300, iter = 800, seed = 5)
  expect_moments(fit, c(0, 0), rep(sqrt(2 * gamma(0.75) / gamma(0.25)), 2))
})

test_that("divergences are reported, with a warning", {
  warnings <- list()
  fit <- withCallingHandlers(
    cl_sample(funnel, numeric(10), chains = 2, warmup = 300, iter = 300, seed = 1,
              adapt_delta = 0.6),
    statcl_warning_sampling = function(w) {
      warnings <<- c(warnings, list(conditionMessage(w)))
      invokeRestart("muffleWarning")
    })
  expect_gt(sum(fit$diagnostics$divergent), 0)
  expect_match(warnings[[1]], sprintf("^%d of 600 iterations diverged",
                                      sum(fit$diagnostics$divergent)))
  expect_output(print(fit), "diverged")
  # a normal density has no divergences and gives no message
  expect_silent(fit <- cl_sample(standard_normal, c(0, 0), chains = 2, warmup = 200, iter = 200,
                                 seed = 1))
  expect_false(any(fit$diagnostics$divergent))
})

# ---- adaptation ---------------------------------------------------------------------------------

test_that("the windows of the warm-up agree with Stan's", {
  expect_identical(adaptation_windows(1000), list(first = 76, ends = c(100, 150, 250, 450, 950)))
  expect_identical(adaptation_windows(500)$ends, c(100, 150, 250, 450))
  expect_identical(adaptation_windows(150), list(first = 76, ends = 100))
  expect_identical(adaptation_windows(100), list(first = 16, ends = 90))
  expect_identical(adaptation_windows(20)$ends, 18)
  expect_identical(adaptation_windows(19)$ends, integer())
})

test_that("the step size reaches the target acceptance", {
  sd <- seq(0.5, 1, length.out = 20)
  density <- function(x) with_slope(-sum((x / sd)^2) / 2, -x / sd^2)
  for (target in c(0.6, 0.8, 0.95)) {
    fit <- cl_sample(density, numeric(20), chains = 2, warmup = 700, iter = 300, seed = 2,
                     adapt_delta = target, metric = "unit")
    expect_lt(abs(mean(fit$diagnostics$accept_stat) - target), 0.06)
    fixed <- apply(fit$diagnostics$step_size, 2, function(x) length(unique(x)))
    expect_identical(fixed, c(1L, 1L))
  }
})

test_that("the metric finds scales that differ by 1e6", {
  sd <- 10^seq(-1.5, 4.5)
  density <- function(x) with_slope(-sum((x / sd)^2) / 2, -x / sd^2)
  fit <- cl_sample(density, numeric(7), chains = 2, warmup = 500, iter = 300, seed = 4,
                   metric = "diag")
  expect_lt(max(abs(log10(fit$inverse_metric) - 2 * log10(sd))), 0.2)
  expect_moments(fit, numeric(7), sd)
  expect_lt(mean(fit$diagnostics$leapfrogs), 16)
})

test_that("a short warm-up finds a usable step size", {
  for (warmup in c(5, 20, 30, 60, 120)) {
    fit <- cl_sample(standard_normal, numeric(5), chains = 4, warmup = warmup, iter = 100, seed = 6)
    expect_gt(mean(fit$diagnostics$accept_stat), 0.5)
    expect_false(any(fit$diagnostics$divergent))
  }
})

test_that("without a warm-up step size and metric stay as given", {
  fit <- cl_sample(standard_normal, c(0, 0), chains = 1, warmup = 0, iter = 20, step_size = 0.37,
                   inverse_metric = c(1, 2), metric = "diag", seed = 1)
  expect_true(all(fit$diagnostics$step_size == 0.37))
  expect_equal(fit$inverse_metric[, 1], c(1, 2))
  fit <- cl_sample(standard_normal, c(0, 0), chains = 1, warmup = 0, iter = 20, seed = 1)
  expect_true(all(fit$diagnostics$step_size %in% 2^(-9:9)))
})

# ---- seeds and drivers --------------------------------------------------------------------------

test_that("draws depend on the seed only, for each way to run chains", {
  # as a worker process finds it, without the helpers
  density <- eval(quote(function(x) {
    precision <- matrix(c(2, -0.5, -0.5, 1), 2)
    slope <- -precision %*% (x - c(1, 2))
    if (!is.matrix(x)) return(structure(sum((x - c(1, 2)) * slope) / 2, gradient = c(slope)))
    structure(colSums((x - c(1, 2)) * slope) / 2, gradient = slope)
  }), globalenv())
  run <- function(...) {
    cl_sample(density, c(0, 0), chains = 3, warmup = 150, iter = 100, ...)
  }
  one <- run(seed = 42)
  expect_identical(run(seed = 42)$draws, one$draws)
  expect_false(identical(run(seed = 43)$draws, one$draws))
  expect_false(any(one$draws[, 1, ] == one$draws[, 2, ]))
  batch <- run(seed = 42, batch = TRUE)
  # products of matrices and of vectors may round differently
  expect_equal(batch$draws[1:20, , ], one$draws[1:20, , ], tolerance = 1e-6)
  forked <- on_host(run(seed = 42, workers = 2))
  expect_identical(forked$draws, one$draws)
  workers <- with_session(list(engine = "auto", devices = list()), run(seed = 42, workers = 2))
  expect_identical(workers$draws, one$draws)
  expect_identical(workers$diagnostics, one$diagnostics)
  first <- cl_sample(density, c(0, 0), chains = 1, warmup = 150, iter = 100, seed = 42, jitter = 1)
  expect_identical(first$draws[, 1, ], one$draws[, 1, ])
})

test_that("draws follow the session's generator without a seed, and do not change it with one", {
  run <- function(...) {
    cl_sample(standard_normal, 0, chains = 2, warmup = 50, iter = 20, ...)$draws
  }
  set.seed(1)
  a <- run()
  b <- run()
  set.seed(1)
  expect_identical(run(), a)
  expect_false(identical(a, b))
  set.seed(1)
  before <- runif(2)
  set.seed(1)
  runif(1)
  run(seed = 9)
  expect_identical(runif(1), before[2])
  # neither a density that draws random numbers nor the kind of generator changes the draws
  noisy <- function(x) {
    runif(1)
    standard_normal(x)
  }
  expect_identical(cl_sample(noisy, 0, chains = 2, warmup = 50, iter = 20, seed = 9)$draws,
                   run(seed = 9))
  old <- RNGkind("Wichmann-Hill", "Box-Muller")
  on.exit(RNGkind(old[1], old[2], old[3]))
  a <- run(seed = 9)
  expect_identical(RNGkind()[1:2], c("Wichmann-Hill", "Box-Muller"))
  RNGkind(old[1], old[2], old[3])
  expect_identical(run(seed = 9), a)
})

test_that("lockstep calls the density once for all chains", {
  sizes <- integer()
  density <- function(x) {
    sizes <<- c(sizes, ncol(x))
    with_slope(-colSums(x^2) / 2, -x)
  }
  fit <- cl_sample(density, c(a = 0, b = 0), chains = 4, warmup = 100, iter = 100, seed = 1,
                   batch = TRUE)
  expect_lt(length(sizes), 0.5 * sum(sizes))
  expect_equal(sum(fit$evaluations) + 4, sum(sizes), tolerance = 0.02)
  expect_equal(max(sizes), 4L)
  single <- cl_sample(standard_normal, c(a = 0, b = 0), chains = 4, warmup = 100, iter = 100,
                      seed = 1)
  expect_identical(fit$draws, single$draws)
})

test_that("lockstep with arguments by name, transforms and impossible points", {
  one <- function(rate, shift) {
    if (rate > 30) statcl_abort("nonfinite", "too far")
    with_slope(log(rate) - 3 * rate - sum(shift^2) / 2, list(shift = -shift, rate = 1 / rate - 3))
  }
  many <- function(rate, shift) {
    if (any(rate > 30)) statcl_abort("nonfinite", "too far")
    with_slope(as.vector(log(rate) - 3 * rate) - colSums(shift^2) / 2,
               list(shift = -shift, rate = 1 / rate - 3))
  }
  run <- function(f, ...) {
    cl_sample(f, list(rate = 20, shift = c(0, 0)), chains = 3, warmup = 200, iter = 200, seed = 8,
              transform = list(rate = cl_lower(0)), ...)
  }
  single <- run(one)
  expect_gt(sum(single$rejections), 0)
  batch <- run(many, batch = TRUE)
  expect_identical(batch$draws, single$draws)
  expect_identical(batch$rejections, single$rejections)
  expect_equal(mean(as.matrix(single)[, "rate"]), 2 / 3, tolerance = 0.1)
})
