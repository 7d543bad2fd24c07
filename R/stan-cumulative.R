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
