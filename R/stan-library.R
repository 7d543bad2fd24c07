# The library of Stan programs: one table of functions, from R/stan-functions.R, R/stan-matrices.R,
# R/stan-densities.R and R/stan-random.R. They are copied to an environment of their own, in which
# cl_gradient() replaces R's functions by those for traced values.

# `density`: the value is a log density for each element, of which a program has the sum.
stan_library_row <- function(name) {
  tables <- stan_tables()
  for (k in seq_along(tables)) {
    f <- tables[[k]][[name]]
    if (!is.null(f)) return(list(f = f, density = names(tables)[k] == "densities"))
  }
  NULL
}

stan_tables <- function() {
  if (is.null(stan_known$tables)) {
    stan_known$tables <- list(densities = c(stan_densities, stan_rare_densities),
                              totals = c(stan_totals, stan_glms, stan_rare_totals),
                              functions = c(stan_functions, stan_special_functions),
                              matrices = stan_matrix_functions, complex = stan_complex_functions,
                              random = c(stan_random, stan_rare_random))
  }
  stan_known$tables
}

# The environment with the functions, as "s.<name>", and what they call by a name that begins with
# "st_"; made once, and each function when it is called first.
stan_library <- function() {
  if (!is.null(stan_known$library)) return(stan_known$library)
  home <- new.env(parent = topenv())
  own <- c(ls(topenv(), pattern = "^st_"), "corr_factor", "corr_factor_jacobian")
  lapply(own, stan_library_add, home, "", function(name) get(name, envir = topenv()))
  all <- do.call(c, unname(stan_tables()))
  lapply(names(all), stan_library_add, home, "s.", function(name) all[[name]])
  stan_known$library <- home
  home
}

stan_library_add <- function(name, home, prefix, find) {
  force(name)
  delayedAssign(paste0(prefix, name), {
    f <- find(name)
    if (is.function(f) && !is.primitive(f)) {
      body(f) <- stan_unqualified(body(f), home)
      environment(f) <- home
    }
    f
  }, assign.env = home)
}

stan_known <- new.env(parent = emptyenv())

# stats::dnorm as dnorm, which cl_gradient() replaces at once, not at each call.
stan_unqualified <- function(e, home) {
  if (!is.call(e)) return(e)
  if (identical(e[[1L]], quote(`::`))) {
    name <- as.character(e[[3L]])
    assign(name, get(name, envir = asNamespace(as.character(e[[2L]]))), envir = home)
    return(e[[3L]])
  }
  for (k in seq_along(e)) {
    if (is.call(e[[k]])) e[[k]] <- stan_unqualified(e[[k]], home)
  }
  e
}
