# Gaussian processes of other packages, with the same parameters and with their own estimates.

skip_on_cran() # long; run by ./dev check

# A function of a package that may be missing and is not named elsewhere in this package.
peer <- function(package, name) {
  testthat::skip_if_not_installed(package)
  getExportedValue(package, name)
}

peer_data <- function() {
  set.seed(4)
  x <- matrix(runif(120), 60, dimnames = list(NULL, c("u", "v")))
  list(x = x, y = sin(5 * x[, 1]) + x[, 2] + rnorm(60, sd = 0.2), at = matrix(runif(20), 10))
}

held <- c(sd = 1.3, lengthscale = 0.4, noise = 0.25)

test_each_engine("predictions agree with kernlab", {
  d <- peer_data()
  gausspr <- peer("kernlab", "gausspr")
  theirs <- gausspr(d$x, d$y, kernel = "rbfdot", kpar = list(sigma = 1 / (2 * 0.4^2)),
                    var = 0.25^2 / 1.3^2, scaled = FALSE, type = "regression",
                    variance.model = TRUE)
  their_predict <- peer("kernlab", "predict")
  mean <- as.vector(their_predict(theirs, d$at))
  se <- 1.3 * as.vector(their_predict(theirs, d$at, type = "sdeviation"))
  ours <- cl_gp(d$x, d$y, kernel = k_exp_quad(), ard = FALSE, mean = 0, fixed = held,
                method = "ml")
  got <- predict(ours, d$at, se.fit = TRUE)
  expect_close(unname(got$fit), mean, 1e-8)
  expect_close(unname(got$se.fit), se, 1e-8)
})

test_that("likelihoods and generalised least squares agree with nlme", {
  d <- peer_data()
  gls <- peer("nlme", "gls")
  share <- 0.25^2 / (0.25^2 + 1.3^2)
  frame <- data.frame(d$x, y = d$y)
  structure <- peer("nlme", "corGaus")(c(0.4 * sqrt(2), share), form = ~ u + v, nugget = TRUE,
                                       fixed = TRUE)
  for (model in list(list(y ~ 1, "estimate", "ML"), list(y ~ u + v, "linear", "ML"),
                     list(y ~ u + v, "linear", "REML"))) {
    theirs <- gls(model[[1]], frame, correlation = structure, method = model[[3]])
    scale <- theirs$sigma # they estimate the scale of the whole
    par <- c(sd = scale * sqrt(1 - share), lengthscale = 0.4, noise = scale * sqrt(share))
    each_engine({
      ours <- cl_gp(y ~ u + v, frame, kernel = k_exp_quad(), ard = FALSE, mean = model[[2]],
                    beta = if (model[[3]] == "REML") "integrate" else "profile", fixed = par,
                    method = "ml")
      expect_equal(ours$logLik, as.numeric(logLik(theirs)), tolerance = 1e-9)
      expect_close(unname(coef(ours)[-(1:3)]), unname(coef(theirs)), 1e-8)
    })
  }
})

test_that("predictions and likelihoods agree with fields", {
  d <- peer_data()
  krig <- peer("fields", "mKrig")
  # it looks for its covariance functions by name
  covariance <- getExportedValue("fields", "stationary.cov")
  assign("stationary.cov", covariance, envir = globalenv())
  on.exit(rm("stationary.cov", envir = globalenv()))
  for (smoothness in c(1.5, 2.5)) for (m in 1:2) {
    theirs <- krig(d$x, d$y, m = m, lambda = 0.25^2 / 1.3^2, cov.function = "stationary.cov",
                   cov.args = list(Covariance = "Matern", smoothness = smoothness,
                                   aRange = 0.4 / sqrt(2 * smoothness)))
    mean <- as.vector(predict(theirs, d$at))
    scale <- sqrt(theirs$summary[["sigma2"]])
    par <- c(sd = scale, lengthscale = 0.4, noise = scale * 0.25 / 1.3)
    kernel <- if (smoothness == 1.5) k_matern32() else k_matern52()
    each_engine({
      ours <- cl_gp(d$x, d$y, kernel = kernel, ard = FALSE, fixed = par,
                    mean = if (m == 1) "constant" else "linear", method = "ml")
      expect_close(unname(predict(ours, d$at)), mean, 1e-8)
      expect_equal(ours$logLik, theirs$summary[["lnProfileLike.FULL"]], tolerance = 1e-9)
    })
  }
})

test_that("expected improvement and its gradient are those of DiceOptim", {
  design <- peer_data()
  at <- design$at
  colnames(at) <- c("u", "v")
  frame <- data.frame(design$x, y = design$y)[1:20, ]
  theirs <- peer("DiceOptim", "EI")
  slope <- peer("DiceOptim", "EI.grad")
  for (mean in c("estimate", "linear")) {
    model <- peer("DiceKriging", "km")(
      if (mean == "linear") ~ u + v else ~1, frame[1:2], frame$y, "matern5_2",
      coef.cov = c(0.4, 0.7), coef.var = 1.69, control = list(trace = FALSE))
    # their covariance function is a product over the columns
    kernel <- k_matern52(columns = "u") * k_matern52(columns = "v")
    par <- c(sd1 = 1.3, lengthscale1 = 0.4, sd2 = 1, lengthscale2 = 0.7, noise = 0)
    want <- apply(at, 1L, theirs, model = model, type = "UK")
    by <- t(apply(at, 1L, slope, model = model, type = "UK"))
    each_engine({
      fit <- cl_gp(y ~ u + v, frame, kernel, mean = mean, fixed = par, method = "ml")
      got <- cl_acquisition(fit)(at)
      expect_close(as.vector(got), want, 1e-8)
      expect_close(unname(attr(got, "gradient")), unname(by), 1e-8)
    })
  }
})

test_that("estimates are at least as likely as those of other packages", {
  table <- read.csv(test_path("..", "reference", "gp-peers.csv"), stringsAsFactors = FALSE)
  expect_gte(nrow(table), 9)
  for (i in seq_len(nrow(table))) {
    row <- table[i, ]
    package <- c(meuse = "sp", concrete = "modeldata")[row$data]
    if (!is.na(package) && !requireNamespace(package, quietly = TRUE)) next
    d <- gp_data_set(row$data)
    kernel <- switch(row$kernel, exp_quad = k_exp_quad(), matern32 = k_matern32(),
                     matern52 = k_matern52())
    on_host({
      at_theirs <- cl_gp(d$x, d$y, kernel = kernel, ard = FALSE, mean = row$mean,
                         fixed = c(sd = row$sd, lengthscale = row$lengthscale, noise = row$noise),
                         method = "ml")
      ours <- cl_gp(d$x, d$y, kernel = kernel, ard = FALSE, mean = row$mean, method = "ml")
    })
    label <- paste(row$data, row$peer)
    if (!is.na(row$value)) {
      expect_equal(at_theirs$logLik, row$value, tolerance = 1e-9, label = label)
    }
    expect_true(ours$converged, label = label)
    expect_gte(ours$logLik, at_theirs$logLik - 1e-6, label = label)
  }
})

gp_states$list <- list()
