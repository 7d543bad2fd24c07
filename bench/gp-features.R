# Cells of the table of packages in vignettes/million-points.Rmd: each call that a cell names is run
# with the versions that are installed, and its result or its error is printed. Run by itself:
# Rscript bench/gp-features.R

set.seed(1)
d <- data.frame(a = runif(40), b = runif(40))
x <- as.matrix(d)
d$y <- sin(6 * d$a) + d$b + rnorm(40, sd = 0.05)
d$g <- factor(rep(1:2, 20))
d$z <- as.integer(d$y > 0)
y <- d$y
new <- data.frame(a = runif(3), b = runif(3))
at <- as.matrix(new)
quiet <- list(trace = FALSE)
two <- list(maxit = 5, multi.start = 2)
nngp <- function(...) {
  spNNGP(..., data = d, coords = x, cov.model = "exponential", n.samples = 50, n.neighbors = 5,
         verbose = FALSE)
}
begin <- list(phi = 3, sigma.sq = 1, tau.sq = 0.1)
steps <- list(phi = 0.5, sigma.sq = 0.5, tau.sq = 0.5)
prior <- list(phi.Unif = c(0.1, 30), sigma.sq.IG = c(2, 1), tau.sq.IG = c(2, 0.1))
plain <- function(u, v) exp(-sum((as.numeric(u) - as.numeric(v))^2))
model <- function(...) km(design = d[1:2], response = y, control = quiet, ...)

cells <- list(
  DiceKriging = alist(
    formula = model(~ a + b, nugget.estim = TRUE)@trend.coef,
    noise.var = model(noise.var = rep(0.01, 40))@covariance@sd2,
    kernel = km(~1, d[1:5, 1:2], y[1:5], kernel = plain, nugget = 0.01)@T[1],
    penalty = model(covtype = "gauss", nugget = 0.01,
                    penalty = list(fun = "SCAD", value = 3))@logLik,
    LOO = model(estim.method = "LOO")@covariance@range.val,
    cv = cv(model(nugget.estim = TRUE), list(1:5, 6:10))[[1]],
    multistart = model(multistart = 2)@logLik, # wants foreach
    predict = predict(model(), new, "UK")[c("lower95", "upper95")],
    simulate = simulate(model(), 1, newdata = new, cond = TRUE, nugget.sim = 1e-8),
    update = update(model(), new, c(1, 1, 1), cov.reestim = FALSE)@n, plot = plot(model())),
  GPfit = alist(predict = predict.GP(GP_fit(x, y), at)[c("Y_hat", "MSE")],
                plot = plot(GP_fit(x, y)), starts = formals(GP_fit)$control),
  laGP = alist(
    llik = llikGPsep(newGPsep(x, y, c(0.3, 0.3), 0.01)), darg = darg(list(mle = TRUE), x)$ab,
    predict = predGPsep(newGPsep(x, y, c(0.3, 0.3), 0.01), at)[c("mean", "df")],
    covariance = predGP(newGP(x, y, 0.3, 0.01), at)$Sigma,
    local = aGPsep(x, y, at, end = 15, verb = 0)$mean,
    update = updateGP(newGP(x, y, 0.3, 0.01), at, c(1, 1, 1)),
    ieci = ieciGP(newGP(x, y, 0.3, 0.01), at, x), gpus = formals(aGP)$num.gpus),
  hetGP = alist(
    het = mleHetGP(x, y)$ll, t = mleHetTP(x, y)$nu, ard = mleHomGP(x, y)$theta,
    LOO = mleHomGP(x, y, settings = list(method = "LOO"))$theta, loo = LOO_preds(mleHomGP(x, y)),
    predict = predict(mleHomGP(x, y), at)[c("mean", "sd2", "nugs")],
    covariance = predict(mleHomGP(x, y), at, xprime = at)$cov,
    simul = simul(mleHomGP(x, y), at, 1), # only for mleCRNGP()
    crit_optim = crit_optim(mleHomGP(x, y), "crit_EI", control = two)$par,
    update = update(mleHomGP(x, y), at, c(1, 1, 1), maxit = 0)$ll, plot = plot(mleHomGP(x, y))),
  GpGp = alist(
    all = vecchia_meanzero_loglik(c(1, 0.3, 0.1), "matern15_isotropic", y, x,
                                  find_ordered_nn(x, 39)),
    X = fit_model(y, x, cbind(1, d$a), "matern15_isotropic", silent = TRUE)$betahat,
    group = names(group_obs(find_ordered_nn(x, 5))),
    scaledim = fit_model(y, x, covfun_name = "exponential_scaledim", silent = TRUE)$covparms,
    simulate = cond_sim(fit_model(y, x, covfun_name = "matern15_isotropic", silent = TRUE), at,
                        matrix(1, 3), m = 20),
    sphere = fit_model(y, cbind(90 * d$a, 80 * d$b), covfun_name = "exponential_sphere",
                       silent = TRUE)$covparms,
    categorical = fit_model(y, cbind(x, d$g), covfun_name = "matern_categorical",
                            silent = TRUE, m_seq = 10)$covparms),
  spNNGP = alist(
    draws = colMeans(nngp(y ~ a, starting = begin, tuning = steps, priors = prior)$p.theta.samples),
    binomial = nngp(z ~ a, family = "binomial", method = "latent", starting = begin, tuning = steps,
                    priors = prior)$p.theta.samples[50, ],
    predict = predict(nngp(y ~ a, starting = begin, tuning = steps, priors = prior),
                      cbind(1, new$a), at, verbose = FALSE)$p.y.0[, 50],
    k.fold = spConjNNGP(y ~ a, d, x, n.neighbors = 5, theta.alpha = cbind(phi = 3, alpha = 0.1),
                        sigma.sq.IG = c(2, 1), cov.model = "exponential", k.fold = 3,
                        verbose = FALSE)$k.fold.scores),
  mgcv = alist(
    gp = gam(y ~ s(a, b, bs = "gp", k = 35), data = d, method = "REML")$sp,
    scat = gam(y ~ s(a), data = d, family = scat)$aic, by = gam(y ~ g + s(a, by = g), data = d)$aic,
    gaulss = gam(list(y ~ s(a), ~ s(b)), data = d, family = gaulss())$aic,
    mvn = gam(list(y ~ s(a), b ~ s(a)), data = d, family = mvn(2))$aic,
    sos = gam(y ~ s(u, v, bs = "sos", k = 20),
              data = data.frame(u = 80 * x[, 1], v = 90 * x[, 2]))$aic,
    terms = predict(gam(y ~ s(a) + s(b), data = d), type = "terms")[1, ],
    GCV = gam(y ~ s(a), data = d, method = "GCV.Cp")$gcv.ubre,
    update = bam.update(bam(y ~ s(a), data = d), d[1:9, ])$aic,
    jagam = names(jagam(y ~ s(a), data = d, file = tempfile()))))

grDevices::pdf(NULL)
for (package in names(cells)) {
  if (!suppressPackageStartupMessages(require(package, character.only = TRUE, quietly = TRUE))) {
    cat(package, "is not installed\n")
    next
  }
  cat(sprintf("%s %s\n", package, utils::packageVersion(package)))
  for (name in names(cells[[package]])) {
    utils::capture.output(result <- suppressMessages(suppressWarnings(
      tryCatch(paste(format(unlist(eval(cells[[package]][[name]]))), collapse = " "),
               error = function(e) paste("error:", conditionMessage(e))))))
    cat(sprintf("  %-12s %s\n", name, substr(result, 1L, 70L)))
  }
  detach(paste0("package:", package), character.only = TRUE)
}
