# Newton's method for a mode of a log density: the search of all Laplace approximations. What
# differs between them, the solution of Newton's equations, comes in functions: by blocks of random
# effects (tmb-laplace.R, mixed-laplace.R), by the covariance matrix of a latent process or
# Vecchia's approximation of it (gp-response-laplace.R, gp-response-vecchia.R), and for the process
# of the noise, on which observations depend jointly (gp-noise.R).

# The point at which now$value has a minimum, from the point `now`, a list that `direction` and `to`
# understand; NULL if none is found. direction(now, exact): list(decrement: twice the decrease that
# Newton's quadratic model predicts, ...), or NULL where the second derivatives are not positive
# definite; for exact = FALSE a direction that leads downwards all the same, or NULL if there is no
# other one. It may have `least`, the smallest part of the step that is tried. to(now, step, size):
# the point after a part `size` of the step. The result has the last `step`, which was not taken.
newton_mode <- function(now, direction, to) {
  if (!is.finite(now$value)) return(NULL)
  last <- Inf
  for (i in seq_len(200L)) {
    new <- NULL
    for (exact in c(TRUE, FALSE)) {
      step <- direction(now, exact)
      if (is.null(step) || !is.finite(step$decrement)) next
      by <- abs(step$decrement)
      # convergence is quadratic until only rounding errors remain
      done <- by < 1e-20 * (1 + abs(now$value)) || by < 1e-10 && by > last / 4
      if (!done && step$decrement > -1e-8) new <- shortened_step(now, step, to)
      if (!is.null(new)) break
      if (exact && (done || by < 1e-8)) return(c(now, list(step = step)))
    }
    if (is.null(new)) return(NULL)
    last <- by
    now <- new
  }
  NULL
}

# The point after a step that is halved until the value decreases, apart from rounding errors; NULL
# if it does not.
shortened_step <- function(now, step, to) {
  least <- if (is.null(step$least)) 1e-12 else step$least
  slack <- 1e-12 * (1 + abs(now$value))
  size <- 1
  while (size >= least) {
    new <- to(now, step, size)
    if (isTRUE(new$value <= now$value - 1e-4 * size * step$decrement + slack)) return(new)
    size <- size / 2
  }
  NULL
}
