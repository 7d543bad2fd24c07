#!/usr/bin/env bash
# Compiles all of src for Windows with mingw-w64, without linking: no error, no warning. R's headers
# are those of this machine; what differs on Windows in them does not matter here. Ends with counts.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly cc=x86_64-w64-mingw32-gcc-posix
if ! command -v $cc > /dev/null; then
  echo "$cc is not here"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
include=$(Rscript -e 'cat(R.home("include"))')
passed=0 failed=0
while read -r file; do
  # printf() is UCRT's, as R's since 4.2
  if $cc -D_UCRT -D__USE_MINGW_ANSI_STDIO=1 -std=gnu11 -Wall -Werror -Isrc -Iinst -I"$include" \
    -fsyntax-only "$file"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
done < <(find src -name '*.c')
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
