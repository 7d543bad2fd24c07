# Functions of base R on device matrices: base R's result, or an error that says what to do.

skip_on_cran() # long; run by ./dev check

m <- matrix(c(1, -2, 3, 4, 0.5, 6), 2, dimnames = list(c("a", "b"), c("u", "v", "w")))
plain <- unname(m)

test_that("c(), append(), rep(), outer(), ifelse() and subset() agree with base R", {
  each_engine(for (x in list(m, plain, m[0, ], m[1, , drop = FALSE])) {
    expect_as_base(c(x), x = x)
    expect_as_base(c(x, 1), x = x)
    expect_as_base(c(x, z = 1, use.names = FALSE), x = x)
    expect_as_base(c(1, 2, x), x = x)
    expect_as_base(c(TRUE, b = 1, x, recursive = TRUE), x = x)
    expect_as_base(c(m, x), x = x)
    expect_as_base(append(x, 1:2), x = x)
    expect_as_base(append(1:3, x), x = x)
    expect_as_base(append(1:3, x, after = 1), x = x)
    if (length(x) > 0) expect_as_base(rep(x, 2), x = x)
    if (length(x) > 0) expect_as_base(rep(x, each = 2, length.out = 5), x = x)
    expect_as_base(outer(x, 1:2), x = x)
    expect_as_base(outer(c(p = 1, q = 2), x), x = x)
    expect_as_base(x %o% 1:2, x = x)
    expect_as_base(outer(x, x, "-"), x = x, less = length(x) == 0)
    expect_as_base(ifelse(x > 2, 1, 0), x = x)
    expect_as_base(ifelse(x > 2, x, -x), x = x)
    expect_as_base(ifelse(m > 2, x, 0), x = x)
    expect_as_base(subset(x, x[, 1] > 0), x = x)
    expect_as_base(subset(x, c(TRUE, NA)), x = x)
  })
  each_engine({
    expect_as_base(subset(x, c(TRUE, FALSE), c(w, u), drop = TRUE), x = m)
    expect_as_base(subset(x, select = -v), x = m)
    expect_as_base(subset(x, select = 2), x = plain)
    expect_as_base(subset(x, 1:2), x = m)
    x <- as_cl(m)
    expect_identical(on_base(subset(x, x[, 1, drop = FALSE] > 0)), m[1, , drop = FALSE])
    expect_true(is.array(x))
  })
})

test_each_engine("arrays have c(), rep(), outer() and missing subscripts", {
  a <- array(1:12 + 0, c(2, 3, 2))
  expect_as_base(c(x, 1), x = a)
  expect_as_base(c(1, x), x = a)
  expect_as_base(rep(x, 2), x = a)
  expect_as_base(outer(1:2, x), x = a)
  expect_as_base(x[c(1, NA), , 2:1], x = a)
  expect_as_base(x[NULL, , 1:2], x = a)
  expect_as_base(x[, c(NA, TRUE, FALSE), NA], x = a)
  expect_refused("j", as_cl(a)[, 3e9, ])
})

test_each_engine("lists keep a device matrix unchanged", {
  x <- as_cl(m)
  expect_identical(on_base(unlist(list(x))[[1]]), m)
  expect_identical(on_base(c(list(1), x)[[2]]), m)
  expect_identical(on_base(c(a = 1, x)[[2]]), m)
  expect_identical(unlist(lapply(list(x, 1), as.vector)), c(m, 1))
})

test_that("methods for plain first arguments do not affect other classes", {
  setClass("statclTestNumber", contains = "numeric")
  on.exit(removeClass("statclTestNumber"))
  n <- new("statclTestNumber", c(1, 2, NA))
  expect_identical(c(1, n), c(1, 1, 2, NA))
  expect_identical(c(a = 1, b = n), c(a = 1, b1 = 1, b2 = 2, b3 = NA))
  expect_identical(c(n, 3), c(1, 2, NA, 3))
  expect_identical(c(m, n), c(m, 1, 2, NA))
  expect_identical(c(a = 1, b = n, use.names = FALSE), c(1, 1, 2, NA))
  generator <- getClass("statclTestNumber")
  expect_identical(c(1, generator), list(1, generator))
  expect_identical(c(u = TRUE, v = generator), list(u = TRUE, v = generator))
  expect_identical(sum(1, n, na.rm = TRUE), 4)
  expect_identical(sum(n, 1), NA_real_)
  expect_identical(max(3, n, na.rm = TRUE), 3)
  expect_identical(range(n, na.rm = TRUE), c(1, 2))
  expect_identical(any(TRUE, n > 0), TRUE)
})

test_that("`dim<-` makes vectors, matrices and arrays of the same values", {
  each_engine(for (view in c("general", "lower")) {
    x <- matrix(c(1, 2, 3, 0, 4, 5, 0, 0, 6), 3)
    y <- as_cl(x, view)
    dim(y) <- NULL
    expect_identical(y, c(x))
    y <- as_cl(x, view)
    dim(y) <- c(1, 9)
    expect_identical(on_base(y), matrix(x, 1))
    dim(y) <- c(3, 1, 3)
    expect_identical(on_base(y), array(x, c(3, 1, 3)))
  })
  x <- on_host(as_cl(m))
  for (bad in list(6, c(2, 2), c(-2, -3), c(NA, 3), "a", c(1, 1, 1, 6), list(2, 3))) {
    expect_refused("value", dim(x) <- bad)
  }
  expect_identical(as.matrix(x), m)
})

test_that("all.equal() accepts a device matrix on either side", {
  each_engine({
    x <- as_cl(m)
    expect_true(all.equal(m, x))
    expect_true(all.equal(x, m))
    expect_true(all.equal(x, x))
    expect_type(all.equal(m, x + 1), "character")
    expect_type(all.equal(plain, x), "character")
    expect_true(all.equal(plain, x, check.attributes = FALSE))
  })
  expect_true(all.equal(1, 1 + 1e-10))
})

test_each_engine("cbind() and rbind() treat names and vectors like base R", {
  v <- 7
  for (x in list(m, plain, m[, 0], m[0, ], plain[0, ])) {
    expect_as_base(cbind(x, c(p = 1, q = 2)), x = x)
    expect_as_base(cbind(c(p = 1, q = 2), x), x = x)
    expect_as_base(rbind(x, c(p = 1, q = 2, r = 3)), x = x)
    expect_as_base(rbind(n = c(p = 1, q = 2, r = 3), x), x = x)
    expect_as_base(cbind(x, numeric(0)), x = x)
    expect_as_base(cbind(numeric(0), x, 1), x = x)
    expect_as_base(rbind(x, NULL, numeric(0)), x = x)
    expect_as_base(cbind(x, 5), x = x)
    expect_as_base(cbind(x, k = 5, x, 1), x = x)
    expect_as_base(rbind(1, x, 2:4), x = x)
    expect_as_base(cbind(x, c(p = 3)), x = x)
    expect_as_base(cbind(x, 1:3), x = x)
    expect_as_base(rbind(x, 1:2), x = x)
    expect_as_base(rbind(x, c(p = 1, q = 2, r = 3, s = 4)), x = x)
    expect_as_base(cbind(x, plain[seq_len(nrow(x)), ], v, deparse.level = 2), x = x)
    expect_as_base(rbind(v, x, 2, deparse.level = 0), x = x)
    expect_as_base(rbind(v, x, w = v), x = x)
    expect_as_base(do.call(cbind, list(x, a = 1, x)), x = x)
  }
})

test_each_engine("incomplete recycling gives a warning, as in base R", {
  expect_as_base(x + 1:4, x = m)
  expect_as_base(1:4 - x, x = m)
  expect_as_base(x * 1:5, x = plain)
  expect_as_base(x + 1:7, x = m)
  expect_as_base(x + 1:7, x = m[0, ])
  expect_warning(as_cl(m) + 1:4, class = "statcl_warning_recycled")
  expect_warning(x <- cl_matrix(1:5, 2, 3), class = "statcl_warning_recycled")
  expect_identical(as.matrix(x), suppressWarnings(matrix(1:5 + 0, 2, 3)))
  expect_identical(as.matrix(cl_matrix(numeric(), 2, 2)), matrix(NA_real_, 2, 2))
  expect_identical(as.matrix(cl_matrix(numeric(), 0, 2)), matrix(0, 0, 2))
})

test_that("log() accepts its arguments by name in any order", {
  x <- matrix(c(1, 2, 3, 8), 2)
  y <- x + 1
  each_engine({
    expect_as_base(log(x, 3), x = x, tol = 1e-14)
    expect_as_base(log(x, base = 3), x = x, tol = 1e-14)
    expect_as_base(log(base = x, x = 8), x = y, tol = 1e-14)
    expect_as_base(log(x = x, base = y), x = x, y = y, tol = 1e-14)
    expect_as_base(log(base = y, x = x), x = x, y = y, tol = 1e-14)
    expect_as_base(log(b = x, 8), x = y, tol = 1e-14)
    expect_as_base(do.call(log, list(base = y, x = 3)), y = y, tol = 1e-14)
    expect_refused("base", log(as_cl(x), "a"))
    expect_close(cl_map(function(v) log(v, base = 3), as_cl(x)), log(x, 3), 1e-14)
    expect_close(cl_map(function(v) log(base = v, x = 3), as_cl(y)), log(3, y), 1e-14)
  })
  # R may find no method, but never gives the logarithm to another base.
  for (code in expression(log(8, base = d), log(base = d, x = 8), log(8, d))) {
    own <- outcome(eval(code, list(d = on_host(as_cl(y)))))
    if (!own$failed) expect_close(own$value, log(8, y), 1e-14)
  }
})

test_that("summaries accept numbers before the device matrix", {
  each_engine(for (x in list(m, m * NA, m[0, ])) {
    expect_as_base(sum(1, x), x = x, tol = 1e-14)
    expect_as_base(prod(2L, x, 3), x = x, tol = 1e-14)
    expect_as_base(max(0, x), x = x)
    expect_as_base(min(TRUE, x), x = x)
    expect_as_base(range(0, x), x = x)
    expect_as_base(range(0, x, na.rm = TRUE), x = x)
    expect_as_base(max(m, x, na.rm = TRUE), x = x)
    expect_as_base(any(FALSE, x > 1), x = x)
    expect_as_base(all(TRUE, x > -9, na.rm = TRUE), x = x)
  })
  each_engine(expect_close(cl_map(function(v) max(0, v) + sum(1, v), as_cl(m)), pmax(m, 0) + 1 + m))
})

test_that("time series, tables, matrices of package Matrix are accepted, 64-bit integers not", {
  each_engine({
    expect_identical(as.matrix(as_cl(ts(c(1, 2, 4), start = 2000))), matrix(c(1, 2, 4)))
    expect_identical(as.matrix(as_cl(ts(plain))), as.matrix(unclass(ts(plain)))[, ])
    expect_identical(as.matrix(as_cl(table(c(1, 1, 2)))), matrix(c(2, 1)))
    expect_identical(as.matrix(as_cl(I(m))), m)
    expect_identical(as.matrix(as_cl(m) + ts(c(1, 2))), m + c(1, 2))
  })
  wide <- structure(c(1, 2, 3, 4) * 5e-324, class = "integer64")
  expect_refused("x", as_cl(wide))
  dim(wide) <- c(2L, 2L)
  expect_match(conditionMessage(expect_fault(as_cl(wide), "argument", argument = "x")), "as.double")
  expect_refused("e2", on_host(as_cl(plain[, 1:2])) + wide)
  skip_if_not_installed("Matrix")
  s <- crossprod(plain)
  dimnames(s) <- list(letters[1:3], letters[1:3])
  cases <- list(Matrix::Matrix(m), Matrix::Matrix(m, sparse = TRUE), Matrix::Diagonal(3),
                Matrix::Matrix(s > 20), Matrix::Matrix(s, sparse = TRUE))
  views <- list(lower = Matrix::tril(Matrix::Matrix(s)), upper = Matrix::triu(Matrix::Matrix(s)),
                symmetric = Matrix::forceSymmetric(Matrix::Matrix(s), "U"))
  each_engine({
    for (x in c(cases, views)) expect_identical(as.matrix(as_cl(x)), as.matrix(x) + 0)
    for (view in names(views)) expect_identical(as_cl(views[[view]])@view, view)
    expect_identical(as.matrix(as_cl(m) * Matrix::Matrix(m)), m * m)
    expect_close(as_cl(m) %*% Matrix::Matrix(t(m)), m %*% t(m))
  })
})

test_that("as_cl() gives a device matrix the requested view", {
  x <- matrix(c(1, 2, 3, 4, 5, 6, 7, 8, 9), 3, dimnames = list(letters[1:3], NULL))
  each_engine(for (from in c("general", "lower", "upper", "symmetric")) {
    whole <- as_cl(x, from)
    for (to in c("general", "lower", "upper", "symmetric")) {
      y <- as_cl(whole, view = to)
      expect_identical(y@view, to)
      expect_identical(as.matrix(y), as.matrix(as_cl(as.matrix(whole), view = to)))
      expect_identical(as.matrix(y + 1), as.matrix(y) + 1)
    }
    expect_identical(as_cl(whole)@view, from)
  })
  expect_refused("view", as_cl(on_host(as_cl(m)), view = "lower"))
})
