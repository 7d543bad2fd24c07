# Gradients of formulas: an elementwise expression is compiled to R code for its value and, by
# reverse-mode differentiation, its derivatives.
#
# A step is one call, `.v3 <- dnorm(a, .v1, .v2)`; `.g3` is the derivative of the last value with
# respect to it. Derivatives shorter than the last value are recycled, as R recycles values.
# Expressions without parameters are evaluated in the environment of the formula; steps always use
# the functions of base R and stats.

# For the formula `term` with the parameters `used`: list(run: function of these and of constants,
# giving list(values of the elements, derivatives by parameter, not recycled, or NULL where the
# density is zero, sum), constants: function() giving their list, check: function(sizes) of the
# lengths of parameters and constants, see check_step_sizes()).
formula_program <- function(term, used) {
  s <- new.env(parent = emptyenv())
  s$term <- term
  s$home <- environment(term)
  s$used <- used
  s$steps <- list()    # each list(call, rule, key, arguments, flags)
  s$constants <- list()
  last <- take_expression(s, term[[2L]])
  values <- lapply(seq_along(s$steps), function(i) {
    call("<-", step_name(".v", i), s$steps[[i]]$call)
  })
  back <- go_back(s, last)
  body <- as.call(c(quote(`{`), values, call("<-", quote(.value), last),
                    quote(.sum <- sum(.value)),
                    quote(if (identical(.sum, -Inf)) return(list(.value, NULL, .sum))), back$lines,
                    call("list", quote(.value), as.call(c(quote(list), back$slopes)), quote(.sum))))
  names <- c(used, names(s$constants))
  run <- as.function(c(stats::setNames(rep(list(quote(expr = )), length(names)), names), body),
                     envir = asNamespace("stats"))
  constants <- as.function(list(as.call(c(quote(list), s$constants))), envir = s$home)
  list(run = run, constants = if (length(s$constants) > 0L) constants else function() list(),
       check = function(sizes) check_step_sizes(term, s$steps, sizes))
}

# The length to which all values are recycled before run(), or 0 if this is not needed. A step whose
# lengths are not multiples of each other is an error (base R warns). Lengths 2, 3 and 6 are valid,
# but a product of derivatives could combine 2 and 3.
check_step_sizes <- function(term, steps, sizes) {
  for (i in seq_along(steps)) {
    references <- Filter(is.name, steps[[i]]$arguments)
    of <- sizes[vapply(references, as.character, "")]
    n <- if (length(of) == 0L) 1L else if (min(of) == 0L) 0L else max(of)
    if (n > 0L && any(n %% of != 0L)) {
      abort_argument("...", sprintf("the values in '%s' have different lengths: %s", deparse1(term),
                                    paste(of, collapse = " and ")))
    }
    sizes[[paste0(".v", i)]] <- n
  }
  distinct <- sort(unique(sizes))
  nested <- distinct[1L] == 0L || all(distinct[-1L] %% distinct[-length(distinct)] == 0L)
  if (nested) 0L else max(sizes)
}

step_name <- function(prefix, i) as.name(paste0(prefix, i))

abort_formula <- function(term, ...) {
  abort_argument("...", sprintf("the formula '%s' cannot be differentiated: %s", deparse1(term),
                                sprintf(...)))
}

# ---- forwards ------------------------------------------------------------------------------------

# The reference to the expression in later steps: a parameter, a step, a constant or a number.
take_expression <- function(s, e) {
  if (is.numeric(e) || is.logical(e)) return(e)
  if (!any(all.vars(e) %in% s$used)) return(take_constant(s, e))
  if (is.name(e)) return(e)
  if (identical(e[[1L]], quote(`(`))) return(take_expression(s, e[[2L]]))
  prior <- prior_in(s, e[[1L]])
  if (!is.null(prior)) return(take_prior(s, e, prior))
  name <- known_function(s, e[[1L]])
  rule <- derivative_rules[[name]]
  given <- formula_arguments(s, e, rule)
  key <- rule_key(name, given)
  rule <- derivative_rules[[key]]
  flags <- take_flags(s, given, name)
  references <- given
  for (a in setdiff(names(given), names(flags))) {
    references[[a]] <- take_expression(s, given[[a]])
  }
  references[names(flags)] <- flags
  active <- names(references)[vapply(references, is_active, NA, s = s)]
  unknown <- setdiff(active, names(rule$partials))
  if (length(unknown) > 0L) {
    abort_formula(s$term, "the derivative of %s() with respect to '%s' is not known",
                  name, unknown[1L])
  }
  call <- as.call(c(as.name(name), if (is.primitive(get(name))) unname(references) else references))
  add_step(s, list(call = call, rule = rule, arguments = references, active = active))
}

add_step <- function(s, step) {
  n <- length(s$steps) + 1L
  s$steps[[n]] <- step
  step_name(".v", n)
}

take_constant <- function(s, e) {
  known <- vapply(s$constants, identical, NA, e)
  if (any(known)) return(as.name(names(s$constants)[which(known)[1L]]))
  name <- paste0(".k", length(s$constants) + 1L)
  s$constants[[name]] <- e
  as.name(name)
}

# Whether a reference depends on parameters. Steps always do.
is_active <- function(reference, s) {
  is.name(reference) &&
    (as.character(reference) %in% s$used || startsWith(as.character(reference), ".v"))
}

# The expression of a prior if the function called is one, such as prior_normal(0, 1) or a variable
# that holds it.
prior_in <- function(s, head) {
  if (is.call(head) && any(all.vars(head) %in% s$used)) return(NULL)
  found <- tryCatch(if (is.name(head)) {
    get0(as.character(head), envir = s$home, mode = "function")
  } else {
    eval(head, s$home)
  }, error = function(e) NULL)
  if (inherits(found, "cl_prior")) head
}

# The value of a prior has its derivatives as an attribute, so a prior takes two steps.
take_prior <- function(s, e, prior) {
  if (length(e) != 2L) abort_formula(s$term, "a prior must have exactly one argument")
  inner <- take_expression(s, e[[2L]])
  f <- take_constant(s, prior)
  both <- add_step(s, list(call = as.call(list(f, inner)), arguments = list(x = inner)))
  add_step(s, list(call = call("as.vector", both), arguments = list(x = inner), active = "x",
                   rule = list(kind = "plain", partials = list(
                     x = call("as.vector", call("attr", both, "gradient"))))))
}

# The name of the function that a formula calls, if it is the one of base R or stats.
known_function <- function(s, head) {
  scoped <- is.call(head) && length(head) == 3L && as.character(head[[1L]])[1L] %in% c("::", ":::")
  name <- if (is.name(head)) as.character(head) else if (scoped) as.character(head[[3L]])
  if (is.null(name)) abort_formula(s$term, "'%s' is not the name of a function", deparse1(head))
  found <- if (scoped) {
    tryCatch(eval(head, baseenv()), error = function(e) NULL)
  } else {
    get0(name, envir = s$home, mode = "function")
  }
  if (is.null(found)) abort_formula(s$term, "there is no function '%s'", name)
  if (!name %in% names(derivative_rules)) {
    abort_formula(s$term, paste("the derivative of %s() is not known: write the term as a function",
                                "that returns its gradient"), name)
  }
  redefined <- !identical(found, get(name, envir = asNamespace("stats"))) &&
    !identical(found, get0(name, envir = topenv(), inherits = FALSE)) &&
    !(inherits(found, "standardGeneric") && found@package %in% c("base", "stats"))
  if (redefined) {
    abort_formula(s$term, paste("%s() is not R's own function here: write the term as a function",
                                "that returns its gradient"), name)
  }
  name
}

formula_arguments <- function(s, e, rule) {
  prototype <- as.function(c(rule$arguments, list(NULL)))
  matched <- tryCatch(match.call(prototype, e), error = function(err) {
    abort_formula(s$term, "%s", conditionMessage(err))
  })
  as.list(matched)[-1L]
}

# Some functions have several rules, which depend on the arguments given.
rule_key <- function(name, given) {
  if (name == "-" && is.null(given$e2)) return("- alone")
  for (argument in c("base", "scale", "mu")) {
    key <- paste(name, argument)
    if (argument %in% names(given) && key %in% names(derivative_rules)) return(key)
  }
  name
}

# Arguments that select what is computed; they must be TRUE or FALSE.
flag_arguments <- c("log", "log.p", "lower.tail")

take_flags <- function(s, given, name) {
  if ("ncp" %in% names(given)) {
    abort_formula(s$term, "the derivative of %s() with 'ncp' is not known", name)
  }
  flags <- given[intersect(names(given), flag_arguments)]
  for (argument in names(flags)) {
    flag <- NULL
    if (!any(all.vars(flags[[argument]]) %in% s$used)) {
      flag <- tryCatch(eval(flags[[argument]], s$home), error = function(e) NULL)
    }
    if (!isTRUE(flag) && !isFALSE(flag)) {
      abort_formula(s$term, "'%s' of %s() must be TRUE or FALSE", argument, name)
    }
    flags[[argument]] <- flag
  }
  flags
}

# ---- backwards -----------------------------------------------------------------------------------

# list(lines: assignments of the derivatives by the steps, slopes: expressions by parameter).
go_back <- function(s, last) {
  shares <- list() # by reference: expressions that add up to the derivative by it
  shares[[as.character(last)]] <- list(1)
  lines <- list()
  for (i in rev(seq_along(s$steps))) {
    step <- s$steps[[i]]
    mine <- shares[[as.character(step_name(".v", i))]]
    if (is.null(mine)) next
    g <- add_up(mine)
    if (is.call(g)) {
      lines <- c(lines, call("<-", step_name(".g", i), g))
      g <- step_name(".g", i)
    }
    for (argument in step$active) {
      to <- as.character(step$arguments[[argument]])
      share <- derivative_share(step, argument, step_name(".v", i), g)
      shares[[to]] <- c(shares[[to]], list(share))
    }
  }
  list(lines = lines, slopes = lapply(stats::setNames(s$used, s$used), function(name) {
    add_up(shares[[name]])
  }))
}

add_up <- function(terms) Reduce(function(a, b) call("+", a, b), terms)

# The contribution of `g`, the derivative with respect to the step's value, to the derivative with
# respect to one of its arguments.
derivative_share <- function(step, argument, value, g) {
  rule <- step$rule
  partial <- rule$partials[[argument]]
  of <- rule$arguments
  of[names(step$arguments)] <- step$arguments
  flags <- vapply(flag_arguments, function(f) isTRUE(of[[f]]), NA)
  of[flag_arguments] <- NULL # else substitute() would take log() for one
  # defaults may name other arguments
  of <- lapply(of, function(a) if (is.call(a)) substitute_all(a, of) else a)
  of$value <- value
  of$g <- g
  partial <- substitute_all(partial, of)
  if (rule$kind == "plain") {
    whole <- "g" %in% all.vars(rule$partials[[argument]])
    return(if (whole) partial else times(g, partial))
  }
  if (rule$kind == "density") {
    return(times(g, if (flags[["log"]]) partial else times(value, partial)))
  }
  density <- rule$density
  density$log <- flags[["log.p"]]
  density <- substitute_all(density, of)
  if (flags[["log.p"]]) density <- call("exp", call("-", density, value))
  share <- times(g, times(density, partial))
  if (flags[["lower.tail"]]) share else call("-", share)
}

substitute_all <- function(e, values) simplify(do.call(substitute, list(e, values)))

times <- function(a, b) simplify(call("*", a, b))

# Simplifies an expression: evaluates operations on numbers and removes operations with 0 and 1 that
# have no effect.
simplify <- function(e) {
  if (!is.call(e) || !is.name(e[[1L]])) return(e)
  e[-1L] <- lapply(e[-1L], simplify)
  operator <- as.character(e[[1L]])
  if (operator == "(" && !is.call(e[[2L]])) return(e[[2L]])
  if (!operator %in% c("+", "-", "*", "/", "^")) return(e)
  if (all(vapply(as.list(e)[-1L], is.numeric, NA))) return(eval(e, baseenv()))
  if (length(e) != 3L) return(e)
  is <- function(i, number) is.numeric(e[[i]]) && e[[i]] == number
  if (is(3L, if (operator %in% c("+", "-")) 0 else 1)) return(e[[2L]])
  if (operator == "*" && is(2L, 1)) return(e[[3L]])
  if (operator == "*" && is(2L, -1)) return(call("-", e[[3L]]))
  e
}

# ---- several points at once ----------------------------------------------------------------------

# function(x) giving list(sums, gradient matrix) for points in the columns of x, with one run of the
# program: parameters and constants are repeated to the length of the longest.
formula_batch <- function(term, layout) {
  names <- vapply(layout$arguments, `[[`, "", "name")
  alone <- formula_term(term, names)
  used <- used_parameters(term, names)
  program <- tryCatch(formula_program(term, used), statcl_error_argument = function(e) NULL)
  indices <- lapply(layout$arguments[match(used, names)], `[[`, "index")
  one_by_one <- column_caller(function(x) {
    parts <- lapply(layout$arguments, function(a) as_argument(x[a$index], a))
    answer <- alone(stats::setNames(parts, names))
    slope <- numeric(length(x))
    for (i in seq_along(used)) {
      if (!is.null(answer[[2L]])) slope[indices[[i]]] <- answer[[2L]][[used[i]]]
    }
    list(answer[[1L]], slope)
  })
  if (is.null(program)) return(one_by_one) # compiled by cl_gradient()
  sizes <- stats::setNames(lengths(indices), used)
  plan <- NULL
  function(x) {
    constants <- program$constants()
    if (is.null(plan) || !identical(lengths(constants), plan$of)) {
      plan <<- batch_plan(program, sizes, indices, constants)
    }
    if (is.null(plan$rows)) return(one_by_one(x))
    if (length(constants) > 0L) {
      constants <- lapply(constants, as.vector)
      if (plan$to > 0L) constants <- lapply(constants, rep_len, plan$to)
    }
    n <- plan$n
    k <- ncol(x)
    parameters <- lapply(plan$rows, function(rows) as.vector(x[rows, ]))
    names(parameters) <- used
    answer <- do.call(program$run, c(parameters, constants))
    sums <- .colSums(answer[[1L]], n, k)
    if (is.null(answer[[2L]]) || any(sums == -Inf, na.rm = TRUE)) return(one_by_one(x))
    result <- matrix(0, nrow(x), k)
    for (i in seq_along(used)) {
      slope <- answer[[2L]][[i]]
      if (length(slope) != n * k) slope <- rep_len(slope, n * k)
      size <- length(indices[[i]])
      result[indices[[i]], ] <- if (size == n) {
        slope
      } else if (size == 1L) {
        .colSums(slope, n, k)
      } else {
        apply(matrix(slope, n), 2L, function(column) rowSums(matrix(column, size)))
      }
    }
    list(sums, result)
  }
}

# For each parameter, the rows of a point recycled to a common length n; NULL if a length is 0 or
# does not divide n.
batch_plan <- function(program, sizes, indices, constants) {
  of <- lengths(constants)
  all <- c(sizes, of)
  n <- max(all)
  plan <- list(of = of, n = n, to = program$check(all))
  if (min(all) > 0L && all(n %% all == 0L)) plan$rows <- lapply(indices, rep_len, n)
  plan
}
