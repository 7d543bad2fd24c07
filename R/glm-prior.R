# Priors of a fit of a generalised linear model.

# The argument 'prior' (NULL, one prior for all coefficients except the intercept, or a list by
# name), with weak priors for the other parameters: list(columns, aux, aux_name). Names are those of
# columns, "coefficients" (all except the intercept), "intercept", and the auxiliary parameter of
# the family. `more`: names that the caller has read.
glm_priors <- function(prior, problem, more = NULL) {
  if (is.function(prior)) prior <- list(coefficients = prior)
  if (is.null(prior)) prior <- list()
  if (!is.list(prior) || (length(prior) > 0L && is.null(names(prior))) ||
        anyDuplicated(names(prior))) {
    abort_argument("prior", "'prior' must be a prior, or a list of priors named by coefficient")
  }
  aux <- aux_parameter(problem$family)
  names <- problem$names
  if (is_ordered(problem$family) && problem$intercept > 0L) {
    names[problem$intercept] <- NA
  }
  known <- c(names, "coefficients", if (problem$intercept > 0L && !is.na(names[problem$intercept]))
    "intercept", if (!is.na(aux)) aux, more)
  unknown <- setdiff(names(prior), known)
  if (length(unknown) > 0L) {
    abort_argument("prior", sprintf(paste("'prior' names an unknown parameter, '%s'; the",
                                          "parameters are %s"), unknown[1L],
                                    paste(known[!is.na(known)], collapse = ", ")))
  }
  spread <- glm_spread(problem)
  list(columns = column_priors(prior, problem, names, spread),
       aux = if (!is.na(aux)) aux_prior(prior[[aux]], aux, spread), aux_name = aux)
}

# list(list: the user's priors, of: the index of the prior of each column or 0, default: means and
# standard deviations of the normal priors for those with 0).
column_priors <- function(prior, problem, names, spread) {
  of <- integer(length(names))
  mine <- setdiff(base::names(prior), aux_parameter(problem$family))
  list <- lapply(stats::setNames(mine, mine), function(name) whole_prior(prior[[name]], name))
  for (name in c("coefficients", "intercept")) {
    place <- if (name == "intercept") problem$intercept else
      setdiff(seq_along(names), problem$intercept)
    if (!name %in% names) of[place] <- match(name, mine, 0L)
  }
  named <- names %in% mine
  of[named] <- match(names[named], mine)
  list(list = unname(list), of = of, default = default_coefficients(problem, spread))
}

# The prior of a coefficient, which can be negative.
whole_prior <- function(f, name) {
  f <- check_prior(f, name)
  if (!inherits(f, "cl_prior")) return(f)
  whole <- attr(f, "whole")
  if (is.null(whole)) {
    abort_argument("prior", sprintf(paste("the prior of '%s', %s, is for positive parameters only;",
                                          "use prior_normal() or prior_student_t()"), name,
                                    attr(f, "label")))
  }
  whole
}

# Means and standard deviations of the columns, and the unit of the link, weighted like the
# likelihood.
glm_spread <- function(problem) {
  x <- problem$x
  y <- problem$y
  row <- family_row(problem$family)
  w <- if (row$least_squares) problem$weights > 0 else problem$weights
  if (length(w) == 0L) {
    mean <- as.vector(colMeans(x))
    square <- as.vector(colMeans(x * x))
    centre <- mean(y)
    unit <- stats::sd(y)
  } else {
    share <- w / sum(w)
    mean <- as.vector(as.matrix(cl_crossprod(x, share)))
    square <- as.vector(as.matrix(cl_crossprod(x * x, share)))
    centre <- sum(share * y)
    unit <- stats::sd(y[w > 0])
  }
  sd <- sqrt(pmax(square - mean^2, 0))
  list(mean = mean, sd = sd, unit = if (row$least_squares) unit else 1,
       centre = row$centre(centre))
}

# Weak priors: a change of one standard deviation in a column rarely changes the linear predictor by
# more than 5 (by least squares: 5 standard deviations of y). The prior of the intercept, where all
# columns are 0, follows from this and from the mean of y.
default_coefficients <- function(problem, spread) {
  sd <- 2.5 * spread$unit / ifelse(spread$sd > 0, spread$sd, 1)
  mean <- numeric(length(sd))
  k <- problem$intercept
  if (k > 0L) {
    others <- setdiff(seq_along(sd), k)
    sd[k] <- sqrt((10 * spread$unit)^2 + sum((spread$mean[others] * sd[others])^2))
    mean[k] <- spread$centre
  }
  list(mean = signif(mean, 3), sd = signif(sd, 3))
}

# Normal densities, each with its own mean and standard deviation.
normal_priors <- function(mean, sd) {
  new_prior(sprintf("normal(%g, %g)", mean, sd), function(x) {
    z <- (x - mean) / sd
    if (is_traced(x)) return(-z^2 / 2 - log(sd) - 0.5 * log(2 * pi))
    structure(-z^2 / 2 - log(sd) - 0.5 * log(2 * pi), gradient = -z / sd)
  })
}

aux_prior <- function(f, aux, spread) {
  if (is.null(f)) {
    f <- switch(aux, sigma = prior_normal(0, signif(2.5 * spread$unit, 3)),
                phi = prior_lognormal(1, 2), cuts = prior_normal(0, 10))
  } else {
    check_prior(f, aux)
  }
  if (aux == "cuts") whole_prior(f, aux) else f
}

# ---- as a function of theta ----------------------------------------------------------------------

# list(value: function(theta) list(value, gradient), information, label: text by coefficient). The
# densities of sigma and phi are on their natural scale.
prior_of_theta <- function(priors, core) {
  place <- rep(core$free, max(1L, core$classes - 1L))
  of <- priors$columns$of[place]
  groups <- lapply(unique(of), function(g) {
    at <- which(of == g)
    default <- priors$columns$default
    list(at = at, f = if (g > 0L) priors$columns$list[[g]] else
      normal_priors(default$mean[place[at]], default$sd[place[at]]))
  })
  names <- c(coefficient_names(core), aux_names(core))
  aux <- aux_index(core)
  value <- function(theta) {
    total <- 0
    gradient <- numeric(length(theta))
    for (group in groups) {
      one <- prior_group(group, theta[group$at], names[group$at])
      total <- total + sum(one$value)
      gradient[group$at] <- one$gradient
    }
    for (i in aux) {
      x <- if (core$logged) exp(theta[i]) else theta[i]
      one <- prior_at(priors$aux, x, names[i])
      total <- total + one[1L]
      gradient[i] <- one[2L] * if (core$logged) x else 1
    }
    list(value = total, gradient = gradient)
  }
  traced <- function(theta) {
    total <- 0
    for (group in groups) {
      x <- theta[group$at]
      total <- total + if (inherits(group$f, "cl_prior")) sum(group$f(x)) else
        Reduce(`+`, lapply(seq_along(group$at), function(i) group$f(x[i])))
    }
    for (i in aux) total <- total + sum(priors$aux(if (core$logged) exp(theta[i]) else theta[i]))
    total
  }
  list(value = value, traced = traced,
       information = function(theta) prior_information(value, theta),
       label = prior_labels(groups, priors, names, aux))
}

# At the coefficients x of a group: values and derivatives.
prior_group <- function(group, x, names) {
  if (inherits(group$f, "cl_prior")) {
    found <- group$f(x)
    return(list(value = found, gradient = attr(found, "gradient")))
  }
  found <- vapply(seq_along(x), function(i) prior_at(group$f, x[i], names[i]), numeric(2L))
  list(value = found[1L, ], gradient = found[2L, ])
}

# Minus the second derivatives of a sum of functions of one number each, computed together.
prior_information <- function(value, theta) {
  h <- 1e-4 * pmax(1, abs(theta))
  slope <- (value(theta + h)$gradient - value(theta - h)$gradient) / (2 * h)
  diag(-slope, length(slope))
}

prior_labels <- function(groups, priors, names, aux) {
  text <- function(f) if (is.null(attr(f, "label"))) "a function" else attr(f, "label")
  labels <- stats::setNames(rep("", length(names)), names)
  for (group in groups) labels[group$at] <- text(group$f)
  if (length(aux) > 0L) labels[aux] <- text(priors$aux)
  labels
}
