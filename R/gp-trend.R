# The mean of a Gaussian process: H b, with b known, estimated or integrated out.
#
# C works with a basis whose columns are orthogonal and of length sqrt(n), H = S R; a constant stays
# as it is. So neither the scale nor the collinearity of the columns of H costs digits.

# list(type, offset (n x outputs or a number: subtracted from y), count (columns of the basis that C
# gets), basis (S, or NULL), root (R), log_det (log |det R|), integrate, names, at (a function of
# points that gives H there), held (known coefficients, or NULL), outputs).
gp_trend <- function(mean, beta, x, outputs) {
  if (is.numeric(mean) && is.null(dim(mean)) && length(mean) == 1L) {
    mean <- check_number(mean, "mean")
    return(list(type = "number", offset = mean, count = 0L, basis = NULL, integrate = FALSE,
                outputs = outputs))
  }
  trend <- trend_basis(mean, x)
  basis <- trend$at(x)
  if (nrow(basis) != nrow(x)) {
    abort_argument("mean", sprintf("the basis of the mean has %d rows, but 'x' has %d", nrow(basis),
                                   nrow(x)))
  }
  bad <- which(!is.finite(basis))
  if (length(bad) > 0L) {
    statcl_abort("nonfinite", "the basis of the mean has missing or infinite values",
                 index = bad[1L], argument = "mean")
  }
  trend$outputs <- outputs
  trend$names <- colnames(basis)
  if (is.numeric(beta)) return(hold_trend(trend, basis, beta))
  trend$integrate <- check_choice(beta, c("profile", "integrate"), "beta") == "integrate"
  factor_trend(trend, basis)
}

trend_basis <- function(mean, x) {
  if (identical(mean, "estimate") || identical(mean, "constant")) {
    return(list(type = "constant", at = function(x) {
      matrix(1, nrow(x), 1L, dimnames = list(NULL, "(Intercept)"))
    }))
  }
  if (identical(mean, "linear")) {
    names <- if (is.null(colnames(x))) paste0("x", seq_len(ncol(x))) else colnames(x)
    return(list(type = "linear", at = function(x) {
      matrix(c(rep(1, nrow(x)), x), nrow(x), dimnames = list(NULL, c("(Intercept)", names)))
    }))
  }
  if (inherits(mean, "formula")) return(trend_formula(mean, x))
  if (is.numeric(mean) && is.matrix(mean) && ncol(mean) > 0L) {
    mean <- check_numeric(mean, "mean")
    return(list(type = "basis", at = function(x) mean))
  }
  abort_argument("mean", paste("'mean' must be a number, \"constant\", \"linear\", a one-sided",
                               "formula or a matrix"))
}

# model.matrix() would ignore it silently.
check_no_offset <- function(terms) {
  if (!is.null(attr(terms, "offset"))) {
    abort_argument("mean", "an offset is not supported: subtract it from the response")
  }
}

trend_formula <- function(formula, x) {
  if (length(formula) != 2L) abort_argument("mean", "the formula 'mean' must be one-sided")
  missing <- setdiff(all.vars(formula), colnames(x))
  missing <- missing[!vapply(missing, exists, NA, envir = environment(formula))]
  if (length(missing) > 0L) {
    abort_argument("mean", sprintf("the formula 'mean' uses '%s', which is not a column of 'x'",
                                   missing[1L]))
  }
  terms <- stats::terms(formula)
  check_no_offset(terms)
  at <- function(x) {
    frame <- stats::model.frame(terms, as.data.frame(x), na.action = stats::na.pass)
    basis <- stats::model.matrix(terms, frame)
    matrix(as.double(basis), nrow(basis), dimnames = list(NULL, colnames(basis)))
  }
  # the parameters of poly() and similar functions are kept for other points
  terms <- attr(stats::model.frame(terms, as.data.frame(x), na.action = stats::na.pass), "terms")
  list(type = "formula", at = at)
}

hold_trend <- function(trend, basis, beta) {
  if (length(beta) != ncol(basis) * trend$outputs || !all(is.finite(beta))) {
    abort_argument("beta", sprintf(paste("'beta' must be a vector of %d finite numbers, one for",
                                         "each of %s"), ncol(basis) * trend$outputs,
                                   paste(trend$names, collapse = ", ")))
  }
  trend$held <- matrix(as.double(beta), ncol(basis), dimnames = list(trend$names, NULL))
  trend$offset <- basis %*% trend$held
  dimnames(trend$offset) <- NULL
  c(trend, list(count = 0L, basis = NULL, integrate = FALSE))
}

factor_trend <- function(trend, basis) {
  trend$offset <- 0
  trend$count <- ncol(basis)
  trend$root <- matrix(1, 1L, 1L)
  if (trend$type == "constant") {
    trend$basis <- unname(basis)
  } else {
    parts <- qr(basis)
    if (parts$rank < ncol(basis)) {
      at <- parts$pivot[parts$rank + 1L]
      abort_argument("mean", sprintf(paste("column %d of the basis of the mean%s is a linear",
                                           "combination of the others"), at,
                                     if (is.null(trend$names)) "" else
                                       sprintf(" (%s)", trend$names[at])))
    }
    size <- sqrt(nrow(basis))
    trend$basis <- qr.Q(parts) * size
    trend$root <- qr.R(parts) / size
    dimnames(trend$root) <- NULL
  }
  trend$log_det <- sum(log(abs(diag(trend$root))))
  trend
}

# b on the scale of H: a vector, or a matrix with a column for each column of y.
trend_coefficients <- function(trend, b) {
  b <- backsolve(trend$root, b)
  dimnames(b) <- list(trend$names, NULL)
  if (trend$outputs == 1L) b[, 1L] else b
}

# The basis at new points: as given, or from the points. On the scale of H.
trend_at <- function(trend, at, basis) {
  if (trend$type == "number") return(NULL)
  if (trend$type != "basis") return(trend$at(at))
  count <- if (is.null(trend$held)) trend$count else nrow(trend$held)
  if (!is.numeric(basis) || !identical(dim(basis), c(nrow(at), count))) {
    abort_argument("basis", sprintf("'basis' must be a %d x %d matrix", nrow(at), count))
  }
  basis
}

trend_text <- function(trend) {
  if (trend$type == "number") return(format(trend$offset))
  text <- if (trend$type == "constant") "" else sprintf(" with %d coefficients",
                                                        length(trend$names))
  how <- if (!is.null(trend$held)) "held" else if (trend$integrate) "integrated out" else
    "estimated"
  paste0(how, text)
}
