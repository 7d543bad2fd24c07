#!/usr/bin/env bash
# Fails if the log of R CMD check, named as argument, has an ERROR, a WARNING or a NOTE other than
# those of a new submission and of the installed size (cran-comments.md).
set -u
awk '
  /^\* / { flush(); block = $0; bad = $0 ~ /(ERROR|WARNING|NOTE)$/; next }
  { block = block "\n" $0; if ($0 ~ /^ *(ERROR|WARNING|NOTE)$/) bad = 1 }
  function flush() {
    if (bad && block !~ /New submission|installed size is/) { print block; found = 1 }
    bad = 0
  }
  END { flush(); exit found }
' "$1" || { echo "R CMD check: not clean"; exit 1; }
grep -q '^Status: \(OK\|[12] NOTEs\?\)$' "$1" || { tail -n 3 "$1"; exit 1; }
