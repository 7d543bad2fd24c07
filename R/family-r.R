# Families of R, other than those with a density here: family objects as of binomial(link =
# "probit") or Gamma(). In problems and fits such a family is its name with its row as an
# attribute. Means, variances and deviances are those of the object.

# Properties of R's families, by name: `theta` is that of MASS::negative.binomial(), whose name has
# the number in it. `aux` is the dispersion, w the weights with the trials, `kind` that of the
# response.
#   exact      whether tests of contrasts are by Student's t distribution
#   known      whether the dispersion is 1; `counted`: else whether it counts among the parameters
#   variance_name  of the variance function in C and on devices (glm-irls.R)
#   log_density(y, mu, w, aux); draw, probability and quantile as in R/family-table.R
#   saturated(y, w, aux)  the log likelihood at the means y
#   bound(mu, near)  whether means are at the bound of their range, `means` in words
#   batch      number of the family in cl_batch_glm(), with its canonical_link
r_rows <- list(
  binomial = list(
    trials = TRUE, two_classes = TRUE, random = TRUE, known = TRUE, batch = 0,
    whole = TRUE, variance_name = "mu(1-mu)", means = "probabilities",
    bound = function(mu, near) mu > 1 - near | mu < near, canonical_link = "logit",
    log_density = function(y, mu, w, aux) stats::dbinom(round(w * y), round(w), mu, log = TRUE),
    draw = function(n, mu, w, aux, kind) {
      y <- stats::rbinom(n, round(w), mu)
      if (kind == "counts") y else ifelse(w > 0, y / w, 0)
    }),
  quasibinomial = list(trials = TRUE, variance_name = "mu(1-mu)"),
  poisson = list(
    counts = TRUE, random = TRUE, known = TRUE, whole = TRUE, batch = 1, variance_name = "mu",
    means = "rates", bound = function(mu, near) mu < near, canonical_link = "log",
    log_density = function(y, mu, w, aux) w * stats::dpois(y, mu, log = TRUE),
    draw = function(n, mu, w, aux, kind) stats::rpois(n, mu),
    probability = function(q, mu, aux, w) stats::ppois(q, mu),
    quantile = function(p, mu, aux) stats::qpois(p, mu)),
  quasipoisson = list(variance_name = "mu"),
  gaussian = list(
    counted = TRUE, exact = TRUE, batch = 2, canonical_link = "identity",
    variance_name = "constant",
    log_density = function(y, mu, w, aux) stats::dnorm(y, mu, sqrt(aux / w), log = TRUE),
    draw = function(n, mu, w, aux, kind) stats::rnorm(n, mu, sqrt(aux / w)),
    probability = function(q, mu, aux, w) stats::pnorm(q, mu, sqrt(aux)),
    quantile = function(p, mu, aux) stats::qnorm(p, mu, sqrt(aux))),
  Gamma = list(
    counted = TRUE, exact = TRUE, random = TRUE, aux = "dispersion",
    mixed_start = function(dispersion) log(max(dispersion, 1e-8)),
    saturated = function(y, w, aux) {
      a <- w / aux
      sum(a * log(a) - lgamma(a) - log(y) - a)
    },
    variance_name = "mu^2",
    log_density = function(y, mu, w, aux) {
      stats::dgamma(y, w / aux, scale = mu * (aux / w), log = TRUE)
    },
    draw = function(n, mu, w, aux, kind) stats::rgamma(n, w / aux, w / (aux * mu)),
    probability = function(q, mu, aux, w) stats::pgamma(q, 1 / aux, 1 / (aux * mu)),
    quantile = function(p, mu, aux) stats::qgamma(p, 1 / aux, 1 / (aux * mu))),
  inverse.gaussian = list(
    counted = TRUE, variance_name = "mu^3",
    log_density = function(y, mu, w, aux) {
      -(log(2 * pi * aux / w * y^3) + (y - mu)^2 / (mu^2 * y * aux / w)) / 2
    },
    draw = function(n, mu, w, aux, kind) { # Michael, Schucany and Haas (1976)
      half <- mu * aux / w / 2
      square <- stats::rnorm(n)^2
      y <- mu + half * (mu * square - sqrt(4 * mu * square * w / aux + mu^2 * square^2))
      ifelse(stats::runif(n) <= mu / (mu + y), y, mu^2 / y)
    }),
  quasi = list())

# Of families with a number in their names.
theta_row <- function(theta) {
  list(counts = TRUE, random = TRUE, whole = TRUE, theta = theta, variance_name = "theta",
       log_density = function(y, mu, w, aux) w * stats::dnbinom(y, theta, mu = mu, log = TRUE),
       draw = function(n, mu, w, aux, kind) stats::rnbinom(n, theta, mu = mu),
       probability = function(q, mu, aux, w) stats::pnbinom(q, theta, mu = mu),
       quantile = function(p, mu, aux) stats::qnbinom(p, theta, mu = mu))
}

power_row <- function(r) {
  p <- if (!is.null(r$power)) r$power else environment(r$variance)$var.power
  c(list(counted = !is.null(r$power)),
    if (!is.null(r$power)) list(
      log_density = function(y, mu, w, aux) dtweedie_log(y, mu, aux / w, p)),
    if (p > 1 && p < 2) list(
      draw = function(n, mu, w, aux, kind) draw_tweedie(mu, aux / w, p)))
}

# The row of a family object.
r_row <- function(r) {
  theta <- nb_theta(r)
  row <- if (!is.null(theta)) theta_row(theta) else
    if (startsWith(r$family, "Tweedie")) power_row(r) else r_rows[[r$family]]
  force(r)
  do.call(new_family_row, c(row, list(
    fitter = "irls", r = r, base = function() r, name = r$family, inverse = r$linkinv,
    slope = r$mu.eta,
    variance = function(mu, aux) r$variance(mu),
    deviance = function(y, mu, w, aux) r$dev.resids(y, mu, w))))
}

wrap_family <- function(family) {
  parts <- c("linkfun", "linkinv", "variance", "dev.resids", "aic", "mu.eta")
  lacking <- parts[!vapply(family[parts], is.function, NA)]
  if (length(lacking) > 0L) {
    abort_argument("family", sprintf("family %s has no function '%s', which a fit needs",
                                     family$family[1L], lacking[1L]))
  }
  structure(sprintf("%s(%s)", family$family, family$link), row = r_row(family),
            class = "cl_family")
}

# NULL for families of this package.
r_family <- function(family) family_row(family)$r

sparse_family <- function(family) {
  row <- family_row(family)
  if (!is.null(row$r)) return(family)
  if (is.null(row$base)) {
    abort_argument("x", sprintf("a sparse 'x' is not supported with family \"%s\"", family))
  }
  wrap_family(row$base())
}

# The family that method "firth" fits: R's, with its canonical link.
firth_family <- function(family) {
  row <- family_row(family)
  if (row$canonical) return(wrap_family(row$base()))
  if (isTRUE(row$known) && identical(row$canonical_link, row$r$link)) return(family)
  abort_argument("method", paste("method \"firth\" is for logistic and Poisson regressions,",
                                 "binomial(\"logit\") and poisson(\"log\"), not for family",
                                 family))
}

dispersion_known <- function(r) {
  if (!is.null(r$dispersion)) return(!is.na(r$dispersion))
  isTRUE(r_rows[[r$family]]$known)
}

# The parameter of MASS::negative.binomial(), NULL for other families.
nb_theta <- function(r) {
  if (startsWith(r$family, "Negative Binomial(")) {
    get0(".Theta", environment(r$variance), inherits = FALSE)
  }
}

# The negative binomial family with this theta, as of MASS.
nb_family <- function(.Theta) {
  force(.Theta)
  link <- stats::make.link("log")
  structure(list(
    family = sprintf("Negative Binomial(%g)", .Theta), link = "log", linkfun = link$linkfun,
    linkinv = link$linkinv, mu.eta = link$mu.eta, valideta = link$valideta, dispersion = 1,
    validmu = function(mu) all(mu > 0), variance = function(mu) mu + mu^2 / .Theta,
    dev.resids = function(y, mu, wt) {
      family_table$neg_binomial_2_log$deviance(y, mu, wt, .Theta)
    },
    initialize = quote(mustart <- y + (y == 0) / 6)), class = "family")
}

# Log densities at the means mu; NULL for quasi-likelihoods.
r_log_density <- function(row, y, mu, w, aux) {
  if (!is.null(row$log_density)) {
    row$log_density(y, mu, w, if ("dispersion" %in% names(aux)) aux[["dispersion"]] else 1)
  }
}
