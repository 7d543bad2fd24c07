# Transforms of constrained parameters to the real line, with their Jacobians, for cl_sample().
#
# A transform is a list of class "cl_transform":
#   label      description for print()
#   size       function(n): how many unconstrained numbers n constrained ones need
#   inside     function(x): whether x is in the interior of the set of valid values
#   free       function(x): the unconstrained value
#   value      function(u): the constrained value
#   jacobian   function(u, x): log |d x / d u|
#   pull       function(u, x, slope): the gradient of F with respect to x -> of F + jacobian by u
#   flags      function(x): for traced values, 1 where x is inside, else 0, as far as rounding may
#              put it on the border and jacobian does not detect it
#   each       whether value() works element by element, so that it takes a matrix
#   lower, upper  bounds of the constrained numbers

#' Transforms for constrained parameters
#'
#' Transforms for [cl_sample()]. The sampler moves on the unconstrained scale and calls the log
#' density with constrained values. It adds the log Jacobian determinant, so that the draws follow
#' the density that the function returns *for the constrained parameters*.
#'
#' With unconstrained numbers \eqn{u}{u}, the constrained values \eqn{x}{x} and log Jacobian
#' determinants are:
#' - `cl_lower(l)`, above l: \eqn{x = l + e^u}{x = l + exp(u)}, \eqn{\sum u}{sum(u)};
#' - `cl_upper(h)`, below h: \eqn{x = h - e^u}{x = h - exp(u)}, \eqn{\sum u}{sum(u)};
#' - `cl_bounds(l, h)`, between l and h: \eqn{x = l + (h - l) p}{x = l + (h - l) p} with \eqn{p = 1
#'   / (1 + e^{-u})}{p = 1 / (1 + exp(-u))}, \eqn{\sum \log ((h - l) p (1 - p))}{sum(log((h - l) p
#'   (1 - p)))};
#' - `cl_ordered()`, increasing: \eqn{x_1 = u_1}{x[1] = u[1]}, \eqn{x_i = x_{i-1} + e^{u_i}}{x[i] =
#'   x[i - 1] + exp(u[i])}, \eqn{u_2 + \dots + u_n}{u[2] + ... + u[n]};
#' - `cl_positive_ordered()`, increasing and positive: \eqn{x_1 = e^{u_1}}{x[1] = exp(u[1])}, the
#'   others as above, \eqn{\sum u}{sum(u)};
#' - `cl_simplex()`, positive with sum 1: \eqn{x}{x} is proportional to \eqn{e^{V u}}{exp(V u)},
#'   \eqn{\sum \log x + \frac{1}{2} \log n}{sum(log(x)) + log(n) / 2};
#' - `cl_zero_sum()`, with sum 0: \eqn{x = V u}{x = V u}, 0;
#' - `cl_unit_vector()`, with sum of squares 1: \eqn{x = u / |u|}{x = u / sqrt(sum(u^2))},
#'   \eqn{-\frac{1}{2} \sum u^2}{-sum(u^2) / 2}.
#'
#' Matrices, such as `diag(3)` in `init`, have transforms too. All elements of such a matrix are
#' parameters, including constant ones and those that occur twice.
#' - `cl_corr_factor()`, the lower Cholesky factor L of a correlation matrix: with
#'   \eqn{z_{ij} = \tanh u_{ij}}{z[i, j] = tanh(u[i, j])} for i > j and what is left of row i,
#'   \eqn{s_{ij} = \sqrt{1 - \sum_{k < j} L_{ik}^2}}{s[i, j] = sqrt(1 - sum(L[i, 1:(j - 1)]^2))},
#'   \eqn{L_{ij} = z_{ij} s_{ij}}{L[i, j] = z[i, j] s[i, j]} and \eqn{L_{ii} = s_{ii}}{L[i, i] =
#'   s[i, i]}, \eqn{\sum_{i > j} \log (1 - z_{ij}^2) + \log s_{ij}}{the sum of log(1 - z[i, j]^2) +
#'   log(s[i, j]) over i > j};
#' - `cl_corr_matrix()`, a correlation matrix of order K: \eqn{L L'}{L L'} of this factor,
#'   \eqn{\sum_k (K - k) \log L_{kk}}{sum((K - k) log(L[k, k]))} more;
#' - `cl_cov_matrix()`, a covariance matrix of order K: \eqn{L L'}{L L'} of a lower triangular L
#'   with \eqn{L_{kk} = e^{u_{kk}}}{L[k, k] = exp(u[k, k])}, \eqn{K \log 2 + \sum_k (K - k + 2)
#'   u_{kk}}{K log(2) + sum((K - k + 2) u[k, k])}.
#'
#' The density of a correlation matrix or factor is with respect to the elements below the diagonal,
#' that of a covariance matrix with respect to its lower triangle, that of a unit vector with
#' respect to the surface of the sphere. The log density returns derivatives with respect to all
#' elements of the matrix. These transforms, and that of unit vectors, are those of Stan (*Stan
#' Reference Manual*, chapter "Constraint Transforms"; Lewandowski, Kurowicka and Joe, 2009,
#' *Journal of Multivariate Analysis* 100).
#'
#' In the terms of Stan's declarations: `<lower=l>` is `cl_lower(l)`, `<upper=h>` `cl_upper(h)`,
#' `<lower=l, upper=h>` `cl_bounds(l, h)`; `ordered` is `cl_ordered()`, `positive_ordered`
#' `cl_positive_ordered()`, `simplex` `cl_simplex()`, `sum_to_zero_vector` `cl_zero_sum()`,
#' `unit_vector` `cl_unit_vector()`, `cholesky_factor_corr` `cl_corr_factor()`, `corr_matrix`
#' `cl_corr_matrix()` and `cov_matrix` `cl_cov_matrix()`. Densities are with respect to the same
#' elements as in Stan.
#'
#' For the simplex and the zero sum in n dimensions, \eqn{V}{V} has n - 1 orthonormal columns that
#' are orthogonal to (1, ..., 1): the isometric log-ratio transform of Egozcue et al. (2003,
#' *Mathematical Geology* 35), which is symmetric in all elements. The density of a simplex is with
#' respect to the first n - 1 elements.
#'
#' @param lower,upper Bounds: one number, or one for each element of the parameter. For
#'   `cl_bounds()` they may be infinite.
#' @return An object of class `"cl_transform"` for the argument `transform` of [cl_sample()].
#' @section Errors:
#' `statcl_error_argument` if the bounds are not numbers, or not in increasing order.
#' @seealso [cl_sample()]
#' @name transforms
#' @examples
#' # A standard deviation with an exponential prior
#' density <- function(x) structure(-2 * x, gradient = -2)
#' fit <- cl_sample(density, init = c(sd = 1), transform = cl_lower(0), chains = 1, warmup = 200,
#'                  iter = 300, seed = 1)
#' range(as.matrix(fit))
#'
#' # Correlations of three variables
#' y <- scale(as.matrix(trees))
#' f <- cl_gradient(function(R) sum(dmvnorm(y, 0, R, log = TRUE)))
#' fit <- cl_sample(f, init = list(R = diag(3)), transform = list(R = cl_corr_matrix()), chains = 1,
#'                  warmup = 200, iter = 300, seed = 1)
#' colMeans(as.matrix(fit))[c("R[2,1]", "R[3,1]", "R[3,2]")]
NULL

#' @rdname transforms
#' @export
cl_lower <- function(lower = 0) {
  lower <- check_bound(lower, "lower")
  new_transform(sprintf("above %s", bound_text(lower)),
                inside = function(x) all(x > lower),
                free = function(x) log(x - lower),
                value = function(u) lower + exp(u),
                jacobian = function(u, x) sum(u),
                pull = function(u, x, slope) slope * exp(u) + 1, bounds = length(lower),
                flags = function(x) (x > lower) * (x < Inf), each = TRUE, lower = lower)
}

#' @rdname transforms
#' @export
cl_upper <- function(upper) {
  upper <- check_bound(upper, "upper")
  new_transform(sprintf("below %s", bound_text(upper)),
                inside = function(x) all(x < upper),
                free = function(x) log(upper - x),
                value = function(u) upper - exp(u),
                jacobian = function(u, x) sum(u),
                pull = function(u, x, slope) 1 - slope * exp(u), bounds = length(upper),
                flags = function(x) (x < upper) * (x > -Inf), each = TRUE, upper = upper)
}

#' @rdname transforms
#' @export
cl_bounds <- function(lower, upper) {
  lower <- check_bound(lower, "lower", infinite = TRUE)
  upper <- check_bound(upper, "upper", infinite = TRUE)
  n <- max(length(lower), length(upper))
  if (!length(lower) %in% c(1L, n) || !length(upper) %in% c(1L, n)) {
    abort_argument("upper", sprintf("'lower' has length %d, but 'upper' has length %d",
                                    length(lower), length(upper)))
  }
  if (any(lower >= upper)) abort_argument("upper", "'upper' must be greater than 'lower'")
  open_below <- is.infinite(lower)
  open_above <- is.infinite(upper)
  if (all(open_below & open_above)) return(new_identity(n))
  if (all(open_above) && !any(open_below)) return(cl_lower(lower))
  if (all(open_below) && !any(open_above)) return(cl_upper(upper))
  if (any(open_below | open_above)) {
    abort_argument("lower", "a bound must be finite for all elements or infinite for all")
  }
  width <- upper - lower
  new_transform(sprintf("between %s and %s", bound_text(lower), bound_text(upper)),
                inside = function(x) all(x > lower & x < upper),
                free = function(x) log(x - lower) - log(upper - x),
                value = function(u) lower + width * stats::plogis(u),
                jacobian = function(u, x) {
                  sum(log(width) + stats::plogis(u, log.p = TRUE) + stats::plogis(-u, log.p = TRUE))
                },
                pull = function(u, x, slope) {
                  slope * width * stats::dlogis(u) + stats::plogis(-u) - stats::plogis(u)
                }, flags = function(x) (x > lower) * (x < upper), each = TRUE, bounds = n,
                lower = lower, upper = upper)
}

#' @rdname transforms
#' @export
cl_ordered <- function() {
  new_transform("increasing",
                inside = function(x) all(diff(x) > 0),
                free = function(x) c(x[1L], log(diff(x)))[seq_along(x)],
                value = function(u) cumsum(c(u[1L], exp(u[-1L]))),
                jacobian = function(u, x) sum(u[-1L]),
                pull = function(u, x, slope) {
                  above <- rev(cumsum(rev(slope)))
                  c(above[1L], above[-1L] * exp(u[-1L]) + 1)
                }, flags = function(x) diff(x) > 0)
}

#' @rdname transforms
#' @export
cl_positive_ordered <- function() {
  new_transform("positive and increasing",
                inside = function(x) all(diff(c(0, x)) > 0),
                free = function(x) log(diff(c(0, x))),
                value = function(u) cumsum(exp(u)),
                jacobian = function(u, x) sum(u),
                pull = function(u, x, slope) rev(cumsum(rev(slope))) * exp(u) + 1,
                flags = function(x) diff(c(0, x)) > 0, lower = 0)
}

#' @rdname transforms
#' @export
cl_simplex <- function() {
  basis_for <- kept_basis()
  new_transform("a simplex",
                inside = function(x) all(x > 0) && abs(sum(x) - 1) < 1e-8,
                free = function(x) as.vector(crossprod(basis_for(length(x)), log(x))),
                value = function(u) {
                  z <- as.vector(basis_for(length(u) + 1L) %*% u)
                  z <- exp(z - max(z))
                  z / sum(z)
                },
                jacobian = function(u, x) sum(log(x)) + log(length(x)) / 2,
                pull = function(u, x, slope) {
                  n <- length(x)
                  by_z <- x * (slope - sum(slope * x)) + 1 - n * x
                  as.vector(crossprod(basis_for(n), by_z))
                }, size = function(n) n - 1L, least = 2L, lower = 0, upper = 1)
}

#' @rdname transforms
#' @export
cl_zero_sum <- function() {
  basis_for <- kept_basis()
  new_transform("with sum zero",
                inside = function(x) abs(sum(x)) <= 1e-8 * max(1, abs(x)),
                free = function(x) as.vector(crossprod(basis_for(length(x)), x)),
                value = function(u) as.vector(basis_for(length(u) + 1L) %*% u),
                jacobian = function(u, x) 0,
                pull = function(u, x, slope) as.vector(crossprod(basis_for(length(x)), slope)),
                size = function(n) n - 1L, least = 2L)
}

#' @rdname transforms
#' @export
cl_unit_vector <- function() {
  new_transform("a unit vector",
                inside = function(x) abs(sum(x^2) - 1) < 1e-8,
                free = function(x) x,
                value = function(u) u / sqrt(sum(u^2)),
                jacobian = function(u, x) -sum(u^2) / 2,
                pull = function(u, x, slope) (slope - x * sum(x * slope)) / sqrt(sum(u^2)) - u,
                least = 2L, lower = -1, upper = 1)
}

# The basis for a number of elements; the most recent one is kept.
kept_basis <- function() {
  basis <- NULL
  function(n) {
    if (is.null(basis) || nrow(basis) != n) basis <<- simplex_basis(n)
    basis
  }
}

# n x (n - 1), orthonormal columns that sum to zero.
simplex_basis <- function(n) {
  basis <- stats::contr.helmert(n)
  unname(sweep(basis, 2L, sqrt(colSums(basis^2)), "/"))
}

new_identity <- function(n) {
  new_transform("unconstrained", inside = function(x) TRUE, free = function(x) x,
                value = function(u) u, jacobian = function(u, x) 0,
                pull = function(u, x, slope) slope, each = TRUE, bounds = n)
}

# `bounds`: the number of elements of the bounds; 1 is recycled. `least`: the minimum number of
# elements; `fits`: whether a parameter can have n elements.
new_transform <- function(label, inside, free, value, jacobian, pull, size = function(n) n,
                          bounds = 1L, least = 1L, lower = -Inf, upper = Inf,
                          fits = function(n) n >= least, flags = function(x) 1, each = FALSE) {
  structure(list(label = label, inside = inside, free = free, value = value, jacobian = jacobian,
                 pull = pull, size = size, bounds = bounds, fits = fits, flags = flags,
                 each = each, lower = lower, upper = upper),
            class = "cl_transform")
}

check_bound <- function(x, argument, infinite = FALSE) {
  if (!is.numeric(x) || is.object(x) || length(x) == 0L || anyNA(x)) {
    abort_argument(argument, sprintf("'%s' must be one number, or one for each element", argument))
  }
  if (!infinite && !all(is.finite(x))) {
    abort_argument(argument, sprintf("'%s' must be finite", argument))
  }
  as.double(x)
}

bound_text <- function(x) if (length(x) == 1L) format(x) else "several bounds"

#' @export
print.cl_transform <- function(x, ...) {
  cat("<cl_transform> ", x$label, "\n", sep = "")
  invisible(x)
}
