# What posteriordb.R and brms.R share: errors of derivatives, and comparisons with rstan.
# STATCL_STAN_CACHE names a folder that keeps what rstan compiled, a minute for each program.

seconds <- function(code) sum(system.time(code)[1:2]) # of the processor

# The relative error of the derivative along a direction.
slope_error <- function(f, u) {
  v <- stats::rnorm(length(u))
  v <- v / sqrt(sum(v^2))
  slope <- sum(attr(f(u), "gradient") * v)
  error <- vapply(10^-(2:6), function(h) {
    at <- function(k) as.vector(f(u + k * h * v))
    abs((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h) - slope) / max(1, abs(slope))
  }, 0)
  min(error[is.finite(error)], Inf)
}

# Points ever nearer to zero, then in the range of Stan's starts.
random_point <- function(n, try) {
  if (try <= 20L) stats::runif(n, -1, 1) / try else stats::runif(n, -2, 2)
}

# A random point at which log density and gradient are finite, and the seconds of the first call.
finite_point <- function(b) {
  set.seed(1)
  for (try in 1:60) {
    u <- random_point(b$dimension, try)
    took <- seconds(value <- b$unconstrained(u))
    if (try == 1L) first <- took
    if (all(is.finite(c(value, attr(value, "gradient"))))) break
  }
  list(u = u, value = as.vector(value), first = first)
}

# A program in the syntax of arrays that rstan 2.21 reads: array[N] real x is real x[N] there.
old_syntax <- function(code) {
  code <- paste(code, collapse = "\n")
  if (!grepl("\\barray\\s*\\[", code)) return(code)
  code <- gsub("//[^\n]*", "", code)
  bracket <- "(\\[(?:[^\\[\\]]|(?1))*\\])"
  type <- paste0("((?:int|real|vector|row_vector|matrix|simplex|ordered|positive_ordered|",
                 "unit_vector|[a-z]+_(?:corr|cov|matrix))\\b")
  argument <- paste0("\\barray\\s*(\\[[ ,]*\\])\\s*", type, ")")
  code <- gsub(argument, "\\2\\1", code, perl = TRUE)
  declared <- paste0("\\barray\\s*", bracket, "\\s*", type, "(?:\\s*<[^<>;]*>)?",
                     "(?:\\s*\\[(?:[^\\[\\]]|(?1))*\\])?)\\s*([A-Za-z]\\w*)")
  gsub(declared, "\\2 \\3\\1", code, perl = TRUE)
}

# rstan's log density of unconstrained parameters, with attribute "gradient".
rstan_density <- function(program, code, data) {
  kept <- file.path(Sys.getenv("STATCL_STAN_CACHE", tempdir()), paste0(program, ".rds"))
  model <- if (file.exists(kept)) readRDS(kept)
  if (is.null(model) || !identical(as.vector(model@model_code), code)) {
    model <- rstan::stan_model(model_code = code, model_name = program)
    saveRDS(model, kept)
  }
  fit <- suppressWarnings(rstan::sampling(model, data = data, chains = 0, refresh = 0))
  function(u) rstan::log_prob(fit, u, gradient = TRUE)
}

# `b`, the bound model, against rstan.
against_rstan <- function(program, code, data, b) {
  theirs <- rstan_density(program, old_syntax(code), data)
  ours <- function(u) b$unconstrained(u, drop = TRUE)
  compared <- lapply(1:3, function(seed) {
    set.seed(seed)
    for (try in 1:60) {
      u <- random_point(b$dimension, try)
      found <- list(theirs = tryCatch(theirs(u), error = function(e) NaN), ours = ours(u))
      if (all(is.finite(c(found$theirs, attr(found$theirs, "gradient"))))) break
    }
    found
  })
  value <- function(side) vapply(compared, function(f) as.vector(f[[side]]), 0)
  spread <- function(x) c(x[1] - x[2], x[2] - x[3], x[3] - x[1])
  slope <- vapply(compared, function(f) {
    g <- lapply(f, attr, "gradient")
    max(abs(g$theirs - g$ours)) / max(abs(g$theirs))
  }, 0)
  apart <- spread(value("theirs"))
  sprintf("rstan: value %.1e, gradient %.1e, constant %.1e",
          max(abs(apart - spread(value("ours")))) / max(abs(apart)), max(slope),
          max(abs(value("theirs") - value("ours"))))
}
