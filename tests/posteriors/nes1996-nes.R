# Party identification in the election study of 1996: a linear regression with flat priors.

function(data) {
  x <- with(data, cbind(1, real_ideo, race_adj, age_discrete == 2, age_discrete == 3,
                        age_discrete == 4, educ1, gender, income))
  y <- data$partyid7
  list(
    log_density = function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE))
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0))
  )
}
