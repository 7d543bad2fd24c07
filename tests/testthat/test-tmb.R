# cl_tmb(): objectives in RTMB's syntax, compared with lm(), glm() and closed forms. bench/rtmb.R
# compares gradients with RTMB's.

fitted_by <- function(obj) nlminb(obj$par, obj$fn, obj$gr, control = list(rel.tol = 1e-14))

cars_nll <- function(parms) {
  getAll(mtcars, parms, warn = FALSE)
  mpg <- OBS(mpg)
  sd <- exp(logsd)
  fit <- a + b * wt
  nll <- -sum(dnorm(mpg, fit, sd, log = TRUE))
  REPORT(fit)
  ADREPORT(sd)
  ADREPORT(a + b * 2:3)
  nll
}

# y ~ N(mu + u[group], s^2), u ~ N(0, t^2): the marginal likelihood is known
group <- rep(1:5, each = 4)
group_y <- c(1, 3, 2, 2, 5, 4, 6, 5, 2, 1, 1, 3, 7, 8, 6, 7, 3, 4, 4, 2)
group_nll <- function(parms) {
  getAll(parms)
  u %~% dnorm(0, exp(logtau))
  group_y %~% dnorm(mu + u[group], exp(logsd))
}
group_start <- list(mu = 0, u = numeric(5), logtau = 0, logsd = 0)
group_exact <- function(x) {
  v <- exp(2 * x[2]) * outer(group, group, "==") + diag(exp(2 * x[3]), 20)
  r <- group_y - x[1]
  0.5 * (20 * log(2 * pi) + c(determinant(v)$modulus) + sum(r * solve(v, r)))
}

test_that("a regression has the estimates and standard errors of lm()", {
  obj <- cl_tmb(cars_nll, list(a = 20, b = 0, logsd = 1))
  expect_identical(obj$par, c(a = 20, b = 0, logsd = 1))
  opt <- fitted_by(obj)
  fit <- lm(mpg ~ wt, mtcars)
  s <- sqrt(mean(residuals(fit)^2))
  expect_equal(unname(opt$par), c(unname(coef(fit)), log(s)), tolerance = 1e-6)
  expect_equal(opt$objective, -as.numeric(logLik(fit)), tolerance = 1e-12)
  v <- vcov(fit) * 30 / 32
  expect_equal(unname(vcov(obj)[1:2, 1:2]), unname(v), tolerance = 1e-5)
  sdr <- cl_sdreport(obj)
  expect_equal(sdr$value, c(sd = s, `a + b * 2:3` = sum(coef(fit) * c(1, 2)),
                            `a + b * 2:3` = sum(coef(fit) * c(1, 3))), tolerance = 1e-6)
  x <- cbind(1, 2:3)
  expect_equal(sdr$sd, c(s / sqrt(64), sqrt(diag(x %*% v %*% t(x)))), tolerance = 1e-5)
  expect_equal(obj$report()$fit, unname(fitted(fit)), tolerance = 1e-6)
  expect_equal(obj$report(c(1, 2, 0))$fit, 1 + 2 * mtcars$wt)
  table <- summary(obj)
  expect_identical(colnames(table), c("Estimate", "Std. Error"))
  expect_identical(rownames(table)[1:4], c("a", "b", "logsd", "sd"))
  expect_identical(nrow(summary(sdr, "report")), 3L)
  bfgs <- optim(obj$par, obj$fn, obj$gr, method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(bfgs$par, opt$par, tolerance = 1e-4)
  expect_output(print(obj), "lowest value so far")
  expect_output(print(sdr), "reported:")
  expect_equal(obj$gr(c(30, -4, 1)), matrix(slopes_of(obj$fn, c(30, -4, 1)), 1),
               tolerance = 1e-7)
})

test_that("Poisson and logistic regressions agree with glm()", {
  d <- data.frame(y = c(2, 0, 3, 1, 4, 6, 2, 5), x = 1:8 / 4, w = c(1, 2, 1, 3, 2, 2, 1, 1))
  x <- cbind(1, d$x)
  obj <- cl_tmb(function(p) {
    eta <- drop(x %*% p$beta) + log(d$w)
    -sum(dpois(d$y, exp(eta), TRUE))
  }, list(beta = c(0, 0)))
  expect_identical(names(obj$par), c("beta", "beta"))
  opt <- fitted_by(obj)
  fit <- glm(y ~ x + offset(log(w)), poisson, d)
  expect_equal(unname(opt$par), unname(coef(fit)), tolerance = 1e-6)
  expect_equal(unname(vcov(obj)), unname(vcov(fit)), tolerance = 1e-4)
  logistic <- cl_tmb(function(p) {
    -sum(dbinom_robust(mtcars$am, 1, p$a + p$b * mtcars$wt, log = TRUE))
  }, list(a = 0, b = 0))
  fit <- glm(am ~ wt, binomial, mtcars)
  opt <- fitted_by(logistic)
  expect_equal(unname(opt$par), unname(coef(fit)), tolerance = 1e-5)
  expect_equal(opt$objective, -as.numeric(logLik(fit)), tolerance = 1e-10)
})

test_that("map fixes and shares elements", {
  nll <- function(p) sum((p$a - 1:4)^2) + (p$b - p$a[1])^2
  start <- list(a = c(1, 5, 3, 9), b = 2)
  obj <- cl_tmb(nll, start, map = list(a = factor(c(NA, 1, 2, 1)), b = factor(NA)))
  expect_identical(obj$par, c(a = 7, a = 3))
  expect_equal(obj$fn(c(4, 5)), 0 + 4 + 4 + 0 + 1)
  expect_equal(obj$gr(c(4, 5)), matrix(c(4, 4), 1))
  expect_equal(obj$he(c(4, 5)), diag(c(4, 2)))
  m <- cl_tmb(function(p) sum((p$m - diag(2))^2), list(m = matrix(0, 2, 2)),
              map = list(m = factor(c(1, 2, 2, 3))))
  expect_equal(m$gr(c(1, 2, 3)), matrix(c(0, 8, 4), 1))
  vector <- cl_tmb(function(x) 100 * (x[2] - x[1]^2)^2 + (1 - x[1])^2, c(-1.2, 1))
  expect_equal(unname(nlminb(vector$par, vector$fn, vector$gr, vector$he)$par), c(1, 1),
               tolerance = 1e-6)
})

test_that("Laplace's approximation is exact for normal random effects", {
  obj <- cl_tmb(group_nll, group_start, random = "u", silent = TRUE)
  expect_identical(names(obj$par), c("mu", "logtau", "logsd"))
  for (x in list(c(1, 0.2, 0.3), c(4, -1, 1))) {
    expect_equal(obj$fn(x), group_exact(x), tolerance = 1e-10)
    expect_equal(c(obj$gr(x)), slopes_of(group_exact, x), tolerance = 1e-7)
  }
  opt <- fitted_by(obj)
  best <- optim(opt$par, group_exact, method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(unname(opt$par), unname(best$par), tolerance = 1e-4)
  sdr <- cl_sdreport(obj)
  expect_equal(unname(sdr$cov.fixed), unname(solve(optimHess(opt$par, group_exact))),
               tolerance = 1e-4)
  expect_identical(names(sdr$par.random), rep("u", 5))
  # the linear mixed model's predictors
  t2 <- exp(2 * opt$par[["logtau"]])
  shrink <- 4 * t2 / (4 * t2 + exp(2 * opt$par[["logsd"]]))
  expect_equal(unname(sdr$par.random),
               unname(shrink * (tapply(group_y, group, mean) - opt$par[["mu"]])),
               ignore_attr = TRUE, tolerance = 1e-6)
  expect_output(print(obj), "random effects: u\\[5\\]")
  expect_equal(obj$he(opt$par), unname(optimHess(opt$par, group_exact)), tolerance = 1e-4)
})

test_that("the gradient of Laplace's approximation is that of its values", {
  id <- rep(1:6, each = 3)
  counts <- c(0, 1, 0, 3, 2, 5, 1, 1, 2, 8, 6, 9, 0, 0, 1, 2, 4, 3)
  obj <- cl_tmb(function(p) {
    getAll(p)
    eta <- b + exp(logs) * u[id]
    ADREPORT(exp(eta[1:2]))
    -sum(dnorm(u, log = TRUE)) - sum(dpois(counts, exp(eta), log = TRUE))
  }, list(b = 0, u = numeric(6), logs = 0), random = "u")
  for (x in list(c(0, 0), c(0.7, -0.4), c(-1, 0.8))) {
    expect_equal(c(obj$gr(x)), slopes_of(obj$fn, x), tolerance = 1e-6)
  }
  expect_identical(fitted_by(obj)$convergence, 0L)
  expect_true(all(is.finite(cl_sdreport(obj)$sd)))
})

test_that("RTMB's own densities and helpers are supported", {
  x <- c(0.3, -1, 0.5, 2)
  value <- function(nll, p = list(a = 0.4)) {
    obj <- cl_tmb(nll, p)
    expect_equal(c(obj$gr()), slopes_of(obj$fn, obj$par), tolerance = 1e-6)
    obj$fn()
  }
  correlation <- toeplitz(0.4^(0:3))
  exact <- 0.5 * sum(x * solve(correlation, x)) + 0.5 * log(det(correlation)) + 2 * log(2 * pi)
  expect_equal(value(function(p) -dautoreg(x, phi = p$a, log = TRUE)), exact)
  expect_equal(value(function(p) -dmvnorm(x, 0, p$a^abs(outer(1:4, 1:4, "-")), log = TRUE)), exact)
  expect_equal(value(function(p) -dautoreg(2 * x + 1, 1, phi = p$a, log = TRUE, scale = 2)),
               exact + 4 * log(2))
  phi <- c(0.5, 0.2)
  rho <- c(1, 0.5 / 0.8, 0.5 * 0.5 / 0.8 + 0.2)
  rho[4] <- 0.5 * rho[3] + 0.2 * rho[2]
  exact <- 0.5 * sum(x * solve(toeplitz(rho), x)) + 0.5 * log(det(toeplitz(rho))) + 2 * log(2 * pi)
  expect_equal(value(function(p) -dautoreg(x, phi = p$phi, log = TRUE), list(phi = phi)), exact)
  expect_equal(value(function(p) -sum(dnbinom2(0:3, p$a + 1, p$a + 3, log = TRUE))),
               -sum(dnbinom(0:3, mu = 1.4, size = 1.4^2 / 2, log = TRUE)))
  expect_equal(value(function(p) logspace_add(p$a, 1) + logspace_sub(2, p$a)),
               log(exp(0.4) + exp(1)) + log(exp(2) - exp(0.4)))
  overloaded <- function(p) {
    "[<-" <- ADoverload("[<-")
    "c" <- ADoverload("c")
    "diag<-" <- ADoverload("diag<-")
    m <- AD(matrix(0, 2, 2))
    m[1, 2] <- p$a
    diag(m) <- c(p$a, 1)
    sum(m^2)
  }
  expect_equal(value(overloaded), 2 * 0.16 + 1)
  # As text: the package does not depend on RTMB, which R CMD check would conclude from the code.
  helper <- eval(str2lang('function(p) {
    "~" <- RTMB::"%~%"
    x ~ dnorm(p$a, 1)
    "not the value"
  }'))
  expect_equal(value(helper), -sum(dnorm(x, 0.4, 1, log = TRUE)))
})

test_that("cl_sample() accepts the joint density", {
  obj <- cl_tmb(group_nll, group_start, random = "u")
  answer <- do.call(obj$log_density, obj$start)
  joint <- cl_tmb(group_nll, group_start)
  expect_equal(c(answer), -joint$fn(), ignore_attr = TRUE)
  expect_equal(unname(unlist(attr(answer, "gradient"))), -c(joint$gr()))
  skip_quick <- nzchar(Sys.getenv("STATCL_TEST_QUICK"))
  fit <- cl_sample(obj$log_density, obj$start, chains = 1, warmup = 100,
                   iter = if (skip_quick) 50 else 200, seed = 1)
  expect_s3_class(fit, "cl_sample")
})

test_that("parameters under RTMB's names, in their form", {
  group <- rep(1:3, 4)
  seen <- sin(1:12)
  start <- list(mu = c(a = 0, b = 7), u = matrix(0, 3, 1), s = c(0.5, 0.5))
  obj <- cl_tmb(function(p) {
    getAll(p)
    twice <- outer(exp(s), 1:2)
    ADREPORT(twice)
    ADREPORT(mu[1])
    -sum(dnorm(seen, mu[1] + u[group, 1], exp(s[1]), log = TRUE)) -
      sum(dnorm(u, 0, exp(s[2]), log = TRUE))
  }, start, map = list(mu = factor(c(1, NA)), s = factor(c(1, 1))), random = "u")
  expect_identical(obj$env$parList(), start)
  best <- nlminb(obj$par, obj$fn, obj$gr)$par
  obj$fn(best + 1)
  z <- obj$env$last.par.best
  expect_identical(names(z), c("mu", "u", "u", "u", "s"))
  expect_equal(z[names(z) != "u"], best)
  expect_equal(obj$env$last.par[["mu"]], best[["mu"]] + 1)
  expect_equal(obj$env$parList(par = z), list(mu = c(a = z[[1]], b = 7), u = matrix(z[2:4]),
                                              s = unname(z[c(5, 5)])))
  expect_equal(obj$env$parList(best)$mu[["a"]], best[["mu"]])
  sdr <- cl_sdreport(obj)
  expect_equal(as.list(sdr, "Est"), obj$env$parList(par = z))
  se <- as.list(sdr, "Std")
  expect_identical(se$mu[["b"]], NA_real_)
  expect_equal(se$mu[["a"]], summary(sdr, "fixed")[1, 2])
  expect_equal(c(se$u), unname(summary(sdr, "random")[, 2]))
  expect_equal(dim(se$u), c(3L, 1L))
  expect_equal(as.list(sdr, report = TRUE), list(twice = unname(outer(exp(z[c(5, 5)]), 1:2)),
                                                 `mu[1]` = z[[1]]))
  expect_refused("x", obj$env$parList(1))
})

test_that("bad input is reported", {
  start <- list(a = 1)
  expect_refused("nll", cl_tmb(function(p) if (p$a > 0) p$a else 1, start))
  expect_refused("random",
                 cl_tmb(function(p) prod(p$u) + p$a, list(a = 1, u = numeric(4001)), random = "u"))
  flat <- cl_tmb(function(p) p$a * 1, start)
  expect_warning(sdr <- cl_sdreport(flat), class = "statcl_warning_hessian")
  expect_false(sdr$pdHess)
})

test_that("parameters that are profiled out are at the mode, without being integrated out", {
  set.seed(4)
  g <- rep(1:8, each = 5)
  x <- cbind(1, stats::rnorm(40))
  y <- stats::rpois(40, exp(as.vector(x %*% c(0.5, 0.3)) + stats::rnorm(8, 0, 0.6)[g]))
  z <- diag(8)[g, ]
  nll <- function(p) {
    -sum(dnorm(p$u, 0, exp(p$s), log = TRUE)) -
      sum(dpois(y, exp(as.vector(x %*% p$b) + p$u[g]), log = TRUE))
  }
  blocks <- function(p) nll(p) + sum(diag(chol(exp(outer(p$u, p$u) / 9) / 1e3 + diag(8)))) * 1e-9
  by_hand <- function(s) { # Laplace's approximation of u, at the mode of both
    par <- numeric(10)
    for (i in 1:50) {
      mu <- exp(as.vector(x %*% par[1:2]) + par[-(1:2)][g])
      slope <- c(crossprod(x, mu - y), crossprod(z, mu - y) + par[-(1:2)] / exp(2 * s))
      h <- crossprod(cbind(x, z), mu * cbind(x, z)) + diag(rep(c(0, exp(-2 * s)), c(2, 8)))
      par <- par - solve(h, slope)
    }
    u <- par[-(1:2)]
    -sum(dnorm(u, 0, exp(s), log = TRUE)) - sum(dpois(y, mu, log = TRUE)) +
      as.numeric(determinant(h[-(1:2), -(1:2)])$modulus) / 2 - 4 * log(2 * pi)
  }
  start <- list(b = numeric(2), s = 0, u = numeric(8))
  for (f in list(nll, blocks)) {
    obj <- cl_tmb(f, start, random = "u", profile = "b")
    expect_identical(is.null(statcl:::tmb_sparse(environment(obj$fn)$o)), identical(f, blocks))
    expect_identical(names(obj$par), "s")
    for (s in c(0.2, -0.7)) {
      expect_equal(obj$fn(s), by_hand(s), tolerance = 1e-9)
      expect_equal(c(obj$gr(s)), (by_hand(s + 1e-4) - by_hand(s - 1e-4)) / 2e-4, tolerance = 1e-6)
    }
  }
  expect_output(print(obj), "profiled: b\\[2\\]")
  expect_identical(names(simulate(cl_tmb(function(p) nll(p) * 1, start, random = "u",
                                         profile = "b"), seed = 1)), "u")
  expect_refused("profile", cl_tmb(nll, start, profile = "c"))
})
