# Mixed models with fields: against Laplace's approximation by dense matrices, which is exact for
# normal responses, with covariance matrices of other formulas than the package's.

# The log likelihood for b = Z v + N c: v standard normal, c without a density; `mu`: the offset.
dense_likelihood <- function(y, mu, z, flat, family, sigma = 1, trials = 1) {
  a <- cbind(z, flat)
  u <- numeric(ncol(a))
  prior <- rep(c(1, 0), c(ncol(z), NCOL(flat) * !is.null(flat)))
  rows <- switch(family,
    normal_id = function(eta) list(value = sum(dnorm(y, eta, sigma, log = TRUE)),
                                   s = (y - eta) / sigma^2, w = rep(1 / sigma^2, length(y))),
    poisson_log = function(eta) list(value = sum(dpois(y, exp(eta), log = TRUE)), s = y - exp(eta),
                                     w = exp(eta)),
    binomial_logit = function(eta) list(value = sum(dbinom(y, trials, plogis(eta), log = TRUE)),
                                        s = y - trials * plogis(eta),
                                        w = trials * dlogis(eta)))
  at <- function(u) rows(mu + as.vector(a %*% u))
  value <- function(u) sum(prior * u^2) / 2 - at(u)$value
  for (i in 1:100) {
    now <- at(u)
    h <- crossprod(a, now$w * a) + diag(prior)
    step <- solve(h, crossprod(a, now$s) - prior * u)
    size <- 1
    while (value(u + size * step) > value(u) + 1e-9 && size > 1e-6) size <- size / 2
    u <- as.vector(u + size * step)
    if (max(abs(step)) < 1e-10) break
  }
  h <- crossprod(a, at(u)$w * a) + diag(prior)
  list(value = -value(u) - sum(log(diag(chol(h)))) + sum(prior == 0) * log(2 * pi) / 2,
       b = as.vector(a %*% u))
}

root_of <- function(v) {
  e <- eigen(v, symmetric = TRUE)
  k <- e$values > 1e-9 * max(e$values)
  e$vectors[, k, drop = FALSE] %*% diag(sqrt(e$values[k]), sum(k))
}

generalised <- function(q) {
  e <- eigen(q, symmetric = TRUE)
  k <- e$values > 1e-9 * max(e$values)
  e$vectors[, k] %*% (t(e$vectors[, k]) / e$values[k])
}

# Checks a fit: the likelihood at the estimates, that it has its maximum there, the standard errors
# of all parameters, and the effects. covariance(par): of the effects, without sd^2.
expect_dense <- function(fit, d, covariance, design, flat = NULL, labels = NULL) {
  field <- fit$fields[[1]]
  x <- model.matrix(fit)
  y <- fit$y
  trials <- if (is.null(fit$trials)) 1 else fit$trials
  normal <- fit$family == "normal_id"
  reml <- fit$method == "reml"
  p <- ncol(x) * !reml
  own <- seq_along(field$par)
  likelihood <- function(par, whole = FALSE) {
    v <- par[p + 1]^2 * covariance(par[p + own])
    more <- if (reml) cbind(flat, x) else flat
    found <- dense_likelihood(y, if (p > 0) as.vector(x %*% par[seq_len(p)]) else 0 * y,
                              design %*% root_of(v), more, fit$family,
                              if (normal) par[length(par)] else 1, trials)
    if (whole) found else found$value
  }
  par <- c(if (!reml) coef(fit), field$par, if (normal) fit$aux)
  expect_equal(likelihood(par), fit$logLik, tolerance = 1e-8)
  error <- c(if (!reml) sqrt(diag(vcov(fit))), statcl:::spread_errors(fit))
  step <- 1e-3 * error
  h <- sapply(seq_along(par), function(j) {
    slopes_of(likelihood, replace(par, j, par[j] + step[j]), step) -
      slopes_of(likelihood, replace(par, j, par[j] - step[j]), step)
  }) / rep(2 * step, each = length(par))
  v <- solve(-(h + t(h)) / 2)
  # the distance from the maximum, in standard errors
  expect_lt(max(abs(v %*% slopes_of(likelihood, par, step)) / error), 1e-4)
  if (normal && p > 0) { # given the variances
    expect_equal(vcov(fit), solve(-h[seq_len(p), seq_len(p)]), tolerance = 1e-4,
                 ignore_attr = TRUE)
    error[seq_len(p)] <- sqrt(diag(v))[seq_len(p)]
  }
  expect_equal(sqrt(diag(v)), unname(error), tolerance = 2e-4)
  fixed <- if (reml) 0 else as.vector(x %*% coef(fit))
  expect_equal(unname(fit$linear.predictors), fixed + likelihood(par, TRUE)$b, tolerance = 1e-5)
  # standard errors of linear predictors given the variance parameters, of normal models
  if (normal && is.null(flat)) {
    s <- tcrossprod(design %*% root_of(field$par[[1]]^2 * covariance(field$par)))
    all <- s + diag(fit$aux^2, nrow(s))
    left <- x - s %*% solve(all, x)
    wanted <- s - s %*% solve(all, s) + left %*% solve(crossprod(x, solve(all, x)), t(left))
    expect_equal(unname(predict(fit, se.fit = TRUE)$se.fit), sqrt(unname(diag(wanted))),
                 tolerance = 1e-6)
  }
}

centred <- function(v) {
  p <- diag(nrow(v)) - 1 / nrow(v)
  p %*% v %*% p
}
walk <- function(n) centred(outer(1:n, 1:n, pmin))
blocks <- function(v, copies) kronecker(diag(copies), v)
incidence <- function(at, n) diag(n)[at, , drop = FALSE]

set.seed(5)
series <- data.frame(t = c(1:24, 27:40), x = rnorm(38))
series$y <- 3 + series$x / 2 + cumsum(rnorm(38, 0, 0.6)) + rnorm(38)
series$n <- rpois(38, exp(0.5 + 0.3 * series$x + sin(series$t / 6)))
at <- incidence(series$t, 40)

test_that("random walks and their likelihoods, also restricted ones", {
  each_engine({
    fit <- cl_glmm(y ~ x + rw1(t), series)
    expect_dense(fit, series, function(par) walk(40), at)
  })
  on_host({
    expect_dense(cl_glmm(y ~ x + rw1(t), series, method = "reml"), series,
                 function(par) walk(40), at)
    expect_dense(cl_glmm(n ~ x + rw1(t), series, "poisson_log"), series,
                 function(par) walk(40), at)
    # the second differences of a centred field; a straight line has no density
    line <- scale(1:40)[, 1] / sqrt(39)
    second <- crossprod(diff(diag(40), differences = 2))
    for (family in c("normal_id", "poisson_log")) {
      fit <- cl_glmm(if (family == "normal_id") y ~ x + rw2(t) else n ~ x + rw2(t), series, family)
      expect_dense(fit, series, function(par) generalised(second), at, at %*% line)
    }
  })
})

test_that("a local level has the estimates of StructTS()", {
  level <- StructTS(Nile, "level")
  data <- data.frame(flow = as.numeric(Nile), year = 1871:1970)
  fit <- on_host(cl_glmm(flow ~ rw1(year, values = 1871:1980), data, method = "reml"))
  expect_equal(c(fit$fields[[1]]$par[[1]], fit$aux[[1]])^2, unname(level$coef), tolerance = 1e-4)
  smooth <- KalmanSmooth(Nile, level$model)
  expect_equal(unname(fitted(fit)), as.vector(tsSmooth(level)), tolerance = 1e-5)
  ahead <- predict(fit, data.frame(year = 1971:1980), se.fit = TRUE)
  theirs <- predict(level, 10)
  expect_equal(unname(ahead$fit), as.vector(theirs$pred), tolerance = 1e-5)
  expect_equal(unname(ahead$se.fit^2 + fit$aux^2), as.vector(theirs$se)^2, tolerance = 1e-4)
})

test_on_host("autoregressions and seasons, by group", {
  set.seed(8)
  d <- expand.grid(t = 1:15, g = c("a", "b", "c"))[rep(1:45, 2), ]
  d$y <- rep(c(1, 4, 2), each = 15) + as.vector(replicate(3, arima.sim(list(ar = 0.7), 15))) +
    rnorm(90, 0, 0.7)
  d$n <- rpois(90, exp(d$y / 3))
  d <- d[-c(3, 20), ]
  group <- incidence(d$t + 15 * (as.integer(d$g) - 1), 45)
  ar <- function(par) blocks(par[2]^abs(outer(1:15, 1:15, "-")), 3)
  expect_dense(cl_glmm(y ~ g + ar1(t, g), d), d, ar, group)
  expect_dense(cl_glmm(n ~ ar1(t, group = g), d, "poisson_log"), d, ar, group)
  expect_dense(cl_glmm(y ~ rw1(t, g), d), d, function(par) blocks(walk(15), 3), group)
  # sums of 4 values are normal; patterns of 4 with sum 0 have no density
  sums <- t(sapply(1:12, function(i) as.numeric(1:15 %in% (i + 0:3))))
  null <- qr.Q(qr(rbind(diag(3), -1)[rep(1:4, length.out = 15), ]))
  one <- d[d$g == "a", ]
  one$y <- one$y + c(1, 0, -2, 1)[(one$t - 1) %% 4 + 1]
  at <- incidence(one$t, 15)
  expect_dense(cl_glmm(y ~ seasonal(t, 4), one), one,
               function(par) generalised(crossprod(sums)), at, at %*% null)
})

# Areas of a lattice, and two apart.
lattice <- function() {
  id <- matrix(1:20, 4)
  w <- matrix(0, 22, 22, dimnames = rep(list(sprintf("area %d", 1:22)), 2))
  w[cbind(c(id[-1, ], id[, -1], 22), c(id[-4, ], id[, -5], 21))] <- 1
  w + t(w)
}
areas <- data.frame(area = rownames(lattice())[c(1:22, 3:22)], x = rnorm(42))
areas$y <- 1 + areas$x + rnorm(42, 0, 0.3) + sin(1:22 / 3)[c(1:22, 3:22)]
areas$n <- rbinom(42, 40, plogis(areas$y + rnorm(22)[c(1:22, 3:22)] - 1))

test_on_host("areas with their neighbours", {
  w <- lattice()
  at <- incidence(match(areas$area, rownames(w)), 22)
  laplacian <- diag(rowSums(w)) - w
  expect_dense(cl_glmm(y ~ x + car(area, w), areas), areas,
               function(par) generalised(laplacian), at)
  proper <- function(par) solve(diag(rowSums(w)) - par[2] * w)
  expect_dense(cl_glmm(y ~ x + car(area, w, "car"), areas), areas, proper, at)
  fit <- cl_glmm(cbind(n, 40 - n) ~ x + car(area, graph = w, type = "bym2"), areas,
                 "binomial_logit")
  parts <- rep(1:2, c(20, 2))
  inverse <- generalised(laplacian)
  size <- exp(tapply(log(diag(inverse)), parts, mean))[parts]
  expect_dense(fit, areas, function(par) {
    par[2] * inverse / sqrt(outer(size, size)) + (1 - par[2]) * diag(22)
  }, at)
  # the same graph as a list, and as a sparse matrix
  same <- lapply(1:22, function(i) unname(which(w[i, ] > 0)))
  names(same) <- rownames(w)
  expect_equal(cl_glmm(y ~ x + car(area, same), areas)$logLik,
               cl_glmm(y ~ x + car(area, w), areas)$logLik, tolerance = 1e-10)
  skip_if_not_installed("Matrix")
  sparse <- Matrix::Matrix(w, sparse = TRUE)
  expect_equal(cl_glmm(y ~ x + car(area, sparse), areas)$logLik,
               cl_glmm(y ~ x + car(area, w), areas)$logLik, tolerance = 1e-10)
})

test_on_host("a field on a mesh", {
  set.seed(2)
  id <- matrix(1:30, 6)
  loc <- cbind(as.vector(row(id)), as.vector(col(id))) + runif(60, -0.2, 0.2)
  tv <- rbind(cbind(c(id[-6, -5]), c(id[-1, -5]), c(id[-1, -1])),
              cbind(c(id[-6, -5]), c(id[-1, -1]), c(id[-6, -1])))
  mesh <- list(loc = loc, tv = tv)
  d <- data.frame(x = runif(40, 1.5, 5.5), y = runif(40, 1.5, 4.5))
  # points in triangles, one by one
  a <- matrix(0, 40, 30)
  for (i in 1:40) for (k in 1:40) {
    weight <- solve(rbind(t(loc[tv[k, ], ]), 1), c(d$x[i], d$y[i], 1))
    if (all(weight >= 0)) a[i, tv[k, ]] <- weight
  }
  mass <- numeric(30)
  stiff <- matrix(0, 30, 30)
  for (k in 1:40) {
    p <- loc[tv[k, ], ]
    # gradients of the three linear functions
    gradient <- solve(cbind(1, p))[2:3, ]
    area <- abs(det(cbind(1, p))) / 2
    mass[tv[k, ]] <- mass[tv[k, ]] + area / 3
    stiff[tv[k, ], tv[k, ]] <- stiff[tv[k, ], tv[k, ]] + area * crossprod(gradient)
  }
  d$z <- 2 + as.vector(a %*% sin(loc[, 1])) + rnorm(40, 0, 0.2)
  fit <- cl_glmm(z ~ spde(cbind(x, y), mesh), d)
  expect_dense(fit, d, function(par) {
    kappa <- sqrt(8) / par[2]
    k <- kappa^2 * diag(mass) + stiff
    solve(k %*% (k / mass)) * 4 * pi * kappa^2
  }, a)
  # at vertices the predictions are the effects
  vertex <- predict(fit, data.frame(x = loc[, 1], y = loc[, 2]), re.form = ~ spde(cbind(x, y),
                                                                                mesh))
  expect_equal(unname(vertex), coef(fit)[[1]] + unname(fit$fields[[1]]$effects),
               tolerance = 1e-8)
  w <- list(loc = cbind(loc, 0), graph = list(tv = tv)) # as of fmesher
  expect_equal(cl_glmm(z ~ spde(cbind(x, y), w), d)$logLik, fit$logLik, tolerance = 1e-10)
})

test_that("a field is on the plane what it should be: a Matern field away from the boundary", {
  m <- 41
  id <- matrix(seq_len(m^2), m)
  loc <- cbind(as.vector(row(id)), as.vector(col(id)))
  tv <- rbind(cbind(c(id[-m, -m]), c(id[-1, -m]), c(id[-1, -1])),
              cbind(c(id[-m, -m]), c(id[-1, -1]), c(id[-m, -1])))
  parts <- statcl:::mesh_matrices(list(loc = loc, tv = tv), stop)
  k <- matrix(0, m^2, m^2)
  kappa <- sqrt(8) / 8 # a range of 8
  k[cbind(parts$i, parts$j)] <- parts$stiff
  diag(k) <- diag(k) + kappa^2 * parts$mass
  middle <- id[21, 21]
  column <- solve(k, replace(numeric(m^2), middle, 1))
  v <- solve(k, parts$mass * column) * 4 * pi * kappa^2
  distance <- 1:10
  matern <- kappa * distance * besselK(kappa * distance, 1)
  expect_equal(v[id[21, 21 + distance]], matern, tolerance = 0.03)
})

test_on_host("random effects beside fields, and crossed or nested ones of many levels", {
  set.seed(4)
  d <- data.frame(t = rep(1:20, 6), g = factor(rep(1:6, each = 20)), x = rnorm(120))
  d$y <- rnorm(6)[d$g] + rnorm(6, 0, 0.5)[d$g] * d$x + sin(d$t / 3) + rnorm(120, 0, 0.5)
  fit <- cl_glmm(y ~ x + (x | g) + rw1(t), d)
  z <- cbind(diag(6)[d$g, ], diag(6)[d$g, ] * d$x)
  s <- fit$variances$g
  v <- z %*% kronecker(s, diag(6)) %*% t(z) +
    fit$fields[[1]]$par[[1]]^2 * walk(20)[d$t, d$t] + diag(fit$aux^2, 120)
  r <- chol(v)
  e <- d$y - model.matrix(fit) %*% coef(fit)
  expect_equal(fit$logLik, -sum(log(diag(r))) - 120 * log(2 * pi) / 2 -
                 sum(backsolve(r, e, transpose = TRUE)^2) / 2, tolerance = 1e-10)
  expect_equal(vcov(fit), solve(crossprod(backsolve(r, model.matrix(fit), transpose = TRUE))),
               tolerance = 1e-6, ignore_attr = TRUE)
  # conditional modes and variances
  gain <- kronecker(s, diag(6)) %*% t(z)
  b <- gain %*% solve(v, e)
  expect_equal(unname(as.vector(fit$random$g)), as.vector(b), tolerance = 1e-6)
  left <- kronecker(s, diag(6)) - gain %*% solve(v, t(gain))
  found <- statcl:::effect_covariances(fit)$g
  for (k in 1:6) expect_equal(found[, , k], left[c(k, k + 6), c(k, k + 6)], tolerance = 1e-5,
                              ignore_attr = TRUE)
  # a known group and a new one, at a known time
  one <- data.frame(x = 1, t = 3, g = c("2", "9"))
  new <- predict(fit, one, allow.new.levels = TRUE, se.fit = TRUE)
  expect_equal(new$fit[[1]] - new$fit[[2]], sum(fit$random$g["2", ]), tolerance = 1e-8)
  expect_gt(new$se.fit[[2]], sqrt(sum(s)))
  d$letter <- factor(letters[d$g])
  by <- cl_glmm(y ~ letter + rw1(t, letter), d)
  expect_equal(predict(by, data.frame(letter = "b", t = 3)), by$linear.predictors[d$t == 3 &
                 d$letter == "b"][1], ignore_attr = TRUE, tolerance = 1e-10)
  expect_error(predict(fit, one), class = "statcl_error_argument")
})

test_that("many nested levels give the result of blocks", {
  set.seed(11)
  n <- 6000
  d <- data.frame(a = rep(1:300, each = 20), b = rep(1:1500, each = 4), x = rnorm(n))
  d$y <- rpois(n, exp(0.2 * d$x + rnorm(300, 0, 0.5)[d$a] + rnorm(1500, 0, 0.4)[d$b]))
  d$a <- factor(d$a)
  d$b <- factor(d$b)
  fit <- on_host(cl_glmm(y ~ x + (1 | a) + (1 | b), d, "poisson_log"))
  expect_null(fit$internal)
  work <- statcl:::mixed_work(fit)
  both <- list(on_host(statcl:::finish_mixed(work, statcl:::fit_fields(work))), fit)
  for (part in c("coefficients", "vcov", "logLik", "variances", "theta", "fitted.values")) {
    expect_equal(both[[1]][[part]], both[[2]][[part]], tolerance = 1e-5, info = part)
  }
  expect_equal(both[[1]]$random[names(both[[2]]$random)], both[[2]]$random, tolerance = 1e-5)
  expect_equal(both[[1]]$df, both[[2]]$df)
})

test_on_host("methods", {
  fit <- cl_glmm(n ~ x + rw1(t), series, "poisson_log")
  expect_output(print(summary(fit)), "increment.*rw1\\(t\\) 40.*z value")
  expect_output(print(cl_glm(y ~ ar1(t), series, "normal_id")), "rho of ar1\\(t\\): 0\\.")
  expect_equal(nrow(fit$random[["rw1(t)"]]), 40L)
  table <- anova(cl_glmm(n ~ rw1(t), series, "poisson_log"), fit)
  expect_equal(table$npar, c(2, 3))
  expect_equal(update(fit, . ~ . - x)$logLik, table$logLik[1], tolerance = 1e-8)
  flat <- predict(fit, re.form = NA)
  expect_equal(flat, as.vector(model.matrix(fit) %*% coef(fit)), ignore_attr = TRUE)
  expect_equal(predict(fit, series), fit$linear.predictors, tolerance = 1e-10,
               ignore_attr = TRUE)
  # profiles: the likelihood is that far below the maximum
  ends <- confint(fit, c("x", "sd_increment|rw1(t)"), method = "profile")
  for (v in ends[1, ]) {
    less <- cl_glmm(n ~ 1 + offset(x * v) + rw1(t), series, "poisson_log")
    expect_equal(2 * (fit$logLik - less$logLik), qchisq(0.95, 1), tolerance = 1e-4)
  }
  expect_gt(fit$fields[[1]]$par, ends[2, 1])
  expect_lt(fit$fields[[1]]$par, ends[2, 2])
  drawn <- simulate(fit, 400, seed = 1)
  expect_equal(dim(drawn), c(38L, 400L))
  # the mean over fields of the mean
  sd <- fit$fields[[1]]$par[[1]]
  wanted <- exp(flat + sd^2 * diag(walk(40))[series$t] / 2)
  expect_lt(max(abs(rowMeans(drawn) / wanted - 1)), 0.6)
  # an index with operators of formulas
  back <- cl_glmm(y ~ x + rw1(41 - t), series)
  expect_equal(back$logLik, cl_glmm(y ~ x + rw1(t), series)$logLik, tolerance = 1e-6)
  expect_equal(unname(predict(back, series[1:3, ])), unname(fitted(back)[1:3]), tolerance = 1e-8)
  # a random walk without noise
  steps <- data.frame(t = 1:30, y = cumsum(sin(1:30 / 3)))
  expect_message(all <- cl_glmm(y ~ rw1(t), steps, method = "reml"), "singular")
  expect_true(all$converged)
  expect_equal(all$fields[[1]]$par[[1]], sqrt(mean(diff(steps$y)^2)), tolerance = 1e-4)
  expect_equal(nrow(drop1(cl_glmm(y ~ x + rw1(t), series))), 2L)
  skip_if_not_installed("generics")
  expect_equal(generics::tidy(fit)$term, c("(Intercept)", "x", "sd__increment"))
})

test_on_host("errors", {
  fails <- function(formula, text, data = series, argument = "formula", ...) {
    e <- expect_fault(cl_glmm(formula, data, ...), "argument", argument = argument)
    expect_match(conditionMessage(e), text)
  }
  fails(y ~ rw1(), "needs the argument 'index'")
  fails(y ~ rw1(t, knots = 3), "has the arguments index, group")
  fails(y ~ rw1(x), "factor or whole numbers")
  fails(y ~ rw1(t / 4), "factor or whole numbers")
  fails(y ~ rw1(t * 1e6), "too many numbers from 1e\\+06 to 4e\\+07")
  fails(y ~ x + offset(letters[t %% 5 + 1]) + rw1(t), "numeric", argument = "offset")
  fails(y ~ rw2(t) + rw2(t, t > 20), "which other terms have too")
  fails(y ~ seasonal(t), "needs the argument 'period'")
  fails(y ~ seasonal(t, 1.5), "'period' must be a whole number")
  fails(y ~ t + rw2(t), "which other terms have too")
  fails(y ~ rw1(t, values = 1:30), "is not among its values")
  fails(y ~ rw1(t), "not by \"map\"", argument = "method", method = "map")
  fails(exp(y) ~ rw1(t), "does not support", argument = "family", family = Gamma("log"))
  fails(y ~ x * rw1(t), "can only be added")
  series$t[2] <- NA
  expect_equal(cl_glmm(y ~ rw1(t), series)$nobs, 37)
  fails(y ~ rw1(t), "missing values", series, na.action = na.pass)
  w <- lattice()
  one <- replace(w, 2, 0)
  fails(y ~ car(area, one), "not symmetric", areas)
  alone <- replace(w, cbind(c(21, 22), c(22, 21)), 0)
  fails(y ~ car(area, alone), "has no neighbours", areas)
  few <- w[1:20, 1:20]
  fails(y ~ car(area, few), "\"area 21\" is not in the graph", areas)
  fails(y ~ car(area, w[, 1:3]), "square", areas)
  fails(y ~ car(area, -w), "from 0 on", areas)
  fails(y ~ car(area, diag(22)), "neighbour of itself", areas)
  fails(y ~ car(area, "w"), "matrix or a list", areas)
  fails(y ~ car(area, list()), "no areas", areas)
  fails(y ~ car(area, list(2, 3)), "from 1 to 2", areas)
  fails(y ~ car(area, w, "besag"), "'type'", areas, argument = "type")
  square <- list(loc = cbind(c(0, 1, 0, 1), c(0, 0, 1, 1)), tv = rbind(1:3, 2:4))
  d <- data.frame(u = c(0.2, 0.5, 0.9), v = c(0.3, 0.6, 1.2), y = 1:3)
  fails(y ~ spde(cbind(u, v), square), "\\(0.9, 1.2\\) is outside of the mesh", d)
  bad <- replace(square, "tv", list(rbind(1:3, c(2, 4, 5))))
  fails(y ~ spde(cbind(u, v), bad), "from 1 to 4", d)
  flat <- replace(square, "tv", list(rbind(1:3, c(2, 4, 4))))
  fails(y ~ spde(cbind(u, v), flat), "triangle 2 of 'mesh' has no area", d)
  fails(y ~ spde(u, square), "two columns", d)
  fails(y ~ spde(cbind(0 * u, 0 * v), square), "all points are the same", d)
  fails(y ~ spde(cbind(u, v), 3), "'mesh' must be a list", d)
  fit <- cl_glmm(y ~ rw2(t), na.omit(series))
  expect_error(simulate(fit), "cannot be drawn", class = "statcl_error_argument")
  expect_error(predict(fit, data.frame(t = 50)), "is not among its values",
               class = "statcl_error_argument")
  expect_error(predict(fit, data.frame(t = NA)), "'t' has missing values",
               class = "statcl_error_argument")
})

test_that("searches begin with steps that fit effects of many levels", {
  set.seed(1)
  d <- data.frame(a = factor(sample(3000, 9000, TRUE)), b = factor(sample(100, 9000, TRUE)),
                  x = rnorm(9000))
  d$y <- rbinom(9000, 1, plogis(0.3 + 0.5 * d$x + rnorm(3000, 0, 0.7)[d$a] +
                                  rnorm(100, 0, 0.5)[d$b]))
  fit <- cl_glmm(y ~ x + (1 | a) + (1 | b), d, "bernoulli_logit")
  expect_lt(fit$iterations, 15) # 24 without these steps
  expect_true(fit$converged)
})
