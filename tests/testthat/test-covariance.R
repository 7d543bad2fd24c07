# Covariance functions from their formulas, in plain R.
formulas <- list(
  exp_quad = function(r) exp(-r^2 / 2),
  exponential = function(r) exp(-r),
  matern32 = function(r) (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
  matern52 = function(r) (1 + sqrt(5) * r + 5 * r^2 / 3) * exp(-sqrt(5) * r),
  rational_quadratic = function(r) 1 / (1 + r^2 / 2))
constructors <- lapply(stats::setNames(paste0("k_", names(formulas)), names(formulas)), get)

plain_leaf <- function(type, x1, x2, sd, lengthscale) {
  r2 <- 0
  lengthscale <- rep_len(lengthscale, ncol(x1))
  for (j in seq_len(ncol(x1))) r2 <- r2 + (outer(x1[, j], x2[, j], `-`) / lengthscale[j])^2
  sd^2 * formulas[[type]](sqrt(r2))
}

plain_rational <- function(x1, x2, sd, lengthscale, alpha) {
  r2 <- 0
  for (j in seq_len(ncol(x1))) r2 <- r2 + (outer(x1[, j], x2[, j], `-`) / lengthscale)^2
  sd^2 * (1 + r2 / (2 * alpha))^-alpha
}

plain_periodic <- function(x1, x2, sd, lengthscale, period) {
  s <- 0
  lengthscale <- rep_len(lengthscale, ncol(x1))
  for (j in seq_len(ncol(x1))) {
    s <- s + sin(pi * outer(x1[, j], x2[, j], `-`) / period)^2 / lengthscale[j]^2
  }
  sd^2 * exp(-2 * s)
}

plain_linear <- function(x1, x2, sd, center) {
  sd <- rep_len(sd, ncol(x1))
  center <- rep_len(center, ncol(x1))
  scaled <- function(x) sweep(sweep(x, 2, center), 2, sd, `*`)
  tcrossprod(scaled(x1), scaled(x2))
}

points <- function(n, p) {
  matrix(runif(n * p, -1, 1), n, p,
         dimnames = list(paste0("r", seq_len(n)), letters[seq_len(p)]))
}

test_each_engine("every covariance function agrees with its formula", {
  set.seed(1)
  x1 <- points(67, 3)
  x2 <- points(34, 3)
  for (type in names(formulas)) {
    kernel <- constructors[[type]](1.7, 0.6)
    expect_close(cl_cov(x1, x2, kernel), `dimnames<-`(plain_leaf(type, x1, x2, 1.7, 0.6), NULL),
                 1e-14)
    ard <- constructors[[type]](0.4, c(0.3, 1, 2))
    k <- cl_cov(x1, kernel = ard)
    expect_close(k, plain_leaf(type, x1, x1, 0.4, c(0.3, 1, 2)), 1e-14)
    expect_identical(k, t(k))
  }
})

test_that("slopes are the derivatives of the formulas of traced values", {
  set.seed(1)
  x1 <- points(7, 3)
  x2 <- points(4, 3)
  w <- matrix(runif(28), 7)
  expect_setequal(names(formulas), names(statcl:::distance_formulas))
  on_host(for (type in names(formulas)) {
    f <- constructors[[type]]
    model <- cl_gradient(function(s, l) sum(w * cl_cov(x1, x2, kernel = f(s, l))))
    adjoint <- cl_cov_adjoint(w, x1, x2, kernel = f(1.7, 0.6))
    expect_close(unname(adjoint[c("sd", "lengthscale")]),
                 unname(unlist(attr(model(1.7, 0.6), "gradient"))), 1e-12)
  })
})

test_each_engine("functions of more than the distance agree with their formulas", {
  set.seed(11)
  x1 <- unname(points(21, 2))
  x2 <- unname(points(9, 2))
  expect_close(cl_cov(x1, x2, k_rational_quadratic(1.3, 0.6, 0.8)),
               plain_rational(x1, x2, 1.3, 0.6, 0.8), 1e-14)
  expect_close(cl_cov(x1, x2, k_periodic(1.3, c(0.6, 1.1), 0.7)),
               plain_periodic(x1, x2, 1.3, c(0.6, 1.1), 0.7), 1e-14)
  expect_close(cl_cov(x1, x2, k_linear(c(1.3, 0.4), center = 0.2)),
               plain_linear(x1, x2, c(1.3, 0.4), 0.2), 1e-14)
  expect_identical(cl_cov(x1, x2, k_constant(3)), matrix(9, 21, 9))
  expect_identical(cl_cov(x1, kernel = k_white(3)), diag(9, 21))
  expect_identical(cl_cov(x1, x1, k_white(3)), matrix(0, 21, 21))
  # whole periods away, far from zero
  expect_close(cl_cov(2^20, 2^20 + 1000.25, k_periodic(1, 1, 0.5))[1], exp(-2), 1e-12)
})

test_that("products of kernels multiply covariances, nested in any way", {
  set.seed(12)
  x <- unname(points(17, 2))
  leaves <- list(k_exp_quad(1.2, c(0.5, 0.9)), k_periodic(0.7, 0.8, 0.6, 1), k_linear(0.9, 2, 0.1),
                 k_matern32(1.1, 0.4), k_white(0.3), k_constant(0.8), k_exponential(0.5, 2))
  k <- leaves
  kernel <- (k[[1]] + k[[2]] * (k[[3]] + k[[4]])) * (k[[5]] + k[[6]]) + k[[7]] * k[[1]] * k[[2]]
  each_engine({
    m <- lapply(leaves, function(leaf) cl_cov(x, kernel = leaf))
    want <- (m[[1]] + m[[2]] * (m[[3]] + m[[4]])) * (m[[5]] + m[[6]]) + m[[7]] * m[[1]] * m[[2]]
    expect_close(cl_cov(x, kernel = kernel), want, 1e-13)
    expect_close(kernel_variance(k[[1]] * k[[3]] + k[[5]], x),
                 diag(m[[1]]) * diag(m[[3]]), 1e-14)
  })
  expect_length(kernel_products(kernel), 7)
})

test_that("sums of kernels add covariances, and 'columns' selects columns", {
  set.seed(2)
  x <- points(20, 3)
  kernel <- k_exp_quad(2, 0.5, columns = "b") + k_matern32(0.3, c(1, 2), columns = c(3, 1)) +
    k_matern52(1, 3)
  want <- plain_leaf("exp_quad", x[, "b", drop = FALSE], x[, "b", drop = FALSE], 2, 0.5) +
    plain_leaf("matern32", x[, c(3, 1)], x[, c(3, 1)], 0.3, c(1, 2)) +
    plain_leaf("matern52", x, x, 1, 3)
  each_engine(expect_close(cl_cov(x, kernel = kernel), want, 1e-14))
})

test_that("base R input gives base R output, a clMatrix a clMatrix, with names", {
  set.seed(3)
  x <- points(5, 2)
  each_engine({
    k <- cl_cov(x, kernel = k_matern52())
    expect_true(is.matrix(k))
    expect_identical(dimnames(k), list(rownames(x), rownames(x)))
    r <- cl_cov(as_cl(x), kernel = k_matern52())
    expect_s4_class(r, "clMatrix")
    expect_identical(r@view, "symmetric")
    expect_identical(as.matrix(r), k)
    between <- cl_cov(as_cl(x), x[1:2, ], k_matern52())
    expect_identical(as.matrix(between), k[, 1:2])
    expect_identical(between@view, "general")
  })
  expect_identical(cl_cov(c(a = 0, b = 1), kernel = k_exp_quad())["a", "b"], exp(-0.5))
  expect_identical(dim(cl_cov(x[0, ], x, k_exp_quad())), c(0L, 5L))
  expect_identical(dim(cl_cov(x[0, ], kernel = k_exp_quad())), c(0L, 0L))
})

test_that("close points lose no digits", {
  x <- 1e6 + c(0, 1e-3)
  each_engine(expect_close(cl_cov(x, kernel = k_exp_quad(1, 1e-3))[2, 1],
                           exp(-0.5 * (diff(x) / 1e-3)^2), 1e-14))
})

test_that("the adjoint is the derivative of a weighted sum", {
  set.seed(4)
  x <- points(37, 2)
  other <- points(9, 2)
  kernel <- k_exp_quad(1.2, c(0.5, 0.8)) + k_matern32(0.7, 0.6) * k_linear(c(0.4, 0.9)) +
    (k_periodic(0.8, 0.9, 1.3, "a") + k_rational_quadratic(0.6, 0.7, 1.4)) * k_matern52(0.5, 1) +
    k_exponential(0.3, 0.4) * k_constant(1.5)
  sym <- crossprod(matrix(rnorm(37^2), 37))
  general <- matrix(rnorm(37 * 9), 37)
  differences <- function(weights, ...) {
    par <- coef(kernel)
    vapply(names(par), function(name) {
      h <- 1e-5 * par[[name]]
      moved <- function(by) {
        sum(weights * cl_cov(x, ..., kernel = update(kernel, replace(par, name, par[[name]] + by))))
      }
      (moved(h) - moved(-h)) / (2 * h)
    }, 0)
  }
  each_engine({
    expect_equal(cl_cov_adjoint(sym, x, kernel = kernel), differences(sym), tolerance = 1e-7)
    expect_equal(cl_cov_adjoint(general, x, other, kernel), differences(general, x2 = other),
                 tolerance = 1e-7)
    expect_equal(cl_cov_adjoint(as_cl(sym), as_cl(x), kernel = kernel),
                 cl_cov_adjoint(sym, x, kernel = kernel), tolerance = 1e-12)
  })
})

test_each_engine("derivatives with respect to the points are those of a weighted sum", {
  set.seed(6)
  x <- points(13, 2)
  other <- points(7, 2)
  kernel <- k_exp_quad(1.2, c(0.5, 0.8)) * k_linear(0.7, center = 0.3) +
    k_periodic(0.8, 0.9, 1.3, "a") + k_matern32(0.6, 0.9)
  sym <- crossprod(matrix(rnorm(13^2), 13))
  general <- matrix(rnorm(13 * 7), 13)
  differences <- function(x, value) {
    x[] <- vapply(seq_along(x), function(i) {
      (value(replace(x, i, x[i] + 1e-5)) - value(replace(x, i, x[i] - 1e-5))) / 2e-5
    }, 0)
    x
  }
  got <- cl_cov_adjoint(sym, x, kernel = kernel, inputs = TRUE)
  expect_named(got, c("parameters", "x1"))
  expect_identical(got$parameters, cl_cov_adjoint(sym, x, kernel = kernel))
  expect_equal(got$x1, differences(x, function(x) sum(sym * cl_cov(x, kernel = kernel))),
               tolerance = 1e-7)
  got <- cl_cov_adjoint(general, as_cl(x), other, kernel, inputs = TRUE)
  expect_s4_class(got$x1, "clMatrix")
  expect_equal(as.matrix(got$x1), differences(x, function(x) {
    sum(general * cl_cov(x, other, kernel))
  }), tolerance = 1e-7)
  expect_equal(unname(got$x2), unname(differences(other, function(other) {
    sum(general * cl_cov(x, other, kernel))
  })), tolerance = 1e-7)
})

test_that("many columns take several passes of the adjoint", {
  set.seed(5)
  x <- points(15, 20)
  x <- cbind(x, x^2, abs(x))
  kernel <- k_exp_quad(1, runif(60, 1, 3))
  w <- crossprod(matrix(rnorm(15^2), 15))
  want <- on_host(cl_cov_adjoint(w, x, kernel = kernel))
  each_engine(expect_close(cl_cov_adjoint(w, x, kernel = kernel), want, 1e-12))
})

test_that("kernels have named parameters", {
  expect_identical(coef(k_exp_quad(2, 3)), c(sd = 2, lengthscale = 3))
  expect_named(coef(k_exp_quad(2, 1:2)), c("sd", "lengthscale.1", "lengthscale.2"))
  kernel <- k_exp_quad() + k_matern32(2, c(3, 4)) + k_matern52()
  expect_named(coef(kernel), c("sd1", "lengthscale1", "sd2", "lengthscale2.1", "lengthscale2.2",
                               "sd3", "lengthscale3"))
  changed <- update(kernel, sd2 = 5, lengthscale2.2 = 6)
  expect_identical(coef(changed)[c("sd2", "lengthscale2.2", "sd3")],
                   c(sd2 = 5, lengthscale2.2 = 6, sd3 = 1))
  expect_identical(update(kernel, coef(kernel)), kernel)
  expect_identical(update(kernel), kernel)
  expect_identical(+kernel, kernel)
  composed <- k_rational_quadratic(alpha = 3) * k_periodic(period = 4) + k_linear(c(5, 6))
  expect_identical(coef(composed),
                   c(sd1 = 1, lengthscale1 = 1, alpha1 = 3, sd2 = 1, lengthscale2 = 1, period2 = 4,
                     sd3.1 = 5, sd3.2 = 6))
  expect_identical(coef(update(composed, alpha1 = 2, sd3.2 = 7))[c("alpha1", "sd3.2")],
                   c(alpha1 = 2, sd3.2 = 7))
})

test_that("the meaning of each parameter is known", {
  kernel <- k_exp_quad(1, c(1, 2)) + k_periodic(columns = "b") * (k_matern32() + k_linear(c(1, 1)))
  found <- kernel_parameters(kernel, 2, c("a", "b"))
  expect_identical(found$name, names(coef(kernel)))
  expect_identical(found$role, c("sd", "lengthscale", "lengthscale", "sd", "lengthscale", "period",
                                 "sd", "lengthscale", "sd", "sd"))
  expect_identical(found$column, c(NA, 1L, 2L, NA, 2L, 2L, NA, NA, 1L, 2L))
  expect_identical(found$name[found$redundant], "sd3")
  expect_identical(found$name[found$degree == 2], c("sd1", "sd2"))
})

test_that("kernels print as the code that makes them", {
  kernel <- k_exp_quad(2, 0.25) + k_matern32(1, c(1, 3), columns = c("a", "b"))
  text <- "k_matern32(sd = 1, lengthscale = c(a = 1, b = 3), columns = c(\"a\", \"b\"))"
  expect_output(print(kernel), text, fixed = TRUE)
  expect_identical(eval(parse(text = paste(format(kernel), collapse = "+"))), kernel)
  kernel <- (k_linear(1, c("a", "b"), c(1, 2)) + k_white(0.5)) * k_periodic(1, 2, 3) + k_constant(4)
  expect_identical(eval(parse(text = paste(format(kernel), collapse = "+"))), kernel)
})

test_that("kernels plot", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  drawn <- plot(k_exp_quad(2, 10) + k_matern32(0.5, 1))
  expect_equal(drawn$covariance[1], 4.25)
  expect_equal(drawn$distance[201], 30)
  along <- plot(k_exp_quad(1, c(1, 5), c("a", "b")), column = "b")
  expect_equal(along$covariance[201], exp(-0.5 * 9))
  drawn <- plot(k_exp_quad(2, 10) * k_periodic(1, 1, 3) + k_constant(2) + k_white(1), to = 6)
  expect_equal(drawn$covariance[101], 4 * exp(-0.5 * 0.09) + 4)
})

test_that("bad kernels and points are rejected", {
  x <- points(4, 2)
  for (bad in list(0, -1, NA_real_, Inf, "a", c(1, 2), NULL)) {
    expect_refused("sd", k_exp_quad(sd = bad))
  }
  for (bad in list(0, c(1, -1), NaN, "a", numeric())) {
    expect_refused("lengthscale", k_matern32(lengthscale = bad))
  }
  for (bad in list(0, 1.5, NA, c(1, 1), character())) {
    expect_refused("columns", k_matern52(columns = bad))
  }
  expect_refused("sd", k_linear(1:3, columns = 1:2), k_white(0))
  expect_refused("center", k_linear(center = 1:3, columns = 1:2))
  expect_refused("alpha", k_rational_quadratic(alpha = 0))
  expect_refused("period", k_periodic(period = c(1, 2)))
  expect_fault(k_exp_quad() - k_matern32(), "argument")
  expect_refused("e2", k_exp_quad() * 2, k_exp_quad() + 1)
  expect_fault(update(k_exp_quad(), wrong = 1), "argument")
  expect_fault(update(k_exp_quad(), sd = -1), "argument")
  each_engine({
    expect_refused("kernel", cl_cov(x, kernel = 1), cl_cov(x, kernel = k_exp_quad(columns = 3)),
                   cl_cov(x, kernel = k_exp_quad(columns = "z")), cl_cov(x, kernel = k_linear(1:3)))
    expect_refused("x1", cl_cov("a", kernel = k_exp_quad()))
  })
})

test_each_engine("a freed matrix is reported as stale", {
  gone <- as_cl(points(4, 2))
  cl_free(gone)
  expect_fault(cl_cov(gone, kernel = k_exp_quad()), "stale")
})

test_each_engine("points far apart and tiny parameters give the limit or an error, never NaN", {
  far <- c(0, 1e300, -1e300, 0, 1)
  near <- c(0, 4, -3, 0, 1)
  twins <- list(k_exp_quad(), k_exponential(), k_matern32(), k_matern52(),
                k_exp_quad() * k_matern32(), k_periodic(period = 0.3), k_constant(),
                k_periodic(period = 1e-10), k_matern52() + k_rational_quadratic(1, 1e200, 0.1))
  for (kernel in twins) {
    # the finite points, and 0 for the rest of what vanishes
    k <- on_base(cl_cov(far, kernel = kernel))
    expect_false(anyNA(k), info = format(kernel))
    expect_equal(k[c(1, 4, 5), c(1, 4, 5)],
                 on_base(cl_cov(far[c(1, 4, 5)], kernel = kernel)), info = format(kernel))
    if (!any(grepl("periodic|constant|rational", format(kernel)))) {
      expect_true(all(k[2:3, c(1, 4, 5)] == 0) && k[2, 3] == 0)
      weights <- matrix(1, 5, 5)
      got <- cl_cov_adjoint(weights, far, kernel = kernel, inputs = TRUE)
      want <- cl_cov_adjoint(weights[1:3, 1:3], far[c(1, 4, 5)], kernel = kernel, inputs = TRUE)
      scales <- grep("^sd", names(want$parameters)) # the far points' own variances
      expect_equal(got$parameters[-scales], want$parameters[-scales])
      expect_equal(got$x1[c(1, 4, 5)], want$x1[1:3])
      expect_true(all(got$x1[2:3] == 0))
    }
  }
  # 1e300 is a whole number, 2^53 - 1 periods of 1 are
  expect_equal(on_base(cl_cov(c(0, 1e300, 2^53 - 1), kernel = k_periodic())), matrix(1, 3, 3))
  # the rest of 1e16 by 3 is 1
  expect_close(cl_cov(c(0, 1e16), kernel = k_periodic(period = 3))[2, 1],
               exp(-2 * sin(pi / 3)^2), 1e-12)
  # s / (2 alpha) overflows, the value does not
  expect_close(cl_cov(c(0, 1, 7), kernel = k_rational_quadratic(1, 1e-3, 1e-305)),
               matrix(1, 3, 3), 1e-12)
  tiny <- 1e-320
  for (kernel in list(k_exp_quad(1, tiny), k_periodic(1, 1, tiny), k_periodic(1, tiny),
                      k_rational_quadratic(1, 1, tiny), k_linear(tiny), k_exp_quad(1e200))) {
    expect_refused("kernel", cl_cov(near, kernel = kernel),
                   cl_cov_adjoint(matrix(1, 5, 5), near, kernel = kernel))
  }
  for (x in list(far, as_cl(far))) {
    for (kernel in list(k_linear(), k_rational_quadratic(), k_matern32() * k_linear())) {
      expect_refused("x1", cl_cov(x, kernel = kernel))
      expect_refused("x2", cl_cov(near, x, kernel))
    }
  }
})
