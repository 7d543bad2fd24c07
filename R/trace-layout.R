# Layouts: the named parameters of a log density as one vector, their transforms, and how a log
# density is called with them.

# How a starting value is split: `arguments`: NULL for one vector, else a list with name, index, dim
# and `given`, the names or dimnames, of each argument; `names` of all parameters; `blocks`:
# transforms with the indices of their constrained (`x`) and unconstrained (`u`) numbers; `free_x`,
# `free_u`: indices of the others; `bounds` of the constrained numbers.
parameter_layout <- function(init, transform) {
  layout <- if (is.list(init)) list_layout(init) else vector_layout(init)
  blocks <- transform_blocks(layout, transform)
  layout$blocks <- blocks
  sizes <- integer(layout$n)
  sizes[] <- 1L
  for (b in blocks) sizes[b$x] <- c(rep(1L, b$size), rep(0L, length(b$x) - b$size))
  last <- cumsum(sizes)
  for (i in seq_along(blocks)) {
    layout$blocks[[i]]$u <- last[blocks[[i]]$x][seq_len(blocks[[i]]$size)]
  }
  layout$free_x <- setdiff(seq_len(layout$n), unlist(lapply(blocks, `[[`, "x")))
  layout$free_u <- last[layout$free_x]
  layout$dimension <- sum(sizes)
  layout$bounds <- matrix(c(-Inf, Inf), layout$n, 2L, byrow = TRUE,
                          dimnames = list(layout$names, c("lower", "upper")))
  for (b in blocks) layout$bounds[b$x, ] <- cbind(rep_len(b$lower, length(b$x)), b$upper)
  layout
}

vector_layout <- function(init) {
  n <- length(init)
  given <- names(init)
  list(n = n, arguments = NULL, given = given,
       names = if (is.null(given)) element_names("par", init) else given,
       indices = stats::setNames(as.list(seq_len(n)), given))
}

list_layout <- function(init) {
  ends <- cumsum(lengths(init))
  arguments <- lapply(seq_along(init), function(i) {
    list(name = names(init)[i], index = ends[i] - length(init[[i]]) + seq_along(init[[i]]),
         dim = dim(init[[i]]), given = if (is.null(dim(init[[i]]))) names(init[[i]]) else
           dimnames(init[[i]]))
  })
  list(n = sum(lengths(init)), arguments = arguments, given = NULL,
       names = unlist(Map(element_names, names(init), init), use.names = FALSE),
       indices = stats::setNames(lapply(arguments, `[[`, "index"), names(init)))
}

# "beta" for a number, else "beta[1]", "beta[age]" or "beta[2,1]".
element_names <- function(name, x) {
  if (length(x) == 1L && is.null(names(x)) && is.null(dim(x))) return(name)
  if (length(x) == 0L) return(character())
  if (is.null(dim(x))) {
    index <- if (is.null(names(x))) seq_along(x) else names(x)
  } else {
    index <- apply(arrayInd(seq_along(x), dim(x)), 1L, paste, collapse = ",")
  }
  sprintf("%s[%s]", name, index)
}

# `transform`: NULL, one transform of the whole vector, or a list of them by parameter name.
transform_blocks <- function(layout, transform) {
  if (is.null(transform)) return(list())
  if (inherits(transform, "cl_transform")) {
    if (!is.null(layout$arguments)) {
      abort_argument("transform", paste("'transform' must be a list named by parameter because",
                                        "'init' is one"))
    }
    return(list(transform_block(transform, seq_len(layout$n), "init")))
  }
  known <- is.list(transform) && length(names(transform)) == length(transform) &&
    all(names(transform) %in% names(layout$indices)) && !anyDuplicated(names(transform))
  if (!known || !all(vapply(transform, inherits, NA, what = "cl_transform"))) {
    abort_argument("transform", paste("'transform' must be a transform such as cl_lower(0), or a",
                                      "list of transforms named by parameters of 'init'"))
  }
  Map(function(t, name) transform_block(t, layout$indices[[name]], name), unname(transform),
      names(transform))
}

transform_block <- function(transform, x, name) {
  if (!transform$bounds %in% c(1L, length(x)) || !transform$fits(length(x))) {
    abort_argument("transform", sprintf(paste("the transform of '%s' cannot be used for a",
                                              "parameter of length %d"), name, length(x)))
  }
  c(transform[c("inside", "free", "value", "jacobian", "pull", "flags", "each", "lower", "upper")],
    list(x = x, size = transform$size(length(x)), name = name))
}
