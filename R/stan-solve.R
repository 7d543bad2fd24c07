# Systems of equations in Stan programs. The search for the solution is not differentiated. Two
# steps of Newton's method follow, in which the solution found counts as a constant: their
# derivatives are those of the implicit function theorem.

# The matrix of derivatives of g at x by differences, for steps in a search; `at`: g(x).
st_slopes <- function(g, x, at) {
  n <- length(x)
  columns <- lapply(seq_len(n), function(i) {
    h <- 1e-7 * either(abs(x[i]) > 1e-2, abs(x[i]), 1e-2)
    moved <- x
    moved[i] <- x[i] + h
    (g(moved) - at) / h
  })
  matrix(do.call("c", columns), length(at), n)
}

# A step of the method of Levenberg and Marquardt. `s`: list(x, damping, left: 0 if it has ended).
st_root_step <- function(g, s) {
  idle_without(s$left)
  x <- s$x
  n <- length(x)
  at <- g(x)
  j <- st_slopes(g, x, at)
  a <- crossprod(j)
  scale <- diag(a) + 1e-14 * sum(diag(a)) + 1e-300
  a <- a + s$damping * diag(scale, n, n)
  d <- as.vector(solve(a, crossprod(j, at)))
  after <- x - d
  moved <- g(after)
  better <- (sum(moved^2) < sum(at^2)) + 0
  better <- either(is.na(better), 0, better)
  small <- max(abs(d) / (abs(x) + 1e-6)) < 1e-9
  on <- function(yes, no) either(s$left > 0, yes, no) # what an idle step keeps
  list(x = on(either(better > 0, after, x), x),
       damping = on(either(better > 0, 0.05 * s$damping, 8 * s$damping + 1e-8), s$damping),
       left = on(either(small, 0, 1), 0))
}

# The root of g near `start`; NaN if it is not found and g is traced, else an error.
st_solved <- function(g, start, tolerance, most) {
  first <- g(start)
  if (length(first) != length(start)) {
    stop(sprintf("the system has %d equations for %d unknowns", length(first), length(start)),
         call. = FALSE)
  }
  s <- list(x = as_constant(start), damping = 1e-3, left = 1)
  step <- function(s) st_root_step(g, s)
  if (is_traced(first) || is_traced(start)) {
    x <- st_polished(g, cl_scan(step, s, length.out = most)$x)
    return(either(max(abs(g(x))) <= tolerance, x, NaN))
  }
  x <- tryCatch({
    for (k in seq_len(most)) {
      s <- step(s)
      if (s$left == 0) break
    }
    st_polished(g, s$x)
  }, error = function(e) st_not_solved(conditionMessage(e)))
  size <- max(abs(g(x)))
  if (!isTRUE(size <= tolerance)) {
    st_not_solved(sprintf("after %d steps a residual is %.3g", as.integer(k), size))
  }
  x
}

# Two steps of Newton's method: the second one has derivatives without the error of differences.
st_polished <- function(g, x) {
  x <- as_constant(x)
  j <- as_constant(st_slopes(g, x, g(x)))
  for (k in 1:2) x <- x - as.vector(solve(j, g(x)))
  x
}

st_not_solved <- function(why) {
  stop(sprintf("the equations are not solved: %s", why), call. = FALSE)
}

# The functions of Stan. The relative tolerance is that of x, which is found to more digits.
st_solve_roots <- function(f, start, ...) st_solve_roots_tol(f, start, 1e-3, 1e-6, 200, ...)

st_solve_roots_tol <- function(f, start, rtol, ftol, most, ...) {
  st_solved(function(x) as.vector(f(x, ...)), start, ftol, min(most, 1000))
}

st_algebra_solver <- function(f, start, theta, x_r, x_i, rtol = 1e-10, ftol = 1e-6, most = 1e3) {
  st_solve_roots_tol(f, start, rtol, ftol, most, theta, x_r, x_i)
}
