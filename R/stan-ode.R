# Functions of Stan programs that take functions: differential equations by cl_ode(), and sums over
# slices. They are called with the program's own functions.

stan_ode_names <- c("integrate_ode", "integrate_ode_rk45", "integrate_ode_bdf",
                    "integrate_ode_adams", "ode_rk45", "ode_rk45_tol", "ode_bdf", "ode_bdf_tol",
                    "ode_adams", "ode_adams_tol", "ode_ckrk", "ode_ckrk_tol", "reduce_sum",
                    "reduce_sum_static", "map_rect")

stan_ode_call <- function(name, e, args, cx) {
  if (!name %in% stan_ode_names) {
    stan_abort(sprintf("the function '%s' is not available: ode_rk45() is", name), e$line)
  }
  args[[1L]] <- stan_user_name(e$args[[1L]], cx)
  as.call(c(list(as.name(if (grepl("^integrate", name)) "st_integrate" else
    if (grepl("_tol$", name)) "st_ode_tol" else "st_ode")), args))
}

stan_higher_order <- list(reduce_sum = "st_reduce_sum", reduce_sum_static = "st_reduce_sum",
                          map_rect = "st_map_rect")

stan_function_call <- function(name, e, args, cx) {
  args[[1L]] <- stan_user_name(e$args[[1L]], cx)
  as.call(c(list(as.name(stan_higher_order[[name]])), args))
}

# Steps between two times; a recorded solution keeps them all.
st_most_steps <- 100

# The states at the times after the first one: a row for each. Derivatives are those of the steps
# that were made, so that differences agree with them only for small tolerances.
st_solve <- function(f, y0, t0, times, rtol, atol, most, ...) {
  states <- cl_ode(f, y0, c(t0, times), ..., rtol = min(0.01 * rtol, 1e-8),
                   atol = min(0.01 * atol, 1e-8), max_steps = most)
  n <- length(times)
  if (length(y0) == 1L) return(matrix(states[-1L], n, 1L))
  states[-1L, , drop = FALSE]
}

st_integrate <- function(f, y0, t0, times, theta, x_r, x_i, rtol = 1e-6, atol = 1e-6, most = 1e6) {
  st_solve(function(t, y) f(t, y, theta, x_r, x_i), y0, t0, times, rtol, atol, st_most_steps)
}

st_ode <- function(f, y0, t0, times, ...) {
  st_solve(function(t, y) f(t, y, ...), y0, t0, times, 1e-6, 1e-6, st_most_steps)
}

st_ode_tol <- function(f, y0, t0, times, rtol, atol, most, ...) {
  st_solve(function(t, y) f(t, y, ...), y0, t0, times, rtol, atol, min(most, st_most_steps))
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
