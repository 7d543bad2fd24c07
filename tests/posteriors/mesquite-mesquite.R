# Yield of mesquite bushes: a linear regression with flat priors.

function(data) {
  x <- with(data, cbind(1, diam1, diam2, canopy_height, total_height, density, group))
  y <- data$weight
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
