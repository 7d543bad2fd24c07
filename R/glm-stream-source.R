# Sources of data in blocks: functions, Arrow tables, data frames by rows, and (glm-stream-text.R)
# files and connections.

# A source is a list of functions: restart(); read(), which gives the next data frame with rows, or
# NULL at the end; close(). `rows`: the number of rows, NA if it is not known yet.

is_arrow <- function(data) {
  inherits(data, c("ArrowTabular", "ArrowObject", "Dataset", "RecordBatchReader",
                   "arrow_dplyr_query"))
}

is_source <- function(data) {
  is.function(data) || is.character(data) || inherits(data, "connection") || is_arrow(data)
}

# Whether a source can be read again when a fit has closed it.
reads_again <- function(data) !inherits(data, c("connection", "RecordBatchReader"))

# `variables`: those of the formula, to which data frames and text are cut, or NULL; `block`: rows,
# or NULL.
new_source <- function(data, block, variables = NULL) {
  if (is.function(data)) return(function_source(data))
  if (is.data.frame(data)) return(frame_source(data, block, variables))
  if (is_arrow(data)) return(arrow_source(data))
  if (is.character(data) || inherits(data, "connection")) {
    return(text_source(data, if (is.null(block)) 1e5 else block, variables))
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
  if (!is.null(variables)) data <- data[intersect(names(data), variables)]
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

# Blocks in a temporary file.
new_spool <- function() {
  path <- tempfile("statcl-blocks-")
  to <- from <- NULL
  kept <- at <- 0
  shut <- function() {
    for (v in Filter(Negate(is.null), list(from, to))) close(v)
    from <<- to <<- NULL
  }
  list(
    write = function(data) {
      if (is.null(to)) to <<- file(path, "wb")
      serialize(data, to, xdr = FALSE)
      kept <<- at <<- kept + 1
    },
    rewind = function() {
      if (!is.null(from)) close(from)
      if (!is.null(to)) flush(to)
      from <<- if (!is.null(to)) file(path, "rb")
      at <<- 0
    },
    read = function() {
      if (at >= kept) return(NULL)
      at <<- at + 1
      unserialize(from)
    },
    clear = function() {
      shut()
      kept <<- at <<- 0
    },
    close = function() {
      shut()
      unlink(path)
    })
}

# The source of a reader, of which each block is kept when it has been read.
spooled <- function(reader) {
  force(reader)
  spool <- new_spool()
  done <- FALSE
  read <- function() {
    data <- spool$read()
    if (!is.null(data) || done) return(data)
    data <- reader$read()
    if (is.null(data)) done <<- TRUE else spool$write(data)
    data
  }
  list(restart = function() classed(spool$rewind(), "data"),
       read = function() classed(read(), "data"), rows = NA,
       close = function() {
         reader$close()
         spool$close()
       })
}
