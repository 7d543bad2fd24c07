# Earnings and height: a linear regression with flat priors.

function(data) {
  x <- with(data, cbind(1, height))
  y <- data$earn
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
