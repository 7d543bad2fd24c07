# Mixed models with fields, or with crossed or nested effects of many levels: all latent values
# (R/mixed-field.R) are integrated out by Laplace's approximation on the sparse Hessian of cl_tmb(),
# which is exact for normal_id.

# A random term (x | g) in the form of R/mixed-field.R: columns in units of their root mean squares,
# times the factor of their covariance matrix by standard deviations and partial correlations.
group_term <- function(design, unit) {
  scale <- mixed_scale(design$x)
  k <- ncol(design$x)
  count <- nlevels(design$factor)
  pairs <- cbind(rep(seq_len(k), seq_len(k)), sequence(seq_len(k))) # row and column of the factor
  roots <- function(par) {
    unlist(mixed_roots(exp(par[seq_len(k)]), par[-seq_len(k)], function(v, j) v[j]),
           recursive = FALSE)
  }
  size <- k * count
  number <- seq_len(count)
  root <- function(par) {
    l <- matrix(0, k, k)
    l[pairs] <- unlist(roots(par))
    l <- l / scale
    dimnames(l) <- list(colnames(design$x), NULL)
    l
  }
  term <- list(
    label = design$group, kind = "group", size = size,
    start = c(rep(log(unit / 2), k), numeric(k * (k - 1) / 2)),
    lower = rep(c(log(1e-4 * unit), -Inf), c(k, k * (k - 1) / 2)),
    rows = list(i = seq_len(size), j = seq_len(size), count = size),
    log_det = function(par) 0, rank = size, free = 0L, scales = roots, root = root,
    shown = function(par) spread_of(list(root(par))),
    place = function(x, level) lapply(seq_len(nrow(pairs)), function(m)
      list(at = (pairs[m, 2L] - 1L) * count + level, k = m,
           weight = x[, pairs[m, 1L]] / scale[pairs[m, 1L]])),
    effects = list(labels = rep(levels(design$factor), k), parts = lapply(
      seq_len(nrow(pairs)), function(m) list(
        at = (pairs[m, 2L] - 1L) * count + number, k = m, weight = 1 / scale[pairs[m, 1L]],
        i = (pairs[m, 1L] - 1L) * count + number))))
  term$parts <- term$place(unname(design$x), as.integer(design$factor))
  term
}

# Whether a fit goes this way: also where the matrix of all factors but the first one is large.
most_levels <- 3000
needs_fields <- function(designs, fields) {
  if (length(fields) > 0L) return(TRUE)
  groups <- vapply(designs, `[[`, "", "group")
  sizes <- vapply(unique(groups), function(g) sum(vapply(designs[groups == g], function(d)
    nlevels(d$factor) * as.double(ncol(d$x)), 0)), 0)
  length(sizes) > 1L && sum(sizes) - max(sizes) > most_levels
}

mixed_terms <- function(work, unit) {
  c(lapply(work$designs, group_term, unit), lapply(work$fields, field_term, unit))
}

check_fields <- function(work, terms) {
  row <- family_row(work$family)
  if (work$method %in% c("map", "mcmc")) {
    abort_argument("method", sprintf("fits with %s are by \"ml\" or \"reml\", not by \"%s\"",
                                     if (length(work$fields) > 0L) terms[[length(terms)]]$label else
                                       "so many levels", work$method))
  }
  if (is.null(row$traced)) {
    abort_argument("family", sprintf("family %s does not support terms such as '%s'", work$family,
                                     terms[[length(terms)]]$label))
  }
  flat <- work$x # what has no density
  for (term in Filter(function(t) t$free > 0L, terms)) {
    own <- Reduce(`+`, lapply(term$parts, function(p) p$weight * term$null[p$at, , drop = FALSE]))
    flat <- cbind(flat, own)
    if (qr(flat)$rank < ncol(flat)) {
      abort_argument("formula", sprintf(paste("'%s' contains %s, which other terms have too, or",
                                              "its index has too few values"), term$label,
                                        if (term$kind == "rw2") "a straight line" else
                                          "patterns of seasons"))
    }
  }
}

# ---- the objective -------------------------------------------------------------------------------

# The joint negative log likelihood as a cl_tmb(): fixed effects in coordinates, of which the
# predictor is base + x b; for each term its parameters and latent values; the logarithm of the
# further parameter. `restricted`: the fixed effects are integrated out too.
field_objective <- function(terms, work, base, x, par, u, aux, restricted = FALSE) {
  glm <- work$glm
  row <- family_row(work$family)
  y <- as.double(glm$y)
  trials <- if (!is.null(glm$trials)) as.double(glm$trials)
  w <- ones_unless(glm$weights, glm$n)
  root <- if (row$least_squares) sqrt(w) else 1
  w <- if (row$least_squares) 1 else w
  places <- seq_along(terms)
  par_names <- sprintf("p%d", places)
  u_names <- sprintf("u%d", places)
  nll <- function(given) {
    eta <- base
    value <- 0
    if (ncol(x) > 0L) eta <- eta + as.vector(traced_product(x, given$b, 0L))
    for (t in places) {
      term <- terms[[t]]
      par <- given[[par_names[t]]]
      u <- given[[u_names[t]]]
      scale <- term$scales(par)
      for (part in term$parts) {
        by <- u[part$at]
        if (!identical(part$weight, 1)) by <- part$weight * by
        eta <- eta + scale[[part$k]] * by
      }
      value <- value + latent_energy(term, par, u)
    }
    aux <- if (!is.null(given$aux)) exp(given$aux)
    value - if (row$least_squares) sum(row$traced(y, eta, aux / root, trials)) else
      sum(w * row$traced(y, eta, aux, trials))
  }
  start <- c(if (ncol(x) > 0L) list(b = numeric(ncol(x))), stats::setNames(par, par_names),
             if (!is.null(aux)) list(aux = aux), stats::setNames(u, u_names))
  before <- (if (restricted) ncol(x) else 0L) +
    c(0L, cumsum(vapply(terms, `[[`, 0, "size"))[-length(terms)])
  sets <- unlist(lapply(places, function(t) lapply(terms[[t]]$held, `+`, before[t])),
                 recursive = FALSE)
  held <- if (length(sets) > 0L) {
    held <- matrix(0, sum(lengths(u)) + ncol(x) * restricted, length(sets))
    for (k in seq_along(sets)) held[sets[[k]], k] <- 1 / sqrt(length(sets[[k]]))
    held
  }
  random <- c(if (restricted && ncol(x) > 0L) "b", u_names)
  object <- tmb_object(nll, start, list(), random, function(notes) list(), held)
  o <- environment(object$fn)$o
  if (is.null(tmb_sparse(o))) {
    abort_argument("family", sprintf("family %s has no sparse second derivatives", work$family))
  }
  list(fn = object$fn, gr = object$gr, o = o, before = before)
}

# Minus the log density of the latent values.
latent_energy <- function(term, par, u) {
  rows <- term$rows
  d <- if (is.null(rows$values)) u else {
    products <- rows$values(par) * u[rows$j]
    placed(products, rows$i, rows$count)
  }
  value <- 0.5 * sum(d * d) + term$rank * log_sqrt_2pi - 0.5 * term$log_det(par)
  if (term$free > 0L) value - term$free * par[1L] else value
}

# ---- the fit -------------------------------------------------------------------------------------

fit_fields <- function(work) {
  glm <- work$glm
  normal <- is_least_squares(work$family)
  restricted <- work$method == "reml"
  p <- ncol(work$x)
  rotation <- qr(work$x)
  offset <- if (is.null(glm$offset)) numeric(glm$n) else glm$offset
  begin <- start_without_effects(work, qr.Q(rotation), offset)
  unit <- if (normal) sqrt(begin$fit$deviance / glm$n) else 1
  terms <- mixed_terms(work, unit)
  check_fields(work, terms)
  turn <- upper_solve(qr.R(rotation), diag(unit / sqrt(begin$weights), p))
  beta <- upper_solve(qr.R(rotation), begin$b)
  start <- lapply(terms, `[[`, "start")
  aux <- if (!is.null(begin$aux)) unname(begin$aux) - normal * log(2) / 2
  problem <- field_objective(terms, work, offset + as.vector(work$x %*% beta),
                             work$x %*% turn, start, lapply(terms, function(t) numeric(t$size)),
                             aux, restricted)
  free_b <- if (restricted) 0L else p
  constant <- if (restricted && p > 0L) sum(log(abs(diag(turn)))) else 0
  # a field may leave nothing to sigma
  least <- if (normal) aux - log(5e3) else rep(-Inf, length(aux))
  lower <- c(rep(-Inf, free_b), unlist(lapply(terms, `[[`, "lower")), least)
  move <- fixed_coordinates(problem$o, free_b)
  search <- search_mixed(
    function(par) {
      value <- problem$fn(as.vector(move %*% par)) - constant
      list(value = if (is.nan(value)) Inf else value)
    }, function(par, at) as.vector(problem$gr(as.vector(move %*% par)) %*% move),
    solve(move, problem$o$par), work$control$search,
    function(par, value, gradient) list(par = par, again = FALSE), lower, seq_len(free_b))
  par <- as.vector(move %*% search$par)
  to_beta <- if (restricted) turn else turn %*% move[seq_len(p), seq_len(p), drop = FALSE]
  ends <- free_b + cumsum(lengths(start))
  own <- Map(function(end, n) par[end - n + seq_len(n)], ends, lengths(start))
  mode <- require_mode(problem$o, par, "formula")
  z <- mode$z
  places <- lapply(seq_along(terms), function(t) problem$before[t] + seq_len(terms[[t]]$size))
  u <- lapply(places, function(k) z[problem$o$random[k]])
  inverse <- matrix(NA_real_, length(par), length(par))
  if (!is.null(search$inverse)) inverse[search$free, search$free] <- search$inverse
  b <- if (restricted) z[problem$o$random[seq_len(p)]] else par[seq_len(p)]
  spread <- if (restricted) {
    unit <- diag(1, length(problem$o$random), p)
    effects_solve(problem$o, mode$step$factor, unit)[seq_len(p), , drop = FALSE]
  } else if (normal) {
    at <- match(seq_len(p), search$free)
    safe_inverse(search$hessian[at, at, drop = FALSE])
  } else inverse[seq_len(p), seq_len(p), drop = FALSE]
  shown <- field_shown(terms, own, inverse, free_b + seq_along(unlist(own)))
  last <- length(par)
  above <- unlist(own) - unlist(lapply(terms, `[[`, "lower"))
  list(terms = terms, search = search, sigma = if (normal) exp(par[last]) else 1,
       beta = beta + as.vector(turn %*% b), vcov = to_beta %*% spread %*% t(to_beta),
       aux = if (!normal && !is.null(aux)) exp(par[last]), par = own, u = u,
       logLik = -search$at$value,
       aux_error = if (!is.null(aux)) exp(par[last]) * sqrt(inverse[last, last]),
       spread_error = c(shown$error, if (normal) exp(par[last]) * sqrt(inverse[last, last])),
       shown = shown$value, singular = any(above < 1) || normal && par[last] < least + 1,
       near = any(above < log(300)) || any(abs(unlist(own)[is.infinite(above)]) > 3.5),
       internal = list(par = own, u = u, aux = if (!is.null(aux)) par[last]))
}

# The matrix that takes parameters whose first `count`, the fixed effects, have about the covariance
# matrix 1 at the start, to those of the objective.
fixed_coordinates <- function(o, count) {
  move <- diag(length(o$par))
  mode <- if (count > 0L) tmb_mode(o, as.double(o$par))
  if (is.null(mode)) return(move)
  own <- seq_len(count)
  at <- o$fixed[own]
  cross <- tmb_hessian(o, mode$z, at, o$random)
  bend <- tmb_hessian(o, mode$z, at, at) -
    crossprod(cross, effects_solve(o, mode$step$factor, cross))
  root <- chol_or_null((bend + t(bend)) / 2)
  if (!is.null(root)) move[own, own] <- backsolve(root, diag(count))
  move
}

# The fit of a model that also has one by blocks, which is slower but has no parameter where a
# variance is near 0 or a correlation near 1.
fit_sparse <- function(work) {
  found <- if (!is.null(family_row(work$family)$traced)) {
    tryCatch(fit_fields(work), statcl_error = function(e) NULL)
  }
  if (is.null(found) || !found$search$converged || found$near) return(fit_laplace(work))
  found$internal <- NULL # methods are those of blocks
  found
}

# Estimates by term, and the standard errors of all by the delta method.
field_shown <- function(terms, par, inverse, at) {
  value <- Map(function(term, p) term$shown(p), terms, par)
  ends <- cumsum(lengths(par))
  error <- unlist(lapply(seq_along(terms), function(t) {
    k <- at[ends[t] - length(par[[t]]) + seq_along(par[[t]])]
    jacobian <- matrix(central_slopes(terms[[t]]$shown, par[[t]]), ncol = length(k))
    sqrt(diag(jacobian %*% inverse[k, k, drop = FALSE] %*% t(jacobian)))
  }))
  list(value = value, error = error)
}

# The effects of a term: for each of its labels the sum of scales[[k]] * weight * u[at].
term_effects <- function(term, par, u) {
  scale <- term$scales(par)
  value <- numeric(length(term$effects$labels))
  for (part in term$effects$parts) {
    value[part$i] <- value[part$i] + scale[[part$k]] * part$weight * u[part$at]
  }
  value
}

# The components of the fit that finish_mixed() takes: those of block_parts().
field_parts <- function(work, found) {
  terms <- found$terms
  effects <- Map(term_effects, terms, found$par, found$u)
  eta <- Reduce(`+`, Map(function(term, par, u) {
    scale <- term$scales(par)
    Reduce(`+`, lapply(term$parts, function(p) scale[[p$k]] * p$weight * u[p$at]))
  }, terms, found$par, found$u))
  grouped <- seq_along(work$designs)
  of_fields <- length(grouped) + seq_along(work$fields)
  groups <- vapply(work$designs, `[[`, "", "group")
  random <- lapply(stats::setNames(unique(groups), unique(groups)), function(g) {
    do.call(cbind, lapply(which(groups == g), function(t) {
      d <- work$designs[[t]]
      matrix(effects[[t]], nlevels(d$factor), dimnames = list(levels(d$factor), colnames(d$x)))
    }))
  })
  roots <- stats::setNames(Map(function(t, par) t$root(par), terms[grouped], found$par[grouped]),
                           groups)
  fields <- Map(function(field, term, effect, shown) {
    list(kind = field$kind, label = field$label, data = field$data, given = field$given,
         par = stats::setNames(shown, term$names),
         effects = stats::setNames(effect, term$effects$labels))
  }, work$fields, terms[of_fields], effects[of_fields], found$shown[of_fields])
  for (f in fields) random[[f$label]] <- cbind(effect = f$effects)
  list(eta = eta, count = length(unlist(found$par)), singular = found$singular, random = random,
       theta = unlist(lapply(roots, function(r) r[lower.tri(r, TRUE)] / found$sigma),
                      use.names = FALSE),
       roots = roots, variances = lapply(roots, tcrossprod), fields = fields)
}
