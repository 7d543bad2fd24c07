# Distributions and special functions of stats and base R for clMatrix, and for the traced values of
# cl_map() (R/trace-map.R): made generic as in R/matrix-statistics.R.

#' Distributions and special functions
#'
#' Methods of `dnorm()`, `pnorm()`, `qnorm()`, `plogis()`, `lbeta()`, `choose()`, `lchoose()` and
#' `atan2()` for calls in which any argument is a [clMatrix]; functions passed to [cl_map()] may use
#' them too. They are lazy ([lazy]) and accurate in both tails, on the log scale too.
#'
#' @param x,q,p,mean,sd,location,scale,a,b,n,k,y clMatrix objects, base R matrices, vectors or
#'   numbers, recycled like the operands of `+`; at least one is a `clMatrix`.
#' @param log,log.p,lower.tail As for [dnorm()] and [pnorm()].
#' @return A lazy `clMatrix`; `NaN` where base R returns it, without a warning.
#' @section Errors:
#' `statcl_error_argument` for arguments that are not numeric or do not conform.
#' @seealso [cl_inv_logit()] for functions that base R does not have.
#' @references
#' Wichura, M. J. (1988) Algorithm AS 241: The percentage points of the normal distribution.
#' *Applied Statistics* 37, 477-484.
#' @name clMatrix-distributions
#' @eval method_aliases(c("dnorm", "pnorm", "qnorm", "plogis"), cl_signatures(3L))
#' @eval method_aliases(c("lbeta", "choose", "lchoose", "atan2"))
#' @importFrom stats dnorm pnorm qnorm plogis
#' @rawNamespace exportMethods(dnorm, pnorm, qnorm, plogis, lbeta, choose, lchoose, atan2)
#' @examples
#' x <- as_cl(matrix(c(-40, 0, 1, 3), 2))
#' pnorm(x, mean = 1, log.p = TRUE)
#' sum(dnorm(x, 0, 2, log = TRUE))
#' as.matrix(qnorm(pnorm(x)))
#' as.matrix(choose(5, as_cl(0:5)))
NULL

# op(...) of matrices.
lazy_op <- function(op, ...) {
  operands <- list(...)
  apply_op(op, operands, names(operands))
}

# (x - centre) / scale; NaN unless the scale is positive.
standardized <- function(x, centre, scale) {
  if (!identical(centre, 0)) x <- x - centre
  if (identical(scale, 1)) return(if (is_cl(x)) x else x / scale)
  if (is_number(scale) && scale > 0) return(x / scale)
  x / cl_ifelse(scale > 0, scale, NaN)
}

# `value` where sd is positive, `zero` where it is 0.
at_zero_sd <- function(value, sd, zero) {
  if (is_number(sd) && sd != 0) return(value)
  cl_ifelse(sd == 0, zero, value)
}

dnorm_cl <- function(x, mean = 0, sd = 1, log = FALSE) {
  log <- check_flag(log, "log")
  z <- standardized(x, mean, sd)
  value <- if (log) -(0.5 * z^2 + base::log(sqrt(2 * pi))) - log_of(sd)
           else lazy_op("dnorm", x = z) / sd
  at_zero_sd(value, sd, if (log) log_of(cl_ifelse(x == mean, Inf, 0)) else
    cl_ifelse(x == mean, Inf, 0))
}

# The logarithm, also where base R would warn of a negative number.
log_of <- function(x) {
  if (is_cl(x)) base::log(x) else suppressWarnings(base::log(x))
}

pnorm_cl <- function(q, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  lower <- check_flag(lower.tail, "lower.tail")
  op <- if (check_flag(log.p, "log.p")) "log_pnorm" else "pnorm"
  z <- standardized(q, mean, sd)
  value <- lazy_op(op, q = if (lower) z else -z)
  if (is_number(sd) && sd != 0) return(value)
  below <- if (lower) q < mean else q >= mean
  never <- if (op == "log_pnorm") -Inf else 0
  at_zero_sd(value, sd, cl_ifelse(below, never, if (op == "log_pnorm") 0 else 1))
}

qnorm_cl <- function(p, mean = 0, sd = 1, lower.tail = TRUE, log.p = FALSE) {
  lower <- check_flag(lower.tail, "lower.tail")
  op <- if (check_flag(log.p, "log.p")) "log_qnorm" else "qnorm"
  if (!is_cl(p)) p <- p + 0 * (mean + sd)
  z <- lazy_op(op, p = p)
  if (!lower) z <- -z
  if (identical(mean, 0) && identical(sd, 1)) return(z)
  if (is_number(sd) && sd > 0) return(mean + sd * z)
  at_zero_sd(mean + cl_ifelse(sd > 0, sd, NaN) * z, sd, mean + 0 * z)
}

plogis_cl <- function(q, location = 0, scale = 1, lower.tail = TRUE, log.p = FALSE) {
  lower <- check_flag(lower.tail, "lower.tail")
  log <- check_flag(log.p, "log.p")
  z <- standardized(q, location, scale)
  if (!lower) z <- -z
  if (log) -lazy_op("log1p_exp", q = -z) else lazy_op("inv_logit", q = z)
}

for (name in c("dnorm", "pnorm", "qnorm", "plogis", "lbeta", "choose", "lchoose", "atan2")) {
  setGeneric(name)
}
rm(name)

# All signatures with at least one clMatrix, so that dispatch is never ambiguous.
cl_signatures <- function(count) {
  patterns <- expand.grid(rep(list(c("clMatrix", "ANY")), count), stringsAsFactors = FALSE)
  lapply(seq_len(nrow(patterns) - 1L), function(k) unlist(patterns[k, ], use.names = FALSE))
}

for (classes in cl_signatures(3L)) {
  setMethod("dnorm", classes, dnorm_cl)
  setMethod("pnorm", classes, pnorm_cl)
  setMethod("qnorm", classes, qnorm_cl)
  setMethod("plogis", classes, plogis_cl)
}
for (classes in pair_signatures) {
  setMethod("lbeta", classes, function(a, b) lazy_op("lbeta", a = a, b = b))
  setMethod("choose", classes, function(n, k) lazy_op("choose", n = n, k = k))
  setMethod("lchoose", classes, function(n, k) lazy_op("lchoose", n = n, k = k))
  setMethod("atan2", classes, function(y, x) lazy_op("atan2", y = y, x = x))
}
rm(classes)
