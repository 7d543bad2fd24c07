# Numerically hard fits: data sets designed to be hard, columns and responses of any scale, perfect
# fits, likelihoods that seem to have no maximum.

# Correct digits, at most 15.
digits_right <- function(got, wanted) {
  off <- abs(unname(got) - wanted) / abs(wanted)
  min(ifelse(off == 0, 15, pmin(15, -log10(off))))
}

# Linear regressions of the Statistical Reference Datasets of NIST, with the certified numbers,
# those of exact arithmetic: list(formula, data, coefficients, standard errors).
nist_sets <- function() {
  delta <- c(759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048)
  delta <- c(delta, rev(delta)[-1])
  x <- 0:20
  powers <- outer(x, 0:5, `^`)
  wampler <- y ~ x + I(x^2) + I(x^3) + I(x^4) + I(x^5)
  error <- c(2152.3262467816967, 2363.5517346968054, 779.3435243315831, 101.47550755034965,
             5.645665121707515, 0.11232485467931194)
  one <- rowSums(powers)
  two <- round(as.vector(powers %*% 10^-(0:5)), 5)
  pontius <- c(0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487, 0.98292,
               1.09146, 1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947, 1.84646, 1.95392,
               2.06128, 2.16844, 0.11052, 0.22018, 0.32939, 0.43886, 0.54798, 0.65739, 0.76596,
               0.87474, 0.98300, 1.09150, 1.20004, 1.30818, 1.41613, 1.52408, 1.63159, 1.73965,
               1.84696, 1.95445, 2.06177, 2.16829)
  norris <- data.frame(
    x = c(0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777, 558.2, 0.4, 0.6, 775.5,
          666.9, 338, 447.5, 11.6, 556, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2,
          999, 779, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5),
    y = c(0.1, 338.8, 118.1, 888, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1,
          668.8, 339.3, 448.9, 10.8, 557.7, 228.3, 998, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888,
          998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2))
  list(
    Longley = list(round(1000 * Employed) ~ ., longley,
                   c(-3482258.6345958193, 15.061872271373886, -35.819179292591194,
                     -20.202298038168273, -10.33226867173592, -51.10410565357914,
                     1829.1514646135522),
                   c(890420.3836073732, 84.9149257747671, 33.4910077722433, 4.88399681651701,
                     2.142741631616751, 226.07320006937132, 455.4784991422123)),
    Wampler1 = list(wampler, data.frame(x, y = one), rep(1, 6)),
    Wampler2 = list(wampler, data.frame(x, y = two), 10^-(0:5)),
    Wampler3 = list(wampler, data.frame(x, y = one + delta), rep(1, 6), error),
    Wampler4 = list(wampler, data.frame(x, y = one + 100 * delta), rep(1, 6), 100 * error),
    Wampler5 = list(wampler, data.frame(x, y = one + 10000 * delta), rep(1, 6), 10000 * error),
    Pontius = list(y ~ x + I(x^2), data.frame(x = rep(150000 * (1:20), 2), y = pontius),
                   c(0.0006735657894736632, 7.320591604010026e-07, -3.1608187134503054e-15),
                   c(0.00010793861203307534, 1.5781739998165632e-10, 4.866528499920286e-17)),
    Norris = list(y ~ x, norris, c(-0.26232307377402675, 1.0021168180204545),
                  c(0.2328182343011548, 0.0004297968481999412)),
    NoInt1 = list(y ~ x - 1, data.frame(x = 60:70, y = 130:140), 2.074380165289256,
                  0.01652892561983471),
    NoInt2 = list(y ~ x - 1, data.frame(x = 4:6, y = c(3, 4, 4)), 8 / 11, 0.04208273180784325))
}

test_each_engine("linear regressions are at least as accurate as lm()", {
  quiet <- function(code) suppressWarnings(code, "statcl_warning_boundary")
  error_of <- function(fit) sqrt(diag(vcov(fit)))
  for (name in names(nist_sets())) {
    set <- nist_sets()[[name]]
    fit <- quiet(cl_glm(set[[1]], set[[2]], "normal_id"))
    peer <- lm(set[[1]], set[[2]])
    least <- if (name == "Wampler2") 13 else 14 # y is rounded there
    expect_gte(digits_right(coef(fit), set[[3]]), least)
    if (length(set) == 4L) {
      expect_gte(digits_right(error_of(fit), set[[4]]), 13)
    } else {
      expect_lt(sigma(fit), 1e-7)
    }
    expect_identical(fit$rank, peer$rank)
    # as a matrix on a device, and with weights that stand for repeated rows
    x <- model.matrix(peer)
    y <- model.response(model.frame(peer))
    again <- quiet(cl_glm(as_cl(unname(x)), y, "normal_id", intercept = FALSE))
    expect_gte(digits_right(coef(again), set[[3]]), least)
    double <- quiet(cl_glm(unname(x), y, "normal_id", intercept = FALSE,
                           weights = rep(4, length(y))))
    expect_gte(digits_right(coef(double), set[[3]]), least)
  }
})

test_each_engine("linear regressions by group are at least as accurate as lm()", {
  for (name in names(nist_sets())) {
    set <- nist_sets()[[name]]
    peer <- lm(set[[1]], set[[2]])
    n <- nobs(peer)
    p <- length(coef(peer))
    least <- min(13, digits_right(coef(peer), set[[3]]) - 0.01)
    data <- rbind(set[[2]], set[[2]])
    easy <- n + seq_len(n) # the second group has columns of random numbers
    set.seed(1)
    data[easy, ] <- rnorm(n * ncol(data))
    fits <- list(cl_batch_lm(set[[1]], data, group = rep(1:2, each = n)),
                 cl_batch_glm(set[[1]], data, group = rep(1:2, each = n), family = gaussian))
    for (fit in fits) {
      expect_gte(digits_right(coef(fit)[1, ], set[[3]]), least)
      if (length(set) == 4L) {
        expect_gte(digits_right(fit$std.error[1, ], set[[4]]),
                   min(12, digits_right(summary(peer)$coefficients[, 2], set[[4]]) - 0.01))
      }
      expect_equal(unname(residuals(fit, "response")[seq_len(n)]), unname(residuals(peer)),
                   tolerance = 1e-9)
      expect_equal(unname(coef(fit)[2, ]), unname(coef(lm(set[[1]], data[easy, ]))),
                   tolerance = 1e-9)
    }
  }
})

test_each_engine("raw polynomials have the accuracy and the rank of lm()", {
  set.seed(1)
  x <- seq(1, 40, length.out = 82)
  filip <- seq(-3.13, -8.78, length.out = 82)
  y <- sin(x / 5) + rnorm(82) / 10
  for (degree in c(3, 6, 9)) {
    power <- outer(x, seq_len(degree), `^`)
    peer <- lm(y ~ power)
    fit <- cl_glm(power, y, "normal_id")
    expect_equal(unname(coef(fit)), unname(coef(peer)), tolerance = 1e-7)
    expect_equal(unname(fitted(fit)), unname(fitted(peer)), tolerance = 1e-10)
    expect_equal(sqrt(diag(unname(vcov(fit)))), sqrt(diag(unname(vcov(peer)))), tolerance = 1e-8)
    new <- unname(power[1:40, ])
    expect_equal(unname(predict(fit, new, se.fit = TRUE)$se.fit),
                 unname(predict(peer, list(power = new), se.fit = TRUE)$se.fit),
                 tolerance = 1e-8)
  }
  power <- outer(filip, 1:10, `^`)
  fit <- cl_glm(power, y, "normal_id")
  expect_identical(fit$rank, lm(y ~ power)$rank)
  expect_identical(fit$rank, 10L)
  expect_identical(unname(is.na(coef(fit))), rep(c(FALSE, TRUE), c(10, 1)))
})

test_each_engine("generalised linear models are as accurate as glm() for nearly equal columns", {
  set.seed(2)
  x <- seq(1, 12, length.out = 120)
  data <- data.frame(x, near = x + 1e-5 * sin(1:120), far = x / 1e3 + 1e5,
                     b = rbinom(120, 1, plogis(sin(x))), k = rpois(120, exp(1 + sin(x))))
  models <- list(~ poly(x, 6, raw = TRUE), ~ x + near, ~ far)
  exact <- list(epsilon = 1e-15, maxit = 200)
  for (right in models) {
    for (one in list(list("b", binomial), list("k", poisson))) {
      model <- update(right, as.formula(paste(one[[1]], "~ .")))
      peer <- suppressWarnings(glm(model, one[[2]], data, control = exact))
      fit <- cl_glm(model, data, one[[2]])
      expect_equal(coef(fit), coef(peer), tolerance = 1e-7)
      expect_equal(fitted(fit), fitted(peer), tolerance = 1e-8)
      expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(vcov(peer))), tolerance = 1e-6)
      expect_equal(deviance(fit), deviance(peer), tolerance = 1e-10)
      expect_true(fit$converged)
    }
  }
})

test_each_engine("columns and responses may have any scale", {
  set.seed(3)
  x <- rnorm(50)
  y <- 1 + 2 * x + rnorm(50)
  data <- data.frame(x, y, b = rbinom(50, 1, plogis(x)))
  near <- cl_glm(y ~ x, data, "normal_id")
  fit <- expect_silent(cl_glm(1e13 + y ~ x, data, "normal_id"))
  # y itself is rounded to 1 / 512
  expect_equal(coef(fit)[["x"]], coef(near)[["x"]], tolerance = 1e-3)
  expect_equal(sigma(fit), sigma(near), tolerance = 1e-3)
  expect_equal(coef(fit), coef(lm(1e13 + y ~ x)), tolerance = 1e-4)
  for (size in c(1e-200, 1e170)) {
    fit <- expect_silent(cl_glm(I(y * size) ~ x, data, "normal_id"))
    expect_equal(coef(fit) / size, coef(near), tolerance = 1e-13)
    expect_equal(sigma(fit) / size, sigma(near), tolerance = 1e-13)
    expect_equal(fit$logLik, near$logLik - 50 * log(size), tolerance = 1e-13)
  }
  for (size in c(1e-200, 1e200)) {
    fit <- expect_silent(cl_glm(y ~ I(x * size), data, "normal_id"))
    expect_equal(unname(coef(fit) * c(1, size)), unname(coef(near)), tolerance = 1e-13)
    expect_equal(unname(fitted(fit)), unname(fitted(near)), tolerance = 1e-13)
    expect_equal(sigma(fit), sigma(near), tolerance = 1e-13)
    # whose squares overflow or underflow
    expect_equal(unname(coef(summary(fit))[, 2] * c(1, size)), unname(coef(summary(near))[, 2]),
                 tolerance = 1e-13)
    expect_equal(unname(confint(fit) * c(1, size)), unname(confint(near)), tolerance = 1e-13)
    logit <- expect_silent(cl_glm(b ~ I(x * size), data))
    expect_equal(unname(coef(logit) * c(1, size)), unname(coef(cl_glm(b ~ x, data))),
                 tolerance = 1e-13)
  }
})

test_each_engine("perfect and saturated fits are returned", {
  data <- data.frame(x = c(1, 3, 2, 5, 4), z = c(1, 0, 2, 2, 1))
  expect_warning(fit <- cl_glm(I(1 + 2 * x) ~ x, data, "normal_id"),
                 "essentially perfect fit", class = "statcl_warning_boundary")
  expect_equal(unname(coef(fit)), c(1, 2), tolerance = 1e-15)
  expect_lt(sigma(fit), 1e-14)
  expect_warning(summary(fit), "essentially perfect fit")
  # no degree of freedom is left
  fit <- cl_glm(x ~ factor(1:5), data, "normal_id")
  peer <- lm(x ~ factor(1:5), data)
  expect_equal(coef(fit), coef(peer), tolerance = 1e-14)
  expect_equal(fitted(fit), fitted(peer), tolerance = 1e-14)
  expect_identical(c(fit$rank, fit$df.residual), c(5L, 0L))
  expect_identical(sigma(fit), NaN)
  expect_identical(cl_glm(mpg ~ .^2, mtcars, "normal_id")$rank, lm(mpg ~ .^2, mtcars)$rank)
  for (family in list(poisson, binomial)) {
    y <- if (identical(family, poisson)) c(1, 5, 2, 9, 4) else cbind(c(1, 5, 2, 9, 4), 3)
    fit <- expect_silent(cl_glm(y ~ factor(1:5), family = family))
    peer <- glm(y ~ factor(1:5), family = family, control = list(epsilon = 1e-15, maxit = 100))
    expect_equal(coef(fit), coef(peer), tolerance = 1e-7)
    expect_equal(vcov(fit), vcov(peer), tolerance = 1e-6)
    expect_lt(abs(deviance(fit)), 1e-12)
  }
})

test_each_engine("large exposures do not hide small ones", {
  data <- data.frame(e = 10^rep(seq(0, 18, 2), each = 2), g = rep(c("a", "b"), 10))
  data$y <- round(data$e * ifelse(data$g == "a", 0.002, 0.003))
  few <- data.frame(g = rep(c("few", "many"), each = 3), e = rep(c(1, 1e15), each = 3),
                    y = c(2, 0, 3, 1e15, 2e15, 3e15))
  exact <- list(epsilon = 1e-16, maxit = 200)
  fit <- expect_silent(cl_glm(y ~ g, data, poisson, offset = log(e)))
  peer <- suppressWarnings(glm(y ~ g, poisson, data, offset = log(e), control = exact))
  expect_equal(coef(fit), coef(peer), tolerance = 1e-9)
  expect_equal(vcov(fit), vcov(peer), tolerance = 1e-7)
  fit <- expect_silent(cl_glm(y ~ g, few, poisson, offset = log(e)))
  expect_equal(unname(coef(fit)), c(log(5 / 3), log(2) - log(5 / 3)), tolerance = 1e-9)
  expect_equal(sqrt(diag(unname(vcov(fit)))), rep(sqrt(1 / 5), 2), tolerance = 1e-7)
})

test_each_engine("a distant maximum is found", {
  fit <- expect_silent(cl_glm(cbind(2e9 - 1, 1) ~ 1, family = binomial))
  expect_equal(coef(fit)[[1]], log(2e9 - 1), tolerance = 1e-12)
  # from a start at which the information is 1e9 times that at the maximum
  data <- data.frame(s = c(50, 2e9 - 1), f = c(50, 1))
  for (start in c(0, 40)) {
    fit <- expect_silent(cl_glm(cbind(s, f) ~ 1, data, binomial, start = start))
    expect_equal(coef(fit)[[1]], log((2e9 + 49) / 51), tolerance = 1e-12)
    expect_true(fit$converged)
  }
  fit <- expect_silent(cl_glm(c(0, 1) ~ 1, weights = c(1, 2e9)))
  expect_equal(coef(fit)[[1]], log(2e9), tolerance = 1e-12)
  g <- rep(0:1, each = 2)
  fit <- expect_silent(cl_glm(c(0, 1, 0, 1) ~ g, weights = c(2, 3, 1, 2e9)))
  expect_equal(unname(coef(fit)), c(log(1.5), log(2e9) - log(1.5)), tolerance = 1e-11)
  many <- expect_silent(cl_glm(factor(c(1, 2)) ~ 1, family = "categorical_logit",
                               weights = c(1, 2e9)))
  expect_equal(coef(many)[[1]], log(2e9), tolerance = 1e-12)
  # and separation is found for any weights
  expect_warning(cl_glm(c(0, 0, 1, 1) ~ c(1, 2, 3, 4), weights = c(1, 2, 1e6, 1)),
                 class = "statcl_warning_separation")
})

test_that("standard errors of extreme scales are finite if they can be", {
  on_host({
    set.seed(1)
    z <- rnorm(100)
    x <- rnorm(100)
    y <- z + 1e-10 * rnorm(100)
    peer <- coef(summary(lm(y ~ z + x - 1)))
    fit <- cl_glm(I(1e149 * y) ~ z + I(1e-165 * x) - 1, "normal_id")
    scaled <- coef(summary(fit))[, 1:2] / c(1e149, 1e149 / 1e-165)
    expect_equal(unname(scaled), unname(peer[, 1:2]), tolerance = 1e-8)
  })
})

test_that("large problems are corrected by residuals, or solved like small ones", {
  set.seed(4)
  n <- 30000
  data <- data.frame(a = rnorm(n), b = runif(n) + 30, g = factor(sample(4, n, TRUE)),
                     o = rnorm(n), w = rep(c(1, 2, 0.5), n / 3))
  data$twice <- 2 * data$a - data$b
  data$y <- data$a - data$b / 10 + as.integer(data$g) + rnorm(n)
  data$k <- rpois(n, exp(data$a / 3))
  model <- y ~ a + b + twice + g + offset(o)
  peer <- lm(model, data, weights = w)
  wide <- update(model, . ~ . + I(b^2) + I(b^3) + I(b^4))
  skew <- lm(wide, data)
  exact <- list(epsilon = 1e-15, maxit = 100)
  powers <- k ~ a + b + I(b^2) + I(b^3) + offset(o / 9)
  counts <- glm(powers, poisson, data, weights = w, control = exact)
  expect_false(basis_is_cheap(model.matrix(peer)))
  each_engine({
    fit <- cl_glm(model, data, "normal_id", weights = w)
    expect_equal(coef(fit), coef(peer), tolerance = 1e-11)
    expect_equal(vcov(fit), vcov(peer), tolerance = 1e-9)
    expect_equal(sigma(fit), sigma(peer), tolerance = 1e-12)
    expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(peer)), tolerance = 1e-12)
    fit <- cl_glm(wide, data, "normal_id")
    expect_equal(coef(fit), coef(skew), tolerance = 1e-8)
    expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(vcov(skew))), tolerance = 1e-8)
    fit <- cl_glm(powers, data, poisson, weights = w)
    expect_equal(coef(fit), coef(counts), tolerance = 1e-7)
    expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(vcov(counts))), tolerance = 1e-7)
    plain <- cl_glm(y ~ a + b, data, "normal_id")
    for (size in c(1e-200, 1e200)) {
      fit <- cl_glm(y ~ I(a * size) + b, data, "normal_id")
      expect_equal(unname(coef(fit) * c(1, size, 1)), unname(coef(plain)), tolerance = 1e-11)
      fit <- cl_glm(I(y * size) ~ a + b, data, "normal_id")
      expect_equal(coef(fit) / size, coef(plain), tolerance = 1e-11)
    }
    expect_equal(coef(cl_glm(1e10 + y ~ a + b, data, "normal_id"))[-1], coef(plain)[-1],
                 tolerance = 1e-6)
  })
})
