# Hares and lynxes: the Lotka-Volterra equations by Runge-Kutta, `steps` a year.

function(data, steps = 8) {
  y <- rbind(data$y_init, data$y)
  list(
    log_density = function(theta, z_init, sigma) {
      slope <- function(z) c(theta[1] - theta[2] * z[2], theta[4] * z[1] - theta[3]) * z
      h <- 1 / steps
      z <- z_init
      states <- list(z)
      for (year in data$ts) {
        for (step in seq_len(steps)) {
          k1 <- slope(z)
          k2 <- slope(z + h / 2 * k1)
          k3 <- slope(z + h / 2 * k2)
          z <- z + h / 6 * (k1 + 2 * (k2 + k3) + slope(z + h * k3))
        }
        states <- c(states, list(z))
      }
      location <- log(do.call(cbind, states))
      sum(dlnorm(t(y), location, sigma, log = TRUE)) + sum(dlnorm(z_init, log(10), 1, log = TRUE)) +
        sum(dnorm(theta, c(1, 0.05), c(0.5, 0.05), log = TRUE)) +
        sum(dlnorm(sigma, -1, 1, log = TRUE))
    },
    init = list(theta = c(0.5, 0.03, 0.8, 0.03), z_init = c(30, 4), sigma = c(0.5, 0.5)),
    jitter = 0.1,
    transform = list(theta = cl_lower(0), z_init = cl_lower(0), sigma = cl_lower(0))
  )
}
