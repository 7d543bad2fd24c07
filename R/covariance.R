# Covariance matrices, and how a kernel meets the columns of x.

#' Covariance matrices
#'
#' `cl_cov()` evaluates a kernel at all pairs of rows of `x1` and `x2`. Distances are taken from
#' differences, never from inner products, so that points close to each other lose no digits.
#' Nothing is added to the diagonal: a matrix that is singular but for rounding stays so.
#'
#' `cl_cov_adjoint()` is its reverse mode: from `k_adj` = dF/dK it gives the derivatives of F by the
#' kernel's parameters.
#'
#' With base R input the engine is chosen by the number of rows ([cl_thresholds()], entry
#' `covariance`).
#'
#' @param x1,x2 points in rows: numeric matrices, data frames or `clMatrix`; a vector is one column.
#'   `x2 = NULL` stands for `x1`.
#' @param kernel a kernel, see [kernels].
#' @param k_adj dF/dK, a matrix of the size of K; symmetric if `x2` is `NULL` (its lower triangle is
#'   read).
#' @return `cl_cov()`: a matrix with a row for each row of `x1` and a column for each row of `x2`,
#'   named after those; base R if both are base R, else a `clMatrix`, with view `"symmetric"` for
#'   `x2 = NULL`. `cl_cov_adjoint()`: a numeric vector with the names of `coef(kernel)`.
#' @section Errors:
#' `statcl_error_argument` for different numbers of columns, for columns that `x1` does not have,
#' and for lengthscales that do not fit them.
#' @seealso [kernels] for the formulas
#' @export
#' @examples
#' x <- matrix(runif(10), 5, dimnames = list(letters[1:5], c("u", "v")))
#' cl_cov(x, kernel = k_matern52(sd = 2, lengthscale = c(0.5, 1)))
#' cl_cov(x[1:2, ], x[3:5, ], k_exp_quad(columns = "v"))
#'
#' # d sum(K) / d parameters
#' cl_cov_adjoint(matrix(1, 5, 5), x, kernel = k_matern52())
cl_cov <- function(x1, x2 = NULL, kernel) {
  kernel <- check_kernel(kernel)
  a <- covariance_input(x1, "x1")
  b <- if (is.null(x2)) NULL else covariance_input(x2, "x2", a$p)
  layout <- kernel_layout(kernel, a$p, a$columns)
  where <- if (any_handle(a$x, b$x)) -1L else where_for("covariance", max(a$n, b$n))
  values <- layout_values(layout, kernel_values(kernel), 0)
  result <- .Call(r_covariance_matrix, a$x, b$x, layout$c, values, where)
  dim <- c(a$n, if (is.null(b)) a$n else b$n)
  value(result, dim, list(a$names, if (is.null(b)) a$names else b$names),
        if (is.null(b)) "symmetric" else "general")
}

#' @rdname cl_cov
#' @export
cl_cov_adjoint <- function(k_adj, x1, x2 = NULL, kernel) {
  kernel <- check_kernel(kernel)
  a <- covariance_input(x1, "x1")
  b <- if (is.null(x2)) NULL else covariance_input(x2, "x2", a$p)
  layout <- kernel_layout(kernel, a$p, a$columns)
  parameters <- coef(kernel)
  where <- where_for("covariance", max(a$n, b$n))
  by_log <- .Call(r_covariance_adjoint, operand(k_adj, "k_adj", vector = FALSE), a$x, b$x,
                  layout$c, layout_values(layout, parameters, 0), where)
  gradient <- layout_gradient(layout, by_log)
  gradient[seq_along(parameters)] / parameters
}

# Points as .Call takes them, with their shape and names; `p`: the columns they must have.
covariance_input <- function(x, argument, p = NULL) {
  if (is_cl(x) && (is.null(p) || x@Dim[2L] == p)) {
    names <- x@Dimnames
    return(list(x = x@handle, n = x@Dim[1L], p = x@Dim[2L], columns = names[[2L]],
                names = names[[1L]]))
  }
  columns <- if (is.data.frame(x)) names(x) else colnames(x)
  rows <- if (is.null(dim(x))) names(x) else if (!is.data.frame(x)) rownames(x) else
    if (.row_names_info(x) > 0L) row.names(x)
  shape <- dim(x)
  x <- operand(x, argument)
  if (is.null(shape)) shape <- dim(x)
  if (!is.null(p) && shape[2L] != p) {
    abort_argument(argument, sprintf("'%s' has %d columns, not %d as the other points", argument,
                                     shape[2L], p))
  }
  list(x = x, n = shape[1L], p = shape[2L], columns = columns, names = rows)
}

# ---- the kernel's parameters and the columns of x -----------------------------------------------

# How the parameters of coef(kernel) and the noise become the values that C takes: the sd of each
# term, the lengthscale of each entry (a column of a term), the noise. `c` is what C needs besides.
kernel_layout <- function(kernel, p, column_names = NULL) {
  if (p == 0L) abort_argument("x", "the points have no columns")
  entries <- integer()
  columns <- integer()
  sd_at <- integer()
  lengthscale_at <- integer()
  next_at <- 1L
  for (term in kernel$terms) {
    used <- find_columns(term$columns, p, column_names)
    count <- length(term$lengthscale)
    if (!count %in% c(1L, length(used))) {
      abort_argument("kernel", sprintf(
        "'lengthscale' has %d values, but k_%s() looks at %d columns", count, term$type,
        length(used)))
    }
    entries <- c(entries, length(used))
    columns <- c(columns, used)
    sd_at <- c(sd_at, next_at)
    lengthscale_at <- c(lengthscale_at, next_at + rep_len(seq_len(count), length(used)))
    next_at <- next_at + 1L + count
  }
  list(c = list(vapply(kernel$terms, `[[`, "", "type"), entries, columns),
       sd_at = sd_at, lengthscale_at = lengthscale_at, at = c(sd_at, lengthscale_at, next_at),
       count = next_at)
}

find_columns <- function(columns, p, column_names) {
  if (is.null(columns)) return(seq_len(p))
  found <- if (is.character(columns)) match(columns, column_names) else columns
  missing <- columns[is.na(found) | found > p]
  if (length(missing) > 0L) {
    has <- if (is.null(column_names)) sprintf("%d columns without names", p) else
      paste("columns", paste(column_names, collapse = ", "))
    abort_argument("kernel", sprintf("the kernel looks at column '%s'; the points have %s",
                                     missing[1L], has))
  }
  as.integer(found)
}

# Values for C from the parameters, in the order of coef(kernel), and the noise.
layout_values <- function(layout, parameters, noise) c(unname(parameters), noise)[layout$at]

# The other way: derivatives by the logarithms of the parameters, the noise last, from those by the
# values.
layout_gradient <- function(layout, by_values) {
  if (length(layout$at) == layout$count) {
    gradient <- by_values
    gradient[layout$at] <- by_values
    return(gradient)
  }
  gradient <- numeric(layout$count)
  for (i in seq_along(by_values)) {
    gradient[layout$at[i]] <- gradient[layout$at[i]] + by_values[i]
  }
  gradient
}
