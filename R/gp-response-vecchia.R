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

# As laplace_mode(), of log p(y | f) - g' Q g / 2 with f = centre + g + H beta. `on`: calls with the
# handle.
vecchia_mode <- function(on, weights, h, response, own, centre, starts) {
  best <- NULL
  step <- vecchia_step(on, weights, h, centre)
  student <- response$family == "student_t"
  if (student && length(starts) > 1L) {
    robust <- robust_start(response, own, if (is.null(h)) centre,
                           function(f, at, w) step(f, at, w)$f)
    starts <- c(starts, list(robust[, 1L]))
  }
  for (from in starts) {
    mode <- climb_vecchia(on, weights, step, response, own, from)
    if (!is.null(mode) && (is.null(best) || mode$height > best$height)) best <- mode
    if (!is.null(best) && !student) break
  }
  if (is.null(best)) return(NULL)
  at <- response_at(response, matrix(best$f), own)
  spread <- step(best$f, at, if (student) at$v else pmax(at$w, 0))
  if (is.null(spread)) return(NULL)
  best[c("half", "factor", "moved", "info")] <- spread[c("half", "factor", "moved", "info")]
  # for variances
  best$wide <- function() if (student) step(best$f, at, at$wide) else best
  best
}

# A function that gives where Newton's method with the curvatures w leads: list(f, g, beta, half,
# factor, moved (K M H), info (H' M H)); NULL if Q + w is not positive definite.
vecchia_step <- function(on, weights, h, centre) function(f, at, w) {
  b <- at$d1[, 1L] + w * (f - centre)
  found <- tryCatch(on(function(v) {
    .Call(r_vecchia_latent_solve, v, weights, w, cbind(b, w * h))
  }), statcl_error_not_pd = function(e) NULL)
  if (is.null(found)) return(NULL)
  g <- found$x[, 1L]
  moved <- unname(found$x[, -1L, drop = FALSE])
  info <- beta <- NULL
  trend <- 0
  if (!is.null(h)) {
    info <- crossprod(h, w * h) - crossprod(w * h, moved)
    root <- chol_or_null((info + t(info)) / 2)
    if (is.null(root)) return(NULL)
    beta <- backsolve(root, backsolve(root, crossprod(h, b - w * g), transpose = TRUE))
    g <- g - as.vector(moved %*% beta)
    trend <- as.vector(h %*% beta)
  }
  list(f = centre + g + trend, g = g, beta = beta, half = found$half, factor = found$factor,
       moved = moved, info = info)
}

# As climb_mode().
climb_vecchia <- function(on, weights, step, response, own, from) {
  square <- function(g) on(function(v) .Call(r_vecchia_latent_square, v, weights, g))
  parts <- c("f", "g", "beta")
  student <- response$family == "student_t"
  f <- from
  value <- -Inf
  last <- NULL
  for (i in 1:200) {
    at <- response_at(response, matrix(f), own)
    if (!all(is.finite(at$d1)) || !all(is.finite(at$w))) return(NULL)
    new <- step(f, at, if (student) at$w else pmax(at$w, 0))
    exact <- !is.null(new)
    if (!exact && student) new <- step(f, at, pmax(at$w, at$wide))
    if (is.null(new)) return(NULL)
    new <- new[parts]
    # the first step, shortened, ends nearer to the mean
    old <- if (is.null(last)) list(f = new$f - new$g, g = 0 * new$g, beta = new$beta) else last
    by <- 1
    repeat {
      last <- Map(function(o, v) o + by * (v - o), old, new)
      squared <- square(last$g)
      found <- sum(response_at(response, matrix(last$f), own)$l) - squared / 2
      change <- max(abs(last$f - f)) / (1 + max(abs(f)))
      if (is.finite(found) && (found >= value || change < 1e-6)) break
      by <- by / 2
      if (by < 1e-12) return(NULL)
    }
    f <- last$f
    value <- found
    if (exact && by == 1 && change < 1e-6) return(c(last, list(height = value)))
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
    # for differences only the mode next to the last one
    starts <- if (!keep && !is.null(last)) list(last) else
      Filter(Negate(is.null), list(last, guess))
    mode <- vecchia_mode(on, weights, h, response, own, centre, starts)
    if (is.null(mode)) return(NULL)
    if (keep) last <<- mode$f
    c(mode, list(values = values, own = own))
  }
  value_at <- function(par, keep) {
    mode <- at(par, keep)
    if (is.null(mode)) return(-Inf)
    value <- mode$height - mode$half
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
      up <- value_at(replace(par, i, par[[i]] + step), FALSE) - value
      if (!two_sided) return(up / step)
      down <- value - value_at(replace(par, i, par[[i]] - step), FALSE)
      # on one side the mode may vanish
      if (isTRUE(abs(up - down) < 1e-3 + 1e-7 * n)) return((up + down) / (2 * step))
      (if (is.finite(up) && abs(up) < abs(down)) up else down) / step
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
  wide <- mode$wide()
  beta_cov <- if (!is.null(e$h)) solve(wide$info)
  refuse <- function(what) refuse_vecchia("approx", what)
  structure(list(
    value = as.vector(f(par, FALSE)), f = matrix(mode$f), beta = mode$beta, beta_cov = beta_cov,
    predict = function(at, what = "mean", basis = NULL) {
      if (what == "covariance") refuse("the covariance of predictions")
      colnames(at) <- colnames(e$problem$x)
      found <- e$on(function(v) {
        .Call(r_vecchia_latent_predict, v, e$layout$c, mode$values,
              unname(kernel_points(e$kernel, at)), cbind(mode$g, wide$moved), wide$factor)
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
