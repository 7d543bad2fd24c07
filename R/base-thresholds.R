# Sizes from which a device is used for base R input, and parameters of kernels. Each number comes
# from, in order: the option statcl.thresholds, cl_tune() in this session, what it has saved, the
# row of inst/tuning.csv for this device, the row for any device of its type.

threshold_table <- data.frame(
  op = c("chol", "chol_adjoint", "matmul", "tri_solve", "tri_inverse", "arith", "glm", "glm_wide",
         "glm_fit", "likelihood", "covariance", "gp", "batch", "program"),
  unit = c("rows", "rows", "harmonic mean of m, n, k", "harmonic mean of n, n, columns", "rows",
           "elements", "rows, to 31 columns", "elements of x, from 32 columns",
           "rows times (columns + 25)", "rows times (columns + 25)", "rows (geometric mean)",
           "rows", "order cubed times matrices", "microseconds of the host a launch"),
  stringsAsFactors = FALSE)

# The size of products and solves, proportional to the operations for each number transferred.
harmonic_mean <- function(dim) length(dim) / sum(1 / dim)

geometric_mean <- function(m, n) if (is.null(n)) m else sqrt(as.numeric(m) * n)

#' Problem sizes from which the device is used
#'
#' The engine is chosen by cost. Base R input must first be transferred to the device, so that the
#' device is faster only above a certain size: the threshold of the operation. Device matrices
#' ([as_cl()]) always stay where they are. A CPU OpenCL device is never preferred to R's BLAS unless
#' [cl_tune()] has found it faster: its thresholds are `Inf`. The option `statcl.thresholds`, a
#' named numeric vector, overrides single entries.
#'
#' A threshold is where both engines take equally long once the device is open and its kernels are
#' built, which takes seconds. Above it the host computes until its own time for such calls would be
#' worth that; then kernels are built in the background, and the device takes over when they stand
#' ([cl_use()]). A call waits for them only if the host would take at least twice as long. An entry
#' of the option holds at once. If later calls on the device take longer than calls of the same kind
#' and of about the same size took on the host, the shortest and in the mean, such calls return to
#' the host: a threshold may be wrong for this machine. The kind of a call is its operation, and
#' what else its time depends on, such as the family of a model. Likelihoods (of dense predictors)
#' and exact Gaussian processes that have only been on the device are evaluated on the host a few
#' times, for comparison, if it is estimated to be about as fast.
#'
#' Compiled functions ([cl_gradient()], [cl_tmb()], [cl_stan()]) have no threshold: their time on
#' each engine is estimated from their operations, and the device must save more in the evaluations
#' to come than its kernels take to build. The entry `program` is what the device takes for a
#' launch, in microseconds, from which its time is estimated; `Inf`: compiled functions stay on the
#' host. `print()` of fits and compiled functions says which engine was taken, and why.
#'
#' `source` says where a number comes from: `"option"`; `"session"`, measured by [cl_tune()] in this
#' session; `"saved"`, by an earlier one; `"shipped"`, known for devices of this name; `"default"`,
#' for devices of this type. Saved numbers apply to the same device, driver and version of statcl,
#' thresholds also to the same BLAS and number of cores.
#'
#' @param kernels Whether to show the parameters of kernels instead: how work is shared among the
#'   units of the device. They change no result beyond rounding. The option sets them too.
#' @return A data frame with columns `op`, `unit`, `threshold` and `source`. For kernels `name`,
#'   `value`, `default`, `permitted`, `source` and `meaning`.
#' @export
#' @examples
#' cl_thresholds()
#' old <- options(statcl.thresholds = c(chol = 3000))
#' cl_thresholds()
#' options(old)
cl_thresholds <- function(kernels = FALSE) {
  kernels <- check_flag(kernels, "kernels")
  where <- current_device()
  known <- if (where < 0L) settle_layers(list(option = threshold_option())) else settle(where)
  op <- threshold_table$op
  if (kernels) {
    own <- tunables()
    return(data.frame(name = own$name, value = unname(known$value[own$name]),
                      default = own$default,
                      permitted = vapply(own$permitted, paste, "", collapse = " "),
                      source = unname(known$source[own$name]), meaning = own$meaning,
                      stringsAsFactors = FALSE))
  }
  data.frame(op = op, unit = threshold_table$unit, threshold = unname(known$value[op]),
             source = unname(known$source[op]), stringsAsFactors = FALSE)
}

threshold_option <- function() {
  option <- getOption("statcl.thresholds")
  if (is.null(option)) return(NULL)
  if (!is.numeric(option) || is.null(names(option)) || anyNA(option)) {
    abort_argument("statcl.thresholds", "option 'statcl.thresholds' must be a named numeric vector")
  }
  option
}

threshold <- function(op, where) settle(where)$value[[op]]

# The numbers in force for a device, and their sources: two named vectors.
settle <- function(where) {
  id <- device_table()$id[where + 1L]
  known <- session$settled[[id]]
  option <- getOption("statcl.thresholds")
  if (!is.null(known) && identical(known$option, option)) return(known)
  device <- device_table()[where + 1L, ]
  known <- settle_layers(c(shipped_tuning(device),
                           list(saved = saved_tuning(device), session = session$tuned[[id]],
                                option = threshold_option())))
  known["option"] <- list(option)
  names <- tunables()$name
  .Call(r_tune, where, names, unname(known$value[names]))
  session$settled[[id]] <- known
}

# From named vectors, each of which takes precedence over those before it. Unknown names and values
# that are not permitted are ignored.
settle_layers <- function(layers) {
  op <- threshold_table$op
  own <- tunables()
  value <- stats::setNames(c(rep(Inf, length(op)), own$default), c(op, own$name))
  source <- replace(value, TRUE, "default")
  for (layer in names(layers)) {
    entries <- layers[[layer]]
    right <- vapply(seq_along(entries), function(k) {
      at <- match(names(entries)[k], own$name)
      if (is.na(at)) names(entries)[k] %in% op && isTRUE(entries[[k]] >= 0) else
        entries[[k]] %in% own$permitted[[at]]
    }, NA)
    entries <- entries[right]
    if (length(entries) == 0L) next
    value[names(entries)] <- entries
    source[names(entries)] <- layer
  }
  list(value = value, source = source)
}

tunables <- function() {
  if (is.null(session$parameters)) session$parameters <- .Call(r_tunables)
  session$parameters
}

# ---- shipped ------------------------------------------------------------------------------------

# The rows of the table for this device: those for any device of its type, those for its name.
shipped_tuning <- function(device, table = shipped) {
  named <- nzchar(table$device)
  fits <- (table$type == "" | table$type == device$type) &
    vapply(table$device, grepl, NA, x = device$name, ignore.case = TRUE)
  lapply(list(default = fits & !named, shipped = fits & named), function(use) {
    Reduce(function(all, k) {
      all[if (table$name[k] == "*") threshold_table$op else table$name[k]] <- table$value[k]
      all
    }, which(use), numeric())
  })
}

shipped_table <- function(file = system.file("tuning.csv", package = "statcl")) {
  columns <- list(device = "", type = "", name = "", value = "", origin = "")
  table <- scan(file, columns, sep = ",", quote = "\"", comment.char = "#", quiet = TRUE,
                na.strings = character())
  table <- as.data.frame(table, stringsAsFactors = FALSE)[-1L, ] # without the header
  table$value <- as.numeric(table$value)
  table
}

# The table is read when the package is installed: a small first call would notice the time.
shipped <- shipped_table()

# The least number of each name.
least_values <- function(table) vapply(split(table$value, table$name), min, 0)
shipped_least <- least_values(shipped)

# ---- saved --------------------------------------------------------------------------------------

# The folder of tools::R_user_dir(). To load 'tools' takes longer than a small call.
user_folder <- function(kind) {
  if (!Sys.info()[["sysname"]] %in% c("Linux", "FreeBSD")) return(tools::R_user_dir("statcl", kind))
  set <- Sys.getenv(sprintf(c("R_USER_%s_DIR", "XDG_%s_HOME"), toupper(kind)))
  home <- file.path(normalizePath("~"), c(config = ".config", cache = ".cache")[[kind]])
  file.path(c(set[nzchar(set)], home)[1L], "R", "statcl")
}

tuning_file <- function() file.path(user_folder("config"), "tuning.csv")

no_tuning <- data.frame(device = character(), driver = character(), source = character(),
                        host = character(), name = character(), value = numeric(),
                        stringsAsFactors = FALSE)

# What a saved number holds for. `source`: version and kernels; `host`: what thresholds compare to.
tuning_key <- function(device) {
  blas <- blas_facts()
  data.frame(device = device$name, driver = device$driver,
             source = digest_text(c(as.character(utils::packageVersion("statcl")),
                                    installed_kernels())),
             host = sprintf("%s, %s, %d cores", blas$name, basename(blas$blas),
                            parallel::detectCores()), stringsAsFactors = FALSE)
}

# The saved numbers of all devices. The first line has a digest of the others; an invalid file
# counts as empty, with a warning.
read_tuning <- function(file = tuning_file()) {
  if (!file.exists(file)) return(no_tuning)
  saved <- tryCatch({
    lines <- readLines(file)
    if (identical(lines[1L], paste("#", digest_text(lines[-1L])))) {
      utils::read.csv(text = lines[-1L], stringsAsFactors = FALSE,
                      colClasses = vapply(no_tuning, class, ""))
    }
  }, error = function(e) NULL, warning = function(w) NULL)
  if (identical(names(saved), names(no_tuning))) return(saved)
  warning(sprintf("statcl: '%s' is damaged and is ignored; cl_tune(save = TRUE) writes it again",
                  file), call. = FALSE)
  no_tuning
}

# Replaces the entries of these names for this device and host, also those of other drivers and
# versions. Written under another name and renamed; whether that was possible.
save_tuning <- function(device, values, file = tuning_file()) {
  key <- tuning_key(device)
  saved <- read_tuning(file)
  same <- saved$device == key$device & saved$host == key$host & saved$name %in% names(values)
  added <- cbind(key[rep(1L, length(values)), ], name = names(values), value = unname(values))
  part <- tempfile("tuning", dirname(file), ".part")
  done <- tryCatch({
    dir.create(dirname(file), showWarnings = FALSE, recursive = TRUE)
    text <- utils::capture.output(utils::write.csv(rbind(saved[!same, ], added),
                                                   row.names = FALSE))
    writeLines(c(paste("#", digest_text(text)), text), part)
    path_kinds(file) < 2L && file.rename(part, file)
  }, error = function(e) FALSE, warning = function(w) FALSE)
  session$saved <- NULL
  session$settled <- list()
  if (done) {
    message("statcl: measurements for ", device$name, " saved in ", file)
  } else {
    remove_own(part)
    warning(sprintf("statcl: '%s' cannot be written", file), call. = FALSE)
  }
  done
}

# The saved numbers for this device, driver, version and, for thresholds, host.
saved_tuning <- function(device) {
  if (is.null(session$saved)) session$saved <- read_tuning()
  saved <- session$saved[session$saved$device == device$name, ]
  if (nrow(saved) == 0L) return(NULL)
  key <- tuning_key(device)
  holds <- saved$driver == key$driver & saved$source == key$source &
    (saved$host == key$host | !saved$name %in% threshold_table$op)
  stats::setNames(saved$value[holds], saved$name[holds])
}

# The BLAS and LAPACK of the host engine, and whether it is the slow reference version.
blas_facts <- function() {
  blas <- tryCatch(extSoftVersion()[["BLAS"]], error = function(e) "")
  lapack <- tryCatch(La_library(), error = function(e) "")
  path <- if (nzchar(blas)) suppressWarnings(normalizePath(blas)) else ""
  fast <- c(OpenBLAS = "openblas", MKL = "mkl", BLIS = "blis", ATLAS = "atlas",
            Accelerate = "veclib|accelerate", ArmPL = "armpl", FlexiBLAS = "flexiblas")
  known <- function(paths) names(fast)[vapply(fast, function(f) any(grepl(f, tolower(paths))), NA)]
  hit <- known(path)
  if (length(hit) == 0L) hit <- known(loaded_libraries()) # a library under another's name
  reference <- length(hit) == 0L && grepl("blas", tolower(basename(path)))
  name <- if (length(hit)) hit[1L] else if (reference) "reference BLAS (slow)" else "unknown"
  advice <- if (reference) blas_advice()
  list(name = name, blas = blas, lapack = lapack, reference = reference, advice = advice)
}

blas_advice <- function(system = Sys.info()[["sysname"]]) {
  paste("R runs on the slow reference BLAS:", switch(
    system,
    Darwin = paste("use Apple's Accelerate (in the folder R.home(\"lib\"): ln -sf",
                   "libRblas.vecLib.dylib libRblas.dylib)"),
    Windows = "replace Rblas.dll, next to R.dll, by that of OpenBLAS",
    "install OpenBLAS (Debian, Ubuntu: libopenblas0-pthread)"))
}

# Says once that BLAS is slow, when the host begins with what takes a second there.
say_slow_blas <- function(op, size, times) {
  seconds <- host_seconds[[op]]
  if (session$blas_said || is.null(seconds)) return()
  if (!isTRUE(times * (seconds(size, 1e-9) - seconds(size, 0)) >= 1)) return()
  session$blas_said <- TRUE
  advice <- blas_facts()$advice
  if (!is.null(advice) && !isTRUE(getOption("statcl.quiet"))) message("statcl: ", advice)
}

# File names, without folders, of the shared libraries in this process, where the system lists them
# (Linux).
loaded_libraries <- function() {
  maps <- tryCatch(readLines("/proc/self/maps"), error = function(e) character(),
                   warning = function(w) character())
  unique(basename(grep("\\.so", maps, value = TRUE)))
}
