# Functions with a gradient: for optim(), and checked against differences.

#' Objective and gradient for optim()
#'
#' Splits a function that returns its value with the attribute `"gradient"` into the two functions
#' that [optim()], [nlminb()] and similar optimisers need. The last evaluation is cached, so that
#' value and gradient at the same point take one evaluation.
#'
#' @param f A [cl_likelihood()], whose parameter vector is then `c(alpha, beta)` with `sigma` or
#'   `phi` as the last element, for `ordered_logistic` `c(beta, cuts)`, and for `categorical_logit`
#'   `c(alpha, beta)` with the C alphas first; or any function of one numeric vector whose value has
#'   an attribute `"gradient"` of the same length; or, with `init`, a [cl_log_posterior()], a
#'   [cl_gradient()] or another function of several parameters whose gradient is a list with their
#'   names.
#' @param intercept For a [cl_likelihood()]: whether the vector starts with alpha; otherwise alpha
#'   is 0.
#' @param maximise If `TRUE`, value and gradient are negated, so that optimisers that minimise
#'   maximise `f`.
#' @param init A named list of parameters, such as `list(alpha = 0, beta = numeric(10))`, as for
#'   [cl_sample()]: it determines how the vector is split into arguments of `f`.
#' @return `list(fn =, gr =)`, two functions of one numeric vector; with `init` also `par`, which is
#'   `init` as such a vector.
#' @section Errors:
#' `statcl_error_argument` if `f` is not a function or needs `init`; from `fn` and `gr`, if the
#' vector has another length than the parameters, or the value of `f` is not a single number with a
#' gradient of the correct length. The value of a likelihood is -Inf (negated: Inf), not an error,
#' where `sigma` or `phi` is not positive or cuts do not increase.
#' @seealso [cl_likelihood()]
#' @export
#' @examples
#' f <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' objective <- cl_objective(f)
#' optim(c(0, 0), objective$fn, objective$gr, method = "BFGS")$par
#'
#' posterior <- cl_log_posterior(f, ~ dnorm(beta, 0, 1, log = TRUE))
#' objective <- cl_objective(posterior, init = list(alpha = 0, beta = 0))
#' optim(objective$par, objective$fn, objective$gr, method = "BFGS")$par
cl_objective <- function(f, intercept = TRUE, maximise = TRUE, init = NULL) {
  check_function(f, "f")
  check_flag(intercept, "intercept")
  sign <- if (check_flag(maximise, "maximise")) -1 else 1
  layout <- if (!is.null(init)) objective_layout(init)
  evaluate <- vector_function(f, intercept, layout)
  last <- NULL
  at <- NULL
  update <- function(par) {
    if (!identical(par, at)) {
      last <<- evaluate(par)
      at <<- par
    }
  }
  pair <- list(fn = function(par) {
                 update(par)
                 sign * last$value
               },
               gr = function(par) {
                 update(par)
                 sign * last$gradient
               })
  if (is.null(layout)) return(pair)
  c(list(par = stats::setNames(as.double(unlist(init, use.names = FALSE)), layout$names)), pair)
}

objective_layout <- function(init) {
  check_start(init)
  if (!is.list(init)) abort_argument("init", "'init' must be a named list of parameters")
  parameter_layout(init, NULL)
}

# The gradient in the order of the parameters: matched by name if it has their names, else by
# position; NULL if it has only some of the names.
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
  abort_argument("f", "the gradient of 'f' names some of the parameters, but not all of them")
}

# f as a function of one vector that gives list(value, gradient).
vector_function <- function(f, intercept, layout) {
  if (!is.null(layout)) return(list_function(f, layout))
  if (inherits(f, "cl_log_posterior")) {
    abort_argument("init", paste("'init' must be a named list for a cl_log_posterior(), such as",
                                 "list(alpha = 0, beta = c(0, 0))"))
  }
  if (!inherits(f, "cl_likelihood")) {
    return(function(par) {
      result <- f(par)
      gradient <- own_slope(f, attr(result, "gradient", exact = TRUE))
      if (is.list(gradient)) {
        abort_argument("init", paste("the gradient of 'f' is a list by parameter: name these",
                                     "parameters in 'init'"))
      }
      named <- in_order(gradient, names(par))
      if (is.null(named) && !is.null(gradient)) abort_partly_named()
      checked_pair(result, named, length(par))
    })
  }
  likelihood_function(f, intercept)
}

# A likelihood as a function of c(alpha, beta, auxiliary parameter), -Inf where these are invalid.
likelihood_function <- function(f, intercept) {
  family <- environment(f)$family
  k <- ncol(environment(f)$x)
  categorical <- is_categorical(family)
  aux <- aux_parameter(family)
  one <- aux %in% c("sigma", "phi")
  intercept <- intercept && !aux %in% "cuts"
  function(par) {
    classes <- if (categorical) length(par) %/% (k + intercept) else 1L
    n_alpha <- intercept * classes
    beta <- n_alpha + seq_len(k * classes)
    rest <- length(par) - n_alpha - k * classes
    if (rest < 0 || (!aux %in% "cuts" && rest != one)) {
      abort_argument("par", sprintf("'par' has length %d, but the parameters of %s are %s",
                                    length(par), family, parameters_text(k, intercept, aux,
                                                                         categorical)))
    }
    last <- par[length(par) - rest + seq_len(rest)]
    if (isTRUE(any(if (one) last <= 0 else diff(last) <= 0))) {
      return(list(value = -Inf, gradient = rep(NaN, length(par))))
    }
    at <- list(if (intercept) par[seq_len(n_alpha)] else 0,
               if (categorical) matrix(par[beta], k) else par[beta],
               gradient = c(if (intercept) "alpha", "beta", if (!is.na(aux)) aux))
    if (!is.na(aux)) at[[aux]] <- last
    result <- do.call(f, at)
    list(value = as.vector(result), gradient = unlist(attr(result, "gradient"), use.names = FALSE))
  }
}

parameters_text <- function(k, intercept, aux, categorical) {
  each <- if (categorical) " for each class" else ""
  parts <- c(if (intercept) paste0("alpha", each),
             if (k > 0L) sprintf("%d coefficient%s%s", k, if (k == 1L) "" else "s", each),
             if (!is.na(aux)) aux)
  paste(parts, collapse = ", ")
}

list_function <- function(f, layout) {
  call_density <- density_caller(f, layout)
  function(par) {
    if (length(par) != layout$n) {
      abort_argument("par", sprintf("'par' has length %d, but 'init' has %d values", length(par),
                                    layout$n))
    }
    answer <- tryCatch(call_density(as.vector(par)), statcl_error_density = function(e) {
      abort_argument("f", sub("'log_density'", "'f'", conditionMessage(e), fixed = TRUE))
    })
    checked_pair(answer[[1L]], answer[[2L]], layout$n)
  }
}

checked_pair <- function(value, gradient, n) {
  if (!is.numeric(value) || length(value) != 1L) {
    abort_argument("f", sprintf("'f' must return one number, not %s", describe(as.vector(value))))
  }
  if (!is.numeric(gradient) || length(gradient) != n) {
    abort_argument("f", sprintf(paste("the value of 'f' must have the attribute \"gradient\", a",
                                      "numeric vector of length %d, not %s"),
                                n, describe(gradient)))
  }
  list(value = as.vector(value), gradient = as.vector(gradient))
}

#' Check a gradient against finite differences
#'
#' Calls `f` at a point and on both sides of it along each coordinate, and compares the gradient
#' that `f` returns with central differences. With the default step a correct gradient agrees to
#' about ten digits if `f` is smooth and its values are not much larger than their changes.
#'
#' @param f A function whose value is a single number with the attribute `"gradient"`: a list with
#'   names of arguments of `f`, as from [cl_likelihood()] and [cl_gradient()], or a vector, the
#'   gradient with respect to the first argument.
#' @param ... The point: the arguments of `f`, named if the gradient is a list.
#' @param step Step of the differences, relative to the absolute value of a coordinate, and the
#'   minimum step.
#' @return A data frame of class `"cl_gradient_check"` with one row for each coordinate and columns
#'   * `argument`, `index`: the coordinate,
#'   * `gradient`: the value from `f`,
#'   * `difference`: the central difference,
#'   * `error`: their absolute difference, relative to the largest element of that argument's
#'     gradient, or to 1 if that is smaller,
#'   * `ok`: `TRUE` if they agree to 1e-6 of the derivative or to rounding error, with this or a
#'     smaller step; `FALSE` if differences with several steps agree with each other but not with
#'     the gradient; `NA` if differences are inconclusive: `f` is infinite near the point, too
#'     noisy, or not smooth there.
#'
#'   `all(check$ok)` is the overall verdict. `print()` shows it with the worst rows.
#' @section Errors:
#' `statcl_error_argument` if `f` is not a function, or its value is not a single number with a
#' gradient of the correct length.
#' @export
#' @examples
#' f <- cl_likelihood("bernoulli_logit", mtcars$am, scale(mtcars$wt))
#' cl_check_gradient(f, alpha = 0.3, beta = -2)
#'
#' g <- function(v) structure(sum(v^3), gradient = 3 * v^2)
#' all(cl_check_gradient(g, c(1, 2, 3))$ok)
#'
#' wrong <- function(v) structure(sum(v^3), gradient = 2 * v^2)
#' cl_check_gradient(wrong, c(1, 2, 3))
cl_check_gradient <- function(f, ..., step = .Machine$double.eps^(1 / 3)) {
  check_function(f, "f")
  step <- check_number(step, "step", lower = 0)
  point <- lapply(list(...), on_host)
  if (inherits(f, "cl_gradient")) point <- gradient_point(f, point)
  if (length(point) == 0L) {
    abort_argument("...", "supply the arguments of 'f' at which to check its gradient")
  }
  here <- do.call(f, point, quote = TRUE)
  gradient <- attr(here, "gradient", exact = TRUE)
  if (!is.numeric(here) || length(here) != 1L) {
    abort_argument("f", sprintf("'f' must return one number, not %s", describe(as.vector(here))))
  }
  here <- as.vector(here)
  if (is.null(gradient)) abort_argument("f", "the value of 'f' has no attribute \"gradient\"")
  if (!is.list(gradient)) {
    first <- if (is.null(names(point)) || !nzchar(names(point)[1L])) "1" else names(point)[1L]
    gradient <- structure(list(gradient), names = first)
  }
  names(point) <- point_names(point)
  checked <- intersect(names(gradient), names(point))
  if (length(checked) == 0L) {
    abort_argument("...", "the gradient has none of the arguments among its names")
  }
  rows <- lapply(checked, function(name) {
    check_argument_gradient(f, point, name, on_host(gradient[[name]]), here, step)
  })
  structure(do.call(rbind, rows), class = c("cl_gradient_check", "data.frame"))
}

# The arguments of a cl_gradient() by name; the elements of a list are parameters.
gradient_point <- function(f, point) {
  if (length(point) == 1L && is.list(point[[1L]])) return(lapply(point[[1L]], on_host))
  free <- setdiff(environment(f)$names, names(point))
  unnamed <- which(!nzchar(if (is.null(names(point))) rep("", length(point)) else names(point)))
  if (length(unnamed) <= length(free)) names(point)[unnamed] <- free[seq_along(unnamed)]
  point
}

# Names of the arguments; those without a name are named by position.
point_names <- function(point) {
  given <- names(point)
  if (is.null(given)) given <- rep("", length(point))
  ifelse(nzchar(given), given, as.character(seq_along(point)))
}

check_argument_gradient <- function(f, point, name, gradient, here, step) {
  x <- point[[name]]
  if (!is.numeric(x) || is.object(x)) {
    abort_argument(name, sprintf("'%s' must be numeric, not %s", name, describe(x)))
  }
  if (!is.numeric(gradient) || length(gradient) != length(x)) {
    abort_argument("f", sprintf(paste("the gradient with respect to '%s' has length %d, but the",
                                      "argument has length %d"), name, length(gradient), length(x)))
  }
  gradient <- in_order(gradient, names(x))
  if (is.null(gradient)) abort_partly_named()
  unnamed <- grepl("^[0-9]+$", names(point))
  gradient <- as.vector(gradient)
  found <- lapply(seq_along(x), function(i) {
    scale <- max(1, abs(x[i]))
    slope_verdict(function(t) {
      to <- x[i] + t * scale
      point[[name]][i] <- to
      names(point)[unnamed] <- ""
      c(as.vector(do.call(f, point, quote = TRUE)), (to - x[i]) / scale)
    }, gradient[i] * scale, here, step * c(1, 0.1, 0.01, 10), 1e-6, scale)
  })
  difference <- vapply(found, `[[`, 0, "first")
  scale <- max(1, abs(gradient), abs(difference), na.rm = TRUE)
  data.frame(argument = rep(name, length(x)), index = seq_along(x), gradient = gradient,
             difference = difference, error = abs(gradient - difference) / scale,
             ok = vapply(found, `[[`, NA, "ok"), stringsAsFactors = FALSE)
}

# Whether `slope` is the derivative at 0 of a function whose value there is `here`. `along`:
# function(t) giving c(value, t after rounding). `ok`: TRUE if the central difference with one of
# the steps agrees within the tolerance or rounding error; FALSE if differences with two steps agree
# with each other but not with it; NA if the differences are inconclusive. `first` is the difference
# with the first step, `difference` that with the deciding step; both are with respect to `unit`
# times t.
slope_verdict <- function(along, slope, here, steps, tolerance, unit = 1) {
  first <- previous <- difference <- NA_real_
  for (k in seq_along(steps)) {
    up <- along(steps[k])
    down <- along(-steps[k])
    width <- up[2L] - down[2L]
    difference <- (up[1L] - down[1L]) / width
    if (k == 1L) first <- difference
    if (!is.finite(difference)) next
    off <- abs(difference - slope)
    still <- up[1L] == here && down[1L] == here # no change relative to numbers such as 1
    size <- max(abs(up[1L]), abs(down[1L]), abs(here), if (still) 1)
    rounding <- 200 * .Machine$double.eps * size / width
    if (off <= tolerance * max(abs(slope), abs(difference)) + rounding) {
      return(list(ok = TRUE, first = first / unit, difference = difference / unit))
    }
    bend <- abs(up[1L] - 2 * here + down[1L]) / width # does not shrink with the step at a kink
    change <- abs(difference - previous)
    settled <- change <= 0.1 * abs(difference) + rounding
    apart <- settled && off > 10 * change + 4 * bend + rounding
    if (isTRUE(apart) && off * width > 20 * noise_of(along, steps[k])) {
      return(list(ok = FALSE, first = first / unit, difference = difference / unit))
    }
    previous <- difference
  }
  list(ok = NA, first = first / unit, difference = difference / unit)
}

# The noise of a function's values around 0, from third differences at points so close that only
# noise remains.
noise_of <- function(along, step) {
  values <- vapply(0:6, function(i) along(step * (1 + 1e-3 * i))[1L], 0)
  if (!all(is.finite(values))) return(Inf)
  sqrt(mean(diff(values, differences = 3L)^2) / 20)
}

#' @export
print.cl_gradient_check <- function(x, rows = 6L, ...) {
  cat(sprintf("gradient against central differences: %d coordinates, largest error %.2g\n", nrow(x),
              max(0, x$error, na.rm = TRUE)))
  if (!is.null(x$ok)) writeLines(strwrap(gradient_verdict(x), exdent = 2L))
  worst <- x[order(-x$error), , drop = FALSE]
  print.data.frame(utils::head(worst, rows), row.names = FALSE, digits = 6)
  if (nrow(x) > rows) cat(sprintf("... and %d more with smaller errors\n", nrow(x) - rows))
  invisible(x)
}

# The verdict in words.
gradient_verdict <- function(x) {
  size <- table(x$argument)
  name <- ifelse(size[x$argument] == 1L, x$argument, sprintf("%s[%d]", x$argument, x$index))
  list_of <- function(at) {
    more <- sum(at) - 5L
    paste0(paste(utils::head(name[at], 5L), collapse = ", "),
           if (more > 0L) sprintf(" and %d more", more))
  }
  unclear <- is.na(x$ok)
  wrong <- !unclear & !x$ok
  if (any(wrong)) return(sprintf("verdict: WRONG by %s", list_of(wrong)))
  if (any(unclear)) {
    return(sprintf(paste("verdict: not clear by %s: infinite, noisy or not smooth there; right by",
                         "all others"), list_of(unclear)))
  }
  "verdict: right"
}
