# Simulated data and one-step-ahead residuals of cl_tmb().

#' One-step-ahead residuals and simulated data
#'
#' What the objective of a [cl_tmb()] says about observations marked with `OBS()`: residuals of each
#' observation given those before it, and draws of them.
#'
#' @details
#' For a simulation the objective runs with numbers, and a density of an observation or of a random
#' effect draws it: `y %~% dnorm(mu, sd)` or `sum(dnorm(y, mu, sd, log = TRUE))`. A random effect
#' must be drawn before it is used. Those of a vector that depend on each other need a loop, or one
#' density of all.
#'
#' One-step-ahead residuals are independent standard normal variables if the model is right. The
#' method `"fullGaussian"` takes the observations and the random effects together for normal
#' variables, which is exact if they are. The method `"cdf"` computes the distribution function of
#' each observation given those before it by Laplace's approximation, from the distribution
#' functions of the densities, as two evaluations of the objective for each. It is for densities of
#' single observations. Residuals of counts are randomised.
#'
#' The method `"oneStepGeneric"` takes the density of each observation given those before it, by
#' Laplace's approximation, and integrates it over `range`, or adds it up over the counts there; it
#' needs no distribution functions, but many evaluations. `"oneStepGaussianOffMode"` takes that
#' density for a normal one, by its value and derivative at the observation.
#'
#' @param object A result of [cl_tmb()].
#' @param nsim The number of simulations.
#' @param seed A seed, as in [simulate()]; `NULL`: random numbers go on from their current state.
#' @param par The parameters, as in `obj$par`; by default those with the lowest value so far.
#' @param obj A result of [cl_tmb()].
#' @param observation The name of observations marked with `OBS()`; by default the only ones.
#' @param method `"fullGaussian"`, `"cdf"`, `"oneStepGeneric"` or `"oneStepGaussianOffMode"`, see
#'   below.
#' @param discrete Whether the observations are counts, for the methods `"cdf"` and
#'   `"oneStepGeneric"`.
#' @param range Two numbers between which observations are, for the method `"oneStepGeneric"`;
#'   `NULL`: all numbers, or those from 0 on if `discrete`.
#' @param ... Must be empty.
#' @return `simulate()`: for `nsim = 1` a list of the observations and random effects drawn, by
#'   name, and what is given to `REPORT()`; else a list of such lists. `cl_one_step()`: a data frame
#'   with a row for each observation and the columns `observation` and `residual`, and of the method
#'   `"fullGaussian"` the expectation of the observation given those before it, `mean`, and its
#'   standard deviation, `sd`.
#' @section Errors:
#' `statcl_error_argument` for arguments that do not fit, and if a value is used before it is drawn.
#' @seealso [cl_tmb()]
#' @export
#' @examples
#' y <- cumsum(cos(1:20))
#' f <- function(p) {
#'   getAll(p)
#'   y <- OBS(y)
#'   u[1] %~% dnorm(0, 5)
#'   for (i in 2:20) u[i] %~% dnorm(u[i - 1], exp(log_sd[1]))
#'   y %~% dnorm(u, exp(log_sd[2]))
#' }
#' obj <- cl_tmb(f, list(log_sd = c(0, 0), u = numeric(20)), random = "u")
#' opt <- nlminb(obj$par, obj$fn, obj$gr)
#' simulate(obj, seed = 1)$y
#' head(cl_one_step(obj))
cl_one_step <- function(obj, observation = NULL, method = c("fullGaussian", "cdf",
                        "oneStepGeneric", "oneStepGaussianOffMode"), par = NULL,
                        discrete = FALSE, range = NULL) {
  if (!inherits(obj, "cl_tmb")) {
    abort_argument("obj", sprintf("'obj' must be a value of cl_tmb(), not %s", describe(obj)))
  }
  methods <- list(fullGaussian = steps_by_covariance, cdf = steps_by_distribution,
                  oneStepGeneric = steps_by_integral, oneStepGaussianOffMode = steps_by_slope)
  method <- check_choice(method, names(methods), "method")
  check_flag(discrete, "discrete")
  if (is.null(range)) range <- c(if (discrete) 0 else -Inf, Inf)
  if (!is.numeric(range) || length(range) != 2L || !isTRUE(range[1L] < range[2L])) {
    abort_argument("range", sprintf("'range' must be two numbers, the smaller first, not %s",
                                    describe(range)))
  }
  o <- environment(obj$fn)$o
  theta <- if (is.null(par)) as.double(o$best_par) else check_tmb_point(o, par, "par")
  known <- o$notes$observed
  if (o$layout$vector || length(known) == 0L) {
    abort_argument("obj", "'obj' must have a list of parameters and observations marked by OBS()")
  }
  if (is.null(observation) && length(known) == 1L) observation <- names(known)
  if (!is.character(observation) || !all(observation %in% names(known)) ||
        length(observation) != 1L) {
    abort_argument("observation", sprintf("'observation' must be one of %s",
                                          paste0("'", names(known), "'", collapse = ", ")))
  }
  y <- known[[observation]]
  if (any(y < range[1L] | y > range[2L], na.rm = TRUE)) {
    abort_argument("range", "some observations are outside 'range'")
  }
  methods[[method]](o, theta, observation, y, discrete, range)
}

#' @rdname cl_one_step
#' @export
simulate.cl_tmb <- function(object, nsim = 1, seed = NULL, par = NULL, ...) {
  nsim <- check_count(nsim, "nsim")
  o <- environment(object$fn)$o
  theta <- if (is.null(par)) as.double(o$best_par) else check_tmb_point(o, par, "par")
  draws <- with_seed(seed, lapply(seq_len(nsim), function(k) tmb_draw(o, theta)))
  if (nsim == 1L) draws[[1L]] else draws
}

tmb_draw <- function(o, theta) {
  notes <- o$notes
  notes$drawn <- list()
  on.exit(notes$drawn <- NULL)
  z <- if (length(o$profiled) > 0L) require_mode(o, theta, "par")$z else
    replace(o$start, o$fixed, theta)
  parameters <- tmb_parameters(o$layout, split_slope(z, o$point$values))
  for (name in integrated(o)) {
    parameters[[name]] <- notes$drawn[[name]] <- draw_of(parameters[[name]])
  }
  masks <- tmb_masks(notes)
  masks <- c(masks[setdiff(names(masks), c(names(marked_draws()), names(marked_rows)))],
             marked_masks(masks))
  notes$report <- list()
  looking_up(o$nll, more = masks)(parameters)
  lapply(c(notes$drawn, notes$report), function(x) if (is_draw(x)) drawn(x) else x)
}

# An objective with further parameters and the others as they are, in which OBS() gives
# mark(observations, further parameters).
marked_objective <- function(o, theta, observation, more, mark, random) {
  z <- if (length(o$profiled) > 0L) require_mode(o, theta, "par")$z else
    replace(o$last_z, o$fixed, theta)
  parameters <- tmb_parameters(o$layout, split_slope(z, o$point$values))
  nll <- o$nll
  names <- names(more)
  .observe <- NULL # of the masks below
  f <- function(p) {
    .observe(p[names])
    nll(p[setdiff(names(p), names)])
  }
  fixed <- setdiff(names(parameters), integrated(o))
  kept <- lapply(parameters[fixed], function(x) factor(rep(NA, length(x))))
  masks <- function(notes) {
    mine <- tmb_masks(notes)
    mine$.observe <- function(values) assign("marks", values, envir = notes)
    mine$OBS <- function(x) {
      if (deparse1(substitute(x)) == observation) mark(x, notes$marks) else x
    }
    c(mine[setdiff(names(mine), c(names(marked_draws()), names(marked_rows)))],
      marked_masks(mine))
  }
  tmb_object(f, c(parameters, more), kept, c(integrated(o), random), masks)
}

# Means and variances by the Cholesky factor of the covariance matrix of the observations.
steps_by_covariance <- function(o, theta, observation, y, ...) {
  place <- function(x, marks) {
    value <- marks$.y
    if (!is.null(dim(x))) dim(value) <- dim(x)
    value
  }
  obj <- marked_objective(o, theta, observation, list(.y = as.double(y)), place, ".y")
  inner <- environment(obj$fn)$o
  mode <- require_mode(inner, numeric(), "par")
  at <- which(inner$names[inner$random] == ".y")
  unit <- matrix(0, length(inner$random), length(at))
  unit[cbind(at, seq_along(at))] <- 1
  covariance <- effects_solve(inner, mode$step$factor, unit)[at, , drop = FALSE]
  lower <- t(chol((covariance + t(covariance)) / 2))
  mean <- mode$z[inner$random][at]
  residual <- forwardsolve(lower, as.double(y) - mean)
  sd <- diag(lower)
  data.frame(observation = as.double(y), mean = as.double(y) - sd * residual, sd = sd,
             residual = residual)
}

steps_by_distribution <- function(o, theta, observation, y, discrete, range) {
  n <- length(y)
  mark <- function(x, marks) new_weighted(x, marks$.keep, marks$.low, marks$.high)
  none <- numeric(n)
  obj <- marked_objective(o, theta, observation, list(.keep = none + 1, .low = none, .high = none),
                          mark, character())
  value <- function(keep, low, high) obj$fn(c(keep, low, high))
  one <- function(k) {
    before <- as.numeric(seq_len(n) < k)
    at <- as.numeric(seq_len(n) == k)
    low <- value(before, at, none)
    high <- value(before, none, at)
    below <- 1 / (1 + exp(low - high))
    if (!discrete) return(below)
    here <- value(before + at, none, none)
    below - stats::runif(1) / (exp(here - low) + exp(here - high))
  }
  data.frame(observation = as.double(y), residual = stats::qnorm(vapply(seq_len(n), one, 0)))
}

# Minus the log density of the first k observations, of which the last is x: list(value(k, x),
# slope(k, x): its derivative by x; bend(k): the second one at the observation).
stepwise <- function(o, theta, observation, y) {
  n <- length(y)
  mark <- function(x, marks) {
    value <- marks$.y
    if (!is.null(dim(x))) dim(value) <- dim(x)
    new_weighted(value, marks$.keep, NULL, NULL)
  }
  obj <- marked_objective(o, theta, observation, list(.keep = rep(1, n), .y = as.double(y)), mark,
                          character())
  at <- function(k, x) c(as.numeric(seq_len(n) <= k), replace(as.double(y), k, x))
  slope <- function(k, x) obj$gr(at(k, x))[n + k]
  list(value = function(k, x) obj$fn(at(k, x)), slope = slope, bend = function(k) {
    slope_by_differences(function(d) slope(k, y[k] + d), 1e-4 * max(1, abs(y[k])))
  })
}

# With the residual r and the standard deviation s, minus the log density is log(2 pi) / 2 + log(s)
# + r^2 / 2, and its derivative r / s, so that w = r^2 solves w + log(w) = a known number.
steps_by_slope <- function(o, theta, observation, y, ...) {
  steps <- stepwise(o, theta, observation, y)
  n <- length(y)
  value <- c(steps$value(0, y[1L]), vapply(seq_len(n), function(k) steps$value(k, y[k]), 0))
  slope <- vapply(seq_len(n), function(k) steps$slope(k, y[k]), 0)
  t <- 2 * (diff(value) - log_sqrt_2pi + log(abs(slope)))
  v <- pmin(t, log(pmax(t, 1))) # log(w)
  for (i in 1:50) v <- v - (exp(v) + v - t) / (exp(v) + 1)
  residual <- ifelse(slope == 0, 0, sign(slope) * exp(v / 2))
  sd <- ifelse(slope == 0, exp(diff(value) - log_sqrt_2pi), residual / slope)
  data.frame(observation = as.double(y), mean = as.double(y) - sd * residual, sd = sd,
             residual = residual)
}

steps_by_integral <- function(o, theta, observation, y, discrete, range) {
  steps <- stepwise(o, theta, observation, y)
  density <- function(k) {
    here <- steps$value(k, y[k])
    function(x) vapply(x, function(x) {
      value <- exp(here - steps$value(k, x))
      if (is.finite(value)) value else 0
    }, 0)
  }
  one <- function(k) {
    f <- density(k)
    if (discrete) {
      below <- sum_counts(f, y[k] - 1, range[1L], -1)
      above <- sum_counts(f, y[k] + 1, range[2L], 1)
      return((below + stats::runif(1)) / (below + 1 + above))
    }
    bend <- steps$bend(k)
    scale <- if (isTRUE(bend > 0)) 1 / sqrt(bend) else 1
    side <- function(end) {
      end <- (end - y[k]) / scale
      if (end == 0) return(0)
      part <- function(t) f(y[k] + scale * t)
      stats::integrate(part, min(0, end), max(0, end), rel.tol = 1e-7, subdivisions = 1000L)$value
    }
    below <- side(range[1L])
    below / (below + side(range[2L]))
  }
  data.frame(observation = as.double(y), residual = stats::qnorm(vapply(seq_along(y), one, 0)))
}

# The sum of f over the counts from, from + way, ..., to, which may be infinite, until its terms are
# small and decrease.
sum_counts <- function(f, from, to, way) {
  sum <- 0
  last <- Inf
  x <- from
  while ((to - x) * way >= 0) {
    term <- f(x)
    sum <- sum + term
    if (term < last && term < 1e-12 * (1 + sum)) break
    last <- term
    x <- x + way
  }
  sum
}
