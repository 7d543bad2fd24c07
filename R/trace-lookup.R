# The meaning of names in a traced function. The function, and the user's functions that it calls by
# name, are copied with a new environment inserted before their own. It contains the replacements of
# R/trace-masks.R, for names that refer to functions of R there, and the copies. Nothing is masked
# on the search path, and functions of packages are not changed.

# Whether a function is R's, this package's or RTMB's function of this name, including generic
# functions that packages made from one.
is_original <- function(value, name) {
  if (is.primitive(value)) return(identical(value, get0(name, envir = baseenv())))
  home <- environment(value)
  package <- attr(value, "package")
  if (isS4(value) && !is.null(package)) {
    return(package %in% c("base", "stats", "methods", "utils", "statcl", "RTMB", "Matrix"))
  }
  environmentName(home) %in% c("base", "stats", "utils", "methods") && isNamespace(home) ||
    identical(home, environment(is_original)) ||
    environmentName(topenv(home)) %in% c("RTMB", "Matrix")
}

# A copy of f that can be called with traced values. `overrides`: new values of variables, by name:
# list(value, home), with the environment of the variable. `more`: further replacements, by name.
# `few`: replaces only what the code names, which is faster, and not functions found by get() etc.
looking_up <- function(f, overrides = list(), more = attr(f, "masks", exact = TRUE), few = FALSE) {
  if (is.primitive(f)) return(f)
  homes <- list() # environments met so far
  inner <- list() # and the environments inserted before them
  operators <- NULL # replaced where there may be sparse matrices
  masks <- masks_with(more)
  mine <- mask_of(f, masks)
  if (!is.null(mine)) return(mine)
  export <- exporter(masks, function(value) copy(value))
  before <- function(home) {
    for (k in seq_along(homes)) if (identical(homes[[k]], home)) return(inner[[k]])
    below <- new.env(parent = home, size = if (few) 29L else 2L * length(masks))
    place <- new.env(parent = below)
    homes <<- c(homes, list(home))
    inner <<- c(inner, list(place))
    if (!few) insert(names(masks), home, place)
    add_operators(home, place)
    for (name in names(overrides)) {
      if (identical(home_of(name, home), overrides[[name]]$home)) {
        assign(name, overrides[[name]]$value, envir = place)
      }
    }
    assign("::", export, envir = place)
    assign(":::", export, envir = place)
    assign(".statcl_lookup", TRUE, envir = place)
    assign(".statcl_formula", recorded_formula, envir = place)
    place
  }
  # Inserts the replacements of those of these names that refer to R's functions.
  insert <- function(names, home, place) {
    found <- mget(names, envir = home, inherits = TRUE, ifnotfound = list(tracing))
    replaced <- masks[names]
    if (!identical(found, tracing$usual)) { # that is, where R's own functions are found
      replaced <- replaced[are_original(names, home)]
      # Data may have the name of a function, such as sd: calls skip it, as in R.
      data <- Filter(is_data, found[names(replaced)])
      list2env(data, envir = place)
      all <- length(replaced) == length(masks) && length(data) == 0L
      if (all) tracing$usual <- found
    }
    list2env(replaced, envir = parent.env(place))
  }
  add_operators <- function(home, place) {
    if (is.null(operators)) return()
    mine <- operators[are_original(names(operators), home)]
    list2env(as.list(mine), envir = parent.env(place))
  }
  # Functions of packages are followed when they are called, because they may reach very many
  # others.
  follow_later <- function(name, value, place) {
    force(value)
    delayedAssign(name, copy(value), assign.env = place)
  }
  copy_held <- function(functions) {
    for (k in which(vapply(functions, can_follow, NA))) {
      mine <- mask_of(functions[[k]], masks)
      functions[[k]] <- if (is.null(mine)) copy(functions[[k]]) else mine
    }
    functions
  }
  copy <- function(g) {
    place <- before(environment(g))
    names <- names_in(g)
    if (few) {
      assigning <- if (any(c("<-", "=", "<<-") %in% names)) tracing$assigning
      insert(intersect(c(names, assigning), names(masks)), environment(g), place)
    }
    for (name in names) {
      if (is.null(operators) && concerns_sparse(name, environment(g))) {
        operators <<- sparse_operators()
        Map(add_operators, homes, inner)
      }
      if (exists(name, envir = place, inherits = FALSE)) next
      value <- get0(name, envir = environment(g), mode = "function")
      if (is.primitive(value) || is_hidden(value, name, g)) next
      if (is.null(value)) {
        functions <- get0(name, envir = environment(g))
        if (holds_functions(functions)) {
          assign(name, functions, envir = place) # so that recursion ends
          assign(name, copy_held(functions), envir = place)
        }
      } else if (is_followed(value)) {
        assign(name, value, envir = place) # likewise
        assign(name, copy(value), envir = place)
      } else if (is_of_package(value)) {
        follow_later(name, value, place)
      } else if (inherits(value, names(tracing$twins))) {
        assign(name, tracing$twins[[class(value)[1L]]](value), envir = place)
      } else if (is_replaced(value) && !has_its_name(value, name)) {
        mine <- mask_of(value, masks) # a replaced function by another name
        if (!is.null(mine)) assign(name, mine, envir = place)
      }
    }
    if (!few && any(c("for", "while", "repeat") %in% names)) {
      g <- recording_formulas(g, names(c(more, overrides)))
    }
    environment(g) <- place
    g
  }
  copy(f)
}

# All replacements. Those of cl_map() are kept; others may have functions that hold a model.
masks_with <- function(more) {
  if (identical(tracing$merged$more, more) && !is.null(more)) return(tracing$merged$masks)
  masks <- traced_functions()
  masks[names(more)] <- more
  if (identical(more, tracing$element_masks)) tracing$merged <- list(more = more, masks = masks)
  masks
}

# Whether `name`, which `g` does not call, means data there: the function of that name is further
# out.
is_hidden <- function(value, name, g) {
  if (is.null(value)) return(FALSE)
  nearest <- base::tryCatch(get0(name, envir = environment(g)), error = function(e) value)
  !is.function(nearest) && !is_called(name, body(g))
}

is_called <- function(name, e) {
  is.call(e) && (identical(e[[1L]], as.name(name)) ||
                   any(vapply(as.list(e), function(part) !missing(part) && is_called(name, part),
                              NA)))
}

names_in <- function(f) {
  names <- unique(c(all.names(body(f)), unlist(lapply(formals(f), all.names), use.names = FALSE)))
  names[names != "..."]
}

# Whether these names refer to original functions, or to none. Results are cached, as most names are
# the same in all environments.
are_original <- function(names, home) {
  if (is.null(tracing$originals)) tracing$originals <- new.env(parent = emptyenv())
  known <- tracing$originals
  found <- mget(names, envir = home, mode = "function", inherits = TRUE, ifnotfound = list(NULL))
  original <- logical(length(found))
  for (k in seq_along(found)) {
    value <- found[[k]]
    original[k] <- is.null(value) || identical(value, known[[names[k]]])
    if (original[k] || !is_original(value, names[k])) next
    original[k] <- TRUE
    assign(names[k], value, envir = known)
  }
  original
}

# Whether a variable is not a function, exists, and is not an argument without a value.
is_data <- function(x) !missing(x) && !is.function(x) && !identical(x, tracing)

# The replacement of `::` and `:::`.
exporter <- function(masks, copy) {
  force(masks)
  force(copy)
  function(pkg, name) {
    package <- as.character(substitute(pkg))
    name <- as.character(substitute(name))
    mine <- masks[[name]]
    if (package == "RTMB" && !is.null(mine)) return(mine)
    value <- get(name, envir = asNamespace(package))
    if (!is.null(mine) && is.function(value) && is_original(value, name)) return(mine)
    if (is_of_package(value)) copy(value) else value
  }
}

# Whether a function is the user's: not primitive, not of a package (but one that a function of R
# made, such as Vectorize(), counts), and without a class of its own such as a likelihood.
is_followed <- function(value) {
  if (!is.function(value) || is.primitive(value) || is.object(value)) return(FALSE)
  home <- environment(value)
  if (is.null(home) || isNamespace(home) || identical(home, baseenv())) return(FALSE)
  top <- topenv(home)
  !isNamespace(top) || environmentName(top) %in% c("statcl", "base", "stats")
}

# Whether a function belongs to a package that is followed: not one of R's own packages, this one or
# RTMB.
is_of_package <- function(value) {
  if (!is.function(value) || is.primitive(value) || is.object(value)) return(FALSE)
  home <- environment(value)
  top <- if (is.null(home)) baseenv() else topenv(home)
  isNamespace(top) && !environmentName(top) %in% not_followed
}

not_followed <- c("base", "stats", "utils", "methods", "graphics", "grDevices", "tools", "parallel",
                  "compiler", "grid", "splines", "stats4", "tcltk", "statcl", "RTMB", "Matrix")

can_follow <- function(value) is_followed(value) || is_of_package(value) || is_replaced(value)

# Whether a function may have a replacement.
is_replaced <- function(value) {
  if (!is.function(value) || is.primitive(value)) return(FALSE)
  if (isS4(value)) return(isTRUE(attr(value, "package") %in% c("base", "stats", "statcl")))
  home <- environment(value)
  identical(home, .BaseNamespaceEnv) || identical(home, asNamespace("stats")) ||
    identical(home, environment(is_original))
}

# Whether a function that may have a replacement has its own name here: it is then found by that
# name.
has_its_name <- function(value, name) {
  home <- if (isS4(value)) topenv() else environment(value)
  identical(get0(name, envir = home, inherits = FALSE), value)
}

# The replacement of a function under any name; NULL if it has none.
mask_of <- function(value, masks) {
  if (!is_replaced(value)) return(NULL)
  for (home in list(topenv(), asNamespace("stats"), baseenv())) {
    for (name in names(masks)) {
      if (identical(get0(name, envir = home, inherits = FALSE), value)) return(masks[[name]])
    }
  }
  NULL
}

# A list that contains functions to follow.
holds_functions <- function(x) {
  is.list(x) && !is.object(x) && any(vapply(x, can_follow, NA))
}

# ---- errors while a function is traced ----------------------------------------------------------

# An error about a traced value. `choice`: whether its cause is that traced values have no known
# value; `of_numbers`: whether numbers in its place would have the error, too.
trace_stop <- function(message, choice = FALSE, of_numbers = FALSE) {
  if (is.null(tracing$tape)) abort_argument("f", message)
  stop(structure(list(message = message, call = NULL, choice = choice, of_numbers = of_numbers),
                 class = c("cl_trace_stop", "error", "condition")))
}

# Advice for a check such as if (is.na(a)).
check_text <- function(call) {
  checks <- c("is.na", "is.nan", "is.finite", "is.infinite", "anyNA", "complete.cases")
  if (any(checks %in% all.names(call))) {
    "leave out a check for NA, NaN or Inf, as NaN makes the result NaN; else "
  }
}

ways_out <- function() {
  if (tracing$tape$elements) return("choose by element with ifelse() or cl_ifelse()")
  if (!is.null(tracing$tape$parent)) {
    return(paste("cl_scan() records its step once for all: choose by element with ifelse() or",
                 "cl_ifelse()"))
  }
  paste("choose by element with ifelse() or cl_ifelse(), or let retrace = TRUE trace the function",
        "at every call")
}

# The call in the user's code that failed, from the frames at the error; NULL if there is none.
failing_call <- function(calls, functions, parents, given) {
  user <- vapply(functions, function(g) {
    !is.primitive(g) && exists(".statcl_lookup", envir = environment(g))
  }, NA)
  mine <- vapply(functions, identical, NA, recorded_formula)
  called_by_user <- which(parents > 0L & user[pmax(parents, 1L)] & !mine)
  if (length(called_by_user) == 0L) return(if (any(user)) given)
  last <- max(called_by_user)
  if (user[last]) return(given)
  call <- calls[[last]]
  name <- if (is.name(call[[1L]])) as.character(call[[1L]]) else ""
  if (grepl("[.]cl_traced$", name) || name %in% names(class_masks())) {
    generic <- get0(".Generic", envir = sys.frames()[[last]], inherits = FALSE)
    call[[1L]] <- as.name(if (is.null(generic)) sub("[.].*$", "", name) else generic)
  }
  call
}

call_line <- function(call) {
  # An argument that R has already inserted into the call.
  for (k in seq_along(call)[-1L]) {
    if (!identical(call[[k]], quote(expr = )) && is_traced(call[[k]])) call[[k]] <- quote(x)
  }
  if (length(call) > 2L && is.name(call[[1L]]) && identical(call[[2L]], quote(`*tmp*`))) {
    target <- as.list(call)[names(call) != "value"] # of x[i] <- value
    target[1:2] <- list(as.name(sub("<-$", "", as.character(call[[1L]]))), quote(x))
    call <- call("<-", as.call(unname(target)), quote(value))
  }
  text <- paste(trimws(deparse(call, width.cutoff = 500L)), collapse = " ")
  if (nchar(text) > 60L) paste0(substr(text, 1L, 57L), "...") else text
}

# Whether an error of `if` is due to a plain value, that is, to NA.
of_plain_value <- function(message) grepl("missing value", message, fixed = TRUE)

# Whether a call is one of a function of stats that has no replacement.
is_of_stats <- function(call) {
  if (is.null(call) || !is.name(call[[1L]])) return(FALSE)
  name <- as.character(call[[1L]])
  is.null(traced_functions()[[name]]) && name %in% getNamespaceExports("stats")
}

# Turns an error in a traced function into one that names the call.
explain_error <- function(e) {
  if (is_foreign(e) || isTRUE(e$traced)) return()
  mine <- inherits(e, c("cl_trace_stop", "statcl_error_argument"))
  plain <- identical(class(e), c("simpleError", "error", "condition"))
  if (!mine && !plain) return()
  given <- conditionCall(e)
  if (is.call(given) && identical(given[[1L]], quote(.statcl_formula))) given <- given[[2L]]
  head <- if (is.call(given) && is.name(given[[1L]])) as.character(given[[1L]]) else ""
  frames <- sys.nframe()
  call <- failing_call(sys.calls(), lapply(seq_len(frames), sys.function), sys.parents(), given)
  message <- conditionMessage(e)
  choice <- mine && isTRUE(e$choice)
  if (plain && head %in% c("if", "while", "&&", "||", "switch") && !of_plain_value(message)) {
    call <- given
    choice <- TRUE
    message <- sprintf("'%s' needs the value of a traced value", head)
  } else if (plain && head == "for") {
    call <- given
    message <- "a loop cannot run over a traced value: use seq_along()"
  } else if (plain && grepl("environment", message, fixed = TRUE)) {
    call <- if (is.null(call)) given else call
    choice <- TRUE
    message <- "this needs the value of a traced value, or is not available for one"
  } else if (plain && is_of_stats(call)) {
    message <- sprintf("%s (%s() may not be available for traced values: see ?cl_gradient)",
                       message, as.character(call[[1L]]))
  }
  # The call of f itself has the function instead of a name.
  named <- !is.null(call) && !is.function(call[[1L]]) &&
    (!is.call(call[[1L]]) || as.character(call[[1L]][[1L]])[1L] %in% c("::", ":::", "$", "[["))
  if (grepl("no applicable method", message, fixed = TRUE)) {
    message <- sub("applied to.*$", "that traced values can use: call one by its whole name",
                   message)
  } else if (grepl("class \"cl_traced\"|'class1' must|not-yet-impl.*cl_traced", message)) {
    message <- if (tracing$tape$elements) only_elements_text else
      paste("a clMatrix or another S4 object cannot be combined with a traced value",
            "here (but %*% takes matrices): use as.matrix(); what 'f' uses",
            "is copied to the engine once")
  }
  where <- if (named) sprintf(" at '%s'", call_line(call)) else ""
  if (choice) message <- paste0(message, ": ", if (!is.null(call)) check_text(call), ways_out())
  f <- tracing$tape$argument
  statcl_abort("argument", sprintf("'%s' cannot be traced%s: %s", f, where, message), argument = f,
               traced = TRUE, parent = if (plain) e)
}
