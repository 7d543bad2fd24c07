# Edges of sparse matrices in traced functions (R/trace-sparse.R), against the package Matrix: those
# without elements, all its classes, all kinds of subscripts, and steps of cl_scan().

skip_if_not_installed("Matrix")

test_that("sparse matrices without rows, columns or elements", {
  empty <- function(m, n) Matrix::sparseMatrix(integer(), integer(), x = numeric(), dims = c(m, n))
  functions <- list(
    function(k) sum((k * z) %*% rep(1, ncol(z))) + sum(rep(1, nrow(z)) %*% (k * z)) + k,
    function(k) sum(Matrix::crossprod(k * z)) + sum(Matrix::tcrossprod(k * z)) + k,
    function(k) sum(k * z) + sum(Matrix::rowSums(k * z)) + sum(Matrix::colSums(k * z)) + k,
    function(k) sum((k * z) * seq_len(nrow(z))) + sum((k * z + z)^2) + sum(Matrix::t(k * z)) + k,
    function(k) sum(rbind(k * z, z)) + sum(cbind(k * z, z)) + sum(kronecker(k * z, z)) + k,
    function(k) sum(Matrix::bdiag(k * z, z)) + sum((k * z)[integer(), ]) + k,
    function(k) sum(apply(as.matrix(k * z), 1, sum)) + sum(exp(k * z)) + k,
    function(k) {
      q <- k * z
      q[, seq_len(ncol(z))] <- z
      sum(q) + k
    })
  each_engine({
    for (shape in list(c(0, 0), c(0, 4), c(4, 0), c(1, 1), c(3, 3))) {
      z <- empty(shape[1L], shape[2L])
      for (f in functions) expect_as_matrix(function(k) f(k[1] * k[2]))
    }
    z <- empty(0, 0)
    expect_as_matrix(function(k) {
      q <- k[1] * Matrix::crossprod(z)
      c(Matrix::determinant(q)$modulus) + Matrix::det(q) + sum(Matrix::chol(q)) +
        sum(Matrix::solve(q)) + sum(Matrix::solve(q, numeric())) + k[1] * k[2]
    })
    expect_fault(cl_gradient(function(k) sum((k * z)[1, ]))(1), "argument")
    expect_fault(cl_gradient(function(k) {
      q <- k * z
      q[1, 1] <- 2
      sum(q) + k
    })(1), "argument")
  })
})

test_that("classes of sparse matrices, and subscripts of all kinds", {
  g <- Matrix::sparseMatrix(c(1:4, 1, 2), c(1:4, 3, 4), x = c(4:7, 0.5, -0.3), dims = c(4, 4),
                            dimnames = list(letters[1:4], LETTERS[1:4]))
  make <- function(class, ...) methods::new(class, ..., Dim = c(4L, 4L))
  twice <- function(class, ...) make(class, ..., i = c(0L, 0L, 1L), j = c(0L, 0L, 2L))
  unit <- function(class, ...) make(class, ..., i = 0:1, p = c(0L, 0L, 1L, 2L, 2L), diag = "U")
  symmetric <- Matrix::forceSymmetric(g)
  kinds <- list(
    g, g > 0, methods::as(g, "nMatrix"), twice("dgTMatrix", x = 1:3 / 2), twice("ngTMatrix"),
    twice("lgTMatrix", x = c(TRUE, TRUE, FALSE)), symmetric, Matrix::forceSymmetric(g, "L"),
    Matrix::triu(g), unit("dtCMatrix", x = c(0.5, 0.25)),
    Matrix::t(unit("dtCMatrix", x = c(0.5, 0.25))), unit("ntCMatrix"),
    methods::as(c(2L, 1L, 4L, 3L), "pMatrix"), methods::as(c(2L, 2L, 1L, 4L), "indMatrix"),
    Matrix::Diagonal(4), Matrix::Diagonal(4, 1:4), methods::as(g, "RsparseMatrix"),
    methods::as(symmetric, "TsparseMatrix"))
  test <- as.matrix(g) > 1
  functions <- list(
    function(q) q %*% (1:4 / 2), function(q) Matrix::crossprod(q, 1:4 / 2), function(q) q[test],
    function(q) Matrix::tcrossprod(q), function(q) q + Matrix::t(q), function(q) q[-1, ],
    function(q) q[-(1:2), -1], function(q) q[c(TRUE, FALSE), ], function(q) q[c(1, 7)],
    function(q) q[cbind(1:2, 3:4)], function(q) q[c(2, 2, 1), 3:4],
    function(q) {
      q[-1, 2] <- 9
      q[cbind(1:2, 3:4)] <- 8:9
      q
    },
    function(q) {
      q[test] <- 9
      q
    })
  named <- list(
    function(q) q["a", ], function(q) q[c("a", "b"), "C"], function(q) Matrix::t(q)["A", ],
    function(q) (q %*% 1:4)["b", ], function(q) Matrix::crossprod(q)["A", ],
    function(q) (q + g)["a", "C"], function(q) q["a", ]["C"], function(q) as.matrix(q)["a", "C"],
    function(q) Matrix::rowSums(q)["b"],
    function(q) {
      q["a", "B"] <- 9
      q[dimnames(q)[[1]][1:2], ]
    },
    function(q) {
      dimnames(q) <- list(NULL, 5:8)
      q[, "7"]
    })
  weighted <- function(x) sum(as.vector(x) * seq_len(length(x)))
  numbers <- function(f, m) weighted(as.matrix(f(1.5 * m)))
  traced <- function(f, m) c(suppressWarnings(cl_gradient(function(k) weighted(f(k * m)))(1.5)))
  on_host({
    for (m in kinds) for (f in functions) {
      expect_equal(traced(f, m), numbers(f, m * 1), tolerance = 1e-12,
                   info = c(class(m), deparse(f)))
    }
    for (f in named) expect_equal(traced(f, g), numbers(f, g), tolerance = 1e-12, info = deparse(f))
    lost <- Matrix::sparseMatrix(1:4, c(1, 2, 3, 3), x = c(NA, Inf, -Inf, 1), dims = c(4, 4))
    for (f in functions) expect_identical(is.finite(traced(f, lost)), is.finite(numbers(f, lost)))
    # package Matrix itself would end R
    some <- matrix(c(NA, TRUE), 4, 4)
    chosen <- function(q, value) {
      q[some] <- value
      q
    }
    expect_equal(traced(function(q) chosen(q, 9), g),
                 numbers(function(q) chosen(as.matrix(q), 9), g))
    expect_fault(traced(function(q) chosen(q, 1:8), g), "argument")
    expect_fault(traced(function(q) Matrix::symmpart(q[1:2, ]), g), "argument")
    expect_fault(traced(function(q) Matrix::forceSymmetric(Matrix::t(q)), g), "argument")
  })
})

test_that("factors of sparse matrices in steps of cl_scan()", {
  n <- 5L
  m <- Matrix::bandSparse(n, k = 0:1, diagonals = list(rep(3, n), rep(-1, n - 1)), symmetric = TRUE)
  d <- Matrix::Diagonal(n)
  x <- c(0.3, -1, 0.7)
  steps <- list(
    function(s, x, q) s / 2 + x * sum(log(Matrix::diag(Matrix::chol(q + s^2 * d)))),
    function(s, x, q) s / 2 + x * c(Matrix::determinant(q + s^2 * d)$modulus),
    function(s, x, q) s / 2 + x * sum(Matrix::solve(q + s^2 * d, rep(1, n))),
    function(s, x, q) s / 2 + x * sum(Matrix::chol(q)))
  each_engine({
    for (f in steps) {
      expect_as_matrix(function(k) {
        step <- function(s, x) f(s, x, k[2] * m)
        if (is.numeric(unclass(k))) Reduce(step, x, k[1]) else cl_scan(step, k[1], x)
      })
    }
    large <- Matrix::Diagonal(9000)
    step <- function(s, x) s + sum(Matrix::diag(Matrix::chol((1 + s^2) * large)))
    expect_fault(cl_gradient(function(k) cl_scan(step, k, x))(1), "argument")
  })
})
