# Likelihoods and fits by the means of observations at one input, against those of all observations.

repeated_data <- function() {
  at <- c(0.03, 0.11, 0.18, 0.29, 0.34, 0.42, 0.55, 0.61, 0.68, 0.77, 0.86, 0.93)
  x <- cbind(a = c(rep(at, 3), 0.5, 0.999), b = c(rep(rep(0:1, 6), 3), 0, 1))
  n <- nrow(x)
  list(x = x, y = sin(6 * x[, 1]) + x[, 2] + 0.3 * cos(11 * seq_len(n)^2),
       w = rep_len(c(1, 2, 0.5, 0.25, 4), n), ratio = c(rep_len(c(0, 0.1, 0.04), 36), 0, 0.02))
}

repeated_problem <- function(mean = "constant", beta = "profile", w = NULL, v = NULL,
                             kernel = k_matern52()) {
  d <- repeated_data()
  new_gp_problem(d$x, d$y, kernel, mean, beta, w, v, NULL)
}

# The likelihood of all observations, one by one.
each_observation <- function(problem, scale = 1) {
  cl_gp_likelihood((problem$y - problem$mean$centre) / scale, problem$x, problem$kernel,
                   if (problem$mean$kind == "number") 0 else mean_argument(problem$mean),
                   beta = problem$beta, weights = problem$weights,
                   variance = if (!is.null(problem$variance)) problem$variance / scale^2)
}

test_that("groups have equal rows in all columns", {
  x <- cbind(c(1, 2, 1, -0, 0, 1), c(5, 5, 5, 1, 1, 6))
  expect_identical(as.integer(group_rows(x)), c(1L, 2L, 1L, 3L, 3L, 4L))
  expect_identical(as.integer(group_rows(cbind(x, 1:6))), 1:6)
  close <- cbind(c(1, 1 + .Machine$double.eps, 1))
  expect_identical(as.integer(group_rows(close)), c(1L, 2L, 1L))
})

test_each_engine("value, gradient and everything derived are those of all observations", {
  d <- repeated_data()
  par <- c(0.9, 0.4, 0.2)
  at <- cbind(a = c(0.2, 0.5, 0.55), b = c(0, 0, 1))
  for (mean in list("constant", "linear", 0.3, ~ a + I(a^2))) {
    for (beta in c("profile", "integrate")) for (w in list(NULL, d$w)) {
      for (ratio in list(NULL, d$ratio)) {
        v <- if (!is.null(ratio)) ratio / (if (is.null(w)) 1 else w)
        problem <- repeated_problem(mean, beta, w, v)
        f <- gp_function(problem, "ml", 2)
        expect_s3_class(f, "cl_gp_replicates")
        expect_identical(nrow(environment(f)$d$x), 14L)
        expect_close(f(par), each_observation(problem, 2)(par), 1e-10)
        expect_close(as.numeric(f(par, FALSE)), as.numeric(f(par)), 1e-12)

        state <- gp_condition(gp_function(problem), par)
        want <- gp_condition(each_observation(problem), par)
        basis <- if (!is.null(problem$mean$basis)) problem$mean$basis[c(2, 5, 7), ]
        same <- function(a, b) {
          for (name in c("value", "weights", "beta", "beta_cov")) {
            expect_close(a[[name]], b[[name]], 1e-10)
          }
          expect_close(unlist(a$loo()), unlist(b$loo()), 1e-10)
          expect_close(unlist(a$predict(at, "covariance", basis)),
                       unlist(b$predict(at, "covariance", basis)), 1e-10)
          if (is.null(basis)) expect_close(a$mean_gradient(at), b$mean_gradient(at), 1e-10)
        }
        same(state, want)
        add <- function(state) {
          state$extend(c(0.1, -0.2, 0.4), at, basis, if (!is.null(w)) c(1, 3, 2),
                       if (!is.null(v)) c(0, 0.1, 0.3))
        }
        same(add(state), add(want))
        same(add(add(state)), add(add(want)))
      }
    }
  }
})

test_that("variances in other ratios, white terms and few repeats are taken one by one", {
  d <- repeated_data()
  is_grouped <- function(...) inherits(gp_function(repeated_problem(...)), "cl_gp_replicates")
  expect_true(is_grouped())
  expect_false(is_grouped(v = seq_along(d$y) / 10))
  expect_false(is_grouped(kernel = k_matern52() + k_white()))
  problem <- repeated_problem()
  expect_false(inherits(gp_function(problem, "loo"), "cl_gp_replicates"))
  problem$x[-(1:3), 1] <- seq_len(35)
  expect_false(inherits(gp_function(problem), "cl_gp_replicates"))
})

test_that("small variances stay apart next to large ones, and counts are not grouped", {
  problem <- repeated_problem(v = rep_len(c(1e6, 1e-4, 2e-4, 3e-4, 5e-4), 38))
  expect_close(gp_function(problem)(c(1, 0.4, 0)), each_observation(problem)(c(1, 0.4, 0)), 1e-8)
  problem <- repeated_problem(v = rep(1e-4 * c(1, 2, 3), c(12, 12, 14)))
  problem$variance[37] <- 1e9
  expect_identical(as.integer(replicate_count(problem)), 38L)
  problem <- repeated_problem()
  expect_identical(as.integer(replicate_count(problem)), 14L)
  problem$response <- list()
  expect_identical(replicate_count(problem), 38L)
})

test_that("no noise is refused where inputs repeat, and taken where variances are known", {
  expect_error(gp_function(repeated_problem())(c(1, 0.4, 0)), class = "statcl_error_not_pd")
  d <- repeated_data()
  problem <- repeated_problem(v = ifelse(seq_along(d$y) > 36, 0, 0.1))
  expect_close(gp_function(problem)(c(1, 0.4, 0)), each_observation(problem)(c(1, 0.4, 0)), 1e-10)
})

test_each_engine("a fit has the methods and results of one to inputs that differ by rounding", {
  d <- repeated_data()
  data <- data.frame(d$x, y = d$y, w = d$w)
  moved <- transform(data, a = a + 1e-12 * seq_along(a))
  fit <- cl_gp(y ~ a + b, data, mean = ~ b, weights = w, method = "ml")
  one <- cl_gp(y ~ a + b, moved, mean = ~ b, weights = w, method = "ml")
  expect_true(inherits(gp_function(gp_problem(fit)), "cl_gp_replicates"))
  expect_false(inherits(gp_function(gp_problem(one)), "cl_gp_replicates"))
  expect_close(as.numeric(logLik(fit)), as.numeric(logLik(one)), 1e-7)
  expect_equal(coef(fit), coef(one), tolerance = 1e-3)
  expect_equal(vcov(fit), vcov(one), tolerance = 1e-2)
  expect_equal(fitted(fit), fitted(one), tolerance = 1e-3)
  expect_equal(predict(fit, data[1:5, ], interval = "prediction"),
               predict(one, data[1:5, ], interval = "prediction"), tolerance = 1e-3)
  more <- data[c(3, 9), ]
  more$y <- more$y + 0.1
  longer <- update(fit, newdata = more)
  again <- cl_gp(y ~ a + b, rbind(data, more), mean = ~ b, weights = w,
                 fixed = fit$par, method = "ml")
  expect_close(as.numeric(logLik(longer)), as.numeric(logLik(again)), 1e-9)
  expect_close(unname(residuals(longer)), unname(residuals(again)), 1e-8)
})
