# Design and optimisation by Gaussian processes: where the next observation is most informative.

#' Where to observe next
#'
#' Chooses the next points of an expensive experiment: those at which a fitted process promises the
#' best value, or at which an observation lowers the uncertainty most.
#'
#' With the mean m(x) and the standard deviation s(x) of the process, as [predict()][predict.cl_gp]
#' gives them, the lowest mean b at an observed point, and z = (b - m) / s, the criteria are
#'
#' | type | criterion, larger is better |
#' |---|---|
#' | `"ei"` | expected improvement (b - m) pnorm(z) + s dnorm(z) (Jones, Schonlau and Welch, 1998) |
#' | `"bound"` | kappa s - m: minus the lower confidence bound |
#' | `"variance"` | the decrease of the mean of s^2 at `at` by an observation at x |
#'
#' With `maximise = TRUE` m and b change their signs, so that b is the largest mean and `"bound"`
#' the upper confidence bound. s includes the uncertainty of estimated coefficients of the mean
#' (universal kriging).
#'
#' The search evaluates the criterion at points spread over the box and follows its gradient from
#' the best of them. Several points are chosen one after the other: each is added to the data with
#' the mean of the process in place of its observation (`"believer"`), or with the best value so far
#' (`"liar"`; Ginsbourger, Le Riche and Carraro, 2010). A point is chosen only where observations at
#' the earlier ones would leave an observation a tenth of its standard deviation: without noise
#' points lie apart, with noise a point can be chosen again, that is, its observation repeated.
#' Parameters do not change. No random numbers are used.
#'
#' @param object A fit of [cl_gp()] with numeric inputs, by method `"ml"`, `"map"` or `"loo"`.
#' @param lower,upper Bounds of the inputs: numbers in the order of the columns of x. By default the
#'   ranges of the data.
#' @param type The criterion, see below.
#' @param maximise Whether large values of y are sought.
#' @param count How many points to choose.
#' @param batch How several points are chosen, see below.
#' @param kappa The number of standard deviations of `"bound"`.
#' @param at For `"variance"`: points, a matrix or data frame; by default 200 points spread over the
#'   box.
#' @param constraint A function that gets points, a matrix with the columns of x, and returns for
#'   each whether it is allowed.
#' @param starts The number of searches for each point.
#' @return `cl_acquire()`: a list of class `"cl_acquire"` with the elements `points` (a data frame,
#'   as `newdata` of [predict()][predict.cl_gp]), `value` (the criterion at each when it was
#'   chosen), `best` (b), `criterion` (the function for the first point), `type`, `maximise`,
#'   `lower` and `upper`; with methods for [print()] and [plot()].
#'
#'   `cl_acquisition()`: a function of points, a matrix or data frame, that returns the criterion at
#'   each, with its derivatives with respect to the columns as attribute `"gradient"`.
#' @section Errors:
#' `statcl_error_argument` for a fit that is not of the above kind (also with `approx`, `family`,
#' factors, [k_user()], or functions of variables in its formula), for bounds that do not match, and
#' if no point that was tried satisfies the constraint.
#' @references
#' Ginsbourger, D., Le Riche, R. and Carraro, L. (2010) Kriging is well-suited to parallelize
#' optimization. In *Computational Intelligence in Expensive Optimization Problems*, Springer,
#' 131-162.
#'
#' Jones, D. R., Schonlau, M. and Welch, W. J. (1998) Efficient global optimization of expensive
#' black-box functions. *Journal of Global Optimization* 13, 455-492.
#' @seealso [cl_gp()]; [update()][update.cl_gp], which adds the new observations
#' @export
#' @examples
#' f <- function(x) x * sin(x)
#' d <- data.frame(x = seq(0, 9, by = 1.5))
#' d$y <- f(d$x)
#' fit <- cl_gp(y ~ x, d, fixed = c(noise = 0), starts = 1)
#' cl_acquire(fit)
#' plot(cl_acquire(fit, count = 2))
#'
#' # Minimise f
#' for (i in 1:3) {
#'   new <- cl_acquire(fit)$points
#'   fit <- update(fit, newdata = transform(new, y = f(x)), refit = TRUE)
#' }
#' fit$x[which.min(fit$y), ]
#'
#' cl_acquire(fit, type = "variance", constraint = function(x) x[, "x"] < 4)
#' cl_acquisition(fit, "bound")(cbind(x = c(2, 6)))
cl_acquire <- function(object, lower = NULL, upper = NULL, type = c("ei", "bound", "variance"),
                       maximise = FALSE, count = 1, batch = c("believer", "liar"), kappa = 2,
                       at = NULL, constraint = NULL, starts = 10) {
  model <- acquire_model(object)
  type <- check_choice(type, c("ei", "bound", "variance"), "type")
  maximise <- check_flag(maximise, "maximise")
  batch <- check_choice(batch, c("believer", "liar"), "batch")
  count <- check_count(count, "count", 1)
  starts <- check_count(starts, "starts", 1, 1000)
  kappa <- check_number(kappa, "kappa", 0)
  lower <- acquire_bound(model, lower, min, "lower")
  upper <- acquire_bound(model, upper, max, "upper")
  if (any(lower >= upper)) abort_argument("lower", "'lower' must be less than 'upper'")
  if (!is.null(constraint) && !is.function(constraint)) {
    abort_argument("constraint", "'constraint' must be a function")
  }
  at <- if (is.null(at)) acquire_box(200L, lower, upper) else acquire_points(model, at, "at")
  first <- model
  points <- matrix(0, count, ncol(model$x), dimnames = list(NULL, names(lower)))
  value <- numeric(count)
  for (i in seq_len(count)) {
    order <- order((if (maximise) -1 else 1) * acquire_fitted(model))
    near <- model$x[utils::head(order, if (type == "variance") 0L else 3L), , drop = FALSE]
    found <- acquire_search(acquire_function(model, type, maximise, kappa, at), lower, upper,
                            constraint, starts, near, if (i > 1L) acquire_left(first, model))
    points[i, ] <- found$at
    value[i] <- found$value
    if (i == count) break
    new <- points[i, , drop = FALSE]
    y <- if (batch == "liar") (if (maximise) max else min)(model$y) else
      acquire_moments(model, new, FALSE)$mean
    model <- acquire_added(model, new, y)
  }
  structure(list(points = as.data.frame(points), value = value,
                 best = acquire_best(first, maximise),
                 criterion = acquire_outer(first, type, maximise, kappa, at), type = type,
                 maximise = maximise, lower = lower, upper = upper, fit = object),
            class = "cl_acquire")
}

#' @rdname cl_acquire
#' @export
cl_acquisition <- function(object, type = c("ei", "bound", "variance"), maximise = FALSE, kappa = 2,
                           at = NULL) {
  model <- acquire_model(object)
  type <- check_choice(type, c("ei", "bound", "variance"), "type")
  at <- if (is.null(at)) acquire_box(200L, apply(model$x, 2L, min), apply(model$x, 2L, max)) else
    acquire_points(model, at, "at")
  acquire_outer(model, type, check_flag(maximise, "maximise"), check_number(kappa, "kappa", 0), at)
}

# ---- the process with its factor, to which points are added --------------------------------------

# list(object, x, kernel, y, centre, h (basis of the mean, or NULL), noise (variances), root (upper
# factor of C)) and the elements that acquire_settled() adds.
acquire_model <- function(object) {
  if (!inherits(object, "cl_gp")) {
    abort_argument("object", sprintf("'object' must be a fit of cl_gp(), not %s", describe(object)))
  }
  x <- object$x
  plain <- is.null(object$response) && is.null(object$vecchia) && is.null(object$draws) &&
    length(object$coded) == 0L && !has_user(object$kernel) &&
    (is.null(object$terms) || identical(colnames(x), names(object$variables))) &&
    all(all.vars(object$trend$formula) %in% c(colnames(x), "pi"))
  if (!plain) {
    abort_argument("object", paste("'object' must be an exact fit of normal observations by",
                                   "\"ml\", \"map\" or \"loo\", with numeric inputs that its",
                                   "formula uses as they are"))
  }
  white <- white_variance(object$kernel, x)
  model <- list(object = object, x = x, kernel = object$kernel, y = object$y,
                centre = object$trend$centre, noise = gp_noise(object),
                h = if (object$trend$kind == "constant") matrix(1, nrow(x), 1L) else
                  object$trend$basis)
  c <- as.matrix(cl_cov(x, kernel = model$kernel))
  diag(c) <- diag(c) + model$noise - white
  model$root <- as.matrix(cl_chol(c))
  acquire_settled(model)
}

# With b, the mean's coefficients by h; weights, C^-1 (y - centre - h b); inner (upper factor of h'
# C^-1 h); half, R'^-1 h; solved, C^-1 h.
acquire_settled <- function(model) {
  half_y <- backsolve(model$root, model$y - model$centre, transpose = TRUE)
  if (!is.null(model$h)) {
    model$half <- backsolve(model$root, model$h, transpose = TRUE)
    model$inner <- chol(crossprod(model$half))
    model$b <- backsolve(model$inner, backsolve(model$inner, crossprod(model$half, half_y),
                                                transpose = TRUE))
    half_y <- half_y - model$half %*% model$b
    model$solved <- backsolve(model$root, model$half)
  }
  model$weights <- as.vector(backsolve(model$root, half_y))
  model
}

# The model with the observation y at the point x. Near another point the variance may be zero up to
# rounding: at least 1e-12 of the prior variance is kept, which suffices for a batch.
acquire_added <- function(model, x, y) {
  prior <- kernel_variance(model$kernel, x)
  noise <- new_noise(model$object, x)
  k <- cl_cov(x, model$x, model$kernel) # its errors keep their class
  cross <- backsolve(model$root, t(k), transpose = TRUE)
  rest <- max(prior + noise - sum(cross^2), 1e-12 * prior)
  model$root <- rbind(cbind(model$root, cross), c(rep(0, nrow(model$x)), sqrt(rest)))
  h <- acquire_basis(model, x)
  model$centre <- c(model$centre, mean_centre(model$object$trend, 1L, h))
  model$h <- rbind(model$h, h)
  model$x <- rbind(model$x, x, deparse.level = 0)
  model$y <- c(model$y, y)
  model$noise <- c(model$noise, noise)
  acquire_settled(model)
}

# Rows of the basis of the mean at points; NULL for a known mean.
acquire_basis <- function(model, x) {
  trend <- model$object$trend
  if (trend$kind == "number") return(NULL)
  if (trend$kind == "constant") return(matrix(1, nrow(x), 1L))
  mean_basis(trend, gp_points(model$object, if (is.null(colnames(x))) x else as.data.frame(x))$h)
}

# A matrix for each column of x: the derivatives of the basis, by differences, which take little
# time.
acquire_basis_slopes <- function(model, x) {
  lapply(seq_len(ncol(x)), function(j) {
    step <- 1e-3 * max(diff(range(model$x[, j])), 1e-300)
    slope_by_differences(function(by) {
      x[, j] <- x[, j] + by
      acquire_basis(model, x)
    }, step)
  })
}

# For points: mean, variance, half (R'^-1 k), rest (inner'^-1 r), and with `gradient` by_mean,
# by_variance, slopes (of the basis). With the covariances k with the data and r = h - H' C^-1 k,
# the variance is c - k' C^-1 k + r' A^-1 r; its derivative is 2 (A^-1 r)' dh - 2 w' dk + dc, w =
# C^-1 k + C^-1 H A^-1 r.
acquire_moments <- function(model, x, gradient = TRUE) {
  k <- cl_cov(x, model$x, model$kernel)
  half <- backsolve(model$root, t(k), transpose = TRUE)
  variance <- kernel_variance(model$kernel, x) - colSums(half^2)
  q <- acquire_basis(model, x)
  mean <- mean_centre(model$object$trend, nrow(x), q) + as.vector(k %*% model$weights)
  found <- list(half = half)
  w <- if (gradient) backsolve(model$root, half)
  if (!is.null(q)) {
    mean <- mean + as.vector(q %*% model$b)
    found$rest <- backsolve(model$inner, t(q) - crossprod(model$half, half), transpose = TRUE)
    variance <- variance + colSums(found$rest^2)
  }
  found$mean <- mean
  found$variance <- pmax(variance, 0)
  if (!gradient) return(found)
  by_mean <- acquire_slope(model, matrix(model$weights, nrow(x), nrow(model$x), byrow = TRUE), x)
  if (!is.null(q)) {
    found$slopes <- acquire_basis_slopes(model, x)
    along <- backsolve(model$inner, found$rest)
    w <- w + model$solved %*% along
    whole <- as.vector(model$b) + model$object$trend$shift # a constant has slope 0
    by_mean <- by_mean + acquire_along(found$slopes, matrix(whole, nrow(x), ncol(q), byrow = TRUE))
  }
  by_variance <- -2 * acquire_slope(model, t(w), x) + acquire_own_slope(model, x)
  if (!is.null(q)) by_variance <- by_variance + 2 * acquire_along(found$slopes, t(along))
  found$by_mean <- by_mean
  found$by_variance <- by_variance
  found
}

# Rows of sum(w * dk): derivatives with respect to x, for k between x and `others`.
acquire_slope <- function(model, w, x, others = model$x) {
  unname(as.matrix(cl_cov_adjoint(w, x, others, model$kernel, inputs = TRUE)$x1))
}

# Derivatives of the prior variance, which depends on x in linear terms only.
acquire_own_slope <- function(model, x) {
  types <- vapply(model$kernel$terms, `[[`, "", "type")
  if (!"linear" %in% types) return(0)
  unname(as.matrix(cl_cov_adjoint(diag(nrow(x)), x, kernel = model$kernel, inputs = TRUE)$x1))
}

acquire_along <- function(slopes, w) vapply(slopes, function(d) rowSums(d * w), numeric(nrow(w)))

# ---- criteria ------------------------------------------------------------------------------------

# function(x): the variance of an observation in `model`, which has points that were chosen, divided
# by that in `first`, which has none.
acquire_left <- function(first, model) {
  variance <- function(model, x) {
    acquire_moments(model, x, FALSE)$variance + new_noise(model$object, x)
  }
  function(x) variance(model, x) / pmax(variance(first, x), 1e-300)
}

# The best mean at an observed point.
acquire_best <- function(model, maximise) {
  (if (maximise) max else min)(acquire_fitted(model))
}

acquire_fitted <- function(model) model$y - model$noise * model$weights

# function(x, gradient) for a few points: list(value, gradient); with log = TRUE those of the
# logarithm of a positive criterion, which is finite where the criterion underflows.
acquire_function <- function(model, type, maximise, kappa, at) {
  sign <- if (maximise) -1 else 1
  best <- sign * acquire_best(model, maximise)
  if (type == "variance") return(acquire_decrease(model, at))
  function(x, gradient = TRUE, log = FALSE) {
    found <- acquire_moments(model, x, gradient)
    m <- sign * found$mean
    s <- sqrt(found$variance)
    if (gradient) by_s <- ifelse(s > 0, 1 / (2 * s), 0) * found$by_variance
    if (type == "bound") {
      return(list(value = kappa * s - m,
                  gradient = if (gradient) kappa * by_s - sign * found$by_mean))
    }
    z <- (best - m) / s
    h <- acquire_log_gain(z)
    none <- s == 0
    value <- ifelse(none, log(pmax(best - m, 0)), log(s) + h)
    by <- if (gradient) {
      on_mean <- ifelse(none, 0, exp(stats::pnorm(z, log.p = TRUE) - h) / s)
      on_s <- ifelse(none, 0, exp(stats::dnorm(z, log = TRUE) - h) / s)
      on_s * by_s - on_mean * sign * found$by_mean
    }
    if (log) list(value = value, gradient = by) else
      list(value = exp(value), gradient = if (gradient) exp(value) * by)
  }
}

# log(z pnorm(z) + dnorm(z)), far into the lower tail by the asymptotic series.
acquire_log_gain <- function(z) {
  far <- !is.na(z) & z < -30
  near <- log1p(pmax(z * exp(stats::pnorm(z, log.p = TRUE) - stats::dnorm(z, log = TRUE)), -1))
  up <- !is.na(z) & z > 1
  near[up] <- log(z[up] * stats::pnorm(z[up]) + stats::dnorm(z[up])) -
    stats::dnorm(z[up], log = TRUE)
  v <- 1 / z[far]^2
  near[far] <- log(v) + log1p(-3 * v * (1 - 5 * v * (1 - 7 * v * (1 - 9 * v))))
  near + stats::dnorm(z, log = TRUE)
}

# The decrease of the mean variance at `at` by an observation at x: the mean of c(x, at)^2 / (s(x)^2
# + noise).
acquire_decrease <- function(model, at) {
  there <- acquire_moments(model, at, FALSE)
  solved <- backsolve(model$root, there$half)
  along <- if (!is.null(model$h)) backsolve(model$inner, there$rest)
  function(x, gradient = TRUE, log = FALSE) {
    found <- acquire_moments(model, x, gradient)
    c <- cl_cov(x, at, model$kernel) - crossprod(found$half, there$half)
    if (!is.null(along)) c <- c + crossprod(found$rest, there$rest)
    total <- found$variance + new_noise(model$object, x)
    # at an observation without noise both are rounding errors, and there is no information
    total[total < 1e-10 * kernel_variance(model$kernel, x)] <- 0
    value <- ifelse(total > 0, rowMeans(c^2) / total, 0)
    by <- if (gradient) {
      c <- 2 / nrow(at) * c
      w <- -tcrossprod(c, solved)
      by <- acquire_slope(model, c, x, at)
      if (!is.null(along)) {
        on_basis <- tcrossprod(c, along)
        w <- w - tcrossprod(on_basis, model$solved)
        by <- by + acquire_along(found$slopes, on_basis)
      }
      ifelse(total > 0, 1 / total, 0) * (by + acquire_slope(model, w, x) -
                                           value * found$by_variance)
    }
    if (log) list(value = log(value), gradient = by / value) else list(value = value, gradient = by)
  }
}

# The criterion for users: any number of points, in blocks.
acquire_outer <- function(model, type, maximise, kappa, at) {
  f <- acquire_function(model, type, maximise, kappa, at)
  function(x) {
    x <- acquire_points(model, x, "x")
    rows <- split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 256L)
    parts <- lapply(rows, function(i) f(x[i, , drop = FALSE]))
    by <- do.call(rbind, lapply(parts, `[[`, "gradient"))
    if (is.null(by)) by <- matrix(0, 0L, ncol(x))
    structure(as.numeric(unlist(lapply(parts, `[[`, "value"), use.names = FALSE)),
              gradient = matrix(by, ncol = ncol(x), dimnames = list(NULL, colnames(x))))
  }
}
