# Checked Stan programs as R code. The reader (src/stan) gives trees with the type of each
# expression; here an expression becomes an R call and a block a list of calls, in one of two forms:
# `traced`, to be recorded by cl_gradient(), and plain, for transformed data and outputs of draws.
#
# Values: a number; a plain vector (vector, row_vector, array of numbers); else an array whose first
# dimensions are those of the Stan array. Integers are doubles. Functions of the library have the
# prefix "s." (R/stan-library.R), those of the program "u."; names that begin with a dot are ours.
# A context `cx` has `traced`, `functions` (those of the program), `ids` (an environment that counts
# names), `lp` (whether .target belongs to the function around), `inside` (in a function), `loop`.

stan_rank <- function(type) {
  type$depth + switch(type$base, vector = , row_vector = , complex_vector = ,
                      complex_row_vector = 1L, matrix = , complex_matrix = 2L, 0L)
}

is_scalar_type <- function(type) stan_rank(type) == 0L && type$base != "tuple"

is_int_type <- function(type) type$base == "int" && type$depth == 0L

# An error about the program, with its line.
stan_abort <- function(message, line = NA, ..., call = NULL) {
  text <- if (is.na(line)) message else sprintf("line %d: %s", as.integer(line), message)
  statcl_abort("stan", text, line = line, ..., call = call)
}

# ---- expressions ---------------------------------------------------------------------------------

stan_expr <- function(e, cx) {
  if (is_complex_code(e)) return(stan_complex_code(e, cx))
  switch(e$kind,
    num = as.double(e$value),
    str = e$value,
    var = as.name(e$name),
    call = stan_call(e, cx),
    op = stan_operator(e, cx),
    chain = stan_chain(e, cx),
    code = e$code,
    cond = stan_choice(e, cx),
    index = stan_index_code(e, cx),
    array = , rowvec = stan_array_code(e, cx),
    tuple = as.call(c(list(as.name("list")), lapply(e$args, stan_expr, cx))),
    tuple_get = call("[[", stan_expr(e$base, cx), as.double(e$i)),
    stan_abort(sprintf("%s values are not available", e$kind), e$line))
}

stan_exprs <- function(args, cx) lapply(args, stan_expr, cx)

stan_array_code <- function(e, cx) {
  scalar <- all(vapply(e$args, function(a) is_scalar_type(a$type), NA))
  f <- if (e$type$base == "tuple") if (e$type$depth == 1L) "list" else "stan_stack_tuples"
    else if (scalar) "c" else "stan_stack"
  as.call(c(list(as.name(f)), stan_exprs(e$args, cx)))
}

# A condition as `if` takes it; NaN counts as false.
stan_test <- function(e, cx) {
  code <- stan_expr(e, cx)
  code <- if (is.call(code) && identical(code[[1L]], quote(`+`)) && identical(code[[3L]], 0)) {
    code[[2L]] # a comparison as a number
  } else {
    call("!=", code, 0)
  }
  while (is.call(code) && identical(code[[1L]], quote(`(`))) code <- code[[2L]]
  code
}

stan_if_test <- function(e, cx) call("isTRUE", stan_test(e, cx))

stan_choice <- function(e, cx) {
  if (length(e$args) > 3L) return(stan_choices(e, cx))
  test <- stan_test(e$args[[1L]], cx)
  yes <- stan_expr(e$args[[2L]], cx)
  no <- stan_expr(e$args[[3L]], cx)
  if (!cx$traced) return(call("(", call("if", call("isTRUE", test), yes, no)))
  call("stan_either", test, yes, no)
}

# Many choices, test ? value : test ? value : ...: in one call, as R's own would be nested too
# deeply.
stan_choices <- function(e, cx) {
  tests <- seq(1L, length(e$args) - 1L, by = 2L)
  code <- e$args
  code[tests] <- lapply(code[tests], stan_test, cx)
  code[-tests] <- stan_exprs(code[-tests], cx)
  as.call(c(list(quote(stan_chosen)), code))
}

# Many binary operations from left to right: each result in a variable, for the same reason.
stan_chain <- function(e, cx) {
  cx$ids$last <- cx$ids$last + 1L
  so_far <- as.name(sprintf(".chain_%d", cx$ids$last))
  first <- e$args[[1L]]
  code <- list(call("<-", so_far, stan_expr(first, cx)))
  type <- first$type
  for (k in seq_along(e$ops)) {
    left <- list(kind = "code", code = so_far, type = type)
    step <- list(kind = "op", op = e$ops[k], args = list(left, e$args[[k + 1L]]), line = e$line)
    code[[k + 1L]] <- call("<-", so_far, stan_operator(step, cx))
    type <- e$types[[k]]
  }
  stan_braces(c(code, list(so_far)))
}

stan_op_names <- c(`==` = "==", `!=` = "!=", `<` = "<", `<=` = "<=", `>` = ">", `>=` = ">=")

stan_operator <- function(e, cx) {
  args <- stan_exprs(e$args, cx)
  types <- lapply(e$args, `[[`, "type")
  op <- e$op
  if (op == "plus") return(args[[1L]])
  if (op == "neg") return(call("(", call("-", args[[1L]])))
  if (op == "not") return(call("+", call("(", call("==", args[[1L]], 0)), 0))
  if (op == "t") return(stan_transpose(args[[1L]], types[[1L]]))
  if (op %in% stan_op_names) return(call("+", call("(", call(op, args[[1L]], args[[2L]])), 0))
  if (op %in% c("&&", "||")) {
    tests <- lapply(e$args, stan_test, cx)
    return(call("+", call("(", call(if (cx$traced) paste0("stan_", c(`&&` = "and", `||` = "or")[op])
                                    else op, tests[[1L]], tests[[2L]])), 0))
  }
  stan_arithmetic(op, args, types, e$line)
}

stan_transpose <- function(x, type) if (stan_rank(type) == 2L) call("t", x) else x

stan_arithmetic <- function(op, args, types, line) {
  rank <- vapply(types, stan_rank, 0L)
  ints <- all(vapply(types, is_int_type, NA))
  x <- args[[1L]]
  y <- args[[2L]]
  if (op == "%/%" || op %in% c("/", "./") && ints) return(call("stan_quotient", x, y))
  if (op == "%") return(call("stan_modulo", x, y))
  if (op == "\\") return(call("s.mdivide_left", x, y))
  if (op == "*" && min(rank) > 0L) return(stan_product(x, y, types))
  if (op == "/" && rank[2L] == 2L && rank[1L] > 0L) return(call("s.mdivide_right", x, y))
  op <- c(`+` = "+", `-` = "-", `*` = "*", `/` = "/", `^` = "^", `.*` = "*", `./` = "/",
          `.^` = "^")[[op]]
  if (min(rank) > 0L) return(call("stan_each", as.name(op), x, y))
  value <- call("(", call(op, x, y))
  small <- function(code) is.numeric(code) && abs(code) < 1e4 # as in i + 1
  exact <- !ints || op != "*" && (small(x) || small(y))
  if (exact) value else call("stan_int32", value)
}

stan_product <- function(x, y, types) {
  kinds <- paste(types[[1L]]$base, types[[2L]]$base)
  switch(kinds,
    `row_vector vector` = call("stan_dot", x, y),
    `vector row_vector` = call("tcrossprod", x, y),
    `matrix vector` = call("as.vector", call("%*%", x, y)),
    `row_vector matrix` = call("as.vector", call("crossprod", y, x)),
    call("%*%", x, y))
}

# ---- indices -------------------------------------------------------------------------------------

# A call stan_pick(x, kept, i, j, ...): `kept` says which indices keep their dimension. Missing
# indices are NULL, at the end too.
stan_index_code <- function(e, cx) {
  base <- stan_expr(e$base, cx)
  rank <- stan_rank(e$base$type)
  kinds <- vapply(e$indices, `[[`, "", "kind")
  if (e$base$type$base == "tuple" && e$base$type$depth == 0L) {
    stan_abort("a tuple has no index", e$line)
  }
  single <- c(kinds == "single", rep(FALSE, rank - length(kinds)))
  parts <- c(lapply(e$indices, stan_index_part, cx), rep(list(NULL), rank - length(kinds)))
  if (all(single) && (!cx$traced || e$type$base == "tuple")) {
    return(as.call(c(list(as.name("[["), base), parts)))
  }
  if (all(single) && rank < 3L) {
    return(as.call(c(list(as.name(if (rank == 2L) "stan_at" else "stan_item"), base), parts)))
  }
  if (!cx$traced && identical(single, c(TRUE, FALSE)) && is.null(parts[[2L]])) {
    return(call("stan_row", base, parts[[1L]]))
  }
  as.call(c(list(as.name("stan_pick"), base, single), parts))
}

stan_index_part <- function(i, cx) {
  switch(i$kind,
    all = NULL,
    range = call("list", if (!is.null(i$lower)) stan_expr(i$lower, cx) else 1,
                 if (!is.null(i$upper)) stan_expr(i$upper, cx)),
    {
      code <- stan_expr(i$expr, cx) # too large a number is out of bounds
      if (is.call(code) && identical(code[[1L]], quote(stan_int32))) code[[2L]] else code
    })
}

# ---- calls ---------------------------------------------------------------------------------------

stan_call <- function(e, cx) {
  args <- stan_exprs(e$args, cx)
  if (isTRUE(e$user)) return(as.call(c(list(stan_user_name(e, cx)), args)))
  name <- sub("_lupdf$", "_lpdf", sub("_lupmf$", "_lpmf", e$name))
  if (name == "target") return(quote(.target))
  if (name %in% names(stan_higher_order)) {
    args[[1L]] <- stan_user_name(e$args[[1L]], cx)
    return(as.call(c(list(as.name(stan_higher_order[[name]])), args)))
  }
  types <- lapply(e$args, `[[`, "type")
  if (name %in% names(stan_operator_names)) {
    return(stan_arithmetic(stan_operator_names[[name]], args, types, e$line))
  }
  name <- stan_variant(name, types)
  if (grepl("_l?c?cdf$", name) && is.null(stan_library_row(name))) {
    row <- stan_library_row(sub("_(c?cdf)$", "_l\\1", name))
    if (!is.null(row)) {
      return(call("exp", stan_library_call(sub("_(c?cdf)$", "_l\\1", name), row, args, types)))
    }
  }
  row <- stan_library_row(name)
  if (is.null(row) && !is.null(stan_library_row(paste0("c.", name)))) {
    return(stan_complex_call(e, cx)) # real arguments of a function of complex numbers
  }
  if (is.null(row)) {
    stan_refuse(sprintf("the function '%s' is not available", name), e$position)
  }
  if (cx$traced) args <- stan_known_args(name, e, args)
  stan_library_call(name, row, args, types)
}

# Functions without derivatives; "c.": of complex matrices.
stan_without_slope <- c(
  "bessel_first_kind", "bessel_second_kind", "modified_bessel_first_kind",
  "log_modified_bessel_first_kind", "inv_inc_beta", "hypergeometric_2F1", "hypergeometric_3F2",
  "hypergeometric_pFq", "csr_extract", "csr_extract_w", "csr_extract_v", "csr_extract_u",
  "eigendecompose", "complex_schur_decompose", "c.eigenvalues", "c.eigenvectors",
  "c.eigendecompose", "c.complex_schur_decompose", "c.complex_schur_decompose_u",
  "c.complex_schur_decompose_t", "c.eigenvalues_sym", "c.eigenvectors_sym",
  "c.eigendecompose_sym", "c.singular_values", "c.svd_U", "c.svd_V", "c.svd")

# The codes of arguments, which are refused if they depend on parameters: here, or in evaluations.
stan_known_args <- function(name, e, args) {
  if (!name %in% stan_without_slope) return(args)
  depends <- function(x) {
    is.list(x) && (identical(x$kind, "var") &&
                     x$block %in% c("parameters", "transformed_parameters") ||
                     any(vapply(x, depends, NA)))
  }
  name <- sub("^c\\.", "", name)
  if (depends(e$args)) stan_refuse(stan_no_slope(name), e$position)
  lapply(args, function(a) call("stan_known_value", a, name, e$position))
}

stan_no_slope <- function(name) {
  sprintf("the function '%s' is available for data and generated quantities, not for parameters",
          name)
}

stan_known_value <- function(x, name, position) {
  if (is_traced(stan_re(x)) || is_traced(stan_im(x))) stan_refuse(stan_no_slope(name), position)
  x
}

# An error about a position of the program, which stan_pointed() shows.
stan_refuse <- function(message, position) {
  stan_known$refusal <- list(position, message)
  stop(message, call. = FALSE)
}

stan_pointed <- function(code, source) {
  stan_known$refusal <- NULL
  withCallingHandlers(code, error = function(e) {
    refusal <- stan_known$refusal
    stan_known$refusal <- NULL
    if (!is.null(refusal)) do.call(stan_refuse_at, c(source, refusal))
  })
}

stan_refuse_at <- function(code, file, include, position, message) {
  .Call(r_stan_refuse, code, file, include, position, message)
}

# Functions by element of several arguments, which have one size.
stan_by_elements <- c("fdim", "fmin", "fmax", "fmod", "hypot", "atan2", "beta", "lbeta", "lchoose",
                      "binomial_coefficient_log", "gamma_p", "gamma_q", "log_falling_factorial",
                      "log_rising_factorial", "log_modified_bessel_first_kind", "lmultiply",
                      "multiply_log", "log_diff_exp", "pow", "choose", "bessel_first_kind",
                      "bessel_second_kind", "modified_bessel_first_kind", "ldexp",
                      "modified_bessel_second_kind", "falling_factorial", "rising_factorial",
                      "fma", "inc_beta", "log_sum_exp")

# Functions that do what operators do.
stan_operator_names <- c(add = "+", subtract = "-", multiply = "*", divide = "/",
                         elt_multiply = ".*", elt_divide = "./", modulus = "%")

# The name of the R function for arguments of these types, where R's values do not show the type.
stan_variant <- function(name, types) {
  is <- function(k, ...) types[[k]]$depth == 0L && types[[k]]$base %in% c(...)
  row <- length(types) > 0L && is(1L, "row_vector")
  switch(name,
    rep_array = if (types[[1L]]$base == "tuple" && types[[1L]]$depth == 0L) "rep_array_tuple"
      else name,
    rep_matrix = if (row) "rep_matrix_rows" else name,
    to_matrix = if (row && length(types) == 1L) "to_matrix_row" else name,
    size = if (types[[1L]]$depth > 0L) "size_array" else name,
    to_array_1d = if (types[[1L]]$depth > 1L) "to_array_1d_rows" else name,
    rows = if (row) "one" else name,
    cols = if (is(1L, "vector")) "one" else name,
    rows_dot_product = , rows_dot_self = if (is(1L, "vector")) sub("rows", "columns", name)
      else name,
    columns_dot_product = , columns_dot_self = if (is(1L, "vector")) sub("columns", "rows", name)
      else name,
    append_row = if (is(1L, "vector", "real", "int") && is(2L, "vector", "real", "int"))
      "append_vector" else name,
    append_col = if (is(1L, "row_vector", "real", "int") && is(2L, "row_vector", "real", "int"))
      "append_vector" else name,
    name)
}

# Densities of several values are sums; those of numbers need none.
stan_library_call <- function(name, row, args, types) {
  symbol <- as.name(paste0("s.", name))
  several <- sum(!vapply(types, is_scalar_type, NA))
  if (row$density && several > 0L) return(as.call(c(list(as.name("stan_total"), symbol), args)))
  if (several > 1L && name %in% stan_by_elements) {
    return(as.call(c(list(as.name("stan_by_element"), symbol), args)))
  }
  as.call(c(list(symbol), args))
}

# ---- functions of the program --------------------------------------------------------------------

# The symbol of the function that a call refers to.
stan_user_name <- function(e, cx) as.name(cx$functions[[e$fun]]$symbol)

# The functions of the program, each with the symbol that stands for it.
stan_definitions <- function(definitions) {
  names <- vapply(definitions, `[[`, "", "name")
  for (k in seq_along(definitions)) {
    several <- sum(names == names[k]) > 1L
    definitions[[k]]$symbol <- paste0("u.", names[k], if (several) paste0(".", k))
  }
  definitions
}

stan_function_code <- function(f, cx) {
  cx$lp <- grepl("_(lp|jacobian)$", f$name)
  cx$inside <- TRUE
  cx$loses <- cx$traced && !cx$lp && stan_may_reject(f$body)
  cx$whole <- f$type$base %in% c("int", "tuple")
  args <- vapply(f$args, `[[`, "", "name")
  body <- stan_statements(list(f$body), cx)
  if (f$type$base == "void") body <- c(body, list(stan_return(NULL, cx)))
  if (cx$loses) body <- c(list(quote(.lost <- 0)), body)
  call("function", stan_formals(args), stan_braces(body))
}

# Arguments without defaults.
stan_formals <- function(names) {
  as.pairlist(stats::setNames(rep(list(quote(expr = )), length(names)), names))
}

stan_braces <- function(statements) as.call(c(list(as.name("{")), statements))
