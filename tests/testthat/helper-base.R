# Comparison of a call's result for a device matrix with base R's for the base matrix.

# The outcome of code: its value with device matrices copied to the host, or the error, and whether
# it warned.
outcome <- function(code) {
  warned <- FALSE
  value <- withCallingHandlers(
    tryCatch(on_base(code), error = function(e) e),
    warning = function(w) {
      warned <<- TRUE
      invokeRestart("muffleWarning")
    })
  list(value = value, warned = warned, failed = inherits(value, "error"))
}

# Evaluates `code` with base matrices and then with the names in `...` as device matrices. Both must
# give the same value, bit for bit unless `tol` is given, and both a warning or neither; if base R
# fails, an error of this package is expected. `less`: a classed error is allowed where base R has a
# value.
expect_as_base <- function(code, ..., tol = NULL, less = FALSE, label = NULL) {
  code <- substitute(code)
  expect_call_as_base(code, list(...), parent.frame(), tol, less, label)
}

expect_call_as_base <- function(code, matrices, home, tol = NULL, less = FALSE, label = NULL) {
  if (is.null(label)) label <- paste(deparse(code), collapse = " ")
  base <- outcome(eval(code, matrices, home))
  own <- outcome(eval(code, lapply(matrices, as_cl), home))
  expect_same_outcome(own, base, label, tol, less)
}

# Compares two outcomes: values and warnings, or that both are errors, with `own` an error of this
# package.
expect_same_outcome <- function(own, base, label, tol = NULL, less = FALSE) {
  say <- function(x) {
    if (x$failed) return(paste("the error", sQuote(conditionMessage(x$value))))
    paste(c(deparse(x$value), if (x$warned) "(with a warning)"), collapse = " ")
  }
  classed <- own$failed && inherits(own$value, "statcl_error")
  same <- if (base$failed) {
    classed
  } else if (own$failed) {
    less && classed
  } else {
    own$warned == base$warned && same_values(own$value, base$value, tol)
  }
  testthat::expect(same, sprintf("%s gives %s, in base R %s", paste(label, collapse = " "),
                                 say(own), say(base)))
  invisible(own$value)
}

# NA and NaN count as equal, and so do empty dimnames and none.
same_values <- function(x, y, tol = NULL) {
  plain <- function(v) {
    if (is.numeric(v)) {
      storage.mode(v) <- "double"
      v[is.na(v)] <- NA
    }
    names <- dimnames(v)
    if (!is.null(names) && all(vapply(names, is.null, NA))) dimnames(v) <- NULL
    v
  }
  if (is.null(tol)) return(identical(plain(x), plain(y)))
  isTRUE(all.equal(plain(x), plain(y), tolerance = tol))
}

# Evaluates the code with these functions of the package, a named list, in the place of its own.
with_functions <- function(replacements, code) {
  home <- asNamespace("statcl")
  set <- function(name, value) {
    unlockBinding(name, home)
    assign(name, value, envir = home)
    lockBinding(name, home)
  }
  old <- mget(names(replacements), envir = home)
  on.exit(Map(set, names(old), old))
  Map(set, names(replacements), replacements)
  code
}
