# Functions of Stan programs that take functions: differential equations by cl_ode(), and sums over
# slices. They are called with the program's own functions.

stan_higher_order <- c(
  integrate_ode = "st_integrate", integrate_ode_rk45 = "st_integrate",
  integrate_ode_bdf = "st_integrate_stiff", integrate_ode_adams = "st_integrate",
  ode_rk45 = "st_ode", ode_bdf = "st_ode_stiff", ode_adams = "st_ode", ode_ckrk = "st_ode",
  ode_rk45_tol = "st_ode_tol", ode_bdf_tol = "st_ode_stiff_tol", ode_adams_tol = "st_ode_tol",
  ode_adjoint_tol_ctl = "st_ode_adjoint",
  ode_ckrk_tol = "st_ode_tol", reduce_sum = "st_reduce_sum", reduce_sum_static = "st_reduce_sum",
  map_rect = "st_map_rect", dae = "st_dae", dae_tol = "st_dae_tol",
  integrate_1d = "st_integrate_1d", solve_newton = "st_solve_roots",
  solve_powell = "st_solve_roots", solve_newton_tol = "st_solve_roots_tol",
  solve_powell_tol = "st_solve_roots_tol", algebra_solver = "st_algebra_solver",
  algebra_solver_newton = "st_algebra_solver")

# Steps between two times, more where few times are asked for; a recorded solution keeps them all.
st_most_steps <- function(times, stiff) max(if (stiff) 200 else 100, 2000 %/% length(times))

# The states at the times after the first one: a row for each. Derivatives are those of the steps
# that were made, so that differences agree with them only for small tolerances.
st_solve <- function(f, y0, t0, times, rtol, atol, most, stiff = FALSE) {
  exact <- function(tolerance) min((if (stiff) 0.1 else 0.01) * tolerance, 1e-8)
  most <- min(most, st_most_steps(times, stiff))
  states <- st_reached(most, function(most) {
    cl_ode(f, y0, c(t0, times), rtol = exact(rtol), atol = exact(atol), max_steps = most,
           stiff = stiff)
  })
  n <- length(times)
  if (length(y0) == 1L) return(matrix(states[-1L], n, 1L))
  states[-1L, , drop = FALSE]
}

# solve(most), with an error that says what to do where `most` steps do not suffice.
st_reached <- function(most, solve) {
  tryCatch(solve(most), statcl_error_argument = function(e) {
    if (!identical(e$argument, "max_steps")) stop(e)
    stop(sprintf(paste("%.0f steps from one time to the next do not suffice: ask for the solution",
                       "at times in between, too, if it is finite there"), most), call. = FALSE)
  })
}

st_integrate <- function(f, y0, t0, times, theta, x_r, x_i, rtol = 1e-6, atol = 1e-6, most = 1e6,
                         stiff = FALSE) {
  force(theta) # before a step, which has a record of its own
  st_solve(function(t, y) f(t, y, theta, x_r, x_i), y0, t0, times, rtol, atol, most, stiff)
}

st_integrate_stiff <- function(...) st_integrate(..., stiff = TRUE)

st_ode <- function(f, y0, t0, times, ...) st_ode_tol(f, y0, t0, times, 1e-6, 1e-6, 1e6, ...)

st_ode_tol <- function(f, y0, t0, times, rtol, atol, most, ...) {
  list(...) # as above
  st_solve(function(t, y) f(t, y, ...), y0, t0, times, rtol, atol, most)
}

st_ode_stiff <- function(f, y0, t0, times, ...) {
  st_ode_stiff_tol(f, y0, t0, times, 1e-6, 1e-6, 1e6, ...)
}

st_ode_stiff_tol <- function(f, y0, t0, times, rtol, atol, most, ...) {
  list(...)
  st_solve(function(t, y) f(t, y, ...), y0, t0, times, rtol, atol, most, TRUE)
}

# The solution and its derivatives are those of the other solvers; 2 is the solver for stiff ones.
st_ode_adjoint <- function(f, y0, t0, times, rtol, atol, rtol_back, atol_back, rtol_sum, atol_sum,
                           most, checkpoints, interpolation, solver, solver_back, ...) {
  solve <- if (solver == 2) st_ode_stiff_tol else st_ode_tol
  solve(f, y0, t0, times, rtol, min(atol), most, ...)
}

# Differential-algebraic equations of index 1. The state of a step has the derivatives, too.
st_dae <- function(f, y0, slope0, t0, times, ...) {
  st_dae_tol(f, y0, slope0, t0, times, 1e-10, 1e-10, 1e8, ...)
}

st_dae_tol <- function(f, y0, slope0, t0, times, rtol, atol, most, ...) {
  list(...)
  n <- length(y0)
  stan_same_count(length(slope0), n)
  at <- seq_len(n)
  both <- function(t, z) {
    missed <- f(t, z[at], z[n + at], ...)
    stan_same_count(length(missed), n)
    c(missed, z[n + at])
  }
  control <- list(rtol = max(rtol, 1e-8), atol = max(atol, 1e-8), advance = implicit_step,
                  power = -1 / 8)
  states <- st_reached(min(most, 2 * st_most_steps(times, TRUE)), function(most) {
    adaptive_ode(both, c(y0, slope0), c(t0, times), NULL, control, most)
  })
  states[-1L, at, drop = FALSE]
}

# In one slice: the sum is the same.
st_reduce_sum <- function(f, x, grain, ...) {
  n <- if (is.null(dim(x))) length(x) else nrow(x)
  if (n == 0) 0 else f(x, 1, n, ...)
}

st_map_rect <- function(f, phi, theta, x_r, x_i) {
  parts <- lapply(seq_len(nrow(theta)), function(i) f(phi, theta[i, ], x_r[i, ], x_i[i, ]))
  do.call("c", parts)
}
