# The rooms of R/, from the table in CONTRIBUTING.md: the first word of a file's name is its room,
# and a file uses names of its own room and of those above it in the table. Prints each violation,
# each name that is defined twice, and each call of a function that is defined nowhere.
# With the argument "sizes": files and lines by room.

# The names that an expression uses from outside: what it calls, and what it reads. A name that it
# binds (an argument, an assignment, the variable of a loop) is its own, but a call of it only if
# what it binds may be a function. The attribute "free" has the calls of what it binds nowhere.
uses <- function(e) {
  calls <- reads <- bound <- functions <- character()
  walk <- function(e) {
    if (is.pairlist(e)) for (part in as.list(e)) if (!missing(part)) walk(part)
    if (is.symbol(e)) reads <<- c(reads, as.character(e))
    if (!is.call(e)) return()
    head <- e[[1L]]
    name <- if (is.symbol(head)) as.character(head) else ""
    if (name == "function") {
      bound <<- c(bound, names(e[[2L]]))
      functions <<- c(functions, names(e[[2L]]))
      walk(e[[2L]])
      return(walk(e[[3L]]))
    }
    if (name %in% c("::", ":::", "quote", "~")) return()
    if (name %in% c("$", "@")) return(walk(e[[2L]]))
    if (name %in% c("<-", "=", "<<-", "for") && is.symbol(e[[2L]])) {
      bound <<- c(bound, as.character(e[[2L]]))
      if (is.call(e[[3L]])) functions <<- c(functions, as.character(e[[2L]])[
        identical(e[[3L]][[1L]], quote(`function`)) || name == "for"])
      for (part in as.list(e)[-(1:2)]) walk(part)
      return()
    }
    if (nzchar(name)) calls <<- c(calls, name) else walk(head)
    for (part in as.list(e)[-1L]) if (!missing(part)) walk(part)
  }
  walk(e)
  structure(unique(c(setdiff(calls, functions), setdiff(reads, bound))),
            free = setdiff(calls, bound))
}

table <- readLines("CONTRIBUTING.md")
rooms <- sub("^\\| `([a-z]+)-` \\|.*", "\\1", grep("^\\| `[a-z]+-` \\|", table, value = TRUE))
files <- list.files("R", "[.]R$")
room_of <- function(file) {
  if (file == "AllClasses.R") return("base")
  if (file == "statcl-package.R") return("zzz")
  sub("[-.].*", "", file)
}
room <- vapply(files, room_of, "", USE.NAMES = FALSE)
if (identical(commandArgs(TRUE), "sizes")) {
  lines <- vapply(file.path("R", files), function(f) length(readLines(f)), 0L)
  print(data.frame(room = rooms, files = as.vector(table(factor(room, rooms))),
                   lines = as.vector(tapply(lines, factor(room, rooms), sum))), row.names = FALSE)
  quit()
}
for (file in files[!room %in% rooms]) cat(sprintf("R/%s: no room of CONTRIBUTING.md\n", file))

home <- list()
parts <- list()
for (file in files) {
  for (e in as.list(parse(file.path("R", file), keep.source = FALSE))) {
    name <- ""
    if (is.call(e) && as.character(e[[1L]])[1L] %in% c("<-", "=") && length(e[[2L]]) == 1L) {
      name <- as.character(e[[2L]])
      if (!is.null(home[[name]])) {
        cat(sprintf("R/%s: '%s' is defined in R/%s too\n", file, name, home[[name]]))
      }
      home[[name]] <- file
      e <- e[[3L]]
    }
    parts[[length(parts) + 1L]] <- list(file = file, name = name, uses = uses(e))
  }
}
# Templates of code call names with a dot, and other(), which are put there before it runs.
imports <- Filter(function(e) grepl("^import", e[[1L]]), as.list(parse("NAMESPACE")))
packages <- unique(vapply(imports, function(e) as.character(e[[2L]]), ""))
known <- c(names(home), ls(baseenv(), all.names = TRUE), lapply(packages, getNamespaceExports),
           sub("^R_ENTRY\\((\\w+).*", "\\1", readLines("src/r/entries.def")), "other",
           recursive = TRUE)
for (part in parts) {
  for (name in grep("^[.]", setdiff(attr(part$uses, "free"), known), value = TRUE, invert = TRUE)) {
    cat(sprintf("R/%s: %s calls %s(), which is defined nowhere\n", part$file,
                if (nzchar(part$name)) part$name else "the file", name))
  }
}
level <- match(room, rooms)
names(level) <- files
for (part in parts) {
  for (name in intersect(part$uses, names(home))) {
    if (isTRUE(level[[home[[name]]]] > level[[part$file]])) {
      cat(sprintf("R/%s: %s uses %s() of R/%s, a room below\n", part$file,
                  if (nzchar(part$name)) part$name else "the file", name, home[[name]]))
    }
  }
}
