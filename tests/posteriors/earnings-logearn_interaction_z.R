# Earnings and height: standardised height and its interaction with sex.

function(data) {
  data$z <- (data$height - mean(data$height)) / sd(data$height)
  x <- with(data, cbind(1, z, male, z * male))
  y <- with(data, log(earn))
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
