# The session: the engine and device in use.
#
# `where` is an integer that C understands: -1L for the host, else the index of a device in the list
# of the loader, counted from 0.

session <- new.env(parent = emptyenv())
session$engine <- "auto"      # what cl_use() was given
session$device <- NULL        # likewise; NULL: option, environment, default
session$emulate <- "auto"     # likewise, see cl_use()
session$devices <- NULL       # the list of cl_devices(), once asked for
session$default <- NULL       # default_device() of that list
session$fit <- integer()      # devices that have passed their trial
session$unfit <- list()       # why devices cannot be used, by `where`
session$least <- NULL         # least thresholds of all devices, see least_limit()
session$listed_by <- NULL     # process that asked for the devices
session$opened_by <- NULL     # process that first used a device
session$tuned <- list()       # measured by cl_tune(), by device id
session$saved <- NULL         # what cl_tune(save = TRUE) wrote, once read
session$blas_said <- FALSE    # see say_slow_blas()
session$build_factor <- NULL  # less than 1 if programs are kept, see build_factor()
session$built <- character()  # devices and operations, see is_built()
session$owed <- list()        # seconds that the host has spent above the threshold, by operation
session$lost <- list()        # seconds of attempts on a device that lacked kernels, by operation
session$asked <- list()       # those of the last one, if threads then began to build
session$times <- list()       # of calls by engine, operation and size, see is_slower()
session$crowded <- list()     # of the host without all cores, see note_time()
session$begins <- FALSE       # whether threads began to build after the last one of all
session$waits <- character()  # operations whose kernels are being built in the background
session$refused <- list()     # messages of kernels that do not compile, by operation
session$chosen <- list()      # the engine of a fit in progress, by operation
session$notes <- list()       # what where_for() chose last, by operation, see engine_note()
# numbers in force and their sources, by device id (R/base-thresholds.R)
session$settled <- list()

# ---- devices ------------------------------------------------------------------------------------

#' OpenCL devices
#'
#' `cl_devices()` lists every device of every OpenCL platform. `cl_available()` reports whether the
#' session has a device that statcl uses without being asked to: a GPU with double precision, or the
#' device named by [cl_use()], the option `statcl.device` or the environment variable
#' `STATCL_DEVICE`. If there is none, neither raises an error or prints anything.
#'
#' @return `cl_devices()`: a data frame with one row for each device and columns `id`
#'   ("platform:device", counted from 0), `name`, `vendor`, `platform`, `type` ("gpu", "cpu",
#'   "accelerator"), `fp64`, `memory` (bytes), `units` (compute units), `largest` (bytes of the
#'   largest buffer), `host_memory` (whether it shares the host's memory), `driver`, `version` and
#'   `default` (`TRUE` for the device in use). `cl_available()`: `TRUE` or `FALSE`.
#' @seealso [cl_use()], [cl_sitrep()]
#' @export
#' @examples
#' cl_devices()
#' cl_available()
cl_devices <- function() {
  devices <- device_table()
  devices$default <- seq_len(nrow(devices)) == current_device() + 1L
  devices[c("id", "name", "vendor", "platform", "type", "fp64", "memory", "units", "largest",
            "host_memory", "driver", "version", "default")]
}

#' @rdname cl_devices
#' @export
cl_available <- function() current_device() >= 0L

device_table <- function() {
  if (is.null(session$devices)) {
    prepare_devices()
    session$devices <- as.data.frame(.Call(r_devices), stringsAsFactors = FALSE)
  }
  session$devices
}

# Once, before drivers are asked for devices.
prepare_devices <- function() {
  if (!is.null(session$listed_by)) return()
  # A folder of changed kernels can be tried without another installation.
  kernels <- Sys.getenv("STATCL_KERNELS")
  packed <- !nzchar(kernels)
  if (packed) kernels <- installed_kernels()
  cache_start()
  .Call(r_set_kernels, kernels, packed, driver_cache())
  session$listed_by <- Sys.getpid()
}

# All kernel sources in one text, which configure has written and compressed. (readLines() takes
# three times as long.)
installed_kernels <- function() {
  file <- gzfile(system.file("kernels.txt.gz", package = "statcl"), "rb")
  on.exit(close(file))
  some <- function() readBin(file, "raw", 2^20)
  text <- part <- some()
  while (length(part) > 0L) text <- c(text, part <- some())
  rawToChar(text)
}

# The default device: GPUs with double precision, those with dedicated memory first, then by memory
# size. -1 if there is none: a CPU device is used only on request.
default_device <- function(devices = device_table()) {
  usable <- unless_unfit(which(devices$type == "gpu" & devices$fp64 & devices$compiler))
  if (length(usable) == 0L) return(-1L)
  best <- order(devices$host_memory[usable], -devices$memory[usable])[1L]
  usable[best] - 1L
}

# Rows of the table without those of devices that cannot be used, as is known since they were tried.
unless_unfit <- function(rows) setdiff(rows, as.integer(names(session$unfit)) + 1L)

# The requested device: from cl_use(), option or environment variable; "" if none.
requested_device <- function() {
  if (!is.null(session$device)) return(session$device)
  option <- getOption("statcl.device")
  if (!is.null(option)) return(option)
  Sys.getenv("STATCL_DEVICE", "")
}

# `where` of the device in use in this session, -1 for none.
current_device <- function() {
  if (session$engine == "host") return(-1L)
  spec <- requested_device()
  if (!identical(spec, "")) return(find_device(spec))
  where <- session$default
  if (is.null(where)) where <- session$default <- default_device()
  if (where < 0L && session$engine == "device") where <- any_device()
  where
}

# The first device of any type with double precision, for users who select the device engine; one
# that cannot be used if there is no other, so that they get its error.
any_device <- function() {
  devices <- device_table()
  usable <- which(devices$fp64 & devices$compiler)
  usable <- c(unless_unfit(usable), usable)
  if (length(usable) == 0L) -1L else usable[1L] - 1L
}

# A device by id ("1:0"), row number, type ("gpu", "cpu"), or a part of its name; "host" is -1.
find_device <- function(spec) {
  if (identical(spec, "host")) return(-1L)
  devices <- device_table()
  n <- nrow(devices)
  rows <- integer()
  if (is.numeric(spec) && length(spec) == 1L && !is.na(spec)) {
    rows <- if (spec == round(spec) && spec >= 1 && spec <= n) as.integer(spec) else integer()
  } else if (is.character(spec) && length(spec) == 1L && !is.na(spec) && validUTF8(spec)) {
    rows <- which(devices$id == spec)
    if (length(rows) == 0L) rows <- which(devices$type == tolower(spec))
    if (length(rows) == 0L) rows <- grep(tolower(spec), tolower(devices$name), fixed = TRUE)
    if (length(rows) > 1L) { # order() takes a tenth of a millisecond
      rows <- rows[order(!devices$fp64[rows], devices$host_memory[rows], -devices$memory[rows])]
    }
  } else {
    abort_argument("device", paste("'device' must be one device: its id, number, type or part of",
                                   "its name"))
  }
  if (length(rows) == 0L) {
    if (n == 0L && forked()) .Call(r_sync, 0L) # raises the error of a child, if it has no list
    known <- paste(sprintf("\"%s\" (%s)", devices$id, devices$name), collapse = ", ")
    statcl_abort("no_device", sprintf("no OpenCL device matches '%s'; devices: %s", format(spec),
                                      if (n == 0L) paste("none:", no_device_reason()) else known))
  }
  rows[1L] - 1L
}

# ---- choosing -----------------------------------------------------------------------------------

#' Choose the engine and the device
#'
#' By default statcl uses a GPU with double precision, if there is one, for problems above the sizes
#' of [cl_thresholds()], and otherwise the host with R's BLAS and LAPACK. A compiled function
#' ([cl_gradient()]) runs where an evaluation is estimated to take less time; its `print()` shows
#' both estimates. Nobody waits for a driver, which takes tenths of a second to open a device and
#' seconds to build kernels: see below. `cl_use()` changes this for the session, `with_cl()` for one
#' expression. Without them the option `statcl.device` and then
#' the environment variable `STATCL_DEVICE` name the device; both accept the values of `device`.
#'
#' Empty environment variables count as unset.
#'
#' With `engine = "auto"` a thread lists the devices and opens the one in use, once the host has
#' spent two seconds on calls for which any device would do, or a compiled function would gain by
#' one, and the host computes until it is open.
#' Only a call that would take the host at least twice as long as that waits, and so do functions
#' that ask for a device: `cl_devices()`, `cl_use()` of one, [as_cl()].
#'
#' Drivers compile kernels at their first use, which takes seconds. With `engine = "device"`, and
#' for operands on a device, the first calls wait; a message reports this once per session if it
#' takes more than a second, and `options(statcl.quiet = TRUE)` suppresses it. With `engine =
#' "auto"` threads build the kernels in the background, once the host has spent a fifth of the time
#' of a build on such calls, and only those that a call needs: the host computes until they stand,
#' then the device takes over, with the same results up to rounding. These threads use an eighth of
#' the cores, at least one and at most four, and OpenBLAS leaves them these cores. On Linux they get
#' only the time that the host leaves, for a second and a half and unless other processes want all
#' cores (then OpenBLAS leaves them a core only if there are four or more); after that, and on other
#' systems, they have a low priority. Objects take the data along: an optimiser of a
#' [cl_gp_likelihood()] or a compiled function moves between two evaluations, a fit or a sampler
#' stays where it began. A call waits for kernels only if the host is estimated to take at least
#' twice as long as the build. What does not compile stays on the host ([cl_sitrep()] says so). A
#' process that ends waits for the program that is being built. (POCL, an OpenCL for CPUs, compiles
#' a part of each kernel when it is first run, which no thread can do before.)
#'
#' `print()` and `summary()` of fits and `print()` of compiled functions say in a line which engine
#' did the work, and why; [cl_sitrep()] says it for operations.
#'
#' OpenCL does not survive a fork. In a forked child ([parallel::mclapply()]) of a process that has
#' looked for devices (including by [cl_available()]), the default engine is the host. A device that
#' was named explicitly gives the error `statcl_error_fork`.
#'
#' @param device An id as in [cl_devices()] (`"0:1"`), a row number of that table, a type (`"gpu"`,
#'   `"cpu"`), a part of a name, `"host"` for none, or `NULL` for the option, the environment
#'   variable or the default.
#' @param engine `"auto"` chooses by cost; `"device"` sends everything to the
#'   device (including a CPU OpenCL device, if there is no other); `"host"` uses no device.
#' @param emulate Whether a device computes products in double precision by products of 8-bit
#'   integers, see below: `TRUE` wherever they can be, `FALSE` nowhere, `"auto"` where [cl_tune()]
#'   has found that they are faster. `NULL` in `with_cl()`: as before.
#' @param expr An expression, evaluated with these settings.
#' @return `cl_use()`: the previous settings, a list for `do.call(cl_use, ...)`, invisibly.
#'   `with_cl()`: the value of `expr`.
#' @section Products by 8-bit integers:
#' Many GPUs multiply 8-bit integers hundreds of times as fast as numbers in double precision. A
#' product of matrices can be computed by them: the rows of one factor and the columns of the other
#' are scaled by powers of two and rounded to whole numbers, whose product is computed exactly, from
#' its remainders by 14 to 16 moduli. The error of an element is proportional to the norms of its
#' row and its column: for `k` random terms about one unit of rounding (1.1e-16) times these norms,
#' at most about `sqrt(k)` such units. The usual product has about the same error, and less where
#' what is large in the row meets what is small in the column. The number of moduli is chosen so
#' that the error is within four times the usual product's on average over each row and each column
#' of the result, as a sample of 64 columns or rows shows it. Where even 16 would not do, and where
#' an element is not finite, the usual product is computed. Single elements, or a block of them, can
#' have a larger error than that: elements that are very small next to the norms of their row and
#' column may have no correct digit, where the usual product is exact to the last ones. Use
#' `emulate = FALSE` if these matter. The same call gives the same bits. All functions take such
#' products in their steps, factors, inverses and Gaussian processes among them. Workspaces take up
#' to a quarter of the device's memory.
#' @section Errors:
#' `statcl_error_no_device` if no device matches, `statcl_error_no_fp64` if it has no double
#' precision. The settings are then unchanged. A device's arithmetic is tried when it is first
#' opened: if it is wrong, calls that use it raise `statcl_error_refused`, which says what is
#' wrong. Without `device`, `engine = "auto"` then uses another one or the host, and [cl_sitrep()]
#' says so.
#' @seealso [cl_devices()], [cl_sitrep()]
#' @export
#' @examples
#' old <- cl_use(engine = "host")
#' cl_chol(diag(4, 2))
#' do.call(cl_use, old)
#' with_cl(cl_matmul(diag(2), diag(2)), engine = "host")
cl_use <- function(device = NULL, engine = c("auto", "device", "host"), emulate = "auto") {
  engine <- check_choice(engine, c("auto", "device", "host"), "engine")
  if (!identical(emulate, "auto") && !isTRUE(emulate) && !isFALSE(emulate)) {
    abort_argument("emulate", "'emulate' must be TRUE, FALSE or \"auto\"")
  }
  old <- session_settings()
  restore <- TRUE
  on.exit(if (restore) restore_session(old))
  session$engine <- engine
  session$device <- device
  # the default device has double precision, and is looked for when a call is worth it
  where <- if (engine == "auto" && !names_device()) -1L else current_device()
  if (engine == "device" && where < 0L) {
    statcl_abort("no_device", paste("no OpenCL device:", no_device_reason()))
  }
  if (where >= 0L && !device_table()$fp64[where + 1L]) {
    this <- device_table()[where + 1L, ]
    statcl_abort("no_fp64", no_fp64_reason(this), device = this$name)
  }
  restore <- FALSE
  set_emulation(emulate)
  invisible(old)
}

session_settings <- function() {
  list(device = session$device, engine = session$engine, emulate = session$emulate)
}

set_emulation <- function(emulate) {
  session$emulate <- emulate
  .Call(r_emulate, if (identical(emulate, "auto")) -1L else as.integer(emulate))
}

no_fp64_reason <- function(device) {
  sprintf(paste("'%s (%s)' does not support double precision, in which statcl computes: use",
                "another device or the host"), device$name, device$id)
}

restore_session <- function(old) {
  session$engine <- old$engine
  session$device <- old$device
  set_emulation(old$emulate)
}

#' @rdname cl_use
#' @export
with_cl <- function(expr, device = NULL, engine = c("auto", "device", "host"),
                    emulate = NULL) {
  old <- session_settings()
  on.exit(restore_session(old))
  cl_use(if (is.null(device)) old$device else device, engine,
         if (is.null(emulate)) old$emulate else emulate)
  force(expr)
}

no_device_reason <- function() {
  info <- .Call(r_loader_info)
  if (nzchar(info$reason)) return(info$reason)
  if (nrow(device_table()) == 0L) "none was found" else "none has double precision"
}

# `where` for data that remains on the device: as_cl(), cl_likelihood().
where_resident <- function() {
  where <- current_device()
  if (where < 0L) return(-1L)
  if (session$engine == "auto" && forked() && !names_device()) return(-1L)
  mark_opened(where)
}

# A device that nobody has named is not used if it cannot be opened or computes wrongly, but the
# next best one, or the host; cl_sitrep() says why.
mark_opened <- function(where) {
  if (where >= 0L && session$engine == "auto" && !names_device() && nzchar(refusal_of(where))) {
    session$default <- default_device()
    return(mark_opened(session$default))
  }
  if (where < 0L) return(where)
  if (is.null(session$opened_by)) session$opened_by <- Sys.getpid()
  settle(where)
  where
}

# Why a device cannot be used, or "". Opens it; its arithmetic is tried when it is first opened.
refusal_of <- function(where) {
  if (where %in% session$fit) return("")
  refusal <- .Call(r_device_refusal, where)
  if (nzchar(refusal)) {
    session$unfit[[as.character(where)]] <- refusal
  } else {
    session$fit <- c(session$fit, where)
  }
  refusal
}

# Whether this is a forked child of a process that has listed devices: drivers then start threads,
# which a fork does not copy. Such a child uses the host engine; if the user has named a device, the
# core raises statcl_error_fork.
forked <- function() !is.null(session$listed_by) && session$listed_by != Sys.getpid()

names_device <- function() !identical(requested_device(), "")

# Called from C after one second of compiling kernels, once for each period of compiling.
announce_build <- function(device) {
  if (isTRUE(getOption("statcl.quiet"))) return()
  message(sprintf(paste("statcl: building kernels for %s, once per session%s: the first calls wait",
                        "for it"), device,
                  if (nzchar(cache_state$folder)) "" else " (see ?cl_cache)"))
}

# ---- memory and waiting -------------------------------------------------------------------------

#' Device memory, and waiting for the device
#'
#' `cl_memory()` reports the bytes that device matrices and workspaces hold. `cl_sync()` waits until
#' all work submitted to the device is complete; it is needed only for timing, because functions
#' that read values wait themselves. `cl_free(x)` frees a matrix at once (if pending expressions
#' need it, see [lazy], as soon as they are computed), or the factors that the session caches for
#' predictions from a [cl_gp()] fit. `cl_free()` collects garbage and returns cached memory (see
#' below) to the driver and the operating system, for other programs.
#'
#' R's garbage collector does not see device memory, so statcl runs it: when a device runs out of
#' memory, and while matrices are created and dropped. For matrices copied from R, of up to 16 MiB,
#' garbage is limited to 48 MiB or half of the memory in use. Because a collection takes as long as
#' many operations, a GPU with its own memory lets results and larger matrices accumulate, so that
#' collections take no more than a twentieth of the time, until they reach an eighth of its memory.
#' A long loop over small matrices on the host therefore takes some 80 MB more than it uses, and
#' then no more: those 48 MiB, and the garbage that R itself allows in its heap.
#'
#' The driver of a GPU takes longer to allocate a buffer than a short operation takes. Therefore
#' some of the memory released on a GPU, up to a sixteenth of its memory, is kept for the next
#' matrices and workspaces, and given up when memory runs short. Matrices of 1 to 16 MiB share
#' blocks of up to 128 MiB, which count as kept as far as no matrix occupies them. A CPU device
#' keeps nothing; the host keeps up to 64 MiB.
#'
#' The operating system clears new memory, which takes longer than a GPU takes to fill it. Therefore
#' base R results of 6 MiB and more reuse the memory of results that R has dropped: up to an eighth
#' of the machine's memory, which the system can reclaim whenever it needs to. It is reported under
#' `kept` for the host. R's collector does not see such results either, so statcl runs it when there
#' may be garbage of 1 GiB, or three such results, or half of the memory in use after the last
#' collection, but not more than a sixteenth of the machine's memory. With `options(statcl.recycle =
#' FALSE)` they use memory allocated by R. Only Linux and macOS have this feature.
#'
#' @param x A `clMatrix` or `clArray`, or a fit of [cl_gp()]; `NULL` for cached memory.
#' @return `cl_memory()`: a data frame with one row for each engine in use and columns `device`,
#'   `live`, `peak`, `kept`, `limit`, `largest` (bytes) and `buffers` (the number of live buffers).
#'   `kept`, which is not part of `live`, was released and is cached for reuse; `largest` is the
#'   size of the largest possible matrix, `NA` if unknown. The others: `NULL`, invisibly.
#' @export
#' @examples
#' x <- as_cl(diag(100))
#' cl_memory()
#' cl_free(x)
cl_memory <- function() {
  where <- current_device()
  engines <- if (where >= 0L && !forked()) c(-1L, where) else -1L
  values <- vapply(engines, function(w) .Call(r_memory, w), numeric(6L))
  unknown <- function(x) ifelse(x == 0, NA_real_, x)
  data.frame(device = c("host", device_table()$name[engines[engines >= 0L] + 1L]),
             live = values[1L, ], peak = values[2L, ], kept = values[6L, ],
             limit = unknown(values[4L, ]),
             largest = unknown(values[5L, ]), buffers = as.integer(values[3L, ]),
             stringsAsFactors = FALSE)
}

#' @rdname cl_memory
#' @export
cl_sync <- function() {
  where <- current_device()
  if (where >= 0L && !forked()) .Call(r_sync, where)
  invisible()
}
