# Names of traced vectors and dimnames of traced arrays, which follow R's rules.

#' @export
names.cl_traced <- function(x) {
  if (is.null(x$dim)) asked_names(x) else if (length(x$dim) == 1L) asked_names(x)[[1L]]
}

# Notes that f has used names: the record is valid for these names only.
asked_names <- function(x) {
  names <- .subset2(x, "names")
  if (!is.null(names)) assign("named", TRUE, envir = x$tape)
  names
}

#' @export
`names<-.cl_traced` <- function(x, value) {
  if (!is.null(value)) value <- as.character(value)[seq_len(x$n)]
  named(unnamed(x), value)
}

# A copy without names.
unnamed <- function(x) {
  copy <- traced(x$id, x$n, x$dim, x$from, x$index)
  assign("tape", x$tape, envir = copy)
  copy
}

# Sets the names of a value that was just made, or dimnames, if they fit.
named <- function(x, names) {
  if (is.null(names) || !is_traced(x)) return(x)
  fit <- if (is.null(x$dim)) !is.list(names) && length(names) == x$n else
    is.list(names) && length(names) == length(x$dim) && !all(vapply(names, is.null, NA))
  if (fit) assign("names", names, envir = x)
  x
}

labels_of <- function(x) {
  if (is_traced(x)) .subset2(x, "names") else if (is.null(dim(x))) names(x) else dimnames(x)
}

#' @export
dimnames.cl_traced <- function(x) if (!is.null(x$dim)) asked_names(x)

#' @export
`dimnames<-.cl_traced` <- function(x, value) {
  like <- proxy(x)
  plainly(dimnames(like) <- value)
  named(unnamed(x), dimnames(like))
}

# Sets names or dimnames of a plain value.
labelled <- function(p, labels) {
  if (!is.null(labels)) if (is.list(labels)) dimnames(p) <- labels else names(p) <- labels
  p
}

# A vector with the names of a value: base R makes those of results from it.
name_pattern <- function(v) {
  labelled(logical(length(v)), if (is.null(dim(v))) labels_of(v))
}

# Notes that names are used as indices.
note_names <- function(x, ...) {
  for (k in seq_len(...length())) {
    i <- tryCatch(...elt(k), error = function(e) NULL) # x[i, ]
    if (!is.character(i)) next
    if (is.null(asked_names(x))) trace_stop("this value has no names: use numbers for indices")
  }
}

traced_unlist <- function(x, use.names = TRUE) {
  flat <- function(v) if (is.list(v)) do.call(base::c, lapply(unname(v), flat)) else list(v)
  values <- flat(x)
  values <- lapply(values[!vapply(values, is.null, NA)], as.vector)
  if (!use.names) return(combine_traced(values))
  like <- function(v) {
    if (is.list(v)) return(lapply(v, like))
    if (!is.null(v)) name_pattern(v)
  }
  named(unnamed(combine_traced(values)), names(base::unlist(like(x))))
}
