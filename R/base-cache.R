# Built programs kept between sessions, if the user says so.
#
# The folder holds `*.bin`, binaries of drivers (engine/cl/runtime/store.c), and `*.pocl`, each the
# files of one program in POCL's own cache. POCL's cache itself stays in the session's temporary
# folder: files are checked before they are put there, and collected when the session ends.

cache_state <- new.env(parent = emptyenv())
cache_state$folder <- ""     # in use by this session
cache_state$own <- FALSE     # whether POCL's cache is the session's
cache_state$known <- NULL    # POCL's files when the session began
cache_state$warned <- FALSE

cache_limits <- list(bytes = 64 * 2^20, days = 180)

#' Keep built programs between sessions
#'
#' OpenCL drivers compile kernels when they are first used, which takes seconds. `cl_cache(TRUE)`
#' keeps what they build in `tools::R_user_dir("statcl", "cache")`, for this session and all later
#' ones, until `cl_cache(FALSE)`, which also deletes these files. Without that, nothing is written
#' outside of the session's temporary folder.
#'
#' The option `statcl.cache` and then the environment variable `STATCL_CACHE` (`true` or `false`)
#' take precedence over the choice of an earlier call, which is saved in
#' `tools::R_user_dir("statcl", "config")`. R CMD check never uses the cache. If `POCL_CACHE_DIR` is
#' set, POCL keeps its programs there and not here.
#'
#' A file is named by source, options, device, driver and package version, and used only if its
#' length and digest are right; otherwise, the program is built again. The folder must be the user's
#' own and closed to others. Sessions share it. At the start of a session files older than 180 days
#' are deleted, and then the oldest ones until 64 MiB are left. What POCL has built is written when
#' the session ends. Nothing but plain files of the user's with such names is read, replaced or
#' deleted; links are not followed.
#'
#' @param on `TRUE` or `FALSE` to remember; `NULL` to ask.
#' @return A data frame with columns `on`, `source` ("cl_cache()", "option", "environment",
#'   "default", "R CMD check"), `folder`, `files` and `bytes`; invisibly, if `on` is given.
#' @seealso [cl_tune()]
#' @export
#' @examples
#' cl_cache()
cl_cache <- function(on = NULL) {
  if (is.null(on)) return(cache_report())
  on <- check_flag(on, "on")
  file <- cache_word_file()
  if (on && in_check()) {
    message("statcl: R CMD check uses no cache")
    return(invisible(cache_report()))
  }
  done <- if (on) {
    make_private(dirname(file)) && path_kinds(file) < 2L && tryCatch({
      writeLines("TRUE", file)
      TRUE
    }, error = function(e) FALSE, warning = function(w) FALSE)
  } else {
    remove_cache()
    remove_own(file)
    path_kinds(file) == 0L
  }
  if (!done) warning(sprintf("statcl: '%s' cannot be changed", file), call. = FALSE)
  session$build_factor <- NULL
  if (!is.null(session$listed_by)) cache_start()
  invisible(cache_report())
}

cache_word_file <- function() file.path(user_folder("config"), "cache")
cache_folder <- function() user_folder("cache")
in_check <- function() nzchar(Sys.getenv("_R_CHECK_PACKAGE_NAME_"))

cache_report <- function() {
  folder <- cache_folder()
  bytes <- file.size(cache_files("(bin|pocl)$"))
  data.frame(on = cache_wanted(), source = cache_source(), folder = folder, files = length(bytes),
             bytes = sum(bytes), stringsAsFactors = FALSE)
}

cache_source <- function() {
  if (in_check()) return("R CMD check")
  if (!is.null(getOption("statcl.cache"))) return("option")
  if (nzchar(Sys.getenv("STATCL_CACHE"))) return("environment")
  if (file.exists(cache_word_file())) "cl_cache()" else "default"
}

cache_wanted <- function() {
  switch(cache_source(),
         option = check_flag(getOption("statcl.cache"), "statcl.cache"),
         environment = tolower(Sys.getenv("STATCL_CACHE")) %in% c("true", "1", "yes", "on"),
         "cl_cache()" = TRUE, FALSE)
}

# ---- the folder ---------------------------------------------------------------------------------

# Makes a folder that only its owner can enter; whether it is one, and this user's.
make_private <- function(folder) {
  dir.create(folder, showWarnings = FALSE, recursive = TRUE, mode = "0700")
  if (!is_own_folder(folder)) return(FALSE)
  Sys.chmod(folder, "0700", use_umask = FALSE)
  file.access(folder, 2L) == 0L
}

# The folders of versions of the package, and the files there whose names are those of programs.
cache_folders <- function() {
  if (!is_own_folder(cache_folder())) return(character())
  folders <- list.files(cache_folder(), "^[0-9]+([.-][0-9]+)+$", full.names = TRUE)
  folders[is_own_folder(folders)]
}

cache_files <- function(end = "(bin|pocl|part)$") {
  files <- list.files(cache_folders(), end, full.names = TRUE)
  ours <- "^([0-9a-f]{32}[.]bin|.+-[0-9a-f]{32}[.]pocl)([.][0-9a-f-]+[.]part)?$"
  files <- files[grepl(ours, basename(files))]
  files[is_own_file(files)]
}

# Folders that are then empty are deleted too.
remove_cache <- function() {
  folders <- c(cache_folders(), cache_folder())
  remove_own(cache_files())
  for (folder in folders[is_own_folder(folders)]) {
    left <- list.files(folder, all.files = TRUE, no.. = TRUE)
    if (length(left) == 0L) unlink(folder, recursive = TRUE, expand = FALSE)
  }
}

# Begins or ends the use of the folder in this session, before drivers are asked for devices.
cache_start <- function() {
  folder <- ""
  first <- is.null(session$listed_by)
  if (first) cache_state$own <- !nzchar(Sys.getenv("POCL_CACHE_DIR"))
  if (cache_wanted()) {
    version <- as.character(utils::packageVersion("statcl"))
    folder <- file.path(cache_folder(), version)
    if (!make_private(cache_folder()) || !make_private(folder)) {
      if (!cache_state$warned) {
        warning(sprintf(paste("statcl: '%s' is not a folder of yours that can be written, so",
                              "programs are not kept"), folder), call. = FALSE)
      }
      cache_state$warned <- TRUE
      folder <- ""
    }
  }
  if (nzchar(folder)) {
    prune_cache()
    if (first && cache_state$own) restore_pocl(folder)
    if (!nzchar(cache_state$folder)) reg.finalizer(cache_state, collect_pocl, onexit = TRUE)
  }
  cache_state$folder <- folder
  .Call(r_set_store, folder)
}

# Deletes files that are old or exceed the limit of size, of all versions.
prune_cache <- function(limits = cache_limits) {
  files <- cache_files()
  info <- file.info(files, extra_cols = FALSE)
  age <- as.numeric(difftime(Sys.time(), info$mtime, units = "days"))
  part <- grepl("[.]part$", files)
  newest <- order(age)
  much <- logical(length(files))
  much[newest] <- cumsum(info$size[newest]) > limits$bytes
  remove_own(files[which(age > limits$days | (part & age > 1) | much)])
}

# ---- POCL ---------------------------------------------------------------------------------------

# The default folder of POCL's cache: in the session's temporary folder, so that nothing remains.
driver_cache <- function() {
  folder <- file.path(tempdir(), "statcl-driver-cache")
  dir.create(folder, showWarnings = FALSE)
  folder
}

# Machine code is for one kind of processor: it is part of the names.
processor <- function() {
  lines <- tryCatch(readLines("/proc/cpuinfo", n = 40L), error = function(e) "",
                    warning = function(w) "")
  digest_text(c(grep("^(flags|Features|model name|CPU part)", lines, value = TRUE),
                R.version$platform))
}

digest_text <- function(text) .Call(r_digest, charToRaw(paste(text, collapse = "\n")))

pocl_files <- function() {
  files <- list.files(driver_cache(), recursive = TRUE)
  files <- files[!grepl("tempfile", files)]
  # POCL's folders of two levels, one for each program
  split(files, sub("^([^/]*)/([^/]*)/.*", "\\1\\2", files))
}

read_raw <- function(file) readBin(file, "raw", file.size(file))

restore_pocl <- function(folder) {
  to <- driver_cache()
  for (file in grep(paste0(processor(), "[.]pocl$"), cache_files("pocl$"), value = TRUE)) {
    if (dirname(file) != folder) next
    data <- unpack_checked(file)
    if (is.null(data)) remove_own(file)
    for (name in names(data)) {
      path <- file.path(to, name)
      dir.create(dirname(path), showWarnings = FALSE, recursive = TRUE)
      writeBin(data[[name]], path)
    }
  }
  cache_state$known <- lapply(pocl_files(), length)
}

# A list of raw vectors; NULL if the file is damaged, or a name leads out of the folder.
unpack_checked <- function(file) {
  data <- read_checked(file)
  if (any(grepl("^/|[.][.]", names(data)))) NULL else data
}

# At the end of the session: writes the programs that POCL has built or extended. What cannot be
# written is built again next time.
collect_pocl <- function(...) {
  folder <- cache_state$folder
  if (!nzchar(folder) || !cache_state$own || forked()) return(invisible())
  found <- pocl_files()
  kind <- processor()
  for (program in names(found)) {
    files <- found[[program]]
    if (identical(cache_state$known[[program]], length(files))) next
    to <- file.path(folder, paste0(program, "-", kind, ".pocl"))
    if (!try_write(to, lapply(stats::setNames(file.path(driver_cache(), files), files), read_raw)))
      break
    cache_state$known[[program]] <- length(files)
  }
}

# Writes the file; FALSE if that was not possible.
try_write <- function(file, data) {
  part <- tempfile(paste0(basename(file), "."), dirname(file), ".part")
  failed <- function(e) FALSE
  tryCatch({
    write_checked(data, file, part)
    TRUE
  }, error = failed, warning = failed)
}
