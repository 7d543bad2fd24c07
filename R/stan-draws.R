# Draws of Stan programs: names, bounds and values of parameters, transformed parameters and
# generated quantities, for cl_sample() and its relatives (R/sample-own.R).

as_density.cl_stan <- function(x) as_density(x(list()))

as_density.cl_stan_density <- function(x) {
  state <- environment(x)$state
  if (state$dimension == 0) {
    stan_abort("the program has no parameters: there is nothing to sample", NA)
  }
  density <- stan_caught(stan_vector_density(state), state$model)
  parameters <- lapply(state$parameters, `[[`, "d")
  outputs <- stan_outputs(state$model$program)
  structure(density, own = list(
    names = stan_free_names(state$parameters),
    drawn = stan_drawn(state, c(parameters, outputs), TRUE),
    parameters = stan_drawn(state, parameters, FALSE),
    free = function(init) stan_unconstrained_start(state, init),
    why = function(u) stan_why(state, stan_plain_parameters(state)(u)),
    line = function() {
      stan_note_line()
      stan_known$line
    },
    plain = function() stan_vector_density(state, FALSE)))
}

# Transformed parameters and generated quantities, for draws of the program's parameters.
values_at_draws.cl_stan_density <- function(f, x, arguments, batch, iterations) {
  state <- environment(f)$state
  if (is.null(arguments)) arguments <- single_arguments(rownames(x))
  parameters <- lapply(state$parameters, `[[`, "d")
  names <- vapply(parameters, `[[`, "", "name")
  used <- match(names, vapply(arguments, `[[`, "", "name"))
  if (anyNA(used)) {
    abort_argument("fit", sprintf("the draws have no '%s', a parameter of the program",
                                  names[is.na(used)][1L]))
  }
  outputs <- stan_outputs(state$model$program)
  if (length(outputs) == 0L) {
    abort_argument("f", "the program has no transformed parameters or generated quantities")
  }
  u <- vapply(seq_len(ncol(x)), function(j) {
    given <- lapply(arguments[used], function(a) x[a$index, j])
    stan_unconstrained_start(state, stats::setNames(given, names), "fit")
  }, numeric(state$dimension))
  drawn <- stan_drawn(state, c(parameters, outputs), TRUE)
  values <- drawn$values(matrix(u, state$dimension), NULL)
  rownames(values) <- drawn$names
  own <- sum(vapply(state$parameters, function(p) prod(p$size), 0))
  values[-seq_len(own), , drop = FALSE]
}

# For each unconstrained number the name of the parameter.
stan_free_names <- function(parameters) {
  unlist(lapply(parameters, function(p) {
    n <- length(p$index)
    if (n == 0L) return(character())
    if (length(p$size) == 0L) return(p$name)
    names <- stan_leaf_names(p$d, p$size)
    if (n == length(names)) {
      if (length(p$size) > 1L && length(p$spec$outer) > 0L) {
        names[st_order(p$spec$outer, p$spec$inner)] <- names
      }
      return(names)
    }
    sprintf("%s.%d", p$name, seq_len(n))
  }))
}

stan_element_names <- function(name, size) {
  if (length(size) == 0L) return(name)
  if (prod(size) == 0) return(character())
  if (length(size) == 1L) return(sprintf("%s[%d]", name, seq_len(size)))
  sprintf("%s[%s]", name, apply(arrayInd(seq_len(prod(size)), size), 1L, paste, collapse = ","))
}

stan_drawn <- function(state, declarations, all) {
  cx <- state$model$code$cx
  last <- 0
  names <- character()
  arguments <- list()
  bounds <- list()
  for (d in stan_leaves(declarations, cx, state$home)) {
    size <- stan_size(d, cx, state$home)
    n <- prod(size)
    names <- c(names, stan_leaf_names(d, size))
    arguments <- c(arguments, list(list(name = d$name, index = last + seq_len(n),
                                        dim = if (length(size) > 1L) as.integer(size),
                                        given = NULL)))
    bounds <- c(bounds, list(stan_numeric_bounds(d, n, cx, state$home)))
    last <- last + n
  }
  bounds <- do.call(rbind, c(list(matrix(0, 0L, 2L)), bounds))
  dimnames(bounds) <- list(names, c("lower", "upper"))
  list(names = names, arguments = arguments, bounds = bounds,
       values = function(u, random) stan_draw_values(state, u, random, all, length(names)))
}

# Bounds that are data; -Inf and Inf for others.
stan_numeric_bounds <- function(d, n, cx, home) {
  kind <- if (is.null(d$constraint)) "none" else d$constraint$kind
  of <- switch(kind, simplex = , column_stochastic = , row_stochastic = c(0, 1),
               unit_vector = , cholesky_factor_corr = , corr_matrix = c(-1, 1),
               positive_ordered = c(0, Inf), c(-Inf, Inf))
  if (kind == "range") {
    bound <- function(e, none) {
      if (is.null(e)) return(none)
      value <- tryCatch(as.double(eval(stan_expr(e, cx), home)), error = function(e) none)
      if (length(value) %in% c(1L, n)) value else none
    }
    return(cbind(rep_len(bound(d$constraint$lower, -Inf), n),
                 rep_len(bound(d$constraint$upper, Inf), n)))
  }
  cbind(rep(of[1L], n), rep(of[2L], n))
}

# The parameters of the vectors in columns of u, if each number is a function of one of the vector
# and of data; else NULL.
stan_parameter_draws <- function(state, u) {
  cx <- state$model$code$cx
  bound <- function(e, none, n) {
    if (is.null(e)) return(none)
    value <- tryCatch(eval(stan_expr(e, cx), state$home), error = function(e) NULL)
    if (is.numeric(value) && length(value) %in% c(1L, n)) value
  }
  parts <- lapply(state$parameters, function(p) {
    n <- length(p$index)
    if (!p$spec$kind %in% c("none", "range") || !is.null(p$whole)) return(NULL)
    x <- u[p$index[as.vector(st_arrange(seq_len(n), p$spec$outer, p$spec$inner))], , drop = FALSE]
    if (p$spec$kind == "none" || n == 0L) return(x)
    lower <- bound(p$d$constraint$lower, -Inf, n)
    upper <- bound(p$d$constraint$upper, Inf, n)
    if (!is.null(lower) && !is.null(upper)) st_range(x, as.vector(lower), as.vector(upper))[[1L]]
  })
  if (!any(vapply(parts, is.null, NA))) do.call(rbind, parts)
}

# The numbers of draws in columns, for unconstrained vectors in columns.
stan_draw_values <- function(state, u, random, all, rows) {
  parameters <- stan_parameter_draws(state, u)
  code <- state$model$code
  if (all && length(code$plain_transformed) + length(code$outputs) == 0L) all <- FALSE
  if (!all && !is.null(parameters)) return(parameters)
  f <- stan_output_function(state, all)
  if (all && !is.null(random)) {
    ensure_generator()
    old <- random_state()
    on.exit(assign(".Random.seed", old, envir = globalenv()))
    assign(".Random.seed", parallel::nextRNGSubStream(random), envir = globalenv())
  }
  rejected <- 0L
  first <- NULL
  together <- if (all) stan_together(state, u)
  values <- if (is.null(together$rest)) stan_whole_draws(state, u, parameters, together$values)
  left <- if (is.null(values)) seq_len(ncol(u)) else which(is.na(colSums(values)))
  output <- function(j) {
    known <- together$values[, j]
    if (is.null(together$rest) || anyNA(known)) f(u[, j]) else together$rest(u[, j], known)
  }
  if (is.null(values)) values <- matrix(0, rows, ncol(u))
  # Errors are rejections, as in Stan: the other draws are not lost.
  values[, left] <- stan_caught(vapply(left, function(j) {
    tryCatch(as.double(unlist(output(j), use.names = FALSE)), error = function(e) {
      if (inherits(e, "cl_stan_fatal")) stop(e)
      rejected <<- rejected + 1L
      if (is.null(first)) {
        first <<- stan_reason(e)
      }
      parameters <- unlist(stan_plain_parameters(state)(u[, j]), use.names = FALSE)
      c(parameters, rep(NaN, rows - length(parameters)))
    })
  }, numeric(rows)), state$model)
  if (rejected > 0L) {
    statcl_warning("stan", sprintf(paste("the program rejects %s after sampling: their generated",
                                         "quantities and transformed parameters are NaN (%s)"),
                                   count_of(rejected, "draw"), first))
  }
  values
}

# The values of draws, of which the compiled ones are known; NaN in draws that R has to compute.
stan_whole_draws <- function(state, u, parameters, known) {
  if (is.null(known)) return(NULL)
  if (is.null(parameters)) {
    f <- stan_plain_parameters(state)
    parameters <- apply(u, 2L, function(u) as.double(unlist(f(u), use.names = FALSE)))
  }
  end <- nrow(known)
  known[, !known[end, ] %in% 0] <- NaN
  rbind(parameters, known[-end, , drop = FALSE])
}
