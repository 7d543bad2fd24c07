# Fits with kernels of all kinds, and sums and products of them.

skip_on_cran() # long; run by ./dev check

test_that("each type of kernel is fitted, to a maximum of its likelihood", {
  x <- seq(0, 6, length.out = 40)
  set.seed(8)
  y <- sin(2 * pi * x) + 0.3 * x + rnorm(40, sd = 0.1)
  kernels <- list(k_exponential(), k_rational_quadratic(), k_periodic(period = 1.1) + k_linear(),
                  k_exp_quad() * k_periodic() + k_constant(), k_linear(center = 2) + k_matern32())
  for (kernel in kernels) {
    fit <- on_host(suppressWarnings(cl_gp(x, y, kernel = kernel, starts = 3, method = "ml")))
    want <- plain_gp(y, as.matrix(x), fit$kernel, fit$noise, "estimate")
    label <- paste(format(kernel), collapse = " ")
    expect_equal(fit$logLik, want$value, tolerance = 1e-8, label = label)
    inner <- setdiff(names(fit$gradient), fit$at_bound)
    expect_lt(max(abs(fit$gradient[inner])), 0.05, label = label)
    each_engine({
      at <- c(1.23, 7)
      got <- predict(fit, at, se.fit = TRUE)
      plain <- want$predict(as.matrix(at))
      expect_close(unname(got$fit), unname(plain$mean), 1e-7)
      expect_close(unname(got$se.fit), sqrt(diag(plain$covariance)), 1e-6)
    })
  }
})

test_that("a period is found from a nearby guess", {
  x <- seq(0, 6, length.out = 60)
  y <- sin(2 * pi * x / 1.3) + cos(4 * pi * x / 1.3) / 2
  fit <- on_host(cl_gp(x, y, kernel = k_periodic(period = 1), fixed = c(noise = 0.01),
                       method = "ml"))
  expect_equal(coef(fit)[["period"]] / 1.3, 1, tolerance = 1e-2)
})

test_on_host(
  "one scale of a product is fixed, and white noise in addition to noise gives a warning", {
  x <- seq(0, 3, length.out = 25)
  y <- sin(2 * x)
  fit <- cl_gp(x, y, kernel = k_exp_quad() * k_matern52(), starts = 1, fixed = c(noise = 0.1),
               method = "ml")
  expect_identical(fit$fixed, c("sd2", "noise"))
  expect_identical(coef(fit)[["sd2"]], 1)
  expect_warning(cl_gp(x, y + sin(40 * x), kernel = k_exp_quad() + k_white(), starts = 1,
                       method = "ml"),
                 class = "statcl_warning_white")
  expect_silent(cl_gp(x, y + sin(40 * x), kernel = k_exp_quad() + k_white(), starts = 1,
                      fixed = c(noise = 0), method = "ml"))
})

test_each_engine("white noise of the kernel is noise", {
  x <- cbind(u = seq(0, 3, length.out = 25), v = rep(1:5, 5))
  set.seed(1)
  y <- sin(2 * x[, 1]) + rnorm(25, sd = 0.2)
  par <- c(sd1 = 0.8, lengthscale1 = 0.7, sd2 = 0.2, noise = 0)
  at <- cbind(u = c(0.5, 1.5), v = 2)
  own <- cl_gp(x, y, kernel = k_exp_quad(columns = "u") + k_white(), fixed = par, method = "ml")
  plain <- cl_gp(x, y, kernel = k_exp_quad(columns = "u"),
                 fixed = c(sd = 0.8, lengthscale = 0.7, noise = 0.2), method = "ml")
  expect_equal(own$logLik, plain$logLik, tolerance = 1e-10)
  expect_close(unname(fitted(own)), unname(fitted(plain)), 1e-10)
  expect_close(unname(predict(own)), unname(fitted(own)), 1e-8)
  for (kind in c("confidence", "prediction")) {
    expect_close(unname(predict(own, at, interval = kind)),
                 unname(predict(plain, at, interval = kind)), 1e-8)
  }
  expect_equal(residuals(own, "standardized"), residuals(plain, "standardized"),
               tolerance = 1e-8)
  for (conditional in c(TRUE, FALSE)) for (noise in c(TRUE, FALSE)) {
    draw <- function(fit) {
      simulate(fit, 2, seed = 1, newdata = at, conditional = conditional, noise = noise)
    }
    expect_equal(draw(own), draw(plain), tolerance = 1e-6)
  }
  # a factor that multiplies white noise
  product <- cl_gp(x, y, kernel = k_exp_quad(columns = "u") + k_white() * k_linear(columns = "v"),
                   fixed = c(sd1 = 0.8, lengthscale1 = 0.7, sd2 = 0.2, sd3 = 1, noise = 0.1),
                   method = "ml")
  by_variance <- cl_gp(x, y, kernel = k_exp_quad(columns = "u"), variance = 0.04 * x[, "v"]^2,
                       fixed = c(sd = 0.8, lengthscale = 0.7, noise = 0.1), method = "ml")
  expect_close(unname(fitted(product)), unname(fitted(by_variance)), 1e-9)
  width <- function(fit) diff(predict(fit, at, interval = "prediction")[1, 2:3])
  expect_equal(width(product)^2 - width(by_variance)^2,
               (2 * qnorm(0.975))^2 * 0.04 * 4, tolerance = 1e-6, ignore_attr = TRUE)
})

test_that("user-defined kernels are fitted like others", {
  d <- some_data(30, 1)
  y <- 50 * d$y
  cauchy <- function(x1, x2, par) {
    par[["height"]]^2 / (1 + cl_distance(x1, x2, squared = TRUE) / par[["reach"]]^2)
  }
  # alpha = 1 of the rational quadratic, with r^2 / 2
  want <- on_host(cl_gp(d$x, y, kernel = k_rational_quadratic(), fixed = c(alpha = 1),
                        method = "ml"))
  on_host({
    fit <- cl_gp(d$x, y, kernel = k_user(cauchy, c(height = 30, reach = 0.5)), method = "ml")
    expect_true(fit$converged)
    expect_equal(fit$logLik, want$logLik, tolerance = 1e-6)
    expect_equal(coef(fit)[["height"]], coef(want)[["sd"]], tolerance = 1e-2)
    expect_equal(coef(fit)[["reach"]], sqrt(2) * coef(want)[["lengthscale"]], tolerance = 1e-2)
    expect_close(unname(predict(fit, c(0.2, 0.9))), unname(predict(want, c(0.2, 0.9))), 1e-3)
    summary(fit)
    mixed <- cl_gp(d$x, y, kernel = k_user(cauchy, c(height = 30, reach = 0.5)) + k_white(),
                   fixed = c(noise = 0), starts = 1, method = "ml")
    expect_equal(mixed$logLik, want$logLik, tolerance = 1e-5)
    expect_close(unname(predict(mixed, 0.5, interval = "prediction")),
                 unname(predict(want, 0.5, interval = "prediction")), 1e-2)
  })
})

test_on_host("the fit with a linear kernel is Bayesian regression", {
  d <- mtcars
  x <- scale(as.matrix(d[c("wt", "hp")]))
  fit <- cl_gp(x, d$mpg, kernel = k_linear(sd = c(1, 1)), mean = "estimate", starts = 2,
               method = "ml")
  prior <- coef(fit)[c("sd.wt", "sd.hp")]
  # ridge regression with these penalties
  a <- crossprod(x) + diag(fit$noise^2 / prior^2)
  slope <- solve(a, crossprod(x, d$mpg - fit$mean))
  expect_close(unname(predict(fit, x)), as.vector(fit$mean + x %*% slope), 1e-7)
  expect_close(unname(predict(fit, x[1:3, ], gradient = TRUE)$gradient),
               matrix(slope, 3, 2, byrow = TRUE), 1e-7)
})

gp_states$list <- list()
