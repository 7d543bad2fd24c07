# Plots: the values that they show. Their appearance was checked by eye.

skip_on_cran() # long; run by ./dev check

with_null_device <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  force(code)
}

test_that("curves", {
  with_null_device(on_host({
    fit <- cl_gp(dist ~ log(speed), data = cars, starts = 1)
    curve <- plot(fit, xlim = c(2, 30), n = 11)
    expect_equal(curve$x, seq(2, 30, length.out = 11))
    want <- predict(fit, data.frame(speed = curve$x), interval = "prediction")
    expect_equal(curve$upr_new, unname(want[, "upr"]))
    expect_true(all(curve$upr < curve$upr_new))
    expect_named(plot(cl_gp(cars$speed, cars$dist, starts = 1), legend = NULL, n = 5)[1:2],
                 c("x", "fit"))
  }))
})

test_that("surfaces and slices", {
  d <- data.frame(mtcars, group = factor(mtcars$cyl))
  with_null_device(on_host({
    fit <- cl_gp(mpg ~ wt + hp, data = d, starts = 1)
    margins <- par("mar")
    surface <- plot(fit, n = 5)
    expect_identical(par("mar"), margins)
    expect_equal(surface$fit, unname(predict(fit, surface)))
    error <- plot(fit, se = TRUE, n = 4)
    expect_equal(error$se, unname(predict(fit, error, se.fit = TRUE)$se.fit))
    by_matrix <- plot(cl_gp(as.matrix(d[c("wt", "hp")]), d$mpg, starts = 1), n = 5)
    expect_equal(by_matrix$fit, surface$fit)

    # a variable of the mean is an input, too
    with_mean <- cl_gp(mpg ~ wt, data = d, mean = ~hp, starts = 1)
    expect_named(plot(with_mean, n = 4), c("wt", "hp", "fit"))
    slice <- plot(with_mean, along = "wt", n = 3)
    expect_equal(slice$fit, unname(predict(with_mean, data.frame(wt = slice$x,
                                                                  hp = median(d$hp)))))

    three <- cl_gp(mpg ~ wt + hp + group, data = d, starts = 1)
    slice <- plot(three, along = "wt", n = 6)
    at <- data.frame(wt = slice$x, hp = median(d$hp), group = "8")
    expect_equal(slice$fit, unname(predict(three, at)))
    expect_named(plot(three, along = c("hp", "wt"), n = 4), c("hp", "wt", "fit"))
    expect_named(plot(three), c("y", "fit", "sd", "residual", "standardized"))
    expect_fault(plot(three, along = "group"), "argument", argument = "along")
    expect_fault(plot(three, along = "foo"), "argument", argument = "along")
  }))
})

test_that("factors made in formulas, dates and times", {
  with_null_device(on_host({
    held <- c(sd = 5, lengthscale.1 = 2, lengthscale.2 = 1, lengthscale.3 = 1, noise = 2)
    slice <- plot(cl_gp(mpg ~ wt + factor(cyl), mtcars, fixed = held), n = 4)
    expect_named(slice[1:2], c("x", "fit"))
    held <- c(sd = 5, lengthscale = 2, noise = 2)
    fit <- cl_gp(mpg ~ wt, mtcars, mean = ~ factor(cyl), fixed = held)
    slice <- plot(fit, n = 4)
    expect_equal(slice$fit, unname(predict(fit, data.frame(wt = slice$x, cyl = 8))))
    d <- data.frame(day = as.Date("2024-01-01") + 0:19, u = sin(1:20), y = cos(0:19 / 4))
    d$time <- as.POSIXct(d$day, tz = "UTC")
    fit <- cl_gp(y ~ day, d, fixed = c(sd = 1, lengthscale = 8, noise = 0.1))
    curve <- plot(fit, n = 20)
    expect_equal(curve$fit, unname(fitted(fit)), tolerance = 1e-8)
    expect_named(plot(fit, xlim = as.Date(c("2024-01-01", "2024-03-01")), n = 3)[1:2],
                 c("x", "fit"))
    fit <- cl_gp(y ~ time, d, fixed = c(sd = 1, lengthscale = 8 * 86400, noise = 0.1))
    expect_equal(plot(fit, n = 20)$fit, curve$fit, tolerance = 1e-8)
    two <- cl_gp(y ~ u + day, d,
                 fixed = c(sd = 1, lengthscale.1 = 1, lengthscale.2 = 8, noise = 0.1))
    expect_named(plot(two, n = 4), c("u", "day", "fit"))
  }))
})

test_that("diagnostics and traces", {
  with_null_device(on_host({
    fit <- cl_gp(dist ~ speed, data = cars, starts = 1)
    drawn <- plot(fit, type = "loo")
    expect_identical(par("mfrow"), c(1L, 1L))
    expect_equal(drawn$standardized, unname(residuals(fit, "standardized")))
    expect_equal(plot(fit, type = "loo", which = 3), drawn)
    expect_fault(plot(fit, type = "loo", which = 4), "argument", argument = "which")
    expect_fault(plot(fit, type = "trace"), "argument", argument = "type")
    expect_fault(plot(fit, type = "other"), "argument", argument = "type")
    sampled <- suppressWarnings( # so few draws do not agree
      cl_gp(dist ~ speed, data = cars, method = "mcmc", starts = 1,
            control = list(chains = 1, warmup = 50, iter = 20, seed = 1)))
    expect_silent(plot(sampled, type = "trace"))
  }))
})

gp_states$list <- list()
