#' Measure from which size the device is faster
#'
#' Times each operation on base R input on the host and on the device in use at increasing sizes,
#' including transfers. The size from which the device is faster becomes the threshold of this
#' session ([cl_thresholds()]).
#'
#' With `save = TRUE` the thresholds are also written to the file `thresholds.csv` in
#' `tools::R_user_dir("statcl", "config")`, under the name of the device. They replace those saved
#' for the same operations, and later sessions use them; a message names the file. Otherwise nothing
#' is written. To discard saved thresholds, delete the file. The option `statcl.thresholds` takes
#' precedence over both.
#'
#' @param ops Names of operations as in [cl_thresholds()]; those that can be measured are `"chol"`,
#'   `"chol_adjoint"`, `"matmul"`, `"tri_solve"`, `"tri_inverse"`, `"glm"`, `"covariance"`,
#'   `"batch"`.
#' @param seconds Approximate time for each operation.
#' @param verbose Whether to print each measurement.
#' @param save Whether to save the result for later sessions.
#' @return The named vector of measured thresholds, invisibly; `Inf` where the device was never
#'   faster. Without a device there is a message, and the vector is empty.
#' @export
#' @examples
#' \donttest{
#' cl_tune("chol", seconds = 1)
#' }
cl_tune <- function(ops = NULL, seconds = 5, verbose = interactive(), save = FALSE) {
  known <- names(tune_tasks())
  ops <- if (is.null(ops)) known else ops
  if (!is.character(ops) || anyNA(ops) || !all(ops %in% known)) {
    choices <- paste0("\"", known, "\"", collapse = ", ")
    abort_argument("ops", paste("'ops' must be one or more of", choices))
  }
  seconds <- check_number(seconds, "seconds", lower = 0.01)
  verbose <- check_flag(verbose, "verbose")
  save <- check_flag(save, "save")
  where <- current_device()
  if (where < 0L) {
    message("statcl: there is no device to tune for; see cl_sitrep()")
    return(invisible(numeric()))
  }
  measured <- vapply(ops, function(op) tune_one(op, tune_tasks()[[op]], seconds, verbose), 0)
  id <- device_table()$id[where + 1L]
  before <- as.list(session$thresholds[[id]])
  session$thresholds[[id]] <- utils::modifyList(before, as.list(measured))
  if (save) save_thresholds(device_table()$name[where + 1L], measured)
  invisible(measured)
}

# ---- kept thresholds ----------------------------------------------------------------------------

# One line for each device and operation, by device name, because ids can change with the drivers.
thresholds_file <- function() {
  file.path(tools::R_user_dir("statcl", "config"), "thresholds.csv")
}

no_thresholds <- data.frame(device = character(), op = character(), threshold = numeric(),
                            stringsAsFactors = FALSE)

# The saved thresholds of all devices. An invalid file counts as empty, with a warning.
read_thresholds <- function(file = thresholds_file()) {
  if (!file.exists(file)) return(no_thresholds)
  saved <- tryCatch(
    utils::read.csv(file, stringsAsFactors = FALSE,
                    colClasses = c(device = "character", op = "character", threshold = "numeric")),
    error = function(e) NULL, warning = function(e) NULL)
  right <- is.data.frame(saved) && identical(names(saved), names(no_thresholds)) &&
    !anyNA(saved$threshold)
  if (right) return(saved)
  warning(sprintf("statcl: '%s' contains no valid thresholds and is ignored", file), call. = FALSE)
  no_thresholds
}

save_thresholds <- function(device, measured) {
  file <- thresholds_file()
  saved <- read_thresholds(file)
  saved <- saved[!(saved$device == device & saved$op %in% names(measured)), ]
  added <- data.frame(device = rep(device, length(measured)), op = names(measured),
                      threshold = unname(measured), stringsAsFactors = FALSE)
  dir.create(dirname(file), showWarnings = FALSE, recursive = TRUE)
  utils::write.csv(rbind(saved, added), file, row.names = FALSE)
  session$saved <- NULL
  message("statcl: thresholds for ", device, " saved in ", file)
}

# Those of one device as a named vector; the file is read once a session.
saved_thresholds <- function(device) {
  if (is.null(session$saved)) {
    all <- read_thresholds()
    session$saved <- lapply(split(all, all$device), function(rows) {
      structure(rows$threshold, names = rows$op)
    })
  }
  session$saved[[device]]
}

# For each operation: sizes to try and, for a size, a function without arguments to time.
tune_tasks <- function() {
  spd <- function(n) diag(n, n) + 0.5^abs(outer(seq_len(n), seq_len(n), "-"))
  uniform <- function(n, p) matrix(stats::runif(n * p), n)
  rows <- 2^(7:12)
  task <- function(sizes, make) list(sizes = sizes, make = make)
  list(
    chol = task(rows, function(n) { a <- spd(n); function() cl_chol(a) }),
    chol_adjoint = task(rows, function(n) {
      l <- t(chol(spd(n)))
      function() cl_chol_adjoint(l, l)
    }),
    matmul = task(rows, function(n) { a <- uniform(n, n); function() cl_matmul(a, a) }),
    tri_solve = task(rows, function(n) {
      l <- t(chol(spd(n)))
      function() cl_tri_solve(l, l)
    }),
    tri_inverse = task(rows, function(n) { l <- t(chol(spd(n))); function() cl_tri_inverse(l) }),
    glm = task(10 * 4^(4:10), function(size) {
      x <- uniform(size / 10, 10)
      y <- as.numeric(stats::runif(size / 10) < 0.5)
      function() cl_glm_lpdf("bernoulli_logit", y, x, 0, numeric(10), gradient = c("alpha", "beta"))
    }),
    covariance = task(rows, function(n) {
      x <- uniform(n, 3)
      function() cl_cov(x, kernel = k_exp_quad())
    }),
    batch = task(16^3 * 4^(2:8), function(size) {
      a <- array(spd(16), c(16, 16, size / 16^3))
      function() cl_batch_inverse(a)
    }))
}

# The smallest size tried from which the device is faster at every larger size tried; Inf if none.
tune_one <- function(op, task, seconds, verbose) {
  faster <- logical()
  start <- proc.time()[["elapsed"]]
  for (size in task$sizes) {
    run <- task$make(size)
    host <- with_cl(median_seconds(run), engine = "host")
    device <- with_cl(median_seconds(run), engine = "device")
    faster <- c(faster, device < host)
    if (verbose) {
      cat(sprintf("%-13s %8.0f  host %9.3f ms  device %9.3f ms\n", op, size, 1e3 * host,
                  1e3 * device))
    }
    if (proc.time()[["elapsed"]] - start > seconds) break
  }
  slower <- which(!faster)
  first <- if (length(slower)) max(slower) + 1L else 1L
  if (first > length(faster)) Inf else task$sizes[first]
}

# Median of a few runs after one that compiles and warms up.
median_seconds <- function(run, times = 3L) {
  run()
  seconds <- function() as.numeric(Sys.time()) # proc.time() counts whole milliseconds
  stats::median(vapply(seq_len(times), function(i) {
    start <- seconds()
    run()
    seconds() - start
  }, 0))
}
