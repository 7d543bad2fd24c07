# Test scores of children: four groups.

function(data) {
  x <- with(data, cbind(1, mom_work == 2, mom_work == 3, mom_work == 4))
  y <- data$kid_score
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
