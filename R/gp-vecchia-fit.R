# Fits by Vecchia's approximation: their starting points, and the approximation that they keep.

# The problem with its approximation; `neighbours`: NULL, or their number.
with_vecchia <- function(problem, neighbours, method, grouped = FALSE) {
  if (is.null(neighbours)) return(problem)
  if (method %in% c("loo", "mcmc")) {
    refuse_vecchia("method", sprintf("method = \"%s\"", method))
  }
  if (has_user(problem$kernel)) refuse_vecchia("kernel", "k_user()")
  problem$vecchia <- list(neighbours = neighbours, grouped = grouped,
                          scale = vecchia_scale(problem$kernel, problem$x))
  problem
}

# The likelihood of a problem, as gp_function().
vecchia_function <- function(problem, scale) {
  mean <- if (problem$mean$kind == "number") 0 else mean_argument(problem$mean)
  data <- gp_observations((problem$y - problem$mean$centre) / scale, problem$x, problem$kernel)
  spread <- gp_spread(problem$weights,
                      if (!is.null(problem$variance)) problem$variance / scale^2, nrow(data$x))
  make_vecchia_likelihood(data, problem$kernel, gp_trend(mean, problem$beta, data$x, 1L), spread,
                          problem$vecchia$neighbours, isTRUE(problem$vecchia$grouped),
                          scale = problem$vecchia$scale)
}

# Rows for a first fit without approximation: half of them spread over the data, half of them close
# to a few points, since short distances determine noise and smoothness.
vecchia_rows <- function(x, scale, size = 500) {
  n <- nrow(x)
  if (n <= size) return(seq_len(n))
  spread <- order((seq_len(min(n, 1e6)) * 0.6180339887498949) %% 1)[seq_len(size / 2)]
  if (n > 1e6) spread <- round(spread * (n / 1e6))
  at <- t(x) * scale
  close <- lapply(spread[seq_len(10L)], function(i) {
    nearest(colSums((at - at[, i])^2), size / 20)
  })
  sort(unique(c(spread, unlist(close))))
}

# Indices of the `count` smallest numbers, the smallest first.
nearest <- function(v, count) {
  near <- which(v <= sort(v, partial = count)[count])
  utils::head(near[order(v[near])], count)
}

# The problem of some rows only, without approximation; NULL if they do not identify the mean.
some_rows <- function(problem, rows) {
  trend <- problem$mean
  if (!is.null(trend$basis)) {
    trend$basis <- trend$basis[rows, , drop = FALSE]
    if (qr(trend$basis)$rank < ncol(trend$basis)) return(NULL)
  }
  trend$centre <- trend$centre[rows]
  problem[c("mean", "y", "x", "weights", "variance", "vecchia")] <-
    list(trend, problem$y[rows], problem$x[rows, , drop = FALSE], problem$weights[rows],
         problem$variance[rows], NULL)
  if (!is.null(problem$response)) problem$response <- response_subset(problem$response, rows)
  problem
}

# A small computation, on the host unless the user asked for a device, which would build kernels.
small_on_host <- function(expr) {
  if (session$engine == "auto") with_cl(expr, engine = "host") else expr
}

# As gp_search(), with the element `vecchia`: the approximation in which it ended. The search starts
# from a fit of some rows, whose lengthscales are the units of distances; if the final ones have
# another ratio, there is a second search with new neighbours.
vecchia_search <- function(problem, space, prior, starts, control, progress, workers) {
  check_duplicates(problem, space)
  if (!any(space$free)) {
    problem$vecchia$scale <- vecchia_at(problem, space$value)
    return(c(search_nothing(problem, space, prior, "ml"), list(vecchia = problem$vecchia)))
  }
  some <- some_rows(problem, vecchia_rows(kernel_points(problem$kernel, problem$x),
                                             problem$vecchia$scale))
  if (is.null(some)) {
    abort_argument("mean", "the columns of the mean are too rare among the observations")
  }
  if (progress && interactive()) {
    message(sprintf("cl_gp: first a fit of %d observations", length(some$y)))
  }
  # on the host: a device would spend seconds on kernels that nothing else needs
  first <- small_on_host(gp_search(some, space, prior, "ml", starts, control, progress, workers))
  par <- first$par
  bounds <- search_bounds(space)
  counts <- c(first$evaluations, first$not_pd)
  for (round in 1:2) {
    problem$vecchia$scale <- vecchia_at(problem, par)
    target <- gp_target(problem, space, prior, "ml", search_reporter(progress))
    from <- pmin(pmax(search_point(space, par), bounds$lower), bounds$upper)
    if (!is.finite(target$screen(from))) stop(target$fault())
    best <- tryCatch(if (is.null(target$hessian)) {
      # in the units of the curvature of the first fit
      scale <- small_on_host(curvature_scale(
        gp_target(some, space, prior, "ml", function(...) NULL), from, bounds))
      stats::nlminb(from, target$value, target$gradient, scale = scale, lower = bounds$lower,
                    upper = bounds$upper, control = control)
    } else {
      scoring_search(target, from, bounds, control)
    }, interrupt = function(e) list(message = "interrupted", convergence = 1L))
    at <- if (is.null(best$par)) target$best() else best$par
    found <- search_result(space, target, best, at)
    counts <- counts + c(found$evaluations, found$not_pd)
    par <- found$par
    now <- vecchia_at(problem, par)
    old <- problem$vecchia$scale
    change <- (now / max(now)) / (old / max(old))
    if (found$message == "interrupted" || all(change[old > 0] < 2 & change[old > 0] > 0.5)) break
  }
  found[c("evaluations", "not_pd")] <- as.list(counts)
  found["trials"] <- list(NULL)
  c(found, list(vecchia = problem$vecchia))
}

# Fisher scoring, which is fast at first; where the likelihood is so flat that it takes ever smaller
# steps, differences of gradients find the optimum.
scoring_search <- function(target, from, bounds, control) {
  run <- function(from, control, hessian = NULL, scale = 1) {
    stats::nlminb(from, target$value, target$gradient, hessian, scale = scale,
                  lower = bounds$lower, upper = bounds$upper, control = control)
  }
  found <- run(from, utils::modifyList(list(iter.max = 20L), control), target$hessian)
  if (!found$message %in% limit_messages) return(found)
  scale <- curvature_scale(target, found$par, bounds, target$hessian(found$par))
  run(found$par, control, scale = scale)
}

# The units of distances at parameters.
vecchia_at <- function(problem, par) {
  vecchia_scale(with_parameters(problem$kernel, par[seq_along(coef(problem$kernel))]), problem$x)
}

vecchia_text <- function(x) {
  if (is.null(x$vecchia)) return("")
  sprintf("Vecchia's approximation: %d neighbours%s\n", as.integer(x$vecchia$neighbours),
          if (isTRUE(x$vecchia$grouped)) ", grouped" else "")
}
