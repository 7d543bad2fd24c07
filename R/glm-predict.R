# Predictions and draws of generalised linear models.

#' Predictions from generalised linear models
#'
#' Predicts linear predictors, means or classes for new data, with the uncertainty of the
#' coefficients.
#'
#' Standard errors are those of the linear predictor; those of means follow by the delta method.
#' Confidence intervals are for the mean. For families with one linear predictor, the interval of
#' the linear predictor is transformed to the scale of the mean; for the probability of a class, the
#' interval is symmetric on the logit scale. With `method = "mcmc"` predictions are means over
#' draws, standard errors their standard deviations, and intervals their quantiles.
#'
#' Prediction intervals are for a new observation of weight 1, and include the uncertainty of the
#' coefficients. For `normal_id` they are those of [predict.lm()]. For gamma, Poisson, negative
#' binomial and other normal responses they are quantiles of the distribution of the response,
#' averaged over the distribution of the linear predictor.
#'
#' @param object A fit of [cl_glm()].
#' @param newdata A data frame with the variables of the formula, or for a fit without a formula a
#'   matrix or data frame with its columns (by name, if they have names). Default: the data of the
#'   fit. Rows with missing values give `NA`.
#' @param type `"link"`: linear predictors (for `categorical_logit` one for each class, 0 for the
#'   first). `"response"`: means; for `binomial_logit` proportions; for families with classes a
#'   matrix of probabilities. `"class"`: the most probable class (for `bernoulli_logit`, too), a
#'   factor, or 0 and 1 if the response had no levels. `"terms"`: the contribution of each term of
#'   the formula to the linear predictor, minus its mean in the data of the fit, one column for each
#'   term, with the attribute `"constant"`, which together with the terms and an offset gives the
#'   linear predictor.
#' @param se.fit Whether to return standard errors.
#' @param interval,level Type and level of the interval.
#' @param terms For `type = "terms"`: names of the terms; all by default.
#' @param draws For a fit with `method = "mcmc"`: the number of draws, evenly spaced, over which to
#'   average.
#' @param ... Not used.
#' @return A vector, or a matrix with one column for each class. With an interval, a matrix with
#'   columns `fit`, `lwr` and `upr`, for several classes an array of such matrices. With `se.fit`, a
#'   list with elements `fit` (the above), `se.fit` and `residual.scale`, as from [predict.glm()].
#' @section Errors:
#' `statcl_error_argument` for `newdata` without a variable of the model, with other columns, or
#' with new levels of a factor; and for `"class"` with a family without classes. Predictions for
#' `newdata` from a fit with `NA` coefficients give the warning `statcl_warning_rank`.
#' @name predict.cl_glm
#' @export
#' @examples
#' fit <- cl_glm(am ~ wt, data = mtcars)
#' new <- data.frame(wt = c(2, 3, 4))
#' predict(fit, new, se.fit = TRUE)
#' predict(fit, new, type = "response", interval = "confidence")
#'
#' gears <- cl_glm(factor(gear) ~ mpg, data = mtcars, family = "categorical_logit")
#' predict(gears, data.frame(mpg = c(15, 25)), type = "response")
predict.cl_glm <- function(object, newdata, type = c("link", "response", "class", "terms"),
                           se.fit = FALSE, interval = c("none", "confidence", "prediction"),
                           level = 0.95,
                           terms = NULL, draws = 1000, ...) {
  check_dots_empty(...)
  type <- check_choice(type, c("link", "response", "class", "terms"), "type")
  interval <- check_choice(interval, c("none", "confidence", "prediction"), "interval")
  se.fit <- check_flag(se.fit, "se.fit")
  level <- check_number(level, "level", 0, 1)
  draws <- check_count(draws, "draws", 1)
  in_sample <- missing(newdata) || is.null(newdata)
  if (!in_sample && anyNA(object$coefficients)) {
    statcl_warning("rank", paste("prediction from a rank-deficient fit may be misleading: NA",
                                 "coefficients are treated as 0"))
  }
  if (type == "terms") {
    if (interval != "none") {
      abort_argument("interval", "type = \"terms\" does not support intervals")
    }
    found <- term_prediction(object, if (!in_sample) newdata, se.fit, terms)
    if (!in_sample || is.null(object$na.action)) return(found)
    fit <- if (se.fit) found$fit else found
    constant <- attr(fit, "constant")
    fit <- structure(pad_rows(object, fit), constant = constant)
    if (!se.fit) return(fit)
    return(list(fit = fit, se.fit = pad_rows(object, found$se.fit),
                residual.scale = found$residual.scale))
  }
  pad <- function(v) if (in_sample) pad_rows(object, v) else v
  uncertain <- se.fit || interval != "none"
  if (type == "class") {
    if (uncertain) {
      abort_argument("type", "type = \"class\" does not support standard errors and intervals")
    }
    return(pad(glm_class(object, glm_mean_at(object, newdata, in_sample, draws))))
  }
  if (!uncertain && is.null(object$draws)) {
    eta <- if (in_sample) object$linear.predictors else glm_eta_at(object, newdata)
    return(pad(if (type == "link") eta else glm_mean(object, eta)))
  }
  points <- glm_points(object, if (in_sample) NULL else newdata)
  found <- if (is.null(object$draws)) {
    wald_prediction(object, points, type, level)
  } else {
    drawn_prediction(object, points, type, level, draws)
  }
  fit <- found$fit
  if (interval == "prediction") {
    found[c("lower", "upper")] <- prediction_bounds(object, points, type, level)
  }
  if (interval != "none") fit <- bind_interval(found)
  if (!se.fit) return(pad(fit))
  list(fit = pad(fit), se.fit = pad(found$se), residual.scale = stats::sigma(object))
}

# Rows that na.exclude removed are restored as NA.
pad_rows <- function(object, v) {
  if (length(dim(v)) != 3L) return(stats::napredict(object$na.action, v))
  keep <- stats::napredict(object$na.action, seq_len(nrow(v)))
  v[keep, , , drop = FALSE]
}

bind_interval <- function(found) {
  if (!is.matrix(found$fit)) return(cbind(fit = found$fit, lwr = found$lower, upr = found$upper))
  array(c(found$fit, found$lower, found$upper), c(dim(found$fit), 3L),
        c(dimnames(found$fit), list(c("fit", "lwr", "upr"))))
}

glm_mean_at <- function(object, newdata, in_sample, draws) {
  if (is.null(object$draws)) {
    return(if (in_sample) object$fitted.values else glm_mean(object, glm_eta_at(object, newdata)))
  }
  drawn_prediction(object, glm_points(object, if (in_sample) NULL else newdata), "response", 0.5,
                   draws)$fit
}

glm_class <- function(object, mean) {
  if (has_classes(object$family)) {
    k <- rep(NA_integer_, nrow(mean))
    complete <- !is.na(mean[, 1L])
    k[complete] <- max.col(mean[complete, , drop = FALSE], "first")
    return(stats::setNames(factor(object$levels[k], object$levels,
                                  ordered = object$kind == "ordered"), rownames(mean)))
  }
  if (!family_row(object$family)$two_classes) {
    abort_argument("type", sprintf("type = \"class\" is not available for family \"%s\"",
                                   object$family))
  }
  k <- as.numeric(mean > 0.5)
  stats::setNames(if (is.null(object$levels)) k else factor(object$levels[k + 1], object$levels),
                  names(mean))
}

glm_eta_at <- function(object, newdata) {
  points <- glm_points(object, newdata)
  glm_predictor(object, points$x, points$offset)
}

# list(x, offset) of `newdata`; with NULL those of the fit.
glm_points <- function(object, newdata) {
  if (is.null(newdata)) return(list(x = stats::model.matrix(object), offset = object$offset))
  if (is.null(object$terms)) {
    if (!is.null(object$offset)) {
      abort_argument("newdata", paste("a fit with an offset but without a formula can only predict",
                                      "its own data: omit 'newdata'"))
    }
    if (is.data.frame(newdata)) check_columns_numeric(newdata, "newdata")
    return(list(x = default_matrix(object, newdata), offset = NULL))
  }
  terms <- stats::delete.response(object$terms)
  frame <- new_frame(terms, newdata, object$xlevels)
  x <- stats::model.matrix(terms, frame, contrasts.arg = object$contrasts)
  list(x = x, offset = new_offset(object, terms, newdata, nrow(x)))
}

# The model frame of the predictors in `newdata`.
new_frame <- function(terms, newdata, xlevels) {
  if (!is.data.frame(newdata)) {
    abort_argument("newdata", sprintf("'newdata' must be a data frame, not %s", describe(newdata)))
  }
  lacking <- setdiff(all.vars(terms), names(newdata))
  lacking <- lacking[!vapply(lacking, exists, NA, envir = environment(terms))]
  if (length(lacking) > 0L) {
    abort_argument("newdata", sprintf("'newdata' has no variable '%s'", lacking[1L]))
  }
  frame <- tryCatch({
    frame <- stats::model.frame(terms, newdata, na.action = stats::na.pass, xlev = xlevels)
    stats::.checkMFClasses(attr(terms, "dataClasses"), frame)
    frame
  }, error = function(e) abort_argument("newdata", conditionMessage(e), call = user_call()))
  if (nrow(frame) != nrow(newdata)) {
    abort_argument("newdata", "a variable of the model is not in 'newdata'")
  }
  frame
}

# Offsets of the formula and of the argument, both looked up in `newdata`.
new_offset <- function(object, terms, newdata, n) {
  where <- environment(terms)
  calls <- c(as.list(attr(terms, "variables"))[-1L][attr(terms, "offset")],
             if (!is.null(object$call$offset)) list(object$call$offset))
  if (length(calls) == 0L) return(NULL)
  offset <- numeric(n)
  for (call in calls) {
    one <- tryCatch(eval(call, newdata, where), error = function(e) {
      abort_argument("newdata", paste("the offset cannot be evaluated:", conditionMessage(e)),
                     call = user_call())
    })
    if (!NROW(one) %in% c(1L, n)) {
      abort_argument("newdata", sprintf("the offset has %d values, but 'newdata' has %d rows",
                                        length(one), n))
    }
    offset <- if (is.matrix(one)) one + offset else offset + one
  }
  if (is.matrix(offset)) check_offset(offset, n, length(object$levels)) else offset
}

# ---- by standard errors --------------------------------------------------------------------------

# Standard errors of the rows of x times the coefficients named `k`.
wald_errors <- function(object, x, k) {
  root <- object$vcov.root
  if (is.null(root)) {
    half <- cl_matmul(x, object$vcov[k, k, drop = FALSE])
    return(sqrt(pmax(rowSums(as.matrix(half) * as.matrix(x)), 0)))
  }
  root_lengths(as.matrix(cl_matmul(x, root[k, , drop = FALSE])))
}

# The lengths of the rows, computed without overflow or underflow of squares.
root_lengths <- function(x) {
  if (length(x) == 0L) return(numeric(nrow(x)))
  most <- do.call(pmax, lapply(seq_len(ncol(x)), function(j) abs(x[, j])))
  unit <- ifelse(is.finite(most) & most > 0, most, 1)
  unit * sqrt(rowSums((x / unit)^2))
}

# Standard errors of the coefficients (and cuts), by name.
coefficient_errors <- function(object) {
  root <- object$vcov.root
  if (is.null(root)) return(sqrt(diag(object$vcov)))
  stats::setNames(root_lengths(root), rownames(object$vcov))
}

wald_prediction <- function(object, points, type, level) {
  q <- wald_quantile(object, (1 + level) / 2)
  eta <- glm_predictor(object, points$x, points$offset)
  if (has_classes(object$family) && (type == "response" || is.matrix(eta))) {
    return(class_wald(object, points, eta, type, q))
  }
  k <- intersect(colnames(points$x), rownames(object$vcov))
  x <- points$x[, k, drop = FALSE]
  se <- stats::setNames(wald_errors(object, x, k), names(eta))
  if (type == "link") return(list(fit = eta, se = se, lower = eta - q * se, upper = eta + q * se))
  row <- family_row(object$family)
  list(fit = row$inverse(eta), se = se * abs(row$slope(eta)), lower = row$inverse(eta - q * se),
       upper = row$inverse(eta + q * se))
}

# Bounds for a new observation: those of predict.lm(), or quantiles of the distribution of the
# response, averaged over the distribution of the linear predictor.
prediction_bounds <- function(object, points, type, level) {
  law <- response_law(object)
  if (is.null(law) || !is.null(object$draws) || (type == "link" && law$link != "identity")) {
    abort_argument("interval", paste(
      "prediction intervals are for type = \"response\", methods \"ml\" and \"map\", and normal,",
      "gamma, Poisson and negative binomial responses"))
  }
  found <- wald_prediction(object, points, "link", level)
  tails <- c((1 - level) / 2, (1 + level) / 2)
  if (is_least_squares(object$family)) {
    half <- outer(sqrt(found$se^2 + stats::sigma(object)^2), wald_quantile(object, tails))
    return(list(found$fit + half[, 1L], found$fit + half[, 2L]))
  }
  nodes <- stats::qnorm((1:51 - 0.5) / 51)
  mu <- link_inverse(object$family, found$fit + outer(as.vector(found$se), nodes))
  lapply(law_quantiles(law, mu, tails), stats::setNames, names(found$fit))
}

# Quantiles of a response whose mean is one of the columns of mu.
law_quantiles <- function(law, mu, tails) {
  lapply(tails, function(p) {
    low <- do.call(pmin, as.data.frame(law$quantile(p, mu))) - law$whole
    high <- do.call(pmax, as.data.frame(law$quantile(p, mu)))
    for (i in 1:60) { # P(y <= low) < p <= P(y <= high)
      middle <- (low + high) / 2
      if (law$whole) middle <- floor(middle)
      above <- rowMeans(law$probability(middle, mu)) >= p
      above[is.na(above)] <- FALSE
      high[above] <- middle[above]
      low[!above] <- middle[!above]
    }
    high
  })
}

# list(link, whole, probability(y, mu), quantile(p, mu)) of a response with weight 1 and the matrix
# of means mu; NULL if the family is another. `aux`: the auxiliary parameter, by default the fit's.
response_law <- function(object, aux = NULL) {
  row <- family_row(object$family)
  if (is.null(row$quantile)) return(NULL)
  if (is.null(aux) || !is.null(row$r)) {
    aux <- if (is.null(row$r)) object$aux else dispersion(object)
  }
  like <- function(v, mu) array(v, dim(mu))
  list(link = stats::family(object)$link, whole = row$whole,
       probability = function(y, mu) like(row$probability(y, mu, aux), mu),
       quantile = function(p, mu) like(row$quantile(p, mu, aux), mu))
}

# For each class: the derivative of the prediction with respect to all coefficients and cuts.
class_wald <- function(object, points, eta, type, q) {
  x <- as.matrix(points$x)
  names <- rownames(object$vcov)
  fit <- if (type == "link") eta else glm_mean(object, eta)
  se <- fit
  for (c in seq_along(object$levels)) {
    slope <- class_slopes(object, x, eta, type, c)
    se[, c] <- wald_errors(object, slope, names)
  }
  if (type == "link") return(list(fit = fit, se = se, lower = fit - q * se, upper = fit + q * se))
  at <- stats::qlogis(fit)
  half <- q * se / (fit * (1 - fit))
  list(fit = fit, se = se, lower = bounded(at - half, fit), upper = bounded(at + half, fit))
}

# If a probability rounds to 0 or 1, so do its bounds.
bounded <- function(at, fit) {
  bound <- stats::plogis(at)
  lost <- is.nan(bound) & !is.na(fit)
  bound[lost] <- fit[lost]
  bound
}

class_slopes <- function(object, x, eta, type, class) {
  names <- rownames(object$vcov)
  slope <- matrix(0, nrow(x), length(names), dimnames = list(NULL, names))
  if (is_ordered(object$family)) {
    density <- function(cut) stats::dlogis(cut - eta)
    ends <- c(-Inf, object$aux, Inf)
    above <- density(ends[class + 1L])
    below <- density(ends[class])
    k <- intersect(colnames(x), names)
    slope[, k] <- (below - above) * x[, k]
    cuts <- length(names) - length(object$aux)
    if (class <= length(object$aux)) slope[, cuts + class] <- above
    if (class > 1L) slope[, cuts + class - 1L] <- -below
    return(slope)
  }
  share <- class_probabilities(object$family, eta)
  for (d in seq_along(object$levels)[-1L]) {
    k <- paste(object$levels[d], colnames(x), sep = ":")
    there <- k %in% names
    by_eta <- if (type == "link") rep(as.numeric(class == d), nrow(x)) else
      share[, class] * ((class == d) - share[, d])
    slope[, k[there]] <- by_eta * x[, there]
  }
  slope
}

# ---- by draws ------------------------------------------------------------------------------------

# The draws used, one in each row: coefficients, then sigma, phi or cuts.
glm_draws <- function(object, count) {
  draws <- as.matrix(object$draws)
  draws[unique(round(seq(1, nrow(draws), length.out = min(count, nrow(draws))))), , drop = FALSE]
}

drawn_prediction <- function(object, points, type, level, count) {
  draws <- glm_draws(object, count)
  eta <- glm_predictor(object, points$x, points$offset)
  fit <- if (type == "link") eta else glm_mean(object, eta)
  result <- list(fit = fit, se = fit, lower = fit, upper = fit)
  tails <- c((1 - level) / 2, (1 + level) / 2)
  n <- NROW(fit)
  size <- max(1L, floor(2e6 / nrow(draws) / NCOL(fit))) # rows that are processed together
  for (first in seq(1L, by = size, length.out = ceiling(n / size))) {
    rows <- first:min(n, first + size - 1L)
    values <- drawn_values(object, points, type, draws, rows)
    bounds <- apply(values, 2L, function(v) {
      if (anyNA(v)) return(rep(NA_real_, 4L))
      c(mean(v), stats::sd(v), stats::quantile(v, tails, names = FALSE))
    })
    for (k in 1:4) {
      if (is.matrix(fit)) result[[k]][rows, ] <- bounds[k, ] else result[[k]][rows] <- bounds[k, ]
    }
  }
  result
}

# A row for each draw, a column for each of the rows of x (and class).
drawn_values <- function(object, points, type, draws, rows) {
  x <- points$x[rows, , drop = FALSE]
  k <- names(object$coefficients)
  aux <- setdiff(colnames(draws), k)
  values <- lapply(seq_len(nrow(draws)), function(i) {
    eta <- glm_predictor(object, x, pick_rows(points$offset, rows), draws[i, k])
    as.vector(if (type == "link") eta else glm_mean(object, eta, draws[i, aux]))
  })
  matrix(unlist(values), nrow(draws), byrow = TRUE)
}

# ---- draws of new responses ----------------------------------------------------------------------

#' Simulate responses from a generalised linear model
#'
#' Simulates responses from the fitted model for the predictors of the fit. With `method = "mcmc"`
#' each simulation uses the parameters of one draw.
#'
#' @param object A fit of [cl_glm()].
#' @param nsim Number of simulations.
#' @param seed As for [simulate()].
#' @param ... Not used.
#' @return A data frame with one column for each simulation and the attribute `"seed"`: numbers,
#'   counts of successes for `binomial_logit`, or factors if the response was a factor. Rows omitted
#'   by `na.exclude` are `NA`.
#' @export
#' @examples
#' fit <- cl_glm(count ~ spray, data = InsectSprays, family = "poisson_log")
#' head(simulate(fit, 3, seed = 1))
simulate.cl_glm <- function(object, nsim = 1, seed = NULL, ...) {
  nsim <- check_count(nsim, "nsim")
  with_seed(seed, simulate_glm(object, nsim))
}

simulate_glm <- function(object, nsim) {
  draws <- if (!is.null(object$draws)) glm_draws(object, max(1, nsim))
  x <- if (!is.null(draws)) stats::model.matrix(object)
  values <- lapply(seq_len(nsim), function(i) {
    aux <- object$aux
    mean <- object$fitted.values
    if (!is.null(draws)) {
      row <- draws[(i - 1L) %% nrow(draws) + 1L, ]
      k <- names(object$coefficients)
      aux <- row[setdiff(names(row), k)]
      mean <- glm_mean(object, glm_predictor(object, x, object$offset, row[k]), aux)
    }
    draw_response(object, mean, aux)
  })
  names(values) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
  rows <- fitted(object)
  names <- if (is.matrix(rows)) rownames(rows) else names(rows)
  place <- stats::napredict(object$na.action, seq_len(NROW(object$fitted.values)))
  as.data.frame(lapply(values, `[`, place),
                row.names = if (is.null(names)) seq_len(NROW(rows)) else names)
}

draw_response <- function(object, mean, aux) {
  if (has_classes(object$family)) {
    return(factor(object$levels[draw_classes(mean)], object$levels,
                  ordered = object$kind == "ordered"))
  }
  family <- family_row(object$family)
  row <- family$density
  if (!is.null(row)) {
    if (is.null(row$draw)) {
      abort_argument("object", "responses need the argument 'draw' of cl_family() to be simulated")
    }
    mu <- stats::make.link(row$link)$linkinv(object$linear.predictors)
    return(row$draw(length(mu), mu, object$second$eta, density_phi(object)))
  }
  w <- if (is.null(family$r) && family$trials) object$trials else
    ones_unless(object$prior.weights, length(mean))
  value <- if (!is.null(family$r)) r_draw(object, as.vector(mean), w) else
    family$draw(length(mean), as.vector(mean), w, aux)
  switch(object$kind, factor = factor(object$levels[value + 1], object$levels),
         logical = value == 1, value)
}
