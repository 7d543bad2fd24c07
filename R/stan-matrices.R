# Factors and functions of matrices of Stan programs (R/stan-library.R), for numbers and traced
# values.

# list(vectors, values), the values increasing, as the core has them for both kinds of values.
st_eigen <- function(a) {
  n <- nrow(a)
  if (ncol(a) != n) stop("a matrix with eigenvalues must be square", call. = FALSE)
  if (n == 0L) return(list(a, numeric()))
  only <- st_symmetric_only(a)
  both <- if (is_traced(a)) {
    record("eigen", "", node_of(trace_operand(a)), n, n * (n + 1L), c(n, n + 1L)) + only
  } else {
    .Call(r_op, "eigen", list(a), numeric(), -1L)
  }
  list(both[, seq_len(n), drop = FALSE], both[, n + 1L])
}

# list(u, d, v) with d decreasing. Of traced values these are eigenvectors and eigenvalues of
# [0 a; a' 0], so that a must have full rank. A sign that both kinds of values share makes outputs
# of draws fit the density.
st_svd <- function(a) {
  m <- nrow(a)
  n <- ncol(a)
  k <- min(m, n)
  if (k == 0L) return(list(matrix(0, m, 0L), numeric(), matrix(0, n, 0L)))
  if (is_traced(a)) {
    wide <- rbind(cbind(matrix(0, m, m), a), cbind(t(a), matrix(0, n, n)))
    f <- st_eigen(wide)
    last <- m + n + 1L - seq_len(k)
    u <- sqrt(2) * f[[1L]][seq_len(m), last, drop = FALSE]
    v <- sqrt(2) * f[[1L]][m + seq_len(n), last, drop = FALSE]
    d <- f[[2L]][last]
  } else {
    f <- svd(a)
    u <- f$u
    v <- f$v
    d <- f$d
  }
  sign <- cl_ifelse(as.vector(crossprod(u, 1 / sqrt(1 + seq_len(m)))) < 0, -1, 1)
  list(t(t(u) * sign), d, t(t(v) * sign))
}

# list(q, r) with a diagonal of r that is not negative, by Householder reflections; `all`: a square
# q.
st_qr <- function(a, all) {
  m <- nrow(a)
  k <- min(m, ncol(a))
  q <- diag(m)
  for (j in seq_len(min(k, m - 1L))) {
    x <- a[, j] * (seq_len(m) >= j)
    first <- sum(x * (seq_len(m) == j))
    v <- x + (seq_len(m) == j) * cl_ifelse(first < 0, -1, 1) * st_root(sum(x^2))
    size <- sum(v^2)
    v <- v / st_root(cl_ifelse(size == 0, 1, 0.5 * size))
    a <- a - outer(v, as.vector(crossprod(a, v)))
    q <- q - outer(as.vector(q %*% v), v)
  }
  if (k == 0L) return(if (all) list(q, a) else list(matrix(0, m, 0L), matrix(0, 0L, ncol(a))))
  a <- a * (row(a) <= col(a))
  sign <- cl_ifelse(a[seq_len(k) + m * (seq_len(k) - 1L)] < 0, -1, 1)
  if (!all) {
    return(list(t(t(q[, seq_len(k), drop = FALSE]) * sign), a[seq_len(k), , drop = FALSE] * sign))
  }
  sign <- c(sign, rep(1, m - k))
  list(t(t(q) * sign), a * sign)
}

# Of traced values for matrices of full rank.
st_generalized_inverse <- function(a) {
  if (length(a) == 0L) return(t(a))
  if (nrow(a) < ncol(a)) return(t(st_generalized_inverse(t(a))))
  if (is_traced(a)) {
    f <- st_qr(a, FALSE)
    return(backsolve(f[[2L]], t(f[[1L]])))
  }
  f <- svd(a)
  keep <- f$d > max(dim(a)) * .Machine$double.eps * f$d[1L]
  f$v[, keep, drop = FALSE] %*% (t(f$u[, keep, drop = FALSE]) / f$d[keep])
}

st_matrix_power <- function(a, n) {
  if (n < 0) stop("the power of a matrix must not be negative", call. = FALSE)
  result <- NULL
  while (n > 0) {
    if (n %% 2 == 1) result <- if (is.null(result)) a else result %*% a
    n <- n %/% 2
    if (n > 0) a <- a %*% a
  }
  if (is.null(result)) diag(nrow(a)) else result
}

# Pade approximation of order 13 of exp(a / 2^k), squared k times (Higham, 2005). A traced value has
# a fixed k, and no value if its norm is too large for that.
st_matrix_exp <- function(a) {
  n <- nrow(a)
  if (n == 0L) return(a)
  norm <- max(colSums(abs(a)))
  most <- 5.371920351148152 # the norm up to which the order suffices: theta_13 of that paper
  k <- if (is_traced(a)) 10 else max(0, ceiling(log2(norm / most)))
  if (!is.finite(k)) return(a * NaN)
  b <- c(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
         10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1)
  a <- a / 2^k
  a2 <- a %*% a
  a4 <- a2 %*% a2
  a6 <- a4 %*% a2
  odd <- a %*% (a6 %*% (b[14] * a6 + b[12] * a4 + b[10] * a2) + b[8] * a6 + b[6] * a4 +
                  b[4] * a2 + b[2] * diag(n))
  even <- a6 %*% (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 +
    b[1] * diag(n)
  total <- solve(even - odd, even + odd)
  for (i in seq_len(k)) total <- total %*% total
  if (is_traced(total)) cl_ifelse(norm <= most * 2^k, total, NaN) else total
}

st_check_csr <- function(m, n, w, v, u) {
  stan_same_size(w, v)
  stan_same_count(length(u), m + 1)
  stan_same_count(u[m + 1] - 1, length(w))
  if (any(v < 1 | v > n)) stan_outside(quote(v), v[v < 1 | v > n][1L], n)
}

st_csr_times <- function(m, n, w, v, u, b) {
  st_check_csr(m, n, w, v, u)
  stan_same_count(length(b), n)
  rows <- rep(seq_len(m), diff(u))
  terms <- w * b[v]
  total <- as.vector(rowsum(terms, factor(rows, seq_len(m)), reorder = FALSE))
  if (length(total) == m) return(total)
  present <- sort(unique(rows))
  result <- rep(0, m)
  result[present] <- total
  result
}

# The elements of a matrix that are not zero, by rows: list(values, columns, starts of rows).
st_csr <- function(a) {
  kept <- t(a) != 0
  list(t(a)[kept], row(kept)[kept] + 0, cumsum(c(1, colSums(kept))))
}

stan_matrix_functions <- list(
  eigenvalues_sym = function(x) st_eigen(x)[[2L]],
  eigenvectors_sym = function(x) st_eigen(x)[[1L]],
  eigendecompose_sym = function(x) st_eigen(x),
  singular_values = function(x) st_svd(x)[[2L]],
  svd_U = function(x) st_svd(x)[[1L]], svd_V = function(x) st_svd(x)[[3L]],
  svd = function(x) st_svd(x),
  qr_thin_Q = function(x) st_qr(x, FALSE)[[1L]], qr_thin_R = function(x) st_qr(x, FALSE)[[2L]],
  qr_Q = function(x) st_qr(x, TRUE)[[1L]], qr_R = function(x) st_qr(x, TRUE)[[2L]],
  qr_thin = function(x) st_qr(x, FALSE), qr = function(x) st_qr(x, TRUE),
  generalized_inverse = st_generalized_inverse,
  matrix_exp = st_matrix_exp, matrix_power = st_matrix_power,
  scale_matrix_exp_multiply = function(t, a, b) st_matrix_exp(t * a) %*% b,
  matrix_exp_multiply = function(a, b) st_matrix_exp(a) %*% b,
  csr_extract_w = function(x) st_csr(x)[[1L]], csr_extract_v = function(x) st_csr(x)[[2L]],
  csr_extract_u = function(x) st_csr(x)[[3L]], csr_extract = function(x) st_csr(x),
  csr_matrix_times_vector = st_csr_times,
  csr_to_dense_matrix = function(m, n, w, v, u) {
    st_check_csr(m, n, w, v, u)
    x <- matrix(0, m, n)
    x[cbind(rep(seq_len(m), diff(u)), v)] <- w
    x
  })
