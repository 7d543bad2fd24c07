# Functions that a traced function cannot use with traced values, refused by name with what to use
# instead.

# name = what to use instead
without_derivatives <- c(
  integrate = "use a sum over the nodes of a quadrature rule, computed before",
  optimize = "", optimise = "", uniroot = "", optim = "", nlm = "", nlminb = "",
  spline = "basis", splinefun = "basis", .splinefun = "basis", approx = "basis",
  approxfun = "basis", .approxfun = "basis", besselI = "", besselJ = "", besselY = "", svd = "",
  qr = "", eigen = "", kappa = "", fft = "")

basis_text <- "multiply coefficients by a matrix of basis functions, computed before as data"

drawing_names <- c(paste0("r", c("norm", "unif", "exp", "gamma", "beta", "binom", "pois", "nbinom",
                                 "geom", "hyper", "t", "chisq", "f", "cauchy", "logis", "lnorm",
                                 "weibull", "signrank", "wilcox", "multinom", "Wishart")),
                   "r2dtable", "sample", "sample.int")

refused_masks <- function() {
  home_of_original <- function(name) {
    if (exists(name, baseenv(), inherits = FALSE)) baseenv() else asNamespace("stats")
  }
  original <- function(name) get(name, home_of_original(name))
  known <- Filter(function(name) exists(name, home_of_original(name)), names(without_derivatives))
  masks <- lapply(known, function(name) without_traced(name, original(name)))
  names(masks) <- known
  draws <- lapply(drawing_names, function(name) drawing(name, original(name)))
  c(masks, stats::setNames(draws, drawing_names))
}

# Not available for traced arguments, and for functions whose values are traced.
without_traced <- function(name, original) {
  force(original)
  shown <- sub("^[.]", "", name)
  instead <- without_derivatives[[name]]
  if (instead == "basis") instead <- basis_text
  text <- sprintf("%s() is not available for traced values%s", shown,
                  if (nzchar(instead)) paste0(": ", instead) else "")
  checked <- function(f) {
    function(...) {
      value <- f(...)
      if (contains_traced(value)) trace_stop(text)
      value
    }
  }
  function(...) {
    if (any_traced(...)) trace_stop(text)
    given <- list(...)
    functions <- vapply(given, is.function, NA)
    if (!any(functions)) return(original(...))
    given[functions] <- lapply(given[functions], checked)
    do.call(original, given, quote = TRUE)
  }
}

# Random numbers: a record would keep those of its only call.
drawing <- function(name, original) {
  force(original)
  text <- sprintf(paste("%s() draws random numbers, which would stay those of the call that is",
                        "recorded: draw them outside of 'f', as data"), name)
  function(...) {
    if (is.null(tracing$tape) || tracing$tape$elements) original(...) else trace_stop(text)
  }
}
