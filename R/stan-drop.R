# The terms of log densities that Stan drops from `~`: those of arguments that are all data. Each
# row of the table is a function of the argument list `a` and of `k`: k(x, i, ...) is the sum of x
# over all observations if the arguments i are data, else 0.

# `value`, the sum of the log density `code`, less these terms; `lanes`: the code of the number of
# iterations that are computed at once.
stan_dropped <- function(value, code, root, lanes = 1) {
  if (identical(code[[1L]], quote(rowSums))) code <- code[[2L]]
  args <- as.list(code)[if (identical(code[[1L]], quote(stan_total))) -(1:2) else -1L]
  as.call(c(list(quote(stan_less_terms), value, root, lanes), args))
}

stan_less_terms <- function(value, root, lanes, ...) {
  a <- list(...)
  plain <- !vapply(a, is_traced, NA)
  if (all(plain)) return(0)
  total <- stan_total_terms[[root]]
  if (!is.null(total)) return(value - total(a, plain))
  if (is.null(stan_terms[[root]])) return(value)
  n <- max(lengths(a), lanes)
  k <- function(x, ...) if (all(plain[c(...)])) n / length(x) * sum(x) else 0
  value - stan_terms[[root]](a, k)
}

stan_terms <- list(
  normal = function(a, k) -k(log_sqrt_2pi) - k(log(a[[3L]]), 3L),
  std_normal = function(a, k) -k(log_sqrt_2pi),
  cauchy = function(a, k) -k(log(pi)) - k(log(a[[3L]]), 3L),
  student_t = function(a, k) {
    k(lgamma(0.5 * (a[[2L]] + 1)) - lgamma(0.5 * a[[2L]]) - 0.5 * log(a[[2L]]), 2L) -
      k(0.5 * log(pi)) - k(log(a[[4L]]), 4L)
  },
  double_exponential = function(a, k) -k(log(2)) - k(log(a[[3L]]), 3L),
  logistic = function(a, k) -k(log(a[[3L]]), 3L),
  lognormal = function(a, k) -k(log_sqrt_2pi) - k(log(a[[3L]]), 3L) - k(log(a[[1L]]), 1L),
  exponential = function(a, k) k(log(a[[2L]]), 2L),
  gamma = function(a, k) {
    k(a[[2L]] * log(a[[3L]]), 2L, 3L) - k(lgamma(a[[2L]]), 2L) +
      k((a[[2L]] - 1) * log(a[[1L]]), 1L, 2L) - k(a[[3L]] * a[[1L]], 1L, 3L)
  },
  inv_gamma = function(a, k) {
    k(a[[2L]] * log(a[[3L]]), 2L, 3L) - k(lgamma(a[[2L]]), 2L) -
      k((a[[2L]] + 1) * log(a[[1L]]), 1L, 2L) - k(a[[3L]] / a[[1L]], 1L, 3L)
  },
  weibull = function(a, k) {
    k(log(a[[2L]]), 2L) + k((a[[2L]] - 1) * log(a[[1L]]), 1L, 2L) -
      k(a[[2L]] * log(a[[3L]]), 2L, 3L)
  },
  beta = function(a, k) {
    k(lgamma(a[[2L]] + a[[3L]]), 2L, 3L) - k(lgamma(a[[2L]]), 2L) - k(lgamma(a[[3L]]), 3L) +
      k((a[[2L]] - 1) * log(a[[1L]]), 1L, 2L) + k((a[[3L]] - 1) * log1p(-a[[1L]]), 1L, 3L)
  },
  uniform = function(a, k) -k(log(a[[3L]] - a[[2L]]), 2L, 3L),
  poisson = function(a, k) -k(lgamma(a[[1L]] + 1), 1L),
  poisson_log = function(a, k) -k(lgamma(a[[1L]] + 1), 1L),
  binomial = function(a, k) k(lchoose(a[[2L]], a[[1L]]), 1L, 2L),
  binomial_logit = function(a, k) k(lchoose(a[[2L]], a[[1L]]), 1L, 2L),
  normal_id_glm = function(a, k) {
    -st_glm_rows(a, 2L) * (log_sqrt_2pi + if (is_traced(a[[5L]])) 0 else mean(log(a[[5L]])))
  },
  poisson_log_glm = function(a, k) -st_glm_rows(a, 2L) * mean(lgamma(a[[1L]] + 1)),
  binomial_logit_glm = function(a, k) st_glm_rows(a, 3L) * mean(lchoose(a[[2L]], a[[1L]])),
  neg_binomial_2_log_glm = function(a, k) {
    y <- a[[1L]]
    phi <- a[[5L]]
    st_glm_rows(a, 2L) * mean(-lgamma(y + 1) + if (is_traced(phi)) 0 else
      lgamma(y + phi) - lgamma(phi) + phi * log(phi))
  })

# The number of observations of a generalised linear model whose design matrix is argument i.
st_glm_rows <- function(a, i) max(length(a[[1L]]), nrow(st_rows(a[[i]])))

# The same terms for distributions of vectors and matrices; `plain`: which arguments are data.
stan_total_terms <- local({
  count <- function(x) if (is.null(dim(x))) 1 else as.double(nrow(x))
  rows <- function(...) max(vapply(list(...), count, 0))
  normal <- function(half_log_det) function(a, plain) {
    n <- rows(a[[1L]], a[[2L]])
    size <- if (is.null(dim(a[[1L]]))) length(a[[1L]]) else ncol(a[[1L]])
    -n * (size * log_sqrt_2pi + if (plain[3L]) half_log_det(a[[3L]]) else 0)
  }
  lkj <- function(a, plain) if (plain[2L]) st_lkj_constant(a[[2L]], NROW(a[[1L]])) else 0
  list(
    multi_normal = normal(function(s) 0.5 * st_log_det_spd(s)),
    multi_normal_prec = normal(function(s) -0.5 * st_log_det_spd(s)),
    multi_normal_cholesky = normal(function(l) sum(log(diag(st_square(l))))),
    lkj_corr = lkj, lkj_corr_cholesky = lkj,
    dirichlet = function(a, plain) {
      if (!plain[2L]) return(0)
      alpha <- st_rows(a[[2L]])
      n <- rows(a[[1L]], alpha) / nrow(alpha)
      n * (sum(lgamma(rowSums(alpha))) - sum(lgamma(alpha)))
    },
    multinomial = function(a, plain) {
      n <- st_rows(a[[1L]])
      rows(a[[2L]], n) / nrow(n) * (sum(lgamma(rowSums(n) + 1)) - sum(lgamma(n + 1)))
    })
})
