# Cross-validation of Gaussian processes.

gp_folds <- function(fit, ids, refit, workers, random, caller, ...) {
  response <- fit$response
  if (!is.null(response) && !is.null(fit$draws) && !refit) {
    abort_argument("refit", paste("the draws of this fit are of a process that knows all",
                                  "observations: use refit = TRUE, or loo::loo()"))
  }
  classes <- !is.null(response) && has_classes(fit$family)
  if (classes && refit) {
    check_fold_levels(factor(response$levels[response$y], response$levels), ids, "the response")
  }
  kept <- setdiff(names(fit), c("model", "terms", "formula", "variables", "call", "draws"[refit],
                                "design", "fitted.values", "residuals", "linear.predictors"))
  work <- list(fit = structure(fit[kept], class = class(fit)), ids = ids, refit = refit,
               arguments = list(...), random = random)
  if (refit && fit$method == "mcmc" && is.null(work$arguments$control)) {
    work$arguments$control <- call_value(fit, "control", caller)
  }
  values <- if (is.null(response) && is.null(fit$vecchia) && !refit) {
    begin_note("chol")
    list(c(all_folds(fit, ids), list(engine = engine_note("chol"))))
  } else {
    each_fold(workers, begin_gp_folds, work)
  }
  gather <- function(name) {
    if (length(values) == 1L) values[[1L]][[name]] else gather_folds(values, ids, name)
  }
  found <- list(y = fit$y, mean = gather("mean"), log_score = gather("log_score"),
                sd = gather("sd"), used = rep(TRUE, length(ids)), refit = refit,
                engine = values[[1L]]$engine)
  found$observed <- found$y
  found$predicted <- found$mean
  if (is.null(response)) return(found)
  shares <- mean_response(response)
  found$used <- deviance_weights(list(prior.weights = response$weights, y = response$y,
                                      trials = response$trials)) > 0
  found$observed <- found$y <- shares
  if (classes) {
    labels <- function(k) factor(response$levels[k], response$levels,
                                 ordered = response$kind == "ordered")
    found$probabilities <- gather("probabilities")
    colnames(found$probabilities) <- response$levels
    most <- max.col(found$probabilities, "first")
    found$wrong <- most != response$y
    found$observed <- labels(response$y)
    found$predicted <- labels(most)
    found$deviance <- -2 * found$log_score
  } else {
    if (family_row(fit$family)$read == "binary") found$wrong <- (found$mean > 0.5) != (shares > 0.5)
    found$deviance <- gather("deviance")
  }
  found
}

# ---- all folds by one inverse --------------------------------------------------------------------

# list(mean, sd, log_score) of all observations, with the parameters of the fit or of its draws.
all_folds <- function(fit, ids) {
  par <- gp_draws(fit, 50)
  whole <- is.null(fit$draws)
  parts <- lapply(seq_len(nrow(par)), function(i) {
    if (whole) block_errors(fit, ids) else block_errors(at_draw(fit, par, i), ids)
  })
  each <- function(name) vapply(parts, `[[`, numeric(length(ids)), name)
  mixture_score(fit$y, each("mean"), each("variance"))
}

# Means and variances of observations given those of the other folds.
block_errors <- function(fit, ids) {
  n <- length(ids)
  trend <- fit$trend
  k <- as.matrix(cl_cov(fit_columns(fit, fit$x), kernel = fit$kernel))
  diag(k) <- diag(k) - white_variance(fit$kernel, fit$x) + gp_noise(fit)
  root <- cl_chol(k) # its errors keep their class
  p <- as.matrix(chol2inv(root))
  if (trend$kind != "number") {
    q <- if (is.null(trend$basis)) matrix(1, n, 1L) else unname(trend$basis)
    left <- p %*% q
    p <- p - left %*% solve(crossprod(q, left), t(left))
  }
  rest <- as.vector(p %*% (fit$y - trend$centre))
  mean <- variance <- numeric(n)
  for (rows in split(seq_len(n), ids)) {
    if (!is.null(trend$basis)) { # the other folds' information on each direction of the mean
      left <- eigen(diag(ncol(q)) - crossprod(q[rows, , drop = FALSE]), TRUE, TRUE)$values
      if (min(left) < 1e-10) {
        abort_argument("folds", sprintf(paste("the observations outside fold %s do not determine",
                                              "the coefficients of the mean"),
                                        attr(ids, "labels")[ids[rows[1L]]]))
      }
    }
    inverse <- chol2inv(chol(p[rows, rows, drop = FALSE]))
    mean[rows] <- fit$y[rows] - as.vector(inverse %*% rest[rows])
    variance[rows] <- diag(inverse)
  }
  list(mean = mean, variance = variance)
}

# Mean, sd and log density of mixtures of normal distributions, one component in each column.
mixture_score <- function(y, means, variances) {
  means <- as.matrix(means)
  variances <- as.matrix(variances)
  log_density <- matrix(stats::dnorm(y, means, sqrt(variances), log = TRUE), length(y))
  mean <- rowMeans(means)
  list(mean = mean, sd = sqrt(rowMeans(variances) + rowMeans((means - mean)^2)),
       log_score = log_mean_exp(log_density))
}

# ---- a fold after another ------------------------------------------------------------------------

# function(fold): list(mean or probabilities, sd, log_score, deviance, warnings).
begin_gp_folds <- function(work) {
  fit <- work$fit
  function(i) {
    train <- which(work$ids != i)
    test <- which(work$ids == i)
    done <- without_fold(attr(work$ids, "labels")[i], {
      arguments <- c(list(fit, rows = train, progress = FALSE), if (work$refit) work$arguments else
        list(fixed = fit$par, start = NULL, method = "ml"))
      if (work$refit && fit$method == "mcmc") {
        arguments$control <- c(list(seed = (work$random + i) %% 2^30),
                               arguments$control[names(arguments$control) != "seed"])
      }
      do.call(refit_gp, arguments, quote = TRUE)
    })
    h <- if (!is.null(fit$trend$basis)) fit$trend$basis[test, , drop = FALSE] %*% fit$trend$root
    points <- list(x = fit$x[test, , drop = FALSE], h = h, complete = rep(TRUE, length(test)))
    found <- if (is.null(fit$response)) normal_fold(done$fit, fit, points, test) else
      response_fold(done$fit, response_subset(fit$response, test), points)
    c(found, list(warnings = done$warnings, engine = done$fit$engine))
  }
}

normal_fold <- function(f, fit, points, test) {
  parts <- predict_points(f, points, "variance")$parts
  par <- gp_draws(f, 50)
  noise <- function(i) {
    if (!is.null(f$noise_process)) {
      w <- fit$noise_process$weights[test]
      return(new_noise(f, points$x) / if (is.null(w)) 1 else w)
    }
    held <- if (is.null(f$draws)) f else at_draw(f, par, i)
    held$x <- points$x
    held$y <- fit$y[test]
    held$weights <- fit$weights[test]
    held$variance <- fit$variance[test]
    gp_noise(held)
  }
  means <- vapply(parts, `[[`, numeric(length(test)), "mean")
  variances <- vapply(seq_along(parts), function(i) parts[[i]]$variance + noise(i),
                      numeric(length(test)))
  mixture_score(fit$y[test], matrix(means, length(test)), matrix(variances, length(test)))
}

# Averages over the distribution of the latent process at the points.
response_fold <- function(f, held, points) {
  row <- family_row(f$family)
  d <- held$dims
  parts <- latent_parts(f, points, "variance", 50)
  n <- length(held$y)
  w <- ones_unless(held$weights, n)
  total <- 0
  scores <- list()
  over_nodes(parts, d, function(latent, aux, weight) {
    q <- response_scale(f, latent, held$offset, aux, TRUE)
    total <<- total + weight * q
    scores[[length(scores) + 1L]] <<- response_at(held, latent, aux)$l + log(weight)
  })
  scores <- matrix(unlist(scores), n)
  log_score <- log_mean_exp(scores) + log(ncol(scores))
  if (row$classes) return(list(probabilities = unname(total), log_score = log_score))
  mean <- as.vector(total)
  aux <- if (length(f$aux) > 0L) f$aux[[1L]]
  list(mean = mean, log_score = log_score, deviance = if (!is.null(row$deviance)) {
    row$deviance(mean_response(held), mean, w * (if (is.null(held$trials)) 1 else held$trials),
                 aux)
  })
}
