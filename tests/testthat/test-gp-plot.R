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
    expect_refused("along", plot(three, along = "group", type = "parts"),
                   plot(three, along = "foo"))
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
    expect_equal(slice$fit, unname(predict(fit, data.frame(wt = slice$x, cyl = slice$level))))
    expect_identical(unique(slice$level), c(4, 6, 8))
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

# What a plot draws, from R's record of it: the y of points ("p") and of lines ("l"), and how many
# polygons there are.
drawn_things <- function(code) {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  grDevices::dev.control("enable")
  force(code)
  calls <- grDevices::recordPlot()[[1L]]
  name <- vapply(calls, function(call) as.character(call[[2L]][[1L]]$name)[1L], "")
  xy <- lapply(calls[name == "C_plotXY"], function(call) as.list(call[[2L]])[2:3])
  of <- function(type) lapply(Filter(function(one) identical(one[[2L]], type), xy),
                              function(one) one[[1L]]$y)
  list(points = of("p"), lines = of("l"), polygons = sum(name == "C_polygon"))
}

test_on_host("a curve for each level of a factor", {
  d <- data.frame(mtcars, group = factor(mtcars$cyl), kind = rep(c("b", "a"), 16))
  held <- c(sd = 5, lengthscale.1 = 2, lengthscale.2 = 0.5, noise = 2)
  fit <- cl_gp(mpg ~ wt + group, d, k_matern52() * k_factor("group"),
               fixed = c(sd1 = 5, lengthscale1 = 2, sd2 = 1, lengthscale2 = 0.5, noise = 2))
  things <- drawn_things(curves <- plot(fit, n = 7))
  expect_named(curves, c("x", "fit", "lwr", "upr", "lwr_new", "upr_new", "level"))
  expect_identical(as.vector(table(curves$level)), rep(7L, 3))
  want <- predict(fit, data.frame(wt = curves$x, group = curves$level), interval = "prediction")
  expect_equal(as.matrix(curves[c("fit", "lwr_new", "upr_new")]), want, ignore_attr = TRUE)
  want <- predict(fit, data.frame(wt = curves$x, group = curves$level), interval = "confidence")
  expect_equal(as.matrix(curves[c("fit", "lwr", "upr")]), want, ignore_attr = TRUE)
  # each level has its band, its line and its observations
  expect_identical(things$polygons, 3L)
  expect_equal(things$lines, unname(split(curves$fit, curves$level)))
  expect_equal(things$points, unname(split(d$mpg, d$group)))

  # the factor alone, the other held
  alone <- with_null_device(plot(fit, along = "group"))
  expect_equal(alone$fit, unname(predict(fit, data.frame(wt = median(d$wt),
                                                         group = alone$group))))
  expect_named(alone, c("group", "fit", "lwr", "upr", "lwr_new", "upr_new"))
  # of a matrix with coded columns: strings and logicals
  fit <- cl_gp(mpg ~ wt + kind, d, fixed = held)
  curves <- with_null_device(plot(fit, n = 3, col = 1:2, xlim = c(0, 6), legend = NULL))
  expect_identical(as.character(curves$level), rep(c("a", "b"), each = 3))
  expect_equal(curves$fit, unname(predict(fit, data.frame(wt = curves$x, kind = curves$level))))
  d$late <- d$kind == "a"
  fit <- cl_gp(mpg ~ wt + late, d, fixed = held)
  curves <- with_null_device(plot(fit, n = 3))
  expect_equal(curves$fit, unname(predict(fit, data.frame(wt = curves$x, late = curves$level))))
  # many levels are held, unless they are asked for
  d$many <- factor(seq_len(32) %% 16)
  fit <- cl_gp(mpg ~ wt + many, d, k_matern52() * k_factor("many"),
               fixed = c(sd1 = 5, lengthscale1 = 2, sd2 = 1, lengthscale2 = 0.5, noise = 2))
  expect_null(with_null_device(plot(fit, n = 3))$level)
  expect_identical(nrow(with_null_device(plot(fit, n = 3, along = c("wt", "many")))), 48L)
})

test_on_host("intervals at the levels of factors, also of other families", {
  fixed <- c(sd = 0.8, lengthscale = 1)
  d <- data.frame(InsectSprays, block = gl(2, 1, 72), time = rep(1:3, 24))
  fit <- cl_gp(count ~ spray, d, k_factor("spray"), fixed = c(sd = 8, lengthscale = 1, noise = 4))
  at <- with_null_device(plot(fit))
  expect_equal(as.matrix(at[-1]), cbind(predict(fit, at, interval = "confidence"),
                                        predict(fit, at, interval = "prediction")[, -1]),
               ignore_attr = TRUE)
  counts <- cl_gp(count ~ spray + block, d, k_factor(c("spray", "block")), family = poisson(),
                  fixed = fixed)
  things <- drawn_things(at <- plot(counts))
  expect_named(at, c("spray", "block", "fit", "lwr", "upr"))
  expect_identical(nrow(at), 12L)
  want <- predict(counts, at, type = "response", interval = "confidence")
  expect_equal(as.matrix(at[-(1:2)]), want, ignore_attr = TRUE, tolerance = 1e-6)
  # the observations of each level of the second factor, then the fits there
  expect_equal(things$points[c(1, 3)], unname(split(d$count, d$block)))
  expect_equal(things$points[c(2, 4)], unname(split(at$fit, at$block)))
  curves <- with_null_device(plot(cl_gp(
    count ~ time + spray, d, k_exp_quad(1, 2) * k_factor("spray"), family = poisson(),
    fixed = c(sd1 = 0.8, lengthscale1 = 2, sd2 = 1, lengthscale2 = 1)), n = 4))
  expect_named(curves, c("x", "fit", "lwr", "upr", "level"))
  expect_identical(nrow(curves), 24L)
})

test_that("diagnostics and traces", {
  with_null_device(on_host({
    fit <- cl_gp(dist ~ speed, data = cars, starts = 1)
    drawn <- plot(fit, type = "loo")
    expect_identical(par("mfrow"), c(1L, 1L))
    expect_equal(drawn$standardized, unname(residuals(fit, "standardized")))
    expect_equal(plot(fit, type = "loo", which = 3), drawn)
    expect_refused("type", plot(fit, type = "trace"), plot(fit, type = "other"))
    sampled <- suppressWarnings( # so few draws do not agree
      cl_gp(dist ~ speed, data = cars, method = "mcmc", starts = 1,
            control = list(chains = 1, warmup = 50, iter = 20, seed = 1)))
    expect_silent(plot(sampled, type = "trace"))
  }))
})

gp_states$list <- list()
