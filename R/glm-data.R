# What a fit of a generalised linear model works on: the response as numbers, weights, and the
# predictors with the columns that are free.

# The response of `family` as the likelihood takes it: list(y, trials, levels, weights, kind).
# `weights` are NULL or what multiplies each log density; `kind` is the type of the response that
# simulate() gives back.
glm_response <- function(family, y, trials, weights) {
  if (is.null(y)) abort_argument("formula", "the formula has no response")
  y <- plain_numbers(y)
  trials <- plain_numbers(trials)
  weights <- plain_numbers(weights)
  n <- NROW(y)
  weights <- check_glm_weights(weights, n)
  if (family != "binomial_logit" && is.matrix(y) && ncol(y) > 1L) {
    abort_argument("y", sprintf(paste("the response of %s must be a vector; counts of successes",
                                      "and failures are for \"binomial_logit\""), family))
  }
  if (!is.null(trials) && family != "binomial_logit") {
    abort_argument("trials", "'trials' are for \"binomial_logit\"")
  }
  if (is.matrix(y) && ncol(y) == 1L) y <- drop(y)
  switch(family,
    bernoulli_logit = c(binary_response(y), list(weights = weights)),
    binomial_logit = binomial_response(y, trials, weights),
    categorical_logit = , ordered_logistic = c(class_response(family, y), list(weights = weights)),
    list(y = check_numeric(y, "y"), kind = "number", weights = weights))
}

# Without the classes that only say where numbers, words or a factor come from.
plain_numbers <- function(x) {
  if (!is.object(x)) return(x)
  origin <- c("AsIs", "table", "xtabs", "labelled", "haven_labelled", "haven_labelled_spss",
              "vctrs_vctr", "numeric", "double", "integer", "logical", "character")
  left <- setdiff(class(x), origin)
  if (length(left) > 0L) {
    if (is.factor(x)) class(x) <- left
    return(x)
  }
  shape <- dim(x)
  attributes(x) <- NULL
  if (length(shape) > 1L) dim(x) <- shape
  x
}

check_glm_weights <- function(weights, n) {
  if (is.null(weights)) return(NULL)
  if (!is.numeric(weights) || is.object(weights) || length(weights) != n) {
    abort_argument("weights", sprintf("'weights' must be %d numbers", n))
  }
  if (!all(is.finite(weights) & weights >= 0)) {
    abort_argument("weights", "'weights' must be finite and not negative")
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
                                      "not %d; see \"categorical_logit\""), nlevels(y)))
  }
  list(y = as.double(y) - 1, levels = levels(y), kind = "factor")
}

most_classes <- 2000L # as in inst/kernels/glm_families.h

class_response <- function(family, y) {
  if (is.character(y) || (family == "categorical_logit" && is.numeric(y))) y <- factor(y)
  if (!is.factor(y)) {
    abort_argument("y", sprintf("the response of \"%s\" must be a factor, not %s", family,
                                describe(y)))
  }
  y <- droplevels(y)
  if (nlevels(y) < 2L) {
    abort_argument("y", "the response has one class only: there is nothing to tell apart")
  }
  if (nlevels(y) > most_classes) {
    abort_argument("y", sprintf("the response has %d classes, the most are %d", nlevels(y),
                                most_classes))
  }
  list(y = as.double(y), levels = levels(y), kind = if (is.ordered(y)) "ordered" else "factor")
}

# Counts of successes and failures; counts of `trials`; or shares, `weights` being the trials.
binomial_response <- function(y, trials, weights) {
  if (is.matrix(y)) {
    if (ncol(y) != 2L || !is.null(trials)) {
      abort_argument("y", paste("the response of \"binomial_logit\" must be cbind(successes,",
                                "failures), or a vector with 'trials'"))
    }
    y <- unname(check_numeric(y, "y"))
    if (!all(y >= 0)) abort_argument("y", "counts of successes and failures must not be negative")
    return(list(y = y[, 1L], trials = y[, 1L] + y[, 2L], kind = "counts", weights = weights))
  }
  if (is.factor(y) || is.logical(y)) y <- binary_response(y)$y
  y <- check_numeric(y, "y")
  if (!is.null(trials)) {
    trials <- rep_len(check_numeric(trials, "trials"), length(y))
    return(list(y = y, trials = trials, kind = "number", weights = weights))
  }
  if (!all(y >= 0 & y <= 1)) {
    abort_argument("trials", paste("a response that is neither cbind(successes, failures) nor",
                                   "shares between 0 and 1 needs 'trials'"))
  }
  if (is.null(weights)) weights <- rep(1, length(y))
  counts <- round(y * weights)
  if (any(abs(counts - y * weights) > 1e-3)) {
    abort_argument("weights", paste("the response times 'weights', the numbers of trials, must be",
                                    "whole: give cbind(successes, failures)"))
  }
  list(y = counts, trials = weights, kind = "share", weights = NULL)
}

# ---- the problem ---------------------------------------------------------------------------------

# `x`: matrix or clMatrix, n x p, the intercept among its columns; `offset`: NULL or n numbers.
# The problem has besides the response `x` (all of it), `offset`, `names` of the coefficients,
# `intercept` (the number of its column, or 0), and what the likelihood gets: `rows` (of x, with
# repeats for weights that are counts; NULL for all) and `sd_weights` (of normal_id).
new_glm_problem <- function(family, x, response, offset, intercept) {
  n <- nrow(x)
  if (length(response$y) != n) {
    abort_argument("y", sprintf("'y' has %d values, 'x' %d rows", length(response$y), n))
  }
  if (n == 0L) abort_argument("data", "there are no observations")
  problem <- c(list(family = family, x = x, n = n, intercept = intercept), response)
  problem$names <- colnames(x)
  if (is.null(problem$names)) problem$names <- paste0("x", seq_len(ncol(x)))
  if (!is.null(offset)) {
    if (family == "categorical_logit") {
      abort_argument("offset", "\"categorical_logit\" takes no offset")
    }
    offset <- plain_numbers(offset)
    if (!is.numeric(offset) || length(offset) != n || !all(is.finite(offset))) {
      abort_argument("offset", sprintf("'offset' must be %d finite numbers", n))
    }
    problem$offset <- as.vector(offset)
  }
  weights <- problem$weights
  if (is.null(weights) || all(weights == 1)) {
    problem["weights"] <- list(NULL)
    return(problem)
  }
  if (family == "normal_id") {
    problem$rows <- if (any(weights == 0)) which(weights > 0)
    problem$sd_weights <- weights[weights > 0]
    return(problem)
  }
  if (any(weights != round(weights))) {
    abort_argument("weights", sprintf(paste("the weights of \"%s\" say how often an observation",
                                            "occurred: they must be whole numbers"), family))
  }
  problem$rows <- rep(seq_len(n), weights)
  if (length(problem$rows) == 0L) abort_argument("weights", "all weights are 0")
  problem
}

# x, y and trials as the likelihood gets them, x on the device if that is to work on it; an offset
# is one more column.
glm_likelihood_data <- function(problem) {
  x <- problem$x
  rows <- problem$rows
  offset <- problem$offset
  pick <- function(v) if (is.null(rows) || is.null(v)) v else v[rows]
  if (!is.null(rows)) x <- x[rows, , drop = FALSE]
  if (!is.null(offset)) x <- cbind(x, pick(offset))
  if (!is_cl(x) && where_for("glm", length(x)) >= 0L) x <- as_cl(x)
  list(x = x, y = pick(problem$y), trials = pick(problem$trials))
}

# How many observations a fit counts.
glm_nobs <- function(problem) {
  if (problem$family == "binomial_logit") return(sum(ones_unless(problem$weights, problem$n) *
                                                       problem$trials > 0))
  if (is.null(problem$rows)) problem$n else length(problem$rows)
}
