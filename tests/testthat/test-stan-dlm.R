# Dynamic linear models in Stan programs, against the joint normal density, and integers.

# The density of all observations at once: their means and covariances.
dlm_density <- function(y, F, G, V, W, m0, C0) {
  n <- ncol(y)
  state <- list()
  mean <- m0
  spread <- C0
  cov <- matrix(0, n * nrow(y), n * nrow(y))
  mu <- numeric()
  for (t in seq_len(n)) {
    mean <- as.vector(G %*% mean)
    spread <- G %*% spread %*% t(G) + W
    at <- (t - 1) * nrow(y) + seq_len(nrow(y))
    mu[at] <- crossprod(F, mean)
    move <- spread
    for (s in t:n) {
      to <- (s - 1) * nrow(y) + seq_len(nrow(y))
      cov[to, at] <- crossprod(F, move %*% F)
      cov[at, to] <- t(cov[to, at])
      if (s == t) cov[at, at] <- cov[at, at] + V
      move <- G %*% move
    }
  }
  e <- as.vector(y) - mu
  -0.5 * (length(e) * log(2 * pi) + as.vector(determinant(cov)$modulus) + sum(e * solve(cov, e)))
}

test_that("dynamic linear models", {
  set.seed(4)
  y <- matrix(rnorm(10), 2)
  fixed <- list(y = y, F = matrix(c(1, 0.2, -0.3, 0.8, 0.5, 0.1), 3),
                G = matrix(c(0.9, 0.1, 0, 0.2, 0.7, 0.1, 0, 0.3, 0.8), 3),
                W = diag(c(0.3, 0.2, 0.5)) + 0.05, C = diag(3) + 0.1)
  declared <- "matrix[2, 5] y; matrix[3, 2] F; matrix[3, 3] G; matrix[3, 3] W; matrix[3, 3] C;"
  V <- function(v) matrix(c(v[1], 0.1, 0.1, v[2]), 2)
  model <- "matrix[2, 2] V = [[v[1], 0.1], [0.1, v[2]]];
            y ~ gaussian_dlm_obs(F, G, V, s * W, m, C);"
  point <- list(v = c(0.7, 1.2), s = 0.9, m = c(0.1, -0.2, 0.3))
  parameters <- "vector<lower=0>[2] v; real<lower=0> s; vector[3] m;"
  density <- function(V) function(p) with(fixed, dlm_density(y, F, G, V(p$v), p$s * W, p$m, C))
  each_engine(check_stan_case(stan_case(parameters, model, point, density(V), declared, fixed),
                              "matrix"))
  check_stan_case(stan_case(parameters, "y ~ gaussian_dlm_obs(F, G, v, s * W, m, C);", point,
                            density(diag), declared, fixed), "independent")
})

test_that("integers have 32 bits, and are not divided by zero", {
  value <- function(e, i) {
    cl_stan(code = sprintf("data { int i; } transformed data { int k = %s; }
                           generated quantities { int g = k; }", e))(list(i = i))
  }
  expect_equal(environment(value("i * i", 46340))$state$home$k, 46340^2)
  expect_fault(value("i * i", 46341), "stan", line = 1)
  expect_fault(value("i * 3", 1e9), "stan", line = 1)
  expect_fault(value("i + i", 2147483647), "stan", line = 1)
  expect_fault(value("-i - i", 2147483647), "stan", line = 1)
  expect_fault(value("1 / i", 0), "stan", line = 1)
  expect_fault(value("1 %/% i", 0), "stan", line = 1)
  expect_fault(value("1 % i", 0), "stan", line = 1)
  loop <- cl_stan(code = "data { int n; } transformed data { array[n] int k;
    for (i in 1:n) k[i] = i * 10000000; }")
  expect_equal(environment(loop(list(n = 200)))$state$home$k, 1:200 * 1e7)
  expect_fault(loop(list(n = 300)), "stan", line = 2)
})
