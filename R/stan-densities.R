# Log densities of Stan programs. `stan_densities`: one value for each element of the arguments, as
# functions of R's or of R/density-table.R; cumulative ones as logarithms. `stan_totals`: one value,
# of vectors, matrices and arrays of these.

st_student <- function(y, nu, mu, sigma) stats::dt((y - mu) / sigma, nu, log = TRUE) - log(sigma)

st_logit_binomial <- function(n, size, alpha) {
  stats::dbinom(n, size, cl_inv_logit(alpha), log = TRUE)
}

# NaN where x is negative.
st_positive <- function(x) cl_ifelse(x >= 0, x, NaN)

stan_densities <- list(
  normal_lpdf = function(y, mu, sigma) stats::dnorm(y, mu, sigma, log = TRUE),
  std_normal_lpdf = function(y) stats::dnorm(y, log = TRUE),
  cauchy_lpdf = function(y, mu, sigma) stats::dcauchy(y, mu, sigma, log = TRUE),
  student_t_lpdf = function(y, nu, mu, sigma) st_student(y, nu, mu, sigma),
  double_exponential_lpdf = function(y, mu, sigma) -log(2 * sigma) - abs(y - mu) / sigma,
  logistic_lpdf = function(y, mu, sigma) stats::dlogis(y, mu, sigma, log = TRUE),
  gumbel_lpdf = function(y, mu, beta) -log(beta) - (y - mu) / beta - exp(-(y - mu) / beta),
  lognormal_lpdf = function(y, mu, sigma) stats::dlnorm(y, mu, sigma, log = TRUE),
  chi_square_lpdf = function(y, nu) stats::dchisq(y, nu, log = TRUE),
  inv_chi_square_lpdf = function(y, nu) {
    nu <- st_positive(nu)
    -(0.5 * nu + 1) * log(y) - 0.5 / y - 0.5 * nu * log(2) - lgamma(0.5 * nu)
  },
  scaled_inv_chi_square_lpdf = function(y, nu, s) {
    h <- 0.5 * nu
    h * log(h) - lgamma(h) + nu * log(s) - (h + 1) * log(y) - h * s^2 / y
  },
  exponential_lpdf = function(y, beta) stats::dexp(y, beta, log = TRUE),
  gamma_lpdf = function(y, alpha, beta) stats::dgamma(y, alpha, beta, log = TRUE),
  inv_gamma_lpdf = function(y, alpha, beta) {
    alpha <- st_positive(alpha)
    alpha * log(beta) - lgamma(alpha) - (alpha + 1) * log(y) - beta / y
  },
  weibull_lpdf = function(y, alpha, sigma) stats::dweibull(y, alpha, sigma, log = TRUE),
  frechet_lpdf = function(y, alpha, sigma) {
    log(alpha) - log(sigma) - (1 + alpha) * log(y / sigma) - (y / sigma)^(-alpha)
  },
  rayleigh_lpdf = function(y, sigma) log(y) - 2 * log(sigma) - 0.5 * (y / sigma)^2,
  loglogistic_lpdf = function(y, alpha, beta) {
    l <- beta * (log(y) - log(alpha))
    log(beta) + l - log(y) - 2 * cl_log1p_exp(l)
  },
  pareto_lpdf = function(y, y_min, alpha) {
    cl_ifelse(y >= y_min, log(alpha) + alpha * log(y_min) - (alpha + 1) * log(y), -Inf)
  },
  pareto_type_2_lpdf = function(y, mu, lambda, alpha) {
    cl_ifelse(y >= mu, log(alpha) - log(lambda) - (alpha + 1) * log1p((y - mu) / lambda), -Inf)
  },
  beta_lpdf = function(y, alpha, beta) stats::dbeta(y, alpha, beta, log = TRUE),
  beta_proportion_lpdf = function(y, mu, kappa) {
    stats::dbeta(y, mu * kappa, (1 - mu) * kappa, log = TRUE)
  },
  uniform_lpdf = function(y, alpha, beta) stats::dunif(y, alpha, beta, log = TRUE),
  von_mises_lpdf = function(y, mu, kappa) {
    kappa <- st_positive(kappa)
    kappa * cos(y - mu) - log(2 * pi) - st_log_bessel_i0(kappa)
  },
  skew_normal_lpdf = function(y, xi, omega, alpha) {
    z <- (y - xi) / omega
    log(2) + stats::dnorm(z, log = TRUE) - log(omega) + stats::pnorm(alpha * z, log.p = TRUE)
  },
  skew_double_exponential_lpdf = function(y, mu, sigma, tau) {
    log(2) + log(tau) + log1p(-tau) - log(sigma) -
      2 * cl_ifelse(y < mu, (1 - tau) * (mu - y), tau * (y - mu)) / sigma
  },
  exp_mod_normal_lpdf = function(y, mu, sigma, lambda) {
    sigma <- st_positive(sigma)
    log(lambda) + lambda * (mu + 0.5 * lambda * sigma^2 - y) +
      stats::pnorm((y - mu - lambda * sigma^2) / sigma, log.p = TRUE)
  },
  wiener_lpdf = function(y, alpha, tau, beta, delta, sv = 0, ...) {
    if (...length() < 2L) return(st_wiener(y, alpha, tau, beta, delta, sv))
    st_wiener_varied(y, alpha, tau, beta, delta, sv, ..1, ..2)
  },
  bernoulli_lpmf = function(y, theta) stats::dbinom(y, 1, theta, log = TRUE),
  bernoulli_logit_lpmf = function(y, alpha) st_logit_binomial(y, 1, alpha),
  binomial_lpmf = function(n, N, theta) stats::dbinom(n, N, theta, log = TRUE),
  binomial_logit_lpmf = function(n, N, alpha) st_logit_binomial(n, N, alpha),
  beta_binomial_lpmf = function(n, N, alpha, beta) {
    lchoose(N, n) + lbeta(n + alpha, N - n + beta) - lbeta(alpha, beta)
  },
  beta_neg_binomial_lpmf = function(n, r, alpha, beta) {
    lbeta(n + r, alpha + beta) - lbeta(r, alpha) + lgamma(n + beta) - lgamma(n + 1) - lgamma(beta)
  },
  hypergeometric_lpmf = function(n, N, a, b) lchoose(a, n) + lchoose(b, N - n) - lchoose(a + b, N),
  discrete_range_lpmf = function(y, lower, upper) {
    cl_ifelse((y >= lower) * (y <= upper), -log(upper - lower + 1), -Inf)
  },
  poisson_lpmf = function(n, lambda) stats::dpois(n, lambda, log = TRUE),
  poisson_log_lpmf = function(n, alpha) n * alpha - exp(alpha) - lgamma(n + 1),
  neg_binomial_lpmf = function(n, alpha, beta) {
    stats::dnbinom(n, alpha, beta / (1 + beta), log = TRUE)
  },
  neg_binomial_2_lpmf = function(n, mu, phi) stats::dnbinom(n, phi, mu = mu, log = TRUE),
  neg_binomial_2_log_lpmf = function(n, eta, phi) {
    if (is_traced(eta) && is_by_log(n, phi)) {
      return(stats::dnbinom(n, phi, mu = exp(eta), log = TRUE))
    }
    near <- pmin(pmax(eta, -300), 300) # beyond, a line
    stats::dnbinom(n, phi, mu = exp(near), log = TRUE) +
      cl_ifelse(eta > 0, -phi, n) * (eta - near)
  },
  # ---- cumulative
  normal_lcdf = function(y, mu, sigma) stats::pnorm(y, mu, sigma, log.p = TRUE),
  normal_lccdf = function(y, mu, sigma) stats::pnorm(y, mu, sigma, FALSE, TRUE),
  std_normal_lcdf = function(y) stats::pnorm(y, log.p = TRUE),
  std_normal_lccdf = function(y) stats::pnorm(y, lower.tail = FALSE, log.p = TRUE),
  cauchy_lcdf = function(y, mu, sigma) stats::pcauchy(y, mu, sigma, log.p = TRUE),
  cauchy_lccdf = function(y, mu, sigma) stats::pcauchy(y, mu, sigma, FALSE, TRUE),
  student_t_lcdf = function(y, nu, mu, sigma) stats::pt((y - mu) / sigma, nu, log.p = TRUE),
  student_t_lccdf = function(y, nu, mu, sigma) {
    stats::pt((y - mu) / sigma, nu, lower.tail = FALSE, log.p = TRUE)
  },
  logistic_lcdf = function(y, mu, sigma) stats::plogis(y, mu, sigma, log.p = TRUE),
  logistic_lccdf = function(y, mu, sigma) stats::plogis(y, mu, sigma, FALSE, TRUE),
  gumbel_lcdf = function(y, mu, beta) -exp(-(y - mu) / st_positive(beta)),
  gumbel_lccdf = function(y, mu, beta) log1m_exp(-exp(-(y - mu) / st_positive(beta))),
  double_exponential_lcdf = function(y, mu, sigma) {
    z <- (y - mu) / st_positive(sigma)
    cl_ifelse(z < 0, z - log(2), log1p(-0.5 * exp(-abs(z))))
  },
  double_exponential_lccdf = function(y, mu, sigma) {
    z <- (y - mu) / st_positive(sigma)
    cl_ifelse(z > 0, -z - log(2), log1p(-0.5 * exp(-abs(z))))
  },
  lognormal_lcdf = function(y, mu, sigma) stats::plnorm(y, mu, sigma, log.p = TRUE),
  lognormal_lccdf = function(y, mu, sigma) stats::plnorm(y, mu, sigma, FALSE, TRUE),
  chi_square_lcdf = function(y, nu) stats::pchisq(y, nu, log.p = TRUE),
  chi_square_lccdf = function(y, nu) stats::pchisq(y, nu, lower.tail = FALSE, log.p = TRUE),
  exponential_lcdf = function(y, beta) stats::pexp(y, beta, log.p = TRUE),
  exponential_lccdf = function(y, beta) stats::pexp(y, beta, FALSE, TRUE),
  gamma_lcdf = function(y, alpha, beta) stats::pgamma(y, alpha, beta, log.p = TRUE),
  gamma_lccdf = function(y, alpha, beta) {
    stats::pgamma(y, alpha, beta, lower.tail = FALSE, log.p = TRUE)
  },
  inv_gamma_lcdf = function(y, alpha, beta) {
    stats::pgamma(1 / y, alpha, beta, lower.tail = FALSE, log.p = TRUE)
  },
  inv_gamma_lccdf = function(y, alpha, beta) stats::pgamma(1 / y, alpha, beta, log.p = TRUE),
  weibull_lcdf = function(y, alpha, sigma) stats::pweibull(y, alpha, sigma, log.p = TRUE),
  weibull_lccdf = function(y, alpha, sigma) stats::pweibull(y, alpha, sigma, FALSE, TRUE),
  frechet_lcdf = function(y, alpha, sigma) -(st_positive(y) / st_positive(sigma))^(-alpha),
  frechet_lccdf = function(y, alpha, sigma) {
    log1m_exp(-(st_positive(y) / st_positive(sigma))^(-alpha))
  },
  rayleigh_lcdf = function(y, sigma) log1m_exp(-0.5 * (st_positive(y) / st_positive(sigma))^2),
  rayleigh_lccdf = function(y, sigma) -0.5 * (st_positive(y) / st_positive(sigma))^2,
  pareto_lcdf = function(y, y_min, alpha) log1p(-pmin(y_min / y, 1)^alpha),
  pareto_lccdf = function(y, y_min, alpha) alpha * log(pmin(y_min / y, 1)),
  beta_lcdf = function(y, alpha, beta) stats::pbeta(y, alpha, beta, log.p = TRUE),
  beta_lccdf = function(y, alpha, beta) {
    stats::pbeta(y, alpha, beta, lower.tail = FALSE, log.p = TRUE)
  },
  beta_proportion_lcdf = function(y, mu, kappa) {
    stats::pbeta(y, mu * kappa, (1 - mu) * kappa, log.p = TRUE)
  },
  beta_proportion_lccdf = function(y, mu, kappa) {
    stats::pbeta(y, mu * kappa, (1 - mu) * kappa, lower.tail = FALSE, log.p = TRUE)
  },
  uniform_lcdf = function(y, alpha, beta) stats::punif(y, alpha, beta, log.p = TRUE),
  uniform_lccdf = function(y, alpha, beta) stats::punif(y, alpha, beta, FALSE, TRUE),
  bernoulli_lcdf = function(y, theta) stats::pbinom(y, 1, theta, log.p = TRUE),
  bernoulli_lccdf = function(y, theta) stats::pbinom(y, 1, theta, FALSE, TRUE),
  binomial_lcdf = function(n, N, theta) stats::pbinom(n, N, theta, log.p = TRUE),
  binomial_lccdf = function(n, N, theta) stats::pbinom(n, N, theta, FALSE, TRUE),
  poisson_lcdf = function(n, lambda) stats::ppois(n, lambda, log.p = TRUE),
  poisson_lccdf = function(n, lambda) stats::ppois(n, lambda, FALSE, TRUE),
  beta_binomial_lcdf = function(n, N, alpha, beta) st_beta_binomial_below(n, N, alpha, beta, FALSE),
  beta_binomial_lccdf = function(n, N, alpha, beta) st_beta_binomial_below(n, N, alpha, beta, TRUE),
  inv_chi_square_lcdf = function(y, nu) {
    stats::pchisq(1 / y, nu, lower.tail = FALSE, log.p = TRUE)
  },
  inv_chi_square_lccdf = function(y, nu) stats::pchisq(1 / y, nu, log.p = TRUE),
  scaled_inv_chi_square_lcdf = function(y, nu, s) {
    stats::pchisq(nu * s^2 / y, nu, lower.tail = FALSE, log.p = TRUE)
  },
  scaled_inv_chi_square_lccdf = function(y, nu, s) stats::pchisq(nu * s^2 / y, nu, log.p = TRUE),
  loglogistic_lcdf = function(y, alpha, beta) -cl_log1p_exp(beta * (log(alpha) - log(y))),
  loglogistic_lccdf = function(y, alpha, beta) -cl_log1p_exp(beta * (log(y) - log(alpha))),
  pareto_type_2_lcdf = function(y, mu, lambda, alpha) {
    log1m_exp(-alpha * log1p((y - mu) / lambda))
  },
  pareto_type_2_lccdf = function(y, mu, lambda, alpha) -alpha * log1p((y - mu) / lambda),
  exp_mod_normal_lcdf = function(y, mu, sigma, lambda) {
    st_log_diff_exp(stats::pnorm(y, mu, sigma, log.p = TRUE), st_mod_tail(y, mu, sigma, lambda))
  },
  exp_mod_normal_lccdf = function(y, mu, sigma, lambda) {
    log_add_exp(stats::pnorm(y, mu, sigma, FALSE, TRUE), st_mod_tail(y, mu, sigma, lambda))
  },
  skew_normal_lcdf = function(y, xi, omega, alpha) {
    z <- (y - xi) / omega
    log(stats::pnorm(z) - 2 * st_owens_t(z, alpha))
  },
  skew_normal_lccdf = function(y, xi, omega, alpha) {
    z <- (y - xi) / omega
    log(stats::pnorm(-z) + 2 * st_owens_t(z, alpha))
  },
  neg_binomial_lcdf = function(n, alpha, beta) {
    stats::pnbinom(n, alpha, beta / (1 + beta), log.p = TRUE)
  },
  neg_binomial_lccdf = function(n, alpha, beta) {
    stats::pnbinom(n, alpha, beta / (1 + beta), lower.tail = FALSE, log.p = TRUE)
  },
  neg_binomial_2_lcdf = function(n, mu, phi) stats::pnbinom(n, phi, mu = mu, log.p = TRUE),
  neg_binomial_2_lccdf = function(n, mu, phi) {
    stats::pnbinom(n, phi, mu = mu, lower.tail = FALSE, log.p = TRUE)
  })

# The logarithm of I0: by its integral, whose trapezoidal sum converges geometrically.
st_log_bessel_i0 <- function(k) {
  if (is.numeric(k) && !is_traced(k)) return(log(besselI(k, 0, TRUE)) + k)
  total <- 0
  angles <- (seq_len(400) - 0.5) * pi / 400
  for (a in angles) total <- total + exp(k * (cos(a) - 1))
  k + log(total / 400)
}

# ---- of vectors and matrices ---------------------------------------------------------------------

# Rows of observations.
st_rows <- function(y) if (is.null(dim(y))) matrix(y, 1L) else y

# Their differences from means, for a matrix `a` of the order of the vectors.
st_deviations <- function(y, mu, a) {
  for (k in dim(st_square(a))) stan_same_count(st_count(y, 2L), k)
  stan_same_count(st_count(y, 2L), st_count(mu, 2L))
  n <- c(dim(y)[1L], dim(mu)[1L], 1L)
  if (length(n) == 3L) stan_same_count(n[1L], n[2L])
  rows <- function(x) if (is.null(dim(x))) st_rows(x)[rep(1L, n[1L]), , drop = FALSE] else x
  rows(y) - rows(mu)
}

st_normal <- function(y, mu, a, ...) {
  d <- st_deviations(y, mu, a)
  if (nrow(d) == 0L) return(0)
  only <- if (is.null(list(...)$chol)) st_symmetric_only(a) else 0
  sum(dmvnorm_formula(d, ..., log = TRUE)) + only
}

# 0 for a simplex, or for rows that are: -Inf, and an error of data, for others.
st_simplex_only <- function(theta) {
  st_only(st_satisfies(st_rows(theta), "simplex", FALSE), "the probabilities are not a simplex")
}

# log(ok), where data must have ok = 1.
st_only <- function(ok, message) {
  if (!is_traced(ok) && ok == 0) stop(message, call. = FALSE)
  log(ok)
}

st_dirichlet <- function(theta, alpha) {
  stan_dot(alpha - 1, log(theta)) + lgamma(sum(alpha)) - sum(lgamma(alpha)) +
    st_simplex_only(theta)
}

# f of each row of two arguments that may be arrays of vectors.
st_by_row <- function(f, a, b) {
  n <- max(if (is.null(dim(a))) 1L else nrow(a), if (is.null(dim(b))) 1L else nrow(b))
  row <- function(x, i) if (is.null(dim(x))) x else x[i, ]
  total <- 0
  for (i in seq_len(n)) total <- total + f(row(a, i), row(b, i))
  total
}

st_log_softmax <- function(x) x - cl_log_sum_exp(x)

st_multinomial <- function(n, theta) {
  stan_same_size(n, theta)
  k <- which(n != 0)
  sum(n[k] * log(theta[k])) + lgamma(sum(n) + 1) - sum(lgamma(n + 1)) + st_simplex_only(theta)
}

st_gamma_p <- function(p, a) {
  value <- 0.25 * p * (p - 1) * log(pi)
  for (k in seq_len(max(p))) value <- value + cl_ifelse(k <= p, lgamma(a + 0.5 * (1 - k)), 0)
  value
}

st_log_det_spd <- function(a) 2 * sum(log(diag(chol(st_symmetric(a)))))

st_square <- function(a) if (is.null(dim(a))) matrix(a, 1L, 1L) else a

# 0 for a symmetric matrix; a value that depends on it is added to this.
st_symmetric_only <- function(a) {
  if (length(a) == 1L || nrow(a) != ncol(a)) return(0)
  st_only(st_is_symmetric(a), "the matrix is not symmetric")
}

st_symmetric <- function(a) {
  only <- st_symmetric_only(a)
  if (is_traced(only)) st_square(a) + only else st_square(a)
}

st_student_rows <- function(y, nu, mu, u) {
  d <- st_deviations(y, mu, u)
  k <- ncol(d)
  n <- nrow(d)
  if (n == 0L) return(0)
  z <- backsolve(u, t(d), transpose = TRUE)
  n * (lgamma(0.5 * (nu + k)) - lgamma(0.5 * nu) - 0.5 * k * log(nu * pi) -
         sum(log(diag(u)))) - 0.5 * (nu + k) * sum(log1p(colSums(z^2) / nu))
}

# The constant of the LKJ density of a correlation matrix of order k.
st_lkj_constant <- function(eta, k) {
  j <- seq_len(k - 1L)
  value <- -0.25 * k * (k - 1) * log(pi)
  for (i in j) {
    value <- value + lgamma(eta + 0.5 * (k - 1)) - lgamma(eta + 0.5 * (k - 1 - i))
  }
  value
}

# Categories, which are counted from 1 to n.
st_category <- function(y, n) {
  wrong <- y[is.na(y) | y < 1 | y > n]
  if (length(wrong) > 0L) {
    stop(sprintf("a category is %s, but must be from 1 to %d", format(wrong[1L]), as.integer(n)),
         call. = FALSE)
  }
  y
}

st_ordered_only <- function(cuts) {
  st_only(st_satisfies(st_rows(cuts), "ordered", FALSE), "the cut points are not increasing")
}

st_ordered <- function(y, eta, cuts, log_p) {
  n <- stan_common(y, eta)
  if (n == 0L) return(0)
  st_category(y, 1 + if (is.null(dim(cuts))) length(cuts) else ncol(cuts))
  total <- st_ordered_only(cuts)
  if (is.null(dim(cuts))) {
    return(total + sum(dordlogit_formula(rep_len(y, n), eta, cuts, log = TRUE)))
  }
  stan_same_count(n, nrow(cuts))
  for (i in seq_len(n)) {
    total <- total + dordlogit_formula(rep_len(y, n)[i], eta[min(i, length(eta))], cuts[i, ],
                                       log = TRUE)
  }
  total
}

st_ordered_probit <- function(y, eta, cuts) {
  n <- stan_common(y, eta)
  m <- st_count(cuts, 2L)
  st_category(y, m + 1)
  if (!is.null(dim(cuts))) stan_same_count(n, nrow(cuts))
  total <- st_ordered_only(cuts)
  for (i in seq_len(n)) {
    k <- rep_len(y, n)[i]
    z <- (if (is.null(dim(cuts))) cuts else cuts[i, ]) - eta[min(i, length(eta))]
    total <- total + if (k == 1) stats::pnorm(z[1L], log.p = TRUE)
      else if (k == m + 1) stats::pnorm(-z[m], log.p = TRUE)
      else log(stats::pnorm(z[k]) - stats::pnorm(z[k - 1]))
  }
  total
}

# Linear predictors of the GLM densities; alpha is a number or a vector.
st_linear <- function(x, alpha, beta) alpha + as.vector(st_rows(x) %*% beta)

# The density of a generalised linear model, with Stan's arguments; x may be a row vector, y and
# trials a number.
st_glm <- function(family, y, ...) {
  row <- family_row(family)
  a <- list(...)
  more <- list()
  if (row$trials) {
    more$trials <- a[[1L]]
    a <- a[-1L]
  }
  x <- st_rows(a[[1L]])
  if (row$ordered) a <- append(a, 0, 1L)
  if (length(row$aux) > 0L) more[[row$aux]] <- a[[4L]]
  if (length(y) == 0L || nrow(x) == 0L) return(0)
  n <- stan_common(y, numeric(nrow(x)))
  if (row$categorical) {
    stan_same_count(length(a[[2L]]), ncol(a[[3L]]))
    st_category(y, length(a[[2L]]))
  } else {
    do.call(stan_common, c(list(numeric(n), a[[2L]]), more[setdiff(names(more), "cuts")]))
  }
  value <- do.call(cl_glm_lpdf, c(list(family, rep_len(y, n), x, a[[2L]], a[[3L]]), more))
  if (!row$ordered) return(value)
  st_category(y, length(a[[4L]]) + 1)
  value + st_ordered_only(a[[4L]])
}

stan_glms <- local({
  families <- names(Filter(function(row) row$glm, family_table))
  made <- lapply(families, function(family) {
    as.function(c(alist(y = , ... = ), bquote(st_glm(.(family), y, ...))))
  })
  kind <- vapply(families, function(name) if (family_table[[name]]$least_squares) "lpdf" else
    "lpmf", "")
  stats::setNames(made, paste0(families, "_glm_", kind))
})

st_categorical <- function(y, log_p) {
  if (is.null(dim(log_p))) return(sum(log_p[st_category(y, length(log_p))]))
  st_category(y, ncol(log_p))
  total <- 0
  for (i in seq_along(y)) total <- total + log_p[i, y[i]]
  total
}

stan_totals <- list(
  multi_normal_lpdf = function(y, mu, Sigma) st_normal(y, mu, Sigma, Sigma = Sigma),
  multi_normal_cholesky_lpdf = function(y, mu, L) st_normal(y, mu, L, chol = L, lower = TRUE),
  multi_normal_prec_lpdf = function(y, mu, Omega) st_normal(y, mu, Omega, precision = Omega),
  multi_student_t_lpdf = function(y, nu, mu, Sigma) {
    st_student_rows(y, nu, mu, chol(st_symmetric(Sigma)))
  },
  multi_student_t_cholesky_lpdf = function(y, nu, mu, L) st_student_rows(y, nu, mu, t(L)),
  multi_gp_lpdf = function(y, Sigma, w) {
    u <- chol(st_symmetric(Sigma))
    stan_same_count(length(w), nrow(y))
    z <- backsolve(u, t(y), transpose = TRUE)
    -0.5 * sum(colSums(z^2) * w) + 0.5 * ncol(y) * sum(log(w)) -
      nrow(y) * sum(log(diag(u))) - 0.5 * length(y) * log(2 * pi)
  },
  dirichlet_lpdf = function(theta, alpha) st_by_row(st_dirichlet, theta, alpha),
  multinomial_lpmf = function(n, theta) st_by_row(st_multinomial, n, theta),
  multinomial_logit_lpmf = function(n, beta) {
    stan_dot(n, st_log_softmax(beta)) + lgamma(sum(n) + 1) - sum(lgamma(n + 1))
  },
  categorical_lpmf = function(y, theta) st_categorical(y, log(theta)) + st_simplex_only(theta),
  categorical_logit_lpmf = function(y, beta) {
    if (is.null(dim(beta))) return(st_categorical(y, st_log_softmax(beta)))
    st_categorical(y, t(apply(beta, 1L, st_log_softmax)))
  },
  ordered_logistic_lpmf = function(y, eta, c) st_ordered(y, eta, c),
  ordered_probit_lpmf = function(y, eta, c) st_ordered_probit(y, eta, c),
  gaussian_dlm_obs_lpdf = function(y, F, G, V, W, m0, C0) st_dlm(y, F, G, V, W, m0, C0),
  wishart_lpdf = function(W, nu, S) {
    dwishart_formula(st_symmetric(W), nu, st_symmetric(S), log = TRUE)
  },
  inv_wishart_lpdf = function(W, nu, S) {
    k <- nrow(st_square(W))
    0.5 * nu * st_log_det_spd(S) - 0.5 * (nu + k + 1) * st_log_det_spd(W) -
      0.5 * sum(diag(solve(st_square(W), st_square(S)))) - 0.5 * nu * k * log(2) -
      st_gamma_p(k, 0.5 * nu)
  },
  lkj_corr_lpdf = function(y, eta) {
    (eta - 1) * st_log_det_spd(y) + st_lkj_constant(eta, nrow(st_square(y))) +
      st_only(st_all(abs(diag(st_square(y)) - 1) <= 1e-8), "the matrix has not ones as diagonal")
  },
  lkj_corr_cholesky_lpdf = function(L, eta) {
    if (length(L) == 1L) return(0)
    dlkj_formula(L, eta, log = TRUE) +
      st_only(st_is_lower(L), "the matrix is not a Cholesky factor")
  })
