# Covariance functions written by users in R, and kernels that contain them.

#' User-defined covariance function
#'
#' Makes a kernel from an R function that works with whole matrices, using the arithmetic of
#' [clMatrix] if the points are on a device. It can be added to and multiplied with other [kernels],
#' and used wherever they are.
#'
#' The covariance matrix and the derivative of a likelihood with respect to it are then R objects
#' (on the device, if the data is there). A likelihood therefore needs memory and time for several n
#' x n matrices, as many as the arithmetic of the function makes.
#'
#' [cl_distance()] computes distances to start from.
#'
#' @param f A function of `x1`, `x2` and `par` that returns the covariance matrix of the rows of
#'   `x1` and `x2`, without noise. The points are matrices, base R or `clMatrix`; the parameters are
#'   a named numeric vector. With `x2` equal to `x1` the matrix must be symmetric and positive
#'   definite.
#' @param par The parameters: a named vector of initial values.
#' @param derivative `NULL`, or a function of the same arguments that returns a list of matrices,
#'   the derivatives of f with respect to each parameter. With `NULL`, likelihoods on the host
#'   record f as [cl_gradient()] does. Elsewhere, and where f cannot be recorded, derivatives are
#'   finite differences of fourth order, with four evaluations of f for each parameter.
#' @param positive Which parameters must be positive: one logical, or one for each.
#' @return A kernel, an object of class `"cl_kernel"`.
#' @section Errors:
#' `statcl_error_argument` for wrong types, and for a function whose result has a wrong shape.
#' @seealso [kernels]
#' @export
#' @examples
#' # A Cauchy kernel
#' cauchy <- function(x1, x2, par) {
#'   par[["sd"]]^2 / (1 + cl_distance(x1, x2, squared = TRUE) / par[["reach"]]^2)
#' }
#' k <- k_user(cauchy, c(sd = 1, reach = 0.5)) + k_constant(2)
#' k
#' x <- seq(0, 1, length.out = 10)
#' f <- cl_gp_likelihood(sin(6 * x), x, k)
#' f(c(sd1 = 1, reach1 = 0.3, sd2 = 1, noise = 0.1))
k_user <- function(f, par, derivative = NULL, positive = TRUE) {
  if (!is.function(f)) abort_argument("f", "'f' must be a function of x1, x2 and par")
  if (!is.null(derivative) && !is.function(derivative)) {
    abort_argument("derivative", "'derivative' must be a function of x1, x2 and par, or NULL")
  }
  named <- is.numeric(par) && length(par) > 0L && all(is.finite(par)) &&
    length(names(par)) == length(par) && all(nzchar(names(par))) && !anyDuplicated(names(par))
  if (!named) abort_argument("par", "'par' must be a named vector of finite numbers")
  if ("noise" %in% names(par)) {
    abort_argument("par", "'par' must not use the name 'noise', which is reserved")
  }
  if (!is.logical(positive) || anyNA(positive) || !length(positive) %in% c(1L, length(par))) {
    abort_argument("positive", sprintf("'positive' must be a logical vector of length 1 or %d",
                                       length(par)))
  }
  positive <- stats::setNames(rep_len(positive, length(par)), names(par))
  if (any(par[positive] <= 0)) abort_argument("par", "parameters declared positive must be > 0")
  storage.mode(par) <- "double"
  new_kernel(list(type = "user", f = f, par = par, derivative = derivative, positive = positive))
}

#' Distances between points
#'
#' Euclidean distances, computed from differences of coordinates so that points close to each other
#' do not lose digits.
#'
#' @param x1,x2 Points in rows, as for [cl_cov()].
#' @param lengthscale Divisor of the coordinates: one number, or one for each column.
#' @param squared Whether to return squared distances.
#' @return A matrix with one row for each row of `x1` and one column for each row of `x2`; base R if
#'   both are base R, otherwise a `clMatrix`.
#' @section Errors:
#' As for [cl_cov()].
#' @export
#' @examples
#' cl_distance(c(0, 1, 3))
cl_distance <- function(x1, x2 = NULL, lengthscale = 1, squared = FALSE) {
  check_flag(squared, "squared")
  d2 <- cl_cov(x1, x2, stationary_kernel("squared_distance", 1, lengthscale, NULL))
  if (squared) d2 else sqrt(d2)
}

# Points as passed to the function of k_user().
user_points <- function(x) {
  if (is_cl(x)) return(x)
  x <- check_numeric(x, "x")
  if (is.null(dim(x))) matrix(x, dimnames = list(names(x), NULL)) else x
}

user_leaf <- function(leaf, x1, x2, par = leaf$par) {
  k <- leaf$f(x1, x2, par)
  if (!(is.numeric(k) || is_cl(k)) || !identical(as.integer(dim(k)), c(nrow(x1), nrow(x2)))) {
    abort_argument("kernel", sprintf(paste("the function of k_user() must return a %d x %d matrix,",
                                           "not %s"), nrow(x1), nrow(x2), describe(k)))
  }
  k
}

# The kernel as a tree, list(value, leaf, or op with left and right), with all values.
user_tree <- function(kernel, x1, x2) {
  leaf <- function(i) {
    term <- kernel$terms[[i]]
    list(leaf = i, value = if (term$type == "user") {
      user_leaf(term, x1, if (is.null(x2)) x1 else x2)
    } else {
      cl_cov(x1, x2, new_kernel(term))
    })
  }
  join <- function(op) {
    function(a, b) list(op = op, left = a, right = b, value = match.fun(op)(a$value, b$value))
  }
  run_program(kernel, leaf, join("+"), join("*"))
}

user_covariance <- function(kernel, x1, x2) user_tree(kernel, x1, x2)$value

# Derivatives with respect to the parameters, in the order of coef(kernel). k_adj is symmetric if x2
# is NULL. `kept`: an environment for compiled functions of f at these points, or NULL.
user_adjoint <- function(kernel, k_adj, x1, x2, kept = NULL) {
  gradient <- vector("list", length(kernel$terms))
  go <- function(node, adjoint) {
    if (!is.null(node$op)) {
      product <- node$op == "*"
      go(node$left, if (product) adjoint * node$right$value else adjoint)
      return(go(node$right, if (product) adjoint * node$left$value else adjoint))
    }
    term <- kernel$terms[[node$leaf]]
    gradient[[node$leaf]] <<- if (term$type == "user") {
      user_slopes(term, adjoint, x1, if (is.null(x2)) x1 else x2, kept, node$leaf)
    } else {
      cl_cov_adjoint(adjoint, x1, x2, new_kernel(term))
    }
    NULL
  }
  go(user_tree(kernel, x1, x2), k_adj)
  stats::setNames(unlist(gradient), names(coef(kernel)))
}

# The derivatives of sum(adjoint * f()) from a record of f; NULL if f cannot be recorded, or is not
# differentiable where its elements are.
recorded_slopes <- function(term, adjoint, x1, x2, kept, leaf) {
  key <- as.character(leaf)
  if (is.null(kept[[key]])) {
    f <- term$f
    kept[[key]] <- cl_gradient(function(par, weights) sum(weights * f(x1, x2, par)))
  }
  if (isFALSE(kept[[key]])) return(NULL)
  slope <- tryCatch(attr(suppressWarnings(kept[[key]](term$par, adjoint)), "gradient")$par,
                    error = function(e) NULL)
  if (is.null(slope) || !all(is.finite(slope))) {
    kept[[key]] <- FALSE
    return(NULL)
  }
  slope
}

user_slopes <- function(term, adjoint, x1, x2, kept, leaf) {
  if (!is.null(term$adjoint)) return(term$adjoint(adjoint, x1, x2, term$par))
  if (!is.null(term$derivative)) {
    slopes <- term$derivative(x1, x2, term$par)
    if (!is.list(slopes) || length(slopes) != length(term$par)) {
      abort_argument("kernel", sprintf(paste("the derivative of k_user() must return a list of %d",
                                             "matrices"), length(term$par)))
    }
    if (!is.null(names(slopes))) slopes <- slopes[names(term$par)]
    return(vapply(slopes, function(slope) as.numeric(sum(adjoint * slope)), 0))
  }
  if (!is.null(kept) && !is_cl(x1)) {
    slope <- recorded_slopes(term, adjoint, x1, x2, kept, leaf)
    if (!is.null(slope)) return(slope)
  }
  vapply(seq_along(term$par), function(i) {
    h <- 1e-3 * max(abs(term$par[[i]]), if (term$positive[[i]]) 0 else 1)
    slope_by_differences(function(by) {
      par <- term$par
      par[i] <- par[i] + by
      as.numeric(sum(adjoint * user_leaf(term, x1, x2, par)))
    }, h)
  }, 0)
}

# Prior variances at the rows of x, by blocks; white terms are left out.
user_variance <- function(kernel, x) {
  unlist(lapply(split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 256L), function(rows) {
    some <- x[rows, , drop = FALSE]
    k <- as.matrix(user_covariance(kernel, some, some)) # errors keep their class
    as.numeric(diag(k))
  }), use.names = FALSE)
}

# ---- Gaussian processes -------------------------------------------------------------------------

with_engine_of <- function(resident, code) {
  if (resident) code() else with_cl(code(), engine = "host")
}

# A matrix as .Call takes it.
bare <- function(x) if (is_cl(x)) x@handle else x

# The functions by which the core gets the matrices of a kernel with a user's function, a list. The
# points are on the device if resident() is TRUE.
user_process <- function(data, kernel, spread, resident) {
  kept <- new.env(parent = emptyenv())
  place <- function(x) if (resident()) as_cl(x) else x
  s <- if (is.null(spread)) cbind(rep(1, nrow(data$x)), rep(0, nrow(data$x))) else spread
  with_kernel <- function(par) with_parameters(kernel, par[-length(par)])
  covariance <- function(par) {
    c <- user_covariance(with_kernel(par), place(data$x), NULL)
    diag(c) <- as.numeric(diag(c)) + par[length(par)]^2 * s[, 1L] + s[, 2L]
    bare(c)
  }
  inside <- function(f) function(...) with_engine_of(resident(), function() f(...))
  list(
    covariance = inside(covariance),
    evaluate = inside(function(handle, par, names, loo, integrate, gradient) {
      result <- .Call(r_gp_evaluate_given, handle, covariance(par), loo, integrate, gradient)
      w <- attr(result, "weights")
      if (is.null(w)) return(result)
      w <- value(w, rep(nrow(data$x), 2L), NULL, "symmetric")
      attr(result, "weights") <- NULL
      slope <- user_adjoint(with_kernel(par), w, place(data$x), NULL, kept)
      noise <- 2 * par[length(par)] * sum(as.numeric(diag(w)) * s[, 1L])
      structure(result, gradient = stats::setNames(c(slope, noise), names))
    }),
    predict = function(on_handle, par, at, h, what) {
      k <- with_kernel(par)
      blocks <- if (what == "covariance") rep(1L, nrow(at)) else (seq_len(nrow(at)) - 1L) %/% 512L
      parts <- lapply(split(seq_len(nrow(at)), blocks), function(rows) {
        some <- at[rows, , drop = FALSE]
        on_handle(inside(function(handle) { # the engine may be another one in each call
          points <- place(some)
          cross <- user_covariance(k, place(data$x), points)
          prior <- switch(what, variance = user_variance(k, some),
                          covariance = user_covariance(k, points, points))
          .Call(r_gp_predict_given, handle, bare(cross), bare(prior), h[rows, , drop = FALSE], what)
        }))
      })
      list(mean = do.call(rbind, lapply(parts, `[[`, "mean")),
           variance = unlist(lapply(parts, `[[`, "variance"), use.names = FALSE),
           covariance = if (what == "covariance") parts[[1L]]$covariance)
    })
}

# Derivatives of the mean with respect to the points, by finite differences.
user_mean_gradient <- function(mean, at, x) {
  h <- 1e-4 * pmax(apply(x, 2L, stats::sd), 1e-8, na.rm = TRUE)
  vapply(seq_len(ncol(at)), function(j) {
    slope_by_differences(function(by) {
      at[, j] <- at[, j] + by
      mean(at)
    }, h[j])
  }, numeric(nrow(at)))
}
