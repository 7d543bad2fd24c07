# ./dev bench --against LIBRARY [family ...]: every line of these families with the statcl of
# another library (an older version, say) and with this one, each family in processes of its own,
# in turn: other, this, other, this, ... A line keeps its best median of each side, since a busy
# machine or a slow clock only adds. Prints old, new and new/old, the worst first, and fails if a
# ratio passes 1.02 (STATCL_BENCH_MOST). STATCL_BENCH_ROUNDS: how often (2). Neither peers nor base
# R are timed. What is compared is the device's time; the wall clock's ratio stands beside it.

compare_libraries <- function(families, library) {
  rounds <- as.integer(Sys.getenv("STATCL_BENCH_ROUNDS", "2"))
  most <- as.numeric(Sys.getenv("STATCL_BENCH_MOST", "1.02"))
  if (!dir.exists(file.path(library, "statcl"))) stop("there is no statcl in ", library)
  sides <- c(old = paste(library, Sys.getenv("R_LIBS"), sep = .Platform$path.sep),
             new = Sys.getenv("R_LIBS"))
  rows <- NULL
  for (round in seq_len(rounds)) for (family in families) for (side in names(sides)) {
    rows <- rbind(rows, bench_rows(family, sides[[side]], side))
  }
  key <- with(rows, paste(family, operation, size, sep = "\r"))
  best <- function(side, column) {
    mine <- rows$side == side
    tapply(rows[[column]][mine], factor(key[mine], unique(key)), min)
  }
  first <- rows[!duplicated(key), ]
  table <- data.frame(first[c("family", "operation", "size")], old = best("old", "device_ms"),
                      new = best("new", "device_ms"), old_wall = best("old", "wall_ms"),
                      new_wall = best("new", "wall_ms"))
  # Lines of the host engine have no device time.
  on_host <- is.na(table$old) | table$old == 0
  ratio <- ifelse(on_host, table$new_wall / table$old_wall, table$new / table$old)
  table <- cbind(table, ratio = ratio, wall_ratio = table$new_wall / table$old_wall)
  table <- table[order(-table$ratio), ]
  cat("| family | operation | size | old ms | new ms | new/old | old wall | new wall | new/old |\n",
      "|---|---|---:|---:|---:|---:|---:|---:|---:|\n", sep = "")
  number <- function(x) ifelse(is.na(x), "", formatC(x, digits = 3, format = "fg"))
  cat(with(table, sprintf("| %s | %s | %s | %s | %s | %.3f | %s | %s | %.3f |\n", family,
                          operation, size, number(old), number(new), ratio, number(old_wall),
                          number(new_wall), wall_ratio)), sep = "")
  worse <- sum(table$ratio > most, na.rm = TRUE)
  cat(sprintf("%d lines, median ratio %.3f, %d above %.2f\n", nrow(table),
              median(table$ratio, na.rm = TRUE), worse, most))
  as.integer(worse > 0L)
}

# The rows of one family with the statcl of these libraries.
bench_rows <- function(family, libraries, side) {
  file <- tempfile(fileext = ".csv")
  status <- system2(file.path(R.home("bin"), "Rscript"),
                    c("bench/run.R", family, "--rows", shQuote(file)), stdout = FALSE,
                    env = c("STATCL_BENCH_ALONE=1", paste0("R_LIBS=", shQuote(libraries))))
  if (status != 0L || !file.exists(file)) {
    stop("the bench of ", family, " failed with the ", side, " library")
  }
  on.exit(unlink(file))
  cbind(side = side, utils::read.csv(file))
}
