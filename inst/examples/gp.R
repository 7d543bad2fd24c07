# Gaussian-process regression on two classical series: monthly CO2 at Mauna Loa (trend, season and
# short-lived deviations, each a term of the kernel) and the head acceleration of a motorcyclist in
# a crash test. Called by demo.R.

co2_data <- function() {
  data.frame(time = as.vector(time(datasets::co2)), co2 = as.vector(datasets::co2))
}

# A smooth trend, a season of one year (a smooth function of sine and cosine of the phase), and
# short-lived deviations from both.
fit_co2 <- function(data = co2_data(), ...) {
  cl_gp(co2 ~ time + cos(2 * pi * time) + sin(2 * pi * time), data = data,
        kernel = k_exp_quad(columns = 1) + k_exp_quad(columns = 2:3) + k_matern32(columns = 1), ...)
}

fit_mcycle <- function(...) cl_gp(accel ~ times, data = MASS::mcycle, kernel = k_matern52(), ...)

# The whole series with its forecast, and the years around the end of the data.
plot_co2 <- function(fit) {
  colour <- "#0072B2"
  old <- par(mar = c(2.4, 4.2, 2.2, 1.4), mgp = c(2.2, 0.6, 0), tcl = -0.3)
  on.exit({
    layout(1)
    par(old)
  })
  layout(matrix(1:2, 1), widths = c(1.5, 1))
  plot(fit, xlim = c(1959, 2008), n = 1200, cex = 0.3, xlab = "", legend = "bottomright",
       ylab = expression(CO[2] * ", parts per million"), col = colour,
       main = "Mauna Loa: data to 1997, forecast to 2008", font.main = 1, cex.main = 1)
  abline(v = 1998, lty = 3, col = "grey50")
  plot(fit, xlim = c(1994, 2002), n = 600, cex = 0.6, xlab = "", ylab = "", col = colour,
       legend = NULL, main = "around the end of the data", font.main = 1, cex.main = 1)
  abline(v = 1998, lty = 3, col = "grey50")
}

plot_mcycle <- function(fit) {
  old <- par(mar = c(4, 4.2, 1, 1), mgp = c(2.4, 0.7, 0), tcl = -0.3)
  on.exit(par(old))
  plot(fit, xlim = c(0, 65), xlab = "time after the impact, ms", ylab = "head acceleration, g")
}

# The log marginal likelihood of a fit, computed in base R.
reference_likelihood <- function(fit) {
  functions <- list(exp_quad = function(r) exp(-r^2 / 2),
                    matern32 = function(r) (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
                    matern52 = function(r) (1 + sqrt(5) * r + 5 * r^2 / 3) * exp(-sqrt(5) * r))
  covariance <- diag(fit$noise^2, nobs(fit))
  for (term in fit$kernel$terms) {
    used <- if (is.null(term$columns)) seq_len(ncol(fit$x)) else term$columns
    scaled <- sweep(fit$x[, used, drop = FALSE], 2, term$lengthscale, "/")
    covariance <- covariance + term$sd^2 * functions[[term$type]](as.matrix(dist(scaled)))
  }
  root <- chol(covariance)
  z <- backsolve(root, fit$y - fit$mean, transpose = TRUE)
  -sum(z^2) / 2 - sum(log(diag(root))) - nobs(fit) * log(2 * pi) / 2
}

# One data set: fit on both engines, compare with base R, plot.
demo_fit <- function(title, fit_it, plot_it, name, height) {
  section(title)
  row <- both_engines(paste("GP fit,", name), NA, fit_it, function(fit) fit$logLik)
  fit <- if (is.null(attr(row, "device"))) attr(row, "host") else attr(row, "device")
  row$size <- sprintf("n = %d", nobs(fit))
  print(summary(fit))
  cat(sprintf("log marginal likelihood with base R: %.9f (difference %.1e)\n",
              reference_likelihood(fit), fit$logLik - reference_likelihood(fit)))
  path <- open_plot(name, height = height)
  plot_it(fit)
  dev.off()
  cat("plot:", path, "\n")
  predicted <- both_engines(
    paste("GP prediction,", name), sprintf("n = %d, 5000 points", nobs(fit)), function() {
      many <- range(fit$variables[[1]])
      many <- setNames(data.frame(seq(many[1], many[2], length.out = 5000)), names(fit$variables))
      predict(fit, many, interval = "prediction")
    })
  rbind(row, predicted)
}

demo_gp <- function() {
  rbind(
    demo_fit("Gaussian process: CO2 at Mauna Loa (datasets::co2)", fit_co2, plot_co2, "co2", 4.5),
    demo_fit("Gaussian process: a motorcycle crash test (MASS::mcycle)", fit_mcycle, plot_mcycle,
             "mcycle", 5))
}
