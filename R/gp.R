# Gaussian-process regression: the fit. Its methods are in gp-methods.R, gp-predict.R and so on.

#' Gaussian-process regression
#'
#' Fits y = m(x) + f(x) + noise, where f is a Gaussian process with the covariance function
#' `kernel`, m is a constant or a linear model, and the noise is independent and normal. Parameters
#' are estimated by maximum marginal likelihood, with a penalty or not, by leave-one-out prediction,
#' or sampled, always with analytic gradients.
#'
#' Where at least a tenth of the observations repeat an input, the likelihood is computed from
#' means: observations at one input, with equal rows of the basis of the mean, are replaced by their
#' weighted mean, and their sum of squares enters separately (Binois, Gramacy and Ludkovski, 2018).
#' Results are the same, and time depends on the number of different inputs. This holds for exact
#' fits of normal observations by `method` "ml", "map" and "mcmc", without [k_white()] and
#' [k_user()]; known variances must be inversely proportional to the weights within a group. `"loo"`
#' predicts single observations, so it takes all of them.
#'
#' @section Methods:
#' `"ml"` maximises the log marginal likelihood (Rasmussen and Williams, 2006, section 5.4.1),
#' `"map"` the same plus the log densities of the priors (of the parameters on their natural scale)
#' or penalties. It is the default where noise is estimated, since such fits of few observations by
#' `"ml"` are often overconfident: lengthscales are so short and the noise so small that the process
#' goes through all observations. Parameters without a prior have penalties, which matter little
#' with many observations or without noise: -2 p w n^(-1/p) / lengthscale for each of p inputs of
#' range w, in the manner of the jointly robust prior of Gu (2019); that of a Cauchy distribution of
#' log(noise) about half of the standard deviation of y; and a wide prior of `sd`. With `family`, or
#' with the noise fixed, they are weak priors. `logLik`, and so [AIC()] and [BIC()], are those of
#' the marginal likelihood without penalties at the estimates, a little less than its maximum;
#' [anova()] takes fits by `"ml"` only. `"loo"` maximises the sum of the leave-one-out log
#' predictive densities (section 5.4.2). `"mcmc"` draws
#' from the posterior distribution by [cl_sample()], starting at the `"map"` estimate; coefficients
#' are then posterior means, and predictions average over draws.
#'
#' The values of the parameters in `kernel` are not used, except the period of a periodic kernel,
#' which is a first guess, in addition to peaks of the periodogram of y. If the values of an input
#' are multiples of one step, its period is at least two steps (unless the kernel has a shorter
#' one): a shorter one would have the same likelihood as a longer one, and curves that swing between
#' observations. Starting values and bounds follow from the spread of x and y, so that a fit does
#' not depend on their units. The search ([nlminb()], a quasi-Newton method with bounds) works on
#' the logarithms of the parameters. It makes a few steps from each of many starting points,
#' continues from the best of these, and looks for better points around the result; with five inputs
#' or more, it also takes many steps from further starting points, at some of which inputs have no
#' effect. Inputs without effect end with lengthscales at the upper bound, a million times the range
#' of the data. With more than 375 observations the search uses subsets for this. With up to 375
#' points in equal steps, a kernel of their differences and the same noise everywhere, such as a
#' series with a season, the covariance matrix is a Toeplitz matrix, whose likelihood is so quick
#' that there are 320 starting points or more if there is a period, else 40, whatever `starts` is
#' (unless it is 1). Results are always those of the whole matrix. With `starts = 1` the search
#' follows one point only and may end in a poor local optimum. The starting points are always the
#' same, so the result does not depend on the state of the random number generator. Parameters for
#' which the covariance matrix is not positive definite in floating-point arithmetic are treated as
#' having zero likelihood; the fit reports how often they occurred. Nothing is added to the diagonal
#' except the noise. To interpolate, set `fixed = c(noise = 0)`; for a small constant, `fixed =
#' c(noise = 1e-4)`. A search that is interrupted returns the best parameters found so far, with a
#' warning.
#'
#' @section Inputs:
#' A term of the kernel that uses all columns (`columns = NULL`) and has one lengthscale gets one
#' lengthscale for each column, named by it (`lengthscale.hp`), unless `ard = FALSE`. Terms with
#' named columns are not changed.
#'
#' Factors in a formula become indicator columns, unless [k_factor()] names them. Rows with missing
#' values are dropped ([na.omit()]); without a formula they are an error. The intercept of the
#' formula is ignored: the argument `mean` determines the mean.
#'
#' @section Mean:
#' `"estimate"` (or `"constant"`) is an unknown constant; `"linear"` is a linear function of the
#' columns of x; a one-sided formula such as `~ poly(time, 2)` is a linear model of variables of
#' `data`; a number is a known mean. Unknown coefficients are set to their generalised least squares
#' estimate for each value of the other parameters (`beta = "profile"`), or integrated out under a
#' flat prior (`"integrate"`, also known as REML; section 2.7). Predictions include their
#' uncertainty in both cases.
#'
#' @section Noise:
#' The noise of observation i has the variance noise^2 / `weights`\[i\] + `variance`\[i\]. To use
#' known variances only (of measurements, for example), set `fixed = c(noise = 0)`.
#'
#' With `noise`, a kernel such as [k_exp_quad()], the logarithm of the noise variance is that of
#' `noise^2` plus a Gaussian process with this kernel (Binois, Gramacy and Ludkovski, 2018; its
#' parameters are named `noise.sd`, `noise.lengthscale` and so on). It is integrated out by
#' Laplace's approximation, with the expected information, and the exact derivative of that
#' approximation. Observations at the same inputs enter by their mean and sum of squares, so that
#' the search takes n^3 operations for n different inputs. The fit then has the estimated variances
#' in its `weights`, which its predictions, and its leave-one-out predictions, take as known. The
#' noise of a new observation has the mean of the variance at its inputs, given the data. With
#' `method = "ml"` only, without `variance`, `approx` and `family`; [update()][update.cl_gp] cannot
#' add observations.
#'
#' @section Any number of observations:
#' An exact fit takes n^3 operations. With `approx = "vecchia"` a fit takes time and memory in
#' proportion to n: see [cl_gp_likelihood()]. It starts from an exact fit of 500 rows. Their
#' lengthscales are the units of the distances by which neighbours are chosen; if the ratio of the
#' final ones differs by more than a factor of two, neighbours are chosen again. Predictions are
#' given the nearest observations of each new point. Fitted values and leave-one-out predictions are
#' those of the approximate joint distribution, so that `fitted()` differs slightly from
#' `predict()` at the same points. The log likelihood depends, by some units or more, on the scale
#' of the distances that gave order and neighbours (the element `vecchia` has it): compare fits by
#' [AIC()] only if these are the same, or with more `neighbours`. `method` is `"ml"` or `"map"`;
#' `covariance` and `gradient` of
#' predictions and `update(newdata = )` are not available.
#'
#' @section Counts, classes and outliers:
#' With `family`, f with its mean and the `offset` is the linear predictor of each observation: as
#' in [cl_glm()] for `"bernoulli_logit"`, `"binomial_logit"`, `"poisson_log"`,
#' `"neg_binomial_2_log"` (which estimates `phi`), `"ordered_logistic"` and `"categorical_logit"`;
#' or the location of `"student_t"` (which estimates `scale` and `df`). `binomial()` and `poisson()`
#' can be given too. The response is as for [cl_glm()], `weights` multiply log densities (of
#' proportions they are the trials), and `variance` is not available.
#'
#' The first cut of `"ordered_logistic"` is 0, as the mean is estimated; the distances between cuts
#' are the parameters `gap1`, `gap2` and so on, and the element `cuts` has them all. The C classes
#' of `"categorical_logit"` have independent processes with the same kernel, of which C - 1
#' orthonormal contrasts matter for the probabilities; each has coefficients of the mean.
#'
#' `"ml"` and `"map"` use Laplace's approximation of the marginal likelihood, with the exact
#' derivative of that approximation, including that of the mode (Rasmussen and Williams, 2006,
#' sections 3.4, 3.5 and 5.5.1). With `beta = "profile"` coefficients are at the joint mode with the
#' process; with `"integrate"` they are part of the approximation. Steps towards the mode are
#' damped. With `"student_t"`, whose density is not log-concave, there can be several modes; the
#' highest of those from several starts is taken. As the curvature may be negative at outliers, that
#' of the normal density with the same height replaces it in the determinant of the approximation,
#' and a positive one, small at outliers and with the same expectation, in variances. `"mcmc"` draws
#' the latent process too, as independent normal variables multiplied by a Cholesky factor (to whose
#' matrix 1e-8 times the mean variance is added), and integrates the mean's coefficients under a
#' flat prior; nothing is approximated then. Each evaluation takes (C - 1)^3 n^3 operations for C
#' classes.
#'
#' With `approx = "vecchia"` the latent process has the sparse precision matrix of the approximation
#' (Zilber and Katzfuss, 2021), and Newton's steps are found by conjugate gradients. The
#' determinant in the likelihood and the variances of predictions come from an incomplete factor of
#' the precision matrix given the data, which is exact with n - 1 neighbours, like the
#' approximation. This runs on the host; derivatives are differences of values, as are standard
#' errors. It is for one latent process: not for `"categorical_logit"` and `method = "mcmc"`, nor
#' with [k_white()].
#'
#' The fit has the class `"cl_gp_response"`, with methods [predict()][predict.cl_gp_response],
#' [residuals()], [simulate()], [plot()] and those below; `loo::loo()` for `"mcmc"`.
#'
#' @section Engines:
#' The likelihood is evaluated on the engine described for [cl_gp_likelihood()]. A fit holds data
#' and parameters but no device memory: it can be saved and used in any session. The session caches
#' the factors of the covariance matrices of a few fits for predictions; others are computed again
#' when needed.
#'
#' @param x A formula `y ~ x1 + x2`, or the inputs: a numeric matrix, data frame or vector.
#' @param formula,data A formula, and a data frame in which its variables and those of `mean`,
#'   `weights` and `variance` are looked up.
#' @param y The observations: a numeric vector.
#' @param kernel A kernel, see [kernels].
#' @param method How parameters are estimated, see below: `"map"`, `"ml"`, `"loo"` or `"mcmc"`. The
#'   default is `"map"`, but with `family`, `noise` or `approx`, or with the noise fixed, it is
#'   `"ml"`.
#' @param mean The mean, see below: `"estimate"`, `"linear"`, a one-sided formula (of columns of x
#'   if there is no data frame), or a number.
#' @param beta How unknown coefficients of the mean are handled: `"profile"`, or `"integrate"`, the
#'   default for `"mcmc"`.
#' @param weights,variance See below: positive numbers, and nonnegative numbers, one for each
#'   observation.
#' @param prior For `"map"` and `"mcmc"`: a named list of [priors], or of functions of one number
#'   that return a log density, with its derivative as attribute `"gradient"` if available. Names
#'   are those of parameters or of their kind (`lengthscale` stands for all lengthscales).
#'   Parameters not named have penalties, with `"mcmc"` and `family` weak priors, in units of the
#'   data; [summary()] shows them.
#' @param ard See below.
#' @param start Starting values: a named vector of some parameters on their natural scale (see
#'   [cl_gp_likelihood()] for the names). It is tried in addition to the default starting points.
#' @param fixed A named vector of parameters to hold at these values. If all are held, there is no
#'   search.
#' @param lower,upper Bounds: named vectors of some parameters.
#' @param starts How thoroughly to search: the number of starting points is this times one more than
#'   the number of free parameters.
#' @param control A list for [nlminb()]; for `"mcmc"` of arguments of [cl_sample()], with the
#'   defaults `chains = 4`, `warmup = 250`, `iter = 250`.
#' @param progress Whether to show progress, as for [cl_glm()].
#' @param approx `"vecchia"` for Vecchia's approximation, see below.
#' @param neighbours The number of neighbours of Vecchia's approximation, 1 to 400: more of them
#'   take longer, with the third power, and come closer to the exact process.
#' @param grouped Whether the likelihood of Vecchia's approximation is grouped, which comes closer
#'   to the exact process. On the host a step of the search takes about the same time, on a GPU
#'   about twice the time: see [cl_gp_likelihood()]. Predictions, fitted values and draws are not
#'   grouped. Not for `family`.
#' @param family The distribution of the observations, see below; `NULL` for the normal one.
#' @param offset With `family`: a known part of the linear predictor, such as the logarithm of an
#'   exposure. The formula can have terms [offset()] too.
#' @param workers Where starting points are tried and, with `"mcmc"`, chains run, as for
#'   [cl_sample()]: a number of processes, a cluster, a plan of the future package, or `"mirai"`.
#'   The result is the same. It pays where a fit takes longer than the start of the processes.
#' @param noise A kernel, for noise whose variance changes with the inputs, see below.
#' @param subset,na.action As for [lm()].
#' @param object A fit.
#' @param ... For the generic: arguments of the methods.
#' @return An object of class `"cl_gp"`, a list with the elements
#'   * `coefficients`: the parameters, and the coefficients of the mean,
#'   * `par` (the parameters), `kernel` (with these parameters), `noise`,
#'   * `logLik`: log marginal likelihood at the parameters,
#'   * `objective`: the value that was maximised,
#'   * `gradient`: its final gradient with respect to the logarithms of the free parameters,
#'   * `converged`, `message`, `evaluations`,
#'   * `not_pd`: the number of evaluations with a covariance matrix that was not positive definite,
#'   * `at_bound`: names of parameters whose estimates are at a bound,
#'   * `trials`: the objective reached from each starting point in its first steps,
#'   * `fixed`, `prior`, `draws` (a [cl_sample()] result, for `"mcmc"`),
#'   * `vecchia`: with an approximation, a list of `neighbours`, `grouped` and `scale` (of the
#'     columns of x),
#'   * `fitted.values`, `residuals`, `x`, `y`, `call`,
#'   * with a formula also `terms`, `xlevels`, `model` and `na.action`.
#'
#'   There are methods for [print()], [summary()], [coef()], [vcov()], [confint()], [logLik()],
#'   [nobs()], [sigma()], [fitted()], [residuals()], [formula()], [weights()],
#'   [anova()], [drop1()], [rstandard()], [model.matrix()],
#'   [update()][update.cl_gp], [predict()][predict.cl_gp], [simulate()][simulate.cl_gp] and
#'   [plot()][plot.cl_gp].
#' @section Errors:
#' `statcl_error_argument` for invalid input, including unknown parameters and, if parameters are to
#' be estimated, a single observation or a y that does not vary about the mean;
#' `statcl_error_nonfinite` for missing and infinite values; `statcl_error_not_pd` if no starting
#' point has a positive definite covariance matrix, as happens if points coincide and `noise` is
#' held at 0; `statcl_error_interrupted` if the search is interrupted before its first result.
#'
#' Warnings have the classes `statcl_warning_convergence`, `statcl_warning_interrupted`,
#' `statcl_warning_constant_column` and `statcl_warning_white`; `statcl_warning_few` if there are
#' fewer observations than parameters; `statcl_warning_noise` if the noise
#' of few observations is estimated at its lower bound; `statcl_warning_means` if [AIC()], [BIC()]
#' or [anova()] compare fits whose different means were integrated out.
#' @references
#' Binois, M., Gramacy, R. B. and Ludkovski, M. (2018) Practical heteroscedastic Gaussian process
#' modeling for large simulation experiments. *Journal of Computational and Graphical Statistics*
#' 27, 808-821.
#'
#' Gu, M. (2019) Jointly robust prior for Gaussian stochastic process in emulation, calibration and
#' variable selection. *Bayesian Analysis* 14, 857-885.
#'
#' Rasmussen, C. E. and Williams, C. K. I. (2006) *Gaussian Processes for Machine Learning*. MIT
#' Press, chapters 2 and 5. <https://gaussianprocess.org/gpml/>
#'
#' Zilber, D. and Katzfuss, M. (2021) Vecchia-Laplace approximations of generalized Gaussian
#' processes for big non-Gaussian spatial data. *Computational Statistics & Data Analysis* 153,
#' 107081.
#' @seealso [predict.cl_gp()], [predict.cl_gp_response()], [priors]
#' @importFrom stats coef confint fitted formula logLik nobs predict residuals sigma simulate update
#'   vcov weights
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars)
#' fit
#' predict(fit, data.frame(speed = c(10, 30)), interval = "prediction")
#' plot(fit)
#'
#' # Two inputs, one lengthscale each, and a linear mean
#' coef(cl_gp(mpg ~ wt + hp, data = mtcars, kernel = k_exp_quad(), mean = "linear"))
#'
#' # Many observations
#' x <- matrix(runif(2000), ncol = 2, dimnames = list(NULL, c("a", "b")))
#' y <- sin(6 * x[, "a"]) + x[, "b"] + rnorm(1000, sd = 0.1)
#' cl_gp(x, y, k_matern32(), approx = "vecchia", neighbours = 10, starts = 1)
#'
#' # Classes; counts likewise, with family = "poisson_log"
#' am <- cl_gp(am ~ wt, mtcars, k_exp_quad(), family = "bernoulli_logit", method = "map")
#' predict(am, data.frame(wt = c(2, 3, 4)), type = "response", interval = "confidence")
#'
#' # Noise that changes with the input
#' cl_gp(dist ~ speed, cars, noise = k_exp_quad(), starts = 1)
#'
#' # With priors
#' coef(cl_gp(dist ~ speed, data = cars, method = "map",
#'            prior = list(lengthscale = prior_inv_gamma(tails = c(2, 40)))))
cl_gp <- function(x, ...) UseMethod("cl_gp")

#' @rdname cl_gp
#' @export
cl_gp.formula <- function(formula, data = NULL, kernel = k_matern52(), method = NULL,
                          mean = "estimate", weights = NULL, variance = NULL, family = NULL,
                          offset = NULL, ..., subset, na.action = stats::na.omit) {
  call <- match.call()
  kind <- read_mean(mean)
  whole <- classed(if (is.null(data)) stats::terms(formula) else
    stats::terms(formula, data = data), "formula")
  if (!is.null(attr(whole, "offset")) && is.null(family)) {
    abort_argument("formula", paste("an offset is not supported for normal observations: subtract",
                                    "it from the response"))
  }
  if (attr(whole, "response") == 0L) abort_argument("formula", "the formula has no response")
  formula <- stats::formula(whole)
  if (kind == "formula") mean <- without_dot(mean, formula[[3L]])
  frame <- match.call(expand.dots = FALSE)
  kept <- c("formula", "data", "subset", "weights", "variance", "offset", "na.action")
  frame <- frame[c(1L, match(kept, names(frame), 0L))]
  frame$formula <- with_mean_variables(formula, if (kind == "formula") mean)
  if (is.null(frame$na.action)) frame$na.action <- quote(stats::na.omit)
  frame$drop.unused.levels <- TRUE
  model <- eval_frame(frame, data, parent.frame())
  terms <- stats::terms(model)
  design <- list(terms = stats::delete.response(whole), xlevels = stats::.getXlevels(terms, model))
  coded <- factor_levels(check_kernel(kernel), model, design$xlevels)
  x <- model_inputs(design$terms, model, coded = coded)
  design$contrasts <- attr(x, "contrasts")
  attr(x, "contrasts") <- NULL
  h <- NULL
  if (kind == "formula") {
    design$mean <- stats::terms(mean, data = data)
    h <- mean_columns(kind, x, design$mean, model)
    design$mean_contrasts <- attr(h, "contrasts")
  }
  fit <- fit_gp(x, stats::model.response(model), kernel = kernel, method = method, mean = mean,
                h = h, weights = model[["(weights)"]], variance = model[["(variance)"]],
                coded = coded, family = family, offset = stats::model.offset(model), ...)
  fit$call <- call
  fit$call[[1L]] <- quote(cl_gp)
  fit$formula <- formula
  fit$terms <- terms
  fit$xlevels <- design$xlevels
  fit$design <- design
  fit$model <- model
  fit$variables <- input_variables(stats::delete.response(terms), data, model)
  fit$na.action <- attr(model, "na.action")
  fit
}

# The mean's formula with the inputs in place of a dot.
without_dot <- function(mean, inputs) {
  if (!"." %in% all.vars(mean)) return(mean)
  mean[[2L]] <- do.call(substitute, list(mean[[2L]], list(. = call("(", inputs))))
  mean
}

# The formula with the variables of the mean added, for one model frame.
with_mean_variables <- function(formula, mean) {
  if (is.null(mean)) return(formula)
  formula[[3L]] <- call("+", formula[[3L]], mean[[2L]])
  formula
}

# The variables of the right-hand side as they were before any function of the formula, for the rows
# of the model frame. Variables without one value for each row (such as pi) are excluded.
input_variables <- function(terms, data, model) {
  names <- all.vars(terms)
  found <- lapply(stats::setNames(names, names), function(name) {
    eval(as.name(name), data, environment(terms))
  })
  rows <- if (is.data.frame(data)) row.names(data) else as.character(seq_len(max(lengths(found))))
  found <- found[lengths(found) == length(rows) & length(rows) > 1L]
  lapply(found, `[`, match(row.names(model), rows))
}

# The columns that a model frame gives, without the intercept.
model_inputs <- function(terms, model, contrasts = NULL, coded = NULL) {
  attr(terms, "intercept") <- 1L # so that all factors have the same kind of contrasts
  x <- stats::model.matrix(terms, model, contrasts.arg = contrasts)
  used <- attr(x, "contrasts")
  of <- attr(x, "assign")
  inputs <- colnames(x) != "(Intercept)"
  for (name in names(coded)) { # one column of codes instead of indicators
    at <- which(of == match(name, attr(terms, "term.labels")))
    x[, at[1L]] <- level_codes(model[[name]], coded[[name]], name, "newdata")
    colnames(x)[at[1L]] <- name
    inputs[at[-1L]] <- FALSE
  }
  x <- x[, inputs, drop = FALSE]
  attr(x, "assign") <- NULL
  attr(x, "contrasts") <- used
  if (ncol(x) == 0L) abort_argument("formula", "the formula has no inputs")
  x
}

#' @rdname cl_gp
#' @export
cl_gp.default <- function(x, y, kernel = k_matern52(), method = NULL, mean = "estimate",
                          beta = NULL, weights = NULL, variance = NULL, prior = NULL, ard = TRUE,
                          start = NULL, fixed = NULL, lower = NULL, upper = NULL, starts = 5,
                          control = list(), progress = TRUE,
                          approx = c("none", "vecchia"), neighbours = 30, grouped = FALSE,
                          family = NULL, offset = NULL, workers = 1, noise = NULL, ...) {
  call <- match.call()
  call[[1L]] <- quote(cl_gp)
  refuse_unused(...)
  fit <- fit_gp(x, y, kernel, method, mean, beta, weights, variance, prior, ard, start, fixed,
                lower, upper, starts, control, progress, approx = approx,
                neighbours = if (!missing(neighbours)) neighbours, grouped = grouped,
                family = family, offset = offset, workers = workers, noise = noise)
  fit$call <- call
  fit
}

refuse_unused <- function(...) {
  if (...length() == 0L) return(invisible())
  extra <- names(list(...))[1L]
  if (is.null(extra) || !nzchar(extra)) abort_argument("...", "unused argument without a name")
  abort_argument(extra, sprintf("unused argument '%s'", extra))
}

# The fit, for inputs as a matrix; `h`: the columns of the mean, if a formula gives them.
fit_gp <- function(x, y, kernel, method, mean, beta = NULL, weights = NULL, variance = NULL,
                   prior = NULL, ard = TRUE, start = NULL, fixed = NULL, lower = NULL, upper = NULL,
                   starts = 5, control = list(), progress = TRUE, h = NULL,
                   approx = c("none", "vecchia"), neighbours = NULL, grouped = FALSE,
                   coded = NULL, family = NULL, offset = NULL, response = NULL, workers = 1,
                   noise = NULL, ...) {
  refuse_unused(...)
  begin_note("gp")
  if (is.null(method)) {
    other <- !is.null(family) || !is.null(response) || !is.null(noise) ||
      identical(approx, "vecchia") || "noise" %in% names(fixed) && is.null(prior)
    method <- if (other) "ml" else "map"
  }
  method <- check_choice(method, c("map", "ml", "loo", "mcmc"), "method")
  if (is.null(beta)) beta <- if (method == "mcmc") "integrate" else "profile"
  beta <- check_choice(beta, c("profile", "integrate"), "beta")
  if (!is.null(prior) && method %in% c("ml", "loo")) {
    abort_argument("prior", sprintf("priors are for methods \"map\" and \"mcmc\", not \"%s\"",
                                    method))
  }
  kernel <- check_kernel(kernel)
  check_flag(ard, "ard")
  if (is.data.frame(x)) {
    coded <- factor_levels(kernel, x)
    if (length(coded) > 0L && inherits(mean, "formula")) {
      abort_argument("mean", paste("with factors, a formula for the mean needs a formula for the",
                                   "inputs too"))
    }
    x <- code_columns(x, coded, "x")
  }
  if (length(coded) > 0L && identical(mean, "linear")) {
    abort_argument("mean", paste("mean = \"linear\" is not for codes of factors: use a formula,",
                                 "such as mean = ~ ."))
  }
  neighbours <- check_approx(approx, neighbours, grouped)
  starts <- check_count(starts, "starts", 1, 1000)
  if (!is.list(control)) abort_argument("control", "'control' must be a list")
  progress <- check_flag(progress, "progress")
  if (method == "mcmc" && is.null(control$workers)) control$workers <- workers
  workers <- check_workers(workers, 64L)
  if (is.null(response)) {
    family <- response_family(family, y)
    if (!is.null(family)) {
      if (grouped) abort_argument("grouped", "'grouped' is for normal observations")
      refuse_for_response(method, variance, neighbours)
      response <- gp_response(family, y, weights, offset)
    }
  }
  if (!is.null(response)) {
    if (!is.null(noise)) abort_argument("noise", "'noise' is for normal observations")
    return(fit_gp_response(x, response, kernel, method, mean, beta, prior, start, fixed, lower,
                           upper, starts, control, progress, workers, h, coded, ard,
                           neighbours))
  }
  if (!is.null(offset)) {
    abort_argument("offset", paste("an offset is not supported for normal observations: subtract",
                                   "it from the response"))
  }
  problem <- new_gp_problem(x, y, kernel, mean, beta, weights, variance, h)
  problem$kernel <- kernel <- resolve_kernel(kernel, problem$x, coded, ard, stats::sd(problem$y))
  problem <- with_vecchia(problem, neighbours, method, grouped)
  problem$noise_kernel <- noise_kernel(noise, kernel, problem$x, ard, method, variance, neighbours)
  space <- gp_space(problem, start, fixed, lower, upper)
  if (any(space$free)) check_gp_information(problem)
  warn_space(space, kernel)
  clear_gp_states(length(problem$y))
  with_prior <- if (method %in% c("map", "mcmc")) {
    penalise <- method == "map" && space$free[nrow(space)]
    gp_prior_of(prior, space, if (penalise) length(problem$y))
  }
  found <- if (!is.null(neighbours)) {
    vecchia_search(problem, space, with_prior, starts, control, progress, workers)
  } else {
    gp_search(problem, space, with_prior, if (method == "loo") "loo" else "ml", starts,
              if (method == "mcmc") list() else control, progress, workers)
  }
  if (method == "mcmc") found <- gp_sample(problem, space, with_prior, found, control, progress)
  fit <- finish_gp(problem, space, method, with_prior, found)
  fit$coded <- coded
  fit
}
