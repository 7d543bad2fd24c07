# R-hat and effective sample size (Vehtari, Gelman, Simpson, Carpenter and Buerkner, 2021, Bayesian
# Analysis 16). `x` is a matrix iteration x chain.

# Each chain split into halves.
halves <- function(x) {
  n <- nrow(x) %/% 2L
  cbind(x[seq_len(n), , drop = FALSE], x[nrow(x) - n + seq_len(n), , drop = FALSE])
}

# Normal scores of the ranks.
rank_scores <- function(x) {
  x[] <- stats::qnorm((rank(x) - 0.375) / (length(x) + 0.25))
  x
}

rhat <- function(x) {
  x <- halves(x)
  max(rhat_of(rank_scores(x)), rhat_of(rank_scores(abs(x - stats::median(x)))))
}

# NaN if the draws are constant, or too few.
rhat_of <- function(x) {
  n <- nrow(x)
  if (n < 2L) return(NaN)
  within <- mean(apply(x, 2L, stats::var))
  between <- if (ncol(x) > 1L) stats::var(colMeans(x)) else 0
  sqrt(((n - 1) / n * within + between) / within)
}

ess_bulk <- function(x) effective_size(rank_scores(halves(x)))

ess_tail <- function(x) {
  limits <- stats::quantile(x, c(0.05, 0.95), names = FALSE)
  min(effective_size(halves(1 * (x <= limits[1L]))), effective_size(halves(1 * (x <= limits[2L]))))
}

# The number of draws divided by the integrated autocorrelation time. Autocorrelations combine those
# within and between chains and are summed in pairs up to the first negative pair, after the pairs
# are made monotone (Geyer's initial monotone sequence).
effective_size <- function(x) {
  n <- nrow(x)
  if (n < 3L || anyNA(x)) return(NA_real_)
  covariance <- rowMeans(apply(x, 2L, autocovariance))
  within <- covariance[1L] * n / (n - 1)
  total <- covariance[1L] + if (ncol(x) > 1L) stats::var(colMeans(x)) else 0
  if (!(total > 0)) return(NA_real_)
  rho <- 1 - (within - covariance) / total
  rho[1L] <- 1
  pairs <- colSums(matrix(rho[seq_len(2L * (n %/% 2L))], 2L))
  negative <- which(pairs < 0)
  last <- if (length(negative) > 0L) negative[1L] - 1L else length(pairs)
  time <- -1 + 2 * sum(cummin(pairs[seq_len(last)]))
  # an even term beyond the last pair, if positive, takes out some of the bias of antithetic chains
  if (2L * last < n) time <- time + max(0, rho[2L * last + 1L])
  length(x) / max(time, 1 / log10(length(x)))
}

# Autocovariances of all lags (divided by n), by the discrete Fourier transform.
autocovariance <- function(x) {
  n <- length(x)
  padded <- stats::nextn(2L * n)
  power <- Mod(stats::fft(c(x - mean(x), numeric(padded - n))))^2
  Re(stats::fft(power, inverse = TRUE))[seq_len(n)] / (padded * n)
}
