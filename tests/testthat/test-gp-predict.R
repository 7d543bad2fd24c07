# Predictions and draws of fitted processes.

test_that("predictions agree with the textbook formula", {
  d <- some_data()
  at <- some_data(13)$x
  for (mean in list("estimate", 1.5)) {
    fit <- on_host(cl_gp(d$x, d$y, kernel = mixed_kernel, mean = mean, starts = 1))
    want <- plain_gp(d$y, d$x, fit$kernel, fit$noise, mean)$predict(at)
    se <- sqrt(diag(want$covariance))
    each_engine({
      expect_close(predict(fit, at), want$mean, 1e-8)
      got <- predict(fit, at, se.fit = TRUE, interval = "confidence", level = 0.9)
      expect_close(got$se.fit, se, 1e-8)
      expect_identical(got$residual.scale, fit$noise)
      expect_close(got$fit[, "upr"], want$mean + qnorm(0.95) * se, 1e-8)
      new <- predict(fit, at, interval = "prediction")
      expect_close(new[, "lwr"], want$mean - qnorm(0.975) * sqrt(se^2 + fit$noise^2), 1e-8)
      joint <- predict(fit, at, covariance = TRUE)
      expect_close(unname(joint$covariance), unname(want$covariance), 1e-8)
      expect_named(joint, c("fit", "covariance"))
    })
  }
})

test_that("the gradient of the mean agrees with finite differences", {
  d <- some_data()
  at <- some_data(7)$x
  for (mean in list("estimate", "linear", 1.5)) {
    fit <- on_host(cl_gp(d$x, d$y, kernel = k_exp_quad() + k_matern52(columns = "b"), mean = mean,
                         starts = 1))
    by <- function(j, h) {
      moved <- at
      moved[, j] <- moved[, j] + h
      on_host(predict(fit, moved))
    }
    want <- vapply(1:2, function(j) unname(by(j, 1e-5) - by(j, -1e-5)) / 2e-5, numeric(7))
    each_engine({
      got <- predict(fit, at, gradient = TRUE)$gradient
      expect_identical(colnames(got), c("a", "b"))
      expect_close(unname(got), want, 1e-5)
    })
  }
})

test_that("leave-one-out residuals agree with fits without the observation", {
  d <- some_data(20)
  each_engine({
    fit <- cl_gp(d$x, d$y, starts = 1)
    at_fit <- function(x, y) cl_gp(x, y, kernel = fit$kernel, fixed = fit$par)
    for (i in c(1, 13)) {
      without <- predict(at_fit(d$x[-i, ], d$y[-i]), d$x[i, , drop = FALSE], se.fit = TRUE)
      expect_equal(residuals(fit, "loo")[[i]], d$y[i] - without$fit[[1]], tolerance = 1e-7)
      sd <- sqrt(without$se.fit[[1]]^2 + fit$noise^2)
      expect_equal(residuals(fit, "standardized")[[i]], (d$y[i] - without$fit[[1]]) / sd,
                   tolerance = 1e-7)
    }
  })
  expect_refused("type", residuals(fit, "other"))
})

test_that("many new points do not need a matrix of that order", {
  skip_if_not(capabilities("profmem"))
  fit <- on_host(cl_gp(dist ~ speed, data = cars, starts = 1))
  many <- data.frame(speed = seq(0, 40, length.out = 40000))
  file <- tempfile()
  on_host(predict(fit, many[1:3, , drop = FALSE], se.fit = TRUE))
  utils::Rprofmem(file, threshold = 8e6)
  on_host(predict(fit, many, se.fit = TRUE, interval = "prediction"))
  utils::Rprofmem(NULL)
  taken <- as.numeric(sub(" .*", "", grep("^[0-9]", readLines(file), value = TRUE)))
  expect_true(all(taken < 8 * 50 * 40000 / 2))
})

test_that("no new points, missing values and missing variables", {
  fit <- on_host(cl_gp(dist ~ speed, data = cars, starts = 1))
  each_engine({
    expect_identical(unname(predict(fit, data.frame(speed = numeric()))), numeric())
    empty <- predict(fit, cars[0, ], se.fit = TRUE, interval = "prediction", covariance = TRUE)
    expect_identical(dim(empty$fit), c(0L, 3L))
    expect_identical(dim(empty$covariance), c(0L, 0L))
    got <- predict(fit, data.frame(speed = c(10, NA, 12)), covariance = TRUE, gradient = TRUE)
    expect_identical(unname(is.na(got$fit)), c(FALSE, TRUE, FALSE))
    expect_identical(unname(is.na(got$covariance[1, ])), c(FALSE, TRUE, FALSE))
    expect_identical(unname(is.na(got$gradient[, 1])), c(FALSE, TRUE, FALSE))
    expect_equal(got$fit[[3]], unname(predict(fit, data.frame(speed = 12))))
    expect_identical(unname(is.na(predict(fit, data.frame(speed = c(NA, 2)),
                                          interval = "confidence")[, 3])), c(TRUE, FALSE))
  })
  expect_refused("newdata", predict(fit, data.frame(other = 1)), predict(fit, 1:3),
                 predict(fit, data.frame(speed = "a")))
  expect_refused("interval", predict(fit, interval = "other"))
  expect_refused("level", predict(fit, level = 2))
  expect_refused("covariance", predict(fit, covariance = NA))
  plain <- on_host(cl_gp(cars$speed, cars$dist, starts = 1))
  expect_refused("newdata", predict(plain, cbind(1, 2)))
  expect_equal(unname(predict(plain, 12)), unname(predict(fit, data.frame(speed = 12))))
})

test_on_host("columns of a matrix are matched by name", {
  fit <- cl_gp(iris[2:4], iris[[1]], starts = 1)
  want <- predict(fit)
  expect_equal(unname(predict(fit, iris)), unname(want), tolerance = 1e-9)
  expect_equal(unname(predict(fit, as.matrix(iris[4:2]))), unname(want), tolerance = 1e-9)
  expect_equal(unname(predict(fit, as_cl(as.matrix(iris[4:2])))), unname(want), tolerance = 1e-9)
  expect_equal(unname(predict(fit, unname(as.matrix(iris[2:4])))), unname(want),
               tolerance = 1e-9)
  expect_refused("newdata", predict(fit, iris[2:3]), says = "Petal.Width")
  expect_refused("newdata", predict(fit, data.frame(iris[2:3], Petal.Width = "a")))
})

test_that("draws have the distribution of the predictions", {
  fit <- on_host(cl_gp(dist ~ speed, data = cars, starts = 1))
  at <- data.frame(speed = c(5, 15, 40))
  draws <- on_host(simulate(fit, 4000, seed = 1, newdata = at))
  expect_identical(dim(draws), c(3L, 4000L))
  expect_identical(draws, on_host(simulate(fit, 4000, seed = 1, newdata = at)))
  want <- on_host(predict(fit, at, se.fit = TRUE, covariance = TRUE))
  expect_equal(rowMeans(draws), want$fit, tolerance = 0.05)
  expect_equal(apply(draws, 1, sd), want$se.fit, tolerance = 0.05)
  expect_equal(unname(cov(t(draws))), unname(want$covariance), tolerance = 0.06)
  noisy <- on_host(simulate(fit, 4000, seed = 1, newdata = at, noise = TRUE))
  expect_equal(apply(noisy, 1, sd), sqrt(want$se.fit^2 + fit$noise^2), tolerance = 0.05)
  free <- on_host(simulate(fit, 4000, seed = 1, newdata = at, conditional = FALSE))
  expect_equal(unname(cov(t(free))), unname(on_host(cl_cov(at$speed, kernel = fit$kernel))),
               tolerance = 0.06)
  expect_equal(unname(rowMeans(free)), rep(fit$mean, 3), tolerance = 0.05)
  # coincident points are supported
  same <- on_host(simulate(fit, 2, seed = 1, newdata = data.frame(speed = c(3, 3))))
  expect_equal(same[1, ], same[2, ], tolerance = 1e-5, ignore_attr = TRUE)
  expect_identical(dim(on_host(simulate(fit, 0))), c(50L, 0L))
  set.seed(3)
  a <- on_host(simulate(fit, 1))
  b <- on_host(simulate(fit, 1))
  expect_false(identical(a[[1]], b[[1]]))
})

test_that("parts of a sum have their conditional distributions and add up", {
  set.seed(2)
  x <- cbind(t = sort(runif(25, 0, 4)))
  y <- x[, 1] + sin(2 * pi * x[, 1]) + rnorm(25, sd = 0.1)
  kernel <- k_exp_quad(columns = "t") + k_constant() * (k_periodic() + k_matern32())
  par <- c(sd1 = 2, lengthscale1 = 3, sd2 = 1, sd3 = 1, lengthscale3 = 1, period3 = 1, sd4 = 0.5,
           lengthscale4 = 2, noise = 0.1)
  at <- cbind(t = seq(0, 5, 0.5))
  each_engine({
    for (mean in list(1, "constant", "linear")) {
      fit <- cl_gp(x, y, kernel, mean = mean, fixed = par)
      whole <- predict(fit, at)
      parts <- lapply(1:2, function(i) predict(fit, at, part = i, covariance = TRUE))
      h <- switch(format(mean), `1` = matrix(0, 25, 0), constant = matrix(1, 25, 1), cbind(1, x))
      h_at <- switch(format(mean), `1` = NULL, constant = matrix(1, 11, 1), cbind(1, at))
      line <- if (mean == 1) 1 else as.vector(h_at %*% coef(fit)[-(1:9)])
      expect_close(unname(parts[[1]]$fit + parts[[2]]$fit + line), unname(whole), 1e-8)
      k <- kernel_parts(fit$kernel)[[2L]]
      inverse <- solve(cl_cov(x, kernel = fit$kernel) + diag(0.01, 25))
      cross <- cl_cov(at, x, k)
      want <- cl_cov(at, kernel = k) - cross %*% inverse %*% t(cross)
      if (ncol(h) > 0L) {
        r <- -cross %*% inverse %*% h
        want <- want + r %*% solve(t(h) %*% inverse %*% h, t(r))
      }
      expect_close(unname(parts[[2]]$covariance), unname(want), 1e-8)
      expect_close(unname(predict(fit, at, part = 1:2)), unname(whole - line), 1e-8)
    }
  })
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  drawn <- on_host(plot(fit, type = "parts", n = 3))
  expect_equal(drawn$fit[4:6], unname(predict(fit, cbind(t = drawn$x[4:6]), part = 2)))
  expect_equal(drawn$upr - drawn$fit, drawn$fit - drawn$lwr)
  expect_gt(min(drawn$upr - drawn$fit), 0)
})

gp_states$list <- list()
