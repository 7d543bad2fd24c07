# Families and links of R, next to glm() on its data sets.

exact <- list(epsilon = 1e-15, maxit = 200) # glm() to the last digit

both <- function(formula, family, data, ..., control = exact) {
  arguments <- list(formula, data = data, family = family, ...)
  rs <- suppressWarnings(do.call(glm, c(arguments, list(control = control)), quote = TRUE))
  list(ours = do.call(cl_glm, arguments, quote = TRUE), rs = rs)
}

# All numbers of a fit. `digits`: relative accuracy of what follows from the coefficients.
expect_like_glm <- function(formula, family, data, ..., digits = 1e-6) {
  fits <- both(formula, family, data, ...)
  a <- fits$ours
  b <- fits$rs
  same <- function(f, tolerance = digits) {
    expect_equal(f(a), suppressWarnings(f(b)), tolerance = tolerance,
                 label = deparse1(substitute(f)))
  }
  expect_true(a$converged)
  same(coef)
  same(vcov)
  same(deviance, 1e-8)
  same(function(fit) fit$null.deviance, 1e-8)
  same(df.residual)
  same(function(fit) fit$df.null)
  same(function(fit) summary(fit)$dispersion)
  same(function(fit) summary(fit)$df)
  same(function(fit) stats::na.omit(coef(summary(fit)))[, 1:4], 1e-5)
  same(nobs)
  same(function(fit) as.numeric(logLik(fit)), 1e-8) # rows of weight 0 count there for glm()
  same(function(fit) attr(logLik(fit), "df"))
  same(AIC, 1e-8)
  same(fitted)
  same(function(fit) weights(fit, "working"))
  expect_equal(unname(weights(a)), unname(weights(b)))
  for (type in c("deviance", "pearson", "working", "response")) {
    same(function(fit) residuals(fit, type))
  }
  for (type in c("link", "response")) {
    same(function(fit) predict(fit, type = type))
    same(function(fit) lapply(predict(fit, type = type, se.fit = TRUE), unname))
    new <- data[c(1, nrow(data)), , drop = FALSE]
    if (is.null(b$offset) && !anyNA(coef(a))) same(function(fit) predict(fit, new, type = type))
  }
  same(hatvalues, 1e-5)
  same(cooks.distance, 1e-5)
  same(rstandard, 1e-5)
  expect_identical(stats::family(a)$link, b$family$link)
  invisible(fits)
}

esoph_shares <- function() {
  transform(esoph, age = unclass(agegp), alc = unclass(alcgp), n = ncases + ncontrols,
            share = ncases / (ncases + ncontrols))
}
admissions <- function() {
  table <- as.data.frame(UCBAdmissions)
  reshape(table, direction = "wide", idvar = c("Gender", "Dept"), timevar = "Admit")
}

test_on_host("links of binomial families give the numbers of glm()", {
  shares <- esoph_shares()
  used <- subset(as.data.frame(Titanic), Freq > 0)
  for (link in c("probit", "cloglog", "cauchit")) {
    expect_like_glm(case ~ spontaneous + induced, binomial(link), infert)
    expect_like_glm(cbind(ncases, ncontrols) ~ age + alc, binomial(link), shares)
  }
  expect_like_glm(share ~ age + alc, binomial("probit"), shares, weights = shares$n)
  expect_like_glm(am ~ wt, binomial("probit"), transform(mtcars, am = am == 1))
  expect_like_glm(factor(am) ~ wt, binomial("probit"), mtcars)
  # a factor of more levels: the first is a failure
  expect_like_glm(tension ~ breaks, binomial(), warpbreaks)
  # glm() diverges from its own start
  expect_like_glm(Survived ~ Class + Sex, binomial("cauchit"), used, weights = used$Freq,
                  start = c(-0.4, -1, -2.4, -0.8, 2.9))
  for (link in c("log", "identity")) {
    expect_like_glm(cbind(Freq.Admitted, Freq.Rejected) ~ Gender, binomial(link), admissions())
  }
})

test_on_host("quasi-likelihoods give the numbers of glm()", {
  expect_like_glm(breaks ~ wool * tension, quasipoisson, warpbreaks)
  expect_like_glm(count ~ spray, quasipoisson("sqrt"), InsectSprays)
  expect_like_glm(cbind(ncases, ncontrols) ~ age + alc, "quasibinomial", esoph_shares())
  expect_like_glm(weight ~ Time * Diet, quasi(link = "log", variance = "mu^2"), ChickWeight)
  expect_like_glm(dist ~ speed, quasi(link = "identity", variance = "mu"), cars)
  expect_like_glm(I(Fertility / 100) ~ Education + Catholic, swiss,
                  family = quasi(link = "logit", variance = "mu(1-mu)"))
  expect_like_glm(Fertility ~ Education + Catholic, quasi(), swiss)
  expect_like_glm(I(len / 40) ~ supp * dose, quasibinomial("cloglog"), ToothGrowth)
})

test_on_host("families of positive and of other numbers give the numbers of glm()", {
  air <- na.omit(airquality)
  expect_like_glm(mpg ~ wt + hp, Gamma, mtcars)
  expect_like_glm(Ozone ~ Temp + Wind, Gamma("log"), air)
  expect_like_glm(len ~ dose + offset(dose / 10), Gamma("identity"), ToothGrowth)
  expect_like_glm(len ~ supp * dose, inverse.gaussian("log"), ToothGrowth)
  expect_like_glm(mpg ~ wt, inverse.gaussian, mtcars)
  expect_like_glm(stations ~ mag, poisson("identity"), quakes)
  expect_like_glm(stations ~ mag, poisson("sqrt"), quakes, offset = quakes$depth / 1e3)
  expect_like_glm(Ozone ~ Temp, gaussian("log"), air, start = c(0, 0.03))
  expect_like_glm(mpg ~ wt, gaussian("inverse"), mtcars)
  expect_like_glm(dist ~ speed, Gamma(power(1 / 2)), cars)
  # fractional weights, and a column that depends on others
  expect_like_glm(weight ~ Time + I(2 * Time) + Diet, Gamma("log"), ChickWeight,
                  weights = rep(c(0.5, 0, 2.25), length.out = nrow(ChickWeight)),
                  control = list(epsilon = 1e-11))
  # counts that are not whole
  expect_warning(
    expect_like_glm(count ~ spray, poisson, transform(InsectSprays, count = count / 2)),
    class = "statcl_warning_counts")
})

test_that("a negative binomial family with known theta gives the numbers of glm()", {
  skip_if_not_installed("MASS")
  on_host({
    expect_like_glm(Days ~ Eth + Sex + Age, MASS::negative.binomial(1.3), MASS::quine)
    expect_like_glm(breaks ~ tension, MASS::negative.binomial(5, "sqrt"), warpbreaks)
  })
})

test_each_engine("columns of very different scale and origin keep their digits", {
  data <- transform(na.omit(airquality), seconds = Temp * 3e7 + 1e11, tiny = Wind * 1e-9)
  plain <- glm(Ozone ~ Temp + Wind, Gamma("log"), data, control = exact)
  fit <- cl_glm(Ozone ~ seconds + tiny, data, Gamma("log"))
  expect_equal(coef(fit)[["seconds"]] * 3e7, coef(plain)[["Temp"]], tolerance = 1e-7)
  expect_equal(coef(fit)[["tiny"]] * 1e-9, coef(plain)[["Wind"]], tolerance = 1e-7)
  expect_equal(deviance(fit), deviance(plain), tolerance = 1e-12)
})

# More rows than a QR decomposition on the host is cheap for.
many_rows <- function() {
  set.seed(4)
  n <- 21000
  data <- data.frame(a = rnorm(n), b = runif(n), c = rexp(n), d = rnorm(n, 50))
  eta <- with(data, 0.3 * a - b + 0.2 * c)
  data$binary <- runif(n) < pnorm(eta)
  data$size <- rgamma(n, 3, 3 / exp(eta))
  data$mass <- round(rexp(n), 1)
  data
}

test_that("many rows go through the cross-product matrix, with the same numbers", {
  data <- many_rows()
  expect_same <- function(formula, family, data, ...) {
    fits <- both(formula, family, data, ..., control = list(epsilon = 1e-11))
    expect_equal(coef(fits$ours), coef(fits$rs), tolerance = 1e-6)
    expect_equal(vcov(fits$ours), suppressWarnings(vcov(fits$rs)), tolerance = 1e-5)
    expect_equal(deviance(fits$ours), deviance(fits$rs), tolerance = 1e-10)
    expect_true(fits$ours$converged)
  }
  on_host(expect_same(size ~ a + b + d + I(d + 1e-6 * a), Gamma("log"), data)) # nearly collinear
  each_engine({
    expect_same(binary ~ a + b + c + d, binomial("probit"), data)
    expect_same(size ~ a + b + c + d + I(a - b), Gamma("log"), data, weights = data$mass,
                offset = data$d / 100)
    expect_same(size ~ a + b + c + d, Gamma(power(1 / 3)), data) # a link unknown to the device
  })
})

test_on_device("links and variances on the device are those of the family objects", {
  eta <- c(-40, -3, -0.2, 1e-3, 0.5, 2, 30, 800)
  mu <- c(1e-6, 0.2, 0.5, 0.99)
  y <- c(0, 0.3, 1, 1)
  at <- as_cl(matrix(eta))
  found <- lapply(device_links, function(link) list(link$mean(at), link$slope(at)))
  found <- do.call(cl_eval, unlist(found, FALSE))
  for (name in names(device_links)) {
    peer <- make.link(name)
    right <- if (name == "1/mu^2") eta > 0 else TRUE
    expect_equal(as.vector(as.matrix(found[[paste0(name, 1)]]))[right], peer$linkinv(eta[right]),
                 tolerance = 1e-12, label = name)
    expect_equal(as.vector(as.matrix(found[[paste0(name, 2)]]))[right], peer$mu.eta(eta[right]),
                 tolerance = 1e-12, label = name)
  }
  families <- list(binomial(), poisson(), gaussian(), quasi(variance = "mu^2"), Gamma(),
                   inverse.gaussian())
  if (requireNamespace("MASS", quietly = TRUE)) {
    families <- c(families, list(MASS::negative.binomial(1.5)))
  }
  mean <- as_cl(matrix(mu))
  found <- do.call(cl_eval, unlist(lapply(families, function(family) {
    spread <- device_variance(family)
    at <- y + (family$family %in% c("inverse.gaussian", "quasi"))
    list(spread$variance(mean), spread$deviance(as_cl(matrix(at)), mean))
  }), FALSE))
  for (k in seq_along(families)) {
    family <- families[[k]]
    at <- y + (family$family %in% c("inverse.gaussian", "quasi"))
    expect_equal(as.vector(as.matrix(found[[2 * k - 1]])), family$variance(mu),
                 tolerance = 1e-12, label = family$family)
    expect_equal(as.vector(as.matrix(found[[2 * k]])), family$dev.resids(at, mu, rep(1, 4)),
                 tolerance = 1e-10, label = family$family)
  }
})

test_on_host("start, etastart and mustart are used", {
  fit <- cl_glm(mpg ~ wt, mtcars, Gamma)
  again <- cl_glm(mpg ~ wt, mtcars, Gamma, start = coef(fit))
  expect_lte(again$iterations, 1L)
  expect_lte(cl_glm(mpg ~ wt, mtcars, Gamma, mustart = fitted(fit))$iterations, 1L)
  expect_lte(cl_glm(mpg ~ wt, mtcars, Gamma, etastart = predict(fit))$iterations, 1L)
  expect_refused("mustart", cl_glm(cbind(1, mtcars$wt), mtcars$mpg, Gamma, mustart = 1:3))
})

test_that("sparse predictors give the numbers of dense ones", {
  skip_if_not_installed("Matrix")
  set.seed(8)
  sparse <- Matrix::rsparsematrix(600, 8, 0.1)
  colnames(sparse) <- letters[1:8]
  dense <- as.matrix(sparse)
  y <- rpois(600, exp(as.vector(sparse %*% (1:8 / 8)) - 0.3))
  weights <- rep(c(1, 0, 2), 200)
  on_host({
    for (family in list(poisson, gaussian, Gamma("log"), binomial("probit"))) {
      at <- if (is.function(family)) y else if (family$family == "Gamma") y + 1 else y > 0
      ours <- cl_glm(sparse, at, family, weights = weights, offset = y / 10)
      peer <- glm(at ~ dense, family, weights = weights, offset = y / 10,
                  control = list(epsilon = 1e-13))
      expect_equal(unname(coef(ours)), unname(coef(peer)), tolerance = 1e-6)
      expect_equal(unname(vcov(ours)), unname(suppressWarnings(vcov(peer))), tolerance = 1e-5)
      expect_equal(deviance(ours), deviance(peer), tolerance = 1e-9)
    }
    fit <- cl_glm(sparse, y, poisson)
    expect_s4_class(fit$x, "dgCMatrix")
    expect_equal(predict(fit, sparse[1:3, ], type = "response"), fitted(fit)[1:3],
                 ignore_attr = TRUE)
    # a column twice, and nearly twice
    expect_true(is.na(coef(cl_glm(cbind(sparse, sparse[, 1]), y, poisson))[[10]]))
    near <- cbind(sparse, z = sparse[, 1] + 1e-6 * y)
    expect_equal(unname(coef(cl_glm(near, y, poisson))),
                 unname(coef(glm(y ~ as.matrix(near), poisson, control = list(epsilon = 1e-13)))),
                 tolerance = 1e-6)
  })
})
