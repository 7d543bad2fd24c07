#' Densities for models of your own
#'
#' Densities, distribution functions and quantiles that a function given to [cl_gradient()] can use.
#' They have R's names, arguments, order and defaults, including `log`, `lower.tail` and `log.p`,
#' and are found under these names in such a function: nothing is attached or masked. They are
#' differentiable with respect to every real-valued argument, including `x` and `q`. If no argument
#' depends on parameters, R's own functions are called.
#'
#' `r density_help_table()`
#'
#' Others are not part of R:
#'
#' - `dmvnorm(x, mean = 0, Sigma, log = FALSE, precision, chol, lower = FALSE)`: multivariate
#'   normal. Give one of the covariance matrix `Sigma`, its inverse `precision` and its Cholesky
#'   factor `chol` (upper triangular, as [chol()] gives it, unless `lower = TRUE`). The rows of a
#'   matrix `x` are observations; a vector is one observation. The mean is a number, a vector, or a
#'   matrix like `x`.
#' - `dlkj(L, eta = 1, log = FALSE)`: the lower Cholesky factor `L` of a correlation matrix R whose
#'   density is proportional to `det(R)^(eta - 1)` (Lewandowski, Kurowicka and Joe 2009). The
#'   density of `L` is with respect to its elements below the diagonal.
#' - `dwishart(x, df, Sigma, log = FALSE)`: Wishart, with the arguments of [rWishart()]; the mean is
#'   `df * Sigma`.
#' - `dordlogit(x, eta, cuts, log = FALSE)`: an ordered category `x`, one of 1 to
#'   `length(cuts) + 1`, with `P(x <= k) = plogis(cuts[k] - eta)`; `cuts` increase.
#'
#' @details
#' Log probabilities are accurate in both tails: the likelihood of censored or truncated data can
#' sum `pnorm(q, log.p = TRUE)` and similar values. Outside the support the density is zero, its
#' logarithm `-Inf` and the gradient zero; parameters for which R returns `NaN` give `NaN`, without
#' a warning. If a density is zero within the support, such as `dpois(2, lambda)` at `lambda = 0`,
#' its gradient may be `NaN` unless `log = TRUE`.
#'
#' Counts `x` are data; counts that are not whole numbers give a warning and have density zero.
#' `choose` and `lchoose` have no derivative with respect to `k`. Noncentral distributions (`ncp`)
#' are not available. `pgamma`, `pchisq`, `pbeta` and `pnbinom` have no second derivatives with
#' respect to shapes, sizes and degrees of freedom.
#'
#' The densities of `exp(a)` and `plogis(a)` do not compute `log(exp(a))` and `log(plogis(a))`:
#' write `dpois(y, exp(eta))` and `dbinom(y, n, plogis(eta))`, which are fast and do not overflow.
#'
#' @name cl_densities
#' @eval density_aliases()
#' @seealso [cl_gradient()]; [clMatrix-distributions] for the functions of matrices.
#' @references
#' Lewandowski, D., Kurowicka, D. and Joe, H. (2009) Generating random correlation matrices based on
#' vines and extended onion method. *Journal of Multivariate Analysis* 100, 1989-2001.
#'
#' Loader, C. (2000) *Fast and accurate computation of binomial probabilities*.
#'
#' Press, W. H., Teukolsky, S. A., Vetterling, W. T. and Flannery, B. P. (2007) *Numerical Recipes*,
#' third edition, sections 6.2 and 6.4 (incomplete gamma and beta functions).
#'
#' Wichura, M. J. (1988) Algorithm AS 241: The percentage points of the normal distribution.
#' *Applied Statistics* 37, 477-484.
#' @examples
#' # Survival times, of which some are censored
#' time <- c(3.1, 0.4, 5, 5, 2.2)
#' died <- c(TRUE, TRUE, FALSE, FALSE, TRUE)
#' f <- cl_gradient(function(shape, scale) {
#'   sum(dweibull(time[died], shape, scale, log = TRUE)) +
#'     sum(pweibull(time[!died], shape, scale, lower.tail = FALSE, log.p = TRUE))
#' })
#' f(shape = 1.2, scale = 4)
#' cl_check_gradient(f, shape = 1.2, scale = 4)
NULL
