# Random effects of cl_tmb() in blocks: which depend on each other, and what Laplace's approximation
# makes of that.

block_sizes <- function(obj) {
  o <- environment(obj$fn)$o
  unlist(lapply(statcl:::tmb_blocks(o)$of, function(at) rep(nrow(at), ncol(at))))
}

# Without a sparse Hessian (R/laplace-sparse.R).
by_blocks <- function(...) {
  obj <- cl_tmb(...)
  o <- environment(obj$fn)$o
  o$sparse <- NULL
  o$mode_of <- NULL
  obj
}

# No second derivatives between blocks, by the dense Hessian at a few points.
expect_apart <- function(obj) {
  o <- environment(obj$fn)$o
  label <- integer(length(o$random))
  for (at in statcl:::tmb_blocks(o)$of) for (k in seq_len(ncol(at))) label[at[, k]] <- at[1, k]
  set.seed(1)
  for (i in 1:3) {
    z <- o$start + runif(length(o$start), 0.1, 0.9)
    h <- statcl:::tmb_hessian(o, z)[o$random, o$random]
    expect_true(all(is.finite(h)))
    expect_true(all(abs(h[outer(label, label, "!=")]) < 1e-12 * max(abs(h))))
    dense <- statcl:::block_hessian(o, z)
    for (b in seq_along(dense)) {
      at <- statcl:::tmb_blocks(o)$of[[b]]
      for (k in seq_len(ncol(at))) {
        expect_equal(dense[[b]][, , k], h[at[, k], at[, k]], tolerance = 1e-9, ignore_attr = TRUE)
      }
    }
  }
}

y <- c(1, 3, 2, 2, 5, 4, 6, 5, 2, 1, 1, 3)
id <- rep(1:4, each = 3)

# The code with other limits of the package.
with_limits <- function(limits, code) {
  before <- mget(names(limits), asNamespace("statcl"))
  set <- function(values) {
    for (name in names(values)) utils::assignInNamespace(name, values[[name]], "statcl")
  }
  on.exit(set(before))
  set(limits)
  code
}

on_host({

test_that("blocks are found in what was recorded", {
  sizes <- function(f, start) {
    obj <- cl_tmb(function(p) f(p) + p$a^2, start, random = setdiff(names(start), "a"))
    expect_apart(obj)
    block_sizes(obj)
  }
  start <- list(a = 0.3, u = numeric(4))
  two <- c(start, list(v = numeric(4)))
  # independent groups, in several ways
  expect_identical(sizes(function(p) -sum(dnorm(y, p$a + p$u[id], log = TRUE)) + sum(p$u^2), start),
                   rep(1L, 4))
  expect_identical(sizes(function(p) sum((y - (p$a + p$u[id]) * exp(p$v[id]))^2), two), rep(2L, 4))
  z <- diag(4)[id, ]
  expect_identical(sizes(function(p) sum((y - exp(p$a + z %*% p$u))^2) + c(t(p$u) %*% p$u), start),
                   rep(1L, 4))
  expect_identical(sizes(function(p) sum(exp(c(p$a, p$u)[1 + id])) + sum((0:3) * p$u), start),
                   rep(1L, 4))
  m <- list(a = 0.5, u = matrix(0, 3, 4))
  covariance <- function(a) 0.4 + diag(3) * exp(a)
  expect_identical(sizes(function(p) {
    -sum(dmvnorm(t(p$u), 0, covariance(p$a), log = TRUE)) + sum(exp(p$u))
  }, m), rep(3L, 4))
  expect_identical(sizes(function(p) sum(exp(apply(p$u, 2, sum))), m), rep(3L, 4))
  expect_identical(sizes(function(p) {
    sum(cl_scan(function(s, x) s * p$a + sin(x), 0, p$u, sequences = 4)^2)
  }, m), rep(3L, 4))
  # dependence across groups
  expect_identical(sizes(function(p) sum(exp(diff(p$u))), start), 4L)
  expect_identical(sizes(function(p) sum(p$u)^2, start), 4L)
  expect_identical(sizes(function(p) sum(exp(cumsum(p$u))), start), 4L)
  expect_identical(sizes(function(p) exp(p$u[1] - p$u[2]) + p$u[3] * p$u[4], start), rep(2L, 2))
  expect_identical(sizes(function(p) sum(exp(p$u)) + max(p$u), start), 4L)
  expect_identical(sizes(function(p) {
    s <- diag(4) + outer(p$u, p$u)
    determinant(s)$modulus + sum(dnorm(p$u))
  }, start), 4L)
  expect_identical(sizes(function(p) sum(ifelse(p$u > 0, p$v, p$a)^2) + sum(exp(p$u)), two),
                   rep(2L, 4))
  # a sum of what bends inside
  expect_identical(sizes(function(p) sum(ifelse(p$u > 0, p$v, p$a)) + sum(exp(p$u)), two),
                   rep(2L, 4))
  expect_identical(sizes(function(p) sum(chol(0.5 + diag(2 + p$u))), start), 4L)
  expect_identical(sizes(function(p) sum(solve(0.5 + diag(2 + p$u))), start), 4L)
  expect_identical(sizes(function(p) {
    sum(cl_scan(function(s, x) s * p$a + sin(x) * s, 1, p$u, sequences = 4))
  }, m), rep(3L, 4))
  # what does not count in the value does not count here
  obj <- cl_tmb(function(p) {
    ADREPORT(prod(p$u))
    sum((p$u - p$a)^2)
  }, start, random = "u")
  expect_identical(block_sizes(obj), rep(1L, 4))
  # sizes that differ
  expect_identical(sizes(function(p) exp(p$u[1] + p$u[2]) + sum(p$u^2), start), c(1L, 1L, 2L))
})

test_that("random sums of products are split where no product joins them", {
  set.seed(3)
  for (i in seq_len(full_or_quick(20, 6))) {
    n <- 8
    pairs <- matrix(sample(n, 2 * sample(6, 1), TRUE), 2)
    ops <- sample(4, ncol(pairs), TRUE)
    f <- function(p) {
      total <- sum(p$a * p$u)
      for (k in seq_len(ncol(pairs))) {
        x <- p$u[pairs[1, k]]
        w <- p$u[pairs[2, k]]
        total <- total + switch(ops[k], x * w, exp(x - w), log1p(x^2) + sin(w), x / (2 + w^2))
      }
      total
    }
    obj <- cl_tmb(f, list(a = 1, u = numeric(n)), random = "u")
    expect_apart(obj)
    joined <- pairs[, ops != 3, drop = FALSE]
    label <- seq_len(n)
    for (round in seq_len(n)) for (k in seq_len(ncol(joined))) {
      same <- label %in% label[joined[, k]]
      label[same] <- min(label[same])
    }
    expect_identical(sort(block_sizes(obj)), sort(as.integer(table(label))))
  }
})

test_that("value, gradient and standard errors are those of one dense block", {
  set.seed(4)
  group <- rep(1:12, each = 8)
  x <- rnorm(96)
  truth <- matrix(rnorm(24), 2) * c(0.6, 0.3)
  count <- rpois(96, exp(0.4 + truth[1, group] + (0.3 + truth[2, group]) * x))
  slopes <- function(p) {
    getAll(p)
    S <- diag(exp(logs)) %*% rbind(c(1, rho), c(rho, 1)) %*% diag(exp(logs))
    eta <- mu[1] + u[1, group] + (mu[2] + u[2, group]) * x
    ADREPORT(exp(logs))
    ADREPORT(u[, 1] * mu)
    -sum(dmvnorm(t(u), 0, S, log = TRUE)) - sum(dpois(count, exp(eta), log = TRUE))
  }
  start <- list(mu = c(0, 0), logs = c(-1, -1), rho = 0.1, u = matrix(0, 2, 12))
  before <- live_bytes()
  apart <- by_blocks(slopes, start, random = "u")
  expect_identical(block_sizes(apart), rep(2L, 12))
  tied <- by_blocks(function(p) slopes(p) + 1e-300 * sum(p$u)^2, start, random = "u")
  expect_identical(block_sizes(tied), 24L)
  for (at in list(apart$par, c(0.4, 0.2, -0.5, -1, -0.3))) {
    expect_equal(apart$fn(at), tied$fn(at), tolerance = 1e-12)
    expect_equal(apart$gr(at), tied$gr(at), tolerance = 1e-9)
    expect_equal(c(apart$gr(at)), slopes_of(apart$fn, at, 1e-3), tolerance = 1e-6)
  }
  best <- nlminb(apart$par, apart$fn, apart$gr)$par
  one <- cl_sdreport(apart, best)
  other <- cl_sdreport(tied, best)
  for (part in c("cov.fixed", "par.random", "diag.cov.random", "value", "sd", "cov")) {
    expect_equal(one[[part]], other[[part]], tolerance = 1e-6, info = part)
  }
  rm(apart, tied)
  gc()
  expect_identical(live_bytes(), before)
})

test_that("any numbers and sizes of blocks, positive definite or not, with each other", {
  set.seed(7)
  for (n in 1:4) for (count in 1:5) {
    at <- sprintf("%d blocks of size %d", count, n)
    a <- replicate(count, crossprod(matrix(rnorm(n * (n + 1)), n + 1)) + diag(n))
    dim(a) <- c(n, n, count)
    each <- function(f) vapply(seq_len(count), function(k) f(matrix(a[, , k], n)), 0)
    factor <- statcl:::block_factor(list(a))
    expect_equal(statcl:::block_log_det(factor), sum(log(each(det))), info = at)
    # where one is not, its diagonal grows, and no other
    for (bad in list(1L, seq_len(count))) {
      h <- a
      for (k in bad) for (i in 1:n) h[i, i, k] <- -h[i, i, k]
      damped <- statcl:::damped_factors(h)
      expect_true(attr(damped, "damped"), info = at)
      for (k in seq_len(count)) {
        r <- matrix(damped[, , k], n)
        shift <- crossprod(r * upper.tri(r, TRUE)) - h[, , k]
        expect_equal(shift, diag(shift[1], n), tolerance = 1e-10, info = at)
        expect_identical(shift[1] > 0.1, k %in% bad, info = at)
      }
    }
  }
  for (size in full_or_quick(1:4, c(1, 3))) for (groups in full_or_quick(1:5, 3)) {
    group <- rep(seq_len(groups), each = 4)
    seen <- rnorm(length(group))
    x <- matrix(rnorm(length(group) * size), ncol = size)
    obj <- by_blocks(function(p) {
      -sum(dnorm(seen, p$mu + rowSums(x * p$b[group, ]), exp(p$logs), log = TRUE)) -
        sum(dnorm(p$b, 0, 0.7, log = TRUE))
    }, list(mu = 0, logs = 0, b = matrix(0, groups, size)), random = "b")
    v <- 0.49 * tcrossprod(x) * outer(group, group, "==") + exp(0.4) * diag(length(group))
    r <- chol(v)
    exact <- sum(log(diag(r))) + sum(backsolve(r, seen - 0.3, transpose = TRUE)^2) / 2 +
      length(group) * log(2 * pi) / 2
    expect_equal(obj$fn(c(0.3, 0.2)), exact, tolerance = 1e-10)
    expect_true(all(is.finite(obj$gr(c(0.3, 0.2)))))
  }
})

test_that("thousands of groups", {
  set.seed(5)
  groups <- full_or_quick(5000L, 1500L)
  group <- rep(seq_len(groups), each = 4)
  success <- rbinom(4 * groups, 1, plogis(0.5 + rnorm(groups)[group]))
  obj <- by_blocks(function(p) {
    getAll(p)
    u %~% dnorm(0, exp(logs))
    success %~% dbinom(1, plogis(mu + u[group]))
  }, list(mu = 0, logs = 0, u = numeric(groups)), random = "u")
  expect_equal(c(obj$gr()), slopes_of(obj$fn, obj$par, 1e-3), tolerance = 1e-5)
  # each group by itself
  one <- function(total, mu, s) {
    f <- function(u) u^2 / (2 * s^2) + 4 * log1p(exp(mu + u)) - total * (mu + u)
    u <- optimize(f, c(-10, 10), tol = 1e-10)$minimum
    p <- plogis(mu + u)
    f(u) + 0.5 * log(1 / s^2 + 4 * p * (1 - p)) + log(s)
  }
  each <- vapply(0:4, one, 0, mu = 0.2, s = exp(0.1))
  totals <- tapply(success, group, sum)
  expect_equal(obj$fn(c(0.2, 0.1)), sum(each[totals + 1]), tolerance = 1e-9)
})

test_that("blocks of many sizes, large ones included, and without second derivatives", {
  set.seed(6)
  sizes <- c(1, 1, 2, 5, 130)
  group <- rep(seq_along(sizes), sizes)
  seen <- rnorm(length(group))
  f <- function(p) {
    total <- sum((seen - p$u)^2) * exp(p$a)
    for (g in seq_along(sizes)) total <- total + sum(p$u[group == g])^2
    total
  }
  obj <- by_blocks(f, list(a = 0.2, u = numeric(length(group))), random = "u")
  expect_identical(block_sizes(obj), c(1L, 1L, 2L, 5L, 130L))
  exact <- function(a) {
    q <- length(group)
    h <- 2 * exp(a) * diag(q) + 2 * outer(group, group, "==")
    u <- solve(h, 2 * exp(a) * seen)
    f(list(a = a, u = u)) + 0.5 * c(determinant(h)$modulus) - 0.5 * q * log(2 * pi)
  }
  expect_equal(obj$fn(0.4), exact(0.4), tolerance = 1e-12)
  expect_equal(c(obj$gr(0.4)), slopes_of(exact, 0.4, 1e-3), tolerance = 1e-7)
  # by differences, as for an operation without second derivatives
  o <- environment(obj$fn)$o
  o$differences <- 2:3
  o$mode_of <- NULL
  expect_equal(obj$fn(0.4), exact(0.4), tolerance = 1e-7)
  expect_equal(c(obj$gr(0.4)), slopes_of(exact, 0.4, 1e-3), tolerance = 1e-5)
})

test_that("a block that is too large is an error", {
  f <- function(p) sum(exp(p$u)) + prod(p$u) + p$a
  expect_refused("random", cl_tmb(f, list(a = 1, u = numeric(4001)), random = "u"),
                 says = "up to 4001 depend on each other.*dense")
})

test_that("a Hessian that takes too much memory is an error before it is computed", {
  n <- 20L
  x <- outer(1:n, 1:n, function(i, j) cos(i * j))
  start <- list(a = 1, u = numeric(n))
  f <- function(p) sum((p$a * sin(x %*% p$u) - 1)^2) + sum(p$u^2)
  with_limits(list(most_sparse = function() n^2), {
    # blocks instead
    obj <- cl_tmb(f, start, random = "u")
    o <- environment(obj$fn)$o
    expect_null(statcl:::tmb_sparse(o))
    expect_s3_class(o$too_large, "statcl_error_memory")
    expect_fault(cl_hessian(function(u) sum(sin(x %*% u)), sparse = TRUE)(numeric(n)), "memory")
    with_limits(list(most_coupled = n - 1L), {
      e <- expect_fault(cl_tmb(f, start, random = "u"), "memory")
      expect_match(conditionMessage(e), "the 20 random effects, of which up to 20 depend")
      expect_gt(e$bytes, e$limit)
    })
  })
  expect_equal(obj$fn(0.7), cl_tmb(f, start, random = "u")$fn(0.7), tolerance = 1e-10)
})

})
