# Small problems through every kernel, device against host; called by oclgrind.sh, which reads
# the simulator's reports. Argument: a topic; --list names them all. STATCL_TEST_QUICK=1 takes fewer
# sizes.

full_or_quick <- function(full, quick) {
  if (identical(Sys.getenv("STATCL_TEST_QUICK"), "1")) quick else full
}

topics <- list(
  transfer = function() {
    for (n in c(1, 7, 33)) {
      a <- crossprod(matrix(rnorm(n * n), n))
      for (view in c("general", "lower", "upper", "symmetric")) {
        same(as.matrix(cl_matrix(a, n, n, view = view)))
      }
      same(as.matrix(as_cl(a[, seq_len(n %/% 2 + 1), drop = FALSE])))
    }
  },
  elementwise = function() {
    for (m in c(1, 17, 61)) {
      a <- as_cl(matrix(runif(m * 19) + 0.5, m))
      b <- as_cl(matrix(runif(m * 19) + 0.5, m))
      same(as.matrix(exp(a) - b * 2 + a / b))
      same(as.matrix(t(a)))
      same(as.matrix(cbind(a, b)[seq_len(m), c(3, 21, 38)]))
    }
    same(as.matrix(cl_matrix(diag(9), 9, 9) * 3))
    a <- matrix(runif(37 * 37), 37)
    x <- as_cl(a)
    y <- x
    y[3:9, 30:37] <- 0
    diag(y) <- 1
    same(as.matrix(y), diag(x), as.matrix(cl_identity(5, batch = 3)), as.matrix(cl_zeros(3, 70)),
         as.matrix(x - rowSums(x)), as.matrix(2^x), as.matrix(-x %% 0.1),
         as.matrix(x[c(5, 1, 5), ]), as.matrix(x[, -1]))
    x <- as_cl(c(-20.3, -3.7, -0.2, 0.3, 1.2, 2.2, 7.5, 30.1, -35.5))
    same(as.matrix(lgamma(x) + digamma(x) * trigamma(x) + sinpi(x)),
         sum(cl_pnorm(x, log.p = TRUE)), as.matrix(cl_pnorm(x)), as.matrix(round(x, 1)))
  },
  reduce = function() {
    for (n in c(1, 255, 1000, 5000)) {
      a <- as_cl(matrix(rnorm(n), n))
      same(sum(a), max(a), min(a))
    }
    same(sum(as_cl(matrix(rnorm(37 * 41), 37))))
    x <- crossprod(matrix(rnorm(60 * 41), 60))
    same(isSymmetric(as_cl(x)), isSymmetric(as_cl(x + seq_len(41))), rowSums(as_cl(x)),
         mean(as_cl(x[2:40, ])), range(as_cl(x)))
    x[30, 5] <- NaN
    same(tryCatch(cl_chol(x), statcl_error_nonfinite = function(e) e$index))
    # products inside: in pairs of rows, one row left over, and by the row
    for (shape in list(c(4098, 5), c(4097, 4), c(4097, 1))) {
      x <- as_cl(matrix(rnorm(prod(shape)), shape[1]))
      y <- as_cl(rnorm(shape[1]))
      r <- y - x %*% rnorm(shape[2])
      same(sum(r^2), as.matrix(r * 2))
    }
  },
  products = function() {
    shapes <- list(c(17, 33, 9), c(66, 40, 67), c(2, 1500, 2), c(1, 1, 1), c(70, 3, 65))
    for (shape in shapes[full_or_quick(1:5, 1:3)]) {
      a <- matrix(rnorm(shape[1] * shape[2]), shape[1])
      b <- matrix(rnorm(shape[2] * shape[3]), shape[2])
      same(cl_matmul(a, b), cl_crossprod(t(a), b), cl_tcrossprod(a, t(b)), cl_tcrossprod(a),
           cl_matmul(a, b[, 1, drop = FALSE]), cl_matmul(a[1, , drop = FALSE], b))
    }
    l <- cl_matrix(matrix(rnorm(70^2), 70), 70, 70, view = "lower")
    same(as.matrix(l %*% l), as.matrix(crossprod(l)))
  },
  # by 8-bit integers; only a device takes them
  integers = function() {
    by_integers <- function(x) {
      with_cl(as.matrix(x), engine = statcl:::session$engine, emulate = TRUE)
    }
    for (shape in list(c(5, 40, 3), c(70, 17, 33))[full_or_quick(1:2, 1)]) {
      a <- matrix(rnorm(shape[1] * shape[2]), shape[1])
      b <- matrix(rnorm(shape[2] * shape[3]), shape[2])
      same(by_integers(cl_matmul(a, b)), by_integers(cl_tcrossprod(a)),
           by_integers(cl_crossprod(t(a), b)))
    }
  },
  triangular = function() {
    for (n in full_or_quick(c(1, 17, 70, 131), c(17, 70))) {
      l <- triangle(n)
      b <- matrix(rnorm(n * 3), n)
      same(cl_tri_solve(l, b), cl_tri_solve(l, b, transpose = TRUE),
           cl_tri_solve(t(l), b, upper = TRUE), cl_tri_solve(l, matrix(rnorm(n * 40), n)),
           cl_tri_inverse(l))
    }
    l <- triangle(300) # two blocks of the kernels for one right-hand side
    b <- rnorm(300)
    same(cl_tri_solve(l, b), cl_tri_solve(l, b, transpose = TRUE))
  },
  cholesky = function() {
    for (n in full_or_quick(c(1, 17, 70, 131), c(17, 70))) {
      l <- triangle(n)
      a <- tcrossprod(l)
      same(cl_chol(a, lower = TRUE), cl_chol_adjoint(l, matrix(rnorm(n * n), n)),
           as.matrix(solve(cl_matrix(a, n, n, view = "symmetric"))))
    }
    a[9, 9] <- -1
    same(tryCatch(cl_chol(a), statcl_error_not_pd = function(e) e$order))
  },
  batch = function() {
    # Every order of a kernel that takes several is run: they differ in the elements beyond it.
    for (n in full_or_quick(1:33, seq(1, 33, 4))) {
      batch <- if (n <= 8) 3 else 2
      a <- array(unlist(lapply(seq_len(batch), function(q) {
        tcrossprod(triangle(n)) + diag(n)
      })), c(n, n, batch))
      b <- array(rnorm(n * 2 * batch), c(n, 2, batch))
      a[, , batch] <- 0
      r <- suppressWarnings(cl_batch_chol(a))
      r[, , batch] <- diag(n)
      fine <- function(x) x[, , -batch, drop = FALSE]
      same(r, suppressWarnings(fine(cl_batch_inverse(a))),
           suppressWarnings(fine(cl_batch_solve(a, b))), cl_batch_det(a, log = TRUE)[-batch],
           cl_batch_tri_solve(r, b, upper = TRUE), cl_batch_matmul(a, b),
           cl_batch_mvn_lpdf(matrix(b[, 1, ], n), chol = r),
           cl_batch_chol_adjoint(aperm(r, c(2, 1, 3)), array(cos(seq_along(a)), dim(a))))
    }
    same(cl_batch_matmul(array(sin(1:2310), c(35, 33, 2)), array(cos(1:2310), c(35, 33, 2)),
                         transpose_b = TRUE))
  },
  glm_batch = function() {
    n <- c(3, 40, 33, 2)
    g <- rep(1:4, n)[order(sin(1:78))]
    x <- cbind(1, sin((1:78)^2), c(2, 0, 5), cos(1:78))
    for (family in c("binomial", "poisson", "gaussian")) {
      fit <- suppressWarnings(cl_batch_glm(x, rep_len(c(0, 1, 1, 0, 1, 0), 78), g, family,
                                           weights = 1 + 1:78 %% 2, offset = cos(1:78)))
      same(fit$coefficients[2:3, ], fit$deviance[2:3], fit$rank)
    }
  },
  glm = function() {
    everything <- function(value) c(as.numeric(value), unlist(attributes(value)))
    for (shape in list(c(1, 1), c(130, 3), c(300, 20), c(65, 103), c(35, 220))) {
      x <- matrix(rnorm(shape[1] * shape[2]), shape[1])
      y <- rbinom(shape[1], 1, 0.5)
      beta <- rnorm(shape[2]) / 10
      value <- cl_glm_lpdf("bernoulli_logit", y, x, 0.1, beta, gradient = c("alpha", "beta", "x"))
      rows <- cl_glm_lpdf("bernoulli_logit", y, x, rnorm(shape[1]), beta, gradient = "alpha")
      same(everything(value), everything(rows))
    }
    # Families, several parameter vectors, and more of them than a pass takes.
    x <- matrix(rnorm(75 * 12), 75)
    y <- rep_len(1:3, 75)
    for (vectors in c(2, 4, 5)) {
      beta <- matrix(rnorm(12 * vectors), 12) / 5
      f <- cl_likelihood("ordered_logistic", y, x)
      same(everything(f(0, beta, cuts = outer(c(-1, 1), seq_len(vectors)))))
      same(everything(cl_glm_lpdf("normal_id", y, x, 0, beta, sigma = 2, gradient = "sigma")))
    }
    same(everything(cl_glm_lpdf("normal_id", y, x, 0, beta[, 1], sigma = y / 2,
                                gradient = c("beta", "sigma"))),
         everything(cl_glm_lpdf("categorical_logit", y, x, 0, beta[, 1:3],
                                gradient = c("alpha", "beta"))),
         everything(cl_glm_lpdf("categorical_logit", y, x, 0, beta, gradient = "beta")))
    for (family in c("poisson_log", "categorical_logit")) { # with weights
      f <- statcl:::new_likelihood(family, as.double(y), x, NULL, y / 2)
      same(everything(f(0, beta[, 1:3])))
    }
  },
  sparse = function() {
    # short rows, a row in two pieces, rows and columns without elements
    places <- list(c(1, 1, 1, 0), c(300, 40, 700, 0), c(5, 1500, 60, 1400))
    for (size in places[full_or_quick(1:3, 2:3)]) {
      s <- Matrix::sparseMatrix(c(sample.int(size[1], size[3], TRUE), rep(2, size[4])),
                                c(sample.int(size[2], size[3], TRUE), seq_len(size[4])),
                                x = rnorm(size[3] + size[4]), dims = size[1:2])
      x <- as_cl(s)
      same(as.matrix(x %*% rnorm(size[2])),
           as.matrix(crossprod(x, matrix(rnorm(3 * size[1]), ncol = 3))))
      if (size[2] < 100) same(as.matrix(crossprod(as_cl(cbind(s, 1)))))
    }
  },
  program = function() {
    everything <- function(value) c(as.numeric(value), unlist(attributes(value)))
    for (n in c(1, 33, 200)) {
      f <- cl_gradient(function(x, y) {
        columns <- matrix(sin(y), n)
        # indices of one element: few, and more than one work-item adds
        sum(x[rep_len(seq_len(n), 3 * n)] * few) + sum(x[rep_len(c(1, n), n + 64)]^2 * many) +
          sum(cumsum(exp(x))^2) / n + sum(apply(columns, 2, cumsum)^2) / n
      })
      few <- rnorm(3 * n)
      many <- rnorm(n + 64)
      same(everything(f(rnorm(n), rnorm(2 * n))))
    }
    # Sums over groups, from one to many elements.
    for (n in c(1, 33, 200)) {
      g <- cl_gradient(function(x) sum(tanh(x[rep_len(1:2, n)] * w)))
      w <- rnorm(n)
      same(everything(g(c(0.3, -0.2))))
    }
    # A group that is added in parts.
    g <- cl_gradient(function(x) sum(x[rep(1:2, c(9000, 3))] * w))
    w <- rnorm(9003)
    same(everything(g(c(0.3, -0.2))))
  },
  pass = function() {
    Sys.setenv(STATCL_ROW_PASS = "1") # for few rows too
    everything <- function(value) c(as.numeric(value), unlist(attributes(value)))
    for (shape in list(c(200, 3), c(67, 30), c(70, 60), c(34, 110))) {
      n <- shape[1]
      x <- matrix(rnorm(n * shape[2]), n)
      y <- rbinom(n, 1, 0.5)
      id <- rep_len(1:3, n)
      f <- cl_gradient(function(b, group, z) {
        eta <- x %*% b + group[id]
        sum(dbinom(y, 1, plogis(eta), log = TRUE)) + sum(z * eta)
      })
      same(everything(f(rnorm(shape[2]), rnorm(3), rnorm(n))))
      several <- cl_map_gradient(f, matrix(rnorm(3 * shape[2]), ncol = 3), matrix(rnorm(9), 3),
                                 matrix(rnorm(3 * n), n))
      same(everything(several))
    }
    g <- cl_gradient(function(a, b) sum(tanh(x %*% a) * plogis(x %*% b)))
    same(everything(g(rnorm(110), rnorm(110))))
  },
  leapfrog = function() {
    x <- matrix(c(0.3, -0.2, 0.8, -0.5, 0.1, 0.4), 3)
    run <- function(f, init) {
      fit <- suppressWarnings(cl_sample(f, init, chains = 1, warmup = 0, iter = 1, seed = 1,
                                        step_size = 0.1, method = "hmc", leapfrogs = 3,
                                        check_gradient = FALSE, refresh = 0))
      same(as.vector(fit$draws))
    }
    run(cl_likelihood("bernoulli_logit", c(0, 1, 1), x), list(alpha = 0, beta = c(0, 0)))
    run(cl_gradient(function(b) -sum((x %*% b)^2) - sum(b^2)), list(b = c(0.1, 0.2)))
    # both ends of the trajectories of two chains, in one request, by each kind of metric
    low <- list(diagonal = c(2, 1, 1), values = 4, vectors = matrix(c(0.6, 0.8, 0)))
    for (given in list(list(), list(metric = "dense", inverse_metric = diag(3) + 0.3),
                       list(metric = "low-rank", inverse_metric = low))) {
      # columns at even offsets: by tiles, else in three steps
      n <- if (identical(given$metric, "dense")) 3 else 4
      f <- cl_likelihood("bernoulli_logit", c(0, 1, 1, 0)[1:n], rbind(x, c(1, -1))[1:n, ])
      fit <- suppressWarnings(do.call(cl_sample, c(
        list(f, list(alpha = 0, beta = c(0, 0)),
             chains = 2, warmup = 0, iter = 4, seed = 1, step_size = 0.3, max_depth = 3,
             batch = TRUE, check_gradient = FALSE, refresh = 0), given)))
      same(as.vector(fit$draws))
    }
  },
  scan = function() {
    everything <- function(value) c(as.numeric(value), unlist(attributes(value)))
    for (b in c(1, 3, 70)) {
      y <- matrix(rnorm(5 * b), 5)
      f <- cl_gradient(function(move, start) {
        found <- cl_scan(function(s, y) {
          p <- exp(s) %*% move * dnorm(y, c(-1, 1))
          list(state = tanh(p), out = log(sum(p)))
        }, start, y, sequences = b)
        sum(found$out) + sum(found$state^2)
      })
      same(everything(f(matrix(c(0.8, 0.2, 0.3, 0.7), 2), matrix(rnorm(2 * b), 2))))
    }
    # Steps that are not run.
    decay <- cl_gradient(function(rate, start) {
      sum(cl_ode(function(t, y, k) -k * y^2, start, c(0, 0.3, 1), rate, rtol = 1e-3,
                 max_steps = 6)^2)
    })
    same(everything(decay(0.8, c(1, 2))))
  },
  covariance = function() {
    x <- matrix(rnorm(35 * 2), 35)
    for (kernel in list(k_exp_quad(1.3, c(0.7, 2)), k_matern32(0.8, 1.5), k_matern52(1, 2))) {
      same(cl_cov(x, kernel = kernel), cl_cov(x, x[1:9, ], kernel = kernel))
    }
    same(cl_cov(matrix(rnorm(70), 70), kernel = k_exp_quad())) # a tile that is mirrored
    composed <- k_exp_quad(1.3, c(0.7, 2)) * (k_periodic(1, 1, 0.7, 1) + k_linear(0.5)) +
      k_rational_quadratic() * k_constant(2) + k_white(0.3) + k_exponential(1, 0.5, 2)
    same(cl_cov(x, kernel = composed))
    w <- crossprod(x[, 1] + diag(35))
    same(cl_cov_adjoint(w, x, kernel = k_exponential()))
    same(cl_cov_adjoint(w[1:9, 1:9], x[1:9, ], kernel = composed, inputs = TRUE),
         cl_cov_adjoint(w[1:5, ], x[1:5, ], x, composed, inputs = TRUE))
    x <- matrix(sort(runif(40)), 40)
    y <- sin(6 * x[, 1])
    for (objective in c("ml", "loo")) {
      likelihood <- cl_gp_likelihood(y, x, k_matern52(), "linear", "integrate",
                                     objective = objective)
      value <- likelihood(c(sd = 1.1, lengthscale = 0.6, noise = 0.2))
      same(as.numeric(value), attr(value, "gradient"))
    }
    state <- statcl:::gp_condition(likelihood, c(1.1, 0.6, 0.2))
    state <- state$extend(y[1:5], x[1:5, , drop = FALSE] + 1)
    same(state$predict(x + 0.01, "covariance"), state$predict(x, "variance"), state$loo(),
         state$mean_gradient(x))
  },
  vecchia = function() {
    n <- full_or_quick(40, 24)
    x <- matrix(sort(runif(n)), n)
    y <- sin(6 * x[, 1])
    for (kernel in list(k_matern32(0.8, 1.5), k_periodic(period = 2) * k_exp_quad() + k_white())) {
      # the kernels for 32 and for 64 rows; the latter take minutes
      long <- length(kernel$terms) == 1L && !nzchar(Sys.getenv("STATCL_TEST_QUICK"))
      for (m in if (long) c(3, 35) else 3) {
        near <- cl_gp_likelihood(y, x, kernel, "constant", approx = "vecchia", neighbours = m)
        value <- near(c(coef(kernel), noise = 0.2))
        same(as.numeric(value), attr(value, "gradient"))
        value <- near(c(coef(kernel), noise = 0.2), information = TRUE)
        same(as.numeric(value), attr(value, "gradient"), attr(value, "information"))
      }
      for (m in if (long) c(3, 20) else 3) { # grouped: blocks of up to 32 and of more rows
        near <- cl_gp_likelihood(y, x, kernel, "constant", approx = "vecchia", neighbours = m,
                                 grouped = TRUE)
        par <- c(coef(kernel), noise = 0.2)
        value <- near(par, information = TRUE)
        same(as.numeric(value), attr(value, "information"), attr(value, "gradient"))
        same(near(par, FALSE)[[1L]])
        known <- cl_gp_likelihood(y, x, kernel, approx = "vecchia", neighbours = m, grouped = TRUE)
        value <- known(par)
        same(as.numeric(value), attr(value, "gradient"))
      }
    }
  })

# A well-conditioned lower triangle.
triangle <- function(n) {
  l <- matrix(rnorm(n * n), n) / n
  l[upper.tri(l)] <- 0
  diag(l) <- 1 + runif(n)
  l
}

# Keeps the values of one engine, compares those of the next with them.
kept <- list()
same <- function(...) kept[[length(kept) + 1L]] <<- list(...)

topic <- commandArgs(TRUE)
if (identical(topic, "--list")) {
  cat(names(topics), sep = "\n")
  quit()
}
library(statcl)
values <- lapply(c("host", "device"), function(engine) {
  kept <<- list()
  set.seed(1)
  with_cl(topics[[topic]](), engine = engine)
  unlist(kept)
})
error <- max(abs(values[[1]] - values[[2]])) / max(abs(values[[1]]))
cat(sprintf("%s: %d values, relative difference %.1e\n", topic, length(values[[1]]), error))
if (length(values[[1]]) == 0 || !isTRUE(error < 1e-11)) stop("the engines differ")
