# The likelihood of points in equal steps. A covariance that depends on their differences then has
# a Toeplitz matrix, for which value and gradient take O(n^2) (src/ops/gp_toeplitz.h): the search
# can take many more starts.

# Whether the covariance matrix of a problem is Toeplitz, with its points in their order.
is_toeplitz <- function(problem) {
  if (!is.null(problem$response) || !is.null(problem$vecchia) || !is.null(problem$noise_kernel) ||
        !is.null(problem$weights) || !is.null(problem$variance)) {
    return(FALSE)
  }
  at <- toeplitz_column(problem$kernel, problem$x)
  length(at) == 1L && regular_toeplitz(problem$x[, at])
}

# The columns that a kernel uses, unless it depends on more than their differences.
toeplitz_column <- function(kernel, x) {
  unique(unlist(lapply(kernel$terms, function(term) {
    if (term$type %in% plain_types) return(NULL)
    if (term$type %in% c("linear", "user") || !is.null(term$distance)) return(c(0L, -1L))
    find_columns(term$columns, ncol(x), colnames(x))
  })))
}

# Whether values in some order have equal steps, up to the rounding of dates and times.
regular_toeplitz <- function(t) {
  n <- length(t)
  rounding <- 2 * max(abs(t)) * .Machine$double.eps
  t <- sort(t) - min(t)
  step <- t[n] / (n - 1)
  n > 2L && step > 0 &&
    max(abs(t - step * (seq_len(n) - 1))) <= min(1e-6 * step + rounding, 1e-3 * step)
}

# As gp_function() for a problem of which is_toeplitz() is TRUE. Where a result would not be
# accurate, the likelihood is computed from a factor.
toeplitz_function <- function(problem, scale, exact = NULL) {
  problem$toeplitz <- NULL
  if (is.null(exact)) exact <- gp_function(problem, "ml", scale)
  x <- problem$x
  trend <- gp_trend(if (problem$mean$kind == "number") 0 else mean_argument(problem$mean),
                    problem$beta, x, 1L)
  rows <- order(x[, toeplitz_column(problem$kernel, x)])
  y <- as.matrix((problem$y - problem$mean$centre) / scale)[rows, , drop = FALSE]
  basis <- trend$basis[rows, , drop = FALSE]
  layout <- kernel_layout(problem$kernel, ncol(x), colnames(x))
  names <- c(names(coef(problem$kernel)), "noise")
  x <- unname(x[rows, , drop = FALSE])
  function(par, gradient = TRUE) {
    found <- .Call(r_gp_toeplitz, y, x, basis, layout, par, names, trend$integrate, gradient)
    if (is.null(found)) return(exact(par, gradient))
    value <- found[1L] - if (trend$integrate) trend$log_det else 0
    attr(value, "gradient") <- attr(found, "gradient")
    value
  }
}

# Whether the Toeplitz likelihood can be computed at most of a few points of the search.
mostly_toeplitz <- function(problem, space) {
  f <- toeplitz_function(problem, search_scale(problem), function(...) NA_real_)
  points <- search_design(space, 8L)
  found <- apply(points, 1L, function(at) f(search_parameters(space, at) / space$unit, FALSE)[1L])
  sum(is.finite(found)) >= 6L # the search takes place where most starts are
}

# As search_trials(), with many starts, few of which continue to the end. `starts` matters only if
# it is large.
toeplitz_trials <- function(space, target, starts, trials) {
  steps <- function(points, count) run_steps(trials, points, count)
  x <- target$problem$x
  t <- sort(x[, toeplitz_column(target$problem$kernel, x)])
  fast <- toeplitz_space(space, t)
  effort <- search_effort$toeplitz
  period <- any(space$role[space$free] == "period")
  wide <- max(starts, if (period) effort$period_points else effort$points)
  points <- search_screen(fast, target, wide, trials, effort$screen_apart)
  first <- steps(points, effort$start_steps)
  some <- function(found, count) best_of(found, ceiling(count), effort$start_apart)
  first <- steps(some(first, effort$middle * wide), effort$middle_steps)
  best <- steps(some(first, effort$last * wide), effort$last_steps)
  for (again in 1:3) {
    at <- best$points[1L, ]
    around <- rbind(search_around(fast, at, again), toeplitz_periods(fast, at, t))
    if (is.null(around)) break
    near <- order_finite(trials$screen(around))
    apart <- apart_rows(around, near, effort$around_points, effort$start_apart)
    others <- steps(around[apart, , drop = FALSE], effort$around_steps)
    others <- steps(some(others, effort$around_last_points), effort$last_steps)
    if (others$values[1L] > best$values[1L] - 1e-3 / target$n) break
    best <- others
  }
  list(from = best$points[1L, ], trials = utils::head(first$values, starts))
}

# The space with starting periods from two steps on: shorter ones have the same covariances as some
# longer one. Half of them have equal steps in frequency, as peaks of the likelihood do.
toeplitz_space <- function(space, t) {
  n <- length(t)
  step <- (t[n] - t[1L]) / (n - 1)
  for (k in which(space$role == "period")) {
    space$from[k] <- 2 * step
    even <- step / (1 / n + (seq_len(11L) - 0.5) / 11 * (0.5 - 1 / n))
    space$guess[[k]] <- c(space$guess[[k]], rep(NA_real_, 3L), even)
  }
  space
}

# Points with all periods that n values in equal steps can distinguish, with the other parameters
# unchanged, and with a periodic part that is sharper (its lengthscale 0.5 or 0.15: a few
# harmonics, or many), steadier (it keeps its shape for e times as long) or smaller (by e or e^1.5):
# the optimum for a spike that repeats is far from that for a sine wave.
toeplitz_periods <- function(space, at, t) {
  n <- length(t)
  roles <- space$role[space$free]
  frequency <- seq(0.5 / (t[n] - t[1L]), 0.5 * (n - 1) / (t[n] - t[1L]), length.out = n)
  bounds <- search_bounds(space)
  points <- lapply(which(roles == "period"), function(k) {
    lapply(list(c(NA, 0, 0), c(0.15, 1, 0), c(0.5, 1, -1), c(0.15, 0, -1.5)), function(by) {
      moved <- at
      long <- which(roles == "lengthscale")
      sharp <- utils::tail(long[long < k], 1L)
      steady <- utils::head(long[long > k], 1L)
      size <- which(roles == "sd")
      size <- utils::tail(size[size < k], 1L)
      if (!is.na(by[1L])) moved[sharp] <- log(by[1L])
      moved[steady] <- moved[steady] + by[2L]
      moved[size] <- moved[size] + by[3L]
      moved <- matrix(moved, n, length(at), byrow = TRUE)
      moved[, k] <- -log(frequency)
      moved
    })
  })
  if (length(points) == 0L) return(NULL)
  points <- do.call(rbind, unlist(points, recursive = FALSE))
  t(pmin(pmax(t(points), bounds$lower), bounds$upper))
}
