# Real data sets that come with R: numbers of cl_glm() next to those of glm(), glm.nb(), polr() and
# multinom().

exact <- list(epsilon = 1e-14, maxit = 100)

# list(formula, data, family), by name. "nb", "polr" and "multinom" are those of MASS and nnet.
real_sets <- function() {
  set <- function(...) list(...)
  titanic <- as.data.frame(Titanic)
  admit <- as.data.frame(UCBAdmissions)
  list(
    set(am ~ wt + hp, mtcars, binomial), set(mpg ~ wt + factor(cyl), mtcars, gaussian),
    set(case ~ age + parity + induced + spontaneous, infert, binomial),
    set(cbind(ncases, ncontrols) ~ agegp + unclass(tobgp), esoph, binomial),
    set(Survived ~ Class + Sex + Age, titanic, binomial, "Freq"),
    set(Admit ~ Gender + Dept, admit, binomial, "Freq"),
    set(breaks ~ wool * tension, warpbreaks, poisson), set(count ~ spray, InsectSprays, poisson),
    set(weight ~ Time * Diet, ChickWeight, gaussian), set(dist ~ speed, cars, gaussian("log"), NULL,
                                                          c(2, 0.1)),
    set(Volume ~ log(Girth) + log(Height), trees, Gamma("log")),
    set(Ozone ~ Wind + Temp + Solar.R, airquality, poisson),
    set(lot1 ~ log(u), data.frame(u = c(5, 10, 15, 20, 30, 40, 60, 80, 100),
                                  lot1 = c(118, 58, 42, 35, 27, 25, 21, 19, 18)), Gamma),
    set(Fertility ~ Agriculture + Education, swiss, gaussian),
    set(Murder ~ Assault + UrbanPop, USArrests, quasipoisson),
    set(len ~ supp * dose, ToothGrowth, inverse.gaussian("log")),
    set(rating ~ complaints + learning, attitude, gaussian),
    set(sr ~ pop15 + ddpi, LifeCycleSavings, gaussian),
    set(low ~ age + lwt + factor(race) + smoke + ptl + ht, MASS::birthwt, binomial),
    set(y ~ ap + hilo + week, MASS::bacteria, binomial("probit")),
    set(Days ~ Sex + Age + Eth, MASS::quine, poisson),
    set(type ~ glu + bmi + ped + age, MASS::Pima.tr, binomial("cloglog")),
    set(Claims ~ District + Group + Age + offset(log(Holders)), MASS::Insurance, poisson),
    set(Days ~ Sex * Age + Eth, MASS::quine, "nb"), set(breaks ~ wool * tension, warpbreaks, "nb"),
    set(Sat ~ Infl + Type + Cont, MASS::housing, "polr", "Freq"),
    set(Exer ~ Sex + Age, MASS::survey, "multinom"),
    set(Species ~ Sepal.Width, iris, "multinom"))
}

# The reference, and the name of the family here.
fit_peer <- function(set) {
  data <- set[[2]]
  data$freq <- if (length(set) > 3 && !is.null(set[[4]])) data[[set[[4]]]] else 1
  model <- set[[1]]
  environment(model) <- environment()
  family <- set[[3]]
  peer <- if (identical(family, "nb")) {
    MASS::glm.nb(model, data, control = glm.control(1e-14, 100))
  } else if (identical(family, "polr")) {
    MASS::polr(model, data, weights = freq, Hess = TRUE, control = list(reltol = 1e-14))
  } else if (identical(family, "multinom")) {
    multinom <- getExportedValue("nnet", "multinom") # of the recommended packages; not in Suggests
    multinom(model, data, Hess = TRUE, trace = FALSE, reltol = 1e-14, maxit = 1000)
  } else {
    glm(model, family, data, weights = freq, control = exact,
        start = if (length(set) > 4) set[[5]])
  }
  own <- switch(if (is.character(family)) family else "", nb = "neg_binomial_2_log",
                polr = "ordered_logistic", multinom = "categorical_logit", family)
  list(peer = peer, fit = suppressWarnings(cl_glm(model, data, own, weights = freq)))
}

expect_peer <- function(set) {
  both <- suppressWarnings(fit_peer(set))
  peer <- both$peer
  fit <- both$fit
  label <- paste(deparse(set[[1]]), collapse = "")
  loose <- is.character(set[[3]]) # searched by less exact methods
  near <- function(got, wanted, tolerance) {
    expect_equal(as.numeric(got), as.numeric(wanted), tolerance = tolerance, label = label)
  }
  of_class <- is.character(set[[3]]) && set[[3]] == "multinom"
  near(coef(fit), if (of_class) t(coef(peer)) else coef(peer), if (loose) 1e-4 else 1e-7)
  errors <- if (of_class) t(summary(peer)$standard.errors) else
    suppressWarnings(coef(summary(peer)))[, 2]
  near(sqrt(diag(vcov(fit)))[seq_along(errors)], errors, if (loose) 1e-3 else 1e-6)
  near(logLik(fit), logLik(peer), if (loose) 1e-6 else 1e-9)
  near(AIC(fit), AIC(peer), if (loose) 1e-6 else 1e-9)
  near(attr(logLik(fit), "df"), attr(logLik(peer), "df"), 1e-12)
  if (loose) return(invisible())
  near(deviance(fit), deviance(peer), 1e-9)
  near(fit$null.deviance, peer$null.deviance, 1e-9)
  near(df.residual(fit), df.residual(peer), 1e-12)
}

test_that("fits of real data sets are those of glm() and its relatives", {
  skip_if_not_installed("MASS")
  skip_if_not_installed("nnet")
  sets <- real_sets()
  expect_gte(length(sets), 25L)
  with_cl(for (set in sets) expect_peer(set), engine = "host")
  each_engine(for (set in full_or_quick(sets, sets[c(1, 7, 14, 24)])) expect_peer(set))
})

test_that("fits of real data sets with random effects are those of lme4", {
  skip_if_not_installed("lme4")
  from <- function(name) getExportedValue("lme4", name) # lme4 is not in Suggests
  ticks <- from("grouseticks")
  ticks$high <- ticks$HEIGHT - mean(ticks$HEIGHT)
  answers <- from("VerbAgg")
  answers <- droplevels(answers[as.integer(answers$id) <= 60, ])
  sets <- list(
    list(Reaction ~ Days + (Days | Subject), from("sleepstudy"), gaussian, "ml"),
    list(Reaction ~ Days + (Days | Subject), from("sleepstudy"), gaussian, "reml"),
    list(Reaction ~ Days + (Days || Subject), from("sleepstudy"), gaussian, "reml"),
    list(strength ~ 1 + (1 | batch) + (1 | sample), from("Pastes"), gaussian, "reml"),
    list(diameter ~ 1 + (1 | plate) + (1 | sample), from("Penicillin"), gaussian, "ml"),
    list(Yield ~ 1 + (1 | Batch), from("Dyestuff"), gaussian, "reml"),
    list(cbind(incidence, size - incidence) ~ period + (1 | herd), from("cbpp"), binomial, "ml"),
    list(r2 ~ btype + situ + (1 | id) + (1 | item), answers, binomial, "ml"),
    list(TICKS ~ YEAR + high + (1 | BROOD) + (1 | LOCATION), ticks, poisson, "ml"))
  for (set in sets) {
    label <- paste(deparse(set[[1]]), collapse = "")
    normal <- identical(set[[3]], gaussian)
    fit <- on_host(cl_glm(set[[1]], set[[2]], set[[3]], method = set[[4]]))
    peer <- suppressMessages(suppressWarnings(if (normal) {
      from("lmer")(set[[1]], set[[2]], REML = set[[4]] == "reml")
    } else from("glmer")(set[[1]], set[[2]], set[[3]])))
    error <- sqrt(diag(as.matrix(vcov(peer))))
    near <- function(got, wanted, tolerance) {
      expect_equal(as.numeric(got), as.numeric(wanted), tolerance = tolerance, label = label)
    }
    # lme4's search for GLMMs ends earlier
    expect_gt(fit$logLik, as.numeric(logLik(peer)) - 1e-6)
    near(fit$logLik, logLik(peer), if (normal) 1e-7 else 1e-5)
    expect_lt(max(abs(coef(fit) - from("fixef")(peer)) / error), if (normal) 1e-4 else 0.02)
    near(sqrt(diag(vcov(fit))), error, if (normal) 1e-4 else 0.03)
    near(sum(unlist(fit$variances)), sum(unlist(lapply(from("VarCorr")(peer), as.vector))), 0.01)
    if (normal) near(sigma(fit), sigma(peer), 1e-4)
    near(attr(logLik(fit), "df"), attr(logLik(peer), "df"), 0)
  }
})
