# Intervals of the coefficients from standard errors, profile likelihoods or draws.

#' Confidence intervals for the coefficients of generalised linear models
#'
#' @param object A fit of [cl_glm()].
#' @param parm Names or numbers of coefficients (and cuts); all by default.
#' @param level Confidence level.
#' @param method `"wald"`: from standard errors; for a fit with `method = "mcmc"`, quantiles of the
#'   draws. `"profile"`, for fits by maximum likelihood: all values of a coefficient that a
#'   likelihood ratio test does not reject at this level, with the likelihood maximised over all
#'   other parameters (including `phi` and cuts), as from `confint()` for fits of [glm()]. For
#'   families of R with an estimated dispersion, the difference of deviances is divided by it. For
#'   `normal_id` both are the same, because its likelihood is quadratic, and use Student's t
#'   distribution as for [lm()].
#' @param ... Must be empty.
#' @return A matrix with one row for each coefficient and columns for the lower and the upper limit.
#'   A limit is `NA` if the likelihood does not fall below the bound of the test in that direction.
#' @section Errors:
#' `statcl_error_argument` for unknown coefficients; for `"profile"` with other fits, and with fits
#' that do not keep the model frame.
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt, data = mtcars)
#' confint(fit)
#' confint(fit, method = "profile")
confint.cl_glm <- function(object, parm, level = 0.95, method = c("wald", "profile"), ...) {
  check_dots_empty(...)
  method <- check_choice(method, c("wald", "profile"), "method")
  level <- check_number(level, "level", 0, 1)
  estimate <- c(object$coefficients, tabled_aux(object))
  names <- names(estimate)
  wanted <- if (missing(parm)) names else parm
  right <- if (is.character(wanted)) wanted %in% names else wanted %in% seq_along(names)
  if (!all(right)) {
    abort_argument("parm", sprintf("there is no coefficient '%s'", wanted[!right][1L]))
  }
  tails <- c((1 - level) / 2, (1 + level) / 2)
  result <- matrix(NA_real_, length(names), 2L, dimnames = list(
    names, paste(format(100 * tails, trim = TRUE, digits = 3), "%")))
  known <- rownames(object$vcov)
  if (method == "profile") {
    if (!is.null(object$second)) {
      abort_argument("method", sprintf("family \"%s\" has no profile intervals", object$family))
    }
    if (object$method != "ml" || !is.null(object$second)) {
      abort_argument("method", "profile likelihoods need a fit with method = \"ml\"")
    }
    if (!is_least_squares(object$family)) {
      chosen <- intersect(if (is.character(wanted)) wanted else names[wanted], known)
      result[chosen, ] <- profile_intervals(object, chosen, stats::qnorm(tails[2L]))
      return(result[wanted, , drop = FALSE])
    }
  }
  if (!is.null(object$draws)) {
    draws <- as.matrix(object$draws)[, known, drop = FALSE]
    result[known, ] <- t(apply(draws, 2L, stats::quantile, tails, names = FALSE))
  } else {
    error <- coefficient_errors(object)
    result[known, ] <- estimate[known] + outer(error, wald_quantile(object, tails))
  }
  result[wanted, , drop = FALSE]
}

#' Profile likelihoods
#'
#' The profiles of [glm()], by its method, for the object of [cl_as_glm()]: `plot()`, `pairs()` and
#' `confint()` of the result work as for [glm()]. For intervals alone `confint(method = "profile")`
#' is more exact and faster.
#'
#' @param fitted A fit of [cl_glm()] that [cl_as_glm()] takes.
#' @param ... Passed on, such as `which` and `alpha`. Before R 4.4 the package MASS is needed.
#' @return An object of class `"profile.glm"`.
#' @section Errors:
#' `statcl_error_argument` for fits that [cl_as_glm()] refuses.
#' @export
#' @examples
#' \donttest{
#' if (requireNamespace("MASS")) confint(profile(cl_glm(am ~ wt, data = mtcars)))
#' }
profile.cl_glm <- function(fitted, ...) {
  fit <- cl_as_glm(fitted)
  if (getRversion() < "4.4") requireNamespace("MASS", quietly = TRUE) # has the method
  stats::profile(fit, ...)
}

# ---- profiles ------------------------------------------------------------------------------------

# A row for each of the coefficients and cuts `chosen`. `limit`: of the signed root of twice the
# difference of the log likelihoods.
profile_intervals <- function(object, chosen, limit) {
  response <- object[c("y", "trials", "levels", "kind")]
  response$weights <- object$prior.weights
  problem <- new_glm_problem(object$family, stats::model.matrix(object), response, object$offset,
                             object$intercept)
  if (!is.null(r_family(object$family))) {
    core <- list(family = object$family, problem = problem, dispersion = dispersion(object),
                 kept = which(!is.na(object$coefficients)))
    return(profile_ends(core, object, object$coefficients[core$kept], NULL,
                        -object$deviance / core$dispersion / 2, chosen, limit))
  }
  core <- glm_core(problem)
  free <- setdiff(seq_len(core$columns),
                  if (is_ordered(object$family)) object$intercept)
  core <- free_columns(core, free[!is.na(matrix(object$coefficients, length(free))[, 1L])])
  aux <- if (core$logged) log(object$aux) else object$aux
  theta <- c(object$coefficients[!is.na(object$coefficients)], aux)
  # an almost infinite phi is kept fixed
  held <- if (identical(core$aux, "phi") && is.na(object$aux_error)) aux_index(core)
  profile_ends(core, object, theta, held, glm_at(core, theta)$value, chosen, limit)
}

# The ends of the intervals of the coefficients `chosen`. `theta`: the estimates, of which those of
# `held` are fixed; `best`: the log likelihood there.
profile_ends <- function(core, object, theta, held, best, chosen, limit) {
  indices <- match(chosen, names(theta))
  v <- object$vcov # of the first elements of theta
  error <- sqrt(diag(v))[chosen]
  t(vapply(seq_along(indices), function(k) {
    # change of the others, by the quadratic approximation, when this one changes by a standard
    # error
    path <- numeric(length(theta))
    path[seq_len(nrow(v))] <- v[, chosen[k]] / error[[k]]
    ends <- vapply(c(-1, 1), function(side) {
      profile_end(core, theta, indices[k], held, best, path * side, limit)
    }, 0)
    theta[[indices[k]]] + ends
  }, numeric(2L)))
}

# The distance from theta[place] at which the root of the likelihood ratio reaches `limit`, in the
# direction of `path`, one standard error. NA if it is not reached within 1000 standard errors.
profile_end <- function(core, theta, place, held, best, path, limit) {
  last <- theta
  at <- 0
  error <- path[place]
  root <- function(length) {
    begin <- theta + length * (if (at > 0) (last - theta) / at else path)
    begin[place] <- theta[place] + length * error
    found <- profile_at(core, begin, c(place, held))
    if (is.null(found)) {
      found <- profile_at(core, replace(last, place, begin[place]), c(place, held))
    }
    if (is.null(found)) return(-limit)
    last <<- found$theta
    at <<- length
    sqrt(max(2 * (best - found$value), 0)) - limit
  }
  low <- 0
  below <- -limit
  high <- limit
  repeat {
    above <- root(high)
    if (above >= 0) break
    if (high > 1000) return(NA_real_)
    low <- high
    below <- above
    high <- high * 1.5
  }
  end <- stats::uniroot(root, c(low, high), f.lower = below, f.upper = above, tol = 1e-7 * high)
  end$root * error
}

# The largest log likelihood with the parameters `fixed` as they are in theta: list(value, theta);
# NULL if it cannot be computed.
profile_at <- function(core, theta, fixed) {
  if (!is.null(r_family(core$family))) return(r_profile_at(core, theta, fixed))
  free <- setdiff(seq_along(theta), fixed)
  now <- glm_objective(core, NULL, theta)
  if (!is.finite(now$value)) return(NULL)
  if (length(free) == 0L) return(list(value = now$objective, theta = theta))
  found <- newton_search(now, function(now, exact) {
    if (!exact) return(NULL)
    gradient <- now$gradient[free]
    info <- glm_information(core, now$theta)[free, free, drop = FALSE]
    by <- solve_information(info, gradient)
    list(by = by, decrement = sum(by * gradient), enough = 1e-14 * (1 + abs(now$value)))
  }, function(now, step, size) {
    glm_objective(core, NULL, replace(now$theta, free, now$theta[free] + size * step$by))
  }, 50L)
  if (is.null(found$step)) return(NULL)
  list(value = found$now$objective, theta = found$now$theta)
}
