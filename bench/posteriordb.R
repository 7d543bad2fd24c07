# Reads, binds and differentiates the programs of a copy of posteriordb, and prints a table:
#   Rscript bench/posteriordb.R FOLDER [PATTERN] [first] [sample] [rstan]
# FOLDER is posterior_database of a clone of stan-dev/posteriordb, PATTERN a regular expression of
# names of programs. Columns: seconds to read, to bind and to the first gradient; the relative error
# of the derivative along a random direction against differences; milliseconds of a gradient.
# "first": no further than the first gradient.
# "rstan": log density and gradient at three random points against rstan's: differences of the log
# density between the points in units of the largest, the gradient in units of its largest element,
# and the log densities themselves, where constants are dropped alike ("constant"). rstan compiles a
# program for a minute; STATCL_STAN_CACHE names a folder that keeps what it compiled. "sample":
# draws against the reference draws of the posterior, in units of the standard error, where
# STATCL_REFERENCE names the folder with the summaries; STATCL_SEED: another seed than 1.
suppressMessages(library(statcl))
source("bench/stan-common.R")
arguments <- commandArgs(TRUE)
folder <- arguments[1L]
pattern <- if (length(arguments) > 1L) arguments[2L] else "."
checks <- arguments[-(1:2)]

files <- list.files(file.path(folder, "posteriors"), "json$", full.names = TRUE)
posteriors <- lapply(files, function(f) {
  utils::modifyList(jsonlite::fromJSON(f), list(id = sub("[.]json$", "", basename(f))))
})
program_of <- vapply(posteriors, `[[`, "", "model_name")
if (!"sample" %in% checks) posteriors <- posteriors[!duplicated(program_of)]
wanted <- function(p) any(grepl(pattern, c(p$id, p$model_name), perl = TRUE))
posteriors <- Filter(wanted, posteriors)

read_data <- function(name) {
  zip <- file.path(folder, "data", "data", paste0(name, ".json.zip"))
  if (!file.exists(zip)) stop("no data in this copy")
  file <- utils::unzip(zip, exdir = tempfile("data"))
  on.exit(unlink(dirname(file), recursive = TRUE))
  jsonlite::fromJSON(file)
}

run_one <- function(p) {
  row <- list(program = p$model_name, read = NA, bind = NA, first = NA, error = NA, ms = NA,
              value = NA, note = "")
  file <- file.path(folder, "models", "stan", paste0(p$model_name, ".stan"))
  setTimeLimit(elapsed = if ("sample" %in% checks) 900 else 120)
  on.exit(setTimeLimit(elapsed = Inf))
  tryCatch({
    data <- read_data(p$data_name)
    row$read <- seconds(model <- cl_stan(file))
    row$bind <- seconds(b <- model(data))
    at <- finite_point(b)
    u <- at$u
    row$first <- at$first
    row$value <- at$value
    if ("first" %in% checks) return(row)
    row$error <- slope_error(b$unconstrained, u)
    took <- seconds(for (k in 1:3) b$unconstrained(u + k / 1000)) / 3
    n <- max(1, min(200, round(0.2 / max(took, 1e-5))))
    row$ms <- 1000 * seconds(for (k in seq_len(n)) b$unconstrained(u + k / 1000)) / n
    if ("rstan" %in% checks) row$note <- against_rstan(p$model_name, readLines(file, warn = FALSE),
                                                           data, b)
    if ("sample" %in% checks) row$note <- against_draws(p, b)
  }, error = function(e) row$note <<- sub("\n.*", "", conditionMessage(e)))
  row
}

against_draws <- function(p, b) {
  reference <- file.path(Sys.getenv("STATCL_REFERENCE"), paste0(p$id, ".json"))
  if (!file.exists(reference)) return("no reference draws")
  reference <- jsonlite::fromJSON(reference)
  seed <- as.integer(Sys.getenv("STATCL_SEED", "1"))
  took <- seconds(fit <- suppressWarnings(cl_sample(b, seed = seed, refresh = 0)))
  table <- summary(fit)
  table <- table[match(names(reference$reference), table$parameter), ]
  want <- do.call(rbind, reference$reference)
  draws <- posterior::as_draws_array(fit)
  # of the reference's sd the error is by the kurtosis of these draws
  error <- vapply(table$parameter, function(name) {
    x <- as.vector(draws[, , name])
    posterior::mcse_sd(draws[, , name])^2 + (mean((x - mean(x))^4) / stats::var(x)^2 - 1) / 4 *
      want[name, 2]^2 / want[name, 3]
  }, 0)
  sprintf(paste("means within %.1f standard errors, sds within %.1f, rhat %.3f, %d divergent,",
                "%.1f s"),
          max(abs(table$mean - want[, 1]) / sqrt(table$mcse^2 + want[, 2]^2 / want[, 3])),
          max(abs(table$sd - want[, 2]) / sqrt(error)), max(table$rhat),
          sum(fit$diagnostics$divergent), took)
}

results <- lapply(posteriors, function(p) {
  row <- run_one(p)
  cat(sprintf("%-45s %6.2f %6.2f %7.2f %9.1e %9.3f %14.7g %s\n", row$program, row$read, row$bind,
              row$first, row$error, row$ms, row$value, row$note))
  row
})
reads <- vapply(results, function(r) !is.na(r$read), NA)
seconds_all <- vapply(results, function(r) r$read + r$bind + r$first, 0)
names(seconds_all) <- vapply(results, `[[`, "", "program")
cat(sprintf("read to first gradient: median %.2f s, at most 0.4 s in %d of %d, longest %s\n",
            stats::median(seconds_all, na.rm = TRUE), sum(seconds_all <= 0.4, na.rm = TRUE),
            sum(!is.na(seconds_all)), paste(sprintf("%s %.2f", names(sort(-seconds_all)),
                                                    -sort(-seconds_all))[1:5], collapse = ", ")))
right <- vapply(results, function(r) isTRUE(r$error < 1e-6), NA)
cat(sprintf("%d programs: %d read, %d evaluated with the right derivative\n", length(results),
            sum(reads), sum(right)))
