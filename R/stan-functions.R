# Functions of Stan programs that are not densities, by name: R functions of numbers and of traced
# values (R/stan-library.R).

st_log_sum_exp <- function(x) if (length(x) == 0L) -Inf else cl_log_sum_exp(x)

# log(exp(a) - exp(b)) for a >= b
st_log_diff_exp <- function(a, b) a + log1m_exp(b - a)

st_logit <- function(p) log(p) - log1p(-p)

st_multiply_log <- function(x, y) cl_ifelse((x == 0) * (y == 0), 0, x * log(y))

# Squared distances between rows of points, each divided by its length scale.
st_distances <- function(x, y, rho) {
  column <- function(v, k) if (is.null(dim(v))) v else v[, k]
  d <- if (is.null(dim(x))) 1L else ncol(x)
  total <- 0
  if (length(rho) > 1L) stan_same_count(length(rho), d)
  for (k in seq_len(d)) {
    r <- if (length(rho) == 1L) 1 else rho[k]
    total <- total + outer(column(x, k), column(y, k), "-")^2 / r^2
  }
  if (length(rho) == 1L) total / rho^2 else total
}

# The covariances of points x, or of x and y: arguments (x, alpha, rho) or (x, y, alpha, rho).
st_covariance <- function(type, args) {
  two <- length(args) == 4L
  x <- args[[1L]]
  squared <- st_distances(x, if (two) args[[2L]] else x, args[[3L + two]])
  args[[2L + two]]^2 * distance_formulas[[type]](squared, function() st_root(squared))
}

# x (x - 1) ... (x - n + 1)
st_falling <- function(x, n) {
  value <- 1
  for (k in seq_len(max(n))) value <- value * cl_ifelse(k <= n, x - k + 1, 1)
  value
}

# For numbers that are not whole, too.
st_lchoose <- function(n, k) -log1p(n) - lbeta(n - k + 1, k + 1)

# The square root, whose derivative at 0 counts as 0.
st_root <- function(s) {
  zero <- s == 0
  cl_ifelse(zero, 0, sqrt(cl_ifelse(zero, 1, s)))
}

st_rep <- function(x, n) rep(x, stan_sizes(n))

st_rep_array <- function(x, ...) {
  size <- stan_sizes(...)
  if (length(x) == 1L && is.null(dim(x))) {
    if (length(size) == 1L) return(rep(x, size))
    return(array(x, size))
  }
  shape <- if (is.null(dim(x))) length(x) else dim(x)
  array(rep(as.vector(x), each = prod(size)), c(size, shape))
}

st_zeros <- function(n) st_rep(0, n)

st_ones <- function(n) st_rep(1, n)

st_one_hot <- function(n, k) stan_put(st_zeros(n), 1, TRUE, k)

# n numbers from a to b; one number is b.
st_linspaced <- function(n, a, b) if (n == 1) b else seq(a, b, length.out = stan_sizes(n))

# n integers from a to b in equal steps; each is repeated if there are fewer than n.
st_linspaced_int <- function(n, a, b) {
  k <- seq_len(stan_sizes(n)) - 1
  if (n > b - a + 1) return(a + k %/% ((n + b - a) %/% (b - a + 1)))
  a + k * ((b - a) %/% max(1, n - 1))
}

# Dimension k; vectors have one.
st_count <- function(x, k = 1L) if (is.null(dim(x))) length(x) else dim(x)[k]

st_append_row <- function(x, y) {
  stan_same_count(st_count(x, 2L), st_count(y, 2L))
  rbind(x, y)
}

st_append_col <- function(x, y) {
  stan_same_count(st_count(x), st_count(y))
  cbind(x, y)
}

# v x, for a diagonal matrix v.
st_scaled_rows <- function(v, x) {
  stan_same_count(length(v), nrow(x))
  v * x
}

st_append_array <- function(x, y) {
  if (is.null(dim(x))) return(c(x, y))
  rest <- dim(x)[-1L]
  n <- c(nrow(x), nrow(y))
  dim(x) <- c(n[1L], prod(rest))
  dim(y) <- c(n[2L], prod(rest))
  z <- rbind(x, y)
  dim(z) <- c(sum(n), rest)
  z
}

# Elements i of the first dimension.
st_first <- function(x, i) {
  if (is.null(dim(x))) return(stan_pick(x, FALSE, i))
  shape <- dim(x)
  dim(x) <- c(shape[1L], prod(shape[-1L]))
  out <- i < 1 | i > shape[1L]
  if (any(out)) stan_outside(quote(x), i[out][1L], shape[1L])
  x <- x[i, , drop = FALSE]
  dim(x) <- c(length(i), shape[-1L])
  x
}

st_to_matrix <- function(x, m = NULL, n = NULL, col_major = 1) {
  if (is.null(m)) return(if (is.null(dim(x))) matrix(x, ncol = 1L) else x)
  if (length(x) != m * n) stop("to_matrix(): the sizes differ", call. = FALSE)
  matrix(as.vector(x), m, n, byrow = col_major == 0)
}

st_squared_distance <- function(x, y) {
  stan_same_size(x, y)
  sum((x - y)^2)
}

st_quad_form <- function(a, b) {
  if (is.null(dim(b))) sum(b * as.vector(a %*% b)) else crossprod(b, a %*% b)
}

st_hmm_marginal <- function(log_omega, gamma, rho) {
  log_alpha <- log_omega[, 1L] + log(rho) + st_simplex_only(rho) + st_simplex_only(gamma)
  for (t in seq_len(ncol(log_omega))[-1L]) {
    m <- max(log_alpha)
    log_alpha <- log(as.vector(crossprod(gamma, exp(log_alpha - m)))) + m + log_omega[, t]
  }
  cl_log_sum_exp(log_alpha)
}

stan_functions <- list(
  # ---- of each element
  abs = abs, fabs = abs, exp = exp, log = function(x) log(x), sqrt = sqrt, cos = cos, sin = sin,
  tan = tan, acos = acos, asin = asin, atan = atan, cosh = cosh, sinh = sinh, tanh = tanh,
  acosh = acosh, asinh = asinh, atanh = atanh, expm1 = expm1, log1p = log1p,
  log2 = function(x) if (missing(x)) log(2) else log2(x),
  log10 = function(x) if (missing(x)) log(10) else log10(x),
  floor = floor, ceil = ceiling, trunc = trunc, lgamma = lgamma, tgamma = gamma,
  digamma = digamma, trigamma = trigamma,
  round = function(x) trunc(x + 0.5 * sign(x)),
  square = function(x) x^2, cbrt = function(x) sign(x) * abs(x)^(1 / 3), exp2 = function(x) 2^x,
  inv = function(x) 1 / x, inv_sqrt = function(x) 1 / sqrt(x), inv_square = function(x) 1 / x^2,
  inv_logit = function(x) cl_inv_logit(x), logit = st_logit,
  log_inv_logit = function(x) -cl_log1p_exp(-x), log1m_inv_logit = function(x) -cl_log1p_exp(x),
  log1m = function(x) log1p(-x), log1p_exp = function(x) cl_log1p_exp(x),
  log1m_exp = function(x) log1m_exp(x), inv_cloglog = function(x) -expm1(-exp(x)),
  erf = function(x) 2 * stats::pnorm(x * sqrt(2)) - 1,
  erfc = function(x) 2 * stats::pnorm(-x * sqrt(2)),
  Phi = function(x) stats::pnorm(x), inv_Phi = function(p) stats::qnorm(p),
  Phi_approx = function(x) cl_inv_logit(0.07056 * x^3 + 1.5976 * x),
  std_normal_log_qf = function(p) stats::qnorm(exp(p)), std_normal_qf = function(p) stats::qnorm(p),
  step = function(x) cl_ifelse(x >= 0, 1, 0), int_step = function(x) (x > 0) + 0,
  is_inf = function(x) is.infinite(x) + 0, is_nan = function(x) is.nan(x) + 0,
  # ---- of two or more
  pow = function(x, y) x^y, atan2 = function(y, x) cl_atan2(y, x), hypot = function(x, y)
    sqrt(x^2 + y^2), fmin = function(x, y) pmin(x, y), fmax = function(x, y) pmax(x, y),
  fdim = function(x, y) pmax(x - y, 0), fmod = function(x, y) x - y * trunc(x / y),
  fma = function(x, y, z) x * y + z, ldexp = function(x, y) x * 2^y,
  lbeta = function(a, b) lbeta(a, b), beta = function(a, b) exp(lbeta(a, b)),
  choose = function(n, k) choose(n, k), lchoose = st_lchoose,
  binomial_coefficient_log = st_lchoose,
  lmgamma = function(n, x) st_gamma_p(n, x), lmultiply = st_multiply_log,
  multiply_log = st_multiply_log, gamma_p = function(a, x) stats::pgamma(x, a),
  gamma_q = function(a, x) stats::pgamma(x, a, lower.tail = FALSE),
  inc_beta = function(a, b, x) stats::pbeta(x, a, b),
  falling_factorial = st_falling, rising_factorial = function(x, n) st_falling(x + n - 1, n),
  log_falling_factorial = function(x, n) lgamma(x + 1) - lgamma(x - n + 1),
  log_rising_factorial = function(x, n) lgamma(x + n) - lgamma(x),
  modified_bessel_second_kind = function(v, x) besselK(x, v),
  log_modified_bessel_first_kind = function(v, x) log(besselI(x, v, TRUE)) + x,
  modified_bessel_first_kind = function(v, x) besselI(x, v),
  bessel_first_kind = function(v, x) besselJ(x, v),
  bessel_second_kind = function(v, x) besselY(x, v),
  minus = function(x) -x, plus = function(x) x, logical_negation = function(x) (x == 0) + 0,
  log_sum_exp = function(x, y) if (missing(y)) st_log_sum_exp(x) else log_add_exp(x, y),
  log_diff_exp = st_log_diff_exp,
  log_mix = function(theta, a, b) {
    if (missing(b)) {
      stan_same_count(length(theta), st_count(a, 2L))
      if (is.null(dim(a))) return(st_log_sum_exp(log(theta) + a))
      total <- 0
      for (i in seq_len(nrow(a))) total <- total + st_log_sum_exp(log(theta) + a[i, ])
      return(total)
    }
    log_add_exp(log(theta) + a, log1p(-theta) + b)
  },
  # ---- constants
  pi = function() pi, e = function() exp(1), sqrt2 = function() sqrt(2),
  not_a_number = function() NaN, positive_infinity = function() Inf,
  negative_infinity = function() -Inf, machine_precision = function() .Machine$double.eps,
  # ---- reductions
  sum = function(x) sum(x), prod = function(x) prod(x), mean = function(x) mean(x),
  variance = function(x) if (length(x) < 2L) 0 else stats::var(as.vector(x)),
  sd = function(x) if (length(x) < 2L) 0 else stats::sd(as.vector(x)),
  max = function(x, y) if (missing(y)) max(x) else max(x, y),
  min = function(x, y) if (missing(y)) min(x) else min(x, y),
  norm1 = function(x) sum(abs(x)), norm2 = function(x) sqrt(sum(x^2)),
  dot_self = function(x) sum(x^2), dot_product = function(x, y) stan_dot(x, y),
  distance = function(x, y) sqrt(st_squared_distance(x, y)),
  squared_distance = st_squared_distance,
  rows_dot_product = function(x, y) rowSums(st_rows(x) * st_rows(y)),
  columns_dot_product = function(x, y) colSums(st_rows(x) * st_rows(y)),
  rows_dot_self = function(x) rowSums(st_rows(x)^2),
  columns_dot_self = function(x) colSums(st_rows(x)^2),
  quantile = function(x, p) unname(stats::quantile(x, p)),
  # ---- shapes
  rows = function(x) st_count(x), cols = function(x) st_count(x, 2L),
  one = function(x) 1, num_elements = function(x) length(x), size = function(x) length(x),
  size_array = function(x) st_count(x), dims = function(x) stan_shape(x),
  rep_vector = st_rep, rep_row_vector = st_rep,
  rep_matrix = function(x, m, n) {
    if (missing(n)) return(matrix(st_rep(x, m), length(x), m)) # columns are the vector
    matrix(rep(x, prod(stan_sizes(m, n))), m, n)
  },
  rep_matrix_rows = function(x, m) matrix(rep(x, each = stan_sizes(m)), m, length(x)),
  rep_array = st_rep_array, rep_array_tuple = function(x, ...) stan_repeated(x, ...),
  zeros_vector = st_zeros, zeros_row_vector = st_zeros, zeros_array = st_zeros,
  zeros_int_array = st_zeros, ones_vector = st_ones, ones_row_vector = st_ones,
  ones_array = st_ones, ones_int_array = st_ones, one_hot_vector = st_one_hot,
  one_hot_row_vector = st_one_hot, one_hot_array = st_one_hot, one_hot_int_array = st_one_hot,
  identity_matrix = function(n) diag(n),
  linspaced_vector = st_linspaced, linspaced_row_vector = st_linspaced,
  linspaced_array = st_linspaced,
  linspaced_int_array = st_linspaced_int,
  uniform_simplex = function(n) rep(1 / n, n),
  to_vector = function(x) as.vector(x), to_row_vector = function(x) as.vector(x),
  to_array_1d = function(x) as.vector(x), to_array_2d = function(x) x, to_matrix = st_to_matrix,
  to_array_1d_rows = function(x) as.vector(aperm(x, rev(seq_along(dim(x))))),
  to_matrix_row = function(x) matrix(x, nrow = 1L),
  to_int = function(x) trunc(x),
  head = function(x, n) st_first(x, seq_len(n)),
  tail = function(x, n) st_first(x, st_count(x) - n + seq_len(n)),
  segment = function(x, i, n) st_first(x, i + seq_len(n) - 1),
  reverse = function(x) st_first(x, rev(seq_len(st_count(x)))),
  append_array = st_append_array,
  append_vector = function(x, y) c(x, y), append_row = st_append_row, append_col = st_append_col,
  row = function(x, i) stan_pick(x, c(TRUE, FALSE), i, NULL),
  col = function(x, j) stan_pick(x, c(FALSE, TRUE), NULL, j),
  sub_row = function(x, i, j, n) stan_pick(x, c(TRUE, FALSE), i, j + seq_len(n) - 1),
  sub_col = function(x, i, j, n) stan_pick(x, c(FALSE, TRUE), i + seq_len(n) - 1, j),
  block = function(x, i, j, m, n) {
    stan_pick(x, c(FALSE, FALSE), i + seq_len(m) - 1, j + seq_len(n) - 1)
  },
  transpose = function(x) if (is.null(dim(x))) x else t(x),
  diagonal = function(x) diag(x),
  diag_matrix = function(x) if (length(x) == 1L) matrix(x, 1L, 1L) else diag(x),
  add_diag = function(x, d) {
    n <- min(dim(x))
    if (length(d) > 1L) stan_same_count(length(d), n)
    else if (is_traced(x) || is_traced(d)) return(x + diag(d, nrow(x), ncol(x)))
    at <- seq_len(n) + nrow(x) * (seq_len(n) - 1)
    x[at] <- x[at] + d
    x
  },
  symmetrize_from_lower_tri = function(x) {
    n <- nrow(x)
    i <- pmax(row(diag(n)), col(diag(n)))
    j <- pmin(row(diag(n)), col(diag(n)))
    matrix(x[as.vector(i + n * (j - 1))], n, n)
  },
  # ---- orders, of data
  sort_asc = function(x) sort(x), sort_desc = function(x) sort(x, decreasing = TRUE),
  sort_indices_asc = function(x) order(x), sort_indices_desc = function(x) order(-x),
  rank = function(x, i) sum(x < x[i]),
  cumulative_sum = function(x) cumsum(x),
  # ---- of vectors
  softmax = function(x) cl_softmax(x), log_softmax = st_log_softmax,
  # ---- matrices
  multiply_lower_tri_self_transpose = function(x) tcrossprod(x * lower.tri(diag(nrow(x)), TRUE)),
  crossprod = function(x) crossprod(x), tcrossprod = function(x) tcrossprod(x),
  diag_pre_multiply = st_scaled_rows,
  diag_post_multiply = function(x, v) t(st_scaled_rows(v, t(x))),
  quad_form = st_quad_form,
  quad_form_sym = function(a, b) st_quad_form(st_symmetric(a), b),
  quad_form_diag = function(x, v) st_scaled_rows(v, t(st_scaled_rows(v, t(x)))),
  trace_quad_form = function(a, b) sum(b * (a %*% b)),
  trace_gen_quad_form = function(d, a, b) sum(t(d) * crossprod(b, a %*% b)),
  trace = function(x) {
    stan_same_count(nrow(x), ncol(x))
    sum(diag(x))
  },
  determinant = function(x) det(x),
  log_determinant = function(x) as.vector(determinant(x)$modulus),
  log_determinant_spd = function(x) st_log_det_spd(x),
  inverse = function(x) solve(x), inverse_spd = function(x) {
    chol2inv(chol(st_symmetric(x)))
  },
  chol2inv = function(l) chol2inv(t(l)),
  cholesky_decompose = function(x) t(chol(st_symmetric(x))),
  mdivide_left = function(a, b) solve(a, b), mdivide_right = function(b, a) {
    if (is.null(dim(b))) solve(t(a), b) else t(solve(t(a), t(b)))
  },
  mdivide_left_tri_low = function(a, b) forwardsolve(a, b),
  mdivide_right_tri_low = function(b, a) {
    if (is.null(dim(b))) forwardsolve(a, b, transpose = TRUE) else
      t(forwardsolve(a, t(b), transpose = TRUE))
  },
  mdivide_left_spd = function(a, b) solve(st_symmetric(a), b),
  mdivide_right_spd = function(b, a) {
    a <- st_symmetric(a)
    if (is.null(dim(b))) solve(a, b) else t(solve(a, t(b)))
  },
  # ---- covariance functions
  gp_exp_quad_cov = function(...) st_covariance("exp_quad", list(...)),
  cov_exp_quad = function(...) st_covariance("exp_quad", list(...)),
  gp_matern32_cov = function(...) st_covariance("matern32", list(...)),
  gp_matern52_cov = function(...) st_covariance("matern52", list(...)),
  gp_exponential_cov = function(...) st_covariance("exponential", list(...)),
  gp_dot_prod_cov = function(x, y, sigma) {
    if (missing(sigma)) {
      sigma <- y
      y <- x
    }
    sigma^2 + if (is.null(dim(x))) outer(x, y) else tcrossprod(x, y)
  },
  gp_periodic_cov = function(...) {
    a <- list(...)
    if (length(a) == 4L) a <- a[c(1L, 1:4)]
    apart <- if (is.null(dim(a[[1L]]))) abs(outer(a[[1L]], a[[2L]], "-")) else
      st_root(st_distances(a[[1L]], a[[2L]], 1))
    a[[3L]]^2 * exp(-2 * sin(pi * apart / a[[5L]])^2 / a[[4L]]^2)
  },
  hmm_marginal = st_hmm_marginal)
