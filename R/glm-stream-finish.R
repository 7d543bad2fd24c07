# The results of a fit by blocks other than its coefficients: the null model, deviances, the
# likelihood, and phi.

# ---- the null model with an offset ---------------------------------------------------------------

# Its intercept is found by Newton's method, in the passes of the search and further ones.
null_terms <- function(s, block) {
  if (is.null(s$alpha)) {
    s$alpha <- s$r$linkfun(s$mean) - s$mean_offset
    s$null_change <- Inf
  }
  eta <- s$alpha + block$offset
  mu <- s$r$linkinv(eta)
  slope <- s$r$mu.eta(eta)
  by_eta <- block$w * slope / s$r$variance(mu)
  c(sum(by_eta * (block$y - mu)), sum(by_eta * slope))
}

step_null <- function(s, sums) {
  change <- sums[1L] / sums[2L]
  s$alpha <- if (is.finite(change)) s$alpha + change else s$alpha - s$null_change / 2
  s$null_change <- if (is.finite(change)) change else s$null_change / 2
}

finish_null <- function(s) {
  for (i in 1:50) {
    if (isTRUE(abs(s$null_change) <= 1e-12 * (1 + abs(s$alpha)))) break
    sums <- numeric(2L)
    run_pass(s, "null model", function(block) sums <<- sums + null_terms(s, block),
             function(job) TRUE)
    step_null(s, sums)
  }
}

# ---- the fit -------------------------------------------------------------------------------------

finish_stream <- function(s, found) {
  normal <- is_least_squares(s$family)
  k <- length(found$kept)
  root <- if (k > 0L) backsolve(found$root, diag(k)) else matrix(0, 0L, 0L)
  rownames(root) <- s$names[found$kept]
  beta <- rep(NA_real_, length(s$names))
  beta[found$kept] <- found$beta[found$kept]
  if (s$search_null) finish_null(s)
  aux <- if (is.null(s$aux)) stats::setNames(numeric(), character()) else s$aux
  fit <- list(coefficients = stats::setNames(beta, s$names), aux = aux, aux_error = NA_real_,
              rank = k, family = s$family, method = "ml", levels = s$found$levels,
              kind = s$found$kind, nobs = s$count[["used"]], converged = found$converged,
              message = found$message, iterations = max(1L, found$iterations),
              decrement = found$decrement, intercept = s$intercept,
              df.residual = s$count[["used"]] - k,
              df.null = s$count[["used"]] - as.integer(s$intercept > 0L))
  sums <- final_sums(s, fit, found$deviance)
  fit$deviance <- if (normal && isTRUE(s$exact)) found$deviance else sums[["deviance"]]
  fit$null.deviance <- sums[["null"]]
  phi <- 1
  if (normal) {
    if (is_perfect(fit$deviance / fit$df.residual, sums[["squares"]] / fit$nobs)) warn_perfect()
    phi <- if (fit$df.residual > 0) fit$deviance / fit$df.residual else NaN
    fit$aux <- c(sigma = sqrt(phi))
    fit$aux_error <- fit$aux[[1L]] / sqrt(2 * fit$df.residual)
    log_variance <- log(2 * pi * fit$deviance / fit$nobs)
    fit$logLik <- (sums[["likelihood"]] - fit$nobs * (log_variance + 1)) / 2
  } else if (is.null(r_family(s$family))) {
    fit$logLik <- sums[["likelihood"]]
    if (!is.null(s$aux)) fit$aux_error <- s$aux_error
  } else {
    if (!dispersion_known(s$r)) {
      phi <- if (fit$df.residual > 0) sums[["pearson"]] / fit$df.residual else NaN
      fit$aux <- c(dispersion = phi)
    }
    extra <- likelihood_df(fit) - fit$rank
    # each block has added 2 for the dispersion to the AIC
    fit$logLik <- extra - sums[["likelihood"]] / 2 + (sums[["blocks"]] - 1) * extra
  }
  fit$objective <- fit$logLik
  fit$mean_square <- sums[["squares"]] / fit$nobs
  fit$vcov.root <- root * sqrt(phi)
  fit$vcov <- tcrossprod(fit$vcov.root)
  dimnames(fit$vcov) <- list(rownames(root), rownames(root))
  # the likelihood of counts that are not whole is 0
  warn_r_means(s$r, list(fitted.values = c(sums[["low"]], sums[["high"]]),
                         y = if (is.finite(fit$logLik)) 0 else 0.5, converged = fit$converged,
                         message = fit$message), c(1, 1))
  fit$formula <- s$formula
  fit$terms <- s$terms
  fit[["assign"]] <- s[["assign"]]
  fit$contrasts <- s$contrasts
  fit$xlevels <- s$levels[setdiff(names(s$levels), names(attr(s$terms, "dataClasses"))[1L])]
  if (length(s$dropped) > 0L) fit$na.action <- structure(s$dropped, class = s$action)
  fit$blocks <- s$count[["blocks"]]
  structure(fit, class = c("cl_glm_stream", "cl_glm"))
}

# Sums at the estimates, with the functions of fits in memory.
final_sums <- function(s, fit, deviance) {
  sums <- c(deviance = 0, null = 0, pearson = 0, squares = 0, likelihood = 0, blocks = 0)
  ends <- c(low = Inf, high = -Inf)
  row <- family_row(fit$family)
  send <- function(block) {
    at <- block_fit(fit, block)
    w <- block$w
    mu <- at$fitted.values
    null <- if (s$intercept == 0L) {
      rep_len(row$inverse(block$offset), length(mu))
    } else if (s$search_null) row$inverse(s$alpha + block$offset) else
      rep(s$mean, length(mu))
    part <- function(mu) sum(row$deviance(block$y, mu, w, fit$aux))
    pearson <- sum(w * (block$y - mu)^2 / row$variance(mu, fit$aux))
    sums <<- sums + c(part(mu), part(null), pearson, sum(mu^2),
                      block_likelihood(s, at, block, deviance), 1)
    ends <<- c(low = min(ends[[1L]], mu), high = max(ends[[2L]], mu))
    NULL
  }
  run_pass(s, "last pass", send, function(job) TRUE)
  c(sums, ends)
}

# The rows of a block as a fit in memory.
block_fit <- function(fit, block) {
  fit[c("y", "trials", "prior.weights", "offset")] <-
    block$part[c("y", "trials", "prior.weights", "offset")]
  fit$na.action <- NULL
  beta <- replace(fit$coefficients, is.na(fit$coefficients), 0)
  fit$linear.predictors <- as.vector(block$x %*% beta) +
    if (is.null(block$offset)) 0 else block$offset
  fit$fitted.values <- link_inverse(fit$family, fit$linear.predictors)
  class(fit) <- "cl_glm"
  fit
}

# The log likelihood of a block; for normal_id the logarithms of the weights; of families of R the
# AIC, with the block's share of the deviance.
block_likelihood <- function(s, at, block, deviance) {
  row <- family_row(at$family)
  if (row$least_squares) return(sum(log(block$w)))
  if (is.null(row$r)) {
    return(sum(weighted_log_density(at$family, at, at$linear.predictors, at$aux)))
  }
  n <- length(at$y)
  share <- if (row$variance_name == "constant") n / s$count[["used"]] else
    sum(block$w) / s$sums[2L]
  suppressWarnings(s$r$aic(block$y, rep(1, n), at$fitted.values, block$w, deviance * share))
}

# ---- phi -----------------------------------------------------------------------------------------

# Coefficients and phi in turn, until phi moves by less than 1e-8 standard errors.
search_phi <- function(s, start, control) {
  s$aux <- c(phi = 1)
  held <- FALSE
  steps <- 0L
  for (round in 1:50) {
    s$r <- nb_family(s$aux[[1L]])
    found <- search_stream(s, start, control)
    start <- found$beta
    steps <- steps + found$iterations
    if (held) break
    change <- Inf
    for (i in seq_len(if (round == 1L) 20L else 1L)) {
      at <- phi_terms(s, found$beta)
      held <- log(s$aux[[1L]]) > 16 + log(max(at$most, 1))
      if (held) break
      change <- if (at$second < 0) -at$first / at$second else sign(at$first)
      change <- max(min(change, 2), -2)
      s$aux[[1L]] <- s$aux[[1L]] * exp(change)
      if (abs(change) < 0.01) break
    }
    if (!held && abs(change) * sqrt(abs(at$second)) <= control$tolerance) break
  }
  found$iterations <- steps
  s$aux_error <- if (held) NA_real_ else s$aux[[1L]] / sqrt(-at$second)
  if (held) warn_mode(NULL, list(converged = TRUE, held = TRUE))
  s$r <- nb_family(s$aux[[1L]])
  s$null_change <- Inf
  found
}

# Derivatives of the log likelihood by log(phi).
phi_terms <- function(s, beta) {
  phi <- s$aux[[1L]]
  sums <- c(0, 0)
  most <- 0
  send <- function(block) {
    y <- block$y
    sum <- exp(as.vector(block$x %*% beta) + block$offset) + phi
    ratio <- (y + phi) / sum
    first <- digamma(y + phi) - digamma(phi) + log(phi / sum) + 1 - ratio
    second <- trigamma(y + phi) - trigamma(phi) + 1 / phi - 2 / sum + ratio / sum
    sums <<- sums + c(sum(block$w * first), sum(block$w * second))
    most <<- max(most, y)
    NULL
  }
  run_pass(s, "phi", send, function(job) TRUE)
  list(first = phi * sums[1L], second = phi * sums[1L] + phi^2 * sums[2L], most = most)
}
