# Log densities of discrete distributions (R/density.R). Counts are usually data, so terms of counts
# alone are plain numbers. Small counts use the plain formula, which is cheapest; large ones that of
# Loader (2000), as in base R, whose terms do not cancel.

# The largest count for which the plain formula is used.
plain_count <- 100

# lgamma(x + 1) - x log(x) + x, minus the log density of a Poisson variable at its mean x.
count_term <- function(x) {
  y <- where(x > 0, x, 1)
  where(x > 0, stirling_rest(y) + 0.5 * log(2 * pi * y), 0)
}

is_small_count <- function(x) !any_traced(x) && !any(x > plain_count, na.rm = TRUE)

# x log(p), 0 where x is 0, whatever p is.
count_log <- function(x, p) {
  some <- x > 0
  if (length(p) == 1L && !any_traced(x)) where(some, x * log(p), 0) else x * log(where(some, p, 1))
}

# x log(1 - p), 0 where x is 0, whatever p is.
count_log1m <- function(x, p) {
  some <- x > 0
  if (length(p) == 1L && !any_traced(x)) return(where(some, x * log1p(-p), 0))
  x * log1p(-where(some, p, 0))
}

is_probability <- function(p) both(p >= 0, p <= 1)

dbinom_formula <- function(x, size, prob, log = FALSE) {
  inside <- both(is_count(x), x <= size)
  whole <- if (any_traced(size)) TRUE else abs(size - round(size)) <= 1e-9 * pmax(1, abs(size))
  logit <- argument_of(prob, "inv_logit")
  probable <- if (is.null(logit)) is_probability(prob) else TRUE
  counted <- both(size >= 0, whole)
  valid <- both(counted, probable)
  p <- where(probable, prob, NaN)
  n <- where(counted, size, NaN)
  y <- where(inside, x, 0)
  once <- !any_traced(y, n) && isTRUE(all(n == 1))
  value <- if (!is.null(logit)) {
    binomial_logit(y, n, logit, once)
  } else if (once) {
    bernoulli(y, p)
  } else if (is_small_count(n)) {
    count_log(y, p) + count_log1m(n - y, p) + density_op("lchoose", n, y)
  } else {
    count_term(n) - count_term(y) - count_term(n - y) - poisson_deviance(y, n * p) -
      poisson_deviance(n - y, n * (1 - p))
  }
  # Without trials `value` does not depend on p.
  if (any_traced(n) || any(n == 0, na.rm = TRUE)) value <- where(valid, value, NaN)
  density_value(value, inside, valid, log, x, size, prob)
}

bernoulli <- function(y, p) {
  if (length(p) == 1L) return(where(y == 1, log(p), log1p(-p)))
  log(where(y == 1, p, 1)) + log1p(-where(y == 1, 0, p))
}

# The binomial log density for p = plogis(a): y log(p) + (n - y) log(1 - p), by two numbers where a
# is one; else by one logarithm for the rarer of both outcomes, of log odds b.
binomial_logit <- function(y, n, a, once) {
  if (once && length(a) >= length(y)) return(-log1p_exp((1 - 2 * y) * a))
  value <- if (length(a) == 1L || any_traced(y, n)) {
    -(y * log1p_exp(-a) + (n - y) * log1p_exp(a))
  } else {
    b <- where(2 * y > n, -1, 1) * a
    pmin(y, n - y) * b - n * log1p_exp(b)
  }
  if (once) value else value + density_op("lchoose", n, y)
}

dpois_formula <- function(x, lambda, log = FALSE) {
  inside <- is_count(x)
  valid <- not_negative(lambda)
  y <- where(inside, x, 0)
  exponent <- argument_of(lambda, "exp")
  value <- if (!is_small_count(y)) {
    -poisson_deviance(y, lambda) - count_term(y)
  } else if (is.null(exponent)) {
    m <- where(valid, lambda, NaN)
    count_log(y, density_op("pmin", m, .Machine$double.xmax)) - m - lgamma(y + 1)
  } else {
    y * exponent - lambda - lgamma(y + 1)
  }
  density_value(value, inside, valid, log, x, lambda)
}

dnbinom_formula <- function(x, size, prob, mu, log = FALSE) {
  if (!missing(prob) && !missing(mu)) abort_argument("mu", "'prob' and 'mu' both specified")
  if (missing(mu)) return(dnbinom_by_prob(x, size, prob, log))
  m <- where(not_negative(mu), mu, NaN)
  exponent <- argument_of(mu, "exp")
  dnbinom_value(x, size, not_negative(mu), log, mu, function(y, n) {
    if (!is.null(exponent) && is_by_log(y, n)) return(dnbinom_by_log(y, n, exponent))
    density_op("neg_binomial", y, m, n) - count_term(y)
  })
}

# For counts with the mean exp(eta) and one size n. What depends on the count and n only is computed
# once for each different count: log(gamma(y + n) / gamma(n) / n^y / y!).
is_by_log <- function(y, n) length(n) == 1L && is_small_count(y) && !anyNA(y)

dnbinom_by_log <- function(y, n, eta) {
  log_n <- log_of_positive(n)
  u <- sort(unique(as.vector(y)))
  rise <- density_op("neg_binomial", u, u, n) + (u + n) * log1p_exp(log(u) - log_n) - u
  own <- rise - lgamma(u + 1)
  y * eta - (y + n) * log1p_exp(eta - log_n) +
    if (length(u) > 1L) own[match(as.vector(y), u)] else own
}

dnbinom_by_prob <- function(x, size, prob, log) {
  proper <- both(prob > 0, prob <= 1)
  p <- where(proper, prob, NaN)
  dnbinom_value(x, size, proper, log, prob, function(y, n) {
    some <- y > 0
    z <- where(some, y, 1)
    where(some, density_op("beta_power", where(some, p, 0.5), n, z) - log(z), n * log(p))
  })
}

# `density`: the logarithm for a count and a positive size.
dnbinom_value <- function(x, size, proper, log, other, density) {
  inside <- is_count(x)
  valid <- both(not_negative(size), proper)
  y <- where(inside, x, 0)
  value <- density(y, where(above_zero(size), size, 1))
  value <- where(above_zero(size), value, where(y == 0, 0, -Inf))
  density_value(where(valid, value, NaN), inside, valid, log, x, size, other)
}

dgeom_formula <- function(x, prob, log = FALSE) {
  inside <- is_count(x)
  valid <- both(prob > 0, prob <= 1)
  p <- where(valid, prob, NaN)
  y <- where(inside, x, 0)
  density_value(log(p) + count_log1m(y, p), inside, valid, log, x, prob)
}

dmultinom_formula <- function(x, size = NULL, prob, log = FALSE) {
  log <- density_flag(log, "log")
  if (length(x) != length(prob)) {
    abort_argument("prob", "'x' and 'prob' must be vectors of equal length")
  }
  if (any_traced(x)) abort_argument("x", "'x' must be data: counts have no derivatives")
  if (anyNA(x) || any(x < 0)) abort_argument("x", "'x' must be non-negative")
  x <- floor(x + 0.5)
  total <- sum(x)
  if (!is.null(size) && (any_traced(size) || size != total)) {
    abort_argument("size", "'size' must be the sum of 'x'")
  }
  p <- where(prob >= 0, prob, NaN)
  value <- sum(count_log(x, p)) - total * log(sum(p)) + (lgamma(total + 1) - sum(lgamma(x + 1)))
  if (log) value else exp(value)
}

# ---- distribution functions ---------------------------------------------------------------------

# floor(q) as R has it, for q >= 0 that is not infinite.
count_below <- function(q) floor(where(both(q >= 0, not_infinite(q)), q, 0) + 1e-7)

# A distribution function of a count.
count_probability <- function(value, q, valid, lower, log, ...) {
  probability_value(value, q < 0, both(q >= 0, !not_infinite(q)), valid, lower, log, q, ...)
}

ppois_formula <- function(q, lambda, lower.tail = TRUE, log.p = FALSE) {
  value <- pgamma_formula(lambda, count_below(q) + 1, lower.tail = !lower.tail, log.p = log.p)
  count_probability(value, q, not_negative(lambda), lower.tail, log.p, lambda)
}

pbinom_formula <- function(q, size, prob, lower.tail = TRUE, log.p = FALSE) {
  k <- count_below(q)
  n <- where(is_count(size), size, NaN)
  some <- k < n
  value <- pbeta_formula(prob, k + 1, where(some, n - k, 1), lower.tail = !lower.tail,
                         log.p = log.p)
  value <- where(some, value, edge_probability(1, lower.tail, log.p))
  count_probability(value, q, both(is_probability(prob), n >= 0), lower.tail, log.p, size, prob)
}

pnbinom_formula <- function(q, size, prob, mu, lower.tail = TRUE, log.p = FALSE) {
  from <- count_below(q) + 1
  if (missing(mu)) {
    value <- pbeta_formula(prob, size, from, lower.tail = lower.tail, log.p = log.p)
    valid <- both(not_negative(size), both(prob > 0, prob <= 1))
    return(count_probability(value, q, valid, lower.tail, log.p, size, prob))
  }
  if (!missing(prob)) abort_argument("mu", "'prob' and 'mu' both specified")
  lower <- density_flag(lower.tail, "lower.tail")
  log <- density_flag(log.p, "log.p")
  some <- above_zero(size) # a size of 0: all mass is at 0
  value <- density_op(if (lower) "log_pnbinom" else "log_qnbinom", from, mu, where(some, size, 1))
  value <- where(some, if (log) value else exp(value), edge_probability(1, lower, log))
  count_probability(value, q, both(not_negative(size), not_negative(mu)), lower, log, size, mu)
}

pgeom_formula <- function(q, prob, lower.tail = TRUE, log.p = FALSE) {
  valid <- both(prob > 0, prob <= 1)
  t <- -(count_below(q) + 1) * log1p(-where(valid, prob, 0.5))
  count_probability(exponential_probability(t, lower.tail, log.p), q, valid, lower.tail, log.p,
                    prob)
}
