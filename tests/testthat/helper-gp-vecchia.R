# Vecchia's approximation in plain R, plain or grouped.

vecchia_graph <- function(f) statcl:::vecchia_graph(f)

scattered <- function(n, p = 2L, seed = n) {
  set.seed(seed)
  x <- matrix(stats::runif(n * p), n, dimnames = list(NULL, letters[seq_len(p)]))
  list(x = x, y = sin(6 * x[, 1L]) + rowSums(x) + 0.1 * stats::rnorm(n))
}

vecchia_kernels <- list(
  matern32 = k_matern32(sd = 1.3, lengthscale = c(0.3, 0.5)),
  exp_quad = k_exp_quad(lengthscale = 0.2),
  exponential = k_exponential(lengthscale = 0.7),
  sum = k_matern32(lengthscale = 0.3, columns = 1) + k_periodic(period = 0.4, columns = 2) +
    k_white(sd = 0.3),
  product = k_rational_quadratic(alpha = 0.7) * k_matern52(columns = 2) + k_linear(sd = 0.5))

# The blocks of a likelihood: of each its rows, as places in the order of the approximation (`at`)
# and as rows of x, and which of these are members. Not grouped, each observation is a block with
# its neighbours.
blocks_of <- function(f) {
  graph <- vecchia_graph(f)
  grouped <- length(graph$blocks) > 0L
  lapply(seq_len(if (grouped) ncol(graph$blocks) else length(graph$order)), function(b) {
    code <- if (grouped) stats::na.omit(graph$blocks[, b]) else
      c(2L * stats::na.omit(graph$neighbours[, b]) - 2L, 2L * b - 1L)
    list(at = code %/% 2L + 1L, rows = graph$order[code %/% 2L + 1L], member = code %% 2L == 1L)
  })
}

# The log density by its definition: each member given all earlier rows of its block, for a known
# mean and several outputs.
plain_vecchia <- function(y, covariance, blocks) {
  total <- 0
  for (block in blocks) {
    for (i in which(block$member)) {
      own <- block$rows[i]
      near <- block$rows[seq_len(i - 1L)]
      mean <- numeric(ncol(y))
      variance <- covariance[own, own]
      if (length(near) > 0L) {
        weights <- solve(covariance[near, near], covariance[near, own])
        mean <- drop(crossprod(y[near, , drop = FALSE], weights))
        variance <- variance - sum(weights * covariance[near, own])
      }
      total <- total + sum(stats::dnorm(y[own, ], mean, sqrt(variance), log = TRUE))
    }
  }
  total
}

# Covariances of the observations at parameters, with weights and known variances.
covariance_at <- function(kernel, par, x, weights = 1, variance = 0) {
  kernel <- statcl:::with_parameters(kernel, par[names(coef(kernel))])
  as.matrix(cl_cov(x, kernel = kernel)) +
    diag(par[["noise"]]^2 / weights + variance, nrow(x))
}

# The information by its formula: tr(K^-1 dK K^-1 dK') / 2 of each member's block up to it, less
# that without it, with derivatives by differences.
plain_information <- function(covariance, par, blocks) {
  slopes <- lapply(seq_along(par), function(i) {
    h <- 1e-5 * par[[i]]
    (covariance(replace(par, i, par[[i]] + h)) - covariance(replace(par, i, par[[i]] - h))) /
      (2 * h)
  })
  k <- covariance(par)
  of <- function(rows) {
    if (length(rows) == 0L) return(0)
    moved <- lapply(slopes, function(s) solve(k[rows, rows], s[rows, rows]))
    outer(seq_along(par), seq_along(par),
          Vectorize(function(i, j) sum(moved[[i]] * t(moved[[j]])) / 2))
  }
  total <- 0
  for (block in blocks) {
    for (i in which(block$member)) {
      total <- total + of(block$rows[seq_len(i)]) - of(block$rows[seq_len(i - 1L)])
    }
  }
  total
}
