# cbind() and rbind() of matrices.

# For any number of arguments, by the rules of base R. Names come from the names of the arguments
# and, at deparse levels 1 and 2, from the code. (If an argument has a class with methods of its
# own, R calls cbind2() instead.)

#' @rdname clMatrix-index
#' @export
cbind.clMatrix <- function(..., deparse.level = 1) {
  if (missing(deparse.level)) deparse.level <- level_of_caller(base::cbind)
  bind_all(list(...), bind_labels(substitute(list(...)), deparse.level), TRUE)
}

#' @rdname clMatrix-index
#' @export
rbind.clMatrix <- function(..., deparse.level = 1) {
  if (missing(deparse.level)) deparse.level <- level_of_caller(base::rbind)
  bind_all(list(...), bind_labels(substitute(list(...)), deparse.level), FALSE)
}

# R does not pass on the deparse level of the call: it is read from the frame of the generic
# function.
level_of_caller <- function(generic) {
  if (identical(sys.function(sys.parent(2L)), generic)) parent.frame(2L)$deparse.level else 1
}

# The name of a vector's column or row, for each argument of the call; "" for no name.
bind_labels <- function(call, level) {
  level <- check_count(level, "deparse.level", 0, 2)
  code <- as.list(call)[-1L]
  given <- names(code)
  if (is.null(given)) given <- character(length(code))
  for (k in which(!nzchar(given))) {
    if (level == 2 || (level == 1 && is.symbol(code[[k]]))) given[k] <- deparse(code[[k]])[1L]
  }
  given
}

bind_all <- function(parts, labels, by_columns) {
  parts[vapply(parts, is.null, NA)] <- list(numeric())
  across <- if (by_columns) 1L else 2L
  extent <- vapply(parts, function(x) {
    if (length(dim(x)) == 2L) as.double(dim(x)[across]) else as.double(length(x))
  }, 0)
  # Empty vectors are used only if all arguments are empty.
  if (any(extent > 0)) {
    used <- extent > 0 | vapply(parts, function(x) length(dim(x)) == 2L, NA)
    parts <- parts[used]
    labels <- labels[used]
  }
  size <- dim(Find(is_cl, parts))[across]
  parts <- Map(bind_operand, parts, size, by_columns, "...", labels)
  out <- Reduce(function(x, y) bind_two(x, y, by_columns), parts)
  if (is_cl(out)) out@Dimnames <- unname(out@Dimnames)
  out
}

# The operand of a bind for a matrix of `size` rows (columns): a vector becomes one column (row)
# with the name `label`; if it needs no recycling, its names become those of the rows (columns).
bind_operand <- function(x, size, by_columns, argument, label = "") {
  if (is_cl(x)) return(x)
  names <- names(x)
  x <- check_numeric(x, argument)
  if (!is.null(dim(x))) return(x)
  if (length(x) != size) {
    names <- NULL
    if (length(x) > size || size %% length(x) != 0) {
      statcl_warning("recycled", sprintf(
        "number of %s of result is not a multiple of vector length %d",
        if (by_columns) "rows" else "columns", length(x)))
    }
  }
  dimnames <- list(names, if (nzchar(label)) label)
  x <- rep_len(as.vector(x), size)
  if (by_columns) matrix(x, ncol = 1L, dimnames = dimnames)
  else matrix(x, nrow = 1L, dimnames = rev(dimnames))
}

bind_two <- function(x, y, by_columns) {
  if (is.null(y)) return(x)
  if (is.null(x)) return(y)
  if (is.data.frame(x) || is.data.frame(y)) {
    return((if (by_columns) cbind else rbind)(on_host(x), on_host(y)))
  }
  across <- if (by_columns) 1L else 2L
  if (is_cl(x) || is_cl(y)) {
    size <- dim(if (is_cl(x)) x else y)[across]
    if (size > 0 && length(x) == 0L && is.null(dim(x))) return(y)
    if (size > 0 && length(y) == 0L && is.null(dim(y))) return(x)
    x <- bind_operand(x, size, by_columns, "x")
    y <- bind_operand(y, size, by_columns, "y")
  }
  if (dim(x)[across] != dim(y)[across]) {
    abort_argument("y", sprintf("number of %s of matrices must match: %d and %d",
                                if (by_columns) "rows" else "columns", dim(x)[across],
                                dim(y)[across]))
  }
  if (!is_cl(x) && !is_cl(y)) return((if (by_columns) cbind else rbind)(x, y))
  names <- list(NULL, NULL)
  names[across] <- list(if (is.null(dimnames(x)[[across]])) dimnames(y)[[across]]
                        else dimnames(x)[[across]])
  names[3L - across] <- list(join_names(dimnames(x)[[3L - across]], dim(x)[3L - across],
                                        dimnames(y)[[3L - across]], dim(y)[3L - across]))
  value(.Call(r_op, "bind", list(operand(x, "x"), operand(y, "y")), by_columns, NULL), NULL, names)
}

join_names <- function(x, size_x, y, size_y) {
  if (is.null(x) && is.null(y)) return(NULL)
  c(if (is.null(x)) character(size_x) else x, if (is.null(y)) character(size_y) else y)
}

#' @rdname clMatrix-index
#' @eval method_aliases(c("cbind2", "rbind2"), c(pair_signatures, list("clMatrix,missing")))
#' @export
setMethod("cbind2", signature("clMatrix", "ANY"), function(x, y, ...) bind_two(x, y, TRUE))

#' @rdname clMatrix-index
#' @export
setMethod("rbind2", signature("clMatrix", "ANY"), function(x, y, ...) bind_two(x, y, FALSE))

for (classes in pair_signatures[-1L]) {
  setMethod("cbind2", classes, function(x, y, ...) bind_two(x, y, TRUE))
  setMethod("rbind2", classes, function(x, y, ...) bind_two(x, y, FALSE))
}
rm(classes)
setMethod("cbind2", signature("clMatrix", "missing"), function(x, y, ...) x)
setMethod("rbind2", signature("clMatrix", "missing"), function(x, y, ...) x)
