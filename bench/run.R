# ./dev bench [family ...] [--save]: runs the scripts of the families named (default: all), prints a
# table of each. With --save the tables replace those families' sections on bench/results.md, from
# which the README's figure is drawn, or on bench/results-cpu.md if the device is a CPU; the
# other sections stay. Each section says on what, when and next to which peers it was timed.
# --against LIBRARY compares with the statcl of another library instead (compare.R); --rows FILE
# writes all rows as CSV too.

arguments <- commandArgs(TRUE)
value_of <- function(option) {
  at <- match(option, arguments)
  if (is.na(at)) return(NULL)
  if (at == length(arguments)) stop(option, " needs a value")
  arguments[at + 1L]
}
save <- "--save" %in% arguments
rows_file <- value_of("--rows")
other_library <- value_of("--against")
families <- setdiff(arguments, c("--save", "--rows", rows_file, "--against", other_library))
here <- "bench"
known <- c("gemm", "cholesky", "glm", "sampling", "lazy", "batch", "gp", "vecchia",
           "gp-experiment", "models", "stan", "gp-host", "glm-host", "calls", "transfer", "cpu")
unknown <- setdiff(families, known)
if (length(unknown) > 0L) {
  stop("no such family: ", paste(unknown, collapse = ", "), "; there are: ",
       paste(known, collapse = ", "))
}
if (length(families) == 0L) families <- known
if (!is.null(other_library)) {
  source(file.path(here, "compare.R"))
  quit(status = compare_libraries(families, other_library))
}

source(file.path(here, "common.R"))
device <- bench_open(families)
machine <- sprintf("%s, driver %s, %s. statcl %s, %s. %s.", device$name, device$driver,
                   device$version, packageVersion("statcl"), R.version.string, format(Sys.Date()))
cat(machine, sep = "\n")

# The sections of a results page, by family; none if there is no page.
read_sections <- function(path) {
  if (!file.exists(path)) return(list())
  lines <- readLines(path)
  starts <- grep("^## ", lines)
  if (length(starts) == 0L) return(list())
  ends <- c(starts[-1L] - 1L, length(lines))
  sections <- lapply(seq_along(starts), function(i) {
    text <- lines[starts[i]:ends[i]]
    text[seq_len(max(which(nzchar(text))))]
  })
  names(sections) <- sub("^## ", "", lines[starts])
  sections
}

write_sections <- function(sections, path) {
  head <- c("# Results", "", paste("Written by `./dev bench --save`; what the columns mean is in",
                                   "[README.md](README.md)."))
  writeLines(c(head, unlist(lapply(sections, function(text) c("", text)))), path)
}

# What a section says of its peers: those that were timed in this run for a line of it, and what
# the family's script says.
peers_of <- function(family) {
  used <- bench$peers$operation %in% bench$peers_asked
  names <- unique(bench$peers$peer[used])
  c(if (length(names) > 0L) paste0("Peer: ", paste(names, collapse = ", "), ", in the same run."),
    bench$peers_note)
}

results <- file.path(here, if (bench$gpu) "results.md" else "results-cpu.md")
all_rows <- list()
for (family in families) {
  if (family == "cpu" && bench$gpu) next
  cat("\n## ", family, "\n\n", sep = "")
  cat(table_head, sep = "\n")
  bench$rows <- list()
  bench$peers_asked <- bench$peers_note <- NULL
  set.seed(1)
  source(file.path(here, paste0(family, ".R")), local = new.env(parent = globalenv()))
  if (save) { # also when a later family is interrupted
    sections <- read_sections(results)
    sections[[family]] <- c(paste("##", family), "", paste(c(machine, peers_of(family)),
                                                           collapse = " "),
                            "", table_head, vapply(bench$rows, format_row, ""))
    write_sections(sections, results)
  }
  all_rows <- c(all_rows, lapply(bench$rows, function(row) cbind(family = family, row)))
}
if (!is.null(rows_file)) {
  utils::write.csv(do.call(rbind, all_rows), rows_file, row.names = FALSE)
}

if (save) {
  cat("\nwritten: ", results, "\n", sep = "")
  if (bench$gpu && "cholesky" %in% families) source(file.path(here, "figure.R"))
}
