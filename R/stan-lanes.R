# Loops of Stan programs whose iterations do not depend on each other, computed for all of them at
# once: the loop's variable becomes the vector of its values, numbers in the body become vectors
# with an element for each iteration ("lane"), and vectors of the body become matrices with a row
# for each. So a loop over observations is recorded as a few operations.
#
# The rules: a variable from outside that the body assigns is used only by elements with the loop's
# variable at one and the same place, or is a sum (`x += ...`) that the body does not read. Numbers
# may be combined by functions that work element by element; vectors also by sums and similar
# functions, row by row. Anything else signals cl_stan_no_lanes, and the loop runs as it is.
#
# A context `lx` is an environment with `cx`, `var`, `locals` (variables of the body), `rows` (those
# of them that are vectors), `written` (variables from outside and the place of the loop's
# variable), `sums`, and `groups`: codes of sizes of which each group of lanes has its own.

no_lanes <- function() {
  stop(structure(list(message = "", call = NULL),
                 class = c("cl_stan_no_lanes", "error", "condition")))
}

# The statements of the loop for all lanes at once; NULL if that is impossible.
stan_lanes <- function(s, cx) {
  if (isTRUE(cx$lp) || lane_reads_target(s$body)) return(NULL)
  lx <- new.env(parent = emptyenv())
  lx$cx <- cx
  lx$var <- s$var
  base::tryCatch({
    body <- stan_flat(s$body)
    assigned <- unique(lane_assigned(body))
    private <- lane_private(body, assigned, s$var, cx)
    assigned <- setdiff(assigned, names(private))
    lx$locals <- names(private)
    lx$rows <- names(private)[vapply(private, is.list, NA)]
    uses <- lane_uses(body, assigned)
    lx$sums <- lane_sums(body, uses, assigned)
    lx$written <- lane_places(uses[setdiff(names(uses), lx$sums)], s$var)
    lx$groups <- list()
    code <- lane_statements(body, lx)
    if (length(lx$groups) > 0L && length(private) > 0L) no_lanes()
    var <- as.name(s$var)
    all <- call("stan_count", stan_expr(s$lower, cx), stan_expr(s$upper, cx))
    if (length(lx$groups) > 0L) {
      sizes <- as.call(c(list(quote(list)), lx$groups))
      return(list(call("<-", var, all),
                  call("for", var, call("stan_lane_groups", var, sizes), stan_braces(code))))
    }
    list(call("<-", var, all),
         call("if", call(">", call("length", var), 0),
              stan_braces(c(lane_private_before(private, lx), code,
                            lane_private_after(private, lx)))))
  }, cl_stan_no_lanes = function(e) NULL)
}

# ---- statements ----------------------------------------------------------------------------------

lane_statements <- function(statements, lx) {
  code <- list()
  for (s in statements) code <- c(code, lane_statement(s, lx))
  code
}

lane_statement <- function(s, lx) {
  code <- switch(s$kind,
    block = return(lane_statements(s$body, lx)),
    print = if (lx$cx$traced) return(list()) else no_lanes(), # in the order of the iterations
    decl = lane_declaration(s, lx),
    assign = lane_assignment(s, lx),
    target = list(lane_add(quote(.target), s$expr, lx)),
    sample = {
      e <- list(kind = "call", name = s$name, args = c(list(s$lhs), s$args), user = isTRUE(s$user),
                fun = s$fun, line = s$line, type = list(base = "real", depth = 0L))
      list(lane_add(quote(.target), e, lx, isTRUE(lx$cx$drop)))
    },
    `for` = {
      if (lane_depends(s$lower, lx) || lane_depends(s$upper, lx)) no_lanes()
      list(call("for", as.name(s$var), call("stan_count", stan_expr(s$lower, lx$cx),
                                            stan_expr(s$upper, lx$cx)),
                stan_braces(lane_statements(stan_body(s$body), lx))))
    },
    `if` = lane_if(s, lx),
    no_lanes())
  c(list(call("<-", quote(.line), as.double(s$line))), code)
}

# total <- total + the sum of an expression over all lanes
lane_add <- function(total, e, lx, drop = FALSE) {
  if (!is_scalar_type(e$type) || is_complex_type(e$type)) no_lanes()
  ordered <- e$kind == "call" && e$name %in% c("ordered_logistic_lpmf", "ordered_logistic_lupmf") &&
    !lane_depends(e$args[[3L]], lx) && is_scalar_type(e$args[[1L]]$type) &&
    is_scalar_type(e$args[[2L]]$type)
  if (ordered) {
    return(call("<-", total, call("+", total, call(
      "s.ordered_logistic_lpmf", lane_full(lane_expr(e$args[[1L]], lx), lx),
      lane_full(lane_expr(e$args[[2L]], lx), lx), stan_expr(e$args[[3L]], lx$cx)))))
  }
  code <- lane_expr(e, lx)
  lanes <- lane_count(lx)
  value <- call("stan_lane_sum", code, lanes)
  if (drop && !isTRUE(e$user)) {
    value <- stan_dropped(value, code, sub("_lp[dm]f$", "", e$name), lanes)
  }
  call("<-", total, call("+", total, value))
}

lane_declaration <- function(s, lx) {
  name <- as.name(s$name)
  rank <- stan_rank(s$type)
  if (s$type$base == "tuple" || rank > 1L || is_complex_type(s$type)) no_lanes()
  lx$locals <- union(lx$locals, s$name)
  if (rank == 1L) {
    lx$rows <- union(lx$rows, s$name)
    size <- lane_size(s$sizes[[1L]], lx)
    if (is.null(s$init)) return(list(call("<-", name, call("stan_empty", lane_count(lx), size))))
    if (!lane_depends(s$init, lx)) no_lanes()
    return(list(call("<-", name, call("stan_lane_sized", lane_expr(s$init, lx), size))))
  }
  if (is.null(s$init)) return(list(call("<-", name, NaN)))
  list(call("<-", name, lane_expr(s$init, lx)))
}

lane_assignment <- function(s, lx) {
  if (s$op != "=") {
    if (s$lhs$kind == "var" && s$lhs$name %in% lx$sums) {
      return(list(lane_add(as.name(s$lhs$name), s$rhs, lx)))
    }
    op <- sub("=$", "", s$op)
    s$rhs <- list(kind = "op", op = op, args = list(s$lhs, s$rhs), line = s$line,
                  type = s$lhs$type)
  }
  if (s$lhs$kind == "var") {
    if (!s$lhs$name %in% lx$locals || is_complex_type(s$lhs$type)) no_lanes()
    name <- as.name(s$lhs$name)
    value <- lane_expr(s$rhs, lx)
    if (s$lhs$name %in% lx$rows) {
      if (!lane_depends(s$rhs, lx)) no_lanes()
      value <- call("stan_lane_sized", value, call("ncol", name))
    }
    return(list(call("<-", name, value)))
  }
  flat <- lane_flat_index(s$lhs)
  if (flat$base$kind != "var" || is_complex_type(flat$base$type)) no_lanes()
  parts <- lane_indices(flat, lx)
  list(call("<-", as.name(flat$base$name),
            as.call(c(list(as.name("stan_lane_put"), as.name(flat$base$name),
                           lane_expr(s$rhs, lx)), parts))))
}

# The codes of single indices, with that of the lanes in front for a vector of the body.
lane_indices <- function(flat, lx) {
  if (any(vapply(flat$indices, `[[`, "", "kind") != "single")) no_lanes()
  rank <- stan_rank(flat$base$type)
  if (length(flat$indices) != rank) no_lanes()
  parts <- lapply(flat$indices, function(i) lane_expr(i$expr, lx))
  if (flat$base$kind == "var" && flat$base$name %in% lx$rows) {
    parts <- c(list(call("seq_along", as.name(lx$var))), parts)
  }
  parts
}

# A branch for the lanes in which a condition on data holds.
lane_if <- function(s, lx) {
  if (!lane_known(s$test, lx)) no_lanes()
  groups <- lx$groups
  on.exit(lx$groups <- groups)
  lx$groups <- NULL # sizes of all lanes cannot be asked for there
  changed <- intersect(lane_assigned_locals(c(stan_body(s$yes), if (!is.null(s$no))
    stan_body(s$no))), lx$locals)
  if (!lane_depends(s$test, lx)) {
    yes <- stan_braces(lane_statements(stan_body(s$yes), lx))
    test <- stan_if_test(s$test, lx$cx)
    if (is.null(s$no)) return(list(call("if", test, yes)))
    return(list(call("if", test, yes, stan_braces(lane_statements(stan_body(s$no), lx)))))
  }
  ids <- lx$cx$ids
  ids$last <- ids$last + 1L
  own <- function(name) as.name(sprintf(".%s_%d", name, ids$last))
  mask <- own("mask")
  all <- own("all")
  old <- lapply(lx$locals, function(v) own(paste0("old_", v)))
  locals <- lx$locals
  rows <- lx$rows
  var <- as.name(lx$var)
  branch <- function(statements, chosen) {
    inside <- call("<-", var, call("[", all, chosen))
    cut <- lapply(seq_along(locals), function(k) {
      call("<-", as.name(locals[k]), call("stan_lane_part", old[[k]], chosen))
    })
    code <- lane_statements(statements, lx)
    lx$locals <- locals
    lx$rows <- rows
    merge <- lapply(which(locals %in% changed), function(k) {
      call("<-", old[[k]], call("stan_lane_merge", old[[k]], chosen, as.name(locals[k])))
    })
    call("if", call("any", chosen), stan_braces(c(list(inside), cut, code, merge)))
  }
  keep <- lapply(seq_along(locals), function(k) call("<-", old[[k]], as.name(locals[k])))
  back <- lapply(seq_along(locals), function(k) call("<-", as.name(locals[k]), old[[k]]))
  c(list(call("<-", mask, call("stan_lane_mask", lane_expr(s$test, lx), call("length", var))),
         call("<-", all, var)), keep,
    list(branch(stan_body(s$yes), mask)),
    if (!is.null(s$no)) list(branch(stan_body(s$no), call("!", mask))),
    list(call("<-", var, all)), back)
}

lane_assigned_locals <- function(statements) {
  unlist(lapply(statements, function(s) {
    switch(s$kind, block = lane_assigned_locals(s$body),
           `for` = lane_assigned_locals(stan_body(s$body)),
           `if` = c(lane_assigned_locals(stan_body(s$yes)),
                    if (!is.null(s$no)) lane_assigned_locals(stan_body(s$no))),
           assign = lane_flat_index(list(base = s$lhs, indices = list()))$base$name)
  }))
}
