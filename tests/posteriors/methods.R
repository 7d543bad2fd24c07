# The posteriors of this folder by all methods, against reference draws:
#   Rscript tests/posteriors/methods.R FOLDER [PATTERN]
# For each method the largest error of a mean in posterior standard deviations, and the largest
# ratio of standard deviations (the larger by the smaller); Pareto's k of the approximations; for
# the mode, whose errors are those of its point, the standard errors of cl_optimise(). Approximate
# methods are reported, not judged. A method that gives an error has its class.
library(statcl)

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
tools <- new.env(parent = globalenv())
sys.source(file.path(here, "run.R"), tools)

methods <- list(
  NUTS = function(f, model, ...) {
    cl_sample(f, model$init, iter = 1000, jitter = c(model$jitter, 1)[1], nan = "reject",
              refresh = 0, ...)
  },
  Laplace = function(f, model, ...) cl_laplace(f, model$init, ...),
  Pathfinder = function(f, model, ...) {
    cl_pathfinder(f, model$init, jitter = c(model$jitter, 2)[1], ...)
  },
  VI = function(f, model, ...) cl_vi(f, model$init, ...),
  `VI, rank 5` = function(f, model, ...) cl_vi(f, model$init, rank = 5, ...))

# Modes of densities with respect to unconstrained parameters, which are nearer to the means.
mode_of <- function(f, model, transform) {
  fit <- cl_optimise(f, model$init, transform, jacobian = TRUE)
  if (!is.null(model$report)) {
    point <- do.call(model$report, fit$par)
    return(list(mean = unlist(point, use.names = FALSE), sd = NA))
  }
  list(mean = fit$coefficients, sd = sqrt(diag(fit$vcov)))
}

compare <- function(mean, sd, reference) {
  ratio <- abs(log(sd / reference[, 2]))
  c(error = max(abs(mean - reference[, 1]) / reference[, 2]), ratio = exp(max(ratio)))
}

row_of <- function(name, folder) {
  model <- tools$load_posterior(name, folder, here)
  f <- cl_gradient(model$log_density)
  try_one <- function(code) {
    seconds <- system.time(answer <- tryCatch(suppressWarnings(code), statcl_error = function(e) e))
    if (inherits(answer, "error")) return(sub("statcl_error_", "", class(answer)[1]))
    sprintf("%s (%s s)", answer, format(signif(seconds[[3]], 2)))
  }
  found <- lapply(methods, function(method) try_one({
    fit <- method(f, model, transform = model$transform, seed = 1)
    draws <- tools$reported_draws(model, fit)
    e <- compare(apply(draws, 3, mean), apply(draws, 3, stats::sd), model$reference)
    k <- if (!is.null(fit$khat)) sprintf(", k %.2f", fit$khat) else ""
    sprintf("%.3g, %.3g%s", e[["error"]], e[["ratio"]], k)
  }))
  found$mode <- try_one({
    at <- mode_of(f, model, model$transform)
    e <- compare(at$mean, at$sd, model$reference)
    if (is.na(e[["ratio"]])) sprintf("%.3g", e[["error"]]) else sprintf("%.3g, %.3g", e[1], e[2])
  })
  paste0("| ", paste(c(name, nrow(model$reference), unlist(found)), collapse = " | "), " |")
}

given <- commandArgs(TRUE)
names <- tools$posterior_names(here)
if (length(given) > 1) names <- grep(given[2], names, value = TRUE)
cat("| posterior | quantities | NUTS | Laplace | Pathfinder | VI | VI, rank 5 | mode |\n")
cat("|---|---:|---|---|---|---|---|---|\n")
for (name in names) {
  row <- tryCatch(row_of(name, given[1]), error = function(e) {
    sprintf("| %s | %s |", name, conditionMessage(e))
  })
  cat(row, "\n", sep = "")
  flush(stdout())
}
