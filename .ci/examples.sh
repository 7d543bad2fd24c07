#!/usr/bin/env bash
# Runs the examples of the installed package, on a device where there is one. Fails if one stops, or
# if files are left behind in the folder of temporary files or in the user's home.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place"/{home,tmp,plots}
cd "$place/plots"
HOME=$place/home TMPDIR=$place/tmp Rscript -e '
  library(statcl)
  pages <- tools::Rd_db("statcl")
  for (page in names(pages)) {
    tools::Rd2ex(pages[[page]], code <- tempfile())
    if (!file.exists(code)) next
    cat("\n#", page, "\n")
    source(code, local = new.env(), echo = TRUE, max.deparse.length = Inf)
  }'
left=$(find "$place/home" "$place/tmp" -mindepth 1)
if [ -n "$left" ]; then
  printf 'left behind:\n%s\n' "$left"
  exit 1
fi
