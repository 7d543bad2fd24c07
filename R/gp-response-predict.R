# Predictions of latent Gaussian processes on the scales of the predictor and of the response.

#' Predictions from a Gaussian process with another family of observations
#'
#' Predictions of a fit of [cl_gp()] with `family`. Given the parameters, the latent process at a
#' new point is approximately normal, with mean \eqn{k_*^T \nabla \log p(y \mid \hat f)}{k*' a} and
#' variance \eqn{k_{**} - k_*^T (K + W^{-1})^{-1} k_*}{k** - k*' (K + W^-1)^-1 k*} (Rasmussen and
#' Williams, 2006, equations 3.21 and 3.24), plus the terms for coefficients of the mean in
#' [predict.cl_gp()]. With `method = "mcmc"` it is a mixture over draws. Expectations on the scale
#' of the response are integrals over this distribution: by the trapezoidal rule for one process, by
#' 1,024 quasi-random points for several.
#'
#' @inheritParams predict.cl_gp
#' @param type `"link"`: the latent process with the mean and the offset; `"response"`: the expected
#'   value of a new observation (of `binomial_logit` the proportion; for classes as
#'   `"probability"`); `"probability"`: a matrix with the probability of each class; `"class"`: the
#'   most probable class.
#' @param se.fit Whether to return standard errors of the process, of the mean, or of the
#'   probabilities.
#' @param interval `"confidence"`: for what `type` says; `"prediction"`, with `type = "response"`:
#'   for a new observation of counts or of `student_t`.
#' @param level Level of the intervals.
#' @param offset For a fit without a formula: the offset of the new points, one number for each.
#' @param trials Of new observations of `binomial_logit`, for prediction intervals.
#' @param ... For `type = "link"` and one process: `covariance`, `gradient` and `part` of
#'   [predict.cl_gp()].
#' @return As from [predict.cl_gp()]. For classes a matrix with a column for each (`se.fit`
#'   likewise, an interval as an array points x classes x `fit`, `lwr`, `upr`), or a factor. For
#'   several processes (`categorical_logit`) the link is a matrix with a column for each class,
#'   whose rows sum to zero without the offset.
#' @section Errors: as [predict.cl_gp()]; `statcl_error_argument` for types and intervals that the
#'   family does not have.
#' @name predict.cl_gp_response
#' @export
#' @examples
#' d <- data.frame(t = 1860:1959, y = as.vector(datasets::discoveries))
#' fit <- cl_gp(y ~ t, d, family = "poisson_log", kernel = k_matern32(), starts = 1)
#' predict(fit, data.frame(t = c(1885, 1960)), type = "response", interval = "confidence")
#' predict(fit, data.frame(t = c(1885, 1960)), type = "response", interval = "prediction")
predict.cl_gp_response <- function(object, newdata,
                                   type = c("link", "response", "class", "probability"),
                                   se.fit = FALSE, interval = c("none", "confidence", "prediction"),
                                   level = 0.95, draws = 50, offset = NULL, trials = NULL, ...) {
  type <- check_choice(type, c("link", "response", "class", "probability"), "type")
  interval <- check_choice(interval, c("none", "confidence", "prediction"), "interval")
  se.fit <- check_flag(se.fit, "se.fit")
  level <- check_number(level, "level", 0, 1)
  draws <- check_count(draws, "draws", 1)
  row <- family_row(object$family)
  binary <- row$read == "binary"
  response <- object$response
  in_sample <- missing(newdata) || is.null(newdata)
  classes <- row$classes || binary && type %in% c("class", "probability")
  if (type %in% c("class", "probability") && !classes) {
    abort_argument("type", sprintf("type = \"%s\" is for families with classes", type))
  }
  if (interval == "prediction" && (type != "response" || classes || binary)) {
    abort_argument("interval", paste("prediction intervals are for type = \"response\" of counts",
                                     "and of \"student_t\""))
  }
  if (type == "class" && (se.fit || interval != "none")) {
    abort_argument("type", "type = \"class\" has neither standard errors nor intervals")
  }
  if (row$categorical && type == "link" && interval != "none") {
    abort_argument("interval", "for several processes, intervals are for type = \"probability\"")
  }
  points <- gp_points(object, if (in_sample) NULL else newdata)
  points$offset <- response_offset(object, points, offset, in_sample)
  pad <- function(v) if (in_sample) stats::napredict(object$na.action, v) else v
  if (type == "link" && !row$categorical) {
    found <- predict.cl_gp(object, if (!in_sample) newdata, se.fit, interval, level, draws = draws,
                           ...)
    shift <- pad(points$offset)
    if (is.list(found)) found$fit <- found$fit + shift else found <- found + shift
    return(found)
  }
  check_dots_empty(...)
  what <- if (type == "link" && !se.fit) "mean" else "variance"
  parts <- latent_parts(object, points, what, draws)
  n <- nrow(points$x)
  rows <- which(points$complete)
  scale <- function(f, aux) response_scale(object, f, pick_rows(points$offset, rows), aux,
                                           type == "response" && !row$classes)
  if (type == "link") {
    found <- link_moments(parts, response$contrasts, points, rows)
    columns <- response$levels
  } else {
    found <- expectations(parts, response$dims, scale)
    columns <- if (classes) class_labels(response)
  }
  spread <- function(v) {
    v <- as.matrix(v)
    full <- matrix(NA_real_, n, ncol(v), dimnames = list(rownames(points$x), columns))
    full[rows, ] <- v
    if (is.null(columns)) full[, 1L] else full
  }
  fit <- spread(found$mean)
  if (type == "class") {
    most <- rep(NA_integer_, n)
    most[rows] <- max.col(found$mean, ties.method = "first")
    label <- factor(columns[most], columns, ordered = response$kind == "ordered")
    return(pad(stats::setNames(label, rownames(points$x))))
  }
  if (interval != "none") {
    tails <- c((1 - level) / 2, (1 + level) / 2)
    bounds <- lapply(tails, function(p) {
      spread(if (interval == "prediction") {
        new_quantile(object, parts, points$offset[rows], new_trials(object, trials, in_sample, n,
                                                                    rows), p)
      } else if (classes) {
        scale_quantile(parts, response$dims, scale, p)
      } else {
        link <- gp_interval(list(mean = rep(0, length(rows)), rows = seq_along(rows),
                                 parts = lapply(parts, function(one) c(one, noise = 0))), FALSE,
                            level)
        scale(matrix(link[, 1L + (p > 0.5)]), parts[[1L]]$aux)
      })
    })
    fit <- if (is.null(columns)) cbind(fit = fit, lwr = bounds[[1L]], upr = bounds[[2L]]) else
      array(c(fit, unlist(bounds)), c(dim(fit), 3L),
            c(dimnames(fit), list(c("fit", "lwr", "upr"))))
  }
  if (length(dim(fit)) < 3L) fit <- pad(fit)
  if (!se.fit) return(fit)
  list(fit = fit, se.fit = pad(spread(found$sd)))
}

# The offset at new points.
response_offset <- function(object, points, offset, in_sample) {
  if (in_sample) return(object$response$offset)
  n <- nrow(points$x)
  if (is.null(offset)) offset <- points$offset
  if (is.null(offset)) {
    if (any(object$response$offset != 0) && is.null(object$terms)) {
      abort_argument("offset", "the fit has an offset: supply that of the new points")
    }
    offset <- 0
  }
  if (is_categorical(object$family)) {
    classes <- length(object$response$levels)
    if (identical(offset, 0)) return(matrix(0, n, classes))
    return(check_offset(offset, n, classes))
  }
  if (!is.numeric(offset) || !length(offset) %in% c(1L, n)) {
    abort_argument("offset", sprintf("'offset' must be a vector of %d finite numbers", n))
  }
  rep_len(as.vector(offset), n)
}

new_trials <- function(object, trials, in_sample, n, rows) {
  if (!family_row(object$family)$trials) return(NULL)
  if (is.null(trials) && in_sample) return(object$response$trials)
  if (is.null(trials)) abort_argument("trials", "'trials' of the new observations are needed")
  rep_len(check_numeric(trials, "trials"), n)[rows]
}

class_labels <- function(response) {
  if (is.null(response$levels)) c("0", "1") else response$levels
}

# The process at the complete points, for each draw: list(mean (m x d), variance (m or m x d x d),
# aux).
latent_parts <- function(object, points, what, draws) {
  rows <- points$complete
  x <- unname(points$x[rows, , drop = FALSE])
  basis <- mean_basis(object$trend, if (!is.null(points$h)) points$h[rows, , drop = FALSE])
  centre <- mean_centre(object$trend, nrow(x), basis)
  par <- gp_draws(object, draws)
  lapply(seq_len(nrow(par)), function(i) {
    one <- if (is.null(object$draws)) object else at_draw(object, par, i)
    state <- if (is.null(object$draws)) gp_state(one) else drawn_state(one)
    part <- state$predict(x, what, basis)
    part$mean <- as.matrix(part$mean + centre)
    part$aux <- one$aux
    part
  })
}

# The quantities q (a matrix with a row for each point) of the latent values f (m x d) and the
# family's further parameters.
response_scale <- function(object, f, offset, aux, plain) {
  family <- object$family
  row <- family_row(family)
  if (row$categorical) {
    return(class_probabilities(family, tcrossprod(f, object$response$contrasts) + offset))
  }
  eta <- f[, 1L] + offset
  if (row$ordered) {
    return(matrix(class_probabilities(family, eta, response_cuts(aux)), length(eta)))
  }
  if (row$read == "binary" && !plain) return(cbind(row$inverse(-eta), row$inverse(eta)))
  matrix(row$inverse(eta))
}

# Points and weights of a standard normal distribution of d variables.
normal_nodes <- function(d) {
  if (d == 1L) {
    z <- seq(-9, 9, length.out = 225L)
    w <- exp(-z^2 / 2)
    return(list(z = matrix(z), w = w / sum(w)))
  }
  z <- stats::qnorm(even_points(512L, d))
  list(z = rbind(z, -z), w = rep(1 / 1024, 1024L))
}

# Calls each(f, aux, weight) at all nodes of all draws.
over_nodes <- function(parts, d, each) {
  nodes <- normal_nodes(d)
  for (part in parts) {
    root <- small_roots(if (d == 1L) pmax(part$variance, 0) else part$variance, d)
    for (j in seq_along(nodes$w)) {
      step <- vapply(seq_len(d), function(a) {
        as.vector(matrix(root[, a, ], ncol = d) %*% nodes$z[j, ])
      }, numeric(nrow(part$mean)))
      each(part$mean + matrix(step, ncol = d), part$aux, nodes$w[j] / length(parts))
    }
  }
}

expectations <- function(parts, d, scale) {
  mean <- 0
  square <- 0
  over_nodes(parts, d, function(f, aux, w) {
    q <- scale(f, aux)
    mean <<- mean + w * q
    square <<- square + w * q^2
  })
  list(mean = mean, sd = sqrt(pmax(square - mean^2, 0)))
}

# Quantiles of each quantity.
scale_quantile <- function(parts, d, scale, p) {
  values <- list()
  weights <- numeric()
  over_nodes(parts, d, function(f, aux, w) {
    if (w < 1e-12) return()
    values[[length(values) + 1L]] <<- scale(f, aux)
    weights[length(weights) + 1L] <<- w
  })
  all <- array(unlist(values), c(dim(values[[1L]]), length(values)))
  apply(all, 1:2, function(v) {
    at <- order(v)
    mass <- cumsum(weights[at]) - weights[at] / 2
    stats::approx(mass / sum(weights), v[at], p, rule = 2, ties = "ordered")$y
  })
}

# Quantiles of a new observation, by bisection of its distribution function.
new_quantile <- function(object, parts, offset, trials, p) {
  row <- family_row(object$family)
  whole <- row$whole
  below <- function(q) {
    total <- 0
    over_nodes(parts, 1L, function(f, aux, w) {
      if (w < 1e-12) return()
      total <<- total + w * row$probability(q, row$inverse(f[, 1L] + offset), aux, trials)
    })
    total
  }
  m <- nrow(parts[[1L]]$mean)
  if (m == 0L) return(numeric())
  size <- max(vapply(parts, function(part) {
    max(abs(part$mean + offset)) + 10 * sqrt(max(part$variance))
  }, 0))
  high <- rep(if (whole) 1 else size, m)
  low <- if (whole) rep(-1, m) else -high
  repeat {
    short <- below(high) < p
    if (!whole) short <- short | below(low) > p
    if (!any(short) || max(high) > 1e15) break
    high[short] <- 2 * high[short]
    if (!whole) low[short] <- 2 * low[short]
  }
  for (i in 1:60) {
    if (all(high - low <= if (whole) 1 else 1e-9 * (1 + abs(high)))) break
    middle <- (low + high) / 2
    if (whole) middle <- floor(middle)
    right <- below(middle) >= p
    high[right] <- middle[right]
    low[!right] <- middle[!right]
  }
  high
}

# Mean and standard deviation of the predictors of classes.
link_moments <- function(parts, h, points, rows) {
  centre <- lapply(parts, function(part) tcrossprod(part$mean, h))
  mean <- Reduce(`+`, centre) / length(parts)
  sd <- NULL
  if (!is.null(parts[[1L]]$variance)) {
    own <- lapply(parts, function(part) {
      v <- matrix(part$variance, nrow(part$mean))
      vapply(seq_len(nrow(h)), function(c) drop(v %*% as.vector(outer(h[c, ], h[c, ]))),
             numeric(nrow(v)))
    })
    off <- lapply(centre, function(one) (one - mean)^2)
    sd <- sqrt(pmax((Reduce(`+`, own) + Reduce(`+`, off)) / length(parts), 0))
  }
  list(mean = mean + points$offset[rows, , drop = FALSE], sd = sd)
}
