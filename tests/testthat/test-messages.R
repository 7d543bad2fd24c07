# Every error, warning and message that a user can reach, in messages/<topic>.txt: R code, with what
# a call raises below it, after "#> ". Assignments prepare calls. Two calls are there only if their
# messages differ by more than values. After a change of wording, STATCL_UPDATE_MESSAGES=1 writes
# the files again: read the difference.

folder <- test_path("messages")

# The conditions of one call as lines, or "(nothing is raised)".
conditions_of <- function(call, home) {
  lines <- character()
  note <- function(kind, e) {
    message <- strsplit(sub("\n$", "", conditionMessage(e)), "\n", fixed = TRUE)[[1L]]
    if (length(message) == 0L) message <- ""
    lines <<- c(lines, paste0("#> ", kind, ": ", message[1L]),
                if (length(message) > 1L) paste0("#>   ", message[-1L]))
  }
  # with the argument at fault, if it is not the first name that the message has in quotes
  kind_of <- function(e, other) {
    class <- grep("^statcl_(error|warning|message)_", class(e), value = TRUE)
    if (length(class) == 0L) return(other)
    named <- is.null(e$argument) || startsWith(conditionMessage(e), sprintf("'%s'", e$argument))
    paste0(sub("^statcl_", "", class[1L]), if (!named) sprintf(" (%s)", e$argument))
  }
  tryCatch(
    withCallingHandlers(
      utils::capture.output(eval(call, home)),
      warning = function(w) {
        note(kind_of(w, "warning"), w)
        invokeRestart("muffleWarning")
      },
      message = function(m) {
        # an estimate of the remaining time, which a busy machine shows
        if (!grepl("^cl_sample\\(\\): about .* left", conditionMessage(m))) {
          note(kind_of(m, "message"), m)
        }
        invokeRestart("muffleMessage")
      }),
    error = function(e) note(kind_of(e, "error of R"), e))
  if (length(lines) == 0L) "#> (nothing is raised)" else lines
}

# The text of messages/<topic>.txt as it is now: `lines` with what each call raises.
message_lines <- function(lines) {
  lines <- grep("^#>", lines, value = TRUE, invert = TRUE)
  code <- parse(text = lines, keep.source = TRUE)
  ends <- vapply(attr(code, "srcref"), `[`, 0L, 3L)
  home <- new.env(parent = asNamespace("statcl"))
  for (i in seq_along(code)) {
    if (is_setup(code[[i]])) {
      eval(code[[i]], home)
    } else {
      lines[ends[i]] <- paste(c(lines[ends[i]], normalised(conditions_of(code[[i]], home))),
                              collapse = "\n")
    }
  }
  unlist(strsplit(paste(lines, collapse = "\n"), "\n", fixed = TRUE))
}

# Assignments to a name, rm() and options() prepare what follows.
is_setup <- function(call) {
  if (!is.call(call) || !is.name(call[[1L]])) return(FALSE)
  head <- as.character(call[[1L]])
  head %in% c("rm", "options") || (head == "<-" && is.name(call[[2L]]))
}

# Without the parts that differ between devices and versions of R.
normalised <- function(lines) {
  if (has_test_device()) {
    name <- device_table()$name[test_device() + 1L]
    lines <- gsub(name, "<device>", lines, fixed = TRUE)
    lines <- gsub(test_device_id(), "<id>", lines, fixed = TRUE)
  }
  lines <- sub("devices: .*$", "devices: <devices>", lines)
  lines <- sub("(no OpenCL device|needs an OpenCL device): .*$", "\\1: <reason>", lines)
  lines <- sub("R-hat [0-9.]+, smallest effective sample size [0-9]+",
               "R-hat <r>, smallest effective sample size <n>", lines)
  lines <- sub("at most [0-9]+ work-items", "at most <n> work-items", lines)
  lines <- sub("^(#> error_not_pd: .* is not positive) definite$", "\\1", lines)
  lines <- gsub("<(environment|bytecode): [^>]*>", "<\\1>", lines)
  lines
}

expect_messages <- function(topic) {
  old <- Sys.getenv("LANGUAGE", NA)
  Sys.setenv(LANGUAGE = "en")
  on.exit(if (is.na(old)) Sys.unsetenv("LANGUAGE") else Sys.setenv(LANGUAGE = old))
  set.seed(1)
  rm(list = ls(announced_copies), envir = announced_copies) # shown once a session
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off(), add = TRUE)
  file <- file.path(folder, paste0(topic, ".txt"))
  expected <- readLines(file)
  found <- message_lines(expected)
  if (identical(Sys.getenv("STATCL_UPDATE_MESSAGES"), "1")) writeLines(expected <- found, file)
  wrong <- which(found[seq_along(expected)] != expected | is.na(found[seq_along(expected)]))
  same <- length(found) == length(expected) && length(wrong) == 0L
  at <- c(wrong, length(expected) + 1L)[1L]
  expect(same, sprintf("messages/%s.txt:%d has\n%s\nbut now it is\n%s", topic, at, expected[at],
                       found[at]))
  expect_false(any(grepl("(nothing is raised)|error of R:", found)))
}

for (topic in c("matrix", "map", "batch", "glm", "glm-blocks", "gp", "cv", "sample", "session",
                "trace", "scan", "tmb", "stan", "fields")) local({
  topic <- topic
  test_that(paste("messages on", topic), {
    if (topic == "sample") for (package in c("loo", "bayesplot")) skip_if_not_installed(package)
    on_host(expect_messages(topic))
  })
})

test_that("messages on device", {
  on_device(expect_messages("device"))
})

# ---- no message is missing ----------------------------------------------------------------------

# Strings of the sources that become messages, as templates of sprintf(); only text with a space.
templates_of_r <- function(files) {
  raising <- c("statcl_abort", "statcl_warning", "warning", "message")
  found <- character()
  add <- function(e) {
    if (is.character(e)) found <<- c(found, e)
    if (!is.call(e)) return()
    head <- if (is.name(e[[1L]])) as.character(e[[1L]]) else ""
    pieces <- as.list(e)[-1L]
    if (head == "sprintf") return(add(pieces[[1L]]))
    if (head %in% c("paste", "paste0") && all(vapply(pieces, is.character, NA))) {
      return(add(do.call(head, pieces)))
    }
    if (head %in% c("paste", "paste0", "if", "{", "(")) for (piece in pieces) add(piece)
  }
  visit <- function(e) {
    if (is.call(e)) {
      head <- if (is.name(e[[1L]])) as.character(e[[1L]]) else ""
      if (startsWith(head, "abort_") || head %in% raising) for (piece in as.list(e)[-1L]) add(piece)
    }
    if (is.recursive(e) && !is.environment(e)) {
      for (piece in as.list(e)) if (!missing(piece)) visit(piece)
    }
  }
  for (file in files) for (e in parse(file, keep.source = FALSE)) visit(e)
  found
}

templates_of_c <- function(files) {
  text <- unlist(lapply(files, function(file) paste(readLines(file), collapse = " ")))
  literal <- '"([^"\\\\]|\\\\.)*"'
  names <- "scl_fail|scl_fail_argument|scl_fail_index|scl_stan_fail(_type)?|fail_[a-z]+"
  call <- sprintf("\\b(%s)\\([^;\"]*%s( *%s)*", names, literal, literal)
  calls <- unlist(regmatches(text, gregexpr(call, text, perl = TRUE)))
  # argument names come first: the message is the last run of literals
  rest <- regmatches(text, gregexpr(paste0("\\bscl_fail_argument\\(([^;\"]*", literal, "){1,2}( *",
                                           literal, ")*"), text, perl = TRUE))
  joined <- vapply(c(calls, unlist(rest)), function(call) {
    runs <- regmatches(call, gregexpr(sprintf("%s( *%s)*", literal, literal), call, perl = TRUE))
    last <- gsub('" *"', "", utils::tail(runs[[1L]], 1L))
    gsub('\\\\"', '"', substr(last, 2L, nchar(last) - 1L))
  }, "")
  unname(joined)
}

# The messages of the reader of Stan programs that the tests of the core expect, a line each.
stan_messages <- function(root) {
  lines <- unlist(lapply(file.path(root, "tests", "core", c("stan_faults.def", "stan_slips.def")),
                         readLines))
  text <- gsub('" *"', "", paste(lines, collapse = " "))
  gsub("STAN_FAULT", "\n", gsub('\\\\"', '"', text), fixed = TRUE)
}

# Whether a message made from the template is among the lines.
is_shown <- function(template, lines) {
  pieces <- strsplit(template, "%[-0-9.*]*(ll|l|z)?[a-z]", perl = TRUE)[[1L]]
  pieces <- trimws(pieces, "right", "\n")
  lines <- grep(pieces[which.max(nchar(pieces))], lines, fixed = TRUE, value = TRUE)
  escaped <- gsub("([][{}()+*^$|\\\\?.])", "\\\\\\1", pieces)
  any(grepl(paste(escaped, collapse = ".*"), lines))
}

test_that("every message of the sources is in these files or listed as unreachable", {
  root <- normalizePath(file.path(test_path(), "..", ".."))
  if (!file.exists(file.path(root, "src", "r"))) skip("the sources are not here")
  c_files <- list.files(file.path(root, "src"), "[.]c$", recursive = TRUE, full.names = TRUE)
  templates <- c(templates_of_r(list.files(file.path(root, "R"), full.names = TRUE)),
                 templates_of_c(c_files))
  templates <- unique(gsub("\n", "", grep(" ", templates, value = TRUE), fixed = TRUE))
  expect_gt(length(templates), 300L)
  text <- unlist(lapply(list.files(folder, "[.]txt$", full.names = TRUE), readLines))
  text <- c(grep("^#>", text, value = TRUE), strsplit(stan_messages(root), "\n")[[1L]])
  listed <- grep("^#|^$", readLines(file.path(folder, "unreachable")), value = TRUE, invert = TRUE)
  shown <- vapply(templates, is_shown, NA, lines = text)
  expect_identical(setdiff(templates[!shown], listed), character())
  # the list contains nothing else
  expect_identical(setdiff(listed, templates[!shown]), character())
})
