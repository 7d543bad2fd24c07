# Families whose log density is written in R and compiled: beta, zero-inflated, hurdle and truncated
# counts. In problems and fits such a family is its name with its row as an attribute, in which
# `density` are the facts of this file.

#' Further families for cl_glm()
#'
#' Families that are compiled from a density in R, by [cl_gradient()], with exact second
#' derivatives; and Tweedie's. The names can be given to [cl_glm()] directly.
#'
#' With `mu` the inverse link of the linear predictor:
#'
#' | name | y | density |
#' |---|---|---|
#' | `"beta"` | between 0 and 1 | beta with mean `mu` and variance `mu (1 - mu) / (1 + phi)` |
#' | `"zero_inflated_poisson"` | 0, 1, ... | 0 with probability `zero`, else Poisson |
#' | `"zero_inflated_neg_binomial"` | 0, 1, ... | the same with a negative binomial distribution |
#' | `"hurdle_poisson"` | 0, 1, ... | 0 with probability `1 - nonzero`, else Poisson without 0 |
#' | `"hurdle_neg_binomial"` | 0, 1, ... | the same with a negative binomial distribution |
#' | `"truncated_poisson"` | 1, 2, ... | Poisson without 0 |
#' | `"truncated_neg_binomial"` | 1, 2, ... | negative binomial without 0 |
#' | `"tweedie"` | at least 0 | variance `dispersion mu^power`, a sum of gamma variables |
#'
#' The negative binomial distributions have the variance `mu + mu^2 / phi`. The second part of the
#' formula, `y ~ x1 + x2 | z`, is a linear predictor for `logit(zero)`, `logit(nonzero)` or
#' `log(phi)` of `"beta"`; without it they are constant. (In `pscl::zeroinfl()` and
#' `pscl::hurdle()`, whose coefficients have the same meaning, they then depend on all predictors.)
#'
#' Fits are by maximum likelihood; standard errors are from the observed information, including the
#' uncertainty of `phi`. Coefficients of the second part are in `aux`, with names such as `zero:z`,
#' and in [vcov()], [summary()] and [confint()]. Residuals are of type `"pearson"` and
#' `"response"`. The deviance is minus twice the log likelihood. `predict(fit, type = "response")`
#' is the mean of y, with the zeros; `type = "link"` is the linear predictor of `mu`, `type =
#' "second"` the probability or `phi` of the second part.
#'
#' `"tweedie"` is a family of R with a fixed power, fitted like `statmod::tweedie()`, with a log
#' likelihood by its series (Dunn and Smyth, 2005).
#'
#' @section Your own density:
#' `name` may be a function of y, the parameter `mu` and further parameters, which returns the log
#' density of each y, with all constants. It is compiled as functions for [cl_gradient()] are, so it
#' may use what these may; `mu` is a vector like y, a further parameter a number. `mu` need not be a
#' mean: it is the inverse link of the linear predictor. Fits have `coef()`, `summary()`, `vcov()`,
#' `confint()`, `logLik()`, `anova()` and `predict()`; further parameters are in the element `aux`,
#' with standard errors by the delta method in `aux_error`. `fitted()` and `type = "response"` are
#' `mean`, where that is missing `mu`.
#'
#' @param name The name, or a function, see below.
#' @param parameters For a function: links of the further parameters by name, `"log"` (default:
#'   positive), `"logit"` (between 0 and 1) or `"identity"`.
#' @param start For a function: starting values of further parameters by name, by default 1, 0.5
#'   and 0 for these links; a function of y with the name `mu` gives values of `mu`.
#' @param mean,variance For a function: functions of `mu` and the further parameters that give the
#'   mean and the variance of y, for `fitted()` and residuals. `mean = TRUE`: `mu` is the mean.
#' @param draw For a function: a function of n, `mu` and the further parameters that draws n values,
#'   for [simulate()].
#' @param label For a function: the name of the family in printed output.
#' @param link Link of `mu`: for `"beta"` `"logit"` (default), `"probit"`, `"cloglog"` or
#'   `"cauchit"`; for counts `"log"`; for `"tweedie"` any link of [power()] or [stats::make.link()],
#'   by default `"log"`; for a function `"identity"` (default), `"log"`, `"logit"`, `"probit"`,
#'   `"cloglog"`, `"cauchit"`, `"inverse"` or `"sqrt"`.
#' @param power For `"tweedie"`: the power of the variance, above 1 and below 2.
#' @return A family for [cl_glm()].
#' @section Errors:
#' `statcl_error_argument` for unknown names and links, and for a power outside (1, 2).
#' @references
#' Ferrari, S. L. P. and Cribari-Neto, F. (2004) Beta regression for modelling rates and
#' proportions. *Journal of Applied Statistics* 31, 799-815.
#'
#' Zeileis, A., Kleiber, C. and Jackman, S. (2008) Regression models for count data in R. *Journal
#' of Statistical Software* 27(8).
#'
#' Dunn, P. K. and Smyth, G. K. (2005) Series evaluation of Tweedie exponential dispersion model
#' densities. *Statistics and Computing* 15, 267-280.
#' @seealso [cl_glm()]
#' @export
#' @examples
#' shares <- data.frame(y = c(0.1, 0.3, 0.25, 0.6, 0.8, 0.7), x = 1:6)
#' cl_glm(y ~ x, shares, family = "beta")
#'
#' set.seed(1)
#' d <- data.frame(x = rnorm(100), z = rnorm(100))
#' d$y <- rpois(100, exp(0.5 + 0.4 * d$x)) * rbinom(100, 1, plogis(1 + d$z))
#' fit <- cl_glm(y ~ x | z, d, family = "zero_inflated_poisson")
#' summary(fit)
#' predict(fit, data.frame(x = 0:1, z = 0), type = "response", se.fit = TRUE)
#'
#' cl_glm(y ~ x, d, family = cl_family("tweedie", power = 1.4))
#'
#' # Student's t
#' heavy <- cl_family(function(y, mu, sigma, nu) dt((y - mu) / sigma, nu, log = TRUE) - log(sigma),
#'                    start = list(nu = 5), mean = TRUE)
#' summary(cl_glm(dist ~ speed, cars, family = heavy))
cl_family <- function(name, link = NULL, power = 1.5, parameters = NULL, start = NULL, mean = NULL,
                      variance = NULL, draw = NULL, label = "user") {
  if (is.function(name)) {
    return(user_family(name, if (is.null(link)) "identity" else link, parameters, start, mean,
                       variance, draw, label))
  }
  known <- c(names(density_families), "tweedie")
  name <- check_choice(name, known, "name")
  if (name == "tweedie") return(tweedie_family(if (is.null(link)) "log" else link, power))
  row <- density_families[[name]]
  links <- if (name == "beta") c("logit", "probit", "cloglog", "cauchit") else "log"
  row$link <- check_choice(if (is.null(link)) links[1L] else link, links, "link")
  density_family(name, row)
}

density_family <- function(name, row) {
  structure(sprintf("%s(%s)", name, row$link), row = new_family_row(
    fitter = "density", name = name, density = row), class = "cl_family")
}

# The row of densities of a family, NULL for families that have no density here.
density_of <- function(family) family_row(family)$density

# log(1 - exp(l)) is written log(-expm1(l)). In the densities `l` is the log density of y in the
# distribution of counts, and `none` that of 0; `at0` is 1 where y is 0.
poisson_counts <- list(
  log = quote(dpois(y, mu, log = TRUE)), none = quote(-mu),
  variance = function(mu, phi) mu,
  upper = function(log_p, mu, phi) stats::qpois(log_p, mu, FALSE, TRUE),
  nothing = function(mu, phi) -mu)
negative_counts <- list(
  log = quote(dnbinom(y, size = phi, mu = mu, log = TRUE)), none = quote(-phi * log1p(mu / phi)),
  variance = function(mu, phi) mu + mu^2 / phi,
  upper = function(log_p, mu, phi) stats::qnbinom(log_p, phi, mu = mu, lower.tail = FALSE,
                                                  log.p = TRUE),
  nothing = function(mu, phi) -phi * log1p(mu / phi))

# The count families of one distribution: `mean` and `second` (moment) of y with the share of y
# above 0.
count_family <- function(of, kind, phi) {
  row <- list(second = switch(kind, zero = "zero", hurdle = "nonzero"), phi = phi, counts = TRUE,
              positive = kind == "truncated", zeros = kind != "truncated")
  row$density <- as.function(c(alist(y = , mu = , zeta = , phi = , at0 = , eta = ), switch(kind,
    zero = bquote({
      l <- .(of$log)
      l + at0 * cl_log1p_exp(zeta - l) - cl_log1p_exp(zeta)
    }),
    hurdle = bquote((1 - at0) * (zeta + .(of$log) - log(-expm1(.(of$none)))) - cl_log1p_exp(zeta)),
    truncated = bquote(.(of$log) - log(-expm1(.(of$none)))))))
  share <- switch(kind,
    zero = function(mu, zeta, phi) stats::plogis(-zeta),
    hurdle = function(mu, zeta, phi) stats::plogis(zeta) / -expm1(of$nothing(mu, phi)),
    truncated = function(mu, zeta, phi) 1 / -expm1(of$nothing(mu, phi)))
  row$mean <- function(mu, zeta, phi) share(mu, zeta, phi) * mu
  row$variance <- function(mu, zeta, phi) {
    s <- share(mu, zeta, phi)
    s * (of$variance(mu, phi) + mu^2) - (s * mu)^2
  }
  row$draw <- function(n, mu, zeta, phi) {
    log_p <- log(stats::runif(n)) # of a value above y
    if (kind == "zero") return(of$upper(log_p, mu, phi) * (stats::runif(n) >= stats::plogis(zeta)))
    y <- of$upper(log_p + log(-expm1(of$nothing(mu, phi))), mu, phi)
    if (kind == "hurdle") y * (stats::runif(n) < stats::plogis(zeta)) else y
  }
  row
}

density_families <- list(
  beta = list(
    second = "phi", phi = FALSE, counts = FALSE,
    density = function(y, mu, zeta, phi, at0, eta) {
      precision <- exp(zeta)
      dbeta(y, mu * precision, other(eta, mu) * precision, log = TRUE)
    },
    mean = function(mu, zeta, phi) mu,
    variance = function(mu, zeta, phi) mu * (1 - mu) / (1 + exp(zeta)),
    draw = function(n, mu, zeta, phi) stats::rbeta(n, mu * exp(zeta), (1 - mu) * exp(zeta))),
  zero_inflated_poisson = count_family(poisson_counts, "zero", FALSE),
  zero_inflated_neg_binomial = count_family(negative_counts, "zero", TRUE),
  hurdle_poisson = count_family(poisson_counts, "hurdle", FALSE),
  hurdle_neg_binomial = count_family(negative_counts, "hurdle", TRUE),
  truncated_poisson = count_family(poisson_counts, "truncated", FALSE),
  truncated_neg_binomial = count_family(negative_counts, "truncated", TRUE))

# ---- Tweedie -------------------------------------------------------------------------------------

tweedie_family <- function(link, power) {
  power <- check_number(power, "power")
  if (!(power > 1 && power < 2)) {
    abort_argument("power", sprintf("'power' must be above 1 and below 2, not %g", power))
  }
  stats <- if (inherits(link, "link-glm")) link else
    tryCatch(stats::make.link(link), error = function(e) NULL)
  if (is.null(stats)) abort_argument("link", "'link' must be the name of a link, such as \"log\"")
  p <- power
  structure(c(list(
    family = sprintf("Tweedie(%g)", p), link = stats$name), unclass(stats)[c("linkfun", "linkinv",
                                                                             "mu.eta", "valideta")],
    list(
      variance = function(mu) mu^p, power = p,
      dev.resids = function(y, mu, wt) {
        2 * wt * (y^(2 - p) / ((1 - p) * (2 - p)) - y * mu^(1 - p) / (1 - p) + mu^(2 - p) / (2 - p))
      },
      aic = function(y, n, mu, wt, dev) {
        -2 * sum(dtweedie_log(y, mu, dev / sum(wt) / wt, p)[wt > 0]) + 2
      },
      validmu = function(mu) all(mu > 0),
      initialize = expression({
        if (any(y < 0)) stop("negative values not allowed for the Tweedie family")
        n <- rep.int(1, nobs)
        mustart <- y + 0.1 * (y == 0)
      }))), class = "family")
}

# The log density of a sum of a Poisson number of gamma variables: the terms of its series that are
# within exp(-37) of the largest one.
dtweedie_log <- function(y, mu, phi, p) {
  a <- (2 - p) / (p - 1)
  value <- -mu^(2 - p) / (phi * (2 - p))
  at <- which(y > 0)
  if (length(at) == 0L) return(value)
  y <- y[at]
  phi <- rep_len(phi, length(mu))[at]
  log_z <- a * log(y) - a * log(p - 1) - (1 + a) * log(phi) - log(2 - p)
  top <- pmax(1, y^(2 - p) / (phi * (2 - p)))
  width <- ceiling(9 * sqrt(top / (1 + a))) + 10
  series <- vapply(seq_along(y), function(i) {
    j <- max(1, floor(top[i] - width[i])):ceiling(top[i] + width[i])
    term <- j * log_z[i] - lgamma(1 + j) - lgamma(j * a)
    most <- max(term)
    most + log(sum(exp(term - most)))
  }, 0)
  value[at] <- value[at] + y * mu[at]^(1 - p) / (phi * (1 - p)) - log(y) + series
  value
}

draw_tweedie <- function(mu, phi, p) {
  shape <- (2 - p) / (p - 1) * stats::rpois(length(mu), mu^(2 - p) / (phi * (2 - p)))
  ifelse(shape > 0, stats::rgamma(length(mu), pmax(shape, 1e-300)), 0) *
    phi * (p - 1) * mu^(p - 1)
}
