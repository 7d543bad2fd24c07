# Cross-validation against plain loops of fits.

ids <- rep_len(1:5, 32)
seats <- transform(mtcars, g = factor(cyl), w = rep_len(1:3, 32))

# Predictions and log scores by one(train, test), which gives list(mean, score).
by_loop <- function(ids, one) {
  found <- list(mean = numeric(length(ids)), score = numeric(length(ids)))
  for (i in unique(ids)) {
    now <- one(ids != i, ids == i)
    for (name in names(found)) found[[name]][ids == i] <- now[[name]]
  }
  found
}

expect_cv <- function(cv, expected, tol = 1e-6) {
  expect_close(cv$pointwise$predicted, as.vector(expected$mean), tol)
  expect_close(cv$pointwise$log_score, as.vector(expected$score), tol)
  expect_close(cv$estimates["elpd", ],
               c(sum(expected$score), sqrt(length(expected$score)) * sd(expected$score)), tol)
}

test_each_engine(
  "generalised linear models: as loops of glm() and lm(), with weights and offsets", {
  fit <- cl_glm(am ~ wt, seats)
  cv <- suppressWarnings(cl_cv(fit, ids))
  expect_cv(cv, by_loop(ids, function(train, test) {
    p <- predict(suppressWarnings(glm(am ~ wt, binomial, seats[train, ])), seats[test, ],
                 type = "response")
    list(mean = p, score = dbinom(seats$am[test], 1, p, log = TRUE))
  }), 1e-4) # one fold is nearly separated
  off <- (cv$pointwise$predicted - seats$am)^2
  # as boot::cv.glm() with its default cost
  expect_close(cv$estimates["rmse", 1L]^2, mean(off))
  expect_close(cv$estimates["rmse", 2L], sd(off) / sqrt(32) / 2 / sqrt(mean(off)))
  expect_close(cv$estimates["error", 1L], mean((cv$pointwise$predicted > 0.5) != seats$am))
  expect_close(cv$estimates["deviance", 1L], -2 * cv$estimates["elpd", 1L])

  cv <- cl_cv(cl_glm(mpg ~ poly(wt, 2) + offset(hp / 100), seats, "normal_id", weights = w), ids)
  expect_cv(cv, by_loop(ids, function(train, test) {
    some <- lm(mpg ~ wt + I(wt^2) + offset(hp / 100), seats[train, ], weights = w)
    mean <- predict(some, seats[test, ])
    list(mean = mean, score = dnorm(seats$mpg[test], mean, sigma(some) / sqrt(seats$w[test]),
                                    log = TRUE))
  }))
  expect_null(cv$pointwise$deviance)
  expect_identical(rownames(cv$pointwise), rownames(mtcars))
})

test_that("families of R, counts, trials, classes and second parts", {
  cv <- cl_cv(cl_glm(mpg ~ wt, seats, Gamma("log"), weights = w), ids)
  expect_cv(cv, by_loop(ids, function(train, test) {
    some <- glm(mpg ~ wt, Gamma("log"), seats[train, ], weights = w,
                control = list(epsilon = 1e-12))
    mean <- predict(some, seats[test, ], type = "response")
    phi <- summary(some)$dispersion / seats$w[test]
    list(mean = mean, score = dgamma(seats$mpg[test], 1 / phi, scale = mean * phi, log = TRUE))
  }))
  cv <- cl_cv(cl_glm(mpg ~ wt, seats, inverse.gaussian("log")), ids)
  draws <- function(y, mu, phi) sapply(seq_along(y), function(i) { # its density integrates to 1
    f <- function(y) exp(-(log(2 * pi * phi * y^3) + (y - mu[i])^2 / (mu[i]^2 * y * phi)) / 2)
    c(integrate(f, 0, mu[i])$value + integrate(f, mu[i], Inf)$value, log(f(y[i])))
  })
  expect_cv(cv, by_loop(ids, function(train, test) {
    some <- glm(mpg ~ wt, inverse.gaussian("log"), seats[train, ], control = list(epsilon = 1e-12))
    mean <- predict(some, seats[test, ], type = "response")
    density <- draws(seats$mpg[test], mean, summary(some)$dispersion)
    expect_close(density[1L, ], rep(1, sum(test)), 1e-5)
    list(mean = mean, score = density[2L, ])
  }))
  folds <- rep_len(1:4, nrow(esoph))
  for (family in list("binomial_logit", binomial())) {
    cv <- cl_cv(cl_glm(cbind(ncases, ncontrols) ~ unclass(agegp), esoph, family), folds)
    expect_cv(cv, by_loop(folds, function(train, test) {
      p <- predict(glm(cbind(ncases, ncontrols) ~ unclass(agegp), binomial, esoph[train, ]),
                   esoph[test, ], type = "response")
      list(mean = p, score = dbinom(esoph$ncases[test], (esoph$ncases + esoph$ncontrols)[test], p,
                                    log = TRUE))
    }))
  }
  for (family in c("categorical_logit", "ordered_logistic")) {
    fit <- suppressWarnings(cl_glm(g ~ mpg, seats, family))
    cv <- suppressWarnings(cl_cv(fit, ids))
    p <- matrix(0, 32, 3)
    for (i in 1:5) {
      some <- suppressWarnings(cl_glm(g ~ mpg, seats[ids != i, ], family))
      p[ids == i, ] <- predict(some, seats[ids == i, ], type = "response")
    }
    expect_close(unname(cv$probabilities), p, 1e-5)
    expect_close(cv$pointwise$log_score, log(p[cbind(1:32, as.integer(seats$g))]), 1e-4)
    expect_identical(as.character(cv$pointwise$predicted), levels(seats$g)[max.col(p)])
    expect_identical(names(as.data.frame(cv))[6:8], levels(seats$g))
  }
  folds <- match(InsectSprays$count, unique(InsectSprays$count)) # spreads the zeros
  folds <- ave(seq_len(72), folds, FUN = seq_along) %% 3
  fit <- cl_glm(count ~ spray | I(spray == "C"), InsectSprays, "zero_inflated_poisson")
  cv <- cl_cv(fit, folds)
  expect_cv(cv, by_loop(folds, function(train, test) {
    some <- cl_glm(count ~ spray | I(spray == "C"), InsectSprays[train, ], "zero_inflated_poisson")
    new <- InsectSprays[test, ]
    zero <- predict(some, new, type = "second")
    mu <- exp(predict(some, new))
    list(mean = predict(some, new, type = "response"),
         score = log(zero * (new$count == 0) + (1 - zero) * dpois(new$count, mu)))
  }))
  expect_warning(cl_cv(cl_glm(carb ~ wt, seats, quasipoisson()), ids), NA)
  expect_false("elpd" %in% rownames(cl_cv(cl_glm(carb ~ wt, seats, quasipoisson()), ids)$estimates))
})

test_that("random effects: known levels by their effects, new ones integrated over", {
  data <- transform(warpbreaks, block = rep(1:9, 6))
  fit <- suppressMessages(cl_glm(breaks ~ tension + (1 | block), data, "normal_id"))
  folds <- rep_len(1:4, 54)
  cv <- suppressMessages(cl_cv(fit, folds))
  expect_cv(cv, by_loop(folds, function(train, test) {
    some <- suppressMessages(cl_glm(breaks ~ tension + (1 | block), data[train, ], "normal_id"))
    mean <- predict(some, data[test, ])
    list(mean = mean, score = dnorm(data$breaks[test], mean, some$aux, log = TRUE))
  }), 1e-5)
  fit <- cl_glm(weight ~ Time + (1 | Chick), ChickWeight, "normal_id")
  folds <- as.integer(as.character(ChickWeight$Chick)) %% 5
  cv <- cl_cv(fit, folds)
  expect_cv(cv, by_loop(folds, function(train, test) {
    some <- cl_glm(weight ~ Time + (1 | Chick), ChickWeight[train, ], "normal_id")
    mean <- predict(some, ChickWeight[test, ], re.form = NA)
    list(mean = mean, score = dnorm(ChickWeight$weight[test], mean,
                                    sqrt(some$aux^2 + some$variances[[1]][1]), log = TRUE))
  }), 1e-5)
})

test_that("priors, Firth's penalty and sampling are kept; seeds reproduce results", {
  prior <- prior_normal(0, 1)
  cv <- cl_cv(cl_glm(am ~ wt, seats, method = "map", prior = prior), ids)
  expect_cv(cv, by_loop(ids, function(train, test) {
    p <- predict(cl_glm(am ~ wt, seats[train, ], method = "map", prior = prior), seats[test, ],
                 type = "response")
    list(mean = p, score = dbinom(seats$am[test], 1, p, log = TRUE))
  }))
  cv <- cl_cv(cl_glm(am ~ wt, seats, method = "firth"), ids)
  expect_cv(cv, by_loop(ids, function(train, test) {
    p <- predict(cl_glm(am ~ wt, seats[train, ], method = "firth"), seats[test, ],
                 type = "response")
    list(mean = p, score = dbinom(seats$am[test], 1, p, log = TRUE))
  }))
  fit <- cl_glm(am ~ wt, seats, method = "mcmc",
                control = list(chains = 2, warmup = 300, iter = 500, seed = 1))
  cv <- cl_cv(fit, 4, seed = 2)
  expect_identical(cl_cv(fit, 4, seed = 2)$pointwise, cv$pointwise)
  some <- cl_glm(am ~ wt, seats[cv$folds != 1, ], method = "mcmc",
                 control = list(chains = 2, warmup = 300, iter = 2000, seed = 7))
  held <- seats[cv$folds == 1, ]
  p <- plogis(as.matrix(some)[, 1:2] %*% rbind(1, held$wt))
  expect_close(cv$pointwise$log_score[cv$folds == 1],
               log(rowMeans(abs((held$am == 0) - t(p)))), 0.3)
  before <- {
    set.seed(3)
    cl_cv(cl_glm(am ~ hp, seats), 4)$folds
  }
  set.seed(3)
  expect_identical(cl_cv(cl_glm(am ~ hp, seats), 4)$folds, before)
  expect_true(all(table(before) == 8))
})

test_that("processes with their parameters kept: one inverse does what fits without folds do", {
  each_engine({
    for (mean in list("estimate", "linear", 20, ~ log(wt))) {
      fit <- cl_gp(mpg ~ wt + hp, seats, mean = mean, weights = w, starts = 1)
      cv <- cl_cv(fit, ids)
      one <- function(train, test) {
        some <- cl_gp(mpg ~ wt + hp, seats[train, ], mean = mean, weights = w, fixed = fit$par)
        p <- predict(some, seats[test, ], se.fit = TRUE)
        sd <- sqrt(p$se.fit^2 + fit$noise^2 / seats$w[test])
        list(mean = p$fit, score = dnorm(seats$mpg[test], p$fit, sd, log = TRUE))
      }
      expect_cv(cv, by_loop(ids, one))
      loo <- cl_cv(fit, "loo")
      expect_close(loo$estimates["elpd", 1L], summary(fit)$loo[["log_density"]], 1e-8)
      expect_close(loo$estimates["rmse", 1L], summary(fit)$loo[["rmse"]], 1e-8)
    }
  })
  fit <- suppressWarnings(cl_gp(mpg ~ wt, seats, method = "mcmc", kernel = k_exp_quad(),
                                control = list(chains = 2, iter = 40, seed = 1)))
  cv <- cl_cv(fit, ids)
  par <- gp_draws(fit, 50)
  density <- 0
  for (i in seq_len(nrow(par))) {
    some <- cl_gp(mpg ~ wt, seats[ids != 1, ], fixed = par[i, ], kernel = k_exp_quad(),
                  beta = "integrate")
    p <- predict(some, seats[ids == 1, ], se.fit = TRUE)
    density <- density + dnorm(seats$mpg[ids == 1], p$fit, sqrt(p$se.fit^2 + par[i, "noise"]^2))
  }
  expect_close(cv$pointwise$log_score[ids == 1], log(density / nrow(par)), 1e-6)
})

test_that("processes fitted again, by Vecchia's approximation, and of other families", {
  fit <- cl_gp(mpg ~ wt, seats, starts = 1)
  cv <- cl_cv(fit, ids, refit = TRUE)
  one <- function(train, test) {
    some <- cl_gp(mpg ~ wt, seats[train, ], starts = 1, start = fit$par, prior = fit$prior)
    p <- predict(some, seats[test, ], se.fit = TRUE)
    list(mean = p$fit, score = dnorm(seats$mpg[test], p$fit, sqrt(p$se.fit^2 + some$noise^2),
                                     log = TRUE))
  }
  expect_cv(cv, by_loop(ids, one), 1e-5)
  fit <- cl_gp(mpg ~ wt, seats, approx = "vecchia", neighbours = 25, starts = 1)
  some <- cl_gp(mpg ~ wt, seats[ids != 2, ], fixed = fit$par, approx = "vecchia", neighbours = 25)
  p <- predict(some, seats[ids == 2, ], se.fit = TRUE)
  cv <- cl_cv(fit, ids)
  expect_close(cv$pointwise$predicted[ids == 2], unname(p$fit), 1e-8)
  expect_close(cv$pointwise$sd[ids == 2], unname(sqrt(p$se.fit^2 + fit$noise^2)), 1e-8)
  families <- c(bernoulli_logit = "am", poisson_log = "carb", categorical_logit = "g",
                ordered_logistic = "g", student_t = "mpg",
                binomial_logit = "cbind(carb, 10 - carb)")
  for (family in names(families)) {
    formula <- reformulate("wt", str2lang(families[[family]]))
    fit <- cl_gp(formula, seats, k_exp_quad(), family = family, starts = 1, method = "map")
    cv <- cl_cv(fit, ids)
    some <- cl_gp(formula, seats[ids != 1, ], k_exp_quad(), family = family, fixed = fit$par)
    held <- seats[ids == 1, ]
    if (family == "bernoulli_logit") {
      p <- predict(some, held, type = "response")
      expect_close(cv$pointwise$log_score[ids == 1], dbinom(held$am, 1, p, log = TRUE), 1e-8)
    } else if (endsWith(families[[family]], "g") && family != "student_t") {
      p <- predict(some, held, type = "probability")
      expect_close(unname(cv$probabilities[ids == 1, ]), unname(p), 1e-8)
      expect_close(cv$pointwise$log_score[ids == 1],
                   log(p[cbind(seq_along(held$g), as.integer(held$g))]), 1e-8)
    } else {
      link <- predict(some, held, se.fit = TRUE)
      density <- function(f, i) switch(family,
        poisson_log = dpois(held$carb[i], exp(f)),
        binomial_logit = dbinom(held$carb[i], 10, plogis(f)),
        dt((held$mpg[i] - f) / some$aux[[1L]], some$aux[[2L]]) / some$aux[[1L]])
      value <- vapply(seq_len(nrow(held)), function(i) {
        integrate(function(z) density(link$fit[i] + z * link$se.fit[i], i) * dnorm(z), -8, 8,
                  rel.tol = 1e-10)$value
      }, 0)
      expect_close(exp(cv$pointwise$log_score[ids == 1]), value, 1e-6)
    }
  }
})

test_that("workers give the same results", {
  skip_on_os("windows")
  skip_on_cran()
  fit <- cl_glm(am ~ wt, seats, method = "map")
  alone <- cl_cv(fit, ids)
  expect_equal(cl_cv(fit, ids, workers = 2)$pointwise, alone$pointwise, tolerance = 1e-12)
  cluster <- parallel::makePSOCKcluster(2)
  on.exit(parallel::stopCluster(cluster))
  expect_equal(cl_cv(fit, ids, workers = cluster)$pointwise, alone$pointwise, tolerance = 1e-12)
  draws <- suppressWarnings(cl_glm(am ~ wt, seats, method = "mcmc",
                                   control = list(chains = 1, warmup = 100, iter = 100, seed = 1)))
  alone <- suppressWarnings(cl_cv(draws, ids, seed = 5))
  expect_equal(suppressWarnings(cl_cv(draws, ids, seed = 5, workers = cluster))$pointwise,
               alone$pointwise, tolerance = 1e-12)
  fit <- cl_gp(mpg ~ wt, seats, starts = 1)
  expect_equal(cl_cv(fit, ids, refit = TRUE, workers = cluster)$pointwise,
               cl_cv(fit, ids, refit = TRUE)$pointwise, tolerance = 1e-10)
  bad <- transform(seats, x = as.numeric(seq_len(32) == 3))
  expect_refused("folds", cl_cv(cl_glm(mpg ~ x, bad, "normal_id"), ids, workers = cluster))
})

test_that("folds that cannot be used are errors before or with the number of the fold", {
  fit <- cl_glm(mpg ~ g, seats, "normal_id")
  expect_refused("folds", cl_cv(fit, as.character(seats$g)))
  expect_error(cl_cv(fit, seats$cyl), "level \"4\" of 'g' is in fold 4 only")
  expect_refused("folds", cl_cv(fit, 1))
  expect_refused("starts", cl_cv(fit, starts = 3))
  bad <- transform(seats, x = as.numeric(seq_len(32) == 3))
  expect_error(cl_cv(cl_glm(mpg ~ x, bad, "normal_id"), ids), "without fold 3.*coefficient 'x'")
  # as many folds as the data had rows before some were dropped
  some <- transform(seats, wt = replace(wt, 4, NA))
  expect_identical(cl_cv(cl_glm(mpg ~ wt, some, "normal_id"), ids)$folds, ids[-4])
})

test_that("methods: tables by fold, plots, comparison", {
  a <- cl_cv(cl_glm(mpg ~ wt, seats, "normal_id"), ids)
  b <- cl_cv(cl_glm(mpg ~ hp, seats, "normal_id"), a)
  expect_identical(b$folds, ids)
  expect_output(print(a), "5-fold cross-validation of 32 observations")
  expect_output(print(cl_cv(cl_gp(mpg ~ wt, seats, starts = 1), "loo")), "parameters kept")
  s <- summary(a)
  expect_close(sum(s$by_fold$elpd), a$estimates["elpd", 1L])
  expect_close(s$by_fold$rmse[2], sqrt(mean((a$pointwise$predicted - seats$mpg)[ids == 2]^2)))
  expect_output(print(s), "Least expected")
  off <- b$pointwise$log_score - a$pointwise$log_score
  table <- cl_compare(weight = a, power = b)
  expect_identical(rownames(table), c("weight", "power"))
  expect_close(c(table$elpd_diff[2], table$se_diff[2]), c(sum(off), sqrt(32) * sd(off)))
  expect_identical(rownames(cl_compare(b, a)), c("mpg ~ wt", "mpg ~ hp"))
  expect_output(print(table), "elpd_diff")
  expect_warning(cl_compare(a, cl_cv(cl_glm(mpg ~ hp, seats, "normal_id"), 4, seed = 1)),
                 class = "statcl_warning_folds")
  expect_fault(cl_compare(a), "argument")
  expect_fault(cl_compare(a, cl_cv(cl_glm(hp ~ wt, seats, "normal_id"), a)), "argument")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_silent(plot(a))
  expect_silent(plot(a, "score", main = "scores"))
  expect_refused("type", plot(a, "other"))
  none <- transform(seats, w = replace(w, 5, 0))
  zero <- cl_cv(cl_glm(mpg ~ wt, none, "normal_id", weights = w), ids)
  expect_true(is.finite(zero$estimates["elpd", 1L]))
  expect_close(zero$estimates["rmse", 1L],
               sqrt(mean((zero$pointwise$predicted - seats$mpg)[-5]^2)))
})
