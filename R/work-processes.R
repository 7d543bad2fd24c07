# What another process needs: the global objects that a function reads, and how processes start.

# The same for all functions in a list.
global_objects_of <- function(x) {
  if (is.function(x)) return(global_objects(x))
  if (!is.list(x)) return(list())
  each <- lapply(unname(x), global_objects_of)
  found <- as.list(do.call(c, each))
  structure(found[!duplicated(names(found))],
            packages = unique(unlist(lapply(each, attr, "packages"))))
}

# Whether processes can be forked, which is not possible after any use of OpenCL.
can_fork <- function() {
  .Platform$OS.type == "unix" && is.null(session$opened_by) &&
    (session$engine == "host" || is.null(session$listed_by))
}

# makeCluster() draws its port from R's generator, so scripts with equal seeds would use the same
# port at the same time. Ports are derived from process ids instead, and a port in use is retried.
make_workers <- function(n, type) {
  if (nzchar(Sys.getenv("R_PARALLEL_PORT"))) return(parallel::makeCluster(n, type = type))
  for (attempt in 1:20) {
    port <- 11000L + (Sys.getpid() * 7L + attempt * 131L) %% 1000L
    nodes <- tryCatch(suppressWarnings(parallel::makeCluster(n, type = type, port = port)),
                      error = function(e) e)
    if (!inherits(nodes, "error")) return(nodes)
    if (!grepl(port, conditionMessage(nodes), fixed = TRUE)) break
  }
  stop(nodes)
}

# The objects of the global environment that a function uses, directly or through functions it
# calls, as a named list with the attribute "packages": those attached by the user whose functions
# it calls.
global_objects <- function(f) {
  found <- list()
  packages <- character()
  seen <- character()
  visit <- function(f) {
    home <- environment(f)
    body <- if (inherits(f, "formula")) f else body(f)
    if (is.null(home)) return()
    if (inherits(f, "cl_log_posterior")) for (term in home$terms) visit(term)
    if (inherits(f, "cl_gradient")) return(visit(home$f))
    while (!isNamespace(home) && !identical(home, globalenv()) && !identical(home, emptyenv())) {
      home <- parent.env(home)
    }
    if (!identical(home, globalenv())) return()
    for (name in setdiff(all.names(body, unique = TRUE), seen)) {
      here <- get0(name, environment(f), inherits = TRUE)
      if (is.function(here) && !is.primitive(here) && !isNamespace(topenv(environment(here)))) {
        seen <<- c(seen, name)
        visit(here)
      } else if (is.function(here) && !is.primitive(here)) {
        packages <<- c(packages, environmentName(topenv(environment(here))))
      }
      object <- get0(name, globalenv(), inherits = FALSE)
      if (!is.null(object) && identical(object, here)) found[[name]] <<- object
    }
  }
  visit(f)
  usual <- c("base", "statcl", getOption("defaultPackages"))
  attached <- paste0("package:", packages) %in% search()
  structure(found, packages = setdiff(packages[attached], usual))
}
