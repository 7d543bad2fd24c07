d <- transform(mtcars, g = factor(cyl), one = as.numeric(seq_len(32) == 3))
ids <- rep_len(1:4, 32)
fit <- cl_glm(mpg ~ g, d, "normal_id")
gp <- cl_gp(mpg ~ wt, d, mean = ~ I(wt > 5.3), starts = 1)
quasi <- cl_cv(cl_glm(carb ~ wt, d, quasipoisson()), ids)
cv <- cl_cv(fit, ids)
p <- prior_normal(0, 1)
mapped <- cl_glm(am ~ wt, d, method = "map", prior = p)
rm(p)

# fits
cl_cv(lm(mpg ~ wt, d))
cl_cv(cl_glm(mpg ~ g, d, "normal_id", block = 10))
cl_cv(cl_glm(mpg ~ wt, d[1, ], "normal_id"))
cl_cv(fit, starts = 2)
cl_cv(mapped, ids)
cl_cv(cl_glmm(count ~ 1 + (1 | spray), InsectSprays, "poisson_log", "mcmc",
              control = list(chains = 1, iter = 20, warmup = 50, seed = 1)), 3)
cl_cv(suppressWarnings(cl_gp(am ~ wt, d, family = "bernoulli_logit", method = "mcmc", starts = 1,
                             control = list(chains = 1, iter = 20, warmup = 20, seed = 1))), 3)

# folds
cl_cv(fit, 33)
cl_cv(fit, 1:3)
cl_cv(fit, list(1))
cl_cv(fit, rep(1, 32))
cl_cv(fit, replace(ids, 1, NA))
cl_cv(fit, d$cyl)
cl_cv(cl_glm(g ~ wt, d, "ordered_logistic"), d$cyl)
cl_cv(cl_glm(mpg ~ one, d, "normal_id"), ids)
cl_cv(gp, as.integer(d$wt > 5.3))
cl_cv(cl_glm(am ~ mpg, d), rep_len(1:16, 32), refit = NA)
cl_cv(cl_glm(vs ~ g, d), 1:32 %% 4)

# methods and comparison
plot(cl_cv(cl_glm(g ~ 1, d, "ordered_logistic"), ids), "predicted")
plot(quasi, "score")
cl_compare(cv)
cl_compare(cv, quasi)
cl_compare(cv, cl_cv(cl_glm(hp ~ wt, d, "normal_id"), ids))
cl_compare(cv, cl_cv(fit, rep(1:2, 16)))
