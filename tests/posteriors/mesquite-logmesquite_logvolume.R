# Yield of mesquite bushes: volume.

function(data) {
  x <- with(data, cbind(1, log(diam1 * diam2 * canopy_height)))
  y <- with(data, log(weight))
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
