# Draws of a fitted Gaussian process.

#' Simulate a Gaussian process
#'
#' Draws from the joint distribution of the process at given points. With `conditional = TRUE` it is
#' conditional on the data; otherwise the draws are from the fitted model without the data, with the
#' fitted coefficients of the mean. With `method = "mcmc"` each draw has its own parameters, taken
#' from up to `draws` posterior draws.
#'
#' The draws are computed with a pivoted Cholesky factor of the covariance matrix of the points,
#' which is semidefinite if points are close to each other; nothing is added to its diagonal.
#' For a fit with `approx = "vecchia"` there is no such matrix, so that the number of points may be
#' large: in a maximin order, each point is drawn given the `neighbours` nearest ones before it. If
#' the draws are conditional, the observations are drawn together with the points, and the
#' prediction of the residuals (data minus drawn observations) is added (Journel and Huijbregts,
#' 1978). For draws with smooth kernels to be stable, neighbours have noise of 1e-10 of their
#' variance.
#'
#' @inheritParams predict.cl_gp
#' @param nsim Number of draws.
#' @param seed As for [simulate()].
#' @param newdata As for [predict()][predict.cl_gp], without missing values.
#' @param conditional Whether to condition on the data.
#' @param noise Whether to draw new observations, with noise, instead of the process.
#' @param draws For a fit with `method = "mcmc"`: the number of posterior draws of the parameters to
#'   use.
#' @return A data frame with one column for each draw, and the attribute `"seed"`.
#' @section Errors:
#' `statcl_error_argument` for `newdata` that [predict()][predict.cl_gp] does not accept, or with
#' missing values.
#' @export
#' @examples
#' fit <- cl_gp(dist ~ speed, data = cars)
#' new <- data.frame(speed = c(5, 15, 25))
#' simulate(fit, 2, seed = 1, newdata = new)
#' simulate(fit, 2, seed = 1, newdata = new, conditional = FALSE)
simulate.cl_gp <- function(object, nsim = 1, seed = NULL, newdata = NULL, conditional = TRUE,
                           noise = FALSE, draws = 50, ...) {
  nsim <- check_count(nsim, "nsim")
  noise <- check_flag(noise, "noise")
  conditional <- check_flag(conditional, "conditional")
  draws <- check_count(draws, "draws", 1)
  points <- gp_points(object, newdata)
  if (!all(points$complete)) abort_argument("newdata", "'newdata' has missing values")
  with_seed(seed, simulate_gp(object, nsim, points, is.null(newdata), conditional, noise, draws))
}

# One column for each simulation. `in_sample`: whether the points are those of the fit.
simulate_gp <- function(object, nsim, points, in_sample, conditional, noise, draws) {
  m <- nrow(points$x)
  values <- matrix(0, m, nsim)
  par <- gp_draws(object, max(1, min(draws, nsim)))
  of <- rep_len(seq_len(nrow(par)), nsim)
  for (i in unique(of)) {
    one <- if (is.null(object$draws)) object else at_draw(object, par, i)
    columns <- which(of == i)
    values[, columns] <- if (is.null(object$vecchia)) {
      joint <- if (conditional) conditional_joint(one, points) else prior_joint(one, points)
      root <- covariance_root(joint$covariance)
      joint$mean + crossprod(root, matrix(stats::rnorm(nrow(root) * length(columns)), nrow(root)))
    } else {
      vecchia_draws(one, points, length(columns), conditional)
    }
    if (noise) {
      sd <- sqrt(if (in_sample) gp_noise(one) else new_noise(one, points$x))
      values[, columns] <- values[, columns] + sd * stats::rnorm(m * length(columns))
    }
  }
  colnames(values) <- if (nsim > 0) paste0("sim_", seq_len(nsim))
  as.data.frame(values, row.names = rownames(points$x))
}

conditional_joint <- function(object, points) {
  state <- if (is.null(object$draws)) gp_state(object) else drawn_state(object)
  predict_one(object, state, points$x, points$h, "covariance", FALSE)
}

# Draws of a fit by Vecchia's approximation, which new points share.
vecchia_draws <- function(object, points, count, conditional) {
  q <- mean_basis(object$trend, points$h)
  drawn <- gp_state(object)$simulate(unname(points$x), count, q, conditional)
  drawn + if (conditional) mean_centre(object$trend, nrow(points$x), q) else
    prior_mean(object, points)
}

prior_mean <- function(object, points) {
  if (is.null(points$h)) rep(object$mean, nrow(points$x)) else
    drop(points$h %*% object$coefficients[object$trend$names])
}

prior_joint <- function(object, points) {
  x <- fit_columns(object, points$x)
  covariance <- cl_cov(x, kernel = object$kernel)
  white <- white_variance(object$kernel, x)
  if (length(white) > 1L || white > 0) diag(covariance) <- diag(covariance) - white
  list(mean = prior_mean(object, points), covariance = covariance)
}

# R with R' R = s, for s that is positive semidefinite up to rounding. Rows of R beyond the rank are
# omitted.
covariance_root <- function(s) {
  if (nrow(s) == 0L) return(s)
  if (!any(diag(s) > 0)) return(matrix(0, 1L, ncol(s)))
  root <- suppressWarnings(chol(s, pivot = TRUE)) # warns of the rank
  root[seq_len(attr(root, "rank")), order(attr(root, "pivot")), drop = FALSE]
}
