# Steps of differential-algebraic equations of index 1, residual(t, y, y') = 0, for adaptive_ode():
# a singly diagonally implicit Runge-Kutta method of order 4 with an error estimate of order 3,
# which is L-stable and ends at its last stage, so that the state and its derivative fulfil the
# equations. Hairer and Wanner, "Solving Ordinary Differential Equations II", 1996, section IV.6.

implicit_tableau <- list(
  time = c(1 / 4, 3 / 4, 11 / 20, 1 / 2, 1),
  before = list(NULL, 1 / 2, c(17 / 50, -1 / 25), c(371 / 1360, -137 / 2720, 15 / 544),
                c(25 / 24, -49 / 48, 125 / 16, -85 / 12)),
  error = c(-3 / 16, -27 / 32, 25 / 32, 0, 1 / 4))

# `slope` gives the residuals, then anything, for the state z = c(y, y'). Each stage is the root of
# its equations by iterations of Newton's method with one matrix, which counts as a constant:
# derivatives converge as the root does, to those of the implicit function. The last correction
# belongs to the error, so that roots are found to its tolerance.
implicit_step <- function(slope, t, z, h, estimate = FALSE) {
  m <- implicit_tableau
  n <- length(z) / 2
  at <- seq_len(n)
  y <- z[at]
  residual <- function(t, y, k) as.vector(slope(t, c(y, k)))[at]
  local <- stage_matrices(function(y, k) residual(t, y, k), y, z[n + at], h / 4)
  k <- list(z[n + at])
  left <- 0
  for (stage in 1:5) {
    known <- Reduce(`+`, Map(`*`, m$before[[stage]], k[seq_len(stage - 1L)]), 0)
    base <- y + h * known
    now <- k[[max(1L, stage - 1L)]]
    for (i in 1:5) {
      missed <- residual(t + m$time[stage] * h, base + h / 4 * now, now)
      change <- matrix_times(local$inverse, missed)
      now <- now - change
    }
    left <- left + abs(change)
    k[[stage]] <- now
  }
  after <- base + h / 4 * now
  # Algebraic variables have the error that follows from those of the others. Derivatives, which
  # have none of their own, count as elements of the state.
  list(after = c(after, now), error = if (estimate) {
    error <- Reduce(`+`, Map(`*`, m$error, k))
    error <- abs(matrix_times(local$inverse, matrix_times(local$by_slope, error))) + left
    c(sqrt(2) * h * error, 0 * now)
  })
}

# list(by_slope: the matrix of derivatives of f(y, k) by k; inverse: that of the derivatives of f(y
# + share * k, k) by k), by differences, as constants.
stage_matrices <- function(f, y, k, share) {
  n <- length(y)
  first <- f(y, k)
  by <- function(x, f) {
    columns <- lapply(seq_len(n), function(i) {
      step <- difference_step(x[i])
      moved <- x
      moved[i] <- x[i] + step
      (f(moved) - first) / step
    })
    columns <- joined(columns)
    dim(columns) <- c(n, n)
    columns
  }
  by_slope <- by(k, function(k) f(y, k))
  inverse <- solve(by_slope + share * by(y, function(y) f(y, k)))
  lapply(list(by_slope = by_slope, inverse = inverse), as_constant)
}
