test_each_engine("value, mean and gradient agree with plain R and differences, for each mean", {
  d <- some_data()
  par <- c(coef(mixed_kernel), noise = 0.15)
  for (mean in list(0, 1.5, "estimate")) {
    want <- plain_gp(d$y, d$x, mixed_kernel, 0.15, mean)
    f <- cl_gp_likelihood(d$y, d$x, mixed_kernel, mean)
    got <- f(par)
    expect_equal(as.numeric(got), want$value, tolerance = 1e-11)
    expect_equal(as.numeric(f(par, gradient = FALSE)), as.numeric(got), tolerance = 1e-12)
    expect_null(attr(f(par, gradient = FALSE), "gradient"))
    if (identical(mean, "estimate")) expect_equal(attr(got, "mean"), want$mean, tolerance = 1e-10)
    expect_gp_gradient(f, par)
  }
})

test_that("parameters are matched by name or position", {
  d <- some_data()
  f <- on_host(cl_gp_likelihood(d$y, d$x, k_matern52()))
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  expect_identical(f(rev(par)), f(par))
  expect_identical(f(unname(par)), f(par))
  expect_identical(attr(f(replace(par, "noise", 0)), "gradient")[["noise"]], 0)
  for (bad in list(par[-1], unname(par)[-1], c(a = 1, b = 1, noise = 1), "a",
                   replace(par, "sd", 0), replace(par, "lengthscale", -1),
                   replace(par, "noise", -0.1), replace(par, "noise", NA),
                   replace(par, "sd", Inf))) {
    expect_refused("par", f(bad))
  }
})

test_each_engine("a likelihood can be saved and restored, and prints its engine", {
  d <- some_data()
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  f <- cl_gp_likelihood(d$y, d$x, k_matern52())
  expect_output(print(f), "45 observations, 2 columns, mean 0")
  file <- tempfile()
  saveRDS(f, file)
  again <- readRDS(file)
  expect_output(print(again), "will copy the data")
  expect_identical(again(par), f(par))
})

test_that("likelihoods and fits work in forked processes, on the host", {
  skip_on_os("windows")
  d <- some_data()
  par <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  each_engine({
    f <- cl_gp_likelihood(d$y, d$x, k_matern52())
    fit <- cl_gp(d$x, d$y, starts = 1)
    want <- list(f(par), unname(predict(fit, d$x[1:3, ])))
    got <- parallel::mclapply(1:2, function(i) list(f(par), unname(predict(fit, d$x[1:3, ]))),
                              mc.cores = 2)
    for (i in 1:2) expect_equal(got[[i]], want, tolerance = 1e-10)
    expect_identical(f(par), want[[1]])
  })
})

test_each_engine("a matrix that is not positive definite is reported with its order", {
  f <- cl_gp_likelihood(c(1, 2, 3), c(0, 0, 1), k_exp_quad())
  expect_fault(f(c(1, 1, 0)), "not_pd", order = 2)
  expect_true(is.finite(f(c(1, 1, 0.1))))
})

test_each_engine("bad data is rejected", {
  d <- some_data()
  k <- k_exp_quad()
  expect_refused("y", cl_gp_likelihood(d$y[-1], d$x, k), cl_gp_likelihood(letters, d$x, k),
                 cl_gp_likelihood(numeric(), numeric(), k))
  expect_refused("mean", cl_gp_likelihood(d$y, d$x, k, mean = "a"),
                 cl_gp_likelihood(d$y, d$x, k, mean = NA))
  expect_refused("kernel", cl_gp_likelihood(d$y, d$x, "k"))
  expect_fault(cl_gp_likelihood(replace(d$y, 3, NA), d$x, k), "nonfinite", argument = "y",
               index = 3)
  expect_fault(cl_gp_likelihood(d$y, replace(d$x, 50, Inf), k), "nonfinite", argument = "x",
               index = 50)
})
