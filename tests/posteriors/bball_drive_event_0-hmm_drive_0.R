# A hidden Markov model of two states with exponential emissions; the rates are ordered.

function(data) {
  alpha <- data$alpha
  rates <- function(steps) sum(dnorm(cumsum(steps), c(0, 3), 1, log = TRUE))
  list(
    log_density = function(theta1, theta2, phi_steps, lambda_steps) {
      phi <- cumsum(phi_steps)
      lambda <- cumsum(lambda_steps)
      move <- rbind(theta1, theta2)
      emit <- exp(-outer(data$u, phi) - outer(data$v, lambda))
      step <- function(p, e) {
        p <- c(p %*% move) * e * (phi * lambda)
        list(state = p / sum(p), out = log(sum(p)))
      }
      first <- emit[1, ] * phi * lambda
      total <- log(sum(first)) + sum(cl_scan(step, first / sum(first), emit[-1, ])$out)
      total + rates(phi_steps) + rates(lambda_steps) +
        sum((alpha[1, ] - 1) * log(theta1)) + sum((alpha[2, ] - 1) * log(theta2))
    },
    init = list(theta1 = c(0.98, 0.02), theta2 = c(0.05, 0.95), phi_steps = c(1.8, 5),
                lambda_steps = c(0.03, 0.05)), jitter = 0.1,
    transform = list(theta1 = cl_simplex(), theta2 = cl_simplex(), phi_steps = cl_lower(0),
                     lambda_steps = cl_lower(0)),
    report = function(theta1, theta2, phi_steps, lambda_steps) {
      list(theta1 = theta1, theta2 = theta2, phi = cumsum(phi_steps), lambda = cumsum(lambda_steps))
    }
  )
}
