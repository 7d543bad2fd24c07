# Programs of posteriordb as R functions, for host-programs.R: `posterior` names the data,
# which are simulated where `simulate` stands, since copies of posteriordb often lack them. The
# point is where all unconstrained parameters are zero. Recursions are plain loops.

normal <- function(x, mean, sd) dnorm(x, mean, sd, log = TRUE)
positive <- function(...) stats::setNames(rep(list(cl_lower(0)), ...length()), c(...))
# The logarithm of exp(a) + exp(b).
add <- function(a, b) pmax(a, b) + log1p(exp(-abs(a - b)))

radon <- function() {
  n <- 12573L
  county <- sort(sample.int(386L, n, TRUE))
  floor_measure <- as.double(runif(n) < 0.2)
  log_uppm <- rnorm(386L)[county]
  y <- rnorm(386L, 1.3, 0.3)[county] + 0.3 * log_uppm - 0.6 * floor_measure + rnorm(n, 0, 0.7)
  list(N = n, J = 386L, county_idx = county, county = county, floor_measure = floor_measure,
       log_uppm = log_uppm, log_radon = y, y = y)
}

# Of two states, by the logarithms of their densities at each time, in columns.
hidden_markov <- function(theta1, theta2, seen) {
  move1 <- log(c(theta1[1], theta2[1]))
  move2 <- log(c(theta1[2], theta2[2]))
  state <- seen(1)
  for (t in 2:attr(seen, "n")) {
    a <- state + move1
    b <- state + move2
    state <- c(add(a[1], a[2]), add(b[1], b[2])) + seen(t)
  }
  add(state[1], state[2])
}

slice <- list()

slice$radon_pooled <- list(simulate = radon, model = function(d) list(
  f = function(alpha, beta, sigma_y) {
    normal(sigma_y, 0, 1) + normal(alpha, 0, 10) + normal(beta, 0, 10) +
      sum(normal(d$log_radon, alpha + beta * d$floor_measure, sigma_y))
  },
  at = list(alpha = 0, beta = 0, sigma_y = 1), transform = positive("sigma_y")))

slice$radon_hierarchical_intercept_centered <- list(simulate = radon, model = function(d) list(
  f = function(alpha, beta, mu_alpha, sigma_alpha, sigma_y) {
    normal(sigma_alpha, 0, 1) + normal(sigma_y, 0, 1) + normal(mu_alpha, 0, 10) +
      sum(normal(beta, 0, 10)) + sum(normal(alpha, mu_alpha, sigma_alpha)) +
      sum(normal(d$log_radon, alpha[d$county_idx] + d$log_uppm * beta[1] +
                   d$floor_measure * beta[2], sigma_y))
  },
  at = list(alpha = numeric(d$J), beta = c(0, 0), mu_alpha = 0, sigma_alpha = 1, sigma_y = 1),
  transform = positive("sigma_alpha", "sigma_y")))

slice$radon_county_intercept <- list(simulate = radon, model = function(d) list(
  f = function(alpha, beta, sigma_y) {
    normal(sigma_y, 0, 1) + sum(normal(alpha, 0, 10)) + normal(beta, 0, 10) +
      sum(normal(d$log_radon, alpha[d$county_idx] + beta * d$floor_measure, sigma_y))
  },
  at = list(alpha = numeric(d$J), beta = 0, sigma_y = 1), transform = positive("sigma_y")))

slice$radon_county <- list(simulate = radon, model = function(d) list(
  f = function(a, mu_a, sigma_a, sigma_y) {
    normal(mu_a, 0, 1) + sum(normal(a, mu_a, sigma_a)) + sum(normal(d$y, a[d$county], sigma_y))
  },
  at = list(a = numeric(d$J), mu_a = 0, sigma_a = 50, sigma_y = 50),
  transform = list(sigma_a = cl_bounds(0, 100), sigma_y = cl_bounds(0, 100))))

slice$arK <- list(posterior = "arK", model = function(d) {
  y <- d$y[-seq_len(d$K)]
  before <- sapply(seq_len(d$K), function(k) d$y[(d$K + 1 - k):(d$T - k)])
  list(
    f = function(alpha, beta, sigma) {
      normal(alpha, 0, 10) + sum(normal(beta, 0, 10)) + dcauchy(sigma, 0, 2.5, log = TRUE) +
        sum(normal(y, alpha + c(before %*% beta), sigma))
    },
    at = list(alpha = 0, beta = numeric(d$K), sigma = 1), transform = positive("sigma"))
})

slice$nes <- list(simulate = function() {
  n <- 476L
  x <- list(real_ideo = sample(7, n, TRUE), race_adj = rbinom(n, 1L, 0.1) + 1,
            educ1 = sample(4, n, TRUE), gender = rbinom(n, 1L, 0.5) + 1,
            income = sample(5, n, TRUE))
  c(list(N = n, partyid7 = 2 + 0.4 * x$real_ideo + rnorm(n, 0, 1.8),
         age_discrete = sample(4L, n, TRUE)), x)
}, model = function(d) {
  x <- with(d, cbind(1, real_ideo, race_adj, age_discrete == 2, age_discrete == 3,
                     age_discrete == 4, educ1, gender, income))
  list(f = function(beta, sigma) sum(normal(d$partyid7, x %*% beta, sigma)),
       at = list(beta = numeric(9), sigma = 1), transform = positive("sigma"))
})

slice$eight_schools_noncentered <- list(posterior = "eight_schools", model = function(d) list(
  f = function(theta_trans, mu, tau) {
    sum(normal(theta_trans, 0, 1)) + sum(normal(d$y, theta_trans * tau + mu, d$sigma)) +
      normal(mu, 0, 5) + dcauchy(tau, 0, 5, log = TRUE)
  },
  at = list(theta_trans = numeric(8), mu = 0, tau = 1), transform = positive("tau")))

slice$election88_full <- list(posterior = "election88", model = function(d) list(
  f = function(a, b, c, d_, e, beta, sigma) {
    eta <- beta[1] + beta[2] * d$black + beta[3] * d$female + beta[5] * (d$female * d$black) +
      beta[4] * d$v_prev_full + a[d$age] + b[d$edu] + c[d$age_edu] + d_[d$state] +
      e[d$region_full]
    sum(normal(a, 0, sigma[1])) + sum(normal(b, 0, sigma[2])) + sum(normal(c, 0, sigma[3])) +
      sum(normal(d_, 0, sigma[4])) + sum(normal(e, 0, sigma[5])) + sum(normal(beta, 0, 100)) +
      sum(dbinom(d$y, 1, plogis(eta), log = TRUE))
  },
  at = list(a = numeric(4), b = numeric(4), c = numeric(16), d_ = numeric(51), e = numeric(5),
            beta = numeric(5), sigma = rep(50, 5)),
  transform = list(sigma = cl_bounds(0, 100))))

slice$bym2_offset_only <- list(simulate = function() {
  n <- 1921L
  node1 <- sample.int(n - 1L, 5461L, TRUE)
  exposure <- rexp(n, 0.01) + 1
  list(N = n, N_edges = 5461L, node1 = node1, node2 = pmin(n, node1 + sample.int(30L, 5461L, TRUE)),
       y = rpois(n, 0.05 * exposure), E = exposure, scaling_factor = 0.7)
}, model = function(d) list(
  f = function(beta0, sigma, rho, theta, phi) {
    convolved <- sqrt(1 - rho) * theta + sqrt(rho / d$scaling_factor) * phi
    sum(dpois(d$y, exp(log(d$E) + beta0 + convolved * sigma), log = TRUE)) -
      0.5 * sum((phi[d$node1] - phi[d$node2])^2) + normal(beta0, 0, 1) +
      sum(normal(theta, 0, 1)) + normal(sigma, 0, 1) + dbeta(rho, 0.5, 0.5, log = TRUE) +
      normal(sum(phi), 0, 0.001 * d$N)
  },
  at = list(beta0 = 0, sigma = 1, rho = 0.5, theta = numeric(d$N), phi = numeric(d$N)),
  transform = list(sigma = cl_lower(0), rho = cl_bounds(0, 1))))

slice$dogs <- list(posterior = "dogs", model = function(d) {
  before <- function(x) t(apply(x, 1L, function(v) cumsum(c(0, v[-length(v)]))))
  avoided <- before(1 - d$y)
  shocked <- before(d$y)
  list(
    f = function(beta) {
      total <- sum(normal(beta, 0, 100))
      for (i in seq_len(d$n_dogs)) {
        for (j in seq_len(d$n_trials)) {
          eta <- beta[1] + beta[2] * avoided[i, j] + beta[3] * shocked[i, j]
          total <- total + dbinom(d$y[i, j], 1, plogis(eta), log = TRUE)
        }
      }
      total
    },
    at = list(beta = numeric(3)), transform = list())
})

slice$kidscore_momiq <- list(posterior = "kidiq", model = function(d) list(
  f = function(beta, sigma) {
    dcauchy(sigma, 0, 2.5, log = TRUE) +
      sum(normal(d$kid_score, beta[1] + beta[2] * d$mom_iq, sigma))
  },
  at = list(beta = c(0, 0), sigma = 1), transform = positive("sigma")))

slice$lsat_model <- list(posterior = "lsat_data", model = function(d) {
  r <- d$response[rep(seq_len(d$R), diff(c(0, d$culm))), ]
  list(
    f = function(alpha, theta, beta) {
      total <- sum(normal(alpha, 0, 100)) + sum(normal(theta, 0, 1)) + normal(beta, 0, 100)
      for (k in seq_len(d$T)) {
        total <- total + sum(dbinom(r[, k], 1, plogis(beta * theta - alpha[k]), log = TRUE))
      }
      total
    },
    at = list(alpha = numeric(d$T), theta = numeric(d$N), beta = 1), transform = positive("beta"))
})

slice$hmm_example <- list(posterior = "hmm_example", model = function(d) list(
  f = function(theta1, theta2, mu) {
    sum(normal(mu, c(3, 10), 1)) +
      hidden_markov(theta1, theta2, structure(function(t) normal(d$y[t], mu, 1), n = d$N))
  },
  at = list(theta1 = c(0.5, 0.5), theta2 = c(0.5, 0.5), mu = c(1, 2)),
  transform = list(theta1 = cl_simplex(), theta2 = cl_simplex(), mu = cl_positive_ordered())))

slice$hmm_drive_0 <- list(posterior = "bball_drive_event_0", model = function(d) list(
  f = function(theta1, theta2, phi, lambda) {
    seen <- function(t) dexp(d$u[t], phi, log = TRUE) + dexp(d$v[t], lambda, log = TRUE)
    sum((d$alpha[1, ] - 1) * log(theta1)) + sum((d$alpha[2, ] - 1) * log(theta2)) +
      sum(normal(phi, c(0, 3), 1)) + sum(normal(lambda, c(0, 3), 1)) +
      hidden_markov(theta1, theta2, structure(seen, n = d$N))
  },
  at = list(theta1 = c(0.5, 0.5), theta2 = c(0.5, 0.5), phi = c(1, 2), lambda = c(1, 2)),
  transform = list(theta1 = cl_simplex(), theta2 = cl_simplex(), phi = cl_positive_ordered(),
                   lambda = cl_positive_ordered())))

slice$garch11 <- list(posterior = "garch", model = function(d) list(
  f = function(mu, alpha0, alpha1, share) {
    beta1 <- share * (1 - alpha1)
    variance <- d$sigma1^2
    total <- normal(d$y[1], mu, d$sigma1) + log(1 - alpha1)
    for (t in 2:d$T) {
      variance <- alpha0 + alpha1 * (d$y[t - 1] - mu)^2 + beta1 * variance
      total <- total + normal(d$y[t], mu, sqrt(variance))
    }
    total
  },
  at = list(mu = 0, alpha0 = 1, alpha1 = 0.5, share = 0.5),
  transform = list(alpha0 = cl_lower(0), alpha1 = cl_bounds(0, 1), share = cl_bounds(0, 1))))

slice$arma11 <- list(posterior = "arma", model = function(d) list(
  f = function(mu, phi, theta, sigma) {
    error <- d$y[1] - (mu + phi * mu)
    total <- normal(mu, 0, 10) + normal(phi, 0, 2) + normal(theta, 0, 2) +
      dcauchy(sigma, 0, 2.5, log = TRUE) + normal(error, 0, sigma)
    for (t in 2:d$T) {
      error <- d$y[t] - (mu + phi * d$y[t - 1] + theta * error)
      total <- total + normal(error, 0, sigma)
    }
    total
  },
  at = list(mu = 0, phi = 0, theta = 0, sigma = 1), transform = positive("sigma")))

slice$normal_mixture <- list(simulate = function() {
  list(N = 1000L, y = rnorm(1000L, ifelse(runif(1000L) < 0.4, -1.5, 2), 1))
}, model = function(d) list(
  f = function(theta, mu) {
    sum(normal(mu, 0, 10)) +
      sum(add(log(theta) + normal(d$y, mu[1], 1), log1p(-theta) + normal(d$y, mu[2], 1)))
  },
  at = list(theta = 0.5, mu = c(0, 0)), transform = list(theta = cl_bounds(0, 1))))

slice$low_dim_gauss_mix <- list(posterior = "low_dim_gauss_mix", model = function(d) list(
  f = function(mu, sigma, theta) {
    sum(normal(sigma, 0, 2)) + sum(normal(mu, 0, 2)) + dbeta(theta, 5, 5, log = TRUE) +
      sum(add(log(theta) + normal(d$y, mu[1], sigma[1]),
              log1p(-theta) + normal(d$y, mu[2], sigma[2])))
  },
  at = list(mu = c(0, 1), sigma = c(1, 1), theta = 0.5),
  transform = list(mu = cl_ordered(), sigma = cl_lower(0), theta = cl_bounds(0, 1))))

slice$wells_dist100ars_model <- list(simulate = function() {
  n <- 3020L
  dist <- rexp(n, 0.02)
  arsenic <- rgamma(n, 2, 1.2)
  list(N = n, dist = dist, arsenic = arsenic,
       switched = rbinom(n, 1L, plogis(-0.9 * dist / 100 + 0.46 * arsenic)))
}, model = function(d) {
  x <- cbind(d$dist / 100, d$arsenic)
  list(
    f = function(alpha, beta) {
      sum(dbinom(d$switched, 1, plogis(alpha + c(x %*% beta)), log = TRUE))
    },
    at = list(alpha = 0, beta = c(0, 0)), transform = list())
})

slice$diamonds <- list(posterior = "diamonds", model = function(d) {
  x <- scale(d$X[, -1], scale = FALSE)
  list(
    f = function(b, intercept, sigma) {
      student <- function(x, location) dt((x - location) / 10, 3, log = TRUE)
      sum(normal(b, 0, 1)) + student(intercept, 8) + student(sigma, 0) +
        sum(normal(d$Y, intercept + c(x %*% b), sigma))
    },
    at = list(b = numeric(d$K - 1L), intercept = 0, sigma = 1), transform = positive("sigma"))
})

slice$lotka_volterra <- list(posterior = "hudson_lynx_hare", model = function(d) {
  slope <- function(t, z, theta) {
    c((theta[1] - theta[2] * z[2]) * z[1], (theta[4] * z[1] - theta[3]) * z[2])
  }
  list(
    f = function(theta, z_init, sigma) {
      z <- cl_ode(slope, z_init, c(0, d$ts), theta = theta, rtol = 1e-5, atol = 1e-3,
                  max_steps = 100) # as cl_stan() allows here
      seen <- rbind(d$y_init, d$y)
      sum(normal(theta, c(1, 0.05, 1, 0.05), c(0.5, 0.05, 0.5, 0.05))) +
        sum(dlnorm(sigma, -1, 1, log = TRUE)) + sum(dlnorm(z_init, log(10), 1, log = TRUE)) +
        sum(dlnorm(seen[, 1], log(z[, 1]), sigma[1], log = TRUE)) +
        sum(dlnorm(seen[, 2], log(z[, 2]), sigma[2], log = TRUE))
    },
    at = list(theta = rep(1, 4), z_init = c(1, 1), sigma = c(1, 1)),
    transform = positive("theta", "z_init", "sigma"))
})
