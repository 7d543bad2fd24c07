#' statcl: Bayesian and likelihood computation on any GPU with OpenCL
#'
#' Cholesky factors and their gradients, triangular solves, matrix products, likelihoods of
#' generalised linear models with gradients, and Gaussian-process regression, on any OpenCL device
#' or, with the same calls, on the host. Start with `vignette("statcl")`; [cl_sitrep()] reports what
#' this machine offers. All functions, by topic:
#'
#' @section Generalised linear models:
#' - [cl_glm()]: fit a model; [predict.cl_glm()], [residuals.cl_glm()], [weights.cl_glm()],
#'   [confint.cl_glm()], [profile.cl_glm()], [anova.cl_glm()], [simulate.cl_glm()],
#'   [plot.cl_glm()]: its methods; [influence.cl_glm()]: leverages and Cook's distances;
#'   [cl_glm-posterior]: posterior predictions; [cl_glm-tools]: broom, sandwich, emmeans
#' - [cl_glmm()]: models with random effects; [predict.cl_glmm()]: predictions, simulations, tests
#' - [cl_glm_blocks]: data larger than the memory of the device or the host
#' - [cl_family()]: beta, Tweedie, zero-inflated, hurdle and truncated families
#' - [cl_glm_fit()], [cl_as_glm()]: the same fit as a method of `glm()`, and as its object
#' - [cl_glm_lpdf()], [cl_likelihood()], [cl_glm_hessian()]: log likelihood, gradient, Hessian
#'
#' @section Gaussian processes:
#' - [cl_gp()]: fit a model; [predict.cl_gp()], [predict.cl_gp_response()], [simulate.cl_gp()],
#'   [update.cl_gp()], [plot.cl_gp()]: its methods
#' - [cl_acquire()], [cl_acquisition()]: where to observe next
#' - [cl_gp_likelihood()], [cl_gp_largest()]: marginal likelihood with gradient, largest possible
#'   problem
#' - [kernels], [k_exp_quad()], [k_matern()], [k_matern52()], [k_matern32()], [k_exponential()],
#'   [k_rational_quadratic()], [k_periodic()], [k_linear()], [k_constant()], [k_white()],
#'   [k_factor()], [k_user()], [plot.cl_kernel()]: covariance functions
#' - [cl_cov()], [cl_cov_adjoint()], [cl_distance()]: covariance matrices, their derivatives,
#'   distances
#'
#' @section Cross-validation:
#' - [cl_cv()], [cl_compare()]: of fits of these models, and their comparison
#'
#' @section Your own model:
#' - [cl_gradient()]: a plain R function with its gradient; [cl_map_gradient()]: at several points;
#'   [cl_hessian()]: its second derivatives
#' - [cl_scan()], [cl_ode()]: recursions and differential equations, as one compiled loop
#' - [cl_densities]: densities that such a function can use
#' - [cl_stan()]: Stan programs as they are, with their data, as such densities
#' - [cl_brm()]: multilevel models by the formulas of brms
#' - [cl_tmb()], [cl_sdreport()], [cl_one_step()]: objectives written for RTMB, standard errors,
#'   simulated data and residuals
#' - [cl_log_sum_exp()], [cl_softmax()]: sums of exponentials
#'
#' @section Sampling and optimisation:
#' - [cl_sample()], [cl_sample-methods]: draw from a log density with gradient
#' - [cl_optimise()], [cl_laplace()], [cl_pathfinder()], [cl_vi()]: mode, and normal approximations,
#'   of the same densities
#' - [cl_generate()]: functions of the draws, such as predictions
#' - [cl_calibrate()], [cl_calibration-methods]: simulation-based calibration
#' - [cl_log_posterior()]: add priors to a likelihood
#' - [priors], [prior_normal()], [prior_student_t()], [prior_lognormal()], [prior_gamma()],
#'   [prior_inv_gamma()]: priors
#' - [transforms], [cl_lower()], [cl_upper()], [cl_bounds()], [cl_ordered()],
#'   [cl_positive_ordered()], [cl_simplex()], [cl_zero_sum()], [cl_unit_vector()],
#'   [cl_corr_factor()], [cl_corr_matrix()], [cl_cov_matrix()]: constrained parameters
#' - [cl_objective()], [cl_check_gradient()]: objectives for [optim()], tests of gradients
#'
#' @section Matrices on a device:
#' - [clMatrix], [as_cl()], [cl_matrix()], [cl_identity()], [cl_zeros()]: create a matrix
#' - [clMatrix-convert], [clMatrix-print]: convert to base R, print, summarise
#' - [clMatrix-index], [subset.clMatrix()]: extract, replace, transpose, bind
#' - [clArray]: arrays with three dimensions
#' - [clSparse], [as_sparse()]: sparse matrices
#'
#' @section Arithmetic:
#' - [clMatrix-arith]: operators and mathematical functions
#' - [clMatrix-reductions]: sums, means, extremes
#' - [clMatrix-statistics]: covariance, scaling, sorting, quantiles
#' - [clMatrix-distributions]: densities, distribution functions, special functions
#' - [cl_inv_logit()], [cl_log1p_exp()], [cl_pnorm()], [cl_erf()], [cl_erfc()], [cl_atan2()]:
#'   functions without a generic in base R
#' - [cl_ifelse()], [cl_row()], [cl_col()]: elementwise choice, row and column numbers
#' - [cl_map()], [cl_reduce()]: your own elementwise functions and reductions
#' - [cl_eval()], [cl_show_kernel()]: lazy evaluation and fused kernels
#'
#' @section Linear algebra:
#' - [cl_matmul()], [cl_crossprod()], [cl_tcrossprod()]: matrix products
#' - [cl_tri_solve()], [cl_tri_inverse()], [cl_tri_solve_adjoint()]: triangular systems
#' - [cl_chol()], [cl_chol_adjoint()]: Cholesky factor and its reverse-mode gradient
#' - [clMatrix-solve], [clMatrix-norm]: linear systems, determinants, norms, condition numbers
#'
#' @section Batches of small problems:
#' - [cl_batch], [cl_batch_inverse()], [cl_batch_chol()], [cl_batch_chol_adjoint()],
#'   [cl_batch_solve()], [cl_batch_tri_solve()], [cl_batch_det()], [cl_batch_matmul()],
#'   [cl_batch_mvn_lpdf()]: matrices in an array `n x n x batch`
#' - [cl_batch_lm()], [cl_batch_glm()]: linear, logistic and Poisson regressions by group, their
#'   [methods][cl_batch-methods]
#'
#' @section Session and devices:
#' - [cl_sitrep()]: report on this machine
#' - [cl_devices()], [cl_available()]: list devices
#' - [cl_use()], [with_cl()]: choose the engine and the device
#' - [cl_memory()], [cl_free()], [cl_sync()]: device memory, waiting for the device
#' - [cl_thresholds()], [cl_tune()]: problem sizes from which the device is used
#' - [cl_cache()]: keep built programs between sessions
#'
#' @section For experts:
#' - [cl_operations()], [cl_op()]: the operations that kernels are made of
#' - [cl_kernel()]: run your own OpenCL C
#' - [statcl-conditions]: classes of errors
#'
#' @useDynLib statcl, .registration = TRUE
#' @import methods
#' @keywords internal
"_PACKAGE"
