# Covariance matrices of kernels, and which columns of x a kernel uses.

#' Covariance matrices
#'
#' `cl_cov()` evaluates a kernel at all pairs of rows of `x1` and `x2`. Distances are computed from
#' differences, never from inner products, so that points close to each other do not lose digits.
#' Nothing is added to the diagonal except the kernel's own white-noise terms, and these only if
#' `x2` is `NULL`; a matrix that is numerically singular is returned as it is.
#'
#' `cl_cov_adjoint()` is the reverse mode. From `k_adj` = dF/dK it computes the derivatives of F
#' with respect to the parameters of the kernel, and optionally with respect to the points. Where
#' the covariance is not differentiable, as for [k_exponential()] at distance zero, the derivative
#' with respect to the points is set to 0.
#'
#' With base R input the engine is chosen by size ([cl_thresholds()], entry `covariance`: the number
#' of rows, or the geometric mean of rows and columns).
#'
#' @param x1,x2 Points in rows: numeric matrices, data frames or `clMatrix` objects; a vector is one
#'   column. `x2 = NULL` stands for `x1`.
#' @param kernel A kernel, see [kernels].
#' @param k_adj dF/dK, a matrix of the size of K; symmetric if `x2` is `NULL` (its lower triangle is
#'   read).
#' @param inputs Whether to compute the derivatives with respect to the points too.
#' @return `cl_cov()`: a matrix with one row for each row of `x1` and one column for each row of
#'   `x2`, with their names; base R if both are base R, otherwise a `clMatrix`, with view
#'   `"symmetric"` for `x2 = NULL`. `cl_cov_adjoint()`: a numeric vector with the names of
#'   `coef(kernel)`; with `inputs = TRUE` a list of this vector (`parameters`) and of matrices with
#'   the shapes of `x1` and `x2` (for `x2 = NULL`, `x1` holds the derivative with respect to the
#'   points as rows and columns of K).
#' @section Errors:
#' `statcl_error_argument` for different numbers of columns, for columns that `x1` does not have,
#' for lengthscales that do not match the columns or are below 5.6e-309, and for points so large
#' that intermediate values overflow.
#' @seealso [kernels] for the formulas
#' @export
#' @examples
#' x <- matrix(runif(10), 5, dimnames = list(letters[1:5], c("u", "v")))
#' cl_cov(x, kernel = k_matern52(sd = 2, lengthscale = c(0.5, 1)))
#' cl_cov(x[1:2, ], x[3:5, ], k_exp_quad(columns = "v") * k_linear(columns = "u"))
#'
#' # d sum(K) / d parameters
#' cl_cov_adjoint(matrix(1, 5, 5), x, kernel = k_matern52())
cl_cov <- function(x1, x2 = NULL, kernel) {
  kernel <- check_kernel(kernel)
  a <- covariance_input(x1, "x1")
  b <- if (is.null(x2)) NULL else covariance_input(x2, "x2", a$p)
  if (has_user(kernel)) {
    return(user_covariance(kernel, user_points(x1), if (!is.null(x2)) user_points(x2)))
  }
  check_reach(kernel, a, "x1", x1)
  check_reach(kernel, b, "x2", x2)
  layout <- kernel_layout(kernel, a$p, a$columns)
  a$x <- kernel_input(kernel, a$x, x1, a$columns)
  if (!is.null(b)) b$x <- kernel_input(kernel, b$x, x2, a$columns)
  where <- if (any_handle(a$x, b$x)) -1L else
    where_for("covariance", geometric_mean(a$n, b$n), kind = covariance_kind("matrix", layout, a$p))
  values <- layout_values(layout, c(kernel_values(kernel), 0))
  result <- call_on(where, r_covariance_matrix, a$x, b$x, layout$c, values)
  dim <- c(a$n, if (is.null(b)) a$n else b$n)
  value(result, dim, list(a$names, if (is.null(b)) a$names else b$names),
        if (is.null(b)) "symmetric" else "general")
}

covariance_kind <- function(what, layout, columns) {
  paste(c(what, layout$count, columns, layout$c[[1L]]), collapse = " ")
}

#' @rdname cl_cov
#' @export
cl_cov_adjoint <- function(k_adj, x1, x2 = NULL, kernel, inputs = FALSE) {
  kernel <- check_kernel(kernel)
  check_flag(inputs, "inputs")
  a <- covariance_input(x1, "x1")
  b <- if (is.null(x2)) NULL else covariance_input(x2, "x2", a$p)
  if (has_user(kernel)) {
    if (inputs) {
      abort_argument("inputs", paste("'inputs' must be FALSE: derivatives with respect to the",
                                     "points are not available for k_user()"))
    }
    return(user_adjoint(kernel, k_adj, user_points(x1), if (!is.null(x2)) user_points(x2)))
  }
  check_reach(kernel, a, "x1", x1)
  check_reach(kernel, b, "x2", x2)
  layout <- kernel_layout(kernel, a$p, a$columns)
  a$x <- kernel_input(kernel, a$x, x1, a$columns)
  if (!is.null(b)) b$x <- kernel_input(kernel, b$x, x2, a$columns)
  parameters <- coef(kernel)
  adjoint <- operand(k_adj, "k_adj", vector = FALSE)
  where <- if (any_handle(adjoint, a$x, b$x)) -1L else
    where_for("covariance", geometric_mean(a$n, b$n),
              kind = covariance_kind("adjoint", layout, c(a$p, inputs)))
  values <- layout_values(layout, c(parameters, 0))
  by_log <- call_on(where, r_covariance_adjoint, adjoint, a$x, b$x, layout$c, values)
  gradient <- layout_gradient(layout, by_log)[seq_along(parameters)] / parameters
  if (!inputs) return(gradient)
  wide <- a$p + 3L * NROW(sphere_pairs(kernel, a$p, a$columns))
  by_points <- function(adjoint, a, b, x) {
    result <- call_on(where, r_covariance_inputs, adjoint, a$x, b$x, layout$c, values,
                      any_handle(a$x))
    if (wide == a$p) return(value(result, c(a$n, a$p), list(a$names, a$columns), "general"))
    slope <- sphere_slopes(kernel, value(result, c(a$n, wide), list(NULL, NULL), "general"),
                           as.matrix(x), a$columns)
    dimnames(slope) <- list(a$names, a$columns)
    slope
  }
  result <- list(parameters = gradient, x1 = by_points(adjoint, a, b, x1))
  if (!is.null(b)) {
    result$x2 <- by_points(operand(t(k_adj), "k_adj", vector = FALSE), b, a, x2)
  }
  result
}

# Types whose values do not become 0 when squared distances or products overflow.
far_types <- c("rational_quadratic", "linear")

# Raises an error if an intermediate value would overflow at these points (from covariance_input()).
# For a clMatrix this waits for the device, so it is checked only if the kernel has such a type.
check_reach <- function(kernel, points, argument, x) {
  far <- Filter(function(term) term$type %in% far_types, kernel$terms)
  if (is.null(points) || points$n * points$p == 0 || (is_cl(x) && length(far) == 0L)) return()
  values <- if (is_cl(x)) range(x) else points$x
  values <- values[is.finite(values)]
  if (length(values) == 0L) return()
  size <- max(abs(range(values)))
  if (size > .Machine$double.xmax / 2) {
    abort_argument(argument, sprintf("'%s' has absolute values above 8.9e307: distances overflow",
                                     argument))
  }
  for (term in far) {
    reach <- if (term$type == "linear") (size + max(abs(term$center))) * max(term$sd) else
      2 * size / min(term$lengthscale)
    if (reach > 1e150) {
      abort_argument(argument, sprintf(paste("'%s' has absolute values up to %.2g, so squares",
                                             "overflow in k_%s() with these parameters: rescale",
                                             "the columns of the points"),
                                       argument, size, term$type))
    }
  }
}

# Prior variances k(x, x) at the rows of a base matrix, without white terms.
kernel_variance <- function(kernel, x) {
  if (has_user(kernel)) return(user_variance(kernel, x))
  layout <- kernel_layout(kernel, ncol(x), colnames(x))
  .Call(r_covariance_variances, kernel_points(kernel, x), layout$c,
        layout_values(layout, c(kernel_values(kernel), 0)))
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
  if (length(shape) != 2L) shape <- dim(x)
  if (!is.null(p) && shape[2L] != p) {
    abort_argument(argument, sprintf("'%s' has %d columns, but the other points have %d", argument,
                                     shape[2L], p))
  }
  list(x = x, n = shape[1L], p = shape[2L], columns = columns, names = rows)
}
