# Known targets within four Monte Carlo standard errors. Others: test-sample.R,
# test-sample-metric.R, test-sample-compiled.R, test-transforms.R.

skip_on_cran() # long; run by ./dev check

# A list for each: density of a list of parameters, start, transform, further arguments, and the
# means and standard deviations of what `report` (default: the draws) gives for a matrix of draws.
targets <- function() {
  list(
    # x2 - x1^2 / 2 ~ N(0, 1), x1 ~ N(0, 2): a banana
    banana = list(f = function(x, y) -x^2 / 8 - (y - x^2 / 2)^2 / 2, init = list(x = 0, y = 0),
                  mean = c(0, 2), sd = c(2, sqrt(1 + 8)), arguments = list(adapt_delta = 0.95)),
    # a mixture of N(-1.5, 1) and N(1.5, 1), weights 0.3 and 0.7, in each of two dimensions
    mixture = list(f = function(x) {
      sum(log(0.3 * exp(-(x + 1.5)^2 / 2) + 0.7 * exp(-(x - 1.5)^2 / 2)))
    }, init = list(x = c(0, 0)), mean = c(0.6, 0.6), sd = rep(sqrt(1 + 0.84 * 2.25), 2)),
    # v ~ N(0, 1.5), x_i ~ N(0, exp(v / 2)): a funnel
    funnel = list(f = function(v, x) -v^2 / 4.5 - 2 * v - sum(x^2) * exp(-v) / 2,
                  init = list(v = 0, x = numeric(4)), mean = numeric(5),
                  sd = c(1.5, rep(exp(1.5^2 / 4), 4)),
                  report = function(draws) cbind(draws[, 1], draws[, -1] * exp(-draws[, 1] / 2)),
                  scaled = c(1.5, 1, 1, 1, 1), arguments = list(adapt_delta = 0.99)),
    # gamma(3, 2), bounded below, and beta(2, 5) on (1, 3)
    bounded = list(f = function(a, b) 2 * log(a) - 2 * a + log(b - 1) + 4 * log(3 - b),
                   init = list(a = 1, b = 2), mean = c(1.5, 1 + 2 * 2 / 7),
                   sd = c(sqrt(3) / 2, 2 * sqrt(10 / 49 / 8)),
                   transform = list(a = cl_lower(0), b = cl_bounds(1, 3))),
    simplex = list(f = function(p) sum(c(0.5, 1, 2, 4) * log(p)),
                   init = list(p = rep(0.25, 4)), mean = c(1.5, 2, 3, 5) / 11.5,
                   sd = sqrt(c(1.5, 2, 3, 5) * c(10, 9.5, 8.5, 6.5) / 11.5^2 / 12.5),
                   transform = list(p = cl_simplex())),
    # LKJ(2) of order 4: each correlation is beta(3, 3) on (-1, 1)
    factor = list(f = function(l) sum((c(2, 1, 0) + 2) * log(c(l[2, 2], l[3, 3], l[4, 4]))),
                  init = list(l = diag(4)), mean = numeric(6), sd = rep(sqrt(1 / 7), 6),
                  report = function(draws) {
                    t(apply(draws, 1, function(row) {
                      l <- matrix(row, 4)
                      tcrossprod(l)[lower.tri(l)]
                    }))
                  }, transform = list(l = cl_corr_factor())))
}

expect_target <- function(name, iter) {
  target <- targets()[[name]]
  set.seed(1)
  fit <- do.call(quiet_sample, c(list(cl_gradient(target$f), target$init, chains = 4,
                                      warmup = 1000, iter = iter, seed = 1, refresh = 0,
                                      transform = target$transform), target$arguments))
  draws <- matrix(fit$draws, prod(dim(fit$draws)[1:2]))
  values <- if (is.null(target$report)) draws else target$report(draws)
  sd <- if (is.null(target$scaled)) target$sd else target$scaled
  off <- c()
  for (k in seq_len(ncol(values))) {
    x <- matrix(values[, k], iter)
    squares <- (x - target$mean[k])^2
    error <- function(x) stats::sd(x) / sqrt(effective_size(halves(x)))
    off <- c(off, (mean(x) - target$mean[k]) / error(x),
             (mean(squares) - sd[k]^2) / error(squares))
  }
  expect_lt(max(abs(off)), 4, label = sprintf("the largest error of %s, in MCSE,", name))
}

for (name in c("banana", "mixture", "funnel", "bounded", "simplex", "factor")) local({
  name <- name
  test_that(sprintf("known target: %s", name), {
    on_host(expect_target(name, full_or_quick(8000, 1500)))
  })
})

test_on_host("known target: 50 correlated normal parameters, condition 1e6", {
  set.seed(1)
  q <- qr.Q(qr(matrix(rnorm(2500), 50)))
  values <- 10^seq(-3, 3, length.out = 50)
  precision <- q %*% (t(q) / values)
  f <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
  fit <- quiet_sample(f, numeric(50), seed = 2, metric = "dense", pooled = TRUE, chains = 4,
                      warmup = 400, iter = full_or_quick(4000, 1000))
  expect_moments(fit, numeric(50), sqrt(rowSums((q * rep(sqrt(values), each = 50))^2)))
})
