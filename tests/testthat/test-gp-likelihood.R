# Likelihoods with means, heteroscedastic noise, several response variables; the state behind
# predictions.

# The leave-one-out log density of a plain_gp().
loo_density <- function(y, plain) {
  sum(dnorm(y, plain$loo$mean, sqrt(plain$loo$variance), log = TRUE))
}

some_data <- function(n = 30) {
  set.seed(n)
  x <- matrix(runif(n * 2, -1, 1), n, dimnames = list(NULL, c("a", "b")))
  y <- cbind(sin(4 * x[, 1]) + x[, 2] + rnorm(n, sd = 0.1), cos(3 * x[, 2]) + rnorm(n, sd = 0.1))
  list(x = x, y = y, w = runif(n, 0.5, 2), v = runif(n, 0, 0.05))
}

# Every kernel, and a composition.
all_kernels <- list(
  k_exp_quad(1.1, c(0.6, 0.9)), k_exponential(0.9, 0.8), k_matern32(1.2, 0.7),
  k_matern52(0.8, c(0.6, 1)), k_rational_quadratic(1, 0.7, 1.3),
  k_periodic(1, 1.2, 0.9, "a") + k_linear(c(0.7, 0.5), center = 0.2),
  (k_exp_quad(1, 0.8) + k_constant(0.6)) * k_linear(0.8) + k_white(0.3) * k_matern32(0.9, 0.5))

test_each_engine("value and gradient of every kernel, for both objectives", {
  d <- some_data()
  for (kernel in all_kernels) {
    par <- c(coef(kernel), noise = 0.2)
    want <- plain_gp(d$y[, 1], d$x, kernel, 0.2)
    f <- cl_gp_likelihood(d$y[, 1], d$x, kernel)
    expect_equal(as.numeric(f(par, FALSE)), want$value, tolerance = 1e-10)
    expect_gp_gradient(f, par)
    f <- cl_gp_likelihood(d$y[, 1], d$x, kernel, objective = "loo")
    expect_equal(as.numeric(f(par, FALSE)), loo_density(d$y[, 1], want), tolerance = 1e-10)
    expect_gp_gradient(f, par)
  }
})

test_each_engine("values and gradients agree with references of 34 digits", {
  table <- read.csv(test_path("..", "reference", "gp-likelihood.csv"), stringsAsFactors = FALSE)
  cases <- gp_reference_cases()
  expect_setequal(names(cases), table$case)
  for (name in names(cases)) {
    case <- cases[[name]]
    want <- table[table$case == name, ]
    got <- case$f(case$par)
    gradient <- attr(got, "gradient")
    expect_identical(want$what, c("value", names(gradient)))
    # the condition of C is 1e7 in one of them, and below 1e3 in the others
    tolerance <- if (name == "smooth") 1e-9 else 1e-12
    expect_close(as.numeric(got), want$value[1], tolerance * abs(want$value[1]))
    expect_close(unname(gradient), want$value[-1], tolerance * max(abs(want$value[-1])))
  }
})

test_each_engine("means: fixed, estimated, integrated out; weights, variances, two variables", {
  d <- some_data()
  kernel <- k_matern52(1, c(0.6, 0.8)) + k_constant(0.5)
  par <- c(coef(kernel), noise = 0.2)
  bases <- list(constant = cbind(rep(1, 30)), linear = cbind(1, d$x),
                formula = cbind(1, d$x[, 1]^2), matrix = cbind(1, exp(d$x[, 2])))
  means <- list(constant = "constant", linear = "linear", formula = ~ I(a^2),
                matrix = cbind(1, exp(d$x[, 2])))
  for (which in names(bases)) {
    want <- plain_gp(d$y, d$x, kernel, 0.2, bases[[which]], 0.2^2 / d$w + d$v)
    for (beta in c("profile", "integrate")) {
      make <- function(objective) {
        cl_gp_likelihood(d$y, d$x, kernel, means[[which]], beta, d$w, d$v, objective)
      }
      f <- make("ml")
      got <- f(par)
      expect_equal(as.numeric(got), if (beta == "profile") want$value else want$integrated,
                   tolerance = 1e-10)
      expect_equal(unname(attr(got, "beta")), unname(want$mean), tolerance = 1e-9)
      expect_gp_gradient(f, par)
      f <- make("loo")
      expect_equal(as.numeric(f(par, FALSE)), loo_density(d$y, want), tolerance = 1e-10)
      expect_gp_gradient(f, par)
    }
    held <- plain_gp(d$y - bases[[which]] %*% want$mean, d$x, kernel, 0.2)
    f <- cl_gp_likelihood(d$y, d$x, kernel, means[[which]], want$mean)
    expect_equal(as.numeric(f(par, FALSE)), held$value, tolerance = 1e-10)
    expect_gp_gradient(f, par)
  }
})

test_that("a mean on any scale loses no accuracy", {
  d <- some_data()
  kernel <- k_exp_quad(1, 0.7)
  par <- c(coef(kernel), noise = 0.2)
  f <- function(basis) cl_gp_likelihood(d$y[, 1], d$x, kernel, basis, "integrate")(par)
  each_engine({
    near <- f(cbind(1, d$x[, 1]))
    far <- f(cbind(1, 1e4 + 1e-1 * d$x[, 1]))
    # the determinant of the basis changes by a factor of 0.1
    expect_equal(as.numeric(far), as.numeric(near) - log(0.1), tolerance = 1e-8)
    expect_equal(unname(attr(far, "gradient")), unname(attr(near, "gradient")), tolerance = 1e-8)
  })
})

test_that("a conditioned process predicts, and accepts more observations", {
  d <- some_data()
  at <- matrix(runif(14, -1, 1), 7, dimnames = list(NULL, c("a", "b")))
  kernel <- all_kernels[[7]]
  par <- c(coef(kernel), noise = 0.2)
  basis <- function(x) cbind(1, x)
  want <- plain_gp(d$y, d$x, kernel, 0.2, basis(d$x), 0.2^2 / d$w + d$v)
  ahead <- want$predict(at, h_at = basis(at))
  each_engine({
    f <- cl_gp_likelihood(d$y, d$x, kernel, "linear", "profile", d$w, d$v)
    s <- gp_condition(f, par)
    some <- cl_gp_likelihood(d$y[1:20, ], d$x[1:20, ], kernel, "linear", "profile", d$w[1:20],
                             d$v[1:20])
    more <- gp_condition(some, par)$extend(d$y[21:30, ], d$x[21:30, ], NULL, d$w[21:30],
                                           d$v[21:30])
    for (s in list(s, more)) {
      expect_equal(s$value, want$value, tolerance = 1e-10)
      expect_equal(s$weights, unname(want$weights), tolerance = 1e-8)
      expect_equal(unname(s$beta), unname(want$mean), tolerance = 1e-8)
      expect_equal(unname(s$beta_cov), unname(want$beta_cov), tolerance = 1e-8)
      expect_equal(s$predict(at)$mean, unname(ahead$mean), tolerance = 1e-8)
      expect_null(s$predict(at)$variance)
      expect_equal(s$predict(at, "variance")$variance, unname(diag(ahead$covariance)),
                   tolerance = 1e-8)
      expect_equal(s$predict(at, "covariance")$covariance, unname(ahead$covariance),
                   tolerance = 1e-8)
      expect_equal(s$loo(), lapply(want$loo, unname), tolerance = 1e-8)
      slope <- (s$predict(at + rep(c(1e-5, 0), each = 7))$mean[, 2] -
                  s$predict(at - rep(c(1e-5, 0), each = 7))$mean[, 2]) / 2e-5
      expect_equal(s$mean_gradient(at, 2)[, "a"], slope, tolerance = 1e-6)
      expect_refused("newdata", s$predict(at[, 1]))
      expect_fault(s$predict(replace(at, 3, NA)), "nonfinite", argument = "newdata", index = 3)
    }
    file <- tempfile()
    saveRDS(s, file)
    expect_equal(readRDS(file)$predict(at)$mean, s$predict(at)$mean, tolerance = 1e-11)
  })
})

test_each_engine("many points are predicted in blocks", {
  d <- some_data(600)
  at <- matrix(runif(60000, -1, 1), 30000)
  s <- gp_condition(cl_gp_likelihood(d$y[, 1], d$x, k_exp_quad(1, 1)), c(1, 1, 0.1))
  all <- s$predict(at, "variance")
  last <- s$predict(at[29998:30000, ], "variance")
  expect_equal(all$mean[29998:30000], last$mean, tolerance = 1e-12)
  expect_equal(all$variance[29998:30000], last$variance, tolerance = 1e-9)
})

test_that("a basis for predictions must be given if the mean was a matrix", {
  d <- some_data()
  s <- on_host(gp_condition(cl_gp_likelihood(d$y[, 1], d$x, k_exp_quad(), cbind(1, d$w)),
                            c(1, 1, 0.1)))
  expect_refused("basis", s$predict(d$x[1:2, ]))
  expect_length(s$predict(d$x[1:2, ], basis = cbind(1, d$w[1:2]))$mean, 2)
  expect_length(s$extend(1, d$x[1, , drop = FALSE], matrix(1, 1, 2))$weights, 31)
})

test_that("a formula keeps parameters computed from the data", {
  d <- some_data()
  s <- on_host(gp_condition(cl_gp_likelihood(d$y[, 1], d$x, k_exp_quad(), ~ poly(a, 2)),
                            c(1, 1, 0.1)))
  expect_equal(s$predict(d$x[3:4, ])$mean, s$predict(d$x)$mean[3:4], tolerance = 1e-10)
})

test_each_engine("the largest possible problem is reported, and larger ones rejected at once", {
  n <- cl_gp_largest()
  expect_named(n, c("value", "gradient"))
  if (!anyNA(n)) {
    expect_true(all(n > 1000) && n[["gradient"]] <= n[["value"]])
    many <- n[["value"]] + 100
    expect_fault(cl_gp_likelihood(numeric(many), seq_len(many), k_exp_quad()), "memory",
                 says = "has room for [0-9]+ observations")
  }
})

test_that("bad means, weights and variances are rejected", {
  d <- some_data()
  f <- function(...) cl_gp_likelihood(d$y[, 1], d$x, k_exp_quad(), ...)
  each_engine({
    for (bad in list("a", NA, c(1, 2), matrix(1, 3, 1), y ~ a, ~ z, cbind(1, 1, d$w))) {
      expect_refused("mean", f(mean = bad))
    }
    expect_fault(f(mean = cbind(replace(d$w, 2, Inf))), "nonfinite", argument = "mean", index = 2)
    expect_refused("beta", f(mean = "linear", beta = "guess"), f(mean = "linear", beta = 1))
    for (bad in list(1, replace(d$w, 3, 0), replace(d$w, 3, NA), "a")) {
      expect_refused("weights", f(weights = bad))
    }
    expect_refused("variance", f(variance = -d$w))
    expect_refused("objective", f(objective = "rms"))
    for (approx in c("none", "vecchia")) for (bad in list(NULL, NA, mean, "a", c(TRUE, FALSE))) {
      expect_refused("gradient", f(approx = approx)(c(1, 1, 1), gradient = bad))
    }
    expect_refused("information", f(approx = "vecchia")(c(1, 1, 1), information = NA))
  })
})
