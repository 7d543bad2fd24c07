# Draws the README's figure from bench/results.md: time of a Cholesky factor against n. Run by
# `./dev bench --save`, or alone: Rscript bench/figure.R. The same results give the same file.

# Columns of the rows of one operation on a results page, by the head of their table.
read_rows <- function(page, operation) {
  cells <- function(line) trimws(strsplit(gsub("^\\||\\|$", "", line), "|", fixed = TRUE)[[1L]])
  head <- cells(grep("^\\| operation \\|", page, value = TRUE)[1L])
  rows <- lapply(grep(sprintf("^\\| %s \\|", operation), page, value = TRUE), function(line) {
    row <- cells(line)
    length(row) <- length(head)
    row
  })
  if (length(rows) == 0L) stop("no rows of ", operation, " on the results page")
  table <- as.data.frame(do.call(rbind, rows), stringsAsFactors = FALSE)
  names(table) <- head
  numeric <- c("size", "device ms", "peer ms", "floor ms")
  table[numeric] <- lapply(table[numeric], as.numeric)
  table[order(table$size), ]
}

# Stan Math 4.7, its OpenCL backend, matrix on the device: timed once on an H200, not in the run of
# the results page.
stan_math <- data.frame(size = c(512, 1000, 2000, 4000, 8000), ms = c(2.2, 5.5, 12.5, 30.6, 95.7))

draw_cholesky <- function(rows, device) {
  rows <- rows[rows$size >= 512, ]
  style <- data.frame(
    what = c("Stan Math 4.7, OpenCL (timed apart)", "cuSOLVER (PyTorch)", "statcl",
             "floor: flops at the FP64 rate"),
    colour = c("#b07aa1", "#e08214", "#08519c", "#737373"),
    point = c(17, 15, 19, NA), width = c(1.5, 1.5, 2.5, 1.5), line = c(1, 1, 1, 2),
    stringsAsFactors = FALSE)
  times <- list(stan_math, data.frame(size = rows$size, ms = rows$`peer ms`),
                data.frame(size = rows$size, ms = rows$`device ms`),
                data.frame(size = rows$size, ms = rows$`floor ms`))
  par(mar = c(3.5, 4.5, 2, 1), las = 1, mgp = c(2.3, 0.6, 0), tcl = -0.3)
  plot(NA, xlim = range(rows$size), ylim = c(1e-3, 1e3), log = "xy", axes = FALSE, xlab = "n",
       ylab = "", font.main = 1, cex.main = 1.1,
       main = paste0("Cholesky factor of an n x n matrix, double precision, ", device))
  mtext("milliseconds on the device", 2, 3.3, las = 0)
  decades <- 10^(-3:3)
  abline(h = decades, v = rows$size, col = "#e5e5e5")
  axis(1, rows$size, lwd = 0, lwd.ticks = 1, cex.axis = 0.85)
  axis(2, decades, format(decades, scientific = FALSE, drop0trailing = TRUE, trim = TRUE), lwd = 0,
       lwd.ticks = 1, cex.axis = 0.85)
  for (i in c(4L, 1L, 2L, 3L)) {
    lines(times[[i]]$size, times[[i]]$ms, col = style$colour[i], lwd = style$width[i],
          lty = style$line[i])
    if (!is.na(style$point[i])) {
      points(times[[i]]$size, times[[i]]$ms, col = style$colour[i], pch = style$point[i])
    }
  }
  legend("topleft", style$what, col = style$colour, pch = style$point, lwd = style$width,
         lty = style$line, bg = "white", box.col = NA, cex = 0.9, inset = 0.02)
}

# SVG without white space at line ends, which ./dev lint refuses.
save_figure <- function(page, file) {
  device <- sub("^(.*?), driver.*$", "\\1", grep(", driver ", page, value = TRUE)[1L], perl = TRUE)
  svg(file, width = 7, height = 4.8, family = "sans")
  draw_cholesky(read_rows(page, "potrf"), device)
  dev.off()
  writeLines(sub("[[:space:]]+$", "", readLines(file)), file)
  invisible(file)
}

save_figure(readLines("bench/results.md"), "bench/figures/cholesky.svg")
