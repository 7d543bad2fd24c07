# The terms of log densities that Stan drops from `~`: those of arguments that are all data. Each
# row of the table is a function of the argument list `a` and of `k`: k(x, i, ...) is the sum of x
# over all observations if the arguments i are data, else 0.

# `value`, the sum of the log density `code`, less these terms; `lanes`: the code of the number of
# iterations that are computed at once.
stan_dropped <- function(value, code, root, lanes = 1) {
  if (!root %in% names(stan_terms)) return(value)
  if (identical(code[[1L]], quote(rowSums))) code <- code[[2L]]
  args <- as.list(code)[if (identical(code[[1L]], quote(stan_total))) -(1:2) else -1L]
  as.call(c(list(quote(stan_less_terms), value, root, lanes), args))
}

stan_less_terms <- function(value, root, lanes, ...) {
  a <- list(...)
  plain <- !vapply(a, is_traced, NA)
  if (all(plain)) return(0)
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

# The observations of a generalised linear model whose design is argument i.
st_glm_rows <- function(a, i) max(length(a[[1L]]), nrow(st_rows(a[[i]])))
