# Covariance functions written by users in R, and kernels that contain them.

#' User-defined covariance function
#'
#' Makes a kernel from an R function that works with whole matrices, using the arithmetic of
#' [clMatrix] if the points are on a device. It can be added to and multiplied with other [kernels],
#' and used wherever they are.
#'
#' The covariance matrix, its factor and its inverse are then R objects (on the device, if the data
#' is there). A likelihood therefore needs memory for several n x n matrices, and passes over them
#' for the arithmetic of the function.
#'
#' [cl_distance()] computes distances to start from.
#'
#' @param f A function of `x1`, `x2` and `par` that returns the covariance matrix of the rows of
#'   `x1` and `x2`, without noise. The points are matrices, base R or `clMatrix`; the parameters are
#'   a named numeric vector. With `x2` equal to `x1` the matrix must be symmetric and positive
#'   definite.
#' @param par The parameters: a named vector of initial values.
#' @param derivative `NULL` for finite differences (of fourth order, with four evaluations of f for
#'   each parameter), or a function of the same arguments that returns a list of matrices, the
#'   derivatives of f with respect to each parameter.
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
# is NULL.
user_adjoint <- function(kernel, k_adj, x1, x2) {
  gradient <- vector("list", length(kernel$terms))
  go <- function(node, adjoint) {
    if (!is.null(node$op)) {
      product <- node$op == "*"
      go(node$left, if (product) adjoint * node$right$value else adjoint)
      return(go(node$right, if (product) adjoint * node$left$value else adjoint))
    }
    term <- kernel$terms[[node$leaf]]
    gradient[[node$leaf]] <<- if (term$type == "user") {
      user_slopes(term, adjoint, x1, if (is.null(x2)) x1 else x2)
    } else {
      cl_cov_adjoint(adjoint, x1, x2, new_kernel(term))
    }
    NULL
  }
  go(user_tree(kernel, x1, x2), k_adj)
  stats::setNames(unlist(gradient), names(coef(kernel)))
}

user_slopes <- function(term, adjoint, x1, x2) {
  if (!is.null(term$derivative)) {
    slopes <- term$derivative(x1, x2, term$par)
    if (!is.list(slopes) || length(slopes) != length(term$par)) {
      abort_argument("kernel", sprintf(paste("the derivative of k_user() must return a list of %d",
                                             "matrices"), length(term$par)))
    }
    if (!is.null(names(slopes))) slopes <- slopes[names(term$par)]
    return(vapply(slopes, function(slope) as.numeric(sum(adjoint * slope)), 0))
  }
  vapply(seq_along(term$par), function(i) {
    h <- 1e-3 * max(abs(term$par[[i]]), if (term$positive[[i]]) 0 else 1)
    at <- function(by) {
      par <- term$par
      par[i] <- par[i] + by
      as.numeric(sum(adjoint * user_leaf(term, x1, x2, par)))
    }
    (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
  }, 0)
}

# Prior variances at the rows of x, by blocks; white terms are left out.
user_variance <- function(kernel, x) {
  unlist(lapply(split(seq_len(nrow(x)), (seq_len(nrow(x)) - 1L) %/% 256L), function(rows) {
    some <- x[rows, , drop = FALSE]
    as.numeric(diag(as.matrix(user_covariance(kernel, some, some))))
  }), use.names = FALSE)
}

# ---- likelihoods --------------------------------------------------------------------------------

# As make_gp_likelihood(), but with R arithmetic, on the device if `resident`.
make_user_likelihood <- function(data, kernel, trend, spread, objective, on_device = FALSE) {
  names <- c(names(coef(kernel)), "noise")
  positive <- kernel_positive(kernel)
  loo <- objective == "loo"
  handle <- NULL
  resident <- on_device || where_for("gp", nrow(data$x)) >= 0L
  f <- function(par, gradient = TRUE) {
    par <- check_gp_parameters(par, names, positive)
    with_engine_of(resident, function() {
      s <- user_process(data, kernel, trend, spread, par, resident)
      inverse <- if (isTRUE(gradient) || loo) user_precision(s, loo || trend$integrate)
      value <- if (loo) user_loo(s, inverse) else s$value
      if (isTRUE(gradient)) {
        w <- if (loo) user_loo_weights(s, inverse) else user_weights(s, inverse, trend$integrate)
        last <- length(par)
        noise <- 2 * par[last] * sum(as.numeric(diag(w)) * s$spread)
        slope <- c(user_adjoint(s$kernel, w, s$x, NULL), noise)
        attr(value, "gradient") <- structure(slope, names = names)
      }
      if (trend$count > 0L) {
        beta <- trend_coefficients(trend, s$b)
        attr(value, "beta") <- beta
        if (trend$type == "constant") attr(value, "mean") <- as.vector(beta)
      }
      value
    })
  }
  structure(f, class = c("cl_gp_likelihood", "function"))
}

with_engine_of <- function(resident, code) {
  if (resident) code() else with_cl(code(), engine = "host")
}

# The factor of C and solutions with it. The factor l and x may be on the device; everything else is
# base R.
user_process <- function(data, kernel, trend, spread, par, resident) {
  noise <- par[length(par)]
  kernel <- with_parameters(kernel, par[-length(par)])
  n <- nrow(data$x)
  place <- if (resident) as_cl else identity
  s <- if (is.null(spread)) cbind(rep(1, n), rep(0, n)) else spread
  x <- place(data$x)
  c <- user_covariance(kernel, x, NULL)
  diag(c) <- as.numeric(diag(c)) + noise^2 * s[, 1L] + s[, 2L]
  l <- cl_chol(c, lower = TRUE)
  right <- cbind(data$y - trend$offset, trend$basis)
  solved <- as.matrix(cl_tri_solve(l, place(right)))
  outputs <- seq_len(ncol(data$y))
  z <- solved[, outputs, drop = FALSE]
  q <- solved[, -outputs, drop = FALSE]
  m <- b <- NULL
  if (trend$count > 0L) {
    m <- chol(crossprod(q))
    q <- t(backsolve(m, t(q), transpose = TRUE))
    b <- crossprod(q, z)
    z <- z - q %*% b
    b <- backsolve(m, b)
  }
  u <- as.matrix(cl_tri_solve(l, place(cbind(z, q)), transpose = TRUE))
  log_det <- sum(log(as.numeric(diag(l)))) +
    if (trend$integrate) sum(log(diag(m))) + trend$log_det else 0
  rows <- n - if (trend$integrate) trend$count else 0L
  list(kernel = kernel, x = x, l = l, spread = s[, 1L], b = b, m = m, q = q, place = place,
       a = u[, outputs, drop = FALSE], basis = u[, -outputs, drop = FALSE],
       value = -sum(z^2) / 2 - ncol(z) * (log_det + rows * log(2 * pi) / 2))
}

# C^-1, or P.
user_precision <- function(s, projected) {
  inverse <- crossprod(cl_tri_inverse(s$l))
  if (!projected || ncol(s$basis) == 0L) return(inverse)
  inverse - tcrossprod(s$place(s$basis))
}

user_weights <- function(s, inverse, integrate) {
  (tcrossprod(s$place(s$a)) - ncol(s$a) * inverse) / 2
}

user_loo <- function(s, inverse) {
  d <- as.numeric(diag(inverse))
  sum(log(d) / 2 - s$a^2 / d / 2 - log(2 * pi) / 2)
}

user_loo_weights <- function(s, inverse) {
  d <- as.numeric(diag(inverse))
  ratios <- s$a / d
  g <- (ncol(ratios) / d + rowSums(ratios^2)) / 2
  b <- as.matrix(inverse %*% s$place(ratios))
  outer <- s$place(b) %*% t(s$place(s$a))
  (outer + t(outer)) / 2 - tcrossprod(inverse %*% s$place(diag(sqrt(g), length(g))))
}

# As new_gp_state().
new_user_state <- function(data, kernel, trend, spread, par, resident) {
  condition <- function() {
    with_engine_of(resident, function() user_process(data, kernel, trend, spread, par, resident))
  }
  kept <- condition()
  beta <- state_beta(trend, kept$b)
  a_inverse <- if (trend$count > 0L) chol2inv(kept$m) else NULL
  shape <- function(v) if (data$vector) as.vector(v) else unname(v)
  process <- function() { # data that are no longer on the device are uploaded again
    if (resident && (forked() || !is_usable(kept$l))) kept <<- condition()
    kept
  }
  predict <- function(at, what = "mean", basis = NULL) {
    at <- check_state_points(at, data)
    h <- trend_at(trend, at, basis)
    known <- if (trend$type == "number") trend$offset else if (is.null(h)) 0 else
      as.vector(h %*% as.matrix(beta))
    s <- process()
    with_engine_of(resident, function() {
      blocks <- if (what == "covariance") rep(1L, nrow(at)) else (seq_len(nrow(at)) - 1L) %/% 512L
      parts <- lapply(split(seq_len(nrow(at)), blocks), function(rows) {
        user_predict(s, trend, at[rows, , drop = FALSE], h[rows, , drop = FALSE], what)
      })
      mean <- do.call(rbind, lapply(parts, `[[`, "mean"))
      list(mean = shape(mean + known),
           variance = if (what == "variance") unlist(lapply(parts, `[[`, "variance"),
                                                     use.names = FALSE),
           covariance = if (what == "covariance") parts[[1L]]$covariance)
    })
  }
  state <- list(
    value = kept$value, weights = shape(kept$a), beta = beta,
    beta_cov = state_beta_cov(trend, a_inverse), predict = predict,
    loo = function() {
      s <- process()
      d <- with_engine_of(resident, function() as.numeric(diag(user_precision(s, TRUE))))
      list(mean = shape(data$y - s$a / d), variance = 1 / d)
    },
    mean_gradient = function(at, y_column = 1L) {
      at <- check_state_points(at, data)
      none <- if (trend$type == "basis") matrix(0, nrow(at), NROW(beta)) # the process alone
      h <- 1e-4 * pmax(apply(data$x, 2L, stats::sd), 1e-8, na.rm = TRUE)
      vapply(seq_len(ncol(at)), function(j) {
        moved <- function(by) {
          at[, j] <- at[, j] + by
          as.matrix(predict(at, basis = none)$mean)[, y_column]
        }
        (8 * (moved(h[j]) - moved(-h[j])) - (moved(2 * h[j]) - moved(-2 * h[j]))) / (12 * h[j])
      }, numeric(nrow(at)))
    },
    extend = function(y, x, basis = NULL, weights = NULL, variance = NULL) {
      more <- extend_data(data, kernel, trend, spread, y, x, basis, weights, variance)
      new_user_state(more$data, kernel, more$trend, more$spread, par, resident)
    })
  structure(state, class = "cl_gp_state")
}

user_predict <- function(s, trend, at, h, what) {
  k <- user_covariance(s$kernel, s$x, s$place(at))
  mean <- as.matrix(crossprod(k, s$place(s$a)))
  if (what == "mean") return(list(mean = mean))
  v <- cl_tri_solve(s$l, k)
  r <- if (trend$count > 0L) { # M^-1 h - Q' v for each point, in rows
    h <- t(backsolve(trend$root, t(h), transpose = TRUE))
    t(backsolve(s$m, t(h), transpose = TRUE)) - as.matrix(crossprod(v, s$place(s$q)))
  } else {
    matrix(0, nrow(at), 0L)
  }
  if (what == "variance") {
    variance <- user_variance(s$kernel, at) - as.numeric(colSums(v^2)) + rowSums(r^2)
    return(list(mean = mean, variance = variance))
  }
  points <- s$place(at)
  within <- as.matrix(user_covariance(s$kernel, points, points))
  list(mean = mean, covariance = unname(within - as.matrix(crossprod(v)) + tcrossprod(r)))
}

is_usable <- function(x) {
  !inherits(tryCatch(dim(as.matrix(x[1L, 1L, drop = FALSE])), statcl_error = identity), "error")
}
