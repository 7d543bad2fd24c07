# Arguments of glm() and others that have other names here.

# Whether `data` is a family: one of R or cl_family(), the function that makes it, or a name.
# Sources of blocks are functions and names of files too.
is_family <- function(data) {
  if (is.function(data)) return("link" %in% names(formals(data)))
  if (!is.character(data)) return(inherits(data, c("family", "cl_family")))
  if (length(data) != 1L || !nzchar(data)) return(FALSE)
  data %in% families_with("glm") || exists(data, asNamespace("stats")) &&
    is_family(get(data, asNamespace("stats")))
}

# A call of a fit, in which arguments are in the order of glm(), formula, family, data, rewritten;
# NULL if it is not.
from_glm_order <- function(call, data, family) {
  if (!is_family(data)) return(NULL)
  if (!is.null(family) && (is_family(family) || !(is.list(family) || is.environment(family) ||
                                                    is_source(family)))) {
    abort_argument("family", paste("'data' and 'family' are both families: write",
                                   "cl_glm(formula, data, family = )"))
  }
  at <- match(c("data", "family"), names(call))
  names(call)[at[1L]] <- "family"
  if (!is.na(at[2L])) names(call)[at[2L]] <- "data"
  call
}

# Fits of formulas that a later room makes: `effects`, those with bars.
later_fits <- new.env(parent = emptyenv())

# The fit that f makes by the call, with a call of cl_glm().
fit_by <- function(f, call, where) {
  call[[1L]] <- f
  fit <- eval(call, where)
  fit$call[[1L]] <- quote(cl_glm)
  fit
}

# `names`: of arguments that a fit does not have.
refuse_fit_arguments <- function(names) {
  if (length(names) == 0L) return(invisible())
  name <- if (nzchar(names[1L])) names[1L] else "..."
  sampling <- setdiff(names(formals(cl_sample)), c("log_density", "method", "progress"))
  hint <- if (name %in% sampling) {
    sprintf("sampling takes it by method = \"mcmc\", control = list(%s = )", name)
  } else {
    switch(name, x = "the predictors are model.matrix(fit)", y = "the response is fit$y",
           qr = , singular.ok = "linearly dependent columns get the coefficient NA",
           link = "write the family as family = binomial(\"probit\")",
           intercept = "write a formula without intercept as y ~ 0 + x",
           epsilon = "write control = list(tolerance = )",
           maxit = , tolerance = sprintf("write control = list(%s = )", name),
           trace = "write progress = TRUE", REML = "cl_glmm() has method = \"reml\"",
           dispersion = "summary() estimates it")
  }
  abort_argument(name, paste0(sprintf("unused argument '%s'", name),
                              if (!is.null(hint)) paste0(": ", hint)))
}

# Asks for a family where the response does not suit the default one.
name_family <- function(y, trials) {
  y <- plain_numbers(y)
  if (!is.numeric(y) || is.matrix(y) || !is.null(trials) || all(y >= 0 & y <= 1, na.rm = TRUE)) {
    return(invisible())
  }
  abort_argument("family", paste(
    "the response is neither 0 and 1 nor proportions: name its family, as family = \"normal_id\"",
    "(numbers) or \"poisson_log\" (counts)"))
}

# list(search, sampling): the entries of 'control'.
glm_control <- function(control, method) {
  if (!is.list(control) || (length(control) > 0L && is.null(names(control)))) {
    abort_argument("control", "'control' must be a named list")
  }
  search <- list(maxit = 100, tolerance = 1e-8)
  if (length(control) == 0L) return(list(search = search, sampling = list()))
  given <- intersect(names(control), names(search))
  search[given] <- control[given]
  search$maxit <- check_count(search$maxit, "maxit", 0)
  search$tolerance <- check_number(search$tolerance, "tolerance", 0)
  sampling <- control[setdiff(names(control), given)]
  known <- if (method == "mcmc") setdiff(names(formals(cl_sample)),
                                         c("log_density", "init", "transform"))
  unknown <- setdiff(names(sampling), known)
  if (length(unknown) > 0L) {
    abort_argument("control", sprintf(paste("'control' has the entry '%s', which is not known for",
                                            "method \"%s\""), unknown[1L], method))
  }
  list(search = search, sampling = sampling)
}
