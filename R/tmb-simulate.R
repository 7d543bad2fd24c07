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
#' @param object A result of [cl_tmb()].
#' @param nsim The number of simulations.
#' @param seed A seed, as in [simulate()]; `NULL`: random numbers go on from their current state.
#' @param par The parameters, as in `obj$par`; by default those with the lowest value so far.
#' @param obj A result of [cl_tmb()].
#' @param observation The name of observations marked with `OBS()`; by default the only ones.
#' @param method `"fullGaussian"` or `"cdf"`, see below.
#' @param discrete Whether the observations are counts, for the method `"cdf"`.
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
cl_one_step <- function(obj, observation = NULL, method = c("fullGaussian", "cdf"), par = NULL,
                        discrete = FALSE) {
  if (!inherits(obj, "cl_tmb")) {
    abort_argument("obj", sprintf("'obj' must be a value of cl_tmb(), not %s", describe(obj)))
  }
  method <- check_choice(method, c("fullGaussian", "cdf"), "method")
  check_flag(discrete, "discrete")
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
  steps <- if (method == "cdf") steps_by_distribution else steps_by_covariance
  steps(o, theta, observation, y, discrete)
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
  active <- split_slope(replace(o$start, o$fixed, theta), o$point$values)
  parameters <- tmb_parameters(o$layout, active)
  if (length(o$random) > 0L) {
    for (name in unique(o$names[o$random])) {
      parameters[[name]] <- notes$drawn[[name]] <- draw_of(parameters[[name]])
    }
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
  active <- split_slope(replace(o$last_z, o$fixed, theta), o$point$values)
  parameters <- tmb_parameters(o$layout, active)
  nll <- o$nll
  names <- names(more)
  .observe <- NULL # of the masks below
  f <- function(p) {
    .observe(p[names])
    nll(p[setdiff(names(p), names)])
  }
  fixed <- setdiff(names(parameters), o$names[o$random])
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
  tmb_object(f, c(parameters, more), kept, c(unique(o$names[o$random]), random), masks)
}

# Means and variances by the Cholesky factor of the covariance matrix of the observations.
steps_by_covariance <- function(o, theta, observation, y, discrete) {
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

steps_by_distribution <- function(o, theta, observation, y, discrete) {
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
