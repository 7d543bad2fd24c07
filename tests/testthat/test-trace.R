# Traced values compared with plain ones: the shapes and numbers of base R, from the recorded nodes.

x3 <- c(0.5, -1.25, 2)
x4 <- c(1.5, 0.25, -2, 3)
m23 <- matrix(c(1, -2, 0.5, 3, 0.25, -1), 2)
data3 <- c(2, 3, 5)
spd <- function(a) crossprod(a) + diag(ncol(a))

test_that("operators have the shapes, the recycling and the warnings of base R", {
  expect_traced(function(a) a + 1, x3)
  expect_traced(function(a) 1 - a, x3)
  expect_traced(function(a) a * data3, x3)
  expect_traced(function(a, b) a / b, x3, 2)
  expect_traced(function(a, b) a^b, abs(x3), 2)
  expect_traced(function(a) a^2, x3)
  expect_traced(function(a) a^3, x3)
  expect_traced(function(a) 2^a, x3)
  expect_traced(function(a) a %% 2, x3)
  expect_traced(function(a) a %/% 2, x3)
  expect_traced(function(a) -a, x3)
  expect_traced(function(a) +a, x3)
  expect_traced(function(a, b) a + b, x4, c(1, 2))
  expect_traced(function(a, b) a + b, c(1, 2), x4)
  expect_traced(function(a, b) a + b, x4, x3)
  expect_traced(function(a) a + 1:2, x3)
  expect_traced(function(a) 1:7 * a, x3)
  expect_traced(function(a, b) a + b, m23, m23)
  expect_traced(function(a, b) a + b, m23, 1:2)
  expect_traced(function(a, b) a - b, 1:2, m23)
  expect_traced(function(a, b) a - b, m23, 3)
  expect_traced(function(a, b) a - b, 3, m23)
  expect_traced(function(a) a + m23, 3)
  expect_traced(function(a) a + numeric(0), x3)
  expect_traced(function(a) numeric(0) * a, 1)
  expect_traced(function(a) a + matrix(0, 0, 2), 1)
  expect_traced(function(a) a + array(1:6, c(1, 2, 3)), 2)
  expect_traced(function(a) a + 1, array(1:6 / 2, c(1, 2, 3)))
  expect_traced(function(a) a + TRUE, x3)
  expect_traced(function(a) a + 1L, x3)
  expect_untraced(function(a) a + m23, matrix(1, 3, 2), both = TRUE)
  suppressWarnings(expect_untraced(function(a) a + m23, 1:7, both = TRUE))
  expect_untraced(function(a) a + "1", 1, both = TRUE)
  expect_untraced(function(a) a + factor("u"), 1)
})

test_that("comparisons and logic give zeros and ones", {
  expect_traced(function(a) (a > 0) + 0, x3)
  expect_traced(function(a) (a <= 0.5) * 2, x3)
  expect_traced(function(a) sum(a == 2), x3)
  expect_traced(function(a) sum(a != 2 & a > 0), x3)
  expect_traced(function(a) sum(a < 0 | a >= 2), x3)
  expect_traced(function(a) sum(!(a > 0)), x3)
  expect_traced(function(a) sum(is.na(a)) + sum(is.finite(a)) + sum(is.nan(a)) +
                  sum(is.infinite(a)), x3)
})

test_that("mathematical functions", {
  for (name in c("abs", "sign", "sqrt", "ceiling", "floor", "trunc", "exp", "expm1", "log", "log1p",
                 "log2", "log10", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin",
                 "atan", "asinh", "atanh", "cospi", "sinpi", "tanpi", "gamma", "lgamma", "digamma",
                 "trigamma", "cumsum", "cumprod", "cummax", "cummin", "factorial", "lfactorial",
                 "round", "plogis", "qlogis")) {
    f <- eval(bquote(function(a) .(as.name(name))(a)))
    expect_traced(f, c(0.3, 0.7, 0.1, 0.45))
    if (!name %in% c("tanpi", "qlogis")) expect_traced(f, matrix(c(0.3, 0.7, 0.1, 0.4), 2))
  }
  expect_traced(function(a) acosh(a), c(1.5, 2))
  expect_traced(function(a) log(a, 3), c(1.5, 2))
  expect_traced(function(a) log(a, base = 2), c(1.5, 2))
  expect_traced(function(a) log(3, a), c(1.5, 2))
  expect_traced(function(a) log(base = a, x = 5), c(1.5, 2))
  expect_traced(function(a) round(a, 1), c(1.55, 2.31))
  expect_traced(function(a) atan2(a, 2), x3)
  expect_traced(function(a) atan2(data3, a), x3)
  expect_traced(function(a) beta(a, 2) + lbeta(3, a) + choose(a, 2) + lchoose(a, 1), c(4.5, 7))
  expect_traced(function(a) plogis(a, 1, 2, lower.tail = FALSE, log.p = TRUE), x3)
  expect_traced(function(a) qlogis(a, 1, 2, lower.tail = FALSE), c(0.2, 0.7))
  expect_traced(function(a) qlogis(a, log.p = TRUE), c(-0.2, -3), tol = 1e-12)
  for (nu in list(0, 1, -2.3, 0.7, 30, c(0.2, 4, 0.5, 1))) {
    expect_traced(function(a) besselK(a, nu) + besselK(a, nu, TRUE), c(0.01, 0.9, 3, 200))
  }
  expect_untraced(function(a) besselK(1, a), 1)
  expect_untraced(function(a) psigamma(a, 3), 1)
  expect_untraced(function(a) norm(a, "2"), diag(2))
  expect_untraced(function(a) var(a, na.rm = TRUE), 1:3)
  expect_untraced(function(a) tapply(1:3, list(1:3, a), sum), 1:3)
  expect_untraced(function(a) signif(a, 2), 1)
})

test_that("summaries", {
  for (name in c("sum", "prod", "min", "max", "mean", "range")) {
    f <- eval(bquote(function(a) .(as.name(name))(a)))
    for (x in list(x3, m23, 2, matrix(3))) expect_traced(f, x)
  }
  expect_traced(function(a) sum(1, a, data3), x3)
  expect_traced(function(a, b) max(0, a, b), x3, 7)
  expect_traced(function(a) min(a, -3), x3)
  expect_traced(function(a) prod(2, a, 3), x3)
  expect_traced(function(a) range(a, 0), x3)
  expect_traced(function(a) sum(log(a), na.rm = TRUE), c(1, 2))
  expect_traced(function(a) var(a) + sd(a), x4)
  expect_untraced(function(a) any(a > 0), x3)
  expect_untraced(function(a) all(TRUE, a > 0), x3)
  expect_untraced(function(a) median(a), x3)
})

test_that("lengths and dimensions are plain numbers", {
  expect_identical(traced_result(function(a) c(length(a), dim(a), nrow(a), ncol(a), NROW(a)), m23),
                   c(6L, 2L, 3L, 2L, 3L, 2L))
  expect_identical(traced_result(function(a) c(NROW(a), NCOL(a), length(seq_along(a))), x3),
                   c(3L, 1L, 3L))
  expect_identical(traced_result(function(a) {
    c(is.numeric(a), is.matrix(a), is.array(a), is.vector(a), is.null(dim(a)), is.double(a),
      is.function(a), is.list(a), is.null(names(a)))
  }, x3), c(TRUE, FALSE, FALSE, TRUE, TRUE, TRUE, FALSE, FALSE, TRUE))
  expect_traced(function(a) {
    dim(a) <- c(3, 2)
    a
  }, m23)
  expect_traced(function(a) {
    dim(a) <- NULL
    a
  }, m23)
  expect_traced(function(a) as.vector(a) + as.numeric(a), m23)
  expect_traced(function(a) as.matrix(a), x3)
  expect_untraced(function(a) {
    dim(a) <- c(2, 2)
    a
  }, x3, both = TRUE)
})

test_that("shapes agree with base R", {
  expect_traced(function(a) matrix(a, 2), x4)
  expect_traced(function(a) matrix(a, 2, 3), c(1, 2))
  expect_traced(function(a) matrix(a, 2, 2, byrow = TRUE), x4)
  expect_traced(function(a) matrix(a, ncol = 1), x4)
  expect_traced(function(a) matrix(a, 3, 3), 5)
  expect_traced(function(a) array(a, c(2, 1, 2)), x4)
  expect_traced(function(a) array(a, 2), x4)
  expect_traced(function(a) t(a), m23)
  expect_traced(function(a) t(a), x3)
  expect_traced(function(a) t(t(a)), x3)
  expect_traced(function(a) aperm(array(a, c(2, 1, 2)), c(3, 1, 2)), x4)
  expect_traced(function(a) drop(array(a, c(2, 1, 2))), x4)
  expect_traced(function(a) diag(a), x3)
  expect_traced(function(a) diag(a, 3), 2)
  expect_traced(function(a) diag(a, 2, 4), 2)
  expect_traced(function(a) diag(a), m23)
  expect_traced(function(a) {
    diag(a) <- 7
    a
  }, m23)
  expect_traced(function(a) {
    m <- matrix(0, 3, 3)
    diag(m) <- a
    m
  }, x3)
  expect_traced(function(a) {
    diag(a[, 1:2]) <- 1:2
    a
  }, m23)
  expect_traced(function(a) a[upper.tri(a)], m23)
  expect_traced(function(a) row(a) * a - col(a), m23)
  expect_untraced(function(a) diag(a), 3)
})

test_that("elements are combined as in base R", {
  expect_traced(function(a) c(a, 1), x3)
  expect_traced(function(a) c(1, a, NULL, 2:3, a), x3)
  expect_traced(function(a, b) c(b, a), x3, m23)
  expect_traced(function(a) c(first = 1, second = a), 2)
  expect_traced(function(a) c(a), m23)
  expect_traced(function(a, b) cbind(a, b), x3, x3 * 2)
  expect_traced(function(a) cbind(1, a), x3)
  expect_traced(function(a) cbind(a, 1:2), x4)
  expect_traced(function(a) cbind(m23, a), c(1, 2))
  expect_traced(function(a) rbind(a, m23, 1), x3)
  expect_traced(function(a) cbind(1:2, m23, a), m23)
  expect_traced(function(a, b) rbind(a, b), 1, 2)
  expect_traced(function(a) do.call(rbind, list(a, a * 2)), x3)
  expect_traced(function(a) do.call("cbind", list(1, a)), x3)
  expect_traced(function(a) append(a, 1:2, after = 1), x3)
  expect_traced(function(a) append(1:2, a), x3)
  expect_traced(function(a) rep(a, 2), x3)
  expect_traced(function(a) rep(a, each = 2), x3)
  expect_traced(function(a) rep(a, times = c(1, 0, 2)), x3)
  expect_traced(function(a) rep(a, each = 2, length.out = 5), x3)
  expect_traced(function(a) rep_len(a, 7), x3)
  expect_traced(function(a) rep.int(a, 2), x3)
  expect_traced(function(a) rep(a, 4), 2)
  expect_traced(function(a) rev(a), x3)
  expect_traced(function(a) rev(a) + 1, m23)
  expect_traced(function(a) head(a, 2), x3)
  expect_traced(function(a) head(a, -1), x3)
  expect_traced(function(a) tail(a, 2), x3)
  expect_traced(function(a) tail(a, 1), m23)
  expect_traced(function(a) head(a, 1), m23)
  expect_traced(function(a) unlist(list(a, 1, list(2, a * 2))), x3)
  expect_traced(function(a) diff(a), x4)
  expect_traced(function(a) diff(a, lag = 2), x4)
  expect_traced(function(a) diff(a, differences = 2), x4)
  expect_traced(function(a) diff(a), m23)
  expect_traced(function(a) diff(a), 1)
  expect_untraced(function(a) rep(1, a), 2)
  expect_untraced(function(a) matrix(1, a, 2), 2)
})

test_that("indices of every form", {
  for (i in list(1, 2:3, c(3, 1), -1, c(-1, -3), c(TRUE, FALSE, TRUE), TRUE, integer(), c(1, 1, 2),
                 5, 1.9, c(0, 2), -4:-1)) {
    expect_traced(eval(bquote(function(a) a[.(i)])), x4)
  }
  expect_traced(function(a) a[], x4)
  expect_traced(function(a) a[m23 > 0], m23)
  forms <- list(quote(expr = ), 2, 2.9, 1:2, -1, 0, TRUE, FALSE, NA, c(TRUE, FALSE, TRUE))
  pairs <- unlist(lapply(forms, function(i) lapply(forms, function(j) call("[", quote(a), i, j))))
  all <- as.call(c(quote(c), pairs))
  expect_traced(eval(bquote(function(a) .(all))), matrix(1:9 / 4, 3))
  expect_traced(eval(bquote(function(a) {
    a[2, 3] <- a[1, 1]
    .(all)
  })), matrix(1:9 / 4, 3))
  expect_traced(function(a) a[, 2:3], m23)
  expect_traced(function(a) a[2, , drop = FALSE], m23)
  expect_traced(function(a) a[-1, c(TRUE, FALSE, TRUE)], m23)
  expect_traced(function(a) a[2, 3], m23)
  expect_traced(function(a) a[2, 3, drop = FALSE], m23)
  expect_traced(function(a) a[cbind(c(1, 2), c(3, 1))], m23)
  expect_traced(function(a) a[1:2, 2:3], matrix(1:12 / 4, 3))
  expect_traced(function(a) a[c(1, 3), 2:3], matrix(1:12 / 4, 3))
  expect_traced(function(a) a[0, ], m23)
  expect_traced(function(a) a[, , 2], array(1:12 / 4, c(2, 3, 2)))
  expect_traced(function(a) a[[2]], x4)
  expect_traced(function(a) a[[2, 3]], m23)
  expect_traced(function(a) a[rep(1:4, 50)], x4)
  expect_traced(function(a) a[c(4, 2, 2, 1, 3, 4)], x4)
  expect_traced(function(a) c(a, 9)[5] + c(a, 9)[2], x4)
  expect_untraced(function(a) a[["b"]], x4, both = TRUE)
  expect_traced(function(a) (a + 1)["b"], c(b = 1, c = 2))
  expect_traced(function(a) {
    a <- a + 1
    a["b"] <- 1
    a["d"] <- a["c"]
    a
  }, c(b = 1, c = 2))
  expect_untraced(function(a) a[[5]], x4, both = TRUE)
  expect_untraced(function(a) a[3, 1], m23, both = TRUE)
  expect_untraced(function(a) a[a], 2)
  expect_untraced(function(a) data3[a], 2)
  expect_untraced(function(a) data3[[a]], 2)
})

test_that("assignments of every form", {
  assigned <- function(code) eval(bquote(function(a, b) {
    .(code)
    a
  }))
  for (code in expression(a[2] <- 1, a[2] <- b, a[2:3] <- b, a[-1] <- 0, a[c(TRUE, FALSE)] <- b,
                          a[] <- 3, a[] <- b, a[[2]] <- b, a[6] <- b, a[c(1, 1)] <- c(2, 3),
                          a[a0 > 0] <- b, a[2:4] <- c(b, 1, b))) {
    a0 <- x4
    expect_traced(assigned(code[[1L]]), x4, 7)
  }
  expect_traced(assigned(quote(a[2:3] <- b)), x4, c(5, 6))
  expect_traced(assigned(quote(a[1:3] <- b)), x4, c(5, 6))
  for (code in expression(a[1, 2] <- b, a[1, ] <- b, a[, 2] <- b, a[m23 > 0] <- b,
                          a[cbind(1:2, 2:3)] <- b, a[[1, 3]] <- b, a[, -1] <- 0)) {
    expect_traced(assigned(code), m23, 7)
  }
  plain <- function(a) {
    v <- numeric(4)
    v[2] <- a[1]
    v[[3]] <- a[2]
    v[4] <- 5
    w <- matrix(1, 2, 2)
    w[1, ] <- a[1:2]
    c(v, w)
  }
  expect_traced(plain, x3)
  expect_traced(function(a) {
    v <- NULL
    for (i in 1:3) v[i] <- a[i] * i
    v
  }, x3)
  expect_traced(function(a) {
    l <- list()
    l$u <- a
    l[["v"]] <- a * 2
    l$u[1] <- 0
    l$u + l$v
  }, x3)
  expect_traced(function(a) {
    a[a > 0] <- 0
    a
  }, x3)
  for (wrong in list(c(0, 1), numeric(3))) expect_untraced(function(a) {
    a[a > 0] <- wrong
    a
  }, x3)
  expect_untraced(function(a) {
    a[a] <- 0
    a
  }, x3)
})

test_that("products treat vectors as rows and columns like base R", {
  shapes <- list(x3, data3, m23, t(m23), 2, matrix(3), matrix(1:3, 1), matrix(1:3, 3), x4)
  for (x in shapes) for (y in shapes) for (name in c("%*%", "crossprod", "tcrossprod")) {
    f <- eval(bquote(function(a) .(as.name(name))(a, .(y))))
    g <- eval(bquote(function(a) .(as.name(name))(.(y), a)))
    # versions of R differ in which of these are errors
    if (!inherits(try(f(x), silent = TRUE), "try-error")) expect_traced(f, x)
    if (!inherits(try(g(x), silent = TRUE), "try-error")) expect_traced(g, x)
  }
  expect_traced(function(a) crossprod(a), m23)
  expect_traced(function(a) tcrossprod(a), m23)
  expect_traced(function(a) crossprod(a), x3)
  expect_traced(function(a) outer(a, 1:4), x3)
  expect_traced(function(a) outer(1:4, a), x3)
  expect_traced(function(a) a %o% a, x3)
  expect_traced(function(a) outer(a, 1:2, "+"), x3)
  expect_traced(function(a) outer(a, a, function(u, v) exp(-(u - v)^2)), x3)
  expect_traced(function(a) outer(data3, a, `-`), x3)
  expect_traced(function(a) outer(a, 1:2), m23)
})

test_that("factors and triangular systems", {
  expect_traced(function(a) chol(spd(a)), m23)
  expect_traced(function(a) chol(spd(a))[2, ], m23)
  expect_traced(function(a) sum(log(diag(chol(spd(a))))), m23)
  expect_traced(function(a) chol(matrix(a)), 2)
  upper <- chol(spd(m23))
  for (x in list(x3, cbind(x3, 1:3))) {
    expect_traced(function(a) backsolve(chol(spd(m23) + a), x), 0.1)
    expect_traced(function(a) backsolve(chol(spd(m23) + a), x, transpose = TRUE), 0.1)
    expect_traced(function(a) backsolve(upper, a), x)
    expect_traced(function(a) backsolve(upper, a, transpose = TRUE), x)
    expect_traced(function(a) forwardsolve(t(upper), a), x)
    expect_traced(function(a) forwardsolve(t(upper) + diag(a, 3), x), 0.1)
    expect_traced(function(a) backsolve(upper, a, k = 2), x)
    expect_traced(function(a) solve(spd(m23), a), x, tol = 1e-11)
    expect_traced(function(a) solve(spd(a), x), m23, tol = 1e-11)
  }
  expect_traced(function(a) chol2inv(chol(spd(a))), m23, tol = 1e-12)
  expect_traced(function(a) solve(a), matrix(c(2, 1, -1, 3), 2))
  expect_traced(function(a) solve(a), matrix(4))
  expect_traced(function(a) solve(spd(a)), m23, tol = 1e-11)
  expect_traced(function(a) det(a), matrix(c(2, 1, -1, 3), 2))
  expect_traced(function(a) det(spd(a)), m23)
  expect_traced(function(a) as.numeric(determinant(-spd(a))$modulus), m23)
  expect_traced(function(a) determinant(-spd(a))$sign, m23)
  expect_untraced(function(a) solve(a), matrix(1, 4, 3), both = TRUE)
  expect_untraced(function(a) solve(a, 1:3), diag(4), both = TRUE)
  expect_untraced(function(a) det(a), matrix(1, 4, 3), both = TRUE)
  # general matrices, with row exchanges and determinants of either sign
  for (n in c(4, 5, 20)) {
    g <- diag(n)[n:1, ] * 2 + outer(1:n, 1:n, function(i, j) sin(i + 2 * j) / n)
    b <- matrix(cos(seq_len(2 * n)), n)
    expect_traced(function(a) solve(a), g, tol = 1e-11)
    expect_traced(function(a) solve(a, b), g, tol = 1e-11)
    expect_traced(function(a) solve(a, b[, 1]), -g, tol = 1e-11)
    expect_traced(function(a) solve(g, a), b, tol = 1e-11)
    expect_traced(function(a) solve(a %*% g, a[, 1:2]), g, tol = 1e-11)
    expect_traced(function(a) det(a), g, tol = 1e-11)
    expect_traced(function(a) as.numeric(determinant(a)$modulus), -g, tol = 1e-11)
    expect_traced(function(a) determinant(a, FALSE)$modulus + determinant(a)$sign, g, tol = 1e-11)
    expect_traced(function(a) unlist(determinant(a)), g, tol = 1e-11)
  }
  expect_untraced(function(a) chol(a), m23, both = TRUE)
})

test_that("choices by element", {
  expect_traced(function(a) ifelse(a > 0, a, -a), x4)
  expect_traced(function(a) ifelse(a > 0, a, 0), m23)
  expect_traced(function(a) ifelse(m23 > 0, a, 1), m23)
  expect_traced(function(a) ifelse(c(TRUE, NA, FALSE), a, 1), x3)
  expect_traced(function(a) ifelse(TRUE, a, 1), x3)
  expect_traced(function(a) ifelse(x4 > 0, a, 1:4), c(2, 3))
  expect_traced(function(a) ifelse(a > 0, 1:7, 0), x4)
  expect_traced(function(a) pmin(a, 1), x4)
  expect_traced(function(a) pmax(0, a, data3), x3)
  expect_traced(function(a) pmax(a, 0), m23)
})

test_that("sums by rows and columns, sweep and apply", {
  for (name in c("rowSums", "colSums", "rowMeans", "colMeans")) {
    f <- eval(bquote(function(a) .(as.name(name))(a)))
    expect_traced(f, m23)
    expect_traced(f, array(1:12 / 4, c(2, 3, 2)))
    expect_untraced(f, x3, both = TRUE)
  }
  expect_traced(function(a) colSums(a, dims = 2), array(1:12 / 4, c(2, 3, 2)))
  expect_traced(function(a) rowSums(a, dims = 2), array(1:12 / 4, c(2, 3, 2)))
  expect_traced(function(a) sweep(a, 2, colMeans(a)), m23)
  expect_traced(function(a) sweep(a, 1, 1:2, "*"), m23)
  expect_traced(function(a) sweep(m23, 2, a, `/`), x3)
  expect_traced(function(a) apply(a, 1, sum), m23)
  expect_traced(function(a) apply(a, 2, function(v) v / sum(v)), m23)
})

test_that("functions over constant ranges", {
  expect_traced(function(a) apply(m23, 1, function(r) sum(r * a)), x3)
  expect_traced(function(a) apply(m23, 1, function(r) r * a), x3)
  expect_traced(function(a) replicate(2, a), x3)
  expect_traced(function(a) kronecker(diag(2), a), m23)
  expect_traced(function(a) a %x% m23, m23)
  expect_traced(function(a) outer(1:2, 1:3, function(i, j) a * i - j), 3)
  expect_equal(traced_result(function(a) scale(a), t(m23)), scale(t(m23)), ignore_attr = TRUE)
  expect_traced(function(a) sapply(1:3, function(i) a[i] * i), x3)
  expect_traced(function(a) sapply(1:2, function(i) a * i), x3)
  expect_traced(function(a) sapply(a, exp), x3)
  expect_traced(function(a) vapply(1:3, function(i) sum(a[1:i]), 0), x3)
  expect_traced(function(a) vapply(1:3, function(i) a[1:2] + i, numeric(2)), x3)
  expect_traced(function(a) do.call(sum, lapply(1:3, function(i) a[i]^i)), x3)
  expect_traced(function(a) mapply(function(u, i) u * i, a, 1:3), x3)
  expect_traced(function(a) unlist(Map(function(u, v) u + v, a, 1:3)), x3)
  expect_traced(function(a) Reduce(`+`, lapply(1:3, function(i) a * i)), x3)
  expect_traced(function(a) Reduce("+", as.list(a), accumulate = TRUE), x3)
  expect_traced(function(a) Reduce(function(s, i) s * a[i], 1:3, 1), x3)
  expect_traced(function(a) {
    s <- 0
    for (i in seq_along(a)) s <- s + a[[i]] * i
    s
  }, x3)
  expect_identical(traced_result(function(a) sapply(c("u", "v"), nchar), 1), c(u = 1L, v = 1L))
  expect_identical(traced_result(function(a) vapply(1:2, function(i) i > 1, NA), 1), c(FALSE, TRUE))
  expect_untraced(function(a) vapply(1:3, function(i) a[1:i], 0), x3, both = TRUE)
})

test_that("functions that need a value are rejected, with the call and the alternatives", {
  refused <- function(f, ..., text) {
    e <- expect_untraced(f, ...)
    expect_match(conditionMessage(e), text, fixed = TRUE)
    expect_match(conditionMessage(e), "retrace = TRUE", fixed = TRUE)
  }
  refused(function(a) if (a > 0) a else -a, 1, text = "at 'if (a > 0) a else -a'")
  refused(function(a) if (a > 0) a else -a, x3, text = "at 'if (a > 0)")
  refused(function(a) {
    while (a > 1) a <- a / 2
    a
  }, 1, text = "at 'while (a > 1)")
  refused(function(a) if (a > 0 && a < 1) 1 else 2, 1, text = "at 'a > 0 && a < 1'")
  refused(function(a) if (TRUE && a < 1) 1 else 2, 1, text = "at 'TRUE && a < 1'")
  refused(function(a) FALSE || a < 1, 1, text = "at 'FALSE || a < 1'")
  refused(function(a) sum(seq_len(a)), 3, text = "at 'seq_len(a)'")
  refused(function(a) sum(1:a), 3, text = "at '1:a'")
  refused(function(a) numeric(a), 3, text = "at 'numeric(a)'")
  refused(function(a) as.integer(a), 3, text = "at 'as.integer(a)'")
  refused(function(a) as.logical(a), 3, text = "at 'as.logical(a)'")
  refused(function(a) which(a > 0), x3, text = "at 'which(a > 0)'")
  refused(function(a) {
    stopifnot(a > 0)
    a
  }, 3, text = "at 'stopifnot(a > 0)'")
  e <- expect_untraced(function(a) sum(a + m23 %*% 1:2), 1)
  expect_match(conditionMessage(e), "at 'm23 %*% 1:2': non-conformable arguments", fixed = TRUE)
  e <- expect_untraced(function(a) exp(a + matrix(1, 1, 2)), m23)
  expect_match(conditionMessage(e), "at 'a + matrix(1, 1, 2)': non-conformable", fixed = TRUE)
  e <- expect_untraced(function(a) for (v in a) v, x3)
  expect_match(conditionMessage(e), "seq_along()", fixed = TRUE)
})
