# Prices of diamonds: 24 centred predictors, strongly correlated. Sampled are the coefficients of
# their orthonormal basis, scaled, of which those of the predictors are a linear function.

function(data) {
  x <- scale(data$X[, -1], scale = FALSE)
  y <- data$Y
  basis <- qr(x)
  q <- qr.Q(basis) * sqrt(nrow(x))
  back <- solve(qr.R(basis)) * sqrt(nrow(x))
  list(
    log_density = function(theta, Intercept, sigma) {
      sum(dnorm(y, Intercept + q %*% theta, sigma, log = TRUE)) +
        sum(dnorm(back %*% theta, log = TRUE)) +
        dt((Intercept - 8) / 10, 3, log = TRUE) + dt(sigma / 10, 3, log = TRUE)
    },
    init = list(theta = numeric(ncol(x)), Intercept = mean(y), sigma = 1),
    transform = list(sigma = cl_lower(0)),
    report = function(theta, Intercept, sigma) c(back %*% theta, Intercept, sigma)
  )
}
