# Test scores of children: two predictors and their interaction.

function(data) {
  x <- with(data, cbind(1, mom_hs, mom_iq, mom_hs * mom_iq))
  y <- data$kid_score
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE)) +
        dcauchy(sigma, 0, 2.5, log = TRUE)
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
