# Logistic regression on real data by maximising a likelihood that stays on the device: death during
# follow-up in a study of free light chains in blood (survival::flchain). Called by demo.R.

# 6,524 persons with complete data; standardised predictors, right-skewed ones as logarithms.
flchain_data <- function() {
  data <- survival::flchain
  used <- c("age", "sex", "kappa", "lambda", "creatinine", "mgus")
  data <- data[stats::complete.cases(data[used]), ]
  x <- with(data, cbind(age = age, male = sex == "M", log_kappa = log(kappa),
                        log_lambda = log(lambda), log_creatinine = log(creatinine), mgus = mgus))
  list(y = as.integer(data$death == 1), x = scale(x))
}

# Maximum likelihood with BFGS: value and gradient of each step come from one pass over x.
fit_logistic <- function(data) {
  f <- cl_likelihood("bernoulli_logit", data$y, data$x)
  objective <- cl_objective(f)
  start <- rep(0, ncol(data$x) + 1)
  fit <- optim(start, objective$fn, objective$gr, method = "BFGS",
               control = list(reltol = 1e-15, maxit = 500))
  fit$likelihood <- f
  fit
}

# Many observations: the data repeated, so that the time goes into passes over x.
repeat_data <- function(data, times) {
  list(y = rep(data$y, times), x = data$x[rep(seq_len(nrow(data$x)), times), ])
}

demo_logistic <- function() {
  section("Logistic regression: mortality by free light chains (survival::flchain)")
  data <- flchain_data()
  row <- both_engines("logistic fit, flchain", sprintf("%d x %d", nrow(data$x), ncol(data$x)),
                      function() fit_logistic(data), function(fit) fit$par)
  fit <- if (is.null(attr(row, "device"))) attr(row, "host") else attr(row, "device")
  peer <- glm(data$y ~ data$x, family = binomial, control = list(epsilon = 1e-14, maxit = 50))
  print(fit$likelihood)
  table <- data.frame(statcl = fit$par, glm = unname(coef(peer)),
                      difference = signif(fit$par - unname(coef(peer)), 2),
                      row.names = c("(intercept)", colnames(data$x)))
  print(table, digits = 8)
  cat(sprintf("log likelihood %.8f, glm() %.8f; %d evaluations\n", -fit$value,
              as.numeric(logLik(peer)), sum(fit$counts)))
  if (max(abs(table$difference)) > 1e-6) stop("the coefficients differ from glm()'s")

  large <- repeat_data(data, 40)
  # The same data 40 times has its maximum at the same place.
  repeated <- both_engines("logistic fit, flchain 40 times",
                           sprintf("%d x %d", nrow(large$x), ncol(large$x)),
                           function() fit_logistic(large), function(fit) fit$par)
  rbind(row, repeated)
}
