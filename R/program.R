# cl_gradient(): a plain R function with its gradient. The function is traced, and the nodes become
# a program of the core (src/program).

# Calls f, a function of the parameters in the list `point`, with traced values; gives the tape,
# the traced (or plain) result, and node(value), the node of a value.
trace_function <- function(f, point, as_list = FALSE, live = FALSE) {
  before <- tracing$tape
  on.exit(tracing$tape <- before)
  tape <- new_tape(if (live) as.double(unlist(point, use.names = FALSE)))
  tracing$tape <- tape
  offset <- 0L
  arguments <- lapply(point, function(p) {
    n <- length(p)
    if (n == 0L) return(no_elements(dim(p)))
    at <- c(offset, n)
    offset <<- offset + n
    record("param", "", integer(), at, n, dim(p))
  })
  if (as_list) arguments <- list(arguments)
  copy <- looking_up(f)
  result <- withCallingHandlers(do.call(copy, arguments, quote = TRUE), error = explain_error)
  list(tape = tape, result = result, node = function(x) {
    before <- tracing$tape
    on.exit(tracing$tape <- before)
    tracing$tape <- tape
    node_of(x)
  })
}
