# Yield of mesquite bushes: volume, area and shape.

function(data) {
  x <- with(data, cbind(1, log(diam1 * diam2 * canopy_height), log(diam1 * diam2),
                        log(diam1 / diam2), log(total_height), log(density), group))
  y <- with(data, log(weight))
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
