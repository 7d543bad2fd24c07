# What a fit knows of the families besides their densities: links, means, deviances, draws. The
# densities are in inst/kernels/include/glm_families.h.

# Families of one linear predictor and one mean an observation. `mu` is that mean (of
# binomial_logit: a share of the trials), `w` weights (there: trials), `own` sigma or phi.
glm_links <- list(
  bernoulli_logit = list(link = "logit", r = function() stats::binomial(),
                         draw = function(n, mu, w, own) stats::rbinom(n, 1L, mu)),
  binomial_logit = list(link = "logit", r = function() stats::binomial(),
                        draw = function(n, mu, w, own) stats::rbinom(n, w, mu)),
  normal_id = list(link = "identity", r = function() stats::gaussian(),
                   draw = function(n, mu, w, own) stats::rnorm(n, mu, own / sqrt(w))),
  poisson_log = list(link = "log", r = function() stats::poisson(),
                     draw = function(n, mu, w, own) stats::rpois(n, mu)),
  neg_binomial_2_log = list(link = "log", r = NULL,
                            draw = function(n, mu, w, own) stats::rnbinom(n, own, mu = mu)))

class_families <- c("categorical_logit", "ordered_logistic")
glm_family_names <- c(names(glm_links), class_families)

has_classes <- function(family) family %in% class_families

# What the user says: one of our names, R's family functions, objects or their names with their
# canonical links. `counts`: whether the response has trials.
read_glm_family <- function(family, counts = FALSE) {
  known <- paste0("\"", glm_family_names, "\"", collapse = ", ")
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (inherits(family, "family")) {
    own <- c(binomial = "logit", poisson = "log", gaussian = "identity")
    if (family$family %in% names(own) && identical(own[[family$family]], family$link)) {
      family <- family$family
    } else {
      abort_argument("family", sprintf(paste("family %s with link %s is not supported; 'family'",
                                             "must be one of %s"),
                                       family$family, family$link, known))
    }
  }
  if (!is.character(family) || length(family) != 1L || is.na(family)) {
    abort_argument("family", sprintf("'family' must be one of %s", known))
  }
  family <- switch(family, binomial = if (counts) "binomial_logit" else "bernoulli_logit",
                   poisson = "poisson_log", gaussian = "normal_id", family)
  if (!family %in% glm_family_names) {
    abort_argument("family", sprintf("'family' must be one of %s, not \"%s\"", known, family))
  }
  family
}

# An object as family() gives it.
glm_family_object <- function(family) {
  r <- glm_links[[family]]$r
  if (!is.null(r)) return(r())
  link <- if (has_classes(family)) "logit" else "log"
  structure(list(family = family, link = link), class = "family")
}

# ---- means ---------------------------------------------------------------------------------------

link_inverse <- function(family, eta) {
  switch(glm_links[[family]]$link, logit = stats::plogis(eta), identity = eta, log = exp(eta))
}

# d mean / d eta.
link_slope <- function(family, eta) {
  switch(glm_links[[family]]$link, logit = stats::dlogis(eta), identity = rep(1, length(eta)),
         log = exp(eta))
}

link_of <- function(family, mu) {
  switch(glm_links[[family]]$link, logit = stats::qlogis(mu), identity = mu, log = log(mu))
}

# Probabilities of the classes, n x C, from the linear predictors: n x C of categorical_logit, n
# numbers of ordered_logistic.
class_probabilities <- function(family, eta, cuts) {
  if (family == "categorical_logit") {
    share <- exp(eta - apply(eta, 1L, max))
    return(share / rowSums(share))
  }
  # differences of whichever tails are the smaller ones
  upper <- outer(-as.vector(eta), c(cuts, Inf), `+`)
  lower <- outer(-as.vector(eta), c(-Inf, cuts), `+`)
  right <- lower > 0
  ifelse(right, stats::plogis(-lower) - stats::plogis(-upper),
         stats::plogis(upper) - stats::plogis(lower))
}

# ---- deviances and residuals ---------------------------------------------------------------------

# Var(y) / weight at the mean, but for the factor sigma^2.
glm_variance <- function(family, mu, own) {
  switch(family, bernoulli_logit = , binomial_logit = mu * (1 - mu), normal_id = rep(1, length(mu)),
         poisson_log = mu, neg_binomial_2_log = mu + mu^2 / own)
}

# Each observation's part of the deviance; `y` as the mean is (shares of trials). Those of counts
# have no terms as large as the counts that cancel.
deviance_parts <- function(family, y, mu, w, own) {
  if (family == "poisson_log") {
    return(2 * w * ifelse(y > 0, -y * log1p_minus((mu - y) / pmax(y, 1)), mu))
  }
  r <- glm_links[[family]]$r
  if (!is.null(r)) return(r()$dev.resids(y, mu, w))
  n <- y + own
  few <- y <= own # the smaller one of y and phi comes first
  less <- log1p_minus(ifelse(few, (mu - y) / n, own * (y - mu) / (mu * n)))
  first <- ifelse(few, y * log1p_minus((mu - y) / pmax(y, 1)), own * log1p_minus((y - mu) / mu))
  2 * w * ifelse(y > 0, n * less - first, own * log1p(mu / own))
}

# log(1 + v) - v, by its series where the two nearly cancel.
log1p_minus <- function(v) {
  s <- v / (2 + v) # log(1 + v) = 2 atanh(s)
  sum <- 0
  for (k in seq(21, 3, -2)) sum <- 1 / k + s^2 * sum
  ifelse(abs(v) < 0.25, s * (2 * s^2 * sum - v), suppressWarnings(log1p(v)) - v)
}

# One number for each row: 1 for numbers that are not given.
ones_unless <- function(w, n) if (is.null(w)) rep(1, n) else w
