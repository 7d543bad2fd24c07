# Fits by cl_glm() on the host engine next to glm() and glm.fit(), in one run.
#
#   Rscript bench/glm-fit.R [sizes, such as 200x3,1e5x20]
#
# A line for each family and size: milliseconds of processor time and by the clock, medians of fits
# in turn (the first of each is not counted), and the ratios theirs / ours. "formula": cl_glm() and
# glm() of a data frame; "matrix": cl_glm(x, y) and glm.fit(). `digits`: the decimal digits of the
# coefficients that both have in common.
suppressMessages(library(statcl))
cl_use(engine = "host")
given <- c(commandArgs(TRUE), "mtcars,200x3,1e3x5,1e4x20,1e5x20,1e5x50,1e6x20")[1L]

families <- list(binomial = binomial(), poisson = poisson(), normal = gaussian(),
                 Gamma = Gamma("log"))

draw <- function(family, eta) {
  n <- length(eta)
  switch(family, binomial = as.double(runif(n) < plogis(eta)), poisson = rpois(n, exp(eta / 2)),
         normal = eta + rnorm(n), Gamma = rgamma(n, 3, 3 / exp(eta / 2)))
}

# list(x, y, data, formula)
problem <- function(size, family) {
  if (size == "mtcars") {
    y <- switch(family, binomial = "am", poisson = "carb", "mpg")
    formula <- as.formula(paste(y, "~ wt + hp"))
    data <- mtcars[c(y, "wt", "hp")]
  } else {
    shape <- as.numeric(strsplit(size, "x", fixed = TRUE)[[1L]])
    set.seed(1)
    names <- paste0("x", seq_len(shape[2L]))
    x <- matrix(rnorm(prod(shape)), shape[1L], dimnames = list(NULL, names))
    y <- draw(family, as.vector(x %*% rep_len(c(0.5, -0.3), shape[2L]) / sqrt(shape[2L])))
    data <- data.frame(y = y, x)
    formula <- y ~ .
  }
  list(x = model.matrix(formula, data), y = data[[1L]], data = data, formula = formula)
}

# Seconds of processor time and by the clock of one call.
spent <- function(call) {
  gc(FALSE)
  start <- proc.time()
  value <- call()
  used <- proc.time() - start
  list(value = value, s = c(sum(used[1:2]), used[3L]))
}

in_turn <- function(ours, theirs, times, repeats) {
  many <- function(call) function() {
    for (i in seq_len(repeats)) value <- call()
    value
  }
  s <- array(0, c(2L, 2L, times))
  for (i in 0:times) {
    a <- spent(many(ours))
    Sys.sleep(0.02) # the threads of R's BLAS stay awake for a while
    b <- spent(many(theirs))
    if (i > 0L) s[, , i] <- cbind(a$s, b$s)
  }
  list(ms = apply(s, 1:2, median) * 1000 / repeats, ours = a$value, theirs = b$value)
}

for (size in strsplit(given, ",")[[1L]]) for (family in names(families)) {
  p <- problem(size, family)
  n <- nrow(p$x)
  r <- families[[family]]
  calls <- list(
    formula = list(function() cl_glm(p$formula, p$data, r), function() glm(p$formula, r, p$data)),
    matrix = list(function() cl_glm(p$x, p$y, r, intercept = FALSE),
                  function() glm.fit(p$x, p$y, family = r)))
  for (how in names(calls)) {
    work <- length(p$x) * ncol(p$x)
    found <- in_turn(calls[[how]][[1L]], calls[[how]][[2L]],
                     if (work > 1e8) 3 else if (work > 1e6) 5 else 9,
                     max(1, floor(2e6 / max(work, 1e4))))
    gap <- max(abs(coef(found$ours) / coef(found$theirs) - 1))
    cat(sprintf("| %s | %s | %s | %.3g | %.3g | %.2f | %.3g | %.3g | %.2f | %.1f |\n", size, family,
                how, found$ms[1L, 1L], found$ms[1L, 2L], found$ms[1L, 2L] / found$ms[1L, 1L],
                found$ms[2L, 1L], found$ms[2L, 2L], found$ms[2L, 2L] / found$ms[2L, 1L],
                min(16, -log10(gap))))
  }
  rm(p, calls, found)
}
