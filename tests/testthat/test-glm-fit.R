# Fits of generalised linear models against those of base R and MASS, on real data.

# Coefficients, standard errors, log likelihoods and deviances of a fit of glm() or the like.
expect_same_fit <- function(fit, peer, errors = 1e-7) {
  expect_equal(coef(fit), coef(peer), tolerance = 1e-8)
  expect_equal(sqrt(diag(vcov(fit))), sqrt(diag(vcov(peer))), tolerance = errors)
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(peer)), tolerance = 1e-10)
  expect_equal(deviance(fit), deviance(peer), tolerance = 1e-9)
  expect_equal(AIC(fit), AIC(peer), tolerance = 1e-10)
  expect_equal(as.numeric(nobs(fit)), as.numeric(nobs(peer)))
  expect_equal(BIC(fit), BIC(peer), tolerance = 1e-10)
  expect_equal(as.numeric(df.residual(fit)), as.numeric(df.residual(peer)))
  expect_true(fit$converged)
  expect_lt(fit$decrement, 1e-8)
}

same_as_glm <- function(fit, peer) {
  expect_same_fit(fit, peer)
  expect_equal(fit$null.deviance, peer$null.deviance, tolerance = 1e-9)
  expect_equal(fit$df.null, peer$df.null)
  expect_equal(fitted(fit), fitted(peer), tolerance = 1e-8)
  for (type in c("deviance", "pearson", "response")) {
    expect_equal(residuals(fit, type), residuals(peer, type), tolerance = 1e-7)
  }
  expect_equal(unname(predict(fit, se.fit = TRUE)$se.fit),
               unname(predict(peer, se.fit = TRUE)$se.fit), tolerance = 1e-7)
  expect_equal(predict(fit, type = "response"), predict(peer, type = "response"), tolerance = 1e-8)
}

exact <- list(epsilon = 1e-15, maxit = 100)

flchain <- function() {
  data <- survival::flchain
  data[complete.cases(data[c("age", "sex", "kappa", "lambda", "creatinine", "mgus")]), ]
}

test_each_engine("logistic regression agrees with glm()", {
  data <- flchain()
  model <- death ~ age + sex * log(kappa) + log(lambda) + log(creatinine) + mgus
  peer <- glm(model, binomial, data, control = exact)
  same_as_glm(cl_glm(model, data), peer)
  # columns of very different scale and origin
  data$seconds <- data$age * 3e7 + 1e9
  moved <- cl_glm(death ~ seconds + sex, data)
  plain <- cl_glm(death ~ age + sex, data)
  expect_equal(coef(moved)[["seconds"]] * 3e7, coef(plain)[["age"]], tolerance = 1e-8)
  expect_equal(moved$logLik, plain$logLik, tolerance = 1e-12)
  expect_equal(vcov(moved)["seconds", "seconds"] * 9e14, vcov(plain)["age", "age"],
               tolerance = 1e-8)
})

test_each_engine("binomial counts and proportions agree with glm()", {
  model <- cbind(ncases, ncontrols) ~ agegp + unclass(tobgp) + unclass(alcgp)
  peer <- glm(model, binomial, esoph, control = exact)
  shares <- transform(esoph, n = ncases + ncontrols, share = ncases / (ncases + ncontrols))
  same_as_glm(cl_glm(model, esoph, "binomial_logit"), peer)
  fit <- cl_glm(update(model, share ~ .), shares, binomial, weights = n)
  expect_same_fit(fit, peer)
  expect_identical(fit[["family"]], "binomial_logit")
  expect_same_fit(cl_glm(update(model, ncases ~ .), shares, binomial(), trials = n), peer)
})

test_each_engine("counts agree with glm(), with an offset", {
  data <- data.frame(InsectSprays, hours = seq_len(72) %% 5 + 1)
  model <- count ~ spray + offset(log(hours))
  peer <- glm(model, poisson, data, control = exact)
  fit <- cl_glm(model, data, "poisson_log")
  same_as_glm(fit, peer)
  fit <- cl_glm(count ~ spray, data, poisson, offset = log(hours))
  same_as_glm(fit, glm(count ~ spray, poisson, data, offset = log(hours), control = exact))
  new <- data.frame(spray = c("A", "F"), hours = c(2, 8))
  expect_equal(predict(fit, new), predict(peer, new), tolerance = 1e-9)
})

test_each_engine("linear regression agrees with lm() and glm(), with weights", {
  data <- transform(warpbreaks, w = rep(1:3, 18) / 2)
  peer <- lm(breaks ~ wool * tension, data, weights = w)
  fit <- cl_glm(breaks ~ wool * tension, data, "normal_id", weights = w)
  same_as_glm(fit, glm(breaks ~ wool * tension, gaussian, data, weights = w))
  expect_equal(sigma(fit), sigma(peer), tolerance = 1e-12)
  expect_equal(confint(fit), confint(peer), tolerance = 1e-9, ignore_attr = TRUE)
  expect_equal(coef(summary(fit)), coef(summary(peer)), tolerance = 1e-9)
  # badly conditioned
  hard <- cl_glm(Employed ~ ., longley, "normal_id")
  expect_equal(coef(hard), coef(lm(Employed ~ ., longley)), tolerance = 1e-8)
  expect_equal(vcov(hard), vcov(lm(Employed ~ ., longley)), tolerance = 1e-6)
})

test_each_engine("negative binomial regression agrees with MASS::glm.nb()", {
  model <- Days ~ Sex / (Age + Eth * Lrn)
  peer <- MASS::glm.nb(model, MASS::quine, control = glm.control(1e-14, 200))
  fit <- cl_glm(model, MASS::quine, "neg_binomial_2_log")
  expect_same_fit(fit, peer)
  expect_equal(fit$aux[["phi"]], peer$theta, tolerance = 1e-8)
  expect_equal(fit$aux_error, peer$SE.theta, tolerance = 1e-4)
  expect_equal(fit$null.deviance, peer$null.deviance, tolerance = 1e-8)
  expect_equal(residuals(fit), residuals(peer), tolerance = 1e-7)
})

test_each_engine("ordered classes agree with MASS::polr()", {
  peer <- MASS::polr(Sat ~ Infl + Type + Cont, MASS::housing, weights = Freq, Hess = TRUE,
                     control = list(reltol = 1e-16))
  fit <- cl_glm(Sat ~ Infl + Type + Cont, MASS::housing, "ordered_logistic", weights = Freq)
  expect_equal(fit$aux, peer$zeta, tolerance = 1e-7)
  expect_equal(coef(fit), coef(peer), tolerance = 1e-7)
  expect_equal(vcov(fit), vcov(peer), tolerance = 1e-5)
  expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(peer)), tolerance = 1e-11)
  expect_identical(AIC(fit) - 2 * 8, deviance(fit))
  expect_equal(c(nobs(fit), df.residual(fit)), c(1681, 1673))
  expect_equal(unname(fitted(fit)), unname(fitted(peer)), tolerance = 1e-7)
  class <- predict(fit, MASS::housing, type = "class")
  expect_identical(as.character(class), as.character(predict(peer, MASS::housing)))
  expect_identical(levels(class), c("Low", "Medium", "High"))
  expect_true(is.ordered(class))
})

test_each_engine(
  "ordered classes have exact second derivatives, also for columns with a large mean", {
  data <- transform(mtcars, y = factor(carb), o = qsec / 10, far = hp + 1e6)
  response <- glm_response("ordered_logistic", data$y, NULL, rep(1:2, 16))
  problem <- new_glm_problem("ordered_logistic", cbind(1, as.matrix(data[c("wt", "hp")])), response,
                             data$o, 1L)
  core <- free_columns(glm_core(problem), 2:3)
  theta <- c(0.4, 0.02, 1:5 / 2)
  by_steps <- sapply(seq_along(theta), function(i) {
    h <- replace(numeric(7), i, c(1e-4, 1e-6, rep(1e-4, 5))[i])
    (glm_at(core, theta - h)$gradient - glm_at(core, theta + h)$gradient) / (2 * h[i])
  })
  expect_equal(glm_information(core, theta), by_steps, tolerance = 1e-6)
  near <- cl_glm(y ~ wt + hp, data, "ordered_logistic")
  expect_silent(far <- cl_glm(y ~ wt + far, data, "ordered_logistic"))
  expect_equal(unname(coef(far)), unname(coef(near)), tolerance = 1e-6)
  expect_equal(unname(vcov(far)[1:2, 1:2]), unname(vcov(near)[1:2, 1:2]), tolerance = 1e-5)
})

test_that("the probabilities of ordered classes are accurate in the tails", {
  p <- class_probabilities("ordered_logistic", c(-60, 0, 60), c(-1, 1))
  expect_equal(p[, 1], plogis(c(59, -1, -61)), tolerance = 1e-14)
  expect_equal(p[1, 2], plogis(-59) - plogis(-61), tolerance = 1e-14)
  expect_equal(p[3, 2], plogis(-59) - plogis(-61), tolerance = 1e-14)
})

# Minus the log likelihood of a categorical model in plain R, by the coefficients of all classes but
# the first.
plain_categorical <- function(beta, x, y) {
  eta <- cbind(0, x %*% matrix(beta, ncol(x)))
  sum(log(rowSums(exp(eta)))) - sum(eta[cbind(seq_along(y), y)])
}

test_each_engine("categorical regression finds the maximum", {
  data <- MASS::birthwt
  data$group <- cut(data$bwt, c(0, 2500, 3200, 1e4), c("low", "middle", "high"))
  model <- group ~ lwt + smoke + ht
  x <- model.matrix(model, data)
  y <- as.integer(data$group)
  unit <- rep(1 / unname(apply(abs(x), 2, max)), 2)
  peer <- optim(numeric(8), function(b) plain_categorical(b * unit, x, y), method = "BFGS",
                hessian = TRUE, control = list(reltol = 1e-15, maxit = 1000))
  fit <- cl_glm(model, data, "categorical_logit")
  expect_named(coef(fit), paste(rep(c("middle", "high"), each = 4), colnames(x), sep = ":"))
  expect_equal(unname(coef(fit)), peer$par * unit, tolerance = 1e-4)
  expect_lte(-fit$logLik, peer$value + 1e-10)
  expect_equal(unname(vcov(fit)), solve(peer$hessian) * tcrossprod(unit), tolerance = 1e-4)
  expect_equal(fit$logLik, sum(log(fitted(fit)[cbind(seq_along(y), y)])), tolerance = 1e-12)
  # two classes are a logistic regression
  two <- cl_glm(factor(low) ~ lwt + smoke, data, "categorical_logit")
  expect_equal(unname(coef(two)), unname(coef(cl_glm(low ~ lwt + smoke, data))), tolerance = 1e-9)
  expect_equal(unname(vcov(two)), unname(vcov(cl_glm(low ~ lwt + smoke, data))), tolerance = 1e-9)
})

test_that("integer weights are equivalent to repeated rows", {
  w <- rep(0:3, 8)
  long <- mtcars[rep(seq_len(32), w), ]
  on_host(for (model in list(list(am ~ wt, "bernoulli_logit"), list(carb ~ wt, "poisson_log"),
                             list(carb ~ wt, "neg_binomial_2_log"),
                             list(factor(gear) ~ qsec, "categorical_logit"))) {
    quiet <- function(code) suppressWarnings(code, "statcl_warning_boundary")
    fit <- quiet(cl_glm(model[[1]], mtcars, model[[2]], weights = w))
    all <- quiet(cl_glm(model[[1]], long, model[[2]]))
    expect_equal(coef(fit), coef(all), tolerance = 1e-9)
    expect_equal(vcov(fit), vcov(all), tolerance = 1e-8)
    expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(all)), tolerance = 1e-12)
    expect_equal(c(deviance(fit), fit$null.deviance), c(deviance(all), all$null.deviance),
                 tolerance = 1e-10)
    expect_length(residuals(fit, "response"), 32 * if (is.matrix(fitted(fit))) 3 else 1)
  })
})

test_that("weights multiply the likelihood, and may be any nonnegative numbers", {
  w <- c(0.25, 3, 50, 0, 1.5, 2, 0.001, 7) * rep(c(1, 2), each = 8)
  data <- data.frame(y = c(0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0), x = cos(1:16), w,
                     k = c(3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3),
                     share = (1:16) / 20, n = rep(c(10, 7, 0, 2.5), 4))
  same <- function(fit, peer) {
    expect_equal(coef(fit), coef(peer), tolerance = 1e-8)
    expect_equal(vcov(fit), vcov(peer), tolerance = 1e-7)
    expect_equal(deviance(fit), deviance(peer), tolerance = 1e-9)
    expect_equal(fit$null.deviance, peer$null.deviance, tolerance = 1e-9)
    expect_equal(residuals(fit), residuals(peer), tolerance = 1e-7)
  }
  each_engine({
    peer <- glm(k ~ x, poisson, data, weights = w, control = exact)
    fit <- expect_silent(cl_glm(k ~ x, data, poisson, weights = w))
    same(fit, peer)
    expect_equal(as.numeric(logLik(fit)), as.numeric(logLik(peer)), tolerance = 1e-10)
    # in the words of glm()
    peer <- suppressWarnings(glm(y ~ x, binomial, data, weights = w, control = exact))
    expect_warning(fit <- cl_glm(y ~ x, data, binomial, weights = w),
                   "non-integer #successes in a binomial glm!", class = "statcl_warning_counts")
    same(fit, peer)
    peer <- suppressWarnings(glm(share ~ x, binomial, data, weights = n, control = exact))
    expect_warning(fit <- cl_glm(share ~ x, data, binomial, weights = n),
                   "non-integer #successes", class = "statcl_warning_counts")
    same(fit, peer)
    counts <- with(data, cbind(k + 0.5, w))
    peer <- suppressWarnings(glm(counts ~ data$x, binomial, control = exact))
    expect_warning(fit <- cl_glm(counts ~ data$x, family = binomial), "non-integer counts")
    same(fit, peer)
    # as much work as without
    many <- cl_glm(count ~ spray, InsectSprays, poisson, weights = rep(5e5, 72))
    one <- cl_glm(count ~ spray, InsectSprays, poisson)
    expect_equal(coef(many), coef(one), tolerance = 1e-12)
    expect_equal(vcov(many) * 5e5, vcov(one), tolerance = 1e-9)
    expect_equal(as.numeric(logLik(many)), 5e5 * as.numeric(logLik(one)), tolerance = 1e-12)
    expect_length(many$linear.predictors, 72)
    expect_output(print(many), "72 observations")
    peer <- glm(count ~ spray, poisson, InsectSprays, weights = rep(5e5, 72))
    expect_equal(BIC(many), BIC(peer), tolerance = 1e-12)
    classes <- cl_glm(factor(am) ~ qsec, mtcars, "categorical_logit",
                      weights = rep(5e8 + 0.5, 32))
    expect_identical(nobs(classes), 16e9 + 16)
    expect_output(print(classes), "observations")
  })
})

test_that("weights of all families scale their information", {
  quiet <- function(code) suppressWarnings(code, "statcl_warning_boundary")
  w <- 0.5 + 1:32 / 8
  each_engine(for (model in list(list(carb ~ wt, "neg_binomial_2_log"),
                                 list(factor(gear) ~ qsec, "categorical_logit"),
                                 list(factor(gear) ~ qsec, "ordered_logistic"))) {
    fit <- quiet(cl_glm(model[[1]], mtcars, model[[2]], weights = w))
    whole <- quiet(cl_glm(model[[1]], mtcars[rep(1:32, 8 * w), ], model[[2]]))
    expect_equal(coef(fit), coef(whole), tolerance = 1e-7)
    expect_equal(fit$aux, whole$aux, tolerance = 1e-6)
    expect_equal(vcov(fit), vcov(whole) * 8, tolerance = 1e-6)
    expect_equal(fit$logLik, whole$logLik / 8, tolerance = 1e-11)
    drawn <- cl_glm(model[[1]], mtcars, model[[2]], "map", weights = w)
    expect_true(drawn$converged)
  })
})

test_that("a matrix gives the same fit as a formula, on each engine", {
  x <- as.matrix(mtcars[c("wt", "hp")])
  wanted <- cl_glm(am ~ wt + hp, mtcars)
  each_engine({
    fit <- cl_glm(x, mtcars$am)
    expect_equal(coef(fit), coef(wanted), tolerance = 1e-10)
    # of large fits the information is that of the last step's start, up to 1e-8 errors away
    expect_equal(vcov(fit), vcov(wanted), tolerance = 1e-7)
    expect_equal(predict(fit, x[1:3, ], "response"), predict(wanted, mtcars[1:3, ], "response"),
                 tolerance = 1e-10)
    expect_equal(predict(fit, mtcars[3:1, ]), predict(wanted, mtcars[3:1, ]), tolerance = 1e-10)
    resident <- cl_glm(as_cl(cbind(one = 1, x)), mtcars$am, intercept = FALSE)
    expect_equal(unname(coef(resident)), unname(coef(wanted)), tolerance = 1e-10)
    expect_equal(unname(fitted(resident)), unname(fitted(wanted)), tolerance = 1e-10)
    expect_refused("newdata", predict(resident, se.fit = TRUE))
    expect_equal(predict(resident, cbind(one = 1, x), se.fit = TRUE)$se.fit,
                 predict(wanted, se.fit = TRUE)$se.fit, tolerance = 1e-7)
    expect_equal(coef(cl_glm(x[, 1], mtcars$am))[[2]], coef(cl_glm(am ~ wt, mtcars))[["wt"]])
  })
})

# ---- no maximum, no unique maximum ---------------------------------------------------------------

test_each_engine("columns that are linear combinations of others have no coefficient", {
  data <- transform(mtcars, twice = 2 * wt + 1, zero = 0)
  peer <- glm(am ~ wt + twice + zero + hp, binomial, data, control = list(epsilon = 1e-9))
  fit <- cl_glm(am ~ wt + twice + zero + hp, data)
  expect_equal(coef(fit), coef(peer), tolerance = 1e-7)
  expect_equal(vcov(fit), vcov(peer), tolerance = 1e-5)
  expect_equal(logLik(fit), logLik(peer), tolerance = 1e-9)
  expect_warning(predicted <- predict(fit, data, se.fit = TRUE), class = "statcl_warning_rank")
  expect_equal(predicted$se.fit, predict(cl_glm(am ~ wt + hp, data), se.fit = TRUE)$se.fit,
               tolerance = 1e-8)
  expect_identical(summary(fit)$aliased, is.na(coef(peer)))
  expect_output(print(summary(fit)), "2 not defined")
  ordered <- cl_glm(factor(gear) ~ wt + twice, data, "ordered_logistic")
  expect_identical(is.na(coef(ordered)), c(wt = FALSE, twice = TRUE))
  expect_identical(dim(vcov(ordered)), c(4L, 4L))
  several <- cl_glm(factor(gear) ~ qsec + I(-qsec), data, "categorical_logit")
  expect_identical(unname(is.na(coef(several))), rep(c(FALSE, FALSE, TRUE), 2))
  # nearly, but not quite
  data$near <- data$wt + 1e-6 * data$hp
  near <- cl_glm(am ~ wt + near, data)
  expect_equal(coef(near)[["near"]] * 1e-6, coef(cl_glm(am ~ wt + hp, data))[["hp"]],
               tolerance = 1e-6)
  # more columns than observations
  x <- outer(1:6, 1:9, function(i, j) cos(i * j))
  expect_identical(sum(is.na(coef(suppressWarnings(cl_glm(x, c(0, 1, 0, 0, 1, 1)))))), 4L)
})

test_each_engine("nearly collinear columns have correct standard errors", {
  year <- 1959:1997
  data <- data.frame(year, co2 = as.vector(tapply(co2, rep(year, each = 12), mean)))
  model <- co2 ~ year + I(year^2) + I(year^3)
  near <- transform(mtcars, wt2 = wt + 1e-6 * sin(1:32))
  # iterated further than glm() needs for convergence
  peer <- function(...) {
    suppressWarnings(vcov(glm(..., data = near, control = list(epsilon = 1e-14))))
  }
  # the gradient is rounding error here, which may exceed the tolerance
  fit <- suppressWarnings(cl_glm(model, data, "normal_id"))
  expect_equal(vcov(fit), vcov(lm(model, data)), tolerance = 1e-6)
  expect_equal(vcov(cl_glm(vs ~ wt + wt2, near)), peer(vs ~ wt + wt2, family = binomial),
               tolerance = 1e-6)
  expect_equal(vcov(cl_glm(carb ~ wt + wt2, near, "poisson_log")),
               peer(carb ~ wt + wt2, family = poisson), tolerance = 1e-6)
})

test_each_engine("separation is found and named", {
  data <- data.frame(x = c(1:4, 6:9), z = c(2, 7, 1, 8, 2, 8, 1, 8), y = rep(0:1, each = 4))
  warned <- expect_warning(fit <- cl_glm(y ~ x + z, data), class = "statcl_warning_separation")
  expect_match(conditionMessage(warned), "\\bx\\b")
  expect_false(fit$converged)
  expect_true(all(is.finite(coef(fit))))
  # one group of several only
  part <- data.frame(g = rep(c("a", "b", "c"), each = 8), y = c(rep(0:1, 8), rep(1, 8)))
  warned <- expect_warning(cl_glm(y ~ g, part), class = "statcl_warning_separation")
  expect_match(conditionMessage(warned), "infinity: gc;")
  expect_warning(cl_glm(rep(0, 5) ~ 1, family = "poisson_log"),
                 class = "statcl_warning_separation")
  expect_warning(cl_glm(rep(1, 5) ~ 1), class = "statcl_warning_separation")
  expect_warning(cl_glm(factor(x > 5) ~ x, data, "categorical_logit"),
                 class = "statcl_warning_separation")
  expect_warning(cl_glm(factor(c(1, 1, 2, 2, 3, 3)) ~ I(1:6), family = "ordered_logistic"),
                 class = "statcl_warning_separation")
  # with priors there is a mode although the likelihood has no maximum
  expect_warning(fit <- cl_glm(y ~ x + z, data, method = "map"), NA)
  expect_true(fit$converged)
  said <- capture_warnings(cl_glm(rep(0, 8) ~ 1, family = "neg_binomial_2_log"))
  expect_length(said, 1L)
})

test_each_engine("rare events are not mistaken for separation", {
  x <- rep(0:1, each = 50000)
  y <- numeric(1e5)
  y[c(1, 2, 50001, 50002, 50003)] <- 1
  expect_warning(fit <- cl_glm(y ~ x), NA)
  expect_equal(coef(fit), c(`(Intercept)` = qlogis(2 / 5e4),
                            x = qlogis(3 / 5e4) - qlogis(2 / 5e4)), tolerance = 1e-8)
  wide <- data.frame(g = rep(c("few", "many"), each = 1000), y = rep(c(0, 1e6), each = 1000))
  wide$y[7] <- 1
  expect_warning(fit <- cl_glm(y ~ g, wide, "poisson_log"), NA)
  expect_equal(coef(fit)[[1]], log(1e-3), tolerance = 1e-9)
})

test_on_host("a distant starting point is not mistaken for separation", {
  fit <- cl_glm(carb ~ wt, mtcars, "poisson_log")
  expect_equal(coef(expect_silent(update(fit, start = c(22, 0)))), coef(fit), tolerance = 1e-8)
  fit <- cl_glm(am ~ wt, mtcars)
  expect_equal(coef(expect_silent(update(fit, start = c(30, 0)))), coef(fit), tolerance = 1e-8)
  apart <- data.frame(y = rep(0:1, each = 5), x = 1:10)
  expect_warning(cl_glm(y ~ x, apart, start = c(-110, 20)),
                 class = "statcl_warning_separation")
})

test_each_engine("counts without overdispersion have no finite phi", {
  y <- c(3, 2, 4, 3, 3, 2, 4, 3, 3, 3)
  expect_warning(fit <- cl_glm(y ~ 1, family = "neg_binomial_2_log"),
                 class = "statcl_warning_boundary")
  expect_equal(coef(fit)[[1]], log(mean(y)), tolerance = 1e-8)
  expect_identical(fit$aux_error, NA_real_)
  expect_equal(sqrt(vcov(fit)[1]), 1 / sqrt(sum(y)), tolerance = 1e-5)
})

test_that("a search that stops early gives a warning", {
  expect_warning(fit <- on_host(cl_glm(am ~ wt, mtcars, control = list(maxit = 1))),
                 class = "statcl_warning_convergence")
  expect_false(fit$converged)
  expect_output(print(fit), "NOT converged")
})

test_that("fits of many rows have the deviances, means and names of glm()", {
  set.seed(12)
  n <- 12000
  x <- matrix(rnorm(9 * n), n)
  k <- rpois(n, exp(0.3 + x[, 1] / 4))
  b <- rbinom(n, 1, plogis(x[, 2] / 2))
  w <- rep(1:3, n / 3)
  expect_false(basis_is_cheap(x))
  exact <- list(epsilon = 1e-15)
  same <- function(fit, peer) {
    expect_equal(unname(coef(fit)), unname(coef(peer)), tolerance = 1e-11)
    expect_equal(c(deviance(fit), fit$null.deviance, AIC(fit)),
                 c(deviance(peer), peer$null.deviance, AIC(peer)), tolerance = 1e-12)
    expect_equal(unname(fitted(fit)), unname(fitted(peer)), tolerance = 1e-11)
    for (type in c("deviance", "pearson", "working")) {
      expect_equal(unname(residuals(fit, type)), unname(residuals(peer, type)), tolerance = 1e-9)
    }
    expect_equal(unname(vcov(fit)), unname(vcov(peer)), tolerance = 1e-8)
  }
  peers <- list(glm(k ~ x, poisson, control = exact), glm(k ~ x - 1, poisson, control = exact),
                glm(b ~ x, binomial, weights = w, control = exact),
                glm(b ~ x - 1, binomial, control = exact), glm(k ~ x))
  each_engine({
    fit <- cl_glm(x, k, "poisson_log")
    same(fit, peers[[1]])
    expect_named(coef(fit), c("(Intercept)", paste0("x", 1:9)))
    expect_identical(colnames(model.matrix(fit)), names(coef(fit)))
    same(cl_glm(x, k, "poisson_log", intercept = FALSE), peers[[2]])
    same(cl_glm(x, b, weights = w), peers[[3]])
    same(cl_glm(as_cl(x), b, intercept = FALSE), peers[[4]])
    fit <- cl_glm(x, k, "normal_id")
    expect_equal(coef(fit), coef(cl_glm(as_cl(x), k, "normal_id")), tolerance = 1e-13)
    expect_equal(unname(coef(fit)), unname(coef(peers[[5]])), tolerance = 1e-11)
    expect_equal(c(deviance(fit), fit$null.deviance),
                 c(deviance(peers[[5]]), peers[[5]]$null.deviance), tolerance = 1e-12)
    expect_equal(unname(fitted(fit)), unname(fitted(peers[[5]])), tolerance = 1e-12)
  })
})

test_that("fits of many rows on the host have the coefficients of lm() and glm()", {
  with_cl(engine = "host", for (n in c(30011, 16385)) {
    set.seed(n)
    p <- 7
    x <- cbind(1, matrix(rnorm(n * (p - 1)), n), 100 + runif(n))
    eta <- as.vector(x[, -(p + 1)] %*% seq(-0.4, 0.4, length.out = p))
    w <- runif(n, 0.5, 2)
    w[c(1, n)] <- 0
    o <- rnorm(n) / 4
    y <- eta + rnorm(n)
    given_sets <- list(list(), list(weights = w), list(offset = o), list(weights = w, offset = o))
    for (given in given_sets) {
      fit <- do.call(cl_glm, c(list(x, y, "normal_id", intercept = FALSE), given))
      peer <- do.call(glm.fit, c(list(x, y), given))
      expect_close(unname(coef(fit)), unname(peer$coefficients), 1e-10, scale = 1)
      expect_close(fit$linear.predictors, peer$linear.predictors, 1e-12, scale = 10)
      expect_close(deviance(fit), peer$deviance, 1e-12)
      expect_close(fit$null.deviance, sum((if (is.null(given$weights)) 1 else w) * (
        y - if (is.null(given$offset)) 0 else o)^2), 1e-12)
    }
    for (family in list(binomial(), poisson())) {
      counts <- if (family$family == "binomial") as.double(runif(n) < plogis(eta)) else
        rpois(n, exp(eta))
      for (given in list(list(), list(weights = w), list(offset = o))) {
        fit <- suppressWarnings(do.call(cl_glm, c(list(x, counts, family, intercept = FALSE),
                                                  given)))
        peer <- suppressWarnings(do.call(glm.fit, c(
          list(x, counts, family = family, control = list(epsilon = 1e-15)), given)))
        expect_close(unname(coef(fit)), unname(peer$coefficients), 1e-10, scale = 1)
        expect_true(fit$converged)
      }
    }
    whole <- matrix(c(rep(1L, n), sample(9L, 5 * n, TRUE)), n)
    expect_close(unname(coef(cl_glm(whole, y, "normal_id", intercept = FALSE))),
                 unname(lm.fit(whole, y)$coefficients), 1e-10, scale = 1)
    expect_close(unname(coef(cl_glm(cbind(x, x[, 2] + x[, 3]), y, "normal_id",
                                    intercept = FALSE))[1:8]),
                 unname(lm.fit(x, y)$coefficients), 1e-10, scale = 1)
  })
})
