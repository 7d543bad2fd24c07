# Expectations for this package.

# Equal shape, NaN and NA at the same indices, and the largest difference within `tol` times the
# largest size among the finite values of `expected`, or times `scale`. Device matrices are copied
# to the host.
expect_close <- function(object, expected, tol = 1e-12, scale = NULL) {
  label <- deparse(substitute(object), nlines = 1L)
  object <- on_base(object)
  expected <- on_base(expected)
  same_shape <- identical(dim(object), dim(expected)) && length(object) == length(expected)
  testthat::expect(same_shape, sprintf("%s has shape %s, not %s", label, shape(object),
                                       shape(expected)))
  if (!same_shape || length(expected) == 0L) return(invisible(object))
  object <- as.double(object)
  expected <- as.double(expected)
  special <- !is.finite(expected) | !is.finite(object)
  if (is.null(scale)) scale <- max(abs(expected[is.finite(expected)]), 0)
  error <- max(abs(object - expected)[!special], 0)
  testthat::expect(
    identical(is.nan(object), is.nan(expected)) &&
      identical(object[special & !is.nan(expected)], expected[special & !is.nan(expected)]),
    sprintf("%s has NaN or infinite values at other indices", label))
  testthat::expect(error <= tol * scale,
                   sprintf("%s is off by %.3g, more than %.3g (%.3g times %.3g)", label, error,
                           tol * scale, tol, scale))
  invisible(object)
}

on_base <- function(x) {
  if (methods::is(x, "clMatrix")) return(as.matrix(x))
  if (methods::is(x, "clArray")) as.array(x) else x
}

shape <- function(x) paste(if (is.null(dim(x))) length(x) else dim(x), collapse = " x ")

# Expects an error of class statcl_error_<what> whose fields have the values given as further
# arguments, and whose message has the text `says`, or matches it as a regular expression. Returns
# the condition. (The core calls the record of an error a fault.)
expect_fault <- function(code, what, ..., says = NULL, info = NULL) {
  class <- paste0("statcl_error_", what)
  condition <- testthat::expect_error(code, class = class, info = info)
  testthat::expect_s3_class(condition, "statcl_error")
  fields <- list(...)
  for (name in names(fields)) {
    testthat::expect_equal(condition[[name]], fields[[name]], info = paste("field", name))
  }
  if (!is.null(says)) {
    message <- conditionMessage(condition)
    testthat::expect(grepl(says, message, fixed = TRUE) || grepl(says, message),
                     sprintf("the message is %s, not %s", sQuote(message), sQuote(says)))
  }
  invisible(condition)
}

# Expects of each call that it refuses the argument of that name.
expect_refused <- function(argument, ..., says = NULL) {
  calls <- as.list(substitute(list(...)))[-1L]
  for (k in seq_along(calls)) {
    expect_fault(...elt(k), "argument", argument = argument, says = says,
                 info = paste(deparse(calls[[k]]), collapse = " "))
  }
}

# Derivatives of f at x by differences of fourth order, with steps h.
slopes_of <- function(f, x, h = 1e-4) {
  h <- rep_len(h, length(x))
  vapply(seq_along(x), function(k) {
    at <- function(by) as.numeric(f(replace(x, k, x[[k]] + by * h[[k]])))
    (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h[[k]])
  }, 0)
}
