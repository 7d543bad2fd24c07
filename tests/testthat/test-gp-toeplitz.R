# The likelihood of points in equal steps, against that of the whole matrix.

problem_of <- function(t, y, kernel, mean = "estimate", beta = "profile") {
  problem <- new_gp_problem(t, y, kernel, mean, beta, NULL, NULL, NULL)
  problem$kernel <- resolve_kernel(kernel, problem$x, NULL, TRUE, stats::sd(y))
  problem
}

refused <- function(...) stop("not accurate")

expect_same_likelihood <- function(problem, noise = 0.3, scale = 1) {
  expect_true(is_toeplitz(problem))
  par <- c(coef(problem$kernel), noise = noise)
  want <- gp_function(problem, "ml", scale)(par)
  f <- toeplitz_function(problem, scale, refused)
  expect_close(as.numeric(f(par)), as.numeric(want), 1e-10)
  expect_close(as.numeric(f(par, FALSE)), as.numeric(want), 1e-10)
  expect_close(unname(attr(f(par), "gradient")), unname(attr(want, "gradient")), 1e-8)
}

test_on_host("value and gradient are those of the whole matrix", {
  set.seed(1)
  kernels <- list(k_exp_quad(lengthscale = 1.5), k_matern32(lengthscale = 5) + k_constant(2),
                  k_periodic(period = 6.5) * k_exp_quad(lengthscale = 20) + k_matern52(),
                  k_rational_quadratic(alpha = 0.7) * k_exponential() + k_white(0.2),
                  k_matern(nu = 1.2, lengthscale = 3))
  for (n in c(3, 4, 5, 31, 100)) {
    t <- sample(n)
    y <- sin(t / 3) + rnorm(n) / 3 + 5
    for (kernel in kernels) expect_same_likelihood(problem_of(t, y, kernel))
    expect_same_likelihood(problem_of(t, y, kernels[[2L]], 4.5), scale = 0.5)
    if (n < 5) next
    for (beta in c("profile", "integrate")) {
      for (mean in c("estimate", "linear")) {
        expect_same_likelihood(problem_of(t, y, kernels[[3L]], mean, beta), scale = 2)
      }
    }
    x <- data.frame(t = t / 12 + 1949, u = rnorm(n))
    of_t <- k_matern32(columns = "t")
    expect_same_likelihood(problem_of(x, y, of_t, "linear", "integrate"))
  }
})

test_on_host("a badly conditioned matrix is left to the factor", {
  problem <- problem_of(1:60, sin(1:60 / 5), k_exp_quad(lengthscale = 30))
  f <- toeplitz_function(problem, 1, function(...) "factor")
  for (noise in c(1e-9, 0)) {
    expect_identical(f(c(sd = 1, lengthscale = 30, noise = noise)), "factor")
  }
  # what is given is right
  given <- 0
  for (noise in 10^-(1:9)) {
    par <- c(sd = 1, lengthscale = 8, noise = noise)
    value <- f(par)
    if (identical(value, "factor")) next
    given <- given + 1
    expect_close(as.numeric(value), as.numeric(gp_function(problem)(par)), 1e-4)
  }
  expect_gt(given, 2)
  par <- c(sd = 1, lengthscale = 30, noise = 1e-6)
  expect_equal(as.numeric(toeplitz_function(problem, 1)(par)),
               as.numeric(gp_function(problem)(par)), tolerance = 1e-4)
})

test_that("only equal steps and covariances of differences are taken", {
  taken <- function(t, kernel = k_matern32(), ...) {
    problem <- problem_of(t, seq_len(NROW(t))^2, kernel)
    is_toeplitz(c(problem, list(...)))
  }
  t <- c(3, 1, 2, 5, 4, 7, 6)
  expect_true(taken(t))
  expect_true(taken(as.numeric(as.Date("2020-01-01") + t)))
  expect_true(taken(as.numeric(as.POSIXct("2020-01-01", tz = "UTC") + 0.1 * t)))
  expect_true(taken(as.vector(time(ts(t, start = c(1949, 2), frequency = 12)))))
  expect_false(taken(replace(t, 1L, 3.0001)))
  expect_false(taken(c(t, 9)))
  expect_false(taken(c(t, 7)))
  expect_false(taken(cbind(t, t^2)))
  expect_true(taken(cbind(t, t^2), k_matern32(columns = 1)))
  expect_false(taken(t, k_matern32() + k_linear()))
  own <- function(x1, x2, par) exp(-abs(outer(x1[, 1L], x2[, 1L], `-`)) / par)
  expect_false(taken(t, k_user(own, c(reach = 1))))
  expect_false(regular_toeplitz(rep(1, 5)))
  expect_false(regular_toeplitz(1:2))
  problem <- problem_of(t, t^2, k_matern32())
  for (name in c("weights", "variance")) {
    problem[[name]] <- rep(1, 7)
    expect_false(is_toeplitz(problem))
    problem[[name]] <- NULL
  }
})

test_on_host("searches of equal steps find better optima, in any order and in workers", {
  d <- data.frame(t = 1:24, y = as.vector(log(airmiles)))
  season <- k_periodic() * k_exp_quad() + k_matern32()
  fit <- cl_gp(y ~ t, d, kernel = season, method = "ml")
  expect_gt(fit$logLik, 13.9)
  expect_equal(cl_gp(y ~ t, d[24:1, ], kernel = season,
                     method = "ml")$logLik, fit$logLik, tolerance = 1e-6)
  expect_equal(cl_gp(y ~ t, d, kernel = season, workers = 2, method = "ml")$logLik, fit$logLik,
               tolerance = 1e-6)
  expect_equal(fit$logLik, as.numeric(gp_function(gp_problem(fit))(fit$par)), tolerance = 1e-8)
})

gp_states$list <- list()
