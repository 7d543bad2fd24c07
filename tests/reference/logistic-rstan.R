# Makes logistic-rstan.csv: the posterior of a logistic regression by Stan (rstan 2.21.7), 4 chains
# of 10000 draws, for tests/testthat/test-sample-posteriors.R. Run by hand, in this folder.
library(rstan)

model <- "
data { int<lower=0> n; int<lower=1> k; matrix[n, k] x; int<lower=0, upper=1> y[n]; }
parameters { real alpha; vector[k] beta; }
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2.5);
  target += bernoulli_logit_glm_lpmf(y | x, alpha, beta);
}"
data <- MASS::birthwt
x <- with(data, cbind(age = (age - 23) / 5, lwt = (lwt - 130) / 30, smoke = smoke, ht = ht,
                      ui = ui, ptl = pmin(ptl, 1)))
fit <- stan(model_code = model, data = list(n = nrow(x), k = ncol(x), x = x, y = data$low),
            chains = 4, iter = 11000, warmup = 1000, seed = 1)
table <- summary(fit, pars = c("alpha", "beta"))$summary
columns <- c(mean = "mean", mcse = "se_mean", sd = "sd", q025 = "2.5%", q50 = "50%",
             q975 = "97.5%")
table <- signif(table[, columns], 7)
colnames(table) <- names(columns)
write.csv(data.frame(parameter = rownames(table), table), "logistic-rstan.csv", quote = FALSE,
          row.names = FALSE)
