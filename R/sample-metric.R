# The metric of cl_sample(): its arguments.

# The most parameters for which metric = "auto" keeps the draws of a window: they take 10 MB a chain
# (MOST_ROWS of src/sample/adapt.c).
most_chosen <- 5000

has_rank <- function(metric) metric %in% c("low-rank", "auto")

check_inverse_metric <- function(x, dimension, metric = "diag", rank = 0) {
  dense <- metric == "dense"
  if (is.null(x)) x <- 1
  if (is.list(x) && has_rank(metric)) return(check_low_rank(x, dimension, rank))
  right <- is.numeric(x) && all(is.finite(x))
  if (is.matrix(x) && dense) {
    right <- right && all(dim(x) == dimension) && isSymmetric(unname(x))
    if (right) right <- !is.null(chol_or_null(x))
    if (right) return(unname(x) + 0)
  }
  if (!right || is.matrix(x) || !length(x) %in% c(1L, dimension) || any(x <= 0)) {
    abort_argument("inverse_metric", sprintf(
      "'inverse_metric' must be one positive number, or one for each of the %d parameters%s",
      dimension, if (dense) ", or a positive definite matrix" else ""))
  }
  if (has_rank(metric)) x <- rep_len(x, dimension)
  if (dense) diag(rep_len(as.double(x), dimension), dimension) else as.double(x)
}

# The parts of an inverse metric of low rank, as in a result, in one vector.
check_low_rank <- function(x, dimension, rank) {
  numbers <- vapply(x, function(part) is.numeric(part) && all(is.finite(part)), NA)
  v <- x$vectors
  right <- setequal(names(x), c("diagonal", "values", "vectors")) && all(numbers) &&
    length(x$diagonal) == dimension && all(unlist(x[c("diagonal", "values")]) > 0) &&
    is.matrix(v) && all(dim(v) == c(dimension, length(x$values))) && ncol(v) <= rank &&
    all(abs(crossprod(v) - diag(ncol(v))) < 1e-8)
  if (!right) {
    abort_argument("inverse_metric", sprintf(paste(
      "'inverse_metric' must be a list of 'diagonal' (%d positive numbers), 'values' (positive, at",
      "most %.0f) and 'vectors' (a matrix with an orthonormal column for each)"), dimension, rank))
  }
  as.double(c(x$diagonal, x$values, v))
}
