# Random numbers of the methods of simulate().

# The value of `code`, with the attribute "seed" that simulate() of stats gives: the state of the
# generator from which the numbers were drawn, or `seed`. With a seed, the state is restored.
with_seed <- function(seed, code) {
  if (!exists(".Random.seed", envir = .GlobalEnv, inherits = FALSE)) stats::runif(1)
  if (is.null(seed)) {
    random <- get(".Random.seed", envir = .GlobalEnv)
  } else {
    kept <- get(".Random.seed", envir = .GlobalEnv)
    on.exit(assign(".Random.seed", kept, envir = .GlobalEnv))
    classed(set.seed(seed), "seed")
    random <- structure(seed, kind = as.list(RNGkind()))
  }
  structure(code, seed = random)
}
