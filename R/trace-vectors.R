# Compiled functions at several parameter vectors at once. The core transforms the program: see
# src/program/map.c.

#' Gradient of a plain R function at several points
#'
#' Evaluates a [cl_gradient()] at several points at once: many starting values, proposals or draws.
#' This takes less time than one evaluation after another: data are read once for all points,
#' products of a matrix and a vector become products of two matrices, and fewer kernels are
#' launched.
#'
#' The first call with a given number of points compiles the function for that number. More than 16
#' points are evaluated 16 at a time. With `retrace = TRUE`, points are evaluated one by one.
#'
#' @param f A result of [cl_gradient()].
#' @param ... The parameters, as for `f`, each with one more dimension, the last, for the points.
#'   For K points, a scalar parameter is a vector of length K, a vector of length n is an n x K
#'   matrix, and a matrix is an array.
#' @return K values with the attribute `"gradient"`, a list of arrays shaped like the arguments.
#'   They are `NaN` at a point where a matrix has no Cholesky factor; other points are not affected.
#'   Values and gradients may differ from those of `f` by rounding error, because sums may have
#'   another order.
#' @section Errors:
#' `statcl_error_argument` if `f` is not from `cl_gradient()` or if the parameters do not have the
#' same number of points, and the errors of [cl_gradient()].
#' @seealso [cl_sample()], which evaluates several chains of a `cl_gradient()` together on a device.
#' @export
#' @examples
#' f <- cl_gradient(function(a, b) -sum((b - 1:3)^2) * exp(a) + a)
#' cl_map_gradient(f, a = c(0, 1), b = cbind(1:3, c(1, 2, 2)))
#' f(a = 1, b = c(1, 2, 2))
#'
#' # At draws of a posterior distribution
#' g <- cl_gradient(function(p) sum(dnorm(p, 1:3, 2, log = TRUE)))
#' fit <- cl_sample(g, numeric(3), chains = 2, warmup = 100, iter = 20, seed = 1)
#' range(cl_map_gradient(g, p = t(as.matrix(fit))))
cl_map_gradient <- function(f, ...) {
  if (!inherits(f, "cl_gradient")) {
    abort_argument("f", sprintf("'f' must be a result of cl_gradient(), not %s", describe(f)))
  }
  environment(f)$several(...)
}

# The values at the points given as arguments of the call with this frame.
run_several <- function(state, frame, count) {
  if (gives_all(state, frame, count)) {
    answer <- run_plain(state, mget(state$names, envir = frame), several = TRUE)
    if (!is.null(answer)) return(answer)
  }
  given <- call_point(state, frame)
  count <- count_points(given$values)
  columns <- lapply(given$values, function(v) matrix(as.double(v), point_size(v), count))
  x <- do.call(rbind, columns)
  answer <- matrix(0, nrow(x) + 1L, count)
  if (state$retrace) {
    for (k in seq_len(count)) {
      point <- point_at(given, k)
      prepare_point(state, point)
      answer[, k] <- run_model(state, x[, k])
    }
  } else if (count > 0L) {
    point <- point_at(given, 1L)
    prepare_point(state, point)
    answer <- run_vectors(state, x)
  }
  structure(answer[1L, ], gradient = split_slopes(answer[-1L, , drop = FALSE], given$values))
}

# The number of elements that a parameter has at one point.
point_size <- function(v) if (is.null(dim(v))) 1L else prod(dim(v)[-length(dim(v))])

last_dim <- function(x) if (is.null(dim(x))) length(x) else dim(x)[length(dim(x))]

count_points <- function(values) {
  counts <- vapply(values, last_dim, 0L)
  if (all(counts == counts[1L])) return(counts[[1L]])
  other <- names(values)[counts != counts[1L]][1L]
  abort_argument(other, sprintf("'%s' has %s, but '%s' has %d", other,
                                count_of(counts[[other]], "point"), names(values)[1L], counts[1L]))
}

# Point k of several, in the form that call_point() returns.
point_at <- function(given, k) {
  given$values <- lapply(given$values, function(v) {
    size <- if (is.null(dim(v))) 1L else dim(v)[-length(dim(v))]
    part <- as.vector(v)[(k - 1) * prod(size) + seq_len(prod(size))]
    if (length(size) > 1L) dim(part) <- size
    labels <- dimnames(v)
    labelled(part, if (length(size) > 1L) labels[-length(labels)] else labels[[1L]])
  })
  given
}

# The gradients by parameter, in the shapes of the arguments.
split_slopes <- function(slopes, values) {
  last <- 0L
  for (name in names(values)) {
    v <- values[[name]]
    rows <- point_size(v)
    part <- slopes[last + seq_len(rows), , drop = FALSE]
    values[[name]] <- if (is.null(dim(v))) as.vector(part) else array(part, dim(v))
    last <- last + rows
  }
  values
}

most_vectors <- 16L # in one run

# A column of value and gradient for each column of x.
run_vectors <- function(state, x) {
  count <- ncol(x)
  if (is.null(state$program)) {
    return(rbind(rep(state$constant, count), matrix(0, nrow(x), count)))
  }
  if (count > most_vectors) return(run_in_parts(state, x))
  answer <- .Call(r_program_run_vectors, state$program, x, TRUE)
  if (!is.null(answer)) return(answer)
  of <- state$known[[1L]]
  .Call(r_program_map, state$program, of$nodes, of$data, of$output, count)
  .Call(r_program_run_vectors, state$program, x, TRUE)
}

# The last part repeats columns, so that no program is compiled for its size.
run_in_parts <- function(state, x) {
  count <- ncol(x)
  answer <- matrix(0, nrow(x) + 1L, count)
  for (first in seq(1L, count, by = most_vectors)) {
    columns <- pmin(first + seq_len(most_vectors) - 1L, count)
    part <- run_vectors(state, x[, columns, drop = FALSE])
    mine <- unique(columns)
    answer[, mine] <- part[, seq_along(mine)]
  }
  answer
}
