# The engine of a compiled function, by an estimate of the time of an evaluation on each, in
# microseconds. `Rscript bench/engines.R costs` prints estimates next to times: on an H100 they were
# within a factor of 3.5, apart from the 10 microseconds that a call from R takes on the host. Only
# the decision has to be right, and that is so where the engines differ by more.

# The approximate time of a gradient on the host, and its number of launches, and of successive
# steps of a scan, on a device. `program`: that of the tape, its loops rolled, on any engine.
program_cost <- function(tape, program) {
  nodes <- tape$nodes[seq_len(tape$count)]
  kind <- vapply(nodes, `[[`, "", 1L)
  at <- function(which) lapply(nodes[kind == which], `[[`, 4L)
  total <- function(which, work) sum(vapply(at(which), work, 0))
  multiplications <- total("matmul", function(a) prod(a[1:3])) +
    total("chol", function(a) a[1L]^3) + total("lu", function(a) a[1L]^3) +
    total("tri_solve", function(a) a[1L]^2 * a[2L]) +
    total("lu_solve", function(a) a[1L]^2 * a[2L])
  facts <- .Call(r_program_facts, program)
  launches <- facts[["kernels"]] + facts[["calls"]]
  list(host = 1 + 0.02 * facts[["operations"]] + 6e-4 * facts[["elements"]] +
         3e-4 * multiplications + 0.06 * facts[["rounds"]],
       launches = launches, steps = facts[["steps"]],
       kinds = intersect(c(kind, if (facts[["steps"]] > 0) "scan"), names(build_seconds)))
}

# The time on the device `where`. In a sampler a device has the next points before it ends one, so
# that launches take less.
device_time <- function(cost, where, ahead = FALSE) {
  launch <- threshold("program", where)
  launch * cost$launches * (if (ahead) 0.3 else 1) + 0.02 * launch * cost$steps +
    cost$host * min(1, launch / 100)
}

# Seconds that a driver takes to build kernels: for each fused one, up to some number as equal ones
# are built once, and for each kind of call that this session has not built yet.
build_time <- function(cost) {
  if (is_asked_for("program")) return(0)
  build_factor() *
    (0.3 * min(cost$launches, 10) + sum(build_seconds[cost$kinds[!is_built(cost$kinds)]]))
}

# The engine for this number of evaluations: list(where, gain). With gain > 0, `where` is the host,
# a device saves that many microseconds an evaluation, and is worth its build after some more.
choose_engine <- function(cost, evaluations, ahead = FALSE) {
  limit <- host_limit("program")
  if (limit == Inf) return(list(where = -1L, gain = 0))
  where <- current_device()
  if (limit > 0) {
    gain <- cost$host - device_time(cost, where, ahead)
    if (gain <= 0.1 * cost$host) return(list(where = -1L, gain = 0))
    if (1e-6 * gain * evaluations < build_time(cost)) return(list(where = -1L, gain = gain))
  }
  list(where = mark_opened(where), gain = 0)
}

# Makes the program of a new trace, on the engine that it is to run on.
make_program <- function(state, tape, nodes, length, output) {
  make <- function(where) .Call(r_program_make, where, nodes, tape$data, length, output)
  state$gain <- 0
  state$cost <- NULL
  if (isTRUE(state$on_host)) {
    state$where <- -1L
  } else if (!host_limit("program") %in% c(0, Inf)) {
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

# Counts an evaluation on the host that a device would have finished earlier. When the time lost is
# worth the build, threads build the kernels, and the program moves to the device once they stand.
# `x`: the parameters, at which it is tried there.
count_evaluation <- function(state, x) {
  state$saved <- state$saved + 1e-6 * state$gain
  if (state$saved < build_begins * build_time(state$cost)) return(invisible())
  where <- choose_engine(state$cost, Inf)$where
  if (where < 0L) {
    state$gain <- 0
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

# The program again on another engine.
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
