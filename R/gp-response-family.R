# Families of observations of a latent Gaussian process: log densities with three derivatives.
#
# The latent values f are an n x d matrix: d = 1, or for categorical_logit one process fewer than
# there are classes. The predictors of C classes with independent processes of one covariance
# function are f H', where the columns of H (C x (C - 1)) are orthonormal and sum to zero: what all
# classes have in common does not change any probability.

response_families <- c("bernoulli_logit", "binomial_logit", "poisson_log", "neg_binomial_2_log",
                       "student_t", "ordered_logistic", "categorical_logit")

# The name of the family; NULL for normal observations.
response_family <- function(family, y) {
  if (is.null(family)) return(NULL)
  if (!identical(family, "student_t")) {
    family <- tryCatch(family_of_response(family, y, NULL), statcl_error_argument = function(e) {
      if (identical(e$argument, "family")) "" else stop(e)
    })
  }
  if (identical(as.vector(family), "normal_id")) return(NULL)
  if (is.list(family) || !family %in% response_families) {
    abort_argument("family", sprintf("'family' of a Gaussian process must be one of %s",
                                     paste0("\"", response_families, "\"", collapse = ", ")))
  }
  family
}

# The checked response: list(family, y, trials, levels, weights, kind, offset, contrasts, dims).
gp_response <- function(family, y, weights, offset) {
  numbers <- plain_numbers(y)
  found <- if (family == "student_t") {
    list(y = check_numeric(numbers, "y"), kind = "number",
         weights = check_glm_weights(plain_numbers(weights), NROW(numbers)))
  } else {
    glm_response(family, y, NULL, weights)
  }
  found$y <- as.vector(found$y)
  check_gp_finite(found$y, "y")
  check_support(family, found)
  found$family <- family
  n <- length(found$y)
  classes <- if (family == "categorical_logit") length(found$levels)
  found$offset <- if (!is.null(offset)) check_offset(offset, family, n, classes) else
    if (is.null(classes)) numeric(n) else matrix(0, n, classes)
  if (!is.null(classes)) {
    h <- stats::contr.helmert(classes)
    found$contrasts <- sweep(unname(h), 2L, sqrt(colSums(h^2)), "/")
  }
  found$dims <- if (is.null(found$contrasts)) 1L else ncol(found$contrasts)
  found
}

response_subset <- function(response, rows) {
  for (name in c("y", "trials", "weights", "offset")) {
    if (!is.null(response[[name]])) response[[name]] <- pick_rows(response[[name]], rows)
  }
  response
}

# Latent values that fit the observations, n x d: where the mode is searched from.
response_guess <- function(response) {
  y <- response$y
  eta <- switch(response$family,
    bernoulli_logit = 2.2 * (y - 0.5),
    binomial_logit = stats::qlogis((y + 0.5) / (response$trials + 1)),
    poisson_log = , neg_binomial_2_log = log(y + 0.5),
    student_t = y,
    ordered_logistic = y - mean(y),
    categorical_logit = 2 * response$contrasts[y, , drop = FALSE])
  if (is.matrix(eta)) eta else matrix(eta - response$offset)
}

# The rows of gp_space() for the family's further parameters; `scale`: that of y.
response_rows <- function(response, scale) {
  row <- function(name, low, high, from, to, role = name) {
    data.frame(name = name, role = role, log = TRUE, unit = 1, low = low, high = high, from = from,
               to = to, flat = FALSE, width = NA)
  }
  gaps <- length(response$levels) - 2L
  switch(response$family,
    neg_binomial_2_log = row("phi", 1e-3, 1e5, 0.5, 10),
    student_t = rbind(row("scale", 1e-4 * scale, 10 * scale, 0.03 * scale, 0.7 * scale),
                      row("df", 0.5, 1e3, 2, 10)),
    ordered_logistic = if (gaps > 0L) {
      do.call(rbind, lapply(seq_len(gaps), function(i) {
        row(paste0("gap", i), 1e-3, 1e3, 0.5, 2, "gap")
      }))
    })
}

response_cuts <- function(aux) c(0, cumsum(aux))

# At latent values f (n x d) and the family's further parameters, with a row for each observation:
# l (log density), d1 (n x d), w (minus the second derivatives: n, or n x d x d), v (what stands for
# w in determinants; w itself unless the family is "student_t", which also has `wide`), third(s):
# half the derivatives of -tr(S V) for given s like v, and with `by` a list by parameter of l, d1
# and v.
response_at <- function(response, f, aux, by = FALSE) {
  y <- response$y
  at <- if (response$family == "categorical_logit") {
    categorical_at(response, f)
  } else {
    eta <- f[, 1L] + response$offset
    aux <- unname(aux)
    one <- switch(response$family,
      bernoulli_logit = logit_at(y, 1, eta),
      binomial_logit = logit_at(y, response$trials, eta),
      poisson_log = {
        mu <- exp(eta)
        list(l = stats::dpois(y, mu, log = TRUE), d1 = y - mu, w = mu, d3 = -mu)
      },
      neg_binomial_2_log = negative_at(y, eta, aux, by),
      student_t = student_at(y - eta, aux[1L], aux[2L], by),
      ordered_logistic = ordered_at(y, eta, aux, by))
    one$third <- function(s) matrix(0.5 * s * one$d3)
    one
  }
  weigh <- response$weights
  if (!is.null(weigh)) {
    third <- at$third
    at$third <- function(s) weigh * third(s)
    scaled <- function(part) {
      for (name in setdiff(names(part), c("d3", "third", "by"))) {
        part[[name]] <- part[[name]] * weigh
      }
      part
    }
    at <- scaled(at)
    at$by <- lapply(at$by, scaled)
  }
  if (is.null(at$v)) at$v <- at$w
  at$d1 <- as.matrix(at$d1)
  at
}

logit_at <- function(y, n, eta) {
  p <- stats::plogis(eta)
  q <- stats::plogis(-eta)
  w <- n * p * q
  list(l = y * stats::plogis(eta, log.p = TRUE) + (n - y) * stats::plogis(-eta, log.p = TRUE) +
         lgamma(n + 1) - lgamma(y + 1) - lgamma(n - y + 1),
       d1 = y * q - (n - y) * p, w = w, d3 = -w * (q - p))
}

negative_at <- function(y, eta, phi, by) {
  mu <- exp(eta)
  p <- stats::plogis(eta - log(phi))
  q <- stats::plogis(log(phi) - eta)
  w <- (y + phi) * p * q
  list(l = stats::dnbinom(y, phi, mu = mu, log = TRUE), d1 = y * q - phi * p, w = w,
       d3 = -w * (q - p),
       by = if (by) list(list(
         l = digamma(y + phi) - digamma(phi) - log1p(mu / phi) + (mu - y) / (mu + phi),
         d1 = (y * q - phi * p) * p / phi, v = p * q * (phi * 2 * p + y * (p - q)) / phi)))
}

# The curvature w is negative at outliers. In the determinant of Laplace's approximation it is
# replaced by v, that of the normal density which has the same height: as a function of eta both
# have the integral 1. In variances it is replaced by `wide`, which is positive and small at
# outliers: the positive part (df + 1) a / b^2 of w, times what gives it the expectation of w.
student_at <- function(r, scale, df, by) {
  a <- df * scale^2
  b <- a + r^2
  ones <- rep(1, length(r))
  v <- 2 * pi * (stats::dt(0, df) / scale)^2
  of_gamma <- digamma((df + 1) / 2) - digamma(df / 2) - 1 / df
  list(l = stats::dt(r / scale, df, log = TRUE) - log(scale), d1 = (df + 1) * r / b,
       w = (df + 1) * (a - r^2) / b^2, v = v * ones, wide = (df + 1)^2 / (df + 2) * a / b^2,
       d3 = 0 * ones,
       by = if (by) list(
         list(l = ((df + 1) * r^2 / b - 1) / scale, d1 = -2 * df * scale * (df + 1) * r / b^2,
              v = -2 * v / scale * ones),
         list(l = 0.5 * (of_gamma - log1p(r^2 / a) + (df + 1) * r^2 / (b * df)),
              d1 = (r - (df + 1) * r * scale^2 / b) / b, v = v * of_gamma * ones)))
}

ordered_at <- function(y, eta, gaps, by) {
  ends <- c(-Inf, response_cuts(gaps), Inf)
  a <- ends[y + 1L] - eta
  b <- ends[y] - eta
  spread <- stats::dlogis
  slope <- function(v) ifelse(is.finite(v), spread(v) * (stats::plogis(-v) - stats::plogis(v)), 0)
  at <- list(l = stats::plogis(a, log.p = TRUE) + stats::plogis(-b, log.p = TRUE) +
               log(-expm1(ends[y] - ends[y + 1L])),
             d1 = stats::plogis(b) - stats::plogis(-a), w = spread(a) + spread(b),
             d3 = slope(a) + slope(b))
  if (by && length(gaps) > 0L) {
    between <- 1 / expm1(ends[y + 1L] - ends[y])
    at$by <- lapply(seq_along(gaps), function(j) {
      above <- y <= length(gaps) + 1L & y > j # whose upper cut moves
      below <- y > j + 1L
      list(l = above * (stats::plogis(-a) + between) - below * (stats::plogis(b) + between),
           d1 = above * spread(a) + below * spread(b), v = above * slope(a) + below * slope(b))
    })
  }
  at
}

categorical_at <- function(response, f) {
  h <- response$contrasts
  n <- nrow(f)
  d <- ncol(h)
  eta <- tcrossprod(f, h) + response$offset
  top <- do.call(pmax, lapply(seq_len(d + 1L), function(c) eta[, c]))
  p <- exp(eta - top)
  total <- rowSums(p)
  p <- p / total
  hit_at <- cbind(seq_len(n), response$y)
  hit <- -p
  hit[hit_at] <- hit[hit_at] + 1
  w <- array(0, c(n, d, d))
  ph <- p %*% h
  for (a in seq_len(d)) for (b in seq_len(d)) {
    w[, a, b] <- p %*% (h[, a] * h[, b]) - ph[, a] * ph[, b]
  }
  third <- function(s) {
    s <- matrix(s, n)
    full <- function(i, j) s %*% as.vector(outer(h[i, ], h[j, ])) # of classes i and j
    classes <- seq_len(d + 1L)
    q <- vapply(classes, function(i) {
      drop(full(i, i)) - 2 * Reduce(`+`, lapply(classes, function(j) drop(full(i, j)) * p[, j]))
    }, numeric(n))
    q <- matrix(q, n)
    -0.5 * (p * (q - rowSums(p * q))) %*% h
  }
  list(l = eta[hit_at] - top - log(total), d1 = hit %*% h, w = if (d == 1L) w[, 1L, 1L] else w,
       third = third)
}
