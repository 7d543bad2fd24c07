# Models with random effects: cl_glm() next to lme4, on lme4's data sets.
#
#   Rscript bench/mixed.R [engine]
#
# needs lme4 (CRAN). Wall time, the best of three fits (of the largest data set one), in s; and
# differences: log likelihoods, the largest of the estimates in standard errors, and the largest
# relative one of standard errors. lme4 searches until its tolerances are met.
suppressMessages({
  library(statcl)
  library(lme4)
})
engine <- c(commandArgs(TRUE), "auto")[1L]
cl_use(engine = engine)

seconds <- function(fit, times) {
  best <- Inf
  for (i in seq_len(times)) {
    start <- Sys.time()
    value <- fit()
    best <- min(best, as.numeric(Sys.time() - start, units = "secs"))
  }
  list(value = value, s = best)
}

compare <- function(label, formula, data, family = NULL, reml = FALSE, times = 3) {
  exact <- glmerControl(tolPwrss = 1e-10)
  ours <- seconds(function() cl_glm(formula, data, if (is.null(family)) "normal_id" else family,
                                    method = if (reml) "reml" else "ml"), times)
  theirs <- seconds(function() if (is.null(family)) lmer(formula, data, REML = reml) else
    glmer(formula, data, family, control = exact), times)
  error <- sqrt(diag(vcov(ours$value)))
  data.frame(model = label, lme4_s = theirs$s, statcl_s = ours$s,
             log_likelihood = as.numeric(logLik(ours$value) - logLik(theirs$value)),
             estimates = max(abs(coef(ours$value) - fixef(theirs$value)) / error),
             errors = max(abs(error / sqrt(diag(as.matrix(vcov(theirs$value)))) - 1)))
}

rows <- list(
  compare("sleepstudy (Days | Subject), REML", Reaction ~ Days + (Days | Subject), sleepstudy,
          reml = TRUE),
  compare("Pastes (1 | batch/cask), REML", strength ~ 1 + (1 | batch / cask), Pastes, reml = TRUE),
  compare("cbpp (1 | herd), binomial", cbind(incidence, size - incidence) ~ period + (1 | herd),
          cbpp, binomial()),
  compare("VerbAgg (1 | id) + (1 | item)",
          r2 ~ Anger + Gender + btype + situ + (1 | id) + (1 | item), VerbAgg, binomial()),
  compare("InstEval, 3 crossed", y ~ service + (1 | s) + (1 | d) + (1 | dept), InstEval, times = 1))
print(format(do.call(rbind, rows), digits = 3), row.names = FALSE)
