# Sums of log densities with gradients: likelihoods and priors.

#' Log density as a sum of terms
#'
#' Adds priors to a likelihood, for [cl_sample()] or an optimiser. Terms are R formulas and R
#' functions.
#'
#' A formula without a left-hand side, such as `~ dnorm(beta, 0, 5, log = TRUE)`, is an expression
#' of the parameters; other variables are looked up where the formula was written. The expression is
#' evaluated and summed over its elements. It is compiled by [cl_gradient()] and may contain
#' everything that functions may contain there: `~ -sum((y - x %*% beta)^2)`, densities with `log =
#' TRUE`, priors such as `prior_normal(0, 5)(beta)`, your functions. Subexpressions without
#' parameters may contain anything: `~ dnorm(mean(y), mu, 1, log = TRUE)`.
#'
#' A function is called with the parameters that its arguments name. It returns a single number with
#' the attribute `"gradient"`: a list by parameter, or a plain vector if the function has one
#' argument. A function of one parameter may also return a value and a derivative for each element,
#' as `function(beta) prior_normal(0, 5)(beta)` does; they are summed. A [cl_likelihood()] is called
#' with the parameters that it has.
#'
#' @param ... Terms: one-sided formulas and functions.
#' @return A function of class `"cl_log_posterior"` that takes the parameters as named arguments and
#'   returns the sum with the attribute `"gradient"`, a list with these names.
#' @section Errors:
#' `statcl_error_argument` if a term is neither a formula nor a function, if a formula cannot be
#' differentiated, or if the value of a function has no gradient, or one of the wrong length.
#' @seealso [cl_sample()], [cl_check_gradient()]
#' @export
#' @examples
#' likelihood <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' posterior <- cl_log_posterior(likelihood, ~ dnorm(alpha, 0, 5, log = TRUE),
#'                               ~ -(beta / 2.5)^2 / 2)
#' posterior(alpha = 0, beta = 1)
#' cl_check_gradient(posterior, alpha = 0.5, beta = -1)
#'
#' cl_sample(posterior, init = list(alpha = 0, beta = 0), chains = 1, warmup = 200, iter = 200,
#'           seed = 1)
cl_log_posterior <- function(...) {
  terms <- list(...)
  if (length(terms) == 0L) abort_argument("...", "supply at least one term")
  for (term in terms) check_term(term)
  compiled <- NULL
  for_names <- NULL
  f <- function(...) {
    parameters <- list(...)
    if (is.null(compiled) || !identical(names(parameters), for_names)) {
      compiled <<- compile_terms(terms, names(parameters))
      for_names <<- names(parameters)
    }
    slope <- lapply(parameters, function(p) p * 0)
    value <- 0
    for (term in compiled) {
      result <- term(parameters)
      value <- value + result[[1L]]
      part <- result[[2L]]
      for (name in names(part)) slope[[name]] <- slope[[name]] + part[[name]]
    }
    attr(value, "gradient") <- slope
    value
  }
  structure(f, class = c("cl_log_posterior", "function"))
}

check_term <- function(term) {
  if (is.function(term)) return(invisible())
  if (!inherits(term, "formula")) {
    abort_argument("...", sprintf("a term must be a formula or a function, not %s", describe(term)))
  }
  if (length(term) != 2L) {
    abort_argument("...", sprintf("the formula '%s' must be one-sided", deparse1(term)))
  }
}

# Functions of the list of parameters that give list(value, gradient list): one for each term, but
# one for all formulas of elementwise functions.
compile_terms <- function(terms, names) {
  if (is.null(names) || !all(nzchar(names))) {
    abort_argument("...", "the parameters must be given as named arguments")
  }
  formulas <- vapply(terms, inherits, NA, "formula")
  parts <- lapply(terms[formulas], formula_part, names)
  own <- vapply(parts, `[[`, NA, "elementwise")
  c(lapply(c(list(parts[own])[any(own)], lapply(parts[!own], list)), formula_term),
    lapply(terms[!formulas], function_term, names))
}

# Names of the parameters in a formula.
used_parameters <- function(term, names) {
  used <- intersect(all.vars(term), names)
  if (length(used) > 0L) return(used)
  abort_argument("...", sprintf("the formula '%s' uses none of the parameters %s", deparse1(term),
                                paste(names, collapse = ", ")))
}

# The sum of the parts of one or more formulas.
formula_term <- function(parts) {
  used <- unique(unlist(lapply(parts, `[[`, "used")))
  current <- formula_model(parts)
  done <- FALSE
  function(parameters) {
    model <- current()
    state <- environment(model)
    given <- parameters[used]
    answer <- run_plain(state, given)
    if (is.null(answer)) {
      answer <- tryCatch(do.call(model, given, quote = TRUE), statcl_error_argument = function(e) {
        if (done) stop(e)
        if (length(parts) == 1L) abort_formula(parts[[1L]]$term, conditionMessage(e))
        for (part in parts) formula_term(list(part))(parameters) # the error of one of them
        stop(e)
      })
      done <<- TRUE
    }
    value <- as.vector(answer)
    list(value, if (!identical(value, -Inf)) attr(answer, "gradient"))
  }
}

abort_formula <- function(term, message) {
  why <- sub("^'f' cannot be traced( at '[^']*')?: ", "", message)
  abort_argument("...", sprintf("the formula '%s' cannot be differentiated: %s", deparse1(term),
                                sub(", or let retrace.*", "", why)))
}

# function(points) for points in columns, as those of batch_caller().
formula_batch <- function(term, layout) {
  names <- vapply(layout$arguments, `[[`, "", "name")
  current <- formula_model(list(formula_part(term, names)))
  model <- call_density <- NULL
  function(x) {
    if (!identical(now <- current(), model)) {
      model <<- now
      call_density <<- gradient_batch(model, layout)
    }
    call_density(x)
  }
}

# function() giving the sum of the parts as a cl_gradient(), for the present values of what they
# use. Elementwise functions alone run on the host.
formula_model <- function(parts) {
  place <- new.env(parent = globalenv())
  calls <- lapply(seq_along(parts), function(k) {
    name <- paste0(".term", k)
    assign(name, parts[[k]]$f, envir = place)
    as.call(lapply(c(name, parts[[k]]$used), as.name))
  })
  used <- unique(unlist(lapply(parts, `[[`, "used")))
  f <- function_of(used, Reduce(function(a, b) call("+", a, b), calls), place)
  model <- NULL
  function() {
    for (part in parts) if (part$renew()) model <<- NULL
    if (is.null(model)) {
      model <<- cl_gradient(f)
      state <- environment(model)
      state$on_host <- parts[[1L]]$elementwise
      state$warned <- used # a term may leave out a parameter
    }
    model
  }
}

function_of <- function(names, body, home) {
  as.function(c(stats::setNames(rep(list(quote(expr = )), length(names)), names), body),
              envir = home)
}

# A formula: list(term, used, f: the sum of its elements as a function of the parameters used, which
# finds the values of subexpressions without parameters as variables; renew: function() that
# evaluates these, TRUE if they have changed; elementwise: whether it calls elementwise functions of
# R only). What other functions take is left to them.
formula_part <- function(term, names) {
  used <- used_parameters(term, names)
  home <- environment(term)
  place <- new.env(parent = home)
  place$nested_lengths <- nested_lengths # by its own name, as it has no replacement
  constants <- list()
  elementwise <- TRUE
  constant <- function(e) {
    known <- vapply(constants, identical, NA, e)
    name <- if (any(known)) names(constants)[known] else paste0(".k", length(constants) + 1L)
    constants[[name]] <<- e
    as.name(name)
  }
  split <- function(e) {
    if (!is.language(e)) return(e)
    if (!any(all.vars(e) %in% used)) return(constant(e))
    if (is.name(e)) return(e)
    if (is_prior(e[[1L]], home, used)) {
      e[[1L]] <- constant(e[[1L]])
    } else if (!is_elementwise(e[[1L]], home)) {
      elementwise <<- FALSE
      return(e)
    }
    e[-1L] <- lapply(as.list(e)[-1L], split)
    e
  }
  f <- function_of(used, call("nested_lengths", call("sum", split(term[[2L]]))), place)
  values <- as.call(c(quote(list), constants))
  last <- NULL
  renew <- function() {
    now <- eval(values, home)
    if (identical(now, last)) return(FALSE)
    last <<- now
    list2env(now, envir = place)
    TRUE
  }
  list(term = term, used = used, f = f, renew = renew, elementwise = elementwise)
}

# The value of `code`; lengths that are not multiples of each other are an error.
nested_lengths <- function(code) {
  withCallingHandlers(code, warning = function(w) {
    if (grepl("longer object length", conditionMessage(w), fixed = TRUE)) {
      trace_stop("values have different lengths")
    }
  })
}

# Whether what a formula calls is a prior, such as prior_normal(0, 1) or a variable that holds one.
is_prior <- function(head, home, used) {
  if (is.call(head) && any(all.vars(head) %in% used)) return(FALSE)
  found <- tryCatch(if (is.name(head)) get0(as.character(head), envir = home, mode = "function")
                    else eval(head, home),
                    error = function(e) NULL)
  inherits(found, "cl_prior")
}

# Whether it is an elementwise function of R.
is_elementwise <- function(head, home) {
  scoped <- is.call(head) && length(head) == 3L && as.character(head[[1L]])[1L] %in% c("::", ":::")
  name <- if (is.name(head)) as.character(head) else if (scoped) as.character(head[[3L]]) else ""
  known <- c("(", "!", "log", "round", "psigamma", "factorial", "lfactorial", "atan2",
             names(operators), device_functions, names(density_table))
  if (!name %in% known) return(FALSE)
  scoped || is_original(get0(name, envir = home, mode = "function", ifnotfound = sum), name)
}

function_term <- function(term, names) {
  is_likelihood <- inherits(term, "cl_likelihood")
  known <- if (inherits(term, "cl_gradient")) gradient_names(term, names)
           else names(formals(term))
  used <- if ("..." %in% known && !is_likelihood) names else intersect(names, known)
  if (length(used) == 0L) {
    abort_argument("...", sprintf("a function term has none of the parameters %s as an argument",
                                  paste(names, collapse = ", ")))
  }
  extra <- if (is_likelihood) list(gradient = used)
  function(parameters) {
    value <- do.call(term, c(parameters[used], extra), quote = TRUE)
    slope <- attr(value, "gradient", exact = TRUE)
    if (!is.list(slope)) {
      if (length(used) != 1L || !is.numeric(slope)) {
        abort_argument("...", paste("the value of a function term must have the attribute",
                                    "\"gradient\", a list named by parameter"))
      }
      slope <- structure(list(slope), names = used)
    }
    value <- one_total(value, slope, parameters)
    slope <- slope[intersect(names(slope), used)]
    wrong <- which(lengths(slope) != lengths(parameters[names(slope)]))
    if (length(wrong) > 0L) {
      name <- names(slope)[wrong[1L]]
      abort_argument("...", sprintf(paste("the gradient of a function term with respect to '%s'",
                                          "has length %d, not %d"),
                                    name, length(slope[[name]]), length(parameters[[name]])))
    }
    list(value, slope)
  }
}

# The parameters of a cl_gradient(): all of them if they are one list.
gradient_names <- function(term, names) {
  own <- environment(term)$names
  if (length(own) == 1L && !own %in% names) "..." else own
}

# The value of a term as one number. Values of the elements of one parameter, as returned by a
# prior_*() function, are summed, each with its own derivative.
one_total <- function(value, slope, parameters) {
  n <- length(value)
  if (is.numeric(value) && n == 1L) return(as.vector(value))
  by_element <- is.numeric(value) && length(slope) == 1L && length(slope[[1L]]) == n &&
    identical(length(parameters[[names(slope)]]), n)
  if (by_element) return(sum(value))
  abort_argument("...", sprintf(paste("the value of a function term must be one number, or one for",
                                      "each element of its only parameter, not %s"),
                                describe(as.vector(value))))
}

#' @export
print.cl_log_posterior <- function(x, ...) {
  cat("<cl_log_posterior> the sum of\n")
  for (term in environment(x)$terms) {
    if (inherits(term, "formula")) {
      cat("  ", deparse1(term), "\n", sep = "")
    } else if (inherits(term, "cl_likelihood")) {
      cat("  ")
      print(term)
    } else {
      cat("  function(", paste(names(formals(term)), collapse = ", "), ")\n", sep = "")
    }
  }
  invisible(x)
}
