# Where to observe next: criteria against base R, differences, Monte Carlo and brute force.

some_par <- c(sd = 1.3, lengthscale.a = 0.6, lengthscale.b = 0.9, noise = 0.15)

test_each_engine("universal kriging: predictions have the variance of DiceKriging's formula", {
  # Roustant, Ginsbourger and Deville (2012), equations 3 and 4: c - k' C^-1 k + (h - k' C^-1 H)
  # (H' C^-1 H)^-1 (h - k' C^-1 H)'
  d <- some_data()
  at <- some_data(7)$x
  for (mean in list("estimate", "linear", ~ a + I(b^2), 0.5)) {
    for (beta in c("profile", "integrate")) {
      fit <- on_host(cl_gp(d$x, d$y, k_matern52(), mean = mean, beta = beta, fixed = some_par))
      basis <- if (is.numeric(mean)) NULL else
        model.matrix(switch(class(mean), formula = mean, if (mean == "linear") ~ a + b else ~1),
                     as.data.frame(rbind(d$x, at)))
      n <- nrow(d$x)
      plain <- plain_gp(d$y, d$x, fit$kernel, fit$noise,
                        if (is.null(basis)) mean else basis[1:n, , drop = FALSE])
      want <- if (is.null(basis)) plain$predict(at) else
        plain$predict(at, h_at = basis[-(1:n), , drop = FALSE])
      got <- predict(fit, at, se.fit = TRUE)
      expect_close(unname(got$se.fit), sqrt(diag(want$covariance)), 1e-8)
      ours <- acquire_moments(acquire_model(fit), at)
      expect_close(ours$variance, diag(want$covariance), 1e-8)
      expect_close(ours$mean, want$mean, 1e-8)
    }
  }
})

acquire_kernels <- list(
  k_exp_quad(), k_matern52() + k_exponential(columns = "b"), k_matern32(columns = "a") *
    k_rational_quadratic(columns = "b"), k_linear() + k_matern52(), k_periodic(period = 2) *
    k_exp_quad() + k_white(), k_matern(1.7))

test_each_engine("gradients agree with differences for all kernels and means", {
  d <- some_data(25)
  at <- some_data(4)$x + 0.02
  grid <- some_data(11)$x
  means <- list("estimate", "linear", ~ a + I(b^2), 1.5, "linear", "estimate")
  for (i in seq_along(acquire_kernels)) {
    kernel <- acquire_kernels[[i]]
    par <- c(coef(resolve_kernel(kernel, d$x, NULL, TRUE, 1)), noise = 0.2)
    fit <- on_host(cl_gp(d$x, d$y, kernel, mean = means[[i]], fixed = par))
    got <- acquire_moments(acquire_model(fit), at)
    want <- predict(fit, at, se.fit = TRUE)
    expect_close(got$mean, unname(want$fit), 1e-8)
    expect_close(sqrt(got$variance), unname(want$se.fit), 1e-8)
    for (type in c("ei", "bound", "variance")) {
      f <- cl_acquisition(fit, type, maximise = i %% 2 == 0, at = grid)
      by <- vapply(1:2, function(j) {
        moved <- function(h) {
          at[, j] <- at[, j] + h
          as.vector(f(at))
        }
        (8 * (moved(1e-4) - moved(-1e-4)) - (moved(2e-4) - moved(-2e-4))) / 12e-4
      }, numeric(4))
      expect_close(unname(attr(f(at), "gradient")), by, 1e-6)
    }
  }
})

test_that("expected improvement is that of base R and of simulation", {
  d <- some_data(15)
  at <- some_data(6)$x + 0.05
  fit <- on_host(cl_gp(d$x, d$y, k_matern52(), fixed = c(noise = 0.1), starts = 1))
  each_engine({
    moments <- predict(fit, at, se.fit = TRUE)
    for (maximise in c(FALSE, TRUE)) {
      sign <- if (maximise) -1 else 1
      best <- min(sign * predict(fit, d$x))
      gain <- function(draw) pmax(best - sign * draw, 0)
      got <- cl_acquisition(fit, maximise = maximise)(at)
      z <- (best - sign * moments$fit) / moments$se.fit
      want <- (best - sign * moments$fit) * pnorm(z) + moments$se.fit * dnorm(z)
      expect_close(as.vector(got) / unname(want), rep(1, 6), 1e-6)
      draws <- as.matrix(on_host(simulate(fit, 4000, seed = 1, newdata = at)))
      sampled <- gain(draws)
      off <- abs(rowMeans(sampled) - as.vector(got))
      expect_true(all(off < 4.5 * apply(sampled, 1, sd) / sqrt(4000) + 1e-4))
    }
  })
})

test_that("expected improvement far in the tail", {
  # far in the tail, from the same integral on the log scale: log E max(z + e, 0)
  z <- c(-1e4, -200, -30.01, -29.99, -8, -1, 0.5, 1.5, 40)
  want <- vapply(z, function(z) {
    scale <- max(1, abs(z)) # e = -z + t / scale
    if (z < -1) {
      v <- integrate(function(t) t * exp(-t - t^2 / (2 * scale^2)), 0, 40 + 0 * z, rel.tol = 1e-10)
      log(v$value) - 2 * log(scale) + dnorm(z, log = TRUE)
    } else {
      log(integrate(function(e) (z + e) * dnorm(e), -z, 12 + 0 * z, rel.tol = 1e-10)$value)
    }
  }, 0)
  want[9] <- log(40)
  expect_close(acquire_log_gain(z) / want, rep(1, 9), 1e-7)
})

test_each_engine("the decrease of the variance is that of a fit with the observation", {
  d <- some_data(18)
  grid <- some_data(9)$x
  new <- some_data(3)$x + 0.1
  for (mean in list("estimate", "linear", 0)) {
    fit <- on_host(cl_gp(d$x, d$y, k_matern52(), mean = mean, fixed = some_par))
    spread <- function(f) mean(on_host(predict(f, grid, se.fit = TRUE))$se.fit^2)
    want <- vapply(1:3, function(i) {
      spread(fit) - spread(on_host(update(fit, newdata = new[i, , drop = FALSE], y = 0.3)))
    }, 0)
    expect_close(as.vector(cl_acquisition(fit, "variance", at = grid)(new)), want, 1e-8)
  }
})

test_that("a batch gets the points that repeated updates get", {
  f <- function(x) sin(3 * x) + x^2 / 4
  d <- data.frame(x = c(-2, -1, 0.5, 2))
  fit <- on_host(cl_gp(y ~ x, transform(d, y = f(x)), fixed = c(noise = 0), starts = 1))
  each_engine({
    three <- cl_acquire(fit, count = 3)
    now <- fit
    for (i in 1:3) {
      one <- cl_acquire(now, lower = -2, upper = 2)
      expect_close(one$points$x, three$points$x[i], 1e-3)
      expect_close(one$value, three$value[i], 1e-5)
      believed <- unname(predict(now, one$points))
      now <- update(now, newdata = data.frame(one$points, y = believed))
    }
    expect_true(min(dist(three$points$x)) > 0.05)
    liar <- cl_acquire(fit, count = 2, batch = "liar", maximise = TRUE)
    lied <- update(fit, newdata = data.frame(liar$points[1, , drop = FALSE], y = max(fit$y)))
    again <- cl_acquire(lied, lower = -2, upper = 2, maximise = TRUE)
    expect_close(again$value, liar$value[2], 1e-5)
  })
})

test_that("points of a batch lie apart where the optimum is nearly known, unless there is noise", {
  d <- data.frame(x = c(seq(0, 9, by = 1.5), 4.7, 4.85, 5, 5.1))
  d$y <- d$x * sin(d$x)
  nearest <- function(noise) {
    fit <- cl_gp(y ~ x, d, k_matern52(), fixed = c(sd = 4, lengthscale = 2, noise = noise))
    min(dist(cl_acquire(fit, lower = 4.6, upper = 5.2, count = 2, starts = 3)$points$x))
  }
  on_host({
    expect_gt(nearest(0), 0.01)
    expect_lt(nearest(0.5), 0.005)
  })
})

test_each_engine("an added point is that of update(), also where no variance is left", {
  d <- some_data(12)
  at <- some_data(5)$x + 0.1
  new <- at[5, , drop = FALSE]
  for (mean in list("linear", 1)) {
    fit <- cl_gp(d$x, d$y, k_matern52(), mean = mean, fixed = some_par)
    updated <- acquire_model(update(fit, newdata = new, y = 0.4))
    added <- acquire_added(acquire_model(fit), new, 0.4)
    expect_close(acquire_fitted(added), acquire_fitted(updated), 1e-8)
    want <- acquire_moments(updated, at)
    got <- acquire_moments(added, at)
    for (name in c("mean", "variance", "by_mean", "by_variance")) {
      expect_close(got[[name]], want[[name]], 1e-8)
    }
    exact <- acquire_model(cl_gp(d$x, d$y, k_exp_quad(), mean = mean,
                                 fixed = replace(some_par, "noise", 0)))
    again <- acquire_moments(acquire_added(exact, exact$x[3, , drop = FALSE], d$y[3]), at)
    expect_close(again$mean, acquire_moments(exact, at)$mean, 1e-3)
  }
})

test_that("the best point is that of a fine grid, with and without constraints", {
  d <- some_data(20)
  fit <- on_host(cl_gp(d$x, d$y, k_matern52(), starts = 1))
  low <- apply(d$x, 2, min)
  high <- apply(d$x, 2, max)
  fine <- as.matrix(expand.grid(a = seq(low[1], high[1], length.out = 70),
                                b = seq(low[2], high[2], length.out = 70)))
  constraints <- list(NULL, function(x) x[, "a"] + x[, "b"] < mean(low + high) - 0.1)
  inside <- on_host(cl_acquire(fit, c(b = 0.2, a = 0.1), c(0.3, 0.4)))
  expect_true(all(inside$points >= c(0.1, 0.2) & inside$points <= c(0.3, 0.4)))
  expect_identical(inside$lower, c(a = 0.1, b = 0.2))
  each_engine(for (type in c("ei", "bound", "variance")) {
    values <- as.vector(on_host(cl_acquisition(fit, type)(fine)))
    for (constraint in constraints) {
      got <- cl_acquire(fit, type = type, constraint = constraint)
      good <- if (is.null(constraint)) TRUE else constraint(fine)
      expect_gte(got$value, max(values[good]) - 1e-6 * abs(max(values)))
      expect_true(all(got$points >= low & got$points <= high))
      if (!is.null(constraint)) expect_true(constraint(as.matrix(got$points)))
      expect_close(as.vector(got$criterion(got$points)), got$value, 1e-8)
    }
  })
})

test_that("narrow peaks, optima on a constraint and in other units are found", {
  d <- some_data(20)
  fit <- on_host(cl_gp(d$x, d$y, k_matern52(), fixed = some_par))
  angle <- seq(0, 2 * pi, length.out = 4001)
  for (radius in c(0.35, 0.5)) for (type in c("ei", "bound")) {
    got <- on_host(cl_acquire(fit, type = type, lower = c(0, 0), upper = c(1, 1),
                              constraint = function(x) rowSums((x - 0.5)^2) < radius^2))
    border <- cbind(a = 0.5 + radius * cos(angle), b = 0.5 + radius * sin(angle))
    best <- max(on_host(cl_acquisition(fit, type)(border)))
    expect_gte(got$value, best - 3e-3 * abs(best))
  }
  units <- c(1e4, 1e-3)
  scaled <- replace(some_par, 2:3, some_par[2:3] * units)
  other <- on_host(cl_gp(t(t(d$x) * units), d$y, k_matern52(), fixed = scaled))
  for (type in c("ei", "bound", "variance")) {
    expect_close(on_host(cl_acquire(other, type = type, starts = 1))$value,
                 on_host(cl_acquire(fit, type = type, starts = 1))$value, 1e-7)
  }
  # improvement is likely within a lengthscale of the best observation, 0.0005 of the range
  d <- data.frame(x = c(0, 100, 250, 500.3, 800, 1000), y = c(1, 0.4, 0.7, -1, 0.2, 0.9))
  d <- rbind(d, data.frame(x = 500.5, y = -1.1))
  fit <- on_host(cl_gp(y ~ x, d, fixed = c(sd = 1, lengthscale = 0.5, noise = 0)))
  near <- cbind(x = seq(495, 505, by = 0.01))
  want <- max(on_host(cl_acquisition(fit)(near)))
  each_engine(expect_gte(cl_acquire(fit, starts = 1)$value, want * (1 - 1e-6)))
})

test_that("the minimum of Branin's function is found in 30 evaluations", {
  branin <- function(x1, x2) {
    (x2 - 5.1 / (4 * pi^2) * x1^2 + 5 / pi * x1 - 6)^2 + 10 * (1 - 1 / (8 * pi)) * cos(x1) + 10
  }
  u <- even_points(10, 2)
  d <- data.frame(x1 = -5 + 15 * u[, 1], x2 = 15 * u[, 2])
  d$y <- branin(d$x1, d$x2)
  on_host({
    fit <- cl_gp(y ~ x1 + x2, d, k_matern52(), fixed = c(sd = 1000, lengthscale.x1 = 20,
                                                           lengthscale.x2 = 70, noise = 0))
    for (i in 1:20) {
      new <- cl_acquire(fit, c(-5, 0), c(10, 15))$points
      new$y <- branin(new$x1, new$x2)
      fit <- update(fit, newdata = new)
    }
  })
  expect_lt(min(fit$y), 0.397887 + 0.01) # the minimum is 0.397887
  expect_gt(min(d$y), 2)
})

test_that("results are printed and drawn", {
  d <- some_data(12)
  fit <- on_host(cl_gp(d$x, d$y, k_matern52(), starts = 1))
  got <- on_host(cl_acquire(fit, count = 2, type = "bound"))
  expect_output(print(got), "2 points by lower bound")
  expect_output(print(on_host(cl_acquire(fit, maximise = TRUE))), "largest mean so far")
  without_device <- function(code) {
    pdf(NULL)
    on.exit(dev.off())
    code
  }
  surface <- without_device(plot(got, n = 7))
  expect_identical(names(surface), c("a", "b", "value"))
  expect_close(surface$value, as.vector(got$criterion(surface[1:2])), 1e-10)
  line <- without_device(plot(got, along = "b", n = 9))
  there <- cbind(a = got$points$a[1], b = line$b)
  expect_close(line$value, as.vector(got$criterion(there)), 1e-10)
  expect_refused("along", plot(got, along = "c"))
})

test_that("what does not fit is an error", {
  d <- some_data(12)
  fit <- on_host(cl_gp(d$x, d$y, k_matern52(), starts = 1))
  expect_refused("lower", cl_acquire(fit, lower = 1))
  expect_refused("at", cl_acquire(fit, at = 1:3, type = "variance"))
  others <- on_host(list(
    cl_gp(d$x, d$y, approx = "vecchia", neighbours = 3, fixed = some_par),
    cl_gp(mpg ~ log(wt), mtcars, fixed = c(sd = 5, lengthscale = 1, noise = 2)),
    cl_gp(mpg ~ wt, mtcars, mean = ~ hp, fixed = c(sd = 5, lengthscale = 1, noise = 2)),
    cl_gp(d$x, round(exp(d$y)), family = "poisson_log", fixed = some_par[1:3])))
  for (other in others) expect_refused("object", cl_acquire(other))
})

test_on_host("points without noise are not chosen twice", {
  d <- data.frame(x = c(0.2016819, 0.2655087, 0.3721239, 0.5728534, 0.8983897, 0.9082078))
  d$y <- sin(6 * d$x)
  fit <- cl_gp(y ~ x, d, fixed = c(sd = 0.86, lengthscale = 0.38, noise = 0))
  found <- cl_acquire(fit, type = "variance", count = 3)$points$x
  expect_gt(min(dist(c(found, d$x))), 1e-3)
  expect_true(all(cl_acquisition(fit, "variance")(d) == 0))
})
