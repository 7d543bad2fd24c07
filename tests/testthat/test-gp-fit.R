# The search of cl_gp() for parameters.

skip_on_cran() # long; run by ./dev check

test_that("a fit is a maximum, the same on each engine", {
  fit <- on_host(cl_gp(accel ~ times, data = MASS::mcycle, method = "ml"))
  expect_true(fit$converged)
  expect_lt(max(abs(fit$gradient)), 1e-2)
  want <- plain_gp(fit$y, fit$x, fit$kernel, fit$noise, "estimate")
  expect_equal(fit$logLik, want$value, tolerance = 1e-11)
  expect_equal(fit$objective, fit$logLik, tolerance = 1e-12)
  expect_equal(fit$mean, want$mean, tolerance = 1e-9)
  expect_equal(unname(fit$residuals), fit$noise^2 * want$weights, tolerance = 1e-8)
  expect_equal(unname(predict(fit)), unname(fitted(fit)), tolerance = 1e-9)
  # from another start to the same optimum
  far <- on_host(cl_gp(accel ~ times, data = MASS::mcycle, starts = 1,
                       start = c(sd = 200, lengthscale = 30, noise = 5), method = "ml"))
  expect_equal(far$logLik, fit$logLik, tolerance = 1e-7)
  each_engine({
    again <- cl_gp(accel ~ times, data = MASS::mcycle, method = "ml")
    expect_equal(again$logLik, fit$logLik, tolerance = 1e-9)
    expect_equal(coef(again), coef(fit), tolerance = 1e-3)
  })
})

test_that("the fit does not depend on units", {
  d <- some_data(30, 1)
  fit <- on_host(cl_gp(d$x, d$y, method = "ml"))
  for (unit in c(1e-8, 1e4, 1e8)) {
    other <- on_host(cl_gp(d$x * unit + 5 * unit, d$y * 1e-6 + 3, method = "ml"))
    expect_equal(coef(other) / coef(fit) * c(1, 1, 1, 0),
                 c(sd = 1e-6, lengthscale = unit, noise = 1e-6, mean = 0), tolerance = 1e-3)
    expect_equal(other$logLik, fit$logLik + 30 * log(1e6), tolerance = 1e-7)
  }
  two <- some_data(30, 2)
  near <- on_host(cl_gp(two$x, two$y, mean = "linear", starts = 1, method = "ml"))
  far <- on_host(cl_gp(two$x %*% diag(c(1e-8, 1e8)), two$y * 1e8, mean = "linear", starts = 1,
                       method = "ml"))
  expect_equal(unname(predict(far, cbind(5e-9, 5e7))), unname(predict(near, cbind(0.5, 0.5))) * 1e8,
               tolerance = 1e-4)
  expect_equal(unname(coef(far)[5:7]), unname(coef(near)[5:7]) * 1e8 * c(1, 1e8, 1e-8),
               tolerance = 1e-3)
})

test_that("linear means and means given by a formula, profiled and integrated out", {
  d <- data.frame(mtcars, group = factor(mtcars$cyl))
  each_engine({
    for (beta in c("profile", "integrate")) {
      fit <- cl_gp(mpg ~ wt + hp, data = d, mean = "linear", starts = 1, beta = beta, method = "ml")
      h <- cbind(`(Intercept)` = 1, wt = d$wt, hp = d$hp)
      want <- plain_gp(fit$y, fit$x, fit$kernel, fit$noise, h)
      expect_equal(fit$logLik, if (beta == "profile") want$value else want$integrated,
                   tolerance = 1e-10)
      expect_equal(unname(coef(fit)[colnames(h)]), want$mean, tolerance = 1e-7)
      expect_equal(unname(vcov(fit)[colnames(h), colnames(h)]), unname(want$beta_cov),
                   tolerance = 1e-6)
      at <- d[4:9, ]
      expect_close(unname(predict(fit, at)),
                   unname(want$predict(as.matrix(at[c("wt", "hp")]), h_at = h[4:9, ])$mean), 1e-8)
    }
    fit <- cl_gp(mpg ~ wt, data = d, mean = ~ poly(hp, 2) + group, starts = 1, method = "ml")
    h <- model.matrix(~ poly(hp, 2) + group, d)
    want <- plain_gp(fit$y, fit$x, fit$kernel, fit$noise, h)
    expect_equal(fit$logLik, want$value, tolerance = 1e-10)
    expect_equal(unname(coef(fit)[colnames(h)]), want$mean, tolerance = 1e-7)
    # poly() of three rows is that of all rows
    got <- predict(fit, d[3:5, ], se.fit = TRUE)
    joint <- want$predict(as.matrix(d["wt"])[3:5, , drop = FALSE], h_at = h[3:5, ])
    expect_close(unname(got$fit), unname(joint$mean), 1e-8)
    expect_close(unname(got$se.fit), unname(sqrt(diag(joint$covariance))), 1e-7)
    expect_equal(unname(predict(fit)), unname(predict(fit, d)), tolerance = 1e-9)
  })
  x <- as.matrix(mtcars[c("wt", "hp")])
  on_host({
    by_matrix <- cl_gp(x, mtcars$mpg, mean = ~ wt + I(hp^2), starts = 1, method = "ml")
    by_formula <- cl_gp(mpg ~ wt + hp, data = mtcars, mean = ~ wt + I(hp^2), starts = 1,
                        method = "ml")
    expect_equal(by_matrix$logLik, by_formula$logLik)
    expect_equal(unname(predict(by_matrix, x[1:3, ])), unname(predict(by_formula, mtcars[1:3, ])))
    expect_refused("mean", cl_gp(x, mtcars$mpg, mean = ~drat), cl_gp(x, mtcars$mpg, mean = y ~ wt),
                   cl_gp(x, mtcars$mpg, mean = "cubic"),
                   cl_gp(x, mtcars$mpg, mean = ~ wt + I(2 * wt)),
                   cl_gp(x[1:2, ], mtcars$mpg[1:2], mean = "linear"))
  })
})

test_that("known variances and weights of the noise", {
  d <- some_data(30, 1)
  v <- seq(0.01, 0.1, length.out = 30)^2
  w <- rep(c(1, 4), 15)
  frame <- data.frame(x = d$x[, 1], y = d$y, v = v, w = w)
  each_engine({
    fit <- cl_gp(y ~ x, frame, variance = v, weights = w, starts = 1, method = "ml")
    want <- plain_gp(fit$y, fit$x, fit$kernel, fit$noise, "estimate", fit$noise^2 / w + v)
    expect_equal(fit$logLik, want$value, tolerance = 1e-10)
    expect_close(unname(residuals(fit)), (fit$noise^2 / w + v) * want$weights, 1e-8)
    expect_close(unname(predict(fit)), unname(fitted(fit)), 1e-8)
    known <- cl_gp(y ~ x, frame, variance = v, fixed = c(noise = 0), starts = 1, method = "ml")
    expect_equal(known$logLik,
                 plain_gp(known$y, known$x, known$kernel, 0, "estimate", v)$value,
                 tolerance = 1e-10)
  })
  expect_identical(unname(weights(fit)), w)
  # each observation twice: the same as once with half the variance, up to a constant
  held <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  twice <- on_host(cl_gp(c(d$x, d$x), c(d$y, d$y), fixed = held, method = "ml"))
  once <- on_host(cl_gp(d$x, d$y, weights = rep(2, 30), fixed = held, method = "ml"))
  expect_equal(unname(predict(twice, 0.3, se.fit = TRUE)$se.fit),
               unname(predict(once, 0.3, se.fit = TRUE)$se.fit), tolerance = 1e-9)
  expect_refused("weights", on_host(cl_gp(y ~ x, frame, weights = 0 * w)),
                 on_host(cl_gp(d$x, d$y, weights = 1)))
})

test_that("leave-one-out estimates maximise the leave-one-out density", {
  d <- some_data(25, 1)
  density <- function(par, mean = "estimate") {
    loo <- plain_gp(d$y, d$x, k_matern52(par[[1]], par[[2]]), par[[3]], mean)$loo
    sum(dnorm(d$y, loo$mean, sqrt(loo$variance), log = TRUE))
  }
  each_engine({
    fit <- cl_gp(d$x, d$y, method = "loo")
    expect_equal(fit$objective, density(fit$par), tolerance = 1e-9)
    expect_equal(fit$logLik, plain_gp(d$y, d$x, fit$kernel, fit$noise, "estimate")$value,
                 tolerance = 1e-10)
    for (by in c(0.98, 1.02)) for (k in setdiff(names(fit$par), fit$at_bound)) {
      expect_lt(density(replace(fit$par, k, fit$par[[k]] * by)), fit$objective + 1e-9)
    }
  })
  expect_output(print(fit), "leave-one-out log density")
  expect_warning(expect_true(all(is.na(vcov(fit)[1:3, 1:3]))), "leave-one-out")
})

test_that("a map estimate maximises likelihood and prior", {
  d <- some_data(25, 1)
  prior <- list(lengthscale = prior_inv_gamma(tails = c(0.2, 2)), sd = prior_normal(0, 1),
                noise = function(x) dexp(x, 10, log = TRUE))
  posterior <- function(par) {
    plain_gp(d$y, d$x, k_matern52(par[[1]], par[[2]]), par[[3]], "estimate")$value +
      log(2) + dnorm(par[[1]], log = TRUE) + as.vector(prior[[1]](par[[2]])) +
      dexp(par[[3]], 10, log = TRUE)
  }
  each_engine({
    fit <- cl_gp(d$x, d$y, method = "map", prior = prior)
    expect_true(fit$converged)
    expect_equal(fit$objective, posterior(fit$par), tolerance = 1e-9)
    for (by in c(0.98, 1.02)) for (k in names(fit$par)) {
      expect_lt(posterior(replace(fit$par, k, fit$par[[k]] * by)), fit$objective)
    }
  })
  # penalties for all others, and the curvature with them
  few <- on_host(cl_gp(d$x, d$y, method = "map", prior = prior["noise"]))
  expect_s3_class(few$prior$lengthscale, "cl_prior")
  expect_output(print(summary(few)), "Priors:.*lognormal.*exp[(].*a function")
  expect_true(all(diag(on_host(vcov(few))) > 0))
  on_host({
    expect_refused("prior", cl_gp(d$x, d$y, method = "ml", prior = prior),
                   cl_gp(d$x, d$y, method = "map", prior = list(foo = prior[[1]])),
                   cl_gp(d$x, d$y, method = "map", prior = list(sd = 1)),
                   cl_gp(d$x, d$y, method = "map", prior = list(sd = function(x) NA)))
  })
})

test_that("priors are densities, with their derivatives", {
  all <- list(prior_normal(1, 2), prior_normal(0, 3), prior_student_t(4, 1, 2),
              prior_lognormal(0.3, 0.7), prior_gamma(2.5, 1.5), prior_inv_gamma(3, 2))
  for (prior in all) {
    total <- integrate(function(x) exp(as.vector(prior(x))), 0, Inf, rel.tol = 1e-9)$value
    expect_equal(total, 1, tolerance = 1e-7)
    for (x in c(0.3, 2)) {
      slope <- (as.vector(prior(x + 1e-5)) - as.vector(prior(x - 1e-5))) / 2e-5
      expect_equal(attr(prior(x), "gradient"), slope, tolerance = 1e-7)
    }
  }
  tails <- prior_inv_gamma(tails = c(2, 10))
  mass <- function(a, b) integrate(function(x) exp(as.vector(tails(x))), a, b, rel.tol = 1e-9)$value
  expect_equal(mass(0, 2), 0.01, tolerance = 1e-6)
  expect_equal(mass(10, Inf), 0.01, tolerance = 1e-6)
  expect_output(print(tails), "inv_gamma\\(8.91924, 34.5805\\)")
  expect_refused("sd", prior_normal(sd = 0))
})

test_that("sampled parameters follow the posterior, and predictions average over them", {
  x <- seq(0, 1, length.out = 12)
  set.seed(5)
  y <- sin(4 * x) + rnorm(12, sd = 0.2)
  # one parameter, whose posterior can be integrated; the others held
  prior <- prior_gamma(3, 10)
  fit <- on_host(cl_gp(x, y, method = "mcmc", fixed = c(sd = 1, lengthscale = 0.4),
                       prior = list(noise = prior),
                       control = list(chains = 2, warmup = 200, iter = 1500, seed = 1)))
  log_posterior <- function(noise) {
    vapply(noise, function(s) {
      plain_gp(y, as.matrix(x), k_matern52(1, 0.4), s, "estimate")$integrated + as.vector(prior(s))
    }, 0)
  }
  top <- max(log_posterior(seq(0.05, 1, 0.01)))
  moment <- function(k) {
    integrate(function(s) s^k * exp(log_posterior(s) - top), 1e-3, 2, rel.tol = 1e-8)$value
  }
  mean <- moment(1) / moment(0)
  sd <- sqrt(moment(2) / moment(0) - mean^2)
  expect_equal(coef(fit)[["noise"]], mean, tolerance = 0.05)
  expect_equal(sqrt(vcov(fit)["noise", "noise"]), sd, tolerance = 0.1)
  expect_identical(confint(fit)["sd", 1], NA_real_)
  expect_output(print(summary(fit)), "Draws:")
  expect_true(fit$converged)

  each_engine({
    got <- predict(fit, 0.33, se.fit = TRUE, interval = "prediction", draws = 7)
    used <- gp_draws(fit, 7)
    expect_identical(nrow(used), 7L)
    parts <- lapply(1:7, function(i) {
      plain <- plain_gp(y, as.matrix(x), k_matern52(1, 0.4), used[i, "noise"], "estimate")
      p <- plain$predict(matrix(0.33))
      c(p$mean, p$covariance, used[i, "noise"])
    })
    m <- vapply(parts, `[`, 0, 1)
    v <- vapply(parts, `[`, 0, 2)
    expect_equal(got$fit[[1, "fit"]], mean(m), tolerance = 1e-9)
    expect_equal(got$se.fit[[1]], sqrt(mean(v) + mean((m - mean(m))^2)), tolerance = 1e-8)
    s <- sqrt(v + vapply(parts, `[`, 0, 3)^2)
    expect_equal(mean(pnorm((got$fit[[1, "lwr"]] - m) / s)), 0.025, tolerance = 1e-8)
    expect_equal(mean(pnorm((got$fit[[1, "upr"]] - m) / s)), 0.975, tolerance = 1e-8)
  })
  expect_identical(dim(on_host(simulate(fit, 3, seed = 1, newdata = c(0.1, 0.2)))), c(2L, 3L))
  expect_refused("control", on_host(cl_gp(x, y, method = "mcmc", control = list(foo = 1))))
})

test_on_host("fixed parameters, bounds and interpolation", {
  d <- some_data(20, 1)
  fit <- cl_gp(d$x, d$y, kernel = k_matern32(), fixed = c(noise = 0), starts = 1, method = "ml")
  expect_identical(fit$noise, 0)
  expect_identical(attr(logLik(fit), "df"), 3L)
  expect_close(unname(predict(fit, d$x)), d$y, 1e-9)
  expect_lt(max(predict(fit, d$x, se.fit = TRUE)$se.fit), 1e-5)
  expect_true(is.na(vcov(fit)["noise", "noise"]))
  bounded <- cl_gp(d$x, d$y, upper = c(lengthscale = 0.05), method = "ml")
  expect_identical(bounded$at_bound, "lengthscale")
  expect_equal(coef(bounded)[["lengthscale"]], 0.05)
  expect_output(print(bounded), "at a bound: lengthscale")
  known <- cl_gp(d$x, d$y, mean = 2, starts = 1, method = "ml")
  expect_identical(known$mean, 2)
  expect_named(coef(known), c("sd", "lengthscale", "noise"))
  # nothing to search: also for one observation, or a constant
  held <- c(sd = 1, lengthscale = 0.4, noise = 0.2)
  one <- cl_gp(0.5, 3, mean = 1, fixed = held, method = "ml")
  expect_equal(unname(fitted(one)), 1 + 2 / 1.04)
  expect_equal(one$logLik, dnorm(3, 1, sqrt(1.04), log = TRUE))
  expect_equal(attr(logLik(one), "df"), 0L)
  expect_equal(unname(predict(cl_gp(1:3, c(2, 2, 2), fixed = held, method = "ml"), 9)), 2)
})

test_that("steps with a matrix that is not positive definite are counted, and the search goes on", {
  x <- seq(0, 1, length.out = 40)
  expect_warning(fit <- on_host(cl_gp(x, sin(3 * x), kernel = k_exp_quad(), starts = 1,
                                      fixed = c(noise = 1e-9), start = c(lengthscale = 0.02),
                                      method = "ml")),
                 class = "statcl_warning_convergence")
  expect_gt(fit$not_pd, 0)
  expect_true(is.finite(fit$logLik))
  expect_warning(expect_output(print(summary(fit)), "not positive definite"), "no standard errors")
})

test_on_host("with many observations the search starts with a subset", {
  set.seed(2)
  x <- sort(runif(2100))
  y <- sin(20 * x) + rnorm(2100, sd = 0.3)
  fit <- cl_gp(x, y, kernel = k_exp_quad(), starts = 2, fixed = c(sd = 0.7, noise = 0.3),
               method = "ml")
  expect_true(fit$converged)
  expect_lt(abs(fit$gradient), 1e-2)
  expect_equal(coef(fit)[["lengthscale"]], 0.07, tolerance = 0.3)
  # a column of the mean that is constant in the subset
  rare <- replace(numeric(2100), c(1, 2100), 1)
  sizes <- function(h) {
    problem <- new_gp_problem(x, y, k_exp_quad(), ~rare, "profile", NULL, NULL, h)
    space <- gp_space(problem, NULL, NULL, NULL, NULL)
    unlist(lapply(search_levels(problem, space, NULL, "ml", search_reporter(FALSE)), `[[`, "n"))
  }
  expect_identical(sizes(cbind(1, rare = rare)), c(target = 2100L, middle = 2100L, rough = 2100L))
  expect_identical(sizes(cbind(1, rare = x)), c(target = 2100L, middle = 500L, rough = 250L))
})

test_on_host("with subsets few evaluations need all observations, and the optimum is the same", {
  set.seed(1)
  x <- matrix(runif(800))
  y <- sin(6 * x[, 1]) + rnorm(800, sd = 0.2)
  problem <- new_gp_problem(x, y, k_matern52(), "estimate", "profile", NULL, NULL, NULL)
  space <- gp_space(problem, NULL, NULL, NULL, NULL)
  levels <- search_levels(problem, space, NULL, "ml", search_reporter(FALSE))
  expect_identical(vapply(levels, `[[`, 0L, "n"), c(target = 800L, middle = 500L, rough = 250L))
  trials <- open_trials(levels$rough, space, NULL, "ml", NULL)
  best <- search_all(space, levels, 5L, list(), trials)
  expect_identical(best$convergence, 0L)
  expect_lt(levels$target$counts()$all, 30L)
  # all observations from the first step on
  whole <- levels[c("target", "target", "target")]
  names(whole) <- names(levels)
  trials <- open_trials(levels$target, space, NULL, "ml", NULL)
  expect_equal(search_all(space, whole, 1L, list(), trials)$objective, best$objective,
               tolerance = 1e-8)
  fit <- cl_gp(x, y, k_matern52(), method = "ml")
  # those of the subsets are counted too
  expect_gt(fit$evaluations, 200)
  expect_equal(fit$objective, levels$target$total(best$objective), tolerance = 1e-8)
})

test_that("an interrupted fit returns the best parameters so far", {
  d <- some_data(20, 1)
  calls <- 0
  stops_at <- 30
  prior <- function(x) {
    calls <<- calls + 1
    if (calls == stops_at) {
      signalCondition(structure(class = c("interrupt", "condition"),
                                list(message = "", call = NULL)))
    }
    structure(0, gradient = 0)
  }
  expect_warning(fit <- on_host(cl_gp(d$x, d$y, method = "map", prior = list(sd = prior))),
                 class = "statcl_warning_interrupted")
  expect_false(fit$converged)
  expect_identical(fit$message, "interrupted")
  expect_true(is.finite(fit$objective))
  expect_output(print(fit), "NOT converged: interrupted")
  expect_length(predict(fit, 0.5), 1L)
  calls <- 0
  stops_at <- 1
  expect_fault(on_host(cl_gp(d$x, d$y, method = "map", prior = list(sd = prior))), "interrupted")
})

test_that("a search that does not converge gives a warning", {
  d <- some_data(20, 1)
  expect_warning(fit <- on_host(cl_gp(d$x, d$y, starts = 1, control = list(iter.max = 1),
                                      method = "ml")),
                 class = "statcl_warning_convergence")
  expect_false(fit$converged)
})

test_that("without noise a search ends where the covariance matrix is singular, and says so", {
  set.seed(55)
  x <- matrix(runif(30), 15)
  cases <- list(list(x = x, y = x[, 1] + 2 * x[, 2]),
                list(x = x[, 1, drop = FALSE], y = sin(6 * x[, 1])))
  for (case in cases) {
    on_host({
      x <- case$x
      y <- case$y
      expect_warning(fit <- cl_gp(x, y, k_exp_quad(), fixed = c(noise = 0), method = "ml"),
                     "singular to rounding", class = "statcl_warning_convergence")
      expect_true(fit$converged)
      expect_output(print(fit), "ended where the covariance matrix becomes singular")
      expect_lt(max(abs(fitted(fit) - y)), 1e-5)
      near <- cl_gp(x, y, k_exp_quad(), fixed = c(noise = 1e-4 * sd(y)), method = "ml")
      expect_identical(near$message == edge_message, FALSE)
    })
  }
})

test_that("a search that ends where the matrix has no factor goes back to its best point", {
  original <- statcl:::search_all
  on.exit(utils::assignInNamespace("search_all", original, "statcl"))
  utils::assignInNamespace("search_all", function(...) {
    best <- original(...)
    best$par <- best$par + 3 # no point so far off could be used
    best$convergence <- 0L
    best
  }, "statcl")
  on_host({
    set.seed(55)
    x <- matrix(runif(15))
    y <- sin(6 * x[, 1])
    expect_warning(fit <- cl_gp(x, y, k_exp_quad(), fixed = c(noise = 0), method = "ml"),
                   "singular to rounding", class = "statcl_warning_convergence")
    expect_true(fit$converged)
    expect_lt(max(abs(fitted(fit) - y)), 1e-5)
  })
})

test_that("by default noise that is estimated is not mistaken for the process", {
  on_host({
    d <- attitude[1:16, ]
    robust <- cl_gp(rating ~ complaints + learning + raises, d)
    plain <- cl_gp(rating ~ complaints + learning + raises, d, method = "ml")
    expect_identical(robust$method, "map")
    expect_identical(update(robust, newdata = attitude[17:18, ])$method, "map")
    expect_lt(plain$noise, 0.3 * sd(d$rating))
    expect_gt(robust$noise, 0.5 * sd(d$rating))
    expect_equal(robust$objective - robust$logLik, prior_of_fit(robust)$value(robust$par)$value)
    expect_lt(robust$logLik, plain$logLik)
    # data without noise, and enough of them, are fitted without noise
    x <- matrix((outer(1:40, sqrt(c(2, 3))) %% 1), 40)
    smooth <- cl_gp(x, sin(4 * x[, 1]) + x[, 2]^2)
    expect_lt(smooth$noise, 2e-3)
    held <- c(noise = 0.1)
    expect_identical(cl_gp(1:9, sin(1:9), fixed = held, starts = 1)$method, "ml")
    expect_identical(cl_gp(1:9, sin(1:9), fixed = held, starts = 1,
                           prior = list(sd = prior_normal()))$method, "map")
  })
  for (f in list(prior_penalty(2), prior_log_cauchy(0.5, 0.3))) {
    slope <- (f(0.7 + 1e-5) - f(0.7 - 1e-5)) / 2e-5
    expect_equal(attr(f(0.7), "gradient"), as.vector(slope), tolerance = 1e-8)
  }
})

gp_states$list <- list()
