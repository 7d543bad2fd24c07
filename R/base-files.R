# Files that the package writes. Only plain files of this user are read, changed or deleted; links
# are not followed.

# As scl_path_kind of src/base/files.h: 0 nothing, 1 a plain file, 2 a folder, 3 anything else.
path_kinds <- function(paths) .Call(r_path_kinds, path.expand(paths))
is_own_file <- function(paths) path_kinds(paths) == 1L
is_own_folder <- function(paths) path_kinds(paths) == 2L

# unlink() would take names for patterns.
remove_own <- function(files) {
  invisible(suppressWarnings(file.remove(files[is_own_file(files)])))
}

# ---- files with a digest ------------------------------------------------------------------------

# A mark, a digest of 32 digits, and a serialised value, which is looked at only if the digest is
# right: damaged bytes can end R.
checked_mark <- charToRaw("statcl-1")

# Whether there is no such file, or one that write_checked() has at least begun.
is_replaceable <- function(path) {
  kind <- path_kinds(path)
  if (kind != 1L) return(kind == 0L)
  begin <- readBin(path, "raw", length(checked_mark))
  identical(begin, checked_mark[seq_along(begin)])
}

# Writes a complete file under another name, which then takes its name.
write_checked <- function(data, file, part = paste0(file, ".part")) {
  for (path in c(part, file)) {
    if (!is_replaceable(path)) stop(sprintf("'%s' is another file", path))
  }
  on.exit(remove_own(part))
  bytes <- serialize(data, NULL, xdr = FALSE)
  to <- file(part, "wb")
  tryCatch({
    writeBin(c(checked_mark, charToRaw(.Call(r_digest, bytes))), to)
    serialize(data, to, xdr = FALSE) # writeBin() takes 2^31 bytes at most
  }, finally = close(to))
  if (file.size(part) != length(bytes) + 40) stop("there is no room for it")
  if (!file.rename(part, file)) stop("it cannot be renamed")
  on.exit()
}

# The value in a file; NULL if it is damaged or something else.
read_checked <- function(file) {
  tryCatch(suppressWarnings({
    size <- file.size(file) - 40
    from <- file(file, "rb")
    parts <- tryCatch({
      head <- readBin(from, "raw", 40L)
      lapply(seq(0, max(0, size), by = 2^30), function(at) {
        readBin(from, "raw", min(2^30, size - at))
      })
    }, finally = close(from))
    bytes <- do.call(c, parts)
    right <- c(checked_mark, charToRaw(.Call(r_digest, bytes)))
    if (identical(head, right)) unserialize(bytes)
  }), error = function(e) NULL)
}
