# One compartment, first-order absorption, Michaelis-Menten elimination, by Runge-Kutta with
# `steps` between two observations.

function(data, steps = 5) {
  list(
    log_density = function(k_a, K_m, V_m, sigma) {
      slope <- function(t, y) {
        data$D / data$V * k_a * exp(-k_a * t) - V_m / data$V * y / (K_m + y)
      }
      y <- cl_ode(slope, 0, c(0, data$times), steps = steps)[-1]
      sum(dlnorm(data$C_hat, log(y), sigma, log = TRUE)) +
        sum(dcauchy(c(k_a, K_m, V_m, sigma), log = TRUE))
    },
    init = list(k_a = 0.7, K_m = 0.5, V_m = 0.8, sigma = 0.2),
    transform = list(k_a = cl_lower(0), K_m = cl_lower(0), V_m = cl_lower(0), sigma = cl_lower(0))
  )
}
