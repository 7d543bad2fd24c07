# Properties of the families other than densities: links, means, deviances, random numbers. The
# densities are in inst/kernels/include/glm_families.h.

# Families of one linear predictor and one mean an observation. `mu` is that mean (for
# binomial_logit a proportion of the trials), `w` the weights (there the trials), `aux` the
# auxiliary parameter sigma or phi.
glm_links <- list(
  bernoulli_logit = list(link = "logit", r = function() stats::binomial(),
                         draw = function(n, mu, w, aux) stats::rbinom(n, 1L, mu)),
  binomial_logit = list(link = "logit", r = function() stats::binomial(),
                        draw = function(n, mu, w, aux) stats::rbinom(n, w, mu)),
  normal_id = list(link = "identity", r = function() stats::gaussian(),
                   draw = function(n, mu, w, aux) stats::rnorm(n, mu, aux / sqrt(w))),
  poisson_log = list(link = "log", r = function() stats::poisson(),
                     draw = function(n, mu, w, aux) stats::rpois(n, mu)),
  neg_binomial_2_log = list(link = "log", r = NULL,
                            draw = function(n, mu, w, aux) stats::rnbinom(n, aux, mu = mu)))

class_families <- c("categorical_logit", "ordered_logistic")
glm_family_names <- c(names(glm_links), class_families)

has_classes <- function(family) family %in% class_families

# The argument 'family': one of our names, or a family function, object or name of R. `counts`:
# whether the response has trials. Canonical links have a family here, if it takes the response `y`.
read_glm_family <- function(family, counts = FALSE, y = NULL) {
  if (!is.null(density_of(family))) return(family)
  if (is.character(family) && length(family) == 1L &&
        family %in% c(names(density_families), "tweedie")) family <- cl_family(family)
  if (!is.null(density_of(family))) return(family)
  if (is.character(family) && length(family) == 1L && family %in% r_family_names) {
    family <- getExportedValue("stats", family)
  }
  if (is.function(family)) family <- tryCatch(family(), error = function(e) NULL)
  if (inherits(family, "family")) {
    own <- switch(paste(family$family, family$link)[1L],
      "binomial logit" = if (counts) "binomial_logit" else if (nlevels(y) <= 2L) "bernoulli_logit",
      "poisson log" = if (is.matrix(y) || !is.numeric(y) || all(y == round(y), na.rm = TRUE))
        "poisson_log",
      "gaussian identity" = "normal_id")
    return(if (is.null(own)) wrap_family(family) else own)
  }
  if (is.character(family) && length(family) == 1L && family %in% glm_family_names) return(family)
  known <- paste0("\"", glm_family_names, "\"", collapse = ", ")
  if (!is.character(family) || length(family) != 1L || is.na(family)) {
    abort_argument("family", sprintf(paste("'family' must be a family of R such as Gamma(), one of",
                                           "cl_family(), or one of %s"), known))
  }
  abort_argument("family", sprintf(paste("'family' must be a family of R such as Gamma(), one of",
                                         "cl_family(), or one of %s, not \"%s\""), known, family))
}

# For a response and trials. Two columns of counts are those of a binomial family.
family_of_response <- function(family, y, trials) {
  family <- read_glm_family(family, is.matrix(y) || !is.null(trials) || is_share(y), y)
  if (family == "bernoulli_logit" && is.matrix(y) && ncol(y) == 2L) "binomial_logit" else family
}

# An object as family() gives it.
glm_family_object <- function(family) {
  r <- r_family(family)
  if (!is.null(r)) return(r)
  r <- glm_links[[family]]$r
  if (!is.null(r)) return(r())
  row <- density_of(family)
  if (!is.null(row)) {
    link <- stats::make.link(row$link)
    return(structure(c(list(family = sub("[(].*", "", family), link = row$link),
                       link[c("linkfun", "linkinv", "mu.eta")]), class = "family"))
  }
  link <- if (has_classes(family)) "logit" else "log"
  structure(list(family = family, link = link), class = "family")
}

# ---- means ---------------------------------------------------------------------------------------

link_inverse <- function(family, eta) {
  r <- r_family(family)
  if (!is.null(r)) return(r$linkinv(eta))
  switch(glm_links[[family]]$link, logit = stats::plogis(eta), identity = eta, log = exp(eta))
}

# d mean / d eta.
link_slope <- function(family, eta) {
  r <- r_family(family)
  if (!is.null(r)) return(r$mu.eta(eta))
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
  # differences of the smaller tails, for accuracy
  upper <- outer(-as.vector(eta), c(cuts, Inf), `+`)
  lower <- outer(-as.vector(eta), c(-Inf, cuts), `+`)
  right <- lower > 0
  ifelse(right, stats::plogis(-lower) - stats::plogis(-upper),
         stats::plogis(upper) - stats::plogis(lower))
}

# ---- deviances and residuals ---------------------------------------------------------------------

# Var(y) / weight at the mean, but for the factor sigma^2.
glm_variance <- function(family, mu, aux) {
  r <- r_family(family)
  if (!is.null(r)) return(r$variance(mu))
  switch(family, bernoulli_logit = , binomial_logit = mu * (1 - mu), normal_id = rep(1, length(mu)),
         poisson_log = mu, neg_binomial_2_log = mu + mu^2 / aux)
}

# The contribution of each observation to the deviance; `y` is on the scale of the mean (a
# proportion of trials). For counts, large terms that would cancel are avoided.
deviance_parts <- function(family, y, mu, w, aux) {
  r <- r_family(family)
  if (!is.null(r)) return(r$dev.resids(y, mu, w))
  if (family == "poisson_log") {
    none <- y == 0
    return(2 * w * (none * mu - y * log1p_minus((mu - y) / (y + none))))
  }
  if (family == "normal_id") return(w * (y - mu)^2)
  r <- glm_links[[family]]$r
  if (!is.null(r)) return(r()$dev.resids(y, mu, w))
  n <- y + aux
  few <- y <= aux # the smaller one of y and phi comes first
  less <- log1p_minus(ifelse(few, (mu - y) / n, aux * (y - mu) / (mu * n)))
  first <- ifelse(few, y * log1p_minus((mu - y) / pmax(y, 1)), aux * log1p_minus((y - mu) / mu))
  2 * w * ifelse(y > 0, n * less - first, aux * log1p(mu / aux))
}

# log(1 + v) - v, by a series where the terms nearly cancel.
log1p_minus <- function(v) .Call(r_log1p_minus, v)

# One number for each row; 1 if w is NULL.
ones_unless <- function(w, n) if (is.null(w)) rep(1, n) else w

# The auxiliary parameter of each family.
aux_parameter <- c(normal_id = "sigma", neg_binomial_2_log = "phi", ordered_logistic = "cuts")

check_family <- function(family) {
  if (!is.character(family) || length(family) != 1L || is.na(family)) {
    abort_argument("family", "'family' must be the name of a family, such as \"bernoulli_logit\"")
  }
  family
}

# Whether the response of a binomial model is a proportion, not a single outcome.
is_share <- function(y) is.numeric(y) && any(y > 0 & y < 1, na.rm = TRUE)

# NULL for families of this package.
r_family <- function(family) attr(family, "r", exact = TRUE)

wrap_family <- function(family) {
  parts <- c("linkfun", "linkinv", "variance", "dev.resids", "aic", "mu.eta")
  lacking <- parts[!vapply(family[parts], is.function, NA)]
  if (length(lacking) > 0L) {
    abort_argument("family", sprintf("family %s has no function '%s', which a fit needs",
                                     family$family[1L], lacking[1L]))
  }
  structure(sprintf("%s(%s)", family$family, family$link), r = family, class = "cl_family")
}

r_family_names <- c("binomial", "gaussian", "Gamma", "inverse.gaussian", "poisson", "quasi",
                    "quasibinomial", "quasipoisson")
