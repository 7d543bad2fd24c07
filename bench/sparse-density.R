# Patterns from diagonal to full, on the host: what a choice between sparse and dense must not lose.
#
#   Rscript bench/sparse-density.R [quick]
#
# First the sparse factor and the selected inverse of random patterns, next to chol() and chol2inv()
# of the dense matrix: the ratio to the faster one must stay below 1.2. Then value and gradient of
# a Gaussian process with Poisson counts, whose Hessian is full, next to RTMB where it is installed.
# Processor time in ms, the best of three.
suppressMessages(library(statcl))
peer <- suppressWarnings(suppressMessages(require("RTMB", quietly = TRUE)))
cl_use(engine = "host")
set.seed(1)
quick <- "quick" %in% commandArgs(TRUE)
native <- asNamespace("statcl")

best_time <- function(f) {
  f()
  one <- function(k) {
    start <- sum(proc.time()[1:2])
    calls <- 0
    repeat {
      f()
      calls <- calls + 1
      spent <- sum(proc.time()[1:2]) - start
      if (spent > 0.03) return(1e3 * spent / calls)
    }
  }
  min(vapply(1:3, one, 0))
}

factors <- function(n, density) {
  a <- matrix((runif(n * n) < density) * runif(n * n) / n, n)
  a[upper.tri(a)] <- 0
  diag(a) <- 2
  at <- which(a != 0, arr.ind = TRUE)
  x <- a[a != 0]
  dense <- a + t(a) - diag(diag(a))
  root <- chol(dense)
  f <- .Call(native$r_sparse_analyse, c(0, cumsum(tabulate(at[, 2], n))), at[, 1] - 1L, NULL)
  row <- data.frame(n = n, density = density, numbers = length(x),
                    factor = best_time(function() .Call(native$r_sparse_factorize, f, x, 0)),
                    chol = best_time(function() chol.default(dense)),
                    inverse = best_time(function() .Call(native$r_sparse_inverse, f)),
                    chol2inv = best_time(function() chol2inv(root)))
  sparse <- row$factor + row$inverse
  row$ratio <- sparse / min(sparse, row$chol + row$chol2inv)
  row
}

process <- function(n) {
  distance <- abs(outer(1:n, 1:n, "-"))
  y <- rpois(n, exp(1 + sin(1:n / 20)))
  nll <- function(p) {
    -dmvnorm(p$u, 0, exp(2 * p$s) * exp(-distance / exp(p$r)), log = TRUE) -
      sum(dpois(y, exp(p$m + p$u), log = TRUE))
  }
  start <- list(m = 1, s = -1, r = 1, u = numeric(n))
  ms <- function(make) {
    obj <- make(nll, start, random = "u", silent = TRUE)
    k <- 0
    best_time(function() {
      k <<- k + 1
      at <- obj$par + 0.01 * (k %% 7)
      obj$fn(at)
      obj$gr(at)
    })
  }
  data.frame(effects = n, statcl_ms = ms(cl_tmb),
             rtmb_ms = if (peer) ms(RTMB::MakeADFun) else NA)
}

sizes <- if (quick) c(10, 30, 100) else c(10, 30, 100, 300, 1000)
densities <- c(0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.5, 1)
cases <- expand.grid(density = densities, n = sizes)
print(do.call(rbind, Map(factors, cases$n, cases$density)), digits = 2, row.names = FALSE)
print(do.call(rbind, lapply(sizes[sizes <= 300], process)), digits = 3, row.names = FALSE)
