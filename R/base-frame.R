# Model frames of formulas: no argument is evaluated twice, and errors of stats::model.frame() have
# a class of this package.

# Evaluates `call`, a call of stats::model.frame() made by match.call(), where the user called.
# `data` has been evaluated; further evaluated arguments replace their expressions.
eval_frame <- function(call, data, where, ...) {
  home <- new.env(parent = where)
  home$`data given` <- data
  if (!is.null(call$data)) call$data <- as.name("data given")
  done <- Filter(Negate(is.null), list(...))
  for (name in names(done)) call[[name]] <- done[[name]]
  call[[1L]] <- quote(stats::model.frame)
  frame <- classed(eval(call, home), "formula")
  for (k in c(attr(attr(frame, "terms"), "offset"), which(names(frame) == "(offset)"))) {
    if (!is.numeric(frame[[k]]) && !is.logical(frame[[k]])) {
      abort_argument("offset", "'offset' must be numeric")
    }
  }
  frame
}

# list(frame, x): the model frame and matrix, as stats::model.frame() and stats::model.matrix() give
# them, of terms that are columns of a data frame with numbers only, none missing; the two functions
# take longer than many fits. NULL for other terms.
plain_design <- function(terms, data) {
  variables <- attr(terms, "variables")
  names <- as.character(variables)[-1L]
  plain <- is.data.frame(data) && is.null(attr(data, "na.action")) && all(names %in% names(data)) &&
    all(vapply(as.list(variables)[-1L], is.symbol, NA)) &&
    identical(as.character(attr(terms, "term.labels")), names[-1L])
  if (!plain) return(NULL)
  columns <- unclass(data)[names]
  rows <- .row_names_info(data, 2L)
  usable <- vapply(columns, function(v) is.numeric(v) && is.null(attributes(v)) && !anyNA(v) &&
                     length(v) == rows, NA)
  one <- attr(terms, "intercept")
  ones <- if (length(columns) > 1L) 1 else rep(1, rows) # cbind() repeats a number
  parts <- c(if (one > 0L) list(`(Intercept)` = ones), columns[-1L])
  if (rows == 0L || !all(usable) || length(parts) == 0L) return(NULL)
  x <- do.call(base::cbind, parts)
  storage.mode(x) <- "double"
  dimnames(x) <- list(as.character(attr(data, "row.names")), names(parts))
  attr(x, "assign") <- seq_along(parts) - one
  attr(terms, "predvars") <- variables
  attr(terms, "dataClasses") <- stats::setNames(rep("numeric", length(names)), names)
  list(x = x, frame = structure(columns, terms = terms, row.names = .row_names_info(data, 0L),
                                class = "data.frame"))
}

# The value of `code`. Errors of other packages become errors of this package that name the
# argument, with the original in `parent`.
classed <- function(code, argument, call = user_call()) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "statcl_error")) stop(e)
    statcl_abort("argument", paste0("'", argument, "': ", conditionMessage(e)),
                 argument = argument, parent = e, call = call)
  })
}

dropped_rows <- function(x) {
  count <- length(x$na.action)
  if (count == 0L) "" else sprintf(" (%d dropped: missing values)", count)
}

# A data frame of inputs without formula.
check_columns_numeric <- function(x, name) {
  if (!is.data.frame(x)) return(invisible())
  other <- names(x)[!vapply(x, is.numeric, NA)]
  if (length(other) > 0L) {
    abort_argument(name, sprintf(paste("column '%s' of '%s' is not numeric: use a formula, which",
                                       "turns factors into indicator columns"), other[1L], name))
  }
}
