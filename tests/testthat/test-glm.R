family <- "bernoulli_logit"

# Numbers of 40 digits; tests/reference/glm.R made them.
reference <- function(name) {
  read.csv(test_path("..", "reference", name), stringsAsFactors = FALSE)
}

# A problem with n observations and k predictors.
glm_problem <- function(n, k, scale = 1) {
  set.seed(n + 100 * k)
  x <- matrix(rnorm(n * k), n, k)
  beta <- scale * rnorm(k) / sqrt(max(k, 1))
  list(x = x, y = rbinom(n, 1, plogis(0.3 + x %*% beta)), alpha = 0.3, beta = beta)
}

# The same by base R's formulas.
plain_r <- function(y, x, alpha, beta) {
  eta <- alpha + as.vector(x %*% beta)
  t <- ifelse(y == 1, eta, -eta)
  residual <- ifelse(y == 1, 1, -1) * plogis(-t)
  list(value = sum(plogis(t, log.p = TRUE)),
       alpha = if (length(alpha) == 1) sum(residual) else residual,
       beta = as.vector(crossprod(x, residual)), x = outer(residual, beta))
}

gradient_of <- function(value) attr(value, "gradient")

# ---- values ----------------------------------------------------------------------------------

test_that("single terms have full precision in both tails", {
  terms <- reference("glm-terms.csv")
  terms <- terms[terms$eta != 0 | !duplicated(terms[c("y", "eta")]), ]
  expect_setequal(unique(abs(terms$eta)), c(0, 2^-40, 0.5, 1, 5, 20, 36, 37, 40, 88, 300, 700, 745,
                                            800))
  least <- .Machine$double.xmin # below it a device may keep fewer digits, or none
  each_engine(for (i in seq_len(nrow(terms))) {
    value <- cl_glm_lpdf(family, terms$y[i], 1, alpha = 0, beta = terms$eta[i],
                         gradient = c("alpha", "beta"))
    slope <- gradient_of(value)$beta
    expect_lte(abs(as.vector(value) - terms$value[i]), 4e-16 * abs(terms$value[i]) + least)
    expect_lte(abs(slope - terms$slope[i]), 6e-16 * abs(terms$slope[i]) + least)
    if (abs(terms$slope[i]) > least) expect_equal(sign(slope), 2 * terms$y[i] - 1)
    expect_identical(gradient_of(value)$alpha, slope)
  })
})

test_each_engine("a large predictor does not change the sign of the gradient", {
  # y = 1 and eta = 40: y - 1 / (1 + exp(-eta)) is exp(-40), and 0 or negative when subtracted.
  slope <- gradient_of(cl_glm_lpdf(family, 1, 1, 0, 40, gradient = "beta"))$beta
  expect_equal(slope / exp(-40), 1, tolerance = 1e-14)
  slope <- gradient_of(cl_glm_lpdf(family, 0, 1, 0, -40, gradient = "beta"))$beta
  expect_equal(slope / -exp(-40), 1, tolerance = 1e-14)
})

test_each_engine("sums of terms of all sizes agree with 40 digits", {
  sums <- reference("glm-sums.csv")
  i <- seq_len(23)
  x <- outer(i, 1:4, function(i, j) ((i * (2 * j + 1) + 5 * j) %% 17 - 8) / 8)
  y <- as.numeric((i * i) %% 3 == 1)
  for (spread in c(1, 30, 400)) for (rowwise in c(FALSE, TRUE)) {
    alpha <- if (rowwise) ((i * 5) %% 9 - 4) / 16 else 0.375
    beta <- spread * ((1:4 * 7) %% 5 - 2) / 4
    expected <- sums[sums$spread == spread & sums$rowwise == rowwise, ]
    expected <- split(expected$number, expected$what)
    value <- cl_glm_lpdf(family, y, x, alpha, beta, gradient = c("beta", "alpha"))
    expect_equal(as.vector(value), expected$value, tolerance = 2e-15)
    expect_named(gradient_of(value), c("alpha", "beta"))
    expect_close(gradient_of(value)$beta, expected$beta, 2e-15, scale = 23)
    if (rowwise) {
      relative <- gradient_of(value)$alpha / expected$alpha
      expect_lt(max(abs(relative[abs(expected$alpha) > 1e-300] - 1)), 1e-15)
    } else {
      expect_close(gradient_of(value)$alpha, expected$alpha, 2e-15, scale = 23)
    }
  }
})

test_each_engine("all shapes agree with plain R", {
  shapes <- list(c(1, 1), c(2, 3), c(15, 2), c(33, 7), c(64, 16), c(65, 17), c(127, 64),
                 c(300, 100),
                 c(40, 131), c(257, 210), c(20, 1000))
  for (shape in shapes) {
    q <- glm_problem(shape[1], shape[2])
    for (alpha in list(q$alpha, rnorm(shape[1]))) {
      value <- cl_glm_lpdf(family, q$y, q$x, alpha, q$beta, gradient = c("alpha", "beta", "x"))
      expected <- plain_r(q$y, q$x, alpha, q$beta)
      expect_equal(as.vector(value), expected$value, tolerance = 1e-13)
      for (by in c("alpha", "beta", "x")) {
        expect_close(gradient_of(value)[[by]], expected[[by]], 1e-13, scale = sqrt(shape[1]))
      }
    }
  }
})

test_each_engine("many rows keep their precision", {
  q <- glm_problem(60000, 3)
  eta <- q$alpha + q$x %*% q$beta
  exact <- sum(as.vector(plogis(ifelse(q$y == 1, eta, -eta), log.p = TRUE))) # R sums in long double
  value <- cl_glm_lpdf(family, q$y, q$x, q$alpha, q$beta)
  expect_equal(as.vector(value), exact, tolerance = 2e-15)
})

test_each_engine("no rows, no columns", {
  value <- cl_glm_lpdf(family, numeric(), matrix(0, 0, 3), 0, 1:3,
                       gradient = c("alpha", "beta", "x"))
  expect_identical(as.vector(value), 0)
  expect_identical(gradient_of(value), list(alpha = 0, beta = c(0, 0, 0), x = matrix(0, 0, 3)))
  expect_identical(as.vector(cl_glm_lpdf(family, 1, matrix(0, 0, 2), numeric(), 1:2)), 0)
  none <- matrix(0, 4, 0)
  value <- cl_glm_lpdf(family, c(1, 1, 0, 1), none, 0.5, gradient = c("alpha", "beta", "x"))
  expected <- plain_r(c(1, 1, 0, 1), none, 0.5, numeric())
  expect_equal(as.vector(value), expected$value)
  expect_equal(gradient_of(value), list(alpha = expected$alpha, beta = numeric(), x = none))
  value <- cl_glm_lpdf(family, numeric(), matrix(0, 0, 0), gradient = "beta")
  expect_identical(value, structure(0, gradient = list(beta = numeric())))
})

test_each_engine("y may be integer, logical, double, or one value for all rows", {
  q <- glm_problem(20, 2)
  expected <- cl_glm_lpdf(family, q$y, q$x, 0, q$beta, gradient = "beta")
  expect_identical(cl_glm_lpdf(family, as.double(q$y), q$x, 0, q$beta, gradient = "beta"),
                   expected)
  expect_identical(cl_glm_lpdf(family, q$y == 1, q$x, 0L, q$beta, gradient = "beta"), expected)
  expect_identical(cl_glm_lpdf(family, matrix(q$y), q$x, 0, q$beta, gradient = "beta"), expected)
  expect_identical(cl_glm_lpdf(family, TRUE, q$x, 0, q$beta),
                   cl_glm_lpdf(family, rep(1, 20), q$x, 0, q$beta))
  vector <- q$x[, 1]
  expect_identical(cl_glm_lpdf(family, q$y, vector, 0, 2L),
                   cl_glm_lpdf(family, q$y, matrix(vector), 0, 2))
})

test_each_engine("names and classes are kept", {
  q <- glm_problem(6, 2)
  dimnames(q$x) <- list(letters[1:6], c("u", "v"))
  beta <- c(u = 1, v = 2)
  by_base <- cl_glm_lpdf(family, q$y, q$x, 0, beta, gradient = c("beta", "x"))
  expect_named(gradient_of(by_base)$beta, c("u", "v"))
  expect_identical(dimnames(gradient_of(by_base)$x), dimnames(q$x))
  on_device <- as_cl(q$x)
  by_cl <- cl_glm_lpdf(family, q$y, on_device, 0, as_cl(matrix(beta)), gradient = c("beta", "x"))
  expect_identical(as.vector(by_cl), as.vector(by_base))
  expect_s4_class(gradient_of(by_cl)$x, "clMatrix")
  expect_identical(as.matrix(gradient_of(by_cl)$x), gradient_of(by_base)$x)
  expect_type(gradient_of(by_cl)$beta, "double")
})

test_each_engine("gradients agree with differences", {
  q <- glm_problem(50, 3)
  f <- cl_likelihood(family, q$y, q$x)
  expect_lt(max(cl_check_gradient(f, alpha = 0.2, beta = q$beta)$error), 1e-8)
  expect_lt(max(cl_check_gradient(f, alpha = rnorm(50), beta = q$beta)$error), 1e-8)
  by_x <- function(x) {
    value <- cl_glm_lpdf(family, q$y, x, 0.1, q$beta, gradient = "x")
    structure(as.vector(value), gradient = gradient_of(value)$x)
  }
  expect_lt(max(cl_check_gradient(by_x, q$x)$error), 1e-8)
})

test_each_engine("the gradient vanishes where glm() ends", {
  q <- glm_problem(500, 4)
  fit <- glm(q$y ~ q$x, family = binomial, control = list(epsilon = 1e-14, maxit = 50))
  value <- cl_glm_lpdf(family, q$y, q$x, coef(fit)[1], coef(fit)[-1],
                       gradient = c("alpha", "beta"))
  expect_equal(as.vector(value), as.vector(logLik(fit)), tolerance = 1e-13)
  scale <- colSums(abs(cbind(1, q$x)))
  expect_lt(max(abs(unlist(gradient_of(value))) / scale), 1e-8)
})

test_each_engine("separable data gives finite values along the diverging direction", {
  x <- c(-2, -1, 1, 2)
  y <- c(0, 0, 1, 1)
  for (beta in c(1, 100, 1e4, 1e300)) {
    value <- cl_glm_lpdf(family, y, x, 0, beta, gradient = "beta")
    expect_true(is.finite(value) && value <= 0)
    expect_true(gradient_of(value)$beta >= 0)
  }
})

test_each_engine("the same call gives the same bits", {
  q <- glm_problem(5000, 20)
  f <- cl_likelihood(family, q$y, q$x)
  first <- f(q$alpha, q$beta)
  for (i in 1:5) expect_identical(f(q$alpha, q$beta), first)
  expect_identical(cl_glm_lpdf(family, q$y, q$x, q$alpha, q$beta, gradient = c("alpha", "beta")),
                   first)
})

# ---- errors ----------------------------------------------------------------------------------

test_each_engine("y outside the support is rejected with its index", {
  x <- matrix(1:6 / 6, 3)
  for (bad in list(c(0, 1, 2), c(0, 1, -1), c(0, 1, 0.5), c(0L, 1L, NA), c(1, 0, NaN),
                   c(1, 0, Inf), c(TRUE, FALSE, NA))) {
    expect_refused("y", cl_glm_lpdf(family, bad, x, 0, 1:2), says = "y[3]")
    expect_refused("y", cl_likelihood(family, bad, x))
  }
  expect_refused("y", cl_glm_lpdf(family, 2, x, 0, 1:2))
  for (bad in list("1", factor(0:1), NULL, list(1), matrix(0, 3, 2), Sys.Date())) {
    expect_refused("y", cl_glm_lpdf(family, bad, x, 0, 1:2))
  }
  for (bad in list(c(0, 1), rep(1, 4), numeric())) {
    expect_refused("y", cl_glm_lpdf(family, bad, x, 0, 1:2))
  }
})

test_each_engine("parameters of wrong length or type are rejected by name", {
  x <- matrix(1:6 / 6, 3)
  y <- c(0, 1, 1)
  f <- cl_likelihood(family, y, x)
  for (bad in list(1:3, 1:5, numeric(), "a", NULL, list(1, 2), factor(1:2))) {
    expect_refused("beta", cl_glm_lpdf(family, y, x, 0, bad), f(0, bad))
  }
  for (bad in list(1:2, 1:4, numeric(), "a", NULL)) {
    expect_refused("alpha", cl_glm_lpdf(family, y, x, bad, 1:2), f(bad, 1:2))
  }
  expect_refused("beta", cl_glm_lpdf(family, y, x, 0))
  expect_refused("sigma", cl_glm_lpdf(family, y, x, 0, 1:2, sigma = 1), f(0, 1:2, sigma = 1))
  for (bad in list("sigma", c("beta", NA), 1, TRUE)) {
    expect_refused("gradient", cl_glm_lpdf(family, y, x, 0, 1:2, gradient = bad),
                   f(0, 1:2, gradient = bad))
  }
  for (bad in list("probit", 1, NA_character_, c(family, family), NULL)) {
    expect_refused("family", cl_glm_lpdf(bad, y, x, 0, 1:2), cl_likelihood(bad, y, x),
                   cl_glm_hessian(bad, y, x, 0, 1))
  }
  for (bad in list("a", array(0, c(3, 1, 1)), NULL, list(1))) {
    expect_refused("x", cl_glm_lpdf(family, y, bad, 0, 1))
  }
})

test_each_engine("non-finite values are named with their index", {
  x <- matrix(1:6 / 6, 3)
  y <- c(0, 1, 1)
  for (bad in c(NA, NaN, Inf, -Inf)) {
    f <- cl_likelihood(family, y, x)
    expect_fault(f(0, c(1, bad)), "nonfinite", argument = "beta", index = 2)
    expect_fault(f(c(0, 0, bad), 1:2), "nonfinite", argument = "alpha", index = 3)
    with_bad <- replace(x, 5, bad)
    expect_fault(cl_glm_lpdf(family, y, with_bad, 0, 1:2), "nonfinite", argument = "x", index = 5,
                 says = "[2, 2]")
    # Also where the coefficient is 0 or the term is saturated.
    expect_fault(cl_glm_lpdf(family, y, with_bad, 0, c(1, 0), gradient = "beta"), "nonfinite",
                 argument = "x")
    expect_fault(f(0, c(1.7e308, 1.7e308)), "nonfinite", argument = "beta")
    expect_equal(as.vector(f(0, 1:2)), plain_r(y, x, 0, 1:2)$value) # still works
  }
})

test_each_engine("a freed clMatrix is reported, a likelihood keeps its own reference", {
  q <- glm_problem(30, 2)
  x <- as_cl(q$x)
  f <- cl_likelihood(family, q$y, x)
  expected <- f(0, q$beta)
  cl_free(x)
  expect_fault(cl_glm_lpdf(family, q$y, x, 0, q$beta), "stale", argument = "x")
  expect_identical(f(0, q$beta), expected)
})

# ---- likelihoods as objects ------------------------------------------------------------------

test_that("a likelihood prints what it is", {
  q <- glm_problem(30, 2)
  f <- on_host(cl_likelihood(family, q$y, q$x))
  text <- paste(capture.output(print(f)), collapse = "\n")
  expect_match(text, "bernoulli_logit, 30 observations, 2 coefficients", fixed = TRUE)
  expect_match(text, "engine: host", fixed = TRUE)
  expect_match(paste(capture.output(on_device(print(cl_likelihood(family, q$y, q$x)))),
                     collapse = "\n"), "engine: device", fixed = TRUE)
})

test_each_engine("a likelihood can be saved and restored", {
  q <- glm_problem(30, 2)
  f <- cl_likelihood(family, q$y, q$x)
  expected <- f(0.1, q$beta)
  path <- tempfile(fileext = ".rds")
  saveRDS(f, path)
  g <- readRDS(path)
  unlink(path)
  expect_match(paste(capture.output(print(g)), collapse = "\n"), "not on a device now")
  expect_identical(g(0.1, q$beta), expected)
  expect_identical(g(0.1, q$beta), expected)
  h <- unserialize(serialize(cl_likelihood(family, q$y, as_cl(q$x)), NULL))
  expect_equal(h(0.1, q$beta), expected, ignore_attr = TRUE)
  gone <- as_cl(q$x)
  h <- cl_likelihood(family, q$y, gone)
  cl_free(gone)
  h <- unserialize(serialize(h, NULL))
  expect_fault(h(0.1, q$beta), "stale", argument = "x")
})

test_that("a likelihood works in a forked process", {
  skip_on_os("windows")
  q <- glm_problem(30, 2)
  each_engine({
    f <- cl_likelihood(family, q$y, q$x)
    expected <- f(0.1, q$beta)
    job <- parallel::mcparallel(f(0.1, q$beta))
    result <- parallel::mccollect(job, wait = FALSE, timeout = 30)
    if (is.null(result)) tools::pskill(job$pid, 9L)
    expect_equal(result[[1L]], expected, tolerance = 1e-14)
    expect_identical(f(0.1, q$beta), expected)
  })
})

test_each_engine("optim() with cl_objective() finds the estimates of glm()", {
  q <- glm_problem(400, 3)
  fit <- glm(q$y ~ q$x, family = binomial, control = list(epsilon = 1e-14))
  without <- glm(q$y ~ q$x - 1, family = binomial, control = list(epsilon = 1e-14))
  f <- cl_likelihood(family, q$y, q$x)
  maximum <- function(pair, start) {
    optim(start, pair$fn, pair$gr, method = "BFGS", control = list(reltol = 1e-15, maxit = 300))
  }
  found <- maximum(cl_objective(f), rep(0, 4))
  expect_equal(found$par, unname(coef(fit)), tolerance = 1e-6)
  expect_equal(-found$value, as.vector(logLik(fit)), tolerance = 1e-12)
  found <- maximum(cl_objective(f, intercept = FALSE), rep(0, 3))
  expect_equal(found$par, unname(coef(without)), tolerance = 1e-6)
  pair <- cl_objective(f, maximise = FALSE)
  expect_equal(pair$fn(c(0.1, q$beta)), as.vector(f(0.1, q$beta)))
  expect_equal(pair$gr(c(0.1, q$beta)), unname(unlist(gradient_of(f(0.1, q$beta)))))
})

test_that("value and gradient at one point take one evaluation", {
  calls <- 0
  f <- function(par) {
    calls <<- calls + 1
    structure(sum(par^2), gradient = 2 * par)
  }
  pair <- cl_objective(f, maximise = FALSE)
  expect_equal(pair$fn(c(1, 2)), 5)
  expect_equal(pair$gr(c(1, 2)), c(2, 4))
  expect_equal(calls, 1)
  expect_equal(pair$gr(c(1, 3)), c(2, 6))
  expect_equal(calls, 2)
  expect_refused("f", cl_objective(1))
  expect_refused("intercept", cl_objective(f, intercept = NA))
})

test_that("a wrong gradient is found", {
  right <- function(v, w) structure(sum(v^3) + w, gradient = list(v = 3 * v^2, w = 1))
  wrong <- function(v, w) structure(sum(v^3) + w, gradient = list(v = 3 * v^2 + c(0, 1e-3), w = 1))
  result <- cl_check_gradient(right, v = c(1, 2), w = 0)
  expect_s3_class(result, c("cl_gradient_check", "data.frame"))
  expect_identical(result$argument, c("v", "v", "w"))
  expect_lt(max(result$error), 1e-9)
  result <- cl_check_gradient(wrong, v = c(1, 2), w = 0)
  expect_equal(which(result$error > 1e-5), 2)
  expect_output(print(result), "3 coordinates, largest error 8.3e-05", fixed = TRUE)
  expect_equal(nrow(cl_check_gradient(function(v) structure(v^2, gradient = 2 * v), 3)), 1)
  expect_refused("f", cl_check_gradient(sum, 1), cl_check_gradient(1, 1))
  expect_refused("step", cl_check_gradient(right, v = 1, w = 0, step = -1))
  expect_fault(cl_check_gradient(right), "argument")
  several <- function(v) structure(v^2, gradient = 2 * v)
  expect_refused("f", cl_check_gradient(several, c(1, 2)))
})

test_that("cl_check_gradient() gives a verdict on each coordinate", {
  wrong <- function(v, w) structure(sum(v^3) + w, gradient = list(v = 3 * v^2 + c(0, 1e-3), w = 1))
  result <- cl_check_gradient(wrong, v = c(1, 2), w = 0)
  expect_identical(result$ok, c(TRUE, FALSE, TRUE))
  expect_output(print(result), "verdict: WRONG by v[2]", fixed = TRUE)
  right <- cl_check_gradient(function(v) structure(sum(v^3), gradient = 3 * v^2), v = c(1, 2))
  expect_identical(right$ok, c(TRUE, TRUE))
  expect_output(print(right), "verdict: right")
  # a kink, a wall and noise are inconclusive
  unclear <- list(function(v) structure(abs(v), gradient = 1),
                  function(v) structure(if (v < 0) -Inf else v, gradient = 0),
                  function(v) structure(v + 1e-4 * (1e5 * v) %% 1, gradient = 2))
  set.seed(1)
  for (f in unclear) {
    result <- cl_check_gradient(f, v = 0)
    expect_identical(result$ok, NA)
    expect_output(print(result), "not clear by v")
  }
  # values much larger than their changes, and much smaller than 1
  large <- function(v) structure(1e9 + v^2, gradient = 2 * v)
  expect_identical(cl_check_gradient(large, v = 1e-3)$ok, TRUE)
  small <- function(v) structure(1e-9 * v^2, gradient = 3e-9 * v)
  expect_identical(cl_check_gradient(small, v = 1)$ok, FALSE)
  flat <- function(v) structure(lgamma(1 + exp(-1 / v^2)), gradient = 1e-130)
  expect_identical(cl_check_gradient(flat, v = 0.05)$ok, TRUE)
  constant <- function(v) structure(0, gradient = 0.1)
  expect_identical(cl_check_gradient(constant, v = 0.05)$ok, FALSE)
})

test_that("an objective of several parameters splits the vector as 'init' says", {
  likelihood <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars[c("wt", "hp")]))
  posterior <- cl_log_posterior(likelihood, ~ dnorm(beta, 0, 2, log = TRUE))
  expect_refused("init", cl_objective(posterior))
  pair <- cl_objective(posterior, init = list(alpha = 0.5, beta = c(1, -1)))
  expect_equal(pair$par, c(alpha = 0.5, "beta[1]" = 1, "beta[2]" = -1))
  at <- posterior(alpha = 0.5, beta = c(1, -1))
  expect_equal(pair$fn(pair$par), -as.vector(at))
  expect_equal(pair$gr(pair$par), -unlist(attr(at, "gradient"), use.names = FALSE))
  found <- do.call(optim, c(pair, method = "BFGS"))
  expect_lt(max(abs(pair$gr(found$par))), 1e-2)
  expect_refused("par", pair$fn(1:2))
  listed <- function(a) structure(-a^2, gradient = list(a = -2 * a))
  expect_refused("init", cl_objective(listed)$fn(1))
  expect_equal(cl_objective(listed, init = list(a = 3))$gr(3), 6)
  expect_refused("init", cl_objective(listed, init = 3))
  expect_refused("f", cl_objective(function(v) structure(1, gradient = 1:2))$fn(1),
                 cl_objective(function(v) v)$fn(1),
                 cl_objective(function(v) structure(v, gradient = v))$fn(1:2))
})
