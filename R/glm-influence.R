# The influence of single observations on a fit: leverages, standardised residuals, Cook's
# distances.

#' Influence of single observations
#'
#' Leverages, standardised residuals and the effects of leaving one observation out, for fits by
#' maximum likelihood, with the definitions of [influence.measures()] for fits of [glm()] and
#' [lm()].
#'
#' The leverages h are the diagonal of `W^(1/2) X (X' W X)^(-1) X' W^(1/2)`, where W are the working
#' weights. The dispersion phi is `sigma(object)^2` for `normal_id` and families of R, and 1 for
#' other families. Standardised residuals are the residuals divided by `sqrt(phi (1 - h))`, and
#' Cook's distances are `(r / (1 - h))^2 h / (phi p)`, where r are the Pearson residuals and p is
#' the number of coefficients. The effect of leaving one observation out on the coefficients, on
#' sigma and on deviance residuals is computed by one step from the fit, as for [glm()]: for
#' `normal_id` it is exact. (Williams, D. A. (1987) Generalized linear model diagnostics using the
#' deviance and single case deletions. *Applied Statistics* 36, 181-191.)
#'
#' [dffits()] and [covratio()] work too; [influence.measures()] takes [cl_as_glm()] of a fit.
#'
#' A QR decomposition of the n x p predictors is computed on the host at each call.
#'
#' @param model A fit of [cl_glm()] with `method = "ml"`, of a family with one linear predictor.
#' @param do.coef Whether to compute the changes of the coefficients.
#' @param type `"deviance"` or `"pearson"`: the residuals that are standardised.
#' @param infl The result of `influence(model)`, if it has been computed.
#' @param ... Not used.
#' @return `hatvalues()`, `rstandard()`, `rstudent()` and `cooks.distance()`: one number for each
#'   observation. It is `NaN` where an observation has leverage 1. `dfbeta()`: an n x p matrix, the
#'   coefficients minus those without the observation; `dfbetas()` divides them by their standard
#'   errors. `influence()`: a list of the leverages `hat`, the changes of the `coefficients`,
#'   `sigma` (the square root of the dispersion without the observation), the deviance residuals
#'   `dev.res` and the Pearson residuals `pear.res`. Observations with weight 0 are left out, as for
#'   [glm()].
#' @section Errors:
#' `statcl_error_argument` for families with classes and for other methods than `"ml"`.
#' @name influence.cl_glm
#' @importFrom stats cooks.distance dfbeta dfbetas hatvalues influence rstandard rstudent
#' @examples
#' fit <- cl_glm(am ~ wt, data = mtcars)
#' head(sort(cooks.distance(fit), decreasing = TRUE), 3)
#' plot(hatvalues(fit), rstudent(fit), xlab = "leverage", ylab = "studentised residual")
NULL

# list(rows: of weight above 0, qr: of sqrt(W) X, hat: for those rows, kept: columns of X).
leverage <- function(model) {
  refuse_mixed(model, "leverages")
  refuse_stream(model, "residuals and influence of single rows")
  if (several_predictors(model)) {
    abort_argument("model", sprintf("leverages are not available for family \"%s\"", model$family))
  }
  if (model$method != "ml") {
    abort_argument("model", sprintf(paste("leverages need a fit with method = \"ml\", and this one",
                                          "has method = \"%s\""), model$method))
  }
  model$na.action <- NULL
  w <- unname(stats::weights(model, "working"))
  rows <- which(deviance_weights(model) > 0)
  kept <- which(!is.na(model$coefficients))
  x <- as.matrix(stats::model.matrix(model))[rows, kept, drop = FALSE]
  rotation <- qr(x * sqrt(w[rows]), LAPACK = TRUE)
  hat <- if (length(kept) > 0L) rowSums(qr.Q(rotation)^2) else numeric(length(rows))
  hat[hat > 1 - 10 * .Machine$double.eps] <- 1 # as in lm.influence()
  list(rows = rows, qr = rotation, hat = hat, kept = kept)
}

dispersion <- function(model) {
  if (dispersion_estimated(model)) return(model$aux[["dispersion"]])
  if (is_least_squares(model$family)) model$deviance / model$df.residual else 1
}

# Numbers, or a row of a matrix, for each of `rows`, and `rest` for rows that na.exclude removed.
of_rows <- function(model, rows, v, rest = NA_real_) {
  place <- stats::naresid(model$na.action, match(seq_along(model$y), rows, 0L))
  names <- names(stats::naresid(model$na.action, model$fitted.values))
  kept <- which(is.na(place) | place > 0L)
  lost <- is.na(place[kept])
  if (is.matrix(v)) {
    v <- v[place[kept], , drop = FALSE]
    v[lost, ] <- rest
    rownames(v) <- names[kept]
    return(v)
  }
  stats::setNames(ifelse(lost, rest, v[place[kept]]), names[kept])
}

#' @rdname influence.cl_glm
#' @export
hatvalues.cl_glm <- function(model, ...) {
  found <- leverage(model)
  of_rows(model, found$rows, found$hat, 0)
}

#' @rdname influence.cl_glm
#' @export
influence.cl_glm <- function(model, do.coef = TRUE, ...) {
  do.coef <- check_flag(do.coef, "do.coef")
  found <- leverage(model)
  rows <- found$rows
  residual <- unname(glm_residuals(model, "deviance"))[rows]
  rest <- 1 - found$hat
  left <- residual^2 / rest
  left[rest == 0] <- 0
  df <- length(rows) - length(found$kept) - 1L
  result <- list(hat = of_rows(model, rows, found$hat, 0))
  if (do.coef) {
    solved <- t(backsolve(qr.R(found$qr), t(qr.Q(found$qr) * (residual / rest))))
    change <- solved
    change[, found$qr$pivot] <- solved
    change[rest == 0, ] <- 0
    colnames(change) <- names(model$coefficients)[found$kept]
    result$coefficients <- of_rows(model, rows, change, 0)
  }
  sigma <- sqrt(pmax(sum(residual^2) - left, 0) / df)
  result$sigma <- of_rows(model, rows, sigma, sqrt(model$deviance / model$df.residual))
  result$dev.res <- of_rows(model, rows, residual)
  result$pear.res <- of_rows(model, rows, unname(glm_residuals(model, "pearson"))[rows])
  result
}

#' @rdname influence.cl_glm
#' @export
rstandard.cl_glm <- function(model, type = c("deviance", "pearson"), ...) {
  type <- check_choice(type, c("deviance", "pearson"), "type")
  found <- leverage(model)
  r <- unname(glm_residuals(model, type))[found$rows]
  r <- r / sqrt(dispersion(model) * (1 - found$hat))
  r[is.infinite(r)] <- NaN
  of_rows(model, found$rows, r)
}

#' @rdname influence.cl_glm
#' @export
rstudent.cl_glm <- function(model, infl = stats::influence(model, do.coef = FALSE), ...) {
  r <- sign(infl$dev.res) * sqrt(infl$dev.res^2 + infl$hat * infl$pear.res^2 / (1 - infl$hat))
  r[is.infinite(r)] <- NaN
  if (has_t_tests(model)) r / infl$sigma else r
}

#' @rdname influence.cl_glm
#' @export
cooks.distance.cl_glm <- function(model, ...) {
  found <- leverage(model)
  h <- found$hat
  r <- unname(glm_residuals(model, "pearson"))[found$rows]
  distance <- (r / (1 - h))^2 * h / (dispersion(model) * length(found$kept))
  distance[is.infinite(distance)] <- NaN
  of_rows(model, found$rows, distance)
}

#' @rdname influence.cl_glm
#' @export
dfbeta.cl_glm <- function(model, infl = stats::influence(model, do.coef = TRUE), ...) {
  infl$coefficients
}

#' @rdname influence.cl_glm
#' @export
dfbetas.cl_glm <- function(model, infl = stats::influence(model, do.coef = TRUE), ...) {
  unit <- coefficient_errors(model) / sqrt(dispersion(model))
  infl$coefficients / outer(infl$sigma, unit[colnames(infl$coefficients)])
}
