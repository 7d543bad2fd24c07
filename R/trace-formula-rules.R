# Derivatives of the functions that a formula of cl_log_posterior() can use.

# `prototype`: a function with the arguments of the one that the rule is for. `...`: derivatives
# with respect to its arguments, as expressions of the arguments, of `value`, the call's own value,
# and of `g`, the derivative with respect to it, by which the expression is multiplied unless it
# contains `g`.
plain_rule <- function(prototype, ...) {
  list(kind = "plain", arguments = formals(prototype), partials = eval(substitute(alist(...))))
}

# Of a density: derivatives of its logarithm.
density_rule <- function(prototype, ...) {
  list(kind = "density", arguments = formals(prototype), partials = eval(substitute(alist(...))))
}

# Of a distribution function: `density`, its density, and derivatives in units of that.
distribution_rule <- function(prototype, density, ...) {
  list(kind = "distribution", arguments = formals(prototype), density = substitute(density),
       partials = eval(substitute(alist(...))))
}

# By name of the function; "log base" is log() with its argument 'base'.
derivative_rules <- list(
  "+" = plain_rule(function(e1, e2) NULL, e1 = g, e2 = g),
  "-" = plain_rule(function(e1, e2) NULL, e1 = g, e2 = -g),
  "- alone" = plain_rule(function(e1, e2) NULL, e1 = -g),
  "*" = plain_rule(function(e1, e2) NULL, e1 = e2, e2 = e1),
  "/" = plain_rule(function(e1, e2) NULL, e1 = g / e2, e2 = -g * value / e2),
  "^" = plain_rule(function(e1, e2) NULL, e1 = e2 * e1^(e2 - 1), e2 = value * log(e1)),
  exp = plain_rule(function(x) NULL, x = value),
  expm1 = plain_rule(function(x) NULL, x = value + 1),
  log = plain_rule(function(x, base = exp(1)) NULL, x = g / x),
  "log base" = plain_rule(function(x, base = exp(1)) NULL, x = g / (x * log(base)),
                          base = -g * value / (base * log(base))),
  log1p = plain_rule(function(x) NULL, x = g / (1 + x)),
  log2 = plain_rule(function(x) NULL, x = g / (x * log(2))),
  log10 = plain_rule(function(x) NULL, x = g / (x * log(10))),
  sqrt = plain_rule(function(x) NULL, x = g * 0.5 / value),
  abs = plain_rule(function(x) NULL, x = sign(x)),
  sin = plain_rule(function(x) NULL, x = cos(x)),
  cos = plain_rule(function(x) NULL, x = -sin(x)),
  tan = plain_rule(function(x) NULL, x = 1 + value^2),
  sinpi = plain_rule(function(x) NULL, x = pi * cospi(x)),
  cospi = plain_rule(function(x) NULL, x = -pi * sinpi(x)),
  tanpi = plain_rule(function(x) NULL, x = pi * (1 + value^2)),
  asin = plain_rule(function(x) NULL, x = g / sqrt(1 - x^2)),
  acos = plain_rule(function(x) NULL, x = -g / sqrt(1 - x^2)),
  atan = plain_rule(function(x) NULL, x = g / (1 + x^2)),
  atan2 = plain_rule(function(y, x) NULL, y = g * x / (x^2 + y^2), x = -g * y / (x^2 + y^2)),
  sinh = plain_rule(function(x) NULL, x = cosh(x)),
  cosh = plain_rule(function(x) NULL, x = sinh(x)),
  tanh = plain_rule(function(x) NULL, x = g / cosh(x)^2),
  asinh = plain_rule(function(x) NULL, x = g / sqrt(1 + x^2)),
  acosh = plain_rule(function(x) NULL, x = g / (sqrt(x - 1) * sqrt(x + 1))),
  atanh = plain_rule(function(x) NULL, x = g / ((1 - x) * (1 + x))),
  gamma = plain_rule(function(x) NULL, x = value * digamma(x)),
  lgamma = plain_rule(function(x) NULL, x = digamma(x)),
  digamma = plain_rule(function(x) NULL, x = trigamma(x)),
  trigamma = plain_rule(function(x) NULL, x = psigamma(x, 2)),
  psigamma = plain_rule(function(x, deriv = 0L) NULL, x = psigamma(x, deriv + 1)),
  factorial = plain_rule(function(x) NULL, x = value * digamma(x + 1)),
  lfactorial = plain_rule(function(x) NULL, x = digamma(x + 1)),
  beta = plain_rule(function(a, b) NULL, a = value * (digamma(a) - digamma(a + b)),
                    b = value * (digamma(b) - digamma(a + b))),
  lbeta = plain_rule(function(a, b) NULL, a = digamma(a) - digamma(a + b),
                     b = digamma(b) - digamma(a + b)),

  dnorm = density_rule(function(x, mean = 0, sd = 1, log = FALSE) NULL, x = (mean - x) / sd^2,
                       mean = (x - mean) / sd^2, sd = (((x - mean) / sd)^2 - 1) / sd),
  dlnorm = density_rule(function(x, meanlog = 0, sdlog = 1, log = FALSE) NULL,
                        x = -(1 + (log(x) - meanlog) / sdlog^2) / x,
                        meanlog = (log(x) - meanlog) / sdlog^2,
                        sdlog = (((log(x) - meanlog) / sdlog)^2 - 1) / sdlog),
  dcauchy = density_rule(function(x, location = 0, scale = 1, log = FALSE) NULL,
                         x = 2 * (location - x) / (scale^2 + (x - location)^2),
                         location = 2 * (x - location) / (scale^2 + (x - location)^2),
                         scale = (2 / (1 + (scale / (x - location))^2) - 1) / scale),
  dlogis = density_rule(function(x, location = 0, scale = 1, log = FALSE) NULL,
                        x = -tanh((x - location) / scale / 2) / scale,
                        location = tanh((x - location) / scale / 2) / scale,
                        scale = ((x - location) / scale * tanh((x - location) / scale / 2) - 1) /
                          scale),
  dt = density_rule(function(x, df, ncp, log = FALSE) NULL, x = -(df + 1) * x / (df + x^2),
                    df = (digamma((df + 1) / 2) - digamma(df / 2) - log1p(x^2 / df) +
                            (x^2 - 1) / (df + x^2)) / 2),
  dunif = density_rule(function(x, min = 0, max = 1, log = FALSE) NULL, x = 0,
                       min = 1 / (max - min), max = 1 / (min - max)),
  dexp = density_rule(function(x, rate = 1, log = FALSE) NULL, x = -rate, rate = 1 / rate - x),
  dgamma = density_rule(function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) NULL,
                        x = (shape - 1) / x - rate, shape = log(rate) + log(x) - digamma(shape),
                        rate = shape / rate - x),
  "dgamma scale" = density_rule(function(x, shape, rate = 1, scale = 1 / rate, log = FALSE) NULL,
                                x = (shape - 1) / x - 1 / scale,
                                shape = log(x) - log(scale) - digamma(shape),
                                scale = (x / scale - shape) / scale),
  dchisq = density_rule(function(x, df, ncp = 0, log = FALSE) NULL, x = (df / 2 - 1) / x - 0.5,
                        df = (log(x / 2) - digamma(df / 2)) / 2),
  dbeta = density_rule(function(x, shape1, shape2, ncp = 0, log = FALSE) NULL,
                       x = (shape1 - 1) / x - (shape2 - 1) / (1 - x),
                       shape1 = log(x) - digamma(shape1) + digamma(shape1 + shape2),
                       shape2 = log1p(-x) - digamma(shape2) + digamma(shape1 + shape2)),
  dweibull = density_rule(function(x, shape, scale = 1, log = FALSE) NULL,
                          x = (shape * (1 - (x / scale)^shape) - 1) / x,
                          shape = 1 / shape + log(x / scale) * (1 - (x / scale)^shape),
                          scale = shape * ((x / scale)^shape - 1) / scale),
  dpois = density_rule(function(x, lambda, log = FALSE) NULL, lambda = x / lambda - 1),
  dgeom = density_rule(function(x, prob, log = FALSE) NULL, prob = 1 / prob - x / (1 - prob)),
  dbinom = density_rule(function(x, size, prob, log = FALSE) NULL,
                        prob = x / prob - (size - x) / (1 - prob)),
  dnbinom = density_rule(function(x, size, prob, mu, log = FALSE) NULL,
                         size = digamma(x + size) - digamma(size) + log(prob),
                         prob = size / prob - x / (1 - prob)),
  "dnbinom mu" = density_rule(function(x, size, prob, mu, log = FALSE) NULL,
                              size = digamma(x + size) - digamma(size) - log1p(mu / size) +
                                (mu - x) / (size + mu),
                              mu = (x - mu) / mu * (size / (size + mu))),

  pnorm = distribution_rule(function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) NULL,
                            dnorm(q, mean, sd), q = 1, mean = -1, sd = (mean - q) / sd),
  plogis = distribution_rule(
    function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) NULL,
    dlogis(q, location, scale), q = 1, location = -1, scale = (location - q) / scale),
  pcauchy = distribution_rule(
    function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) NULL,
    dcauchy(q, location, scale), q = 1, location = -1, scale = (location - q) / scale),
  plnorm = distribution_rule(
    function(q, meanlog = 0, sdlog = 1, lower.tail = TRUE, log.p = FALSE) NULL,
    dlnorm(q, meanlog, sdlog), q = 1, meanlog = -q, sdlog = q * (meanlog - log(q)) / sdlog),
  pexp = distribution_rule(function(q, rate = 1, lower.tail = TRUE, log.p = FALSE) NULL,
                           dexp(q, rate), q = 1, rate = q / rate),
  pweibull = distribution_rule(
    function(q, shape, scale = 1, lower.tail = TRUE, log.p = FALSE) NULL,
    dweibull(q, shape, scale), q = 1, shape = q * log(q / scale) / shape, scale = -q / scale),
  punif = distribution_rule(function(q, min = 0, max = 1, lower.tail = TRUE, log.p = FALSE) NULL,
                            dunif(q, min, max), q = 1, min = (q - max) / (max - min),
                            max = (min - q) / (max - min)),
  pgamma = distribution_rule(
    function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) NULL,
    dgamma(q, shape, rate), q = 1, rate = q / rate),
  "pgamma scale" = distribution_rule(
    function(q, shape, rate = 1, scale = 1 / rate, lower.tail = TRUE, log.p = FALSE) NULL,
    dgamma(q, shape, scale = scale), q = 1, scale = -q / scale),
  pbeta = distribution_rule(
    function(q, shape1, shape2, ncp = 0, lower.tail = TRUE, log.p = FALSE) NULL,
    dbeta(q, shape1, shape2), q = 1),
  pt = distribution_rule(function(q, df, ncp, lower.tail = TRUE, log.p = FALSE) NULL, dt(q, df),
                         q = 1))
