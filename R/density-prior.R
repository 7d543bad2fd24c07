# Priors of a Gaussian process's parameters: functions of a positive number, with gradients.

#' Priors for positive parameters
#'
#' Log densities, including all constants, of positive parameters, for the argument `prior` of
#' [cl_gp()] and [cl_glm()]. Densities on the whole line are truncated at zero and normalised again.
#' For the coefficients and cuts of [cl_glm()], which may be negative, they are not truncated.
#'
#' | constructor | log density at x > 0, up to a constant |
#' |---|---|
#' | `prior_normal(mean, sd)` | -(x - mean)^2 / (2 sd^2) |
#' | `prior_student_t(df, location, scale)` | that of (x - location) / scale by `dt()` |
#' | `prior_lognormal(meanlog, sdlog)` | -log x - (log x - meanlog)^2 / (2 sdlog^2) |
#' | `prior_gamma(shape, rate)` | (shape - 1) log x - rate x |
#' | `prior_inv_gamma(shape, scale)` | -(shape + 1) log x - scale / x |
#'
#' With `mean = 0` the truncated normal prior is half-normal. The inverse gamma prior keeps a
#' lengthscale away from zero: `prior_inv_gamma(tails = c(a, b))` has 1% of its mass below a and 1%
#' above b.
#'
#' @param mean,sd,df,location,scale,meanlog,sdlog,shape,rate As for the distributions of R; `scale`
#'   of the inverse gamma is the rate of 1 / x.
#' @param tails Two numbers, see above; an alternative to `shape` and `scale`.
#' @return A function of class `"cl_prior"`: `f(x)` returns the log densities at the elements of x,
#'   with their derivatives as attribute `"gradient"`.
#' @section Errors:
#' `statcl_error_argument` for parameters outside their range.
#' @seealso [cl_gp()], [cl_glm()]
#' @name priors
#' @examples
#' prior_inv_gamma(tails = c(0.5, 10))
#' prior <- prior_normal(0, 2)
#' prior(c(0.1, 1))
#' fit <- cl_gp(dist ~ speed, data = cars, method = "map",
#'              prior = list(lengthscale = prior_inv_gamma(tails = c(2, 40)), noise = prior))
#' coef(fit)
NULL

#' @rdname priors
#' @export
prior_normal <- function(mean = 0, sd = 1) {
  mean <- check_number(mean, "mean")
  sd <- check_positive(sd, "sd")
  constant <- -log(sd) - 0.5 * log(2 * pi) - stats::pnorm(mean / sd, log.p = TRUE)
  density <- function(constant) function(x) {
    z <- (x - mean) / sd
    if (is_traced(x)) return(constant - 0.5 * square(z))
    structure(constant - z^2 / 2, gradient = -z / sd)
  }
  label <- sprintf("normal(%g, %g)", mean, sd)
  new_prior(paste0(label, ", positive"), density(constant),
            new_prior(label, density(-log(sd) - 0.5 * log(2 * pi))))
}

#' @rdname priors
#' @export
prior_student_t <- function(df = 4, location = 0, scale = 1) {
  df <- check_positive(df, "df")
  location <- check_number(location, "location")
  scale <- check_positive(scale, "scale")
  constant <- -log(scale) - stats::pt(location / scale, df, log.p = TRUE)
  density <- function(constant) function(x) {
    z <- (x - location) / scale
    if (is_traced(x)) return(constant + dt_formula(z, df, log = TRUE))
    structure(constant + stats::dt(z, df, log = TRUE),
              gradient = -(df + 1) * z / (df + z^2) / scale)
  }
  label <- sprintf("student_t(%g, %g, %g)", df, location, scale)
  new_prior(paste0(label, ", positive"), density(constant), new_prior(label, density(-log(scale))))
}

#' @rdname priors
#' @export
prior_lognormal <- function(meanlog = 0, sdlog = 1) {
  meanlog <- check_number(meanlog, "meanlog")
  sdlog <- check_positive(sdlog, "sdlog")
  new_prior(sprintf("lognormal(%g, %g)", meanlog, sdlog), function(x) {
    if (is_traced(x)) return(dlnorm_formula(x, meanlog, sdlog, log = TRUE))
    z <- (log(x) - meanlog) / sdlog
    structure(stats::dlnorm(x, meanlog, sdlog, log = TRUE), gradient = -(1 + z / sdlog) / x)
  })
}

#' @rdname priors
#' @export
prior_gamma <- function(shape = 2, rate = 1) {
  shape <- check_positive(shape, "shape")
  rate <- check_positive(rate, "rate")
  new_prior(sprintf("gamma(%g, %g)", shape, rate), function(x) {
    if (is_traced(x)) return(dgamma_formula(x, shape, rate, log = TRUE))
    structure(stats::dgamma(x, shape, rate, log = TRUE), gradient = (shape - 1) / x - rate)
  })
}

#' @rdname priors
#' @export
prior_inv_gamma <- function(shape = 5, scale = 5, tails = NULL) {
  if (!is.null(tails)) {
    found <- inv_gamma_tails(tails)
    shape <- found[[1L]]
    scale <- found[[2L]]
  }
  shape <- check_positive(shape, "shape")
  scale <- check_positive(scale, "scale")
  new_prior(sprintf("inv_gamma(%g, %g)", shape, scale), function(x) {
    if (is_traced(x)) return(dgamma_formula(1 / x, shape, scale, log = TRUE) - 2 * log(x))
    structure(stats::dgamma(1 / x, shape, scale, log = TRUE) - 2 * log(x),
              gradient = -(shape + 1) / x + scale / x^2)
  })
}

# Shape and scale of the inverse gamma with 1% of its mass below tails[1], and above tails[2]: the
# ratio of its quantiles falls with the shape.
inv_gamma_tails <- function(tails) {
  right <- is.numeric(tails) && length(tails) == 2L && all(is.finite(tails)) && tails[1L] > 0 &&
    tails[2L] > tails[1L]
  if (!right) abort_argument("tails", "'tails' must be two positive numbers in increasing order")
  excess <- function(log_shape) {
    q <- log(stats::qgamma(c(0.01, 0.99), exp(log_shape)))
    diff(q) - log(tails[2L] / tails[1L])
  }
  shape <- exp(stats::uniroot(excess, c(-3, 18), tol = 1e-10)$root)
  c(shape, tails[1L] * stats::qgamma(0.99, shape))
}

# exp(-scale / x), and 1 / (1 + z^2) with z = log(x / center) / width: penalties, not densities.
prior_penalty <- function(scale) {
  scale <- signif(scale, 3)
  new_prior(sprintf("exp(-%g / x)", scale), function(x) {
    structure(-scale / x, gradient = scale / x^2)
  })
}

prior_log_cauchy <- function(center, width) {
  center <- signif(center, 3)
  new_prior(sprintf("1 / (1 + (log(x / %g) / %g)^2)", center, width), function(x) {
    z <- log(x / center) / width
    structure(-log1p(z^2), gradient = -2 * z / (1 + z^2) / (width * x))
  })
}

# `whole`: the prior of the same kind for a parameter that can be negative, if there is one.
new_prior <- function(label, f, whole = NULL) {
  structure(f, label = label, whole = whole, class = c("cl_prior", "function"))
}

#' @export
print.cl_prior <- function(x, ...) {
  cat("<cl_prior> ", attr(x, "label"), "\n", sep = "")
  invisible(x)
}

# ---- the priors of a fit -------------------------------------------------------------------------

parameter_kind <- function(names) {
  names <- sub("^(sd|lengthscale)[0-9]*[.].+$", "\\1", names)
  sub("[0-9]*(\\.[0-9]+)?$", "", names)
}

check_prior <- function(f, name) {
  if (is.function(f)) return(f)
  abort_argument("prior", sprintf(
    "the prior of '%s' must be a function such as prior_gamma(), not %s", name, describe(f)))
}

# c(log density, derivative); by differences if the function returns no derivative.
prior_at <- function(f, x, name) {
  value <- f(x)
  if (!is.numeric(value) || length(value) != 1L || is.na(value)) {
    abort_argument("prior", sprintf(paste("the prior of '%s' must return one number, which it does",
                                          "not at %g"), name, x))
  }
  gradient <- attr(value, "gradient", exact = TRUE)
  if (is.null(gradient) && is.finite(value)) {
    h <- 1e-3 * if (x == 0) 1 else abs(x)
    gradient <- slope_by_differences(function(by) as.vector(f(x + by)), h)
  }
  c(as.vector(value), if (is.finite(value)) as.vector(gradient) else 0)
}

print_prior_texts <- function(text) {
  if (length(text) == 0L) return(invisible())
  cat("\nPriors:\n")
  cat(sprintf("  %s  %s\n", formatC(names(text), width = -max(nchar(names(text)))), text),
      sep = "")
}
