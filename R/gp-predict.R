# Predictions of a fitted Gaussian process.

#' Predictions from a Gaussian process
#'
#' The mean of the process at new points, and its uncertainty given the data and the fitted
#' parameters (Rasmussen and Williams, 2006, equations 2.25, 2.26 and 2.41): \deqn{h_*^T \beta +
#' k_*^T C^{-1} (y - H \beta), \qquad k_{**} - k_*^T C^{-1} k_* + r^T (H^T C^{-1} H)^{-1} r, \qquad
#' r = h_* - H^T C^{-1} k_*,}{mean h*' b + k*' C^-1 (y - H b), variance k** - k*' C^-1 k* + r' (H'
#' C^-1 H)^-1 r with r = h* - H' C^-1 k*,} where H is the basis of the mean (a column of ones for a
#' constant) and C is the covariance matrix of the data, including noise. For a known mean the last
#' term is zero. The uncertainty of the other parameters is not included, except for a fit with
#' `method = "mcmc"`, whose predictions are a mixture over draws of the parameters. A confidence
#' interval is for the process itself, a prediction interval for a new observation with its noise.
#'
#' New points are processed in blocks, so that any number of them fits into memory; only
#' `covariance = TRUE` allocates a matrix of the size of the result. The first call after a fit was
#' read from a file, or after predictions from many other fits, factors the covariance matrix of the
#' data again, on the engine described for [cl_gp_likelihood()]; later calls reuse the factor.
#'
#' @param object A fit of [cl_gp()].
#' @param newdata A data frame with the variables of the formula, or for a fit without a formula a
#'   matrix or data frame with its columns (by name, if they have names). Default: the data of the
#'   fit. Rows with missing values give `NA`.
#' @param se.fit Whether to return standard errors (of the process).
#' @param interval,level Type and level of the interval.
#' @param covariance Whether to return the covariance matrix of the process at the points.
#' @param part Numbers of summands of the kernel, in the order in which the fit prints them: the
#'   result is for the sum of these processes alone, without the mean. For `k_linear() +
#'   k_periodic()`, `part = 2` is the season. The parts and the mean add up to the prediction.
#' @param gradient Whether to return the derivatives of the mean with respect to the columns of x.
#' @param draws For a fit with `method = "mcmc"`: the number of draws to average over; each takes
#'   one factorisation.
#' @param ... Not used.
#' @return A vector, or with an interval a matrix with columns `fit`, `lwr`, `upr`. With `se.fit`,
#'   `covariance` or `gradient`, a list with elements `fit` (the above) and those requested:
#'   `se.fit` and `residual.scale` (the standard deviation of the noise), as from [predict.lm()];
#'   `covariance`, a matrix with one row and one column for each point; `gradient`, a matrix with
#'   one row for each point and one column for each column of x.
#' @section Errors:
#' `statcl_error_argument` for `newdata` without a variable of the model, with other columns, or
#' with new levels of a factor.
#' @name predict.cl_gp
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars)
#' new <- data.frame(speed = c(5, 15, 25))
#' predict(fit, new, se.fit = TRUE)
#' predict(fit, new, interval = "prediction")
#' predict(fit, new, gradient = TRUE)$gradient
#'
#' # Trend and season
#' air <- data.frame(t = 1:144, y = as.vector(log(AirPassengers)))
#' both <- cl_gp(y ~ t, air, kernel = k_exp_quad() + k_periodic(period = 12), starts = 2)
#' predict(both, air[1:3, ], part = 2, interval = "confidence")
#' plot(both, type = "parts")
predict.cl_gp <- function(object, newdata, se.fit = FALSE,
                          interval = c("none", "confidence", "prediction"), level = 0.95,
                          covariance = FALSE, gradient = FALSE, draws = 50, part = NULL, ...) {
  choices <- c("none", "confidence", "prediction")
  if (is.character(interval) && length(interval) == 1L) {
    found <- pmatch(interval, choices) # as in predict.lm()
    if (!is.na(found)) interval <- choices[found]
  }
  interval <- check_choice(interval, choices, "interval")
  se.fit <- check_flag(se.fit, "se.fit")
  covariance <- check_flag(covariance, "covariance")
  gradient <- check_flag(gradient, "gradient")
  level <- check_number(level, "level", 0, 1)
  draws <- check_count(draws, "draws", 1)
  if (!is.null(part) && (gradient || interval == "prediction")) {
    abort_argument("part", "a part of the process has neither noise nor a gradient here")
  }
  in_sample <- missing(newdata) || is.null(newdata)
  points <- gp_points(object, if (in_sample) NULL else newdata)
  what <- if (covariance) "covariance" else
    if (se.fit || interval != "none") "variance" else "mean"
  result <- predict_points(object, points, what, gradient, draws, part)
  fit <- result$mean
  if (interval != "none") {
    fit <- cbind(fit = fit, gp_interval(result, interval == "prediction", level))
  }
  pad <- function(v) if (in_sample) stats::napredict(object$na.action, v) else v
  if (!se.fit && !covariance && !gradient) return(pad(fit))
  answer <- list(fit = pad(fit))
  if (se.fit) {
    answer$se.fit <- pad(sqrt(result$variance))
    answer$residual.scale <- if (is.null(object$noise_process)) object$noise else
      pad(sqrt(new_noise(object, points$x)))
  }
  if (covariance) answer$covariance <- result$covariance
  if (gradient) answer$gradient <- pad(result$gradient)
  answer
}

# The object with the parameters of draw i of gp_draws().
at_draw <- function(object, par, i) {
  object$row <- as.integer(rownames(par)[i])
  par <- par[i, ]
  object$par <- par
  if (!is.null(object$response)) {
    object$aux <- par[names(object$aux)]
    par <- par[setdiff(names(par), names(object$aux))]
  } else {
    object$noise <- par[["noise"]]
    par <- par[-length(par)]
  }
  object$kernel <- with_parameters(object$kernel, par)
  object
}

# The process given the data, for an object with the parameters of one draw.
drawn_state <- function(object) {
  if (!is.null(object$response)) return(response_draw_state(object))
  gp_condition(gp_function(gp_problem(object)), object$par)
}

# Mean and further requested quantities at points: list(mean, variance, covariance, gradient,
# parts), named after the points; NA for points with NA. `parts` has mean, variance and noise's
# variance by draw, for quantiles of the mixture.
predict_points <- function(object, points, what, gradient = FALSE, draws = 50, part = NULL) {
  chosen_part(object, part) # checks it
  force(points)
  rows <- which(points$complete)
  x <- points$x[rows, , drop = FALSE]
  h <- if (!is.null(points$h)) points$h[rows, , drop = FALSE]
  par <- gp_draws(object, draws)
  whole <- nrow(par) == 1L && (is.null(object$draws) || is.null(object$response))
  parts <- lapply(seq_len(nrow(par)), function(i) {
    one <- if (whole) object else at_draw(object, par, i)
    state <- if (whole) gp_state(one) else drawn_state(one)
    if (!is.null(part)) return(c(predict_part(one, state, x, part, what), noise = list(0)))
    noise <- if (is.null(object$response)) new_noise(one, x) else 0
    c(predict_one(one, state, x, h, what, gradient), noise = list(noise))
  })
  mixed <- mix_parts(parts, what, gradient)
  n <- nrow(points$x)
  names <- rownames(points$x)
  vector <- function(v) {
    if (!is.null(v)) replace(stats::setNames(rep(NA_real_, n), names), rows, v)
  }
  result <- list(mean = vector(mixed$mean), variance = vector(mixed$variance))
  if (what == "covariance") {
    result$covariance <- matrix(NA_real_, n, n, dimnames = list(names, names))
    result$covariance[rows, rows] <- mixed$covariance
  }
  if (gradient) {
    result$gradient <- matrix(NA_real_, n, ncol(points$x),
                              dimnames = list(names, colnames(points$x)))
    result$gradient[rows, ] <- mixed$gradient
  }
  result$rows <- rows
  result$parts <- parts
  result
}

# The same for one parameter vector, without names.
predict_one <- function(object, state, x, h, what, gradient) {
  trend <- object$trend
  q <- mean_basis(trend, h)
  part <- state$predict(unname(x), what, basis = q)
  part$mean <- part$mean + mean_centre(trend, nrow(x), q)
  if (what == "covariance") part$variance <- diag(part$covariance)
  if (!is.null(part$variance)) part$variance <- pmax(part$variance, 0)
  if (gradient) {
    part$gradient <- state$mean_gradient(unname(x))
    if (trend$kind == "formula") {
      abort_argument("gradient", paste("the gradient with respect to x is not available when the",
                                       "mean is a formula"))
    }
    if (trend$kind == "linear") {
      slope <- mean_coefficients(trend, as.vector(state$beta) + trend$shift)[-1L]
      part$gradient <- part$gradient + rep(slope, each = nrow(x))
    }
  }
  part
}

predict_part <- function(object, state, x, part, what) {
  if (is.null(state$part)) abort_argument("part", "parts are not available for this fit")
  found <- state$part(unname(x), chosen_part(object, part), what)
  if (what == "covariance") found$variance <- diag(found$covariance)
  if (!is.null(found$variance)) found$variance <- pmax(found$variance, 0)
  found
}

# Mean and variance of the mixture: the mean of the variances and the variance of the means.
mix_parts <- function(parts, what, gradient) {
  if (length(parts) == 1L) return(parts[[1L]])
  average <- function(name) Reduce(`+`, lapply(parts, `[[`, name)) / length(parts)
  mean <- average("mean")
  off <- matrix(vapply(parts, function(p) p$mean - mean, mean), length(mean))
  mixed <- list(mean = mean)
  if (what != "mean") mixed$variance <- average("variance") + rowSums(off^2) / length(parts)
  if (what == "covariance") {
    mixed$covariance <- average("covariance") + tcrossprod(off) / length(parts)
  }
  if (gradient) mixed$gradient <- average("gradient")
  mixed
}

# Bounds of the interval, a row for each point.
gp_interval <- function(result, with_noise, level) {
  tail <- (1 - level) / 2
  bounds <- matrix(NA_real_, length(result$mean), 2L,
                   dimnames = list(names(result$mean), c("lwr", "upr")))
  if (length(result$rows) == 0L) return(bounds)
  means <- vapply(result$parts, `[[`, numeric(length(result$rows)), "mean")
  sds <- vapply(result$parts, function(p) {
    sqrt(p$variance + if (with_noise) p$noise else 0)
  }, numeric(length(result$rows)))
  dim(means) <- dim(sds) <- c(length(result$rows), length(result$parts))
  bounds[result$rows, 1L] <- mixture_quantile(means, sds, tail)
  bounds[result$rows, 2L] <- mixture_quantile(means, sds, 1 - tail)
  bounds
}

# For each row, the quantile of a mixture of normal distributions with equal weights, by bisection
# between the least and the largest quantile of the components.
mixture_quantile <- function(means, sds, p) {
  q <- means + stats::qnorm(p) * sds
  if (ncol(q) == 1L) return(q[, 1L])
  low <- apply(q, 1L, min)
  high <- apply(q, 1L, max)
  if (!all(is.finite(q))) return(low)
  for (i in 1:60) {
    middle <- (low + high) / 2
    above <- rowMeans(stats::pnorm((middle - means) / sds)) > p
    high[above] <- middle[above]
    low[!above] <- middle[!above]
  }
  (low + high) / 2
}

# ---- new points ----------------------------------------------------------------------------------

# list(x: the model's columns, h: the mean's columns or NULL, complete: which rows have no NA) of
# `newdata`; with NULL those of the fit.
gp_points <- function(object, newdata) {
  kind <- object$trend$kind
  if (is.null(newdata)) {
    h <- if (!is.null(object$trend$basis)) object$trend$basis %*% object$trend$root
    return(list(x = object$x, h = h, complete = rep(TRUE, nrow(object$x))))
  }
  points <- if (is.null(object$terms)) matrix_points(object, newdata) else
    frame_points(object, newdata)
  if (kind == "linear") points$h <- mean_columns(kind, points$x)
  points$complete <- stats::complete.cases(cbind(points$x, points$h))
  points
}

matrix_points <- function(object, newdata) {
  newdata <- named_columns(newdata, colnames(object$x))
  if (is.data.frame(newdata)) newdata <- code_columns(newdata, object$coded, "newdata")
  check_columns_numeric(newdata, "newdata")
  at <- covariance_input(if (is_cl(newdata)) as.matrix(newdata) else newdata, "newdata",
                         ncol(object$x))
  x <- structure(at$x, dimnames = list(at$names, at$columns))
  h <- NULL
  if (object$trend$kind == "formula") {
    colnames(x) <- colnames(object$x)
    learnt <- object$trend$learnt
    h <- mean_columns("formula", x, learnt, mean_frame(learnt, x, object$trend$xlevels))
  }
  list(x = x, h = h)
}

frame_points <- function(object, newdata) {
  design <- object$design
  frame <- new_frame(stats::delete.response(object$terms), newdata, design$xlevels)
  x <- model_inputs(design$terms, frame, design$contrasts, object$coded)
  attr(x, "contrasts") <- NULL
  h <- if (!is.null(design$mean)) {
    mean_columns("formula", x, design$mean, frame, design$mean_contrasts)
  }
  list(x = x, h = h, offset = stats::model.offset(frame))
}
