# Constraints of transformed parameters and generated quantities, and the reasons for which a point
# is rejected: by the program in plain R code, which also prints what print() of the model shows.

# Code that checks the constraints of the variables that `statements` declare: traced, points that
# violate one have density zero; plain, it is an error.
stan_constraint_checks <- function(statements, cx) {
  check <- function(d, name, value) {
    depth <- as.double(d$type$depth)
    if (d$type$base == "tuple") {
      base <- if (depth > 0) quote(.tuple) else value
      parts <- unlist(lapply(seq_along(d$parts), function(k) {
        check(d$parts[[k]], sprintf("%s.%d", name, k), call("[[", base, as.double(k)))
      }))
      if (depth == 0 || length(parts) == 0L) return(parts)
      total <- Reduce(function(a, b) call("+", a, b), parts)
      return(list(call("stan_over", value, call("function", stan_formals(".tuple"), total))))
    }
    kind <- d$constraint$kind
    if (is.null(kind) || kind %in% c("none", "offset")) return(NULL)
    bound <- function(e, none) if (is.null(e)) none else stan_expr(e, cx)
    bounds <- if (kind == "range") {
      list(bound(d$constraint$lower, -Inf), bound(d$constraint$upper, Inf))
    }
    code <- if (!cx$traced) list(quote(stan_require), name, value, kind, depth)
      else if (kind == "range") list(quote(st_within), value)
      else list(quote(st_kept), value, kind, depth)
    list(as.call(c(code, bounds)))
  }
  code <- lapply(stan_declared(statements), function(d) {
    checks <- check(d, d$name, as.name(d$name))
    if (cx$traced) checks <- lapply(checks, stan_add_target, cx)
    if (length(checks) > 0L) c(list(call("<-", quote(.line), as.double(d$line))), checks)
  })
  do.call(c, c(list(list()), code))
}

# The sum of f of the tuples of an array.
stan_over <- function(x, f) {
  total <- 0
  for (k in seq_along(x)) total <- total + f(x[[k]])
  total
}

stan_require <- function(name, x, kind, depth, lower = NULL, upper = NULL) {
  size <- stan_shape(x)
  spec <- list(kind = kind, outer = utils::head(size, depth),
               inner = utils::tail(size, length(size) - depth))
  wrong <- stan_violation(x, spec, list(lower = lower, upper = upper))
  if (!is.null(wrong)) stop(sprintf("'%s' %s", name, wrong), call. = FALSE)
  0
}

# ---- values at which the density is zero ---------------------------------------------------------

# 0, or -Inf if a value violates its declared bounds.
st_within <- function(x, lower, upper) {
  inside <- 1
  if (is_traced(lower) || any(lower > -Inf)) inside <- inside * (x >= lower)
  if (is_traced(upper) || any(upper < Inf)) inside <- inside * (x <= upper)
  sum(log(inside))
}

# The same for the other constraints, of an array with `depth` dimensions.
st_kept <- function(x, kind, depth) {
  if (length(x) == 0L) return(0)
  size <- stan_shape(x)
  inner <- size[seq_along(size) > depth]
  n <- prod(size[seq_len(depth)])
  if (length(inner) < 2L) { # vectors are rows
    if (length(size) != 2L) dim(x) <- c(n, inner)
    return(log(st_satisfies(x, kind, FALSE)))
  }
  total <- 1
  for (i in seq_len(n)) {
    at <- i + n * (seq_len(prod(inner)) - 1)
    total <- total * st_satisfies(if (depth == 0) x else stan_elements(x, at, inner), kind, TRUE)
  }
  log(total)
}

# 1 or 0: whether a matrix satisfies a constraint, or each of its rows does if `matrix` is FALSE.
# NaN does not.
st_satisfies <- function(x, kind, matrix) {
  n <- ncol(x)
  near <- function(difference) st_all(abs(difference) <= 1e-8)
  rising <- function() {
    if (n < 2L) 1 else st_all(x[, -1L, drop = FALSE] > x[, -n, drop = FALSE])
  }
  switch(kind,
    ordered = rising(),
    positive_ordered = st_all(x[, 1L] >= 0) * rising(),
    simplex = , row_stochastic = st_all(x >= 0) * near(rowSums(x) - 1),
    column_stochastic = st_all(x >= 0) * near(colSums(x) - 1),
    unit_vector = near(rowSums(x^2) - 1),
    sum_to_zero = if (matrix) near(rowSums(x)) * near(colSums(x)) else near(rowSums(x)),
    cholesky_factor_corr = st_is_lower(x) * near(rowSums(x^2) - 1),
    cholesky_factor_cov = st_is_lower(x),
    corr_matrix = near(diag(x) - 1) * st_is_positive_definite(x),
    cov_matrix = st_is_positive_definite(x))
}

st_all <- function(ok) if (is_traced(ok)) sum(ok) == length(ok) else isTRUE(all(ok)) + 0

# Lower triangular with a positive diagonal.
st_is_lower <- function(x) {
  m <- nrow(x)
  k <- seq_len(min(dim(x)))
  above <- which(row(matrix(0, m, ncol(x))) < col(matrix(0, m, ncol(x))))
  positive <- st_all(x[k + m * (k - 1)] > 0)
  if (length(above) == 0L) positive else positive * st_all(x[above] == 0)
}

st_is_symmetric <- function(x) {
  if (is_traced(x) && known_symmetric(x)) 1 else st_all(abs(x - t(x)) <= 1e-8)
}

st_is_positive_definite <- function(x) {
  if (!is_traced(x)) return(is_positive_definite(x) + 0)
  st_is_symmetric(x) * (abs(sum(log(diag(chol(x))))) < Inf)
}

# The result of a function, NaN where a rejection's condition holds: so the density is NaN there. An
# integer stays one: then the program is recorded again in each evaluation.
stan_unless <- function(test, reject, result) {
  if (is_traced(test)) {
    value <- result()
    return(if (any_traced_part(value)) stan_lost_where(test, value) else
      if (test != 0) reject() else value)
  }
  if (isTRUE(test != 0)) reject() else result()
}

# The value of a function that may have rejected, or the target after its call; and such a value
# with integers in it.
stan_lost_if <- function(lost, value) {
  if (is_traced(lost)) stan_lost_where(lost, value) else value
}

stan_lost_whole <- function(lost, value) {
  if (is_traced(lost)) stan_unless(lost, stan_reject, function() value) else value
}

stan_or_lost <- function(lost, other) if (is.null(other)) lost else stan_or(lost, other)

any_traced_part <- function(x) {
  if (is.list(x) && !is_traced(x)) any(vapply(x, any_traced_part, NA)) else is_traced(x)
}

stan_lost_where <- function(test, x) {
  if (is_stan_complex(x)) return(stan_both(x, function(x) stan_lost_where(test, x)))
  if (is.list(x) && !is_traced(x)) return(lapply(x, stan_lost_where, test = test))
  x + trace_apply("ifelse", test, NaN, 0)
}

# ---- reasons -------------------------------------------------------------------------------------

# The log density as a plain function of the parameters, which stops where the program rejects them.
stan_plain_density <- function(state) {
  if (!is.null(state$plain_density)) return(state$plain_density)
  code <- state$model$code
  model <- stan_statements(state$model$program$model, code$cx)
  define <- stan_inner_functions(code, code$plain_functions)
  whole <- Filter(Negate(is.null), lapply(state$parameters, `[[`, "whole"))
  body <- stan_braces(c(list(quote(.target <- 0), quote(.jacobian <- 0)), define, whole,
                        code$plain_transformed, model, list(quote(.target))))
  place <- stan_functions_in(code$cx$ids$lane_functions$plain, state$plain)
  names <- vapply(state$parameters, `[[`, "", "name")
  state$plain_density <- as.function(c(stan_formals(names), stan_watched(body)), envir = place)
  state$plain_density
}

# Why the program rejects these parameters, or NULL; `show`: print() prints.
stan_why <- function(state, point, show = FALSE) {
  stan_known$silent <- !show
  on.exit(stan_known$silent <- FALSE)
  tryCatch({
    suppressWarnings(do.call(stan_plain_density(state), point))
    NULL
  }, error = stan_reason)
}

# An error of the program, with its line.
stan_reason <- function(e) {
  sprintf("line %d: %s", as.integer(stan_known$line),
          stan_message(conditionMessage(e), conditionCall(e)))
}

# The constraint that parameters on their own scale violate, or NULL.
stan_outside_constraint <- function(state, point) {
  frame <- new.env(parent = state$plain)
  for (p in state$parameters) {
    if (p$spec$kind != "none") {
      wrong <- stan_violation(point[[p$name]], p$spec,
                              stan_bounds(p$d, state$model$code$cx, frame))
      if (!is.null(wrong)) return(sprintf("line %d: '%s' %s", p$d$line, p$name, wrong))
    }
    assign(p$name, point[[p$name]], envir = frame)
    eval(p$whole, frame)
  }
}

# The value of the log density, with attribute "rejected" if the program rejects the parameters.
# print() in the model prints here.
stan_judged <- function(state, point, value) {
  if (!state$model$prints && is.finite(value)) return(value)
  attr(value, "rejected") <- stan_why(state, point(), state$model$prints)
  value
}

# Lines of print() statements that compiled evaluations leave out.
stan_print_lines <- function(program) {
  lines <- integer()
  walk <- function(x) {
    if (!is.list(x)) return()
    if (identical(x$kind, "print")) lines <<- c(lines, x$line)
    if (is.null(x$kind) || x$kind %in% stan_holders) lapply(x, walk)
  }
  walk(unname(program[c("functions", "model")]))
  lines
}

stan_say_silent <- function(lines) {
  if (length(lines) > 0L) {
    stan_tell(sprintf(paste("line %d: print() in the model, and in functions that it calls, prints",
                            "when the density is called, not while it is sampled or optimised"),
                      lines[1L]))
  }
}

# ---- messages ------------------------------------------------------------------------------------

stan_text <- function(...) {
  parts <- lapply(list(...), function(x) {
    if (is_traced(x)) return("<value>")
    if (is.character(x)) return(x)
    if (is_stan_complex(x)) {
      if (is_traced(stan_re(x)) || is_traced(stan_im(x))) return("<value>")
      text <- sprintf("(%s,%s)", format(stan_re(x), trim = TRUE), format(stan_im(x), trim = TRUE))
      return(if (length(text) == 1L) text else paste0("[", paste(text, collapse = ","), "]"))
    }
    if (is.list(x)) return(sprintf("(%s)", paste(vapply(x, stan_text, ""), collapse = ",")))
    if (length(x) == 1L && is.null(dim(x))) return(format(x))
    text <- format_each(as.vector(x), 6L)
    for (k in rev(dim(x))) {
      lines <- matrix(text, ncol = k)
      text <- apply(lines, 1L, function(line) sprintf("[%s]", paste(line, collapse = ",")))
    }
    if (is.null(dim(x))) sprintf("[%s]", paste(text, collapse = ",")) else text
  })
  paste(unlist(parts), collapse = "")
}

stan_show <- function(...) if (!isTRUE(stan_known$silent)) cat(stan_text(...), "\n", sep = "")

# Stops an evaluation: the point has density zero.
stan_reject <- function(...) {
  stop(structure(list(message = paste("reject:", stan_text(...)), call = NULL),
                 class = c("cl_stan_reject", "error", "condition")))
}

stan_fatal <- function(...) {
  stop(structure(list(message = paste("fatal_error:", stan_text(...)), call = NULL),
                 class = c("cl_stan_fatal", "error", "condition")))
}
