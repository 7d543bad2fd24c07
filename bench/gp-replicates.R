# Fits of cl_gp() to inputs that repeat, of which the likelihood is computed from means, and to the
# same inputs moved by 1e-9, which is computed from all observations. Seconds and log likelihoods.
# Then, if hetGP is installed, its fits to repeated inputs next to ours: with constant noise, and
# with noise that changes (mean log density of 2,000 new observations). Run by itself:
# Rscript bench/gp-replicates.R

library(statcl)
set.seed(3)
at <- seq(0, 1, length.out = 200)^1.1
for (times in c(5, 20)) {
  d <- data.frame(x = rep(at, times))
  d$y <- sin(9 * d$x) + rnorm(nrow(d), sd = 0.4)
  moved <- transform(d, x = x + 1e-9 * seq_along(x))
  by_means <- system.time(one <- cl_gp(y ~ x, d))[["elapsed"]]
  all <- system.time(each <- cl_gp(y ~ x, moved))[["elapsed"]]
  print(data.frame(observations = nrow(d), inputs = length(at), seconds_means = by_means,
                   seconds_all = all, log_likelihood_means = as.numeric(logLik(one)),
                   log_likelihood_all = as.numeric(logLik(each))), row.names = FALSE)
}

if (requireNamespace("hetGP", quietly = TRUE)) {
  used <- function(code) sum(system.time(code)[1:2])
  d <- data.frame(x = rep(at[seq(1, 200, 2)], 20))
  d$y <- sin(9 * d$x) + rnorm(nrow(d), sd = 0.4)
  ours <- used(one <- cl_gp(y ~ x, d))
  theirs <- used(other <- hetGP::mleHomGP(as.matrix(d$x), d$y, covtype = "Matern5_2"))
  print(data.frame(observations = nrow(d), inputs = 100, seconds = ours, seconds_hetGP = theirs,
                   log_likelihood = as.numeric(logLik(one)), log_likelihood_hetGP = other$ll),
        row.names = FALSE)
  noise <- function(x) exp(1.5 * sin(6 * x) - 1.5)
  draw <- function(x) data.frame(x = x, y = sin(9 * x) + rnorm(length(x), sd = noise(x)))
  for (seed in 1:3) {
    set.seed(seed)
    d <- draw(rep(runif(50), sample(1:30, 50, TRUE)))
    new <- draw(runif(2000))
    ours <- used(one <- cl_gp(y ~ x, d, noise = k_matern52()))
    theirs <- used(other <- hetGP::mleHetGP(as.matrix(d$x), d$y, covtype = "Matern5_2"))
    p <- predict(one, new, se.fit = TRUE)
    q <- predict(other, as.matrix(new$x))
    score <- function(mean, variance) mean(dnorm(new$y, mean, sqrt(variance), log = TRUE))
    print(data.frame(observations = nrow(d), inputs = 50, seconds = ours, seconds_hetGP = theirs,
                     score = score(p$fit, p$se.fit^2 + p$residual.scale^2),
                     score_hetGP = score(q$mean, q$sd2 + q$nugs)), row.names = FALSE)
  }
}
