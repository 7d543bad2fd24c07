# Cross-validation: folds, their computation here or in workers, the result.

#' Cross-validation
#'
#' Predicts each observation from a fit without it and the rest of its fold, and scores the
#' predictions: by the log density of the held-out observation (the log score; its sum is `elpd`,
#' the expected log predictive density), errors of the predicted means, and deviances.
#'
#' Fits of [cl_glm()] and [cl_glmm()] are computed again without each fold, by the same method with
#' the same priors and settings, from the model matrix of the fit: bases such as `poly(x, 2)` are
#' those of all rows. The log score uses the estimates; for `method = "mcmc"` it is the logarithm of
#' the mean density over the draws. Predictions of fits with random effects include the predicted
#' effects of levels that the other folds have. The effect of a level that they do not have is
#' unknown: its density is integrated over, and the predicted mean has an effect of 0 on the scale
#' of the linear predictor.
#'
#' Fits of [cl_gp()] keep their parameters, unless `refit = TRUE`: only the process is conditioned
#' on the other folds, with the coefficients of its mean. For normal observations, this takes one
#' inverse of the covariance matrix for all folds together: with P this inverse, corrected for the
#' coefficients of the mean, and B the rows of a fold, the errors of B are
#' `solve(P[B, B], (P %*% y)[B])` and their covariance matrix is `solve(P[B, B])` (Rasmussen and
#' Williams, 2006, section 5.4.2, for one row; Ginsbourger and Schaerer, 2021, for several).
#' Densities of other families are averaged over the distribution of the process.
#'
#' The folds are drawn at random, with sizes that differ by one at most, unless they are given. To
#' compare fits, use the same folds for all.
#'
#' @param fit A fit of [cl_glm()], [cl_glmm()] or [cl_gp()].
#' @param folds The number of folds; `"loo"`, each observation by itself; a vector with the fold of
#'   each observation (such as a group whose members are to be predicted together); or the result of
#'   an earlier call, whose folds are used again.
#' @param refit For fits of [cl_gp()]: whether to estimate the parameters again without each fold,
#'   from those of the fit.
#' @param workers Where folds are computed, as for [cl_sample()]: a number of processes, a cluster,
#'   a plan of the future package, or `"mirai"`. The result is the same.
#' @param seed For folds at random and for sampling. By default the state of R's generator is used.
#' @param ... For `cl_cv()` with `refit`: arguments of the search, such as `starts`. For
#'   `cl_compare()`: results of `cl_cv()`, which may have names. For `plot()`: graphical parameters.
#'   Otherwise not used.
#' @return An object of class `"cl_cv"`, a list with the elements
#'   * `estimates`: a matrix with the columns `Estimate` and `SE` and the rows `elpd` (a sum) and,
#'     depending on the family, `deviance` (a sum), `rmse`, `mae` and `error`, the share of classes
#'     that were not the most probable ones,
#'   * `pointwise`: a data frame with a row for each observation: `fold`, `observed`, `predicted`
#'     (a mean or a class), `log_score`, `deviance`, and for processes of normal observations `sd`,
#'   * `probabilities`: for families with classes, a matrix of their probabilities,
#'   * `folds`, `k` (their number), `model`, `family`, `call`, and `engine`, as `print()` says where
#'     the first fit without a fold was computed.
#'
#'   Observations of weight 0 are predicted but do not count in `estimates`. There are methods for
#'   [print()], [summary()] (also by fold), [plot()] and [as.data.frame()] (the data frame
#'   `pointwise`, with the probabilities).
#'
#'   `cl_compare()` gives a data frame with the models in order of `elpd`, their differences from
#'   the best one, `elpd_diff`, and the standard errors of these, `se_diff`. `loo::loo_compare()`
#'   does the same.
#' @section Errors:
#' `statcl_error_argument` for folds that do not match the data; if a level of a factor or a class
#' of the response is in one fold only, or a fit without a fold cannot estimate a coefficient: then
#' give folds that spread the level, or leave it out. Errors of a fit name its fold. Warnings of
#' such fits are summarised by one, `statcl_warning_folds`.
#' @references
#' Ginsbourger, D. and Schaerer, C. (2021) Fast calculation of Gaussian process multiple-fold
#' cross-validation residuals and their covariances. <https://arxiv.org/abs/2101.03108>
#' @seealso `loo::loo()` of fits by sampling, which needs one fit only
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt, mtcars)
#' cv <- cl_cv(fit, folds = 8, seed = 1)
#' cv
#' cl_compare(wt = cv, hp = cl_cv(update(fit, . ~ hp), folds = cv))
#'
#' # A process, with its parameters kept
#' fit <- cl_gp(dist ~ speed, cars)
#' summary(cl_cv(fit, "loo"))
cl_cv <- function(fit, folds = 10, refit = FALSE, workers = 1, seed = NULL, ...) {
  call <- match.call()
  if (!inherits(fit, c("cl_glm", "cl_gp")) || inherits(fit, "cl_glm_stream")) {
    abort_argument("fit", sprintf(paste("'fit' must be a fit of cl_glm(), cl_glmm() or cl_gp()",
                                        "that keeps its data, not %s"), describe(fit)))
  }
  process <- inherits(fit, "cl_gp")
  refit <- check_flag(refit, "refit")
  if (!refit || !process) check_dots_empty(...)
  n <- length(fit$y)
  if (n < 2L) abort_argument("fit", "cross-validation needs at least two observations")
  draw <- function(code) if (is.null(seed)) code else as.vector(with_seed(seed, code))
  random <- draw({ # folds, and numbers from which the folds' generators start
    folds <- read_folds(folds, fit, n)
    stats::runif(1) * 2^30
  })
  labels <- sort(unique(folds))
  ids <- structure(match(folds, labels), labels = as.character(labels))
  k <- length(labels)
  if (k < 2L) abort_argument("folds", "all observations are in the same fold")
  workers <- check_workers(workers, k)
  caller <- parent.frame()
  found <- if (process) gp_folds(fit, ids, refit, workers, floor(random), caller, ...) else
    glm_folds(fit, ids, workers, floor(random), caller)
  new_cv(fit, found, folds, k, call)
}

# The fold of each observation.
read_folds <- function(folds, fit, n) {
  if (inherits(folds, "cl_cv")) folds <- folds$folds
  if (identical(folds, "loo")) return(seq_len(n))
  if (length(folds) == 1L && is.numeric(folds)) {
    k <- check_count(folds, "folds", 2)
    if (k > n) {
      abort_argument("folds", sprintf("%d folds need at least as many observations, not %d", k, n))
    }
    return(sample(rep_len(seq_len(k), n)))
  }
  if (!is.atomic(folds) && !is.factor(folds)) {
    abort_argument("folds", sprintf(paste("'folds' must be a number, \"loo\" or a vector with the",
                                          "fold of each observation, not %s"), describe(folds)))
  }
  dropped <- fit$na.action
  if (!is.null(dropped) && length(folds) == n + length(dropped)) folds <- folds[-dropped]
  if (length(folds) != n) {
    abort_argument("folds", sprintf("'folds' has %d values, but the fit has %d observations",
                                    length(folds), n))
  }
  if (anyNA(folds)) abort_argument("folds", "'folds' has missing values")
  if (is.factor(folds)) as.character(folds) else as.vector(folds)
}

# The values of run(fold) for all folds, in workers if there are any.
each_fold <- function(workers, begin, work) {
  labels <- attr(work$ids, "labels")
  mapper <- open_mapper(workers, length(labels), begin, work, work)
  on.exit(mapper$close())
  values <- mapper$map(as.list(seq_along(labels)))
  told <- lapply(values, `[[`, "warnings")
  if (any(lengths(told) > 0L)) {
    statcl_warning("folds", sprintf(paste("%s without a fold gave warnings; the first, without",
                                          "fold %s: %s"), count_of(sum(lengths(told) > 0L), "fit"),
                                    labels[lengths(told) > 0L][1L], unlist(told)[1L]))
  }
  values
}

# A fit without a fold; its errors name it, its warnings are kept: list(fit, warnings).
without_fold <- function(label, code) {
  warnings <- character()
  fit <- tryCatch(suppressMessages(withCallingHandlers(code, statcl_warning = function(w) {
    warnings <<- c(warnings, conditionMessage(w))
    invokeRestart("muffleWarning")
  })), statcl_error = function(e) {
    e$message <- sprintf("the fit without fold %s: %s", label, conditionMessage(e))
    stop(e)
  })
  list(fit = fit, warnings = warnings)
}

# Values of all folds in the order of the observations; `name`: an element of each fold's value.
gather_folds <- function(values, ids, name) {
  first <- values[[1L]][[name]]
  if (is.null(first)) return(NULL)
  rows <- order(ids) # in the order of the folds
  if (is.matrix(first)) {
    all <- do.call(rbind, lapply(values, `[[`, name))
    all[rows, ] <- all
    return(all)
  }
  all <- unlist(lapply(values, `[[`, name), use.names = FALSE)
  all[rows] <- all
  all
}

# The value of an argument of the call that the fit does not keep.
call_value <- function(fit, name, caller) {
  code <- fit$call[[name]]
  if (is.null(code)) return(NULL)
  homes <- list(caller, environment(fit$formula))
  for (home in homes[lengths(homes) > 0L | vapply(homes, is.environment, NA)]) {
    value <- tryCatch(eval(code, home), error = function(e) NULL)
    if (!is.null(value)) return(value)
  }
  abort_argument("fit", sprintf("'%s' of the call of the fit, %s, cannot be evaluated here", name,
                                deparse1(code)))
}

# Refuses levels that only one fold has.
check_fold_levels <- function(values, ids, name) {
  folds <- tapply(ids, values, function(i) length(unique(i)))
  alone <- names(folds)[folds %in% 1L]
  if (length(alone) == 0L) return(invisible())
  abort_argument("folds", sprintf(paste("level \"%s\" of %s is in fold %s only, so it cannot be",
                                        "estimated from the others: supply 'folds' that spread",
                                        "it, or fit without it"),
                                  alone[1L], name,
                                  attr(ids, "labels")[ids[which(values == alone[1L])[1L]]]))
}

log_mean_exp <- function(x) { # by row
  most <- do.call(pmax, lapply(seq_len(ncol(x)), function(j) x[, j]))
  most[!is.finite(most)] <- 0
  most + log(rowMeans(exp(x - most)))
}

# ---- the result ----------------------------------------------------------------------------------

# `found`: list(y (as the model has it), observed, predicted, log_score, deviance, sd,
# probabilities, used).
new_cv <- function(fit, found, folds, k, call) {
  names <- rownames(fit$x)
  if (is.null(names)) names <- if (is.matrix(fit$fitted.values)) rownames(fit$fitted.values) else
    names(fit$fitted.values)
  if (is.null(names) || anyDuplicated(names)) names <- seq_along(folds)
  columns <- found[c("predicted", "log_score", "deviance", "sd")]
  pointwise <- data.frame(c(list(fold = folds, observed = found$observed),
                            columns[lengths(columns) > 0L]), row.names = names,
                          stringsAsFactors = FALSE)
  probabilities <- found$probabilities
  if (!is.null(probabilities)) rownames(probabilities) <- names
  structure(list(estimates = cv_estimates(found), pointwise = pointwise,
                 probabilities = probabilities, folds = folds, k = k, used = found$used,
                 model = deparse1(if (is.null(fit$formula)) fit$call else stats::formula(fit)),
                 family = if (is.null(fit$family)) families_with("least_squares") else
                   as.vector(unclass(fit$family)),
                 refit = found$refit, engine = found$engine, call = call),
            class = "cl_cv")
}

# Sums and means with standard errors.
cv_estimates <- function(found) {
  pick <- function(v) v[found$used]
  n <- sum(found$used)
  sum_of <- function(v) c(sum(v), sqrt(n) * stats::sd(v))
  mean_of <- function(v) c(mean(v), stats::sd(v) / sqrt(n))
  rows <- list()
  if (!is.null(found$log_score)) rows$elpd <- sum_of(pick(found$log_score))
  if (!is.null(found$deviance)) rows$deviance <- sum_of(pick(found$deviance))
  off <- if (is.null(found$probabilities)) pick(found$y - found$mean)
  if (!is.null(off)) {
    square <- mean_of(off^2)
    rows$rmse <- sqrt(square[1L]) * c(1, if (square[1L] > 0) square[2L] / square[1L] / 2 else 0)
    rows$mae <- mean_of(abs(off))
  }
  wrong <- if (!is.null(found$wrong)) pick(found$wrong)
  if (!is.null(wrong)) rows$error <- mean_of(wrong)
  matrix(unlist(rows), ncol = 2L, byrow = TRUE,
         dimnames = list(names(rows), c("Estimate", "SE")))
}
