# Products (R/matrix-products.R): values, shapes, names and vectors as in base R, for all pairs of
# views.

random <- function(m, n, seed = 1) {
  set.seed(seed)
  matrix(rnorm(m * n), m, n)
}

views <- c("general", "lower", "upper", "symmetric")

# The matrix that a view represents.
masked <- function(x, view) {
  switch(view, general = x, lower = x * lower.tri(x, TRUE), upper = x * upper.tri(x, TRUE),
         symmetric = {
           x[upper.tri(x)] <- t(x)[upper.tri(x)]
           x
         })
}

sizes <- list(c(1, 1, 1), c(5, 3, 4), c(64, 64, 64), c(65, 33, 17), c(130, 1, 7), c(1, 130, 9),
              c(1, 1, 300), c(2, 2, 5000), c(127, 129, 65))

test_each_engine("products agree with base R at odd, tall and wide sizes", {
  for (s in sizes) {
    a <- random(s[1], s[3])
    b <- random(s[3], s[2], 2)
    scale <- sqrt(s[3]) * 4
    expect_close(cl_matmul(a, b), a %*% b, 1e-14, scale)
    expect_close(as_cl(a) %*% as_cl(b), a %*% b, 1e-14, scale)
    expect_close(crossprod(as_cl(t(a)), b), a %*% b, 1e-14, scale)
    expect_close(tcrossprod(a, as_cl(t(b))), a %*% b, 1e-14, scale)
    expect_close(cl_crossprod(t(a), b), a %*% b, 1e-14, scale)
    expect_close(cl_tcrossprod(a, t(b)), a %*% b, 1e-14, scale)
  }
})

test_each_engine("base R in, base R out; a clMatrix in, a clMatrix out", {
  a <- random(3, 3)
  expect_true(is.matrix(cl_matmul(a, a)) && !isS4(cl_matmul(a, a)))
  expect_s4_class(cl_matmul(a, as_cl(a)), "clMatrix")
  expect_s4_class(a %*% as_cl(a), "clMatrix")
  expect_s4_class(as_cl(a) %*% a, "clMatrix")
  expect_s4_class(crossprod(as_cl(a)), "clMatrix")
})

test_each_engine("symmetric products are exactly symmetric and have the symmetric view", {
  for (s in list(c(5, 3), c(70, 65), c(3, 200), c(1, 4), c(4, 1))) {
    x <- random(s[1], s[2])
    p <- crossprod(as_cl(x))
    q <- tcrossprod(as_cl(x))
    expect_identical(p@view, "symmetric")
    expect_identical(q@view, "symmetric")
    expect_identical(as.matrix(p), t(as.matrix(p)))
    expect_identical(as.matrix(q), t(as.matrix(q)))
    expect_close(p, crossprod(x), 1e-13)
    expect_close(q, tcrossprod(x), 1e-13)
    expect_close(cl_crossprod(x), crossprod(x), 1e-13)
    expect_close(cl_tcrossprod(x), tcrossprod(x), 1e-13)
  }
})

test_each_engine("every pair of views gives the masked product", {
  n <- 67
  x <- random(n, n)
  y <- random(n, n, 2)
  for (u in views) for (v in views) {
    a <- masked(x, u)
    b <- masked(y, v)
    p <- as_cl(x, u) %*% as_cl(y, v)
    expect_close(p, a %*% b, 1e-13)
    if (u == v && u %in% c("lower", "upper")) expect_identical(p@view, u)
    expect_close(crossprod(as_cl(x, u), as_cl(y, v)), t(a) %*% b, 1e-13)
    expect_close(tcrossprod(as_cl(x, u), as_cl(y, v)), a %*% t(b), 1e-13)
  }
})

test_each_engine(
  "zero rows and columns give the correct empty shape, zero inner dimension gives zeros", {
  empty <- function(m, n) matrix(0, m, n)
  for (s in list(c(0, 3, 2), c(3, 0, 2), c(3, 2, 0), c(0, 0, 0), c(0, 0, 2))) {
    a <- empty(s[1], s[3])
    b <- empty(s[3], s[2])
    expect_identical(cl_matmul(a, b), a %*% b)
    expect_identical(as.matrix(as_cl(a) %*% b), a %*% b)
    expect_identical(cl_crossprod(t(a), b), a %*% b)
    expect_identical(as.matrix(tcrossprod(as_cl(a), t(b))), a %*% b)
    expect_identical(cl_crossprod(a), crossprod(a))
    expect_identical(as.matrix(tcrossprod(as_cl(a))), tcrossprod(a))
  }
})

test_each_engine("vectors are rows or columns as in base R", {
  m <- random(3, 4)
  row <- random(1, 4)
  column <- random(3, 1)
  cases <- list(list(m, 1:4), list(1:3, m), list(row, 1:4), list(column, 1:5), list(1:5, row),
                list(2, row), list(column, 2), list(1:3, column))
  for (case in cases) {
    expected <- case[[1]] %*% case[[2]]
    expect_close(cl_matmul(case[[1]], case[[2]]), expected)
    if (is.matrix(case[[1]])) expect_close(as_cl(case[[1]]) %*% case[[2]], expected)
    if (is.matrix(case[[2]])) expect_close(case[[1]] %*% as_cl(case[[2]]), expected)
  }
  expect_close(cl_matmul(1:3, 4:6), 1:3 %*% 4:6)
  expect_refused("b", cl_matmul(1:3, 2))
  expect_close(cl_matmul(2, 1:3), 2 %*% 1:3)
  expect_close(cl_crossprod(1:3), crossprod(1:3))
  expect_close(cl_crossprod(1:3, 4:6), crossprod(1:3, 4:6))
  expect_close(cl_tcrossprod(1:3), tcrossprod(1:3))
  expect_close(cl_tcrossprod(1:3, 4:6), tcrossprod(1:3, 4:6))
  expect_close(crossprod(as_cl(m), 1:3), crossprod(m, 1:3))
  expect_close(crossprod(1:3, as_cl(m)), crossprod(1:3, m))
  expect_close(crossprod(as_cl(row), 1:5), crossprod(row, 1:5))
  expect_refused("y", tcrossprod(as_cl(m), 1:4), crossprod(1:5, as_cl(row)))
  expect_close(tcrossprod(1:4, as_cl(m)), tcrossprod(1:4, m))
  expect_close(tcrossprod(as_cl(column), 1:5), tcrossprod(column, 1:5))
  expect_close(tcrossprod(1:5, as_cl(column)), tcrossprod(1:5, column))
})

test_each_engine("names agree with base R", {
  a <- matrix(1:4 + 0, 2, dimnames = list(r = c("a", "b"), c("u", "v")))
  b <- matrix(1:4 + 0, 2, dimnames = list(NULL, s = c("p", "q")))
  for (pair in list(list(a, b), list(b, a), list(a, a), list(b, b), list(a, diag(2)))) {
    x <- pair[[1]]
    y <- pair[[2]]
    expect_identical(cl_matmul(x, y), x %*% y)
    expect_identical(as.matrix(as_cl(x) %*% y), x %*% y)
    expect_identical(cl_crossprod(x, y), crossprod(x, y))
    expect_identical(as.matrix(crossprod(as_cl(x))), crossprod(x))
    expect_identical(as.matrix(tcrossprod(x, as_cl(y))), tcrossprod(x, y))
    expect_identical(cl_tcrossprod(x), tcrossprod(x))
  }
})

test_that("missing and infinite values propagate as in base R", {
  a <- random(5, 4)
  a[2, 3] <- NaN
  a[4, 1] <- Inf
  b <- abs(random(4, 3)) + 1
  each_engine(expect_close(as_cl(a) %*% b, a %*% b))
})

test_each_engine("long sums over few results are accurate", {
  n <- 100000
  x <- cbind(rep(1, n), sin(seq_len(n)))
  exact <- c(n, sum(x[, 2]), sum(x[, 2]), sum(x[, 2]^2))
  expect_close(as.vector(crossprod(as_cl(x))), exact, 1e-14)
  expect_close(as.vector(t(as_cl(x)) %*% as_cl(x)), exact, 1e-14)
})

test_each_engine("the same product gives the same bits", {
  x <- random(131, 67)
  first <- as.matrix(crossprod(as_cl(x)))
  for (i in 1:5) expect_identical(as.matrix(crossprod(as_cl(x))), first)
})

test_that("bad operands are rejected by name", {
  m <- matrix(1, 2, 3)
  bad <- list(NULL, list(1), "a", 1i, mean, factor(1), array(1, c(1, 1, 1)))
  for (x in bad) {
    expect_refused("a", cl_matmul(x, m))
    expect_refused("b", cl_matmul(m, x), cl_matmul(diag(2), x))
    expect_refused("x", cl_crossprod(x, m))
    if (!is.null(x)) expect_refused("y", cl_tcrossprod(m, x))
  }
  each_engine({
    expect_refused("b", cl_matmul(m, m), as_cl(m) %*% m, as_cl(m) %*% 1:2, as_cl(m) %*% "a")
    expect_refused("y", cl_crossprod(m, matrix(1, 3, 1)), cl_tcrossprod(m, matrix(1, 3, 2)))
  })
})

test_that("every pair of a matrix and a vector conforms as in base R, empty ones too", {
  values <- function(m, n) matrix(seq_len(m * n) + 0, m, n)
  each_engine(for (m in 0:3) for (n in 0:3) for (k in 0:4) {
    v <- seq_len(k) - 2
    expect_as_base(x %*% v, x = values(m, n))
    expect_as_base(v %*% x, x = values(m, n))
    expect_as_base(crossprod(x, v), x = values(m, n))
    expect_as_base(crossprod(v, x), x = values(m, n))
    expect_as_base(tcrossprod(x, v), x = values(m, n))
    expect_as_base(tcrossprod(v, x), x = values(m, n))
  })
  for (k in 0:3) for (l in 0:3) {
    v <- seq_len(k) + 0
    w <- seq_len(l) + 1
    pairs <- list(matmul = c(cl_matmul, `%*%`), crossprod = c(cl_crossprod, crossprod),
                  tcrossprod = c(cl_tcrossprod, tcrossprod))
    for (name in names(pairs)) {
      own <- outcome(pairs[[name]][[1]](v, w))
      base <- outcome(pairs[[name]][[2]](v, w))
      expect_identical(own$failed, base$failed, info = paste(name, k, l))
      if (!base$failed) expect_identical(own$value, base$value)
    }
  }
})

test_that("sparse matrices of package Matrix on either side of a clMatrix", {
  skip_if_not_installed("Matrix")
  x <- matrix(c(1, 0, 2, 5, 3, 0, 0, 0, 4), 3)
  general <- methods::as(x, "CsparseMatrix")
  sparse <- list(Matrix::Diagonal(3, 1:3), general, methods::as(general, "RsparseMatrix"),
                 methods::as(general, "TsparseMatrix"), Matrix::tril(general),
                 Matrix::forceSymmetric(general), methods::as(3:1, "pMatrix"), general > 0)
  on_host({
    y <- matrix(sin(1:9), 3) + 2 * diag(3)
    cl <- as_cl(y)
    for (s in sparse) {
      dense <- as.matrix(s) + 0
      for (f in list(`%*%`, crossprod, tcrossprod, `+`, `/`, cbind)) {
        expect_equal(unname(as.matrix(f(s, cl))), unname(f(dense, y)))
        expect_equal(unname(as.matrix(f(cl, s))), unname(f(y, dense)))
      }
      expect_equal(as.matrix(solve(s, cl)), solve(dense, y))
      expect_equal(as.matrix(solve(cl, s)), solve(y, dense))
    }
  })
})
