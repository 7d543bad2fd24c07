# Programs kept between sessions, in folders of the test's own.

# Environment variables of a session whose folders are in `home`.
cache_env <- function(home, ..., said = "true") {
  c(paste0("R_USER_CACHE_DIR=", home, "/cache"), paste0("R_USER_CONFIG_DIR=", home, "/config"),
    paste0("STATCL_CACHE=", said), "_R_CHECK_PACKAGE_NAME_=", "POCL_CACHE_DIR=", ...)
}

kept_files <- function(home, kind = "[.](pocl|bin)$") {
  list.files(file.path(home, "cache"), kind, recursive = TRUE, full.names = TRUE)
}

# A session that uses one small kernel; it counts the warnings.
cached_work <- function() c(
  "warned <- 0L",
  "withCallingHandlers({",
  "  library(statcl)",
  sprintf("  cl_use('%s', engine = 'device')", test_device_id()),
  "  x <- as_cl(matrix(1:6 / 7, 2))",
  "  stopifnot(identical(as.matrix(x + 0.5), matrix(1:6 / 7, 2) + 0.5))",
  "}, warning = function(w) { warned <<- warned + 1L; invokeRestart('muffleWarning') })",
  "cat('right', warned)")

expect_right <- function(result, warnings = 0L) {
  expect_identical(result$status, 0L, info = paste(result$output, collapse = "\n"))
  expect_match(result$output, paste("right", warnings), all = FALSE)
}

require_pocl <- function() {
  require_device()
  skip_on_cran()
  where <- test_device()
  if (!grepl("Portable", device_table()$platform[where + 1L])) skip("not POCL")
}

new_home <- function() {
  home <- tempfile("home")
  dir.create(home)
  home
}

test_that("without the word nothing is written, with it the next session finds its programs", {
  require_pocl()
  home <- new_home()
  expect_right(run_r(cached_work(), cache_env(home, said = "false")))
  expect_length(list.files(home, all.files = TRUE, no.. = TRUE), 0L)
  expect_right(run_r(cached_work(), cache_env(home)))
  files <- kept_files(home)
  expect_gt(length(files), 0L)
  expect_identical(as.character(file.mode(dirname(files[1L]))), "700")
  written <- file.mtime(files)
  expect_right(run_r(cached_work(), cache_env(home)))
  expect_identical(file.mtime(kept_files(home)), written) # nothing new was built
  check <- cache_env(home)
  expect_right(run_r(c(cached_work(), "stopifnot(!cl_cache()$on)"),
                     c(check[!grepl("_R_CHECK", check)], "_R_CHECK_PACKAGE_NAME_=statcl")))
  # estimates of a build look for the files once, and again after a change of mind
  estimates <- c("library(statcl)", "cat('builds take', statcl:::build_factor(), '')",
                 "unlink(statcl:::cache_files())", "cat(statcl:::build_factor(), '')",
                 "cl_cache(FALSE)", "cat(statcl:::build_factor())")
  expect_match(run_r(estimates, cache_env(home))$output, "builds take 0.1 0.1 1", all = FALSE)
})

test_that("the word is remembered, an option overrides it, and FALSE deletes", {
  skip_on_cran()
  home <- new_home()
  env <- cache_env(home, said = "")
  code <- c("library(statcl)", "a <- cl_cache()", "b <- cl_cache(TRUE)", "c <- cl_cache()",
            "options(statcl.cache = FALSE)", "d <- cl_cache()",
            "cat(a$on, a$source, b$on, c$source, d$on, d$source)",
            "r <- tryCatch(cl_cache(NA), statcl_error_argument = function(e) cat(' refused'))")
  expect_match(run_r(code, env)$output, "FALSE default TRUE cl_cache() FALSE option refused",
               fixed = TRUE, all = FALSE)
  later <- c("library(statcl)", "cat(cl_cache()$on, '')", "cl_cache(FALSE)", "cat(cl_cache()$on)")
  expect_match(run_r(later, env)$output, "TRUE FALSE", all = FALSE)
  expect_length(list.files(home, recursive = TRUE), 0L)
})

test_that("damaged, truncated, foreign and old files are not used", {
  require_pocl()
  home <- new_home()
  run <- function() expect_right(run_r(cached_work(), cache_env(home, "STATCL_KEEP_BINARIES=1")))
  run()
  files <- kept_files(home)
  expect_setequal(sub(".*[.]", "", files), c("bin", "pocl"))
  sizes <- file.size(files)
  change <- list(
    truncated = function(b) b[seq_len(length(b) %/% 2L)],
    damaged = function(b) { b[length(b) - 100L] <- xor(b[length(b) - 100L], as.raw(1)); b },
    longer = function(b) c(b, as.raw(0)),
    empty = function(b) raw())
  for (how in full_or_quick(names(change), c("truncated", "damaged"))) {
    for (file in files) writeBin(change[[how]](readBin(file, "raw", file.size(file))), file)
    run()
    expect_identical(file.size(files), sizes, info = how) # built and written again
  }
  Sys.setFileTime(files[1L], Sys.time() - 200 * 86400)
  part <- paste0(files[1L], ".1-1.part") # of a process that was killed
  writeBin(raw(10), part)
  Sys.setFileTime(part, Sys.time() - 2 * 86400)
  run()
  expect_setequal(kept_files(home, "."), files)
  expect_gt(as.numeric(file.mtime(files[1L])), as.numeric(Sys.time() - 86400))
})

test_that("a folder that cannot be used gives one warning, a full disk none", {
  require_pocl()
  home <- new_home()
  writeLines("a file", file.path(home, "cache"))
  expect_right(run_r(cached_work(), cache_env(home)), 1L)
  unlink(file.path(home, "cache"))
  # a function that cannot write stands for the full disk
  folder <- file.path(home, "cache", "R", "statcl", as.character(packageVersion("statcl")))
  dir.create(folder, recursive = TRUE)
  full <- c("trace(statcl:::write_checked, quote(writeBin <- function(...) stop('full')),",
            "      where = asNamespace('statcl'), print = FALSE)")
  expect_right(run_r(append(cached_work(), full, 3L), cache_env(home)))
  expect_length(kept_files(home, "pocl"), 0L) # the verdict on the device is not written by R
})

# The command that puts a file system into the folder of the cache, for one session only; a skip
# where this user may not.
mounted_cache <- function(home, options) {
  folder <- file.path(home, "cache")
  dir.create(folder)
  mount <- sprintf("mount -t tmpfs -o %s tmpfs %s", options, shQuote(folder))
  may <- tryCatch(system2("unshare", c("-m", "sh", "-c", shQuote(mount)), stdout = FALSE,
                          stderr = FALSE) == 0L, error = function(e) FALSE,
                  warning = function(w) FALSE)
  if (!may) skip("file systems cannot be mounted here")
  mount
}

test_that("on a full or read-only file system results are right, with at most one warning", {
  require_pocl()
  nothing <- c("kept <- list.files(Sys.getenv('R_USER_CACHE_DIR'), '(bin|part)$',",
               "                   recursive = TRUE)",
               "stopifnot(length(kept) == 0L)")
  for (options in c("size=16k", "ro")) {
    home <- new_home()
    mount <- mounted_cache(home, options)
    code <- c(cached_work(), nothing)
    expect_right(run_r(code, cache_env(home, "STATCL_KEEP_BINARIES=1"), mount = mount),
                 if (options == "ro") 1L else 0L)
  }
})

test_that("a full temporary folder is an error, not the end of R, and room helps", {
  require_pocl()
  home <- new_home()
  mount <- mounted_cache(home, "size=17m")
  code <- c("library(statcl)", "fill <- file.path(dirname(tempdir()), 'fill')",
            "writeBin(raw(2^21), fill)",
            sprintf("cl_use('%s', engine = 'device')", test_device_id()),
            "e <- tryCatch(sum(as_cl(1:6)), statcl_error_build = conditionMessage)",
            "stopifnot(grepl('POCL needs room for 16 MB', e))", "file.remove(fill)",
            "stopifnot(sum(as_cl(1:6)) == 21)", "cat('right 0')")
  env <- cache_env(home, paste0("TMPDIR=", home, "/cache"), said = "false")
  expect_right(run_r(code, env, mount = mount))
})

test_that("of a process that is killed while it writes nothing is used", {
  require_pocl()
  home <- new_home()
  kill <- c("trace(statcl:::write_checked, quote(writeBin <- function(object, con) {",
            "  base::writeBin(object, con)",
            "  flush(con)",
            "  tools::pskill(Sys.getpid(), 9)",
            "}), where = asNamespace('statcl'), print = FALSE)")
  killed <- run_r(append(cached_work(), kill, 3L), cache_env(home))
  expect_match(killed$output, "right 0", all = FALSE)
  expect_false(killed$status == 0L)
  part <- kept_files(home, "pocl")
  expect_match(part, "[.]part$")
  expect_gt(file.size(part[1L]), 0)
  expect_right(run_r(cached_work(), cache_env(home)))
  expect_gt(length(kept_files(home)), 0L)
  expect_true(all(file.exists(part))) # another process may still write it, for a day
})

test_that("files of another version of the package are not used", {
  require_pocl()
  home <- new_home()
  expect_right(run_r(cached_work(), cache_env(home, "STATCL_KEEP_BINARIES=1")))
  now <- dirname(kept_files(home)[1L])
  older <- file.path(dirname(now), "0.0.1")
  file.rename(now, older)
  wrong <- list.files(older, "[.]bin$", full.names = TRUE)
  before <- file.mtime(wrong)
  expect_right(run_r(cached_work(), cache_env(home, "STATCL_KEEP_BINARIES=1")))
  expect_setequal(basename(list.files(now)), list.files(older)) # built again
  expect_identical(file.mtime(wrong), before)
})

test_that("processes share a cold cache, and one is killed meanwhile", {
  require_pocl()
  home <- new_home()
  script <- tempfile(fileext = ".R")
  writeLines(cached_work(), script)
  n <- full_or_quick(8L, 3L)
  env <- c(cache_env(home, "STATCL_KEEP_BINARIES=1"),
           paste0("R_LIBS=", paste(.libPaths(), collapse = ":")))
  one <- paste("env", paste(shQuote(env), collapse = " "),
               shQuote(file.path(R.home("bin"), "Rscript")), "--vanilla", shQuote(script))
  logs <- file.path(home, paste0("log", seq_len(n)))
  all <- c(paste(one, ">", logs, "2>&1 &"), paste("timeout -s KILL 1.5", one, "> /dev/null 2>&1 &"),
           "wait")
  system2("sh", c("-c", shQuote(paste(all, collapse = "\n"))), stdout = FALSE, stderr = FALSE)
  for (log in logs) expect_match(readLines(log, warn = FALSE), "right 0", all = FALSE)
  expect_length(kept_files(home, "[.]part$"), 0L)
  expect_gt(length(kept_files(home)), 0L)
  expect_right(run_r(cached_work(), cache_env(home, "STATCL_KEEP_BINARIES=1")))
})

# With the folder of the cache in `home`, in this session.
with_cache_in <- function(home, code) {
  old <- Sys.getenv("R_USER_CACHE_DIR", NA)
  Sys.setenv(R_USER_CACHE_DIR = home)
  on.exit(if (is.na(old)) Sys.unsetenv("R_USER_CACHE_DIR") else Sys.setenv(R_USER_CACHE_DIR = old))
  code
}

own_names <- function(n) {
  digits <- vapply(seq_len(n), function(k) digest_text(k), "")
  file.path(cache_folder(), "1.2.3", paste0(digits, rep_len(c(".bin", ".bin.1-1.part"), n)))
}

test_that("the oldest of too many files are deleted", {
  with_cache_in(new_home(), {
    files <- c(own_names(3L)[c(1L, 3L)], file.path(cache_folder(), "1.2.3", paste0(
      "BLABLA-", digest_text(""), ".pocl")))
    dir.create(dirname(files[1L]), recursive = TRUE)
    for (k in 1:3) {
      writeBin(raw(100), files[k])
      Sys.setFileTime(files[k], Sys.time() - 3600 * k)
    }
    prune_cache(list(bytes = 250, days = 180))
    expect_identical(file.exists(files), c(TRUE, TRUE, FALSE))
    prune_cache(list(bytes = 250, days = 1.5 / 24))
    expect_identical(file.exists(files), c(TRUE, FALSE, FALSE))
  })
})

test_that("nothing but plain files of this user's with our names is followed, changed or deleted", {
  skip_on_os("windows")
  home <- new_home()
  with_cache_in(home, {
    thesis <- file.path(home, "thesis")
    dir.create(thesis)
    Sys.chmod(thesis, "0755", use_umask = FALSE)
    kept <- file.path(thesis, c("1.bin", basename(own_names(1L))))
    # the folder of the cache, and one of a version, are links
    dir.create(dirname(cache_folder()), recursive = TRUE)
    file.symlink(thesis, cache_folder())
    expect_false(make_private(cache_folder()))
    dir.create(file.path(thesis, "1.2.3"))
    kept <- c(kept, file.path(thesis, "1.2.3", basename(own_names(1L))))
    for (file in kept) writeLines("keep", file)
    clean <- function() {
      prune_cache(list(bytes = 0, days = 0))
      remove_cache()
    }
    clean()
    file.remove(cache_folder())
    dir.create(cache_folder())
    file.symlink(file.path(thesis, "1.2.3"), file.path(cache_folder(), "1.2.3"))
    expect_false(make_private(file.path(cache_folder(), "1.2.3")))
    clean()
    expect_identical(as.character(file.mode(c(thesis, dirname(kept[3L])))), c("755", "755"))
    file.remove(file.path(cache_folder(), "1.2.3"))
    # files of others, links and folders next to ours
    dir.create(file.path(cache_folder(), "1.2.3"))
    own <- own_names(6L)
    for (file in own[1:2]) writeLines("ours", file)
    file.symlink(kept[1L], own[3L])
    dir.create(own[5L])
    other <- file.path(cache_folder(), c("1.2.3/results.bin", "x.part", "1.2.3/[0-9a-f]*.bin"))
    if (file.info(home)$uid == 0) { # root can give a file away
      other <- c(other, own[6L])
      writeLines("foreign", own[6L])
      system2("chown", c("65534", shQuote(own[6L])))
    }
    for (file in setdiff(other, own)) writeLines("keep", file)
    expect_setequal(cache_files(), own[1:2])
    clean()
    expect_identical(file.exists(own[1:2]), c(FALSE, FALSE))
    expect_true(all(file.exists(c(kept, other, own[5L]))))
    expect_identical(Sys.readlink(own[3L]), kept[1L])
    for (file in c(kept, own[3L])) expect_identical(readLines(file), "keep")
  })
})

test_that("a file with a flipped bit is not read, and no other file is written over", {
  file <- tempfile(fileext = ".pocl")
  data <- list("AB/CD/x" = as.raw(0:99))
  expect_true(try_write(file, data))
  expect_identical(unpack_checked(file), data)
  bytes <- read_raw(file)
  for (k in seq(1L, 8L * length(bytes), by = full_or_quick(1L, 7L))) {
    at <- (k + 7L) %/% 8L
    flipped <- bytes
    flipped[at] <- xor(bytes[at], as.raw(2^(k %% 8L)))
    writeBin(flipped, file)
    if (!is.null(read_checked(file))) fail(sprintf("bit %d", k))
  }
  writeBin(bytes[-length(bytes)], file)
  expect_null(read_checked(file))
  writeBin(c(bytes, as.raw(0)), file)
  expect_null(read_checked(file))
  expect_null(read_checked(tempdir()))
  writeLines("mine", file)
  expect_false(try_write(file, data))
  expect_identical(readLines(file), "mine")
  skip_on_os("windows")
  link <- tempfile()
  file.symlink(file, link)
  expect_error(write_checked(data, tempfile(), link), "another file")
  expect_error(write_checked(data, link), "another file")
  expect_identical(readLines(file), "mine")
  expect_identical(Sys.readlink(link), file)
})
