# Tuples of Stan programs: lists of their parts. An array of tuples is a list of them, with
# dimensions if it has several. What a declaration declares are numbers at its leaves: x, or the
# parts x.1, x.2[3].1.

# The leaves of declarations as declarations: `path` leads from the variable's value to the leaf's.
stan_leaves <- function(declarations, cx, home) {
  do.call(c, c(list(list()), lapply(declarations, function(d) {
    if (is.null(d$path)) d$root <- d$name
    if (is_complex_type(d$type)) return(stan_complex_leaves(d))
    if (d$type$base != "tuple") return(list(d))
    parts <- function(name, path) {
      stan_leaves(lapply(seq_along(d$parts), function(k) {
        part <- d$parts[[k]]
        part[c("kind", "line", "root")] <- list("decl", d$line, d$root)
        part$name <- sprintf("%s.%d", name, k)
        part$path <- c(path, k)
        part
      }), cx, home)
    }
    if (length(d$sizes) == 0L) return(parts(d$name, d$path))
    names <- stan_element_names(d$name, stan_size(d, cx, home))
    do.call(c, c(list(list()), lapply(seq_along(names), function(i) {
      parts(names[i], c(d$path, i))
    })))
  })))
}

stan_complex_leaves <- function(d) {
  lapply(1:2, function(i) {
    d$stem <- d$name
    d$suffix <- c(".real", ".imag")[i]
    d$name <- paste0(d$name, d$suffix)
    d$path <- c(d$path, i)
    d$type <- stan_real_type(d$type)
    d
  })
}

# The names of the elements of a leaf.
stan_leaf_names <- function(d, size) {
  if (is.null(d$stem)) return(stan_element_names(d$name, size))
  names <- stan_element_names(d$stem, size)
  if (length(names) == 0L) names else paste0(names, d$suffix)
}

# The value of a leaf.
stan_leaf <- function(value, path) {
  for (i in path) {
    value <- if (is.complex(value)) (if (i == 1L) Re(value) else Im(value)) else value[[i]]
  }
  value
}

# Code of a parameter that is made of its leaves, which have names of their own.
stan_whole <- function(d, cx, home, name = d$name) {
  parts <- function(name) {
    as.call(c(list(as.name("list")), lapply(seq_along(d$parts), function(k) {
      stan_whole(d$parts[[k]], cx, home, sprintf("%s.%d", name, k))
    })))
  }
  if (is_complex_type(d$type)) {
    return(call("stan_complex", as.name(paste0(name, ".real")), as.name(paste0(name, ".imag"))))
  }
  if (d$type$base != "tuple") return(as.name(name))
  if (length(d$sizes) == 0L) return(parts(name))
  d$name <- name
  size <- stan_size(d, cx, home)
  all <- as.call(c(list(as.name("list")), lapply(stan_element_names(name, size), parts)))
  if (length(size) > 1L) call("stan_elements", all, seq_len(prod(size)), size) else all
}

# Parameters with those that are tuples as their leaves.
stan_given <- function(state, given) {
  for (p in state$parameters) {
    if (!is.null(p$d$path) && (is.list(given[[p$d$root]]) || is.complex(given[[p$d$root]]))) {
      given[[p$name]] <- stan_leaf(given[[p$d$root]], p$d$path)
    }
    if (!is.null(p$whole)) given[[p$d$root]] <- NULL
  }
  given
}

# Code of the value that a variable has before it is assigned.
stan_default <- function(d, cx) {
  sizes <- stan_exprs(d$sizes, cx)
  if (d$type$base == "tuple") {
    one <- as.call(c(list(as.name("list")), lapply(d$parts, stan_default, cx)))
    if (length(sizes) == 0L) return(one)
    return(as.call(c(list(as.name("stan_repeated"), one), sizes)))
  }
  empty <- if (length(sizes) == 0L) NaN else as.call(c(list(as.name("stan_empty")), sizes))
  if (is_complex_type(d$type)) call("stan_complex", empty, empty) else empty
}

# An array of tuples that are alike.
stan_repeated <- function(x, ...) {
  size <- stan_sizes(...)
  x <- rep(list(x), prod(size))
  if (length(size) > 1L) dim(x) <- size
  x
}

# A tuple or an array of tuples, if it has the sizes of the declared one.
stan_fitting <- function(value, like) {
  stan_same_shape(stan_shape(value), stan_shape(like))
  if (is.list(like) && !is_stan_complex(like)) {
    for (k in seq_along(like)) stan_fitting(value[[k]], like[[k]])
  }
  value
}

# {a, b, ...} of arrays of tuples.
stan_stack_tuples <- function(...) {
  values <- list(...)
  each <- stan_shape(values[[1L]])
  if (any(lengths(values) != prod(each))) {
    stop("the parts of an array differ in size", call. = FALSE)
  }
  n <- length(values)
  all <- do.call(c, lapply(values, as.vector))
  stan_elements(all, as.vector(t(matrix(seq_len(n * prod(each)), prod(each), n))), c(n, each))
}

# The value of a tuple in data: a list of its parts, in their order or by the names "1", "2", ...
stan_data_tuple <- function(x, d, cx, home, depth = d$type$depth, name = d$name) {
  size <- if (depth > 0L) stan_size(d, cx, home)[d$type$depth - depth + 1L]
  n <- if (depth > 0L) size else length(d$parts)
  at <- if (is.list(x)) match(as.character(seq_len(n)), names(x))
  if (depth == 0L && is.list(x) && !anyNA(at)) x <- x[at]
  if (!is.list(x) && !(depth > 0L && n == 0) || length(x) != n) {
    stan_data_stop(list(name = name, line = d$line), sprintf(
      "must be a list of %s, not %s", count_of(n, if (depth > 0L) "tuple" else "part"),
      describe(x)))
  }
  if (depth > 0L) {
    parts <- lapply(seq_len(n), function(i) {
      stan_data_tuple(x[[i]], d, cx, home, depth - 1L, sprintf("%s[%d]", name, i))
    })
    return(if (d$type$depth > 1L && depth > 1L) do.call(stan_stack_tuples, parts) else parts)
  }
  lapply(seq_len(n), function(k) {
    part <- d$parts[[k]]
    part$name <- sprintf("%s.%d", name, k)
    part$line <- d$line
    stan_data_part(x[[k]], part, cx, home)
  })
}
