# Functions of R that inspect the type or identity of a value. Called with an element by a traced
# function (cl_map()), they would dispatch no method and return a result for the object, silently
# used for all elements. So they are replaced during tracing by functions that raise an error for
# elements. In the same way, our generic functions are found if the package is not attached, or if
# R's are called as stats:: or base::.
#
# They are placed between the function and its environment, only if it, or a user function that it
# calls, uses one of these names. Functions of packages are not changed.
#
# A function with a `for` is compiled: over an object such as an element the interpreter would run
# the loop zero times, where compiled code raises an error.

guarded_names <- list(
  base = c("isTRUE", "isFALSE", "identical", "is.logical", "is.double", "is.integer", "is.vector",
           "is.atomic", "typeof", "class", "oldClass", "mode", "storage.mode", "inherits", "match",
           "%in%", "is.element", "c"),
  methods = "is")

refusing <- function(name, original) {
  force(name)
  force(original)
  function(...) {
    for (x in list(...)) if (is_element(x)) needs_choice(paste0(name, "()"))
    original(...)
  }
}

# For each name R's function and its replacement: a function that raises an error for elements, or
# our generic function if the package is not attached.
guards <- local({
  all <- list()
  for (package in names(guarded_names)) for (name in guarded_names[[package]]) {
    original <- get(name, asNamespace(package))
    all[[name]] <- list(package = package, original = original, guard = refusing(name, original))
  }
  generic <- list(stats = c("dnorm", "pnorm", "qnorm", "plogis"),
                  base = c("lbeta", "choose", "lchoose", "atan2", "pmin", "pmax"))
  for (package in names(generic)) for (name in generic[[package]]) {
    all[[name]] <- list(package = package, original = get(name, asNamespace(package)),
                        guard = get(name))
  }
  all
})

# The function to trace instead of f.
guarded <- function(f) {
  if (is.primitive(f)) return(f)
  reached <- reached_functions(f)
  if (!reached$needed) return(f)
  inner <- lapply(reached$homes, function(home) new.env(parent = home))
  place <- function(g) {
    environment(g) <- inner[[home_number(environment(g), reached$homes)]]
    if (!"for" %in% all.names(body(g))) return(g)
    compiler::cmpfun(g, options = list(suppressAll = TRUE))
  }
  for (k in seq_along(inner)) {
    for (name in names(reached$called[[k]])) {
      assign(name, place(reached$called[[k]][[name]]), envir = inner[[k]])
    }
    for (name in reached$guarded[[k]]) assign(name, guards[[name]]$guard, envir = inner[[k]])
    assign("::", guarded_export, envir = inner[[k]])
  }
  place(f)
}

# The replacement of `::` there.
guarded_export <- function(pkg, name) {
  package <- as.character(substitute(pkg))
  name <- as.character(substitute(name))
  if (identical(guards[[name]]$package, package)) return(guards[[name]]$guard)
  getExportedValue(package, name)
}

home_number <- function(home, homes) {
  for (k in seq_along(homes)) if (identical(homes[[k]], home)) return(k)
  0L
}

# f and the user's functions that it may call, directly or not: their environments (homes), for each
# of them the functions called there, by name, and the names to guard; `needed` if there are any.
reached_functions <- function(f) {
  top <- topenv(environment(f))
  homes <- list(environment(f))
  called <- list(list())
  guarded <- list(character())
  needed <- FALSE
  waiting <- list(f)
  done <- list()
  while (length(waiting) > 0L) {
    g <- waiting[[1L]]
    waiting <- waiting[-1L]
    done <- c(done, list(g))
    home <- home_number(environment(g), homes)
    names <- names_in(g)
    needed <- needed || "for" %in% names || ("::" %in% names && any(names %in% names(guards)))
    for (name in names) {
      value <- get0(name, envir = environment(g)) # a variable of that name is not changed
      if (!is.null(guards[[name]]) && identical(value, guards[[name]]$original)) {
        needed <- TRUE
        guarded[[home]] <- c(guarded[[home]], name)
      } else if (is_users(value, top)) {
        if (name %in% names(called[[home]])) next
        called[[home]][[name]] <- value
        if (home_number(environment(value), homes) == 0L) {
          homes <- c(homes, list(environment(value)))
          called <- c(called, list(list()))
          guarded <- c(guarded, list(character()))
        }
        if (!any(vapply(done, identical, NA, value))) waiting <- c(waiting, list(value))
      }
    }
  }
  list(homes = homes, called = called, guarded = lapply(guarded, unique), needed = needed)
}

names_in <- function(f) {
  names <- unique(c(all.names(body(f)), unlist(lapply(formals(f), all.names), use.names = FALSE)))
  names[names != "..."]
}

# Whether a function is followed: not if it belongs to a package other than that of `top`.
is_users <- function(value, top) {
  if (!is.function(value) || is.primitive(value)) return(FALSE)
  home <- environment(value)
  !isNamespace(home) && !identical(home, baseenv()) && !identical(topenv(home), baseenv()) ||
    identical(home, top) && !identical(home, topenv())
}
