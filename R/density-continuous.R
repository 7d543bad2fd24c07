# Log densities of continuous distributions (R/density.R).

# A standard deviation of 0 puts all mass on the mean. A traced one gives density zero there too,
# which saves a comparison for each number.
dnorm_formula <- function(x, mean = 0, sd = 1, log = FALSE) {
  log <- density_flag(log, "log")
  proper <- above_zero(sd)
  scale <- where(proper, sd, 1)
  inside <- not_infinite(x)
  z <- from_centre(where(inside, x, 0), mean, scale)
  value <- if (log) {
    log_scale <- where(proper, log_of_positive(scale), where(sd == 0, Inf, NaN))
    -0.5 * square(z) - (log_scale + log_sqrt_2pi)
  } else {
    height <- density_op("dnorm", z)
    where(proper, height / scale, where(sd == 0, 0 * height, NaN))
  }
  if (!any_traced(sd)) value <- where(proper, value, where(x == mean & sd == 0, Inf, value))
  full_length(where(inside, value, where(not_negative(sd), if (log) -Inf else 0, NaN)),
              x, mean, sd)
}

dlnorm_formula <- function(x, meanlog = 0, sdlog = 1, log = FALSE) {
  inside <- both(above_zero(x), not_infinite(x))
  y <- log_of_positive(where(inside, x, 1))
  value <- dnorm_formula(y, meanlog, sdlog, log = TRUE) - y
  density_value(value, inside, not_negative(sdlog), log, x, meanlog, sdlog)
}

dexp_formula <- function(x, rate = 1, log = FALSE) {
  inside <- both(not_negative(x), not_infinite(x))
  valid <- both(not_negative(rate), not_infinite(rate))
  r <- where(valid, rate, NaN)
  decay <- -r * where(inside, x, 0)
  # Not computed from its logarithm, so that the derivative at a rate of 0 is correct.
  if (!density_flag(log, "log")) {
    return(full_length(where(inside, r * exp(decay), where(valid, 0, NaN)), x, rate))
  }
  density_value(log_of_positive(r) + decay, inside, valid, log, x, rate)
}

# With m = rate x: shape log(m) - m - lgamma(shape) - log(x).
dgamma_formula <- function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) {
  rate <- one_rate(rate, scale, missing(rate), missing(scale))
  inside <- both(above_zero(x), below_infinity(x))
  proper <- is_positive(shape)
  valid <- both(where(proper, TRUE, shape == 0), both(not_negative(rate), not_infinite(rate)))
  a <- where(proper, shape, 1)
  y <- where(inside, x, 1)
  value <- if (!any_traced(a) && !any(a > 50, na.rm = TRUE)) {
    r <- where(not_negative(rate), rate, NaN)
    (a - 1) * log_of_positive(y) - r * y + (a * log_of_positive(r) - lgamma(a))
  } else {
    density_op("gamma_power", y, a, rate) - log_of_positive(y)
  }
  density_value(value, both(inside, proper), valid, log, x, shape, rate,
                outside = where(x == 0, where(proper, power_at_zero(a, log(rate)), Inf), -Inf))
}

# The value at x = 0 of a density that is about proportional to x^(shape - 1) near 0.
power_at_zero <- function(shape, at_one) {
  where(shape < 1, Inf, where(shape > 1, -Inf, at_one))
}

# The rate of a distribution that takes a rate or a scale.
one_rate <- function(rate, scale, no_rate, no_scale) {
  if (no_scale) return(rate)
  if (!no_rate) {
    same <- !any_traced(rate, scale) && all(abs(rate * scale - 1) < 1e-15)
    if (!same) abort_argument("scale", "specify 'rate' or 'scale' but not both")
  }
  1 / scale
}

refuse_noncentral <- function(ncp) {
  if (any_traced(ncp) || !all(ncp == 0)) {
    abort_argument("ncp", "'ncp' must be 0: noncentral distributions have no derivatives here")
  }
}

dchisq_formula <- function(x, df, ncp = 0, log = FALSE) {
  refuse_noncentral(ncp)
  dgamma_formula(x, 0.5 * df, 0.5, log = log)
}

dweibull_formula <- function(x, shape, scale = 1, log = FALSE) {
  inside <- both(above_zero(x), below_infinity(x))
  valid <- both(is_positive(shape), is_positive(scale))
  a <- where(is_positive(shape), shape, NaN)
  s <- where(is_positive(scale), scale, NaN)
  y <- where(inside, x, 1)
  l <- log_ratio(y, s)
  t <- density_op("pmin", a * l, 800) # both terms stay finite, or the second one is larger
  value <- log_of_positive(a) + t - log_of_positive(y) - exp(t)
  density_value(value, inside, valid, log, x, shape, scale,
                outside = where(x == 0, power_at_zero(a, -log(s)), -Inf))
}

# log(x / s), as a difference where that saves a logarithm: x is data, or x or s is a traced exp().
log_ratio <- function(x, s) {
  apart <- length(s) == 1L && !any_traced(x) || !is.null(argument_of(s, "exp")) ||
    !is.null(argument_of(x, "exp"))
  if (apart) log_of_positive(x) - log_of_positive(s) else density_op("log_ratio", x, s)
}

dbeta_formula <- function(x, shape1, shape2, ncp = 0, log = FALSE) {
  refuse_noncentral(ncp)
  inside <- both(x > 0, x < 1)
  proper <- both(is_positive(shape1), is_positive(shape2))
  a <- where(proper, shape1, 1)
  b <- where(proper, shape2, 1)
  y <- where(inside, x, 0.5)
  value <- if (!any_traced(a, b) && !any(c(a, b) > 50, na.rm = TRUE)) {
    (a - 1) * log(y) + (b - 1) * log1p(-y) - density_op("lbeta", a, b)
  } else {
    density_op("beta_power", y, a, b) - log(y) - log1p(-y)
  }
  ends <- function() {
    point <- where(x == 0, shape1, shape2) == 0
    where(proper, where(x == 0, power_at_zero(a, log(b)), power_at_zero(b, log(a))),
          where(point, Inf, -Inf))
  }
  density_value(value, both(inside, proper), both(not_negative(shape1), not_negative(shape2)), log,
                x, shape1, shape2, outside = where((x == 0) | (x == 1), ends(), -Inf))
}

# With h = df / 2, the constant is lgamma(h + 1 / 2) - lgamma(h) - log(2 pi h) / 2 without terms
# that cancel: from the remainders of Stirling's formula and h log(1 + 1 / (2 h)).
dt_formula <- function(x, df, ncp, log = FALSE) {
  if (!missing(ncp)) refuse_noncentral(ncp)
  valid <- above_zero(df)
  n <- where(valid, df, NaN)
  inside <- not_infinite(x)
  constant <- if (any_traced(n)) {
    h <- 0.5 * n
    rests <- stirling_rest(h + 0.5) - stirling_rest(h)
    rests - density_op("neg_binomial", 0, 0.5, h) - 0.5 - log_sqrt_2pi
  } else {
    stats::dt(0, n, log = TRUE)
  }
  value <- constant - density_op("t_power", n, where(inside, x, 0))
  density_value(value, inside, valid, log, x, df)
}

dcauchy_formula <- function(x, location = 0, scale = 1, log = FALSE) {
  valid <- is_positive(scale)
  s <- where(valid, scale, NaN)
  inside <- not_infinite(x)
  z <- from_centre(where(inside, x, 0), location, s)
  value <- -density_op("t_power", 1, z) - (log_of_positive(s) + base::log(pi))
  density_value(value, inside, valid, log, x, location, scale)
}

dlogis_formula <- function(x, location = 0, scale = 1, log = FALSE) {
  valid <- is_positive(scale)
  s <- where(valid, scale, NaN)
  inside <- both(x > -Inf, below_infinity(x))
  z <- from_centre(where(inside, x, 0), location, s)
  value <- -(log1p_exp(z) + log1p_exp(-z)) - log_of_positive(s)
  density_value(value, inside, valid, log, x, location, scale)
}

dunif_formula <- function(x, min = 0, max = 1, log = FALSE) {
  valid <- max > min
  width <- where(valid, max - min, 1)
  density_value(where(valid, -log(width), NaN), both(x >= min, x <= max), valid, log, x, min, max)
}
