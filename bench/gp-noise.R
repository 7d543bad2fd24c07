# Ten-fold cross-validation of MASS::mcycle: log score (mean log density of held-out observations,
# of accel divided by its standard deviation) with constant noise, with processes of the noise, and
# by hetGP::mleHetGP(), if that package is installed, and processor seconds of each. Run by itself:
# Rscript bench/gp-noise.R [number of divisions into folds, 5]

library(statcl)
d <- MASS::mcycle
d$y <- d$accel / sd(d$accel)
given <- commandArgs(TRUE)
scores <- lapply(seq_len(if (length(given) > 0L) as.integer(given[1L]) else 5L), function(seed) {
  set.seed(seed)
  fold <- sample(rep_len(1:10, nrow(d)))
  each <- function(predicted) {
    used <- system.time(density <- unlist(lapply(1:10, function(k) {
      p <- predicted(d[fold != k, ], d[fold == k, ])
      dnorm(d$y[fold == k], p$mean, sqrt(p$variance), log = TRUE)
    })))
    c(score = mean(density), seconds = sum(used[1:2]))
  }
  by_statcl <- function(...) {
    each(function(train, test) {
      fit <- cl_gp(y ~ times, train, ...)
      p <- predict(fit, test, se.fit = TRUE)
      list(mean = p$fit, variance = p$se.fit^2 + p$residual.scale^2)
    })
  }
  found <- rbind(constant = by_statcl(), exp_quad = by_statcl(noise = k_exp_quad()),
                 matern52 = by_statcl(noise = k_matern52())) # as hetGP's
  if (requireNamespace("hetGP", quietly = TRUE)) {
    theirs <- each(function(train, test) {
      fit <- hetGP::mleHetGP(as.matrix(train$times), train$y, covtype = "Matern5_2")
      p <- predict(fit, as.matrix(test$times))
      list(mean = p$mean, variance = p$sd2 + p$nugs)
    })
    found <- rbind(found, hetGP = theirs)
  }
  print(found, digits = 3)
  found
})
print(Reduce(`+`, scores) / length(scores), digits = 3)
