# Checks of arguments, and small values, that several rooms use.

# One TRUE or FALSE.
check_flag <- function(x, argument) {
  if (!is.logical(x) || length(x) != 1L || is.na(x)) {
    abort_argument(argument, sprintf("'%s' must be TRUE or FALSE", argument))
  }
  x
}

# One finite number within [lower, upper].
check_number <- function(x, argument, lower = -Inf, upper = Inf, kind = "finite number") {
  one <- is.numeric(x) && !is.object(x) && length(x) == 1L && is.finite(x) &&
    (kind != "integer" || x == round(x))
  if (!one || x < lower || x > upper) {
    abort_argument(argument, sprintf("'%s' must be one %s", argument,
                                     number_text(kind, lower, upper)))
  }
  as.double(x)
}

check_function <- function(f, argument) {
  if (!is.function(f)) {
    abort_argument(argument, sprintf("'%s' must be a function, not %s", argument, describe(f)))
  }
  f
}

# One of the choices, matched exactly.
check_choice <- function(x, choices, argument) {
  if (identical(x, choices)) return(choices[1L])
  if (!is.character(x) || length(x) != 1L || is.na(x) || !x %in% choices) {
    abort_argument(argument, sprintf("'%s' must be one of %s", argument,
                                     paste0("\"", choices, "\"", collapse = ", ")))
  }
  x
}

# A description of a value for messages.
describe <- function(x) {
  if (is.null(x)) return("NULL")
  if (is.object(x)) return(sprintf("an object of class \"%s\"", class(x)[1L]))
  if (is.matrix(x)) return(sprintf("a %d x %d %s matrix", nrow(x), ncol(x), typeof(x)))
  if (is.array(x)) {
    return(sprintf("a %s array of dimensions %s", typeof(x), paste(dim(x), collapse = " x ")))
  }
  if (is.function(x)) return("a function")
  kind <- switch(typeof(x), double = "a numeric vector", integer = "an integer vector",
                 logical = "a logical vector", character = "a character vector",
                 complex = "a complex vector", raw = "a raw vector", list = "a list", NULL)
  if (is.null(kind)) return(sprintf("an object of type %s", typeof(x)))
  sprintf("%s of length %d", kind, length(x))
}

check_dots_empty <- function(...) {
  if (...length() == 0L) return(invisible())
  given <- names(list(...))
  if (is.null(given)) abort_argument("...", "unused argument '...'")
  given <- setdiff(given, c("use.fallback", "env")) # of nobs() and formula() in step() and add1()
  if (length(given) == 0L) return(invisible())
  name <- if (nzchar(given[1L])) given[1L] else "..."
  abort_argument(name, sprintf("unused argument '%s'", name))
}

check_positive <- function(x, argument, many = FALSE) {
  if (!is.numeric(x) || is.object(x) || length(x) == 0L || (!many && length(x) != 1L) ||
        !all(is.finite(x)) || any(x <= 0)) {
    abort_argument(argument, sprintf("'%s' must be %s", argument,
                                     if (many) "positive and finite" else "one positive number"))
  }
  if (many) stats::setNames(as.double(x), names(x)) else as.double(x)
}

# The response without classes that only record the origin of numbers, strings or a factor.
plain_numbers <- function(x) {
  if (!is.object(x)) return(x)
  origin <- c("AsIs", "dw_transformer", "table", "xtabs", "labelled", "haven_labelled",
              "haven_labelled_spss", "vctrs_vctr", "numeric", "double", "integer", "logical",
              "character")
  left <- setdiff(class(x), origin)
  if (length(left) > 0L) {
    if (is.factor(x)) class(x) <- left
    return(x)
  }
  shape <- dim(x)
  attributes(x) <- NULL
  if (length(shape) > 1L) dim(x) <- shape
  x
}

format_bytes <- function(bytes) {
  units <- c("B", "KiB", "MiB", "GiB", "TiB")
  power <- pmin(pmax(floor(log(pmax(bytes, 1), 1024)), 0), 4)
  sprintf(ifelse(power == 0, "%.0f %s", "%.1f %s"), bytes / 1024^power, units[power + 1])
}

# A sparse matrix of the package Matrix stays one, in fits with families of R.
is_sparse <- function(x) isS4(x) && inherits(x, "sparseMatrix")

most_dense <- 2^26 # elements of a dense matrix made of a sparse one

# It as a dgCMatrix: compressed columns of doubles.
sparse_columns <- function(x) {
  for (class in c("dMatrix", "CsparseMatrix", "generalMatrix")) x <- methods::as(x, class)
  x
}

count_of <- function(n, what) {
  paste0(format(n, digits = 7L, scientific = FALSE), " ", what, if (n == 1) "" else "s")
}

# The upper factor of a base matrix, or NULL if it is not positive definite.
chol_or_null <- function(a) tryCatch(chol.default(a), error = function(e) NULL)

# The inverse; NaN if the matrix is not positive definite.
safe_inverse <- function(h) {
  tryCatch(chol2inv(chol.default(h)), error = function(e) h * NaN)
}

curve_colour <- "#0072B2"
