# Test scores of children: centred predictors.

function(data) {
  data$hs <- data$mom_hs - mean(data$mom_hs)
  data$iq <- data$mom_iq - mean(data$mom_iq)
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
