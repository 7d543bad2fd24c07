# Families whose density is a function of the user.

user_family <- function(density, link, parameters, start, mean, variance, draw, label) {
  arguments <- names(formals(density))
  if (length(arguments) < 2L || "..." %in% arguments) {
    abort_argument("name", paste("the density must be a function of y, mu and named further",
                                 "parameters, and return a log density"))
  }
  link <- check_choice(link, c("identity", "log", "logit", "probit", "cloglog", "cauchit",
                               "inverse", "sqrt"), "link")
  aux <- arguments[-(1:2)]
  links <- stats::setNames(rep("log", length(aux)), aux)
  parameters <- unlist(parameters)
  if (length(parameters) > 0L && !all(names(parameters) %in% aux)) {
    abort_argument("parameters", sprintf(
      "'parameters' must be named by arguments of the density: %s", paste(aux, collapse = ", ")))
  }
  for (name in names(parameters)) {
    links[[name]] <- check_choice(parameters[[name]], c("log", "logit", "identity"), "parameters")
  }
  values <- stats::setNames(c(log = 1, logit = 0.5, identity = 0)[links], aux)
  if (!is.null(start) && (is.null(names(start)) || !all(names(start) %in% c(aux, "mu")))) {
    abort_argument("start", sprintf("'start' must be named by parameters: %s",
                                    paste(c("mu", aux), collapse = ", ")))
  }
  for (name in setdiff(names(start), "mu")) values[[name]] <- check_number(start[[name]], "start")
  if (length(aux) > 0L && !all(is.finite(aux_free(links, values)))) {
    abort_argument("start", "a starting value is outside the range of its link")
  }
  if (!is.null(start[["mu"]])) check_function(start[["mu"]], "start")
  for (f in list(if (!isTRUE(mean)) mean, variance, draw)) {
    if (!is.null(f) && !is.function(f)) {
      abort_argument("name", "'mean', 'variance' and 'draw' must be functions")
    }
  }
  call <- as.call(c(quote(user), quote(y), quote(mu), stats::setNames(lapply(aux, function(name)
    call("$", quote(phi), as.name(name))), aux)))
  with_aux <- function(f) {
    if (is.null(f)) return(NULL)
    function(mu, zeta, phi) rep_len(do.call(f, c(list(mu), phi)), length(mu))
  }
  row <- list(second = NULL, free = !aux %in% names(start), phi = FALSE, counts = FALSE,
              aux = links, start = values, user = density,
              start_mu = start[["mu"]], meanless = is.null(mean), plain = !is.function(mean),
              density = as.function(c(alist(y = , mu = , zeta = , phi = , at0 = , eta = ), call)),
              mean = if (is.function(mean)) with_aux(mean) else function(mu, zeta, phi) mu,
              variance = with_aux(variance), link = link,
              draw = if (!is.null(draw)) function(n, mu, zeta, phi)
                do.call(draw, c(list(n, mu), phi)))
  if (!is.character(label) || length(label) != 1L || is.na(label)) {
    abort_argument("label", "'label' must be a name")
  }
  density_family(label, row)
}

# Parameters on the scale of their links, and back.
aux_free <- function(links, values) {
  as.double(unlist(Map(function(link, v) suppressWarnings(switch(link, log = log(v),
    logit = stats::qlogis(v), v)), links, values[names(links)])))
}

aux_value <- function(links, free) {
  values <- Map(function(link, v) switch(link, log = exp(v), logit = stats::plogis(v), v), links,
                free)
  stats::setNames(as.double(unlist(values)), names(links))
}

# Linear predictors from which the search begins.
user_target <- function(row, y) {
  mu <- if (!is.null(row$start_mu)) rep_len(as.double(row$start_mu(y)), length(y)) else
    switch(row$link, identity = y, logit = , probit = , cloglog = , cauchit =
             if (all(y >= 0 & y <= 1)) (y + 0.5) / 2 else rep(0.5, length(y)),
           pmax(y, 0.1))
  target <- suppressWarnings(stats::make.link(row$link)$linkfun(mu))
  if (!all(is.finite(target))) {
    abort_argument("start", "the starting values of 'mu' must be inside the range of the link")
  }
  target
}

# The further parameters without given starting values at their best for the first coefficients.
user_start <- function(family, start, gradient, slope, finite) {
  value <- as.vector(gradient(start))
  if (!is.finite(value)) {
    abort_argument("family", sprintf(paste("the log density is %g in sum at the starting values:",
                                           "give others by 'start' of cl_family()"), value))
  }
  links <- density_of(family)$aux
  last <- (length(start) - length(links) + seq_along(links))[density_of(family)$free]
  if (length(last) == 0L) return(start)
  fill <- function(v) replace(start, last, v)
  found <- stats::nlminb(start[last], function(v) finite(-as.vector(gradient(fill(v)))),
                         function(v) slope(fill(v))[last], control = list(iter.max = 50))
  if (is.finite(found$objective)) fill(found$par) else start
}

# Further parameters on their own scale, from the covariance matrix v on that of the links.
user_estimates <- function(fit, v) {
  links <- density_of(fit$family)$aux
  p <- fit$rank
  free <- fit$aux
  fit$aux <- aux_value(links, free)
  slope <- aux_free_slope(links, free)
  fit$aux_error <- slope * sqrt(diag(v)[-seq_len(p)])
  fit$vcov <- v[seq_len(p), seq_len(p), drop = FALSE]
  fit
}

aux_free_slope <- function(links, free) {
  as.double(unlist(Map(function(link, v) switch(link, log = exp(v), logit = stats::dlogis(v), 1),
                       links, free)))
}

# The derivatives of value(eta, zeta, aux) by the coefficients and by the free parameters.
family_slopes <- function(object, value, eta, x) {
  links <- density_of(object$family)$aux
  free <- aux_free(links, object$aux)
  h <- 1e-5
  at <- function(e, free) value(eta + e, 0 * eta, as.list(aux_value(links, free)))
  aux <- vapply(seq_along(links), function(i) {
    d <- replace(numeric(length(links)), i, h)
    rep_len((at(0, free + d) - at(0, free - d)) / (2 * h), length(eta))
  }, numeric(length(eta)))
  cbind((at(h, free) - at(-h, free)) / (2 * h) * x, matrix(aux, length(eta)))
}
