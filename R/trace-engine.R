# The cost of a compiled function, and its program on the engine that choose_engine() gives.

# The approximate microseconds of a gradient on the host, and its number of launches, and of
# successive steps of a scan, on a device. `Rscript bench/engines.R costs` prints estimates next to
# times: on an H100 they were within a factor of 3.5, apart from the 10 microseconds that a call
# from R takes on the host. Only the decision has to be right, and that is so where the engines
# differ by more. `program`: that of the tape, its loops rolled, on any engine.
program_cost <- function(tape, program) {
  kind <- tape$kind[seq_len(tape$count)]
  total <- function(of, work) sum(vapply(tape$at[which(kind == of)], work, 0))
  multiplications <- total("matmul", function(a) prod(a[1:3])) +
    total("chol", function(a) a[1L]^3) + total("lu", function(a) a[1L]^3) +
    total("eigen", function(a) 10 * a[1L]^3) +
    total("tri_solve", function(a) a[1L]^2 * a[2L]) +
    total("lu_solve", function(a) a[1L]^2 * a[2L])
  facts <- .Call(r_program_facts, program)
  launches <- facts[["kernels"]] + facts[["calls"]]
  list(host = 1 + 0.02 * facts[["operations"]] + 6e-4 * facts[["elements"]] +
         3e-4 * multiplications + 0.06 * facts[["rounds"]],
       launches = launches, steps = facts[["steps"]],
       kinds = intersect(c(kind, if (facts[["steps"]] > 0) "scan"), names(build_seconds)))
}

# Makes the program of a new trace, on the engine that it is to run on.
make_program <- function(state, tape, nodes, length, output) {
  make <- function(where) .Call(r_program_make, where, nodes, tape$data, length, output)
  state$gain <- 0
  state$cost <- NULL
  if (isTRUE(state$on_host)) {
    state$where <- -1L
  } else if (!host_limit("program", NA) %in% c(0, Inf)) {
    program <- make(-1L)
    state$cost <- program_cost(tape, program)
    choice <- choose_engine(state$cost, 1)
    state$where <- choice$where
    state$gain <- choice$gain
    state$saved <- 0
    if (state$where < 0L) return(program)
  } else {
    state$where <- where_for("program", 0)
  }
  if (state$where >= 0L) note_built(state$cost$kinds)
  make(state$where)
}

# Counts an evaluation on the host that a device would have finished earlier. When the time lost
# exceeds that of building kernels, threads build them, and the program moves to the device when
# they are ready. `x`: the parameters at which it is tried there.
count_evaluation <- function(state, x) {
  state$saved <- state$saved + 1e-6 * state$gain
  state$at <- x
  if (forked() || state$saved < build_begins * build_time(state$cost)) return(invisible())
  choice <- choose_engine(state$cost, Inf)
  where <- choice$where
  if (where < 0L) {
    state$gain <- choice$gain
  } else if (count_building() == 0L) {
    made <- try_device("program", function(where) {
      program <- make_again(state, where)
      for (gradient in c(FALSE, TRUE)) .Call(r_program_run, program, x, gradient)
      program
    }, where)
    if (!is.null(made)) take_program(state, made[[1L]], where)
    if (!is.null(session$refused$program)) state$gain <- 0
  }
}

# Makes the program again, on another engine.
make_again <- function(state, where) {
  of <- state$known[[1L]]
  .Call(r_program_make, where, of$nodes, of$data, as.double(sum(lengths(state$like))), of$output)
}

take_program <- function(state, program, where) {
  force(program) # made of what is known so far
  of <- state$known[[1L]]
  state$where <- where
  state$gain <- 0
  state$known <- list()
  note_built(state$cost$kinds)
  keep_program(state, program, of$nodes, of$data, of$output)
}

move_program <- function(state, where) take_program(state, make_again(state, where), where)
