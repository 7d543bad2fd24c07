# Noise with a process of its own: against dense matrices in base R, differences and constant noise.

noise_data <- function(n = 24) {
  x <- cbind(t = rep(seq(0, 3, length.out = n / 2), each = 2))
  x[1:6, ] <- x[1, ] # six observations at one input
  list(x = x, y = sin(2 * x[, 1]) + cos(7 * seq_len(n)) * (0.05 + 0.2 * x[, 1]),
       w = rep_len(c(1, 2, 0.5), n))
}

noise_problem <- function(beta = "profile", mean = "constant", weights = NULL, d = noise_data()) {
  new_gp_problem(d$x, d$y, k_matern52(), mean, beta, weights, NULL, NULL)
}

noise_par <- c(sd = 0.9, lengthscale = 0.7, noise.sd = 1.2, noise.lengthscale = 0.8, noise = 0.2)

# The value by matrices of the order of all observations, with determinants and inverses of base R;
# the mode by optim() on G^-1/2 g.
dense_noise <- function(problem, par) {
  n <- length(problem$y)
  k <- on_host(cl_cov(problem$x, kernel = k_matern52(par[1], par[2])))
  at <- unique(problem$x)
  of <- match(problem$x, at)
  prior <- on_host(cl_cov(at, kernel = k_exp_quad(par[3], par[4])))
  w <- if (is.null(problem$weights)) rep(1, n) else problem$weights
  h <- switch(problem$mean$kind, number = NULL, constant = matrix(1, n, 1), problem$mean$basis)
  y <- problem$y - problem$mean$centre
  parts <- function(g) {
    v <- par[5]^2 * exp(g[of]) / w
    inverse <- solve(k + diag(v))
    p <- inverse
    value <- -determinant(k + diag(v))$modulus / 2 - n * log(2 * pi) / 2
    if (!is.null(h)) {
      info <- t(h) %*% inverse %*% h
      p <- inverse - inverse %*% h %*% solve(info) %*% t(h) %*% inverse
      if (problem$beta == "integrate") {
        value <- value - determinant(info)$modulus / 2 + ncol(h) * log(2 * pi) / 2
        inverse <- p
      }
    }
    full <- outer(v, v) * inverse^2 / 2
    list(value = as.numeric(value) - sum(y * (p %*% y)) / 2,
         w = rowsum(t(rowsum(full, of)), of))
  }
  e <- eigen(prior, TRUE)
  root <- e$vectors %*% diag(sqrt(pmax(e$values, 0)))
  found <- optim(numeric(length(at)), function(z) sum(z^2) / 2 - parts(root %*% z)$value,
                 method = "BFGS", control = list(reltol = 1e-14, maxit = 1000))
  w <- parts(root %*% found$par)$w
  -found$value - as.numeric(determinant(diag(length(at)) + prior %*% w)$modulus) / 2
}

test_each_engine("the likelihood is that of dense matrices of all observations", {
  d <- noise_data()
  for (beta in c("profile", "integrate")) for (mean in list("constant", "linear", 0.3)) {
    problem <- noise_problem(beta, mean, d$w)
    want <- dense_noise(problem, noise_par)
    problem$noise_kernel <- k_exp_quad()
    expect_close(as.numeric(noise_function(problem, 1)(noise_par, FALSE)), want, 1e-5)
  }
})

test_each_engine("its gradient is that of differences", {
  d <- noise_data()
  for (beta in c("profile", "integrate")) for (mean in list("constant", "linear", 0.3)) {
    problem <- noise_problem(beta, mean, d$w)
    problem$noise_kernel <- k_exp_quad()
    f <- noise_function(problem, 1)
    by <- slopes_of(function(par) f(par, FALSE), noise_par, 1e-3 * noise_par)
    expect_close(unname(attr(f(noise_par), "gradient")), by, 1e-6)
  }
})

test_each_engine(
  "without variance of its logarithm the noise is constant, with replicates and weights", {
  d <- noise_data()
  par <- replace(noise_par, "noise.sd", 1e-9)
  for (beta in c("profile", "integrate")) {
    problem <- noise_problem(beta, "constant", d$w)
    problem$noise_kernel <- k_exp_quad()
    want <- cl_gp_likelihood(d$y - mean(d$y), d$x, k_matern52(), "constant", beta,
                             weights = d$w)(par[c(1, 2, 5)])
    got <- noise_function(problem, 1)(par)
    expect_close(as.numeric(got), as.numeric(want), 1e-9)
    expect_close(attr(got, "gradient")[c(1, 2, 5)], attr(want, "gradient"), 1e-6)
  }
})

# The mean noise variance at points: its logarithm has the variance G - G (G + W^-1)^-1 G with the
# expected information W, the sums over observations at each input.
mean_noise <- function(fit, at, noise) {
  own <- fit$noise_process
  c <- as.matrix(cl_cov(fit$x, kernel = fit$kernel)) + diag(noise)
  of <- match(fit$x, own$x)
  w <- rowsum(t(rowsum(tcrossprod(noise) * solve(c)^2 / 2, of)), of)
  g <- as.matrix(cl_cov(own$x, kernel = own$kernel))
  near <- as.matrix(cl_cov(at, own$x, own$kernel))
  spread <- as.matrix(cl_cov(at, kernel = own$kernel)) - near %*% solve(g + solve(w), t(near))
  fit$noise^2 * exp(drop(near %*% own$b) + diag(spread) / 2)
}

test_that("a fit has noise by its inputs, and the methods of others", {
  d <- noise_data(40)
  data <- data.frame(t = d$x[, 1], y = d$y)
  each_engine({
    fit <- cl_gp(y ~ t, data, noise = k_exp_quad(), starts = 1)
    expect_true(fit$converged)
    expect_gt(fit$logLik, cl_gp(y ~ t, data, starts = 2)$logLik + 1)
    at <- data.frame(t = c(0.1, 2.9))
    got <- predict(fit, at, se.fit = TRUE, interval = "prediction")
    expect_gt(got$residual.scale[2], 3 * got$residual.scale[1])
    half <- qnorm(0.975) * sqrt(got$se.fit^2 + got$residual.scale^2)
    expect_close(got$fit[, "upr"], got$fit[, "fit"] + half, 1e-10)
    # given the variances, the formulas of any process
    noise <- fit$noise^2 / weights(fit)
    expect_close(unname(got$residual.scale^2), mean_noise(fit, as.matrix(at), noise), 1e-6)
    plain <- plain_gp(fit$y, fit$x, fit$kernel, NA, "estimate", noise)
    want <- plain$predict(as.matrix(at))
    expect_close(unname(got$se.fit), sqrt(diag(want$covariance)), 1e-7)
    expect_close(unname(got$fit[, "fit"]), want$mean, 1e-7)
    expect_close(unname(residuals(fit, "loo")), fit$y - plain$loo$mean, 1e-6)
    expect_true(all(diag(vcov(fit))[names(fit$par)] > 0))
  })
  fit <- on_host(cl_gp(y ~ t, data, noise = k_exp_quad(), starts = 1))
  expect_output(print(fit), "its log variance by the kernel")
  expect_output(print(summary(fit)), "noise.lengthscale")
  expect_identical(nrow(on_host(simulate(fit, 2, seed = 1, noise = TRUE))), 40L)
  again <- on_host(update(fit, refit = TRUE))
  expect_close(again$logLik, fit$logLik, 1e-4)
})

test_that("the log score of mcycle is better than with constant noise", {
  d <- MASS::mcycle
  d$y <- d$accel / sd(d$accel)
  fold <- rep_len(c(1, 3, 5, 2, 4), nrow(d))
  score <- function(...) {
    mean(unlist(lapply(1:5, function(k) {
      fit <- on_host(cl_gp(y ~ times, d[fold != k, ], starts = 1, ...))
      p <- on_host(predict(fit, d[fold == k, ], se.fit = TRUE))
      dnorm(d$y[fold == k], p$fit, sqrt(p$se.fit^2 + p$residual.scale^2), log = TRUE)
    })))
  }
  start <- c(sd = 1, lengthscale = 7, noise = 0.3)
  expect_gt(score(noise = k_exp_quad(), start = c(start, noise.sd = 2, noise.lengthscale = 6)),
            -0.45)
  expect_lt(score(start = start), -0.6)
})

test_that("what a process of the noise cannot do is an error", {
  d <- noise_data()
  refused <- function(argument, ...) {
    expect_fault(cl_gp(d$x, d$y, ..., starts = 1), "argument", argument = argument)
  }
  refused("noise", noise = 1)
  refused("noise", noise = k_exp_quad(), method = "map")
  refused("noise", noise = k_exp_quad(), variance = d$w)
  refused("noise", noise = k_exp_quad(), approx = "vecchia")
  refused("noise", noise = k_white())
  refused("noise", noise = k_exp_quad(), family = "student_t")
  fit <- on_host(cl_gp(d$x, d$y, noise = k_exp_quad(), fixed = noise_par))
  expect_close(fit$par, noise_par, 0)
  expect_refused("newdata", update(fit, newdata = cbind(t = 1), y = 1))
})

test_each_engine("observations at one input may differ in the basis of the mean", {
  d <- noise_data()
  g <- rep_len(0:1, length(d$y))
  moved <- d$x + 1e-10 * seq_along(d$y)
  value <- function(x) {
    problem <- new_gp_problem(x, d$y + 2 * g, k_matern52(), ~ g, "profile", NULL, NULL,
                              cbind(`(Intercept)` = 1, g = g))
    problem$noise_kernel <- k_exp_quad()
    noise_function(problem, 1)(noise_par)
  }
  one <- value(d$x)
  apart <- value(moved)
  expect_close(as.numeric(one), as.numeric(apart), 1e-6)
  expect_close(attr(one, "gradient"), attr(apart, "gradient"), 1e-5)
})
