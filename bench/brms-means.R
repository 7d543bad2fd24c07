# 44 formulas of brms's help pages and vignettes, sampled by cl_brm() and by brm():
#   STATCL_STAN_CACHE=FOLDER Rscript bench/brms-means.R [PATTERN] [rstan]
# PATTERN is a regular expression of names of models. With "rstan" only brm() runs; what it found is
# kept in FOLDER, since a program takes a minute to compile, and is used again as long as program
# and data are the same. Columns: parameters; the largest difference of posterior means in standard
# errors of the difference, and the parameter; divergent transitions; the largest R-hat; processor
# seconds of sampling, and of the whole call, which compiles the program in brm(). First cl_brm(),
# then brm(). Data that a page takes from elsewhere are simulated here.
suppressMessages(library(statcl))
suppressPackageStartupMessages(library(brms))
arguments <- commandArgs(TRUE)
pattern <- if (length(arguments) > 0L) arguments[1L] else "."
folder <- Sys.getenv("STATCL_STAN_CACHE", tempdir())
if (dir.exists("/usr/include/boost")) rstan::rstan_options(boost_lib = "/usr/include") # Debian's

# ---- data ----------------------------------------------------------------------------------------

set.seed(1234)
studies <- data.frame(sei = runif(20, 0.05, 0.3))
studies$outcomes <- rnorm(20, rnorm(20, 0.5, 0.2), studies$sei)
trial <- data.frame(ntrials = sample(1:10, 100, TRUE), x = rnorm(100))
trial$success <- rbinom(100, trial$ntrials, pnorm(trial$x / 3 - 0.2))
het <- data.frame(y = c(rnorm(50), rnorm(50, 1, 2)), x = factor(rep(c("a", "b"), each = 50)))
symptoms <- data.frame(group = rep(c("treat", "placebo"), each = 30),
                       symptom_post = c(rnorm(30, 1, 2), rnorm(30)))
lake <- data.frame(x = as.numeric(LakeHuron))
hormone <- data.frame(x = as.numeric(lh))
wave <- data.frame(x0 = runif(100), x1 = runif(100), x2 = runif(100), x3 = runif(100),
                   fac = factor(rep(1:5, 20)), fac3 = factor(rep(1:3, length.out = 100)))
wave$y <- with(wave, 2 * sin(pi * x0) + exp(2 * x1) + 5 * x2 * (1 - x2) + rnorm(5)[fac] +
                 rnorm(100, 0, exp(x0 - 0.5)))
mixed <- data.frame(y = c(rnorm(200), rnorm(100, 6)), x = rnorm(300), z = sample(0:1, 300, TRUE))
options_of <- c("below_20", "20_to_40", "40_to_100", "greater_100")
income <- data.frame(income = factor(sample(options_of, 100, TRUE), options_of, ordered = TRUE),
                     age = rnorm(100, 40, 10))
income$ls <- c(30, 60, 70, 75)[income$income] + rnorm(100, 0, 7)
fish <- data.frame(persons = sample(1:4, 250, TRUE), camper = factor(rbinom(250, 1, 0.6)))
fish$child <- pmin(rpois(250, 0.7), fish$persons - 1)
fish$count <- with(fish, rpois(250, exp(-0.8 + 0.8 * persons - 1.1 * child + (camper == "1"))) *
                     rbinom(250, 1, plogis(0.8 - child)))
fish$catch <- fish$count * rgamma(250, 3, 3)
birds <- data.frame(fosternest = factor(rep(1:20, 8)), dam = factor(rep(1:16, each = 10)),
                    sex = factor(sample(c("Fem", "Male", "UNK"), 160, TRUE)),
                    hatchdate = rnorm(160))
birds$tarsus <- with(birds, rnorm(20)[fosternest] / 2 + (sex == "Male") / 2 + rnorm(16)[dam] / 2)
birds$back <- birds$tarsus / 3 - birds$hatchdate / 5 + rnorm(20)[birds$fosternest] / 2 + rnorm(160)
birds$tarsus <- birds$tarsus + rnorm(160, 0, 0.7)
curve <- data.frame(x = rnorm(100))
curve$y <- rnorm(100, 2 * exp(0.75 * curve$x))
answers <- data.frame(ability = rnorm(300))
answers$answer <- rbinom(300, 1, 0.33 + 0.67 * plogis(answers$ability))
membership <- data.frame(x1 = rnorm(100), x2 = rnorm(100), g1 = sample(1:10, 100, TRUE),
                         g2 = sample(1:10, 100, TRUE), w1 = 2, w2 = 1)
membership$y <- with(membership, x1 / 2 + (rnorm(10)[g1] + rnorm(10)[g2]) / 2 + rnorm(100))
noisy <- data.frame(x = rnorm(100), sdx = runif(100, 0.2, 0.6))
noisy$x1 <- noisy$x + rnorm(100, 0, noisy$sdx)
noisy$y <- noisy$x + rnorm(100, 0, 0.5)
people <- data.frame(age = factor(sample(c("20-39", "40-59"), 60, TRUE)))
people$chl <- 1.9 + 0.2 * (people$age == "40-59") + rnorm(60, 0, 0.4)
people$bmi <- 20 + 4 * people$chl - 2 * (people$age == "40-59") + rnorm(60, 0, 2)
people$chl[sample(60, 12)] <- NA
people$bmi[sample(60, 8)] <- NA
related <- 0.5^as.matrix(dist(1:30))
dimnames(related) <- list(1:30, 1:30)
species <- data.frame(phylo = rep(1:30, 3), cofactor = rnorm(90, 10, 3))
species$phen <- 40 + 5 * species$cofactor +
  10 * as.vector(crossprod(chol(related), rnorm(30)))[species$phylo] + rnorm(90, 0, 8)
grid <- as.matrix(dist(expand.grid(1:7, 1:7)))
near <- 1 * (grid == 1)
dimnames(near) <- list(1:49, 1:49)
map <- data.frame(x1 = rnorm(49), x2 = rnorm(49), size = 50, area = factor(1:49))
map$y <- rbinom(49, 50, plogis(map$x1 + map$x2 +
                                 as.vector(crossprod(chol(0.4 * exp(-grid)), rnorm(49)))))
map$crime <- as.vector(solve(diag(49) - 0.12 * near, 2 + map$x1 + rnorm(49)))
spread <- 0.5^as.matrix(dist(1:49))
reaction <- data.frame(rt = 0.3 + rgamma(80, 4, 8), decision = rbinom(80, 1, 0.6), x = rnorm(80))
items <- expand.grid(person = factor(1:15), item = factor(1:4))
items$y <- cut(rnorm(15)[items$person] + rnorm(4)[items$item] + rlogis(60), c(-Inf, -1, 1, Inf),
               labels = FALSE)
data("cbpp", package = "lme4")

# ---- models --------------------------------------------------------------------------------------

m <- function(page, formula, data, ...) {
  list(page = page, arguments = list(formula = formula, data = data, ...))
}
two <- mixture(gaussian, gaussian)
two_prior <- prior(normal(0, 7), Intercept, dpar = mu1) + prior(normal(5, 7), Intercept, dpar = mu2)
beta_binomial2 <- custom_family("beta_binomial2", dpars = c("mu", "phi"),
                                links = c("logit", "log"), lb = c(0, 0), ub = c(1, NA),
                                type = "int", vars = "vint1[n]")
density2 <- stanvar(block = "functions", scode = "
  real beta_binomial2_lpmf(int y, real mu, real phi, int T) {
    return beta_binomial_lpmf(y | T, mu * phi, (1 - mu) * phi);
  }")
growth <- bf(cum ~ ult * (1 - exp(-(dev / theta)^omega)), ult ~ 1 + (1 | AY), omega ~ 1, theta ~ 1,
             nl = TRUE)
growth_prior <- prior(normal(5000, 1000), nlpar = "ult") + prior(normal(1, 2), nlpar = "omega") +
  prior(normal(45, 10), nlpar = "theta")
guess_prior <- prior(normal(0, 5), nlpar = "eta") +
  prior(beta(1, 1), nlpar = "guess", lb = 0, ub = 1)
tau <- stanvar(scode = "real<lower=0> tau;", block = "parameters")
tau_prior <- set_prior("normal(0, tau)", class = "b") +
  set_prior("target += normal_lpdf(tau | 0, 10)", check = FALSE)
species_prior <- prior(normal(0, 10), "b") + prior(normal(0, 50), "Intercept") +
  prior(student_t(3, 0, 20), "sd") + prior(student_t(3, 0, 20), "sigma")
steady <- list(adapt_delta = 0.95)

models <- list(
  # population and group terms
  poisson_group = m("?brm", count ~ zAge + zBase * Trt + (1 | patient), epilepsy,
                    family = poisson(),
                    prior = prior(normal(0, 10), class = b) + prior(cauchy(0, 2), class = sd)),
  regression = m("?bayes_R2", mpg ~ wt + cyl, mtcars),
  slopes = m("?hypothesis", time ~ age + sex + disease + (1 + age | patient), kidney,
             family = lognormal(), sample_prior = "yes", control = list(adapt_delta = 0.99),
             prior = c(set_prior("normal(0,2)", class = "b"),
                       set_prior("student_t(10,0,1)", class = "sigma"),
                       set_prior("student_t(10,0,1)", class = "sd"))),
  groups_by = m("?gr", count ~ Trt + (1 | gr(patient, by = Trt)), epilepsy),
  multimembership = m("?mm", y ~ x1 + (1 | mm(g1, g2, weights = cbind(w1, w2))), membership,
                      control = steady),
  phylogenetic = m("vignette phylogenetics", phen ~ cofactor + (1 | gr(phylo, cov = A)), species,
                   data2 = list(A = related), prior = species_prior),
  binomial_group = m("vignette customfamilies", incidence | trials(size) ~ period + (1 | herd),
                     cbpp, family = binomial()),
  # smooth and special terms
  splines = m("?s", y ~ s(x0) + s(x2), wave, control = steady),
  tensor = m("?s", y ~ t2(x0, x1, k = 4) + s(x2, by = x3), wave,
             control = list(adapt_delta = 0.99)),
  gp = m("?gp", y ~ gp(x2), wave[1:40, ], control = steady),
  gp_by = m("?gp", y ~ gp(x2, by = fac3), wave[1:60, ], control = steady),
  monotonic = m("?mo", ls ~ mo(income), income),
  monotonic_product = m("vignette monotonic", ls ~ mo(income) * age, income, control = steady,
                        prior = prior(dirichlet(c(2, 1, 1)), class = "simo", coef = "moincome1")),
  measurement_error = m("?me", y ~ me(x1, sdx), noisy, save_pars = save_pars(latent = TRUE)),
  missing_values = m("?mi", bf(bmi | mi() ~ age * mi(chl)) + bf(chl | mi() ~ age) +
                       set_rescor(FALSE), people),
  # ordinal and categorical families
  sratio = m("?brm", rating ~ period + carry + cs(treat), inhaler, family = sratio("logit"),
             prior = set_prior("normal(0,5)")),
  cumulative_group = m("?inhaler", rating ~ treat + period + carry + (1 | subject), inhaler,
                       family = cumulative(), prior = set_prior("normal(0,5)")),
  discrimination = m("?brmsformula", bf(y ~ item, disc ~ person), items,
                     family = cumulative("probit"),
                     prior = prior(normal(0, 1)) + prior(normal(0, 0.5), dpar = "disc")),
  categorical = m("vignette families", rating ~ treat + period, inhaler, family = categorical(),
                  prior = prior(normal(0, 3), class = b, dpar = mu2) +
                    prior(normal(0, 3), class = b, dpar = mu3) +
                    prior(normal(0, 3), class = b, dpar = mu4)),
  # mixtures
  mixture = m("?mixture", bf(y ~ x + z), mixed, family = two, prior = two_prior),
  mixture_weights = m("?mixture", bf(y ~ x + z, theta2 ~ x), mixed, family = two,
                      prior = two_prior, init = 0),
  # several parameters of the response
  distributional = m("vignette distreg", bf(symptom_post ~ group, sigma ~ group), symptoms),
  distributional_smooth = m("vignette distreg",
                            bf(y ~ s(x1) + (1 | fac), sigma ~ s(x0) + (1 | fac)), wave,
                            control = list(adapt_delta = 0.99)),
  quantile = m("?brm", bf(y ~ x, quantile = 0.25), het, family = asym_laplace()),
  wiener = m("?brmsformula", bf(rt | dec(decision) ~ x, bias = 0.5), reaction, family = wiener()),
  # several responses
  responses = m("vignette multivariate", bf(mvbind(tarsus, back) ~ sex + hatchdate +
                                              (1 | p | fosternest) + (1 | q | dam)) +
                  set_rescor(TRUE), birds, control = steady),
  responses_mixed = m("vignette multivariate",
                      bf(tarsus ~ sex + (1 | p | fosternest)) + lf(sigma ~ 0 + sex) +
                        skew_normal() + bf(back ~ s(hatchdate) + (1 | p | fosternest)) +
                        gaussian() + set_rescor(FALSE), birds, control = list(adapt_delta = 0.99)),
  # what is known of the response
  censored = m("?brm", time | cens(censored) ~ age * sex + disease + (1 | patient), kidney,
               family = lognormal()),
  censored_weibull = m("?kidney", time | cens(censored) ~ age + sex + disease + (1 | patient),
                       kidney, family = weibull(), init = "0",
                       prior = set_prior("cauchy(0,2)", class = "sd")),
  truncated = m("?addition-terms", count | trunc(ub = 104) ~ zBase * Trt, epilepsy,
                family = poisson()),
  weighted = m("?update_adterms", success | trials(ntrials) + weights(w) ~ x,
               transform(trial, w = rep(c(0.5, 2), 50)), family = binomial("probit")),
  meta_analysis = m("?addition-terms", outcomes | se(sei, sigma = TRUE) ~ 1, studies),
  # autocorrelation
  ar = m("?ar", x ~ ar(p = 2), lake),
  arma = m("?arma", x ~ arma(p = 2, q = 1), lake, control = steady),
  car = m("?car", y | trials(size) ~ x1 + x2 + car(W, gr = area), map, data2 = list(W = near),
          family = binomial(), control = steady),
  lagged = m("?sar", crime ~ x1 + sar(W, type = "lag"), map, data2 = list(W = near)),
  fixed_covariance = m("?fcor", crime ~ x1 + fcor(V), map, data2 = list(V = spread)),
  # non-linear models
  nonlinear = m("?brm", growth, loss, family = gaussian(), prior = growth_prior, control = steady),
  guessing = m("vignette nonlinear", bf(answer ~ guess + (1 - guess) * inv_logit(eta),
                                        eta ~ 0 + ability, guess ~ 1, nl = TRUE), answers,
               family = bernoulli("identity"), prior = guess_prior),
  # counts with zeros
  zero_inflated = m("vignette distreg", bf(count ~ persons + child + camper, zi ~ child), fish,
                    family = zero_inflated_poisson()),
  hurdle = m("vignette families", bf(catch ~ persons + camper, hu ~ child), fish,
             family = hurdle_gamma(link = "log")),
  negbinomial = m("?bayes_factor", count ~ zAge + zBase + Trt, epilepsy, family = negbinomial(),
                  prior = prior(normal(0, 1), class = b), save_pars = save_pars(all = TRUE)),
  # code of one's own
  own_family = m("vignette customfamilies", incidence | vint(size) ~ period + (1 | herd), cbpp,
                 family = beta_binomial2, stanvars = density2),
  own_prior = m("?stanvar", count ~ Trt + zBase, epilepsy, prior = tau_prior, stanvars = tau))

# ---- fits ----------------------------------------------------------------------------------------

quiet <- function(f, arguments, ...) {
  suppressWarnings(suppressMessages(do.call(f, c(arguments, list(...)))))
}
sampled <- function(f, arguments, ...) {
  quiet(f, arguments, ..., chains = 2, iter = 2500, warmup = 1000, seed = 1, refresh = 0)
}

timed <- function(code) sum(system.time(code)[c(1, 2, 4, 5)]) # with those of the compiler

found <- function(fit) {
  table <- posterior::summarise_draws(brms::as_draws(fit), "mean", "sd", "mcse_mean", "rhat")
  table <- table[!table$variable %in% c("lp__", "lprior"), ]
  list(table = table, divergent = rstan::get_num_divergent(fit$fit))
}

by_brms <- function(name, model) {
  kept <- file.path(folder, paste0("means-", name, ".rds"))
  of_model <- quiet(brm, model$arguments, empty = TRUE)
  key <- list(as.character(stancode(of_model)), unclass(standata(of_model)),
              model$arguments$control)
  old <- if (file.exists(kept)) readRDS(kept)
  if (identical(old$key, key)) return(old)
  compile <- timed(compiled <- quiet(brm, model$arguments, chains = 0, refresh = 0))
  whole <- timed(fit <- sampled(brm, model$arguments, fit = compiled))
  new <- c(list(key = key, whole = compile + whole,
                sampling = sum(rstan::get_elapsed_time(fit$fit))), found(fit)) # of the processor
  saveRDS(new, kept)
  new
}

# Chains may advance together: the times of the chains are no parts of the whole.
in_sampler <- 0
invisible(suppressMessages(trace(
  "cl_sample", where = asNamespace("statcl"), print = FALSE,
  tracer = quote(in_sampler <<- -sum(proc.time()[1:2])),
  exit = quote(in_sampler <<- in_sampler + sum(proc.time()[1:2])))))

by_statcl <- function(model) {
  whole <- timed(fit <- sampled(cl_brm, model$arguments))
  c(list(whole = whole, sampling = in_sampler), found(fit))
}

compare <- function(name) {
  model <- models[[name]]
  theirs <- by_brms(name, model)
  if ("rstan" %in% arguments) return(sprintf("%s: %.1f s", name, theirs$whole))
  ours <- by_statcl(model)
  if (!setequal(ours$table$variable, theirs$table$variable)) stop("other parameters")
  t <- theirs$table[match(ours$table$variable, theirs$table$variable), ]
  z <- abs(ours$table$mean - t$mean) / sqrt(ours$table$mcse_mean^2 + t$mcse_mean^2)
  z[ours$table$mean == t$mean] <- 0 # constants
  rhat <- function(x) max(x$table$rhat, 1, na.rm = TRUE)
  sprintf("| %s, %s | %d | %.1f | %s | %d, %d | %.3f, %.3f | %.1f, %.1f | %.1f, %.1f |", name,
          model$page, length(z), max(z), ours$table$variable[which.max(z)], ours$divergent,
          theirs$divergent, rhat(ours), rhat(theirs), ours$sampling, theirs$sampling, ours$whole,
          theirs$whole)
}

for (name in grep(pattern, names(models), value = TRUE, perl = TRUE)) {
  cat(tryCatch(compare(name), error = function(e) {
    paste0(name, ": ", gsub("\n", " ", conditionMessage(e)))
  }), "\n", sep = "")
}
