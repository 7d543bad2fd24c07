# cl_tmb(): objectives written for RTMB. The objective becomes a cl_gradient() of its parameters
# with the names of R/tmb-names.R; random effects are integrated out in R/laplace-mode.R.

#' Objectives written for RTMB
#'
#' `cl_tmb()` takes an objective written for the package RTMB, a function of a list of parameters
#' that returns a negative log likelihood, and returns functions for optimisers, like `MakeADFun()`
#' of RTMB. RTMB need not be installed. The objective is recorded and compiled by [cl_gradient()].
#'
#' In the objective these names have RTMB's meaning, without being attached: `getAll()`, `OBS()`
#' (see [cl_one_step()]), `REPORT()`, `ADREPORT()`, `AD()`, `ADoverload()` (which is not
#' needed), `x %~% dnorm(mu, sd)`, `dmvnorm(x, mu, Sigma)`, `dgmrf()` (its precision may be sparse,
#' as `kappa^4 * M0 + 2 * kappa^2 * M1 + M2`), `dautoreg()`, `dseparable()` of functions that return
#' one of these three densities of their argument, `dbinom_robust()`, `dnbinom2()`,
#' `dnbinom_robust()`, `dlgamma()`, `unstructured()`, `logspace_add()` and `logspace_sub()`. For
#' everything else see [cl_gradient()].
#'
#' @section Random effects:
#' The parameters named in `random` are integrated out by Laplace's approximation: an inner Newton
#' iteration finds their mode. The Hessian of the random effects is sparse, of any pattern, which is
#' found from the recorded operations: a series of 100,000 states, effects of areas with their
#' neighbours, crossed effects. Its elements and the gradient are exact, by third derivatives, the
#' selected inverse and the implicit function theorem; the pattern of the Cholesky factor is
#' analysed once.
#'
#' A Hessian without zeros takes as long as dense matrices do. Where an operation has no rule for
#' sparse derivatives, such as `chol()` of a matrix that depends on random effects, [cl_scan()] or
#' `prod()`, effects that do not interact form dense blocks of up to 4,000, which are factorized
#' together.
#'
#' @param nll A function of one list with the names of `parameters` (or of one vector if
#'   `parameters` is one) that returns the negative log likelihood.
#' @param parameters The starting values: a named list of numeric vectors, matrices or arrays, or
#'   one numeric vector.
#' @param map A list of factors, by name of a parameter, with the length of that parameter. Elements
#'   with the same level are one parameter, which starts at the mean of their starting values;
#'   elements that are `NA` keep their starting values.
#' @param random Names of the parameters that are random effects.
#' @param ... Only `silent`, which is ignored.
#' @param profile Names of parameters, such as many regression coefficients, that are optimised
#'   together with the random effects, without being integrated out. They are not in `par`.
#' @param x,object,obj A result of `cl_tmb()`.
#' @param par The parameters at which standard errors are computed, as in `obj$par`; by default
#'   those with the lowest value of `obj$fn()` so far.
#' @param select Which rows to return: parameters that are not random, random effects, quantities
#'   passed to `ADREPORT()`, or all.
#' @return `cl_tmb()`: a list of class `"cl_tmb"` with
#'   \describe{
#'     \item{par}{the starting values, a vector; elements of one parameter have the same name}
#'     \item{fn, gr, he}{functions of such a vector: the value, the gradient as a matrix of one row,
#'       and the Hessian}
#'     \item{report}{a function of such a vector, or of one with random effects too; a list of
#'       the quantities given to `REPORT()`. By default at the last parameters used.}
#'     \item{simulate}{a function of such a vector: as [simulate()][cl_one_step]}
#'     \item{log_density}{the negative of the objective, a [cl_gradient()] of all parameters by
#'       name, random effects included, for [cl_sample()]}
#'     \item{start}{the starting values for [cl_sample()], a list}
#'     \item{env}{an environment with RTMB's names: `parList(x)` gives all parameters in the form of
#'       `parameters`, at `x` or at the last ones; `last.par` and `last.par.best` are vectors of the
#'       parameters with random effects, the last ones and those with the lowest value}
#'   }
#'   `vcov()`: the inverse of the Hessian. `cl_sdreport()`: a list of class `"cl_sdreport"` with the
#'   elements of RTMB's `sdreport()`: `par.fixed`, `cov.fixed`, `par.random`, `diag.cov.random`,
#'   `value`, `sd`, `cov`, `gradient.fixed`, `pdHess` and `unbiased`; standard errors of
#'   `ADREPORT()`ed quantities are by the delta method. Its `summary()` is a matrix with the columns
#'   `Estimate` and `Std. Error`; `as.list()` gives either in the form of `parameters`, or of the
#'   `ADREPORT()`ed quantities. The standard error of an element that `map` keeps is `NA`.
#' @section Errors:
#' `statcl_error_argument` for arguments of the wrong type, for names or lengths that do not match,
#' for more than 4,000 random effects in one dense block, and as for [cl_gradient()].
#' `statcl_error_not_pd`, with the field `order`, if the random effects have no mode because their
#' Hessian is not positive definite: the message names one of them. `fn()` and `gr()` are `NaN`
#' there. `statcl_error_memory`, with the fields `bytes` and `limit`, before a Hessian or its factor
#' is computed that needs more memory than the machine has. `statcl_error_nonfinite` of `gr()`, with
#' the fields `index` and `argument`, if third derivatives at the mode are not finite, as those of
#' `abs(u)^2.5` at 0.
#' @seealso [cl_gradient()], [cl_sample()]
#' @export
#' @examples
#' f <- function(parms) {
#'   getAll(mtcars, parms, warn = FALSE)
#'   mpg <- OBS(mpg)
#'   sd <- exp(logsd)
#'   ADREPORT(sd)
#'   -sum(dnorm(mpg, a + b * wt, sd, log = TRUE))
#' }
#' obj <- cl_tmb(f, list(a = 20, b = 0, logsd = 1))
#' opt <- nlminb(obj$par, obj$fn, obj$gr, obj$he)
#' opt$par
#' cl_sdreport(obj)
#' fit <- cl_sample(obj$log_density, obj$start, chains = 1, warmup = 200, iter = 200, seed = 1)
#'
#' # A random intercept of each group
#' group <- rep(1:5, each = 4)
#' y <- c(1, 3, 2, 2, 5, 4, 6, 5, 2, 1, 1, 3, 7, 8, 6, 7, 3, 4, 4, 2)
#' g <- function(parms) {
#'   getAll(parms)
#'   u %~% dnorm(0, exp(logtau))
#'   y %~% dnorm(mu + u[group], exp(logsd))
#' }
#' obj <- cl_tmb(g, list(mu = 0, u = numeric(5), logtau = 0, logsd = 0), random = "u")
#' opt <- nlminb(obj$par, obj$fn, obj$gr)
#' summary(cl_sdreport(obj))
cl_tmb <- function(nll, parameters, map = list(), random = NULL, ..., profile = NULL) {
  check_function(nll, "nll")
  unknown <- setdiff(names(list(...)), "silent")
  if (length(unknown) > 0L || ...length() > sum(names(list(...)) == "silent")) {
    what <- if (length(unknown) > 0L) sprintf(" '%s'", unknown[1L]) else " without a name"
    abort_argument("...", sprintf("cl_tmb() has no argument%s", what))
  }
  tmb_object(nll, parameters, map, random, tmb_masks, profile = profile)
}

# masks(notes): the replacements of names in the objective. `held`: NULL, or a matrix with
# orthonormal columns C, so that only random effects u with C'u = 0 count (R/laplace-sparse.R).
tmb_object <- function(nll, parameters, map, random, masks, held = NULL, profile = NULL) {
  layout <- tmb_layout(parameters, map)
  random <- check_random(random, layout)
  profile <- check_random(profile, layout, "profile")
  o <- tmb_state(nll, layout, union(random, profile), masks)
  o$profiled <- which(o$names[o$random] %in% profile)
  o$held <- held
  tmb_compile(o)
  if (length(o$random) > 0L && is.null(tmb_sparse(o))) tmb_blocks(o)
  slope <- if (length(o$random) > 0L) laplace_slope else tmb_slope
  hessian <- if (length(o$random) > 0L) laplace_hessian else tmb_hessian
  structure(list(
    par = o$par,
    fn = function(x = o$par) tmb_objective(o, check_tmb_point(o, x)),
    gr = function(x = o$par) matrix(slope(o, check_tmb_point(o, x)), 1L),
    he = function(x = o$par) hessian(o, check_tmb_point(o, x)),
    report = function(x = o$last_z) tmb_reported(o, tmb_full_point(o, x))$report,
    simulate = function(x = o$best_par) tmb_draw(o, check_tmb_point(o, x)),
    log_density = o$log_density, start = o$point$values, env = tmb_env(o)), class = "cl_tmb")
}

# ---- parameters ----------------------------------------------------------------------------------

# list(vector: whether nll takes one vector; parts: for each parameter its value, the indices of its
# free elements, the index of each among the active numbers (NULL: no map), and these numbers).
tmb_layout <- function(parameters, map) {
  vector <- !is.list(parameters)
  if (vector) parameters <- list(p = parameters)
  names <- names(parameters)
  named <- !is.null(names) && all(nzchar(names)) && !anyDuplicated(names)
  if (length(parameters) == 0L || !named) {
    abort_argument("parameters", "'parameters' must be a list with unique names")
  }
  for (name in names) {
    value <- parameters[[name]]
    if (!(is.numeric(value) || is.logical(value)) || is.object(value)) {
      abort_argument("parameters", sprintf("'parameters' must have numbers for '%s', not %s", name,
                                           describe(value)))
    }
  }
  if (!is.list(map) || length(map) > 0L && !all(names(map) %in% names) ||
        length(names(map)) != length(map)) {
    abort_argument("map", "'map' must be a list of factors named by parameters")
  }
  list(vector = vector, parts = Map(tmb_part, names, parameters, map[names]))
}

tmb_part <- function(name, value, map) {
  value <- value + 0
  shape <- dim(value)
  labels <- labels_of(value)
  attributes(value) <- NULL
  dim(value) <- shape
  if (is.null(map)) return(list(value = value, active = value, names = labels))
  map <- as.factor(map)
  if (length(map) != length(value)) {
    abort_argument("map", sprintf("'map' has %d elements for '%s', which has %d", length(map), name,
                                  length(value)))
  }
  map <- droplevels(map)
  free <- which(!is.na(map))
  level <- as.integer(map)[free]
  active <- vapply(seq_len(nlevels(map)), function(k) mean(value[free[level == k]]), 0)
  list(value = value, free = free, level = level, active = active, names = labels)
}

check_random <- function(random, layout, argument = "random") {
  if (is.null(random)) return(character())
  if (!is.character(random) || !all(random %in% names(layout$parts))) {
    abort_argument(argument, sprintf("'%s' must be names of parameters", argument))
  }
  random
}

tmb_state <- function(nll, layout, random, masks) {
  o <- new.env(parent = emptyenv())
  o$masks <- masks
  active <- lapply(layout$parts, `[[`, "active")
  active <- active[lengths(active) > 0L]
  if (length(active) == 0L) abort_argument("map", "'map' must leave some parameters free")
  o$names <- rep(names(active), lengths(active))
  o$start <- as.double(unlist(active, use.names = FALSE))
  o$random <- which(o$names %in% random)
  o$fixed <- which(!o$names %in% random)
  o$par <- stats::setNames(o$start[o$fixed], o$names[o$fixed])
  o$point <- list(values = active, listed = FALSE)
  o$shapes <- lapply(active, shape_key)
  o$inner <- o$start[o$random]
  o$last_z <- o$best_z <- o$start
  o$best <- Inf
  o$best_par <- o$par
  o$notes <- new.env(parent = emptyenv())
  o$layout <- layout
  o$nll <- nll
  o$log_density <- cl_gradient(tmb_function(o, function(value) -one_number(value)))
  o
}

# The objective as a function of the active parameters by name, and of `more`; it returns
# finish(value of nll).
tmb_function <- function(o, finish, more = character()) {
  home <- new.env(parent = environment(tmb_function))
  layout <- o$layout
  notes <- o$notes
  home$.begin <- function() {
    notes$report <- notes$adreport <- list()
  }
  fill <- tmb_parameters
  environment(fill) <- environment() # so that the tracer follows it
  home$.parameters <- function(active) fill(layout, active)
  home$.objective <- o$nll
  home$.finish <- finish
  names <- names(o$point$values)
  list_call <- as.call(c(quote(list), stats::setNames(lapply(names, as.name), names)))
  f <- function() NULL
  formals(f) <- stats::setNames(rep(alist(a = ), length(names) + length(more)), c(names, more))
  body(f) <- bquote({
    .begin()
    .finish(.objective(.parameters(.(list_call))))
  })
  if (length(more) > 0L) body(f)[[3L]][[3L]] <- as.name(more)
  environment(f) <- home
  structure(f, masks = o$masks(notes))
}

# The parameters in their form, from the active ones; `other` in place of elements that are not.
tmb_parameters <- function(layout, active, other = NULL) {
  values <- lapply(names(layout$parts), function(name) {
    part <- layout$parts[[name]]
    value <- part$value
    if (!is.null(other)) value[] <- other
    if (is.null(part$free)) {
      if (length(value) > 0L) value <- active[[name]]
    } else if (length(part$free) > 0L) {
      value[part$free] <- active[[name]][part$level]
    }
    if (is.list(part$names)) dimnames(value) <- part$names
    else if (!is.null(part$names)) names(value) <- part$names
    value
  })
  if (layout$vector) return(values[[1L]])
  stats::setNames(values, names(layout$parts))
}

# Names of the random effects that are integrated out.
integrated <- function(o) unique(o$names[setdiff(o$random, o$random[o$profiled])])

# The elements of RTMB's `env`: the last and the best parameters, random effects included, and all
# parameters in their form.
tmb_env <- function(o) {
  env <- new.env(parent = emptyenv())
  makeActiveBinding("last.par", function() stats::setNames(o$last_z, o$names), env)
  makeActiveBinding("last.par.best", function() stats::setNames(o$best_z, o$names), env)
  env$parList <- function(x = NULL, par = o$last_z) {
    if (!is.null(x)) par[o$fixed] <- check_tmb_point(o, x)
    tmb_parameters(o$layout, split_slope(as.double(par), o$point$values))
  }
  env
}

one_number <- function(value) {
  if ((is_traced(value) || is.numeric(value)) && length(value) == 1L) return(value)
  what <- if (is_traced(value)) sprintf("%d numbers", length(value)) else describe(value)
  statcl_abort("argument", sprintf("'nll' must return one number, not %s", what), argument = "nll",
               traced = TRUE)
}

# Traces the objective; errors name it.
tmb_compile <- function(o) {
  withCallingHandlers(compile_point(environment(o$log_density), o$point),
    statcl_error_argument = function(e) {
      if (!identical(e$argument, "f")) return()
      text <- sub("^'f'", "'nll'", conditionMessage(e))
      text <- sub(", or let retrace = TRUE .*", "", text)
      statcl_abort("argument", text, argument = "nll", traced = TRUE, parent = e$parent)
    })
}

check_tmb_point <- function(o, x, argument = "x") {
  if (!is.numeric(x) || length(x) != length(o$par)) {
    abort_argument(argument, sprintf("'%s' must have %d numbers, as 'par', not %s", argument,
                                     length(o$par), describe(x)))
  }
  as.double(x)
}

# All active parameters, with the random effects at their mode if they are not given.
tmb_full_point <- function(o, x) {
  if (is.numeric(x) && length(x) == length(o$start)) return(as.double(x))
  x <- check_tmb_point(o, x)
  require_mode(o, x, "x")$z
}

# ---- values --------------------------------------------------------------------------------------

tmb_objective <- function(o, x) {
  if (length(o$random) > 0L) {
    value <- laplace_value(o, x)
  } else {
    value <- tmb_run(o, x, FALSE)
    o$last_z <- x
  }
  if (is.finite(value) && value < o$best) {
    o$best <- value
    o$best_par <- stats::setNames(x, names(o$par))
    o$best_z <- o$last_z
  }
  value
}

# The quantities passed to REPORT() and ADREPORT(), as lists of numbers.
tmb_reported <- function(o, z) {
  if (is.null(o$plain)) o$plain <- looking_up(tmb_function(o, function(value) value))
  do.call(o$plain, split_slope(z, o$point$values), quote = TRUE)
  list(report = o$notes$report, adreport = o$notes$adreport)
}

# The joint log density with its start, for cl_sample() and its relatives.
as_density.cl_tmb <- function(x) {
  o <- environment(x$fn)$o
  structure(x$log_density, start = x$start, random = integrated(o))
}

#' @rdname cl_tmb
#' @export
print.cl_tmb <- function(x, ...) {
  o <- environment(x$fn)$o
  sizes <- function(index) {
    counts <- table(factor(o$names[index], unique(o$names[index])))
    paste0(names(counts), ifelse(counts == 1L, "", paste0("[", counts, "]")), collapse = ", ")
  }
  cat(sprintf("<cl_tmb> objective of %d parameters\n", length(o$fixed)))
  writeLines(strwrap(paste("parameters:", sizes(o$fixed)), exdent = 2L))
  if (length(integrated(o)) > 0L) {
    writeLines(strwrap(sprintf("random effects: %s, by Laplace's approximation",
                               sizes(which(o$names %in% integrated(o)))), exdent = 2L))
  }
  if (length(o$profiled) > 0L) {
    writeLines(strwrap(paste("profiled:", sizes(o$random[o$profiled])), exdent = 2L))
  }
  if (is.finite(o$best)) cat(sprintf("lowest value so far: %s\n", format(o$best, digits = 7L)))
  state <- environment(o$log_density)
  if (!is.null(state$where)) cat(engine_line(program_note(state$cost, state$where, state$gain)))
  invisible(x)
}

#' @rdname cl_tmb
#' @export
summary.cl_tmb <- function(object, ...) summary(cl_sdreport(object), ...)

#' @rdname cl_tmb
#' @export
vcov.cl_tmb <- function(object, par = NULL, ...) cl_sdreport(object, par, FALSE)$cov.fixed
