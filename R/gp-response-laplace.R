# Laplace's approximation of a latent Gaussian process: mode, value, gradient.
#
# With K the covariance matrix (the same for each of d processes), W minus the second derivatives of
# the log density and W = L L' (L lower, d x d for each observation), B = I + L' K L; for d = 1
# Rasmussen and Williams (2006), algorithms 3.1 and 5.1. M = (K + W^-1)^-1 = L B^-1 L' serves
# everything else. Negative elements of W (Student's t) are taken out first and put back as a
# downdate of low rank: M - C C'. Vectors of n d elements have a process after another.
#
# With negative W the determinant of B comes close to zero where a mode is about to vanish, and the
# approximate likelihood to infinity. For Student's t a positive V, the same at all modes, replaces
# W in it: `system` is that of W, for the mode and its derivatives, `spread` that of V.

# ---- the matrix M --------------------------------------------------------------------------------

# k with row i times a[i] and column j times b[j].
scale_both <- function(k, a, b) {
  if (!is_cl(k)) return(k * tcrossprod(a, b))
  sweep(sweep(k, 1L, a, `*`), 2L, b, `*`)
}

add_diagonal <- function(k, by) {
  if (is_cl(k)) {
    diag(k) <- as.vector(diag(k)) + by
    return(k)
  }
  at <- seq.int(1L, length(k), nrow(k) + 1L)
  k[at] <- k[at] + by
  k
}

# Lower factors of n matrices d x d, positive semidefinite up to rounding: n x d x d.
small_roots <- function(w, d) {
  if (d == 1L) return(array(sqrt(w), c(length(w), 1L, 1L)))
  root <- array(0, dim(w))
  for (j in seq_len(d)) for (i in j:d) {
    v <- w[, i, j]
    for (k in seq_len(j - 1L)) v <- v - root[, i, k] * root[, j, k]
    root[, i, j] <- if (i == j) sqrt(pmax(v, 0)) else
      ifelse(root[, j, j] > 0, v / root[, j, j], 0)
  }
  root
}

# L' x, or L x, for x with n d rows.
times_root <- function(root, x, transpose) {
  d <- dim(root)[2L]
  x <- as.matrix(x)
  if (d == 1L) return(root[, 1L, 1L] * x)
  n <- dim(root)[1L]
  rows <- function(c) (c - 1L) * n + seq_len(n)
  do.call(rbind, lapply(seq_len(d), function(a) {
    Reduce(`+`, lapply(if (transpose) a:d else seq_len(a), function(c) {
      (if (transpose) root[, c, a] else root[, a, c]) * x[rows(c), , drop = FALSE]
    }))
  }))
}

bind_blocks <- function(d, block) {
  if (d == 1L) return(block(1L, 1L))
  do.call(rbind, lapply(seq_len(d), function(a) {
    do.call(cbind, lapply(seq_len(d), function(b) block(a, b)))
  }))
}

# list(chol (upper), half (log determinant of I + K W, halved), solve (M x), shrink (b times the
# inverse of I + W K)); NULL if K^-1 + W is not positive definite. One process: the factor of
# K + W^-1, with negative elements of W taken out. Several: that of B, and `root`.
laplace_system <- function(k, w, d) {
  root <- NULL
  if (d == 1L) {
    kept <- pmax(w, 1e-100)
    b <- add_diagonal(k, 1 / kept)
  } else {
    root <- small_roots(w, d)
    b <- bind_blocks(d, function(a, b) {
      Reduce(`+`, lapply(max(a, b):d, function(c) scale_both(k, root[, c, a], root[, c, b])))
    })
  }
  upper <- tryCatch(cl_chol(b, jitter = if (d == 1L) 0 else 1),
                    statcl_error_not_pd = function(e) NULL,
                    statcl_error_nonfinite = function(e) NULL)
  if (is.null(upper)) return(NULL)
  half <- sum(log(as.vector(diag(upper)))) + if (d == 1L) sum(log(kept)) / 2 else 0
  if (!is.finite(half)) return(NULL)
  solve <- function(x) {
    if (d > 1L) x <- times_root(root, x, TRUE)
    x <- as.matrix(backsolve(upper, backsolve(upper, x, transpose = TRUE)))
    if (d > 1L) times_root(root, x, FALSE) else x
  }
  shrink <- if (d == 1L) function(b) solve(b / kept) else
    function(b) b - solve(as.vector(as.matrix(k %*% matrix(b, nrow(k)))))
  system <- list(root = root, chol = upper, half = half, solve = solve, shrink = shrink)
  if (d == 1L && min(w) < 0) negative_system(system, k, w) else system
}

# The system with the elements of W that are negative.
negative_system <- function(system, k, w) {
  negative <- which(w < 0)
  down <- sqrt(-w[negative])
  of <- as.matrix(k[, negative, drop = FALSE])
  moved <- system$solve(of)
  inner <- of[negative, , drop = FALSE] - crossprod(of, moved)
  small <- chol_or_null(diag(length(down)) - inner * tcrossprod(down))
  if (is.null(small)) return(NULL)
  low <- -moved
  low[cbind(negative, seq_along(negative))] <- low[cbind(negative, seq_along(negative))] + 1
  low <- t(backsolve(small, t(low) * down, transpose = TRUE))
  solve <- function(x) system$solve(x) - low %*% crossprod(low, x)
  list(half = system$half + sum(log(diag(small))), solve = solve,
       shrink = function(b) b - solve(as.matrix(k %*% b)))
}

# ---- the mode ------------------------------------------------------------------------------------

# A maximum over f = centre + K a + H beta of log p(y | f) - a' K a / 2, by Newton's method from the
# first of `starts` that leads to one. Student's t may have several: the highest one of those from
# all starts. NULL if there is none.
laplace_mode <- function(k, h, response, own, centre, starts) {
  best <- NULL
  for (from in starts) {
    mode <- climb_mode(k, h, response, own, centre, from)
    if (!is.null(mode) && (is.null(best) || mode$height > best$height)) best <- mode
    if (!is.null(best) && response$family != "student_t") break
  }
  if (is.null(best)) return(NULL)
  best$spread <- if (is.null(best$wide)) best$system else laplace_system(k, best$v, 1L)
  if (!is.null(best$spread)) best
}

# Newton's method with steps that are halved until the objective rises. Where K^-1 + W is not
# positive definite, a positive matrix replaces W, with which steps lead upwards too.
climb_mode <- function(k, h, response, own, centre, from) {
  d <- response$dims
  student <- response$family == "student_t"
  f <- from
  value <- -Inf
  last <- NULL
  moved_to <- function(v) centre + matrix(v$g + if (is.null(h)) 0 else h %*% v$beta, nrow(f))
  change <- function(to) max(abs(to - f)) / (1 + max(abs(f)))
  right_side <- function(at, w) as.vector(at$d1) + times_w(w, f - centre, d)
  step_by <- function(at, w) {
    system <- laplace_system(k, w, d)
    if (!is.null(system)) mode_step(k, h, system, right_side(at, w))
  }
  for (i in 1:200) {
    at <- response_at(response, f, own)
    if (!all(is.finite(at$d1))) return(NULL)
    new <- step_by(at, at$w)
    exact <- !is.null(new)
    if (!exact && student) new <- step_by(at, pmax(at$w, at$wide))
    if (is.null(new)) return(NULL)
    old <- if (is.null(last)) list(a = 0 * new$a, g = 0 * new$g, beta = new$beta) else last
    step <- 1
    repeat {
      last <- Map(function(o, v) o + step * (v - o), old, new)
      next_f <- moved_to(last)
      found <- sum(response_at(response, next_f, own)$l) - sum(last$a * last$g) / 2
      if (is.finite(found) && (found >= value || change(next_f) < 1e-6)) break
      step <- step / 2
      if (step < 1e-12) return(NULL)
    }
    done <- exact && step == 1 && change(next_f) < 1e-5
    f <- next_f
    value <- found
    if (done) break
    if (i == 200L) return(NULL)
  }
  # the error is now of the order of the square of the last step, or less after one more with W here
  at <- response_at(response, f, own)
  system <- laplace_system(k, at$w, d)
  new <- if (!is.null(system)) mode_step(k, h, system, right_side(at, at$w))
  if (is.null(new) && student) new <- last
  if (is.null(new)) return(NULL)
  f <- moved_to(new)
  at <- response_at(response, f, own)
  c(new, list(f = f, height = sum(at$l) - sum(new$a * new$g) / 2, v = at$v, wide = at$wide,
              system = system))
}

# Where Newton's method with the curvatures of `system` leads: list(a, g = K a, beta); NULL if the
# coefficients are not determined.
mode_step <- function(k, h, system, b) {
  a <- as.vector(system$shrink(b))
  beta <- NULL
  if (!is.null(h)) {
    mh <- system$solve(h)
    info <- chol_or_null(crossprod(h, mh))
    if (is.null(info)) return(NULL)
    beta <- backsolve(info, backsolve(info, crossprod(h, a), transpose = TRUE))
    a <- a - as.vector(mh %*% beta)
  }
  list(a = a, g = as.vector(as.matrix(k %*% matrix(a, nrow(k)))), beta = beta)
}

# Near a mode of Student's t that no single observation determines: from the median (or a known
# mean) a step for each of several scales, from one at which no observation is an outlier down to
# the true one. step(f, at, w): where Newton's method with the curvatures w leads.
robust_start <- function(response, own, centre, step) {
  y <- response$y - response$offset
  f <- matrix(if (is.null(centre)) stats::median(y) else centre, length(y))
  far <- max(1, abs(y - f[, 1L]) / (sqrt(own[[2L]]) * own[[1L]]))
  for (wider in far^c(1, 0.75, 0.5, 0.25)) {
    at <- response_at(response, f, c(own[[1L]] * wider, own[[2L]]))
    next_f <- step(f[, 1L], at, pmax(at$w, at$wide))
    if (is.null(next_f)) break
    f <- matrix(next_f)
  }
  f
}

# Its step by dense matrices.
robust_step <- function(k, h, centre) function(f, at, w) {
  system <- laplace_system(k, w, 1L)
  new <- if (!is.null(system)) mode_step(k, h, system, at$d1[, 1L] + w * (f - centre))
  if (!is.null(new)) centre + new$g + if (is.null(h)) 0 else as.vector(h %*% new$beta)
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
# likelihood, with coefficients at the joint mode or integrated out, and its gradient.
make_gp_response <- function(problem) {
  response <- problem$response
  kernel <- problem$kernel
  own_names <- response_rows(response, 1)$name
  names <- c(names(coef(kernel)), own_names)
  in_kernel <- seq_along(coef(kernel))
  positive <- c(kernel_positive(kernel), rep(TRUE, length(own_names)))
  integrate <- identical(problem$beta, "integrate")
  d <- response$dims
  h <- response_basis(problem$mean, length(problem$y), d)
  centre <- if (problem$mean$kind == "number") problem$mean$value else 0
  log_root <- d * mean_constant(problem$mean, problem$beta)
  guess <- response_guess(response)
  last <- NULL
  kept <- NULL # the last result of at(), until the next
  points <- function() {
    x <- problem$x
    if (!has_user(kernel) && !forked() && where_for("gp", nrow(x)) >= 0L) as_cl(x) else x
  }
  at <- function(par) {
    par <- check_gp_parameters(par, names, positive)
    if (identical(par, kept$par)) return(kept)
    kept <<- NULL
    at_kernel <- with_parameters(kernel, par[in_kernel])
    x <- points()
    k <- cl_cov(x, kernel = at_kernel)
    own <- par[-in_kernel]
    starts <- list(last, guess)
    if (response$family == "student_t") {
      starts <- c(starts, list(robust_start(response, own, if (is.null(h)) centre,
                                            robust_step(k, h, centre))))
    }
    mode <- laplace_mode(k, h, response, own, centre, Filter(Negate(is.null), starts))
    if (is.null(mode)) return(NULL)
    last <<- mode$f
    kept <<- c(mode, list(k = k, x = x, kernel = at_kernel, own = own, h = h, centre = centre,
                          par = par))
    kept
  }
  f <- function(par, gradient = TRUE) {
    mode <- at(par)
    if (is.null(mode)) return(-Inf)
    value <- mode$height - mode$spread$half
    if (integrate && !is.null(h)) {
      solved <- mode$spread$solve(h)
      info <- crossprod(h, solved)
      value <- value + (ncol(h) * log(2 * pi) - determinant(info)$modulus[1L]) / 2 - log_root
    }
    if (!gradient) return(value)
    structure(value, gradient = stats::setNames(
      latent_gradient(mode, response, integrate && !is.null(h)), names))
  }
  structure(f, class = c("cl_gp_response", "function"))
}

# The next mode is searched from the guess, not from the last one.
forget_mode <- function(f) {
  e <- environment(f)
  e$last <- e$kept <- NULL
}

# H for all processes, n d rows; NULL for a known mean.
response_basis <- function(trend, n, d) {
  if (trend$kind == "number") return(NULL)
  kronecker(diag(d), if (is.null(trend$basis)) matrix(1, n, 1L) else trend$basis)
}

# With v = d log|B| / d f (times -1/2) and f's own derivative (I + K W)^-1 dK a, all of the gradient
# in K is that of sum(S * dK) for one symmetric matrix S.
latent_gradient <- function(mode, response, integrate) {
  k <- mode$k
  h <- mode$h
  system <- mode$system
  spread <- mode$spread
  d <- response$dims
  n <- nrow(mode$f)
  a <- matrix(mode$a, n)
  at <- response_at(response, mode$f, mode$own, by = TRUE)
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
  on_own <- if (length(at$by) > 0L) if (moves) as.vector(times_k(u)) else u
  if (!is.null(h) && moves) {
    if (!integrate) one <- trend_parts(system, h, times_k)
    b <- one$info %*% crossprod(one$r, v)
    if (!is.null(on_own)) on_own <- on_own + as.vector(one$r %*% b)
    u <- u - as.vector(one$mh %*% b)
  }
  u <- matrix(u, n)
  left <- cbind(left, 0.5 * u, 0.5 * a)
  right <- cbind(right, a, u)
  low <- if (is_cl(k)) tcrossprod(as_cl(left), as_cl(right)) else tcrossprod(left, right)
  adjoint <- low - 0.5 * Reduce(`+`, m)
  by_kernel <- cl_cov_adjoint(adjoint, mode$x, kernel = mode$kernel)
  by_own <- vapply(at$by, function(one) {
    sum(one$l) - 0.5 * sum(s * one$v) + sum(on_own * one$d1)
  }, 0)
  c(by_kernel, by_own)
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
