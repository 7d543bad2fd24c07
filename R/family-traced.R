# Likelihoods of this package in traced functions: cl_glm_lpdf() and cl_likelihood().

glm_masks <- function() {
  list(cl_glm_lpdf = function(family, y, x, alpha = 0, beta = numeric(), ..., sigma = NULL,
                              phi = NULL, cuts = NULL, trials = NULL, gradient = NULL) {
    if (!any_traced(x, y, alpha, beta, sigma, phi, cuts)) {
      return(as.vector(cl_glm_lpdf(family, y, x, alpha, beta, ..., sigma = sigma, phi = phi,
                                   cuts = cuts, trials = trials)))
    }
    check_dots_empty(...)
    traced_glm(check_family(family), y, x, alpha, beta, sigma, phi, cuts, trials)
  })
}

# A cl_likelihood() in the form in which a traced function calls it.
traced_likelihood <- function(f) {
  force(f)
  data <- environment(f)
  function(alpha = 0, beta = numeric(), ..., sigma = NULL, phi = NULL, cuts = NULL,
           gradient = NULL) {
    if (!any_traced(alpha, beta, sigma, phi, cuts)) {
      return(as.vector(f(alpha, beta, ..., sigma = sigma, phi = phi, cuts = cuts)))
    }
    traced_glm(data$family, data$y, data$x, alpha, beta, sigma, phi, cuts, data$trials,
               data$weights)
  }
}

# The log density, by the row of the family. Weights multiply that of an observation.
traced_glm <- function(family, y, x, alpha, beta, sigma, phi, cuts, trials, weights = NULL) {
  if (is_cl(x)) x <- as.matrix(x)
  if (is_cl(y)) y <- as.vector(as.matrix(y))
  if (is.null(dim(x))) x <- matrix_of(x, length(x), 1L)
  if (!any_traced(y)) y <- as.double(y)
  if (nrow(x) == 1L && length(y) > 1L) x <- x[rep(1L, length(y)), , drop = FALSE]
  if (length(y) == 1L) y <- rep(y, nrow(x))
  if (length(beta) == 1L && ncol(x) > 1L) beta <- rep(beta, ncol(x))
  eta <- if (ncol(x) > 0L) traced_product(x, beta, 0L) else matrix(0, nrow(x), 1L)
  if (is_categorical(family)) {
    eta <- traced_sweep(eta, 2L, rep_len(alpha, ncol(eta)), `+`)
    each <- eta[cbind(seq_along(y), y)] - cl_log_sum_exp(eta, 1L)
  } else {
    eta <- alpha + as.vector(eta)
    aux <- list(sigma = sigma, phi = phi, cuts = cuts)
    row <- family_row(family)
    each <- row$traced(y, eta, if (length(row$aux) > 0L) aux[[row$aux]], as.double(trials))
  }
  sum(if (is.null(weights)) each else as.double(weights) * each)
}
