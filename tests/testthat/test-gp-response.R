# Gaussian processes with other families of observations, against references written here.

response_f <- function(cases, family, mean = 0.3, beta = "profile", weights = NULL, offset = NULL) {
  response <- gp_response(family, cases$y[[family]], weights, offset)
  guess <- response_guess(response)[, 1L]
  problem <- new_gp_problem(cases$x, guess, cases$kernel, mean, beta, NULL, NULL, NULL)
  problem$response <- response
  make_gp_response(problem)
}

# Log densities in the words of base R, n numbers; `f`: n x C for classes.
plain_density <- function(family, y, f, own) {
  row <- function(p) log(p[cbind(seq_len(nrow(p)), as.integer(y))])
  switch(family,
    bernoulli_logit = stats::dbinom(y, 1, stats::plogis(f), log = TRUE),
    binomial_logit = stats::dbinom(y[, 1L], rowSums(y), stats::plogis(f), log = TRUE),
    poisson_log = stats::dpois(y, exp(f), log = TRUE),
    neg_binomial_2_log = stats::dnbinom(y, own, mu = exp(f), log = TRUE),
    student_t = stats::dt((y - f) / own[1L], own[2L], log = TRUE) - log(own[1L]),
    ordered_logistic = {
      ends <- c(-Inf, 0, cumsum(own), Inf)
      log(stats::plogis(ends[as.integer(y) + 1L] - f) - stats::plogis(ends[as.integer(y)] - f))
    },
    categorical_logit = row(exp(f) / rowSums(exp(f))))
}

# Laplace's approximation by dense matrices and differences of the density (Rasmussen and Williams,
# 2006, equation 3.32), from the mode that is to be checked. `v`: what replaces the second
# derivatives in the determinant.
plain_laplace <- function(density, k, f, centre, v = NULL) {
  n <- length(f)
  h <- 1e-4
  at <- function(i, by) density(replace(f, i, f[i] + by))
  slope <- vapply(seq_len(n), function(i) (at(i, h) - at(i, -h)) / (2 * h), 0)
  w <- matrix(0, n, n)
  for (i in seq_len(n)) for (j in seq_len(i)) {
    both <- function(a, b) {
      g <- f
      g[i] <- g[i] + a * h
      g[j] <- g[j] + b * h
      density(g)
    }
    w[i, j] <- w[j, i] <- -(both(1, 1) - both(1, -1) - both(-1, 1) + both(-1, -1)) / (4 * h^2)
  }
  g <- f - centre
  if (!is.null(v)) w <- diag(v, n)
  list(stationary = max(abs(k %*% slope - g)),
       value = density(f) - sum(g * solve(k, g)) / 2 -
         as.numeric(determinant(diag(n) + k %*% w)$modulus) / 2)
}

f_contrasts <- function(f) environment(f)$response$contrasts

test_that("value and mode are those of the definition, for each family", {
  cases <- response_cases(15L)
  cases$kernel <- k_matern32(1.3, 0.4) # well conditioned: the reference solves with it
  k <- on_host(cl_cov(cases$x, kernel = cases$kernel))
  each_engine(for (family in names(cases$y)) {
    own <- cases$own[[family]]
    y <- cases$y[[family]]
    f <- response_f(cases, family)
    par <- c(coef(cases$kernel), own)
    value <- f(par, FALSE)
    mode <- environment(f)$at(par)
    classes <- family == "categorical_logit"
    # all three classes have a process here; what they have in common has prior mean 0
    common <- function(v) if (classes) as.vector(tcrossprod(v, f_contrasts(f))) else as.vector(v)
    density <- function(v) {
      sum(plain_density(family, y, if (classes) matrix(v, ncol = 3L) else v, own))
    }
    # the normal density with the height of Student's t
    height <- if (family == "student_t") stats::dt(0, own[["df"]]) / own[["scale"]]
    plain <- plain_laplace(density, kronecker(diag(if (classes) 3L else 1L), k), common(mode$f),
                           common(0 * mode$f + 0.3), if (!is.null(height)) 2 * pi * height^2)
    expect_lt(plain$stationary, 1e-6)
    expect_equal(as.numeric(value), plain$value, tolerance = 1e-5, info = family)
  })
})

test_that("gradients are those of the value, for each family and mean", {
  cases <- response_cases(full_or_quick(31L, 13L))
  n <- nrow(cases$x)
  check <- function(family, mean, beta) {
    weights <- if (beta == "integrate") rep_len(1:2, n)
    offset <- if (family == "poisson_log") cases$x[, 1L]
    f <- response_f(cases, family, mean, beta, weights, offset)
    par <- c(coef(cases$kernel), cases$own[[family]])
    value <- f(par)
    expect_identical(names(attr(value, "gradient")), names(par))
    rough <- slopes_of(function(par) f(par, FALSE), par, 2e-3 * par)
    expect_lt(max(abs(attr(value, "gradient") - rough) / (1 + abs(rough))), 1e-5)
  }
  each_engine(for (family in names(cases$y)) {
    check(family, 0.3, "profile")
    check(family, "linear", "profile")
    check(family, "constant", "integrate")
  })
})

test_each_engine("Student's t with very many degrees of freedom is the normal process", {
  cases <- response_cases(19L)
  cases$y$student_t <- sin(4 * cases$x[, 1L])
  par <- c(coef(cases$kernel), scale = 0.3, df = 1e8)
  for (beta in c("profile", "integrate")) {
    f <- response_f(cases, "student_t", "linear", beta)
    g <- cl_gp_likelihood(cases$y$student_t, cases$x, cases$kernel, "linear", beta)
    normal <- g(stats::setNames(par[1:6], c(names(coef(cases$kernel)), "noise")))
    value <- f(par)
    expect_equal(as.numeric(value), as.numeric(normal), tolerance = 1e-6)
    expect_equal(unname(attr(value, "gradient")[1:6]), unname(attr(normal, "gradient")),
                 tolerance = 1e-5)
    new <- rbind(c(0.2, 0.3), c(2, 1))
    at <- response_condition(f, par)$predict(new, "covariance",
                                             mean_basis(environment(f)$problem$mean, cbind(1, new)))
    exact <- gp_condition(g, unname(par[1:6]))$predict(new, "covariance")
    expect_equal(at$mean, exact$mean, tolerance = 1e-6)
    expect_equal(at$covariance, exact$covariance, tolerance = 1e-6)
  }
})

test_each_engine("fits with outliers end, where a mode of Student's t vanishes nearby", {
  n <- 40L
  set.seed(n)
  d <- data.frame(a = stats::runif(n), b = stats::runif(n))
  d$y <- 2 * sin(5 * d$a) + d$b + 0.1 * stats::rt(n, 3) + 3 * (seq_len(n) %% 10L == 5L)
  for (ard in c(TRUE, FALSE)) {
    fits <- list(
      cl_gp(stack.loss ~ ., datasets::stackloss, family = "student_t", ard = ard, starts = 1),
      cl_gp(y ~ a + b, d, k_exp_quad(), family = "student_t", ard = ard, starts = 1))
    expect_identical(family(fits[[1L]])$linkinv(3), 3)
    for (fit in fits) {
      expect_true(fit$converged)
      inside <- setdiff(names(fit$gradient), fit$at_bound)
      expect_lt(max(abs(fit$gradient[inside])), 0.01)
      expect_identical(fit$not_pd, 0L)
    }
    away <- abs(fitted(fits[[2L]]) - d$y)
    expect_lt(max(away[-seq(5, n, by = 10)]), 1.5)
    expect_gt(min(away[seq(5, n, by = 10)]), 2)
  }
})

test_that("Student's t: likelihood and predictions are near those of draws", {
  x <- cbind(a = c(0, 0.05, 0.1, 0.15, 0.2, 0.6, 0.8, 1))
  y <- c(0.1, -0.1, 8, 0, 0.1, 1, 1.2, 0.9)
  kernel <- k_matern52(3, 0.3)
  own <- c(scale = 0.2, df = 2)
  set.seed(1)
  k <- on_host(cl_cov(x, kernel = kernel))
  count <- full_or_quick(40000L, 8000L)
  f <- y * 0
  centre <- c(0.05, -0.04, -0.05, 0, 0.1, 1, 1.2, 0.9)
  drawn <- spread <- matrix(0, count, length(y))
  share <- numeric(count)
  for (i in seq_len(count)) { # given the weights of a scale mixture, observations are normal
    noise <- 0.04 / stats::rgamma(length(y), 1.5, (2 + ((y - f) / 0.2)^2) / 2)
    m <- solve(k + diag(noise))
    left <- k - k %*% m %*% k
    drawn[i, ] <- k %*% (m %*% y)
    spread[i, ] <- diag(left)
    f <- drawn[i, ] + as.vector(crossprod(chol(left + diag(1e-8, 8)), stats::rnorm(8)))
    share[i] <- sum(stats::dnorm(y, centre, sqrt(noise), log = TRUE)) + 4 * log(2 * pi) +
      (sum(y * (m %*% y)) - as.numeric(determinant(m)$modulus)) / 2
  }
  mean <- colMeans(drawn)
  sd <- sqrt(colMeans(spread + sweep(drawn, 2L, mean)^2))
  # Bayes' rule at `centre`, whose posterior density is an average of normal ones
  exact <- sum(stats::dt((y - centre) / 0.2, 2, log = TRUE) - log(0.2)) -
    max(share) - log(base::mean(exp(share - max(share))))
  each_engine({
    fit <- cl_gp(x, y, kernel, family = "student_t", mean = 0, fixed = c(coef(kernel), own))
    expect_lt(abs(as.numeric(logLik(fit)) - exact), 1.5)
    at <- predict(fit, se.fit = TRUE)
    expect_lt(max(abs(at$fit - mean) / sd), 0.2)
    expect_lt(max(abs(log(at$se.fit / sd))), 0.75)
  })
})

test_that("the mode of classes is kernlab's, and probabilities are integrals", {
  skip_if_not_installed("kernlab")
  set.seed(4)
  x <- matrix(stats::runif(40), 20)
  y <- factor(ifelse(x[, 1L] + x[, 2L] + 0.3 * stats::rnorm(20) > 1, "b", "a"))
  peer <- getExportedValue("kernlab", "gausspr")(x, y, kernel = "rbfdot", kpar = list(sigma = 2),
                                                 scaled = FALSE, tol = 1e-10)
  p <- getExportedValue("kernlab", "predict")(peer, x, type = "probabilities")
  fit <- cl_gp(x, y, k_exp_quad(), family = "bernoulli_logit", mean = 0, ard = FALSE,
               fixed = c(sd = 1, lengthscale = 0.5))
  link <- predict(fit, x, se.fit = TRUE)
  expect_equal(unname(stats::plogis(link$fit)), unname(p[, 2L]), tolerance = 1e-6)
  by_hand <- vapply(1:20, function(i) {
    stats::integrate(function(z) stats::plogis(link$fit[i] + link$se.fit[i] * z) * stats::dnorm(z),
                     -9, 9, rel.tol = 1e-10)$value
  }, 0)
  expect_equal(unname(predict(fit, x, type = "response")), by_hand, tolerance = 1e-9)
  expect_equal(unname(predict(fit, x, type = "probability")[, "b"]), by_hand, tolerance = 1e-9)
})

test_that("counts: fit, offset, predictions and simulations agree", {
  set.seed(2)
  d <- data.frame(x = 1:40, e = stats::runif(40, 1, 5))
  d$y <- stats::rpois(40, d$e * exp(sin(d$x / 6)))
  d$y[5L] <- NA
  fit <- cl_gp(y ~ x + offset(log(e)), d, k_exp_quad(), family = "poisson_log", starts = 1)
  expect_true(fit$converged)
  expect_lt(max(abs(fit$gradient)), 1e-2)
  expect_identical(nobs(fit), 39L)
  new <- d[c(3, 17), ]
  link <- predict(fit, new, se.fit = TRUE, interval = "confidence")
  mean <- predict(fit, new, type = "response", se.fit = TRUE, interval = "confidence")
  expect_equal(unname(mean$fit[, 1L]), unname(exp(link$fit[, 1L] + link$se.fit^2 / 2)),
               tolerance = 1e-8)
  expect_equal(unname(mean$fit[, 3L]), unname(exp(link$fit[, 3L])), tolerance = 1e-10)
  expect_equal(unname(fit$fitted.values[c("3", "17")]), unname(mean$fit[, 1L]), tolerance = 1e-8)
  none <- predict(fit, transform(new, e = 1), se.fit = TRUE)
  expect_equal(unname(link$fit[, 1L] - none$fit), log(new$e), tolerance = 1e-10)
  bounds <- predict(fit, new, type = "response", interval = "prediction", level = 0.8)
  drawn <- as.matrix(simulate(fit, 4000, seed = 1, newdata = new))
  expect_equal(unname(rowMeans(drawn)), unname(mean$fit[, 1L]), tolerance = 0.05)
  inside <- rowMeans(drawn >= bounds[, "lwr"] & drawn <= bounds[, "upr"])
  expect_true(all(inside > 0.78 & inside < 0.95))
  expect_identical(family(fit)$linkinv(0), 1)
  for (type in c("deviance", "pearson", "response")) {
    expect_identical(length(residuals(fit, type)), 39L)
  }
  expect_equal(sum(residuals(fit, "response")), 0, tolerance = 0.2 * sum(d$y, na.rm = TRUE))
  table <- summary(fit)
  expect_output(print(table), "poisson_log")
  expect_true(all(table$parameters[, 2L] > 0))
  expect_true(all(confint(fit)[1:2, 1L] > 0))
  expect_identical(attr(logLik(fit), "df"), 3L)
  expect_s3_class(anova(fit, update(fit, mean = 0)), "anova")
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(names(plot(fit, n = 9)), c("x", "fit", "lwr", "upr"))
  each_engine({
    again <- cl_gp(y ~ x + offset(log(e)), d, k_exp_quad(), family = "poisson_log", starts = 1)
    expect_equal(coef(again), coef(fit), tolerance = 1e-4)
    expect_equal(predict(again, new, type = "response"), predict(fit, new, type = "response"),
                 tolerance = 1e-4)
  })
})

test_that("classes: probabilities, classes and draws of several processes", {
  d <- iris[seq(2, 150, by = full_or_quick(2, 4)), ]
  held <- c(sd = 4, lengthscale = 2)
  fit <- cl_gp(Species ~ Petal.Length + Petal.Width, d, k_exp_quad(), ard = FALSE, fixed = held,
               family = "categorical_logit")
  p <- predict(fit, type = "probability")
  expect_equal(unname(rowSums(p)), rep(1, nrow(d)), tolerance = 1e-12)
  expect_gt(mean(predict(fit, type = "class") == d$Species), 0.93)
  new <- d[c(1, 20, 30), ]
  both <- predict(fit, new, type = "probability", se.fit = TRUE, interval = "confidence")
  expect_true(all(both$fit[, , "lwr"] <= both$fit[, , "fit"]))
  drawn <- simulate(fit, 1000, seed = 1, newdata = new)
  share <- t(apply(as.matrix(drawn), 1L, function(v) table(factor(v, levels(d$Species)))) / 1000)
  expect_lt(max(abs(share - both$fit[, , "fit"])), 0.06)
  # two classes are the Bernoulli model with processes of sd sqrt(2)
  two <- droplevels(iris[51:100 + 20 * (1:50 > 25), ])
  one <- cl_gp(Species ~ Petal.Length, two, k_exp_quad(), mean = 0, family = "bernoulli_logit",
               fixed = c(sd = 2 * sqrt(2), lengthscale = 1))
  pair <- cl_gp(Species ~ Petal.Length, two, k_exp_quad(), mean = 0, family = "categorical_logit",
                fixed = c(sd = 2, lengthscale = 1))
  expect_equal(as.numeric(logLik(one)), as.numeric(logLik(pair)), tolerance = 1e-10)
  expect_equal(unname(predict(one, type = "probability")), unname(predict(pair, type = "response")),
               tolerance = 1e-8)
  ranks <- cl_gp(two$Petal.Length, factor(two$Species, ordered = TRUE), k_exp_quad(), mean = 0,
                 family = "ordered_logistic", fixed = c(sd = 2 * sqrt(2), lengthscale = 1))
  expect_equal(as.numeric(logLik(ranks)), as.numeric(logLik(one)), tolerance = 1e-10)
})

test_that("long runs of the sampler have the posterior mean of Laplace's fits, about", {
  set.seed(7)
  d <- data.frame(x = seq(0, 1, length.out = 12))
  d$y <- stats::rbinom(12, 20, stats::plogis(sin(6 * d$x)))
  d$miss <- 20 - d$y
  held <- c(sd = 1, lengthscale = 0.3)
  at <- data.frame(x = c(0.1, 0.5, 1.1))
  near <- cl_gp(cbind(y, miss) ~ x, d, k_matern32(), family = "binomial_logit", fixed = held,
                beta = "integrate")
  draws <- full_or_quick(1500L, 250L)
  fit <- suppressWarnings(cl_gp(cbind(y, miss) ~ x, d, k_matern32(), family = "binomial_logit",
                                fixed = held, method = "mcmc", progress = FALSE,
                                control = list(chains = 1, iter = draws, warmup = 200, seed = 1)))
  p <- predict(fit, at, type = "response", draws = 200, se.fit = TRUE, interval = "confidence")
  q <- predict(near, at, type = "response", se.fit = TRUE)
  expect_lt(max(abs(p$fit[, 1L] - q$fit)), full_or_quick(0.02, 0.05))
  expect_lt(max(abs(p$se.fit / q$se.fit - 1)), 0.35)
  expect_identical(dim(vcov(fit)), c(3L, 3L))
  expect_output(print(fit), "binomial_logit")
})

test_that("bad input is refused by name", {
  x <- 1:6
  y <- c(0, 1, 1, 0, 1, 0)
  expect_refused("family", cl_gp(x, y, family = "gamma"), cl_gp(x, y, family = stats::Gamma()))
  expect_refused("y", cl_gp(x, y + 0.5, family = "poisson_log"),
                 cl_gp(x, y + 1, family = "bernoulli_logit"))
  expect_fault(cl_gp(x, c(NA, y[-1L]), family = "student_t"), "nonfinite", argument = "y")
  expect_refused("y", cl_gp(x, rep(1, 6), family = "bernoulli_logit"))
  expect_refused("offset", cl_gp(x, y, offset = x),
                 cl_gp(x, y, family = "poisson_log", offset = 1:2))
  fit <- cl_gp(x, y, family = "poisson_log", fixed = c(sd = 1, lengthscale = 1))
  expect_refused("type", plot(fit, type = "trace"))
  d <- data.frame(y = factor(y, ordered = TRUE), a = gl(2, 3), b = gl(3, 2), c = gl(2, 1, 6), u = x)
  held <- c(sd = 1, lengthscale = 1)
  none <- cl_gp(y ~ a + b + c, d, family = "ordered_logistic", fixed = held, ard = FALSE)
  expect_error(plot(none), "the fit has none")
  some <- cl_gp(y ~ a + b + u, d, family = "ordered_logistic", fixed = held, ard = FALSE)
  expect_error(plot(some), "this plot: u")
})
