# Functions whose trace by cl_map() is known: a second call with base R operands on the host engine
# does not trace them again.
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
           "abs", "sign", "sqrt", "ceiling", "floor", "trunc", "round", "exp", "expm1", "log",
           "log1p", "log2", "log10", "cos", "cosh", "sin", "sinh", "tan", "tanh", "acos", "acosh",
           "asin", "asinh", "atan", "atanh", "cospi", "sinpi", "tanpi", "gamma", "lgamma",
           "digamma", "trigamma", "beta", "lbeta", "choose", "lchoose", "atan2", "pmin", "pmax",
           "is.na", "is.nan", "is.finite", "is.infinite"),
  stats = c("dnorm", "pnorm", "qnorm", "plogis"),
  statcl = c("cl_ifelse", "cl_inv_logit", "cl_log1p_exp", "cl_pnorm", "cl_erf", "cl_erfc",
             "cl_atan2", "lbeta", "choose", "lchoose", "atan2", "pmin", "pmax", "dnorm", "pnorm",
             "qnorm", "plogis"))

known_most <- 16L # functions

known <- new.env(parent = emptyenv())
known$maps <- list() # as r_map_find() has them, the last one traced first

# The value of cl_map(f, ...) as a list of one, or NULL if this way is not open, where
# r_map_quick() does not know f or may not run it.
map_known <- function(f, operands) {
  shape <- .Call(r_map_shape, operands)
  if (is.null(shape) || !is.function(f) || where_for("arith", shape[3L]) >= 0L) return()
  entry <- .Call(r_map_find, known$maps, f, operands)
  if (is.null(entry)) {
    entry <- known_trace(f, names(operands), length(operands))
    known$maps <- c(list(entry), known$maps[seq_len(min(length(known$maps), known_most - 1L))])
  }
  if (!is.null(entry$template)) list(.Call(r_map_run, entry, operands))
}

known_trace <- function(f, names, count) {
  # What was not pure may become so: then it is traced in each call nevertheless.
  entry <- list(f = without_environment(f), names = names, count = count, template = NULL,
                reads = known_reads(f), results = FALSE)
  if (is.null(entry$reads)) return(entry)
  elements <- lapply(seq_len(count), function(k) {
    element(new_cl(.Call(r_matrix_constant, 0, 2, 2, -1L), c(2L, 2L)))
  })
  names(elements) <- names
  inputs <- list(elements = elements, dim = c(2L, 2L), base = TRUE, vector = FALSE, names = NULL)
  result <- trace_call(f, inputs, "f")
  if (is.list(result)) entry["results"] <- list(names(result)) else result <- list(result)
  handles <- lapply(result, function(x) {
    if (is_constant(x)) as.double(x) else trace_matrix(x, inputs, "f")@handle
  })
  template <- .Call(r_map_template, lapply(elements, function(x) x@all@handle), unname(handles))
  if (!is.null(template)) entry$template <- template
  entry
}

# The names that a trace of f may read, and their values: a list of list(symbols, values,
# environment or NULL for that of f). NULL if the trace may depend on anything else. Nothing large
# is kept: functions that f calls are those of the global environment, of a package, or of the
# environment of f, and are kept without the last.
known_reads <- function(f) {
  if (is_known_pure(f)) return(list())
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
  for (package in names(known_pure)) {
    names <- known_pure[[package]]
    for (n in if (is.null(name)) names else intersect(name, names)) {
      if (identical(f, get(n, asNamespace(package)))) return(TRUE)
    }
  }
  FALSE
}

is_plain_value <- function(x) {
  if (isS4(x) || length(x) > 1000L) return(FALSE)
  if (is.list(x)) return(all(vapply(x, is_plain_value, NA)))
  is.null(x) || is.atomic(x)
}
