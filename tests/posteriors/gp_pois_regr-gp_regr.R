# Gaussian process regression with the squared exponential covariance; sigma is a variance.

function(data) {
  squares <- outer(data$x, data$x, "-")^2
  y <- data$y
  list(
    log_density = function(rho, alpha, sigma) {
      covariance <- alpha^2 * exp(-squares / (2 * rho^2)) + diag(sigma, length(y))
      root <- chol(covariance)
      z <- backsolve(root, y, transpose = TRUE)
      -sum(log(diag(root))) - sum(z^2) / 2 + dgamma(rho, 25, 4, log = TRUE) +
        dnorm(alpha, 0, 2, log = TRUE) + dnorm(sigma, 0, 1, log = TRUE)
    },
    init = list(rho = 6, alpha = 2, sigma = 1),
    transform = list(rho = cl_lower(0), alpha = cl_lower(0), sigma = cl_lower(0))
  )
}
