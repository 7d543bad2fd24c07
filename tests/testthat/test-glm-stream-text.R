# Text in blocks, and the types of columns: the same rows, values and types as of the whole, or an
# error that names the line and column.

# The data of a source, of all its blocks.
all_blocks <- function(data, block, variables = NULL) {
  source <- new_source(data, block, variables)
  on.exit(source$close())
  source$restart()
  parts <- list()
  while (!is.null(part <- source$read())) parts <- c(parts, list(part))
  do.call(rbind, parts)
}

text_file <- function(text, bytes = raw()) {
  path <- tempfile(fileext = ".csv")
  writeBin(c(charToRaw(text), bytes), path)
  path
}

parts_of <- function(...) {
  at <- 0
  parts <- list(...)
  function(reset) {
    at <<- if (reset) 0 else at + 1
    if (!reset && at <= length(parts)) parts[[at]]
  }
}

expect_same_coef <- function(fit, whole) {
  expect_identical(names(coef(fit)), names(coef(whole)))
  expect_equal(coef(fit), coef(whole), tolerance = 1e-8)
  expect_equal(fit$xlevels, whole$xlevels)
}

test_that("a factor of a column is the same in all blocks", {
  set.seed(3)
  d <- data.frame(id = rep(c(100000L, 100001L, 9L, 10L), c(9, 9, 4, 8)), x = rnorm(30))
  d$y <- d$x + d$id %% 7 + rnorm(30)
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path))
  formulas <- list(y ~ factor(id), y ~ x + as.character(id), y ~ factor(as.character(id)),
                   y ~ factor(id, rev(sort(unique(c(9, 10, 100000, 100001))))),
                   y ~ interaction(id, x > 0), y ~ I(paste(id) == "1e+05") + addNA(factor(id)))
  on_host(for (wide in c(FALSE, TRUE)) {
    if (wide) d$id[25] <- 2.5
    write.csv(d, path, row.names = FALSE)
    d <- read.csv(path)
    expect_identical(is.integer(d$id), !wide)
    mixed <- function() {
      part <- function(rows) transform(d[rows, ], id = if (wide) id else as.integer(id))
      first <- d[1:9, ]
      if (wide) first$id <- as.integer(first$id)
      parts_of(first, part(10:20), part(21:30))
    }
    reader <- function() {
      read <- mixed()
      read(TRUE)
      structure(list2env(list(read_next_batch = function() read(FALSE))),
                class = "RecordBatchReader")
    }
    for (k in seq_along(formulas)) {
      formula <- formulas[[k]]
      whole <- cl_glm(formula, d, "normal_id")
      sources <- list(function() path, function() file(path), mixed, reader)
      for (source in full_or_quick(sources, sources[(k + wide) %% 4 + 1])) {
        source <- source()
        fit <- cl_glm(formula, source, "normal_id", block = 4)
        expect_same_coef(fit, whole)
        expect_equal(suppressWarnings(predict(fit, d)), suppressWarnings(predict(whole, d)),
                     tolerance = 1e-8)
        if (is.character(source) || is.function(source)) {
          expect_equal(fitted(fit), unname(fitted(whole)), tolerance = 1e-8)
        }
      }
    }
    if (wide) expect_equal(unname(predict(cl_glm(y ~ factor(id), path, "normal_id", block = 4),
                                          data.frame(id = 100000L))), mean(d$y[d$id == 1e5]))
  })
})

test_on_host("blocks of a function have the types of all blocks, or are refused", {
  x <- c(3, 1, 2, 5, 4, 9, 7, 8)
  d <- data.frame(y = x + c(0.1, 0.3, -0.2, 0.4, 0, 0.2, -0.1, 0.3), x = x)
  with <- function(first, later) {
    parts_of(data.frame(d[1:4, ], z = first), data.frame(d[5:8, ], z = later))
  }
  a <- c("a", "b", "b", "a")
  pairs <- list(
    list(c(1L, 2L, 2L, 1L), c(1.5, 2, 1, 2.5), z = TRUE), list(c(1.5, 2, 1, 2), 4:1, z = TRUE),
    list(NA, c(1, 2, 2, 1), z = TRUE), list(c("a", "b", "b", "a"), NA, z = TRUE),
    list(factor(a), factor(rev(a), c("b", "a")), z = TRUE),
    list(factor(a), factor(c("c", "b", "d", "c")), z = TRUE),
    list(factor(c(a[1:3], NA), exclude = NULL), factor(a), z = TRUE),
    list(structure(1:4, class = "Date"), structure(c(1, 2, 2, 1), class = "Date"), z = TRUE),
    list(c(TRUE, FALSE, TRUE, FALSE), 1:4), list(1:4, a), list(a, factor(a)), list(a, a == "a"),
    list(factor(a), ordered(a)), list(ordered(a), ordered(a, c("b", "a"))),
    list(as.difftime(1:4, units = "mins"), as.difftime(1:4, units = "hours")),
    list(as.Date(1:4, origin = "2020-01-01"), as.POSIXct("2020-01-01") + 1:4))
  for (pair in pairs) for (formula in list(y ~ x + as.numeric(z), y ~ x + factor(z))) {
    source <- with(pair[[1L]], pair[[2L]])
    if (is.null(pair$z)) {
      expect_refused("data", suppressWarnings(cl_glm(formula, source, "normal_id")),
                     says = "'z'.*in one block and.*in another")
      next
    }
    whole <- rbind(source(FALSE), source(FALSE))
    if (is.character(whole$z) && length(all.names(formula[[3L]])) > 2L) formula <- y ~ x + factor(z)
    expect_same_coef(suppressWarnings(cl_glm(formula, source, "normal_id")),
                     suppressWarnings(cl_glm(formula, whole, "normal_id")))
  }
})

test_that("terms that depend on other rows are refused where a level is late", {
  d <- data.frame(y = c(1, 3, 2, 5, 4, 6, 8, 7), x = c(1, 4, 2, 3, 5, 9, 7, 8),
                  g = rep(c("a", "b"), c(5, 3)))
  on_host(for (term in c("cumsum(x)", "seq_along(x)", "rev(x)", "as.integer(factor(g))",
                         "ave(x, g)", "as.integer(factor(x))")) {
    expect_refused("formula", cl_glm(as.formula(paste("y ~", term)), d, "normal_id", block = 3))
  })
})

test_that("text is read as by read.csv()", {
  texts <- c(
    "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,\"x\r\ny\"\r\n", "a,b\n\n1,2\n\n\n3,4\n\n", "a\n1\n\n2\n",
    "a,b\n#1,2\n3,4 # no\n", "a b,a b,1,a\n1,2,3,4\n", "a,b\n1\n2,3\n4\n", "a,b\nr1,1,2\nr2,3,4\n",
    "a,b\n 1 , x \n\" 2\", \"y\" \n", "a,b\n\"p \"\"q\"\"\",\"\"\"\"\n,\n",
    "a,b\n\"x,1\ny\n\n\",2\n1,3\n",
    "a,b\nT,1\nF,2\nU,3\n", "a,b\nT,1\nF,2\n3,3\n", "a,b\n007,1\n8,1.0\n9,z\n",
    "a,b\n,NA\n,\nx,1\n",
    "a,b\n1,2\n\"\"\n3,4\n", "a,b\r\n\"\"\r\n\"p\nq\",4\r\n\"\"", "a\n\"x\"\n\"\"\n",
    "a,b\n1,T\n2000000000,F\n3000000000,\n4.5,T\n", "a,b\n1,2\n3+1i,4\n",
    "\"a\",\"b\"\n\"1\",\"NA\"\n2,x\n",
    "a,b\nInf,1e5\nNaN,100000\n", "a,b\n1,'x\n2,y'\n", "a,b\n")
  for (text in texts) for (block in c(1, 2, 100)) {
    path <- text_file(text)
    whole <- `row.names<-`(suppressWarnings(read.csv(path)), NULL)
    if (nrow(whole) == 0L) whole <- NULL
    expect_identical(all_blocks(path, block), whole, label = text)
    expect_identical(all_blocks(file(path, blocking = FALSE), block), whole, label = text)
    bytes <- rawConnection(charToRaw(text))
    expect_identical(all_blocks(bytes, block, "a"), whole[names(whole) == "a"], label = text)
    close(bytes)
    unlink(path)
  }
  d <- data.frame(a = 1:2, b = c("\u00e9", "z"))
  path <- text_file("\ufeffa,b\n1,\u00e9\n2,z\n")
  expect_identical(all_blocks(path, 1), d)
  writeBin(c(charToRaw("a,b\n1,"), as.raw(0xe9), charToRaw("\n2,z\n")), path)
  expect_identical(all_blocks(file(path, encoding = "latin1"), 1), d)
  for (open in list(gzfile, bzfile, xzfile)) {
    to <- open(path, "w")
    writeLines(c("a,b", "1,\u00e9", "2,z"), to, useBytes = TRUE)
    close(to)
    expect_identical(all_blocks(path, 1), d)
    expect_identical(all_blocks(open(path), 1), d)
  }
  unlink(path)
})

test_that("a text that cannot be read right is refused, by line and column", {
  before <- nrow(showConnections())
  fault <- function(text, line, column = NULL, bytes = raw()) {
    path <- text_file(text, bytes)
    on.exit(unlink(path))
    for (block in c(1, 100)) for (source in list(path, file(path))) {
      e <- expect_fault(all_blocks(source, block), "argument", argument = "data", line = line,
                   column = column)
    }
    e
  }
  e <- fault("a,b\n1,2\n3,5\" pipe\n4,5\n", 3, 2)
  expect_match(conditionMessage(e), "line 3, column 2 ('b')", fixed = TRUE)
  fault("a,b\n1,2\n3,5\" pipe\n4,5\n5,6\" pipe\n6,7\n", 3, 2)
  fault("a,b\n1,2\n\"3,4\n5,6\n", 3, 1)
  fault("a,b\n1,2\n\"3\"x,4\n5,6\n", 3, 1)
  fault("a,b\n\"1\n\n2\",\"3\n4\"5\"\n6,7\n", 4, 2)
  fault("a,b\n1,\"2\" \"3\"\n", 2, 2)
  fault("a,b\n1,2\n3,4,5\n6,7\n", 3)
  fault("a,b\n1,2\n3,4,\n6,7\n", 3)
  fault("a,b\n1,2\n3,4,5,6\n6,7\n", 3)
  fault("a,b\nr,1,2\ns,3\n", 3)
  fault("a,b\n1,2\n3,", 3, 2, as.raw(c(0x34, 0x00, 0x0a)))
  fault("a,b\n1,2\n3,", 3, 2, as.raw(c(0xe9, 0x0a)))
  fault("a,", 1, 2, as.raw(c(0xe9, 0x0a, 0x31, 0x0a)))
  path <- text_file("a,b\n1,2\n3,", as.raw(c(0xe9, 0x0a)))
  expect_refused("data", all_blocks(file(path, encoding = "UTF-8"), 1))
  to <- file(path, "w")
  expect_refused("data", cl_glm(a ~ b, to))
  close(to)
  expect_refused("data", cl_glm(a ~ b, to), cl_glm(a ~ b, tempdir()))
  set.seed(4)
  for (open in list(gzfile, bzfile, xzfile)) {
    to <- open(path, "w")
    writeLines(c("a,b", paste(rnorm(200), 1:200, sep = ",")), to)
    close(to)
    bytes <- readBin(path, "raw", 1e5)
    for (k in sample(20:length(bytes), full_or_quick(50, 3))) {
      writeBin(utils::head(bytes, k - 1L), path)
      expect_refused("data", all_blocks(path, 50))
      writeBin(replace(bytes, k, xor(bytes[k], as.raw(2^sample(0:7, 1)))), path)
      expect_refused("data", all_blocks(open(path), 50))
    }
  }
  unlink(path)
  expect_equal(nrow(showConnections()), before)
})

# A text of random columns of random values, some of them in quotes, with a fault in one of four.
random_text <- function() {
  pool <- c("1", "2", "100000", "100001", "2.5", "-3e4", "1e5", "0x1A", "NA", "", "TRUE", "F", "T",
            " 4", "a", "b c", "x,y", "l1\nl2", "say \"hi\"", "3000000000", "Inf", "#x", "'q",
            "\u00e9", " ", "-", "1e", "i", "2i")
  rows <- sample(c(1:9, 40), 1)
  quoted <- function(v) {
    k <- grepl("[,\n\"]", v) | runif(length(v)) < 0.3
    replace(v, k, paste0("\"", gsub("\"", "\"\"", v[k], fixed = TRUE), "\""))
  }
  columns <- replicate(sample(2:4, 1), {
    v <- sample(sample(pool, sample(4, 1)), rows, TRUE)
    if (runif(1) < 0.4) v[seq_len(rows %/% 2)] <- sample(c("1", "NA", "T", "", "100000"), 1)
    quoted(v)
  }, simplify = FALSE)
  lines <- c(paste(quoted(letters[seq_along(columns)]), collapse = ","),
             do.call(paste, c(columns, sep = ",")))
  if (runif(1) < 0.3) lines <- append(lines, "", sample(length(lines), 1))
  end <- sample(c("\n", "\r\n"), 1)
  text <- paste0(paste(lines, collapse = end), if (runif(1) < 0.7) end)
  if (runif(1) > 0.25) return(text)
  k <- sample(nchar(lines[1L]):nchar(text), 1)
  paste0(substr(text, 1, k), sample(c("\"", ",", "\n", "x"), 1), substring(text, k + 2))
}

test_that("random texts have the values of read.csv(), or are refused", {
  set.seed(6)
  path <- tempfile()
  refused <- 0
  for (i in seq_len(full_or_quick(3000, 80))) {
    text <- random_text()
    writeBin(charToRaw(enc2utf8(text)), path)
    whole <- tryCatch(suppressWarnings(read.csv(path)), error = function(e) "refused")
    found <- tryCatch(all_blocks(if (i %% 2) path else file(path), sample(c(1:3, 7, 100), 1)),
                      statcl_error_argument = function(e) NULL)
    if (is.null(found)) refused <- refused + 1 else if (is.data.frame(whole))
      expect_identical(found, `row.names<-`(whole, NULL), label = text)
  }
  unlink(path)
  expect_lt(refused, i / 4)
})
