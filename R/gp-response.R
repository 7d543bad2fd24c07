# Fits of a latent Gaussian process whose observations are not normal.

refuse_for_response <- function(method, variance, neighbours) {
  if (method == "loo") {
    abort_argument("method", "method = \"loo\" is for normal observations only")
  }
  if (!is.null(variance)) {
    abort_argument("variance", "'variance' is for normal observations only")
  }
  if (!is.null(neighbours) && method == "mcmc") {
    refuse_vecchia("method", "method = \"mcmc\"")
  }
}

fit_gp_response <- function(x, response, kernel, method, mean, beta, prior, start, fixed, lower,
                            upper, starts, control, progress, workers, h, coded, ard,
                            neighbours = NULL) {
  family <- response$family
  guess <- response_guess(response)
  problem <- new_gp_problem(x, guess[, 1L], kernel, mean, beta, NULL, NULL, h)
  if (has_classes(family) && length(response$levels) > 20L && response$dims > 1L) {
    abort_argument("y", sprintf("the response has %d classes, but at most 20 are supported",
                                length(response$levels)))
  }
  problem$kernel <- kernel <- resolve_kernel(kernel, problem$x, coded, ard, stats::sd(problem$y))
  problem$response <- response
  check_response_vecchia(response, kernel, neighbours, method)
  problem <- with_vecchia(problem, neighbours, method)
  if (family_row(family)$glm) problem$scale <- 1 # the predictor has no unit
  space <- gp_space(problem, start, fixed, lower, upper)
  if (any(space$free)) check_gp_information(problem)
  problem <- plain_trend(problem)
  warn_space(space, kernel)
  clear_gp_states(length(problem$y) * response$dims)
  with_prior <- if (method != "ml") gp_prior_of(prior, space)
  found <- if (!is.null(neighbours)) {
    vecchia_search(problem, space, with_prior, starts,
                   utils::modifyList(list(rel.tol = 1e-7), control), progress, workers)
  } else {
    gp_search(problem, space, with_prior, "ml", starts, if (method == "mcmc") list() else control,
              progress, workers)
  }
  if (method == "mcmc") found <- sample_response(problem, space, with_prior, found, control,
                                                 progress)
  fit <- finish_response(problem, space, method, with_prior, found)
  fit$coded <- coded
  fit
}

# Nothing is subtracted from observations that are not normal.
plain_trend <- function(problem) {
  trend <- problem$mean
  trend$shift <- 0 * trend$shift
  trend$centre <- rep(if (trend$kind == "number") trend$value else 0, length(problem$y))
  problem$mean <- trend
  problem
}

finish_response <- function(problem, space, method, prior, found) {
  aux <- match(response_rows(problem$response, 1)$name, space$name)
  fit <- c(found_parts(problem, space, method, prior, found),
           list(family = problem$response$family, aux = found$par[aux],
                response = problem$response, weights = problem$response$weights))
  fit$noise <- if ("scale" %in% names(fit$aux)) fit$aux[["scale"]] else NA_real_
  if (is_ordered(fit$family)) fit$cuts <- response_cuts(fit$aux)
  fit$id <- new_gp_id()
  fit <- structure(fit, class = c("cl_gp_response", "cl_gp"))
  state <- gp_condition(gp_function(gp_problem(fit)), fit$par)
  fit$engine <- engine_note("gp")
  keep_gp_state(fit, state)
  names <- fit$trend$names
  d <- problem$response$dims
  if (d > 1L && length(names) > 0L) {
    names <- as.vector(outer(names, seq_len(d), paste, sep = ":"))
  }
  beta <- if (!is.null(fit$draws)) {
    trend_length(fit$trend) * colMeans(as.matrix(fit$draws))[trend_draws(fit)]
  } else {
    state$beta
  }
  fit$beta_names <- names
  coefficients <- response_coefficients(fit$trend, beta, d)
  fit$coefficients <- stats::setNames(c(fit$par, coefficients), c(names(fit$par), names))
  fit$mean <- if (fit$trend$kind == "number") fit$trend$value else
    if (fit$trend$kind == "constant") coefficients
  fit$logLik <- state$value
  if (is.null(fit$objective)) fit$objective <- fit$logLik
  fit$linear.predictors <- state$f
  fit$fitted.values <- stats::predict(fit, type = "response")
  warn_unfinished(found, method)
  fit
}

# Coefficients by the user's columns, from those of the orthonormal ones, a process after another.
response_coefficients <- function(trend, beta, d) {
  if (trend$kind == "number") return(NULL)
  as.vector(backsolve(trend$root, matrix(beta, ncol = d)))
}

# ---- the latent process given the data -----------------------------------------------------------

# As gp_condition(): the normal approximation at the mode.
response_condition <- function(f, par) {
  if (inherits(f, "cl_gp_response_vecchia")) return(vecchia_response_condition(f, par))
  e <- environment(f)
  mode <- e$at(par)
  refuse <- function() {
    statcl_abort("not_pd", paste("the latent process has no mode at these parameters: the",
                                 "covariance matrix is not positive definite or not finite"))
  }
  if (is.null(mode)) refuse()
  system <- mode$wide()
  d <- e$d
  n <- nrow(mode$f)
  beta_cov <- NULL
  mh <- NULL
  if (!is.null(e$h)) {
    mh <- system$solve(e$h)
    root <- chol_or_null(crossprod(e$h, mh))
    if (is.null(root)) refuse()
    beta_cov <- chol2inv(root)
    if (!all(is.finite(beta_cov))) refuse()
  }
  # for points with covariances k (m x n): L B^-1 .. of them for process c
  whiten <- function(k, c) {
    backsolve(system$chol, bind_rows_of(system$root, c, t(k)), transpose = TRUE)
  }
  new_response_state(e, mode, matrix(mode$a, n), mode$beta, beta_cov, mh, whiten,
                     value = as.vector(f(par, FALSE)))
}

# L' of an n d x m matrix whose block c is x, and whose other blocks are 0.
bind_rows_of <- function(root, c, x) {
  if (is.null(root)) return(x)
  do.call(rbind, lapply(seq_len(dim(root)[2L]), function(a) root[, c, a] * x))
}

# e: the environment of the likelihood; a: K^-1 (f - mean), n x d; mh: M H; whiten(k, c): a matrix V
# with a column for each point, such that process c loses the variance V'V.
new_response_state <- function(e, mode, a, beta, beta_cov, mh, whiten, value) {
  d <- e$d
  n <- nrow(a)
  trend <- e$problem$mean
  columns <- colnames(e$problem$x)
  points_of <- function(at) {
    colnames(at) <- columns
    if (is_cl(mode$x)) as_cl(at) else at
  }
  numbers <- function(x) unname(as.matrix(x))
  predict <- function(at, what, basis, kernel, trendless = FALSE) {
    m <- nrow(at)
    at <- points_of(at)
    if (m == 0L) {
      return(list(mean = matrix(0, 0L, d), variance = array(0, c(0L, rep(d, 2L * (d > 1L)))),
                  covariance = matrix(0, 0L, 0L)))
    }
    k <- cl_cov(at, mode$x, kernel)
    mean <- numbers(k %*% a)
    h <- NULL
    if (!trendless && !is.null(e$h)) {
      one <- if (is.null(trend$basis)) matrix(1, m, 1L) else basis
      mean <- mean + one %*% matrix(beta, ncol = d)
      h <- kronecker(diag(d), one)
    }
    result <- list(mean = if (d == 1L) mean[, 1L] else mean)
    if (what == "mean") return(result)
    white <- lapply(seq_len(d), function(c) whiten(k, c))
    rest <- if (!is.null(h) && !is.null(beta_cov)) {
      r <- h - do.call(rbind, lapply(seq_len(d), function(c) {
        numbers(k %*% mh[(c - 1L) * n + seq_len(n), , drop = FALSE])
      }))
      r %*% t(chol(beta_cov))
    }
    rows <- function(c) (c - 1L) * m + seq_len(m)
    if (what == "covariance") {
      prior <- numbers(cl_cov(at, at, kernel))
      result$covariance <- bind_blocks(d, function(c, e) {
        v <- -numbers(crossprod(white[[c]], white[[e]]))
        if (c == e) v + prior else v
      })
      if (!is.null(rest)) result$covariance <- result$covariance + tcrossprod(rest)
      return(result)
    }
    prior <- kernel_variance(kernel, structure(as.matrix(at), dimnames = list(NULL, columns)))
    s <- array(0, c(m, d, d))
    for (c in seq_len(d)) for (e in seq_len(d)) {
      v <- -as.vector(colSums(white[[c]] * white[[e]]))
      if (c == e) v <- v + prior
      if (!is.null(rest)) {
        v <- v + rowSums(rest[rows(c), , drop = FALSE] * rest[rows(e), , drop = FALSE])
      }
      s[, c, e] <- v
    }
    result$variance <- if (d == 1L) s[, 1L, 1L] else s
    result
  }
  structure(list(
    value = value, f = mode$f, beta = beta, beta_cov = beta_cov,
    predict = function(at, what = "mean", basis = NULL) predict(at, what, basis, mode$kernel),
    part = function(at, kernel, what = "mean") predict(at, what, NULL, kernel, TRUE),
    mean_gradient = function(at, y_column = 1L) {
      slope <- cl_cov_adjoint(matrix(a[, 1L], nrow(at), n, byrow = TRUE), points_of(at),
                              as.matrix(mode$x), kernel = mode$kernel, inputs = TRUE)$x1
      structure(as.matrix(slope), dimnames = list(NULL, columns))
    }), class = "cl_gp_state")
}
