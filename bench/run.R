# ./dev bench [family ...] [--save]: runs the scripts of the families named (default: all), prints a
# table of each, and with --save writes them to bench/results.md, from which the README's figure is
# drawn, or to bench/results-cpu.md if the device is a CPU.

arguments <- commandArgs(TRUE)
save <- "--save" %in% arguments
families <- setdiff(arguments, "--save")
here <- "bench"
known <- setdiff(sub("\\.R$", "", list.files(here, "\\.R$")), c("common", "figure", "run"))
unknown <- setdiff(families, known)
if (length(unknown) > 0L) {
  stop("no such family: ", paste(unknown, collapse = ", "), "; there are: ",
       paste(known, collapse = ", "))
}
if (length(families) == 0L) families <- known

source(file.path(here, "common.R"))
device <- bench_open(families)
peers <- if (nrow(bench$peers) > 0L) {
  paste0("Peer: ", paste(unique(bench$peers$peer), collapse = ", "), ", in the same run.")
} else {
  "No peer was timed."
}
page <- c(
  "# Results", "",
  sprintf("%s, driver %s, %s. statcl %s, %s. %s.", device$name, device$driver, device$version,
          packageVersion("statcl"), R.version.string, format(Sys.Date())),
  "",
  peers,
  "",
  "Written by `./dev bench --save`; what the columns mean is in [README.md](README.md).")
peer_line <- match(peers, page)
cat(page, sep = "\n")

results <- file.path(here, if (bench$gpu) "results.md" else "results-cpu.md")
for (family in families) {
  if (family == "cpu" && bench$gpu) next
  cat("\n## ", family, "\n\n", sep = "")
  cat(table_head, sep = "\n")
  bench$rows <- list()
  set.seed(1)
  source(file.path(here, paste0(family, ".R")), local = new.env(parent = globalenv()))
  page <- c(page, "", paste("##", family), "", table_head, vapply(bench$rows, format_row, ""))
  notes <- c(if (nrow(bench$peers) > 0L || is.null(bench$peers_note)) peers, bench$peers_note)
  page[peer_line] <- paste(notes, collapse = " ")
  if (save) writeLines(page, results) # also when a later family is interrupted
}

if (save) {
  cat("\nwritten: ", results, "\n", sep = "")
  if (bench$gpu && "cholesky" %in% families) source(file.path(here, "figure.R"))
}
