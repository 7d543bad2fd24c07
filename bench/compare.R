# ./dev bench --against LIBRARY [family ...]: every line of these families with the statcl of
# another library (an older version, say) and with this one, each family in processes of its own,
# in turn: other, this, other, this, ... A line keeps its best median of each side, since a busy
# machine or a slow clock only adds. Lines whose ratio new/old is above 1.02 (STATCL_BENCH_MOST)
# then are timed again by themselves, both sides in turn and with more calls, up to
# STATCL_BENCH_REPEATS (4) times. Prints old, new and new/old, the worst first, before that and
# after it, and fails if a ratio is above the bound still. STATCL_BENCH_ROUNDS: how often all is
# timed (2); STATCL_BENCH_ONLY: a file of lines "operation size", to time no others. Neither peers
# nor base R are timed. What is compared is the device's time; the wall clock's ratio stands next to
# it.

compare_libraries <- function(families, library) {
  rounds <- as.integer(Sys.getenv("STATCL_BENCH_ROUNDS", "2"))
  repeats <- as.integer(Sys.getenv("STATCL_BENCH_REPEATS", "4"))
  most <- as.numeric(Sys.getenv("STATCL_BENCH_MOST", "1.02"))
  if (!dir.exists(file.path(library, "statcl"))) stop("there is no statcl in ", library)
  sides <- c(old = paste(library, Sys.getenv("R_LIBS"), sep = .Platform$path.sep),
             new = Sys.getenv("R_LIBS"))
  rows <- NULL
  add <- function(family, only = NULL) {
    for (side in names(sides)) {
      message(family, ", ", side)
      rows <<- rbind(rows, bench_rows(family, sides[[side]], side, only))
    }
  }
  for (round in seq_len(rounds)) for (family in families) add(family)
  table <- compare_rows(rows)
  for (again in seq_len(repeats)) {
    slow <- table[which(table$ratio > most), ]
    if (nrow(slow) == 0L) break
    if (again == 1L) print_comparison(table, most)
    for (family in unique(slow$family)) {
      add(family, with(slow[slow$family == family, ], paste(operation, size)))
    }
    table <- compare_rows(rows)
  }
  max(print_comparison(table, most), as.integer(anyNA(table$ratio)))
}

# A line for each line of the bench: its best of each side, and the ratios.
compare_rows <- function(rows) {
  key <- with(rows, paste(family, operation, size, sep = "\r"))
  best <- function(side, column) {
    mine <- rows$side == side
    tapply(rows[[column]][mine], factor(key[mine], unique(key)), min)
  }
  first <- rows[!duplicated(key), ]
  table <- data.frame(first[c("family", "operation", "size")], timed = as.vector(table(
    factor(key, unique(key)))) / 2, old = best("old", "device_ms"), new = best("new", "device_ms"),
    old_wall = best("old", "wall_ms"), new_wall = best("new", "wall_ms"))
  # Lines of the host engine have no device time.
  on_host <- is.na(table$old) | table$old == 0
  table$wall_ratio <- table$new_wall / table$old_wall
  table$ratio <- ifelse(on_host, table$wall_ratio, table$new / table$old)
  table[order(-table$ratio), ]
}

print_comparison <- function(table, most) {
  cat("| family | operation | size | rounds | old ms | new ms | new/old | old wall | new wall ",
      "| new/old |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n", sep = "")
  number <- function(x) ifelse(is.na(x), "", formatC(x, digits = 3, format = "fg"))
  cat(with(table, sprintf("| %s | %s | %s | %g | %s | %s | %.3f | %s | %s | %.3f |\n", family,
                          operation, size, timed, number(old), number(new), ratio,
                          number(old_wall), number(new_wall), wall_ratio)), sep = "")
  worse <- sum(table$ratio > most, na.rm = TRUE)
  cat(sprintf("%d lines, median ratio %.3f, %d above %.2f\n", nrow(table),
              median(table$ratio, na.rm = TRUE), worse, most))
  as.integer(worse > 0L)
}

# The rows of one family with the statcl of these libraries; `only` those lines, unless it is NULL.
bench_rows <- function(family, libraries, side, only = NULL) {
  list_of_lines <- tempfile(fileext = ".txt")
  if (!is.null(only)) writeLines(only, list_of_lines)
  file <- tempfile(fileext = ".csv")
  status <- system2(file.path(R.home("bin"), "Rscript"),
                    c("bench/run.R", family, "--rows", shQuote(file)), stdout = FALSE,
                    env = c("STATCL_BENCH_ALONE=1", paste0("R_LIBS=", shQuote(libraries)),
                            if (!is.null(only)) paste0("STATCL_BENCH_ONLY=", list_of_lines)))
  if (status != 0L || !file.exists(file)) {
    warning("the bench of ", family, " failed with the ", side, " library", call. = FALSE,
            immediate. = TRUE)
    return(NULL)
  }
  on.exit(unlink(c(file, list_of_lines)))
  cbind(side = side, utils::read.csv(file))
}
