# Statements of Stan programs as R code (R/stan-compile.R). Each that can fail is preceded by an
# assignment of its line to `.line`, which errors name.

stan_statements <- function(statements, cx) {
  code <- list()
  for (k in seq_along(statements)) {
    s <- statements[[k]]
    if (cx$traced && s$kind == "if" && is.null(cx$loop) && isTRUE(cx$inside)) {
      early <- stan_early_return(s, statements[-seq_len(k)], cx)
      if (!is.null(early)) return(c(code, early))
    }
    code <- c(code, stan_statement(s, cx))
  }
  code
}

stan_statement <- function(s, cx) {
  code <- switch(s$kind,
    block = return(stan_statements(s$body, cx)),
    profile = return(stan_statements(stan_body(s$body), cx)),
    decl = stan_declaration(s, cx),
    assign = stan_assignment(s, cx),
    target = list(stan_add_target(stan_sum_of(s$expr, cx), cx)),
    jacobian = list(stan_add_jacobian(stan_sum_of(s$expr, cx), cx)),
    sample = stan_sampling(s, cx),
    `for` = stan_for(s, cx),
    foreach = stan_foreach(s, cx),
    `while` = list(call("while", stan_if_test(s$test, cx), stan_loop_body(s$body, cx))),
    `if` = stan_if(s, cx),
    else_if = stan_else_if(s, cx),
    `break` = list(quote(break)),
    `continue` = list(quote(next)),
    return = list(call("return", stan_return(s$expr, cx))),
    print = stan_print(s, cx),
    reject = list(stan_rejection(s, cx)),
    fatal_error = list(as.call(c(list(as.name("stan_fatal")), stan_exprs(s$args, cx)))),
    call = list(stan_call_statement(s, cx)),
    stan_abort(sprintf("the statement '%s' is not available", s$kind), s$line))
  if (length(code) == 0L || s$kind %in% c("break", "continue")) return(code)
  c(list(call("<-", quote(.line), as.double(s$line))), code)
}

# A body is one statement or a list of them.
stan_body <- function(body) if (is.null(body$kind)) body else list(body)

stan_loop_body <- function(body, cx) {
  cx$loop <- TRUE
  stan_braces(stan_statements(stan_body(body), cx))
}

stan_sum_of <- function(e, cx) {
  code <- stan_expr(e, cx)
  if (is_scalar_type(e$type)) code else call("sum", code)
}

# In functions *_lp() the target is that of the function around.
stan_add_target <- function(value, cx) {
  call(if (isTRUE(cx$lp)) "<<-" else "<-", quote(.target), call("+", quote(.target), value))
}

stan_add_jacobian <- function(value, cx) {
  call(if (isTRUE(cx$lp)) "<<-" else "<-", quote(.jacobian), call("+", quote(.jacobian), value))
}

# ---- declarations and assignments ----------------------------------------------------------------

stan_declaration <- function(s, cx) {
  name <- as.name(s$name)
  if (!is.null(s$init)) {
    value <- stan_expr(s$init, cx)
    if (has_complex(s$type)) value <- stan_typed_code(value, s$type)
    if (s$type$base == "tuple") {
      value <- call("stan_fitting", value, stan_default(s, cx))
    } else if (length(s$sizes) > 0L) {
      value <- as.call(c(list(as.name("stan_sized"), value), stan_exprs(s$sizes, cx)))
    }
    return(list(call("<-", name, value)))
  }
  list(call("<-", name, stan_default(s, cx)))
}

stan_typed_code <- function(value, type) call("stan_typed", value, call("quote", type))

stan_assignment <- function(s, cx) {
  if (s$op != "=") {
    op <- sub("=$", "", s$op)
    s$rhs <- list(kind = "op", op = op, args = list(s$lhs, s$rhs), line = s$line,
                  type = s$lhs$type)
  }
  if (s$lhs$kind == "tuple") {
    return(c(list(call("<-", quote(.tuple), stan_expr(s$rhs, cx))),
             stan_unpack(s$lhs, quote(.tuple), cx)))
  }
  list(stan_assign_to(s$lhs, stan_expr(s$rhs, cx), cx))
}

# Assignments of the parts of a tuple, which may be tuples, to those of a left side.
stan_unpack <- function(lhs, value, cx) {
  do.call(c, lapply(seq_along(lhs$args), function(k) {
    part <- call("[[", value, as.double(k))
    to <- lhs$args[[k]]
    if (to$kind == "tuple") stan_unpack(to, part, cx) else list(stan_assign_to(to, part, cx))
  }))
}

stan_assign_to <- function(lhs, value, cx) {
  if (lhs$kind == "var") {
    name <- as.name(lhs$name)
    if (!is.null(lhs$type) && has_complex(lhs$type)) value <- stan_typed_code(value, lhs$type)
    if (!is.null(lhs$type) && stan_rank(lhs$type) > 0L) value <- call("stan_replaced", name, value)
    return(call("<-", name, value))
  }
  if (lhs$kind == "tuple_get") {
    return(stan_assign_to(lhs$base, call("stan_put_part", stan_expr(lhs$base, cx),
                                         as.double(lhs$i), value), cx))
  }
  # x[i][j] is x[i, j] if i is single
  while (lhs$base$kind == "index") {
    inner <- lhs$base
    if (!all(vapply(inner$indices, `[[`, "", "kind") == "single")) {
      return(stan_assign_to(inner, stan_put_code(stan_expr(inner, cx), lhs, value, cx), cx))
    }
    lhs$indices <- c(inner$indices, lhs$indices)
    lhs$base <- inner$base
  }
  rank <- stan_rank(lhs$base$type)
  single <- vapply(lhs$indices, `[[`, "", "kind") == "single"
  if (is_complex_type(lhs$base$type)) {
    name <- stan_part_name(lhs$base)
    put <- lhs
    put$base$type <- stan_real_type(lhs$base$type)
    put <- call("function", stan_formals(c(name, ".value")),
                stan_put_code(as.name(name), put, quote(.value), cx))
    return(stan_assign_to(lhs$base, call("stan_put_both", stan_expr(lhs$base, cx), value, put),
                          cx))
  }
  if (lhs$base$kind == "var" && all(single) && length(single) == rank && !cx$traced) {
    parts <- lapply(lhs$indices, stan_index_part, cx)
    target <- as.call(c(list(as.name("[["), as.name(lhs$base$name)), parts))
    put <- call("<-", target, value)
    if (rank > 1L) return(put) # R checks that
    name <- as.name(lhs$base$name)
    i <- parts[[1L]]
    return(call("{", call("if", call("||", call("<", i, 1), call(">", i, call("length", name))),
                          call("stan_outside", call("quote", name), i, call("length", name))), put))
  }
  if (lhs$base$kind == "var" && !cx$traced) {
    # Not by a function that changes x, which would copy it.
    name <- as.name(lhs$base$name)
    places <- stan_put_code(name, lhs, quote(.new), cx, "stan_put_places")
    new <- if (lhs$type$base == "tuple" && all(single)) call("list", value) else value
    return(call("{", call("<-", quote(.new), new), call("<-", quote(.at), places),
                call("<-", call("[", name, quote(.at)), quote(.new))))
  }
  put <- stan_put_code(stan_expr(lhs$base, cx), lhs, value, cx)
  if (lhs$base$kind == "var") call("<-", as.name(lhs$base$name), put) else
    stan_assign_to(lhs$base, put, cx)
}

stan_put_code <- function(base, lhs, value, cx, by = "stan_put") {
  rank <- stan_rank(lhs$base$type)
  single <- vapply(lhs$indices, `[[`, "", "kind") == "single"
  parts <- lapply(lhs$indices, stan_index_part, cx)
  extra <- rep(list(NULL), rank - length(parts))
  if (by == "stan_put" && lhs$type$base == "tuple" && all(single)) value <- call("list", value)
  as.call(c(list(as.name(by), base, value, c(single, rep(FALSE, length(extra)))), parts,
            extra))
}

# ---- sampling statements -------------------------------------------------------------------------

stan_sampling <- function(s, cx) {
  args <- c(list(s$lhs), s$args)
  density <- function(name, args, fun = s$fun) {
    e <- list(kind = "call", name = name, args = args, user = isTRUE(s$user), fun = fun,
              line = s$line, position = s$position, type = list(base = "real", depth = 0L))
    stan_call(e, cx)
  }
  value <- density(s$name, args)
  if (isTRUE(cx$drop) && !isTRUE(s$user)) {
    value <- stan_dropped(value, value, sub("_lp[dm]f$", "", s$name))
  }
  if (isTRUE(s$truncated) && !(is.null(s$lower) && is.null(s$upper))) {
    root <- sub("_lp[dm]f$", "", s$name)
    discrete <- grepl("_lpmf$", s$name)
    scalars <- all(vapply(s$args, function(a) is_scalar_type(a$type), NA))
    tail <- function(kind, at) { # of each element, for parameters that are vectors
      name <- paste0(root, kind)
      if (isTRUE(s$user)) {
        return(density(name, c(list(at), s$args), stan_user_tail(s$fun, name, cx$functions)))
      }
      if (scalars) return(density(name, c(list(at), s$args)))
      as.call(c(list(as.name(paste0("s.", root, kind))), stan_exprs(c(list(at), s$args), cx)))
    }
    less <- function(at) { # the lower bound of a count belongs to its range
      if (!discrete) return(at)
      list(kind = "op", op = "-", args = list(at, list(kind = "num", value = 1, line = s$line,
                                                       type = list(base = "int", depth = 0L))),
           line = s$line, type = at$type)
    }
    norm <- if (is.null(s$upper)) tail("_lccdf", less(s$lower))
            else if (is.null(s$lower)) tail("_lcdf", s$upper)
            else call("s.log_diff_exp", tail("_lcdf", s$upper), tail("_lcdf", less(s$lower)))
    several <- !scalars && !isTRUE(s$user) || scalars && !is_scalar_type(s$lhs$type)
    if (several) norm <- call("stan_lane_sum", norm, call("length", stan_expr(s$lhs, cx)))
    value <- call("stan_truncated", value, norm, stan_expr(s$lhs, cx),
                  if (is.null(s$lower)) -Inf else stan_expr(s$lower, cx),
                  if (is.null(s$upper)) Inf else stan_expr(s$upper, cx))
  }
  list(stan_add_target(value, cx))
}

# Which function of the program is the distribution function of this name that belongs to a density.
stan_user_tail <- function(density, name, functions) {
  types <- function(k) lapply(functions[[k]]$args[-1L], `[[`, "type")
  named <- Filter(function(k) functions[[k]]$name == name && !is.null(functions[[k]]$body),
                  seq_along(functions))
  same <- Filter(function(k) identical(types(k), types(density)), named)
  c(same, named)[[1L]]
}

# ---- loops and branches --------------------------------------------------------------------------

stan_for <- function(s, cx) {
  cx$ids$last <- cx$ids$last + 1L
  total <- sprintf(".sum_%d", cx$ids$last)
  element <- lane_element_sum(s, total)
  if (!is.null(element)) {
    loop <- stan_for(element$loop, cx)
    after <- call("if", call(">=", stan_expr(s$upper, cx), stan_expr(s$lower, cx)),
                  stan_braces(stan_assignment(element$after, cx)))
    return(c(list(call("<-", as.name(total), 0)), loop, list(after)))
  }
  lanes <- stan_lanes(s, cx)
  if (!is.null(lanes) && cx$traced) return(lanes)
  lower <- stan_expr(s$lower, cx)
  upper <- stan_expr(s$upper, cx)
  loop <- list(call("for", as.name(s$var), call("stan_count", lower, upper),
                    stan_loop_body(s$body, cx)))
  if (is.null(lanes)) return(loop)
  # A short loop of plain numbers is quicker as it is.
  list(call("if", call(">", call("-", upper, lower), 20), stan_braces(lanes), loop[[1L]]))
}

stan_foreach <- function(s, cx) {
  rank <- stan_rank(s$expr$type)
  k <- as.name(paste0(".each_", s$var))
  over <- as.name(paste0(".over_", s$var))
  flat <- rank == 1L || s$expr$type$base == "matrix" && s$expr$type$depth == 0L
  element <- if (flat) call("[[", over, k) else
    as.call(c(list(as.name("stan_pick"), over, c(TRUE, rep(FALSE, rank - 1L)), k),
              rep(list(NULL), rank - 1L)))
  whole <- over
  if (is_complex_type(s$expr$type)) {
    element <- call("stan_both", over, call("function", stan_formals(as.character(over)), element))
    whole <- call("stan_re", over)
  }
  body <- stan_loop_body(s$body, cx)
  body <- as.call(append(as.list(body), list(call("<-", as.name(s$var), element)), after = 1L))
  count <- if (flat) call("length", whole) else call("NROW", whole)
  list(call("<-", over, stan_expr(s$expr, cx)), call("for", k, call("seq_len", count), body))
}

stan_if <- function(s, cx) {
  branch <- function(body) stan_braces(stan_statements(stan_body(body), cx))
  changed <- if (cx$traced) stan_merged(s, cx)
  if (is.null(changed)) {
    return(list(as.call(c(list(as.name("if"), stan_if_test(s$test, cx), branch(s$yes)),
                          if (!is.null(s$no)) list(branch(s$no))))))
  }
  # Both branches are computed if the condition depends on parameters. The code of each stands once:
  # twice, that of nested branches would grow as 2^depth.
  cx$ids$last <- cx$ids$last + 1L
  own <- function(name) as.name(sprintf(".%s_%d", name, cx$ids$last))
  test <- own("test")
  both <- own("both")
  old <- own("old")
  cx$both <- if (is.null(cx$both)) both else call("||", cx$both, both)
  yes <- branch(s$yes)
  no <- if (!is.null(s$no)) branch(s$no)
  kept <- as.call(c(list(as.name("list")), lapply(changed, as.name)))
  names(kept) <- c("", changed)
  back <- lapply(changed, function(v) call("<-", as.name(v), call("[[", old, v)))
  merge <- lapply(changed, function(v) {
    call("<-", as.name(v), call("stan_either", test, call("[[", old, v), as.name(v)))
  })
  c(list(call("<-", test, stan_test(s$test, cx)),
         call("<-", both, call("is_traced", test)),
         call("if", both, call("<-", old, kept)),
         call("if", call("||", both, call("isTRUE", test)), yes),
         call("if", both, stan_braces(c(list(call("<-", quote(.yes), kept)), back,
                                        list(call("<-", old, quote(.yes))))))),
    if (!is.null(no)) list(call("if", call("||", both, call("!", call("isTRUE", test))), no)),
    list(call("if", both, stan_braces(merge))))
}

# Many branches. Which one is taken is found first, in one call: R's own `if` would be nested too
# deeply. If a condition depends on parameters, the program is recorded again in each evaluation.
stan_else_if <- function(s, cx) {
  cx$ids$last <- cx$ids$last + 1L
  taken <- as.name(sprintf(".taken_%d", cx$ids$last))
  tests <- lapply(s$tests, stan_if_test, cx)
  branch <- function(k, body) {
    call("if", call("==", taken, k), stan_braces(stan_statements(stan_body(body), cx)))
  }
  code <- c(list(call("<-", taken, as.call(c(list(quote(stan_first)), tests)))),
            Map(branch, as.double(seq_along(s$bodies)), s$bodies))
  if (is.null(s$no)) code else c(code, list(branch(0, s$no)))
}

# The variables that the branches change, if both can be computed and then merged: they have no
# jumps. Locals of the branches are not among them.
stan_merged <- function(s, cx) {
  found <- character()
  pure <- TRUE
  local <- character()
  walk <- function(s) {
    if (is.null(s)) return()
    if (is.null(s$kind)) return(invisible(lapply(s, walk)))
    switch(s$kind,
      block = lapply(s$body, walk),
      profile = walk(s$body),
      decl = local <<- c(local, s$name),
      assign = {
        lhs <- s$lhs
        while (lhs$kind %in% c("index", "tuple_get")) lhs <- lhs$base
        if (lhs$kind == "tuple") {
          lapply(lhs$args, function(part) walk(list(kind = "assign", lhs = part)))
        } else {
          found <<- c(found, lhs$name)
        }
      },
      target = , sample = found <<- c(found, ".target"),
      `for` = {
        local <<- c(local, s$var)
        walk(s$body)
      },
      `if` = {
        walk(s$yes)
        walk(s$no)
      },
      print = NULL,
      reject = found <<- c(found, if (isTRUE(cx$inside)) ".lost" else ".target"),
      pure <<- FALSE)
  }
  walk(s$yes)
  walk(s$no)
  if (!pure || isTRUE(cx$lp)) return(NULL)
  setdiff(unique(found), local)
}

# In a function: `if (c) return a;` and what follows, as a choice between the two results. After
# `if (c) reject();` the result is NaN where the condition holds.
stan_early_return <- function(s, rest, cx) {
  kind_of_last <- function(b) if (length(b) > 0L) b[[length(b)]]$kind else "none"
  ends <- function(b) kind_of_last(b) == "return" && !is.null(b[[length(b)]]$expr)
  yes <- stan_flat(s$yes)
  rejects <- kind_of_last(yes) == "reject" &&
    all(vapply(yes, `[[`, "", "kind") %in% c("print", "reject"))
  if (!(ends(yes) || rejects) || isTRUE(cx$lp)) return(NULL)
  no <- c(if (!is.null(s$no)) stan_flat(s$no), rest)
  if (!ends(no)) {
    last <- if (length(no) > 0L) no[[length(no)]]
    if (is.null(last) || last$kind != "if" || is.null(last$no)) return(NULL)
  }
  as_function <- function(statements) {
    call("function", NULL, stan_braces(stan_statements(statements, cx)))
  }
  list(call("<-", quote(.line), as.double(s$line)),
       call("return", call(if (rejects) "stan_unless" else "stan_branch", stan_test(s$test, cx),
                           as_function(yes), as_function(no))))
}

stan_flat <- function(b) {
  b <- stan_body(b)
  do.call(c, c(list(list()), lapply(b, function(s) if (s$kind == "block") s$body else list(s))))
}

# Where both branches are computed, the target of this one is that of a rejection. A function of
# compiled code notes it in `.lost`.
stan_rejection <- function(s, cx) {
  code <- as.call(c(list(as.name("stan_reject")), stan_exprs(s$args, cx)))
  if (is.null(cx$both)) return(code)
  call("if", cx$both, if (isTRUE(cx$inside)) quote(.lost <- 1) else quote(.target <- -Inf), code)
}

# Whether a statement of a function may reject: it has reject(), or calls a function for that.
stan_may_reject <- function(s) {
  if (!is.list(s)) return(FALSE)
  if (identical(s$kind, "reject") || identical(s$kind, "call") && !is.null(s$call)) return(TRUE)
  if (is.null(s$kind) || s$kind %in% stan_holders) any(vapply(s, stan_may_reject, NA)) else FALSE
}

# The value that a function returns; one without a value returns whether it rejects.
stan_return <- function(e, cx) {
  if (is.null(e)) return(if (isTRUE(cx$loses)) quote(.lost) else quote(invisible(NULL)))
  value <- stan_expr(e, cx)
  if (!isTRUE(cx$loses)) return(value)
  call(if (cx$whole) "stan_lost_whole" else "stan_lost_if", quote(.lost), value)
}

stan_call_statement <- function(s, cx) {
  code <- stan_expr(s$call, cx)
  if (!cx$traced || isTRUE(cx$lp)) return(code)
  if (isTRUE(cx$loses)) return(call("<-", quote(.lost), call("stan_or_lost", quote(.lost), code)))
  call("<-", quote(.target), call("stan_lost_if", code, quote(.target)))
}

stan_print <- function(s, cx) {
  if (cx$traced) return(list())
  list(as.call(c(list(as.name("stan_show")), stan_exprs(s$args, cx))))
}
