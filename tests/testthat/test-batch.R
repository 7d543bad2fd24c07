# Batches of small matrices (R/matrix-batch.R, R/matrix-array.R).

skip_on_cran() # long; run by ./dev check

# Matrices n x n x batch with condition numbers from 1 to 1e12; symmetric positive definite ones.
general <- function(n, batch) {
  set.seed(n)
  array(unlist(lapply(seq_len(batch), function(q) {
    values <- 10^(-4 * (q %% 4) * (seq_len(n) - 1) / max(n - 1, 1))
    qr.Q(qr(matrix(rnorm(n * n), n))) %*% (values * qr.Q(qr(matrix(rnorm(n * n), n))))
  })), c(n, n, batch))
}

definite <- function(n, batch) {
  set.seed(n)
  array(unlist(lapply(seq_len(batch), function(q) {
    values <- 10^(-4 * (q %% 4) * (seq_len(n) - 1) / max(n - 1, 1))
    z <- qr.Q(qr(matrix(rnorm(n * n), n)))
    a <- z %*% (values * t(z))
    (a + t(a)) / 2
  })), c(n, n, batch))
}

one <- function(x) max(colSums(abs(x)))

# A call f(matrix, ...) for each matrix of arrays, its results in an array.
each <- function(f, ...) {
  arrays <- list(...)
  batch <- dim(arrays[[1L]])[3L]
  results <- lapply(seq_len(batch), function(q) {
    do.call(f, lapply(arrays, function(x) matrix(x[, , q], dim(x)[1L])))
  })
  array(unlist(results), c(dim(results[[1L]]), batch))
}

eps <- 2^-53
sizes <- full_or_quick(c(1, 3, 8, 9, 33), c(3, 9)) # tests/core has kernels of other orders

test_each_engine("inverses, factors and solutions have LAPACK's residuals, for every condition", {
  for (n in sizes) {
    a <- general(n, 9)
    s <- definite(n, 9)
    b <- array(cos(seq_len(n * 2 * 9)), c(n, 2, 9))
    x <- cl_batch_inverse(a)
    r <- cl_batch_chol(s)
    l <- cl_batch_chol(s, lower = TRUE)
    z <- cl_batch_solve(a, b)
    expect_null(attr(x, "info"))
    expect_identical(l, aperm(r, c(2, 1, 3)))
    for (q in 1:9) {
      aq <- matrix(a[, , q], n)
      xq <- matrix(x[, , q], n)
      rq <- matrix(r[, , q], n)
      zq <- matrix(z[, , q], n)
      expect_lt(one(aq %*% xq - diag(n)) / (one(aq) * one(xq) * n * eps), 10)
      expect_lt(one(crossprod(rq) - s[, , q]) / (one(matrix(s[, , q], n)) * n * eps), 10)
      expect_lt(one(aq %*% zq - b[, , q]) / (one(aq) * one(zq) * n * eps), 10)
      expect_true(all(rq[lower.tri(rq)] == 0))
    }
  }
})

test_that("orders up to 128 work", {
  s <- definite(128, 2)
  each_engine({
    l <- cl_batch_chol(s, lower = TRUE)
    expect_lt(one(tcrossprod(l[, , 1]) - s[, , 1]) / (one(s[, , 1]) * 128 * eps), 10)
  })
})

test_each_engine("determinants, products and triangular solves are those of base R", {
  for (n in full_or_quick(c(1, 3, 8, 12), c(3, 12))) {
    a <- definite(n, 5) + 0.1 * general(n, 5)
    b <- array(sin(seq_len(n * 4 * 5)), c(n, 4, 5))
    expected <- vapply(1:5, function(q) det(matrix(a[, , q], n)), 0)
    expect_close(cl_batch_det(a), expected, 1e-9)
    log_det <- cl_batch_det(a, log = TRUE)
    expect_close(as.vector(log_det), log(abs(expected)), 1e-9)
    expect_identical(attr(log_det, "sign"), as.integer(sign(expected)))
    expect_close(cl_batch_matmul(a, b), each(`%*%`, a, b))
    expect_close(cl_batch_matmul(b, a, transpose_a = TRUE), each(crossprod, b, a))
    expect_close(cl_batch_matmul(a, b[, , 1:5, drop = FALSE], transpose_a = TRUE),
                 each(crossprod, a, b))
    expect_close(cl_batch_matmul(b, b, transpose_b = TRUE), each(tcrossprod, b, b))
    a <- a + array(diag(3, n), c(n, n, 5))
    expect_close(cl_batch_tri_solve(a, b), each(forwardsolve, a, b))
    expect_close(cl_batch_tri_solve(a, b, upper = TRUE), each(backsolve, a, b))
    expect_close(cl_batch_tri_solve(a, b, transpose = TRUE),
                 each(function(l, x) forwardsolve(l, x, transpose = TRUE), a, b))
    expect_close(cl_batch_tri_solve(a, b, upper = TRUE, transpose = TRUE),
                 each(function(l, x) backsolve(l, x, transpose = TRUE), a, b))
  }
})

test_each_engine("large products use tiles, and BLAS", {
  a <- array(sin(seq_len(40 * 7 * 3)), c(40, 7, 3))
  b <- array(cos(seq_len(33 * 7 * 3)), c(33, 7, 3))
  long <- array(sin(seq_len(130 * 130)), c(130, 130, 1))
  expect_close(cl_batch_matmul(a, b, transpose_b = TRUE), each(tcrossprod, a, b))
  expect_close(cl_batch_matmul(a, a, transpose_a = TRUE), each(crossprod, a, a))
  expect_close(cl_batch_matmul(long, long, TRUE, TRUE)[, , 1], t(long[, , 1] %*% long[, , 1]),
               1e-12)
})

test_each_engine("determinants have their sign, whatever the order of the pivots", {
  for (n in full_or_quick(c(2, 8, 12, 33), c(3, 12))) {
    set.seed(n)
    a <- array(rnorm(n * n * 20), c(n, n, 20))
    expected <- apply(a, 3, det)
    expect_true(any(expected < 0) && any(expected > 0))
    expect_close(cl_batch_det(a) / expected, rep(1, 20), 1e-9)
    expect_identical(attr(cl_batch_det(a, log = TRUE), "sign"), as.integer(sign(expected)))
  }
})

test_each_engine("intermediate results of determinants neither overflow nor underflow", {
  a <- array(diag(c(1e300, 1e300, 1e-300, 1e-300)), c(4, 4, 2))
  a[1, 1, 2] <- 0
  expect_close(cl_batch_det(a), c(1, 0))
  log_det <- cl_batch_det(a, log = TRUE)
  expect_equal(as.vector(log_det), c(0, -Inf))
  expect_identical(attr(log_det, "sign"), c(1L, 0L))
})

test_each_engine("normal densities are correct, with shared and with separate factors and means", {
  density <- function(y, mean, s) {
    z <- y - mean
    -length(y) / 2 * log(2 * pi) - log(det(s)) / 2 - drop(crossprod(z, solve(s, z))) / 2
  }
  for (n in c(3, 11)) {
    s <- definite(n, 6)[, , c(4, 4, 4, 4, 4, 4)] + array(diag(n), c(n, n, 6))
    y <- matrix(rnorm(n * 6), n)
    m <- matrix(rnorm(n * 6), n)
    r <- cl_batch_chol(s)
    expected <- vapply(1:6, function(q) density(y[, q], m[, q], s[, , q]), 0)
    expect_close(cl_batch_mvn_lpdf(y, m, r), expected)
    expect_close(cl_batch_mvn_lpdf(y, m, aperm(r, c(2, 1, 3)), lower = TRUE), expected)
    expected <- vapply(1:6, function(q) density(y[, q], 0, s[, , 1]), 0)
    expect_close(cl_batch_mvn_lpdf(y, chol = r[, , 1]), expected)
    expected <- vapply(1:6, function(q) density(y[, q], m[, 2], s[, , 1]), 0)
    expect_close(cl_batch_mvn_lpdf(y, m[, 2], r[, , 1]), expected)
  }
})

test_each_engine("the adjoint of the factor is that of cl_chol_adjoint()", {
  for (n in full_or_quick(c(1, 3, 8, 10), c(3, 10))) {
    l <- cl_batch_chol(definite(n, 3)[, , c(1, 1, 2), drop = FALSE] + array(diag(n), c(n, n, 3)),
                       lower = TRUE)
    l_adj <- array(sin(seq_len(n * n * 3)), c(n, n, 3))
    expect_close(cl_batch_chol_adjoint(l, l_adj), each(cl_chol_adjoint, l, l_adj))
  }
})

test_that("matrices that fail do not affect the others", {
  for (n in c(3, 10)) {
    a <- definite(n, 8)
    clean <- a
    a[, , 3] <- 0
    a[n, n, 6] <- -1
    a[1, 1, 7] <- NA
    each_engine({
      expect_warning(x <- cl_batch_chol(a), "3 of 8 matrices are not positive definite or not fin",
                     class = "statcl_warning_batch")
      expect_identical(attr(x, "info"), c(0L, 0L, 1L, 0L, 0L, as.integer(n), NA, 0L))
      expect_true(all(is.nan(x[, , c(3, 6, 7)])))
      expect_identical(x[, , -c(3, 6, 7)], cl_batch_chol(clean)[, , -c(3, 6, 7)])
      warned <- tryCatch(cl_batch_inverse(a), statcl_warning_batch = function(w) w)
      expect_identical(warned$index, c(3L, 7L))
      expect_identical(warned$count, 2L)
      expect_fault(cl_batch_inverse(a, on_error = "stop"), "singular", matrix = 3L, index = 1L)
      expect_fault(cl_batch_chol(a[, , 4:8], on_error = "stop"), "not_pd", matrix = 3L,
                   order = as.integer(n))
      expect_fault(cl_batch_inverse(a[, , 7:8], on_error = "stop"), "nonfinite", matrix = 1L)
      expect_warning(cl_batch_solve(a, seq_len(n)), class = "statcl_warning_batch")
      expect_identical(suppressWarnings(attr(cl_batch_tri_solve(a, seq_len(n)), "info"))[3L], 1L)
      expect_silent(cl_batch_det(a))
      expect_silent(cl_batch_inverse(clean))
    })
  }
})

test_that("a matrix gives the same bits at any index of the batch", {
  for (n in c(3, 8, 11)) {
    a <- definite(n, 1)
    many <- array(a, c(n, n, 131))
    each_engine({
      x <- cl_batch_inverse(many)
      expect_identical(x, array(x[, , 1], dim(x)))
      expect_identical(x[, , 1, drop = FALSE], cl_batch_inverse(a))
      r <- cl_batch_chol(many)
      expect_identical(r, array(cl_batch_chol(a), dim(r)))
    })
  }
})

test_that("right-hand sides may be arrays, matrices and vectors; one matrix may be shared", {
  a <- definite(4, 5) + array(diag(4), c(4, 4, 5))
  b <- matrix(1:20 + 0, 4)
  each_engine({
    expect_close(cl_batch_solve(a, b), vapply(1:5, function(q) solve(a[, , q], b[, q]), numeric(4)))
    expect_close(cl_batch_solve(a, 1:4), vapply(1:5, function(q) solve(a[, , q], 1:4), numeric(4)))
    expect_close(cl_batch_solve(a[, , 1], b), solve(a[, , 1], b))
    expect_close(cl_batch_solve(a, array(b, c(4, 5, 1)))[, , 3], solve(a[, , 3], b))
    expect_close(cl_batch_inverse(a[, , 2]), solve(a[, , 2]))
    expect_close(cl_batch_matmul(a, a[, , 1])[, , 4], a[, , 4] %*% a[, , 1])
  })
  expect_refused("b", cl_batch_solve(a, b[1:3, ]), cl_batch_matmul(a, array(1, c(3, 2, 5))))
  expect_refused("a", cl_batch_inverse(a[1:3, , ]), cl_batch_inverse("a"))
  expect_refused("chol", cl_batch_mvn_lpdf(b, chol = a[, , 1:2]))
})

test_each_engine("empty batches and empty matrices give empty results", {
  expect_identical(cl_batch_inverse(array(0, c(3, 3, 0))), array(0, c(3, 3, 0)))
  expect_identical(dim(cl_batch_chol(array(0, c(0, 0, 4)))), c(0L, 0L, 4L))
  expect_identical(cl_batch_det(array(0, c(0, 0, 2))), c(1, 1))
  expect_identical(dim(cl_batch_solve(array(1, c(2, 2, 0)), array(0, c(2, 3, 0)))), c(2L, 3L, 0L))
  expect_identical(cl_batch_matmul(array(0, c(2, 0, 3)), array(0, c(0, 2, 3))),
                   array(0, c(2, 2, 3)))
})

test_that("lists of matrices of different sizes keep their order", {
  a <- list(x = diag(2) + 1, y = diag(5) * 4, z = diag(2) * 9, w = matrix(4))
  each_engine({
    r <- cl_batch_chol(a)
    expect_identical(names(r), names(a))
    for (i in seq_along(a)) expect_close(r[[i]], chol(a[[i]]))
    b <- list(1:2, diag(5), 3:4, 8)
    x <- cl_batch_solve(a, b)
    for (i in seq_along(a)) expect_close(x[[i]], solve(a[[i]], b[[i]]))
    bad <- a
    bad$y[1, 1] <- -1
    bad <- suppressWarnings(cl_batch_chol(bad))
    expect_identical(attr(bad, "info"), c(0L, 1L, 0L, 0L))
    expect_true(all(is.nan(bad$y)))
  })
  expect_fault(cl_batch_chol(list(diag(2), matrix(1, 2, 3))), "argument")
})

test_that("solutions of lists have the names that solve() gives", {
  a <- list(matrix(c(2, 1, 0, 3), 2, dimnames = list(c("r", "s"), c("p", "q"))),
            matrix(c(2, 1, 0, 3), 2), diag(3) + 1)
  right <- list(list(c(u = 1, v = 2), c(u = 1, v = 2), 1:3),
                list(matrix(1:4, 2, dimnames = list(NULL, c("x", "y"))), matrix(1:2, 2), diag(3)))
  for (b in right) {
    each_engine(for (i in seq_along(a)) {
      got <- cl_batch_solve(a, b)[[i]]
      want <- solve(a[[i]], b[[i]])
      expect_equal(got, want)
      expect_identical(attributes(got), attributes(want))
    })
  }
})

test_each_engine("arrays stay on the device, can be printed and copied back", {
  a <- definite(3, 4)
  dimnames(a) <- list(c("a", "b", "c"), NULL, paste0("q", 1:4))
  d <- as_cl(a)
  expect_s4_class(d, "clArray")
  expect_identical(dim(d), dim(a))
  expect_identical(as.array(d), a)
  expect_identical(dimnames(d), dimnames(a))
  expect_identical(as.array(d[, 2:1, -1]), a[, 2:1, -1])
  expect_identical(as.matrix(d[, , "q3"]), a[, , 3])
  expect_output(print(d), "clArray 3 x 3 x 4")
  expect_output(str(d), "clArray")
  x <- cl_batch_inverse(d)
  expect_s4_class(x, "clArray")
  expect_identical(as.array(x), cl_batch_inverse(a))
  expect_identical(as.vector(as.matrix(cl_batch_det(d))), unname(cl_batch_det(a)))
  z <- cl_batch_solve(d, 1:3)
  expect_s4_class(z, "clMatrix")
  expect_close(z, cl_batch_solve(a, 1:3))
  expect_fault(d[1, 2], "argument")
  cl_free(d)
  expect_fault(cl_batch_inverse(d), "stale")
})

test_that("names are kept", {
  a <- definite(2, 2) + array(diag(2), c(2, 2, 2))
  dimnames(a) <- list(c("r1", "r2"), c("c1", "c2"), c("u", "v"))
  expect_identical(dimnames(cl_batch_inverse(a)), dimnames(a)[c(2, 1, 3)])
  expect_identical(dimnames(cl_batch_chol(a)), dimnames(a))
  expect_identical(names(cl_batch_det(a)), c("u", "v"))
  expect_identical(dimnames(cl_batch_solve(a, 1:2)), dimnames(a)[c(2, 3)])
})

test_each_engine("regressions by group are those of lm()", {
  d <- as.data.frame(ChickWeight)
  d$Square <- d$Time^2
  lm_of <- function(g) lm(weight ~ Time + Square, d[d$Chick == g, ])
  groups <- setdiff(levels(droplevels(d$Chick)), "18") # which has two rows
  fit <- suppressWarnings(cl_batch_lm(weight ~ Time + Square, d, group = Chick))
  expect_identical(rownames(coef(fit)), levels(d$Chick))
  expect_identical(which(fit$info != 0), c("18" = which(levels(d$Chick) == "18")))
  expect_true(all(is.nan(coef(fit)["18", ])))
  long <- as.data.frame(fit)
  for (g in groups) {
    one <- lm_of(g)
    expect_close(coef(fit)[g, ], coef(one), 1e-11)
    expect_close(fit$std.error[g, ], summary(one)$coefficients[, 2], 1e-11)
    expect_close(long$p.value[long$group == g], summary(one)$coefficients[, 4], 1e-9)
    expect_close(sigma(fit)[g], sigma(one), 1e-11)
    expect_close(vcov(fit)[, , g], vcov(one), 1e-10)
    expect_close(residuals(fit)[d$Chick == g], residuals(one), 1e-11, scale = 100)
  }
  expect_identical(nobs(fit)[["1"]], sum(d$Chick == 1))
  expect_output(print(fit), "50 groups, 3 coefficients, 578 observations")
})

test_each_engine("regressions by group are accurate for nearly parallel columns", {
  set.seed(7)
  t <- rep(1e4 + 1:50, 6) # cond(X) about 1e6 after scaling
  g <- rep(letters[1:6], each = 50)
  y <- 3 - 2 * (t - 1e4) + rnorm(300)
  fit <- cl_batch_lm(cbind(1, t), y, g)
  for (i in 1:6) {
    one <- lm(y[g == letters[i]] ~ t[g == letters[i]])
    expect_close(unname(coef(fit)[i, ]), unname(coef(one)), 1e-7)
    expect_close(unname(fit$std.error[i, ]), unname(summary(one)$coefficients[, 2]), 1e-4)
  }
})

test_that("bad input to regressions by group is rejected, collinear groups are reported", {
  expect_refused("group", cl_batch_lm(weight ~ Time, ChickWeight), cl_batch_lm(diag(3), 1:3),
                 cl_batch_lm(weight ~ Time, ChickWeight, group = No_Such))
  x <- cbind(1, 1:12)
  g <- rep(1:3, 4)
  x <- cbind(x, ifelse(g == 2, 2 * x[, 2] + 1, x[, 2]^2))
  expect_warning(fit <- cl_batch_lm(x, sin(1:12), g), class = "statcl_warning_batch")
  expect_identical(unname(fit$info), c(0L, 3L, 0L))
  expect_fault(cl_batch_lm(x, sin(1:12), g, on_error = "stop"), "singular", matrix = 2L, index = 3L)
})
