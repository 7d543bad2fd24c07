# The data of a generalised linear model: the response as numbers, weights, and predictors.

# The response of `family` as the likelihood takes it: list(y, trials, levels, weights, kind).
# `weights` is NULL or a factor for each log density; `kind` is the type of the response, which
# simulate() returns.
glm_response <- function(family, y, trials, weights) {
  if (is.null(y)) abort_argument("formula", "the formula has no response")
  y <- plain_numbers(y)
  trials <- plain_numbers(trials)
  weights <- plain_numbers(weights)
  n <- NROW(y)
  weights <- check_glm_weights(weights, n)
  row <- family_row(family)
  if (!is.null(row$r)) return(r_response(family, y, trials, weights))
  if (!row$trials && is.matrix(y) && ncol(y) > 1L) {
    abort_argument("y", sprintf(paste("the response of %s must be a vector; a matrix of successes",
                                      "and failures needs \"binomial_logit\""), family))
  }
  if (!is.null(trials) && !row$trials) {
    abort_argument("trials", "'trials' can be used with family \"binomial_logit\" only")
  }
  if (is.matrix(y) && ncol(y) == 1L) y <- drop(y)
  switch(row$read,
    binary = {
      found <- c(binary_response(y), list(weights = weights))
      if (!is.null(weights)) warn_fractional(found$y * weights, "#successes")
      found
    },
    trials = binomial_response(y, trials, weights),
    classes = c(class_response(family, y), list(weights = weights)),
    list(y = check_numeric(y, "y"), kind = "number", weights = weights))
}

check_glm_weights <- function(weights, n) {
  if (is.null(weights)) return(NULL)
  if (!is.numeric(weights) || is.object(weights) || length(weights) != n) {
    abort_argument("weights", sprintf("'weights' must be a vector of %d numbers", n))
  }
  if (!all(is.finite(weights) & weights >= 0)) {
    abort_argument("weights", "'weights' must be finite and non-negative")
  }
  as.double(weights)
}

binary_response <- function(y) {
  if (is.character(y)) y <- factor(y)
  if (!is.factor(y)) {
    if (is.logical(y)) return(list(y = as.double(y), kind = "logical"))
    return(list(y = check_numeric(y, "y"), kind = "number"))
  }
  if (nlevels(y) != 2L) {
    abort_argument("y", sprintf(paste("the response of \"bernoulli_logit\" must have two levels,",
                                      "not %d; \"categorical_logit\" takes more"), nlevels(y)))
  }
  list(y = as.double(y) - 1, levels = levels(y), kind = "factor")
}

most_classes <- 2000L # as in inst/kernels/include/glm_families.h

class_response <- function(family, y) {
  if (is.character(y) || (is_categorical(family) && is.numeric(y))) y <- factor(y)
  if (!is.factor(y)) {
    abort_argument("y", sprintf("the response of \"%s\" must be a factor, not %s", family,
                                describe(y)))
  }
  y <- droplevels(y)
  if (nlevels(y) < 2L) {
    abort_argument("y", "the response has only one class: at least two are needed")
  }
  if (nlevels(y) > most_classes) {
    abort_argument("y", sprintf("the response has %d classes, but at most %d are supported",
                                nlevels(y), most_classes))
  }
  list(y = as.double(y), levels = levels(y), kind = if (is.ordered(y)) "ordered" else "factor")
}

# Refuses values outside the support of the family, for fits without a likelihood of the core, which
# would check them itself. Proportions and two columns of counts have been checked.
check_support <- function(family, response) {
  y <- as.double(response$y)
  row <- family_row(family)
  if (is.null(row$r)) {
    if (row$glm && (!row$trials || response$kind == "number")) {
      .Call(r_glm_check, row$name, y, if (row$trials) as.double(response$trials))
    }
  } else if (row$counts && !all(y >= 0 & y == round(y))) {
    abort_argument("y", sprintf("'y' must be non-negative integers for family %s, but %g is not",
                                family, y[!(y >= 0 & y == round(y))][1L]))
  }
}

# Counts of successes and failures; counts of `trials`; or proportions, with `weights` as the
# trials.
binomial_response <- function(y, trials, weights) {
  if (is.matrix(y)) {
    if (ncol(y) != 2L || !is.null(trials)) {
      abort_argument("y", paste("the response of \"binomial_logit\" must be cbind(successes,",
                                "failures), or a vector with 'trials'"))
    }
    y <- unname(check_numeric(y, "y"))
    if (!all(y >= 0)) abort_argument("y", "counts of successes and failures must be non-negative")
    warn_fractional(y, "counts")
    return(list(y = y[, 1L], trials = y[, 1L] + y[, 2L], kind = "counts", weights = weights))
  }
  if (is.factor(y) || is.logical(y)) y <- binary_response(y)$y
  y <- check_numeric(y, "y")
  if (!is.null(trials)) {
    trials <- rep_len(check_numeric(trials, "trials"), length(y))
    return(list(y = y, trials = trials, kind = "number", weights = weights))
  }
  if (!all(y >= 0 & y <= 1)) {
    abort_argument("trials", paste("'trials' is needed unless the response is cbind(successes,",
                                   "failures) or proportions between 0 and 1"))
  }
  if (is.null(weights)) weights <- rep(1, length(y))
  counts <- y * weights
  warn_fractional(counts, "#successes")
  whole <- round(weights)
  near <- abs(counts - round(counts)) <= 1e-3 & weights == whole
  counts[near] <- round(counts[near])
  list(y = counts, trials = weights, kind = "share", weights = NULL)
}

# In the words of glm().
warn_fractional <- function(counts, what) {
  if (any(abs(counts - round(counts)) > 1e-3, na.rm = TRUE)) {
    statcl_warning("counts", sprintf("non-integer %s in a binomial glm!", what))
  }
}

# ---- the problem ---------------------------------------------------------------------------------

# `x`: matrix or clMatrix, n x p, the intercept among its columns; `offset`: NULL, n numbers, or
# n x C. The problem adds to the response `x` (all rows), `offset`, `names` of the coefficients,
# `intercept` (the number of its column, or 0), and the input of the likelihood: `rows` (of x: those
# with a weight above 0; NULL for all) and `row_weights` (theirs; NULL for ones).
new_glm_problem <- function(family, x, response, offset, intercept, names = colnames(x)) {
  n <- nrow(x)
  if (length(response$y) != n) {
    abort_argument("y", sprintf("'y' has %d values, but 'x' has %d rows", length(response$y), n))
  }
  if (n == 0L) abort_argument("data", "there are no observations")
  problem <- c(list(family = family, x = x, n = n, intercept = intercept), response)
  problem$names <- names
  if (is.null(problem$names)) problem$names <- sprintf("x%d", seq_len(ncol(x)))
  row <- family_row(family)
  classes <- if (row$categorical) length(problem$levels)
  if (!is.null(offset)) problem$offset <- check_offset(offset, n, classes)
  problem$shares <- if (is.null(row$r) && row$trials && response$kind != "number") {
    if (any(response$y != round(response$y) | response$trials != round(response$trials))) TRUE
  }
  weights <- problem$weights
  if (!is.null(problem$shares) && is.null(weights)) weights <- rep(1, n)
  if (!is.null(problem$shares)) weights[problem$trials == 0] <- 0
  if (is.null(weights) || all(weights == 1)) {
    problem["weights"] <- list(NULL)
    return(problem)
  }
  if (all(weights == 0)) abort_argument("weights", "all weights are 0")
  problem$rows <- if (any(weights == 0)) which(weights > 0)
  problem$row_weights <- weights[weights > 0]
  if (all(problem$row_weights == 1)) problem["row_weights"] <- list(NULL)
  if (row$classes) check_class_weights(problem)
  problem
}

# For `classes` classes a matrix, whose first column becomes 0.
check_offset <- function(offset, n, classes = NULL) {
  offset <- plain_numbers(offset)
  finite <- is.numeric(offset) && all(is.finite(offset))
  if (!is.null(classes)) {
    if (!finite || !is.matrix(offset) || !identical(dim(offset), c(as.integer(n), classes))) {
      abort_argument("offset", sprintf(paste("'offset' must be a matrix of finite numbers with %d",
                                             "rows and a column for each of the %d classes"), n,
                                       classes))
    }
    return(unname(offset - offset[, 1L]))
  }
  if (!finite || length(offset) != n) {
    abort_argument("offset", sprintf("'offset' must be a vector of %d finite numbers", n))
  }
  as.vector(offset)
}

# Classes whose observations all have weight 0 have no estimate.
check_class_weights <- function(problem) {
  left <- tabulate(problem$y[problem$weights > 0], length(problem$levels))
  if (all(left > 0)) return(invisible())
  abort_argument("weights", sprintf("all observations of class '%s' have weight 0: remove them",
                                    problem$levels[left == 0][1L]))
}

# The observations in use: list(y, trials, weights, offset), each NULL where there are none.
used_data <- function(problem) {
  rows <- problem$rows
  pick <- function(v) if (is.null(rows)) v else pick_rows(v, rows)
  data <- list(y = pick(problem$y), trials = pick(problem$trials), weights = problem$row_weights,
               offset = pick(problem$offset))
  if (is.null(problem$shares)) return(data)
  data$weights <- data$trials * ones_unless(data$weights, length(data$y))
  data$y <- data$y / data$trials
  data$trials <- rep(1, length(data$y))
  data
}

pick_rows <- function(v, rows) if (is.matrix(v)) v[rows, , drop = FALSE] else v[rows]

# Non-integer counts of binomial_logit are treated as a proportion of one trial with a weight. This
# is the difference in the constants of the likelihood.
share_constant <- function(problem) {
  if (is.null(problem$shares)) return(0)
  data <- used_data(problem)
  choose_of <- function(n, k) lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
  rows <- ones_unless(problem$row_weights, length(data$y))
  n <- data$weights / rows
  sum(rows * choose_of(n, n * data$y) - data$weights * choose_of(1, data$y))
}

# used_data() with x, or the columns of a basis (glm-basis.R), on the device if the likelihood is
# computed there; an offset is one more column. For normal_id, x and y are multiplied by the square
# roots of the weights, so that the likelihood has no weights. `there`: y, trials and weights on the
# device too, for families with one linear predictor.
glm_likelihood_data <- function(problem, basis = NULL) {
  data <- used_data(problem)
  normal <- is_least_squares(problem$family)
  data$x <- likelihood_x(problem, basis)
  if (normal && !is.null(data$weights)) {
    data$y <- data$y * sqrt(data$weights)
    if (!is.null(data$offset)) data$offset <- data$offset * sqrt(data$weights)
    data["weights"] <- list(NULL)
  }
  data$there <- data[intersect(names(data), c("y", "trials", "weights"))]
  if (is_cl(data$x) && !has_classes(problem$family)) {
    data$there <- lapply(data$there, function(v) if (!is.null(v)) column_beside(v, data$x))
  }
  data
}

# Numbers as a column on the device of x. as.double() would copy names, too, and so make those that
# R only makes when they are asked for.
column_beside <- function(v, x) {
  value(.Call(r_matrix_new, if (is.double(v)) v else as.double(v), length(v), 1L, 0L, x@handle))
}

likelihood_x <- function(problem, basis = NULL) {
  rows <- problem$rows
  offset <- problem$offset
  x <- if (is.null(basis)) problem$x else basis$x
  if (!is.null(rows) && is.null(basis)) x <- x[rows, , drop = FALSE]
  if (!is.null(offset)) x <- cbind(x, if (is.null(rows)) offset else pick_rows(offset, rows))
  if (!is_cl(x) && is_on_device("glm_fit", x)) x <- as_cl(x)
  w <- problem$row_weights
  if (is_least_squares(problem$family) && !is.null(w)) x * sqrt(w) else x
}

# The number of observations of a fit: rows of weight above 0, as for glm(), or for families with
# classes the sum of the weights, as for MASS::polr().
glm_nobs <- function(problem) {
  if (is.null(problem$weights) && is.null(problem$trials)) return(problem$n)
  w <- ones_unless(problem$weights, problem$n)
  if (has_classes(problem$family)) return(sum(w))
  sum(w * ones_unless(problem$trials, problem$n) > 0)
}
