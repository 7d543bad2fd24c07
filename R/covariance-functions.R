# Covariance functions as R objects: leaves, and their sums and products. Their parameters are in
# covariance-parameters.R, covariance matrices in covariance.R.

#' Covariance functions
#'
#' A kernel is the covariance function of a Gaussian process: it gives the covariance of the values
#' at two points x and x'. With the scaled distance \eqn{r = \sqrt{\sum_c ((x_c - x'_c) /
#' \ell_c)^2}}{r = sqrt(sum_c ((x_c - x'_c) / lengthscale_c)^2)} the kernels are
#'
#' | constructor | covariance | sample paths |
#' |---|---|---|
#' | `k_exp_quad()` | sd^2 exp(-r^2 / 2) | infinitely smooth |
#' | `k_matern()` | sd^2 2^(1 - nu) / gamma(nu) u^nu K_nu(u), u = sqrt(2 nu) r | of order nu |
#' | `k_matern52()` | sd^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) | twice differentiable |
#' | `k_matern32()` | sd^2 (1 + sqrt(3) r) exp(-sqrt(3) r) | once differentiable |
#' | `k_exponential()` | sd^2 exp(-r) | continuous, rough |
#' | `k_rational_quadratic()` | sd^2 (1 + r^2 / (2 alpha))^(-alpha) | a mixture of lengthscales |
#' | `k_periodic()` | sd^2 exp(-2 sum_c (sin(pi (x_c - x'_c)/period)/lengthscale_c)^2) | periodic |
#' | `k_linear()` | sum_c sd_c^2 (x_c - center_c) (x'_c - center_c) | linear |
#' | `k_constant()` | sd^2 | an unknown constant |
#' | `k_white()` | sd^2 for an observation with itself, else 0 | noise |
#'
#' (Rasmussen and Williams, 2006, chapter 4; the periodic kernel is MacKay's, equation 4.31 there.
#' K_nu is the modified Bessel function; `k_matern()` with nu of 0.5, 1.5 and 2.5 is one of the
#' others.) [k_factor()] makes kernels of factors.
#' Kernels are added with `+` and multiplied with `*`, nested in any way. A sum is the covariance of
#' a sum of independent processes; `k_periodic() * k_exp_quad()` is periodic with a shape that
#' changes slowly. A product has at most 16 factors. With `columns` a kernel uses only
#' some columns of x.
#'
#' The parameters of a kernel have names: `sd`, `lengthscale` (with one for each column
#' `lengthscale.temperature` and so on, or `lengthscale.1` if the columns have no names; likewise
#' for the `sd` of `k_linear()`), `alpha`, `period`. In a sum or product they are followed by the
#' number of the term, counted from left to right: `sd1`, `lengthscale2.temperature`. To name a
#' parameter, the number of the column also works. `coef()` returns them, `update()` changes them.
#' In a product only the product of the scales is identified, so fits hold all but one of them
#' fixed.
#'
#' Points on the Earth have two `columns`, the longitude and the latitude in degrees, and one
#' lengthscale in km. `distance = "chordal"` is the distance through the Earth (a sphere of radius
#' 6371.0088 km), with which all kernels are valid; it differs little from that along the surface up
#' to some thousand km. `distance = "great_circle"` is the distance along the surface. Only
#' `k_exponential()` accepts it: with smoother functions of it, covariance matrices are not positive
#' definite (Gneiting, 2013).
#'
#' @param sd Standard deviation of the process, in units of y; for `k_linear()` that of the slopes,
#'   one for all columns or one for each.
#' @param lengthscale Distance over which values are strongly correlated, in units of x: one number
#'   for all columns, or one for each (automatic relevance determination), named by column or
#'   without names. For `k_periodic()` it has no unit.
#' @param columns The columns of x that the kernel uses: names or numbers; `NULL` for all.
#' @param alpha Small values mix a wide range of lengthscales; for large values the kernel
#'   approaches `k_exp_quad()`.
#' @param nu Order of the Matern kernel, a constant between 0.01 and 100: paths are differentiable
#'   k times for nu > k. Up to 30, values have 13 digits.
#' @param distance `"euclidean"`, or for points on the Earth `"great_circle"` or `"chordal"`, see
#'   above.
#' @param period Period, in units of x.
#' @param center Where the lines cross zero: one number for all columns, or one for each. It is not
#'   a parameter.
#' @param e1,e2 Kernels.
#' @param object A kernel.
#' @param ... For `update()`: new values of parameters, by name, or one named vector of them.
#' @return A kernel, an object of class `"cl_kernel"`. `coef()`: a named numeric vector.
#' @section Errors:
#' `statcl_error_argument` for parameters that are not positive and finite, and for unknown names.
#' @references
#' Rasmussen, C. E. and Williams, C. K. I. (2006) *Gaussian Processes for Machine Learning*. MIT
#' Press. <https://gaussianprocess.org/gpml/>
#'
#' Gneiting, T. (2013) Strictly and non-strictly positive definite functions on spheres. *Bernoulli*
#' 19, 1327-1349.
#' @seealso [k_user()] for user-defined covariance functions, [cl_cov()], [cl_gp()],
#'   [plot.cl_kernel()]
#' @name kernels
#' @examples
#' k <- k_exp_quad(sd = 2, lengthscale = 10) + k_periodic(period = 1) * k_matern32(lengthscale = 5)
#' k
#' coef(k)
#' k <- update(k, sd1 = 3)
#' cl_cov(c(0, 1, 2), kernel = k)
NULL

#' @rdname kernels
#' @export
k_exp_quad <- function(sd = 1, lengthscale = 1, columns = NULL, distance = "euclidean") {
  stationary_kernel("exp_quad", sd, lengthscale, columns, distance)
}

#' @rdname kernels
#' @export
k_matern <- function(nu, sd = 1, lengthscale = 1, columns = NULL, distance = "euclidean") {
  nu <- check_number(nu, "nu", 0.01, 100)
  at <- match(nu, c(0.5, 1.5, 2.5))
  if (is.na(at)) {
    return(stationary_kernel("matern", sd, lengthscale, columns, distance, nu = nu))
  }
  stationary_kernel(c("exponential", "matern32", "matern52")[at], sd, lengthscale, columns,
                    distance)
}

#' @rdname kernels
#' @export
k_matern52 <- function(sd = 1, lengthscale = 1, columns = NULL, distance = "euclidean") {
  stationary_kernel("matern52", sd, lengthscale, columns, distance)
}

#' @rdname kernels
#' @export
k_matern32 <- function(sd = 1, lengthscale = 1, columns = NULL, distance = "euclidean") {
  stationary_kernel("matern32", sd, lengthscale, columns, distance)
}

#' @rdname kernels
#' @export
k_exponential <- function(sd = 1, lengthscale = 1, columns = NULL, distance = "euclidean") {
  stationary_kernel("exponential", sd, lengthscale, columns, distance)
}

#' @rdname kernels
#' @export
k_rational_quadratic <- function(sd = 1, lengthscale = 1, alpha = 1, columns = NULL) {
  stationary_kernel("rational_quadratic", sd, lengthscale, columns, "euclidean",
                    alpha = check_positive(alpha, "alpha"))
}

# The constructors' formulas of the squared scaled distance, for traced points or parameters; root()
# is the distance.
distance_formulas <- list(
  exp_quad = function(squared, root, term) exp(-0.5 * squared),
  matern52 = function(squared, root, term) {
    r <- sqrt(5) * root()
    (1 + r + 5 / 3 * squared) * exp(-r)
  },
  matern32 = function(squared, root, term) {
    r <- sqrt(3) * root()
    (1 + r) * exp(-r)
  },
  exponential = function(squared, root, term) exp(-root()),
  rational_quadratic = function(squared, root, term) {
    exp(-term$alpha * log1p(squared / (2 * term$alpha)))
  })

#' @rdname kernels
#' @export
k_periodic <- function(sd = 1, lengthscale = 1, period = 1, columns = NULL) {
  stationary_kernel("periodic", sd, lengthscale, columns, "euclidean",
                    period = check_positive(period, "period"))
}

#' @rdname kernels
#' @export
k_linear <- function(sd = 1, columns = NULL, center = 0) {
  columns <- check_columns(columns)
  sd <- check_each(check_positive(sd, "sd", many = TRUE), "sd", columns)
  if (!is.numeric(center) || length(center) == 0L || !all(is.finite(center))) {
    abort_argument("center", "'center' must be a vector of finite numbers")
  }
  center <- check_each(as.double(center), "center", columns)
  new_kernel(list(type = "linear", columns = columns, sd = sd, center = center))
}

#' @rdname kernels
#' @export
k_constant <- function(sd = 1) new_kernel(list(type = "constant", sd = check_positive(sd, "sd")))

#' @rdname kernels
#' @export
k_white <- function(sd = 1) new_kernel(list(type = "white", sd = check_positive(sd, "sd")))

# A kernel is list(terms, program): leaves, and a program in postfix notation that combines them: a
# positive number is a leaf, 0 adds the two preceding results, -1 multiplies them. A leaf is
# list(type, columns, sd, lengthscale, alpha, period, center), without the fields that its type does
# not have.
new_kernel <- function(leaf) {
  structure(list(terms = list(leaf), program = 1L), class = "cl_kernel")
}

stationary_kernel <- function(type, sd, lengthscale, columns, distance = "euclidean", ...) {
  columns <- check_columns(columns)
  distance <- check_distance(distance, type, columns)
  lengthscale <- check_positive(lengthscale, "lengthscale", many = is.null(distance))
  leaf <- list(type = if (identical(distance, "great_circle")) distance else type,
               columns = columns, sd = check_positive(sd, "sd"),
               lengthscale = check_each(lengthscale, "lengthscale", columns), ...)
  leaf$distance <- distance
  new_kernel(leaf)
}

# Checks that there is one value, or one for each column if their number is known.
check_each <- function(x, argument, columns) {
  if (!is.null(columns) && !length(x) %in% c(1L, length(columns))) {
    abort_argument(argument, sprintf("'%s' must have 1 or %d values, not %d", argument,
                                     length(columns), length(x)))
  }
  if (is.character(columns)) name_values(x, columns, argument) else x
}

check_columns <- function(columns) {
  if (is.null(columns)) return(NULL)
  usable <- (is.character(columns) || is.numeric(columns)) && length(columns) > 0L &&
    !anyNA(columns) && !anyDuplicated(columns) &&
    (is.character(columns) || (all(columns >= 1) && all(columns == round(columns))))
  if (!usable) {
    abort_argument("columns", "'columns' must be column names or numbers without duplicates")
  }
  if (is.character(columns)) columns else as.integer(columns)
}

check_kernel <- function(kernel, argument = "kernel") {
  if (inherits(kernel, "cl_kernel")) {
    if (is_whole_kernel(unclass(kernel))) return(kernel)
    abort_argument(argument, sprintf(
      "'%s' is not a valid kernel: make kernels with k_exp_quad() and similar functions", argument))
  }
  abort_argument(argument, sprintf("'%s' must be a kernel such as k_matern52(), not %s", argument,
                                   describe(kernel)))
}

# Whether the kernel has terms and a program that combines all of them into one.
is_whole_kernel <- function(kernel) {
  if (!is.list(kernel) || !is.list(kernel$terms) || !is.numeric(kernel$program)) return(FALSE)
  for (term in kernel$terms) {
    values <- if (is.list(term)) term[intersect(leaf_roles, names(term))] else "none"
    valid <- vapply(values, function(v) is.double(v) || is_traced(v), NA)
    if (!all(valid) || !is.character(term$type)) return(FALSE)
  }
  program <- kernel$program
  height <- cumsum(ifelse(program > 0, 1, -1)) # of the stack
  length(program) > 0L && !anyNA(program) && max(program) <= length(kernel$terms) &&
    min(height) >= 1 && height[length(height)] == 1
}

#' @rdname kernels
#' @export
Ops.cl_kernel <- function(e1, e2) {
  if (!.Generic %in% c("+", "*")) {
    abort_argument("e1", sprintf("'%s' is not defined for kernels, which support only + and *",
                                 .Generic))
  }
  if (nargs() == 1L) return(e1)
  check_kernel(e1, "e1")
  check_kernel(e2, "e2")
  shifted <- ifelse(e2$program > 0L, e2$program + length(e1$terms), e2$program)
  structure(list(terms = c(e1$terms, e2$terms),
                 program = c(e1$program, as.integer(shifted), if (.Generic == "+") 0L else -1L)),
            class = "cl_kernel")
}

# Runs the program: leaf(i) gives the result of a leaf, add(a, b) and multiply(a, b) combine
# results.
run_program <- function(kernel, leaf, add, multiply) {
  stack <- list()
  for (step in kernel$program) {
    if (step > 0L) {
      stack <- c(stack, list(leaf(step)))
    } else {
      last <- length(stack)
      join <- if (step == 0L) add else multiply
      joined <- join(stack[[last - 1L]], stack[[last]])
      stack <- c(stack[seq_len(last - 2L)], list(joined))
    }
  }
  stack[[1L]]
}

# The kernel as a sum of products: a list of vectors of leaves, by multiplying out.
kernel_products <- function(kernel) {
  multiply <- function(a, b) {
    if (length(a) * length(b) > 1000L) {
      abort_argument("kernel", "the kernel, multiplied out, has more than 1000 products")
    }
    unlist(lapply(a, function(u) lapply(b, function(v) c(u, v))), recursive = FALSE)
  }
  run_program(kernel, function(i) list(i), c, multiply)
}

# ---- for people ---------------------------------------------------------------------------------

# One element for each summand.
#' @export
format.cl_kernel <- function(x, digits = 4L, ...) {
  wrap <- function(text) {
    if (length(text) == 1L) text else sprintf("(%s)", paste(text, collapse = " + "))
  }
  run_program(x, function(i) format_leaf(x$terms[[i]], digits), c,
              function(a, b) paste(wrap(a), "*", wrap(b)))
}

format_leaf <- function(leaf, digits) {
  show <- function(v) {
    text <- if (is.character(v)) encodeString(v, quote = "\"") else format_each(v, digits)
    if (!is.null(names(v))) text <- paste(deparse_names(names(v)), "=", text)
    if (length(v) > 1L) sprintf("c(%s)", paste(text, collapse = ", ")) else text
  }
  if (!is.null(leaf$rank)) {
    return(sprintf("k_factor(%s, \"low_rank\", rank = %d)", show(leaf$columns), leaf$rank))
  }
  if (leaf$type == "user") {
    return(sprintf("k_user(f, c(%s))", paste(names(leaf$par), "=", format_each(leaf$par, digits),
                                             collapse = ", ")))
  }
  if (identical(leaf$center, 0)) leaf$center <- NULL
  if (leaf$type == "gower" && isTRUE(leaf$mixed)) leaf$kind <- "gower"
  fields <- leaf[intersect(c("nu", "sd", "lengthscale", "alpha", "period", "columns", "distance",
                             "kind", "center"), names(leaf)[lengths(leaf) > 0L])]
  names(fields)[names(fields) == "kind"] <- "type"
  name <- switch(leaf$type, great_circle = "exponential", gower = "factor", leaf$type)
  sprintf("k_%s(%s)", name,
          paste(names(fields), "=", vapply(fields, show, ""), collapse = ", "))
}

deparse_names <- function(names) {
  ifelse(make.names(names) == names | grepl("^`", names), names, encodeString(names, quote = "`"))
}

format_each <- function(v, digits = 4L) vapply(v, function(u) format(u, digits = digits), "")

#' @export
print.cl_kernel <- function(x, digits = 4L, ...) {
  cat(paste(format(x, digits = digits), collapse = " +\n  "), "\n", sep = "")
  invisible(x)
}
