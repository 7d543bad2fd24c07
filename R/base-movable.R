# Objects that keep data on an engine, and may move to another one between evaluations.

# An object with its data on an engine: `make(where)` gives a handle of them there, and
# `take(handle, where)` notes it. While it `moves`, `run()` of an evaluation takes them to a device
# once that has the kernels. `clean`: neither make() nor an evaluation keeps anything elsewhere, and
# the host's time can be estimated: it gets some evaluations for comparison if it has had none.
# `rehearse(chains)` requests what a sampler of so many chains does, whose kernels are then needed,
# too; `time(chains)` gives the seconds of one of its evaluations, or NULL. If samplers on the host
# took less than half of that, the data go back there and stay, until restore(). `counts(value)`:
# whether the time of this evaluation is compared with others, on a device until it has had many:
# the data go back if it is slower. NULL: times are not compared.
movable <- function(place, make, take, clean = FALSE, rehearse = function(chains) NULL,
                    time = function(chains) NULL, counts = NULL) {
  compared <- !is.null(counts)
  note_counted <- function(value) {
    counted <- counts(value)
    if (!counted) uncounted <<- uncounted + 1
    counted
  }
  at <- held <- NULL
  paces <- list() # of samplers
  moves <- FALSE
  stays <- FALSE # on the host, as samplers are slower on the device
  resumes <- FALSE # moves after a sampler
  uncounted <- 0 # evaluations whose times are not compared
  ahead <- 0 # chains of the latest sampler
  spare <- 0 # seconds in which evaluations do not ask again
  hold <- function(handle, where) {
    held <<- handle
    at <<- where
    take(handle, where)
  }
  build <- function(where = place()) {
    op <- attr(where, "op")
    waits <- is.null(op) || attr(where, "waits")
    moves <<- !is.null(op) && (compared || !waits)
    to <- as.integer(where)
    # some objects take long to make: not on the host if the device has the kernels of others
    if (!waits && to >= 0L && is_built(op) && may_try(op)) {
      made <- try_device(op, make, to)
      if (!is.null(made)) return(hold(made[[1L]], to))
    }
    if (!waits) to <- -1L
    hold(make(to), to)
  }
  go_back <- function() {
    hold(make(-1L), -1L)
    moves <<- FALSE
    stays <<- TRUE
  }
  op <- choice <- NULL
  restore <- function() {
    paces <<- list() # maybe of another device
    stays <<- FALSE
    uncounted <<- 0
    build()
  }
  is_late <- function() {
    host <- paces[[pace_name(-1L, ahead)]]
    !is.null(host) && isTRUE(time(ahead) > 2 * host)
  }
  spend_spare <- function(evaluate) {
    of <- if (compared) choice
    measure <- function() timed(of, function(where) evaluate(), at, note_counted)
    done <- if (at < 0L) leaving_cores(measure()) else measure()
    spare <<- spare - done$seconds
    if (at < 0L) session$owed[[op]] <- sum(session$owed[[op]], done$seconds)
    done$value
  }
  lacks <- function(where) clean && lacks_host(op, choice$size, where, choice$times, choice$kind)
  # whether the device has had enough evaluations to be kept
  is_judged <- function(where) {
    uncounted > 4 * many_calls ||
      (is_settled(choice$kind, choice$size, where, choice$times) && !lacks(where))
  }
  # the place of the next evaluation: a device's are compared with some on the host
  compare_at <- function(where) {
    if (where < 0L || uncounted > 4 * many_calls) return(where)
    if (lacks(where)) where[] <- -1L
    where
  }
  run <- function(evaluate) {
    if (spare > 0 && session$engine == "auto" && !is_asked_for(op)) return(spend_spare(evaluate))
    where <- place()
    by_cost <- !is.null(attr(where, "op"))
    if (by_cost) {
      choice <<- attributes(where)
      op <<- choice$op
      if (compared) where <- compare_at(where)
    } else if (at >= 0L) {
      where <- at
    }
    start <- as.numeric(Sys.time())
    value <- on_engine(where, function(where) {
      before <- list(held, at)
      done <- FALSE
      on.exit(if (!done) do.call(hold, before)) # the device lacks kernels
      arrives <- !identical(where, at)
      if (arrives) hold(make(where), where)
      value <- evaluate()
      prepares <- arrives && where >= 0L && ahead > 0
      if (prepares) rehearse(ahead)
      done <- !only_asks()
      if (done && !compared) moves <<- where < 0L
      if (done && compared && by_cost) moves <<- where < 0L || !is_judged(where)
      if (done && prepares && by_cost && is_late()) go_back()
      value
    }, clean && (is.null(at) || at < 0L),
    if (compared) note_counted else function(value) !is.null(value)) # NULL: the handle is not valid
    share <- if (is.null(op)) 0 else if (at < 0L) 0.05 * build_begins * build_cost(op) else 0.05
    spare <<- share - (as.numeric(Sys.time()) - start) # none after a long evaluation
    value
  }
  pace <- function(seconds, evaluations, chains) {
    paces <<- add_pace(paces, at, chains, seconds, evaluations)
    if (resumes && !stays) moves <<- TRUE
    resumes <<- FALSE
  }
  # before `times` evaluations that do not go through run(), of `chains` at once
  settle <- function(times, chains) {
    if (at >= 0L && is_paced_slower(paces, chains) && !is.null(attr(place(times), "op"))) go_back()
    resumes <<- compared && (moves || resumes) # also after one that failed
    if (at >= 0L) moves <<- FALSE # what single evaluations take does not decide for a sampler
    if (!moves) return()
    ahead <<- chains
    where <- place(times)
    if (isTRUE(attr(where, "waits"))) {
      build(where)
      moves <<- FALSE
      if (at >= 0L && is_late()) go_back()
      return()
    }
    op <- attr(where, "op")
    if (is.null(op)) return()
    if (where >= 0L) spare <<- 0
    seconds <- times * host_seconds[[op]](attr(where, "size"), multiplication_seconds())
    session$owed[[op]] <- sum(session$owed[[op]], seconds)
  }
  environment()
}
