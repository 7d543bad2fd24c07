# Which variables a loop of a Stan program changes, and how it uses them (R/stan-lanes.R).

lane_declared <- function(statements) {
  unlist(lapply(statements, function(s) {
    switch(s$kind, decl = s$name, block = lane_declared(s$body),
           `for` = lane_declared(stan_body(s$body)),
           `if` = c(lane_declared(stan_body(s$yes)),
                    if (!is.null(s$no)) lane_declared(stan_body(s$no))))
  }))
}

# The variables from outside that statements assign; statements of other kinds end the attempt.
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
    if (!is.list(x)) return()
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

# The numbers that only take sums: each use is the left side of `x += ...`.
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

# For each variable the index that is the loop's variable in all uses.
lane_places <- function(uses, var) {
  vapply(uses, function(of) {
    common <- NULL
    for (indices in of) {
      at <- which(vapply(indices, function(i) {
        i$kind == "single" && i$expr$kind == "var" && i$expr$name == var
      }, NA))
      common <- if (is.null(common)) at else intersect(common, at)
      if (length(common) == 0L) no_lanes()
    }
    common[1L]
  }, 0L)
}
