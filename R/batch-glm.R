# Generalised linear models by group: all fits in one call of the core (src/ops/glm_batch.h).

#' Generalised linear models by group
#'
#' Fits the same logistic, Poisson or normal regression to each group of rows, as
#' `lapply(split(data, group), glm)` does, but to thousands of groups in one call, on the host with
#' all its threads, or on a device, as [cl_thresholds()] determines.
#'
#' Newton's method runs in each group separately, in orthonormal columns, started as in [glm()]. It
#' stops when the mode is less than 1e-12 standard errors away, so that estimates, standard errors
#' and deviances are those of [glm()] with `epsilon = 1e-15`. Normal regressions of nearly collinear
#' columns (variance inflation above 1e4, about a mean of 0) use the QR decomposition of [lm()].
#'
#' A group never makes the others fail. Its `status` is one of
#' * `"ok"`,
#' * `"collinear columns"`: as in [glm()], columns that are linear combinations of earlier ones in
#'   this group have the coefficient `NA`, and the others are fitted. This includes groups with
#'   fewer rows than columns,
#' * `"separated"`: the likelihood has no maximum, because some responses are predicted with
#'   certainty (in a Poisson regression, zeros); the results of the group are `NA`, where [glm()]
#'   returns large coefficients with larger standard errors,
#' * `"not converged"`: the search has failed for another reason, such as overflow; `NA`, too.
#'
#' @inheritParams cl_batch_lm
#' @param y The response: one value for each row of `x`; for a binomial family also a factor whose
#'   first level is the failure, or a matrix `cbind(successes, failures)`. Proportions have the
#'   numbers of trials as `weights`.
#' @param family The family, with its canonical link: `binomial`, `poisson` or `gaussian` (names,
#'   functions or objects), or `"bernoulli_logit"`, `"binomial_logit"`, `"poisson_log"` or
#'   `"normal_id"`.
#' @param weights,offset Prior weights and offsets as for [glm()], one for each row; looked up in
#'   `data` first. Rows with weight 0 are not used.
#' @return An object of class `c("cl_batch_glm", "cl_batch_lm")`, a list with the elements
#'   * `coefficients`, `std.error`: matrices with one row for each group and one column for each
#'     coefficient,
#'   * `deviance`, `rank`, `df.residual`, `nobs`, `iterations`, `status`: vectors over the groups,
#'   * `sigma`: 1, or for normal responses the residual standard errors,
#'   * `cov.unscaled`: covariance matrices, divided by `sigma^2`, an array p x p x groups,
#'   * `linear.predictors`, `fitted.values`, `y`, `prior.weights`, `group`: in the order of the rows
#'     in use,
#'   * `family`, `call`, and with a formula `terms`, `xlevels`, `contrasts`.
#'
#'   For its methods see [cl_batch-methods].
#' @section Errors:
#' `statcl_error_argument` for shapes that do not conform, values outside of the support, and other
#' families and links. A warning of class `statcl_warning_batch` (fields `count` and `index`) counts
#' the groups without results; with `on_error = "stop"` it is an error, `statcl_error_singular`
#' (field `matrix`: the number of the group).
#' @seealso [cl_glm()] for one regression.
#' @export
#' @examples
#' # Infertility after abortions: a logistic regression for each level of education
#' fit <- cl_batch_glm(case ~ spontaneous + induced, infert, group = education, family = binomial)
#' fit
#' summary(fit)
#' confint(fit)["12+ yrs", , ]
#' one <- glm(case ~ spontaneous + induced, binomial, infert, subset = education == "12+ yrs")
#' all.equal(coef(fit)["12+ yrs", ], coef(one), tolerance = 1e-6)
#'
#' # Breaks of yarn, a Poisson regression for each wool
#' coef(cl_batch_glm(breaks ~ tension, warpbreaks, group = wool, family = poisson))
cl_batch_glm <- function(x, ...) UseMethod("cl_batch_glm")

#' @rdname cl_batch_glm
#' @export
cl_batch_glm.formula <- function(x, data = NULL, group, family = "bernoulli_logit",
                                 weights = NULL, offset = NULL, on_error = c("warn", "stop"), ...) {
  check_dots_empty(...)
  if (missing(group)) abort_no_group()
  call <- match.call()
  where <- parent.frame()
  look <- function(code, argument) classed(eval(code, data, where), argument)
  frame <- group_frame(x, data, look(substitute(group), "group"),
                       weights = look(substitute(weights), "weights"),
                       offset = look(substitute(offset), "offset"))
  y <- frame$frame[[1L]]
  fit <- cl_batch_glm.default(frame$x, if (is.factor(y)) y else stats::model.response(frame$frame),
                              frame$group, family, frame$frame[["(weights)"]],
                              stats::model.offset(frame$frame), on_error)
  finish_group_fit(fit, frame, call, quote(cl_batch_glm))
}

#' @rdname cl_batch_glm
#' @export
cl_batch_glm.default <- function(x, y, group, family = "bernoulli_logit", weights = NULL,
                                 offset = NULL, on_error = c("warn", "stop"), ...) {
  check_dots_empty(...)
  on_error <- check_on_error(on_error)
  if (missing(group)) abort_no_group()
  family <- canonical_family(family)
  n <- NROW(y)
  weights <- if (!is.null(weights)) check_row_numbers(weights, "weights", n)
  offset <- if (!is.null(offset)) check_row_numbers(offset, "offset", n)
  if (any(weights < 0)) abort_argument("weights", "'weights' must be non-negative")
  given <- group_response(y, family, weights)
  keep <- if (any(given$w == 0)) given$w > 0
  pick <- function(v) if (is.null(keep) || is.null(v)) v else if (is.matrix(v))
    v[keep, , drop = FALSE] else v[keep]
  if (NROW(x) != n || length(group) != n) keep <- NULL
  data <- check_grouped(pick(x), pick(given$y), pick(group))
  fit <- fit_glm_groups(data$x, pick(given$y), pick(given$w), pick(given$trials), pick(offset),
                        data, family)
  fit$call <- match.call()
  fit$call[[1L]] <- quote(cl_batch_glm)
  report_groups(fit, on_error)
}

canonical_family <- function(family) {
  if (is.character(family) && length(family) == 1L) {
    row <- family_table[[family]]
    family <- if (!is.null(row$base)) row$base() else if (!is.null(r_rows[[family]]$batch))
      getExportedValue("stats", family)
  }
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (inherits(family, "family")) {
    row <- r_rows[[family$family]]
    if (!is.null(row$batch) && identical(row$canonical_link, family$link)) return(family)
  }
  abort_argument("family", paste("'family' must be binomial(), poisson() or gaussian(), with its",
                                 "canonical link: for others use cl_glm() for each group"))
}

check_row_numbers <- function(v, argument, n) {
  v <- as.vector(check_numeric(v, argument))
  if (length(v) != n || !all(is.finite(v))) {
    abort_argument(argument, sprintf("'%s' must be %d finite numbers, one for each row", argument,
                                     n))
  }
  v
}

# list(y, w, trials): the response on the scale of the mean, weights with the trials (NULL: ones),
# and the trials of counts.
group_response <- function(y, family, weights) {
  row <- r_rows[[family$family]]
  trials <- NULL
  if (isTRUE(row$trials) && is.matrix(y) && ncol(y) == 2L) {
    counts <- check_numeric(y, "y")
    if (!all(is.finite(counts) & counts >= 0)) {
      abort_argument("y", "counts of successes and failures must be finite and non-negative")
    }
    trials <- as.vector(counts[, 1L] + counts[, 2L])
    y <- as.vector(ifelse(trials > 0, counts[, 1L] / trials, 0))
    weights <- if (is.null(weights)) trials else weights * trials
  } else if (isTRUE(row$trials) && (is.factor(y) || is.character(y))) {
    y <- as.double(as.integer(as.factor(y)) != 1L)
  } else {
    y <- as.vector(check_numeric(if (is.logical(y)) y + 0 else if (is_cl(y)) as.matrix(y) else y,
                                 "y"))
  }
  most <- if (isTRUE(row$trials)) 1 else Inf
  if (isTRUE(row$known) && (min(y, 0, na.rm = TRUE) < 0 || max(y, 0, na.rm = TRUE) > most)) {
    abort_argument("y", if (isTRUE(row$trials)) {
      "the response must be between 0 and 1, or cbind(successes, failures)"
    } else {
      "the response must be non-negative"
    })
  }
  list(y = y, w = weights, trials = trials)
}

fit_glm_groups <- function(x, y, w, trials, offset, grouped, family) {
  p <- ncol(x)
  names <- levels(grouped$group)
  groups <- length(names)
  size <- grouped$size
  task <- c(r_rows[[family$family]]$batch, 100, max(size))
  begin_note("batch")
  # few groups do not occupy a device
  where <- where_for("batch", 8 * length(x) * p * min(1, groups / 1024),
                     kind = shape_kind(paste("batch", family$family), c(groups, p)))
  run <- function(where) {
    call_on(where, r_glm_batch, x, y, w, offset, grouped$order, c(0, cumsum(size)), task)
  }
  found <- run(where)
  if (is.null(found)) found <- run(-1L)
  known <- has_sigma(list(family = family))
  if (known) found <- qr_collinear_groups(found, x, y, w, offset, grouped$group)
  named <- function(v) {
    names(v) <- names
    v
  }
  df <- size - found$rank
  sigma <- if (known) sqrt(found$deviance / ifelse(df > 0, df, NaN)) else rep(1, groups)
  error <- sqrt(found$variance) * sigma
  beta <- found$beta
  dimnames(beta) <- dimnames(error) <- list(names, colnames(x))
  status <- c("ok", "collinear columns", "separated", "not converged")[found$state + 1L]
  structure(list(coefficients = beta, std.error = error, sigma = named(sigma),
                 deviance = named(found$deviance), rank = named(found$rank),
                 df.residual = named(df), nobs = named(size),
                 iterations = named(found$steps), status = named(status),
                 cov.unscaled = array(found$cov, c(p, p, groups),
                                      list(colnames(x), colnames(x), names)),
                 linear.predictors = found$eta, fitted.values = found$mean, y = y,
                 prior.weights = w, trials = trials, group = grouped$group, family = family,
                 engine = engine_note("batch")),
            class = c("cl_batch_glm", "cl_batch_lm"))
}

# Normal responses: groups of nearly collinear columns are fitted again by the QR decomposition of
# glm(), which loses fewer digits.
qr_collinear_groups <- function(found, x, y, w, offset, group) {
  p <- ncol(x)
  usual <- found$state == 0L
  collinear <- function(squares) which(usual & rowSums(found$variance * squares > 1e4) > 0)
  if (length(collinear(rep(colSums(x^2), each = length(usual)))) == 0L) return(found)
  code <- as.integer(group)
  for (g in collinear(rowsum(if (is.null(w)) x^2 else w * x^2, code))) {
    rows <- which(code == g)
    root <- if (is.null(w)) 1 else sqrt(w[rows])
    one <- qr_group(x[rows, , drop = FALSE] * root,
                        (if (is.null(offset)) y[rows] else y[rows] - offset[rows]) * root, 1e-11)
    if (one$info > 0L) next
    found$beta[g, ] <- one$beta
    found$variance[g, ] <- diag(one$inverse)
    found$cov[seq_len(p^2) + (g - 1) * p^2] <- one$inverse
    found$deviance[g] <- sum(one$residuals^2)
    found$eta[rows] <- found$mean[rows] <- y[rows] - one$residuals / root
  }
  found
}

report_groups <- function(fit, on_error) {
  bad <- which(is.na(unname(fit$deviance)))
  if (length(bad) == 0L) return(fit)
  first <- sprintf("group '%s' is %s", names(fit$status)[bad[1L]], fit$status[bad[1L]])
  if (on_error == "stop") statcl_abort("singular", first, matrix = bad[1L])
  warning(structure(list(message = sprintf("%d of %s without results: %s%s", length(bad),
                                           count_of(length(fit$status), "group"), first,
                                           if (length(bad) > 1L) ", ..." else ""),
                         call = user_call(), count = length(bad), index = bad),
                    class = c("statcl_warning_batch", "statcl_warning", "warning", "condition")))
  fit
}

# ---- methods that differ from those of cl_batch_lm() ---------------------------------------------

#' @rdname cl_batch-methods
#' @export
residuals.cl_batch_glm <- function(object, type = c("deviance", "pearson", "working", "response"),
                                   ...) {
  type <- check_choice(type, c("deviance", "pearson", "working", "response"), "type")
  y <- object$y
  mu <- object$fitted.values
  w <- ones_unless(object$prior.weights, length(y))
  r <- object$family
  switch(type, response = y - mu, pearson = (y - mu) * sqrt(w / r$variance(mu)),
         working = (y - mu) / r$mu.eta(object$linear.predictors),
         deviance = sqrt(pmax(r$dev.resids(y, mu, w), 0)) * sign(y - mu))
}

#' @rdname cl_batch-methods
#' @export
logLik.cl_batch_glm <- function(object, ...) {
  y <- object$y
  mu <- object$fitted.values
  w <- ones_unless(object$prior.weights, length(y))
  n <- object$nobs
  sums <- function(v) as.vector(rowsum(v, as.integer(object$group)))
  value <- if (has_sigma(object)) {
    sums(log(w)) / 2 - n / 2 * (log(2 * pi * object$deviance / n) + 1)
  } else {
    trials <- object$trials
    if (is.null(trials) || !any(trials > 1)) trials <- w
    sums(w / trials *
           suppressWarnings(r_rows[[object$family$family]]$log_density(y, mu, trials, 1)))
  }
  value[is.na(object$deviance)] <- NA
  structure(value, df = unname(object$rank + has_sigma(object)), nobs = unname(n),
            class = "logLik")
}
