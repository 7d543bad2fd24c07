# Prices of diamonds: 24 centred predictors.

function(data) {
  x <- scale(data$X[, -1], scale = FALSE)
  y <- data$Y
  list(
    log_density = function(b, Intercept, sigma) {
      sum(dnorm(y, Intercept + x %*% b, sigma, log = TRUE)) + sum(dnorm(b, log = TRUE)) +
        dt((Intercept - 8) / 10, 3, log = TRUE) + dt(sigma / 10, 3, log = TRUE)
    },
    init = list(b = numeric(ncol(x)), Intercept = mean(y), sigma = 1),
    transform = list(sigma = cl_lower(0))
  )
}
