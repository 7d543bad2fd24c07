# A linear regression with normal priors.

function(data) {
  x <- data$X
  y <- data$y
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE)) + sum(dnorm(beta, 0, 10, log = TRUE)) +
        dnorm(sigma, 0, 10, log = TRUE)
    },
    init = list(beta = numeric(ncol(x)), sigma = 1),
    transform = list(sigma = cl_lower(0))
  )
}
