# Test scores of children: whether the mother finished high school.

function(data) {
  x <- with(data, cbind(1, mom_hs))
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
