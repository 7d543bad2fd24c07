# Families of observations of a latent Gaussian process: log densities with three derivatives.
#
# The latent values f are an n x d matrix: d = 1, or for categorical_logit one process fewer than
# there are classes. The predictors of C classes with independent processes of one covariance
# function are f H', where the columns of H (C x (C - 1)) are orthonormal and sum to zero: what all
# classes have in common does not change any probability.

# The name of the family; NULL for normal observations.
response_family <- function(family, y) {
  if (is.null(family)) return(NULL)
  named <- is.character(family) && length(family) == 1L
  if (!(named && isFALSE(family_table[[family]]$glm))) {
    family <- tryCatch(family_of_response(family, y, NULL), statcl_error_argument = function(e) {
      if (identical(e$argument, "family")) "" else stop(e)
    })
  }
  row <- if (!is.list(family)) family_row(family)
  if (isTRUE(row$least_squares)) return(NULL)
  if (!isTRUE(row$latent)) {
    abort_argument("family", sprintf("'family' of a Gaussian process must be one of %s",
                                     paste0("\"", families_with("latent"), "\"",
                                            collapse = ", ")))
  }
  family
}

# The checked response: list(family, y, trials, levels, weights, kind, offset, contrasts, dims).
gp_response <- function(family, y, weights, offset) {
  numbers <- plain_numbers(y)
  row <- family_row(family)
  found <- if (!row$glm) {
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
  classes <- if (row$categorical) length(found$levels)
  found$offset <- if (!is.null(offset)) check_offset(offset, n, classes) else
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
  row <- family_row(response$family)
  eta <- if (is.null(row$guess)) row$start(response$y, response$trials) else row$guess(response)
  if (is.matrix(eta)) eta else matrix(eta - response$offset)
}

# The rows of gp_space() for the family's further parameters; `scale`: that of y.
response_rows <- function(response, scale) {
  space <- family_row(response$family)$space
  if (!is.null(space)) space(scale, length(response$levels) - 2L)
}

response_cuts <- function(aux) c(0, cumsum(aux))

# At latent values f (n x d) and the family's further parameters, with a row for each observation:
# l (log density), d1 (n x d), w (minus the second derivatives: n, or n x d x d), v (what stands for
# w in determinants; w itself unless the density is not concave, which also has `wide`), third(s):
# half the derivatives of -tr(S V) for given s like v, and with `by` a list by parameter of l, d1
# and v.
response_at <- function(response, f, aux, by = FALSE) {
  row <- family_row(response$family)
  at <- if (row$categorical) {
    categorical_at(response, f)
  } else {
    eta <- f[, 1L] + response$offset
    one <- if (is.null(row$terms)) terms_at(row, response, eta, unname(aux), by) else
      row$terms(response$y, eta, unname(aux), by)
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

# By the functions of C. The cuts of an ordered family are 0 and sums of the gaps `aux`.
terms_at <- function(row, response, eta, aux, by) {
  by <- by && length(aux) > 0L
  at <- family_terms(row, response$y, eta, if (row$ordered) response_cuts(aux) else aux,
                     response$trials, if (!by) 4L else if (row$ordered) 10L else 7L)
  found <- list(l = at$value, d1 = at$score, w = at$weight, d3 = -at$d_weight)
  if (!by) return(found)
  found$by <- if (!row$ordered) {
    list(list(l = at$value_aux, d1 = at$score_aux, v = at$weight_aux))
  } else {
    lapply(seq_along(aux), function(j) {
      above <- response$y <= length(aux) + 1L & response$y > j # whose upper cut moves
      below <- response$y > j + 1L
      list(l = above * at$value_aux + below * at$value_low,
           d1 = above * at$score_aux + below * at$score_low,
           v = above * at$weight_aux + below * at$weight_low)
    })
  }
  found
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
