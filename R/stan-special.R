# Special functions of Stan programs that R lacks.

# Halley's steps for w exp(w) = x.
st_lambert_steps <- function(w, x) {
  for (i in 1:5) {
    e <- exp(w)
    f <- w * e - x
    slope <- e * (w + 1)
    flat <- slope == 0
    slope <- cl_ifelse(flat, 1, slope) - 0.5 * f * (w + 2) / cl_ifelse(flat, 1, w + 1)
    w <- w - cl_ifelse(flat, 0, f / slope)
  }
  w
}

# The series at the branch point -1/e, on one side of it.
st_lambert_near <- function(x, side) {
  p <- side * st_root(2 * (exp(1) * x + 1))
  -1 + p - p^2 / 3 + 11 / 72 * p^3
}

st_lambert_w0 <- function(x) {
  left <- x < 0
  l <- log1p(cl_ifelse(left, 0, x))
  st_lambert_steps(cl_ifelse(left, st_lambert_near(cl_ifelse(left, x, 0), 1),
                             l * (1 - log1p(l) / (2 + l))), x)
}

st_lambert_wm1 <- function(x) {
  near <- x < -0.27
  l <- log(-cl_ifelse(near, -0.1, x))
  st_lambert_steps(cl_ifelse(near, st_lambert_near(cl_ifelse(near, x, -0.3), -1),
                             l - log(-l) + log(-l) / l), x)
}

# The generalised hypergeometric series of numbers.
st_hypergeometric <- function(a, b, z) {
  if (z == 0 || any(a == 0)) return(1)
  total <- term <- 1
  for (k in 0:1000000) {
    term <- term * prod(a + k) / prod(b + k) * z / (k + 1)
    total <- total + term
    if (!is.finite(total) || abs(term) <= 1e-17 * abs(total) && k > max(abs(a), abs(b))) break
  }
  if (k == 1000000) NaN else total
}

# Where the series converges slowly, by those of other arguments.
st_hypergeometric_2f1 <- function(a, b, c, z) {
  if (z < 0) return((1 - z)^-a * st_hypergeometric(c(a, c - b), c, z / (z - 1)))
  if (z == 1) return(gamma(c) * gamma(c - a - b) / (gamma(c - a) * gamma(c - b)))
  if (z > 1 && !any(c(a, b) <= 0 & c(a, b) == round(c(a, b)))) return(NaN)
  st_hypergeometric(c(a, b), c, z)
}

# Owen's T(h, a) by Gauss-Legendre quadrature over [0, a], which |a| <= 1 makes accurate.
st_owens_t <- function(h, a) {
  flip <- abs(a) > 1
  size <- abs(a)
  inner <- cl_ifelse(flip, 1 / cl_ifelse(flip, size, 1), size)
  height <- cl_ifelse(flip, h * size, h)
  rule <- st_legendre()
  total <- 0
  for (k in seq_along(rule$x)) {
    slope <- 1 + (inner * rule$x[k])^2
    total <- total + rule$w[k] * exp(-0.5 * height^2 * slope) / slope
  }
  value <- inner * total / (2 * pi)
  lower <- stats::pnorm(-abs(h))
  scaled <- stats::pnorm(-abs(h) * size)
  value <- cl_ifelse(flip, 0.5 * (lower + scaled) - lower * scaled - value, value)
  value * cl_ifelse(a < 0, -1, 1)
}

# Nodes and weights on [0, 1], from the eigenvalues of the matrix of the recurrence.
st_legendre <- function(n = 40) {
  k <- seq_len(n - 1)
  m <- matrix(0, n, n)
  m[cbind(k, k + 1)] <- m[cbind(k + 1, k)] <- k / sqrt(4 * k^2 - 1)
  f <- eigen(m, symmetric = TRUE)
  list(x = (f$values + 1) / 2, w = f$vectors[1L, ]^2)
}

# ---- hidden Markov models ------------------------------------------------------------------------

# Probabilities of the states at each time, given what was seen until then.
st_hmm_forward <- function(log_omega, gamma, rho) {
  alpha <- log_omega
  before <- rho
  for (t in seq_len(ncol(alpha))) {
    a <- before * exp(log_omega[, t] - max(log_omega[, t]))
    alpha[, t] <- a / sum(a)
    before <- as.vector(crossprod(gamma, alpha[, t]))
  }
  alpha
}

st_hmm_hidden_state_prob <- function(log_omega, gamma, rho) {
  p <- st_hmm_forward(log_omega, gamma, rho)
  beta <- rep(1, nrow(p))
  for (t in rev(seq_len(ncol(p)))) {
    after <- beta * exp(log_omega[, t] - max(log_omega[, t]))
    p[, t] <- p[, t] * beta / sum(p[, t] * beta)
    beta <- as.vector(gamma %*% after)
    beta <- beta / sum(beta)
  }
  p
}

st_hmm_latent <- function(log_omega, gamma, rho) {
  alpha <- st_hmm_forward(log_omega, gamma, rho)
  n <- ncol(alpha)
  state <- numeric(n)
  for (t in rev(seq_len(n))) {
    p <- if (t == n) alpha[, t] else alpha[, t] * gamma[, state[t + 1L]]
    state[t] <- sample.int(length(p), 1L, prob = p)
  }
  state
}

stan_special_functions <- list(
  logical_eq = function(x, y) (x == y) + 0, logical_neq = function(x, y) (x != y) + 0,
  logical_lt = function(x, y) (x < y) + 0, logical_lte = function(x, y) (x <= y) + 0,
  logical_gt = function(x, y) (x > y) + 0, logical_gte = function(x, y) (x >= y) + 0,
  logical_and = function(x, y) (x != 0) * (y != 0),
  logical_or = function(x, y) 1 - (x == 0) * (y == 0),
  log_softplus = function(x) {
    small <- x < -30 # where log(1 + e) = e
    cl_ifelse(small, x, log(cl_log1p_exp(cl_ifelse(small, 0, x))))
  },
  log_inv_logit_diff = function(x, y) x + log1m_exp(y - x) - cl_log1p_exp(x) - cl_log1p_exp(y),
  binary_log_loss = function(y, p) -cl_ifelse(y != 0, log(p), log1p(-p)),
  inv_erfc = function(x) -stats::qnorm(0.5 * x) / sqrt(2),
  lambert_w0 = st_lambert_w0, lambert_wm1 = st_lambert_wm1, owens_t = st_owens_t,
  inv_inc_beta = function(a, b, p) stats::qbeta(p, a, b),
  hypergeometric_1F0 = function(a, z) (1 - z)^-a,
  hypergeometric_2F1 = st_hypergeometric_2f1,
  hypergeometric_3F2 = st_hypergeometric, hypergeometric_pFq = st_hypergeometric,
  hmm_hidden_state_prob = st_hmm_hidden_state_prob, hmm_latent_rng = st_hmm_latent)
