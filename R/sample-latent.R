# cl_laplace(random = ): the posterior of a model with a latent field in the manner of INLA (Rue,
# Martino and Chopin 2009). The field x is integrated out by Laplace's approximation
# (R/laplace-mode.R); what is left is a density of few hyperparameters theta, which is explored on a
# design of points. With theta* its mode and K its negative Hessian there, points are theta* + A z
# with A A' = K^-1: `drop` is by how much the log density at z is below that at the mode, -z'z / 2
# for a normal distribution.

# The result, from an open model m (R/sample-optimise.R).
latent_posterior <- function(m, random, design, draws, resample) {
  check_flag(resample, "resample")
  o <- latent_state(m, random)
  top <- hyper_mode(o)
  points <- latent_design(o, top, latent_kind(design, length(o$fixed)))
  points <- c(points, latent_components(m, o, points))
  points <- corrected_design(m, o, points)
  latent_result(m, o, top, points, draws, resample)
}

# ---- the model -----------------------------------------------------------------------------------

# The state of R/laplace-mode.R for the density of the unconstrained vector.
latent_state <- function(m, random) {
  layout <- m$layout
  names <- free_names(layout)
  o <- new.env(parent = emptyenv())
  o$start <- m$starts[[1L]]
  stem <- sub("\\[.*", "", names)
  if (!is.character(random) || !all(random %in% c(names, stem))) {
    abort_argument("random", sprintf("'random' must be names of parameters: %s",
                                     paste0("'", utils::head(unique(stem), 10L), "'",
                                            collapse = ", ")))
  }
  o$random <- which(names %in% random | stem %in% random)
  o$fixed <- setdiff(seq_along(names), o$random)
  o$names <- names
  if (length(o$fixed) > most_hyper) {
    abort_argument("random", sprintf(paste(
      "'random' leaves %d parameters, at most %d can be explored: coefficients with a normal prior",
      "belong to the field, too"), length(o$fixed), most_hyper))
  }
  compile_latent(o, m$density, layout)
  o$inner <- o$start[o$random]
  o$last_z <- o$start
  if (is.null(tmb_sparse(o))) tmb_blocks(o)
  o
}

most_hyper <- 20L

# o$log_density, a cl_gradient() of the unconstrained numbers in their order, and o$point in the
# form that it takes.
compile_latent <- function(o, f, layout, argument = "random") {
  state <- environment(f)
  whole <- inherits(f, "cl_gradient") && !state$retrace && length(layout$blocks) == 0L &&
    !is.null(state$program) && is.null(program_order(state, layout))
  if (whole) {
    o$log_density <- f
    o$point <- list(values = state$like, listed = state$listed)
    return(invisible())
  }
  parts <- if (inherits(f, "cl_log_posterior")) state$terms else list(f)
  traceable <- vapply(parts, inherits, NA, c("cl_gradient", "cl_likelihood", "formula"))
  terms <- if (all(traceable)) density_terms(f, layout)
  if (is.null(terms) || inherits(f, "cl_gradient") && state$retrace) {
    abort_argument(argument, sprintf(paste("'%s' needs a density that can be compiled: a",
                                           "cl_gradient(), a cl_tmb(), a cl_stan() or a",
                                           "cl_log_posterior() of formulas and these"), argument))
  }
  model <- unconstrained_model(terms, layout)
  o$log_density <- cl_gradient(structure(model, masks = transform_masks(layout)))
  environment(o$log_density)$overrides <- density_overrides(f)
  o$point <- list(values = list(u = o$start), listed = FALSE)
}

# ---- the mode of the hyperparameters -------------------------------------------------------------

# list(value, gradient) of the log density of theta; -Inf where the field has no mode.
latent_at <- function(o, theta) {
  value <- laplace_value(o, theta)
  if (!is.finite(value)) return(list(-Inf, numeric(length(theta))))
  slope <- laplace_slope(o, theta)
  if (!all(is.finite(slope))) return(list(-Inf, numeric(length(theta))))
  list(-value, -slope)
}

# list(theta, value, x: the mode of the field there, a: the matrix A, hessian).
hyper_mode <- function(o) {
  start <- o$start[o$fixed]
  require_mode(o, start, "init")
  if (length(start) == 0L) {
    return(list(theta = start, value = -laplace_value(o, start), x = tmb_mode(o, start)$z[o$random],
                a = matrix(0, 0L, 0L), hessian = matrix(0, 0L, 0L)))
  }
  found <- find_mode(function(theta) latent_at(o, theta), start)
  parts <- eigen(-found$hessian, symmetric = TRUE)
  flat <- !all(is.finite(parts$values)) || min(parts$values) <= 1e-10 * max(parts$values, 1e-10)
  if (flat || !found$converged) abort_flat(o, found$u, parts$vectors[, ncol(parts$vectors)])
  list(theta = found$u, value = found$value, x = require_mode(o, found$u, "init")$z[o$random],
       a = parts$vectors %*% diag(1 / sqrt(parts$values), length(start)),
       hessian = -found$hessian)
}

# The error for hyperparameters whose density does not fall off from `theta` on along a direction.
abort_flat <- function(o, theta, direction, drop = NULL) {
  at <- which.max(abs(direction))
  name <- o$names[o$fixed[at]]
  statcl_abort("density", sprintf(paste(
    "the density of the hyperparameters has no %s: it does not fall off along '%s'%s on the",
    "unconstrained scale%s; give '%s' a proper prior, or one that keeps it away from its bounds"),
    if (is.null(drop)) "mode" else "finite integral", name,
    sprintf(", up to %s", format(theta[at], digits = 3L)),
    if (is.null(drop)) "" else sprintf(", where it is exp(%.2g) times that of the mode", -drop),
    name), argument = "log_density", parameter = name)
}

# ---- the design ----------------------------------------------------------------------------------

latent_kind <- function(design, p) {
  design <- check_choice(design, c("auto", "grid", "ccd", "mode"), "design")
  if (p == 0L) return("mode")
  if (design == "auto") return(if (p <= 2L) "grid" else "ccd")
  if (design == "grid" && p > 2L) {
    abort_argument("design", sprintf("a grid is for up to 2 hyperparameters, not %d: use \"ccd\"",
                                     p))
  }
  design
}

# The points of the design with weights, and all that is known of the density of theta:
# list(kind, step, z, theta, drop, weight, x (columns: points), known: list(z, drop) of all points,
# axes: profiles along the axes, log_volume: of the integral relative to the density at the mode).
latent_design <- function(o, top, kind) {
  seen <- new.env(parent = emptyenv())
  visit <- function(z, from = top$x) {
    o$inner <- from
    theta <- top$theta + as.vector(top$a %*% z)
    value <- laplace_value(o, theta)
    found <- list(z = z, theta = theta, drop = if (is.finite(value)) top$value + value else Inf,
                  x = o$inner)
    seen$all <- c(seen$all, list(found))
    found
  }
  p <- length(top$theta)
  abort <- function(point) abort_flat(o, point$theta, as.vector(top$a %*% point$z), point$drop)
  made <- switch(kind,
    mode = list(points = list(visit(numeric(p))), volume = (2 * pi)^(p / 2),
                axes = rep(list(list(z = -12:12 / 2, drop = (-12:12 / 2)^2 / 2)), p)),
    grid = grid_design(visit, p, abort),
    ccd = composite_design(visit, p, abort, top$x))
  weight <- exp(-column(made$points, "drop")) * made$volume
  keep <- weight > 1e-7 * sum(weight)
  points <- made$points[keep]
  rows <- function(all, name) matrix(unlist(lapply(all, `[[`, name)), ncol = length(all))
  list(kind = kind, step = made$step, axes = made$axes, z = rows(points, "z"),
       theta = rows(points, "theta"), x = rows(points, "x"),
       weight = weight[keep] / sum(weight[keep]),
       known = list(z = rows(seen$all, "z"), drop = column(seen$all, "drop")),
       log_volume = log(sum(weight)) - as.vector(determinant(top$hessian)$modulus) / 2)
}

# The design with the error of Laplace's approximation taken out: the logarithm of the mean weight
# of draws of the field, from the same random numbers at all points, is a polynomial of degree 2 in
# z. It stays as it is where the weights are too uneven to be averaged.
corrected_design <- function(m, o, design) {
  some <- utils::head(order(-design$weight), 60L)
  some <- some[design$weight[some] > 1e-3 * max(design$weight)]
  z <- matrix(stats::rnorm(length(o$random) * max(10, weighted_pairs %/% length(some))),
              length(o$random))
  gains <- vapply(some, function(k) {
    mean_weight(latent_draws(m, o, design, k, cbind(z, -z))$ratio)
  }, 0)
  if (anyNA(gains)) return(design)
  p <- nrow(design$z)
  pairs <- if (design$kind == "grid") all_pairs(p) else cbind(seq_len(p), seq_len(p))
  terms <- function(z) polynomial_terms(z, pairs)
  by <- stats::lm.wfit(terms(design$z[, some, drop = FALSE]), gains, design$weight[some])
  by <- ifelse(is.na(by$coefficients), 0, by$coefficients)
  gain <- function(z) as.vector(terms(z) %*% replace(by, 1L, 0))
  weight <- design$weight * exp(gain(design$z))
  design$known$drop <- design$known$drop - gain(design$known$z)
  for (k in seq_along(design$axes)) {
    z <- matrix(0, p, length(design$axes[[k]]$z))
    z[k, ] <- design$axes[[k]]$z
    design$axes[[k]]$drop <- design$axes[[k]]$drop - gain(z)
  }
  design$log_volume <- design$log_volume + log(sum(weight)) + by[[1L]]
  design$weight <- weight / sum(weight)
  design
}

# The terms of a polynomial of degree 2 in z, whose columns are points, with products of `pairs`.
polynomial_terms <- function(z, pairs) {
  cbind(rep(1, ncol(z)), t(z), t(z[pairs[, 1L], , drop = FALSE] * z[pairs[, 2L], , drop = FALSE]))
}

all_pairs <- function(p) which(upper.tri(diag(p), TRUE), arr.ind = TRUE)

weighted_pairs <- 4000L # of draws, at all points together

# log(mean(exp(ratio))); NA if few of the weights make up most of the sum.
mean_weight <- function(ratio) {
  w <- exp(ratio - max(ratio))
  if (!all(is.finite(w)) || sum(w)^2 < 0.02 * length(w) * sum(w^2)) return(NA)
  log(mean(w)) + max(ratio)
}

# Draws at point k of the design, from z of independent standard normal distributions: list(u:
# unconstrained draws in columns, ratio: the log density of the field given theta relative to its
# approximation).
latent_draws <- function(m, o, design, k, z) {
  o$inner <- design$x[, k]
  mode <- require_mode(o, design$theta[, k], "init")
  u <- matrix(mode$z, length(mode$z), ncol(z))
  u[o$random, ] <- design$mean[, k] + effects_half_solve(o, mode$step$factor, z)
  list(u = u, ratio = densities_at(m, u) - normal_log_density(z) + mode$value -
         length(o$random) * log(2 * pi) / 2)
}

column <- function(points, name) vapply(points, `[[`, 0, name)

grid_fall <- 9       # drop at which a grid ends
grid_points <- 1500L # of a grid, beyond which the density does not fall off
grid_extent <- 60    # in units of z

# All points of a lattice that are neighbours of points with a small drop. The trapezoidal rule is
# accurate to the last digits for a normal density with steps up to 1.
grid_design <- function(visit, p, abort) {
  step <- if (p == 1L) 0.5 else 1
  points <- list(visit(numeric(p)))
  lattice <- list(integer(p))
  known <- new.env(parent = emptyenv())
  known[[paste(lattice[[1L]], collapse = " ")]] <- TRUE
  at <- 1L
  while (at <= length(points)) {
    here <- points[[at]]
    if (here$drop < grid_fall) {
      if (at > grid_points || max(abs(here$z)) > grid_extent) abort(here)
      for (k in seq_len(p)) for (by in c(-1L, 1L)) {
        to <- replace(lattice[[at]], k, lattice[[at]][k] + by)
        key <- paste(to, collapse = " ")
        if (!is.null(known[[key]])) next
        known[[key]] <- TRUE
        lattice <- c(lattice, list(to))
        points <- c(points, list(visit(step * to, here$x)))
      }
    }
    at <- at + 1L
  }
  list(points = points, step = step, volume = rep(step^p, length(points)))
}

# The central composite design: the mode, two points on each axis, and corners of a fractional
# factorial design of resolution V, on a sphere of radius f0 sqrt(p) (Sanchez and Sanchez 2005). The
# unit on either half of an axis is the standard deviation that the drop there implies. Weights give
# a normal distribution its total and its variances.
composite_design <- function(visit, p, abort, centre) {
  axes <- lapply(seq_len(p), function(k) axis_profile(visit, p, k, abort, centre))
  unit <- vapply(axes, `[[`, numeric(2L), "unit")
  f0 <- 1.1
  axial <- f0 * sqrt(p) * cbind(diag(p), -diag(p))
  corners <- f0 * t(fractional_factorial(p))
  z <- cbind(0, axial, corners)
  size <- matrix(rep(colMeans(unit), ncol(z)), p)
  size[z < 0] <- unit[1L, ][row(z)[z < 0]]
  size[z > 0] <- unit[2L, ][row(z)[z > 0]]
  points <- lapply(seq_len(ncol(z)), function(j) visit(z[, j] * size[, j]))
  relative <- c(1 - 1 / f0^2, rep(exp(p * f0^2 / 2) / ((ncol(z) - 1) * f0^2), ncol(z) - 1L))
  list(points = points, axes = axes,
       volume = (2 * pi)^(p / 2) * relative * apply(size, 2L, prod))
}

# Corners in rows, -1 or 1: columns of a Hadamard matrix of which no product of up to four is
# constant, so that no two products of two columns are equal.
fractional_factorial <- function(p) {
  index <- integer()
  products <- 0L # of up to three columns, by their indices
  next_one <- 1L
  while (length(index) < p) {
    while (next_one %in% products) next_one <- next_one + 1L
    two <- c(0L, index, if (length(index) > 1L) utils::combn(index, 2L, function(i) {
      bitwXor(i[1L], i[2L])
    }))
    products <- unique(c(products, bitwXor(two, next_one)))
    index <- c(index, next_one)
  }
  runs <- seq_len(2^ceiling(log2(max(index) + 1))) - 1L
  outer(runs, index, Vectorize(function(i, j) 1 - 2 * sum(intToBits(bitwAnd(i, j)) == 1L) %% 2))
}

# The drop along axis k, from the mode `centre` of the field on: list(z, drop, unit: the standard
# deviations below and above the mode).
axis_profile <- function(visit, p, k, abort, centre) {
  z <- drop <- numeric()
  unit <- numeric(2L)
  for (side in 1:2) {
    at <- 0
    by <- sqrt(2) / 2
    here <- list(x = centre)
    repeat {
      at <- at + by
      here <- visit(replace(numeric(p), k, c(-1, 1)[side] * at), here$x)
      z <- c(z, here$z[k])
      drop <- c(drop, here$drop)
      if (abs(at - sqrt(2)) < 1e-9) unit[side] <- min(max(1 / sqrt(max(here$drop, 0)), 0.2), 5)
      if (here$drop > grid_fall) break
      if (at > grid_extent) abort(here)
      if (at > 4) by <- 1.5 * by
    }
    if (unit[side] == 0) unit[side] <- max(at / sqrt(2 * min(here$drop, 50)), 0.2)
  }
  order <- order(c(z, 0))
  list(z = c(z, 0)[order], drop = c(drop, 0)[order], unit = unit)
}
