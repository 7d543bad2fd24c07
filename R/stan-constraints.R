# Constraints of parameters of Stan programs, as in the Stan Reference Manual, chapter "Constraint
# Transforms": from unconstrained numbers to values with the logarithm of the Jacobian determinant
# (`st_*`, also for traced values), back again, and checks of data.

# ---- shapes --------------------------------------------------------------------------------------

# Numbers in Stan's order (array elements row by row, each with its own numbers by columns) in the
# shape with these array dimensions and those of each element.
st_arrange <- function(x, outer, inner) {
  shape <- c(outer, inner)
  if (length(shape) < 2L) return(x)
  if (length(outer) == 0L) return(stan_elements(x, seq_along(x), shape))
  stan_elements(x, st_order(outer, inner), shape)
}

st_order <- function(outer, inner) {
  m <- length(outer)
  k <- length(inner)
  at <- array(seq_len(prod(outer, inner)), c(inner, rev(outer)))
  as.vector(aperm(at, c(k + rev(seq_len(m)), seq_len(k))))
}

# ---- transforms ----------------------------------------------------------------------------------

# list(value, log Jacobian) of a parameter; `spec`: list(kind, outer, inner, free: how many numbers
# each array element needs).
st_constrain <- function(u, spec, lower = -Inf, upper = Inf, offset = 0, multiplier = 1) {
  if (spec$kind %in% c("none", "range", "offset")) {
    x <- st_arrange(u, spec$outer, spec$inner)
    if (spec$kind == "none") return(list(x, 0))
    if (spec$kind == "range") return(st_range(x, lower, upper))
    scale <- if (length(multiplier) == 1L) length(u) * log(multiplier) else sum(log(multiplier))
    return(list(offset + multiplier * x, scale))
  }
  n <- prod(spec$outer)
  parts <- vector("list", n)
  jacobian <- 0
  for (i in seq_len(n)) {
    one <- st_element(u[(i - 1) * spec$free + seq_len(spec$free)], spec$kind, spec$inner)
    parts[[i]] <- as.vector(one[[1L]])
    jacobian <- jacobian + one[[2L]]
  }
  all <- if (n == 1L) parts[[1L]] else if (n == 0L) numeric() else do.call("c", parts)
  list(st_arrange(all, spec$outer, spec$inner), jacobian)
}

# An infinite bound of data is no bound.
st_range <- function(x, lower, upper) {
  none <- function(bound) !is_traced(bound) && all(is.infinite(bound))
  if (none(lower) && none(upper)) return(list(x, 0))
  if (none(upper)) {
    from_zero <- !is_traced(lower) && identical(lower, 0)
    return(list(if (from_zero) exp(x) else lower + exp(x), sum(x)))
  }
  if (none(lower)) return(list(upper - exp(x), sum(x)))
  width <- upper - lower
  scale <- if (length(width) == 1L) length(x) * log(width) else sum(log(width))
  share <- if (is_traced(x)) cl_inv_logit(x) else stats::plogis(x) # of any number of dimensions
  x <- if (is_traced(x)) x else as.vector(x)
  list(lower + width * share, sum(-cl_log1p_exp(x) - cl_log1p_exp(-x)) + scale)
}

# One array element.
st_element <- function(u, kind, inner) {
  switch(kind,
    ordered = list(cumsum(c(u[1L], exp(u[-1L]))), sum(u[-1L])),
    positive_ordered = list(cumsum(exp(u)), sum(u)),
    simplex = st_simplex(u),
    unit_vector = list(u / sqrt(sum(u^2)), -0.5 * sum(u^2)),
    sum_to_zero = st_zero_sum(u, inner),
    cholesky_factor_corr = st_corr_factor(u, inner[1L]),
    corr_matrix = st_corr_matrix(u, inner[1L]),
    cov_matrix = st_cov_matrix(u, inner[1L]),
    cholesky_factor_cov = st_cov_factor(u, inner),
    column_stochastic = st_stochastic(u, inner, 2L),
    row_stochastic = st_stochastic(u, inner, 1L))
}

# Stick breaking.
st_simplex <- function(u) {
  n <- length(u)
  if (n == 0L) return(list(1, 0))
  u <- u - log(n:1)
  share <- -cl_log1p_exp(-u)
  rest <- -cl_log1p_exp(u)
  left <- cumsum(rest)
  before <- if (n == 1L) 0 else c(0, left[-n])
  list(exp(c(share + before, left[n])), sum(before + share + rest))
}

# n x (n - 1): Stan's basis of vectors with sum zero.
st_zero_basis <- function(n) {
  b <- matrix(0, n, n - 1L)
  for (k in seq_len(n - 1L)) {
    w <- 1 / sqrt(k * (k + 1))
    b[seq_len(k), k] <- w
    b[k + 1L, k] <- -w * k
  }
  b
}

st_zero_sum <- function(u, inner) {
  if (length(inner) == 1L) return(list(as.vector(st_zero_basis(inner) %*% u), 0))
  dim(u) <- inner - 1L
  list(st_zero_basis(inner[1L]) %*% tcrossprod(u, st_zero_basis(inner[2L])), 0)
}

# Positions in a lower triangle by columns, in the order of its elements by rows.
st_by_columns <- function(n, diagonal) {
  at <- matrix(0, n, n)
  keep <- upper.tri(at, diagonal)
  at[keep] <- seq_len(sum(keep)) # of the transposed matrix by columns
  at <- t(at)
  at[lower.tri(at, diagonal)]
}

st_corr_factor <- function(u, n) {
  if (n < 2L) return(list(matrix(1, n, n), 0))
  f <- corr_factor(u[st_by_columns(n, FALSE)])
  list(f$l, corr_factor_jacobian(f))
}

st_corr_matrix <- function(u, n) {
  if (n < 2L) return(list(matrix(1, n, n), 0))
  f <- corr_factor(u)
  k <- seq_len(n - 1L)
  list(tcrossprod(f$l), corr_factor_jacobian(f) + sum((n - k) * log(diag(f$l)[k])))
}

# A matrix m x n whose lower triangle has the numbers u, by rows, with exponentials on the diagonal.
st_triangle <- function(u, m, n) {
  at <- matrix(0, n, m)
  keep <- row(at) <= col(at)
  at[keep] <- seq_len(sum(keep))
  at <- t(at)
  ends <- at[cbind(seq_len(min(m, n)), seq_len(min(m, n)))]
  l <- matrix(0, m, n)
  below <- row(l) > col(l)
  if (any(below)) l[which(below)] <- u[at[below]]
  l[seq_along(ends) + m * (seq_along(ends) - 1)] <- exp(u[ends])
  list(l = l, log_diagonal = u[ends])
}

st_cov_matrix <- function(u, n) {
  f <- st_triangle(u, n, n)
  list(tcrossprod(f$l), n * log(2) + sum((n + 2 - seq_len(n)) * f$log_diagonal))
}

st_cov_factor <- function(u, inner) {
  f <- st_triangle(u, inner[1L], inner[2L])
  list(f$l, sum(f$log_diagonal))
}

st_stochastic <- function(u, inner, margin) {
  n <- inner[margin]
  k <- inner[3L - margin] - 1L
  parts <- vector("list", n)
  jacobian <- 0
  for (i in seq_len(n)) {
    # the unconstrained numbers are stored by columns, so those of a row are not adjacent
    at <- if (margin == 2L) (i - 1L) * k + seq_len(k) else i + n * (seq_len(k) - 1L)
    one <- st_simplex(u[at])
    parts[[i]] <- one[[1L]]
    jacobian <- jacobian + one[[2L]]
  }
  x <- matrix(do.call("c", parts), k + 1L, n)
  list(if (margin == 2L) x else t(x), jacobian)
}

# ---- sizes and inverses --------------------------------------------------------------------------

# How many unconstrained numbers an array element has.
stan_free_size <- function(kind, inner) {
  n <- prod(inner)
  k <- if (length(inner) > 0L) inner[1L]
  switch(kind,
    simplex = max(0, n - 1),
    sum_to_zero = prod(pmax(0, inner - 1)),
    cholesky_factor_corr = , corr_matrix = k * (k - 1) / 2,
    cov_matrix = k * (k + 1) / 2,
    cholesky_factor_cov = {
      m <- inner[2L]
      m * (m + 1) / 2 + (k - m) * m
    },
    column_stochastic = (k - 1) * inner[2L],
    row_stochastic = k * (inner[2L] - 1),
    n)
}

# The unconstrained numbers of a value in Stan's order.
stan_free <- function(x, spec, lower = -Inf, upper = Inf, offset = 0, multiplier = 1) {
  flat <- function(x) {
    if (length(spec$outer) == 0L || length(c(spec$outer, spec$inner)) < 2L) return(as.vector(x))
    result <- numeric(length(x))
    result[st_order(spec$outer, spec$inner)] <- as.vector(x)
    result
  }
  if (spec$kind == "none") return(flat(x))
  if (spec$kind == "offset") return(flat((x - offset) / multiplier))
  if (spec$kind == "range") {
    low <- any(lower > -Inf)
    high <- any(upper < Inf)
    if (low && high) return(flat(log(x - lower) - log(upper - x)))
    return(flat(if (low) log(x - lower) else if (high) log(upper - x) else x))
  }
  all <- flat(x)
  n <- prod(spec$inner)
  unlist(lapply(seq_len(prod(spec$outer)), function(i) {
    stan_free_element(all[(i - 1) * n + seq_len(n)], spec$kind, spec$inner)
  }))
}

stan_free_element <- function(x, kind, inner) {
  a <- if (length(inner) == 2L) matrix(x, inner[1L], inner[2L])
  by_rows <- function(l, diagonal) t(l)[upper.tri(t(l), diagonal)]
  switch(kind,
    ordered = c(x[1L], log(diff(x)))[seq_along(x)],
    positive_ordered = log(diff(c(0, x))),
    simplex = stan_free_simplex(x),
    unit_vector = x,
    sum_to_zero = if (is.null(a)) as.vector(crossprod(st_zero_basis(inner), x)) else
      as.vector(crossprod(st_zero_basis(inner[1L]), a) %*% st_zero_basis(inner[2L])),
    cholesky_factor_corr = if (inner[1L] < 2L) numeric() else {
      u <- matrix(0, inner[1L], inner[1L])
      u[lower.tri(u)] <- free_corr_factor(a)
      by_rows(u, FALSE)
    },
    corr_matrix = if (inner[1L] < 2L) numeric() else free_corr_factor(t(chol(a))),
    cov_matrix = , cholesky_factor_cov = {
      l <- if (kind == "cov_matrix") t(chol(a)) else a
      n <- min(dim(l))
      l[cbind(seq_len(n), seq_len(n))] <- log(l[cbind(seq_len(n), seq_len(n))])
      t(l)[row(t(l)) <= col(t(l))]
    },
    column_stochastic = as.vector(apply(a, 2L, stan_free_simplex)),
    row_stochastic = as.vector(t(matrix(apply(a, 1L, stan_free_simplex), ncol = inner[1L]))))
}

stan_free_simplex <- function(x) {
  n <- length(x) - 1L
  if (n < 1L) return(numeric())
  left <- 1 - c(0, cumsum(x))[seq_len(n)]
  z <- x[seq_len(n)] / left
  log(z) - log1p(-z) + log(n:1)
}

# ---- checks of data ------------------------------------------------------------------------------

# Why a value violates a constraint with these bounds, or NULL.
stan_violation <- function(x, spec, bounds) {
  if (spec$kind %in% c("none", "offset")) return(NULL)
  if (spec$kind == "range") {
    lower <- if (is.null(bounds$lower)) -Inf else bounds$lower
    upper <- if (is.null(bounds$upper)) Inf else bounds$upper
    if (length(x) == 0L) return(NULL)
    for (bound in list(lower, upper)) if (!length(bound) %in% c(1L, length(x))) {
      return(sprintf("has %d elements, but a bound of %d", length(x), length(bound)))
    }
    outside <- function(wrong, bound, words) { # NaN is outside of any bound
      at <- which(wrong %in% c(TRUE, NA) & is.finite(bound))[1L]
      if (!is.na(at)) sprintf("is %s%s, but must be at %s %s", format(x[at], digits = 15L),
                              stan_at_element(at, stan_shape(x)), words,
                              format(rep_len(bound, length(x))[at], digits = 15L))
    }
    low <- outside(x < lower, lower, "least")
    return(if (is.null(low)) outside(x > upper, upper, "most") else low)
  }
  flat <- as.vector(x)
  if (length(spec$outer) > 0L) flat[st_order(spec$outer, spec$inner)] <- as.vector(x)
  n <- prod(spec$inner)
  for (i in seq_len(prod(spec$outer))) {
    matrix <- length(spec$inner) == 2L
    one <- array(flat[(i - 1) * n + seq_len(n)], if (matrix) spec$inner else c(1, n))
    if (n > 0 && st_satisfies(one, spec$kind, matrix) == 0) {
      return(sprintf("is not %s%s", stan_kind_words[[spec$kind]],
                     stan_at_element(i, spec$outer)))
    }
  }
  NULL
}

# Which element of an array or vector of this size, " at [2,1]"; nothing for a single one.
stan_at_element <- function(k, size) {
  if (prod(size) < 2) "" else sprintf(" at [%s]", paste(arrayInd(k, size), collapse = ","))
}

stan_kind_words <- c(ordered = "increasing", positive_ordered = "positive and increasing",
                     simplex = "a simplex", unit_vector = "a unit vector",
                     sum_to_zero = "of sum zero",
                     cholesky_factor_corr = "the Cholesky factor of a correlation matrix",
                     cholesky_factor_cov = "a Cholesky factor",
                     corr_matrix = "a correlation matrix",
                     cov_matrix = "a covariance matrix", column_stochastic = "column stochastic",
                     row_stochastic = "row stochastic")
