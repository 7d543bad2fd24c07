# Laplace's approximation, which integrates out the random effects u. With the mode u(theta) of the
# joint negative log likelihood f, and its Hessian H there,
#   L(theta) = f(theta, u) + log(det(H)) / 2 - q log(2 pi) / 2.

# The compiled program of the objective, compiled again if shapes or the process have changed.
tmb_ready <- function(o) {
  state <- environment(o$log_density)
  prepare_point(state, o$point)
  state
}

# The joint negative log likelihood at z, all active parameters; with its gradient on request.
tmb_run <- function(o, z, gradient) {
  state <- tmb_ready(o)
  if (is.null(state$program)) return(-c(state$constant, if (gradient) numeric(length(z))))
  -.Call(r_program_run, state$program, z, gradient)
}

tmb_slope <- function(o, z) tmb_run(o, z, TRUE)[-1L]

# The program of second derivatives, or of third ones; NULL for an operation that has none.
tmb_derivatives <- function(o, order) {
  if (is.null(tmb_ready(o)$program)) return(NULL)
  name <- c("second", "third")[order - 1L]
  if (is.null(o[[name]])) {
    o[[name]] <- environment(cl_hessian(o$log_density))
    o[[name]]$order <- order
  }
  if (order %in% o$differences) return(NULL)
  tryCatch(second_program(o[[name]], length(o$start)), statcl_error_argument = function(e) {
    o$differences <- c(o$differences, order)
    NULL
  })
}

# Columns `by` of the Hessian of the joint negative log likelihood, rows `rows`.
tmb_hessian <- function(o, z, by = seq_along(z), rows = seq_along(z)) {
  state <- tmb_ready(o)
  if (is.null(state$program)) return(matrix(0, length(rows), length(by)))
  program <- tmb_derivatives(o, 2L)
  if (is.null(program)) return(difference_hessian(o, z, by, rows))
  if (length(by) == length(z)) {
    h <- -.Call(r_program_hessian, program, z)
    dim(h) <- rep(length(z), 2L)
    return(((h + t(h)) / 2)[rows, by, drop = FALSE])
  }
  h <- vapply(by, function(k) {
    -.Call(r_program_product, program, z, replace(numeric(length(z)), k, 1))[rows]
  }, numeric(length(rows)))
  dim(h) <- c(length(rows), length(by))
  h
}

# These columns by differences of the gradient.
difference_hessian <- function(o, z, by, rows) {
  result <- matrix(0, length(rows), length(by))
  for (k in seq_along(by)) {
    h <- .Machine$double.eps^(1 / 3) * max(1, abs(z[by[k]]))
    up <- down <- z
    up[by[k]] <- z[by[k]] + h
    down[by[k]] <- z[by[k]] - h
    difference <- tmb_slope(o, up)[rows] - tmb_slope(o, down)[rows]
    result[, k] <- difference / (up[by[k]] - down[by[k]])
  }
  if (identical(by, rows)) (result + t(result)) / 2 else result
}

# The mode of the random effects given theta: list(z, value, slope, step), where step$factor is the
# factor of H (R/laplace-sparse.R); NULL if there is no mode.
tmb_mode <- function(o, theta) {
  now <- tmb_ready(o)$known[[1L]]
  key <- list(theta, now$nodes, now$data)
  if (identical(o$mode_of, key)) return(o$mode)
  found <- tmb_newton(o, theta)
  if (!is.null(found)) {
    o$inner <- found$z[o$random]
    o$mode <- found
    o$mode_of <- key
  }
  found
}

# The same, or an error that names the argument, and the random effect at which the Hessian is found
# to be indefinite.
require_mode <- function(o, theta, argument) {
  mode <- tmb_mode(o, theta)
  if (!is.null(mode)) return(mode)
  text <- sprintf("the random effects have no mode at '%s'", argument)
  at <- o$indefinite
  if (is.null(at) || at == 0) abort_argument(argument, text)
  statcl_abort("not_pd", sprintf("%s: their Hessian is not positive definite at '%s'", text,
                                 effect_name(o, o$random[at])), order = at, argument = argument)
}

effect_name <- function(o, k) {
  name <- o$names[k]
  all <- which(o$names == name)
  if (length(all) == 1L) name else sprintf("%s[%d]", name, match(k, all))
}

tmb_newton <- function(o, theta) {
  u <- o$random
  z <- replace(o$start, o$fixed, theta)
  at <- function(z) {
    now <- tmb_run(o, z, TRUE)
    list(z = z, value = if (is.finite(sum(now))) now[1L] else Inf, slope = now[-1L])
  }
  starts <- lapply(list(o$inner, z[u]), function(v) function() at(replace(z, u, v)))
  factor <- NULL # damped where H is not positive definite
  newton_mode(starts, function(now, exact) {
    if (exact) factor <<- effects_factor(o, now$z)
    if (is.null(factor) || exact && attr(factor, "damped")) return(NULL)
    by <- effects_solve(o, factor, now$slope[u])
    list(factor = factor, by = by, decrement = sum(by * now$slope[u]))
  }, function(now, step, size) at(replace(now$z, u, now$z[u] - size * step$by)))
}

laplace_value <- function(o, theta) {
  mode <- tmb_mode(o, theta)
  if (is.null(mode)) return(NaN)
  o$last_z <- mode$z
  free <- length(o$random) - length(o$profiled) - NCOL(o$held) * !is.null(o$held)
  mode$value + 0.5 * (effects_log_det(o, mode$step$factor) - free * log(2 * pi))
}

# The gradient with respect to theta. With W = H^-1 = sum(w_k w_k'), the gradient of log(det(H)) is
# the sum over k of the third derivatives f[w_k, w_k, .] along theta and the change of the mode,
# -H^-1 f[u, theta].
laplace_slope <- function(o, theta) {
  mode <- tmb_mode(o, theta)
  if (is.null(mode)) return(rep(NaN, length(theta)))
  third <- effects_third(o, mode)
  bad <- which(!is.finite(third))
  if (length(bad) > 0L) {
    text <- sprintf(paste("the third derivatives of 'nll' at the mode of the random effects are",
                          "not finite at '%s': use functions that are smooth there"),
                    effect_name(o, bad[1L]))
    statcl_abort("nonfinite", text, index = bad[1L], argument = "nll")
  }
  a <- effects_solve(o, mode$step$factor, third[o$random])
  third <- third[o$fixed]
  if (any(a != 0)) third <- third - along_mode(o, mode, a)
  mode$slope[o$fixed] + 0.5 * third
}

# Third derivatives couple no two blocks, so the sum over k equals that over directions which
# combine a w_k of each block. The columns of `less` count negatively.
third_derivatives <- function(o, mode, less = NULL) {
  b <- tmb_blocks(o)
  w <- block_inverse(mode$step$factor)
  program <- tmb_derivatives(o, 3L)
  sum <- numeric(length(mode$z))
  bent <- function(direction) {
    along <- if (!is.null(program)) -.Call(r_program_product, program, mode$z, direction)
    if (!is.null(along) && all(is.finite(along))) along else
      third_by_differences(o, mode, direction)
  }
  for (k in seq_len(b$most)) {
    direction <- block_direction(o, k, Map(function(at, w) {
      if (nrow(at) >= k) list(at = at, x = w[, k, ])
    }, b$of, w))
    sum <- sum + bent(direction)
  }
  for (k in seq_len(NCOL(less) * !is.null(less))) {
    sum <- sum - bent(replace(numeric(length(mode$z)), o$random, less[, k]))
  }
  sum
}

# The steps are fractions of the standard deviations of the random effects given theta, on whose
# scale f varies: formulas of fourth order are then accurate to about 1e-9.
third_by_differences <- function(o, mode, direction) {
  h <- 0.01
  at <- function(step) tmb_slope(o, mode$z + step * direction)
  near <- at(h) + at(-h)
  far <- at(2 * h) + at(-2 * h)
  (16 * near - far - 30 * mode$slope) / (12 * h^2)
}

# f[theta, u] a, for a direction of the random effects.
along_mode <- function(o, mode, a) {
  direction <- replace(numeric(length(mode$z)), o$random, a)
  s <- tmb_sparse(o)
  program <- if (is.null(s)) tmb_derivatives(o, 2L)
  along <- if (!is.null(s)) -.Call(r_sparse_along, s$program, mode$z, direction)[o$fixed]
  if (!is.null(program)) along <- -.Call(r_program_product, program, mode$z, direction)[o$fixed]
  if (!is.null(along) && all(is.finite(along))) return(along)
  h <- 0.01 * min(sqrt(1 / effects_variances(o, mode$step$factor))) / max(abs(a))
  slope_by_differences(function(step) tmb_slope(o, mode$z + step * direction)[o$fixed], h)
}

# The Hessian of L by differences of its gradient.
laplace_hessian <- function(o, theta) {
  n <- length(theta)
  result <- matrix(0, n, n)
  for (k in seq_len(n)) {
    h <- 1e-4 * max(1, abs(theta[k]))
    result[, k] <- slope_by_differences(function(step) {
      laplace_slope(o, replace(theta, k, theta[k] + step))
    }, h)
  }
  (result + t(result)) / 2
}
