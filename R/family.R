# Functions for all families: look-up, link, log densities and probabilities.

# The row of a family: a name (of R/family-table.R, else NULL), or what cl_family() and families of
# R become, which have it as an attribute.
family_row <- function(family) {
  row <- attr(family, "row", exact = TRUE)
  if (is.null(row)) family_table[[family]] else row
}

# Names of families whose rows have a field.
families_with <- function(field) {
  names(Filter(function(row) isTRUE(row[[field]]), family_table))
}

has_classes <- function(family) family_row(family)$classes
is_ordered <- function(family) family_row(family)$ordered
is_categorical <- function(family) isTRUE(family_row(family)$categorical)
is_least_squares <- function(family) family_row(family)$least_squares

# The auxiliary parameter of a family of the core: "sigma", "phi", "cuts", or NA.
aux_parameter <- function(family) {
  aux <- family_table[[family]]$aux
  if (length(aux) == 1L) aux else NA_character_
}

# The argument 'family': one of our names, or a family function, object or name of R. `counts`:
# whether the response has trials. R's families with canonical links are those of the table that
# take the response `y`.
read_glm_family <- function(family, counts = FALSE, y = NULL) {
  if (inherits(family, "cl_family")) return(family)
  named <- is.character(family) && length(family) == 1L && !is.na(family)
  if (named && family %in% c(names(density_families), "tweedie")) family <- cl_family(family)
  if (inherits(family, "cl_family")) return(family)
  if (is.character(family) && named && family %in% names(r_rows)) {
    family <- getExportedValue("stats", family)
  }
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (inherits(family, "family")) {
    ours <- Find(function(row) {
      r <- if (!is.null(row$base)) row$base()
      identical(c(r$family, r$link), c(family$family, family$link)) && row$like(y, counts)
    }, family_table)
    return(if (is.null(ours)) wrap_family(family) else ours$name)
  }
  if (named && isTRUE(family_table[[family]]$glm)) return(family)
  abort_argument("family", paste0(
    "'family' must be a family of R such as Gamma(), one of cl_family(), or one of ",
    paste0("\"", families_with("glm"), "\"", collapse = ", "),
    if (named) sprintf(", not \"%s\"", family)))
}

# For a response and trials. Two columns of counts are those of a binomial family.
family_of_response <- function(family, y, trials) {
  family <- read_glm_family(family, is.matrix(y) || !is.null(trials) || is_share(y), y)
  two <- family_row(family)$two_columns
  if (!is.null(two) && is.matrix(y) && ncol(y) == 2L) two else family
}

# An object as family() gives it.
glm_family_object <- function(family) {
  row <- family_row(family)
  if (!is.null(row$base)) return(row$base())
  if (is.null(row$density)) {
    return(structure(list(family = row$name, link = row$link), class = "family"))
  }
  link <- stats::make.link(row$density$link)
  structure(c(list(family = row$name, link = row$density$link),
              link[c("linkfun", "linkinv", "mu.eta")]), class = "family")
}

# The family of R by which reweighted least squares fits this one.
irls_family <- function(family, aux = NULL) {
  row <- family_row(family)
  if (!is.null(row$irls)) return(row$irls(aux))
  if (!is.null(row$base)) return(row$base())
  link <- stats::make.link(row$link)
  begin <- as.call(list(function(y) row$inverse(row$start(y)), quote(y)))
  structure(c(
    list(family = row$name, link = row$link),
    unclass(link)[c("linkfun", "linkinv", "mu.eta", "valideta")],
    list(variance = function(mu) row$variance(mu, aux), validmu = function(mu) TRUE,
         dev.resids = function(y, mu, wt) row$deviance(y, mu, wt, aux), dispersion = 1,
         aic = function(...) NA_real_, initialize = call("<-", quote(mustart), begin))),
    class = "family")
}

# ---- log densities -------------------------------------------------------------------------------

# Of each observation at its predictor (n numbers, or n x C for classes): list(value, score, weight
# (minus the second derivative), d_weight (its derivative), and the derivatives of the first three
# by the auxiliary parameter, value_aux, score_aux, weight_aux; for cuts these are by the one above
# a class, and value_low, score_low, weight_low by the one below). The first `columns` of these;
# `constant` is that of an earlier call for the same data.
family_terms <- function(row, y, eta, aux = NULL, trials = NULL, columns = 1L, constant = NULL) {
  .Call(r_glm_rows, row$name, as.double(y), if (row$trials) as.double(trials), as.double(eta),
        if (length(row$aux) > 0L) as.double(aux), constant, columns)
}

# The log densities of the observations of `data` (list(y, trials, prior.weights)) with their
# weights, at the predictors eta; NULL for quasi-likelihoods.
weighted_log_density <- function(family, data, eta, aux) {
  row <- family_row(family)
  w <- ones_unless(data$prior.weights, length(data$y))
  if (!is.null(row$r)) return(r_log_density(row, data$y, row$inverse(as.vector(eta)), w, aux))
  if (row$least_squares) return(family_terms(row, data$y, eta, aux / sqrt(w))$value)
  w * family_terms(row, data$y, eta, aux, data$trials)$value
}

# ---- means ---------------------------------------------------------------------------------------

link_inverse <- function(family, eta) family_row(family)$inverse(eta)

# Probabilities of the classes, n x C, from the linear predictors: n x C of a categorical family, n
# numbers of an ordered one.
class_probabilities <- function(family, eta, cuts) {
  if (is_categorical(family)) {
    share <- exp(eta - apply(eta, 1L, max))
    return(share / rowSums(share))
  }
  # differences of the smaller tails, for accuracy
  upper <- outer(-as.vector(eta), c(cuts, Inf), `+`)
  lower <- outer(-as.vector(eta), c(-Inf, cuts), `+`)
  right <- lower > 0
  ifelse(right, stats::plogis(-lower) - stats::plogis(-upper),
         stats::plogis(upper) - stats::plogis(lower))
}

# A class for each row of probabilities, at random.
draw_classes <- function(share) {
  below <- t(apply(share, 1L, cumsum))
  pmin(1L + rowSums(stats::runif(nrow(share)) > below), ncol(share))
}

# One number for each row; 1 if w is NULL.
ones_unless <- function(w, n) if (is.null(w)) rep(1, n) else w

check_family <- function(family) {
  if (!is.character(family) || length(family) != 1L || is.na(family)) {
    abort_argument("family", "'family' must be the name of a family, such as \"bernoulli_logit\"")
  }
  family
}

# Whether the response of a binomial model is a proportion, not a single outcome.
is_share <- function(y) is.numeric(y) && any(y > 0 & y < 1, na.rm = TRUE)
