# Expressions of a loop of a Stan program for all iterations at once (R/stan-lanes.R).

# Whether an expression differs between lanes.
lane_depends <- function(e, lx) {
  any(.Call(r_stan_names, e, "var") %in% c(lx$var, lx$locals, names(lx$written))) ||
    any(endsWith(.Call(r_stan_names, e, "call"), "_rng"))
}

# Whether a condition depends on data alone.
lane_known <- function(e, lx) {
  if (!is.list(e)) return(TRUE)
  if (identical(e$kind, "var")) {
    return(e$block %in% c("data", "transformed data", "transformed_data", "loop") ||
             e$type$base == "int")
  }
  parts <- if (is.null(names(e))) e else e[setdiff(names(e), c("kind", "type", "line"))]
  all(vapply(parts, lane_known, NA, lx))
}

lane_expr <- function(e, lx) {
  if (!lane_depends(e, lx)) return(stan_expr(e, lx$cx))
  if (stan_rank(e$type) > 0L && !is_lane_row(e) || is_complex_type(e$type)) no_lanes()
  switch(e$kind,
    var = as.name(e$name),
    op = lane_operator(e, lx),
    cond = lane_choice(e, lx),
    index = lane_index(e, lx),
    call = lane_call(e, lx),
    no_lanes())
}

# Vectors that may be rows of a matrix.
is_lane_row <- function(e) stan_rank(e$type) == 1L && e$type$base != "tuple"

# A row operand: a vector that is the same in all lanes is repeated.
lane_row <- function(e, lx) {
  code <- lane_expr(e, lx)
  if (stan_rank(e$type) == 1L && !lane_depends(e, lx)) {
    return(call("stan_lane_repeat", code, lane_count(lx)))
  }
  code
}

lane_operator <- function(e, lx) {
  op <- e$op
  rank <- vapply(e$args, function(a) stan_rank(a$type), 0L)
  if (max(rank) == 1L) return(lane_row_operator(e, op, rank, lx))
  if (max(rank) > 1L) no_lanes()
  if (op %in% c("&&", "||") && lane_known(e$args[[1L]], lx) && lane_may_fail(e$args[[2L]])) {
    return(lane_short_circuit(e, lx))
  }
  args <- lapply(e$args, lane_expr, lx)
  if (op %in% c("&&", "||")) {
    a <- call("(", call("!=", args[[1L]], 0))
    b <- call("(", call("!=", args[[2L]], 0))
    if (op == "&&") return(call("*", a, b))
    return(call("pmax", call("+", a, 0), call("+", b, 0)))
  }
  if (op == "plus") return(args[[1L]])
  if (op == "neg") return(call("(", call("-", args[[1L]])))
  if (op == "not") return(call("+", call("(", call("==", args[[1L]], 0)), 0))
  if (op %in% stan_op_names) return(call("+", call("(", call(op, args[[1L]], args[[2L]])), 0))
  if (op == "t") no_lanes()
  stan_arithmetic(op, args, lapply(e$args, `[[`, "type"), e$line)
}

lane_row_operator <- function(e, op, rank, lx) {
  bases <- vapply(e$args, function(a) a$type$base, "")
  if (op == "*" && min(rank) == 1L) {
    if (!identical(bases, c("row_vector", "vector"))) no_lanes()
    return(lane_dot(e$args, lx))
  }
  args <- lapply(e$args, lane_row, lx)
  if (op == "neg") return(call("(", call("-", args[[1L]])))
  if (op %in% c("t", "plus")) return(args[[1L]])
  op <- c(`+` = "+", `-` = "-", `*` = "*", `/` = "/", `.*` = "*", `./` = "/", `^` = "^",
          `.^` = "^")[op]
  if (is.na(op)) no_lanes()
  call("(", call(op[[1L]], args[[1L]], args[[2L]]))
}

lane_dot <- function(args, lx) {
  same <- !vapply(args, lane_depends, NA, lx)
  if (any(same)) {
    return(call("as.vector", call("%*%", lane_expr(args[[which(!same)]], lx),
                                  lane_expr(args[[which(same)]], lx))))
  }
  call("rowSums", call("*", lane_expr(args[[1L]], lx), lane_expr(args[[2L]], lx)))
}

# Whether an expression can fail in lanes that do not need it: an index out of bounds, an integer
# divided by zero, an error in a function of the program.
lane_may_fail <- function(e) {
  if (!is.list(e)) return(FALSE)
  if (identical(e$kind, "index") || isTRUE(e$user)) return(TRUE)
  if (identical(e$kind, "op") && e$op %in% c("/", "%", "%/%") && is_int_type(e$type)) return(TRUE)
  any(vapply(e, lane_may_fail, NA))
}

# a && b and a || b, where b is computed only in the lanes that need it.
lane_short_circuit <- function(e, lx) {
  lane_count(lx)
  names <- c(lx$var, Filter(function(v) lane_mentions(e$args[[2L]], v), lx$locals))
  second <- call("function", stan_formals(names), lane_expr(e$args[[2L]], lx))
  as.call(c(list(quote(stan_lane_logic), e$op == "||", lane_expr(e$args[[1L]], lx), second),
            lapply(names, as.name)))
}

# segment(x, i, n): vectors of one size in each group of lanes. The sizes are found before the loop,
# from data.
lane_segment <- function(e, lx) {
  args <- e$args
  usual <- !lane_depends(args[[1L]], lx) && lane_of_data(args[[3L]], lx)
  if (is.null(lx$groups) || !usual) no_lanes()
  size <- lane_full(lane_expr(args[[3L]], lx), lx)
  lx$groups <- unique(c(lx$groups, list(size)))
  call("stan_lane_segment", stan_expr(args[[1L]], lx$cx),
       lane_full(lane_expr(args[[2L]], lx), lx), size)
}

# Whether an expression is made of data and the loop's variable.
lane_of_data <- function(e, lx) {
  if (!is.list(e)) return(TRUE)
  if (identical(e$kind, "call")) return(FALSE)
  if (identical(e$kind, "var") && e$name != lx$var) {
    if (e$name %in% c(lx$locals, lx$sums, names(lx$written))) return(FALSE)
    return(e$block %in% c("data", "transformed data", "transformed_data"))
  }
  parts <- if (is.null(names(e))) e else e[setdiff(names(e), c("kind", "type", "line"))]
  all(vapply(parts, lane_of_data, NA, lx))
}

# The code of a size that is the same in all lanes, such as rows(x) of a vector x of the body.
lane_size <- function(e, lx) {
  if (!lane_depends(e, lx)) return(stan_expr(e, lx$cx))
  same <- function(code) {
    if (is.name(code) && as.character(code) %in% c(lx$var, lx$locals, names(lx$written))) {
      no_lanes()
    }
    if (!is.call(code)) return(code)
    if (length(code) == 2L && is.name(code[[2L]]) && as.character(code[[2L]]) %in% lx$rows &&
          as.character(code[[1L]])[1L] %in% c("s.rows", "s.size", "s.num_elements")) {
      return(call("ncol", code[[2L]]))
    }
    as.call(lapply(code, same))
  }
  same(stan_expr(e, lx$cx))
}

# The code of the number of lanes. In a function that works for any number of them there is none.
lane_count <- function(lx) {
  if (!nzchar(lx$var)) no_lanes()
  call("length", as.name(lx$var))
}

# Both values are computed in all lanes, so that they must be valid in all.
lane_choice <- function(e, lx) {
  if (length(e$args) > 3L) no_lanes()
  if (any(vapply(e$args[2:3], lane_may_fail, NA))) no_lanes()
  args <- lapply(e$args, lane_expr, lx)
  call("cl_ifelse", call("(", call("!=", args[[1L]], 0)), args[[2L]], args[[3L]])
}

lane_index <- function(e, lx) {
  flat <- lane_flat_index(e)
  base <- flat$base
  if (base$kind != "var" && lane_depends(base, lx)) no_lanes()
  rank <- stan_rank(base$type)
  kinds <- vapply(flat$indices, `[[`, "", "kind")
  code <- stan_expr(base, lx$cx)
  if (is_scalar_type(e$type)) {
    return(as.call(c(list(as.name("stan_lane_pick"), code), lane_indices(flat, lx))))
  }
  if (base$kind == "var" && base$name %in% lx$rows) no_lanes()
  # x[n] or x[n, ] of two dimensions
  row <- rank == 2L && kinds[1L] == "single" && all(kinds[-1L] == "all") ||
    rank == 2L && length(kinds) == 1L && kinds[1L] == "single"
  if (!row) no_lanes()
  call("stan_pick", code, c(FALSE, FALSE), lane_full(lane_expr(flat$indices[[1L]]$expr, lx), lx),
       NULL)
}

lane_full <- function(code, lx) call("rep_len", code, lane_count(lx))

lane_call <- function(e, lx) {
  name <- sub("_lupdf$", "_lpdf", sub("_lupmf$", "_lpmf", e$name))
  scalars <- all(vapply(e$args, function(a) is_scalar_type(a$type), NA))
  if (isTRUE(e$user)) {
    if (grepl("_(rng|lp|jacobian)$", name)) no_lanes()
    if (!scalars || !lane_safe_function(e, lx$cx)) return(lane_function_call(e, lx))
    return(as.call(c(list(stan_user_name(e, lx$cx)), lapply(e$args, lane_expr, lx))))
  }
  row <- stan_library_row(name)
  if (is.null(row)) no_lanes() # the plain loop names it
  symbol <- as.name(paste0("s.", name))
  each <- name %in% stan_elementwise || scalars && (name == "log_sum_exp" && length(e$args) == 2L ||
                                                      name == "log_mix" && length(e$args) == 3L)
  if (grepl("_rng$", name)) {
    if (!scalars || !name %in% stan_random_each || length(e$args) == 0L) no_lanes()
    args <- lapply(e$args, lane_expr, lx)
    args[[1L]] <- lane_full(args[[1L]], lx)
    return(as.call(c(list(symbol), args)))
  }
  if (row$density || each) {
    if (scalars) return(as.call(c(list(symbol), lapply(e$args, lane_expr, lx))))
    if (!all(vapply(e$args, function(a) is_scalar_type(a$type) || is_lane_row(a), NA))) no_lanes()
    code <- as.call(c(list(symbol), lapply(e$args, lane_row, lx)))
    return(if (row$density) call("rowSums", code) else code)
  }
  if (name == "segment") return(lane_segment(e, lx))
  if (!all(vapply(e$args, is_lane_row, NA))) {
    if (name %in% c("categorical_lpmf", "categorical_logit_lpmf") &&
          is_scalar_type(e$args[[1L]]$type) && is_lane_row(e$args[[2L]])) {
      return(call(paste0("st_lane_", name), lane_full(lane_expr(e$args[[1L]], lx), lx),
                  lane_row(e$args[[2L]], lx)))
    }
    no_lanes()
  }
  if (name == "dot_product") return(lane_dot(e$args, lx))
  if (name %in% c("append_row", "append_col")) {
    return(as.call(c(list(as.name("cbind")), lapply(e$args, lane_row, lx))))
  }
  by_row <- c(sum = "rowSums", mean = "rowMeans", log_sum_exp = "st_lane_log_sum_exp",
              dot_self = "st_lane_dot_self", softmax = "st_lane_softmax",
              log_softmax = "st_lane_log_softmax", cumulative_sum = "st_lane_cumulative_sum")
  if (!name %in% names(by_row) || length(e$args) != 1L) no_lanes()
  call(by_row[[name]], lane_row(e$args[[1L]], lx))
}

# A call of a function of the program whose arguments differ between lanes. It becomes a call of a
# copy of the function for such arguments, whose first argument is the lanes.
lane_function_call <- function(e, lx) {
  lanes <- vapply(e$args, lane_depends, NA, lx)
  rank <- vapply(e$args, function(a) stan_rank(a$type), 0L)
  if (any(lanes & rank > 1L)) no_lanes()
  f <- lx$cx$functions[[e$fun]]
  symbol <- paste0("l.", f$symbol, ".", paste(as.integer(lanes), collapse = ""))
  form <- if (lx$cx$traced) "traced" else "plain"
  if (is.null(lx$cx$ids$lane_functions[[form]][[symbol]])) {
    lx$cx$ids$lane_functions[[form]][[symbol]] <- lane_function_code(f, lanes, rank, lx$cx)
  }
  args <- Map(function(a, lane) if (lane) lane_expr(a, lx) else stan_expr(a, lx$cx), e$args, lanes)
  as.call(c(list(as.name(symbol), as.name(lx$var)), unname(args)))
}

lane_function_code <- function(f, lanes, rank, cx) {
  names <- vapply(f$args, `[[`, "", "name")
  lx <- new.env(parent = emptyenv())
  cx$inside <- TRUE
  lx$cx <- cx
  lx$var <- ".lanes"
  lx$locals <- names[lanes]
  lx$rows <- names[lanes & rank == 1L]
  lx$sums <- character()
  lx$written <- integer()
  body <- stan_flat(f$body)
  n <- length(body)
  if (n == 0L || body[[n]]$kind != "return" || stan_rank(f$type) > 1L) no_lanes()
  if (length(setdiff(lane_assigned(body[-n]), names)) > 0L) no_lanes()
  code <- lane_statements(body[-n], lx)
  last <- if (stan_rank(f$type) == 1L) lane_row(body[[n]]$expr, lx) else
    lane_expr(body[[n]]$expr, lx)
  call("function", stan_formals(c(".lanes", names)), stan_braces(c(code, list(last))))
}

# The functions of the library that work element by element.
stan_elementwise <- c(
  "abs", "fabs", "exp", "log", "sqrt", "cos", "sin", "tan", "acos", "asin", "atan", "cosh", "sinh",
  "tanh", "acosh", "asinh", "atanh", "expm1", "log1p", "log2", "log10", "floor", "ceil", "trunc",
  "lgamma", "tgamma", "digamma", "trigamma", "round", "square", "cbrt", "exp2", "inv", "inv_sqrt",
  "inv_square", "inv_logit", "logit", "log_inv_logit", "log1m_inv_logit", "log1m", "log1p_exp",
  "log1m_exp", "inv_cloglog", "erf", "erfc", "Phi", "inv_Phi", "Phi_approx", "step", "int_step",
  "pow", "atan2", "hypot", "fmin", "fmax", "fdim", "fmod", "fma", "lbeta", "beta", "choose",
  "lchoose", "binomial_coefficient_log", "lmultiply", "multiply_log", "gamma_p", "gamma_q",
  "log_diff_exp", "to_int", "log_inv_logit_diff", "log_softplus", "inv_erfc", "lambert_w0",
  "lambert_wm1", "logical_eq", "logical_neq", "logical_lt", "logical_lte", "logical_gt",
  "logical_gte", "logical_and", "logical_or", "binary_log_loss")

# Random numbers that functions draw for each element.
stan_random_each <- c(
  "normal_rng", "cauchy_rng", "student_t_rng", "double_exponential_rng", "logistic_rng",
  "gumbel_rng", "lognormal_rng", "chi_square_rng", "inv_chi_square_rng", "exponential_rng",
  "gamma_rng", "inv_gamma_rng", "weibull_rng", "beta_rng", "uniform_rng", "bernoulli_rng",
  "bernoulli_logit_rng", "binomial_rng", "binomial_logit_rng", "beta_binomial_rng", "poisson_rng",
  "poisson_log_rng", "neg_binomial_rng", "neg_binomial_2_rng", "neg_binomial_2_log_rng")

# Whether a function of the program, of numbers, works element by element: declarations,
# assignments and one return, without choices.
lane_safe_function <- function(e, cx) {
  name <- as.character(stan_user_name(e, cx))
  f <- Find(function(f) f$symbol == name, cx$functions)
  lx <- new.env(parent = emptyenv())
  lx$cx <- cx
  lx$var <- ""
  lx$locals <- vapply(f$args, `[[`, "", "name")
  lx$rows <- lx$sums <- character()
  lx$written <- integer()
  body <- stan_flat(f$body)
  kinds <- vapply(body, `[[`, "", "kind")
  n <- length(kinds)
  if (n == 0L || kinds[n] != "return" || !all(kinds[-n] %in% c("decl", "assign"))) return(FALSE)
  base::tryCatch({
    lane_statements(body[-n], lx)
    lane_expr(body[[n]]$expr, lx)
    !lane_has_choice(body)
  }, cl_stan_no_lanes = function(e) FALSE)
}

lane_has_choice <- function(e) {
  if (!is.list(e)) return(FALSE)
  if (identical(e$kind, "cond") || identical(e$kind, "op") && e$op %in% c("&&", "||")) return(TRUE)
  any(vapply(e, lane_has_choice, NA))
}

# The sum over n lanes of a value that may be the same in all.
stan_lane_sum <- function(x, n) if (length(x) == 1L) x * n else sum(x)
