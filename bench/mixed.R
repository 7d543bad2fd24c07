# Models with random effects: cl_glmm() next to lme4 and glmmTMB, on lme4's data sets and simulated
# ones.
#
#   Rscript bench/mixed.R [engine] [small] [fields] [large] [paths]
#
# needs lme4 and glmmTMB (CRAN). Processor time, the best of three fits (of large data sets one), in
# s; and differences from lme4 (of fields from glmmTMB): log likelihoods, the largest of the
# estimates in standard errors, and the largest relative one of standard errors. lme4 searches until
# its tolerances are met. "large" takes many minutes. "paths": fits of normal models by the plain
# loops of r_profile() and by R's calls of a BLAS, whose crossing is most_plain (R/mixed-normal.R).
suppressMessages({
  library(statcl)
  library(lme4)
})
sets <- c("small", "fields", "large", "paths")
engine <- c(setdiff(commandArgs(TRUE), sets), "auto")[1L]
chosen <- intersect(commandArgs(TRUE), sets)
if (length(chosen) == 0L) chosen <- sets[1:2]
cl_use(engine = engine)

seconds <- function(fit, times) {
  best <- Inf
  for (i in seq_len(times)) {
    start <- sum(proc.time()[1:2])
    value <- fit()
    best <- min(best, sum(proc.time()[1:2]) - start)
  }
  list(value = value, s = best)
}

compare <- function(label, formula, data, family = NULL, reml = FALSE, times = 3) {
  exact <- glmerControl(tolPwrss = 1e-10)
  ours <- seconds(function() cl_glm(formula, data, if (is.null(family)) "normal_id" else family,
                                    method = if (reml) "reml" else "ml"), times)
  theirs <- seconds(function() if (is.null(family)) lmer(formula, data, REML = reml) else
    glmer(formula, data, family, control = exact), times)
  other <- seconds(function() glmmTMB::glmmTMB(
    formula, data, if (is.null(family)) gaussian() else family, REML = reml), times)
  error <- sqrt(diag(vcov(ours$value)))
  data.frame(model = label, lme4_s = theirs$s, glmmTMB_s = other$s, statcl_s = ours$s,
             log_likelihood = as.numeric(logLik(ours$value) - logLik(theirs$value)),
             estimates = max(abs(coef(ours$value) - fixef(theirs$value)) / error),
             errors = max(abs(error / sqrt(diag(as.matrix(vcov(theirs$value)))) - 1)))
}

# An autoregression of each group, by cl_glmm() and glmmTMB.
series <- function() {
  d <- expand.grid(time = 1:100, g = factor(1:10))
  d$x <- rnorm(1000)
  state <- replicate(10, arima.sim(list(ar = 0.8), 100, sd = 0.4))
  d$y <- rpois(1000, exp(0.5 + 0.3 * d$x + as.vector(state)))
  d$step <- factor(d$time)
  ours <- seconds(function() cl_glmm(y ~ x + ar1(time, g), d, "poisson_log"), 3)
  other <- seconds(function() glmmTMB::glmmTMB(y ~ x + ar1(0 + step | g), d, poisson()), 1)
  error <- sqrt(diag(vcov(ours$value)))
  data.frame(model = "ar1(time, g), 10 x 100", lme4_s = NA, glmmTMB_s = other$s, statcl_s = ours$s,
             log_likelihood = as.numeric(logLik(ours$value) - logLik(other$value)),
             estimates = max(abs(coef(ours$value) - glmmTMB::fixef(other$value)$cond) / error),
             errors = max(abs(error / sqrt(diag(vcov(other$value)$cond)) - 1)))
}

# A normal model of random intercepts, or slopes too (columns = 2), and p predictors.
two_paths <- function(levels, each, p, columns) {
  d <- data.frame(g = factor(rep(seq_len(levels), each)))
  d$x <- matrix(rnorm(levels * each * p), ncol = p)
  d$z <- d$x[, 1]
  d$y <- rnorm(levels)[d$g] + rnorm(levels * each)
  formula <- if (columns == 2) y ~ x + (z | g) else y ~ x + (1 | g)
  space <- asNamespace("statcl")
  kept <- space$most_plain
  unlockBinding("most_plain", space)
  on.exit(assign("most_plain", kept, space))
  s <- vapply(c(Inf, 0), function(most) {
    assign("most_plain", most, space)
    seconds(function() cl_glmm(formula, d, "normal_id"), 3)$s
  }, 0)
  m <- p + 2
  data.frame(levels = levels, columns = columns, predictors = p,
             products = (levels * columns + m) * m^2, plain_s = s[1L], calls_s = s[2L])
}

set.seed(1)
if ("paths" %in% chosen) {
  shapes <- list(c(1e3, 5, 1, 1), c(300, 5, 60, 1), c(1e4, 3, 5, 1), c(1e4, 10, 5, 2),
                 c(2e3, 5, 45, 1), c(1e5, 3, 5, 1), c(2e4, 5, 30, 1), c(3e4, 5, 20, 2),
                 c(1e5, 3, 20, 1))
  print(format(do.call(rbind, lapply(shapes, function(x) do.call(two_paths, as.list(x)))),
               digits = 3), row.names = FALSE)
}
rows <- list()
if ("small" %in% chosen) {
  rows <- list(
    compare("sleepstudy (Days | Subject), REML", Reaction ~ Days + (Days | Subject), sleepstudy,
            reml = TRUE),
    compare("Pastes (1 | batch/cask), REML", strength ~ 1 + (1 | batch / cask), Pastes,
            reml = TRUE),
    compare("cbpp (1 | herd), binomial", cbind(incidence, size - incidence) ~ period + (1 | herd),
            cbpp, binomial()),
    compare("grouseticks, 3 nested, Poisson", TICKS ~ YEAR + scale(HEIGHT) + (1 | BROOD) +
              (1 | INDEX) + (1 | LOCATION), grouseticks, poisson()),
    compare("VerbAgg (1 | id) + (1 | item)",
            r2 ~ Anger + Gender + btype + situ + (1 | id) + (1 | item), VerbAgg, binomial()))
}
if ("fields" %in% chosen) rows <- c(rows, list(series()))
if ("large" %in% chosen) {
  InstEval$high <- as.numeric(as.character(InstEval$y)) > 3
  n <- 3e5
  crossed <- data.frame(a = factor(sample(1e5, n, TRUE)), b = factor(sample(2000, n, TRUE)),
                        x = rnorm(n))
  crossed$y <- 0.3 + 0.5 * crossed$x + rnorm(1e5, 0, 0.7)[crossed$a] +
    rnorm(2000, 0, 0.5)[crossed$b] + rnorm(n)
  nested <- data.frame(a = rep(1:1500, each = 60), b = rep(1:6000, each = 15),
                       c = rep(1:30000, each = 3))
  nested$y <- rnorm(1500)[nested$a] + rnorm(6000)[nested$b] + rnorm(30000)[nested$c] + rnorm(90000)
  nested[1:3] <- lapply(nested[1:3], factor)
  rows <- c(rows, list(
    compare("InstEval, 3 crossed", y ~ service + (1 | s) + (1 | d) + (1 | dept),
            transform(InstEval, y = as.numeric(y)), times = 1),
    compare("InstEval, binomial", high ~ service + (1 | s) + (1 | d) + (1 | dept), InstEval,
            binomial(), times = 1),
    compare("30,000 in 6,000 in 1,500", y ~ 1 + (1 | a) + (1 | b) + (1 | c), nested, times = 1),
    compare("100,000 x 2,000 crossed", y ~ x + (1 | a) + (1 | b), crossed, times = 1)))
}
if (length(rows) > 0L) print(format(do.call(rbind, rows), digits = 3), row.names = FALSE)
