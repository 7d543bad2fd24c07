
skip_on_cran() # long; run by ./dev check

likelihood_of <- function(n = 50, k = 2) {
  set.seed(1)
  x <- matrix(rnorm(n * k), n)
  cl_likelihood("bernoulli_logit", rbinom(n, 1, plogis(0.5 + x[, 1])), x)
}

test_that("terms are summed, with correct gradients", {
  likelihood <- likelihood_of()
  scale <- 2.5
  posterior <- cl_log_posterior(
    likelihood, ~ -(beta / scale)^2 / 2, ~ log(dnorm(alpha / 5)) - 0.1 * exp(alpha),
    function(beta) with_slope(-sum(beta^4), -4 * beta^3),
    function(alpha, beta) with_slope(alpha * sum(beta), list(alpha = sum(beta), beta = alpha + 0 *
                                                               beta)))
  beta <- c(0.4, -0.7)
  value <- posterior(alpha = 0.3, beta = beta)
  expect_equal(as.vector(value),
               as.vector(likelihood(0.3, beta)) - sum((beta / 2.5)^2) / 2 +
                 dnorm(0.3 / 5, log = TRUE) - 0.1 * exp(0.3) - sum(beta^4) + 0.3 * sum(beta),
               tolerance = 1e-14)
  expect_named(attr(value, "gradient"), c("alpha", "beta"))
  expect_lt(max(cl_check_gradient(posterior, alpha = 0.3, beta = beta)$error), 1e-8)
  # in another order, too, and with other lengths
  expect_equal(as.vector(posterior(beta = beta, alpha = 0.3)), as.vector(value))
  expect_output(print(posterior), "~-\\(beta/scale\\)\\^2/2")
  expect_output(print(posterior), "function\\(alpha, beta\\)")
})

test_that("parameters of different lengths are recycled, and shapes stay", {
  # eight schools, centred
  posterior <- cl_log_posterior(~ -(theta - mu)^2 / (2 * tau^2) - log(tau), ~ -tau / 5)
  theta <- c(1, -0.5, 2, 0.3)
  value <- posterior(theta = theta, mu = 0.5, tau = 1.5)
  expect_equal(as.vector(value), sum(dnorm(theta, 0.5, 1.5, log = TRUE)) + 2 * log(2 * pi) - 0.3)
  expect_lt(max(cl_check_gradient(posterior, theta = theta, mu = 0.5, tau = 1.5)$error), 1e-8)
  matrices <- cl_log_posterior(~ -(m - v)^2)
  m <- matrix(1:6 / 7, 3)
  slope <- attr(matrices(m = m, v = c(1, 2, 3)), "gradient")
  expect_identical(dim(slope$m), c(3L, 2L))
  expect_equal(slope$v, rowSums(2 * (m - c(1, 2, 3))))
})

test_that("unusable terms are rejected by name", {
  refused <- function(pattern, ..., at = list(a = 1, b = c(1, 2, 3))) {
    e <- expect_fault(do.call(cl_log_posterior(...), at), "argument", argument = "...")
    expect_match(conditionMessage(e), pattern, fixed = TRUE)
  }
  refused("at least one term")
  refused("must be a formula or a function, not", 3)
  refused("one-sided", a ~ b)
  refused("none of the parameters a, b", ~ -x^2)
  refused("cannot be differentiated", ~ -sort(b))
  refused("none of the parameters a, b", function(x) x)
  refused("attribute \"gradient\"", function(a) -a^2)
  refused("attribute \"gradient\"", function(a, b) with_slope(-a^2, -2 * a))
  refused("different lengths", ~ -(b - d)^2, at = list(b = c(1, 2, 3, 4), d = c(1, 2, 3, 4, 5, 6) *
                                                        1))
  refused("named arguments", ~ -a^2, at = list(1))
})

test_that("a hierarchical model with priors has the correct posterior", {
  # y_i ~ N(mu, sigma), both unknown, conjugate: sigma^-2 ~ gamma(2, 1), mu ~ N(0, 2 sigma)
  set.seed(3)
  y <- rnorm(20, 1, 2)
  posterior <- cl_log_posterior(~ -(y_data - mu)^2 / (2 * sigma^2) - log(sigma),
                                ~ -mu^2 / (8 * sigma^2) - log(sigma),
                                ~ -5 * log(sigma) - 1 / sigma^2)
  y_data <- y
  fit <- cl_sample(posterior, list(mu = 0, sigma = 1), transform = list(sigma = cl_lower(0)),
                   chains = 4, warmup = 300, iter = 500, seed = 2)
  n <- length(y)
  precision <- n + 1 / 4
  shape <- 2 + n / 2
  rate <- 1 + (sum(y^2) - sum(y)^2 / precision) / 2
  draws <- as.matrix(fit)
  tau <- array(1 / draws[, "sigma"]^2, c(500, 4))
  error <- sd(tau) / sqrt(effective_size(halves(tau)))
  expect_lt(abs(mean(tau) - shape / rate), 4 * error)
  table <- summary(fit, "mu")
  expect_lt(abs(table$mean - sum(y) / precision), 4 * table$mcse)
  expect_equal(table$sd, sqrt(rate / (shape - 1) / precision), tolerance = 0.07)
})

test_that("several chains at once agree with one after another", {
  posterior <- cl_log_posterior(function(beta) with_slope(-sum(beta^2), -2 * beta), ~ -alpha^2)
  run <- function(...) {
    cl_sample(posterior, list(alpha = 0, beta = c(0, 0)), chains = 3, warmup = 100, iter = 50,
              seed = 1, ...)
  }
  expect_identical(run(batch = TRUE)$draws, run()$draws)
})

# ---- derivatives of formulas ---------------------------------------------------------------------

test_that("formulas have the values of R's functions, and their derivatives", {
  set.seed(2)
  at <- list(x = runif(4, 0.2, 0.8), y = runif(4, 1.2, 2.4))
  smooth <- setdiff(c(device_functions, "factorial", "lfactorial"),
                    c("sign", "ceiling", "floor", "trunc", "acosh"))
  calls <- c(lapply(smooth, function(name) call(name, quote(x))), expression(
    acosh(y), beta(x, y), lbeta(x, y), atan2(x, y), log(y, x), log2(y) + log10(x), psigamma(x, 1),
    psigamma(y, deriv = 2), x^y, x %% 0.1, dgamma(y, 2, scale = x), dweibull(x, y, log = TRUE),
    dbeta(x, y, 2, log = TRUE), pt(x, 3), pgamma(y, 2, x, lower.tail = FALSE, log.p = TRUE)))
  for (call in as.list(calls)) {
    at <- at[c("x", "y")]
    used <- at[all.vars(call)]
    formula <- stats::as.formula(call("~", call), env = globalenv())
    posterior <- cl_log_posterior(formula)
    expect_equal(as.vector(do.call(posterior, used)), sum(eval(call, at)), tolerance = 1e-13,
                 label = deparse1(call))
    check <- do.call(cl_check_gradient, c(list(posterior), used))
    expect_lt(max(check$error), 1e-6, label = deparse1(call))
  }
  # by R's rules for derivatives (x^2 - 1) / (df + x^2) would be Inf / Inf
  slope <- attr(cl_log_posterior(~ dt(1e200, df, log = TRUE))(df = 3), "gradient")$df
  expect_equal(slope, (digamma(2) - digamma(1.5) - 400 * log(10) + log(3) + 1) / 2)
})

test_that("what a formula uses is looked up in each call", {
  y <- c(1, 2)
  scale <- list(of = 2)
  counts <- new.env()
  counts$n <- 3
  prior <- prior_normal(0, 1)
  posterior <- cl_log_posterior(~ dnorm(y, a, scale$of, log = TRUE) * counts$n + prior(a))
  want <- function() sum(dnorm(y, 0.5, scale$of, log = TRUE) * counts$n + as.vector(prior(0.5)))
  expect_equal(as.vector(posterior(a = 0.5)), want())
  y <- c(3, 4, 5)
  expect_equal(as.vector(posterior(a = 0.5)), want())
  scale$of <- 3
  expect_equal(as.vector(posterior(a = 0.5)), want())
  counts$n <- 1
  prior <- prior_normal(2, 3)
  expect_equal(as.vector(posterior(a = 0.5)), want())
  expect_true(all(cl_check_gradient(posterior, a = 0.5)$ok))
})

test_that("no argument of a function is ignored", {
  slope <- function(formula, ...) attr(cl_log_posterior(formula)(...), "gradient")
  expect_equal(slope(~ dnorm(a, 1, 2, log = TRUE), a = 3), list(a = -0.5))
  expect_equal(slope(~ dnorm(sd = 2, mean = 1, a, log = T), a = 3), list(a = -0.5))
  expect_equal(slope(~ stats::dnorm(1, a, log = TRUE), a = 3), list(a = -2))
  expect_equal(slope(~ pnorm(a, 1, 2, FALSE, TRUE), a = 3),
               list(a = -dnorm(3, 1, 2) / pnorm(3, 1, 2, FALSE)))
  expect_equal(slope(~ pnorm(a, log.p = TRUE), a = -60), list(a = 60 + 1 / 60), tolerance = 1e-4)
  expect_equal(slope(~ log(a, 10), a = 3), list(a = 1 / (3 * log(10))))
  expect_equal(slope(~ log(a, base = b), a = 3, b = 2),
               list(a = 1 / (3 * log(2)), b = -log2(3) / (2 * log(2))))
  expect_equal(slope(~ psigamma(a, 1), a = 3), list(a = psigamma(3, 2)))
  expect_equal(slope(~ dgamma(a, 2, scale = 3, log = TRUE), a = 4), list(a = 1 / 4 - 1 / 3))
  expect_equal(slope(~ -a - +a + (a * 2) / 2^a * a^2, a = 2),
               list(a = -2 + (6 * 4 - 2 * 8 * log(2)) / 4))
  # data, functions of data, and names of R's functions used for data alone
  y <- c(1, 2, 4)
  lookup <- function(x) mean(x)
  expect_equal(slope(~ dnorm(y, mu, lookup(y), log = TRUE), mu = 1), list(mu = 4 / lookup(y)^2))
  log <- function(x) stop("not R's")
  expect_equal(slope(~ exp(a) + 1 / a^2, a = 1), list(a = exp(1) - 2))
  expect_equal(slope(~ dlnorm(a, log = TRUE), a = 1), list(a = -1))
})

test_that("terms that would be differentiated wrongly are rejected", {
  refused <- function(formula, pattern) {
    e <- expect_fault(cl_log_posterior(formula)(a = 1, b = 2), "argument", argument = "...")
    expect_match(conditionMessage(e), pattern)
    expect_match(conditionMessage(e), "cannot be differentiated")
  }
  refused(~ dnorm(a, 1, 2, log = b), "'log' must be TRUE or FALSE")
  refused(~ dnorm(a, 1, 2, log = NA), "must be TRUE or FALSE")
  refused(~ dnorm(a, 1, 2, 3, 4), "unused")
  refused(~ dnorm(a, men = 1), "unused")
  refused(~ dt(a, 3, ncp = 1), "'ncp' must be 0")
  refused(~ psigamma(1, a), "'deriv' 0, 1 or 2")
  refused(~ median(a), "median\\(\\) needs the value")
  refused(~ if (a > 0) a else b, "'if' needs the value")
  refused(~ no_such_function(a), "could not find function")
  refused(~ (function(x) sort(x))(a), "sort\\(\\) needs the value")
  exp <- function(x) sort(x)
  refused(~ exp(a), "sort\\(\\) needs the value")
})

test_that("formulas may contain what cl_gradient() knows", {
  S <- matrix(c(2, 0.5, 0.5, 1), 2)
  x <- matrix(c(1, 2, 3, 0.5, -1, 2), 3)
  y <- c(0.3, 1, -2)
  exp <- sin
  twice <- function(v) ifelse(v > 0, 2 * v, v)
  posterior <- cl_log_posterior(
    ~ -sum((y - x %*% b)^2) / 2, ~ dmvnorm(b, 0, S, log = TRUE), ~ mean(b) + b[1]^3,
    ~ pgamma(1, a, log.p = TRUE), ~ twice(b), ~ exp(a), ~ (function(v) v^2)(b),
    ~ prior_normal(0, 5)(b[2]), ~ sum(prior_student_t(3, 0, 2)(b)) + prior_gamma(2, 3)(a),
    ~ mean(prior_lognormal(0, 1)(b^2)) + prior_inv_gamma(3, 2)(a), ~ -a)
  point <- list(a = 1.5, b = c(0.4, -0.7))
  with(point, expect_equal(as.vector(do.call(posterior, point)), {
    plain <- function(f, v) sum(as.vector(f(v)))
    -sum((y - x %*% b)^2) / 2 - log(2 * pi) - log(det(S)) / 2 - sum(b * solve(S, b)) / 2 + mean(b) +
      b[1]^3 + pgamma(1, a, log.p = TRUE) + 2 * b[1] + b[2] + sin(a) + sum(b^2) +
      plain(prior_normal(0, 5), b[2]) + plain(prior_student_t(3, 0, 2), b) +
      plain(prior_gamma(2, 3), a) + plain(prior_lognormal(0, 1), b^2) / 2 +
      plain(prior_inv_gamma(3, 2), a) - a
  }))
  expect_true(all(do.call(cl_check_gradient, c(list(posterior), point))$ok))
  fit <- cl_sample(posterior, list(a = 1.5, b = c(0.4, -0.7)), chains = 2, warmup = 20, iter = 10,
                   transform = list(a = cl_lower(0)), seed = 1, batch = TRUE, refresh = 0)
  expect_identical(ncol(as.matrix(fit)), 3L)
})

test_that("a point of density zero gives -Inf without warnings", {
  posterior <- cl_log_posterior(~ dgamma(a, b, 1, log = TRUE), ~ dlnorm(a, log = TRUE))
  expect_silent(value <- posterior(a = c(1, -1), b = 2))
  expect_identical(as.vector(value), -Inf)
})

test_that("priors are terms, in formulas and in functions", {
  prior <- prior_normal(1, 2)
  beta <- c(0.5, -1, 3)
  expected <- sum(dnorm(beta, 1, 2, log = TRUE)) - 3 * pnorm(0.5, log.p = TRUE)
  for (posterior in list(cl_log_posterior(~ prior_normal(1, 2)(beta)),
                         cl_log_posterior(~ prior(beta)),
                         cl_log_posterior(function(beta) prior_normal(1, 2)(beta)))) {
    value <- posterior(alpha = 1, beta = beta)
    expect_equal(as.vector(value), expected)
    expect_equal(attr(value, "gradient"), list(alpha = 0, beta = (1 - beta) / 4))
  }
  posterior <- cl_log_posterior(~ 2 * prior(beta * alpha) + alpha)
  expect_lt(max(cl_check_gradient(posterior, alpha = 2, beta = beta)$error), 1e-8)
  refused <- function(f, pattern) {
    e <- expect_fault(cl_log_posterior(f)(alpha = 1, beta = beta), "argument", argument = "...")
    expect_match(conditionMessage(e), pattern)
  }
  refused(function(beta) with_slope(beta^2, list(beta = 1)), "must be one number")
  refused(function(alpha, beta) with_slope(beta^2, list(alpha = 0, beta = 2 * beta)),
          "must be one number")
  refused(function(beta) with_slope("a", 2 * beta), "must be one number")
  refused(function(beta) with_slope(1, c(1, 2)), "respect to 'beta' has length 2, not 3")
})

test_that("a formula is computed once for all chains in lockstep, with the same numbers", {
  calls <- 0
  counted <- function(x) {
    calls <<- calls + 1
    x
  }
  init <- list(a = 1, v = c(1, 2, 3, 4), w = c(2, 1), m = matrix(1, 2, 2))
  layout <- parameter_layout(init, NULL)
  y <- c(1, 3)
  none <- numeric()
  set.seed(4)
  points <- matrix(runif(11 * 3, 0.5, 2), 11)
  for (term in list(~ -counted(2) * a^2, ~ dnorm(v, a, counted(1), log = TRUE),
                    ~ counted(1) * a * v^2 / w, ~ dnorm(y, a, counted(2), log = TRUE),
                    ~ counted(1) * v * m + w, ~ v * a - counted(1))) {
    posterior <- cl_log_posterior(term)
    alone <- apply(points, 2L, make_evaluator(posterior, layout, "stop"))
    calls <- 0
    expect_identical(make_batch_evaluator(posterior, layout, "stop")(points), alone)
    expect_identical(calls, 1)
  }
  # shapes that cannot be recycled together, and points of density zero, are evaluated one by one
  points[1, 2] <- -1
  for (term in list(~ dexp(a, log = TRUE) + v, ~ a * none)) {
    posterior <- cl_log_posterior(term)
    expect_identical(make_batch_evaluator(posterior, layout, "stop")(points),
                     apply(points, 2L, make_evaluator(posterior, layout, "stop")))
  }
  odd <- make_batch_evaluator(cl_log_posterior(~ a * v + c(1, 2, 3)), layout, "stop")
  expect_fault(odd(points), "argument")
})

test_that("random expressions have the derivatives of their values, alone and in lockstep", {
  set.seed(11)
  y <- c(0.3, 0.7)
  w <- c(0.4, 0.6, 0.9)
  layout <- parameter_layout(list(a = 1, v = c(1, 2), u = numeric(6)), NULL)
  inner <- function(e) call("plogis", e)
  expression_of <- function(depth) {
    leaves <- list(quote(a), quote(v), quote(u), quote(y), 2, quote(mean(y)), quote(w))
    if (depth == 0) return(leaves[[sample.int(7, 1)]])
    x <- expression_of(depth - 1)
    z <- expression_of(depth - 1)
    switch(sample.int(12, 1), call("+", x, z), call("-", x, z), call("*", x, z),
           call("/", x, call("+", 1, call("^", z, 2))), call("exp", call("sin", x)),
           call("log", call("+", 1, call("^", x, 2))), call("-", x),
           call("dnorm", x, z, call("exp", call("tanh", z)), log = TRUE),
           call("pnorm", x, z, 2, FALSE, TRUE), call("lgamma", call("+", 1, inner(x))),
           call("dbeta", inner(x), call("+", 1, inner(z)), 2, log = TRUE),
           call("(", call("^", call("+", 0.5, inner(x)), z)))
  }
  for (i in seq_len(full_or_quick(150, 40))) {
    e <- expression_of(4)
    if (!any(c("a", "v", "u") %in% all.vars(e))) next
    posterior <- cl_log_posterior(stats::as.formula(call("~", e)))
    points <- matrix(runif(27), 9)
    at <- list(a = points[1, 1], v = points[2:3, 1], u = points[4:9, 1])
    suppressWarnings({ # of lengths 2 and 3 in what has no parameter
      value <- tryCatch(do.call(posterior, at), statcl_error_argument = function(e) NULL)
      if (is.null(value)) next # of those in what has
      expect_equal(as.vector(value), sum(eval(e, at)), tolerance = 1e-13)
      check <- do.call(cl_check_gradient, c(list(posterior), at))
      expect_false(any(check$ok %in% FALSE), label = deparse1(e))
      alone <- apply(points, 2L, make_evaluator(posterior, layout, "stop"))
      expect_equal(make_batch_evaluator(posterior, layout, "stop")(points), alone,
                   tolerance = 1e-13)
    })
  }
})
