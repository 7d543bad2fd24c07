# The textbook formulas of Gaussian processes in plain R, all from one Cholesky factor. The kernel's
# matrices come from cl_cov() on the host, which test-covariance.R tests.
#
# `noise` is a standard deviation; `diagonal` the variances of the noise if they differ; `mean` a
# number, "estimate", or a matrix of columns whose coefficients are estimated. Several variables are
# columns of y.
plain_gp <- function(y, x, kernel, noise, mean = 0, diagonal = rep(noise^2, NROW(y))) {
  covariance <- function(a, b) on_host(cl_cov(a, b, kernel))
  outputs <- NCOL(y)
  n <- NROW(y)
  root <- chol(on_host(cl_cov(x, kernel = kernel)) + diag(diagonal, n))
  solve_c <- function(b) backsolve(root, backsolve(root, b, transpose = TRUE))
  h <- if (is.character(mean)) matrix(1, n, 1) else if (is.matrix(mean)) mean
  inverse <- solve_c(diag(n))
  if (is.null(h)) {
    residual <- y - mean
    projected <- inverse
  } else {
    beta_cov <- solve(crossprod(h, solve_c(h)))
    beta <- beta_cov %*% crossprod(h, solve_c(y))
    if (outputs == 1L) beta <- drop(beta)
    residual <- drop(y - h %*% beta)
    projected <- inverse - solve_c(h) %*% beta_cov %*% t(solve_c(h))
  }
  a <- drop(solve_c(residual))
  value <- -sum(residual * a) / 2 - outputs * (sum(log(diag(root))) + n * log(2 * pi) / 2)
  list(mean = if (is.null(h)) mean else beta, weights = a, value = value,
       beta_cov = if (!is.null(h)) beta_cov,
       integrated = if (!is.null(h)) {
         value + outputs * (determinant(beta_cov)$modulus[1] + ncol(h) * log(2 * pi)) / 2
       },
       loo = list(mean = y - a / diag(projected), variance = 1 / diag(projected)),
       predict = function(at, estimated = !is.null(h), h_at = matrix(1, NROW(at), 1)) {
         k <- covariance(at, x)
         v <- covariance(at, at) - k %*% solve_c(t(k))
         m <- drop(k %*% a) + if (is.null(h)) mean else drop(h_at %*% beta)
         if (estimated) {
           u <- h_at - k %*% solve_c(h)
           v <- v + u %*% beta_cov %*% t(u)
         }
         list(mean = m, covariance = v)
       })
}

# The gradient has the names of the parameters and agrees with differences.
expect_gp_gradient <- function(f, par, tolerance = 1e-7) {
  gradient <- attr(f(par), "gradient")
  expect_named(gradient, names(par))
  slope <- slopes_of(function(par) f(par, FALSE), par, 1e-4 * par)
  expect_equal(unname(gradient), slope, tolerance = tolerance)
}

some_data <- function(n = 45, p = 2) {
  set.seed(n + p)
  x <- matrix(runif(n * p), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(5 * x[, 1]) + 0.3 * x[, p] + rnorm(n, sd = 0.1) + 2)
}

mixed_kernel <- k_exp_quad(1.2, 0.5) + k_matern32(0.4, c(0.8, 0.3)) + k_matern52(0.3, 1, "b")

# Observations of each family at n points, whose latent function is `slope` sin(5 a) + b; values of
# the family's own parameters.
response_cases <- function(n = 23L, slope = 1) {
  set.seed(n)
  x <- cbind(a = stats::runif(n), b = stats::runif(n))
  g <- slope * sin(5 * x[, 1L]) + x[, 2L]
  y <- list(bernoulli_logit = stats::rbinom(n, 1, stats::plogis(2 * g)),
            binomial_logit = cbind(stats::rbinom(n, 3, stats::plogis(g)), 2),
            poisson_log = stats::rpois(n, exp(g + 1)),
            neg_binomial_2_log = stats::rnbinom(n, 3, mu = exp(g + 1)),
            student_t = g + 0.1 * stats::rt(n, 2) + 3 * (seq_len(n) %% 7L == 0L),
            ordered_logistic = cut(g + 0.3 * stats::rlogis(n), c(-Inf, 0, 0.7, 1.2, Inf),
                                   ordered_result = TRUE),
            categorical_logit = factor(sample(letters[1:3], n, TRUE)))
  own <- list(neg_binomial_2_log = c(phi = 0.7), student_t = c(scale = 0.3, df = 2),
              ordered_logistic = c(gap1 = 0.7, gap2 = 1.2))
  list(x = x, y = y, own = own, kernel = k_exp_quad(1.3, c(0.4, 0.8)) + k_matern32(0.5, 0.3))
}
