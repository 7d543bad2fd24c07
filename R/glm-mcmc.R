# A generalised linear model by sampling.
#
# The sampler works on z, where theta (with the logarithms of sigma and phi, and for cuts the first
# one and the logarithms of their differences) is mode + L z, and L L' is the covariance matrix at
# the mode.

glm_sample <- function(mode, priors, control, progress) {
  core <- mode$core
  alone <- is.null(control$workers) || identical(control$workers, 1) ||
    identical(control$workers, 1L)
  if (!alone) core <- movable_core(core)
  target <- glm_target(core, mode$prior, mode$found)
  size <- length(core$data$x)
  chains <- if (is.null(control$chains)) 4 else control$chains
  arguments <- list(chains = chains, warmup = 250, iter = 500, jitter = 0.5, nan = "reject",
                    refresh = if (progress) NULL else 0)
  arguments[names(control)] <- control
  compiled <- compiled_target(core, mode$prior, target)
  if (is.null(control$batch)) {
    arguments$batch <- is.null(compiled) && alone && chains > 1 && size >= 1e4
  }
  arguments$log_density <- if (is.null(compiled)) target$density else compiled
  arguments$init <- numeric(core$count)
  draws <- do.call(cl_sample, arguments, quote = TRUE)
  draws$call <- NULL
  mode$draws <- name_draws(draws, core, target)
  values <- as.matrix(mode$draws)
  found <- mode$found
  found$theta <- colMeans(values)
  aux <- aux_index(core)
  if (core$logged) found$theta[aux] <- log(found$theta[aux])
  found$value <- glm_at(core, found$theta)$value
  found[c("converged", "message")] <- draws_verdict(mode$draws)
  if (!found$converged && draws$complete) {
    statcl_warning("sampling", sprintf(paste("%s: the chains are too short or do not agree;",
                                             "increase 'iter' in 'control'"), found$message))
  }
  mode$found <- found
  mode
}

# ---- where to start -----------------------------------------------------------------------------

# The mode, as glm_fit_mode() gives it. With about as many coefficients as observations, the joint
# density of coefficients and sigma has no useful mode: it is unbounded as sigma goes to 0, or its
# mode is at a sigma that is far too small, although the posterior distribution is proper. In that
# case the centre is the mode of the marginal density of sigma (by Laplace's approximation) and of
# the coefficients given this sigma.
glm_centre <- function(problem, priors, start, control, progress) {
  used <- problem$n - if (is.null(problem$weights)) 0 else sum(problem$weights == 0)
  if (!is_least_squares(problem$family) || 2 * ncol(problem$x) < used) {
    return(glm_fit_mode(problem, priors, start, control, progress))
  }
  begin <- glm_start(glm_core(problem), start, priors)
  core <- begin$core
  aux <- aux_index(core)
  beta <- seq_len(core$beta_count)
  at <- function(log_sigma) { # the mode of the coefficients
    glm_newton(core, begin$prior, replace(begin$theta, aux, log_sigma),
               list(tolerance = control$tolerance, maxit = 20L), held = TRUE)
  }
  marginal <- function(log_sigma) {
    found <- at(log_sigma)
    root <- tryCatch(chol(found$information[beta, beta]), error = function(e) NULL)
    if (is.null(root)) return(-.Machine$double.xmax)
    found$objective + log_sigma - sum(log(diag(root)))
  }
  range <- log(stats::sd(core$data$y)) + log(c(1e-6, 10))
  best <- stats::optimize(marginal, range, maximum = TRUE, tol = 1e-4)$maximum
  found <- at(best)
  h <- 0.05 # the modes' errors stay below the difference; draws need the curvature to some percent
  curve <- (2 * marginal(best) - marginal(best + h) - marginal(best - h)) / h^2
  found$information[aux, aux] <- max(curve, 0.1)
  found[c("converged", "message", "iterations", "held")] <- list(TRUE, "converged", 0L, FALSE)
  list(core = core, prior = begin$prior, found = found)
}

# ---- the density ---------------------------------------------------------------------------------

# The core for worker processes, each of which uploads x itself.
movable_core <- function(core) {
  if (!is_cl(core$data$x)) return(core)
  core$data$x <- as.matrix(core$data$x)
  core$data$there <- NULL
  core$problem["x"] <- list(NULL)
  core$likelihood <- new_likelihood(core$family, core$data$y, core$data$x, core$data$trials,
                                    core$data$weights)
  core
}

# list(density: of z, for one point or a matrix of them; value: theta from z).
glm_target <- function(core, prior, found) {
  aux <- aux_index(core)
  cuts <- if (core$logged) integer() else aux
  tr <- if (length(cuts) > 0L) cl_ordered()
  centre <- found$theta
  slope <- diag(core$count) # derivative of the free parameters with respect to theta at the mode
  if (length(cuts) > 0L) {
    centre[cuts] <- tr$free(found$theta[cuts])
    for (i in seq_along(cuts)[-1L]) {
      gap <- found$theta[cuts[i]] - found$theta[cuts[i - 1L]]
      slope[cuts[i], cuts[i - 1L]] <- -1 / gap
      slope[cuts[i], cuts[i]] <- 1 / gap
    }
  }
  covariance <- slope %*% invert_information(found$information) %*% t(slope)
  root <- tryCatch(t(chol((covariance + t(covariance)) / 2)), error = function(e) {
    abort_argument("method", paste("the posterior density has no maximum from which to start; use",
                                   "proper priors for all coefficients"))
  })
  theta_of <- function(z) {
    u <- centre + root %*% z
    if (length(cuts) > 0L) u[cuts, ] <- apply(u[cuts, , drop = FALSE], 2L, tr$value)
    u
  }
  one_matrix <- function(z) {
    free <- centre + root %*% z
    theta <- theta_of(z)
    at <- glm_at(core, theta)
    value <- at$value
    gradient <- at$gradient
    for (j in seq_len(ncol(z))) {
      p <- prior$value(theta[, j])
      value[j] <- value[j] + p$value
      gradient[, j] <- gradient[, j] + p$gradient
      if (length(cuts) > 0L) {
        value[j] <- value[j] + tr$jacobian(free[cuts, j], theta[cuts, j])
        gradient[cuts, j] <- tr$pull(free[cuts, j], theta[cuts, j], gradient[cuts, j])
      } else if (core$logged) {
        value[j] <- value[j] + theta[aux, j]
        gradient[aux, j] <- gradient[aux, j] + 1
      }
    }
    structure(value, gradient = crossprod(root, gradient))
  }
  density <- function(z) {
    if (is.matrix(z)) return(one_matrix(z))
    value <- one_matrix(matrix(z))
    attr(value, "gradient") <- as.vector(attr(value, "gradient"))
    value
  }
  list(density = density, value = theta_of, centre = centre, root = root)
}

# The density of the target as a compiled function, with which chains run without R between
# evaluations; NULL for data on a device or sparse, and for priors that cannot be traced.
compiled_target <- function(core, prior, target) {
  x <- core$data$x
  if (is_cl(x) || is_sparse(x) || 8 * length(x) > most_copied) return(NULL)
  compiled <- tryCatch(cl_gradient(traced_target(core, prior, target)), error = function(e) NULL)
  for (z in list(numeric(core$count), seq(-0.1, 0.1, length.out = core$count))) {
    numbers <- function(value) c(as.vector(value), unlist(attr(value, "gradient")))
    same <- tryCatch(agree(numbers(with_cl(compiled(z), engine = "host")),
                           numbers(target$density(z))), error = function(e) FALSE)
    if (!isTRUE(same)) return(NULL)
  }
  compiled
}

traced_target <- function(core, prior, target) {
  likelihood <- traced_likelihood(core$likelihood)
  beta <- seq_len(core$beta_count)
  aux <- aux_index(core)
  # where the coefficients, and the numbers 0 and 1 of others, are among c(theta, 0, 1)
  at <- full_beta(core, matrix(seq_len(core$count) + 1))
  place <- ifelse(at > 1, at - 1, core$count + 1 + at)
  size <- if (core$classes > 1L) dim(at)
  function(z) {
    theta <- target$centre + as.vector(target$root %*% z)
    total <- core$constant
    arguments <- list()
    if (core$logged) {
      total <- total + theta[aux]
      arguments[[core$aux]] <- exp(theta[aux])
    } else if (length(aux) > 0L) {
      total <- total + sum(theta[aux[-1L]])
      cuts <- theta[aux[1L]]
      if (length(aux) > 1L) cuts <- cumsum(c(cuts, exp(theta[aux[-1L]])))
      arguments[[core$aux]] <- cuts
      theta <- if (length(beta) > 0L) c(theta[beta], cuts) else cuts
    }
    full <- c(theta, 0, 1)[place]
    if (!is.null(size)) dim(full) <- size
    total + do.call(likelihood, c(list(beta = full), arguments)) + prior$traced(theta)
  }
}

# The draws of z as draws of coefficients and of sigma, phi or cuts, with their names.
name_draws <- function(draws, core, target) {
  names <- c(coefficient_names(core), aux_names(core))
  aux <- aux_index(core)
  convert <- function(array) {
    size <- dim(array)
    theta <- target$value(t(matrix(array, size[1L] * size[2L], size[3L])))
    if (core$logged) theta[aux, ] <- exp(theta[aux, ])
    array(t(theta), size, c(dimnames(array)[1:2], list(parameter = names)))
  }
  draws$draws <- convert(draws$draws)
  if (!is.null(draws$warmup)) draws$warmup$draws <- convert(draws$warmup$draws)
  draws
}

draws_covariance <- function(draws, aux, logged) {
  values <- as.matrix(draws)
  v <- stats::cov(values)
  if (!logged) return(list(vcov = v, aux_error = NA_real_))
  k <- match(aux, colnames(v))
  list(vcov = v[-k, -k, drop = FALSE], aux_error = sqrt(v[k, k]))
}
