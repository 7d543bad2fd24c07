# Approximations of a distribution by normal ones on the unconstrained scale: Laplace's, Pathfinder
# and variational inference.

#' Approximate draws from a log density
#'
#' Normal approximations on the unconstrained scale, for the same models as [cl_sample()]: much
#' faster than sampling, and biased. Importance weights show how much; draws are also good starts
#' for [cl_sample()] (`init`).
#'
#' `cl_laplace()`: the normal distribution at the mode, whose covariance matrix is the inverse of
#' the negative Hessian. With `random`, nested Laplace approximations for latent Gaussian models:
#' see below.
#'
#' `cl_pathfinder()`: of the normal approximations along the path of an optimiser, the one that is
#' closest to the target, by the evidence lower bound; several paths from different starts are
#' combined (Zhang, Carpenter, Gelman and Vehtari, 2022, *JMLR* 23(306)). It needs no second
#' derivatives, and suits distributions whose mode is far from their mass.
#'
#' `cl_vi()`: mean-field variational inference, the independent normal distributions that maximise
#' the evidence lower bound, as a deterministic problem with fixed random numbers (Giordano, Ingram
#' and Broderick, 2024, *JMLR* 25(18)). Its standard deviations are too small where parameters are
#' correlated. With `rank`, the covariance matrix is a diagonal one plus one of that rank, for a few
#' strongly correlated combinations of parameters (Ong, Nott and Smith, 2018, *JCGS* 27(3)):
#' `rank + 2` numbers for each parameter are optimised.
#'
#' The importance weight of a draw is the ratio of the target's density to the approximation's. With
#' the package loo, large weights are smoothed (Vehtari, Simpson, Gelman, Yao and Gabry, 2024,
#' *JMLR* 25(72)), and the shape of their tail, Pareto's k, shows how reliable they are: up to 0.7,
#' weighted or resampled draws are good; above it, a warning says that the approximation is poor.
#'
#' @section Latent Gaussian models:
#' With `random`, parameters are of two kinds, as in INLA (Rue, Martino and Chopin, 2009, *JRSS B*
#' 71): those named are a field of many values, the others up to 20 hyperparameters. A field may be
#' a series, the effects of areas or of crossed factors; regression coefficients and an intercept
#' belong to it, too. Its Hessian is sparse, of any pattern, as in [cl_tmb()], whose objects can be
#' given in place of `log_density` and `init`.
#'
#' The field is integrated out by Laplace's approximation. The density of the hyperparameters that
#' results is explored, from its mode, on a grid, for up to two of them, or else on a central
#' composite design, with steps in the eigenvectors of its Hessian there. The marginal distribution
#' of an element of the field is a mixture over the points of the design of skew normal
#' distributions, whose means and skewness are those of the simplified Laplace approximation, by
#' third derivatives (in fields of more than 10,000 values without skewness). With a composite
#' design the coordinates along the eigenvectors are taken to be independent: where the posterior of
#' three or more hyperparameters is curved, as of two standard deviations that explain the same
#' variation, their own standard deviations are too small. [cl_sample()] takes the result as
#' `metric` for a check by chains. `design = "mode"` has the hyperparameters at their mode for the
#' field.
#'
#' The error of Laplace's approximation of the hyperparameters' density is estimated by 4,000 pairs
#' of draws of the field in all, with the same random numbers at all points, and taken out. Where
#' the weights of these draws are too uneven, as in large fields, nothing is taken out.
#'
#' `summary()`, `plot()` and `density()` show these marginal distributions, on the scale of the
#' parameters; elements that are functions of several parameters, such as generated quantities, have
#' those of the draws. Draws are joint: of a point of the design, then of the field from its normal
#' distribution there. Hyperparameters of the draws have their marginal distributions. With
#' [cl_generate()] they give any function of the parameters, such as a linear predictor, and
#' `resample = TRUE` corrects them by their importance weights. The integral of the density is the
#' marginal likelihood, if all constants are kept.
#'
#' The priors of the hyperparameters must be proper. Where the density does not fall off along an
#' axis, such as that of a standard deviation towards zero, the error names it.
#'
#' @param log_density,init,transform,check_gradient,data As for [cl_sample()]. `init` may also be a
#'   result of these functions, or of [cl_optimise()].
#' @param draws Number of draws.
#' @param resample Whether draws are drawn again, with replacement, by their weights.
#' @param paths Number of paths.
#' @param jitter Paths start at `init` plus uniform random numbers between `-jitter` and `jitter`,
#'   on the unconstrained scale.
#' @param history Number of steps from which second derivatives are estimated.
#' @param max_iter Maximum number of iterations of the optimiser.
#' @param samples Number of fixed points at which the bound is computed. `NULL`: 30; with `rank`,
#'   100, or four times `rank` if that is more.
#' @param rank The rank of the part of the covariance matrix that is not diagonal; 0: mean field.
#' @param seed An integer, or `NULL`: the state of R's generator.
#' @param random Names of the parameters of the latent field, see below; `NULL`: none, or those of a
#'   [cl_tmb()].
#' @param design `"grid"` or `"ccd"`, the composite design; `"auto"`: the grid for up to two
#'   hyperparameters; `"mode"`: only their mode.
#' @return An object of classes `"cl_approximation"` and `"cl_sample"`: methods for
#'   [samples][cl_sample-methods] accept it, with one chain. Its elements are `draws`, `log_weights`
#'   (normalised, before resampling), `khat` (Pareto's k, `NA` without loo), `elbo` (the evidence
#'   lower bound; of each path), `method`, `resampled`, `evaluations`, `failures` (the number of
#'   those at points that cannot be evaluated, which have density zero), `elapsed`, `bounds`,
#'   `transform`, `arguments` and `call`. With `random` it has also the class `"cl_latent"`;
#'   Pareto's k is that of the draws of the field given the hyperparameters, there is no `elbo`;
#'   `log_marginal` is the logarithm of the integral of the density, `design` a list with the points
#'   of the design (`theta`, in columns, on the unconstrained scale), their `weight` and, by element
#'   of the field and point, `mean`, `sd` and `skew`, and `precision` the lower triangle of the
#'   negative Hessian at the mode, by `row`, `column` and value `x`.
#' @section Errors:
#' Those of [cl_sample()]; `statcl_error_density` also if there is no approximation: the Hessian at
#' the mode is not negative definite, no path has a finite bound, or the density of the
#' hyperparameters has no mode or no finite integral (the field `parameter` has the name of one
#' along which it does not fall off). `statcl_error_not_pd`, with the field `order`, if the Hessian
#' of the latent field is not positive definite at `init`: the message names an element.
#' `statcl_error_argument` for more than 20 hyperparameters, a field that is too dense (see
#' [cl_tmb()]), and a density that cannot be compiled. The warning `statcl_warning_approximation` if
#' Pareto's k exceeds 0.7 (not with `random`).
#' @seealso [cl_sample()], [cl_optimise()], [cl_generate()]
#' @export
#' @examples
#' f <- cl_gradient(function(mu, sigma) sum(dnorm(mtcars$mpg, mu, sigma, log = TRUE)) - sigma / 5)
#' init <- list(mu = 20, sigma = 5)
#' transform <- list(sigma = cl_lower(0))
#' cl_laplace(f, init, transform, seed = 1)
#' fit <- cl_pathfinder(f, init, transform, seed = 1)
#' fit
#' cl_sample(f, fit, chains = 2, warmup = 100, iter = 100, seed = 1) # with the same transform
#'
#' # Counts with a random walk as their log mean
#' y <- as.numeric(discoveries)
#' g <- cl_gradient(function(sd, x) {
#'   dexp(sd, 5, log = TRUE) + dnorm(x[1], 1, 1, log = TRUE) +
#'     sum(dnorm(x[-1], x[-length(y)], sd, log = TRUE)) + sum(dpois(y, exp(x), log = TRUE))
#' })
#' fit <- cl_laplace(g, list(sd = 0.1, x = rep(1, length(y))), list(sd = cl_lower(0)),
#'                   random = "x", seed = 1)
#' print(fit, rows = 4)
#' plot(fit, c("sd", "x[100]"))
cl_laplace <- function(log_density, init, transform = NULL, draws = 1000, resample = FALSE,
                       seed = NULL, check_gradient = TRUE, data = NULL, random = NULL,
                       design = c("auto", "grid", "ccd", "mode")) {
  call <- sys.call()
  draws <- check_count(draws, "draws", 1)
  log_density <- density_with(log_density, data)
  if (is.null(random)) random <- attr(log_density, "random", exact = TRUE)
  with_model_seed(seed, {
    m <- open_model(log_density, init, transform, check_gradient = check_gradient)
    m$call <- call
    if (length(random) > 0L) latent_posterior(m, random, design, draws, resample)
    else at_mode(m, draws, resample)
  })
}

# The normal approximation at the mode.
at_mode <- function(m, draws, resample) {
  found <- find_mode(m$at, m$starts[[1L]])
  root <- tryCatch(chol.default(-found$hessian), error = function(e) NULL)
  if (is.null(root) || !found$converged) {
    statcl_abort("density", if (is.null(root)) {
      paste("Laplace's approximation needs a mode, but the Hessian is not negative definite",
            "where the search has ended; see cl_pathfinder()")
    } else {
      paste("the search for the mode has not converged:", found$message)
    }, argument = "log_density")
  }
  z <- matrix(stats::rnorm(length(found$u) * draws), ncol = draws)
  u <- found$u + base::backsolve(root, z)
  log_q <- sum(log(diag(root))) + normal_log_density(z)
  approximation(m, u, log_q, resample, "Laplace's approximation")
}

#' @rdname cl_laplace
#' @export
cl_pathfinder <- function(log_density, init, transform = NULL, draws = 1000, paths = 4,
                          jitter = 2, history = 6, max_iter = 500, resample = TRUE, seed = NULL,
                          check_gradient = TRUE, data = NULL) {
  call <- sys.call()
  draws <- check_count(draws, "draws", 1)
  paths <- as.integer(check_count(paths, "paths", 1))
  jitter <- check_number(jitter, "jitter", lower = 0)
  history <- check_count(history, "history", 1)
  max_iter <- check_count(max_iter, "max_iter", 1)
  with_model_seed(seed, {
    m <- open_model(log_density, init, transform, paths, jitter, check_gradient = check_gradient,
                    data = data)
    m$call <- call
    best <- lapply(m$starts, function(start) {
      best_on_path(m, climb(m$at, start, max_iter, history, keep = TRUE))
    })
    elbo <- vapply(best, `[[`, 0, "elbo")
    if (!any(is.finite(elbo))) abort_no_approximation()
    parts <- lapply(best[is.finite(elbo)], function(b) path_draws(b$normal, draws))
    u <- do.call(cbind, lapply(parts, `[[`, "u"))
    log_q <- unlist(lapply(parts, `[[`, "log_q"))
    approximation(m, u, log_q, resample, sprintf("Pathfinder, %s", count_of(paths, "path")),
                  elbo, draws)
  })
}

#' @rdname cl_laplace
#' @export
cl_vi <- function(log_density, init, transform = NULL, draws = 1000, samples = NULL,
                  max_iter = 1000, resample = FALSE, seed = NULL, check_gradient = TRUE, rank = 0,
                  data = NULL) {
  call <- sys.call()
  draws <- check_count(draws, "draws", 1)
  rank <- as.integer(check_count(rank, "rank"))
  if (is.null(samples)) samples <- if (rank == 0L) 30 else max(100, 4 * rank)
  samples <- check_count(samples, "samples", max(2, 2 * rank + 2))
  max_iter <- check_count(max_iter, "max_iter", 1)
  with_model_seed(seed, {
    m <- open_model(log_density, init, transform, check_gradient = check_gradient, data = data)
    m$call <- call
    d <- length(m$starts[[1L]])
    start <- list(elbo = -Inf)
    for (jitter in c(0, 1)) { # a mode has no path
      if (is.finite(start$elbo)) next
      first <- m$starts[[1L]] + stats::runif(d, -jitter, jitter)
      start <- best_on_path(m, climb(m$at, first, max_iter, keep = TRUE))
    }
    if (!is.finite(start$elbo)) abort_no_approximation()
    rank <- min(rank, d)
    begin <- start_of_bound(start$normal, rank)
    least <- if (rank == 0L) numeric(d) else least_part * start$normal$scale
    path <- climb(bound_of(m$many, fixed_points(d, samples, rank), least), begin, max_iter)
    if (attr(path, "iterations") >= max_iter) {
      statcl_warning("convergence", "the search has not converged: 'max_iter' was reached")
    }
    drawn <- bound_draws(path[[1L]]$u, least, draws)
    approximation(m, drawn$u, drawn$log_q, resample,
                  if (rank == 0L) "mean-field variational inference" else
                    sprintf("variational inference of rank %d", rank))
  })
}

with_model_seed <- function(seed, code) {
  if (!is.null(seed)) check_count(seed, "seed", lower = -.Machine$integer.max)
  result <- with_seed(seed, code)
  attr(result, "seed") <- NULL
  result
}

abort_no_approximation <- function() {
  statcl_abort("density", "no point on the optimiser's path has a finite evidence lower bound",
               argument = "log_density")
}

# The log densities of standard normal numbers in columns.
normal_log_density <- function(z) -0.5 * colSums(z^2) - 0.5 * nrow(z) * log(2 * pi)

# ---- Pathfinder ----------------------------------------------------------------------------------

# The approximation of the path with the largest bound: list(elbo, normal).
best_on_path <- function(m, path) {
  best <- list(elbo = -Inf)
  for (p in path[-1L]) {
    normal <- path_normal(p)
    if (is.null(normal)) next
    drawn <- path_draws(normal, 25L)
    elbo <- mean(densities_at(m, drawn$u) - drawn$log_q)
    if (!is.na(elbo) && elbo > best$elbo) best <- list(elbo = elbo, normal = normal)
  }
  best
}

densities_at <- function(m, u) m$many(u)[1L, ]

# The normal distribution of a point of the path; NULL if its covariance matrix is not positive
# definite. With the factors Q R of beta / sqrt(alpha), the covariance matrix is
# sqrt(alpha) (I + Q R gamma R' Q') sqrt(alpha).
path_normal <- function(p) {
  normal <- list(mean = p$u + inverse_hessian(p, p$g), scale = sqrt(p$alpha),
                 log_det = sum(log(p$alpha)))
  if (!all(is.finite(c(normal$mean, normal$log_det)))) return(NULL)
  if (ncol(p$S) == 0L) return(normal)
  r <- low_rank(p)
  factors <- qr(r$beta / normal$scale, LAPACK = TRUE)
  upper <- qr.R(factors)[, order(factors$pivot), drop = FALSE]
  inner <- diag(1, nrow(upper)) + upper %*% r$gamma %*% t(upper)
  root <- tryCatch(t(chol.default((inner + t(inner)) / 2)), error = function(e) NULL)
  if (is.null(root)) return(NULL)
  normal$q <- qr.Q(factors)
  normal$root <- root
  normal$log_det <- normal$log_det + 2 * sum(log(diag(root)))
  normal
}

# list(u: draws in columns, log_q: their log densities).
path_draws <- function(normal, n) {
  z <- matrix(stats::rnorm(length(normal$mean) * n), ncol = n)
  moved <- z
  if (!is.null(normal$q)) {
    inside <- crossprod(normal$q, z)
    moved <- z + normal$q %*% (normal$root %*% inside - inside)
  }
  list(u = normal$mean + normal$scale * moved, log_q = normal_log_density(z) - normal$log_det / 2)
}

# ---- variational inference -----------------------------------------------------------------------

# The approximation is the distribution of m + exp(s) z + L w, where z and w, a number for each
# column of L, are standard normal; its parameters are c(m, t, L). With columns of L, exp(2 s) =
# exp(2 t) + least^2, else s = t: where L has more columns than the target needs, elements of exp(t)
# tend to zero, and the numbers would become too extreme.
least_part <- 0.02 # of the scale of Pathfinder

# list(z, w): standard normal numbers in columns, in pairs of opposite sign and with variance 1:
# with enough columns, also uncorrelated, so that the bound is exact for quadratic densities. Those
# of w are always uncorrelated, with those of z too.
fixed_points <- function(d, count, rank = 0L) {
  half <- matrix(stats::rnorm((d + rank) * ceiling(count / 2)), d + rank)
  n <- ncol(half)
  own <- seq_len(d)
  if (n > d + rank) {
    half <- forwardsolve(t(chol.default(tcrossprod(half) / n)), half)
  } else {
    if (rank > 0L) {
      basis <- qr.Q(qr(t(half[-own, , drop = FALSE])))
      half[own, ] <- half[own, ] - half[own, ] %*% basis %*% t(basis)
      half[-own, ] <- t(basis)
    }
    half <- half / sqrt(rowMeans(half^2))
  }
  both <- cbind(half, -half)
  list(z = both[own, , drop = FALSE], w = both[-own, , drop = FALSE])
}

# list(m, s, by_t: the derivatives of s, l, v: L / exp(s), root: the Cholesky factor of I + v' v, or
# NULL if the numbers are too extreme to compute it).
bound_parts <- function(par, least) {
  d <- length(least)
  s <- 0.5 * log(exp(2 * par[d + seq_len(d)]) + least^2)
  l <- matrix(par[-seq_len(2L * d)], d)
  v <- l / exp(s)
  list(m = par[seq_len(d)], s = s, by_t = exp(2 * (par[d + seq_len(d)] - s)), l = l, v = v,
       root = if (ncol(v) == 0L) v else
         tryCatch(chol.default(diag(1, ncol(v)) + crossprod(v)), error = function(e) NULL))
}

# The bound and its gradient as a function of the parameters.
bound_of <- function(many, points, least) {
  d <- nrow(points$z)
  n <- ncol(points$z)
  function(par) {
    p <- bound_parts(par, least)
    if (is.null(p$root)) return(list(-Inf, par))
    step <- exp(p$s) * points$z
    answers <- many(p$m + step + p$l %*% points$w)
    slopes <- answers[-1L, , drop = FALSE]
    by_l <- tcrossprod(slopes, points$w) / n
    entropy <- sum(p$s)
    by_s <- rep(1, d)
    if (ncol(p$v) > 0L) {
      solved <- p$v %*% chol2inv(p$root)
      entropy <- entropy + sum(log(diag(p$root)))
      by_s <- by_s - rowSums(solved * p$v)
      by_l <- by_l + solved / exp(p$s)
    }
    list(mean(answers[1L, ]) + entropy,
         c(rowMeans(slopes), (rowMeans(slopes * step) + by_s) * p$by_t, as.vector(by_l)))
  }
}

# Where the search begins, from the normal distribution of Pathfinder: its variances if `rank` is 0;
# else its diagonal part, and the directions in which it is wider than that, or small random ones.
start_of_bound <- function(normal, rank) {
  d <- length(normal$mean)
  if (rank == 0L) {
    return(c(normal$mean, 0.5 * log(rowMeans((path_draws(normal, 200L)$u - normal$mean)^2))))
  }
  l <- matrix(stats::rnorm(d * rank, sd = 0.1 / sqrt(d)), d)
  if (!is.null(normal$q)) {
    wide <- eigen(tcrossprod(normal$root), symmetric = TRUE)
    k <- seq_len(min(rank, sum(wide$values > 1.01)))
    l[, k] <- normal$q %*% wide$vectors[, k, drop = FALSE] %*%
      diag(sqrt(wide$values[k] - 1), length(k))
  }
  c(normal$mean, log(normal$scale), normal$scale * l)
}

# list(u: draws in columns, log_q: their log densities).
bound_draws <- function(par, least, draws) {
  p <- bound_parts(par, least)
  d <- length(least)
  e <- matrix(stats::rnorm(d * draws), d)
  log_det <- sum(p$s)
  inside <- 0
  if (ncol(p$v) > 0L) {
    e <- e + p$v %*% matrix(stats::rnorm(ncol(p$v) * draws), ncol(p$v))
    log_det <- log_det + sum(log(diag(p$root)))
    inside <- colSums(base::backsolve(p$root, crossprod(p$v, e), transpose = TRUE)^2)
  }
  list(u = p$m + exp(p$s) * e, log_q = normal_log_density(e) + 0.5 * inside - log_det)
}

# ---- results -------------------------------------------------------------------------------------

# The result, from proposals in the columns of u (unconstrained) with their log densities; `keep` of
# them if they are resampled or come from several paths.
approximation <- function(m, u, log_q, resample, method, elbo = NULL, keep = ncol(u)) {
  check_flag(resample, "resample")
  ratio <- densities_at(m, u) - log_q
  if (!any(is.finite(ratio))) abort_no_approximation()
  if (is.null(elbo)) elbo <- mean(ratio)
  weights <- smooth_weights(ratio)
  chosen <- if (resample) {
    sample.int(ncol(u), keep, replace = TRUE, prob = exp(weights$log))
  } else if (keep < ncol(u)) {
    which(is.finite(ratio))[sample.int(sum(is.finite(ratio)), min(keep, sum(is.finite(ratio))))]
  } else {
    seq_len(ncol(u))
  }
  x <- constrain_draws(m$layout, u[, chosen, drop = FALSE])
  draws <- array(t(x), c(ncol(x), 1L, nrow(x)),
                 list(iteration = NULL, chain = NULL, parameter = drawn_layout(m$layout)$names))
  if (isTRUE(weights$khat > 0.7)) {
    statcl_warning("approximation", sprintf(paste("Pareto k is %.2f: the approximation is poor;",
                                                  "cl_sample() accepts it as 'init'"),
                                            weights$khat))
  }
  structure(c(list(draws = draws, log_weights = if (resample) weights$log else weights$log[chosen],
                   khat = weights$khat, elbo = elbo, method = method, resampled = resample),
              model_figures(m)), class = c("cl_approximation", "cl_sample"))
}

# Normalised logarithms of importance weights, and Pareto's k.
smooth_weights <- function(ratio) {
  ratio <- pmax(ratio - max(ratio), -700)
  exact <- min(ratio) > -1e-6
  khat <- if (exact) 0 else NA_real_
  if (!exact && length(ratio) >= 25L && requireNamespace("loo", quietly = TRUE)) {
    smooth <- suppressWarnings(loo::psis(matrix(ratio), r_eff = 1))
    khat <- as.numeric(smooth$diagnostics$pareto_k)
    ratio <- as.vector(smooth$log_weights)
    ratio <- ratio - max(ratio)
  }
  list(log = ratio - log(sum(exp(ratio))), khat = khat)
}

#' @rdname cl_laplace
#' @param x,object A result of these functions; for `density()` and `plot()` one with `random`.
#' @param digits,rows Numbers of significant digits, and of parameters to print.
#' @param ... Passed to [summary()][cl_sample-methods] of samples.
#' @export
print.cl_approximation <- function(x, digits = 3L, rows = 10L, ...) {
  cat(sprintf("%s by %s%s\n", count_of(nrow(x$draws), "draw"), x$method,
              if (x$resampled) ", resampled" else ""))
  table <- summary(x, ...)
  attr(table, "engine") <- NULL # printed below
  print(utils::head(table, rows), digits = digits)
  if (nrow(table) > rows) cat(sprintf("... and %d more parameters\n", nrow(table) - rows))
  cat(sprintf("%s in %.1f s; evidence lower bound %s; Pareto k %s\n", evaluations_text(x),
              x$elapsed, paste(format(x$elbo, digits = 6L), collapse = ", "),
              if (is.na(x$khat)) "unknown (needs the package loo)" else sprintf("%.2f", x$khat)),
      engine_line(x$engine), sep = "")
  invisible(x)
}

#' @rdname cl_laplace
#' @export
summary.cl_approximation <- function(object, ...) {
  table <- summary.cl_sample(object, ...)
  structure(table[setdiff(names(table), c("mcse", "ess_bulk", "ess_tail", "rhat"))],
            engine = object$engine)
}
