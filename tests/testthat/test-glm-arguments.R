# Arguments that Stan's GLM functions take: phi by row, one row of x, one coefficient, gradients by
# y; and likelihoods as functions of one vector.

set.seed(11)
rows <- 57L
X <- matrix(rnorm(rows * 3), rows) / 2
beta <- c(0.4, -0.3, 0.2)
eta <- 0.3 + as.vector(X %*% beta)
counts <- rnbinom(rows, size = 2, mu = exp(eta))
counts[1:4] <- c(0, 1, 300, 5000)
phis <- exp(rnorm(rows))

test_that("neg_binomial_2_log takes phi by row", {
  want <- sum(dnbinom(counts, size = phis, mu = exp(eta), log = TRUE))
  each_engine({
    value <- cl_glm_lpdf("neg_binomial_2_log", counts, X, 0.3, beta, phi = phis,
                         gradient = c("alpha", "beta", "x", "phi"))
    expect_equal(c(value), want, tolerance = 1e-13)
    same <- cl_glm_lpdf("neg_binomial_2_log", counts, X, 0.3, beta, phi = rep(1.7, rows),
                        gradient = c("alpha", "beta", "x", "phi"))
    one <- cl_glm_lpdf("neg_binomial_2_log", counts, X, 0.3, beta, phi = 1.7,
                       gradient = c("alpha", "beta", "x", "phi"))
    expect_equal(c(same), c(one), tolerance = 1e-13)
    expect_equal(attr(same, "gradient")[1:3], attr(one, "gradient")[1:3], tolerance = 1e-11)
    expect_equal(sum(attr(same, "gradient")$phi), attr(one, "gradient")$phi, tolerance = 1e-11)
    f <- cl_likelihood("neg_binomial_2_log", counts, X)
    expect_true(all(cl_check_gradient(f, alpha = 0.3, beta = beta, phi = phis)$ok))
    # several parameter vectors, and weights
    two <- f(c(0.3, 0), cbind(beta, 0), phi = cbind(phis, 2))
    expect_equal(c(two), c(want, sum(dnbinom(counts, size = 2, mu = 1, log = TRUE))),
                 tolerance = 1e-13)
    expect_equal(attr(two, "gradient")$phi[, 1L], attr(value, "gradient")$phi, tolerance = 1e-12)
    w <- rep(1:3, length.out = rows)
    weighted <- statcl:::new_likelihood("neg_binomial_2_log", counts, X, NULL, as.double(w))
    again <- rep(seq_len(rows), w)
    long <- cl_glm_lpdf("neg_binomial_2_log", counts[again], X[again, ], 0.3, beta,
                        phi = phis[again], gradient = "phi")
    found <- weighted(0.3, beta, phi = phis)
    expect_equal(c(found), c(long), tolerance = 1e-13)
    expect_equal(attr(found, "gradient")$phi,
                 c(rowsum(attr(long, "gradient")$phi, again)), tolerance = 1e-12)
    hessian <- cl_glm_hessian("neg_binomial_2_log", counts, X, 0.3, beta, phi = phis)
    slope <- function(b) attr(f(0.3, b, phi = phis), "gradient")$beta
    h <- 1e-5
    expect_equal(as.matrix(hessian), sapply(1:3, function(j) {
      e <- replace(numeric(3), j, h)
      (slope(beta + e) - slope(beta - e)) / (2 * h)
    }), tolerance = 1e-7)
    g <- cl_gradient(function(alpha, beta, phi) {
      cl_glm_lpdf("neg_binomial_2_log", counts, X, alpha, beta, phi = phi)
    })
    traced <- g(alpha = 0.3, beta = beta, phi = phis)
    expect_equal(c(traced), want, tolerance = 1e-12)
    expect_equal(attr(traced, "gradient")$phi, attr(value, "gradient")$phi, tolerance = 1e-10)
  })
  expect_fault(cl_glm_lpdf("neg_binomial_2_log", counts, X, 0, beta, phi = replace(phis, 5, -1)),
               "argument", argument = "phi")
})

test_each_engine("one row of x, and one coefficient, stand for all", {
  y <- counts[5:20]
  x <- X[1L, , drop = FALSE]
  full <- x[rep(1L, length(y)), ]
  for (where in list(identity, as_cl)) {
    value <- cl_glm_lpdf("poisson_log", y, where(x), 0.3, beta, gradient = c("beta", "x"))
    want <- cl_glm_lpdf("poisson_log", y, full, 0.3, beta, gradient = c("beta", "x"))
    expect_equal(c(value), c(want), tolerance = 1e-14)
    expect_equal(attr(value, "gradient")$beta, attr(want, "gradient")$beta, tolerance = 1e-13)
    expect_equal(as.matrix(attr(value, "gradient")$x),
                 matrix(colSums(attr(want, "gradient")$x), 1L), tolerance = 1e-12)
  }
  f <- cl_likelihood("poisson_log", y, x)
  expect_true(all(cl_check_gradient(f, alpha = 0.3, beta = beta)$ok))
  g <- cl_likelihood("poisson_log", counts, X)
  one <- g(0.1, 0.2)
  expect_equal(c(one), c(g(0.1, rep(0.2, 3))), tolerance = 1e-14)
  expect_equal(attr(one, "gradient")$beta, sum(attr(g(0.1, rep(0.2, 3)), "gradient")$beta))
  h <- cl_gradient(function(beta, x) cl_glm_lpdf("poisson_log", y, x, 0.3, beta))
  expect_equal(c(h(beta = beta, x = x)), sum(dpois(y, exp(0.3 + sum(x * beta)), log = TRUE)))
  expect_equal(c(h(beta = 0.2, x = x)), sum(dpois(y, exp(0.3 + sum(x) * 0.2), log = TRUE)))
})

test_that("normal_id has gradients by y and by sigma of each row", {
  y <- eta + rnorm(rows)
  s <- exp(rnorm(rows) / 3)
  each_engine({
    value <- cl_glm_lpdf("normal_id", y, X, 0.3, beta, sigma = s, gradient = c("y", "sigma"))
    expect_equal(c(value), sum(dnorm(y, eta, s, log = TRUE)), tolerance = 1e-13)
    expect_equal(attr(value, "gradient"), list(sigma = (y - eta)^2 / s^3 - 1 / s,
                                               y = (eta - y) / s^2), tolerance = 1e-11)
    two <- cl_glm_lpdf("normal_id", y, X, c(0.3, 0), cbind(beta, 0), sigma = 1:2, gradient = "y")
    expect_equal(attr(two, "gradient")$y, cbind(eta - y, -y / 4), tolerance = 1e-12)
    one <- cl_glm_lpdf("normal_id", 0.5, X, 0.3, beta, sigma = s, gradient = "y")
    expect_equal(attr(one, "gradient")$y, sum((eta - 0.5) / s^2), tolerance = 1e-11)
    h <- cl_gradient(function(y) cl_glm_lpdf("normal_id", y, X, 0.3, beta, sigma = s))
    expect_equal(attr(h(y = y), "gradient")$y, (eta - y) / s^2, tolerance = 1e-11)
  })
})

test_that("cl_objective() has the further parameters in its vector", {
  y <- eta + rnorm(rows)
  expect_mode <- function(f, start, peer, ...) {
    o <- cl_objective(f, ...)
    found <- optim(start, o$fn, o$gr, method = "BFGS", control = list(reltol = 1e-14))
    expect_equal(found$par, peer, tolerance = 1e-5, ignore_attr = TRUE)
    expect_equal(o$gr(start), vapply(seq_along(start), function(j) {
      e <- replace(0 * start, j, 1e-5)
      (o$fn(start + e) - o$fn(start - e)) / 2e-5
    }, 0), tolerance = 1e-6, ignore_attr = TRUE)
    o
  }
  ls <- lm(y ~ X)
  each_engine({
    o <- expect_mode(cl_likelihood("normal_id", y, X), c(0, 0, 0, 0, 1),
                     c(coef(ls), sqrt(mean(resid(ls)^2))))
    expect_identical(o$fn(c(0, 0, 0, 0, -1)), Inf)
    expect_refused("par", o$fn(1:3))
    small <- counts
    small[small > 100] <- 20
    nb <- cl_glm(small ~ X, family = "neg_binomial_2_log")
    expect_mode(cl_likelihood("neg_binomial_2_log", small, X), c(0, 0, 0, 0, 1),
                c(coef(nb), nb$aux))
    three <- 1L + (eta > 0) + (eta > 0.6 + rnorm(rows) / 2)
    ordered <- cl_glm(factor(three) ~ X, family = "ordered_logistic")
    expect_mode(cl_likelihood("ordered_logistic", three, X), c(0, 0, 0, 0, 1),
                c(coef(ordered), ordered$aux))
    f <- cl_likelihood("categorical_logit", three, X)
    o <- cl_objective(f)
    b <- matrix(1:9 / 10, 3)
    expect_equal(o$fn(c(1:3, b)), -c(f(1:3, b)))
    expect_equal(length(o$gr(c(1:3, b))), 12L)
  })
})

test_each_engine("categorical_logit takes an offset for each class", {
  set.seed(2)
  n <- 150L
  d <- data.frame(x = rnorm(n), z = rnorm(n))
  d$off <- matrix(rnorm(3 * n) / 2, n)
  eta <- cbind(0, 0.3 + d$x, -0.2 + d$x / 2 - d$z) + d$off
  d$y <- factor(apply(eta, 1L, function(e) sample(c("a", "b", "c"), 1L, prob = exp(e))))
  value <- function(b, x) {
    at <- cbind(0, x %*% matrix(b, ncol(x))) + d$off
    sum(at[cbind(seq_len(n), as.integer(d$y))] - log(rowSums(exp(at))))
  }
  x <- cbind(1, d$x, d$z)
  fit <- cl_glm(y ~ x + z + offset(off), d, "categorical_logit")
  expect_equal(fit$logLik, value(coef(fit), x), tolerance = 1e-12)
  slope <- vapply(1:6, function(j) {
    e <- replace(numeric(6), j, 1e-4)
    (value(coef(fit) + e, x) - value(coef(fit) - e, x)) / 2e-4
  }, 0)
  expect_lt(max(abs(slope)), 1e-5)
  null <- optim(c(0, 0), value, x = x[, 1L, drop = FALSE], control = list(fnscale = -1))
  expect_equal(fit$null.deviance, -2 * null$value, tolerance = 1e-6)
  expect_equal(predict(fit, d[4:9, ], type = "response"), fitted(fit)[4:9, ])
  expect_equal(anova(fit)$logLik[3L], fit$logLik)
  weighted <- cl_glm(y ~ x, d, "categorical_logit", offset = off, weights = rep(1:2, n / 2))
  twice <- cl_glm(y ~ x, d[c(seq_len(n), seq(2, n, 2)), ], "categorical_logit", offset = off)
  expect_equal(coef(weighted), coef(twice), tolerance = 1e-8)
})
