# Lazy arithmetic for users: computing several results at once, elementwise choices, showing pending
# expressions.

#' Lazy arithmetic and fused kernels
#'
#' Arithmetic on a [clMatrix] is lazy: it records the operation and returns at once. When values are
#' needed (by a summary such as `sum()`, a matrix product, a factorisation, or `as.matrix()`), one
#' kernel is generated for the whole expression. It reads each matrix once and writes the result
#' once; intermediate results are not stored. Values are kept once computed, and subexpressions that
#' expressions share are computed once within a kernel. Printing a pending matrix computes only the
#' rows and columns shown, and prints the expression if there are more.
#'
#' `cl_eval()` computes several matrices at once, in one kernel if they have the same shape, or are
#' reductions ([cl_reduce()]) of expressions of the same shape. `cl_show_kernel()` shows the source
#' of the kernel that would be run, C code generated from the graph of operations. Numbers, sizes
#' and positions are arguments of the kernel, so it is compiled once for all expressions of the same
#' structure.
#'
#' The lazy operations are: operators and mathematical functions of [clMatrix-arith], [cl_ifelse()],
#' `pmin()`, `pmax()`, `t()`, blocks `x[i, j]` and `x[i, j] <- value` of consecutive rows and
#' columns, row and column numbers ([cl_row()]), products `x %*% b` with a single column `b`, and
#' [cl_map()] and [cl_reduce()] of a `clMatrix`.
#'
#' Without a device the host engine evaluates the same graph, in blocks that fit into the
#' processor's cache, on several cores.
#'
#' @param ... clMatrix objects, pending or not.
#' @return `cl_eval()`: a list of the matrices, with their values, under the argument names;
#'   invisibly. (The values of the arguments are computed too.) `cl_show_kernel()`: the source, a
#'   string, invisibly; an empty string if nothing is pending.
#' @section Errors:
#' `statcl_error_argument` for arguments that are not `clMatrix` objects. Errors of the computation
#' itself (`statcl_error_memory`, ...) are raised by the function that needs the values.
#' @aliases lazy
#' @seealso `vignette("lazy", package = "statcl")`
#' @export
#' @examples
#' x <- as_cl(matrix(1:6, 2))
#' y <- exp(-x^2 / 2) / sqrt(2 * pi)
#' y
#' sum(y) # one kernel; y itself is still pending
#' cl_show_kernel(y)
#' both <- cl_eval(density = y, slope = -x * y)
#' both$slope
cl_eval <- function(...) {
  matrices <- list(...)
  if (!.Call(r_lazy_eval, matrices)) check_matrices(matrices)
  invisible(matrices)
}

#' @rdname cl_eval
#' @export
cl_show_kernel <- function(...) {
  matrices <- check_matrices(list(...))
  source <- .Call(r_expr_source, lapply(matrices, handle_of))
  cat(if (nzchar(source)) source else "# nothing is pending\n")
  invisible(source)
}

handle_of <- function(x) x@handle

# Computes the matrices of a list, in as few kernels as possible.
force_all <- function(matrices) .Call(r_lazy_eval, unname(matrices))

check_matrices <- function(matrices) {
  for (x in matrices) {
    if (!is_cl(x)) {
      abort_argument("...", sprintf("every argument must be a clMatrix, not %s", describe(x)))
    }
  }
  matrices
}

#' Elementwise choice, minima and maxima
#'
#' `cl_ifelse()` takes each element of the result from `yes` where `test` is not zero and from `no`
#' where it is zero; where `test` is `NA`, so is the result. It is [ifelse()] for device matrices,
#' with two differences: the result stays on the device, whereas `ifelse()` returns a base R matrix;
#' and its shape is determined by all three arguments, like that of the operands of an operator, not
#' by `test` alone. Within [cl_map()] and [cl_reduce()] it takes the place of `if`.
#'
#' `pmin()` and `pmax()` accept `clMatrix` arguments in any position, mixed with numbers, vectors
#' and matrices. Missing values are propagated, or with `na.rm = TRUE` ignored.
#'
#' All are lazy ([lazy]). If all arguments are base R values, they are base R's functions.
#'
#' @aliases pmin pmax
#' @param test,yes,no,... clMatrix objects, base R matrices, vectors or numbers, recycled like the
#'   operands of `+`.
#' @param na.rm Whether to ignore missing values where there is another value.
#' @return A `clMatrix`, or a base R value if all arguments are base R values.
#' @section Errors:
#' `statcl_error_argument` for arguments that are not numeric or do not conform.
#' @export
#' @examples
#' x <- as_cl(matrix(-2:3, 2))
#' as.matrix(cl_ifelse(x > 0, log(x), 0))
#' as.matrix(pmax(x, 0))
cl_ifelse <- function(test, yes, no) {
  if (!is_cl(test) && !is_cl(yes) && !is_cl(no)) return(ifelse_base(test, yes, no))
  ternary("ifelse", test, yes, no, c("test", "yes", "no"))
}

ternary <- function(op, a, b, c, arguments) {
  operands <- list(a, b, c)
  dim <- common_dim(operands, arguments)
  handles <- list(arith_operand(a, dim, arguments[1L]), arith_operand(b, dim, arguments[2L]),
                  arith_operand(c, dim, arguments[3L]))
  value(.Call(r_op, op, handles, NULL, NULL), NULL, common_names(operands, dim))
}

ifelse_base <- function(test, yes, no) {
  test <- check_numeric(test, "test")
  yes <- check_numeric(yes, "yes")
  no <- check_numeric(no, "no")
  shape <- classed(test + 0 * yes + 0 * no, "test") # R's own rules of shapes and names
  shape[] <- ifelse(rep_len(test, length(shape)) != 0, rep_len(yes, length(shape)),
                    rep_len(no, length(shape)))
  shape
}

# ---- pmin, pmax ---------------------------------------------------------------------------------

# Generic functions with the signature that R itself would give them, without "...", so that
# attaching the package does not report masking. One method for all arguments inspects them.
setGeneric("pmin")
setGeneric("pmax")

#' @rdname cl_ifelse
#' @export
setMethod("pmin", "ANY", function(..., na.rm = FALSE) {
  operands <- list(...)
  if (any_cl(operands)) extremes("pmin", operands, na.rm) else base::pmin(..., na.rm = na.rm)
})

#' @rdname cl_ifelse
#' @export
setMethod("pmax", "ANY", function(..., na.rm = FALSE) {
  operands <- list(...)
  if (any_cl(operands)) extremes("pmax", operands, na.rm) else base::pmax(..., na.rm = na.rm)
})

# Whether a clMatrix is among the operands.
any_cl <- function(operands) {
  for (x in operands) if (is_cl(x)) return(TRUE)
  FALSE
}

extremes <- function(op, operands, na.rm) {
  base_function <- if (op == "pmin") base::pmin else base::pmax
  apply_two <- function(op, a, b) {
    if (is_cl(a) || is_cl(b)) return(binary(op, a, b, c("...", "...")))
    base_function(a, b)
  }
  if (!check_flag(na.rm, "na.rm")) {
    return(Reduce(function(a, b) apply_two(op, a, b), operands))
  }
  # Where one of the two is missing, the result is the other one.
  Reduce(function(a, b) {
    if (!is_cl(a) && !is_cl(b)) return(base_function(a, b, na.rm = TRUE))
    apply_two(op, apply_two("fill_nan", a, b), apply_two("fill_nan", b, a))
  }, operands)
}

# ---- the table of operations --------------------------------------------------------------------

#' Operations of generated kernels
#'
#' `cl_operations()` lists the operations, as defined in the package's tables for both engines (in C
#' and OpenCL C), that the operators and functions of [clMatrix-arith] and [cl_map()] are translated
#' to. `cl_op()` applies one by name, including those without an R function.
#'
#' @param name One of `cl_operations()$name` of type `"elementwise"`.
#' @param ... Its operands: clMatrix objects, numbers, base R matrices or vectors; in functions
#'   passed to [cl_map()] and [cl_gradient()] also what they compute with.
#' @return `cl_operations()`: a data frame with columns `name`, `type` (`"elementwise"` or
#'   `"reduction"`), `arity`, `expression` (of `a`, `b`, `c`; for a reduction the expression that
#'   combines `u` and `v`) and `derivative` (with respect to each operand, as a formula in
#'   operations of the table with the value `r` and the derivative `g` with respect to it; `NA` for
#'   reductions). `cl_op()`: a lazy `clMatrix` ([lazy]), or a base R value if all operands are base
#'   R values.
#' @section Errors:
#' `statcl_error_argument` for an unknown name, and for operands that do not conform.
#' @export
#' @examples
#' head(cl_operations()[c("name", "arity", "expression")])
#' cl_op("atan2", 1, c(1, 2))
cl_operations <- function() {
  tables <- .Call(r_expr_ops)
  maps <- tables$operations
  reductions <- tables$reductions
  derivative <- mapply(function(...) paste(c(...)[!is.na(c(...))], collapse = "; "), maps$da,
                       maps$db, maps$dc, USE.NAMES = FALSE)
  derivative <- gsub("unknown\\(\"[^\"]*\"\\)", "unknown", derivative)
  rbind(data.frame(name = maps$name, type = "elementwise", arity = maps$arity,
                   expression = maps$expression, derivative = derivative,
                   stringsAsFactors = FALSE),
        data.frame(name = reductions$name, type = "reduction", arity = 1L,
                   expression = reductions$combine, derivative = NA, stringsAsFactors = FALSE))
}

apply_op <- function(op, operands, arguments) {
  switch(length(operands),
    unary(op, operands[[1L]]),
    binary(op, operands[[1L]], operands[[2L]], arguments),
    ternary(op, operands[[1L]], operands[[2L]], operands[[3L]], arguments))
}

# ---- row and column numbers ---------------------------------------------------------------------

#' Row and column numbers as lazy matrices
#'
#' [row()] and [col()] for a `clMatrix`. They take no memory: `cl_ifelse(cl_row(x) >= cl_col(x), x,
#' 0)` is the lower triangle of `x`.
#'
#' @param x A [clMatrix].
#' @return A lazy `clMatrix` of the shape of `x`, counted from 1.
#' @section Errors:
#' `statcl_error_argument` if `x` is not a `clMatrix`.
#' @export
#' @examples
#' x <- as_cl(matrix(1, 3, 3))
#' as.matrix(cl_row(x) + 10 * cl_col(x))
cl_row <- function(x) index_matrix(x, 1L)

#' @rdname cl_row
#' @export
cl_col <- function(x) index_matrix(x, 2L)

index_matrix <- function(x, margin) {
  if (!is_cl(x)) abort_argument("x", sprintf("'x' must be a clMatrix, not %s", describe(x)))
  value(index_handle(x, margin), x@Dim, NULL, "general")
}

# Row (margin 1) or column numbers in the shape of x, on its engine.
index_handle <- function(x, margin) .Call(r_op, "index", list(), c(margin, x@Dim), x@handle)
