# Fits with unusual or unusable input.

test_on_host("formulas with factors, missing values and subsets", {
  d <- mtcars
  d$wt[3] <- NA
  d$cyl <- factor(d$cyl)
  fit <- cl_gp(mpg ~ wt + cyl, data = d, starts = 1, na.action = na.exclude)
  expect_identical(colnames(fit$x), c("wt", "cyl6", "cyl8"))
  expect_identical(nobs(fit), 31L)
  expect_named(coef(fit), c("sd", paste0("lengthscale.", c("wt", "cyl6", "cyl8")), "noise",
                            "mean"))
  expect_identical(which(is.na(fitted(fit))), c(`Datsun 710` = 3L))
  expect_length(residuals(fit), 32)
  expect_length(residuals(fit, "loo"), 32)
  expect_length(predict(fit, d[0, ]), 0)
  expect_equal(predict(fit, data.frame(wt = d$wt[1], cyl = "6"))[[1]], fitted(fit)[[1]])
  expect_refused("newdata", predict(fit, data.frame(wt = 1, cyl = "5")),
                 predict(fit, data.frame(wt = 1)))
  expect_error(cl_gp(mpg ~ wt, data = d, na.action = na.fail), "missing values")
  half <- cl_gp(mpg ~ wt, data = d, subset = am == 1, starts = 1)
  expect_identical(nobs(half), sum(d$am == 1 & !is.na(d$wt)))
  # the mean's missing values count, too
  d$hp[7] <- NA
  expect_identical(nobs(cl_gp(mpg ~ wt, data = d, mean = ~hp, starts = 1)), 30L)
  iso <- cl_gp(mpg ~ wt + hp, data = mtcars, ard = FALSE, starts = 1)
  expect_named(coef(iso), c("sd", "lengthscale", "noise", "mean"))
  all <- cl_gp(mpg ~ ., data = mtcars[1:4], starts = 1)
  expect_identical(colnames(all$x), names(mtcars)[2:4])
})

test_on_host("coincident rows need noise", {
  x <- c(1, 2, 2, 3, 5)
  y <- c(1, 2, 2.5, 3, 1)
  fault <- expect_fault(cl_gp(x, y, fixed = c(noise = 0)), "not_pd", order = 3)
  expect_match(conditionMessage(fault), "average the repeated rows")
  expect_match(conditionMessage(fault), "estimate 'noise'")
  expect_true(is.finite(cl_gp(x, y, starts = 1)$logLik))
  v <- c(0, 0.1, 0.1, 0, 0)
  expect_true(is.finite(cl_gp(x, y, variance = v, fixed = c(noise = 0), starts = 1)$logLik))
  expect_fault(cl_gp(x, y, variance = c(1, 0, 0, 0, 0), fixed = c(noise = 0)), "not_pd",
               order = 3)
  # rows that differ in a column that the kernel does not use
  expect_fault(cl_gp(cbind(x, 1:5), y, kernel = k_matern52(columns = 1), fixed = c(noise = 0)),
               "not_pd", order = 3)
  # nearly equal rows: nothing can be factored at any starting point
  near <- c((0:40) * 1e-12, 1)
  expect_fault(cl_gp(near, sin(1:42), kernel = k_exp_quad(), fixed = c(noise = 0)), "not_pd",
               says = "at any starting point")
})

test_on_host("a constant column gives a warning", {
  d <- data.frame(mtcars, one = 7)
  expect_warning(fit <- cl_gp(mpg ~ wt + one, d, starts = 1),
                 class = "statcl_warning_constant_column")
  expect_identical(fit$fixed, "lengthscale.one")
  expect_equal(fit$logLik, cl_gp(mpg ~ wt, d, starts = 1)$logLik, tolerance = 1e-7)
  expect_output(print(summary(fit)), "lengthscale.one +1 +held")
  expect_silent(cl_gp(mpg ~ wt + one, d, starts = 1, fixed = c(lengthscale.2 = 3)))
})

test_on_host("one observation, and observations that do not vary", {
  expect_refused("y", cl_gp(numeric(), numeric()))
  expect_refused("y", cl_gp(1:3, c(1, 1, 1)), says = "constant")
  expect_refused("y", cl_gp(1:5, 2 * (1:5) + 1, mean = "linear"), says = "exactly")
  # constant, but different from the given mean
  expect_warning(fit <- cl_gp(1:5, rep(2, 5), mean = 0, starts = 1, method = "ml"),
                 class = "statcl_warning_noise")
  expect_true(is.finite(fit$logLik))
  expect_warning(fit <- cl_gp(1:2, c(1, 3), mean = 0, starts = 1), class = "statcl_warning_few")
  expect_s3_class(fit, "cl_gp")
})

test_on_host("values that are not finite", {
  expect_fault(cl_gp(c(1, Inf, 2), 1:3), "nonfinite", argument = "x", index = 2)
  expect_fault(cl_gp(1:3, c(1, NaN, 3)), "nonfinite", argument = "y", index = 2)
  expect_fault(cl_gp(cbind(1:3, c(1, NA, 2)), 1:3), "nonfinite", argument = "x", index = 5,
               says = "na.action")
  expect_fault(cl_gp(mpg ~ log(wt - wt), mtcars), "nonfinite", argument = "x")
})

test_on_host("inputs of any scale, and far from zero", {
  d <- some_data(25, 1)
  fit <- cl_gp(d$x, d$y, starts = 1)
  for (shift in c(1e6, -1e8)) {
    far <- cl_gp(d$x + shift, d$y + shift, starts = 1)
    expect_equal(coef(far)[1:3], coef(fit)[1:3], tolerance = 1e-3)
    expect_equal(unname(predict(far, 0.5 + shift)) - shift, unname(predict(fit, 0.5)),
                 tolerance = 1e-4)
  }
  for (mean in list("linear", ~ a + I(a^2))) {
    small <- structure(d$x * 1e-8, dimnames = list(NULL, "a"))
    near <- structure(d$x, dimnames = list(NULL, "a"))
    expect_equal(cl_gp(small, d$y, mean = mean, starts = 1)$logLik,
                 cl_gp(near, d$y, mean = mean, starts = 1)$logLik, tolerance = 1e-6)
  }
})

test_on_host("a fit rejects input that it cannot use", {
  expect_refused("formula", cl_gp(~ speed, cars))
  expect_refused("method", cl_gp(dist ~ speed, cars, method = "reml"))
  expect_refused("kernel", cl_gp(dist ~ speed, cars, kernel = "m"))
  expect_refused("starts", cl_gp(dist ~ speed, cars, starts = 0))
  expect_refused("fixed", cl_gp(dist ~ speed, cars, fixed = 1))
  expect_refused("beta", cl_gp(dist ~ speed, cars, beta = "drop"))
  expect_refused("progress", cl_gp(dist ~ speed, cars, progress = NA))
  expect_refused("foo", cl_gp(dist ~ speed, cars, foo = 1), cl_gp(cars$speed, cars$dist, foo = 1))
  expect_refused("x", cl_gp(letters, 1:26))
  expect_refused("x", cl_gp(iris[2:5], iris[[1]]), says = "'Species'.*formula")
  expect_refused("y", cl_gp(1:3, 1:4))
})

test_that("a long search shows its progress", {
  due <- TRUE
  report <- search_reporter(TRUE, function() due)
  expect_message(report(5L, -3.5), "5 evaluations")
  due <- FALSE
  expect_silent(report(6L, -3.5))
  expect_silent(search_reporter(FALSE, function() TRUE)(5L, 1))
})

test_that("lines of progress are due each second, in scripts each ten, or never", {
  skip_if(interactive())
  late <- function(by) {
    due <- progress_clock()
    for (name in c("started", "last")) {
      assign(name, environment(due)[[name]] - by, environment(due))
    }
    c(due(), due())
  }
  expect_identical(late(100), c(FALSE, FALSE)) # tests are quiet
  old <- options(statcl.quiet = NULL)
  on.exit(options(old))
  expect_identical(late(11), c(TRUE, FALSE))
  expect_identical(late(8), c(FALSE, FALSE))
})

gp_states$list <- list()

test_that("lengthscales are named by column, and numbers still select them", {
  k <- k_exp_quad(lengthscale = c(1, 2), columns = c("wt", "hp")) + k_linear(c(1, 2))
  expect_named(coef(k), c("sd1", "lengthscale1.wt", "lengthscale1.hp", "sd2.1", "sd2.2"))
  expect_identical(update(k, lengthscale1.hp = 5), update(k, lengthscale1.2 = 5))
  expect_identical(eval(parse(text = paste(format(k), collapse = "+"))), k)
  expect_fault(k_exp_quad(lengthscale = c(hp = 1, wt = 2), columns = c("wt", "hp")), "argument",
               argument = "lengthscale")
  expect_fault(cl_cov(mtcars[c("wt", "hp")], kernel = k_exp_quad(1, c(hp = 1, wt = 2))),
               "argument", argument = "lengthscale")
  on_host({
    by <- function(...) {
      cl_gp(mpg ~ wt + hp, mtcars, method = "map", starts = 1, control = list(iter.max = 3), ...)
    }
    prior <- prior_gamma(2, 0.01)
    fits <- suppressWarnings(list(
      by(fixed = c(sd = 4, lengthscale.wt = 2), start = c(lengthscale.hp = 90),
         lower = c(lengthscale.hp = 50), prior = list(lengthscale.hp = prior)),
      by(fixed = c(sd = 4, lengthscale.1 = 2), start = c(lengthscale.2 = 90),
         lower = c(lengthscale.2 = 50), prior = list(lengthscale.2 = prior))))
    expect_named(coef(fits[[1]]), c("sd", "lengthscale.wt", "lengthscale.hp", "noise", "mean"))
    expect_identical(coef(fits[[1]]), coef(fits[[2]]))
    expect_identical(fits[[1]]$prior$lengthscale.hp, fits[[2]]$prior$lengthscale.hp)
    expect_output(print(fits[[1]]), "c(wt = 2, hp =", fixed = TRUE)
    expect_output(print(summary(fits[[1]])), "lengthscale.wt +2 +held +wt")
    # a column whose name is a number goes before the number of a column
    d <- data.frame(`2` = mtcars$wt, `1` = mtcars$hp, check.names = FALSE)
    odd <- cl_gp(as.matrix(d), mtcars$mpg, starts = 1, fixed = c(lengthscale.2 = 3))
    expect_identical(odd$fixed, "lengthscale.2")
    expect_identical(names(odd$par)[2:3], c("lengthscale.2", "lengthscale.1"))
    f <- cl_gp_likelihood(mtcars$mpg, mtcars[c("wt", "hp")],
                          k_exp_quad(1, 1:2, columns = c("wt", "hp")))
    expect_identical(f(c(sd = 1, lengthscale.2 = 9, lengthscale.1 = 2, noise = 1)),
                     f(c(sd = 1, lengthscale.wt = 2, lengthscale.hp = 9, noise = 1)))
  })
})
