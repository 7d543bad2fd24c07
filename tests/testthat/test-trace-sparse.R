# Sparse matrices of the package Matrix in traced functions: products against dense ones.

kinds_of_sparse <- function() {
  set.seed(21)
  general <- Matrix::rsparsematrix(7, 5, 0.3)
  list(general = general, symmetric = Matrix::crossprod(general),
       diagonal = Matrix::Diagonal(5, 1:5), unit = Matrix::Diagonal(5),
       triangular = Matrix::triu(Matrix::crossprod(general)), pattern = general != 0,
       triplets = methods::as(general, "TsparseMatrix"),
       none = Matrix::Matrix(0, 4, 5, sparse = TRUE))
}

expect_as_dense <- function(a, f, point, kind) {
  dense <- as.matrix(a) + 0
  suppressWarnings({
    got <- do.call(cl_gradient(f(a)), point)
    want <- do.call(cl_gradient(f(dense)), point)
  })
  expect_equal(got, want, tolerance = 1e-12, info = kind)
  expect_equal(c(got), do.call(f(dense), point), tolerance = 1e-12, info = kind)
}

test_that("a product with a sparse matrix on either engine", {
  skip_if_not_installed("Matrix")
  each_engine({
    a <- kinds_of_sparse()$general
    expect_as_dense(a, function(a) function(u) sum(sin(a %*% u)), list(u = 1:5 / 5), "vector")
    expect_fault(cl_gradient(function(u) sum(a %*% u))(u = 1:7 / 7), "argument")
  })
})

on_host({

test_that("products with sparse matrices of all kinds are those with dense ones", {
  skip_if_not_installed("Matrix")
  kinds <- kinds_of_sparse()
  for (kind in names(kinds)) {
    a <- kinds[[kind]]
    m <- nrow(a)
    n <- ncol(a)
    f <- function(a) {
      function(u, v, x, y) {
        sum(sin(a %*% u)) + sum(exp(v %*% a)) + sum(cos(crossprod(a, v))) +
          sum((a %*% x)^2 * 1:m) + sum((y %*% a)^3) + sum(tcrossprod(a, t(x))^2) +
          sum(tcrossprod(t(x), a)^3) + sum(crossprod(t(y), a)) * u[2] +
          sum(crossprod(v, a) * u) + c(t(v) %*% a %*% u)
      }
    }
    expect_as_dense(a, f, list(u = rnorm(n), v = rnorm(m), x = matrix(rnorm(2 * n), n),
                               y = matrix(rnorm(3 * m), 3)), kind)
  }
})

test_that("a Gaussian Markov random field with a sparse precision", {
  skip_if_not_installed("Matrix")
  set.seed(22)
  n <- 40
  q <- Matrix::bandSparse(n, k = 0:1, diagonals = list(rep(2.2, n), rep(-1, n - 1)),
                          symmetric = TRUE)
  y <- rnorm(n)
  model <- function(q) function(p) {
    getAll(p)
    -dgmrf(u, m, q, log = TRUE, scale = exp(s)) - sum(dnorm(y, u, 0.7, log = TRUE))
  }
  start <- list(m = 0.2, s = -0.3, u = numeric(n))
  sparse <- cl_tmb(model(q), start, random = "u")
  dense <- cl_tmb(model(as.matrix(q)), start, random = "u")
  expect_equal(sparse$fn(), dense$fn(), tolerance = 1e-11)
  expect_equal(sparse$gr(), dense$gr(), tolerance = 1e-9)
  v <- exp(-0.6) * solve(as.matrix(q)) + diag(0.49, n)
  r <- chol(v)
  expect_equal(sparse$fn(), sum(log(diag(r))) + sum(backsolve(r, y - 0.2, transpose = TRUE)^2) / 2 +
                 n * log(2 * pi) / 2, tolerance = 1e-11)
  o <- environment(sparse$fn)$o
  expect_length(statcl:::tmb_sparse(o)$row, 2 * n - 1)
  # rows are draws
  rows <- function(q) {
    cl_tmb(function(p) -sum(dgmrf(p$u, 0, q, log = TRUE)), list(u = diag(n)[1:2, ]))
  }
  expect_equal(rows(q)$fn(), rows(as.matrix(q))$fn(), tolerance = 1e-12)
  expect_fault(cl_tmb(model(q - Matrix::Diagonal(n, 3)), start), "argument", argument = "nll")
})

})
