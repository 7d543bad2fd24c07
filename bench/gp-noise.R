# Ten-fold cross-validation of MASS::mcycle: log score (mean log density of held-out observations,
# of accel divided by its standard deviation) with constant noise, with a process of the noise, and
# by hetGP::mleHetGP(), if that package is installed. Run by itself: Rscript bench/gp-noise.R

library(statcl)
d <- MASS::mcycle
d$y <- d$accel / sd(d$accel)
scores <- lapply(1:5, function(seed) {
  set.seed(seed)
  fold <- sample(rep_len(1:10, nrow(d)))
  each <- function(predicted) {
    mean(unlist(lapply(1:10, function(k) {
      p <- predicted(d[fold != k, ], d[fold == k, ])
      dnorm(d$y[fold == k], p$mean, sqrt(p$variance), log = TRUE)
    })))
  }
  by_statcl <- function(...) {
    each(function(train, test) {
      fit <- cl_gp(y ~ times, train, ...)
      p <- predict(fit, test, se.fit = TRUE)
      list(mean = p$fit, variance = p$se.fit^2 + p$residual.scale^2)
    })
  }
  found <- c(constant = by_statcl(), process = by_statcl(noise = k_exp_quad()))
  if (requireNamespace("hetGP", quietly = TRUE)) {
    found["hetGP"] <- each(function(train, test) {
      fit <- hetGP::mleHetGP(as.matrix(train$times), train$y, covtype = "Matern5_2")
      p <- predict(fit, as.matrix(test$times))
      list(mean = p$mean, variance = p$sd2 + p$nugs)
    })
  }
  found
})
print(do.call(rbind, scores), digits = 3)
print(colMeans(do.call(rbind, scores)), digits = 3)
