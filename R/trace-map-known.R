# Functions whose record by cl_map() or cl_reduce() is known: a second call does not trace them
# again.
#
# This is possible if a trace depends on nothing but the function, the variables that it reads, and
# these values: then all functions that it calls are in the list below or, like itself, the user's.
# src/r/map.c compares function and variables in each call.

# Functions whose result depends on their arguments only.
known_pure <- list(
  base = c("(", "{", "if", "for", "function", "return", "<-", "=", "[<-", "[[<-", "$<-", "[", "[[",
           "$", "+", "-", "*", "/", "^", "%%", "%/%", "==", "!=", "<", ">", "<=", ">=", "&", "|",
           "!", "&&", "||", ":", "c", "list", "seq_len", "seq_along", "length", "rep", "rev", "sum",
           "prod", "min", "max", "any", "all", "range", "Reduce", "lapply", "vapply", "sapply",
           "round", "log", "beta", "lbeta", "choose", "lchoose", "atan2", "pmin", "pmax", "is.na",
           "is.nan", "is.finite", "is.infinite", "ifelse", "while", "repeat", "break", "next",
           "switch", "identity", "invisible", "is.null", "is.function", "is.numeric", "as.numeric",
           "as.double", "mean", "numeric", "rep_len", "xor", "factorial", "lfactorial", "psigamma",
           "Map", "mapply"), # and device_functions
  stats = character(), # the densities, see R/zzz.R
  statcl = c("cl_ifelse", "cl_inv_logit", "cl_log1p_exp", "cl_pnorm", "cl_erf", "cl_erfc",
             "cl_atan2", "lbeta", "choose", "lchoose", "atan2", "pmin", "pmax", "dnorm", "pnorm",
             "qnorm", "plogis"))

known_most <- 16L # functions

known <- new.env(parent = emptyenv())
known$maps <- list() # as r_map_find() has them, the last one traced first

# The known trace of f: list(f, names, count, template, reads, results), as r_map_find() has them,
# and the record of f. Record and template are NULL if f must be traced in each call.
map_entry <- function(f, names, count, argument = "f") {
  entry <- .Call(r_map_find, known$maps, f, stats::setNames(vector("list", count), names))
  if (!is.null(entry)) return(entry)
  entry <- known_trace(f, names, count, argument)
  known$maps <- c(list(entry), known$maps[seq_len(min(length(known$maps), known_most - 1L))])
  entry
}

known_trace <- function(f, names, count, argument) {
  # A function that is not pure now may be later. It is still traced in each call.
  entry <- list(f = without_environment(f), names = names, count = count, template = NULL,
                reads = known_reads(f), results = FALSE, record = NULL)
  if (is.null(entry$reads)) return(entry)
  entry$record <- record <- record_map(f, names, count, argument)
  inputs <- list(matrices = lapply(seq_len(count), function(k) {
    new_cl(.Call(r_matrix_constant, 0, 2, 2, -1L), c(2L, 2L))
  }), dim = c(2L, 2L))
  entry["results"] <- list(record$names)
  results <- lapply(map_values(record, inputs), function(x) if (is_cl(x)) x@handle else x)
  template <- .Call(r_map_template, lapply(inputs$matrices, handle_of), results)
  if (!is.null(template)) entry$template <- template
  entry
}

# The names that a trace of f may read, and their values: a list of list(symbols, values,
# environment or NULL for that of f). NULL if the trace may depend on anything else. Nothing large
# is kept: functions that f calls are those of the global environment, of a package, or of the
# environment of f, and are kept without the last.
known_reads <- function(f) {
  if ((is.primitive(f) || isNamespace(environment(f))) && is_known_pure(f)) return(list())
  if (is.primitive(f)) return()
  done <- list()
  reads <- list()
  waiting <- list(f)
  while (length(waiting) > 0L) {
    g <- waiting[[1L]]
    done <- c(done, list(g))
    read <- values_read(g)
    if (is.null(read)) return()
    mine <- vapply(read, is.function, NA)
    mine[mine] <- !mapply(is_known_pure, read[mine], names(read)[mine])
    for (h in read[mine]) {
      home <- environment(h) # NULL for a primitive function
      if (!is_top(home) && !(is.environment(home) && identical(home, environment(f)))) return()
    }
    if (!all(vapply(read[!vapply(read, is.function, NA)], is_plain_value, NA))) return()
    done_before <- vapply(read[mine], function(h) any(vapply(done, identical, NA, h)), NA)
    waiting <- c(waiting[-1L], read[mine][!done_before])
    read[mine] <- lapply(read[mine], without_environment)
    home <- environment(g)
    reads[[length(reads) + 1L]] <-
      list(lapply(names(read), as.name), unname(read), if (is_top(home)) home)
  }
  reads
}

# Whether an environment lasts: the global one, or that of a package.
is_top <- function(env) identical(env, globalenv()) || isNamespace(env)

without_environment <- function(h) {
  if (!is.primitive(h) && !is_top(environment(h))) environment(h) <- emptyenv()
  h
}

# The values of the names in g; those without one are variables of g. NULL after an error.
values_read <- function(g) {
  read <- tryCatch(mget(names_read(g), envir = environment(g), inherits = TRUE,
                        ifnotfound = list(known)),
                   error = function(e) NULL)
  if (is.null(read)) return()
  read[!vapply(read, identical, NA, known)]
}

# The names in a function, without its arguments where they are not called.
names_read <- function(g) {
  code <- c(list(body(g)), formals(g))
  all <- unlist(lapply(code, all.names), use.names = FALSE)
  values <- unlist(lapply(code, all.names, functions = FALSE), use.names = FALSE)
  names <- unique(all)
  called <- names[tabulate(match(all, names), length(names)) >
                  tabulate(match(values, names), length(names))]
  if (any(c("<-", "=") %in% called)) called <- c(called, "[<-", "[[<-", "$<-")
  names <- setdiff(c(names, called), setdiff(names(formals(g)), called))
  names[nzchar(names) & names != "..."]
}

is_known_pure <- function(f, name = NULL) {
  if (is.null(known$pure)) {
    known$pure <- unlist(lapply(names(known_pure), function(package) {
      names <- c(known_pure[[package]], if (package == "base") device_functions)
      mget(names, envir = asNamespace(package), inherits = TRUE)
    }))
  }
  those <- if (is.null(name)) known$pure else known$pure[names(known$pure) == name]
  for (g in those) if (identical(f, g)) return(TRUE)
  FALSE
}

is_plain_value <- function(x) {
  if (isS4(x) || length(x) > 1000L) return(FALSE)
  if (is.list(x)) return(all(vapply(x, is_plain_value, NA)))
  is.null(x) || is.atomic(x)
}
