# Elementwise arithmetic and reductions of clMatrix: R's group generics.

#' Arithmetic of device matrices
#'
#' Operators, mathematical functions and summaries of base R, done where the matrix is. One operand
#' may be a base R matrix of the same shape, which is copied beside the other, or a vector, which
#' recycles as in base R: a number meets every element, a vector as long as there are rows meets
#' every column. A `clMatrix` of one column does so too, there being no device vectors.
#'
#' Numbers are doubles throughout. Comparisons and logic (`==`, `<`, `&`, `!`, ...) give 1 and 0,
#' and `NA` where base R gives `NA`; `as.matrix(x > 0) != 0` is a logical matrix. `NA` may come back
#' as `NaN`, and no warning is raised where `NaN` is produced. A triangular or symmetric view is
#' kept where that is certain: twice a lower triangular matrix is one.
#'
#' `gamma()`, `lgamma()`, `digamma()`, `trigamma()`, `cospi()` and the like, `signif()`, `round()`
#' to other than whole numbers, and the cumulative functions, which give a base R vector, are
#' computed on a copy on the host. Sums are pairwise or in a fixed tree: equal bits run after run,
#' though not to the last bit those of base R.
#'
#' @param e1,e2,x operands; at least one is a [clMatrix].
#' @param digits,base,... as for the function of base R.
#' @param na.rm whether missing values are left out.
#' @param dims must be 1.
#' @param trim must be 0.
#' @return Operators and functions: a `clMatrix`. `sum()`, `prod()`, `min()`, `max()`, `mean()`: a
#'   number; `range()` two; `any()`, `all()`: a logical; `rowSums()` and the like: a base R vector.
#' @section Errors:
#' `statcl_error_argument` for operands that are not numeric or do not conform, or that live on
#' different devices.
#' @name clMatrix-arith
#' @examples
#' x <- as_cl(matrix(1:6, 2))
#' x^2 + 1
#' exp(-x / 2)
#' x - rowMeans(x)
#' sum(x > 2)
#' range(x)
NULL

# ---- operators ----------------------------------------------------------------------------------

# The names that elementwise.def gives the operators.
operators <- c(`+` = "add", `-` = "sub", `*` = "mul", `/` = "div", `^` = "pow", `%%` = "mod",
               `%/%` = "intdiv", `==` = "eq", `!=` = "ne", `<` = "lt", `>` = "gt", `<=` = "le",
               `>=` = "ge", `&` = "and", `|` = "or")

binary <- function(op, e1, e2) {
  if (identical(op, "^") && is_number(e2) && e2 == 2) return(unary("square", e1))
  dim1 <- matrix_dim(e1)
  dim2 <- matrix_dim(e2)
  # A column meets every column of the other operand, whose dimensions count then.
  dim <- if (is.null(dim1) || (is_column(e1) && !is.null(dim2))) dim2 else dim1
  names <- if (identical(dim1, dim)) names_of(e1)
  if (is.null(names) && identical(dim2, dim)) names <- names_of(e2)
  value(.Call(r_arith_binary, operators[[op]], arith_operand(e1, dim, "e1"),
              arith_operand(e2, dim, "e2")), NULL, names)
}

is_column <- function(x) is_cl(x) && x@Dim[2L] == 1L

# Dimensions of a matrix, NULL for all else.
matrix_dim <- function(x) if (length(dim(x)) == 2L) dim(x)

is_number <- function(x) {
  is.numeric(x) && !is_cl(x) && length(x) == 1L && is.null(dim(x)) && !is.na(x)
}

# An operand of an operator whose result has dimensions `dim`: a handle, a number, or a base matrix
# of that shape or one column of it. Vectors recycle as in base R.
arith_operand <- function(x, dim, argument) {
  if (is_cl(x)) {
    column <- x@Dim[1L] == dim[1L] && x@Dim[2L] == 1L
    if (!column && !identical(x@Dim, dim)) refuse_shape(argument, base::dim(x), dim)
    return(x@handle)
  }
  if (is.character(x) || !is.null(base::dim(x))) x <- check_numeric(x, argument)
  if (!is.null(base::dim(x))) {
    if (!identical(base::dim(x), dim)) refuse_shape(argument, base::dim(x), dim)
    return(x)
  }
  x <- as.vector(check_numeric(x, argument))
  if (length(x) == 1L) return(x)
  size <- prod(dim)
  if (length(x) == 0L || size %% length(x) != 0) {
    abort_argument(argument, sprintf("'%s' of length %d does not recycle to %d x %d", argument,
                                     length(x), dim[1L], dim[2L]))
  }
  if (dim[1L] %% length(x) == 0) return(matrix(rep_len(x, dim[1L]), ncol = 1L))
  matrix(rep_len(x, size), dim[1L], dim[2L])
}

refuse_shape <- function(argument, have, want) {
  abort_argument(argument, sprintf("non-conformable: '%s' is %s, the other operand %s", argument,
                                   paste(have, collapse = " x "), paste(want, collapse = " x ")))
}

#' @rdname clMatrix-arith
#' @export
setMethod("Arith", signature("clMatrix", "ANY"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Arith", signature("ANY", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Arith", signature("clMatrix", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Arith", signature("clMatrix", "missing"), function(e1, e2) {
  switch(.Generic, `-` = unary("neg", e1), `+` = e1,
         abort_argument("e2", sprintf("'%s' needs two operands", .Generic)))
})

#' @rdname clMatrix-arith
#' @export
setMethod("Compare", signature("clMatrix", "ANY"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Compare", signature("ANY", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Compare", signature("clMatrix", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Logic", signature("clMatrix", "ANY"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Logic", signature("ANY", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("Logic", signature("clMatrix", "clMatrix"), function(e1, e2) binary(.Generic, e1, e2))

#' @rdname clMatrix-arith
#' @export
setMethod("!", "clMatrix", function(x) unary("not", x))

# ---- functions ----------------------------------------------------------------------------------

unary <- function(op, x) value(.Call(r_arith_unary, op, x@handle), NULL, x@Dimnames)

# Members of Math that elementwise.def has under the same name.
device_functions <- c("abs", "sign", "sqrt", "ceiling", "floor", "trunc", "exp", "expm1", "log1p",
                      "log2", "log10", "cos", "cosh", "sin", "sinh", "tan", "tanh", "acos",
                      "acosh", "asin", "asinh", "atan", "atanh")

#' @rdname clMatrix-arith
#' @export
setMethod("Math", "clMatrix", function(x) {
  if (.Generic %in% device_functions) return(unary(.Generic, x))
  result <- callGeneric(as.matrix(x))
  if (is.null(dim(result))) result else like(result, x)
})

#' @rdname clMatrix-arith
#' @export
setMethod("trunc", "clMatrix", function(x, ...) unary("trunc", x))

#' @rdname clMatrix-arith
#' @export
setMethod("log", "clMatrix", function(x, base = exp(1), ...) {
  if (missing(base)) return(unary("log", x))
  base <- check_number(base, "base", 0)
  if (base == 2) return(unary("log2", x))
  if (base == 10) return(unary("log10", x))
  binary("/", unary("log", x), log(base))
})

#' @rdname clMatrix-arith
#' @export
setMethod("round", "clMatrix", function(x, digits = 0) {
  digits <- check_number(digits, "digits")
  if (digits == 0) unary("round", x) else like(round(as.matrix(x), digits), x)
})

#' @rdname clMatrix-arith
#' @export
setMethod("signif", "clMatrix", function(x, digits = 6) {
  like(signif(as.matrix(x), check_number(digits, "digits")), x)
})

# ---- reductions ---------------------------------------------------------------------------------

reduce <- function(op, x) .Call(r_arith_reduce, op, x@handle, NULL)

# x with `number` in the place of missing values.
without_na <- function(x, number) value(.Call(r_arith_binary, "fill_nan", x@handle, number))

# One operand of a summary, reduced to the value that stands for it in base R's function.
summary_part <- function(name, x, na.rm) {
  if (!is_cl(x)) {
    x <- check_numeric(x, "...")
    return(if (na.rm) x[!is.na(x)] else x)
  }
  if (name %in% c("any", "all")) {
    missing <- reduce("count_nan", x)
    true <- reduce("count_true", x)
    false <- length(x) - missing - true
    return(c(if (true > 0) TRUE, if (false > 0) FALSE, if (missing > 0 && !na.rm) NA))
  }
  if (na.rm) {
    missing <- reduce("count_nan", x)
    if (missing == length(x)) return(numeric())
    if (missing > 0) x <- without_na(x, c(sum = 0, prod = 1, min = Inf, max = -Inf)[[name]])
  }
  if (length(x) == 0L) numeric() else reduce(name, x)
}

#' @rdname clMatrix-arith
#' @export
setMethod("Summary", "clMatrix", function(x, ..., na.rm = FALSE) {
  summarize(.Generic, list(x, ...), check_flag(na.rm, "na.rm"))
})

summarize <- function(name, operands, na.rm) {
  if (name == "range") {
    return(c(summarize("min", operands, na.rm), summarize("max", operands, na.rm)))
  }
  # Not na.rm again: a sum that is NaN because of infinities is the result.
  do.call(name, lapply(operands, function(part) summary_part(name, part, na.rm)))
}

#' @rdname clMatrix-arith
#' @export
mean.clMatrix <- function(x, trim = 0, na.rm = FALSE, ...) {
  if (check_number(trim, "trim") != 0) {
    abort_argument("trim", "'trim' must be 0 for a clMatrix: use mean(as.vector(x), trim = )")
  }
  n <- length(x)
  if (check_flag(na.rm, "na.rm")) n <- n - reduce("count_nan", x)
  if (n == 0) return(NaN)
  sum(x, na.rm = na.rm) / n
}

# Sums over columns (margin 1: a value for each row) or over rows, as products with ones.
margin_sums <- function(x, margin, na.rm, dims, average = FALSE) {
  if (check_number(dims, "dims") != 1) abort_argument("dims", "'dims' must be 1")
  names <- x@Dimnames[[margin]]
  other <- x@Dim[3L - margin]
  counts <- other
  sum_over <- function(x) {
    ones <- matrix(1, other, 1L)
    sums <- if (margin == 1L) .Call(r_matmul, x@handle, ones, -1L)
            else .Call(r_crossprod, x@handle, ones, -1L)
    as.vector(.Call(r_matrix_to_host, sums))
  }
  if (check_flag(na.rm, "na.rm")) {
    if (average) counts <- sum_over(without_na(binary("==", x, x), 0))
    x <- without_na(x, 0)
  }
  sums <- sum_over(x)
  if (average) sums <- sums / counts
  names(sums) <- names
  sums
}

setGeneric("rowSums")
setGeneric("colSums")
setGeneric("rowMeans")
setGeneric("colMeans")

#' @rdname clMatrix-arith
#' @export
setMethod("rowSums", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 1L, na.rm, dims)
})

#' @rdname clMatrix-arith
#' @export
setMethod("colSums", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 2L, na.rm, dims)
})

#' @rdname clMatrix-arith
#' @export
setMethod("rowMeans", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 1L, na.rm, dims, average = TRUE)
})

#' @rdname clMatrix-arith
#' @export
setMethod("colMeans", "clMatrix", function(x, na.rm = FALSE, dims = 1, ...) {
  margin_sums(x, 2L, na.rm, dims, average = TRUE)
})
