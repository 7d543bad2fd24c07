# Second derivatives of likelihoods of generalised linear models.

#' Hessian of the log likelihood of a generalised linear model
#'
#' The second derivatives of [cl_glm_lpdf()] with respect to the coefficients: `-X' W X`, where the
#' diagonal matrix W holds the negative second derivative of each observation's log density with
#' respect to its linear predictor. It serves Newton's method, standard errors (`solve(-hessian)`)
#' and Laplace's approximation.
#'
#' The weights are, with `p = 1 / (1 + exp(-eta))`: `p (1 - p)` for `bernoulli_logit`, times
#' `trials` for `binomial_logit`; `1 / sigma^2` for `normal_id`; `exp(eta)` for `poisson_log`; `(y +
#' phi) q (1 - q)` with `q = mu / (mu + phi)` for `neg_binomial_2_log`; the sum of `F (1 - F)` over
#' the two cuts of the class for `ordered_logistic`. For `categorical_logit` there is a block for
#' each pair of classes, with the weights `p_c (1 - p_c)` and `-p_c p_d`.
#'
#' @inheritParams cl_glm_lpdf
#' @param beta The coefficients, one parameter vector.
#' @param sigma,phi,cuts,trials As for [cl_glm_lpdf()].
#' @return A symmetric k x k matrix, for `categorical_logit` kC x kC with the coefficients of a
#'   class next to each other; a `clMatrix` if `x` is one.
#' @section Errors: as [cl_glm_lpdf()].
#' @seealso [cl_glm_lpdf()]
#' @export
#' @examples
#' x <- cbind(1, scale(mtcars$wt))
#' fit <- glm(mtcars$am ~ x - 1, family = binomial)
#' solve(-cl_glm_hessian("bernoulli_logit", mtcars$am, x, beta = coef(fit)))
#' vcov(fit)
cl_glm_hessian <- function(family, y, x, alpha = 0, beta = numeric(), ..., sigma = NULL, phi = NULL,
                           cuts = NULL, trials = NULL) {
  check_dots_empty(...)
  check_family(family)
  x <- one_for_each(predictors(x), y)
  beta <- on_host(beta)
  if (length(beta) == 1L && !is_categorical(family)) beta <- rep(as.vector(beta), ncol(x))
  # One evaluation checks all arguments and that the predictor is finite.
  value <- cl_glm_lpdf(family, y, x, alpha, beta, sigma = sigma, phi = phi, cuts = cuts,
                       trials = trials)
  if (length(value) > 1L) {
    abort_argument("beta", "the Hessian is available for one parameter vector at a time only")
  }
  k <- ncol(x)
  eta <- as.matrix(cl_matmul(x, matrix(as.double(beta), k, if (k > 0L) length(beta) / k else 1L)))
  if (is_categorical(family)) return(class_hessian(x, eta, on_host(alpha)))
  eta <- as.vector(eta) + as.vector(on_host(alpha))
  aux <- as.vector(on_host(c(sigma, phi, cuts)))
  n <- length(eta)
  trials <- response(trials, "trials")
  weight <- glm_weights(family, rep_len(as.vector(response(y)), n), eta, aux,
                        if (!is.null(trials)) rep_len(as.vector(trials), n))
  -weighted_crossprod(x, rep_len(weight, nrow(x)))
}

# Negative second derivatives of each observation's log density with respect to its linear
# predictor, a vector or a clMatrix with one column; the result has the same class.
glm_weights <- function(family, y, eta, aux, trials) {
  row <- family_row(family)
  if (!is_cl(eta)) return(family_terms(row, y, eta, aux, trials, 3L)$weight)
  if (!is.null(row$device$weight)) return(row$device$weight(y, eta, aux, trials))
  column_beside(glm_weights(family, as.vector(y), as.vector(as.matrix(eta)), aux,
                            if (!is.null(trials)) as.vector(trials)), eta)
}

# The blocks of categorical_logit.
class_hessian <- function(x, eta, alpha) {
  classes <- ncol(eta)
  eta <- eta + rep(rep_len(as.vector(alpha), classes), each = nrow(eta))
  share <- exp(eta - apply(eta, 1L, max))
  share <- share / rowSums(share)
  rows <- lapply(seq_len(classes), function(c) {
    do.call(cbind, lapply(seq_len(classes), function(d) {
      others <- rowSums(share[, -c, drop = FALSE])
      weight <- if (c == d) share[, c] * others else -share[, c] * share[, d]
      -weighted_crossprod(x, weight)
    }))
  })
  do.call(rbind, rows)
}
