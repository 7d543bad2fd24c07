# The parameters of a fit: their meaning, bounds and starting values.

# A data frame with a row for each parameter (those of the kernel, then the noise, or those of
# another family of observations, see response_rows()): name, role
# ("sd", "lengthscale", "alpha", "period", "user", "noise"), log (searched on the log scale), unit
# (if it is measured in units of y: the scale by which the search divides), low, high (bounds),
# from, to (range of starting values), guess (a list of further starting values), value (if it is
# fixed, else NA).
gp_space <- function(problem, start, fixed, lower, upper) {
  kernel <- problem$kernel
  x <- problem$x
  parts <- kernel_parameters(kernel, ncol(x), colnames(x))
  given <- unname(coef(kernel))
  scale <- problem$scale
  unit <- search_scale(problem)
  rows <- lapply(seq_len(nrow(parts)), function(i) {
    parameter_range(parts[i, ], kernel$terms[[parts$term[i]]], x, given[i], scale)
  })
  own <- if (is.null(problem$response)) {
    data.frame(name = "noise", role = "noise", log = TRUE, unit = unit, low = 1e-4 * scale,
               high = 10 * scale, from = 3e-3 * scale, to = 0.7 * scale, flat = FALSE, width = NA)
  } else {
    response_rows(problem$response, scale)
  }
  of_noise <- noise_rows(problem)
  space <- rbind(data.frame(
    name = parts$name, role = parts$role, log = parts$positive,
    unit = ifelse(parts$role == "sd" & parts$degree > 0, unit, 1), do.call(rbind, rows)),
    of_noise$rows, own)
  space <- spread_terms(space, parts, kernel, x)
  none <- rep(NA_real_, length(of_noise$held) + NROW(own))
  held <- c(ifelse(parts$redundant, given, NA), of_noise$held, rep(NA_real_, NROW(own)))
  flat <- space$flat & is.na(held)
  held[flat] <- 1
  space$value <- override(held, fixed, space, "fixed", zero = "noise")
  space$low <- override(space$low, lower, space, "lower")
  space$high <- override(space$high, upper, space, "upper")
  space$start <- override(rep(NA_real_, nrow(space)), start, space, "start")
  space$in_kernel <- c(given, none) # the values in the kernel
  space$guess <- search_guesses(space, parts, problem)
  space$free <- is.na(space$value)
  if (any(space$low >= space$high)) {
    at <- space$name[space$low >= space$high][1L]
    abort_argument("lower", sprintf("the lower bound of '%s' must be less than its upper bound",
                                    at))
  }
  space$flat <- flat & !space$name %in% named_by_column(names(fixed), space$name)
  space
}

# The scale by which the search divides y. For a kernel with k_user() it is not known which
# parameters are in units of y.
search_scale <- function(problem) {
  types <- vapply(problem$kernel$terms, `[[`, "", "type")
  if ("user" %in% types || !is.null(problem$response)) 1 else problem$scale
}

# Warns of parameters that the data do not identify: those of constant columns, which are fixed, and
# white noise of the kernel in addition to 'noise', of which only the sum is identified.
warn_space <- function(space, kernel) {
  if (any(space$flat)) {
    statcl_warning("constant_column", sprintf(paste(
      "%s fixed at 1: the input column is constant, so the data have no information about it"),
      paste(sprintf("'%s'", space$name[space$flat]), collapse = ", ")))
  }
  types <- vapply(kernel$terms, `[[`, "", "type")
  last <- nrow(space)
  if (!"white" %in% types || any(kernel$program == -1L) || space$name[last] != "noise") {
    return(invisible())
  }
  white <- paste0("sd", if (length(types) > 1L) which(types == "white")[1L] else "")
  if (space$free[last] && space$free[match(white, space$name)]) {
    statcl_warning("white", sprintf(paste("the white noise of the kernel and 'noise' cannot be",
                                          "distinguished: fix one of them, for example with fixed",
                                          "= c(%s = 1)"), white))
  }
}

# One row of the table: bounds, range of starting values, whether the likelihood is independent of
# the parameter, and for a lengthscale the range of its input, which determines its penalty.
parameter_range <- function(part, term, x, given, scale) {
  used <- find_columns(term$columns, ncol(x), colnames(x))
  if (!is.null(term$distance)) {
    x <- sphere_points(x, used) # km
    used <- 1:3
  }
  # without row names, which take longer than the numbers
  width <- vapply(used, function(k) max(x[, k]) - min(x[, k]), 0)
  flat <- all(width == 0)
  reach <- if (is.na(part$column)) sqrt(sum(width^2)) else
    width[match(part$column, used)] * sqrt(length(used))
  if (!is.na(part$column)) flat <- width[match(part$column, used)] == 0
  if (length(reach) != 1L || is.na(reach) || reach == 0) reach <- 1
  of_factor <- length(used) > 0L && all(used %in% factor_columns(term, ncol(x), colnames(x)))
  limits <- switch(part$role,
    lengthscale = if (part$type == "periodic") c(1e-2, 100, 0.3, 3) else
      if (of_factor) c(0.02, 1e4, 0.15, 5) else
      reach * c(1e-3, 1e6, least_start(x, used, reach), 1),
    period = {
      least <- least_period(x, used, reach, given)
      c(least, 10 * reach, max(least, 0.05 * reach), 0.7 * reach)
    },
    alpha = c(1e-2, 1e3, 0.3, 5),
    user = if (part$positive) given * c(1e-3, 1e3, 0.3, 3) else
      c(-Inf, Inf, given - 0.5 * max(abs(given), 1), given + 0.5 * max(abs(given), 1)),
    sd_range(part, term, x, used, scale))
  data.frame(low = limits[1L], high = limits[2L], from = limits[3L], to = limits[4L],
             flat = flat && part$role %in% c("lengthscale", "period"),
             width = if (part$role != "lengthscale" || part$type == "periodic") NA else
               if (of_factor) 1 else reach / sqrt(length(used)))
}

# The smallest lengthscale at which a search starts, relative to the reach: of one column about the
# distance between neighbours.
least_start <- function(x, used, reach) {
  least <- if (length(used) == 1L) typical_gap(x[, used]) / reach else
    3 * nrow(x)^(-1 / length(used))
  min(max(least, 3e-3), 0.05)
}

# The smallest period of a search: two steps if values are multiples of one step. A shorter one has
# the same covariances at the data as some longer one, and differs between them. The bound is lower
# if a shorter one was given.
least_period <- function(x, used, reach, given) {
  if (length(used) == 1L) {
    t <- sort(unique(x[, used])) - min(x[, used])
    step <- min(diff(t), reach)
    even <- all(abs(t / step - round(t / step)) < 1e-3)
    if (even && 2 * step < 0.5 * reach && (given == 1 || given >= 2 * step)) return(2 * step)
  }
  1e-3 * reach
}

# The sd of a linear kernel is in units of y divided by units of x.
sd_range <- function(part, term, x, used, scale) {
  unit <- if (part$degree > 0) scale else 1
  if (part$type == "linear") {
    at <- if (is.na(part$column)) used else part$column
    centre <- rep_len(if (is.null(term$center)) 0 else term$center, length(used))
    size <- max(abs(sweep(x[, at, drop = FALSE], 2L, centre[match(at, used)])))
    if (size > 0) unit <- unit / size
  }
  unit * c(1e-3, 1e3, 0.3, 2)
}

# Terms of one type with the same columns start at different lengthscales.
spread_terms <- function(space, parts, kernel, x) {
  columns <- vapply(kernel$terms, function(term) {
    paste(c(term$type == "periodic", find_columns(term$columns, ncol(x), colnames(x))),
          collapse = " ")
  }, "")
  rank <- vapply(seq_along(columns), function(i) sum(columns[seq_len(i - 1L)] == columns[i]), 0)
  at <- which(parts$role == "lengthscale" & parts$type != "periodic")
  factor <- 0.25^rank[parts$term[at]]
  space$from[at] <- space$from[at] * factor
  space$to[at] <- space$to[at] * factor
  space
}

# Replaces defaults by the named values of one argument.
override <- function(defaults, given, space, argument, zero = character()) {
  if (is.null(given)) return(defaults)
  names <- space$name
  if (!is.null(names(given))) names(given) <- named_by_column(names(given), names)
  if (!is.numeric(given) || is.null(names(given)) || !all(names(given) %in% names)) {
    abort_argument(argument, sprintf(paste("'%s' must be a vector named by parameter; the",
                                           "parameters are %s"), argument,
                                     paste(names, collapse = ", ")))
  }
  positive <- space$log[match(names(given), names)]
  wrong <- is.na(given) | (!is.finite(given) & argument %in% c("fixed", "start")) |
    (positive & (given < 0 | (given == 0 & !names(given) %in% zero)))
  if (any(wrong)) {
    abort_argument(argument, sprintf("values of '%s' must be positive and finite", argument))
  }
  defaults[match(names(given), names)] <- given
  defaults
}

# ---- between the search and the parameters -------------------------------------------------------

# The free parameters on the scale of the search: logarithms, or unchanged.
search_point <- function(space, par) {
  free <- space$free
  to_search(par[free], space$log[free])
}

to_search <- function(v, logged) replace(v, logged, log(v[logged]))

# All parameters (on the scale of y) at a point of the search.
search_parameters <- function(space, at) {
  par <- space$value
  free <- space$free
  par[free] <- ifelse(space$log[free], exp(at), at)
  par
}

# d parameter / d point of the search.
search_slope <- function(space, par) ifelse(space$log, par, 1)[space$free]

# Bounds on the scale of the search.
search_bounds <- function(space) {
  free <- space$free
  bound <- function(v) {
    logged <- space$log[free]
    v <- v[free]
    v[logged] <- log(v[logged])
    v
  }
  list(lower = bound(space$low), upper = bound(space$high))
}

# The argument 'prior' for the parameters `names`: list(by (the prior of each, or NULL), value
# (function(par): list(value, gradient), on the natural scale)). An element is named by parameter or
# by kind of parameter ("lengthscale" for lengthscale2.1); the name of the parameter takes
# precedence.
gp_prior <- function(prior, names, fixed) {
  named <- length(prior) == 0L || !is.null(names(prior))
  if (!is.list(prior) || !named || anyDuplicated(names(prior))) {
    abort_argument("prior", "'prior' must be a list named by parameter")
  }
  kinds <- parameter_kind(names)
  if (!is.null(names(prior))) names(prior) <- named_by_column(names(prior), names)
  unknown <- setdiff(names(prior), c(names, kinds))
  if (length(unknown) > 0L) {
    abort_argument("prior", sprintf(paste("'prior' names an unknown parameter, '%s'; the",
                                          "parameters are %s"), unknown[1L],
                                    paste(names, collapse = ", ")))
  }
  by <- lapply(seq_along(names), function(i) {
    if (fixed[i]) return(NULL)
    found <- prior[[names[i], exact = TRUE]]
    if (is.null(found)) found <- prior[[kinds[i], exact = TRUE]]
    if (is.null(found)) NULL else check_prior(found, names[i])
  })
  value <- function(par) {
    total <- 0
    gradient <- numeric(length(par))
    for (i in which(lengths(by) > 0L)) {
      one <- prior_at(by[[i]], par[[i]], names[i])
      total <- total + one[1L]
      gradient[i] <- one[2L]
    }
    list(value = total, gradient = gradient)
  }
  list(by = stats::setNames(by, names), value = value)
}
