# Samples the posteriors of this folder and compares them with reference draws:
#   Rscript tests/posteriors/run.R FOLDER [PATTERN] [ITERATIONS]
# FOLDER has a JSON file for each: data and, for each parameter, mean, standard deviation and number
# of the reference draws. Each file here with the name of one is a function of the data; its value
# has the log density, initial values, transforms, where other quantities are compared their
# function `report`, and where there are other modes far away a smaller `jitter` of initial values.
# regressions.R has all others.

value_of <- function(file, here) source(file.path(here, file), local = new.env())$value

posterior_names <- function(here) {
  sort(c(sub("\\.R$", "", grep("-.*\\.R$", list.files(here), value = TRUE)),
         names(environment(value_of("regressions.R", here))$regressions)))
}

load_posterior <- function(name, folder, here) {
  read <- getExportedValue("jsonlite", "fromJSON")
  file <- read(file.path(folder, paste0(name, ".json")))
  own <- paste0(name, ".R")
  model <- if (file.exists(file.path(here, own))) value_of(own, here)(file$data) else
    value_of("regressions.R", here)(name, file$data)
  reference <- do.call(rbind, lapply(file$reference, unlist))
  c(model, list(name = name, reference = reference))
}

# The largest error of the gradient, and of the program against R's own evaluation up to a constant,
# at points around the initial values.
check_posterior <- function(model, gradient) {
  set.seed(1)
  points <- lapply(1:5, function(i) {
    lapply(model$init, function(x) x * exp(runif(length(x), -0.02, 0.02)))
  })
  # a simplex stays one
  points <- lapply(points, function(point) {
    simplex <- vapply(model$init, function(x) length(x) > 1 && all(x > 0) && sum(x) == 1, TRUE)
    point[simplex] <- lapply(point[simplex], function(x) x / sum(x))
    point
  })
  slope <- vapply(points, function(p) max(do.call(statcl::cl_check_gradient,
                                                 c(list(gradient), p))$error), 0)
  program <- vapply(points, function(p) c(do.call(gradient, p)), 0)
  direct <- vapply(points, function(p) do.call(model$log_density, p), 0)
  off <- program - direct
  c(gradient = max(slope), value = max(abs(off - off[1]) / (1 + abs(direct))))
}

# Draws of what the reference names: an array iterations x chains x quantities.
reported_draws <- function(model, fit) {
  draws <- fit$draws
  if (is.null(model$report)) return(draws)
  rows <- matrix(draws, prod(dim(draws)[1:2]))
  values <- apply(rows, 1, function(row) {
    unlist(do.call(model$report, utils::relist(row, model$init)), use.names = FALSE)
  })
  array(t(values), c(dim(draws)[1:2], nrow(values)))
}

# Means within 4 standard errors of both runs together, standard deviations within 5%.
compare_draws <- function(draws, reference) {
  size <- function(x) statcl:::effective_size(statcl:::halves(x))
  table <- t(apply(draws, 3, function(x) c(mean(x), sd(x), size(x), size((x - mean(x))^2))))
  error <- sqrt(table[, 2]^2 / table[, 3] + reference[, 2]^2 / reference[, 3])
  c(z = max(abs(table[, 1] - reference[, 1]) / error),
    sd = max(abs(table[, 2] / reference[, 2] - 1)), size = min(table[, 3:4]))
}

run_posterior <- function(name, folder, here, iter = 2500, chains = 4) {
  model <- load_posterior(name, folder, here)
  gradient <- statcl::cl_gradient(model$log_density)
  first <- system.time(do.call(gradient, model$init))[[3]]
  errors <- check_posterior(model, gradient)
  times <- max(20, min(1000, ceiling(0.2 / first)))
  speed <- system.time(for (i in seq_len(times)) do.call(gradient, model$init))[[3]] / times
  seconds <- system.time(
    fit <- statcl::cl_sample(gradient, model$init, chains = chains, iter = iter, seed = 1,
                             transform = model$transform, jitter = c(model$jitter, 1)[1],
                             nan = "reject", refresh = 0)
  )[[3]]
  agreement <- compare_draws(reported_draws(model, fit), model$reference)
  data.frame(posterior = name, parameters = length(unlist(model$init)),
             gradient = signif(errors[["gradient"]], 2), value = signif(errors[["value"]], 2),
             trace = signif(first, 2), per_1000 = signif(1000 * speed, 3),
             seconds = signif(seconds, 3), size = round(agreement[["size"]]),
             z = round(agreement[["z"]], 2), sd_off = round(100 * agreement[["sd"]], 1),
             agrees = agreement[["z"]] < 4 && agreement[["sd"]] < 0.05)
}

if (sys.nframe() == 0L) {
  library(statcl)
  given <- commandArgs(TRUE)
  here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1]))
  names <- posterior_names(here)
  if (length(given) > 1) names <- grep(given[2], names, value = TRUE)
  iter <- if (length(given) > 2) as.numeric(given[3]) else 2500
  for (name in names) {
    row <- tryCatch(run_posterior(name, given[1], here, iter), error = function(e) {
      message(name, ": ", conditionMessage(e))
    })
    if (is.data.frame(row)) {
      if (name == names[1]) cat(names(row), sep = "  ", fill = 200)
      cat(vapply(row, format, ""), sep = "  ", fill = 200)
      flush(stdout())
    }
  }
}
