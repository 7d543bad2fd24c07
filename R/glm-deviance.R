# Deviances of a fit: weights, responses, the null model.

# Both deviances of many counts from the numbers of times that each count occurs; the deviance only
# if it does not lose digits as a difference of likelihoods. NULL with weights or an offset.
many_counts <- function(fit) {
  y <- fit$y
  row <- family_row(fit$family)
  plain <- row$counts && is.null(row$r) && length(y) >= 1e4 && is.null(fit$prior.weights) &&
    is.null(fit$offset) && max(y) < 1e5
  if (!plain) return(NULL)
  times <- tabulate(y + 1)
  k <- which(times > 0) - 1
  times <- times[k + 1]
  mean <- rep(null_mean(fit, k, times)[1L], length(k))
  null <- row$deviance(k, mean, times, fit$aux)
  some <- k > 0 # of a mean of 0 the log density at 0 is 0
  full <- sum(times[some] * family_terms(row, k[some], log(k[some]), fit$aux)$value)
  deviance <- 2 * (full - fit$logLik)
  c(list(null.deviance = sum(null)), if (isTRUE(deviance > 0.01 * abs(full))) {
    list(deviance = deviance)
  })
}

# The null deviance of outcomes 0 and 1, without an offset from their numbers alone.
null_deviance_binary <- function(fit) {
  y <- fit$y
  w <- fit$prior.weights
  if (!is.null(fit$offset)) {
    w <- deviance_weights(fit)
    return(sum(family_row(fit$family)$deviance(y, null_mean(fit, y, w), w)))
  }
  ones <- sum(if (is.null(w)) y else w * y)
  all <- if (is.null(w)) length(y) else sum(w)
  if (fit$intercept == 0L) return(2 * all * log(2))
  count <- c(ones, all - ones)
  -2 * sum((count * log(count / all))[count > 0])
}

# Of categorical_logit with an offset, by a fit of the intercepts.
null_deviance_classes <- function(problem) {
  problem$x <- matrix(1, problem$n, 1L)
  problem$names <- "(Intercept)"
  problem$intercept <- 1L
  search <- glm_control(list(), "ml")$search
  -2 * glm_fit_mode(problem, NULL, NULL, search, FALSE)$found$value
}

# The weights of the deviance, which include the trials.
deviance_weights <- function(fit) {
  w <- ones_unless(fit$prior.weights, length(fit$y))
  if (is.null(fit$trials)) w else w * fit$trials
}

# The response on the scale of the mean: a proportion of trials.
mean_response <- function(fit) {
  if (is.null(fit$trials)) fit$y else ifelse(fit$trials > 0, fit$y / fit$trials, 0)
}

# Means of the model with only the intercept (or with no predictor if there is no intercept), by
# Newton's method if there is an offset.
null_mean <- function(fit, y, w) {
  row <- family_row(fit$family)
  offset <- fit$offset
  if (fit$intercept == 0L) return(row$inverse(if (is.null(offset)) numeric(length(y)) else offset))
  average <- if (is.null(w)) sum(y) / length(y) else sum(w * y) / sum(w)
  if (is.null(offset)) return(rep(average, length(y)))
  if (!is.null(row$r)) return(r_null_mean(fit))
  alpha <- row$link_of(average) - mean(offset)
  if (!is.finite(alpha)) return(rep(average, length(y)))
  w <- ones_unless(w, length(y))
  for (i in 1:100) {
    eta <- alpha + offset
    mu <- row$inverse(eta)
    slope <- row$slope(eta)
    variance <- row$variance(mu, fit$aux)
    step <- sum(w * (y - mu) * slope / variance) / sum(w * slope^2 / variance)
    alpha <- alpha + step
    if (abs(step) < 1e-12 * (1 + abs(alpha))) break
  }
  row$inverse(alpha + offset)
}
