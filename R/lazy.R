# Lazy arithmetic as users see it: computing several results at once, choices by element, showing
# what is pending.

#' Lazy arithmetic and fused kernels
#'
#' Arithmetic of a [clMatrix] does not compute: it notes what is to be done and returns at once.
#' Whatever needs numbers (a summary such as `sum()`, a product or factor, `as.matrix()`) runs one
#' kernel, made for the whole expression, that reads each matrix once and writes the result once.
#' Intermediate results do not exist. A value once computed is kept; expressions that share a part
#' compute it once within a kernel. Printing such a matrix computes the rows and columns that it
#' shows, and shows the pending expression if there are more.
#'
#' `cl_eval()` computes several matrices at once, in one kernel where they have one shape, or are
#' reductions ([cl_reduce()]) of expressions of one shape. `cl_show_kernel()` shows the source of
#' the kernel that would be run: C generated from the graph of operations. Numbers, sizes and places
#' are its arguments, so that it is compiled once for all expressions of one structure.
#'
#' Lazy are: the operators and mathematical functions of [clMatrix-arith], [cl_ifelse()],
#' `pmin()`, `pmax()`, `t()`, blocks `x[i, j]` and `x[i, j] <- value` of consecutive rows and
#' columns, row and column numbers ([cl_row()]), products `x %*% b` with one column `b`, and
#' [cl_map()] and [cl_reduce()] of a `clMatrix`.
#'
#' Without a device the host engine runs the same graph, in blocks that fit the processor's cache,
#' on several cores.
#'
#' @param ... clMatrix objects, pending or not.
#' @return `cl_eval()`: a list of the matrices, with their values, under the names given;
#'   invisibly. (The matrices given have their values then, too.) `cl_show_kernel()`: the source, a
#'   string, invisibly; an empty one if nothing is pending.
#' @section Errors:
#' `statcl_error_argument` for what is not a `clMatrix`. Faults of the computation itself
#' (`statcl_error_memory`, ...) come from the function that needs the values.
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
force_all <- function(matrices) .Call(r_expr_eval, lapply(unname(matrices), handle_of))

check_matrices <- function(matrices) {
  for (x in matrices) {
    if (!is_cl(x)) {
      abort_argument("...", sprintf("every argument must be a clMatrix, not %s", describe(x)))
    }
  }
  matrices
}

#' Choice and extremes by element
#'
#' `cl_ifelse()` takes each element of the result from `yes` where `test` is not zero and from `no`
#' where it is; where `test` is `NA`, so is the result. It is [ifelse()] for device matrices, with
#' two differences: the result stays on the device, where that of `ifelse()` is a base R matrix; and
#' all three arguments shape it, as the operands of an operator do, and not `test` alone. Within
#' [cl_map()] and [cl_reduce()] it stands for `if`.
#'
#' `pmin()` and `pmax()` take `clMatrix` arguments in any place among numbers, vectors and matrices.
#' Missing values are passed on, or with `na.rm = TRUE` left out.
#'
#' All are lazy ([lazy]). With base R arguments alone they are base R's functions.
#'
#' @aliases pmin pmax
#' @param test,yes,no,... clMatrix objects, base R matrices, vectors, numbers; as operands of `+`.
#' @param na.rm whether missing values are left out where there is another one.
#' @return A `clMatrix`, or a base R value if all arguments are base R.
#' @section Errors:
#' `statcl_error_argument` for arguments that are not numeric or do not conform.
#' @export
#' @examples
#' x <- as_cl(matrix(-2:3, 2))
#' as.matrix(cl_ifelse(x > 0, log(x), 0))
#' as.matrix(pmax(x, 0))
cl_ifelse <- function(test, yes, no) {
  if (is_element(test) || is_element(yes) || is_element(no)) {
    return(element_apply("ifelse", list(test, yes, no), c("test", "yes", "no")))
  }
  if (!is_cl(test) && !is_cl(yes) && !is_cl(no)) return(ifelse_base(test, yes, no))
  ternary("ifelse", test, yes, no, c("test", "yes", "no"))
}

ternary <- function(op, a, b, c, arguments) {
  operands <- list(a, b, c)
  dim <- common_dim(operands, arguments)
  value(.Call(r_expr_ternary, op, arith_operand(a, dim, arguments[1L]),
              arith_operand(b, dim, arguments[2L]), arith_operand(c, dim, arguments[3L])), NULL,
        common_names(operands, dim))
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

# Generic functions with the signature that R gives them by itself, without "...": so attaching the
# package masks nothing with a message. One method for all arguments looks at them.
setGeneric("pmin")
setGeneric("pmax")

#' @rdname cl_ifelse
#' @export
setMethod("pmin", "ANY", function(..., na.rm = FALSE) {
  operands <- list(...)
  if (any_own(operands)) extremes("pmin", operands, na.rm) else base::pmin(..., na.rm = na.rm)
})

#' @rdname cl_ifelse
#' @export
setMethod("pmax", "ANY", function(..., na.rm = FALSE) {
  operands <- list(...)
  if (any_own(operands)) extremes("pmax", operands, na.rm) else base::pmax(..., na.rm = na.rm)
})

# Whether a clMatrix or an element is among the operands.
any_own <- function(operands) {
  for (x in operands) if (is_cl(x) || is_element(x)) return(TRUE)
  FALSE
}

extremes <- function(op, operands, na.rm) {
  kind <- if (any(vapply(operands, is_element, NA))) "element" else "matrix"
  base_function <- if (op == "pmin") base::pmin else base::pmax
  apply_two <- function(op, a, b) {
    if (kind == "element") return(element_apply(op, list(a, b), c("...", "...")))
    if (is_cl(a) || is_cl(b)) return(binary(op, a, b, c("...", "...")))
    base_function(a, b)
  }
  if (!check_flag(na.rm, "na.rm")) {
    return(Reduce(function(a, b) apply_two(op, a, b), operands))
  }
  # Where one of both is missing the other one stands for it.
  Reduce(function(a, b) {
    if (kind == "matrix" && !is_cl(a) && !is_cl(b)) return(base_function(a, b, na.rm = TRUE))
    apply_two(op, apply_two("fill_nan", a, b), apply_two("fill_nan", b, a))
  }, operands)
}

# ---- the table of operations --------------------------------------------------------------------

#' The operations that kernels are made of
#'
#' `cl_operations()` lists them, as the tables of the package define them for both engines (in C and
#' OpenCL C): what operators and functions of [clMatrix-arith] and [cl_map()] become. `cl_op()`
#' applies one by name, also those that no function of R stands for.
#'
#' @param name one of `cl_operations()$name` of type `"elementwise"`.
#' @param ... its operands: clMatrix objects, numbers, base R matrices or vectors, or elements
#'   within the functions of [cl_map()].
#' @return `cl_operations()`: a data frame with columns `name`, `type` (`"elementwise"` or
#'   `"reduction"`), `arity`, `expression` (of `a`, `b`, `c`; of a reduction the one that combines
#'   `u` and `v`) and `derivative` (by each operand; `r` is the value; `NA` for reductions).
#'   `cl_op()`: a lazy `clMatrix` ([lazy]), or a base R value if all operands are base R.
#' @section Errors:
#' `statcl_error_argument` for a name that is not in the table, and for operands that do not fit.
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
  rbind(data.frame(name = maps$name, type = "elementwise", arity = maps$arity,
                   expression = maps$expression, derivative = derivative,
                   stringsAsFactors = FALSE),
        data.frame(name = reductions$name, type = "reduction", arity = 1L,
                   expression = reductions$combine, derivative = NA, stringsAsFactors = FALSE))
}

#' @rdname cl_operations
#' @export
cl_op <- function(name, ...) {
  operands <- list(...)
  table <- .Call(r_expr_ops)$operations
  row <- if (is.character(name) && length(name) == 1L) match(name, table$name) else NA
  if (is.na(row)) abort_argument("name", "'name' must be an operation of cl_operations()")
  if (length(operands) != table$arity[row]) {
    abort_argument("...", sprintf("'%s' takes %d operands, not %d", name, table$arity[row],
                                  length(operands)))
  }
  arguments <- rep_len("...", length(operands))
  if (any(vapply(operands, is_element, NA))) return(element_apply(name, operands, arguments))
  if (any(vapply(operands, is_cl, NA))) return(apply_op(name, operands, arguments))
  f <- function(...) element_apply(name, list(...), arguments)
  do.call(cl_map, c(list(f), unname(operands)), quote = TRUE)
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
#' [row()] and [col()] of a `clMatrix`, which take no memory: `cl_ifelse(cl_row(x) >= cl_col(x), x,
#' 0)` is the lower triangle of `x`.
#'
#' @param x a [clMatrix].
#' @return A lazy `clMatrix` of the shape of `x`, counted from 1.
#' @section Errors:
#' `statcl_error_argument` if `x` is not a `clMatrix`.
#' @export
#' @examples
#' x <- as_cl(matrix(1, 3, 3))
#' as.matrix(cl_row(x) + 10 * cl_col(x))
cl_row <- function(x) places(x, 1L)

#' @rdname cl_row
#' @export
cl_col <- function(x) places(x, 2L)

places <- function(x, margin) {
  if (!is_cl(x)) abort_argument("x", sprintf("'x' must be a clMatrix, not %s", describe(x)))
  value(.Call(r_expr_index, x@handle, margin), x@Dim, NULL, "general")
}
