# Functions with a gradient: for optim(), and checked against differences.

#' An objective for optim()
#'
#' Splits a function that gives its value with the attribute `"gradient"` into the pair that
#' [optim()], [nlminb()] and their like want. The last evaluation is kept, so that asking for value
#' and gradient at the same place costs one.
#'
#' @param f a [cl_likelihood()] of a family with no further parameters, whose parameter vector is
#'   then `c(alpha, beta)`, or any function of one numeric vector whose value has an attribute
#'   `"gradient"` of the same length.
#' @param intercept for a [cl_likelihood()]: whether the vector starts with alpha; if not, alpha
#'   is 0.
#' @param maximise `TRUE`: optimisers that minimise shall maximise `f`; value and gradient change
#'   their sign.
#' @return `list(fn =, gr =)`, two functions of one numeric vector.
#' @seealso [cl_likelihood()]
#' @export
#' @examples
#' f <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' objective <- cl_objective(f)
#' optim(c(0, 0), objective$fn, objective$gr, method = "BFGS")$par
cl_objective <- function(f, intercept = TRUE, maximise = TRUE) {
  if (!is.function(f)) abort_argument("f", sprintf("'f' must be a function, not %s", describe(f)))
  check_flag(intercept, "intercept")
  sign <- if (check_flag(maximise, "maximise")) -1 else 1
  evaluate <- vector_function(f, intercept)
  last <- NULL
  at <- NULL
  update <- function(par) {
    if (!identical(par, at)) {
      last <<- evaluate(par)
      at <<- par
    }
  }
  list(fn = function(par) {
         update(par)
         sign * last$value
       },
       gr = function(par) {
         update(par)
         sign * last$gradient
       })
}

# A gradient in the order of the parameters: if it has their names by name, else by position; NULL
# where it has some of their names only.
in_order <- function(gradient, names) {
  mine <- base::names(gradient)
  if (is.null(names) || is.null(mine) || !any(mine %in% names)) return(gradient)
  if (identical(mine, names)) return(gradient)
  if (anyDuplicated(mine) > 0L || anyDuplicated(names) > 0L || !setequal(mine, names)) {
    return(NULL)
  }
  gradient[names]
}

abort_partly_named <- function() {
  abort_argument("f", paste("the names of the gradient of 'f' are some of those of the parameters,",
                            "but not all"))
}

# f as a function of one vector that gives list(value, gradient).
vector_function <- function(f, intercept) {
  if (!inherits(f, "cl_likelihood")) {
    return(function(par) {
      result <- f(par)
      gradient <- in_order(attr(result, "gradient"), names(par))
      if (is.null(gradient) && !is.null(attr(result, "gradient"))) abort_partly_named()
      list(value = as.vector(result), gradient = gradient)
    })
  }
  family <- environment(f)$family
  if (family %in% c(names(own_parameter), "categorical_logit")) {
    abort_argument("f", sprintf(paste("the family %s has more parameters than one vector tells:",
                                      "write a function of your vector"), family))
  }
  if (!intercept) {
    return(function(par) {
      result <- f(0, par, gradient = "beta")
      list(value = as.vector(result), gradient = attr(result, "gradient")$beta)
    })
  }
  function(par) {
    result <- f(par[1L], par[-1L])
    list(value = as.vector(result), gradient = unlist(attr(result, "gradient"), use.names = FALSE))
  }
}

#' Check a gradient against differences
#'
#' Calls `f` at a point, and on both sides of it along each coordinate, and compares the gradient
#' that `f` gives with central differences. With the default step a right gradient agrees to about
#' ten digits where `f` is smooth and not much larger than its changes.
#'
#' @param f a function whose value is one number with the attribute `"gradient"`: a list with names
#'   of arguments of `f`, as [cl_likelihood()] gives it, or a vector: the gradient by the first
#'   argument.
#' @param ... the point: the arguments of `f`, by name where the gradient is a list.
#' @param step step of the differences, relative to the size of a coordinate and at least this.
#' @return A data frame of class `"cl_gradient_check"` with one row a coordinate: `argument`,
#'   `index`, `gradient` (what `f` gives), `difference` (the central difference) and `error`, their
#'   distance relative to the largest entry of that argument's gradient, or to 1 if that is smaller.
#'   `print()` shows the worst rows.
#' @export
#' @examples
#' f <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' cl_check_gradient(f, alpha = 0.3, beta = -2)
#'
#' g <- function(v) structure(sum(v^3), gradient = 3 * v^2)
#' max(cl_check_gradient(g, c(1, 2, 3))$error) < 1e-8
cl_check_gradient <- function(f, ..., step = .Machine$double.eps^(1 / 3)) {
  if (!is.function(f)) abort_argument("f", sprintf("'f' must be a function, not %s", describe(f)))
  step <- check_number(step, "step", lower = 0)
  point <- lapply(list(...), on_host_memory)
  if (length(point) == 0L) abort_argument("...", "the point at which to check is missing")
  gradient <- attr(do.call(f, point), "gradient")
  if (is.null(gradient)) abort_argument("f", "the value of 'f' has no attribute \"gradient\"")
  if (!is.list(gradient)) {
    first <- if (is.null(names(point)) || !nzchar(names(point)[1L])) "1" else names(point)[1L]
    gradient <- structure(list(gradient), names = first)
  }
  names(point) <- point_names(point)
  checked <- intersect(names(gradient), names(point))
  if (length(checked) == 0L) {
    abort_argument("...", "no argument given is among the names of the gradient")
  }
  rows <- lapply(checked, function(name) {
    check_argument_gradient(f, point, name, on_host_memory(gradient[[name]]), step)
  })
  structure(do.call(rbind, rows), class = c("cl_gradient_check", "data.frame"))
}

# Names of the arguments given; those without one are called by their place.
point_names <- function(point) {
  given <- names(point)
  if (is.null(given)) given <- rep("", length(point))
  ifelse(nzchar(given), given, as.character(seq_along(point)))
}

check_argument_gradient <- function(f, point, name, gradient, step) {
  x <- point[[name]]
  if (length(gradient) != length(x)) {
    abort_argument("f", sprintf("the gradient by '%s' has length %d, the argument %d", name,
                                length(gradient), length(x)))
  }
  value_at <- function(i, to) {
    point[[name]][i] <- to
    unnamed <- grepl("^[0-9]+$", names(point))
    names(point)[unnamed] <- ""
    as.vector(do.call(f, point))
  }
  difference <- vapply(seq_along(x), function(i) {
    up <- x[i] + step * max(1, abs(x[i]))
    down <- x[i] - step * max(1, abs(x[i]))
    (value_at(i, up) - value_at(i, down)) / (up - down)
  }, 0)
  gradient <- in_order(gradient, names(x))
  if (is.null(gradient)) abort_partly_named()
  gradient <- as.vector(gradient)
  scale <- max(1, abs(gradient), abs(difference))
  data.frame(argument = rep(name, length(x)), index = seq_along(x), gradient = gradient,
             difference = difference, error = abs(gradient - difference) / scale,
             stringsAsFactors = FALSE)
}

#' @export
print.cl_gradient_check <- function(x, rows = 6L, ...) {
  cat(sprintf("gradient against central differences: %d coordinates, largest error %.2g\n", nrow(x),
              max(0, x$error)))
  worst <- x[order(-x$error), , drop = FALSE]
  print.data.frame(utils::head(worst, rows), row.names = FALSE, digits = 6)
  if (nrow(x) > rows) cat(sprintf("... and %d more with smaller errors\n", nrow(x) - rows))
  invisible(x)
}
