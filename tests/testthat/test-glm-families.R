# The families other than bernoulli_logit, which test-glm.R covers.

skip_on_cran() # long; run by ./dev check

families <- c("binomial_logit", "normal_id", "poisson_log", "neg_binomial_2_log",
              "categorical_logit", "ordered_logistic")
own_of <- c(normal_id = "sigma", neg_binomial_2_log = "phi", ordered_logistic = "cuts")

# A problem of each family, with the arguments that cl_glm_lpdf() wants: a list to call it with.
family_problem <- function(family, n, k, vectors = 1L, classes = 4L) {
  set.seed(n + 10 * k + nchar(family))
  x <- matrix(rnorm(n * k), n, k) / 2
  eta <- 0.2 + as.vector(x %*% (rnorm(k) / sqrt(max(k, 1))))
  trials <- if (family == "binomial_logit") sample(0:9, n, TRUE)
  y <- switch(family,
    bernoulli_logit = rbinom(n, 1, plogis(eta)),
    binomial_logit = rbinom(n, trials, plogis(eta)),
    normal_id = rnorm(n, eta, 1.5),
    poisson_log = rpois(n, exp(eta)),
    neg_binomial_2_log = rnbinom(n, size = 2, mu = exp(eta)),
    sample(classes, n, TRUE))
  wide <- if (family == "categorical_logit") classes else 1L
  shape <- c(k, if (wide > 1L || family == "categorical_logit") wide, if (vectors > 1L) vectors)
  beta <- array(rnorm(prod(k, wide, vectors)) / 2, shape)
  own <- switch(family, normal_id = list(sigma = 1.5), neg_binomial_2_log = list(phi = 2.5),
                ordered_logistic = list(cuts = seq(-1, 1.3, length.out = classes - 1L)))
  if (length(shape) == 1L) beta <- c(beta)
  c(list(family = family, y = y, x = x, alpha = 0.25, beta = beta), own,
    if (!is.null(trials)) list(trials = trials))
}

lpdf <- function(arguments, ...) do.call(cl_glm_lpdf, c(arguments, list(...)))

# The same by R's own densities; predictors one column a class.
by_r <- function(a) {
  n <- nrow(a$x)
  eta <- a$x %*% if (is.matrix(a$beta)) a$beta else matrix(a$beta, ncol(a$x), 1L)
  eta <- eta + if (ncol(eta) > 1L) rep(a$alpha, each = n) else a$alpha
  i <- seq_len(n)
  sum(switch(a$family,
    bernoulli_logit = dbinom(a$y, 1, plogis(eta), log = TRUE),
    binomial_logit = dbinom(a$y, a$trials, plogis(eta), log = TRUE),
    normal_id = dnorm(a$y, eta, a$sigma, log = TRUE),
    poisson_log = dpois(a$y, exp(eta), log = TRUE),
    neg_binomial_2_log = dnbinom(a$y, size = a$phi, mu = exp(eta), log = TRUE),
    categorical_logit = eta[cbind(i, a$y)] - log(rowSums(exp(eta))),
    ordered_logistic = {
      ends <- c(-Inf, a$cuts, Inf)
      log(plogis(ends[a$y + 1L] - eta) - plogis(ends[a$y] - eta))
    }))
}

gradient_of <- function(value) attr(value, "gradient")

# ---- against many digits ---------------------------------------------------------------------

# One evaluation for each row of the table. Errors are relative; derivatives with respect to the
# predictor that are small differences, such as y - mean, may also be off by 2e-15 y.
check_table <- function(family, evaluate) {
  table <- read.csv(test_path("..", "reference", "glm-families.csv"), stringsAsFactors = FALSE)
  table <- table[table$family == family, ]
  expect_gt(nrow(table), 20)
  worst <- c(value = 0, d_eta = 0, d_own = 0, d_below = 0)
  least <- .Machine$double.xmin
  for (i in seq_len(nrow(table))) {
    row <- table[i, ]
    got <- evaluate(row)
    for (what in names(got)) {
      if (is.na(row[[what]])) next
      part <- if (what == "d_eta") row$y * 2e-3 else 0
      error <- abs(got[[what]] - row[[what]]) / (abs(row[[what]]) + part + least * 2^52)
      worst[[what]] <- max(worst[[what]], error)
      if (!isTRUE(error <= 1e-12)) {
        fail(sprintf("%s, row %d: %s is %.17g, should be %.17g (%s)", family, i, what, got[[what]],
                     row[[what]], paste(names(row), unlist(row), collapse = " ")))
      }
    }
  }
  expect_true(all(worst <= 1e-12), info = family)
}

test_that("families with one predictor are accurate in all tails", {
  # bernoulli_logit is in test-glm.R; test-family.R has all families
  for (family in c("binomial_logit", "normal_id", "poisson_log", "neg_binomial_2_log")) {
    own <- if (length(family_table[[family]]$aux)) family_table[[family]]$aux
    each_engine(check_table(family, function(row) {
      arguments <- list(family = family, y = row$y, x = 1, alpha = 0, beta = row$eta)
      if (!is.null(own)) arguments[[own]] <- row$own
      if (family == "binomial_logit") arguments$trials <- row$datum
      value <- lpdf(arguments, gradient = c("beta", own))
      c(list(value = as.vector(value), d_eta = gradient_of(value)$beta),
        if (!is.null(own)) list(d_own = gradient_of(value)[[own]]))
    }))
  }
})

test_that("categorical_logit is accurate with 1, 3 and 40 classes", {
  each_engine(check_table("categorical_logit", function(row) {
    beta <- matrix(((5 * seq_len(row$datum)) %% 7 - 3) / 4, 1)
    value <- cl_glm_lpdf("categorical_logit", row$y, 1, 0, row$eta * beta, gradient = "alpha")
    list(value = as.vector(value), d_eta = gradient_of(value)$alpha[row$own])
  }))
})

test_that("ordered_logistic is accurate, also between cuts that nearly coincide", {
  each_engine(check_table("ordered_logistic", function(row) {
    cuts <- c(row$below, row$above)
    cuts <- cuts[is.finite(cuts)]
    value <- cl_glm_lpdf("ordered_logistic", row$y, 1, 0, row$eta, cuts = cuts,
                         gradient = c("beta", "cuts"))
    by_cut <- gradient_of(value)$cuts
    c(list(value = as.vector(value), d_eta = gradient_of(value)$beta),
      if (is.finite(row$above)) list(d_own = by_cut[row$y]),
      if (is.finite(row$below)) list(d_below = by_cut[row$y - 1L]))
  }))
})

# A sample of rows of the table of counts, most of them near the largest log density, where terms as
# large as the counts cancel. The tolerance is 1e-12 of each number, and 4e-16 of the linear
# predictor.
check_counts <- function(every) {
  table <- read.csv(test_path("..", "reference", "glm-counts.csv"), stringsAsFactors = FALSE)
  for (i in seq(1, nrow(table), by = every)) {
    row <- table[i, ]
    a <- list(row$family, row$y, 1, alpha = 0, beta = row$eta)
    if (!is.na(row$own)) a$phi <- row$own
    if (!is.na(row$datum)) a$trials <- row$datum
    by <- c("beta", if (!is.na(row$own)) "phi")
    value <- do.call(cl_glm_lpdf, c(a, list(gradient = by)))
    mean <- exp(row$eta)
    slope <- c(value = abs(row$d_eta), d_eta = row$curve, curve = 0,
               d_own = abs(row$d_eta) * mean / (mean + row$own) / row$own +
                 row$y / row$own / (row$y + row$own))
    got <- c(value = as.vector(value), d_eta = gradient_of(value)$beta,
             d_own = gradient_of(value)$phi, curve = -do.call(cl_glm_hessian, a)[1L])
    if (row$curve < 1e-280) got <- got[names(got) != "curve"]
    for (what in names(got)) {
      allowed <- 1e-12 * abs(row[[what]]) + 4e-16 * slope[[what]]
      if (!isTRUE(abs(got[[what]] - row[[what]]) <= allowed)) {
        fail(sprintf("row %d: %s is %.17g, should be %.17g (%s)", i, what, got[[what]],
                     row[[what]], paste(names(row), unlist(row), collapse = " ")))
      }
    }
  }
  succeed()
}

test_that("likelihoods are accurate for counts up to 4e15 and phi from 1e-300 to 1e300", {
  on_host(check_counts(1))
  on_device(check_counts(full_or_quick(3, 12)))
})

# ---- sums over observations ------------------------------------------------------------------

test_that("sums agree with R's densities, gradients with finite differences", {
  for (family in families) for (shape in list(c(1, 1), c(3, 2), c(70, 7), c(131, 33))) {
    a <- family_problem(family, shape[1], shape[2])
    expected <- by_r(a)
    own <- if (family %in% names(own_of)) own_of[[family]]
    each_engine({
      expect_equal(as.vector(lpdf(a)), expected, tolerance = 1e-12, info = family)
      if (shape[2] > 10) next
      f <- cl_likelihood(family, a$y, a$x, trials = a$trials)
      point <- a[c("alpha", "beta", own)]
      if (family == "categorical_logit") point$alpha <- c(0.1, -0.2, 0.3, 0)
      check <- do.call(cl_check_gradient, c(list(f), point))
      by <- c(if (family != "ordered_logistic") "alpha", "beta", own)
      expect_setequal(check$argument, by)
      expect_lt(max(check$error), 1e-6, label = family)
      by_x <- function(x) {
        value <- lpdf(replace(a, "x", list(x)), gradient = "x")
        structure(as.vector(value), gradient = gradient_of(value)$x)
      }
      if (shape[1] < 10) expect_lt(max(cl_check_gradient(by_x, a$x)$error), 1e-6, label = family)
    })
  }
})

test_that("alpha and sigma may be given by row", {
  for (family in setdiff(families, "categorical_logit")) {
    a <- family_problem(family, 40, 3)
    a$alpha <- rnorm(40)
    if (family == "normal_id") a$sigma <- runif(40, 0.5, 2)
    by <- c("alpha", if (family == "normal_id") "sigma")
    each_engine({
      expect_equal(as.vector(lpdf(a)), by_r(a), tolerance = 1e-12, info = family)
      f <- cl_likelihood(family, a$y, a$x, trials = a$trials)
      own <- if (family %in% names(own_of)) own_of[[family]]
      check <- do.call(cl_check_gradient, c(list(f), a[c("alpha", "beta", own)]))
      expect_lt(max(check$error), 1e-6, label = family)
      expect_named(gradient_of(lpdf(a, gradient = by)), by)
    })
  }
})

test_that("several parameter vectors give the same as one after the other", {
  for (family in c("bernoulli_logit", families)) for (vectors in c(2L, 3L, 4L, 7L)) {
    a <- family_problem(family, 150, 5, vectors)
    own <- if (family %in% names(own_of)) own_of[[family]]
    by <- c("alpha", "beta", own)
    if (!is.null(own)) {
      spread <- seq(1, 1.5, length.out = vectors)
      a[[own]] <- if (own == "cuts") outer(a$cuts, spread) else a[[own]] * spread
    }
    a$alpha <- if (family == "categorical_logit") matrix(rnorm(4 * vectors), 4) else rnorm(vectors)
    each_engine({
      together <- lpdf(a, gradient = by)
      expect_length(as.vector(together), vectors)
      for (m in seq_len(vectors)) {
        one <- a
        one$beta <- if (family == "categorical_logit") a$beta[, , m] else a$beta[, m]
        one$alpha <- if (is.matrix(a$alpha)) a$alpha[, m] else a$alpha[m]
        if (!is.null(own)) one[[own]] <- if (own == "cuts") a$cuts[, m] else a[[own]][m]
        alone <- lpdf(one, gradient = by)
        expect_equal(as.vector(together)[m], as.vector(alone), tolerance = 1e-12, info = family)
        pick <- function(g) {
          d <- dim(g)
          if (is.null(d)) g[m] else if (length(d) == 3L) g[, , m] else g[, m]
        }
        for (name in by) {
          expect_equal(pick(gradient_of(together)[[name]]), gradient_of(alone)[[name]],
                       tolerance = 1e-10, info = paste(family, name))
        }
      }
      expect_identical(dim(gradient_of(together)$beta), dim(a$beta))
    })
  }
})

# The host engine distributes many rows over threads.
test_that("many rows give the sum of few, for any number of threads", {
  n <- 24001
  few <- split(seq_len(n), rep_len(1:8, n))
  for (family in c("bernoulli_logit", families)) {
    a <- family_problem(family, n, 3)
    if (family != "categorical_logit") a$alpha <- rnorm(n) / 5
    if (family == "normal_id") a$sigma <- exp(rnorm(n) / 5)
    own <- if (family %in% names(own_of)) own_of[[family]]
    by <- c("alpha", "beta", own)
    rows_of <- function(a, rows) {
      a$x <- a$x[rows, , drop = FALSE]
      for (name in names(a)) if (length(a[[name]]) == n) a[[name]] <- a[[name]][rows]
      a
    }
    each_engine({
      whole <- lpdf(a, gradient = by)
      parts <- lapply(few, function(rows) lpdf(rows_of(a, rows), gradient = by))
      value <- sum(vapply(parts, as.vector, 0))
      expect_lt(abs(whole - value), 1e-12 * abs(value), label = family)
      for (name in by) {
        pieces <- lapply(parts, function(part) as.vector(gradient_of(part)[[name]]))
        by_row <- length(a[[name]]) == n
        want <- if (by_row) unsplit(pieces, rep_len(1:8, n)) else Reduce(`+`, pieces)
        expect_equal(as.vector(gradient_of(whole)[[name]]), want, tolerance = 1e-12,
                     info = paste(family, name))
      }
    })
    with_threads <- function(threads) {
      Sys.setenv(STATCL_COPY_THREADS = threads)
      on.exit(Sys.unsetenv("STATCL_COPY_THREADS"))
      with_cl(lpdf(a, gradient = by), engine = "host")
    }
    expect_identical(with_threads(1), with_threads(3), info = family)
  }
})

test_each_engine("no rows, no columns, one class, one value of y for all rows", {
  for (family in families) {
    a <- family_problem(family, 6, 2)
    a$y <- a$y[0]
    a$x <- a$x[0, , drop = FALSE]
    a$trials <- a$trials[0]
    expect_identical(as.vector(lpdf(a)), 0, info = family)
    expect_true(all(unlist(gradient_of(lpdf(a, gradient = c("alpha", "beta")))) == 0))
    a <- family_problem(family, 6, 2)
    a$x <- matrix(0, 6, 0)
    a$beta <- if (family == "categorical_logit") matrix(0, 0, 4) else numeric()
    expect_equal(as.vector(lpdf(a)), by_r(a), tolerance = 1e-13, info = family)
    a <- family_problem(family, 6, 2)
    a$y <- 1
    if (family == "binomial_logit") a$trials <- 3
    expected <- by_r(replace(a, c("y", if (!is.null(a$trials)) "trials"),
                             c(list(rep(1, 6)), if (!is.null(a$trials)) list(rep(3, 6)))))
    expect_equal(as.vector(lpdf(a)), expected, tolerance = 1e-13, info = family)
  }
  expect_equal(as.vector(cl_glm_lpdf("categorical_logit", rep(1, 5), matrix(rnorm(10), 5), 0,
                                     matrix(1:2, 2))), 0)
  value <- cl_glm_lpdf("ordered_logistic", rep(1, 5), matrix(rnorm(10), 5), 0, 1:2,
                       cuts = numeric(), gradient = c("beta", "cuts"))
  expect_identical(value, structure(0, gradient = list(beta = c(0, 0), cuts = numeric())))
})

test_each_engine("a density too small for a double is -Inf, not an error", {
  expect_identical(as.vector(cl_glm_lpdf("poisson_log", 3, 1, 0, 800)), -Inf)
  f <- cl_likelihood("poisson_log", c(1, 2), 1:2)
  expect_identical(as.vector(f(0, 750)), -Inf)
  expect_equal(as.vector(f(0, 0.5)), sum(dpois(1:2, exp(0.5 * (1:2)), log = TRUE)))
})

# ---- errors ----------------------------------------------------------------------------------

test_that("data outside the support is rejected with its index", {
  x <- matrix(1:6 / 6, 3)
  bad <- list(binomial_logit = list(-1, 0.5, 10, NA), normal_id = list(NA, Inf),
              poisson_log = list(-1, 0.5, NaN), neg_binomial_2_log = list(-2, 1.5, Inf),
              categorical_logit = list(0, 1.5, 5, NA), ordered_logistic = list(0, 2.5, 5, NA))
  each_engine(for (family in families) for (value in bad[[family]]) {
    a <- family_problem(family, 3, 2)
    if (family == "binomial_logit") a$trials <- 9
    a$y[2] <- value
    named <- if (family == "ordered_logistic" && identical(value, 5)) "cuts" else "y"
    fault <- expect_fault(lpdf(a), "argument", argument = named)
    if (!identical(value, 5)) expect_match(conditionMessage(fault), "y[2]", fixed = TRUE)
  })
  each_engine({
    expect_refused("trials", cl_glm_lpdf("binomial_logit", 1, x, 0, 1:2))
    for (bad in list(-1, 0.5, NA, c(1, 2), "a")) {
      expect_refused("trials", cl_glm_lpdf("binomial_logit", 0, x, 0, 1:2, trials = bad))
    }
    expect_refused("trials", cl_glm_lpdf("poisson_log", 0, x, 0, 1:2, trials = 3))
  })
})

test_each_engine("auxiliary parameters out of range are rejected by name", {
  x <- matrix(1:6 / 6, 3)
  f <- list(sigma = cl_likelihood("normal_id", c(1, 2, 3), x),
            phi = cl_likelihood("neg_binomial_2_log", 1:3, x),
            cuts = cl_likelihood("ordered_logistic", 1:3, x))
  call <- function(name, value) {
    do.call(f[[name]], c(list(0, 1:2), stats::setNames(list(value), name)))
  }
  for (bad in list(0, -1, c(1, 2), numeric(), "a", c(1, 1, -1))) {
    expect_refused("sigma", call("sigma", bad))
    expect_refused("phi", call("phi", bad))
  }
  for (bad in list(c(1, 1), c(2, 1), 1, numeric(), "a")) expect_refused("cuts", call("cuts", bad))
  for (bad in c(NA, NaN, Inf)) {
    expect_fault(call("sigma", bad), "nonfinite", argument = "sigma")
    expect_fault(call("phi", bad), "nonfinite", argument = "phi")
    expect_fault(call("cuts", c(0, bad)), "nonfinite", argument = "cuts", index = 2)
  }
  expect_refused("sigma", f$sigma(0, 1:2))
  expect_refused("phi", f$sigma(0, 1:2, sigma = 1, phi = 1))
  expect_refused("gradient", f$phi(0, 1:2, phi = 1, gradient = "sigma"),
                 f$sigma(c(0, 1), matrix(0, 2, 2), sigma = 1, gradient = "x"))
  expect_refused("beta", cl_glm_lpdf("categorical_logit", 1:3, x, 0, 1:2))
  expect_refused("alpha", cl_glm_lpdf("categorical_logit", 1:3, x, 1:2, matrix(0, 2, 3)))
})

test_that("an objective of one vector has its mode where glm() has it", {
  a <- family_problem("poisson_log", 50, 2)
  pair <- on_host(cl_objective(cl_likelihood("poisson_log", a$y, a$x)))
  found <- optim(c(0, 0, 0), pair$fn, pair$gr, method = "BFGS", control = list(reltol = 1e-14))
  expect_equal(found$par, unname(coef(glm(a$y ~ a$x, family = poisson))), tolerance = 1e-5)
})

test_that("a planted wrong gradient is found in each family", {
  for (family in families) {
    a <- family_problem(family, 30, 2)
    own <- if (family %in% names(own_of)) own_of[[family]]
    f <- on_host(cl_likelihood(family, a$y, a$x, trials = a$trials))
    wrong <- function(beta) {
      value <- do.call(f, c(list(a$alpha, beta), a[own], list(gradient = "beta")))
      structure(as.vector(value), gradient = attr(value, "gradient")$beta + 1e-3)
    }
    expect_gt(max(cl_check_gradient(wrong, a$beta)$error), 1e-6, label = family)
  }
})

# ---- second derivatives ----------------------------------------------------------------------

test_that("the Hessian is the derivative of the gradient", {
  for (family in c("bernoulli_logit", families)) {
    a <- family_problem(family, 40, 3)
    if (family == "categorical_logit") a$alpha <- c(0.2, -0.1, 0, 0.4)
    slope <- function(beta) {
      a$beta[] <- beta
      as.vector(gradient_of(lpdf(a, gradient = "beta"))$beta)
    }
    at <- as.vector(a$beta)
    each_engine({
      hessian <- do.call(cl_glm_hessian, a)
      by_differences <- vapply(seq_along(at), function(i) {
        step <- replace(numeric(length(at)), i, 1e-5)
        (slope(at + step) - slope(at - step)) / 2e-5
      }, at)
      expect_lt(max(abs(hessian - by_differences)) / max(abs(hessian)), 1e-8, label = family)
      on_device <- do.call(cl_glm_hessian, replace(a, "x", list(as_cl(a$x))))
      expect_s4_class(on_device, "clMatrix")
      expect_equal(as.matrix(on_device), hessian, tolerance = 1e-12, ignore_attr = TRUE)
    })
  }
})

test_each_engine("the Hessian gives glm()'s standard errors, and errors name the argument", {
  a <- family_problem("bernoulli_logit", 200, 2)
  x <- cbind(1, a$x)
  fit <- glm(a$y ~ x - 1, family = binomial, control = list(epsilon = 1e-14))
  hessian <- cl_glm_hessian("bernoulli_logit", a$y, x, beta = coef(fit))
  expect_equal(solve(-hessian), vcov(fit), tolerance = 1e-6, ignore_attr = TRUE)
  expect_identical(cl_glm_hessian("poisson_log", 1, matrix(0, 2, 0)), matrix(0, 0, 0))
  expect_equal(cl_glm_hessian("poisson_log", numeric(), matrix(0, 0, 2), beta = 1:2),
               matrix(0, 2, 2))
  expect_refused("beta", cl_glm_hessian("poisson_log", 1, x, beta = matrix(0, 3, 2)))
  expect_refused("sigma", cl_glm_hessian("normal_id", 1, x, beta = 1:3))
  expect_refused("y", cl_glm_hessian("poisson_log", -1, x, beta = 1:3))
})
