# cl_glm(method = "mcmc"): processor seconds of 4 chains of 500 + 500 iterations with the density as
# a compiled function, and as the R function that it was before; the same posterior by
# cl_gradient(), and by rstanarm if it is installed. Host engine, one thread. By itself:
#   Rscript bench/glm-sampling.R

suppressMessages(library(statcl))
cl_use(engine = "host")

cpu <- function(code) {
  used <- system.time(suppressWarnings(utils::capture.output(force(code))))
  sum(used[c("user.self", "sys.self")])
}

without_compiled <- function(code) {
  space <- asNamespace("statcl")
  kept <- get("compiled_target", space)
  utils::assignInNamespace("compiled_target", function(...) NULL, space)
  on.exit(utils::assignInNamespace("compiled_target", kept, space))
  force(code)
}

housing <- MASS::housing[rep(seq_len(nrow(MASS::housing)), MASS::housing$Freq), ]
control <- list(warmup = 500, iter = 500, seed = 1)
fit <- function(formula, data, family) {
  force(data)
  function() cl_glm(formula, data, family, method = "mcmc", control = control)
}
stan <- function(f, ...) {
  if (!suppressMessages(suppressWarnings(require("rstanarm", quietly = TRUE)))) return(NA)
  cpu(do.call(f, list(..., chains = 4, cores = 1, warmup = 500, iter = 1000,
                                      refresh = 0, seed = 1), quote = TRUE))
}
x <- model.matrix(~ wool * tension, warpbreaks)
y <- warpbreaks$breaks
by_hand <- function() {
  f <- cl_gradient(function(b) sum(dpois(y, exp(as.vector(x %*% b)), log = TRUE)) - sum(b^2) / 50)
  cl_sample(f, list(b = c(mean(log(y)), numeric(5))), warmup = 500, iter = 500, seed = 1,
            refresh = 0)
}

models <- list(
  "poisson_log, 54 x 6" = list(fit(breaks ~ wool * tension, warpbreaks, "poisson_log"),
    function() stan("stan_glm", breaks ~ wool * tension, data = warpbreaks, family = poisson)),
  "neg_binomial_2_log, 54 x 6" = list(
    fit(breaks ~ wool * tension, warpbreaks, "neg_binomial_2_log"),
    function() stan("stan_glm.nb", breaks ~ wool * tension, data = warpbreaks)),
  "normal_id, 32 x 4" = list(fit(mpg ~ wt + hp + qsec, mtcars, "normal_id"),
    function() stan("stan_glm", mpg ~ wt + hp + qsec, data = mtcars)),
  "ordered_logistic, 1681 x 6" = list(fit(Sat ~ Infl + Type + Cont, housing, "ordered_logistic"),
    function() stan("stan_polr", Sat ~ Infl + Type + Cont, data = housing,
                    prior = rstanarm::R2(0.3))),
  "categorical_logit, 150 x 3" = list(fit(Species ~ Sepal.Length + Sepal.Width, iris,
                                          "categorical_logit"), function() NA))

cat(sprintf("cl_gradient(), poisson_log, 54 x 6: %.2f\n\n", cpu(by_hand())))
cat(sprintf("%-28s %9s %9s %9s\n", "processor seconds", "R", "compiled", "rstanarm"))
for (name in names(models)) {
  m <- models[[name]]
  cat(sprintf("%-28s %9.2f %9.2f %9.2f\n", name, cpu(without_compiled(m[[1L]]())), cpu(m[[1L]]()),
              m[[2L]]()))
}
work <- cl_glm(breaks ~ wool * tension, warpbreaks, "poisson_log", method = "mcmc",
               control = list(seed = 1))
cat(sprintf("%-28s %9.2f %9.2f\n", "cl_cv(), 54 rows, 10 folds", cpu(without_compiled(cl_cv(work))),
            cpu(cl_cv(work))))
