# cl_gradient(): values, gradients, and the functions that accept its results.

y8 <- c(28, 8, -3, 7, -1, 1, 18, 12)
sigma8 <- c(15, 10, 16, 11, 9, 11, 10, 18)

schools <- function() {
  y <- y8
  sigma <- sigma8
  function(mu, tau, z) {
    theta <- mu + tau * z
    sum(dnorm(y, theta, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
      dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
  }
}

# The value agrees with f, and the gradient with finite differences.
expect_gradient <- function(f, ..., tol = 1e-12) {
  model <- cl_gradient(f)
  expect_equal(as.vector(model(...)), as.vector(f(...)), tolerance = tol)
  check <- cl_check_gradient(model, ...)
  expect_true(all(check$ok), label = paste(deparse(body(f))[1], paste(capture.output(check),
                                                                      collapse = "\n")))
  invisible(model)
}

each_engine({
  test_that("values and gradients of plain functions", {
    m <- matrix(c(1, -2, 0.5, 3, 0.25, -1), 2)
    id <- c(1, 3, 2, 2, 1)
    expect_gradient(schools(), mu = 1, tau = 2, z = (1:8) / 8)
    expect_gradient(function(a) sum(a^2), a = c(1, 2, 3))
    expect_gradient(function(a, b) sum(exp(a[id]) * b), a = c(0.1, 0.2, 0.3), b = 2)
    expect_gradient(function(a) {
      x <- numeric(5)
      x[1] <- a[1]
      for (i in 2:5) x[i] <- a[2] * x[i - 1] + i
      sum(x^2)
    }, a = c(1, 0.5))
    expect_gradient(function(s) {
      k <- exp(-outer(1:5, 1:5, "-")^2 / s) + diag(0.1, 5)
      r <- chol(k)
      z <- backsolve(r, 1:5, transpose = TRUE)
      -sum(z^2) / 2 - sum(log(diag(r)))
    }, s = 3)
    expect_gradient(function(b) sum(plogis(m %*% b, log.p = TRUE)), b = c(1, 0.5, -1))
    expect_gradient(function(b) sum(crossprod(b, t(m) %*% m) %*% b), b = c(1, 0.5, -1))
    expect_gradient(function(w) cl_log_sum_exp(w) + sum(cl_softmax(w)^2), w = c(1, 2, -1))
    expect_gradient(function(w) sum(cl_log_sum_exp(w, 1)) + sum(cl_softmax(w, 2)^2), w = m)
    expect_gradient(function(a) sum(cumsum(a)^2) + prod(a) + max(a) - min(a), a = c(1, 2, 3))
    expect_gradient(function(a) sum(ifelse(a > 1, a^2, -a) * pmin(a, 2)), a = c(0.5, 1.5, 3))
    expect_gradient(function(a) sum(rowSums(a)^2) + sum(colMeans(a)^3), a = m)
    expect_gradient(function(a) sum(solve(crossprod(t(a)) + diag(2))) + det(crossprod(t(a))), a = m)
    for (n in c(4, 9)) {
      g <- diag(n)[n:1, ] * 2 + outer(1:n, 1:n, function(i, j) sin(i + 2 * j) / n)
      b <- matrix(cos(seq_len(2 * n)), n)
      expect_gradient(function(a) sum(solve(a)^2), a = g)
      expect_gradient(function(a, b) sum(solve(a, b)^2) + sum(solve(t(a), b[, 1])), a = g, b = b)
      expect_gradient(function(a) c(determinant(a)$modulus) + det(a) / 100, a = g)
      # a normal density as textbooks have it
      expect_gradient(function(s, r) {
        k <- s^2 * exp(-outer(1:n, 1:n, "-")^2 / r) + diag(n)
        -0.5 * (c(determinant(k)$modulus) + c(t(b[, 1]) %*% solve(k) %*% b[, 1]))
      }, s = 1.5, r = 3)
    }
    expect_gradient(function(a) sum(sapply(1:3, function(i) a[i]^i)), a = c(1, 2, 3))
  })
})

on_host({

test_that("statistics have their values and gradients", {
  m <- matrix(c(1, -2, 0.5, 3, 0.25, -1, 0.4, 2), 4)
  y <- c(1, 3, 2, 7)
  s <- crossprod(m) + diag(2)
  w <- c(0.3, -1, 2, 0.7)
  expect_gradient(function(a) sum(var(a) * 1:4), a = m)
  expect_gradient(function(a) sum(cov(a, y) * 1:2) + cov(a[, 1], y) + var(y, a[, 2]), a = m)
  expect_gradient(function(a) sum(cor(a) * 1:4) + sum(cor(a, cbind(y, y^2))) + cor(y, a[, 1]),
                  a = m)
  expect_gradient(function(a) sum(cov2cor(crossprod(a)) * 1:4), a = m)
  expect_gradient(function(a) sum(mahalanobis(a, c(1, 2), s)^2), a = m)
  expect_gradient(function(a) sum(mahalanobis(m, a[1, ], crossprod(a))^2), a = m)
  expect_gradient(function(a) norm(a) + norm(a, "I") + norm(a, "F") + norm(a, "M"), a = m)
  expect_gradient(function(a) sum(rowsum(a, c("b", "a", "b", "b"))^2 * 1:4), a = m)
  expect_gradient(function(a) sum(rowsum(a[, 1], c(2, 1, 2, 1), reorder = FALSE)^2 * 1:2), a = m)
  expect_gradient(function(a) sum(tapply(a[, 1], c(2, 1, 2, 1), prod) * 1:2), a = m)
  expect_gradient(function(a) sum(apply(a, 1:2, exp) * m), a = m)
  expect_gradient(function(a) sum(ifelse(xor(a > 0, m > 1), a^2, a)), a = m)
  expect_gradient(function(a) sum(psigamma(a^2 + 1)) + sum(psigamma(a^2 + 1, 1)), a = m)
  for (nu in list(0.5, -1.5, 2.5, 10.5, 0, -1, 0.7, c(0.2, 3, 12.6))) {
    expect_gradient(function(a) sum(log(besselK(a, nu))) + sum(besselK(a, nu, TRUE)),
                    a = c(0.7, 1, 5))
  }
  expect_equal(as.vector(cl_gradient(function(a) sum(besselK(a, 7.5)))(0.1)), besselK(0.1, 7.5))
  expect_gradient(function(a, reach) { # a Matern covariance of order 0.7
    u <- as.matrix(dist(1:4)) / reach
    u[u == 0] <- 1e-10
    sum(log(diag(chol(diag(4) + a * u^0.7 * besselK(u, 0.7)))))
  }, a = 0.8, reach = 2)
  long <- 1 + sin(1:1500) / 100
  expect_gradient(function(a) sum(cumprod(c(a, long))[c(2, 700, 1502)]), a = c(0.9, 1.2))
  expect_gradient(function(a) sum(cummax(a * long)[c(2, 700, 1500)] + cummin(a * long)[1000]),
                  a = 0.9)
})

test_that("omitted missing data have no effect on the gradient", {
  y <- c(1, NA, 2, 7)
  m <- matrix(c(1, -2, NA, 3, 0.25, -1, 0.4, NA, 1, 2, 3, 4), 4)
  full <- c(2, 1, 0, 3)
  expect_gradient(function(a) sum(dnorm(y, a, 2, log = TRUE), na.rm = TRUE), a = 0.3)
  expect_gradient(function(a) sum(dnorm(y, a, 2, log = TRUE), na.rm = TRUE), a = full)
  expect_gradient(function(a) mean((y - a)^2, na.rm = TRUE), a = 0.3)
  expect_gradient(function(a) sum(range((y - a)^2, na.rm = TRUE)), a = 0.3)
  expect_gradient(function(a) prod(y * a, na.rm = TRUE), a = 0.3)
  expect_gradient(function(a) sum((a - rep(y, 2))[c(1, 3, 4, 8)]^2), a = 0.3)
  expect_gradient(function(a) sum(((a - y)^2)[!is.na(y)]), a = full)
  expect_gradient(function(a) sum(ifelse(is.na(y), a, dnorm(y, a, 1, log = TRUE))), a = full)
  expect_gradient(function(a) sum(cl_ifelse(is.na(y), a, dnorm(y, a, 1, log = TRUE))), a = full)
  expect_gradient(function(a) sum(rowSums(m * a, na.rm = TRUE)^2), a = full)
  expect_gradient(function(a) sum(colMeans((m - a)^2, na.rm = TRUE) * 1:3), a = full)
  expect_gradient(function(a) sum(pmax(a, y, na.rm = TRUE) * 1:4), a = full)
  expect_gradient(function(a) sum(exp(a)[c(1, 2)]) + sum(y * a, na.rm = TRUE), a = full)
  # none is left
  expect_equal(as.numeric(cl_gradient(function(a) a + sum(a * c(NA, NA), na.rm = TRUE))(1)), 1)
  # missing because of the parameters
  found <- suppressWarnings(cl_gradient(function(a) sum(sqrt(a), na.rm = TRUE))(c(-1, 4)))
  expect_equal(as.numeric(found), 2)
})

test_that("covariance matrices of kernels with traced parameters", {
  x <- cbind(u = c(0.1, 0.5, 0.7, 1.3), v = c(1, 0.2, 0.4, 0.9))
  z <- x[1:2, ] + 0.3
  w <- matrix(sin(1:16), 4)
  one <- list(k_exp_quad, k_matern52, k_matern32, k_exponential, k_rational_quadratic, k_periodic)
  for (k in one) {
    expect_gradient(function(s, l) sum(w * cl_cov(x, kernel = k(s, l))), s = 1.3, l = 0.8)
    expect_gradient(function(s, l) sum(w[, 1:2] * cl_cov(x, z, k(sd = s, lengthscale = l))),
                    s = 1.3, l = c(0.8, 1.4))
    expect_gradient(function(l) sum(w * cl_cov(x, kernel = k(lengthscale = l, columns = "v"))),
                    l = 0.6)
    # with respect to the points
    expect_gradient(function(p) sum(w[, 1:2] * cl_cov(x, p, k(1.2, 0.7))), p = unname(z))
  }
  expect_gradient(function(p) sum(w * cl_cov(p, kernel = k_matern52(1.2, 0.7))), p = unname(x))
  expect_gradient(function(a, p) {
    sum(w * cl_cov(x, kernel = k_rational_quadratic(alpha = a) * k_periodic(2, period = p)))
  }, a = 0.7, p = 1.7)
  expect_gradient(function(s, l, a, b) {
    sum(w * cl_cov(x, kernel = k_exp_quad(s, l) + k_white(a) + k_constant(b) * k_linear(a, "u", 1) +
                     k_matern32(2, 3) * k_linear(c(s, b))))
  }, s = 1.1, l = 0.6, a = 0.4, b = 0.7)
  expect_gradient(function(l) sum(w * cl_distance(x, lengthscale = l)) +
                    sum(cl_distance(x, z, l, squared = TRUE)), l = 0.7)
  # a Gaussian process
  y <- c(0.4, 1, -0.3, 0.2)
  f <- cl_gradient(function(s, l, noise) {
    dmvnorm(y, 0, cl_cov(x, kernel = k_matern52(s, l)) + noise^2 * diag(4), log = TRUE)
  })
  same <- cl_gp_likelihood(y, x, k_matern52(), mean = 0)(c(1.2, 0.5, 0.3))
  found <- f(s = 1.2, l = 0.5, noise = 0.3)
  expect_equal(as.vector(found), as.vector(same))
  expect_equal(unlist(attr(found, "gradient"), use.names = FALSE),
               as.vector(attr(same, "gradient")))
})

test_that("likelihoods of generalised linear models", {
  set.seed(1)
  x <- matrix(rnorm(30), 10)
  class <- rep_len(1:3, 10)
  families <- list(
    bernoulli_logit = list(y = rep(0:1, 5)), poisson_log = list(y = c(0:8, 30)),
    binomial_logit = list(y = 0:9, trials = rep(9, 10)), normal_id = list(y = x[, 1] + 1:10),
    neg_binomial_2_log = list(y = c(0:8, 30)), ordered_logistic = list(y = class))
  aux <- c(normal_id = "sigma", neg_binomial_2_log = "phi", ordered_logistic = "cuts")
  for (family in names(families)) {
    y <- families[[family]]$y
    trials <- families[[family]]$trials
    likelihood <- cl_likelihood(family, y, x, trials)
    name <- aux[family]
    point <- list(a = 0.3, b = c(0.5, -0.2, 0.1),
                  s = if (identical(unname(name), "cuts")) c(-0.5, 0.6) else 1.3)
    both <- list(function(a, b, s) {
      further <- list()
      if (!is.na(name)) further[[name]] <- s
      do.call(cl_glm_lpdf, c(list(family, y, x, a, b, trials = trials), further)) - sum(s^2)
    }, function(a, b, s) {
      if (is.na(name)) return(likelihood(a, b) - sum(s^2))
      switch(name, sigma = likelihood(a, b, sigma = s), phi = likelihood(a, b, phi = s),
             cuts = likelihood(a, b, cuts = s)) - sum(s^2)
    })
    for (f in both) {
      model <- cl_gradient(f)
      expect_equal(as.vector(do.call(model, point)), as.vector(do.call(f, point)), info = family)
      expect_true(all(cl_check_gradient(model, point)$ok), info = family)
    }
  }
  f <- function(a, b) cl_glm_lpdf("categorical_logit", class, x, a, b)
  model <- cl_gradient(f)
  point <- list(a = c(0.1, 0.2, 0), b = matrix(sin(1:9), 3))
  expect_equal(as.vector(do.call(model, point)), as.vector(do.call(f, point)))
  expect_true(all(cl_check_gradient(model, point)$ok))
})

test_that("functions in lists and of packages are followed", {
  helpers <- list(link = function(v) cl_inv_logit(v %*% diag(2)),
                  penalty = function(b) helpers$square(b) + sum(dnorm(b, log = TRUE)),
                  square = function(b) sum(pmin(b, 3)^2))
  expect_gradient(function(b) sum(helpers$link(b)) + helpers[["penalty"]](b), b = c(0.4, 1.2))
  # R's functions under other names
  links <- list(probit = pnorm)
  inverse <- plogis
  expect_gradient(function(b) sum(links$probit(b)) + sum(inverse(b, log.p = TRUE)), b = c(0.4, 1.2))
  space <- asNamespace("testthat")
  expect_true(statcl:::is_of_package(space$expect_equal))
  expect_false(statcl:::is_of_package(stats::optim))
  expect_false(statcl:::is_of_package(cl_sample))
  # a package that comes with R: its function calls qlogis()
  logit <- tryCatch(getExportedValue("boot", "logit"), error = function(e) NULL)
  skip_if(is.null(logit))
  expect_gradient(function(p) sum(logit(p)), p = c(0.4, 0.7))
})

test_that("forms of calls", {
  f <- cl_gradient(function(mu, m = matrix(1, 2, 2)) sum(mu * m))
  expect_equal(attr(f(2, matrix(1:4, 2)), "gradient"), list(mu = 10, m = matrix(2, 2, 2)))
  expect_equal(attr(f(m = matrix(1:4, 2), mu = 2), "gradient"),
               list(mu = 10, m = matrix(2, 2, 2)))
  expect_equal(f(mu = 2), structure(8, gradient = list(mu = 4)))
  expect_equal(attr(f(m = c(1, 2), mu = c(3, 4)), "gradient"), list(mu = c(1, 2), m = c(3, 4)))
  g <- cl_gradient(function(p) sum(p$x * p$s))
  want <- structure(6, gradient = list(x = c(2, 2), s = 3))
  expect_equal(g(list(x = c(1, 2), s = 2)), want)
  expect_equal(g(p = list(x = c(1, 2), s = 2)), want)
  expect_equal(g(x = c(1, 2), s = 2), want)
  h <- cl_gradient(function(p) sum(p^2))
  expect_equal(h(c(1, 2)), structure(5, gradient = list(p = c(2, 4))))
  expect_equal(h(p = 1:2), structure(5, gradient = list(p = c(2, 4))))
  expect_equal(h(c(a = 1)), structure(1, gradient = list(p = 2)))
  expect_equal(cl_gradient(function(a, z) sum(a) + sum(z))(a = 1, z = numeric()),
               structure(1, gradient = list(a = 1, z = numeric())))
})

test_that("a function is run once, and again for other shapes", {
  runs <- 0
  f <- cl_gradient(function(a) {
    runs <<- runs + 1
    sum(a^2)
  })
  for (k in 1:3) f(a = c(k, 1))
  expect_identical(runs, 1)
  f(a = 1:3)
  expect_identical(runs, 2)
  f(a = matrix(1, 1, 3))
  expect_identical(runs, 3)
})

test_that("retrace = TRUE runs it at every call and decides by the values", {
  f <- cl_gradient(function(a) {
    if (a > 0 && a < 10) return(a^2)
    while (a < 0) a <- a + 5
    s <- 0
    for (i in seq_len(floor(a))) s <- s + a * i
    s
  }, retrace = TRUE)
  expect_equal(f(3), structure(9, gradient = list(a = 6)))
  expect_equal(f(-2), structure(18, gradient = list(a = 6)))
  expect_equal(f(2), structure(4, gradient = list(a = 4)))
  x <- c(3, 1, 2.5)
  for (h in list(function(a) sum(sort(a) * 1:3), function(a) sum(sort(a, TRUE)[1:2] * 2:3),
                 function(a) 2 * median(a), function(a) median(a[1:2]),
                 function(a) sum(unique(a)^2), function(a) sum(quantile(a, c(0.1, 0.6)) * 1:2))) {
    found <- cl_gradient(h, retrace = TRUE)(x)
    expect_equal(as.vector(found), h(x))
    slope <- vapply(1:3, function(i) (h(x + (1:3 == i) / 64) - h(x - (1:3 == i) / 64)) * 32, 0)
    expect_equal(attr(found, "gradient")$a, slope)
  }
  g <- cl_gradient(function(a) sum(a[which(a > 0)]^2), retrace = TRUE)
  expect_equal(attr(g(c(1, -1, 2)), "gradient")$a, c(2, 0, 4))
  expect_equal(attr(g(c(-1, 1, 2)), "gradient")$a, c(0, 2, 4))
  # an identical record is not compiled again
  expect_length(environment(f)$known, 2L)
})

test_that("update() changes data, and values computed from them", {
  home <- new.env()
  home$y <- c(1, 2, 3)
  home$helper <- function(a) sum((y - a)^2) # finds y too
  environment(home$helper) <- home
  f <- function(a) sum(y * a) + helper(a) + mean(y) * a
  environment(f) <- home
  model <- cl_gradient(f)
  model(1)
  expect_identical(update(model, y = c(4, 5, 7)), model)
  found <- model(2)
  home$y <- c(4, 5, 7)
  expect_equal(as.vector(found), f(2))
  expect_true(all(cl_check_gradient(model, a = 2)$ok))
  home$y <- 0
  expect_equal(model(2), found) # the variable itself is not looked at again
  early <- cl_gradient(f)
  update(early, y = 9)
  expect_equal(as.vector(early(2)), 18 + 49 + 18)
  # an index
  id <- c(1, 2)
  g <- cl_gradient(function(a) sum(a[id]))
  g(1:3)
  update(g, id = c(3, 3))
  expect_equal(attr(g(1:3), "gradient")$a, c(0, 0, 2))
  expect_fault(update(g, id = 1:3), "argument", argument = "id")
  expect_fault(update(g, nowhere = 1), "argument", argument = "nowhere")
  expect_fault(update(g), "argument", argument = "...")
  # invalid data are not kept
  expect_fault(update(g, id = list(1, 2)), "argument")
  expect_equal(attr(g(1:3), "gradient")$a, c(0, 0, 2))
})

test_that("parameters without use have gradient zero and one warning", {
  f <- cl_gradient(function(a, b, m) a^2)
  expect_warning(value <- f(a = 1, b = 2, m = matrix(1, 2, 2)), "does not use 'b', 'm'",
                 class = "statcl_warning_unused")
  expect_equal(attr(value, "gradient"), list(a = 2, b = 0, m = matrix(0, 2, 2)))
  expect_silent(f(a = 2, b = 2, m = matrix(1, 2, 2)))
  expect_silent(f(a = 2, b = 2, m = matrix(1, 3, 2)))
  constant <- cl_gradient(function(a) 3)
  expect_warning(value <- constant(1), "does not use 'a'")
  expect_equal(value, structure(3, gradient = list(a = 0)))
})

test_that("functions without parameters are rejected", {
  refused <- function(f, ..., argument = "f") {
    expect_fault(cl_gradient(f)(...), "argument", argument = argument)
  }
  e <- refused(function(a) a * 2, c(1, 2))
  expect_match(conditionMessage(e), "'a * 2' gives 2 numbers", fixed = TRUE)
  expect_identical(deparse(conditionCall(e)[[1]])[1], "cl_gradient(f)")
  refused(function(a) NULL, 1)
  refused(function(a) "a", 1)
  refused(function(a) list(a), 1)
  refused(function(a) {
    a
    invisible()
  }, 1)
  refused(function(a) a, "1", argument = "a")
  refused(function(a) a, factor(1), argument = "a")
  refused(function(p) p$a, list(a = 1, 2), argument = "...")
  refused(function(a, b) a, argument = "...")
  expect_fault(cl_gradient(1), "argument", argument = "f")
  expect_fault(cl_gradient(exp), "argument", argument = "f")
  expect_fault(cl_gradient(function() 1), "argument", argument = "f")
  expect_fault(cl_gradient(function(a) 1, retrace = NA), "argument", argument = "retrace")
  expect_fault(cl_gradient(function(a) 1, retrace = TRUE, y = 1), "argument", argument = "...")
  kept <- 1
  e <- refused(function(a) {
    kept <<- a
    a
  }, 1)
  expect_match(conditionMessage(e), "'kept'", fixed = TRUE)
  expect_identical(kept, 1)
  # but within a function it is allowed
  f <- cl_gradient(function(a) {
    s <- 0
    add <- function(x) s <<- s + x
    for (i in 1:3) add(a * i)
    s
  })
  expect_equal(f(2), structure(12, gradient = list(a = 6)))
  # after an error no tape is active
  expect_null(statcl:::tracing$tape)
})

test_that("recursive functions of constant depth", {
  power <- function(x, n) if (n == 0) 1 else x * power(x, n - 1)
  f <- cl_gradient(function(a) power(a, 4))
  expect_equal(f(2), structure(16, gradient = list(a = 32)))
})

test_that("the user's functions keep their meaning", {
  sum <- function(x) base::sum(x) * 2
  f <- cl_gradient(function(a) sum(a) + base::sum(a) + stats::dnorm(a[1], log = TRUE))
  expect_equal(attr(f(c(0, 2)), "gradient")$a, c(3, 3))
})

test_that("samplers, optimisers and sums accept it", {
  f <- cl_gradient(schools())
  init <- list(mu = 0, tau = 1, z = numeric(8))
  fit <- cl_sample(f, init, chains = 2, warmup = 100, iter = 50, seed = 1,
                   transform = list(tau = cl_lower(0)))
  expect_identical(ncol(as.matrix(fit)), 10L)
  listed <- function(p) {
    sum(dnorm(y8, p$mu + p$tau * p$z, sigma8, log = TRUE)) + sum(dnorm(p$z, log = TRUE)) +
      dnorm(p$mu, 0, 5, log = TRUE) + dcauchy(p$tau, 0, 5, log = TRUE)
  }
  same <- cl_sample(cl_gradient(listed), init, chains = 2, warmup = 100, iter = 50, seed = 1,
                    transform = list(tau = cl_lower(0)))
  expect_equal(as.matrix(same), as.matrix(fit))
  lockstep <- cl_sample(f, init, chains = 2, warmup = 20, iter = 10, seed = 1, batch = TRUE,
                        transform = list(tau = cl_lower(0)))
  expect_identical(nrow(as.matrix(lockstep)), 20L)
  # one vector
  normal <- cl_gradient(function(x) -sum((x - c(1, 2))^2))
  fit <- cl_sample(normal, c(a = 0, b = 0), chains = 1, warmup = 50, iter = 20, seed = 1)
  expect_identical(colnames(as.matrix(fit)), c("a", "b"))
  objective <- cl_objective(normal)
  expect_equal(optim(c(0, 0), objective$fn, objective$gr, method = "BFGS")$par, c(1, 2))
  objective <- cl_objective(normal, init = list(x = c(0, 0)))
  expect_equal(unname(nlminb(objective$par, objective$fn, objective$gr)$par), c(1, 2))
  expect_true(all(cl_check_gradient(normal, c(0.5, 0.5))$ok))
  # sums
  prior <- cl_log_posterior(normal, ~ dnorm(x, 0, 1, log = TRUE), ~ -s^2)
  expect_equal(attr(prior(x = c(1, 1), s = 2), "gradient"), list(x = c(-1, 1), s = -4))
  prior <- cl_log_posterior(cl_gradient(listed), ~ dnorm(mu, 0, 1, log = TRUE))
  expect_true(all(cl_check_gradient(prior, mu = 1, tau = 2, z = (1:8) / 8)$ok))
  expect_true(all(cl_check_gradient(cl_gradient(listed), init)$ok))
  expect_true(all(cl_check_gradient(cl_gradient(listed), p = init)$ok))
  # a copy of another session
  copy <- unserialize(serialize(f, NULL))
  expect_equal(copy(mu = 1, tau = 2, z = numeric(8)), f(mu = 1, tau = 2, z = numeric(8)))
})

test_that("a matrix without a factor gives NaN", {
  f <- cl_gradient(function(a) sum(log(diag(chol(matrix(c(1, 0, 0, 1), 2) * a)))))
  expect_equal(f(4), structure(2 * log(2), gradient = list(a = 0.25)))
  expect_true(is.nan(f(-1)))
})

test_that("print() shows parameters, operations and memory", {
  f <- cl_gradient(function(a, m) sum(exp(a) * m))
  expect_output(print(f), "not traced yet")
  f(a = 1, m = diag(2))
  expect_output(print(f), "a \\(1\\), m \\(2 x 2\\)")
  expect_output(print(f), "1 exp")
  expect_output(print(f), "engine: host")
})

test_that("nothing remains on the engine", {
  expect_no_leak({
    f <- cl_gradient(schools())
    f(mu = 1, tau = 2, z = numeric(8))
    rm(f)
    gc()
  })
})

test_that("sums of exponentials of numbers", {
  x <- matrix(c(1000, 1001, -5, 3), 2)
  expect_equal(cl_log_sum_exp(c(1, 2)), log(exp(1) + exp(2)))
  expect_equal(cl_log_sum_exp(x, 2), c(1000 + log(1 + exp(1)), 3 + log1p(exp(-8))))
  expect_equal(cl_log_sum_exp(c(-Inf, -Inf)), -Inf)
  expect_equal(cl_log_sum_exp(numeric()), -Inf)
  expect_equal(rowSums(cl_softmax(x, 1)), c(1, 1))
  expect_equal(colSums(cl_softmax(x, 2)), c(1, 1))
  expect_equal(sum(cl_softmax(x)), 1)
  expect_fault(cl_softmax("a"), "argument", argument = "x")
  expect_fault(cl_softmax(1:3, margin = 1), "argument", argument = "x")
  expect_fault(cl_softmax(x, margin = 3), "argument", argument = "margin")
})

})

test_that("an element that is used very often gets the sum of all contributions", {
  each_engine({
    for (times in list(c(9000, 3), c(3, 9000), c(20001, 8192, 1))) {
      w <- sin(seq_len(sum(times)))
      index <- rep(seq_along(times), times)[order(w)]
      f <- cl_gradient(function(x) sum(x[index]^2 * w))
      x <- seq_along(times) / 2
      expect_close(attr(f(x), "gradient")[[1]],
                   2 * x * as.vector(rowsum(w, index, reorder = TRUE)), 1e-11)
    }
  })
})

test_that("a number on the diagonal of a matrix", {
  each_engine({
    a <- matrix(sin(1:12), 3)
    f <- cl_gradient(function(x) sum((a * diag(x, 3, 4) + diag(x * 2, nrow = 3)[2, 2])^2))
    plain <- function(x) sum((a * diag(x, 3, 4) + 2 * x)^2)
    expect_close(as.vector(f(0.7)), plain(0.7), 1e-13)
    slope <- (plain(0.7 + 1e-5) - plain(0.7 - 1e-5)) / 2e-5
    expect_close(attr(f(0.7), "gradient")[[1]], slope, 1e-8)
    g <- cl_gradient(function(x) sum(1 / diag(x, 2)[c(1, 4)]))
    expect_identical(as.vector(g(Inf)), 0)
  })
})
