# cl_optimise(), and what it shares with the approximations of R/sample-approximate.R: a model on
# the unconstrained scale, and the search for its maximum.

#' Mode of a log density
#'
#' Finds the parameters at which a log density is largest, with standard errors from the second
#' derivatives there: the maximum likelihood estimate, or the posterior mode.
#'
#' The search is the limited-memory BFGS method (Nocedal and Wright, 2006, *Numerical Optimization*,
#' chapter 7) on the unconstrained scale, followed by Newton steps. Second derivatives are
#' differences of gradients: two evaluations for each parameter.
#'
#' @param log_density,init,transform,check_gradient,data As for [cl_sample()], with one start.
#' @param jacobian Whether the Jacobian of the transforms is part of the density. `FALSE`: the mode
#'   of the density of the parameters themselves, which does not depend on the transforms. `TRUE`:
#'   the mode on the unconstrained scale, on which the sampler moves.
#' @param hessian Whether second derivatives are computed.
#' @param max_iter Maximum number of iterations.
#' @param object,x A result of `cl_optimise()`.
#' @param digits Number of significant digits.
#' @param rows Maximum number of parameters to print.
#' @param ... Not used.
#' @return A list of class `"cl_optimise"` with the elements
#'   * `coefficients`: the parameters at the mode, named as in [cl_sample()],
#'   * `par`: the same in the form of `init`,
#'   * `value`: the log density there,
#'   * `vcov`: the covariance matrix of the coefficients, from the inverse of the negative Hessian,
#'   * `unconstrained`, `gradient`, `hessian`: the point, and the derivatives with respect to it,
#'   * `converged`, `message`, `iterations`, `evaluations`, `failures` (the number of those at
#'     points that cannot be evaluated, which have density zero), `elapsed`, `bounds`, `transform`,
#'     `arguments`, `call`.
#'
#'   `summary()` gives a data frame with estimates, standard errors and normal 95% intervals. The
#'   methods of [coef()], [vcov()], [logLik()] and [confint()] have their usual meaning.
#'   [cl_sample()] and [cl_laplace()] accept the result as `init`.
#' @section Errors:
#' Those of [cl_sample()]. The warning `statcl_warning_convergence` if the search does not converge,
#' and `statcl_warning_hessian` if the Hessian is not negative definite; parameters on which the
#' density does not depend are named.
#' @seealso [cl_sample()], [cl_laplace()], [cl_objective()] for other optimisers
#' @export
#' @examples
#' f <- cl_gradient(function(mu, sigma) sum(dnorm(mtcars$mpg, mu, sigma, log = TRUE)))
#' fit <- cl_optimise(f, list(mu = 20, sigma = 5), transform = list(sigma = cl_lower(0)))
#' fit
#' confint(fit)
cl_optimise <- function(log_density, init, transform = NULL, jacobian = FALSE, hessian = TRUE,
                        max_iter = 1000, check_gradient = TRUE, data = NULL) {
  check_flag(jacobian, "jacobian")
  check_flag(hessian, "hessian")
  max_iter <- check_count(max_iter, "max_iter", 1)
  m <- open_model(log_density, init, transform, check_gradient = check_gradient, data = data,
                  jacobian = jacobian)
  m$call <- sys.call()
  at <- if (jacobian || !is.null(m$own)) m$at else without_jacobian(m)
  found <- find_mode(at, m$starts[[1L]], hessian, max_iter)
  if (!is.null(m$own)) m$layout$own <- m$own$parameters
  names <- drawn_layout(m$layout)$names
  x <- constrain_draws(m$layout, matrix(found$u))
  fit <- list(coefficients = stats::setNames(as.vector(x), names), value = found$value,
              unconstrained = found$u, gradient = found$g, hessian = found$hessian)
  if (hessian) {
    fit$vcov <- mode_covariance(m$layout, found)
    dimnames(fit$vcov) <- list(names, names)
    warn_curvature(m$layout, found)
  }
  if (!found$converged) statcl_warning("convergence", paste0("the search has not converged: ",
                                                              found$message))
  fit <- c(fit, found[c("converged", "message", "iterations")], model_figures(m))
  fit$par <- starts_of_fit(fit, 1L)[[1L]]
  structure(fit, class = "cl_optimise")
}

# ---- a model on the unconstrained scale ----------------------------------------------------------

# The density as cl_sample() opens it, with `paths` starts. m$at(u) gives list(value, gradient),
# where the value is -Inf and the gradient zero if the density cannot be computed; m$many(u) gives
# the same for points in columns, one below the other. jacobian = FALSE: without the Jacobian of a
# model's own parameters.
open_model <- function(log_density, init, transform, paths = 1L, jitter = 0, seed = NULL,
                       check_gradient = TRUE, data = NULL, jacobian = TRUE) {
  log_density <- density_with(log_density, data)
  check_function(log_density, "log_density")
  if (missing(init)) init <- own_start(log_density)
  own <- attr(log_density, "own", exact = TRUE)
  if (!jacobian && !is.null(own)) log_density <- structure(own$plain(), own = own)
  control <- sample_control(0, 1, "nuts", 0.8, 1, 1, "diag", 1, FALSE)
  control$nan <- "reject"
  job <- new_job(log_density, init, transform, paths, control, jitter, 1L)
  control$check_gradient <- check_flag(check_gradient, "check_gradient")
  evaluate <- make_evaluator(log_density, job$layout, "reject")
  m <- new.env(parent = emptyenv())
  m$layout <- job$layout
  m$own <- own
  m$density <- log_density
  m$started <- job$started
  m$evaluations <- m$failures <- 0
  s <- new_chain(job, 1L)
  program <- NULL
  run <- function(u) {
    both <- .Call(r_target_run, program, u)
    list(both[1L], both[-1L])
  }
  m$at <- function(u) {
    m$evaluations <- m$evaluations + 1
    s$at <- u
    answer <- if (is.null(program)) evaluate_once(s, evaluate) else
      tryCatch(run(u), error = function(e) if (is_failure(e)) list(NaN, NULL) else stop(e))
    if (is.null(answer[[2L]]) || !is.finite(answer[[1L]] + sum(answer[[2L]]))) {
      m$failures <- m$failures + (is.nan(answer[[1L]]) || isTRUE(answer[[1L]] > -Inf))
      return(list(-Inf, numeric(length(u))))
    }
    answer
  }
  m$many <- function(u) {
    if (is.null(program$program) || !is.null(program$likelihood) || program$where < 0L) {
      return(vapply(seq_len(ncol(u)), function(j) unlist(m$at(u[, j])), numeric(nrow(u) + 1L)))
    }
    m$evaluations <- m$evaluations + ncol(u)
    both <- run_padded(list(program = program$program, known = list(program)), u)
    failed <- !is.finite(colSums(both))
    m$failures <- m$failures + sum(failed & !(both[1L, ] %in% -Inf))
    both[, failed] <- c(-Inf, numeric(nrow(u)))
    both
  }
  start <- function(k) {
    for (i in seq_len(if (jitter > 0) 100L else 1L)) {
      u <- job$points[[k]]
      if (jitter > 0) u <- u + stats::runif(length(u), -jitter, jitter)
      if (is.finite(m$at(u)[[1L]])) return(u)
    }
    s$at <- u
    abort_no_start(s, if (jitter > 0) 100L else 1L)
  }
  m$starts <- lapply(seq_len(paths), start)
  u <- s$at <- m$starts[[1L]]
  if (control$check_gradient) check_start_gradient(s, evaluate, evaluate_once(s, evaluate))
  program <- job_program(job, u, evaluate_once(s, evaluate))
  m
}

# run_vectors() for any number of points with few programs: at most 64 at once, repeated up to a
# power of two.
run_padded <- function(state, u) {
  parts <- lapply(seq(1L, ncol(u), by = 64L), function(first) {
    some <- first:min(first + 63L, ncol(u))
    columns <- some[pmin(seq_len(2^ceiling(log2(length(some)))), length(some))]
    run_vectors(state, u[, columns, drop = FALSE])[, seq_along(some), drop = FALSE]
  })
  do.call(cbind, parts)
}

evaluations_text <- function(x) {
  sprintf("%.0f evaluations%s", x$evaluations,
          if (x$failures > 0) sprintf(", %.0f of which failed", x$failures) else "")
}

model_figures <- function(m) {
  list(evaluations = m$evaluations, failures = m$failures, elapsed = seconds_now() - m$started,
       arguments = drawn_layout(m$layout)$arguments, bounds = drawn_layout(m$layout)$bounds,
       transform = m$layout$transform, call = m$call, engine = density_note(m$density))
}

# The density without the Jacobian of the transforms.
without_jacobian <- function(m) {
  layout <- m$layout
  if (length(layout$blocks) == 0L) return(m$at)
  function(u) {
    answer <- m$at(u)
    x <- constrain(layout, u)
    if (is.null(x) || !is.finite(answer[[1L]])) return(answer)
    slope <- pull_back(layout, u, x, numeric(layout$n)) # of the Jacobian alone
    list(answer[[1L]] - attr(x, "jacobian"), answer[[2L]] - slope)
  }
}

# ---- the search ----------------------------------------------------------------------------------

# The path of L-BFGS to the maximum: a list of points, each list(u, value, g, and the estimate of
# the inverse Hessian: alpha, its diagonal before the updates by changes S of the point and Y of the
# negative gradient). The diagonal is that of Gilbert and Lemarechal (1989, Mathematical Programming
# 45). Unless all points are kept, the path is the last one. The attribute "iterations" counts them.
climb <- function(at, start, max_iter = 1000, history = 6L, keep = FALSE) {
  d <- length(start)
  here <- at(start)
  none <- matrix(0, d, 0L)
  p <- list(u = start, value = here[[1L]], g = here[[2L]], alpha = rep(1, d), S = none, Y = none)
  path <- list(p)
  small <- iterations <- 0L
  for (i in seq_len(max_iter)) {
    direction <- inverse_hessian(p, p$g)
    uphill <- sum(direction * p$g)
    if (!is.finite(uphill) || uphill <= 0) {
      if (ncol(p$S) == 0L) break
      p[c("alpha", "S", "Y")] <- list(rep(1, d), none, none)
      direction <- p$g
      uphill <- sum(p$g^2)
    }
    first <- if (ncol(p$S) == 0L) min(1, 1 / sqrt(sum(direction^2))) else 1
    step <- line_search(at, p, direction, uphill, first)
    if (is.null(step)) {
      if (ncol(p$S) == 0L) break
      p[c("alpha", "S", "Y")] <- list(rep(1, d), none, none)
      next
    }
    gain <- step$value - p$value
    p <- update_history(p, step, history)
    iterations <- iterations + 1L
    path[[if (keep) iterations + 1L else 1L]] <- p
    small <- if (gain <= 1e-12 * (1 + abs(p$value))) small + 1L else 0L
    if (small >= 3L || max(abs(p$g)) < 1e-10 * (1 + abs(p$value))) break
  }
  structure(path, iterations = iterations)
}

update_history <- function(p, step, history) {
  s <- step$u - p$u
  y <- p$g - step$g
  p[c("u", "value", "g")] <- step
  b <- sum(y * s)
  if (!(b > 1e-12 * sum(y^2))) return(p)
  a <- sum(p$alpha * y^2)
  width <- sum(s^2 / p$alpha)
  p$alpha <- 1 / (a / (b * p$alpha) + y^2 / b - a * s^2 / (b * width * p$alpha^2))
  keep <- utils::tail(seq_len(ncol(p$S) + 1L), history)
  p$S <- cbind(p$S, s, deparse.level = 0L)[, keep, drop = FALSE]
  p$Y <- cbind(p$Y, y, deparse.level = 0L)[, keep, drop = FALSE]
  p
}

# The inverse Hessian diag(alpha) + beta gamma beta' of a point of the path (Byrd, Nocedal and
# Schnabel, 1994, Mathematical Programming 63, theorem 2.2).
low_rank <- function(p) {
  e <- crossprod(p$S, p$Y)
  inner <- diag(diag(e), nrow(e)) + crossprod(p$Y, p$alpha * p$Y)
  e[lower.tri(e)] <- 0
  inverse <- base::backsolve(e, diag(nrow(e)))
  list(beta = cbind(p$alpha * p$Y, p$S),
       gamma = rbind(cbind(0 * inverse, -inverse),
                     cbind(-t(inverse), crossprod(inverse, inner %*% inverse))))
}

# The product of the inverse Hessian with a vector.
inverse_hessian <- function(p, v) {
  if (ncol(p$S) == 0L) return(p$alpha * v)
  r <- low_rank(p)
  p$alpha * v + as.vector(r$beta %*% (r$gamma %*% crossprod(r$beta, v)))
}

# A step that satisfies Wolfe's conditions, by bisection; NULL if there is none.
line_search <- function(at, p, direction, uphill, t) {
  low <- 0
  high <- Inf
  best <- NULL
  for (k in 1:40) {
    u <- p$u + t * direction
    answer <- at(u)
    if (!is.finite(answer[[1L]]) || answer[[1L]] < p$value + 1e-4 * t * uphill) {
      high <- t
    } else {
      best <- list(u = u, value = answer[[1L]], g = answer[[2L]])
      if (sum(answer[[2L]] * direction) <= 0.9 * uphill) break
      low <- t
    }
    t <- if (is.finite(high)) (low + high) / 2 else 2 * low
    if (!is.null(best) && k > 15L) break
  }
  best
}

# The maximum: list(u, value, g, hessian, converged, message, iterations).
find_mode <- function(at, start, hessian = TRUE, max_iter = 1000) {
  path <- climb(at, start, max_iter)
  p <- path[[1L]]
  found <- list(u = p$u, value = p$value, g = p$g, iterations = attr(path, "iterations"))
  if (hessian) {
    found$hessian <- gradient_differences(at, p$u)
    root <- tryCatch(chol.default(-found$hessian), error = function(e) NULL)
    for (k in seq_len(if (is.null(root)) 0L else 3L)) {
      u <- found$u + base::backsolve(root, base::backsolve(root, found$g, transpose = TRUE))
      answer <- at(u)
      if (!(max(abs(answer[[2L]])) < max(abs(found$g)) && is.finite(answer[[1L]]))) break
      found[c("u", "value", "g")] <- list(u, answer[[1L]], answer[[2L]])
    }
  }
  steep <- max(abs(found$g)) > 1e-4 * (1 + abs(found$value))
  found$converged <- found$iterations < max_iter && !steep
  found$message <- if (found$converged) "converged"
                   else if (found$iterations >= max_iter) "'max_iter' was reached"
                   else "the gradient is not zero at the last point"
  found
}

# Second derivatives as central differences of the gradient.
gradient_differences <- function(at, u) {
  h <- vapply(seq_along(u), function(i) {
    step <- .Machine$double.eps^(1 / 3) * max(1, abs(u[i]))
    up <- replace(u, i, u[i] + step)
    down <- replace(u, i, u[i] - step)
    (at(up)[[2L]] - at(down)[[2L]]) / (up[i] - down[i])
  }, u)
  h <- matrix(h, length(u))
  (h + t(h)) / 2
}

# The covariance matrix of the constrained parameters, by the derivatives of the transforms.
mode_covariance <- function(layout, found) {
  v <- safe_inverse(-found$hessian)
  if (length(layout$blocks) == 0L && is.null(layout$own)) return(v)
  step <- 1e-5 * pmax(1, abs(found$u))
  move <- diag(step, length(step))
  by_u <- (constrain_draws(layout, found$u + move) - constrain_draws(layout, found$u - move)) /
    rep(2 * step, each = length(drawn_layout(layout)$names))
  by_u %*% tcrossprod(v, by_u)
}

# The Hessian must be negative definite.
warn_curvature <- function(layout, found) {
  if (!is.null(chol_or_null(-found$hessian))) return(invisible())
  flat <- abs(found$g) + rowSums(abs(found$hessian)) == 0
  names <- utils::head(free_names(layout)[flat], 5L)
  statcl_warning("hessian", if (length(names) > 0L) {
    sprintf("the log density does not depend on %s: standard errors are NaN",
            paste0("'", names, "'", collapse = ", "))
  } else {
    "the Hessian is not negative definite: standard errors are NaN"
  })
}

# ---- methods -------------------------------------------------------------------------------------

#' @rdname cl_optimise
#' @export
print.cl_optimise <- function(x, digits = 4L, rows = 10L, ...) {
  cat(sprintf("log density %s at the mode (%s after %s, %s)\n", format(x$value, digits = 7L),
              x$message, count_of(x$iterations, "iteration"), evaluations_text(x)))
  table <- summary(x)
  print(utils::head(table, rows), digits = digits, row.names = FALSE)
  if (nrow(table) > rows) cat(sprintf("... and %d more parameters\n", nrow(table) - rows))
  cat(engine_line(x$engine))
  invisible(x)
}

#' @rdname cl_optimise
#' @export
summary.cl_optimise <- function(object, ...) {
  table <- data.frame(parameter = names(object$coefficients), estimate = object$coefficients,
                      row.names = NULL, stringsAsFactors = FALSE)
  if (is.null(object$vcov)) return(table)
  cbind(table, se = sqrt(diag(object$vcov)), stats::confint.default(object), row.names = NULL)
}

#' @export
coef.cl_optimise <- function(object, ...) object$coefficients

#' @rdname cl_optimise
#' @export
vcov.cl_optimise <- function(object, ...) {
  if (is.null(object$vcov)) abort_argument("object", "the fit has no Hessian: use hessian = TRUE")
  object$vcov
}

#' @export
logLik.cl_optimise <- function(object, ...) {
  structure(object$value, df = length(object$unconstrained), class = "logLik")
}
