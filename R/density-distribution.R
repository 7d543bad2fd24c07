# Distribution functions and quantiles (R/density.R).

# Inf / Inf would be NaN. A traced exp() counts as finite.
not_above_largest <- function(x) {
  infinite <- if (any_traced(x)) is.null(argument_of(x, "exp")) else any(x == Inf, na.rm = TRUE)
  if (infinite) density_op("pmin", x, .Machine$double.xmax) else x
}

# `formula` with the flags `lower` and `log` made of its arguments lower.tail and log.p.
tailed <- function(formula) {
  body(formula) <- call("{", quote(lower <- density_flag(lower.tail, "lower.tail")),
                        quote(log <- density_flag(log.p, "log.p")), body(formula))
  formula
}

pnorm_formula <- tailed(function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  proper <- above_zero(sd)
  inside <- not_infinite(q)
  z <- from_centre(where(inside, q, 0), mean, where(proper, not_above_largest(sd), 1))
  value <- density_op(if (log) "log_pnorm" else "pnorm", if (lower) z else -z)
  value <- where(proper, value, where(q < mean, edge_probability(0, lower, log),
                                      edge_probability(1, lower, log)))
  probability_value(value, both(!inside, q < 0), both(!inside, q > 0), not_negative(sd),
                    lower, log, q, mean, sd)
})

plogis_formula <- tailed(function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- not_infinite(q)
  valid <- above_zero(scale)
  z <- from_centre(where(inside, q, 0), location, where(valid, scale, NaN))
  if (!lower) z <- -z
  value <- if (log) -log1p_exp(-z) else inv_logit(z)
  probability_value(value, both(!inside, q < 0), both(!inside, q > 0), valid, lower, log,
                    q, location, scale)
})

pexp_formula <- tailed(function(q, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- both(above_zero(q), not_infinite(q))
  valid <- not_negative(rate)
  value <- exponential_probability(where(valid, rate, 1) * where(inside, q, 1), lower, log)
  probability_value(value, !above_zero(q), both(!not_infinite(q), q > 0), valid, lower, log,
                    q, rate)
})

pweibull_formula <- tailed(function(q, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- both(above_zero(q), not_infinite(q))
  valid <- both(above_zero(shape), above_zero(scale))
  l <- log_ratio(where(inside, q, 1), where(above_zero(scale), scale, 1))
  s <- not_above_largest(shape) * l
  value <- if (log && lower) {
    small <- s < -37 # log(1 - exp(-t)) is log(t)
    where(small, s, log1m_exp(-exp(where(small, 0, s))))
  } else {
    exponential_probability(exp(s), lower, log)
  }
  probability_value(value, !above_zero(q), both(!not_infinite(q), q > 0), valid, lower, log,
                    q, shape, scale)
})

punif_formula <- tailed(function(q, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- both(q > min, q < max)
  valid <- max >= min
  share <- (if (lower) q - min else max - q) / where(max > min, max - min, 1)
  share <- where(inside, share, 1)
  probability_value(if (log) log(share) else share, q <= min, q >= max, valid, lower, log,
                    q, min, max)
})

plnorm_formula <- tailed(function(q, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) {
  y <- log_of_positive(where(above_zero(q), q, 1))
  value <- pnorm_formula(y, meanlog, sdlog, lower, log)
  probability_value(value, !above_zero(q), FALSE, not_negative(sdlog), lower, log,
                    q, meanlog, sdlog)
})

# The angle of (1, |z|) is pi times the smaller tail.
pcauchy_formula <- tailed(function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  inside <- not_infinite(q)
  valid <- is_positive(scale)
  z <- from_centre(where(inside, q, 0), location, where(valid, scale, NaN))
  if (!lower) z <- -z
  value <- if (log) {
    tail <- density_op("atan2", 1, where(z > 0, z, -z)) / pi
    where(z > 0, log1p(-tail), log(tail))
  } else {
    density_op("atan2", 1, -z) / pi
  }
  probability_value(value, both(!inside, q < 0), both(!inside, q > 0), valid, lower, log,
                    q, location, scale)
})

pgamma_formula <- tailed(function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE,
                                  log.p = FALSE) {
  rate <- one_rate(rate, scale, missing(rate), missing(scale))
  inside <- both(above_zero(q), not_infinite(q))
  proper <- is_positive(shape)
  valid <- both(where(proper, TRUE, shape == 0), both(not_negative(rate), not_infinite(rate)))
  value <- density_op(if (lower) "log_pgamma" else "log_qgamma", rate * where(inside, q, 1),
                      where(proper, shape, 1))
  # A shape of 0: all mass is at 0.
  value <- where(proper, if (log) value else exp(value), edge_probability(1, lower, log))
  probability_value(value, !above_zero(q), both(!not_infinite(q), q > 0), valid, lower, log,
                    q, shape, rate)
})

pchisq_formula <- function(q, df, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  refuse_noncentral(ncp)
  pgamma_formula(q, 0.5 * df, 0.5, lower.tail = lower.tail, log.p = log.p)
}

pbeta_formula <- tailed(function(q, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) {
  refuse_noncentral(ncp)
  inside <- both(q > 0, q < 1)
  proper <- both(is_positive(shape1), is_positive(shape2))
  x <- where(inside, q, 0.5)
  a <- where(proper, shape1, 1)
  b <- where(proper, shape2, 1)
  value <- density_op(if (lower) "log_pbeta" else "log_qbeta", x, a, b)
  # A shape of 0: all mass is at 0, at 1, or half at each.
  points <- function() {
    one <- where(shape1 == 0, edge_probability(1, lower, log), edge_probability(0, lower, log))
    where((shape1 == 0) & (shape2 == 0), if (log) base::log(0.5) else 0.5, one)
  }
  value <- where(proper, if (log) value else exp(value), points())
  valid <- both(not_negative(shape1), not_negative(shape2))
  probability_value(value, q <= 0, q >= 1, valid, lower, log, q, shape1, shape2)
})

# Each tail has half the probability of a beta variable's tail.
pt_formula <- tailed(function(q, df, ncp, lower.tail = TRUE, log.p = FALSE) {
  if (!missing(ncp)) refuse_noncentral(ncp)
  valid <- above_zero(df)
  proper <- both(valid, not_infinite(df))
  n <- not_above_largest(where(proper, df, 1))
  inside <- not_infinite(q)
  t <- where(inside, q, 0)
  t <- t + where(t == 0, 1e-140, 0) # the derivatives below are not defined at 0
  squared <- (t / sqrt(n))^2
  near <- squared < 1
  inner <- where(near, squared, 0.5)
  outer <- where(near, 2, squared)
  tail <- base::log(0.5) + where(near, density_op("log_qbeta", inner / (1 + inner), 0.5, 0.5 * n),
                                 density_op("log_pbeta", 1 / (1 + outer), 0.5 * n, 0.5))
  above <- if (lower) t > 0 else t < 0
  value <- where(above, if (log) log1m_exp(tail) else -expm1(tail), if (log) tail else exp(tail))
  value <- where(not_infinite(df), value, pnorm_formula(q, 0, 1, lower, log))
  probability_value(value, both(!inside, q < 0), both(!inside, q > 0), valid, lower, log, q, df)
})

# ---- quantiles -----------------------------------------------------------------------------------

qnorm_formula <- tailed(function(p, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  z <- density_op(if (log) "log_qnorm" else "qnorm", p)
  quantile_value(if (lower) z else -z, mean, sd, p)
})

# centre + scale z; at probabilities 0 and 1 z, whatever these are.
quantile_value <- function(z, centre, scale, p) {
  ends <- density_op("is_infinite", z)
  value <- centre + where(not_negative(scale), scale, NaN) * where(ends, 0, z)
  full_length(where(ends, z, value), p, centre, scale)
}

# Whether p, or its logarithm, is a probability.
can_be_probability <- function(p, log) if (log) p <= 0 else is_probability(p)

qlogis_formula <- tailed(function(p, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  p <- where(can_be_probability(p, log), p, NaN)
  z <- if (log) p - log1m_exp(p) else log(p / (1 - p))
  quantile_value(if (lower) z else -z, location, scale, p)
})

qexp_formula <- tailed(function(p, rate = 1, lower.tail = TRUE, log.p = FALSE) {
  p <- where(can_be_probability(p, log), p, NaN)
  t <- if (lower) {
    if (log) -log1m_exp(p) else -log1p(-p)
  } else {
    if (log) -p else -log(p)
  }
  valid <- not_negative(rate)
  full_length(where(t == 0, where(valid, 0, NaN), t / where(valid, rate, NaN)), p, rate)
})
