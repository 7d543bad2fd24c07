# Fits of families whose density is written in R (glm-density-families.R): all parameters together
# by compiled gradients and Hessians, in columns that are orthogonal.

# ---- formulas of two parts -----------------------------------------------------------------------

# y ~ x | z as list(all: y ~ x + z, mean: y ~ x, second: ~ z); NULL without a bar.
two_parts <- function(formula) {
  right <- if (inherits(formula, "formula") && length(formula) == 3L) formula[[3L]]
  if (!is.call(right) || !identical(right[[1L]], quote(`|`))) return(NULL)
  part <- function(rhs, response = formula[[2L]]) {
    stats::as.formula(as.call(c(as.name("~"), response, rhs)), environment(formula))
  }
  list(all = part(call("+", right[[2L]], right[[3L]])), mean = part(right[[2L]]),
       second = part(right[[3L]], NULL))
}

# The terms of a part of the formula, with the model frame's information on its variables.
part_terms <- function(part, frame, data) {
  whole <- stats::terms(frame)
  terms <- if (is.null(data)) stats::terms(part) else stats::terms(part, data = data)
  names <- function(terms) vapply(as.list(attr(terms, "variables"))[-1L], deparse1, "")
  k <- match(names(terms), names(whole))
  attr(terms, "predvars") <- attr(whole, "predvars")[c(1L, k + 1L)]
  attr(terms, "dataClasses") <- attr(whole, "dataClasses")[k]
  terms
}

second_design <- function(bar, frame, data, family) {
  if (is.null(density_of(family)$second)) {
    abort_argument("formula", sprintf("family \"%s\" takes no second part of the formula", family))
  }
  terms <- part_terms(bar$second, frame, data)
  if (!is.null(attr(terms, "offset"))) {
    abort_argument("formula", "the second part of the formula cannot have an offset")
  }
  x <- classed(stats::model.matrix(terms, frame), "formula")
  list(x = x, terms = terms, contrasts = attr(x, "contrasts"),
       xlevels = stats::.getXlevels(terms, frame))
}

# ---- the fit -------------------------------------------------------------------------------------

# `second`: a result of second_design(), or NULL: a constant.
density_fit <- function(x, y, family, weights, offset, second, control, intercept, names) {
  row <- density_of(family)
  x <- as.matrix(x)
  if (ncol(x) == 0L) abort_argument("x", "the model has no coefficients")
  colnames(x) <- if (is.null(names)) paste0("x", seq_len(ncol(x))) else names
  y <- density_response(family, plain_numbers(y))
  n <- length(y)
  if (n != nrow(x)) {
    abort_argument("y", sprintf("'y' has %d values, but 'x' has %d rows", n, nrow(x)))
  }
  weights <- check_glm_weights(plain_numbers(weights), n)
  if (!is.null(offset)) offset <- check_offset(offset, n)
  used <- if (is.null(weights)) seq_len(n) else which(weights > 0)
  z <- if (!is.null(row$second)) {
    if (is.null(second)) matrix(1, n, 1L, dimnames = list(NULL, "(Intercept)")) else second$x
  }
  data <- list(y = y[used], w = weights[used], offset = offset[used],
               x = free_design(x[used, , drop = FALSE]),
               z = if (!is.null(z)) free_design(z[used, , drop = FALSE]))
  found <- density_mode(family, data, control)
  fit <- list(family = family, method = "ml", y = y, prior.weights = weights, offset = offset,
              nobs = length(used), intercept = intercept, kind = "number",
              rank = length(data$x$kept), converged = found$converged, message = found$message,
              iterations = found$iterations, decrement = found$decrement,
              engine = found$engine)
  fit$second <- c(list(name = row$second, constant = is.null(second)), second[-1L])
  fit <- density_estimates(fit, found, data, colnames(x), colnames(z))
  fit$logLik <- fit$objective <- found$value
  fit$deviance <- -2 * found$value
  count <- length(found$theta)
  fit$df.residual <- fit$nobs - count
  fit$df.null <- fit$nobs - (intercept > 0L) - (!is.null(z)) - row$phi - length(row$aux)
  alone <- ncol(x) == 1L && intercept > 0L && NCOL(z) < 2L
  fit$null.deviance <- if (alone) fit$deviance else if (intercept > 0L) {
    one <- free_design(matrix(1, length(used), 1L))
    null <- c(data[c("y", "w", "offset")], list(x = one, z = if (!is.null(z)) one))
    -2 * density_mode(family, null, control, quiet = TRUE)$value
  } else {
    NA_real_
  }
  beta <- fit$coefficients
  beta[is.na(beta)] <- 0
  fit$linear.predictors <- as.vector(x %*% beta) + if (is.null(offset)) 0 else offset
  fit$second$eta <- if (is.null(z)) numeric(n) else
    as.vector(z[, data$z$kept, drop = FALSE] %*% second_coefficients(fit))
  fit$fitted.values <- density_mean(fit, fit$linear.predictors, fit$second$eta)
  names(fit$linear.predictors) <- names(fit$fitted.values) <- rownames(x)
  structure(fit, class = c("cl_glm_density", "cl_glm"))
}

density_response <- function(family, y) {
  row <- density_of(family)
  y <- as.double(check_numeric(if (is.matrix(y) && ncol(y) == 1L) drop(y) else y, "y"))
  if (!is.null(row$user)) {
    if (all(is.finite(y))) return(y)
    abort_argument("y", "the response has missing or infinite values")
  }
  bad <- if (!row$counts) !(y > 0 & y < 1) else !(y >= row$positive & y == round(y) & y < 4e15)
  words <- if (!row$counts) "between 0 and 1, and neither of them" else
    if (row$positive) "positive integers" else "non-negative integers"
  if (any(is.na(bad) | bad)) {
    abort_argument("y", sprintf("the response of \"%s\" must be %s", family, words))
  }
  if (isTRUE(row$zeros) && all(y > 0)) {
    abort_argument("y", sprintf("the response has no zeros, which \"%s\" needs", family))
  }
  y
}

# Columns of length sqrt(n) that are orthogonal: x[, kept] = q root.
free_design <- function(x) {
  if (!all(is.finite(x))) {
    abort_nonfinite_column(colnames(x)[which(colSums(!is.finite(x)) > 0)[1L]], NA_integer_)
  }
  found <- qr(x, tol = 1e-11)
  k <- found$rank
  size <- sqrt(nrow(x))
  list(q = qr.Q(found)[, seq_len(k), drop = FALSE] * size,
       root = qr.R(found)[seq_len(k), seq_len(k), drop = FALSE] / size,
       kept = found$pivot[seq_len(k)])
}

# The log likelihood as a plain function of one vector, in an environment with its data.
density_of_fit <- function(family, data) {
  row <- density_of(family)
  p <- ncol(data$x$q)
  k <- NCOL(data$z$q) * !is.null(data$z)
  home <- new.env(parent = asNamespace("stats"))
  inverse <- switch(row$link, logit = quote(plogis(eta)), probit = quote(pnorm(eta)),
                    cloglog = quote(-expm1(-exp(eta))), log = quote(exp(eta)),
                    cauchit = quote(0.5 + atan(eta) / pi), identity = quote(eta),
                    inverse = quote(1 / eta), sqrt = quote(eta * eta))
  aux <- lapply(seq_along(row$aux), function(i) {
    at <- bquote(theta[.(p + k + i)])
    switch(row$aux[[i]], log = call("exp", at), logit = call("plogis", at), at)
  })
  phi <- if (!is.null(row$user)) as.call(c(quote(list), stats::setNames(aux, names(row$aux)))) else
    if (row$phi) bquote(exp(theta[.(p + k + 1L)])) else 1
  list2env(list(x = data$x$q, z = data$z$q, y = data$y, w = data$w, offset = data$offset,
                at0 = as.double(data$y == 0), density = row$density, user = row$user,
                in_beta = seq_len(p),
                in_second = p + seq_len(k), cl_log1p_exp = cl_log1p_exp,
                other = if (row$link == "logit") function(eta, mu) plogis(-eta) else
                  function(eta, mu) 1 - mu), home)
  environment(home$density) <- environment(home$other) <- home
  code <- bquote(function(theta) {
    eta <- .(if (is.null(data$offset)) quote(as.vector(x %*% theta[in_beta])) else
      quote(as.vector(x %*% theta[in_beta]) + offset))
    mu <- .(inverse)
    zeta <- .(if (k > 0L) quote(as.vector(z %*% theta[in_second])) else 0)
    each <- density(y, mu, zeta, .(phi), at0, eta)
    .(if (is.null(data$w)) quote(sum(each)) else quote(sum(w * each)))
  })
  list(f = eval(code, home), count = p + k + row$phi + length(row$aux))
}

# list(theta, value, information, ...): by nlminb(), ended by steps of Newton's method.
density_mode <- function(family, data, control, quiet = FALSE) {
  made <- density_of_fit(family, data)
  gradient <- cl_gradient(made$f)
  hessian <- cl_hessian(gradient)
  finite <- function(v) if (is.finite(v)) v else Inf
  slope <- function(theta) -as.vector(unlist(attr(gradient(theta), "gradient")))
  curve <- function(theta) -unname(as.matrix(hessian(theta)))
  start <- density_start(family, data, made$count)
  if (!is.null(density_of(family)$user)) start <- user_start(family, start, gradient, slope, finite)
  search <- stats::nlminb(start, function(theta) finite(-as.vector(gradient(theta))), slope,
                          curve, control = list(iter.max = control$maxit,
                                                eval.max = 2 * control$maxit, rel.tol = 1e-12))
  at <- function(theta) list(theta = theta, value = finite(-as.vector(gradient(theta))))
  end <- newton_search(at(search$par), function(now, exact) {
    info <- if (exact) curve(now$theta)
    root <- if (!is.null(info) && all(is.finite(info))) chol_or_null(info)
    if (is.null(root)) return(NULL)
    half <- backsolve(root, slope(now$theta), transpose = TRUE)
    list(root = root, half = half, decrement = sum(half^2), enough = control$tolerance^2)
  }, function(now, step, size) at(now$theta - size * backsolve(step$root, step$half)), 4L)
  decrement <- if (is.null(end$step)) NA_real_ else sqrt(end$step$decrement)
  found <- list(theta = end$now$theta, value = -end$now$value, root = end$step$root,
                iterations = search$iterations, decrement = decrement,
                converged = isTRUE(decrement < 1e-4),
                engine = with(environment(gradient), program_note(cost, where, gain)))
  # nlminb() gave up where the likelihood hardly changes: small steps are no sign of a mode there
  flat <- is.null(found$root) ||
    (search$convergence > 0 && any(diag(chol2inv(found$root)) > 1e10))
  if (flat) found$converged <- FALSE
  found$message <- if (found$converged) "converged" else search$message
  if (!found$converged && !quiet) {
    statcl_warning("convergence", paste0(
      "the optimiser has not converged (", found$message, "): ",
      if (density_of(family)$phi && found$theta[made$count] > 8)
        "'phi' has no finite estimate: use the Poisson family" else if (flat)
          "the likelihood has no maximum, or is flat" else
            sprintf("the mode is about %.2g standard errors away", decrement)))
  }
  found
}

density_start <- function(family, data, count) {
  row <- density_of(family)
  y <- data$y
  positive <- y > 0
  on <- if (is.null(row$zeros) || !row$zeros) rep(TRUE, length(y)) else positive
  link <- stats::make.link(row$link)
  target <- if (!is.null(row$user)) user_target(row, y) else
    link$linkfun(if (row$counts) pmax(y, 0.1) else y)
  if (!is.null(data$offset)) target <- target - data$offset
  q <- data$x$q
  beta <- as.vector(solve(base::crossprod(q[on, , drop = FALSE]) + diag(1e-6, ncol(q)),
                          base::crossprod(q[on, , drop = FALSE], target[on])))
  second <- NULL
  if (!is.null(data$z)) {
    level <- if (row$second == "phi") {
      mu <- link$linkinv(as.vector(q %*% beta))
      log(max(mean(mu * (1 - mu)) / max(mean((y - mu)^2), 1e-10) - 1, 0.1))
    } else {
      share <- mean(positive)
      stats::qlogis(min(max(if (row$second == "zero") (1 - share) / 2 else share, 0.02), 0.98))
    }
    second <- as.vector(base::crossprod(data$z$q, rep(level, length(y)))) / length(y)
  }
  if (!is.null(row$user)) return(c(beta, aux_free(row$aux, row$start)))
  c(beta, second, numeric(count - length(beta) - length(second)))
}

# Coefficients, `aux`, standard errors and covariances, from those of the orthogonal columns.
density_estimates <- function(fit, found, data, columns, others) {
  p <- fit$rank
  k <- length(data$z$kept)
  count <- length(found$theta)
  map <- diag(count)
  map[seq_len(p), seq_len(p)] <- backsolve(data$x$root, diag(p))
  if (k > 0L) map[p + seq_len(k), p + seq_len(k)] <- backsolve(data$z$root, diag(k))
  theta <- as.vector(map %*% found$theta)
  names <- c(columns[data$x$kept], if (k > 0L) paste0(fit$second$name, ":", others[data$z$kept]),
             if (count > p + k) if (is.null(density_of(fit$family)$user)) "phi" else
               names(density_of(fit$family)$aux))
  v <- matrix(NA_real_, count, count)
  if (!is.null(found$root)) v <- tcrossprod(map %*% backsolve(found$root, diag(count)))
  dimnames(v) <- list(names, names)
  fit$coefficients <- stats::setNames(rep(NA_real_, length(columns)), columns)
  fit$coefficients[data$x$kept] <- theta[seq_len(p)]
  fit$aux <- stats::setNames(theta[-seq_len(p)], names[-seq_len(p)])
  fit$covariance <- v # with log(phi)
  fit$aux_error <- NA_real_
  if (!is.null(density_of(fit$family)$user)) return(user_estimates(fit, v))
  logged <- if (count > p + k) count else
    if (identical(fit$second$name, "phi") && fit$second$constant) p + 1L
  if (!is.null(logged)) {
    fit$aux[[logged - p]] <- exp(theta[logged])
    names(fit$aux)[logged - p] <- "phi"
    fit$aux_error <- exp(theta[logged]) * sqrt(v[logged, logged])
    if (found$converged && isTRUE(v[logged, logged] > 1e4)) {
      statcl_warning("boundary", if (density_of(fit$family)$phi && theta[logged] > 8)
        "'phi' has no finite estimate: use the Poisson family" else
          sprintf("'phi' has no finite estimate above 0: it went to %.2g",
                  if (theta[logged] < -10) 0 else exp(theta[logged])))
    }
    v <- v[-logged, -logged, drop = FALSE]
  }
  fit$vcov <- v
  fit
}

# ---- what a fit has ------------------------------------------------------------------------------

# Coefficients of the second part, on its scale.
second_coefficients <- function(fit) {
  if (identical(fit$second$name, "phi") && fit$second$constant) return(log(fit$aux[["phi"]]))
  fit$aux[names(fit$aux) != "phi"]
}

density_phi <- function(fit) {
  if (!is.null(density_of(fit$family)$user)) return(as.list(fit$aux))
  if (density_of(fit$family)$phi) fit$aux[["phi"]] else 1
}

density_mean <- function(fit, eta, zeta) {
  row <- density_of(fit$family)
  row$mean(stats::make.link(row$link)$linkinv(eta), zeta, density_phi(fit))
}

# Rows of tables in addition to the coefficients: cuts, or the second part.
tabled_aux <- function(object) {
  if (is_ordered(object$family)) return(object$aux)
  if (!inherits(object, "cl_glm_density") || !is.null(density_of(object$family)$user)) return(NULL)
  object$aux[names(object$aux) != "phi"]
}

#' @export
residuals.cl_glm_density <- function(object, type = c("pearson", "response"), ...) {
  type <- check_choice(type, c("pearson", "response"), "type")
  row <- density_of(object$family)
  lacking <- if (isTRUE(row$meanless)) "mean" else if (type == "pearson" && is.null(row$variance))
    "variance"
  if (!is.null(lacking)) {
    abort_argument("type", sprintf("residuals of this type need the '%s' of the family", lacking))
  }
  rest <- object$y - object$fitted.values
  if (type == "pearson") {
    mu <- stats::make.link(row$link)$linkinv(object$linear.predictors)
    rest <- rest * sqrt(ones_unless(object$prior.weights, length(rest)) /
                          row$variance(mu, object$second$eta, density_phi(object)))
  }
  stats::naresid(object$na.action, rest)
}

#' @export
predict.cl_glm_density <- function(object, newdata = NULL,
                                   type = c("link", "response", "second"), se.fit = FALSE,
                                   interval = c("none", "confidence"), level = 0.95, ...) {
  check_dots_empty(...)
  type <- check_choice(type, c("link", "response", "second"), "type")
  interval <- check_choice(interval, c("none", "confidence"), "interval")
  se.fit <- check_flag(se.fit, "se.fit")
  level <- check_number(level, "level", 0, 1)
  row <- density_of(object$family)
  if (type == "second" && is.null(row$second)) {
    abort_argument("type", sprintf("family \"%s\" has no second part", object$family))
  }
  points <- glm_points(object, newdata)
  x <- as.matrix(points$x)
  z <- second_points(object, newdata, nrow(x))
  kept <- !is.na(object$coefficients)
  beta <- object$coefficients[kept]
  x <- x[, kept, drop = FALSE]
  eta <- as.vector(x %*% beta) + if (is.null(points$offset)) 0 else points$offset
  zeta <- if (is.null(z)) numeric(nrow(x)) else as.vector(z %*% second_coefficients(object))
  link <- stats::make.link(row$link)
  logged <- identical(row$second, "phi")
  value <- function(eta, zeta, phi) switch(type, link = eta,
    second = if (logged) exp(zeta) else stats::plogis(zeta),
    response = row$mean(link$linkinv(eta), zeta, phi))
  user <- !is.null(row$user)
  phi <- density_phi(object)
  fit <- stats::setNames(value(eta, zeta, phi), rownames(x))
  pad <- function(v) if (is.null(newdata)) pad_rows(object, v) else v
  if (!se.fit && interval == "none") return(pad(fit))
  h <- 1e-5
  by <- function(a, b, c) {
    (value(eta + a * h, zeta + b * h, phi * exp(c * h)) -
       value(eta - a * h, zeta - b * h, phi * exp(-c * h))) / (2 * h)
  }
  slope <- if (user) family_slopes(object, value, eta, x) else
    cbind(by(1, 0, 0) * x, if (!is.null(z)) by(0, 1, 0) * z, if (row$phi) by(0, 0, 1))
  se <- sqrt(pmax(rowSums((slope %*% object$covariance) * slope), 0))
  q <- stats::qnorm((1 + level) / 2)
  found <- list(fit = fit, se = stats::setNames(se, names(fit)))
  if (interval == "confidence") {
    share <- type == "second" && !logged || type == "response" && !row$counts
    ends <- if (user && type == "response" && row$plain) {
      half <- q * sqrt(pmax(rowSums((x %*% object$vcov) * x), 0))
      list(link$linkinv(eta - half), link$linkinv(eta + half))
    } else if (type == "link" || user) {
      list(fit - q * se, fit + q * se)
    } else if (share) {
      half <- q * se / (fit * (1 - fit))
      list(stats::plogis(stats::qlogis(fit) - half), stats::plogis(stats::qlogis(fit) + half))
    } else {
      list(fit * exp(-q * se / fit), fit * exp(q * se / fit))
    }
    fit <- bind_interval(list(fit = found$fit, lower = ends[[1L]], upper = ends[[2L]]))
  }
  if (!se.fit) return(pad(fit))
  list(fit = pad(fit), se.fit = pad(found$se), residual.scale = 1)
}

# The predictors of the second part; NULL if it has none.
second_points <- function(object, newdata, n) {
  second <- object$second
  if (is.null(second$name)) return(NULL)
  if (second$constant) return(matrix(1, n, 1L))
  frame <- if (is.null(newdata)) stats::model.frame(object) else
    new_frame(second$terms, newdata, second$xlevels)
  z <- stats::model.matrix(second$terms, frame, contrasts.arg = second$contrasts)
  z[, paste0(second$name, ":", colnames(z)) %in% names(object$aux), drop = FALSE]
}
