# Random numbers of Stan programs, by R's generator, for data and quantities of a draw: functions
# of numbers alone.

# As many numbers as the longest argument has; `f` takes n first.
st_random <- function(f, ...) {
  f(stan_common(...), ...)
}

st_random_normal <- function(mu, l) {
  if (is.null(dim(mu))) return(mu + as.vector(l %*% stats::rnorm(length(mu))))
  mu + t(l %*% matrix(stats::rnorm(length(mu)), ncol(mu)))
}

st_random_student <- function(nu, mu, l) {
  n <- if (is.null(dim(mu))) 1L else nrow(mu)
  mu + st_random_normal(0 * mu, l) / sqrt(stats::rchisq(n, nu) / nu)
}

st_random_dirichlet <- function(alpha) {
  g <- alpha
  g[] <- stats::rgamma(length(alpha), alpha)
  g / if (is.null(dim(g))) sum(g) else rowSums(g)
}

st_random_lkj <- function(k, eta) {
  l <- diag(k)
  if (k > 1L) {
    b <- eta + (k - 2) / 2
    r <- 2 * stats::rbeta(1, b, b) - 1
    l[2L, 1:2] <- c(r, sqrt(1 - r^2))
    for (m in seq_len(k - 2L) + 1L) {
      b <- b - 0.5
      y <- stats::rbeta(1, m / 2, b)
      z <- stats::rnorm(m)
      l[m + 1L, seq_len(m)] <- sqrt(y) * z / sqrt(sum(z^2))
      l[m + 1L, m + 1L] <- sqrt(1 - y)
    }
  }
  l
}

stan_random <- list(
  normal_rng = function(mu, sigma) st_random(stats::rnorm, mu, sigma),
  std_normal_rng = function() stats::rnorm(1),
  cauchy_rng = function(mu, sigma) st_random(stats::rcauchy, mu, sigma),
  student_t_rng = function(nu, mu, sigma) {
    n <- stan_common(nu, mu, sigma)
    mu + sigma * stats::rt(n, nu)
  },
  double_exponential_rng = function(mu, sigma) {
    n <- stan_common(mu, sigma)
    mu + sigma * stats::rexp(n) * sample(c(-1, 1), n, TRUE)
  },
  logistic_rng = function(mu, sigma) st_random(stats::rlogis, mu, sigma),
  gumbel_rng = function(mu, beta) mu - beta * log(stats::rexp(stan_common(mu, beta))),
  lognormal_rng = function(mu, sigma) st_random(stats::rlnorm, mu, sigma),
  chi_square_rng = function(nu) stats::rchisq(length(nu), nu),
  inv_chi_square_rng = function(nu) 1 / stats::rchisq(length(nu), nu),
  scaled_inv_chi_square_rng = function(nu, s) nu * s^2 / st_random(stats::rchisq, nu),
  exponential_rng = function(beta) stats::rexp(length(beta), beta),
  gamma_rng = function(alpha, beta) st_random(stats::rgamma, alpha, beta),
  inv_gamma_rng = function(alpha, beta) 1 / st_random(stats::rgamma, alpha, beta),
  weibull_rng = function(alpha, sigma) st_random(stats::rweibull, alpha, sigma),
  frechet_rng = function(alpha, sigma) {
    sigma * stats::rexp(stan_common(alpha, sigma))^(-1 / alpha)
  },
  rayleigh_rng = function(sigma) sigma * sqrt(2 * stats::rexp(length(sigma))),
  pareto_rng = function(y_min, alpha) {
    y_min * exp(stats::rexp(stan_common(y_min, alpha)) / alpha)
  },
  pareto_type_2_rng = function(mu, lambda, alpha) {
    mu + lambda * expm1(stats::rexp(stan_common(mu, lambda, alpha)) / alpha)
  },
  beta_rng = function(alpha, beta) st_random(stats::rbeta, alpha, beta),
  beta_proportion_rng = function(mu, kappa) st_random(stats::rbeta, mu * kappa, (1 - mu) * kappa),
  uniform_rng = function(alpha, beta) st_random(stats::runif, alpha, beta),
  skew_normal_rng = function(xi, omega, alpha) {
    n <- stan_common(xi, omega, alpha)
    d <- alpha / sqrt(1 + alpha^2)
    xi + omega * (d * abs(stats::rnorm(n)) + sqrt(1 - d^2) * stats::rnorm(n))
  },
  exp_mod_normal_rng = function(mu, sigma, lambda) {
    n <- stan_common(mu, sigma, lambda)
    stats::rnorm(n, mu, sigma) + stats::rexp(n, lambda)
  },
  von_mises_rng = function(mu, kappa) {
    one <- function(mu, kappa) {
      if (kappa < 1e-8) return(stats::runif(1, -pi, pi))
      tau <- 1 + sqrt(1 + 4 * kappa^2)
      rho <- (tau - sqrt(2 * tau)) / (2 * kappa)
      r <- (1 + rho^2) / (2 * rho)
      repeat { # Best and Fisher (1979)
        z <- cos(pi * stats::runif(1))
        f <- (1 + r * z) / (r + z)
        c <- kappa * (r - f)
        u <- stats::runif(1)
        if (c * (2 - c) > u || log(c / u) + 1 >= c) break
      }
      mu + sign(stats::runif(1) - 0.5) * acos(f)
    }
    mapply(one, mu, kappa)
  },
  bernoulli_rng = function(theta) stats::rbinom(length(theta), 1, theta),
  bernoulli_logit_rng = function(alpha) stats::rbinom(length(alpha), 1, stats::plogis(alpha)),
  bernoulli_logit_glm_rng = function(x, alpha, beta) {
    eta <- st_linear(x, alpha, beta)
    stats::rbinom(length(eta), 1, stats::plogis(eta))
  },
  binomial_rng = function(N, theta) st_random(stats::rbinom, N, theta),
  binomial_logit_rng = function(N, alpha) st_random(stats::rbinom, N, stats::plogis(alpha)),
  beta_binomial_rng = function(N, alpha, beta) {
    n <- stan_common(N, alpha, beta)
    stats::rbinom(n, N, stats::rbeta(n, alpha, beta))
  },
  hypergeometric_rng = function(N, a, b) stats::rhyper(stan_common(N, a, b), a, b, N),
  discrete_range_rng = function(lower, upper) {
    n <- stan_common(lower, upper)
    lower + floor(stats::runif(n) * (upper - lower + 1))
  },
  poisson_rng = function(lambda) stats::rpois(length(lambda), lambda),
  poisson_log_rng = function(eta) stats::rpois(length(eta), exp(eta)),
  neg_binomial_rng = function(alpha, beta) {
    stats::rnbinom(stan_common(alpha, beta), alpha, beta / (1 + beta))
  },
  neg_binomial_2_rng = function(mu, phi) {
    stats::rnbinom(stan_common(mu, phi), size = phi, mu = mu)
  },
  neg_binomial_2_log_rng = function(eta, phi) {
    stats::rnbinom(stan_common(eta, phi), size = phi, mu = exp(eta))
  },
  categorical_rng = function(theta) sample.int(length(theta), 1L, prob = theta),
  categorical_logit_rng = function(beta) {
    sample.int(length(beta), 1L, prob = exp(beta - max(beta)))
  },
  ordered_logistic_rng = function(eta, c) 1 + sum(stats::rlogis(1, eta) > c),
  ordered_probit_rng = function(eta, c) 1 + sum(stats::rnorm(1, eta) > c),
  multinomial_rng = function(theta, n) as.vector(stats::rmultinom(1L, n, theta)),
  dirichlet_rng = function(alpha) st_random_dirichlet(alpha),
  multi_normal_rng = function(mu, Sigma) st_random_normal(mu, t(chol(Sigma))),
  multi_normal_cholesky_rng = function(mu, L) st_random_normal(mu, L),
  multi_normal_prec_rng = function(mu, Omega) st_random_normal(mu, solve(chol(Omega))),
  multi_student_t_rng = function(nu, mu, Sigma) st_random_student(nu, mu, t(chol(Sigma))),
  wishart_rng = function(nu, S) stats::rWishart(1L, nu, S)[, , 1L],
  inv_wishart_rng = function(nu, S) solve(stats::rWishart(1L, nu, solve(S))[, , 1L]),
  lkj_corr_cholesky_rng = function(k, eta) st_random_lkj(k, eta),
  lkj_corr_rng = function(k, eta) tcrossprod(st_random_lkj(k, eta)))
