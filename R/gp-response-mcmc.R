# Latent Gaussian processes by sampling: f = centre + H beta + L z with L L' = K + jitter I and z
# standard normal, jointly with all parameters. The columns of H have the length sqrt(n).

latent_jitter <- 1e-8 # times the mean variance

sample_response <- function(problem, ...) {
  if (!may_move_points(problem)) return(sample_latent(problem, ...))
  fit_on_engine("gp", nrow(problem$x), function() sample_latent(problem, ...), times = 5000,
                kind = paste("mcmc", problem$response$family))
}

sample_latent <- function(problem, space, prior, found, control, progress) {
  e <- environment(make_gp_response(problem))
  mode <- e$at(found$par)
  n <- length(problem$y)
  d <- e$d
  long <- trend_length(problem$mean)
  h <- if (!is.null(e$h)) e$h * long
  free <- space$free
  names <- space$name[free]
  par <- space$value
  x <- latent_points(problem)
  density <- function(...) {
    given <- list(...)
    par[free] <- unlist(given[names])
    p <- prior$value(par)
    at_kernel <- with_parameters(e$kernel, par[e$in_kernel])
    aux <- par[-e$in_kernel]
    l <- latent_root(cl_cov(x, kernel = at_kernel))
    z <- matrix(given$latent, n)
    f <- e$centre + as.matrix(l %*% z)
    if (!is.null(h)) f <- f + matrix(h %*% given$coefficients, n)
    at <- response_at(problem$response, f, aux, by = TRUE)
    value <- sum(at$l) + p$value - sum(z^2) / 2
    # a clMatrix where the covariance matrix is one
    moved <- as.matrix(crossprod(l, at$d1))
    l_adj <- if (is_cl(l)) tcrossprod(as_cl(at$d1), as_cl(z)) else tcrossprod(at$d1, z)
    adjoint <- cl_chol_adjoint(l, l_adj)
    ridge <- latent_jitter * mean(as.vector(diag(adjoint)))
    adjoint <- add_diagonal(adjoint, ridge)
    slope <- c(cl_cov_adjoint(adjoint, x, kernel = at_kernel),
               vapply(at$by, function(one) sum(one$l), 0)) + p$gradient
    gradient <- c(stats::setNames(as.list(slope[free]), names), list(
      coefficients = if (!is.null(h)) as.vector(crossprod(h, as.vector(at$d1))),
      latent = as.vector(moved) - as.vector(z)))
    structure(value, gradient = gradient[!vapply(gradient, is.null, NA)])
  }
  at_kernel <- with_parameters(e$kernel, found$par[e$in_kernel])
  l <- latent_root(cl_cov(x, kernel = at_kernel))
  init <- c(as.list(found$par[free]),
            if (!is.null(h)) list(coefficients = as.vector(mode$beta) / long),
            list(latent = as.vector(forwardsolve(l, matrix(mode$g, n)))))
  settle_draws(found, draw_posterior(density, init, names[space$log[free]], control, progress),
               names, free)
}

# The factor by which the columns of a basis have length sqrt(n).
trend_length <- function(trend) if (is.null(trend$basis)) 1 else sqrt(nrow(trend$basis))

# The lower factor of K with its jitter.
latent_root <- function(k) {
  force(k)
  cl_chol(k, lower = TRUE, jitter = latent_jitter * mean(as.vector(diag(k))))
}

# The columns of the draws that are coefficients of the mean, by columns of length sqrt(n).
trend_draws <- function(fit) {
  grep("^coefficients", colnames(as.matrix(fit$draws)), value = TRUE)
}

# The latent process given that of one draw.
response_draw_state <- function(object) {
  e <- environment(gp_function(gp_problem(object)))
  n <- length(object$y)
  d <- e$d
  draws <- as.matrix(object$draws)[object$row, ]
  z <- matrix(draws[grep("^latent", names(draws))], n)
  x <- latent_points(e$problem)
  l <- latent_root(cl_cov(x, kernel = object$kernel))
  beta <- draws[trend_draws(object)] * trend_length(object$trend)
  f <- e$centre + as.matrix(l %*% z)
  if (!is.null(e$h)) f <- f + matrix(e$h %*% beta, n)
  a <- as.matrix(backsolve(l, z, upper.tri = FALSE, transpose = TRUE))
  whiten <- function(k, c) {
    v <- forwardsolve(l, t(k))
    if (d == 1L) return(v)
    v <- as.matrix(v)
    do.call(rbind, lapply(seq_len(d), function(i) if (i == c) v else 0 * v))
  }
  mode <- list(f = f, x = x, kernel = object$kernel)
  new_response_state(e, mode, a, beta, NULL, NULL, whiten, NA_real_)
}

# The log densities of the observations, by draws in rows.
#' @exportS3Method loo::loo
loo.cl_gp_response <- function(x, ...) {
  if (is.null(x$draws)) abort_argument("x", "only a fit with method = \"mcmc\" has draws")
  size <- dim(x$draws$draws)[1:2]
  par <- gp_draws(x, Inf)
  log_lik <- vapply(seq_len(nrow(par)), function(i) {
    one <- at_draw(x, par, i)
    response_at(x$response, drawn_state(one)$f, one$aux)$l
  }, numeric(length(x$y)))
  loo_of(array(t(log_lik), c(size, length(x$y))), ...)
}
