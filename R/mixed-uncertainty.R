# Uncertainty of predictions from fits with random effects: of the fixed effects and of those of the
# levels, together.

# For each random term list(x: its columns at the data, at: the levels of the rows among those of
# the fit, new: whether a row has another level). Terms that are not `used` have x only, and only if
# `absent`, so that new data need no further variables.
predict_rows <- function(object, newdata, used, allow, absent) {
  designs <- if (is.null(newdata)) random_designs(random_terms(random_bars(object$formula[[3L]])),
                                                  stats::model.frame(object))
  fields <- field_rows(object, newdata, used[seq_along(object$fields) + length(object$effects)])
  if (absent && any(vapply(fields, is.null, NA))) {
    abort_argument("re.form", "prediction intervals need the fields of the fit")
  }
  rows <- lapply(seq_along(object$effects), function(t) {
    effect <- object$effects[[t]]
    if (!used[t]) {
      if (!absent) return(list())
      return(list(x = if (is.null(newdata)) designs[[t]]$x else
        new_effect_columns(effect, newdata)))
    }
    design <- if (is.null(newdata)) designs[[t]] else new_design(object, effect, newdata)
    x <- design$x
    group <- as.character(design$factor)
    at <- match(group, rownames(object$random[[effect$group]]))
    new <- is.na(at) & !is.na(group)
    if (any(new) && !allow) {
      abort_argument("newdata", sprintf(paste("'%s' has the new level \"%s\": set",
                                              "allow.new.levels = TRUE to give it effects of 0"),
                                        effect$group, group[new][1L]))
    }
    list(x = x, at = at, new = new)
  })
  structure(rows, fields = fields)
}

# The columns of each term among those of its grouping factor.
term_columns <- function(object) {
  groups <- vapply(object$effects, `[[`, "", "group")
  sizes <- vapply(object$effects, function(e) length(e$columns), 0L)
  lapply(seq_along(groups), function(t) {
    sum(sizes[seq_len(t - 1L)][groups[seq_len(t - 1L)] == groups[t]]) + seq_len(sizes[t])
  })
}

# Z b of the rows.
predict_effects <- function(object, rows) {
  columns <- term_columns(object)
  fields <- field_predictor(object, attr(rows, "fields"))
  Reduce(`+`, lapply(which(vapply(rows, function(r) !is.null(r$at), NA)), function(t) {
    row <- rows[[t]]
    b <- object$random[[object$effects[[t]]$group]]
    own <- rowSums(row$x * b[row$at, columns[[t]], drop = FALSE])
    own[row$new] <- 0
    own
  }), fields)
}

# z' Sigma z for rows whose effects are not in the fit: of new levels, and with `absent` of terms
# without levels. `variances`: covariance matrices of the terms.
predict_unknown <- function(rows, variances, absent) {
  if (length(rows) == 0L) return(0)
  Reduce(`+`, Map(function(row, v) {
    if (is.null(row$at) && !absent) return(0)
    found <- rowSums((row$x %*% v) * row$x)
    if (is.null(row$at)) found else ifelse(row$new, found, 0)
  }, rows, variances), 0)
}

# ---- by the Hessian of effects and coefficients --------------------------------------------------

# Variances of x'beta + z'b given the variance parameters, for b of levels in the fit. With a =
# Lambda'z, H the Hessian of the effects u and B that of u and beta, it is sigma^2 a'H^-1 a + c'V c,
# where V = Var(beta) and c = x - B'H^-1 a. T is the inverse of the Hessian of both.
predict_variance <- function(object, x, rows) {
  if (has_latent(object)) return(field_variance(object, x, rows))
  found <- mixed_hessian(object, fixed = TRUE)
  if (is.null(found$f)) abort_argument("object", "the effects have no finite conditional variances")
  model <- found$model
  f <- found$f
  kept <- rownames(object$vcov)
  p <- length(kept)
  last <- model$dense + seq_len(p)
  parts <- inverse_parts(model, f, seq_len(model$dense + p))
  n <- nrow(x)
  columns <- term_columns(object)
  groups <- vapply(object$effects, `[[`, "", "group")
  at <- lapply(seq_along(model$blocks), function(b) {
    block <- model$blocks[[b]]
    z <- matrix(0, n, block$K)
    level <- rep(NA_integer_, n)
    for (t in which(groups == block$name)) {
      row <- rows[[t]]
      if (is.null(row$at)) next
      level <- match(rownames(object$random[[block$name]])[row$at], block$levels)
      z[, columns[[t]]] <- row$x * !row$new
    }
    known <- is.na(level) & rowSums(z != 0) == 0 # no effect, so any level will do
    level[known] <- 1L
    a <- (z / rep(block$scale, each = n)) %*% f$lambda[[b]]
    list(a = a, level = level,
         column = if (b > 1L) vapply(seq_len(block$K), function(j)
           columns_of(model, b, j)[level], numeric(n)))
  })
  square <- numeric(n)
  seen <- matrix(0, n, p) # T_beta,u a
  for (b in seq_along(at)) for (i in seq_len(ncol(at[[b]]$a))) {
    own <- at[[b]]
    column_b <- if (b > 1L) matrix(own$column, n)[, i]
    if (p > 0L) seen <- seen + own$a[, i] * if (b == 1L)
      -cross_columns(parts, i, last)[own$level, , drop = FALSE] else
        parts$inverse[column_b, last, drop = FALSE]
    for (c in seq_along(at)) for (j in seq_len(ncol(at[[c]]$a))) {
      column_c <- if (c > 1L) matrix(at[[c]]$column, n)[, j]
      h <- if (b == 1L && c == 1L) parts$own[[i]][[j]][own$level] else
        if (b == 1L) -cross_elements(parts, i, own$level, column_c) else
          if (c == 1L) -cross_elements(parts, j, at[[c]]$level, column_b) else
            parts$inverse[cbind(column_b, column_c)]
      square <- square + h * own$a[, i] * at[[c]]$a[, j]
    }
  }
  if (p == 0L) return(found$sigma^2 * pmax(square, 0))
  s <- tcrossprod(seen, f$r[last, last, drop = FALSE])
  v <- found$turn %*% object$vcov %*% t(found$turn)
  x <- t(backsolve(found$turn, t(x[, kept, drop = FALSE]), transpose = TRUE))
  left <- x + s %*% f$r[last, last, drop = FALSE]
  found$sigma^2 * pmax(square - rowSums(s^2), 0) + pmax(rowSums((left %*% v) * left), 0)
}

predict_wald <- function(object, eta, points, rows, type, interval, level, weights) {
  known <- any(lengths(attr(rows, "fields")) > 0L) ||
    any(vapply(rows, function(r) !is.null(r$at), NA))
  square <- if (known) predict_variance(object, points$x, rows) else
    wald_errors(object, points$x[, rownames(object$vcov), drop = FALSE], rownames(object$vcov))^2
  of_rows <- function(absent) predict_unknown(rows, object$variances, absent)
  se <- sqrt(square + of_rows(FALSE))
  tails <- stats::qnorm((1 + level) / 2) * c(-1, 1)
  normal <- is_least_squares(object$family)
  result <- list(fit = eta, se = se)
  wide <- if (interval == "prediction") sqrt(square + of_rows(TRUE) +
                                               if (normal) object$aux[[1L]]^2 / weights else 0)
  ends <- if (is.null(wide) || normal) lapply(tails, function(q) {
    eta + q * if (is.null(wide)) se else wide
  })
  if (type == "response") {
    result <- list(fit = glm_mean(object, eta), se = se * abs(family_row(object$family)$slope(eta)))
    ends <- lapply(ends, function(v) glm_mean(object, v))
  }
  if (!is.null(wide) && !normal) {
    nodes <- stats::qnorm((1:51 - 0.5) / 51)
    ends <- predict_quantiles(object, as.vector(eta) + outer(wide, nodes), level)
  }
  result[c("lower", "upper")] <- ends
  result
}

# Quantiles of new responses, averaged over the columns of linear predictors.
predict_quantiles <- function(object, eta, level, aux = NULL) {
  mu <- eta
  mu[] <- link_inverse(object$family, as.vector(eta))
  law_quantiles(response_law(object, aux), mu, c((1 - level) / 2, (1 + level) / 2))
}

check_response_law <- function(object, type) {
  law <- response_law(object)
  if (is.null(law) || type == "link" && law$link != "identity") {
    abort_argument("interval", paste("prediction intervals are for type = \"response\", and for",
                                     "normal, gamma, Poisson and negative binomial responses"))
  }
}

# ---- by draws ------------------------------------------------------------------------------------

# Means, standard deviations and quantiles over draws. An effect that is not in the fit is drawn
# from its normal distribution at each draw, with the same random numbers in each call.
predict_drawn <- function(object, points, rows, type, interval, level, weights) {
  draws <- glm_draws(object, kept_draws)
  count <- nrow(draws)
  z <- stats::qnorm((seq_len(count) * 0.6180339887498949) %% 1)
  x <- points$x
  n <- nrow(x)
  sizes <- lengths(lapply(object$effects, `[[`, "columns"))
  variances <- predict_draws(object, draws, sizes)
  normal <- is_least_squares(object$family)
  aux <- if (length(object$aux) > 0L) draws[, ncol(draws)]
  tails <- c((1 - level) / 2, (1 + level) / 2)
  k <- names(object$coefficients)[!is.na(object$coefficients)]
  pick <- function(v, i) if (length(v) > 1L) v[i] else v
  step <- max(1L, floor(2e6 / count))
  parts <- lapply(split(seq_len(n), (seq_len(n) - 1L) %/% step), function(i) {
    eta <- tcrossprod(x[i, k, drop = FALSE], draws[, k, drop = FALSE])
    if (!is.null(points$offset)) eta <- eta + points$offset[i]
    spread <- list(new = 0 * eta, all = 0 * eta)
    for (t in seq_along(rows)) {
      row <- rows[[t]]
      for (j in seq_len(sizes[t] * !is.null(row$x))) {
        if (!is.null(row$at)) {
          b <- t(object$effect_draws[[t]][, row$at[i], j])
          b <- matrix(b, length(i))
          b[row$new[i], ] <- 0
          eta <- eta + row$x[i, j] * b
        }
        for (h in seq_len(sizes[t])) {
          v <- outer(row$x[i, j] * row$x[i, h], variances[[t]][[j]][[h]])
          if (is.null(row$at)) spread$all <- spread$all + v else {
            v[!(row$new[i] %in% TRUE), ] <- 0
            spread$new <- spread$new + v
          }
        }
      }
    }
    noise <- function(v) eta + sqrt(v) * rep(z, each = length(i))
    with_new <- noise(spread$new)
    shown <- if (type == "link") with_new else link_inverse(object$family, with_new)
    shown <- matrix(shown, length(i))
    middle <- if (type == "link") rowMeans(eta) else rowMeans(shown)
    found <- list(fit = middle, se = if (type != "link") apply(shown, 1L, stats::sd) else
      sqrt(apply(eta, 1L, stats::var) + rowMeans(spread$new)))
    if (interval == "prediction") {
      wide <- noise(spread$new + spread$all +
                      if (normal) outer(1 / pick(weights, i) + numeric(length(i)), aux^2) else 0)
      if (!normal) return(c(found, stats::setNames(
        predict_quantiles(object, wide, level, rep(aux, each = length(i))), c("lower", "upper"))))
      shown <- wide
    }
    limits <- apply(shown, 1L, function(v)
      if (anyNA(v)) c(NA_real_, NA_real_) else stats::quantile(v, tails, names = FALSE))
    c(found, list(lower = limits[1L, ], upper = limits[2L, ]))
  })
  of <- function(name) unlist(lapply(parts, `[[`, name), use.names = FALSE)
  found <- lapply(c(fit = "fit", se = "se", lower = "lower", upper = "upper"), of)
  names(found$fit) <- rownames(x)
  found
}

# The largest number of draws for which effects are kept, evenly spaced.
kept_draws <- 1000

# For each term the draws of its covariances, [[i]][[j]], from those of standard deviations and
# correlations, which follow the coefficients.
predict_draws <- function(object, draws, sizes) {
  before <- sum(!is.na(object$coefficients))
  lapply(sizes, function(k) {
    sd <- lapply(seq_len(k), function(i) draws[, before + i])
    at <- before + k
    v <- lapply(seq_len(k), function(i) list())
    for (i in seq_len(k)) for (j in seq_len(i)) {
      if (i > j) at <- at + 1L
      v[[i]][[j]] <- v[[j]][[i]] <- sd[[i]] * sd[[j]] * if (i > j) draws[, at] else 1
    }
    before <<- at
    v
  })
}
