# Observations and random effects in place of which an objective of cl_tmb() meets a marked value: a
# draw, which densities fill with random numbers, or observations with weights, for residuals. Both
# are environments.

# ---- draws ---------------------------------------------------------------------------------------

# Elements `at` of the vector home$values, which are NA until a density draws them; `put` turns what
# was drawn for this value into what is stored.
new_draw <- function(home, at, put = NULL) {
  self <- list2env(list(home = home, at = at, put = put), parent = emptyenv())
  class(self) <- "cl_draw"
  self
}

draw_of <- function(x) {
  home <- list2env(list(values = rep(NA_real_, length(x))), parent = emptyenv())
  at <- if (is.null(dim(x))) seq_along(x) else array(seq_along(x), dim(x))
  new_draw(home, labelled(at, labels_of(x)))
}

is_draw <- function(x) is.environment(x) && inherits(x, "cl_draw")

# The drawn numbers, in the shape of the value.
drawn <- function(x) {
  value <- x$at
  value[] <- x$home$values[x$at]
  if (!is.null(x$put)) trace_stop("a value is used before a density has drawn it")
  if (anyNA(value)) trace_stop("a value is used before a density has drawn it")
  value
}

fill_draw <- function(x, values) {
  values <- if (is.null(x$put)) values else x$put(values)
  x$home$values[x$at] <- as.vector(values)
}

#' @export
length.cl_draw <- function(x) length(x$at)

#' @export
dim.cl_draw <- function(x) dim(x$at)

#' @export
`[.cl_draw` <- function(x, ...) {
  if (is.null(x$put)) new_draw(x$home, x$at[...]) else drawn(x)[...]
}

#' @export
`[[.cl_draw` <- function(x, ...) x[...]

#' @export
as.vector.cl_draw <- function(x, mode = "any") {
  if (!mode %in% c("any", "numeric", "double")) return(as.vector(drawn(x), mode))
  new_draw(x$home, as.vector(x$at), x$put)
}

#' @export
as.double.cl_draw <- function(x, ...) as.double(drawn(x))

#' @export
t.cl_draw <- function(x) t(drawn(x))

#' @export
Math.cl_draw <- function(x, ...) get(.Generic, baseenv())(drawn(x), ...)

#' @export
Summary.cl_draw <- function(..., na.rm = FALSE) {
  values <- lapply(list(...), function(x) if (is_draw(x)) drawn(x) else x)
  do.call(.Generic, c(values, list(na.rm = na.rm)))
}

# Of a value that is not drawn yet, sums and multiples can be drawn.
#' @export
Ops.cl_draw <- function(e1, e2) {
  f <- get(.Generic, baseenv())
  if (missing(e2)) return(f(drawn(e1)))
  later <- is_draw(e1) && !is_draw(e2) && is.null(e1$put) && anyNA(e1$home$values[e1$at])
  back <- switch(.Generic, `+` = `-`, `-` = `+`, `*` = `/`, `/` = `*`)
  if (later && !is.null(back)) {
    return(new_draw(e1$home, e1$at, function(values) back(values, e2)))
  }
  f(if (is_draw(e1)) drawn(e1) else e1, if (is_draw(e2)) drawn(e2) else e2)
}

# ---- weighted observations -----------------------------------------------------------------------

# Observations x, whose log density counts `keep` times, the logarithm of the distribution function
# `low` times and that of its complement `high` times.
new_weighted <- function(x, keep, low, high) {
  self <- list2env(list(x = x, keep = keep, low = low, high = high), parent = emptyenv())
  class(self) <- "cl_weighted"
  self
}

is_weighted <- function(x) is.environment(x) && inherits(x, "cl_weighted")

#' @export
length.cl_weighted <- function(x) length(x$x)

#' @export
dim.cl_weighted <- function(x) dim(x$x)

#' @export
`[.cl_weighted` <- function(x, ...) {
  at <- if (is.null(dim(x$x))) seq_along(x$x) else array(seq_along(x$x), dim(x$x))
  at <- at[...]
  value <- x$x[...]
  new_weighted(value, x$keep[as.vector(at)], x$low[as.vector(at)], x$high[as.vector(at)])
}

#' @export
`[[.cl_weighted` <- function(x, ...) x[...]

# ---- densities of marked values ------------------------------------------------------------------

# list(name = how to draw n numbers, from the density's arguments)
marked_draws <- function() {
  of_stats <- c("norm", "pois", "binom", "gamma", "exp", "beta", "t", "unif", "lnorm", "nbinom",
                "weibull", "cauchy", "logis", "chisq", "geom")
  draws <- lapply(paste0("r", of_stats), get, envir = asNamespace("stats"))
  names(draws) <- paste0("d", of_stats)
  c(draws, list(
    dnbinom2 = function(n, mu, var) stats::rnbinom(n, mu^2 / (var - mu), mu = mu),
    dnbinom_robust = function(n, log_mu, log_var_minus_mu) {
      stats::rnbinom(n, exp(2 * log_mu - log_var_minus_mu), mu = exp(log_mu))
    },
    dbinom_robust = function(n, size, logit_p) stats::rbinom(n, size, stats::plogis(logit_p)),
    dlgamma = function(n, shape, scale) log(stats::rgamma(n, shape, scale = scale))))
}

# Densities of one vector or of rows: f(number of rows, arguments) gives a matrix of rows.
marked_rows <- list(
  dmvnorm = function(n, mu = 0, Sigma, scale = 1) {
    z <- matrix(stats::rnorm(n * ncol(Sigma)), n) %*% chol(Sigma)
    t(t(z) * scale + mu)
  },
  dgmrf = function(n, mu = 0, Q, scale = 1) {
    z <- matrix(stats::rnorm(n * ncol(Q)), ncol(Q))
    x <- if (is_sparse(Q)) {
      factor <- matrix_factor(Q)
      if (is.null(factor)) trace_stop("the precision matrix must be positive definite")
      as.matrix(Matrix::solve(factor, Matrix::solve(factor, z, system = "Lt"), system = "Pt"))
    } else {
      backsolve(chol(as.matrix(Q)), z)
    }
    t(x * scale + mu)
  },
  dautoreg = function(n, mu = 0, phi, scale = 1, size) {
    lower <- autoreg_lower(phi)
    x <- numeric(size)
    variance <- 1
    for (k in seq_len(size)) {
      j <- min(k - 1L, length(phi))
      if (k > 1L && k - 1L <= length(phi)) variance <- variance * (1 - lower[[j]][j]^2)
      mean <- if (j > 0L) sum(lower[[j]] * x[k - seq_len(j)]) else 0
      x[k] <- mean + sqrt(variance) * stats::rnorm(1)
    }
    matrix(x * scale + mu, 1L)
  })

# The replacements of densities; the others are `masks` and those of traced functions.
marked_masks <- function(masks) {
  known <- function(name) if (is.null(masks[[name]])) traced_functions()[[name]] else masks[[name]]
  draws <- marked_draws()
  single <- Map(function(name, draw) marked_density(name, known(name), draw), names(draws), draws)
  rows <- Map(function(name, draw) marked_vector(name, known(name), draw), names(marked_rows),
              marked_rows)
  values <- c(list(mean = drawing_mean), c(single, rows))
  values[!vapply(values, is.null, NA)]
}

drawing_mean <- function(x, ...) mean(if (is_draw(x)) drawn(x) else x, ...)

marked_density <- function(name, density, draw) {
  force(density)
  force(draw)
  distribution <- traced_functions()[[sub("^d", "p", name)]]
  function(x, ...) {
    if (is_draw(x)) {
      given <- parameters_given(name, density, list(...))
      fill_draw(x, do.call(draw, c(list(length(x)), given), quote = TRUE))
      return(numeric(length(x)))
    }
    if (!is_weighted(x)) return(density(x, ...))
    given <- parameters_given(name, density, list(...))
    value <- x$keep * do.call(density, c(list(x$x), given, list(log = TRUE)), quote = TRUE)
    if (is.null(distribution) || is.null(x$low)) return(value)
    tail <- function(lower) {
      do.call(distribution, c(list(x$x), given, list(lower.tail = lower, log.p = TRUE)),
              quote = TRUE)
    }
    value + x$low * tail(TRUE) + x$high * tail(FALSE)
  }
}

marked_vector <- function(name, density, draw) {
  force(density)
  force(draw)
  function(x, ...) {
    if (is_weighted(x)) {
      trace_stop(sprintf("%s() of observations has no one-step-ahead residuals of this method",
                         name))
    }
    if (!is_draw(x)) return(density(x, ...))
    given <- parameters_given(name, density, list(...))
    if (name == "dautoreg") given$size <- length(x)
    shape <- dim(x)
    n <- if (is.null(shape)) 1L else shape[1L]
    fill_draw(x, do.call(draw, c(list(n), given), quote = TRUE))
    numeric(n)
  }
}

# The arguments of a density except x and log, by name.
parameters_given <- function(name, density, given) {
  like <- if (exists(name, asNamespace("stats"))) get(name, asNamespace("stats")) else density
  call <- as.call(c(list(as.name(name), quote(x)), given))
  matched <- as.list(match.call(like, call))[-1L]
  matched <- lapply(matched, function(x) if (is_draw(x)) drawn(x) else x)
  matched[setdiff(names(matched), c("x", "log", ""))]
}
