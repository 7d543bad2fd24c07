# Earnings and height: both logarithms.

function(data) {
  x <- with(data, cbind(1, log(height), male))
  y <- with(data, log(earn))
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
