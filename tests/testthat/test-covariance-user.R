# Kernels written in R: the same as the built-in one of the same formula, everywhere.

skip_on_cran() # long; run by ./dev check

squared <- function(x1, x2, par) {
  par[["sd"]]^2 * exp(-0.5 * cl_distance(x1, x2, par[["l"]], squared = TRUE))
}
slopes <- function(x1, x2, par) {
  d2 <- cl_distance(x1, x2, par[["l"]], squared = TRUE)
  k <- par[["sd"]]^2 * exp(-0.5 * d2)
  list(l = k * d2 / par[["l"]], sd = 2 / par[["sd"]] * k)
}

own_data <- function(n = 25) {
  set.seed(n)
  x <- matrix(runif(n * 2), n, dimnames = list(NULL, c("a", "b")))
  list(x = x, y = cbind(sin(5 * x[, 1]) + rnorm(n, sd = 0.1), x[, 2]), w = runif(n, 0.5, 2))
}

own <- k_user(squared, c(sd = 1.2, l = 0.5)) * (k_linear(0.7) + k_constant(0.5)) + k_white(0.2)
same <- k_exp_quad(1.2, 0.5) * (k_linear(0.7) + k_constant(0.5)) + k_white(0.2)

test_each_engine("distances agree with dist()", {
  x <- own_data()$x
  expect_close(cl_distance(x), unname(as.matrix(dist(x))), 1e-14)
  expect_close(cl_distance(x, x[1:3, ], c(2, 0.5), squared = TRUE),
               unname(as.matrix(dist(sweep(x, 2, c(2, 0.5), "/")))[, 1:3])^2, 1e-14)
})

test_each_engine("covariances and their adjoint", {
  d <- own_data()
  w <- crossprod(matrix(rnorm(25^2), 25))
  expect_close(cl_cov(d$x, kernel = own), cl_cov(d$x, kernel = same), 1e-14)
  expect_close(as.matrix(cl_cov(as_cl(d$x), d$x[1:4, ], own)),
               cl_cov(d$x, d$x[1:4, ], same), 1e-14)
  expect_equal(unname(cl_cov_adjoint(w, d$x, kernel = own)),
               unname(cl_cov_adjoint(w, d$x, kernel = same)), tolerance = 1e-9)
  with_slopes <- own
  with_slopes$terms[[1]]$derivative <- slopes
  expect_equal(unname(cl_cov_adjoint(w, d$x, kernel = with_slopes)),
               unname(cl_cov_adjoint(w, d$x, kernel = same)), tolerance = 1e-12)
  expect_equal(kernel_variance(own, d$x), kernel_variance(same, d$x), tolerance = 1e-13)
})

test_each_engine("likelihoods and predictions", {
  d <- own_data()
  par <- c(coef(own), noise = 0.2)
  at <- matrix(runif(10), 5)
  for (objective in c("ml", "loo")) {
    for (how in list(c(NA, "profile"), c("linear", "profile"), c("linear", "integrate"))) {
      make <- function(kernel) {
        mean <- if (is.na(how[1])) 0.3 else how[1]
        cl_gp_likelihood(d$y, d$x, kernel, mean, how[2], d$w, objective = objective)
      }
      f <- make(own)
      g <- make(same)
      expect_equal(as.numeric(f(par)), as.numeric(g(unname(par))), tolerance = 1e-11)
      expect_named(attr(f(par), "gradient"), names(par))
      expect_equal(unname(attr(f(par), "gradient")), unname(attr(g(unname(par)), "gradient")),
                   tolerance = 1e-8)
      expect_equal(attr(f(par), "beta"), attr(g(unname(par)), "beta"), tolerance = 1e-9)
      expect_null(attr(f(par, gradient = FALSE), "gradient"))
    }
    s <- gp_condition(f, par)
    want <- gp_condition(g, unname(par))
    for (what in c("mean", "variance", "covariance")) {
      expect_equal(s$predict(at, what), want$predict(at, what), tolerance = 1e-8)
    }
    expect_equal(s$loo(), want$loo(), tolerance = 1e-8)
    expect_equal(s$mean_gradient(at, 2), unname(want$mean_gradient(at, 2)), tolerance = 1e-6)
    expect_equal(s$beta_cov, want$beta_cov, tolerance = 1e-8)
    more <- gp_condition(cl_gp_likelihood(d$y[1:20, ], d$x[1:20, ], own), par)
    more <- more$extend(d$y[21:25, ], d$x[21:25, ])
    expect_equal(more$weights, gp_condition(cl_gp_likelihood(d$y, d$x, same), unname(par))$weights,
                 tolerance = 1e-8)
    expect_output(print(f), "by R arithmetic")
  }
})

test_each_engine("a state on a device can be saved and restored", {
  d <- own_data()
  s <- gp_condition(cl_gp_likelihood(d$y[, 1], d$x, own), c(coef(own), noise = 0.2))
  file <- tempfile()
  saveRDS(s, file)
  expect_equal(readRDS(file)$predict(d$x[1:2, ])$mean, s$predict(d$x[1:2, ])$mean,
               tolerance = 1e-12)
})

test_that("a state that moves between engines in a prediction gives the same one", {
  with_thresholds(c(gp = 10), {
    d <- own_data()
    par <- c(coef(own), noise = 0.2)
    f <- cl_gp_likelihood(d$y[, 1], d$x, own)
    predict <- function(s) s$predict(d$x[1:2, ] + 0.1, "covariance")
    want <- predict(with_cl(gp_condition(f, par), engine = "host"))
    engine <- function(call) environment(environment(call)$on_handle)$engine
    session$owed$gp <- 1e6
    expect_lt(calls_until(function() {
      session$lost <- list()
      assign("spare", 0, engine(f)) # asks in each evaluation
      f(par)
    }, function() engine(f)$at >= 0L), 30)
    s <- gp_condition(f, par)
    expect_identical(engine(s$predict)$at, test_device())
    of <- list(kind = "gp", size = nrow(d$x), times = 1)
    for (i in 1:9) { # the device is slower
      note_time(of, -1L, 1e-9)
      note_time(of, test_device(), 1)
    }
    expect_equal(predict(s), want, tolerance = 1e-8)
    expect_identical(engine(s$predict)$at, -1L)
    expect_equal(predict(s), want, tolerance = 1e-8)
  })
})

test_that("parameters have their own names and signs", {
  free <- k_user(function(x1, x2, par) par[["a"]] + 0 * cl_distance(x1, x2), c(a = -1, b = 2),
                 positive = c(FALSE, TRUE)) + k_exp_quad()
  expect_identical(coef(free), c(a1 = -1, b1 = 2, sd2 = 1, lengthscale2 = 1))
  expect_identical(coef(update(free, a1 = -3))[["a1"]], -3)
  expect_fault(update(free, b1 = -3), "argument")
  expect_identical(kernel_parameters(free, 1)$positive, c(FALSE, TRUE, TRUE, TRUE))
  expect_identical(kernel_parameters(free, 1)$role, c("user", "user", "sd", "lengthscale"))
  expect_output(print(free), "k_user(f, c(a = -1, b = 2))", fixed = TRUE)
  f <- on_host(cl_gp_likelihood(1:3, 1:3, free))
  expect_refused("par", f(c(-1, -1, 1, 1, 0.1)))
})

test_that("bad functions are rejected", {
  d <- own_data()
  for (bad in list(1, c(a = NA), c(a = 1, a = 2), "a", c(a = -1), c(noise = 1))) {
    expect_refused("par", k_user(squared, bad))
  }
  wrong <- k_user(function(x1, x2, par) 1, c(a = 1))
  each_engine(expect_fault(cl_cov(d$x, kernel = wrong), "argument", argument = "kernel"))
})
