skip_if_not_installed("Matrix")

# Rows and columns without elements, and one that is much longer than the others.
random_sparse <- function(m, n, count, long = 0L) {
  i <- c(sample.int(m, count, TRUE), rep(sample.int(m, 1L), long))
  j <- c(sample.int(n, count, TRUE), sample.int(n, long, TRUE))
  Matrix::sparseMatrix(i, j, x = rnorm(count + long), dims = c(m, n))
}

# The products that there are, beside those of base R.
expect_products <- function(s, columns = c(1L, 2L, 3L, 17L)) {
  x <- as_cl(s)
  dense <- as.matrix(s)
  expect_s4_class(x, "clSparse")
  for (k in columns) {
    right <- matrix(rnorm(ncol(s) * k), ncol(s))
    left <- matrix(rnorm(nrow(s) * k), nrow(s))
    expect_close(as.matrix(x %*% right), dense %*% right)
    expect_close(as.matrix(x %*% as_cl(right)), dense %*% right)
    expect_close(as.matrix(crossprod(x, left)), crossprod(dense, left))
    expect_close(as.matrix(t(x) %*% left), t(dense) %*% left)
    expect_close(as.matrix(t(left) %*% x), t(left) %*% dense)
    expect_close(as.matrix(crossprod(as_cl(left), x)), crossprod(left, dense))
    expect_close(as.matrix(tcrossprod(x, t(right))), dense %*% right)
    expect_close(as.matrix(tcrossprod(t(right), x)), tcrossprod(t(right), dense))
  }
}

test_each_engine("products of sparse matrices of odd shapes", {
  set.seed(1)
  shapes <- list(c(1, 1, 1), c(1, 5000, 3000), c(5000, 1, 3000), c(257, 255, 900),
                 c(700, 3, 1025), c(3, 700, 1024), c(300, 1000, 0), c(2000, 31, 20000))
  for (shape in shapes) expect_products(random_sparse(shape[1L], shape[2L], shape[3L]))
  for (shape in list(c(0, 3), c(3, 0), c(0, 0))) {
    s <- Matrix::sparseMatrix(integer(), integer(), x = numeric(), dims = shape)
    expect_identical(as.matrix(as_cl(s) %*% matrix(1, shape[2L], 2L)), matrix(0, shape[1L], 2L))
    expect_identical(as.matrix(crossprod(as_cl(s))), matrix(0, shape[2L], shape[2L]))
  }
})

test_each_engine("long rows among short ones", {
  set.seed(2)
  s <- random_sparse(400L, 30000L, 3000L, 10000L)
  full <- Matrix::sparseMatrix(rep(2L, 9000L), seq_len(9000L), x = rnorm(9000L),
                               dims = c(3L, 9000L))
  expect_products(s)
  expect_products(full)
  x <- as_cl(s)
  b <- rnorm(30000L)
  expect_identical(as.matrix(x %*% b), as.matrix(x %*% b))
})

test_each_engine("crossproducts of sparse matrices", {
  set.seed(3)
  for (shape in list(c(1, 1, 1), c(300, 17, 900), c(40, 90, 400), c(6000, 70, 9000))) {
    s <- random_sparse(shape[1L], shape[2L], shape[3L])
    s <- cbind(s, 1) # a column that is longer than the others
    x <- as_cl(s)
    w <- runif(nrow(s))
    expect_close(as.matrix(crossprod(x)), as.matrix(Matrix::crossprod(s)))
    expect_identical(crossprod(x)@view, "symmetric")
    expect_true(isSymmetric(as.matrix(crossprod(x)), tol = 0))
    expect_close(as.matrix(sparse_gram(x, w)), as.matrix(Matrix::crossprod(s, w * s)))
    if (nrow(s) < 1000L) expect_close(as.matrix(tcrossprod(x)), as.matrix(Matrix::tcrossprod(s)))
  }
})

test_each_engine("the classes of package Matrix", {
  set.seed(4)
  general <- Matrix::rsparsematrix(9, 9, 0.3)
  twice <- methods::new("dgTMatrix", i = c(0L, 0L, 8L), j = c(1L, 1L, 0L), x = c(1, 2, 4),
                        Dim = c(9L, 9L))
  cases <- list(general, methods::as(general, "RsparseMatrix"),
                methods::as(general, "TsparseMatrix"), twice, Matrix::Diagonal(9),
                Matrix::Diagonal(9, 1:9), Matrix::tril(general), Matrix::triu(general),
                Matrix::forceSymmetric(general, "U"), Matrix::forceSymmetric(general, "L"),
                general > 0, methods::as(general, "nMatrix"), methods::as(9:1, "pMatrix"))
  for (s in cases) {
    expect_products(s, 1L)
    expect_identical(unname(as.matrix(as_cl(s))), unname(as.matrix(s) + 0))
    expect_identical(unname(as.matrix(as_sparse(as_cl(s)))), unname(as.matrix(s) + 0))
  }
})

test_each_engine("missing and infinite values meet stored elements only", {
  s <- Matrix::sparseMatrix(c(1, 2, 4, 4), c(1, 2, 2, 3), x = c(NA, Inf, -1, 2), dims = c(5, 3))
  x <- as_cl(s)
  expect_identical(as.matrix(x %*% c(1, 2, 3)), matrix(c(NA, Inf, 0, 4, 0)))
  expect_identical(as.matrix(x %*% c(0, 1, NaN))[c(2, 3, 5)], c(Inf, 0, 0))
  expect_true(all(is.nan(as.matrix(x %*% c(0, 0, NaN))[c(2, 4)])))
  expect_identical(as.matrix(x %*% c(0, 0, Inf))[4:5], c(Inf, 0))
})

test_that("shape, names, parts and arithmetic of sparse matrices", {
  set.seed(5)
  s <- Matrix::rsparsematrix(20, 7, 0.3)
  dimnames(s) <- list(paste0("r", 1:20), letters[1:7])
  dense <- as.matrix(s)
  same <- function(a, b) expect_equal(as.matrix(a), b, tolerance = 1e-14)
  each_engine({
    x <- as_cl(s)
    expect_identical(list(dim(x), dimnames(x), nrow(x), ncol(x), length(x)),
                     list(dim(dense), dimnames(dense), 20L, 7L, 140L))
    expect_identical(as_sparse(x), s)
    expect_identical(as_sparse(t(x)), Matrix::t(s))
    expect_fault(x["absent", ], "argument")
    expect_fault(x[21, ], "argument")
    expect_identical(as_cl(x), x)
    expect_identical(as.matrix(cl_matrix(s)), dense)
    expect_s4_class(as_cl(s[1:7, ], view = "lower"), "clMatrix")
    same(x %*% c(a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7), dense %*% 1:7)
    same(crossprod(x), crossprod(dense))
    same(crossprod(x, dense[, 1:2]), crossprod(dense, dense[, 1:2]))
    same(dense[1:2, ] %*% t(x), dense[1:2, ] %*% t(dense))
    same(t(x) %*% (x %*% rep(1, 7)), t(dense) %*% (dense %*% rep(1, 7)))
    same(x[3:20, c(2, 1)], dense[3:20, c(2, 1)])
    same(t(x)[c(2, 1), ], t(dense)[c(2, 1), ])
    expect_identical(x[, 2], dense[, 2])
    same(x[, 2, drop = FALSE], dense[, 2, drop = FALSE])
    same(2 * x / 4, dense / 2)
    same(-t(x), -t(dense))
    same(x * 1:20, dense * 1:20)
    same(x / as_cl(1:20), dense / 1:20)
    expect_equal(sum(x), sum(dense))
    for (f in list(rowSums, colSums, rowMeans, colMeans)) {
      expect_equal(f(x), f(dense))
      expect_equal(f(t(x)), f(t(dense)))
      expect_equal(f(x, na.rm = TRUE), f(dense))
    }
    expect_match(capture.output(print(x)),
                 "^<clSparse 20 x 7 double, [0-9]+ stored elements, .* on ")
    expect_match(capture.output(str(x)), "clSparse 20 x 7")
  })
})

test_on_host("what a sparse matrix does not have is refused", {
  x <- as_cl(Matrix::rsparsematrix(6, 6, 0.5))
  for (f in list(function() x + 1, function() 1 - x, function() x * x, function() 2 / x,
                 function() x > 0, function() exp(x), function() max(x), function() solve(x),
                 function() x[3], function() !x)) {
    expect_match(conditionMessage(expect_fault(f(), "argument", argument = "x")), "as.matrix")
  }
  for (v in list(Inf, 1:2, "a", matrix(1:12, 6))) expect_refused("e2", x * v)
  expect_refused("b", x %*% 1:5, x %*% matrix(1, 5, 2), matrix(1, 2, 5) %*% x, x %*% letters[1:6])
  expect_refused("y", crossprod(x, as_sparse(x)), tcrossprod(x, matrix(1, 2, 5)))
  expect_refused("x", as_sparse(1))
})

test_each_engine("a sparse matrix is saved with its values", {
  s <- Matrix::rsparsematrix(30, 20, 0.2)
  x <- as_cl(s)
  again <- unserialize(serialize(x, NULL))
  expect_match(format(again), "not on a device now")
  expect_close(as.matrix(again %*% 1:20), as.matrix(s %*% 1:20))
  expect_close(as.matrix(t(again) %*% 1:30), as.matrix(Matrix::t(s) %*% 1:30))
  rm(again)
})

test_each_engine("likelihoods with sparse predictors are those of dense ones", {
  set.seed(6)
  n <- 400L
  s <- Matrix::rsparsematrix(n, 11, 0.2)
  dense <- as.matrix(s)
  beta <- rnorm(11) / 3
  eta <- as.vector(dense %*% beta)
  response <- list(bernoulli_logit = rbinom(n, 1, plogis(eta)), poisson_log = rpois(n, exp(eta)),
                   normal_id = rnorm(n, eta), neg_binomial_2_log = rpois(n, exp(eta)),
                   binomial_logit = rbinom(n, 5, plogis(eta)),
                   ordered_logistic = sample.int(3L, n, TRUE))
  for (family in names(response)) {
    trials <- if (family == "binomial_logit") 5
    ours <- cl_likelihood(family, response[[family]], as_cl(s), trials)
    peer <- cl_likelihood(family, response[[family]], dense, trials)
    aux <- list(normal_id = list(sigma = 1.3), neg_binomial_2_log = list(phi = 2),
                ordered_logistic = list(cuts = c(-1, 0.5)))[[family]]
    for (alpha in list(0.2, seq_len(n) / n)) {
      at <- c(list(alpha = alpha, beta = beta), aux)
      expect_equal(do.call(ours, at), do.call(peer, at), tolerance = 1e-12)
      at$gradient <- "beta"
      expect_equal(do.call(ours, at), do.call(peer, at), tolerance = 1e-12)
      at["gradient"] <- list(NULL)
      expect_equal(do.call(ours, at), do.call(peer, at), tolerance = 1e-12)
    }
  }
  ours <- cl_likelihood("bernoulli_logit", response[[1L]], as_cl(s))
  peer <- cl_likelihood("bernoulli_logit", response[[1L]], dense)
  several <- cbind(beta, -beta, 0)
  for (alpha in list(0.2, c(0.1, 0, -3), matrix(seq_len(3L * n) / n, n))) {
    expect_equal(ours(alpha, several), peer(alpha, several), tolerance = 1e-12)
  }
  expect_equal(ours(0, 0.1), peer(0, 0.1), tolerance = 1e-12)
  expect_output(print(ours), "400 observations, 11 coefficients.*data: ")
  again <- unserialize(serialize(ours, NULL))
  expect_equal(again(0.1, beta), peer(0.1, beta), tolerance = 1e-12)
  expect_refused("beta", ours(0, beta[-1L]))
  expect_refused("alpha", ours(1:3, beta))
  for (bad in list("x", "sigma", 1, TRUE, mean, list("beta"))) {
    expect_refused("gradient", ours(0, beta, gradient = bad))
  }
  expect_fault(ours(0, beta * NA), "nonfinite")
})

test_that("a restored sparse likelihood is where it is chosen to be, and on the host in a fork", {
  skip_on_os("windows")
  set.seed(8)
  s <- Matrix::rsparsematrix(200, 5, 0.4)
  y <- as.double(rpois(200, 1))
  beta <- c(0.1, -0.2, 0, 0.3, 0.1)
  places <- function(f) {
    own <- environment(f)
    c(own$engine$at, own$state$where, environment(own$rows)$engine$at)
  }
  each_engine(for (f in list(sparse_likelihood("poisson_log", y, s, NULL),
                             cl_likelihood("poisson_log", y, as_cl(s)))) {
    want <- f(0.2, beta)
    before <- places(f)
    again <- unserialize(serialize(f, NULL))
    expect_equal(again(0.2, beta), want, tolerance = 1e-12)
    expect_identical(places(again), before)
    expect_identical(length(unique(before)), 1L)
    job <- parallel::mcparallel(list(f(0.2, beta), places(f)))
    result <- parallel::mccollect(job, wait = FALSE, timeout = 30)[[1L]]
    if (is.null(result)) tools::pskill(job$pid, 9L)
    expect_equal(result[[1L]], want, tolerance = 1e-12)
    expect_identical(result[[2L]], rep(-1L, 3L))
    expect_identical(f(0.2, beta), want)
  })
  with_thresholds(c(likelihood = Inf), {
    f <- unserialize(serialize(sparse_likelihood("poisson_log", y, s, NULL), NULL))
    f(0.2, beta)
    expect_identical(places(f), rep(-1L, 3L))
  })
})

test_on_host("a sparse likelihood is sampled and optimised as a dense one", {
  set.seed(7)
  s <- Matrix::rsparsematrix(300, 4, 0.4)
  y <- rbinom(300, 1, plogis(as.vector(s %*% c(1, -1, 0.5, 0))))
  fit <- glm(y ~ as.matrix(s), family = binomial, control = list(epsilon = 1e-12))
  f <- cl_likelihood("bernoulli_logit", y, as_cl(s))
  best <- cl_optimise(f, list(alpha = 0, beta = numeric(4)))
  expect_equal(unname(unlist(best$par)), unname(coef(fit)), tolerance = 1e-4)
  draws <- cl_sample(cl_log_posterior(f, ~ dnorm(beta, 0, 10, log = TRUE)),
                     list(alpha = 0, beta = numeric(4)), chains = 2, warmup = 100, iter = 100,
                     seed = 1, refresh = 0)
  expect_equal(unname(colMeans(as.matrix(draws))[1:5]), unname(coef(fit)), tolerance = 0.5)
})

test_each_engine("fits with sparse predictors are those of glm()", {
  set.seed(8)
  n <- 1800L
  s <- Matrix::rsparsematrix(n, 420, 0.02) # more columns than R factors
  y <- rpois(n, exp(0.3 + as.vector(s %*% rnorm(420, sd = 0.2))))
  weights <- rep(c(1, 2, 0), 600L)
  dense <- as.matrix(s)
  peer <- glm.fit(cbind(1, dense), y, weights, family = poisson(),
                  control = list(epsilon = 1e-12, maxit = 50))
  root <- peer$qr$qr[seq_len(peer$rank), seq_len(peer$rank)]
  expected <- peer$coefficients
  for (x in list(s, as_cl(s))) {
    fit <- cl_glm(x, y, poisson, weights = weights)
    expect_equal(unname(coef(fit)), unname(expected), tolerance = 1e-7)
    expect_equal(unname(vcov(fit)), chol2inv(root), tolerance = 1e-6)
    expect_equal(fit$deviance, peer$deviance, tolerance = 1e-9)
  }
  # a column twice; a column of zeros
  twice <- cl_glm(cbind(s, s[, 1L], 0), y, poisson, weights = weights)
  expect_identical(unname(which(is.na(coef(twice)))), 422:423)
  expect_equal(unname(coef(twice)[1:421]), unname(expected), tolerance = 1e-7)
  few <- cl_glm(s[, 1:5], y, poisson, weights = weights, offset = seq_len(n) / n)
  direct <- glm(y ~ dense[, 1:5], poisson, weights = weights, offset = seq_len(n) / n,
                control = list(epsilon = 1e-12))
  expect_equal(unname(coef(few)), unname(coef(direct)), tolerance = 1e-8)
  plain <- cl_glm(s[, 1:5], y, poisson)
  expect_equal(predict(plain, as_cl(s[1:3, 1:5])), predict(plain, s[1:3, 1:5]))
  broken <- s
  broken@x[3L] <- NaN
  expect_fault(cl_glm(broken, y, poisson), "nonfinite")
})
