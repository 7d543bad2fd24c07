#' statcl: Bayesian and likelihood computation on any GPU with OpenCL
#'
#' Cholesky factors and their gradients, triangular solves, products, likelihoods of generalised
#' linear models with gradients, and Gaussian-process regression, on any OpenCL device or, with the
#' same calls, on the host. Start with `vignette("statcl")`; [cl_sitrep()] tells what this machine
#' offers.
#'
#' @useDynLib statcl, .registration = TRUE
#' @import methods
#' @keywords internal
"_PACKAGE"
