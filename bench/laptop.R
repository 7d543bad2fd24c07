# What people do on a laptop without a GPU, next to the packages that they would use instead.
#
#   Rscript bench/laptop.R [row ...]
#
# needs lme4, mgcv, RTMB, rstan and brms. Seconds by the clock, medians of three calls after a
# first one, both packages in turn. Stan first compiles a model; that time stands apart.
# "check" is a number that both should have.
suppressMessages(library(statcl))
cl_use(engine = "host")
given <- commandArgs(TRUE)

seconds <- function(f) {
  start <- proc.time()[[3]]
  value <- f()
  list(s = proc.time()[[3]] - start, value = value)
}

# `ours` and `theirs`: calls; `check`: the numbers of their results that are compared.
compare <- function(label, peer, ours, theirs, check_ours, check_theirs = check_ours, build = 0) {
  runs <- lapply(1:4, function(i) list(seconds(ours), seconds(theirs)))
  of <- function(which) stats::median(vapply(runs[-1L], function(r) r[[which]]$s, 0))
  data.frame(what = label, statcl_s = of(1L), first_s = runs[[1L]][[1L]]$s, peer = peer,
             peer_s = of(2L), peer_compiles_s = build, ratio = of(2L) / of(1L),
             check = check_ours(runs[[4L]][[1L]]$value),
             peer_check = check_theirs(runs[[4L]][[2L]]$value))
}

loglik <- function(fit) as.numeric(logLik(fit))
boost <- if (nzchar(system.file("include", package = "BH"))) NULL else "/usr/include"

rows <- list(
  mixed = function() {
    data <- lme4::sleepstudy
    compare("mixed model, sleepstudy", "lme4",
            function() cl_glmm(Reaction ~ Days + (Days | Subject), data, "normal_id"),
            function() lme4::lmer(Reaction ~ Days + (Days | Subject), data, REML = FALSE), loglik)
  },
  counts = function() {
    data <- lme4::cbpp
    formula <- cbind(incidence, size - incidence) ~ period + (1 | herd)
    compare("binomial mixed model, cbpp", "lme4", function() cl_glmm(formula, data, binomial),
            function() lme4::glmer(formula, data, binomial), loglik)
  },
  process = function() {
    data <- MASS::mcycle
    compare("Gaussian process, mcycle", "mgcv",
            function() cl_gp(accel ~ times, data),
            function() mgcv::gam(accel ~ s(times, bs = "gp", k = 40), data = data, method = "REML"),
            function(fit) predict(fit, data.frame(times = 20)))
  },
  logistic = function() {
    data <- survival::flchain
    compare("logistic regression, flchain (7,874 rows)", "glm()",
            function() cl_glm(death ~ age + sex + log(kappa), data, binomial),
            function() glm(death ~ age + sex + log(kappa), binomial, data), loglik)
  },
  laplace = function() {
    suppressMessages(library(RTMB))
    data <- lme4::grouseticks
    x <- cbind(1, as.numeric(as.character(data$YEAR)) - 96, (data$HEIGHT - 460) / 100)
    ticks <- data$TICKS
    brood <- as.integer(data$BROOD)
    nll <- function(p) {
      eta <- x %*% p$beta + exp(p$log_sd) * p$u[brood]
      -sum(dpois(ticks, exp(eta), log = TRUE)) - sum(dnorm(p$u, 0, 1, log = TRUE))
    }
    start <- list(beta = c(0.5, 0, 0), log_sd = 0, u = numeric(max(brood)))
    fit <- function(make) function() {
      objective <- make()
      nlminb(objective$par, objective$fn, objective$gr)$objective
    }
    compare("own model with random effects, grouseticks", "RTMB",
            fit(function() cl_tmb(nll, start, random = "u")),
            fit(function() RTMB::MakeADFun(nll, start, random = "u", silent = TRUE)), identity)
  },
  schools = function() {
    y <- c(28, 8, -3, 7, -1, 1, 18, 12)
    error <- c(15, 10, 16, 11, 9, 11, 10, 18)
    density <- function(z, mu, tau) {
      sum(dnorm(y, mu + tau * z, error, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
        dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
    }
    built <- seconds(function() rstan::stan_model(model_code = "
      data { int J; vector[J] y; vector[J] error; }
      parameters { vector[J] z; real mu; real<lower=0> tau; }
      model { z ~ normal(0, 1); mu ~ normal(0, 5); tau ~ cauchy(0, 5);
              y ~ normal(mu + tau * z, error); }", boost_lib = boost))
    compare("NUTS, eight schools, 4 x (1000 + 1000)", "rstan",
            function() cl_sample(cl_gradient(density), list(z = numeric(8), mu = 0, tau = 1),
                                 transform = list(tau = cl_lower(0)), seed = 1, refresh = 0),
            function() rstan::sampling(built$value, list(J = 8, y = y, error = error), seed = 1,
                                       refresh = 0),
            function(s) mean(s$draws[, , "mu"]),
            function(s) mean(rstan::extract(s, "mu")$mu), build = built$s)
  },
  multilevel = function() {
    data <- lme4::sleepstudy
    data$Days <- data$Days - mean(data$Days)
    built <- seconds(function() suppressMessages(
      brms::brm(Reaction ~ Days + (Days | Subject), data, chains = 0,
                stan_model_args = list(boost_lib = boost))))
    compare("NUTS, mixed model of sleepstudy, 4 x (1000 + 1000)", "brms",
            function() cl_glmm(Reaction ~ Days + (Days | Subject), data, "normal_id",
                               method = "mcmc", control = list(seed = 1)),
            function() suppressMessages(update(built$value, chains = 4, recompile = FALSE, seed = 1,
                                               refresh = 0)),
            function(fit) coef(summary(fit))[2L, 1L], function(fit) brms::fixef(fit)[2L, 1L],
            build = built$s)
  })

chosen <- if (length(given)) given else names(rows)
table <- do.call(rbind, lapply(rows[chosen], function(row) row()))
print(table, digits = 3, row.names = FALSE)
cat("\n", R.version.string, ", ",
    system("sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1", intern = TRUE), "\n",
    sep = "")
