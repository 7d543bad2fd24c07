# Traced sparse matrices (R/trace-sparse.R): values against the package Matrix, which runs the same
# functions with numbers, gradients against differences.

sparse_parts <- function(n = 12L) {
  set.seed(31)
  m <- Matrix::bandSparse(n, k = 0:2, diagonals = list(rep(3, n), rep(-1, n - 1), rep(0.3, n - 2)),
                          symmetric = TRUE)
  list(n = n, m = m, g = methods::as(m, "generalMatrix"), d = Matrix::Diagonal(n, runif(n) + 1),
       w = Matrix::rsparsematrix(n, n, 0.2), y = rnorm(n), z = matrix(rnorm(2L * n), n))
}

test_that("determinant and solution of a sparse matrix on either engine", {
  skip_if_not_installed("Matrix")
  p <- sparse_parts()
  list2env(p, environment())
  each_engine({
    expect_as_matrix(function(k) c(Matrix::determinant(k[1]^2 * d + k[2]^2 * g)$modulus))
    expect_as_matrix(function(k) sum(solve(k[1]^2 * d + g * k[2]^2, z * k[1])^3))
    expect_fault(cl_gradient(function(k) sum((k * d) %*% 1:3))(2), "argument")
  })
})

test_that("what makes sparse matrices of others", {
  skip_if_not_installed("Matrix")
  each_engine({
    list2env(sparse_parts(), environment())
    functions <- list(
      function(k) sum(cbind(k[1] * w, k[2] * d, y, 2)^2),
      function(k) sum(rbind(y, w, k[1] * d)^2) * k[2],
      function(k) sum(Matrix::cbind2(k[1] * w, z)^2) * k[2],
      function(k) sum(Matrix::rbind2(w, k[1] * g) * cbind(rep(k[2], 2 * n), 1)[, rep(1, n)]),
      function(k) sum(abs(k[1] * w)) + sum(exp(k[2] * w)) + sum(sin(k[1] * m)^2),
      function(k) {
        q <- k[1] * w
        q[2, 3] <- k[2]
        q[1, ] <- k[1] * y
        q[cbind(4:6, 2:4)] <- 1:3
        q[7:8, 1:2] <- matrix(k[2] * 1:4, 2)
        q[w > 1] <- k[2]
        sum((q %*% z)^2)
      },
      function(k) {
        q <- w
        q[3, 3] <- k[1]
        q[, 4] <- w[, 5]
        sum(q^3) * k[2]
      },
      function(k) {
        q <- w
        Matrix::diag(q) <- rep(k, n / 2)
        r <- k[1] * w[1:5, ]
        Matrix::diag(r) <- k[2]
        sum(q^3) + sum(r^2)
      },
      function(k) sum(Matrix::symmpart(k[1] * w)^2) + sum(Matrix::skewpart(k[2] * w)^2 * (1:n)),
      function(k) sum(Matrix::band(k[1] * w, -1, 2)^2) * k[2],
      function(k) sum(Matrix::Matrix(k[1] * z, sparse = TRUE)^2) + sum(Matrix::Matrix(k, 2, 2)^2),
      function(k) {
        q <- Matrix::bandSparse(n, k = -1:2, diagonals = list(k[2] * y, k[1] * y, y[-1], k[2] * y))
        sum((q %*% z)^2)
      },
      function(k) {
        q <- Matrix::bandSparse(n, k = 0:1, diagonals = cbind(k[1] + y^2, k[2]),
                                symmetric = TRUE)
        c(Matrix::determinant(q + 9 * d)$modulus) + sum(q * (1:n))
      },
      function(k) sum(Matrix::spMatrix(3, 4, 1:3, c(1, 4, 2), k[1] * 1:3)^2) +
        sum(Matrix::.sparseDiagonal(n, k[2])^2) + sum(Matrix::.symDiagonal(n, k[2])^3))
    for (f in functions) expect_as_matrix(f)
    # these stay sparse: a dense matrix would be refused
    large <- Matrix::Diagonal(1e4, 2)
    stays <- list(
      function(k) cbind(k * large, large), function(k) rbind(large, k * large, 1:1e4),
      function(k) sin(k * large), function(k) Matrix::symmpart(k * large),
      function(k) Matrix::band(k * large, 0, 1),
      function(k) kronecker(Matrix::Diagonal(3), k * large),
      function(k) crossprod(k * large, large), function(k) Matrix::bdiag(k * large, large),
      function(k) {
        q <- k * large
        q[2, 3] <- k
        q[, 5] <- 1
        q
      })
    for (f in stays) {
      got <- cl_gradient(function(k) sum(f(k)))(0.7)
      expect_equal(c(got), sum(f(0.7)), tolerance = 1e-12)
    }
    expect_fault(cl_gradient(function(k) sum(cbind(k * w, k * Matrix::Diagonal(3))))(1), "argument")
    expect_fault(cl_gradient(function(k) {
      q <- k * w
      Matrix::diag(q) <- 1:2
      sum(q)
    })(1), "argument")
  })
})

test_that("factors of sparse matrices", {
  skip_if_not_installed("Matrix")
  each_engine({
    list2env(sparse_parts(), environment())
    functions <- list(
      function(k) Matrix::det(k[1]^2 * d + g) * k[2],
      function(k) sum(solve(k[1] * d + k[2] * m, y)^2),
      function(k) sum(Matrix::diag(solve(k[1]^2 * d + g))) * k[2],
      function(k) sum(log(Matrix::diag(Matrix::chol(k[1] * d + k[2] * m)))),
      function(k) c(Matrix::determinant(Matrix::Diagonal(n) - k[1] * w / 5)$modulus) + k[2],
      function(k) sum(solve(m, z * k[1])^2) + k[2],
      function(k) sum(solve(Matrix::Diagonal(n) - k[1] * w / 5, y * k[2])^2))
    for (f in functions) expect_as_matrix(f)
    # second derivatives
    f <- function(k) {
      q <- k[1]^2 * d + k[2]^2 * g
      c(Matrix::determinant(q)$modulus) + sum(solve(q, y)^2)
    }
    gradient <- cl_gradient(f)
    slope <- function(j) {
      slopes_of(function(k) attr(gradient(k), "gradient")$k[j], c(1.3, 0.7), 1e-3)
    }
    expect_equal(unname(cl_hessian(f)(c(1.3, 0.7))), cbind(slope(1), slope(2)), tolerance = 1e-7)
    # the values of a call, and several at once
    again <- cl_gradient(function(k) if (k[1] > 1) f(k) else k[2], retrace = TRUE)
    expect_equal(c(again(c(1.3, 0.7))), f(c(1.3, 0.7)), tolerance = 1e-10)
    several <- cl_map_gradient(gradient, k = cbind(c(1.3, 0.7), c(0.9, 1.2)))
    expect_equal(c(several), c(f(c(1.3, 0.7)), f(c(0.9, 1.2))), tolerance = 1e-10)
    # no factor
    expect_identical(c(cl_gradient(function(k) c(Matrix::determinant(m - k * d)$modulus))(5)), NaN)
  })
})

test_that("second derivatives of large sparse factors are refused with the largest order", {
  skip_if_not_installed("Matrix")
  banded <- function(n) Matrix::bandSparse(n, k = 0:1, symmetric = TRUE,
                                           diagonals = list(rep(2, n), rep(-0.5, n - 1)))
  on_host({
    q <- banded(1001)
    f <- function(k) c(Matrix::determinant(exp(k) * q)$modulus)
    expect_match(conditionMessage(expect_fault(cl_hessian(f)(0.1), "argument")), "order 1000$")
    q <- banded(8193)
    f <- function(k) sum(log(Matrix::diag(chol(exp(k) * q))))
    expect_match(conditionMessage(expect_fault(cl_hessian(f)(0.1), "argument")), "order 8192$")
  })
})

test_that("chol() of a sparse matrix has the elements and derivatives of the dense factor", {
  skip_if_not_installed("Matrix")
  held <- NULL
  check <- function(n, share, second = TRUE) {
    set.seed(n)
    m <- Matrix::rsparsematrix(n, n, share, symmetric = TRUE)
    a <- Matrix::forceSymmetric(m + Matrix::Diagonal(n, Matrix::rowSums(abs(m)) + runif(n, 0.5, 2)))
    b <- Matrix::forceSymmetric(Matrix::crossprod(Matrix::rsparsematrix(n, n, 0.1)))
    w <- matrix(rnorm(n^2), n)
    k <- c(1.2, 0.3)
    sparse <- cl_gradient(function(k) {
      r <- chol(k[1]^2 * a + exp(k[2]) * b)
      held <<- list(.subset2(r, "i"), .subset2(r, "j"))
      sum(w * as.matrix(r)) + sum(sin(Matrix::diag(r)))
    })
    dense <- cl_gradient(function(k) {
      r <- chol(k[1]^2 * as.matrix(a) + exp(k[2]) * as.matrix(b))
      sum(w * r) + sum(sin(diag(r)))
    })
    got <- sparse(k)
    want <- dense(k)
    root <- Matrix::chol(k[1]^2 * a + exp(k[2]) * b)
    expect_equal(c(got), sum(w * as.matrix(root)) + sum(sin(Matrix::diag(root))), tolerance = 1e-12)
    expect_equal(got, want, tolerance = 1e-11)
    if (n > 1L) { # that of order 1 is a dense matrix
      expect_identical(held[[1]], root@i)
      expect_identical(held[[2]], rep(seq_len(n) - 1L, diff(root@p)))
    }
    if (second) expect_equal(cl_hessian(sparse)(k), cl_hessian(dense)(k), tolerance = 1e-10)
  }
  on_host(for (r in seq_len(full_or_quick(200L, 20L))) check(1L + r %% 37L, r / 800, r %% 5L == 0L))
  each_engine(check(11L, 0.1, second = FALSE))
  each_engine({ # a ring, whose last row fills in; beyond the order of dense matrices
    n <- 9000L
    ring <- Matrix::sparseMatrix(c(1:n, 1:(n - 1), 1), c(1:n, 2:n, n),
                                 x = rep(c(3, -1, -1), c(n, n - 1, 1)), symmetric = TRUE)
    z <- sin(seq_len(n))
    f <- function(k) sum((chol(exp(k) * ring) %*% z)^2)
    got <- cl_gradient(f)(0.4)
    want <- exp(0.4) * sum(z * (ring %*% z)) # |R z|^2 = z' A z
    expect_equal(c(got), want, tolerance = 1e-12)
    expect_equal(unname(attr(got, "gradient")$k), want, tolerance = 1e-12)
    # no factor
    expect_identical(c(cl_gradient(function(k) sum(chol(ring - k * Matrix::Diagonal(n))))(9)), NaN)
  })
})

test_that("the precision of a field as SPDE models have it", {
  skip_if_not_installed("Matrix")
  each_engine({
    side <- full_or_quick(12L, 6L)
    n <- side^2
    line <- Matrix::bandSparse(side, k = 0:1, diagonals = list(c(1, rep(2, side - 2), 1),
                                                               rep(-1, side - 1)), symmetric = TRUE)
    eye <- Matrix::Diagonal(side)
    m0 <- Matrix::Diagonal(n, 1 + (1:n %% 3))
    m1 <- kronecker(eye, line) + kronecker(line, eye)
    m2 <- m1 %*% Matrix::solve(m0, m1)
    set.seed(32)
    at <- sample(n, 2 * n / 3)
    y <- rnorm(length(at), sin(at))
    field <- function(p) {
      getAll(p)
      kappa <- exp(log_kappa)
      Q <- kappa^4 * m0 + 2 * kappa^2 * m1 + m2
      -dgmrf(x, 0, exp(2 * log_tau) * Q, log = TRUE) - sum(dnorm(y, mu + x[at], 0.4, log = TRUE))
    }
    obj <- cl_tmb(field, list(mu = 0.1, log_kappa = -0.5, log_tau = 0.2, x = numeric(n)),
                  random = "x")
    expect_false(is.null(statcl:::tmb_sparse(environment(obj$fn)$o)))
    exact <- function(p) {
      k <- exp(p[2])
      q <- exp(2 * p[3]) * as.matrix(k^4 * m0 + 2 * k^2 * m1 + m2)
      v <- solve(q)[at, at] + diag(0.16, length(at))
      r <- chol(v)
      sum(log(diag(r))) + sum(backsolve(r, y - p[1], transpose = TRUE)^2) / 2 +
        length(y) * log(2 * pi) / 2
    }
    p <- c(-0.2, -0.3, 0.1)
    expect_equal(obj$fn(p), exact(p), tolerance = 1e-10)
    expect_equal(c(obj$gr(p)), slopes_of(exact, p, 1e-3), tolerance = 1e-7)
    sdr <- cl_sdreport(obj, nlminb(obj$par, obj$fn, obj$gr)$par)
    he <- optimHess(sdr$par.fixed, exact, control = list(ndeps = rep(1e-3, 3)))
    expect_equal(unname(sdr$cov.fixed), unname(solve(he)), tolerance = 1e-4)
  })
})

on_host({

test_that("arithmetic and products of sparse matrices", {
  skip_if_not_installed("Matrix")
  list2env(sparse_parts(), environment())
  functions <- list(
    function(k) sum((k[1] * m)^2 / k[2]), function(k) sum((k[1] * g + m * k[2])^2),
    function(k) sum(k[1] + m) * k[2], function(k) sum(Matrix::Diagonal(n, x = rep(k, n / 2))^3),
    function(k) sum((m - k[1] * d - k[2] * w)^2), function(k) -sum((-(k[1] * w))^2) + k[2],
    function(k) sum((y * (k[1] * w))^2) + sum((w * z[, 1] * k[2])^2),
    function(k) sum((k[1] * w) * (k[2] * m + d)), function(k) sum(exp(k[1] * w / k[2])),
    function(k) sum(((k[1] * w + k[2] * d) %*% y)^2),
    function(k) sum((Matrix::t(k[1] * w) %*% z)^2) * k[2],
    function(k) sum((y %*% (k[1] * w / k[2]))^3),
    function(k) sum(Matrix::crossprod(k[1] * w, k[2] * w + d)^2),
    function(k) sum((w %*% (k[1] * d) %*% Matrix::t(w * k[2]))^2),
    function(k) sum(Matrix::tcrossprod(k[1] * w + k[2] * d)^2),
    function(k) sum(k[1] * (m %*% z)^2) + sum(k[2] * d))
  for (f in functions) expect_as_matrix(f)
})

test_that("elements, blocks and sums of sparse matrices", {
  skip_if_not_installed("Matrix")
  list2env(sparse_parts(), environment())
  functions <- list(
    function(k) (k[1] * w + k[2] * d)[3, 3] + sum((k[1] * w)[2:5, c(1, 3)]^2),
    function(k) sum((k[1] * w)[, 2] * y) + sum((k[2] * w)[3, ]^2) + (k[2] * d)[2, 3],
    function(k) sum(log(Matrix::diag(k[1] * d + k[2] * m))),
    function(k) sum(kronecker(k[1] * d, k[2] * w)^2),
    function(k) sum(Matrix::rowSums(k[1] * w)^2) + sum(Matrix::colMeans(k[2] * w)^3),
    function(k) sum(Matrix::bdiag(k[1] * d, k[2] * w)^2 * 2) + sum(Matrix::tril(k[1] * w)^2),
    function(k) sum(as.matrix(k[1] * w)^2) * k[2] + nrow(k[1] * m) * k[1],
    function(k) sum(methods::as(k[1] * w, "CsparseMatrix")^3) + k[2],
    function(k) sum(Matrix::sparseMatrix(i = c(1, 2, 2), j = c(1, 3, 3), x = c(k, 3))^2),
    function(k) {
      q <- k[1] * m
      Matrix::diag(q) <- k[2] * y
      sum(q^2)
    })
  for (f in functions) expect_as_matrix(f)
})

test_that("what sparse matrices cannot do says so", {
  skip_if_not_installed("Matrix")
  list2env(sparse_parts(), environment())
  large <- Matrix::Diagonal(1e4)
  e <- expect_fault(cl_gradient(function(k) sum(exp(k * large)))(1), "argument")
  expect_match(conditionMessage(e), "would become dense")
  expect_fault(cl_gradient(function(k) sum(k * m + Matrix::Diagonal(3)))(1), "argument")
  expect_fault(cl_gradient(function(k) sum((k * m) %*% (k * Matrix::Diagonal(3))))(1), "argument")
  expect_fault(cl_gradient(function(k) sum(methods::as(k * m, "factor")))(1), "argument")
})

})
