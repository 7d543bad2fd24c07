# The Fisher information of Vecchia's approximation, and what uses it.

test_each_engine("the information is that of the conditional distributions", {
  for (kernel in vecchia_kernels[full_or_quick(1:5, c(1, 4, 5))]) {
    for (m in c(6, 21)) for (grouped in c(FALSE, TRUE)) {
      d <- scattered(if (grouped) 60L else 22L)
      weights <- 1 + d$x[, 1L]
      variance <- d$x[, 2L] / 50
      y <- cbind(d$y, d$y^2)
      f <- cl_gp_likelihood(y, d$x, kernel, mean = "linear", beta = "integrate",
                            weights = weights, variance = variance, approx = "vecchia",
                            neighbours = m, grouped = grouped)
      par <- c(coef(kernel), noise = 0.2)
      found <- f(par, information = TRUE)
      plain <- f(par)
      expect_close(as.numeric(found), as.numeric(plain), 1e-11)
      expect_equal(attr(found, "gradient"), attr(plain, "gradient"), tolerance = 1e-10)
      expect_equal(attr(found, "beta"), attr(plain, "beta"), tolerance = 1e-10)
      expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
      covariance <- function(par) covariance_at(kernel, par, d$x, weights, variance)
      right <- 2 * plain_information(covariance, par, blocks_of(f)) # of two outputs
      scale <- sqrt(outer(diag(right), diag(right)))
      expect_lt(max(abs(attr(found, "information") - right) / scale), 1e-6)
      expect_identical(dimnames(attr(found, "information")), list(names(par), names(par)))
    }
  }
})

test_each_engine("one pass gives the derivatives of two, with far points too", {
  d <- scattered(full_or_quick(1500L, 300L))
  d$x[2L, ] <- 1e160 # squares overflow
  for (mean in list(0, "constant")) for (grouped in c(FALSE, TRUE)) {
    f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = mean, approx = "vecchia",
                          neighbours = 8, grouped = grouped)
    par <- c(1, 0.3, 0.2)
    expect_true(all(is.finite(attr(f(par, information = TRUE), "information"))))
    expect_lt(max(abs(cl_check_gradient(f, par)$error)), 1e-5)
  }
})

test_that("standard errors of fits come from the information", {
  d <- as.data.frame(scattered(120L))
  names(d) <- c("a", "b", "y")
  fit <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 10, starts = 1)
  f <- statcl:::gp_function(statcl:::gp_problem(fit))
  information <- attr(f(fit$par, information = TRUE), "information")
  names <- names(fit$par)
  expect_equal(vcov(fit)[names, names], solve(information), tolerance = 1e-8)
  half <- stats::qnorm(0.975) * sqrt(diag(solve(information))) / fit$par
  expect_equal(confint(fit)[names, 2L], fit$par * exp(half), tolerance = 1e-8)
  # where the information is not that of the objective: differences
  other <- cl_gp(y ~ a + b, d, k_matern32(), method = "map", approx = "vecchia", neighbours = 10,
                 starts = 1)
  expect_true(all(is.finite(vcov(other)[names, names])))
  expect_gt(max(abs(vcov(other)[names, names] / vcov(fit)[names, names] - 1)), 1e-3)
  # on a bound, and held
  held <- cl_gp(y ~ a + b, d, k_matern32(), approx = "vecchia", neighbours = 10, starts = 1,
                fixed = c(sd = 1, noise = 0.1, lengthscale.b = 2))
  expect_true(vcov(held)["lengthscale.a", "lengthscale.a"] > 0)
})

test_that("the information is GpGp's for the same order and neighbours", {
  skip_if_not(nzchar(system.file(package = "GpGp")), "GpGp is not installed")
  d <- scattered(400L)
  f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "constant", approx = "vecchia",
                        neighbours = 12)
  par <- c(sd = 1.2, lengthscale = 0.3, noise = 0.2)
  graph <- vecchia_graph(f)
  peer <- getExportedValue("GpGp", "vecchia_profbeta_loglik_grad_info")(
    c(1.44, 0.3 / sqrt(3), 0.04 / 1.44), "matern15_isotropic", d$y[graph$order],
    matrix(1, 400), d$x[graph$order, ], cbind(seq_len(400), t(graph$neighbours)))
  # variance, range and ratio of the nugget by sd, lengthscale and noise
  by <- rbind(c(1 / 2.4, 0, 0), c(0, sqrt(3), 0), c(0.2 / 2.88, 0, 0.5 * 1.44 / 0.2))
  found <- f(par, information = TRUE)
  expect_close(as.numeric(found), peer$loglik, 1e-9)
  expect_equal(drop(t(by) %*% attr(found, "gradient")), as.vector(peer$grad), tolerance = 1e-9)
  expect_equal(unname(t(by) %*% attr(found, "information") %*% by), peer$info, tolerance = 1e-9)
})
