# Methods of other packages' generics for mixed models.

#' @exportS3Method insight::find_formula
find_formula.cl_glmm <- function(x, ...) {
  whole <- stats::formula(x)
  fixed <- without_bars(whole[[3L]])
  conditional <- whole
  conditional[[3L]] <- if (is.null(fixed)) 1 else fixed
  random <- lapply(random_bars(whole[[3L]]), call_formula, environment(whole))
  structure(list(conditional = conditional, random = if (length(random) == 1L) random[[1L]] else
    random), class = c("insight_formula", "list"))
}

# Variances of the fixed and random parts of the linear predictor and of the distribution, as
# Nakagawa, Johnson and Schielzeth (2017) define them.
#' @exportS3Method insight::get_variance
get_variance.cl_glmm <- function(x, component = "all", ...) {
  if (length(x$fields) > 0L) {
    abort_argument("x", "the variance of a field has no part of its own in that of a model")
  }
  designs <- random_designs(random_terms(random_bars(x$formula[[3L]])), stats::model.frame(x))
  parts <- vapply(seq_along(designs), function(t)
    sum(crossprod(designs[[t]]$x) * x$variances[[t]]) / length(x$y), 0)
  rows <- vapply(designs, function(d) nlevels(d$factor), 0L) == length(x$y)
  found <- list(var.fixed = stats::var(unname(stats::predict(
    replace(x, c("na.action", "offset"), list(NULL)), re.form = NA))),
                var.random = sum(parts[!rows]), var.distribution = distribution_variance(x),
                var.dispersion = sum(parts[rows]))
  found$var.residual <- found$var.distribution + found$var.dispersion
  first <- vapply(x$variances, function(v) rownames(v)[1L] == "(Intercept)", NA)
  found$var.intercept <- vapply(x$variances[first], `[`, 0, 1L)
  found$var.slope <- unlist(lapply(seq_along(first), function(t) {
    v <- diag(x$variances[[t]])
    v <- if (first[t]) v[-1L] else v
    if (length(v) > 0L) stats::setNames(v, paste0(names(first)[t], ".", names(v)))
  }))
  component <- check_choice(component, c("all", sub("var.", "", names(found), fixed = TRUE)),
                            "component")
  if (component == "all") found else found[paste0("var.", component)]
}
