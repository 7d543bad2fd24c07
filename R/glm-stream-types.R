# The types of the columns of a source of blocks: they are the same in all blocks, as in one data
# frame. Whole numbers become doubles where another block has doubles, factors have the levels of
# all blocks, and columns without values get the type of the others.

# A column without its rows; NULL, as list element, where it has no values.
no_rows <- function(v) {
  if (is_blank(v)) NULL else if (length(dim(v)) == 2L) v[0L, , drop = FALSE] else v[0L]
}

is_blank <- function(v) is.logical(v) && is.null(dim(v)) && all(is.na(v))

# Properties that two columns must have in common.
column_kind <- function(v) {
  c(list(typeof(v), class(v), dim(v)[-1L]), attributes(v)[c("levels", "units", "tzone")])
}

# Column v with the type `like`; NULL if that cannot hold it.
as_type <- function(v, like) {
  if (is_blank(v)) return(if (is.null(like)) v else rep_rows(like, length(v)))
  if (is.null(like)) return(NULL)
  if (identical(column_kind(v), column_kind(like))) return(v)
  if (identical(class(v), "factor") && identical(class(like), "factor")) {
    return(if (all(levels(v) %in% levels(like))) factor(v, levels(like), exclude = NULL))
  }
  if (is.integer(v) && is.double(like) && !is.factor(v)) {
    storage.mode(v) <- "double"
    if (identical(column_kind(v), column_kind(like))) return(v)
  }
}

# n missing values.
rep_rows <- function(like, n) {
  k <- rep(NA_integer_, n)
  if (length(dim(like)) == 2L) like[k, , drop = FALSE] else like[k]
}

# The type that holds both, of a column of this name.
wider_type <- function(like, v, name) {
  if (is.null(like) || !is.null(as_type(like, no_rows(v)))) return(no_rows(v))
  if (identical(class(v), "factor") && identical(class(like), "factor")) {
    return(factor(character(), union(levels(like), levels(v)), exclude = NULL))
  }
  abort_argument("data", sprintf(paste(
    "the column '%s' of 'data' is of class \"%s\" in one block and of class \"%s\" in another%s:",
    "make it the same in all blocks"), name, class(like)[1L], class(v)[1L],
    if (identical(class(like), class(v))) ", with other levels, units or columns" else ""))
}

# A block with the types s$types. If they must become wider, the fit begins again, after a pass that
# finds those of all blocks.
with_types <- function(s, data) {
  lost <- setdiff(names(s$types), names(data))
  if (length(lost) > 0L) {
    abort_argument("data", sprintf("a block of 'data' has no variable '%s'", lost[1L]))
  }
  for (name in names(s$types)) {
    v <- as_type(data[[name]], s$types[[name]])
    if (is.null(v)) {
      wider_type(s$types[[name]], data[[name]], name)
      if (isTRUE(s$settled) || !is.null(s$count)) {
        abort_argument("data", sprintf("the column '%s' of 'data' has other types than before: %s",
                                       name, "'data' must give the same in every pass"))
      }
      stop(structure(class = c("statcl_widened", "condition"), list(message = name, call = NULL)))
    }
    if (!identical(v, data[[name]])) data[[name]] <- v
  }
  data
}

# The types of all blocks, by a pass over them.
types_of_all <- function(s) {
  types <- s$types
  s$source$restart()
  while (!is.null(data <- s$source$read())) {
    for (name in names(types)) {
      v <- data[[name]]
      like <- types[[name]]
      if (is.null(as_type(v, like))) types[name] <- list(wider_type(like, v, name))
    }
    show_stream(s, "types of columns", data)
  }
  types
}
