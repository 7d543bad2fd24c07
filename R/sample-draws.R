# Draws for other packages: fits by sampling as matrices, diagnostics for bayesplot, pointwise log
# densities for loo.

# The draws of a fit of cl_glm() or cl_gp(); other objects with draws are returned unchanged.
fit_draws <- function(x) {
  if (inherits(x, "cl_sample")) return(x)
  if (is.null(x$draws)) abort_argument("x", "only a fit with method = \"mcmc\" has draws")
  x$draws
}

#' @rawNamespace S3method(as.matrix,cl_glm,fit_matrix)
#' @rawNamespace S3method(as.matrix,cl_gp,fit_matrix)
fit_matrix <- function(x, ...) as.matrix(fit_draws(x), ...)

#' @rawNamespace S3method(as.array,cl_glm,fit_array)
#' @rawNamespace S3method(as.array,cl_gp,fit_array)
fit_array <- function(x, ...) as.array(fit_draws(x), ...)

#' @rawNamespace S3method(as.data.frame,cl_glm,fit_frame)
#' @rawNamespace S3method(as.data.frame,cl_gp,fit_frame)
fit_frame <- function(x, row.names = NULL, optional = FALSE, ...) {
  as.data.frame(fit_draws(x), row.names, optional, ...)
}

# ---- bayesplot -----------------------------------------------------------------------------------

# bayesplot's names for the elements of `diagnostics`.
stan_names <- c(accept_stat = "accept_stat__", step_size = "stepsize__",
                tree_depth = "treedepth__", leapfrogs = "n_leapfrog__", divergent = "divergent__",
                energy = "energy__")

#' @rawNamespace S3method(bayesplot::nuts_params,cl_sample,nuts_params_of)
#' @rawNamespace S3method(bayesplot::nuts_params,cl_glm,nuts_params_of)
#' @rawNamespace S3method(bayesplot::nuts_params,cl_gp,nuts_params_of)
nuts_params_of <- function(object, pars = NULL, ...) {
  check_dots_empty(...)
  named <- if (is.null(pars)) stan_names else stan_names[stan_names %in% pars]
  figures <- figures_of(object, names(named))
  n <- nrow(figures) / max(1L, length(named))
  cbind(figures[c("Chain", "Iteration")],
        Parameter = factor(rep(named, each = n), levels = named), figures["Value"])
}

#' @rawNamespace S3method(bayesplot::log_posterior,cl_sample,log_posterior_of)
#' @rawNamespace S3method(bayesplot::log_posterior,cl_glm,log_posterior_of)
#' @rawNamespace S3method(bayesplot::log_posterior,cl_gp,log_posterior_of)
log_posterior_of <- function(object, ...) {
  check_dots_empty(...)
  figures_of(object, "log_density")
}

# Some diagnostics as a data frame in long form.
figures_of <- function(object, names) {
  figures <- fit_draws(object)$diagnostics
  size <- dim(figures$energy)
  if (is.null(size)) abort_argument("object", "approximate draws have no diagnostics")
  data.frame(Chain = rep(rep(seq_len(size[2L]), each = size[1L]), length(names)),
             Iteration = rep(seq_len(size[1L]), size[2L] * length(names)),
             Value = as.double(unlist(figures[names])))
}

# ---- loo -----------------------------------------------------------------------------------------

#' @exportS3Method loo::loo
loo.cl_sample <- function(x, log_lik, ...) {
  if (missing(log_lik)) {
    names <- dimnames(x$draws)[[3L]]
    own <- grep("^log_lik(\\[|$)", names)
    if (length(own) > 0L) return(loo_of(x$draws[, , own, drop = FALSE], ...))
    abort_argument("log_lik", paste("'log_lik' must be a function of the parameters that returns",
                                    "the log likelihood of each observation"))
  }
  loo_of(cl_generate(x, log_lik), ...)
}

# `log_lik`: iteration x chain x observation.
loo_of <- function(log_lik, ..., r_eff = NULL) {
  log_lik <- array(log_lik, dim(log_lik))
  if (is.null(r_eff)) r_eff <- loo::relative_eff(exp(log_lik))
  loo::loo(log_lik, ..., r_eff = r_eff)
}
