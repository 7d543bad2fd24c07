# An autoregression of order K.

function(data) {
  lags <- embed(data$y, data$K + 1)
  y <- lags[, 1]
  x <- lags[, -1]
  list(
    log_density = function(alpha, beta, sigma) {
      sum(dnorm(y, alpha + x %*% beta, sigma, log = TRUE)) + dnorm(alpha, 0, 10, log = TRUE) +
        sum(dnorm(beta, 0, 10, log = TRUE)) + dcauchy(sigma, 0, 2.5, log = TRUE)
    },
    init = list(alpha = 0, beta = numeric(data$K), sigma = 1),
    transform = list(sigma = cl_lower(0))
  )
}
