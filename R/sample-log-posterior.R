# Sums of log densities with gradients: likelihoods and priors.

#' Log density as a sum of terms
#'
#' Adds priors to a likelihood, for [cl_sample()] or an optimiser. Terms are R formulas and R
#' functions.
#'
#' A formula without a left-hand side, such as `~ dnorm(beta, 0, 5, log = TRUE)`, is an expression
#' of the parameters; other variables are looked up where the formula was written. The expression is
#' evaluated elementwise and summed over the elements. Its gradient is derived symbolically if
#' subexpressions with parameters contain
#' - arithmetic, `exp`, `log` and related functions, `sqrt`, `abs`, trigonometric and hyperbolic
#'   functions and their inverses;
#' - `gamma`, `lgamma`, `digamma`, `trigamma`, `psigamma`, `beta`, `lbeta`, `factorial`,
#'   `lfactorial`;
#' - densities, differentiable with respect to all arguments except counts and `ncp`: `dnorm`,
#'   `dlnorm`, `dcauchy`, `dlogis`, `dt`, `dunif`, `dexp`, `dgamma`, `dchisq`, `dbeta`, `dweibull`,
#'   `dpois`, `dgeom`, `dbinom`, `dnbinom`; write `log = TRUE` for log densities;
#' - distribution functions: `pnorm`, `plogis`, `pcauchy`, `plnorm`, `pexp`, `pweibull`, `punif`
#'   with respect to all arguments, `pgamma` except the shape, `pbeta` and `pt` with respect to the
#'   first argument;
#' - priors such as [prior_normal()]: `~ prior_normal(0, 5)(beta)`.
#'
#' Other formulas are compiled by [cl_gradient()] and may contain everything that functions may
#' contain there: `~ -sum((y - x %*% beta)^2)`, `~ dmvnorm(beta, 0, S, log = TRUE)`, your functions.
#'
#' Subexpressions without parameters may contain anything: `~ dnorm(mean(y), mu, 1, log = TRUE)`.
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

# For each term a function of the list of parameters that gives list(value, gradient list).
compile_terms <- function(terms, names) {
  if (is.null(names) || !all(nzchar(names))) {
    abort_argument("...", "the parameters must be given as named arguments")
  }
  lapply(terms, function(term) {
    if (inherits(term, "formula")) formula_term(term, names) else function_term(term, names)
  })
}

# Names of the parameters in a formula.
used_parameters <- function(term, names) {
  used <- intersect(all.vars(term), names)
  if (length(used) > 0L) return(used)
  abort_argument("...", sprintf("the formula '%s' uses none of the parameters %s", deparse1(term),
                                paste(names, collapse = ", ")))
}

formula_term <- function(term, names) {
  used <- used_parameters(term, names)
  program <- tryCatch(formula_program(term, used), statcl_error_argument = identity)
  if (inherits(program, "condition")) {
    counts <- grepl("with respect to 'x' is not known", conditionMessage(program), fixed = TRUE)
    if (counts) stop(program) # counts are data
    return(compiled_term(term, used, program))
  }
  run <- program$run
  constants <- program$constants
  alone <- length(formals(run)) == 1L
  checked <- NULL
  to <- 0L
  function(parameters) {
    parameters <- parameters[used]
    answer <- if (alone) {
      run(parameters[[1L]])
    } else {
      all <- c(parameters, constants())
      sizes <- lengths(all)
      if (!identical(sizes, checked)) {
        to <<- program$check(sizes)
        checked <<- sizes
      }
      do.call(run, if (to > 0L) lapply(all, rep_len, to) else all, quote = TRUE)
    }
    n <- length(answer[[1L]])
    part <- answer[[2L]] # NULL: density zero
    for (i in seq_along(part)) {
      slope <- part[[i]]
      if (length(slope) != n) slope <- rep_len(slope, n)
      p <- parameters[[i]]
      plain <- length(p) == n && is.null(attributes(slope)) && is.null(dim(p))
      part[[i]] <- if (plain) slope else fold(as.vector(slope), p, term)
    }
    list(answer[[3L]], part)
  }
}

# A term that the rules cannot differentiate is compiled by cl_gradient(); raises `fault` if that
# fails.
compiled_term <- function(term, used, fault) {
  f <- as.function(c(stats::setNames(rep(list(quote(expr = )), length(used)), used),
                     call("sum", term[[2L]])), envir = environment(term))
  model <- cl_gradient(f)
  done <- FALSE
  function(parameters) {
    answer <- tryCatch(do.call(model, parameters[used], quote = TRUE),
                       statcl_error_argument = function(e) if (done) stop(e) else stop(fault))
    done <<- TRUE
    list(as.vector(answer), attr(answer, "gradient"))
  }
}

# Sums derivatives of elements into the shape of a parameter that was recycled.
fold <- function(slope, parameter, term) {
  n <- length(parameter)
  if (length(slope) != n) {
    if (n == 0L || length(slope) %% n != 0L) {
      abort_argument("...", sprintf("the parameters in '%s' have different lengths",
                                    deparse1(term)))
    }
    slope <- if (n == 1L) sum(slope) else rowSums(matrix(slope, n))
  }
  if (!is.null(dim(parameter))) dim(slope) <- dim(parameter)
  slope
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
