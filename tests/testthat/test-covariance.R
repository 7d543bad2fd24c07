# Covariance functions from their formulas, in plain R.
formulas <- list(
  exp_quad = function(r) exp(-r^2 / 2),
  matern32 = function(r) (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
  matern52 = function(r) (1 + sqrt(5) * r + 5 * r^2 / 3) * exp(-sqrt(5) * r))
constructors <- list(exp_quad = k_exp_quad, matern32 = k_matern32, matern52 = k_matern52)

plain_leaf <- function(type, x1, x2, sd, lengthscale) {
  r2 <- 0
  lengthscale <- rep_len(lengthscale, ncol(x1))
  for (j in seq_len(ncol(x1))) r2 <- r2 + (outer(x1[, j], x2[, j], `-`) / lengthscale[j])^2
  sd^2 * formulas[[type]](sqrt(r2))
}

points <- function(n, p) {
  matrix(runif(n * p, -1, 1), n, p,
         dimnames = list(paste0("r", seq_len(n)), letters[seq_len(p)]))
}

test_that("every function has its formula", {
  set.seed(1)
  x1 <- points(67, 3)
  x2 <- points(34, 3)
  each_engine(for (type in names(formulas)) {
    kernel <- constructors[[type]](1.7, 0.6)
    expect_close(cl_cov(x1, x2, kernel), `dimnames<-`(plain_leaf(type, x1, x2, 1.7, 0.6), NULL),
                 1e-14)
    ard <- constructors[[type]](0.4, c(0.3, 1, 2))
    k <- cl_cov(x1, kernel = ard)
    expect_close(k, plain_leaf(type, x1, x1, 0.4, c(0.3, 1, 2)), 1e-14)
    expect_identical(k, t(k))
  })
})

test_that("sums add and columns choose", {
  set.seed(2)
  x <- points(20, 3)
  kernel <- k_exp_quad(2, 0.5, columns = "b") + k_matern32(0.3, c(1, 2), columns = c(3, 1)) +
    k_matern52(1, 3)
  want <- plain_leaf("exp_quad", x[, "b", drop = FALSE], x[, "b", drop = FALSE], 2, 0.5) +
    plain_leaf("matern32", x[, c(3, 1)], x[, c(3, 1)], 0.3, c(1, 2)) +
    plain_leaf("matern52", x, x, 1, 3)
  each_engine(expect_close(cl_cov(x, kernel = kernel), want, 1e-14))
})

test_that("base R in gives base R out, a clMatrix a clMatrix, with names", {
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
  kernel <- k_exp_quad(1.2, c(0.5, 0.8)) + k_matern32(0.7, 0.6) + k_matern52(0.5, 1, "a")
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

test_that("many columns need several passes of the adjoint", {
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
})

test_that("kernels print as the code that makes them", {
  kernel <- k_exp_quad(2, 0.25) + k_matern32(1, c(1, 3), columns = c("a", "b"))
  text <- "k_matern32(sd = 1, lengthscale = c(1, 3), columns = c(\"a\", \"b\"))"
  expect_output(print(kernel), text, fixed = TRUE)
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
  expect_fault(plot(k_exp_quad(1, c(1, 5))), "argument", argument = "column")
})

test_that("bad kernels and points are refused", {
  x <- points(4, 2)
  for (bad in list(0, -1, NA_real_, Inf, "a", c(1, 2), NULL)) {
    expect_fault(k_exp_quad(sd = bad), "argument", argument = "sd")
  }
  for (bad in list(0, c(1, -1), NaN, "a", numeric())) {
    expect_fault(k_matern32(lengthscale = bad), "argument", argument = "lengthscale")
  }
  for (bad in list(0, 1.5, NA, c(1, 1), character())) {
    expect_fault(k_matern52(columns = bad), "argument", argument = "columns")
  }
  expect_fault(k_exp_quad(1, c(1, 2, 3), columns = 1:2), "argument", argument = "lengthscale")
  expect_fault(k_exp_quad() * k_matern32(), "argument")
  expect_fault(k_exp_quad() - k_matern32(), "argument")
  expect_fault(k_exp_quad() + 1, "argument", argument = "e2")
  expect_fault(update(k_exp_quad(), wrong = 1), "argument")
  expect_fault(update(k_exp_quad(), sd = -1), "argument")
  each_engine({
    expect_fault(cl_cov(x, kernel = 1), "argument", argument = "kernel")
    expect_fault(cl_cov("a", kernel = k_exp_quad()), "argument", argument = "x1")
    expect_fault(cl_cov(x, x[, 1], k_exp_quad()), "argument", argument = "x2")
    expect_fault(cl_cov(x, kernel = k_exp_quad(columns = 3)), "argument", argument = "kernel")
    expect_fault(cl_cov(x, kernel = k_exp_quad(columns = "z")), "argument", argument = "kernel")
    expect_fault(cl_cov(x, kernel = k_exp_quad(1, 1:3)), "argument", argument = "kernel")
    expect_fault(cl_cov(x[, 0], kernel = k_exp_quad()), "argument", argument = "x")
    expect_fault(cl_cov_adjoint(diag(3), x, kernel = k_exp_quad()), "argument",
                 argument = "k_adj")
  })
})

test_that("a freed matrix is said to be stale, and memory goes back", {
  each_engine({
    gone <- as_cl(points(4, 2))
    cl_free(gone)
    expect_fault(cl_cov(gone, kernel = k_exp_quad()), "stale")
    expect_no_leak(cl_cov(as_cl(matrix(runif(60), 20)), kernel = k_exp_quad()))
  })
})
