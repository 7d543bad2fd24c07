# Priors beside a likelihood: sums of functions with gradients.

#' A log density as a sum of terms
#'
#' Adds priors to a likelihood, for [cl_sample()] or an optimiser. A term is an ordinary R
#' expression or an ordinary R function.
#'
#' A formula without a left side, such as `~ -beta^2 / 50`, is an expression of the parameters
#' (variables that are not parameters are taken from where the formula was written). It is computed
#' element by element and summed over the elements; [stats::deriv()] derives its gradient, so that
#' it may use the functions that `deriv()` knows: arithmetic, `exp`, `log`, `sqrt`, `pnorm`,
#' `dnorm`, `lgamma`, trigonometric functions and so on.
#'
#' A function gets those parameters that its arguments name, and gives its value with the attribute
#' `"gradient"`: a list by parameter, or a plain vector if it has one argument. A [cl_likelihood()]
#' gets those parameters that it knows.
#'
#' @param ... terms: one-sided formulas and functions.
#' @return A function of class `"cl_log_posterior"` that takes the parameters as arguments with
#'   names, and gives the sum with the attribute `"gradient"`, a list with these names.
#' @section Errors:
#' `statcl_error_argument` if a term is neither a formula nor a function, if a formula cannot be
#' derived, or if a function's value has no gradient.
#' @seealso [cl_sample()], [cl_check_gradient()]
#' @export
#' @examples
#' likelihood <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' posterior <- cl_log_posterior(likelihood, ~ -alpha^2 / 50, ~ -(beta / 2.5)^2 / 2)
#' posterior(alpha = 0, beta = 1)
#' cl_check_gradient(posterior, alpha = 0.5, beta = -1)
#'
#' cl_sample(posterior, init = list(alpha = 0, beta = 0), chains = 1, warmup = 200, iter = 200,
#'           seed = 1)
cl_log_posterior <- function(...) {
  terms <- list(...)
  if (length(terms) == 0L) abort_argument("...", "there are no terms")
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
    abort_argument("...", sprintf("the formula '%s' must have no left side", deparse1(term)))
  }
}

# For each term a function of the list of parameters that gives list(value, gradient list).
compile_terms <- function(terms, names) {
  if (is.null(names) || !all(nzchar(names))) {
    abort_argument("...", "the parameters must be given as arguments with names")
  }
  lapply(terms, function(term) {
    if (inherits(term, "formula")) formula_term(term, names) else function_term(term, names)
  })
}

formula_term <- function(term, names) {
  used <- intersect(all.vars(term), names)
  if (length(used) == 0L) {
    abort_argument("...", sprintf("the formula '%s' has none of the parameters %s", deparse1(term),
                                  paste(names, collapse = ", ")))
  }
  f <- tryCatch(stats::deriv(term, used, function.arg = used), error = function(e) {
    abort_argument("...", sprintf("the formula '%s' cannot be derived: %s", deparse1(term),
                                  conditionMessage(e)))
  })
  environment(f) <- environment(term)
  if (length(used) == 1L) {
    return(function(parameters) {
      parameter <- parameters[[used]]
      value <- f(parameter)
      slope <- attr(value, "gradient")
      part <- list(if (length(slope) == length(parameter)) {
        dim(slope) <- dim(parameter)
        slope
      } else {
        fold(as.vector(slope), parameter, term)
      })
      names(part) <- used
      list(sum(value), part)
    })
  }
  function(parameters) {
    sizes <- lengths(parameters[used])
    if (any(max(sizes) %% sizes != 0L)) {
      abort_argument("...", sprintf("the parameters in '%s' differ in length", deparse1(term)))
    }
    value <- do.call(f, parameters[used], quote = TRUE)
    slope <- attr(value, "gradient")
    part <- lapply(seq_along(used), function(k) fold(slope[, k], parameters[[used[k]]], term))
    names(part) <- used
    list(sum(value), part)
  }
}

# Sums derivatives of elements into the shape of a parameter that was recycled.
fold <- function(slope, parameter, term) {
  n <- length(parameter)
  if (length(slope) != n) {
    if (n == 0L || length(slope) %% n != 0L) {
      abort_argument("...", sprintf("the parameters in '%s' differ in length", deparse1(term)))
    }
    slope <- if (n == 1L) sum(slope) else rowSums(matrix(slope, n))
  }
  if (!is.null(dim(parameter))) dim(slope) <- dim(parameter)
  slope
}

function_term <- function(term, names) {
  is_likelihood <- inherits(term, "cl_likelihood")
  known <- names(formals(term))
  used <- if ("..." %in% known && !is_likelihood) names else intersect(names, known)
  if (length(used) == 0L) {
    abort_argument("...", sprintf("a function has none of the parameters %s as argument",
                                  paste(names, collapse = ", ")))
  }
  extra <- if (is_likelihood) list(gradient = used)
  function(parameters) {
    value <- do.call(term, c(parameters[used], extra), quote = TRUE)
    slope <- attr(value, "gradient", exact = TRUE)
    if (!is.list(slope)) {
      if (length(used) != 1L || !is.numeric(slope)) {
        abort_argument("...", paste("the value of a function must have the attribute \"gradient\",",
                                    "a list by parameter"))
      }
      slope <- structure(list(slope), names = used)
    }
    list(as.vector(value), slope[intersect(names(slope), used)])
  }
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
