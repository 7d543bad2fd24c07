# Models with random effects: the call, the search and the result. The linear algebra is in
# mixed-core.R, the likelihoods in mixed-normal.R and mixed-laplace.R.

#' Models with random effects
#'
#' Fits generalised linear models with random effects, such as `y ~ x + (x | g)`, by maximum
#' likelihood, by REML or by sampling. `cl_glm()` with such a formula and a family does the same.
#'
#' @section Random effects:
#' As in lme4, in parentheses in the formula: `(1 | g)` is an intercept for each level of `g`,
#' `(x | g)` an intercept and a slope, which are correlated, `(0 + x | g)` a slope only, `(x || g)`
#' both without correlation. `(1 | a/b)` is `(1 | a) + (1 | a:b)`. There may be several terms,
#' nested or crossed.
#'
#' @section Fields:
#' Terms of effects in time or space. Their parameters, standard deviations first, are estimated;
#' u are effects and e independent standard normal values.
#'   * `rw1(index, group, values)`: a random walk, u_t - u_(t-1) = sd e_t. The effects of each group
#'     have the sum 0, so that the formula should have an intercept.
#'   * `rw2(index, group, values)`: second differences, u_t - 2 u_(t-1) + u_(t-2) = sd e_t, likewise
#'     with the sum 0. A straight line has no density: it is part of the effects and must not be
#'     among the fixed effects too.
#'   * `ar1(index, group, values)`: a stationary autoregression with marginal standard deviation
#'     `sd` and correlation `rho` of neighbours.
#'   * `seasonal(index, period, group, values)`: sums of `period` successive effects are sd e_t.
#'     Patterns of that period with the sum 0 have no density.
#'   * `car(area, graph, type)`: areas with their neighbours. `"icar"`, the default, is the
#'     intrinsic autoregression: given the others an effect is normal about the mean of its
#'     neighbours with standard deviation sd / sqrt(number of neighbours); effects of a connected
#'     part of the graph have the sum 0. `"car"` is proper: the mean is `rho` times that of the
#'     neighbours.
#'     `"bym2"`: sd (sqrt(phi) v + sqrt(1 - phi) e), where v is intrinsic, scaled so that the
#'     geometric mean of its variances is 1 in each part (Riebler et al. 2016).
#'   * `spde(coords, mesh)`: a Matern field with nu = 1 in the plane, by linear finite elements
#'     (Lindgren, Rue and Lindstroem 2011), with marginal standard deviation `sd`, away from the
#'     boundary, and `range`, the distance sqrt(8) / kappa at which the correlation is about 0.14.
#'
#' Only `"bym2"` is scaled: `sd` of the other intrinsic terms is that of increments or of an area
#' given its neighbours, as stated.
#'
#' `index` is a factor, whose levels are the times in order, or whole numbers; there is an effect of
#' each number from the smallest to the largest, or of each of `values`, consecutive numbers, which
#' may reach into the future that [predict()][predict.cl_glmm] is to tell. With `group` each group
#' has effects of its own and all have the same parameters.
#'
#' `graph` is a symmetric matrix (also of the package Matrix) of weights, 1 for neighbours, with the
#' names of areas, or a list with the numbers or names of the neighbours of each area, such as spdep
#' gives. Areas without observations have effects too. An area without neighbours is an error.
#' `mesh` is a list with `loc`, the coordinates of vertices, and `tv`, the numbers of the vertices
#' of each triangle, or a mesh of the package fmesher. `coords` is a matrix of two columns, such as
#' `cbind(x, y)`.
#'
#' Fields can be added to each other and to random effects. Fits are by `"ml"` or `"reml"`, with
#' families of this package. All effects are integrated out by Laplace's approximation on the sparse
#' factor of their joint precision, which is exact for `"normal_id"`. Where a part of a field has no
#' density its likelihood is a restricted one, so that such fits should be compared only if this
#' part is the same. `fit$fields` has the parameters and effects of each field, [ranef()] the
#' effects and `VarCorr()` the standard deviations.
#'
#' @section Methods:
#' For `"normal_id"` the likelihood is exact, and profiled as in lme4; `"reml"` maximises the
#' restricted likelihood. This family is the default, as in lme4; `cl_glm()` asks for one if the
#' formula has random effects. For other families (Bernoulli, binomial, Poisson, negative binomial,
#' and binomial, Poisson and Gamma families of R with any link) the random effects are integrated
#' out by Laplace's approximation, with the observed information. Both have exact gradients, so that
#' there may be many parameters. Standard errors of the fixed effects are those of lme4: for
#' `"normal_id"` given the variances, otherwise from the second derivatives with respect to all
#' parameters. A variance of 0 is a valid estimate, which is reported by a message.
#'
#' The effects of the grouping factor with the most levels are eliminated in blocks, one for each
#' level; those of the others and the fixed effects form a dense matrix. Where this matrix is large
#' its products and its Cholesky factor are computed on the device. If the other factors have more
#' than 3,000 effects together, or the response is not normal, fits are computed by a sparse
#' Cholesky factor of all effects, as for [cl_tmb()].
#'
#' `"map"`: the mode of that likelihood times priors of coefficients, standard deviations and
#' correlations on their natural scales, so that no variance is estimated as 0. Standard errors are
#' from the second derivatives with respect to all parameters.
#'
#' `"mcmc"`: draws from the posterior by [cl_sample()], with effects in units of their standard
#' deviations, for families of this package. Estimates are posterior means. The element `draws` has
#' coefficients, standard deviations, correlations and `sigma` or `phi`, `effect_draws` for each
#' term an array of at most 1,000 draws, levels and columns.
#'
#' @section Priors:
#' As for [cl_glm()], a prior for all coefficients except the intercept, or a named list. Its
#' further names are `sd`, the prior of all standard deviations of effects, `sd_` with the name of
#' a grouping factor, that of its effects, and `cor`, a number from 1: correlation matrices have
#' the density det(C)^(cor - 1). A Wishart prior with df degrees of freedom and infinite scale, as
#' in blme, is `prior_gamma(df - K, ...)` with a small rate and `cor = (df - K + 1) / 2`, for K
#' columns. Without priors coefficients, `sigma` and `phi` have the weak ones of `cl_glm()` and
#' `cor` is 2. Standard deviations of effects (of columns scaled to mean square 1) are half-normal
#' with 2.5 for `"mcmc"`, gamma with shape 2 and rate 0.1 for `"map"`, for `"normal_id"` in units
#' of the standard deviation of y. [summary()] shows them. For other priors see `vignette("own-
#' model")`.
#'
#' @param formula,data A formula with random effects, and a data frame.
#' @param family,weights,offset,trials,subset,na.action,contrasts As for [cl_glm()]. Observations of
#'   weight 0 are left out, as by `subset`.
#' @param method How parameters are estimated, see below. `"reml"` is for `"normal_id"` only.
#' @param prior For `"map"` and `"mcmc"`, see below.
#' @param progress Whether to show progress of sampling, as for [cl_glm()].
#' @param ... Must be empty.
#' @param model Whether the fit keeps the model frame, which `simulate()` and `anova()` of fits by
#'   REML need.
#' @param control A list: `maxit` (100) of the search; for `"mcmc"` also arguments of [cl_sample()],
#'   with the defaults `chains = 4`, `warmup = 500`, `iter = 500`.
#' @return An object of class `"cl_glmm"`, which inherits from `"cl_glm"`; it has the elements
#'   described there and
#'   * `random`: for each grouping factor a matrix of effects (conditional modes), one row a level,
#'   * `variances`: for each term its covariance matrix, named by grouping factor,
#'   * `theta`: the relative Cholesky factors, as in lme4,
#'   * `singular`: whether a variance is 0 or a correlation 1 or -1,
#'   * `fields`: for each field its parameters `par` and its `effects`.
#'
#'   `coef()` gives the fixed effects. There are methods for `print()`, `summary()`, `vcov()`,
#'   [confint()][confint.cl_glmm], `logLik()`, `AIC()`, `BIC()`, `nobs()`, `sigma()`, `fitted()`,
#'   `residuals()`,
#'   [predict()][predict.cl_glmm], [simulate()][predict.cl_glmm], [anova()][predict.cl_glmm],
#'   `update()`, `formula()`, for `fixef()`, [ranef()][ranef.cl_glmm] (also with conditional
#'   variances) and `VarCorr()` of nlme and lme4, for
#'   `tidy()` and `glance()` of broom, and for emmeans.
#' @section Errors:
#' `statcl_error_argument` for invalid input: no random effects in the formula, a grouping factor
#' with one level, a field whose index, graph or mesh does not fit the data, for `"normal_id"` as
#' many effects of a term as observations; and if the search finds no maximum.
#' `statcl_error_memory` if the dense matrix does not fit into memory.
#' `statcl_warning_convergence` if the search has not converged.
#' @references
#' Bates, D., Maechler, M., Bolker, B. and Walker, S. (2015) Fitting linear mixed-effects models
#' using lme4. *Journal of Statistical Software* **67**(1).
#'
#' Lindgren, F., Rue, H. and Lindstroem, J. (2011) An explicit link between Gaussian fields and
#' Gaussian Markov random fields: the stochastic partial differential equation approach. *Journal of
#' the Royal Statistical Society B* **73**, 423-498.
#'
#' Riebler, A., Sorbye, S. H., Simpson, D. and Rue, H. (2016) An intuitive Bayesian spatial model
#' for disease mapping that accounts for scaling. *Statistical Methods in Medical Research*
#' **25**(4).
#' @seealso [cl_glm()], [predict.cl_glmm()]
#' @export
#' @examples
#' if (requireNamespace("nlme", quietly = TRUE)) {
#'   data <- as.data.frame(nlme::Orthodont)
#'   fit <- cl_glmm(distance ~ age + Sex + (age | Subject), data, "normal_id", method = "reml")
#'   summary(fit)
#'   head(fit$random$Subject)
#'   predict(fit, data.frame(age = 9, Sex = "Male", Subject = "M01"))
#' }
#'
#' # Counts with an effect of each wool and tension
#' cl_glmm(breaks ~ 1 + (1 | wool:tension), warpbreaks, "poisson_log")
#'
#' # A level that changes from year to year
#' nile <- data.frame(flow = as.numeric(Nile), year = 1871:1970)
#' cl_glmm(flow ~ rw1(year), nile, method = "reml")
cl_glmm <- function(formula, data = NULL, family = "normal_id",
                    method = c("ml", "reml", "map", "mcmc"), prior = NULL, weights = NULL,
                    offset = NULL, trials = NULL, subset, na.action, contrasts = NULL, model = TRUE,
                    control = list(), progress = TRUE, ...) {
  refuse_fit_arguments(names(match.call(expand.dots = FALSE)$...))
  call <- match.call()
  swapped <- from_glm_order(call, data, if (!missing(family)) family)
  if (!is.null(swapped)) return(eval(swapped, parent.frame()))
  model <- check_flag(model, "model")
  method <- check_choice(method, c("ml", "reml", "map", "mcmc"), "method")
  formula <- classed(stats::as.formula(formula, env = parent.frame()), "formula")
  if (length(formula) != 3L) abort_argument("formula", "the formula has no response")
  if (!has_effects(formula[[3L]])) {
    abort_argument("formula", "the formula has no random effects such as (1 | g): use cl_glm()")
  }
  random <- random_terms(random_bars(formula[[3L]]))
  fields <- read_fields(formula)
  frame <- match.call(expand.dots = FALSE)
  kept <- c("formula", "data", "subset", "weights", "offset", "na.action")
  frame <- frame[c(1L, match(kept, names(frame), 0L))]
  whole <- frame_formula(formula)
  frame$formula <- stats::formula(classed(if (is.null(data)) stats::terms(whole) else
    stats::terms(whole, data = data), "formula"))
  trials <- classed(eval(substitute(trials), data, parent.frame()), "trials")
  if (!is.null(trials)) trials <- check_numeric(trials, "trials")
  frame$drop.unused.levels <- TRUE
  frame <- eval_frame(frame, data, parent.frame(), trials = if (length(trials) > 1L) trials)
  frame <- without_zero_weights(frame)
  y <- if (is.factor(frame[[1L]])) frame[[1L]] else stats::model.response(frame)
  if (missing(family) && (is.factor(y) || is.character(y) || is.logical(y))) {
    abort_argument("family", sprintf(paste("the response is %s: give 'family', such as",
                                           "\"bernoulli_logit\"; the default is \"normal_id\""),
                                     describe(y)))
  }
  if (length(trials) != 1L) trials <- frame[["(trials)"]]
  fixed <- formula
  left <- without_bars(formula[[3L]])
  fixed[[3L]] <- if (is.null(left)) 1 else left
  if (!is.null(data)) fixed <- stats::formula(stats::terms(fixed, data = data))
  terms <- terms_within(fixed, stats::terms(frame))
  x <- classed(stats::model.matrix(terms, frame, contrasts.arg = contrasts), "contrasts")
  designs <- random_designs(random, frame)
  fit <- fit_mixed(designs, x, y, family_of_response(family, y, trials), method, prior,
                   frame[["(weights)"]], stats::model.offset(frame), trials, control,
                   check_flag(progress, "progress"), fields_of_frame(fields, frame))
  fit$call <- call
  fit$formula <- formula
  fit$terms <- terms
  fit$assign <- attr(x, "assign")
  fit$contrasts <- attr(x, "contrasts")
  fit$intercept <- attr(terms, "intercept")
  fit$xlevels <- stats::.getXlevels(terms, frame)
  fit$all_terms <- stats::terms(frame)
  designed <- c(list(terms), lapply(designs, `[[`, "terms")) # grouping factors may have any class
  attr(fit$all_terms, "dataClasses") <- unlist(lapply(designed, attr, "dataClasses"))
  fit$effects <- lapply(designs, function(d) c(d[c("group", "of", "terms", "contrasts")], list(
    columns = colnames(d$x), levels = levels(d$factor),
    xlevels = stats::.getXlevels(d$terms, frame))))
  fit$na.action <- attr(frame, "na.action")
  if (model) fit$model <- frame
  fit
}

# The model frame without observations of weight 0, as if `subset` had left them out; na.exclude()
# pads for them too.
without_zero_weights <- function(frame) {
  none <- frame[["(weights)"]] %in% 0
  if (!any(none)) return(frame)
  if (all(none)) abort_argument("weights", "all weights are 0")
  left <- frame[!none, , drop = FALSE]
  left[] <- lapply(left, function(v)
    if (is.factor(v) && !all(levels(v) %in% v)) v[, drop = TRUE] else v)
  omitted <- attr(frame, "na.action")
  if (inherits(omitted, "exclude")) {
    rows <- setdiff(seq_len(nrow(frame) + length(omitted)), omitted)
    omitted <- structure(sort(c(omitted, rows[none])), class = "exclude")
  }
  structure(left, terms = attr(frame, "terms"), na.action = omitted)
}

# `x`: the model matrix of the fixed effects.
fit_mixed <- function(designs, x, y, family, method, prior, weights, offset, trials, control,
                      progress, fields = list()) {
  check_mixed_family(family, method)
  control <- glm_control(control, method)
  row <- family_row(family)
  if (row$trials && is.null(trials) && is.null(weights) && is_share(y) && !is.matrix(y)) {
    abort_argument("y", sprintf(paste("the response of \"%s\" must be 0 or 1, not %g; proportions",
                                      "need their numbers of trials as 'weights'"), family,
                                y[y > 0 & y < 1][1L]))
  }
  response <- glm_response(family, y, trials, weights)
  check_support(family, response)
  problem <- new_glm_problem(family, x, response, offset, match("(Intercept)", colnames(x), 0L))
  normal <- row$least_squares
  for (d in designs) {
    effects <- nlevels(d$factor) * ncol(d$x)
    if (normal && effects >= problem$n) {
      abort_argument("formula", sprintf(paste("the random effects of '%s' are %d, but there are %d",
                                              "observations: sigma cannot be separated from them"),
                                        d$group, effects, problem$n))
    }
  }
  rotation <- qr(x, tol = if (normal) 1e-7 else 1e-11)
  kept <- sort(rotation$pivot[seq_len(rotation$rank)])
  work <- list(designs = designs, fields = fields, glm = problem, kept = kept,
               x = x[, kept, drop = FALSE], family = family, method = method, control = control)
  if (needs_fields(designs, fields)) return(finish_mixed(work, fit_fields(work)))
  if (method %in% c("map", "mcmc")) work$priors <- mixed_priors(prior, work)
  if (method == "map") return(finish_mixed(work, fit_mode(work, work$priors)))
  found <- if (normal) fit_normal(work) else if (method == "ml") fit_sparse(work) else
    fit_laplace(work)
  if (method != "mcmc") return(finish_mixed(work, found))
  if (!all(is.finite(found$vcov))) {
    abort_argument("method", "the fit from which sampling starts has no standard errors")
  }
  fit <- suppressMessages(suppressWarnings(finish_mixed(work, found)))
  finish_sampled(fit, work, sample_mixed(work, found, progress))
}

check_mixed_family <- function(family, method) {
  row <- family_row(family)
  if (!row$random) {
    abort_argument("family", sprintf("family %s does not support random effects",
                                     if (is.null(row$r)) dQuote(family, FALSE) else family))
  }
  if (method == "mcmc" && !is.null(row$r)) {
    abort_argument("method", sprintf("family %s does not support method \"mcmc\"", family))
  }
  if (method == "reml" && !row$least_squares) {
    abort_argument("method", "method \"reml\" is for family \"normal_id\" only")
  }
}

# ---- by maximum likelihood -----------------------------------------------------------------------

fit_normal <- function(work) {
  glm <- work$glm
  y <- glm$y - if (is.null(glm$offset)) 0 else glm$offset
  problem <- normal_problem(work$designs, work$x, y, glm$weights, work$method == "reml")
  found <- search_mixed(function(par) normal_deviance(problem, par),
                        function(par, at) normal_slope(problem, at),
                        moment_theta(problem$model, problem$y, rest = 1), work$control$search,
                        leave_zero(problem$model))
  f <- normal_factor(problem, found$par)
  effects <- normal_effects(problem, f)
  df <- glm$n - problem$reml * problem$p
  sigma <- problem$unit * sqrt(found$at$pwrss / df)
  fixed <- problem$model$dense + seq_len(problem$p)
  turn <- qr.R(problem$rotation)
  root <- sigma * upper_solve(turn, upper_solve(f$r[fixed, fixed, drop = FALSE], diag(problem$p)))
  list(model = problem$model, theta = found$par, search = found, sigma = sigma,
       beta = qr.coef(problem$rotation, problem$response) +
         problem$unit * upper_solve(turn, effects$b),
       vcov = tcrossprod(root), u = lapply(effects$u, `*`, problem$unit / sigma),
       logLik = -found$at$value / 2)
}

# backsolve(), which also accepts no columns.
upper_solve <- function(r, b) if (length(r) == 0L) b else backsolve(r, b)

fit_laplace <- function(work) {
  glm <- work$glm
  model <- mixed_model(work$designs)
  rotation <- qr(work$x)
  offset <- if (is.null(glm$offset)) numeric(glm$n) else glm$offset
  problem <- list(model = model, q = qr.Q(rotation), offset = offset,
                  rows = row_likelihood(work$family, glm, glm$weights), last = new.env())
  start <- laplace_start(work, problem)
  problem$start_b <- start$b
  problem$turn <- start$turn
  problem$last$u <- start$u
  p <- ncol(problem$q)
  many <- nrow(model$at)
  found <- search_mixed(function(par) laplace_at(problem, par),
                        function(par, at) laplace_gradient(problem, par, at),
                        c(start$theta, numeric(p), start$aux), work$control$search,
                        leave_zero(model), known = many + seq_len(p))
  parts <- laplace_parts(problem, found$par)
  turn <- qr.R(rotation)
  covariance <- if (is.null(found$inverse)) found$hessian * NA_real_ else found$inverse
  k <- match(many + seq_len(p), found$free)
  root <- upper_solve(turn, problem$turn)
  list(model = model, theta = parts$theta, search = found, sigma = 1,
       beta = upper_solve(turn, parts$b), u = found$at$u,
       vcov = root %*% covariance[k, k, drop = FALSE] %*% t(root), aux = exp(parts$aux),
       logLik = -found$at$value,
       aux_error = if (length(parts$aux) == 1L) exp(parts$aux) *
         sqrt(covariance[cbind(length(found$free), length(found$free))]))
}

# ---- the result ----------------------------------------------------------------------------------

# `found`: the model, theta (of scaled columns), u (in units of sigma), sigma, beta, vcov, logLik,
# the search, and aux, or draws.
finish_mixed <- function(work, found) {
  row <- family_row(work$family)
  glm <- work$glm
  names <- glm$names
  beta <- stats::setNames(rep(NA_real_, length(names)), names)
  beta[work$kept] <- found$beta
  dimnames(found$vcov) <- list(names[work$kept], names[work$kept])
  parts <- if (is.null(found$terms)) block_parts(work, found) else field_parts(work, found)
  eta <- as.vector(work$x %*% found$beta) + parts$eta
  fit <- list(
    coefficients = beta,
    aux = if (row$least_squares) c(sigma = found$sigma) else if (length(found$aux) > 0L)
      stats::setNames(found$aux, row$aux),
    aux_error = if (is.null(found$aux_error)) NA_real_ else found$aux_error,
    vcov = found$vcov, logLik = found$logLik, objective = found$logLik, rank = length(work$kept),
    family = work$family, method = work$method, levels = glm$levels, kind = glm$kind, y = glm$y,
    trials = glm$trials, prior.weights = glm$weights, offset = glm$offset, nobs = glm_nobs(glm),
    converged = found$search$converged, message = found$search$message,
    iterations = found$search$iterations)
  fit$df <- fit$rank + parts$count + length(fit$aux)
  fit$df.residual <- fit$nobs - fit$df
  of_effects <- c("theta", "random", "roots", "variances", "singular", "fields")
  fit[of_effects] <- parts[of_effects]
  fit$internal <- found$internal
  eta <- stats::setNames(if (is.null(glm$offset)) eta else eta + glm$offset, rownames(glm$x))
  fit$linear.predictors <- eta
  fit$fitted.values <- glm_mean(fit, eta)
  fit$deviance <- if (row$least_squares) -2 * fit$logLik else
    sum(row$deviance(mean_response(fit), fit$fitted.values, deviance_weights(fit), fit$aux))
  fit$draws <- found$draws
  fit[c("prior", "spread_error")] <- found[c("prior", "spread_error")]
  if (!is.null(found$objective)) fit$objective <- found$objective
  if (!fit$converged) {
    statcl_warning("convergence", sprintf("the fit has not converged: %s", fit$message))
  } else if (fit$singular && is.null(fit$draws)) {
    message("boundary (singular) fit: a variance of random effects is 0, or a correlation 1 or -1")
  }
  fit$engine <- if (is.null(fit$draws)) engine_note("mixed") else fit$draws$engine
  structure(fit, class = c("cl_glmm", "cl_glm"))
}

# The part of the effects in a fit by blocks: list(eta: to the linear predictors; count: of
# parameters; singular, theta, random, roots, variances).
block_parts <- function(work, found) {
  model <- found$model
  lambda <- theta_lambda(model, found$theta)
  groups <- vapply(work$designs, `[[`, "", "group")
  eta <- 0
  for (d in effect_tables(model, lambda, found)) {
    x <- do.call(cbind, lapply(work$designs[groups == d$name], `[[`, "x"))
    eta <- eta + rowSums(x * d$effects[d$g, , drop = FALSE])
  }
  summary <- stats::setNames(mixed_summary(model, lambda, found, groups),
                             c("theta", "random", "roots", "variances"))
  c(summary, list(eta = eta, count = nrow(model$at),
                  singular = any(found$theta[model$at[, 2L] == model$at[, 3L]] < 1e-4)))
}

# For each block its effects in the units of the columns.
effect_tables <- function(model, lambda, found) {
  Map(function(block, lambda, u) {
    effects <- found$sigma * tcrossprod(u, lambda) / rep(block$scale, each = block$L)
    dimnames(effects) <- list(block$levels, block$columns)
    list(name = block$name, g = block$g, effects = effects, order = block$order)
  }, model$blocks, lambda, found$u)
}

# list(theta: in the units of the columns; random; roots and variances: of the terms in order).
mixed_summary <- function(model, lambda, found, groups) {
  tables <- effect_tables(model, lambda, found)
  blocks <- vapply(model$blocks, `[[`, "", "name")
  random <- stats::setNames(lapply(tables, function(d) d$effects[d$order, , drop = FALSE]), blocks)
  roots <- lapply(seq_along(groups), function(t) {
    b <- match(groups[t], blocks)
    block <- model$blocks[[b]]
    own <- sum(groups[seq_len(t)] == groups[t]) # its number within the block
    k <- sum(block$sizes[seq_len(own - 1L)]) + seq_len(block$sizes[own])
    root <- lambda[[b]][k, k, drop = FALSE] / block$scale[k]
    dimnames(root) <- list(block$columns[k], NULL)
    root
  })
  names(roots) <- groups
  theta <- unlist(lapply(roots, function(r) r[lower.tri(r, TRUE)]), use.names = FALSE)
  roots <- lapply(roots, `*`, found$sigma)
  list(theta, random[unique(groups)], roots, lapply(roots, tcrossprod))
}
