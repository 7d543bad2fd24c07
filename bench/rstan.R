# Six posteriors of posteriordb by cl_sample() on the host and by rstan, in one run.
#
#   Rscript bench/rstan.R [model ...]
#
# needs rstan, posterior, jsonlite and STATCL_POSTERIORDB, a folder with the data as JSON. Stan
# compiles a model for half a minute; that time does not count. Models read from a file of another
# session ended R with an illegal instruction here, so none is kept. Debian's rstan does not find
# the headers of Boost by itself (its package BH has none): `boost_lib` says where they are.
#
# Both draw 4 x (1000 + 1000), one after the other, three rounds; the fastest counts. "cpu s" is
# processor time of the call, with R's part; rstan's chains run one after another in the process,
# ours on two threads. "ess" is the smallest bulk effective size of all parameters, by posterior.
# "off" is the largest distance of our means from posteriordb's reference, in standard errors of
# both.
suppressMessages({
  library(statcl)
  library(rstan)
})
cl_use(engine = "host")
folder <- Sys.getenv("STATCL_POSTERIORDB", "../shared/posteriordb")

read_case <- function(name) {
  jsonlite::fromJSON(file.path(folder, paste0(name, ".json")))
}

# Regressions: parameters beta (K of them) and sigma, with these priors.
regression <- function(name, x, y, prior = "", log_prior = function(beta, sigma) 0) {
  list(name = name, data = list(N = nrow(x), K = ncol(x), x = x, y = y),
       stan = sprintf("data { int N; int K; matrix[N, K] x; vector[N] y; }
                       parameters { vector[K] beta; real<lower=0> sigma; }
                       model { %s y ~ normal(x * beta, sigma); }", prior),
       density = function(beta, sigma) {
         sum(dnorm(y, x %*% beta, sigma, log = TRUE)) + log_prior(beta, sigma)
       },
       init = list(beta = numeric(ncol(x)), sigma = 1), transform = list(sigma = cl_lower(0)))
}

cauchy <- function(beta, sigma) dcauchy(sigma, 0, 2.5, log = TRUE)

models <- list(
  eight_schools = function() {
    d <- read_case("eight_schools-eight_schools_noncentered")
    effect <- d$data$y
    error <- d$data$sigma
    list(data = d$data, reference = d$reference,
         stan = "data { int J; vector[J] y; vector[J] sigma; }
                 parameters { vector[J] z; real mu; real<lower=0> tau; }
                 model { z ~ normal(0, 1); mu ~ normal(0, 5); tau ~ cauchy(0, 5);
                         y ~ normal(mu + tau * z, sigma); }",
         density = function(z, mu, tau) {
           sum(dnorm(effect, mu + tau * z, error, log = TRUE)) + sum(dnorm(z, log = TRUE)) +
             dnorm(mu, 0, 5, log = TRUE) + dcauchy(tau, 0, 5, log = TRUE)
         },
         init = list(z = numeric(8), mu = 0, tau = 1), transform = list(tau = cl_lower(0)),
         names = c(mu = "mu", tau = "tau"))
  },
  arK = function() {
    d <- read_case("arK-arK")
    y <- d$data$y
    lags <- sapply(seq_len(d$data$K), function(k) y[(d$data$K + 1 - k):(length(y) - k)])
    case <- regression("arK", cbind(1, lags), y[-seq_len(d$data$K)],
                       "beta ~ normal(0, 10); sigma ~ cauchy(0, 2.5);",
                       function(beta, sigma) {
                         sum(dnorm(beta, 0, 10, log = TRUE)) + cauchy(beta, sigma)
                       })
    names <- c("alpha", paste0("beta[", seq_len(d$data$K), "]"), "sigma")
    c(case, list(reference = d$reference,
                 names = stats::setNames(names, c(paste0("beta[", 1:6, "]"), "sigma"))))
  },
  kidscore_momhsiq = function() {
    d <- read_case("kidiq-kidscore_momhsiq")
    case <- with(d$data, regression("kidscore", cbind(1, mom_hs, mom_iq), kid_score,
                                    "sigma ~ cauchy(0, 2.5);", cauchy))
    c(case, list(reference = d$reference))
  },
  logmesquite_logvas = function() {
    d <- read_case("mesquite-logmesquite_logvas")
    x <- with(d$data, cbind(1, log(diam1 * diam2 * canopy_height), log(diam1 * diam2),
                            log(diam1 / diam2), log(total_height), log(density), group))
    c(regression("mesquite", x, log(d$data$weight)), list(reference = d$reference))
  },
  nes2000 = function() {
    d <- read_case("nes2000-nes")
    x <- with(d$data, cbind(1, real_ideo, race_adj, age_discrete == 2, age_discrete == 3,
                            age_discrete == 4, educ1, gender, income))
    c(regression("nes", x, d$data$partyid7), list(reference = d$reference))
  },
  blr = function() {
    d <- read_case("sblrc-blr")
    case <- regression("blr", as.matrix(d$data$X), d$data$y,
                       "beta ~ normal(0, 10); sigma ~ normal(0, 10);",
                       function(beta, sigma) {
                         sum(dnorm(beta, 0, 10, log = TRUE)) + dnorm(sigma, 0, 10, log = TRUE)
                       })
    c(case, list(reference = d$reference))
  })

boost <- if (nzchar(system.file("include", package = "BH"))) NULL else "/usr/include"

processor <- function() sum(proc.time()[1:2])

# The fastest of three rounds, and what it drew.
timed <- function(run) {
  best <- list(cpu = Inf)
  for (round in 1:3) {
    start <- c(processor(), proc.time()[[3]])
    fit <- run(round)
    took <- c(processor(), proc.time()[[3]]) - start
    if (took[1L] < best$cpu) best <- list(cpu = took[1L], wall = took[2L], fit = fit)
  }
  best
}

smallest_ess <- function(draws) {
  min(apply(draws, 3, function(x) posterior::ess_bulk(x)))
}

# Of the parameters that the reference has under the same name, or another one.
distance <- function(draws, case) {
  names <- dimnames(draws)[[3]]
  theirs <- names
  if (!is.null(case$names)) theirs <- ifelse(names %in% names(case$names), case$names[names], names)
  shared <- which(theirs %in% names(case$reference))
  off <- vapply(shared, function(k) {
    r <- case$reference[[theirs[k]]]
    error <- sqrt(posterior::mcse_mean(draws[, , k])^2 + r[2]^2 / r[3])
    abs(mean(draws[, , k]) - r[1]) / error
  }, 0)
  c(max(off), length(shared))
}

run_model <- function(name) {
  case <- models[[name]]()
  model <- stan_model(model_code = case$stan, boost_lib = boost, model_name = name)
  f <- cl_gradient(case$density)
  ours <- timed(function(seed) {
    suppressWarnings(cl_sample(f, case$init, transform = case$transform, chains = 4, warmup = 1000,
                               iter = 1000, seed = seed, refresh = 0))
  })
  theirs <- timed(function(seed) {
    suppressWarnings(sampling(model, data = case$data, chains = 4, iter = 2000, refresh = 0,
                              cores = 1, seed = seed))
  })
  draws <- ours$fit$draws
  peer <- rstan::extract(theirs$fit, permuted = FALSE)
  peer <- peer[, , setdiff(dimnames(peer)[[3]], "lp__"), drop = FALSE]
  ess <- c(smallest_ess(draws), smallest_ess(peer))
  inside <- sum(get_elapsed_time(theirs$fit))
  off <- distance(draws, case)
  data.frame(model = name, parameters = dim(draws)[3], statcl_cpu_s = ours$cpu,
             statcl_wall_s = ours$wall, statcl_ess = round(ess[1]), rstan_cpu_s = theirs$cpu,
             rstan_sampling_s = inside, rstan_ess = round(ess[2]),
             ratio = (ess[1] / ours$cpu) / (ess[2] / inside), off = off[1], compared = off[2])
}

# A model in a process of its own: with several in one, rstan 2.21 ended R by a segmentation fault.
in_child <- function(name) {
  file <- tempfile(fileext = ".rds")
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  status <- system2(file.path(R.home("bin"), "Rscript"), shQuote(c(script, name, file)))
  if (status != 0L) stop("no result for ", name)
  readRDS(file)
}

asked <- commandArgs(TRUE)
if (length(asked) == 2L && endsWith(asked[2L], ".rds")) {
  saveRDS(run_model(asked[1L]), asked[2L])
  quit("no")
}
if (length(asked) == 0L) asked <- names(models)
rows <- do.call(rbind, lapply(asked, in_child))
cat(sprintf("Effective draws a second, our call over rstan's sampling alone: %.2f\n\n",
            stats::median(rows$ratio)))
print(rows, digits = 3, row.names = FALSE)
