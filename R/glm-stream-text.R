# Tables in text, by blocks: comma-separated values with a header, with the values that read.csv()
# gives of the whole text. Each line is part of a row, blank, or named by an error. The types of
# columns are those of all rows, found before the first block is given.

# Stops with the line and, if it is known, the column of a fault.
abort_text <- function(message, line, column = NULL, names = NULL) {
  where <- if (!is.null(column)) sprintf(", column %d", as.integer(column))
  if (isTRUE(column <= length(names))) where <- sprintf("%s ('%s')", where, names[column])
  statcl_abort("argument", sprintf("'data' cannot be read: line %.0f%s: %s", line,
                                   paste(where, collapse = ""), message),
               argument = "data", line = line, column = column)
}

occurrences <- function(what, text) {
  nchar(text, "bytes") - nchar(gsub(what, "", text, fixed = TRUE, useBytes = TRUE), "bytes")
}

# The number of fields of each record.
count_fields <- function(records) {
  1 + occurrences(",", gsub("\"[^\"]*\"?", "", records, perl = TRUE, useBytes = TRUE))
}

# At most n lines of a connection, of which `at` have been read before.
read_lines <- function(con, n, at, names) {
  incomplete <- strsplit(gettext("incomplete final line found on '%s'", domain = "R"), "%s",
                         fixed = TRUE)[[1L]]
  told <- NULL
  lines <- withCallingHandlers(readLines(con, n), warning = function(w) {
    message <- conditionMessage(w)
    harmless <- startsWith(message, incomplete[1L]) && endsWith(message, incomplete[2L])
    if (!harmless && is.null(told)) told <<- message
    invokeRestart("muffleWarning")
  })
  if (!is.null(told)) {
    nul <- grepl("^line [0-9]+ appears to contain an embedded nul", told)
    k <- if (nul) as.integer(gsub("[^0-9]", "", told)) else length(lines)
    abort_text(if (nul) "a zero byte, as in binary files and in text of two bytes a character" else
      told, at + k, if (nul) count_fields(lines[k]), names)
  }
  # connections that do not block keep a last line without a newline back
  if (length(lines) == 0L && isIncomplete(con)) {
    lines <- scan(con, "", 1L, sep = "\n", quote = "", quiet = TRUE)
  }
  lines
}

# Records whose fields are in quotes as a whole or not at all, except for blanks around the quotes.
right_fields <- paste0("(?:[^\",]*+(?![^,])|[ \t]*+\"(?:[^\"]++|\"\")*+\"[ \t]*+)")
has_right_fields <- function(records) {
  grepl(sprintf("^%s(?:,%s)*+$", right_fields, right_fields), records, perl = TRUE, useBytes = TRUE)
}

# Lines that are no record for read.csv() either.
is_empty <- function(lines) lines %in% c("", "\"\"")

# The records in lines of text, which may go on over several lines within quotes: list(text, line:
# the first line of each, open: the text of the last one if it has not ended, open_line).
join_records <- function(lines, line, names) {
  k <- grep("\"", lines, fixed = TRUE, useBytes = TRUE)
  k <- k[!has_right_fields(lines[k])]
  if (length(k) == 0L) {
    use <- !is_empty(lines)
    return(list(text = lines[use], line = line[use], open = character(), open_line = numeric()))
  }
  even <- grepl("^(?:[^\"]*+\"[^\"]*+\")*+[^\"]*+$", lines[k], perl = TRUE, useBytes = TRUE)
  closed <- cumsum(seq_along(lines) %in% k[!even]) %% 2 == 0
  begins <- c(TRUE, closed[-length(closed)])
  record <- cumsum(begins)
  doubtful <- record %in% record[!begins]
  whole <- split(lines[doubtful], record[doubtful])
  lines[begins & doubtful] <- vapply(whole, paste, "", collapse = "\n", USE.NAMES = FALSE)
  doubtful[k] <- TRUE
  use <- begins & !is_empty(lines)
  lines <- lines[use]
  line <- line[use]
  open <- !closed[length(closed)]
  check_quotes(lines[doubtful[use]], line[doubtful[use]], open, names)
  k <- seq_along(lines) <= length(lines) - open
  list(text = lines[k], line = line[k], open = lines[!k], open_line = line[!k])
}

# `open`: the last record has not ended.
check_quotes <- function(records, line, open, names) {
  closed <- records
  n <- length(records)
  if (open) closed[n] <- paste0(closed[n], "\"")
  bad <- which(!has_right_fields(closed))
  if (length(bad) > 0L) abort_quote(records[bad[1L]], line[bad[1L]], names, paste(
    "a quote within a field: a field with quotes must begin and end with one, and have those",
    "within it twice"))
  if (open && nchar(records[n], "bytes") > 2^24) abort_open(records[n], line[n], names)
}

abort_open <- function(record, line, names) {
  abort_quote(record, line, names, "the quote that opens this field is not closed")
}

# Stops at the first field that is not well formed.
abort_quote <- function(record, line, names, message) {
  size <- attr(regexpr(sprintf("^(?:%s,)*+", right_fields), record, perl = TRUE, useBytes = TRUE),
               "match.length")
  before <- rawToChar(charToRaw(record)[seq_len(max(size, 0L))])
  abort_text(message, line + occurrences("\n", before), count_fields(before), names)
}

scan_text <- function(text, what, ...) {
  con <- textConnection(text, encoding = "bytes")
  on.exit(close(con))
  scan(con, what, sep = ",", quote = "\"", comment.char = "", blank.lines.skip = FALSE,
       quiet = TRUE, ...)
}

# Text must be valid in the encoding of the session.
check_encoding <- function(text, line, column, names) {
  bad <- which(!validEnc(text))
  if (length(bad) > 0L) abort_text(paste(
    "text that is not valid in the encoding of the session: name the encoding of the file, as in",
    "data = file(\"name.csv\", encoding = \"latin1\")"), line[bad[1L]], column, names)
}

# A reader of records, for one pass: read() gives list(columns: strings, rows), NULL at the end.
# `variables`: the columns to keep, NULL for all; `copy`: a connection for the lines, or NULL.
record_reader <- function(con, block, variables, copy = NULL) {
  at <- 0
  names <- labelled <- NULL
  rest <- list(open = character(), open_line = numeric())
  next_records <- function() {
    lines <- read_lines(con, if (is.null(names)) 1 else block, at, names)
    if (length(lines) == 0L) {
      if (length(rest$open) > 0L) abort_open(rest$open, rest$open_line, names)
      return(NULL)
    }
    if (!is.null(copy)) writeLines(lines, copy, useBytes = TRUE)
    mark <- as.raw(c(0xef, 0xbb, 0xbf))
    if (at == 0 && identical(utils::head(charToRaw(lines[1L]), 3L), mark)) {
      lines[1L] <- rawToChar(charToRaw(lines[1L])[-(1:3)])
    }
    line <- at + seq_along(lines)
    at <<- at + length(lines)
    rest <<- join_records(c(rest$open, lines), c(rest$open_line, line), names)
    rest[c("text", "line")]
  }
  head_of <- function(records) {
    fields <- scan_text(records$text[1L], "", strip.white = TRUE)
    for (k in seq_along(fields)) check_encoding(fields[k], records$line[1L], k, NULL)
    names <<- make.names(fields, unique = TRUE)
  }
  read <- function() {
    repeat {
      records <- next_records()
      if (is.null(records)) return(NULL)
      if (is.null(names) && length(records$text) > 0L) {
        head_of(records)
        records <- lapply(records, `[`, -1L)
      }
      if (length(records$text) == 0L) next
      # as for read.csv(), rows with one field more begin with their names
      if (is.null(labelled)) labelled <<- count_fields(records$text[1L]) == length(names) + 1
      return(fields_of(records, names, labelled, variables))
    }
  }
  list(read = read, close = function() close(con))
}

# The columns of records.
fields_of <- function(records, names, labelled, variables) {
  k <- if (is.null(variables)) seq_along(names) else which(names %in% variables)
  what <- vector("list", length(names))
  what[k] <- ""
  # one more column shows rows that are too long, if it is not blank
  found <- scan_text(records$text, c(if (labelled) list(NULL), what, ""), fill = TRUE,
                     multi.line = FALSE, na.strings = "NA")
  beyond <- found[[length(found)]]
  wrong <- length(beyond) != length(records$text) || !all(beyond %in% "")
  if (wrong || labelled || any(endsWith(records$text, ","))) {
    count <- count_fields(records$text)
    width <- length(names) + labelled
    bad <- which(count > width | (labelled & count < width))[1L]
    if (!is.na(bad)) abort_text(sprintf("%d fields instead of %d", count[bad], width),
                                records$line[bad])
    if (wrong) abort_text("rows that cannot be distinguished", records$line[1L])
  }
  columns <- stats::setNames(found[k + labelled], names[k])
  for (j in seq_along(k)) check_encoding(columns[[j]], records$line, k[j], names)
  list(columns = columns, rows = length(beyond))
}

# Compressed files end with a check of their content, but R's connections simply end where they are
# damaged or cut off. So a mark is appended to a copy of the file; it is reached only if the file is
# intact.
check_intact <- function(con) {
  path <- summary(con)$description
  if (!summary(con)$class %in% c("file", "gzfile", "bzfile", "xzfile") || !file.exists(path)) {
    return(invisible())
  }
  first <- readBin(path, "raw", 6L)
  kind <- Find(function(k) identical(utils::head(first, length(k$begins)), as.raw(k$begins)), list(
    list(begins = c(0x1f, 0x8b), append = gzfile),
    list(begins = c(0x42, 0x5a, 0x68), append = bzfile),
    list(begins = c(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00), append = xzfile)))
  if (is.null(kind)) return(invisible())
  copy <- tempfile("statcl-blocks-")
  on.exit(unlink(copy))
  file.copy(path, copy)
  mark <- "the end of an intact file"
  to <- kind$append(copy, "ab")
  cat(mark, file = to)
  close(to)
  from <- gzfile(copy, "rb")
  on.exit(close(from), add = TRUE, after = FALSE)
  last <- raw()
  part <- function() {
    suppressWarnings(tryCatch(readBin(from, "raw", 2^20), error = function(e) raw()))
  }
  while (length(v <- part()) > 0L) last <- utils::tail(c(last, v), nchar(mark))
  if (!identical(last, charToRaw(mark))) {
    abort_argument("data", "'data' cannot be read: the compressed file is damaged or cut off")
  }
}

# The type of a column's values, NA if it has none.
text_type <- function(v) if (!all(is.na(v))) typeof(v) else NA_character_

# The type of a column whose parts have these types.
join_types <- function(a, b) {
  if (is.na(a) || is.na(b)) return(if (is.na(a)) b else a)
  numbers <- c("integer", "double", "complex")
  if (a == b) a else if (a %in% numbers && b %in% numbers)
    numbers[max(match(c(a, b), numbers))] else "character"
}

# The source of a text. Blocks are kept in a temporary file, with their types, which takes less time
# to read than text. If a column turns out to be text later, everything is read again, from a copy
# of the lines if the source is a connection.
text_source <- function(data, block, variables) {
  if (is.character(data) && (length(data) != 1L || is.na(data) || !file.exists(data) ||
                             dir.exists(data))) {
    abort_argument("data", "'data' must be the name of one file that exists")
  }
  spool <- new_spool()
  types <- NULL
  path <- if (is.character(data)) data else tempfile("statcl-text-")
  con <- if (!is.character(data)) data
  theirs <- !is.character(data) && classed(isOpen(data), "data")
  copy <- NULL
  done <- FALSE
  shut <- function() {
    if (!is.null(con) && !theirs) close(con)
    if (!is.null(copy)) close(copy)
    con <<- copy <<- NULL
  }
  keep <- function() {
    if (is.null(con)) con <<- file(path)
    if (!theirs) open(con, "rt")
    check_intact(con)
    reader <- record_reader(con, block, variables, copy)
    stale <- FALSE
    while (!is.null(part <- reader$read())) {
      found <- lapply(part$columns, utils::type.convert, as.is = TRUE)
      new <- vapply(found, text_type, "")
      old <- if (is.null(types)) new else types
      types <<- mapply(join_types, old, new)
      text <- types %in% "character"
      stale <- stale || any(text & !old %in% c(NA, "character"))
      if (stale) next
      found[text | is.na(new)] <- part$columns[text | is.na(new)]
      spool$write(structure(found, row.names = .set_row_names(part$rows), class = "data.frame"))
    }
    shut()
    theirs <<- FALSE
    !stale
  }
  restart <- function() {
    if (!done) {
      if (!is.character(data)) copy <<- file(path, "wb")
      while (!keep()) spool$clear()
      if (!is.character(data)) unlink(path)
      done <<- TRUE
    }
    spool$rewind()
  }
  read <- function() {
    part <- spool$read()
    for (name in names(types)[!is.na(types)]) if (!is.null(part)) {
      v <- part[[name]]
      if (typeof(v) == types[[name]]) next
      if (is.character(v)) v <- rep(NA, length(v))
      part[[name]] <- as.vector(v, types[[name]])
    }
    for (name in names(types)[is.na(types)]) if (!is.null(part)) part[[name]] <- NA
    part
  }
  list(restart = function() classed(restart(), "data"), read = function() classed(read(), "data"),
       close = function() {
         shut()
         spool$close()
         if (!is.character(data)) unlink(path)
       }, rows = NA)
}
