# Generalised linear models: the fit. cl_glm() makes the model frame of the formula (with bars,
# cl_glmm() does; of more rows than the memory has, stream_glm() block by block); the row of the
# family (family_row()) says how the response is read, and names the fitter, which finds the mode
# (glm_fit_mode()), of which finish_glm() makes the fit. Its methods are in glm-methods.R,
# glm-predict.R and so on.

#' Generalised linear models
#'
#' Fits a generalised linear model of one of the families of [cl_glm_lpdf()] by maximum likelihood,
#' with priors, or by sampling, with the data on the device. The fit supports the methods that fits
#' of [glm()] have.
#'
#' @section Families:
#' `r family_help_table(c("response", "further"), "| family | response | further parameters |")`
#'
#' For `"binomial_logit"`, counts of successes need `trials`, and proportions need `weights`.
#' Factors have at most 2,000 levels.
#'
#' Tables, labelled numbers and `I()` are used as plain numbers.
#'
#' All families of R with all their links are accepted too, as an object, function or name:
#' `binomial("probit")` (or `"cloglog"`, `"cauchit"`, `"log"`, `"identity"`), `poisson("sqrt")`,
#' `Gamma`, `inverse.gaussian("log")`, `quasibinomial`, `quasipoisson`, `quasi(link = "log",
#' variance = "mu^2")`, `MASS::negative.binomial(2)` with its fixed theta, a link by [power()], or a
#' family object of your own. `binomial()`, `poisson()` and `gaussian()` with their canonical links
#' stand for `"bernoulli_logit"` or `"binomial_logit"` (depending on the response), `"poisson_log"`
#' and `"normal_id"`, except for responses that only [glm()] takes: factors of more than two levels,
#' of which the first is the failure, and Poisson responses that are not whole numbers.
#'
#' [cl_family()] has beta, Tweedie, zero-inflated, hurdle and truncated families. In a formula of
#' two parts, `y ~ x | z`, z are the predictors of their second parameter.
#'
#' Families of R take responses and weights as [glm()] does, and the fit has its numbers: standard
#' errors from the expected information, the dispersion by Pearson's statistic where the family
#' leaves it open, its deviances, AIC (`NA` for quasi-likelihoods, which have no density),
#' residuals, and its summary. They and those of [cl_family()] are fitted by method `"ml"`; for
#' priors and draws write their log density as an R function for [cl_sample()].
#'
#' @section Methods:
#' `"ml"`: Newton's method on all parameters together, starting from one weighted least squares fit
#' as in [glm()], with steps halved until the likelihood increases. It stops when the mode is less
#' than 1e-8 standard errors away (`control = list(tolerance = )`); all coefficients are then
#' accurate to about ten digits if the columns of x allow it. If the likelihood has no maximum
#' because some responses are predicted with certainty (separation), the search stops with a warning
#' that names the coefficients. Standard errors of `normal_id` are those of [lm()], with the
#' unbiased estimate of sigma; those of `neg_binomial_2_log` use the expected information, as
#' `MASS::glm.nb()` does. All other families use the observed information, which equals the expected
#' information for the binomial, Poisson and categorical families. Columns that are linear
#' combinations of earlier ones get the coefficient `NA`; the tolerance, relative to the length of
#' the column, is 1e-7 for `normal_id`, as in [lm()], and 1e-11 for the other families, as in
#' [glm()].
#'
#' If a triangular factor of X is cheap, or its columns are nearly collinear, the fit is computed in
#' orthogonal columns, by Householder's QR decomposition on the host, so that coefficients are as
#' accurate as those of [lm()] and [glm()]. Linear regression then needs no search: it is solved by
#' least squares and corrected with residuals computed in twice the precision. A perfect fit, with a
#' residual variance of zero, is returned with the same warning as from the summary of [lm()].
#'
#' `"map"`: the mode of the posterior density, likelihood times priors, by the same method. Standard
#' errors are those of Laplace's approximation. No column is dropped.
#'
#' `"mcmc"`: draws from the posterior by [cl_sample()], with several chains in one evaluation where
#' that is faster. Sampling uses coordinates in which Laplace's approximation is a standard normal
#' distribution, so that correlated columns do not slow it down. (For `normal_id` with about as many
#' coefficients as observations the joint density has no useful mode. The approximation is then made
#' where the marginal density of sigma is largest.) Coefficients are posterior means. There is an
#' `as_draws()` method for the posterior package.
#'
#' `"firth"`, for logistic and Poisson regressions with their canonical links: the likelihood times
#' Jeffreys' prior, the square root of the determinant of the information (Firth 1993). Coefficients
#' are finite for separated data, too, and their bias is of smaller order. Standard errors are from
#' the information; deviance, log likelihood and AIC are those of the likelihood without the prior.
#' The fit is computed on the host.
#'
#' Families of R are fitted by iteratively reweighted least squares as in [glm()], with steps halved
#' until the means are valid and the deviance does not increase. The search stops when a step is
#' less than 1e-8 standard errors, later than in [glm()]; if the first step leads to invalid means,
#' it starts again from a constant mean, where [glm()] asks for starting values. For a matrix on a
#' device, means, weights and the deviance are computed there, for the links and families that R
#' has; for other links and families on the host. Confidence intervals from standard errors use
#' Student's t distribution if the dispersion is estimated.
#'
#' @section Accuracy:
#' On all engines and devices the coefficients of `normal_id` have at least the correct digits of
#' [lm()], those of other families at least the correct digits of [glm()] with `epsilon = 1e-15`.
#' For the data sets of NIST for linear regression (Longley, Wampler, Pontius, Norris, NoInt) at
#' least 13 digits are correct. (Filip's powers of x, rounded to doubles, define a problem whose
#' exact solution has 7.6 digits of the certified one: no fit can promise more there.) Where
#' cross-products would lose digits, because the columns, scaled to the same length, have a
#' condition number of about 1e4 or more, x is copied to the host and the fit is computed in
#' orthogonal columns.
#'
#' @section Priors:
#' A prior such as `prior_normal(0, 2.5)` applies to all coefficients except the intercept. A list
#' gives priors by name: names of columns, `coefficients` for all except the intercept, `intercept`,
#' and `sigma`, `phi` or `cuts`. See [priors]; a function of one number that returns a log density
#' is accepted too. Parameters not named in the list have weak priors in units of the data, which
#' [summary()] shows. For coefficients they are normal with standard deviation 2.5 divided by the
#' standard deviation of the column (for `normal_id` multiplied by that of y), and the prior of the
#' intercept follows from these; for `sigma` half-normal; for `phi` log-normal.
#'
#' @section Weights:
#' For families of R as for [glm()]: the variance of an observation is proportional to 1 / weight,
#' and for proportions weights are the numbers of trials. For `"normal_id"` the variance of an
#' observation is sigma^2 / weight. For a `"binomial_logit"` response of proportions weights are the
#' numbers of trials. Otherwise they multiply the log
#' density of an observation: they may be the number of times that it occurred, and need not be
#' integers. Observations with weight 0 are not used. [nobs()], and with it the degrees of freedom,
#' is the number of the others, as for [glm()]; for families with classes it is the sum of the
#' weights, as for `MASS::polr()`.
#'
#' @section Engines:
#' x is uploaded once if it is large enough ([cl_thresholds()], `"glm_fit"`) and stays on the device
#' during the fit, as do the vectors of the search: y is uploaded, linear predictors and means are
#' downloaded. X' W X needs the same amount of memory again. A fit holds no device memory, so it
#' can be saved. For the largest problems pass a matrix instead of a formula, including a column of
#' ones for the intercept (with `intercept = FALSE`) or not: it is not copied in R. A `clMatrix` is
#' used where it is.
#'
#' A sparse matrix, of package Matrix or a [clSparse], stays sparse on the host and on a device; it
#' is fitted as a family of R. Only X' W X, p x p, is dense, and `vcov` of the fit: 0.8 GB each for
#' p = 10,000. Up to 4,000 columns, those that are linear combinations of earlier ones get the
#' coefficient `NA`; with more they are an error.
#'
#' @param x A formula `y ~ x1 + x2` (or its text; with random effects such as `(x1 | g)` see
#'   [cl_glmm()]), or the predictors: a numeric matrix, data frame
#'   or vector, a `clMatrix`, or a sparse matrix ([clSparse]).
#' @param formula,data A formula, and a data frame in which its variables, and those of `weights`,
#'   `offset` and `trials`, are looked up. `data` and `family` may change places, as in [glm()].
#' @param y The response, see below.
#' @param family The name of a family, or a family of R such as `Gamma("log")`, see below.
#' @param method How parameters are estimated, see below.
#' @param prior For `"map"` and `"mcmc"`, see below.
#' @param weights,trials Numbers, one for each observation, see below.
#' @param offset Numbers that are added to the linear predictor, one for each observation; or
#'   `offset()` in the formula. For `"categorical_logit"` a matrix with a column for each class.
#' @param start Starting values of the coefficients.
#' @param etastart,mustart For families of R, starting values of the linear predictors or of the
#'   means, one for each observation. Other families do not need them.
#' @param intercept Whether to add a column of ones.
#' @param control A list: `maxit` (100) and `tolerance` (1e-8) of the search; for `"mcmc"` also
#'   arguments of [cl_sample()], with the defaults `chains = 4`, `warmup = 250`, `iter = 500`.
#' @param progress Whether to show progress of sampling and of long searches: at most one line each
#'   second in an interactive session, each ten seconds in scripts, where
#'   `options(statcl.quiet = TRUE)` turns it off.
#' @param model Whether the fit keeps the model frame, which [model.frame()], [model.matrix()],
#'   [anova()] of a single fit and profile intervals need.
#' @param subset,na.action,contrasts As for [glm()]. The default of `na.action` is the option of
#'   this name.
#' @param block Rows of a block, to fit a data frame by blocks. `data` may also be a function, a
#'   file, a connection or an Arrow table: see [cl_glm_blocks].
#' @param object A fit.
#' @param ... For the generic: arguments of the methods.
#' @return An object of class `"cl_glm"`, a list with the elements
#'   * `coefficients`: a named vector; for `categorical_logit` with names `class:column`,
#'   * `aux`: `sigma`, `phi`, the cuts, or the estimated `dispersion` of a family of R,
#'   * `vcov`: covariance matrix of coefficients and cuts,
#'   * `vcov.root`: a matrix R with `vcov` = R R', or `NULL`; it keeps digits that `vcov` has lost
#'     if coefficients are highly correlated,
#'   * `logLik`, `objective` (log likelihood plus log priors), `deviance`, `null.deviance`,
#'     `df.residual`, `df.null`, `rank`,
#'   * `family` (its name), `method`,
#'   * `linear.predictors`, `fitted.values`: means; for `binomial_logit` proportions; for families
#'     with classes a matrix of probabilities,
#'   * `y`, `levels`, `trials`, `prior.weights`, `offset`,
#'   * `converged`, `message`, `iterations`, `decrement` (estimated distance from the mode in
#'     standard errors),
#'   * `prior` (as text), `draws` (a [cl_sample()] result, for `"mcmc"`), `call`,
#'   * with a formula also `formula`, `terms`, `xlevels`, `contrasts`, `model` and `na.action`.
#'
#'   There are methods for [print()], [summary()], [coef()], [vcov()], [confint()][confint.cl_glm],
#'   [logLik()], [nobs()], [deviance()], [sigma()], [fitted()], [residuals()][residuals.cl_glm],
#'   [predict()][predict.cl_glm], [simulate()][simulate.cl_glm], [plot()][plot.cl_glm],
#'   [anova()][anova.cl_glm], [update()], [family()], [formula()], [weights()], [model.matrix()],
#'   [model.frame()] and [extractAIC()]; [AIC()], [BIC()] and [step()] therefore work. Leverages and
#'   Cook's distances are in [influence.cl_glm()], methods for other packages in [cl_glm-tools].
#' @section Errors:
#' `statcl_error_argument` for invalid input, naming the argument; `statcl_error_nonfinite` for
#' infinite values in x.
#'
#' Warnings have the classes `statcl_warning_separation`, `statcl_warning_convergence`,
#' `statcl_warning_boundary` (`phi` has no finite estimate; an essentially perfect fit of
#' `normal_id`), `statcl_warning_counts` where [glm()] warns about non-integer counts, and
#' `statcl_warning_sampling` (chains that have not mixed, or fewer than 50 effective draws per
#' chain; `converged` is then `FALSE`).
#' @references
#' Firth, D. (1993) Bias reduction of maximum likelihood estimates. *Biometrika* **80**, 27--38.
#'
#' McCullagh, P. and Nelder, J. A. (1989) *Generalized Linear Models*. Chapman and Hall.
#' @seealso [predict.cl_glm()], [priors], [cl_likelihood()]
#' @importFrom stats anova deviance df.residual extractAIC family model.frame model.matrix terms
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt + hp, data = mtcars)
#' summary(fit)
#' predict(fit, data.frame(wt = 3, hp = 120), type = "response", interval = "confidence")
#' plot(fit)
#'
#' # Overdispersed counts
#' coef(cl_glm(breaks ~ wool + tension, data = warpbreaks, family = "neg_binomial_2_log"))
#'
#' # A family and link of R
#' summary(cl_glm(mpg ~ wt + hp, data = mtcars, family = Gamma("log")))
#'
#' # Ordered classes, with the number of times that each observation occurred
#' if (requireNamespace("MASS", quietly = TRUE)) {
#'   cl_glm(Sat ~ Infl + Type + Cont, data = MASS::housing, family = "ordered_logistic",
#'          weights = Freq)
#' }
#'
#' # Separated data: finite estimates
#' coef(cl_glm(c(0, 0, 0, 1, 1) ~ c(1, 2, 3, 4, 5), method = "firth"))
#'
#' # With priors: the posterior mode, and draws
#' coef(cl_glm(am ~ wt, data = mtcars, method = "map", prior = prior_normal(0, 2)))
#' fit <- cl_glm(am ~ wt, data = mtcars, method = "mcmc",
#'               control = list(chains = 2, iter = 250, seed = 1))
#' summary(fit)
cl_glm <- function(x, ...) UseMethod("cl_glm")

#' @rdname cl_glm
#' @export
cl_glm.formula <- function(formula, data = NULL, family = "bernoulli_logit",
                           method = c("ml", "map", "mcmc", "firth"), prior = NULL, weights = NULL,
                           offset = NULL, trials = NULL, ..., subset, na.action, contrasts = NULL,
                           model = TRUE, etastart = NULL, mustart = NULL, block = NULL) {
  call <- match.call()
  swapped <- from_glm_order(call, data, if (!missing(family)) family)
  if (!is.null(swapped)) return(fit_by(cl_glm, swapped, parent.frame()))
  unnamed <- missing(family)
  if (any(c("|", "||", names(field_arguments)) %in% all.names(formula)) &&
        has_effects(formula[[length(formula)]])) {
    if (missing(family)) {
      abort_argument("family", paste("a formula with random effects needs 'family': \"normal_id\"",
                                     "for numbers, \"bernoulli_logit\" for two classes,",
                                     "\"poisson_log\" for counts"))
    }
    return(fit_by(later_fits$effects, call, parent.frame()))
  }
  call[[1L]] <- quote(cl_glm)
  model <- check_flag(model, "model")
  streamed <- is_source(data) || !is.null(block) || exceeds_memory(formula, data, family, method)
  refuse_fit_arguments(setdiff(names(match.call(expand.dots = FALSE)$...),
                               c("start", "control", "progress", if (streamed) "xlev")))
  if (streamed) {
    fit <- stream_glm(formula, data, family, method, prior, call, parent.frame(), contrasts, block,
                      ..., model = model)
    fit$call <- call
    return(fit)
  }
  given <- formula
  bar <- two_parts(formula)
  if (!is.null(bar)) formula <- bar$all
  whole <- classed(if (is.null(data)) stats::terms(formula) else
    stats::terms(formula, data = data), "formula")
  if (attr(whole, "response") == 0L) abort_argument("formula", "the formula has no response")
  frame <- match.call(expand.dots = FALSE)
  kept <- c("formula", "data", "subset", "weights", "offset", "trials", "na.action", "etastart",
            "mustart")
  frame <- frame[c(1L, match(kept, names(frame), 0L))]
  alike <- NULL
  plain <- if (is.null(bar) && all(names(frame)[-1L] %in% c("formula", "data"))) {
    plain_design(whole, data)
  }
  if (!is.null(plain)) {
    frame <- plain$frame
  } else {
    frame$formula <- whole
    # a single number of trials is not a variable of the model frame
    alike <- classed(eval(frame$trials, data, parent.frame()), "trials")
    if (!is.null(alike)) alike <- check_numeric(alike, "trials")
    frame$trials <- NULL
    frame$drop.unused.levels <- TRUE
    frame <- eval_frame(frame, data, parent.frame(), trials = if (length(alike) != 1L) alike)
  }
  y <- if (is.factor(frame[[1L]])) frame[[1L]] else stats::model.response(frame)
  trials <- if (length(alike) == 1L) alike else frame[["(trials)"]]
  if (unnamed) name_family(y, trials)
  family <- family_of_response(family, y, trials)
  second <- if (!is.null(bar)) second_design(bar, frame, data, family)
  terms <- if (is.null(bar)) stats::terms(frame) else part_terms(bar$mean, frame, data)
  design <- glm_design(terms, frame, family, contrasts, if (!has_classes(family)) plain$x)
  fit <- fit_glm(design$x, y, family, method, prior, frame[["(weights)"]],
                 stats::model.offset(frame), trials, design$intercept, ...,
                 etastart = frame[["(etastart)"]], mustart = frame[["(mustart)"]],
                 second = second)
  fit$call <- call
  fit$formula <- if (is.null(bar)) stats::formula(whole) else given
  fit$terms <- design$terms
  fit$assign <- design$assign
  fit$contrasts <- design$contrasts
  if (any(attr(design$terms, "dataClasses") %in% c("factor", "ordered", "character"))) {
    fit$xlevels <- stats::.getXlevels(design$terms, frame)
  }
  fit$na.action <- attr(frame, "na.action")
  if (model) fit$model <- frame
  fit
}

# The model matrix; for an ordered family with an intercept, which the cuts replace.
glm_design <- function(terms, frame, family, contrasts = NULL, x = NULL) {
  if (is_ordered(family)) attr(terms, "intercept") <- 1L
  if (is.null(x)) {
    x <- classed(stats::model.matrix(terms, frame, contrasts.arg = contrasts), "contrasts")
  }
  list(x = x, terms = terms, intercept = as.integer(attr(terms, "intercept")),
       assign = attr(x, "assign"), contrasts = attr(x, "contrasts"))
}

# A formula as a string.
#' @export
cl_glm.character <- function(x, ...) {
  if (length(x) != 1L || is.na(x) || is.matrix(x)) return(NextMethod())
  home <- parent.frame()
  formula <- tryCatch(stats::as.formula(x, env = home), error = function(e) {
    abort_argument("formula", sprintf("\"%s\" is not a valid formula: %s", x, conditionMessage(e)),
                   call = user_call())
  })
  call <- match.call()
  call[[1L]] <- quote(cl_glm)
  call[[2L]] <- formula
  names(call)[2L] <- ""
  eval(call, home)
}

#' @rdname cl_glm
#' @export
cl_glm.default <- function(x, y, family = "bernoulli_logit",
                           method = c("ml", "map", "mcmc", "firth"), prior = NULL, weights = NULL,
                           offset = NULL, trials = NULL, intercept = TRUE, start = NULL,
                           control = list(), progress = TRUE, etastart = NULL,
                           mustart = NULL, ...) {
  call <- match.call()
  call[[1L]] <- quote(cl_glm)
  if (!missing(y) && inherits(y, "formula")) refuse_fit_arguments("x") # glm()'s x = TRUE
  if (...length() > 0L) refuse_fit_arguments(c(names(list(...)), "")[1L])
  x <- design_matrix(x)
  y <- if (!missing(y)) on_host(y)
  if (is.null(y)) abort_argument("y", "the response 'y' is missing")
  names <- colnames(x)
  if (is.null(names) && ncol(x) > 0L) names <- paste0("x", seq_len(ncol(x)))
  if (missing(family)) name_family(y, trials)
  family <- family_of_response(family, y, trials)
  if (is_sparse(x)) family <- sparse_family(family)
  intercept <- check_flag(intercept, "intercept")
  # the cuts of an ordered family replace the intercept
  ones <- intercept && !is_ordered(family)
  with_ones <- function() {
    full <- x
    # a copy with one more column takes R longer than the device takes for the whole fit
    if (!is_cl(x) && !is_sparse(x) && !basis_is_cheap(x) &&
          is_on_device("glm_fit", x)) {
      full <- copy <- as_cl(x)
      on.exit(cl_free(copy)) # else R collects garbage every few fits
    }
    full <- cbind(1, full)
    dimnames(full) <- if (is_sparse(x)) list(NULL, NULL)
    full
  }
  fit <- glm_on_engine(x, function() {
    fit_glm(if (ones) with_ones() else x, y, family, method, prior, weights, offset, trials,
            as.integer(ones), start, control, progress, etastart, mustart,
            names = c(if (ones) "(Intercept)", names))
  }, method, family)
  fit$call <- call
  fit$columns <- names
  if (!is_cl(x)) fit$x <- x
  fit
}

# The fit, for predictors as a matrix with its intercept in column `intercept` (0 for none).
fit_glm <- function(x, y, family, method, prior, weights, offset, trials, intercept, start = NULL,
                    control = list(), progress = TRUE, etastart = NULL, mustart = NULL,
                    names = colnames(x), second = NULL) {
  method <- check_choice(method, c("ml", "map", "mcmc", "firth"), "method")
  fitter <- family_row(family)$fitter
  if (method == "firth") {
    family <- firth_family(family)
  } else if (method != "ml" && fitter %in% c("density", "irls")) {
    abort_argument("method", sprintf(paste("family %s is fitted by method \"ml\" only (for",
                                           "priors and draws give its log density to cl_sample())"),
                                     family))
  }
  if (!is.null(prior) && method %in% c("ml", "firth")) {
    abort_argument("prior", sprintf("priors are for methods \"map\" and \"mcmc\", not \"%s\"",
                                    method))
  }
  progress <- check_flag(progress, "progress")
  control <- glm_control(control, method)
  if (fitter == "density") {
    if (!is.null(start)) abort_argument("start", "this family takes no starting values")
    return(density_fit(x, y, family, weights, offset, second, control$search, intercept, names))
  }
  response <- glm_response(family, y, trials, weights)
  problem <- new_glm_problem(family, x, response, offset, intercept, names)
  problem$etastart <- check_row_start(etastart, "etastart", problem$n)
  problem$mustart <- check_row_start(mustart, "mustart", problem$n)
  if (method == "firth") problem$penalty <- method
  priors <- if (method %in% c("map", "mcmc")) glm_priors(prior, problem)
  centre <- if (method == "mcmc") glm_centre else glm_fit_mode
  glm_on_engine(x, function() {
    mode <- centre(problem, priors, start, control$search, progress)
    if (method == "mcmc") mode <- glm_sample(mode, priors, control$sampling, progress)
    finish_glm(problem, mode, method)
  }, method, family)
}

# ---- the result ----------------------------------------------------------------------------------

finish_glm <- function(problem, mode, method) {
  core <- mode$core
  found <- mode$found
  if (is_least_squares(problem$family) && method == "ml") return(finish_normal(problem, mode))
  theta <- theta_of_columns(core, found$theta)
  classes <- max(1L, core$classes - 1L)
  beta <- matrix(NA_real_, ncol(problem$x), classes)
  beta[core$kept, ] <- theta[seq_len(core$beta_count)]
  shown <- setdiff(seq_len(ncol(problem$x)),
                   if (is_ordered(problem$family)) problem$intercept)
  aux <- stats::setNames(as.vector(aux_values(core, as.matrix(theta))), aux_names(core))
  covariance <- if (!is.null(found$covariance)) found$covariance else
    if (is.null(mode$draws)) glm_covariance(core, mode$prior, found) else
      draws_covariance(mode$draws, aux_names(core), core$logged)
  coefficients <- stats::setNames(as.vector(beta[shown, ]),
                                  class_names(core, problem$names[shown]))
  fit <- list(coefficients = coefficients, aux = aux, aux_error = covariance$aux_error,
              vcov = covariance$vcov, vcov.root = covariance$root, logLik = found$value,
              objective = found$objective,
              rank = core$beta_count, family = problem$family, method = method,
              levels = problem$levels, kind = problem$kind, y = problem$y,
              trials = problem$trials, prior.weights = problem$weights, offset = problem$offset,
              nobs = glm_nobs(problem), converged = found$converged, message = found$message,
              iterations = found$iterations, decrement = found$decrement,
              prior = mode$prior$label, intercept = problem$intercept, engine = glm_note(problem$x))
  if (!is.null(mode$draws)) fit$draws <- mode$draws
  fit <- glm_fitted(fit, problem, core, found$theta)
  if (!is.null(r_family(problem$family))) fit <- finish_r_family(fit)
  structure(fit, class = "cl_glm")
}

# Linear predictors and means as fitted, deviances and degrees of freedom. The first two come from
# the device of x if all of its rows and columns are there.
glm_fitted <- function(fit, problem, core, theta) {
  row <- family_row(fit$family)
  named <- function(v) {
    v <- as.matrix(v)
    dim(v) <- NULL # as.vector() would copy
    if (is.null(rownames(problem$x))) v else stats::setNames(v, rownames(problem$x))
  }
  whole <- is_cl(core$data$x) && is.null(core$basis) && core$classes == 1L &&
    is.null(problem$rows) && (is.null(problem$row_weights) || !row$least_squares)
  eta <- if (whole) glm_eta(core, theta)
  mu <- if (whole && !is.null(row$device$mean)) row$device$mean(eta)
  end_asking(eta, mu)
  fit$linear.predictors <- if (whole) named(eta) else
    glm_predictor(fit, problem$x, problem$offset)
  fit$fitted.values <- if (is.null(mu)) glm_mean(fit, fit$linear.predictors) else
    named(mu)
  parameters <- fit$rank + length(fit$aux) * row$ordered
  fit$df.residual <- fit$nobs - parameters
  if (row$classes) {
    fit$deviance <- -2 * fit$logLik
    share <- rowsum(ones_unless(fit$prior.weights, length(fit$y)), fit$y)
    fit$null.deviance <- -2 * sum(share * log(share / sum(share)), na.rm = TRUE)
    if (is.matrix(problem$offset)) fit$null.deviance <- null_deviance_classes(problem)
    fit$df.null <- fit$nobs - (length(fit$levels) - 1L)
    return(fit)
  }
  fit$df.null <- fit$nobs - as.integer(fit$intercept > 0L)
  if (row$read == "binary") {
    fit$deviance <- -2 * fit$logLik
    fit$null.deviance <- null_deviance_binary(fit)
    return(fit)
  }
  many <- many_counts(fit)
  if (!is.null(many)) {
    fit[names(many)] <- many
    if (!is.null(fit$deviance)) return(fit)
  }
  w <- deviance_weights(fit)
  y <- mean_response(fit)
  fit$deviance <- sum(row$deviance(y, fit$fitted.values, w, fit$aux))
  if (is.null(many)) {
    fit$null.deviance <- sum(row$deviance(y, null_mean(fit, y, w), w, fit$aux))
  }
  fit
}

# The mean at linear predictors: numbers, or n x C probabilities.
glm_mean <- function(fit, eta, aux = fit$aux) {
  if (!has_classes(fit$family)) return(link_inverse(fit$family, eta))
  share <- class_probabilities(fit$family, eta, aux)
  dimnames(share) <- list(if (is.matrix(eta)) rownames(eta) else names(eta), fit$levels)
  share
}
