# Generalised linear models with random effects: the marginal likelihood by Laplace's approximation,
#   -log L = F(u) + log(det(H)) / 2,  F = |u|^2 / 2 - log p(y | u),  H = Lambda' Z'WZ Lambda + I,
# at the mode of the effects u, where W are the second derivatives of -log p with respect to the
# linear predictors; with its exact gradient with respect to theta, the fixed effects and the
# auxiliary parameter.

# The likelihood of the rows as a function of linear predictors: a function(eta, aux) that gives
# list(value: their sum, s: first derivatives, w: minus second ones, dw: those of w). `aux`: the
# logarithm of phi or of the dispersion, if there is one.
row_likelihood <- function(family, response, weights) {
  row <- family_row(family)
  y <- as.double(response$y)
  k <- ones_unless(weights, length(y))
  if (!is.null(row$r)) return(r_row_likelihood(row, y, k))
  constant <- NULL
  root <- if (row$least_squares) sqrt(k) # for fits with priors
  k <- if (row$least_squares) 1 else k
  function(eta, aux) {
    aux <- if (length(aux) > 0L) exp(aux)
    at <- family_terms(row, y, eta, if (is.null(root)) aux else aux / root, response$trials, 4L,
                       constant)
    constant <<- at$constant
    list(value = sum(k * at$value), s = k * at$score, w = k * at$weight, dw = k * at$d_weight)
  }
}

# For a family of R: the log density from the deviance, derivatives of the score by differences.
r_row_likelihood <- function(row, y, k) {
  r <- row$r
  known <- length(row$aux) == 0L
  base <- if (known) {
    dev <- sum(r$dev.resids(y, y, k))
    (dev - r$aic(y, rep(1, length(y)), y, k, dev)) / 2
  }
  score <- function(eta) {
    mu <- r$linkinv(eta)
    k * (y - mu) * r$mu.eta(eta) / r$variance(mu)
  }
  function(eta, aux) {
    mu <- r$linkinv(eta)
    if (!r$validmu(mu) || !r$valideta(eta)) return(list(value = -Inf))
    phi <- if (known) 1 else exp(aux)
    dev <- sum(r$dev.resids(y, mu, k))
    value <- if (known) base - dev / 2 else row$saturated(y, k, phi) - dev / (2 * phi)
    h <- 1e-3
    near <- lapply(c(-2, -1, 1, 2) * h, function(d) score(eta + d))
    s <- score(eta)
    w <- (8 * (near[[2L]] - near[[3L]]) + near[[4L]] - near[[1L]]) / (12 * h)
    dw <- (near[[1L]] + near[[4L]] - 16 * (near[[2L]] + near[[3L]]) + 30 * s) / (12 * h^2)
    list(value = value, s = s / phi, w = w / phi, dw = dw / phi)
  }
}

# ---- the mode of the effects ---------------------------------------------------------------------

# F at the effects u, with the parts of its derivatives.
effects_objective <- function(problem, lambda, fixed, u, aux) {
  rows <- problem$rows(fixed + random_part(problem$model, lambda, u), aux)
  squares <- sum(vapply(u, function(v) sum(v^2), 0))
  value <- squares / 2 - rows$value
  list(u = u, rows = rows, value = if (is.nan(value)) Inf else value)
}

# The mode, from the effects `u`; NULL without one. Where the Hessian is not positive definite,
# negative weights are left out of it.
effects_mode <- function(problem, theta, fixed, aux, u) {
  model <- problem$model
  lambda <- theta_lambda(model, theta)
  at <- function(u) effects_objective(problem, lambda, fixed, u, aux)
  starts <- list(function() at(u), function() at(lapply(u, `*`, 0)))
  newton_mode(starts, function(now, exact) {
    w <- if (exact) now$rows$w else pmax(now$rows$w, 0)
    f <- mixed_factor(model, mixed_gram(model, w), lambda)
    if (is.null(f)) return(NULL)
    slope <- Map(function(v, l, u) v %*% l - u, random_sums(model, now$rows$s), lambda, now$u)
    by <- mixed_solve(model, f, slope)
    list(f = f, by = by, decrement = sum(unlist(slope) * unlist(by)))
  }, function(now, step, size) at(Map(function(u, d) u + size * d, now$u, step$by)))
}

# ---- the approximation ---------------------------------------------------------------------------

# Parameters: theta; the fixed effects in the basis Q, in coordinates with covariance matrix near 1
# (b = start_b + turn par); aux.
# list(value: -log L, and the mode), from the effects of the last call.
laplace_at <- function(problem, par) {
  parts <- laplace_parts(problem, par)
  fixed <- problem$offset + as.vector(problem$q %*% parts$b)
  at <- effects_mode(problem, parts$theta, fixed, parts$aux, problem$last$u)
  if (is.null(at)) return(list(value = Inf))
  problem$last$u <- at$u
  c(at[c("u", "rows")], list(f = at$step$f, fixed = fixed, likelihood = at$value,
                             value = at$value + at$step$f$log_det / 2))
}

laplace_parts <- function(problem, par) {
  many <- nrow(problem$model$at)
  p <- ncol(problem$q)
  list(theta = par[seq_len(many)],
       b = problem$start_b + as.vector(problem$turn %*% par[many + seq_len(p)]),
       aux = par[-seq_len(many + p)])
}

laplace_gradient <- function(problem, par, at) {
  model <- problem$model
  f <- at$f
  rows <- at$rows
  g <- inverse_rows(model, f)
  z <- Map(function(block, lambda) block$x %*% lambda, model$blocks, f$lambda)
  h <- Reduce(`+`, Map(function(g, z) rowSums(g * z), g, z))
  a <- h * rows$dw / 2
  turn <- function(v) { # H^-1 Lambda' Z'v
    mixed_solve(model, f, Map(`%*%`, random_sums(model, v), f$lambda))
  }
  v <- turn(a)
  back <- random_part(model, f$lambda, v)
  q <- -rows$s + a - rows$w * back
  slope <- c(theta_slope(model, g, rows$w, Map(rbind, random_sums(model, q),
                                               random_sums(model, rows$s)), Map(rbind, at$u, v)),
             as.vector(crossprod(problem$turn, crossprod(problem$q, q))))
  aux <- laplace_parts(problem, par)$aux
  if (length(aux) == 0L) return(slope)
  eta <- at$fixed + random_part(model, f$lambda, at$u)
  by_aux <- slope_by_differences(function(d) {
    rows <- problem$rows(eta, aux + d)
    cbind(rows$value, rows$w, rows$s)
  }, 1e-3)
  c(slope, -by_aux[1L, 1L] + sum(h * by_aux[, 2L]) / 2 + sum(back * by_aux[, 3L]))
}

# ---- the start -----------------------------------------------------------------------------------

# Starting values: fixed effects from a fit without random effects, then both together at the first
# theta: list(b, turn, u, aux, theta).
laplace_start <- function(work, problem) {
  begin <- start_without_effects(work, problem$q, problem$offset)
  b <- begin$b
  aux <- begin$aux
  model <- problem$model
  p <- length(b)
  theta <- if (is.null(problem$unit)) {
    rows <- problem$rows(problem$offset + as.vector(problem$q %*% b), aux)
    moment_theta(model, rows$s, pmax(rows$w, 0))
  } else problem$unit * (model$at[, 2L] == model$at[, 3L])
  lambda <- theta_lambda(model, theta)
  at <- function(u, b) {
    fixed <- problem$offset + as.vector(problem$q %*% b)
    c(effects_objective(problem, lambda, fixed, u, aux), list(b = b))
  }
  now <- at(lapply(model$blocks, function(block) matrix(0, block$L, block$K)), b)
  found <- if (is.finite(now$value)) newton_search(now, function(now, exact) {
    f <- if (exact) mixed_factor(model, mixed_gram(model, pmax(now$rows$w, 0), problem$q), lambda)
    if (is.null(f)) return(NULL)
    slope <- Map(function(v, l, u) v %*% l - u, random_sums(model, now$rows$s), lambda, now$u)
    more <- as.vector(crossprod(problem$q, now$rows$s))
    by <- mixed_solve(model, f, slope, more)
    list(f = f, u = by, b = attr(by, "more"),
         decrement = sum(unlist(slope) * unlist(by)) + sum(more * attr(by, "more")))
  }, function(now, step, size) {
    at(Map(function(u, d) u + size * d, now$u, step$u), now$b + size * step$b)
  }, 10L)
  if (!is.null(found)) now <- found$now
  own <- model$dense + seq_len(p)
  turn <- if (is.null(found$step)) diag(1 / sqrt(begin$weights), p) else
    upper_solve(found$step$f$r[own, own, drop = FALSE], diag(p))
  list(b = now$b, turn = turn, u = now$u, aux = aux, theta = theta)
}

# The fit without random effects, with columns q: list(fit, b, aux, weights: sums by column of those
# of the observations).
start_without_effects <- function(work, q, offset) {
  glm <- work$glm
  row <- family_row(work$family)
  response <- list(y = glm$y, trials = glm$trials, prior.weights = glm$weights)
  fit <- suppressWarnings(tryCatch(
    stats::glm.fit(q, mean_response(response), deviance_weights(response), offset = offset,
                   family = irls_family(work$family, Inf), intercept = FALSE,
                   control = list(maxit = 50)),
    error = function(e) abort_argument("y", conditionMessage(e))))
  list(fit = fit, b = ifelse(is.na(fit$coefficients), 0, unname(fit$coefficients)),
       aux = if (length(row$aux) > 0L) row$mixed_start(fit$deviance / glm$n),
       weights = colSums(q^2 * fit$weights))
}
