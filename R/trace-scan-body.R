# Recording of cl_scan(): the step has its own tape, whose parameters are the numbers passed to it:
# state, x, further arguments, and values of the enclosing function.

# The result of a scan as traced values; NULL if none of its inputs is traced.
traced_scan <- function(f, spec) {
  step <- trace_step(f, spec)
  outer <- tracing$tape
  mine <- vapply(c(spec$state$leaves, spec$x$leaves, Filter(function(a) !is.null(a$n), spec$more)),
                 function(leaf) is_traced(leaf$value), NA)
  kinds <- outer$kind[step$tape$sources]
  if (!any(mine) && all(kinds == "data")) return(NULL)
  outer$scans[[length(outer$scans) + 1L]] <- scan_body(step)
  operands <- scan_operands(spec, step)
  n <- sum(step$result$sizes) * spec$b + sum(step$result$out_sizes) * spec$b * spec$steps
  id <- outer$add("scan", "", operands, c(length(outer$scans), spec$steps, spec$b, 0, 0), 0, n)
  scan_results(id, spec, step)
}

# Calls f with traced values in place of its inputs.
trace_step <- function(f, spec) {
  outer <- tracing$tape
  on.exit(tracing$tape <- outer)
  tape <- new_tape()
  tape$parent <- outer
  tracing$tape <- tape
  stand_in <- function(leaf) traced(add_input(tape, leaf$n), as.integer(leaf$n), leaf$shape)
  state <- lapply(spec$state$leaves, stand_in)
  inputs <- function(leaves) { # values: the step's view; leaves: all inputs
    given <- lapply(leaves, without_gaps)
    values <- lapply(given, function(g) stand_in(g$leaf))
    gaps <- lapply(given, `[[`, "gaps")
    own <- lengths(gaps) > 0L
    values[own] <- Map(function(v, gap) show_gaps(v, stand_in(gap)), values[own], gaps[own])
    list(values = values, leaves = unname(c(lapply(given, `[[`, "leaf"), gaps[own])))
  }
  x <- inputs(spec$x$leaves)
  # numbers that all steps and sequences share are data of the step, as are captured values
  each <- vapply(spec$more, function(a) is_traced(a$value) || isTRUE(a$each), NA)
  more <- spec$more
  more[!each] <- lapply(more[!each], function(a) if (is.null(a$n)) a$plain else leaf_part(a, 1))
  further <- inputs(spec$more[each])
  more[each] <- further$values
  tape$sources <- integer()
  tape$source_sizes <- numeric()
  if (!is.primitive(f) && !exists(".statcl_lookup", envir = environment(f))) f <- looking_up(f)
  result <- split_result(call_step(f, spec, state, x$values, more), spec)
  result$sizes <- vapply(spec$state$leaves, `[[`, 0, "n")
  result$out_sizes <- as.double(lengths(result$out))
  leaves <- c(result$state, result$out)
  ids <- vapply(leaves, function(v) node_of(trace_operand(v)), 0L)
  output <- if (length(ids) == 1L) ids else {
    tape$add("concat", "", ids, numeric(), 0, sum(result$sizes, result$out_sizes))
  }
  list(tape = tape, result = result, output = output, state = spec$state$leaves,
       x = x$leaves, more = further$leaves)
}

# Handles missing data of an input: list(leaf, gaps). In `leaf` they are replaced by another
# element; the input `gaps` is 1 there.
without_gaps <- function(leaf) {
  v <- leaf$value
  if (is_traced(v) || !anyNA(v)) return(list(leaf = leaf))
  gaps <- leaf
  gaps$value <- is.na(v) + 0
  leaf$value[is.na(v)] <- c(v[!is.na(v)], 0)[1L]
  list(leaf = leaf, gaps = gaps)
}

# The input as the step sees it, NaN at the gaps.
show_gaps <- function(x, gaps) {
  shown <- trace_apply("ifelse", gaps, NaN, x)
  tape <- tracing$tape
  tape$gaps <- c(tape$gaps, list(c(node_of(shown), node_of(x))))
  shown
}

# Adds a parameter of the step: a node of n numbers after the existing ones.
add_input <- function(tape, n) {
  at <- if (is.null(tape$inputs)) 0 else tape$inputs
  tape$inputs <- at + n
  tape$add("param", "", integer(), c(at, n), 0, n)
}

# ---- what a step uses of the function around it --------------------------------------------------

# A value of the enclosing function, as an input of the step.
captured <- function(x, tape) {
  tracing$tape <- tape$parent
  on.exit(tracing$tape <- tape)
  x <- trace_operand(x)
  id <- if (x$n == 0L) NA_integer_ else node_of(x)
  tracing$tape <- tape
  if (is.na(id)) return(traced(NA_integer_, 0L, x$dim))
  traced(captured_node(tape, id, x$n), x$n, x$dim)
}

captured_node <- function(tape, id, n) {
  known <- match(id, tape$sources)
  if (!is.na(known)) return(tape$source_nodes[known])
  node <- add_input(tape, n)
  tape$sources <- c(tape$sources, id)
  tape$source_sizes <- c(tape$source_sizes, n)
  tape$source_nodes <- c(tape$source_nodes, node)
  if (tape$parent$has_missing) { # the same at all steps, so known (R/trace-missing.R)
    tracing$tape <- tape$parent
    lost <- missing_elements(id)
    tracing$tape <- tape
    if (!is.null(lost)) {
      tape$has_missing <- TRUE
      missing_elements(node)
      tape$lost[node] <- list(lost)
    }
  }
  node
}

# Numbers that are not parameters: data of the enclosing function, so that update() finds them.
captured_data <- function(values, tape) {
  parent <- tape$parent
  if (anyNA(values)) parent$has_missing <- TRUE
  at <- parent$add_data(values)
  key <- as.character(at)
  id <- tape$data_nodes[key]
  if (is.null(id) || is.na(id)) {
    id <- parent$add("data", "", integer(), c(at, length(values)), 0, length(values))
    tape$data_nodes[key] <- id
  }
  captured_node(tape, id[[1L]], length(values))
}

# ---- the node ------------------------------------------------------------------------------------

most_sources <- 16L # beyond, they are put into one vector

# The body in the form that src/r/program.c reads.
scan_body <- function(step) {
  tape <- step$tape
  sources <- tape$source_sizes
  if (length(sources) > most_sources) sources <- sum(sources)
  ports <- function(role, lengths, shared) {
    if (length(lengths) > 0L) cbind(role, lengths, shared, deparse.level = 0)
  }
  column <- function(leaves, name) vapply(leaves, function(leaf) as.double(leaf[[name]]), 0)
  list(node_columns(tape), tape$data, step$output,
       rbind(ports(0, column(step$state, "n"), 0),
             ports(1, column(step$x, "n"), 1 - column(step$x, "each")),
             ports(2, column(step$more, "n"), 1 - column(step$more, "each")),
             ports(2, sources, 1), ports(4, step$result$out_sizes, 0)), as.integer(tape$guard))
}

# Declares a number x of a step as its guard: where x is 0, products with x and values chosen by x
# are left out, which makes the step cheap.
idle_without <- function(x) if (is_traced(x)) tracing$tape$guard <- node_of(x)

# The nodes of all inputs.
scan_operands <- function(spec, step) {
  tape <- tracing$tape
  state <- vapply(step$state, function(leaf) {
    id <- node_of(trace_operand(leaf$value))
    if (leaf$each || spec$b == 1) return(id)
    at <- if (leaf$n == 1) c(spec$b, 1, 1) else c(leaf$n, spec$b, 0)
    tape$add("broadcast", "", id, at, 0, leaf$n * spec$b)
  }, 0L)
  rest <- vapply(c(step$x, step$more), function(leaf) node_of(trace_operand(leaf$value)), 0L)
  sources <- step$tape$sources
  if (length(sources) > most_sources) {
    sources <- tape$add("concat", "", sources, numeric(), 0, sum(step$tape$source_sizes))
  }
  as.integer(c(state, rest, sources))
}

# States and outputs, as parts of the node.
scan_results <- function(id, spec, step) {
  tape <- tracing$tape
  size <- tape$size[id]
  from <- 0
  cut <- function(n, shape) {
    part <- if (n == size) id else tape$add("part", "", id, c(size, from, 0, n, 1), 0, n)
    from <<- from + n
    traced(part, as.integer(n), if (length(shape) > 1L) as.integer(shape))
  }
  state <- lapply(spec$state$leaves, function(leaf) {
    shape <- if (is.null(leaf$shape) && !is.null(spec$sequences)) leaf$n else leaf$shape
    cut(leaf$n * spec$b, c(shape, spec$sequences))
  })
  state <- like_spec(state, spec$state)
  if (is.null(step$result$out)) return(state)
  out <- lapply(step$result$out, function(v) {
    shape <- if (!is.null(dim(v))) dim(v) else if (length(v) > 1L) length(v)
    cut(length(v) * spec$steps * spec$b, c(spec$steps, shape, spec$sequences))
  })
  list(state = state, out = like_spec(out, step$result))
}

# ---- its value by plain R, for retrace = TRUE ----------------------------------------------------

live_scan <- function(at, args, tape) {
  body <- tape$scans[[at[1L]]]
  ports <- body[[4L]]
  inputs <- ports[ports[, 1L] < 3, , drop = FALSE]
  states <- which(inputs[, 1L] == 0)
  n <- inputs[, 2L]
  steps <- at[2L]
  last <- rep(list(NULL), at[3L])
  outs <- vector("list", at[3L])
  own <- c(body[[1L]][1:5], list(data = body[[2L]]))
  for (b in seq_len(at[3L])) {
    part <- lapply(seq_along(args), function(k) {
      shared <- inputs[k, 3L] == 1
      m <- n[k] * (if (inputs[k, 1L] == 1) steps else 1)
      if (shared) args[[k]] else args[[k]][(b - 1) * m + seq_len(m)]
    })
    now <- unlist(part[states])
    rows <- NULL
    for (t in seq_len(steps)) {
      x <- unlist(Map(function(v, k) {
        if (inputs[k, 1L] == 1) v[t + steps * (seq_len(n[k]) - 1)] else v
      }, part, seq_along(part))[-states])
      own$live <- c(now, x)
      own$values <- list()
      result <- live_node(list2env(own), body[[3L]])
      now <- result[seq_along(now)]
      rows <- rbind(rows, result[-seq_along(now)])
    }
    last[[b]] <- now
    outs[[b]] <- rows
  }
  split_by <- function(x, sizes) split(x, rep(seq_along(sizes), sizes))
  ends <- do.call(Map, c(list(c), lapply(last, split_by, n[states])))
  out_sizes <- ports[ports[, 1L] == 4, 2L]
  columns <- split(seq_len(sum(out_sizes)), rep(seq_along(out_sizes), out_sizes))
  c(unlist(ends), unlist(lapply(columns, function(j) lapply(outs, function(r) r[, j]))))
}
