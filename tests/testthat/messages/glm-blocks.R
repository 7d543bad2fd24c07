d <- data.frame(y = rep(0:1, 4), x = c(1, 3, 2, 5, 4, 1, 2, 3), f = rep(c("a", "b"), each = 4),
                z = Inf)
parts_of <- function(...) {
  at <- 0
  parts <- list(...)
  function(reset) {
    at <<- if (reset) 0 else at + 1
    if (!reset && at <= length(parts)) parts[[at]]
  }
}
rows_of <- function(data, later = identity) {
  at <- pass <- 0
  function(reset = FALSE) {
    if (reset) {
      at <<- 0
      pass <<- pass + 1
      return(NULL)
    }
    rows <- seq_len(nrow(data))[seq_len(nrow(data)) > at]
    rows <- rows[seq_len(min(3, length(rows)))]
    at <<- at + 3
    if (length(rows) > 0L) if (pass > 2) later(data[rows, ]) else data[rows, ]
  }
}
fit <- cl_glm(y ~ x, d, block = 3)
once <- structure(list2env(list(read_next_batch = rows_of(d))), class = "RecordBatchReader")
once <- cl_glm(y ~ x, once)

again <- function(reset = FALSE) read(reset = reset)
read <- rows_of(d)
other <- cl_glm(y ~ x, again)
read <- rows_of(transform(d, x = -x))

# sources
cl_glm(y ~ x, 1)
cl_glm(y ~ x, 1, block = 3)
cl_glm(y ~ x, "no such file")
cl_glm(y ~ x, function(reset) NULL)
cl_glm(y ~ x, function(reset) 1)
cl_glm(y ~ x, function(reset) stop("the server is gone"))
cl_glm(y ~ x, d, block = 0)

# text
lines_of <- function(...) textConnection(c("y,x", "1,2", "0,3", ...))
bytes_of <- function(...) {
  path <- tempfile()
  writeBin(c(charToRaw("y,x\n1,2\n0,"), as.raw(c(...))), path)
  path
}
damaged <- local({
  path <- tempfile()
  to <- gzfile(path, "w")
  writeLines(c("y,x", "1,2", "0,3", "1,1"), to)
  close(to)
  writeBin(utils::head(readBin(path, "raw", 100), -5), path)
  path
})
cl_glm(y ~ x, lines_of("1,5\" pipe", "0,6"))
cl_glm(y ~ x, lines_of("1,\"5", "0,6"), block = 1)
cl_glm(y ~ x, lines_of("1,5,3"))
cl_glm(y ~ x, bytes_of(0x35, 0x00, 0x36, 0x0a))
cl_glm(y ~ x, bytes_of(0xe9, 0x0a))
cl_glm(y ~ x, damaged)
gone <- unlink(damaged)

# what cannot be fitted
cl_glm(~ x, d, block = 3)
cl_glm(y ~ x, d, method = "map", block = 3)
cl_glm(y ~ x | f, d, cl_family("beta"), block = 3)
cl_glm(f ~ x, d, "categorical_logit", block = 3)
cl_glm(y ~ poly(x, 2), d, block = 3)
cl_glm(I(y + 1) ~ x, d, block = 3)
cl_glm(z ~ x, d, "normal_id", block = 3)
cl_glm(y ~ z, d, block = 3)
cl_glm(y ~ x, d, subset = x > 9, block = 3)
cl_glm(y ~ x, parts_of(d, transform(d, x = as.character(x))))
cl_glm(y ~ x, parts_of(d, transform(d, x = x > 2)))
cl_glm(y ~ f, parts_of(transform(d, f = ordered(f)), transform(d, f = ordered(f, c("b", "a")))))

# blocks and passes that differ, where each pass reads them
options(statcl.glm_cache = 0)
cl_glm(y ~ x, rows_of(d, function(block) block["y"]))
cl_glm(y ~ x, rows_of(d, function(block) transform(block, x = f)))
cl_glm(y ~ x, rows_of(d, function(block) transform(block, y = 1 - y)))
cl_glm(y ~ x, rows_of(d, function(block) transform(block, x = x / 2)))
cl_glm(y ~ f, rows_of(d), xlev = list(f = c("a", "c")))
options(statcl.glm_cache = NULL)

# the fit
fitted(once)
anova(once)
fitted(other)
model.frame(fit)
plot(fit)
simulate(fit)
predict(fit, se.fit = TRUE)
predict(fit, type = "terms")
residuals(fit, "partial")
rstudent(fit)
