# Makes gp-peers.csv: maximum likelihood estimates of Gaussian processes by nlme 3.1 (gls) and
# fields 14.1 (spatialProcess), for tests/testthat/test-gp-peers.R, where the data sets are made in
# the same way. Needs these packages, MASS, sp and modeldata. Run by hand, in this folder.
#
# Columns: data, peer, kernel, mean, sd, lengthscale, noise, value (the log likelihood that the peer
# reports, NA if it is not on our scale).
suppressMessages(library(fields)) # it looks for its covariance functions on the search path
source("../testthat/helper-gp-data.R")

rows <- list()
add <- function(data, peer, kernel, mean, sd, lengthscale, noise, value) {
  rows[[length(rows) + 1L]] <<- data.frame(data, peer, kernel, mean, sd = sd,
                                           lengthscale = lengthscale, noise = noise, value = value)
  print(rows[[length(rows)]])
}

by_gls <- function(name, mean) {
  d <- gp_data_set(name)
  frame <- data.frame(y = d$y, d$x)
  names(frame)[-1L] <- paste0("x", seq_len(ncol(d$x)))
  inputs <- stats::reformulate(names(frame)[-1L])
  formula <- if (mean == "linear") update(inputs, y ~ .) else y ~ 1
  start <- c(mean(apply(d$x, 2, sd)), 0.3)
  fit <- nlme::gls(formula, frame, method = "ML",
                   correlation = nlme::corGaus(start, form = inputs, nugget = TRUE),
                   control = nlme::glsControl(maxIter = 200, msMaxIter = 500, opt = "optim"))
  found <- coef(fit$modelStruct$corStruct, unconstrained = FALSE)
  add(name, "nlme", "exp_quad", mean, fit$sigma * sqrt(1 - found[["nugget"]]),
      found[["range"]] / sqrt(2), fit$sigma * sqrt(found[["nugget"]]), as.numeric(logLik(fit)))
}

by_fields <- function(name, smoothness) {
  d <- gp_data_set(name)
  fit <- fields::spatialProcess(d$x, d$y, mKrig.args = list(m = 1), smoothness = smoothness)
  range <- fit$summary[["aRange"]]
  add(name, "fields", if (smoothness == 1.5) "matern32" else "matern52", "constant",
      sqrt(fit$summary[["sigma2"]]), range * sqrt(2 * smoothness), fit$summary[["tau"]], NA)
}

attempt <- function(code) tryCatch(code, error = function(e) message(conditionMessage(e)))
attempt(by_fields("mcycle", 2.5))
attempt(by_fields("co2", 1.5))
attempt(by_fields("meuse", 1.5))
attempt(by_fields("quakes", 1.5))
attempt(by_gls("mcycle", "constant"))
attempt(by_gls("co2", "linear"))
attempt(by_gls("meuse", "constant"))
attempt(by_gls("quakes", "constant"))
attempt(by_gls("quakes", "linear"))
attempt(by_gls("Boston", "constant"))
attempt(by_gls("concrete", "linear"))
write.csv(do.call(rbind, rows), "gp-peers.csv", row.names = FALSE)
