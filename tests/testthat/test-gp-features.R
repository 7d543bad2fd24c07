# The features of Gaussian processes in the table of vignettes/million-points.Rmd: each row is run.

skip_on_cran() # long; run by ./dev check

feature_data <- function(n = 40L) {
  set.seed(11)
  d <- data.frame(a = stats::runif(n), b = stats::runif(n), g = factor(rep(c("u", "v"), n / 2)))
  d$f <- sin(6 * d$a) + d$b
  d$y <- d$f + stats::rnorm(n, sd = 0.1)
  d$count <- stats::rpois(n, exp(d$f))
  d
}

held <- c(sd = 1, lengthscale = 0.4, noise = 0.1)

# By the first column of the table, a function of the data that fails if statcl lacks the feature.
features <- list(
  "exact likelihood" = function(d) {
    par <- c(sd = 1, lengthscale = 0.4, noise = 0.1)
    x <- as.matrix(d[c("a", "b")])
    k <- exp(-as.matrix(stats::dist(x))^2 / (2 * 0.4^2)) + diag(0.1^2, nrow(d))
    want <- -0.5 * (nrow(d) * log(2 * pi) + as.numeric(determinant(k)$modulus) +
                      sum(d$y * solve(k, d$y)))
    expect_equal(cl_gp_likelihood(d$y, x, k_exp_quad())(par, FALSE), want, tolerance = 1e-8)
  },
  "beyond 1e5 points" = function(d) {
    set.seed(2)
    x <- cbind(stats::runif(101000), stats::runif(101000))
    f <- cl_gp_likelihood(sin(5 * x[, 1L]), x, k_matern32(), approx = "vecchia", neighbours = 3)
    expect_true(all(is.finite(attr(f(c(1, 0.5, 0.1)), "gradient"))))
  },
  "observations conditioned in groups" = function(d) {
    of <- function(...) {
      f <- cl_gp_likelihood(numeric(nrow(d)), as.matrix(d[c("a", "b")]), k_exp_quad(), ...)
      as.numeric(f(c(1, 0.4, 0.1), FALSE))
    }
    together <- of(approx = "vecchia", neighbours = 4, grouped = TRUE)
    expect_lt(of() - together, of() - of(approx = "vecchia", neighbours = 4))
  },
  "on a GPU" = function(d) { # any device; other topics take both engines for each function
    likelihood <- function() {
      cl_gp_likelihood(d$y, as.matrix(d[c("a", "b")]), k_exp_quad())(c(1, 0.4, 0.1), FALSE)
    }
    host <- likelihood()
    expect_equal(on_device(likelihood()), host, tolerance = 1e-8)
  },
  "sums and products of kernels" = function(d) {
    fit <- cl_gp(y ~ a + b, d, k_exp_quad() * k_linear() + k_matern32(), starts = 1,
                 ard = FALSE, fixed = c(sd1 = 1, sd2 = 1, sd3 = 1, noise = 0.1))
    expect_length(fit$kernel$terms, 3L)
    expect_gt(fit$logLik, cl_gp(y ~ a + b, d, k_linear(), starts = 1)$logLik)
  },
  "a kernel of your own" = function(d) {
    own <- k_user(function(x1, x2, par) {
      par[1L]^2 * exp(-outer(x1[, 1L], x2[, 1L], `-`)^2 / (2 * par[2L]^2))
    }, c(sd = 1, ell = 0.4))
    x <- as.matrix(d["a"])
    expect_equal(as.matrix(cl_cov(x, x, own)), as.matrix(cl_cov(x, x, k_exp_quad(1, 0.4))),
                 tolerance = 1e-10)
  },
  "a lengthscale for each input" = function(d) {
    fit <- cl_gp(y ~ a + b, d, ard = TRUE, starts = 1)
    expect_equal(sum(grepl("lengthscale", names(coef(fit)))), 2)
  },
  "known variances of measurements" = function(d) {
    fit <- cl_gp(y ~ a, d, variance = rep(c(1e-4, 100), each = 20), fixed = held)
    expect_lt(mean(abs(residuals(fit)[1:20])), mean(abs(residuals(fit)[21:40])))
  },
  "a linear mean, estimated" = function(d) {
    fit <- cl_gp(y ~ a, d, mean = ~ b, fixed = held)
    expect_equal(coef(fit)[["b"]], 1, tolerance = 0.3)
  },
  "restricted likelihood" = function(d) {
    fits <- lapply(c("profile", "integrate"), function(beta) {
      as.numeric(logLik(cl_gp(y ~ a, d, mean = ~ b, fixed = held, beta = beta)))
    })
    expect_gt(abs(fits[[1L]] - fits[[2L]]), 0.1)
  },
  "priors of parameters" = function(d) {
    tight <- cl_gp(y ~ a, d, method = "map", starts = 1,
                   prior = list(lengthscale = prior_lognormal(log(0.3), 0.001)))
    expect_equal(coef(tight)[["lengthscale"]], 0.3, tolerance = 0.01)
  },
  "sampling of parameters" = function(d) {
    fit <- suppressWarnings(cl_gp(y ~ a, d, method = "mcmc", starts = 1, control = list(
      chains = 1, warmup = 20, iter = 10, seed = 1)))
    expect_equal(nrow(as.matrix(fit$draws)), 10)
  },
  "fits by leave-one-out" = function(d) {
    fits <- lapply(c("loo", "ml"), function(by) cl_gp(y ~ a, d, method = by, starts = 1))
    scores <- vapply(fits, function(fit) {
      sum(stats::dnorm(residuals(fit, "standardized"), log = TRUE) -
            log(sqrt(gp_loo(fit)$variance)))
    }, 0)
    expect_gte(scores[1L], scores[2L] - 1e-6)
  },
  "cross-validation" = function(d) {
    validated <- cl_cv(cl_gp(y ~ a, d, fixed = held), folds = 4, seed = 1)
    expect_identical(nrow(validated$pointwise), 40L)
  },
  "many starts" = function(d) {
    tried <- lapply(c(1, 3), function(starts) cl_gp(y ~ a, d, starts = starts)$trials)
    expect_lt(length(tried[[1L]]), length(tried[[2L]]))
  },
  "prediction intervals" = function(d) {
    at <- predict(cl_gp(y ~ a + b, d, ard = FALSE, fixed = held), d, interval = "prediction")
    expect_gt(mean(d$y > at[, "lwr"] & d$y < at[, "upr"]), 0.9)
  },
  "draws given the data" = function(d) {
    fit <- cl_gp(y ~ a + b, d, ard = FALSE, fixed = held)
    draws <- as.matrix(simulate(fit, 200, seed = 1, newdata = d[1:2, ]))
    expect_equal(rowMeans(draws), unname(predict(fit, d[1:2, ])), tolerance = 0.1,
                 ignore_attr = TRUE)
  },
  "gradients of predictions" = function(d) {
    fit <- cl_gp(y ~ a, d, fixed = held)
    at <- predict(fit, data.frame(a = c(0.5, 0.5 + 1e-5)), gradient = TRUE)
    expect_equal(at$gradient[[1L]], diff(at$fit)[[1L]] / 1e-5, tolerance = 1e-3)
  },
  "counts and classes" = function(d) {
    for (family in list(poisson(), "neg_binomial_2_log")) {
      own <- if (is.character(family)) c(phi = 2)
      fit <- cl_gp(count ~ a, d, family = family, fixed = c(held[1:2], own))
      expect_true(all(predict(fit, type = "response") > 0))
    }
    d$class <- factor(rep(c("l", "m", "n", "l"), 10))
    fit <- cl_gp(class ~ a, d, family = "categorical_logit", fixed = held[1:2])
    expect_equal(rowSums(predict(fit, type = "response")), rep(1, 40), ignore_attr = TRUE)
  },
  "counts and classes of 1e5 points" = function(d) {
    d <- feature_data(full_or_quick(101000L, 5000L))
    fit <- cl_gp(count ~ a + b, d, k_matern32(), family = poisson(), ard = FALSE,
                 fixed = held[1:2], approx = "vecchia", neighbours = 5)
    expect_gt(stats::cor(log(fitted(fit)), d$f), 0.9)
  },
  "outliers" = function(d) {
    d$y[1L] <- 50
    fit <- cl_gp(y ~ a + b, d, family = "student_t", ard = FALSE,
                 fixed = c(held[1:2], scale = 0.1, df = 3))
    expect_lt(abs(fitted(fit)[[1L]] - d$f[1L]), 1)
  },
  "noise as a second process" = function(d) {
    fit <- cl_gp(y ~ a, d, noise = k_exp_quad(), starts = 1)
    expect_true(any(grepl("^noise[.]", names(coef(fit)))))
  },
  "factors as inputs" = function(d) {
    fit <- cl_gp(y ~ a + g, d, k_exp_quad(columns = "a") * k_factor("g"), starts = 1)
    expect_length(predict(fit, data.frame(a = 0.5, g = c("u", "v"))), 2)
  },
  "several outputs" = function(d) {
    both <- data.frame(x = rep(1:15 / 5, 2), g = rep(c("a", "b"), each = 15))
    both$y <- sin(3 * both$x) * ifelse(both$g == "a", 1, -2)
    fit <- suppressWarnings( # values without noise
      cl_gp(y ~ x + g, both[-20, ], k_factor("g", "low_rank") * k_exp_quad(columns = "x"),
            starts = 1, mean = 0))
    expect_equal(predict(fit, both[20, ])[[1L]], both$y[20], tolerance = 0.1)
  },
  "points on the Earth" = function(d) {
    k <- k_matern32(1, 1000, distance = "chordal")
    x <- rbind(c(long = 179.5, lat = 10), c(-179.5, 10))
    expect_gt(as.matrix(cl_cov(x, x, k))[1L, 2L], 0.98) # neighbours across the date line
  },
  "parts of a sum" = function(d) {
    fit <- cl_gp(y ~ a, d, k_linear() + k_exp_quad(), starts = 1, mean = 0)
    parts <- predict(fit, d, part = 1) + predict(fit, d, part = 2)
    expect_equal(parts, predict(fit, d), tolerance = 1e-6)
  },
  "where to observe next" = function(d) {
    fit <- cl_gp(y ~ a, d, fixed = held)
    at <- cl_acquire(fit, lower = 2, upper = 3)$points
    expect_true(nrow(at) == 1L && at$a >= 2 && at$a <= 3)
  },
  "new observations, no new fit" = function(d) {
    fit <- cl_gp(y ~ a, d[1:30, ], fixed = held)
    more <- update(fit, newdata = d[31:40, ])
    expect_equal(predict(more, d), predict(cl_gp(y ~ a, d, fixed = held), d), tolerance = 1e-6)
  },
  "plots of curves and levels" = function(d) {
    grDevices::pdf(NULL)
    on.exit(grDevices::dev.off())
    fit <- cl_gp(y ~ a + g, d, k_exp_quad(columns = "a") * k_factor("g"),
                 fixed = c(sd1 = 1, lengthscale1 = 0.4, sd2 = 1, lengthscale2 = 1, noise = 0.1))
    expect_identical(levels(plot(fit, n = 5)$level), c("u", "v"))
  })

for (name in names(features)) local({
  run <- features[[name]]
  test_that(name, {
    on_host(run(feature_data()))
  })
})

test_that("the table of the vignette has these rows", {
  page <- test_path("..", "..", "vignettes", "million-points.Rmd")
  skip_if_not(file.exists(page), "the page")
  rows <- grep("^[|] [a-z].* [|]$", readLines(page), value = TRUE)
  cells <- lapply(strsplit(rows, "|", fixed = TRUE), trimws)
  expect_identical(vapply(cells, `[`, "", 2L), names(features))
  expect_true(all(lengths(cells) == 11L))
  # the functions and arguments that the column of statcl names
  known <- c(getNamespaceExports("statcl"), "predict", "simulate", "update", "plot", "poisson")
  methods <- list(getS3method("cl_gp", "default"), getS3method("predict", "cl_gp"),
                  getS3method("simulate", "cl_gp"), getS3method("update", "cl_gp"), k_factor,
                  k_matern32)
  arguments <- unlist(lapply(methods, function(f) names(formals(f))))
  for (cell in vapply(cells, `[`, "", 3L)) {
    called <- sub("[(]$", "", regmatches(cell, gregexpr("[a-z_0-9]+[(]", cell))[[1L]])
    given <- sub(" =$", "", regmatches(cell, gregexpr("[a-z]+ =", cell))[[1L]])
    expect_true(length(c(called, given)) > 0L && all(called %in% known) &&
                  all(given %in% arguments), label = cell)
  }
})

gp_states$list <- list()
