# The engine by cost, and what is done in the background for a device.
#
# Drivers take tenths of a second to list devices and to open one. A thread does both
# (src/r/context.c), once the host has spent two seconds on what any device would do, and the host
# computes.
#
# Above its threshold (R/base-thresholds.R) an operation on base R input would be faster on the
# device, if its kernels stood. Until then the host computes, and its seconds are counted. When they
# are worth the build, what the call lacks on the device is listed, threads build it
# (src/engine/cl/runtime/beside.c), and the host computes this call and others until it stands.
# Nobody waits, unless the host would take several times as long as the build.

# About how many seconds drivers take to build what an operation needs. In bench/engines.R that is
# what a device's first call takes longer than later ones. The last three are calls of compiled
# functions only (R/trace-engine.R).
build_seconds <- c(chol = 2.5, chol_adjoint = 3.4, matmul = 0.5, tri_solve = 1, tri_inverse = 1,
                   covariance = 1, arith = 0.3, glm = 1.5, glm_wide = 1.5, glm_fit = 1.9,
                   likelihood = 1.5, gp = 5, batch = 0.5, lu = 1, lu_solve = 1, scan = 0.5)

# The part of a build that the host must have spent, for threads to begin it: they take processor
# time, and a process that ends waits for a build in progress.
build_begins <- 0.2

# How many times the host must take longer than the build, for a call to wait: nobody loses unless
# estimates are wrong by this factor.
build_waits <- 2

# The size of the work on predictors: the link of a row takes as long as some 25 products.
work_size <- function(x) if (is.null(dim(x))) x else as.numeric(nrow(x)) * (ncol(x) + 25)

# Seconds that the host takes for a call of a size, at `m` seconds a multiplication; of "gp",
# "likelihood" for an evaluation, of "glm_fit" for a fit.
host_seconds <- list(
  chol = function(n, m) m * n^3 / 6, chol_adjoint = function(n, m) m * n^3,
  matmul = function(n, m) m * n^3, tri_solve = function(n, m) m * n^3 / 2,
  tri_inverse = function(n, m) m * n^3 / 6, covariance = function(n, m) 2e-8 * n^2,
  arith = function(n, m) 1e-8 * n, glm = function(n, m) 5e-8 * n,
  glm_wide = function(n, m) 1e-9 * n, glm_fit = function(n, m) 1e-8 * n,
  likelihood = function(n, m) 2.5e-10 * n, gp = function(n, m) m * n^3 + 2e-8 * n^2,
  batch = function(n, m) 1e-9 * n)

# Seconds of a multiplication in R's BLAS, measured once.
multiplication_seconds <- function() {
  if (is.null(session$multiplication)) {
    x <- matrix(1, 384L, 384L)
    times <- vapply(1:3, function(i) {
      start <- as.numeric(Sys.time()) # finer than proc.time()
      x %*% x
      as.numeric(Sys.time()) - start
    }, 0)
    session$multiplication <- max(min(times) / 384^3, 1e-13)
  }
  session$multiplication
}

# ---- choosing -----------------------------------------------------------------------------------

# About the seconds that drivers take to list devices and open one.
opening_seconds <- 0.5

# The host's seconds above least thresholds from which a thread lists devices and opens one. That
# takes a core from the host meanwhile, which costs some 0.2 s: a tenth of what has been spent by
# then. Sessions that do less never pay it.
opening_begins <- 2

# The size from which the device is used: 0 if it is forced, Inf for never, NA while a thread lists
# the devices. `size`: below the least threshold of all devices nobody asks for the list; NA: asks
# for nothing. `wait`: for the list. `worth`: whether a thread may begin with it.
host_limit <- function(op, size = Inf, wait = FALSE, worth = TRUE) {
  if (session$engine == "host") return(Inf)
  if (session$engine == "device") return(if (current_device() < 0L) Inf else 0)
  if (forked() && !names_device()) return(Inf)
  if (is.null(session$devices) && !wait && !names_device() && !is_asked_for(op)) {
    if (is.na(size)) return(NA_real_)
    least <- least_limit(op)
    if (size < least || least == Inf) return(Inf)
    if (!worth || !begin_beside(-1L)) return(NA_real_)
  }
  where <- current_device()
  if (where < 0L) Inf else threshold(op, where)
}

# The least threshold that is known for any device.
least_limit <- function(op) {
  if (is.null(session$least)) {
    saved <- read_tuning()
    session$least <- if (nrow(saved) == 0L) shipped_least else {
      least_values(rbind(shipped[c("name", "value")], saved[c("name", "value")]))
    }
  }
  least <- session$least[op]
  if (is.na(least)) Inf else least[[1L]]
}

# Whether the list of devices (-1L) is there, or the device open; if not, a thread begins.
begin_beside <- function(where) {
  if (where < 0L) prepare_devices()
  stop_building_at_exit()
  .Call(r_device_ready, where)
}

# `where` for an operation on base R input whose size, in the unit of the threshold `op`, is `size`,
# or the predictors of a likelihood or fit; `times` times. Above the threshold it has the attribute
# "op", for on_engine(): the host, whose seconds are to be counted, or the device, which is to be
# tried without waiting. `kind`: of calls whose times are compared, where those of `op` differ.
where_for <- function(op, size, times = 1, kind = op) {
  host <- session$engine == "host"
  if (!host && !is.null(session$chosen[[op]])) return(session$chosen[[op]])
  if (is_within_host() && !is_asked_for(op)) return(-1L)
  size <- work_size(size)
  where <- if (host) -1L else choose_where(op, size, times, kind)
  if (where < 0L) say_slow_blas(op, size, times)
  if (host) return(where)
  session$notes[[op]] <- list(size, where, times, if (!is.null(attributes(where))) kind)
  where
}

# Whether the innermost fit in progress is on the host, and may have its parts there.
is_within_host <- function() {
  fits <- session$chosen
  session$engine == "auto" && length(fits) > 0L && fits[[length(fits)]] < 0L
}

choose_where <- function(op, size, times, kind = op) {
  opens <- is_worth_opening(op, size, times)
  limit <- host_limit(op, size, worth = opens)
  if (!is.na(limit) && size < limit) return(-1L)
  if (identical(limit, 0) || is.null(host_seconds[[op]]) || is_asked_for(op))
    return(mark_opened(current_device()))
  waits <- host_takes(op, size, times, build_waits, kind)
  if (waits && is.na(limit) && size < host_limit(op, wait = TRUE)) return(-1L)
  ready <- waits || (!is.na(limit) && opens && begin_beside(current_device()))
  where <- if (ready) mark_opened(current_device()) else -1L
  worth <- ready && !is_slower(kind, size, where, times) &&
    is_worth_building(op, size, times, kind)
  structure(if (worth) where else -1L, op = op, size = size, times = times, waits = waits,
            kind = kind)
}

# The engine of a compiled function for this number of evaluations: list(where, gain). With gain > 0
# `where` is the host, a device saves that many microseconds an evaluation, and is worth its build
# after some more. `cost`: of program_cost(). An infinite number does not wait for the driver.
choose_engine <- function(cost, evaluations, ahead = FALSE) {
  host <- function(gain) list(where = -1L, gain = gain)
  saves <- function(launch) {
    gain <- cost$host - device_time(cost, launch, ahead)
    if (gain > 0.1 * cost$host) gain else 0
  }
  limit <- host_limit("program", NA)
  if (is.na(limit)) {
    gain <- saves(least_limit("program"))
    wait <- is.finite(evaluations) &&
      1e-6 * cost$host * evaluations >= build_waits * (opening_seconds + build_time(cost))
    if (gain > 0) limit <- host_limit("program", wait = wait)
    if (is.na(limit)) return(host(gain))
  }
  if (limit == Inf) return(host(0))
  where <- current_device()
  if (limit > 0) {
    gain <- saves(limit)
    if (gain == 0 || 1e-6 * gain * evaluations < build_time(cost)) return(host(gain))
    if (evaluations == Inf && !begin_beside(where)) return(host(gain))
  }
  list(where = mark_opened(where), gain = 0)
}

# Microseconds on a device whose launches take `launch`. In a sampler a device has the next points
# before it ends one, so that launches take less.
device_time <- function(cost, launch, ahead = FALSE) {
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

# Whether a device is worth opening for this call and those before it.
is_worth_opening <- function(op, size, times) {
  if (is.null(host_seconds[[op]]) || !is.null(session$opened_by)) return(TRUE)
  lack <- opening_begins - sum(unlist(session$owed))
  lack <= 0 || lasts(op, size, times, lack, slow = 1e-10)
}

is_worth_building <- function(op, size, times, kind) {
  if (!is.null(session$refused[[op]])) return(FALSE)
  is_built(op) || host_takes(op, size, times, build_begins - sum(session$owed[[op]]) /
                               build_cost(op), kind)
}

# Whether the host takes `share` times the seconds of the build and, if no device has been used yet,
# of opening it.
host_takes <- function(op, size, times, share, kind = op) {
  opens <- is.null(session$opened_by)
  least <- share * (build_cost(op) + if (opens) opening_seconds else 0)
  if (least <= 0) return(TRUE)
  known <- session$times[[times_key(kind, size, -1L, times)]]
  if (is.null(known)) return(lasts(op, size, times, least, slow = 1e-9))
  known[["least"]] >= least # measuring takes milliseconds
}

# Whether the host is estimated to take so many seconds; first at `slow` seconds a multiplication,
# so that speed is rarely measured.
lasts <- function(op, size, times, seconds, slow) {
  estimate <- function(m) times * host_seconds[[op]](size, m)
  estimate(slow) >= seconds && estimate(multiplication_seconds()) >= seconds
}

build_cost <- function(op) build_factor() * build_seconds[[op]]

# Kept programs are loaded, which takes a tenth of a build. Files are looked for once, as that takes
# longer than many a call.
build_factor <- function() {
  if (is.null(session$build_factor)) {
    session$build_factor <- if (cache_wanted() && length(cache_files()) > 0L) 0.1 else 1
  }
  session$build_factor
}

# Operations whose kernels stand, on the device in use.
is_built <- function(op) {
  if (length(session$built) == 0L) return(logical(length(op))) # maybe no device is known yet
  paste(rep(current_device(), length(op)), op) %in% session$built
}
note_built <- function(op) {
  if (length(op) > 0L) session$built <- union(session$built, paste(current_device(), op))
}

# Whether the user has set the threshold.
is_asked_for <- function(op) isTRUE(threshold_option()[op] >= 0)

# ---- running ------------------------------------------------------------------------------------

# `run(where)` on the engine that where_for() has chosen; on the host if kernels are missing.
# `whole`: run() makes all matrices that it works on, keeps none, and comes to an end if all numbers
# are zeros: kernels for all that it does are asked for at once, and not only those of its first
# operation that lacks some. "unread": it reads no large results itself. `counts(value)`: whether
# the time of this value is noted.
on_engine <- function(where, run, whole = FALSE, counts = function(value) TRUE) {
  op <- attr(where, "op")
  if (is.null(op)) return(run(where))
  to <- as.integer(where)
  run_timed <- function(to) timed(attributes(where), run, to, counts)
  if (to >= 0L && attr(where, "waits")) {
    value <- run_timed(to)$value
    note_built(op)
    return(value)
  }
  if (to >= 0L && may_try(op)) {
    tried <- try_device(op, run_timed, to, if (!isFALSE(whole)) run, identical(whole, "unread"))
    if (!is.null(tried)) return(tried[[1L]]$value)
  }
  # before the run, as a fit takes its note
  if (!is.null(session$notes[[op]])) session$notes[[op]][[2L]] <- -1L
  done <- leaving_cores(run_timed(-1L))
  session$owed[[op]] <- sum(session$owed[[op]], done$seconds)
  done$value
}

# Not while kernels are being built. An attempt that finds some missing loses what it has done, for
# instance moved data: at most a tenth of the host's time goes into these, without the last one,
# whose kernels stand now.
may_try <- function(op) {
  if ((op %in% session$waits || !is_built(op)) && count_building() > 0L) return(FALSE)
  sum(session$lost[[op]]) - sum(session$asked[[op]]) <= 0.1 * sum(session$owed[[op]])
}

# .Call of an entry, the first of `...`, whose last argument is the engine.
call_on <- function(where, ...) {
  if (is.null(attr(where, "op"))) return(.Call(..., where))
  on_engine(where, function(where) .Call(..., where), "unread")
}

# A fit, or another call that asks for its engine in several places: one engine for all of them.
fit_on_engine <- function(op, size, run, times = 1, kind = op,
                          where = where_for(op, size, times, kind), whole = FALSE) {
  if (!is.null(session$chosen[[op]])) return(run())
  on_engine(where, function(where) {
    on.exit(session$chosen[[op]] <- NULL) # first: an interrupt may come between the two
    session$chosen[[op]] <- where
    run()
  }, whole)
}

# The value, computed while BLAS leaves cores to threads that open a device or build kernels. An
# interrupt may come between any two calls.
leaving_cores <- function(value) {
  if (.Call(r_blas_count)[[2L]] > 0L) return(value) # an outer call
  on.exit(.Call(r_blas_leave, FALSE))
  .Call(r_blas_leave, TRUE)
  value
}

# The part of its threads that BLAS has had in the present call, at least: of as many as it has
# cores.
blas_share <- function() {
  threads <- .Call(r_blas_count)
  if (threads[[2L]] == 0L) 1 else min(1, threads[[3L]] / min(threads[[2L]], threads[[4L]]))
}

# Whether the device computes: a fit in progress has it, or the user wants it.
is_on_device <- function(op, size) {
  where <- where_for(op, size)
  where >= 0L && is.null(attr(where, "op"))
}

# list(value) of `run(where)` on a device if its kernels stand, else NULL: threads build them then.
# An attempt leaves R's random numbers as they were. `whole`: NULL, or run() without a note of its
# time, which only asks before the first attempt, for the kernels of all that it does.
try_device <- function(op, run, where = current_device(), whole = NULL, unread = FALSE) {
  seed <- globalenv()$.Random.seed
  reseed <- function() {
    if (!is.null(seed)) assign(".Random.seed", seed, globalenv())
    else if (!is.null(globalenv()$.Random.seed)) rm(".Random.seed", envir = globalenv())
  }
  start <- as.numeric(Sys.time())
  asks <- !is.null(whole) && (op %in% session$waits || !is_built(op))
  lacks <- asks && lacks_kernels(whole, where, unread)
  if (asks) reseed()
  value <- if (!lacks) ask_device(op, run, where)
  if (is.null(value)) {
    seconds <- as.numeric(Sys.time()) - start
    session$lost[[op]] <- sum(session$lost[[op]], seconds)
    session$asked[[op]] <- if (session$begins) seconds
    reseed()
    session$waits <- union(session$waits, op)
  } else {
    session$lost[[op]] <- sum(session$lost[[op]]) - sum(session$asked[[op]])
    session$asked[[op]] <- NULL
    note_built(op)
    session$waits <- setdiff(session$waits, op)
  }
  value
}

ask_device <- function(op, run, where) {
  before <- .Call(r_beside_begin, 1L)
  on.exit(session$begins <- .Call(r_beside_end, before))
  stop_building_at_exit()
  base::tryCatch(list(run(where)), statcl_building = function(e) NULL,
                 statcl_error_build = function(e) {
    session$refused[[op]] <- conditionMessage(e)
    NULL
  })
}

# Whether what runs now only asks for kernels. An evaluation asks for those of its gradient, too.
only_asks <- function() .Call(r_beside_lacks)

# Ends a call that only asks for kernels: those of these matrices are the last ones.
end_asking <- function(...) {
  if (!only_asks()) return()
  for (x in list(...)) if (!is.null(x)) .Call(r_lazy_eval, list(x))
  abort_fault(list(what = "building", message = "kernels are being built"))
}

# Whether kernels are missing; then they are asked for. Nothing is computed: zeros stand for
# numbers, so errors, warnings and messages mean nothing. `unread`: large results are not written.
lacks_kernels <- function(run, where, unread) {
  before <- .Call(r_beside_begin, if (unread) 3L else 2L)
  on.exit(session$begins <- .Call(r_beside_end, before))
  stop_building_at_exit()
  tryCatch(suppressMessages(suppressWarnings(run(where))), statcl_building = function(e) NULL,
           error = function(e) NULL)
  .Call(r_beside_asked)
}

# The number of programs that threads build now.
count_building <- function() .Call(r_beside_count)

# Threads end before R removes its temporary files, where a driver may have some.
stop_building_at_exit <- function() {
  if (!is.null(session$ends)) return()
  session$ends <- new.env()
  stop <- function(e) base::tryCatch(.Call(r_beside_stop), error = function(e) NULL) # unloaded
  reg.finalizer(session$ends, stop, onexit = TRUE)
}
