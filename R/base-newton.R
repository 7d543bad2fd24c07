# Newton's method for a mode: the search of all Laplace approximations and of all generalised linear
# models. What differs between them, the solution of Newton's equations, comes in functions: by
# blocks of random effects (laplace-mode.R, mixed-laplace.R), by the covariance matrix of a latent
# process or Vecchia's approximation of it (gp-response-laplace.R, gp-response-vecchia.R), for the
# process of the noise, on which observations depend jointly (gp-noise.R), by the information of all
# parameters (glm-newton.R), and by weighted least squares in memory or by blocks of rows
# (glm-irls.R, glm-stream-fit.R).
#
# With F(u, theta) minus the log density and H its second derivatives by u, at the mode u, Laplace's
# approximation of minus the log likelihood is F + log(det(H)) / 2. Its gradient by theta is that at
# this u, less (d2F / dtheta du) H^-1 v, where v are the derivatives of log(det(H)) / 2 by u. Each
# file adds up both parts in one pass over what takes the time there: third derivatives of a
# compiled function, rows of data, or the adjoint of a covariance matrix. Vecchia's approximation
# has differences of the value instead, as its incomplete factor has no derivatives.

# The point at which now$value has a minimum, from the point `now`, a list that the functions
# understand. direction(now, exact): list(decrement: twice the decrease that Newton's quadratic
# model predicts, ...), or NULL where the second derivatives are not positive definite; for exact =
# FALSE another direction that leads downwards, or NULL if there is none. It may have `enough`, the
# decrement at which the search ends; `ratio`, to the last decrement, from which on a small one is
# rounding error; and `most` and `least`, the parts of the step that are tried. to(now, step, size):
# the point after a part `size` of the step. shorten(now, step, to): the point at which the search
# continues, or NULL. `rough`: a decrement that is small enough if no step leads downwards.
# list(now, step (the last one, which was not taken), converged, rounding, stuck, iterations).
newton_search <- function(now, direction, to, most, rough = 0, report = function(...) NULL,
                          shorten = shortened_step) {
  last <- Inf
  for (i in 0:most) {
    new <- step <- NULL
    end <- function(converged, rounding = FALSE) {
      list(now = now, step = step, converged = converged, rounding = rounding, stuck = i < most,
           iterations = i)
    }
    for (exact in c(TRUE, FALSE)) {
      found <- direction(now, exact)
      if (is.null(found) || !is.finite(found$decrement)) next
      step <- found
      by <- abs(step$decrement)
      report(i, now, step)
      enough <- if (is.null(step$enough)) 1e-20 * (1 + abs(now$value)) else step$enough
      # Newton's method converges quadratically until only rounding errors remain
      rounding <- by < 1e-10 && by >= last * if (is.null(step$ratio)) 0.25 else step$ratio
      if (exact && (rounding || by <= enough)) return(end(TRUE, rounding))
      if (i == most) break
      if (by > enough && !rounding && step$decrement > -1e-8) new <- shorten(now, step, to)
      if (!is.null(new)) break
      if (exact && by < rough) return(end(TRUE))
    }
    if (is.null(new)) return(end(FALSE))
    last <- by
    now <- new
  }
}

# The point after a step that is halved until the value decreases, apart from rounding errors; NULL
# if it does not.
shortened_step <- function(now, step, to) {
  least <- if (is.null(step$least)) 1e-12 else step$least
  size <- if (is.null(step$most)) 1 else step$most
  slack <- 1e-12 * (1 + abs(now$value))
  while (size >= least) {
    new <- to(now, step, size)
    if (isTRUE(new$value <= now$value - 1e-4 * size * step$decrement + slack)) return(new)
    size <- size / 2
  }
  NULL
}

# The same for the mode of a Laplace approximation, from the first of `starts`, functions that give
# points, that leads to one: the point with the last `step`; NULL if there is none.
newton_mode <- function(starts, direction, to) {
  for (start in starts) {
    now <- start()
    if (!is.finite(now$value)) next
    found <- newton_search(now, direction, to, 200L, rough = 1e-8)
    if (found$converged) return(c(found$now, list(step = found$step)))
  }
}

# The derivative of at(step) at 0 by differences, of fourth order in h.
slope_by_differences <- function(at, h) {
  (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
}
