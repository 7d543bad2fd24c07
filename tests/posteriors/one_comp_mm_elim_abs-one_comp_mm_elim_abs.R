# One compartment, first-order absorption, Michaelis-Menten elimination, by Runge-Kutta with
# `steps` between two observations, which are equally spaced.

function(data, steps = 5) {
  h <- data$times[1] / steps
  list(
    log_density = function(k_a, K_m, V_m, sigma) {
      slope <- function(t, y) {
        data$D / data$V * k_a * exp(-k_a * t) - V_m / data$V * y / (K_m + y)
      }
      y <- 0
      states <- list()
      for (i in seq_len(data$N_t * steps)) {
        t <- (i - 1) * h
        k1 <- slope(t, y)
        k2 <- slope(t + h / 2, y + h / 2 * k1)
        k3 <- slope(t + h / 2, y + h / 2 * k2)
        y <- y + h / 6 * (k1 + 2 * (k2 + k3) + slope(t + h, y + h * k3))
        if (i %% steps == 0) states <- c(states, list(y))
      }
      sum(dlnorm(data$C_hat, log(do.call(c, states)), sigma, log = TRUE)) +
        sum(dcauchy(c(k_a, K_m, V_m, sigma), log = TRUE))
    },
    init = list(k_a = 0.7, K_m = 0.5, V_m = 0.8, sigma = 0.2),
    transform = list(k_a = cl_lower(0), K_m = cl_lower(0), V_m = cl_lower(0), sigma = cl_lower(0))
  )
}
