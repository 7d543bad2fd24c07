# Priors of models with random effects, and fits at the mode of likelihood times priors.

# The argument 'prior': list(columns, aux, aux_name) as glm_priors() gives it, sd: for each term a
# list of functions of its standard deviations, with `scale`, the factors of these, and `eta`: the
# density of correlation matrices is det(C)^(eta - 1). Defaults are those of the method.
mixed_priors <- function(prior, work) {
  if (is.function(prior)) prior <- list(coefficients = prior)
  groups <- vapply(work$designs, `[[`, "", "group")
  known <- c("sd", paste0("sd_", unique(groups)), "cor")
  own <- if (is.list(prior)) names(prior) %in% known else FALSE
  priors <- glm_priors(if (any(own)) prior[!own] else prior, work$glm, known)
  priors$eta <- if (is.null(prior$cor)) 2 else check_number(prior$cor, "prior$cor", 1)
  for (name in intersect(names(prior), known[known != "cor"])) check_prior(prior[[name]], name)
  unit <- glm_spread(work$glm)$unit
  priors$sd <- lapply(work$designs, function(d) {
    name <- paste0("sd_", d$group)
    f <- prior[[if (is.null(prior[[name]])) "sd" else name]]
    if (!is.null(f)) return(list(f = f, scale = rep(1, ncol(d$x))))
    list(f = if (identical(work$method, "map")) prior_gamma(2, signif(0.1 / unit, 3)) else
      prior_normal(0, signif(2.5 * unit, 3)), scale = mixed_scale(d$x))
  })
  priors
}

# Root mean squares of the columns.
mixed_scale <- function(x) {
  scale <- sqrt(colMeans(x^2))
  ifelse(scale == 0, 1, scale)
}

# Descriptions of the priors, by parameter.
mixed_prior_labels <- function(priors, work) {
  text <- function(f) if (is.null(attr(f, "label"))) "a function" else attr(f, "label")
  of <- priors$columns$of[work$kept]
  default <- priors$columns$default
  fixed <- ifelse(of > 0L, vapply(of, function(k)
    if (k > 0L) text(priors$columns$list[[k]]) else "", ""),
    sprintf("normal(%g, %g)", default$mean[work$kept], default$sd[work$kept]))
  labels <- stats::setNames(fixed, work$glm$names[work$kept])
  for (t in seq_along(priors$sd)) {
    own <- priors$sd[[t]]
    d <- work$designs[[t]]
    labels[sprintf("sd_%s__%s", d$group, colnames(d$x))] <-
      paste0(text(own$f), ifelse(own$scale == 1, "", sprintf(" of sd * %.3g", own$scale)))
  }
  if (any(vapply(work$designs, function(d) ncol(d$x), 0L) > 1L)) {
    labels["correlations"] <- sprintf("det(C)^%g", priors$eta - 1)
  }
  if (!is.na(priors$aux_name)) labels[priors$aux_name] <- text(priors$aux)
  labels
}

# The log priors of coefficients, which may be recorded values. With `slope` their derivatives.
mixed_column_prior <- function(priors, kept, beta, names, slope = FALSE) {
  of <- priors$columns$of[kept]
  default <- lapply(priors$columns$default, `[`, kept)
  k <- which(of == 0L)
  z <- (beta[k] - default$mean[k]) / default$sd[k]
  value <- -sum(log(default$sd[k]) + log(2 * pi) / 2)
  if (length(k) > 0L) value <- value - sum(z^2) / 2
  gradient <- numeric(length(kept))
  if (slope) gradient[k] <- -z / default$sd[k]
  for (j in which(of > 0L)) {
    f <- priors$columns$list[[of[j]]]
    one <- if (slope) prior_at(f, beta[[j]], names[j]) else sum(f(beta[j]))
    value <- value + one[1L]
    if (slope) gradient[j] <- one[2L]
  }
  if (slope) list(value = value, gradient = gradient) else value
}

# The sum of the log priors of the standard deviations (of columns in their own units).
mixed_sd_prior <- function(own, sd) {
  value <- 0
  for (i in seq_along(own$scale)) value <- value + sum(own$f(sd[i] * own$scale[i]))
  value
}

# ---- the mode ------------------------------------------------------------------------------------

# Standard deviations, correlations, coefficients and the logarithm of sigma or phi together: the
# likelihood is that of Laplace's approximation, which is exact for normal_id, times the priors of
# these parameters on their natural scale.
fit_mode <- function(work, priors) {
  start <- mixed_mode_start(work)
  surface <- mixed_surface(start, work, joint = TRUE)
  many <- surface$many
  p <- length(start$coefficients)
  names <- work$glm$names[work$kept]
  own <- function(psi) psi[many + seq_len(p)]
  aux <- if (length(surface$psi) > many + p) many + p + 1L
  prior <- function(psi) {
    value <- 0
    gradient <- numeric(length(psi))
    for (t in seq_along(priors$sd)) {
      k <- length(priors$sd[[t]]$scale)
      at <- surface$terms[[t]]
      for (i in seq_len(k)) {
        scale <- priors$sd[[t]]$scale[i]
        one <- prior_at(priors$sd[[t]]$f, psi[at[i]] * scale, "sd")
        value <- value + one[1L]
        gradient[at[i]] <- one[2L] * scale
      }
      r <- at[-seq_len(k)]
      value <- value + (priors$eta - 1) * sum(log1p(-tanh(psi[r])^2))
      gradient[r] <- -2 * (priors$eta - 1) * tanh(psi[r])
    }
    beta <- start$coefficients + as.vector(surface$turn %*% own(psi))
    one <- mixed_column_prior(priors, work$kept, beta, names, slope = TRUE)
    value <- value + one$value
    gradient[many + seq_len(p)] <- crossprod(surface$turn, one$gradient)
    if (!is.null(aux) && !is.na(priors$aux_name)) {
      one <- prior_at(priors$aux, exp(psi[aux]), priors$aux_name)
      value <- value + one[1L]
      gradient[aux] <- one[2L] * exp(psi[aux])
    }
    list(value = value, gradient = gradient)
  }
  scale <- ifelse(seq_along(surface$psi) <= many & surface$lower == 0, pmax(surface$psi, 1e-300), 1)
  at <- function(par) {
    found <- surface$at(par * scale)
    found$minus <- found$value
    found$value <- found$value - prior(par * scale)$value
    if (is.nan(found$value)) found$value <- Inf
    found
  }
  slope <- function(par, found) {
    scale * (surface$gradient(par * scale, found) - prior(par * scale)$gradient)
  }
  begin <- surface$psi / scale
  search <- search_mixed(at, slope, begin, work$control$search,
                         leave_bound(surface$terms, begin, surface$lower), surface$lower)
  psi <- search$par * scale
  v <- matrix(NA_real_, length(psi), length(psi))
  root <- tryCatch(chol(search$hessian), error = function(e) NULL)
  if (!is.null(root)) v[search$free, search$free] <- chol2inv(root)
  v <- v * outer(scale, scale)
  normal <- is_least_squares(work$family)
  sigma <- if (normal) exp(psi[aux]) else 1
  fixed <- many + seq_len(p)
  list(model = surface$model, theta = surface$theta_of(psi) / sigma, search = search, sigma = sigma,
       beta = start$coefficients + as.vector(surface$turn %*% own(psi)),
       vcov = surface$turn %*% v[fixed, fixed, drop = FALSE] %*% t(surface$turn), u = search$at$u,
       aux = if (!normal && !is.null(aux)) exp(psi[aux]), logLik = -search$at$minus,
       aux_error = if (!is.null(aux)) exp(psi[aux]) * sqrt(v[aux, aux]),
       spread_error = spread_error_of(surface, psi, v, if (normal) aux),
       objective = -search$at$value, prior = mixed_prior_labels(priors, work))
}

# The starting point of the search, as a fit.
mixed_mode_start <- function(work) {
  rotation <- qr(work$x, tol = 0)
  model <- mixed_model(work$designs)
  unit <- glm_spread(work$glm)$unit / 2
  problem <- list(model = model, q = qr.Q(rotation), last = new.env(), unit = unit,
                  offset = if (is.null(work$glm$offset)) numeric(work$glm$n) else work$glm$offset,
                  rows = row_likelihood(work$family, work$glm, work$glm$weights))
  start <- laplace_start(work, problem)
  root <- upper_solve(qr.R(rotation), start$turn)
  roots <- lapply(work$designs, function(d) {
    r <- diag(unit / mixed_scale(d$x), ncol(d$x))
    dimnames(r) <- list(colnames(d$x), NULL)
    r
  })
  names(roots) <- vapply(work$designs, `[[`, "", "group")
  list(family = work$family, roots = roots, variances = lapply(roots, tcrossprod),
       coefficients = upper_solve(qr.R(rotation), start$b), vcov = tcrossprod(root),
       aux = if (!is.null(start$aux)) exp(start$aux))
}
