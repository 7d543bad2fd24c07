# Further results of fits with random effects, computed from their elements: conditional variances
# of effects, standard errors of standard deviations and correlations, and profile likelihoods.

# The input of fit_mixed(): list(designs, fields, glm, kept, x, family, method, control).
mixed_work <- function(object, method = object$method) {
  response <- object[c("y", "trials", "levels", "kind")]
  response$weights <- object$prior.weights
  x <- stats::model.matrix(object)
  kept <- which(!is.na(object$coefficients))
  list(designs = random_designs(random_terms(random_bars(object$formula[[3L]])),
                                stats::model.frame(object)),
       fields = fields_of_frame(object$fields, stats::model.frame(object)),
       glm = new_glm_problem(object$family, x, response, object$offset, object$intercept),
       kept = kept, x = x[, kept, drop = FALSE], family = object$family, method = method,
       control = glm_control(list(), "ml"))
}

log_aux <- function(object) if (length(object$aux) > 0L) log(unname(object$aux))

centred_response <- function(glm) glm$y - if (is.null(glm$offset)) 0 else glm$offset

# The factor of the Hessian of the effects at the estimates: list(model, f, sigma); with `fixed`
# also of the fixed effects, in an orthonormal basis of their columns, and `turn`, their factor.
mixed_hessian <- function(object, fixed = FALSE) {
  work <- mixed_work(object)
  x <- work$x
  normal <- is_least_squares(object$family)
  sigma <- if (normal) object$aux[[1L]] else 1
  if (normal) {
    w <- work$glm$weights
    if (!is.null(w)) for (t in seq_along(work$designs)) {
      work$designs[[t]]$x <- work$designs[[t]]$x * sqrt(w)
    }
    if (!is.null(w)) x <- x * sqrt(w)
    model <- mixed_model(work$designs)
    w <- NULL
  } else {
    model <- mixed_model(work$designs)
    rows <- row_likelihood(work$family, work$glm, work$glm$weights)
    w <- rows(unname(object$linear.predictors), log_aux(object))$w
  }
  rotation <- if (fixed && ncol(x) > 0L) qr(x, tol = 0)
  gram <- mixed_gram(model, w, if (!is.null(rotation)) qr.Q(rotation))
  roots <- lapply(object$roots, `/`, sigma)
  list(model = model, f = mixed_factor(model, gram, roots_lambda(model, roots)), sigma = sigma,
       turn = if (!is.null(rotation)) qr.R(rotation))
}

# The factors of the blocks, for scaled columns, from those of the terms in order.
roots_lambda <- function(model, roots) {
  lapply(model$blocks, function(block) {
    own <- roots[names(roots) == block$name]
    l <- matrix(0, block$K, block$K)
    before <- 0L
    for (root in own) {
      k <- before + seq_len(nrow(root))
      l[k, k] <- root * block$scale[k]
      before <- before + nrow(root)
    }
    l
  })
}

# For each grouping factor, the K x K x L covariance matrices of its effects given the estimates.
effect_covariances <- function(object) {
  if (has_latent(object)) return(field_covariances(object))
  found <- mixed_hessian(object)
  if (is.null(found$f)) abort_argument("object", "the effects have no finite conditional variances")
  parts <- inverse_parts(found$model, found$f)
  blocks <- found$model$blocks
  result <- lapply(seq_along(blocks), function(b) {
    block <- blocks[[b]]
    h <- array(0, c(block$K, block$K, block$L))
    for (i in seq_len(block$K)) for (j in seq_len(block$K)) {
      h[i, j, ] <- if (b == 1L) parts$own[[i]][[j]] else
        parts$inverse[cbind(columns_of(found$model, b, i), columns_of(found$model, b, j))]
    }
    root <- found$sigma * found$f$lambda[[b]] / block$scale
    h[] <- apply(h, 3L, function(v) root %*% v %*% t(root))
    dimnames(h) <- list(block$columns, block$columns, block$levels)
    h[, , block$order, drop = FALSE]
  })
  stats::setNames(result, vapply(blocks, `[[`, "", "name"))
}

# ---- the likelihood by standard deviations and correlations --------------------------------------

# Parameters psi: for each term its standard deviations and correlations (partial ones by columns,
# as atanh), then log(sigma) of normal_id, or fixed effects in coordinates
# with covariance matrix 1 and the logarithm of the auxiliary parameter. list(psi, value(psi): -log
# L, slope(psi), ...). `first`: number of a term and of its column or columns that come first;
# `beta`: of a fixed effect. `joint`: normal_id like other families, with log(sigma) at the end.
mixed_surface <- function(object, work, first = NULL, beta = NULL, joint = FALSE) {
  normal <- is_least_squares(object$family) && !joint
  sizes <- vapply(object$roots, nrow, 0L)
  order <- lapply(seq_along(sizes), function(t) {
    k <- seq_len(sizes[t])
    if (isTRUE(first[1L] == t)) c(first[-1L], setdiff(k, first[-1L])) else k
  })
  start <- unlist(lapply(seq_along(sizes), function(t) {
    v <- object$variances[[t]][order[[t]], order[[t]], drop = FALSE]
    sd <- sqrt(diag(v))
    unit <- ifelse(sd > 0, sd, 1)
    c(sd, partial_correlations(v / outer(unit, unit), sd > 0))
  }), use.names = FALSE)
  count <- sizes * (sizes + 1L) / 2L
  ends <- cumsum(count)
  terms <- lapply(seq_along(sizes), function(t) ends[t] - count[t] + seq_len(count[t]))
  if (normal) {
    problem <- normal_problem(work$designs, work$x, centred_response(work$glm), work$glm$weights,
                              work$method == "reml")
    psi <- c(start, log(object$aux[[1L]]))
  } else {
    problem <- list(model = mixed_model(work$designs), q = work$x,
                    offset = if (is.null(work$glm$offset)) numeric(work$glm$n) else
                      work$glm$offset,
                    rows = row_likelihood(work$family, work$glm, work$glm$weights),
                    last = new.env(), start_b = object$coefficients[work$kept])
    p <- length(problem$start_b)
    swap <- c(beta, setdiff(seq_len(p), beta))
    problem$turn <- matrix(0, p, p)
    if (p > 0L) problem$turn[swap, ] <- t(chol(object$vcov[swap, swap, drop = FALSE]))
    problem$last$u <- lapply(problem$model$blocks, function(b) matrix(0, b$L, b$K))
    psi <- c(start, numeric(p), log_aux(object))
  }
  model <- problem$model
  roots_of <- function(psi) {
    lapply(seq_along(sizes), function(t) {
      k <- sizes[t]
      v <- psi[terms[[t]]]
      if (k == 1L) return(matrix(v))
      a <- mixed_roots(v[seq_len(k)], v[-seq_len(k)], function(v, j) v[j])
      l <- matrix(0, k, k)
      for (i in seq_len(k)) l[i, seq_len(i)] <- unlist(a[[i]])
      if (identical(order[[t]], seq_len(k))) return(l)
      l[order[[t]], ] <- l
      root <- qr.R(qr(t(l)))
      t(root * ifelse(diag(root) < 0, -1, 1))
    })
  }
  theta_of <- function(psi) { # of the model
    roots <- stats::setNames(roots_of(psi), names(object$roots))
    if (normal) roots <- lapply(roots, `/`, exp(psi[length(psi)]))
    lambda <- roots_lambda(model, roots)
    vapply(seq_len(nrow(model$at)), function(i)
      lambda[[model$at[i, 1L]]][model$at[i, 2L], model$at[i, 3L]], 0)
  }
  many <- sum(count)
  by_theta <- function(psi) {
    vapply(seq_len(many + normal), function(j) {
      h <- 1e-6 * max(abs(psi[j]), 1e-2)
      (theta_of(replace(psi, j, psi[j] + h)) - theta_of(replace(psi, j, psi[j] - h))) / (2 * h)
    }, numeric(nrow(model$at)))
  }
  at <- function(psi) {
    theta <- theta_of(psi)
    if (!normal) return(laplace_at(problem, c(theta, psi[-seq_len(many)])))
    found <- normal_deviance(problem, theta)
    if (!is.finite(found$value)) return(found)
    df <- model$n - problem$reml * problem$p
    ratio <- found$pwrss * (problem$unit / exp(psi[many + 1L]))^2
    # at sigma, not at its estimate
    found$value <- (found$value - df * (1 + log(ratio / df)) + ratio) / 2
    found$ratio <- ratio
    found
  }
  gradient <- function(psi, found) {
    slope <- matrix(by_theta(psi), nrow(model$at))
    if (!normal) {
      g <- laplace_gradient(problem, c(theta_of(psi), psi[-seq_len(many)]), found)
      k <- seq_len(nrow(model$at))
      return(c(crossprod(slope, g[k]), g[-k]))
    }
    df <- model$n - problem$reml * problem$p
    g <- normal_slope(problem, found, found$ratio) / 2
    as.vector(crossprod(slope, g)) + c(numeric(many), df - found$ratio)
  }
  value <- function(psi) at(psi)$value
  slope <- function(psi) {
    found <- at(psi)
    if (is.finite(found$value)) gradient(psi, found) else rep(NA_real_, length(psi))
  }
  sds <- unlist(lapply(seq_along(sizes), function(t) terms[[t]][seq_len(sizes[t])]))
  lower <- replace(rep(-Inf, length(psi)), sds, 0)
  unit <- unlist(lapply(seq_along(sizes), function(t)
    1 / mixed_scale(work$designs[[t]]$x)[order[[t]]])) * if (normal) object$aux[[1L]] else 1
  begin <- unname(psi) # not at variances of 0 and correlations of 1, where derivatives are 0
  begin[sds] <- pmax(begin[sds], 1e-2 * unit)
  cors <- setdiff(seq_len(many), sds)
  begin[cors] <- pmin(pmax(begin[cors], -3), 3)
  list(psi = unname(psi), value = value, slope = slope, terms = terms, many = many, normal = normal,
       at = at, gradient = gradient, theta_of = theta_of, model = model, roots_of = roots_of,
       lower = lower, best = value(psi), turn = problem$turn, begin = begin)
}

# atanh of partial correlations, by rows of the factor, of a correlation matrix.
partial_correlations <- function(r, known) {
  k <- nrow(r)
  r[!known, ] <- r[, !known] <- 0
  diag(r) <- 1 + 1e-10
  l <- t(chol(r))
  unlist(lapply(seq_len(k)[-1L], function(i) {
    left <- sqrt(pmax(1 - c(0, cumsum(l[i, seq_len(i - 1L)]^2))[seq_len(i - 1L)], 1e-12))
    atanh(pmin(pmax(l[i, seq_len(i - 1L)] / left, -1 + 1e-9), 1 - 1e-9))
  }))
}

# ---- standard errors and intervals ---------------------------------------------------------------

# Names, terms and columns of standard deviations and correlations, in the order of theta.
spread_names <- function(object) {
  do.call(rbind, lapply(seq_along(object$roots), function(t) {
    names <- rownames(object$roots[[t]])
    at <- which(lower.tri(diag(length(names)), TRUE), arr.ind = TRUE)
    own <- at[, 1L] == at[, 2L]
    data.frame(name = paste0(ifelse(own, "sd_", paste0("cor_", names[at[, 1L]], ".")),
                             names[at[, 2L]], "|", names(object$roots)[t]),
               term = t, row = at[, 1L], col = at[, 2L], stringsAsFactors = FALSE)
  }))
}

# The same with the parameters of fields, and sigma.
all_spread_names <- function(object) {
  c(spread_names(object)$name, unlist(lapply(object$fields, function(f) names(f$par))),
    if (is_least_squares(object$family)) "sigma")
}

# Standard deviations and correlations of factors, in that order.
spread_of <- function(roots) {
  unlist(lapply(roots, function(r) {
    v <- tcrossprod(r)
    sd <- sqrt(diag(v))
    v <- v / outer(sd, sd)
    diag(v) <- sd
    v[lower.tri(v, TRUE)]
  }), use.names = FALSE)
}

# Standard errors of standard deviations, correlations and sigma, from the observed information of
# all parameters. NA for fits with a variance of 0.
spread_errors <- function(object) {
  names <- all_spread_names(object)
  result <- stats::setNames(rep(NA_real_, length(names)), names)
  if (!is.null(object$spread_error)) return(replace(result, TRUE, object$spread_error))
  if (object$singular || object$method == "mcmc") return(result)
  surface <- mixed_surface(object, mixed_work(object))
  h <- central_slopes(surface$slope, surface$psi)
  v <- tryCatch(chol2inv(chol((h + t(h)) / 2)), error = function(e) NULL)
  if (is.null(v)) return(result)
  result[] <- spread_error_of(surface, surface$psi, v, if (surface$normal) surface$many + 1L)
  result
}

central_slopes <- function(f, psi) {
  vapply(seq_along(psi), function(j) {
    h <- 1e-4 * max(abs(psi[j]), 0.1)
    (f(replace(psi, j, psi[j] + h)) - f(replace(psi, j, psi[j] - h))) / (2 * h)
  }, f(psi))
}

# The standard errors from the covariance matrix v of psi; `sigma`: the position of log(sigma).
spread_error_of <- function(surface, psi, v, sigma) {
  own <- c(seq_len(surface$many), sigma)
  jacobian <- central_slopes(function(part) {
    psi <- replace(psi, own, part)
    c(spread_of(surface$roots_of(psi)), exp(psi[sigma]))
  }, psi[own])
  jacobian <- matrix(jacobian, ncol = length(own))
  sqrt(pmax(diag(jacobian %*% v[own, own, drop = FALSE] %*% t(jacobian)), 0))
}

# Intervals by profile likelihoods for the parameters `chosen`, among those of spread_errors() and
# the fixed effects. `limit`: of the signed root of twice the difference of log likelihoods.
mixed_profiles <- function(object, chosen, limit) {
  object <- by_likelihood(object)
  if (has_latent(object)) return(field_profiles(object, chosen, limit))
  spread <- spread_names(object)
  error <- c(spread_errors(object), coefficient_errors(object))
  work <- mixed_work(object)
  ends <- vapply(chosen, function(name) {
    k <- match(name, spread$name)
    j <- match(name, names(object$coefficients)[work$kept])
    if (is.na(j) || !is_least_squares(object$family)) {
      surface <- mixed_surface(object, work, if (!is.na(k))
        unlist(spread[k, if (spread$row[k] == spread$col[k]) c("term", "row") else
          c("term", "col", "row")]), if (!is.na(j)) j)
      at <- if (!is.na(j)) surface$many + 1L else if (is.na(k)) surface$many + 1L else
        surface$terms[[spread$term[k]]][if (spread$row[k] == spread$col[k]) 1L else
          nrow(object$roots[[spread$term[k]]]) + 1L]
      shown <- if (!is.na(j)) function(v) object$coefficients[[work$kept[j]]] +
        v * surface$turn[j, 1L] else if (is.na(k)) exp else
          if (spread$row[k] == spread$col[k]) identity else tanh
      step <- if (!is.na(j)) 1 else if (is.na(k)) error[[name]] / exp(surface$psi[at]) else
        error[[name]] / if (spread$row[k] == spread$col[k]) 1 else 1 - tanh(surface$psi[at])^2
      return(shown(surface_ends(surface, at, step, limit)))
    }
    surface <- fixed_surface(object, work, j)
    surface_ends(surface, 1L, error[[name]], limit)
  }, numeric(2L))
  t(ends)
}

# The profiled deviance of normal_id over a fixed effect and theta.
fixed_surface <- function(object, work, j) {
  y <- centred_response(work$glm)
  beta <- object$coefficients[[work$kept[j]]]
  problem <- function(b) normal_problem(work$designs, work$x[, -j, drop = FALSE],
                                        y - work$x[, j] * b, work$glm$weights, FALSE)
  first <- problem(beta)
  lambda <- roots_lambda(first$model, lapply(object$roots, `/`, object$aux[[1L]]))
  at <- first$model$at
  theta <- vapply(seq_len(nrow(at)), function(i) lambda[[at[i, 1L]]][at[i, 2L], at[i, 3L]], 0)
  kept <- list(b = beta, problem = first)
  of <- function(psi) {
    if (kept$b != psi[1L]) kept <<- list(b = psi[1L], problem = problem(psi[1L]))
    kept$problem
  }
  psi <- c(beta, theta)
  list(psi = psi, begin = psi, lower = rep(-Inf, length(psi)), leave = leave_zero(first$model, 1L),
       best = normal_deviance(first, theta)$value / 2,
       value = function(psi) normal_deviance(of(psi), psi[-1L])$value / 2,
       slope = function(psi) c(NA, normal_slope(of(psi), normal_deviance(of(psi), psi[-1L])) / 2))
}

# The values of psi[place] on both sides at which the profile reaches the limit, or the bound.
surface_ends <- function(surface, place, step, limit) {
  if (!is.finite(step) || step <= 0) step <- max(abs(surface$psi[place]) / 4, 0.1)
  leave <- if (!is.null(surface$leave)) surface$leave else
    leave_bound(lapply(surface$terms, setdiff, place), surface$begin, surface$lower)
  none <- rep(-Inf, length(surface$psi))
  vapply(c(-1, 1), function(side) {
    psi <- surface$begin
    root <- function(v) {
      psi[place] <<- v
      if (length(psi) > 1L) {
        psi <<- mixed_minimum(psi, -place, surface$value, surface$slope, leave, none, 150L)$par
      }
      sqrt(max(2 * (surface$value(psi) - surface$best), 0)) - limit
    }
    at <- surface$psi[place]
    size <- limit * step
    for (i in seq_len(25L)) {
      to <- max(at + side * size, surface$lower[place])
      above <- root(to)
      if (is.na(above) || above >= 0) break
      if (to == surface$lower[place]) return(to)
      at <- to
      size <- 1.5 * size
    }
    if (is.na(above) || above < 0) return(NA_real_)
    stats::uniroot(root, sort(c(at, to)), tol = 1e-6 * abs(to - surface$psi[place]))$root
  }, 0)
}
