# Cross-validation of generalised linear models: fits without a fold, and their predictions of the
# fold.

glm_folds <- function(fit, ids, workers, random, caller) {
  if (inherits(fit, "cl_glmm") && fit$method == "mcmc") {
    abort_argument("fit", "models with random effects by method \"mcmc\" cannot be cross-validated")
  }
  if (length(fit$fields) > 0L) {
    abort_argument("fit", sprintf("models with '%s' cannot be cross-validated",
                                  fit$fields[[1L]]$label))
  }
  check_glm_folds(fit, ids)
  x <- stats::model.matrix(fit)
  work <- list(
    fit = fit[c("family", "method", "y", "levels", "trials", "prior.weights", "offset", "intercept",
                "coefficients", "kind", "aux")],
    x = if (is_sparse(x)) x else structure(x, assign = NULL, contrasts = NULL), ids = ids,
    prior = call_value(fit, "prior", caller), control = call_value(fit, "control", caller),
    random = random)
  class(work$fit) <- class(fit)
  if (is.null(work$control)) work$control <- list()
  if (inherits(fit, "cl_glm_density")) work$second <- fold_second(fit)
  if (inherits(fit, "cl_glmm")) {
    work$designs <- random_designs(random_terms(random_bars(fit$formula[[3L]])),
                                   stats::model.frame(fit))
  }
  values <- each_fold(workers, begin_glm_folds, work)
  probabilities <- gather_folds(values, ids, "probabilities")
  mean <- gather_folds(values, ids, "mean")
  y <- mean_response(fit)
  if (is.null(probabilities)) {
    wrong <- if (family_row(fit$family)$read == "binary") (mean > 0.5) != (y > 0.5)
    observed <- y
    predicted <- mean
  } else {
    colnames(probabilities) <- fit$levels
    labels <- function(k) factor(fit$levels[k], fit$levels, ordered = fit$kind == "ordered")
    most <- max.col(probabilities, "first")
    wrong <- most != y
    observed <- labels(y)
    predicted <- labels(most)
  }
  list(y = y, mean = mean, observed = observed, predicted = predicted, wrong = wrong,
       probabilities = probabilities, log_score = gather_folds(values, ids, "log_score"),
       deviance = gather_folds(values, ids, "deviance"), used = deviance_weights(fit) > 0,
       engine = values[[1L]]$engine)
}

# The columns of the second part, or TRUE for a constant.
fold_second <- function(fit) {
  if (is.null(fit$second$name)) return(NULL)
  if (fit$second$constant) return(TRUE)
  stats::model.matrix(fit$second$terms, stats::model.frame(fit),
                      contrasts.arg = fit$second$contrasts)
}

check_glm_folds <- function(fit, ids) {
  if (has_classes(fit$family)) {
    check_fold_levels(factor(fit$levels[fit$y], fit$levels), ids, "the response")
  }
  frame <- if (!is.null(fit$terms)) stats::model.frame(fit)
  for (name in intersect(names(fit$xlevels), names(frame))) {
    check_fold_levels(droplevels(as.factor(frame[[name]])), ids, sprintf("'%s'", name))
  }
}

# function(fold): list(mean, or probabilities, log_score, deviance, warnings).
begin_glm_folds <- function(work) {
  full <- work$fit
  offset <- full$offset
  family <- full$family
  rows_of <- function(v, rows) if (!is.null(v)) pick_rows(v, rows)
  function(i) {
    train <- which(work$ids != i)
    test <- which(work$ids == i)
    x <- work$x[train, , drop = FALSE]
    control <- work$control
    if (full$method == "mcmc") control$seed <- (work$random + i) %% 2^30
    y <- full$y[train]
    if (has_classes(full$family)) y <- factor(full$levels[y], full$levels,
                                              ordered = is_ordered(full$family))
    second <- if (is.matrix(work$second)) list(x = work$second[train, , drop = FALSE])
    designs <- lapply(work$designs, function(d) {
      d$x <- d$x[train, , drop = FALSE]
      d$factor <- droplevels(d$factor[train])
      d
    })
    done <- without_fold(attr(work$ids, "labels")[i], {
      weights <- rows_of(full$prior.weights, train)
      trials <- rows_of(full$trials, train)
      f <- if (inherits(full, "cl_glmm")) {
        fit_mixed(designs, x, y, family, full$method, work$prior, weights, rows_of(offset, train),
                  trials, control, FALSE)
      } else {
        fit_glm(x, y, family, full$method, work$prior, weights, rows_of(offset, train), trials,
                full$intercept, control = control, progress = FALSE, names = colnames(x),
                second = second)
      }
      check_fold_coefficients(f, full)
      f
    })
    held <- full
    for (name in c("y", "trials", "prior.weights", "offset")) {
      held[name] <- list(rows_of(full[[name]], test))
    }
    c(predict_fold(done$fit, held, work, test),
      list(warnings = done$warnings, engine = done$fit$engine))
  }
}

check_fold_coefficients <- function(f, full) {
  name <- names(full$coefficients)
  lost <- name[!is.na(full$coefficients) & is.na(f$coefficients[name])]
  if (length(lost) > 0L) {
    abort_argument("folds", sprintf(paste("coefficient '%s' cannot be estimated from the other",
                                          "folds: supply 'folds' that spread the rows which",
                                          "determine it"), lost[1L]))
  }
}

# Predictions of the fit `f` for the held-out rows `test`, and their scores; `held` has the
# responses.
predict_fold <- function(f, held, work, test) {
  x <- work$x[test, , drop = FALSE]
  if (inherits(f, "cl_glm_density")) return(density_fold(f, held, as.matrix(x), work, test))
  if (inherits(f, "cl_glmm")) return(mixed_fold(f, held, as.matrix(x), work, test))
  if (is.null(f$draws)) {
    eta <- glm_predictor(f, x, held$offset)
    return(glm_score(held, glm_mean(f, eta),
                     weighted_log_density(held$family, held, eta, f$aux), f$aux))
  }
  values <- as.matrix(f$draws)
  k <- names(f$coefficients)
  aux <- values[, setdiff(colnames(values), k), drop = FALSE]
  total <- 0
  scores <- vapply(seq_len(nrow(values)), function(i) {
    eta <- glm_predictor(f, x, held$offset, values[i, k])
    total <<- total + glm_mean(f, eta, aux[i, ]) / nrow(values)
    weighted_log_density(held$family, held, eta, aux[i, ])
  }, numeric(length(test)))
  glm_score(held, total, log_mean_exp(matrix(scores, length(test))), colMeans(aux))
}

glm_score <- function(held, mean, log_score, aux) {
  if (has_classes(held$family)) {
    return(list(probabilities = unname(as.matrix(mean)), log_score = unname(log_score),
                deviance = unname(-2 * log_score)))
  }
  row <- family_row(held$family)
  w <- deviance_weights(held)
  mean <- as.vector(mean)
  aux <- if (length(aux) > 0L) aux[[1L]]
  list(mean = mean, log_score = if (!is.null(log_score)) unname(as.vector(log_score)),
       deviance = if (row$read == "binary") unname(-2 * log_score) else if (!row$least_squares) {
         as.vector(row$deviance(mean_response(held), mean, w, aux))
       })
}

density_fold <- function(f, held, x, work, test) {
  row <- density_of(f$family)
  eta <- glm_predictor(f, x, held$offset)
  z <- work$second
  zeta <- numeric(length(test))
  if (!is.null(row$second)) {
    zeta <- if (isTRUE(z)) rep(second_coefficients(f), length(test)) else {
      z <- z[test, , drop = FALSE]
      z <- z[, paste0(row$second, ":", colnames(z)) %in% names(f$aux), drop = FALSE]
      as.vector(z %*% second_coefficients(f))
    }
  }
  data <- list(x = list(q = cbind(as.vector(eta))), z = list(q = cbind(zeta)), y = held$y,
               w = NULL, offset = NULL)
  each <- environment(density_of_fit(f$family, data)$f)$density
  mu <- stats::make.link(row$link)$linkinv(as.vector(eta))
  score <- each(held$y, mu, zeta, density_phi(f), as.double(held$y == 0), as.vector(eta))
  list(mean = as.vector(density_mean(f, as.vector(eta), zeta)),
       log_score = score * ones_unless(held$prior.weights, length(test)))
}

# Levels that `f` has get their predicted effects; over the effects of other levels the density is
# integrated.
mixed_fold <- function(f, held, x, work, test) {
  eta <- glm_predictor(f, x, held$offset)
  variance <- numeric(length(test))
  before <- stats::setNames(integer(length(f$random)), names(f$random))
  for (t in seq_along(work$designs)) {
    d <- work$designs[[t]]
    z <- d$x[test, , drop = FALSE]
    b <- f$random[[d$group]]
    k <- before[[d$group]] + seq_len(ncol(z))
    before[[d$group]] <- max(k)
    at <- match(as.character(d$factor[test]), rownames(b))
    known <- !is.na(at)
    eta[known] <- eta[known] +
      rowSums(z[known, , drop = FALSE] * b[at[known], k, drop = FALSE])
    new <- z[!known, , drop = FALSE]
    variance[!known] <- variance[!known] + rowSums((new %*% f$variances[[t]]) * new)
  }
  at <- function(eta) weighted_log_density(held$family, held, eta, f$aux)
  score <- at(eta)
  if (!is.null(score) && any(variance > 0)) {
    nodes <- normal_nodes(1L)
    each <- vapply(seq_along(nodes$w), function(j) {
      at(eta + sqrt(variance) * nodes$z[j]) + log(nodes$w[j] * length(nodes$w))
    }, score)
    score <- ifelse(variance > 0, log_mean_exp(matrix(each, length(test))), score)
  }
  glm_score(held, glm_mean(f, eta), score, f$aux)
}
