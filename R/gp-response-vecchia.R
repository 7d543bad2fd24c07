# Latent Gaussian processes by Vecchia's approximation (Zilber and Katzfuss, 2021): Laplace's
# approximation with the sparse precision matrix Q = W W' of the process at the observations, which
# src/ops/vecchia_latent.c combines with the data's: P = Q + D, D minus the second derivatives of
# the log density. On the host. With M = (K + D^-1)^-1 as in gp-response-matrix.R, K M = P^-1 D.

check_response_vecchia <- function(response, kernel, neighbours, method) {
  if (is.null(neighbours)) return(invisible())
  if (is_categorical(response$family)) {
    refuse_vecchia("family", sprintf("family = \"%s\"", response$family))
  }
  if ("white" %in% vapply(kernel$terms, `[[`, "", "type")) {
    abort_argument("kernel", "k_white() is not available with 'family' and approx = \"vecchia\"")
  }
}

# As dense_process(). The spread is list(half, factor, moved (K M H), info (H' M H)).
vecchia_process <- function(problem, h, centre) {
  data <- list(y = matrix(0, length(problem$y)), x = problem$x, vector = TRUE)
  # for its order, its neighbours and their handle
  none <- gp_trend(0, "profile", problem$x, 1L)
  graph <- make_vecchia_likelihood(data, problem$kernel, none, NULL, problem$vecchia$neighbours,
                                   scale = problem$vecchia$scale)
  on <- environment(graph)$on_handle
  layout <- environment(graph)$layout
  function(par) {
    values <- layout_values(layout, c(par, 0))
    weights <- tryCatch(on(function(v) .Call(r_vecchia_latent, v, layout$c, values)),
                        statcl_error_not_pd = function(e) NULL)
    if (is.null(weights)) return(NULL)
    predict <- function(at, right, factor) on(function(v) {
      .Call(r_vecchia_latent_predict, v, layout$c, values, at, right, factor)
    })
    list(step = vecchia_step(on, weights, h, centre), predict = predict,
         square = function(point) on(function(v) {
           .Call(r_vecchia_latent_square, v, weights, point$g)
         }))
  }
}

vecchia_step <- function(on, weights, h, centre) function(f, at, w) {
  if (is.null(at$wide)) w <- pmax(w, 0) # up to rounding
  b <- at$d1[, 1L] + w * (f[, 1L] - centre)
  found <- tryCatch(on(function(v) {
    .Call(r_vecchia_latent_solve, v, weights, w, cbind(b, w * h))
  }), statcl_error_not_pd = function(e) NULL)
  if (is.null(found)) return(NULL)
  g <- found$x[, 1L]
  moved <- unname(found$x[, -1L, drop = FALSE])
  info <- NULL
  beta <- numeric()
  trend <- 0
  if (!is.null(h)) {
    info <- crossprod(h, w * h) - crossprod(w * h, moved)
    root <- chol_or_null((info + t(info)) / 2)
    if (is.null(root)) return(NULL)
    beta <- backsolve(root, backsolve(root, crossprod(h, b - w * g), transpose = TRUE))
    g <- g - as.vector(moved %*% beta)
    trend <- as.vector(h %*% beta)
  }
  to <- matrix(centre + g + trend)
  list(f = to, a = at$d1[, 1L] - w * as.vector(to - f), g = g, beta = beta,
       spread = list(half = found$half, factor = found$factor, moved = moved, info = info))
}

# Derivatives by differences, which move an optimum by 1e-4 of a parameter; `two_sided` for
# Student's t, whose curvature by `scale` is high.
value_differences <- function(value_at, par, value, positive, two_sided, n) {
  slope <- vapply(seq_along(par), function(i) {
    step <- 2e-4 * if (positive[i]) par[[i]] else 1
    up <- value_at(replace(par, i, par[[i]] + step), TRUE) - value
    if (!two_sided) return(up / step)
    down <- value - value_at(replace(par, i, par[[i]] - step), TRUE)
    # on one side the mode may vanish
    if (isTRUE(abs(up - down) < 1e-3 + 1e-7 * n)) return((up + down) / (2 * step))
    (if (is.finite(up) && abs(up) < abs(down)) up else down) / step
  }, 0)
  replace(slope, !is.finite(slope), 0)
}

# As response_condition().
vecchia_response_condition <- function(f, par) {
  e <- environment(f)
  mode <- e$at(par)
  if (is.null(mode)) {
    statcl_abort("not_pd", "the latent process has no mode at these parameters")
  }
  wide <- mode$wide()
  beta_cov <- if (!is.null(e$h)) solve(wide$info)
  refuse <- function(what) refuse_vecchia("approx", what)
  structure(list(
    value = as.vector(f(par, FALSE)), f = mode$f, beta = mode$beta, beta_cov = beta_cov,
    predict = function(at, what = "mean", basis = NULL) {
      if (what == "covariance") refuse("the covariance of predictions")
      colnames(at) <- colnames(e$problem$x)
      found <- mode$predict(unname(kernel_points(e$kernel, at)), cbind(mode$g, wide$moved),
                            wide$factor)
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
