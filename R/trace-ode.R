# cl_ode(): ordinary differential equations, by steps of cl_scan().

#' Ordinary differential equations
#'
#' Solves `dy/dt = f(t, y)` from an initial state, by the Runge-Kutta method of Dormand and Prince
#' (order 5, with an error estimate of order 4). In a function given to [cl_gradient()],
#' [cl_hessian()] or [cl_tmb()], the solution is compiled by [cl_scan()] and has derivatives.
#'
#' @section Adaptive steps:
#' The length of a step is chosen from its estimated error: the root mean square over the elements
#' of the state of `error / (atol + rtol * abs(y))` is at most 1. Lengths are chosen separately for
#' each value of the parameters and for each sequence. Derivatives are those of the steps that were
#' made; the lengths count as constants. Derivatives are therefore about as accurate as the
#' solution, and a comparison with finite differences needs small tolerances.
#'
#' At most `max_steps` steps, including rejected ones, are made from each time to the next. If they
#' do not suffice, or the solution is not finite, a recorded function returns `NaN` for the
#' following states and for the derivatives; elsewhere it is an error. A recorded function keeps
#' `max_steps` states, so that its memory is proportional to `max_steps`; steps that are not needed
#' have length zero and take little time.
#'
#' @section Fixed steps:
#' With `steps`, all steps have the same length. This is faster if a few steps are accurate enough,
#' and the result is a smooth function of the parameters. To check the accuracy, double the number
#' of steps: the error of a smooth solution falls by a factor of about 32.
#'
#' @section Stiff equations:
#' Where the state follows a slow course that it reaches very fast, the method above needs steps as
#' short as the fast part. `stiff = TRUE` takes the Rosenbrock method RODAS of Hairer and Wanner
#' (order 4, L-stable), whose steps may be as long as the slow course allows. Each of them solves
#' linear equations with the derivatives of `f` by `y`, which are taken by differences.
#' @param f `function(t, y, ...)` that returns the derivative of each element of `y`. It is recorded
#'   once for all steps, as the step of [cl_scan()].
#' @param y0 The state at the first time: a numeric vector, or with `sequences` a matrix with one
#'   column for each.
#' @param times Increasing numbers: the initial time, then the times at which the state is returned.
#' @param ... Further arguments of `f`, such as parameters; with `sequences` as in [cl_scan()].
#' @param rtol,atol Relative and absolute error allowed in a step.
#' @param max_steps Maximum number of steps from each time to the next.
#' @param steps `NULL`, or the number of steps of fixed length from each time to the next.
#' @param sequences `NULL`, or the number of independent solutions, such as those of several
#'   subjects: see [cl_scan()].
#' @param stiff Whether to use the method for stiff equations.
#' @return The states: a matrix with one row for each time, including the first; a vector if `y0` is
#'   a single number. With `sequences`, the last dimension is that of the sequences. In `f` the
#'   state has the names of `y0`; the result has none.
#' @section Errors:
#' `statcl_error_argument` if `times` do not increase, if `f` returns the wrong number of
#' derivatives, if `max_steps` do not suffice (except in a recorded function), and as for
#' [cl_scan()].
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
cl_ode <- function(f, y0, times, ..., rtol = 1e-6, atol = 1e-6, max_steps = 50, steps = NULL,
                   sequences = NULL, stiff = FALSE) {
  check_function(f, "f")
  if (!is_numbers(y0) || length(y0) == 0L) {
    abort_argument("y0", sprintf("'y0' must be numbers, not %s", describe_value(y0)))
  }
  check_times(times)
  stiff <- check_flag(stiff, "stiff")
  advance <- if (stiff) rosenbrock_step else runge_kutta_step
  if (!is.null(steps)) {
    if (!missing(rtol) || !missing(atol) || !missing(max_steps)) {
      abort_argument("steps", "give 'steps', or 'rtol', 'atol' and 'max_steps', but not both")
    }
    steps <- round(check_number(steps, "steps", 1, 1e6))
    n <- length(times) - 1L
    h <- rep(diff(times) / steps, each = steps)
    t <- rep(times[seq_len(n)], each = steps) + h * rep(seq_len(steps) - 1, n)
    # A last step of length 0, so that all states are outputs of a step.
    xs <- list(t = c(t, times[n + 1L]), h = c(h, 0))
    return(ode_states(f, y0, xs, steps, sequences, advance, ...))
  }
  control <- list(rtol = check_number(rtol, "rtol", 0, 1), atol = check_positive(atol, "atol"),
                  advance = advance, power = if (stiff) -1 / 8 else -1 / 10)
  max_steps <- round(check_number(max_steps, "max_steps", 1, 1e6))
  adaptive_ode(f, y0, times, sequences, control, max_steps, ...)
}

# The states at the times, by steps whose lengths follow from their errors.
adaptive_ode <- function(.f, .y0, .times, .sequences, .control, .most, ...) {
  if (is.null(tracing$tape)) {
    return(plain_ode(.f, scan_spec(.y0, NULL, 1, .sequences, list(...)), .times, .control, .most))
  }
  xs <- accepted_steps(.f, .y0, .times, .sequences, .control, .most, ...)
  ode_states(.f, .y0, xs, .most, .sequences, .control$advance, ...)
}

check_times <- function(times) {
  good <- is.numeric(times) && !is.object(times) && length(times) > 1L && all(is.finite(times))
  if (!good || any(diff(times) <= 0)) {
    abort_argument("times", "'times' must be two or more increasing numbers")
  }
}

# The initial state and the states after every .each of the given steps. Arguments have dots, and
# those of cl_scan() are named, so that none of f's arguments is mistaken for one of them.
ode_states <- function(.f, .y0, .xs, .each, .sequences, .advance, ...) {
  adapted <- is_traced(.xs$h)
  step <- function(.y, .x, ...) {
    if (adapted) idle_without(.x$h)
    after <- .advance(slope_of(.f, .y, ...), .x$t, .y, .x$h)$after
    list(state = if (adapted) either(.x$h != 0, after, .y) else after, out = .y)
  }
  states <- cl_scan(f = step, init = .y0, xs = .xs, length.out = NULL, sequences = .sequences,
                    ...)$out
  count <- if (is.null(dim(states))) length(states) else dim(states)[1L]
  wanted <- seq(1, count, by = .each)
  switch(max(1L, length(dim(states))), states[wanted], states[wanted, , drop = FALSE],
         states[wanted, , , drop = FALSE])
}

# f as a function of time and state that checks the number of derivatives.
slope_of <- function(.f, .y, ...) {
  n <- length(.y)
  keep <- !is.null(dim(.y))
  function(t, y) {
    k <- .f(t, y, ...)
    if (!is_numbers(k) || length(k) != n) {
      scan_stop(sprintf("'f' must return %d derivatives, not %s", n, describe_value(k)))
    }
    if (keep) k else as.vector(k)
  }
}

# The mean slope of a step, of order 5, and the slopes it is computed from. Dormand and Prince, "A
# family of embedded Runge-Kutta formulae", 1980.
stages <- function(slope, t, y, h) {
  k1 <- slope(t, y)
  k2 <- slope(t + h / 5, y + h * (k1 / 5))
  k3 <- slope(t + h * 0.3, y + h * (k1 * (3 / 40) + k2 * (9 / 40)))
  k4 <- slope(t + h * 0.8, y + h * (k1 * (44 / 45) - k2 * (56 / 15) + k3 * (32 / 9)))
  k5 <- slope(t + h * (8 / 9), y + h * (k1 * (19372 / 6561) - k2 * (25360 / 2187) +
                                          k3 * (64448 / 6561) - k4 * (212 / 729)))
  k6 <- slope(t + h, y + h * (k1 * (9017 / 3168) - k2 * (355 / 33) + k3 * (46732 / 5247) +
                                k4 * (49 / 176) - k5 * (5103 / 18656)))
  list(k1 = k1, k3 = k3, k4 = k4, k5 = k5, k6 = k6,
       mean = k1 * (35 / 384) + k3 * (500 / 1113) + k4 * (125 / 192) - k5 * (2187 / 6784) +
         k6 * (11 / 84))
}

# The state after a step, and if asked for its estimated error.
runge_kutta_step <- function(slope, t, y, h, estimate = FALSE) {
  k <- stages(slope, t, y, h)
  after <- y + h * k$mean
  list(after = after, error = if (estimate) {
    k7 <- slope(t + h, after)
    h * (k$k1 * (71 / 57600) - k$k3 * (71 / 16695) + k$k4 * (71 / 1920) - k$k5 * (17253 / 339200) +
           k$k6 * (22 / 525) - k7 / 40)
  })
}

# ---- steps that adapt ----------------------------------------------------------------------------

# Tries a step of length h, or to `end` if that is nearer: list(taken, h: its length, or 0; state:
# the next one, with the length to try next).
try_step <- function(slope, state, end, control) {
  y <- state$y
  h <- state$h
  left <- end - state$t
  idle_without(left)
  try <- either(left <= h, left, either(left < 2 * h, left / 2, h)) # no tiny last step
  made <- control$advance(slope, state$t, y, try, estimate = TRUE)
  after <- made$after
  largest <- either(abs(after) > abs(y), abs(after), abs(y))
  square <- sum((made$error / (control$atol + control$rtol * largest))^2) / length(y)
  square <- either(is.na(square), 1e20, square)
  taken <- square <= 1
  factor <- 0.9 * square^control$power
  longer <- try * either(factor < 0.2, 0.2, either(factor > 5, 5, factor))
  # A step that was cut short says little about longer steps.
  kept <- either(try < h, either(longer > h, longer, h), longer)
  # none is left: the same in fewer operations
  on <- function(yes, no) either(left > 0, yes, no)
  list(taken = taken, h = on(either(taken, try, 0), 0),
       state = list(y = on(either(taken, after, y), y),
                    t = on(either(taken, either(left <= h, end, state$t + try), state$t), state$t),
                    h = on(either(taken, kept, longer), h)))
}

# ifelse() in a recorded function. For plain numbers, a single test chooses between the whole
# values, and several choose by element.
either <- function(test, yes, no) {
  if (any_traced(test, yes, no)) return(trace_apply("ifelse", test, yes, no))
  if (length(test) > 1L) return(ifelse(test, yes, no))
  if (isTRUE(test)) yes else no
}

first_try <- function(times) (times[2L] - times[1L]) / 10

# Times and lengths of the steps: 0 for a step that is rejected or not needed, NaN where a time is
# not reached. They are computed first, so that rejected steps do not contribute to derivatives, and
# rounded, because round() has derivative 0; the many digits kept make no difference.
accepted_steps <- function(.f, .y0, .times, .sequences, .control, .most, ...) {
  n <- length(.times) - 1L
  xs <- list(end = c(rep(.times[-1L], each = .most), .times[n + 1L]),
             last = c(rep(rep(c(0, 1), c(.most - 1, 1)), n), 0))
  step <- function(.state, .x, ...) {
    tried <- try_step(slope_of(.f, .state$y, ...), .state, .x$end, .control)
    missed <- (tried$state$t < .x$end) * .x$last
    list(state = tried$state, out = list(t = .state$t, h = either(missed > 0, NaN, tried$h)))
  }
  init <- list(y = .y0, t = .times[1L], h = first_try(.times))
  found <- cl_scan(f = step, init = init, xs = xs, length.out = NULL, sequences = .sequences, ...)
  lapply(found$out, as_constant)
}

# The same for plain numbers, one sequence after another, without unneeded steps.
plain_ode <- function(f, spec, times, control, max_steps) {
  leaf <- spec$state$leaves[[1L]]
  solutions <- lapply(seq_len(spec$b), function(b) {
    y <- with_scan_names(leaf_part(leaf, b), leaf)
    more <- lapply(spec$more, function(a) {
      if (is.null(a$n)) a$plain else with_scan_names(leaf_part(a, b), a)
    })
    slope <- do.call(slope_of, c(list(f, y), more), quote = TRUE)
    state <- list(y = y, t = times[1L], h = first_try(times))
    states <- list(y)
    for (end in times[-1L]) {
      for (k in seq_len(max_steps)) {
        state <- try_step(slope, state, end, control)$state
        if (state$t == end) break
      }
      if (state$t < end) not_reached(state$t, end, max_steps)
      states <- c(states, list(state$y))
    }
    stack_steps(states)
  })
  shape <- dim(solutions[[1L]])
  bind_sequences(solutions, if (is.null(shape)) length(times) else shape, spec$sequences)
}

not_reached <- function(t, end, max_steps) {
  abort_argument("max_steps", sprintf(paste("%.0f steps from one time to the next reach time %g,",
                                            "not %g: give more 'max_steps' or a larger 'rtol', if",
                                            "the solution is finite there"), max_steps, t, end))
}
