# Transformed parameters and generated quantities without random numbers, for many draws at once by
# a compiled function. Programs have one result: that of the weighted sum of the values, whose
# gradient with respect to the weights is these values.

stan_few_draws <- 20L # for which nothing is compiled
stan_many_draws <- 400L # for which it always is: R takes as long for about so many as compiling

# list(values: a column for each of the unconstrained vectors in columns of u, rest: a function of
# a vector and its column, with the value of stan_output_function()); NULL if there is nothing to
# gain, or if the statements cannot be compiled. Without `rest` the values are all but the
# parameters, and a last one that is 0 where no constraint is violated.
stan_together <- function(state, u) {
  if (ncol(u) < stan_few_draws) return(NULL)
  if (is.null(state$together)) {
    failed <- function(e) FALSE
    state$together <- FALSE
    for (open in c(TRUE, FALSE)) if (isFALSE(state$together)) {
      state$together <- tryCatch(stan_compiled_outputs(state, u, open), error = failed,
                                 cl_stan_reject = failed)
    }
  }
  t <- state$together
  if (!is.list(t)) return(NULL)
  values <- matrix(0, t$n, ncol(u))
  most <- max(16, 1e6 %/% (t$n + nrow(u)))
  for (first in seq(1, ncol(u), by = most)) {
    columns <- first:min(ncol(u), first + most - 1)
    points <- rbind(u[, columns, drop = FALSE], matrix(0, t$n, length(columns)))
    values[, columns] <- run_vectors(environment(t$compiled), points)[-seq_len(nrow(u) + 1L), ]
  }
  list(values = values, rest = t$rest)
}

# list(compiled, n: the number of values, rest); NULL if so few draws gain nothing, FALSE if it
# cannot be.
stan_compiled_outputs <- function(state, u, open) {
  code <- state$model$code
  split <- stan_output_parts(state$model$program, open)
  odd <- any(vapply(split$declared, function(d) d$type$base == "tuple" || has_complex(d$type), NA))
  slow <- c("for", "foreach", "while")
  whole <- all(lengths(split$drawn) == 0L)
  gains <- whole && ncol(u) >= stan_many_draws || stan_any(split$known, function(x) {
    x$kind %in% slow || x$kind == "call" && (isTRUE(x$user) || x$name %in% names(stan_higher_order))
  })
  sizes <- lapply(split$declared, stan_size, code$cx, state$home)
  n <- sum(vapply(sizes, prod, 0))
  if (!gains) return(NULL)
  if (odd || n == 0) return(FALSE)
  names <- lapply(split$declared, function(d) as.name(d$name))
  flat <- as.call(c(list(as.name("c")), lapply(names, function(x) call("as.vector", x)),
                    if (whole) list(quote(.target))))
  checks <- if (whole) {
    c(list(quote(.target <- 0)), stan_constraint_checks(split$declared, code$traced_cx))
  }
  sum <- call("sum", call("*", quote(.w), flat))
  f <- stan_block_function(state, split$known, stan_braces(c(checks, list(sum))), TRUE)
  g <- cl_gradient(f)
  size <- n + whole
  stan_quietly(g(.u = u[, 1L], .w = numeric(size)))
  plain <- stan_block_function(state, split$known, stan_values_of(split$declared), FALSE)
  checked <- unique(c(1L, ncol(u)))
  points <- rbind(u[, checked, drop = FALSE], matrix(0, size, length(checked)))
  found <- run_vectors(environment(g), points)[nrow(u) + 1L + seq_len(n), , drop = FALSE]
  values <- function(j) as.double(unlist(plain(u[, j], NULL)))
  wanted <- stan_quietly(vapply(checked, values, numeric(n)))
  if (!alike(found, wanted)) return(FALSE)
  list(compiled = g, n = size, rest = if (!whole) stan_rest_function(state, split, sizes))
}

# function(.u, .w) of statements, in either form, with the value of `result`.
stan_block_function <- function(state, statements, result, traced, first = list()) {
  code <- state$model$code
  cx <- if (traced) code$traced_cx else code$cx
  if (traced) first <- c(stan_inner_functions(code), first)
  body <- c(list(quote(.target <- 0), quote(.jacobian <- 0)),
            stan_parameter_code(state$parameters, cx), first, stan_statements(statements, cx),
            list(result))
  form <- if (traced) "traced" else "plain"
  place <- stan_functions_in(cx$ids$lane_functions[[form]], state[[form]])
  as.function(c(alist(.u = , .w = ), stan_watched(stan_braces(body))), envir = place)
}

# The statements that are left and the checks, after those whose values are the numbers .w.
stan_rest_function <- function(state, split, sizes) {
  end <- 0
  given <- Map(function(d, size) {
    at <- end + seq_len(prod(size))
    end <<- end + length(at)
    part <- if (length(at) == 0L) quote(numeric()) else
      call("[", quote(.w), call(":", at[1L], end))
    if (length(size) > 1L) part <- call("array", part, size)
    call("<-", as.name(d$name), part)
  }, split$declared, sizes)
  declared <- c(lapply(state$parameters, `[[`, "d"), stan_outputs(state$model$program))
  program <- state$model$program
  cx <- state$model$code$cx
  first <- c(given, stan_statements(split$drawn[[1L]], cx),
             stan_constraint_checks(program$transformed_parameters, cx))
  last <- stan_braces(c(stan_constraint_checks(program$generated_quantities, cx),
                        list(stan_values_of(declared))))
  stan_block_function(state, split$drawn[[2L]], last, FALSE, first)
}
