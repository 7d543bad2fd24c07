# Hares and lynxes: the Lotka-Volterra equations by Runge-Kutta, `steps` a year.

function(data, steps = 8) {
  y <- rbind(data$y_init, data$y)
  list(
    log_density = function(theta, z_init, sigma) {
      slope <- function(t, z) c(theta[1] - theta[2] * z[2], theta[4] * z[1] - theta[3]) * z
      location <- t(log(cl_ode(slope, z_init, c(0, data$ts), steps = steps)))
      sum(dlnorm(t(y), location, sigma, log = TRUE)) + sum(dlnorm(z_init, log(10), 1, log = TRUE)) +
        sum(dnorm(theta, c(1, 0.05), c(0.5, 0.05), log = TRUE)) +
        sum(dlnorm(sigma, -1, 1, log = TRUE))
    },
    init = list(theta = c(0.5, 0.03, 0.8, 0.03), z_init = c(30, 4), sigma = c(0.5, 0.5)),
    jitter = 0.1,
    transform = list(theta = cl_lower(0), z_init = cl_lower(0), sigma = cl_lower(0))
  )
}
