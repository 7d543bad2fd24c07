# Predictions of a fitted Gaussian process, draws from it, and its picture.

#' Predictions of a Gaussian process
#'
#' `predict()` gives the mean of the process at new points, and its uncertainty given the data and
#' the fitted parameters (Rasmussen and Williams, 2006, equations 2.25, 2.26 and 2.41):
#' \deqn{m + k_*^T C^{-1} (y - m), \qquad k_{**} - k_*^T C^{-1} k_* + \frac{(1 - 1^T C^{-1}
#'   k_*)^2}{1^T C^{-1} 1},}{mean m + k*' C^-1 (y - m), variance k** - k*' C^-1 k* + (1 - 1' C^-1
#'   k*)^2 / (1' C^-1 1),}
#' where the last term, for the estimated mean, is left out if the mean was fixed. The uncertainty
#' of the other parameters is not part of it. A confidence interval is for the process itself, a
#' prediction interval for a new observation with its noise.
#'
#' `simulate()` draws from the joint distribution of the process at the points, given the data;
#' `plot()` shows mean, 95% intervals and data if the model has a single input variable, else
#' the observations against the fitted values.
#'
#' New points are worked on in blocks, so that any number of them fits into memory. Each call
#' factors the covariance matrix of the data anew, on the engine that [cl_gp_likelihood()]
#' describes.
#'
#' @param object,x a fit of [cl_gp()].
#' @param newdata a data frame with the variables of the formula, or for a fit without formula a
#'   matrix with its columns. Default: the data of the fit. Rows with missing values give `NA`.
#' @param se.fit whether standard errors (of the process) are wanted.
#' @param interval,level kind and level of the interval.
#' @param block how many new points to work on at a time.
#' @param nsim number of draws.
#' @param seed as for [simulate()].
#' @param noise whether the draws are of new observations, with noise, instead of the process.
#' @param n number of points of the curve.
#' @param xlim range of the input that is drawn: wider than the data, it shows a forecast.
#' @param xlab,ylab,main,col,pch,cex,las as for [plot.default()]; `col` is the colour of the curve.
#' @param legend where the legend goes (see [legend()]); `"auto"` for the emptiest corner, `NULL`
#'   for none.
#' @param ... for `plot()`: more for [plot.default()]; else not used.
#' @return `predict()`: a vector, or with an interval a matrix with columns `fit`, `lwr`, `upr`;
#'   with `se.fit` a list of this `fit`, `se.fit` and `residual.scale` (the noise's standard
#'   deviation), as for [predict.lm()]. `simulate()`: a data frame with a column for each draw.
#'   `plot()`: the data of the curve, invisibly.
#' @section Errors:
#' `statcl_error_argument` for `newdata` without a variable of the model or with other columns.
#' @name predict.cl_gp
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars, starts = 1)
#' new <- data.frame(speed = c(5, 15, 25))
#' predict(fit, new, se.fit = TRUE)
#' predict(fit, new, interval = "prediction")
#' simulate(fit, 2, seed = 1, newdata = new)
#' plot(fit, xlim = c(0, 40))
NULL

#' @rdname predict.cl_gp
#' @export
predict.cl_gp <- function(object, newdata, se.fit = FALSE,
                          interval = c("none", "confidence", "prediction"), level = 0.95,
                          block = 2048, ...) {
  interval <- check_choice(interval, c("none", "confidence", "prediction"), "interval")
  se.fit <- check_flag(se.fit, "se.fit")
  level <- check_number(level, "level", 0, 1)
  block <- check_count(block, "block", 1)
  own <- missing(newdata)
  at <- gp_points(object, if (own) NULL else newdata)
  spread <- se.fit || interval != "none"
  result <- predict_points(object, at, if (spread) "variance" else "mean", block)
  fit <- result$mean
  if (interval != "none") {
    noise <- if (interval == "prediction") object$noise^2 else 0
    half <- stats::qnorm((1 + level) / 2) * sqrt(result$variance + noise)
    fit <- cbind(fit = fit, lwr = fit - half, upr = fit + half)
  }
  pad <- function(v) if (own) stats::napredict(object$na.action, v) else v
  if (!se.fit) return(pad(fit))
  list(fit = pad(fit), se.fit = pad(sqrt(result$variance)), residual.scale = object$noise)
}

# Mean and variance (not negative) at the rows of `at`, named after them; NA for rows with NA.
predict_points <- function(object, at, what, block = 2048) {
  empty <- stats::setNames(rep(NA_real_, nrow(at)), rownames(at))
  result <- list(mean = empty, variance = if (what == "variance") empty)
  rows <- which(stats::complete.cases(at))
  if (length(rows) == 0L) return(result)
  state <- condition_gp(object$y, object$x, object$kernel, object$noise, gp_mean(object))
  for (first in seq(1L, length(rows), by = block)) {
    some <- rows[first:min(first + block - 1L, length(rows))]
    part <- state$predict(unname(at[some, , drop = FALSE]), what)
    result$mean[some] <- part$mean
    if (what == "variance") result$variance[some] <- pmax(part$variance, 0)
  }
  result
}

# The mean as C takes it.
gp_mean <- function(object) if (object$mean_estimated) NA_real_ else object$mean

# The points of `newdata` as the model's columns; with NULL those of the fit.
gp_points <- function(object, newdata) {
  if (is.null(newdata)) return(object$x)
  if (is.null(object$terms)) {
    at <- covariance_input(if (is_cl(newdata)) as.matrix(newdata) else newdata, "newdata",
                           ncol(object$x))
    return(structure(at$x, dimnames = list(at$names, at$columns)))
  }
  terms <- stats::delete.response(object$terms)
  if (!is.data.frame(newdata)) {
    abort_argument("newdata", sprintf("'newdata' must be a data frame, not %s", describe(newdata)))
  }
  lacking <- setdiff(all.vars(terms), names(newdata))
  lacking <- lacking[!vapply(lacking, exists, NA, envir = environment(terms))]
  if (length(lacking) > 0L) {
    abort_argument("newdata", sprintf("'newdata' has no variable '%s'", lacking[1L]))
  }
  frame <- tryCatch({
    frame <- stats::model.frame(terms, newdata, na.action = stats::na.pass, xlev = object$xlevels)
    stats::.checkMFClasses(attr(terms, "dataClasses"), frame)
    frame
  }, error = function(e) abort_argument("newdata", conditionMessage(e), call = user_call()))
  if (nrow(frame) != nrow(newdata)) {
    abort_argument("newdata", "a variable of the model is not in 'newdata'")
  }
  model_inputs(terms, frame)
}

#' @rdname predict.cl_gp
#' @export
simulate.cl_gp <- function(object, nsim = 1, seed = NULL, newdata = NULL, noise = FALSE, ...) {
  nsim <- check_count(nsim, "nsim")
  noise <- check_flag(noise, "noise")
  if (!exists(".Random.seed", envir = .GlobalEnv, inherits = FALSE)) stats::runif(1)
  if (is.null(seed)) {
    state <- get(".Random.seed", envir = .GlobalEnv)
  } else {
    kept <- get(".Random.seed", envir = .GlobalEnv)
    on.exit(assign(".Random.seed", kept, envir = .GlobalEnv))
    set.seed(seed)
    state <- structure(seed, kind = as.list(RNGkind()))
  }
  at <- gp_points(object, newdata)
  if (anyNA(at)) abort_argument("newdata", "'newdata' has missing values")
  process <- condition_gp(object$y, object$x, object$kernel, object$noise, gp_mean(object))
  joint <- process$predict(unname(at), "covariance")
  draws <- joint$mean + covariance_root(joint$covariance) %*%
    matrix(stats::rnorm(nrow(at) * nsim), nrow(at))
  if (noise) draws <- draws + object$noise * stats::rnorm(length(draws))
  colnames(draws) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
  draws <- as.data.frame(draws, row.names = rownames(at))
  attr(draws, "seed") <- state
  draws
}

# A root R with R R' = s, for s that is positive semidefinite up to rounding.
covariance_root <- function(s) {
  if (nrow(s) == 0L) return(s)
  e <- eigen(s, symmetric = TRUE)
  e$vectors %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
}

#' @rdname predict.cl_gp
#' @export
plot.cl_gp <- function(x, n = 400, xlim = NULL, xlab = NULL, ylab = NULL, main = NULL,
                       col = "#0072B2", pch = 16, cex = 0.6, las = 1, legend = "auto", ...) {
  if (is.null(ylab)) ylab <- if (is.null(x$terms)) "y" else deparse1_line(x$terms[[2L]])
  variable <- single_variable(x)
  if (is.null(variable)) {
    fitted <- x$fitted.values
    graphics::plot(fitted, x$y, xlab = if (is.null(xlab)) "fitted" else xlab, ylab = ylab,
                   main = main, pch = pch, cex = cex, las = las, col = "grey30", ...)
    graphics::abline(0, 1, col = col, lwd = 2)
    return(invisible(data.frame(fitted = fitted, y = x$y)))
  }
  if (is.null(xlim)) xlim <- range(variable$values)
  grid <- seq(xlim[1L], xlim[2L], length.out = check_count(n, "n", 2))
  at <- variable$points(grid)
  mean <- predict_points(x, at, "variance")
  half <- stats::qnorm(0.975) * sqrt(cbind(mean$variance, mean$variance + x$noise^2))
  curve <- data.frame(x = grid, fit = mean$mean, lwr = mean$mean - half[, 1L],
                      upr = mean$mean + half[, 1L], lwr_new = mean$mean - half[, 2L],
                      upr_new = mean$mean + half[, 2L], row.names = NULL)
  inside <- variable$values >= xlim[1L] & variable$values <= xlim[2L]
  graphics::plot(xlim, range(curve$lwr_new, curve$upr_new, x$y[inside]), type = "n",
                 xlab = if (is.null(xlab)) variable$name else xlab, ylab = ylab, main = main,
                 las = las, ...)
  draw_curve(curve, col)
  graphics::points(variable$values[inside], x$y[inside], pch = pch, cex = cex,
                   col = point_colour())
  if (identical(legend, "auto")) legend <- empty_corner(curve, variable$values, x$y)
  if (!is.null(legend)) draw_legend(legend, col, pch, cex)
  graphics::box()
  invisible(curve)
}

draw_curve <- function(curve, col) {
  band <- function(lower, upper, alpha) {
    graphics::polygon(c(curve$x, rev(curve$x)), c(lower, rev(upper)), border = NA,
                      col = grDevices::adjustcolor(col, alpha))
  }
  band(curve$lwr_new, curve$upr_new, 0.15)
  band(curve$lwr, curve$upr, 0.30)
  graphics::lines(curve$x, curve$fit, col = col, lwd = 2)
}

point_colour <- function() grDevices::adjustcolor("black", 0.65)

draw_legend <- function(where, col, pch, cex) {
  graphics::legend(
    where, c("observations", "mean", "95% confidence", "95% prediction"), bty = "n",
    pch = c(pch, NA, 15, 15), pt.cex = c(cex, NA, 2, 2), lty = c(NA, 1, NA, NA), lwd = 2,
    col = c(point_colour(), col, grDevices::adjustcolor(col, 0.45),
            grDevices::adjustcolor(col, 0.15)))
}

# The corner of the plot, a third of it each way, that holds least of the curve and the points.
empty_corner <- function(curve, x, y) {
  usr <- graphics::par("usr")
  across <- c((curve$x - usr[1L]) / (usr[2L] - usr[1L]), (x - usr[1L]) / (usr[2L] - usr[1L]))
  scaled <- function(v) (v - usr[3L]) / (usr[4L] - usr[3L])
  top <- scaled(c(curve$upr_new, y))
  bottom <- scaled(c(curve$lwr_new, y))
  left <- across < 0.35
  right <- across > 0.65
  filled <- c(topleft = sum(pmax(top[left] - 0.65, 0)), topright = sum(pmax(top[right] - 0.65, 0)),
              bottomleft = sum(pmax(0.35 - bottom[left], 0)),
              bottomright = sum(pmax(0.35 - bottom[right], 0)))
  names(which.min(filled))
}

deparse1_line <- function(x) paste(deparse(x, width.cutoff = 500L), collapse = " ")

# The input, if there is one only: list(name, values, points(grid) for the model's columns). Several
# columns may be made of one variable.
single_variable <- function(object) {
  if (is.null(object$terms)) {
    if (ncol(object$x) != 1L) return(NULL)
    name <- if (is.null(colnames(object$x))) "x" else colnames(object$x)
    return(list(name = name, values = object$x[, 1L], points = function(grid) cbind(grid)))
  }
  inputs <- object$variables
  if (length(inputs) != 1L || !is.numeric(inputs[[1L]])) return(NULL)
  list(name = names(inputs), values = as.vector(inputs[[1L]]), points = function(grid) {
    gp_points(object, stats::setNames(data.frame(grid), names(inputs)))
  })
}
