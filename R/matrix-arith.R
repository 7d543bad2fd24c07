# Elementwise arithmetic of clMatrix: R's operators and mathematical functions. All of it is lazy:
# an operation makes a node of a graph (src/graph/expr.h) and returns.

#' Arithmetic on device matrices
#'
#' Operators and mathematical functions of base R, computed where the matrix is stored. They are
#' lazy: an operation returns at once, and the first use of its values runs one kernel for the whole
#' expression (see [lazy]). One operand may be a base R matrix of the same shape, which is copied to
#' the device, or a vector, which is recycled as in base R: a scalar is recycled over all elements,
#' a vector with one element for each row over the columns. There are no device vectors. Instead, a
#' `clMatrix` with one column is recycled over the columns, one with one row over the rows, and one
#' with one element over all elements.
#'
#' All numbers are doubles. Comparisons and logical operators (`==`, `<`, `&`, `!`, ...) return 1
#' and 0, and `NA` where base R returns `NA`; `as.matrix(x > 0) != 0` is a logical matrix. `NA` may
#' be returned as `NaN`, and there is no warning where `NaN` is produced. A triangular or symmetric
#' view is kept where the result is known to have it: twice a lower triangular matrix is lower
#' triangular.
#'
#' All members of R's groups `Arith`, `Compare`, `Logic` and `Math` are supported, and so are
#' `is.na()` and related functions. `signif()` and the cumulative functions (`cumsum()`, ...), which
#' return a base R vector, are computed on a copy on the host. `x %% y` is exact where base R warns
#' about lost accuracy. For large or negative arguments `gamma()`, `lgamma()`, `digamma()` and
#' `trigamma()` are more accurate than base R's by a few units in the last place. `is.nan()` is the
#' same as `is.na()`, because `NA` and `NaN` are not distinguished.
#'
#' R dispatches `log()` on its first argument only. With a `clMatrix` `x`, `log(8, base = x)` and
#' `log(base = 3, x = x)` therefore fail in R itself; write `log(8) / log(x)` and `log(x, 3)`.
#'
#' @param e1,e2,x Operands; at least one is a [clMatrix].
#' @param digits,... As for the base R function; for `log()` the base, which may be a `clMatrix`
#'   too.
#' @return A `clMatrix`.
#' @section Errors:
#' `statcl_error_argument` for operands that are not numeric, do not conform, or are on different
#' devices.
#' @seealso [clMatrix-reductions] for sums, means and extremes; [cl_ifelse()]; [cl_map()].
#' @name clMatrix-arith
#' @usage \S4method{+}{clMatrix,clMatrix}(e1, e2)
#' @eval operator_aliases()
#' @rawNamespace exportMethods("+", "-", "*", "/", "^", "%%", "%/%")
#' @rawNamespace exportMethods("==", "!=", "<", ">", "<=", ">=", "&", "|", "!")
#' @examples
#' x <- as_cl(matrix(1:6, 2))
#' x^2 + 1
#' as.matrix(exp(-x / 2))
#' as.matrix(x - rowMeans(x))
#' sum(x > 2)
NULL

# ---- operands -----------------------------------------------------------------------------------

# Dimensions of a matrix; NULL for other values.
matrix_dim <- function(x) if (is_cl(x)) x@Dim else if (length(dim(x)) == 2L) dim(x)

is_number <- function(x) {
  !isS4(x) && is.numeric(x) && length(x) == 1L && is.null(dim(x)) && !is.na(x)
}

# The same, but TRUE, FALSE and NA are numbers too.
is_constant <- function(x) {
  !is.object(x) && (is.numeric(x) || is.logical(x)) && length(x) == 1L && length(dim(x)) == 0L
}

# The shape of an operation on these operands, at least one a matrix: on each side the one number
# other than 1 that occurs. `arguments` names them. Matrices of base R are not recycled.
common_dim <- function(operands, arguments) {
  dim <- NULL
  fixed <- FALSE
  for (i in seq_along(operands)) {
    x <- operands[[i]]
    shape <- matrix_dim(x)
    if (is.null(shape)) next
    if (!is.null(dim) && !identical(shape, dim)) {
      fits <- shape == dim | (shape == 1L & is_cl(x)) | (dim == 1L & !fixed)
      if (!all(fits)) abort_shape(arguments[i], shape, dim)
      shape <- ifelse(shape == 1L, dim, shape)
    }
    dim <- shape
    fixed <- fixed || !is_cl(x)
  }
  dim
}

# An operand of an operation whose result has dimensions `dim`, as the entries take it: a handle, a
# number, or a base matrix of that shape or one column of it. Vectors recycle as in base R.
arith_operand <- function(x, dim, argument) {
  if (is_cl(x)) return(spread(x, dim))
  if (is.character(x) || !is.null(base::dim(x))) x <- check_numeric(x, argument)
  if (!is.null(base::dim(x))) {
    if (!identical(base::dim(x), dim)) abort_shape(argument, base::dim(x), dim)
    return(x)
  }
  x <- as.vector(check_numeric(x, argument))
  if (length(x) == 1L) return(x)
  size <- prod(dim)
  if (size == 0) return(matrix(0, dim[1L], dim[2L]))
  if (length(x) == 0L || length(x) > size) {
    abort_argument(argument, sprintf("'%s' has length %d and cannot be recycled to %d x %d",
                                     argument, length(x), dim[1L], dim[2L]))
  }
  if (size %% length(x) != 0) {
    statcl_warning("recycled", "longer object length is not a multiple of shorter object length")
  }
  if (dim[1L] %% length(x) == 0) return(matrix(rep_len(x, dim[1L]), ncol = 1L))
  matrix(rep_len(x, size), dim[1L], dim[2L])
}

# The handle of x, with a single row or element recycled; C recycles a single column itself.
spread <- function(x, dim) {
  if (identical(x@Dim, dim) || (x@Dim[1L] == dim[1L] && x@Dim[2L] == 1L)) return(x@handle)
  repeated(x, dim)
}

# The handle of x, its single row, column or element recycled.
repeated <- function(x, dim) .Call(r_op, "broadcast", list(x@handle), dim, NULL)

abort_shape <- function(argument, have, want) {
  abort_argument(argument, sprintf("non-conformable arguments: '%s' is %s, the other operand is %s",
                                   argument,
                                   paste(have, collapse = " x "), paste(want, collapse = " x ")))
}

# Names of the result: of the first operand of its shape that has any.
common_names <- function(operands, dim) {
  for (x in operands) {
    if (identical(matrix_dim(x), dim)) {
      names <- names_of(x)
      if (!is.null(names)) return(names)
    }
  }
}

# ---- operators ----------------------------------------------------------------------------------

# The names that elementwise.def gives the operators.
operators <- c(`+` = "add", `-` = "sub", `*` = "mul", `/` = "div", `^` = "pow", `%%` = "mod",
               `%/%` = "intdiv", `==` = "eq", `!=` = "ne", `<` = "lt", `>` = "gt", `<=` = "le",
               `>=` = "ge", `&` = "and", `|` = "or")

# Any operands; `op` is a name of elementwise.def.
binary <- function(op, e1, e2, arguments = c("e1", "e2")) {
  if (op == "pow" && is_number(e2) && e2 == 2) return(unary("square", e1))
  operands <- list(e1, e2)
  dim <- common_dim(operands, arguments)
  # Both operands may have to be recycled, as the row and the column of an outer operation.
  handles <- list(arith_operand(e1, dim, arguments[1L]), arith_operand(e2, dim, arguments[2L]))
  value(.Call(r_op, op, handles, NULL, NULL), NULL, common_names(operands, dim))
}

# A method for each operator and not for the group: its dispatch takes a third of the time. The
# entry handles the usual operands, matrices of one shape, columns and numbers; otherwise it calls
# binary().
operator_method <- function(op) {
  eval(substitute(function(e1, e2) .Call(r_lazy_apply, op, e1, e2), list(op = op)))
}

# Of methods of two operands, for a clMatrix on either side or on both.
pair_signatures <- list(c("clMatrix", "ANY"), c("ANY", "clMatrix"), c("clMatrix", "clMatrix"))

# The same for a clSparse.
sparse_signatures <- list(c("clSparse", "ANY"), c("ANY", "clSparse"), c("clSparse", "clSparse"),
                          c("clSparse", "clMatrix"), c("clMatrix", "clSparse"))

for (name in names(operators)) {
  for (classes in pair_signatures) setMethod(name, classes, operator_method(operators[[name]]))
}
rm(name, classes)

# For help pages: methods of these generics with each of the signatures.
method_aliases <- function(generics, signatures = pair_signatures) {
  classes <- vapply(signatures, paste, "", collapse = ",")
  paste0("@aliases ", outer(generics, classes, paste, sep = ","), "-method")
}

operator_aliases <- function() {
  c(method_aliases(names(operators)), method_aliases(c("-", "+"), list("clMatrix,missing")),
    method_aliases("!", list("clMatrix")),
    method_aliases(c("round", "signif"), list("clAnything,clMatrix", "clMatrix,clMatrix")))
}

setMethod("-", signature("clMatrix", "missing"),
          function(e1, e2) .Call(r_lazy_apply, "neg", e1, NULL))

setMethod("+", signature("clMatrix", "missing"), function(e1, e2) e1)

setMethod("!", "clMatrix", function(x) unary("not", x))

# ---- functions ----------------------------------------------------------------------------------

unary <- function(op, x) .Call(r_lazy_apply, op, x, NULL)

# Members of Math that elementwise.def has under the same name: filled by .onLoad().
device_functions <- NULL

# An S3 method: S4 methods of a group, or of each member, take R longer to load than all the rest.

#' @rdname clMatrix-arith
#' @export
Math.clMatrix <- function(x, ...) {
  if (.Generic %in% device_functions) return(unary(.Generic, x))
  result <- get(.Generic, baseenv())(as.matrix(x), ...)
  if (is.null(dim(result))) result else like(result, x)
}

# Methods of their own, with faster dispatch, for the most frequent functions.
frequent_functions <- c("abs", "sqrt", "exp", "expm1", "log1p")

function_method <- function(op) {
  eval(substitute(function(x) .Call(r_lazy_apply, op, x, NULL), list(op = op)))
}

for (name in frequent_functions) {
  setMethod(name, "clMatrix", function_method(name))
}
rm(name)

#' @rdname clMatrix-arith
#' @export
setMethod("trunc", "clMatrix", function(x, ...) unary("trunc", x))

#' @rdname clMatrix-arith
#' @export
setMethod("log", "clMatrix", function(x, ...) {
  if (...length() == 0L) return(unary("log", x))
  pair <- log_arguments(sys.call(), x, ..1, is_cl)
  log_to_base(pair$x, pair$base)
})

log_to_base <- function(x, base) {
  if (!is_cl(x)) x <- check_numeric(x, "x")
  if (!is_cl(base)) base <- check_numeric(base, "base")
  if (identical(base, 2)) return(unary("log2", x))
  if (identical(base, 10)) return(unary("log10", x))
  logarithm <- function(v) if (is_cl(v)) unary("log", v) else suppressWarnings(log(v))
  binary("div", logarithm(x), logarithm(base), c("x", "base"))
}

# R passes the arguments of log() in the order of the call: in log(base = m, x = 3), m is first.
log_arguments <- function(call, first, second, is_mine) {
  formal <- pmatch(names(call)[-1L], c("x", "base"), nomatch = 0L, duplicates.ok = TRUE)
  swapped <- length(formal) == 2L && (formal[1L] == 2L || formal[2L] == 1L)
  if (swapped || !is_mine(first)) list(x = second, base = first) else list(x = first, base = second)
}

# R dispatches round() and signif() on the digits too; without a method it would recurse infinitely.
refuse_digits <- function(x, digits) {
  abort_argument("digits", sprintf("'digits' must be one number, not %s", describe(digits)))
}

for (name in c("round", "signif")) {
  for (class in c("clAnything", "clMatrix")) setMethod(name, c(class, "clMatrix"), refuse_digits)
}
rm(name, class)

#' @rdname clMatrix-arith
#' @export
setMethod("round", "clMatrix", function(x, digits = 0) rounded(x, check_number(digits, "digits")))

# round() of a clMatrix, or of a traced value in element_functions().
rounded <- function(x, digits) {
  digits <- floor(digits + 0.5)
  if (digits == 0) return(lazy_op("round", x = x))
  # As base R: no number has decimals beyond 323, and none is half of 1e309 or more.
  if (digits > 323) return(x)
  if (digits < -308) return(cl_ifelse(is.finite(x) & x, 0, x))
  lazy_op("round_to", x = x, digits = round_unit(digits))
}

# The argument of the operation 'round': the number of parts of 1 or, if negative, the multiple to
# round to. A number of parts that overflows is replaced by 1e-200 divided by the unit.
round_unit <- function(digits) {
  if (digits > 308) 1e-200 / 10^(digits - 308) else if (digits > 0) 10^digits else -10^-digits
}

#' @rdname clMatrix-arith
#' @export
setMethod("signif", "clMatrix", function(x, digits = 6) {
  like(signif(as.matrix(x), check_number(digits, "digits")), x)
})

#' @rdname clMatrix-arith
#' @export
setMethod("is.na", "clMatrix", function(x) unary("is_nan", x))

#' @rdname clMatrix-arith
#' @export
setMethod("is.nan", "clMatrix", function(x) unary("is_nan", x))

#' @rdname clMatrix-arith
#' @export
setMethod("is.finite", "clMatrix", function(x) unary("is_finite", x))

#' @rdname clMatrix-arith
#' @export
setMethod("is.infinite", "clMatrix", function(x) unary("is_infinite", x))

#' Functions without a generic in base R
#'
#' `cl_inv_logit(x)` is `1 / (1 + exp(-x))`, like [plogis()]; `cl_log1p_exp(x)` is `log(1 +
#' exp(x))`. Both are accurate in both tails. `cl_pnorm(x)` is the distribution function of the
#' standard normal distribution, like [pnorm()]. `cl_erf(x)` is the error function, `2 * pnorm(x *
#' sqrt(2)) - 1`, and `cl_erfc(x)` is `1 - cl_erf(x)`, both without the cancellation of these
#' formulas. `cl_atan2(y, x)` is [atan2()]. All are lazy ([lazy]) and may be used in functions
#' passed to [cl_map()] and [cl_reduce()].
#'
#' @param x,y clMatrix objects, or base R matrices, vectors or numbers.
#' @param lower.tail If `FALSE`, the upper tail probability is returned.
#' @param log.p If `TRUE`, the logarithm of the probability is returned, including where the
#'   probability itself underflows.
#' @return A `clMatrix`, or a base R value if all arguments are base R values.
#' @section Errors:
#' `statcl_error_argument` for arguments that are not numeric or do not conform.
#' @export
#' @examples
#' x <- as_cl(matrix(c(-800, 0, 800), 1))
#' as.matrix(cl_inv_logit(x))
#' as.matrix(cl_log1p_exp(x))
#' # Log likelihoods of a logistic and of a probit regression, each in one kernel
#' y <- as_cl(matrix(c(0, 1, 1), 1))
#' sum(y * x - cl_log1p_exp(x))
#' sum(cl_pnorm((2 * y - 1) * x, log.p = TRUE))
cl_inv_logit <- function(x) {
  special_function("inv_logit", x, function(x) stats::plogis(x))
}

#' @rdname cl_inv_logit
#' @export
cl_log1p_exp <- function(x) {
  special_function("log1p_exp", x, function(x) pmax(x, 0) + log1p(exp(-abs(x))))
}

#' @rdname cl_inv_logit
#' @export
cl_pnorm <- function(x, lower.tail = TRUE, log.p = FALSE) {
  lower <- check_flag(lower.tail, "lower.tail")
  log <- check_flag(log.p, "log.p")
  if (!lower && is_cl(x)) x <- -x
  special_function(if (log) "log_pnorm" else "pnorm", x,
                   function(x) stats::pnorm(x, lower.tail = lower, log.p = log))
}

# op(x), by `plain` where x is base R.
special_function <- function(op, x, plain) {
  if (is_cl(x)) return(unary(op, x))
  plain(check_numeric(x, "x"))
}

#' @rdname cl_inv_logit
#' @export
cl_atan2 <- function(y, x) {
  if (is_cl(y) || is_cl(x)) return(binary("atan2", y, x, c("y", "x")))
  y <- check_numeric(y, "y") # here: an error inside a generic's argument loses its class
  x <- check_numeric(x, "x")
  atan2(y, x)
}
