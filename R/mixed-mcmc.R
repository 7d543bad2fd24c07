# Models with random effects by sampling. The sampler works on fixed effects in coordinates with
# covariance matrix 1 at the maximum, logarithms of standard deviations, correlations as partial
# correlations (by atanh), and effects z in units of their standard deviations (not centred).

sample_mixed <- function(work, mode, progress) {
  model <- mode$model
  designs <- work$designs
  target <- mixed_target(work, mode)
  control <- work$control$sampling
  arguments <- list(log_density = cl_gradient(target$density), init = target$init, chains = 4,
                    warmup = 500, iter = 500, jitter = 0.3, nan = "reject",
                    refresh = if (progress) NULL else 0)
  arguments[names(control)] <- control
  draws <- do.call(cl_sample, arguments, quote = TRUE)
  draws$call <- NULL
  values <- as.matrix(draws)
  own <- function(name, count) values[, if (count == 1L && name %in% colnames(values)) name else
    sprintf("%s[%d]", name, seq_len(count)), drop = FALSE]
  p <- length(mode$beta)
  beta <- if (p > 0L) t(mode$beta + target$turn %*% t(own("b", p)))
  shown <- list(stats::setNames(as.data.frame(beta), work$glm$names[work$kept]))
  random <- variances <- effects <- list()
  few <- unique(round(seq(1, nrow(values), length.out = min(kept_draws, nrow(values)))))
  for (t in seq_along(designs)) {
    d <- designs[[t]]
    k <- ncol(d$x)
    name <- target$names[[t]]
    a <- mixed_roots(exp(own(name[1L], k)), if (k > 1L) own(name[2L], k * (k - 1) / 2))
    z <- own(name[3L], k * nlevels(d$factor))
    L <- nlevels(d$factor)
    of_draws <- lapply(seq_len(k), function(i) {
      Reduce(`+`, lapply(seq_len(i), function(j)
        a[[i]][[j]] * z[, (j - 1) * L + seq_len(L), drop = FALSE])) / target$scale[[t]][i]
    })
    random[[t]] <- vapply(of_draws, colMeans, numeric(L))
    effects[[t]] <- array(unlist(lapply(of_draws, function(b) b[few, ])), c(length(few), L, k),
                          list(NULL, levels(d$factor), colnames(d$x)))
    dimnames(random[[t]]) <- list(levels(d$factor), colnames(d$x))
    found <- mixed_spread(a, target$scale[[t]], d)
    variances[[t]] <- found$mean
    shown <- c(shown, list(found$draws))
  }
  names(variances) <- vapply(designs, `[[`, "", "group")
  aux <- if (!is.null(target$init$aux)) exp(own("aux", 1L))
  if (!is.null(aux)) {
    shown <- c(shown, list(stats::setNames(as.data.frame(aux), family_row(work$family)$aux)))
  }
  shown <- as.matrix(do.call(cbind, shown))
  size <- dim(draws$draws)
  draws$draws <- array(shown, c(size[1:2], ncol(shown)),
                       c(dimnames(draws$draws)[1:2], list(parameter = colnames(shown))))
  draws$warmup <- NULL
  names(effects) <- names(variances)
  list(draws = draws, beta = beta, random = random, variances = variances, aux = aux,
       effects = effects, prior = mixed_prior_labels(work$priors, work))
}

# Rows of the factor of the covariance matrix of a term, as lists of numbers, from standard
# deviations (one column each) and partial correlations; also for recorded values, by `column`.
mixed_roots <- function(sd, r, column = function(v, j) v[, j]) {
  k <- if (is.matrix(sd)) ncol(sd) else length(sd)
  at <- 0L
  lapply(seq_len(k), function(i) {
    left <- 1
    row <- list()
    for (j in seq_len(i - 1L)) {
      at <<- at + 1L
      z <- tanh(column(r, at))
      row[[j]] <- column(sd, i) * z * sqrt(left)
      left <- left * (1 - z * z)
    }
    row[[i]] <- column(sd, i) * sqrt(left)
    row
  })
}

# Draws of standard deviations and correlations, and the mean covariance matrix.
mixed_spread <- function(a, scale, design) {
  k <- length(a)
  names <- colnames(design$x)
  v <- function(i, j) {
    both <- seq_len(min(i, j))
    Reduce(`+`, Map(`*`, a[[i]][both], a[[j]][both])) / (scale[i] * scale[j])
  }
  sd <- lapply(seq_len(k), function(i) sqrt(v(i, i)))
  draws <- stats::setNames(sd, sprintf("sd_%s__%s", design$group, names))
  mean <- matrix(0, k, k, dimnames = list(names, names))
  for (i in seq_len(k)) for (j in seq_len(i)) {
    both <- v(i, j)
    mean[i, j] <- mean[j, i] <- base::mean(both)
    if (i > j) draws[[sprintf("cor_%s__%s.%s", design$group, names[j], names[i])]] <-
      both / (sd[[i]] * sd[[j]])
  }
  list(draws = as.data.frame(draws, optional = TRUE), mean = mean)
}

# list(density: a function of named parameters, init, turn: of the fixed effects, names: of the
# parameters of each term, scale: of its columns).
mixed_target <- function(work, mode) {
  glm <- work$glm
  family <- work$family
  p <- length(mode$beta)
  turn <- if (p > 0L) t(chol((mode$vcov + t(mode$vcov)) / 2)) else matrix(0, 0L, 0L)
  spread <- glm_spread(glm)
  priors <- if (is.null(work$priors)) mixed_priors(NULL, work) else work$priors
  x <- work$x %*% turn
  base <- as.vector(work$x %*% mode$beta) + if (is.null(glm$offset)) 0 else glm$offset
  y <- glm$y
  row <- family_row(family)
  trials <- glm$trials
  w <- ones_unless(glm$weights, glm$n)
  root <- if (row$least_squares) sqrt(w)
  terms <- lapply(seq_along(work$designs), function(t) {
    d <- work$designs[[t]]
    scale <- mixed_scale(d$x)
    k <- ncol(d$x)
    list(x = unname(d$x / rep(scale, each = nrow(d$x))), g = as.integer(d$factor), k = k,
         L = nlevels(d$factor), scale = scale, names = sprintf(c("s%d", "r%d", "z%d"), t))
  })
  density <- function(...) {
    given <- list(...)
    eta <- base
    total <- 0
    if (p > 0L) {
      eta <- eta + as.vector(x %*% given$b)
      total <- mixed_column_prior(priors, work$kept, mode$beta + as.vector(turn %*% given$b),
                                  work$glm$names[work$kept])
    }
    for (t in seq_along(terms)) {
      term <- terms[[t]]
      s <- given[[term$names[1L]]]
      r <- if (term$k > 1L) given[[term$names[2L]]]
      z <- given[[term$names[3L]]]
      a <- mixed_roots(exp(s), r, function(v, j) v[j])
      for (i in seq_len(term$k)) for (j in seq_len(i)) {
        eta <- eta + term$x[, i] * (a[[i]][[j]] * z[(j - 1L) * term$L + term$g])
      }
      total <- total - sum(z^2) / 2 + sum(s) + mixed_sd_prior(priors$sd[[t]], exp(s) / term$scale)
      at <- 0L
      for (i in seq_len(term$k)) for (j in seq_len(i - 1L)) {
        at <- at + 1L
        total <- total + (priors$eta + (term$k - 1L - j) / 2) * log(1 - tanh(r[at])^2)
      }
    }
    aux <- given$aux
    if (!is.null(aux)) total <- total + sum(priors$aux(exp(aux))) + aux
    total + if (is.null(root)) sum(w * row$traced(y, eta, exp(aux), trials)) else
      sum(row$traced(y, eta, exp(aux) / root, trials))
  }
  init <- if (p > 0L) list(b = numeric(p)) else list()
  for (term in terms) {
    init[[term$names[1L]]] <- rep(log(0.3 * spread$unit), term$k)
    if (term$k > 1L) init[[term$names[2L]]] <- numeric(term$k * (term$k - 1) / 2)
    init[[term$names[3L]]] <- numeric(term$k * term$L)
  }
  if (length(row$aux) > 0L) {
    init$aux <- log(unname(if (row$least_squares) mode$sigma else mode$aux))
  }
  formals(density) <- stats::setNames(rep(alist(a = ), length(init)), names(init))
  body(density)[[2L]] <- call("<-", quote(given), as.call(c(quote(list), stats::setNames(
    lapply(names(init), as.name), names(init)))))
  list(density = density, init = init, turn = turn, names = lapply(terms, `[[`, "names"),
       scale = lapply(terms, `[[`, "scale"))
}

# The fit at the maximum, with posterior means in place of the estimates.
finish_sampled <- function(fit, work, found) {
  force(found) # here: an error inside a generic's argument loses its class
  p <- length(work$kept)
  names <- work$glm$names[work$kept]
  if (p > 0L) {
    fit$coefficients[work$kept] <- colMeans(found$beta)
    fit$vcov <- matrix(stats::cov(found$beta), p, p, dimnames = list(names, names))
  }
  fit$variances <- found$variances
  fit$roots <- lapply(found$variances, function(v) t(chol(v + diag(1e-12 * max(diag(v)), nrow(v)))))
  groups <- vapply(work$designs, `[[`, "", "group")
  eta <- as.vector(work$x %*% fit$coefficients[work$kept])
  for (t in seq_along(groups)) {
    d <- work$designs[[t]]
    eta <- eta + rowSums(d$x * found$random[[t]][as.integer(d$factor), , drop = FALSE])
  }
  fit$random <- lapply(stats::setNames(unique(groups), unique(groups)), function(g)
    do.call(cbind, found$random[groups == g]))
  if (length(found$aux) > 0L) {
    fit$aux[] <- mean(found$aux)
    fit$aux_error <- stats::sd(found$aux)
  }
  eta <- if (is.null(fit$offset)) eta else eta + fit$offset
  fit$linear.predictors[] <- eta
  fit$fitted.values[] <- glm_mean(fit, eta)
  fit$logLik <- fit$objective <- NA_real_
  fit$draws <- found$draws
  fit$effect_draws <- found$effects
  fit$prior <- found$prior
  fit["theta"] <- list(NULL)
  fit$singular <- FALSE
  fit[c("converged", "message")] <- draws_verdict(found$draws)
  if (!fit$converged && found$draws$complete) {
    statcl_warning("sampling", sprintf(paste("%s: the chains are too short or do not agree;",
                                             "increase 'iter' in 'control'"), fit$message))
  }
  fit
}
