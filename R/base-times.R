# What calls and samplers have taken on each engine, and whether a device is the slower one.

# Names the times of calls of about this size, and this number of evaluations, on an engine.
times_key <- function(op, size, where, times = 1) paste(where, op, round(2 * log2(size)), times)

# Thresholds may be wrong for this machine: the shortest times of calls of about this size on each
# engine decide, once calls on the device have lost a tenth of a second. The first three do not
# count: drivers prepare much in them. Evaluations of a fit differ, and the shortest of many is
# shorter than the shortest of few: unless they are far apart, the means must agree, once the host
# has one.
is_slower <- function(op, size, where, times = 1) {
  key <- times_key(op, size, -1L, times)
  host <- if (is.null(session$times[[key]])) session$crowded[[key]] else session$times[[key]]
  device <- session$times[[times_key(op, size, where, times)]]
  if (is.null(host) || is.null(device)) return(FALSE)
  ratio <- device[["least"]] / host[["least"]]
  counted <- max(device[["calls"]] - 3, 0)
  if (ratio <= 1.1 || device[["all"]] - counted * host[["least"]] <= 0.1) return(FALSE)
  ratio > 2 || is.na(host["calls"]) || host[["calls"]] <= 3 ||
    device[["all"]] / counted > 1.1 * host[["all"]] / (host[["calls"]] - 3)
}

# The value of `run(where)`, whose time is noted. `choice`: of where_for(). While BLAS leaves cores
# to other threads the host is slow: with all of them it would take at least this part of the time.
timed <- function(choice, run, where) {
  start <- as.numeric(Sys.time()) # finer than proc.time()
  value <- run(where)
  seconds <- as.numeric(Sys.time()) - start
  of <- attributes(choice)
  key <- times_key(of$op, of$size, where, of$times)
  share <- blas_share()
  if (where < 0L && share < 1) {
    session$crowded[[key]] <- c(least = share * seconds)
    return(list(value = value, seconds = seconds))
  }
  known <- session$times[[key]]
  if (is.null(known)) known <- c(least = Inf, calls = 0, all = 0) # of the calls after the third
  calls <- known[["calls"]] + 1
  session$times[[key]] <- c(least = min(known[["least"]], seconds), calls = calls,
                            all = known[["all"]] + if (calls > 3) seconds else 0)
  list(value = value, seconds = seconds)
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
