# Latent Gaussian processes by Vecchia's approximation (Zilber and Katzfuss, 2021): Laplace's
# approximation with the sparse precision matrix Q = W W' of the process at the observations, which
# src/ops/vecchia_latent.c combines with the data's: P = Q + D, D minus the second derivatives of
# the log density. On the host. With M = (K + D^-1)^-1 as in gp-response-laplace.R, K M = P^-1 D.

vecchia_families <- setdiff(response_families, "categorical_logit")

check_response_vecchia <- function(response, kernel, neighbours, method) {
  if (is.null(neighbours)) return(invisible())
  if (!response$family %in% vecchia_families || response$dims > 1L) {
    refuse_vecchia("family", sprintf("family = \"%s\"", response$family))
  }
  if ("white" %in% vapply(kernel$terms, `[[`, "", "type")) {
    abort_argument("kernel", "k_white() is not available with 'family' and approx = \"vecchia\"")
  }
}

# The maximum over f = centre + g + H beta of log p(y | f) - g' Q g / 2, by Newton's method with
# steps that are halved until the objective rises, with a bound in place of W as in laplace_mode();
# NULL if there is none. `on`: calls with the handle.
vecchia_mode <- function(on, weights, h, response, own, centre, from) {
  square <- function(g) on(function(v) .Call(r_vecchia_latent_square, v, weights, g))
  step_with <- function(d, d1) {
    b <- d1 + d * (f - centre)
    solved <- tryCatch(on(function(v) {
      .Call(r_vecchia_latent_solve, v, weights, d, cbind(b, d * h))
    }), statcl_error_not_pd = function(e) NULL)
    if (!is.null(solved)) c(solved, list(b = b, d = d))
  }
  f <- from
  value <- -Inf
  last <- NULL
  for (i in 1:200) {
    at <- response_at(response, matrix(f), own)
    if (!all(is.finite(at$d1)) || !all(is.finite(at$w))) return(NULL)
    solved <- step_with(if (is.null(at$bound)) pmax(at$w, 0) else at$w, as.vector(at$d1))
    exact <- !is.null(solved)
    if (!exact && !is.null(at$bound)) solved <- step_with(at$bound, as.vector(at$d1))
    if (is.null(solved)) return(NULL)
    b <- solved$b
    d <- solved$d
    g <- solved$x[, 1L]
    moved <- unname(solved$x[, -1L, drop = FALSE]) # K M H
    info <- beta <- NULL
    if (!is.null(h)) {
      info <- crossprod(h, d * h) - crossprod(d * h, moved)
      root <- chol_or_null((info + t(info)) / 2)
      if (is.null(root)) return(NULL)
      beta <- backsolve(root, backsolve(root, crossprod(h, b - d * g), transpose = TRUE))
      g <- g - as.vector(moved %*% beta)
    }
    if (is.null(last)) last <- list(g = 0 * g, beta = beta)
    old <- last
    step <- 1
    repeat {
      last$g <- old$g + step * (g - old$g)
      if (!is.null(h)) last$beta <- old$beta + step * (beta - old$beta)
      new <- centre + last$g + if (is.null(h)) 0 else as.vector(h %*% last$beta)
      found <- sum(response_at(response, matrix(new), own)$l) - square(last$g) / 2
      change <- max(abs(new - f)) / (1 + max(abs(f)))
      if (is.finite(found) && (found >= value || change < 1e-6)) break
      step <- step / 2
      if (step < 1e-12) return(NULL)
    }
    f <- new
    value <- found
    if (i > 1L && step == 1 && change < if (exact) 1e-7 else 1e-11) {
      if (!exact) return(NULL)
      return(c(last, list(f = f, value = value, half = solved$half, factor = solved$factor,
                          moved = moved, info = info)))
    }
  }
  NULL
}

# As make_gp_response(); derivatives by differences, which move an optimum by 1e-4 of a parameter.
make_vecchia_response <- function(problem) {
  response <- problem$response
  kernel <- problem$kernel
  own_names <- response_rows(response, 1)$name
  names <- c(names(coef(kernel)), own_names)
  in_kernel <- seq_along(coef(kernel))
  positive <- c(kernel_positive(kernel), rep(TRUE, length(own_names)))
  integrate <- identical(problem$beta, "integrate")
  n <- length(problem$y)
  h <- response_basis(problem$mean, n, 1L)
  centre <- if (problem$mean$kind == "number") problem$mean$value else 0
  log_root <- mean_constant(problem$mean, problem$beta)
  guess <- response_guess(response)[, 1L]
  data <- list(y = matrix(0, n), x = problem$x, vector = TRUE)
  # for its order, its neighbours and their handle
  graph <- make_vecchia_likelihood(data, kernel, gp_trend(0, "profile", problem$x, 1L), NULL,
                                   problem$vecchia$neighbours, scale = problem$vecchia$scale)
  on <- environment(graph)$on_handle
  layout <- environment(graph)$layout
  two_sided <- response$family == "student_t" # whose curvature by `scale` is high
  last <- NULL
  at <- function(par, keep = TRUE) {
    par <- check_gp_parameters(par, names, positive)
    values <- layout_values(layout, c(par[in_kernel], 0))
    weights <- tryCatch(on(function(v) .Call(r_vecchia_latent, v, layout$c, values)),
                        statcl_error_not_pd = function(e) NULL)
    if (is.null(weights)) return(NULL)
    own <- par[-in_kernel]
    again <- !is.null(last) && response$family != "student_t" # which may have several modes
    mode <- vecchia_mode(on, weights, h, response, own, centre, if (again) last else guess)
    if (is.null(mode) && again) {
      mode <- vecchia_mode(on, weights, h, response, own, centre, guess)
    }
    if (is.null(mode)) return(NULL)
    if (keep) last <<- mode$f
    c(mode, list(values = values, own = own))
  }
  value_at <- function(par, keep) {
    mode <- at(par, keep)
    if (is.null(mode)) return(-Inf)
    value <- mode$value - mode$half
    if (integrate && !is.null(h)) {
      value <- value + (ncol(h) * log(2 * pi) - determinant(mode$info)$modulus[1L]) / 2 - log_root
    }
    value
  }
  f <- function(par, gradient = TRUE) {
    value <- value_at(par, TRUE)
    if (!gradient || !is.finite(value)) return(value)
    slope <- vapply(seq_along(par), function(i) {
      step <- 2e-4 * if (positive[i]) par[[i]] else 1
      above <- value_at(replace(par, i, par[[i]] + step), FALSE)
      below <- if (two_sided) value_at(replace(par, i, par[[i]] - step), FALSE) else value
      (above - below) / (if (two_sided) 2 * step else step)
    }, 0)
    structure(value, gradient = stats::setNames(replace(slope, !is.finite(slope), 0), names))
  }
  structure(f, class = c("cl_gp_response_vecchia", "cl_gp_response", "function"))
}

# As response_condition().
vecchia_response_condition <- function(f, par) {
  e <- environment(f)
  mode <- e$at(par)
  if (is.null(mode)) {
    statcl_abort("not_pd", "the latent process has no mode at these parameters")
  }
  beta_cov <- if (!is.null(e$h)) solve(mode$info)
  refuse <- function(what) refuse_vecchia("approx", what)
  structure(list(
    value = as.vector(f(par, FALSE)), f = matrix(mode$f), beta = mode$beta, beta_cov = beta_cov,
    predict = function(at, what = "mean", basis = NULL) {
      if (what == "covariance") refuse("the covariance of predictions")
      colnames(at) <- colnames(e$problem$x)
      found <- e$on(function(v) {
        .Call(r_vecchia_latent_predict, v, e$layout$c, mode$values,
              unname(kernel_points(e$kernel, at)), cbind(mode$g, mode$moved), mode$factor)
      })
      mean <- found$mean[, 1L]
      variance <- found$variance
      if (!is.null(e$h)) {
        one <- if (is.null(e$problem$mean$basis)) matrix(1, nrow(at), 1L) else basis
        mean <- mean + as.vector(one %*% mode$beta)
        rest <- one - found$mean[, -1L, drop = FALSE]
        variance <- variance + rowSums((rest %*% beta_cov) * rest)
      }
      list(mean = mean, variance = variance)
    },
    part = function(...) refuse("'part'"),
    mean_gradient = function(...) refuse("the gradient of predictions")),
    class = "cl_gp_state")
}

# Second derivatives of the value of `at` by differences of values, which are smooth.
value_hessian <- function(value, at, h = 0.02) {
  size <- length(at)
  moved <- function(i, j, a, b) {
    step <- numeric(size)
    step[i] <- a * h
    step[j] <- step[j] + b * h
    value(at + step)
  }
  centre <- value(at)
  hessian <- matrix(0, size, size)
  for (i in seq_len(size)) for (j in seq_len(i)) {
    hessian[i, j] <- hessian[j, i] <- if (i == j) {
      (moved(i, i, 1, 0) - 2 * centre + moved(i, i, -1, 0)) / h^2
    } else {
      (moved(i, j, 1, 1) - moved(i, j, 1, -1) - moved(i, j, -1, 1) + moved(i, j, -1, -1)) /
        (4 * h^2)
    }
  }
  hessian
}
