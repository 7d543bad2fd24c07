# Mass matrices: effective draws by metric.
#
#   Rscript bench/metric.R
# for 200 parameters of which few combinations are correlated, and
#   Rscript bench/metric.R FOLDER [PATTERN]
# for the posteriors of tests/posteriors, whose data are in FOLDER (see run.R there): the smallest
# bulk effective size of all parameters, for each second of processor time of the whole run (the
# mean of three seeds), and for 1,000 gradients of draws.
library(statcl)
cl_use(engine = "host")
given <- commandArgs(TRUE)

figures <- function(metric, density, init, seeds = 1, ...) {
  runs <- vapply(seeds, function(seed) {
    seconds <- sum(system.time(fit <- suppressWarnings(cl_sample(
      density, init, chains = 2, metric = metric, seed = seed, refresh = 0, ...)))[1:2])
    ess <- min(summary(fit)$ess_bulk)
    steps <- sum(fit$diagnostics$leapfrogs)
    metrics <- fit$inverse_metric
    rank <- if (is.list(metrics)) lengths(lapply(metrics, `[[`, "values")) else NA
    c(gradients = sum(fit$evaluations), steps = mean(fit$diagnostics$leapfrogs), ess = ess,
      seconds = seconds, each = 1000 * ess / steps, rank = mean(rank))
  }, numeric(6))
  rowMeans(runs)
}

artificial <- function() {
  set.seed(1)
  d <- 200
  scale <- 10^runif(d, -2, 2)
  correlation <- diag(d)
  for (k in c(1, 3, 5)) correlation[k, k + 1] <- correlation[k + 1, k] <- 0.995
  correlation <- correlation + 400 * tcrossprod(rnorm(d) / sqrt(d))
  precision <- solve(scale * correlation * rep(scale, each = d))
  density <- cl_gradient(function(x) -0.5 * sum(x * (precision %*% x)))
  cat("| metric | gradients | steps an iteration | ess | ess of 1,000 gradients | seconds |\n",
      "|---|---|---|---|---|---|\n", sep = "")
  for (metric in c("diag", "dense", "low-rank", "auto")) {
    f <- figures(metric, density, numeric(d))
    cat(sprintf("| %s | %.0f | %.1f | %.0f | %.2f | %.1f |\n", metric, f["gradients"], f["steps"],
                f["ess"], f["each"], f["seconds"]))
  }
}

posteriors <- function(folder, pattern = ".") {
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  here <- file.path(dirname(script), "..", "tests", "posteriors")
  tools <- new.env(parent = globalenv())
  sys.source(file.path(here, "run.R"), tools)
  metrics <- c("diag", "low-rank", "auto")
  cat("| posterior | parameters |", paste0(" ", metrics, ", ess/s |", collapse = ""),
      paste0(" ", metrics, ", of 1,000 |", collapse = ""), " rank of auto |\n|---|", sep = "")
  cat(rep("---:|", 2 + 2 * length(metrics)), "\n", sep = "")
  ratio <- NULL
  for (name in grep(pattern, tools$posterior_names(here), value = TRUE)) {
    model <- tools$load_posterior(name, folder, here)
    density <- cl_gradient(model$log_density)
    do.call(density, model$init)
    f <- vapply(metrics, figures, numeric(6), density, model$init, 1:3,
                transform = model$transform, jitter = c(model$jitter, 1)[1])
    rate <- f["ess", ] / f["seconds", ]
    ratio <- rbind(ratio, rate[-1L] / rate[1L])
    cat(sprintf("| %s | %d |", name, length(unlist(model$init))),
        sprintf(" %.0f |", rate), sprintf(" %.0f |", f["each", ]),
        sprintf(" %.1f |\n", f["rank", "auto"]), sep = "")
  }
  cat("\nAgainst diag, ess/s: ", paste(sprintf("%s median %.2f, least %.2f", colnames(ratio),
      apply(ratio, 2L, stats::median), apply(ratio, 2L, min)), collapse = "; "), "\n", sep = "")
}

if (length(given) == 0L) artificial() else do.call(posteriors, as.list(given))
