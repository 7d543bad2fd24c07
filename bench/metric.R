# Mass matrices: effective draws by metric, and whether the draws are right.
#
#   Rscript bench/metric.R simulated [PATTERN]
# for densities whose means and standard deviations are known, and
#   Rscript bench/metric.R FOLDER [PATTERN]
# for the posteriors of tests/posteriors, whose data and moments of reference draws are in FOLDER
# (see run.R there). For each metric the smallest bulk effective size of all parameters, for each
# second of processor time of the whole run and for 1,000 gradients of draws, as means of three
# seeds; and of their draws together the largest error of a mean, in standard errors of both runs,
# and of a standard deviation, in percent.
library(statcl)
cl_use(engine = "host")
given <- commandArgs(TRUE)
metrics <- c("diag", "auto")
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
here <- file.path(dirname(script), "..", "tests", "posteriors")
tools <- new.env(parent = globalenv())
sys.source(file.path(here, "run.R"), tools)

figures <- function(metric, model, density) {
  runs <- lapply(1:3, function(seed) {
    seconds <- sum(system.time(fit <- suppressWarnings(cl_sample(
      density, model$init, chains = 2, metric = metric, seed = seed, refresh = 0,
      transform = model$transform, jitter = c(model$jitter, 1)[1])))[1:2])
    ess <- min(summary(fit)$ess_bulk)
    steps <- sum(fit$diagnostics$leapfrogs)
    inverse <- fit$inverse_metric
    rank <- if (is.list(inverse)) lengths(lapply(inverse, `[[`, "values")) else NA
    list(draws = tools$reported_draws(model, fit),
         figures = c(rate = ess / seconds, each = 1000 * ess / steps, rank = mean(rank)))
  })
  draws <- do.call(abind_chains, lapply(runs, `[[`, "draws"))
  right <- tools$compare_draws(draws, model$reference)
  c(rowMeans(vapply(runs, `[[`, numeric(3), "figures")), right[c("z", "sd")])
}

# Arrays iterations x chains x quantities, with the chains of all.
abind_chains <- function(...) {
  parts <- lapply(list(...), aperm, c(1, 3, 2))
  size <- dim(parts[[1]])
  aperm(array(unlist(parts), c(size[1:2], size[3] * length(parts))), c(1, 3, 2))
}

# ---- densities with known moments ---------------------------------------------------------------

exact <- function(mean, sd) cbind(mean, sd, 1e12, 1e12)

gaussian <- function(covariance) {
  precision <- solve(covariance)
  d <- nrow(covariance)
  list(log_density = function(x) -0.5 * sum(x * (precision %*% x)), init = list(x = numeric(d)),
       reference = exact(0, sqrt(diag(covariance))))
}

independent <- function(d) {
  scale <- 10^seq(-2, 2, length.out = d)
  list(log_density = function(x) -0.5 * sum((x / scale)^2), init = list(x = numeric(d)),
       reference = exact(0, scale))
}

student <- function(d, df) {
  list(log_density = function(x) sum(dt(x, df, log = TRUE)), init = list(x = numeric(d)),
       reference = exact(0, rep(sqrt(df / (df - 2)), d)))
}

# x[k] ~ N(0, exp(v / 2)), v ~ N(0, spread)
funnel <- function(d, spread) {
  list(log_density = function(v, x) {
    sum(dnorm(x, 0, exp(v / 2), log = TRUE)) + dnorm(v, 0, spread, log = TRUE)
  }, init = list(v = 0, x = numeric(d)),
  reference = exact(0, c(spread, rep(exp(spread^2 / 4), d))))
}

few_correlated <- function(d) {
  set.seed(1)
  scale <- 10^runif(d, -2, 2)
  correlation <- diag(d)
  for (k in c(1, 3, 5)) correlation[k, k + 1] <- correlation[k + 1, k] <- 0.995
  correlation <- correlation + 400 * tcrossprod(rnorm(d) / sqrt(d))
  gaussian(scale * correlation * rep(scale, each = d))
}

# The normal model with groups, in its two parametrisations, by simulated data; no moments but
# those that follow from the marginal distributions of mu and the effects, as the variances are
# known.
groups <- function(count, centred) {
  set.seed(2)
  n <- 5L
  y <- rnorm(count, 1.5 * rnorm(count), 1 / sqrt(n)) # means of n observations
  # mu ~ N(0, 1), b ~ N(mu, 1.5), y ~ N(b, 1 / sqrt(n))
  precision <- rbind(c(1 + count / 1.5^2, rep(-1 / 1.5^2, count)),
                     cbind(rep(-1 / 1.5^2, count), diag(n + 1 / 1.5^2, count)))
  covariance <- solve(precision)
  centre <- drop(covariance %*% c(0, n * y))
  model <- list(log_density = function(mu, b) {
    dnorm(mu, log = TRUE) + sum(dnorm(b, mu, 1.5, log = TRUE)) +
      sum(dnorm(y, b, 1 / sqrt(n), log = TRUE))
  }, init = list(mu = 0, b = numeric(count)))
  if (!centred) {
    model$log_density <- function(mu, z) {
      dnorm(mu, log = TRUE) + sum(dnorm(z, log = TRUE)) +
        sum(dnorm(y, mu + 1.5 * z, 1 / sqrt(n), log = TRUE))
    }
    names(model$init) <- c("mu", "z")
    model$report <- function(mu, z) c(mu, mu + 1.5 * z)
  }
  model$reference <- exact(centre, sqrt(diag(covariance)))
  model
}

toeplitz_of <- function(d, rho) rho^abs(outer(1:d, 1:d, "-"))

simulated <- list(
  "independent 500" = function() independent(500),
  "independent 1000" = function() independent(1000),
  "Student t, 5 df, 100" = function() student(100, 5),
  "Student t, 5 df, 500" = function() student(500, 5),
  "funnel 10, sd 1" = function() funnel(9, 1),
  "funnel 100, sd 1" = function() funnel(99, 1),
  "curved 2" = function() list( # a banana
    log_density = function(x, y) {
      dnorm(x, 0, 2, log = TRUE) + dnorm(y, 0.25 * (x^2 - 4), 1, log = TRUE)
    }, init = list(x = 0, y = 0),
    reference = exact(0, c(2, sqrt(1 + 0.25^2 * 2 * 2^4)))),
  "pair, correlation 0.99" = function() gaussian(matrix(c(1, 0.99, 0.99, 1), 2)),
  "equal correlations 0.9, 50" = function() gaussian(diag(0.1, 50) + 0.9),
  "AR(1) 0.95, 100" = function() gaussian(toeplitz_of(100, 0.95)),
  "few correlated, 200" = function() few_correlated(200),
  "groups 300, centred" = function() groups(300, TRUE),
  "groups 300, non-centred" = function() groups(300, FALSE),
  "gamma 20" = function() list(
    log_density = function(x) sum(dgamma(x, 1:20, 2, log = TRUE)), init = list(x = 1:20 / 2),
    transform = list(x = cl_lower(0)), reference = exact(1:20 / 2, sqrt(1:20) / 2)))

# ---- the table ----------------------------------------------------------------------------------

models <- if (given[1L] == "simulated") simulated else
  lapply(stats::setNames(nm = tools$posterior_names(here)), function(name) {
    function() tools$load_posterior(name, given[1L], here)
  })
if (length(given) > 1L) models <- models[grep(given[2L], names(models))]

cat("| posterior | parameters |", sprintf(" %s, ess/s |", metrics), " ratio |",
    sprintf(" %s, of 1,000 |", metrics), sprintf(" %s, z | sd, %% |", metrics),
    " rank of auto |\n|---|", rep("---:|", 3 + 4 * length(metrics)), "\n", sep = "")
ratio <- NULL
for (name in names(models)) {
  model <- models[[name]]()
  density <- cl_gradient(model$log_density)
  do.call(density, model$init)
  f <- vapply(metrics, figures, numeric(5), model, density)
  ratio <- c(ratio, f["rate", "auto"] / f["rate", "diag"])
  cat(sprintf("| %s | %d |", name, length(unlist(model$init))), sprintf(" %.0f |", f["rate", ]),
      sprintf(" %.2f |", ratio[length(ratio)]), sprintf(" %.4g |", f["each", ]),
      sprintf(" %.1f | %.1f |", f["z", ], 100 * f["sd", ]),
      sprintf(" %.1f |\n", f["rank", "auto"]), sep = "")
}
cat(sprintf("\nauto against diag, ess/s: median %.2f, least %.2f\n", stats::median(ratio),
            min(ratio)))
