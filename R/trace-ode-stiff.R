# Steps of stiff differential equations for cl_ode(): the Rosenbrock method RODAS of order 4 with an
# error estimate of order 3, which is L-stable. Hairer and Wanner, "Solving Ordinary Differential
# Equations II", 1996, section IV.7. A step solves linear equations with the Jacobian, which is
# taken by differences.

rosenbrock <- list(
  time = c(0, 0.386, 0.21, 0.63, 1, 1),
  slope = c(0.25, -0.1043, 0.1035, -0.03620000000000023, 0, 0),
  a = list(NULL, 1.544, c(0.9466785280815826, 0.2557011698983284),
           c(3.314825187068521, 2.896124015972201, 0.9986419139977817),
           c(1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)),
  c = list(NULL, -5.6688, c(-2.430093356833875, -0.2063599157091915),
           c(-0.1073529058151375, -9.594562251023355, -20.47028614809616),
           c(7.496443313967647, -10.24680431464352, -33.99990352819905, 11.7089089320616),
           c(8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136,
             -6.058818238834054)))

rosenbrock_step <- function(slope, t, y, h, estimate = FALSE) {
  m <- rosenbrock
  n <- length(y)
  first <- slope(t, y)
  columns <- lapply(seq_len(n), function(i) {
    by <- difference_step(y[i])
    moved <- y
    moved[i] <- y[i] + by
    as.vector(slope(t, moved) - first) / by
  })
  jacobian <- joined(columns)
  dim(jacobian) <- c(n, n)
  inverse <- solve(diag(4, n, n) - h * jacobian)
  by <- difference_step(t)
  by_time <- (slope(t + by, y) - first) / by
  weighted <- function(weights, u) Reduce(`+`, Map(`*`, weights, u[seq_along(weights)]))
  u <- list()
  for (k in 1:6) {
    at <- if (k == 1L) y else if (k < 6L) y + weighted(m$a[[k]], u) else at + u[[5L]]
    rate <- h * (if (k == 1L) first else slope(t + m$time[k] * h, at))
    if (m$slope[k] != 0) rate <- rate + m$slope[k] * h^2 * by_time
    if (k > 1L) rate <- rate + weighted(m$c[[k]], u)
    u[[k]] <- shaped(matrix_times(inverse, as.vector(rate)), dim(y))
  }
  list(after = at + u[[6L]], error = u[[6L]])
}

matrix_times <- function(a, x) {
  if (!any_traced(a, x)) return(as.vector(a %*% x))
  as.vector(traced_product(a, matrix_of(x, length(x), 1L), 0L))
}

# Lengths of differences. They have no derivatives.
difference_step <- function(x) as_constant(1e-7 * (abs(x) + 1e-4))
