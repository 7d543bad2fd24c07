# Parts of distribution functions of Stan programs that R lacks.

# The logarithm of the probability of at most n, or of more, of counts that are data.
st_beta_binomial_below <- function(n, N, alpha, beta, above) {
  total <- 0
  for (k in if (above) seq_len(max(N)) else 0:max(n, 0)) {
    counts <- if (above) k > n & k <= N else k <= n & k <= N
    at <- pmin(k, N)
    term <- exp(lchoose(N, at) + lbeta(at + alpha, N - at + beta) - lbeta(alpha, beta))
    total <- total + cl_ifelse(counts, term, 0)
  }
  log(total)
}

# The part of the upper tail that the exponential variable of exp_mod_normal adds.
st_mod_tail <- function(y, mu, sigma, lambda) {
  lambda * (mu + 0.5 * lambda * sigma^2 - y) +
    stats::pnorm((y - mu - lambda * sigma^2) / sigma, log.p = TRUE)
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
