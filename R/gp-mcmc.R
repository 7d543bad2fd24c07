# Gaussian processes with sampled parameters, and their default priors.

# The priors of a fit: the user's, and for all other parameters weak ones, or penalties for the
# maximum with `n` normal observations.
gp_prior_of <- function(prior, space, n = NULL) {
  given <- if (is.null(prior)) list() else prior
  if (!is.null(names(given))) names(given) <- named_by_column(names(given), space$name)
  if (length(given) > 0L) gp_prior(given, space$name, !space$free) # checks them
  kinds <- parameter_kind(space$name)
  for (i in which(space$free & !space$name %in% names(given) & !kinds %in% names(given))) {
    penalty <- if (!is.null(n)) default_penalty(space, i, n)
    given[[space$name[i]]] <- if (is.null(penalty)) default_prior(space[i, ]) else penalty
  }
  gp_prior(given, space$name, !space$free)
}

# Weak priors in units of the data: a lengthscale of the order of the range, standard deviations of
# the order of that of y. The noise stays away from zero, at which fits to few observations would
# otherwise end: 1% of its prior lies below a quarter of y's standard deviation. (bench/gp-small.R)
default_prior <- function(row) {
  guess <- row$guess[[1L]]
  switch(row$role,
    lengthscale = if (row$from > 0.06 * row$to) { # of a periodic kernel
      prior_inv_gamma(tails = signif(c(row$from, 2 * row$to), 3))
    } else {
      prior_lognormal(signif(log(row$to), 3), 0.9)
    },
    # the period of the kernel, if it was given, else that of the periodogram
    period = if (row$in_kernel != 1 || length(guess) < 3L) {
      prior_lognormal(signif(log(row$in_kernel), 3), 0.3)
    } else {
      prior_lognormal(signif(log(guess[1L]), 3), 1)
    },
    alpha = prior_lognormal(0, 1),
    user = NULL,
    phi = prior_lognormal(1.5, 1.5),
    df = prior_gamma(2, 0.1),
    gap = prior_lognormal(0.5, 1),
    scale = , noise = prior_inv_gamma(tails = signif(c(0.25, 3) * row$to / 0.7, 3)),
    prior_lognormal(signif(log(row$to), 3), 0.8))
}

# The penalty of a short lengthscale is -2 p w n^(-1/p) / lengthscale for p inputs of range w, of
# which w n^(-1/p) is about the distance between neighbours, in the manner of Gu (2019). That of
# noise far from half of y's standard deviation grows slowly, so that data without noise are fitted
# without noise. (bench/gp-robust.R)
default_penalty <- function(space, i, n) {
  row <- space[i, ]
  p <- sum(!is.na(space$width) & space$free)
  if (!is.na(row$width)) return(prior_penalty(2 * p * n^(-1 / p) * row$width))
  switch(row$role, noise = prior_log_cauchy(row$to * 0.7, 0.5),
         sd = prior_lognormal(signif(log(row$to) + 1, 3), 1))
}

# Draws from the posterior, from the maximum `found` on; the parameters are then posterior means.
gp_sample <- function(problem, space, prior, found, control, progress) {
  f <- gp_function(problem)
  free <- space$free
  names <- space$name[free]
  held <- space$value
  density <- function(...) {
    par <- held
    par[free] <- c(...)
    p <- prior$value(par)
    value <- f(par)
    slope <- (attr(value, "gradient") + p$gradient)[free]
    structure(as.vector(value) + p$value, gradient = stats::setNames(as.list(slope), names))
  }
  drawn <- draw_posterior(density, as.list(found$par[free]), names[space$log[free]], control,
                          progress)
  settle_draws(found, drawn, names, free)
}

# Draws by cl_sample(); `positive`: names of positive parameters.
draw_posterior <- function(density, init, positive, control, progress) {
  # a step that is far too long may reach parameters whose squares overflow
  arguments <- list(chains = 4, warmup = 250, iter = 250, jitter = 0.5, nan = "reject",
                    refresh = if (progress) NULL else 0)
  unknown <- setdiff(names(control), setdiff(names(formals(cl_sample)),
                                             c("log_density", "init", "transform", "batch")))
  if (length(unknown) > 0L) {
    abort_argument("control", sprintf(paste("'control' has the entry '%s', which is not an",
                                            "argument of cl_sample() that can be set here"),
                                      unknown[1L]))
  }
  arguments[names(control)] <- control
  arguments$log_density <- density
  arguments$init <- init
  arguments$transform <- stats::setNames(rep(list(cl_lower(0)), length(positive)), positive)
  draws <- do.call(cl_sample, arguments, quote = TRUE)
  draws$call <- NULL
  draws
}

settle_draws <- function(found, draws, names, free) {
  force(draws) # here: an error inside a generic's argument loses its class
  found$draws <- draws
  found$par[free] <- colMeans(as.matrix(draws))[names]
  found$evaluations <- found$evaluations + sum(draws$evaluations)
  found$not_pd <- found$not_pd + sum(draws$rejections)
  found[c("converged", "message")] <- draws_verdict(draws)
  found["gradient"] <- list(NULL)
  found$at_bound <- character()
  found
}

#' @exportS3Method posterior::as_draws
as_draws.cl_gp <- function(x, ...) {
  as_draws.cl_sample(fit_draws(x), ...)
}

# Draws of all parameters, a column for each, with the mean's coefficients if these were drawn.
parameter_draws <- function(object) {
  draws <- as.matrix(object$draws)
  if (is.null(object$response)) return(draws)
  own <- draws[, intersect(colnames(draws), names(object$par)), drop = FALSE]
  if (length(object$beta_names) == 0L) return(own)
  beta <- t(trend_length(object$trend) * draws[, trend_draws(object), drop = FALSE])
  beta <- apply(beta, 2L, function(b) response_coefficients(object$trend, b, object$response$dims))
  cbind(own, matrix(beta, nrow(own), byrow = TRUE, dimnames = list(NULL, object$beta_names)))
}

# The parameters of at most `count` draws, evenly spread, one a row; those of the fit without draws.
gp_draws <- function(object, count) {
  if (is.null(object$draws)) return(rbind(object$par))
  draws <- as.matrix(object$draws)
  rows <- unique(round(seq(1, nrow(draws), length.out = min(count, nrow(draws)))))
  par <- matrix(object$par, length(rows), length(object$par), byrow = TRUE,
                dimnames = list(rows, names(object$par)))
  drawn <- intersect(colnames(draws), names(object$par)) # latent values are left out
  par[, drawn] <- draws[rows, drawn]
  par
}
