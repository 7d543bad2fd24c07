# Densities that bring their own parameters: a compiled function of an unconstrained vector, with
# the attribute "own", a list of
#   names       of the elements of the vector, for messages
#   drawn       list(names, bounds, arguments, values): the numbers of a draw, and
#               `values(u, state)`, which computes them for vectors in columns; `state`: that of
#               random numbers
#   parameters  the same for the parameters alone
#   free        function(init): the unconstrained vector of a list of parameters
#   why         function(u): the text why the model rejects a point, or NULL
#   line        function(): the line of the program that is being recorded
#   plain       function(): the density without Jacobians

# The log density that cl_sample() and its relatives evaluate for a density or a model of the user.
as_density <- function(x) UseMethod("as_density")

as_density.default <- function(x) x

# The same for a function of data that returns one.
density_with <- function(x, data) {
  as_density(if (!is.null(data) && is.function(x)) x(data) else x)
}

own_layout <- function(own, transform) {
  if (!is.null(transform)) {
    abort_argument("transform", "the model declares its own constraints: leave out 'transform'")
  }
  layout <- vector_layout(stats::setNames(numeric(length(own$names)), own$names))
  layout$given <- NULL
  layout$free_x <- layout$free_u <- seq_len(layout$n)
  layout$dimension <- layout$n
  layout$blocks <- list()
  layout$bounds <- matrix(c(-Inf, Inf), layout$n, 2L, byrow = TRUE)
  layout$own <- own$drawn
  layout$free <- own$free
  layout
}

# Names, bounds and arguments of the numbers of a draw.
drawn_layout <- function(layout) if (is.null(layout$own)) layout else layout$own

# A model with its own parameters, or with a start, needs none.
own_start <- function(log_density) {
  start <- attr(log_density, "start", exact = TRUE)
  if (!is.null(start)) return(start)
  own <- attr(log_density, "own", exact = TRUE)
  if (is.null(own)) abort_argument("init", "'init' is missing: give a start for the parameters")
  numeric(length(own$names))
}
