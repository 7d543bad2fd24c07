# Densities are called with one number after another in loops, or with short vectors. A formula asks
# many questions of its arguments, but records the same nodes for arguments of one form: the second
# call copies those of the first one (src/r/trace_again.c). The form is all that a formula can ask
# for: which arguments are numbers, and their values; which are traced, their lengths and
# dimensions, and of which values they are elementwise functions. Numbers of the arguments in
# `through` take part as nodes, so that their values may differ, those of arguments in `signed` only
# if the sign is the same.

most_patterns <- 16L

# The value of a call, whose nodes are noted on the tape for the next.
recorded_density <- function(..., .name, .row) {
  formula <- .row$formula
  tape <- tracing$tape
  values <- list(...)
  if (length(tape$patterns[[.name]]) >= most_patterns ||
        !all(vapply(values, is_simple_operand, NA))) return(formula(...))
  through <- (argument_names(formula, values) %in% .row$through) *
    vapply(values, function(v) is.numeric(v) && !is_traced(v) && is.finite(v) && v != 0, NA)
  free <- through > 0
  through[free & argument_names(formula, values) %in% .row$signed] <- 2
  given <- values
  given[free] <- lapply(values[free], function(v) {
    traced(tape$add("number", "", integer(), numeric(), as.double(v), 1L), 1L)
  })
  note_pattern(.name, values, through, given, function() do.call(formula, given, quote = TRUE))
}

# The value of f(...) for traced values and constants: the nodes are those of an earlier call of
# this name with values of one form, or noted for the next.
recorded_again <- function(.name, f, ...) {
  again <- .Call(r_trace_again, tracing$tape, .name, list(...))
  if (!is.null(again)) return(again)
  values <- list(...)
  mine <- vapply(values, function(v) !is_traced(v) || has_one_node(v), NA)
  if (!all(mine) || length(tracing$tape$patterns[[.name]]) >= most_patterns) return(f(...))
  note_pattern(.name, values, numeric(length(values)), values, function() f(...))
}

# The value of `record`, which uses `given` in place of `values`.
note_pattern <- function(name, values, through, given, record) {
  tape <- tracing$tape
  ids <- vapply(given, function(v) if (is_traced(v)) v$id else 0L, 0L)
  before <- tape$count
  result <- record()
  if (has_one_node(result) && result$id > before && can_copy(tape, before, ids)) {
    values[] <- lapply(values, function(v) if (is_traced(v)) v$dim else v)
    entry <- list(names(values), as.integer(through), unname(values), unname(ids), before + 1L,
                  tape$count, result$id, result$dim)
    assign(name, c(tape$patterns[[name]], list(entry)), envir = tape$patterns)
  }
  result
}

is_simple_operand <- function(v) {
  if (!is_traced(v)) return(is.atomic(v) && length(v) == 1L && is.null(attributes(v)))
  has_one_node(v) && is.null(v$dim)
}

has_one_node <- function(v) {
  is_traced(v) && identical(v$tape, tracing$tape) && !is.na(v$id) && v$id > 0L &&
    is.null(v$names) && is.null(v$times) && tracing$tape$kind[[v$id]] != "number"
}

# The names of the arguments of f that take these values.
argument_names <- function(f, values) {
  given <- names(values)
  if (is.null(given)) given <- character(length(values))
  open <- which(given == "")
  given[open] <- setdiff(names(formals(f)), given)[seq_along(open)]
  given
}

# Whether the nodes after `before` are made of each other, of numbers, of the operands with these
# nodes and of what these are functions of.
can_copy <- function(tape, before, ids) {
  if (!is.null(tape$live) || tape$count - before > 200L) return(FALSE)
  at <- seq.int(before + 1L, tape$count)
  below <- function(id) {
    if (tape$kind[[id]] == "apply" && length(tape$args[[id]]) == 1L) tape$args[[id]]
  }
  known <- ids[ids > 0L]
  for (depth in 1:2) known <- c(known, unlist(lapply(known, below)))
  used <- setdiff(unlist(tape$args[at]), c(at, known))
  all(tape$kind[at] %in% c("number", "apply", "broadcast", "reduce")) &&
    all(tape$kind[used] == "number")
}
