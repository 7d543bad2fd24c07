# Which variables a loop of a Stan program changes, and how it uses them (R/stan-lanes.R).

lane_declared <- function(statements) {
  unlist(lapply(statements, function(s) {
    switch(s$kind, decl = s$name, block = lane_declared(s$body),
           `for` = lane_declared(stan_body(s$body)),
           `if` = c(lane_declared(stan_body(s$yes)),
                    if (!is.null(s$no)) lane_declared(stan_body(s$no))))
  }))
}

# The variables from outside that statements assign. Other kinds of statements signal
# cl_stan_no_lanes.
lane_assigned <- function(statements) {
  found <- character()
  walk <- function(s) {
    switch(s$kind,
      block = lapply(s$body, walk),
      decl = , target = , print = NULL,
      sample = if (isTRUE(s$truncated)) no_lanes(),
      `for` = lapply(stan_body(s$body), walk),
      `if` = {
        lapply(stan_body(s$yes), walk)
        if (!is.null(s$no)) lapply(stan_body(s$no), walk)
      },
      assign = {
        lhs <- s$lhs
        while (lhs$kind == "index") lhs <- lhs$base
        if (lhs$kind != "var") no_lanes()
        found <<- c(found, lhs$name)
      },
      no_lanes())
  }
  lapply(statements, walk)
  setdiff(found, lane_declared(statements))
}

# How the body uses each of these variables: a list of lists of indices (NULL: as a whole).
lane_uses <- function(statements, names) {
  uses <- stats::setNames(rep(list(list()), length(names)), names)
  visit <- function(x) {
    if (!is.list(x) || !any(.Call(r_stan_names, x, "var") %in% names)) return()
    kind <- x$kind
    if (identical(kind, "index")) {
      flat <- lane_flat_index(x)
      if (flat$base$kind == "var" && flat$base$name %in% names) {
        name <- flat$base$name
        uses[[name]] <<- c(uses[[name]], list(flat$indices))
        lapply(flat$indices, visit)
        return()
      }
    }
    if (identical(kind, "var") && x$name %in% names) {
      uses[[x$name]] <<- c(uses[[x$name]], list(NULL))
      return()
    }
    lapply(x[setdiff(base::names(x), c("kind", "type", "line"))], visit)
    if (is.null(base::names(x))) lapply(x, visit)
  }
  lapply(statements, visit)
  uses
}

# x[i][j] as x[i, j], as long as indices are single.
lane_flat_index <- function(e) {
  indices <- e$indices
  base <- e$base
  while (base$kind == "index" && all(vapply(base$indices, `[[`, "", "kind") == "single")) {
    indices <- c(base$indices, indices)
    base <- base$base
  }
  list(base = base, indices = indices)
}

# The numbers that are sums: each use is the left side of `x += ...`.
lane_sums <- function(statements, uses, assigned) {
  counts <- integer()
  walk <- function(s) {
    switch(s$kind,
      block = lapply(s$body, walk),
      `for` = lapply(stan_body(s$body), walk),
      `if` = {
        lapply(stan_body(s$yes), walk)
        if (!is.null(s$no)) lapply(stan_body(s$no), walk)
      },
      assign = if (s$lhs$kind == "var" && s$op == "+=" && is_scalar_type(s$lhs$type)) {
        counts[s$lhs$name] <<- sum(counts[s$lhs$name], 1L, na.rm = TRUE)
      })
  }
  lapply(statements, walk)
  whole <- names(counts)[vapply(names(counts), function(v) {
    v %in% assigned && length(uses[[v]]) == counts[[v]]
  }, NA)]
  as.character(whole)
}

# For each variable the index that is the loop's variable in all uses but those of other elements,
# such as x[t - 1, i] where the others are x[t, n].
lane_places <- function(uses, var) {
  vapply(uses, function(of) {
    has <- lapply(of, function(indices) {
      which(vapply(indices, function(i) {
        i$kind == "single" && i$expr$kind == "var" && i$expr$name == var
      }, NA))
    })
    mine <- lengths(has) > 0L
    common <- Reduce(intersect, has[mine])
    if (length(common) == 0L) no_lanes()
    for (other in of[!mine]) {
      apart <- vapply(of[mine], lane_apart, NA, other, var)
      if (!all(apart)) no_lanes()
    }
    common[1L]
  }, 0L)
}

# Whether two lists of indices have a place at which one is a number more or less than the other.
lane_apart <- function(a, b, var) {
  if (length(a) != length(b)) return(FALSE)
  any(mapply(function(i, j) {
    if (i$kind != "single" || j$kind != "single") return(FALSE)
    lane_shifted(i$expr, j$expr, var) || lane_shifted(j$expr, i$expr, var)
  }, a, b))
}

# Whether `e` is the variable of a loop around, and `f` that variable plus or minus a number.
lane_shifted <- function(e, f, var) {
  e$kind == "var" && e$name != var && identical(e$block, "loop") && f$kind == "op" &&
    f$op %in% c("+", "-") &&
    length(f$args) == 2L && f$args[[1L]]$kind == "var" && f$args[[1L]]$name == e$name &&
    f$args[[2L]]$kind == "num" && f$args[[2L]]$value != 0
}

# ---- variables that each iteration fills anew ----------------------------------------------------

# The assigned variables that every iteration fills before it reads them, so that each may have its
# own: a list with NULL for a number, and the size for a vector.
lane_private <- function(statements, names, var, cx) {
  found <- list()
  for (name in names) {
    mine <- Filter(function(s) lane_mentions(s, name), statements)
    first <- mine[[1L]]
    if (lane_sets(first, name)) {
      found[[name]] <- NA
      next
    }
    size <- cx$sizes[[name]]
    if (is.null(size) || !lane_fills(mine, name, size, cx)) next
    uses <- lane_uses(statements, name)[[name]]
    if (lane_mentions(size, var) || !any(vapply(uses, is.null, NA))) next
    found[[name]] <- size
  }
  found
}

lane_reads_target <- function(x) "target" %in% .Call(r_stan_names, x, "call")

lane_mentions <- function(x, name) name %in% .Call(r_stan_names, x, "var")

# x = ... of a number
lane_sets <- function(s, name) {
  s$kind == "assign" && s$op == "=" && s$lhs$kind == "var" && s$lhs$name == name &&
    is_scalar_type(s$lhs$type) && !lane_mentions(s$rhs, name)
}

# Whether the statements that mention a vector begin by filling it: for (k in 1:size) x[k] = ...;
# or x[1] = ...; x[2] = ...
lane_fills <- function(statements, name, size, cx) {
  puts <- function(s) {
    s$kind == "assign" && s$op == "=" && s$lhs$kind == "index" && s$lhs$base$kind == "var" &&
      s$lhs$base$name == name && length(s$lhs$indices) == 1L &&
      s$lhs$indices[[1L]]$kind == "single" && !lane_mentions(s$rhs, name)
  }
  first <- statements[[1L]]
  if (first$kind == "for") {
    inner <- Filter(function(s) lane_mentions(s, name), stan_flat(first$body))
    e <- if (puts(inner[[1L]])) inner[[1L]]$lhs$indices[[1L]]$expr
    return(!is.null(e) && e$kind == "var" && e$name == first$var &&
             identical(stan_expr(first$lower, cx), 1) &&
             identical(stan_expr(first$upper, cx), stan_expr(size, cx)))
  }
  if (size$kind != "num") return(FALSE)
  set <- numeric()
  for (s in statements) {
    if (!puts(s)) break
    e <- s$lhs$indices[[1L]]$expr
    if (e$kind == "num") set <- c(set, e$value)
  }
  setequal(set, seq_len(size$value))
}

lane_private_before <- function(private, lx) {
  lapply(names(private)[vapply(private, is.list, NA)], function(name) {
    call("<-", as.name(name), call("stan_empty", lane_count(lx), stan_expr(private[[name]], lx$cx)))
  })
}

# After the loop they have the values of the last iteration.
lane_private_after <- function(private, lx) {
  lapply(names(private), function(name) {
    call("<-", as.name(name), call("stan_lane_last", as.name(name), lane_count(lx)))
  })
}

# A loop whose only statement that names x is `x[i, j] += ...` for the same element in all
# iterations, with the sum in the number `total`: list(loop, after: its addition to the element).
lane_element_sum <- function(s, total) {
  body <- stan_flat(s$body)
  adds <- vapply(body, function(a) identical(a$op, "+=") && a$lhs$kind == "index", NA)
  if (!any(adds)) return(NULL)
  written <- unlist(lapply(body, stan_written))
  if (length(stan_named(list(s$lower, s$upper), written)) > 0L) return(NULL)
  for (k in which(adds)) {
    a <- body[[k]]
    flat <- lane_flat_index(a$lhs)
    single <- all(vapply(flat$indices, `[[`, "", "kind") == "single")
    if (!single || flat$base$kind != "var" || !is_scalar_type(a$lhs$type) ||
          !identical(a$lhs$type$base, "real")) next
    x <- flat$base$name
    places <- lapply(flat$indices, `[[`, "expr")
    other <- c(body[-k], list(a$rhs, s$lower, s$upper), places)
    fixed <- length(stan_named(places, c(s$var, written, lane_declared(body)))) == 0L
    if (!fixed || length(stan_named(other, x)) > 0L || x %in% lane_declared(body)) next
    number <- list(kind = "var", name = total, type = a$lhs$type, block = "local", line = a$line)
    body[[k]]$lhs <- number
    s$body <- body
    a$rhs <- number
    return(list(loop = s, after = a))
  }
}
