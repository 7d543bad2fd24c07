# Where the sparse metric pays: effective draws a second of processor time with it and with the
# metric that "auto" takes else, for fields of counts of several sizes and numbers of neighbours.
#
#   Rscript bench/metric-limits.R [sizes] [neighbours]
#
# `sizes`: chains of 25 to 800 cells. `neighbours`: 400 cells, each with so many neighbours by
# chance (with 64 no mode was found, which the sparse metric needs). factor: numbers of the Cholesky
# factor of the precision for each parameter; ess: the smallest of all parameters, means of ten
# seeds.
library(statcl)
cl_use(engine = "host")
chosen <- commandArgs(TRUE)
if (length(chosen) == 0L) chosen <- c("sizes", "neighbours")

field <- function(n, neighbours) {
  set.seed(n + neighbours)
  from <- rep(seq_len(n), each = max(neighbours %/% 2L, 1L))
  to <- if (neighbours < 2L) pmin(from + 1L, n) else sample(n, length(from), TRUE)
  edges <- unique(cbind(pmin(from, to), pmax(from, to))[from != to, , drop = FALSE])
  y <- rpois(n, exp(1 + rnorm(n, 0, 0.5)))
  list(edges = edges, init = list(log_sd = -1, b = 1, x = numeric(n)),
       density = cl_gradient(function(log_sd, b, x) {
         d <- x[edges[, 1]] - x[edges[, 2]]
         dnorm(log_sd, -1, 0.7, log = TRUE) + dnorm(b, 0, 3, log = TRUE) - n * log_sd -
           (sum(d^2) + 0.1 * sum(x^2)) / (2 * exp(2 * log_sd)) +
           sum(dpois(y, exp(b + x), log = TRUE))
       }))
}

measure <- function(n, neighbours) {
  model <- field(n, neighbours)
  rate <- function(metric) {
    rowMeans(vapply(1:10, function(seed) {
      seconds <- sum(system.time(fit <- suppressWarnings(cl_sample(
        model$density, model$init, chains = 1, warmup = 500, iter = 500, metric = metric,
        seed = seed, refresh = 0)))[1:2])
      c(min(summary(fit)$ess_bulk) / seconds, mean(fit$diagnostics$leapfrogs))
    }, numeric(2L)))
  }
  auto <- rate("auto")
  sparse <- rate("sparse")
  short <- suppressWarnings(cl_sample(model$density, model$init, chains = 1, warmup = 20, iter = 2,
                                      metric = "sparse", seed = 1, refresh = 0))
  low <- methods::as(Matrix::tril(short$precision), "CsparseMatrix")
  factor <- .Call(statcl:::r_sparse_analyse, as.double(low@p), low@i, NULL)
  data.frame(cells = n, neighbours = 2 * nrow(model$edges) / n,
             factor = .Call(statcl:::r_sparse_size, factor) / nrow(low),
             auto_gradients = auto[2L], sparse_gradients = sparse[2L], auto_ess_s = auto[1L],
             sparse_ess_s = sparse[1L], ratio = sparse[1L] / auto[1L])
}

if ("sizes" %in% chosen) {
  for (n in c(25, 50, 100, 200, 400, 800)) print(measure(n, 1L), digits = 3, row.names = FALSE)
}
if ("neighbours" %in% chosen) {
  for (k in c(4, 16)) print(measure(400, k), digits = 3, row.names = FALSE)
}
