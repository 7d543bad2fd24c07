# What calls and samplers have taken on each engine, and whether a device is the slower one.

# Names the times of calls of a kind, as of where_for(), of about this size, and about this number
# of evaluations, on an engine.
times_key <- function(kind, size, where, times = 1) {
  paste(where, kind, round(4 * log2(size)), round(2 * log2(times)))
}

# The kind of work whose dimensions say more than its size, each to a factor of 1.4.
shape_kind <- function(kind, dim) paste(c(kind, round(2 * log2(dim))), collapse = " ")

# Thresholds may be wrong for this machine: the times of calls of about this size on each engine
# decide, once calls on the device after the first three, in which drivers prepare much, have lost a
# tenth of a second.
is_slower <- function(kind, size, where, times = 1) {
  of <- compared_times(kind, size, where, times)
  seems_slower(of) && lost_seconds(of) > 0.1
}

calls_in_mean <- 16

many_calls <- 4 * calls_in_mean

# Whether the device has had enough calls to be kept.
is_settled <- function(kind, size, where, times = 1) {
  of <- compared_times(kind, size, where, times)
  !is.null(of$device) && of$device[["calls"]] >= many_calls && !seems_slower(of)
}

# Whether the next calls are to be on the host, for comparison: the device's take longer than half
# of what the host is estimated to take, and the host has had none, as kernels were there from the
# beginning. If the host's first is the shorter one, it gets many, else three. They take a tenth of
# the time that the device has taken, or less; of the first that is expected, as estimates may be
# wrong by a factor of three.
lacks_host <- function(op, size, where, times = 1, kind = op) {
  of <- compared_times(kind, size, where, times)
  if (is.null(of$device)) return(FALSE)
  least <- of$device[["least"]]
  spent <- of$device[["all"]]
  if (of$device[["calls"]] < many_calls && spent < 0.1) return(FALSE)
  calls <- sum(of$host["calls"], na.rm = TRUE) # none without all cores counts
  if (calls == 0) {
    estimate <- times * host_seconds[[op]](size, multiplication_seconds())
    return(least > 0.5 * estimate && spent > 30 * estimate && count_building() == 0L)
  }
  host <- of$host[["least"]]
  if (host < least) calls < many_calls else calls < 3 && calls * host < 0.1 * spent
}

compared_times <- function(kind, size, where, times) {
  key <- times_key(kind, size, -1L, times)
  list(host = if (is.null(session$times[[key]])) session$crowded[[key]] else session$times[[key]],
       device = session$times[[times_key(kind, size, where, times)]])
}

# The shortest times decide. Evaluations of a fit differ, and the shortest of many is shorter than
# the shortest of few. So where the host has a mean (the shortest of several, as machines have slow
# seconds), the device's mean must be longer, too, or while it has none, its shortest time twice as
# long.
seems_slower <- function(of) {
  if (is.null(of$host) || is.null(of$device)) return(FALSE)
  ratio <- of$device[["least"]] / of$host[["least"]]
  if (ratio <= 1.1 || !is.finite(of$host["mean"])) return(ratio > 1.1)
  if (is.finite(of$device[["mean"]])) of$device[["mean"]] > 1.1 * of$host[["mean"]] else ratio > 2
}

# How much longer the device's calls took than the shortest one on the host.
lost_seconds <- function(of) {
  of$device[["all"]] - max(of$device[["calls"]] - 3, 0) * of$host[["least"]]
}

# list(value, seconds) of `run(where)`. `of`: the attributes of a choice by where_for(), under which
# the time is noted if counts(value); NULL for no note.
timed <- function(of, run, where, counts = function(value) TRUE) {
  start <- as.numeric(Sys.time()) # finer than proc.time()
  value <- run(where)
  seconds <- as.numeric(Sys.time()) - start
  if (!is.null(of) && counts(value)) note_time(of, where, seconds)
  list(value = value, seconds = seconds)
}

# Keeps for such calls the least seconds, their number, the sum `all` of those after the third, the
# sum `of` those for the next mean, and the least mean. While kernels are built the host is slow:
# its time counts only if there is no other; where BLAS leaves cores to those threads it would take
# at least this part of it with all of them.
note_time <- function(of, where, seconds) {
  key <- times_key(of$kind, of$size, where, of$times)
  share <- if (where < 0L) blas_share() else 1
  if (share < 1 || (where < 0L && count_building() > 0L)) {
    session$crowded[[key]] <- c(least = min(session$crowded[[key]], share * seconds))
    return()
  }
  known <- session$times[[key]]
  if (is.null(known)) known <- c(least = Inf, calls = 0, all = 0, of = 0, mean = Inf)
  known[["least"]] <- min(known[["least"]], seconds)
  known[["calls"]] <- known[["calls"]] + 1
  if (known[["calls"]] > 3) {
    known[c("all", "of")] <- known[c("all", "of")] + seconds
    if ((known[["calls"]] - 3) %% calls_in_mean == 0) {
      known[["mean"]] <- min(known[["mean"]], known[["of"]] / calls_in_mean)
      known[["of"]] <- 0
    }
  }
  session$times[[key]] <- known
}

# The paces of samplers: the least seconds of an evaluation by engine and number of chains. On a
# device the first one does not count, as kernels are built in it, nor does one of less than a
# second, much of which is spent on other things.
pace_name <- function(where, chains) paste(if (where < 0L) "host" else "device", chains)

add_pace <- function(paces, where, chains, seconds, evaluations) {
  name <- pace_name(where, chains)
  first <- where >= 0L && is.null(paces[[name]])
  if (first || where < 0L || seconds >= 1)
    paces[[name]] <- min(paces[[name]], if (first) Inf else seconds / evaluations)
  paces
}

# Whether a device took longer than the host, by more than samplers differ from each other.
is_paced_slower <- function(paces, chains) {
  host <- paces[[pace_name(-1L, chains)]]
  device <- paces[[pace_name(0L, chains)]]
  !is.null(host) && !is.null(device) && is.finite(device) && device > 1.25 * host
}
