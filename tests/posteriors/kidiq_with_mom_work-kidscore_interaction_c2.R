# Test scores of children: predictors centred at conventional values.

function(data) {
  data$hs <- data$mom_hs - 0.5
  data$iq <- data$mom_iq - 100
  x <- with(data, cbind(1, hs, iq, hs * iq))
  y <- data$kid_score
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
