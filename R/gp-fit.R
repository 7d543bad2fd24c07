# Maximum marginal likelihood: where the search starts, where it may go, and the search.
#
# The search works on y / scale, so that it takes the same path whatever the unit of y, and on the
# logarithms of the parameters, on which the units of x are a shift.

# list(names, scale (of y), lower, upper, start (or NULL), fixed (logical), value (of the fixed
# ones), design (a function of u in (0, 1)^parameters that gives a starting point)); on the natural
# scale.
gp_space <- function(data, kernel, start, fixed, lower, upper) {
  names <- c(names(coef(kernel)), "noise")
  reach <- gp_reach(data$x, kernel)
  centre <- if (is.na(data$mean)) mean(data$y) else data$mean
  # A power of two: dividing by it changes no digit, so that a covariance matrix that can be
  # factored in the search can be factored on the scale of y too.
  scale <- 2^round(log2(sqrt(mean((data$y - centre)^2))))
  is_length <- grepl("^lengthscale", names)
  low <- ifelse(is_length, 1e-3 * reach$range, 1e-3 * scale)
  high <- ifelse(is_length, 100 * reach$range, 1e3 * scale)
  last <- length(names)
  low[last] <- 1e-4 * scale
  high[last] <- 10 * scale
  low <- override(low, lower, names, "lower")
  high <- override(high, upper, names, "upper")
  value <- override(rep(NA_real_, last), fixed, names, "fixed", zero = "noise")
  own <- override(rep(NA_real_, last), start, names, "start")
  if (any(low >= high)) {
    at <- names[low >= high][1L]
    abort_argument("lower", sprintf("the lower bound of '%s' is not below the upper one", at))
  }
  if (all(!is.na(value))) abort_argument("fixed", "all parameters are fixed")
  design <- function(u) {
    from <- ifelse(is_length, 0.05 * reach$range, 0.3 * scale)
    to <- ifelse(is_length, reach$range, 2 * scale)
    from[last] <- 0.03 * scale
    to[last] <- 0.7 * scale
    # terms that look at the same columns start at different lengthscales
    pmin(pmax(from^(1 - u) * to^u * ifelse(is_length, 0.25^reach$rank, 1), low), high)
  }
  list(names = names, scale = scale, lower = low, upper = high, start = own,
       fixed = !is.na(value), value = value, design = design)
}

# Puts the named values of one argument into the defaults.
override <- function(defaults, given, names, argument, zero = character()) {
  if (is.null(given)) return(defaults)
  if (!is.numeric(given) || is.null(names(given)) || !all(names(given) %in% names)) {
    abort_argument(argument, sprintf("'%s' must be a named vector; parameters are %s", argument,
                                     paste(names, collapse = ", ")))
  }
  if (!all(is.finite(given)) || any(given < 0) || any(given == 0 & !names(given) %in% zero)) {
    abort_argument(argument, sprintf("values of '%s' must be positive and finite", argument))
  }
  defaults[match(names(given), names)] <- given
  defaults
}

# For each parameter that is a lengthscale: the range of its columns (the diagonal of their box when
# it has several), and its rank among the terms that look at the same columns.
gp_reach <- function(x, kernel) {
  width <- apply(x, 2L, function(v) diff(range(v)))
  width[width == 0] <- 1 # a constant column has no part in any distance
  range <- rank <- numeric()
  seen <- character()
  for (term in kernel$terms) {
    used <- width[find_columns(term$columns, ncol(x), colnames(x))]
    l <- if (length(term$lengthscale) == 1L) sqrt(sum(used^2)) else used * sqrt(length(used))
    key <- paste(find_columns(term$columns, ncol(x), colnames(x)), collapse = " ")
    range <- c(range, NA, l)
    rank <- c(rank, NA, rep(sum(seen == key), length(l)))
    seen <- c(seen, key)
  }
  list(range = c(range, NA), rank = c(rank, NA))
}

# Points that fill the unit cube evenly, one a row (Roberts' additive recurrence).
even_points <- function(n, d) {
  root <- stats::uniroot(function(g) g^(d + 1) - g - 1, c(1, 2), tol = 1e-14)$root
  (0.5 + outer(seq_len(n) - 1, root^-seq_len(d))) %% 1
}

# The search. Gives par (named, natural scale), converged, message, evaluations, not_pd, at_bound.
gp_maximise <- function(data, kernel, space, starts, control) {
  check_duplicates(data$x, kernel, space)
  target <- gp_target(data, kernel, space)
  free <- !space$fixed
  low <- log(space$lower[free])
  high <- log(space$upper[free])
  points <- gp_starts(space, target, starts)
  run <- function(from, control) {
    stats::nlminb(from, target$value, target$gradient, lower = low, upper = high,
                  control = control)
  }
  if (nrow(points) > 1L) {
    trials <- lapply(seq_len(nrow(points)), function(i) run(points[i, ], list(iter.max = 10L)))
    points <- trials[[which.min(vapply(trials, `[[`, 0, "objective"))]]$par
  }
  best <- run(as.vector(points), control)
  at_bound <- pmin(best$par - low, high - best$par) < 1e-6
  slope <- target$gradient(best$par)[!at_bound]
  # nlminb() also stops, with other messages, where the likelihood is flat to rounding
  flat <- all(abs(slope) < 1e-6)
  par <- space$value
  par[free] <- exp(best$par)
  counts <- target$counts()
  list(par = stats::setNames(par, space$names), converged = best$convergence == 0L || flat,
       message = best$message, evaluations = counts[["all"]], not_pd = counts[["not_pd"]],
       at_bound = space$names[free][at_bound])
}

# The starting points, on the log scale, one a row, the best first.
gp_starts <- function(space, target, starts) {
  free <- !space$fixed
  d <- sum(free)
  u <- matrix(0.5, 8L * starts, length(free))
  u[, free] <- even_points(nrow(u), d)
  points <- t(apply(u, 1L, space$design))
  if (length(free) == 1L) points <- t(points)
  if (any(!is.na(space$start))) {
    own <- ifelse(is.na(space$start), points[1L, ], space$start)
    points <- rbind(pmin(pmax(own, space$lower), space$upper), points)
  }
  points <- log(points[, free, drop = FALSE])
  values <- apply(points, 1L, target$screen)
  if (all(is.infinite(values))) stop(target$fault())
  order <- order(values)
  if (any(!is.na(space$start)) && is.finite(values[1L])) order <- c(1L, setdiff(order, 1L))
  keep <- order[is.finite(values[order])]
  points[utils::head(keep, starts), , drop = FALSE]
}

# The negative log likelihood by observation, and its gradient, of the logarithms of the free
# parameters; the last evaluation is kept, as the optimiser asks for both at the same place.
gp_target <- function(data, kernel, space) {
  free <- !space$fixed
  n <- length(data$y)
  in_units <- c(grepl("^sd", space$names[-length(space$names)]), TRUE) # those in units of y
  unit <- ifelse(in_units, space$scale, 1)
  centre <- if (is.na(data$mean)) mean(data$y) else data$mean
  f <- new_gp_likelihood((data$y - centre) / space$scale, data$x, kernel,
                         if (is.na(data$mean)) NA_real_ else 0)
  all <- 0L
  not_pd <- 0L
  fault <- NULL
  last <- list(at = NULL)
  evaluate <- function(at, gradient = TRUE) {
    if (identical(at, last$at)) return(last)
    par <- space$value
    par[free] <- exp(at)
    par <- stats::setNames(par / unit, space$names)
    all <<- all + 1L
    value <- tryCatch(f(par, gradient), statcl_error_not_pd = function(e) e)
    if (inherits(value, "condition")) {
      not_pd <<- not_pd + 1L
      fault <<- value
      return(list(at = at, value = Inf, gradient = numeric(length(at))))
    }
    if (!gradient) return(list(value = -as.numeric(value) / n))
    last <<- list(at = at, value = -as.numeric(value) / n,
                  gradient = -(attr(value, "gradient") * par)[free] / n)
    last
  }
  list(screen = function(at) evaluate(at, gradient = FALSE)$value,
       value = function(at) evaluate(at)$value,
       gradient = function(at) evaluate(at)$gradient,
       counts = function() list(all = all, not_pd = not_pd),
       fault = function() {
         fault$message <- paste("the covariance matrix is not positive definite at any starting",
                                "point; a larger lower bound of 'noise' may help")
         fault$call <- user_call()
         fault
       })
}

# Points that coincide have a singular covariance matrix unless there is noise.
check_duplicates <- function(x, kernel, space) {
  if (!identical(space$value[length(space$value)], 0)) return(invisible())
  used <- unlist(lapply(kernel$terms, function(term) {
    find_columns(term$columns, ncol(x), colnames(x))
  }))
  row <- anyDuplicated(x[, unique(used), drop = FALSE])
  if (row == 0L) return(invisible())
  statcl_abort("not_pd", sprintf(paste(
    "row %d of the inputs is equal to an earlier one, and 'noise' is fixed at 0:",
    "let it be estimated"), row), order = row)
}
