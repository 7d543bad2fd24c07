# Laplace's approximation for cl_tmb(), which integrates out the random effects u. With the mode
# u(theta) of the joint negative log likelihood f, and its Hessian H there,
#   L(theta) = f(theta, u) + log(det(H)) / 2 - q log(2 pi) / 2.

most_random <- 4000L

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

# Columns `by` of the Hessian of the joint negative log likelihood, rows `rows`.
tmb_hessian <- function(o, z, by = seq_along(z), rows = seq_along(z)) {
  state <- tmb_ready(o)
  if (is.null(state$program)) return(matrix(0, length(rows), length(by)))
  if (is.null(o$second)) o$second <- environment(cl_hessian(o$log_density))
  # An operation has no second derivatives: by differences.
  program <- if (!isTRUE(o$differences)) {
    tryCatch(second_program(o$second, length(z)), statcl_error_argument = function(e) NULL)
  }
  if (is.null(program)) {
    o$differences <- TRUE
    return(difference_hessian(o, z, by, rows))
  }
  if (length(by) == length(z)) {
    h <- -.Call(r_program_hessian, program, z)
    dim(h) <- rep(length(z), 2L)
    return(((h + t(h)) / 2)[rows, by, drop = FALSE])
  }
  h <- vapply(by, function(k) {
    -.Call(r_program_product, program, z, replace(numeric(length(z)), k, 1))[rows]
  }, numeric(length(rows)))
  dim(h) <- c(length(rows), length(by))
  if (identical(by, rows)) (h + t(h)) / 2 else h
}

# The same by differences of the gradient.
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

# The mode of the random effects given theta, by Newton's method: list(z, value, slope, factor),
# with the upper Cholesky factor of H; NULL if there is no mode.
tmb_mode <- function(o, theta) {
  for (start in list(o$inner, o$start[o$random])) {
    z <- o$start
    z[o$fixed] <- theta
    z[o$random] <- start
    found <- tmb_newton(o, z)
    if (!is.null(found)) {
      o$inner <- found$z[o$random]
      return(found)
    }
  }
  NULL
}

tmb_newton <- function(o, z) {
  u <- o$random
  now <- tmb_run(o, z, TRUE)
  if (!is.finite(sum(now))) return(NULL)
  before <- Inf
  for (iteration in 1:200) {
    factor <- damped_factor(tmb_hessian(o, z, u, u))
    if (is.null(factor)) return(NULL)
    slope <- now[-1L][u]
    half <- backsolve(factor, slope, transpose = TRUE)
    decrement <- sum(half^2)
    # Convergence is quadratic until only rounding errors of the slope remain.
    done <- decrement < 1e-24 || decrement < 1e-12 && decrement > 0.25 * before
    if (done && !isTRUE(attr(factor, "damped"))) {
      return(list(z = z, value = now[1L], slope = now[-1L], factor = factor))
    }
    before <- decrement
    moved <- tmb_step(o, z, now, backsolve(factor, half), decrement)
    if (is.null(moved)) {
      if (decrement > 1e-8 || isTRUE(attr(factor, "damped"))) return(NULL)
      return(list(z = z, value = now[1L], slope = now[-1L], factor = factor))
    }
    z <- moved$z
    now <- moved$now
  }
  NULL
}

# The Cholesky factor of h; of h plus a multiple of the identity if it is not positive definite.
damped_factor <- function(h) {
  if (!all(is.finite(h))) return(NULL)
  shift <- 0
  for (attempt in 1:30) {
    factor <- tryCatch(chol.default(h + diag(shift, nrow(h))), error = function(e) NULL)
    if (!is.null(factor)) {
      if (shift > 0) attr(factor, "damped") <- TRUE
      return(factor)
    }
    shift <- if (shift == 0) 1e-4 * max(abs(diag(h)), 1e-4) else 4 * shift
  }
  NULL
}

# The point after a step, halved until the value does not increase, apart from rounding errors.
tmb_step <- function(o, z, now, step, decrement) {
  u <- o$random
  scale <- 1
  for (attempt in 1:40) {
    moved <- z
    moved[u] <- z[u] - scale * step
    value <- tmb_run(o, moved, TRUE)
    slack <- 1e-12 * (1 + abs(now[1L]))
    if (is.finite(sum(value)) && value[1L] <= now[1L] - 1e-4 * scale * decrement + slack) {
      return(list(z = moved, now = value))
    }
    scale <- scale / 2
  }
  NULL
}

laplace_value <- function(o, theta) {
  mode <- tmb_mode(o, theta)
  o$last_z <- mode$z
  if (is.null(mode)) return(NaN)
  mode$value + sum(log(diag(mode$factor))) - 0.5 * length(o$random) * log(2 * pi)
}

# The gradient with respect to theta. With W = H^-1 = sum(w_k w_k'), the gradient of log(det(H)) is
# the sum over k of the third derivatives f[w_k, w_k, .] along theta and the change of the mode,
# -H^-1 f[u, theta].
laplace_slope <- function(o, theta) {
  mode <- tmb_mode(o, theta)
  if (is.null(mode)) return(rep(NaN, length(theta)))
  third <- third_derivatives(o, mode)
  a <- backsolve(mode$factor, backsolve(mode$factor, third[o$random], transpose = TRUE))
  third <- third[o$fixed]
  if (any(a != 0)) third <- third - along_mode(o, mode, a)
  mode$slope[o$fixed] + 0.5 * third
}

# The steps are fractions of the standard deviations of the random effects given theta, on whose
# scale f varies: formulas of fourth order are then accurate to about 1e-9.
third_derivatives <- function(o, mode) {
  w <- backsolve(mode$factor, diag(length(o$random)))
  h <- 0.01
  sum <- numeric(length(mode$z))
  at <- function(k, step) {
    z <- mode$z
    z[o$random] <- z[o$random] + step * w[, k]
    tmb_slope(o, z)
  }
  for (k in seq_along(o$random)) {
    near <- at(k, h) + at(k, -h)
    far <- at(k, 2 * h) + at(k, -2 * h)
    sum <- sum + (16 * near - far - 30 * mode$slope) / (12 * h^2)
  }
  sum
}

# f[theta, u] a, for a direction of the random effects.
along_mode <- function(o, mode, a) {
  h <- 0.01 / sqrt(sum((mode$factor %*% a)^2))
  at <- function(step) {
    z <- mode$z
    z[o$random] <- z[o$random] + step * a
    tmb_slope(o, z)[o$fixed]
  }
  (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
}

# The Hessian of L by differences of its gradient.
laplace_hessian <- function(o, theta) {
  n <- length(theta)
  result <- matrix(0, n, n)
  for (k in seq_len(n)) {
    h <- 1e-4 * max(1, abs(theta[k]))
    at <- function(step) {
      moved <- theta
      moved[k] <- theta[k] + step
      laplace_slope(o, moved)
    }
    result[, k] <- (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
  }
  (result + t(result)) / 2
}
