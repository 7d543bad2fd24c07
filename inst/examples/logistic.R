# Logistic regression on real data, which stays on the device during a fit: death during follow-up
# in a study of free light chains in blood (survival::flchain). Called by demo.R.

flchain_model <- death ~ age + sex + log(kappa) + log(lambda) + log(creatinine) + mgus

# 6,524 people with complete data.
flchain_data <- function() {
  data <- survival::flchain[c("death", "age", "sex", "kappa", "lambda", "creatinine", "mgus")]
  data[stats::complete.cases(data), ]
}

# Many observations: the data is repeated, so that passes over it take most of the time.
repeat_data <- function(data, times) data[rep(seq_len(nrow(data)), times), ]

demo_logistic <- function() {
  section("Logistic regression: mortality by free light chains (survival::flchain)")
  data <- flchain_data()
  row <- both_engines("logistic fit, flchain", sprintf("%d x 7", nrow(data)),
                      function() cl_glm(flchain_model, data), coef)
  fit <- if (is.null(attr(row, "device"))) attr(row, "host") else attr(row, "device")
  print(summary(fit))
  peer <- glm(flchain_model, binomial, data, control = list(epsilon = 1e-14, maxit = 50))
  difference <- max(abs(coef(fit) - coef(peer)) / abs(coef(peer)))
  cat(sprintf("\nlargest relative difference from glm()'s coefficients: %.1e\n", difference))
  if (difference > 1e-8) stop("the coefficients differ from glm()'s")
  open_plot("logistic", 12, 4.2)
  plot(fit)
  dev.off()

  large <- repeat_data(data, 40)
  # Repeating the data 40 times does not move the maximum.
  repeated <- both_engines("logistic fit, flchain 40 times", sprintf("%d x 7", nrow(large)),
                           function() cl_glm(flchain_model, large), coef)
  rbind(row, repeated)
}
