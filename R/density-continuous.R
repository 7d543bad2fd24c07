# Log densities of continuous distributions (R/density.R).

# A standard deviation of 0 puts all mass on the mean; where it is traced, the density is then zero
# there too, so that it does not cost a comparison for each number.
dnorm_formula <- function(x, mean = 0, sd = 1, log = FALSE) {
  log <- check_flag(log, "log")
  proper <- sd > 0
  scale <- where(proper, sd, 1)
  inside <- not_infinite(x)
  z <- (where(inside, x, 0) - mean) / scale
  value <- if (log) {
    -0.5 * square(z) - (where(proper, log(scale), where(sd == 0, Inf, NaN)) + log_sqrt_2pi)
  } else {
    density_op("dnorm", z) * where(proper, 1 / scale, where(sd == 0, 0, NaN))
  }
  if (!has_traced(sd)) value <- where(proper, value, where(x == mean & sd == 0, Inf, value))
  full_length(where(inside, value, where(sd >= 0, if (log) -Inf else 0, NaN)), x, mean, sd)
}

dlnorm_formula <- function(x, meanlog = 0, sdlog = 1, log = FALSE) {
  inside <- both(x > 0, not_infinite(x))
  y <- log(where(inside, x, 1))
  value <- dnorm_formula(y, meanlog, sdlog, log = TRUE) - y
  density_value(value, inside, sdlog >= 0, log, x, meanlog, sdlog)
}

dexp_formula <- function(x, rate = 1, log = FALSE) {
  inside <- both(x >= 0, not_infinite(x))
  valid <- both(rate >= 0, not_infinite(rate))
  r <- where(valid, rate, NaN)
  value <- log(r) - r * where(inside, x, 0)
  density_value(value, inside, valid, log, x, rate)
}

# With m = rate x: shape log(m) - m - lgamma(shape) - log(x), without cancellation
# -deviance(shape, m) + log(shape) / 2 - log(2 pi) / 2 - stirling(shape) - log(x).
dgamma_formula <- function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) {
  rate <- one_rate(rate, scale, missing(rate), missing(scale))
  inside <- both(x > 0, not_infinite(x))
  proper <- is_positive(shape)
  valid <- both(where(proper, TRUE, shape == 0), both(rate >= 0, not_infinite(rate)))
  a <- where(proper, shape, 1)
  y <- where(inside, x, 1)
  value <- if (!has_traced(a) && !any(a > 50, na.rm = TRUE)) {
    (a - 1) * log(y) - rate * y + (a * log(where(rate >= 0, rate, NaN)) - lgamma(a))
  } else {
    constant <- 0.5 * log(a) - log_sqrt_2pi - stirling_rest(a)
    constant - poisson_deviance(a, rate * y) - log(y)
  }
  density_value(value, both(inside, proper), valid, log, x, shape, rate,
                outside = where(x == 0, where(proper, power_at_zero(a, log(rate)), Inf), -Inf))
}

# A density that is about proportional to x^(shape - 1) near x = 0, at x = 0.
power_at_zero <- function(shape, at_one) {
  where(shape < 1, Inf, where(shape > 1, -Inf, at_one))
}

# The rate of a distribution that takes this or the scale.
one_rate <- function(rate, scale, no_rate, no_scale) {
  if (no_scale) return(rate)
  if (!no_rate) {
    same <- !has_traced(rate, scale) && all(abs(rate * scale - 1) < 1e-15)
    if (!same) abort_argument("scale", "specify 'rate' or 'scale' but not both")
  }
  1 / scale
}

refuse_noncentral <- function(ncp) {
  if (has_traced(ncp) || !all(ncp == 0)) {
    abort_argument("ncp", "'ncp' must be 0: noncentral distributions have no derivatives here")
  }
}

dchisq_formula <- function(x, df, ncp = 0, log = FALSE) {
  refuse_noncentral(ncp)
  dgamma_formula(x, 0.5 * df, 0.5, log = log)
}

dweibull_formula <- function(x, shape, scale = 1, log = FALSE) {
  inside <- both(x > 0, not_infinite(x))
  valid <- both(is_positive(shape), is_positive(scale))
  a <- where(is_positive(shape), shape, NaN)
  s <- where(is_positive(scale), scale, NaN)
  y <- where(inside, x, 1)
  l <- log_ratio(y, s)
  value <- log(a) + a * l - log(y) - exp(a * l)
  density_value(value, inside, valid, log, x, shape, scale,
                outside = where(x == 0, power_at_zero(a, -log(s)), -Inf))
}

# log(x / s), by data's own logarithm where that saves one for each number.
log_ratio <- function(x, s) {
  if (length(s) == 1L && !has_traced(x)) log(x) - log(s) else log(x / s)
}

# With n = a + b, without cancellation: -deviance(a, n x) - deviance(b, n (1 - x)) and terms of the
# parameters alone, the logarithm of sqrt(a b / (2 pi n)) and Stirling's rests.
dbeta_formula <- function(x, shape1, shape2, ncp = 0, log = FALSE) {
  refuse_noncentral(ncp)
  inside <- both(x > 0, x < 1)
  proper <- both(is_positive(shape1), is_positive(shape2))
  a <- where(proper, shape1, 1)
  b <- where(proper, shape2, 1)
  y <- where(inside, x, 0.5)
  value <- if (!has_traced(a, b) && !any(c(a, b) > 50, na.rm = TRUE)) {
    (a - 1) * log(y) + (b - 1) * log1p(-y) - density_op("lbeta", a, b)
  } else {
    n <- a + b
    rests <- stirling_rest(n) - stirling_rest(a) - stirling_rest(b)
    constant <- rests + 0.5 * log(a / n * b) - log_sqrt_2pi
    constant - poisson_deviance(a, n * y) - poisson_deviance(b, n * (1 - y)) - log(y) - log1p(-y)
  }
  ends <- function() {
    point <- where(x == 0, shape1, shape2) == 0
    where(proper, where(x == 0, power_at_zero(a, log(b)), power_at_zero(b, log(a))),
          where(point, Inf, -Inf))
  }
  density_value(value, both(inside, proper), both(shape1 >= 0, shape2 >= 0), log,
                x, shape1, shape2, outside = where((x == 0) | (x == 1), ends(), -Inf))
}

# lgamma((df + 1) / 2) - lgamma(df / 2) - log(df) / 2 by Stirling's rests, as these two cancel.
dt_formula <- function(x, df, ncp, log = FALSE) {
  if (!missing(ncp)) refuse_noncentral(ncp)
  valid <- df > 0
  n <- where(valid, df, NaN)
  inside <- not_infinite(x)
  constant <- if (has_traced(n)) {
    h <- 0.5 * n
    h * log1p(0.5 / h) - 0.5 + (stirling_rest(h + 0.5) - stirling_rest(h)) - log_sqrt_2pi
  } else {
    stats::dt(0, n, log = TRUE)
  }
  xx <- square(where(inside, x, 0))
  finite <- not_infinite(n)
  power <- where(finite, (0.5 * n + 0.5) * log1p(xx / where(finite, n, 1)), 0.5 * xx)
  value <- constant - power
  density_value(value, inside, valid, log, x, df)
}

dcauchy_formula <- function(x, location = 0, scale = 1, log = FALSE) {
  valid <- is_positive(scale)
  s <- where(valid, scale, NaN)
  inside <- not_infinite(x)
  z <- (where(inside, x, 0) - location) / s
  density_value(-log1p(square(z)) - log(pi * s), inside, valid, log, x, location, scale)
}

dlogis_formula <- function(x, location = 0, scale = 1, log = FALSE) {
  valid <- is_positive(scale)
  s <- where(valid, scale, NaN)
  inside <- not_infinite(x)
  z <- (where(inside, x, 0) - location) / s
  density_value(-(z + 2 * log1p_exp(-z)) - log(s), inside, valid, log, x, location, scale)
}

dunif_formula <- function(x, min = 0, max = 1, log = FALSE) {
  valid <- max > min
  width <- where(valid, max - min, 1)
  density_value(where(valid, -log(width), NaN), both(x >= min, x <= max), valid, log, x, min, max)
}
