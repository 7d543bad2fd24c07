# Formulas of brms by cl_brm(), and a table of what works:
#   Rscript bench/brms.R [PATTERN] [sample] [rstan]
# PATTERN is a regular expression of names of models. Each program that brms writes is read, bound
# to its data and differentiated at a random point. Columns: parameters; seconds to read, to bind
# and to the first gradient; the relative error of the derivative along a random direction against
# differences; milliseconds of a gradient. "sample": cl_brm() with few draws, and the methods of
# brms on the result. "rstan": log density and gradient against rstan's, as in posteriordb.R.
suppressMessages(library(statcl))
source("bench/stan-common.R")
suppressPackageStartupMessages(library(brms))
arguments <- commandArgs(TRUE)
pattern <- if (length(arguments) > 0L) arguments[1L] else "."
checks <- arguments[-1L]

# ---- data ----------------------------------------------------------------------------------------

set.seed(1)
n <- 60
d <- data.frame(x = rnorm(n), z = rnorm(n), w = runif(n, 0.5, 2), g = factor(rep(1:10, 6)),
                h = factor(rep(1:6, each = 10)), f = factor(rep(c("a", "b", "c"), 20)),
                t = rep(1:6, each = 10), k = factor(rep(1:2, each = 5)), size = 12L,
                g1 = factor(rep(1:10, 6)), g2 = factor(rep(c(2:10, 1), 6)), se = runif(n, 0.2, 1),
                dose = factor(rep(0:3, 15), ordered = TRUE), v1 = runif(n), v2 = runif(n))
eta <- 0.3 + 0.5 * d$x + rnorm(10, 0, 0.5)[d$g]
d <- transform(d, y = eta + rnorm(n, 0, 0.7), y2 = eta / 2 + rnorm(n), positive = exp(eta / 2),
               share = plogis(eta + rnorm(n)), yes = rbinom(n, 1, plogis(eta)),
               count = rpois(n, exp(eta)), hits = rbinom(n, 12, plogis(eta)),
               level = cut(eta + rlogis(n), c(-Inf, -1, 0, 1, Inf), labels = FALSE),
               kind = factor(sample(c("A", "B", "C"), n, TRUE)), angle = 2 * atan(rnorm(n)),
               time = 3 + rexp(n), choice = rbinom(n, 1, 0.6), event = rep(0:1, 30),
               low = eta - 1, high = eta + 1)
d <- transform(d, positive = positive * rgamma(n, 5, 5), zeros = count * rbinom(n, 1, 0.7),
               gaps = positive * rbinom(n, 1, 0.8),
               edge = ifelse(choice == 1, share, yes), cens = rep(c("none", "left", "right"), 20),
               cens2 = rep(c("none", "right", "interval"), 20))
d$missing <- replace(d$y2, c(3, 20, 41), NA)
d$xmis <- replace(d$x, c(5, 31), NA)
counts <- t(rmultinom(n, 8, c(0.2, 0.3, 0.5)))
colnames(counts) <- c("A", "B", "C")
d$counts <- counts
d$parts <- prop.table(counts + 1, 1)
relation <- crossprod(matrix(rnorm(100), 10)) / 10 + diag(10)
dimnames(relation) <- list(1:10, 1:10)
places <- 1 * (as.matrix(dist(1:10)) == 1)
dimnames(places) <- list(1:10, 1:10)
neighbours <- 1 * (as.matrix(dist(seq_len(n))) == 1)
spread <- diag(n) + 0.3 * neighbours

# ---- models --------------------------------------------------------------------------------------

m <- function(formula, ...) list(formula = formula, ...)
growth <- bf(positive ~ a * (1 - exp(-b * w)), a ~ 1 + x + (1 | g), b ~ 1, nl = TRUE)
growth_prior <- prior(normal(2, 1), nlpar = "a") + prior(normal(1, 0.5), nlpar = "b", lb = 0)
double <- custom_family("double", dpars = c("mu", "sigma"), links = c("identity", "log"),
                        lb = c(NA, 0), type = "real", vars = "vreal1[n]")
double_code <- stanvar(block = "functions", scode = "
  real double_lpdf(real y, real mu, real sigma, real v) {
    return normal_lpdf(y | mu, sigma) + normal_lpdf(v | 0, 1);
  }")

models <- list(
  # population and group terms
  intercept = m(y ~ 1),
  regression = m(y ~ x * f + poly(z, 2)),
  no_intercept = m(y ~ 0 + f + x),
  intercept_by_hand = m(y ~ 0 + Intercept + x, prior = prior(normal(0, 1), class = b)),
  uncentred = m(bf(y ~ x + z, center = FALSE)),
  offset = m(count ~ x + offset(log(w)), family = poisson()),
  qr = m(bf(y ~ x + z, decomp = "QR")),
  sparse = m(bf(y ~ x + f, sparse = TRUE)),
  group = m(y ~ x + (1 | g)),
  slopes = m(y ~ x + (1 + x | g)),
  independent = m(y ~ x + (1 + x || g)),
  crossed = m(y ~ x + (1 + x + z | g) + (1 | h)),
  nested = m(y ~ x + (1 | h / k)),
  by_group = m(y ~ x + (1 + x | gr(g, by = k))),
  student_groups = m(y ~ x + (1 | gr(g, dist = "student"))),
  pedigree = m(y ~ x + (1 | gr(g, cov = relation)), data2 = list(relation = relation)),
  pedigree_slopes = m(y ~ x + (1 + x | gr(g, cov = relation)), data2 = list(relation = relation)),
  multimembership = m(y ~ x + (1 | mm(g1, g2))),
  multimembership_weights = m(y ~ x + (1 + mmc(x, z) | mm(g1, g2, weights = cbind(v1, v2)))),
  # smooth and special terms
  spline = m(y ~ s(x)),
  spline_by = m(y ~ s(x, by = f) + (1 | g)),
  tensor = m(y ~ t2(x, z, k = 4)),
  spline_group = m(y ~ s(x, g, bs = "fs", k = 4)),
  gp = m(y ~ gp(x)),
  gp_by = m(y ~ gp(x, by = f)),
  gp_several = m(y ~ gp(x, z, iso = FALSE, scale = FALSE)),
  gp_approximate = m(y ~ gp(x, k = 8, c = 5 / 4)),
  gp_approximate_by = m(y ~ gp(x, by = z, k = 6, c = 5 / 4)),
  monotonic = m(y ~ mo(dose)),
  monotonic_product = m(y ~ mo(dose) * x + (mo(dose) | g)),
  measurement_error = m(y ~ me(x, se) + z),
  measurement_errors = m(y ~ me(x, se) * me(z, se) + (1 + me(x, se) | g)),
  imputed = m(bf(y ~ mi(xmis)) + bf(xmis | mi() ~ z) + set_rescor(FALSE)),
  imputed_error = m(bf(y ~ mi(missing) * z) + bf(missing | mi(se) ~ 1) + set_rescor(FALSE),
                    save_pars = save_pars(latent = TRUE)), # loo() needs the latent values
  # families
  student = m(y ~ x, family = student()),
  skew_normal = m(y ~ x, family = skew_normal()),
  lognormal = m(positive ~ x, family = lognormal()),
  shifted_lognormal = m(positive ~ x, family = shifted_lognormal()),
  gamma = m(positive ~ x + (1 | g), family = Gamma("log")),
  weibull = m(positive ~ x, family = weibull()),
  exponential = m(positive ~ x, family = exponential()),
  frechet = m(positive ~ x, family = frechet()),
  extreme_value = m(y ~ x, family = gen_extreme_value()),
  exgaussian = m(y ~ x, family = exgaussian()),
  inverse_gaussian = m(positive ~ x, family = inverse.gaussian("log")),
  quantile = m(bf(y ~ x, quantile = 0.25), family = asym_laplace()),
  beta = m(share ~ x + (1 | g), family = Beta()),
  zero_one_beta = m(edge ~ x, family = zero_one_inflated_beta()),
  zero_inflated_beta = m(bf(ifelse(yes == 1, share, 0) ~ x, zi ~ z), family = zero_inflated_beta()),
  bernoulli = m(yes ~ x + (1 | g), family = bernoulli()),
  probit = m(yes ~ x, family = bernoulli("probit")),
  cloglog = m(yes ~ x, family = bernoulli("cloglog")),
  cauchit = m(yes ~ x, family = bernoulli("cauchit")),
  binomial = m(hits | trials(size) ~ x + (1 | g), family = binomial()),
  beta_binomial = m(hits | trials(size) ~ x, family = beta_binomial()),
  poisson = m(count ~ x + (1 | g), family = poisson()),
  poisson_rate = m(count | rate(w) ~ x, family = poisson()),
  softplus = m(count ~ x, family = brmsfamily("poisson", "softplus")),
  square_root = m(count ~ x + (1 | g), family = poisson("sqrt")),
  negbinomial = m(count ~ x + (1 | g), family = negbinomial()),
  geometric = m(count ~ x, family = geometric()),
  discrete_weibull = m(count ~ x, family = brmsfamily("discrete_weibull")),
  com_poisson = m(count ~ x, family = brmsfamily("com_poisson")),
  zero_inflated_poisson = m(zeros ~ x, family = zero_inflated_poisson()),
  zero_inflated_negbinomial = m(bf(zeros ~ x, zi ~ z), family = zero_inflated_negbinomial()),
  zero_inflated_binomial = m(zeros | trials(40) ~ x, family = zero_inflated_binomial()),
  zero_inflated_beta_binomial = m(zeros | trials(40) ~ x,
                                  family = brmsfamily("zero_inflated_beta_binomial")),
  hurdle_poisson = m(bf(zeros ~ x, hu ~ z + (1 | g)), family = hurdle_poisson()),
  hurdle_negbinomial = m(zeros ~ x, family = hurdle_negbinomial()),
  hurdle_gamma = m(bf(gaps ~ x, hu ~ 1), family = hurdle_gamma()),
  hurdle_lognormal = m(gaps ~ x, family = hurdle_lognormal()),
  categorical = m(kind ~ x + (1 | g), family = categorical()),
  multinomial = m(counts | trials(8) ~ x, family = multinomial()),
  dirichlet = m(parts ~ x, family = brmsfamily("dirichlet")),
  logistic_normal = m(parts ~ x, family = brmsfamily("logistic_normal")),
  von_mises = m(angle ~ x, family = von_mises()),
  wiener = m(bf(time | dec(choice) ~ x, bs ~ 1, ndt ~ 1, bias ~ 1), family = wiener()),
  cox = m(time | cens(event) ~ x + (1 | g), family = brmsfamily("cox")),
  # ordinal families
  cumulative = m(level ~ x + (1 | g), family = cumulative()),
  cumulative_probit = m(bf(level ~ x, disc ~ 0 + z), family = cumulative("probit")),
  equidistant = m(level ~ x, family = cumulative(threshold = "equidistant")),
  thresholds_by_group = m(level | thres(3, gr = k) ~ x, family = cumulative()),
  sratio = m(level ~ x + cs(z), family = sratio("cloglog")),
  cratio = m(level ~ cs(x) + (cs(1) | g), family = cratio()),
  acat = m(level ~ x + cs(z), family = acat()),
  # additional information on the response
  weights = m(y | weights(w) ~ x),
  standard_error = m(y | se(se) ~ x + (1 | g)),
  standard_error_sigma = m(y | se(se, sigma = TRUE) ~ x),
  censored = m(y | cens(cens) ~ x),
  censored_interval = m(positive | cens(cens2, positive + 1) ~ x, family = weibull()),
  censored_count = m(count | cens(cens) ~ x, family = poisson()),
  censored_weighted = m(y | weights(w) + cens(cens) ~ x, family = student()),
  truncated = m(y | trunc(lb = -5, ub = 8) ~ x),
  truncated_count = m(count | trunc(ub = 100) ~ x, family = negbinomial()),
  truncated_rows = m(y | trunc(lb = low - 9, ub = high + 9) ~ x, family = student()),
  subset = m(bf(y | subset(yes) ~ x) + bf(y2 | subset(choice) ~ z) + set_rescor(FALSE)),
  # several parameters of the response
  distributional = m(bf(y ~ x + (1 | g), sigma ~ z + (1 | g))),
  shared_groups = m(bf(y ~ x + (1 | i | g), sigma ~ z + (1 | i | g))),
  distributional_smooth = m(bf(count ~ s(x), shape ~ z), family = negbinomial()),
  distributional_student = m(bf(y ~ x, sigma ~ 0 + f, nu = 4), family = student()),
  equal_parameters = m(bf(y ~ x, sigma1 = "sigma2"), family = mixture(gaussian, gaussian),
                       prior = prior(normal(0, 2), Intercept, dpar = mu1) +
                         prior(normal(1, 2), Intercept, dpar = mu2)),
  # mixtures
  mixture = m(bf(y ~ x), family = mixture(gaussian, gaussian),
              prior = prior(normal(-1, 2), Intercept, dpar = mu1) +
                prior(normal(2, 2), Intercept, dpar = mu2)),
  mixture_unequal = m(bf(y ~ 1, mu1 ~ x, mu2 ~ z), family = mixture(student, gaussian,
                                                                    order = "none")),
  mixture_weights = m(bf(y ~ x, theta1 ~ z), family = mixture(gaussian, nmix = 2)),
  mixture_counts = m(count ~ x, family = mixture(poisson, negbinomial, order = "mu"),
                     prior = prior(normal(0, 1), class = b, dpar = mu1) +
                       prior(normal(0, 1), class = b, dpar = mu2)), # improper without
  # several responses
  responses = m(bf(mvbind(y, y2) ~ x + (1 | p | g)) + set_rescor(TRUE)),
  responses_student = m(bf(mvbind(y, y2) ~ x) + set_rescor(TRUE), family = student()),
  responses_mixed = m(bf(y ~ x) + bf(count ~ z, family = poisson()) + set_rescor(FALSE)),
  responses_missing = m(bf(y ~ x) + bf(missing | mi() ~ z) + set_rescor(TRUE)),
  # autocorrelation
  ar = m(y ~ x + ar(time = t, gr = g)),
  ar_cov = m(y ~ x + ar(time = t, gr = g, cov = TRUE)),
  ma = m(y ~ x + ma(time = t, gr = g, q = 2)),
  arma = m(y ~ x + arma(time = t, gr = g, p = 1, q = 1)),
  arma_cov = m(y ~ x + arma(time = t, gr = g, cov = TRUE), family = student()),
  ar_count = m(count ~ x + ar(time = t, gr = g), family = poisson()),
  cosy = m(y ~ x + cosy(time = t, gr = g)),
  lagged_errors = m(y ~ x + sar(neighbours, type = "lag"), data2 = list(neighbours = neighbours)),
  spatial_errors = m(y ~ x + sar(neighbours, type = "error"),
                     data2 = list(neighbours = neighbours)),
  car = m(y ~ x + car(places, gr = g), data2 = list(places = places)),
  car_intrinsic = m(count ~ x + car(places, gr = g, type = "icar"), family = poisson(),
                    data2 = list(places = places)),
  car_exact = m(y ~ x + car(places, gr = g, type = "esicar"), data2 = list(places = places)),
  bym2 = m(count ~ x + car(places, gr = g, type = "bym2"), family = poisson(),
           data2 = list(places = places)),
  fixed_covariance = m(y ~ x + fcor(spread), data2 = list(spread = spread)),
  # non-linear models
  nonlinear = m(growth, prior = growth_prior),
  nonlinear_gp = m(bf(y ~ a + b * x, a ~ gp(z), b ~ 1, nl = TRUE),
                   prior = prior(normal(0, 1), nlpar = "b")),
  nonlinear_sigma = m(bf(y ~ x, nlf(sigma ~ a * exp(b * z)), a ~ 1, b ~ 1),
                      prior = prior(normal(0, 1), nlpar = "a") +
                        prior(normal(0, 1), nlpar = "b")),
  nonlinear_vector = m(bf(positive ~ exp(a) + b, a ~ x, b ~ 1, nl = TRUE, loop = FALSE),
                       prior = growth_prior),
  # priors and code
  horseshoe = m(y ~ x + z + f, prior = prior(horseshoe(1))),
  r2d2 = m(y ~ x + z + f, prior = prior(R2D2(0.5))),
  lasso = m(y ~ x + z + f, prior = prior(lasso(1))),
  bounded = m(y ~ x + z, prior = prior(normal(0, 1), lb = 0) + prior(gamma(2, 1), class = sigma)),
  constant_prior = m(y ~ x + (1 | g), prior = prior(constant(0.5), class = sd) +
                       prior(normal(0, 1), class = b, coef = x)),
  prior_draws = m(y ~ x + (1 | g), sample_prior = "yes", prior = prior(normal(0, 1), class = b)),
  prior_only = m(y ~ x, sample_prior = "only", prior = prior(normal(0, 1), class = b)),
  unnormalised = m(y ~ x + (1 | g), normalize = FALSE),
  own_family = m(y | vreal(z) ~ x, family = double, stanvars = double_code))

# ---- checks --------------------------------------------------------------------------------------

arguments_of <- function(model) {
  if (is.null(model[["data"]])) model[["data"]] <- d
  model
}

check_model <- function(name) {
  row <- list(name = name, n = NA, read = NA, bind = NA, first = NA, error = NA, ms = NA, note = "")
  arguments <- arguments_of(models[[name]])
  tryCatch({
    empty <- suppressMessages(do.call(brms::brm, c(arguments, empty = TRUE)))
    code <- as.character(brms::stancode(empty))
    data <- unclass(brms::standata(empty))
    row$read <- seconds(model <- cl_stan(code = code))
    row$bind <- seconds(b <- model(data))
    row$n <- b$dimension
    at <- finite_point(b)
    row$first <- at$first
    row$error <- slope_error(b$unconstrained, at$u)
    row$ms <- 200 * seconds(for (k in 1:5) b$unconstrained(at$u + k / 1000))
    if ("rstan" %in% checks) row$note <- against_rstan(name, code, data, b)
    if ("sample" %in% checks) row$note <- trimws(paste(row$note, sampled(arguments)))
  }, error = function(e) row$note <<- gsub("\n", " ", conditionMessage(e)))
  row
}

# Errors by which brms says that it has no such method, or that another package is needed.
not_there <- "install the|^Cannot |requires numeric"

sampled <- function(arguments) {
  draw <- function(f, ...) suppressWarnings(suppressMessages(do.call(f, c(arguments, list(...)))))
  took <- seconds(fit <- draw(cl_brm, chains = 2, iter = 300, seed = 1, refresh = 0))
  failed <- character()
  tried <- function(what, code) {
    tryCatch(utils::capture.output(suppressWarnings(suppressMessages(force(code)))),
             error = function(e) failed <<- c(failed, paste0(what, ": ", conditionMessage(e))))
  }
  one <- if (inherits(fit$formula, "mvbrmsformula")) fit$formula$responses[1L] # of several
  tried("print", print(fit))
  if (nrow(fit$ranef) > 0L) tried("ranef", brms::ranef(fit))
  tried("posterior_predict", brms::posterior_predict(fit, ndraws = 20, resp = one))
  if (!identical(arguments$sample_prior, "only")) tried("loo", brms::loo(fit, resp = one))
  categories <- isTRUE(fit$family$family %in% c("categorical", "multinomial", "dirichlet"))
  tried("conditional_effects", if (nrow(fixef(fit)) > 1L) {
    brms::conditional_effects(fit, ndraws = 20, resp = one, categorical = categories)
  })
  absent <- grepl(not_there, sub("^[a-z_]*: ", "", failed))
  if (!all(absent)) stop(paste(failed[!absent], collapse = "; "))
  absent <- if (any(absent)) paste(", without", toString(sub(":.*", "", failed[absent])))
  paste0(sprintf("%.1f s to sample", took), absent)
}

chosen <- grep(pattern, names(models), value = TRUE, perl = TRUE)
results <- lapply(chosen, function(name) {
  row <- check_model(name)
  cat(sprintf("%-28s %4s %6.2f %6.2f %6.2f %9.1e %8.3f %s\n", row$name, row$n, row$read, row$bind,
              row$first, row$error, row$ms, row$note))
  row
})
reads <- vapply(results, function(r) !is.na(r$read), NA)
right <- vapply(results, function(r) isTRUE(r$error < 1e-6), NA)
cat(sprintf("%d models: %d read, %d with the right derivative\n", length(results), sum(reads),
            sum(right)))
