# The Fisher information of Vecchia's approximation, and what uses it.

settings <- function(n) {
  set.seed(n)
  x <- matrix(stats::runif(2 * n), n, dimnames = list(NULL, c("a", "b")))
  list(x = x, y = sin(6 * x[, 1L]) + x[, 2L] + 0.1 * stats::rnorm(n))
}

# Covariances of the observations at parameters, with weights and known variances.
covariance_at <- function(kernel, par, x, weights, variance) {
  names <- names(coef(kernel))
  noise <- par[["noise"]]
  kernel <- statcl:::with_parameters(kernel, par[names])
  as.matrix(cl_cov(x, kernel = kernel)) + diag(noise^2 / weights + variance, nrow(x))
}

# The information by its formula, sum_i tr(K^-1 dK K^-1 dK') / 2 of each block less that of its
# neighbours, with derivatives by differences.
plain_information <- function(covariance, par, graph) {
  slopes <- lapply(seq_along(par), function(i) {
    h <- 1e-5 * par[[i]]
    (covariance(replace(par, i, par[[i]] + h)) - covariance(replace(par, i, par[[i]] - h))) /
      (2 * h)
  })
  k <- covariance(par)
  of <- function(rows) {
    if (length(rows) == 0L) return(0)
    moved <- lapply(slopes, function(s) solve(k[rows, rows], s[rows, rows]))
    outer(seq_along(par), seq_along(par),
          Vectorize(function(i, j) sum(moved[[i]] * t(moved[[j]])) / 2))
  }
  total <- 0
  for (i in seq_along(graph$order)) {
    near <- graph$order[stats::na.omit(graph$neighbours[, i])]
    total <- total + of(c(near, graph$order[i])) - of(near)
  }
  total
}

test_that("the information is that of the conditional distributions, of the process with n - 1", {
  kernels <- list(
    k_matern32(sd = 1.3, lengthscale = c(0.3, 0.5)), k_exponential(lengthscale = 0.4),
    k_matern32(lengthscale = 0.3, columns = 1) + k_periodic(period = 0.4, columns = 2) +
      k_white(sd = 0.3),
    k_rational_quadratic(alpha = 0.7) * k_matern52(columns = 2) + k_linear(sd = 0.5))
  each_engine({
    for (kernel in if (full_or_quick(TRUE, FALSE)) kernels else kernels[c(1L, 3L, 4L)]) {
      for (m in c(6, 21)) {
        d <- settings(22L)
        weights <- 1 + d$x[, 1L]
        variance <- d$x[, 2L] / 50
        y <- cbind(d$y, d$y^2)
        f <- cl_gp_likelihood(y, d$x, kernel, mean = "linear", beta = "integrate",
                              weights = weights, variance = variance, approx = "vecchia",
                              neighbours = m)
        par <- c(coef(kernel), noise = 0.2)
        found <- f(par, information = TRUE)
        plain <- f(par)
        expect_close(as.numeric(found), as.numeric(plain), 1e-11)
        expect_equal(attr(found, "gradient"), attr(plain, "gradient"), tolerance = 1e-10)
        expect_equal(attr(found, "beta"), attr(plain, "beta"), tolerance = 1e-10)
        covariance <- function(par) covariance_at(kernel, par, d$x, weights, variance)
        graph <- statcl:::vecchia_graph(f)
        if (m == 21) graph <- list(order = 22:1, neighbours = upper.tri(diag(22)) * row(diag(22)))
        if (m == 21) graph$neighbours[graph$neighbours == 0] <- NA
        right <- 2 * plain_information(covariance, par, graph) # of two outputs
        scale <- sqrt(outer(diag(right), diag(right)))
        expect_lt(max(abs(attr(found, "information") - right) / scale), 1e-6)
        expect_identical(dimnames(attr(found, "information")), list(names(par), names(par)))
      }
    }
  })
})

test_that("one pass gives the derivatives of two, with far points too", {
  each_engine({
    d <- settings(full_or_quick(1500L, 300L))
    d$x[2L, ] <- 1e160 # squares overflow
    for (mean in list(0, "constant")) {
      f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = mean, approx = "vecchia",
                            neighbours = 8)
      par <- c(1, 0.3, 0.2)
      expect_true(all(is.finite(attr(f(par, information = TRUE), "information"))))
      check <- cl_check_gradient(f, par)
      expect_lt(max(abs(check$error)), 1e-5)
    }
  })
})

test_that("standard errors of fits come from the information", {
  d <- as.data.frame(settings(120L))
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
  d <- settings(400L)
  f <- cl_gp_likelihood(d$y, d$x, k_matern32(), mean = "constant", approx = "vecchia",
                        neighbours = 12)
  par <- c(sd = 1.2, lengthscale = 0.3, noise = 0.2)
  graph <- statcl:::vecchia_graph(f)
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
