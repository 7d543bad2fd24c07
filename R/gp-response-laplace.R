# Laplace's approximation of a latent Gaussian process: mode, value, gradient.
#
# With K the covariance matrix (the same for each of d processes), W minus the second derivatives of
# the log density and W = L L' (L lower, d x d for each observation), B = I + L' K L; for d = 1
# Rasmussen and Williams (2006), algorithms 3.1 and 5.1. M = (K + W^-1)^-1 = L B^-1 L' serves
# everything else. Negative elements of W (Student's t) are taken out first and put back as a
# downdate of low rank: M = L B^-1 L' - C C'. Vectors of n d elements have a process after another.

# ---- the matrix M --------------------------------------------------------------------------------

# k with row i times a[i] and column j times b[j].
scale_both <- function(k, a, b) {
  if (!is_cl(k)) return(k * tcrossprod(a, b))
  sweep(sweep(k, 1L, a, `*`), 2L, b, `*`)
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

# list(root, chol (upper, of B), low (C or NULL), half (log determinant of I + K W, halved), solve
# (M x)); NULL if K^-1 + W is not positive definite.
laplace_system <- function(k, w, d) {
  negative <- if (d == 1L) which(w < 0)
  root <- small_roots(if (d == 1L) pmax(w, 0) else w, d)
  b <- bind_blocks(d, function(a, b) {
    Reduce(`+`, lapply(max(a, b):d, function(c) scale_both(k, root[, c, a], root[, c, b])))
  })
  upper <- tryCatch(cl_chol(b, jitter = 1), statcl_error_not_pd = function(e) NULL,
                    statcl_error_nonfinite = function(e) NULL)
  if (is.null(upper)) return(NULL)
  half <- sum(log(as.vector(diag(upper))))
  if (!is.finite(half)) return(NULL)
  plain <- function(x) {
    x <- backsolve(upper, times_root(root, x, TRUE), transpose = TRUE)
    times_root(root, as.matrix(backsolve(upper, x)), FALSE)
  }
  if (length(negative) == 0L) {
    return(list(root = root, chol = upper, half = half, solve = plain))
  }
  down <- sqrt(-w[negative])
  of <- as.matrix(k[, negative, drop = FALSE])
  moved <- plain(of)
  inner <- of[negative, , drop = FALSE] - crossprod(of, moved)
  small <- chol_or_null(diag(length(down)) - inner * tcrossprod(down))
  if (is.null(small)) return(NULL)
  low <- -moved
  low[cbind(negative, seq_along(negative))] <- low[cbind(negative, seq_along(negative))] + 1
  low <- t(backsolve(small, t(low) * down, transpose = TRUE))
  list(root = root, chol = upper, low = low, half = half + sum(log(diag(small))),
       solve = function(x) plain(x) - low %*% crossprod(low, x))
}

# ---- the mode ------------------------------------------------------------------------------------

# The maximum over f = centre + K a + H beta of log p(y | f) - a' K a / 2, by Newton's method with
# steps that are halved until the objective rises; where K^-1 + W is not positive definite, W is
# replaced by a bound for which every step rises (that of expectation and maximisation). NULL if
# there is none.
laplace_mode <- function(k, h, response, own, centre, from) {
  n <- nrow(from)
  d <- response$dims
  times_k <- function(v) as.vector(as.matrix(k %*% matrix(v, n)))
  f <- from
  value <- -Inf
  for (i in 1:200) {
    at <- response_at(response, f, own)
    if (!all(is.finite(at$d1))) return(NULL)
    w <- at$w
    system <- laplace_system(k, w, d)
    exact <- !is.null(system)
    if (!exact && !is.null(at$bound)) {
      w <- at$bound
      system <- laplace_system(k, w, d)
    }
    if (is.null(system)) return(NULL)
    b <- as.vector(at$d1) + times_w(w, f - centre, d)
    a <- b - as.vector(system$solve(times_k(b)))
    beta <- NULL
    if (!is.null(h)) {
      mh <- system$solve(h)
      info <- chol_or_null(crossprod(h, mh))
      if (is.null(info)) return(NULL)
      beta <- backsolve(info, backsolve(info, crossprod(h, a), transpose = TRUE))
      a <- a - as.vector(mh %*% beta)
    }
    new <- list(a = a, g = times_k(a), beta = beta)
    old <- if (i == 1L) list(a = 0 * a, g = 0 * a, beta = beta) else last
    step <- 1
    repeat {
      last <- Map(function(o, v) o + step * (v - o), old, new)
      next_f <- centre + matrix(last$g + if (is.null(h)) 0 else h %*% last$beta, n)
      found <- sum(response_at(response, next_f, own)$l) - sum(last$a * last$g) / 2
      moved <- max(abs(next_f - f)) / (1 + max(abs(f)))
      if (is.finite(found) && (found >= value || moved < 1e-6)) break
      step <- step / 2
      if (step < 1e-12) return(NULL)
    }
    f <- next_f
    value <- found
    if (i > 1L && step == 1 && moved < if (exact) 1e-7 else 1e-11) break
    if (i == 200L) return(NULL)
  }
  at <- response_at(response, f, own)
  system <- laplace_system(k, at$w, d)
  if (is.null(system)) return(NULL)
  c(last, list(f = f, density = sum(at$l), system = system))
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
  points <- function() {
    x <- problem$x
    if (!has_user(kernel) && !forked() && where_for("gp", nrow(x)) >= 0L) as_cl(x) else x
  }
  at <- function(par) {
    par <- check_gp_parameters(par, names, positive)
    at_kernel <- with_parameters(kernel, par[in_kernel])
    x <- points()
    k <- cl_cov(x, kernel = at_kernel)
    own <- par[-in_kernel]
    # from the last mode, where the mode does not depend on the start
    from <- if (is.null(last) || response$family == "student_t") guess else last
    mode <- laplace_mode(k, h, response, own, centre, from)
    if (is.null(mode) && !identical(from, guess)) {
      mode <- laplace_mode(k, h, response, own, centre, guess)
    }
    if (is.null(mode)) return(NULL)
    last <<- mode$f
    c(mode, list(k = k, x = x, kernel = at_kernel, own = own, h = h, centre = centre))
  }
  f <- function(par, gradient = TRUE) {
    mode <- at(par)
    if (is.null(mode)) return(-Inf)
    value <- mode$density - sum(mode$a * mode$g) / 2 - mode$system$half
    if (integrate && !is.null(h)) {
      info <- crossprod(h, mode$system$solve(h))
      value <- value + (ncol(h) * log(2 * pi) - determinant(info)$modulus[1L]) / 2 - log_root
    }
    if (!gradient) return(value)
    structure(value, gradient = stats::setNames(
      latent_gradient(mode, response, integrate && !is.null(h)), names))
  }
  structure(f, class = c("cl_gp_response", "function"))
}

# The next mode is searched from the guess, not from the last one.
forget_mode <- function(f) environment(f)$last <- NULL

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
  d <- response$dims
  n <- nrow(mode$f)
  a <- matrix(mode$a, n)
  at <- response_at(response, mode$f, mode$own, by = TRUE)
  times_k <- function(v) as.vector(as.matrix(k %*% matrix(v, n)))
  inverse <- chol2inv(system$chol)
  rows <- function(c) (c - 1L) * n + seq_len(n)
  part <- function(c, e) { # of L B^-1 L'
    if (d == 1L) return(scale_both(inverse, system$root[, 1L, 1L], system$root[, 1L, 1L]))
    Reduce(`+`, unlist(lapply(seq_len(c), function(i) lapply(seq_len(e), function(j) {
      scale_both(inverse[rows(i), rows(j)], system$root[, c, i], system$root[, e, j])
    })), recursive = FALSE))
  }
  m <- lapply(seq_len(d), function(c) part(c, c))
  left <- 0.5 * a # half of the low-rank part of S
  right <- a
  if (!is.null(system$low)) {
    left <- cbind(left, 0.5 * system$low)
    right <- cbind(right, system$low)
  }
  s <- latent_variances(mode, response, at$w, inverse, m, part)
  if (!is.null(h)) {
    mh <- system$solve(h)
    info <- solve(crossprod(h, mh))
    r <- h - apply(mh, 2L, times_k)
    if (integrate) {
      half <- mh %*% t(chol(info))
      s <- s + block_products(r %*% t(chol(info)), n, d)
      for (c in seq_len(d)) {
        left <- cbind(left, 0.5 * half[rows(c), , drop = FALSE])
        right <- cbind(right, half[rows(c), , drop = FALSE])
      }
    }
  }
  v <- as.vector(at$third(s))
  u <- v - as.vector(system$solve(times_k(v)))
  on_own <- times_k(u)
  if (!is.null(h)) {
    b <- info %*% crossprod(r, v)
    on_own <- times_k(u) + as.vector(r %*% b)
    u <- u - as.vector(mh %*% b)
  }
  u <- matrix(u, n)
  left <- cbind(left, 0.5 * u, 0.5 * a)
  right <- cbind(right, a, u)
  low <- if (is_cl(k)) tcrossprod(as_cl(left), as_cl(right)) else tcrossprod(left, right)
  adjoint <- low - 0.5 * Reduce(`+`, m)
  by_kernel <- cl_cov_adjoint(adjoint, mode$x, kernel = mode$kernel)
  by_own <- vapply(at$by, function(one) {
    sum(one$l) - 0.5 * sum(s * one$w) + sum(on_own * one$d1)
  }, 0)
  c(by_kernel, by_own)
}

# The diagonals of the blocks of (K^-1 + W)^-1: n numbers, or n x d x d. With positive W they are
# (1 - diag B^-1) / W, which is accurate enough for a product with third derivatives, as these are
# of the size of W.
latent_variances <- function(mode, response, w, inverse, m, part) {
  d <- response$dims
  if (d == 1L && is.null(mode$system$low) && min(w) > 0 && response$family != "student_t") {
    return((1 - as.vector(diag(inverse))) / w)
  }
  k <- mode$k
  own <- as.vector(diag(k))
  through <- function(m) as.vector(rowSums((k %*% m) * k))
  if (d == 1L) {
    low <- mode$system$low
    return(own - through(m[[1L]]) +
             if (is.null(low)) 0 else rowSums(as.matrix(k %*% low)^2))
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
