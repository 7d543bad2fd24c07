#' Report on this machine
#'
#' Prints how statcl was built, the OpenCL loader, platforms and devices found, the device in use
#' and the reason, the BLAS of the host engine, memory and options, and what to install if something
#' is missing. It never fails.
#'
#' @return A list with the printed information (`version`, `loader`, `devices`, `device`,
#'   `reason`, `refused`, `kernels`, `building`, `thresholds`, `blas`, `memory`, `options`,
#'   `advice`), of class `cl_sitrep`; printed unless it is assigned.
#' @seealso [cl_use()] to choose a device.
#' @export
#' @examples
#' cl_sitrep()
cl_sitrep <- function() {
  attempt <- function(expr, otherwise) tryCatch(expr, error = function(e) otherwise)
  devices <- attempt(cl_devices(), data.frame())
  attempt(mark_opened(current_device()), NULL) # tries it: another may then be in use
  loader <- attempt(.Call(r_loader_info)$loader, "") # listing devices has looked for it
  choice <- explain_choice()
  blas <- blas_facts()
  report <- list(
    version = attempt(as.character(utils::packageVersion("statcl")), ""),
    loader = loader, devices = attempt(cl_devices(), devices), device = choice$device,
    reason = choice$reason, refused = attempt(refusal_facts(devices), character()),
    kernels = attempt(kernel_facts(), NULL), thresholds = attempt(cl_thresholds(), NULL),
    building = attempt(list(programs = count_building(), choices = choice_facts()), NULL),
    blas = blas,
    memory = attempt(cl_memory(), data.frame()), options = option_facts(),
    advice = c(device_advice(loader, devices), blas$advice))
  structure(report, class = "cl_sitrep")
}

# Which device is in use and why; errors of the settings are part of the answer.
explain_choice <- function() {
  source <- if (!is.null(session$device)) "cl_use()" else
    if (!is.null(getOption("statcl.device"))) "option statcl.device" else
      if (nzchar(Sys.getenv("STATCL_DEVICE"))) "environment STATCL_DEVICE" else ""
  if (session$engine == "host") {
    return(list(device = "host", reason = "chosen by cl_use(engine = \"host\")"))
  }
  where <- tryCatch(current_device(), error = function(e) e)
  if (inherits(where, "error")) {
    return(list(device = "host", reason = paste0(source, ": ", conditionMessage(where))))
  }
  if (where < 0L) {
    reason <- if (nzchar(source)) paste("chosen by", source) else
      tryCatch(no_default_reason(), error = conditionMessage)
    return(list(device = "host", reason = reason))
  }
  device <- device_table()[where + 1L, ]
  reason <- if (nzchar(source)) paste("chosen by", source) else
    if (device$type == "gpu") "the best GPU with double precision" else
      "engine = \"device\" and no GPU"
  if (forked()) reason <- paste0(reason, "; this is a forked process, where no device can be used")
  list(device = sprintf("%s %s", device$id, device$name), reason = reason)
}

no_default_reason <- function() {
  devices <- device_table()
  if (nrow(devices) == 0L) return(no_device_reason())
  if (length(session$unfit) > 0L) return("the device is refused, see below")
  if (!any(devices$type == "gpu")) {
    return("no GPU found; a CPU OpenCL device is used only when asked for, as R's BLAS is faster")
  }
  "no GPU with double precision and a compiler"
}

# For the device in use: the reason why matrix instructions are not tried, or ""; and the programs
# with matrix instructions that were tried, with the reason if one was refused.
kernel_facts <- function() {
  where <- current_device()
  if (where < 0L || forked()) return(NULL)
  trials <- .Call(r_trials, where)
  list(reason = trials$reason,
       tried = data.frame(program = trials$program, refusal = trials$refusal))
}

# Why devices are not used: no double precision, or what was found when they were tried. A named
# one may be among them.
refusal_facts <- function(devices) {
  where <- current_device()
  if (where >= 0L && !forked()) refusal_of(where)
  without <- which(!devices$fp64)
  c(vapply(without, function(k) no_fp64_reason(devices[k, ]), ""),
    unlist(session$unfit[setdiff(names(session$unfit), without - 1L)], use.names = FALSE))
}

device_advice <- function(loader, devices) {
  if (!nzchar(loader)) {
    return(paste("install an OpenCL loader (Debian, Ubuntu: ocl-icd-libopencl1) and the driver of",
                 "your GPU"))
  }
  if (nrow(devices) == 0L) {
    return(paste("install the OpenCL driver of your GPU, or pocl-opencl-icd to try the device",
                 "engine on the CPU"))
  }
  NULL
}

option_facts <- function() {
  names <- c("statcl.device", "statcl.thresholds", "statcl.recycle")
  variables <- c("STATCL_DEVICE", "STATCL_MEMORY_LIMIT", "STATCL_COPY_THREADS", "STATCL_VARIANT",
                 "POCL_CACHE_DIR")
  set <- Filter(Negate(is.null), stats::setNames(lapply(names, getOption), names))
  env <- Sys.getenv(variables, NA)
  c(lapply(set, function(v) paste(format(v), collapse = " ")), as.list(env[!is.na(env)]))
}

#' @export
print.cl_sitrep <- function(x, ...) {
  line <- function(label, ...) cat(sprintf("%-9s", label), ..., "\n", sep = "")
  cat("statcl", x$version, "\n")
  line("loader", if (nzchar(x$loader)) x$loader else "none")
  line("in use", x$device, " (", x$reason, ")")
  line("host", x$blas$name, if (nzchar(x$blas$blas)) paste0(" (", x$blas$blas, ")"))
  if (NROW(x$devices)) {
    cat("devices\n")
    old <- options(width = 500L) # one line for each device
    on.exit(options(old))
    shown <- with(x$devices, data.frame(
      id = id, name = name, type = type, fp64 = ifelse(fp64, "yes", "no"),
      memory = format_bytes(memory), platform = platform, use = ifelse(default, "*", "")))
    print(shown, row.names = FALSE, right = FALSE)
  }
  for (refusal in x$refused) line("refused", refusal)
  if (!is.null(x$kernels)) {
    refused <- x$kernels$tried[nzchar(x$kernels$tried$refusal), ]
    line("kernels", if (nzchar(x$kernels$reason)) paste0("portable (", x$kernels$reason, ")") else
      sprintf("matrix instructions (%d programs tried, %d refused)", NROW(x$kernels$tried),
              NROW(refused)))
    for (i in seq_len(NROW(refused))) line("", refused$program[i], ": ", refused$refusal[i])
  }
  if (!is.null(x$building) && x$building$programs > 0L) {
    line("building", count_of(x$building$programs, "kernel program"), " in the background")
  }
  for (op in names(x$building$choices)) line("auto", op, ": ", x$building$choices[[op]])
  if (NROW(x$thresholds) && x$device != "host") {
    counts <- table(factor(x$thresholds$source, unique(x$thresholds$source)))
    line("sizes", paste(counts, names(counts), collapse = ", "), " (see ?cl_thresholds)")
  }
  if (NROW(x$memory)) {
    kept <- ifelse(x$memory$kept > 0, paste0(", ", format_bytes(x$memory$kept), " kept"), "")
    live <- paste0(x$memory$device, ": ", format_bytes(x$memory$live), " live", kept)
    line("memory", paste(live, collapse = "; "))
  }
  for (name in names(x$options)) line("setting", name, " = ", x$options[[name]])
  for (advice in x$advice) line("advice", advice)
  invisible(x)
}
