# Operations of a traced function other than computing: it asks for the classes of values, shows
# them, assigns them, handles errors, finds functions by name.

# ---- classes -------------------------------------------------------------------------------------

# The number, vector or array that a traced value stands for: of doubles, or of logical values.
looks_like <- function(x) {
  if (is_traced_sparse(x)) {
    return(Matrix::sparseMatrix(x$i, x$j, x = 1, dims = x$dim, index1 = FALSE))
  }
  labelled(if (is_truth(x)) proxy(x) else proxy(x) + 0, asked_names(x))
}

truths <- c("eq", "ne", "lt", "gt", "le", "ge", "and", "or", "not", "is_nan", "is_finite",
            "is_infinite")

# Whether a traced value is a result of comparisons or logic.
is_truth <- function(x) {
  if (is.na(x$id) || x$id == 0L) return(FALSE)
  node <- node_at(x$tape, x$id)
  node[[1L]] == "apply" && node[[2L]] %in% truths
}

# A replacement that gives the result for such numbers.
answering <- function(name, original = get(name, baseenv())) {
  force(original)
  function(x, ...) if (is_traced(x)) original(looks_like(x), ...) else original(x, ...)
}

# A replacement for a function that would change the type of its argument, which is not possible.
retyping <- function(name) {
  original <- get(name, baseenv())
  force(name)
  function(x, value) {
    if (!is_traced(x)) return(original(x, value))
    if (is.null(value) || identical(value, "double") || identical(value, "numeric")) return(x)
    trace_stop(sprintf("'%s' is not available for traced values", name))
  }
}

inspection_masks <- function() {
  masks <- list()
  for (name in c("class", "oldClass", "is.object", "attr", "attributes", "inherits",
                 "storage.mode", "typeof", "mode", "is.double", "is.logical", "is.vector")) {
    masks[[name]] <- answering(name)
  }
  for (name in c("class<-", "oldClass<-", "attributes<-", "storage.mode<-", "mode<-")) {
    masks[[name]] <- retyping(name)
  }
  c(masks, list(
    is = answering("is", methods::is),
    structure = function(.Data, ...) {
      if (!is_traced(.Data)) return(base::structure(.Data, ...))
      given <- list(...)
      if (!is.null(given$class)) trace_stop("a traced value can have no class of its own")
      for (name in c(".Dim", "dim")) if (!is.null(given[[name]])) dim(.Data) <- given[[name]]
      if (!is.null(given$names)) names(.Data) <- given$names
      for (name in c(".Dimnames", "dimnames")) {
        if (!is.null(given[[name]])) dimnames(.Data) <- given[[name]]
      }
      .Data
    },
    unclass = function(x) if (is_traced(x)) x else base::unclass(x),
    cat = function(...) do.call(base::cat, lapply(list(...), shown), quote = TRUE),
    paste = showing("paste"), paste0 = showing("paste0"), sprintf = showing("sprintf"),
    message = showing("message"), toString = showing("toString"),
    warning = function(...) {
      if (any_traced(...)) do.call(base::warning, c(lapply(list(...), shown), call. = FALSE))
      else base::warning(...)
    },
    tryCatch = function(expr, ..., finally) {
      if (missing(finally)) base::tryCatch(watched(expr), ...)
      else base::tryCatch(watched(expr), ..., finally = finally)
    },
    try = function(expr, ...) base::try(watched(expr), ...),
    # functions made by base R look up mapply() in their own environment
    Vectorize = function(FUN, ...) {
      result <- base::Vectorize(FUN, ...)
      if (!identical(result, FUN)) {
        base::assign("mapply", mapped_mapply, envir = environment(result))
      }
      result
    },
    getExportedValue = function(ns, name) {
      value <- base::getExportedValue(ns, name)
      mine <- if (is.function(value) && is_original(value, name)) traced_functions()[[name]]
      if (is.null(mine)) value else mine
    },
    match.fun = function(FUN, descend = TRUE) {
      if (is.function(FUN)) return(FUN)
      home <- parent.frame(2L)
      if (!exists(".statcl_lookup", envir = home)) home <- parent.frame()
      get(as.character(FUN), envir = home, mode = "function")
    },
    assign = function(x, value, pos = -1, envir, ...) {
      if (missing(envir)) envir <- if (is.environment(pos)) pos else parent.frame()
      if (contains_traced(value)) check_inside(envir, x)
      base::assign(x, value, envir = envir, ...)
    },
    `$<-` = function(x, name, value) {
      name <- as.character(substitute(name))
      if (is.environment(x) && !is_traced(x) && contains_traced(value)) check_inside(x, name)
      eval(call("$<-", quote(x), as.name(name), quote(value)))
    },
    Filter = function(f, x) {
      f <- match.fun(f)
      if (is_traced(x) || is.list(x) && any(vapply(lapply(x, f), is_traced, NA))) {
        trace_stop("Filter() needs the value of a traced value", choice = TRUE)
      }
      base::Filter(f, x)
    }))
}

# The inverse of a link function, whose own one is compiled code.
traced_link <- function(link) {
  tiny <- .Machine$double.eps
  switch(link, identity = function(eta) eta, sqrt = function(eta) eta^2,
         inverse = function(eta) 1 / eta, `1/mu^2` = function(eta) 1 / sqrt(eta),
         log = function(eta) traced_extremes("pmax", list(exp(eta), tiny), FALSE),
         logit = traced_functions()$plogis, probit = traced_functions()$pnorm,
         cauchit = traced_functions()$pcauchy,
         cloglog = function(eta) {
           p <- traced_extremes("pmin", list(-expm1(-exp(eta)), 1 - tiny), FALSE)
           traced_extremes("pmax", list(p, tiny), FALSE)
         })
}

# ---- showing values ------------------------------------------------------------------------------

shown <- function(x) {
  if (!is_traced(x)) x else if (is.null(x$tape$live)) format(x) else live_value(x)
}

showing <- function(name, original = get(name, baseenv())) {
  force(original)
  force(name)
  function(...) {
    if (!any_traced(...)) return(original(...))
    values <- list(...)
    # a format for numbers is not one for text
    if (name == "sprintf" && is.null(tracing$tape$live)) {
      given <- if (is.null(names(values))) 1L else c(which(names(values) == "fmt"), 1L)[1L]
      values[[given]] <- text_formats(values[[given]], vapply(values[-given], is_traced, NA))
    }
    do.call(original, lapply(values, shown), quote = TRUE)
  }
}

# A format of sprintf() with "%s" for the arguments that are traced values.
text_formats <- function(format, traced) {
  pattern <- "%(?!%)[-+ 0#]*[0-9]*(\\.[0-9]+)?[a-zA-Z]"
  pieces <- regmatches(format, gregexpr(pattern, format, perl = TRUE))
  pieces <- lapply(pieces, function(p) {
    mine <- seq_along(p) %in% which(traced)
    ifelse(mine, "%s", p)
  })
  regmatches(format, gregexpr(pattern, format, perl = TRUE)) <- pieces
  format
}

#' @export
format.cl_traced <- function(x, ...) {
  if (!is.null(x$tape$live)) return(format(live_value(x), ...))
  shape <- if (is.null(x$dim)) sprintf("%d number%s", x$n, if (x$n == 1L) "" else "s") else
    paste(x$dim, collapse = " x ")
  sprintf("<traced: %s>", shape)
}

#' @export
print.cl_traced <- function(x, ...) {
  if (is.null(x$tape$live)) cat(format(x), "\n", sep = "") else print(live_value(x), ...)
  invisible(x)
}

#' @export
str.cl_traced <- function(object, ...) cat("", format(object), "\n")

#' @export
summary.cl_traced <- function(object, ...) summary(decided("summary", object, "numeric"), ...)

#' @export
anyNA.cl_traced <- function(x, recursive = FALSE) anyNA(decided("anyNA", x, "numeric"))

#' @export
as.data.frame.cl_traced <- function(x, ...) {
  trace_stop("a traced value cannot be a column of a data frame: use a list")
}

#' @export
Complex.cl_traced <- function(z) {
  switch(.Generic, Re = , Conj = z, Mod = abs(z), Im = 0 * z,
         trace_stop(sprintf("%s() is not available for traced values", .Generic)))
}

# ---- assignments outside of the function ---------------------------------------------------------

# Refuses to assign a traced value in an environment that was there before. Environments that f
# makes are enclosed by its own, or by none.
check_inside <- function(envir, name) {
  if (!is.environment(envir) || exists(".statcl_lookup", envir = envir)) return()
  alone <- identical(parent.env(envir), emptyenv())
  if (alone && !any(vapply(environments_of(tracing$outside), identical, NA, envir))) return()
  trace_stop(outside_text(name))
}

# Environments that are variables of f.
environments_of <- function(f) {
  Filter(is.environment, lapply(names_in(f), get0, envir = environment(f)))
}

outside_text <- function(name) {
  sprintf(paste("a value that depends on parameters is assigned to '%s' outside of 'f': return it",
                "instead"), name)
}

# ---- errors that a function handles itself -------------------------------------------------------

# The value of `code` within tryCatch(). Errors that only traced values have are not for the
# function's handlers: they pass.
watched <- function(code) {
  withCallingHandlers(code, error = function(e) {
    if (!is_of_tracing(e)) return()
    told <- tryCatch(explain_error(e), error = identity)
    tracing$leave(if (is.null(told)) e else told)
  })
}

# Whether the error would not occur for numbers.
is_of_tracing <- function(e) {
  if (isTRUE(e$traced)) return(TRUE)
  if (inherits(e, "cl_trace_stop")) return(!isTRUE(e$of_numbers))
  identical(class(e), c("simpleError", "error", "condition")) &&
    grepl(only_traced, conditionMessage(e))
}

# R's messages about operands whose type is not numeric.
only_traced <- paste0("interpretable as logical|condition has length|type in '[xy]|EXPR|cl_traced|",
                      "environment|on-numeric argument|'type' .(list|environment)|for.. loop")
