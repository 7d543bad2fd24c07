# Results of cl_laplace(random = ): draws, summaries, densities.

# ---- draws ---------------------------------------------------------------------------------------

# list(u, ratio) as of latent_draws(), from the points of the design by their weights.
mixed_draws <- function(m, o, design, count) {
  at <- sort(sample.int(length(design$weight), count, TRUE, design$weight))
  parts <- lapply(unique(at), function(k) {
    z <- matrix(stats::rnorm(length(o$random) * sum(at == k)), length(o$random))
    latent_draws(m, o, design, k, z)
  })
  list(u = do.call(cbind, lapply(parts, `[[`, "u")), ratio = unlist(lapply(parts, `[[`, "ratio")))
}

# The hyperparameters of draws, which have the values of the design, with their continuous marginal
# distributions: by their ranks, ties at random.
spread_hyper <- function(values, marginal) {
  n <- length(values)
  density_quantiles(marginal, (rank(values, ties.method = "random") - stats::runif(n)) / n)
}

# ---- the result ----------------------------------------------------------------------------------

latent_result <- function(m, o, top, design, draws, resample) {
  at_mode <- replace(replace(numeric(length(o$start)), o$random, top$x), o$fixed, top$theta)
  layout <- drawn_layout(m$layout)
  from <- element_sources(m$layout, o, at_mode)
  hyper <- lapply(seq_along(o$fixed), function(j) {
    d <- design_marginal(design, top$a[j, ])
    d$x <- d$x + top$theta[j]
    at <- matrix(at_mode, length(at_mode), length(d$x))
    at[o$fixed[j], ] <- d$x
    mine <- match(o$fixed[j], from)
    if (!is.na(mine)) d$value <- constrain_draws(m$layout, at)[mine, ]
    d
  })
  drawn <- mixed_draws(m, o, design, draws)
  weights <- smooth_weights(drawn$ratio)
  chosen <- if (resample) sample.int(draws, draws, TRUE, exp(weights$log)) else sample.int(draws)
  u <- drawn$u[, chosen, drop = FALSE]
  for (j in seq_along(hyper)) u[o$fixed[j], ] <- spread_hyper(u[o$fixed[j], ], hyper[[j]])
  x <- constrain_draws(m$layout, u)
  array <- array(t(x), c(ncol(x), 1L, nrow(x)),
                 list(iteration = NULL, chain = NULL, parameter = layout$names))
  structure(c(list(
    draws = array, log_weights = if (resample) weights$log else weights$log[chosen],
    khat = weights$khat, resampled = resample,
    method = sprintf("nested Laplace approximations, %s", design_text(design)),
    log_marginal = top$value + design$log_volume, random = o$random, fixed = o$fixed,
    from = from, hyper = hyper, mode = at_mode,
    precision = joint_numbers(o, top$theta, top$hessian),
    design = design[c("kind", "z", "theta", "weight", "mean", "sd", "skew")]),
    model_figures(m)), class = c("cl_latent", "cl_approximation", "cl_sample"))
}

design_text <- function(design) {
  count <- count_of(length(design$weight), "point")
  switch(design$kind, grid = sprintf("a grid of %s", count),
         ccd = sprintf("a composite design of %s", count), mode = "at the mode")
}

# For each element of a draw the unconstrained number that determines it, NA if that is not one
# alone, or if it is one of the field and transformed. They have the same name, and keep that value
# when all others move.
element_sources <- function(layout, o, u) {
  from <- match(drawn_layout(layout)$names, free_names(layout))
  moved <- u + 0.1 * sin(seq_along(u))
  keeps <- matrix(moved, length(u), 1L + length(o$fixed))
  keeps[cbind(o$fixed, 1L + seq_along(o$fixed))] <- u[o$fixed]
  x <- constrain_draws(layout, cbind(u, keeps))
  known <- which(!is.na(from))
  column <- 2L + match(from[known], o$fixed)
  one <- from[known]
  alone <- ifelse(is.na(column), x[known, 1L] == u[one] & x[known, 2L] == moved[one],
                  abs(x[cbind(known, ifelse(is.na(column), 1L, column))] - x[known, 1L]) <=
                    1e-12 * abs(x[known, 1L]) & x[known, 2L] != x[known, 1L])
  from[known[!alone %in% TRUE]] <- NA
  from
}

# ---- marginal distributions ----------------------------------------------------------------------

# list(mean, sd, quantiles, mode, density: list(x, y)) of element i of a draw.
latent_marginal <- function(object, i, probs) {
  j <- object$from[i]
  if (is.na(j)) return(drawn_marginal(object$draws[, 1L, i], probs))
  k <- match(j, object$fixed)
  if (!is.na(k) && !is.null(object$hyper[[k]]$value)) {
    return(hyper_marginal(object$hyper[[k]], probs))
  }
  row <- match(j, object$random)
  d <- object$design
  density <- field_density(d$mean[row, ], d$sd[row, ], d$skew[row, ], d$weight)
  mean <- sum(d$weight * d$mean[row, ])
  list(mean = mean, sd = sqrt(sum(d$weight * (d$sd[row, ]^2 + (d$mean[row, ] - mean)^2))),
       quantiles = density_quantiles(density, probs), mode = marginal_mode(density),
       density = density)
}

# From the density of the unconstrained number, and the values that belong to its points.
hyper_marginal <- function(h, probs) {
  fine <- finer_density(h)
  value <- stats::spline(h$x, h$value, xout = fine$x)$y
  y <- fine$y / abs(stats::splinefun(h$x, h$value)(fine$x, deriv = 1L))
  mass <- fine$y / sum(fine$y)
  mean <- sum(mass * value)
  if (value[1L] > value[2L]) probs <- 1 - probs
  order <- order(value)
  some <- order[seq(1L, length(order), by = 4L)]
  width <- diff(range(fine$x)) / (length(fine$x) - 1)
  list(mean = mean, sd = sqrt(sum(mass * (value - mean)^2)),
       quantiles = stats::spline(h$x, h$value, xout = density_quantiles(h, probs))$y,
       mode = value[which.max(y)],
       density = list(x = value[some], y = y[some] / (sum(fine$y) * width)))
}

drawn_marginal <- function(x, probs) {
  density <- stats::density(x)[c("x", "y")]
  list(mean = mean(x), sd = stats::sd(x), quantiles = stats::quantile(x, probs, names = FALSE),
       mode = density$x[which.max(density$y)], density = density)
}

#' @rdname cl_laplace
#' @param parameters,probs As for [summary()][cl_sample-methods] of samples.
#' @export
summary.cl_latent <- function(object, parameters = NULL, probs = c(0.05, 0.5, 0.95), ...) {
  if (!is.numeric(probs) || anyNA(probs) || any(probs < 0 | probs > 1)) {
    abort_argument("probs", "'probs' must be numbers between 0 and 1")
  }
  all <- dimnames(object$draws)[[3L]]
  names <- pick_names(all, parameters, "parameter")
  rows <- lapply(match(names, all), function(i) {
    d <- latent_marginal(object, i, probs)
    c(d$mean, d$sd, d$quantiles, d$mode)
  })
  table <- as.data.frame(do.call(rbind, rows))
  names(table) <- c("mean", "sd", sprintf("%g%%", 100 * probs), "mode")
  structure(cbind(parameter = names, table, stringsAsFactors = FALSE),
            class = c("summary.cl_sample", "data.frame"), engine = object$engine)
}

#' @rdname cl_laplace
#' @param parameter Name of a parameter.
#' @importFrom stats density
#' @export
density.cl_latent <- function(x, parameter, ...) {
  all <- dimnames(x$draws)[[3L]]
  if (!is.character(parameter) || length(parameter) != 1L || !parameter %in% all) {
    abort_argument("parameter", sprintf("'parameter' must be the name of one element, such as '%s'",
                                        all[1L]))
  }
  d <- latent_marginal(x, match(parameter, all), 0.5)$density
  structure(list(x = d$x, y = d$y, bw = 0, n = length(x$design$weight), call = sys.call(),
                 data.name = parameter, has.na = FALSE), class = "density")
}

#' @rdname cl_laplace
#' @export
print.cl_latent <- function(x, digits = 3L, rows = 10L, ...) {
  cat(sprintf("posterior of %s and %s by %s%s\n", count_of(length(x$fixed), "hyperparameter"),
              count_of(length(x$random), "latent value"), x$method,
              if (x$resampled) ", draws resampled" else ""))
  all <- dimnames(x$draws)[[3L]]
  order <- order(!x$from %in% x$fixed) # hyperparameters first
  shown <- all[utils::head(order, rows)]
  table <- summary(x, shown, ...)
  attr(table, "engine") <- NULL # printed below
  print(table[match(shown, table$parameter), ], digits = digits)
  if (length(all) > rows) cat(sprintf("... and %d more\n", length(all) - rows))
  cat(sprintf("%s in %.1f s; log marginal likelihood %s; %s, Pareto k %s\n", evaluations_text(x),
              x$elapsed, format(x$log_marginal, digits = 7L), count_of(nrow(x$draws), "draw"),
              if (is.na(x$khat)) "unknown (needs the package loo)" else sprintf("%.2f", x$khat)),
      engine_line(x$engine), sep = "")
  invisible(x)
}

#' @rdname cl_laplace
#' @param max Maximum number of parameters that `plot()` shows.
#' @export
plot.cl_latent <- function(x, parameters = NULL, max = 6, ...) {
  all <- dimnames(x$draws)[[3L]]
  names <- if (is.null(parameters)) all[order(!x$from %in% x$fixed)] else
    pick_names(all, parameters, "parameter")
  names <- utils::head(names, check_count(max, "max", 1))
  old <- graphics::par(mfrow = grDevices::n2mfrow(length(names)))
  on.exit(graphics::par(old))
  for (name in names) {
    plot(density.cl_latent(x, name), main = name, xlab = "", zero.line = FALSE, ...)
  }
  invisible(x)
}
