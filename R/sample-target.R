# The log density of cl_sample() as a function of one unconstrained vector, or of a matrix with such
# columns: the vector is split into arguments and transformed, and results are checked.
#
# An evaluator gives list(value, gradient). At a point of density zero the value is -Inf and the
# gradient NULL; where the density cannot be evaluated the value is NaN and the gradient NULL.

# ---- where parameters are ------------------------------------------------------------------------

# The value of an argument from its numbers.
as_argument <- function(x, argument) {
  if (is.null(argument$dim)) {
    if (!is.null(argument$given)) names(x) <- argument$given
  } else {
    dim(x) <- argument$dim
    if (!is.null(argument$given)) dimnames(x) <- argument$given
  }
  x
}

# ---- between the scales --------------------------------------------------------------------------

# A start value as an unconstrained vector.
free_start <- function(layout, init) {
  if (!is.null(layout$own)) return(layout$free(init))
  x <- as.double(unlist(init, use.names = FALSE))
  u <- numeric(layout$dimension)
  u[layout$free_u] <- x[layout$free_x]
  for (b in layout$blocks) {
    if (!isTRUE(b$inside(x[b$x]))) {
      abort_argument("init", sprintf(paste("'init' has a value of '%s' outside the range of its",
                                           "transform"), b$name))
    }
    u[b$u] <- b$free(x[b$x])
  }
  u
}

# Constrained values with the attribute "jacobian"; NULL if they are not representable.
constrain <- function(layout, u) {
  if (length(layout$blocks) == 0L) return(u)
  x <- numeric(layout$n)
  x[layout$free_x] <- u[layout$free_u]
  jacobian <- 0
  for (b in layout$blocks) {
    part <- u[b$u]
    value <- b$value(part)
    if (!isTRUE(b$inside(value)) || !is.finite(sum(value))) return(NULL)
    x[b$x] <- value
    jacobian <- jacobian + b$jacobian(part, value)
  }
  attr(x, "jacobian") <- jacobian
  x
}

# The same for points in the columns of a matrix, without Jacobians. All of them were representable.
# `state`: that of the random numbers of a model with quantities of its own.
constrain_draws <- function(layout, u, state = NULL) {
  if (!is.null(layout$own)) return(layout$own$values(u, state))
  if (length(layout$blocks) == 0L) return(u)
  x <- matrix(0, layout$n, ncol(u))
  x[layout$free_x, ] <- u[layout$free_u, ]
  for (b in layout$blocks) {
    part <- u[b$u, , drop = FALSE]
    one <- function(j) b$value(part[, j])
    x[b$x, ] <- if (b$each) b$value(part) else vapply(seq_len(ncol(u)), one, numeric(length(b$x)))
  }
  x
}

# From the gradient of F with respect to the constrained x to that of F + jacobian with respect to
# u.
pull_back <- function(layout, u, x, slope) {
  result <- numeric(layout$dimension)
  result[layout$free_u] <- slope[layout$free_x]
  for (b in layout$blocks) result[b$u] <- b$pull(u[b$u], x[b$x], slope[b$x])
  result
}

# ---- evaluation ----------------------------------------------------------------------------------

# function(u) for one point. `nan`: "stop" or "reject".
make_evaluator <- function(log_density, layout, nan) {
  call_density <- density_caller(log_density, layout)
  n <- layout$n
  plain <- length(layout$blocks) == 0L
  function(u) {
    x <- u
    if (!plain) {
      x <- constrain(layout, u)
      if (is.null(x)) return(list(-Inf, NULL))
      jacobian <- attr(x, "jacobian")
      attr(x, "jacobian") <- NULL
    }
    answer <- call_density(x)
    value <- answer[[1L]]
    slope <- answer[[2L]]
    if (length(slope) != n || !is.finite(value + sum(slope))) {
      unusual <- check_answer(value, slope, n, nan)
      if (!is.null(unusual)) return(unusual)
    }
    if (plain) answer else list(value + jacobian, pull_back(layout, u, x, slope))
  }
}

one_value <- function(answer) {
  if (is.numeric(answer) && length(answer) == 1L) return(answer[[1L]])
  statcl_abort("density", sprintf("'log_density' must return one number, not %s", describe(answer)),
               argument = "log_density")
}

as_slope <- function(slope, given = NULL) {
  if (is.numeric(slope)) {
    slope <- in_order(slope, given)
    if (is.null(slope)) density_partly_named()
    return(as.vector(slope))
  }
  statcl_abort("density", sprintf(paste("the value of 'log_density' must have the attribute",
                                        "\"gradient\", a numeric vector, not %s"),
                                  describe(slope)), argument = "log_density")
}

density_partly_named <- function() {
  statcl_abort("density", paste("the gradient of 'log_density' names some of the parameters, but",
                                "not all of them"), argument = "log_density")
}

list_slope <- function(slope, names, sizes) {
  if (!is.list(slope) || !all(names %in% names(slope))) {
    statcl_abort("density", sprintf(paste("the value of 'log_density' must have the attribute",
                                          "\"gradient\", a list with the elements %s"),
                                    paste(names, collapse = ", ")), argument = "log_density")
  }
  slope <- slope[names]
  wrong <- which(lengths(slope) != sizes)
  if (length(wrong) > 0L) {
    statcl_abort("density", sprintf("the gradient with respect to '%s' has length %d, not %d",
                                    names[wrong[1L]], length(slope[[wrong[1L]]]), sizes[wrong[1L]]),
                 argument = "log_density")
  }
  unlist(slope, use.names = FALSE)
}

# The treatment of a value or a gradient that is not finite; NULL if both are finite.
check_answer <- function(value, slope, n, nan) {
  if (length(slope) != n) {
    statcl_abort("density", sprintf("the gradient of 'log_density' has length %d, not %d",
                                    length(slope), n), argument = "log_density")
  }
  if (identical(value, -Inf)) return(list(-Inf, NULL))
  if (identical(value, Inf)) {
    statcl_abort("density", "the value of 'log_density' is Inf", argument = "log_density")
  }
  if (is.na(value) || anyNA(slope)) {
    if (nan == "reject") return(list(NaN, NULL))
    what <- if (is.na(value)) "the value" else "the gradient"
    statcl_abort("density", sprintf("%s of 'log_density' is NaN; with nan = \"reject\" %s", what,
                                    "such points are rejected"), argument = "log_density")
  }
  if (all(is.finite(slope))) NULL else list(NaN, NULL)
}

# ---- several points at once ----------------------------------------------------------------------

# function(points): a list of results, as of make_evaluator(), for points in the columns of a
# matrix.
make_batch_evaluator <- function(log_density, layout, nan) {
  call_density <- batch_caller(log_density, layout)
  n <- layout$n
  finish <- function(result, j) {
    value <- result[[1L]][j]
    slope <- result[[2L]][, j]
    answer <- if (!is.finite(value + sum(slope))) check_answer(value, slope, n, nan)
    if (is.null(answer)) list(value, slope) else answer
  }
  if (length(layout$blocks) == 0L) {
    return(function(points) {
      result <- call_density(points)
      lapply(seq_len(ncol(points)), function(j) finish(result, j))
    })
  }
  function(points) {
    answers <- rep(list(list(-Inf, NULL)), ncol(points))
    x <- lapply(seq_len(ncol(points)), function(j) constrain(layout, points[, j]))
    usable <- which(!vapply(x, is.null, NA))
    if (length(usable) == 0L) return(answers)
    result <- call_density(matrix(unlist(x[usable]), n))
    for (j in seq_along(usable)) {
      at <- usable[j]
      answer <- finish(result, j)
      if (!is.null(answer[[2L]])) {
        answer <- list(answer[[1L]] + attr(x[[at]], "jacobian"),
                       pull_back(layout, points[, at], x[[at]], answer[[2L]]))
      }
      answers[[at]] <- answer
    }
    answers
  }
}

# function(x) giving list(values, gradient matrix) for the constrained points in the columns of x.
# In a sum with priors, likelihoods and formulas are called once for all points.
batch_caller <- function(log_density, layout) {
  if (inherits(log_density, "cl_gradient")) {
    return(compiled_batch(log_density, layout))
  }
  if (is.null(layout$arguments)) return(vector_batch(log_density, layout))
  if (!inherits(log_density, "cl_log_posterior")) return(argument_batch(log_density, layout))
  parts <- lapply(environment(log_density)$terms, function(term) {
    if (inherits(term, "cl_likelihood")) return(argument_batch(term, layout))
    if (inherits(term, "formula")) return(formula_batch(term, layout))
    if (inherits(term, "cl_gradient")) return(gradient_batch(term, layout))
    column_caller(density_caller(cl_log_posterior(term), layout))
  })
  function(x) {
    values <- slopes <- 0
    for (part in parts) {
      answer <- part(x)
      values <- values + answer[[1L]]
      slopes <- slopes + answer[[2L]]
    }
    list(values, slopes)
  }
}

vector_batch <- function(log_density, layout) {
  function(x) {
    rownames(x) <- layout$given
    answer <- log_density(x)
    given <- attr(answer, "gradient", exact = TRUE)
    slope <- batch_slope(given, dim(x), "the gradient")
    rows <- in_order(stats::setNames(seq_len(nrow(slope)), rownames(given)), layout$given)
    if (is.null(rows)) density_partly_named()
    list(batch_values(answer, ncol(x)), slope[rows, , drop = FALSE])
  }
}

argument_batch <- function(log_density, layout) {
  used <- layout$arguments
  names <- vapply(used, `[[`, "", "name")
  extra <- NULL
  if (inherits(log_density, "cl_likelihood")) {
    used <- used[names %in% names(formals(log_density))]
    names <- vapply(used, `[[`, "", "name")
    extra <- list(gradient = names)
  }
  indices <- lapply(used, `[[`, "index")
  dims <- lapply(used, `[[`, "dim")
  function(x) {
    arguments <- lapply(seq_along(used), function(i) {
      part <- x[indices[[i]], , drop = FALSE]
      if (!is.null(dims[[i]])) dim(part) <- c(dims[[i]], ncol(x))
      else rownames(part) <- used[[i]]$given
      part
    })
    names(arguments) <- names
    answer <- do.call(log_density, c(arguments, extra), quote = TRUE)
    values <- batch_values(answer, ncol(x))
    slope <- attr(answer, "gradient", exact = TRUE)
    result <- matrix(0, nrow(x), ncol(x))
    for (i in seq_along(names)) {
      result[indices[[i]], ] <- batch_slope(slope[[names[i]]], c(length(indices[[i]]), ncol(x)),
                                             sprintf("the gradient with respect to '%s'", names[i]))
    }
    list(values, result)
  }
}

# The same for a cl_gradient(): all points in one run of its program. When chains end, points are
# repeated, so that few programs are compiled: for 4 chains those for 4 and for 2 points.
compiled_batch <- function(f, layout) {
  state <- environment(f)
  by_column <- column_caller(density_caller(f, layout))
  program <- order <- NULL
  sizes <- 1L
  function(x) {
    if (is.null(program) || !identical(program, state$program) || state$pid != Sys.getpid()) {
      answer <- by_column(x)
      if (!state$retrace && !is.null(state$program)) {
        program <<- state$program
        order <<- program_order(state, layout)
      }
      return(answer)
    }
    n <- ncol(x)
    if (n > max(sizes)) sizes <<- halves_of(n)
    columns <- pmin(seq_len(min(sizes[sizes >= n])), n)
    points <- x[if (is.null(order)) seq_len(nrow(x)) else order, columns, drop = FALSE]
    both <- run_vectors(state, points)[, seq_len(n), drop = FALSE]
    slopes <- both[-1L, , drop = FALSE]
    if (!is.null(order)) slopes[order, ] <- slopes
    list(both[1L, ], slopes)
  }
}

# The same for a cl_gradient() as a term of a cl_log_posterior(), with the parameters that it uses.
gradient_batch <- function(f, layout) {
  used <- layout$arguments
  names <- vapply(used, `[[`, "", "name")
  known <- gradient_names(f, names)
  if (!"..." %in% known) used <- used[names %in% known]
  if (length(used) == 0L) return(column_caller(density_caller(cl_log_posterior(f), layout)))
  rows <- unlist(lapply(used, `[[`, "index"))
  last <- 0L
  for (i in seq_along(used)) {
    n <- length(used[[i]]$index)
    used[[i]]$index <- last + seq_len(n)
    last <- last + n
  }
  call_density <- compiled_batch(f, list(n = last, arguments = used))
  function(x) {
    answer <- call_density(x[rows, , drop = FALSE])
    slopes <- matrix(0, nrow(x), ncol(x))
    slopes[rows, ] <- answer[[2L]]
    list(answer[[1L]], slopes)
  }
}

halves_of <- function(n) if (n > 1) c(n, halves_of((n + 1L) %/% 2L)) else 1L

# The same for a function of one point.
column_caller <- function(call_density) {
  function(x) {
    answers <- lapply(seq_len(ncol(x)), function(j) call_density(x[, j]))
    slopes <- vapply(answers, `[[`, x[, 1L], 2L, USE.NAMES = FALSE) # a vector if x has one row
    list(vapply(answers, `[[`, 0, 1L), matrix(slopes, nrow(x)))
  }
}

batch_values <- function(answer, count) {
  if (is.numeric(answer) && length(answer) == count) return(as.vector(answer))
  statcl_abort("density", sprintf("'log_density' must return %d values for %d columns, not %s",
                                  count,
                                  count, describe(answer)), argument = "log_density")
}

batch_slope <- function(slope, dim, what) {
  if (is.numeric(slope) && length(slope) == prod(dim)) return(matrix(slope, dim[1L], dim[2L]))
  statcl_abort("density", sprintf("%s must be a %d x %d matrix, not %s", what, dim[1L], dim[2L],
                                  describe(slope)), argument = "log_density")
}

# function(x) giving list(value, gradient as a plain vector), for the constrained vector x.
density_caller <- function(log_density, layout) {
  call_density <- argument_caller(log_density, layout)
  if (inherits(log_density, "cl_gradient")) {
    return(compiled_caller(environment(log_density), call_density, layout))
  }
  call_density
}

argument_caller <- function(log_density, layout) {
  if (is.null(layout$arguments)) {
    given <- layout$given
    return(function(x) {
      if (!is.null(given)) names(x) <- given
      answer <- log_density(x)
      slope <- own_slope(log_density, attr(answer, "gradient", exact = TRUE))
      list(one_value(answer), as_slope(slope, given))
    })
  }
  names <- vapply(layout$arguments, `[[`, "", "name")
  indices <- lapply(layout$arguments, `[[`, "index")
  plain <- vapply(layout$arguments, function(a) is.null(a$dim) && is.null(a$given), NA)
  extra <- if (inherits(log_density, "cl_likelihood")) list(gradient = names)
  function(x) {
    arguments <- vector("list", length(names))
    names(arguments) <- names
    for (i in seq_along(names)) {
      part <- x[indices[[i]]]
      arguments[[i]] <- if (plain[i]) part else as_argument(part, layout$arguments[[i]])
    }
    answer <- do.call(log_density, c(arguments, extra), quote = TRUE)
    slope <- attr(answer, "gradient", exact = TRUE)
    list(one_value(answer), list_slope(slope, names, lengths(indices)))
  }
}

# The same for a cl_gradient() with this state: once it is compiled for these parameters, its
# program is called with the vector directly, without lists of arguments and derivatives.
compiled_caller <- function(state, call_density, layout) {
  program <- order <- NULL
  function(x) {
    if (is.null(program) || !identical(program, state$program) || state$pid != Sys.getpid()) {
      answer <- call_density(x)
      if (!state$retrace && !is.null(state$program)) {
        program <<- state$program
        order <<- program_order(state, layout)
      }
      return(answer)
    }
    if (is.null(order)) {
      both <- .Call(r_program_run, program, x, TRUE)
      return(list(both[1L], both[-1L]))
    }
    both <- .Call(r_program_run, program, x[order], TRUE)
    slope <- x
    slope[order] <- both[-1L]
    list(both[1L], slope)
  }
}

# The positions of the parameters of a compiled function in the vector; NULL if they are in order.
program_order <- function(state, layout) {
  names <- vapply(layout$arguments, `[[`, "", "name")
  indices <- lapply(layout$arguments, `[[`, "index")
  order <- unlist(indices[match(names(state$like), names)], use.names = FALSE)
  if (!identical(order, seq_len(layout$n))) order
}

# The gradient of a cl_gradient() of one parameter as a vector; any other gradient unchanged.
own_slope <- function(f, slope) {
  if (inherits(f, "cl_gradient") && length(slope) == 1L) slope[[1L]] else slope
}

check_start <- function(x) {
  parts <- if (!is.list(x)) list(x) else
    lapply(x, function(p) if (is.list(p)) unlist(p) else p) # a tuple of a Stan program
  if (is.list(x) && (is.null(names(x)) || !all(nzchar(names(x))) || anyDuplicated(names(x)))) {
    abort_argument("init", "the parameters in 'init' must have unique names")
  }
  right <- vapply(parts, function(p) {
    (is.numeric(p) || is.complex(p)) && !is.object(p) && all(is.finite(p))
  }, NA)
  if (length(parts) == 0L || !all(right)) abort_argument("init",
    "'init' must contain only finite numbers")
  if (sum(lengths(parts)) == 0L) abort_argument("init", "'init' is empty")
}
