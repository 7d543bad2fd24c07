# The maxima that the search for variances finds, compared with those of a dense likelihood in plain
# R from several starting points.

quiet <- function(...) suppressMessages(cl_glmm(...))

# Minus the profiled log likelihood of theta, factors in the columns' own units; z: for each random
# term the model matrices of its columns by level.
dense_value <- function(theta, y, x, z, reml) {
  root <- diag(length(y))
  for (term in z) {
    k <- length(term)
    l <- matrix(0, k, k)
    own <- seq_len(k * (k + 1) / 2)
    l[lower.tri(l, TRUE)] <- theta[own]
    theta <- theta[-own]
    for (j in seq_len(k)) root <- root + tcrossprod(Reduce(`+`, Map(`*`, term, l[, j])))
  }
  root <- chol(root)
  a <- qr(backsolve(root, x, transpose = TRUE))
  df <- length(y) - reml * ncol(x)
  left <- sum(qr.resid(a, backsolve(root, y, transpose = TRUE))^2)
  sum(log(diag(root))) + df / 2 * (1 + log(2 * pi * left / df)) +
    reml * sum(log(abs(diag(qr.R(a)))))
}

dense_best <- function(value, many, more = NULL) {
  starts <- list(rep(1, many), rep(0.2, many), rep(c(0.5, -0.3), length.out = many))
  max(vapply(starts, function(start)
    -nlminb(c(start, more), value, control = list(rel.tol = 1e-12))$objective, 0))
}

by_level <- function(f, x = 1) outer(as.integer(f), seq_len(nlevels(f)), `==`) * x

test_each_engine("a variance is found from which the first step of a search leads to 0", {
  set.seed(1)
  d <- data.frame(g = factor(rep(1:30, each = 10)))
  set.seed(2)
  d$y <- rnorm(30, 0, 0.3)[d$g] + rnorm(300)
  best <- optimize(dense_value, c(0, 1), d$y, matrix(1, 300), list(list(by_level(d$g))), FALSE,
                   tol = 1e-8)
  fit <- quiet(y ~ 1 + (1 | g), d, "normal_id")
  expect_equal(fit$theta, best$minimum, tolerance = 1e-6)
  expect_close(fit$logLik, -best$objective, 1e-12)
  expect_false(fit$singular)
})

test_on_host("linear models have the highest dense likelihood", {
  for (seed in full_or_quick(1:60, c(1, 3, 6, 8, 11, 16))) {
    set.seed(seed)
    d <- data.frame(g = factor(rep(1:12, each = 8)), k = factor(rep(1:4, 24)), x = rnorm(96, 1))
    size <- sample(c(0, 0.1, 0.3, 0.3), 3, TRUE)
    d$y <- (size[1] * rnorm(12))[d$g] + size[2] * rnorm(12)[d$g] * d$x + (size[3] * rnorm(4))[d$k] +
      rnorm(96)
    g <- by_level(d$g)
    gx <- by_level(d$g, d$x)
    model <- list(list(y ~ x + (1 | g), list(list(g))), list(y ~ x + (0 + x | g), list(list(gx))),
                  list(y ~ x + (x | g), list(list(g, gx))),
                  list(y ~ x + (x || g), list(list(g), list(gx))),
                  list(y ~ x + (1 | g) + (1 | k), list(list(g), list(by_level(d$k)))),
                  list(y ~ x + (1 | g / k), list(list(by_level(interaction(d$g, d$k))),
                                                 list(g))))[[seed %% 6 + 1]]
    reml <- seed %% 2 == 1
    fit <- quiet(model[[1]], d, "normal_id", if (reml) "reml" else "ml")
    best <- dense_best(function(theta) dense_value(theta, d$y, cbind(1, d$x), model[[2]], reml),
                       length(fit$theta))
    expect_lt(best - fit$logLik, 1e-6)
  }
})

# The same by Laplace's approximation for an intercept: theta, fixed effects.
laplace_value <- function(par, y, x, g, trials) {
  fixed <- as.vector(x %*% par[-1])
  u <- numeric(nlevels(g))
  for (i in 1:30) {
    eta <- fixed + par[1] * u[g]
    mu <- if (is.null(trials)) exp(eta) else trials * plogis(eta)
    w <- if (is.null(trials)) mu else mu * (1 - mu / trials)
    h <- 1 + par[1]^2 * as.vector(rowsum(w, g))
    step <- (par[1] * as.vector(rowsum(y - mu, g)) - u) / h
    if (max(abs(step)) < 1e-12) break
    u <- u + step / max(1, max(abs(step)))
  }
  density <- if (is.null(trials)) dpois(y, mu, log = TRUE) else
    dbinom(y, trials, mu / trials, log = TRUE)
  sum(u^2) / 2 - sum(density) + sum(log(h)) / 2
}

test_on_host("logistic and Poisson models have the highest dense likelihood", {
  for (seed in full_or_quick(c(1:40, 91, 107), c(2, 107))) {
    set.seed(seed)
    d <- data.frame(g = factor(rep(1:12, each = 5)), x = rnorm(60))
    eta <- d$x / 2 + (sample(c(0, 0.2, 0.5, 1), 1) * rnorm(12))[d$g]
    trials <- if (seed %% 2 == 1) rep(4, 60)
    d$y <- if (seed %% 2 == 1) rbinom(60, 4, plogis(eta)) else rpois(60, exp(eta))
    fit <- if (seed %% 2 == 1) quiet(cbind(y, 4 - y) ~ x + (1 | g), d, binomial) else
      quiet(y ~ x + (1 | g), d, poisson)
    best <- dense_best(function(par) laplace_value(par, d$y, cbind(1, d$x), d$g, trials), 1,
                       unname(coef(fit)))
    expect_lt(best - fit$logLik, 1e-6)
  }
})

test_that("profile likelihoods leave a variance that is 0 at the estimates", {
  d <- data.frame(g = factor(rep(1:8, each = 6)), z = rep(c(-1, -1, 0, 0, 0, 1, 1, 2), each = 6))
  set.seed(14)
  d$y <- d$z + rnorm(48)
  on_host({
    fit <- quiet(y ~ z + (1 | g), d, "normal_id")
    found <- confint(fit, "z", method = "profile")
  })
  expect_true(fit$singular)
  z <- list(list(by_level(d$g)))
  profile <- function(b) 2 * (fit$logLik + optimize(function(theta)
    dense_value(theta, d$y - b * d$z, matrix(1, 48), z, FALSE), c(0, 3), tol = 1e-8)$objective)
  root <- function(ends) uniroot(function(b) profile(b) - qchisq(0.95, 1), ends, tol = 1e-8)$root
  expect_equal(as.vector(found), c(root(coef(fit)[2] - c(3, 0)), root(coef(fit)[2] + c(0, 3))),
               tolerance = 1e-5)
})

test_that("a posterior mode is not held at a standard deviation of 0", {
  set.seed(7)
  d <- data.frame(g = factor(rep(1:30, each = 10)), x = rnorm(300))
  d$y <- rnorm(30, 0, 0.3)[d$g] + 20 * d$x + rnorm(300)
  flat <- function(v) 0 * v
  on_host(fit <- quiet(y ~ x + (1 | g), d, "normal_id", "map",
                       prior = list(sd = flat, sigma = flat, intercept = flat)))
  best <- optimize(dense_value, c(0, 1), d$y, cbind(1, d$x), list(list(by_level(d$g))), FALSE)
  expect_equal(sqrt(fit$variances$g[1]) / sigma(fit), best$minimum, tolerance = 1e-3)
})

test_that("a variance that the likelihood does not depend on is no failure of the search", {
  set.seed(2)
  d <- expand.grid(r = factor(1:3), b = factor(1:6), k = 1:3)
  d$y <- rnorm(18)[interaction(d$r, d$b)] + rnorm(54)
  on_host(fit <- quiet(y ~ r + (1 | r / b), d, method = "reml"))
  expect_true(fit$converged)
  on_host(expect_equal(fit$logLik, quiet(y ~ r + (1 | r:b), d, method = "reml")$logLik))
})
