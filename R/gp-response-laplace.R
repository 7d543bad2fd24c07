# Laplace's approximation of a latent Gaussian process: mode, value, gradient, by the matrices of
# gp-response-matrix.R. Vectors of n d elements have a process after another.
#
# With negative W the determinant of B comes close to zero where a mode is about to vanish, and the
# approximate likelihood to infinity. For Student's t a positive V, the same at all modes, replaces
# W in it: `system` is that of W, for the mode and its derivatives, `spread` that of V.

# ---- the mode ------------------------------------------------------------------------------------

# A maximum of log p(y | f) - g' K^-1 g / 2 for f = centre + g + H beta: list(f, a (K^-1 g), g,
# beta, at (response_at()), value (minus the maximum), and the spreads `system`, of W, `spread`, of
# V, and wide(), of `wide`); NULL if there is none. step(f, at, w): where Newton's method with the
# curvatures w leads, list(f, a, g, beta, spread), or NULL if K^-1 + w is not positive definite;
# square(point): g' K^-1 g. From the first of `starts`, functions that give values f, that leads to
# one; densities that are not concave may have several maxima: the higher one of those from the
# first `most` starts that lead to any.
latent_mode <- function(response, aux, step, square, starts, most) {
  best <- NULL
  found <- 0L
  for (start in starts) {
    from <- start()
    mode <- if (!is.null(from)) climb_latent(response, aux, step, square, from, best)
    if (is.null(mode)) next
    found <- found + 1L
    if (is.null(best) || mode$value < best$value) best <- mode
    if (found == most) break
  }
  if (is.null(best)) return(NULL)
  best$system <- best$step$new$spread
  with <- function(w) if (is.null(best$at$wide)) best$system else step(best$f, best$at, w)$spread
  best$wide <- function() with(best$at$wide)
  best$spread <- with(best$at$v)
  if (!is.null(best$spread)) best
}

# One of them, or `known` if the search comes near it. Where K^-1 + W is not positive definite, a
# positive matrix replaces W, with which steps lead upwards too.
climb_latent <- function(response, aux, step, square, from, known) {
  concave <- family_row(response$family)$concave
  newton <- function(f, at, exact) {
    if (exact) step(f, at, at$w) else if (!concave) step(f, at, pmax(at$w, at$wide))
  }
  visit <- function(point) {
    point$at <- response_at(response, point$f, aux)
    fine <- all(is.finite(point$at$d1)) && all(is.finite(point$at$w))
    point$value <- if (fine) square(point) / 2 - sum(point$at$l) else Inf
    point
  }
  between <- function(from, to, size) {
    list(f = from$f + size * (to$f - from$f), a = from$a + size * (to$a - from$a),
         g = from$g + size * (to$g - from$g), beta = from$beta + size * (to$beta - from$beta))
  }
  at <- response_at(response, from, aux)
  if (!all(is.finite(at$d1))) return(NULL)
  first <- newton(from, at, TRUE)
  if (is.null(first)) first <- newton(from, at, FALSE)
  if (is.null(first)) return(NULL)
  mean <- list(f = first$f - first$g, a = 0 * first$a, g = 0 * first$g, beta = first$beta)
  for (halved in 0:40) {
    now <- visit(between(mean, first, 2^-halved))
    if (is.finite(now$value)) break
  }
  met <- FALSE
  found <- newton_mode(list(function() now), function(now, exact) {
    met <<- !is.null(known) && max(abs(now$f - known$f)) < 0.05 * aux[[1L]]
    new <- if (!met) newton(now$f, now$at, exact)
    if (is.null(new)) return(NULL)
    list(new = new, decrement = sum(now$at$d1 * (new$f - now$f)) - sum(now$a * (new$g - now$g)))
  }, function(now, step, size) visit(between(now, step$new, size)))
  if (met) known else found
}

# The step by dense matrices; `spread` is the system. NULL also if the coefficients are not
# determined.
dense_step <- function(k, h, centre, d) {
  function(f, at, w) {
    system <- laplace_system(k, w, d)
    if (is.null(system)) return(NULL)
    n <- nrow(k)
    solved <- system$shrink(as.vector(at$d1) + times_w(w, f - centre, d), h)
    a <- solved[, 1L]
    beta <- numeric()
    trend <- 0
    if (!is.null(h)) {
      mh <- solved[, -1L, drop = FALSE]
      info <- base::crossprod(h, mh)
      root <- chol_or_null(info)
      if (is.null(root)) return(NULL)
      beta <- base::backsolve(root, base::backsolve(root, base::crossprod(h, a), transpose = TRUE))
      a <- a - as.vector(mh %*% beta)
      trend <- as.vector(h %*% beta)
    }
    g <- as.vector(as.matrix(k %*% matrix(a, n)))
    list(f = matrix(centre + g + trend, n), a = a, g = g, beta = beta,
         spread = c(system, if (!is.null(h)) list(info = info)))
  }
}

# Near a mode of Student's t that no single observation determines: from the median (or a known
# mean) a step for each of several scales, from one at which no observation is an outlier down to
# the true one.
robust_start <- function(response, aux, centre, step) {
  y <- response$y - response$offset
  f <- matrix(if (is.null(centre)) stats::median(y) else centre, length(y))
  far <- max(1, abs(y - f[, 1L]) / (sqrt(aux[[2L]]) * aux[[1L]]))
  for (wider in far^c(1, 0.75, 0.5, 0.25)) {
    at <- response_at(response, f, c(aux[[1L]] * wider, aux[[2L]]))
    to <- step(f, at, pmax(at$w, at$wide))
    if (is.null(to)) break
    f <- to$f
  }
  f
}

# W v.
times_w <- function(w, v, d) {
  if (d == 1L) return(w * as.vector(v))
  as.vector(vapply(seq_len(d), function(a) {
    Reduce(`+`, lapply(seq_len(d), function(b) w[, a, b] * v[, b]))
  }, numeric(nrow(v))))
}

# ---- the approximate likelihood ------------------------------------------------------------------

# A function of the parameters as that of cl_gp_likelihood(): the approximate log marginal
# likelihood, with coefficients at the joint mode or integrated out, and its gradient. The latent
# process, dense_process() or vecchia_process(), is a function of the kernel's parameters that gives
# list(step, square, gradient) and what is needed later, or NULL.
make_gp_response <- function(problem) {
  response <- problem$response
  kernel <- problem$kernel
  aux_names <- response_rows(response, 1)$name
  names <- c(names(coef(kernel)), aux_names)
  in_kernel <- seq_along(coef(kernel))
  positive <- c(kernel_positive(kernel), rep(TRUE, length(aux_names)))
  d <- response$dims
  h <- response_basis(problem$mean, length(problem$y), d)
  integrate <- identical(problem$beta, "integrate") && !is.null(h)
  centre <- if (problem$mean$kind == "number") problem$mean$value else 0
  log_root <- d * mean_constant(problem$mean, problem$beta)
  guess <- response_guess(response)
  concave <- family_row(response$family)$concave
  process <- if (is.null(problem$vecchia)) dense_process(problem, h, centre) else
    vecchia_process(problem, h, centre)
  last <- NULL
  tried <- NULL # parameters at which two starts were tried
  kept <- NULL # the last result of at(), until the next
  # `quick`: for a value next to the last one, or only to compare it with others
  at <- function(par, quick = FALSE) {
    par <- check_gp_parameters(par, names, positive)
    if (identical(par, kept$par) && (quick || !kept$quick)) return(kept)
    kept <<- NULL
    now <- process(par[in_kernel])
    if (is.null(now)) return(NULL)
    aux <- par[-in_kernel]
    # Student's t: with the best mode of these, only those next to it are searched for a while
    again <- !concave && !quick &&
      (is.null(last) || any(abs(par - tried) > 0.1 * abs(tried)))
    starts <- list(function() last, if (!concave) function() {
      robust_start(response, aux, if (is.null(h)) centre, now$step)
    }, function() guess)
    mode <- latent_mode(response, aux, now$step, now$square, Filter(Negate(is.null), starts),
                        if (again) 2L else 1L)
    if (is.null(mode)) return(NULL)
    if (!quick) last <<- mode$f
    if (again) tried <<- par
    kept <<- c(mode, now, list(aux = aux, par = par, quick = quick, engine = session$chosen$gp))
    kept
  }
  value_at <- function(par, quick) {
    mode <- at(par, quick)
    if (is.null(mode)) return(-Inf)
    -mode$value - mode$spread$half + if (integrate) {
      (ncol(h) * log(2 * pi) - determinant(mode$spread$info)$modulus[1L]) / 2 - log_root
    } else 0
  }
  evaluate <- function(par, gradient) {
    value <- value_at(par, !gradient)
    if (!gradient || !is.finite(value)) return(value)
    slope <- if (is.null(problem$vecchia)) latent_gradient(kept, response, h, integrate) else
      value_differences(value_at, par, value, positive, !concave, length(problem$y))
    structure(value, gradient = stats::setNames(slope, names))
  }
  f <- function(par, gradient = TRUE) {
    if (!may_move_points(problem)) return(evaluate(par, gradient))
    fit_on_engine("gp", nrow(problem$x), function() {
      asks <- only_asks()
      if (asks) {
        before <- list(last, tried, kept)
        on.exit({
          last <<- before[[1L]]
          tried <<- before[[2L]]
          kept <<- before[[3L]]
        })
      }
      if (!identical(session$chosen$gp, kept$engine)) kept <<- NULL
      evaluate(par, gradient || asks)
    }, kind = paste("laplace", response$family, gradient), whole = TRUE)
  }
  structure(f, class = c(if (!is.null(problem$vecchia)) "cl_gp_response_vecchia",
                         "cl_gp_response", "function"))
}

# The next mode is searched from the guess, not from the last one.
forget_mode <- function(f) {
  e <- environment(f)
  e$last <- e$kept <- e$tried <- NULL
}

# The inputs where the covariance matrix is computed.
latent_points <- function(problem) {
  x <- problem$x
  if (may_move_points(problem) && is_on_device("gp", nrow(x))) as_cl(x) else x
}

may_move_points <- function(problem) {
  !has_user(problem$kernel) && !forked() && is.null(problem$vecchia) && !is_cl(problem$x)
}

dense_process <- function(problem, h, centre) {
  function(par) {
    x <- latent_points(problem)
    at_kernel <- with_parameters(problem$kernel, par)
    k <- cl_cov(x, kernel = at_kernel)
    list(step = dense_step(k, h, centre, problem$response$dims),
         square = function(point) sum(point$a * point$g), k = k, x = x, kernel = at_kernel)
  }
}

# H for all processes, n d rows; NULL for a known mean.
response_basis <- function(trend, n, d) {
  if (trend$kind == "number") return(NULL)
  kronecker(diag(d), if (is.null(trend$basis)) matrix(1, n, 1L) else trend$basis)
}

# With v = d log|B| / d f (times -1/2) and f's own derivative (I + K W)^-1 dK a, all of the gradient
# in K is that of sum(S * dK) for one symmetric matrix S.
latent_gradient <- function(mode, response, h, integrate) {
  k <- mode$k
  system <- mode$system
  spread <- mode$spread
  d <- response$dims
  n <- nrow(mode$f)
  a <- matrix(mode$a, n)
  at <- response_at(response, mode$f, mode$aux, by = TRUE)
  times_k <- function(v) as.matrix(k %*% matrix(v, n))
  inverse <- chol2inv(spread$chol)
  rows <- function(c) (c - 1L) * n + seq_len(n)
  part <- function(c, e) { # of L B^-1 L'
    if (d == 1L) return(inverse)
    Reduce(`+`, unlist(lapply(seq_len(c), function(i) lapply(seq_len(e), function(j) {
      scale_both(inverse[rows(i), rows(j)], spread$root[, c, i], spread$root[, e, j])
    })), recursive = FALSE))
  }
  m <- lapply(seq_len(d), function(c) part(c, c))
  left <- 0.5 * a # half of the low-rank part of S
  right <- a
  s <- latent_variances(k, at$v, m, part)
  if (integrate) {
    one <- trend_parts(spread, h, times_k)
    root <- t(chol(one$info))
    s <- s + block_products(one$r %*% root, n, d)
    half <- one$mh %*% root
    for (c in seq_len(d)) {
      left <- cbind(left, 0.5 * half[rows(c), , drop = FALSE])
      right <- cbind(right, half[rows(c), , drop = FALSE])
    }
  }
  v <- as.vector(at$third(s))
  moves <- any(v != 0) # V with the mode
  u <- if (moves) as.vector(system$shrink(v)) else v
  on_aux <- if (length(at$by) > 0L) if (moves) as.vector(times_k(u)) else u
  if (!is.null(h) && moves) {
    if (!integrate) one <- trend_parts(system, h, times_k)
    b <- one$info %*% crossprod(one$r, v)
    if (!is.null(on_aux)) on_aux <- on_aux + as.vector(one$r %*% b)
    u <- u - as.vector(one$mh %*% b)
  }
  u <- matrix(u, n)
  left <- cbind(left, 0.5 * u, 0.5 * a)
  right <- cbind(right, a, u)
  low <- if (is_cl(k)) tcrossprod(as_cl(left), as_cl(right)) else tcrossprod(left, right)
  adjoint <- low - 0.5 * Reduce(`+`, m)
  by_kernel <- cl_cov_adjoint(adjoint, mode$x, kernel = mode$kernel)
  by_aux <- vapply(at$by, function(one) {
    sum(one$l) - 0.5 * sum(s * one$v) + sum(on_aux * one$d1)
  }, 0)
  c(by_kernel, by_aux)
}

# M H, the inverse of H' M H, and H - K M H.
trend_parts <- function(system, h, times_k) {
  mh <- system$solve(h)
  list(mh = mh, info = solve(crossprod(h, mh)), r = h - apply(mh, 2L, times_k))
}

# The diagonals of the blocks of (K^-1 + V)^-1: n numbers, or n x d x d. For one process they are
# (1 - diag(M) / V) / V, which is accurate enough for a product with derivatives of V, as these are
# of its size.
latent_variances <- function(k, v, m, part) {
  own <- as.vector(diag(k))
  through <- function(m) as.vector(rowSums((k %*% m) * k))
  d <- length(m)
  if (d == 1L) {
    if (min(v) > 0) return((1 - as.vector(diag(m[[1L]])) / v) / v)
    return(own - through(m[[1L]]))
  }
  s <- array(0, c(length(own), d, d))
  for (c in seq_len(d)) for (e in seq_len(c)) {
    v <- -through(if (c == e) m[[c]] else part(c, e))
    s[, c, e] <- s[, e, c] <- v + if (c == e) own else 0
  }
  s
}

# The same blocks of v v' for v with n d rows.
block_products <- function(v, n, d) {
  if (d == 1L) return(rowSums(v^2))
  s <- array(0, c(n, d, d))
  rows <- function(c) (c - 1L) * n + seq_len(n)
  for (c in seq_len(d)) for (e in seq_len(d)) s[, c, e] <- rowSums(v[rows(c), ] * v[rows(e), ])
  s
}
