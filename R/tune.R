#' Measure what suits this machine
#'
#' Times operations on base R input on the host and on the device in use, transfers included, at
#' increasing sizes and for several shapes. Between the sizes where the host and where the device is
#' faster the crossing is interpolated; it becomes the threshold of this session
#' ([cl_thresholds()]). The result explains each choice; `plot()` shows the times.
#'
#' A device whose results differ from the host's is not used for that operation. If the budget ends
#' before the device is faster, the threshold is unchanged; if the device is slower at all sizes, it
#' is `Inf`. Times are the least of several runs.
#'
#' With `kernels`, a quarter of the budget goes to parameters of kernels (`cl_thresholds(kernels =
#' TRUE)`), measured on device matrices. A value is chosen if its result is right and it takes at
#' least 5 per cent less time than the default, twice.
#'
#' With `save = TRUE` the numbers are also written to the file `tuning.csv` in
#' `tools::R_user_dir("statcl", "config")`, for later sessions with the same device, driver, version
#' of statcl, BLAS and number of cores; a message names the file. Otherwise nothing is written. To
#' discard them, delete the file.
#'
#' @param ops Names of operations as in [cl_thresholds()]; `NULL` for all.
#' @param budget Approximate time for all measurements, in seconds. Before them each call runs once
#'   on each engine, which builds kernels and is not counted.
#' @param verbose Whether to print each measurement.
#' @param save Whether to save the result for later sessions.
#' @param kernels Whether to measure parameters of kernels too.
#' @param x,object A result of `cl_tune()`.
#' @param ... Passed on to [plot()]; otherwise ignored.
#' @return A list of class `cl_tuning` with elements `device`, `driver`, `saved`, and two data
#'   frames. `sizes` has one row for each operation, with columns `op`, `unit`, `before`, `source`,
#'   `threshold`, `found` (`NA`: kept) and `why`; `points` one row for each measurement, with
#'   columns `op`, `shape`, `size`, `host` and `device` (seconds), `agree`, and `cost` (seconds).
#'   Both are `NULL` without a device. With `kernels` also the data frame `kernels`: one row for
#'   each value tried, with columns `name`, `value`, `seconds`, `agree`, `gain` and `chosen`.
#'   `summary()`: a data frame with the threshold, and the greatest loss at a measured size with it
#'   and with the previous one: the time of the chosen engine divided by that of the faster one.
#' @seealso [cl_thresholds()], [cl_sitrep()]
#' @export
#' @examples
#' \donttest{
#' tuned <- cl_tune("chol", budget = 2)
#' tuned
#' plot(tuned)
#' }
cl_tune <- function(ops = NULL, budget = 30, verbose = interactive(), save = FALSE,
                    kernels = is.null(ops)) {
  kernels <- check_flag(kernels, "kernels")
  known <- threshold_table$op
  ops <- if (is.null(ops)) known else ops
  if (!is.character(ops) || anyNA(ops) || !all(ops %in% known)) {
    choices <- paste0("\"", known, "\"", collapse = ", ")
    abort_argument("ops", paste("'ops' must be one or more of", choices))
  }
  budget <- check_number(budget, "budget", lower = 0.01)
  verbose <- check_flag(verbose, "verbose")
  save <- check_flag(save, "save")
  where <- current_device()
  if (where < 0L) {
    message("statcl: there is no device to tune for; see cl_sitrep()")
    return(new_tuning(data.frame(name = NA_character_, driver = NA_character_), list()))
  }
  device <- device_table()[where + 1L, ]
  tried <- if (kernels) tune_kernels(where, device, budget / 4)
  result <- new_tuning(device, tune_sizes(tune_tasks()[unique(ops)], settle(where),
                                          if (kernels) 0.75 * budget else budget, verbose))
  result$kernels <- tried
  chosen <- stats::setNames(tried$value, tried$name)[tried$chosen]
  found <- with(result$sizes, stats::setNames(threshold, op)[!is.na(found)])
  found <- c(found, chosen)
  session$tuned[[device$id]] <- replace(session$tuned[[device$id]], names(found), found)
  session$settled <- list()
  if (save) result$saved <- save_tuning(device, found)
  result
}

new_tuning <- function(device, measured) {
  structure(c(list(device = device$name, driver = device$driver, saved = FALSE), measured),
            class = "cl_tuning")
}

# ---- sizes --------------------------------------------------------------------------------------

# `time(run, size, shape)` gives the seconds on the host and on the device, `now()` the time.
tune_sizes <- function(tasks, known, budget, verbose, time = time_engines, now = wall_seconds) {
  points <- sizes <- list()
  for (op in names(tasks)) {
    measured <- measure_op(op, tasks[[op]], budget / (length(tasks) - length(sizes)), verbose,
                           time, now)
    budget <- budget - sum(measured$points$cost)
    points[[op]] <- measured$points
    choice <- choose_threshold(measured$points, measured$complete)
    before <- known$value[[op]]
    sizes[[op]] <- data.frame(
      op = op, unit = threshold_table$unit[threshold_table$op == op], before = before,
      source = known$source[[op]], threshold = if (is.na(choice$value)) before else choice$value,
      found = choice$value, why = choice$why, stringsAsFactors = FALSE)
  }
  list(sizes = do.call(rbind, c(sizes, make.row.names = FALSE)),
       points = do.call(rbind, c(points, make.row.names = FALSE)))
}

# Increasing sizes until the device is much faster twice, or as long as there is time; then sizes
# within the interval of the crossing.
measure_op <- function(op, task, seconds, verbose, time, now) {
  points <- NULL
  cost <- numeric() # of each size
  # the smallest speedup by the device over the shapes of the last size
  gain <- function() {
    last <- points[points$size == points$size[nrow(points)], ]
    min(last$host / last$device)
  }
  measure <- function(size) {
    for (shape in names(task$shapes)) {
      point <- data.frame(op = op, shape = shape, size = size,
                          measure_point(task, size, shape, time, now), stringsAsFactors = FALSE)
      if (verbose) {
        with(point, cat(sprintf("%-13s %-10s %9.0f  host %9.3f ms  device %9.3f ms\n", op, shape,
                                size, 1e3 * host, 1e3 * device)))
      }
      points <<- rbind(points, point)
    }
    cost <<- c(cost, sum(points$cost) - sum(cost))
  }
  has_time <- function(next_cost) sum(cost) + next_cost <= seconds
  complete <- TRUE
  for (size in task$sizes) {
    last <- length(cost)
    growth <- if (last > 1L && cost[last - 1L] > 0) max(2, cost[last] / cost[last - 1L]) else 2
    complete <- last == 0L || has_time(growth * cost[last])
    if (!complete) break
    was <- if (last > 0L) gain() else 0
    measure(size)
    if (min(was, gain()) > 3) break # beyond the crossing
  }
  for (again in 1:6) {
    between <- choose_threshold(points, complete)$between
    size <- round(sqrt(prod(between)))
    if (is.null(between) || between[2L] < 1.1 * between[1L] || size %in% points$size ||
          !has_time(sum(points$cost[points$size == between[2L]]))) break
    measure(size)
  }
  list(points = points, complete = complete)
}

# One size and shape: whether the results agree, both times, and the cost of measuring them. The
# first calls, which are compared, build the kernels; they do not count.
measure_point <- function(task, size, shape, time, now) {
  start <- now()
  run <- task$make(size, task$shapes[[shape]])
  made <- now() - start
  results <- lapply(c("host", "device"), function(e) as.numeric(unlist(with_cl(run(), engine = e))))
  start <- now()
  seconds <- time(run, size, shape)
  data.frame(host = seconds[["host"]], device = seconds[["device"]],
             agree = agree_closely(results[[1L]], results[[2L]]), cost = made + now() - start)
}

# Whether results agree up to rounding, relative to the largest number.
agree_closely <- function(x, y, tolerance = 1e-7) {
  if (length(x) != length(y)) return(FALSE)
  difference <- abs(x - y)
  !anyNA(difference) && all(difference <= tolerance * max(abs(x), 0))
}

# The threshold with the least loss: the sum, over the measured sizes, of the logarithm of the time
# of the chosen engine over that of the faster one. If several are as good, the largest. Between two
# sizes the logarithm of device over host time is linear in that of the size. `value` is NA if the
# time did not suffice. `between`: the two sizes.
choose_threshold <- function(points, complete) {
  if (!all(points$agree)) {
    return(list(value = Inf, why = "results of the device differ from the host's"))
  }
  size <- sort(unique(points$size))
  slower <- vapply(size, function(s) mean(log(points$device / points$host)[points$size == s]), 0)
  n <- length(size)
  loss <- vapply(0:n, function(k) {
    on_host <- seq_len(n) <= k
    sum(pmax(ifelse(on_host, -slower, slower), 0))
  }, 0)
  k <- max(which(loss <= min(loss) + 1e-12)) - 1L
  if (k == n) {
    why <- sprintf("host %.3g times as fast at %.4g", exp(slower[n]), size[n])
    if (complete) return(list(value = Inf, why = why))
    return(list(value = NA_real_, why = paste0(why, ", no time for more")))
  }
  faster <- sprintf("device %.3g times as fast at %.4g", exp(-slower[n]), size[n])
  if (k == 0L) return(list(value = size[1L], why = paste0(faster, ", from the least size on")))
  share <- slower[k] / (slower[k] - slower[k + 1L])
  list(value = signif(exp(log(size[k]) + share * log(size[k + 1L] / size[k])), 3L),
       why = sprintf("crossing between %.4g and %.4g; %s", size[k], size[k + 1L], faster),
       between = size[k + 0:1])
}

# ---- time ---------------------------------------------------------------------------------------

wall_seconds <- function() as.numeric(Sys.time()) # proc.time() counts whole milliseconds

time_engines <- function(run, ...) {
  vapply(c(host = "host", device = "device"), function(e) with_cl(least_seconds(run), engine = e),
         0)
}

# The time of one call after a first one: the least of some series, since other work only adds time.
least_seconds <- function(run) {
  run()
  series <- function(times) {
    start <- wall_seconds()
    for (k in seq_len(times)) run()
    (wall_seconds() - start) / times
  }
  first <- series(1L)
  times <- max(1L, min(1000L, as.integer(1e-3 / max(first, 1e-7))))
  min(first, vapply(seq_len(if (first > 0.1) 1L else if (first > 0.01) 3L else 9L),
                    function(k) series(times), 0))
}
