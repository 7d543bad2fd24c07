# cl_ode(): ordinary differential equations, by steps of cl_scan().

#' Ordinary differential equations
#'
#' Solves `dy/dt = f(t, y)` from a first state, by the Runge-Kutta method of Dormand and Prince, of
#' order 5, with a fixed number of steps from each time to the next. In a function given to
#' [cl_gradient()], [cl_hessian()] or [cl_tmb()] it is one [cl_scan()], and derivatives are exactly
#' those of the steps.
#'
#' The steps do not adapt to the solution: compare results with those of twice the steps. The error
#' of smooth solutions falls by a factor of about 32 then. Stiff equations need so many steps that
#' another solver is better.
#'
#' @param f `function(t, y, ...)`, which returns the derivative of each element of `y`. It is
#'   recorded once for all steps, as the step of [cl_scan()].
#' @param y0 The state at the first time: a numeric vector, or with `sequences` a matrix with a
#'   column for each.
#' @param times Increasing numbers: the first time, then those at which the state is wanted.
#' @param ... Further arguments of `f`, such as parameters; with `sequences` as in [cl_scan()].
#' @param steps How many steps are made from each time to the next.
#' @param sequences `NULL`, or the number of solutions that are computed beside each other, such as
#'   those of several subjects: see [cl_scan()].
#' @return The states: a matrix with a row for each time, the first one included; a vector if `y0`
#'   is a single number. With `sequences` there is a last dimension for them.
#' @section Errors:
#' `statcl_error_argument` if `times` do not increase, `f` returns another number of derivatives, or
#' as for [cl_scan()].
#' @seealso [cl_scan()]
#' @export
#' @examples
#' # Hares and lynxes
#' slope <- function(t, z, theta) {
#'   c((theta[1] - theta[2] * z[2]) * z[1], (theta[4] * z[1] - theta[3]) * z[2])
#' }
#' cl_ode(slope, c(34, 6), 0:5, theta = c(0.55, 0.028, 0.8, 0.024))
#'
#' f <- cl_gradient(function(theta) {
#'   sum(log(cl_ode(slope, c(34, 6), 0:5, theta = theta)))
#' })
#' f(theta = c(0.55, 0.028, 0.8, 0.024))
cl_ode <- function(f, y0, times, ..., steps = 10, sequences = NULL) {
  if (!is.function(f)) abort_argument("f", sprintf("'f' must be a function, not %s", describe(f)))
  check_times(times)
  steps <- round(check_number(steps, "steps", 1, 1e6))
  n <- length(times) - 1L
  h <- rep(diff(times) / steps, each = steps)
  t <- rep(times[seq_len(n)], each = steps) + h * rep(seq_len(steps) - 1, n)
  # a last step of no length, so that all states are outputs of a step
  xs <- list(t = c(t, times[n + 1L]), h = c(h, 0))
  step <- function(y, x, ...) list(state = y + x$h * mean_slope(f, x$t, y, x$h, ...), out = y)
  states <- cl_scan(step, y0, xs, sequences = sequences, ...)$out
  wanted <- 1 + steps * (0:n)
  switch(max(1L, length(dim(states))), states[wanted], states[wanted, , drop = FALSE],
         states[wanted, , , drop = FALSE])
}

check_times <- function(times) {
  good <- is.numeric(times) && !is.object(times) && length(times) > 1L && all(is.finite(times))
  if (!good || any(diff(times) <= 0)) {
    abort_argument("times", "'times' must be two or more increasing numbers")
  }
}

# The slope of a step, of order 5. Dormand and Prince, "A family of embedded Runge-Kutta formulae",
# 1980.
mean_slope <- function(f, t, y, h, ...) {
  slope <- function(t, y) {
    k <- f(t, y, ...)
    if (!is_numbers(k) || length(k) != length(y)) {
      scan_stop(sprintf("'f' must return %d derivatives, not %s", length(y), describe_value(k)))
    }
    if (is.null(dim(y))) as.vector(k) else k
  }
  k1 <- slope(t, y)
  k2 <- slope(t + h / 5, y + h * (k1 / 5))
  k3 <- slope(t + h * 0.3, y + h * (k1 * (3 / 40) + k2 * (9 / 40)))
  k4 <- slope(t + h * 0.8, y + h * (k1 * (44 / 45) - k2 * (56 / 15) + k3 * (32 / 9)))
  k5 <- slope(t + h * (8 / 9), y + h * (k1 * (19372 / 6561) - k2 * (25360 / 2187) +
                                          k3 * (64448 / 6561) - k4 * (212 / 729)))
  k6 <- slope(t + h, y + h * (k1 * (9017 / 3168) - k2 * (355 / 33) + k3 * (46732 / 5247) +
                                k4 * (49 / 176) - k5 * (5103 / 18656)))
  k1 * (35 / 384) + k3 * (500 / 1113) + k4 * (125 / 192) - k5 * (2187 / 6784) + k6 * (11 / 84)
}
