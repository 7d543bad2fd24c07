# Compiled functions of X b whose gradients are X' r: the host computes both in one read of X.

# Value and gradient of sum(w * (sin(eta) + y * eta)) by base R, with eta = alpha + X b.
plain <- function(x, y, w, alpha, b) {
  eta <- alpha + rowSums(x * rep(b, each = nrow(x)))
  r <- w * (cos(eta) + y)
  list(value = sum(w * (sin(eta) + y * eta)),
       gradient = list(alpha = sum(r), b = colSums(x * r), w = sin(eta) + y * eta))
}

calls_of <- function(f) {
  shown <- grep("^program:", capture.output(print(f)), value = TRUE)
  as.integer(sub(".* ([0-9]+) calls.*", "\\1", shown))
}

check_shape <- function(n, p, odd = NULL) {
  x <- matrix(rnorm(n * p), n, p)
  y <- rnorm(n)
  w <- runif(n)
  b <- rnorm(p) / sqrt(p)
  if (!is.null(odd)) x[sample(n, 1L), sample(p, 1L)] <- odd
  f <- cl_gradient(function(alpha, b, w) {
    eta <- alpha + c(x %*% b)
    sum(w * (sin(eta) + y * eta))
  })
  got <- f(alpha = 0.3, b = b, w = w)
  want <- suppressWarnings(plain(x, y, w, 0.3, b))
  scale <- 1 + n * max(1, sum(abs(b)))
  near <- function(a, b) all(is.na(a) == is.na(b)) && all(abs(a - b) <= 1e-13 * scale, na.rm = TRUE)
  slope <- attr(got, "gradient")
  good <- near(as.vector(got), want$value) &&
    all(mapply(near, slope[names(want$gradient)], want$gradient))
  expect_true(good, label = sprintf("%d x %d", n, p))
  expect_identical(f(alpha = 0.3, b = b, w = w), got)
  f
}

test_that("products in one read agree with base R, in any shape", {
  set.seed(36)
  shapes <- rbind(c(1, 1), c(1, 7), c(2, 1), c(3, 3), c(63, 5), c(64, 5), c(65, 5), c(511, 3),
                  c(512, 3), c(513, 65), c(64, 512), c(70, 513), c(5, 300), c(4097, 31),
                  c(20000, 4), c(9001, 70),
                  cbind(sample(1200, full_or_quick(400L, 200L), TRUE),
                        sample(80, full_or_quick(400L, 200L), TRUE)))
  on_host(for (k in seq_len(nrow(shapes))) check_shape(shapes[k, 1L], shapes[k, 2L]))
  if (!has_test_device()) return()
  on_device(for (k in c(1, 4, 9, 14)) check_shape(shapes[k, 1L], shapes[k, 2L]))
})

test_that("no rows", {
  each_engine({
    x <- matrix(0, 0, 3)
    f <- cl_gradient(function(b) sum(sin(c(x %*% b))) + sum(b))
    expect_equal(unlist(attr(f(b = c(1, 2, 3)), "gradient"), use.names = FALSE), c(1, 1, 1))
  })
})

test_that("numbers that are not finite reach the same derivatives as in base R", {
  set.seed(37)
  on_host(for (odd in c(NaN, Inf, -Inf)) {
    for (shape in list(c(100, 3), c(700, 12), c(8000, 70))) check_shape(shape[1L], shape[2L], odd)
  })
})

test_that("the host reads a matrix once", {
  set.seed(38)
  on_host({
    expect_identical(calls_of(check_shape(500, 4)), 0L)
    expect_identical(calls_of(check_shape(6000, 100)), 0L)
    expect_gt(calls_of(check_shape(200, 600)), 0L) # too wide
    old <- Sys.getenv("STATCL_ROW_PASS", NA)
    on.exit(if (is.na(old)) Sys.unsetenv("STATCL_ROW_PASS") else Sys.setenv(STATCL_ROW_PASS = old))
    Sys.setenv(STATCL_ROW_PASS = "0")
    expect_gt(calls_of(check_shape(500, 4)), 0L)
  })
})

test_that("so does a Stan program, by loop, vector statement or density of a linear model", {
  n <- 300L
  data <- list(n = n, X = matrix(sin(seq_len(3L * n)), n), y = rep(0:1, length.out = n))
  forms <- c("for (i in 1:n) y[i] ~ bernoulli_logit(a + X[i] * b);",
             "y ~ bernoulli_logit(a + X * b);", "y ~ bernoulli_logit_glm(X, a, b);")
  p <- plogis(0.3 + c(data$X %*% c(0.5, -0.4, 0.2)))
  on_host(for (form in forms) {
    f <- cl_stan(code = sprintf("data { int n; matrix[n, 3] X; array[n] int y; }
                                 parameters { real a; vector[3] b; } model { %s }", form))(data)
    value <- f(a = 0.3, b = c(0.5, -0.4, 0.2))
    expect_equal(as.numeric(value), sum(dbinom(data$y, 1, p, log = TRUE)), tolerance = 1e-12)
    expect_equal(attr(value, "gradient")$b, c(crossprod(data$X, data$y - p)), tolerance = 1e-10)
    expect_identical(calls_of(environment(f)$state$namedFALSE), 0L, label = form)
    f$unconstrained(c(0.3, 0.5, -0.4, 0.2), jacobian = TRUE) # of samplers
    expect_identical(calls_of(environment(f)$state$vectorTRUEFALSE), 0L, label = form)
  })
})

test_that("a factor of all terms is taken out of sums, of X' r too", {
  set.seed(39)
  for (k in seq_len(20)) {
    n <- sample(300, 1L) + 1L
    x <- matrix(rnorm(3 * n), n)
    y <- rnorm(n)
    b <- rnorm(3)
    f <- cl_gradient(function(b, s, t) {
      z <- (y - c(x %*% b)) / s
      sum(z^2) + sum(y * t) + sum(z * t) + sum(t / z) + sum(z * 2)
    })
    each_engine({
      z <- c(y - x %*% b) / 1.7
      got <- f(b = b, s = 1.7, t = -0.6)
      dz <- 2 * z - 0.6 + 0.6 / z^2 + 2
      scale <- sum(abs(dz)) + sum(0.6 / abs(z))
      expect_lt(abs(got - (sum(z^2) - 0.6 * sum(y + z + 1 / z) + 2 * sum(z))), 1e-12 * scale)
      slope <- attr(got, "gradient")
      expect_lt(max(abs(slope$b + colSums(x * dz) / 1.7)), 1e-11 * scale)
      expect_lt(abs(slope$s + sum(dz * z) / 1.7), 1e-11 * scale)
      expect_lt(abs(slope$t - sum(y + z + 1 / z)), 1e-11 * scale)
    })
  }
})
