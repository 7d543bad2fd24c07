# The marginal likelihood of a Gaussian process, with its data on the device.

#' Marginal likelihood of a Gaussian process
#'
#' Copies `y` and `x` to the device once and returns a function of the parameters, for optimisers
#' and samplers. A call uploads the parameters and downloads the value and its gradient. The
#' covariance matrix is built, factored and differentiated where the data is.
#'
#' With \eqn{C = K + \mathrm{noise}^2 I}{C = K + noise^2 I} and \eqn{\alpha = C^{-1} (y - m)}{a =
#' C^-1 (y - m)} (Rasmussen and Williams, 2006, equations 5.8 and 5.9) \deqn{\log p(y) =
#' -\frac{1}{2} (y - m)^T \alpha - \frac{1}{2} \log |C| - \frac{n}{2} \log 2 \pi, \qquad
#' \frac{\partial}{\partial \theta} = \frac{1}{2} \mathrm{tr}\left((\alpha \alpha^T - C^{-1})
#' \frac{\partial C}{\partial \theta}\right).}{log p(y) = -(y - m)' a / 2 - log|C| / 2 - n log(2 pi)
#' / 2, with derivatives trace((a a' - C^-1) dC) / 2.}
#'
#' The mean is m = H b with a basis H. With `beta = "profile"`, b is the generalised least squares
#' estimate for the given parameters, and the function is the profile likelihood. With `beta =
#' "integrate"`, b is integrated out under a flat prior (Rasmussen and Williams, equation 2.45; the
#' form of restricted maximum likelihood). Estimates are returned as the attribute `"beta"` of the
#' value.
#'
#' `objective = "loo"` is the sum of the leave-one-out log predictive densities (Rasmussen and
#' Williams, section 5.4.2), computed from the same factor. If b is estimated, it is estimated
#' without the observation too.
#'
#' The data is stored on the device in use if it has at least as many rows as the entry `gp` of
#' [cl_thresholds()], or if `x` is a [clMatrix]; otherwise on the host. A value needs one n x n
#' matrix; the first gradient on a device allocates a second one. Nothing of that size is ever
#' transferred. On a device n = 30,000 takes 14.4 GB and n = 60,000 takes 58 GB. (Devices without
#' matrix instructions need workspace of half a matrix more.) A matrix is not split, and most
#' devices limit one allocation to a quarter of their memory. A problem that does not fit is refused
#' before any work, and the error message states the largest number of observations that fits. The
#' function can be saved ([saveRDS()]) and sent to parallel workers: it keeps `y` and `x` and
#' uploads them again at its first use elsewhere. In a forked process it runs on the host.
#'
#' @section Any number of observations:
#' With `approx = "vecchia"`, \eqn{p(y) \approx \prod_i p(y_i \mid y_{N(i)})}{p(y) = prod p(y_i |
#' y_N(i))}: in a maximin order of the points, each observation is conditioned on its nearest
#' `neighbours` among those before it (Vecchia, 1988; Guinness, 2018; derivatives as in Guinness,
#' 2021). Time and memory are proportional to n, so that n is limited by the data alone. With n - 1
#' neighbours the likelihood is exact. Order and neighbours are found once, in distances that are
#' divided by the lengthscales in `kernel`: the values of these are used here, and should have about
#' the right ratio if columns differ; with other ones the log likelihood differs, by some units or
#' more. The order is exact up to 100,000 points in at most three columns (20,000 in six, 5,000 in
#' more), and beyond that chosen from the cells of finer and finer grids. A point with its
#' neighbours has a small covariance matrix, which must be positive definite: with smooth kernels
#' such as [k_exp_quad()] this needs some `noise`. The function has a third argument, `information`:
#' with `TRUE`, the Fisher information of the parameters, for a known mean, is the attribute
#' `"information"`, computed in the same pass as value and gradient.
#'
#' With `grouped = TRUE` (Guinness, 2018), observations whose neighbours overlap form blocks. One
#' factor of the covariance matrix of a block, its members and all their neighbours, gives the
#' distribution of each member given all earlier rows of the block: its own neighbours and more, so
#' that the Kullback-Leibler divergence from the exact process is never larger; in the plane it is
#' about half. In the order, an observation joins the block of a neighbour if the square of the
#' number of rows of both together is at most the sum of the squares apart. There are then fewer
#' covariances: on the host a value takes less time than without groups, a gradient about the same
#' time, the information somewhat more. On an H100 (a million observations, 30 neighbours) value and
#' gradient take 0.9 times as long in the plane and 1.4 to 1.5 times in three dimensions, the
#' information 1.8 and 2.2 times; the blocks are formed once, in 1 to 2 s. Blocks have up to 32 rows
#' for fewer than 16 neighbours, 64 for fewer than 48, and else twice the neighbours and two more.
#' In more than three columns few neighbours are shared, and little is gained. Likelihoods with more
#' than 63 neighbours, and grouped ones with more than 47, are computed on the host even if a device
#' is chosen; printing a likelihood shows its engine.
#'
#' @param y The observations: a numeric vector, or a matrix whose columns are independent given the
#'   parameters; the value is then the sum over the columns.
#' @param x The inputs: a numeric matrix, data frame or `clMatrix` with one row for each
#'   observation; a vector is one column.
#' @param kernel A kernel, see [kernels]. The values of its parameters are not used, only their
#'   number.
#' @param mean The mean of the process: a number; `"constant"` (or `"estimate"`), `"linear"` (a
#'   constant and the columns of x) or a one-sided formula in the columns of x, for a mean with
#'   coefficients; or their basis H itself, a matrix with one row for each observation.
#' @param beta How the coefficients of the mean are handled: `"profile"`, `"integrate"`, or their
#'   values (if y has several columns, a matrix with one column for each).
#' @param weights Positive numbers, one for each observation, which has the noise variance `noise^2
#'   / weights`.
#' @param variance Known, nonnegative variances of the observations, added to that of the noise.
#' @param objective `"ml"` for the marginal likelihood, `"loo"` for leave-one-out prediction.
#' @param approx `"vecchia"` for Vecchia's approximation, see below.
#' @param neighbours The number of neighbours of Vecchia's approximation, 1 to 400.
#' @param grouped Whether observations with common neighbours are conditioned together in Vecchia's
#'   approximation (the `group` of GpGp's `fit_model()`), see below.
#' @return A function `f(par, gradient = TRUE)` of class `"cl_gp_likelihood"`. `par` contains the
#'   parameters of `coef(kernel)` and `noise`, the standard deviation of the noise, on their natural
#'   scale: named, in any order, or without names in this order. The value is the log density, with
#'   all constants. Its attributes are `"gradient"`, a vector with the names of the parameters,
#'   unless `gradient = FALSE`; `"beta"`, if there is a basis; and `"mean"`, for a constant.
#' @section Errors:
#' `statcl_error_argument` for wrong types, lengths and names, for parameters that are not positive
#' (`noise` may be 0), and for a basis that is rank-deficient; `statcl_error_nonfinite` for `NA`,
#' `NaN` or `Inf` in the data; `statcl_error_memory` for more observations than fit into memory;
#' `statcl_error_not_pd` from the function if C is not positive definite in floating-point
#' arithmetic.
#' @references
#' Guinness, J. (2018) Permutation and grouping methods for sharpening Gaussian process
#' approximations. *Technometrics* 60, 415-429.
#'
#' Guinness, J. (2021) Gaussian process learning via Fisher scoring of Vecchia's approximation.
#' *Statistics and Computing* 31, 25.
#' @seealso [cl_gp()], which maximises it; [cl_gp_largest()]; [cl_objective()] for other optimisers,
#'   [cl_check_gradient()]
#' @export
#' @examples
#' x <- seq(0, 1, length.out = 20)
#' f <- cl_gp_likelihood(sin(6 * x), x, k_exp_quad())
#' f
#' f(c(sd = 1, lengthscale = 0.3, noise = 0.1))
#'
#' # A linear mean, integrated out, and leave-one-out prediction
#' g <- cl_gp_likelihood(sin(6 * x) + x, x, k_exp_quad(), mean = "linear", beta = "integrate",
#'                       objective = "loo")
#' g(c(sd = 1, lengthscale = 0.3, noise = 0.1), gradient = FALSE)
#'
#' # Vecchia's approximation
#' v <- cl_gp_likelihood(sin(6 * x), x, k_matern32(), approx = "vecchia", neighbours = 5)
#' v(c(sd = 1, lengthscale = 0.3, noise = 0.1))
#' cl_gp_likelihood(sin(6 * x), x, k_matern32(), approx = "vecchia", neighbours = 5, grouped = TRUE)
cl_gp_likelihood <- function(y, x, kernel, mean = 0, beta = "profile", weights = NULL,
                             variance = NULL, objective = c("ml", "loo"),
                             approx = c("none", "vecchia"), neighbours = 30,
                             grouped = FALSE) {
  on_device <- is_cl(x)
  kernel <- check_kernel(kernel)
  neighbours <- check_approx(approx, if (!missing(neighbours)) neighbours, grouped)
  objective <- check_choice(objective, c("ml", "loo"), "objective")
  data <- gp_observations(y, x, kernel)
  trend <- gp_trend(mean, beta, data$x, ncol(data$y))
  spread <- gp_spread(weights, variance, nrow(data$x))
  if (is.null(neighbours)) {
    return(make_gp_likelihood(data, kernel, trend, spread, objective, on_device))
  }
  if (objective == "loo") refuse_vecchia("objective", "objective = \"loo\"")
  make_vecchia_likelihood(data, kernel, trend, spread, neighbours, grouped, on_device)
}

# Checked: y and x as base matrices.
gp_observations <- function(y, x, kernel) {
  named <- if (is.matrix(y)) rownames(y) else names(y)
  y <- check_numeric(if (is_cl(y)) as.matrix(y) else y, "y")
  vector <- is.null(dim(y))
  if (vector) dim(y) <- c(length(y), 1L)
  x <- check_numeric(if (is_cl(x)) as.matrix(x) else x, "x")
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  if (nrow(y) != nrow(x)) {
    abort_argument("y", sprintf("'y' has %d %s, but 'x' has %d rows", nrow(y),
                                if (vector) "values" else "rows", nrow(x)))
  }
  if (length(y) == 0L) abort_argument("y", "'y' is empty")
  if (!has_user(kernel)) kernel_layout(kernel, ncol(x), colnames(x))
  list(y = y, x = x, vector = vector, names = named)
}

# The columns s and v of noise^2 s + v; NULL for 1 and 0.
gp_spread <- function(weights, variance, n) {
  if (is.null(weights) && is.null(variance)) return(NULL)
  check <- function(x, argument, least) {
    x <- check_numeric(x, argument)
    if (length(x) != n) {
      abort_argument(argument, sprintf("'%s' has %d values, but 'x' has %d rows",
                                       argument, length(x), n))
    }
    if (!all(is.finite(x)) || any(x < 0) || (least && any(x == 0))) {
      abort_argument(argument, sprintf("'%s' must be finite and %s", argument,
                                       if (least) "positive" else "non-negative"))
    }
    as.double(x)
  }
  cbind(if (is.null(weights)) 1 else 1 / check(weights, "weights", TRUE),
        if (is.null(variance)) rep(0, n) else check(variance, "variance", FALSE), deparse.level = 0)
}

# The engine for the process of these data.
gp_place <- function(data, on_device, times, kind = "gp") {
  if (forked()) return(-1L)
  if (!on_device) return(where_for("gp", nrow(data$x), times, kind))
  where <- where_resident()
  session$notes$gp <- list(NA, where)
  where
}

# A function that gives call(handle) of a handle of these data, `first` or one that new(where)
# makes. Where call() gives NULL, the handle is no longer valid, and is made again: it was restored
# from a file, is in a forked process, or the device was lost.
# `share`: of the time of a process by the whole covariance matrix; `clean`, `counts`: as of
# movable(); `kind`: as of where_for().
handle_caller <- function(data, on_device, new, first = NULL, placed = function(where) NULL,
                          share = 1, clean = FALSE, counts = NULL, kind = "gp") {
  handle <- first
  engine <- movable(function(times = 1) gp_place(data, on_device, times * share, kind), new,
                    function(made, where) {
                      handle <<- made
                      placed(where)
                    }, clean, counts = counts)
  if (is.null(first)) engine$build()
  function(call) {
    evaluate <- function() call(handle)
    result <- if (engine$moves) engine$run(evaluate) else evaluate()
    if (!is.null(result)) return(result)
    engine$build()
    evaluate()
  }
}

new_gp <- function(data, kernel, trend, spread, where) {
  .Call(r_gp_new, data$y - trend$offset, kernel_points(kernel, data$x), trend$basis, spread, where)
}

# Values alone take less time, and are not compared with others.
has_gradient <- function(value) !is.null(attr(value, "gradient"))

make_gp_likelihood <- function(data, kernel, trend, spread, objective, on_device = FALSE) {
  user <- if (has_user(kernel)) user_process(data, kernel, spread, function() resident)
  layout <- if (is.null(user)) kernel_layout(kernel, ncol(data$x), colnames(data$x))
  names <- c(names(coef(kernel)), "noise")
  positive <- kernel_positive(kernel)
  resident <- FALSE
  on_handle <- handle_caller(data, on_device, function(where) {
    new_gp(data, kernel, trend, spread, where)
  }, placed = function(where) resident <<- where >= 0L, clean = is.null(user),
  counts = if (is.null(user)) has_gradient, kind = if (objective == "loo") "gp loo" else "gp")
  loo <- objective == "loo"
  size <- trend$count * ncol(data$y)
  f <- function(par, gradient = TRUE) {
    check_flag(gradient, "gradient")
    par <- check_gp_parameters(par, names, positive)
    result <- on_handle(function(h) {
      if (!is.null(user)) return(user$evaluate(h, par, names, loo, trend$integrate, gradient))
      .Call(r_gp_evaluate, h, layout, par, names, loo, trend$integrate, gradient || only_asks())
    })
    value <- result
    if (size > 0L) {
      value <- result[1L]
      attr(value, "gradient") <- attr(result, "gradient")
    }
    with_coefficients(value, result, trend, ncol(data$y), trend$integrate && !loo)
  }
  structure(f, class = c("cl_gp_likelihood", "function"))
}

# The value with the constant of a mean that was integrated out, and with the coefficients of the
# mean, which follow the value in `result`.
with_coefficients <- function(value, result, trend, outputs, integrated) {
  if (integrated) value <- value - trend$log_det * outputs
  size <- trend$count * outputs
  if (size > 0L) {
    beta <- trend_coefficients(trend, matrix(result[1L + seq_len(size)], trend$count))
    attr(value, "beta") <- beta
    if (trend$type == "constant") attr(value, "mean") <- as.vector(beta)
  }
  value
}

#' Largest number of observations that fits into memory
#'
#' The size of the largest Gaussian process for which the device in use (or, with the host engine,
#' the host) has enough memory now. A value takes one n x n matrix; a gradient on a device takes
#' two. Larger problems are refused before any work. Most devices limit a single allocation, and
#' therefore one matrix, to a quarter of their memory.
#'
#' @return A numeric vector: `value`, the largest number of observations for values of
#'   [cl_gp_likelihood()], and `gradient`, for gradients too; `NA` if the limit is unknown.
#' @seealso [cl_gp_likelihood()], [cl_memory()]
#' @export
#' @examples
#' cl_gp_largest()
cl_gp_largest <- function() gp_largest()

gp_largest <- function(where = where_resident()) {
  n <- .Call(r_gp_largest, where)
  n[n == 0] <- NA
  c(value = n[1L], gradient = if (where < 0L) n[1L] else n[2L])
}

# The parameters in the order of `names`, without names.
check_gp_parameters <- function(par, names, positive = TRUE) {
  given <- names(par)
  same <- is.null(given) || identical(given, names)
  if (is.double(par) && same && length(par) == length(names) && is.finite(sum(par)) &&
        min(par) > 0) {
    return(as.double(par)) # the usual case, kept fast for samplers
  }
  if (is.numeric(par) && !is.null(given)) {
    names(par) <- given <- named_by_column(given, names)
  }
  if (!is.numeric(par) || length(par) != length(names) ||
        (!is.null(given) && (!all(names %in% given)))) {
    abort_argument("par", sprintf("'par' must be a numeric vector with the elements %s",
                                  paste(names, collapse = ", ")))
  }
  if (!is.null(given)) par <- par[names]
  par <- as.double(par)
  last <- length(par)
  wrong <- which(!is.finite(par) | (c(rep_len(positive, last - 1L), TRUE) & par < 0) |
                   (par == 0 & c(rep_len(positive, last - 1L), FALSE)))
  if (length(wrong) > 0L) {
    abort_argument("par", sprintf("'%s' must be %s and finite, not %g", names[wrong[1L]],
                                  if (wrong[1L] == last) "non-negative" else "positive",
                                  par[wrong[1L]]))
  }
  par
}

#' @export
print.cl_gp_likelihood <- function(x, ...) {
  e <- environment(x)
  p <- ncol(e$data$x)
  cat(sprintf("<cl_gp_likelihood> %d observations%s, %d column%s, mean %s%s\n", nrow(e$data$x),
              if (ncol(e$data$y) > 1L) sprintf(" of %d variables", ncol(e$data$y)) else "", p,
              if (p == 1L) "" else "s", trend_text(e$trend),
              if (isTRUE(e$loo)) ", leave-one-out" else ""))
  cat("kernel: ")
  print(e$kernel)
  data <- environment(e$on_handle)
  note <- function(info) handle_note(info, "gp", nrow(e$data$x), data$share, data$kind)
  if (inherits(x, "cl_gp_vecchia")) {
    info <- .Call(r_vecchia_info, data$handle)
    cat(sprintf("Vecchia's approximation: %d neighbours%s\n", as.integer(e$neighbours),
                if (isTRUE(info$blocks > 0L)) sprintf(", in %d blocks", info$blocks) else ""))
    print_engine(info, note(info))
  } else if (has_user(e$kernel)) {
    cat("engine: ", if (e$resident) "device" else "host", ", covariances by R arithmetic\n",
        sep = "")
  } else {
    info <- .Call(r_gp_info, data$handle)
    print_engine(info, note(info))
  }
  cat(sprintf("f(c(%s), gradient = TRUE)\n", paste(e$names, collapse = ", ")))
  invisible(x)
}
