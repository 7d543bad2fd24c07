# Which recorded matrices are known to be symmetric.

test_that("symmetric matrices are known by what they are made of", {
  s <- matrix(c(2, 1, 0.5, 1, 3, 0.2, 0.5, 0.2, 4), 3)
  b <- matrix(1:9 / 10, 3)
  found <- list()
  f <- cl_gradient(function(a, m) {
    k <- a[1] * exp(-s / a[2])
    put <- k
    put[2, 2] <- put[2, 2] + a[1]
    one <- k
    first <- a[1]
    one[1, 2] <- first
    both <- one
    both[2, 1] <- first
    all <- list(yes = list(k, k + diag(a[1], 3), k * s - 1, put, both, t(k), k %*% t(k),
                           tcrossprod(m), crossprod(m), crossprod(m, k %*% m), diag(a),
                           tcrossprod(m) + k, k * m * diag(3)),
                no = list(m, k * m, one, k %*% m, k %*% k, crossprod(m, m %*% m), a[1] * b + s,
                          crossprod(m, m %*% k), matrix(a, 3, 3)))
    found <<- lapply(all, function(x) vapply(x, known_symmetric, NA))
    sum(a) + sum(m)
  })
  f(a = c(1, 2, 0.3), m = b)
  expect_identical(found$yes, rep(TRUE, 13))
  expect_identical(found$no, rep(FALSE, 9))
})

test_that("factors of symmetric matrices need no transposed ones", {
  each_engine({
    s <- crossprod(matrix(sin(1:25), 5)) + diag(5)
    x <- cos(1:5)
    f <- cl_gradient(function(a) {
      l <- t(chol(a[1] * s + diag(a[2], 5)))
      -sum(forwardsolve(l, x)^2) / 2 - sum(log(diag(l)))
    })
    plain <- function(a) {
      k <- a[1] * s + diag(a[2], 5)
      -sum(x * solve(k, x)) / 2 - as.vector(determinant(k)$modulus) / 2
    }
    a <- c(1.3, 0.4)
    found <- f(a = a)
    expect_close(as.vector(found), plain(a))
    inverse <- solve(a[1] * s + diag(a[2], 5))
    w <- as.vector(inverse %*% x)
    slope <- tcrossprod(w) - inverse
    expect_close(attr(found, "gradient")$a, c(sum(slope * s), sum(diag(slope))) / 2)
    expect_false(any(grepl("transpose", utils::capture.output(print(f)))))
    # what base R reads of a matrix that is not symmetric is its upper triangle
    g <- cl_gradient(function(m) sum(diag(chol(m)) * 1:3))
    m <- matrix(c(4, 9, 9, 1, 5, 9, 0.5, 1, 6), 3)
    expect_close(as.vector(g(m = m)), sum(diag(chol(m)) * 1:3))
  })
})
