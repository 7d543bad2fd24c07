# Distributions of Stan programs that few models use: densities, distribution functions and random
# numbers (R/stan-densities.R, R/stan-random.R).

# The logarithm of the probability of at most n, or of more, of counts that are data.
st_beta_neg_binomial_below <- function(n, r, alpha, beta, above) {
  total <- 0
  for (k in seq_len(max(n, -1) + 1) - 1) {
    term <- exp(lbeta(k + r, alpha + beta) - lbeta(r, alpha) + lgamma(k + beta) - lgamma(k + 1) -
                  lgamma(beta))
    total <- total + (k <= n) * term
  }
  if (above) log1p(-total) else log(total)
}

# Log probabilities by f(p, y) of the probabilities of 0, ..., n successes of different trials.
st_poisson_binomial <- function(y, theta, f) {
  st_by_row(function(y, theta) {
    p <- 1
    for (i in seq_along(theta)) p <- c(p * (1 - theta[i]), 0) + c(0, p * theta[i])
    total <- 0
    for (k in y) total <- total + f(p, k)
    total
  }, if (is.null(dim(theta))) y else matrix(y, ncol = 1L), theta)
}

# Elements of p from 0 on, which is the first.
st_sum_of <- function(p, k) {
  k <- k[k >= 0 & k < length(p)]
  if (length(k) == 0L) 0 else sum(p[k + 1])
}

# The integral of exp(kappa * (cos(t) - 1)) from d to pi, for d from 0 to pi, by Gauss-Legendre
# quadrature up to where the integrand is exp(-40) of what it is at d.
st_von_mises_tail <- function(d, kappa) {
  rule <- st_legendre()
  width <- as_constant(acos(pmax(cos(d) - 40 / kappa, -1))) - d
  at <- outer(width, rule$x) + d
  width * as.vector(exp(-2 * kappa * sin(at / 2)^2) %*% rule$w)
}

# The integral of the density from -pi on. That from -pi to t of the density with mu = 0 is a whole
# number plus or minus a tail, which are kept apart: tails are precise however small they are.
st_von_mises_below <- function(y, mu, kappa) {
  whole <- 2 * st_von_mises_tail(0, kappa)
  until <- function(t) {
    turns <- round(t / (2 * pi))
    t <- t - 2 * pi * turns
    side <- 1 - 2 * (t < 0)
    list(count = turns + (1 + side) / 2, tail = side * st_von_mises_tail(side * t, kappa))
  }
  from <- until(-pi - mu)
  to <- until(y - mu)
  (to$count - from$count) + (from$tail - to$tail) / whole
}

st_skew_double_exponential_below <- function(y, mu, sigma, tau, above) {
  lower <- y < mu
  left <- log(tau) - 2 * (1 - tau) * pmax(mu - y, 0) / sigma
  right <- log1p(-tau) - 2 * tau * pmax(y - mu, 0) / sigma
  if (above) cl_ifelse(lower, log1m_exp(left), right) else cl_ifelse(lower, left, log1m_exp(right))
}

# Of the Cholesky factor l of a matrix with a Wishart density, with `s` the factor of the scale;
# `inverse`: of the inverse.
st_wishart_cholesky <- function(l, nu, s, inverse) {
  k <- nrow(l)
  z <- if (inverse) forwardsolve(l, s) else forwardsolve(s, l)
  i <- seq_len(k)
  powers <- if (inverse) -(nu + i) else nu - i
  scale <- nu * sum(log(diag(s)))
  k * log(2) * (1 - 0.5 * nu) - st_gamma_p(k, 0.5 * nu) - 0.5 * sum(z^2) +
    sum(powers * log(diag(l))) + if (inverse) scale else -scale
}

# The time at which a Wiener process with drift, started at beta alpha, reaches alpha, if it does
# not reach 0 before; the drift is normal with standard deviation sv. Both series are exact; each is
# summed where it converges in few terms.
st_wiener <- function(y, alpha, tau, beta, delta, sv = 0) {
  tau <- st_positive(tau)
  inside <- y > tau
  time <- cl_ifelse(inside, y - tau, 1)
  scaled <- time / alpha^2
  w <- 1 - beta
  late <- scaled > 0.3
  short <- cl_ifelse(late, 0.3, scaled)
  long <- cl_ifelse(late, scaled, 0.3)
  early_sum <- w
  for (k in c(-1:-4, 1:4)) early_sum <- early_sum + (w + 2 * k) * exp(-2 * k * (w + k) / short)
  late_sum <- sin(pi * w)
  for (k in 2:8) late_sum <- late_sum + k * exp(0.5 * (1 - k^2) * pi^2 * long) * sin(k * pi * w)
  series <- cl_ifelse(late, log(pi) - 0.5 * pi^2 * long + log(late_sum),
                      log(early_sum) - log_sqrt_2pi - 1.5 * log(short) - 0.5 * w^2 / short)
  wider <- 1 + st_positive(sv)^2 * time
  value <- series - 2 * log(alpha) - 0.5 * log(wider) +
    ((sv * alpha * w)^2 + 2 * delta * alpha * w - delta^2 * time) / (2 * wider)
  cl_ifelse(inside, value, -Inf)
}

# Its mean over starts that are uniform in beta +- sw / 2, and times tau to tau + st0.
st_wiener_varied <- function(y, alpha, tau, beta, delta, sv, sw, st0) {
  n <- stan_common(y, alpha, tau, beta, delta, sv, sw, st0)
  if (n == 0L) return(numeric())
  rule <- function(width) {
    if (!is_traced(width) && all(width == 0)) list(x = 0.5, w = 1) else st_legendre()
  }
  start <- rule(sw)
  delay <- rule(st0)
  nodes <- expand.grid(lane = seq_len(n), start = seq_along(start$x), delay = seq_along(delay$x))
  spread <- function(x) if (length(x) == 1L) x else x[nodes$lane]
  low <- beta - 0.5 * st_positive(sw)
  high <- beta + 0.5 * sw
  width <- pmax(pmin(st_positive(st0), y - tau), 0)
  # nodes are dense where the time that is left is short
  log_p <- st_wiener(spread(y), spread(alpha), spread(tau) + spread(width) *
                       (1 - delay$x[nodes$delay]^2),
                     spread(low) + spread(sw) * start$x[nodes$start], spread(delta), spread(sv))
  weight <- start$w[nodes$start] * delay$w[nodes$delay]
  if (length(delay$x) > 1L) weight <- weight * 2 * delay$x[nodes$delay]
  mean <- cl_log_sum_exp(matrix(log_p + log(weight), n, length(weight) / n), 1)
  none <- st0 == 0
  share <- cl_ifelse(none, 1, width / cl_ifelse(none, 1, st0))
  cl_ifelse(low * (1 - high) > 0, cl_ifelse(y > tau, mean + log(share), -Inf), NaN)
}

stan_rare_densities <- list(
  discrete_range_lcdf = function(y, lower, upper) {
    log(pmin(pmax(y - lower + 1, 0) / (upper - lower + 1), 1))
  },
  discrete_range_lccdf = function(y, lower, upper) {
    log(pmin(pmax(upper - y, 0) / (upper - lower + 1), 1))
  },
  beta_neg_binomial_lcdf = function(n, r, alpha, beta) {
    st_beta_neg_binomial_below(n, r, alpha, beta, FALSE)
  },
  beta_neg_binomial_lccdf = function(n, r, alpha, beta) {
    st_beta_neg_binomial_below(n, r, alpha, beta, TRUE)
  },
  von_mises_lcdf = function(y, mu, kappa) log(st_von_mises_below(y, mu, kappa)),
  von_mises_lccdf = function(y, mu, kappa) log1p(-st_von_mises_below(y, mu, kappa)),
  skew_double_exponential_lcdf = function(y, mu, sigma, tau) {
    st_skew_double_exponential_below(y, mu, sigma, tau, FALSE)
  },
  skew_double_exponential_lccdf = function(y, mu, sigma, tau) {
    st_skew_double_exponential_below(y, mu, sigma, tau, TRUE)
  })

stan_rare_totals <- list(
  poisson_binomial_lpmf = function(y, theta) {
    st_poisson_binomial(y, theta, function(p, k) log(st_sum_of(p, k)))
  },
  poisson_binomial_lcdf = function(y, theta) {
    st_poisson_binomial(y, theta, function(p, k) log(st_sum_of(p, seq_len(max(k + 1, 0)) - 1)))
  },
  poisson_binomial_lccdf = function(y, theta) {
    st_poisson_binomial(y, theta, function(p, k) {
      log(st_sum_of(p, setdiff(seq_along(p) - 1, seq_len(max(k + 1, 0)) - 1)))
    })
  },
  dirichlet_multinomial_lpmf = function(n, alpha) {
    stan_same_size(n, alpha)
    lgamma(sum(alpha)) + lgamma(sum(n) + 1) - lgamma(sum(n) + sum(alpha)) +
      sum(lgamma(n + alpha) - lgamma(alpha) - lgamma(n + 1))
  },
  multi_gp_cholesky_lpdf = function(y, L, w) {
    z <- forwardsolve(L, t(y))
    -0.5 * sum(colSums(z^2) * w) + 0.5 * ncol(y) * sum(log(w)) - nrow(y) * sum(log(diag(L))) -
      0.5 * length(y) * log(2 * pi)
  },
  wishart_cholesky_lpdf = function(L, nu, S) st_wishart_cholesky(L, nu, S, FALSE),
  inv_wishart_cholesky_lpdf = function(L, nu, S) st_wishart_cholesky(L, nu, S, TRUE),
  lkj_cov_lpdf = function(y, mu, sigma, eta) {
    scale <- st_root(diag(y))
    sum(stats::dlnorm(scale, mu, sigma, log = TRUE)) +
      (eta - 1) * st_log_det_spd(y / outer(scale, scale)) + st_lkj_constant(eta, nrow(y))
  })

stan_rare_random <- list(
  poisson_binomial_rng = function(theta) sum(stats::rbinom(length(theta), 1, theta)),
  beta_neg_binomial_rng = function(r, alpha, beta) {
    n <- max(lengths(list(r, alpha, beta)))
    stats::rnbinom(n, r, stats::rbeta(n, alpha, beta))
  },
  multinomial_logit_rng = function(beta, n) {
    as.vector(stats::rmultinom(1L, n, exp(beta - max(beta))))
  },
  dirichlet_multinomial_rng = function(alpha, n) {
    as.vector(stats::rmultinom(1L, n, st_random_dirichlet(alpha)))
  },
  loglogistic_rng = function(alpha, beta) {
    alpha * exp(stats::rlogis(max(lengths(list(alpha, beta)))) / beta)
  },
  skew_double_exponential_rng = function(mu, sigma, tau) {
    n <- max(lengths(list(mu, sigma, tau)))
    left <- stats::runif(n) < tau
    mu + sigma * stats::rexp(n) / 2 * ifelse(left, -1 / (1 - tau), 1 / tau)
  },
  multi_student_t_cholesky_rng = function(nu, mu, L) st_random_student(nu, mu, L),
  wishart_cholesky_rng = function(nu, S) t(chol(stats::rWishart(1L, nu, tcrossprod(S))[, , 1L])),
  inv_wishart_cholesky_rng = function(nu, S) {
    t(chol(solve(stats::rWishart(1L, nu, solve(tcrossprod(S)))[, , 1L])))
  },
  poisson_log_glm_rng = function(x, alpha, beta) {
    eta <- st_linear(x, alpha, beta)
    stats::rpois(length(eta), exp(eta))
  })
