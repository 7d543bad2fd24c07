# Eight schools: effects of coaching, as deviations from their mean in units of their scale.

function(data) {
  y <- data$y
  sigma <- data$sigma
  list(
    log_density = function(z, mu, tau) {
      theta <- mu + tau * z
      sum(dnorm(y, theta, sigma, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
        dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
    },
    init = list(z = numeric(8), mu = 0, tau = 1),
    transform = list(tau = cl_lower(0)),
    report = function(z, mu, tau) list(theta = mu + tau * z, mu = mu, tau = tau)
  )
}
