# The marginal likelihood of a Gaussian process, with its data on the device.

#' Marginal likelihood of a Gaussian process
#'
#' Copies `y` and `x` to the device once and gives a function of the parameters, for optimisers and
#' samplers. An evaluation sends the parameters and reads the value and its gradient; the covariance
#' matrix is built, factored and differentiated where the data is.
#'
#' With \eqn{C = K + \mathrm{noise}^2 I}{C = K + noise^2 I} and \eqn{\alpha = C^{-1} (y - m)}{a =
#' C^-1 (y - m)} (Rasmussen and Williams, 2006, equations 5.8 and 5.9)
#' \deqn{\log p(y) = -\frac{1}{2} (y - m)^T \alpha - \frac{1}{2} \log |C| - \frac{n}{2} \log 2 \pi,
#'   \qquad \frac{\partial}{\partial \theta} = \frac{1}{2} \mathrm{tr}\left((\alpha \alpha^T -
#'   C^{-1}) \frac{\partial C}{\partial \theta}\right).}{log p(y) = -(y - m)' a / 2 - log|C| / 2 - n
#'   log(2 pi) / 2, with derivatives trace((a a' - C^-1) dC) / 2.}
#'
#' With `mean = "estimate"` the mean is, for each value of the parameters, its generalised least
#' squares estimate, and the function is the profile likelihood. The estimate is the attribute
#' `"mean"` of the value.
#'
#' The data goes to the device in use if it has at least as many rows as [cl_thresholds()] says
#' (entry `gp`), or if `x` is a [clMatrix]; else it stays with the host engine. Two n x n matrices
#' stay with it. The function can be saved ([saveRDS()]) and sent to parallel workers: it keeps `y`
#' and `x` and copies them again at its first use elsewhere. In a forked process it runs on the
#' host.
#'
#' @param y the observations: a numeric vector.
#' @param x the inputs: a numeric matrix, data frame or `clMatrix` with a row for each observation;
#'   a vector is one column.
#' @param kernel a kernel, see [kernels]; its parameters do not matter here, only their number does.
#' @param mean the mean of the process: a number, or `"estimate"`.
#' @return A function `f(par, gradient = TRUE)` of class `"cl_gp_likelihood"`. `par` holds the
#'   parameters of `coef(kernel)` and `noise`, the standard deviation of the noise, on their natural
#'   scale: named, in any order, or without names in this order. The value is the log density with
#'   all constants, with the attribute `"gradient"`, a vector with the names of the parameters,
#'   unless `gradient = FALSE`.
#' @section Errors:
#' `statcl_error_argument` for wrong types, lengths and names, and for parameters that are not
#' positive (`noise` may be 0); `statcl_error_nonfinite` for `NA`, `NaN` or `Inf` in the data;
#' `statcl_error_not_pd` from the function if C is not positive definite in floating-point
#' arithmetic.
#' @seealso [cl_gp()], which maximises it; [cl_objective()] for other optimisers,
#'   [cl_check_gradient()]
#' @export
#' @examples
#' x <- seq(0, 1, length.out = 20)
#' f <- cl_gp_likelihood(sin(6 * x), x, k_exp_quad())
#' f
#' f(c(sd = 1, lengthscale = 0.3, noise = 0.1))
cl_gp_likelihood <- function(y, x, kernel, mean = 0) {
  on_device <- is_cl(x)
  data <- gp_data(y, x, check_kernel(kernel), mean)
  new_gp_likelihood(data$y, data$x, kernel, data$mean, on_device)
}

# Checked: y as a vector, x as a base matrix, the mean as C takes it (NA: to be estimated).
gp_data <- function(y, x, kernel, mean) {
  y <- check_numeric(if (is_cl(y)) as.matrix(y) else y, "y")
  if (is.matrix(y) && ncol(y) != 1L) {
    abort_argument("y", sprintf("'y' must be a vector, not %s", describe(y)))
  }
  x <- check_numeric(if (is_cl(x)) as.matrix(x) else x, "x")
  if (is.null(dim(x))) dim(x) <- c(length(x), 1L)
  if (length(y) != nrow(x)) {
    abort_argument("y", sprintf("'y' has %d values, 'x' has %d rows", length(y), nrow(x)))
  }
  if (length(y) == 0L) abort_argument("y", "'y' is empty")
  kernel_layout(kernel, ncol(x), colnames(x))
  list(y = as.vector(y), x = x, mean = check_mean(mean))
}

check_mean <- function(mean) {
  if (identical(mean, "estimate")) return(NA_real_)
  if (is.character(mean)) abort_argument("mean", "'mean' must be a number or \"estimate\"")
  check_number(mean, "mean")
}

new_gp_likelihood <- function(y, x, kernel, mean, on_device = FALSE) {
  force(mean)
  layout <- kernel_layout(kernel, ncol(x), colnames(x))
  names <- c(names(coef(kernel)), "noise")
  handle <- NULL
  build <- function() {
    where <- if (forked()) -1L else if (on_device) where_resident() else where_for("gp", length(y))
    handle <<- .Call(r_gp_new, y, x, where)
  }
  f <- function(par, gradient = TRUE) {
    par <- check_gp_parameters(par, names)
    values <- par[layout$at]
    result <- .Call(r_gp_evaluate, handle, layout$c, values, mean, gradient)
    if (is.null(result)) { # restored from a file, in a forked process, or the device was lost
      build()
      result <- .Call(r_gp_evaluate, handle, layout$c, values, mean, gradient)
    }
    value <- result[1L]
    if (isTRUE(gradient)) {
      slope <- layout_gradient(layout, result[-(1:2)]) / par
      slope[par == 0] <- 0 # of noise^2 at zero
      attr(value, "gradient") <- structure(slope, names = names)
    }
    if (is.na(mean)) attr(value, "mean") <- result[2L]
    value
  }
  build()
  structure(f, class = c("cl_gp_likelihood", "function"))
}

# The parameters in the order of `names`, without names.
check_gp_parameters <- function(par, names) {
  given <- names(par)
  if (!is.numeric(par) || length(par) != length(names) ||
        (!is.null(given) && (!all(names %in% given)))) {
    abort_argument("par", sprintf("'par' must be a numeric vector of %s",
                                  paste(names, collapse = ", ")))
  }
  if (!is.null(given) && !identical(given, names)) par <- par[names]
  par <- as.double(par)
  last <- length(par)
  wrong <- which(!is.finite(par) | par < 0 | (par == 0 & seq_along(par) < last))
  if (length(wrong) > 0L) {
    abort_argument("par", sprintf("'%s' must be %s and finite, not %g", names[wrong[1L]],
                                  if (wrong[1L] == last) "not negative" else "positive",
                                  par[wrong[1L]]))
  }
  par
}

#' @export
print.cl_gp_likelihood <- function(x, ...) {
  data <- environment(x)
  cat(sprintf("<cl_gp_likelihood> %d observations, %d column%s, mean %s\n", length(data$y),
              ncol(data$x), if (ncol(data$x) == 1L) "" else "s",
              if (is.na(data$mean)) "estimated" else format(data$mean)))
  cat("kernel: ")
  print(data$kernel)
  info <- .Call(r_gp_info, data$handle)
  if (is.null(info)) {
    cat("not on a device now; the next evaluation copies the data\n")
  } else {
    cat(sprintf("engine: %s; %s\n", if (info$host) "host" else paste("device", info$device),
                format(structure(info$bytes, class = "object_size"), units = "auto")))
  }
  cat(sprintf("f(c(%s), gradient = TRUE)\n", paste(data$names, collapse = ", ")))
  invisible(x)
}
