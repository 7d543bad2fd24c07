# Sources of data in blocks: functions, files and connections, Arrow tables, and data frames by
# rows.

# A source is a list of functions: restart(); read(), which gives the next data frame with rows, or
# NULL at the end; close(). `rows`: how many it has, NA if that is not known yet.

is_arrow <- function(data) {
  inherits(data, c("ArrowTabular", "ArrowObject", "Dataset", "RecordBatchReader",
                   "arrow_dplyr_query"))
}

is_source <- function(data) {
  is.function(data) || is.character(data) || inherits(data, "connection") || is_arrow(data)
}

# Whether a source can be read again when a fit has closed it.
reads_again <- function(data) !inherits(data, c("connection", "RecordBatchReader"))

# `variables`: those of the formula, by which a data frame is cut; `block`: rows, or NULL.
new_source <- function(data, block, variables = NULL) {
  if (is.function(data)) return(function_source(data))
  if (is.data.frame(data)) return(frame_source(data, block, variables))
  if (is_arrow(data)) return(arrow_source(data))
  if (is.character(data) || inherits(data, "connection")) {
    return(spooled(csv_reader(data, if (is.null(block)) 1e5 else block)))
  }
  abort_argument("data", sprintf(paste("'data' must be a data frame, or for blocks a function, a",
                                       "file name, a connection or an Arrow table, not %s"),
                                 describe(data)))
}

check_block <- function(data, again = "'data'") {
  if (is.null(data) || is.data.frame(data)) return(data)
  abort_argument("data", sprintf("a block of %s must be a data frame, not %s", again,
                                 describe(data)))
}

# The convention of the package biglm.
function_source <- function(f) {
  read <- function() {
    repeat {
      data <- check_block(classed(f(reset = FALSE), "data"))
      if (is.null(data) || nrow(data) > 0L) return(data)
    }
  }
  list(restart = function() classed(f(reset = TRUE), "data"), read = read,
       close = function() NULL, rows = NA)
}

frame_source <- function(data, block, variables) {
  data <- data[intersect(names(data), variables)]
  n <- nrow(data)
  if (identical(class(data), "data.frame")) attr(data, "row.names") <- .set_row_names(n)
  at <- 0
  read <- function() {
    if (at >= n) return(NULL)
    rows <- seq(at + 1, min(at + block, n))
    at <<- at + length(rows)
    data[rows, , drop = FALSE]
  }
  list(restart = function() at <<- 0, read = read, close = function() NULL, rows = n)
}

# A reader is a list of read() and close(), for one pass.
batch_reader <- function(reader) {
  read <- function() {
    repeat {
      batch <- classed(reader$read_next_batch(), "data")
      if (is.null(batch)) return(NULL)
      batch <- as.data.frame(batch)
      if (nrow(batch) > 0L) return(batch)
    }
  }
  list(read = read, close = function() NULL)
}

arrow_source <- function(data) {
  if (inherits(data, "RecordBatchReader")) return(spooled(batch_reader(data)))
  open <- getExportedValue("arrow", "as_record_batch_reader")
  reader <- NULL
  list(restart = function() reader <<- batch_reader(classed(open(data), "data")),
       read = function() reader$read(), close = function() reader <<- NULL,
       rows = if (length(dim(data)) == 2L) dim(data)[1L] else NA)
}

# A table with a header, as by read.csv(). The first block decides about the classes of columns.
# Numbers may be in quotes, as factors are written: read.table() converts them, but not if it is
# told their class.
csv_reader <- function(data, block) {
  if (is.character(data)) {
    if (length(data) != 1L || is.na(data) || !file.exists(data)) {
      abort_argument("data", "'data' must be the name of one file that exists")
    }
    data <- file(data)
    mine <- TRUE
  } else {
    mine <- !isOpen(data)
  }
  if (mine) classed(open(data, "rt"), "data")
  names <- NULL
  classes <- NA
  read <- function() {
    line <- readLines(data, 1L, warn = FALSE)
    if (length(line) == 0L) return(NULL)
    pushBack(line, data)
    call <- list(data, header = is.null(names), sep = ",", quote = "\"", fill = TRUE,
                 comment.char = "", nrows = block, stringsAsFactors = FALSE,
                 colClasses = replace(classes, classes %in% "numeric", NA))
    call$col.names <- names
    table <- tryCatch(do.call(utils::read.table, call), error = function(e) {
      if (grepl("no lines available", conditionMessage(e))) return(NULL)
      abort_argument("data", paste("'data' cannot be read:", conditionMessage(e)))
    })
    if (is.null(table)) return(NULL)
    for (k in which(classes %in% "numeric")) {
      if (!is.numeric(table[[k]]) && !all(is.na(table[[k]]))) {
        abort_argument("data", sprintf("'data' cannot be read: column '%s' has numbers in the %s",
                                       names[k], "first block, and text in a later one"))
      }
      table[[k]] <- as.double(table[[k]])
    }
    if (is.null(names) && nrow(table) > 0L) {
      names <<- names(table)
      classes <<- vapply(table, function(v) {
        if (all(is.na(v))) NA_character_ else if (is.numeric(v)) "numeric" else class(v)[1L]
      }, "", USE.NAMES = FALSE)
    }
    if (nrow(table) > 0L) table
  }
  list(read = read, close = function() if (mine && !is.null(data)) {
    close(data)
    data <<- NULL
  })
}

# The source of a reader, of which each block is kept in a temporary file when it has been read.
spooled <- function(reader) {
  force(reader)
  path <- tempfile("statcl-blocks-")
  to <- file(path, "wb")
  from <- NULL
  kept <- at <- 0
  done <- FALSE
  restart <- function() {
    if (!is.null(from)) close(from)
    flush(to)
    from <<- file(path, "rb")
    at <<- 0
  }
  read <- function() {
    if (at < kept) {
      at <<- at + 1
      return(unserialize(from))
    }
    if (done) return(NULL)
    data <- reader$read()
    if (is.null(data)) {
      done <<- TRUE
    } else {
      serialize(data, to, xdr = FALSE)
      kept <<- at <<- kept + 1
    }
    data
  }
  shut <- function() {
    reader$close()
    for (v in Filter(Negate(is.null), list(from, to))) close(v)
    from <<- to <<- NULL
    unlink(path)
  }
  list(restart = restart, read = read, close = shut, rows = NA)
}
