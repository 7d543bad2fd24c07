# The matrix M = (K + W^-1)^-1 of a latent Gaussian process, which serves all of Laplace's
# approximation. With K the covariance matrix (the same for each of d processes), W minus the second
# derivatives of the log density and W = L L' (L lower, d x d for each observation), B = I + L' K L
# and M = L B^-1 L'; for d = 1 Rasmussen and Williams (2006), algorithms 3.1 and 5.1. Negative
# elements of W (Student's t) are taken out first and put back as a downdate of low rank: M - C C'.

# k with row i times a[i] and column j times b[j].
scale_both <- function(k, a, b) {
  if (!is_cl(k)) return(k * tcrossprod(a, b))
  sweep(sweep(k, 1L, a, `*`), 2L, b, `*`)
}

# The addition of 0 copies k: `[<-` would copy a shared matrix while R's collector may not run, and
# a collection that falls due there becomes a full one, which takes longer than the factor.
add_diagonal <- function(k, by) {
  if (is_cl(k)) {
    diag(k) <- as.vector(diag(k)) + by
    return(k)
  }
  at <- seq.int(1L, length(k), nrow(k) + 1L)
  k <- k + 0
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
# inverse of I + W K, and M x)); NULL if K^-1 + W is not positive definite. One process: the factor
# of K + W^-1, with negative elements of W taken out. Several: that of B, and `root`.
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
  half <- log_diagonal(upper) + if (d == 1L) sum(log(kept)) / 2 else 0
  if (only_asks()) half <- 0
  if (!is.finite(half)) return(NULL)
  back <- if (is_cl(upper)) function(...) as.matrix(backsolve(...)) else base::backsolve
  solve <- function(x) {
    if (d > 1L) x <- times_root(root, x, TRUE)
    x <- back(upper, back(upper, x, transpose = TRUE))
    if (d > 1L) times_root(root, x, FALSE) else x
  }
  if (d == 1L && min(w) < 0) return(negative_system(solve, half, kept, k, w))
  shrink <- if (d == 1L) function(b, x = NULL) solve(cbind(b / kept, x)) else
    function(b, x = NULL) {
      solved <- solve(cbind(as.vector(as.matrix(k %*% matrix(b, nrow(k)))), x))
      solved[, 1L] <- b - solved[, 1L]
      solved
    }
  list(root = root, chol = upper, half = half, solve = solve, shrink = shrink)
}

log_diagonal <- function(upper) {
  sum(log(if (is_cl(upper)) as.vector(diag(upper)) else
    upper[seq.int(1L, length(upper), nrow(upper) + 1L)]))
}

# The system with the elements of W that are negative, from that without them.
negative_system <- function(solve_others, half, kept, k, w) {
  negative <- which(w < 0)
  at <- cbind(negative, seq_along(negative))
  down <- sqrt(-w[negative])
  of <- as.matrix(k[, negative, drop = FALSE])
  moved <- solve_others(of)
  inner <- -tcrossprod(down) * (of[negative, , drop = FALSE] - base::crossprod(of, moved))
  small <- chol_or_null(add_diagonal(inner, 1))
  if (is.null(small)) return(NULL)
  low <- -moved
  low[at] <- low[at] + 1
  low <- t(base::backsolve(small, t(low) * down, transpose = TRUE))
  solve <- function(x) solve_others(x) - low %*% base::crossprod(low, x)
  kept[negative] <- pmin(w[negative], -1e-100)
  list(half = half + log_diagonal(small), solve = solve,
       shrink = function(b, x = NULL) solve(cbind(b / kept, x)))
}
